//! Asking each side what it serves: once for what the plan needs, and again while something is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use driver::source::SourceId;
use kube_lite::discovery::{Catalogue, Discovery, GroupVersion, Served};
use kube_lite::{Error, ResourceType};

use super::config_kind::ConfigKind;
use super::crds::KnownCrds;
use super::timers::Timer;
use super::{Model, Request};
use crate::plan::{Absence, Missing, SyncedType};
use crate::report::{Subject, Topic};
use crate::side::Side;

/// The wait between a sign that a missing type may be there and asking for it: one CRD causes several events as it
/// comes up.
const SETTLE: Duration = Duration::from_millis(100);
/// Failures that the wait between two searches for a missing type starts from, where nothing says that it may be there:
/// about 6 s, growing to 5 minutes. After a sign it is sought from 1 s on: a server reports a type a while after its CRD.
const PATIENCE: u32 = 4;
/// How often in a row the side of the origins must say that it does not serve a type before their copies are deleted.
/// With the waits in between this takes about a quarter of a minute, in which a hub that starts has all of its APIs.
const GONE_ROUNDS: u32 = 3;
/// The same for a type that is still selected, where only upsync considers it gone: an edge that starts on a slow board
/// may serve its CRDs late. With the waits in between this takes about a minute.
const SELECTED_GONE_ROUNDS: u32 = 10;
/// An answer that comes sooner after the last one does not count: each watch of the type that ends is a reason to ask
/// at once.
const GONE_ROUND: Duration = Duration::from_secs(3);

/// True if a side has said often enough that it lacks the origins of a type.
pub(super) fn is_gone(rounds: u32, selected: bool) -> bool {
    rounds >= if selected { SELECTED_GONE_ROUNDS } else { GONE_ROUNDS }
}

/// What is known of one side.
#[derive(Default)]
pub(super) struct DiscoveryState {
    /// Shared with a plan that is being made of it.
    pub(super) discovery: Rc<Discovery>,
    /// Those for which the last answer of the side was an error.
    refused: BTreeSet<GroupVersion>,
    /// CRDs, which are read while something is missing.
    pub(super) crds: Option<KnownCrds>,
}

/// What is to be asked of a side.
#[derive(Clone, Debug)]
pub(crate) struct DiscoveryRequest {
    /// The group versions at which to ask what it serves.
    pub(crate) group_versions: BTreeSet<GroupVersion>,
    /// Whether to ask which groups it has.
    pub(crate) of_groups: bool,
    /// Whether to ask for all that it serves.
    pub(crate) catalogue: bool,
    /// Groups of which everything is wanted, at all their versions.
    pub(crate) open: BTreeSet<String>,
    /// Types, by group, that can be used at another version, if the one that is asked for lacks them.
    pub(crate) elsewhere: BTreeMap<String, BTreeSet<String>>,
    /// Types, by group and plural, that the side may lack at every version, to be confirmed.
    pub(crate) to_confirm: Lacking,
}

/// What asking a side gave.
pub(crate) struct Answers {
    /// What it serves.
    pub(crate) served: Vec<(GroupVersion, Result<Served, Error>)>,
    /// The groups of the side, if they were asked for.
    pub(crate) groups: Option<Result<Groups, Error>>,
    /// All that it serves, if it was asked for that.
    pub(crate) catalogue: Option<Result<Catalogue, Error>>,
    /// Types, by group and plural, that the side has positively said to lack at every version.
    pub(crate) lacking: BTreeSet<(String, String)>,
}

/// Types, by group and plural, that a side may lack, and how: at every version, or with that scope alone.
pub(crate) type Lacking = BTreeMap<(String, String), Absence>;

/// The versions of each named group.
pub(crate) type Groups = BTreeMap<String, Vec<String>>;

impl Model {
    /// Something has changed that may make a missing type appear.
    pub(super) fn ask_again_soon(&mut self, side: Side) {
        self.timers.succeeds(Timer::Discovery(side));
        self.timers.set(Timer::Discovery(side), self.now + SETTLE);
    }

