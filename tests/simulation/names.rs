//! Stories of conversions: objects that are called otherwise at the edge than at the hub.

use std::rc::Rc;
use std::time::Duration;

use edge_syncer::side::Side;
use serde_json::{Value, json};

use crate::changes::{define, downsync_type, is_at_edge};
use crate::check;
use crate::sim::classes::Class;
use crate::sim::conversions::NAMERS;
use crate::sim::run::{Run, tell};
use crate::sim::store::Key;
use crate::sim::types::DEFINITIONS;
use crate::sim::weather::Trouble;
use crate::sim::world::CONFIGS;
use crate::stories::{downsync, seconds, settings, upsync};

/// These `ConfigMap`s of the hub, first, are called otherwise at the edge.
fn names(run: &Run, config: &str, pairs: &[(&str, &str)]) {
    let map = |name: &str| json!({"kind": "ConfigMap", "version": "v1", "name": name});
    let pair = |(hub, edge): &(&str, &str)| json!({"upstream": map(hub), "downstream": map(edge)});
    let conversions: Vec<Value> = pairs.iter().map(pair).collect();
    run.world.hub.create(
        "people",
        NAMERS,
        "",
        config,
        json!({"spec": {"conversions": conversions}}),
    );
}

/// `ConfigMap`s of these names go down.
fn downsync_these(run: &Run, names: &[&str]) {
    let hub = &run.world.hub;
    hub.create("people", "namespaces", "", "shop", json!({}));
    let these = json!([{"group": "", "resource": "configmaps", "apiVersion": "v1",
        "objectsByNamespace": [{"namespace": "shop", "names": names}]}]);
    hub.create(
        "people",
        CONFIGS,
        "",
        "the-one",
        json!({"spec": {"namespacedObjects": these}}),
    );
}

#[test]
fn an_entry_means_what_a_side_calls_so_and_not_what_that_is_called_by_another_conversion() {
    check(&tell(&[], false, async |run| {
        downsync_these(run, &["a"]);
        names(run, "names", &[("a", "b"), ("b", "c")]);
        let hub = Rc::clone(&run.world.hub);
        for name in ["a", "b"] {
            hub.create("people", "configmaps", "shop", name, json!({"data": {"was": name}}));
        }
        run.start();
        seconds(20).await;
        assert!(is_at_edge(run, &settings("b")), "it is what the hub calls a");
        assert!(!is_at_edge(run, &settings("c")), "nothing selects it");
    }));
}

fn make(run: &Run, name: &str) {
    let body = json!({"data": {"was": name}});
    run.world.hub.create("people", "configmaps", "shop", name, body);
}

/// What the copy of that name was made of.
fn was(run: &Run, name: &str) -> Value {
    let store = run.world.edge.store.borrow();
    let copy = store.get(&settings(name));
    copy.map_or(Value::Null, |copy| copy["data"]["was"].clone())
}

#[test]
fn a_copy_stays_as_long_as_its_origin_though_a_conversion_gives_its_name_to_another() {
    for restarts in [false, true] {
        check(&tell(&[], false, async |run| {
            downsync(run);
            make(run, "b");
            run.start();
            seconds(20).await;
            if restarts {
                run.kill().await;
            }
            names(run, "names", &[("a", "b")]);
            if restarts {
                run.start();
            }
            seconds(60).await;
            assert_eq!(was(run, "b"), "b", "nobody has deleted it at the hub");
            make(run, "a");
            seconds(60).await;
            assert_eq!(was(run, "b"), "b", "the other one waits");
            run.world.hub.delete(&settings("b"));
            seconds(60).await;
            assert_eq!(was(run, "b"), "a", "the place is free");
        }));
    }
}

#[test]
fn a_copy_stays_as_long_as_its_origin_though_a_conversion_gives_its_place_to_an_object_of_another_kind() {
    for restarts in [false, true] {
        check(&tell(&[], false, async |run| {
            let hub = Rc::clone(&run.world.hub);
            let objects = json!([{"namespace": "shop", "names": ["a"]}]);
            let both = json!([
                {"group": "", "resource": "configmaps", "apiVersion": "v1", "objectsByNamespace": objects},
                {"group": "apps", "resource": "deployments", "apiVersion": "v1", "objectsByNamespace": objects},
            ]);
            hub.create("people", "namespaces", "", "shop", json!({}));
            hub.create(
                "people",
                CONFIGS,
                "",
                "the-one",
                json!({"spec": {"namespacedObjects": both}}),
            );
            make(run, "a");
            run.start();
            seconds(20).await;
            if restarts {
                run.kill().await;
            }
            let conversions = json!([{
                "upstream": {"kind": "Deployment", "group": "apps", "version": "v1", "name": "a"},
                "downstream": {"kind": "ConfigMap", "version": "v1", "name": "a"},
            }]);
            hub.create(
                "people",
                NAMERS,
                "",
                "names",
                json!({"spec": {"conversions": conversions}}),
            );
            hub.create(
                "people",
                "deployments.apps",
                "shop",
                "a",
                json!({"data": {"was": "a Deployment"}}),
            );
            if restarts {
                run.start();
            }
            seconds(60).await;
            assert_eq!(was(run, "a"), "a", "nobody has deleted it at the hub");
            hub.delete(&settings("a"));
            seconds(60).await;
            assert_eq!(was(run, "a"), "a Deployment", "the place is free");
        }));
    }
}

