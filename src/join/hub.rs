//! What a registration consists of at the hub, as plain data: the objects, whose they are, and what is to be done about
//! each.
//!
//! Promises: an object that is already as wanted is not written; one without our label is never written; what others
//! have added to an object of ours stays.

use std::collections::{BTreeMap, BTreeSet};

use http::Uri;
use kube_lite::access::server_url;
use serde_json::{Map, Value, json};

use super::id::syncer_id;
use super::token;
use crate::api::{self, edge};
use crate::sync::own_objects::edge_name;

/// Which permissions are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rbac {
    /// All, as the KubeStellar-Syncer had them.
    Wide,
    /// Those that the configs need; without configs, those for some types.
    Scoped,
}

impl Rbac {
    /// Their words on the command line and in registrations.
    pub(crate) const WORDS: [(&'static str, Self); 2] = [("scoped", Self::Scoped), ("wide", Self::Wide)];

    /// Its word.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Wide => "wide",
            Self::Scoped => "scoped",
        }
    }

    pub(super) fn of_word(word: &str) -> Option<Self> {
        Self::WORDS
            .iter()
            .find_map(|(known, rbac)| (*known == word).then_some(*rbac))
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";

/// For which sync target a registration is, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    /// The name of the sync target.
    pub(super) name: String,
    /// The UID of the sync target.
    pub(super) uid: String,
    /// The namespace of its service account at the hub.
    pub(super) namespace: String,
    /// The namespace of the syncer at the edge, if it is not the id.
    pub(super) at_edge: Option<String>,
    /// The hub's URL as the edge reaches it, if that was given.
    pub(super) hub_url: Option<Uri>,
}

/// The same, as far as the hub or the command line say it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) uid: Option<String>,
    pub(super) namespace: String,
    pub(super) at_edge: Option<String>,
    pub(super) hub_url: Option<Uri>,
}

impl Known {
    pub(super) fn with(self, name: &str, uid: String) -> Identity {
        Identity {
            name: name.to_owned(),
            uid,
            namespace: self.namespace,
            at_edge: self.at_edge,
            hub_url: self.hub_url,
        }
    }
}

impl Identity {
    /// The name of what belongs to the config.
    pub(super) fn id(&self) -> String {
        syncer_id(&self.name, &self.uid)
    }

    /// The name of the object that stands for the edge.
    pub(super) fn edge_name(&self) -> String {
        edge_name(&self.name, &self.uid)
    }
}

/// What the command line says about the registration.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted<'a> {
    pub(super) name: &'a str,
    pub(super) uid: Option<&'a str>,
    pub(super) namespace: Option<&'a str>,
    pub(super) at_edge: Option<&'a str>,
    pub(super) hub_url: Option<&'a Uri>,
}

/// An object as it is wanted.
pub(super) struct Object {
    /// The path of its collection.
    pub(super) collection: String,
    pub(super) body: Value,
}

impl Object {
    fn new(collection: String, api_version: &str, kind: &str, mut body: Value) -> Self {
        body["apiVersion"] = api_version.into();
        body["kind"] = kind.into();
        Self { collection, body }
    }

    /// Its path.
    pub(super) fn path(&self) -> String {
        let name = self.body["metadata"]["name"].as_str().unwrap_or_default();
        format!("{}/{name}", self.collection)
    }

    /// `Kind/namespace/name`.
    pub(super) fn label(&self) -> String {
        label(&self.body)
    }
}

/// `Kind/namespace/name`.
pub(super) fn label(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let meta = &object["metadata"];
    format!(
        "{}/{}/{}",
        text(&object["kind"]),
        text(&meta["namespace"]),
        text(&meta["name"])
    )
}

/// What is to be done about an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ObjectStep {
    /// It is as wanted.
    Keep,
    Create,
    /// Apply this merge patch.
    Patch(Value),
    /// An immutable field differs: delete the object and create it again.
    Recreate,
    /// It is somebody else's, for the reason given.
    Refuse(String),
}

