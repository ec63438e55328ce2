//! What was read of servers and hardly ever changes: which types they serve, which namespaces are there, and the paths of
//! workspaces. It need not be read at each pass.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use kube_lite::discovery::{Served, ServedResource, discover, discover_in};
use kube_lite::{Cluster, Error, ObjectName};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::large::Limits;
use crate::kinds::TypeOf;
use crate::sides::Side;
use crate::turn::Use;

/// For so long a type is taken to be served as it was.
const FRESH: Duration = Duration::from_secs(60);

/// For so long a type is taken to have no status: its schema may be changed by hand.
const LASTING: Duration = Duration::from_secs(600);
/// Of so many namespaces, and related objects, something is remembered. What is forgotten is tried, or said, once more.
const MOST: usize = 4096;

/// Whether something was tried. Whoever does that first holds it.
type IsTried = Rc<Mutex<bool>>;

/// See the module's doc. A side serves the same types in all workspaces that have them.
#[derive(Default)]
pub(crate) struct Known {
    types: RefCell<BTreeMap<(Side, TypeOf), (Instant, ServedResource)>>,
    paths: RefCell<BTreeMap<Box<str>, Box<str>>>,
    /// Namespaces in which something was to be created, and whether that was tried.
    namespaces: RefCell<BTreeMap<(Side, ObjectName), IsTried>>,
    /// Related objects whose status cannot be written.
    statusless: RefCell<BTreeSet<Use>>,
    /// Routes whose type in workspaces has no status, and since when that is known.
    without_status: RefCell<BTreeMap<u32, Instant>>,
    limits: Limits,
}

impl Known {
    /// What limits the objects that are in memory.
    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The path of a workspace, if it was read before. It never changes.
    pub(super) fn path(&self, workspace: &str) -> Option<String> {
        self.paths.borrow().get(workspace).map(ToString::to_string)
    }

    /// This is the path of a workspace.
    pub(super) fn is_path(&self, workspace: &str, path: &str) {
        self.paths.borrow_mut().insert(workspace.into(), path.into());
    }

    /// Whether it was tried to create something in a namespace.
    pub(super) fn namespace(&self, side: Side, name: &ObjectName) -> IsTried {
        let mut namespaces = self.namespaces.borrow_mut();
        if namespaces.len() >= MOST {
            namespaces.retain(|_, is_tried| Rc::strong_count(is_tried) > 1);
        }
        Rc::clone(namespaces.entry((side, name.clone())).or_default())
    }

    /// The status of this object cannot be written. True if that is news.
    pub(super) fn is_statusless(&self, object: Use) -> bool {
        let mut statusless = self.statusless.borrow_mut();
        if statusless.len() >= MOST && !statusless.contains(&object) {
            statusless.clear();
        }
        statusless.insert(object)
    }

    /// A workspace is there no longer.
    pub(crate) fn forget(&self, workspace: &str) {
        self.paths.borrow_mut().remove(workspace);
        // In it, and on the service cluster the one that has its name unless that is set otherwise.
        let is_of = |name: &ObjectName| name.workspace() == workspace || *name.name == *workspace;
        self.namespaces.borrow_mut().retain(|(_, name), _| !is_of(name));
    }

    /// The type of a route has no status in workspaces. True if that is news.
    pub(super) fn has_no_status(&self, route: u32) -> bool {
        let before = self.without_status.borrow_mut().insert(route, Instant::now());
        before.is_none()
    }

    /// True if the type of a route has none, as was found out not long ago.
    pub(super) fn is_without_status(&self, route: u32) -> bool {
        let known = self.without_status.borrow();
        known.get(&route).is_some_and(|since| since.elapsed() < LASTING)
    }

    /// The type as a side serves it, in a workspace if it has some. `None` if it does not serve it.
    pub(super) async fn served(
        &self,
        (side, server): (Side, &Rc<Cluster>),
        workspace: &str,
        type_of: &TypeOf,
    ) -> Result<Option<ServedResource>, Error> {
        let key = (side, type_of.clone());
        let is_fresh = |read: &Instant| read.elapsed() < FRESH;
        if let Some((_, served)) = self.types.borrow().get(&key).filter(|(read, _)| is_fresh(read)) {
            return Ok(Some(served.clone()));
        }
        let asked = (type_of.group.clone(), type_of.version.clone());
        let answer = if workspace.is_empty() {
            discover(server, &asked).await?
        } else {
            discover_in(server, workspace, &asked).await?
        };
        let Served::Resources(mut resources) = answer else {
            return Ok(None);
        };
        let Some(found) = resources.remove(&*type_of.resource) else {
            return Ok(None);
        };
        let mut types = self.types.borrow_mut();
        types.retain(|_, (read, _)| is_fresh(read));
        types.insert(key, (Instant::now(), found.clone()));
        Ok(Some(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_of_workspaces_and_objects_shrinks() {
        let known = Known::default();
        for workspace in ["c1", "c2"] {
            known.is_path(workspace, "root:org");
            known.namespace(Side::Shard(0), &ObjectName::in_workspace(workspace, "", "shop"));
            known.namespace(Side::Service, &ObjectName::new("", workspace));
        }
        known.forget("c1");
        assert_eq!((known.path("c1"), known.path("c2").is_some()), (None, true));
        assert_eq!(known.namespaces.borrow().len(), 2);
        let held = known.namespace(Side::Service, &ObjectName::new("", "held"));
        for index in 0..2 * MOST {
            known.namespace(Side::Service, &ObjectName::new("", &index.to_string()));
            assert!(known.is_statusless(index as Use));
        }
        assert!(known.namespaces.borrow().len() <= MOST && known.statusless.borrow().len() <= MOST);
        assert!(!known.is_statusless(2 * MOST as Use - 1));
        let again = known.namespace(Side::Service, &ObjectName::new("", "held"));
        assert!(Rc::ptr_eq(&held, &again));
    }
}
