//! What upsync leaves alone at the hub, and what never goes up.

use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{config_map, namespace};
use crate::support::rbac::{allow, configs, disallow, heartbeats, limited};
use crate::support::stage::{Stage, config_maps, deselect, own_group, select, stage, stock};
use crate::support::story::{
    SOON, a_while, annotation, arrives, becomes, config_map_entry, copy_equals, crd, custom_object, drop_crds, edit,
    gone, install_crd, remains, reselect, stays_absent, upsync_all,
};
use crate::support::{Syncer, holds_throughout, shared_pair};
use serde_json::{Value, json};

in_both_modes!(
    somebody_elses_object_at_the_hub_is_never_touched_and_named_once,
    an_upsynced_object_that_people_unmark_is_theirs,
    an_object_selected_both_ways_is_upsynced_only,
    copies_are_not_synced_back_to_where_they_came_from,
    system_objects_and_the_syncers_own_never_go_up,
    what_is_made_at_the_edge_and_not_selected_is_preserved,
    what_the_edges_owner_denies_does_not_go_up,
    what_the_hub_forbids_is_reported_blocks_nothing_and_goes_up_when_granted,
);

// For a named and a starred entry.
async fn somebody_elses_object_at_the_hub_is_never_touched_and_named_once(flags: Mode) {
    let pair = shared_pair().await;
    let [named, starred] = ["named", "starred"].map(|prefix| pair.namespace(prefix));
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    for shop in [&named, &starred] {
        for (side, value) in [(&hub, "theirs"), (&edge, "edge")] {
            side.create(&namespace(shop)).await;
            for name in ["a", "b"] {
                side.create(&config_map(shop, name, json!({"v": value}))).await;
            }
        }
    }
    let before = [
        hub.get("v1", "configmaps", &named, "a").await,
        hub.get("v1", "configmaps", &starred, "a").await,
    ];
    select(
        &hub,
        &json!({"upsync": [
            {"resources": ["configmaps"], "namespaces": [named], "names": ["a", "b", "proof"]},
            upsync_all("", &["configmaps"], &starred),
        ]}),
    )
    .await;
    let mut syncer = pair.syncer(flags);
    for (shop, before) in [&named, &starred].into_iter().zip(before) {
        let line = format!("object=ConfigMap/{shop}/a advice=\"delete or rename one of the two");
        syncer.wait_for_log(&line, SOON).await;
        for round in ["2", "3"] {
            edge.replace(&config_map(shop, "a", json!({"v": round}))).await;
            edge.apply_as("test", &config_map(shop, "proof", json!({"v": round})))
                .await;
            copy_equals(&hub, shop, "proof", &json!({"v": round})).await;
        }
        edge.delete("v1", "configmaps", shop, "a").await;
        remains(&hub, "v1", "configmaps", shop, "a").await;
        assert_eq!(hub.get("v1", "configmaps", shop, "a").await, before);
        assert_eq!(syncer.log().matches(&line).count(), 1);
        // People make room, for an object that is new and for one that waits.
        hub.delete("v1", "configmaps", shop, "b").await;
        edge.replace(&config_map(shop, "b", json!({"v": "new"}))).await;
        copy_equals(&hub, shop, "b", &json!({"v": "new"})).await;
        hub.delete("v1", "configmaps", shop, "a").await;
        edge.create(&config_map(shop, "a", json!({"v": "new"}))).await;
        copy_equals(&hub, shop, "a", &json!({"v": "new"})).await;
    }
}

async fn an_upsynced_object_that_people_unmark_is_theirs(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    edge.create(&namespace(&shop)).await;
    select(&hub, &json!({"upsync": [upsync_all("", &["configmaps"], &shop)]})).await;
    let mut syncer = pair.syncer(flags);
    let key = "edge.kubestellar.io/upsynced";
    let patches = [
        (
            "annotation",
            json!({"metadata": {"annotations": {key: null}}, "data": {"v": "theirs"}}),
        ),
        (
            "another",
            json!({"metadata": {"annotations": {key: "ConfigMap/x/y"}}, "data": {"v": "theirs"}}),
        ),
        (
            "both",
            json!({"metadata": {"annotations": {key: null}, "labels": {key: null}}, "data": {"v": "theirs"}}),
        ),
    ];
    for (name, patch) in patches {
        edge.create(&config_map(&shop, name, json!({"v": "1"}))).await;
        copy_equals(&hub, &shop, name, &json!({"v": "1"})).await;
        edit(&hub, &shop, name, &patch).await;
        let line = format!("object=ConfigMap/{shop}/{name} advice=\"delete or rename one of the two");
        syncer.wait_for_log(&line, SOON).await;
        edge.delete("v1", "configmaps", &shop, name).await;
        let object = remains(&hub, "v1", "configmaps", &shop, name).await;
        assert_eq!(object["data"], json!({"v": "theirs"}), "{name}");
    }
}

