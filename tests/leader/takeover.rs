//! One is active, and another takes over when that one ends, crashes or hangs.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::candidates::{
    BEGINS, ENDS, LONG, SHORT, STANDBY, candidate, count, is_about_the_lease, is_renewed, leads, lease,
    other_candidate, pair_with_one_config_map, take_rights_back, two_candidates,
};
use crate::support::objects::{config_map, edge_sync_config};
use crate::support::process::complain;
use crate::support::stage::{CONFIG_API, largest};
use crate::support::story::{SOON, arrives, copy_equals};
use crate::support::{AuditMark, SYNCER, Server, eventually, holds_throughout, micros_of};

#[tokio::test]
async fn one_is_active_and_the_standby_only_reads_the_lease() {
    let (pair, shop) = pair_with_one_config_map().await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let mut leader = candidate(&pair, &[]);
    copy_equals(&edge, &shop, "a", &json!({"v": "0"})).await;
    let marks = [pair.hub.audit_mark(), pair.edge.audit_mark()];
    let mut standby = other_candidate(&pair, &[]).await;
    standby.wait_for_log(STANDBY, SOON).await;
    for version in ["1", "2"] {
        hub.replace(&config_map(&shop, "a", json!({"v": version}))).await;
        copy_equals(&edge, &shop, "a", &json!({"v": version})).await;
    }

    // The leader renews, and nothing else of the Lease changes.
    let held = is_renewed(&edge).await;
    let holder = held["spec"]["holderIdentity"]
        .as_str()
        .expect("it has a holder")
        .to_owned();
    assert!(leader.log().contains(&format!("identity={holder} ")), "{holder}");
    assert!(standby.log().contains(&format!("holder={holder} ")), "{holder}");
    assert_eq!(held["spec"]["leaseDurationSeconds"], json!(15));
    assert_eq!(held["spec"]["leaseTransitions"], json!(0));
    let time = held["spec"]["renewTime"].as_str().expect("it has a time");
    assert_eq!(time.len(), "2026-11-21T14:03:07.123456Z".len(), "{time}");

    for (side, mark) in [(&pair.hub, marks[0]), (&pair.edge, marks[1])] {
        assert_eq!(others_of_limited(side, mark), Vec::<String>::new(), "{}", side.name());
    }
    eventually("the audit log has a look of the standby", SOON, async || {
        let looks = pair.edge.requests_since(SYNCER, marks[1]);
        let mut of_it = looks.iter().filter(|event| event.user == "limited");
        of_it.find(|event| event.verb == "get").map(|_| ()).ok_or("not yet")
    })
    .await;
    assert!(leads(&leader) && !leads(&standby));
    assert_eq!((count(&standby, BEGINS), count(&standby, STANDBY)), (0, 1));
    leader.terminate().await;
    standby.terminate().await;
    take_rights_back(&pair).await;
}

#[tokio::test]
async fn sigterm_hands_over_in_seconds() {
    let (pair, shop) = pair_with_one_config_map().await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let (mut leader, mut standby) = two_candidates(&pair, &[LONG]).await;
    let mut released = 0;
    for round in 1..=5_i64 {
        // There is no condition to wait for: the leader is to end at any moment between two polls of the standby.
        tokio::time::sleep(Duration::from_millis(fastrand::u64(0..4000))).await;
        let start = Instant::now();
        let (status, ending) = leader.terminate().await;
        assert_eq!(status.code(), Some(0));
        // It has three seconds for that, in which a busy edge may not answer.
        let has_released = leader.log().contains("released the lease");
        assert!(
            has_released || leader.log().contains("could not release the lease"),
            "it says so"
        );
        standby.wait_for_log(BEGINS, SOON).await;
        let leading = start.elapsed();
        if has_released {
            released += 1;
            // Sooner than the Lease could have expired.
            assert!(leading < Duration::from_secs(38), "{leading:?}");
        }
        let data = json!({"v": round.to_string()});
        hub.replace(&config_map(&shop, "a", data.clone())).await;
        copy_equals(&edge, &shop, "a", &data).await;
        complain(&format!(
            "ended after {ending:?}, other leads after {leading:?}, syncs after {:?}",
            start.elapsed()
        ));
        assert_eq!(lease(&edge).await["spec"]["leaseTransitions"], json!(round));
        leader = standby;
        standby = candidate(&pair, &[LONG]);
        standby.wait_for_log(STANDBY, SOON).await;
    }
    assert!(released > 0, "it hands over at once, unless the edge does not answer");
}

