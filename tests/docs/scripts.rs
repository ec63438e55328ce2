//! The two commands of the README, for a machine that has nothing but compilers.

use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout};
use tokio::time::timeout;

use crate::pages::{Names, Page, plain, root, same};
use crate::support::Syncer;
use crate::support::story::SOON;

/// How long the demo may take until its story is over, with compiling it.
const STORY: Duration = Duration::from_secs(300);

/// `scripts/demo --keep`. Dropping it ends it, and so all that it has started.
pub(crate) struct Demo {
    script: Child,
    output: Lines<BufReader<ChildStdout>>,
}

impl Demo {
    /// Starts it, with the binary under test.
    pub(crate) fn start() -> Self {
        let mut command = tokio::process::Command::new(root().join("scripts/demo"));
        // What cargo and scripts/test set for test programs would have the script's cargo compile all of it again.
        let of_tests = |name: &String| {
            let prefixes = [
                "CARGO_PKG_",
                "CARGO_MANIFEST_",
                "CARGO_BIN_",
                "CARGO_CRATE_",
                "RUSTC_BOOTSTRAP",
            ];
            prefixes.iter().any(|prefix| name.starts_with(prefix))
        };
        for (name, _) in std::env::vars().filter(|(name, _)| of_tests(name)) {
            command.env_remove(name);
        }
        let mut script = command
            .arg("--keep")
            .env("EDGE_SYNCER_BIN", Syncer::program())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the script can be run");
        let output = BufReader::new(script.stdout.take().expect("it is piped")).lines();
        Self { script, output }
    }

    /// The first line of those to come that begins so.
    pub(crate) async fn wait_for(&mut self, beginning: &str) -> String {
        let mut seen = Vec::new();
        let found = timeout(STORY, async {
            while let Some(line) = self.output.next_line().await.expect("it prints UTF-8") {
                if line.starts_with(beginning) {
                    return Some(line);
                }
                seen.push(line);
            }
            None
        });
        let found = found.await.unwrap_or_default();
        found.unwrap_or_else(|| panic!("the demo has not printed {beginning:?}: {seen:#?}"))
    }

    /// Ends it with Ctrl-C.
    pub(crate) async fn interrupt(mut self) {
        // The script has become cargo, and that the demo.
        let id = self.script.id().expect("it runs").to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status();
        assert!(sent.is_ok_and(|status| status.success()), "the demo has ended before");
        self.wait_for("          the servers have been stopped").await;
        let status = timeout(SOON, self.script.wait()).await.expect("it ends soon");
        assert_eq!(status.expect("it can be waited for").code(), Some(0));
    }
}

/// What the README says of its commands is in their help, word for word.
#[test]
fn the_readme_says_of_its_two_commands_what_their_help_says() {
    let page = Page::open("README.md");
    let rows = page.rows("");
    let rows = rows.iter().filter(|row| row.heading == "Try it");
    let mut named = Names::new();
    for row in rows {
        let command = plain(&row.cells[0]);
        let output = Command::new(root().join(&command)).arg("--help").output();
        let output = output.expect("the script can be run");
        assert!(output.status.success(), "{command} --help");
        let help = String::from_utf8_lossy(&output.stdout);
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for (cell, heading) in row.cells[1..].iter().zip(["Needs: ", "Takes: ", "Leaves behind: "]) {
            let said = format!("{heading}{}.", plain(cell));
            assert!(help.contains(&said), "{command} --help does not say: {said}");
        }
        named.insert(command);
    }
    same(
        "commands",
        &named,
        &Names::from(["scripts/demo", "scripts/test"].map(str::to_owned)),
    );
    let try_it = page.blocks().into_iter().find(|block| block.language == "sh");
    let commands = try_it.expect("the README has commands").lines;
    assert_eq!(
        commands.len(),
        2,
        "the first block has both and no others: {commands:#?}"
    );
    for (line, command) in commands.iter().zip(&named) {
        assert!(line.starts_with(&format!("{command} ")), "{line}");
    }
    for option in ["scripts/demo --keep", "scripts/test --quick"] {
        assert!(page.text.contains(option), "{option}");
    }
}
