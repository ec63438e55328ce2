//! Counts, in tests, what planning looks at: entries, conversions, types and names. So a test says how the cost of a plan
//! grows, on any machine.

#[cfg(test)]
thread_local! {
    static TAKEN: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// One more thing is read.
pub(super) fn one() {
    many(1);
}

/// So many more are.
pub(super) fn many(count: usize) {
    #[cfg(test)]
    TAKEN.with(|taken| taken.set(taken.get() + count));
    #[cfg(not(test))]
    let _ = count;
}

/// How many were read since the last call.
#[cfg(test)]
pub(super) fn taken() -> usize {
    TAKEN.with(|taken| taken.replace(0))
}
