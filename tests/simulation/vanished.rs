//! Copies that outlive their type: what is said of them, and what becomes of them (issue 14).

use std::rc::Rc;
use std::time::Duration;

use edge_syncer::side::Side;
use serde_json::{Value, json};

use crate::changes::{define, downsync_type, is_at_edge};
use crate::check;
use crate::sim::run::{Run, tell};
use crate::sim::store::Key;
use crate::sim::types::DEFINITIONS;
use crate::sim::weather::Trouble;
use crate::sim::world::CONFIGS;
use crate::stories::seconds;

const GEARS: &str = "gears.own.example.org";
/// As rarely as in other runs; holds are reported at once.
const HEARTBEAT: Duration = Duration::from_secs(1800);
const GONE: &str = "is missing at the hub as it was; its copies are preserved";

fn gear(name: &str) -> Key {
    Key::new(GEARS, "shop", name)
}

/// Copies `a` and `b` of a type that the hub then takes away.
async fn copies_without_a_type(run: &mut Run) {
    run.heartbeat = Some(HEARTBEAT);
    run.ledger.borrow_mut().heartbeat = true;
    let hub = Rc::clone(&run.world.hub);
    downsync_type(run, "gears", "own.example.org", "gears", "v1");
    for side in [Side::Hub, Side::Edge] {
        define(run.server(side), "gears", "own.example.org", &["v1"], true);
    }
    seconds(10).await;
    for name in ["a", "b"] {
        hub.create("people", GEARS, "shop", name, json!({"spec": {"x": "1"}}));
    }
    run.start();
    seconds(60).await;
    assert!(is_at_edge(run, &gear("a")), "it has arrived");
    hub.delete(&Key::new(DEFINITIONS, "", GEARS));
    seconds(120).await;
}

fn config() -> Key {
    Key::new(CONFIGS, "", "gears")
}

/// What the config says of what is held; empty if nothing is.
fn held(run: &Run) -> String {
    let store = run.world.hub.store.borrow();
    let conditions = store.get(&config()).expect("it is there")["status"]["conditions"].clone();
    let mut conditions = conditions.as_array().into_iter().flatten();
    let held = conditions.find(|one| one["type"] == "DeletesHeld" && one["status"] == "True");
    held.map(|held| held["message"].as_str().unwrap_or_default().to_owned())
        .unwrap_or_default()
}

fn says_that_they_stay(run: &Run, objects: &str) {
    let message = held(run);
    assert!(message.contains(GONE) && message.contains(objects), "{message:?}");
}

#[test]
fn that_copies_outlive_their_type_is_said_whatever_restarts_until_none_is_left() {
    check(&tell(&[], false, async |run| {
        copies_without_a_type(run).await;
        says_that_they_stay(run, "2 objects are held");
        run.kill().await;
        run.start();
        seconds(180).await;
        says_that_they_stay(run, "2 objects are held");
        // The servers restart, and neither proves anything.
        run.down(Side::Hub, false, Duration::from_secs(60));
        seconds(180).await;
        run.strike(Side::Edge, Trouble::Unavailable("gears"), Duration::from_secs(60));
        seconds(180).await;
        says_that_they_stay(run, "2 objects are held");
        run.world.edge.delete(&gear("a"));
        seconds(2 * 3600).await;
        says_that_they_stay(run, "1 object is held");
        run.world.edge.delete(&gear("b"));
        seconds(3 * 3600).await;
        assert_eq!(held(run), "", "there is none");
        define(run.server(Side::Hub), "gears", "own.example.org", &["v1"], true);
    }));
}

#[test]
fn copies_that_outlive_their_type_go_once_that_is_confirmed_or_nothing_selects_it() {
    for is_confirmed in [true, false] {
        check(&tell(&[], false, async |run| {
            copies_without_a_type(run).await;
            let hub = Rc::clone(&run.world.hub);
            let token = held(run).rsplit('=').next().unwrap_or_default().to_owned();
            let change = if is_confirmed {
                json!({"metadata": {"annotations": {"edge.kubestellar.io/confirm-deletes": token}}})
            } else {
                json!({"spec": {"namespacedObjects": []}})
            };
            run.ledger.borrow_mut().taken.forget();
            hub.patch("people", &config(), &change);
            seconds(600).await;
            for name in ["a", "b"] {
                assert!(!is_at_edge(run, &gear(name)), "nothing keeps it: {is_confirmed}");
            }
            assert_eq!(held(run), "", "nothing is held");
            // What comes later is synced as ever, and held as ever.
            hub.patch(
                "people",
                &config(),
                &json!({"spec": {"namespacedObjects": selection()}}),
            );
            define(&hub, "gears", "own.example.org", &["v1"], true);
            seconds(60).await;
            hub.create("people", GEARS, "shop", "a", json!({"spec": {"x": "2"}}));
            seconds(600).await;
            assert!(is_at_edge(run, &gear("a")), "it is back: {is_confirmed}");
            hub.delete(&Key::new(DEFINITIONS, "", GEARS));
            seconds(120).await;
            says_that_they_stay(run, "1 object is held");
            define(&hub, "gears", "own.example.org", &["v1"], true);
            hub.create("people", GEARS, "shop", "a", json!({"spec": {"x": "2"}}));
        }));
    }
}

fn selection() -> Value {
    json!([{"group": "own.example.org", "resource": "gears", "apiVersion": "v1",
        "objectsByNamespace": [{"namespace": "shop", "names": ["*"]}]}])
}

/// A hub that has just started shows the types of CRDs late.
#[test]
fn a_type_that_the_hub_does_not_show_for_a_while_is_not_said_to_be_gone() {
    check(&tell(&[], false, async |run| {
        run.heartbeat = Some(HEARTBEAT);
        run.ledger.borrow_mut().heartbeat = true;
        let hub = Rc::clone(&run.world.hub);
        downsync_type(run, "gears", "own.example.org", "gears", "v1");
        for side in [Side::Hub, Side::Edge] {
            define(run.server(side), "gears", "own.example.org", &["v1"], true);
        }
        seconds(10).await;
        hub.create("people", GEARS, "shop", "a", json!({"spec": {"x": "1"}}));
        run.start();
        seconds(60).await;
        hub.hide(GEARS);
        for _ in 0..60 {
            seconds(10).await;
            assert_eq!(held(run), "");
        }
        hub.show_all();
    }));
}
