//! What people do at the edge with objects that go up to the hub, and what others do at the hub in their places.

use edge_syncer::side::Side;
use serde_json::{Value, json};

use super::accidents::MANY;
use super::ledger::MASS;
use super::store::Key;
use super::world::{CONFIGS, World};

/// The namespaces of such objects; `shop` has objects that go down too.
const PLACES: [&str; 3] = ["field", "shop", "yard"];
const NAMES: [&str; 3] = ["up-a", "up-b", "up-c"];
const REPORTS: &str = "reports.field.example.org";
const SUMMARIES: &str = "summaries.field.example.org";
/// The config that selects them.
const CONFIG: &str = "upward";

impl World {
    /// What is there before the syncer comes.
    pub fn found_the_field(&mut self) {
        for namespace in PLACES {
            self.edge
                .create("kubectl-create", "namespaces", "", namespace, json!({}));
        }
        self.write_upward_config();
        if self.habits.many {
            self.edge_creates_many();
        }
        for _ in 0..self.dice.u32(2..8) {
            self.field_creates();
        }
    }

    /// One deed.
    pub fn act_in_the_field(&mut self) {
        match self.dice.u32(0..100) {
            0..34 => self.field_creates(),
            34..50 => self.field_edits(),
            50..62 => self.field_deletes(),
            62..66 => self.field_recreates(),
            66..75 => self.field_reports_status(),
            75..81 => self.hub_takes_a_place(),
            81..86 => self.hub_edits_a_copy(),
            86..90 => self.hub_deletes_a_copy(),
            90..93 => self.hub_unmarks_a_copy(),
            93..96 => {
                let namespace = self.some(&PLACES);
                self.edge
                    .create("kubectl-create", "namespaces", "", namespace, json!({}));
            }
            96 if self.habits.namespaces => {
                let namespace = self.some(&PLACES);
                self.edge.delete(&Key::new("namespaces", "", namespace));
            }
            97 if self.habits.namespaces => {
                let namespace = self.some(&PLACES);
                self.hub.delete(&Key::new("namespaces", "", namespace));
            }
            98.. if self.habits.configs => self.write_upward_config(),
            _ => {}
        }
    }

    fn any_place(&mut self) -> Key {
        let (name, namespace) = (self.some(&NAMES), self.some(&PLACES));
        match self.dice.u32(0..5) {
            0 => Key::new(SUMMARIES, "", name),
            1 | 2 => Key::new(REPORTS, namespace, name),
            _ => Key::new("configmaps", namespace, name),
        }
    }

    /// Objects of the field on a side.
    fn in_the_field(&mut self, side: Side) -> Option<Key> {
        let server = self.server(side);
        let keys: Vec<Key> = {
            let store = server.store.borrow();
            let of = |ty: &str| store.of(ty, "").map(|(key, _)| key.clone()).collect::<Vec<_>>();
            let all = [REPORTS, SUMMARIES, "configmaps"].into_iter().flat_map(of);
            // Whatever the hub calls them.
            all.filter(|key| key.name.starts_with("up-")).collect()
        };
        self.pick(&keys)
    }

    fn field_creates(&mut self) {
        let key = self.any_place();
        self.field_creates_this(&key);
    }

    fn field_creates_this(&mut self, key: &Key) {
        let mut body = self.content(&key.resource);
        body["metadata"] = json!({"labels": {"from": "edge"}, "annotations": {"note": "n"}});
        match self.dice.u32(0..10) {
            0 => body["metadata"]["finalizers"] = json!(["edge.example.org/held"]),
            // As somebody does who copies a manifest from the hub.
            1 => {
                body["metadata"]["annotations"] = json!({"edge.kubestellar.io/upsynced": "ConfigMap/another/one"});
            }
            _ => {}
        }
        self.edge
            .create("kubectl-create", &key.resource, &key.namespace, &key.name, body);
    }

