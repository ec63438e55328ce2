//! The end of a copy: its origin is gone, or is another object now.
//!
//! Promises: an object is deleted only if it carries our marks, at the version that was read, after the origins' side
//! has proved that its origin is gone ([`prove`], [`distrust`]), and only if that deletes nothing else that is not
//! itself to be deleted ([`super::cascade`]).

use std::rc::Rc;

use bytes::Bytes;
use kube_lite::read::{not_older, read_metadata};
use kube_lite::{Cluster, Error};
use serde_json::json;

use super::cascade::first_in_cascade;
use super::copy_place::{confirm_gone, is_of, read_meta};
use super::job::{
    Change, Failure, HeldFor, Job, Outcome, Seen, Why, done, done_with, failed, left, precondition, still_ends,
};
use super::read::created_meanwhile;
use crate::api::{ADOPTED, OWNER, PULL_SECRETS, RENAMED_FROM, SOURCE};
use crate::plan::Direction;
use crate::side::Side;
use crate::sync::identity::{self, Verdict};
use crate::sync::meta::Meta;
use crate::sync::object::Address;
use crate::sync::ownership::{Copy, CopyState, Owner, Source, mark};

/// How often a copy that changes in between is read again before its delete is put off. Nothing else is asked of its
/// side in between, so the delete succeeds even if a status changes many times a second.
const TRIES: u32 = 5;

/// An object that gets no copy and has the name of the origin of one.
pub(super) struct Successor {
    /// Its UID. A copy that was made from an object with another one has lost its origin.
    pub(super) uid: String,
    /// The version at which it was read.
    pub(super) version: u64,
}

impl Successor {
    /// True if the copy was made from another object, as its marks say.
    fn has_followed_origin_of(&self, copy: &Meta) -> bool {
        let owner = Owner::of(&copy.annotations);
        let origin = owner.map(|owner| owner.origin).unwrap_or_default();
        !origin.is_empty() && !self.uid.is_empty() && origin != self.uid
    }
}

/// What becomes of a copy whose origin is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Retirement {
    /// Delete the copy.
    Delete,
    /// Remove our marks and leave the object.
    Release,
    /// Nothing.
    Leave(Why),
}

/// What becomes of a copy whose origin is proved to be gone.
pub fn retirement(copy: Copy, protected: bool) -> Retirement {
    match copy.state {
        CopyState::Absent => Retirement::Leave(Why::Gone),
        CopyState::Foreign | CopyState::Anothers => Retirement::Leave(Why::NotOurs),
        _ if copy.terminating => Retirement::Leave(Why::Terminating),
        CopyState::Ours if copy.kept => Retirement::Release,
        CopyState::Ours if protected => Retirement::Leave(Why::Protected),
        CopyState::Ours if copy.create_only => Retirement::Leave(Why::CreateOnly),
        CopyState::Ours if copy.adopted => Retirement::Release,
        CopyState::Ours => Retirement::Delete,
    }
}

/// The origin's side has proved that the object does not exist, or that it has a `successor`: reads the copy once more, and
/// deletes or releases it if it is ours. Both have what was read as a precondition, so that a change in between is not lost:
/// the copy is then read again at once, since the proofs before have taken requests over the other side's link.
pub(super) async fn retire(
    origins: &Cluster,
    copies: &Rc<Cluster>,
    job: &Job,
    successor: Option<&Successor>,
) -> Result<Outcome, Failure> {
    let mut proved = false;
    let mut tries = 0;
    loop {
        tries += 1;
        let Some(meta) = standing(copies, job).await? else {
            return Ok(gone());
        };
        if successor.is_some_and(|successor| !successor.has_followed_origin_of(&meta)) {
            return Ok(left(Why::NotSelected));
        }
        let retirement = retirement_of(job, &meta);
        match &retirement {
            Retirement::Delete | Retirement::Release if !proved => {
                if !job.may_delete {
                    return Ok(done(HeldFor::AnotherLook, None));
                }
                // The copy's own side is asked first: it is near, and it is asked again and again as long as the answer
                // is the same.
                if let Some(first) = cascade_of(copies, job, &retirement).await? {
                    return Ok(done(HeldFor::WouldCascade(first), None));
                }
                let mut proof = prove(origins, job, successor.map(|it| &*it.uid)).await?;
                if let (Proof::Of { version, .. }, Some(successor)) = (&mut proof, successor) {
                    // It is newer than all of which its predecessor's copy was made.
                    *version = successor.version.min(*version);
                }
                if let Some(distrust) = distrust(origins, job, &meta, proof).await? {
                    return Ok(done(distrust, None));
                }
                proved = true;
            }
            // No copy of ours is there, and nothing reports the object that is.
            Retirement::Leave(Why::NotOurs) if job.direction == Direction::Up => {
                return Ok(done(Why::NotOurs, Some(Seen::ABSENT)));
            }
            Retirement::Leave(Why::Terminating) if job.runs_nowhere() => {}
            Retirement::Leave(why) => return Ok(left(why.clone())),
            _ => {}
        }
        match end(copies, job, &meta, &retirement).await {
            Err(failure) if failure.error.is_conflict() && tries < TRIES => {}
            result => return result,
        }
    }
}

