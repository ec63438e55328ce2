//! The objects that are synced while something is measured.

use std::ops::Range;

use futures_util::StreamExt as _;
use serde_json::{Value, json};

use crate::bench::DEADLINE;
use crate::support::objects::{config_map, path};
use crate::support::story::custom_object;
use crate::support::{Objects, eventually};

/// API group of [`gauges`].
pub(crate) const GROUP: &str = "load.example.org";
/// Group and version of [`gauges`].
pub(crate) const GAUGES_V1: &str = "load.example.org/v1";
/// Requests in flight while objects are created or changed.
const AT_ONCE: usize = 16;

/// What a test object is called. The figures of requests know such names.
pub(crate) fn name(index: u32) -> String {
    format!("c{index:05}")
}

/// `ConfigMap`s with `size` bytes each: text that compresses as badly as what people sync, and is the same each time.
pub(crate) fn config_maps(namespace: &str, indices: Range<u32>, size: usize) -> impl Iterator<Item = Value> + '_ {
    let mut random = fastrand::Rng::with_seed(1);
    indices.map(move |index| {
        let body: String = std::iter::repeat_with(|| random.alphanumeric()).take(size).collect();
        config_map(namespace, &name(index), json!({"body": body}))
    })
}

/// Small objects with a status subresource.
pub(crate) fn gauges(namespace: &str, count: u32) -> impl Iterator<Item = Value> + '_ {
    (0..count).map(move |index| custom_object(GROUP, "gauges", namespace, &name(index), index))
}

/// An entry of `namespaceScope` for all gauges of a namespace.
pub(crate) fn select_gauges(namespace: &str) -> Value {
    json!({"namespaces": [namespace], "resources": [{"group": GROUP, "resource": "gauges", "apiVersion": "v1"}]})
}

/// Does something with each of `items`, a few at once.
pub(crate) async fn each<T, F: Future<Output = ()>>(items: impl IntoIterator<Item = T>, act: impl Fn(T) -> F) {
    futures_util::stream::iter(items)
        .for_each_concurrent(AT_ONCE, act)
        .await;
}

/// Creates objects, a few at once.
pub(crate) async fn create_all(side: &Objects, objects: impl IntoIterator<Item = Value>) {
    each(objects, async |object| {
        side.create(&object).await;
    })
    .await;
}

/// Waits until a namespace has so many objects of a type.
pub(crate) async fn await_count(side: &Objects, api_version: &str, plural: &str, namespace: &str, count: u32) {
    let path = format!("{}?limit=1", path(api_version, plural, namespace, ""));
    eventually(&format!("there are {count} {plural}"), DEADLINE, async || {
        let list = side.read(&path).await.map_err(|error| error.to_string())?;
        let first = list["items"].as_array().map_or(0, Vec::len) as u64;
        let found = first + list["metadata"]["remainingItemCount"].as_u64().unwrap_or_default();
        if found == u64::from(count) {
            Ok(())
        } else {
            Err(format!("{found} of {count}"))
        }
    })
    .await;
}
