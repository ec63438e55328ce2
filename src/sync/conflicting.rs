//! Fields of others that are invalid together with those that we apply.
//!
//! Server-side apply merges: what others own beside our fields stays. So an apply can be refused though its object is
//! valid by itself, however often it is sent: somebody has replaced `value` of a variable by `valueFrom`, and with ours it
//! would have both; the port of a Service has another number now, and two ports would have one name.
//!
//! After such a refusal the fields of those that are reverted anyway are made ours first, so that the apply replaces them
//! ([`take_over()`]). If that does not help, and the server would take the origin's content in place of the copy's, the same is
//! done with everybody's fields, also with what servers and controllers have filled in: what the origin wants comes first.
//!
//! What others have beside us is no conflict, but would stay when the origin drops it. It is taken from them before the next
//! apply ([`take_shared`]), and so is what we have written ourselves otherwise than by an apply.

use std::collections::BTreeMap;

use bytes::Bytes;
use kube_lite::fields::{from_text, no_object};
use kube_lite::logging::log_line;
use kube_lite::{Cluster, Content, Error, pointer};
use serde_json::json;
use serde_json::value::RawValue;

use super::copy_place::read_since;
use super::dropped_versions::patch_managers;
use super::job::Job;
use super::meta::Meta;
use super::object::{Address, Desired};
use super::ownership::{Copy, CopyState, Marked};
use super::take_over::{Whose, contents_of, take_over, take_shared};
use super::top_fields::object_of;
use super::whole_lists::set_lists;
use super::{dropped_versions, emptied, mistyped, ownerless, references, stored_versions};

/// Applies through `once`, as [`emptied::apply`] does: to a copy as it was at a version.
pub(super) async fn apply(
    copies: &Cluster,
    job: &Job,
    desired: &Desired,
    (copy, version): (Copy, Option<&str>),
    once: impl AsyncFn(Option<&str>) -> Result<(Bytes, bool), Error>,
) -> Result<(Bytes, bool), Error> {
    let may_conflict = |error: &Error| error.is_invalid() && !stored_versions::are_missing(error);
    let at = &job.copy_at;
    let served = async |version: Option<&str>| dropped_versions::apply(copies, at, version, &once).await;
    let typed = async |version: Option<&str>| mistyped::apply(copies, at, desired, version, &served).await;
    let apply_at = async |version: Option<&str>| emptied::apply(copies, at, desired, version, &typed).await;
    let prepared = match version {
        Some(version) => prepare(copies, job, desired, (copy, version)).await?,
        None => None,
    };
    let version = prepared.as_deref().or(version);
    let freed = match version {
        Some(version) => references::let_go(copies, at, desired, version).await?,
        None => None,
    };
    let version = freed.as_deref().or(version);
    let mut applied = apply_at(version).await;
    if !applied.as_ref().is_err_and(may_conflict) {
        return applied;
    }
    let Some(version) = version else { return applied };
    let Some((mut copy, meta)) = read(copies, job, version).await? else {
        return applied;
    };
    if meta.resource_version != version {
        // The server says now that it has changed since, so that it is tried with what is there.
        return apply_at(Some(version)).await;
    }
    let mut version = version.to_owned();
    if let Some(named) = ownerless::name_owner(copies, at, &copy).await? {
        version = Meta::of(&at.name, &named)?.resource_version;
        copy = named;
    }
    let mut taking = Taking {
        copies,
        job,
        desired,
        is_valid_alone: None,
    };
    for whose in [
        Whose::Reverted(job.policy.reverts(job.selection)),
        Whose::Everybodys { filled_in: false },
        Whose::Everybodys { filled_in: true },
    ] {
        let Some((taken, now)) = taking.take((&copy, &version), whose).await? else {
            continue;
        };
        version = now;
        applied = apply_at(Some(&version)).await;
        if !applied.as_ref().is_err_and(may_conflict) {
            break;
        }
        copy = taken;
    }
    applied
}

/// Does what has to be done to a copy, as it is at a version, before an apply. Returns the version that it then has; `None` if
/// that is nothing.
async fn prepare(
    copies: &Cluster,
    job: &Job,
    desired: &Desired,
    (copy, version): (Copy, &str),
) -> Result<Option<String>, Error> {
    let set = if desired.has_duplicates() {
        set_lists(copies, job, desired, version).await?
    } else {
        None
    };
    let is_made = copy.made || set.is_some();
    if !is_made && !copy.shared {
        return Ok(None);
    }
    let version = set.as_deref().unwrap_or(version);
    let alone = take_alone(copies, job, desired, version, (is_made, copy.shared)).await?;
    Ok(alone.or(set))
}