async fn an_object_selected_both_ways_is_upsynced_only(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    for side in [&hub, &edge] {
        side.create(&namespace(&shop)).await;
    }
    hub.create(&config_map(&shop, "down", json!({"v": "hub"}))).await;
    hub.create(&config_map(&shop, "both-at-hub", json!({"v": "hub"}))).await;
    edge.create(&config_map(&shop, "both-at-edge", json!({"v": "edge"})))
        .await;
    select(
        &hub,
        &json!({
            "namespacedObjects": [config_map_entry(&shop, &["*"])],
            "upsync": [{"resources": ["configmaps"], "namespaces": [shop], "names": ["both-at-hub", "both-at-edge"]}],
        }),
    )
    .await;
    let _syncer = pair.syncer(flags);
    copy_equals(&edge, &shop, "down", &json!({"v": "hub"})).await;
    copy_equals(&hub, &shop, "both-at-edge", &json!({"v": "edge"})).await;
    edit(&hub, &shop, "both-at-edge", &json!({"data": {"v": "hub"}})).await;
    copy_equals(&hub, &shop, "both-at-edge", &json!({"v": "edge"})).await;
    stays_absent(&edge, "v1", "configmaps", &shop, "both-at-hub").await;
    let object = remains(&edge, "v1", "configmaps", &shop, "both-at-edge").await;
    assert_eq!(object["data"], json!({"v": "edge"}));
    assert_eq!(annotation(&object, "downsynced"), Value::Null);
}

async fn copies_are_not_synced_back_to_where_they_came_from(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["down"], &json!({"v": "1"})).await;
    select(&hub, &config_maps(&shop, &["down"])).await;
    let _syncer = pair.syncer(flags);
    copy_equals(&edge, &shop, "down", &json!({"v": "1"})).await;
    edge.create(&config_map(&shop, "up", json!({"v": "1"}))).await;
    // From now on everything goes up.
    let up = json!([upsync_all("", &["configmaps"], &shop)]);
    reselect(&hub, &json!({"namespacedObjects": [], "upsync": up})).await;
    copy_equals(&hub, &shop, "up", &json!({"v": "1"})).await;
    edit(&edge, &shop, "down", &json!({"data": {"v": "edge"}})).await;
    let origin = remains(&hub, "v1", "configmaps", &shop, "down").await;
    assert_eq!(origin["data"], json!({"v": "1"}));
    assert_eq!(annotation(&origin, "upsynced"), Value::Null);
    // And now everything goes down.
    reselect(
        &hub,
        &json!({"namespacedObjects": [config_map_entry(&shop, &["*"])], "upsync": []}),
    )
    .await;
    copy_equals(&edge, &shop, "down", &json!({"v": "1"})).await;
    let origin = remains(&edge, "v1", "configmaps", &shop, "up").await;
    assert_eq!(annotation(&origin, "downsynced"), Value::Null);
}

