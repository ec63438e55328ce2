//! Moments to kill a syncer at: some chosen by the clock, from before it has connected to after it has come to rest, and
//! others by what it has written, so that on a machine of any speed some fall between its first write and its last.

use std::cell::Cell;
use std::time::Duration;

use serde_json::Value;

use super::edge_watch::EdgeWatch;
use super::story::SOON;

/// Crashes at moments that the clock chooses.
const BY_CLOCK: u64 = 12;
/// Crashes that must have hit the syncer in the middle of its work.
const IN_THE_MIDDLE: usize = 3;
/// Crashes after which there is no hope for that.
const AT_MOST: u64 = 60;

/// The crashes of one test, in which the syncer has the same number of objects to write each time.
pub struct Crashes {
    objects: usize,
    rounds: u64,
    /// How many have left the objects half done.
    in_the_middle: usize,
}

impl Crashes {
    /// The crashes of a syncer that has so many objects to write.
    pub fn of(objects: usize) -> Self {
        Self {
            objects,
            rounds: 0,
            in_the_middle: 0,
        }
    }

    /// The number of the crash that begins, from 1; `None` when there were enough. Panics when too few fell into the middle.
    pub fn begin(&mut self) -> Option<u64> {
        if self.rounds >= BY_CLOCK && self.in_the_middle >= IN_THE_MIDDLE {
            return None;
        }
        let hits = self.in_the_middle;
        assert!(
            self.rounds < AT_MOST,
            "only {hits} of {AT_MOST} crashes fell between first and last write"
        );
        self.rounds += 1;
        Some(self.rounds)
    }

    /// Waits for the moment of this crash, with a watch on what the syncer writes, begun before it has started: in every
    /// other round until so and so many objects are done, and otherwise for a time that grows.
    pub async fn moment(&self, mut watch: EdgeWatch, is_done: impl Fn(&Value) -> bool) {
        if self.rounds <= BY_CLOCK && self.rounds.is_multiple_of(2) {
            // There is no condition to wait for: the moment itself is what is tested.
            tokio::time::sleep(Duration::from_millis(self.rounds * self.rounds * 2)).await;
            return;
        }
        // Few, because the syncer continues until the signal has reached it; none more than there is to do.
        let wanted = 1 + usize::try_from(self.rounds).expect("these are few") / 2 % (self.objects / 3);
        let done = Cell::new(0);
        watch
            .wait_within(SOON, &format!("{wanted} objects are written"), |change| {
                done.set(done.get() + usize::from(!change.deleted && is_done(&change.object)));
                done.get() >= wanted
            })
            .await;
    }

    /// So many objects were done when the syncer had been killed.
    pub fn saw(&mut self, done: usize) {
        if 0 < done && done < self.objects {
            self.in_the_middle += 1;
        }
    }
}
