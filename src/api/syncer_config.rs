//! `SyncerConfig`, as far as the syncer reads it.
//!
//! Every list is optional and defaults to "selects nothing", except [`ClusterScopeItem::objects`], where absent means
//! all objects and empty means none.

use kube_lite::bounded::at_most;
use serde::Deserialize;

use super::{Config, MOST_ENTRIES, null_is_default};

/// Lowercase plural of the kind.
pub const RESOURCE: &str = "syncerconfigs";
/// The kind.
pub const KIND: &str = "SyncerConfig";

/// One config: its name and what it selects.
pub type SyncerConfig = Config<Spec>;

/// `spec`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    /// Listed resources in listed namespaces.
    #[serde(deserialize_with = "null_is_default")]
    pub namespace_scope: NamespaceScope,
    /// Listed objects of namespaced resources.
    #[serde(deserialize_with = "at_most::<_, _, MOST_ENTRIES>")]
    pub namespaced_objects: Vec<NamespacedObjects>,
    /// Objects of cluster-scoped resources.
    #[serde(deserialize_with = "at_most::<_, _, MOST_ENTRIES>")]
    pub cluster_scope: Vec<ClusterScopeItem>,
    /// What is upsynced.
    #[serde(deserialize_with = "at_most::<_, _, MOST_ENTRIES>")]
    pub upsync: Vec<Upsync>,
}

/// `spec.namespaceScope`: an object matches if its namespace and its resource are listed.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct NamespaceScope {
    /// Namespace names.
    #[serde(deserialize_with = "null_is_default")]
    pub namespaces: Vec<String>,
    /// Namespaced resources.
    #[serde(deserialize_with = "at_most::<_, _, MOST_ENTRIES>")]
    pub resources: Vec<ResourceRef>,
}

/// A resource as configs name it: `apiVersion` is the version alone, `v1`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase")]
pub struct ResourceRef {
    /// API group, empty for core.
    #[serde(default)]
    pub group: String,
    /// Lowercase plural.
    #[serde(default)]
    pub resource: String,
    /// Version without group.
    #[serde(default)]
    pub api_version: String,
}

/// `spec.namespacedObjects[]`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct NamespacedObjects {
    /// The resource.
    #[serde(flatten)]
    pub resource: ResourceRef,
    /// Its objects, by namespace.
    #[serde(default, deserialize_with = "null_is_default")]
    pub objects_by_namespace: Vec<ObjectsByNamespace>,
}

/// `spec.namespacedObjects[].objectsByNamespace[]`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct ObjectsByNamespace {
    /// The namespace.
    pub namespace: String,
    /// Object names, `*` for all. Absent or empty selects nothing.
    #[serde(deserialize_with = "null_is_default")]
    pub names: Vec<String>,
}

/// `spec.clusterScope[]`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct ClusterScopeItem {
    /// The resource.
    #[serde(flatten)]
    pub resource: ResourceRef,
    /// Absent: all objects. Empty: none. `*` among names: all.
    #[serde(default)]
    pub objects: Option<Vec<String>>,
}

/// `spec.upsync[]`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct Upsync {
    /// API group, empty for core.
    pub api_group: String,
    /// Lowercase plurals, `*` for all of the group.
    #[serde(deserialize_with = "null_is_default")]
    pub resources: Vec<String>,
    /// Namespaces, `*` for all.
    #[serde(deserialize_with = "null_is_default")]
    pub namespaces: Vec<String>,
    /// Names, `*` for all.
    #[serde(deserialize_with = "null_is_default")]
    pub names: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_absent_objects_from_none() {
        let config = SyncerConfig::parse(
            br#"{"metadata":{"name":"the-one"},"spec":{"clusterScope":[
                {"group":"g","resource":"gauges","apiVersion":"v1"},
                {"group":"g","resource":"gauges","apiVersion":"v1","objects":[]},
                {"group":"g","resource":"gauges","apiVersion":"v1","objects":["*"]}]}}"#,
        )
        .unwrap();
        let objects: Vec<_> = config.spec.cluster_scope.into_iter().map(|item| item.objects).collect();
        assert_eq!(objects, [None, Some(vec![]), Some(vec!["*".to_owned()])]);
    }

    #[test]
    fn an_empty_or_null_spec_selects_nothing() {
        for object in [
            r#"{"metadata":{"name":"a"}}"#,
            r#"{"metadata":{"name":"a"},"spec":null}"#,
            r#"{"metadata":{"name":"a"},"spec":{"namespaceScope":null,"namespacedObjects":null,"clusterScope":null,"upsync":null}}"#,
            r#"{"metadata":{"name":"a"},"spec":{"unknownField":1}}"#,
        ] {
            assert_eq!(
                SyncerConfig::parse(object.as_bytes()).unwrap().spec,
                Spec::default(),
                "{object}"
            );
        }
    }
}
