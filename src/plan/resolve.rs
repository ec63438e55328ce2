//! The second step: what is wanted, held against what both sides serve.

use std::collections::BTreeMap;

use super::wanted::{Wanted, WantedType};
use super::{Problem, Selector};
use crate::cluster::discovery::{Discovery, GroupVersion, ServedResource};
use crate::cluster::{ResourceType, Side, qualified};

/// What to sync now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// By group and plural.
    pub types: BTreeMap<(String, String), TypePlan>,
    /// What is selected and cannot be synced because a side does not serve it.
    pub missing: Vec<Missing>,
    /// What in the configs cannot be followed.
    pub problems: Vec<Problem>,
}

/// One resource to sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypePlan {
    /// The type at the hub; at the edge if the hub no longer serves it.
    pub resource: ResourceType,
    /// The type at the edge: the same version, or another one that the edge serves instead.
    pub at_edge: ResourceType,
    /// Its selected objects.
    pub selector: Selector,
    /// False if no config asks for it any more.
    pub selected: bool,
    /// The hub does not serve it, and no config asks for it: its hub objects are gone, if the hub says so repeatedly.
    pub gone_at_hub: bool,
}

/// A selected resource that a side does not serve. It is picked up when it appears.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Missing {
    /// The side.
    pub side: Side,
    /// Group of the resource.
    pub group: String,
    /// Version of the resource.
    pub version: String,
    /// Plural of the resource.
    pub resource: String,
    /// The config that asks for it, the first by name.
    pub config: String,
    /// The field in it. Empty, as the config, for a type that is only retained.
    pub field: String,
}

impl Missing {
    /// The group version to ask for again.
    pub fn group_version(&self) -> GroupVersion {
        (self.group.clone(), self.version.clone())
    }
}

impl Wanted {
    /// The group versions that the plan needs to know of.
    pub fn group_versions(&self) -> impl Iterator<Item = GroupVersion> + '_ {
        self.types
            .iter()
            .map(|((group, _), wanted)| (group.clone(), wanted.version.clone()))
    }
}

impl Plan {
    /// Holds `wanted` against what is known of each side. A group version that a side has not answered for yet is
    /// neither planned nor missing.
    pub fn resolve(wanted: &Wanted, hub: &Discovery, edge: &Discovery) -> Self {
        let mut plan = Self {
            problems: wanted.problems.clone(),
            ..Self::default()
        };
        for ((group, resource), wanted) in &wanted.types {
            let version = &wanted.version;
            if !hub.knows(group, version) || !edge.knows(group, version) {
                continue;
            }
            let at_hub = hub.find(group, version, resource);
            let at_edge = edge
                .find(group, version, resource)
                .or_else(|| edge.find_other(group, resource));
            for (side, found) in [(Side::Hub, at_hub), (Side::Edge, at_edge)] {
                if found.is_none() {
                    plan.missing.push(missing(side, group, resource, wanted));
                }
            }
            if let Some(type_plan) = plan.type_plan(wanted, at_hub, at_edge) {
                plan.types.insert((group.clone(), resource.clone()), type_plan);
            }
        }
        plan
    }

    fn type_plan(
        &mut self,
        wanted: &WantedType,
        at_hub: Option<&ServedResource>,
        at_edge: Option<&ServedResource>,
    ) -> Option<TypePlan> {
        let selected = wanted.is_selected();
        let at_edge = at_edge?;
        let gone_at_hub = at_hub.is_none() && !selected;
        let at_hub = at_hub.or(gone_at_hub.then_some(at_edge))?;
        let watchable = at_hub.watchable && at_edge.watchable;
        if let Some(why) = mismatch(&at_hub.resource, &at_edge.resource, watchable) {
            self.report(wanted, &why);
            return None;
        }
        self.report_wrong_scope(wanted, &at_hub.resource);
        Some(TypePlan {
            resource: at_hub.resource.clone(),
            at_edge: at_edge.resource.clone(),
            selector: wanted.selector.of_scope(at_hub.resource.namespaced),
            selected,
            gone_at_hub,
        })
    }

