//! what deletes others too when it goes is not deleted for as long as it would take what is to stay (issue 13).

use std::rc::Rc;
use std::time::Duration;

use edge_syncer::side::Side;
use serde_json::{Value, json};

use crate::changes::{define, downsync_type, is_at_edge};
use crate::check;
use crate::sim::run::tell;
use crate::sim::store::Key;
use crate::sim::types::DEFINITIONS;
use crate::sim::weather::Trouble;
use crate::sim::world::{CONFIGS, OVERWRITE};
use crate::stories::{downsync, one_copy, seconds, settings, unlabel};

/// A type of its own, which is also the name of what defines it.
const GEARS: &str = "gears.own.example.org";

/// The entries of a config that select what defines it.
fn gears_definition() -> Value {
    json!([{"group": "apiextensions.k8s.io", "resource": "customresourcedefinitions", "apiVersion": "v1",
        "objects": [GEARS]}])
}

fn shop() -> Key {
    Key::new("namespaces", "", "shop")
}

#[test]
fn a_namespace_stays_for_an_object_of_the_edge_and_goes_after_it() {
    check(&tell(&[], false, async |run| {
        let copy = one_copy(run).await;
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        let own = settings("bystander");
        edge.create("people", &own.resource, "shop", &own.name, json!({"data": {"x": "1"}}));
        hub.delete(&shop());
        seconds(120).await;
        assert!(is_at_edge(run, &own) && is_at_edge(run, &shop()), "it stays");
        assert!(!is_at_edge(run, &copy), "a copy goes by itself");
        edge.delete(&own);
        seconds(600).await;
        assert!(!is_at_edge(run, &shop()), "nothing needs it any more");
    }));
}

#[test]
fn a_namespace_stays_for_a_copy_that_is_left_to_the_edge() {
    check(&tell(&[], false, async |run| {
        let copy = one_copy(run).await;
        let hub = Rc::clone(&run.world.hub);
        let create_only = json!({"metadata": {"annotations": {OVERWRITE: "false"}}});
        hub.patch("people", &copy, &create_only);
        seconds(20).await;
        hub.delete(&shop());
        seconds(120).await;
        assert!(is_at_edge(run, &copy) && is_at_edge(run, &shop()), "they stay");
    }));
}

#[test]
fn a_crd_that_is_selected_itself_stays_for_the_objects_of_its_type() {
    check(&tell(&[], false, async |run| {
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        downsync(run);
        let spec = json!({
            "namespacedObjects": [{"group": "own.example.org", "resource": "gears", "apiVersion": "v1",
                "objectsByNamespace": [{"namespace": "shop", "names": ["*"]}]}],
            "clusterScope": gears_definition()});
        hub.create("people", CONFIGS, "", "gears", json!({"spec": spec}));
        define(&hub, "gears", "own.example.org", &["v1"], true);
        seconds(10).await;
        hub.create("people", GEARS, "shop", "a", json!({"spec": {"x": "1"}}));
        run.start();
        seconds(60).await;
        let copy = Key::new(GEARS, "shop", "a");
        assert!(is_at_edge(run, &copy), "it has arrived");
        edge.create("people", GEARS, "default", "own", json!({"spec": {"x": "1"}}));
        let definition = Key::new(DEFINITIONS, "", GEARS);
        hub.delete(&definition);
        seconds(300).await;
        for key in [definition, copy, Key::new(GEARS, "default", "own")] {
            let store = edge.store.borrow();
            let object = store.get(&key).expect("it stays");
            assert!(object["metadata"]["deletionTimestamp"].is_null(), "{key} is going");
        }
    }));
}

/// A server that has just started shows the types of CRDs late.
#[test]
fn what_deletes_too_objects_of_a_type_that_is_not_shown_stays() {
    check(&tell(&[], false, async |run| {
        one_copy(run).await;
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        define(&edge, "gears", "own.example.org", &["v1"], true);
        seconds(10).await;
        edge.create("people", GEARS, "shop", "own", json!({"spec": {"x": "1"}}));
        edge.hide(GEARS);
        hub.delete(&shop());
        seconds(30).await;
        edge.show_all();
        seconds(600).await;
        assert!(is_at_edge(run, &Key::new(GEARS, "shop", "own")), "nobody deletes it");
        edge.delete(&Key::new(GEARS, "shop", "own"));
        seconds(1200).await;
        assert!(!is_at_edge(run, &shop()), "nothing needs it any more");
    }));
}

#[test]
fn a_crd_stays_for_objects_while_its_type_is_not_shown() {
    check(&tell(&[], false, async |run| {
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        downsync(run);
        let spec = json!({"clusterScope": gears_definition()});
        hub.create("people", CONFIGS, "", "gears", json!({"spec": spec}));
        define(&hub, "gears", "own.example.org", &["v1"], true);
        run.start();
        seconds(60).await;
        edge.create("people", GEARS, "default", "own", json!({"spec": {"x": "1"}}));
        edge.hide(GEARS);
        let definition = Key::new(DEFINITIONS, "", GEARS);
        hub.delete(&definition);
        seconds(60).await;
        edge.show_all();
        seconds(60).await;
        assert!(is_at_edge(run, &definition), "it has an object");
        assert!(is_at_edge(run, &Key::new(GEARS, "default", "own")), "nobody deletes it");
    }));
}

#[test]
fn what_is_held_is_not_said_to_fail() {
    check(&tell(&[], false, async |run| {
        one_copy(run).await;
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        edge.create("people", "configmaps", "shop", "bystander", json!({"data": {"x": "1"}}));
        run.strike(
            Side::Edge,
            Trouble::Forbidden("namespaces".into()),
            Duration::from_secs(60),
        );
        hub.delete(&shop());
        seconds(30).await;
        assert_eq!(run.figure("failing").await, 1, "it may not be read");
        seconds(600).await;
        assert_eq!(
            run.figure("failing").await,
            0,
            "it was read, and waits for what is in it"
        );
    }));
}

/// It cannot be said that all objects of the type are back while one is out of sight.
#[test]
fn a_copy_that_loses_its_label_while_its_type_is_held_goes_all_the_same() {
    check(&tell(&[], false, async |run| {
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        downsync(run);
        downsync_type(run, "gears", "own.example.org", "gears", "v1");
        for side in [&hub, &edge] {
            define(side, "gears", "own.example.org", &["v1"], true);
        }
        seconds(10).await;
        hub.create("people", GEARS, "shop", "a", json!({"spec": {"x": "1"}}));
        run.start();
        seconds(60).await;
        let copy = Key::new(GEARS, "shop", "a");
        assert!(is_at_edge(run, &copy), "it has arrived");
        hub.delete(&Key::new(DEFINITIONS, "", GEARS));
        seconds(30).await;
        define(&hub, "gears", "own.example.org", &["v1"], true);
        seconds(120).await;
        assert!(is_at_edge(run, &copy), "it is held");
        unlabel(run, &copy);
        seconds(1200).await;
        assert!(!is_at_edge(run, &copy), "its origin has not come back");
    }));
}