/// The path of service accounts.
pub(super) fn accounts(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/serviceaccounts")
}

/// The path of roles or their bindings, in a namespace or in all.
pub(super) fn of_rbac(namespace: Option<&str>, plural: &str) -> String {
    match namespace {
        Some(namespace) => format!("/apis/{RBAC}/v1/namespaces/{namespace}/{plural}"),
        None => format!("/apis/{RBAC}/v1/{plural}"),
    }
}

/// The config that all else belongs to: `EdgeSyncConfig`, or `SyncerConfig` where the hub has no other.
pub(super) fn config(identity: &Identity, plural: &str) -> Object {
    let kind = match plural {
        "edgesyncconfigs" => "EdgeSyncConfig",
        _ => "SyncerConfig",
    };
    let metadata = json!({
        "name": identity.name,
        "labels": {api::SYNC_TARGET_NAME: identity.name},
        "annotations": {api::SYNC_TARGET_UID: identity.uid},
    });
    let api_version = format!("{}/{}", api::GROUP, api::VERSION);
    let collection = format!("/apis/{api_version}/{plural}");
    Object::new(
        collection,
        &api_version,
        kind,
        json!({"metadata": metadata, "spec": {}}),
    )
}

/// The path of the objects that stand for edges.
pub(super) fn edges() -> String {
    format!("/apis/{}/{}/{}", api::GROUP, api::VERSION, edge::RESOURCE)
}

/// The object that stands for the edge. It belongs to no config, since all heartbeats would say so.
pub(super) fn edge(identity: &Identity) -> Object {
    let labels = json!({api::SYNC_TARGET_NAME: identity.name});
    let body = json!({"metadata": {"name": identity.edge_name(), "labels": labels}});
    let api_version = format!("{}/{}", api::GROUP, api::VERSION);
    Object::new(edges(), &api_version, edge::KIND, body)
}

/// The rules of the syncer's roles.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rules {
    /// Those of its cluster role.
    pub(super) everywhere: Value,
    /// Those of its roles, by their namespaces.
    pub(super) within: BTreeMap<String, Value>,
}

/// What belongs to the config `owner`, in the order in which it is created: roles in namespaces come first, so that a syncer
/// that runs keeps what the cluster role had.
pub(super) fn owned(identity: &Identity, owner: &Value, rbac: Rbac, rules: &Rules) -> Vec<Object> {
    let id = identity.id();
    let metadata = json!({
        "name": id,
        "labels": {api::SYNC_TARGET_NAME: identity.name},
        "ownerReferences": [{
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
        }],
    });
    let mut of_account = metadata.clone();
    of_account["namespace"] = identity.namespace.as_str().into();
    of_account["annotations"] = json!({api::SYNC_TARGET_UID: identity.uid, api::RBAC: rbac.word()});
    if let Some(namespace) = &identity.at_edge {
        of_account["annotations"][api::SYNCER_NAMESPACE] = namespace.as_str().into();
    }
    if let Some(url) = &identity.hub_url {
        of_account["annotations"][api::HUB_URL] = token::server_url(url, false).into();
    }
    let account = json!({"metadata": of_account});
    let mut all = vec![Object::new(
        accounts(&identity.namespace),
        "v1",
        "ServiceAccount",
        account,
    )];
    for (namespace, rules) in &rules.within {
        let mut metadata = metadata.clone();
        metadata["namespace"] = namespace.as_str().into();
        all.extend(bound(identity, "Role", &metadata, rules));
    }
    all.extend(bound(identity, "ClusterRole", &metadata, &rules.everywhere));
    all
}

