//! When the token of the hub is renewed, what is requested, and whether an answer can be used. Without I/O.
//! The age of a token that was in the file at start is known only by the wall clock; that of a later one counts from
//! its arrival, so that a wrong clock does not make tokens be renewed over and over.

use std::time::Duration;

use kube_lite::claims::Claims;
use kube_lite::{Standing, since_1970_of};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

/// The longest time without a check while nothing is due: clocks are set, and files are replaced.
pub(super) const LOOK: Duration = Duration::from_secs(60);
/// The same while a renewal is due and the hub is unreachable.
const AWAY: Duration = Duration::from_secs(5);
/// The wait after the first failure; it doubles.
const FIRST_WAIT: Duration = Duration::from_secs(8);
/// The longest wait, since a permission may be missing for years.
const LONGEST_WAIT: Duration = Duration::from_secs(1800);
/// The shortest and the longest life that API servers give.
const SHORTEST_LIFE: u64 = 600;
const LONGEST_LIFE: u64 = 1 << 32;

/// The time by two clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    /// Since 1970, by the wall clock.
    pub(super) wall: Duration,
    /// By the process's own clock.
    pub(super) at: Instant,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RenewalStep {
    /// Nothing for so long.
    Wait(Duration),
    Renew,
}

/// What has failed before, and when it is tried again.
#[derive(Debug, Default)]
pub(super) struct Tries {
    failures: u32,
    again: Option<Instant>,
}

impl Tries {
    /// How long to wait.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        self.again
            .map_or(Duration::ZERO, |again| again.saturating_duration_since(now))
    }

    /// It has failed once more; `jitter` is in 0..1. True for the first time in a row.
    pub(super) fn fail(&mut self, now: Instant, jitter: f64) -> bool {
        let longest = FIRST_WAIT.saturating_mul(1 << self.failures.min(16)).min(LONGEST_WAIT);
        self.again = Some(now + longest.mul_f64(0.5 + jitter / 2.0));
        self.failures = self.failures.saturating_add(1);
        self.failures == 1
    }

    /// It has worked.
    pub(super) fn succeed(&mut self) {
        *self = Self::default();
    }
}

/// The token in force, and the state of its renewal.
#[derive(Debug, Default)]
pub(super) struct Plan {
    token: Option<SecretString>,
    /// When it came, if it came while this process ran.
    came: Option<Instant>,
    /// After which part of its life it is renewed.
    part: f64,
    pub(super) tries: Tries,
}

impl Plan {
    /// This token is in force; `jitter` is in 0..1.
    pub(super) fn meet(&mut self, token: &SecretString, jitter: f64) {
        let known = self.token.as_ref().map(SecretString::expose_secret);
        if known != Some(token.expose_secret()) {
            *self = Self {
                token: Some(token.clone()),
                // Spread, since thousands of edges may have been registered within one hour.
                part: 0.45 + jitter / 10.0,
                ..Self::default()
            };
        }
    }

    /// This token was received now.
    pub(super) fn comes(&mut self, token: &SecretString, now: Instant, jitter: f64) {
        self.meet(token, jitter);
        self.came = Some(now);
    }

    /// What is to be done about the token with these claims.
    pub(super) fn next(&self, claims: &Claims, hub: &Standing, now: Now) -> RenewalStep {
        let Some(ends) = claims.ends else {
            return RenewalStep::Wait(LOOK);
        };
        let life = Duration::from_secs(ends.saturating_sub(claims.issued));
        let age = match self.came {
            Some(came) => now.at.saturating_duration_since(came),
            None => now.wall.saturating_sub(Duration::from_secs(claims.issued)),
        };
        let left = life.mul_f64(self.part).saturating_sub(age);
        if !left.is_zero() {
            return RenewalStep::Wait(left.min(LOOK));
        }
        // If the credentials are refused, there is no new token either.
        if !hub.answers || !hub.accepts_credentials {
            return RenewalStep::Wait(AWAY);
        }
        match self.tries.wait(now.at) {
            Duration::ZERO => RenewalStep::Renew,
            wait => RenewalStep::Wait(wait.min(LOOK)),
        }
    }
}