    /// Reports each place that names the resource where resources of the other scope belong.
    fn report_wrong_scope(&mut self, wanted: &WantedType, resource: &ResourceType) {
        for origin in &wanted.origins {
            if origin
                .namespaced
                .is_some_and(|namespaced| namespaced != resource.namespaced)
            {
                let (is, belongs) = if resource.namespaced {
                    ("namespaced", "namespacedObjects or namespaceScope")
                } else {
                    ("cluster-scoped", "clusterScope")
                };
                let name = resource.qualified();
                self.problems.push(Problem {
                    config: origin.config.clone(),
                    field: format!("{}.resource", origin.field),
                    message: format!("{name} is {is}; name it in {belongs}"),
                });
            }
        }
    }

    fn report(&mut self, wanted: &WantedType, why: &str) {
        for origin in &wanted.origins {
            self.problems.push(Problem {
                config: origin.config.clone(),
                field: format!("{}.resource", origin.field),
                message: why.to_owned(),
            });
        }
    }
}

fn missing(side: Side, group: &str, resource: &str, wanted: &WantedType) -> Missing {
    let origin = wanted.origins.first();
    Missing {
        side,
        group: group.to_owned(),
        version: wanted.version.clone(),
        resource: resource.to_owned(),
        config: origin.map_or_else(String::new, |origin| origin.config.clone()),
        field: origin.map_or_else(String::new, |origin| origin.field.clone()),
    }
}

