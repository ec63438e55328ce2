//! Syncing one object, in either direction: reading, deciding, writing.
//!
//! [`reconcile`] reads the current state where it is not known, lets the direction decide ([`super::downsync`],
//! [`super::upsync`], and [`super::retire`] where the origin is gone), and does it. It may be run again at any time, after
//! any outcome: a lost reply costs one more request.

use std::rc::Rc;

use kube_lite::read::not_older;
use kube_lite::{Cluster, Content, Error};

use super::copy_place::{finalizers_of, other_origin_of, read_copy_of_origin, read_place};
use super::job::{Change, Ending, Failure, HeldFor, Job, Outcome, Seen, Why, done, failed, left};
use super::meta::Object;
use super::object::{Address, Desired, Status};
use super::read::confirm_there;
use super::retire::{Successor, release_kept, retire};
use super::undeclared::MOST_REFUSALS;
use super::{downsync, identity, stored_versions, undeclared, upsync};
use crate::plan::{Direction, Selection};
use crate::side::Side;
use crate::sync::ownership::{CopyState, Marked, origin_hash};

/// Syncs one object.
pub async fn reconcile(hub: &Rc<Cluster>, edge: &Rc<Cluster>, mut job: Job) -> Result<Outcome, Failure> {
    let (origins, copies) = match job.direction {
        Direction::Down => (hub, edge),
        Direction::Up => (edge, hub),
    };
    if job.copy.is_to_be_released() {
        return release_kept(copies, &job).await;
    }
    if job.is_held {
        let held = read_copy_of_origin(copies, &job).await;
        return match held.map_err(failed(Side::of(copies), "reading"))? {
            None => Ok(done(Why::Gone, Some(Seen::ABSENT))),
            there => Ok(done(HeldFor::StillThere, there)),
        };
    }
    if job.selection == Selection::None && job.read_first && !job.may_delete && !job.unverified {
        let hidden = read_unlabelled(copies, &job).await;
        return hidden.map_err(failed(Side::of(copies), "reading"));
    }
    let read = match job.desired.take().filter(|_| !job.gone_at_origin) {
        Some(desired) => Ok(Read::Wanted(desired, None)),
        None => read_desired(origins, &mut job).await,
    };
    let (desired, origin) = match read.map_err(failed(Side::of(origins), "reading"))? {
        Read::Absent => return retire(origins, copies, &job, None).await,
        Read::NeverSynced(origin) => return never_synced(origins, copies, &job, &origin).await,
        Read::NotSelected if job.read_first => {
            let hidden = read_unlabelled(copies, &job).await;
            return hidden.map_err(failed(Side::of(copies), "reading"));
        }
        Read::NotSelected => return Ok(left(Why::NotSelected)),
        Read::Wanted(desired, origin) if job.unread.is_some_and(|synced| synced == desired.hash) => {
            let synced = done(Change::Unchanged, None);
            return Ok(Outcome {
                desired_hash: desired.hash,
                origin,
                ..synced
            });
        }
        Read::Wanted(desired, origin) => (desired, origin),
    };
    let mut found = None;
    if job.read_first {
        let place = read_place(copies, &job).await;
        let place = place.map_err(failed(Side::of(copies), "reading"))?;
        let others = place
            .as_ref()
            .and_then(|(meta, _)| other_origin_of(meta, &job, &desired));
        if let Some(others) = others.filter(|_| job.direction == Direction::Down) {
            return Ok(left(Why::NameTaken(others)));
        }
        found = place.map(|(_, seen)| seen);
        let seen = found.unwrap_or(Seen::ABSENT);
        (job.copy, job.copy_version) = (seen.copy, seen.version);
    }
    if job.identity.is_another() && !job.keeps_source_mark(&desired, job.copy) {
        let asked = ask_who_answers(origins, &mut job).await;
        asked.map_err(failed(Side::of(origins), "identifying the cluster"))?;
    }
    let outcome = bring((hub, edge), origins, &job, &desired).await?;
    Ok(Outcome {
        desired_hash: desired.hash,
        copy: outcome.copy.or(found),
        origin,
        waits_for: finalizers(copies, &job, &desired, &outcome.ending).await?,
        ..outcome
    })
}

