//! Field managers at versions of a type that are gone.
//!
//! For a custom type, an API server refuses each apply with code 500 as long as any entry of `managedFields`, whosever it is,
//! names a version that the type no longer has: it cannot convert the object to that. A CRD that drops a version would stop all
//! its copies. So after such an answer, entries at versions at which the side no longer serves the type are moved to the one at
//! which it is synced. The next apply then removes what the origin has dropped meanwhile.
//!
//! A patch of `metadata.managedFields` that names such a version is taken, and the server forgets all managers of the object
//! with it: what was ours would stay when the origin drops it. So none is sent ([`patch_managers`]).

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use kube_lite::discovery::{self, Served};
use kube_lite::fields::with_fields;
use kube_lite::{Cluster, Content, Error, ResourceType};
use serde_json::json;

use super::copy_place::send_patch;
use super::field_set::FieldSet;
use super::managed_fields::{Entries, Owner, field_set};
use super::meta::Meta;
use super::object::Address;

/// Applies through `once` to the copy as it was at a version.
pub(super) async fn apply(
    copies: &Cluster,
    at: &Address,
    version: Option<&str>,
    once: impl AsyncFn(Option<&str>) -> Result<(Bytes, bool), Error>,
) -> Result<(Bytes, bool), Error> {
    let applied = once(version).await;
    if !applied.as_ref().is_err_and(Error::is_internal) {
        return applied;
    }
    match move_managers(copies, at, version).await? {
        Some(version) => once(Some(&version)).await,
        None => applied,
    }
}

/// Moves the entries of the copy, as it was at a version, that name one which is gone. Returns the version that the copy then
/// has; `None` if there are none, or they may not be moved.
async fn move_managers(copies: &Cluster, at: &Address, version: Option<&str>) -> Result<Option<String>, Error> {
    let Address { resource, name } = at;
    let copy = match copies.get(resource, name, Content::Metadata).await {
        Ok(copy) => copy,
        // Then the refusal of the apply is logged.
        Err(error) if error.status().is_some() => return Ok(None),
        Err(error) => return Err(error),
    };
    let meta = Meta::of(name, &copy)?;
    if version.is_some_and(|version| version != meta.resource_version) {
        return Ok(None);
    }
    let Some(patch) = without_gone(copies, resource, &copy).await? else {
        return Ok(None);
    };
    let patched = send_patch(copies, at, patch).await?;
    Ok(patched.map(|(_, version)| version))
}

/// Changes who owns what of a copy. Returns its metadata and the version that it then has; `None` if that is refused.
pub(super) async fn patch_managers(
    copies: &Cluster,
    at: &Address,
    patch: String,
) -> Result<Option<(Bytes, String)>, Error> {
    let moved = without_gone(copies, &at.resource, patch.as_bytes()).await?;
    send_patch(copies, at, moved.unwrap_or(patch)).await
}

/// The patch that puts the entries in these metadata in their place, none of them at a version that is gone; `None` if there
/// is none at such a version.
async fn without_gone(copies: &Cluster, resource: &ResourceType, object: &[u8]) -> Result<Option<String>, Error> {
    let entries = Entries::of(object)?;
    let mut gone = BTreeSet::new();
    for version in others(&entries, resource) {
        let served = discovery::discover(copies, &(resource.group.clone(), version.clone())).await?;
        let has = matches!(&served, Served::Resources(resources) if resources.contains_key(&resource.resource));
        if !has {
            gone.insert(version);
        }
    }
    moved(&entries, resource, &gone)
}

/// The other versions of the type that entries name.
fn others(entries: &Entries<'_>, resource: &ResourceType) -> BTreeSet<String> {
    let versions = entries
        .iter()
        .filter_map(|(_, owner)| version_in(owner, &resource.group));
    let others = versions.filter(|version| *version != resource.version);
    others.map(str::to_owned).collect()
}

fn version_in<'a>(owner: &'a Owner<'_>, group: &str) -> Option<&'a str> {
    let (of, version) = owner.api_version.rsplit_once('/').unwrap_or(("", &owner.api_version));
    (of == group && !version.is_empty()).then_some(version)
}

