//! One object as JSON: its metadata, its cleaned form for the other side, and the hashes of that and of its status.
//!
//! Bodies are handled as raw JSON slices; only metadata is parsed. A hash covers the server's own serialization, which
//! is stable for an unchanged object; where it is not (another server version), the cost is one apply that changes
//! nothing.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use bytes::Bytes;
use kube_lite::fields::{from_text, no_object, with_fields};
use kube_lite::{Content, Error, ObjectName, ResourceType};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::bookkeeping::is_bookkeeping;
use super::pull_secrets;
use super::top_fields::{fields_of, object_of};
use crate::api::{
    ADOPTED, DOWNSYNCED, DOWNSYNCED_LABEL_VALUE, OWNER, PULL_SECRETS, RENAMED_FROM, REPLACE, SOURCE, UPSYNCED,
};
use crate::plan::{Direction, Selection, kept};
use crate::sync::canonical::canonical_hash;
use crate::sync::duplicates::Duplicates;
use crate::sync::kinds;
use crate::sync::meta::{Meta, Object};
use crate::sync::ownership::{Copy, Marked, SyncTarget, is_create_only, mark, origin_hash};

/// What says of a Secret what it is for.
const TYPE: &str = "type";
/// The JSON of the type that servers give a Secret without one.
const OPAQUE: &str = r#""Opaque""#;

/// An object of one side.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
#[derive(Clone, Debug)]
pub struct Desired {
    /// Hash of all that is enforced in the copy, and of the identity of its origin. Never 0.
    pub hash: u64,
    /// UID of the origin; empty if it has none.
    pub origin: String,
    /// Resource version of the origin; 0 if that is no number.
    pub version: u64,
    /// The origin is a Job whose status says how it has ended, or will.
    pub finished: bool,
    /// The origin's `downsync-overwrite` says to create once and never update.
    pub create_only: bool,
    /// A copy that cannot be updated may be deleted and created again.
    pub replace: bool,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    /// `"key":value` for every top-level field that is synced, each with a leading comma.
    pub(super) fields: String,
    /// What of it an apply cannot set.
    pub(super) duplicates: Duplicates,
    /// The [`purpose`] for which it was made.
    purpose: u64,
}

/// A hash of all that a copy's content follows from, besides its origin.
fn purpose(origin: &Address, copy: &Address, selection: Selection) -> u64 {
    let mut hasher = DefaultHasher::new();
    (origin, copy, selection).hash(&mut hasher);
    hasher.finish()
}

/// True if the object, so selected, belongs to its own side alone, as far as its metadata shows that.
pub fn is_never_synced(resource: &ResourceType, meta: &Meta, selection: Selection) -> bool {
    kept::is_kept(resource, &meta.as_kept(), selection == Selection::Named)
}

/// The same as far as what was read of it shows that: the whole of a Secret shows its type.
pub(super) fn is_never_synced_as_read(resource: &ResourceType, object: &Object, selection: Selection) -> bool {
    let secret_type = type_of(object).unwrap_or_default();
    let found = kept::Object {
        secret_type: &secret_type,
        ..object.meta.as_kept()
    };
    kept::is_kept(resource, &found, selection == Selection::Named)
}

/// What has to be read of an object of a type to know whether it is never synced.
pub(super) fn shows_what_is_never_synced(resource: &ResourceType) -> Content {
    if resource.is("", "secrets") {
        Content::Full
    } else {
        Content::Metadata
    }
}

/// True if the origin gets no copy, since it, or what would be in the copy's place, belongs to its own side alone: as far as
/// its metadata show that.
#[cfg(feature = "admin")]
pub(crate) fn is_left_out(origin: &Address, copy: &Address, meta: &Meta, selection: Selection) -> bool {
    let there = kept::Object {
        namespace: copy.name.namespace(),
        name: &copy.name.name,
        ..meta.as_kept()
    };
    let is_kept_there = kept::is_kept(&copy.resource, &there, selection == Selection::Named);
    selection != Selection::Implied && (is_never_synced(&origin.resource, meta, selection) || is_kept_there)
}

