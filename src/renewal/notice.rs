//! Which notice about credentials that will end is due. Without I/O.

use std::time::Duration;

use kube_lite::Credentials;

const DAY: u64 = 86_400;
/// How long before the end it is logged, each once.
const AHEAD: [u64; 3] = [30 * DAY, 7 * DAY, DAY];

/// What is to be logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    /// They will end then.
    Ending(u64),
    /// They have ended then.
    Ended(u64),
}

/// What was logged about the credentials of one side.
#[derive(Debug, Default)]
pub(super) struct Notices {
    end: Option<u64>,
    /// How many of the notices.
    reported: usize,
}

impl Notices {
    /// What is to be logged about these credentials at this time since 1970. For those that are renewed here, only that
    /// they have ended: a failed renewal is logged when it happens.
    pub(super) fn due(&mut self, credentials: &Credentials, are_renewed: bool, now: Duration) -> Option<Notice> {
        let end = credentials.end()?;
        if self.end != Some(end) {
            *self = Self {
                end: Some(end),
                reported: 0,
            };
        }
        let left = end.saturating_sub(now.as_secs());
        let life = match credentials {
            Credentials::Token(_, claims) => end.saturating_sub(claims.issued),
            _ => u64::MAX,
        };
        // Nobody wants to read at once of a token for three days that it ends within seven.
        let counts = |ahead: u64| ahead < life && left <= ahead;
        let ahead = AHEAD.iter().filter(|ahead| !are_renewed && counts(**ahead)).count();
        let step = if left == 0 { AHEAD.len() + 1 } else { ahead };
        if step <= self.reported {
            return None;
        }
        self.reported = step;
        Some(if left == 0 {
            Notice::Ended(end)
        } else {
            Notice::Ending(end)
        })
    }
}

#[cfg(test)]
mod tests {
    use kube_lite::claims::Claims;
    use kube_lite::claims::token;

    use super::*;

    fn reported(credentials: &Credentials, are_renewed: bool, days: impl Iterator<Item = u64>) -> Vec<(u64, bool)> {
        let mut notices = Notices::default();
        let mut reported = Vec::new();
        for day in days {
            let now = Duration::from_secs(day * DAY);
            if let Some(notice) = notices.due(credentials, are_renewed, now) {
                reported.push((day, matches!(notice, Notice::Ended(_))));
            }
        }
        reported
    }

    fn token_of(issued: u64, ends: u64) -> Credentials {
        let text = format!(r#"{{"sub":"s","iat":{},"exp":{}}}"#, issued * DAY, ends * DAY);
        let text = token(&text);
        Credentials::Token(text.clone().into(), Claims::of(&text).unwrap())
    }

    #[test]
    fn a_certificate_is_reported_30_7_and_1_days_before_its_end() {
        let certificate = Credentials::Certificate(Some(100 * DAY));
        let each = [(70, false), (93, false), (99, false), (100, true)];
        assert_eq!(reported(&certificate, false, 0..200), each);
        // Started late, it is logged once for all that has passed.
        assert_eq!(reported(&certificate, false, 95..99), [(95, false)]);
        assert_eq!(reported(&certificate, false, 120..200), [(120, true)]);
        assert_eq!(reported(&Credentials::Certificate(None), false, 0..200), []);
        assert_eq!(reported(&Credentials::TokenFile, false, 0..200), []);
    }

    #[test]
    fn a_token_is_reported_by_what_it_lives() {
        assert_eq!(reported(&token_of(0, 100), false, 0..200).len(), 4);
        assert_eq!(reported(&token_of(93, 100), false, 90..200), [(99, false), (100, true)]);
        assert_eq!(reported(&token_of(0, 100), true, 0..200), [(100, true)]);
    }

    #[test]
    fn others_are_reported_again() {
        let mut notices = Notices::default();
        let mut due = |end: u64| notices.due(&Credentials::Certificate(Some(end)), false, Duration::from_secs(95));
        assert_eq!(due(100), Some(Notice::Ending(100)));
        assert_eq!(due(100), None);
        assert_eq!(due(101), Some(Notice::Ending(101)));
        assert_eq!(due(50), Some(Notice::Ended(50)));
        assert_eq!(due(50), None);
    }
}
