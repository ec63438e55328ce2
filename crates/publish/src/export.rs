//! What an APIExport has of an agent: schemas, permission claims and the agent's name.
//!
//! Promises: what others have put there stays, also what is left of PublishedResources that are gone; an export that has
//! all already is given back as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde_json::{Map, Value, json};

use crate::json::taken;
use crate::keys::AGENT_NAME;
use crate::kinds::{Origin, PublishedResource};

/// An export, and what is new in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// The export as it should be.
    pub export: Value,
    /// Schemas that were added.
    pub added: Vec<String>,
    /// Schemas in whose place others are.
    pub removed: Vec<String>,
    /// Types for which claims were added, as `group/resource`.
    pub claims: Vec<String>,
}

/// A claim, by what distinguishes it from others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    group: String,
    resource: String,
    identity: String,
}

impl Claim {
    fn of(group: &str, resource: &str, identity: &str) -> Self {
        Self {
            group: group.to_owned(),
            resource: resource.to_owned(),
            identity: identity.to_owned(),
        }
    }

    fn read(claim: &Value) -> Self {
        let text = |key: &str| claim.get(key).and_then(Value::as_str).unwrap_or_default();
        Self::of(text("group"), text("resource"), text("identityHash"))
    }

    fn shown(&self) -> String {
        match &*self.group {
            "" => self.resource.clone(),
            group => format!("{group}/{}", self.resource),
        }
    }

    fn to_json(&self) -> Value {
        let mut claim = json!({"resource": self.resource, "all": true});
        for (key, text) in [("group", &self.group), ("identityHash", &self.identity)] {
            if !text.is_empty() {
                claim[key] = json!(text);
            }
        }
        claim
    }
}

/// The export of this agent, with what these PublishedResources need.
pub fn merge(export: &Value, agent: &str, published: &[Rc<PublishedResource>]) -> Merged {
    let mut merged = export.as_object().cloned().unwrap_or_default();
    let before = texts(export.get("spec").and_then(|spec| spec.get("latestResourceSchemas")));
    let ready = published.iter().filter_map(|it| it.schema_name.as_deref());
    let schemas = with_schemas(&before, ready);
    let own: BTreeSet<String> = schemas.iter().map(|name| type_of(name)).collect();

    let mut spec = taken(&mut merged, "spec");
    if schemas != before {
        spec.insert("latestResourceSchemas".to_owned(), json!(schemas));
    }
    let claims = add_claims(&mut spec, &needed(published, &own));
    let mut metadata = taken(&mut merged, "metadata");
    let mut annotations = taken(&mut metadata, "annotations");
    annotations.insert(AGENT_NAME.to_owned(), json!(agent));
    metadata.insert("annotations".to_owned(), Value::Object(annotations));
    merged.insert("metadata".to_owned(), Value::Object(metadata));
    merged.insert("spec".to_owned(), Value::Object(spec));

    let missing = |all: &[String], others: &[String]| {
        let missing = all.iter().filter(|name| !others.contains(name));
        missing.cloned().collect::<BTreeSet<_>>().into_iter().collect()
    };
    Merged {
        added: missing(&schemas, &before),
        removed: missing(&before, &schemas),
        claims,
        export: Value::Object(merged),
    }
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let items = list.and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// What a schema is of, as `plural.group`: its name without the version.
fn type_of(schema: &str) -> String {
    schema.split_once('.').map_or(schema, |(_, rest)| rest).to_owned()
}

/// These schemas with others in the place of those of the same types, in order.
fn with_schemas<'a>(before: &[String], others: impl Iterator<Item = &'a str>) -> Vec<String> {
    let of_type = before.iter().map(|name| (type_of(name), name.clone()));
    let others = others.map(|name| (type_of(name), name.to_owned()));
    let all: BTreeMap<String, String> = of_type.chain(others).collect();
    all.into_values().collect()
}

