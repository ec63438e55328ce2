//! What `scripts/build-all` has made, and how a program of another architecture runs here.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::process::Folder;
use super::syncer::Syncer;

/// A row of `cross/targets`.
#[derive(Clone, Debug)]
pub struct Arch {
    /// What the files in `dist/` call it.
    pub name: String,
    /// What an ELF file has in its head.
    pub machine: u16,
    /// How the names of the GNU tools for it begin, and what the program says it was built for.
    pub tools: String,
    /// What QEMU and the kernel call it.
    pub qemu: String,
    /// What Debian calls it.
    pub deb: String,
    /// What RPM calls it.
    pub rpm: String,
    /// What an image calls it: the architecture and, for some, a variant.
    pub platform: String,
}

/// All architectures, in the order of the table.
pub fn archs() -> Vec<Arch> {
    let table = std::fs::read_to_string(root().join("cross/targets")).expect("there is a table of targets");
    let lines = table.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let arch = |line: &str| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let [name, _, tools, machine, qemu, deb, rpm, platform] = cells[..] else {
            panic!("cross/targets: {line}: has other columns");
        };
        Arch {
            name: name.to_owned(),
            machine: machine.parse().expect("a machine is a number"),
            tools: tools.to_owned(),
            qemu: qemu.to_owned(),
            deb: deb.to_owned(),
            rpm: rpm.to_owned(),
            platform: platform.to_owned(),
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
        command.args(words);
        command
    }

    /// Starts a syncer of this architecture between the servers that the two kubeconfigs lead to.
    pub fn start(&self, hub: &Path, edge: &Path, more: &[&str]) -> Syncer {
        let words = self.words(&run_args(hub, edge, more));
        let args: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        Syncer::start_program(Path::new(&words[0]), &args, &[])
    }

    fn words(&self, args: &[impl AsRef<str>]) -> Vec<String> {
        let programs = self.emulator().into_iter().chain([self.binary()]);
        let programs = programs.map(|path| path.display().to_string());
        programs.chain(args.iter().map(|arg| arg.as_ref().to_owned())).collect()
    }
}

/// The arguments of a syncer between the servers that the two kubeconfigs lead to.
fn run_args(hub: &Path, edge: &Path, more: &[&str]) -> Vec<String> {
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
    run.iter().chain(more).map(|&arg| arg.to_owned()).collect()
}

/// Starts a syncer of this machine's architecture between the servers that the two kubeconfigs lead to.
pub fn start(program: &Path, hub: &Path, edge: &Path, more: &[&str]) -> Syncer {
    let args = run_args(hub, edge, more);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    Syncer::start_program(program, &args, &[])
}

/// A version before this one: `EDGE_SYNCER_OLDER`, or what `cross/older.sh` makes.
pub fn older() -> PathBuf {
    if let Some(program) = std::env::var_os("EDGE_SYNCER_OLDER") {
        return program.into();
    }
    let output = Command::new(root().join("cross/older.sh"))
        .stderr(Stdio::inherit())
        .output();
    let output = output.expect("the script is there");
    assert!(output.status.success(), "cross/older.sh failed: {}", output.status);
    PathBuf::from(String::from_utf8(output.stdout).expect("a path is UTF-8").trim())
}

/// A folder that ends with the test.
pub fn scratch(name: &str) -> Folder {
    Folder::create(name)
}
