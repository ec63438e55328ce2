//! What is synced along with objects: the list `related` of a PublishedResource.

use std::collections::BTreeSet;

use kube_lite::selector::check_key;
use serde::{Deserialize, Serialize};

use super::Mutation;
use super::steps::mutation;
use crate::fields::Fields;
use crate::keys::RELATED_PREFIX;
use crate::labels::Selector;
use crate::path::{self, PathError};

/// Objects that belong to a primary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Related {
    /// Distinguishes it from the others.
    pub identifier: String,
    /// The side that is the source of truth.
    pub origin: Origin,
    /// The type on the side of the origin.
    pub type_of: TypeOf,
    /// The identity of a foreign export that has the type.
    pub identity_hash: Option<String>,
    /// What the type is on the other side.
    pub projection: RelatedProjection,
    /// How names are found.
    pub object: Locator,
    /// How namespaces are found, if not those of the primary.
    pub namespace: Option<Locator>,
    /// What is changed on the way.
    pub mutation: Mutation,
    /// By what an object leads to its primary.
    pub watch: Option<Watch>,
    /// Whether copies go with the primary.
    pub cleanup: Cleanup,
    /// Whether the status is synced too.
    pub status: StatusSync,
}

/// A side of the sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The service cluster.
    Service,
    /// A workspace.
    Kcp,
}

impl Origin {
    /// As templates and the API have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Service => "service",
            Self::Kcp => "kcp",
        }
    }
}

/// A type, by the names that its URL has.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TypeOf {
    /// Its group; empty for core types.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Its plural.
    pub resource: String,
}

/// What the type is on the other side. What is not there stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RelatedProjection {
    /// Its group.
    pub group: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Its plural.
    pub resource: Option<String>,
}

/// Whether copies go with the primary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleanup {
    /// They stay.
    Keep,
    /// They are deleted.
    Delete,
}

/// Whether the status is synced from the origin to the other side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusSync {
    /// It does not.
    Off,
    /// It does.
    On,
}

/// How names, or namespaces, are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Locator {
    /// A field of the primary of each side.
    Reference(FieldReference),
    /// Objects with labels, on the side of the origin.
    Selector(SelectorLocator),
    /// A template, rendered for each side.
    Template(String),
}

/// A field, and how its value is rewritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldReference {
    /// Where, as gjson has it.
    pub path: String,
    /// What is replaced in it, and by what.
    pub regex: Option<(String, String)>,
}

/// Labels, and what the objects are called on the other side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectorLocator {
    /// The labels, which may be templates.
    pub selector: Selector,
    /// What becomes of names.
    pub rewrite: Rewrite,
}

/// What becomes of a name on the other side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rewrite {
    /// What is replaced in it, and by what.
    Regex(String, String),
    /// A template.
    Template(String),
}

/// By what a changed object leads to its primary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watch {
    /// Its owner references.
    ByOwner,
    /// All primaries with these labels.
    BySelector(Selector),
}

impl Related {
    /// Whether copies are deleted with the primary: those of the workspace's own objects always.
    pub(crate) fn ends_with_primary(&self) -> bool {
        self.origin == Origin::Kcp || self.cleanup == Cleanup::Delete
    }

    /// The type on this side.
    pub fn type_on(&self, side: Origin) -> TypeOf {
        if self.origin == side {
            return self.type_of.clone();
        }
        let own = |projected: &Option<String>, own: &String| projected.as_ref().unwrap_or(own).clone();
        TypeOf {
            group: own(&self.projection.group, &self.type_of.group),
            version: own(&self.projection.version, &self.type_of.version),
            resource: own(&self.projection.resource, &self.type_of.resource),
        }
    }
}

/// The list `related` of a spec.
pub(super) fn related(spec: &Fields<'_>) -> Vec<Related> {
    let mut names = BTreeSet::new();
    let mut all = Vec::new();
    for fields in spec.list("related") {
        let Some(found) = one(&fields) else { continue };
        if !names.insert(found.identifier.clone()) {
            fields.error("identifier", &format!("{:?} is there twice", found.identifier));
        }
        all.push(found);
    }
    all
}

