//! All that the simulated kcp knows: workspaces with their objects, and what has changed since when.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use super::exports::Shown;
use super::faults::Faults;
use super::kinds::{Kind, always};
use super::request::Scope;
use super::workspaces::Step;
use crate::support::AuditEvent;

/// Group, plural, namespace and name.
pub(crate) type Key = (String, String, String, String);

/// A workspace.
pub(crate) struct Cluster {
    pub(crate) id: String,
    pub(crate) path: String,
    /// Who has made it, and may do everything in it.
    pub(crate) creator: String,
    /// The shard that it is on.
    pub(crate) shard: usize,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) objects: BTreeMap<Key, Arc<Value>>,
    /// What happens to it by itself, and when.
    pub(crate) steps: Vec<(Instant, Step)>,
}

impl Cluster {
    /// The objects of a type in a namespace.
    pub(crate) fn of<'a>(
        &'a self,
        group: &'a str,
        resource: &'a str,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Value> {
        let found = self.objects.iter().filter(move |((of_group, plural, space, _), _)| {
            of_group == group && plural == resource && space == namespace
        });
        found.map(|(_, object)| &**object)
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Value> {
        self.objects.get(key).map(|object| &**object)
    }

    /// Its own `LogicalCluster`.
    pub(crate) fn logical(&self) -> Option<&Value> {
        self.get(&logical_key())
    }
}

/// Where the `LogicalCluster` of a workspace is.
pub(crate) fn logical_key() -> Key {
    key("core.kcp.io", "logicalclusters", "", "cluster")
}

pub(crate) fn key(group: &str, resource: &str, namespace: &str, name: &str) -> Key {
    (
        group.to_owned(),
        resource.to_owned(),
        namespace.to_owned(),
        name.to_owned(),
    )
}

/// Something that was written.
pub(crate) struct Change {
    pub(crate) version: u64,
    pub(crate) at: Instant,
    pub(crate) cluster: String,
    pub(crate) shard: usize,
    pub(crate) key: Key,
    pub(crate) before: Option<Arc<Value>>,
    pub(crate) after: Option<Arc<Value>>,
}

/// How long things take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// Until a workspace that is new is in phase `Initializing`.
    pub(crate) scheduled: Duration,
    /// Until what kcp itself does in a new workspace is done.
    pub(crate) bound: Duration,
    /// Until discovery lists the type of a new CRD, and until requests for it are answered.
    pub(crate) listed: Duration,
    pub(crate) served: Duration,
    /// How long a refused `initialize` is remembered.
    pub(crate) refused: Duration,
    /// How often watches give bookmarks.
    pub(crate) bookmarks: Duration,
    /// Until the virtual workspace of an export serves a type that its discovery lists.
    pub(crate) exported: Duration,
}

impl Default for Times {
    fn default() -> Self {
        let millis = Duration::from_millis;
        Self {
            scheduled: millis(100),
            bound: millis(400),
            listed: millis(300),
            served: millis(500),
            refused: millis(1_000),
            bookmarks: millis(1_000),
            exported: millis(700),
        }
    }
}

/// See the module's doc.
pub(crate) struct State {
    /// By id.
    pub(crate) clusters: BTreeMap<String, Cluster>,
    pub(crate) version: u64,
    pub(crate) log: Vec<Change>,
    /// Nothing is known of changes up to this version.
    pub(crate) compacted: u64,
    pub(crate) changed: watch::Sender<u64>,
    pub(crate) times: Times,
    pub(crate) faults: Faults,
    pub(crate) audit: Vec<AuditEvent>,
    /// The paths of watches, with what lives as long as they are open.
    pub(crate) open: Vec<(String, Weak<()>)>,
    /// Who may not initialize which type, and until when that is remembered.
    pub(crate) refused: HashMap<(String, String), Instant>,
    /// The export that a workspace has a type of, by id, group and plural: the id of its workspace, and its name.
    pub(crate) bound: BTreeMap<(String, String, String), (String, String)>,
    /// Since when the virtual workspace of an export serves a type, by those of the export and of the type.
    pub(crate) exported: BTreeMap<[String; 4], Instant>,
    /// Watches that were opened before this number was raised end.
    pub(crate) watches_cut: u64,
    /// The URLs of the shards.
    pub(crate) shards: Vec<String>,
    pub(crate) next: usize,
}

