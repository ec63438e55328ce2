//! The columns that kubectl prints of configs of both kinds and of edges.

use serde_json::json;

use crate::metrics::refuse_config_maps;
use crate::support::eventually;
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::config_map;
use crate::support::stage::{
    Stage, config_map_ref, config_maps, namespace_ref, numbered, select, select_by_kind, stage, stock,
};
use crate::support::story::SOON;
use crate::support::tables::{OF_CONFIGS, OF_EDGES, Table, cells, printed, seconds};

in_both_modes!(each_of_the_three_types_prints_what_is_synced_what_fails_and_what_is_held);

const ALL: [&str; 2] = ["get", "syncerconfigs,edgesyncconfigs,edges"];
const NAMES: [&str; 3] = [
    "syncerconfig.edge.kubestellar.io/the-one",
    "edgesyncconfig.edge.kubestellar.io/site",
    "edge.edge.kubestellar.io/test",
];

/// What kubectl prints under READY, SYNCED, FAILING and HELD of each.
fn shown(tables: &[Table]) -> Vec<&[String]> {
    let cells = tables.iter().zip(NAMES).filter_map(|(table, name)| cells(table, name));
    cells.map(|cells| &cells[1..5]).collect()
}

/// Waits until kubectl prints this under READY, SYNCED, FAILING and HELD of each, and gives the tables.
async fn shows(stage: &Stage, expected: [[&str; 4]; 3]) -> Vec<Table> {
    eventually(&format!("kubectl prints {expected:?}"), SOON, async || {
        let tables = printed(&stage.pair.hub, &ALL);
        if shown(&tables) == expected {
            Ok(tables)
        } else {
            Err(format!("{tables:?}"))
        }
    })
    .await
}

async fn each_of_the_three_types_prints_what_is_synced_what_fails_and_what_is_held(flags: Mode) {
    let stage = stage().await;
    let Stage { pair, shop, hub, edge } = &stage;
    let names = numbered(6);
    stock(hub, shop, &names, &json!({})).await;
    select(hub, &config_maps(shop, &["*"])).await;
    let refs = [namespace_ref(shop), config_map_ref(shop, "*")];
    select_by_kind(hub, &json!({"downSyncedResources": refs})).await;
    let mut syncer = pair.syncer(&[flags, &["--heartbeat-interval=1s", "--hold-deletes-above=2"]].concat());
    // The namespace is selected by one of them.
    let good = ["6/6", "7/7", "7/7"].map(|synced| ["True", synced, "0", "0"]);
    let tables = shows(&stage, good).await;
    for ((table, columns), name) in tables.iter().zip([OF_CONFIGS, OF_CONFIGS, OF_EDGES]).zip(NAMES) {
        assert_eq!(table[0], columns);
        let cells = cells(table, name).expect("it is there");
        assert_eq!(cells.len(), columns.len());
        assert!(seconds(&cells[5]).is_some(), "an age below HEARTBEAT: {cells:?}");
    }

    refuse_config_maps(edge, shop).await;
    hub.create(&config_map(shop, "refused", json!({}))).await;
    shows(&stage, ["6/7", "7/8", "7/8"].map(|synced| ["False", synced, "1", "0"])).await;
    let wide = pair.hub.kubectl(&[&ALL[..], &["-o", "wide"]].concat());
    for synced in ["6 of 7", "7 of 8"] {
        let words = format!("{synced} objects are synced; ConfigMap/{shop}/refused at the edge: ");
        assert!(wide.contains(&words), "{words}: {wide}");
    }
    assert!(wide.contains("exceeded quota"), "{wide}");
    assert_eq!(wide.matches(" MESSAGE").count(), 3, "{wide}");
    hub.delete("v1", "configmaps", shop, "refused").await;
    shows(&stage, good).await;

    // As one event for the syncer.
    syncer.signal("STOP");
    for name in &names[..5] {
        hub.delete("v1", "configmaps", shop, name).await;
    }
    syncer.signal("CONT");
    // Those that were on their way before there were too many are gone.
    eventually("kubectl prints how many are held", SOON, async || {
        let left = edge.list("v1", "configmaps", shop, "").await;
        let left = names[..5]
            .iter()
            .filter(|name| left.iter().any(|copy| copy["metadata"]["name"] == **name));
        let held = left.count().to_string();
        let tables = printed(&pair.hub, &ALL);
        let shown = shown(&tables);
        let expected = ["1/1", "2/2", "2/2"].map(|synced| ["False", synced, "0", &held]);
        if held != "0" && shown == expected {
            Ok(())
        } else {
            Err(format!("{held} {tables:?}"))
        }
    })
    .await;
}
