//! One object as JSON: its metadata, its cleaned form for the other side, and the hashes of that and of its status.
//!
//! Bodies are handled as raw JSON slices; only metadata is taken apart. A hash covers the server's own serialization,
//! which is stable for an unchanged object; where it is not (another server version), the cost is one apply that
//! changes nothing.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::pull_secrets;
use crate::api::{
    ADOPTED, DOWNSYNCED, DOWNSYNCED_LABEL_VALUE, OWNER, PULL_SECRETS, RENAMED_FROM, REPLACE, SOURCE, UPSYNCED,
};
use crate::bounded::at_most;
use crate::cluster::{Error, LONGEST_VERSION, ObjectName, ResourceType, is_path_segment, is_word};
use crate::plan::{Direction, Selection};
use crate::sync::canonical::canonical_hash;
use crate::sync::duplicates::Duplicates;
use crate::sync::kinds;
use crate::sync::managed_fields::is_syncer;
use crate::sync::ownership::{Copy, CopyState, Owner, SyncTarget, has_mark, is_hands_off, mark, origin_hash};

/// More metadata is no API server's: beside annotations, of which they take 256 KiB, there are labels and field managers.
/// It is checked of larger objects alone.
const METADATA_LIMIT: usize = 2 << 20;
/// More owners than anything has.
const MOST_OWNERS: usize = 10_000;

/// The metadata fields that decisions need.
#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// Name.
    pub name: String,
    /// Namespace; empty for cluster-scoped objects.
    #[serde(default)]
    pub namespace: String,
    /// UID.
    #[serde(default)]
    pub uid: String,
    /// Resource version.
    #[serde(default)]
    pub resource_version: String,
    /// When deletion was asked for, if it was.
    #[serde(default)]
    pub deletion_timestamp: Option<String>,
    /// Labels.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// This syncer or the Go syncer is among its field managers, or it has none: one of the two has written it. The Go
    /// syncer's updates empty the list; whatever else creates or changes an object is in it.
    #[serde(default = "yes", rename = "managedFields", deserialize_with = "names_a_syncer")]
    pub by_syncer: bool,
    /// A workload or a Service has made it and takes it along (`controller: true` in its `ownerReferences`).
    #[serde(default, rename = "ownerReferences", deserialize_with = "names_a_workload")]
    pub of_workload: bool,
}

fn null_is_empty<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn yes() -> bool {
    true
}

fn names_a_syncer<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    struct Entry<'a> {
        #[serde(default, borrow)]
        manager: Cow<'a, str>,
    }
    let entries: Option<Vec<Entry>> = Option::deserialize(deserializer)?;
    let entries = entries.unwrap_or_default();
    Ok(entries.is_empty() || entries.iter().any(|entry| is_syncer(&entry.manager)))
}

/// Controllers that own what they make, all of them namespaced and built in: what they own goes with them.
fn names_a_workload<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    const WORKLOADS: [(&str, &[&str]); 3] = [
        ("apps", &["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"]),
        ("batch", &["CronJob", "Job"]),
        ("v1", &["Pod", "ReplicationController", "Service"]),
    ];
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Reference<'a> {
        #[serde(default, borrow)]
        api_version: Cow<'a, str>,
        #[serde(default, borrow)]
        kind: Cow<'a, str>,
        #[serde(default)]
        controller: Option<bool>,
    }
    let is_workload = |owner: Reference<'_>| {
        let group = owner.api_version.split('/').next().unwrap_or_default();
        let known = WORKLOADS.iter().find(|(known, _)| *known == group);
        owner.controller == Some(true) && known.is_some_and(|(_, kinds)| kinds.contains(&&*owner.kind))
    };
    let owners: Vec<Reference> = at_most::<_, _, MOST_OWNERS>(deserializer)?;
    Ok(owners.into_iter().any(is_workload))
}

