//! Whether a side still is the one that the copies are from: the same cluster, and no older state of it.
//!
//! Each cluster is known by the UID of a namespace, asked for at the start and whenever the side comes back; and by its
//! versions, which only a restore from a backup sets back. That is recognised by complete lists, and by the hub's
//! answers to heartbeats, since a watch from a version that a server does not have yet reports nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use driver::Feed as _;
use driver::queue::back_off;
use driver::source::{SourceId, Versions};
use kube_lite::logging::log_line;
use kube_lite::{Error, ObjectName};

use super::config_kind::ConfigKind;
use super::guard::Reason;
use super::identities::Settled;
use super::timers::Timer;
use super::{Effect, Feed, Model, Request, SourceState, TypeId};
use crate::plan::Direction;
use crate::report::{Subject, Topic};
use crate::side::Side;
use crate::sync::identity::{self, Unverified, Witness};
use crate::sync::job::HeldFor;
use crate::sync::ownership::origin_hash;

/// How often in a row a side is asked that cannot say which cluster it is. A new cluster can after a few seconds.
const TRIES: u32 = 10;
/// How often it is asked before work continues without its answer.
const PATIENCE: u32 = 3;
/// How often a type is listed again, at most, while reads of it show something too old.
const UNVERIFIED_INTERVAL: Duration = Duration::from_secs(60);

/// How often all copies of a side are listed again, at most, since those of one type show that it has lost something.
const LOST_INTERVAL: Duration = Duration::from_secs(600);

impl Model {
    /// A source has completed a list. One of origins or configs that is older than what the same source reported before, or
    /// than what was known when it began, comes from a restored backup. (What other sources report meanwhile may well
    /// be newer, and so may what is read beside a list.)
    pub(super) fn source_has_listed(&mut self, id: SourceId, versions: Versions) {
        let Some(source) = self.sources.get_mut(&id) else {
            return;
        };
        source.reached = versions.list;
        let versions = Versions {
            before: versions.before.max(source.known),
            ..versions
        };
        let feed = source.feed;
        match self.versions_key(feed) {
            Some((direction, resource)) if versions.go_back() => {
                self.went_back(direction, resource, versions.before, versions.list);
            }
            _ => self.source_is_at(feed, versions.list),
        }
        if let Feed::Origins(type_id, Side::Hub) = feed
            && versions.break_with_before()
        {
            self.statuses_may_be_lost(type_id);
        }
    }

    /// A source of origins has reported an object, or that it was deleted, at this version. A watch reports in the order
    /// of the versions, a list does not.
    pub(super) fn source_reaches(&mut self, id: SourceId, version: u64) {
        if let Some(source) = self.sources.get_mut(&id).filter(|source| !source.listing) {
            source.reached = source.reached.max(version);
        }
    }

    /// The version that the sources of a type's origins have reached, which a source that reads beside them has to reach
    /// too: deletes count, which prove nothing of the side.
    pub(super) fn others_have_reached(&self, type_id: TypeId, feed: Feed) -> u64 {
        let sources = self
            .types
            .get(&type_id)
            .into_iter()
            .flat_map(|state| state.origin_sources.values());
        let reached = sources
            .filter_map(|id| self.sources.get(id))
            .map(|source| source.reached);
        reached.max().unwrap_or_default().max(self.known_version(feed))
    }

    /// A source of origins or configs has reported something at this version.
    pub(super) fn source_is_at(&mut self, feed: Feed, version: u64) {
        let Some((direction, resource)) = self.versions_key(feed) else {
            return;
        };
        let is_higher = self.guard.versions.is_at(direction, resource, version);
        // Those of configs grow with every heartbeat, and are written with others or at the end. Those of the edge are
        // not in the record, which is itself at the edge and may be one of these objects.
        if is_higher && direction == Direction::Down && matches!(feed, Feed::Origins(..)) {
            self.keep_versions_in_record();
        }
    }

