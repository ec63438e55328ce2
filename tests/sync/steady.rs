//! What a steady state costs: requests, writes and memory.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use crate::support::objects::{config_map, namespace};
use crate::support::stage::{config_maps, numbered, select, stock};
use crate::support::story::{SOON, arrives, becomes, copy_equals};
use crate::support::{
    AuditEvent, AuditMark, Pair, PairOptions, SYNCER, Server, comes_to_rest, eventually, holds_throughout, in_parallel,
    micros_of, shared_pair,
};
use serde_json::json;

const NO_HEARTBEAT: &str = "--heartbeat-interval=0s";

/// Long enough for anything periodic below a minute to show, short enough for a test.
const STEADY: Duration = Duration::from_secs(5);

fn is_watch(event: &AuditEvent) -> bool {
    event.verb == "watch"
}

/// The record of synced types is written when a type is new, which depends on the tests before.
fn is_of_record(event: &AuditEvent) -> bool {
    event.uri.contains("edge-syncer-types")
}

/// This moment at hub and edge.
fn marks(pair: &Pair) -> [AuditMark; 2] {
    [pair.hub.audit_mark(), pair.edge.audit_mark()]
}

fn all_since(pair: &Pair, [hub, edge]: [AuditMark; 2]) -> Vec<AuditEvent> {
    let mut all = pair.hub.requests_since(SYNCER, hub);
    all.extend(pair.edge.requests_since(SYNCER, edge));
    all
}

/// Waits until the syncer has sent no request for two seconds, and gives all that it sent.
async fn settled(pair: &Pair, marks: [AuditMark; 2]) -> Vec<AuditEvent> {
    comes_to_rest("the syncer sends nothing", Duration::from_secs(2), SOON, async || {
        Ok::<_, Infallible>(all_since(pair, marks))
    })
    .await
}

/// Creates the `ConfigMap`s `c0` to `c19` in a namespace at the hub, and selects them.
async fn twenty_config_maps(pair: &Pair, shop: &str) {
    let hub = pair.hub.objects();
    stock(&hub, shop, &numbered(20), &json!({"v": "1"})).await;
    select(&hub, &config_maps(shop, &["*"])).await;
}

// For downsync.
#[tokio::test]
async fn a_steady_state_sends_no_request_and_one_change_costs_one_write() {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let start = marks(&pair);
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    // Young servers do not have it yet, and are asked for it again.
    for side in [&hub, &edge] {
        arrives(side, "v1", "namespaces", "", "kube-system").await;
    }
    twenty_config_maps(&pair, &shop).await;
    let _syncer = pair.syncer(&[NO_HEARTBEAT]);
    for index in 0..20 {
        arrives(&edge, "v1", "configmaps", &shop, &format!("c{index}")).await;
    }
    settled(&pair, start).await;
    let writes = |server: &Server, mark| {
        let requests = server.requests_since(SYNCER, mark);
        let of_objects = requests.iter().filter(|event| !is_of_record(event));
        of_objects.filter(|event| event.is_write()).count()
    };
    assert_eq!(writes(&pair.hub, start[0]), 0, "downsync writes nothing at the hub");
    assert_eq!(
        writes(&pair.edge, start[1]),
        21,
        "one write for each object and its namespace"
    );

    let steady = marks(&pair);
    holds_throughout("nothing is sent in a steady state", STEADY, async || {
        let new = all_since(&pair, steady);
        if new.is_empty() {
            Ok(())
        } else {
            Err(format!("{new:?}"))
        }
    })
    .await;

    hub.replace(&config_map(&shop, "c7", json!({"v": "2"}))).await;
    copy_equals(&edge, &shop, "c7", &json!({"v": "2"})).await;
    eventually("the write is in the audit log", SOON, async || {
        match all_since(&pair, steady).len() {
            0 => Err("not yet"),
            _ => Ok(()),
        }
    })
    .await;
    let new = settled(&pair, steady).await;
    assert_eq!(new.len(), 1, "{new:?}");
    assert_eq!(new[0].verb, "patch");
}

