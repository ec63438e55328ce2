//! How much is said of what goes wrong: enough to see it, and never more the more there is.

use std::time::Duration;

use serde_json::json;

use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::namespace;
use crate::support::stage::{Stage, all_of, own_group, select, stage};
use crate::support::story::{SOON, arrives, becomes, crd, custom_object, drop_crds, install_crd};
use crate::support::{SYNCER, eventually};

in_both_modes!(
    statuses_that_fail_beside_others_that_get_through_have_a_line,
    many_wrong_entries_are_a_few_lines_and_a_number,
);

async fn statuses_that_fail_beside_others_that_get_through_have_a_line(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, version) = own_group(&shop);
    let mut strict = crd(&group, "gauges", true);
    let level = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"level": {"type": "integer", "maximum": 10}}});
    strict["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = json!({"status": level});
    install_crd(&[&hub], &strict).await;
    install_crd(&[&edge], &crd(&group, "gauges", true)).await;
    hub.create(&namespace(&shop)).await;
    let bad: Vec<String> = ('a'..='f').map(|letter| format!("bad-{letter}")).collect();
    for name in bad.iter().map(String::as_str).chain(["good"]) {
        hub.create(&custom_object(&group, "gauges", &shop, name, 1)).await;
    }
    select(&hub, &all_of(&shop, &[(&group, "gauges")])).await;
    let mut syncer = pair.syncer(&[flags, &["--status-interval=0s"]].concat());
    let mark = pair.hub.audit_mark();
    for name in bad.iter().map(String::as_str).chain(["good"]) {
        arrives(&edge, &version, "gauges", &shop, name).await;
    }
    for name in &bad {
        edge.patch_status(&version, "gauges", &shop, name, &json!({"level": 99}))
            .await;
    }
    let refused = || {
        let requests = pair.hub.requests_since(SYNCER, mark).into_iter();
        requests
            .filter(|request| request.verb == "patch" && request.code == 422)
            .count()
    };
    let mut round = 0;
    eventually(
        "statuses are refused again and again, and others get through",
        SOON * 3,
        async || {
            round += 1;
            edge.patch_status(&version, "gauges", &shop, "good", &json!({"level": 1, "round": round}))
                .await;
            becomes(&hub, [&version, "gauges", &shop, "good"], "has the status", |object| {
                object["status"]["round"] == json!(round)
            })
            .await;
            tokio::time::sleep(Duration::from_millis(200)).await;
            let refused = refused();
            if refused >= 4 * bad.len() { Ok(()) } else { Err(refused) }
        },
    )
    .await;
    let said = |syncer: &crate::support::Syncer| {
        syncer
            .log()
            .matches(&format!("side=hub resource=gauges.{group}"))
            .count()
    };
    assert_eq!(said(&syncer), 1, "{}", syncer.log());
    for name in &bad {
        edge.patch_status(&version, "gauges", &shop, name, &json!({"level": 9}))
            .await;
    }
    let works = format!("reason=Recovered msg=\"works again\" side=hub resource=gauges.{group}");
    syncer.wait_for_log(&works, SOON).await;
    assert_eq!(said(&syncer), 2, "{}", syncer.log());
    drop_crds(&[&hub, &edge], &[&format!("gauges.{group}")]).await;
}

async fn many_wrong_entries_are_a_few_lines_and_a_number(flags: Mode) {
    let Stage { pair, hub, .. } = stage().await;
    let entry = |index: usize| json!({"apiGroup": "", "resources": [format!("pods/part{index}")], "names": ["*"]});
    let entries: Vec<_> = (0..1_000).map(entry).collect();
    select(&hub, &json!({"upsync": entries})).await;
    let mut syncer = pair.syncer(flags);
    let sum = "more parts of a config cannot be followed\" config=SyncerConfig//the-one more=995";
    syncer.wait_for_log(sum, SOON).await;
    let lines = syncer.log().matches("is a subresource and cannot be synced").count();
    assert_eq!(lines, 5, "{}", syncer.log());
}
