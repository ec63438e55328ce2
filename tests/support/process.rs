//! Child processes and folders that never outlive the test process, however it ends.
//!
//! Destructors do not run for statics, nor after SIGKILL. So every child has a watcher: a shell that holds the read
//! end of a pipe whose write end only the test process has. When the test process is gone, for whatever reason, the
//! pipe closes and the watcher ends the child. A folder has the same kind of watcher, which removes it.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Marks the command line of a leash that has not yet become its program.
const LEASH_NAME: &str = "edge-syncer-test-leash";

/// The unit of times in `/proc`: a hundredth of a second, whatever the kernel's own clock does.
const TICK: Duration = Duration::from_millis(10);

/// Starts the watcher in the background and becomes the program, which so keeps the process id of the shell.
///
/// The watcher only kills what is still its parent: once the program has ended, its process id may belong to another
/// process. It ignores the signals that a terminal or a CI job sends to the whole process group, so that a program
/// that does not heed them (a paused one, say) still ends.
const LEASH: &str = r#"
exec 3<&0 </dev/null
{
  trap '' HUP INT TERM
  while read -r _; do :; done <&3
  read -r _ _ _ parent _ </proc/self/stat
  [ "$parent" = "$$" ] && kill -9 "$$"
} >/dev/null 2>&1 &
exec "$@" 3<&-
"#;

/// Removes the folder `$1` when the pipe closes. If it has been asked to keep it, it removes only the data of etcd,
/// which are large and of no use to a person. A server that is being killed at the same moment may still create files,
/// so the removal is repeated until it has worked.
const JANITOR: &str = r#"
trap '' HUP INT TERM
keep=
while read -r word; do keep=$word; done
what=$1
[ -n "$keep" ] && what=$1/etcd
tries=0
until rm -rf -- "$what" 2>/dev/null || [ $tries -ge 50 ]; do tries=$((tries + 1)); sleep 0.1; done
"#;

/// A child process that ends with the test process at the latest.
#[derive(Debug)]
pub struct Leashed {
    child: Child,
    /// Held only for its being closed when this process ends.
    _leash: ChildStdin,
    exited: Option<ExitStatus>,
}

impl Leashed {
    /// Starts `command` with both its output streams appended to the file `log`; `env` is added to the environment.
    pub fn spawn(program: &Path, args: &[String], env: &[(String, String)], log: &Path) -> Self {
        let log = File::options()
            .create(true)
            .append(true)
            .open(log)
            .expect("the log file can be written");
        let mut child = Command::new("/bin/sh")
            .args(["-c", LEASH, LEASH_NAME])
            .arg(program)
            .args(args)
            .envs(env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("a file handle can be cloned"))
            .stderr(log)
            .spawn()
            .expect("/bin/sh exists");
        let leash = child.stdin.take().expect("stdin is piped");
        let mut leashed = Self {
            child,
            _leash: leash,
            exited: None,
        };
        leashed.wait_for_exec();
        leashed
    }

