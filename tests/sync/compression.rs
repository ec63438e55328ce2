//! What is large is sent compressed.

use std::rc::Rc;

use crate::support::objects::{config_map, namespace};
use crate::support::stage::numbered;
use crate::support::{in_parallel, shared_pair};
use bytes::Bytes;
use edge_syncer::cluster::access::AccessSource;
use edge_syncer::cluster::reload::Reloading;
use edge_syncer::cluster::{
    ApiServer, Cluster, Content, Error, ListRequest, ObjectName, RateLimit, ResourceType, Response, Scope, Side,
};
use futures_util::future::LocalBoxFuture;
use serde_json::json;

/// So many objects of so many bytes each.
const OBJECTS: usize = 600;
const SIZE: usize = 2048;

/// The border to a server, whose count of bytes stays at hand.
struct Counted(Rc<Reloading>);

impl ApiServer for Counted {
    fn send(&self, request: http::Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
        self.0.send(request)
    }

    fn bytes_moved(&self) -> u64 {
        self.0.bytes_moved()
    }
}

#[tokio::test]
async fn large_lists_and_objects_are_a_fraction_of_their_size_on_the_link() {
    let pair = shared_pair().await;
    let (hub, shop) = (pair.hub.objects(), pair.namespace("shop"));
    hub.create(&namespace(&shop)).await;
    let text = "some words and 12345 numbers; ".repeat(SIZE / 30);
    let names = numbered(OBJECTS);
    let objects = names.iter().map(|name| config_map(&shop, name, json!({"text": text})));
    in_parallel(objects.map(|object| async { hub.create(&{ object }).await }), 16).await;
    let access = AccessSource::Kubeconfig {
        path: pair.hub.kubeconfig(),
        context: None,
    };
    let server = Reloading::open(Side::Hub, access, "compression".into()).await;
    let server = Rc::new(server.expect("the kubeconfig was made for this"));
    let moved = || server.bytes_moved();
    let cluster = Cluster::new(Side::Hub, Box::new(Counted(Rc::clone(&server))), RateLimit::new(None));
    let cluster = Rc::new(cluster);

    let request = ListRequest {
        resource: ResourceType::config_maps(),
        scope: Scope {
            namespace: Some(shop.as_str().into()),
            name: None,
        },
        label_selector: None,
        content: Content::Full,
    };
    let before = moved();
    let (mut count, mut size) = (0, 0);
    let mut listing = cluster.list(request);
    while let Some(object) = listing.next().await.expect("the list is whole") {
        count += 1;
        size += object.len() as u64;
    }
    assert_eq!(count, OBJECTS);
    let on_link = moved() - before;
    // The first page is too small to be compressed.
    assert!(on_link * 3 < size, "{on_link} of {size} bytes");

    let large = "some words and 12345 numbers; ".repeat(20_000);
    hub.create(&config_map(&shop, "large", json!({"text": large}))).await;
    let before = moved();
    let name = ObjectName::new(&shop, "large");
    let object = cluster
        .get(&ResourceType::config_maps(), &name, Content::Full)
        .await
        .expect("it is there");
    let object: serde_json::Value = serde_json::from_slice(&object).expect("it is JSON");
    assert_eq!(object["data"]["text"], large);
    let on_link = moved() - before;
    assert!(on_link * 5 < large.len() as u64, "{on_link} of {} bytes", large.len());
}
