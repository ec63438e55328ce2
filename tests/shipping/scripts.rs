//! What the scripts say to wrong input; nothing half-written stays behind. And the files that packages take as they are.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// In the env of a container.
const VARIABLE: &str = "\n        - name: MALLOC_MMAP_THRESHOLD_\n          value: \"131072\"\n";

/// A folder that ends with the test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("there is room for a folder"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    fn write(&self, name: &str, text: &[u8]) {
        let path = self.path().join(name);
        fs::write(&path, text).expect("the folder can be written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).expect("it can be read");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("it can be read")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }
}

/// How a script ends, and what it says on stderr and stdout.
fn call(script: &str, args: &[&str], env: &[(&str, &Path)]) -> (Option<i32>, String, String) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
    let mut command = Command::new(path);
    command.args(args).envs(env.iter().copied());
    let output = command.output().expect("the script is there");
    let text = |bytes| String::from_utf8(bytes).expect("it is UTF-8");
    (output.status.code(), text(output.stderr), text(output.stdout))
}

const SCRIPTS: [&str; 11] = [
    "scripts/build",
    "scripts/build-all",
    "scripts/demo",
    "scripts/footprint",
    "scripts/image",
    "scripts/licences",
    "scripts/page-picture",
    "scripts/package",
    "scripts/release",
    "scripts/simulate",
    "scripts/test",
];

#[test]
fn every_script_has_a_help_and_refuses_what_it_does_not_know() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = fs::read_dir(root.join("scripts")).expect("there are scripts");
    for entry in entries {
        let name = format!(
            "scripts/{}",
            entry.expect("it can be read").file_name().to_string_lossy()
        );
        let (code, _, help) = call(&name, &["--help"], &[]);
        assert_eq!(code, Some(0), "{name} --help");
        assert!(help.lines().count() > 3 && !help.contains("set -e"), "{name}: {help}");
        assert!(
            SCRIPTS.contains(&name.as_str()) || name == "scripts/testenv",
            "{name} has no test"
        );
        let (code, said, _) = call(&name, &["--nonsense"], &[]);
        assert_eq!(code, Some(2), "{name}: {said}");
        assert_eq!(said.lines().count(), 1, "{name}: {said}");
        assert!(said.contains("--nonsense") && said.contains("--help"), "{name}: {said}");
    }
}

#[test]
fn an_unknown_target_is_refused_with_those_that_there_are() {
    let dist = Folder::new();
    for (script, args) in [
        ("scripts/build-all", &["riscv64"][..]),
        ("scripts/image", &["--arch", "riscv64"]),
        ("scripts/package", &["--arch", "riscv64"]),
    ] {
        let (code, said, _) = call(script, args, &[("EDGE_SYNCER_DIST", &dist.path())]);
        assert_eq!(code, Some(2), "{script}: {said}");
        assert!(
            said.ends_with(": no target is called riscv64; there are: amd64 arm64 armv7 s390x\n"),
            "{script}: {said}"
        );
    }
    assert_eq!(dist.names(), [""; 0]);
}

#[test]
fn an_unknown_older_version_is_refused_with_those_that_there_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = fs::read_to_string(root.join("tests/testenv/older")).expect("there is a table");
    let rows = table.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let known: Vec<&str> = rows.filter_map(|line| line.split(' ').next()).collect();
    let (code, said, _) = call("scripts/test", &["--kube", "1.2"], &[]);
    assert_eq!(code, Some(2), "{said}");
    assert_eq!(said, format!("testenv: --kube 1.2 is none of {}\n", known.join(" ")));
    // What users read has the same versions.
    for page in ["README.md", "docs/releases.md"] {
        let text = fs::read_to_string(root.join(page)).expect("there is a page");
        for version in &known {
            assert!(
                text.contains(&format!("kube-apiserver {version}")),
                "{page} does not name {version}"
            );
        }
    }
    let (code, said, made) = call("cross/older.sh", &["nonsense"], &[]);
    assert_eq!((code, made.as_str()), (Some(1), ""), "{said}");
    assert!(said.starts_with("older: the commit nonsense is not here"), "{said}");
}

