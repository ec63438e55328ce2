//! Downsync: one object from hub to edge.
//!
//! [`decide`] is the whole policy, as a pure function. [`reconcile`] looks at the current state where it is not known,
//! decides, and does it. It may be run again at any time, after any outcome: a lost reply costs one more request.

use std::rc::Rc;

use bytes::Bytes;
use serde_json::json;

use crate::api::DOWNSYNC_OVERWRITE;
use crate::cluster::{Cluster, Content, Error, ObjectName, Precondition, ResourceType, Side};
use crate::plan::Selection;
use crate::sync::managed_fields::{marks, take_over};
use crate::sync::object::{Desired, Meta};
use crate::sync::ownership::{Copy, CopyState};

/// What the hub has to say about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It exists and is selected.
    Wanted {
        /// Selected whole, or implied (a namespace that has to exist).
        whole: bool,
        /// Its `downsync-overwrite` says to create once.
        hands_off: bool,
    },
    /// It exists, but nothing selects it, or it never travels.
    NotSelected,
    /// The hub has proved that it does not exist.
    Absent,
}

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
    /// Delete the copy.
    Delete,
    /// Take our marks off and leave the object.
    Release,
    /// Nothing.
    Leave(Why),
}

/// Why nothing is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Nothing selects it.
    NotSelected,
    /// It is not ours to delete, or not ours to adopt.
    NotOurs,
    /// Its content is left to the edge.
    HandsOff,
    /// A namespace that is never deleted.
    Protected,
    /// It is being deleted already; when it is gone, there will be another look.
    Terminating,
    /// It exists on neither side.
    Gone,
}

/// What the edge's owner has chosen.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Delete adopted objects instead of releasing them, as the Go syncer did (`--delete-adopted`).
    pub delete_adopted: bool,
    /// Field managers whose own fields are taken back at the edge (`--take-back-from`).
    pub take_back_from: Vec<String>,
}

/// The policy of spec 3.2 to 3.6 and DESIGN section 4. `protected` is true for a namespace that is never deleted.
#[expect(clippy::match_same_arms, reason = "one arm for each row of the spec")]
pub fn decide(origin: Origin, copy: Copy, protected: bool) -> Action {
    use CopyState::{Absent, Foreign, Ours};
    match (origin, copy.state) {
        (Origin::NotSelected, _) => Action::Leave(Why::NotSelected),
        (Origin::Absent, Absent) => Action::Leave(Why::Gone),
        (_, Ours | Foreign) if copy.terminating => Action::Leave(Why::Terminating),
        (Origin::Absent | Origin::Wanted { whole: false, .. }, Foreign) => Action::Leave(Why::NotOurs),
        (Origin::Absent, Ours) if protected => Action::Leave(Why::Protected),
        (Origin::Absent, Ours) if copy.hands_off => Action::Leave(Why::HandsOff),
        (Origin::Absent, Ours) if copy.adopted => Action::Release,
        (Origin::Absent, Ours) => Action::Delete,
        (Origin::Wanted { .. }, Absent) => Action::Apply { adopted: false },
        (Origin::Wanted { hands_off: true, .. }, Ours | Foreign) if copy.hands_off => Action::Leave(Why::HandsOff),
        (Origin::Wanted { hands_off: true, .. }, Ours | Foreign) => Action::MarkHandsOff,
        (Origin::Wanted { .. }, Ours) => Action::Apply { adopted: copy.adopted },
        (Origin::Wanted { .. }, Foreign) => Action::Apply { adopted: true },
    }
}

