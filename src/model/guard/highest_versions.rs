//! The versions that the origins of each type are known to have reached.

use std::collections::BTreeMap;

use crate::plan::Direction;

/// The highest versions seen of the origins of each type, by direction and `resource.group`.
type Highest = BTreeMap<(Direction, String), u64>;

/// The versions that origins are known to have reached.
#[derive(Debug, Default)]
pub(in crate::model) struct HighestVersions {
    now: Highest,
    /// The same when their side was last known to be the right cluster: another one may have reported higher ones since.
    proved: Highest,
}

impl HighestVersions {
    /// Origins were seen at this version. True if that is higher than before.
    pub(in crate::model) fn is_at(&mut self, direction: Direction, resource: String, version: u64) -> bool {
        let known = self.now.entry((direction, resource)).or_default();
        let is_higher = version > *known;
        *known = version.max(*known);
        is_higher
    }

    /// An earlier run has proved that origins have reached this version.
    pub(in crate::model) fn was_at(&mut self, direction: Direction, resource: String, version: u64) {
        self.proved.insert((direction, resource.clone()), version);
        self.is_at(direction, resource, version);
    }

    pub(in crate::model) fn of(&self, direction: Direction, resource: &str) -> u64 {
        let key = (direction, resource.to_owned());
        self.now.get(&key).copied().unwrap_or_default()
    }

    /// The side of the origins is the right cluster.
    pub(in crate::model) fn prove(&mut self, direction: Direction) {
        copy_those_of(direction, &self.now, &mut self.proved);
    }

    /// What was seen since may have been another cluster's.
    pub(in crate::model) fn go_back_to_proved(&mut self, direction: Direction) {
        copy_those_of(direction, &self.proved, &mut self.now);
    }

    pub(in crate::model) fn clear(&mut self, direction: Direction) {
        self.now.retain(|(of, _), _| *of != direction);
        self.proved.retain(|(of, _), _| *of != direction);
    }

    /// Those of the hub, for the record; only the proved ones if another cluster answers.
    pub(in crate::model) fn of_hub(&self, proved: bool) -> BTreeMap<String, u64> {
        let versions = if proved { &self.proved } else { &self.now };
        let of_hub = versions
            .iter()
            .filter(|((direction, _), _)| *direction == Direction::Down);
        of_hub
            .map(|((_, resource), &version)| (resource.clone(), version))
            .collect()
    }
}

fn copy_those_of(direction: Direction, from: &Highest, to: &mut Highest) {
    to.retain(|(of, _), _| *of != direction);
    let those = from.iter().filter(|((of, _), _)| *of == direction);
    to.extend(those.map(|(key, &version)| (key.clone(), version)));
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [Direction; 2] = [Direction::Down, Direction::Up];

    /// Both directions have reached version 5 of the same type, which is proved, and then version 9.
    fn reached() -> HighestVersions {
        let mut versions = HighestVersions::default();
        for direction in BOTH {
            assert!(versions.is_at(direction, "x.g".into(), 5));
            versions.prove(direction);
            assert!(versions.is_at(direction, "x.g".into(), 9));
        }
        versions
    }

    #[test]
    fn only_a_higher_version_is_news() {
        let mut versions = reached();
        for (version, is_news, known) in [(8, false, 9), (9, false, 9), (10, true, 10)] {
            assert_eq!(
                versions.is_at(Direction::Down, "x.g".into(), version),
                is_news,
                "{version}"
            );
            assert_eq!(versions.of(Direction::Down, "x.g"), known, "{version}");
        }
        assert_eq!(versions.of(Direction::Down, "y.g"), 0);
    }

    #[test]
    fn what_another_cluster_may_have_reported_is_dropped_for_its_direction_alone() {
        let mut versions = reached();
        versions.go_back_to_proved(Direction::Down);
        assert_eq!(BOTH.map(|direction| versions.of(direction, "x.g")), [5, 9]);
        versions.go_back_to_proved(Direction::Up);
        assert_eq!(BOTH.map(|direction| versions.of(direction, "x.g")), [5, 5]);
    }

    #[test]
    fn a_side_that_begins_again_has_reached_nothing_and_the_other_all_that_it_had() {
        let mut versions = reached();
        versions.clear(Direction::Down);
        assert_eq!(BOTH.map(|direction| versions.of(direction, "x.g")), [0, 9]);
        versions.go_back_to_proved(Direction::Down);
        versions.go_back_to_proved(Direction::Up);
        assert_eq!(BOTH.map(|direction| versions.of(direction, "x.g")), [0, 5]);
    }

    #[test]
    fn the_record_gets_those_of_the_hub_and_what_it_says_is_proved() {
        let mut versions = reached();
        versions.was_at(Direction::Down, "y.g".into(), 7);
        let of = |known: [(&str, u64); 2]| known.map(|(resource, version)| (resource.to_owned(), version)).into();
        assert_eq!(versions.of_hub(false), of([("x.g", 9), ("y.g", 7)]));
        assert_eq!(versions.of_hub(true), of([("x.g", 5), ("y.g", 7)]));
    }
}
