//! what deletes others too when it is deleted: a namespace all that is in it, a CRD all objects of its type.

use super::choices::Choices;
use super::converged::is_create_only;
use super::conversions::origin_of;
use super::flows::DOWNSYNC;
use super::store::{Key, Store};
use super::types::DEFINITIONS;

/// What is at the edge, would go with `taker`, and is neither going nor to be deleted itself.
pub fn kept(hub: &Store, edge: &Store, taker: &Key, choices: Choices) -> Vec<Key> {
    let goes_with = |key: &Key| {
        !key.is_each_sides_own()
            && match &*taker.resource {
                "namespaces" => key.namespace == taker.name,
                DEFINITIONS => key.resource == taker.name,
                _ => false,
            }
    };
    let within = edge.all().filter(|(key, _)| goes_with(key));
    let kept = within.filter(|(_, object)| object["metadata"]["deletionTimestamp"].is_null());
    let kept = kept.filter(|(key, object)| {
        let is_released = DOWNSYNC.is_adopted(object) && !choices.delete_adopted;
        let to_be_deleted = DOWNSYNC.owns(object) && !is_released && !is_create_only(object);
        !to_be_deleted || hub.get(&origin_of(key, object)).is_some()
    });
    kept.map(|(key, _)| key.clone()).collect()
}
