//! Fields of others that are invalid together with those that we apply.
//!
//! Server-side apply merges: what others own beside our fields stays. So an apply can be refused though its object is
//! valid by itself, however often it is sent: somebody has replaced `value` of a variable by `valueFrom`, and with ours it
//! would have both; the port of a Service has another number now, and two ports would have one name. The same happens
//! without anybody else: what a create at the hub has written belongs to another entry than what is applied later.
//!
//! After such a refusal the fields of those that are reverted anyway are made ours first, so that the apply replaces them
//! ([`take_over()`]). If that does not help, and the server would take the origin's spec in place of the copy's, the same is
//! done with everybody's fields of the spec: what the origin wants comes first.

use bytes::Bytes;
use serde_json::json;

use super::emptied;
use super::job::Job;
use super::meta::Meta;
use super::object::{Address, Desired};
use super::ownership::CopyState;
use super::take_over::{Whose, take_over};
use crate::cluster::{Cluster, Content, Error};
use crate::logging::log_line;

/// Applies through `once`, as [`emptied::apply`] does: to the copy as it was at a version.
pub(super) async fn apply(
    copies: &Cluster,
    job: &Job,
    desired: &Desired,
    version: Option<&str>,
    once: impl AsyncFn(Option<&str>) -> Result<(Bytes, bool), Error>,
) -> Result<(Bytes, bool), Error> {
    let may_conflict = |refusal: &Error| refusal.is_invalid() && !refusal.is_immutable() && !refusal.is_denial();
    let apply_at = async |version: Option<&str>| emptied::apply(copies, &job.copy_at, desired, version, &once).await;
    let mut applied = apply_at(version).await;
    if !applied.as_ref().is_err_and(may_conflict) {
        return applied;
    }
    let Some(version) = version else { return applied };
    let Some(mut copy) = read(copies, job, version).await? else {
        return applied;
    };
    let mut version = version.to_owned();
    for whose in [Whose::Reverted(job.policy.reverts(job.selection)), Whose::Everybodys] {
        let Some(taken) = take(copies, job, desired, (&copy, &version), whose).await? else {
            continue;
        };
        version = Meta::of(&job.copy_at.name, &taken)?.resource_version;
        applied = apply_at(Some(&version)).await;
        if !applied.as_ref().is_err_and(may_conflict) {
            break;
        }
        copy = taken;
    }
    applied
}

/// The metadata of the copy; `None` if it cannot be read, or is not as it was at that version.
async fn read(copies: &Cluster, job: &Job, version: &str) -> Result<Option<Bytes>, Error> {
    let Address { resource, name } = &job.copy_at;
    let copy = match copies.get(resource, name, Content::Metadata).await {
        Ok(copy) => copy,
        // Then the refusal of the apply is logged.
        Err(error) if error.status().is_some() => return Ok(None),
        Err(error) => return Err(error),
    };
    let meta = Meta::of(name, &copy)?;
    // One with our mark alone would count as ours once a syncer is among its managers.
    let is_doubtful = job.copy_of(&meta).state == CopyState::Foreign && meta.is_copy_of(job.direction, &resource.kind);
    Ok((meta.resource_version == version && !is_doubtful).then_some(copy))
}

/// Makes these fields of the copy, as it is at that version, ours. Returns its metadata after that; `None` if there are none, or they may not be
/// taken.
async fn take(
    copies: &Cluster,
    job: &Job,
    desired: &Desired,
    (copy, version): (&[u8], &str),
    whose: Whose<'_>,
) -> Result<Option<Bytes>, Error> {
    let Address { resource, name } = &job.copy_at;
    let Some(patch) = take_over(copy, resource, job.direction, whose)? else {
        return Ok(None);
    };
    let is_everybodys = matches!(whose, Whose::Everybodys);
    if is_everybodys && !is_taken_alone(copies, job, desired, version).await? {
        return Ok(None);
    }
    let patched = copies
        .merge_patch_for(resource, name, Bytes::from(patch), Content::Metadata)
        .await;
    match patched {
        Err(error) if error.is_rejection() => return Ok(None),
        Ok(_) if is_everybodys => log_line!(
            Debug,
            OthersFieldsRemoved,
            "a copy was refused as a whole because of fields that others have added; they are removed",
            side = copies.side().word(),
            object = job.copy_at.for_people()
        ),
        _ => {}
    }
    patched.map(Some)
}

/// True if the server would take the origin's spec in the place of that of the copy at this version.
async fn is_taken_alone(copies: &Cluster, job: &Job, desired: &Desired, version: &str) -> Result<bool, Error> {
    let Address { resource, name } = &job.copy_at;
    let Some(spec) = desired.field("spec")? else {
        return Ok(false);
    };
    let version = json!(version);
    let patch = format!(
        r#"[{{"op":"replace","path":"/metadata/resourceVersion","value":{version}}},{{"op":"replace","path":"/spec","value":{spec}}}]"#
    );
    match copies.would_patch(resource, name, Bytes::from(patch)).await {
        Ok(()) => Ok(true),
        Err(error) if error.status().is_some() => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[path = "conflicting_tests.rs"]
mod tests;
