//! Stories of conversions: objects that are called otherwise at the edge than at the hub.

use std::rc::Rc;

use serde_json::{Value, json};

use crate::changes::is_at_edge;
use crate::check;
use crate::sim::conversions::NAMERS;
use crate::sim::run::{Run, tell};
use crate::sim::world::CONFIGS;
use crate::stories::{seconds, settings};

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
