//! A versioned store of objects, as etcd is to an API server: every write has a version, and the past can be read until
//! it is compacted.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::types;

/// What each side puts into every namespace by itself, and what is right on that side alone.
pub const ROOT_CERTIFICATE: &str = "kube-root-ca.crt";

/// An object as it was stored. Shared, never changed.
pub type Object = Rc<Value>;

/// What identifies an object on one side: type (`gauges.example.org`), namespace (empty if it has none), name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// `resource.group`, or the plural alone for the core group.
    pub resource: Rc<str>,
    /// Namespace, or empty.
    pub namespace: Rc<str>,
    /// Name.
    pub name: Rc<str>,
}

impl Key {
    /// A key from its parts.
    pub fn new(resource: &str, namespace: &str, name: &str) -> Self {
        Self {
            resource: resource.into(),
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// True for what each side puts into every namespace by itself.
    pub fn is_each_sides_own(&self) -> bool {
        &*self.resource == "configmaps" && &*self.name == ROOT_CERTIFICATE
    }

    /// The namespace object that this object lies in, if it lies in one.
    pub fn home(&self) -> Option<Self> {
        (!self.namespace.is_empty()).then(|| Self::new("namespaces", "", &self.namespace))
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.resource, self.namespace, self.name)
    }
}

/// One write.
#[derive(Clone)]
pub struct Change {
    /// The version that it made.
    pub version: u64,
    /// When.
    pub at: Instant,
    /// What was written.
    pub key: Key,
    /// The object before, if there was one.
    pub before: Option<Object>,
    /// The object after; when deleted, its last state at the version of the deletion.
    pub after: Option<Object>,
}

/// The objects of one side and how they came to be.
#[derive(Clone)]
pub struct Store {
    version: u64,
    objects: BTreeMap<Key, Object>,
    log: Vec<Change>,
    /// Nothing older than this can be read or watched any more.
    compacted: u64,
    /// Beginning of every UID given here, so that two stores never give the same.
    uids: String,
    next_uid: u64,
    /// It has the controllers that put something into each new namespace.
    pub fills_namespaces: bool,
    /// Built-in types, by their plurals, that this side does not serve.
    pub lacks: BTreeSet<&'static str>,
    /// Custom types, `resource.group`, that are not served for now, whose objects are kept; and since when.
    pub hidden: BTreeMap<String, Instant>,
}

impl Store {
    /// An empty store whose UIDs are made from `uids`.
    pub fn new(uids: &str, version: u64) -> Self {
        Self {
            version,
            objects: BTreeMap::new(),
            log: Vec::new(),
            compacted: version,
            uids: uids.to_owned(),
            next_uid: 0,
            fills_namespaces: true,
            lacks: BTreeSet::from([types::EDGES]),
            hidden: BTreeMap::new(),
        }
    }

    /// Another cluster, with nothing in it but the namespace that it is known by.
    pub fn another(version: u64) -> Self {
        let mut other = Self::new("other", version);
        let meta = json!({"name": "default", "uid": other.new_uid()});
        let default = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": meta});
        other.put(&Key::new("namespaces", "", "default"), default);
        other
    }

    /// What this side puts into a new namespace.
    pub fn root_certificate(&mut self, namespace: &str) {
        let meta = json!({"namespace": namespace, "name": ROOT_CERTIFICATE, "uid": self.new_uid()});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"ca.crt": self.uids}});
        self.put(&Key::new("configmaps", namespace, ROOT_CERTIFICATE), object);
    }

    /// The same, giving other UIDs from now on.
    pub fn with_uids(mut self, uids: &str) -> Self {
        uids.clone_into(&mut self.uids);
        self
    }

    /// The version of the latest write.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Others write so much.
    pub fn skip(&mut self, versions: u64) {
        self.version += versions;
    }

    /// The version that was the latest at that moment, if it can still be read.
    pub fn version_then(&self, moment: Instant) -> u64 {
        let later = self.log.partition_point(|change| change.at <= moment);
        let version = self.log.get(later).map_or(self.version, |change| change.version - 1);
        version.max(self.compacted)
    }

    /// The oldest version that can be read.
    pub fn compacted(&self) -> u64 {
        self.compacted
    }

    /// Forgets the past up to now.
    pub fn compact(&mut self) {
        self.compacted = self.version;
    }

    /// A UID that was never given before.
    pub fn new_uid(&mut self) -> String {
        self.next_uid += 1;
        let mut hasher = DefaultHasher::new();
        self.uids.hash(&mut hasher);
        let of_side = hasher.finish() >> 32;
        format!("{of_side:08x}-0000-4000-8000-{:012x}", self.next_uid)
    }

    /// One object as it is now.
    pub fn get(&self, key: &Key) -> Option<&Object> {
        self.objects.get(key)
    }

    /// Objects of a type, in one namespace or in all if that is empty.
    pub fn of<'a>(&'a self, resource: &str, namespace: &str) -> impl Iterator<Item = (&'a Key, &'a Object)> {
        in_range(&self.objects, resource, namespace)
    }

    /// All objects.
    pub fn all(&self) -> impl Iterator<Item = (&Key, &Object)> {
        self.objects.iter()
    }

    /// All objects as they are now.
    pub fn objects(&self) -> &BTreeMap<Key, Object> {
        &self.objects
    }

    /// All objects as they were at `version`. `None` if that is compacted.
    pub fn at(&self, version: u64) -> Option<BTreeMap<Key, Object>> {
        if version < self.compacted {
            return None;
        }
        let mut objects = self.objects.clone();
        for change in self.log.iter().rev().take_while(|change| change.version > version) {
            match &change.before {
                Some(before) => objects.insert(change.key.clone(), Rc::clone(before)),
                None => objects.remove(&change.key),
            };
        }
        Some(objects)
    }

    /// The writes after `version`, oldest first.
    pub fn since(&self, version: u64) -> &[Change] {
        let start = self.log.partition_point(|change| change.version <= version);
        &self.log[start..]
    }

    /// Writes an object. Gives it as stored.
    pub fn put(&mut self, key: &Key, mut object: Value) -> Object {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let object = Rc::new(object);
        let before = self.objects.insert(key.clone(), Rc::clone(&object));
        self.record(key, before, Some(Rc::clone(&object)));
        object
    }

    /// Deletes an object.
    pub fn remove(&mut self, key: &Key) {
        let Some(before) = self.objects.remove(key) else {
            return;
        };
        self.version += 1;
        self.record(key, Some(before), None);
    }

    fn record(&mut self, key: &Key, before: Option<Object>, after: Option<Object>) {
        self.log.push(Change {
            version: self.version,
            at: Instant::now(),
            key: key.clone(),
            before,
            after,
        });
    }
}

/// Objects of a type among `objects`, in one namespace or in all if that is empty.
pub fn in_range<'a>(
    objects: &'a BTreeMap<Key, Object>,
    resource: &str,
    namespace: &str,
) -> impl Iterator<Item = (&'a Key, &'a Object)> {
    let first = Key::new(resource, namespace, "");
    let namespace = namespace.to_owned();
    objects
        .range(first.clone()..)
        .take_while(move |(key, _)| key.resource == first.resource)
        .filter(move |(key, _)| namespace.is_empty() || *key.namespace == *namespace)
}
