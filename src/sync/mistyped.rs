//! Copies that hold what their type can hold no longer: a CRD has another type for a field, in the version that it had.
//!
//! An API server refuses each apply to such a copy with code 500, whatever is applied: it cannot compare that with what is
//! there. An update it takes, and with it forgets who owns the fields of the copy, so that the next apply finds it as one
//! that had no managers ([`super::take_over`]). So after such an answer a patch makes what we apply as it has to be, and
//! removes what we have applied and do not any more. What others have stays, except in lists that are not the same.
//!
//! If a field of somebody else is the cause, as a status that its controller has not written since, what is wanted is in the
//! copy by that patch, and the refusal of the apply is reported all the same.

use bytes::Bytes;
use kube_lite::fields::from_text;
use kube_lite::{Cluster, Content, Error, NOWHERE, may_be_a_crd, pointer};
use serde_json::{Map, Value, json};

use super::copy_place::{read_since, send_patch};
use super::dropped_versions;
use super::field_set::FieldSet;
use super::managed_fields::{Entries, Owner, field_set};
use super::object::{Address, Desired};
use super::top_fields::object_of;

/// What an apply does not set.
const NO_CONTENTS: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// Applies through `once` to the copy as it was at a version.
pub(super) async fn apply(
    copies: &Cluster,
    at: &Address,
    desired: &Desired,
    version: Option<&str>,
    once: impl AsyncFn(Option<&str>) -> Result<(Bytes, bool), Error>,
) -> Result<(Bytes, bool), Error> {
    let is_refused = |applied: &Result<_, Error>| applied.as_ref().is_err_and(Error::is_internal);
    let mut applied = once(version).await;
    let version = version.filter(|version| *version != NOWHERE && may_be_a_crd(&at.resource.group));
    let Some(version) = version.filter(|_| is_refused(&applied)) else {
        return applied;
    };
    // A server that is in trouble gives the same code.
    applied = once(Some(version)).await;
    if !is_refused(&applied) {
        return applied;
    }
    match bring(copies, at, desired, version, None).await {
        Ok(Some(version)) => once(Some(&version)).await,
        Ok(None) => applied,
        Err(error) if error.is_internal() => applied,
        Err(error) => Err(error),
    }
}

/// Changes who owns what of a copy, which was this before, as [`dropped_versions::patch_managers`] does. A server that cannot read
/// the copy forgets all managers with that: then what is wanted is brought at once, as long as it is known what was ours.
pub(super) async fn patch_managers(
    copies: &Cluster,
    at: &Address,
    desired: &Desired,
    before: &[u8],
    patch: String,
) -> Result<Option<(Bytes, String)>, Error> {
    let Some((patched, version)) = dropped_versions::patch_managers(copies, at, patch).await? else {
        return Ok(None);
    };
    if Entries::of(&patched)?.iter().next().is_some() {
        return Ok(Some((patched, version)));
    }
    let brought = bring(copies, at, desired, &version, Some(before)).await?;
    Ok(Some((patched, brought.unwrap_or(version))))
}

/// Brings what is wanted to a copy at a version; `before` says what was ours, if its managers do not any more. Returns the version
/// that it then has; `None` if nothing is to be done, or may be.
async fn bring(
    copies: &Cluster,
    at: &Address,
    desired: &Desired,
    version: &str,
    before: Option<&[u8]>,
) -> Result<Option<String>, Error> {
    let found = read_since(copies, at, version, Content::Full).await?;
    let Some((copy, _)) = found.filter(|(_, meta)| meta.resource_version == version) else {
        return Ok(None);
    };
    let ours = ours_of(before.unwrap_or(&copy))?;
    let Some(patch) = patch_of(&copy, &ours, &desired.fields, version) else {
        return Ok(None);
    };
    let patched = send_patch(copies, at, patch).await?;
    Ok(patched.map(|(_, version)| version))
}

/// What we have written of a copy, in whatever way.
fn ours_of(copy: &[u8]) -> Result<FieldSet, Error> {
    let entries = Entries::of(copy)?;
    let is_ours = |owner: &Owner<'_>| owner.is_our_apply() || owner.is_made_by_us();
    let mut ours = FieldSet::default();
    for (_, owner) in entries.iter().filter(|(_, owner)| is_ours(owner)) {
        ours.add(&field_set(owner)?);
    }
    Ok(ours)
}

