//! A config of about a megabyte.

use serde_json::json;

use crate::bench::{comes_to, compared, status};
use crate::support::objects::edge_sync_config;
use crate::support::stage::{Stage, largest, stage, stock};

#[tokio::test]
async fn the_largest_config_is_counted_explained_and_compared() {
    let stage = stage().await;
    let Stage { pair, shop, hub, edge } = &stage;
    stock(edge, shop, &[] as &[&str], &json!({})).await;
    stock(hub, shop, &["h2", "e5000"], &json!({"k": "v"})).await;
    let config = hub.create(&edge_sync_config("large", largest(shop))).await;
    let bytes = config["spec"].to_string().len();
    assert!(bytes > 1_000_000, "{bytes} bytes");
    let _syncer = pair.syncer(&[]);
    let found = comes_to(&stage, 0, &[]).await;
    assert_eq!(found.rows()[1][..4], ["EdgeSyncConfig/large", "test", "synced", "2/2"]);
    let json = status(&stage, &["-o", "json"]).await;
    assert_eq!(json.ends_with(0).json()["configs"][0]["edges"][0]["selected"], 2);
    assert!(
        json.out.len() < 8 << 10,
        "what was found, without the config: {} bytes",
        json.out.len()
    );
    compared(&stage, &[])
        .await
        .ends_with(0)
        .says("configmaps  downsync  2         2         0    0     2");
    // `h2` has another name at the edge.
    for name in ["h2", "e5000"] {
        let object = format!("ConfigMap/{shop}/{name}");
        status(&stage, &["--object", &object])
            .await
            .ends_with(0)
            .says("selected by EdgeSyncConfig//large");
        compared(&stage, &["--object", &object])
            .await
            .ends_with(0)
            .says("in place");
    }
    let none = format!("ConfigMap/{shop}/e11000");
    compared(&stage, &["--object", &none])
        .await
        .ends_with(1)
        .says("no config selects it");
}
