//! One object as JSON: its metadata, its cleaned form for the edge, and the hash of that.
//!
//! Bodies are handled as raw JSON slices; only metadata is taken apart. A hash covers the server's own serialization,
//! which is stable for an unchanged object; where it is not (another server version), the cost is one apply that
//! changes nothing.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::api::{ADOPTED, DOWNSYNCED, DOWNSYNCED_LABEL_VALUE, REPLACE};
use crate::cluster::{Error, ObjectName, ResourceType};
use crate::plan::Selection;
use crate::sync::kinds;
use crate::sync::ownership::{Copy, is_hands_off};

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
}

fn null_is_empty<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Meta {
    /// Reads the metadata of an object.
    pub fn parse(object: &[u8]) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Wire {
            metadata: Meta,
        }
        serde_json::from_slice::<Wire>(object)
            .map(|wire| wire.metadata)
            .map_err(|error| bad(&error))
    }

    /// Namespace and name.
    pub fn object_name(&self) -> ObjectName {
        ObjectName::new(&self.namespace, &self.name)
    }

    /// The marks of an edge object.
    pub fn copy(&self, kind: &str) -> Copy {
        Copy::from_annotations(
            kind,
            &self.object_name(),
            &self.annotations,
            self.deletion_timestamp.is_some(),
        )
    }

    /// True if it carries the label that selects copies.
    pub fn is_labelled(&self) -> bool {
        self.labels
            .get(DOWNSYNCED)
            .is_some_and(|value| value == DOWNSYNCED_LABEL_VALUE)
    }

    /// The resource version as a number that grows, which it is on every known server; 0 where it is not.
    pub fn version_number(&self) -> u64 {
        self.resource_version.parse().unwrap_or(0)
    }
}

fn bad(error: &serde_json::Error) -> Error {
    Error::BadAnswer(format!("an object: {error}"))
}

/// What the hub wants at the edge: the cleaned object, not yet marked.
#[derive(Debug)]
pub struct Desired {
    /// Hash of all that is enforced at the edge. Never 0.
    pub hash: u64,
    /// The hub's `downsync-overwrite` says to create once and then leave alone.
    pub hands_off: bool,
    /// A copy that cannot be updated may be deleted and created again.
    pub replace: bool,
    name: ObjectName,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    /// `"key":value` for every top-level field that travels, each with a leading comma.
    fields: String,
}

impl Desired {
    /// Cleans a hub object for the edge (spec 3.4, 3.8). `None` if it belongs to the hub alone.
    pub fn from_hub(resource: &ResourceType, selection: Selection, object: &[u8]) -> Result<Option<Self>, Error> {
        let meta = Meta::parse(object)?;
        let name = meta.object_name();
        if selection == Selection::Implied {
            return Ok(Some(Self::new(
                name,
                BTreeMap::new(),
                BTreeMap::new(),
                String::new(),
                false,
            )));
        }
        let top: BTreeMap<String, &RawValue> = serde_json::from_slice(object).map_err(|error| bad(&error))?;
        if is_system_object(resource, &meta, &top) {
            return Ok(None);
        }
        let fields = kinds::travelling_fields(resource, &top)?;
        let hands_off = is_hands_off(&meta.annotations);
        let (mut labels, mut annotations) = (meta.labels, meta.annotations);
        labels.retain(|key, _| !belongs_to_hub(key) && kinds::label_travels(resource, key));
        annotations.retain(|key, _| !belongs_to_hub(key) && kinds::annotation_travels(resource, key));
        Ok(Some(Self::new(name, labels, annotations, fields, hands_off)))
    }

    fn new(
        name: ObjectName,
        labels: BTreeMap<String, String>,
        annotations: BTreeMap<String, String>,
        fields: String,
        hands_off: bool,
    ) -> Self {
        let mut desired = Self {
            hash: 0,
            hands_off,
            replace: annotations.get(REPLACE).is_some_and(|value| value == "true"),
            name,
            labels,
            annotations,
            fields,
        };
        let mut hasher = DefaultHasher::new();
        hasher.write(json!([desired.labels, desired.annotations]).to_string().as_bytes());
        hasher.write(desired.fields.as_bytes());
        desired.hash = hasher.finish().max(1);
        desired
    }

