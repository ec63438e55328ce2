//! Types without a CRD, built in or of an aggregated server: what discovery and OpenAPI say of them, as a CRD.
//!
//! It follows the Go agent, whose schemas have to have the same names: what it leaves out of such a type (formats of
//! metadata, defaults, most extensions) is left out here too. Documents of both versions of OpenAPI are read.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Crd, Names, SchemaError, Version, compare};
use crate::kinds::Scope;

/// Where types are approved that are in a protected group and of which nothing else is known.
const APPROVAL: &str = "https://github.com/kcp-dev/kubernetes/pull/4";

/// What discovery says of a type.
#[derive(Debug, Clone, PartialEq)]
pub struct Builtin<'a> {
    /// Its group; empty for core types.
    pub group: &'a str,
    /// Its names. The singular and the kind of lists may be empty.
    pub names: Names,
    /// Whether objects are in namespaces.
    pub scope: Scope,
    /// The version that the server prefers.
    pub preferred: &'a str,
    /// Its versions.
    pub versions: Vec<BuiltinVersion<'a>>,
}

/// A version of such a type.
#[derive(Debug, Clone, PartialEq)]
pub struct BuiltinVersion<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether it has the subresource `status`.
    pub has_status: bool,
    /// Whether it has the subresource `scale`.
    pub has_scale: bool,
    /// The document of OpenAPI with its schema.
    pub openapi: &'a Value,
}

impl Builtin<'_> {
    /// The type as a CRD.
    pub fn crd(&self) -> Result<Crd, SchemaError> {
        let mut names = self.names.clone();
        if names.singular.is_empty() {
            names.singular = names.kind.to_lowercase();
        }
        if names.list_kind.is_empty() {
            names.list_kind = format!("{}List", names.kind);
        }
        let versions = self.versions.iter().map(|version| self.version(version));
        let mut versions = versions
            .collect::<Result<Vec<_>, _>>()
            .map_err(SchemaError::Unreadable)?;
        versions.sort_by(|one, other| compare(&one.name, &other.name));
        let is_protected = ["k8s.io", "kubernetes.io"].iter().any(|domain| {
            self.group
                .strip_suffix(domain)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        });
        Ok(Crd {
            generation: 0,
            approval: is_protected.then(|| APPROVAL.to_owned()),
            group: self.group.to_owned(),
            names,
            scope: self.scope,
            versions,
            preserves_unknown_fields: false,
        })
    }

    fn version(&self, version: &BuiltinVersion<'_>) -> Result<Version, String> {
        let wanted = json!({"group": self.group, "version": version.name, "kind": self.names.kind});
        let models = Models::of(version.openapi);
        let model = models.of_kind(&wanted).ok_or_else(|| {
            format!(
                "OpenAPI has no schema of {} in {}/{}",
                self.names.kind, self.group, version.name
            )
        })?;
        let mut reading = Reading {
            models: &models,
            metadata: format!("{model}.metadata"),
            open: BTreeSet::new(),
        };
        let schema = reading.model(model, "")?;
        let mut subresources = Map::new();
        if version.has_status {
            subresources.insert("status".to_owned(), json!({}));
        }
        if version.has_scale {
            let scale = json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"});
            subresources.insert("scale".to_owned(), scale);
        }
        let fields = json!({"schema": {"openAPIV3Schema": schema}, "subresources": subresources});
        Ok(Version {
            name: version.name.to_owned(),
            is_served: true,
            is_stored: version.name == self.preferred,
            fields: fields.as_object().cloned().unwrap_or_default(),
        })
    }
}

/// The schemas of a document, by name.
struct Models<'a>(Option<&'a Map<String, Value>>);

impl<'a> Models<'a> {
    /// Of either version of OpenAPI.
    fn of(document: &'a Value) -> Self {
        let second = document.get("definitions");
        let third = document.get("components").and_then(|all| all.get("schemas"));
        Self(second.or(third).and_then(Value::as_object))
    }

    fn named(&self, name: &str) -> Option<&'a Value> {
        self.0?.get(name)
    }

    /// The name of the schema of this kind.
    fn of_kind(&self, wanted: &Value) -> Option<&'a str> {
        let is_of_kind = |model: &Value| {
            let kinds = model.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
            kinds.is_some_and(|kinds| kinds.contains(wanted))
        };
        self.0?
            .iter()
            .find(|(_, model)| is_of_kind(model))
            .map(|(name, _)| name.as_str())
    }
}

