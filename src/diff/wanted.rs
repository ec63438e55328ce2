//! Which of all changes are shown.

use kube_lite::ObjectName;

use crate::cli::DiffOptions;
use crate::engine::dry_run::Would;
use crate::plan::{Direction, Plan, Selection, TypePlan};
use crate::side::Side;
use crate::sync::job::Job;
use crate::sync::object::Address;

/// What was asked for.
pub(super) struct Wanted {
    /// Only this one, by its name at either side.
    object: Option<[String; 3]>,
    /// What is selected: by one config, if only that is wanted.
    plan: Plan,
    is_of_config: bool,
}

impl Wanted {
    /// What these options ask for; `plan` is that of the config that they name, or of all.
    pub(super) fn new(options: &DiffOptions, plan: Plan) -> Self {
        Self {
            object: options.object.clone(),
            plan,
            is_of_config: options.config.is_some(),
        }
    }

    /// True if something may be called so that the configs select; what it is called at the other side counts too.
    pub(super) fn may_be_selected(&self) -> bool {
        let Some([kind, namespace, name]) = &self.object else {
            return true;
        };
        let name = ObjectName::new(namespace, name);
        self.plan.types.values().any(|plan| {
            let selects = |at_edge: Option<ObjectName>| {
                at_edge.is_some_and(|name| plan.selector.selects(&name) != Selection::None)
            };
            plan.at_edge.kind.eq_ignore_ascii_case(kind) && selects(Some(name.clone()))
                || plan.at_hub.kind.eq_ignore_ascii_case(kind) && selects(at_edge(plan, Side::Hub, &name))
        })
    }

    /// True for what has to be tried to know what would become of what was asked for: a namespace or a CRD may be what
    /// that waits for.
    pub(super) fn tries(&self, job: &Job) -> bool {
        let (at_edge, others) = match job.direction {
            Direction::Down => (&job.copy_at, &job.origin),
            Direction::Up => (&job.origin, &job.copy_at),
        };
        if at_edge.resource.is("", "namespaces")
            || at_edge.resource.is("apiextensions.k8s.io", "customresourcedefinitions")
        {
            return true;
        }
        let is_so = |of: &Address, wanted| is_called(&of.resource.kind, &of.name, wanted);
        let is_it = |wanted| is_so(at_edge, wanted) || is_so(others, wanted);
        let is_selected = |plan: &TypePlan| {
            plan.at_edge == at_edge.resource && plan.selector.selects(&at_edge.name) != Selection::None
        };
        self.object.as_ref().is_none_or(is_it) && (!self.is_of_config || self.plan.types.values().any(is_selected))
    }

    pub(super) fn shows(&self, would: &Would) -> bool {
        let Some([kind, namespace, name]) = parts(&would.object) else {
            return true;
        };
        let name = ObjectName::new(namespace, name);
        let is_it = |wanted| self.is_called((would, kind, &name), wanted);
        self.object.as_ref().is_none_or(is_it) && (!self.is_of_config || self.selects(would, kind, &name))
    }

    /// True if that is what an object is called, at the side where it would be changed or at the other one.
    fn is_called(&self, (would, kind, name): (&Would, &str, &ObjectName), wanted: &[String; 3]) -> bool {
        let is_so = |kind: &str, name: &ObjectName| is_called(kind, name, wanted);
        let is_so_elsewhere = |plan: &TypePlan| {
            let (kind, other) = match would.side {
                Side::Hub => (&plan.at_edge.kind, plan.naming.at_edge(name)),
                Side::Edge => (&plan.at_hub.kind, plan.naming.at_hub(name)),
            };
            other.is_some_and(|name| is_so(kind, &name))
        };
        is_so(kind, name) || self.types(would, kind).any(is_so_elsewhere)
    }

    /// The types that an object may be of.
    fn types<'a>(&'a self, would: &Would, kind: &str) -> impl Iterator<Item = &'a TypePlan> {
        let version = would.now.as_ref().or(would.before.as_ref());
        let version = version
            .and_then(|object| object["apiVersion"].as_str())
            .unwrap_or_default();
        let group = version.split_once('/').map_or("", |(group, _)| group);
        self.plan.types.values().filter(move |plan| {
            let resource = match would.side {
                Side::Hub => &plan.at_hub,
                Side::Edge => &plan.at_edge,
            };
            *resource.kind == *kind && *resource.group == *group
        })
    }

    fn selects(&self, would: &Would, kind: &str, name: &ObjectName) -> bool {
        // It is made for what is upsynced, and no config names it.
        if would.side == Side::Hub && kind == "Namespace" {
            return true;
        }
        self.types(would, kind).any(|plan| {
            let at_edge = at_edge(plan, would.side, name);
            at_edge.is_some_and(|name| plan.selector.selects(&name) != Selection::None)
        })
    }
}

/// True for an object of this kind and name, if that is what it was asked for by.
fn is_called(kind: &str, name: &ObjectName, [of_kind, namespace, of_name]: &[String; 3]) -> bool {
    kind.eq_ignore_ascii_case(of_kind) && [name.namespace(), &*name.name] == [&**namespace, &**of_name]
}

/// Kind, namespace and name.
fn parts(object: &str) -> Option<[&str; 3]> {
    let (kind, rest) = object.split_once('/')?;
    let (namespace, name) = rest.split_once('/')?;
    Some([kind, namespace, name])
}

/// The name at the edge of what has this name at a side.
fn at_edge(plan: &TypePlan, side: Side, name: &ObjectName) -> Option<ObjectName> {
    match (plan.direction, side) {
        (Direction::Down, Side::Hub) => plan.named_copy(name),
        (Direction::Up, Side::Hub) => plan.named_origin(name),
        (_, Side::Edge) => Some(name.clone()),
    }
}
