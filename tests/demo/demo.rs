//! Stories of edge-syncer for people who see it for the first time, played with real servers; `scripts/demo` runs them.
//!
//! Each step of a story is one method of [`Story`] or [`PolicyStory`] and is called from [`tell`] or
//! [`tell_of_policy`]. A step that fails
//! panics with one line, as the tests do; the harness then prints the syncer's log. However the demo ends, its processes
//! end with it.

#![expect(clippy::print_stdout, reason = "a demo tells its story on stdout")]
#![expect(clippy::print_stderr, reason = "and says on stderr why it could not go on")]

mod policy_story;
mod print;
mod story;
#[path = "../support/mod.rs"]
mod support;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::process::ExitCode;

use policy_story::PolicyStory;
use story::Story;

/// What a shell says of a program that was ended with Ctrl-C.
const INTERRUPTED: u8 = 130;

/// A story that has been run.
enum Reported {
    /// Objects go from hub to edge, and some back.
    Objects(Story),
    /// A policy engine at the edge reports to the hub.
    Policy(PolicyStory),
}

fn main() -> ExitCode {
    let (mut policy, mut keep) = (false, false);
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "policy" => policy = true,
            "--keep" => keep = true,
            _ => {
                eprintln!("demo: unknown argument {argument}");
                return ExitCode::from(2);
            }
        }
    }
    set_hook(Box::new(|panic| eprintln!("\ndemo: {}", message(panic.payload()))));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be started");
    // The panic has been reported by the hook.
    catch_unwind(AssertUnwindSafe(|| runtime.block_on(run(policy, keep)))).unwrap_or(ExitCode::FAILURE)
}

/// Plays a story until its end or until Ctrl-C; either way, all that it has started ends here.
async fn run(policy: bool, keep: bool) -> ExitCode {
    let mut interrupt = std::pin::pin!(tokio::signal::ctrl_c());
    let story = tokio::select! {
        // First: Ctrl-C in a terminal ends the servers too, which the story must not take for a failure.
        biased;
        _ = &mut interrupt => {
            println!("\nInterrupted; everything has been stopped and removed.");
            return ExitCode::from(INTERRUPTED);
        }
        story = async { if policy { tell_of_policy().await } else { tell().await } } => story,
    };
    if keep {
        // Removed when it is dropped.
        let _folder = match &story {
            Reported::Objects(story) => story.explain_how_to_play(),
            Reported::Policy(story) => story.explain_how_to_play().await,
        };
        // An error means that there are no signals to wait for, and so no reason to stay.
        let _ = interrupt.await;
        println!();
    }
    match story {
        Reported::Objects(story) => story.end().await,
        Reported::Policy(story) => story.end().await,
    }
    ExitCode::SUCCESS
}

/// The story of objects that go from hub to edge, step by step.
async fn tell() -> Reported {
    println!("edge-syncer: what you create at a hub appears at an edge cluster, stays as the hub wants it,");
    println!(
        "and tells the hub how it is. Times count from a server's answer to a write until a watch reports its effect;"
    );
    println!("\"at once\" means that the effect came before the answer.");
    let mut story = Story::begin().await;
    story.create().await;
    story.update().await;
    story.repair_edit().await;
    story.repair_delete().await;
    story.measure_latency().await;
    story.return_status().await;
    story.send_up().await;
    story.survive_outage().await;
    story.delete().await;
    story.leave_others_alone().await;
    story.measure_memory();
    Reported::Objects(story)
}

/// The story of a policy engine, step by step.
async fn tell_of_policy() -> Reported {
    println!(
        "edge-syncer: a policy engine comes from the hub, judges what is at an edge cluster, and the hub gets to know."
    );
    println!("Times at the edge count from the change that they follow; those at the hub from the one at the edge.");
    let mut story = PolicyStory::begin().await;
    story.judge().await;
    story.corrected().await;
    story.revert().await;
    story.measure_memory();
    Reported::Policy(story)
}

fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied())
        .unwrap_or("failed without a message")
}
