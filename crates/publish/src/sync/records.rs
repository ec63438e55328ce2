//! What has happened to objects, for people: Events in their workspace.

use driver::events::Record;
use kube_lite::{ObjectName, ResourceType};
use serde_json::Value;

use super::Pass;

/// What has happened.
#[derive(Clone, Copy, Debug)]
pub(super) struct What {
    reason: &'static str,
    message: &'static str,
    is_warning: bool,
}

const fn normal(reason: &'static str, message: &'static str) -> What {
    What {
        reason,
        message,
        is_warning: false,
    }
}

pub(super) const ACCEPTED: What = normal("ObjectAccepted", "Object has been seen by the service provider.");
pub(super) const PLACED: What = normal("ObjectPlaced", "Object has been placed.");
pub(super) const SYNCED: What = normal(
    "ObjectSynced",
    "The current desired state of the object has been synchronized.",
);
pub(super) const STATUS_SYNCED: What = normal("ObjectStatusSynced", "The current object status has been synchronized.");
pub(super) const CLEANUP: What = normal("ObjectCleanup", "Object deletion has been started and is in progress.");
pub(super) const DELETED: What = normal(
    "ObjectDeleted",
    "Object deletion has been completed, finalizer has been removed.",
);
pub(super) const NO_STATUS: What = What {
    reason: "StatusSubresourceMissing",
    message: "The status cannot be synchronized: the type of the workspace has no status subresource.",
    is_warning: true,
};
pub(super) const STATUS_LOST: What = What {
    reason: "StatusSubresourceMissing",
    message: "The status cannot be synchronized: the type of the other side has no status subresource.",
    is_warning: true,
};

impl Pass<'_> {
    /// Something has happened to the object.
    pub(super) fn record(&self, object: &Value, what: What) {
        self.record_on(self.route.remote(), &self.primary.name, object, what);
    }

    /// Something has happened to an object of a workspace.
    pub(super) fn record_on(&self, resource: &ResourceType, name: &ObjectName, object: &Value, what: What) {
        self.records.borrow_mut().push(Record {
            object: name.clone(),
            type_of: [resource.api_version(), resource.kind.clone()],
            uid: object["metadata"]["uid"].as_str().unwrap_or_default().to_owned(),
            is_warning: what.is_warning,
            reason: what.reason,
            message: what.message.to_owned(),
            reporter: "syncagent-sync",
        });
    }
}
