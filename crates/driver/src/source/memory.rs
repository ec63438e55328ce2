//! What a source that polls remembers of the objects it has reported: two numbers each, no names.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, DefaultHasher, Hash as _, Hasher as _};

use kube_lite::ObjectName;

/// Objects and the versions at which they are known.
///
/// Where two names have the same hash, each poll finds one of them changed: that costs a request, and loses nothing.
/// Nobody can choose such names, since each process hashes in another way.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// By the hash of a name: the version, and in the lowest bit the round that named the object last.
    known: HashMap<u64, u64>,
    /// Each complete list is a round, 0 and 1 in turn; one that fails is repeated, and what it named does not count.
    round: u64,
    under_way: bool,
}

impl Memory {
    /// A list begins, or begins again.
    pub(super) fn list_begins(&mut self) {
        if !self.under_way {
            self.under_way = true;
            self.round ^= 1;
            return;
        }
        let unnamed = self.round ^ 1;
        for version in self.known.values_mut() {
            *version = *version & !1 | unnamed;
        }
    }

    /// The list is complete: forgets what it did not name.
    pub(super) fn list_completes(&mut self) {
        self.under_way = false;
        let round = self.round;
        self.known.retain(|_, version| *version & 1 == round);
        // A first list may have been many times longer than what remains.
        if self.known.capacity() > 4 * self.known.len() {
            self.known.shrink_to_fit();
        }
    }

    /// The list names the object. True if it is known at this version.
    pub(super) fn is_named(&mut self, name: &ObjectName, version: u64) -> bool {
        let hash = self.hash_of(name);
        let Some(known) = self.known.get_mut(&hash) else {
            return false;
        };
        *known = *known & !1 | self.round;
        *known == version << 1 | self.round
    }

    /// The role has the object at this version.
    pub(super) fn insert(&mut self, name: &ObjectName, version: u64) {
        self.known.insert(self.hash_of(name), version << 1 | self.round);
    }

    /// The role knows nothing of the object.
    pub(super) fn remove(&mut self, name: &ObjectName) {
        self.known.remove(&self.hash_of(name));
    }

    fn hash_of(&self, name: &ObjectName) -> u64 {
        self.known.hasher().hash_one(name)
    }
}

/// A resource version as a number: itself on every known server, its hash where it is none.
pub(super) fn version_of(resource_version: &str) -> u64 {
    resource_version.parse().unwrap_or_else(|_| hash_of(resource_version))
}

fn hash_of(value: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(name: &str) -> ObjectName {
        ObjectName::new("shop", name)
    }

    /// Two objects at version 3, after one complete list.
    fn two_known() -> Memory {
        let mut memory = Memory::default();
        memory.list_begins();
        memory.insert(&name("a"), 3);
        memory.insert(&name("b"), 3);
        memory.list_completes();
        memory
    }

    #[test]
    fn knows_an_object_at_its_version_only() {
        let mut memory = two_known();
        memory.list_begins();
        assert!(memory.is_named(&name("a"), 3));
        assert!(!memory.is_named(&name("a"), 4));
        assert!(!memory.is_named(&name("c"), 3));
        assert!(!memory.is_named(&ObjectName::new("other", "a"), 3));
    }

    #[test]
    fn forgets_what_a_complete_list_did_not_name() {
        let mut memory = two_known();
        memory.list_begins();
        memory.is_named(&name("a"), 3);
        memory.list_completes();
        assert_eq!(memory.known.len(), 1);
        memory.list_begins();
        memory.list_completes();
        assert!(memory.known.is_empty());
    }

    #[test]
    fn a_list_that_fails_forgets_nothing() {
        let mut memory = two_known();
        for _ in 0..3 {
            memory.list_begins();
            memory.is_named(&name("a"), 3);
        }
        memory.is_named(&name("b"), 4);
        memory.list_completes();
        memory.list_begins();
        assert!(memory.is_named(&name("a"), 3) && memory.is_named(&name("b"), 3));
    }

    #[test]
    fn what_only_a_failed_list_named_is_forgotten() {
        let mut memory = two_known();
        memory.list_begins();
        memory.is_named(&name("a"), 3);
        memory.insert(&name("c"), 4);
        memory.list_begins();
        memory.is_named(&name("b"), 3);
        memory.list_completes();
        memory.list_begins();
        assert!(!memory.is_named(&name("a"), 3) && !memory.is_named(&name("c"), 4));
        assert!(memory.is_named(&name("b"), 3));
    }

    #[test]
    fn a_version_that_is_no_number_still_tells_objects_apart() {
        assert_eq!(version_of("17"), 17);
        assert_ne!(version_of("w/1"), version_of("w/2"));
        let mut memory = two_known();
        memory.insert(&name("a"), version_of("w/1"));
        assert!(memory.is_named(&name("a"), version_of("w/1")));
    }
}