/// One object to bring in step.
#[derive(Debug)]
pub struct Job {
    /// Its type at the hub.
    pub resource: ResourceType,
    /// The same type at the edge, where another version may be served.
    pub at_edge: ResourceType,
    /// The hub has proved that it no longer has any object of the type.
    pub type_gone: bool,
    /// What the edge's owner has chosen.
    pub policy: Rc<Policy>,
    /// Its name.
    pub name: ObjectName,
    /// How it is selected now.
    pub selection: Selection,
    /// The hub object, if it is at hand; otherwise it is read.
    pub body: Option<Bytes>,
    /// The copy as last seen.
    pub copy: Copy,
    /// Resource version of the copy as last seen, 0 if unknown.
    pub copy_version: u64,
    /// What is known of the copy is not certain: it is said to be gone, but may have lost no more than its label, or an
    /// earlier write may have taken effect without an answer. It is looked at first.
    pub look_first: bool,
    /// It is a namespace that is never deleted.
    pub protected: bool,
}

/// What a job ended with.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What was done.
    pub change: Change,
    /// [`Desired::hash`] of what was brought in step; 0 if the hub wants nothing.
    pub desired_hash: u64,
    /// The copy after it, where it is known.
    pub copy: Option<Seen>,
}

/// An edge copy as it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its marks.
    pub copy: Copy,
    /// It carries the label that selects copies, so that lists by label name it.
    pub labelled: bool,
    /// [`marks`] of it; 0 for an absent one.
    pub hash: u64,
    /// Its resource version as a number; 0 for an absent one.
    pub version: u64,
}

impl Seen {
    /// Nothing is there.
    pub const ABSENT: Self = Self {
        copy: Copy {
            state: CopyState::Absent,
            hands_off: false,
            adopted: false,
            terminating: false,
        },
        labelled: false,
        hash: 0,
        version: 0,
    };

    /// Looks at an edge object, whole or metadata alone.
    pub fn of(resource: &ResourceType, object: &[u8], policy: &Policy) -> Result<Self, Error> {
        let meta = Meta::parse(object)?;
        Ok(Self {
            copy: meta.copy(&resource.kind),
            labelled: meta.is_labelled(),
            hash: marks(object, &policy.take_back_from)?,
            version: meta.version_number(),
        })
    }
}

/// What was done at the edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The copy was created.
    Created,
    /// The copy was changed.
    Updated,
    /// An object that was there before was overwritten and marked.
    Adopted,
    /// The copy was already so.
    Unchanged,
    /// The copy was marked to be left alone.
    MarkedHandsOff,
    /// The copy was deleted.
    Deleted,
    /// Our marks were taken off an adopted object.
    Released,
    /// The copy could not be updated and was deleted and created again.
    Replaced,
    /// Nothing was done.
    Left(Why),
}

/// A request that failed.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    /// The side that it was for.
    pub side: Side,
    /// What was being done, `reading` or `applying`.
    pub doing: &'static str,
    /// [`Desired::hash`] of what was to be brought in step; 0 if unknown.
    pub desired_hash: u64,
    /// What came back.
    pub error: Error,
}

/// Brings one object in step.
pub async fn reconcile(hub: &Cluster, edge: &Cluster, mut job: Job) -> Result<Outcome, Failure> {
    let failed = |side, doing| {
        move |error| Failure {
            side,
            doing,
            desired_hash: 0,
            error,
        }
    };
    let desired = match read_desired(hub, &job).await.map_err(failed(Side::Hub, "reading"))? {
        Read::Absent => return retire(edge, &job).await,
        Read::NotSelected => return Ok(left(Why::NotSelected)),
        Read::Wanted(desired) => desired,
    };
    if job.look_first {
        let found = look(edge, &job).await.map_err(failed(Side::Edge, "reading"))?;
        job.copy = found.map_or_else(Copy::default, |meta| meta.copy(&job.at_edge.kind));
    }
    let origin = Origin::Wanted {
        whole: job.selection == Selection::Full,
        hands_off: desired.hands_off,
    };
    let result = match decide(origin, job.copy, job.protected) {
        Action::Apply { adopted } => apply(edge, &job, &desired, adopted)
            .await
            .map_err(failed(Side::Edge, "applying")),
        Action::MarkHandsOff => mark_hands_off(edge, &job).await.map_err(failed(Side::Edge, "marking")),
        Action::Leave(why) => Ok(left(why)),
        Action::Delete | Action::Release => unreachable!("only an absent origin retires a copy"),
    };
    match result {
        Ok(outcome) => Ok(Outcome {
            desired_hash: desired.hash,
            ..outcome
        }),
        Err(failure) => Err(Failure {
            desired_hash: desired.hash,
            ..failure
        }),
    }
}

