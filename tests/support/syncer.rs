//! The real binary, run as a child process.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output};
use std::time::Duration;

use tokio::time::Instant;

use super::audit::micros_of;
use super::process::{Folder, Leashed, complain, log_tail};

/// How the user agent of the syncer begins.
pub const SYNCER: &str = "edge-syncer/";

/// How long the syncer may take to end after SIGTERM before the test fails.
const TERMINATE_DEADLINE: Duration = Duration::from_secs(60);

/// What unit, image and manifests set, so that the memory of large objects goes back to the system.
const MALLOC: (&str, &str) = ("MALLOC_MMAP_THRESHOLD_", "131072");

/// What a command of the binary has printed, and its exit code.
pub struct Printed {
    pub out: String,
    pub err: String,
    pub code: Option<i32>,
}

impl Printed {
    pub fn of(output: &Output) -> Self {
        Self {
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
            code: output.status.code(),
        }
    }
}

/// A running `edge-syncer run`. Dropping it kills it; when the test is failing, its log is printed and kept.
pub struct Syncer {
    process: Leashed,
    log: PathBuf,
    folder: Folder,
}

impl Syncer {
    /// Starts a syncer between the servers that the two kubeconfigs lead to, with more arguments for `run`. Its sync target is
    /// `test` if these name no other.
    pub fn start(hub: &Path, edge: &Path, extra_args: &[&str]) -> Self {
        Self::start_with_env(hub, edge, extra_args, &[])
    }

    /// As [`Syncer::start`], with more environment variables.
    pub fn start_with_env(hub: &Path, edge: &Path, extra_args: &[&str], env: &[(&str, &str)]) -> Self {
        let from = format!("--from-kubeconfig={}", hub.display());
        let to = format!("--to-kubeconfig={}", edge.display());
        let mut args = vec!["run", &from, &to, "--qps=2000", "--burst=2000"];
        if !extra_args.iter().any(|arg| arg.starts_with("--sync-target-uid=")) {
            args.push("--sync-target-uid=test");
        }
        args.extend(extra_args);
        Self::start_raw(&args, env)
    }

    /// Starts the binary with exactly these arguments.
    pub fn start_raw(args: &[&str], env: &[(&str, &str)]) -> Self {
        Self::start_program(&Self::program(), args, env)
    }

    /// The binary under test: `EDGE_SYNCER_BIN` if it is set, otherwise the one that Cargo has built for this test; for
    /// the examples it builds none.
    pub fn program() -> PathBuf {
        std::env::var_os("EDGE_SYNCER_BIN")
            .or_else(|| option_env!("CARGO_BIN_EXE_edge-syncer").map(Into::into))
            .expect("EDGE_SYNCER_BIN is set to the path of an edge-syncer binary")
            .into()
    }

    /// A binary with this role of a provider: what `EDGE_SYNCER_INIT_BIN` or `EDGE_SYNCER_PUBLISH_BIN` names if that is set,
    /// otherwise the one that Cargo has built for this test. The release binary that `EDGE_SYNCER_BIN` mostly names has
    /// not the role.
    #[cfg(any(feature = "init", feature = "publish"))]
    pub fn program_with(role: &str) -> PathBuf {
        let variable = format!("EDGE_SYNCER_{}_BIN", role.to_uppercase());
        std::env::var_os(&variable)
            .or_else(|| option_env!("CARGO_BIN_EXE_edge-syncer").map(Into::into))
            .unwrap_or_else(|| panic!("{variable} is set to the path of a binary with the role"))
            .into()
    }

    /// The file with all that it prints.
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// Starts `program` in place of the syncer.
    pub fn start_program(program: &Path, args: &[&str], env: &[(&str, &str)]) -> Self {
        let folder = Folder::create("syncer");
        let log = folder.path().join("syncer.log");
        let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
        let env: Vec<(String, String)> = [MALLOC]
            .iter()
            .chain(env)
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let process = Leashed::spawn(program, &args, &env, &log);
        Self { process, log, folder }
    }

    /// Asks the syncer to end (SIGTERM), waits until it has, and returns how it ended and how long it took.
    pub async fn terminate(&mut self) -> (ExitStatus, Duration) {
        let start = Instant::now();
        self.process.signal("TERM");
        let status = self.process.wait(TERMINATE_DEADLINE).await;
        (status.expect("the syncer ends after SIGTERM"), start.elapsed())
    }

    /// Waits until the syncer ends by itself.
    pub async fn wait(&mut self, deadline: Duration) -> ExitStatus {
        self.process
            .wait(deadline)
            .await
            .expect("the syncer ends by itself before the deadline")
    }

    /// Sends the signal called `name`, for example `STOP`, `CONT`, `HUP`.
    pub fn signal(&mut self, name: &str) {
        self.process.signal(name);
    }

    /// Ends the syncer at once (SIGKILL), as a crash or a power cut does.
    pub fn kill(&mut self) -> ExitStatus {
        self.process.kill()
    }

    /// Whether it has not ended.
    pub fn is_running(&mut self) -> bool {
        self.process.is_running()
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// All that it has printed so far.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Waits until it has printed `text`; panics at the deadline, or when it ends without having printed it.
    pub async fn wait_for_log(&mut self, text: &str, deadline: Duration) {
        let end = Instant::now() + deadline;
        loop {
            // Ask first: what is printed just before the end is in the log when the end has been seen.
            let running = self.is_running();
            if self.log().contains(text) {
                return;
            }
            assert!(running, "the syncer has ended without printing {text:?}");
            assert!(
                Instant::now() < end,
                "the syncer did not print {text:?} within {deadline:?}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// When it printed the first line with `text`, by the clock of this machine, in microseconds of which only differences
    /// mean anything.
    pub fn printed_at(&self, text: &str) -> u64 {
        let log = self.log();
        let line = log.lines().find(|line| line.contains(text));
        let time = line.and_then(|line| line.split_once("Z ")).map(|(time, _)| time);
        // Lines have three decimals.
        micros_of(&format!("{}000Z", time.expect("it has printed that")))
    }

    /// Resident memory now, in kB.
    pub fn resident_kb(&mut self) -> u64 {
        self.process.memory_kb("VmRSS").expect("the syncer runs")
    }

    /// The most resident memory it has had, in kB.
    pub fn peak_kb(&mut self) -> u64 {
        self.process.memory_kb("VmHWM").expect("the syncer runs")
    }

    /// The processor time it has used, to a hundredth of a second.
    pub fn cpu_time(&mut self) -> Duration {
        self.process.cpu_time().expect("the syncer runs")
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            complain(&log_tail(&self.log, 200));
            self.folder.keep();
        }
    }
}