impl State {
    pub(crate) fn new(shards: Vec<String>) -> Self {
        let mut state = Self {
            clusters: BTreeMap::new(),
            version: 100,
            log: Vec::new(),
            compacted: 0,
            changed: watch::Sender::new(0),
            times: Times::default(),
            faults: Faults::default(),
            audit: Vec::new(),
            open: Vec::new(),
            refused: HashMap::new(),
            bound: BTreeMap::new(),
            exported: BTreeMap::new(),
            watches_cut: 0,
            shards,
            next: 0,
        };
        state.add_cluster("root", "root", super::rights::ADMIN, 0);
        state
    }

    pub(crate) fn add_cluster(&mut self, id: &str, path: &str, creator: &str, shard: usize) {
        let cluster = Cluster {
            id: id.to_owned(),
            path: path.to_owned(),
            creator: creator.to_owned(),
            shard,
            kinds: always(),
            objects: BTreeMap::new(),
            steps: Vec::new(),
        };
        self.clusters.insert(id.to_owned(), cluster);
    }

    /// The id of a workspace, by its path or its id.
    pub(crate) fn id_of(&self, path_or_id: &str) -> Option<String> {
        let found = self.clusters.values();
        let mut found = found.filter(|cluster| cluster.path == path_or_id || cluster.id == path_or_id);
        found.next().map(|cluster| cluster.id.clone())
    }

    /// Writes an object, or removes it, and gives it as stored. A write that changes nothing makes no version.
    pub(crate) fn put(&mut self, id: &str, key: &Key, object: Option<Value>) -> Option<Arc<Value>> {
        let cluster = self.clusters.get_mut(id)?;
        let before = cluster.objects.get(key).cloned();
        if object.is_none() && before.is_none() || before.as_deref() == object.as_ref() && object.is_some() {
            return before;
        }
        self.version += 1;
        let after = object.map(|mut object| {
            object["metadata"]["resourceVersion"] = json!(self.version.to_string());
            Arc::new(object)
        });
        match &after {
            Some(object) => cluster.objects.insert(key.clone(), Arc::clone(object)),
            None => cluster.objects.remove(key),
        };
        self.log.push(Change {
            version: self.version,
            at: Instant::now(),
            cluster: id.to_owned(),
            shard: cluster.shard,
            key: key.clone(),
            before,
            after: after.clone(),
        });
        self.changed.send_replace(self.version);
        after
    }

    /// Changes an object that is there.
    pub(crate) fn edit(&mut self, id: &str, key: &Key, change: impl FnOnce(&mut Value)) {
        let found = self.clusters.get(id).and_then(|cluster| cluster.get(key));
        if let Some(mut object) = found.cloned() {
            change(&mut object);
            self.put(id, key, Some(object));
        }
    }

    /// What a list gives, and its version. A stale one is from a while ago.
    pub(crate) fn list(&self, scope: &Scope) -> (Vec<Value>, u64) {
        let mut found: BTreeMap<(&str, &Key), Arc<Value>> = BTreeMap::new();
        for cluster in self.clusters.values() {
            for (key, object) in &cluster.objects {
                found.insert((&cluster.id, key), Arc::clone(object));
            }
        }
        let mut version = self.version;
        let stale = Instant::now() - self.faults.stale;
        for change in self.log.iter().rev() {
            // A store that is behind is not behind what clients know to be compacted.
            if self.faults.stale.is_zero() || change.at <= stale || change.version <= self.compacted {
                break;
            }
            version = change.version - 1;
            let at = (change.cluster.as_str(), &change.key);
            match &change.before {
                Some(object) => found.insert(at, Arc::clone(object)),
                None => found.remove(&at),
            };
        }
        let items = found.iter().filter(|((id, key), object)| {
            let shard = self.clusters.get(*id).map_or(0, |cluster| cluster.shard);
            scope.holds(id, shard, key, object) && self.shows(scope, id, shard, key, object)
        });
        (items.map(|(_, object)| scope.shown(object)).collect(), version)
    }

