//! What is counted where it happens, for metrics.

use std::collections::BTreeMap;

use crate::side::Side;

/// What has been counted since the process began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    writes: BTreeMap<(Side, &'static str), u64>,
    failures: BTreeMap<Side, u64>,
}

impl Counters {
    /// Something has been written to a side: what it was for the object, such as `created`.
    pub fn wrote(&mut self, side: Side, result: &'static str) {
        *self.writes.entry((side, result)).or_default() += 1;
    }

    /// A request to a side, or an object of it, has failed.
    pub fn failed(&mut self, side: Side) {
        *self.failures.entry(side).or_default() += 1;
    }

    /// What has been written: where, what it was for, and how often.
    pub fn writes(&self) -> impl Iterator<Item = (Side, &'static str, u64)> {
        self.writes
            .iter()
            .map(|((side, result), count)| (*side, *result, *count))
    }

    /// How often something of a side has failed.
    pub fn failures(&self, side: Side) -> u64 {
        self.failures.get(&side).copied().unwrap_or_default()
    }
}
