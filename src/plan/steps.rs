//! A long computation in slices, so that all else is served in between.
//!
//! What planning reads is counted in steps: entries, conversions, types and names. A slice is so many of them. So a test
//! says how the cost of a plan grows and what one slice takes, on any machine.
//!
//! The computation is an ordinary function that says where it may [`pause`]. What it holds is its own, or is shared and
//! does not change. It waits for nothing: whoever wants the result gives it one slice after the other, or drops it.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

thread_local! {
    /// The steps that are left of the slice under way.
    static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
}

#[cfg(test)]
thread_local! {
    static TAKEN: Cell<usize> = const { Cell::new(0) };
}

/// One more thing is read.
pub(super) fn one() {
    many(1);
}

/// So many more are.
pub(crate) fn many(count: usize) {
    LEFT.with(|left| left.set(left.get().saturating_sub(count)));
    #[cfg(test)]
    TAKEN.with(|taken| taken.set(taken.get() + count));
}

/// How many were read since the last call.
#[cfg(test)]
pub(crate) fn taken() -> usize {
    TAKEN.with(|taken| taken.replace(0))
}

/// A computation may be interrupted here, if its slice is used up.
pub(crate) async fn pause() {
    poll_fn(|_| {
        if LEFT.get() == 0 {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
}

/// Computes the whole at once.
pub(super) fn whole<T>(work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    loop {
        if let Poll::Ready(result) = slice(work.as_mut(), &mut usize::MAX.clone()) {
            return result;
        }
    }
}

/// Continues with a computation for as many steps as are left, and notes how many then are.
fn slice<T>(work: Pin<&mut impl Future<Output = T>>, left: &mut usize) -> Poll<T> {
    LEFT.set(*left);
    let result = work.poll(&mut Context::from_waker(Waker::noop()));
    *left = LEFT.replace(usize::MAX);
    result
}

/// A computation that is made in slices.
pub(crate) struct Sliced<T>(Pin<Box<dyn Future<Output = T>>>);

impl<T> Sliced<T> {
    /// Nothing is done yet.
    pub(crate) fn new(work: impl Future<Output = T> + 'static) -> Self {
        Self(Box::pin(work))
    }

    /// Continues for as many steps as are left, and notes how many then are. The result, if that is the end.
    pub(crate) fn go_on(&mut self, left: &mut usize) -> Option<T> {
        match slice(Pin::new(&mut self.0), left) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn sum_up_to(most: usize) -> usize {
        let mut sum = 0;
        for number in 1..=most {
            one();
            sum += number;
            pause().await;
        }
        sum
    }

    #[test]
    fn a_computation_gives_the_same_in_slices_of_any_size_and_takes_no_more_than_these() {
        assert_eq!(whole(sum_up_to(100)), 5050);
        for size in [1, 7, 100, 1000] {
            let mut sliced = Sliced::new(sum_up_to(100));
            let (mut count, mut left) = (1, size);
            taken();
            let sum = loop {
                let result = sliced.go_on(&mut left);
                assert!(taken() <= size);
                if let Some(sum) = result {
                    break sum;
                }
                (count, left) = (count + 1, size);
            };
            // What ends with the last step of a slice has its result in the next one.
            assert_eq!((sum, count), (5050, 100 / size + 1), "slices of {size}");
        }
    }
}
