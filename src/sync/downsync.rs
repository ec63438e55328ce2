//! Downsync: one object from hub to edge.
//!
//! [`decide`] is the whole policy, as a pure function.

use bytes::Bytes;
use serde_json::json;

use super::job::{Change, Failure, Job, Outcome, Why, done_with, failed, left, precondition};
use super::look::look;
use crate::api::DOWNSYNC_OVERWRITE;
use crate::cluster::{Cluster, Content, Error, Side};
use crate::plan::{Direction, Selection};
use crate::sync::managed_fields::{is_made_by_us, take_over};
use crate::sync::object::{Address, Desired, Marks, Meta};
use crate::sync::ownership::{Copy, CopyState};

/// What to do at the edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Create the object, or make its fields what the hub says.
    Apply {
        /// Mark it as one that was there before.
        adopted: bool,
    },
    /// Set the copy's `downsync-overwrite` to the hub's value and touch nothing else.
    MarkHandsOff,
    /// Nothing.
    Leave(Why),
}

/// The policy of spec 3.2 to 3.6 and DESIGN section 4 for an object that the hub wants. What becomes of a copy that it
/// does not want any more is for [`super::job::retirement`] to say.
pub fn decide(whole: bool, hands_off: bool, copy: Copy) -> Action {
    use CopyState::{Absent, Foreign, Ours};
    match copy.state {
        Ours | Foreign if copy.terminating => Action::Leave(Why::Terminating),
        Foreign if !whole => Action::Leave(Why::NotOurs),
        Absent => Action::Apply { adopted: false },
        Ours | Foreign if hands_off && copy.hands_off => Action::Leave(Why::HandsOff),
        Ours | Foreign if hands_off => Action::MarkHandsOff,
        Ours => Action::Apply { adopted: copy.adopted },
        Foreign => Action::Apply { adopted: true },
    }
}

/// Makes the copy what the hub wants.
pub(super) async fn bring(edge: &Cluster, job: &Job, desired: &Desired) -> Result<Outcome, Failure> {
    match decide(job.selection == Selection::Full, desired.hands_off, job.copy) {
        Action::Apply { adopted } => apply(edge, job, desired, adopted)
            .await
            .map_err(failed(Side::Edge, "applying")),
        Action::MarkHandsOff => mark_hands_off(edge, job).await.map_err(failed(Side::Edge, "marking")),
        Action::Leave(why) => Ok(left(why)),
    }
}

async fn apply(edge: &Cluster, job: &Job, desired: &Desired, adopted: bool) -> Result<Outcome, Error> {
    let (mut object, created) = match apply_once(edge, job, desired, adopted).await {
        Err(error) if desired.replace && error.is_rejection() && job.copy.state == CopyState::Ours => {
            return replace(edge, job, desired, error).await;
        }
        other => other?,
    };
    let mut change = match () {
        () if created => Change::Created,
        () if adopted && job.copy.state == CopyState::Foreign => Change::Adopted,
        () => Change::Updated,
    };
    if created && adopted {
        // What was there before has gone meanwhile: this one is ours.
        (object, _) = apply_once(edge, job, desired, false).await?;
    } else if !created && job.copy.state == CopyState::Absent && !is_made_by_us(&object)? {
        // Somebody created it since it was last seen to be absent: it is theirs, and has to say so.
        (object, _) = apply_once(edge, job, desired, true).await?;
        change = Change::Adopted;
    }
    let Address { resource, name } = &job.copy_at;
    if let Some(patch) = take_over(&object, Direction::Down, &job.policy.take_back_from)? {
        let patched = edge.merge_patch(resource, name, Bytes::from(patch)).await?;
        Meta::of(name, &patched)?;
        (object, _) = apply_once(edge, job, desired, adopted || change == Change::Adopted).await?;
    }
    if let Some(patch) = desired.addition(resource, &object)? {
        object = edge.merge_patch(resource, name, patch).await?;
    }
    let mut outcome = done_with(job, change, &object, true)?;
    if outcome.copy.is_some_and(|seen| seen.copy.hands_off) && !desired.hands_off {
        // The hub dropped the annotation. It was written by a patch, so applying without it leaves it there.
        outcome = set_hands_off(edge, job, outcome.change, None).await?;
    }
    if outcome.change == Change::Updated && outcome.copy.is_some_and(|seen| seen.version == job.copy_version) {
        outcome.change = Change::Unchanged;
    }
    Ok(outcome)
}

async fn apply_once(edge: &Cluster, job: &Job, desired: &Desired, adopted: bool) -> Result<(Bytes, bool), Error> {
    let Address { resource, name } = &job.copy_at;
    let marks = Marks {
        adopted,
        ..Marks::default()
    };
    let body = desired.body(Direction::Down, &job.copy_at, &marks);
    edge.apply(resource, name, body, Content::Full).await
}

/// The edge refuses an update, and the hub object allows its copy to be replaced. The edge is first asked whether it
/// would take the object as a new one, so that a copy is never deleted for one that cannot be.
async fn replace(edge: &Cluster, job: &Job, desired: &Desired, refusal: Error) -> Result<Outcome, Error> {
    let Address { resource, name } = &job.copy_at;
    let marks = Marks {
        adopted: job.copy.adopted,
        ..Marks::default()
    };
    let body = desired.body(Direction::Down, &job.copy_at, &marks);
    if edge.would_create(resource, name, body.clone()).await.is_err() {
        return Err(refusal);
    }
    let ours = |meta: &Meta| meta.copy(Direction::Down, &resource.kind).state == CopyState::Ours;
    let Some(meta) = look(edge, job).await?.filter(ours) else {
        return Err(refusal);
    };
    edge.delete(resource, name, &precondition(&meta)).await?;
    match edge.apply(resource, name, body, Content::Full).await {
        Ok((object, true)) => done_with(job, Change::Replaced, &object, true),
        // Finalizers or a grace period keep the old copy for now. The edge will tell when it is gone.
        _ => Ok(left(Why::Terminating)),
    }
}

async fn mark_hands_off(edge: &Cluster, job: &Job) -> Result<Outcome, Error> {
    set_hands_off(edge, job, Change::MarkedHandsOff, Some("false")).await
}

async fn set_hands_off(edge: &Cluster, job: &Job, change: Change, value: Option<&str>) -> Result<Outcome, Error> {
    let patch = json!({"metadata": {"annotations": {DOWNSYNC_OVERWRITE: value}}});
    let Address { resource, name } = &job.copy_at;
    let object = edge.merge_patch(resource, name, Bytes::from(patch.to_string())).await?;
    done_with(job, change, &object, true)
}

#[cfg(test)]
#[path = "downsync_tests.rs"]
mod tests;