/// The metadata of the copy as it is now; `None` if there is none.
async fn look(edge: &Cluster, job: &Job) -> Result<Option<Meta>, Error> {
    match edge.get(&job.at_edge, &job.name, Content::Metadata).await {
        Ok(object) => check_name(&job.name, &object)
            .and_then(|()| Meta::parse(&object))
            .map(Some),
        Err(error) if error.proves_absent(&job.name.name) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What reading the hub gave.
enum Read {
    Wanted(Desired),
    NotSelected,
    Absent,
}

async fn read_desired(hub: &Cluster, job: &Job) -> Result<Read, Error> {
    // An unselected object is only asked for to learn whether it still exists.
    if job.type_gone {
        return Ok(Read::Absent);
    }
    let content = if job.selection == Selection::Full {
        Content::Full
    } else {
        Content::Metadata
    };
    let body = match &job.body {
        Some(body) => body.clone(),
        None => match hub.get(&job.resource, &job.name, content).await {
            Ok(body) => body,
            Err(error) if error.proves_absent(&job.name.name) => return Ok(Read::Absent),
            Err(error) => return Err(error),
        },
    };
    check_name(&job.name, &body)?;
    if job.selection == Selection::None {
        return Ok(Read::NotSelected);
    }
    Ok(match Desired::from_hub(&job.resource, job.selection, &body)? {
        Some(desired) => Read::Wanted(desired),
        None => Read::NotSelected,
    })
}

/// An answer about another object is no answer.
fn check_name(name: &ObjectName, body: &[u8]) -> Result<(), Error> {
    let got = Meta::parse(body)?.object_name();
    if got == *name {
        Ok(())
    } else {
        Err(Error::BadAnswer(format!("asked for {name:?}, got {got:?}")))
    }
}

fn left(why: Why) -> Outcome {
    done(Change::Left(why), None)
}

fn done(change: Change, copy: Option<Seen>) -> Outcome {
    Outcome {
        change,
        desired_hash: 0,
        copy,
    }
}

async fn apply(edge: &Cluster, job: &Job, desired: &Desired, adopted: bool) -> Result<Outcome, Error> {
    let (mut object, created) = match edge
        .apply(&job.at_edge, &job.name, desired.body(&job.at_edge, adopted))
        .await
    {
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
        (object, _) = edge
            .apply(&job.at_edge, &job.name, desired.body(&job.at_edge, false))
            .await?;
    } else if !created && job.copy.state == CopyState::Absent {
        // Somebody created it since it was last seen to be absent: it is theirs, and has to say so.
        (object, _) = edge
            .apply(&job.at_edge, &job.name, desired.body(&job.at_edge, true))
            .await?;
        change = Change::Adopted;
    }
    if let Some(patch) = take_over(&object, &job.policy.take_back_from)? {
        edge.merge_patch(&job.at_edge, &job.name, Bytes::from(patch)).await?;
        let adopted = adopted || change == Change::Adopted;
        (object, _) = edge
            .apply(&job.at_edge, &job.name, desired.body(&job.at_edge, adopted))
            .await?;
    }
    if let Some(patch) = desired.addition(&job.at_edge, &object)? {
        object = edge.merge_patch(&job.at_edge, &job.name, patch).await?;
    }
    let mut seen = Seen::of(&job.at_edge, &object, &job.policy)?;
    if seen.copy.hands_off && !desired.hands_off {
        // The hub dropped the annotation. It was written by a patch, so applying without it leaves it there.
        seen = set_hands_off(edge, job, None).await?;
    }
    if change == Change::Updated && seen.version == job.copy_version {
        change = Change::Unchanged;
    }
    Ok(done(change, Some(seen)))
}

/// The edge refuses an update, and the hub object allows its copy to be replaced. The edge is first asked whether it
/// would take the object as a new one, so that a copy is never deleted for one that cannot be.
async fn replace(edge: &Cluster, job: &Job, desired: &Desired, refusal: Error) -> Result<Outcome, Error> {
    let body = desired.body(&job.at_edge, job.copy.adopted);
    if edge.would_create(&job.at_edge, &job.name, body.clone()).await.is_err() {
        return Err(refusal);
    }
    let ours = |meta: &Meta| meta.copy(&job.at_edge.kind).state == CopyState::Ours;
    let Some(meta) = look(edge, job).await?.filter(ours) else {
        return Err(refusal);
    };
    edge.delete(&job.at_edge, &job.name, &precondition(&meta)).await?;
    match edge.apply(&job.at_edge, &job.name, body).await {
        Ok((object, true)) => Ok(done(
            Change::Replaced,
            Some(Seen::of(&job.at_edge, &object, &job.policy)?),
        )),
        // Finalizers or a grace period keep the old copy for now. The edge will tell when it is gone.
        _ => Ok(left(Why::Terminating)),
    }
}

fn precondition(meta: &Meta) -> Precondition {
    Precondition {
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
    }
}

async fn mark_hands_off(edge: &Cluster, job: &Job) -> Result<Outcome, Error> {
    let seen = set_hands_off(edge, job, Some("false")).await?;
    Ok(done(Change::MarkedHandsOff, Some(seen)))
}

async fn set_hands_off(edge: &Cluster, job: &Job, value: Option<&str>) -> Result<Seen, Error> {
    let patch = json!({"metadata": {"annotations": {DOWNSYNC_OVERWRITE: value}}});
    let object = edge
        .merge_patch(&job.at_edge, &job.name, Bytes::from(patch.to_string()))
        .await?;
    Seen::of(&job.at_edge, &object, &job.policy)
}

/// The hub has proved that the object does not exist: looks at the edge copy once more, and deletes or releases it if
/// it is ours. Both carry what was looked at as a precondition, so that what somebody changes in between survives.
async fn retire(edge: &Cluster, job: &Job) -> Result<Outcome, Failure> {
    let failed = |doing| {
        move |error| Failure {
            side: Side::Edge,
            doing,
            desired_hash: 0,
            error,
        }
    };
    let name = &job.name;
    let Some(meta) = look(edge, job).await.map_err(failed("reading"))? else {
        return Ok(done(Change::Left(Why::Gone), Some(Seen::ABSENT)));
    };
    let mut copy = meta.copy(&job.at_edge.kind);
    copy.adopted &= !job.policy.delete_adopted;
    match decide(Origin::Absent, copy, job.protected) {
        Action::Delete => match edge.delete(&job.at_edge, name, &precondition(&meta)).await {
            Ok(()) => Ok(done(Change::Deleted, None)),
            Err(error) if error.proves_absent(&name.name) => Ok(done(Change::Left(Why::Gone), Some(Seen::ABSENT))),
            Err(error) => Err(failed("deleting")(error)),
        },
        Action::Release => {
            let patch = release_patch(&meta);
            let released = edge.merge_patch(&job.at_edge, name, patch).await;
            let seen = released.and_then(|object| Seen::of(&job.at_edge, &object, &job.policy));
            Ok(done(Change::Released, Some(seen.map_err(failed("releasing"))?)))
        }
        Action::Leave(why) => Ok(left(why)),
        Action::Apply { .. } | Action::MarkHandsOff => unreachable!("an absent origin is never applied"),
    }
}

fn release_patch(meta: &Meta) -> Bytes {
    use crate::api::{ADOPTED, DOWNSYNCED};
    let patch = json!({"metadata": {
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
        "labels": {DOWNSYNCED: null},
        "annotations": {DOWNSYNCED: null, ADOPTED: null},
    }});
    Bytes::from(patch.to_string())
}

#[cfg(test)]
#[path = "downsync_tests.rs"]
mod tests;
