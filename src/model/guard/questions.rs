//! Asking the sides who they are: how far that has come.

use crate::cluster::Side;

/// Asking a side who it is.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::model) struct Question {
    /// The last answer was that of another cluster.
    pub(in crate::model) was_other: bool,
    pub(in crate::model) settled: Settled,
    /// How often its address had changed when it was asked last.
    pub(in crate::model) moves: u64,
}

/// Whether others may go on, as far as who a side is matters to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::model) enum Settled {
    /// It has to be asked first.
    #[default]
    No,
    /// It has told who it is, or does not seem to be able to.
    Yes,
    /// It was logged that nothing tells it from another.
    Nameless,
}

/// The questions to both sides.
#[derive(Debug, Default)]
pub(in crate::model) struct Questions([Question; 2]);

impl Questions {
    pub(in crate::model) fn to(&mut self, side: Side) -> &mut Question {
        &mut self.0[side as usize]
    }

    /// True if the address of a side has changed since it was asked.
    pub(in crate::model) fn has_moved(&mut self, side: Side, moves: u64) -> bool {
        let question = self.to(side);
        if question.moves == moves {
            return false;
        }
        question.settled = Settled::No;
        true
    }

    /// True once a side has told who it is, or does not seem to be able to.
    pub(in crate::model) fn are_settled(&self, side: Side) -> bool {
        self.0[side as usize].settled != Settled::No
    }
}
