//! Signals, in a process of its own: this test starts itself again as the program that is to be stopped.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use driver::logger::{self, Targets};
use driver::shutdown::Shutdown;
use kube_lite::logging::LogFormat;
use log::LevelFilter;

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

/// Debug lines are written for ten minutes: here of a clock that goes on as soon as nobody has anything to do.
#[test]
fn a_hangup_shows_debug_lines_for_ten_minutes_and_says_so() {
    const TEST: &str = "a_hangup_shows_debug_lines_for_ten_minutes_and_says_so";
    const TARGETS: &Targets = &Targets {
        program: "shutdown",
        crates: &[("driver", "shutdown")],
    };
    if std::env::var_os(CHILD).is_some() {
        logger::init(TARGETS, None, LevelFilter::Info, LogFormat::Text);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build();
        runtime.expect("a runtime can be made").block_on(async {
            let _shutdown = Shutdown::listen().expect("signals can be taken over");
            say("listens");
            loop {
                tokio::time::sleep(Duration::from_secs(60)).await;
                log::debug!("a minute");
                log::trace!("too much");
            }
        });
        return;
    }
    let mut child = as_program(TEST).stderr(Stdio::piped()).spawn().expect("it starts");
    let stdout = BufReader::new(child.stdout.take().expect("stdout is a pipe"));
    let mut said = stdout.lines().map_while(Result::ok);
    assert!(said.any(|line| line == "listens"));
    let stderr = BufReader::new(child.stderr.take().expect("stderr is a pipe"));
    let mut lines = stderr.lines().map_while(Result::ok);
    // The second time shows that nothing was written meanwhile.
    for _ in 0..2 {
        let kill = Command::new("kill").args(["-HUP", &child.id().to_string()]).status();
        assert!(kill.expect("kill can be started").success());
        let first = lines.next().expect("it goes on");
        assert!(first.contains(" INFO reason=LogLevelRaised "), "{first}");
        let is_debug = |line: &String| line.contains(" DEBUG ");
        let mut minutes = 0;
        let last = loop {
            let line = lines.next().expect("it goes on");
            if !is_debug(&line) {
                break line;
            }
            minutes += 1;
        };
        assert!(last.contains(" INFO reason=LogLevelRestored "), "{last}");
        assert!((9..=11).contains(&minutes), "{minutes} minutes");
    }
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

/// This file as the program that has one test.
fn as_program(test: &str) -> Command {
    let mut program = Command::new(std::env::current_exe().expect("this test has a path"));
    program
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped());
    program
}

/// Starts `test` as the program; after each word that it says, it gets a signal. In the end it aborts.
fn check(test: &str, story: &[(&str, &str)]) {
    if std::env::var_os(CHILD).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime can be made").block_on(stubborn());
        return;
    }
    let mut child = as_program(test).spawn().expect("this test can start itself");
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