/// The JSON patch that brings what is wanted to a copy at a version; `None` if it is there.
fn patch_of(copy: &[u8], ours: &FieldSet, fields: &str, version: &str) -> Option<String> {
    let wanted: Map<String, Value> = from_text(&object_of(fields)).ok()?;
    let mut found: Map<String, Value> = serde_json::from_slice(copy).ok()?;
    found.retain(|field, _| !NO_CONTENTS.contains(&field.as_str()));
    let mut steps = vec![json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version})];
    let mut places = vec![(String::new(), Some(&wanted), &found, Some(0))];
    while let Some((path, wanted, found, node)) = places.pop() {
        let step = |name: &str| path.clone() + &pointer(&[name]);
        let below = |name: &str| ours.below(node?, &json!(format!("f:{name}")).to_string());
        for (name, value) in wanted.into_iter().flatten() {
            match (value, found.get(name)) {
                (Value::Object(value), Some(Value::Object(found))) => {
                    places.push((step(name), Some(value), found, below(name)));
                }
                (value, Some(found)) if value == found => {}
                _ => steps.push(json!({"op": "add", "path": step(name), "value": value})),
            }
        }
        for (name, found) in found {
            let unwanted = wanted.is_none_or(|wanted| !wanted.contains_key(name));
            match (below(name).filter(|_| unwanted), found) {
                (Some(node), Value::Object(found)) if has_fields(ours, node) => {
                    places.push((step(name), None, found, Some(node)));
                }
                (Some(_), _) => steps.push(json!({"op": "remove", "path": step(name)})),
                (None, _) => {}
            }
        }
    }
    (steps.len() > 1).then(|| Value::from(steps).to_string())
}

/// True if a field set names fields in an object, so that it may have others too.
fn has_fields(set: &FieldSet, node: usize) -> bool {
    let mut fields = set.fields(node);
    fields.any(|(key, _)| key.starts_with("\"f:"))
}

#[cfg(test)]
mod tests {
    use super::super::managed_fields::tests::entry;
    use super::*;

    #[test]
    fn what_we_apply_is_brought_and_what_others_have_stays() {
        let ours = json!({"f:spec": {"f:port": {}, "f:gone": {}, "f:both": {"f:a": {}, "f:b": {}}, "f:list": {},
            "f:over": {"f:a": {}}}});
        let copy = |spec: Value| {
            json!({"apiVersion": "example.org/v1", "kind": "Topo", "status": {"n": "x"}, "spec": spec,
                "metadata": {"name": "a", "managedFields": [entry("edge-syncer", "Apply", &ours)]}})
        };
        let wanted = json!({"port": "80", "both": {"a": 1}, "list": {"x": 1}, "new/~": true});
        for (found, steps) in [
            (
                json!({"port": 80, "gone": 1, "both": {"a": 1, "b": 2, "c": 3}, "list": [1], "over": {"a": 1, "b": 2}, "x": 1}),
                json!([
                    {"op": "add", "path": "/spec/list", "value": {"x": 1}},
                    {"op": "add", "path": "/spec/new~1~0", "value": true},
                    {"op": "add", "path": "/spec/port", "value": "80"},
                    {"op": "remove", "path": "/spec/gone"},
                    {"op": "remove", "path": "/spec/over/a"},
                    {"op": "remove", "path": "/spec/both/b"},
                ]),
            ),
            (json!(5), json!([{"op": "add", "path": "/spec", "value": wanted}])),
            (wanted.clone(), json!([])),
        ] {
            let fields = format!(",\"spec\":{wanted}");
            let copy = copy(found.clone()).to_string();
            let ours = ours_of(copy.as_bytes()).unwrap();
            let patch = patch_of(copy.as_bytes(), &ours, &fields, "7");
            let patch: Value = serde_json::from_str(&patch.unwrap_or_else(|| "[0]".into())).unwrap();
            assert_eq!(patch.as_array().unwrap()[1..], steps.as_array().unwrap()[..], "{found}");
        }
    }
}
