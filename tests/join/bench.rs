//! What the tests of `gen` share.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

use crate::support::manifests::documents;
use crate::support::process::Folder;
use crate::support::{Syncer, kubectl, unique_suffix};

/// The image in all manifests.
pub(crate) const IMAGE: &str = "--syncer-image=registry.example.org/edge-syncer:0.1.0";

/// How long a command may take.
const DEADLINE: Duration = Duration::from_secs(120);

/// What a command has printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Finished {
    /// Fails unless it has succeeded.
    pub(crate) fn done(self) -> Self {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        self
    }

    /// Fails unless it has ended with this code and one line with these words, and has printed nothing.
    pub(crate) fn refused(&self, code: i32, words: &str) {
        let last = self.stderr.lines().last().unwrap_or_default();
        assert!(last.contains(words), "{words:?} is not in {:?}", self.stderr);
        assert_eq!((self.code, self.stdout.as_str()), (Some(code), ""), "{}", self.stderr);
    }
}

/// A name for a sync target that no other test has.
pub(crate) fn new_name() -> String {
    format!("site-{}", unique_suffix())
}

/// `edge-syncer gen` with these arguments, and nothing of the environment.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(Syncer::program());
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.arg("gen").args(args).env_clear().env("PATH", path);
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

pub(crate) async fn finish(command: &mut Command) -> Finished {
    let output = timeout(DEADLINE, command.output()).await;
    let output = output.unwrap_or_else(|_| panic!("not within {DEADLINE:?}: {command:?}"));
    finished(output.expect("the program can be run"))
}

fn finished(output: Output) -> Finished {
    Finished {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
    }
}

/// Runs `edge-syncer gen` with these arguments as the admin of the hub.
pub(crate) async fn generate(kubeconfig: &Path, args: &[&str]) -> Finished {
    let flag = format!("--kubeconfig={}", kubeconfig.display());
    finish(&mut command(&[&[flag.as_str()], args].concat())).await
}

/// The documents that `gen` prints for a name with these flags.
pub(crate) async fn manifest(kubeconfig: &Path, name: &str, flags: &[&str]) -> Vec<Value> {
    let finished = generate(kubeconfig, &[&[name, IMAGE, "-o", "-"], flags].concat())
        .await
        .done();
    documents(&finished.stdout)
}

/// Runs kubectl.
pub(crate) async fn kubectl_at(kubeconfig: &Path, args: &[&str]) -> Finished {
    let mut command = Command::new(kubectl());
    command.arg("--kubeconfig").arg(kubeconfig).args(args).env_clear();
    // What it remembers goes with the server.
    let cache = kubeconfig.with_file_name("kubectl-cache");
    command.arg("--cache-dir").arg(cache).stdin(Stdio::null());
    finish(&mut command).await
}

/// The only document of a kind.
pub(crate) fn of_kind<'a>(documents: &'a [Value], kind: &str) -> &'a Value {
    let mut found = documents.iter().filter(|object| object["kind"] == kind);
    let first = found.next().unwrap_or_else(|| panic!("there is no {kind}"));
    assert_eq!(found.next(), None, "there is one {kind}");
    first
}

/// The kubeconfig in the documents.
pub(crate) fn kubeconfig_in(documents: &[Value]) -> Value {
    let text = documents
        .iter()
        .find_map(|object| object["stringData"]["kubeconfig"].as_str());
    serde_saphyr::from_str(text.expect("there is one")).expect("it is YAML")
}

/// The token in a kubeconfig.
pub(crate) fn token_in(kubeconfig: &Value) -> String {
    kubeconfig["users"][0]["user"]["token"]
        .as_str()
        .expect("it has a token")
        .to_owned()
}

/// Writes documents as a file that kubectl reads.
pub(crate) fn write(folder: &Folder, name: &str, documents: &[Value]) -> PathBuf {
    let texts: Vec<String> = documents.iter().map(ToString::to_string).collect();
    folder.write(name, texts.join("\n---\n"))
}
