//! Stories of what stays in mind: objects that nothing selects any more, and copies that nobody seems to want.

use std::time::Duration;

use edge_syncer::side::Side;
use serde_json::{Value, json};

use crate::changes::{config, is_at_edge};
use crate::check;
use crate::records::made_by_another_syncer;
use crate::sim::ledger::RECORD;
use crate::sim::request::Verb;
use crate::sim::run::{Run, tell};
use crate::sim::store::Key;
use crate::sim::weather::Trouble;
use crate::stories::{downsync, one_copy, seconds, settings, unlabel};

fn recorded_types(run: &Run) -> Value {
    let store = run.world.edge.store.borrow();
    let record = store.get(&Key::new("configmaps", "default", RECORD));
    record.expect("it is kept")["data"]["types"].clone()
}

#[test]
fn what_is_deselected_before_it_could_be_copied_leaves_nothing_to_do() {
    check(&tell(&[], false, async |run| {
        downsync(run);
        run.start();
        seconds(20).await;
        run.strike(Side::Edge, Trouble::RefusedFor(Verb::Apply), Duration::from_secs(30));
        let hub = &run.world.hub;
        hub.create("people", "configmaps", "shop", "a", json!({"data": {"x": "1"}}));
        seconds(20).await;
        run.world.hub.delete(&config());
        seconds(600).await;
        assert!(!is_at_edge(run, &settings("a")), "it was never copied");
        let types = recorded_types(run);
        let types = types.as_str().unwrap_or_default();
        assert!(!types.contains("configmaps"), "there is no copy of it: {types}");
    }));
}

#[test]
fn a_copy_that_loses_its_label_before_its_origins_could_be_listed_goes_all_the_same() {
    check(&tell(&[], false, async |run| {
        let key = one_copy(run).await;
        run.kill().await;
        run.world.hub.delete(&key);
        run.strike(Side::Hub, Trouble::Unavailable("configmaps"), Duration::from_secs(60));
        run.start();
        seconds(20).await;
        unlabel(run, &key);
        seconds(120).await;
        assert!(!is_at_edge(run, &key), "it has no origin");
    }));
}

#[test]
fn a_deselected_copy_that_loses_its_label_before_its_origins_could_be_listed_goes_with_its_origin() {
    check(&tell(&[], false, async |run| {
        let key = one_copy(run).await;
        run.kill().await;
        run.world.hub.delete(&config());
        run.strike(Side::Hub, Trouble::Unavailable("configmaps"), Duration::from_secs(60));
        run.start();
        seconds(20).await;
        unlabel(run, &key);
        seconds(120).await;
        assert!(is_at_edge(run, &key), "its origin is there");
        run.world.hub.delete(&key);
        seconds(60).await;
        assert!(!is_at_edge(run, &key), "its origin has gone");
    }));
}

#[test]
fn a_copy_of_nothing_that_loses_its_label_before_its_origin_could_be_asked_for_goes_all_the_same() {
    check(&tell(&[], false, async |run| {
        one_copy(run).await;
        run.down(Side::Hub, false, Duration::from_secs(60));
        seconds(10).await;
        let other = settings("other");
        made_by_another_syncer(run, &other);
        seconds(10).await;
        unlabel(run, &other);
        seconds(120).await;
        assert!(!is_at_edge(run, &other), "it has no origin");
    }));
}
