//! Stories that downsync and upsync have in common, told for one of the two directions.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::modes::Mode;
use super::objects::{Objects, config_map};
use super::stage::{Stage, config_maps, deselect, numbered, select, stage, stock};
use super::story::{arrives, gone, remains, reselect};
use super::{PairLease, Syncer};

/// How many times [`Flow::survives_crashes`] kills the syncer.
const CRASHES: u64 = 12;
/// How many objects it does that with.
const OBJECTS: usize = 30;

/// `ConfigMap`s of one namespace on their way.
pub struct Flow {
    pub pair: PairLease,
    pub shop: String,
    hub: Objects,
    /// The side where the objects are at home.
    pub from: Objects,
    /// The side that gets copies.
    pub to: Objects,
    /// The spec of a `SyncerConfig` that selects these names in a namespace.
    selection: fn(&str, &[&str]) -> Value,
    /// Label selector of the copies.
    label: &'static str,
}

/// A flow from hub to edge.
pub async fn downsync() -> Flow {
    let Stage { pair, shop, hub, edge } = stage().await;
    Flow {
        pair,
        shop,
        from: hub.clone(),
        to: edge,
        hub,
        selection: config_maps,
        label: "edge.kubestellar.io/downsynced=true",
    }
}

/// A flow from edge to hub.
pub async fn upsync() -> Flow {
    let Stage { pair, shop, hub, edge } = stage().await;
    Flow {
        pair,
        shop,
        from: edge,
        to: hub.clone(),
        hub,
        selection: upsync_config_maps,
        label: "edge.kubestellar.io/upsynced=true",
    }
}

/// The spec of a `SyncerConfig` that selects `ConfigMap`s of one namespace for upsync and nothing else.
pub fn upsync_config_maps(shop: &str, names: &[&str]) -> Value {
    json!({"upsync": [{"resources": ["configmaps"], "namespaces": [shop], "names": names}]})
}

impl Flow {
    async fn select(&self, names: &[&str]) {
        select(&self.hub, &(self.selection)(&self.shop, names)).await;
    }

    async fn reselect(&self, names: &[&str]) {
        reselect(&self.hub, &(self.selection)(&self.shop, names)).await;
    }

    async fn delete(&self, at: &Objects, name: &str) {
        at.delete("v1", "configmaps", &self.shop, name).await;
    }

    /// Waits until a copy has come.
    pub async fn copy_arrives(&self, name: &str) -> Value {
        arrives(&self.to, "v1", "configmaps", &self.shop, name).await
    }

    /// Waits until a copy has gone.
    pub async fn copy_goes(&self, name: &str) {
        gone(&self.to, "v1", "configmaps", &self.shop, name).await;
    }

    /// Checks for a while that a copy stays, and gives it.
    pub async fn copy_remains(&self, name: &str) -> Value {
        remains(&self.to, "v1", "configmaps", &self.shop, name).await
    }

    /// Deselecting keeps a copy until its object goes, whichever of the two comes first.
    pub async fn deselected_in_either_order(&self, flags: Mode) -> Syncer {
        let names = ["a", "b", "c"];
        stock(&self.from, &self.shop, &names, &json!({})).await;
        self.select(&names).await;
        let syncer = self.pair.syncer(flags);
        for name in names {
            self.copy_arrives(name).await;
        }
        // Deleted first, deselected second.
        self.delete(&self.from, "a").await;
        self.reselect(&["c"]).await;
        self.copy_goes("a").await;
        self.copy_remains("b").await;
        // Deselected first, deleted second.
        self.delete(&self.from, "b").await;
        self.copy_goes("b").await;
        self.copy_remains("c").await;
        // The whole config goes, and then its object.
        deselect(&self.hub).await;
        self.copy_remains("c").await;
        self.delete(&self.from, "c").await;
        self.copy_goes("c").await;
        syncer
    }

    /// While the syncer is away, objects are deselected and deleted and a copy gets lost; all is put right when it comes
    /// back, and what is only deselected stays. Ends with the copies `kept` and `lost`.
    pub async fn changed_while_it_is_away(&self, flags: Mode) -> Syncer {
        let names = ["selected", "deselected", "kept", "lost"];
        stock(&self.from, &self.shop, &names, &json!({})).await;
        self.select(&["*"]).await;
        let mut syncer = self.pair.syncer(flags);
        let mut uids = BTreeMap::new();
        for name in names {
            let copy = self.copy_arrives(name).await;
            uids.insert(name, copy["metadata"]["uid"].clone());
        }
        syncer.kill();
        self.reselect(&["selected", "lost"]).await;
        self.delete(&self.from, "selected").await;
        self.delete(&self.from, "deselected").await;
        self.delete(&self.to, "lost").await;
        let syncer = self.pair.syncer(flags);
        self.copy_goes("selected").await;
        self.copy_goes("deselected").await;
        self.copy_arrives("lost").await;
        let kept = self.copy_remains("kept").await;
        assert_eq!(kept["metadata"]["uid"], uids["kept"]);
        syncer
    }

    /// Kills the syncer again and again while objects change, and checks that no copy is created a second time. In the
    /// end, with a syncer that is left alone, `c0` has gone and the others are to hold what this returns.
    pub async fn survives_crashes(&self, flags: Mode) -> (Syncer, Value) {
        let names = numbered(OBJECTS);
        self.select(&["*"]).await;
        stock(&self.from, &self.shop, &names, &json!({"round": "0"})).await;
        let mut uids: BTreeMap<String, Value> = BTreeMap::new();
        for round in 1..=CRASHES {
            let mut syncer = self.pair.syncer(flags);
            any_moment(round).await;
            syncer.kill();
            for copy in self.to.list("v1", "configmaps", &self.shop, self.label).await {
                let name = copy["metadata"]["name"].as_str().expect("it has a name").to_owned();
                let uid = copy["metadata"]["uid"].clone();
                let known = uids.entry(name.clone()).or_insert_with(|| uid.clone());
                assert_eq!(*known, uid, "{name} was created again");
            }
            for name in &names {
                let data = json!({"round": round.to_string()});
                self.from.replace(&config_map(&self.shop, name, data)).await;
            }
        }
        self.delete(&self.from, "c0").await;
        (self.pair.syncer(flags), json!({"round": CRASHES.to_string()}))
    }
}

/// A pause that grows with the round, so that over twelve rounds a kill hits the syncer at any moment from before it has
/// connected to after it has come to rest. There is no condition to wait for: the moment itself is what is tested.
pub async fn any_moment(round: u64) {
    tokio::time::sleep(Duration::from_millis(round * round * 2)).await;
}