    /// Something is needed that was not asked for before: it does not wait for what is asked for again.
    pub(super) fn asks_at_once(&mut self, side: Side) {
        self.timers.succeeds(Timer::Discovery(side));
        self.timers.set_earlier(Timer::Discovery(side), self.now);
    }

    /// Something may have appeared that the last answer did not show.
    pub(super) fn ask_soon_unless_due(&mut self, side: Side) {
        if !self.timers.is_running(Timer::Discovery(side)) {
            self.timers.set_if_idle(Timer::Discovery(side), self.now + SETTLE);
        }
    }

    /// What a side has not answered for yet.
    fn unknown(&self, side: Side) -> BTreeSet<GroupVersion> {
        let unknown = self.selecting.unknown.group_versions.iter();
        unknown
            .filter(|(of_side, _)| *of_side == side)
            .map(|(_, group_version)| group_version.clone())
            .collect()
    }

    /// What a side is known to lack: where no version is given, it may appear at any version of the group.
    fn missing(&self, side: Side) -> BTreeSet<GroupVersion> {
        let discovery = self.sides.discovery(side);
        let mut missing = BTreeSet::new();
        for known in self.selecting.missing.iter().filter(|missing| missing.side == side) {
            let given = Some(vec![&*known.version]).filter(|_| !known.version.is_empty());
            let versions = given.or_else(|| discovery.versions(&known.group)).unwrap_or_default();
            let versions = versions.into_iter();
            missing.extend(versions.map(|version| (known.group.clone(), version.to_owned())));
        }
        missing
    }

    pub(super) fn misses_anything(&self, side: Side) -> bool {
        self.selecting.missing.iter().any(|missing| missing.side == side)
    }

    /// What is to be asked of a side: what is not known, what is missing, and what may have been added to `*` since.
    fn questions(&self, side: Side) -> (BTreeSet<GroupVersion>, bool) {
        let questions = self.unknown(side).union(&self.missing(side)).cloned().collect();
        let are_known = self.sides.discovery(side).groups.is_some();
        let of_groups = self.selecting.unknown.groups.contains(&side)
            || side == Side::Edge && !self.selecting.open.is_empty()
            || self.misses_anything(side) && are_known;
        (questions, of_groups)
    }

    /// Asks each side what it serves, where that is due. A plan that is being made is followed first: each answer would make
    /// it void.
    pub(super) fn ask_what_is_due(&mut self) {
        if self.selecting.turns.plan.is_some() {
            return;
        }
        for &side in &*self.sides.ids() {
            if !self.timers.fires(Timer::Discovery(side), self.now) {
                continue;
            }
            let (questions, of_groups) = self.questions(side);
            let unverified = self.unverified_config_kinds(side);
            let catalogue = side == Side::Edge && self.selecting.unknown.catalogue;
            if questions.is_empty() && !of_groups && !catalogue && unverified.is_empty() {
                continue;
            }
            self.timers.starts(Timer::Discovery(side));
            let mut confirm = self.to_confirm(side);
            confirm.extend(
                unverified
                    .into_iter()
                    .map(|kind| (group_and_resource(kind), Absence::Side)),
            );
            let open = self.open_groups(side);
            // Whether it is there at another version.
            let elsewhere = self.missing_at_one_version(side);
            let questions = DiscoveryRequest {
                group_versions: questions,
                of_groups,
                catalogue,
                open,
                elsewhere,
                to_confirm: confirm,
            };
            self.effects.request(Request::Discover(side, questions));
        }
    }

    /// Groups of which everything is selected.
    pub(super) fn open_groups(&self, side: Side) -> BTreeSet<String> {
        let open = self.selecting.open.iter().filter(|(of_side, _)| *of_side == side);
        open.map(|(_, group)| group.clone()).collect()
    }

