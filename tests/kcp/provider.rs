//! What `manifests/kcp` makes of workspaces, applied as people do.

use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr};

use crate::bench::{Finished, kubectl_at};
use crate::support::kcp::{Kcp, Workspace};
use crate::support::process::Folder;
use crate::support::unique_suffix;

const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/kcp");

/// Creates a workspace that offers the types of configs.
pub(crate) async fn provider(kcp: &Kcp) -> Workspace {
    let provider = kcp.workspace(&format!("espw-{}", unique_suffix())).await;
    for file in ["apiresourceschemas.yaml", "apiexport.yaml"] {
        apply(&provider, &Path::new(MANIFESTS).join(file)).await;
    }
    provider
}

/// Binds what a workspace offers in another one.
pub(crate) async fn bind(folder: &Folder, workspace: &Workspace, provider: &Workspace) {
    let binding = std::fs::read_to_string(Path::new(MANIFESTS).join("apibinding.yaml")).expect("it is there");
    let binding = binding.replace("root:espw", &format!("root:{}", provider.name));
    let file = folder.write(&format!("{}.yaml", workspace.name), binding);
    apply(workspace, &file).await;
}

async fn apply(workspace: &Workspace, file: &Path) {
    let file = file.display().to_string();
    kubectl_at(&workspace.kubeconfig, &["apply", "--validate=strict", "-f", &file])
        .await
        .done();
}

/// A command that is running, line by line.
pub(crate) struct Running {
    child: Child,
    lines: tokio::io::Lines<BufReader<ChildStderr>>,
    said: String,
}

impl Running {
    /// Starts it.
    pub(crate) fn start(mut command: tokio::process::Command) -> Self {
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be run");
        let stderr = child.stderr.take().expect("it is a pipe");
        Self {
            child,
            lines: BufReader::new(stderr).lines(),
            said: String::new(),
        }
    }

    /// Waits until it says this. It ends by itself, if only when its patience does.
    pub(crate) async fn says(&mut self, words: &str) {
        while let Some(line) = self.lines.next_line().await.expect("it is UTF-8") {
            self.said.extend([line.as_str(), "\n"]);
            if line.contains(words) {
                return;
            }
        }
        panic!("it has not said {words:?}: {}", self.said);
    }

    /// Waits until it has ended.
    pub(crate) async fn end(mut self) -> Finished {
        while let Some(line) = self.lines.next_line().await.expect("it is UTF-8") {
            self.said.extend([line.as_str(), "\n"]);
        }
        Finished {
            code: self.child.wait().await.expect("it is ours").code(),
            stdout: String::new(),
            stderr: self.said,
        }
    }
}
