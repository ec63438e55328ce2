//! Brought to a machine without a network as an archive.

use std::path::Path;
use std::process::Command;

use super::{SOON, files, run};
use crate::support::dist;
use crate::support::eventually;
use crate::support::process::{Folder, Leashed};

/// What docs/images.md has the archive imported as.
const REFERENCE: &str = concat!("docker.io/library/edge-syncer:", env!("CARGO_PKG_VERSION"));

/// A containerd of its own. Beside the command `ctr` this is what is in k3s, which runs it with the namespace of the
/// kubelet and calls the command `k3s ctr`.
struct Containerd {
    env: Vec<(String, String)>,
    _process: Leashed,
    _folder: Folder,
}

impl Containerd {
    async fn start() -> Self {
        let folder = Folder::create("containerd");
        let at = |name: &str| folder.path().join(name).display().to_string();
        let config = format!(
            "version = 2\nroot = {:?}\nstate = {:?}\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n[grpc]\naddress = {:?}\n",
            at("root"),
            at("state"),
            at("socket")
        );
        let config = folder.write("config.toml", config).display().to_string();
        let env: Vec<(String, String)> = [
            ("CONTAINERD_ADDRESS", at("socket")),
            ("CONTAINERD_NAMESPACE", "k8s.io".to_owned()),
            // Copies files, and so mounts nothing that would outlive a test.
            ("CONTAINERD_SNAPSHOTTER", "native".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec();
        let args = ["--config".to_owned(), config];
        let process = Leashed::spawn(Path::new("/usr/bin/containerd"), &args, &[], &folder.path().join("log"));
        let containerd = Self {
            env,
            _process: process,
            _folder: folder,
        };
        eventually("containerd answers", SOON, async || containerd.try_ctr(&["version"])).await;
        containerd
    }

    fn try_ctr(&self, args: &[&str]) -> Result<String, String> {
        let env = self.env.iter().map(|(name, value)| (name, value));
        let output = Command::new("ctr").args(args).envs(env).output();
        let output = output.map_err(|error| format!("ctr: {error}; see scripts/release --packages"))?;
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            Ok(text(&output.stdout))
        } else {
            Err(format!("{args:?}: {}", text(&output.stderr)))
        }
    }

    fn ctr(&self, args: &[&str]) -> String {
        self.try_ctr(args).unwrap_or_else(|error| panic!("{error}"))
    }
}

#[tokio::test]
#[ignore = "needs scripts/build-all and tools for images"]
async fn containerd_imports_the_archive_by_the_command_of_the_docs() {
    let digest = run("scripts/image", &["--archive"]);
    let name = format!("edge-syncer-{}-image.tar", env!("CARGO_PKG_VERSION"));
    let archive = dist::folder().join(&name).display().to_string();
    let page = std::fs::read_to_string(dist::root().join("docs/images.md")).expect("there is a page");
    assert!(page.contains(&format!("k3s ctr images import {name}")) && page.contains(REFERENCE));

    let containerd = Containerd::start().await;
    containerd.ctr(&["images", "import", &archive]);
    let images = containerd.ctr(&["images", "ls"]);
    let line = images.lines().find(|line| line.starts_with(REFERENCE));
    let line = line.unwrap_or_else(|| panic!("{images}"));
    assert!(line.contains(&digest), "{digest}: {line}");

    // A container's root of it: the files that the image has, and the program runs.
    let folder = Folder::create("root");
    let root = folder.path().join("root");
    std::fs::create_dir(&root).expect("the folder is new");
    let at = root.display().to_string();
    containerd.ctr(&["images", "mount", REFERENCE, &at]);
    let expected = run("scripts/image", &["--files", "--arch", "amd64"]);
    let (found, wanted) = (files(&root), files(Path::new(&expected)));
    let version = Command::new("chroot").args([&at, "/edge-syncer", "version"]).output();
    containerd.ctr(&["images", "unmount", &at]);
    assert_eq!(found, wanted);
    let version = version.expect("chroot can be started").stdout;
    let version = String::from_utf8_lossy(&version);
    assert!(
        version.starts_with(concat!("edge-syncer ", env!("CARGO_PKG_VERSION"), "\n")),
        "{version}"
    );
}
