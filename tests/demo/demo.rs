//! The story of edge-syncer for people who see it for the first time, played with real servers; `scripts/demo` runs it.
//!
//! Each step of the story is one method of [`Story`] and is called from [`tell`]. A step that fails panics with one
//! line, as the tests do; the harness then prints the syncer's log. However the demo ends, its processes end with it.

#![expect(clippy::print_stdout, reason = "a demo tells its story on stdout")]
#![expect(clippy::print_stderr, reason = "and says on stderr why it could not go on")]

mod story;
#[path = "../support/mod.rs"]
mod support;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::process::ExitCode;

use story::Story;

/// What a shell says of a program that was ended with Ctrl-C.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let mut keep = false;
    for argument in std::env::args().skip(1) {
        if argument != "--keep" {
            eprintln!("demo: unknown argument {argument}");
            return ExitCode::from(2);
        }
        keep = true;
    }
    set_hook(Box::new(|panic| eprintln!("\ndemo: {}", message(panic.payload()))));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be started");
    // The panic has been reported by the hook.
    catch_unwind(AssertUnwindSafe(|| runtime.block_on(run(keep)))).unwrap_or(ExitCode::FAILURE)
}

/// Plays the story until its end or until Ctrl-C; either way, all that it has started ends here.
async fn run(keep: bool) -> ExitCode {
    let mut interrupt = std::pin::pin!(tokio::signal::ctrl_c());
    let story = tokio::select! {
        // First: Ctrl-C in a terminal ends the servers too, which the story must not take for a failure.
        biased;
        _ = &mut interrupt => {
            println!("\nInterrupted; everything has been stopped and removed.");
            return ExitCode::from(INTERRUPTED);
        }
        story = tell() => story,
    };
    if keep {
        story.explain_how_to_play();
        // An error means that there are no signals to wait for, and so no reason to stay.
        let _ = interrupt.await;
        println!();
    }
    story.end().await;
    ExitCode::SUCCESS
}

/// The whole story, step by step.
async fn tell() -> Story {
    println!("edge-syncer: what you create at a hub appears at an edge cluster, and stays as the hub wants it.");
    println!("Times count from a server's answer to a write until a watch at the edge tells of its effect;");
    println!("\"at once\" means that the effect came before the answer.");
    let mut story = Story::begin().await;
    story.create().await;
    story.update().await;
    story.repair_edit().await;
    story.repair_delete().await;
    story.measure_latency().await;
    story.survive_outage().await;
    story.delete().await;
    story.leave_others_alone().await;
    story.measure_memory();
    story
}

fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("failed without a message")
}
