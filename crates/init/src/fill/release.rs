//! Taking an initializer off a workspace. Others take theirs off at the same time, and none may come back by that.

use kube_lite::meta::Meta;
use kube_lite::{Cluster, Content, Error, Operation};
use serde_json::Value;

use super::find;
use crate::kcp;
use crate::sides::Key;

/// How often it is tried at once. Each time somebody else has changed the list.
const TRIES: usize = 8;

/// What has become of an initializer that was to be taken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Released {
    /// It is off, at this version of the workspace.
    At(u64),
    /// It was off already.
    Before,
}

/// Takes the initializer off, which was seen at this place of the list.
pub(crate) async fn release(
    key: &Key,
    initializer: &str,
    mut place: usize,
    shard: &Cluster,
) -> Result<Released, Error> {
    let name = kcp::logical_cluster(&key.cluster);
    let value = Value::from(initializer);
    let mut tries = 1;
    loop {
        let index = place.to_string();
        let path = ["status", "initializers", &*index];
        // Nothing goes that is not what was tested, whatever has become of the list.
        let operations = [Operation::Test(&path, &value), Operation::Remove(&path)];
        let (resource, content) = (kcp::logical_clusters(), Content::Metadata);
        let written = shard.json_patch_subresource(&resource, &name, "status", &operations, content);
        match written.await {
            Ok(object) => return Ok(Released::At(<Meta>::parse(&object)?.version_number())),
            Err(error) if error.proves_absent(&name.name) => return Ok(Released::Before),
            Err(error) if (error.is_invalid() || error.is_conflict()) && tries < TRIES => tries += 1,
            Err(error) => return Err(error),
        }
        let found = find(key, shard).await?;
        match found.and_then(|found| found.waits_for(initializer)) {
            Some(at) => place = at,
            None => return Ok(Released::Before),
        }
    }
}
