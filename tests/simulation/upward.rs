//! Stories of what goes up: types that come into being, namespaces at the hub, names there, statuses.

use std::rc::Rc;
use std::time::Duration;

use driver::source::Mode;
use edge_syncer::side::Side;
use serde_json::json;
use tokio::time::sleep;

use crate::changes::{define, edge_reports, hub_status};
use crate::check;
use crate::sim::run::{Run, tell};
use crate::sim::store::Key;
use crate::sim::types::{DEFINITIONS, EDGE_SYNC_CONFIGS};
use crate::sim::weather::Trouble;
use crate::sim::world::CONFIGS;
use crate::stories::{seconds, upsync};

/// A type comes into being in a group of which everything goes up, this long before the syncer starts.
fn goes_up_though_its_type_is_this_young(age: Duration, mode: Mode, forbidden: &str) {
    check(&tell(&[], true, async |run| {
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        run.mode = mode;
        if !forbidden.is_empty() {
            let forbidden = Trouble::Forbidden(forbidden.to_owned());
            run.strike(Side::Edge, forbidden, Duration::from_secs(600));
        }
        let all =
            json!([{"apiGroup": "young.example.org", "resources": ["*"], "namespaces": ["field"], "names": ["*"]}]);
        hub.create("people", CONFIGS, "", "upward", json!({"spec": {"upsync": all}}));
        edge.create("people", "namespaces", "", "field", json!({}));
        define(&hub, "gears", "young.example.org", &["v1"], true);
        seconds(10).await;
        define(&edge, "gears", "young.example.org", &["v1"], true);
        sleep(age).await;
        run.start();
        seconds(10).await;
        let gear = Key::new("gears.young.example.org", "field", "a");
        edge.create("people", &gear.resource, "field", "a", json!({"spec": {"x": "1"}}));
        seconds(300).await;
        assert!(
            hub.store.borrow().get(&gear).is_some(),
            "it has not gone up: {age:?} {mode:?}"
        );
    }));
}

#[test]
fn what_discovery_did_not_tell_of_when_its_crd_was_read_first_is_picked_up() {
    for age in (0..3000).step_by(100).map(Duration::from_millis) {
        goes_up_though_its_type_is_this_young(age, Mode::Watch, "");
        goes_up_though_its_type_is_this_young(age, Mode::Poll(Duration::from_secs(60)), "");
    }
}

#[test]
fn a_type_of_a_starred_group_is_found_also_where_crds_cannot_be_read() {
    for age in [0, 1, 2].map(Duration::from_secs) {
        goes_up_though_its_type_is_this_young(age, Mode::Watch, DEFINITIONS);
    }
}

#[test]
fn what_comes_while_the_hub_is_asked_whether_its_namespace_is_empty_keeps_the_namespace() {
    for after in (9500..12000).step_by(20).map(Duration::from_millis) {
        check(&tell(&[], true, async |run| {
            upsync(run, &["field"]);
            let edge = Rc::clone(&run.world.edge);
            edge.create("people", "namespaces", "", "field", json!({}));
            edge.create("people", "configmaps", "field", "a", json!({"data": {"x": "1"}}));
            run.start();
            seconds(20).await;
            edge.delete(&Key::new("configmaps", "field", "a"));
            sleep(after).await;
            edge.create("people", "configmaps", "field", "b", json!({"data": {"x": "1"}}));
            seconds(60).await;
        }));
    }
}

#[test]
fn a_namespace_of_upsync_goes_though_somebody_elses_object_was_on_its_way_out_when_upsync_left_it() {
    check(&tell(&[], true, async |run| {
        upsync(run, &["field"]);
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        let key = Key::new("configmaps", "field", "a");
        edge.create("people", "namespaces", "", "field", json!({}));
        edge.create("people", "configmaps", "field", "a", json!({"data": {"x": "1"}}));
        run.start();
        seconds(30).await;
        hub.delete(&key);
        let finalizers = json!({"metadata": {"finalizers": ["people.example.org/waits"]}, "data": {"x": "2"}});
        hub.create("people", "configmaps", "field", "a", finalizers);
        seconds(30).await;
        hub.delete(&key);
        edge.delete(&key);
        seconds(30).await;
        hub.patch("people", &key, &json!({"metadata": {"finalizers": null}}));
    }));
}