/// Makes the copy what the origin's side wants, as far as its own side has such fields.
async fn bring(
    (hub, edge): (&Rc<Cluster>, &Rc<Cluster>),
    origins: &Cluster,
    job: &Job,
    desired: &Rc<Desired>,
) -> Result<Outcome, Failure> {
    let copies = match job.direction {
        Direction::Down => edge,
        Direction::Up => hub,
    };
    let mut taken = Rc::clone(desired);
    let mut kept_versions = Vec::new();
    let mut refusals = 0;
    loop {
        let brought = match job.direction {
            Direction::Down => downsync::bring(hub, edge, job, &taken).await,
            Direction::Up => upsync::bring(edge, hub, job, &taken).await,
        };
        let refusal = match brought {
            // A refusal does not name all such fields.
            Err(refusal) if refusals < MOST_REFUSALS => refusal,
            brought => {
                return brought.map(|outcome| Outcome {
                    kept_versions,
                    ..outcome
                });
            }
        };
        if let Some((with, names)) = stored_versions::with_them(copies, &job.copy_at, &taken, &refusal.error).await? {
            (taken, kept_versions) = (Rc::new(with), names);
        } else if let Some(without) = undeclared::without_it(origins, job, &taken, &refusal.error).await? {
            taken = Rc::new(without);
        } else {
            return Err(refusal);
        }
        refusals += 1;
    }
}

/// Another cluster than the expected one has answered last. That one may be back by now, and what it has would be marked
/// as the other's: nothing would prove then that it is gone.
async fn ask_who_answers(origins: &Cluster, job: &mut Job) -> Result<(), Error> {
    if let Some(found) = identity::read(origins, job.identity.expected()).await? {
        Rc::make_mut(&mut job.identity).answers(&found);
    }
    Ok(())
}

/// The finalizers of what is being deleted in the copy's place, if a new one has to wait for its end.
async fn finalizers(copies: &Cluster, job: &Job, desired: &Desired, ending: &Ending) -> Result<Vec<String>, Failure> {
    if *ending != Why::Terminating || job.has_finished(desired) {
        return Ok(Vec::new());
    }
    finalizers_of(copies, job)
        .await
        .map_err(failed(Side::of(copies), "reading"))
}

/// The origin of a copy is there and not selected, and the copy may be gone or may only have lost its label: then it is
/// still deleted with its origin. A copy that a conversion has since made from another origin is not its copy.
async fn read_unlabelled(copies: &Cluster, job: &Job) -> Result<Outcome, Error> {
    Ok(match read_copy_of_origin(copies, job).await? {
        None => done(Why::Gone, Some(Seen::ABSENT)),
        Some(seen) => done(Why::NotSelected, Some(seen)),
    })
}

/// The origin is there and is never synced. Its own copy stays as it is, which was made before it became so. That of a
/// former object of its name has lost its origin.
async fn never_synced(
    origins: &Cluster,
    copies: &Rc<Cluster>,
    job: &Job,
    origin: &Successor,
) -> Result<Outcome, Failure> {
    let mut outcome = left(Why::NotSelected);
    let mut copy = job.copy;
    if job.read_first {
        let read = read_unlabelled(copies, job).await;
        outcome = read.map_err(failed(Side::of(copies), "reading"))?;
        copy = outcome.copy.unwrap_or(Seen::ABSENT).copy;
    }
    if copy.state == CopyState::Ours && copy.origin != 0 && copy.origin != origin_hash(&origin.uid) {
        return retire(origins, copies, job, Some(origin)).await;
    }
    Ok(outcome)
}

/// What reading the origin gave.
enum Read {
    Wanted(Rc<Desired>, Option<(u64, u64)>),
    NeverSynced(Successor),
    NotSelected,
    Absent,
}

async fn read_desired(origins: &Cluster, job: &mut Job) -> Result<Read, Error> {
    if job.gone_at_origin {
        return Ok(Read::Absent);
    }
    // An unselected object is only asked for to learn whether it still exists.
    let content = if job.selection.is_whole() {
        Content::Full
    } else {
        Content::Metadata
    };
    let Address { resource, name } = &job.origin;
    let body = match origins.get(resource, name, content).await {
        Ok(body) => body,
        Err(error) if error.proves_absent(&name.name) => return Ok(Read::Absent),
        Err(error) => return Err(error),
    };
    let object = Object::named(name, body)?;
    let meta = &object.meta;
    not_older(meta, job.origin_seen_at)?;
    confirm_there(origins, &job.origin, meta, job.origin_unnamed).await?;
    // What the other direction has created is not synced back.
    let is_copy = meta.is_copy_of(job.direction.other(), &resource.kind);
    if job.selection == Selection::None || is_copy {
        return Ok(Read::NotSelected);
    }
    let Some(desired) = Desired::from_origin(job.direction, &job.origin, &job.copy_at, job.selection, &object)? else {
        return Ok(Read::NeverSynced(Successor {
            uid: meta.uid.clone(),
            version: meta.version_number(),
        }));
    };
    job.origin_read = job.copy.others_have_more.then(|| object.bytes().clone());
    let status = job.unread.map(|_| Status::hash_of(&object));
    Ok(Read::Wanted(
        Rc::new(desired),
        status.map(|status| (meta.version_number(), status)),
    ))
}

#[cfg(test)]
#[path = "reconcile_tests.rs"]
pub(super) mod tests;
