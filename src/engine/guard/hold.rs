//! Why deletes are held, in words, and until when.

use tokio::time::Instant;

use crate::plan::Direction;

/// Why deletes are held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) enum Reason {
    /// Another cluster answers.
    OtherCluster { expected: String, found: String },
    /// A type has gone back to an older version.
    WentBack { resource: String, from: u64, to: u64 },
    /// Too many are to go.
    TooMany { doomed: usize, of: usize },
    /// The hub takes a type away, and its objects with it; or has defined it anew since.
    Withdrawn { resource: String, anew: bool },
    /// The end of an object would take along what is not to be deleted, this first of all.
    NotEmpty { object: String, first: String },
}

impl Reason {
    /// As the condition names it.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::OtherCluster { .. } => crate::api::OTHER_CLUSTER,
            Self::WentBack { .. } => crate::api::OLDER_VERSIONS,
            Self::TooMany { .. } => crate::api::TOO_MANY,
            Self::Withdrawn { .. } => crate::api::TYPE_WITHDRAWN,
            Self::NotEmpty { .. } => crate::api::NOT_EMPTY,
        }
    }

    /// True if it takes the place of what deletes are held for already: whoever confirms that has not confirmed this.
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
            Self::TooMany { doomed, of } => write!(f, "{doomed} of {of} copies are to go at once"),
            Self::Withdrawn { resource, anew: false } => {
                write!(f, "{resource} is being taken away at the hub, and its objects with it")
            }
            Self::NotEmpty { object, first } => {
                write!(f, "{object} would take along {first}, which is not to be deleted")
            }
            Self::Withdrawn { resource, anew: true } => {
                write!(
                    f,
                    "{resource} was taken away at the hub with its objects, and is defined anew"
                )
            }
        }
    }
}

/// Deletes of one direction that are held.
#[derive(Clone, Debug)]
pub(super) struct Hold {
    pub(super) reason: Reason,
    pub(super) token: String,
    /// When they go on by themselves; never if absent.
    pub(super) until: Option<Instant>,
}

impl Hold {
    pub(super) fn begin(direction: Direction, reason: Reason, until: Option<Instant>) -> Self {
        // By chance, so that what confirmed one hold, and still stands on a config, does not confirm the next one.
        let token = format!("{:08x}", fastrand::u32(..));
        Self::of(direction, reason, token, until)
    }

    pub(super) fn of(direction: Direction, reason: Reason, token: String, until: Option<Instant>) -> Self {
        log::warn!(
            "deletes are held direction={direction} reason=\"{reason}\" advice=\"look at the {}; to let them go on at once, \
             annotate a config at the hub with {}={token}\"",
            direction.origin(),
            crate::api::CONFIRM_DELETES,
        );
        Self { reason, token, until }
    }

    /// What the configs say about it.
    pub(super) fn message(&self, direction: Direction, held: usize) -> String {
        let Self { reason, token, .. } = self;
        let confirm = crate::api::CONFIRM_DELETES;
        format!("{direction}: {reason}; {held} objects are held; confirm with the annotation {confirm}={token}")
    }
}
