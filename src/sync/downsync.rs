//! Downsync: one object from hub to edge.
//!
//! [`decide`] is the whole policy, as a pure function. Every apply is valid only for the version that was seen or, if
//! nothing was there, only for an absent object: whatever was created or changed in between is read before it is
//! overwritten.

use std::rc::Rc;

use bytes::Bytes;
use kube_lite::read::read_metadata;
use kube_lite::{Cluster, Content, Error, NOWHERE, ObjectName, ResourceType};
use serde_json::{Value, json};

use super::conflicting;
use super::copy_place::{in_its_place, other_origin_of, read_to_decide};
use super::emptied;
use super::job::{Change, Ending, Failure, Job, Outcome, Why, done, done_with, failed, left};
use super::left_to_others;
use super::replace::{Replacing, is_ours_alone, make_room};
use super::take_over::{MOST_VERSIONS, take_left};
use crate::api::{DOWNSYNC_OVERWRITE, OWNER};
use crate::plan::Direction;
use crate::side::Side;
use crate::sync::kinds::{keeps_silently, may_keep_silently, runs_once};
use crate::sync::meta::Meta;
use crate::sync::object::{Address, Desired, Marks, shows_what_is_never_synced};
use crate::sync::ownership::{Copy, CopyState, Marked};

/// How often a copy that changes in between is read again before it is put off.
const READS: u32 = 5;

/// What to do at the edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Create the object, or make its fields what the hub says.
    Apply {
        /// Mark it as one that was there before.
        adopted: bool,
    },
    /// Set the copy's `downsync-overwrite` to the hub's value, and the mark that says of which origin it is, and touch
    /// nothing else.
    MarkCreateOnly,
    /// Do not touch another syncer's copy, and report it.
    Conflict,
    /// Nothing.
    Leave(Why),
}

/// What to do for an object that the hub wants; `is_another` than the copy was made from. [`super::retire::retirement`]
/// says what becomes of a copy that it does not want any more.
pub fn decide(whole: bool, create_only: bool, copy: Copy, is_another: bool) -> Action {
    use CopyState::{Absent, Anothers, Foreign, Ours};
    match copy.state {
        Foreign | Anothers if !whole => Action::Leave(Why::NotOurs),
        Anothers => Action::Conflict,
        Ours | Foreign if copy.kept => Action::Conflict,
        Ours | Foreign if copy.terminating => Action::Leave(Why::Terminating),
        Absent => Action::Apply { adopted: false },
        Ours | Foreign if create_only && copy.create_only && !is_another => Action::Leave(Why::CreateOnly),
        Ours | Foreign if create_only => Action::MarkCreateOnly,
        Ours => Action::Apply { adopted: copy.adopted },
        Foreign => Action::Apply { adopted: true },
    }
}

/// What is in the copy's place.
struct InPlace {
    copy: Copy,
    /// At which resource version that was; absent if it is not known.
    version: Option<String>,
    /// The sync target that it names.
    sync_target: Option<String>,
    /// The other origin that it was made of.
    other_origin: Option<String>,
}

impl InPlace {
    /// As it was last seen, if that shows whether the edge keeps it for itself.
    async fn at_first(edge: &Cluster, job: &Job, desired: &Desired) -> Result<Self, Failure> {
        let shows = shows_what_is_never_synced(&job.copy_at.resource);
        // Watches of copies may show metadata alone.
        if job.copy.state == CopyState::Foreign && shows == Content::Full && !job.read_first {
            Self::now(edge, job, desired).await
        } else {
            Ok(Self::known(job))
        }
    }

    /// As it was last seen.
    fn known(job: &Job) -> Self {
        let version = match job.copy.state {
            CopyState::Absent => Some(NOWHERE.to_owned()),
            _ => Some(job.copy_version.to_string()).filter(|_| job.copy_version != 0),
        };
        Self {
            copy: job.copy,
            version,
            sync_target: None,
            other_origin: None,
        }
    }

