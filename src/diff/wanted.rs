//! Which of all changes are shown.

use kube_lite::ObjectName;

use crate::cli::DiffOptions;
use crate::engine::dry_run::Would;
use crate::plan::{Direction, Plan, Selection, TypePlan};
use crate::side::Side;

/// What was asked for.
pub(super) struct Wanted {
    /// Only this one.
    object: Option<[String; 3]>,
    /// Only what this plan, that of one config, selects.
    plan: Option<Plan>,
}

impl Wanted {
    /// What these options ask for; `plan` is that of the config that they name.
    pub(super) fn new(options: &DiffOptions, plan: Plan) -> Self {
        Self {
            object: options.object.clone(),
            plan: options.config.as_ref().map(|_| plan),
        }
    }

    pub(super) fn shows(&self, would: &Would) -> bool {
        let Some([kind, namespace, name]) = parts(&would.object) else {
            return true;
        };
        let is_it = |wanted: &[String; 3]| {
            kind.eq_ignore_ascii_case(&wanted[0]) && [namespace, name] == [&*wanted[1], &*wanted[2]]
        };
        self.object.as_ref().is_none_or(is_it) && self.plan.as_ref().is_none_or(|plan| selects(plan, would))
    }
}

/// Kind, namespace and name.
fn parts(object: &str) -> Option<[&str; 3]> {
    let (kind, rest) = object.split_once('/')?;
    let (namespace, name) = rest.split_once('/')?;
    Some([kind, namespace, name])
}

fn selects(plan: &Plan, would: &Would) -> bool {
    let Some([kind, namespace, name]) = parts(&would.object) else {
        return true;
    };
    // It is made for what is upsynced, and no config names it.
    if would.side == Side::Hub && kind == "Namespace" {
        return true;
    }
    let version = would.now.as_ref().or(would.before.as_ref());
    let version = version
        .and_then(|object| object["apiVersion"].as_str())
        .unwrap_or_default();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let name = ObjectName::new(namespace, name);
    plan.types.values().any(|plan| {
        let resource = match would.side {
            Side::Hub => &plan.at_hub,
            Side::Edge => &plan.at_edge,
        };
        let is_of_type = *resource.kind == *kind && *resource.group == *group;
        let at_edge = is_of_type.then(|| at_edge(plan, would.side, &name)).flatten();
        at_edge.is_some_and(|name| plan.selector.selects(&name) != Selection::None)
    })
}

/// The name at the edge of what has this name at a side.
fn at_edge(plan: &TypePlan, side: Side, name: &ObjectName) -> Option<ObjectName> {
    match (plan.direction, side) {
        (Direction::Down, Side::Hub) => plan.named_copy(name),
        (Direction::Up, Side::Hub) => plan.named_origin(name),
        (_, Side::Edge) => Some(name.clone()),
    }
}
