//! How the stories are printed: a heading for each step, and below it a line for each thing that happens.

use std::time::Duration;

use crate::support::desk::lay_out;
use crate::support::process::Folder;
use crate::support::{Pair, Syncer};

/// The name of a step.
pub(crate) fn heading(text: &str) {
    println!("\n{text}");
}

/// Something that `who` has done or has.
pub(crate) fn line(who: &str, what: &str) {
    println!("  {who:<8}{what}");
}

/// As [`line`], with a figure at its end; all figures are below each other.
pub(crate) fn line_with(who: &str, what: &str, figure: &str) {
    let line = format!("  {who:<8}{what:<58}{figure:>11}");
    println!("{}", line.trim_end());
}

/// As [`line`], with how long it took.
pub(crate) fn timed_line(who: &str, what: &str, time: Duration) {
    let millis = time.as_secs_f64() * 1000.0;
    if time.is_zero() {
        line_with(who, what, "at once");
    } else if millis < 1000.0 {
        line_with(who, what, &format!("{millis:.1} ms"));
    } else {
        // The space puts the decimal points below each other.
        line_with(who, what, &format!("{:.1} s ", millis / 1000.0));
    }
}

/// A size for people.
pub(crate) fn megabytes(bytes: u64) -> String {
    let tenths = (bytes + 50_000) / 100_000;
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

/// How to play with what keeps running: says how to get to a folder with all that it takes, and which commands there are.
pub(crate) fn invite(text: &str, pair: &Pair, commands: &[(&str, String)]) -> Folder {
    let folder = Folder::create("demo");
    lay_out(&folder, &pair.hub, &pair.edge);
    heading(text);
    println!("  cd {}; PATH=$PWD/bin:$PATH", folder.path().display());
    for (about, lines) in commands {
        println!("\n  # {about}:");
        for line in lines.lines() {
            println!("  {line}");
        }
    }
    println!("\nCtrl-C here stops and removes everything.");
    folder
}

/// The last step of each story: the syncer is asked to end.
pub(crate) async fn stop(syncer: &mut Syncer) {
    heading("Stop");
    let (status, took) = syncer.terminate().await;
    assert!(
        status.success(),
        "the syncer ended with {status} after it was asked to stop"
    );
    timed_line("syncer", "has ended, as it was asked to", took);
}
