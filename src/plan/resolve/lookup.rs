//! What a side serves, found by group, version, plural and kind: there may be thousands of entries, of each of these, and
//! of types.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use kube_lite::discovery::{Catalogue, Discovery, Served, ServedResource};

use crate::plan::steps;

/// One side.
pub(super) struct Lookup<'a> {
    pub(super) discovery: &'a Discovery,
    groups: BTreeMap<&'a str, Group<'a>>,
    /// The groups of its catalogue, which count only where people may mean one of them.
    catalogue: BTreeMap<&'a str, Group<'a>>,
}

/// One group of it.
#[derive(Default)]
struct Group<'a> {
    /// What is known of its versions.
    versions: BTreeMap<&'a str, Version<'a>>,
    /// What people may call its types, in small letters, and the types.
    words: OnceCell<BTreeMap<String, Vec<&'a ServedResource>>>,
}

/// One version of it.
struct Version<'a> {
    served: &'a Served,
    /// The side has listed the versions of the group since, without this one: what is known of it is from before.
    is_gone: bool,
    /// The first type of each kind.
    kinds: OnceCell<BTreeMap<&'a str, &'a ServedResource>>,
}

impl<'a> Version<'a> {
    fn resources(&self) -> impl Iterator<Item = &'a ServedResource> + use<'a> {
        let resources = match self.served {
            Served::Resources(resources) => Some(resources.values()),
            Served::NotServed => None,
        };
        resources.into_iter().flatten()
    }

    fn find(&self, resource: &str) -> Option<&'a ServedResource> {
        match self.served {
            Served::Resources(resources) => resources.get(resource),
            Served::NotServed => None,
        }
    }

    fn kinds(&self) -> BTreeMap<&'a str, &'a ServedResource> {
        let mut kinds = BTreeMap::new();
        for served in self.resources() {
            steps::one();
            kinds.entry(&*served.resource.kind).or_insert(served);
        }
        kinds
    }
}

impl<'a> Group<'a> {
    /// What people may call its types, in small letters, and the types.
    fn words(&self) -> &BTreeMap<String, Vec<&'a ServedResource>> {
        self.words.get_or_init(|| self.find_words())
    }

    fn find_words(&self) -> BTreeMap<String, Vec<&'a ServedResource>> {
        let mut words = BTreeMap::<String, Vec<_>>::new();
        let versions = self.versions.values().filter(|version| !version.is_gone);
        for served in versions.flat_map(Version::resources) {
            steps::one();
            for word in served.names() {
                words.entry(word.to_ascii_lowercase()).or_default().push(served);
            }
        }
        words
    }
}

impl<'a> Lookup<'a> {
    pub(super) async fn new(discovery: &'a Discovery) -> Self {
        // A group that is not listed at all may be new.
        let is_gone = |group: &str, version: &String| {
            let listed = discovery.groups.as_ref().and_then(|groups| groups.get(group));
            listed.is_some_and(|listed| !listed.contains(version))
        };
        let groups = groups_of(&discovery.known, is_gone).await;
        let catalogue = match &discovery.catalogue {
            Some(catalogue) => groups_of(catalogue, |_, _| false).await,
            None => BTreeMap::new(),
        };
        Self {
            discovery,
            groups,
            catalogue,
        }
    }

    fn version(&self, group: &str, version: &str) -> Option<&Version<'a>> {
        steps::one();
        self.groups.get(group)?.versions.get(version)
    }

    /// True if the side has answered for this group version, whatever the answer was.
    pub(super) fn knows(&self, group: &str, version: &str) -> bool {
        self.version(group, version).is_some()
    }

    /// The resource, if the side is known to serve it.
    pub(super) fn find(&self, group: &str, version: &str, resource: &str) -> Option<&'a ServedResource> {
        self.version(group, version)?.find(resource)
    }

    /// The resource of a kind, if the side is known to serve it.
    pub(super) fn find_kind(&self, group: &str, version: &str, kind: &str) -> Option<&'a ServedResource> {
        let version = self.version(group, version)?;
        version.kinds.get_or_init(|| version.kinds()).get(kind).copied()
    }

    /// Every resource of a group version.
    pub(super) fn resources(&self, group: &str, version: &str) -> impl Iterator<Item = &'a ServedResource> + use<'a> {
        self.version(group, version)
            .map(Version::resources)
            .into_iter()
            .flatten()
    }

    /// The resource at this version or, if the side does not serve it there, at another one.
    pub(super) fn find_at(&self, group: &str, version: &str, resource: &str) -> Option<&'a ServedResource> {
        let found = self.find(group, version, resource);
        found.or_else(|| {
            let versions = self.groups.get(group)?.versions.values().rev();
            let mut versions = versions.filter(|version| !version.is_gone);
            versions.find_map(|version| version.find(resource))
        })
    }

    /// A group as it was asked for, and as it is in the catalogue.
    fn both(&self, group: &str) -> impl Iterator<Item = &Group<'a>> {
        let (known, listed) = (self.groups.get(group), self.catalogue.get(group));
        known.into_iter().chain(listed)
    }

    /// The types of a group, at each version, that people may mean by a word.
    pub(super) fn answering_to(&self, group: &str, word: &str) -> impl Iterator<Item = &'a ServedResource> {
        let word = word.to_ascii_lowercase();
        let found = self.both(group).filter_map(move |group| group.words().get(&word));
        found.flatten().copied()
    }

    /// The words for the types of a group.
    pub(super) fn words(&self, group: &str) -> impl Iterator<Item = &str> {
        let all = self.both(group).flat_map(|group| group.words().keys());
        all.map(String::as_str)
    }

    /// The types of all groups that people may mean by a word.
    pub(super) fn anywhere(&self, word: &str) -> impl Iterator<Item = &'a ServedResource> {
        let word = word.to_ascii_lowercase();
        let groups = self.groups.values().chain(self.catalogue.values());
        let found = groups.filter_map(move |group| {
            steps::one();
            group.words().get(&word)
        });
        found.flatten().copied()
    }

    /// The groups that have types.
    pub(super) fn groups(&self) -> impl Iterator<Item = &str> {
        let all = self.groups.iter().chain(&self.catalogue);
        let having = all.filter(|(_, group)| !group.words().is_empty());
        having.map(|(name, _)| *name)
    }
}

async fn groups_of<'a>(known: &'a Catalogue, is_gone: impl Fn(&str, &String) -> bool) -> BTreeMap<&'a str, Group<'a>> {
    let mut groups = BTreeMap::<&str, Group<'a>>::new();
    for ((group, version), served) in known {
        steps::one();
        steps::pause().await;
        let known = Version {
            served,
            is_gone: is_gone(group, version),
            kinds: OnceCell::new(),
        };
        groups.entry(group).or_default().versions.insert(version, known);
    }
    groups
}
