//! A shell as a reader has it, in a folder with what a fresh clone has and the kubeconfigs of two clusters.

use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;

use crate::support::Server;
use crate::support::desk::lay_out;
use crate::support::process::{Folder, complain, log_tail};

/// How long a command may take. Those that wait give up after a minute by themselves.
const DEADLINE: Duration = Duration::from_secs(180);

/// Stands before the exit code of a command. No command prints it.
const END: &str = "--- the end of a command of the docs:";

/// What the shell begins with. When it ends, and it does with the test process since its input ends then, all that it has
/// started in the background ends too.
const PROLOGUE: &str = "exec 2>&1\ntrap 'kill -KILL $(jobs -p) 2>/dev/null' EXIT\n";

/// A shell. Dropping it ends all that it has started; when the test is failing, its folder is kept and logs are printed.
pub(crate) struct Shell {
    bash: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    folder: Folder,
}

/// What a command has printed, and its exit code.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) lines: Vec<String>,
    pub(crate) code: i32,
}

impl Shell {
    /// Starts it, with kubeconfigs of a hub and an edge.
    pub(crate) async fn start(hub: &Server, edge: &Server) -> Self {
        let folder = Folder::create("docs");
        lay_out(&folder, hub, edge);
        Self::open(folder).await
    }

    /// Starts it in a folder that is empty.
    pub(crate) async fn bare() -> Self {
        Self::open(Folder::create("docs")).await
    }

    async fn open(folder: Folder) -> Self {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut bash = tokio::process::Command::new("bash")
            .args(["--noprofile", "--norc"])
            .env_clear()
            .env("PATH", format!("{}:{path}", folder.path().join("bin").display()))
            .env("HOME", folder.path())
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Of its own, so that it can be ended with all that it has started.
            .process_group(0)
            .spawn()
            .expect("bash exists");
        let input = bash.stdin.take().expect("it is piped");
        let output = BufReader::new(bash.stdout.take().expect("it is piped")).lines();
        let mut shell = Self {
            bash,
            input,
            output,
            folder,
        };
        shell.type_in(PROLOGUE).await;
        shell
    }

    /// What is in a file of its folder.
    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).expect("a command has written it")
    }

    async fn type_in(&mut self, text: &str) {
        let written = self.input.write_all(text.as_bytes()).await;
        written.unwrap_or_else(|error| panic!("the shell has ended: {error}"));
    }

    /// Runs a command to its end.
    pub(crate) async fn run(&mut self, command: &str) -> Answer {
        self.type_in(&format!("{{ {command}\n}} </dev/null; printf '\\n{END} %d\\n' $?\n"))
            .await;
        let answer = timeout(DEADLINE, self.answer()).await;
        answer.unwrap_or_else(|_| panic!("not within {DEADLINE:?}: {command}"))
    }

    async fn answer(&mut self) -> Answer {
        let mut lines = Vec::new();
        loop {
            let line = self.output.next_line().await.expect("it prints UTF-8");
            let line = line.unwrap_or_else(|| panic!("the shell has ended after {lines:#?}"));
            if let Some(code) = line.strip_prefix(END) {
                // Ends the last line, or is an empty one after it.
                if lines.last().is_some_and(String::is_empty) {
                    lines.pop();
                }
                let code = code.trim().parse().expect("an exit code is a number");
                return Answer { lines, code };
            }
            lines.push(line);
        }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        if let Some(group) = self.bash.id() {
            // It has not been waited for, so the number is that of its group.
            let _ = Command::new("kill")
                .args(["-KILL", "--", &format!("-{group}")])
                .status();
        }
        if std::thread::panicking() {
            let files = std::fs::read_dir(self.folder.path()).into_iter().flatten().flatten();
            for path in files.map(|file| file.path()) {
                if path.extension().is_some_and(|extension| extension == "log") {
                    complain(&log_tail(&path, 100));
                }
            }
            self.folder.keep();
        }
    }
}