    /// The key by which the versions that a source reports are kept; `None` if they do not matter.
    fn versions_key(&self, feed: Feed) -> Option<(Direction, String)> {
        match feed {
            Feed::Origins(type_id, _) => {
                let state = self.types.get(&type_id)?;
                Some((state.plan.direction, state.origin_type().qualified()))
            }
            Feed::Configs(kind) => Some((Direction::Down, kind.qualified())),
            _ => None,
        }
    }

    /// A list of origins lacks some of which copies were made at a later version than its own. They may have been
    /// created, or read by a worker, while it was under way; or their side was restored from a backup. A list that begins
    /// now shows which, and nothing is deleted before.
    pub(super) fn compare_with_missing(&mut self, id: SourceId, type_id: TypeId, missing: &[ObjectName]) {
        let (Some(source), Some(state)) = (self.sources.get(&id), self.types.get(&type_id)) else {
            return;
        };
        let identity = self.sides.identity(state.plan.direction.origin());
        let Some(cluster) = identity.present().map(origin_hash) else {
            return;
        };
        let (from, to) = (state.inventory.newest_pending_delete(missing, cluster), source.reached);
        let is_news = to != 0 && to < from && source.known < from;
        if !is_news || identity.confirms(&Unverified::Older { from, to }) {
            return;
        }
        self.sources.entry(id).and_modify(|source| {
            source.known = from;
            source.settled = false;
        });
        self.reread_source(id);
    }

    fn went_back(&mut self, direction: Direction, resource: String, from: u64, to: u64) {
        let reason = Reason::WentBack { resource, from, to };
        self.hold_deletes(direction, reason);
    }

    /// The version that the objects of a source are known to have reached.
    pub(super) fn known_version(&self, feed: Feed) -> u64 {
        if let Feed::Copies(type_id, _) = feed {
            let state = self.types.get(&type_id);
            return state.map_or(0, |state| state.inventory.copies_reached());
        }
        self.versions_key(feed)
            .map_or(0, |(direction, resource)| self.reached_by(direction, &resource))
    }

    /// The version that the origins of a type (`resource.group`) are known to have reached; 0 if none is known.
    pub(super) fn reached_by(&self, direction: Direction, resource: &str) -> u64 {
        self.guard.versions.of(direction, resource)
    }

    /// The hub has given a config this version with a heartbeat, and had given it `before` with the one before.
    pub(super) fn config_written_at(&mut self, kind: ConfigKind, before: u64, version: u64) {
        let resource = kind.qualified();
        if version < before && version != 0 {
            self.went_back(Direction::Down, resource, before, version);
        } else {
            self.guard.versions.is_at(Direction::Down, resource, version);
        }
    }

    /// An earlier run knew the hub at these versions. The configs may have been listed before this was known, and another
    /// syncer may have written the record since: a list that begins now shows whether the hub has gone back.
    pub(super) fn restore_versions(&mut self, versions: BTreeMap<String, u64>) {
        for (resource, version) in versions {
            let configs = self.sources.iter_mut().find(|(_, source)| {
                matches!(source.feed, Feed::Configs(_)) && source.reading.resource.qualified() == resource
            });
            let listed_before = configs.and_then(|(&id, source)| {
                source.known = source.known.max(version);
                let has_begun = source.listing || source.reached != 0;
                (has_begun && source.reached < version).then_some(id)
            });
            self.guard.versions.was_at(Direction::Down, resource, version);
            if let Some(id) = listed_before {
                self.reread_source(id);
            }
        }
    }

    /// The origins' side begins again, as people have confirmed.
    pub(super) fn clear_versions(&mut self, direction: Direction) {
        self.guard.versions.clear(direction);
        for source in self.sources.values_mut() {
            if source.feed.side() == direction.origin() {
                source.known = 0;
            }
        }
        self.keep_guard_in_record();
    }

    /// All sources of a side begin again with a list, since what they know of it proves nothing.
    pub(super) fn reread_side(&mut self, side: Side) {
        if side == Side::Hub {
            // The lists will show whether the statuses that were written to it are there.
            let inventories = self.types.values_mut().map(|state| &mut state.inventory);
            inventories.for_each(super::inventory::Inventory::drop_written_statuses);
        }
        let of_side = self.sources.iter().filter(|(_, source)| source.feed.side() == side);
        let of_side: Vec<SourceId> = of_side.map(|(&id, _)| id).collect();
        for id in of_side {
            self.reread_source(id);
        }
    }

