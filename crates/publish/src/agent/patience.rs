//! What comes to no end and is no failure: what others overtake again and again, and what waits for others without news.
//!
//! Promises: what was overtaken is tried again at once a few times, and after that it counts as failed; what waits is checked
//! ever less often.

use std::collections::BTreeMap;
use std::time::Duration;

use super::LATER;
use crate::sides::Key;

/// How often in a row something that was overtaken is tried again at once.
const AT_ONCE: u32 = 5;
/// For so long at most nobody checks what waits, unless so much waits that more than ten would be checked in a second.
const LONGEST: Duration = Duration::from_secs(30);
const A_TENTH: Duration = Duration::from_millis(100);

/// What something has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    Overtaken,
    Waits,
}

/// How often in a row.
#[derive(Debug, Default)]
pub(super) struct Patience(BTreeMap<Key, (Course, u32)>);

impl Patience {
    /// Others were faster. True if it is to be tried again at once.
    pub(super) fn is_overtaken(&mut self, key: &Key) -> bool {
        self.count(key, Course::Overtaken) <= AT_ONCE
    }

    /// It waits: for so long now.
    pub(super) fn waits(&mut self, key: &Key) -> Duration {
        let doublings = self.count(key, Course::Waits) - 1;
        let all = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        let longest = LONGEST.max(A_TENTH.saturating_mul(all));
        LATER.saturating_mul(1 << doublings.min(16)).min(longest)
    }

    /// It has come to an end.
    pub(super) fn ends(&mut self, key: &Key) {
        self.0.remove(key);
    }

    /// What this is true of is there no longer.
    pub(super) fn forget(&mut self, which: impl Fn(&Key) -> bool) {
        self.0.retain(|key, _| !which(key));
    }

    fn count(&mut self, key: &Key, course: Course) -> u32 {
        let (before, times) = self.0.entry(key.clone()).or_insert((course, 0));
        if *before != course {
            (*before, *times) = (course, 0);
        }
        *times = times.saturating_add(1);
        *times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // A server that answered each write with 409 was asked without a pause.
    #[test]
    fn what_is_overtaken_again_and_again_is_not_tried_at_once_for_ever() {
        let (mut patience, export) = (Patience::default(), Key::Export);
        let mut overtaken = || patience.is_overtaken(&export);
        let times = std::iter::repeat_with(&mut overtaken).take_while(|at_once| *at_once);
        assert_eq!(times.count(), 5);
        assert!(!overtaken());
        patience.ends(&export);
        assert!(patience.is_overtaken(&export));
    }

    // A related copy with a finalizer of somebody else cost a pass a second.
    #[test]
    fn what_waits_is_checked_ever_less_often() {
        let (mut patience, export) = (Patience::default(), Key::Export);
        let waits: Vec<u64> = (0..7).map(|_| patience.waits(&export).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30]);
        // Of thousands that wait, ten are checked in a second.
        for index in 0..3_000_u32 {
            patience.waits(&Key::Namespace(index.to_string().into()));
        }
        let waits: Vec<u64> = (0..4).map(|_| patience.waits(&export).as_secs()).collect();
        assert_eq!(waits, [128, 256, 300, 300]);
        // What comes then is something else.
        assert!(patience.is_overtaken(&export));
        assert_eq!(patience.waits(&export), LATER);
        patience.forget(|key| *key == export);
        assert_eq!(patience.waits(&export), LATER);
    }
}