    /// Groups in which a side lacks a type that can be used at another version: types of which copies are to be made,
    /// and types that are only retained.
    fn missing_at_one_version(&self, side: Side) -> BTreeMap<String, BTreeSet<String>> {
        let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let would_do = |missing: &&Missing| {
            missing.absence != Absence::Version && (!missing.is_origin() || missing.place.is_none())
        };
        let missing = self.selecting.missing.iter().filter(|missing| missing.side == side);
        for missing in missing.filter(would_do) {
            let resources = groups.entry(missing.group.clone()).or_default();
            resources.insert(missing.resource.clone());
        }
        for (group, _) in self.unknown(side).into_iter().filter(|_| side == Side::Edge) {
            groups.entry(group).or_default();
        }
        groups.remove("");
        groups
    }

    /// Types that a side seems to lack, where much follows from that: those that are only retained, since their copies
    /// are deleted with their origins and the types are forgotten with their copies; and those of origins at the edge,
    /// selected or not. A core type is never one of them: a server that works always has the core group.
    fn to_confirm(&self, side: Side) -> Lacking {
        let missing = self.selecting.missing.iter();
        let missing = missing
            .filter(|missing| missing.side == side && !missing.group.is_empty())
            .filter(|missing| missing.place.is_none() || missing.is_origin() && side == Side::Edge);
        let mut lacking = Lacking::new();
        for missing in missing {
            let known = lacking.entry((missing.group.clone(), missing.resource.clone()));
            let known = known.or_insert(missing.absence);
            // What is wanted at either scope is lacking only if it is not served at all.
            if known.scope() != missing.absence.scope() {
                *known = Absence::Side;
            }
        }
        lacking
    }

    /// Kinds of configs of which only the side's answer to a list says that it lacks them.
    fn unverified_config_kinds(&self, side: Side) -> Vec<ConfigKind> {
        let unverified = self.selecting.unverified();
        unverified.filter(|_| side == Side::Hub).collect()
    }

    pub(super) fn on_discovered(&mut self, side: Side, answers: Answers) {
        for kind in self.unverified_config_kinds(side) {
            if answers.lacking.contains(&group_and_resource(kind)) {
                self.config_kind_is_lacking(kind);
            }
        }
        let before = Rc::clone(&self.sides.asking(side).discovery);
        let timer = Timer::Discovery(side);
        self.timers.ends(timer);
        let lacked_before = (self.selecting.gone.clone(), self.selecting.without_copies.clone());
        self.take_in_served(side, answers.served);
        self.count_gone(side, &answers.lacking);
        self.note_without_copies(side, &answers.lacking);
        match answers.groups {
            Some(Ok(groups)) => {
                self.report.works(&list_of_groups(side));
                self.discovery_mut(side).groups = Some(groups);
            }
            Some(Err(error)) if !error.is_unreachable() => {
                self.fails(list_of_groups(side), "asking", &error);
            }
            _ => {}
        }
        match answers.catalogue {
            Some(Err(error)) if error.is_unreachable() => {}
            // A side that does not say it has no other words to say what is meant.
            Some(answer) => self.discovery_mut(side).catalogue = Some(answer.unwrap_or_default()),
            None => {}
        }
        let is_new = self.sides.asking(side).discovery != before;
        if is_new {
            self.timers.succeeds(timer);
        }
        let (gone, without_copies) = &lacked_before;
        if is_new || *gone != self.selecting.gone || *without_copies != self.selecting.without_copies {
            self.replan();
        }
        let unknown = self.has_unknown(side);
        let missing = self.misses_anything(side);
        let more = self.may_have_more(side);
        let confirming = self
            .selecting
            .gone
            .iter()
            .any(|(known, &(rounds, _))| known.direction.origin() == side && rounds < SELECTED_GONE_ROUNDS);
        if confirming {
            self.timers.succeeds(timer);
            self.timers.has_failed(timer, PATIENCE - 1);
        }
        if (unknown || missing || more) && !self.timers.is_set(timer) {
            self.timers.retry(timer, self.now, self.chance.f64());
        }
    }