/// Removes our marks from what its side keeps for itself, whatever is known of an origin: nothing else is changed.
pub(super) async fn release_kept(copies: &Rc<Cluster>, job: &Job) -> Result<Outcome, Failure> {
    let Some(meta) = standing(copies, job).await? else {
        return Ok(gone());
    };
    if job.copy_of(&meta).is_to_be_released() {
        return end(copies, job, &meta, &Retirement::Release).await;
    }
    // Its side reports what it is now.
    Ok(left(Why::NotOurs))
}

fn gone() -> Outcome {
    done(Why::Gone, Some(Seen::ABSENT))
}

fn retirement_of(job: &Job, meta: &Meta) -> Retirement {
    let mut copy = job.copy_of(meta);
    copy.adopted &= !job.policy.delete_adopted;
    if copy.state == CopyState::Ours && !is_of(meta, job) {
        return Retirement::Leave(Why::NotOurs);
    }
    retirement(copy, job.protected)
}

/// What is in the copy's place; `None` if it is proved that nothing is.
async fn standing(copies: &Cluster, job: &Job) -> Result<Option<Meta>, Failure> {
    let failed = |error| failed(Side::of(copies), "reading")(error);
    let found = match read_meta(copies, job).await.map_err(failed)? {
        None if job.copy.state != CopyState::Absent => confirm_gone(copies, job).await.map_err(failed)?,
        found => found,
    };
    if let Some(meta) = &found {
        not_older(meta, job.copy_version).map_err(failed)?;
    }
    Ok(found)
}

/// What the delete of the copy would cascade to that is not itself to be deleted.
async fn cascade_of(copies: &Rc<Cluster>, job: &Job, retirement: &Retirement) -> Result<Option<String>, Failure> {
    if job.may_cascade || *retirement != Retirement::Delete {
        return Ok(None);
    }
    let first = first_in_cascade(copies, &job.copy_at).await;
    first.map_err(failed(Side::of(copies), "reading what would be deleted with it"))
}

/// Somebody deletes the copy of a Pod, which would stay until a kubelet says that it has ended, and none has it.
pub(super) async fn end_at_once(copies: &Cluster, job: &Job) -> Result<Outcome, Failure> {
    let found = read_meta(copies, job)
        .await
        .map_err(failed(Side::of(copies), "reading"))?;
    let is_ending = |copy: Copy| copy.state == CopyState::Ours && copy.terminating;
    match found.filter(|meta| is_ending(job.copy_of(meta))) {
        Some(meta) => end(copies, job, &meta, &Retirement::Delete).await,
        None => Ok(left(Why::Terminating)),
    }
}

/// Deletes or releases a copy as it was read.
async fn end(copies: &Cluster, job: &Job, meta: &Meta, retirement: &Retirement) -> Result<Outcome, Failure> {
    let failed = |doing| failed(Side::of(copies), doing);
    let Address { resource, name } = &job.copy_at;
    if *retirement == Retirement::Release {
        let patch = release_patch(job.direction, meta);
        let released = copies.merge_patch(resource, name, patch).await;
        let outcome = released.and_then(|object| done_with(job, Change::Released, &object, true));
        return outcome.map_err(failed("releasing"));
    }
    match copies.delete(resource, name, &precondition(job, meta)).await {
        Ok(left) => Ok(still_ends(job, Change::Deleted, left).unwrap_or_else(|| done(Change::Deleted, None))),
        Err(error) if error.proves_absent(&name.name) => Ok(gone()),
        Err(error) => Err(failed("deleting")(error)),
    }
}