    /// The body to apply: the object with its ownership marks.
    pub fn body(&self, resource: &ResourceType, adopted: bool) -> Bytes {
        let mut labels = self.labels.clone();
        labels.insert(DOWNSYNCED.into(), DOWNSYNCED_LABEL_VALUE.into());
        let mut annotations = self.annotations.clone();
        annotations.insert(DOWNSYNCED.into(), self.name.of_kind(&resource.kind).to_string());
        if adopted {
            annotations.insert(ADOPTED.into(), "true".into());
        }
        let mut metadata = json!({"name": &*self.name.name, "labels": labels, "annotations": annotations});
        if resource.namespaced {
            metadata["namespace"] = json!(&*self.name.namespace);
        }
        let (api_version, kind) = (json!(resource.api_version()), json!(resource.kind));
        let fields = if is_service_account(resource) {
            &split_pull_secrets(&self.fields).0
        } else {
            &self.fields
        };
        Bytes::from(format!(
            r#"{{"apiVersion":{api_version},"kind":{kind},"metadata":{metadata}{fields}}}"#
        ))
    }
}

impl Desired {
    /// What is still to be added to a copy that was applied, as a merge patch: pull secrets of a `ServiceAccount`, beside
    /// those that the edge has. The list is one field to the API server, so an apply would take the edge's away
    /// (spec 3.8; `OpenShift` puts them back for ever).
    pub fn addition(&self, resource: &ResourceType, copy: &[u8]) -> Result<Option<Bytes>, Error> {
        if !is_service_account(resource) {
            return Ok(None);
        }
        let wanted = split_pull_secrets(&self.fields).1;
        let copy: Value = serde_json::from_slice(copy).map_err(|error| bad(&error))?;
        let mut all = copy["imagePullSecrets"].as_array().cloned().unwrap_or_default();
        let before = all.len();
        for secret in wanted {
            if !all.contains(&secret) {
                all.push(secret);
            }
        }
        let version = &copy["metadata"]["resourceVersion"];
        let patch = json!({"metadata": {"resourceVersion": version}, "imagePullSecrets": all});
        Ok((all.len() > before).then(|| Bytes::from(patch.to_string())))
    }
}

fn is_service_account(resource: &ResourceType) -> bool {
    resource.is("", "serviceaccounts")
}

/// Takes `imagePullSecrets` out of the fields of a `ServiceAccount`.
fn split_pull_secrets(fields: &str) -> (String, Vec<Value>) {
    let object = format!("{{{}}}", fields.trim_start_matches(','));
    let mut object: serde_json::Map<String, Value> = serde_json::from_str(&object).unwrap_or_default();
    let secrets = match object.remove("imagePullSecrets") {
        Some(Value::Array(secrets)) => secrets,
        _ => Vec::new(),
    };
    let rest = object.iter().map(|(key, value)| format!(",{}:{value}", json!(key)));
    (rest.collect(), secrets)
}

