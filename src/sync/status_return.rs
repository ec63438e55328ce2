//! Status return: the status of one object from edge to hub (spec section 5, and 4 for upsynced objects).
//!
//! The edge's `status` replaces the hub's as a whole, and nothing else of the hub object is touched.

use bytes::Bytes;

use super::job::{Failure, check_name, failed};
use crate::cluster::{Cluster, Content, Error, Side};
use crate::plan::StatusPath;
use crate::sync::object::{Address, Meta, Status};

/// One status to bring to the hub.
#[derive(Debug)]
pub struct StatusJob {
    /// The object at the edge.
    pub at_edge: Address,
    /// The object at the hub.
    pub at_hub: Address,
    /// Where its status is written.
    pub path: StatusPath,
    /// The edge object, if it is at hand; otherwise it is read.
    pub body: Option<Bytes>,
    /// [`Status::hash`] of the hub object as last seen; 0 if it has none, absent if unknown.
    pub hub_status: Option<u64>,
}

/// What a job ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned {
    /// The hub object has it now.
    Written {
        /// [`Status::hash`] of what was written.
        status: u64,
        /// The resource version of the hub object then.
        version: u64,
    },
    /// The hub object has it already, or the edge object has none (0).
    Equal(u64),
    /// One of the two objects is not there.
    Gone,
}

/// Brings one status to the hub.
pub async fn reconcile(hub: &Cluster, edge: &Cluster, job: StatusJob) -> Result<Returned, Failure> {
    let object = match &job.body {
        Some(body) => body.clone(),
        None => match read(edge, &job.at_edge).await {
            Ok(object) => object,
            Err(error) if error.proves_absent(&job.at_edge.name.name) => return Ok(Returned::Gone),
            Err(error) => return Err(failed(Side::Edge, "reading the status")(error)),
        },
    };
    let status = Status::of(&object).map_err(failed(Side::Edge, "reading the status"))?;
    let Some(status) = status else {
        return Ok(Returned::Equal(0));
    };
    if job.hub_status == Some(status.hash) {
        return Ok(Returned::Equal(status.hash));
    }
    let Address { resource, name } = &job.at_hub;
    let subresource = job.path == StatusPath::Subresource;
    let written = hub.replace_status(resource, name, subresource, &status.text).await;
    match written.and_then(|object| Ok(Meta::parse(&object)?.version_number())) {
        Ok(version) => Ok(Returned::Written {
            status: status.hash,
            version,
        }),
        Err(error) if error.proves_absent(&name.name) => Ok(Returned::Gone),
        Err(error) => Err(failed(Side::Hub, "returning the status")(error)),
    }
}

async fn read(edge: &Cluster, at: &Address) -> Result<Bytes, Error> {
    let object = edge.get(&at.resource, &at.name, Content::Full).await?;
    check_name(&at.name, &object)?;
    Ok(object)
}
