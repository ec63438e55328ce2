//! Why deletes are held, in words, and until when; and what the record says of that.

use std::time::Duration;

use kube_lite::is_word;
use kube_lite::logging::log_line;
use tokio::time::Instant;

use crate::api::{OLDER_VERSIONS, TOO_MANY};
use crate::plan::Direction;

/// The longest token that is read.
const LONGEST_TOKEN: usize = 16;

/// What has become of a type that the hub deletes as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::model) enum TypeIs {
    /// It is being deleted, and its objects with it.
    Going,
    /// The hub has it no longer.
    Gone,
    /// The same, and nothing selects it, but the configs may have been deleted with their own type.
    GoneWithConfigs,
    /// The same, as long as the hub has not said whether the configs were deleted with their own type.
    GoneUnselected,
    /// It is defined again.
    Redefined,
}

/// Why deletes are held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::model) enum Reason {
    /// Another cluster answers.
    OtherCluster { expected: String, found: String },
    /// A type has gone back to an older version.
    WentBack { resource: String, from: u64, to: u64 },
    /// Too many copies are to be deleted.
    TooMany { pending: usize, of: usize },
    /// The hub deletes a type, and its objects with it.
    Withdrawn { resource: String, is: TypeIs },
    /// The delete of an object would cascade to what is not to be deleted, this first of all.
    NotEmpty { object: String, first: String },
}

impl Reason {
    /// As the condition names it.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::OtherCluster { .. } => crate::api::OTHER_CLUSTER,
            Self::WentBack { .. } => OLDER_VERSIONS,
            Self::TooMany { .. } => TOO_MANY,
            Self::Withdrawn { .. } => crate::api::TYPE_WITHDRAWN,
            Self::NotEmpty { .. } => crate::api::NOT_EMPTY,
        }
    }

    /// What it looks like, and a confirmation would do harm to.
    fn other_cause(&self) -> &'static str {
        match self {
            Self::OtherCluster { .. } => {
                ", and that no other syncer, for the other cluster, has the same --sync-target-uid, since these would be its \
                 copies: give each its own"
            }
            _ => "",
        }
    }

    /// True if it replaces the reason for which deletes are held already: whoever confirms that one has not confirmed
    /// this one.
    pub(super) fn is_graver_than(&self, known: &Self) -> bool {
        match (self, known) {
            (Self::WentBack { .. }, Self::TooMany { .. }) => true,
            (Self::TooMany { .. } | Self::WentBack { .. } | Self::Withdrawn { .. } | Self::NotEmpty { .. }, _) => false,
            (Self::OtherCluster { .. }, _) => self != known,
        }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::OtherCluster { expected, found } => {
                write!(f, "another cluster answers: {found} instead of {expected}")
            }
            Self::WentBack { resource, from, to } => {
                write!(
                    f,
                    "{resource} went back from version {from} to {to}, as after a restore from a backup"
                )
            }
            Self::TooMany { pending, of } => {
                write!(
                    f,
                    "{pending} of {of} copies are to be deleted at once or within an hour"
                )
            }
            Self::NotEmpty { object, first } => {
                write!(
                    f,
                    "deleting {object} would delete {first} too, which is to be preserved"
                )
            }
            Self::Withdrawn { resource, is } => match is {
                TypeIs::Going => write!(f, "{resource} is being deleted at the hub, and its objects with it"),
                TypeIs::Gone => write!(
                    f,
                    "{resource} is missing at the hub as it was; its copies are preserved until it is back or no config selects it"
                ),
                TypeIs::GoneWithConfigs => write!(
                    f,
                    "{resource} is missing at the hub as it was, and nothing selects it, but the configs may have been deleted with their own type; its copies are preserved until it is back"
                ),
                TypeIs::GoneUnselected => write!(
                    f,
                    "{resource} is missing at the hub as it was, and nothing selects it; its copies are preserved until the hub has said that the configs were not deleted with their own type"
                ),
                TypeIs::Redefined => write!(
                    f,
                    "{resource} was deleted at the hub with its objects, and is defined again"
                ),
            },
        }
    }
}

/// Where the tokens of new holds are from.
pub(in crate::model) struct NewTokens {
    chance: fastrand::Rng,
    is_dry_run: bool,
}

impl NewTokens {
    pub(in crate::model) fn new(seed: u64, is_dry_run: bool) -> Self {
        Self {
            chance: fastrand::Rng::with_seed(seed),
            is_dry_run,
        }
    }

    /// Random, so that what confirmed one hold, and is still on a config, does not confirm the next one. Empty in a dry run:
    /// it would confirm nothing in any other.
    fn next(&mut self) -> String {
        if self.is_dry_run {
            return String::new();
        }
        format!("{:08x}", self.chance.u32(..))
    }
}

/// Deletes of one direction that are held.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    pub(super) reason: Reason,
    pub(super) token: String,
    /// When the deletes continue by themselves; never if absent.
    pub(super) until: Option<Instant>,
    /// It is from an earlier run: what it holds is not known before everything has been read, which a confirmation
    /// waits for until then.
    pub(super) resumed_until: Option<Instant>,
}

impl Hold {
    /// It begins, and is logged.
    pub(super) fn begin(direction: Direction, reason: Reason, until: Option<Instant>, tokens: &mut NewTokens) -> Self {
        let hold = Self::new(reason, until, tokens);
        hold.log(direction);
        hold
    }

    /// It begins.
    pub(super) fn new(reason: Reason, until: Option<Instant>, tokens: &mut NewTokens) -> Self {
        Self {
            reason,
            token: tokens.next(),
            until,
            resumed_until: None,
        }
    }

