//! Making room for a copy that cannot be updated to what its origin is: the old one is deleted, with all the proofs of
//! a delete.

use std::rc::Rc;

use kube_lite::{Cluster, Error};

use super::cascade::first_in_cascade;
use super::copy_place::read_meta;
use super::job::{Failure, HeldFor, Job, Outcome, Why, done, failed, left, precondition, still_ends};
use super::retire::{Proof, distrust, prove};
use super::stored_versions;
use crate::side::Side;
use crate::sync::object::{Address, Desired, Marks};
use crate::sync::ownership::{Copy, CopyState};

/// Why a copy is deleted to make room for another one.
pub(super) struct Replacing {
    /// The origin is another object than the copy was made from. Otherwise an annotation of the origin asks for it, or
    /// the copy is one that nobody runs.
    pub(super) is_another: bool,
    /// The copies' side refuses an update; absent if the copy has to be recreated in any case.
    pub(super) refusal: Option<Error>,
}

/// True for a copy that may be deleted for another one: it was not adopted, and its content is not left to the edge.
pub(super) fn is_ours_alone(copy: Copy) -> bool {
    copy.state == CopyState::Ours && !copy.adopted && !copy.create_only && !copy.kept
}

impl Replacing {
    /// Why a copy that may go is deleted after this refusal of an update. `None` if it stays.
    pub(super) fn after(refusal: &Error, is_another: bool, job: &Job, desired: &Desired) -> Option<Self> {
        let may_go = is_another || desired.replace || job.runs_nowhere();
        // What a CRD has to keep is no reason to lose its objects.
        let is_of_update = refusal.may_be_of_update() && !stored_versions::are_missing(refusal);
        let refusal = Some(refusal).filter(|_| may_go && is_of_update);
        refusal.map(|refusal| Self {
            is_another,
            refusal: Some(refusal.clone()),
        })
    }
}

/// Deletes the copy. `None` if its place is free then; otherwise the outcome to return.
///
/// The copies' side is first asked whether it would take the object as a new one. So what a refusal means is not read from
/// its words, and a copy is never deleted for one that cannot be created. Nor is a copy deleted if that would cascade: the
/// new one would be empty.
pub(super) async fn make_room(
    origins: &Cluster,
    copies: &Rc<Cluster>,
    job: &Job,
    desired: &Desired,
    Replacing { is_another, refusal }: Replacing,
) -> Result<Option<Outcome>, Failure> {
    let Address { resource, name } = &job.copy_at;
    let side = Side::of(copies);
    let replacing = |error| failed(side, "replacing")(error);
    if let Err(error) = is_taken_as_new(copies, job, desired, refusal.as_ref()).await {
        return Err(failed(side, "applying")(both(refusal, error)));
    }
    let mut proof = None;
    if is_another {
        if job.deletes_are_held {
            return Ok(Some(done(HeldFor::AnotherLook, None)));
        }
        match prove(origins, job, Some(&desired.origin)).await? {
            Proof::Against(distrust) => return Ok(Some(done(distrust, None))),
            of @ Proof::Of { .. } => proof = Some(of),
        }
    }
    if let Some(mut refusal) = refusal
        && let Some(first) = first_in_cascade(copies, &job.copy_at).await.map_err(replacing)?
    {
        refusal.add_words(&format!(
            "; to replace it would delete {first} too: delete that first if it is not needed"
        ));
        return Err(failed(side, "applying")(refusal));
    }
    let Some(meta) = read_meta(copies, job).await.map_err(replacing)? else {
        return Ok(None);
    };
    let copy = job.copy_of(&meta);
    if let Some(proof) = proof
        && let Some(distrust) = distrust(origins, job, &meta, proof).await?
    {
        return Ok(Some(done(distrust, None)));
    }
    if !is_ours_alone(copy) || is_another && !desired.is_another_than(copy) {
        // Somebody has changed it meanwhile. Its side reports that, and the new state decides.
        return Ok(Some(done(HeldFor::AnotherLook, None)));
    }
    if copy.terminating {
        return Ok(Some(left(Why::Terminating)));
    }
    let only_if = precondition(job, &meta);
    let left = copies.delete(resource, name, &only_if).await.map_err(replacing)?;
    // Otherwise its side will report when it is gone.
    Ok(still_ends(job, Why::Terminating, left))
}

/// Asks the copies' side whether it would take the object as a new one, after this refusal of an update. The error says why
/// it would not.
async fn is_taken_as_new(copies: &Cluster, job: &Job, desired: &Desired, refusal: Option<&Error>) -> Result<(), Error> {
    let Address { resource, name } = &job.copy_at;
    let desired = desired.for_create();
    let body = desired.body(job.direction, &job.copy_at, &job.policy.sync_target, &Marks::default());
    copies.would_create(resource, name, body).await?;
    match refusal.filter(|refusal| refusal.is_forbidden()) {
        // The permission to update may be all that is missing.
        Some(refusal) if !copies.may_apply(resource, name).await? => Err(refusal.clone()),
        _ => Ok(()),
    }
}

/// The refusal of an update in the server's words, with those against a new object, if they say more.
fn both(refusal: Option<Error>, against_new: Error) -> Error {
    let Some(mut refusal) = refusal else { return against_new };
    if refusal != against_new {
        refusal.add_words(&format!("; nor is it taken as a new object: {against_new}"));
    }
    refusal
}

#[cfg(test)]
#[path = "replace_tests.rs"]
mod tests;
