//! What is large is sent compressed.

use std::rc::Rc;

use crate::support::objects::{config_map, namespace};
use crate::support::stage::numbered;
use crate::support::{PairLease, Server, in_parallel, shared_pair};
use bytes::Bytes;
use driver::source::{Mode, Reading, SourceEvent, Style, start};
use edge_syncer::api::FIELD_MANAGER;
use edge_syncer::side::Side;
use futures_util::future::LocalBoxFuture;
use kube_lite::access::{AccessSource, Flags};
use kube_lite::reload::Reloading;
use kube_lite::{
    ApiServer, Cluster, Content, Error, ListRequest, ObjectName, RateLimit, ResourceType, Response, Scope,
};
use serde_json::json;
use tokio::sync::mpsc::channel;
use tokio::task::LocalSet;

/// So many objects of so many bytes each.
const OBJECTS: usize = 600;
const SIZE: usize = 2048;

/// The border to a server, whose count of bytes stays at hand.
struct Counted(Rc<Reloading>);

impl ApiServer for Counted {
    fn send(&self, request: http::Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
        self.0.send(request)
    }

    fn link_bytes(&self) -> [u64; 2] {
        self.0.link_bytes()
    }
}

/// A pair whose hub has objects in a namespace.
async fn filled() -> (PairLease, String) {
    let pair = shared_pair().await;
    let (hub, shop) = (pair.hub.objects(), pair.namespace("shop"));
    hub.create(&namespace(&shop)).await;
    let text = "some words and 12345 numbers; ".repeat(SIZE / 30);
    let names = numbered(OBJECTS);
    let objects = names.iter().map(|name| config_map(&shop, name, json!({"text": text})));
    in_parallel(objects.map(|object| async { hub.create(&{ object }).await }), 16).await;
    (pair, shop)
}

/// A server as one of the sides, and what counts its bytes.
fn counted(side: Side, server: &Server) -> (Rc<Cluster>, Rc<Reloading>) {
    let access = AccessSource::Kubeconfig {
        path: server.kubeconfig(),
        context: None,
        flags: Flags::default(),
    };
    let server = Reloading::open(side.word(), access, "compression".into());
    let server = Rc::new(server.expect("the kubeconfig was made for this"));
    let cluster = Cluster::new(
        side.word(),
        Box::new(Counted(Rc::clone(&server))),
        RateLimit::new(None),
        FIELD_MANAGER,
    );
    let cluster = if side == Side::Edge { cluster.nearby() } else { cluster };
    (Rc::new(cluster), server)
}

fn within(shop: &str) -> Scope {
    Scope {
        namespace: Some(shop.into()),
        name: None,
    }
}

#[tokio::test]
async fn large_lists_and_objects_are_a_fraction_of_their_size_on_the_link() {
    let (pair, shop) = filled().await;
    let hub = pair.hub.objects();
    let (cluster, server) = counted(Side::Hub, &pair.hub);
    let moved = || server.link_bytes().iter().sum::<u64>();

    let request = ListRequest {
        resource: ResourceType::config_maps(),
        scope: within(&shop),
        label_selector: None,
        field_selector: None,
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
    assert!(on_link * 5 < size, "{on_link} of {size} bytes");

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

#[tokio::test]
async fn the_list_before_a_watch_is_compressed_at_the_hub_alone() {
    let (pair, shop) = filled().await;
    for (side, is_compressed) in [(Side::Hub, true), (Side::Edge, false)] {
        let (cluster, server) = counted(side, &pair.hub);
        let reading = Reading {
            resource: ResourceType::config_maps(),
            scope: within(&shop),
            style: Style::Whole,
        };
        let (sender, mut events) = channel(1);
        let read = async {
            let _source = start(&cluster, &reading, Mode::Watch, 1, sender);
            let (mut count, mut size) = (0, 0);
            loop {
                match events.recv().await.expect("it runs as long as its handle").1 {
                    SourceEvent::Object(object) => {
                        count += 1;
                        size += object.bytes().len() as u64;
                    }
                    SourceEvent::Complete(_) => return (count, size),
                    SourceEvent::Begin(_) | SourceEvent::Up => {}
                    other => panic!("{other:?}"),
                }
            }
        };
        let (count, size) = LocalSet::new().run_until(read).await;
        assert_eq!(count, OBJECTS, "{side}");
        let on_link: u64 = server.link_bytes().iter().sum();
        assert_eq!(on_link * 5 < size, is_compressed, "{side}: {on_link} of {size} bytes");
    }
}