/// The claims that an agent needs to serve these.
fn needed(published: &[Rc<PublishedResource>], own: &BTreeSet<String>) -> BTreeSet<Claim> {
    let unmade = published.iter().filter(|it| it.schema_name.is_none());
    let unmade: BTreeSet<&str> = unmade
        .map(|it| it.projection.group.as_ref().unwrap_or(&it.source.group).as_str())
        .collect();
    let mut claims = BTreeSet::from([Claim::of("", "events", "")]);
    for resource in published {
        if resource.filter.namespace.is_some() || !resource.related.is_empty() {
            claims.insert(Claim::of("", "namespaces", ""));
        }
        if resource.workspace_paths {
            claims.insert(Claim::of("core.kcp.io", "logicalclusters", ""));
        }
        for related in &resource.related {
            let in_kcp = related.type_on(Origin::Kcp);
            let identity = related.identity_hash.as_deref().unwrap_or_default();
            // It may be a type of the export whose schema is still to be made: a claim would stay.
            let may_be_own = identity.is_empty() && !in_kcp.group.is_empty() && unmade.contains(&*in_kcp.group);
            if may_be_own || own.contains(&format!("{}.{}", in_kcp.resource, in_kcp.group)) {
                continue;
            }
            claims.insert(Claim::of(&in_kcp.group, &in_kcp.resource, identity));
        }
    }
    claims
}