/// The name of the schema that this one refers to.
fn reference(schema: &Value) -> Option<&str> {
    let path = match schema.get("$ref") {
        Some(path) => path.as_str()?,
        // So does the third version where the reference has a description or a default.
        None => match schema.get("allOf")?.as_array()?.as_slice() {
            [only] => only.get("$ref")?.as_str()?,
            _ => return None,
        },
    };
    path.rsplit('/').next()
}

fn text<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The first that is not empty.
fn first(texts: [&str; 3]) -> &str {
    texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}

/// Reads one schema, with all that it refers to.
struct Reading<'a> {
    models: &'a Models<'a>,
    /// The path of the type's own metadata.
    metadata: String,
    /// What is being read: a schema in itself would never end.
    open: BTreeSet<String>,
}

impl Reading<'_> {
    /// A schema by its name. Where it is used it may have a description.
    fn model(&mut self, name: &str, description: &str) -> Result<Value, String> {
        if !self.open.insert(name.to_owned()) {
            return Err(format!(
                "OpenAPI has a schema that holds itself, which kcp cannot have: {name}"
            ));
        }
        let model = self.models.named(name);
        let model = model.ok_or_else(|| format!("OpenAPI has no schema {name}"))?;
        let found = self.schema(model, name, description);
        self.open.remove(name);
        found
    }

    /// A schema at this path.
    fn schema(&mut self, schema: &Value, path: &str, description: &str) -> Result<Value, String> {
        if let Some(name) = reference(schema) {
            if name == "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps" {
                // It holds itself, and the Go agent takes anything there.
                return Ok(json!({}));
            }
            if let Some(mut known) = known(name) {
                set(
                    &mut known,
                    "description",
                    first([description, text(schema, "description"), ""]),
                );
                return Ok(known);
            }
            return self.model(name, description);
        }
        let own = text(schema, "description");
        match (text(schema, "type"), schema.get("properties")) {
            ("" | "object", Some(properties)) => self.kind(schema, properties, path, first([description, own, ""])),
            ("object", None) => self.map(schema, path, description),
            ("array", _) => self.array(schema, path, description),
            ("", None) => Ok(anything(schema, first([description, own, ""]))),
            (name @ ("string" | "number" | "integer" | "boolean"), _) => {
                let mut found = json!({"type": name});
                set(&mut found, "format", text(schema, "format"));
                set(&mut found, "description", first([description, own, ""]));
                if matches!(
                    path,
                    "io.k8s.api.core.v1.ContainerPort.protocol" | "io.k8s.api.core.v1.ServicePort.protocol"
                ) {
                    set(&mut found, "default", "TCP");
                }
                Ok(found)
            }
            (other, _) => Err(format!("OpenAPI has an unknown type {other:?} at {path}")),
        }
    }

    fn kind(&mut self, schema: &Value, properties: &Value, path: &str, description: &str) -> Result<Value, String> {
        let mut found = json!({"type": "object"});
        set(&mut found, "description", description);
        let mut fields = Map::new();
        for (name, field) in properties.as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            let field = if path == self.metadata {
                json!({"type": "object"})
            } else {
                self.schema(field, &path, text(field, "description"))?
            };
            fields.insert(name.clone(), field);
        }
        found["properties"] = Value::Object(fields);
        if let Some(required) = schema.get("required") {
            found["required"] = required.clone();
        }
        if let Some(key) = schema.get("x-kubernetes-patch-merge-key") {
            found[MAP_KEYS] = json!([key]);
        }
        if let Some(list_type) = schema.get(LIST_TYPE) {
            found[LIST_TYPE] = list_type.clone();
        }
        Ok(found)
    }

    fn map(&mut self, schema: &Value, path: &str, description: &str) -> Result<Value, String> {
        let own = text(schema, "description");
        let (below, below_description) = match schema.get("additionalProperties") {
            Some(below @ Value::Object(_)) => {
                let of_below = text(below, "description");
                (self.schema(below, path, of_below)?, of_below)
            }
            _ => (anything(schema, own), own),
        };
        let mut found = json!({"type": "object", "additionalProperties": below});
        set(&mut found, "description", first([description, below_description, own]));
        Ok(found)
    }

    fn array(&mut self, schema: &Value, path: &str, description: &str) -> Result<Value, String> {
        let items = schema.get("items").filter(|items| items.is_object());
        let items = items.ok_or_else(|| format!("OpenAPI has a list without items at {path}"))?;
        let of_items = text(items, "description");
        let mut found = json!({"type": "array"});
        set(
            &mut found,
            "description",
            first([description, of_items, text(schema, "description")]),
        );
        self.mark_list(&mut found, schema, items);
        let mut below = self.schema(items, path, of_items)?;
        require_keys(&mut below, &found);
        found["items"] = below;
        Ok(found)
    }

    /// What kind of list it is, from the marks of either kind of patch.
    fn mark_list(&self, found: &mut Value, schema: &Value, items: &Value) {
        let strategy = schema.get("x-kubernetes-patch-strategy");
        if let Some(list_type) = schema.get(LIST_TYPE) {
            found[LIST_TYPE] = list_type.clone();
        } else if let Some(strategy) = strategy.and_then(Value::as_str).filter(|strategy| !strategy.is_empty()) {
            let item = reference(items).map_or(Some(items), |name| self.models.named(name));
            let is_merged = strategy.split(',').collect::<Vec<_>>();
            let is_merged = is_merged.first() == Some(&"merge") || is_merged.last() == Some(&"merge");
            let list_type = match (is_merged, item.is_some_and(|item| item.get("properties").is_some())) {
                (false, _) => "atomic",
                (true, true) => "map",
                (true, false) => "set",
            };
            set(found, LIST_TYPE, list_type);
        }
        if let Some(keys) = schema.get(MAP_KEYS) {
            found[MAP_KEYS] = keys.clone();
        } else if let Some(key) = schema.get("x-kubernetes-patch-merge-key") {
            found[MAP_KEYS] = json!([key]);
            if strategy.is_none() {
                set(found, LIST_TYPE, "map");
            }
        }
    }
}

