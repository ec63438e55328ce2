//! By which rules the objects of one published type are synced.

use std::collections::BTreeMap;
use std::rc::Rc;

use kube_lite::ResourceType;

use crate::kinds::{Naming, PublishedResource};
use crate::mutation::Rules;
use crate::naming::Namer;

/// What has become of a PublishedResource: the type as consumers see it, and as the service cluster has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    /// The name of the schema.
    pub(crate) schema: Rc<str>,
    /// The type in workspaces, at its storage version.
    pub(crate) remote: ResourceType,
    /// The type on the service cluster, at its storage version.
    pub(crate) local: ResourceType,
    /// Other versions in which the type in workspaces may have been stored before.
    pub(crate) other_versions: Rc<[Box<str>]>,
    /// Whether the status is a subresource of the type in workspaces, and of that on the service cluster.
    pub(crate) has_status: [bool; 2],
}

/// The rules.
#[derive(Debug)]
pub(crate) struct Route {
    /// The PublishedResource.
    pub(crate) resource: Rc<PublishedResource>,
    /// What has become of it.
    pub(crate) served: Served,
    /// What is changed on the way.
    pub(crate) rules: Rules,
    /// The same of related objects, by its identifier.
    related: BTreeMap<String, Rules>,
    /// What copies are called.
    pub(crate) namer: Namer,
    /// Something is wrong with the PublishedResource: its objects fail, but for those that are being deleted.
    pub(crate) is_broken: bool,
}

/// What is read once of a PublishedResource.
type Read = (Rules, BTreeMap<String, Rules>, Namer);

impl Route {
    /// The rules of a PublishedResource, read once. What is wrong with them is said all together.
    pub(crate) fn new(resource: Rc<PublishedResource>, served: Served) -> Result<Self, String> {
        let (rules, related, namer) = rules(&resource)?;
        Ok(Self {
            resource,
            served,
            rules,
            related,
            namer,
            is_broken: false,
        })
    }

    /// That of a PublishedResource with which something is wrong. No copy gets a name by it.
    pub(crate) fn broken(resource: Rc<PublishedResource>, served: Served, why: &str) -> Result<Self, String> {
        Ok(Self {
            resource,
            served,
            rules: Rules::broken(why),
            related: BTreeMap::new(),
            namer: Namer::new(&Naming::default()).map_err(|error| error.to_string())?,
            is_broken: true,
        })
    }

    /// The rules of related objects.
    pub(crate) fn related_rules(&self, identifier: &str) -> &Rules {
        self.related.get(identifier).unwrap_or(&self.rules)
    }

    /// The type in workspaces.
    pub(crate) fn remote(&self) -> &ResourceType {
        &self.served.remote
    }

    /// The type on the service cluster.
    pub(crate) fn local(&self) -> &ResourceType {
        &self.served.local
    }
}

/// Reads what is changed on the way, and what copies are called.
pub(crate) fn rules(resource: &PublishedResource) -> Result<Read, String> {
    let of = |mutation, place: &str| {
        Rules::new(mutation, place).map_err(|errors| {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            errors.join("; ")
        })
    };
    let mut related = BTreeMap::new();
    for (index, one) in resource.related.iter().enumerate() {
        let rules = of(&one.mutation, &format!("spec.related[{index}].mutation"))?;
        related.insert(one.identifier.clone(), rules);
    }
    let namer = Namer::new(&resource.naming).map_err(|error| error.to_string())?;
    Ok((of(&resource.mutation, "spec.mutation")?, related, namer))
}

/// What is wrong with the mutations, those of related objects included, and the names of a PublishedResource.
pub fn check_rules(resource: &PublishedResource) -> Result<(), String> {
    rules(resource).map(drop)
}