    fn field_edits(&mut self) {
        let Some(key) = self.in_the_field(Side::Edge) else {
            return;
        };
        let mut change = self.content(&key.resource);
        if &*key.resource == "configmaps" {
            let dropped = self.some(&["x", "y", "z"]);
            change["data"][dropped] = Value::Null;
        }
        match self.dice.u32(0..5) {
            0 => change["metadata"] = json!({"labels": {"tier": "front"}}),
            1 => change["metadata"] = json!({"labels": {"tier": null}, "annotations": {"note": null}}),
            _ => {}
        }
        self.edge.patch("kubectl-edit", &key, &change);
    }

    fn field_deletes(&mut self) {
        if let Some(key) = self.in_the_field(Side::Edge) {
            self.edge.delete(&key);
        }
    }

    fn field_recreates(&mut self) {
        if let Some(key) = self.in_the_field(Side::Edge) {
            self.edge.delete(&key);
            self.field_creates_this(&key);
        }
    }

    fn field_reports_status(&mut self) {
        if let Some(key) = self.in_the_field(Side::Edge) {
            let count = self.dice.u32(0..100);
            self.edge
                .patch_status("controller", &key, &json!({"status": {"found": count}}));
        }
    }

    /// Somebody at the hub makes an object of that name.
    fn hub_takes_a_place(&mut self) {
        let key = self.any_place();
        let body = self.content(&key.resource);
        if self.dice.bool() && !key.namespace.is_empty() {
            self.hub
                .create("kubectl-create", "namespaces", "", &key.namespace, json!({}));
        }
        self.hub
            .create("kubectl-create", &key.resource, &key.namespace, &key.name, body);
    }

    fn hub_edits_a_copy(&mut self) {
        if let Some(key) = self.in_the_field(Side::Hub) {
            let change = self.content(&key.resource);
            self.hub.patch("kubectl-edit", &key, &change);
        }
    }

    fn hub_deletes_a_copy(&mut self) {
        if let Some(key) = self.in_the_field(Side::Hub) {
            self.hub.delete(&key);
        }
    }

    fn hub_unmarks_a_copy(&mut self) {
        if let Some(key) = self.in_the_field(Side::Hub) {
            let mark = "edge.kubestellar.io/upsynced";
            let part = self.some(&["labels", "annotations"]);
            self.hub
                .patch("kubectl-label", &key, &json!({"metadata": {part: {mark: null}}}));
        }
    }

    /// Creates or replaces the config that selects what goes up.
    fn write_upward_config(&mut self) {
        let all = json!(["*"]);
        let resources = self.pick(&[json!(["*"]), json!(["reports", "summaries"]), json!(["reports"])]);
        let namespaces = self.pick(&[all.clone(), json!(["field", "yard"]), json!(PLACES)]);
        let names = self.pick(&[all, json!(["up-a", "up-b"])]);
        let places = self.pick(&[json!(["field"]), json!(["field", "shop"]), json!(["*"])]);
        let upsync = json!([
            {"apiGroup": "field.example.org", "resources": resources, "namespaces": namespaces, "names": names},
            {"resources": ["configmaps"], "namespaces": places, "names": NAMES},
        ]);
        let body = json!({"spec": {"upsync": upsync}});
        if self
            .hub
            .create("kubectl-create", CONFIGS, "", CONFIG, body.clone())
            .is_none()
        {
            self.hub.patch("kubectl-edit", &Key::new(CONFIGS, "", CONFIG), &body);
        }
    }

    /// Many objects at the edge, which a config of their own selects.
    fn edge_creates_many(&mut self) {
        let spec =
            json!({"spec": {"upsync": [{"resources": ["configmaps"], "namespaces": ["field"], "names": ["*"]}]}});
        self.hub.create("kubectl-create", CONFIGS, "", "many-up", spec);
        for index in 0..MANY {
            let body = self.content("configmaps");
            let name = format!("{MASS}-{index}");
            self.edge.create("kubectl-create", "configmaps", "field", &name, body);
        }
    }
}
