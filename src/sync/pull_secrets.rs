//! `imagePullSecrets` of a `ServiceAccount`, which the origin and the copy's own side fill together.
//!
//! To an API server the list is one field (`x-kubernetes-list-type: atomic`), so an apply would remove what the copy's
//! side has added, and `OpenShift` would add it again without end. So it is patched instead, and an annotation of the
//! copy keeps the names that came from the origin: they are removed when the origin drops them, and all others stay.
//! Both are written by one request, so that they always agree.

use std::collections::BTreeSet;

use bytes::Bytes;
use kube_lite::fields::from_text;
use kube_lite::{Error, ResourceType};
use serde_json::{Map, Value, json};

use super::top_fields::{fields_of, object_of};
use crate::api::PULL_SECRETS;

const FIELD: &str = "imagePullSecrets";

/// True for the type that has such a list.
pub(super) fn has_any(resource: &ResourceType) -> bool {
    resource.is("", "serviceaccounts")
}

/// Removes the list from the fields that are synced, each with a leading comma, and returns both.
pub(super) fn split(fields: &str) -> (String, Vec<Value>) {
    let mut object: Map<String, Value> = from_text(&object_of(fields)).unwrap_or_default();
    let secrets = match object.remove(FIELD) {
        Some(Value::Array(secrets)) => secrets,
        _ => Vec::new(),
    };
    (fields_of(&object), secrets)
}

/// The patch that adds to a whole copy what the origin wants, removes what the origin no longer wants, and notes which
/// names are the origin's; `None` if it is so already. It is valid only for this version of the copy.
///
/// If nothing is noted, the names that the origin wants now count as having come from it.
pub(super) fn patch(wanted: &[Value], copy: &[u8]) -> Result<Option<Bytes>, Error> {
    let copy: Value =
        serde_json::from_slice(copy).map_err(|error| Error::BadAnswer(format!("a ServiceAccount: {error}")))?;
    let metadata = &copy["metadata"];
    let noted = metadata["annotations"][PULL_SECRETS].as_str();
    let known: Option<BTreeSet<String>> = noted.and_then(|text| from_text(text).ok());
    let found = copy[FIELD].as_array().cloned().unwrap_or_default();
    let came = |secret: &Value| {
        let known = known.as_ref().zip(name(secret));
        known.is_some_and(|(known, name)| known.contains(name))
    };
    let mut all = found.clone();
    all.retain(|secret| wanted.contains(secret) || !came(secret));
    let mut from_origin = BTreeSet::new();
    for secret in wanted {
        let was_there = found.contains(secret);
        if !was_there && !all.contains(secret) {
            all.push(secret.clone());
        }
        if !was_there || known.is_none() || came(secret) {
            from_origin.extend(name(secret));
        }
    }
    let note = (!wanted.is_empty()).then(|| json!(from_origin).to_string());
    if all == found && note.as_deref() == noted {
        return Ok(None);
    }
    let version = &metadata["resourceVersion"];
    let patch = json!({"metadata": {"resourceVersion": version, "annotations": {PULL_SECRETS: note}}, FIELD: all});
    Ok(Some(Bytes::from(patch.to_string())))
}

fn name(secret: &Value) -> Option<&str> {
    secret["name"].as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &str) -> Vec<Value> {
        names.split_whitespace().map(|name| json!({"name": name})).collect()
    }

    /// `noted` is the annotation before, and `expected` the names and the annotation after; `None` if nothing is written.
    fn check(wanted: &str, found: &str, noted: Option<&str>, expected: Option<(&str, Option<&str>)>) {
        let mut copy = json!({"metadata": {"resourceVersion": "7"}, FIELD: list(found)});
        if let Some(noted) = noted {
            copy["metadata"]["annotations"] = json!({PULL_SECRETS: noted});
        }
        let patch = patch(&list(wanted), copy.to_string().as_bytes()).unwrap();
        let patch = patch.map(|patch| serde_json::from_slice::<Value>(&patch).unwrap());
        let expected = expected.map(|(names, note)| {
            json!({"metadata": {"resourceVersion": "7", "annotations": {PULL_SECRETS: note}}, FIELD: list(names)})
        });
        assert_eq!(patch, expected, "{wanted:?} {found:?} {noted:?}");
    }

    #[test]
    fn what_the_origin_drops_goes_and_what_the_copys_side_has_added_stays() {
        const NOTED: Option<&str> = Some(r#"["mine"]"#);
        for (wanted, found, noted, expected) in [
            // A new copy, and then nothing more.
            ("mine", "", None, Some(("mine", NOTED))),
            ("mine", "mine", NOTED, None),
            ("mine", "edge mine", NOTED, None),
            ("", "edge", None, None),
            // Dropped, replaced, added.
            ("", "mine edge", NOTED, Some(("edge", None))),
            ("", "mine", NOTED, Some(("", None))),
            ("new", "edge mine", NOTED, Some(("edge new", Some(r#"["new"]"#)))),
            ("mine new", "mine", NOTED, Some(("mine new", Some(r#"["mine","new"]"#)))),
            // Somebody has taken it out of the copy.
            ("mine", "edge", NOTED, Some(("edge mine", NOTED))),
            ("", "edge", NOTED, Some(("edge", None))),
            // A copy from before the annotation, or somebody has removed or changed it: only what the origin wants now
            // is known.
            ("mine", "old mine", None, Some(("old mine", NOTED))),
            ("", "old", None, None),
            ("mine", "old mine", Some("who?"), Some(("old mine", NOTED))),
            // The copy's side has one of that name by itself, which stays.
            ("mine edge", "edge mine", NOTED, None),
            ("", "edge mine", NOTED, Some(("edge", None))),
            ("edge", "edge", Some("[]"), None),
            ("", "edge", Some("[]"), Some(("edge", None))),
            // A name that somebody else has noted counts as the origin's, if it is in the list at all.
            ("", "edge", Some(r#"["edge","none"]"#), Some(("", None))),
        ] {
            check(wanted, found, noted, expected);
        }
    }
}