/// Makes the fields that we apply ours alone before that, so that they go when we apply them no longer: what we have made
/// otherwise than by an apply, and what others have too. Returns the version that the copy then has; `None` if there is
/// nothing to take, or it may not be taken.
async fn take_alone(
    copies: &Cluster,
    job: &Job,
    desired: &Desired,
    version: &str,
    (is_made, is_shared): (bool, bool),
) -> Result<Option<String>, Error> {
    let found = read(copies, job, version).await?;
    let Some((mut copy, _)) = found.filter(|(_, meta)| meta.resource_version == version) else {
        return Ok(None);
    };
    let (at, before) = (&job.copy_at, copy.clone());
    let patch_managers = async |patch| mistyped::patch_managers(copies, at, desired, &before, patch).await;
    let resource = &at.resource;
    let mut now = None;
    if is_made && let Some(patch) = take_over(&copy, resource, Whose::Made(&desired.lists_of_duplicates()))? {
        let Some((taken, version)) = patch_managers(patch).await? else {
            return Ok(None);
        };
        (copy, now) = (taken, Some(version));
    }
    let reverted = job.policy.reverts(job.selection);
    let wanted = desired.contents();
    if is_shared && let Some(patch) = take_shared(&copy, resource, reverted, wanted.as_ref())? {
        let taken = patch_managers(patch).await?;
        now = taken.map(|(_, version)| version).or(now);
    }
    Ok(now)
}

/// The metadata of the copy since that version; `None` if it cannot be taken from ([`read_since`]).
async fn read(copies: &Cluster, job: &Job, version: &str) -> Result<Option<(Bytes, Meta)>, Error> {
    let found = read_since(copies, &job.copy_at, version, Content::Metadata).await?;
    // One with our mark alone would count as ours once a syncer is among its managers.
    let may_be_anothers = |meta: &Meta| {
        job.copy_of(meta).state == CopyState::Foreign && meta.is_copy_of(job.direction, &job.copy_at.resource.kind)
    };
    Ok(found.filter(|(_, meta)| !may_be_anothers(meta)))
}

struct Taking<'a> {
    copies: &'a Cluster,
    job: &'a Job,
    desired: &'a Desired,
    /// Whether the server would take the origin's content in the place of that of the copy; absent as long as it was not asked.
    is_valid_alone: Option<bool>,
}

impl Taking<'_> {
    /// Makes these fields of the copy, as it is at that version, ours. Returns its metadata and version after that; `None` if
    /// there are none, or they may not be taken.
    async fn take(
        &mut self,
        (copy, version): (&[u8], &str),
        whose: Whose<'_>,
    ) -> Result<Option<(Bytes, String)>, Error> {
        let at = &self.job.copy_at;
        let Some(patch) = take_over(copy, &at.resource, whose)? else {
            return Ok(None);
        };
        let is_everybodys = matches!(whose, Whose::Everybodys { .. });
        if is_everybodys && !self.is_valid_alone(copy, version).await? {
            return Ok(None);
        }
        let patched = patch_managers(self.copies, at, patch).await?;
        if is_everybodys && patched.is_some() {
            log_line!(
                Debug,
                OthersFieldsRemoved,
                "a copy was refused as a whole because of fields that others have added; they are removed",
                side = self.copies.name(),
                object = at.for_people()
            );
        }
        Ok(patched)
    }

    /// True if the server would take the origin's content in the place of that of the copy at this version.
    async fn is_valid_alone(&mut self, copy: &[u8], version: &str) -> Result<bool, Error> {
        if let Some(known) = self.is_valid_alone {
            return Ok(known);
        }
        let Address { resource, name } = &self.job.copy_at;
        let patch = self.desired.in_place_of(&contents_of(copy)?, version)?;
        let is_valid = match self.copies.would_patch(resource, name, patch).await {
            Ok(()) => true,
            Err(error) if error.is_final() => false,
            Err(error) => return Err(error),
        };
        self.is_valid_alone = Some(is_valid);
        Ok(is_valid)
    }
}

impl Desired {
    /// The JSON patch that puts it into the place of these fields of a copy at a version.
    fn in_place_of(&self, contents: &[String], version: &str) -> Result<Bytes, Error> {
        let fields = object_of(&self.fields);
        let fields: BTreeMap<String, &RawValue> = from_text(&fields).map_err(|error| no_object(&error))?;
        let step = |op: &str, path: &str, value: &str| {
            let path = json!(pointer(&[path]));
            format!(r#"{{"op":"{op}","path":{path}{value}}}"#)
        };
        let version = json!(version);
        let mut steps = vec![format!(
            r#"{{"op":"replace","path":"/metadata/resourceVersion","value":{version}}}"#
        )];
        let gone = contents.iter().filter(|field| !fields.contains_key(*field));
        steps.extend(gone.map(|field| step("remove", field, "")));
        let set = fields
            .iter()
            .map(|(field, value)| step("add", field, &format!(r#","value":{value}"#)));
        steps.extend(set);
        Ok(Bytes::from(format!("[{}]", steps.join(","))))
    }
}

#[cfg(test)]
#[path = "conflicting_tests.rs"]
mod tests;
