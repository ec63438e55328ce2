//! The end of an object: its copy goes first, and when that is gone, the finalizer.

use bytes::Bytes;
use serde_json::Value;

use super::state::States;
use super::{Pass, Settled, delete, name_of};
use crate::lifecycle::{self, Propagation};
use crate::sides::Side;
use crate::trouble::Stop;

impl Pass<'_> {
    /// The copy goes. Its own finalizers are respected: its end is news.
    pub(super) async fn delete_copy(&self, object: &Value, copy: &Value) -> Result<Settled, Stop> {
        let name = name_of(copy);
        let deleted = delete(self.service, self.route.local(), &name, copy, Propagation::of(object)).await;
        let stop = |error| Stop::of(Side::Service, "deleting the copy", format!("{name:?}"), error);
        deleted.map_err(stop)?;
        self.record(
            object,
            "ObjectCleanup",
            "Object deletion has been started and is in progress.",
        );
        // It may be gone already.
        Err(Stop::again("deleting the copy"))
    }

    /// The finalizer goes, as long as the object is as it was read.
    pub(super) async fn release(&self, object: &Value) -> Result<Settled, Stop> {
        States::of(self).delete().await?;
        let Some(patch) = lifecycle::remove_finalizer(object) else {
            return Ok(Settled::Gone);
        };
        let name = &self.primary.name;
        let body = Bytes::from(patch.to_string());
        match self.shard.merge_patch(self.route.remote(), name, body).await {
            Ok(_) => {}
            Err(error) if error.proves_absent(&name.name) => return Ok(Settled::Gone),
            Err(error) => return Err(Stop::of_primary(self.primary.shard(), "removing the finalizer", error)),
        }
        let message = "Object deletion has been completed, finalizer has been removed.";
        self.record(object, "ObjectDeleted", message);
        Ok(Settled::Gone)
    }
}
