//! Downsync between two real API servers: spec scenarios 14 to 17, 20, 21.

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::objects::{config_map, syncer_config};
use support::{eventually, shared_pair};

const SOON: Duration = Duration::from_secs(20);

fn config_maps(namespace: &str, names: &[&str]) -> Value {
    json!({"namespacedObjects": [{"group": "", "resource": "configmaps", "apiVersion": "v1",
        "objectsByNamespace": [{"namespace": namespace, "names": names}]}]})
}

#[tokio::test]
async fn follows_create_update_and_delete_of_a_config_map() {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let _syncer = pair.syncer(&[]);
    hub.create(&support::objects::namespace(&shop)).await;
    hub.create(&config_map(&shop, "prices", json!({"apple": "1"}))).await;
    hub.create(&syncer_config("the-one", config_maps(&shop, &["prices"])))
        .await;

    let copy = eventually("the copy arrives", SOON, async || {
        edge.try_get("v1", "configmaps", &shop, "prices")
            .await
            .map_err(|e| e.to_string())?
            .ok_or("absent".to_owned())
    })
    .await;
    assert_eq!(copy["data"], json!({"apple": "1"}));
    assert_eq!(
        copy["metadata"]["annotations"]["edge.kubestellar.io/downsynced"],
        format!("ConfigMap/{shop}/prices")
    );
}
