//! Reading one object of one side: what is there, what is proved not to be there, and what is too old to count.

use bytes::Bytes;

use crate::cluster::{Cluster, Content, Error, ObjectName, ResourceType};
use crate::sync::meta::Meta;
use crate::sync::object::Address;

/// The metadata of an object; `None` if a side has proved that there is none.
pub(crate) async fn read_metadata(
    cluster: &Cluster,
    resource: &ResourceType,
    name: &ObjectName,
) -> Result<Option<Meta>, Error> {
    seen(name, cluster.get(resource, name, Content::Metadata).await)
}

/// The same for an object that many workers ask for at once.
pub(super) async fn read_metadata_shared(
    cluster: &Cluster,
    resource: &ResourceType,
    name: &ObjectName,
) -> Result<Option<Meta>, Error> {
    seen(name, cluster.get_shared(resource, name, Content::Metadata).await)
}

fn seen(name: &ObjectName, answer: Result<Bytes, Error>) -> Result<Option<Meta>, Error> {
    match answer {
        Ok(object) => Meta::of(name, &object).map(Some),
        Err(error) if error.proves_absent(&name.name) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A read shows an object that a list at that version, newer than the object, has not named: one of the two is wrong, and
/// another list shows which.
pub(super) async fn confirm_there(cluster: &Cluster, at: &Address, found: &Meta, unnamed: u64) -> Result<(), Error> {
    let version = found.version_number();
    if version == 0 || version > unnamed {
        return Ok(());
    }
    match cluster.find(&at.resource, &at.name).await? {
        (true, listed) if listed == 0 || listed >= unnamed => Ok(()),
        _ => Err(Error::Outdated {
            version,
            shown: unnamed,
        }),
    }
}

/// A list names what a read said does not exist: it was created in between, as another read shows, or one of the two is
/// wrong. Returns what is there.
pub(super) async fn created_meanwhile(cluster: &Cluster, at: &Address) -> Result<Meta, Error> {
    let found = read_metadata(cluster, &at.resource, &at.name).await?;
    found.ok_or_else(|| Error::BadAnswer("a list names what a read said does not exist".into()))
}

/// An error if the object is older than what the server has shown before. No API server answers so; a cache before it
/// may.
pub(crate) fn not_older(meta: &Meta, shown: u64) -> Result<(), Error> {
    at_least(meta.version_number(), shown)
}

/// An error for a version that is older than another; 0 is none.
pub(super) fn at_least(version: u64, shown: u64) -> Result<(), Error> {
    if version != 0 && version < shown {
        return Err(Error::Outdated { version, shown });
    }
    Ok(())
}
