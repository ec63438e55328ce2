//! What is counted where it happens, for metrics.

use std::collections::BTreeMap;
use std::time::Duration;

use driver::few::Few;
use kube_lite::figures::{Ends, Histogram};

use crate::side::Side;

/// The ends of the buckets of what it takes to sync an object: from a link in a house to one that was down overnight.
pub const SYNC_ENDS: Ends = [
    (100, "0.1"),
    (500, "0.5"),
    (2000, "2"),
    (10_000, "10"),
    (60_000, "60"),
    (600_000, "600"),
    (36_000_000, "36000"),
];

/// What has been counted since the process began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    writes: BTreeMap<(Side, &'static str), u64>,
    failures: Few<Side, u64>,
    synced: Few<Side, Histogram>,
    corrections: u64,
}

impl Counters {
    /// Something has been written to a side: what it was for the object, such as `created`.
    pub fn wrote(&mut self, side: Side, result: &'static str) {
        *self.writes.entry((side, result)).or_default() += 1;
    }

    /// A request to a side, or an object of it, has failed.
    pub fn failed(&mut self, side: Side) {
        *self.failures.or_default(side) += 1;
    }

    /// A copy on that side was synced, so long after it was known that there is something to do for it.
    pub fn synced(&mut self, side: Side, took: Duration) {
        self.synced.or_default(side).add(&SYNC_ENDS, took);
    }

    /// A copy that somebody else had changed or deleted is as it was.
    pub fn corrected(&mut self) {
        self.corrections += 1;
    }

    /// How long it took to sync copies on that side.
    pub fn sync_duration(&self, side: Side) -> Histogram {
        self.synced.get(side).copied().unwrap_or_default()
    }

    /// How many copies were corrected.
    pub fn corrections(&self) -> u64 {
        self.corrections
    }

    /// What has been written: where, what it was for, and how often.
    pub fn writes(&self) -> impl Iterator<Item = (Side, &'static str, u64)> {
        self.writes
            .iter()
            .map(|((side, result), count)| (*side, *result, *count))
    }

    /// How often something of a side has failed.
    pub fn failures(&self, side: Side) -> u64 {
        self.failures.get(side).copied().unwrap_or_default()
    }
}