fn one(fields: &Fields<'_>) -> Option<Related> {
    let origin = match &*fields.required("origin", true) {
        "service" => Some(Origin::Service),
        "kcp" => Some(Origin::Kcp),
        other => {
            if fields.has("origin") {
                fields.error("origin", &format!("{other:?} must be service or kcp"));
            }
            None
        }
    };
    let identifier = fields.required("identifier", false);
    // It becomes a part of the key of an annotation.
    let key = format!("{RELATED_PREFIX}{identifier}.0");
    if origin == Some(Origin::Service) && !identifier.is_empty() && check_key(&key).is_err() {
        fields.error(
            "identifier",
            &format!("{identifier:?} is no part of the key of an annotation"),
        );
    }
    let type_of = type_of(fields);
    let identity_hash = fields.text("identityHash");
    if identity_hash.is_some() && !(fields.has("group") && fields.has("version") && fields.has("resource")) {
        fields.error("identityHash", "needs group, version and resource");
    }
    let object = fields.required_inner("object");
    let namespace = object.as_ref().and_then(|object| object.inner("namespace"));
    let is_status_synced = fields.switch("syncStatus") == Some(true);
    if is_status_synced && origin == Some(Origin::Service) && !fields.has("watch") {
        fields.error("syncStatus", "needs watch when the origin is service");
    }
    let namespace = namespace.map(|fields| locator(&fields));
    Some(Related {
        identifier,
        origin: origin?,
        type_of,
        identity_hash,
        projection: fields.inner("projection").as_ref().map(projection).unwrap_or_default(),
        object: locator(&object?)?,
        namespace: match namespace {
            None => None,
            Some(found) => Some(found?),
        },
        mutation: mutation(fields),
        watch: fields.inner("watch").and_then(|fields| watch(&fields)),
        cleanup: match fields.switch("cleanup") {
            Some(true) => Cleanup::Delete,
            _ => Cleanup::Keep,
        },
        status: if is_status_synced {
            StatusSync::On
        } else {
            StatusSync::Off
        },
    })
}

/// The type at the origin, or that of the old field `kind`.
fn type_of(fields: &Fields<'_>) -> TypeOf {
    let (group, version, resource) = (fields.text("group"), fields.text("version"), fields.text("resource"));
    if let Some(kind) = fields.text("kind") {
        if version.is_some() || resource.is_some() {
            fields.error("kind", "must not be set together with version and resource");
        }
        if group.is_some() {
            fields.error("group", "needs version and resource");
        }
        let resource = match &*kind {
            "ConfigMap" => "configmaps",
            "Secret" => "secrets",
            _ => {
                fields.error("kind", &format!("{kind:?} must be ConfigMap or Secret"));
                ""
            }
        };
        return TypeOf {
            group: String::new(),
            version: "v1".to_owned(),
            resource: resource.to_owned(),
        };
    }
    match (&version, &resource) {
        (None, None) => fields.error("resource", "is missing, with version"),
        (None, Some(_)) => fields.error("version", "is missing"),
        (Some(_), None) => fields.error("resource", "is missing"),
        (Some(_), Some(_)) => {}
    }
    TypeOf {
        group: group.unwrap_or_default(),
        version: version.unwrap_or_default(),
        resource: resource.unwrap_or_default(),
    }
}

fn projection(fields: &Fields<'_>) -> RelatedProjection {
    RelatedProjection {
        group: fields.text("group"),
        version: fields.text("version"),
        resource: fields.text("resource"),
    }
}

fn watch(fields: &Fields<'_>) -> Option<Watch> {
    match (fields.inner("byOwner"), fields.inner("bySelector")) {
        (Some(_), None) => Some(Watch::ByOwner),
        (None, Some(selector)) => Some(Watch::BySelector(Selector::read(&selector))),
        _ => {
            fields.error("", "must have byOwner or bySelector");
            None
        }
    }
}

fn locator(fields: &Fields<'_>) -> Option<Locator> {
    let ways = [
        fields.inner("reference"),
        fields.inner("selector"),
        fields.inner("template"),
    ];
    match ways {
        [Some(reference), None, None] => {
            let path = reference.required("path", false);
            // One that is missing is said already.
            if let Err(error @ PathError::TooLong(_)) = path::check(&path) {
                reference.error("path", &error.to_string());
            }
            Some(Locator::Reference(FieldReference {
                path,
                regex: reference.inner("regex").as_ref().map(regex),
            }))
        }
        [None, Some(selector), None] => Some(Locator::Selector(SelectorLocator {
            rewrite: rewrite(&selector)?,
            selector: Selector::read_templates(&selector),
        })),
        [None, None, Some(template)] => Some(Locator::Template(template.required("template", true))),
        _ => {
            fields.error("", "must have one of reference, selector and template");
            None
        }
    }
}

fn rewrite(selector: &Fields<'_>) -> Option<Rewrite> {
    let fields = selector.required_inner("rewrite")?;
    match (fields.inner("regex"), fields.inner("template")) {
        (Some(rule), None) => {
            let (pattern, replacement) = regex(&rule);
            Some(Rewrite::Regex(pattern, replacement))
        }
        (None, Some(template)) => Some(Rewrite::Template(template.required("template", true))),
        _ => {
            fields.error("", "must have regex or template");
            None
        }
    }
}

fn regex(fields: &Fields<'_>) -> (String, String) {
    let text = |key| fields.any_text(key).unwrap_or_default();
    (text("pattern"), text("replacement"))
}
