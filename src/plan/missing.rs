//! What is selected and a side lacks, and how it lacks it.

use std::collections::BTreeSet;
use std::fmt;

use kube_lite::discovery::GroupVersion;
use kube_lite::qualified;

use super::{ConfigPlace, Direction};
use crate::side::Side;

/// A selected resource that a side does not serve. It is picked up when it appears.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Missing {
    /// The side.
    pub side: Side,
    /// In which direction it is to be synced.
    pub direction: Direction,
    /// Group of the resource.
    pub group: String,
    /// Version of the resource; empty if none is given.
    pub version: String,
    /// Plural of the resource, or its kind if the plural is not known; `*` for all of the group.
    pub resource: String,
    /// The place that asks for it, the first of its config; absent for a type that is only retained.
    pub place: Option<ConfigPlace>,
    /// How far it is missing.
    pub absence: Absence,
    /// What may be meant instead, as far as the sides are known.
    pub meant: Option<String>,
}

/// How a side lacks a type: the one word for it, in the plan, in what is asked of a side and in what is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Absence {
    /// At one side.
    Side,
    /// At both sides: perhaps no such thing is meant.
    Everywhere,
    /// At this version, and another one is used until it appears: the versions of a new CRD come one after the other.
    Version,
    /// It is served, but with another scope than the copies have at their side or are to get there: another type. What
    /// is wanted is namespaced, or not.
    Scope {
        /// True if it is to be namespaced.
        namespaced: bool,
    },
    /// It is served, but the kind of its objects differs from that at the other side.
    Kind,
}

impl Absence {
    /// The scope with which it lacks it (true for namespaced); `None` if with any.
    pub fn scope(self) -> Option<bool> {
        match self {
            Self::Scope { namespaced } => Some(namespaced),
            Self::Side | Self::Everywhere | Self::Version | Self::Kind => None,
        }
    }
}

/// What is not known of the sides yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// Group versions, by side.
    pub group_versions: BTreeSet<(Side, GroupVersion)>,
    /// Sides of which the groups and their preferred versions are needed.
    pub groups: BTreeSet<Side>,
    /// All that the edge serves is needed, to say what may be meant by what is missing.
    pub catalogue: bool,
}

impl Unknown {
    /// True if a side has to say something that was not in the other one.
    pub fn has_more_than(&self, other: &Self, side: Side) -> bool {
        let mut group_versions = self.group_versions.difference(&other.group_versions);
        let of_groups = |unknown: &Self| unknown.groups.contains(&side);
        let of_catalogue = side == Side::Edge && self.catalogue && !other.catalogue;
        of_catalogue || of_groups(self) && !of_groups(other) || group_versions.any(|(of_side, _)| *of_side == side)
    }

    /// True if it is not known yet whether this is still missing. What one side lacks is planned only once both have
    /// answered.
    pub fn concerns(&self, missing: &Missing) -> bool {
        let Missing {
            side, group, version, ..
        } = missing;
        if self.catalogue && missing.is_reported() {
            return true;
        }
        if version.is_empty() {
            return self.groups.contains(side) || self.has_group(group);
        }
        let of = (group.clone(), version.clone());
        [Side::Hub, Side::Edge]
            .map(|side| (side, of.clone()))
            .iter()
            .any(|of| self.group_versions.contains(of))
    }

    /// True if a side has not answered for a version of the group.
    pub fn has_group(&self, group: &str) -> bool {
        [Side::Hub, Side::Edge].into_iter().any(|side| {
            let from = (side, (group.to_owned(), String::new()));
            let next = self.group_versions.range(from..).next();
            next.is_some_and(|(of_side, (of, _))| (*of_side, &**of) == (side, group))
        })
    }
}

impl Missing {
    /// True if the side that lacks the type is where its objects come from: then these are gone too.
    pub fn is_origin(&self) -> bool {
        self.side == self.direction.origin()
    }

    /// True if it is logged as missing. What both sides lack is logged once, what is synced at another version is not
    /// logged, and what differs between the sides is logged as a problem of the config.
    pub fn is_reported(&self) -> bool {
        let once = match self.absence {
            Absence::Side => true,
            Absence::Everywhere => self.is_origin(),
            Absence::Version | Absence::Scope { .. } | Absence::Kind => false,
        };
        once && self.place.is_some()
    }

    /// The side that does not serve it, or both.
    pub fn lacked_by(&self) -> &'static str {
        match self.absence {
            Absence::Everywhere => "hub,edge",
            _ => self.side.word(),
        }
    }

    /// What is missing where, and what may be meant, for people at the hub.
    pub fn in_words(&self) -> String {
        let name = match &*self.resource {
            "*" => format!("the group {:?}", self.group),
            resource => qualified(&self.group, resource),
        };
        let version = if self.version.is_empty() {
            String::new()
        } else {
            format!(" at version {}", self.version)
        };
        let by = match self.absence {
            Absence::Everywhere => "neither hub nor edge serves".to_owned(),
            _ => format!("the {} does not serve", self.side.word()),
        };
        let meant = self
            .meant
            .as_ref()
            .map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
        format!("{by} {name}{version}{meant}")
    }

    /// What distinguishes one from another: side, direction, group, version, resource and config.
    pub fn key(&self) -> (Side, Direction, &str, &str, &str, Option<&str>) {
        let config = self.place.as_ref().map(|place| &*place.config);
        (
            self.side,
            self.direction,
            &self.group,
            &self.version,
            &self.resource,
            config,
        )
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, resource, .. } = self;
        write!(f, "resource={resource} group={group:?}")?;
        if !self.version.is_empty() {
            write!(f, " version={}", self.version)?;
        }
        Ok(())
    }
}