    /// The same deletes are held for another reason, until people or that reason release them. Their token stays the
    /// same.
    pub(super) fn go_on(direction: Direction, reason: Reason, token: String) -> Self {
        let hold = Self {
            reason,
            token,
            until: None,
            resumed_until: None,
        };
        hold.log(direction);
        hold
    }

    /// Logs it.
    pub(super) fn log(&self, direction: Direction) {
        let Self { reason, token, .. } = self;
        let confirm = if token.is_empty() {
            String::new()
        } else {
            let key = crate::api::CONFIRM_DELETES;
            format!("; to have them carried out at once, annotate a config at the hub with {key}={token}")
        };
        log_line!(
            Warn,
            DeletesHeld,
            "deletes are held",
            direction = direction,
            condition = reason.word(),
            because = reason,
            advice = format_args!("check the {}{}{confirm}", direction.origin(), reason.other_cause(),)
        );
    }

    /// The sentence about it in the condition on the configs.
    pub(super) fn message(&self, direction: Direction, held: usize) -> String {
        let Self { reason, token, .. } = self;
        let confirm = crate::api::CONFIRM_DELETES;
        let objects = if held == 1 { "object is" } else { "objects are" };
        format!("{direction}: {reason}; {held} {objects} held; confirm with the annotation {confirm}={token}")
    }

    /// The line about it in the record; `None` if a restart finds it out by itself.
    /// It names at least as many deletes as are held now.
    pub(super) fn line(&self, direction: Direction, held: usize) -> Option<String> {
        let Self { reason, token, .. } = self;
        let words = match reason {
            Reason::WentBack { resource, from, to } => format!("{resource} {from} {to}"),
            Reason::TooMany { pending, of } => format!("{} {}", pending.max(&held), of.max(pending).max(&held)),
            Reason::OtherCluster { .. } | Reason::Withdrawn { .. } | Reason::NotEmpty { .. } => return None,
        };
        Some(format!("{direction} {} {token} {words}\n", reason.word()))
    }

    /// Makes a hold from such a line. It ends after `grace` if it ends by time. `None` if the line has another form.
    pub(super) fn resume(line: &str, grace: Duration, now: Instant) -> Option<(Direction, Self)> {
        let (direction, reason, token) = parse(line)?;
        let until = match reason {
            Reason::TooMany { .. } if grace.is_zero() => return None,
            Reason::TooMany { .. } => Some(now + grace),
            _ => None,
        };
        let hold = Self {
            reason,
            token: token.to_owned(),
            until,
            resumed_until: Some(now + grace),
        };
        Some((direction, hold))
    }

    /// True if it is known what a confirmation of it would release.
    pub(super) fn may_be_confirmed(&self, all_is_read: bool, now: Instant) -> bool {
        all_is_read || self.resumed_until.is_none_or(|until| until <= now)
    }
}

/// True if a line of the record is about a hold.
pub(in crate::model) fn is_hold(line: &str) -> bool {
    parse(line).is_some()
}

/// Reads such a line: the direction, the reason and the token.
fn parse(line: &str) -> Option<(Direction, Reason, &str)> {
    let words: Vec<&str> = line.split(' ').collect();
    let (&[direction, reason, token], words) = words.split_first_chunk::<3>()?;
    let mut directions = [Direction::Down, Direction::Up].into_iter();
    let direction = directions.find(|known| known.to_string() == direction)?;
    let (reason, can_be) = match (reason, words) {
        (OLDER_VERSIONS, [resource, from, to]) => {
            let (from, to) = (from.parse().ok()?, to.parse().ok()?);
            let can_be = is_word(resource) && from > to;
            let resource = (*resource).to_owned();
            (Reason::WentBack { resource, from, to }, can_be)
        }
        (TOO_MANY, [pending, of]) => {
            let (pending, of) = (pending.parse().ok()?, of.parse().ok()?);
            (Reason::TooMany { pending, of }, (1..=of).contains(&pending))
        }
        _ => return None,
    };
    (can_be && is_word(token) && token.len() <= LONGEST_TOKEN).then_some((direction, reason, token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn holds_are_read_as_they_were_written_and_other_lines_are_left_out() {
        const LINES: &str = "upsync OlderVersions 7fd8379e secrets 452 297\ndownsync TooMany 7fd8379e 30 41\n";
        let grace = Duration::from_secs(600);
        let resource = "secrets".to_owned();
        let (from, to) = (452, 297);
        let reasons = [
            (Direction::Up, Reason::WentBack { resource, from, to }, None),
            (
                Direction::Down,
                Reason::TooMany { pending: 30, of: 41 },
                Some(Instant::now() + grace),
            ),
        ];
        let read: Vec<_> = LINES
            .lines()
            .filter_map(|line| Hold::resume(line, grace, Instant::now()))
            .collect();
        let written: String = read
            .iter()
            .filter_map(|(direction, hold)| hold.line(*direction, 0))
            .collect();
        assert_eq!(written, LINES);
        let read = read
            .into_iter()
            .map(|(direction, hold)| (direction, hold.reason, hold.until));
        assert_eq!(read.collect::<Vec<_>>(), reasons);
        for line in [
            "",
            "downsync TooMany",
            "sideways TooMany t 1 2",
            "downsync TooMany t 1",
            "downsync Else t 1 2",
            "upsync OlderVersions t a b c",
        ] {
            assert!(Hold::resume(line, grace, Instant::now()).is_none(), "{line}");
        }
        assert!(
            Hold::resume("downsync TooMany t 1 2", Duration::ZERO, Instant::now()).is_none(),
            "nothing is held"
        );
    }
}
