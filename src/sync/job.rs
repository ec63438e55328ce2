//! One object to sync, in either direction: what is known of it, and what came of it.

use std::rc::Rc;

use bytes::Bytes;
use kube_lite::logging::LogReason;
use kube_lite::{Content, Error, Precondition, ResourceType};

use crate::plan::{Direction, Selection};
use crate::side::Side;
use crate::sync::definition::{TypeDefinitions, Withdrawal};
use crate::sync::identity::{Identity, Unverified};
use crate::sync::managed_fields::{RevertFrom, marks};
use crate::sync::meta::{Meta, Object};
use crate::sync::object::{
    Address, Desired, Status, is_never_synced, is_never_synced_as_read, shows_what_is_never_synced,
};
use crate::sync::ownership::{Copy, CopyState, Marked, Source, SyncTarget, origin_hash};

/// Why nothing is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// Nothing selects it.
    NotSelected,
    /// It is not ours to delete, or not ours to adopt.
    NotOurs,
    /// Its content is left to the edge.
    CreateOnly,
    /// A namespace that is never deleted.
    Protected,
    /// It is being deleted already; when it is gone, it will be read again.
    Terminating,
    /// It is a Job that has finished, and whose copy is gone: it is not to run again.
    Finished,
    /// It exists on neither side.
    Gone,
    /// Somebody else's object is in the copy's place. It is read again from time to time. If another syncer has made it,
    /// its sync target.
    Conflict(Option<String>),
    /// What is in the copy's place is what its side keeps for itself. It is read again from time to time.
    Kept,
    /// A copy of ours that was made of another origin is in the copy's place, and is that one's as long as it is there: that
    /// origin. It is read again from time to time.
    NameTaken(String),
}

/// What the edge's owner has chosen.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// The sync target in the owner marks of this syncer's copies.
    pub sync_target: SyncTarget,
    /// Delete adopted objects instead of releasing them, as the Go syncer did (`--delete-adopted`).
    pub delete_adopted: bool,
    /// Field managers whose own fields are reverted in copies (`--revert-changes-from`).
    pub revert_changes_from: Vec<String>,
}

impl Policy {
    /// Whose fields are reverted in a copy that is selected in this way. A namespace that is only implied may be
    /// labelled at the edge, for example with Pod Security labels.
    pub fn reverts(&self, selection: Selection) -> RevertFrom<'_> {
        (selection != Selection::Implied).then_some(&*self.revert_changes_from)
    }
}

/// One object to sync.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Job {
    /// In which direction it is synced.
    pub direction: Direction,
    /// What people change.
    pub origin: Address,
    /// What the syncer writes.
    pub copy_at: Address,
    /// The origin's side has proved that it no longer has any object of the type.
    pub gone_at_origin: bool,
    /// What the edge's owner has chosen.
    pub policy: Rc<Policy>,
    /// How it is selected now.
    pub selection: Selection,
    /// What the copy is to be, if the origin was at hand; otherwise the origin is read.
    pub desired: Option<Rc<Desired>>,
    /// The origin as a whole, if it was read for this and others have something in the copy, so that it may be asked who has set
    /// what.
    pub origin_read: Option<Bytes>,
    /// The copy as last seen.
    pub copy: Copy,
    /// Resource version of the copy as last seen, or at which its deletion was seen; 0 if unknown.
    pub copy_version: u64,
    /// The same of the origin: what is older is not what is there now.
    pub origin_seen_at: u64,
    /// The version up to which everything is reported, where no such origin was; 0 if it was, or nothing reports origins.
    pub origin_unnamed: u64,
    /// What is known of the copy is not certain: it was reported as gone, but perhaps it has only lost its label, or an
    /// earlier write may have taken effect without an answer. It is read first.
    pub read_first: bool,
    /// It is not known whether there is an origin.
    pub unverified: bool,
    /// It is a namespace that is never deleted.
    pub protected: bool,
    /// The edge's owner does not allow that the namespace of the copy is made for it.
    pub namespace_refused: bool,
    /// Which cluster the origins' side has to be for the copy to be deleted, as far as that was known when the job
    /// began.
    pub identity: Rc<Identity>,
    /// What has to define the type at the hub for the copy of one of its objects to be deleted, in the same way.
    pub definitions: Rc<TypeDefinitions>,
    /// The version that origins of the type are known to have reached: one that is at an older one was restored from a
    /// backup, and what it lacks has not been deleted.
    pub origin_version: u64,
    /// False if the copy may not be deleted now, whatever the origins' side says.
    pub may_delete: bool,
    /// The origin is gone, and a hold keeps the copy: it is only found out whether that is still there.
    pub is_held: bool,
    /// People have confirmed that what the copy contains may be deleted with it.
    pub may_cascade: bool,
    /// Deletes of the direction or of the type are held: a copy is not replaced by one of another origin either.
    pub deletes_are_held: bool,
    /// Nothing has reported what the origin wants. The hash that the copy was synced with and still has; 0 if that is
    /// not known.
    pub unread: Option<u64>,
    /// The copy may have been scaled without anybody being named for it.
    pub scaled_by_nobody: bool,
    /// [`origin_hash`] of the origin whose copy has been seen finished, though the origin may not show that; 0 if there is
    /// none.
    pub finished_origin: u32,
}

