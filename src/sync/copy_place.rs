//! What is in the place of a copy: reading it, and changing who owns what of it.

use bytes::Bytes;
use kube_lite::bounded::at_most;
use kube_lite::read::{at_least, not_older, read_metadata};
use kube_lite::{Cluster, Content, Error, ObjectName, ResourceType, qualified};
use serde::Deserialize;

use super::job::{Job, Seen, Why};
use super::meta::{Meta, Object};
use super::object::{Address, Desired, shows_what_is_never_synced};
use super::ownership::{Copy, CopyState, Marked};
use super::read::created_meanwhile;

/// The metadata of what is in the copy's place now; `None` if there is nothing.
pub(super) async fn read_meta(copies: &Cluster, job: &Job) -> Result<Option<Meta>, Error> {
    let Address { resource, name } = &job.copy_at;
    read_metadata(copies, resource, name).await
}

/// What is in the copy's place now, and whether its side keeps it for itself, which may take the whole of it; `None` if there
/// is nothing.
pub(super) async fn read_to_decide(copies: &Cluster, job: &Job) -> Result<Option<(Meta, Copy)>, Error> {
    let found = read_there(copies, job).await?;
    Ok(found.map(|object| {
        let copy = job.copy_as_read(&object);
        (object.meta, copy)
    }))
}

