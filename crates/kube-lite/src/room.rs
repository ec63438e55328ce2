//! Memory for answers: how much of their answers the requests of one side may hold together while these arrive.
//!
//! Promises: apart from the first few bytes of each, only one answer or item of a list or watch is collected at a time.
//! The others wait, and since they are not read, their server waits too. A turn ends with the answer or item, at its
//! size limit, when it is given up, or after [`LONGEST_TURN`], so that the next one has its turn.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::Error;

/// What a request may hold of its answer without a turn: there are as many as workers.
pub(super) const SMALL_ANSWER: usize = 256 << 10;
/// The same of one item or event: there may be a hundred lists and watches.
pub(super) const SMALL_ITEM: usize = 64 << 10;
/// How long a turn may take: 4.8 MB at 64 kbit/s, if no other large object is on the link.
const LONGEST_TURN: Duration = Duration::from_secs(600);

/// The time limit without a turn: longer than any request waits for an answer.
const NO_TURN: Duration = Duration::from_secs(24 * 3600);

/// The room of one side.
pub(super) struct Room(Arc<Semaphore>);

/// The part of it that one answer takes.
pub(super) struct Share {
    room: Arc<Semaphore>,
    turn: Option<Turn>,
    waits: bool,
}

struct Turn {
    _permit: OwnedSemaphorePermit,
    until: Instant,
}

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

impl Clone for Room {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl Room {
    /// The share of one answer, which takes nothing yet.
    pub(super) fn share(&self) -> Share {
        Share {
            room: Arc::clone(&self.0),
            turn: None,
            waits: false,
        }
    }
}

impl Share {
    /// To be called before more is read: waits for a turn, if more than `small` is held and it has none. True if it has
    /// got one now.
    pub(super) async fn grow(&mut self, held: usize, small: usize) -> bool {
        if held <= small || self.turn.is_some() {
            return false;
        }
        self.waits = true;
        // An error would mean that the semaphore is closed, which never happens here.
        let permit = Arc::clone(&self.room).acquire_owned().await.ok();
        self.waits = false;
        let until = Instant::now() + LONGEST_TURN;
        self.turn = permit.map(|permit| Turn { _permit: permit, until });
        true
    }

    /// True if it was given up while it waited for its turn.
    pub(super) fn waits(&self) -> bool {
        self.waits
    }

    /// When its turn is over, if it has one.
    pub(super) fn until(&self) -> Option<Instant> {
        self.turn.as_ref().map(|turn| turn.until)
    }

    /// Waits for the next piece, but not beyond the end of its turn.
    ///
    /// Not an async function, since the future would then take its memory twice.
    pub(super) fn in_time<T>(
        &self,
        next: impl Future<Output = Result<T, Error>>,
    ) -> impl Future<Output = Result<T, Error>> {
        let until = self.until().unwrap_or_else(|| Instant::now() + NO_TURN);
        timeout_at(until, next).map(|result| {
            result.unwrap_or_else(|_| {
                let seconds = LONGEST_TURN.as_secs();
                let words = format!("a large answer did not come to its end within {seconds} s");
                Err(Error::Unanswered(words))
            })
        })
    }

    /// What was collected is complete.
    pub(super) fn ends(&mut self) {
        self.turn = None;
        self.waits = false;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn gets_a_turn(share: &mut Share) -> bool {
        timeout(SECOND, share.grow(2, 1)).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn one_at_a_time_grows_large_and_all_may_be_small() {
        let room = Room::default();
        let (mut first, mut second) = (room.share(), room.share());
        assert!(first.grow(2, 1).await);
        assert!(!first.grow(3, 1).await, "it has its turn");
        assert!(!second.grow(1, 1).await && second.until().is_none());
        assert!(!gets_a_turn(&mut second).await && second.waits());
        first.ends();
        assert!(gets_a_turn(&mut second).await && !second.waits());
        drop(second);
        assert!(gets_a_turn(&mut first).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_comes_to_its_end_whatever_is_waited_for() {
        let room = Room::default();
        let mut share = room.share();
        assert_eq!(share.in_time(async { Ok(1) }).await, Ok(1));
        share.grow(2, 1).await;
        assert_eq!(share.in_time(async { Ok(1) }).await, Ok(1));
        let start = Instant::now();
        let endless = std::future::pending::<Result<(), Error>>();
        assert!(matches!(share.in_time(endless).await, Err(Error::Unanswered(_))));
        assert!(start.elapsed() < LONGEST_TURN + SECOND);
    }
}
