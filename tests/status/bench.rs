//! The command, and what it prints.

use std::path::{Path, PathBuf};

use serde_json::Value;
use tokio::process::Command;

use crate::support::stage::Stage;
use crate::support::{KubeconfigParts, Printed, Server, Syncer, eventually};

/// Heartbeats often, so that an edge that has ended is soon silent for longer.
pub(crate) const EACH_SECOND: &str = "--heartbeat-interval=1s";
/// Long enough for a machine with much else to do.
const SOON: std::time::Duration = std::time::Duration::from_secs(120);

pub(crate) async fn status_at(hub: &Path, more: &[&str]) -> Printed {
    let output = Command::new(Syncer::program())
        .arg("status")
        .arg(format!("--from-kubeconfig={}", hub.display()))
        .args(more)
        .env_remove("COLUMNS")
        .output()
        .await
        .expect("the binary can be started");
    Printed::of(&output)
}

/// By the hub alone.
pub(crate) async fn status(stage: &Stage, more: &[&str]) -> Printed {
    status_at(&stage.pair.hub.kubeconfig(), more).await
}

/// With the edge.
pub(crate) async fn compared(stage: &Stage, more: &[&str]) -> Printed {
    let edge = format!("--to-kubeconfig={}", stage.pair.edge.kubeconfig().display());
    status(stage, &[&[&*edge][..], more].concat()).await
}

impl Printed {
    /// Checks the exit code.
    pub(crate) fn ends_with(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "{}{}", self.out, self.err);
        self
    }

    /// Checks that stdout has these words.
    pub(crate) fn says(&self, words: &str) -> &Self {
        assert!(self.out.contains(words), "{words:?}: {}{}", self.out, self.err);
        self
    }

    /// What `-o json` has printed.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}{}", self.out, self.err))
    }

    /// The words of each line of the table.
    pub(crate) fn rows(&self) -> Vec<Vec<&str>> {
        let lines = self.out.lines().take_while(|line| !line.is_empty());
        lines.map(|line| line.split_whitespace().collect()).collect()
    }
}

/// Runs the command until it ends with this code, and gives what it then prints.
pub(crate) async fn comes_to(stage: &Stage, code: i32, more: &[&str]) -> Printed {
    eventually("the status is the expected one", SOON, async || {
        let found = status(stage, more).await;
        if found.code == Some(code) {
            Ok(found)
        } else {
            Err(format!("{:?}: {}{}", found.code, found.out, found.err))
        }
    })
    .await
}

/// A kubeconfig of a server that nobody is.
pub(crate) fn nowhere(server: &Server) -> PathBuf {
    let parts = KubeconfigParts::with(|parts| parts.server = Some("https://127.0.0.1:1".to_owned()));
    server.write_kubeconfig("nowhere", &parts)
}