impl Meta {
    /// Reads the metadata of an object.
    pub fn parse(object: &[u8]) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Wire {
            metadata: Meta,
        }
        #[derive(Deserialize)]
        struct Raw<'a> {
            #[serde(borrow)]
            metadata: &'a RawValue,
        }
        if object.len() > METADATA_LIMIT {
            let raw: Raw = serde_json::from_slice(object).map_err(|error| bad(&error))?;
            if raw.metadata.get().len() > METADATA_LIMIT {
                let why = format!("an object with more than {METADATA_LIMIT} bytes of metadata");
                return Err(Error::BadAnswer(why));
            }
        }
        let wire: Wire = serde_json::from_slice(object).map_err(|error| bad(&error))?;
        wire.metadata.checked()
    }

    /// The same, if it can be what an API server says: names become paths, and the UID a part of annotations.
    fn checked(self) -> Result<Self, Error> {
        let wrong = match () {
            () if !is_path_segment(&self.name) => ("name", &self.name),
            () if !(self.namespace.is_empty() || is_path_segment(&self.namespace)) => ("namespace", &self.namespace),
            () if !(self.uid.is_empty() || is_word(&self.uid)) => ("UID", &self.uid),
            () if self.resource_version.len() > LONGEST_VERSION => ("resourceVersion", &self.resource_version),
            () => return Ok(self),
        };
        let (field, text) = wrong;
        let text: String = text.chars().take(100).collect();
        Err(Error::BadAnswer(format!("an object with the {field} {text:?}")))
    }

    /// Reads the metadata of an answer that has to be about `name`: one about anything else, such as a proxy's page with
    /// status 200, is no answer.
    pub fn of(name: &ObjectName, answer: &[u8]) -> Result<Self, Error> {
        let meta = Self::parse(answer)?;
        let got = meta.object_name();
        if got == *name {
            Ok(meta)
        } else {
            Err(Error::BadAnswer(format!("asked for {name:?}, got {got:?}")))
        }
    }

    /// Namespace and name.
    pub fn object_name(&self) -> ObjectName {
        ObjectName::new(&self.namespace, &self.name)
    }

    /// Its marks as a copy of that direction and type.
    pub fn copy(&self, direction: Direction, resource: &ResourceType, we: &SyncTarget) -> Copy {
        Copy::of(direction, resource, self, we)
    }

    /// True if it is a copy that this syncer has made in that direction.
    pub fn is_ours(&self, direction: Direction, resource: &ResourceType, we: &SyncTarget) -> bool {
        self.copy(direction, resource, we).state == CopyState::Ours
    }

    /// True if any syncer has made it in that direction.
    pub fn is_copy_of(&self, direction: Direction, kind: &str) -> bool {
        has_mark(direction, kind, self)
    }

    /// The sync target whose copy it says it is, where its owner mark says so.
    pub fn sync_target(&self) -> Option<&str> {
        Owner::of(&self.annotations).map(|owner| owner.sync_target)
    }

    /// True if it carries the label that selects the copies of that direction.
    pub fn is_labelled(&self, direction: Direction) -> bool {
        self.labels
            .get(mark(direction))
            .is_some_and(|value| value == DOWNSYNCED_LABEL_VALUE)
    }

    /// The kind with its group, and the name, of the object that a conversion made this copy from.
    pub fn renamed_from(&self) -> Option<(&str, &str)> {
        self.annotations.get(RENAMED_FROM)?.split_once('/')
    }

    /// The resource version as a number that grows, which it is on every known server; 0 where it is not.
    pub fn version_number(&self) -> u64 {
        self.resource_version.parse().unwrap_or(0)
    }
}

fn bad(error: &serde_json::Error) -> Error {
    Error::BadAnswer(format!("an object: {error}"))
}

/// An object of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Its type there.
    pub resource: ResourceType,
    /// Its name there.
    pub name: ObjectName,
}

impl Address {
    /// `Kind/namespace/name`.
    pub fn for_people(&self) -> String {
        self.name.of_kind(&self.resource.kind).to_string()
    }
}

/// What the copy is to be: the cleaned origin, not yet marked.
#[derive(Debug)]
pub struct Desired {
    /// Hash of all that is enforced in the copy, and of which object it is. Never 0.
    pub hash: u64,
    /// UID of the origin; empty if it has none.
    pub origin: String,
    /// Resource version of the origin; 0 if that is no number.
    pub version: u64,
    /// The origin is a Job whose status says that it has finished.
    pub finished: bool,
    /// The origin's `downsync-overwrite` says to create once and then leave alone.
    pub hands_off: bool,
    /// A copy that cannot be updated may be deleted and created again.
    pub replace: bool,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    /// `"key":value` for every top-level field that travels, each with a leading comma.
    pub(super) fields: String,
    /// What of it is set by a patch after an apply.
    duplicates: Duplicates,
}

