//! What every cluster makes for itself is preserved.

use serde_json::{Value, json};

use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{config_map, namespace};
use crate::support::stage::{all_of_each, resources, select};
use crate::support::story::{arrives, gone, stays_absent};
use crate::support::{Objects, shared_pair};

in_both_modes!(cluster_infrastructure_is_preserved_on_both_sides_under_wildcards,);

const TYPES: [(&str, &str); 3] = [("", "configmaps"), ("", "secrets"), ("", "serviceaccounts")];

/// What every cluster makes for itself in a namespace, with something in it that tells the sides apart.
fn infrastructure(space: &str, side: &str) -> Vec<Value> {
    let secret = |name: &str, kind: &str, annotations: Value| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": kind, "stringData": {"token": side},
            "metadata": {"namespace": space, "name": name, "annotations": annotations},
        })
    };
    let of_default = json!({"kubernetes.io/service-account.name": "default"});
    vec![
        config_map(space, "kube-root-ca.crt", json!({"ca.crt": side})),
        json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "secrets": [{"name": side}],
            "metadata": {"namespace": space, "name": "default", "annotations": {"side": side}},
        }),
        secret("default-token", "kubernetes.io/service-account-token", of_default),
        secret("bootstrap", "bootstrap.kubernetes.io/token", json!({})),
    ]
}

/// Objects of the same types that are nobody's infrastructure.
pub(crate) fn ordinary(space: &str) -> Vec<Value> {
    let metadata = json!({"namespace": space, "name": "ordinary"});
    vec![
        config_map(space, "ordinary", json!({})),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"a": "b"}}),
    ]
}

async fn cluster_infrastructure_is_preserved_on_both_sides_under_wildcards(flags: Mode) {
    let pair = shared_pair().await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    // Where a namespace is selected by `names: ["*"]` and by `namespaceScope`: infrastructure on both sides, and only on one.
    let starred = ["both", "hub", "edge"].map(|at| (at, pair.namespace(&format!("star-{at}"))));
    let scoped = ["both", "hub", "edge"].map(|at| (at, pair.namespace(&format!("scope-{at}"))));
    let all = || starred.iter().chain(&scoped);
    let mut there = Vec::new();
    for (at, space) in all() {
        there.extend(furnish([("hub", &hub), ("edge", &edge)], at, space).await);
    }
    select(&hub, &by_wildcards(&starred, &scoped)).await;
    let _syncer = pair.syncer(flags);
    for (_, space) in all() {
        for (_, plural) in TYPES {
            arrives(&edge, "v1", plural, space, "ordinary").await;
        }
    }
    let secret = infrastructure(&starred[1].1, "").remove(2);
    let name = secret["metadata"]["name"].as_str().expect("it has a name");
    stays_absent(&edge, "v1", "secrets", &starred[1].1, name).await;
    for (at, space) in all() {
        for object in infrastructure(space, "") {
            if *at == "hub" {
                assert_eq!(edge.reread(&object).await, None, "it has arrived: {object}");
            } else if *at == "edge" {
                assert_eq!(hub.reread(&object).await, None, "it was made at the hub: {object}");
            }
        }
    }
    are_as_before(&there).await;

    // What the hub drops is not taken from the edge.
    let dropped = [&*starred[0].1, &*scoped[0].1];
    for space in dropped {
        drop_at_hub(&hub, &edge, space).await;
    }
    there.retain(|(_, object)| !is_dropped(object, dropped));
    are_as_before(&there).await;
}

/// Creates a namespace at both sides, with infrastructure `at` one of them or both; gives that.
async fn furnish<'a>(sides: [(&str, &'a Objects); 2], at: &str, space: &str) -> Vec<(&'a Objects, Value)> {
    let mut there = Vec::new();
    for (name, side) in sides {
        side.create(&namespace(space)).await;
        if at == "both" || at == name {
            for object in infrastructure(space, name) {
                there.push((side, side.create(&object).await));
            }
        }
    }
    let [(_, hub), _] = sides;
    for object in ordinary(space) {
        hub.create(&object).await;
    }
    there
}

/// A spec that selects everything, in some namespaces by stars and in others by their scope.
fn by_wildcards(starred: &[(&str, String)], scoped: &[(&str, String)]) -> Value {
    let stars = starred
        .iter()
        .map(|(_, space)| json!({"namespace": space, "names": ["*"]}));
    let stars: Vec<Value> = stars.collect();
    let mut entries = resources(&TYPES);
    for entry in &mut entries {
        entry["objectsByNamespace"] = json!(stars);
    }
    let scoped: Vec<&str> = scoped.iter().map(|(_, space)| space.as_str()).collect();
    let mut spec = all_of_each(&scoped, &TYPES);
    spec["namespacedObjects"] = json!(entries);
    spec
}

async fn are_as_before(objects: &[(&Objects, Value)]) {
    for (side, before) in objects {
        let now = side.reread(before).await;
        assert_eq!(now.as_ref(), Some(before), "somebody has changed it");
    }
}

/// Deletes infrastructure and the ordinary objects at the hub, and waits until the copies of the ordinary ones go.
async fn drop_at_hub(hub: &Objects, edge: &Objects, space: &str) {
    for (plural, name) in [
        ("configmaps", "kube-root-ca.crt"),
        ("configmaps", "ordinary"),
        ("secrets", "default-token"),
        ("secrets", "ordinary"),
        ("serviceaccounts", "default"),
        ("serviceaccounts", "ordinary"),
    ] {
        hub.delete("v1", plural, space, name).await;
    }
    for (_, plural) in TYPES {
        gone(edge, "v1", plural, space, "ordinary").await;
    }
}

/// Whether it is of those that [`drop_at_hub`] has deleted in these namespaces.
fn is_dropped(object: &Value, spaces: [&str; 2]) -> bool {
    let metadata = &object["metadata"];
    let space = metadata["namespace"].as_str().expect("it is namespaced");
    let at_hub = metadata["annotations"]["side"] == "hub"
        || object["data"]["ca.crt"] == "hub"
        || object["data"]["token"] == "aHVi";
    at_hub && metadata["name"] != "bootstrap" && spaces.contains(&space)
}
