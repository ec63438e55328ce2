//! What is noted of entries that cannot be followed: which side lacks what, and what is wrong with it.

use std::borrow::Cow;

use kube_lite::ResourceType;
use kube_lite::discovery::ServedResource;

use super::versions::Asked;
use super::{Answer, Resolver};
use crate::plan::missing::{Absence, Missing};
use crate::plan::wanted::Entry;
use crate::plan::{ConfigPlace, Direction, Problem, steps};
use crate::side::Side;

impl<'a> Resolver<'a> {
    /// Notes which side lacks what an entry names, at the version that counts.
    pub(super) fn note_missing(
        &mut self,
        asked: &Asked<'a>,
        origin: Option<&ServedResource>,
        copy: Option<&ServedResource>,
    ) {
        let Asked {
            entry,
            group,
            version,
            resource,
        } = *asked;
        let direction = entry.direction;
        for (side, found) in [(direction.origin(), origin), (direction.copy(), copy)] {
            let absence = match found {
                Some(found) if found.resource.version == version => continue,
                Some(_) => Absence::Version,
                None => Absence::Side,
            };
            let place = Some(&entry.place);
            self.missing(side, direction, [group, version, resource], place).absence = absence;
        }
    }

    /// Notes that a side lacks a type, by group, version and resource, once for each config that asks for it.
    pub(super) fn missing<T: Into<Cow<'a, str>>>(
        &mut self,
        side: Side,
        direction: Direction,
        what: [T; 3],
        place: Option<&'a ConfigPlace>,
    ) -> &mut Missing {
        steps::one();
        let what = what.map(Into::into);
        let config = place.map(|place| &*place.config);
        let missing = &mut self.plan.missing;
        let key = (side, direction, config, what);
        let at = self.missing_at.get(&key).copied().unwrap_or_else(|| {
            let [group, version, resource] = key.3.clone().map(Cow::into_owned);
            missing.push(Missing {
                side,
                direction,
                group,
                version,
                resource,
                place: place.cloned(),
                absence: Absence::Side,
                meant: None,
            });
            self.missing_at.insert(key, missing.len() - 1);
            missing.len() - 1
        });
        &mut missing[at]
    }

    /// Notes that neither side serves what an entry names, once it is known what may be meant. `side` is the one that is
    /// asked for it again.
    pub(super) fn missing_everywhere(
        &mut self,
        side: Side,
        entry: &'a Entry,
        group: &'a str,
        version: &'a str,
        word: &'a str,
    ) {
        let is_reported = side == entry.direction.origin();
        let meant = match is_reported.then(|| self.meant(entry, group, version, word)) {
            Some(Answer::Found(meant)) => Some(meant),
            Some(Answer::Missing) | None => None,
            Some(Answer::Unknown) => return,
        };
        let missing = self.missing(side, entry.direction, [group, version, word], Some(&entry.place));
        missing.absence = Absence::Everywhere;
        missing.meant = meant.or(missing.meant.take());
    }

    /// Notes that a type cannot be synced since scope or kind differ between the sides. Either side may change that, so
    /// both are asked for it again.
    pub(super) fn differ(
        &mut self,
        direction: Direction,
        origin: &ResourceType,
        copy: &ResourceType,
        places: &[&'a ConfigPlace],
    ) {
        let scope = |namespaced| if namespaced { "namespaced" } else { "cluster-scoped" };
        let why = format!(
            "{} is a {} {} at the origin's side and a {} {} at the copy's side; the entry is not synced",
            origin.qualified(),
            scope(origin.namespaced),
            origin.kind,
            scope(copy.namespaced),
            copy.kind
        );
        for place in places {
            self.problem(place, &why);
        }
        let only_retained = places.is_empty().then_some(None);
        for place in places.iter().copied().map(Some).chain(only_retained) {
            for (side, here, there) in [(direction.origin(), origin, copy), (direction.copy(), copy, origin)] {
                let absence = match there.namespaced {
                    same if same == here.namespaced => Absence::Kind,
                    namespaced => Absence::Scope { namespaced },
                };
                let what = [&here.group, &here.version, &here.resource].map(String::clone);
                self.missing(side, direction, what, place).absence = absence;
            }
        }
    }

    pub(super) fn problem(&mut self, place: &ConfigPlace, message: &str) {
        let problem = Problem {
            place: place.clone(),
            message: message.to_owned(),
        };
        self.plan.problems.insert(problem);
    }
}