impl Desired {
    /// Cleans an origin for its copy (spec 3.4, 3.8, 4). `None` if it belongs to its own side alone.
    pub fn from_origin(
        origin: &Address,
        copy: &Address,
        selection: Selection,
        object: &[u8],
    ) -> Result<Option<Self>, Error> {
        let mut desired = Self {
            hash: 0,
            origin: String::new(),
            version: 0,
            finished: false,
            hands_off: false,
            replace: false,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            fields: String::new(),
            duplicates: Duplicates::default(),
        };
        let meta = Meta::parse(object)?;
        desired.version = meta.version_number();
        if selection != Selection::Implied {
            let resource = &origin.resource;
            let top: BTreeMap<String, &RawValue> = serde_json::from_slice(object).map_err(|error| bad(&error))?;
            if is_system_object(resource, &meta, &top) {
                return Ok(None);
            }
            desired.fields = kinds::travelling_fields(resource, &top)?;
            desired.finished = kinds::has_finished(resource, top.get("status").copied());
            desired.hands_off = is_hands_off(&meta.annotations);
            (desired.labels, desired.annotations) = (meta.labels, meta.annotations);
            desired
                .labels
                .retain(|key, _| travels(key) && kinds::label_travels(resource, key));
            desired
                .annotations
                .retain(|key, _| travels(key) && kinds::annotation_travels(resource, key));
            desired.replace = desired.annotations.get(REPLACE).is_some_and(|value| value == "true");
        }
        if origin.name != copy.name || origin.resource.kind != copy.resource.kind {
            desired.rename(origin, copy)?;
        }
        desired.made_from(meta.uid);
        desired.duplicates = Duplicates::settle(&copy.resource, &mut desired.fields);
        Ok(Some(desired))
    }

    /// What an origin with the UID `origin` wants whose copy has this content.
    pub fn made_from(&mut self, origin: String) {
        let mut hasher = DefaultHasher::new();
        hasher.write(json!([origin, self.labels, self.annotations]).to_string().as_bytes());
        hasher.write(self.fields.as_bytes());
        self.hash = hasher.finish().max(1);
        self.origin = origin;
    }

    /// True if a copy was made from another object of the same name, which was deleted since.
    pub fn is_another_than(&self, copy: Copy) -> bool {
        let origin = origin_hash(&self.origin);
        origin != 0 && copy.origin != 0 && copy.origin != origin
    }

    /// Rewrites it for a copy of another name or kind (spec section 2). The group of a renamed CRD is its name without
    /// the plural.
    fn rename(&mut self, origin: &Address, copy: &Address) -> Result<(), Error> {
        let Address { resource, name } = origin;
        let kind = crate::cluster::qualified(&resource.group, &resource.kind);
        self.annotations
            .insert(RENAMED_FROM.into(), format!("{kind}/{}", name.name));
        if copy.resource.kind == "CustomResourceDefinition" {
            let object = format!("{{{}}}", self.fields.trim_start_matches(','));
            let object: BTreeMap<String, &RawValue> = serde_json::from_str(&object).map_err(|error| bad(&error))?;
            let group = copy
                .name
                .name
                .split_once('.')
                .map(|(_, group)| json!(group).to_string());
            let mut fields = String::new();
            for (key, value) in object {
                let renamed = match &group {
                    Some(group) if key == "spec" => with_field(value, "group", group)?,
                    _ => value.get().to_owned(),
                };
                fields.extend([",", &json!(key).to_string(), ":", &renamed]);
            }
            self.fields = fields;
        }
        Ok(())
    }

    /// The body to write: the object with the marks of its direction.
    pub fn body(&self, direction: Direction, copy: &Address, we: &SyncTarget, marks: &Marks<'_>) -> Bytes {
        let Address { resource, name } = copy;
        let mut labels = self.labels.clone();
        labels.insert(mark(direction).into(), DOWNSYNCED_LABEL_VALUE.into());
        let mut annotations = self.annotations.clone();
        annotations.insert(mark(direction).into(), copy.for_people());
        annotations.insert(OWNER.into(), we.owner_mark(&self.origin, resource));
        if marks.adopted {
            annotations.insert(ADOPTED.into(), "true".into());
        }
        annotations.extend(marks.source.map(|source| (SOURCE.into(), source.to_owned())));
        let mut metadata = json!({"name": &*name.name, "labels": labels, "annotations": annotations});
        if resource.namespaced {
            metadata["namespace"] = json!(&*name.namespace);
        }
        if let Some(version) = marks.at_version {
            metadata["resourceVersion"] = json!(version);
        }
        let (api_version, kind) = (json!(resource.api_version()), json!(resource.kind));
        let fields = if pull_secrets::has_any(resource) {
            &pull_secrets::split(&self.fields).0
        } else {
            &self.fields
        };
        Bytes::from(format!(
            r#"{{"apiVersion":{api_version},"kind":{kind},"metadata":{metadata}{fields}}}"#
        ))
    }
}