    /// Whether the virtual workspace of an export, if it is about one, shows an object.
    fn shows(&self, scope: &Scope, id: &str, shard: usize, key: &Key, object: &Value) -> bool {
        let Some((shown, of_shard)) = &scope.through else {
            return true;
        };
        let of_type = (id.to_owned(), key.0.clone(), key.1.clone());
        of_shard.is_none_or(|of_shard| of_shard == shard)
            && match shown {
                Shown::Bindings(export) => super::exports::bound_by(self, object).as_ref() == Some(export),
                Shown::Exported(export) => self.bound.get(&of_type) == Some(export),
                Shown::Claimed(label) => object["metadata"]["labels"][label].is_string(),
            }
    }

    /// The lines that a watch gives after a version.
    pub(crate) fn events(&self, scope: &Scope, since: u64) -> Vec<Value> {
        let first = self.log.partition_point(|change| change.version <= since);
        let events = self.log[first..].iter().filter_map(|change| {
            let holds = |object: &Option<Arc<Value>>| {
                let object = object.as_ref()?;
                let (id, shard, key) = (&change.cluster, change.shard, &change.key);
                let holds = scope.holds(id, shard, key, object) && self.shows(scope, id, shard, key, object);
                holds.then(|| scope.shown(object))
            };
            let (what, mut object) = match (holds(&change.before), holds(&change.after)) {
                (None, None) => return None,
                (None, Some(object)) => ("ADDED", object),
                (Some(_), Some(object)) => ("MODIFIED", object),
                (Some(object), None) => ("DELETED", object),
            };
            object["metadata"]["resourceVersion"] = json!(change.version.to_string());
            Some(json!({"type": what, "object": object}))
        });
        events.collect()
    }
}

impl Scope {
    fn holds(&self, id: &str, shard: usize, (group, resource, namespace, name): &Key, object: &Value) -> bool {
        *group == self.group
            && *resource == self.resource
            && self.cluster.as_ref().is_none_or(|cluster| cluster == id)
            && (self.namespace.is_empty() || *namespace == self.namespace)
            && matches_labels(&self.labels, object)
            && matches_fields(&self.fields, name, namespace)
            && self.waits_for.as_ref().is_none_or(|(initializer, of_shard)| {
                of_shard.is_none_or(|of_shard| of_shard == shard) && waits(object, initializer)
            })
    }

    /// An object in the version that is asked for.
    fn shown(&self, object: &Value) -> Value {
        let mut object = object.clone();
        object["apiVersion"] = json!(if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        });
        object
    }
}

/// Whether a `LogicalCluster` is being initialized and waits for this initializer.
pub(crate) fn waits(logical: &Value, initializer: &str) -> bool {
    let initializers = logical["status"]["initializers"].as_array();
    logical["status"]["phase"] == "Initializing" && initializers.into_iter().flatten().any(|one| *one == *initializer)
}

/// A label selector: `a`, `!a`, `a=b`, `a==b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`.
pub(crate) fn matches_labels(selector: &str, object: &Value) -> bool {
    let label = |key: &str| object["metadata"]["labels"][key.trim()].as_str();
    let mut depth = 0_i32;
    let parts = selector.split(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).all(|part| {
        let listed = |list: &str, value: &str| {
            list.trim_matches(['(', ')', ' '])
                .split(',')
                .any(|one| one.trim() == value)
        };
        if let Some((key, list)) = part.split_once(" notin ") {
            label(key).is_none_or(|value| !listed(list, value))
        } else if let Some((key, list)) = part.split_once(" in ") {
            label(key).is_some_and(|value| listed(list, value))
        } else if let Some((key, value)) = part.split_once("!=") {
            label(key) != Some(value.trim())
        } else if let Some((key, value)) = part.split_once('=') {
            label(key) == Some(value.trim_start_matches('=').trim())
        } else if let Some(key) = part.strip_prefix('!') {
            label(key).is_none()
        } else {
            label(part).is_some()
        }
    })
}

fn matches_fields(selector: &str, name: &str, namespace: &str) -> bool {
    selector
        .split(',')
        .filter_map(|part| part.split_once('='))
        .all(|(field, value)| match field {
            "metadata.name" => value.trim_start_matches('=') == name,
            "metadata.namespace" => value.trim_start_matches('=') == namespace,
            _ => false,
        })
}