/// What the answers of the origins' side amount to.
pub(super) enum Proof {
    /// They prove nothing, for this reason, which holds the delete.
    Against(HeldFor),
    /// They prove what they say.
    Of {
        /// UID of the cluster that gave them; absent if it was not known which cluster it had to be.
        cluster: Option<String>,
        /// The version of the type; 0 if it is not known.
        version: u64,
    },
}

/// What speaks against a proof: its own content, or the mark of the copy that says where it is from.
pub(super) async fn distrust(
    origins: &Cluster,
    job: &Job,
    copy: &Meta,
    proof: Proof,
) -> Result<Option<HeldFor>, Failure> {
    let (cluster, version) = match proof {
        Proof::Against(held) => return Ok(Some(held)),
        Proof::Of { cluster, version } => (cluster, version),
    };
    let Some(source) = Source::of(&copy.annotations) else {
        return Ok(None);
    };
    let cluster = match cluster {
        Some(cluster) => Some(cluster),
        None => identity::read(origins, Some(source.cluster))
            .await
            .map_err(failed(Side::of(origins), "identifying the cluster"))?,
    };
    let unverified = cluster.and_then(|cluster| job.identity.unverified(source, &cluster, version));
    Ok(unverified.map(HeldFor::Unverified))
}

/// Whether the origins' side proves that it has no origin, or has `another` of that name, with this UID. A restored cluster
/// lacks what was created since its backup, and its answer says so.
pub(super) async fn prove(origins: &Cluster, job: &Job, another: Option<&str>) -> Result<Proof, Failure> {
    let side = Side::of(origins);
    let Address { resource, name } = &job.origin;
    let reading = |error| failed(side, "reading")(error);
    let contradicts = |words: &str| Err::<Proof, _>(reading(Error::BadAnswer(words.into())));
    if let Some(uid) = another {
        let found = read_metadata(origins, resource, name).await.map_err(reading)?;
        if found.is_none_or(|meta: Meta| meta.uid != uid) {
            // It has changed meanwhile, and its side will report that.
            return Ok(Proof::Against(HeldFor::AnotherLook));
        }
    }
    let mut version = 0;
    match origins.find(resource, name).await {
        Err(error) if job.gone_at_origin && error.is_type_not_served() => {}
        Err(error) => return Err(reading(error)),
        Ok(_) if job.gone_at_origin => return contradicts("the type that was gone is served again"),
        Ok((_, version)) if version != 0 && version < job.origin_version => {
            return Ok(Proof::Against(HeldFor::WentBack(version)));
        }
        Ok((true, _)) if another.is_none() => {
            created_meanwhile(origins, &job.origin).await.map_err(reading)?;
            return Ok(Proof::Against(HeldFor::AnotherLook));
        }
        Ok((_, listed_at)) => version = listed_at,
    }
    let verdict = job.identity.verify(origins).await;
    let cluster = match verdict.map_err(failed(side, "identifying the cluster"))? {
        Verdict::Other(found) => return Ok(Proof::Against(HeldFor::OtherCluster(found))),
        Verdict::Same(cluster) => cluster,
    };
    let proof = Proof::Of { cluster, version };
    // Upsync follows the edge, also if that no longer has the type.
    if job.direction == Direction::Up {
        return Ok(proof);
    }
    let withdrawal = job.definitions.verify(origins, resource, job.gone_at_origin).await;
    let withdrawal = withdrawal.map_err(failed(side, "reading what defines the type"))?;
    Ok(withdrawal.map_or(proof, |withdrawal| Proof::Against(HeldFor::Withdrawn(withdrawal))))
}

fn release_patch(direction: Direction, meta: &Meta) -> Bytes {
    let mark = mark(direction);
    let patch = json!({"metadata": {
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
        "labels": {mark: null},
        "annotations": {mark: null, OWNER: null, SOURCE: null, ADOPTED: null, PULL_SECRETS: null, RENAMED_FROM: null},
    }});
    Bytes::from(patch.to_string())
}

#[cfg(test)]
#[path = "retire_tests.rs"]
mod tests;
