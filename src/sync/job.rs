//! One object to bring in step, whichever way it travels: looking, deciding, doing.
//!
//! [`reconcile`] looks at the current state where it is not known, lets the direction decide ([`super::downsync`],
//! [`super::upsync`], and [`super::retire`] where the origin is gone), and does it. It may be run again at any time, after any outcome: a lost reply costs one more
//! request.

use std::rc::Rc;

use bytes::Bytes;
use serde_json::json;

use super::look::{confirm_there, finalizers_of, look_at, not_older, see};
use super::retire::retire;
use super::{downsync, upsync};
use crate::cluster::{Cluster, Content, Error, ObjectName, Precondition, ResourceType, Side};
use crate::plan::{Direction, Selection};
use crate::sync::definition::{Definitions, Withdrawal};
use crate::sync::identity::{Doubt, Identity};
use crate::sync::managed_fields::{TakeBack, marks};
use crate::sync::object::{Address, Desired, Meta, Status};
use crate::sync::ownership::{Copy, CopyState, Source, SyncTarget};

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
    /// It is a Job that has run to its end, and whose copy is gone: it is not to run again.
    Finished,
    /// It exists on neither side.
    Gone,
}

/// What the edge's owner has chosen.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Who this syncer is in the owner marks of its copies.
    pub sync_target: SyncTarget,
    /// Delete adopted objects instead of releasing them, as the Go syncer did (`--delete-adopted`).
    pub delete_adopted: bool,
    /// Field managers whose own fields are taken back in copies (`--take-back-from`).
    pub take_back_from: Vec<String>,
}

impl Policy {
    /// Whose fields are taken back in a copy that is selected so. One that only has to be there is the edge's to label: its
    /// Pod Security labels, for one.
    pub fn takes_back(&self, selection: Selection) -> TakeBack<'_> {
        (selection != Selection::Implied).then_some(&*self.take_back_from)
    }
}

/// One object to bring in step.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Job {
    /// Which way it travels.
    pub direction: Direction,
    /// What people change.
    pub origin: Address,
    /// What the syncer writes.
    pub copy_at: Address,
    /// The origin's side has proved that it no longer has any object of the type.
    pub type_gone: bool,
    /// What the edge's owner has chosen.
    pub policy: Rc<Policy>,
    /// How it is selected now.
    pub selection: Selection,
    /// The origin, if it is at hand; otherwise it is read.
    pub body: Option<Bytes>,
    /// The copy as last seen.
    pub copy: Copy,
    /// Resource version of the copy as last seen, or at which it was seen to go; 0 if unknown.
    pub copy_version: u64,
    /// The same of the origin: what is older is not what is there now.
    pub origin_told: u64,
    /// The version of the last list that would have named the origin and did not; 0 if it did, or there was none.
    pub origin_unnamed: u64,
    /// What is known of the copy is not certain: it is said to be gone, but may have lost no more than its label, or an
    /// earlier write may have taken effect without an answer. It is looked at first.
    pub look_first: bool,
    /// It is not known whether there is an origin.
    pub suspect: bool,
    /// It is a namespace that is never deleted.
    pub protected: bool,
    /// The edge's owner does not allow that the namespace of the copy is made for it.
    pub namespace_refused: bool,
    /// Who the origins' side has to be for the copy to be deleted.
    pub identity: Rc<Identity>,
    /// What has to define the type at the hub for the copy of one of its objects to be deleted.
    pub definitions: Rc<Definitions>,
    /// The version that origins of the type are known to have reached: one that is at an older one was restored from a
    /// backup, and what it lacks has not been deleted.
    pub origin_version: u64,
    /// What may not be deleted now is left, whatever the origins' side says.
    pub may_delete: bool,
    /// People have confirmed that the copy may take along what it contains.
    pub may_cascade: bool,
    /// Deletes of the direction or of the type are held: a copy is not replaced by one of another origin either.
    pub deletes_are_held: bool,
    /// Nothing has told what the origin wants. The hash of what the copy was brought in step with, and still is; 0 if that is
    /// not known.
    pub unread: Option<u64>,
}

impl Job {
    /// The mark that says where the origin is; it stays as it is as long as the copy is of the same origin. `None` as long as
    /// nobody knows which cluster that is.
    pub(super) fn source_mark(&self, desired: &Desired, copy: Copy) -> Option<String> {
        let is_known = copy.state == CopyState::Ours && copy.made_at != 0 && !desired.is_another_than(copy);
        let (cluster, version) = if is_known {
            (self.identity.expected()?, copy.made_at)
        } else {
            (self.identity.present()?, desired.version)
        };
        let cluster = &cluster;
        Some(Source { cluster, version }.mark())
    }

