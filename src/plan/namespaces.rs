//! Namespaces that the hub must have for what is to go down.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::names::ALL;
use super::wanted::{Entry, Objects, Types};
use super::without_namespace::is_of_namespaces;
use super::{ConfigPlace, Direction, Names, Plan, Wanted, steps};

impl Plan {
    /// Namespaces that the hub must have for what the configs select of it, each with the first place that names it.
    pub(super) async fn namespaces_at_hub(&self, wanted: &Wanted) -> BTreeMap<String, ConfigPlace> {
        let known = Known::of(self, wanted).await;
        let (mut found, mut seen) = (BTreeMap::new(), BTreeSet::new());
        let down = wanted.entries.iter().filter(|entry| entry.direction == Direction::Down);
        for entry in down {
            steps::one();
            steps::pause().await;
            // Many entries have the same namespaces.
            let is_new = shared(&entry.objects).is_none_or(|all| seen.insert(Rc::as_ptr(all)));
            let names = is_new.then(|| known.named_by(entry)).into_iter().flatten();
            for name in names.filter(|name| !known.converted.contains(name)) {
                steps::one();
                steps::pause().await;
                if !found.contains_key(name) {
                    found.insert(name.to_owned(), entry.place.clone());
                }
            }
        }
        found
    }
}

/// The namespaces of an entry that others may have too.
fn shared(objects: &Objects) -> Option<&Rc<BTreeSet<String>>> {
    match objects {
        Objects::Within { namespaces, .. } | Objects::Implied(namespaces) => Some(namespaces),
        _ => None,
    }
}

/// What is asked of each entry.
struct Known<'a> {
    /// Namespaces to which a conversion gives another name at one of the sides: an entry may use either.
    converted: BTreeSet<&'a str>,
    /// Groups and kinds at the hub that are known to have namespaces. What an entry says of others does not count.
    namespaced: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> Known<'a> {
    async fn of(plan: &'a Plan, wanted: &'a Wanted) -> Self {
        let mut converted = BTreeSet::new();
        for object in wanted.conversions.iter().flat_map(|it| [&it.hub, &it.edge]) {
            steps::one();
            steps::pause().await;
            if object.group.is_empty() && object.kind == "Namespace" {
                converted.insert(&*object.name);
            }
        }
        let planned = plan.types.values().map(|planned| &planned.at_hub);
        let namespaced = planned.filter(|at_hub| at_hub.namespaced);
        Self {
            converted,
            namespaced: namespaced.map(|at_hub| (&*at_hub.group, &*at_hub.kind)).collect(),
        }
    }

    /// The namespaces that an entry names: those of its objects, or as objects.
    fn named_by<'e>(&self, entry: &'e Entry) -> Box<dyn Iterator<Item = &'e str> + 'e> {
        let of_namespaces = is_of_namespaces(&entry.types);
        match &entry.objects {
            Objects::In(Some(namespace), _) => Box::new(std::iter::once(&**namespace)),
            Objects::In(None, names) | Objects::Ref { names, .. } if of_namespaces => each(names),
            Objects::Within { namespaces, .. } | Objects::Implied(namespaces) => {
                Box::new(namespaces.iter().map(String::as_str))
            }
            Objects::Ref { namespace, .. } if self.are_namespaced(&entry.types) => {
                let is_one = |namespace: &&str| !namespace.is_empty() && *namespace != ALL;
                Box::new(std::iter::once(&**namespace).filter(is_one))
            }
            Objects::In(None, _) | Objects::Ref { .. } | Objects::Anywhere { .. } => Box::new(std::iter::empty()),
        }
    }

    fn are_namespaced(&self, types: &Types) -> bool {
        match types {
            Types::Kind { group, kind, .. } => self.namespaced.contains(&(&**group, &**kind)),
            _ => false,
        }
    }
}

