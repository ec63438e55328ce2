//! The annotations of a primary that name what belongs to it, for people.
//!
//! Promises: they name what is there, counted without gaps; what is there no longer is not named.

use std::collections::{BTreeMap, BTreeSet};

use kube_lite::ObjectName;
use serde_json::{Map, Value, json};

use super::Pass;
use super::locating::RelatedEnd;
use crate::keys::RELATED_PREFIX;
use crate::kinds::{Origin, Related};
use crate::trouble::Stop;

/// What is named, and which identifiers are not known completely: of these nothing is taken away.
#[derive(Debug, Default)]
pub(super) struct Pointers {
    named: BTreeMap<String, String>,
    unknown: BTreeSet<String>,
}

impl Pointers {
    /// Nothing is known of these yet.
    pub(super) fn of(related: &[Related]) -> Self {
        let of_service = related.iter().filter(|related| related.origin == Origin::Service);
        Self {
            named: BTreeMap::new(),
            unknown: of_service.map(|related| related.identifier.clone()).collect(),
        }
    }

    /// These are there, in their order. It may be that not all are known.
    pub(super) fn are<'n>(
        &mut self,
        related: &Related,
        there: &RelatedEnd<'_>,
        names: impl IntoIterator<Item = &'n ObjectName>,
        are_all: bool,
    ) {
        if related.origin != Origin::Service || !are_all {
            return;
        }
        self.unknown.remove(&related.identifier);
        let resource = &there.served.resource;
        for (index, name) in names.into_iter().enumerate() {
            let mut pointer = json!({"name": name.name, "apiVersion": resource.api_version(), "kind": resource.kind});
            if !name.namespace().is_empty() {
                pointer["namespace"] = json!(name.namespace());
            }
            let key = format!("{RELATED_PREFIX}{}.{index}", related.identifier);
            self.named.insert(key, pointer.to_string());
        }
    }

    /// What has to be changed in the annotations of an object; nothing if they are as they should be.
    fn changes(&self, object: &Value) -> Map<String, Value> {
        let found = &object["metadata"]["annotations"];
        let news = self.named.iter().filter(|(key, named)| found[key] != ***named);
        let mut changes: Map<String, Value> = news.map(|(key, named)| (key.clone(), json!(named))).collect();
        for key in found.as_object().into_iter().flat_map(Map::keys) {
            let Some(rest) = key.strip_prefix(RELATED_PREFIX) else {
                continue;
            };
            let identifier = rest.rsplit_once('.').map_or(rest, |(identifier, _)| identifier);
            if !self.named.contains_key(key) && !self.unknown.contains(identifier) {
                changes.insert(key.clone(), Value::Null);
            }
        }
        changes
    }
}

/// Whether an object names something.
pub(super) fn has_pointers(object: &Value) -> bool {
    let annotations = object["metadata"]["annotations"].as_object();
    annotations.is_some_and(|all| all.keys().any(|key| key.starts_with(RELATED_PREFIX)))
}

impl Pass<'_> {
    /// The primary names what belongs to it.
    pub(super) async fn point(&self, object: &Value, pointers: &Pointers) -> Result<(), Stop> {
        let changes = pointers.changes(object);
        if changes.is_empty() {
            return Ok(());
        }
        let uid = &object["metadata"]["uid"];
        let patch = json!({"metadata": {"uid": uid, "annotations": changes}}).to_string();
        let written = self
            .shard
            .merge_patch(self.route.remote(), &self.primary.name, patch.into())
            .await;
        let stop = |error| self.stop_of_primary("naming related objects", error);
        written.map(drop).map_err(stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_named_is_there_and_what_is_there_no_longer_is_not_named() {
        let key = |rest: &str| format!("{RELATED_PREFIX}{rest}");
        let object = |annotations: &[(&str, &str)]| {
            let all = annotations.iter().map(|(rest, named)| (key(rest), json!(named)));
            json!({"metadata": {"annotations": all.collect::<Map<_, _>>()}})
        };
        let named = [("keys.0", "a"), ("keys.1", "b")];
        let pointers = Pointers {
            named: named
                .iter()
                .map(|(rest, named)| (key(rest), (*named).to_owned()))
                .collect(),
            unknown: ["late".to_owned()].into(),
        };
        for (found, expected) in [
            (object(&[]), vec![("keys.0", json!("a")), ("keys.1", json!("b"))]),
            (object(&named), vec![]),
            (
                object(&[("keys.0", "b"), ("keys.1", "b"), ("keys.2", "c")]),
                vec![("keys.0", json!("a")), ("keys.2", json!(null))],
            ),
            // By rules that are gone, and by one that could not be followed.
            (
                object(&[
                    ("keys.0", "a"),
                    ("keys.1", "b"),
                    ("gone.0", "x"),
                    ("late.0", "y"),
                    ("odd", "z"),
                ]),
                vec![("gone.0", json!(null)), ("odd", json!(null))],
            ),
        ] {
            let expected: Map<String, Value> = expected.into_iter().map(|(rest, to)| (key(rest), to)).collect();
            assert_eq!(pointers.changes(&found), expected, "{found}");
        }
        let others = json!({"metadata": {"annotations": {"a": "b"}}});
        assert!(!has_pointers(&others) && has_pointers(&object(&named)));
        assert!(Pointers::default().changes(&others).is_empty());
    }
}