async fn read_there(copies: &Cluster, job: &Job) -> Result<Option<Object>, Error> {
    let Address { resource, name } = &job.copy_at;
    match copies.get(resource, name, shows_what_is_never_synced(resource)).await {
        Ok(object) => Object::named(name, object).map(Some),
        Err(error) if error.proves_absent(&name.name) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Why what is in the copy's place is not touched: its side keeps it for itself, or it is somebody else's, as of the syncer
/// of the sync target `owner`.
pub(super) fn in_its_place(copy: Copy, owner: Option<String>) -> Why {
    if copy.kept && copy.state != CopyState::Anothers {
        Why::Kept
    } else {
        Why::Conflict(owner)
    }
}

/// The copy of the job's origin, as it is now; `None` if there is none, whatever else is in its place.
pub(super) async fn read_copy_of_origin(copies: &Cluster, job: &Job) -> Result<Option<Seen>, Error> {
    let found = read_place(copies, job).await?;
    Ok(found.filter(|(meta, _)| is_of(meta, job)).map(|(_, seen)| seen))
}

/// What is in the copy's place now; `None` if there is nothing.
pub(super) async fn read_place(copies: &Cluster, job: &Job) -> Result<Option<(Meta, Seen)>, Error> {
    let Some(object) = read_there(copies, job).await? else {
        return Ok(None);
    };
    not_older(&object.meta, job.copy_version)?;
    let resource = &job.copy_at.resource;
    let seen = Seen::of(job.direction, resource, &object, &job.policy, job.selection)?;
    Ok(Some((object.meta, seen)))
}

/// True if the copy was made of the job's origin. A conversion may have given its place to another origin: then it
/// belongs to that one, and is deleted with it.
pub(super) fn is_of(copy: &Meta, job: &Job) -> bool {
    let Address { resource, name } = &job.origin;
    match copy.renamed_from() {
        Some((kind, from)) => kind == qualified(&resource.group, &resource.kind) && *from == *name.name,
        None => name == &job.copy_at.name && resource.kind == job.copy_at.resource.kind,
    }
}

/// The other origin that a copy of ours says it was made of, if that had the copy's place before a conversion gave it to the
/// job's. Copies of the Go syncer do not say.
pub(super) fn other_origin_of(copy: &Meta, job: &Job, desired: &Desired) -> Option<String> {
    let marks = job.copy_of(copy);
    if marks.state != CopyState::Ours || is_of(copy, job) || !desired.is_another_than(marks) {
        return None;
    }
    let Address { resource, name } = &job.copy_at;
    Some(match copy.renamed_from() {
        Some((kind, from)) => name.beside(from).of_kind(kind).to_string(),
        None => name.of_kind(&resource.kind).to_string(),
    })
}

/// What is known of an object without its content.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) uid: String,
    pub(crate) is_ending: bool,
    /// When it is being deleted, it is gone only when whatever is responsible for each of these has removed it.
    pub(crate) finalizers: Vec<String>,
}

/// Reads that; nothing if there is no such object.
pub(crate) async fn found_at(
    cluster: &Cluster,
    resource: &ResourceType,
    name: &ObjectName,
) -> Result<Option<Found>, Error> {
    #[derive(Deserialize)]
    struct Wire {
        metadata: WireMeta,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct WireMeta {
        #[serde(default)]
        uid: String,
        deletion_timestamp: Option<String>,
        #[serde(default, deserialize_with = "at_most::<_, _, MOST_FINALIZERS>")]
        finalizers: Vec<String>,
    }
    let object = match cluster.get(resource, name, Content::Metadata).await {
        Ok(object) => object,
        Err(error) if error.proves_absent(&name.name) => return Ok(None),
        Err(error) => return Err(error),
    };
    let wire: Wire = serde_json::from_slice(&object).map_err(|error| Error::BadAnswer(error.to_string()))?;
    let WireMeta {
        uid,
        deletion_timestamp,
        finalizers,
    } = wire.metadata;
    Ok(Some(Found {
        uid,
        is_ending: deletion_timestamp.is_some(),
        finalizers,
    }))
}

/// The finalizers of what is being deleted in the copy's place.
pub(super) async fn finalizers_of(copies: &Cluster, job: &Job) -> Result<Vec<String>, Error> {
    let Address { resource, name } = &job.copy_at;
    let found = found_at(copies, resource, name).await?;
    let ending = found.filter(|found| found.is_ending);
    Ok(ending.map(|ending| ending.finalizers).unwrap_or_default())
}

/// A copy as it was at a version; `None` if it cannot be read, or has changed since: then the refusal of the apply decides.
pub(super) async fn read_at(
    copies: &Cluster,
    at: &Address,
    version: &str,
    content: Content,
) -> Result<Option<(Bytes, Meta)>, Error> {
    let found = read_since(copies, at, version, content).await?;
    Ok(found.filter(|(_, meta)| meta.resource_version == version))
}

/// A copy as it is since a version; `None` if it cannot be read. What is older is an error: an apply that is valid for that
/// version would go on without what has to be done before it.
pub(super) async fn read_since(
    copies: &Cluster,
    at: &Address,
    version: &str,
    content: Content,
) -> Result<Option<(Bytes, Meta)>, Error> {
    let Address { resource, name } = at;
    let copy = match copies.get(resource, name, content).await {
        Ok(copy) => copy,
        Err(error) if error.is_final() => return Ok(None),
        Err(error) => return Err(error),
    };
    let meta = Meta::of(name, &copy)?;
    not_older(&meta, version.parse().unwrap_or_default())?;
    Ok(Some((copy, meta)))
}

/// Sends a patch of a copy. Returns its metadata and the version that it then has; `None` if that is refused.
pub(super) async fn send_patch(
    copies: &Cluster,
    at: &Address,
    patch: String,
) -> Result<Option<(Bytes, String)>, Error> {
    let (patch, content) = (Bytes::from(patch), Content::Metadata);
    match copies.merge_patch_for(&at.resource, &at.name, patch, content).await {
        Ok(patched) => {
            let version = Meta::of(&at.name, &patched)?.resource_version;
            Ok(Some((patched, version)))
        }
        Err(error) if error.is_rejection() => Ok(None),
        Err(error) => Err(error),
    }
}

/// More than any object has.
const MOST_FINALIZERS: usize = 1000;

/// A read has not found a copy that was there when it was last reported: either its deletion was not reported yet, or
/// what was read is older than the copy. A list shows how old it is. Returns what is there meanwhile.
pub(super) async fn confirm_gone(copies: &Cluster, job: &Job) -> Result<Option<Meta>, Error> {
    let Address { resource, name } = &job.copy_at;
    match copies.find(resource, name).await? {
        (true, _) => created_meanwhile(copies, &job.copy_at).await.map(Some),
        (false, version) => at_least(version, job.copy_version).map(|()| None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_side_keeps_for_itself_is_in_the_way_without_an_owner_that_could_be_asked() {
        let there = |state, kept| Copy {
            state,
            kept,
            ..Copy::default()
        };
        let another = Some("site-8".to_owned());
        for (copy, owner, expected) in [
            (there(CopyState::Foreign, false), None, Why::Conflict(None)),
            (there(CopyState::Foreign, true), None, Why::Kept),
            (there(CopyState::Ours, true), None, Why::Kept),
            (
                there(CopyState::Anothers, true),
                another.clone(),
                Why::Conflict(another),
            ),
        ] {
            assert_eq!(in_its_place(copy, owner), expected, "{copy:?}");
        }
    }
}
