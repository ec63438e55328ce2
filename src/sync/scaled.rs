//! Where the objects of a custom type say how many pods they are to have: its definition names the field that `scale` sets, and
//! the defaults that the server gives there.
//!
//! A server that is asked to scale an object of which no manager has that field names nobody for it afterwards either. So
//! only a number that is no default shows that somebody has set it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kube_lite::fields::from_text;
use kube_lite::{Cluster, Content, Error, ObjectName, ResourceType, may_be_a_crd};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::field_set::Path;

/// The field that `scale` sets.
#[derive(Debug, PartialEq)]
pub(super) struct Scaled {
    pub(super) path: Path,
    /// What the server may give there where nobody has set it.
    defaults: Vec<Value>,
}

impl Scaled {
    /// That of a type, as its side defines it; `None` if that is not to be known: it is no CRD's, or may not be read.
    pub(super) async fn of(side: &Cluster, resource: &ResourceType) -> Result<Option<Self>, Error> {
        if !may_be_a_crd(&resource.group) {
            return Ok(None);
        }
        let name = ObjectName::new("", &resource.qualified());
        match side.get(&ResourceType::definitions(), &name, Content::Full).await {
            Ok(definition) => Ok(Self::defined_by(&definition, &resource.version)),
            Err(error) if error.is_final() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// That of a version of a CRD.
    fn defined_by(definition: &[u8], version: &str) -> Option<Self> {
        let definition: Definition<'_> = serde_json::from_slice(definition).ok()?;
        let version = definition.spec.versions.into_iter().find(|one| one.name == version)?;
        let keys = version.subresources?.scale?.path.strip_prefix('.')?.to_owned();
        let (mut at, mut defaults) = (version.schema.and_then(|schema| schema.whole), Vec::new());
        for key in keys.split('.') {
            let mut level: Level<'_> = at.and_then(|at| from_text(at.get()).ok()).unwrap_or_default();
            // What a field has as a whole by default may say more of what is in it.
            let inner = defaults.iter().filter_map(|whole: &Value| whole.get(key).cloned());
            defaults = inner.collect();
            at = level.properties.remove(key);
            let field: Level<'_> = at.and_then(|at| from_text(at.get()).ok()).unwrap_or_default();
            defaults.extend(field.default);
        }
        let path = keys.split('.').map(|key| format!("f:{key}")).collect();
        Some(Self { path, defaults })
    }

    /// True if a number there may be what the server gives where nobody has set it.
    pub(super) fn may_be_default(&self, number: &Value) -> bool {
        self.defaults.contains(number)
    }
}

#[derive(Deserialize)]
struct Definition<'a> {
    #[serde(borrow)]
    spec: Spec<'a>,
}

#[derive(Deserialize)]
struct Spec<'a> {
    #[serde(borrow)]
    versions: Vec<Version<'a>>,
}

#[derive(Deserialize)]
struct Version<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(default, borrow)]
    subresources: Option<Subresources<'a>>,
    #[serde(default, borrow)]
    schema: Option<Schema<'a>>,
}

#[derive(Deserialize)]
struct Subresources<'a> {
    #[serde(default, borrow)]
    scale: Option<Scale<'a>>,
}

#[derive(Deserialize)]
struct Scale<'a> {
    #[serde(rename = "specReplicasPath", borrow)]
    path: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Schema<'a> {
    #[serde(rename = "openAPIV3Schema", default, borrow)]
    whole: Option<&'a RawValue>,
}

/// One level of a schema.
#[derive(Default, Deserialize)]
struct Level<'a> {
    #[serde(default)]
    default: Option<Value>,
    #[serde(default, borrow)]
    properties: BTreeMap<Cow<'a, str>, &'a RawValue>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_definition_names_the_field_that_scale_sets_and_its_defaults() {
        let integer = json!({"type": "integer"});
        let three = json!({"type": "integer", "default": 3});
        let of_spec = |properties: Value| json!({"type": "object", "properties": {"spec": {"properties": properties}}});
        let pool = |size: &Value| json!({"pool": {"default": {"size": 5}, "properties": {"size": size}}});
        for (path, schema, expected) in [
            (".spec.size", of_spec(json!({"size": integer})), vec![]),
            (".spec.replicas", of_spec(json!({"replicas": three})), vec![3]),
            (".spec.pool.size", of_spec(pool(&integer)), vec![5]),
            (".spec.pool.size", of_spec(pool(&three)), vec![5, 3]),
            (".spec.size", of_spec(json!({})), vec![]),
            (
                ".spec.size",
                json!({"x-kubernetes-preserve-unknown-fields": true}),
                vec![],
            ),
        ] {
            let version = |name: &str, path: &str| {
                let scale = json!({"specReplicasPath": path, "statusReplicasPath": ".status.replicas"});
                json!({"name": name, "subresources": {"scale": scale}, "schema": {"openAPIV3Schema": schema}})
            };
            let versions = json!([version("v1beta1", ".spec.old"), version("v1", path), {"name": "v2"}]);
            let definition = json!({"spec": {"versions": versions}}).to_string();
            let found = Scaled::defined_by(definition.as_bytes(), "v1").unwrap();
            let keys: String = found.path.iter().map(|key| key.replacen("f:", ".", 1)).collect();
            assert_eq!(keys, path);
            let defaults: Vec<Value> = expected.iter().map(|&number: &u64| json!(number)).collect();
            assert_eq!(found.defaults, defaults, "{definition}");
            assert!(expected.iter().all(|number| found.may_be_default(&json!(number))));
            assert!(!found.may_be_default(&json!(4)));
            for other in ["v2", "v3"] {
                assert_eq!(Scaled::defined_by(definition.as_bytes(), other), None);
            }
        }
        assert_eq!(Scaled::defined_by(b"{}", "v1"), None);
    }
}
