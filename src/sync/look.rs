//! Looking at one object of one side: what is there, what is proved not to be there, and what is too old to tell.

use serde::Deserialize;

use super::job::{Job, Seen};
use crate::bounded::at_most;
use crate::cluster::{Cluster, Content, Error, ObjectName, ResourceType};
use crate::sync::object::{Address, Meta};

/// The metadata of what is in the copy's place now; `None` if there is nothing.
pub(super) async fn look(copies: &Cluster, job: &Job) -> Result<Option<Meta>, Error> {
    let Address { resource, name } = &job.copy_at;
    look_at(copies, resource, name).await
}

/// What is in the copy's place now; `None` if there is nothing.
pub(super) async fn see(copies: &Cluster, job: &Job) -> Result<Option<Seen>, Error> {
    let Address { resource, name } = &job.copy_at;
    match copies.get(resource, name, Content::Metadata).await {
        Ok(object) => {
            not_older(&Meta::of(name, &object)?, job.copy_version)?;
            Seen::of(job.direction, resource, &object, &job.policy, job.selection).map(Some)
        }
        Err(error) if error.proves_absent(&name.name) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The finalizers of what is being deleted in the copy's place: what has to be done before it is gone, by whoever removes
/// each of these.
pub(super) async fn finalizers_of(copies: &Cluster, job: &Job) -> Result<Vec<String>, Error> {
    #[derive(Deserialize)]
    struct Wire {
        metadata: WireMeta,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct WireMeta {
        deletion_timestamp: Option<String>,
        #[serde(default, deserialize_with = "at_most::<_, _, MOST_FINALIZERS>")]
        finalizers: Vec<String>,
    }
    let Address { resource, name } = &job.copy_at;
    let object = match copies.get(resource, name, Content::Metadata).await {
        Ok(object) => object,
        Err(error) if error.proves_absent(&name.name) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let wire: Wire = serde_json::from_slice(&object).map_err(|error| Error::BadAnswer(error.to_string()))?;
    let is_ending = wire.metadata.deletion_timestamp.is_some();
    Ok(if is_ending {
        wire.metadata.finalizers
    } else {
        Vec::new()
    })
}

/// More than any object has.
const MOST_FINALIZERS: usize = 1000;

/// The metadata of an object; `None` if a side has proved that there is none.
pub(crate) async fn look_at(
    cluster: &Cluster,
    resource: &ResourceType,
    name: &ObjectName,
) -> Result<Option<Meta>, Error> {
    match cluster.get(resource, name, Content::Metadata).await {
        Ok(object) => Meta::of(name, &object).map(Some),
        Err(error) if error.proves_absent(&name.name) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A read has not found a copy that was there when it was last told of: either nobody has told yet that it went, or what
/// was read is older than the copy. A list says how old it is.
pub(super) async fn confirm_gone(copies: &Cluster, job: &Job) -> Result<(), Error> {
    let Address { resource, name } = &job.copy_at;
    match copies.find(resource, name).await? {
        (true, _) => Err(Error::BadAnswer("a list names what a read said does not exist".into())),
        (false, version) => at_least(version, job.copy_version),
    }
}

/// A read shows an object that a list at that version, newer than the object, has not named: one of the two is wrong, and
/// another list tells which.
pub(super) async fn confirm_there(cluster: &Cluster, at: &Address, found: &Meta, unnamed: u64) -> Result<(), Error> {
    let version = found.version_number();
    if version == 0 || version > unnamed {
        return Ok(());
    }
    match cluster.find(&at.resource, &at.name).await? {
        (true, listed) if listed == 0 || listed >= unnamed => Ok(()),
        _ => Err(Error::Outdated { version, told: unnamed }),
    }
}

/// No read of an API server shows an object as it was before what the server has told of it; a cache before it may.
pub(crate) fn not_older(meta: &Meta, told: u64) -> Result<(), Error> {
    at_least(meta.version_number(), told)
}

/// An error for a version that is older than another; 0 is none.
fn at_least(version: u64, told: u64) -> Result<(), Error> {
    if version != 0 && version < told {
        return Err(Error::Outdated { version, told });
    }
    Ok(())
}
