//! A thousand objects: what they cost in memory and requests.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{config_map, namespace};
use crate::support::stage::{all_of_each, select};
use crate::support::story::{SOON, annotation};
use crate::support::{AuditEvent, Objects, SYNCER, Server, eventually, in_parallel, shared_pair};

in_both_modes!(a_thousand_config_maps_in_twenty_namespaces_converge_with_bounded_memory_and_requests,);

const SPACES: usize = 20;
/// Objects in each namespace.
const EACH: usize = 50;
/// One for each object and each namespace.
const WRITES: usize = SPACES * EACH + SPACES;
/// Discovery, lists, watches, the record of types, and a few writes that are asked to come again.
const OTHERS: usize = 60;
/// Label selector of the copies.
const COPIES: &str = "edge.kubestellar.io/downsynced=true";

async fn a_thousand_config_maps_in_twenty_namespaces_converge_with_bounded_memory_and_requests(flags: Mode) {
    let pair = shared_pair().await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let spaces: Vec<String> = (0..SPACES).map(|_| pair.namespace("load")).collect();
    let body = "x".repeat(1024);
    create_all(&hub, &spaces, &body).await;
    select(&hub, &all_of_each(&spaces, &[("", "configmaps")])).await;
    let marks = [&pair.hub, &pair.edge].map(Server::audit_mark);
    let mut syncer = pair.syncer(flags);
    all_arrive(&edge, &spaces, &body).await;
    let peak = syncer.peak_kb();
    // The debug binary that cargo builds for the tests has several times the code in memory.
    let most = if std::env::var_os("EDGE_SYNCER_BIN").is_some() {
        10_000
    } else {
        40_000
    };
    assert!(peak < most, "peak memory {peak} kB, not below {most}");

    let sent = || -> Vec<AuditEvent> {
        let servers = [&pair.hub, &pair.edge].into_iter().zip(marks);
        servers
            .flat_map(|(server, mark)| server.requests_since(SYNCER, mark))
            .collect()
    };
    eventually("all writes are in the audit log", SOON, async || {
        let writes = sent().iter().filter(|event| event.is_write()).count();
        if writes >= WRITES { Ok(()) } else { Err(writes) }
    })
    .await;
    syncer.terminate().await;
    let copies = edge.list("v1", "configmaps", "", COPIES).await;
    let adopted = copies.iter().filter(|copy| !annotation(copy, "adopted").is_null());
    assert_eq!(adopted.count(), 0, "nobody else has made any of them");
    // Each poll interval adds requests, so that only watching has a bound.
    if flags.is_empty() {
        are_few(&sent());
    }
}

async fn create_all(hub: &Objects, spaces: &[String], body: &str) {
    for space in spaces {
        hub.create(&namespace(space)).await;
    }
    let objects = spaces
        .iter()
        .flat_map(|space| (0..EACH).map(move |index| (space, index)))
        .map(|(space, index)| config_map(space, &format!("c{index}"), json!({"body": body})));
    let creations = objects.map(|object| async move { hub.create(&object).await });
    in_parallel(creations, 16).await;
}

async fn all_arrive(edge: &Objects, spaces: &[String], body: &str) {
    eventually("all copies arrive", Duration::from_secs(900), async || {
        // Lists of a thousand objects, one right after the other, would slow down what is waited for.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let copies = edge.try_list("v1", "configmaps", "", COPIES).await;
        let copies = copies.map_err(|error| error.to_string())?;
        let ours = |copy: &&Value| {
            spaces.iter().any(|space| copy["metadata"]["namespace"] == **space) && copy["data"]["body"] == *body
        };
        match copies.iter().filter(ours).count() {
            count if count == SPACES * EACH => Ok(()),
            count => Err(format!("{count} copies")),
        }
    })
    .await;
}

fn are_few(requests: &[AuditEvent]) {
    let mut kinds: BTreeMap<(&str, u16), usize> = BTreeMap::new();
    for event in requests {
        *kinds.entry((&event.verb, event.code)).or_default() += 1;
    }
    assert!(
        requests.len() <= WRITES + OTHERS,
        "{} requests; expected at most one write for each of {} objects and {SPACES} namespaces, and {OTHERS} \
         others: {kinds:?}",
        requests.len(),
        SPACES * EACH,
    );
}
