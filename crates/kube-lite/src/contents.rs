//! What is in a namespace: asked before one is deleted, since everything in it is deleted too.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::discovery::{self, Served};
use crate::hidden::first_hidden;
use crate::meta::Meta;
use crate::{Cluster, Content, Error, ListRequest, ResourceType, Scope};

/// The first object found in a namespace for which `ignore` is false, as `Kind/namespace/name`, or which type cannot be
/// listed; `None` if the side has answered for every type that nothing else is there.
///
/// An error proves nothing. Each version of a group is asked for, since not every type of a group is served at the one
/// that it prefers. Events are not searched for: they are about other objects.
pub async fn first_in_namespace(
    cluster: &Rc<Cluster>,
    namespace: &str,
    ignore: impl Fn(&ResourceType, &Meta) -> bool,
) -> Result<Option<String>, Error> {
    let mut group_versions = vec![(String::new(), "v1".to_owned())];
    for (group, versions) in discovery::groups(cluster).await? {
        if !is_of_metrics(&group) {
            group_versions.extend(versions.into_iter().map(|version| (group.clone(), version)));
        }
    }
    let mut shown = BTreeSet::new();
    let mut not_listable = None;
    for group_version in group_versions {
        let Served::Resources(resources) = discovery::discover(cluster, &group_version).await? else {
            // The side has just listed it: this may be the 404 of a proxy before it.
            let (group, version) = group_version;
            return Err(Error::NotServedYet(format!("{group}/{version}")));
        };
        for served in resources.into_values() {
            let resource = served.resource;
            let is_new = shown.insert(resource.qualified());
            if !resource.namespaced || !served.holds_objects || is_events(&resource) {
                continue;
            }
            if !served.listable {
                not_listable.get_or_insert_with(|| format!("{}, which cannot be listed", resource.qualified()));
            } else if is_new {
                let scope = Scope {
                    namespace: Some(namespace.into()),
                    name: None,
                };
                let found = first_of_type(cluster, resource, scope, &ignore).await?;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
    }
    match not_listable {
        Some(_) => Ok(not_listable),
        None => first_hidden(cluster, &shown).await,
    }
}

/// What the control plane puts into every namespace.
pub fn is_in_every_namespace(resource: &ResourceType, meta: &Meta) -> bool {
    resource.is("", "configmaps") && meta.name == "kube-root-ca.crt"
        || resource.is("", "serviceaccounts") && meta.name == "default"
}

/// Views on what others measure. One whose server is unavailable must not keep a namespace.
fn is_of_metrics(group: &str) -> bool {
    group == "metrics.k8s.io" || group.ends_with(".metrics.k8s.io")
}

fn is_events(resource: &ResourceType) -> bool {
    resource.is("", "events") || resource.is("events.k8s.io", "events")
}

/// The same of one type, in that scope.
pub async fn first_of_type(
    cluster: &Rc<Cluster>,
    resource: ResourceType,
    scope: Scope,
    ignore: &impl Fn(&ResourceType, &Meta) -> bool,
) -> Result<Option<String>, Error> {
    let request = ListRequest {
        scope,
        ..ListRequest::of_all(resource.clone(), Content::Metadata)
    };
    let mut listing = cluster.list(request);
    while let Some(object) = listing.next().await? {
        let meta = <Meta>::parse(&object)?;
        if !ignore(&resource, &meta) {
            return Ok(Some(meta.object_name().of_kind(&resource.kind).to_string()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Paths, RateLimit};

    async fn first(paths: &[(&'static str, &'static str)]) -> Result<Option<String>, Error> {
        let server = Paths(paths.iter().copied().collect());
        let cluster = Rc::new(Cluster::new("hub", Box::new(server), RateLimit::new(None), "test"));
        first_in_namespace(&cluster, "n", is_in_every_namespace).await
    }

    const CORE: (&str, &str) = ("/api/v1", r#"{"kind":"APIResourceList","resources":[]}"#);
    const NONE: &str = r#"{"kind":"List","metadata":{"resourceVersion":"1"},"items":[]}"#;
    const ONE: &str =
        r#"{"kind":"List","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"b","namespace":"n"}}]}"#;

    #[tokio::test]
    async fn a_namespace_is_empty_only_if_every_version_of_every_group_says_so() {
        const GROUPS: (&str, &str) = (
            "/apis",
            r#"{"kind":"APIGroupList","groups":[{"name":"g","versions":[{"version":"v1"},{"version":"v1beta1"}]}]}"#,
        );
        const V1: (&str, &str) = (
            "/apis/g/v1",
            r#"{"kind":"APIResourceList","resources":[{"name":"as","namespaced":true,"kind":"A","verbs":["delete","list","watch"]}]}"#,
        );
        const V1BETA1: (&str, &str) = (
            "/apis/g/v1beta1",
            r#"{"kind":"APIResourceList","resources":[{"name":"bs","namespaced":true,"kind":"B","verbs":["delete","list"]}]}"#,
        );
        let (no_a, no_b) = (
            ("/apis/g/v1/namespaces/n/as", NONE),
            ("/apis/g/v1beta1/namespaces/n/bs", NONE),
        );
        for (expected, row, paths) in [
            (Some(None), "nothing", vec![CORE, GROUPS, V1, V1BETA1, no_a, no_b]),
            (
                Some(Some("B/n/b".to_owned())),
                "at another version, of a type that cannot be watched",
                vec![CORE, GROUPS, V1, V1BETA1, no_a, (no_b.0, ONE)],
            ),
            (None, "a 404 for what is listed", vec![CORE, GROUPS, V1, no_a]),
            (None, "a 404 for the core", vec![GROUPS, V1, V1BETA1, no_a, no_b]),
        ] {
            assert_eq!(first(&paths).await.ok(), expected, "{row}");
        }
    }

    #[tokio::test]
    async fn what_cannot_be_listed_may_be_there_unless_it_can_only_be_created_or_seen() {
        const GROUPS: (&str, &str) = (
            "/apis",
            r#"{"kind":"APIGroupList","groups":[{"name":"g","versions":[{"version":"v1"}]},
                {"name":"metrics.k8s.io","versions":[{"version":"v1beta1"}]},
                {"name":"custom.metrics.k8s.io","versions":[{"version":"v1beta2"}]}]}"#,
        );
        const REVIEWS: &str = r#"{"kind":"APIResourceList","resources":[
            {"name":"bindings","namespaced":true,"kind":"Binding","verbs":["create"]},
            {"name":"views","namespaced":true,"kind":"View","verbs":["get","list"]},
            {"name":"nodes","namespaced":false,"kind":"Node","verbs":["delete","get"]}]}"#;
        const SECRETIVE: &str = r#"{"kind":"APIResourceList","resources":[
            {"name":"vaults","namespaced":true,"kind":"Vault","verbs":["create","delete","get"]}]}"#;
        for (expected, served) in [(None, REVIEWS), (Some("vaults.g, which cannot be listed"), SECRETIVE)] {
            let found = first(&[CORE, GROUPS, ("/apis/g/v1", served)]).await.unwrap();
            assert_eq!(found.as_deref(), expected, "{served}");
        }
    }

    #[tokio::test]
    async fn what_is_in_every_namespace_and_events_are_nothing() {
        const SERVED: (&str, &str) = (
            "/api/v1",
            r#"{"kind":"APIResourceList","resources":[
                {"name":"configmaps","namespaced":true,"kind":"ConfigMap","verbs":["delete","list"]},
                {"name":"events","namespaced":true,"kind":"Event","verbs":["delete","list"]}]}"#,
        );
        const GROUPS: (&str, &str) = ("/apis", r#"{"kind":"APIGroupList","groups":[]}"#);
        const ROOTS: &str = r#"{"kind":"List","metadata":{"resourceVersion":"1"},
            "items":[{"metadata":{"name":"kube-root-ca.crt","namespace":"n"}}]}"#;
        for (expected, list) in [(None, ROOTS), (Some("ConfigMap/n/b"), ONE)] {
            let found = first(&[SERVED, GROUPS, ("/api/v1/namespaces/n/configmaps", list)])
                .await
                .unwrap();
            assert_eq!(found.as_deref(), expected, "{list}");
        }
    }
}
