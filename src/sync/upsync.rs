//! Upsync: one object from edge to hub.
//!
//! Others use the hub too: an object there that is not marked as ours is never touched, whatever the edge has under its
//! name. So a copy is made by a create, which fails if there is anything, and changed by an apply that is valid only
//! for the version that was seen to be ours.

use std::rc::Rc;

use bytes::Bytes;
use kube_lite::{Cluster, Content, Error};

use super::conflicting;
use super::copy_place::{in_its_place, read_to_decide};
use super::job::{Change, Failure, Job, Outcome, Why, done, done_with, failed, left};
use super::replace::{Replacing, is_ours_alone, make_room};
use super::retire::end_at_once;
use super::take_over::{MOST_VERSIONS, take_left};
use crate::plan::Direction;
use crate::side::Side;
use crate::sync::meta::Meta;
use crate::sync::object::{Address, Desired, Marks};
use crate::sync::ownership::{Copy, CopyState, Marked};

/// What to do at the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Create the copy.
    Create,
    /// Make the fields of our copy what the edge has.
    Apply,
    /// Do not touch somebody else's object, and report it.
    Conflict,
    /// Nothing.
    Leave(Why),
}

/// What to do for an object that the edge has.
pub fn decide(copy: Copy) -> Action {
    match copy.state {
        CopyState::Absent => Action::Create,
        CopyState::Foreign | CopyState::Anothers => Action::Conflict,
        CopyState::Ours if copy.kept => Action::Conflict,
        CopyState::Ours if copy.terminating => Action::Leave(Why::Terminating),
        CopyState::Ours => Action::Apply,
    }
}

/// Makes the copy what the edge has.
pub(super) async fn bring(edge: &Cluster, hub: &Rc<Cluster>, job: &Job, desired: &Desired) -> Result<Outcome, Failure> {
    let failure = match bring_to(hub, job, desired).await {
        Err(failure) if is_ours_alone(job.copy) => failure,
        brought => return brought,
    };
    let is_another = desired.is_another_than(job.copy);
    let Some(why) = Replacing::after(&failure.error, is_another, job, desired) else {
        return Err(failure);
    };
    if let Some(outcome) = make_room(edge, hub, job, desired, why).await? {
        return Ok(outcome);
    }
    let mut outcome = create(hub, job, desired).await?;
    // Otherwise, finalizers keep the old copy for now.
    if outcome.ending == Change::Created {
        outcome.ending = Change::Replaced.into();
    }
    Ok(outcome)
}

async fn bring_to(hub: &Cluster, job: &Job, desired: &Desired) -> Result<Outcome, Failure> {
    match decide(job.copy) {
        Action::Create => create(hub, job, desired).await,
        Action::Conflict if job.read_first && job.copy.state == CopyState::Foreign => {
            Ok(done(in_its_place(job.copy, None), None))
        }
        // It may be gone since, and nothing reports objects without our label; and the log is to name another syncer.
        Action::Conflict => match bring_what_is_there(hub, job, desired).await? {
            Some(outcome) => Ok(outcome),
            None => create(hub, job, desired).await,
        },
        Action::Apply => apply(hub, job, desired, (job.copy, job.copy_version)).await,
        Action::Leave(Why::Terminating) if job.runs_nowhere() => {
            end_at_once(hub, job).await?;
            Ok(left(Why::Terminating))
        }
        Action::Leave(why) => Ok(left(why)),
    }
}

async fn create(hub: &Cluster, job: &Job, desired: &Desired) -> Result<Outcome, Failure> {
    let Address { resource, name } = &job.copy_at;
    let source = job.source_mark(desired, Copy::default());
    let marks = Marks {
        source: source.as_deref(),
        ..Marks::default()
    };
    let body = desired
        .for_create()
        .body(Direction::Up, &job.copy_at, &job.policy.sync_target, &marks);
    let created = hub.create(resource, name, body).await;
    let outcome = match created {
        Ok(object) if desired.has_addition(resource) => complete(hub, job, desired, &object).await,
        Ok(object) => done_with(job, Change::Created, &object, false),
        Err(error) if error.is_already_there() => {
            let found = bring_what_is_there(hub, job, desired).await?;
            // If it was deleted at this moment, the next try creates it.
            return found.ok_or_else(|| failed(Side::Hub, "creating")(error));
        }
        Err(error) => Err(error),
    };
    // A new copy has no status yet: what is synced is without one.
    outcome
        .map(|outcome| Outcome {
            status: Some(0),
            ..outcome
        })
        .map_err(failed(Side::Hub, "creating"))
}

