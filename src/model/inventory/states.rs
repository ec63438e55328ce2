//! The states of a link, and how it gets from one to the next.
//!
//! Every change of what is known of an origin is a [`News`] for [`Origin::after`], which is the whole table.

use super::ListEpoch;

/// What is known of an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::model) enum Origin {
    /// Nothing has reported it.
    Unknown,
    /// Its copy has turned up after a list of origins had begun, which did not name it: somebody else has made the
    /// copy, perhaps from an origin that is newer than that list. It has to be asked for.
    Unverified,
    /// It is there; with the list that named it last. What it wants is in [`Link::wanted`](super::Link::wanted):
    /// nothing, if it is not selected.
    Named(ListEpoch),
    /// It is not there, as its side has reported.
    Absent(Retirement),
}

/// How far the copy of an absent origin has been handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::model) enum Retirement {
    /// It has to be deleted or released.
    Due,
    /// The same, and the copies' side has reported it since, so that the next list of origins decides again.
    DueAgain,
    /// A worker has handled it.
    Done,
}

/// Whether a copy whose origin is gone may be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::model) enum Permit {
    /// It may be deleted unless a hold keeps it.
    Needed,
    /// People or time have ended the hold that kept it.
    Given,
}

/// News about an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// A list or watch has named it, or a worker has found it where this list was complete.
    NamedBy(ListEpoch),
    /// A worker has found it where no list is complete.
    Found,
    /// Its side has reported that it is not there.
    Gone,
    /// A list has not named it, but may have passed its place before it was selected.
    PassedBy,
    /// A copy has turned up, and a list should have shown its origin.
    CopyTurnedUp,
    /// The copies' side has reported a change of the copy, or everything is read again.
    CopyChanged,
    /// Everything is read again, and a list of copies will name the copy.
    LooksAgain,
    /// A worker has handled it. Its side has reported nothing meanwhile, and there is no origin.
    SeenToWithoutOrigin,
    /// A worker has handled it. Its side has reported nothing meanwhile, and the origin wants a copy.
    SeenTo,
    /// A worker has handled it, but its side has reported something meanwhile, which counts instead.
    SeenToLate,
}

impl Origin {
    /// The state that follows from this one and the news.
    #[expect(clippy::match_same_arms, reason = "a table has a row for each case")]
    pub(super) fn after(self, news: News) -> Self {
        use Origin::{Absent, Named, Unknown, Unverified};
        use Retirement::{Done, Due, DueAgain};
        match (self, news) {
            (_, News::NamedBy(list)) => Named(list),
            (Named(_), News::PassedBy) => Unknown,
            (Named(list), _) if news != News::Gone => Named(list),
            (_, News::Gone) => Absent(Due),
            (_, News::Found) => Unknown,

            (Unknown, News::CopyTurnedUp) => Unverified,
            (Absent(Due), News::CopyChanged | News::LooksAgain) => Absent(DueAgain),
            // Nothing is known of the origin of the copy as it is now.
            (Absent(Done), News::CopyChanged | News::LooksAgain) => Unknown,
            (Unverified, News::LooksAgain) => Unknown,

            (Unverified, News::SeenToWithoutOrigin) => Absent(Done),
            (Unverified, News::SeenToLate) | (_, News::SeenTo) => Unknown,
            (Absent(Due), News::SeenToWithoutOrigin) => Absent(Done),
            (Absent(DueAgain), News::SeenToWithoutOrigin) => Unknown,

            (unchanged, _) => unchanged,
        }
    }

    /// The list that named it last; 0 if it is not known to be there.
    pub(super) fn list(self) -> ListEpoch {
        match self {
            Self::Named(list) => list,
            _ => 0,
        }
    }

    /// True if its copy is to be deleted or released.
    pub(super) fn is_retiring(self) -> bool {
        matches!(self, Self::Absent(Retirement::Due | Retirement::DueAgain))
    }
}

/// What is known of the copy, apart from how it was last seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::model) enum Trace {
    /// It is as it was seen last.
    Seen,
    /// We have asked for its end, and it is still there.
    Ends,
    /// The copies' side said that it is gone. Perhaps it has only lost the label by which it is watched.
    Lost,
    /// Its origin is a Job that has finished: it needs no copy any more.
    NotNeeded,
    /// In a dry run: what would be done has been shown, and nothing has changed since.
    Shown,
}

