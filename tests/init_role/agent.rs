//! The real binary, as `edge-syncer init`.

use std::path::Path;
use std::time::Duration;

use crate::support::Syncer;
use crate::support::story::SOON;

/// A running `edge-syncer init`. Dropping it kills it; when the test is failing, its log is printed and kept.
pub(crate) struct Agent(pub(crate) Syncer);

impl Agent {
    /// Starts it for a config workspace. It opens no port unless a flag says so.
    pub(crate) fn start(kubeconfig: &Path, config_workspace: &str, flags: &[&str]) -> Self {
        let kubeconfig = kubeconfig.display().to_string();
        let mut args = vec!["--kubeconfig", &kubeconfig, "--config-workspace", config_workspace];
        if !flags.iter().any(|flag| flag.starts_with("--metrics-address")) {
            args.push("--metrics-address=0");
        }
        args.extend(flags);
        Self::start_raw(&args)
    }

    /// Starts it with exactly these flags.
    pub(crate) fn start_raw(args: &[&str]) -> Self {
        let args = [&["init"], args].concat();
        Self(Syncer::start_program(&Syncer::program_with_init(), &args, &[]))
    }

    /// Starts it by the name of the Go agent, with exactly these flags.
    pub(crate) fn start_by_name(folder: &Path, args: &[&str]) -> Self {
        let link = folder.join("init-agent");
        std::os::unix::fs::symlink(Syncer::program_with_init(), &link).expect("a link can be made");
        Self(Syncer::start_program(&link, args, &[]))
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
