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