/// Sets what a create cannot set.
async fn complete(hub: &Cluster, job: &Job, desired: &Desired, object: &[u8]) -> Result<Outcome, Error> {
    let at = (Copy::default(), Meta::parse(object)?.version_number());
    let outcome = apply_at(hub, job, desired, at).await?;
    Ok(Outcome {
        ending: Change::Created.into(),
        ..outcome
    })
}

/// Reads what has the copy's name, and continues from there. `None` if there is nothing.
async fn bring_what_is_there(hub: &Cluster, job: &Job, desired: &Desired) -> Result<Option<Outcome>, Failure> {
    let found = read_to_decide(hub, job).await.map_err(failed(Side::Hub, "reading"))?;
    let Some((meta, copy)) = found else {
        return Ok(None);
    };
    let outcome = match decide(copy) {
        Action::Apply => apply(hub, job, desired, (copy, meta.version_number())).await?,
        Action::Leave(why) => left(why),
        Action::Conflict | Action::Create => {
            // A copy from which people have removed the other mark still has an owner mark with this sync target.
            let owner = meta.sync_target().filter(|_| copy.state == CopyState::Anothers);
            done(in_its_place(copy, owner.map(str::to_owned)), None)
        }
    };
    Ok(Some(outcome))
}

async fn apply(hub: &Cluster, job: &Job, desired: &Desired, at: (Copy, u64)) -> Result<Outcome, Failure> {
    let answer = apply_at(hub, job, desired, at).await;
    answer.map_err(failed(Side::Hub, "applying"))
}

/// Applies to this copy as it was at this version.
async fn apply_at(hub: &Cluster, job: &Job, desired: &Desired, (copy, version): (Copy, u64)) -> Result<Outcome, Error> {
    let Address { resource, name } = &job.copy_at;
    let source = job.source_mark(desired, copy);
    let source = source.as_deref();
    let (mut object, created) = apply_once(hub, job, desired, (copy, version), source).await?;
    let (reverted, lists) = (job.policy.reverts(job.selection), desired.lists_of_duplicates());
    for _ in 0..MOST_VERSIONS {
        let Some(patch) = take_left(&object, resource, reverted, &lists)? else {
            break;
        };
        let patched = hub
            .merge_patch_for(resource, name, Bytes::from(patch), Content::Metadata)
            .await?;
        let version = Meta::parse(&patched)?.version_number();
        (object, _) = apply_once(hub, job, desired, (Copy::default(), version), source).await?;
    }
    if let Some(patch) = desired.addition(resource, &object)? {
        object = hub.merge_patch_for(resource, name, patch, Content::Metadata).await?;
    }
    let mut outcome = done_with(job, Change::Updated, &object, false)?;
    if created {
        // It was deleted without notice, and its status with it.
        outcome.ending = Change::Created.into();
        outcome.status = Some(0);
    } else if outcome.copy.is_some_and(|seen| seen.version == job.copy_version) {
        outcome.ending = Change::Unchanged.into();
    }
    Ok(outcome)
}

/// Applies to the copy as it was at `version`, with this [`SOURCE`](crate::api::SOURCE). Returns the copy, and whether
/// the apply has created it.
async fn apply_once(
    hub: &Cluster,
    job: &Job,
    desired: &Desired,
    (copy, version): (Copy, u64),
    source: Option<&str>,
) -> Result<(Bytes, bool), Error> {
    let Address { resource, name } = &job.copy_at;
    // The answer is sent over the hub's link, so the whole object is requested only if it is needed to find what is
    // still to be done.
    let answer = if desired.may_have_addition(resource) || desired.may_empty() {
        Content::Full
    } else {
        Content::Metadata
    };
    let once = async |at_version: Option<&str>| {
        let marks = Marks {
            at_version,
            source,
            ..Marks::default()
        };
        let body = desired.body(Direction::Up, &job.copy_at, &job.policy.sync_target, &marks);
        hub.apply(resource, name, body, answer).await
    };
    conflicting::apply(hub, job, desired, (copy, Some(&version.to_string())), once).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_of_somebody_else_is_never_written() {
        let copy = |state, terminating| Copy {
            state,
            terminating,
            ..Copy::default()
        };
        for (copy, expected) in [
            (copy(CopyState::Absent, false), Action::Create),
            (copy(CopyState::Ours, false), Action::Apply),
            (copy(CopyState::Ours, true), Action::Leave(Why::Terminating)),
            (
                Copy {
                    kept: true,
                    ..copy(CopyState::Ours, false)
                },
                Action::Conflict,
            ),
            (copy(CopyState::Foreign, false), Action::Conflict),
            (copy(CopyState::Foreign, true), Action::Conflict),
        ] {
            assert_eq!(decide(copy), expected, "{copy:?}");
        }
    }
}