    /// What a side has answered for group versions.
    fn take_in_served(&mut self, side: Side, served: Vec<(GroupVersion, Result<Served, Error>)>) {
        let answered = served
            .iter()
            .any(|(_, answer)| !matches!(answer, Err(error) if error.is_unreachable()));
        for (group_version, answer) in served {
            let (group, version) = &group_version;
            let subject = discovery_of(side, group, version);
            match answer {
                Ok(resources) => {
                    self.report.works(&subject);
                    self.sides.asking(side).refused.remove(&group_version);
                    self.discovery_mut(side).known.insert(group_version, resources);
                }
                // One aggregated API that is down is not the whole side.
                Err(error) if error.is_unreachable() && !answered => {
                    self.side_is_silent(side, "asking", &error);
                }
                Err(error) => {
                    self.fails(subject, "asking", &error);
                    self.sides.asking(side).refused.insert(group_version);
                }
            }
        }
    }

    /// What nothing needs any more is not asked for again, and no longer counts as failing.
    pub(super) fn drop_needless_questions(&mut self) {
        if self.report.failing() == 0 {
            return;
        }
        for &side in &*self.sides.ids() {
            let ((needed, of_groups), open) = (self.questions(side), self.open_groups(side));
            if !of_groups {
                self.report.clear(&list_of_groups(side));
            }
            let refused = std::mem::take(&mut self.sides.asking(side).refused);
            let (kept, forgotten): (BTreeSet<_>, BTreeSet<_>) = refused
                .into_iter()
                .partition(|known| needed.contains(known) || open.contains(&known.0));
            self.sides.asking(side).refused = kept;
            for (group, version) in forgotten {
                self.report.clear(&discovery_of(side, &group, &version));
            }
        }
    }

    fn discovery_mut(&mut self, side: Side) -> &mut Discovery {
        Rc::make_mut(&mut self.sides.asking(side).discovery)
    }

    pub(super) fn has_unknown(&self, side: Side) -> bool {
        let mut unknown = self.selecting.unknown.group_versions.iter();
        unknown.any(|(of_side, _)| *of_side == side)
            || self.selecting.unknown.groups.contains(&side)
            || side == Side::Edge && self.selecting.unknown.catalogue
    }

    /// Types of which a side has confirmed that it lacks the copies, so that there are none. A type that it merely does
    /// not serve at the moment keeps its objects as long as its CRD is there.
    fn note_without_copies(&mut self, side: Side, lacking: &BTreeSet<(String, String)>) {
        let copies = |known: &SyncedType| (known.group.clone(), known.resource.clone());
        let saved = self.record.saved.iter().flatten();
        let lacking = saved.filter(|known| known.direction.copy() == side && lacking.contains(&copies(known)));
        let lacking = lacking.filter(|known| !self.may_have_crd(side, &known.group, &known.resource));
        let lacking: Vec<_> = lacking.cloned().collect();
        let without_copies = &mut self.selecting.without_copies;
        without_copies.retain(|known| known.direction.copy() != side);
        without_copies.extend(lacking);
    }

    /// True if there may be copies of a type that was synced once, of which at least the CRD is left at their side if it
    /// does not serve it just now.
    pub(super) fn may_have_copies(&self, known: &SyncedType) -> bool {
        let side = known.direction.copy();
        self.sides.discovery(side).serves(&known.group, &known.resource)
            || self.may_have_crd(side, &known.group, &known.resource)
    }