    /// As it is now.
    async fn now(edge: &Cluster, job: &Job, desired: &Desired) -> Result<Self, Failure> {
        let found = read_to_decide(edge, job).await;
        let Some((meta, copy)) = found.map_err(failed(Side::Edge, "reading"))? else {
            return Ok(Self {
                copy: Copy::default(),
                version: Some(NOWHERE.to_owned()),
                sync_target: None,
                other_origin: None,
            });
        };
        Ok(Self {
            copy,
            sync_target: meta.sync_target().map(str::to_owned),
            other_origin: other_origin_of(&meta, job, desired),
            version: Some(meta.resource_version),
        })
    }
}

/// Makes the copy what the hub wants.
pub(super) async fn bring(hub: &Cluster, edge: &Rc<Cluster>, job: &Job, desired: &Desired) -> Result<Outcome, Failure> {
    let mut in_place = InPlace::at_first(edge, job, desired).await?;
    let mut reads = 0;
    let mut may_need_namespace = !job.namespace_refused;
    loop {
        if let Some(others) = in_place.other_origin {
            return Ok(left(Why::NameTaken(others)));
        }
        let copy = in_place.copy;
        let brought = match decide(
            job.selection.is_whole(),
            desired.create_only,
            copy,
            desired.is_another_than(copy),
        ) {
            Action::Apply { .. } if copy.state == CopyState::Absent && job.has_finished(desired) => {
                Ok(left(Why::Finished))
            }
            Action::Apply { adopted } => apply(hub, edge, job, desired, (&in_place, adopted)).await,
            Action::MarkCreateOnly => {
                let marked = mark_create_only(edge, job, desired, &in_place).await;
                marked.map_err(failed(Side::Edge, "marking"))
            }
            Action::Conflict => Ok(done(in_its_place(copy, in_place.sync_target.take()), None)),
            Action::Leave(why) => Ok(left(why)),
        };
        let has_changed = match &brought {
            // It may have been deleted since, or belong to another syncer now, and nothing reports what is not ours.
            Ok(outcome) => matches!(outcome.ending, Ending::Skipped(Why::Conflict(_) | Why::Kept)) && reads == 0,
            Err(failure) if failure.error.missing_namespace().is_some() && may_need_namespace => {
                may_need_namespace = false;
                if recreate_namespace(hub, edge, job.copy_at.name.namespace()).await? {
                    continue;
                }
                false
            }
            Err(failure) => failure.side == Side::Edge && failure.error.is_conflict() && reads < READS,
        };
        if !has_changed {
            return brought;
        }
        reads += 1;
        in_place = InPlace::now(edge, job, desired).await?;
    }
}

/// Creates a namespace at the edge for an object that needs it, if upsync has created one of that name at the hub,
/// which is not synced. False if the hub has no such namespace. Like the former one at the edge it carries no mark, so
/// that it is not deleted with the hub's.
async fn recreate_namespace(hub: &Cluster, edge: &Cluster, namespace: &str) -> Result<bool, Failure> {
    let (resource, name) = (ResourceType::namespaces(), ObjectName::new("", namespace));
    let found = read_metadata(hub, &resource, &name).await;
    let found = found.map_err(failed(Side::Hub, "reading"))?;
    let is_ours = |meta: &Meta| meta.is_copy_of(Direction::Up, &resource.kind) && meta.deletion_timestamp.is_none();
    if !found.as_ref().is_some_and(is_ours) {
        return Ok(false);
    }
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    match edge.create(&resource, &name, Bytes::from(body.to_string())).await {
        Err(error) if !error.is_already_there() => Err(failed(Side::Edge, "creating its namespace")(error)),
        _ => Ok(true),
    }
}