// Each look is one request for a type, a side and an interval, and there is nothing else.
#[tokio::test]
async fn polling_sends_one_list_for_each_interval_and_one_change_costs_one_read_and_one_write() {
    const POLLING: [&str; 4] = ["--mode=poll", "--edge-mode=poll", "--poll-interval=2s", NO_HEARTBEAT];
    /// Two seconds less a tenth, and a little for timers and clocks, in microseconds. A pause begins when an answer is
    /// complete, so that no busy machine makes it shorter.
    const LEAST_GAP: u64 = 1_700_000;
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let start = marks(&pair);
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    twenty_config_maps(&pair, &shop).await;
    let _syncer = pair.syncer(&POLLING);
    eventually("all is written", SOON, async || {
        let written = pair.edge.requests_since(SYNCER, start[1]);
        let count = written
            .iter()
            .filter(|event| event.is_write() && !is_of_record(event))
            .count();
        if count >= 21 { Ok(()) } else { Err(count) }
    })
    .await;
    // What a look finds while it is being written is read, and may be written once more.
    comes_to_rest("nothing but lists is sent", Duration::from_secs(3), SOON, async || {
        let all = all_since(&pair, start);
        Ok::<_, Infallible>(all.iter().filter(|event| event.verb != "list").count())
    })
    .await;

    let requests = read_so_often(&pair, marks(&pair), 6).await;
    let others: Vec<_> = requests.iter().filter(|event| event.verb != "list").collect();
    // The record learns the versions of the first lists.
    let is_as_it_should = others.len() <= 1 && others.iter().all(|event| is_of_record(event));
    assert!(is_as_it_should, "{others:?}");
    for (what, times) in lists(&requests) {
        let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // The first pause of a type is anything up to the interval, and may have been after the mark.
        assert!(gaps[1..].iter().all(|gap| *gap > LEAST_GAP), "{what} {gaps:?}");
    }

    let change = marks(&pair);
    hub.replace(&config_map(&shop, "c7", json!({"v": "2"}))).await;
    copy_equals(&edge, &shop, "c7", &json!({"v": "2"})).await;
    let requests = read_so_often(&pair, change, 3).await;
    let others = requests.iter().filter(|event| event.verb != "list");
    let verbs: Vec<&str> = others.map(|event| event.verb.as_str()).collect();
    assert!(verbs.starts_with(&["get", "patch"]), "{requests:#?}");
    // The edge may be read while it answers the write. What came of that is read, and may be written once more.
    assert!(["get", "patch"].starts_with(&verbs[2..]), "{requests:#?}");
}

/// Waits until both kinds of configs, and the namespaces and `ConfigMap`s of both sides, have been read so many times, and gives
/// all that was sent.
async fn read_so_often(pair: &Pair, marks: [AuditMark; 2], times: usize) -> Vec<AuditEvent> {
    eventually(&format!("each type is read {times} times"), SOON, async || {
        let requests = all_since(pair, marks);
        let sent = lists(&requests);
        if sent.len() == 6 && sent.values().all(|times_of| times_of.len() >= times) {
            Ok(requests.clone())
        } else {
            Err(format!("{sent:?}"))
        }
    })
    .await
}

/// When each collection was read, in microseconds.
fn lists(requests: &[AuditEvent]) -> BTreeMap<String, Vec<u64>> {
    let mut lists: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for event in requests.iter().filter(|event| event.verb == "list") {
        let time = micros_of(&event.received);
        // The path tells the sides apart too: the edge is asked for a label.
        lists.entry(event.uri.clone()).or_default().push(time);
    }
    lists
}