    /// What an existing object in the copy's place is.
    pub(super) fn copy_of(&self, meta: &Meta) -> Copy {
        meta.copy(self.direction, &self.copy_at.resource, &self.policy.sync_target)
    }
}

/// What a job ended with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What was done.
    pub change: Change,
    /// [`Desired::hash`] of what was brought in step; 0 if the origin's side wants nothing.
    pub desired_hash: u64,
    /// The copy after it, where it is known.
    pub copy: Option<Seen>,
    /// Hash of the copy's status after it, where the whole copy is known.
    pub status: Option<u64>,
    /// Version of the origin and hash of its status, where nothing has told of it before.
    pub origin: Option<(u64, u64)>,
    /// The finalizers of a copy that is being deleted and in whose place a new one is wanted.
    pub waits_for: Vec<String>,
}

/// A copy as it was seen.
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
            origin: 0,
            made_at: 0,
        },
        labelled: false,
        hash: 0,
        version: 0,
    };

    /// Looks at an object in a copy's place, whole or metadata alone.
    pub fn of(
        direction: Direction,
        resource: &ResourceType,
        object: &[u8],
        policy: &Policy,
        selection: Selection,
    ) -> Result<Self, Error> {
        let meta = Meta::parse(object)?;
        Ok(Self {
            copy: meta.copy(direction, resource, &policy.sync_target),
            labelled: meta.is_labelled(direction),
            hash: marks(object, direction, policy.takes_back(selection))?,
            version: meta.version_number(),
        })
    }
}

/// What was done to the copy.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// The origin is gone, and the copy is held back from its end all the same.
    Held,
    /// The same, because another cluster answered: its UID.
    OtherCluster(String),
    /// The same, because the origins' side has gone back to this version.
    WentBack(u64),
    /// The same, because of what the copy says of where it is from.
    Doubted(Doubt),
    /// The same, because the hub takes the whole type away, or has done so.
    Withdrawn(Withdrawal),
    /// The same, because its end would take this along, which is not itself to be deleted: an object, or what is known of it.
    WouldCascade(String),
    /// Nothing was done, because somebody else's object is in the copy's place. It is looked at again from time to time. If
    /// another syncer has made it, its sync target.
    Conflict(Option<String>),
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

/// Turns an error into a failure of that side.
pub(super) fn failed(side: Side, doing: &'static str) -> impl Fn(Error) -> Failure {
    move |error| Failure {
        side,
        doing,
        desired_hash: 0,
        error,
    }
}

/// Brings one object in step.
pub async fn reconcile(hub: &Rc<Cluster>, edge: &Rc<Cluster>, mut job: Job) -> Result<Outcome, Failure> {
    let (origins, copies) = match job.direction {
        Direction::Down => (hub, edge),
        Direction::Up => (edge, hub),
    };
    if job.selection == Selection::None && job.look_first && !job.may_delete && !job.suspect {
        let hidden = look_for_hidden(copies, &job).await;
        return hidden.map_err(failed(copies.side(), "reading"));
    }
    let read = read_desired(origins, &job).await;
    let (desired, origin) = match read.map_err(failed(origins.side(), "reading"))? {
        Read::Absent => return retire(origins, copies, &job).await,
        Read::NotSelected if job.look_first => {
            let hidden = look_for_hidden(copies, &job).await;
            return hidden.map_err(failed(copies.side(), "reading"));
        }
        Read::NotSelected => return Ok(left(Why::NotSelected)),
        Read::Wanted(desired, origin) if job.unread.is_some_and(|in_step| in_step == desired.hash) => {
            let in_step = done(Change::Unchanged, None);
            return Ok(Outcome {
                desired_hash: desired.hash,
                origin,
                ..in_step
            });
        }
        Read::Wanted(desired, origin) => (desired, origin),
    };
    let mut found = None;
    if job.look_first {
        found = see(copies, &job).await.map_err(failed(copies.side(), "reading"))?;
        let seen = found.unwrap_or(Seen::ABSENT);
        (job.copy, job.copy_version) = (seen.copy, seen.version);
    }
    let mut result = bring(origins, copies, &job, &desired).await;
    if let Err(failure) = &result
        && job.direction == Direction::Down
        && failure.error.missing_namespace().is_some()
        && !job.namespace_refused
        && lend_namespace(hub, edge, &job.copy_at.name.namespace).await?
    {
        result = bring(origins, copies, &job, &desired).await;
    }
    match result {
        Ok(outcome) => Ok(Outcome {
            desired_hash: desired.hash,
            copy: outcome.copy.or(found),
            origin,
            waits_for: finalizers(copies, &job, &outcome.change).await?,
            ..outcome
        }),
        Err(failure) => Err(Failure {
            desired_hash: desired.hash,
            ..failure
        }),
    }
}

