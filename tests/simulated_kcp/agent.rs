//! The real binary, in a role of a provider.

use std::time::Duration;

use crate::support::Syncer;
use crate::support::story::SOON;

/// A running role of the binary. Dropping it kills it; when the test is failing, its log is printed and kept.
pub(crate) struct Agent(pub(crate) Syncer);

impl Agent {
    /// Starts it with exactly these flags.
    pub(crate) fn of_role(role: &str, args: &[&str]) -> Self {
        let args = [&[role], args].concat();
        Self(Syncer::start_program(&Syncer::program_with(role), &args, &[]))
    }

    /// Waits until one of its lines has all of these words.
    pub(crate) async fn says(&mut self, words: &[&str]) {
        crate::support::eventually(&format!("it says {words:?}"), SOON, async || {
            let log = self.0.log();
            let mut lines = log.lines();
            lines
                .any(|line| words.iter().all(|word| line.contains(word)))
                .then_some(())
                .ok_or("it does not")
        })
        .await;
    }

    /// Asks it to end, and checks that it does, well and soon.
    pub(crate) async fn ends_well(&mut self) {
        let (status, took) = self.0.terminate().await;
        assert_eq!(status.code(), Some(0));
        assert!(took < Duration::from_secs(20), "it took {took:?}");
    }
}
