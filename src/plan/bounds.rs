//! What no config may touch by default: what the edge's cluster and the syncer itself need to work.
//!
//! The hub decides what copies are. But a hub, or somebody who may write to it, must not take over the edge through its
//! system namespace, nor take away what the syncer needs to run. These objects are recognised by their names alone:
//! whoever may write other roles may still grant anything to anybody, and only a narrower role of the syncer, or
//! `--deny`, limits that.

use kube_lite::{ObjectName, ResourceType};

use super::Direction;

/// The flag that lifts it, which every refusal names.
pub(super) const FLAG: &str = "--allow-system";
const SYSTEM: &str = "kube-system";
const RBAC: &str = "rbac.authorization.k8s.io";

/// The names at the edge that stand for the system and for the syncer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds {
    namespace: Option<String>,
    account: Option<String>,
}

impl Bounds {
    /// The syncer runs in this namespace, if in any, as this service account of it.
    pub fn new(namespace: Option<&str>, account: Option<&str>) -> Self {
        Self {
            namespace: namespace.map(str::to_owned),
            account: account.map(str::to_owned),
        }
    }

    /// Why an object of the edge may not be synced that way; `None` if it may.
    pub(super) fn refuses(&self, direction: Direction, resource: &ResourceType, name: &ObjectName) -> Option<String> {
        let within: &str = match direction {
            Direction::Down if resource.stands_for("", "namespaces") => &name.name,
            Direction::Down => name.namespace(),
            Direction::Up if resource.is("", "secrets") => name.namespace(),
            Direction::Up => return None,
        };
        let why = if within == SYSTEM {
            format!("the namespace {SYSTEM} is protected")
        } else if self.namespace.as_deref() == Some(within) {
            "the syncer's own namespace is protected".to_owned()
        } else if direction == Direction::Down && self.is_own_role(resource, name) {
            "the syncer's own roles are protected".to_owned()
        } else {
            return None;
        };
        Some(format!("{why}; {FLAG} lifts that"))
    }

    /// True for the cluster roles of the syncer and their bindings: its manifest gives all of them one name, that of its
    /// service account and, unless people choose another one, of its namespace.
    fn is_own_role(&self, resource: &ResourceType, name: &ObjectName) -> bool {
        let is_role = resource.stands_for(RBAC, "clusterroles") || resource.stands_for(RBAC, "clusterrolebindings");
        let mut own = self.namespace.iter().chain(&self.account);
        is_role && own.any(|own| **own == *name.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bounds: &Bounds, direction: Direction, kind: (&str, &str), object: &str, reason: &str) {
        let (group, resource) = kind;
        let resource = ResourceType {
            group: group.into(),
            version: "v1".into(),
            resource: resource.into(),
            kind: String::new(),
            namespaced: object.contains('/'),
        };
        let (namespace, name) = object.split_once('/').unwrap_or(("", object));
        let found = bounds.refuses(direction, &resource, &ObjectName::new(namespace, name));
        let expected = match reason {
            "" => None,
            reason => Some(format!("{reason} protected; --allow-system lifts that")),
        };
        assert_eq!(found, expected, "{direction:?} {kind:?} {object}");
    }

    #[test]
    fn the_system_and_the_syncer_are_out_of_bounds() {
        const SYSTEM: &str = "the namespace kube-system is";
        const OWN: &str = "the syncer's own namespace is";
        const ROLES: &str = "the syncer's own roles are";
        const OPENSHIFT: &str = "authorization.openshift.io";
        let bounds = Bounds::new(Some("syncer-ns"), Some("syncer-sa"));
        for (kind, object, down, up) in [
            (("", "configmaps"), "kube-system/x", SYSTEM, ""),
            (("", "secrets"), "kube-system/x", SYSTEM, SYSTEM),
            (("", "namespaces"), "kube-system", SYSTEM, ""),
            (("", "secrets"), "syncer-ns/x", OWN, OWN),
            (("example.org", "secrets"), "syncer-ns/x", OWN, ""),
            (("", "serviceaccounts"), "syncer-ns/syncer-sa", OWN, ""),
            (("", "namespaces"), "syncer-ns", OWN, ""),
            ((RBAC, "clusterroles"), "syncer-ns", ROLES, ""),
            ((RBAC, "clusterrolebindings"), "syncer-sa", ROLES, ""),
            ((RBAC, "clusterroles"), "shop", "", ""),
            // What OpenShift serves a second time.
            ((OPENSHIFT, "clusterroles"), "syncer-ns", ROLES, ""),
            ((OPENSHIFT, "clusterroles"), "shop", "", ""),
            (("project.openshift.io", "projects"), "kube-system", SYSTEM, ""),
            (("project.openshift.io", "projects"), "syncer-ns", OWN, ""),
            ((RBAC, "clusterroles"), "kube-system", "", ""),
            ((RBAC, "roles"), "shop/syncer-sa", "", ""),
            (("", "secrets"), "shop/kube-system", "", ""),
            (("", "namespaces"), "shop", "", ""),
            (("", "nodes"), "syncer-ns", "", ""),
        ] {
            check(&bounds, Direction::Down, kind, object, down);
            check(&bounds, Direction::Up, kind, object, up);
        }
        // Where it does not know where it runs, there is nothing of its own to protect.
        let nowhere = Bounds::default();
        check(&nowhere, Direction::Down, ("", "configmaps"), "kube-system/x", SYSTEM);
        check(&nowhere, Direction::Down, ("", "secrets"), "default/x", "");
        check(&nowhere, Direction::Down, (RBAC, "clusterroles"), "syncer-sa", "");
    }
}
