//! What is worked on now, and where.

use std::collections::{BTreeMap, BTreeSet};

use super::one_less;
use crate::sides::{Key, Primary, Side};

/// See the module's doc.
#[derive(Debug, Default)]
pub(super) struct Taken {
    keys: BTreeSet<Key>,
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

impl Taken {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
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
        let primaries = self.keys.iter().filter_map(|key| match key {
            Key::Object(primary) => Some(primary),
            Key::Published(_) | Key::Export | Key::Namespace(_) => None,
        });
        primaries.filter(|primary| primary.shard() == shard).cloned().collect()
    }

    /// Something is worked on from now on.
    pub(super) fn begins(&mut self, key: &Key) {
        self.keys.insert(key.clone());
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
