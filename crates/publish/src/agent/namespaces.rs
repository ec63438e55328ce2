//! Namespaces on the service cluster that the agent has made, and in which it has no copy any more: they go if nothing else
//! is in them.
//!
//! Promises: no copy is created while a namespace is asked whether it is empty, nor the other way round, so that none is
//! deleted with it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use kube_lite::logging::log_line;
use tokio::time::Instant;

use crate::sides::Primary;
use crate::sync::Cleared;

/// When one that was not empty is asked again, for the first time. Then after twice the time, and so on.
const FIRST: Duration = Duration::from_secs(10);
/// How often it is asked: what belongs to copies is gone by then, or stays.
const TRIES: u8 = 6;

/// For so long something may still be created that nobody waits for any more: a server lets no request last longer.
const IN_FLIGHT: Duration = Duration::from_secs(90);

/// See the module's doc.
#[derive(Debug, Default)]
pub(super) struct Namespaces {
    /// Those that a copy has left, and how often they were asked.
    left: BTreeMap<Rc<str>, u8>,
    /// One is being asked, and deleted if it is empty.
    is_clearing: bool,
    /// What is worked on that has no copy as far as is known: one may be created.
    placing: BTreeSet<Primary>,
    /// Until then, something may be created whose turn has ended without an answer.
    abandoned: Option<Instant>,
    /// The service cluster does not allow it.
    is_forbidden: bool,
}

impl Namespaces {
    /// A copy has left a namespace, and no other one is there. True if it is to be asked.
    pub(super) fn is_left(&mut self, name: &Rc<str>) -> bool {
        if self.is_forbidden || name.is_empty() {
            return false;
        }
        self.left.insert(Rc::clone(name), 0);
        true
    }

    /// Those that are to be asked.
    pub(super) fn names(&self) -> impl Iterator<Item = Rc<str>> {
        self.left.keys().cloned()
    }

    /// True if one may be asked now.
    pub(super) fn begin_clearing(&mut self, now: Instant) -> bool {
        let is_quiet = self.placing.is_empty() && self.abandoned.is_none_or(|until| until <= now);
        let may = !self.is_clearing && is_quiet;
        self.is_clearing |= may;
        may
    }

    /// True if a copy of this may be created now.
    pub(super) fn begin_placing(&mut self, primary: &Primary) -> bool {
        if !self.is_clearing {
            self.placing.insert(primary.clone());
        }
        !self.is_clearing
    }

    /// Its turn has ended without an answer: the server may still create what it was asked for.
    pub(super) fn is_abandoned(&mut self, primary: &Primary, now: Instant) {
        if self.placing.remove(primary) {
            self.abandoned = Some(now + IN_FLIGHT);
        }
    }

    /// Its turn is over.
    pub(super) fn is_placed(&mut self, primary: &Primary) {
        self.placing.remove(primary);
    }

    /// There is a copy in it again.
    pub(super) fn is_used(&mut self, name: &str) {
        self.left.remove(name);
    }

    /// Nobody knows.
    pub(super) fn is_not_cleared(&mut self) {
        self.is_clearing = false;
    }

    /// This has come of it. Gives when it is asked again, if it is.
    pub(super) fn is_cleared(&mut self, name: &str, cleared: &Cleared) -> Option<Duration> {
        self.is_clearing = false;
        match cleared {
            Cleared::NotEmpty(_) => {
                let tries = self.left.get_mut(name)?;
                *tries += 1;
                if *tries < TRIES {
                    return Some(FIRST * 2_u32.pow(u32::from(*tries) - 1));
                }
            }
            Cleared::Forbidden(_) => {
                self.is_forbidden = true;
                self.left.clear();
            }
            Cleared::Gone | Cleared::NotOurs => {}
        }
        self.left.remove(name);
        None
    }
}