// "Applying twice writes nothing": a restart reads everything again and changes no resource version.
#[tokio::test]
async fn a_restart_changes_no_copy() {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let start = marks(&pair);
    let edge = pair.edge.objects();
    twenty_config_maps(&pair, &shop).await;
    let versions = async || -> Vec<(String, String)> {
        let copies = edge
            .list("v1", "configmaps", &shop, "edge.kubestellar.io/downsynced=true")
            .await;
        let text = |copy: &serde_json::Value, field: &str| copy["metadata"][field].to_string();
        copies
            .iter()
            .map(|copy| (text(copy, "uid"), text(copy, "resourceVersion")))
            .collect()
    };
    let mut syncer = pair.syncer(&[]);
    for index in 0..20 {
        arrives(&edge, "v1", "configmaps", &shop, &format!("c{index}")).await;
    }
    settled(&pair, start).await;
    let before = versions().await;
    assert_eq!(before.len(), 20);
    syncer.kill();
    let restart = marks(&pair);
    let _syncer = pair.syncer(&[]);
    eventually("the new syncer watches the edge", SOON, async || {
        let watches = pair
            .edge
            .requests_since(SYNCER, restart[1])
            .into_iter()
            .filter(is_watch)
            .count();
        if watches >= 2 {
            Ok(())
        } else {
            Err(format!("{watches} watches"))
        }
    })
    .await;
    settled(&pair, restart).await;
    assert_eq!(versions().await, before);
}

// The flat-memory promise, for the static binary as users run it (scripts/test builds it and names it).
#[tokio::test]
async fn five_thousand_objects_of_4_kib_converge_in_less_than_10_mb() {
    const COUNT: usize = 5_000;
    let pair = Pair::start(PairOptions::default()).await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    hub.create(&namespace("load")).await;
    let body = "x".repeat(4096);
    let creations = (0..COUNT).map(|index| {
        let (hub, body) = (&hub, &body);
        async move {
            hub.create(&config_map("load", &format!("c{index:04}"), json!({"body": body})))
                .await
        }
    });
    in_parallel(creations, 16).await;
    select(&hub, &config_maps("load", &["*"])).await;
    let mut syncer = pair.syncer(&[]);
    eventually("all copies arrive", Duration::from_secs(900), async || {
        let path = "/api/v1/namespaces/load/configmaps?limit=1&labelSelector=edge.kubestellar.io%2Fdownsynced%3Dtrue";
        let list = edge.read(path).await.map_err(|error| error.to_string())?;
        let left = list["metadata"]["remainingItemCount"].as_u64();
        // A label selector hides the count of the rest; the whole list is then counted.
        let count = match left {
            Some(left) => usize::try_from(left).expect("it is a small number") + 1,
            None => edge
                .list("v1", "configmaps", "load", "edge.kubestellar.io/downsynced=true")
                .await
                .len(),
        };
        if count == COUNT {
            Ok(())
        } else {
            Err(format!("{count} of {COUNT}"))
        }
    })
    .await;
    let (resident, peak) = (syncer.resident_kb(), syncer.peak_kb());
    if std::env::var_os("EDGE_SYNCER_BIN").is_some() {
        assert!(resident < 10_000, "resident memory {resident} kB");
        assert!(peak < 10_000, "peak memory {peak} kB");
    } else {
        // The debug binary that cargo builds for the tests has several times the code in memory.
        assert!(peak < 40_000, "peak memory {peak} kB");
    }
    syncer.terminate().await;
}

/// Nothing is set for it: the program sees to its allocator itself.
#[tokio::test]
async fn thirty_objects_of_1_mb_leave_less_than_8_mb_idle() {
    const COUNT: usize = 30;
    let pair = Pair::start(PairOptions::default()).await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let names = numbered(COUNT);
    stock(&hub, "load", &names, &json!({"body": "x".repeat(1_000_000)})).await;
    select(&hub, &config_maps("load", &["*"])).await;
    let mut syncer = pair.syncer(&[]);
    for name in &names {
        arrives(&edge, "v1", "configmaps", "load", name).await;
    }
    let change = json!({"data": {"changed": "yes"}});
    for name in &names {
        hub.merge_patch("v1", "configmaps", "load", name, &change).await;
    }
    for name in &names {
        becomes(&edge, ["v1", "configmaps", "load", name], "has the change", |copy| {
            copy["data"]["changed"] == "yes"
        })
        .await;
    }
    // As above, the debug binary is another measure.
    let most = if std::env::var_os("EDGE_SYNCER_BIN").is_some() {
        8_000
    } else {
        40_000
    };
    eventually("memory is given back", SOON, async || match syncer.resident_kb() {
        resident if resident < most => Ok(()),
        resident => Err(format!("{resident} kB")),
    })
    .await;
    syncer.terminate().await;
}
