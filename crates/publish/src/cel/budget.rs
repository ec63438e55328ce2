//! What one evaluation may use.

use std::cell::Cell;

use super::value::Val;

/// What is computed, or why it cannot be.
pub(super) type Answer<'a> = Result<Val<'a>, String>;

/// Steps of one evaluation: an operation, a turn of a loop, an element or 32 bytes that a function reads.
const STEPS: usize = 4_000_000;

/// All texts, and eight bytes for each element, that it may make.
const BYTES: usize = 16 << 20;

/// The largest result, in bytes.
const LARGEST: usize = 3 << 20;

/// What one evaluation has left.
pub(super) struct Budget {
    steps: Cell<usize>,
    bytes: Cell<usize>,
}

impl Budget {
    pub(super) fn new() -> Self {
        let (steps, bytes) = (STEPS.into(), BYTES.into());
        Self { steps, bytes }
    }

    /// Counts steps.
    pub(super) fn work(&self, steps: usize) -> Result<(), String> {
        let left = self.steps.get().checked_sub(steps);
        self.steps.set(left.unwrap_or(0));
        left.map(drop)
            .ok_or_else(|| format!("the expression takes more than {STEPS} steps"))
    }

    /// Counts the steps of reading this many bytes.
    pub(super) fn read(&self, bytes: usize) -> Result<(), String> {
        self.work(bytes / 32)
    }

    /// Room for this many bytes, before they are made.
    pub(super) fn room(&self, bytes: usize) -> Result<(), String> {
        let left = self.bytes.get().checked_sub(bytes);
        self.bytes.set(left.unwrap_or(0));
        left.ok_or_else(|| format!("the expression makes more than {} MiB", BYTES >> 20))?;
        self.read(bytes)
    }

    /// Room for the elements of a list or a map.
    pub(super) fn elements(&self, count: usize) -> Result<(), String> {
        self.room(count * size_of::<Val<'_>>())
    }

    /// The steps of comparing a value.
    pub(super) fn compare(&self, value: &Val<'_>) -> Result<(), String> {
        self.work(1 + weight(value, STEPS))
    }
}

/// About how many parts a value has, or so many that it does not matter.
fn weight(value: &Val<'_>, most: usize) -> usize {
    let mut left = most;
    spend(value, &mut left);
    most - left
}

fn spend(value: &Val<'_>, left: &mut usize) {
    *left = left.saturating_sub(1 + size(value) / 32);
    if *left == 0 {
        return;
    }
    match value {
        Val::List(items) => items.iter().for_each(|item| spend(&item, left)),
        Val::Map(map) => {
            for key in map.keys() {
                spend(&key, left);
                if let Some(value) = map.get(&key) {
                    spend(&value, left);
                }
            }
        }
        _ => {}
    }
}

/// The bytes of a text.
pub(super) fn size(value: &Val<'_>) -> usize {
    match value {
        Val::Text(text) => text.as_str().len(),
        Val::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}

/// Whether a result is small enough to be written.
pub(super) fn room_for(value: &Val<'_>, budget: &Budget) -> Result<(), String> {
    let parts = weight(value, LARGEST / 32);
    if parts >= LARGEST / 32 {
        return Err(format!("the result has more than {} MiB", LARGEST >> 20));
    }
    budget.work(parts)
}

/// What meets what it cannot be computed with.
pub(super) fn no_overload() -> String {
    "no such overload".to_owned()
}
