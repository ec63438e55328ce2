//! A type of the service cluster as an APIResourceSchema of kcp.
//!
//! Promises: one type and one projection give one name, byte for byte that of the Go agent, so that what it has made is
//! continued; nothing of the service cluster but the type itself comes into kcp.

mod builtin;
mod order;
mod project;
mod structs;
#[cfg(test)]
mod tests;

use std::fmt;

use serde_json::{Map, Value, json};

pub use builtin::{Builtin, BuiltinVersion};
pub use order::compare;
pub use project::project;

use crate::json;
use crate::keys::AGENT_NAME;
use crate::kinds::Scope;

/// The annotation with the generation of the CRD.
pub const SOURCE_GENERATION: &str = "syncagent.kcp.io/source-generation";

/// The annotation by which a type of a protected group is allowed.
pub const APPROVED: &str = "api-approved.kubernetes.io";

/// A type, as a CRD describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Crd {
    /// How often it was changed.
    pub generation: i64,
    /// Where a type of a protected group was approved.
    pub approval: Option<String>,
    /// Its group.
    pub group: String,
    /// Its names.
    pub names: Names,
    /// Whether objects are in namespaces.
    pub scope: Scope,
    /// Its versions, in their order.
    pub versions: Vec<Version>,
    /// A switch of old CRDs.
    pub preserves_unknown_fields: bool,
}

/// The names of a type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    /// The plural, which URLs have.
    pub plural: String,
    /// The singular.
    pub singular: String,
    /// Short names.
    pub short_names: Vec<String>,
    /// The kind.
    pub kind: String,
    /// The kind of lists.
    pub list_kind: String,
    /// Categories.
    pub categories: Vec<String>,
}

/// A version of a type.
#[derive(Debug, Clone, PartialEq)]
pub struct Version {
    /// Its name.
    pub name: String,
    /// Whether it can be asked for.
    pub is_served: bool,
    /// Whether objects are stored in it.
    pub is_stored: bool,
    /// All else of it.
    pub fields: Map<String, Value>,
}

impl Version {
    /// Whether it has the subresource of this name.
    pub fn has(&self, subresource: &str) -> bool {
        let subresources = self.fields.get("subresources");
        subresources.is_some_and(|all| all.get(subresource).is_some_and(|found| !found.is_null()))
    }
}

/// Why there is no schema. A person has to repair it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SchemaError {
    /// The CRD, or the schema of a built-in type, cannot be read.
    Unreadable(String),
    /// It has none of the versions that are wanted.
    NoVersion(Vec<String>),
    /// None of the versions that are wanted is served.
    NoneServed,
    /// One new name for several versions.
    SeveralVersions(String, usize),
    /// Two versions would have this name.
    Twice(String),
    /// kcp takes no core types.
    NoGroup,
    /// kcp takes no such name.
    Name(String),
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why) => f.write_str(why),
            Self::NoVersion(wanted) if wanted.is_empty() => f.write_str("the CRD has no versions"),
            Self::NoVersion(wanted) => write!(f, "the CRD has none of these versions: {}", wanted.join(", ")),
            Self::NoneServed => f.write_str("none of the selected versions is served"),
            Self::SeveralVersions(version, count) => write!(
                f,
                "spec.projection.version {version:?} is for one version, and {count} are selected: use spec.projection.versions"
            ),
            Self::Twice(version) => write!(f, "spec.projection.versions gives two versions the name {version}"),
            Self::NoGroup => f.write_str("spec.projection.group is missing: kcp takes no types of the core group"),
            Self::Name(name) => write!(f, "{name:?} is no name that a schema can have"),
        }
    }
}

impl std::error::Error for SchemaError {}

impl Crd {
    /// Reads a CustomResourceDefinition of the version v1.
    pub fn read(crd: &Value) -> Result<Self, SchemaError> {
        read(crd).map_err(|why| SchemaError::Unreadable(format!("the CRD cannot be used: {why}")))
    }

    /// The version in which objects are stored.
    pub fn stored_version(&self) -> Option<&Version> {
        self.versions.iter().find(|version| version.is_stored)
    }

    /// The spec as the API has it, without its conversion.
    fn spec(&self) -> Map<String, Value> {
        let versions = self.versions.iter().map(|version| {
            let mut fields = version.fields.clone();
            fields.insert("name".to_owned(), json!(version.name));
            fields.insert("served".to_owned(), json!(version.is_served));
            fields.insert("storage".to_owned(), json!(version.is_stored));
            fields
        });
        let spec = json!({
            "group": self.group,
            "names": {
                "plural": self.names.plural,
                "singular": self.names.singular,
                "shortNames": self.names.short_names,
                "kind": self.names.kind,
                "listKind": self.names.list_kind,
                "categories": self.names.categories,
            },
            "scope": self.scope.name(),
            "versions": versions.collect::<Vec<_>>(),
            "preserveUnknownFields": self.preserves_unknown_fields,
        });
        match spec {
            Value::Object(spec) => spec,
            _ => Map::new(),
        }
    }
}

