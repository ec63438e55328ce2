//! Copies without `managedFields`: the updates of the Go syncer have cleared them, or people have (`[{}]`).
//!
//! At the first apply that it accepts, the API server names all that is there already `before-first-apply`. As long as it
//! refuses each apply, because what is there and what is applied are invalid together, there is no entry whose fields could
//! be taken over, and so it would refuse them for ever. [`name_owner`] has the server make that entry by an apply of nothing.

use bytes::Bytes;
use kube_lite::{Cluster, Content, Error};
use serde_json::json;

use super::managed_fields::Entries;
use super::meta::Meta;
use super::object::Address;

/// Has the server name an owner of all fields of the copy, if that is this object and has none. Returns its metadata after
/// that; `None` if nothing is to be done, or the server refuses it.
pub(super) async fn name_owner(copies: &Cluster, at: &Address, copy: &[u8]) -> Result<Option<Bytes>, Error> {
    if Entries::of(copy)?.iter().next().is_some() {
        return Ok(None);
    }
    let Address { resource, name } = at;
    let meta = Meta::of(name, copy)?;
    // With the UID, nothing is created if it is gone meanwhile.
    let mut metadata = json!({"name": meta.name, "uid": meta.uid, "resourceVersion": meta.resource_version});
    if resource.namespaced {
        metadata["namespace"] = json!(meta.namespace);
    }
    let body = json!({"apiVersion": resource.api_version(), "kind": resource.kind, "metadata": metadata});
    let applied = copies.apply(resource, name, Bytes::from(body.to_string()), Content::Metadata);
    match applied.await {
        Ok((named, _)) => Ok(Some(named)),
        // Then the refusal of the whole apply is logged.
        Err(error) if error.is_rejection() => Ok(None),
        Err(error) => Err(error),
    }
}
