//! A read and a list that do not agree on an object: one of the two is wrong, and another one shows which.

use kube_lite::read::read_metadata;
use kube_lite::{Cluster, Error};

use crate::sync::meta::Meta;
use crate::sync::object::Address;

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
