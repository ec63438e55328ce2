//! What clients of one side keep in an object for themselves is not synced.

use crate::support::Objects;
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{config_map, namespace};
use crate::support::stage::{Stage, config_maps, select, stage};
use crate::support::story::{arrives, copy_equals, upsync_all};
use serde_json::{Value, json};

in_both_modes!(
    a_copy_has_no_annotation_that_a_client_of_the_origins_side_keeps_its_own_copy_in,
    what_a_client_of_the_edge_keeps_in_an_adopted_object_is_preserved,
);

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// What all annotations of an object may have together.
const MOST: usize = 256 << 10;

/// An object whose annotations are as large as a server allows, as `kubectl apply` leaves it.
fn applied(shop: &str) -> Value {
    let mut object = config_map(shop, "prices", json!({"apple": "1"}));
    let others = json!({"note": "kept", "objectset.rio.cattle.io/applied": "H4sIAAAA",
        "gauges.example.org/last-handled-configuration": "{}"});
    let size: usize = others
        .as_object()
        .expect("it is one")
        .iter()
        .map(|(key, value)| key.len() + value.as_str().map_or(0, str::len))
        .sum();
    object["metadata"]["annotations"] = others;
    object["metadata"]["annotations"][LAST_APPLIED] = json!("x".repeat(MOST - size - LAST_APPLIED.len()));
    object
}

/// Waits for the copy, which has our marks, and of the origin's annotations only that of a person.
async fn arrives_without_bookkeeping(at: &Objects, shop: &str) {
    let copy = arrives(at, "v1", "configmaps", shop, "prices").await;
    assert_eq!(copy["data"], json!({"apple": "1"}));
    let annotations = copy["metadata"]["annotations"].as_object().expect("it is marked");
    let others: Vec<_> = annotations
        .keys()
        .filter(|key| !key.starts_with("edge.kubestellar.io/"))
        .collect();
    assert_eq!(others, ["note"]);
}

async fn a_copy_has_no_annotation_that_a_client_of_the_origins_side_keeps_its_own_copy_in(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let up = pair.namespace("up");
    let mut spec = config_maps(&shop, &["*"]);
    spec["upsync"] = json!([upsync_all("", &["configmaps"], &up)]);
    for (side, shop) in [(&hub, &shop), (&edge, &up)] {
        side.create(&namespace(shop)).await;
        side.create(&applied(shop)).await;
    }
    select(&hub, &spec).await;
    let _syncer = pair.syncer(flags);
    arrives_without_bookkeeping(&edge, &shop).await;
    arrives_without_bookkeeping(&hub, &up).await;
}

async fn what_a_client_of_the_edge_keeps_in_an_adopted_object_is_preserved(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let with = |value: &str| {
        let mut object = config_map(&shop, "prices", json!({"apple": value}));
        object["metadata"]["annotations"] = json!({LAST_APPLIED: value});
        object
    };
    for side in [&hub, &edge] {
        side.create(&namespace(&shop)).await;
    }
    edge.create(&with("edge")).await;
    hub.create(&with("hub")).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let _syncer = pair.syncer(flags);
    let copy = copy_equals(&edge, &shop, "prices", &json!({"apple": "hub"})).await;
    assert_eq!(copy["metadata"]["annotations"][LAST_APPLIED], json!("edge"));
}
