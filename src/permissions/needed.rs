//! Which rows of the table the present configs need, and of which types.

use driver::events;
use kube_lite::{ObjectName, ResourceType, may_be_a_crd};

use super::{On, Row, TABLE, When};
use crate::api::{GROUP, edge, edge_sync_config, syncer_config};
use crate::plan::{Direction, Plan, StatusPath, TypePlan};
use crate::side::Side;
use crate::sync::own_objects::{LEGACY_RECORD, lease_name, record_name};
use crate::sync::ownership::SyncTarget;

/// The group of roles, which grant permissions.
const ROLES: &str = "rbac.authorization.k8s.io";

/// What the permissions depend on, apart from the table.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Situation<'a> {
    /// What is synced.
    pub plan: &'a Plan,
    /// The syncer's own namespace at the edge.
    pub own_namespace: &'a str,
    /// Its sync target.
    pub sync_target: &'a SyncTarget,
    /// The hub is a workspace of kcp.
    pub is_kcp: bool,
    /// The hub serves the configs with a `/status` subresource.
    pub has_config_status: bool,
    /// Heartbeats are written.
    pub has_heartbeat: bool,
    /// The name of the object that stands for the edge, if the hub has such objects.
    pub edge: Option<String>,
    /// One of several syncers is active.
    pub elects_leader: bool,
    /// The sides that are polled, not watched.
    pub polled: &'a [Side],
    /// Roles are synced too.
    pub allows_escalation: bool,
    /// The account at the hub whose token is renewed, if it is.
    pub account: Option<ObjectName>,
    /// The Secret at the edge in which renewed tokens are kept.
    pub secret: Option<&'a ObjectName>,
}

/// One permission: the verbs for one resource, and the row that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permission {
    /// What it is for.
    pub row: &'static Row,
    /// API group.
    pub group: String,
    /// Plural, with `/status` for that subresource.
    pub resource: String,
    /// The names of the objects; of all if empty.
    pub names: Vec<String>,
    /// The namespace of the objects; absent for cluster-scoped ones, and for those in all namespaces.
    pub namespace: Option<String>,
    /// The verbs.
    pub verbs: Vec<&'static str>,
}

/// The permissions at one side, and what is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needed {
    /// In the order of the table.
    pub permissions: Vec<Permission>,
    /// Types, `resource.group`, that are selected, and that grant permissions.
    pub escalating: Vec<String>,
}

/// What the syncer needs at a side. No permission is named twice, except for single objects, such as the syncer's own:
/// whoever removes the rule of a selected type must not take these with it.
pub fn needed(side: Side, situation: &Situation<'_>) -> Needed {
    let mut found = Needed::default();
    for row in TABLE {
        if row.side == side && counts(row.when, situation) {
            for permission in resources(row, situation, &mut found.escalating) {
                add(&mut found.permissions, permission, situation.polled);
            }
        }
    }
    found.escalating.sort();
    found.escalating.dedup();
    found
}

/// Adds a permission without the verbs that one before it has.
fn add(permissions: &mut Vec<Permission>, mut permission: Permission, polled: &[Side]) {
    let is_polled = polled.contains(&permission.row.side);
    let is_single = !permission.names.is_empty() || permission.namespace.is_some();
    let mut verbs = std::mem::take(&mut permission.verbs);
    verbs.retain(|verb| {
        let mut before = permissions.iter().filter(|before| is_wider(before, &permission));
        let is_covered = !is_single && before.any(|before| before.verbs.contains(verb));
        (*verb != "watch" || !is_polled) && !is_covered
    });
    permission.verbs = verbs;
    if !permission.verbs.is_empty() {
        permissions.push(permission);
    }
}

/// True if a permission covers all objects of another one. An optional one does not count, since it may not be granted.
fn is_wider(wide: &Permission, other: &Permission) -> bool {
    let is_same = (&wide.group, &wide.resource) == (&other.group, &other.resource);
    let is_everywhere = wide.names.is_empty() && wide.namespace.is_none();
    is_same && is_everywhere && (!wide.row.is_optional || other.row.is_optional)
}

fn counts(when: When, situation: &Situation<'_>) -> bool {
    let syncs = |direction, is_so: &dyn Fn(&TypePlan) -> bool| types(situation, direction).any(is_so);
    let any = |direction| syncs(direction, &|_| true);
    let is_namespaced = |planned: &TypePlan| planned.at_edge.namespaced;
    let cascades = |planned: &TypePlan| {
        let at_edge = &planned.at_edge;
        at_edge.is("", "namespaces") || *at_edge == ResourceType::definitions()
    };
    match when {
        When::Always => true,
        When::Heartbeat => situation.has_heartbeat,
        When::Edges => situation.has_heartbeat && situation.edge.is_some(),
        When::Kcp => situation.is_kcp,
        When::KcpWithGroups => situation.is_kcp && syncs(Direction::Down, &|planned| !planned.at_hub.group.is_empty()),
        When::Namespaced => syncs(Direction::Down, &is_namespaced),
        When::Defined => syncs(Direction::Down, &|planned| may_be_a_crd(&planned.at_hub.group)),
        When::Direction(direction) => any(direction),
        When::BothWays => syncs(Direction::Down, &is_namespaced) && syncs(Direction::Up, &is_namespaced),
        When::Roles(direction) => situation.allows_escalation && syncs(direction, &|planned| gives(planned, direction)),
        When::Cascades => syncs(Direction::Down, &cascades),
        When::MoreToCome => !situation.plan.missing.is_empty() || !situation.plan.open.is_empty(),
        When::LeaderElect => situation.elects_leader,
        When::Renews => situation.account.is_some(),
        When::KeepsSecret => situation.secret.is_some(),
    }
}