#[test]
fn a_namespace_of_upsync_goes_though_its_last_copy_was_deselected_and_lost_its_label_before_it_was_deleted() {
    check(&tell(&[], true, async |run| {
        upsync(run, &["field"]);
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        let key = Key::new("configmaps", "field", "a");
        edge.create("people", "namespaces", "", "field", json!({}));
        edge.create("people", "configmaps", "field", "a", json!({"data": {"x": "1"}}));
        run.start();
        seconds(30).await;
        hub.patch(
            "people",
            &Key::new(CONFIGS, "", "upward"),
            &json!({"spec": {"upsync": []}}),
        );
        seconds(30).await;
        hub.patch(
            "people",
            &key,
            &json!({"metadata": {"labels": {"edge.kubestellar.io/upsynced": null}}}),
        );
        seconds(30).await;
        hub.delete(&key);
    }));
}

#[test]
fn a_namespace_of_upsync_with_something_of_another_version_in_it_stays() {
    check(&tell(&[], true, async |run| {
        upsync(run, &["field"]);
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        define(&hub, "alphas", "multi.example.org", &["v1"], true);
        define(&hub, "betas", "multi.example.org", &["v1beta1"], true);
        edge.create("people", "namespaces", "", "field", json!({}));
        edge.create("people", "configmaps", "field", "a", json!({"data": {"x": "1"}}));
        run.start();
        seconds(30).await;
        let made = hub.create("people", "betas.multi.example.org", "field", "b", json!({}));
        assert!(made.is_some(), "it can be made");
        edge.delete(&Key::new("configmaps", "field", "a"));
        seconds(120).await;
        hub.delete(&Key::new("betas.multi.example.org", "field", "b"));
    }));
}

/// What goes up under one name by a conversion goes up under another, or under its own, when that changes.
fn the_name_at_the_hub_changes(to: Option<&str>, running: bool) {
    check(&tell(&[], true, async |run| {
        upsync(run, &["field"]);
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        let map = |name: &str| json!({"kind": "ConfigMap", "version": "v1", "name": name});
        let spec = |name: &str| json!({"spec": {"conversions": [{"upstream": map(name), "downstream": map("a")}]}});
        let configs = format!("{EDGE_SYNC_CONFIGS}.edge.kubestellar.io");
        hub.create("people", &configs, "", "c", spec("b"));
        edge.create("people", "namespaces", "", "field", json!({}));
        edge.create("people", "configmaps", "field", "a", json!({"data": {"x": "1"}}));
        run.start();
        seconds(30).await;
        let is_at_hub = |run: &Run, name: &str| {
            let key = Key::new("configmaps", "field", name);
            run.world.hub.store.borrow().get(&key).is_some()
        };
        assert!(is_at_hub(run, "b"), "it has gone up");
        if !running {
            run.kill().await;
        }
        let key = Key::new(&configs, "", "c");
        match to {
            Some(name) => drop(hub.patch("people", &key, &spec(name))),
            None => drop(hub.delete(&key)),
        }
        if !running {
            run.start();
        }
        seconds(60).await;
        assert!(
            is_at_hub(run, to.unwrap_or("a")),
            "it has not gone up under its new name"
        );
        edge.delete(&Key::new("configmaps", "field", "a"));
        seconds(60).await;
        for name in ["a", "b", "c"] {
            assert!(!is_at_hub(run, name), "{name} is left behind: {to:?} {running}");
        }
    }));
}

#[test]
fn a_name_at_the_hub_that_a_former_conversion_had_given_is_taken_by_what_the_edge_calls_so() {
    check(&tell(&[], true, async |run| {
        upsync(run, &["field"]);
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        let map = |name: &str| json!({"kind": "ConfigMap", "version": "v1", "name": name});
        let conversions = json!([{"upstream": map("b"), "downstream": map("a")}]);
        let key = Key::new(&format!("{EDGE_SYNC_CONFIGS}.edge.kubestellar.io"), "", "c");
        hub.create(
            "people",
            &key.resource,
            "",
            "c",
            json!({"spec": {"conversions": conversions}}),
        );
        edge.create("people", "namespaces", "", "field", json!({}));
        let of_edge =
            |name: &str| drop(edge.create("people", "configmaps", "field", name, json!({"data": {"of": name}})));
        of_edge("a");
        run.start();
        seconds(30).await;
        hub.delete(&key);
        seconds(30).await;
        of_edge("b");
        seconds(30).await;
        let at_hub = |name: &str| {
            let store = hub.store.borrow();
            store
                .get(&Key::new("configmaps", "field", name))
                .map(|map| map["data"]["of"].clone())
        };
        assert_eq!((at_hub("a"), at_hub("b")), (Some(json!("a")), Some(json!("b"))));
        edge.delete(&Key::new("configmaps", "field", "a"));
        seconds(60).await;
        assert_eq!((at_hub("a"), at_hub("b")), (None, Some(json!("b"))));
    }));
}

