//! How many copies there are, and how many are to be deleted.

/// The copies of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    /// Those that are to be deleted, and may not be yet.
    pub(super) doomed: usize,
    /// Those whose origins have to be asked for: they may have to be deleted too.
    pub(super) suspect: usize,
    /// All.
    pub(super) copies: usize,
}
