//! The status goes back to the workspace.

use kube_lite::{Content, Error, NewStatus, OnlyWith};
use serde_json::Value;

use super::records::{NO_STATUS, STATUS_SYNCED};
use super::{Pass, hash_of, version_of};
use crate::apply::WRITER;
use crate::copy;
use crate::kcp::parsed;
use crate::kinds::TypeOf;
use crate::trouble::Stop;

const DOING: &str = "returning the status";

impl Pass<'_> {
    /// The status of the copy goes back before the object is read, where only that has changed since both were in sync: the
    /// answer is the object as it is then. `None` if it has to be read.
    pub(super) async fn return_ahead(&self, copy: &Value) -> Result<Option<Value>, Stop> {
        let news = self
            .job
            .turn
            .last
            .as_ref()
            .filter(|last| last.status != hash_of(&copy["status"]));
        let Some(last) = news.filter(|_| self.returns() && !self.route.rules.has_status()) else {
            return Ok(None);
        };
        let wanted = copy.get("status").unwrap_or(&Value::Null);
        let object = match self.write_status(&last.uid, wanted, Content::Full).await {
            Ok(object) => {
                self.large.reads(DOING, &object).await?;
                object
            }
            // Why, it says when it is read: it may be gone, be another one, or have no status.
            Err(error) if error.status().is_some() => return Ok(None),
            Err(error) => return Err(self.stop_of_primary(DOING, error)),
        };
        let object = parsed::<Value>(&object).map_err(|error| self.stop_of_primary(DOING, error))?;
        if copy::status(&object, copy).is_none() {
            self.record(&object, STATUS_SYNCED);
        }
        Ok(Some(object))
    }

    /// The status goes back.
    pub(super) async fn return_status(&self, object: &Value, copy: &Value) -> Result<(), Stop> {
        if !self.returns() {
            return Ok(());
        }
        let copy = self.mutated_status(object, copy)?;
        let Some(status) = copy::status(object, &copy) else {
            return Ok(());
        };
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        let written = self.write_status(uid, &status, Content::Metadata).await;
        let written = match written.and_then(|written| parsed::<Value>(&written)) {
            // API servers say of a subresource that is missing that the object is not there.
            Err(error) if error.status().is_some_and(|it| it.code == 404) && self.has_no_status().await => {
                if self.known.has_no_status(self.primary.route) {
                    self.record(object, NO_STATUS);
                }
                return Ok(());
            }
            written => written.map_err(|error| self.stop_of_primary(DOING, error))?,
        };
        // Of what the workspace's type does not keep, nothing has come: then that would be said, and checked, for ever.
        if version_of(&written) != version_of(object) {
            self.record(object, STATUS_SYNCED);
        }
        Ok(())
    }

    /// False where the type has no status in workspaces.
    fn returns(&self) -> bool {
        let [remote, _] = self.route.served.has_status;
        remote && !self.known.is_without_status(self.primary.route)
    }

    async fn write_status(&self, uid: &str, status: &Value, answer: Content) -> Result<bytes::Bytes, Error> {
        let new = NewStatus {
            status: &status.to_string(),
            subresource: true,
            manager: WRITER,
            answer,
        };
        let (remote, name) = (self.route.remote(), &self.primary.name);
        self.shard.replace_status(remote, name, OnlyWith::Uid(uid), &new).await
    }

    /// True if the workspace serves the type, and without a status.
    async fn has_no_status(&self) -> bool {
        let remote = self.route.remote();
        let type_of = TypeOf {
            group: remote.group.clone(),
            version: remote.version.clone(),
            resource: remote.resource.clone(),
        };
        let (at, workspace) = ((self.primary.shard(), self.shard), self.primary.name.workspace());
        let served = self.known.served(at, workspace, &type_of).await;
        matches!(served, Ok(Some(served)) if !served.status_subresource)
    }

    /// The copy with the status that is wanted in the workspace.
    fn mutated_status(&self, object: &Value, copy: &Value) -> Result<Value, Stop> {
        let mut mutated = copy.clone();
        if self.route.rules.has_status() {
            let status = self.route.rules.status(copy, object, self.now);
            let status = status.map_err(|error| self.rule_fails(&error, copy))?;
            mutated["status"] = status.unwrap_or_default();
        }
        Ok(mutated)
    }
}