#[test]
fn what_a_changed_conversion_leaves_under_its_former_name_at_the_hub_goes_with_its_origin() {
    for to in [Some("c"), None] {
        for running in [true, false] {
            the_name_at_the_hub_changes(to, running);
        }
    }
}

#[test]
fn the_status_of_what_was_deleted_at_the_hub_unnoticed_goes_up_again_with_it() {
    check(&tell(&[], true, async |run| {
        run.mode = Mode::Poll(Duration::from_secs(60));
        let all = json!([{"apiGroup": "apps", "resources": ["deployments"], "namespaces": ["field"], "names": ["*"]}]);
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        hub.create("people", CONFIGS, "", "upward", json!({"spec": {"upsync": all}}));
        let key = Key::new("deployments.apps", "field", "a");
        edge.create("people", "namespaces", "", "field", json!({}));
        edge.create("people", &key.resource, "field", "a", json!({"spec": {"x": "1"}}));
        run.start();
        seconds(70).await;
        edge_reports(run, &key, 1);
        seconds(130).await;
        assert_eq!(hub_status(run, &key), 1);
        hub.delete(&key);
        edge.patch("people", &key, &json!({"spec": {"x": "2"}}));
    }));
}

#[test]
fn a_status_that_others_wrote_at_the_hub_before_our_write_is_corrected_where_the_hub_is_polled() {
    check(&tell(&[], true, async |run| {
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        run.mode = Mode::Poll(Duration::from_secs(60));
        let all = json!([{"apiGroup": "apps", "resources": ["deployments"], "namespaces": ["field"], "names": ["*"]}]);
        hub.create("people", CONFIGS, "", "upward", json!({"spec": {"upsync": all}}));
        edge.create("people", "namespaces", "", "field", json!({}));
        let key = Key::new("deployments.apps", "field", "a");
        edge.create("people", &key.resource, "field", "a", json!({"spec": {"x": "1"}}));
        run.start();
        seconds(120).await;
        edge_reports(run, &key, 1);
        seconds(120).await;
        assert_eq!(hub_status(run, &key), 1);
        edge.patch("people", &key, &json!({"spec": {"x": "2"}}));
        seconds(120).await;
        let written = hub.patch_status("somebody", &key, &json!({"status": {"found": 7}}));
        assert!(written.is_some(), "it is there");
        edge.patch("people", &key, &json!({"spec": {"x": "3"}}));
        seconds(300).await;
        assert_eq!(hub_status(run, &key), 1, "it is the edge's");
    }));
}

#[test]
fn a_namespace_that_downsync_needs_is_made_though_all_namespaces_are_to_go_up() {
    check(&tell(&[], true, async |run| {
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        let down = json!([{"group": "", "resource": "configmaps", "apiVersion": "v1",
            "objectsByNamespace": [{"namespace": "shop", "names": ["*"]}]}]);
        let up = json!([{"apiGroup": "", "resources": ["namespaces"], "namespaces": ["*"], "names": ["*"]}]);
        hub.create(
            "people",
            CONFIGS,
            "",
            "both",
            json!({"spec": {"namespacedObjects": down, "upsync": up}}),
        );
        hub.create("people", "namespaces", "", "shop", json!({}));
        let key = Key::new("configmaps", "shop", "a");
        hub.create("people", "configmaps", "shop", "a", json!({"data": {"x": "1"}}));
        edge.create("people", "namespaces", "", "field", json!({}));
        run.start();
        seconds(60).await;
        assert!(edge.store.borrow().get(&key).is_some(), "its namespace was made");
        let up = Key::new("namespaces", "", "field");
        assert!(hub.store.borrow().get(&up).is_some(), "the edge's own goes up");
        // A namespace that both need, and that its owner deletes at the edge, is made again.
        edge.delete(&Key::new("namespaces", "", "shop"));
        seconds(120).await;
        assert!(edge.store.borrow().get(&key).is_some(), "it is needed still");
        assert!(hub.store.borrow().get(&key).is_some(), "nothing was lost at the hub");
    }));
}
