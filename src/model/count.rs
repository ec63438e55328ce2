//! How many copies there are, and are to go.

/// The copies of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    /// Those that are to go, and are not allowed to yet.
    pub(super) doomed: usize,
    /// Those whose origins have to be asked for: they may be to go.
    pub(super) suspect: usize,
    /// All.
    pub(super) copies: usize,
}