    /// A read of an object of the type has shown something older than what this side has reported. A watch of a side
    /// that was restored from a backup may report nothing for an hour; a list shows it.
    pub(super) fn type_is_unverified(&mut self, type_id: TypeId, side: Side) {
        let now = self.now;
        let is_of_type =
            |feed: Feed| matches!(feed, Feed::Origins(of, at) | Feed::Copies(of, at) if of == type_id && at == side);
        let is_recent = |source: &SourceState| {
            source
                .unverified_at
                .is_some_and(|at| now.duration_since(at) < UNVERIFIED_INTERVAL)
        };
        let sources = self.sources.iter().filter(|(_, source)| is_of_type(source.feed));
        let unverified = sources.filter(|(_, source)| !source.listing && !is_recent(source));
        let unverified: Vec<SourceId> = unverified.map(|(&id, _)| id).collect();
        for id in unverified {
            self.sources
                .entry(id)
                .and_modify(|source| source.unverified_at = Some(now));
            self.reread_source(id);
        }
    }

    /// The copies of one type show that a side has lost what it had confirmed. Others may have lost as much, and their
    /// watches may go on as if nothing had happened: lists show what is there. Nothing is deleted because of that, so that
    /// the origins of what goes the other way are left to what their own lists prove.
    pub(super) fn side_has_lost(&mut self, side: Side) {
        let now = self.now;
        let lost_at = &mut self.sides.of_mut(side).lost_at;
        if lost_at.is_some_and(|before| now.duration_since(before) < LOST_INTERVAL) {
            return;
        }
        *lost_at = Some(now);
        let copies = self.sources.iter().filter(|(_, source)| {
            matches!(source.feed, Feed::Copies(_, at) if at == side) && source.list != 0 && !source.listing
        });
        let copies: Vec<SourceId> = copies.map(|(&id, _)| id).collect();
        for id in copies {
            self.reread_source(id);
        }
    }

    /// A side was away, and may have been restored from a backup meanwhile. By now it may have made more versions than it had
    /// lost, so that neither its versions nor its watches would ever say so: lists show what is there. (The edge is near;
    /// over the link to the hub that would cost too much whenever it fails.)
    pub(super) fn side_may_be_restored(&mut self, side: Side) {
        let of_side = self.sources.iter().filter(|(_, source)| source.feed.side() == side);
        let settled: Vec<SourceId> = of_side
            .filter(|(_, source)| source.list != 0 && !source.listing)
            .map(|(&id, _)| id)
            .collect();
        for id in settled {
            self.reread_source(id);
        }
    }

    /// A list of one type is older than what others of the side have reported: it was restored from a backup or has lost
    /// its last writes, and by now their watches may go on as if nothing had happened. What has reported later versions
    /// is listed again, as after a start. (Of a type that is stored elsewhere this says nothing, and costs a list.)
    pub(super) fn side_may_have_lost(&mut self, side: Side, reached: u64) {
        let now = self.now;
        let of_side = |source: &SourceState| source.feed.side() == side && !source.listing;
        let is_recent = |source: &SourceState| {
            source
                .unverified_at
                .is_some_and(|at| now.duration_since(at) < UNVERIFIED_INTERVAL)
        };
        let sources = self
            .sources
            .iter()
            .filter(|(_, source)| of_side(source) && !is_recent(source));
        let later: Vec<(SourceId, u64)> = sources
            .map(|(&id, source)| (id, self.known_version(source.feed)))
            .filter(|(_, known)| *known > reached)
            .collect();
        for (id, known) in later {
            self.sources.entry(id).and_modify(|source| {
                source.unverified_at = Some(now);
                source.known = source.known.max(known);
            });
            self.reread_source(id);
        }
    }