/// A role of this kind and its binding, both with this metadata.
fn bound(identity: &Identity, kind: &str, metadata: &Value, rules: &Value) -> [Object; 2] {
    let id = identity.id();
    let role = json!({"metadata": metadata, "rules": rules});
    let binding = json!({
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": id},
        "subjects": [{"kind": "ServiceAccount", "name": id, "namespace": identity.namespace}],
    });
    [(kind.to_owned(), role), (format!("{kind}Binding"), binding)].map(|(kind, body)| {
        let plural = format!("{}s", kind.to_ascii_lowercase());
        let collection = of_rbac(metadata["namespace"].as_str(), &plural);
        Object::new(collection, &format!("{RBAC}/v1"), &kind, body)
    })
}

/// Why a registration is not that of the UID that was given, if it is not: that of another edge is not to be removed.
pub(super) fn is_another<'a>(objects: impl Iterator<Item = &'a Value>, wanted: &Wanted<'_>) -> Option<String> {
    let (name, uid) = (wanted.name, wanted.uid?);
    let known = uids(objects, &Wanted { uid: None, ..*wanted });
    let is_another = !known.is_empty() && !known.contains(uid);
    let known = known.into_iter().collect::<Vec<_>>().join(", ");
    is_another
        .then(|| format!("{name} is registered with the UID {known}, not {uid}: leave --uid out, or give that one"))
}

/// The UIDs of all sync targets of which a registration speaks.
pub(super) fn uids<'a>(objects: impl Iterator<Item = &'a Value>, wanted: &Wanted<'_>) -> BTreeSet<String> {
    let ours = objects.filter(|object| is_ours(object, wanted.name));
    let known = ours.filter_map(|object| object["metadata"]["annotations"][api::SYNC_TARGET_UID].as_str());
    known.chain(wanted.uid).map(str::to_owned).collect()
}

