//! Pushed, pulled, unpacked and run.

mod imported;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::dist::{self, Arch};
use crate::support::objects::config_map;
use crate::support::process::{Folder, Leashed};
use crate::support::stage::{Stage, config_maps, select, stage, stock};
use crate::support::story::copy_equals;
use crate::support::{Ca, Credential, KubeconfigParts, Syncer, eventually};

const SOON: Duration = Duration::from_secs(60);

/// Runs a command to its end; panics with all that it has said if it fails.
fn run(program: &str, args: &[&str]) -> String {
    let output = output(program, args);
    let said = [output.stdout.clone(), output.stderr].concat();
    assert!(
        output.status.success(),
        "{program} {args:?}: {}",
        String::from_utf8_lossy(&said)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn output(program: &str, args: &[&str]) -> Output {
    let output = Command::new(program).args(args).env("HOME", "/root").output();
    output.unwrap_or_else(|error| panic!("{program} cannot be started: {error}; see scripts/release --packages"))
}

/// A program of `cross/tools`.
fn tool(name: &str) -> String {
    run("scripts/release", &["--tool", name])
}

/// A registry on this machine.
struct Registry {
    address: String,
    _process: Leashed,
    _folder: Folder,
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.local_addr().expect("it is bound").port()
}

impl Registry {
    /// That of crane.
    async fn of_crane() -> Self {
        let (folder, port) = (Folder::create("registry"), free_port());
        let address = format!("127.0.0.1:{port}");
        let disk = folder.path().display().to_string();
        let args = ["registry", "serve", "--address", &address, "--disk", &disk];
        Self::start(&tool("crane"), &args, folder, address.clone()).await
    }

    /// That of the Distribution project.
    async fn of_distribution() -> Self {
        let (folder, port) = (Folder::create("registry"), free_port());
        let address = format!("127.0.0.1:{port}");
        let config = json!({"version": 0.1, "storage": {"filesystem": {"rootdirectory": folder.path().join("data")}},
            "http": {"addr": address}});
        let file = folder.write("config.yml", config.to_string()).display().to_string();
        Self::start(&tool("registry"), &["serve", &file], folder, address.clone()).await
    }

    async fn start(program: &str, args: &[&str], folder: Folder, address: String) -> Self {
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        let process = Leashed::spawn(Path::new(program), &args, &[], &folder.path().join("log"));
        eventually("the registry listens", SOON, async || {
            std::net::TcpStream::connect(&address)
                .map(|_| ())
                .map_err(|error| error.to_string())
        })
        .await;
        Self {
            address,
            _process: process,
            _folder: folder,
        }
    }
}

/// Makes the image and pushes it; gives the digest of the index.
fn pushed_to(registry: &Registry) -> (String, String) {
    let reference = format!("{}/edge-syncer:{}", registry.address, env!("CARGO_PKG_VERSION"));
    let digest = run("scripts/image", &["--insecure", "--push", &reference]);
    (reference, digest)
}

/// Fails unless the registry gives back what was made, by its digest, and tools of others read it.
fn comes_back(registry: &Registry, into: &Path) {
    let (_, digest) = pushed_to(registry);
    let by_digest = format!("docker://{}/edge-syncer@{digest}", registry.address);
    let raw = run("skopeo", &["inspect", "--tls-verify=false", "--raw", &by_digest]);
    let index: Value = serde_json::from_str(&raw).expect("an index is JSON");
    let in_index = index["manifests"].as_array().expect("it has images");
    let in_index: Vec<String> = in_index.iter().map(|it| platform(&it["platform"])).collect();
    let expected: Vec<String> = dist::archs().into_iter().map(|arch| arch.platform).collect();
    assert_eq!(in_index, expected, "{raw}");
    let crane = tool("crane");
    let reference = format!("{}/edge-syncer@{digest}", registry.address);
    run(&crane, &["validate", "--insecure", "--remote", &reference]);
    for arch in dist::archs() {
        let layout = format!("oci:{}:{}", into.display(), arch.name);
        copied(&arch, &["--src-tls-verify=false"], &by_digest, &layout);
        let config = run("skopeo", &["inspect", "--config", &layout]);
        let config: Value = serde_json::from_str(&config).expect("a config is JSON");
        assert_eq!(platform(&config), arch.platform);
        let of_program = &config["config"];
        assert_eq!(of_program["Entrypoint"], json!(["/ko-app/syncer"]));
        assert_eq!(of_program["User"], json!("65532:65532"));
        assert_eq!(of_program["Env"], json!(["MALLOC_MMAP_THRESHOLD_=131072"]));
        let labels = &of_program["Labels"];
        assert_eq!(
            labels["org.opencontainers.image.version"],
            json!(env!("CARGO_PKG_VERSION"))
        );
        assert_eq!(labels["org.opencontainers.image.created"], config["created"]);
    }
}

/// The platform as Go names it, such as `arm/v7`, of what has its parts.
fn platform(parts: &Value) -> String {
    let parts = [&parts["architecture"], &parts["variant"]].into_iter();
    let parts: Vec<&str> = parts.filter_map(Value::as_str).collect();
    parts.join("/")
}

/// Copies the image for an architecture by skopeo.
fn copied(arch: &Arch, more: &[&str], from: &str, to: &str) {
    let (architecture, variant) = arch.platform.split_once('/').unwrap_or((&arch.platform, ""));
    let of = [
        "--override-os=linux",
        "--override-arch",
        architecture,
        "--override-variant",
        variant,
    ];
    run("skopeo", &[&["copy"], &of[..], more, &[from, to]].concat());
}

/// The root file system of the image for an architecture, unpacked from a layout.
fn unpacked(layout: &Path, arch: &Arch, into: &Path) -> PathBuf {
    let bundle = into.join(&arch.name);
    let image = format!("{}:{}", layout.display(), arch.name);
    run(
        "umoci",
        &["unpack", "--rootless", "--image", &image, &bundle.display().to_string()],
    );
    bundle.join("rootfs")
}

/// All files of a folder with their sizes, and where links lead.
fn files(root: &Path) -> Vec<String> {
    let script = "cd \"$1\" && find . -mindepth 1 -printf '%p %m %y %l\\n' | sort";
    run("sh", &["-c", script, "-", &root.display().to_string()])
        .lines()
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
#[ignore = "needs scripts/build-all and tools for images"]
async fn two_registries_and_the_tools_of_others_take_it_and_give_it_back() {
    let folder = Folder::create("images");
    for registry in [Registry::of_crane().await, Registry::of_distribution().await] {
        let layout = folder.path().join(registry.address.replace(':', "-"));
        comes_back(&registry, &layout);
        let root = unpacked(
            &layout,
            &dist::archs()[0],
            &folder.path().join(format!("un-{}", registry.address)),
        );
        let names: Vec<String> = files(&root)
            .iter()
            .map(|line| line.split(' ').next().unwrap_or_default().to_owned())
            .collect();
        for name in [
            "./edge-syncer",
            "./etc/passwd",
            "./etc/ssl/certs/ca-certificates.crt",
            "./ko-app/syncer",
        ] {
            assert!(names.iter().any(|found| found == name), "{name}: {names:?}");
        }
    }
}

#[test]
#[ignore = "needs scripts/build-all and tools for images"]
fn the_same_binaries_give_the_same_digest() {
    let [first, second] = [(), ()].map(|()| run("scripts/image", &["--archive"]));
    assert_eq!(first, second);
}

/// Runs a root file system read-only as user 65532, with nothing but /proc and the network of this machine: the way a
/// pod with `readOnlyRootFilesystem` runs.
fn contained(root: &Path, arch: &Arch, kubeconfigs: &Path, args: &[&str]) -> Syncer {
    let mut words: Vec<String> = [
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--uid",
        "65532",
        "--gid",
        "65532",
        "--die-with-parent",
        "--cap-drop",
        "ALL",
        "--ro-bind",
    ]
    .map(str::to_owned)
    .to_vec();
    words.extend([root.display().to_string(), "/".to_owned()]);
    let at = kubeconfigs.display().to_string();
    words.extend(["--proc", "/proc", "--ro-bind", &at, "/etc/ssl", "--clearenv"].map(str::to_owned));
    words.extend(["--setenv", "MALLOC_MMAP_THRESHOLD_", "131072"].map(str::to_owned));
    // The emulator stands where the image has a file that is not read here: the root is read-only.
    if let Some(emulator) = arch.emulator() {
        let emulator = emulator.display().to_string();
        words.extend(["--ro-bind", &emulator, "/etc/passwd"].map(str::to_owned));
        words.extend(["--", "/etc/passwd"].map(str::to_owned));
    } else {
        words.push("--".to_owned());
    }
    words.push("/ko-app/syncer".to_owned());
    words.extend(args.iter().map(|&arg| arg.to_owned()));
    let args: Vec<&str> = words.iter().map(String::as_str).collect();
    Syncer::start_program(Path::new("/usr/bin/bwrap"), &args, &[])
}

/// A folder for `/etc/ssl` in the container, with the kubeconfigs, which users other than root may read. The CA of the
/// hub stands in the bundle alone, at the place where the image has it; the kubeconfig names none.
fn given(stage: &Stage) -> Folder {
    let folder = Folder::create("ssl");
    let server = |url: &str| Some(url.replace("127.0.0.1", "localhost"));
    let hub = KubeconfigParts::with(|parts| {
        parts.ca = Ca::Absent;
        parts.credential = Credential::CertInline;
        parts.server = server(stage.pair.hub.url());
    });
    let edge = KubeconfigParts::with(|parts| {
        parts.credential = Credential::CertInline;
        parts.server = server(stage.pair.edge.url());
    });
    let read = |path: PathBuf| std::fs::read_to_string(path).expect("it was written");
    folder.write("hub", read(stage.pair.hub.write_kubeconfig("contained", &hub)));
    folder.write("edge", read(stage.pair.edge.write_kubeconfig("contained", &edge)));
    std::fs::create_dir(folder.path().join("certs")).expect("the folder is new");
    folder.write("certs/ca-certificates.crt", stage.pair.hub.ca_pem());
    run("chmod", &["-R", "go+rX", &folder.path().display().to_string()]);
    folder
}

#[tokio::test]
#[ignore = "needs scripts/build-all and tools for images"]
async fn each_root_file_system_runs_read_only_as_nobody_and_syncs() {
    let folder = Folder::create("images");
    let registry = Registry::of_crane().await;
    let layout = folder.path().join("layout");
    comes_back(&registry, &layout);
    let stage = stage().await;
    stock(&stage.hub, &stage.shop, &["first"], &json!({"v": "1"})).await;
    select(&stage.hub, &config_maps(&stage.shop, &["*"])).await;
    let given = given(&stage);
    for arch in dist::archs() {
        let root = unpacked(&layout, &arch, &folder.path().join("un"));
        prepare(&root);
        let before = files(&root);
        let mut help = contained(&root, &arch, given.path(), &["--help"]);
        help.wait(SOON).await;
        assert!(help.log().starts_with("Usage: "), "{}", help.log());
        let args = [
            "--from-kubeconfig=/etc/ssl/hub",
            "--to-kubeconfig=/etc/ssl/edge",
            "--sync-target-uid=test",
        ];
        let mut syncer = contained(&root, &arch, given.path(), &args);
        stage
            .hub
            .create(&config_map(&stage.shop, &arch.name, json!({"by": arch.name})))
            .await;
        copy_equals(&stage.edge, &stage.shop, &arch.name, &json!({"by": arch.name})).await;
        syncer.signal("TERM");
        // The signal ends the container as a whole.
        syncer.wait(SOON).await;
        assert_eq!(files(&root), before, "{} writes nothing", arch.name);
    }
}

/// What every container engine adds before it starts a program: a place for /proc, and the names that it resolves.
fn prepare(root: &Path) {
    std::fs::create_dir(root.join("proc")).expect("the image has none");
    std::fs::write(root.join("etc/hosts"), "127.0.0.1 localhost\n").expect("the folder can be written");
    std::fs::write(root.join("etc/resolv.conf"), "").expect("the folder can be written");
}

/// What `cross/Containerfile` copies is what the image has.
#[test]
#[ignore = "needs scripts/build-all and tools for images"]
fn the_containerfile_gives_the_same_files() {
    run("scripts/image", &["--files"]);
    let folder = Folder::create("images");
    let storage = folder.path().join("storage").display().to_string();
    let run_root = folder.path().join("run").display().to_string();
    let global = ["--root", &storage, "--runroot", &run_root, "--storage-driver", "vfs"];
    run("scripts/image", &[]);
    let made = dist::folder().join("image").display().to_string();
    let made = format!("oci:{made}:{}", env!("CARGO_PKG_VERSION"));
    for arch in dist::archs() {
        let platform = format!("--platform=linux/{}", arch.platform);
        let build = ["build", "--isolation", "chroot", &platform, "-f", "cross/Containerfile"];
        run("buildah", &[&global[..], &build, &["-t", "edge-syncer", "."]].concat());
        let [theirs, ours] = ["theirs", "ours"].map(|name| {
            let layout = folder.path().join(name);
            (layout.clone(), format!("oci:{}:{}", layout.display(), arch.name))
        });
        run("buildah", &[&global[..], &["push", "edge-syncer", &theirs.1]].concat());
        copied(&arch, &[], &made, &ours.1);
        let [theirs, ours] = [theirs, ours].map(|(layout, _)| unpacked(&layout, &arch, &layout.with_extension("un")));
        assert_eq!(files(&theirs), files(&ours), "{platform}");
        let both = [&theirs, &ours].map(|root| root.display().to_string());
        run("diff", &["-r", "--no-dereference", &both[0], &both[1]]);
    }
}