async fn apply(
    hub: &Cluster,
    edge: &Rc<Cluster>,
    job: &Job,
    desired: &Desired,
    (in_place, adopted): (&InPlace, bool),
) -> Result<Outcome, Failure> {
    let copy = in_place.copy;
    let may_go = is_ours_alone(copy);
    // Its origin was deleted, and this is another one, which has to run again or has values that no update can set.
    let is_another = may_go && desired.is_another_than(copy);
    if is_another && (runs_once(&job.copy_at.resource) || has_what_stays(edge, job, desired).await?) {
        let why = Replacing {
            is_another,
            refusal: None,
        };
        return replace(hub, edge, job, desired, why).await;
    }
    let left = left_to_others::without_it(hub, edge, job, desired, copy).await?;
    let (applied, before) = match &left {
        Some((less, copy)) => (less, Some(&**copy)),
        None => (desired, None),
    };
    match write(edge, job, applied, (in_place, before), adopted).await {
        Err(refusal) => match Replacing::after(&refusal, is_another, job, desired).filter(|_| may_go) {
            Some(why) => replace(hub, edge, job, desired, why).await,
            None => Err(failed(Side::Edge, "applying")(refusal)),
        },
        Ok(outcome) => Ok(outcome),
    }
}

/// True if the copy has a value that the edge would keep silently, though the origin has another one.
async fn has_what_stays(edge: &Cluster, job: &Job, desired: &Desired) -> Result<bool, Failure> {
    let Address { resource, name } = &job.copy_at;
    if !may_keep_silently(resource) {
        return Ok(false);
    }
    let found = match edge.get(resource, name, Content::Full).await {
        Err(error) if error.proves_absent(&name.name) => return Ok(false),
        found => found.and_then(|object| keeps_silently(resource, &desired.fields, &object)),
    };
    found
        .map(|field| field.is_some())
        .map_err(failed(Side::Edge, "reading"))
}

/// Applies to the copy; `before` is that, if it was read.
async fn write(
    edge: &Cluster,
    job: &Job,
    desired: &Desired,
    (in_place, before): (&InPlace, Option<&[u8]>),
    adopted: bool,
) -> Result<Outcome, Error> {
    let source = job.source_mark(desired, in_place.copy);
    let marks = |adopted| Marks {
        adopted,
        at_version: None,
        source: source.as_deref(),
    };
    let at = (in_place.copy, in_place.version.as_deref());
    let (mut object, created) = apply_at(edge, job, desired, at, marks(adopted)).await?;
    let change = if created {
        Change::Created
    } else if adopted && in_place.copy.state == CopyState::Foreign {
        Change::Adopted
    } else {
        Change::Updated
    };
    if created && adopted {
        // What was there before is gone meanwhile: this one is ours.
        object = apply_again(edge, job, desired, &object, marks(false)).await?;
    }
    let Address { resource, name } = &job.copy_at;
    let (reverted, lists) = (job.policy.reverts(job.selection), desired.lists_of_duplicates());
    for _ in 0..MOST_VERSIONS {
        let Some(patch) = take_left(&object, resource, reverted, &lists)? else {
            break;
        };
        let patched = edge.merge_patch(resource, name, Bytes::from(patch)).await?;
        object = apply_again(edge, job, desired, &patched, marks(adopted && !created)).await?;
    }
    if let Some(patch) = desired.addition(resource, &object)? {
        object = edge.merge_patch(resource, name, patch).await?;
    }
    if let Some(field) = keeps_silently(resource, &desired.fields, &object)? {
        return Err(Error::immutable(field));
    }
    let mut outcome = done_with(job, change, &object, true)?;
    if outcome.copy.is_some_and(|seen| seen.copy.create_only) && !desired.create_only {
        // The hub dropped the annotation. It was written by a patch, so an apply without it does not remove it.
        let no_more = json!({"annotations": {DOWNSYNC_OVERWRITE: null}});
        outcome = patch_metadata(edge, job, change, &no_more).await?;
    }
    let is_same = || {
        outcome.copy.is_some_and(|seen| seen.version == job.copy_version)
            || before.is_some_and(|before| left_to_others::is_as_it_was(before, &object))
    };
    if outcome.ending == Change::Updated && is_same() {
        outcome.ending = Change::Unchanged.into();
    }
    Ok(outcome)
}

