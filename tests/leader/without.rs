//! Two syncers without an election.

use std::convert::Infallible;
use std::time::Duration;

use serde_json::{Value, json};

use crate::candidates::pair_with_one_config_map;
use crate::support::kubeconfig::base64;
use crate::support::objects::{config_map, secret};
use crate::support::process::complain;
use crate::support::stage::{all_of, numbered, stock};
use crate::support::statuses::{deployment, returns, web};
use crate::support::story::{SOON, annotation, arrives, becomes, copy_equals, edit, gone, reselect, uids, upsync_all};
use crate::support::{AuditEvent, AuditMark, Objects, SYNCER, Server, comes_to_rest};

/// Waits until nobody has written to a server for a while, and gives what the syncers have written there since a mark.
async fn writes_idle(server: &Server, mark: AuditMark) -> Vec<AuditEvent> {
    comes_to_rest("nobody writes", Duration::from_secs(5), SOON, async || {
        let mut writes = server.requests_since(SYNCER, mark);
        // Events have a bound of their own.
        writes.retain(|event| event.is_write() && !event.uri.starts_with("/apis/events.k8s.io/"));
        Ok::<_, Infallible>(writes)
    })
    .await
}

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
    // Deleted at the edge: created again. Deleted at the hub: gone, and created again, a new object.
    edge.delete("v1", "configmaps", &shop, "c4").await;
    hub.delete("v1", "configmaps", &shop, "c5").await;
    gone(&edge, "v1", "configmaps", &shop, "c5").await;
    copy_equals(&edge, &shop, "c4", &json!({"v": "5"})).await;
    hub.create(&config_map(&shop, "c5", json!({"v": "new"}))).await;
    copy_equals(&edge, &shop, "c5", &json!({"v": "new"})).await;

    let mut all = writes_idle(&pair.edge, mark).await;
    // One that holds for a version which the other has just changed writes nothing.
    all.retain(|event| event.code != 409);
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

/// Waits until Secrets at the hub hold a value, and gives their uids.
async fn have_come_up(hub: &Objects, shop: &str, names: &[String], value: &str) -> Vec<Value> {
    let data = json!({"v": base64(value)});
    let mut uids = Vec::new();
    for name in names {
        let at = ["v1", "secrets", shop, name];
        let copy = becomes(hub, at, &format!("holds {value}"), |copy| copy["data"] == data).await;
        uids.push(copy["metadata"]["uid"].clone());
    }
    uids
}

/// Changes Secrets and a status at the edge, and waits until they are at the hub, five times.
async fn five_rounds_up(hub: &Objects, edge: &Objects, shop: &str, names: &[String]) {
    for round in 1..=5 {
        let value = round.to_string();
        for name in names {
            edge.replace(&secret(shop, name, &value)).await;
        }
        let status = json!({"observedGeneration": round});
        edge.patch_status("apps/v1", "deployments", shop, "web", &status).await;
        // Drift, which both see.
        let drift = json!({"data": {"v": base64("drift")}});
        hub.merge_patch("v1", "secrets", shop, "c3", &drift).await;
        have_come_up(hub, shop, names, &value).await;
        returns(hub, web(shop), &status).await;
    }
}

#[tokio::test]
async fn two_without_an_election_bring_up_what_is_selected_and_return_status() {
    const COUNT: usize = 10;
    let (pair, shop) = pair_with_one_config_map().await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let names = numbered(COUNT);
    stock(&edge, &shop, &["own"], &json!({"mine": "yes"})).await;
    for name in &names {
        edge.create(&secret(&shop, name, "0")).await;
    }
    hub.create(&deployment(&shop, "web:1")).await;
    let mut spec = all_of(&shop, &[("", "configmaps"), ("apps", "deployments")]);
    spec["upsync"] = json!([upsync_all("", &["secrets"], &shop)]);
    reselect(&hub, &spec).await;
    let marks = [pair.hub.audit_mark(), pair.edge.audit_mark()];
    let _both = [(); 2].map(|()| pair.syncer(&["--heartbeat-interval=0s"]));
    let before = have_come_up(&hub, &shop, &names, "0").await;
    let web_before = arrives(&edge, "apps/v1", "deployments", &shop, "web").await;
    five_rounds_up(&hub, &edge, &shop, &names).await;
    // Deleted at the hub: comes up again. Deleted at the edge: gone, and created again, a new object.
    hub.delete("v1", "secrets", &shop, "c4").await;
    edge.delete("v1", "secrets", &shop, "c5").await;
    gone(&hub, "v1", "secrets", &shop, "c5").await;
    have_come_up(&hub, &shop, &names[4..5], "5").await;
    edge.create(&secret(&shop, "c5", "5")).await;
    // Deleted at the hub, which is where it is at home.
    hub.delete("v1", "configmaps", &shop, "a").await;
    gone(&edge, "v1", "configmaps", &shop, "a").await;

    let at_hub = writes_idle(&pair.hub, marks[0]).await;
    let at_edge = writes_idle(&pair.edge, marks[1]).await;
    let after = have_come_up(&hub, &shop, &names, "5").await;
    for (name, uids) in names.iter().zip(before.iter().zip(&after)) {
        let again = ["c4", "c5"].contains(&name.as_str());
        assert_eq!(uids.0 == uids.1, !again, "{name} was created again");
        assert!(
            edge.get("v1", "secrets", &shop, name).await.is_some(),
            "{name} was deleted"
        );
    }
    let web_after = arrives(&edge, "apps/v1", "deployments", &shop, "web").await;
    assert_eq!(web_after["metadata"]["uid"], web_before["metadata"]["uid"]);
    returns(&hub, web(&shop), &json!({"observedGeneration": 5})).await;
    let own = edge.get("v1", "configmaps", &shop, "own").await.expect("it stays");
    assert_eq!(own["data"], json!({"mine": "yes"}));
    complain(&format!(
        "{} writes at the hub by two syncers, {} at the edge",
        at_hub.len(),
        at_edge.len()
    ));
    // Twice what one would write: each object at the start, taken over and in each round, each drift once more, each
    // status, and what was deleted; and a few for the namespaces and the record. Of two that write the same thing at the
    // same time, one may be refused and look again.
    let one = 2 * COUNT + 5 * (COUNT + 2) + 5;
    let (taken, refused): (Vec<_>, Vec<_>) = at_hub.iter().partition(|event| event.code < 300);
    assert!(taken.len() <= 2 * one + 20, "{} writes: {taken:#?}", taken.len());
    assert!(refused.len() <= taken.len(), "{} refused: {refused:#?}", refused.len());
    assert!(at_edge.len() <= 20, "{} writes: {at_edge:#?}", at_edge.len());
}
