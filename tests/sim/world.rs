//! The model world: what people and controllers do on each side, by the dice.

use std::collections::BTreeMap;
use std::rc::Rc;

use edge_syncer::side::Side;
use fastrand::Rng;
use serde_json::{Value, json};

use super::ledger::BYSTANDER;
use super::namers::Namers;
use super::server::Server;
use super::store::Key;
use super::types::DEFINITIONS;

const NAMESPACES: [&str; 3] = ["billing", "plant", "shop"];
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const POISONS: [&str; 3] = ["poison-403", "poison-422", "poison-500"];
/// Namespaced types that are synced: plural with group, group, plural.
const NAMESPACED: [(&str, &str, &str); 3] = [
    ("configmaps", "", "configmaps"),
    (DEPLOYMENTS, "apps", "deployments"),
    ("gauges.example.org", "example.org", "gauges"),
];
const DEPLOYMENTS: &str = "deployments.apps";
const PANELS: &str = "panels.example.org";
/// Name, plural, kind, scope. Those that are synced to the edge come first.
const CRDS: [(&str, &str, &str, &str); 4] = [
    ("gauges.example.org", "gauges", "Gauge", "Namespaced"),
    (PANELS, "panels", "Panel", "Cluster"),
    ("reports.field.example.org", "reports", "Report", "Namespaced"),
    ("summaries.field.example.org", "summaries", "Summary", "Cluster"),
];
/// How many of them are synced to the edge.
const DOWNWARD: usize = 2;
/// Configs.
pub const CONFIGS: &str = "syncerconfigs.edge.kubestellar.io";
/// Says whether a copy is kept as the hub wants it.
pub const OVERWRITE: &str = "edge.kubestellar.io/downsync-overwrite";

/// What the people of a run are like.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent habits")]
pub struct Habits {
    /// They make objects that the edge refuses.
    pub poison: bool,
    /// They delete namespaces.
    pub namespaces: bool,
    /// They change what is selected.
    pub configs: bool,
    /// They edit and delete copies at the edge.
    pub edge: bool,
    /// They say that copies are to be preserved.
    pub create_only: bool,
    /// They delete and create again at once.
    pub recreate: bool,
    /// They have many objects.
    pub many: bool,
    /// They have objects at the edge that go up to the hub.
    pub upsync: bool,
}

/// The two sides and those who work there.
pub struct World {
    /// The hub.
    pub hub: Rc<Server>,
    /// The edge.
    pub edge: Rc<Server>,
    /// Chance of the world.
    pub dice: Rng,
    /// What people are like.
    pub habits: Habits,
    /// Edge objects that have nothing to do with the hub, as they were made.
    pub bystanders: BTreeMap<Key, Value>,
    /// Those who give objects other names, if there are any.
    pub namers: Option<Namers>,
    count: u32,
}

impl World {
    /// Nothing yet.
    pub fn new(hub: Rc<Server>, edge: Rc<Server>, dice: Rng, habits: Habits) -> Self {
        Self {
            hub,
            edge,
            dice,
            habits,
            bystanders: BTreeMap::new(),
            namers: None,
            count: 0,
        }
    }

    /// One of them, if there are any.
    pub(super) fn pick<T: Clone>(&mut self, items: &[T]) -> Option<T> {
        (!items.is_empty()).then(|| items[self.dice.usize(0..items.len())].clone())
    }