/// Whether a worker has it, and what the last try has left open at the copies' side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// No worker has it.
    Idle(LeftOpen),
    /// A worker has it. What the copies' side reports meanwhile may be the worker's own write, so it is judged by the
    /// outcome.
    Running(LeftOpen),
}

/// What a try has left open at the copies' side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::model) enum LeftOpen {
    /// Nothing: it came to an end.
    Nothing,
    /// It was refused: nothing has changed, and a worker has to handle the object again.
    Refused,
    /// A write may have taken effect without an answer, or there may be what was not reported: a worker reads first.
    Unsure,
}

impl Work {
    pub(super) fn is_running(self) -> bool {
        matches!(self, Self::Running(_))
    }

    pub(super) fn left_open(self) -> LeftOpen {
        match self {
            Self::Idle(left_open) | Self::Running(left_open) => left_open,
        }
    }

    /// The same, with something left open.
    pub(super) fn with(self, left_open: LeftOpen) -> Self {
        match self {
            Self::Idle(_) => Self::Idle(left_open),
            Self::Running(_) => Self::Running(left_open),
        }
    }
}

/// Which sides have reported the object since a worker took it, so that the worker may know less.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reported {
    Nothing,
    Origin,
    Copy,
    Both,
}

impl Reported {
    pub(super) fn of_origin(self) -> bool {
        matches!(self, Self::Origin | Self::Both)
    }

    pub(super) fn of_copy(self) -> bool {
        matches!(self, Self::Copy | Self::Both)
    }

    pub(super) fn and_origin(self) -> Self {
        if self.of_copy() { Self::Both } else { Self::Origin }
    }

    pub(super) fn and_copy(self) -> Self {
        if self.of_origin() { Self::Both } else { Self::Copy }
    }
}

#[cfg(test)]
mod tests {
    use super::Origin::{Absent, Named, Unknown, Unverified};
    use super::Retirement::{Done, Due, DueAgain};
    use super::*;

    const FROM: [Origin; 6] = [
        Unknown,
        Unverified,
        Named(1),
        Absent(Due),
        Absent(DueAgain),
        Absent(Done),
    ];

    // Each row: the news, and what each state of `FROM` becomes by it.
    #[test]
    fn an_origin_goes_from_state_to_state_as_the_table_says() {
        let table = [
            (News::NamedBy(2), [Named(2); 6]),
            (News::Gone, [Absent(Due); 6]),
            (News::Found, [Unknown, Unknown, Named(1), Unknown, Unknown, Unknown]),
            (
                News::PassedBy,
                [
                    Unknown,
                    Unverified,
                    Unknown,
                    Absent(Due),
                    Absent(DueAgain),
                    Absent(Done),
                ],
            ),
            (
                News::CopyTurnedUp,
                [
                    Unverified,
                    Unverified,
                    Named(1),
                    Absent(Due),
                    Absent(DueAgain),
                    Absent(Done),
                ],
            ),
            (
                News::CopyChanged,
                [
                    Unknown,
                    Unverified,
                    Named(1),
                    Absent(DueAgain),
                    Absent(DueAgain),
                    Unknown,
                ],
            ),
            (
                News::LooksAgain,
                [Unknown, Unknown, Named(1), Absent(DueAgain), Absent(DueAgain), Unknown],
            ),
            (
                News::SeenToWithoutOrigin,
                [Unknown, Absent(Done), Named(1), Absent(Done), Unknown, Absent(Done)],
            ),
            (News::SeenTo, [Unknown, Unknown, Named(1), Unknown, Unknown, Unknown]),
            (
                News::SeenToLate,
                [Unknown, Unknown, Named(1), Absent(Due), Absent(DueAgain), Absent(Done)],
            ),
        ];
        for (news, after) in table {
            assert_eq!(FROM.map(|origin| origin.after(news)), after, "{news:?}");
        }
    }

    #[test]
    fn nothing_but_its_own_side_makes_a_copy_retire() {
        for origin in FROM.into_iter().filter(|origin| !origin.is_retiring()) {
            for news in [
                News::NamedBy(2),
                News::Found,
                News::PassedBy,
                News::CopyTurnedUp,
                News::CopyChanged,
                News::LooksAgain,
                News::SeenToWithoutOrigin,
                News::SeenTo,
                News::SeenToLate,
            ] {
                assert!(!origin.after(news).is_retiring(), "{origin:?} {news:?}");
            }
        }
    }
}
