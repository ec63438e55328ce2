//! The workspaces of an initializer that have got everything and were let go, in case one is shown as waiting once more: kcp
//! and its controllers write an older list of initializers now and then. What was created is there all the same, so the
//! initializer only has to go again.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// How many are remembered. Whoever has been forgotten gets a whole run, which finds all that is there.
const MOST: usize = 512;

/// How a workspace was let go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Past {
    /// Tells it from another one with its id.
    pub(super) uid: Rc<str>,
    /// The edition of what it has got.
    pub(super) edition: u64,
    /// The version at which the initializer was off.
    pub(super) version: u64,
    /// Its path.
    pub(super) path: Rc<str>,
    /// How often the initializer had been put back before.
    pub(super) returns: u32,
}

/// See the module's doc.
#[derive(Default)]
pub(super) struct Finished {
    by_cluster: BTreeMap<Rc<str>, Past>,
    /// From the one that has been remembered for longest.
    order: VecDeque<Rc<str>>,
}

impl Finished {
    pub(super) fn remember(&mut self, cluster: &Rc<str>, past: Past) {
        if self.by_cluster.insert(Rc::clone(cluster), past).is_some() {
            return;
        }
        self.order.push_back(Rc::clone(cluster));
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_cluster.remove(&oldest);
        }
    }

    /// What is known of a workspace that is shown at this version. Nothing if it is another one, or if this is from before it
    /// was let go: that is old news, or the server was set back to an older state, where what was created is missing.
    pub(super) fn recall(&self, cluster: &str, uid: &str, version: u64) -> Option<&Past> {
        let past = self.by_cluster.get(cluster)?;
        (!uid.is_empty() && *past.uid == *uid && version > past.version).then_some(past)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn past(uid: &str, version: u64) -> Past {
        Past {
            uid: uid.into(),
            edition: 1,
            version,
            path: "root:a".into(),
            returns: 0,
        }
    }

    #[test]
    fn only_the_same_workspace_at_a_later_version_is_recalled() {
        let mut all = Finished::default();
        all.remember(&"a".into(), past("u", 5));
        all.remember(&"none".into(), past("", 5));
        for (cluster, uid, version, expected) in [
            ("a", "u", 6, true),
            ("a", "u", 5, false),
            ("a", "u", 4, false),
            ("a", "other", 6, false),
            ("a", "", 6, false),
            ("none", "", 6, false),
            ("b", "u", 6, false),
        ] {
            assert_eq!(
                all.recall(cluster, uid, version).is_some(),
                expected,
                "{cluster} {uid} {version}"
            );
        }
        all.remember(&"a".into(), past("u", 9));
        assert_eq!(all.recall("a", "u", 8), None, "it was let go again");
    }

    #[test]
    fn the_oldest_is_forgotten() {
        let mut all = Finished::default();
        for number in 0..=MOST {
            all.remember(&number.to_string().into(), past("u", 1));
        }
        assert_eq!((all.by_cluster.len(), all.order.len()), (MOST, MOST));
        assert_eq!(all.recall("0", "u", 2), None);
        assert!(all.recall("1", "u", 2).is_some());
    }
}