async fn system_objects_and_the_syncers_own_never_go_up(flags: Mode) {
    let pair = shared_pair().await;
    let [shop, own] = ["shop", "own"].map(|prefix| pair.namespace(prefix));
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let secret = |name: &str, kind: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "type": kind, "stringData": {"token": "x"},
            "metadata": {"namespace": shop, "name": name, "annotations": {"kubernetes.io/service-account.name": "default"}}})
    };
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"namespace": shop, "name": "e"},
        "involvedObject": {"namespace": shop}, "reason": "R", "type": "Normal"});
    let lease =
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"namespace": shop, "name": "l"}});
    let account = |name: &str| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": shop, "name": name}});
    for space in [&shop, &own] {
        stock(&edge, space, &["ordinary"], &json!({})).await;
        edge.create(&config_map(space, "kube-root-ca.crt", json!({"ca.crt": "edge"})))
            .await;
    }
    let others = [
        account("default"),
        account("ordinary"),
        secret("ordinary", "Opaque"),
        secret("default-token", "kubernetes.io/service-account-token"),
        secret("bootstrap", "bootstrap.kubernetes.io/token"),
        event,
        lease,
    ];
    for object in others {
        edge.create(&object).await;
    }
    let everywhere = |group: &str, resources: &[&str]| json!({"apiGroup": group, "resources": resources, "namespaces": ["*"], "names": ["*"]});
    select(
        &hub,
        &json!({"upsync": [
            everywhere("", &["configmaps", "serviceaccounts", "secrets", "events"]),
            everywhere("events.k8s.io", &["*"]),
            everywhere("coordination.k8s.io", &["*"]),
        ]}),
    )
    .await;
    let _syncer = Syncer::start_with_env(
        &pair.hub.kubeconfig(),
        &pair.edge.kubeconfig(),
        flags,
        &[("NAMESPACE", &own)],
    );
    for plural in ["configmaps", "serviceaccounts", "secrets"] {
        arrives(&hub, "v1", plural, &shop, "ordinary").await;
    }
    // Its record is there, in its own namespace.
    arrives(&edge, "v1", "configmaps", &own, "edge-syncer-types-test").await;
    holds_throughout("nothing else goes up", a_while(), async || {
        let mut found = Vec::new();
        for (version, plural) in [
            ("v1", "configmaps"),
            ("v1", "serviceaccounts"),
            ("v1", "secrets"),
            ("v1", "events"),
            ("coordination.k8s.io/v1", "leases"),
        ] {
            let objects = hub.try_list(version, plural, "", "edge.kubestellar.io/upsynced=true");
            let objects = objects.await.map_err(|error| error.to_string())?;
            let name = |object: &Value| {
                let metadata = &object["metadata"];
                format!("{plural} {} {}", metadata["namespace"], metadata["name"])
            };
            found.extend(
                objects
                    .iter()
                    .map(name)
                    .filter(|name| name.contains(&*shop) || name.contains(&*own) || name.contains("edge-syncer")),
            );
        }
        let ordinary = |name: &&String| name.contains("ordinary") && name.contains(&*shop);
        if found.iter().all(|name| ordinary(&name)) {
            Ok(())
        } else {
            Err(format!("{found:?}"))
        }
    })
    .await;
    assert_eq!(hub.get("v1", "namespaces", "", &own).await, None);
    deselect(&hub).await;
}

/// A webhook configuration that concerns nothing there is.
fn webhook(name: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{
            "name": "it.example.org", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore",
            "clientConfig": {"url": "https://127.0.0.1:1/nobody"},
            "rules": [{"apiGroups": ["nothing.example.org"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"]}],
        }],
    })
}

async fn what_is_made_at_the_edge_and_not_selected_is_preserved(flags: Mode) {
    const WEBHOOKS: [&str; 2] = ["admissionregistration.k8s.io/v1", "validatingwebhookconfigurations"];
    let pair = shared_pair().await;
    let [shop, other] = ["shop", "other"].map(|prefix| pair.namespace(prefix));
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let (group, version) = own_group(&shop);
    install_crd(&[&hub, &edge], &crd(&group, "reports", true)).await;
    for space in [&shop, &other] {
        edge.create(&namespace(space)).await;
    }
    edge.create(&custom_object(&group, "reports", &shop, "selected", 1))
        .await;
    let [engines, hubs] = ["engine", "hub"].map(|name| format!("{name}-{shop}"));
    let before = [
        edge.create(&custom_object(&group, "reports", &other, "unselected", 1))
            .await,
        edge.create(&webhook(&engines)).await,
    ];
    hub.create(&webhook(&hubs)).await;
    // All webhook configurations of the hub go down, which says nothing about those that the edge has.
    let mut spec = json!({"clusterScope": [
        {"group": "admissionregistration.k8s.io", "resource": WEBHOOKS[1], "apiVersion": "v1"},
    ]});
    spec["upsync"] = json!([upsync_all(&group, &["reports"], &shop)]);
    select(&hub, &spec).await;
    let mut syncer = pair.syncer(flags);
    arrives(&edge, WEBHOOKS[0], WEBHOOKS[1], "", &hubs).await;
    let selected = [version.as_str(), "reports", &shop, "selected"];
    arrives(&hub, &version, "reports", &shop, "selected").await;
    let size = json!({"spec": {"size": 2}});
    edge.merge_patch(&version, "reports", &shop, "selected", &size).await;
    becomes(&hub, selected, "follows", |report| report["spec"] == size["spec"]).await;
    // Also when a syncer meets them for the first time, and when what is selected goes.
    syncer.kill();
    let _syncer = pair.syncer(flags);
    edge.delete(&version, "reports", &shop, "selected").await;
    gone(&hub, &version, "reports", &shop, "selected").await;
    hub.delete(WEBHOOKS[0], WEBHOOKS[1], "", &hubs).await;
    gone(&edge, WEBHOOKS[0], WEBHOOKS[1], "", &hubs).await;
    stays_absent(&hub, &version, "reports", &other, "unselected").await;
    assert_eq!(hub.get(WEBHOOKS[0], WEBHOOKS[1], "", &engines).await, None);
    assert_eq!(hub.get("v1", "namespaces", "", &other).await, None);
    for object in before {
        // Its version too, which any write would change.
        assert_eq!(edge.reread(&object).await, Some(object));
    }
    edge.delete(WEBHOOKS[0], WEBHOOKS[1], "", &engines).await;
    drop_crds(&[&hub, &edge], &[&format!("reports.{group}")]).await;
}

