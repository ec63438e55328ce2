//! Reading one object: what is there, what is proved not to be there, and what is too old to count. And all of a type, where
//! they are few.

use std::rc::Rc;

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::meta::Meta;
use super::{Cluster, Content, Error, ListRequest, ObjectName, ResourceType};

/// All objects of a type, whole, in all namespaces, or those that a label selector means. All of them are in memory then.
pub async fn list_all<T: DeserializeOwned>(
    cluster: &Rc<Cluster>,
    resource: ResourceType,
    label_selector: Option<Rc<str>>,
) -> Result<Vec<T>, Error> {
    let mut listing = cluster.list(ListRequest {
        label_selector,
        ..ListRequest::of_all(resource, Content::Full)
    });
    let mut all = Vec::new();
    while let Some(object) = listing.next().await? {
        all.push(serde_json::from_slice(&object).map_err(|error| Error::BadAnswer(error.to_string()))?);
    }
    Ok(all)
}

/// The metadata of an object; `None` if a side has proved that there is none.
pub async fn read_metadata<M: DeserializeOwned + Default>(
    cluster: &Cluster,
    resource: &ResourceType,
    name: &ObjectName,
) -> Result<Option<Meta<M>>, Error> {
    seen(name, cluster.get(resource, name, Content::Metadata).await)
}

/// The same for an object that many workers ask for at once.
pub async fn read_metadata_shared<M: DeserializeOwned + Default>(
    cluster: &Cluster,
    resource: &ResourceType,
    name: &ObjectName,
) -> Result<Option<Meta<M>>, Error> {
    seen(name, cluster.get_shared(resource, name, Content::Metadata).await)
}

fn seen<M: DeserializeOwned + Default>(
    name: &ObjectName,
    answer: Result<Bytes, Error>,
) -> Result<Option<Meta<M>>, Error> {
    match answer {
        Ok(object) => Meta::of(name, &object).map(Some),
        Err(error) if error.proves_absent(&name.name) => Ok(None),
        Err(error) => Err(error),
    }
}

/// An error if the object is older than what the server has shown before. No API server answers so; a cache before it
/// may.
pub fn not_older<M>(meta: &Meta<M>, shown: u64) -> Result<(), Error> {
    at_least(meta.version_number(), shown)
}

/// An error for a version that is older than another; 0 is none.
pub fn at_least(version: u64, shown: u64) -> Result<(), Error> {
    if version != 0 && version < shown {
        return Err(Error::Outdated { version, shown });
    }
    Ok(())
}