fn types<'a>(situation: &Situation<'a>, direction: Direction) -> impl Iterator<Item = &'a TypePlan> {
    let types = situation.plan.types.values();
    types.filter(move |planned| planned.direction == direction)
}

/// True for a type whose copies grant permissions.
fn gives(planned: &TypePlan, direction: Direction) -> bool {
    at(planned, direction.copy()).group == ROLES
}

fn at(planned: &TypePlan, side: Side) -> &ResourceType {
    match side {
        Side::Edge => &planned.at_edge,
        Side::Hub => &planned.at_hub,
    }
}

/// A permission for one object, if there is one.
fn of_one(name: Option<&ObjectName>, permission: &Permission) -> Vec<Permission> {
    let of = |name: &ObjectName| Permission {
        names: vec![name.name.to_string()],
        namespace: Some(name.namespace().to_owned()),
        ..permission.clone()
    };
    name.map(of).into_iter().collect()
}

/// A permission for the object that stands for the edge alone.
fn of_edge(situation: &Situation<'_>, permission: Permission) -> Vec<Permission> {
    let names = situation.edge.iter().cloned().collect();
    vec![Permission { names, ..permission }]
}

/// A Namespace is deleted only after all types have been listed: so that permission and the delete are granted
/// together.
fn without_delete(mut permission: Permission) -> Permission {
    if (&*permission.group, &*permission.resource) == ("", "namespaces") {
        permission.verbs.retain(|verb| *verb != "delete");
    }
    permission
}

/// The permissions of a row. Types that are left out are added to `escalating`.
fn resources(row: &'static Row, situation: &Situation<'_>, escalating: &mut Vec<String>) -> Vec<Permission> {
    let one = |group: &str, resource: &str| Permission {
        row,
        group: group.to_owned(),
        resource: resource.to_owned(),
        names: Vec::new(),
        namespace: None,
        verbs: row.verbs.to_vec(),
    };
    let of_type = |resource: &ResourceType| one(&resource.group, &resource.resource);
    let own = |group: &str, resource: &str, names: Vec<String>| Permission {
        names,
        namespace: Some(situation.own_namespace.to_owned()),
        ..one(group, resource)
    };
    let configs = [syncer_config::RESOURCE, edge_sync_config::RESOURCE];
    match row.on {
        On::Configs => configs.map(|resource| one(GROUP, resource)).to_vec(),
        On::ConfigStatuses if !situation.has_config_status => configs.map(|resource| one(GROUP, resource)).to_vec(),
        On::ConfigStatuses => configs
            .map(|resource| one(GROUP, &format!("{resource}/status")))
            .to_vec(),
        On::EdgeObject => of_edge(situation, one(GROUP, edge::RESOURCE)),
        On::EdgeStatus => of_edge(situation, one(GROUP, &format!("{}/status", edge::RESOURCE))),
        On::Origins(direction) => types(situation, direction)
            .map(|planned| of_type(at(planned, direction.origin())))
            .collect(),
        On::Copies(direction) => {
            let may = |planned: &&TypePlan| {
                let is_left_out = gives(planned, direction) && !situation.allows_escalation;
                escalating.extend(is_left_out.then(|| at(planned, direction.copy()).qualified()));
                !is_left_out
            };
            let types = types(situation, direction).filter(may);
            types
                .map(|planned| without_delete(of_type(at(planned, direction.copy()))))
                .collect()
        }
        On::Statuses(direction) => types(situation, direction)
            .filter_map(|planned| match planned.status? {
                StatusPath::Subresource => {
                    let ResourceType { group, resource, .. } = &planned.at_hub;
                    Some(one(group, &format!("{resource}/status")))
                }
                StatusPath::Main => Some(of_type(&planned.at_hub)),
            })
            .collect(),
        On::Type(group, resource, names) => vec![Permission {
            names: names.iter().map(|&name| name.to_owned()).collect(),
            ..one(group, resource)
        }],
        On::Roles => ["roles", "clusterroles"].map(|resource| one(ROLES, resource)).to_vec(),
        On::Everything => vec![one("*", "*")],
        On::Record => vec![own("", "configmaps", vec![record_name(&situation.sync_target.uid)])],
        On::Events => {
            let namespace = (row.side == Side::Hub).then(|| events::NAMESPACE.to_owned());
            vec![Permission {
                namespace,
                ..one("events.k8s.io", "events")
            }]
        }
        On::FormerRecords => {
            let former = situation.sync_target.former.iter().map(|uid| record_name(uid));
            let names = former.chain([LEGACY_RECORD.to_owned()]).collect();
            vec![own("", "configmaps", names)]
        }
        On::Token => of_one(situation.account.as_ref(), &one("", "serviceaccounts/token")),
        On::Secret => of_one(situation.secret, &one("", "secrets")),
        On::Lease => {
            let name = lease_name(&situation.sync_target.uid);
            of_lease(own("coordination.k8s.io", "leases", vec![name]))
        }
    }
}

/// The permission to create an object cannot be limited to its name.
fn of_lease(lease: Permission) -> Vec<Permission> {
    let create = Permission {
        names: Vec::new(),
        verbs: vec!["create"],
        ..lease.clone()
    };
    let verbs = vec!["get", "patch"];
    vec![create, Permission { verbs, ..lease }]
}

#[cfg(test)]
#[path = "needed_tests.rs"]
mod tests;
