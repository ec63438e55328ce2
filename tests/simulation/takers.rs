//! What takes others along when it goes is not deleted for as long as it would take what is to stay (issue 13).

use std::rc::Rc;

use serde_json::json;

use crate::changes::{define, is_at_edge};
use crate::check;
use crate::sim::run::tell;
use crate::sim::store::Key;
use crate::sim::types::DEFINITIONS;
use crate::sim::world::{CONFIGS, OVERWRITE};
use crate::stories::{downsync, one_copy, seconds, settings};

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
        let hands_off = json!({"metadata": {"annotations": {OVERWRITE: "false"}}});
        hub.patch("people", &copy, &hands_off);
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
        let name = "gears.own.example.org";
        let spec = json!({
            "namespacedObjects": [{"group": "own.example.org", "resource": "gears", "apiVersion": "v1",
                "objectsByNamespace": [{"namespace": "shop", "names": ["*"]}]}],
            "clusterScope": [{"group": "apiextensions.k8s.io", "resource": "customresourcedefinitions",
                "apiVersion": "v1", "objects": [name]}]});
        hub.create("people", CONFIGS, "", "gears", json!({"spec": spec}));
        define(&hub, "gears", "own.example.org", &["v1"], true);
        seconds(10).await;
        hub.create("people", name, "shop", "a", json!({"spec": {"x": "1"}}));
        run.start();
        seconds(60).await;
        let copy = Key::new(name, "shop", "a");
        assert!(is_at_edge(run, &copy), "it has arrived");
        edge.create("people", name, "default", "own", json!({"spec": {"x": "1"}}));
        let definition = Key::new(DEFINITIONS, "", name);
        hub.delete(&definition);
        seconds(300).await;
        for key in [definition, copy, Key::new(name, "default", "own")] {
            let store = edge.store.borrow();
            let object = store.get(&key).expect("it stays");
            assert!(object["metadata"]["deletionTimestamp"].is_null(), "{key} is going");
        }
    }));
}
