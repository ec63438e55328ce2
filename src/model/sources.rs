//! Which sources a type needs: of its copies first, then of its origins, and of objects that no label finds.

use std::collections::{BTreeMap, BTreeSet};

use driver::source::{Covers, Mode, Reading, SourceId, Style};
use driver::{self, Priority};
use kube_lite::{Error, ObjectName, Scope};
use tokio::time::Instant;

use super::config_kind::ConfigKind;
use super::inventory::ListEpoch;
use super::{Effect, Model, TypeId};
use crate::plan::{Direction, Selector};
use crate::report::{Subject, Topic};
use crate::side::Side;
use crate::sync::meta::Object;
use crate::sync::ownership::mark_selector;

/// How many copies are remembered that a list names as they were before.
const MANY_OUTDATED: usize = 16;

/// All sources that run.
pub(super) type Sources = BTreeMap<SourceId, SourceState>;

/// What a source is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feed {
    /// Configs of a kind at the hub.
    Configs(ConfigKind),
    /// CRDs of a side, to learn when a missing type appears.
    Crds(Side),
    /// Origins of a type.
    Origins(TypeId, Side),
    /// Copies of a type.
    Copies(TypeId, Side),
    /// Objects of a type at the edge that no list by label names, and whose status is still returned.
    Unlabelled(TypeId),
    /// Namespaces at the hub that upsync has made.
    HubNamespaces,
}

impl driver::Feed<Side> for Feed {
    fn side(self) -> Side {
        match self {
            Self::Configs(_) | Self::HubNamespaces => Side::Hub,
            Self::Unlabelled(_) => Side::Edge,
            Self::Crds(side) | Self::Origins(_, side) | Self::Copies(_, side) => side,
        }
    }

    /// Copies always, so that a full queue does not delay news of them, and always drains.
    fn priority(self) -> Priority {
        match self {
            Self::Configs(_) | Self::Crds(_) | Self::HubNamespaces => Priority::First,
            Self::Copies(..) | Self::Unlabelled(_) => Priority::Second,
            Self::Origins(..) => Priority::IfRoom,
        }
    }
}

pub(super) struct SourceState {
    pub(super) feed: Feed,
    pub(super) reading: Reading,
    /// The list that is under way or was the last.
    pub(super) list: ListEpoch,
    /// A list is under way.
    pub(super) listing: bool,
    /// What that list covers.
    pub(super) covers: Covers,
    /// It has completed a list, or has reported that it cannot.
    pub(super) settled: bool,
    /// It has reported that it cannot read, and not since then that it can.
    pub(super) fails: bool,
    /// The last list in which, or after which, it has reported an object without readable metadata; 0 for none.
    pub(super) unreadable_in: ListEpoch,
    /// The version that the server is known to have reached before this source began.
    pub(super) known: u64,
    /// The version up to which it has reported everything: that of its last complete list, or of what its watch has
    /// reported since; 0 before.
    pub(super) reached: u64,
    /// Copies that the list under way names at an older version than this one, at which they were seen. A few show
    /// enough.
    pub(super) outdated: BTreeMap<ObjectName, u64>,
    /// When a read last showed something older than what was reported.
    pub(super) unverified_at: Option<Instant>,
    /// Objects without our label that the list under way has not named yet.
    pub(super) unnamed: BTreeSet<ObjectName>,
}

impl SourceState {
    /// True if it has completed a list, and none is under way.
    pub(super) fn has_listed(&self) -> bool {
        self.list != 0 && !self.listing
    }

    /// The version up to which it has named everything that was there; before its first list, the one up to which that
    /// will name everything.
    pub(super) fn must_have_named(&self) -> u64 {
        if self.reached == 0 { self.known } else { self.reached }
    }

    /// It has named a copy at this version, which was last seen at another. A list that is streamed may name it twice.
    pub(super) fn names_copy(&mut self, name: &ObjectName, at: u64, seen_at: u64) {
        if !(1..seen_at).contains(&at) {
            self.outdated.remove(name);
        } else if self.listing && self.outdated.len() < MANY_OUTDATED {
            self.outdated.insert(name.clone(), seen_at);
        }
    }

    /// True if its complete list, at this version, names a copy as it was before: the side has gone back to that.
    pub(super) fn is_outdated(&self, listed_at: u64) -> bool {
        self.outdated.values().any(|&seen_at| seen_at <= listed_at)
    }

    /// True if it now reports whole objects, not their metadata alone.
    pub(super) fn has_bodies(&self) -> bool {
        match self.reading.style {
            Style::Whole | Style::Labelled(_) => true,
            Style::Metadata => false,
            Style::LookThenWatch(_) => !self.listing || self.covers == Covers::Labelled,
        }
    }
}