async fn what_the_edges_owner_denies_does_not_go_up(flags: Mode) {
    let pair = shared_pair().await;
    let [shop, secret] = ["shop", "secret"].map(|prefix| pair.namespace(prefix));
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    for space in [&shop, &secret] {
        stock(&edge, space, &["a"], &json!({})).await;
        edge.create(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": space, "name": "s"}}))
            .await;
    }
    select(
        &hub,
        &json!({"upsync": [
            upsync_all("", &["configmaps", "secrets"], &shop),
            upsync_all("", &["configmaps"], &secret),
        ]}),
    )
    .await;
    let mut syncer = pair.syncer(&[&["--deny=secrets", "--deny-namespace=secret-*"], flags].concat());
    arrives(&hub, "v1", "configmaps", &shop, "a").await;
    for rule in ["--deny secrets", "--deny-namespace secret-*"] {
        syncer.wait_for_log(rule, SOON).await;
    }
    stays_absent(&hub, "v1", "secrets", &shop, "s").await;
    assert_eq!(hub.get("v1", "namespaces", "", &secret).await, None);
}

async fn what_the_hub_forbids_is_reported_blocks_nothing_and_goes_up_when_granted(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let all = json!(["get", "list", "watch", "create", "patch", "delete"]);
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": shop, "name": "s"}});
    edge.create(&namespace(&shop)).await;
    edge.create(&secret).await;
    edge.create(&config_map(&shop, "a", json!({"v": "1"}))).await;
    select(
        &hub,
        &json!({"upsync": [upsync_all("", &["configmaps", "secrets"], &shop)]}),
    )
    .await;
    let rules = json!([
        configs(&["get", "list", "watch"]),
            heartbeats(),
        {"apiGroups": [""], "resources": ["namespaces", "configmaps"], "verbs": all},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]},
    ]);
    allow(&hub, &shop, rules).await;
    let mut syncer = Syncer::start(&limited(&pair.hub), &pair.edge.kubeconfig(), flags);
    copy_equals(&hub, &shop, "a", &json!({"v": "1"})).await;
    let line = "cannot create resource \\\"secrets\\\"";
    syncer.wait_for_log(line, SOON).await;
    edge.replace(&config_map(&shop, "a", json!({"v": "2"}))).await;
    copy_equals(&hub, &shop, "a", &json!({"v": "2"})).await;
    let secrets = format!("{shop}-secrets");
    let rules = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": all}]);
    allow(&hub, &secrets, rules).await;
    arrives(&hub, "v1", "secrets", &shop, "s").await;
    let log = syncer.log();
    // A server that knows the binding and not yet the role says so, which is another reason.
    let refused = log
        .lines()
        .filter(|reported| reported.contains(line) && !reported.contains("not found"));
    assert_eq!(refused.count(), 1, "{log}");
    syncer.terminate().await;
    for name in [&shop, &secrets] {
        disallow(&hub, name).await;
    }
}
