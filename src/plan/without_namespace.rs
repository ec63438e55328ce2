//! Namespaces at the edge that selected objects need and that no config selects.
//!
//! A `SyncerConfig` implies the namespaces of its objects; an `EdgeSyncConfig` has to name them, which is easily forgotten.

use super::names::ALL;
use super::wanted::{Objects, Triple, Types};
use super::{ConfigPlace, Direction, Names, Wanted};

impl Wanted {
    /// The first place that selects objects in this namespace, if nothing selects the namespace itself.
    pub fn without_namespace(&self, namespace: &str) -> Option<&ConfigPlace> {
        let mut down = self.entries.iter().filter(|entry| entry.direction == Direction::Down);
        let is_it = |object: &Triple| object.group.is_empty() && object.kind == "Namespace" && object.name == namespace;
        let converted = self.conversions.iter().any(|conversion| is_it(&conversion.edge));
        // At the edge it has another name.
        let is_renamed = self.conversions.iter().any(|conversion| is_it(&conversion.hub));
        let mut brought = down.clone().filter(|entry| is_of_namespaces(&entry.types));
        if converted || !is_renamed && brought.any(|entry| names(&entry.objects, namespace)) {
            return None;
        }
        let within = |objects: &Objects| match objects {
            Objects::In(of, _) => of.as_deref() == Some(namespace),
            Objects::Ref { namespace: of, .. } => of == namespace,
            Objects::Within { namespaces, .. } => namespaces.contains(namespace),
            Objects::Anywhere { namespaces, .. } => namespaces.as_ref().is_none_or(|all| all.contains(namespace)),
            Objects::Implied(_) => false,
        };
        down.find(|entry| within(&entry.objects)).map(|entry| &entry.place)
    }
}

/// True if an entry with these types selects namespaces.
pub(super) fn is_of_namespaces(types: &Types) -> bool {
    match types {
        Types::Plural { group, resource, .. } => group.is_empty() && resource == "namespaces",
        Types::Kind { group, kind, .. } => group.is_empty() && kind == "Namespace",
        Types::Group(group) => group.is_empty(),
    }
}

/// True if an entry of namespaces names this one.
fn names(objects: &Objects, namespace: &str) -> bool {
    let contains = |names: &Names| names.contains(namespace) || names.contains(ALL);
    match objects {
        Objects::Within { .. } => false,
        Objects::Implied(namespaces) => namespaces.contains(namespace),
        Objects::Anywhere { names, .. } => contains(names),
        Objects::In(_, names) | Objects::Ref { names, .. } => contains(names),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::api::edge_sync_config::EdgeSyncConfig;
    use crate::api::syncer_config::SyncerConfig;

    fn check(by_kind: &Value, by_plural: &Value, expected: Option<&str>) {
        let object = |spec: &Value| json!({"metadata": {"name": "c"}, "spec": spec}).to_string();
        let by_kind = EdgeSyncConfig::parse(object(by_kind).as_bytes()).unwrap();
        let by_plural = SyncerConfig::parse(object(by_plural).as_bytes()).unwrap();
        let wanted = Wanted::from_configs([&by_plural], [&by_kind], true);
        let found = wanted.without_namespace("shop");
        assert_eq!(
            found
                .map(|place| format!("{} {}", place.config, place.field))
                .as_deref(),
            expected,
            "{wanted:?}"
        );
    }

    #[test]
    fn names_the_config_that_forgets_the_namespace_of_its_objects() {
        let config_map = json!({"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "a"});
        let space = |name: &str| json!({"version": "v1", "kind": "Namespace", "name": name});
        let forgets = Some("EdgeSyncConfig//c downSyncedResources[1]");
        let down = |first: &Value| json!({"downSyncedResources": [first, config_map]});
        check(&down(&space("other")), &json!({}), forgets);
        check(&down(&space("shop")), &json!({}), None);
        check(&down(&space("*")), &json!({}), None);
        // Another config brings it, whole or implied.
        let resource = |name: &str| json!({"group": "", "apiVersion": "v1", "resource": name});
        let mut cluster = resource("namespaces");
        cluster["objects"] = json!(["shop"]);
        check(&down(&space("other")), &json!({"clusterScope": [cluster]}), None);
        let scope = json!({"namespaceScope": {"namespaces": ["shop"], "resources": [resource("configmaps")]}});
        check(&down(&space("other")), &scope, None);
        // An object of another kind that a conversion makes a Namespace.
        let mut converted = down(&space("other"));
        converted["conversions"] = json!([{
            "upstream": {"kind": "Namespace", "name": "other"}, "downstream": {"kind": "Namespace", "name": "shop"}}]);
        check(&converted, &json!({}), None);
        // And the other way round.
        let mut renamed = down(&space("shop"));
        renamed["conversions"] = json!([{
            "upstream": {"kind": "Namespace", "name": "shop"}, "downstream": {"kind": "Namespace", "name": "other"}}]);
        check(&renamed, &json!({}), forgets);
        check(&json!({"upSyncedResources": [config_map]}), &json!({}), None);
    }
}