impl Model {
    pub(super) fn start_source(&mut self, feed: Feed, reading: Reading) -> SourceId {
        let id = self.next_source;
        self.next_source += 1;
        self.effects.push(Effect::Read(id, feed, reading.clone()));
        let state = SourceState {
            feed,
            reading,
            list: 0,
            listing: false,
            covers: Covers::Everything,
            settled: false,
            fails: false,
            unreadable_in: 0,
            known: self.known_version(feed),
            reached: 0,
            outdated: BTreeMap::new(),
            unverified_at: None,
            unnamed: BTreeSet::new(),
        };
        self.sources.insert(id, state);
        id
    }

    /// Starts the sources of origins of every type whose copies have been listed: first those that others need, and
    /// the others once those are read, so that an object rarely comes before its namespace.
    pub(super) fn start_origin_sources(&mut self) {
        let read = |id: &SourceId| self.sources.get(id).is_some_and(|source| source.settled);
        let first_read = self.types.values().filter(|state| state.is_first()).all(|state| {
            // Without permission to read at the edge there is nothing to wait for.
            let refused = !state.copies_listed && state.copy_source.as_ref().is_some_and(read);
            let started = !state.origin_sources.is_empty() || !state.plan.selected || state.origin_scopes().is_empty();
            refused || state.copies_listed && started && state.origin_sources.values().all(read)
        });
        let ready: Vec<TypeId> = self
            .types
            .iter()
            .filter(|(_, state)| state.copies_listed && (state.is_first() || first_read))
            .map(|(&id, _)| id)
            .collect();
        for type_id in ready {
            let Some(state) = self.types.get_mut(&type_id) else {
                continue;
            };
            let scopes = state.origin_scopes();
            let resource = state.origin_type().clone();
            let feed = Feed::Origins(type_id, state.plan.direction.origin());
            let old = std::mem::take(&mut state.origin_sources);
            let now = self.sources_of(feed, old, scopes, |scope| Reading {
                resource: resource.clone(),
                scope,
                style: Style::Whole,
            });
            if let Some(state) = self.types.get_mut(&type_id) {
                state.origin_sources = now;
            }
        }
    }

    /// Reads the origins in these scopes once, beside the sources that report them but have passed over what was not
    /// selected. What was not read at all yet is left to its source.
    pub(super) fn read_once(&mut self, type_id: TypeId, scopes: BTreeSet<Scope>) {
        let Some(state) = self.types.get(&type_id) else {
            return;
        };
        let (resource, feed) = (
            state.origin_type().clone(),
            Feed::Origins(type_id, state.plan.direction.origin()),
        );
        let mut to_come = state.origin_scopes();
        to_come.retain(|scope| !state.origin_sources.contains_key(scope));
        let mut scopes: Vec<Scope> = scopes.into_iter().map(|scope| state.at_origin(scope)).collect();
        scopes.retain(|scope| !to_come.iter().any(|other| other.covers(scope)));
        for scope in scopes {
            if self.lists_again(type_id, &scope) {
                continue;
            }
            let id = self.start_source(
                feed,
                Reading {
                    resource: resource.clone(),
                    scope: scope.clone(),
                    style: Style::Whole,
                },
            );
            let known = self
                .types
                .get_mut(&type_id)
                .and_then(|state| state.read_once.insert(scope, id));
            if let Some(known) = known {
                self.end_source(known);
            }
        }
    }

    /// A source that is about to watch, and that is reading the scope, or will, reads it from the beginning, and passes
    /// over nothing that is selected now. True if there is such a source.
    fn lists_again(&mut self, type_id: TypeId, scope: &Scope) -> bool {
        let Some(state) = self.types.get_mut(&type_id) else {
            return false;
        };
        let mut covering = state.origin_sources.iter().filter(|(known, _)| known.covers(scope));
        let Some((known, id)) = covering.next().map(|(known, &id)| (known.clone(), id)) else {
            return false;
        };
        let side = state.plan.direction.origin();
        let Some(source) = self
            .sources
            .get(&id)
            .filter(|_| self.settings.mode(side) == Mode::Watch)
        else {
            return false;
        };
        if source.list == 0 {
            return true;
        }
        if !source.listing {
            return false;
        }
        if let Some(state) = self.types.get_mut(&type_id) {
            // It is started again with all others that are to be.
            state.origin_sources.remove(&known);
        }
        self.end_source(id);
        true
    }

    /// A source that watches begins another list: what is in it need not be read by another source.
    pub(super) fn reads_all_again(&mut self, type_id: TypeId, side: Side, id: SourceId) {
        if self.settings.mode(side) != Mode::Watch {
            return;
        }
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        let Some((scope, _)) = state.origin_sources.iter().find(|(_, known)| **known == id) else {
            return;
        };
        let scope = scope.clone();
        let mut needless = Vec::new();
        state.read_once.retain(|other, id| {
            let is_in_it = scope.covers(other);
            needless.extend(is_in_it.then_some(*id));
            !is_in_it
        });
        for id in needless {
            self.end_source(id);
        }
    }

