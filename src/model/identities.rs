//! Asking the sides which clusters they are: how far that has come.

/// Asking a side which cluster it is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IdentityCheck {
    pub(super) settled: Settled,
    /// How often its address had changed when it was last asked.
    pub(super) moves: u64,
}

/// Whether work that depends on which cluster a side is may continue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Settled {
    /// It has to be asked first.
    #[default]
    No,
    /// It has said which cluster it is, or does not seem to be able to.
    Yes,
    /// It was logged that nothing distinguishes it from another.
    Nameless,
}

impl IdentityCheck {
    /// True if the address of the side has changed since it was asked.
    pub(super) fn has_moved(&mut self, moves: u64) -> bool {
        if self.moves == moves {
            return false;
        }
        self.settled = Settled::No;
        true
    }

    /// True once the side has said which cluster it is, or does not seem to be able to.
    pub(super) fn is_settled(&self) -> bool {
        self.settled != Settled::No
    }
}
