//! The kind PublishedResource of the group `syncagent.kcp.io`.
//!
//! Promises: what the API takes is read, with fields that are not known left out; what is wrong is said with its place,
//! all of it together.

mod read;
mod related;
mod steps;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

pub use read::read;
pub use related::{
    Cleanup, FieldReference, Locator, Origin, Related, RelatedProjection, Rewrite, SelectorLocator, StatusSync, TypeOf,
    Watch,
};

use crate::labels::Selector;

/// The group and version of the kind.
pub const API_VERSION: &str = "syncagent.kcp.io/v1alpha1";

/// A PublishedResource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedResource {
    /// Its name.
    pub name: String,
    /// When it was created, as a text that sorts by that.
    pub created: String,
    /// Its labels, by which agents share them out.
    pub labels: BTreeMap<String, String>,
    /// True once it is being deleted.
    pub is_deleted: bool,
    /// The type on the service cluster.
    pub source: Source,
    /// Which objects are synced.
    pub filter: Filter,
    /// What copies are called.
    pub naming: Naming,
    /// Whether paths of workspaces are asked for.
    pub workspace_paths: bool,
    /// What the type looks like in kcp.
    pub projection: Projection,
    /// What is changed on the way.
    pub mutation: Mutation,
    /// What is synced with objects.
    pub related: Vec<Related>,
    /// Whether objects are synced; otherwise the type is published and nothing more.
    pub is_synced: bool,
    /// The name of the schema, once there is one.
    pub schema_name: Option<String>,
}

/// A type on the service cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its group; empty for core types.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// The versions that are published; none for all.
    pub versions: Vec<String>,
}

/// Which objects are synced: those that both match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Labels of the object's namespace.
    pub namespace: Option<Selector>,
    /// Labels of the object.
    pub object: Option<Selector>,
}

/// Templates, or texts of the old form. Without one, the default holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Naming {
    /// The name of a copy.
    pub name: Option<String>,
    /// Its namespace.
    pub namespace: Option<String>,
}

/// What the type looks like in kcp. What is not there stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Projection {
    /// Its group.
    pub group: Option<String>,
    /// Its kind.
    pub kind: Option<String>,
    /// Its plural.
    pub plural: Option<String>,
    /// The only version, of the old form.
    pub version: Option<String>,
    /// New names of versions.
    pub versions: BTreeMap<String, String>,
    /// Whether objects are in namespaces.
    pub scope: Option<Scope>,
    /// In the place of its short names.
    pub short_names: Option<Vec<String>>,
    /// In the place of its categories.
    pub categories: Option<Vec<String>>,
}

/// Whether objects of a type are in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// They are not.
    Cluster,
    /// They are.
    Namespaced,
}

impl Scope {
    /// As a CRD has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster",
            Self::Namespaced => "Namespaced",
        }
    }

    /// The scope of this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Cluster, Self::Namespaced]
            .into_iter()
            .find(|scope| scope.name() == name)
    }
}

/// What is changed on the way, in this order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mutation {
    /// In the copy of the source that becomes the other side's object.
    pub spec: Vec<ResourceMutation>,
    /// In the status that goes back.
    pub status: Vec<ResourceMutation>,
}

/// One change, at a path of gjson and sjson.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceMutation {
    /// Takes the value away.
    Delete {
        /// Where.
        path: String,
    },
    /// Rewrites the value as a text.
    Regex {
        /// Where.
        path: String,
        /// What is replaced; empty for the whole value.
        pattern: String,
        /// By what.
        replacement: String,
    },
    /// Puts what a template renders there.
    Template {
        /// Where.
        path: String,
        /// The text of the template.
        template: String,
    },
    /// Puts what an expression gives there.
    Cel {
        /// Where.
        path: String,
        /// The expression.
        expression: String,
    },
}

/// What is wrong with an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// Each with the path of its field.
    pub errors: Vec<String>,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.errors.join("; "))
    }
}

impl std::error::Error for Invalid {}
