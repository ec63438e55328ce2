//! Creating and deleting namespaces at the hub.

use std::rc::Rc;

use bytes::Bytes;
use kube_lite::contents::{first_in_namespace, is_in_every_namespace};
use kube_lite::logging::log_line;
use kube_lite::read::read_metadata;
use kube_lite::{Cluster, Error, ObjectName, Precondition, ResourceType};
use serde_json::json;

use crate::api::OWNER;
use crate::model::effect::{NamespaceDone, NamespaceEnd, NamespaceStep};
use crate::plan::Direction;
use crate::sync::meta::Meta;
use crate::sync::object::Address;
use crate::sync::ownership::{CopyState, Marked, SyncTarget, is_protected_namespace, mark};

/// Whether the hub has these namespaces, as far as it answers.
pub(super) async fn find(hub: &Cluster, names: Vec<String>) -> Vec<(String, Result<bool, Error>)> {
    let mut found = Vec::new();
    for name in names {
        let read = read_metadata(hub, &ResourceType::namespaces(), &ObjectName::new("", &name)).await;
        let is_away = read.as_ref().is_err_and(Error::is_unreachable);
        found.push((name, read.map(|meta: Option<Meta>| meta.is_some())));
        if is_away {
            break;
        }
    }
    found
}

/// Takes one step.
pub(super) async fn take(hub: &Rc<Cluster>, namespace: String, step: NamespaceStep, we: &SyncTarget) -> NamespaceDone {
    let result = match step {
        NamespaceStep::Make => make_namespace(hub, &namespace, we).await.map(|()| NamespaceEnd::Made),
        NamespaceStep::Read => kept_if_forbidden(inspect(hub, &namespace, we).await),
        NamespaceStep::Clear(only_if) => kept_if_forbidden(clear_namespace(hub, &namespace, &only_if).await),
    };
    NamespaceDone { namespace, result }
}

/// To list all that may be in a namespace, and to delete it, are permissions that the syncer need not have.
fn kept_if_forbidden(result: Result<NamespaceEnd, Error>) -> Result<NamespaceEnd, Error> {
    match result {
        Err(error) if error.is_forbidden() => Ok(NamespaceEnd::Forbidden(error)),
        other => other,
    }
}

/// Creates a namespace with our mark, unless there is one.
async fn make_namespace(hub: &Cluster, namespace: &str, we: &SyncTarget) -> Result<(), Error> {
    let mark = mark(Direction::Up);
    let at = Address {
        resource: ResourceType::namespaces(),
        name: ObjectName::new("", namespace),
    };
    let object = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": namespace,
            "labels": {mark: "true"},
            "annotations": {mark: at.for_people(), OWNER: we.owner_mark("", &at.resource)},
        },
    });
    match hub
        .create(&at.resource, &at.name, Bytes::from(object.to_string()))
        .await
    {
        Err(error) if !error.is_already_there() => Err(error),
        _ => Ok(()),
    }
}

/// Whether a namespace is ours and empty.
async fn inspect(hub: &Rc<Cluster>, namespace: &str, we: &SyncTarget) -> Result<NamespaceEnd, Error> {
    let name = ObjectName::new("", namespace);
    let Some(meta) = read_metadata(hub, &ResourceType::namespaces(), &name).await? else {
        return Ok(NamespaceEnd::NotOurs);
    };
    let copy = meta.copy(Direction::Up, &ResourceType::namespaces(), we);
    if copy.state != CopyState::Ours || copy.terminating || is_protected_namespace(namespace, None) {
        return Ok(NamespaceEnd::NotOurs);
    }
    if let Some(found) = first_in_namespace(hub, namespace, is_in_every_namespace).await? {
        return Ok(NamespaceEnd::NotEmpty(found));
    }
    Ok(NamespaceEnd::Empty(Precondition {
        uid: meta.uid,
        resource_version: meta.resource_version,
        ..Precondition::default()
    }))
}

/// Deletes a namespace if it has not changed since it was inspected.
async fn clear_namespace(hub: &Cluster, namespace: &str, only_if: &Precondition) -> Result<NamespaceEnd, Error> {
    let name = ObjectName::new("", namespace);
    match hub.delete(&ResourceType::namespaces(), &name, only_if).await {
        Ok(_) => {
            log_line!(
                Info,
                NamespaceDeleted,
                "deleted a namespace that upsync does not use any more",
                side = "hub",
                object = name.of_kind("Namespace")
            );
            Ok(NamespaceEnd::Cleared)
        }
        Err(error) if error.proves_absent(namespace) => Ok(NamespaceEnd::Cleared),
        Err(error) => Err(error),
    }
}