/// The patch that moves entries at these versions to that of the type; `None` if there are none. What one manager has written
/// in the same way at both versions becomes one entry, as servers keep them.
fn moved(entries: &Entries<'_>, resource: &ResourceType, gone: &BTreeSet<String>) -> Result<Option<String>, Error> {
    let to = resource.api_version();
    let is_gone = |owner: &Owner<'_>| version_in(owner, &resource.group).is_some_and(|version| gone.contains(version));
    if !entries.iter().any(|(_, owner)| is_gone(owner)) {
        return Ok(None);
    }
    let who = |owner: &Owner<'_>| {
        let version = if is_gone(owner) { &*to } else { &*owner.api_version };
        // An applier has one entry, whatever its version.
        let version = if owner.operation == "Apply" { "" } else { version };
        json!([owner.manager, owner.operation, owner.subresource, version]).to_string()
    };
    let mut all: BTreeMap<String, FieldSet> = BTreeMap::new();
    for (_, owner) in entries.iter() {
        all.entry(who(owner)).or_default().add(&field_set(owner)?);
    }
    let (mut kept, mut seen) = (Vec::new(), BTreeSet::new());
    for (entry, owner) in entries.iter() {
        let who = who(owner);
        if !seen.insert(who.clone()) {
            continue;
        }
        let fields = all.remove(&who).unwrap_or_default().render();
        let version = json!(if is_gone(owner) { &to } else { &*owner.api_version }).to_string();
        kept.push(with_fields(entry, &[("apiVersion", &version), ("fieldsV1", &fields)])?);
    }
    Ok(Some(entries.patch(&kept)))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::managed_fields::tests::entry;
    use super::*;

    fn servings() -> ResourceType {
        ResourceType {
            group: "example.org".into(),
            version: "v2".into(),
            resource: "servings".into(),
            kind: "Serving".into(),
            namespaced: true,
        }
    }

    fn at(version: &str, manager: &str, operation: &str, fields: &Value) -> Value {
        let mut entry = entry(manager, operation, fields);
        entry["apiVersion"] = json!(format!("example.org/{version}"));
        entry
    }

    /// The entries after versions v1 and v1beta1 are gone; `None` if nothing is written.
    fn check(before: &[Value], after: Option<&[Value]>) {
        let object = json!({"metadata": {"resourceVersion": "7", "managedFields": before}}).to_string();
        let entries = Entries::of(object.as_bytes()).unwrap();
        let gone = BTreeSet::from(["v1".to_owned(), "v1beta1".to_owned()]);
        let patch = moved(&entries, &servings(), &gone).unwrap();
        let patch = patch.map(|patch| serde_json::from_str::<Value>(&patch).unwrap());
        let expected = after.map(|after| json!({"metadata": {"resourceVersion": "7", "managedFields": after}}));
        assert_eq!(patch, expected);
    }

    #[test]
    fn entries_at_versions_that_are_gone_are_moved_to_the_one_that_is_synced() {
        let (a, b) = (json!({"f:spec": {"f:a": {}}}), json!({"f:spec": {"f:b": {}}}));
        let both = json!({"f:spec": {"f:a": {}, "f:b": {}}});
        let mut status = at("v1", "operator", "Update", &json!({"f:status": {"f:x": {}}}));
        status["subresource"] = json!("status");
        let mut moved_status = status.clone();
        moved_status["apiVersion"] = json!("example.org/v2");
        check(
            &[at("v1", "edge-syncer", "Apply", &a), status.clone()],
            Some(&[at("v2", "edge-syncer", "Apply", &a), moved_status]),
        );
        // One manager at several versions.
        check(
            &[
                at("v1", "operator", "Update", &a),
                at("v2", "operator", "Update", &b),
                at("v3", "other", "Update", &a),
            ],
            Some(&[at("v2", "operator", "Update", &both), at("v3", "other", "Update", &a)]),
        );
        check(
            &[at("v1beta1", "x", "Update", &a), at("v1", "x", "Update", &b)],
            Some(&[at("v2", "x", "Update", &both)]),
        );
    }

    #[test]
    fn where_all_versions_are_served_nothing_is_moved() {
        let a = json!({"f:spec": {"f:a": {}}});
        check(
            &[at("v2", "edge-syncer", "Apply", &a), at("v3", "x", "Update", &a)],
            None,
        );
        let mut of_another = at("v1", "x", "Update", &a);
        of_another["apiVersion"] = json!("other.org/v1");
        check(&[of_another], None);
        check(&[], None);
    }

    #[test]
    fn the_versions_to_ask_for_are_those_of_other_entries() {
        let a = json!({"f:spec": {"f:a": {}}});
        let entries = [
            at("v1", "x", "Update", &a),
            at("v2", "y", "Apply", &a),
            at("v1", "z", "Update", &a),
        ];
        let object = json!({"metadata": {"managedFields": entries}}).to_string();
        let entries = Entries::of(object.as_bytes()).unwrap();
        assert_eq!(others(&entries, &servings()), BTreeSet::from(["v1".to_owned()]));
    }
}