/// Applies to the copy as the answer to the last write shows it.
async fn apply_again(
    edge: &Cluster,
    job: &Job,
    desired: &Desired,
    object: &[u8],
    marks: Marks<'_>,
) -> Result<Bytes, Error> {
    let version = Meta::of(&job.copy_at.name, object)?.resource_version;
    let (object, _) = apply_at(edge, job, desired, (Copy::default(), Some(&version)), marks).await?;
    Ok(object)
}

/// Applies to the copy as it was at `version`. Returns the copy, and whether the apply has created it.
async fn apply_at(
    edge: &Cluster,
    job: &Job,
    desired: &Desired,
    (copy, version): (Copy, Option<&str>),
    marks: Marks<'_>,
) -> Result<(Bytes, bool), Error> {
    let Address { resource, name } = &job.copy_at;
    let once = async |at_version: Option<&str>| {
        let marks = Marks { at_version, ..marks };
        let body = desired.body(Direction::Down, &job.copy_at, &job.policy.sync_target, &marks);
        edge.apply(resource, name, body, Content::Full).await
    };
    if version == Some(NOWHERE) && desired.has_duplicates() {
        let whole = desired.for_create();
        let body = whole.body(Direction::Down, &job.copy_at, &job.policy.sync_target, &marks);
        let created = edge.create(resource, name, body).await?;
        let copy = Copy {
            made: true,
            ..Copy::default()
        };
        let version = Meta::of(name, &created)?.resource_version;
        let (object, _) = conflicting::apply(edge, job, desired, (copy, Some(&version)), once).await?;
        return Ok((object, true));
    }
    if version == Some(NOWHERE) {
        return emptied::apply(edge, &job.copy_at, desired, version, once).await;
    }
    conflicting::apply(edge, job, desired, (copy, version), once).await
}

/// Deletes the copy and makes it again.
async fn replace(
    hub: &Cluster,
    edge: &Rc<Cluster>,
    job: &Job,
    desired: &Desired,
    why: Replacing,
) -> Result<Outcome, Failure> {
    if let Some(outcome) = make_room(hub, edge, job, desired, why).await? {
        return Ok(outcome);
    }
    let source = job.source_mark(desired, Copy::default());
    let marks = Marks {
        source: source.as_deref(),
        ..Marks::default()
    };
    match apply_at(edge, job, desired, (Copy::default(), Some(NOWHERE)), marks).await {
        Ok((object, true)) => done_with(job, Change::Replaced, &object, true).map_err(failed(Side::Edge, "replacing")),
        // Finalizers or a grace period keep the old copy for now. The edge will report when it is gone.
        _ => Ok(left(Why::Terminating)),
    }
}

/// Marks a copy as one that is created once. It is the copy of the origin that there is now, whose status it gives:
/// no apply would say so later.
async fn mark_create_only(edge: &Cluster, job: &Job, desired: &Desired, in_place: &InPlace) -> Result<Outcome, Error> {
    let mut metadata = json!({"annotations": {DOWNSYNC_OVERWRITE: "false"}});
    if desired.is_another_than(in_place.copy) {
        metadata["annotations"][OWNER] = json!(
            job.policy
                .sync_target
                .owner_mark(&desired.origin, &job.copy_at.resource)
        );
        metadata["resourceVersion"] = json!(in_place.version);
    }
    patch_metadata(edge, job, Change::MarkedCreateOnly, &metadata).await
}

async fn patch_metadata(edge: &Cluster, job: &Job, change: Change, metadata: &Value) -> Result<Outcome, Error> {
    let Address { resource, name } = &job.copy_at;
    let patch = json!({"metadata": metadata}).to_string();
    let object = edge.merge_patch(resource, name, Bytes::from(patch)).await?;
    done_with(job, change, &object, true)
}

#[cfg(test)]
#[path = "downsync_tests.rs"]
mod tests;
