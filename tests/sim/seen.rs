//! What the servers have shown each process, on the syncer's clock: what it can know is judged by this, and not by what is
//! so.

use std::collections::BTreeMap;
use std::time::Duration;

use edge_syncer::side::Side;

use super::request::{Ask, Verb};
use super::store::{Key, Store};

/// See the module's doc.
#[derive(Default)]
pub struct Seen {
    /// When a side last showed that an object is not there, truthfully.
    absent: BTreeMap<(u32, Side, Key), Duration>,
    /// When a side last began a watch. It first tells all that was missed, also of objects that are gone by now.
    watched: BTreeMap<(u32, Side), Duration>,
    /// Since when a side shows that it does not serve a type. What it serves for a moment between two answers is not seen.
    unserved: BTreeMap<(u32, Side, String), Duration>,
}

impl Seen {
    /// A side shows that an object is not there.
    pub fn absent(&mut self, process: u32, side: Side, key: Key, now: Duration) {
        self.absent.insert((process, side, key), now);
    }

    /// When a side last showed that.
    pub fn absent_at(&self, process: u32, side: Side, key: &Key) -> Option<Duration> {
        self.absent.get(&(process, side, key.clone())).copied()
    }

    /// A side begins a watch.
    pub fn watches(&mut self, process: u32, side: Side, now: Duration) {
        self.watched.insert((process, side), now);
    }

    /// True if a side has begun a watch so shortly ago.
    pub fn has_just_watched(&self, process: u32, side: Side, lag: Duration, now: Duration) -> bool {
        let at = self.watched.get(&(process, side));
        at.is_some_and(|at| now.saturating_sub(*at) <= lag)
    }

    /// What an answer to this request shows of the types that the side serves.
    pub fn types(&mut self, process: u32, side: Side, ask: &Ask, store: &Store, now: Duration) {
        let group = &ask.target.group;
        let qualified = ask.target.qualified();
        let is_about = |resource: &str| match ask.verb {
            // The root names no types.
            Verb::Discover => !group.is_empty() && resource.split_once('.').is_some_and(|(_, of)| of == group),
            _ => resource == qualified,
        };
        self.unserved.retain(|(of, at, resource), _| {
            (*of, *at) != (process, side) || !is_about(resource) || store.hidden.contains_key(resource)
        });
        for resource in store.hidden.keys().filter(|resource| is_about(resource)) {
            self.unserved.entry((process, side, resource.clone())).or_insert(now);
        }
    }

    /// For how long a side has shown that it does not serve a type.
    pub fn unserved_for(&self, process: u32, side: Side, resource: &str, now: Duration) -> Option<Duration> {
        let since = self.unserved.get(&(process, side, resource.to_owned()))?;
        Some(now.saturating_sub(*since))
    }
}