fn read(crd: &Value) -> Result<Crd, String> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let metadata = crd.get("metadata");
    let spec = crd.get("spec").and_then(Value::as_object).ok_or("spec is missing")?;
    let names = spec.get("names").and_then(Value::as_object);
    let names = names.ok_or("spec.names is missing")?;
    let texts = |key: &str| {
        let items = names.get(key).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let versions = spec.get("versions").and_then(Value::as_array);
    let versions = versions.ok_or("spec.versions is missing")?;
    let scope = text(spec.get("scope"));
    let approval = metadata.and_then(|metadata| metadata.get("annotations")?.get(APPROVED));
    Ok(Crd {
        generation: metadata
            .and_then(|metadata| metadata.get("generation")?.as_i64())
            .unwrap_or(0),
        approval: approval.and_then(Value::as_str).map(str::to_owned),
        group: text(spec.get("group")),
        names: Names {
            plural: text(names.get("plural")),
            singular: text(names.get("singular")),
            short_names: texts("shortNames"),
            kind: text(names.get("kind")),
            list_kind: text(names.get("listKind")),
            categories: texts("categories"),
        },
        scope: Scope::named(&scope).ok_or_else(|| format!("spec.scope {scope:?} must be Cluster or Namespaced"))?,
        versions: versions.iter().enumerate().map(version).collect::<Result<_, _>>()?,
        preserves_unknown_fields: spec.get("preserveUnknownFields").and_then(Value::as_bool) == Some(true),
    })
}

fn version((index, version): (usize, &Value)) -> Result<Version, String> {
    let fields = version
        .as_object()
        .ok_or_else(|| format!("spec.versions[{index}] is no mapping"))?;
    let mut fields = fields.clone();
    let name = fields.remove("name");
    let name = name.as_ref().and_then(Value::as_str).unwrap_or_default();
    if name.is_empty() {
        return Err(format!("spec.versions[{index}].name is missing"));
    }
    let mut is_on = |key: &str| fields.remove(key).is_some_and(|value| value == true);
    let (is_served, is_stored) = (is_on("served"), is_on("storage"));
    let schema = fields.get("schema").and_then(|schema| schema.get("openAPIV3Schema"));
    // Those of old CRDs may have none, and then take whatever comes.
    if schema.is_none_or(Value::is_null) {
        let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        fields.insert("schema".to_owned(), json!({"openAPIV3Schema": anything}));
    }
    Ok(Version {
        name: name.to_owned(),
        is_served,
        is_stored,
        fields,
    })
}

/// A type as kcp is to show it.
#[derive(Debug, Clone, PartialEq)]
pub struct Projected {
    /// The type with the names, versions and scope that it has in kcp.
    pub crd: Crd,
    /// Its spec as Go writes it.
    json: String,
}

impl Projected {
    fn new(crd: Crd) -> Result<Self, SchemaError> {
        let unreadable = |why| SchemaError::Unreadable(format!("the CRD cannot be used: spec.{why}"));
        let json = structs::spec(&crd.spec()).map_err(unreadable)?;
        Ok(Self { crd, json })
    }

    /// The name of its schema.
    pub fn schema_name(&self) -> String {
        let hash = json::hash_of_json(&self.json);
        format!("v{}.{}.{}", &hash[..8], self.crd.names.plural, self.crd.group)
    }

    /// Its schema, of an agent. Where kcp serves the field, fields by which objects are selected are a part of it.
    pub fn schema(&self, agent: &str, has_selectable_fields: bool) -> Value {
        // What Go leaves out is left out here too.
        let mut spec: Map<String, Value> = serde_json::from_str(&self.json).unwrap_or_default();
        spec.remove("preserveUnknownFields");
        let versions = spec.get_mut("versions").and_then(Value::as_array_mut);
        let count = versions.as_ref().map_or(0, |versions| versions.len());
        for version in versions.into_iter().flatten().filter_map(Value::as_object_mut) {
            let schema = version
                .get_mut("schema")
                .and_then(|schema| schema.get_mut("openAPIV3Schema"));
            let schema = schema.map_or(Value::Null, Value::take);
            version.insert("schema".to_owned(), schema);
            version.entry("subresources").or_insert_with(|| json!({}));
            if !has_selectable_fields {
                version.remove("selectableFields");
            }
        }
        if count > 1 {
            spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
        }
        let mut annotations = json!({
            AGENT_NAME: agent,
            SOURCE_GENERATION: self.crd.generation.to_string(),
        });
        if let Some(approval) = &self.crd.approval {
            annotations[APPROVED] = json!(approval);
        }
        json!({
            "apiVersion": "apis.kcp.io/v1alpha1",
            "kind": "APIResourceSchema",
            "metadata": {
                "name": self.schema_name(),
                "labels": {AGENT_NAME: agent},
                "annotations": annotations,
            },
            "spec": spec,
        })
    }
}
