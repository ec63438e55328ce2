//! What `scripts/build-all` has made, and how a program of another architecture runs here.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::process::Folder;
use super::syncer::Syncer;

/// glibc reads this where the program would execute itself once more with it. QEMU passes that on to the kernel, which
/// cannot execute a file of another architecture.
const EXECUTED: (&str, &str) = ("MALLOC_MMAP_THRESHOLD_", "131072");

/// A row of `cross/targets`.
#[derive(Clone, Debug)]
pub struct Arch {
    /// What Debian, images and the files in `dist/` call it.
    pub name: String,
    /// What an ELF file has in its head.
    pub machine: u16,
    /// What QEMU and the kernel call it.
    pub qemu: String,
    /// What RPM calls it.
    pub rpm: String,
}

/// All architectures, in the order of the table.
pub fn archs() -> Vec<Arch> {
    let table = std::fs::read_to_string(root().join("cross/targets")).expect("there is a table of targets");
    let lines = table.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let arch = |line: &str| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let [name, _, _, machine, qemu, rpm] = cells[..] else {
            panic!("cross/targets: {line}: has other columns");
        };
        Arch {
            name: name.to_owned(),
            machine: machine.parse().expect("a machine is a number"),
            qemu: qemu.to_owned(),
            rpm: rpm.to_owned(),
        }
    };
    lines.map(arch).collect()
}

/// The root of the repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where the artefacts are.
pub fn folder() -> PathBuf {
    let folder = std::env::var_os("EDGE_SYNCER_DIST").map_or_else(|| root().join("dist"), PathBuf::from);
    assert!(
        folder.is_dir(),
        "{} is not there: run scripts/build-all",
        folder.display()
    );
    folder
}

impl Arch {
    /// The binary of this architecture.
    pub fn binary(&self) -> PathBuf {
        let name = format!("edge-syncer-{}-linux-{}", env!("CARGO_PKG_VERSION"), self.name);
        let path = folder().join(name);
        assert!(path.is_file(), "{} is not there: run scripts/build-all", path.display());
        path
    }

    /// The program that runs it, if this machine cannot.
    pub fn emulator(&self) -> Option<PathBuf> {
        let name = format!("/usr/bin/qemu-{}-static", self.qemu);
        (self.qemu != std::env::consts::ARCH).then(|| PathBuf::from(name))
    }

    /// A command that runs the binary with these arguments.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut words = self.words(args).into_iter();
        let mut command = Command::new(words.next().expect("there is a program"));
        command.args(words).env(EXECUTED.0, EXECUTED.1);
        command
    }

    /// Starts a syncer of this architecture between the servers that the two kubeconfigs lead to.
    pub fn start(&self, hub: &Path, edge: &Path, more: &[&str]) -> Syncer {
        let (from, to) = (
            format!("--from-kubeconfig={}", hub.display()),
            format!("--to-kubeconfig={}", edge.display()),
        );
        let run = [
            "run",
            &from,
            &to,
            "--sync-target-uid=test",
            "--qps=2000",
            "--burst=2000",
        ];
        let words = self.words(&[&run[..], more].concat());
        let args: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        Syncer::start_program(Path::new(&words[0]), &args, &[EXECUTED])
    }

    fn words(&self, args: &[&str]) -> Vec<String> {
        let programs = self.emulator().into_iter().chain([self.binary()]);
        let programs = programs.map(|path| path.display().to_string());
        programs.chain(args.iter().map(|&arg| arg.to_owned())).collect()
    }
}

/// A folder that ends with the test.
pub fn scratch(name: &str) -> Folder {
    Folder::create(name)
}