/// The request for a successor that lives as long, for the same audiences.
pub(super) fn request(claims: &Claims) -> String {
    let life = claims.ends.unwrap_or_default().saturating_sub(claims.issued);
    let mut spec = json!({"expirationSeconds": life.clamp(SHORTEST_LIFE, LONGEST_LIFE)});
    if !claims.audiences.is_empty() {
        spec["audiences"] = json!(claims.audiences);
    }
    json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}).to_string()
}

#[derive(Deserialize)]
struct Answer {
    status: Given,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given {
    token: String,
    #[serde(default)]
    expiration_timestamp: String,
}

/// The token in an answer, and its claims; or why it is not the one that was requested.
pub(super) fn answer(body: &[u8], old: &Claims) -> Result<(SecretString, Claims), &'static str> {
    let Answer { status } = serde_json::from_slice(body).map_err(|_| "the answer has no token")?;
    let token = SecretString::from(status.token);
    let claims = Claims::of(token.expose_secret()).ok_or("the new token is of a form that is not known")?;
    if !claims.is_of_same_account(old) {
        return Err("the new token is of another account");
    }
    // The end that the server names counts, if it is the earlier one.
    let said = since_1970_of(&status.expiration_timestamp);
    let ends = claims.ends.into_iter().chain(said).min();
    Ok((token, Claims { ends, ..claims }))
}

#[cfg(test)]
mod tests {
    use kube_lite::claims::token;

    use super::*;

    const HOUR: u64 = 3600;
    const THERE: (bool, bool) = (true, true);

    fn secret(text: &str) -> SecretString {
        SecretString::from(text.to_owned())
    }