    fn reread_source(&mut self, id: SourceId) {
        let Some(source) = self.sources.get_mut(&id) else {
            return;
        };
        if let Feed::Copies(type_id, _) = source.feed {
            // The new source does not know what the old one has seen.
            let known = self.types.get(&type_id).map(|state| state.inventory.copies_reached());
            source.known = known.unwrap_or_default();
        }
        let (feed, reading) = (source.feed, source.reading.clone());
        self.effects.push(Effect::Read(id, feed, reading));
    }

    /// Asks a side which cluster it is: at the start, when it comes back, and when it may be another.
    pub(super) fn ask_identity(&mut self, side: Side) {
        self.timers.clear(Timer::Identity(side));
        if !self.timers.starts(Timer::Identity(side)) {
            return;
        }
        let state = self.sides.of_mut(side);
        state.question.moves = state.contact.moves;
        let expected = self.sides.identity(side).expected().map(str::to_owned);
        self.effects.request(Request::Identify(side, expected));
    }

    /// Asks a side again that could not say which cluster it is, if that is due.
    pub(super) fn ask_identities_again(&mut self) {
        for &side in &*self.sides.ids() {
            if self.timers.fires(Timer::Identity(side), self.now) {
                self.ask_identity(side);
            }
        }
    }

    /// A side was asked which cluster it is. True if it is the right one again, after another.
    pub(super) fn on_identity(&mut self, side: Side, result: Result<Option<String>, Error>) -> bool {
        let timer = Timer::Identity(side);
        self.timers.ends(timer);
        let subject = Subject::Thing(side, Topic::Identity, "Namespace//kube-system".to_owned());
        let mut is_back = false;
        let says_who = !matches!(result, Ok(None));
        match result {
            Ok(Some(found)) => {
                self.timers.succeeds(timer);
                self.sides.of_mut(side).question.settled = Settled::Yes;
                self.report.works(&subject);
                is_back = self.side_is(side, found);
            }
            // A new cluster is asked before it has its namespaces.
            Ok(None) => {
                self.ask_identity_later(side);
                self.warn_of_a_nameless(side);
            }
            // It is asked when it comes back. It may have come back before this request was given up, and then nothing
            // might be sent to it for an hour.
            Err(error) if error.is_unreachable() => {
                self.ask_identity_later(side);
                self.side_is_silent(side, "asking", &error);
                return false;
            }
            Err(error) => {
                if error.is_forbidden() {
                    self.sides.of_mut(side).question.settled = Settled::Yes;
                } else {
                    self.ask_identity_later(side);
                }
                // Nothing reports when a request that fails now would succeed, or when it is allowed.
                let due = self.now + back_off(u32::MAX, self.chance.f64());
                self.timers.set_if_idle(timer, due);
                self.fails(subject, "reading", &error);
            }
        }
        let question = &mut self.sides.of_mut(side).question;
        if question.settled == Settled::No && self.timers.failures(timer) >= PATIENCE {
            question.settled = Settled::Yes;
        }
        if says_who || self.timers.failures(timer) >= PATIENCE {
            self.log_hold(Direction::from(side));
        }
        is_back
    }

    /// Logs that nothing distinguishes a side from another one, when it has been asked often enough.
    fn warn_of_a_nameless(&mut self, side: Side) {
        let question = &mut self.sides.of_mut(side).question;
        if self.timers.failures(Timer::Identity(side)) == TRIES
            && std::mem::replace(&mut question.settled, Settled::Nameless) != Settled::Nameless
        {
            log_line!(
                Warn,
                IdentityUnknown,
                "cannot tell a side from another one, so that no delete is held if it is recreated: it has neither a \
                 namespace kube-system nor one called default",
                side = side.word(),
                advice = "create a namespace default there, or allow it to get logicalclusters in kcp"
            );
        }
    }

    fn ask_identity_later(&mut self, side: Side) {
        if self.timers.failures(Timer::Identity(side)) < TRIES {
            self.timers.retry(Timer::Identity(side), self.now, self.chance.f64());
        }
    }

    /// Asks the sides again that were last found to be another cluster: the right one may be back.
    pub(super) fn ask_strangers_again(&mut self) {
        for direction in [Direction::Down, Direction::Up] {
            if self.guard.distrusts(direction) {
                self.ask_identity(direction.origin());
            }
        }
    }

