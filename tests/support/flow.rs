//! Stories that downsync and upsync have in common, written for one of the two directions.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::crashes::Crashes;
use super::edge_watch::EdgeWatch;
use super::modes::Mode;
use super::objects::{Objects, config_map, path};
use super::stage::{Stage, config_maps, deselect, numbered, select, stage, stock};
use super::story::{arrives, gone, remains, reselect};
use super::{PairLease, Syncer};

/// How many objects [`Flow::survives_crashes`] has.
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

    /// While the syncer is away, objects are deselected and deleted and a copy gets lost; all is corrected when it comes
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
    /// end, with a syncer that nobody disturbs, `c0` has gone and the others are to hold what this returns.
    pub async fn survives_crashes(&self, flags: Mode) -> (Syncer, Value) {
        let names = numbered(OBJECTS);
        self.select(&["*"]).await;
        stock(&self.from, &self.shop, &names, &json!({"round": "0"})).await;
        let mut uids: BTreeMap<String, Value> = BTreeMap::new();
        let mut crashes = Crashes::of(OBJECTS);
        let mut data = json!({"round": "0"});
        while let Some(round) = crashes.begin() {
            let path = path("v1", "configmaps", &self.shop, "");
            let is_done = |copy: &Value| copy["data"] == data;
            let watch = EdgeWatch::from_now(self.to.client(), &path).await;
            let mut syncer = self.pair.syncer(flags);
            crashes.moment(watch, is_done).await;
            syncer.kill();
            let copies = self.to.list("v1", "configmaps", &self.shop, self.label).await;
            crashes.saw(copies.iter().filter(|copy| is_done(copy)).count());
            for copy in copies {
                let name = copy["metadata"]["name"].as_str().expect("it has a name").to_owned();
                let uid = copy["metadata"]["uid"].clone();
                let known = uids.entry(name.clone()).or_insert_with(|| uid.clone());
                assert_eq!(*known, uid, "{name} was created again");
            }
            data = json!({"round": round.to_string()});
            for name in &names {
                self.from.replace(&config_map(&self.shop, name, data.clone())).await;
            }
        }
        self.delete(&self.from, "c0").await;
        (self.pair.syncer(flags), data)
    }
}
