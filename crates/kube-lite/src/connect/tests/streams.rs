//! More watches than the server allows streams on one connection.

use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::try_join_all;
use tokio::time::timeout;

use super::server::{Pki, serve_limited};
use super::{BOTH, https};
use crate::connect::connect;
use crate::real::RealServer;
use crate::{Cluster, Content, ListRequest, RateLimit, ResourceType, Scope, Watching};

/// Far more than anything here takes, and less than the time limit of a request.
const SOON: Duration = Duration::from_secs(20);

fn config_maps() -> ListRequest {
    ListRequest {
        resource: ResourceType::config_maps(),
        scope: Scope::default(),
        label_selector: None,
        field_selector: None,
        content: Content::Full,
    }
}

async fn cluster(alpn: &[&[u8]], streams: u32) -> (Cluster, impl Fn() -> usize) {
    let pki = Pki::new(&["127.0.0.1"]);
    let (address, _, connections) = serve_limited(Some(pki.server_config(alpn, None)), streams).await;
    let server = RealServer(connect(&https(address, &pki), "edge-syncer/test").unwrap());
    let cluster = Cluster::new("hub", Box::new(server), RateLimit::new(None), "edge-syncer");
    (cluster, move || AtomicUsize::load(&connections, Ordering::Relaxed))
}

async fn open(cluster: &Cluster, watches: usize) -> Vec<Watching> {
    let request = config_maps();
    let many = (0..watches).map(|_| cluster.watch(&request, Some("1"), 60));
    let open = timeout(SOON, try_join_all(many)).await;
    open.expect("all are answered").unwrap()
}

/// Requests of every kind are answered, side by side.
async fn answers(cluster: &Cluster) {
    let lease = cluster.unlimited();
    let requests = (0..30).map(|_| cluster.get_path("/version"));
    let all = async { tokio::try_join!(lease.get_path("/version"), try_join_all(requests)) };
    timeout(SOON, all).await.expect("none of them waits").unwrap();
}

async fn comes_down_to(connections: impl Fn() -> usize, count: usize) {
    let down = async {
        while connections() > count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, down).await.expect("what nothing needs is closed");
}

#[tokio::test]
async fn watches_spread_over_connections_and_no_request_waits_for_them() {
    for (allowed, watches, expected) in [
        // 8, and 18 on each of the others.
        (20, 300, 18),
        // 74 and 98.
        (100, 300, 4),
        // A usual syncer.
        (100, 50, 1),
        (5, 10, 4),
    ] {
        let (cluster, connections) = cluster(&BOTH, allowed).await;
        // At once and before anything is known of the server.
        let held = open(&cluster, watches).await;
        answers(&cluster).await;
        // Where there was no room for all requests, they had one of their own for a moment.
        comes_down_to(&connections, expected).await;
        assert_eq!(connections(), expected, "{watches} watches, {allowed} allowed");
        drop(held);
        comes_down_to(&connections, 1).await;
        // Again, with what is known by now.
        let held = open(&cluster, watches).await;
        answers(&cluster).await;
        // Where there was no room for all requests, they had one of their own for a moment.
        comes_down_to(&connections, expected).await;
        assert_eq!(connections(), expected, "{watches} watches, {allowed} allowed");
        drop(held);
    }
}

#[tokio::test]
async fn places_that_become_free_are_taken_again_from_the_first_connection_on() {
    let (cluster, connections) = cluster(&BOTH, 20).await;
    let mut held = open(&cluster, 8 + 18 + 18).await;
    assert_eq!(connections(), 3);
    // Renewals, as at the end of each watch.
    for index in 0..held.len() {
        drop(held.remove(0));
        held.extend(open(&cluster, 1).await);
        assert_eq!(connections(), 3, "{index}");
    }
    held.truncate(8);
    drop(held);
    comes_down_to(&connections, 1).await;
}

#[tokio::test]
async fn where_a_stream_is_a_connection_nothing_is_limited() {
    let (cluster, connections) = cluster(&BOTH[1..], 20).await;
    let held = open(&cluster, 120).await;
    answers(&cluster).await;
    assert!(connections() > 120);
    drop(held);
    comes_down_to(&connections, 2).await;
}

#[tokio::test]
async fn requests_that_are_given_up_leave_no_place_taken() {
    let (cluster, connections) = cluster(&BOTH, 20).await;
    let cluster = Rc::new(cluster);
    for _ in 0..3 {
        // Given up before they are answered, in all states.
        let request = config_maps();
        let many = (0..100).map(|_| cluster.watch(&request, Some("1"), 60));
        let _ = timeout(Duration::from_millis(3), try_join_all(many)).await;
    }
    let held = open(&cluster, 26).await;
    answers(&cluster).await;
    comes_down_to(&connections, 2 + 1).await;
    drop(held);
    comes_down_to(&connections, 1).await;
}
