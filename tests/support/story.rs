//! Steps that many tests share: waiting for copies, and short ways to write selections and custom resources.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::modes::time_to_react;
use super::objects::{JSON_PATCH, Objects, path};
use super::{eventually, holds_throughout};

/// How long anything that must happen may take. Far longer than it does, also where the syncer waits its longest, half a
/// minute, before it tries a server again: so that a busy machine fails no test.
pub const SOON: Duration = Duration::from_secs(120);

/// How long something that must not happen is watched for: many times what it would take, in the mode of the test.
pub fn a_while() -> Duration {
    time_to_react(Duration::from_millis(700))
}

/// `clusterScope[].objects` left out.
pub const ABSENT_MEANS_ALL: Value = Value::Null;

/// Waits until an object exists, and gives it.
pub async fn arrives(at: &Objects, api_version: &str, plural: &str, namespace: &str, name: &str) -> Value {
    eventually(&format!("{plural} {namespace}/{name} arrives"), SOON, async || match at
        .try_get(api_version, plural, namespace, name)
        .await
    {
        Ok(Some(object)) => Ok(object),
        Ok(None) => Err("it is not there".to_owned()),
        Err(error) => Err(error.to_string()),
    })
    .await
}

/// Waits until an object does not exist.
pub async fn gone(at: &Objects, api_version: &str, plural: &str, namespace: &str, name: &str) {
    eventually(&format!("{plural} {namespace}/{name} goes"), SOON, async || {
        match at.try_get(api_version, plural, namespace, name).await {
            Ok(None) => Ok(()),
            Ok(Some(object)) => Err(format!("it is there: {}", object["metadata"])),
            Err(error) => Err(error.to_string()),
        }
    })
    .await;
}

/// Checks for a while that an object stays and is not being deleted, and gives it.
pub async fn remains(at: &Objects, api_version: &str, plural: &str, namespace: &str, name: &str) -> Value {
    holds_throughout(
        &format!("{plural} {namespace}/{name} remains"),
        a_while(),
        async || match at.try_get(api_version, plural, namespace, name).await {
            Ok(None) => Err("it is gone"),
            Ok(Some(object)) if !object["metadata"]["deletionTimestamp"].is_null() => Err("it is on its way out"),
            // A side that does not answer says nothing; in the end it has to.
            _ => Ok(()),
        },
    )
    .await;
    arrives(at, api_version, plural, namespace, name).await
}

/// Checks for a while that an object does not appear.
pub async fn stays_absent(at: &Objects, api_version: &str, plural: &str, namespace: &str, name: &str) {
    holds_throughout(
        &format!("{plural} {namespace}/{name} stays absent"),
        a_while(),
        async || match at.try_get(api_version, plural, namespace, name).await {
            Ok(Some(_)) => Err("it is there"),
            // A side that does not answer says nothing; in the end it has to.
            _ => Ok(()),
        },
    )
    .await;
    gone(at, api_version, plural, namespace, name).await;
}

/// Waits until a `ConfigMap` holds exactly `data`, and gives it.
pub async fn copy_equals(at: &Objects, namespace: &str, name: &str, data: &Value) -> Value {
    eventually(
        &format!("ConfigMap {namespace}/{name} holds {data}"),
        SOON,
        async || match at.try_get("v1", "configmaps", namespace, name).await {
            Ok(Some(object)) if object["data"] == *data => Ok(object),
            Ok(Some(object)) => Err(format!("it holds {}", object["data"])),
            Ok(None) => Err("it is not there".to_owned()),
            Err(error) => Err(error.to_string()),
        },
    )
    .await
}

/// Waits until `ConfigMap`s hold `data`, and gives their uids, which tell whether one was created again later.
pub async fn uids(at: &Objects, namespace: &str, names: &[impl AsRef<str>], data: &Value) -> Vec<Value> {
    let mut uids = Vec::new();
    for name in names {
        let copy = copy_equals(at, namespace, name.as_ref(), data).await;
        uids.push(copy["metadata"]["uid"].clone());
    }
    uids
}

/// Changes the spec of the `SyncerConfig` `the-one`, which [`super::stage::select`] has made; a list in it replaces the
/// old one.
pub async fn reselect(hub: &Objects, spec: &Value) {
    let patch = json!({"spec": spec});
    hub.merge_patch("edge.kubestellar.io/v2alpha1", "syncerconfigs", "", "the-one", &patch)
        .await;
}

/// Changes a `ConfigMap` by a JSON merge patch.
pub async fn edit(at: &Objects, namespace: &str, name: &str, patch: &Value) {
    at.merge_patch("v1", "configmaps", namespace, name, patch).await;
}

/// The value of an annotation of ours, named without its prefix; `null` if it has none.
pub fn annotation(object: &Value, name: &str) -> Value {
    object["metadata"]["annotations"][format!("edge.kubestellar.io/{name}")].clone()
}