/// What is written into a copy's metadata beside its ownership.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marks<'a> {
    /// It was there before it was selected.
    pub adopted: bool,
    /// It has to be at this resource version.
    pub at_version: Option<&'a str>,
    /// [`crate::sync::ownership::Source::mark`], where the cluster of the origin is known.
    pub source: Option<&'a str>,
}

/// The `status` of an object.
#[derive(Debug)]
pub struct Status {
    /// Its JSON as the server has written it, digit by digit; a map.
    pub text: String,
    /// Hash of it, whatever the order of its fields. Never 0.
    pub hash: u64,
}

impl Status {
    /// Reads the status of a whole object. `None` if it has none, or one that is no map (spec section 5).
    pub fn of(object: &[u8]) -> Result<Option<Self>, Error> {
        #[derive(Deserialize)]
        struct Wire<'a> {
            #[serde(default, borrow)]
            status: Option<&'a RawValue>,
        }
        let wire: Wire = serde_json::from_slice(object).map_err(|error| bad(&error))?;
        let Some(raw) = wire.status.filter(|raw| raw.get().starts_with('{')) else {
            return Ok(None);
        };
        Ok(Some(Self {
            text: raw.get().to_owned(),
            hash: canonical_hash(raw.get()),
        }))
    }

    /// The `status` of a whole object as it stands there, if it has one that can be read.
    pub fn raw(object: &[u8]) -> Option<&RawValue> {
        #[derive(Deserialize)]
        struct Wire<'a> {
            #[serde(borrow)]
            status: &'a RawValue,
        }
        serde_json::from_slice::<Wire>(object).ok().map(|wire| wire.status)
    }

    /// [`Self::hash`], 0 where there is no status.
    pub fn hash_of(object: &[u8]) -> Result<u64, Error> {
        Ok(Self::of(object)?.map_or(0, |status| status.hash))
    }
}

impl Desired {
    /// True if a create or an apply does not set everything.
    pub fn has_addition(&self, resource: &ResourceType) -> bool {
        pull_secrets::has_any(resource) && self.fields.contains("imagePullSecrets") || self.duplicates.are_any()
    }

    /// True if the answer to an apply is needed whole for [`Self::addition`]: there may be something to set, or to take away.
    pub fn may_have_addition(&self, resource: &ResourceType) -> bool {
        pull_secrets::has_any(resource) || self.has_addition(resource)
    }

    /// What is still to be changed in a copy that was applied, as a patch: lists that name a key twice, and pull secrets of
    /// a `ServiceAccount` (spec 3.8).
    pub fn addition(&self, resource: &ResourceType, copy: &[u8]) -> Result<Option<Bytes>, Error> {
        if pull_secrets::has_any(resource) {
            return pull_secrets::patch(&pull_secrets::split(&self.fields).1, copy);
        }
        Ok(self.duplicates.patch(copy))
    }
}

/// An object with one field set to that JSON, whatever the others hold.
pub(super) fn with_field(object: &RawValue, field: &str, value: &str) -> Result<String, Error> {
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(object.get()).map_err(|error| bad(&error))?;
    let value: &RawValue = serde_json::from_str(value).map_err(|error| bad(&error))?;
    fields.insert(field.to_owned(), value);
    serde_json::to_string(&fields).map_err(|error| bad(&error))
}

/// False for labels and annotations that mean something on one side only: kcp's, and our own marks.
fn travels(key: &str) -> bool {
    let prefix = key.split('/').next().unwrap_or_default();
    let kcp = key.contains('/') && (prefix == "kcp.io" || prefix.ends_with(".kcp.io"));
    !kcp && ![DOWNSYNCED, UPSYNCED, OWNER, SOURCE, ADOPTED, RENAMED_FROM, PULL_SECRETS].contains(&key)
}

/// Objects that every cluster makes for itself (spec 3.8): they never travel.
fn is_system_object(resource: &ResourceType, meta: &Meta, top: &BTreeMap<String, &RawValue>) -> bool {
    if !resource.group.is_empty() {
        return false;
    }
    match resource.resource.as_str() {
        "configmaps" => meta.name == "kube-root-ca.crt",
        "serviceaccounts" => meta.name == "default",
        "secrets" => top.get("type").is_some_and(|kind| {
            matches!(
                kind.get(),
                r#""kubernetes.io/service-account-token""# | r#""bootstrap.kubernetes.io/token""#
            )
        }),
        _ => false,
    }
}

#[cfg(test)]
#[path = "object_tests.rs"]
mod tests;
