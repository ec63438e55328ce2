//! Logging what in the configs cannot be followed: what is new in it, and what is not a problem any more, in a few
//! lines for each config, however much there is.

use std::collections::{BTreeMap, BTreeSet};

use driver::few::Few;
use kube_lite::discovery::{Discovery, ServedResource};
use kube_lite::logging::{Maybe, log_line};
use kube_lite::may_be_a_crd;

use super::Model;
use crate::plan::{Absence, ConfigPlace, Direction, Missing, Plan, Problem, Unknown};
use crate::side::Side;

/// Lines about one config. Of the rest, only the number is logged.
const LINES: usize = 5;

impl Model {
    /// Logs what cannot be followed and is new, and what is not a problem any more.
    pub(super) fn report_plan(&mut self, plan: &Plan) {
        self.report_problems(plan);
        self.report_missing(plan);
    }

    fn report_problems(&mut self, plan: &Plan) {
        let unreadable = self.selecting.unreadable.values();
        let mut problems: BTreeSet<_> = plan.problems.iter().chain(unreadable).cloned().collect();
        let known = &self.selecting.problems;
        // What a side has to be asked for again is still a problem until it has answered.
        if !known.is_empty() && !plan.unknown.group_versions.is_empty() {
            let entries = self.selecting.wanted.entries.iter();
            let unsure = entries.filter(|entry| plan.unknown.has_group(entry.types.group()));
            let unsure: BTreeSet<&ConfigPlace> = unsure.map(|entry| &entry.place).collect();
            problems.extend(known.iter().filter(|known| unsure.contains(&known.place)).cloned());
        }
        log_each(
            problems.difference(known).map(|problem| (&problem.place, problem)),
            |place, problem| {
                log_line!(
                    Warn,
                    ConfigInvalid,
                    "a part of a config cannot be followed",
                    config = place.config,
                    field = format_args!("spec.{}", place.field),
                    error = problem.message
                );
            },
            |config, more| {
                log_line!(
                    Warn,
                    ConfigInvalid,
                    "more parts of a config cannot be followed",
                    config = config,
                    more = more
                );
            },
        );
        log_each(
            known.difference(&problems).map(|problem| (&problem.place, problem)),
            |place, problem: &Problem| {
                log_line!(
                    Info,
                    ConfigCorrected,
                    "no longer a problem",
                    config = place.config,
                    field = format_args!("spec.{}", place.field),
                    was = problem.message
                );
            },
            |config, more| {
                log_line!(
                    Info,
                    ConfigCorrected,
                    "no longer a problem",
                    config = config,
                    more = more
                );
            },
        );
        self.selecting.problems = problems;
        self.selecting.denied.clone_from(&plan.denied_places);
        for (resource, why) in &plan.denied {
            self.report.denied(resource, why);
        }
    }

    fn report_missing(&mut self, plan: &Plan) {
        let known = self.selecting.missing.iter().chain(&self.selecting.unsure);
        let known = by_key(known.filter(|missing| missing.is_reported()));
        let now = by_key(plan.missing.iter().filter(|missing| missing.is_reported()));
        log_each(
            now.iter()
                .filter(|(key, _)| !known.contains_key(*key))
                .filter_map(|(_, missing)| placed(missing)),
            log_missing,
            |config, more| {
                log_line!(
                    Warn,
                    TypeNotServed,
                    "more selected types are not served; each is synced as soon as it appears",
                    config = config,
                    more = more
                );
            },
        );
        let over: Vec<_> = known.iter().filter(|(key, _)| !now.contains_key(*key)).collect();
        let all = if over.is_empty() {
            BTreeMap::new()
        } else {
            by_key(plan.missing.iter())
        };
        let (hub, edge) = self.sides.discoveries();
        let sides = (&SideKinds::of(hub), &SideKinds::of(edge));
        let mut became: Few<Became, Vec<&Missing>> = Few::default();
        for (key, missing) in over {
            let of = what_became_of(missing, all.get(key).map(|now| now.absence), &plan.unknown, sides);
            became.or_default(of).push(missing);
        }
        let [served, deselected, unsure] =
            [Became::Served, Became::Deselected, Became::Unsure].map(|of| became.remove(of).unwrap_or_default());
        log_served(served);
        log_deselected(deselected);
        self.selecting.unsure = unsure.into_iter().cloned().collect();
        self.selecting.missing.clone_from(&plan.missing);
    }
}

/// What distinguishes one missing resource from another.
type Key<'a> = (Side, Direction, &'a str, &'a str, &'a str, Option<&'a str>);

