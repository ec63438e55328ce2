//! Asking each side what it serves: once for what the plan needs, and again while something is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::Instant;

use super::definitions::Definitions;
use super::{Engine, TaskEnd};
use crate::cluster::discovery::{self, Discovery, GroupVersion, Served};
use crate::cluster::{Cluster, Error, ResourceType, Side};
use crate::plan::{Absence, Missing, SyncedType};
use crate::queue::back_off;
use crate::report::Subject;
use crate::source::SourceId;

/// Between a sign that a missing type may be there and asking for it: one CRD causes several events as it comes up.
const SETTLE: Duration = Duration::from_millis(100);
/// Failures that the wait between two looks for a missing type starts from: about 6 s, growing to 5 minutes.
const PATIENCE: u32 = 4;
/// How often in a row the side of the origins must say that it does not serve a type before their copies go. With the
/// waits in between this takes about a quarter of a minute, in which a hub that starts has all of its APIs.
const GONE_ROUNDS: u32 = 3;
/// The same for a type that is still selected, which only upsync takes for gone: an edge that starts on a slow board may
/// serve its CRDs late. With the waits in between this takes about a minute.
const SELECTED_GONE_ROUNDS: u32 = 10;
/// What is said sooner after the last time does not count: each watch of the type that ends is a reason to ask at once.
const GONE_ROUND: Duration = Duration::from_secs(3);

/// True if a side has said often enough that it lacks the origins of a type.
pub(super) fn is_gone(rounds: u32, selected: bool) -> bool {
    rounds >= if selected { SELECTED_GONE_ROUNDS } else { GONE_ROUNDS }
}

/// What is known of one side, and when to ask it more.
#[derive(Default)]
pub(super) struct Asking {
    pub(super) discovery: Discovery,
    under_way: bool,
    /// When to ask next for what is not known or missing.
    due: Option<Instant>,
    /// Those of which the side has answered with an error last.
    refused: BTreeSet<GroupVersion>,
    /// Asked in vain since something was learnt.
    failures: u32,
    /// CRDs, which are read while something is missing.
    pub(super) definitions: Option<Definitions>,
}

impl Asking {
    pub(super) fn due(&self) -> Option<Instant> {
        self.due.filter(|_| !self.under_way)
    }

    /// Something has changed that may make a missing type appear.
    pub(super) fn ask_again_soon(&mut self) {
        self.failures = 0;
        self.due = Some(Instant::now() + SETTLE);
    }

    /// Something may have appeared that asking has not shown yet.
    pub(super) fn ask_soon_unless_due(&mut self) {
        if self.due.is_none() && !self.under_way {
            self.due = Some(Instant::now() + SETTLE);
        }
    }

    fn ask_later(&mut self) {
        self.failures = (self.failures + 1).min(30);
        self.due = Some(Instant::now() + back_off(self.failures, fastrand::f64()));
    }
}

/// What asking a side gave.
pub(super) struct Answers {
    served: Vec<(GroupVersion, Result<Served, Error>)>,
    /// The groups of the side, if they were asked for.
    groups: Option<Result<Groups, Error>>,
    /// Types, by group and plural, that the side has positively said to lack at every version.
    lacking: BTreeSet<(String, String)>,
}

/// The versions of each named group.
type Groups = BTreeMap<String, Vec<String>>;

impl Engine {
    /// What a side has not answered for yet.
    fn unknown(&self, side: Side) -> BTreeSet<GroupVersion> {
        let unknown = self.selecting.unknown.group_versions.iter();
        unknown
            .filter(|(of_side, _)| *of_side == side)
            .map(|(_, group_version)| group_version.clone())
            .collect()
    }

