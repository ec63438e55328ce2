//! Deletes of single objects that would delete others too: a Namespace with all that is in it, a CRD with all objects
//! of its type.
//!
//! Such a copy stays as long as there is anything that is not itself to be deleted. It is inspected again from time to
//! time, and deleted once that is gone, or once people have confirmed that it may be deleted too.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use driver::queue;
use kube_lite::logging::log_line;
use tokio::time::Instant;

use super::{Hold, Reason};
use crate::model::inventory::LeftOpen;
use crate::model::{Key, Model, TypeId};
use crate::plan::Direction;
use crate::side::Side;

/// The shortest time between two inspections of what would be deleted too.
const SHORTEST_WAIT: Duration = Duration::from_secs(1);
/// The longest one.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// The delete of one object that is held.
#[derive(Debug)]
struct CascadeHold {
    hold: Hold,
    direction: Direction,
    since: Instant,
    /// People have confirmed it.
    is_confirmed: bool,
}

/// The holds of all objects.
#[derive(Debug, Default)]
pub(super) struct CascadeHolds(BTreeMap<Key, CascadeHold>);

impl CascadeHolds {
    fn of(&self, key: &Key) -> Option<&Hold> {
        let known = self.0.get(key).filter(|known| !known.is_confirmed);
        known.map(|known| &known.hold)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (Direction, &Hold, usize)> {
        let held = self.0.values().filter(|known| !known.is_confirmed);
        held.map(|known| (known.direction, &known.hold, 1))
    }

    pub(super) fn remove_type(&mut self, type_id: TypeId) {
        self.0.retain(|key, _| key.type_id != type_id);
    }
}

impl super::Guard {
    /// True if people have confirmed that deleting a copy may delete others too.
    pub(in crate::model) fn may_cascade(&self, key: &Key) -> bool {
        self.cascades.0.get(key).is_some_and(|known| known.is_confirmed)
    }
}

impl super::Guard {
    /// True if any delete is held that would delete others too.
    pub(in crate::model) fn holds_cascades(&self) -> bool {
        self.cascades.all().next().is_some()
    }

    /// Why the delete of a copy is held that would delete others too.
    pub(in crate::model) fn why_cascade(&self, key: &Key) -> Option<String> {
        self.cascades.of(key).map(|hold| hold.reason.to_string())
    }

    /// True if the delete of a copy is held for that.
    pub(in crate::model) fn holds_cascade(&self, key: &Key) -> bool {
        self.cascades.of(key).is_some()
    }
}

impl Model {
    /// The delete of a copy would cascade to `first`, which is not itself to be deleted.
    pub(in crate::model) fn hold_cascade(&mut self, key: &Key, object: &str, first: &str) -> queue::Done<Side> {
        let Some(state) = self.types.get_mut(&key.type_id) else {
            return queue::Done::Finished;
        };
        let direction = state.plan.direction;
        state.inventory.failed(&key.name, LeftOpen::Nothing);
        let now = self.now;
        if !self.guard.cascades.0.contains_key(key) {
            let reason = Reason::NotEmpty {
                object: object.to_owned(),
                first: first.to_owned(),
            };
            let known = CascadeHold {
                hold: Hold::begin(direction, reason, None, &mut self.new_tokens),
                direction,
                since: now,
                is_confirmed: false,
            };
            self.guard.cascades.0.insert(key.clone(), known);
            self.report_holds();
        }
        // The wait grows with the time that it has been held, so that the end is noticed within about as long again.
        let held = self.guard.cascades.0.get(key).map_or(now, |known| known.since);
        queue::Done::Later(now.duration_since(held).clamp(SHORTEST_WAIT, LONGEST_WAIT))
    }

    /// The copy was dealt with, so its delete is no longer held.
    pub(in crate::model) fn cascade_is_over(&mut self, key: &Key) {
        if self.guard.cascades.0.remove(key).is_some() {
            self.report_holds();
        }
    }

    /// Copies whose origins came back are not to be deleted any more.
    pub(super) fn end_holds_of_cascades_that_came_back(&mut self) {
        let types = &self.types;
        let is_retiring = |key: &Key| {
            let state = types.get(&key.type_id);
            state.is_some_and(|state| state.inventory.is_retiring(&key.name))
        };
        let known = self.guard.cascades.0.keys();
        let over: Vec<Key> = known.filter(|key| !is_retiring(key)).cloned().collect();
        let over: Vec<CascadeHold> = over
            .iter()
            .filter_map(|key| self.guard.cascades.0.remove(key))
            .collect();
        for CascadeHold { hold, direction, .. } in over.iter().filter(|known| !known.is_confirmed) {
            log_line!(
                Info,
                HoldEnded,
                "a delete is not held any more, since the origin is back or the copy gone",
                direction = direction,
                because = hold.reason
            );
        }
        if !over.is_empty() {
            self.report_holds();
        }
    }

    /// Releases what people have confirmed.
    pub(super) fn confirm_cascades(&mut self, tokens: &BTreeSet<String>) {
        let mut confirmed = Vec::new();
        for (key, known) in &mut self.guard.cascades.0 {
            if !known.is_confirmed && tokens.contains(&known.hold.token) {
                known.is_confirmed = true;
                log_line!(
                    Warn,
                    DeletesReleased,
                    "held deletes are carried out",
                    direction = known.direction,
                    because = "confirmed",
                    objects = 1
                );
                confirmed.push(key.clone());
            }
        }
        for key in confirmed {
            self.go_on_with(key);
        }
    }
}
