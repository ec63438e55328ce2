//! The end of an object: its copy goes first, and when that is gone, the finalizer.

use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use kube_lite::ObjectName;
use kube_lite::logging::log_line;
use kube_lite::logging::times::date_and_time;
use serde_json::{Value, json};

use super::records::{CLEANUP, DELETED};
use super::{Pass, Settled, delete, name_of};
use crate::lifecycle::{self, Propagation};
use crate::sides::Side;
use crate::trouble::Stop;

const DELETING: &str = "deleting the copy";
/// What to do about a copy whose object may have been lost.
const LOST: &str = "bring the object back, which then has this copy; or delete the copy";
/// What to do about a copy whose object was never seen.
const UNSEEN: &str = "if spec.projection was changed, its object may be there as the former type: change it back; else bring the \
    object back, which then has this copy, or delete the copy";
/// What to do about a copy that is another agent's.
const OTHERS: &str = "delete it, if there is no agent of that name any more";
/// How long a copy may have been there that goes with an object which has gone without waiting for it.
const YOUNG: Duration = Duration::from_secs(300);

impl Pass<'_> {
    /// There is no object of that name, as its workspace says. Whoever deletes one has to wait for the finalizer, so that one
    /// that is gone without that may have been lost, as by a restore, and its copy stays. Only one that was just made goes:
    /// a delete that had begun before the finalizer was added ends nevertheless. Where no copy is left, all else goes too.
    pub(super) async fn without_origin(&self) -> Result<Settled, Stop> {
        self.is_ending.set(true);
        self.is_known.set(true);
        let copy = self.find_copy(None).await?;
        if copy.is_none() && self.others.borrow().is_some() {
            return Ok(Settled::Gone);
        }
        let left = copy.as_ref().filter(|copy| !lifecycle::is_in_deletion(copy));
        // Of one that was never seen, nobody has seen a delete begin either.
        let is_unseen = self.job.turn.is_unseen;
        if let Some(copy) = left.filter(|copy| is_unseen || !self.is_young(copy)) {
            let (why, advice) = if is_unseen {
                ("its workspace has no object of this name and type", UNSEEN)
            } else {
                ("its object has gone without waiting for it", LOST)
            };
            self.leaves(&name_of(copy), why, advice);
            return Ok(Settled::Gone);
        }
        let name = &self.primary.name;
        let object = json!({"metadata": {"name": *name.name, "namespace": name.namespace()}});
        if self.has_related().await? && !self.clean_up(&object, copy.as_ref().unwrap_or(&Value::Null)).await? {
            return Ok(Settled::Later);
        }
        if let Some(copy) = left {
            self.end_copy(&object, copy).await?;
        }
        self.delete_states().await?;
        Ok(Settled::Gone)
    }

    fn is_young(&self, copy: &Value) -> bool {
        let made = copy["metadata"]["creationTimestamp"].as_str().unwrap_or_default();
        let now = self.now.duration_since(UNIX_EPOCH).unwrap_or_default();
        *made >= *date_and_time(now.saturating_sub(YOUNG))
    }

    /// The copy goes. Its own finalizers are respected: its end is news.
    pub(super) async fn delete_copy(&self, object: &Value, copy: &Value) -> Result<Settled, Stop> {
        self.end_copy(object, copy).await?;
        self.record(object, CLEANUP);
        // It may be gone already.
        Err(Stop::again(DELETING))
    }

    fn leaves(&self, copy: &ObjectName, why: &str, advice: &str) {
        let kind = &self.route.local().kind;
        log_line!(
            Warn,
            CopyLeft,
            "the copy of an object that is gone is left",
            cluster = self.primary.name.workspace(),
            name = self.primary.name.name,
            object = format!("{kind}/{}/{}", copy.namespace(), copy.name),
            error = why,
            advice = advice
        );
    }

    async fn end_copy(&self, object: &Value, copy: &Value) -> Result<(), Stop> {
        let name = name_of(copy);
        let deleted = delete(self.service, self.route.local(), &name, copy, Propagation::of(object)).await;
        deleted.map_err(|error| Stop::of(Side::Service, DELETING, format!("{name:?}"), error))
    }

    /// The finalizer goes, as long as the object is as it was read. This would have been its copy.
    pub(super) async fn release(&self, object: &Value, planned: Option<&Value>) -> Result<Settled, Stop> {
        // That of a copy that could not be created may have been made for it.
        if let Some(planned) = planned
            && self.state(&self.own_state()).await?.is_none()
        {
            self.left.borrow_mut().insert(name_of(planned).namespace().into());
        }
        self.delete_states().await?;
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
        self.record(object, DELETED);
        if let Some(copy) = self.others.take() {
            self.leaves(&copy, "it is another agent's", OTHERS);
        }
        Ok(Settled::Gone)
    }
}
