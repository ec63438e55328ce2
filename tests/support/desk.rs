//! A folder as a reader of the pages has it before them: what a fresh clone has, the kubeconfigs of two clusters, and the
//! programs.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::process::Folder;
use super::{Server, Syncer, kubectl};

/// Lays out in a folder what the commands of the pages name, with the programs in `bin`.
pub fn lay_out(folder: &Folder, hub: &Server, edge: &Server) {
    for (name, server) in [("hub.kubeconfig", hub), ("edge.kubeconfig", edge)] {
        let text = std::fs::read(server.kubeconfig()).expect("it was just written");
        folder.write(name, text);
    }
    let link = |target: PathBuf, name: &str| {
        symlink(target, folder.path().join(name)).expect("the temporary folder can be written");
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    link(root.join("manifests"), "manifests");
    link(root.join("examples"), "examples");
    std::fs::create_dir(folder.path().join("bin")).expect("the temporary folder can be written");
    let program = Syncer::program();
    link(program.canonicalize().expect("the binary is there"), "bin/edge-syncer");
    link(kubectl(), "bin/kubectl");
}
