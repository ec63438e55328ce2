//! Credentials that a side does not accept: requests are refused here, and only single ones are sent.
//! Sources, objects, heartbeat and discovery all keep trying at their own intervals, which is dozens of requests a
//! minute for as long as nobody renews the credentials, perhaps for months. Here, only single requests reach the side,
//! with increasing back-off up to five minutes, and at once when there are other credentials.

use std::cell::RefCell;
use std::time::Duration;

use tokio::time::Instant;

use super::ApiStatus;

/// The wait after the first refusal. Doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(800);
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// How long the others wait for the result of the one that is sent.
const ASKING: Duration = Duration::from_secs(60);

/// Whether the credentials are refused, and when to ask again.
#[derive(Debug, Default)]
pub(super) struct Refused(RefCell<Option<Refusal>>);

#[derive(Debug)]
struct Refusal {
    /// Which credentials, as [`super::ApiServer::credentials`] numbers them.
    credentials: u64,
    /// How often in a row they were refused.
    times: u32,
    ask_at: Instant,
    /// A request is under way.
    asking: bool,
    answer: ApiStatus,
}

impl Refused {
    /// True if they are refused.
    pub(super) fn are_refused(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// These were refused; `jitter` is in 0..1.
    pub(super) fn refuse(&self, credentials: u64, answer: &ApiStatus, now: Instant, jitter: f64) {
        let mut refusal = self.0.borrow_mut();
        let before = refusal.as_ref().filter(|refusal| refusal.credentials == credentials);
        // Several were under way when the first was refused.
        if before.is_some_and(|before| !before.asking && now < before.ask_at) {
            return;
        }
        let times = before.map_or(1, |before| before.times.saturating_add(1));
        let wait = FIRST_WAIT.saturating_mul(1 << (times - 1).min(16)).min(LONGEST_WAIT);
        *refusal = Some(Refusal {
            credentials,
            times,
            ask_at: now + wait.mul_f64(0.5 + jitter / 2.0),
            asking: false,
            answer: answer.clone(),
        });
    }

    /// They are accepted.
    pub(super) fn are_accepted(&self) {
        *self.0.borrow_mut() = None;
    }

    /// The refusal of a request with these credentials; `None` if it is to be sent.
    pub(super) fn answer(&self, credentials: u64, now: Instant) -> Option<ApiStatus> {
        let mut refusal = self.0.borrow_mut();
        let refusal = refusal.as_mut().filter(|refusal| refusal.credentials == credentials)?;
        if now < refusal.ask_at {
            return Some(refusal.answer.clone());
        }
        refusal.ask_at = now + ASKING;
        refusal.asking = true;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_asks_for_all_with_increasing_back_off_and_new_credentials_at_once() {
        let refused = Refused::default();
        let answer = ApiStatus::default();
        assert!(refused.answer(1, Instant::now()).is_none() && !refused.are_refused());
        refused.refuse(1, &answer, Instant::now(), 1.0);
        refused.refuse(1, &answer, Instant::now(), 1.0);
        let mut asked = Vec::new();
        // Ten times a second, for two hours.
        for tick in 0..72_000_u64 {
            if refused.answer(1, Instant::now()).is_none() {
                asked.push(tick / 600);
                refused.refuse(1, &answer, Instant::now(), 1.0);
            }
            tokio::time::advance(Duration::from_millis(100)).await;
        }
        let in_minute = |minute| asked.iter().filter(|at| **at == minute).count();
        assert!((4..8).contains(&in_minute(0)), "{}", in_minute(0));
        assert!((1..120).all(|minute| in_minute(minute) <= 1));
        assert!((20..40).contains(&asked.len()), "{}", asked.len());
        assert!(refused.answer(1, Instant::now()).is_some());
        assert!(refused.answer(2, Instant::now()).is_none(), "others");
        refused.are_accepted();
        assert!(refused.answer(1, Instant::now()).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn while_one_asks_the_others_wait_but_not_for_ever() {
        let refused = Refused::default();
        refused.refuse(1, &ApiStatus::default(), Instant::now(), 1.0);
        tokio::time::advance(FIRST_WAIT).await;
        assert!(refused.answer(1, Instant::now()).is_none());
        assert!(refused.answer(1, Instant::now()).is_some());
        tokio::time::advance(ASKING).await;
        assert!(refused.answer(1, Instant::now()).is_none());
    }
}