async fn bring(origins: &Cluster, copies: &Rc<Cluster>, job: &Job, desired: &Desired) -> Result<Outcome, Failure> {
    match job.direction {
        Direction::Down => downsync::bring(origins, copies, job, desired).await,
        Direction::Up => upsync::bring(origins, copies, job, desired).await,
    }
}

/// The finalizers of what is being deleted in the copy's place, if the new one has to wait for its end.
async fn finalizers(copies: &Cluster, job: &Job, change: &Change) -> Result<Vec<String>, Failure> {
    if *change != Change::Left(Why::Terminating) {
        return Ok(Vec::new());
    }
    finalizers_of(copies, job)
        .await
        .map_err(failed(copies.side(), "reading"))
}

/// Makes a namespace at the edge that upsync has made at the hub, where it does not travel from, for what has to go into it.
/// False if the hub has no such namespace. It carries no mark, as the one before it, so that it does not go with the hub's.
async fn lend_namespace(hub: &Cluster, edge: &Cluster, namespace: &str) -> Result<bool, Failure> {
    let (resource, name) = (ResourceType::namespaces(), ObjectName::new("", namespace));
    let found = look_at(hub, &resource, &name).await;
    let found = found.map_err(failed(hub.side(), "reading"))?;
    let lends = |meta: &Meta| meta.is_copy_of(Direction::Up, &resource.kind) && meta.deletion_timestamp.is_none();
    if !found.as_ref().is_some_and(lends) {
        return Ok(false);
    }
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    match edge.create(&resource, &name, Bytes::from(body.to_string())).await {
        Err(error) if !error.is_already_there() => Err(failed(edge.side(), "creating its namespace")(error)),
        _ => Ok(true),
    }
}

/// The origin of a copy is there and not selected, and the copy may be gone or have lost no more than its label: then it still goes
/// when its origin goes.
async fn look_for_hidden(copies: &Cluster, job: &Job) -> Result<Outcome, Error> {
    Ok(match see(copies, job).await? {
        None => done(Change::Left(Why::Gone), Some(Seen::ABSENT)),
        Some(seen) => done(Change::Left(Why::NotSelected), Some(seen)),
    })
}

/// What reading the origin gave.
enum Read {
    Wanted(Desired, Option<(u64, u64)>),
    NotSelected,
    Absent,
}

async fn read_desired(origins: &Cluster, job: &Job) -> Result<Read, Error> {
    if job.type_gone {
        return Ok(Read::Absent);
    }
    // An unselected object is only asked for to learn whether it still exists.
    let content = if job.selection == Selection::Full {
        Content::Full
    } else {
        Content::Metadata
    };
    let Address { resource, name } = &job.origin;
    let body = match &job.body {
        Some(body) => body.clone(),
        None => match origins.get(resource, name, content).await {
            Ok(body) => body,
            Err(error) if error.proves_absent(&name.name) => return Ok(Read::Absent),
            Err(error) => return Err(error),
        },
    };
    let meta = Meta::of(name, &body)?;
    if job.body.is_none() {
        not_older(&meta, job.origin_told)?;
        confirm_there(origins, &job.origin, &meta, job.origin_unnamed).await?;
    }
    // What the other direction has made does not travel back (spec section 4).
    let is_copy = meta.is_copy_of(job.direction.other(), &resource.kind);
    if job.selection == Selection::None || is_copy {
        return Ok(Read::NotSelected);
    }
    let Some(desired) = Desired::from_origin(&job.origin, &job.copy_at, job.selection, &body)? else {
        return Ok(Read::NotSelected);
    };
    let status = job.unread.map(|_| Status::hash_of(&body)).transpose()?;
    Ok(Read::Wanted(
        desired,
        status.map(|status| (meta.version_number(), status)),
    ))
}

pub(super) fn left(why: Why) -> Outcome {
    done(Change::Left(why), None)
}

pub(super) fn done(change: Change, copy: Option<Seen>) -> Outcome {
    Outcome {
        change,
        desired_hash: 0,
        copy,
        status: None,
        origin: None,
        waits_for: Vec::new(),
    }
}

/// An outcome with the copy as the answer to the last write showed it, whole or metadata alone.
pub(super) fn done_with(job: &Job, change: Change, object: &[u8], whole: bool) -> Result<Outcome, Error> {
    let seen = Seen::of(job.direction, &job.copy_at.resource, object, &job.policy, job.selection)?;
    Ok(Outcome {
        status: whole.then(|| Status::hash_of(object)).transpose()?,
        ..done(change, Some(seen))
    })
}

pub(super) fn precondition(meta: &Meta) -> Precondition {
    Precondition {
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
    }
}

#[cfg(test)]
#[path = "job_tests.rs"]
pub(super) mod tests;