impl Desired {
    /// Cleans an origin for its copy. `None` if the object belongs to its own side alone.
    pub fn from_origin(
        direction: Direction,
        origin: &Address,
        copy: &Address,
        selection: Selection,
        object: &Object,
    ) -> Result<Option<Self>, Error> {
        let mut desired = Self {
            hash: 0,
            origin: String::new(),
            version: 0,
            finished: false,
            create_only: false,
            replace: false,
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            fields: String::new(),
            duplicates: Duplicates::default(),
            purpose: purpose(origin, copy, selection),
        };
        let meta = &object.meta;
        desired.version = meta.version_number();
        if selection != Selection::Implied {
            let resource = &origin.resource;
            let secret_type = type_of(object).unwrap_or_default();
            let found = kept::Object {
                secret_type: &secret_type,
                ..meta.as_kept()
            };
            // What it would be there counts as well: a conversion may give it any name and another kind.
            let there = kept::Object {
                namespace: copy.name.namespace(),
                name: &copy.name.name,
                ..found
            };
            let is_named = selection == Selection::Named;
            if kept::is_kept(resource, &found, is_named) || kept::is_kept(&copy.resource, &there, is_named) {
                return Ok(None);
            }
            let mut top = object.top();
            if copy.resource.is("", "secrets") && secret_type.is_empty() {
                // An apply without a type would fill a Secret of any type.
                top.insert(TYPE, OPAQUE);
            }
            desired.fields = kinds::synced_fields(direction, resource, object, &top)?;
            desired.finished = kinds::is_decided(resource, object.field("status"));
            desired.create_only = is_create_only(&meta.annotations);
            let owned = |(key, value): (&String, &String)| (key.clone(), value.clone());
            let labels = meta.labels.iter();
            let labels = labels.filter(|(key, _)| is_synced_key(key) && kinds::is_synced_label(resource, key));
            desired.labels = labels.map(owned).collect();
            let annotations = meta.annotations.iter().filter(|(key, value)| {
                is_synced_key(key) && !is_bookkeeping(key, value) && kinds::is_synced_annotation(resource, key)
            });
            desired.annotations = annotations.map(owned).collect();
            desired.replace = desired.annotations.get(REPLACE).is_some_and(|value| value == "true");
        }
        if origin.name != copy.name || origin.resource.kind != copy.resource.kind {
            desired.rename(origin, copy)?;
        }
        // What means the same has one form, so that the hash is that of what is meant.
        desired.duplicates = Duplicates::settle(&copy.resource, &mut desired.fields);
        desired.made_from(meta.uid.clone());
        Ok(Some(desired))
    }

    /// True if the origin gets no copy because a conversion gives it the name or kind of an object that is never synced, or
    /// that the syncer keeps for itself, if `is_own`.
    pub fn is_led_astray(
        origin: &Address,
        copy: &Address,
        selection: Selection,
        object: &Object,
        is_own: bool,
    ) -> bool {
        if origin.name == copy.name && origin.resource.kind == copy.resource.kind {
            return false;
        }
        let secret_type = type_of(object).unwrap_or_default();
        let found = kept::Object {
            secret_type: &secret_type,
            ..object.meta.as_kept()
        };
        let there = kept::Object {
            namespace: copy.name.namespace(),
            name: &copy.name.name,
            ..found
        };
        let is_named = selection == Selection::Named;
        !kept::is_kept(&origin.resource, &found, is_named)
            && (is_own || kept::is_kept(&copy.resource, &there, is_named))
    }

    /// The fields that are synced.
    pub(super) fn contents(&self) -> Option<Map<String, Value>> {
        from_text(&object_of(&self.fields)).ok()
    }

    /// The same with these fields.
    pub(super) fn with_contents(&self, contents: &Map<String, Value>) -> Self {
        Self {
            fields: fields_of(contents),
            ..self.clone()
        }
    }

    /// True if it was made for this copy of this origin and this selection.
    pub fn is_for(&self, origin: &Address, copy: &Address, selection: Selection) -> bool {
        self.purpose == purpose(origin, copy, selection)
    }

    /// How much memory it takes, roughly.
    pub fn bytes(&self) -> usize {
        let of =
            |texts: &BTreeMap<String, String>| texts.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
        self.fields.len() + of(&self.labels) + of(&self.annotations)
    }

    /// Makes it that of an origin with the UID `origin`, with the same content.
    pub fn made_from(&mut self, origin: String) {
        let mut hasher = DefaultHasher::new();
        hasher.write(json!([origin, self.labels, self.annotations]).to_string().as_bytes());
        if self.duplicates.may_differ_in_form() {
            hasher.write_u64(canonical_hash(&object_of(&self.fields)));
            self.duplicates.hash(&mut hasher);
        } else {
            hasher.write(self.fields.as_bytes());
        }
        self.hash = hasher.finish().max(1);
        self.origin = origin;
    }

