//! Large objects have their passes one after another.
//!
//! A list of small numbers takes about sixteen times the bytes of its text once it is read, and a pass has some copies of
//! it. Who writes objects in a workspace chooses how large they are: so only one at a time counts for how much memory the
//! agent needs, and no other one waits for that.

use std::cell::RefCell;
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

/// The bytes of an object from which on it is large.
const LARGE: usize = 64 << 10;

/// The turn of large objects, which a pass takes when it meets one, and has until it ends.
pub(super) struct Large {
    turn: Arc<Mutex<()>>,
    taken: RefCell<Option<OwnedMutexGuard<()>>>,
}

impl Large {
    pub(super) fn new(turn: &Arc<Mutex<()>>) -> Self {
        Self {
            turn: Arc::clone(turn),
            taken: RefCell::default(),
        }
    }

    /// An object of so many bytes is to be read: waits for the turn of large ones if it is one.
    pub(super) async fn reads(&self, bytes: usize) {
        let has_turn = self.taken.borrow().is_some();
        if bytes >= LARGE && !has_turn {
            let turn = Arc::clone(&self.turn).lock_owned().await;
            self.taken.replace(Some(turn));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_large_object_waits_for_another_and_no_small_one_does() {
        let turn = Arc::default();
        let [one, other, small] = [(); 3].map(|()| Large::new(&turn));
        one.reads(LARGE).await;
        one.reads(LARGE).await;
        small.reads(LARGE - 1).await;
        assert!(small.taken.borrow().is_none());
        tokio::select! {
            biased;
            () = other.reads(LARGE) => panic!("it has the turn of another one"),
            () = tokio::task::yield_now() => {}
        }
        drop(one);
        other.reads(LARGE).await;
    }
}
