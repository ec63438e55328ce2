//! What a side serves, found by group, version, plural and kind: there may be thousands of entries, of each of these, and
//! of types.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use kube_lite::discovery::{Discovery, Served, ServedResource};

use crate::plan::steps;

/// One side.
pub(super) struct Lookup<'a> {
    pub(super) discovery: &'a Discovery,
    groups: BTreeMap<&'a str, Group<'a>>,
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
    fn words(&self) -> BTreeMap<String, Vec<&'a ServedResource>> {
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
        let mut groups = BTreeMap::<&str, Group<'a>>::new();
        for ((group, version), served) in &discovery.known {
            steps::one();
            steps::pause().await;
            // A group that is not listed at all may be new.
            let listed = discovery.groups.as_ref().and_then(|groups| groups.get(group));
            let known = Version {
                served,
                is_gone: listed.is_some_and(|listed| !listed.contains(version)),
                kinds: OnceCell::new(),
            };
            groups.entry(group).or_default().versions.insert(version, known);
        }
        Self { discovery, groups }
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

    /// The types of a group, at each version, that people may mean by a word.
    pub(super) fn answering_to(&self, group: &str, word: &str) -> impl Iterator<Item = &'a ServedResource> {
        let group = self.groups.get(group);
        let found = group.and_then(|group| {
            let words = group.words.get_or_init(|| group.words());
            words.get(&word.to_ascii_lowercase())
        });
        found.into_iter().flatten().copied()
    }
}