/// An item of `namespacedObjects` for `ConfigMap`s of one namespace.
pub fn config_map_entry(namespace: &str, names: &[&str]) -> Value {
    json!({"group": "", "resource": "configmaps", "apiVersion": "v1",
        "objectsByNamespace": [{"namespace": namespace, "names": names}]})
}

/// A CRD at version `v1` with a free-form `spec` and a status subresource. Its kind is the plural with a capital.
pub fn crd(group: &str, plural: &str, namespaced: bool) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "scope": if namespaced { "Namespaced" } else { "Cluster" },
            "names": {"plural": plural, "singular": plural.trim_end_matches('s'), "kind": kind(plural)},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

/// An object of a type made by [`crd`]; an empty namespace for a cluster-scoped one.
pub fn custom_object(group: &str, plural: &str, namespace: &str, name: &str, size: u32) -> Value {
    let mut object = json!({"apiVersion": format!("{group}/v1"), "kind": kind(plural),
        "metadata": {"name": name}, "spec": {"size": size}});
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

fn kind(plural: &str) -> String {
    let mut letters = plural.trim_end_matches('s').chars();
    letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .chain(letters)
        .collect()
}

/// Waits until an object is as it should be, and gives it.
pub async fn becomes(
    at: &Objects,
    [api_version, plural, namespace, name]: [&str; 4],
    what: &str,
    is_so: impl Fn(&Value) -> bool,
) -> Value {
    eventually(&format!("{plural} {namespace}/{name} {what}"), SOON, async || match at
        .try_get(api_version, plural, namespace, name)
        .await
    {
        Ok(Some(object)) if is_so(&object) => Ok(object),
        Ok(Some(object)) => Err(format!("it is {object:#}")),
        Ok(None) => Err("it is not there".to_owned()),
        Err(error) => Err(error.to_string()),
    })
    .await
}

/// Waits until the namespace is being deleted; without a controller manager it stays so.
pub async fn leaves(at: &Objects, namespace: &str) {
    eventually(&format!("namespace {namespace} is deleted"), SOON, async || {
        match at.try_get("v1", "namespaces", "", namespace).await {
            Ok(Some(object)) if object["metadata"]["deletionTimestamp"].is_null() => Err("it is there".to_owned()),
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    })
    .await;
}

/// An item of `upsync` for all objects of some types of one group, in one namespace.
pub fn upsync_all(group: &str, resources: &[&str], namespace: &str) -> Value {
    json!({"apiGroup": group, "resources": resources, "namespaces": [namespace], "names": ["*"]})
}

/// Creates a CRD at some sides, and waits until they serve its type.
pub async fn install_crd(sides: &[&Objects], definition: &Value) {
    for side in sides {
        side.create(definition).await;
    }
    let name = definition["metadata"]["name"].as_str().expect("a CRD has a name");
    for side in sides {
        super::wait_for_crd(side, name).await;
    }
}

/// Deletes CRDs at some sides, as far as they are there; their objects must not be held by finalizers.
pub async fn drop_crds(sides: &[&Objects], definitions: &[&str]) {
    for side in sides {
        for definition in definitions {
            side.delete("apiextensions.k8s.io/v1", "customresourcedefinitions", "", definition)
                .await;
        }
    }
}

/// Makes a server serve the type of a CRD that has one version, or stop that; its objects stay.
pub async fn serve(side: &Objects, definition: &str, served: bool) {
    let patch = json!([{"op": "replace", "path": "/spec/versions/0/served", "value": served}]);
    redefine(side, definition, &patch).await;
}

/// Changes a CRD by a JSON patch, without a version, since the server itself writes into the CRD at the same time.
pub async fn redefine(side: &Objects, definition: &str, change: &Value) {
    let target = path("apiextensions.k8s.io/v1", "customresourcedefinitions", "", definition);
    let changed = side.send(Method::PATCH, &target, JSON_PATCH, Some(change)).await;
    changed.unwrap_or_else(|error| panic!("{definition} cannot be changed by {change}: {error}"));
}

/// A CRD as [`crd`] makes it of namespaced objects, but with a schema of which `spec.size` is 5 at most.
pub fn crd_up_to_five(group: &str, plural: &str) -> Value {
    let mut definition = crd(group, plural, true);
    let size = json!({"type": "integer", "maximum": 5});
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": size}}}});
    definition
}

/// A CRD as [`crd`] makes it, but without a status subresource.
pub fn crd_without_status(group: &str, plural: &str, namespaced: bool) -> Value {
    let mut definition = crd(group, plural, namespaced);
    definition["spec"]["versions"][0]["subresources"] = json!({});
    definition
}

/// How often a copy is corrected at most, by a syncer that something fights for so long: three times at once, two more
/// that a change came in between of, and then after waits that double, the first of 0.4 s at least.
pub fn most_corrections(fought: Duration) -> usize {
    let (mut most, mut waited) = (5, Duration::from_millis(400));
    while waited < fought {
        most += 1;
        waited = waited * 2 + Duration::from_millis(400);
    }
    most
}