    /// Waits until the shell has become the program, so that signals and memory figures are the program's.
    fn wait_for_exec(&mut self) {
        let command_line = format!("/proc/{}/cmdline", self.pid());
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.is_running() && Instant::now() < deadline {
            let text = std::fs::read(&command_line).unwrap_or_default();
            if !text.is_empty() && !contains(&text, LEASH_NAME.as_bytes()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The process id of the program itself.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// How the program ended, if it has.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        if self.exited.is_none() {
            self.exited = self.child.try_wait().expect("the child is ours to wait for");
        }
        self.exited
    }

    /// Whether the program has not ended yet; a paused one runs.
    pub fn is_running(&mut self) -> bool {
        self.exit_status().is_none()
    }

    /// Sends the signal called `name` (`TERM`, `STOP`, ...); does nothing when the program has ended.
    pub fn signal(&mut self, name: &str) {
        if self.is_running() {
            // The child has not been waited for, so its process id cannot have passed to another process.
            Command::new("kill")
                .args([format!("-{name}"), self.pid().to_string()])
                .status()
                .expect("the kill command exists");
        }
    }

    /// Stops the program, and waits until each of its threads stands still: that takes a moment on a busy machine.
    pub fn pause(&mut self) {
        self.signal("STOP");
        let tasks = format!("/proc/{}/task", self.pid());
        let is_still = |task: std::fs::DirEntry| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            // The state follows the name, which is in brackets. A thread that has ended has none.
            stat.rsplit_once(") ")
                .is_none_or(|(_, state)| state.starts_with(['T', 'Z']))
        };
        while let Ok(mut tasks) = std::fs::read_dir(&tasks)
            && !tasks.all(|task| task.is_ok_and(is_still))
        {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Ends the program with SIGKILL and waits until it is gone.
    pub fn kill(&mut self) -> ExitStatus {
        if self.exited.is_none() {
            // An error means that it has just ended by itself.
            let _ = self.child.kill();
            self.exited = Some(self.child.wait().expect("the child is ours to wait for"));
        }
        self.exited.expect("set above")
    }

    /// Waits until the program ends; `None` when it has not by the deadline.
    pub async fn wait(&mut self, deadline: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + deadline;
        while self.is_running() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        self.exit_status()
    }

    /// A figure in kB from `/proc/PID/status`, such as `VmRSS`; `None` when the program has ended.
    pub fn memory_kb(&mut self, field: &str) -> Option<u64> {
        if !self.is_running() {
            return None;
        }
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
        line.trim().strip_suffix(" kB")?.parse().ok()
    }

    /// The processor time it has used, in user mode and in the kernel; `None` when the program has ended.
    pub fn cpu_time(&mut self) -> Option<Duration> {
        if !self.is_running() {
            return None;
        }
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).ok()?;
        // The second field is the name in brackets, which may hold anything; utime and stime are the 14th and 15th.
        let (_, after_name) = stat.rsplit_once(')')?;
        let times = after_name.split_whitespace().skip(11).take(2);
        let ticks: u32 = times.map(|time| time.parse::<u32>().ok()).sum::<Option<u32>>()?;
        Some(TICK * ticks)
    }
}

impl Drop for Leashed {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A temporary folder that is removed with its handle, or with the test process; a kept one loses only its etcd data.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    janitor: Child,
    leash: Option<ChildStdin>,
    kept: bool,
}

impl Folder {
    /// Creates an empty folder whose name contains `name`.
    pub fn create(name: &str) -> Self {
        let path = tempfile::Builder::new()
            .prefix(&format!("edge-syncer-{name}-"))
            .tempdir()
            .expect("a temporary folder can be created")
            .keep();
        let mut janitor = Command::new("/bin/sh")
            .args(["-c", JANITOR, "edge-syncer-test-janitor"])
            .arg(&path)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("/bin/sh exists");
        let leash = janitor.stdin.take();
        Self {
            path,
            janitor,
            leash,
            kept: false,
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file into the folder and returns its path. Who reads it meanwhile gets what it was, or what it is now: several
    /// syncers of a test have one kubeconfig, which is written before each of them starts.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        static WRITES: AtomicUsize = AtomicUsize::new(0);
        let path = self.path.join(name);
        let unfinished = self
            .path
            .join(format!("{name}.{}", WRITES.fetch_add(1, Ordering::Relaxed)));
        std::fs::write(&unfinished, content).expect("the temporary folder can be written");
        std::fs::rename(&unfinished, &path).expect("the temporary folder can be written");
        path
    }

    /// Leaves the folder in place for a person to look into, and says where it is.
    pub fn keep(&mut self) {
        if !self.kept
            && let Some(leash) = &mut self.leash
        {
            self.kept = leash.write_all(b"keep\n").is_ok();
            complain(&format!("logs are kept in {}", self.path.display()));
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.keep();
        }
        self.leash = None;
        // Nothing depends on how the janitor ended; it must only not be left behind as a zombie.
        let _ = self.janitor.wait();
    }
}

/// Writes a line to where the test runner shows it when the test has failed.
#[expect(clippy::print_stderr, reason = "this is how a test tells why it failed")]
pub fn complain(line: &str) {
    eprintln!("{line}");
}

/// The last `lines` lines of a log file, with its name above them.
pub fn log_tail(path: &Path, lines: usize) -> String {
    let text = String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
    let all: Vec<&str> = text.lines().collect();
    let tail = all[all.len().saturating_sub(lines)..].join("\n");
    format!("--- the end of {} ---\n{tail}\n", path.display())
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