    /// What a side is known to miss: where no version is given, it may come at any version of the group.
    fn missing(&self, side: Side) -> BTreeSet<GroupVersion> {
        let discovery = self.discovery(side);
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

    /// What is to be asked of a side: what is not known, what is missing, and what `*` may have got since.
    fn questions(&self, side: Side) -> (BTreeSet<GroupVersion>, bool) {
        let questions = self.unknown(side).union(&self.missing(side)).cloned().collect();
        let are_known = self.discovery(side).groups.is_some();
        let of_groups = self.selecting.unknown.groups.contains(&side)
            || side == Side::Edge && !self.selecting.open.is_empty()
            || self.misses_anything(side) && are_known;
        (questions, of_groups)
    }

    /// Asks each side what it serves, where that is due.
    pub(super) fn ask_what_is_due(&mut self) {
        for side in [Side::Hub, Side::Edge] {
            if self.asking(side).due().is_none_or(|due| due > Instant::now()) {
                continue;
            }
            let (mut questions, of_groups) = self.questions(side);
            self.asking(side).due = None;
            if questions.is_empty() && !of_groups {
                continue;
            }
            self.asking(side).under_way = true;
            let confirm = self.to_confirm(side);
            let open = self.open_groups(side);
            // Whether it is there at another version.
            let elsewhere = self.missing_at_one_version(side);
            let cluster = std::rc::Rc::clone(self.cluster(side));
            let ask = async move {
                let groups = if of_groups {
                    Some(discovery::groups(&cluster).await)
                } else {
                    None
                };
                if let Some(Ok(groups)) = &groups {
                    questions.extend(versions_of(groups, &open));
                }
                let mut answers = Vec::new();
                for question in questions {
                    let answer = discovery::discover(&cluster, &question).await;
                    answers.push((question, answer));
                }
                ask_other_versions(&cluster, &elsewhere, &mut answers).await;
                let lacking = confirm_lacking(&cluster, confirm).await;
                let answers = Answers {
                    served: answers,
                    groups,
                    lacking,
                };
                TaskEnd::Discovered(side, answers)
            };
            self.tasks.push(ask.boxed_local());
        }
    }

    /// Groups of which everything is selected.
    pub(super) fn open_groups(&self, side: Side) -> BTreeSet<String> {
        let open = self.selecting.open.iter().filter(|(of_side, _)| *of_side == side);
        open.map(|(_, group)| group.clone()).collect()
    }

    /// Groups in which a side misses a type that would do at another version: what copies are to be made of, and what is
    /// only retained.
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

    /// Types that a side is thought to lack, where much follows from it: what is only retained, since its copies go with
    /// its origins, and it is forgotten with its copies; and origins at the edge, selected or not. A core type never is:
    /// the core group cannot go from a server that works.
    fn to_confirm(&self, side: Side) -> BTreeSet<(String, String)> {
        let missing = self.selecting.missing.iter();
        missing
            .filter(|missing| missing.side == side && !missing.group.is_empty())
            .filter(|missing| missing.place.is_none() || missing.is_origin() && side == Side::Edge)
            .map(|missing| (missing.group.clone(), missing.resource.clone()))
            .collect()
    }

    pub(super) fn discovered(&mut self, side: Side, answers: Answers) {
        let before = self.asking(side).discovery.clone();
        self.asking(side).under_way = false;
        let lacked_before = (self.selecting.gone.clone(), self.selecting.without_copies.clone());
        self.count_gone(side, &answers.lacking);
        self.note_without_copies(side, &answers.lacking);
        self.learn(side, answers.served);
        match answers.groups {
            Some(Ok(groups)) => {
                self.report.works(&list_of_groups(side));
                self.asking(side).discovery.groups = Some(groups);
            }
            Some(Err(error)) if !error.is_unreachable() => {
                self.fails(list_of_groups(side), "asking", &error);
            }
            _ => {}
        }
        let learnt = self.asking(side).discovery != before;
        if learnt {
            self.asking(side).failures = 0;
        }
        let (gone, without_copies) = &lacked_before;
        if learnt || *gone != self.selecting.gone || *without_copies != self.selecting.without_copies {
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
        let asking = self.asking(side);
        if confirming {
            asking.failures = 0;
        }
        if (unknown || missing || more) && asking.due.is_none() {
            if !unknown {
                asking.failures = asking.failures.max(PATIENCE - 1);
            }
            asking.ask_later();
        }
    }

    /// What a side has answered for group versions.
    fn learn(&mut self, side: Side, served: Vec<(GroupVersion, Result<Served, Error>)>) {
        let answered = served
            .iter()
            .any(|(_, answer)| !matches!(answer, Err(error) if error.is_unreachable()));
        for (group_version, answer) in served {
            let (group, version) = &group_version;
            let subject = discovery_of(side, group, version);
            match answer {
                Ok(resources) => {
                    self.report.works(&subject);
                    self.asking(side).refused.remove(&group_version);
                    self.asking(side).discovery.known.insert(group_version, resources);
                }
                // One aggregated API that is down is not the whole side.
                Err(error) if error.is_unreachable() && !answered => {
                    self.side_is_silent(side, "asking", &error);
                }
                Err(error) => {
                    self.fails(subject, "asking", &error);
                    self.asking(side).refused.insert(group_version);
                }
            }
        }
    }

    /// What nothing needs any more is not asked for again, and fails no longer.
    pub(super) fn forget_questions(&mut self) {
        if self.report.failing() == 0 {
            return;
        }
        for side in [Side::Hub, Side::Edge] {
            let ((needed, of_groups), open) = (self.questions(side), self.open_groups(side));
            if !of_groups {
                self.report.forget(&list_of_groups(side));
            }
            let refused = std::mem::take(&mut self.asking(side).refused);
            let (kept, forgotten): (BTreeSet<_>, BTreeSet<_>) = refused
                .into_iter()
                .partition(|known| needed.contains(known) || open.contains(&known.0));
            self.asking(side).refused = kept;
            for (group, version) in forgotten {
                self.report.forget(&discovery_of(side, &group, &version));
            }
        }
    }

    fn has_unknown(&self, side: Side) -> bool {
        !self.unknown(side).is_empty() || self.selecting.unknown.groups.contains(&side)
    }

    /// Types of which a side has confirmed that it lacks the copies, so that there are none.
    fn note_without_copies(&mut self, side: Side, lacking: &BTreeSet<(String, String)>) {
        let copies = |known: &SyncedType| (known.group.clone(), known.resource.clone());
        let saved = self.record.saved.iter().flatten();
        let lacking = saved.filter(|known| known.direction.copy() == side && lacking.contains(&copies(known)));
        let lacking: Vec<_> = lacking.cloned().collect();
        let without_copies = &mut self.selecting.without_copies;
        without_copies.retain(|known| known.direction.copy() != side);
        without_copies.extend(lacking);
    }

    /// Counts how often in a row a side has confirmed that it lacks the origins of a type.
    fn count_gone(&mut self, side: Side, lacking: &BTreeSet<(String, String)>) {
        let origins = |known: &SyncedType| (known.origin().0.to_owned(), known.origin().1.to_owned());
        let saved = self.record.saved.iter().flatten();
        let lacking = saved.filter(|known| known.direction.origin() == side && lacking.contains(&origins(known)));
        let lacking: BTreeSet<SyncedType> = lacking.cloned().collect();
        let gone = &mut self.selecting.gone;
        gone.retain(|known, _| known.direction.origin() != side || lacking.contains(known));
        let now = Instant::now();
        for known in lacking {
            let (rounds, counted) = gone.entry(known).or_insert((1, now));
            if now.duration_since(*counted) >= GONE_ROUND && *rounds < SELECTED_GONE_ROUNDS {
                (*rounds, *counted) = (*rounds + 1, now);
            }
        }
    }

    /// The plan has changed: asks at once for what it needs to know, and listens for what it misses.
    pub(super) fn ask_for_what_is_unknown(&mut self, side: Side) {
        self.watch_definitions_while_missing(side);
        let unknown = self.has_unknown(side);
        let missing = self.misses_anything(side) || self.may_have_more(side);
        let asking = self.asking(side);
        if unknown {
            asking.due.get_or_insert_with(Instant::now);
        } else if missing && asking.due.is_none() && !asking.under_way {
            // It may have appeared since this side was asked, and before its CRDs are watched.
            asking.failures = asking.failures.max(PATIENCE - 1);
            asking.ask_later();
        }
    }

    /// A type that was served no longer is: what was known of its group version is void.
    pub(super) fn forget(&mut self, side: Side, resource: &ResourceType) {
        let group_version = (resource.group.clone(), resource.version.clone());
        let asking = self.asking(side);
        asking.discovery.known.remove(&group_version);
        asking.ask_again_soon();
        self.selecting.unknown.group_versions.insert((side, group_version));
    }

    /// What this side was said to lack was said by another cluster.
    pub(super) fn forget_what_is_gone(&mut self, side: Side) {
        self.selecting.gone.retain(|known, _| known.direction.origin() != side);
        self.asking(side).ask_again_soon();
    }

    /// A source was told that its type is not served.
    pub(super) fn type_vanished(&mut self, id: SourceId, side: Side) {
        if let Some(resource) = self.sources.get(&id).map(|source| source.reading.resource.clone()) {
            self.forget(side, &resource);
        }
    }
}

/// The versions of the groups of which everything is selected.
fn versions_of(groups: &Groups, open: &BTreeSet<String>) -> Vec<GroupVersion> {
    let open = open.iter().filter_map(|group| groups.get_key_value(group));
    open.flat_map(|(group, versions)| versions.iter().map(|version| (group.clone(), version.clone())))
        .collect()
}

/// For each of these groups whose asked version a side does not have, or has without these resources: what the other
/// versions of the group serve.
async fn ask_other_versions(
    cluster: &Cluster,
    groups: &BTreeMap<String, BTreeSet<String>>,
    answers: &mut Vec<(GroupVersion, Result<Served, Error>)>,
) {
    let lacks = |((group, _), answer): &&(GroupVersion, Result<Served, Error>)| match (groups.get(group), answer) {
        (Some(_), Ok(Served::NotServed)) => true,
        (Some(needed), Ok(Served::Resources(served))) => needed.iter().any(|resource| !served.contains_key(resource)),
        _ => false,
    };
    let lacking = answers.iter().filter(lacks);
    let lacking: BTreeSet<String> = lacking.map(|((group, _), _)| group.clone()).collect();
    if lacking.is_empty() {
        return;
    }
    let known = discovery::groups(cluster).await.unwrap_or_default();
    for group in lacking {
        for version in known.get(&group).into_iter().flatten() {
            let other = (group.clone(), version.clone());
            if !answers.iter().any(|(asked, _)| *asked == other) {
                let answer = discovery::discover(cluster, &other).await;
                answers.push((other, answer));
            }
        }
    }
}

/// Which of the types a side lacks, by what it does serve: it has listed its groups, and the type's is not among them, or
/// each of the group's versions has been read and lacks the type. A 404 alone may come from whatever stands before it.
pub(super) async fn confirm_lacking(
    cluster: &Cluster,
    types: BTreeSet<(String, String)>,
) -> BTreeSet<(String, String)> {
    if types.is_empty() {
        return types;
    }
    let Ok(groups) = discovery::groups(cluster).await else {
        return BTreeSet::new();
    };
    let mut lacking = BTreeSet::new();
    for (group, resource) in types {
        let mut lacks = true;
        for version in groups.get(&group).into_iter().flatten() {
            let served = discovery::discover(cluster, &(group.clone(), version.clone())).await;
            lacks &= matches!(served, Ok(Served::Resources(resources)) if !resources.contains_key(&resource));
        }
        if lacks {
            lacking.insert((group, resource));
        }
    }
    lacking
}

fn discovery_of(side: Side, group: &str, version: &str) -> Subject {
    Subject::Thing(side, format!("discovery of {group}/{version}"))
}

fn list_of_groups(side: Side) -> Subject {
    Subject::Thing(side, "the list of API groups".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Paths, RateLimit};

    #[test]
    fn a_type_is_gone_only_when_its_side_has_said_so_several_times() {
        for (rounds, selected, expected) in [(2, false, false), (3, false, true), (9, true, false), (10, true, true)] {
            assert_eq!(is_gone(rounds, selected), expected, "{rounds} {selected}");
        }
    }

    async fn lacks_gauges(paths: &[(&'static str, &'static str)]) -> bool {
        let server = Paths(paths.iter().copied().collect());
        let cluster = Cluster::new(Side::Hub, Box::new(server), RateLimit::new(None));
        let gauges = ("g".to_owned(), "gauges".to_owned());
        confirm_lacking(&cluster, BTreeSet::from([gauges.clone()]))
            .await
            .contains(&gauges)
    }

    #[tokio::test]
    async fn only_a_hub_that_lists_what_it_serves_can_lack_a_type() {
        const NONE: &str = r#"{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"version":"v1"}]}]}"#;
        const GROUP: &str =
            r#"{"kind":"APIGroupList","groups":[{"name":"g","versions":[{"version":"v2"},{"version":"v1"}]}]}"#;
        const OTHERS: &str = r#"{"kind":"APIResourceList","resources":[{"name":"others","kind":"Other"}]}"#;
        const GAUGES: &str = r#"{"kind":"APIResourceList","resources":[{"name":"gauges","kind":"Gauge"}]}"#;
        for (lacks, row, paths) in [
            (true, "the group is not listed", vec![("/apis", NONE)]),
            (
                true,
                "no version has it",
                vec![("/apis", GROUP), ("/apis/g/v1", OTHERS), ("/apis/g/v2", OTHERS)],
            ),
            (
                false,
                "another version has it",
                vec![("/apis", GROUP), ("/apis/g/v1", OTHERS), ("/apis/g/v2", GAUGES)],
            ),
            (
                false,
                "one version does not answer",
                vec![("/apis", GROUP), ("/apis/g/v1", OTHERS)],
            ),
            (false, "nothing but 404s, as from a proxy", vec![]),
            (
                false,
                "a page instead of groups",
                vec![("/apis", "<html>log in</html>")],
            ),
            (
                false,
                "some other object",
                vec![("/apis", r#"{"kind":"Status","groups":[]}"#)],
            ),
        ] {
            assert_eq!(lacks_gauges(&paths).await, lacks, "{row}");
        }
    }
}
