//! Telling people what in the configs cannot be followed: what is new in it, and what no longer stands in the way, in a few
//! lines for each config however much there is.

use std::collections::{BTreeMap, BTreeSet};

use super::Engine;
use crate::plan::{Missing, Place, Plan, Problem};

/// Lines about one config. What is beyond is told as a number.
const LINES: usize = 5;

impl Engine {
    /// Tells what is new in what cannot be followed, and what no longer stands in the way.
    pub(super) fn report_plan(&mut self, plan: &Plan) {
        let unreadable = self.selecting.unreadable.values();
        let problems: BTreeSet<_> = plan.problems.iter().chain(unreadable).cloned().collect();
        let known = &self.selecting.problems;
        tell(
            problems.difference(known).map(|problem| (&problem.place, problem)),
            |_, problem| log::warn!("a config cannot be followed here: {problem}"),
            |config, more| log::warn!("more of a config cannot be followed here config={config} more={more}"),
        );
        tell(
            known.difference(&problems).map(|problem| (&problem.place, problem)),
            |_, problem: &Problem| log::info!("no longer a problem: {problem}"),
            |config, more| log::info!("no longer a problem config={config} more={more}"),
        );
        self.selecting.problems = problems;
        let [known, missing] = [&self.selecting.missing, &plan.missing].map(|all| told(all));
        tell(
            missing.difference(&known).filter_map(|&missing| placed(missing)),
            |Place { config, field }, missing| {
                log::warn!(
                    "the {} does not serve a selected resource; it is synced as soon as it appears {missing} \
                     config={config} field=spec.{field}",
                    missing.side
                );
            },
            |config, more| {
                log::warn!(
                    "more selected resources are not served; each is synced as soon as it appears config={config} more={more}"
                );
            },
        );
        tell(
            known.difference(&missing).filter_map(|&missing| placed(missing)),
            |_, missing| log::info!("no longer missing at the {} {missing}", missing.side),
            |config, more| log::info!("no longer missing config={config} more={more}"),
        );
    }
}

/// What people are told of: not what another version is used for meanwhile.
fn told(missing: &[Missing]) -> BTreeSet<&Missing> {
    missing.iter().filter(|missing| !missing.is_elsewhere).collect()
}

fn placed(missing: &Missing) -> Option<(&Place, &Missing)> {
    missing.place.as_ref().map(|place| (place, missing))
}

/// Gives each config its first lines, and the number of those that it has no lines for.
fn tell<'a, T>(
    news: impl Iterator<Item = (&'a Place, T)>,
    mut line: impl FnMut(&Place, T),
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
    use super::*;

    #[test]
    fn a_config_has_few_lines_however_much_is_wrong_in_it() {
        let place = |config: &str, index: usize| Place {
            config: config.to_owned(),
            field: format!("upsync[{index}]"),
        };
        let mut places: Vec<Place> = (0..12_000).map(|index| place("many", index)).collect();
        places.push(place("one", 0));
        places.extend((0..LINES).map(|index| place("few", index)));
        let (mut lines, mut sums) = (Vec::new(), Vec::new());
        tell(
            places.iter().map(|place| (place, ())),
            |place, ()| lines.push(place.config.clone()),
            |config, more| sums.push(format!("{config} {more}")),
        );
        let of = |config: &str| lines.iter().filter(|line| *line == config).count();
        assert_eq!([of("many"), of("one"), of("few")], [LINES, 1, LINES]);
        assert_eq!(sums, [format!("many {}", 12_000 - LINES)]);
    }
}
