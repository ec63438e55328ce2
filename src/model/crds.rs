//! CRDs of a side: a type appears when its CRD does. They are read, names only, while something is missing, and as long
//! as `*` selects types that do not exist yet.

use std::collections::BTreeSet;

use driver::source::{Reading, SourceId, Style};
use kube_lite::discovery::Discovery;
use kube_lite::logging::log_line;
use kube_lite::{Error, ResourceType, Scope, qualified};

use super::{Feed, Model};
use crate::side::Side;
use crate::sync::meta::Meta;

/// What is read of the CRDs of a side.
pub(super) struct KnownCrds {
    source: SourceId,
    /// The side does not let them be read: from time to time the side is asked for new types instead.
    refused: bool,
    /// Those that are there, as `plural.group`.
    names: BTreeSet<String>,
}

impl KnownCrds {
    fn new(source: SourceId) -> Self {
        Self {
            source,
            refused: false,
            names: BTreeSet::new(),
        }
    }

    /// True if one of these groups has a CRD whose type discovery has not reported: a server serves a type a moment after
    /// its CRD is there, and reports it a moment later still.
    fn announce_more(&self, groups: &BTreeSet<String>, discovery: &Discovery) -> bool {
        let types = self.names.iter().filter_map(|name| name.split_once('.'));
        let mut of_groups = types.filter(|(_, group)| groups.contains(*group));
        of_groups.any(|(resource, group)| !discovery.serves(group, resource))
    }
}

impl Model {
    /// Begins to read the CRDs of a side, or ends that, as the plan wants it.
    pub(super) fn watch_crds_while_missing(&mut self, side: Side) {
        let needed = self.misses_anything(side) || self.is_open_ended(side);
        if let Some(known) = self.sides.asking(side).crds.take_if(|_| !needed) {
            self.remove_source(known.source);
        }
        if needed && self.sides.asking(side).crds.is_none() {
            let reading = Reading {
                resource: ResourceType::definitions(),
                scope: Scope::default(),
                style: Style::Metadata,
            };
            let source = self.start_source(Feed::Crds(side), reading);
            self.sides.asking(side).crds = Some(KnownCrds::new(source));
        }
    }

    pub(super) fn crds_begin(&mut self, side: Side) {
        if let Some(known) = &mut self.sides.asking(side).crds {
            known.names.clear();
        }
    }

    /// A CRD is there, as the list under way or a watch says.
    pub(super) fn crd_seen(&mut self, side: Side, meta: Meta) {
        if let Some(known) = &mut self.sides.asking(side).crds {
            if meta.deletion_timestamp.is_none() {
                known.names.insert(meta.name);
            } else {
                known.names.remove(&meta.name);
            }
        }
    }

    /// A CRD was added or changed. For each of the first list that matters, it is checked whether its type was asked
    /// for.
    pub(super) fn crd_changed(&mut self, id: SourceId, side: Side, meta: Meta) {
        if self.sources.get(&id).is_some_and(|source| source.settled) {
            self.types_change(side, &meta);
        }
        self.crd_seen(side, meta);
    }

    /// A CRD has changed: what its group lacked may be there, or words that puzzle may mean its type.
    fn types_change(&mut self, side: Side, meta: &Meta) {
        self.void_catalogue(side);
        let group = meta.name.split_once('.').map_or("", |(_, group)| group);
        let mut missing = self.selecting.missing.iter().filter(|missing| missing.side == side);
        let is_sought = missing.any(|missing| missing.group == group);
        if is_sought || self.open_groups(side).contains(group) || self.has_unknown(side) {
            self.ask_again_soon(side);
        }
    }

    pub(super) fn crd_gone(&mut self, side: Side, meta: &Meta) {
        if let Some(known) = &mut self.sides.asking(side).crds {
            known.names.remove(&meta.name);
        }
        self.types_change(side, meta);
    }

    pub(super) fn crds_are_reported(&mut self, side: Side) {
        if let Some(known) = &mut self.sides.asking(side).crds {
            known.refused = false;
        }
    }

    pub(super) fn crds_listed(&mut self, side: Side) {
        if self.may_have_more(side) {
            self.ask_soon_unless_due(side);
        }
    }

    pub(super) fn crds_refused(&mut self, side: Side, error: &Error) {
        log_line!(
            Debug,
            CrdsNotWatched,
            "cannot watch CRDs, the side is polled for new types",
            side = side.word(),
            error = error
        );
        if let Some(known) = &mut self.sides.asking(side).crds {
            known.refused = true;
        }
        if self.may_have_more(side) {
            self.ask_soon_unless_due(side);
        }
    }

    /// True if a group of which everything is selected may have types that the side has not reported.
    pub(super) fn may_have_more(&self, side: Side) -> bool {
        let asking = &self.sides.of(side).asking;
        let known = asking.crds.as_ref().filter(|_| self.is_open_ended(side));
        known.is_some_and(|known| known.refused || known.announce_more(&self.open_groups(side), &asking.discovery))
    }

    /// False if it is known that a side has no CRD of that type, or if it does not let CRDs be read.
    pub(super) fn may_have_crd(&self, side: Side, group: &str, resource: &str) -> bool {
        let Some(crds) = &self.sides.of(side).asking.crds else {
            return true;
        };
        let source = self.sources.get(&crds.source);
        let is_read = source.is_some_and(|source| source.settled && !source.listing);
        !crds.refused && (!is_read || crds.names.contains(&qualified(group, resource)))
    }

    fn is_open_ended(&self, side: Side) -> bool {
        side == Side::Edge && !self.selecting.open.is_empty()
    }
}
