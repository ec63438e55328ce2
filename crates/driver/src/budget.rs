//! How often something may be done: some times in a row, and then once in a while.

use std::time::Duration;

use tokio::time::Instant;

/// A bucket that holds so many, and earns one in so many seconds. It begins full.
#[derive(Debug, Default)]
pub struct Budget<const ROOM: u32, const SECONDS: u64> {
    /// When it is full again.
    full_at: Option<Instant>,
}

impl<const ROOM: u32, const SECONDS: u64> Budget<ROOM, SECONDS> {
    const EARNED: Duration = Duration::from_secs(SECONDS);

    fn left(&self, now: Instant) -> u32 {
        let owed = self
            .full_at
            .map_or(Duration::ZERO, |at| at.saturating_duration_since(now));
        let seconds = owed.as_secs() + u64::from(owed.subsec_nanos() > 0);
        let spent = u32::try_from(seconds.div_ceil(SECONDS)).unwrap_or(ROOM);
        ROOM.saturating_sub(spent)
    }

    /// Takes one, unless no more than these are left.
    pub fn takes(&mut self, reserved: u32, now: Instant) -> bool {
        let has_room = self.left(now) > reserved;
        if has_room {
            self.full_at = Some(self.full_at.map_or(now, |at| at.max(now)) + Self::EARNED);
        }
        has_room
    }

    /// One that was taken was not used.
    pub fn gives_back(&mut self) {
        self.full_at = self.full_at.and_then(|at| at.checked_sub(Self::EARNED));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_spent_is_earned_again_and_some_can_be_kept_for_others() {
        let mut budget = Budget::<5, 60>::default();
        let start = Instant::now();
        let mut take = |reserved, seconds| {
            let now = start + Duration::from_secs(seconds);
            (0..9).take_while(|_| budget.takes(reserved, now)).count()
        };
        assert_eq!((take(2, 0), take(0, 0)), (3, 2));
        assert_eq!((take(0, 59), take(0, 60), take(0, 61)), (0, 1, 0));
        assert_eq!((take(0, 240), take(0, 100_000)), (3, 5));
        let now = start + Duration::from_secs(100_000);
        assert!(!budget.takes(0, now));
        budget.gives_back();
        assert!(budget.takes(0, now) && !budget.takes(0, now));
    }
}
