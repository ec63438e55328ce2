//! Stories of objects that the edge refuses for a time: a policy, a webhook or a quota says no.

use std::time::Duration;

use edge_syncer::side::Side;
use kube_lite::Rate;
use serde_json::json;
use tokio::time::Instant;

use crate::changes::is_at_edge;
use crate::check;
use crate::sim::run::{Run, tell};
use crate::sim::weather::Trouble;
use crate::stories::{downsync, one_copy, seconds, settings};

fn create(run: &Run, name: &str) {
    let hub = &run.world.hub;
    hub.create("people", "configmaps", "shop", name, json!({"data": {"x": "1"}}));
}

fn is_denied_for(run: &mut Run, time: Duration) {
    run.strike(Side::Edge, Trouble::Denied("denied"), time);
}

#[test]
fn what_was_refused_for_a_time_comes_after_about_that_time() {
    for time in [10, 60, 120, 240] {
        check(&tell(&[], false, async |run| {
            one_copy(run).await;
            is_denied_for(run, Duration::from_secs(time));
            create(run, "denied");
            seconds(time).await;
            assert!(!is_at_edge(run, &settings("denied")), "it is refused");
            // The last wait began before the end, and is at most twice as long as all waits before it, by jitter.
            seconds(2 * time).await;
            assert!(is_at_edge(run, &settings("denied")), "{time} s: it comes");
        }));
    }
}

#[test]
fn what_is_refused_for_ten_minutes_is_asked_for_fifteen_times_at_most() {
    check(&tell(&[], false, async |run| {
        one_copy(run).await;
        is_denied_for(run, Duration::from_secs(600));
        create(run, "denied");
        seconds(600).await;
        // A try asks the hub for the object, and the edge to take it; the first one has it at hand.
        let requests = run.ledger.borrow().about[&settings("denied")];
        assert!((2 * 8..2 * 15).contains(&requests), "{requests} requests");
    }));
}

#[test]
fn many_refused_objects_keep_no_good_one_waiting() {
    check(&tell(&[], false, async |run| {
        run.queue_capacity = 1024;
        run.rate = Some(Rate { qps: 30.0, burst: 20 });
        run.ledger.borrow_mut().most_requests = 1_000_000;
        is_denied_for(run, Duration::from_secs(1200));
        downsync(run);
        for number in 0..500 {
            create(run, &format!("denied-{number}"));
        }
        run.start();
        // All have been tried once and more.
        seconds(40).await;
        let mut longest = Duration::ZERO;
        for number in 0..20 {
            create(run, &format!("good-{number}"));
            let begin = Instant::now();
            while !is_at_edge(run, &settings(&format!("good-{number}"))) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            longest = longest.max(begin.elapsed());
            seconds(5).await;
        }
        // 500 tries take 17 s at this rate.
        assert!(longest < Duration::from_secs(2), "{longest:?}");
    }));
}
