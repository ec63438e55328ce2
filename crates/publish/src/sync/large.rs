//! Large objects have their passes one after another, and those that are too large for the memory of the agent have none.
//!
//! What an object takes once it is read has little to do with the bytes of its text: a map of one field has 8 of these and
//! takes 700, and a pass has some copies of all. Who writes objects in a workspace chooses that: so only one large object
//! at a time counts for how much memory the agent needs, and no other one waits for that.

use std::cell::RefCell;
use std::fs;
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::trouble::Stop;

/// What an object takes in memory from which on it is large.
const LARGE: usize = 256 << 10;
/// The largest one, where nothing limits the memory of the agent.
const MOST: usize = 64 << 20;
/// Which part of the memory one object may take: a pass has up to six copies of it, and all else needs half.
const PART: usize = 12;
/// What to do about one that would take more.
const ADVICE: &str = "make it smaller, or give the agent more memory";
/// A node of a map, which has room for 11 fields.
const NODE: usize = 640;
/// An item or a field, with a share of what grows ahead.
const ITEM: usize = 64;

/// What all passes have in common.
pub(super) struct Limits {
    turn: Arc<Mutex<()>>,
    /// What the largest object may take.
    most: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            turn: Arc::default(),
            most: limit_of_memory().map_or(MOST, |limit| (limit / PART).min(MOST)),
        }
    }
}

/// The limit of the container, or of the systemd unit: of cgroup v2, or v1.
fn limit_of_memory() -> Option<usize> {
    let of_v2 = fs::read_to_string("/sys/fs/cgroup/memory.max");
    let text = of_v2.or_else(|_| fs::read_to_string("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
    text.ok()?.trim().parse().ok()
}

/// The turn of large objects, which a pass takes when it meets one, and has until it ends.
pub(super) struct Large<'a> {
    limits: &'a Limits,
    taken: RefCell<Option<OwnedMutexGuard<()>>>,
}

impl<'a> Large<'a> {
    pub(super) fn new(limits: &'a Limits) -> Self {
        Self {
            limits,
            taken: RefCell::default(),
        }
    }

    /// An object with this text is to be read: waits for the turn of large ones if it is one. Stops what is being done if
    /// it is too large.
    pub(super) async fn reads(&self, doing: &'static str, object: &[u8]) -> Result<(), Stop> {
        let weight = weight(object);
        if weight > self.limits.most {
            let words = format!(
                "it has so many fields and items that it would take {} MiB of memory, and for one object the agent has {} MiB",
                (weight >> 20) + 1,
                self.limits.most >> 20
            );
            return Err(Stop::because(doing, words, ADVICE));
        }
        let has_turn = self.taken.borrow().is_some();
        if weight >= LARGE && !has_turn {
            let turn = Arc::clone(&self.limits.turn).lock_owned().await;
            self.taken.replace(Some(turn));
        }
        Ok(())
    }
}

/// About how many bytes an object takes once it is read.
fn weight(object: &[u8]) -> usize {
    let (mut weight, mut is_text, mut is_escaped) = (object.len(), false, false);
    let mut before = b' ';
    for &byte in object {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            _ if is_text => {}
            // An empty one has no node.
            b':' if before == b'{' => weight += NODE + ITEM,
            b',' => weight += ITEM,
            _ => {}
        }
        if !is_text && matches!(byte, b'{' | b',' | b'[') {
            before = byte;
        }
    }
    weight
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn limits() -> Limits {
        Limits {
            turn: Arc::default(),
            most: 4 << 20,
        }
    }

    fn list(item: &Value, count: usize) -> Vec<u8> {
        json!({"x": vec![item; count]}).to_string().into_bytes()
    }

    #[tokio::test]
    async fn one_large_object_waits_for_another_and_no_small_one_does() {
        let limits = limits();
        let large = list(&json!({"a": 0}), 1000);
        let [one, other, small] = [(); 3].map(|()| Large::new(&limits));
        one.reads("reading", &large).await.unwrap();
        one.reads("reading", &large).await.unwrap();
        small.reads("reading", &list(&json!({"a": 0}), 100)).await.unwrap();
        assert!(small.taken.borrow().is_none());
        tokio::select! {
            biased;
            _ = other.reads("reading", &large) => panic!("it has the turn of another one"),
            () = tokio::task::yield_now() => {}
        }
        drop(one);
        other.reads("reading", &large).await.unwrap();
    }

    #[tokio::test]
    async fn what_is_too_large_for_the_memory_of_the_agent_is_refused_with_both_figures() {
        let limits = limits();
        let refused = Large::new(&limits)
            .reads("reading", &list(&json!({"a": 0}), 9000))
            .await;
        let Err(Stop::Fails(trouble)) = refused else {
            panic!("{refused:?}")
        };
        let words = &trouble.words;
        assert!(words.contains("take 7 MiB") && words.contains("has 4 MiB"), "{words}");
        for fine in [json!("x".repeat(3 << 20)), json!("{:,".repeat(500_000))] {
            Large::new(&limits).reads("reading", &list(&fine, 1)).await.unwrap();
        }
    }

    #[test]
    fn what_counts_is_what_an_object_takes_and_not_its_text() {
        for (item, each) in [
            (json!({"a": 0}), NODE + 2 * ITEM),
            (json!({}), ITEM),
            (json!(0), ITEM),
            (json!([]), ITEM),
            (json!({"a": {"b": 1, "c": 2}}), 2 * NODE + 4 * ITEM),
            (json!("{\"a\":0,\\"), ITEM),
        ] {
            let text = list(&item, 1000);
            let found = weight(&text) - text.len();
            let expected = NODE + 1000 * each;
            assert!(found.abs_diff(expected) <= ITEM, "{item} {found} {expected}");
        }
    }
}