#[tokio::test]
async fn a_crash_is_followed_by_a_takeover_when_the_lease_has_expired() {
    let (pair, shop) = pair_with_one_config_map().await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let (mut leader, mut standby) = two_candidates(&pair, &[SHORT]).await;
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
    is_renewed(&edge).await;
    leader.kill();
    let held = lease(&edge).await;
    let start = Instant::now();
    hub.replace(&config_map(&shop, "a", json!({"v": "1"}))).await;
    standby.wait_for_log(BEGINS, SOON).await;
    let took = start.elapsed();
    copy_equals(&edge, &shop, "a", &json!({"v": "1"})).await;
    complain(&format!("leads after {took:?}, syncs after {:?}", start.elapsed()));
    // All that the Lease lasts since its last renewal, by the clock that both have.
    let taken = lease(&edge).await;
    let time = |lease: &Value, field: &str| micros_of(lease["spec"][field].as_str().expect("it has a time"));
    let after = time(&taken, "acquireTime") - time(&held, "renewTime");
    let lasts = held["spec"]["leaseDurationSeconds"].as_u64().expect("it lasts");
    assert!(after >= lasts * 1_000_000, "taken {after} µs after the last renewal");
}

/// Such a config stopped everything for half a minute: the Lease expired, and the next leader was stopped too.
#[tokio::test]
async fn beside_the_largest_config_the_lease_is_renewed_and_heartbeats_are_written() {
    let (pair, shop) = pair_with_one_config_map().await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let (leader, standby) = two_candidates(&pair, &[SHORT, "--heartbeat-interval=1s"]).await;
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
    hub.create(&config_map(&shop, "h2", json!({}))).await;
    hub.create(&edge_sync_config("large", largest(&shop))).await;
    arrives(&edge, "v1", "configmaps", &shop, "c2").await;
    let beat = async || {
        let config = hub.get(CONFIG_API, "edgesyncconfigs", "", "large").await;
        config.unwrap_or_default()["status"]["lastSyncerHeartbeatTime"].clone()
    };
    let first = beat().await;
    is_renewed(&edge).await;
    eventually("the large config has a heartbeat", SOON, async || match beat().await {
        Value::Null => Err("none".to_owned()),
        now if now == first => Err(now.to_string()),
        _ => Ok(()),
    })
    .await;
    assert!(leads(&leader) && !leads(&standby));
    assert_eq!(count(&leader, ENDS), 0);
}

#[tokio::test]
async fn a_leader_that_was_paused_writes_nothing_when_it_goes_on() {
    let (pair, shop) = pair_with_one_config_map().await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let mut leader = other_candidate(&pair, &[SHORT, "--heartbeat-interval=1s"]).await;
    leader.wait_for_log(BEGINS, SOON).await;
    copy_equals(&edge, &shop, "a", &json!({"v": "0"})).await;
    let mut standby = candidate(&pair, &[SHORT]);
    standby.wait_for_log(STANDBY, SOON).await;

    leader.signal("STOP");
    // It will have a lot to do when it continues.
    for index in 0..20 {
        hub.create(&config_map(&shop, &format!("c{index}"), json!({"v": "1"})))
            .await;
    }
    standby.wait_for_log(BEGINS, SOON).await;
    for index in 0..20 {
        copy_equals(&edge, &shop, &format!("c{index}"), &json!({"v": "1"})).await;
    }
    for index in 0..20 {
        edge.delete("v1", "configmaps", &shop, &format!("c{index}")).await;
    }
    let marks = [pair.hub.audit_mark(), pair.edge.audit_mark()];
    leader.signal("CONT");
    leader.wait_for_log(ENDS, SOON).await;
    leader.wait_for_log(STANDBY, SOON).await;
    let period = Duration::from_secs(3);
    holds_throughout("it stands by and writes nothing", period, async || {
        let writes = |server: &Server, mark| {
            let requests = server.requests_since(SYNCER, mark);
            let mut writes = requests
                .into_iter()
                .filter(|event| event.user == "limited" && event.is_write());
            writes.next().map(|event| format!("{} {}", event.verb, event.uri))
        };
        match writes(&pair.hub, marks[0]).or_else(|| writes(&pair.edge, marks[1])) {
            Some(write) => Err(write),
            None if leads(&leader) => Err("the wrong one leads".to_owned()),
            None => Ok(()),
        }
    })
    .await;
    for index in 0..20 {
        copy_equals(&edge, &shop, &format!("c{index}"), &json!({"v": "1"})).await;
    }
    leader.kill();
    take_rights_back(&pair).await;
}

/// What user `limited` has asked for since, but for its Lease.
fn others_of_limited(server: &Server, mark: AuditMark) -> Vec<String> {
    let requests = server.requests_since(SYNCER, mark);
    let of_it = requests
        .iter()
        .filter(|event| event.user == "limited" && !is_about_the_lease(event));
    of_it.map(|event| format!("{} {}", event.verb, event.uri)).collect()
}