fn by_key<'a>(missing: impl Iterator<Item = &'a Missing>) -> BTreeMap<Key<'a>, &'a Missing> {
    missing.map(|missing| (missing.key(), missing)).collect()
}

fn placed(missing: &Missing) -> Option<(&ConfigPlace, &Missing)> {
    missing.place.as_ref().map(|place| (place, missing))
}

/// Logs that something is missing: at both sides, if no side is named.
fn log_missing(ConfigPlace { config, field }: &ConfigPlace, missing: &Missing) {
    let of_crd = (may_be_a_crd(&missing.group) && missing.resource != "*")
        .then(|| "install its CRD there; if that is there, its conditions say why it is not served".to_owned());
    let meant = missing
        .meant
        .as_ref()
        .filter(|meant| !meant.is_empty())
        .map(|meant| format!("did you mean {meant}?"));
    log_line!(
        Warn,
        TypeNotServed,
        "a selected type is not served; it is synced as soon as it appears",
        side = missing.lacked_by(),
        resource = missing.resource,
        group = missing.group,
        version = missing.version,
        config = config,
        field = format_args!("spec.{field}"),
        advice = Maybe(meant.or(of_crd))
    );
}

/// Logs what is served that was missing.
fn log_served(served: Vec<&Missing>) {
    log_each(
        served.into_iter().filter_map(placed),
        |_, missing| {
            log_line!(
                Info,
                TypeServed,
                "a selected type is served now; it is synced",
                side = missing.side.word(),
                resource = missing.resource,
                group = missing.group,
                version = missing.version
            );
        },
        |config, more| {
            log_line!(
                Info,
                TypeServed,
                "further selected types are served now; they are synced",
                config = config,
                more = more
            );
        },
    );
}

/// Logs how much of what is not served is selected no longer.
fn log_deselected(deselected: Vec<&Missing>) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, _) in deselected.into_iter().filter_map(placed) {
        *counts.entry(&place.config).or_default() += 1;
    }
    for (config, count) in counts {
        log_line!(
            Info,
            TypeDeselected,
            "a config no longer selects what is not served",
            config = config,
            resources = count
        );
    }
}

/// What has become of something that was missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Became {
    /// It is served, or another version of it is used now.
    Served,
    /// No config of that name asks for it any more.
    Deselected,
    /// Its side has to be asked again.
    Unsure,
    /// It is missing in another way, which is logged as that.
    Otherwise,
}

/// What has become of something that was missing; `now` says how it is missing now, if it is.
fn what_became_of(
    missing: &Missing,
    now: Option<Absence>,
    unknown: &Unknown,
    (hub, edge): (&SideKinds<'_>, &SideKinds<'_>),
) -> Became {
    let (here, there) = match missing.side {
        Side::Hub => (hub, edge),
        Side::Edge => (edge, hub),
    };
    match now {
        Some(Absence::Version) => Became::Served,
        Some(_) => Became::Otherwise,
        None if unknown.concerns(missing) => Became::Unsure,
        None if serves(here, missing) => Became::Served,
        None if missing.absence == Absence::Everywhere && serves(there, missing) => Became::Otherwise,
        None => Became::Deselected,
    }
}

/// A side with the kinds that it serves, by group and version: there may be thousands of them, and of what was missing.
struct SideKinds<'a> {
    discovery: &'a Discovery,
    kinds: BTreeSet<(&'a str, &'a str, &'a str)>,
}

impl<'a> SideKinds<'a> {
    fn of(discovery: &'a Discovery) -> Self {
        let served = discovery.known.keys();
        let served = served.flat_map(|(group, version)| discovery.resources(group, version));
        let kinds =
            served.map(|ServedResource { resource, .. }| (&*resource.group, &*resource.version, &*resource.kind));
        Self {
            discovery,
            kinds: kinds.collect(),
        }
    }
}

/// True if a side is known to serve what was missing.
fn serves(SideKinds { discovery: side, kinds }: &SideKinds<'_>, missing: &Missing) -> bool {
    let Missing {
        group,
        version,
        resource,
        ..
    } = missing;
    match (&**version, &**resource) {
        ("", "*") => side.versions(group).is_some_and(|versions| !versions.is_empty()),
        (version, "*") => side.resources(group, version).next().is_some(),
        ("", resource) => side.serves(group, resource),
        (version, name) => kinds.contains(&(&**group, version, name)) || side.find(group, version, name).is_some(),
    }
}

