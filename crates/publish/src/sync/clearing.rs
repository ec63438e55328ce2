//! The end of a namespace that the agent has made.

use std::rc::Rc;

use kube_lite::contents::{first_in_namespace, is_in_every_namespace};
use kube_lite::{Cluster, Content, Error, ObjectName, Precondition, ResourceType};
use serde_json::Value;

use crate::kcp::parsed;
use crate::keys::AGENT_NAME;
use crate::lifecycle;
use crate::sides::Side;
use crate::trouble::Stop;

/// What has become of a namespace in which no copy is any more.
#[derive(Debug)]
pub(crate) enum Cleared {
    /// It is being deleted.
    Gone,
    /// This agent has not made it.
    NotOurs,
    /// Something is in it.
    NotEmpty(String),
    /// The agent may not see all that is in it, or not delete it.
    Forbidden(Error),
}

/// Deletes a namespace that this agent has made, if nothing is in it.
pub(crate) async fn clear(service: &Rc<Cluster>, agent: &str, name: &str) -> Result<Cleared, Stop> {
    match cleared(service, agent, name).await {
        Err(error) if error.is_forbidden() => Ok(Cleared::Forbidden(error)),
        other => other.map_err(|error| Stop::of(Side::Service, "deleting an empty namespace", name, error)),
    }
}

async fn cleared(service: &Rc<Cluster>, agent: &str, name: &str) -> Result<Cleared, Error> {
    let (namespaces, at) = (ResourceType::namespaces(), ObjectName::new("", name));
    let found = match service.get(&namespaces, &at, Content::Metadata).await {
        Ok(found) => parsed::<Value>(&found)?,
        Err(error) if error.proves_absent(name) => return Ok(Cleared::NotOurs),
        Err(error) => return Err(error),
    };
    let metadata = &found["metadata"];
    if lifecycle::is_in_deletion(&found) || metadata["labels"][AGENT_NAME] != *agent {
        return Ok(Cleared::NotOurs);
    }
    if let Some(found) = first_in_namespace(service, name, is_in_every_namespace).await? {
        return Ok(Cleared::NotEmpty(found));
    }
    let text = |key: &str| metadata[key].as_str().unwrap_or_default().to_owned();
    let only_if = Precondition {
        uid: text("uid"),
        resource_version: text("resourceVersion"),
        ..Precondition::default()
    };
    match service.delete(&namespaces, &at, &only_if).await {
        Err(error) if !error.proves_absent(name) => Err(error),
        _ => Ok(Cleared::Gone),
    }
}