    /// True if a copy was made from another object of the same name, which was deleted since.
    pub fn is_another_than(&self, copy: Copy) -> bool {
        let origin = origin_hash(&self.origin);
        origin != 0 && copy.origin != 0 && copy.origin != origin
    }

    /// Rewrites it for a copy of another name or kind. The group of a renamed CRD is its name without the plural.
    fn rename(&mut self, origin: &Address, copy: &Address) -> Result<(), Error> {
        let Address { resource, name } = origin;
        let kind = kube_lite::qualified(&resource.group, &resource.kind);
        self.annotations
            .insert(RENAMED_FROM.into(), format!("{kind}/{}", name.name));
        if copy.resource.kind == "CustomResourceDefinition" {
            let object = object_of(&self.fields);
            let object: BTreeMap<String, &RawValue> = from_text(&object).map_err(|error| no_object(&error))?;
            let group = copy
                .name
                .name
                .split_once('.')
                .map(|(_, group)| json!(group).to_string());
            let mut fields = String::new();
            for (key, value) in object {
                let renamed = match &group {
                    Some(group) if key == "spec" => with_fields(value, &[("group", group)])?,
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
            metadata["namespace"] = json!(name.namespace());
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
    /// That of a whole object. `None` if it has none, or one that is no map.
    pub fn of(object: &Object) -> Option<Self> {
        let text = Self::text_of(object)?;
        Some(Self {
            text: text.to_owned(),
            hash: canonical_hash(text),
        })
    }

    fn text_of(object: &Object) -> Option<&str> {
        let raw = object.field("status")?;
        raw.starts_with('{').then_some(raw)
    }

    /// True if the object has a status that cannot be returned, such as a text.
    pub fn is_no_object(object: &Object) -> bool {
        let raw = object.field("status");
        raw.is_some_and(|raw| !raw.starts_with('{') && raw != "null")
    }

    /// [`Self::hash`], 0 where there is no status.
    pub fn hash_of(object: &Object) -> u64 {
        Self::text_of(object).map_or(0, canonical_hash)
    }
}

impl Desired {
    /// True if the answer to an apply is needed whole for [`Self::addition`]: there may be something to set, or to
    /// remove.
    pub fn may_have_addition(&self, resource: &ResourceType) -> bool {
        pull_secrets::has_any(resource) || self.duplicates.are_any()
    }

    /// True if a create does not set everything.
    pub fn has_addition(&self, resource: &ResourceType) -> bool {
        pull_secrets::has_any(resource) && !pull_secrets::split(&self.fields).1.is_empty()
    }

    /// What is still to be changed in a whole copy that was applied, as a patch: lists that name a key twice, and pull secrets
    /// of a `ServiceAccount`.
    pub fn addition(&self, resource: &ResourceType, copy: &[u8]) -> Result<Option<Bytes>, Error> {
        if pull_secrets::has_any(resource) {
            return pull_secrets::patch(&pull_secrets::split(&self.fields).1, copy);
        }
        if !self.duplicates.are_any() {
            return Ok(None);
        }
        let version = Meta::parse(copy)?.resource_version;
        Ok(self.duplicates.patch_of(copy, &version))
    }
}

/// True for a Pod with ephemeral containers, which are not synced.
pub fn has_ephemeral_containers(resource: &ResourceType, object: &Object) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        ephemeral_containers: Vec<IgnoredAny>,
    }
    let spec = object.field("spec").filter(|_| resource.is("", "pods"));
    spec.is_some_and(|spec| from_text(spec).is_ok_and(|spec: Spec| !spec.ephemeral_containers.is_empty()))
}

/// False for labels and annotations that mean something on one side only: kcp's, and our own marks.
fn is_synced_key(key: &str) -> bool {
    let prefix = key.split('/').next().unwrap_or_default();
    let kcp = key.contains('/') && (prefix == "kcp.io" || prefix.ends_with(".kcp.io"));
    !kcp && ![DOWNSYNCED, UPSYNCED, OWNER, SOURCE, ADOPTED, RENAMED_FROM, PULL_SECRETS].contains(&key)
}

/// The `type` of a Secret, if it is a text.
fn type_of(object: &Object) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    let text: Text<'_> = from_text(object.field(TYPE)?).ok()?;
    Some(text.0)
}

#[cfg(test)]
#[path = "object_tests.rs"]
mod tests;