impl Job {
    /// The mark that says where the origin is; it stays as it is as long as the copy is of the same origin. `None` as
    /// long as it is not known which cluster that is.
    pub(super) fn source_mark(&self, desired: &Desired, copy: Copy) -> Option<String> {
        let (cluster, version) = match self.identity.expected() {
            Some(cluster) if self.keeps_source_mark(desired, copy) => (cluster, copy.made_at),
            _ => (self.identity.present()?, desired.version),
        };
        Some(Source { cluster, version }.mark())
    }

    /// True if the copy is of the same origin, in the cluster that is expected.
    pub(super) fn keeps_source_mark(&self, desired: &Desired, copy: Copy) -> bool {
        let is_of_same = copy.state == CopyState::Ours && copy.made_at != 0 && !desired.is_another_than(copy);
        let expected = self.identity.expected();
        is_of_same && expected.is_some_and(|uid| origin_hash(uid) == copy.cluster)
    }

    /// True if the origin is a Job that has finished, at either side: without a copy, it is not to run again.
    pub(super) fn has_finished(&self, desired: &Desired) -> bool {
        desired.finished || self.finished_origin != 0 && self.finished_origin == origin_hash(&desired.origin)
    }

    /// True for the copies of Pods at the hub: no kubelet there has them. So whatever refuses an update of one, it is made
    /// again, and nothing waits for its end.
    pub(super) fn runs_nowhere(&self) -> bool {
        self.direction == Direction::Up && self.copy_at.resource.is("", "pods")
    }

    /// The marks of an existing object in the copy's place.
    pub(super) fn copy_of(&self, meta: &Meta) -> Copy {
        copy_of(
            self.direction,
            &self.copy_at.resource,
            meta,
            &self.policy,
            self.selection,
        )
    }

    /// The same, as far as what was read of it shows that.
    pub(super) fn copy_as_read(&self, object: &Object) -> Copy {
        copy_as_read(
            self.direction,
            &self.copy_at.resource,
            object,
            &self.policy,
            self.selection,
        )
    }
}

/// What is in a copy's place.
fn copy_of(direction: Direction, resource: &ResourceType, meta: &Meta, policy: &Policy, selection: Selection) -> Copy {
    Copy {
        kept: is_never_synced(resource, meta, selection),
        ..meta.copy(direction, resource, &policy.sync_target)
    }
}

/// The same of what was read. The type of a Secret never changes, so that one with our marks is no credential that its side
/// keeps: we make none.
fn copy_as_read(
    direction: Direction,
    resource: &ResourceType,
    object: &Object,
    policy: &Policy,
    selection: Selection,
) -> Copy {
    let copy = copy_of(direction, resource, &object.meta, policy, selection);
    let shows_more = || copy.state == CopyState::Foreign && shows_what_is_never_synced(resource) == Content::Full;
    let is_kept = || shows_more() && is_never_synced_as_read(resource, object, selection);
    Copy {
        kept: copy.kept || is_kept(),
        ..copy
    }
}

/// What a job ended with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What was done, or why nothing was.
    pub ending: Ending,
    /// [`Desired::hash`] of what was synced; 0 if the origin's side wants nothing.
    pub desired_hash: u64,
    /// The copy after it, where it is known.
    pub copy: Option<Seen>,
    /// Hash of the copy's status after it, where the whole copy is known.
    pub status: Option<u64>,
    /// Version of the origin and hash of its status, where nothing has reported it before.
    pub origin: Option<(u64, u64)>,
    /// We have asked for the end of the copy, and it is still there.
    pub ends: bool,
    /// The finalizers of a copy that is being deleted and in whose place a new one is wanted.
    pub waits_for: Vec<String>,
    /// The versions of a CRD that its origin has dropped and that the copy keeps, since its side is still stored at them.
    pub kept_versions: Vec<String>,
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
            create_only: false,
            adopted: false,
            terminating: false,
            shared: false,
            others_have_more: false,
            made: false,
            kept: false,
            origin: 0,
            cluster: 0,
            made_at: 0,
        },
        labelled: false,
        hash: 0,
        version: 0,
    };

    /// What is in a copy's place; `object` may be metadata alone.
    pub fn of(
        direction: Direction,
        resource: &ResourceType,
        object: &Object,
        policy: &Policy,
        selection: Selection,
    ) -> Result<Self, Error> {
        let meta = &object.meta;
        let copy = copy_as_read(direction, resource, object, policy, selection);
        let hash = marks(object, direction, policy.reverts(selection))?;
        Ok(Self {
            copy,
            labelled: meta.is_labelled(direction),
            // A patch may have marked it as create only, so that no manager has applied that field.
            hash: if copy.create_only { (!hash).max(1) } else { hash },
            version: meta.version_number(),
        })
    }
}

/// What a job came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The copy is as its origin wants it; with what was done for that.
    Changed(Change),
    /// In a dry run: what would have been done.
    Would(Change),
    /// Nothing was done, for a reason that lasts until something changes.
    Skipped(Why),
    /// The origin is gone, but the delete of the copy is held.
    Held(HeldFor),
}