/// Writes the first lines of each config, and passes the number of those that have no line.
pub(super) fn log_each<'a, T>(
    news: impl Iterator<Item = (&'a ConfigPlace, T)>,
    mut line: impl FnMut(&ConfigPlace, T),
    mut sum: impl FnMut(&str, usize),
) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, item) in news {
        let count = counts.entry(&place.config).or_default();
        *count += 1;
        if *count <= LINES {
            line(place, item);
        }
    }
    for (config, count) in counts {
        if count > LINES {
            sum(config, count - LINES);
        }
    }
}

#[cfg(test)]
mod tests {
    use kube_lite::ResourceType;
    use kube_lite::discovery::Served;

    use super::*;

    /// A side that serves gauges at `v1` of `g`, and lacks all else.
    fn side() -> Discovery {
        let gauges = ServedResource::ordinary(ResourceType {
            group: "g".into(),
            version: "v1".into(),
            resource: "gauges".into(),
            kind: "Gauge".into(),
            namespaced: true,
        });
        let gauges = Served::Resources([("gauges".to_owned(), gauges)].into());
        Discovery {
            known: [(("g".into(), "v1".into()), gauges)].into(),
            groups: Some([("g".to_owned(), vec!["v1".to_owned()])].into()),
            ..Discovery::default()
        }
    }

    fn missing(version: &str, resource: &str, absence: Absence) -> Missing {
        Missing {
            side: Side::Hub,
            direction: Direction::Down,
            group: "g".into(),
            version: version.into(),
            resource: resource.into(),
            place: Some(ConfigPlace {
                config: "SyncerConfig//c".into(),
                field: "clusterScope[0]".into(),
            }),
            absence,
            meant: None,
        }
    }

    #[test]
    fn what_has_appeared_is_known_from_what_was_deselected_and_from_what_is_not_known() {
        use Became::{Deselected, Otherwise, Served, Unsure};
        const ONE: Absence = Absence::Side;
        const ALL: Absence = Absence::Everywhere;
        let (has, not) = (&side(), &Discovery::default());
        let mut asking = Unknown::default();
        asking.group_versions.insert((Side::Hub, ("g".into(), "v1".into())));
        let (none, asking) = (&Unknown::default(), &asking);
        for (version, resource, absence, now, unknown, sides, expected) in [
            ("v1", "gauges", ONE, None, none, (has, not), Served),
            ("v1", "Gauge", ALL, None, none, (has, not), Served),
            ("v1", "*", ONE, None, none, (has, not), Served),
            ("", "*", ONE, None, none, (has, not), Served),
            ("", "gauges", ONE, None, none, (has, not), Served),
            ("v1", "gauges", ONE, Some(Absence::Version), none, (not, not), Served),
            ("v1", "gauge", ALL, None, none, (has, has), Deselected),
            ("v1", "gauges", ONE, None, none, (not, has), Deselected),
            ("", "*", ONE, None, none, (not, not), Deselected),
            ("v1", "Gauge", ALL, None, none, (not, has), Otherwise),
            ("v1", "gauges", ONE, Some(ALL), none, (not, not), Otherwise),
            ("v1", "gauges", ONE, None, asking, (not, has), Unsure),
            ("", "gauges", ONE, None, asking, (not, has), Unsure),
            ("v2", "gauges", ONE, None, asking, (not, has), Deselected),
        ] {
            let known = missing(version, resource, absence);
            let (hub, edge): (&Discovery, &Discovery) = sides;
            let became = what_became_of(&known, now, unknown, (&SideKinds::of(hub), &SideKinds::of(edge)));
            assert_eq!(became, expected, "{known:?} {now:?}");
        }
    }

    #[test]
    fn the_line_says_which_side_lacks_it() {
        for (absence, expected) in [(Absence::Side, "hub"), (Absence::Everywhere, "hub,edge")] {
            assert_eq!(missing("v1", "gauges", absence).lacked_by(), expected);
        }
    }

    #[test]
    fn a_config_has_few_lines_however_much_is_wrong_in_it() {
        let place = |config: &str, index: usize| ConfigPlace {
            config: config.into(),
            field: format!("upsync[{index}]"),
        };
        let mut places: Vec<ConfigPlace> = (0..12_000).map(|index| place("many", index)).collect();
        places.push(place("one", 0));
        places.extend((0..LINES).map(|index| place("few", index)));
        let (mut lines, mut sums) = (Vec::new(), Vec::new());
        log_each(
            places.iter().map(|place| (place, ())),
            |place, ()| lines.push(place.config.to_string()),
            |config, more| sums.push(format!("{config} {more}")),
        );
        let of = |config: &str| lines.iter().filter(|line| *line == config).count();
        assert_eq!([of("many"), of("one"), of("few")], [LINES, 1, LINES]);
        assert_eq!(sums, [format!("many {}", 12_000 - LINES)]);
    }
}
