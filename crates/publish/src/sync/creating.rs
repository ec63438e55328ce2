//! Creating an object in a namespace that may be missing.
//!
//! Promises: of all that are first in a namespace, one finds out whether that is there, and makes it; the others wait.

use bytes::Bytes;
use kube_lite::{Cluster, Error, ObjectName, ResourceType};
use serde_json::{Value, json};

use super::Pass;
use crate::keys::AGENT_NAME;
use crate::sides::Side;

impl Pass<'_> {
    /// Creates an object, and its namespace if that is missing. Gives its metadata.
    pub(super) async fn create_at(
        &self,
        (side, server): (Side, &Cluster),
        resource: &ResourceType,
        name: &ObjectName,
        object: &Value,
    ) -> Result<Bytes, Error> {
        let body = Bytes::from(object.to_string());
        let create = || server.create(resource, name, body.clone());
        let of_namespace = ObjectName::in_workspace(name.workspace(), "", name.namespace());
        let namespace = self.known.namespace(side, &of_namespace);
        let mut is_tried = namespace.lock().await;
        if *is_tried {
            drop(is_tried);
            match create().await {
                Err(error) if error.missing_namespace().is_some() => {}
                other => return other,
            }
            is_tried = namespace.lock().await;
        }
        // Where this fails, no other one waits for it any more.
        *is_tried = true;
        match create().await {
            Err(error) if error.missing_namespace().is_some() => {
                self.create_namespace((side, server), &of_namespace).await?;
                create().await
            }
            other => other,
        }
    }

    /// On the service cluster, it has the label of the agent that has made it; in workspaces nobody has to know about that.
    async fn create_namespace(&self, (side, server): (Side, &Cluster), name: &ObjectName) -> Result<(), Error> {
        let mut namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name.name}});
        if side == Side::Service {
            namespace["metadata"]["labels"] = json!({ AGENT_NAME: *self.job.agent });
        }
        let (namespaces, body) = (ResourceType::namespaces(), namespace.to_string().into());
        match server.create(&namespaces, name, body).await {
            Err(error) if !error.is_already_there() => Err(error),
            _ => Ok(()),
        }
    }
}