    /// True for a source that ends once it has reported what others have passed over.
    pub(super) fn is_read_once(&self, type_id: TypeId, id: SourceId) -> bool {
        let state = self.types.get(&type_id);
        state.is_some_and(|state| state.read_once.values().any(|&known| known == id))
    }

    /// Ends such a source if it has reached, with this version, the one that the other sources had: they report all
    /// that comes later. One that was shown an older state continues until then.
    pub(super) fn has_read_once(&mut self, type_id: TypeId, id: SourceId, version: u64, known: u64) {
        if version < known {
            return;
        }
        if let Some(state) = self.types.get_mut(&type_id) {
            state.read_once.retain(|_, known| *known != id);
        }
        self.end_source(id);
    }

    /// Keeps the running sources that are still needed, starts those that are not there, and ends the others.
    fn sources_of(
        &mut self,
        feed: Feed,
        mut old: BTreeMap<Scope, SourceId>,
        scopes: BTreeSet<Scope>,
        reading: impl Fn(Scope) -> Reading,
    ) -> BTreeMap<Scope, SourceId> {
        let mut now = BTreeMap::new();
        for scope in scopes {
            let id = old
                .remove(&scope)
                .unwrap_or_else(|| self.start_source(feed, reading(scope.clone())));
            now.insert(scope, id);
        }
        for id in old.into_values() {
            self.end_source(id);
        }
        now
    }

    /// Ends a source. It no longer counts as failing.
    pub(super) fn end_source(&mut self, id: SourceId) {
        if let Some((side, thing)) = self.source_name(id)
            && !self.fails_in_another(id)
        {
            self.report.clear(&Subject::Thing(side, Topic::Watch, thing));
        }
        self.remove_source(id);
    }

    /// Ends a source, and keeps what was logged about it.
    pub(super) fn remove_source(&mut self, id: SourceId) {
        self.all_is_readable(id, true);
        if self.sources.remove(&id).is_some() {
            self.effects.push(Effect::End(id));
        }
    }

    pub(super) fn start_copy_source(&mut self, type_id: TypeId) {
        let Some(state) = self.types.get(&type_id) else {
            return;
        };
        let direction = state.plan.direction;
        let labels = mark_selector(direction).into();
        let reading = Reading {
            resource: state.copy_type().clone(),
            scope: Scope::default(),
            style: match direction {
                // What is there already has to be known before it is overwritten.
                Direction::Down => Style::LookThenWatch(labels),
                // Somebody else's objects are never touched, so they need not be known.
                Direction::Up => Style::Labelled(labels),
            },
        };
        let id = self.start_source(Feed::Copies(type_id, direction.copy()), reading);
        if let Some(state) = self.types.get_mut(&type_id) {
            state.copy_source = Some(id);
        }
    }

    /// Starts and ends sources for the objects of a type that carry no label of ours and whose status is still
    /// returned.
    pub(super) fn watch_unlabelled(&mut self, type_id: TypeId) {
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        if state.plan.direction == Direction::Up {
            return;
        }
        let scopes = Selector::default().scopes(state.inventory.unlabelled());
        if scopes.is_empty() && state.unlabelled_sources.is_empty() {
            return;
        }
        let resource = state.plan.at_edge.clone();
        let old = std::mem::take(&mut state.unlabelled_sources);
        let now = self.sources_of(Feed::Unlabelled(type_id), old, scopes, |scope| Reading {
            resource: resource.clone(),
            scope,
            style: Style::Whole,
        });
        if let Some(state) = self.types.get_mut(&type_id) {
            state.unlabelled_sources = now;
        }
    }

    /// An object without our label is there.
    pub(super) fn unlabelled(&mut self, id: SourceId, type_id: TypeId, object: &Object) -> Result<(), Error> {
        let name = object.meta.object_name();
        self.unlabelled_named(id, &name);
        let state = self.types.get(&type_id);
        if state.is_none_or(|state| state.inventory.get(&name).is_none()) {
            return Ok(());
        }
        self.copy_seen(type_id, &name, None, object, true)
    }

    pub(super) fn unlabelled_list_begins(&mut self, id: SourceId, type_id: TypeId) {
        let (Some(source), Some(state)) = (self.sources.get_mut(&id), self.types.get(&type_id)) else {
            return;
        };
        let scope = &source.reading.scope;
        source.unnamed = state
            .inventory
            .unlabelled()
            .filter(|name| scope.contains(name))
            .cloned()
            .collect();
    }

    pub(super) fn unlabelled_named(&mut self, id: SourceId, name: &ObjectName) {
        if let Some(source) = self.sources.get_mut(&id) {
            source.unnamed.remove(name);
        }
    }

    /// What the list did not name is gone.
    pub(super) fn unlabelled_listed(&mut self, id: SourceId, type_id: TypeId) {
        let unnamed = match self.sources.get_mut(&id) {
            Some(source) => std::mem::take(&mut source.unnamed),
            None => return,
        };
        for name in unnamed {
            self.copy_is_lost(type_id, &name, 0);
        }
    }
}