    /// True if it is the right one again, after another: nothing may follow from what that one has reported.
    fn side_is(&mut self, side: Side, found: String) -> bool {
        let direction = Direction::from(side);
        let was_another = self.sides.identity(side).is_another();
        self.identity_mut(side).answers(&found);
        match self.sides.identity(side).expected().map(str::to_owned) {
            None => {
                self.identity_mut(side).presume(found);
            }
            Some(expected) if expected != found => {
                let reason = Reason::OtherCluster { expected, found };
                self.hold_deletes(direction, reason);
            }
            Some(_) => {
                if self.guard.distrusts(direction) {
                    self.judge_again(direction);
                }
                if was_another {
                    self.guard.versions.go_back_to_proved(direction);
                    return true;
                }
                self.guard.versions.prove(direction);
            }
        }
        false
    }

    /// The copies say whether they are from the cluster that has answered first, once all of them are listed. A few that
    /// another cluster has left do not outvote them.
    pub(super) fn compare_copies(&mut self) {
        for direction in [Direction::Down, Direction::Up] {
            let side = direction.origin();
            let Some(presumed) = self.sides.identity(side).presumed().map(origin_hash) else {
                continue;
            };
            if !self.all_listed() {
                return;
            }
            let Some(witness) = self.witness(direction, presumed) else {
                continue;
            };
            self.identity_mut(side).compare(witness);
            match witness {
                Witness::ForAnother => self.ask_whose_copies_are(direction),
                Witness::ForIt => self.keep_guard_in_record(),
            }
        }
    }

    /// What the copies that are known say of a cluster, by their number; `None` if they say nothing.
    fn witness(&self, direction: Direction, cluster: u32) -> Option<Witness> {
        let mut clusters = BTreeMap::new();
        for state in self.types.values().filter(|state| state.plan.direction == direction) {
            state.inventory.count_clusters(&mut clusters);
        }
        let for_it = clusters.remove(&cluster).unwrap_or_default();
        let for_another = clusters.into_values().max().unwrap_or_default();
        if for_it > for_another {
            Some(Witness::ForIt)
        } else {
            (for_another > 0).then_some(Witness::ForAnother)
        }
    }

    /// True if other copies are from another cluster than this one: as is known, or as most of them say so far.
    pub(super) fn is_stray(&self, direction: Direction, cluster: &str) -> bool {
        let identity = self.sides.identity(direction.origin());
        let most_are_from = |presumed: &str| self.witness(direction, origin_hash(presumed)) == Some(Witness::ForIt);
        let others = identity
            .known()
            .or(identity.presumed().filter(|presumed| most_are_from(presumed)));
        others.is_some_and(|others| others != cluster)
    }

    /// A copy says that it is from that cluster: so are the others. `None` if it is the one that answers.
    pub(super) fn copies_are_from(&mut self, side: Side, cluster: &str) -> Option<Reason> {
        let found = self.sides.identity(side).present().unwrap_or_default().to_owned();
        if self.sides.identity(side).known().is_none() {
            self.identity_mut(side).expect(cluster.to_owned());
            self.keep_guard_in_record();
        }
        (found != cluster).then(|| Reason::OtherCluster {
            expected: cluster.to_owned(),
            found,
        })
    }

    /// True if what holds a delete was confirmed while a worker was under way.
    pub(super) fn confirmed_meanwhile(&self, origins: Side, resource: &str, held: &HeldFor) -> bool {
        let identity = self.sides.identity(origins);
        match held {
            HeldFor::OtherCluster(found) => identity.expected() == Some(found),
            HeldFor::Unverified(why) => identity.confirms(why),
            HeldFor::Withdrawn(withdrawal) => self.definitions.confirms(resource, withdrawal),
            HeldFor::WentBack(_) | HeldFor::WouldCascade(_) | HeldFor::AnotherLook | HeldFor::StillThere => false,
        }
    }

    pub(super) fn identity_mut(&mut self, side: Side) -> &mut identity::Identity {
        self.sides.of_mut(side).identity_mut()
    }
}
