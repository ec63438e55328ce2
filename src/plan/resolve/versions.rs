//! Which version counts for a resource: entries may name several, and some that no side serves.
//!
//! A version that neither side serves affects only the entry that names it. Of those that the origins' side serves, the
//! one that it prefers counts for all entries, whatever their order, so that each object is synced once. A version that
//! lacks fields of its type counts as the one that has them all, if both sides serve that.

use std::collections::{BTreeMap, BTreeSet};

use kube_lite::qualified;

use super::Resolver;
use crate::plan::missing::Absence;
use crate::plan::wanted::Entry;
use crate::plan::{Direction, steps};
use crate::side::Side;

/// A type of Kubernetes with versions that keep fields in annotations: group, plural, these versions, and the one that
/// has all fields.
type LackingFields = (&'static str, &'static str, &'static [&'static str], &'static str);

/// Applied at the versions that lack fields, what the origin drops stays in the copy.
const LACKING_FIELDS: &[LackingFields] = &[("autoscaling", "horizontalpodautoscalers", &["v1", "v2beta1"], "v2")];

/// A resource that an entry names, at a version.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) entry: &'a Entry,
    pub(super) group: &'a str,
    pub(super) version: &'a str,
    pub(super) resource: &'a str,
}

/// A resource that entries name: direction, group and plural.
type Named<'a> = (Direction, &'a str, &'a str);

/// The version that counts for each resource that entries name; `None` if none does, or if that is not known yet.
pub(super) type Chosen<'a> = BTreeMap<Named<'a>, Option<&'a str>>;

impl<'a> Resolver<'a> {
    /// Chooses the version that counts for each of these resources.
    pub(super) async fn choose_versions(&mut self, asked: &[Asked<'a>]) {
        let mut named: BTreeMap<Named<'a>, BTreeSet<&'a str>> = BTreeMap::new();
        for asked in asked {
            steps::one();
            steps::pause().await;
            let name = (asked.entry.direction, asked.group, asked.resource);
            named.entry(name).or_default().insert(asked.version);
        }
        for (name, versions) in named {
            steps::one();
            steps::pause().await;
            let chosen = self.choose(name, &versions);
            self.versions.insert(name, chosen);
        }
    }

    fn choose(&mut self, (direction, group, resource): Named<'a>, versions: &BTreeSet<&'a str>) -> Option<&'a str> {
        let side = direction.origin();
        let (origin, copy) = (self.at(side), self.at(direction.copy()));
        let serving = |version: &&&str| origin.find(group, version, resource).is_some();
        let served: Vec<&str> = versions.iter().filter(serving).copied().collect();
        match served[..] {
            [only] => Some(only),
            // The origins may be gone, if that is known of all.
            [] => {
                let all = versions.iter().all(|version| origin.knows(group, version));
                let mut at_copies = versions
                    .iter()
                    .filter(|version| copy.find(group, version, resource).is_some());
                at_copies.next().copied().filter(|_| all)
            }
            _ => {
                let order = origin.discovery.versions(group);
                let is_listed = |version: &&str| order.iter().flatten().any(|listed| listed == version);
                if !served.iter().all(is_listed) {
                    // The list is from before one of them.
                    self.plan.unknown.groups.insert(side);
                }
                let order = order?;
                let place = |version: &str| order.iter().position(|listed| *listed == version);
                served
                    .into_iter()
                    .min_by_key(|version| place(version).unwrap_or(usize::MAX))
            }
        }
    }

    /// The version that an entry means by `version`: one that has all fields of the resource. If a side is known not to
    /// serve that one, it is `version`, and what is lost is noted.
    pub(super) fn meant_version(&mut self, entry: &Entry, group: &str, version: &'a str, resource: &str) -> &'a str {
        let lacks = |(of, plural, lacking, _): &&LackingFields| {
            (*of, *plural) == (group, resource) && lacking.contains(&version)
        };
        let Some(&(.., whole)) = LACKING_FIELDS.iter().find(lacks) else {
            return version;
        };
        for side in [Side::Hub, Side::Edge] {
            let served = self.at(side);
            if served.knows(group, whole) && served.find(group, whole, resource).is_none() {
                let name = qualified(group, resource);
                let why = format!(
                    "{name} is synced at version {version:?}, at which fields are lost, or stay in the copies when they \
                     are dropped: the {side} does not serve {whole:?}, which has all of them"
                );
                self.problem(&entry.place, &why);
                return version;
            }
        }
        whole
    }

    /// The version that counts for what an entry names; `None` if nothing can be planned for it. Notes why not.
    pub(super) fn counts(&mut self, asked: &Asked<'a>) -> Option<&'a str> {
        let Asked {
            entry,
            group,
            version,
            resource,
        } = *asked;
        let direction = entry.direction;
        if !self.both_know(group, version) {
            return None;
        }
        let sides = [direction.origin(), direction.copy()];
        let served = sides.map(|side| self.at(side).find(group, version, resource).is_some());
        if served == [false; 2] {
            for side in sides {
                self.missing_everywhere(side, entry, group, version, resource);
            }
            return None;
        }
        let chosen = self.versions.get(&(direction, group, resource)).copied().flatten()?;
        if chosen != version {
            let side = direction.origin();
            let does = if served[0] { "prefers" } else { "serves" };
            if !served[0] {
                let place = Some(&entry.place);
                let what = [group, version, resource];
                self.missing(side, direction, what, place).absence = Absence::Version;
            }
            let name = qualified(group, resource);
            let why = format!(
                "{name} is synced at version {chosen:?}, which another entry names and the {side} {does}, not at {version:?}"
            );
            self.problem(&entry.place, &why);
        }
        self.both_know(group, chosen).then_some(chosen)
    }
}

#[cfg(test)]
#[path = "versions_tests.rs"]
mod tests;
