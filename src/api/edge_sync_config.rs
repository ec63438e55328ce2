//! `EdgeSyncConfig`, the legacy config: objects by kind, in both directions, and renaming.
//!
//! Nothing is required by the schema; every list defaults to "selects nothing".

use kube_lite::bounded::at_most;
use serde::Deserialize;

use super::{Config, MOST_ENTRIES, null_is_default};

/// More conversions than this are refused; `maxItems` in the CRD.
const MOST_CONVERSIONS: usize = 4000;

/// Lowercase plural of the kind.
pub const RESOURCE: &str = "edgesyncconfigs";
/// The kind.
pub const KIND: &str = "EdgeSyncConfig";

/// One config: its name and what it selects.
pub type EdgeSyncConfig = Config<Spec>;

/// `spec`.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    /// What is downsynced.
    #[serde(deserialize_with = "at_most::<_, _, MOST_ENTRIES>")]
    pub down_synced_resources: Vec<Ref>,
    /// What is upsynced.
    #[serde(deserialize_with = "at_most::<_, _, MOST_ENTRIES>")]
    pub up_synced_resources: Vec<Ref>,
    /// Objects that have another name at the edge than at the hub.
    #[serde(deserialize_with = "at_most::<_, _, MOST_CONVERSIONS>")]
    pub conversions: Vec<Conversion>,
}

/// One object, or with the name `*` all of a kind.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct Ref {
    /// API group, empty for core.
    #[serde(deserialize_with = "null_is_default")]
    pub group: String,
    /// Version without group.
    #[serde(deserialize_with = "null_is_default")]
    pub version: String,
    /// Kind.
    #[serde(deserialize_with = "null_is_default")]
    pub kind: String,
    /// Name, `*` for all.
    #[serde(deserialize_with = "null_is_default")]
    pub name: String,
    /// Namespace, for namespaced kinds; `*` for all in upsync.
    #[serde(deserialize_with = "null_is_default")]
    pub namespace: String,
}

/// `spec.conversions[]`: one object under its two names. Version and namespace have no meaning here.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct Conversion {
    /// At the hub.
    #[serde(deserialize_with = "null_is_default")]
    pub upstream: Ref,
    /// At the edge.
    #[serde(deserialize_with = "null_is_default")]
    pub downstream: Ref,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_example_of_the_specification() {
        let config = EdgeSyncConfig::parse(
            br#"{"metadata":{"name":"site-7"},"spec":{
                "downSyncedResources":[{"version":"v1","kind":"Namespace","name":"shop"},
                    {"group":"apps","version":"v1","kind":"Deployment","namespace":"shop","name":"web"}],
                "upSyncedResources":null,
                "conversions":[{"upstream":{"kind":"A","name":"a.denatured"},"downstream":{"kind":"A","name":"a"}}]}}"#,
        )
        .unwrap();
        assert_eq!(config.name, "site-7");
        let down = &config.spec.down_synced_resources;
        assert_eq!((down[0].group.as_str(), down[0].kind.as_str()), ("", "Namespace"));
        assert_eq!((down[1].namespace.as_str(), down[1].name.as_str()), ("shop", "web"));
        assert!(config.spec.up_synced_resources.is_empty());
        assert_eq!(config.spec.conversions[0].downstream.name, "a");
    }
}