/// Labels and annotations that mean something at the hub only: kcp's, and our own marks.
fn belongs_to_hub(key: &str) -> bool {
    let prefix = key.split('/').next().unwrap_or_default();
    let kcp = key.contains('/') && (prefix == "kcp.io" || prefix.ends_with(".kcp.io"));
    kcp || key == DOWNSYNCED || key == ADOPTED
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
mod tests {
    use super::*;

    fn config_maps() -> ResourceType {
        ResourceType {
            group: String::new(),
            version: "v1".into(),
            resource: "configmaps".into(),
            kind: "ConfigMap".into(),
            namespaced: true,
        }
    }

    fn desired(object: &Value) -> Option<Desired> {
        Desired::from_hub(&config_maps(), Selection::Full, object.to_string().as_bytes()).unwrap()
    }

    fn applied(object: &Value) -> Value {
        serde_json::from_slice(&desired(object).unwrap().body(&config_maps(), false)).unwrap()
    }

    #[test]
    fn what_belongs_to_the_hub_alone_does_not_travel() {
        let body = applied(&json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {
                "name": "prices", "namespace": "shop", "uid": "u", "resourceVersion": "5", "generation": 3,
                "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-02T00:00:00Z",
                "deletionGracePeriodSeconds": 0, "selfLink": "/x", "generateName": "pri", "managedFields": [{"manager": "m"}],
                "ownerReferences": [{"uid": "x"}], "finalizers": ["hub.example.org/f"],
                "labels": {"app": "web", "internal.kcp.io/replicate": "true"},
                "annotations": {"note": "kept", "kcp.io/cluster": "root", "x.kcp.io/path": "p", "mykcp.io/kept": "1",
                    "edge.kubestellar.io/downsynced": "ConfigMap/other/name", "edge.kubestellar.io/adopted": "true"},
            },
            "data": {"a": "1"}, "binaryData": {}, "immutable": true, "status": {"x": 1},
        }));
        assert_eq!(
            body,
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {
                    "name": "prices", "namespace": "shop",
                    "labels": {"app": "web", "edge.kubestellar.io/downsynced": "true"},
                    "annotations": {"note": "kept", "mykcp.io/kept": "1", "edge.kubestellar.io/downsynced": "ConfigMap/shop/prices"},
                },
                "data": {"a": "1"}, "binaryData": {}, "immutable": true,
            })
        );
    }

    #[test]
    fn the_hash_changes_with_what_travels_and_with_nothing_else() {
        let object = json!({"metadata": {"name": "a", "namespace": "n", "resourceVersion": "1"}, "data": {"k": "v"}, "status": {"s": 1}});
        let hash = |object: &Value| desired(object).unwrap().hash;
        let base = hash(&object);
        let changed = |pointer: &str, value: Value| {
            let mut other = object.clone();
            other[pointer] = value;
            hash(&other)
        };
        assert_eq!(changed("status", json!({"s": 2})), base);
        assert_eq!(
            changed(
                "metadata",
                json!({"name": "a", "namespace": "n", "resourceVersion": "2", "managedFields": []})
            ),
            base
        );
        assert_ne!(changed("data", json!({"k": "w"})), base);
        assert_ne!(
            changed("metadata", json!({"name": "a", "namespace": "n", "labels": {"l": "1"}})),
            base
        );
        assert_ne!(
            changed(
                "metadata",
                json!({"name": "a", "namespace": "n", "annotations": {"l": "1"}})
            ),
            base
        );
    }

    #[test]
    fn system_objects_never_travel() {
        let secret = |kind: &str| json!({"metadata": {"name": "s", "namespace": "n"}, "type": kind});
        for (resource, object, travels) in [
            (
                "configmaps",
                json!({"metadata": {"name": "kube-root-ca.crt", "namespace": "n"}}),
                false,
            ),
            (
                "configmaps",
                json!({"metadata": {"name": "mine", "namespace": "n"}}),
                true,
            ),
            (
                "serviceaccounts",
                json!({"metadata": {"name": "default", "namespace": "n"}}),
                false,
            ),
            (
                "serviceaccounts",
                json!({"metadata": {"name": "app", "namespace": "n"}}),
                true,
            ),
            ("secrets", secret("kubernetes.io/service-account-token"), false),
            ("secrets", secret("bootstrap.kubernetes.io/token"), false),
            ("secrets", secret("Opaque"), true),
        ] {
            let resource = ResourceType {
                resource: resource.into(),
                ..config_maps()
            };
            let desired = Desired::from_hub(&resource, Selection::Full, object.to_string().as_bytes()).unwrap();
            assert_eq!(desired.is_some(), travels, "{object}");
        }
    }

    #[test]
    fn pull_secrets_are_added_to_those_of_the_edge() {
        let resource = ResourceType {
            resource: "serviceaccounts".into(),
            kind: "ServiceAccount".into(),
            ..config_maps()
        };
        let object = json!({"metadata": {"name": "app", "namespace": "n"}, "imagePullSecrets": [{"name": "mine"}],
            "automountServiceAccountToken": false});
        let desired = Desired::from_hub(&resource, Selection::Full, object.to_string().as_bytes())
            .unwrap()
            .unwrap();
        let body: Value = serde_json::from_slice(&desired.body(&resource, false)).unwrap();
        assert_eq!(
            (&body["imagePullSecrets"], &body["automountServiceAccountToken"]),
            (&Value::Null, &json!(false))
        );
        let addition = |secrets: Value| {
            let copy = json!({"metadata": {"resourceVersion": "7"}, "imagePullSecrets": secrets}).to_string();
            desired.addition(&resource, copy.as_bytes()).unwrap()
        };
        let patch: Value = serde_json::from_slice(&addition(json!([{"name": "edge"}])).unwrap()).unwrap();
        assert_eq!(
            patch,
            json!({"metadata": {"resourceVersion": "7"}, "imagePullSecrets": [{"name": "edge"}, {"name": "mine"}]})
        );
        assert_eq!(addition(json!([{"name": "mine"}, {"name": "edge"}])), None);
    }

    #[test]
    fn an_implied_namespace_travels_without_its_details() {
        let resource = ResourceType {
            resource: "namespaces".into(),
            kind: "Namespace".into(),
            namespaced: false,
            ..config_maps()
        };
        let object =
            json!({"metadata": {"name": "shop", "labels": {"team": "a"}}, "spec": {"finalizers": ["kubernetes"]}});
        let desired = Desired::from_hub(&resource, Selection::Implied, object.to_string().as_bytes())
            .unwrap()
            .unwrap();
        let body: Value = serde_json::from_slice(&desired.body(&resource, false)).unwrap();
        assert_eq!(
            body,
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop",
            "labels": {"edge.kubestellar.io/downsynced": "true"},
            "annotations": {"edge.kubestellar.io/downsynced": "Namespace//shop"}}})
        );
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        for text in ["", "<html>", "{}", r#"{"metadata":{}}"#] {
            assert!(Meta::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
