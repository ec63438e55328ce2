//! Signals, in a process of its own: this test starts itself again as the program that is to be stopped.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use driver::shutdown::Shutdown;

const CHILD: &str = "EDGE_SYNCER_TEST_CHILD";

/// Says when it listens and when it was asked to stop, and then does not stop.
async fn stubborn() {
    let shutdown = Shutdown::listen().expect("signals can be taken over");
    say("listens");
    shutdown.requested().await;
    // A second look gives the same answer.
    shutdown.clone().requested().await;
    say("asked");
    std::future::pending::<()>().await;
}

fn say(word: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{word}").expect("the parent reads");
    out.flush().expect("the parent reads");
}

#[test]
fn second_signal_stops_at_once_with_code_1() {
    check(
        "second_signal_stops_at_once_with_code_1",
        &[("listens", "-TERM"), ("asked", "-INT")],
    );
}

/// Had it ended or asked to stop, the first SIGTERM would not be answered or be the second.
#[test]
fn a_hangup_ends_nobody_and_asks_nobody_to_stop() {
    let story = [("listens", "-HUP"), ("", "-HUP"), ("", "-TERM"), ("asked", "-INT")];
    check("a_hangup_ends_nobody_and_asks_nobody_to_stop", &story);
}

/// Starts `test` as the program; after each word that it says, it gets a signal. In the end it aborts.
fn check(test: &str, story: &[(&str, &str)]) {
    if std::env::var_os(CHILD).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime can be made").block_on(stubborn());
        return;
    }
    let mut child = Command::new(std::env::current_exe().expect("this test has a path"))
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test can start itself");
    let id = child.id().to_string();
    let stdout = child.stdout.take().expect("stdout is a pipe");
    let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
    for (word, signal) in story {
        assert!(
            word.is_empty() || lines.any(|line| line == *word),
            "the child ends before it says {word}"
        );
        let kill = Command::new("kill").args([*signal, &id]).status();
        assert!(kill.expect("kill can be started").success());
    }
    assert_eq!(child.wait().expect("the child ends").code(), Some(1));
}