/// For which sync target the registration is: as the config and the service accounts with our label say, or as it is
/// wanted. Without a UID, a new one is made. The error says what contradicts what.
pub(super) fn identify(config: Option<&Value>, accounts: &[Value], wanted: &Wanted<'_>) -> Result<Known, String> {
    let text = |object: &Value, key: &str| object["metadata"]["annotations"][key].as_str().map(str::to_owned);
    let uid_of = |object: &Value| text(object, api::SYNC_TARGET_UID);
    let place_of = |account: &Value| account["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
    let name = wanted.name;
    if accounts.len() > 1 {
        let labels: Vec<String> = accounts.iter().map(label).collect();
        return Err(format!(
            "{name} is registered more than once ({}): delete those that no edge uses",
            labels.join(", ")
        ));
    }
    let account = accounts.first();
    let known = config.and_then(uid_of).or_else(|| account.and_then(uid_of));
    if let (Some(known), Some(wanted)) = (&known, wanted.uid)
        && known != wanted
    {
        return Err(format!(
            "{name} is registered with the UID {known}, not {wanted}: leave --uid out, or remove it first with \
             edge-syncer gen {name} --unregister"
        ));
    }
    let namespace = match (account.map(place_of), wanted.namespace) {
        (Some(known), Some(wanted)) if known != wanted => {
            return Err(format!(
                "{name} is registered in namespace {known}, not {wanted}: leave --kcp-namespace out, or remove it first \
                 with edge-syncer gen {name} --unregister"
            ));
        }
        (Some(known), _) => known,
        (None, wanted) => wanted.unwrap_or("default").to_owned(),
    };
    let of_account = |key: &str| account.and_then(|account| text(account, key));
    let hub_url = match (wanted.hub_url, of_account(api::HUB_URL)) {
        (Some(wanted), _) => Some(wanted.clone()),
        (None, Some(known)) => Some(server_url(&known).map_err(|why| {
            format!(
                "the annotation {} of the ServiceAccount of {name} is no URL: {why}; give the right one with --hub-url",
                api::HUB_URL
            )
        })?),
        (None, None) => None,
    };
    Ok(Known {
        uid: known.or_else(|| wanted.uid.map(str::to_owned)),
        namespace,
        at_edge: wanted
            .at_edge
            .map(str::to_owned)
            .or_else(|| of_account(api::SYNCER_NAMESPACE)),
        hub_url,
    })
}

/// Why a UID cannot be used, if another sync target is registered with it: what the two syncers write has one mark then.
pub(super) fn is_taken(others: &[Value], uid: &str) -> Option<String> {
    let mut others = others.iter();
    let other = others.find(|account| account["metadata"]["annotations"][api::SYNC_TARGET_UID] == uid)?;
    let other = sync_target_of(other)?;
    Some(format!(
        "the UID {uid} is that of {other}, and two syncers with one UID take each other's copies for their own: leave --uid \
         out, or if this is that edge with another name, remove it first with edge-syncer gen {other} --unregister"
    ))
}

/// The namespace of the syncer at the edge for which this service account was made last, by a manifest.
pub(super) fn namespace_at_edge(account: &Value) -> &str {
    let meta = &account["metadata"];
    let given = meta["annotations"][api::SYNCER_NAMESPACE].as_str();
    given.or(meta["name"].as_str()).unwrap_or_default()
}

/// The sync target that an object of a registration is for.
pub(super) fn sync_target_of(object: &Value) -> Option<String> {
    let name = object["metadata"]["labels"][api::SYNC_TARGET_NAME].as_str();
    name.map(str::to_owned)
}

/// True if an object has the label of this sync target.
pub(super) fn is_ours(found: &Value, name: &str) -> bool {
    found["metadata"]["labels"][api::SYNC_TARGET_NAME] == name
}

/// What is to be done so that an object is as wanted; `found` is what is there under its name.
pub(super) fn step(found: Option<&Value>, wanted: &Value, name: &str) -> ObjectStep {
    let Some(found) = found else { return ObjectStep::Create };
    if !is_ours(found, name) {
        let key = api::SYNC_TARGET_NAME;
        return ObjectStep::Refuse(format!(
            "it is there already and has no label {key}={name}, so that it is somebody else's: choose another name, or \
             give it that label"
        ));
    }
    if found["metadata"]["deletionTimestamp"].is_string() {
        return ObjectStep::Refuse("it is being deleted: wait until it is gone".to_owned());
    }
    if !wanted["roleRef"].is_null() && found["roleRef"] != wanted["roleRef"] {
        return ObjectStep::Recreate;
    }
    let mut patch = Map::new();
    let metadata = metadata_patch(&found["metadata"], &wanted["metadata"]);
    if !metadata.is_empty() {
        patch.insert("metadata".into(), metadata.into());
    }
    for field in ["rules", "subjects"] {
        if !wanted[field].is_null() && found[field] != wanted[field] {
            patch.insert(field.into(), wanted[field].clone());
        }
    }
    if patch.is_empty() {
        ObjectStep::Keep
    } else {
        ObjectStep::Patch(patch.into())
    }
}

/// A patch with what is missing in metadata. A reference to a former owner of the same name is removed: otherwise
/// garbage collection would delete the object once the last of its owners is gone.
fn metadata_patch(found: &Value, wanted: &Value) -> Map<String, Value> {
    let mut patch = Map::new();
    for field in ["labels", "annotations"] {
        let missing = wanted[field].as_object().into_iter().flatten();
        let missing: Map<String, Value> = missing
            .filter(|(key, value)| found[field][key.as_str()] != **value)
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if !missing.is_empty() {
            patch.insert(field.into(), missing.into());
        }
    }
    let Some(owner) = wanted["ownerReferences"].get(0) else {
        return patch;
    };
    let owners = found["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
    let is_former = |other: &Value| {
        other["kind"] == owner["kind"] && other["name"] == owner["name"] && other["uid"] != owner["uid"]
    };
    let mut kept: Vec<Value> = owners.iter().filter(|other| !is_former(other)).cloned().collect();
    if !kept.iter().any(|other| other["uid"] == owner["uid"]) {
        kept.push(owner.clone());
    }
    if kept != owners {
        patch.insert("ownerReferences".into(), kept.into());
    }
    patch
}

#[cfg(test)]
#[path = "hub_tests.rs"]
mod tests;