fn each(names: &Names) -> Box<dyn Iterator<Item = &str> + '_> {
    match names {
        Names::All => Box::new(std::iter::empty()),
        Names::These(names) => Box::new(names.iter().map(String::as_str)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use kube_lite::ResourceType;

    use super::*;
    use crate::api::edge_sync_config::EdgeSyncConfig;
    use crate::api::syncer_config::SyncerConfig;
    use crate::plan::{Pair, TypePlan};

    /// A plan with `ConfigMap`s.
    fn plan() -> Plan {
        let same = (String::new(), "configmaps".to_owned());
        let pair = Pair {
            direction: Direction::Down,
            hub: same.clone(),
            edge: same,
        };
        let planned = TypePlan {
            direction: Direction::Down,
            at_hub: ResourceType::config_maps(),
            at_edge: ResourceType::config_maps(),
            selector: Rc::default(),
            naming: Rc::default(),
            yields_to: Rc::default(),
            configs: Vec::new(),
            selected: true,
            gone_at_origin: false,
            not_stored: None,
            status: None,
            scaled_by_nobody: false,
        };
        Plan {
            types: [(pair, planned)].into(),
            ..Plan::default()
        }
    }

    fn check(by_kind: &Value, by_plural: &Value, expected: &[(&str, &str)]) {
        let object = |spec: &Value| json!({"metadata": {"name": "c"}, "spec": spec}).to_string();
        let by_kind = EdgeSyncConfig::parse(object(by_kind).as_bytes()).unwrap();
        let by_plural = SyncerConfig::parse(object(by_plural).as_bytes()).unwrap();
        let wanted = Wanted::from_configs([&by_plural], [&by_kind], true);
        let found = steps::whole(plan().namespaces_at_hub(&wanted));
        let found: Vec<(&str, &str)> = found.iter().map(|(name, place)| (&**name, &*place.field)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_goes_down_needs_its_namespaces_at_the_hub() {
        let resource = |name: &str| json!({"group": "", "apiVersion": "v1", "resource": name});
        let mut by_name = resource("configmaps");
        by_name["objectsByNamespace"] =
            json!([{"namespace": "b", "names": ["x"]}, {"namespace": "unused", "names": []}]);
        let mut themselves = resource("namespaces");
        themselves["objects"] = json!(["c"]);
        let by_plural = json!({
            "namespaceScope": {"namespaces": ["a"], "resources": [resource("configmaps")]},
            "namespacedObjects": [by_name],
            "clusterScope": [themselves],
            "upsync": [{"resources": ["configmaps"], "namespaces": ["at-edge"], "names": ["*"]}],
        });
        let [a, b, c] = [
            ("a", "namespaceScope.namespaces"),
            ("b", "namespacedObjects[0]"),
            ("c", "clusterScope[0]"),
        ];
        check(&json!({}), &by_plural, &[a, b, c]);
        let reference = |kind: &str, namespace: &str, name: &str| json!({"version": "v1", "kind": kind, "namespace": namespace, "name": name});
        let down = |all: &[Value]| json!({"downSyncedResources": all});
        let field = |index: usize| ["downSyncedResources[0]", "downSyncedResources[1]"][index];
        let by_kind = down(&[reference("Namespace", "", "a"), reference("ConfigMap", "b", "*")]);
        check(&by_kind, &json!({}), &[("a", field(0)), ("b", field(1))]);
        // What has no namespace, or is not known to have one, needs none.
        let without = down(&[reference("Node", "b", "x"), reference("Namespace", "", "*")]);
        check(&without, &json!({}), &[]);
        let mut renamed = down(&[reference("Namespace", "", "a"), reference("ConfigMap", "b", "*")]);
        renamed["conversions"] = json!([{
            "upstream": {"kind": "Namespace", "name": "at-hub"}, "downstream": {"kind": "Namespace", "name": "a"}}]);
        check(&renamed, &json!({}), &[("b", field(1))]);
        check(
            &json!({"upSyncedResources": [reference("ConfigMap", "b", "*")]}),
            &json!({}),
            &[],
        );
    }
}