/// What people are to see of it.
pub(super) fn report(name: &str, cleared: &Cleared) {
    match cleared {
        Cleared::Gone => log_line!(
            Info,
            NamespaceDeleted,
            "deleted a namespace that has no copies any more",
            side = "service",
            object = format!("Namespace/{name}")
        ),
        Cleared::NotOurs => {}
        Cleared::NotEmpty(found) => log_line!(
            Debug,
            NamespaceKept,
            "a namespace without copies is not empty",
            side = "service",
            object = format!("Namespace/{name}"),
            has = found
        ),
        Cleared::Forbidden(error) => log_line!(
            Info,
            NamespaceLeft,
            "namespaces without copies are kept, as the service cluster does not allow more",
            side = "service",
            object = format!("Namespace/{name}"),
            error = error,
            advice = "delete them, or apply manifests/publish/namespaces, and restart the agent"
        ),
    }
}

#[cfg(test)]
mod tests {
    use kube_lite::{Error, ObjectName};

    use super::*;
    use crate::sides::Side;

    fn primary(name: &str) -> Primary {
        Primary {
            route: 1,
            workspace: 7,
            sides: [Side::Service, Side::Shard(0)],
            name: ObjectName::in_workspace("c1", "shop", name),
        }
    }

    #[test]
    fn nothing_is_created_while_a_namespace_is_asked_nor_the_other_way_round() {
        let (mut namespaces, now) = (Namespaces::default(), Instant::now());
        let (web, api) = (primary("web"), primary("api"));
        assert!(namespaces.is_left(&"c1".into()));
        assert!(namespaces.begin_placing(&web));
        assert!(namespaces.begin_placing(&api));
        assert!(!namespaces.begin_clearing(now));
        namespaces.is_placed(&web);
        assert!(!namespaces.begin_clearing(now));
        namespaces.is_placed(&api);
        assert!(namespaces.begin_clearing(now));
        assert!(!namespaces.begin_clearing(now));
        assert!(!namespaces.begin_placing(&web));
        namespaces.is_not_cleared();
        assert!(namespaces.begin_placing(&web));
        assert_eq!(namespaces.names().count(), 1);
    }

    // Found by a history of faults: a namespace was deleted while the server still created a copy in it, for a pass that had
    // ended with its shard.
    #[test]
    fn nothing_is_asked_as_long_as_a_pass_without_an_answer_may_still_create_something() {
        let (mut namespaces, now) = (Namespaces::default(), Instant::now());
        namespaces.is_left(&"c1".into());
        assert!(namespaces.begin_placing(&primary("web")));
        namespaces.is_abandoned(&primary("web"), now);
        namespaces.is_placed(&primary("web"));
        assert!(!namespaces.begin_clearing(now) && !namespaces.begin_clearing(now + IN_FLIGHT / 2));
        // Others are worked on meanwhile.
        assert!(namespaces.begin_placing(&primary("api")));
        namespaces.is_placed(&primary("api"));
        namespaces.is_abandoned(&primary("api"), now + IN_FLIGHT);
        assert!(namespaces.begin_clearing(now + IN_FLIGHT));
    }

    #[test]
    fn one_that_is_not_empty_is_asked_ever_less_often_and_then_no_more() {
        let mut namespaces = Namespaces::default();
        let name = "c1".into();
        assert!(namespaces.is_left(&name));
        let found = Cleared::NotEmpty("ConfigMap/c1/x".to_owned());
        let mut waits = Vec::new();
        while let Some(wait) = namespaces.is_cleared(&name, &found) {
            waits.push(wait.as_secs());
        }
        assert_eq!(waits, [10, 20, 40, 80, 160]);
        assert_eq!(namespaces.names().count(), 0);
        // Another copy comes, and leaves it.
        assert!(namespaces.is_left(&name));
        assert_eq!(namespaces.is_cleared(&name, &Cleared::Gone), None);
        assert_eq!(namespaces.names().count(), 0);
        assert!(!namespaces.is_left(&"".into()));
        // Nobody asks again what is forbidden.
        let error = Error::BadAnswer(String::new());
        assert_eq!(namespaces.is_cleared(&name, &Cleared::Forbidden(error)), None);
        assert!(!namespaces.is_left(&name));
    }
}
