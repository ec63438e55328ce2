//! What an edit of a config costs: what it adds, and not what there is.

use serde_json::{Value, json};

use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::config_map;
use crate::support::stage::{Stage, config_maps, numbered, select, stage, stock};
use crate::support::story::{SOON, annotation, arrives, copy_equals, gone, remains, reselect, stays_absent};
use crate::support::{AuditEvent, SYNCER};

in_both_modes!(what_a_config_adds_by_name_is_read_by_name);

/// True for a list of `ConfigMap`s whole, and for a watch that begins with one; not for a look at one by its name.
fn lists_all(request: &AuditEvent) -> bool {
    let begins_with_list = request.verb == "watch" && request.uri.contains("sendInitialEvents=true");
    (request.verb == "list" || begins_with_list)
        && request.uri.contains("/configmaps")
        && !request.uri.contains("fieldSelector=metadata.name")
}

async fn what_a_config_adds_by_name_is_read_by_name(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &numbered(200), &json!({"v": "1"})).await;
    select(&hub, &config_maps(&shop, &["c0", "c1"])).await;
    let mut syncer = pair.syncer(flags);
    for name in ["c0", "c1"] {
        copy_equals(&edge, &shop, name, &json!({"v": "1"})).await;
    }
    // The first list has further pages.
    syncer.wait_for_log("reason=InSync", SOON).await;
    // At the edge before it is selected.
    edge.create(&config_map(&shop, "c3", json!({"v": "theirs"}))).await;
    let mark = pair.hub.audit_mark();
    reselect(&hub, &config_maps(&shop, &["c0", "c1", "c2", "c3", "later", "c4"])).await;
    for name in ["c2", "c3", "c4"] {
        let copy = copy_equals(&edge, &shop, name, &json!({"v": "1"})).await;
        let adopted = if name == "c3" { json!("true") } else { Value::Null };
        assert_eq!(annotation(&copy, "adopted"), adopted, "{name}");
    }
    // What comes later is reported by the watch that runs on.
    hub.create(&config_map(&shop, "later", json!({"v": "1"}))).await;
    copy_equals(&edge, &shop, "later", &json!({"v": "1"})).await;
    stays_absent(&edge, "v1", "configmaps", &shop, "c5").await;
    // A name that goes is followed no more, and its copy catches up when it comes back, or goes with its origin.
    reselect(&hub, &config_maps(&shop, &["c0", "c1", "c2", "c6", "later"])).await;
    copy_equals(&edge, &shop, "c6", &json!({"v": "1"})).await;
    hub.replace(&config_map(&shop, "c4", json!({"v": "2"}))).await;
    hub.replace(&config_map(&shop, "later", json!({"v": "2"}))).await;
    copy_equals(&edge, &shop, "later", &json!({"v": "2"})).await;
    let copy = remains(&edge, "v1", "configmaps", &shop, "c4").await;
    assert_eq!(copy["data"], json!({"v": "1"}));
    reselect(&hub, &config_maps(&shop, &["c0", "c1", "c2", "c4", "c6", "later"])).await;
    copy_equals(&edge, &shop, "c4", &json!({"v": "2"})).await;
    hub.delete("v1", "configmaps", &shop, "c4").await;
    gone(&edge, "v1", "configmaps", &shop, "c4").await;
    if flags.is_empty() {
        let lists: Vec<_> = pair
            .hub
            .requests_since(SYNCER, mark)
            .into_iter()
            .filter(lists_all)
            .collect();
        assert!(lists.is_empty(), "{lists:#?}");
    }
    // A whole namespace is listed.
    reselect(&hub, &config_maps(&shop, &["*"])).await;
    for name in numbered(200).iter().filter(|name| *name != "c4") {
        arrives(&edge, "v1", "configmaps", &shop, name).await;
    }
}
