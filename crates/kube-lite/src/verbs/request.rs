//! What requests are about: which objects, how much of each, and preconditions.

use std::rc::Rc;

use crate::resource::{ObjectName, ResourceType};

/// Which objects of a type a list or watch is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    /// One namespace, or all (and cluster-scoped types) when absent.
    pub namespace: Option<Rc<str>>,
    /// One name, or all when absent.
    pub name: Option<Rc<str>>,
}

impl Scope {
    /// True if an object of that name is within the scope.
    pub fn contains(&self, object: &ObjectName) -> bool {
        self.namespace
            .as_ref()
            .is_none_or(|namespace| **namespace == *object.namespace())
            && self.name.as_ref().is_none_or(|name| **name == *object.name)
    }

    /// True if everything in the other scope is in this one.
    pub fn covers(&self, other: &Self) -> bool {
        let within = |of: &Option<Rc<str>>, other: &Option<Rc<str>>| of.is_none() || of == other;
        within(&self.namespace, &other.namespace) && within(&self.name, &other.name)
    }
}

/// A status that replaces the whole one of an object.
#[derive(Clone, Copy, Debug)]
pub struct NewStatus<'a> {
    /// The status, as JSON.
    pub status: &'a str,
    /// It is written through the `/status` subresource, not in the object itself.
    pub subresource: bool,
    /// The field manager that gets it.
    pub manager: &'a str,
    /// What the answer has of the object as it is then.
    pub answer: Content,
}

/// Which object a write is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnlyWith<'a> {
    /// Whichever has the name.
    Anything,
    /// The one with this UID.
    Uid(&'a str),
    /// One with these annotations, each a key and its value.
    Annotations(&'a [(&'a str, &'a str)]),
}

/// How much of each object is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The whole object.
    Full,
    /// `PartialObjectMetadata`: metadata without spec, data and status. The whole object from a server that does not
    /// know it.
    Metadata,
}

impl Content {
    /// Metadata alone where the server can send it: some aggregated API servers cannot, and would answer 406 if nothing
    /// else were accepted. They send whole objects, which can be read as metadata too. (client-go does the same.)
    pub(super) fn accept(self, list: bool) -> &'static str {
        match (self, list) {
            (Self::Full, _) => "application/json",
            (Self::Metadata, false) => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
            (Self::Metadata, true) => {
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
            }
        }
    }
}

/// What to list or watch.
#[derive(Clone, Debug)]
pub struct ListRequest {
    /// The type.
    pub resource: ResourceType,
    /// Which of its objects.
    pub scope: Scope,
    /// A label selector, or all labels.
    pub label_selector: Option<Rc<str>>,
    /// A field selector beside the one that a name in the scope is, or all.
    pub field_selector: Option<Rc<str>>,
    /// Whole objects or metadata.
    pub content: Content,
}

impl ListRequest {
    /// All objects of a type.
    pub fn of_all(resource: ResourceType, content: Content) -> Self {
        Self {
            resource,
            scope: Scope::default(),
            label_selector: None,
            field_selector: None,
            content,
        }
    }
}

/// How one object is deleted: what must still be true for that, otherwise the server answers 409.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Precondition {
    /// `metadata.uid` of the object that was read.
    pub uid: String,
    /// `metadata.resourceVersion` of the object that was read.
    pub resource_version: String,
    /// There is nobody to wait for: a Pod would stay until its kubelet says that it has ended.
    pub at_once: bool,
    /// It may hold values of a Secret, of whatever type it is itself: whoever refuses the delete is not quoted.
    pub of_secret: bool,
}