    /// One of them.
    pub(super) fn some<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.dice.usize(0..items.len())]
    }

    /// What is there before the syncer comes.
    pub fn found(&mut self) {
        for namespace in NAMESPACES {
            if self.dice.f64() < 0.8 {
                self.hub.create(
                    "kubectl-create",
                    "namespaces",
                    "",
                    namespace,
                    json!({"metadata": {"labels": {"team": namespace}}}),
                );
            }
            if self.dice.f64() < 0.3 {
                self.edge
                    .create("kubectl-create", "namespaces", "", namespace, json!({}));
            }
        }
        for index in 0..self.definitions().len() {
            self.define(Side::Hub, index);
            if index >= DOWNWARD || self.dice.f64() < 0.5 {
                self.define(Side::Edge, index);
            }
        }
        self.write_config("the-one");
        if self.habits.many {
            self.hub_creates_many();
        }
        for _ in 0..self.dice.u32(3..14) {
            self.hub_creates();
        }
        for _ in 0..self.dice.u32(0..4) {
            self.edge_creates();
        }
        if self.habits.upsync {
            self.found_the_field();
        }
        self.found_names();
    }

    /// The CRDs of this run.
    fn definitions(&self) -> &'static [(&'static str, &'static str, &'static str, &'static str)] {
        if self.habits.upsync { &CRDS } else { &CRDS[..DOWNWARD] }
    }

    /// One deed.
    pub fn act(&mut self) {
        self.change_names();
        let habits = self.habits;
        if habits.upsync && self.dice.bool() {
            self.act_in_the_field();
            return;
        }
        match self.dice.u32(0..100) {
            0..28 => self.hub_creates(),
            28..48 => self.hub_edits(),
            48..60 => self.hub_deletes(),
            60..64 if habits.recreate => self.hub_recreates(),
            64..67 if habits.namespaces => self.hub_deletes_namespace(),
            67..70 => self.hub_makes_namespace(),
            70..74 if habits.configs => self.changes_configs(),
            74..78 if habits.create_only => self.hub_says_create_only(),
            78..84 if habits.edge => self.edge_edits(),
            84..88 if habits.edge => self.edge_deletes(),
            88..91 if habits.edge => self.edge_unmarks(),
            91..96 => self.edge_controller(),
            96..98 => self.edge_creates(),
            _ => {}
        }
    }

    /// Ends what would keep the sides apart for ever: CRDs that are missing come back, finalizers come off.
    pub fn calm_down(&mut self) {
        for server in [Rc::clone(&self.hub), Rc::clone(&self.edge)] {
            let stuck: Vec<Key> = {
                let store = server.store.borrow();
                let stuck = store.all().filter(|(key, object)| {
                    &*key.resource != DEFINITIONS && object["metadata"]["finalizers"].is_array()
                });
                stuck.map(|(key, _)| key.clone()).collect()
            };
            for key in stuck {
                server.patch("kubectl-patch", &key, &json!({"metadata": {"finalizers": null}}));
            }
        }
    }

    /// Defines the types that both sides should have. False if a CRD is still on its way out, or not served yet.
    pub fn define_all(&mut self) -> bool {
        let mut defined = true;
        for side in [Side::Hub, Side::Edge] {
            for (index, definition) in self.definitions().iter().enumerate() {
                self.define(side, index);
                let key = Key::new(DEFINITIONS, "", definition.0);
                let store = self.server(side).store.borrow();
                let there = store.get(&key).is_some_and(|object| {
                    object["metadata"]["deletionTimestamp"].is_null() && object["status"].is_object()
                });
                drop(store);
                defined &= there;
            }
        }
        defined
    }

    /// One of the servers.
    pub(super) fn server(&self, side: Side) -> &Rc<Server> {
        match side {
            Side::Hub => &self.hub,
            Side::Edge => &self.edge,
        }
    }

    /// Creates a CRD.
    pub fn define(&mut self, side: Side, index: usize) {
        let (name, plural, kind, scope) = CRDS[index];
        let (_, group) = name.split_once('.').expect("the name of a CRD has its group");
        let spec = json!({
            "group": group, "scope": scope,
            "names": {"plural": plural, "singular": plural, "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        });
        self.server(side)
            .create("helm", DEFINITIONS, "", name, json!({"spec": spec}));
    }

    /// One of the types that have CRDs.
    pub fn any_custom_type(&mut self) -> &'static str {
        let definitions = self.definitions();
        definitions[self.dice.usize(0..definitions.len())].0
    }

    /// Deletes a CRD and all its objects.
    pub fn undefine(&mut self, side: Side) -> usize {
        let index = self.dice.usize(0..self.definitions().len());
        self.server(side).delete(&Key::new(DEFINITIONS, "", CRDS[index].0));
        index
    }

    /// What an object of that type holds, new each time.
    pub fn content(&mut self, resource: &str) -> Value {
        self.count += 1;
        let count = self.count;
        let key = self.some(&["x", "y", "z"]);
        match resource {
            "configmaps" => json!({"data": {"count": count.to_string(), key: "1"}}),
            DEPLOYMENTS => {
                json!({"spec": {"replicas": count, "template": {"spec": {"containers": [{"name": key}]}}}})
            }
            _ => json!({"spec": {"limit": count, "within": {key: [count]}}}),
        }
    }

    /// Objects of synced types on a side.
    pub fn objects(&self, side: Side) -> Vec<Key> {
        let store = self.server(side).store.borrow();
        let types = NAMESPACED.iter().map(|ty| ty.0).chain([PANELS]);
        let keys = types.flat_map(|ty| store.of(ty, "").map(|(key, _)| key.clone()));
        let is_of_its_side =
            |key: &Key| key.is_each_sides_own() || [BYSTANDER, "edge-syncer"].iter().any(|of| key.name.starts_with(of));
        keys.filter(|key| !is_of_its_side(key)).collect()
    }

    fn hub_object(&mut self) -> Option<Key> {
        let objects = self.objects(Side::Hub);
        self.pick(&objects)
    }

    fn edge_object(&mut self) -> Option<Key> {
        let objects = self.objects(Side::Edge);
        self.pick(&objects)
    }

    fn any_key(&mut self) -> Key {
        if self.dice.f64() < 0.15 {
            let name = self.some(&NAMES);
            return Key::new(PANELS, "", name);
        }
        let (ty, _, _) = self.some(&NAMESPACED);
        let poison = self.habits.poison && self.dice.f64() < 0.2;
        let name = if poison { self.some(&POISONS) } else { self.some(&NAMES) };
        let namespace = self.some(&NAMESPACES);
        Key::new(ty, namespace, name)
    }

    fn hub_creates(&mut self) {
        let key = self.any_key();
        self.hub_creates_this(&key);
    }

    fn hub_creates_this(&mut self, key: &Key) {
        let mut body = self.content(&key.resource);
        body["metadata"] = json!({"labels": {"from": "hub"}, "annotations": {"note": "n", "x.kcp.io/path": "p"}});
        if self.dice.f64() < 0.1 {
            body["metadata"]["finalizers"] = json!(["hub.example.org/held"]);
        }
        // An apply that leaves the replicas to an autoscaler.
        if &*key.resource == DEPLOYMENTS && self.count.is_multiple_of(3) && self.hub.store.borrow().get(key).is_none() {
            body["spec"].as_object_mut().map(|spec| spec.remove("replicas"));
            self.hub.apply_this("kubectl", key, body);
            return;
        }
        self.hub
            .create("kubectl-create", &key.resource, &key.namespace, &key.name, body);
    }

    fn hub_edits(&mut self) {
        let Some(key) = self.hub_object() else {
            return;
        };
        let mut change = self.content(&key.resource);
        if &*key.resource == "configmaps" {
            let dropped = self.some(&["x", "y", "z"]);
            change["data"][dropped] = Value::Null;
        }
        match self.dice.u32(0..6) {
            0 => change["metadata"] = json!({"labels": {"tier": "front"}}),
            1 => change["metadata"] = json!({"labels": {"tier": null}, "annotations": {"note": null}}),
            2 => change["metadata"] = json!({"finalizers": null}),
            _ => {}
        }
        self.hub.patch("kubectl-edit", &key, &change);
    }

    fn hub_deletes(&mut self) {
        if let Some(key) = self.hub_object() {
            self.hub.delete(&key);
        }
    }

    fn hub_recreates(&mut self) {
        if let Some(key) = self.hub_object() {
            self.hub.delete(&key);
            self.hub_creates_this(&key);
        }
    }

    fn hub_deletes_namespace(&mut self) {
        let namespace = self.some(&NAMESPACES);
        self.hub.delete(&Key::new("namespaces", "", namespace));
    }

    fn hub_makes_namespace(&mut self) {
        let namespace = self.some(&NAMESPACES);
        self.hub
            .create("kubectl-create", "namespaces", "", namespace, json!({}));
    }

    fn hub_says_create_only(&mut self) {
        if let Some(key) = self.hub_object() {
            let value = self.some(&[Some("false"), Some("true"), None]);
            let change = json!({"metadata": {"annotations": {OVERWRITE: value}}});
            self.hub.patch("kubectl-annotate", &key, &change);
        }
    }

    fn changes_configs(&mut self) {
        match self.dice.u32(0..4) {
            0 => {
                self.hub.delete(&Key::new(CONFIGS, "", "another"));
            }
            1 => self.write_config("another"),
            _ => self.write_config("the-one"),
        }
    }

    /// Creates or replaces a config.
    fn write_config(&mut self, name: &str) {
        let spec = self.any_spec();
        let key = Key::new(CONFIGS, "", name);
        let nothing = json!({"namespaceScope": null, "namespacedObjects": null, "clusterScope": null});
        let body = json!({"spec": spec});
        if self
            .hub
            .create("kubectl-create", CONFIGS, "", name, body.clone())
            .is_none()
        {
            let mut change = nothing;
            for (field, value) in spec.as_object().into_iter().flatten() {
                change[field] = value.clone();
            }
            self.hub.patch("kubectl-edit", &key, &json!({"spec": change}));
        }
    }

    fn any_names(&mut self) -> Value {
        if self.dice.f64() < 0.5 {
            return json!(["*"]);
        }
        let mut names: Vec<&str> = NAMES.to_vec();
        self.dice.shuffle(&mut names);
        names.truncate(self.dice.usize(1..4));
        if self.habits.poison {
            names.push(POISONS[1]);
        }
        json!(names)
    }

    fn any_spec(&mut self) -> Value {
        let mut items = Vec::new();
        for (_, group, resource) in NAMESPACED {
            let mut by_namespace = Vec::new();
            for namespace in NAMESPACES {
                if self.dice.f64() < 0.6 {
                    let names = self.any_names();
                    by_namespace.push(json!({"namespace": namespace, "names": names}));
                }
            }
            items.push(
                json!({"group": group, "resource": resource, "apiVersion": "v1", "objectsByNamespace": by_namespace}),
            );
        }
        let mut cluster = vec![
            json!({"group": "apiextensions.k8s.io", "resource": "customresourcedefinitions", "apiVersion": "v1",
            "objects": CRDS[..DOWNWARD].iter().map(|definition| definition.0).collect::<Vec<_>>()}),
        ];
        let mut panels = json!({"group": "example.org", "resource": "panels", "apiVersion": "v1"});
        if self.dice.bool() {
            panels["objects"] = self.any_names();
        }
        cluster.push(panels);
        if self.dice.f64() < 0.3 {
            cluster
                .push(json!({"group": "", "resource": "namespaces", "apiVersion": "v1", "objects": ["shop", "plant"]}));
        }
        let mut spec = json!({"namespacedObjects": items, "clusterScope": cluster});
        if self.dice.f64() < 0.2 {
            spec["namespaceScope"] = json!({"namespaces": ["plant"],
                "resources": [{"group": "", "resource": "configmaps", "apiVersion": "v1"}]});
        }
        spec
    }

    fn edge_edits(&mut self) {
        if let Some(key) = self.edge_object() {
            let change = self.content(&key.resource);
            self.edge.patch("kubectl-edit", &key, &change);
        }
    }

    fn edge_deletes(&mut self) {
        if let Some(key) = self.edge_object() {
            self.edge.delete(&key);
        }
    }

    fn edge_unmarks(&mut self) {
        if let Some(key) = self.edge_object() {
            let mark = "edge.kubestellar.io/downsynced";
            let change = if self.dice.bool() {
                json!({"metadata": {"labels": {mark: null}}})
            } else {
                json!({"metadata": {"annotations": {mark: null}}})
            };
            self.edge.patch("kubectl-label", &key, &change);
        }
    }

    /// What controllers at the edge do to any object: annotations, status, finalizers.
    fn edge_controller(&mut self) {
        let Some(key) = self.edge_object() else {
            return;
        };
        self.count += 1;
        let count = self.count;
        match self.dice.u32(0..4) {
            0 if &*key.resource == DEPLOYMENTS && !self.edge.ledger.borrow().wants_replicas(&key) => {
                self.edge.scale(&key, 1000 + count);
            }
            0 => {
                let change = json!({"metadata": {"annotations": {"controller.example.org/seen": count.to_string()}}});
                self.edge.patch("controller", &key, &change);
            }
            1 => {
                let change = json!({"metadata": {"finalizers": ["controller.example.org/held"]}});
                self.edge.patch("controller", &key, &change);
            }
            2 => {
                self.edge
                    .patch("controller", &key, &json!({"metadata": {"finalizers": null}}));
            }
            _ => {
                self.edge
                    .patch_status("controller", &key, &json!({"status": {"observed": count}}));
            }
        }
    }

    /// Makes an object at the edge: one that has nothing to do with the hub, or one that is in its way.
    fn edge_creates(&mut self) {
        let mut key = self.any_key();
        let is_bystander = self.dice.f64() < 0.6;
        if is_bystander {
            let name = format!("{BYSTANDER}-{}", key.name);
            key = Key::new(&key.resource, &key.namespace, &name);
            if self.dice.bool() {
                key = Key::new("configmaps", "default", &name);
            }
        }
        let mut body = self.content(&key.resource);
        if self.dice.bool() {
            // As a controller copies them from another object.
            body["metadata"] = json!({"labels": {"edge.kubestellar.io/downsynced": "true"},
                "annotations": {"edge.kubestellar.io/downsynced": "Deployment/shop/another"}});
        }
        let made = self
            .edge
            .create("kubectl-create", &key.resource, &key.namespace, &key.name, body);
        let Some(made) = made else { return };
        let uid = &made["metadata"]["uid"];
        let text = uid.as_str().unwrap_or_default().to_owned();
        self.edge.ledger.borrow_mut().theirs.insert(text);
        if is_bystander {
            self.bystanders.insert(key, uid.clone());
        }
    }

    /// Deletes a namespace at the edge, one of whose objects may refuse to go for a while.
    pub fn edge_deletes_namespace(&mut self) {
        let namespace = self.some(&NAMESPACES);
        let inside: Vec<Key> = self
            .objects(Side::Edge)
            .into_iter()
            .filter(|key| &*key.namespace == namespace)
            .collect();
        if self.dice.bool()
            && let Some(key) = self.pick(&inside)
        {
            let change = json!({"metadata": {"finalizers": ["controller.example.org/held"]}});
            self.edge.patch("controller", &key, &change);
        }
        self.edge.delete(&Key::new("namespaces", "", namespace));
    }
}