    fn claims(issued: u64, ends: u64) -> Claims {
        let text =
            format!(r#"{{"iss":"i","sub":"system:serviceaccount:n:a","aud":["x"],"iat":{issued},"exp":{ends}}}"#);
        Claims::of(&token(&text)).unwrap()
    }

    fn standing((answers, accepts_credentials): (bool, bool)) -> Standing {
        Standing {
            answers,
            accepts_credentials,
            ..Standing::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_is_renewed_at_half_of_its_life() {
        let seconds = Duration::from_secs;
        for (jitter, life, wall, hub, expected) in [
            (0.5, 100 * HOUR, 0, THERE, RenewalStep::Wait(LOOK)),
            (0.5, 100 * HOUR, 50 * HOUR - 1, THERE, RenewalStep::Wait(seconds(1))),
            (0.5, 100 * HOUR, 50 * HOUR, THERE, RenewalStep::Renew),
            // Spread from 45 to 55 of a hundred.
            (0.0, 100 * HOUR, 45 * HOUR, THERE, RenewalStep::Renew),
            (1.0, 100 * HOUR, 55 * HOUR - 1, THERE, RenewalStep::Wait(seconds(1))),
            (1.0, 100 * HOUR, 55 * HOUR, THERE, RenewalStep::Renew),
            // A short one: it is not slept through.
            (0.5, 30, 0, THERE, RenewalStep::Wait(seconds(15))),
            // It may be tried for as long as it lives, and after that.
            (0.5, 100 * HOUR, 500 * HOUR, THERE, RenewalStep::Renew),
            (0.5, 100 * HOUR, 60 * HOUR, (false, true), RenewalStep::Wait(AWAY)),
            (0.5, 100 * HOUR, 60 * HOUR, (true, false), RenewalStep::Wait(AWAY)),
        ] {
            let mut plan = Plan::default();
            plan.meet(&secret("t"), jitter);
            // Ten hours after 1970.
            let start = 10 * HOUR;
            let now = Now {
                wall: seconds(start + wall),
                at: Instant::now(),
            };
            let found = plan.next(&claims(start, start + life), &standing(hub), now);
            assert_eq!(found, expected, "{jitter} {life} {wall} {hub:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_is_wrong_renews_one_token_at_most() {
        let start = Instant::now();
        let mut plan = Plan::default();
        let now = |wall: u64, after: u64| Now {
            wall: Duration::from_secs(wall),
            at: start + Duration::from_secs(after),
        };
        let hub = standing(THERE);
        // 1970 by a board without a battery: it waits until the clock is set.
        plan.meet(&secret("old"), 0.5);
        let old = claims(1000 * HOUR, 1100 * HOUR);
        assert_eq!(plan.next(&old, &hub, now(0, 0)), RenewalStep::Wait(LOOK));
        // 2100: the old one seems to have ended, and so does the new one.
        assert_eq!(plan.next(&old, &hub, now(1_000_000 * HOUR, 0)), RenewalStep::Renew);
        plan.comes(&secret("new"), start, 0.5);
        plan.meet(&secret("new"), 0.1);
        assert_eq!(plan.next(&old, &hub, now(1_000_000 * HOUR, 1)), RenewalStep::Wait(LOOK));
        assert_eq!(
            plan.next(&old, &hub, now(1_000_000 * HOUR, 50 * HOUR)),
            RenewalStep::Renew
        );
        // Somebody else's token again.
        plan.meet(&secret("rotated"), 0.5);
        assert_eq!(
            plan.next(&old, &hub, now(1000 * HOUR, 60 * HOUR)),
            RenewalStep::Wait(LOOK)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_refused_is_tried_with_increasing_back_off_until_there_is_another_token() {
        let (mut at, mut plan, mut tries) = (Instant::now(), Plan::default(), 0);
        let (old, hub) = (claims(0, HOUR), standing(THERE));
        plan.meet(&secret("old"), 0.5);
        let end = at + Duration::from_secs(86_400);
        while at < end {
            let now = Now {
                wall: Duration::from_secs(HOUR),
                at,
            };
            match plan.next(&old, &hub, now) {
                RenewalStep::Renew => {
                    assert_eq!(plan.tries.fail(at, 1.0), tries == 0, "it is logged once");
                    tries += 1;
                }
                RenewalStep::Wait(wait) => at += wait,
            }
        }
        assert!((50..60).contains(&tries), "{tries} in a day");
        plan.meet(&secret("new"), 0.5);
        assert_eq!(plan.tries.wait(at), Duration::ZERO);
    }

    #[test]
    fn asks_for_the_same_life_and_audiences() {
        for (issued, ends, life) in [
            (100, 100 + 168 * HOUR, 168 * HOUR),
            (100, 130, SHORTEST_LIFE),
            (0, u64::MAX, LONGEST_LIFE),
            (200, 100, SHORTEST_LIFE),
        ] {
            let request: serde_json::Value = serde_json::from_str(&request(&claims(issued, ends))).unwrap();
            assert_eq!(request["spec"], json!({"expirationSeconds": life, "audiences": ["x"]}));
            assert_eq!(request["kind"], "TokenRequest");
        }
        let without = Claims::of(&token(r#"{"sub":"s"}"#)).unwrap();
        let request: serde_json::Value = serde_json::from_str(&request(&without)).unwrap();
        assert!(request["spec"]["audiences"].is_null(), "those of the server");
    }

    #[test]
    fn believes_the_server_how_long_a_token_lives() {
        let old = claims(0, HOUR);
        let text = |iss: &str, ends: u64| {
            token(&format!(
                r#"{{"iss":"{iss}","sub":"system:serviceaccount:n:a","iat":5,"exp":{ends}}}"#
            ))
        };
        let check = |token: &str, said: &str| {
            let body = json!({"status": {"token": token, "expirationTimestamp": said}}).to_string();
            answer(body.as_bytes(), &old).map(|(_, claims)| claims.ends)
        };
        let ends = 1_795_269_787;
        for (in_token, said, expected) in [
            (ends, "2026-11-21T14:03:07Z", ends),
            (ends + 60, "2026-11-21T14:03:07Z", ends),
            (ends - 60, "2026-11-21T14:03:07Z", ends - 60),
            (ends, "", ends),
            (ends, "soon", ends),
        ] {
            assert_eq!(check(&text("i", in_token), said), Ok(Some(expected)), "{said}");
        }
        assert!(check(&text("j", ends), "").is_err(), "of another issuer");
        assert!(check("opaque", "").is_err());
        for body in ["{}", r#"{"status":{}}"#, "no json", ""] {
            assert!(answer(body.as_bytes(), &old).is_err(), "{body}");
        }
    }
}
