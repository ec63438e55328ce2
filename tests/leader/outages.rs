//! Elections while the edge, which has the Lease, is away.

use std::time::Duration;

use serde_json::json;

use crate::candidates::{BEGINS, candidate, count, leads, pair_with_one_config_map, two_candidates};
use crate::support::objects::config_map;
use crate::support::process::complain;
use crate::support::story::{SOON, copy_equals};
use crate::support::{Syncer, eventually};

#[tokio::test]
async fn a_restart_of_the_edge_leaves_one_leader() {
    let (mut pair, shop) = pair_with_one_config_map().await;
    let (leader, standby) = two_candidates(&pair, &[]).await;
    let mut both = [leader, standby];
    for round in [1, 2] {
        pair.edge.stop_apiserver();
        if round == 1 {
            // Short enough for the leader to stay: nothing is to happen that could be waited for.
            tokio::time::sleep(Duration::from_secs(1)).await;
        } else {
            // Long enough for it to stop.
            eventually("nobody leads", SOON, async || {
                match both.iter().find(|one| leads(one)) {
                    None => Ok(()),
                    Some(_) => Err("one leads"),
                }
            })
            .await;
        }
        pair.edge.start_apiserver().await;
        let data = json!({"v": round.to_string()});
        pair.hub.objects().replace(&config_map(&shop, "a", data.clone())).await;
        copy_equals(&pair.edge.objects(), &shop, "a", &data).await;
        eventually("one leads", SOON, async || {
            match both.iter().filter(|one| leads(one)).count() {
                1 => Ok(()),
                count => Err(format!("{count} lead")),
            }
        })
        .await;
        assert!(both.iter_mut().all(Syncer::is_running));
    }
    let begun: usize = both.iter().map(|one| count(one, BEGINS)).sum();
    complain(&format!("the lead began {begun} times"));
    // At the start, and after each outage, of which a server that is slow to start may make several.
    assert!(begun <= 9, "{begun}");
}

#[tokio::test]
async fn it_waits_for_an_edge_that_is_away_at_the_start() {
    let (mut pair, shop) = pair_with_one_config_map().await;
    pair.edge.stop_apiserver();
    let mut syncer = candidate(&pair, &[]);
    syncer
        .wait_for_log("the lease cannot be used, will try again", SOON)
        .await;
    // It ends at once all the same when it is asked to.
    let mut other = candidate(&pair, &[]);
    other
        .wait_for_log("the lease cannot be used, will try again", SOON)
        .await;
    let (status, took) = other.terminate().await;
    assert_eq!(status.code(), Some(0));
    // Less than any time limit that it could wait for.
    assert!(took < Duration::from_secs(25), "{took:?}");
    pair.edge.start_apiserver().await;
    syncer.wait_for_log(BEGINS, SOON).await;
    copy_equals(&pair.edge.objects(), &shop, "a", &json!({"v": "0"})).await;
    // A server that starts may be late with an answer, which is another reason.
    let log = syncer.log();
    let refused = |line: &&str| line.contains("the lease cannot be used") && line.contains("Connection refused");
    assert!((1..=2).contains(&log.lines().filter(refused).count()), "{log}");
}