#[test]
fn a_copy_at_the_hub_stays_as_long_as_its_origin_though_a_conversion_gives_its_name_to_another() {
    check(&tell(&[], true, async |run| {
        upsync(run, &["field"]);
        let edge = Rc::clone(&run.world.edge);
        edge.create("people", "namespaces", "", "field", json!({}));
        edge.create("people", "configmaps", "field", "b", json!({"data": {"x": "1"}}));
        run.start();
        seconds(30).await;
        names(run, "names", &[("b", "a")]);
        seconds(60).await;
        let key = Key::new("configmaps", "field", "b");
        assert!(run.world.hub.store.borrow().get(&key).is_some(), "its origin is there");
        edge.delete(&key);
    }));
}

/// The syncer has never seen the copy when it hears that its name is another object's.
#[test]
fn a_copy_is_not_deleted_because_something_is_gone_that_it_is_no_copy_of() {
    check(&tell(&[], false, async |run| {
        downsync(run);
        names(run, "names", &[("a", "b")]);
        make(run, "a");
        run.start();
        seconds(20).await;
        assert_eq!(was(run, "b"), "a", "it has arrived");
        let lies = Trouble::EmptyListOf("configmaps");
        run.strike(Side::Edge, lies, Duration::from_secs(60));
        run.world.hub.delete(&Key::new(NAMERS, "", "names"));
        seconds(30).await;
        assert_eq!(was(run, "b"), "a", "its origin is there");
        run.server(Side::Edge).forget_versions();
    }));
}

/// Nothing is left of those that the edge has as another kind, and the others stay as if there were no such kind.
#[test]
fn copies_of_a_withdrawn_type_stay_though_a_conversion_turned_some_of_its_objects() {
    check(&tell(&[], false, async |run| {
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        for (side, plural) in [(&hub, "gears"), (&edge, "gears"), (&edge, "wheels")] {
            define(side, plural, "example.org", &["v1"], true);
        }
        seconds(5).await;
        downsync_type(run, "the-one", "example.org", "gears", "v1");
        let of = |kind: &str, name: &str| json!({"group": "example.org", "kind": kind, "version": "v1", "name": name});
        let conversions = json!([{"upstream": of("Kgears", "a"), "downstream": of("Kwheels", "b")}]);
        hub.create(
            "people",
            NAMERS,
            "",
            "names",
            json!({"spec": {"conversions": conversions}}),
        );
        let key = Key::new("gears.example.org", "shop", "e");
        let spec = json!({"spec": {"x": "1"}});
        hub.create("people", &key.resource, "shop", "e", spec.clone());
        run.start();
        seconds(30).await;
        assert!(is_at_edge(run, &key), "it has arrived");
        hub.delete(&Key::new(DEFINITIONS, "", "gears.example.org"));
        seconds(60).await;
        define(&hub, "gears", "example.org", &["v1"], true);
        seconds(120).await;
        assert!(is_at_edge(run, &key), "it may come back");
        hub.create("people", &key.resource, "shop", "e", spec);
    }));
}

#[test]
fn what_goes_up_as_another_kind_goes_up_again_when_its_conversion_is_back() {
    check(&tell(&[], true, async |run| {
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        for (side, plural) in [(&hub, "gears"), (&hub, "wheels"), (&edge, "wheels")] {
            define(side, plural, "example.org", &["v1"], true);
        }
        seconds(5).await;
        let up = json!([{"apiGroup": "example.org", "resources": ["wheels"], "namespaces": ["field"], "names": ["*"]}]);
        hub.create("people", CONFIGS, "", "upward", json!({"spec": {"upsync": up}}));
        let of = |kind: &str, name: &str| json!({"group": "example.org", "kind": kind, "version": "v1", "name": name});
        let conversions = json!([{"upstream": of("Kgears", "a"), "downstream": of("Kwheels", "b")}]);
        let spec = json!({"spec": {"conversions": conversions}});
        let config = Key::new(NAMERS, "", "names");
        hub.create("people", NAMERS, "", "names", spec.clone());
        edge.create("people", "namespaces", "", "field", json!({}));
        let (wheel, gear) = (
            Key::new("wheels.example.org", "field", "b"),
            Key::new("gears.example.org", "field", "a"),
        );
        edge.create("people", &wheel.resource, "field", "b", json!({"spec": {"x": "1"}}));
        run.start();
        seconds(60).await;
        assert!(hub.store.borrow().get(&gear).is_some(), "it has gone up");
        hub.delete(&config);
        seconds(60).await;
        hub.create("people", NAMERS, "", "names", spec);
        seconds(60).await;
        edge.patch("people", &wheel, &json!({"spec": {"x": "2"}}));
        seconds(60).await;
        let x = hub.store.borrow().get(&gear).map(|gear| gear["spec"]["x"].clone());
        assert_eq!(x, Some(json!("2")));
        hub.delete(&Key::new("wheels.example.org", "field", "b"));
        edge.delete(&wheel);
    }));
}

#[test]
fn what_a_conversion_made_is_made_again_when_an_edge_restore_has_lost_it_and_the_conversion_is_back() {
    check(&tell(&[Class::EdgeRestored], false, async |run| {
        downsync(run);
        make(run, "a");
        run.start();
        seconds(30).await;
        let backup = run.world.edge.store.borrow().clone();
        run.world.edge.store.borrow_mut().skip(1000);
        names(run, "names", &[("a", "x")]);
        seconds(30).await;
        assert_eq!(was(run, "x"), "a");
        run.world.hub.delete(&Key::new(NAMERS, "", "names"));
        seconds(30).await;
        names(run, "names", &[("a", "x")]);
        let edge = &run.world.edge;
        edge.become_another(backup, "the edge was restored from a backup");
        seconds(60).await;
        assert_eq!(was(run, "x"), "a", "it belongs there again");
    }));
}