    /// Counts how often in a row a side has confirmed that it lacks the origins of a type. One that it merely does not
    /// serve at the moment keeps its objects as long as its CRD is there; one of another scope is another type.
    fn count_gone(&mut self, side: Side, lacking: &BTreeSet<(String, String)>) {
        let origins = |known: &SyncedType| (known.origin().0.to_owned(), known.origin().1.to_owned());
        let saved = self.record.saved.iter().flatten();
        let lacking = saved.filter(|known| known.direction.origin() == side && lacking.contains(&origins(known)));
        let is_hidden = |known: &SyncedType| {
            let (group, resource) = known.origin();
            self.may_have_crd(side, group, resource) && !self.sides.discovery(side).serves(group, resource)
        };
        let lacking: BTreeSet<SyncedType> = lacking.filter(|known| !is_hidden(known)).cloned().collect();
        let gone = &mut self.selecting.gone;
        gone.retain(|known, _| known.direction.origin() != side || lacking.contains(known));
        let now = self.now;
        for known in lacking {
            let (rounds, counted) = gone.entry(known).or_insert((1, now));
            if now.duration_since(*counted) >= GONE_ROUND && *rounds < SELECTED_GONE_ROUNDS {
                (*rounds, *counted) = (*rounds + 1, now);
            }
        }
    }

    /// The plan has changed: asks at once for what it needs to know, and watches for what is missing.
    pub(super) fn ask_for_what_is_unknown(&mut self, side: Side) {
        self.watch_crds_while_missing(side);
        let unknown = self.has_unknown(side);
        let missing = self.misses_anything(side) || self.may_have_more(side);
        let timer = Timer::Discovery(side);
        if unknown {
            self.timers.set_if_idle(timer, self.now);
        } else if missing && !self.timers.is_set(timer) && !self.timers.is_running(timer) {
            // It may have appeared since this side was asked, and before its CRDs are watched.
            self.timers.has_failed(timer, PATIENCE - 1);
            self.timers.retry(timer, self.now, self.chance.f64());
        }
    }

    /// A type is not served any more: what was known of its group version is void.
    pub(super) fn void_discovery_of(&mut self, side: Side, resource: &ResourceType) {
        self.selecting.turns.drop_resolved();
        let group_version = (resource.group.clone(), resource.version.clone());
        self.discovery_mut(side).known.remove(&group_version);
        self.ask_again_soon(side);
        self.selecting.unknown.group_versions.insert((side, group_version));
    }

    /// Nothing puzzles.
    pub(super) fn drop_catalogue(&mut self) {
        if self.sides.discovery(Side::Edge).catalogue.is_some() {
            self.discovery_mut(Side::Edge).catalogue = None;
        }
    }

    /// The types of the edge have changed: what may be meant by words that puzzle is sought again.
    pub(super) fn void_catalogue(&mut self, side: Side) {
        if self.sides.discovery(side).catalogue.is_some() {
            self.selecting.turns.drop_resolved();
            self.discovery_mut(side).catalogue = None;
            self.selecting.unknown.catalogue = true;
        }
    }

    /// It was another cluster that said what this side lacks.
    pub(super) fn reset_gone_types(&mut self, side: Side) {
        self.selecting.gone.retain(|known, _| known.direction.origin() != side);
        self.ask_again_soon(side);
    }

    /// A source was answered that its type is not served.
    pub(super) fn type_vanished(&mut self, id: SourceId, side: Side) {
        if let Some(resource) = self.sources.get(&id).map(|source| source.reading.resource.clone()) {
            self.void_discovery_of(side, &resource);
        }
    }
}

fn group_and_resource(kind: ConfigKind) -> (String, String) {
    let ResourceType { group, resource, .. } = kind.resource_type();
    (group, resource)
}

fn discovery_of(side: Side, group: &str, version: &str) -> Subject {
    Subject::Thing(side, Topic::Discovery, format!("{group}/{version}"))
}

fn list_of_groups(side: Side) -> Subject {
    Subject::Thing(side, Topic::Discovery, String::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_gone_only_when_its_side_has_said_so_several_times() {
        for (rounds, selected, expected) in [(2, false, false), (3, false, true), (9, true, false), (10, true, true)] {
            assert_eq!(is_gone(rounds, selected), expected, "{rounds} {selected}");
        }
    }
}
