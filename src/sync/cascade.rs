//! What the delete of a copy cascades to: for a namespace all that is in it, for a CRD all objects of its type.
//!
//! Such a copy is deleted only when nothing is left that is not itself to be deleted. What is to be deleted itself is
//! deleted before (the queue has these copies last), so whatever is found here is somebody else's, is left to the edge,
//! or is held.

use std::rc::Rc;

use kube_lite::contents::{first_in_namespace, first_of_type, is_in_every_namespace};
use kube_lite::discovery::{self, Served};
use kube_lite::hidden::Crd;
use kube_lite::meta::Meta;
use kube_lite::{Cluster, Error, ResourceType, Scope};

use super::object::Address;

/// The first object that would be deleted too and is not to be deleted itself, as `Kind/namespace/name`; or another
/// reason against the delete. `None` if nothing does. An error proves nothing.
pub(super) async fn first_in_cascade(cluster: &Rc<Cluster>, at: &Address) -> Result<Option<String>, Error> {
    let Address { resource, name } = at;
    if resource.stands_for("", "namespaces") {
        first_in_namespace(cluster, &name.name, goes_anyway).await
    } else if *resource == ResourceType::definitions() {
        first_of_definition(cluster, &name.name).await
    } else {
        Ok(None)
    }
}

/// Objects that are deleted anyway, with their owners or already, and those that the cluster itself puts into every
/// namespace.
fn goes_anyway(resource: &ResourceType, meta: &Meta) -> bool {
    meta.deletion_timestamp.is_some() || meta.of_workload || is_in_every_namespace(resource, meta)
}

/// The first object of the type that the CRD `plural.group` defines.
async fn first_of_definition(cluster: &Rc<Cluster>, name: &str) -> Result<Option<String>, Error> {
    let Some((plural, group)) = name.split_once('.') else {
        return Ok(None);
    };
    for version in discovery::groups(cluster).await?.remove(group).into_iter().flatten() {
        let served = discovery::discover(cluster, &(group.to_owned(), version)).await?;
        let Served::Resources(mut resources) = served else {
            return Err(Error::NotServedYet(group.to_owned()));
        };
        if let Some(served) = resources.remove(plural) {
            let is_going = |_: &ResourceType, meta: &Meta| meta.deletion_timestamp.is_some();
            return first_of_type(cluster, served.resource, Scope::default(), &is_going).await;
        }
    }
    // Not served at any version: nobody can use it, or the server has just started.
    let crd = Crd::read(cluster, name).await?;
    Ok(crd.filter(Crd::is_in_use).map(|_| Crd::words(name)))
}

#[cfg(test)]
mod tests {
    use kube_lite::{ObjectName, Paths, RateLimit};

    use super::*;
    use crate::api::FIELD_MANAGER;
    use crate::side::Side;

    const GROUPS: (&str, &str) = (
        "/apis",
        r#"{"kind":"APIGroupList","groups":[{"name":"g.org","versions":[{"version":"v2"},{"version":"v1"}]}]}"#,
    );
    const V2: (&str, &str) = ("/apis/g.org/v2", r#"{"kind":"APIResourceList","resources":[]}"#);
    const V1: (&str, &str) = (
        "/apis/g.org/v1",
        r#"{"kind":"APIResourceList","resources":[{"name":"as","namespaced":true,"kind":"A","verbs":["delete","list","watch"]}]}"#,
    );
    const NONE: &str = r#"{"kind":"AList","metadata":{"resourceVersion":"1"},"items":[]}"#;
    const GOING: &str = r#"{"kind":"AList","metadata":{"resourceVersion":"1"},"items":[
        {"metadata":{"name":"a","namespace":"n","deletionTimestamp":"2026-01-01T00:00:00Z"}}]}"#;
    const ONE: &str =
        r#"{"kind":"AList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"b","namespace":"n"}}]}"#;

    const NO_GROUPS: (&str, &str) = ("/apis", r#"{"kind":"APIGroupList","groups":[]}"#);
    const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/as.g.org";
    const UNUSED: &str = r#"{"spec":{"scope":"Cluster","versions":[{"served":false}]},
        "status":{"conditions":[{"type":"Established","status":"True"}]}}"#;
    const IN_USE: &str = r#"{"spec":{"scope":"Cluster","versions":[{"served":true}]},
        "status":{"conditions":[{"type":"Established","status":"True"}]}}"#;

    async fn first(
        resource: ResourceType,
        name: &str,
        paths: &[(&'static str, &'static str)],
    ) -> Option<Option<String>> {
        let server = Paths(paths.iter().copied().collect());
        let cluster = Rc::new(Cluster::new(
            Side::Edge.word(),
            Box::new(server),
            RateLimit::new(None),
            FIELD_MANAGER,
        ));
        let at = Address {
            resource,
            name: ObjectName::new("", name),
        };
        first_in_cascade(&cluster, &at).await.ok()
    }

    #[tokio::test]
    async fn a_crd_takes_its_objects_along_wherever_they_are() {
        let of_type = |list| vec![GROUPS, V2, V1, ("/apis/g.org/v1/as", list)];
        for (paths, expected) in [
            (of_type(NONE), Some(None)),
            (of_type(GOING), Some(None)),
            (of_type(ONE), Some(Some("A/n/b".to_owned()))),
            (vec![GROUPS, V2, V1], None),
            (vec![GROUPS, V2], None),
            (vec![], None),
            (vec![NO_GROUPS], None),
            (vec![NO_GROUPS, (CRD, UNUSED)], Some(None)),
            (
                vec![NO_GROUPS, (CRD, IN_USE)],
                Some(Some(
                    "objects of as.g.org, which is defined and not served at the moment".to_owned(),
                )),
            ),
        ] {
            assert_eq!(
                first(ResourceType::definitions(), "as.g.org", &paths).await,
                expected,
                "{paths:?}"
            );
        }
    }

    #[tokio::test]
    async fn what_goes_with_a_workload_or_is_going_keeps_no_namespace() {
        const CORE: (&str, &str) = (
            "/api/v1",
            r#"{"kind":"APIResourceList","resources":[{"name":"pods","namespaced":true,"kind":"Pod","verbs":["delete","list"]}]}"#,
        );
        let owned = |api_version: &str, kind: &str, controller: bool| {
            format!(
                r#"{{"kind":"PodList","metadata":{{"resourceVersion":"1"}},"items":[{{"metadata":{{"name":"p","namespace":"n",
                    "ownerReferences":[{{"apiVersion":"{api_version}","kind":"{kind}","controller":{controller}}}]}}}}]}}"#
            )
        };
        for (list, goes) in [
            (owned("apps/v1", "ReplicaSet", true), true),
            (owned("batch/v1", "Job", true), true),
            (owned("apps/v1", "ReplicaSet", false), false),
            // It may be cluster-scoped, and stay.
            (owned("example.org/v1", "Database", true), false),
            (GOING.to_owned(), true),
            (ONE.to_owned(), false),
        ] {
            let list: &'static str = list.leak();
            let paths = [CORE, NO_GROUPS, ("/api/v1/namespaces/n/pods", list)];
            let found = first(ResourceType::namespaces(), "n", &paths).await.unwrap();
            assert_eq!(found.is_none(), goes, "{list}");
        }
    }
}
