//! A controller at the edge that changes a copy back each time, and says so in its status.

use std::rc::Rc;
use std::time::Duration;

use edge_syncer::side::Side;
use serde_json::json;
use tokio::time::sleep;

use super::flows::DOWNSYNC;
use super::run::Run;
use super::store::Key;

/// What no hub wants.
const THEIRS: u32 = 7777;
/// Requests about the copy, and about its origin, whatever the time: two syncers, each with a few corrections at once and
/// what comes of a restart.
const AT_ONCE: u64 = 80;
/// What goes before a request, for a second time, if a fault keeps that from the server or its answer from the syncer.
const AGAIN: u64 = 3;

/// A copy with a status is fought over for some minutes. The syncer may write it ever less often.
pub async fn fight(run: &mut Run) {
    let edge = Rc::clone(run.server(Side::Edge));
    let copies: Vec<Key> = {
        let store = edge.store.borrow();
        let has_status = |key: &Key| ["deployments.apps", "gauges.example.org"].contains(&&*key.resource);
        let copies = store
            .all()
            .filter(|(key, object)| has_status(key) && DOWNSYNC.owns(object));
        copies.map(|(key, _)| key.clone()).collect()
    };
    if copies.is_empty() {
        return;
    }
    let key = copies[run.dice.usize(0..copies.len())].clone();
    run.note(&format!("a controller fights for {key}"));
    let asked = |run: &Run| {
        let ledger = run.ledger.borrow();
        let [about, spoiled] = [&ledger.about, &ledger.spoiled].map(|of| of.get(&key).copied().unwrap_or_default());
        (about, spoiled)
    };
    let (before, seconds) = (asked(run), run.dice.u64(120..300));
    for round in 0..2 * seconds {
        let is_theirs = |copy: &Rc<serde_json::Value>| copy["spec"]["replicas"] == THEIRS;
        let copy = edge.store.borrow().get(&key).cloned();
        if copy.is_some_and(|copy| DOWNSYNC.owns(&copy) && !is_theirs(&copy)) {
            edge.patch("controller", &key, &json!({"spec": {"replicas": THEIRS}}));
            edge.patch_status("controller", &key, &json!({"status": {"observed": round}}));
        }
        sleep(Duration::from_millis(500)).await;
    }
    let after = asked(run);
    let (asked, spoiled) = (after.0 - before.0, after.1 - before.1);
    if asked > AT_ONCE + seconds / 2 + spoiled * AGAIN {
        let what = format!("{asked} requests about {key} in {seconds} s, for which a controller fights");
        run.ledger.borrow_mut().break_promise(what, &[&key]);
    }
}
