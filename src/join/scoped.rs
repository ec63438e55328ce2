//! What an edge may do with `--rbac=scoped`: what the configs need as they are at the hub.
//!
//! Promises: only reads; the rules are those of the table that `edge-syncer gen rbac` prints for the same configs. One
//! difference: the edge cannot be asked here, and is assumed to serve what the hub serves. What that leaves out is
//! reported.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use kube_lite::ObjectName;
use serde_json::{Value, json};

use super::hub::{self, Identity};
use super::register::Work;
use super::{Format, JoinError, Settings};
use crate::permissions::{Needed, Permission, Situation, needed, roles};
use crate::plan::{Bounds, Filter};
use crate::side::Side;
use crate::survey::{Survey, View, survey};
use crate::sync::ownership::SyncTarget;

/// The rules that the configs need.
#[derive(Debug)]
pub(super) struct Scope {
    /// The rules of the roles at the hub.
    pub(super) at_hub: hub::Rules,
    /// The rules of the roles at the edge, as YAML with comments.
    at_edge: Rules,
}

/// Lists of rules, as YAML.
#[derive(Debug, PartialEq)]
struct Rules {
    everywhere: String,
    /// In the syncer's own namespace.
    own: String,
}

impl Scope {
    /// The rules of this object, if it is a role at the edge.
    pub(super) fn rules(&self, object: &Value) -> Option<&str> {
        match object["kind"].as_str() {
            Some("ClusterRole") => Some(&self.at_edge.everywhere),
            Some("Role") => Some(&self.at_edge.own),
            _ => None,
        }
    }
}

/// What the configs need. `None` if they select nothing.
pub(super) async fn scope(
    work: &Work<'_>,
    identity: &Identity,
    settings: &Settings,
) -> Result<Option<Scope>, JoinError> {
    let failed = "cannot see what the configs select";
    let cluster = work.client.cluster().map_err(|error| work.error(failed, &error))?;
    let id = identity.id();
    let namespace = match (&identity.at_edge, settings.format) {
        (Some(namespace), _) => namespace,
        (None, Format::Manifest) => &id,
        (None, Format::Systemd) => super::NAMESPACE_OF_SERVICES,
    };
    let sync_target = SyncTarget {
        uid: identity.uid.clone(),
        former: Vec::new(),
    };
    let mut filter = Filter::default();
    filter.keep_out_of(Bounds::new(Some(namespace), Some(&id)));
    let view = View {
        config: None,
        sync_target: &sync_target,
        filter: &filter,
        own_namespace: Some(namespace),
        renaming: true,
    };
    let found = survey(&Rc::new(cluster), None, &view).await;
    let found = found.map_err(|(_, error)| work.failed(failed, &error))?;
    let polled: &[Side] = if settings.components.is_polled {
        &[Side::Hub]
    } else {
        &[]
    };
    let secret = ObjectName::new(namespace, &id);
    let situation = Situation {
        edge: Some(identity.edge_name()),
        elects_leader: settings.components.is_ha,
        account: Some(ObjectName::new(&identity.namespace, &id)),
        secret: Some(&secret),
        ..found.situation(&sync_target, namespace, polled)
    };
    let sides = [needed(Side::Hub, &situation), needed(Side::Edge, &situation)];
    for line in left_out(&found, &sides) {
        (work.say)(&line);
    }
    if found.plan.types.is_empty() {
        (work.say)(NOTHING_SELECTED);
        return Ok(None);
    }
    let [at_hub, at_edge] = sides;
    Ok(Some(Scope {
        at_hub: rules_at_hub(&at_hub, found.is_kcp),
        at_edge: rules_at_edge(&at_edge),
    }))
}

/// The message if no config selects anything.
const NOTHING_SELECTED: &str = "note: no config at the hub selects anything that it serves: the permissions are those for \
                                ConfigMaps, Services and Deployments; run the same command again once there are configs";

/// What cannot be granted, a line each.
fn left_out(found: &Survey, sides: &[Needed; 2]) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for why in &found.unreadable {
        lines.insert(format!("note: {why}; nothing is given for it"));
    }
    for missing in found.plan.missing.iter().filter(|missing| missing.is_reported()) {
        let place = missing.place.as_ref().map_or("a config", |place| &*place.config);
        lines.insert(format!(
            "note: the hub does not serve {missing}, which {place} selects: nothing is given for it; run the same command \
             again once it does"
        ));
    }
    for (_, what, error) in &found.unreported {
        lines.insert(format!(
            "note: the hub cannot say what it serves at {what}: {error}: nothing is given for it; run the same command again \
             once it can"
        ));
    }
    for resource in sides.iter().flat_map(|needed| &needed.escalating) {
        lines.insert(format!(
            "note: nothing is given for {resource}: whoever may write it can grant permissions beyond their own; \
             edge-syncer gen rbac --allow-escalation prints that"
        ));
    }
    lines
}

/// All in one role, in which names are those of the syncer's own objects; but what has a namespace and no name, as Events
/// have, is given in that namespace alone. Optional rules would be comments, so they are left out.
fn rules_at_hub(needed: &Needed, is_kcp: bool) -> hub::Rules {
    let mut everywhere = Vec::new();
    let mut within: BTreeMap<String, Vec<&Permission>> = BTreeMap::new();
    for permission in needed.permissions.iter().filter(|it| !it.row.is_optional) {
        match &permission.namespace {
            Some(namespace) if permission.names.is_empty() => {
                within.entry(namespace.clone()).or_default().push(permission);
            }
            _ => everywhere.push(permission),
        }
    }
    let rules = |of: &[&Permission]| -> Vec<Value> {
        serde_saphyr::from_str(&roles::rules(of)).expect("printed rules are YAML")
    };
    // Access to the workspace itself.
    let access = is_kcp.then(|| json!({"nonResourceURLs": ["/"], "verbs": ["access"]}));
    hub::Rules {
        everywhere: access.into_iter().chain(rules(&everywhere)).collect(),
        within: within
            .into_iter()
            .map(|(namespace, of)| (namespace, rules(&of).into()))
            .collect(),
    }
}

fn rules_at_edge(needed: &Needed) -> Rules {
    let is_own = |permission: &&Permission| permission.namespace.is_some();
    let (own, everywhere): (Vec<_>, Vec<_>) = needed.permissions.iter().partition(is_own);
    Rules {
        everywhere: roles::rules(&everywhere),
        own: roles::rules(&own),
    }
}