/// The head of an ELF file of a machine, with a program header that asks for a loader.
fn dynamic(machine: u16) -> Vec<u8> {
    let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend(2_u16.to_le_bytes());
    file.extend(machine.to_le_bytes());
    file.extend(1_u32.to_le_bytes());
    // Entry, program headers, section headers.
    for place in [0_u64, 64, 0] {
        file.extend(place.to_le_bytes());
    }
    file.extend(0_u32.to_le_bytes());
    for word in [64_u16, 56, 1, 64, 0, 0] {
        file.extend(word.to_le_bytes());
    }
    // A loader: type, flags, and where its name is.
    file.extend(3_u32.to_le_bytes());
    file.extend(4_u32.to_le_bytes());
    for place in [120_u64, 120, 120, 9, 9, 1] {
        file.extend(place.to_le_bytes());
    }
    file.extend(b"/lib/ld.\0");
    file
}

#[test]
fn image_and_packages_refuse_what_is_not_a_static_binary_of_the_architecture() {
    let needed = ["jq", "readelf", "go"].map(|program| Command::new(program).arg("--help").output().is_ok());
    if needed.contains(&false) {
        let _ = writeln!(
            std::io::stderr(),
            "jq, readelf or Go is not here, so that the refusals were not checked"
        );
        return;
    }
    let name = |arch: &str| format!("edge-syncer-{}-linux-{arch}", env!("CARGO_PKG_VERSION"));
    let (amd64, arm64, s390x) = (name("amd64"), name("arm64"), name("s390x"));
    let dist = Folder::new();
    dist.write(&amd64, &dynamic(62));
    dist.write(&arm64, &dynamic(62));
    dist.write(&s390x, b"#!/bin/sh\n");
    for script in ["scripts/image", "scripts/package"] {
        let (code, said, _) = call(script, &[], &[("EDGE_SYNCER_DIST", &dist.path())]);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(&format!("{amd64} is not static")), "{said}");
        assert!(
            said.contains(&format!("{arm64} is for machine 62, but arm64 is machine 183")),
            "{said}"
        );
        assert!(said.contains(&format!("{s390x} is no ELF file")), "{said}");
        assert_eq!(dist.names(), [amd64.clone(), arm64.clone(), s390x.clone()]);
    }
    fs::remove_file(dist.path().join(&amd64)).expect("it was written");
    let (code, said, _) = call(
        "scripts/image",
        &["--arch", "amd64"],
        &[("EDGE_SYNCER_DIST", &dist.path())],
    );
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("is missing: make it with scripts/build-all"), "{said}");
    // That of providers has a name of its own.
    let (code, said, _) = call(
        "scripts/image",
        &["--provider", "--arch", "arm64"],
        &[("EDGE_SYNCER_DIST", &dist.path())],
    );
    let provider = arm64.replace("edge-syncer-", "edge-syncer-provider-");
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.ends_with(&format!(
            "{provider} is missing: make it with scripts/build-all --provider\n"
        )),
        "{said}"
    );
}

#[test]
fn the_image_of_providers_starts_by_the_name_of_one_of_the_agents() {
    for (args, expected) in [
        (
            &["--provider", "--as", "syncer"][..],
            "image: --as syncer: must be init-agent or api-syncagent\n",
        ),
        (
            &["--as", "api-syncagent"],
            "image: --as is for the image of providers: give --provider too\n",
        ),
    ] {
        let (code, said, _) = call("scripts/image", args, &[]);
        assert_eq!((code, said.as_str()), (Some(2), expected));
    }
}