/// What was done to the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// The copy was created.
    Created,
    /// The copy was changed.
    Updated,
    /// An object that was there before was overwritten and marked.
    Adopted,
    /// The copy was already so.
    Unchanged,
    /// The copy was marked as create only.
    MarkedCreateOnly,
    /// The copy was deleted.
    Deleted,
    /// Our marks were removed from an adopted object.
    Released,
    /// The copy could not be updated and was deleted and created again.
    Replaced,
}

impl Change {
    /// The word for it in lines and metrics, and the reason of the line. `None` for no change.
    pub(crate) fn word(self) -> Option<(&'static str, LogReason)> {
        Some(match self {
            Self::Unchanged => return None,
            Self::Created => ("created", LogReason::ObjectCreated),
            Self::Updated => ("updated", LogReason::ObjectUpdated),
            Self::Adopted => ("adopted", LogReason::ObjectAdopted),
            Self::MarkedCreateOnly => ("create_only", LogReason::ObjectCreateOnly),
            Self::Deleted => ("deleted", LogReason::ObjectDeleted),
            Self::Released => ("released", LogReason::ObjectReleased),
            Self::Replaced => ("replaced", LogReason::ObjectReplaced),
        })
    }
}

/// Why the delete of a copy is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeldFor {
    /// Both objects have to be read once more: it was not reported that the origin is gone, or somebody has changed the
    /// copy meanwhile.
    AnotherLook,
    /// A hold keeps it, and it was only read: it is still there.
    StillThere,
    /// Another cluster answered: its UID.
    OtherCluster(String),
    /// The origins' side has gone back to this version.
    WentBack(u64),
    /// The mark of the copy, which says where it is from.
    Unverified(Unverified),
    /// The hub deletes the whole type, or has done so.
    Withdrawn(Withdrawal),
    /// Its delete would also delete this, which is not itself to be deleted: an object, or what is known of it.
    WouldCascade(String),
}

impl From<Change> for Ending {
    fn from(change: Change) -> Self {
        Self::Changed(change)
    }
}

impl From<Why> for Ending {
    fn from(why: Why) -> Self {
        Self::Skipped(why)
    }
}

impl From<HeldFor> for Ending {
    fn from(held: HeldFor) -> Self {
        Self::Held(held)
    }
}

impl PartialEq<Change> for Ending {
    fn eq(&self, change: &Change) -> bool {
        matches!(self, Self::Changed(known) if known == change)
    }
}

impl PartialEq<Why> for Ending {
    fn eq(&self, why: &Why) -> bool {
        matches!(self, Self::Skipped(known) if known == why)
    }
}

impl PartialEq<HeldFor> for Ending {
    fn eq(&self, held: &HeldFor) -> bool {
        matches!(self, Self::Held(known) if known == held)
    }
}

/// A request that failed.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    /// The side that it was for.
    pub side: Side,
    /// What was being done, `reading` or `applying`.
    pub doing: &'static str,
    /// What came back.
    pub error: Error,
}

/// Turns an error into a failure of that side.
pub(super) fn failed(side: Side, doing: &'static str) -> impl Fn(Error) -> Failure {
    move |error| Failure { side, doing, error }
}

/// Nothing was done, for this reason.
pub(crate) fn left(why: Why) -> Outcome {
    done(why, None)
}

pub(super) fn done(ending: impl Into<Ending>, copy: Option<Seen>) -> Outcome {
    Outcome {
        ending: ending.into(),
        desired_hash: 0,
        copy,
        status: None,
        origin: None,
        ends: false,
        waits_for: Vec::new(),
        kept_versions: Vec::new(),
    }
}

/// An outcome with the copy as the answer to the last write showed it, whole or metadata alone.
pub(super) fn done_with(job: &Job, change: Change, object: &Bytes, whole: bool) -> Result<Outcome, Error> {
    let object = &Object::parse(object.clone())?;
    let seen = Seen::of(job.direction, &job.copy_at.resource, object, &job.policy, job.selection)?;
    Ok(Outcome {
        status: whole.then(|| Status::hash_of(object)),
        ..done(change, Some(seen))
    })
}

/// An outcome of a delete that the copies' side has answered with the copy, if finalizers or a grace period keep that.
pub(super) fn still_ends(job: &Job, ending: impl Into<Ending>, left: Option<Bytes>) -> Option<Outcome> {
    let object = left.filter(|_| !job.runs_nowhere())?;
    let object = &Object::parse(object).ok()?;
    let seen = Seen::of(job.direction, &job.copy_at.resource, object, &job.policy, job.selection).ok()?;
    seen.copy.terminating.then(|| Outcome {
        ends: true,
        ..done(ending, Some(seen))
    })
}

/// How a copy is deleted that was read as this.
pub(super) fn precondition(job: &Job, meta: &Meta) -> Precondition {
    Precondition {
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        at_once: job.runs_nowhere(),
        of_secret: [&job.origin, &job.copy_at]
            .iter()
            .any(|at| at.resource.is("", "secrets")),
    }
}
