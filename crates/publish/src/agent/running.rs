//! What is worked on by which route. The rules of a type may change while objects of it are worked on: then the new ones wait
//! for the end of that, so that an object is worked on once at a time.

use std::collections::BTreeMap;
use std::rc::Rc;

/// See the module's doc.
#[derive(Debug, Default)]
pub(super) struct Running {
    /// By route: the name of its PublishedResource, and how many objects are worked on.
    by_route: BTreeMap<u32, (Rc<str>, usize)>,
    /// Routes that have not begun, and the names of their PublishedResources.
    held: BTreeMap<u32, Rc<str>>,
}

impl Running {
    /// An object is worked on.
    pub(super) fn begins(&mut self, route: u32, name: &str) {
        let (_, count) = self.by_route.entry(route).or_insert_with(|| (name.into(), 0));
        *count += 1;
    }

    /// An object is worked on no longer. Gives the routes that may begin now.
    pub(super) fn ends(&mut self, route: u32) -> Vec<u32> {
        let Some((name, count)) = self.by_route.get_mut(&route) else {
            return Vec::new();
        };
        *count -= 1;
        if *count > 0 {
            return Vec::new();
        }
        let name = Rc::clone(name);
        self.by_route.remove(&route);
        if self.by_route.values().any(|(other, _)| *other == name) {
            return Vec::new();
        }
        let free = self.held.iter().filter(|(_, other)| **other == name);
        let free: Vec<u32> = free.map(|(route, _)| *route).collect();
        self.held.retain(|_, other| *other != name);
        free
    }

    /// Whether a route may begin now. If not, it begins when another one of that PublishedResource has ended.
    pub(super) fn may_begin(&mut self, route: u32, name: &str) -> bool {
        let is_busy = self.by_route.values().any(|(other, _)| **other == *name);
        if is_busy {
            self.held.insert(route, name.into());
        }
        !is_busy
    }

    /// A route has not begun yet.
    pub(super) fn is_held(&self, route: u32) -> bool {
        self.held.contains_key(&route)
    }

    /// A route is there no longer.
    pub(super) fn forget(&mut self, route: u32) {
        self.held.remove(&route);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Found by a test between servers: two passes by the rules before and after an edit made two copies of one object.
    #[test]
    fn new_rules_begin_when_nothing_is_worked_on_by_the_former_ones() {
        let mut running = Running::default();
        assert!(running.may_begin(0, "shops"));
        running.begins(0, "shops");
        running.begins(0, "shops");
        running.begins(5, "others");
        // Edited twice meanwhile.
        assert!(!running.may_begin(1, "shops") && running.is_held(1));
        running.forget(1);
        assert!(!running.may_begin(2, "shops"));
        assert!(running.ends(0).is_empty());
        assert!(running.ends(5).is_empty());
        assert_eq!(running.ends(0), [2]);
        assert!(!running.is_held(2) && running.may_begin(3, "shops"));
        assert!(running.ends(7).is_empty());
    }
}