/// Why a resource that both sides serve cannot be synced all the same.
fn mismatch(hub: &ResourceType, edge: &ResourceType, watchable: bool) -> Option<String> {
    let name = qualified(&hub.group, &hub.resource);
    if hub.kind != edge.kind || hub.namespaced != edge.namespaced {
        let scope = |resource: &ResourceType| {
            if resource.namespaced {
                "namespaced"
            } else {
                "cluster-scoped"
            }
        };
        Some(format!(
            "{name} is a {} {} at the hub and a {} {} at the edge; the entry is not synced",
            scope(hub),
            hub.kind,
            scope(edge),
            edge.kind
        ))
    } else if watchable {
        None
    } else {
        Some(format!("{name} cannot be listed and watched; the entry is not synced"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::syncer_config::SyncerConfig;
    use crate::cluster::discovery::Served;
    use crate::plan::SyncedType;

    fn discovery(resources: &[(&str, &str, bool)]) -> Discovery {
        let mut discovery = Discovery::default();
        for group in ["", "g"] {
            discovery
                .known
                .insert((group.to_owned(), "v1".to_owned()), Served::Resources(BTreeMap::new()));
        }
        for &(group, plural, namespaced) in resources {
            let resource = ResourceType {
                group: group.into(),
                version: "v1".into(),
                resource: plural.into(),
                kind: "Kind".into(),
                namespaced,
            };
            let served = ServedResource {
                resource,
                watchable: true,
                status_subresource: false,
            };
            let Some(Served::Resources(known)) = discovery.known.get_mut(&(group.to_owned(), "v1".to_owned())) else {
                panic!("inserted above");
            };
            known.insert(plural.to_owned(), served);
        }
        discovery
    }

    fn wanted(spec: &serde_json::Value) -> Wanted {
        let object = serde_json::json!({"metadata": {"name": "c"}, "spec": spec}).to_string();
        Wanted::from_configs([&SyncerConfig::parse(object.as_bytes()).unwrap()])
    }

    fn gauges_and_configmaps() -> Wanted {
        wanted(&serde_json::json!({
            "clusterScope": [{"group": "g", "resource": "gauges", "apiVersion": "v1"}],
            "namespacedObjects": [{"group": "", "resource": "configmaps", "apiVersion": "v1",
                "objectsByNamespace": [{"namespace": "shop", "names": ["x"]}]}],
        }))
    }

    const CORE: [(&str, &str, bool); 2] = [("", "configmaps", true), ("", "namespaces", false)];

    #[test]
    fn plans_what_both_sides_serve_and_names_what_is_missing_where() {
        let mut hub = CORE.to_vec();
        hub.push(("g", "gauges", false));
        let plan = Plan::resolve(&gauges_and_configmaps(), &discovery(&hub), &discovery(&CORE));
        let planned: Vec<_> = plan
            .types
            .values()
            .map(|planned| planned.resource.qualified())
            .collect();
        assert_eq!(planned, ["configmaps", "namespaces"]);
        assert_eq!(plan.missing.len(), 1);
        assert_eq!(
            (plan.missing[0].side, plan.missing[0].resource.as_str()),
            (Side::Edge, "gauges")
        );
        assert_eq!(plan.missing[0].field, "clusterScope[0]");
    }

    #[test]
    fn an_edge_that_serves_another_version_is_addressed_at_it() {
        let mut hub = CORE.to_vec();
        hub.push(("g", "gauges", false));
        let hub = discovery(&hub);
        let mut edge = discovery(&CORE);
        let mut newer = hub.find("g", "v1", "gauges").unwrap().clone();
        newer.resource.version = "v2".into();
        let served = Served::Resources(BTreeMap::from([("gauges".to_owned(), newer)]));
        edge.known.insert(("g".to_owned(), "v2".to_owned()), served);
        let plan = Plan::resolve(&gauges_and_configmaps(), &hub, &edge);
        assert_eq!(plan.missing, []);
        let gauges = &plan.types[&("g".to_owned(), "gauges".to_owned())];
        assert_eq!(
            (gauges.resource.version.as_str(), gauges.at_edge.version.as_str()),
            ("v1", "v2")
        );
    }

    #[test]
    fn a_type_that_nothing_asks_for_any_more_is_retained_also_when_the_hub_no_longer_serves_it() {
        let mut served = CORE.to_vec();
        served.push(("g", "gauges", false));
        let both = discovery(&served);
        let synced = SyncedType {
            group: "g".into(),
            version: "v1".into(),
            resource: "gauges".into(),
        };
        let mut wanted = Wanted::default();
        wanted.retain([&synced]);
        let key = ("g".to_owned(), "gauges".to_owned());
        for (hub, gone_at_hub) in [(&both, false), (&discovery(&CORE), true)] {
            let gauges = &Plan::resolve(&wanted, hub, &both).types[&key];
            assert!(!gauges.selected && gauges.selector.scopes(std::iter::empty()).is_empty());
            assert_eq!(gauges.gone_at_hub, gone_at_hub);
        }
        let mut asked_for = gauges_and_configmaps();
        asked_for.retain([&synced]);
        assert!(Plan::resolve(&asked_for, &both, &both).types[&key].selected);
        assert!(
            !Plan::resolve(&asked_for, &discovery(&CORE), &both)
                .types
                .contains_key(&key),
            "selected, so never gone"
        );
    }

    #[test]
    fn a_side_that_has_not_answered_is_neither_planned_nor_missing() {
        let plan = Plan::resolve(&gauges_and_configmaps(), &Discovery::default(), &discovery(&CORE));
        assert!(plan.types.is_empty() && plan.missing.is_empty());
    }

    #[test]
    fn a_resource_in_the_wrong_place_is_reported_with_its_field() {
        let mut served = CORE.to_vec();
        served.push(("g", "gauges", true));
        let both = discovery(&served);
        let plan = Plan::resolve(&gauges_and_configmaps(), &both, &both);
        assert_eq!(
            plan.problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [
                "SyncerConfig//c spec.clusterScope[0].resource: gauges.g is namespaced; name it in namespacedObjects or namespaceScope"
            ]
        );
        assert!(plan.types.contains_key(&(String::new(), "configmaps".to_owned())));
        let gauges = &plan.types[&("g".to_owned(), "gauges".to_owned())];
        assert!(gauges.selector.scopes(std::iter::empty()).is_empty());
    }
}