/// Adds the claims that are missing, and says which.
fn add_claims(spec: &mut Map<String, Value>, needed: &BTreeSet<Claim>) -> Vec<String> {
    let before = spec.get("permissionClaims").and_then(Value::as_array);
    let mut claims = before.cloned().unwrap_or_default();
    // Whatever a claim selects: one of the other version of the API does not say here that it means all.
    let known: BTreeSet<Claim> = claims.iter().map(Claim::read).collect();
    let missing: Vec<&Claim> = needed.difference(&known).collect();
    claims.extend(missing.iter().map(|claim| claim.to_json()));
    claims.sort_by_key(|claim| {
        let claim = Claim::read(claim);
        (claim.group, claim.resource)
    });
    spec.insert("permissionClaims".to_owned(), json!(claims));
    missing.iter().map(|claim| claim.shown()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::read;

    fn published(spec: &Value, schema: Option<&str>) -> Rc<PublishedResource> {
        let mut spec = spec.clone();
        spec["resource"] = json!({"apiGroup": "g", "kind": "K"});
        Rc::new(read(&json!({"spec": spec, "status": {"resourceSchemaName": schema}})).unwrap())
    }

    fn of(merged: &Merged) -> (Vec<String>, Vec<String>) {
        let claims = merged.export["spec"]["permissionClaims"].as_array().unwrap();
        let schemas = texts(Some(&merged.export["spec"]["latestResourceSchemas"]));
        (schemas, claims.iter().map(|claim| Claim::read(claim).shown()).collect())
    }

    /// A related type.
    fn related(origin: &str, group: &str, resource: &str, more: &Value) -> Value {
        let mut item = json!({
            "identifier": resource, "origin": origin, "group": group, "version": "v1", "resource": resource,
            "object": {"template": {"template": "x"}},
        });
        for (key, value) in more.as_object().unwrap() {
            item[key] = value.clone();
        }
        item
    }

    #[test]
    fn schemas_of_a_type_are_replaced_and_all_others_stay() {
        let one = published(&json!({}), Some("v2.shops.g"));
        let waiting = published(&json!({}), None);
        let export = json!({
            "metadata": {"name": "e", "annotations": {"apis.v1alpha2.kcp.io/x": "y"}},
            "spec": {
                "latestResourceSchemas": ["today.zebras.h", "v1.shops.g", "v1.gone.g"],
                "maximalPermissionPolicy": {"local": {}},
            },
            "status": {"identityHash": "h"},
        });
        let all = [one, waiting];
        let merged = merge(&export, "agent", &all);
        let (schemas, claims) = of(&merged);
        assert_eq!(schemas, ["v1.gone.g", "v2.shops.g", "today.zebras.h"]);
        assert_eq!(claims, ["events"]);
        assert_eq!(merged.added, ["v2.shops.g"]);
        assert_eq!(merged.removed, ["v1.shops.g"]);
        assert_eq!(merged.export["metadata"]["annotations"][AGENT_NAME], "agent");
        assert_eq!(merged.export["metadata"]["annotations"]["apis.v1alpha2.kcp.io/x"], "y");
        assert_eq!(merged.export["spec"]["maximalPermissionPolicy"], json!({"local": {}}));
        assert_eq!(merged.export["status"], export["status"]);

        let again = merge(&merged.export, "agent", &all);
        assert_eq!(again.export, merged.export);
        assert!(again.added.is_empty() && again.removed.is_empty() && again.claims.is_empty());
    }

    #[test]
    fn claims_are_those_that_are_needed() {
        let own = related("kcp", "g", "shops", &json!({}));
        let planned = related("kcp", "g", "others", &json!({}));
        let foreign = related("kcp", "f", "things", &json!({"identityHash": "h"}));
        let namesake = related("kcp", "g", "things", &json!({"identityHash": "h"}));
        let projected = related(
            "service",
            "",
            "secrets",
            &json!({"projection": {"resource": "configmaps"}}),
        );
        for (spec, expected) in [
            (json!({}), vec!["events"]),
            (json!({"filter": {"resource": {}}}), vec!["events"]),
            (json!({"filter": {"namespace": {}}}), vec!["events", "namespaces"]),
            (
                json!({"enableWorkspacePaths": true}),
                vec!["events", "core.kcp.io/logicalclusters"],
            ),
            (json!({"related": [own]}), vec!["events", "namespaces"]),
            (json!({"related": [planned]}), vec!["events", "namespaces"]),
            (json!({"related": [foreign]}), vec!["events", "namespaces", "f/things"]),
            (json!({"related": [namesake]}), vec!["events", "namespaces", "g/things"]),
            (
                json!({"related": [projected]}),
                vec!["configmaps", "events", "namespaces"],
            ),
        ] {
            let resource = published(&spec, Some("v1.shops.g"));
            let all = [resource, published(&json!({}), None)];
            let merged = merge(&json!({"metadata": {}, "spec": {}}), "agent", &all);
            assert_eq!(of(&merged).1, expected, "{spec}");
            assert_eq!(merged.claims.len(), expected.len());
            for claim in merged.export["spec"]["permissionClaims"].as_array().unwrap() {
                assert_eq!(claim["all"], true);
            }
        }
    }

    #[test]
    fn a_type_that_may_become_the_exports_own_is_claimed_only_once_it_is_known_not_to() {
        let uses =
            json!({"related": [related("kcp", "g", "others", &json!({})), related("kcp", "", "secrets", &json!({}))]});
        let uses = published(&uses, Some("v1.shops.g"));
        let kept = ["events", "namespaces", "secrets"];
        for (other, expected) in [
            (published(&json!({}), None), &kept[..]),
            (published(&json!({}), Some("v1.others.g")), &kept),
            (
                published(&json!({}), Some("v1.more.g")),
                &["events", "namespaces", "secrets", "g/others"],
            ),
            (
                published(&json!({"projection": {"group": "h"}}), None),
                &["events", "namespaces", "secrets", "g/others"],
            ),
        ] {
            let merged = merge(&json!({"spec": {}}), "agent", &[Rc::clone(&uses), other]);
            assert_eq!(of(&merged).1, expected);
        }
    }

    #[test]
    fn claims_that_are_there_stay_as_they_are() {
        let foreign = json!({"group": "z", "resource": "zebras", "resourceSelector": [{"name": "x"}]});
        let of_v1alpha2 = json!({"resource": "events", "all": false});
        let of_other_identity = json!({"group": "f", "resource": "things", "identityHash": "other", "all": true});
        let export = json!({"spec": {"permissionClaims": [foreign, of_v1alpha2, of_other_identity]}});
        let resource = published(
            &json!({"related": [related("kcp", "f", "things", &json!({"identityHash": "h"}))]}),
            None,
        );
        let merged = merge(&export, "agent", &[resource]);
        let ours = json!({"group": "f", "resource": "things", "identityHash": "h", "all": true});
        let namespaces = json!({"resource": "namespaces", "all": true});
        assert_eq!(
            merged.export["spec"]["permissionClaims"],
            json!([of_v1alpha2, namespaces, of_other_identity, ours, foreign])
        );
        assert_eq!(merged.claims, ["namespaces", "f/things"]);
    }
}
