//! What is worked on now, where, and since when.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::{AT_ONCE, one_less};
use crate::sides::{Key, Primary, Side};

/// What takes longer waits for a server, as one that hangs in one workspace: others do not wait for it.
const SLOW: Duration = Duration::from_secs(5);
/// How many of a workspace are worked on at most while one of them is slow.
const BESIDE_SLOW: usize = 4;
/// How many are worked on at most, with those that are slow.
const MOST: usize = 4 * AT_ONCE;

/// See the module's doc.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// With when each began.
    keys: BTreeMap<Key, Instant>,
    /// How many of them there are of each workspace, and at each shard.
    by_workspace: BTreeMap<Option<u32>, usize>,
    by_shard: BTreeMap<Side, usize>,
}

/// The workspace of a key, if it is of one.
fn workspace(key: &Key) -> Option<u32> {
    match key {
        Key::Object(primary) => Some(primary.workspace),
        Key::Published(_) | Key::Export | Key::Namespace(_) => None,
    }
}

fn is_slow(began: Instant, now: Instant) -> bool {
    now.saturating_duration_since(began) >= SLOW
}

impl Taken {
    /// How many more may begin.
    pub(super) fn free(&self, now: Instant) -> usize {
        let at_work = self.keys.values().filter(|began| !is_slow(**began, now)).count();
        let free = AT_ONCE.saturating_sub(at_work);
        free.min(MOST.saturating_sub(self.keys.len()))
    }

    /// When one that is at work will be slow, and others may begin.
    pub(super) fn next_slow(&self, now: Instant) -> Option<Instant> {
        let at_work = self.keys.values().filter(|began| !is_slow(**began, now));
        at_work.min().map(|began| *began + SLOW)
    }

    /// True if one of the workspace of a key is slow, and several are at work: no other one of it begins meanwhile.
    pub(super) fn is_held(&self, key: &Key, now: Instant) -> bool {
        let of = workspace(key).filter(|_| self.beside(key) >= BESIDE_SLOW);
        let mut slow = self.keys.iter().filter(|(_, began)| is_slow(**began, now));
        of.is_some() && slow.any(|(other, _)| workspace(other) == of)
    }

    /// How many of them are of the workspace of a key.
    pub(super) fn beside(&self, key: &Key) -> usize {
        self.by_workspace.get(&workspace(key)).copied().unwrap_or_default()
    }

    /// True if any of them is of this workspace.
    pub(super) fn has_any_of(&self, workspace: u32) -> bool {
        self.by_workspace.contains_key(&Some(workspace))
    }

    /// How many of them are at a shard.
    pub(super) fn at(&self, shard: Side) -> usize {
        self.by_shard.get(&shard).copied().unwrap_or_default()
    }

    /// Those at a shard.
    pub(super) fn of_shard(&self, shard: Side) -> Vec<Primary> {
        let primaries = self.keys.keys().filter_map(|key| match key {
            Key::Object(primary) => Some(primary),
            Key::Published(_) | Key::Export | Key::Namespace(_) => None,
        });
        primaries.filter(|primary| primary.shard() == shard).cloned().collect()
    }

    /// Something is worked on from now on.
    pub(super) fn begins(&mut self, key: &Key, now: Instant) {
        self.keys.insert(key.clone(), now);
        *self.by_workspace.entry(workspace(key)).or_default() += 1;
        if let Key::Object(primary) = key {
            *self.by_shard.entry(primary.shard()).or_default() += 1;
        }
    }

    /// It is worked on no longer.
    pub(super) fn ends(&mut self, key: &Key) {
        self.keys.remove(key);
        one_less(&mut self.by_workspace, &workspace(key));
        if let Key::Object(primary) = key {
            one_less(&mut self.by_shard, &primary.shard());
        }
    }
}
