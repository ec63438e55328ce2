//! Two syncers without an election.

use std::convert::Infallible;
use std::time::Duration;

use serde_json::{Value, json};

use crate::candidates::pair_with_one_config_map;
use crate::support::objects::config_map;
use crate::support::process::complain;
use crate::support::stage::{numbered, stock};
use crate::support::story::{SOON, annotation, arrives, copy_equals, edit, gone, uids};
use crate::support::{AuditEvent, SYNCER, comes_to_rest};

#[tokio::test]
async fn two_without_an_election_converge_and_do_not_fight() {
    const COUNT: usize = 20;
    let (pair, shop) = pair_with_one_config_map().await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let names = numbered(COUNT);
    for name in &names {
        hub.create(&config_map(&shop, name, json!({"v": "0"}))).await;
    }
    // What was there before, and is nobody's.
    stock(&edge, &shop, &["own"], &json!({"mine": "yes"})).await;
    let mark = pair.edge.audit_mark();
    let hub_mark = pair.hub.audit_mark();
    let _both = [(); 2].map(|()| pair.syncer(&["--heartbeat-interval=0s"]));
    let before = uids(&edge, &shop, &names, &json!({"v": "0"})).await;
    for round in 1..=5 {
        let data = json!({"v": round.to_string()});
        for name in &names {
            hub.replace(&config_map(&shop, name, data.clone())).await;
        }
        // Drift, which both see.
        edit(&edge, &shop, "c3", &json!({"data": {"v": "drift"}})).await;
        uids(&edge, &shop, &names, &data).await;
    }
    // Deleted at the edge: created again. Deleted at the hub: gone, and created anew, a new object.
    edge.delete("v1", "configmaps", &shop, "c4").await;
    hub.delete("v1", "configmaps", &shop, "c5").await;
    gone(&edge, "v1", "configmaps", &shop, "c5").await;
    copy_equals(&edge, &shop, "c4", &json!({"v": "5"})).await;
    hub.create(&config_map(&shop, "c5", json!({"v": "new"}))).await;
    copy_equals(&edge, &shop, "c5", &json!({"v": "new"})).await;

    let writes = || {
        let requests = pair.edge.requests_since(SYNCER, mark);
        requests.into_iter().filter(AuditEvent::is_write).collect::<Vec<_>>()
    };
    comes_to_rest("nobody writes", Duration::from_secs(5), SOON, async || {
        Ok::<_, Infallible>(writes().len())
    })
    .await;
    let all = writes();
    complain(&format!("{} writes at the edge by two syncers", all.len()));
    // Twice what one would write: each object at the start and in each round, each drift once more, and what was
    // deleted; and a few for the namespace, the record and conflicts.
    let one = (COUNT + 1) + 5 * (COUNT + 1) + 5;
    assert!(all.len() <= 2 * one + 20, "{} writes: {all:#?}", all.len());
    for (name, uid) in names.iter().zip(&before) {
        let copy = arrives(&edge, "v1", "configmaps", &shop, name).await;
        assert_eq!(annotation(&copy, "adopted"), Value::Null, "{name} is ours");
        let same = copy["metadata"]["uid"] == *uid;
        assert_eq!(same, !["c4", "c5"].contains(&name.as_str()), "{name} was created again");
    }
    let own = edge.get("v1", "configmaps", &shop, "own").await.expect("it stays");
    assert_eq!(own["data"], json!({"mine": "yes"}));
    let hub_writes = pair.hub.requests_since(SYNCER, hub_mark);
    assert_eq!(hub_writes.iter().filter(|event| event.is_write()).count(), 0);
}