/// The container file has the entry point of the image for edges.
#[test]
fn the_files_are_only_those_of_the_image_for_edges() {
    let (code, said, _) = call("scripts/image", &["--provider", "--files"], &[]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--files") && said.contains("--provider"), "{said}");
}

#[test]
fn features_are_named() {
    let (code, said, _) = call("scripts/build", &["--features"], &[]);
    assert_eq!(
        (code, said.as_str()),
        (Some(2), "build: --features needs a value, see scripts/build --help\n")
    );
}

/// All at once, and no line twice: a person installs them with one command.
#[test]
fn what_is_missing_is_named_with_its_package() {
    let bin = Folder::new();
    for program in [
        "bash", "sh", "awk", "sed", "dirname", "paste", "uname", "ls", "sort", "tail", "cat", "grep", "env",
    ] {
        let found = std::env::split_paths(&std::env::var_os("PATH").expect("there is a path"))
            .map(|folder| folder.join(program))
            .find(|path| path.exists());
        if let Some(path) = found {
            std::os::unix::fs::symlink(path, bin.path().join(program)).expect("the folder can be written");
        }
    }
    let nothing = PathBuf::from("/nonexistent");
    let env = [
        ("PATH", bin.path()),
        ("EDGE_SYNCER_RUST", nothing.clone()),
        ("EDGE_SYNCER_CACHE", nothing),
    ];
    let env: Vec<(&str, &Path)> = env.iter().map(|(name, path)| (*name, path.as_path())).collect();
    for (script, args, packages) in [
        (
            "scripts/build-all",
            &["--check"][..],
            &[
                "rustc-web",
                "gcc-aarch64-linux-gnu",
                "gcc-arm-linux-gnueabihf libc6-dev-armhf-cross",
                "gcc-s390x-linux-gnu",
                "qemu-user-static",
                "binutils",
            ][..],
        ),
        (
            "scripts/image",
            &["--push", "x"],
            &["apt install tar", "gzip", "jq", "binutils", "crane is missing"],
        ),
        (
            "scripts/package",
            &["--check"],
            &["cargo-web", "gzip", "jq", "binutils", "nfpm is missing"],
        ),
    ] {
        let (code, said, _) = call(script, args, &env);
        assert_eq!(code, Some(3), "{script}: {said}");
        for package in packages {
            assert!(said.contains(package), "{script} does not name {package}: {said}");
        }
    }
}

/// The unit is not started before a kubeconfig is there.
#[test]
fn the_unit_waits_for_a_kubeconfig() {
    let unit = fs::read_to_string("manifests/systemd/edge-syncer.service").expect("there is a unit");
    assert!(
        unit.contains("\nConditionPathExists=/etc/edge-syncer/hub.kubeconfig\n"),
        "{unit}"
    );
    assert!(
        unit.contains("\nEnvironmentFile=/etc/edge-syncer/edge-syncer.env\n"),
        "{unit}"
    );
    assert!(unit.contains("\nExecStart=/usr/bin/edge-syncer run"), "{unit}");
    // Each variable that it uses is in the file of the packages, empty or not.
    let env = fs::read_to_string("cross/package/edge-syncer.env").expect("there is a file");
    for variable in unit.split('$').skip(1) {
        let name: String = variable
            .trim_start_matches('{')
            .chars()
            .take_while(|c| *c == '_' || c.is_ascii_uppercase())
            .collect();
        let is_of_systemd = name.ends_with("_DIRECTORY");
        assert!(
            is_of_systemd || env.contains(&format!("\n{name}=")),
            "{name} is not in the file"
        );
    }
}

/// glibc keeps the memory of large objects otherwise, and nothing but the environment tells it not to.
#[test]
fn unit_images_and_manifests_have_memory_returned() {
    for (path, line) in [
        (
            "manifests/systemd/edge-syncer.service",
            "\nEnvironment=MALLOC_MMAP_THRESHOLD_=131072\n",
        ),
        ("cross/Containerfile", "\nENV MALLOC_MMAP_THRESHOLD_=131072\n"),
        ("scripts/image", "Env: [\"MALLOC_MMAP_THRESHOLD_=131072\"]"),
        ("manifests/base/edge-syncer.yaml", VARIABLE),
        ("manifests/init/host/init-agent.yaml", VARIABLE),
        ("manifests/publish/host/api-syncagent.yaml", VARIABLE),
    ] {
        let text = fs::read_to_string(path).expect("it is there");
        assert!(text.contains(line), "{path} has no {line}");
    }
}

/// By actionlint, if `scripts/release --tool actionlint` has made it; the release check makes sure of that.
#[test]
fn workflows_call_scripts_that_there_are() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut called = 0;
    for name in ["ci.yml", "release.yml"] {
        let text = fs::read_to_string(folder.join(".github/workflows").join(name)).expect("there is a workflow");
        let words = text.split([' ', '(', '"', '\n']);
        for script in words.filter(|word| word.starts_with("scripts/") || word.starts_with(".ci/")) {
            assert!(folder.join(script).exists(), "{name}: {script}");
            called += 1;
        }
    }
    assert!(called >= 3, "only {called} were found");
}

#[test]
#[ignore = "builds actionlint"]
fn actionlint_accepts_the_workflows() {
    let (code, said, path) = call("scripts/release", &["--tool", "actionlint"], &[]);
    assert_eq!(code, Some(0), "{said}");
    let output = Command::new(path.trim())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("it was made");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
