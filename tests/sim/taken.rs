//! Objects of the hub that went with their type: somebody deleted its CRD.

use std::collections::BTreeMap;
use std::time::Duration;

use super::run::HELD;
use super::store::Key;

/// Their copies stay while the type is gone, and for a time after it is there again.
#[derive(Default)]
pub struct Taken(BTreeMap<Key, Option<Duration>>);

impl Taken {
    /// A CRD that is going takes these along.
    pub fn take(&mut self, objects: &[Key]) {
        self.0.extend(objects.iter().map(|key| (key.clone(), None)));
    }

    /// A type is served again since then.
    pub fn served(&mut self, resource: &str, now: Duration) {
        let of_type = self.0.iter_mut().filter(|(key, _)| *key.resource == *resource);
        of_type.for_each(|(_, since)| *since = Some(now));
    }

    /// It is there again.
    pub fn is_back(&mut self, key: &Key) {
        self.0.remove(key);
    }

    /// People have confirmed that the copies may go.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// True if the copy is to stay.
    pub fn keeps(&self, key: &Key, now: Duration) -> bool {
        let since = self.0.get(key);
        since.is_some_and(|since| since.is_none_or(|since| now.saturating_sub(since) < HELD))
    }
}
