//! What the edge's owner has chosen with the syncer's flags.

use serde_json::{Value, json};

use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{config_map, namespace};
use crate::support::process::Folder;
use crate::support::stage::{Stage, all_of, config_maps, select, stage, stock};
use crate::support::story::{SOON, annotation, arrives, becomes, copy_equals, gone, remains, upsync_all};
use crate::support::{AuditMark, PairLease, SYNCER};

in_both_modes!(
    a_denied_type_costs_no_request_and_its_copies_stay_as_they_are_until_the_rule_goes,
    an_adopted_object_goes_with_its_hub_object,
    fields_are_reverted_from_the_managers_that_are_named_and_from_no_others,
);

fn secret(space: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": space, "name": name}})
}

/// The syncer's requests about Secrets at either side since then, and how many it has made at all.
fn requests(pair: &PairLease, marks: [AuditMark; 2]) -> (Vec<String>, usize) {
    let [at_hub, at_edge] = marks;
    let mut all = pair.hub.requests_since(SYNCER, at_hub);
    all.extend(pair.edge.requests_since(SYNCER, at_edge));
    let about = all.iter().filter(|request| request.uri.contains("/secrets"));
    let about = about
        .map(|request| format!("{} {}", request.verb, request.uri))
        .collect();
    (about, all.len())
}

async fn a_denied_type_costs_no_request_and_its_copies_stay_as_they_are_until_the_rule_goes(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let field = pair.namespace("field");
    stock(&hub, &shop, &["a"], &json!({"v": "1"})).await;
    edge.create(&namespace(&field)).await;
    hub.create(&secret(&shop, "down")).await;
    edge.create(&secret(&field, "up")).await;
    let mut spec = all_of(&shop, &[("", "configmaps"), ("", "secrets")]);
    spec["upsync"] = json!([upsync_all("", &["secrets"], &field)]);
    select(&hub, &spec).await;
    let mut syncer = pair.syncer(flags);
    arrives(&edge, "v1", "secrets", &shop, "down").await;
    arrives(&hub, "v1", "secrets", &field, "up").await;
    copy_equals(&edge, &shop, "a", &json!({"v": "1"})).await;
    syncer.terminate().await;

    let folder = Folder::create("bounds");
    folder.write("bounds", "# What is whose.\ndeny secrets # theirs\n");
    let file = format!("--filter-file={}", folder.path().join("bounds").display());
    let marks = [pair.hub.audit_mark(), pair.edge.audit_mark()];
    let mut with_file = flags.to_vec();
    with_file.push(&file);
    let mut syncer = pair.syncer(&with_file);
    syncer.wait_for_log("reason=Denied", SOON).await;
    hub.delete("v1", "secrets", &shop, "down").await;
    edge.delete("v1", "secrets", &field, "up").await;
    hub.create(&secret(&shop, "new")).await;
    hub.replace(&config_map(&shop, "a", json!({"v": "2"}))).await;
    copy_equals(&edge, &shop, "a", &json!({"v": "2"})).await;
    remains(&edge, "v1", "secrets", &shop, "down").await;
    remains(&hub, "v1", "secrets", &field, "up").await;
    let (about, all) = requests(&pair, marks);
    assert!(all > 0, "the audit log has the syncer's requests");
    assert!(about.is_empty(), "{about:?}");
    let log = syncer.log();
    let said = log.lines().filter(|line| line.contains("reason=Denied"));
    let said: Vec<&str> = said.collect();
    assert!(
        said.len() == 1 && said[0].contains("resource=secrets rule=\"--deny secrets\""),
        "{said:?}"
    );
    syncer.terminate().await;

    let _syncer = pair.syncer(flags);
    arrives(&edge, "v1", "secrets", &shop, "new").await;
    gone(&edge, "v1", "secrets", &shop, "down").await;
    gone(&hub, "v1", "secrets", &field, "up").await;
}

async fn an_adopted_object_goes_with_its_hub_object(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&edge, &shop, &["a"], &json!({"v": "theirs"})).await;
    stock(&hub, &shop, &["a"], &json!({"v": "1"})).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let _syncer = pair.syncer(&[flags, &["--delete-adopted"]].concat());
    let copy = copy_equals(&edge, &shop, "a", &json!({"v": "1"})).await;
    assert_eq!(annotation(&copy, "adopted"), json!("true"));
    hub.delete("v1", "configmaps", &shop, "a").await;
    gone(&edge, "v1", "configmaps", &shop, "a").await;
}

async fn fields_are_reverted_from_the_managers_that_are_named_and_from_no_others(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a"], &json!({"v": "1"})).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let _syncer = pair.syncer(&[flags, &["--revert-changes-from=argocd-*,helm"]].concat());
    copy_equals(&edge, &shop, "a", &json!({"v": "1"})).await;
    let adding = |key: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": shop, "name": "a"}, "data": {key: "1"}});
    edge.apply_as("kubectl-edit", &adding("person")).await;
    for manager in ["argocd-controller", "helm"] {
        edge.apply_as(manager, &adding("tool")).await;
        copy_equals(&edge, &shop, "a", &json!({"v": "1", "person": "1"})).await;
    }
    hub.replace(&config_map(&shop, "a", json!({"v": "2"}))).await;
    becomes(&edge, ["v1", "configmaps", &shop, "a"], "has what is theirs", |copy| {
        copy["data"] == json!({"v": "2", "person": "1"})
    })
    .await;
}
