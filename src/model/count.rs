//! How many copies there are, and how many are to be deleted.

/// The copies of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    /// Those that are to be deleted, and may not be yet.
    pub(super) pending: usize,
    /// Those whose origins have to be asked for: they may have to be deleted too.
    pub(super) unverified: usize,
    /// All.
    pub(super) copies: usize,
}

impl std::iter::Sum for Count {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |all, more| Self {
            pending: all.pending + more.pending,
            unverified: all.unverified + more.unverified,
            copies: all.copies + more.copies,
        })
    }
}