const LIST_TYPE: &str = "x-kubernetes-list-type";
const MAP_KEYS: &str = "x-kubernetes-list-map-keys";

/// Sets a text, unless it is empty.
fn set(schema: &mut Value, key: &str, text: &str) {
    if !text.is_empty() {
        schema[key] = json!(text);
    }
}

/// A value of any type.
fn anything(schema: &Value, description: &str) -> Value {
    let mut found = json!({"x-kubernetes-embedded-resource": true});
    set(&mut found, "description", description);
    if let Some(preserves) = schema.get(PRESERVE).filter(|value| value.is_boolean()) {
        found[PRESERVE] = preserves.clone();
    }
    found
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

/// The keys by which items of a list are distinguished have to be there, unless they have a default.
fn require_keys(item: &mut Value, list: &Value) {
    let keys = list.get(MAP_KEYS).and_then(Value::as_array);
    let properties = item.get("properties").and_then(Value::as_object);
    let (Some(keys), Some(properties)) = (keys.filter(|keys| !keys.is_empty()), properties) else {
        return;
    };
    if properties.is_empty() {
        return;
    }
    let before = item.get("required").and_then(Value::as_array).into_iter().flatten();
    let required: BTreeSet<&str> = before.chain(keys).filter_map(Value::as_str).collect();
    let has_default = |name: &str| properties.get(name).is_some_and(|field| field.get("default").is_some());
    let required: Vec<&str> = required.into_iter().filter(|name| !has_default(name)).collect();
    item["required"] = json!(required);
}

/// Schemas that a CRD has in another form.
fn known(name: &str) -> Option<Value> {
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let quantity = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";
    let rest = name.strip_prefix("io.k8s.")?;
    let meta = rest.strip_prefix("apimachinery.pkg.apis.meta.v1.");
    Some(match (rest, meta) {
        (_, Some("ObjectMeta")) => json!({"type": "object", PRESERVE: true}),
        (_, Some("Time" | "MicroTime")) => json!({"type": "string", "format": "date-time"}),
        (_, Some("Duration")) => json!({"type": "string"}),
        (_, Some("Fields")) => json!({"type": "object", "additionalProperties": true}),
        (_, Some("unstructured.Unstructured")) | ("apimachinery.pkg.runtime.RawExtension", _) => {
            json!({"type": "object"})
        }
        ("apimachinery.pkg.util.intstr.IntOrString", _) => json!({"x-kubernetes-int-or-string": true, "anyOf": either}),
        ("apimachinery.pkg.api.resource.Quantity", _) => {
            json!({"x-kubernetes-int-or-string": true, "anyOf": either, "pattern": quantity})
        }
        ("api.core.v1.Protocol", _) => json!({"type": "string", "default": "TCP"}),
        (
            "apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON"
            | "apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.JSON",
            _,
        ) => json!({PRESERVE: true}),
        _ => return None,
    })
}
