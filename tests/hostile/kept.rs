//! What each API server keeps for itself, and what is never synced, between real API servers.

use serde_json::{Value, json};

use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::namespace;
use crate::support::stage::{
    Stage, all_of, cluster_objects, config_map_ref, namespace_ref, own_group, select, select_by_kind, stage, stock,
};
use crate::support::story::{
    SOON, a_while, arrives, becomes, config_map_entry, copy_equals, crd_without_status, drop_crds, gone, install_crd,
    remains, stays_absent,
};
use crate::support::{Objects, holds_throughout};

in_both_modes!(
    what_each_api_server_keeps_for_itself_stays_as_it_is_there,
    what_each_api_server_keeps_for_itself_does_not_go_up,
    what_an_earlier_version_has_synced_of_it_is_released,
    what_is_named_comes_if_a_flag_allows_it,
    no_conversion_leads_to_what_is_never_synced,
    a_credential_that_has_the_name_of_a_copy_stays_as_it_is,
    a_copy_of_what_was_recreated_as_never_synced_is_deleted,
);

const RBAC: &str = "rbac.authorization.k8s.io";
const FLOWS: &str = "flowcontrol.apiserver.k8s.io";
/// Group, plural, namespace and name of what two API servers have before anybody has done anything.
const KEPT: [(&str, &str, &str, &str); 11] = [
    ("", "services", "default", "kubernetes"),
    ("", "endpoints", "default", "kubernetes"),
    ("discovery.k8s.io", "endpointslices", "default", "kubernetes"),
    ("apiregistration.k8s.io", "apiservices", "", "v1.apps"),
    (RBAC, "clusterroles", "", "view"),
    (RBAC, "clusterrolebindings", "", "system:basic-user"),
    (FLOWS, "flowschemas", "", "probes"),
    (FLOWS, "prioritylevelconfigurations", "", "catch-all"),
    ("scheduling.k8s.io", "priorityclasses", "", "system-node-critical"),
    ("networking.k8s.io", "servicecidrs", "", "kubernetes"),
    ("networking.k8s.io", "ipaddresses", "", "10.96.0.1"),
];

/// How the line of a conflict with what a side keeps for itself begins.
const OWN_SIDES: &str =
    "reason=Conflict msg=\"not synced, because an object of that name is there that its side keeps for itself\"";

fn version(group: &str) -> String {
    if group.is_empty() {
        "v1".into()
    } else {
        format!("{group}/v1")
    }
}

fn role(name: &str, labels: &Value) -> Value {
    json!({"apiVersion": version(RBAC), "kind": "ClusterRole", "metadata": {"name": name, "labels": labels}, "rules": []})
}

fn bootstrapped() -> Value {
    json!({"kubernetes.io/bootstrapping": "rbac-defaults"})
}

/// What a server makes for its own Service, unless it is reached by a loopback address only, as those of tests are.
async fn make_endpoints(at: &Objects, address: &str) {
    let metadata = json!({"namespace": "default", "name": "kubernetes",
        "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}});
    let mut slice = metadata.clone();
    slice["labels"] = json!({"kubernetes.io/service-name": "kubernetes"});
    for object in [
        json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata,
            "subsets": [{"addresses": [{"ip": address}], "ports": [{"name": "https", "port": 6443}]}]}),
        json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": slice, "addressType": "IPv4",
            "endpoints": [{"addresses": [address]}], "ports": [{"name": "https", "port": 6443}]}),
    ] {
        // Another test may have made it.
        let _ = at.try_create(&object).await;
    }
}

/// Labels and annotations of all.
async fn marks(at: &Objects) -> Vec<[Value; 2]> {
    let mut all = Vec::new();
    for (group, plural, space, name) in KEPT {
        let object = arrives(at, &version(group), plural, space, name).await;
        all.push(["labels", "annotations"].map(|key| object["metadata"][key].clone()));
    }
    all
}

/// Checks for a while that all have these labels and annotations.
async fn keep(at: &Objects, before: &[[Value; 2]]) {
    holds_throughout("what the server keeps stays as it is", a_while(), async || {
        let now = marks(at).await;
        let mut changed = KEPT
            .iter()
            .zip(before)
            .zip(&now)
            .filter(|((_, before), now)| before != now);
        changed.next().map_or(Ok(()), |change| Err(format!("{change:?}")))
    })
    .await;
}

async fn what_each_api_server_keeps_for_itself_stays_as_it_is_there(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a"], &json!({"v": "1"})).await;
    // One of each kind that people make, so that its type is known to have been read.
    hub.create(&role(&shop, &json!({}))).await;
    let class =
        json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": shop}, "value": 7});
    hub.create(&class).await;
    make_endpoints(&hub, "192.0.2.1").await;
    make_endpoints(&edge, "192.0.2.2").await;
    let before = marks(&edge).await;
    let cluster = KEPT.iter().filter(|(_, _, space, _)| space.is_empty());
    let cluster: Vec<Value> = cluster
        .map(|&(group, plural, _, name)| cluster_objects(group, plural, &[name, &shop]))
        .collect();
    let in_namespaces = KEPT.iter().filter(|(_, _, space, _)| !space.is_empty());
    let mut namespaced = vec![config_map_entry(&shop, &["a"])];
    namespaced.extend(in_namespaces.map(|(group, plural, space, name)| {
        json!({"group": group, "resource": plural, "apiVersion": "v1",
            "objectsByNamespace": [{"namespace": space, "names": [name]}]})
    }));
    select(&hub, &json!({"namespacedObjects": namespaced, "clusterScope": cluster})).await;
    let mut syncer = pair.syncer(flags);
    copy_equals(&edge, &shop, "a", &json!({"v": "1"})).await;
    arrives(&edge, &version(RBAC), "clusterroles", "", &shop).await;
    arrives(&edge, "scheduling.k8s.io/v1", "priorityclasses", "", &shop).await;
    syncer
        .wait_for_log("ipaddresses.networking.k8s.io is never synced", SOON)
        .await;
    keep(&edge, &before).await;
    for side in [&hub, &edge] {
        side.delete("scheduling.k8s.io/v1", "priorityclasses", "", &shop).await;
    }
}

/// An entry may name it one by one: what the hub has of that name stays the hub's, and what it lacks does not come.
async fn what_each_api_server_keeps_for_itself_does_not_go_up(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let boot = format!("{shop}-boot");
    stock(&edge, &shop, &["a"], &json!({"v": "1"})).await;
    edge.create(&role(&shop, &json!({}))).await;
    edge.create(&role(&boot, &bootstrapped())).await;
    edge.create(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": shop}}))
        .await;
    let lacking = [("", "nodes", "", &*shop), (RBAC, "clusterroles", "", &*boot)];
    make_endpoints(&hub, "192.0.2.1").await;
    make_endpoints(&edge, "192.0.2.2").await;
    let before = marks(&hub).await;
    let entry = |(group, plural, space, name): &(&str, &str, &str, &str)| {
        let spaces: &[&str] = if space.is_empty() { &[] } else { &[space] };
        json!({"apiGroup": group, "resources": [plural], "namespaces": spaces, "names": [name]})
    };
    let ordinary = [("", "configmaps", &*shop, "a"), (RBAC, "clusterroles", "", &*shop)];
    let entries: Vec<Value> = KEPT.iter().chain(&lacking).chain(&ordinary).map(entry).collect();
    select(&hub, &json!({"upsync": entries})).await;
    let mut syncer = pair.syncer(flags);
    copy_equals(&hub, &shop, "a", &json!({"v": "1"})).await;
    arrives(&hub, &version(RBAC), "clusterroles", "", &shop).await;
    syncer
        .wait_for_log("ipaddresses.networking.k8s.io is never synced", SOON)
        .await;
    for (group, plural, space, name) in lacking {
        stays_absent(&hub, &version(group), plural, space, name).await;
    }
    keep(&hub, &before).await;
    for (group, plural, space, name) in KEPT {
        let object = arrives(&hub, &version(group), plural, space, name).await;
        let managers = object["metadata"]["managedFields"].to_string();
        assert!(!managers.contains("edge-syncer"), "{plural} {name}: {managers}");
    }
    assert!(!syncer.log().contains("reason=Conflict "), "{}", syncer.log());
    for (group, plural, space, name) in lacking {
        edge.delete(&version(group), plural, space, name).await;
    }
    edge.delete(&version(RBAC), "clusterroles", "", &shop).await;
    gone(&hub, &version(RBAC), "clusterroles", "", &shop).await;
}

async fn what_an_earlier_version_has_synced_of_it_is_released(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a"], &json!({"v": "1"})).await;
    let mut adopted = role(&shop, &bootstrapped());
    hub.create(&adopted).await;
    adopted["metadata"]["labels"]["edge.kubestellar.io/downsynced"] = json!("true");
    adopted["metadata"]["annotations"] = json!({
        "edge.kubestellar.io/downsynced": format!("ClusterRole//{shop}"),
        "edge.kubestellar.io/owner": format!("u1/clusterroles.{RBAC}/test"),
        "edge.kubestellar.io/adopted": "true",
    });
    edge.create(&adopted).await;
    let mut made = adopted.clone();
    let made_here = format!("{shop}-made");
    made["metadata"]["name"] = json!(made_here);
    made["metadata"]["annotations"]["edge.kubestellar.io/downsynced"] = json!(format!("ClusterRole//{made_here}"));
    // It has no origin, and was not there before it came.
    made["metadata"]["annotations"]["edge.kubestellar.io/adopted"].take();
    made["metadata"]["annotations"]
        .as_object_mut()
        .expect("it is one")
        .retain(|_, value| !value.is_null());
    edge.create(&made).await;
    select(
        &hub,
        &json!({"namespacedObjects": [config_map_entry(&shop, &["a"])],
            "clusterScope": [cluster_objects(RBAC, "clusterroles", &[&shop, &made_here])]}),
    )
    .await;
    let _syncer = pair.syncer(flags);
    for name in [&shop, &made_here] {
        let at = [&*version(RBAC), "clusterroles", "", name];
        let released = becomes(&edge, at, "has no marks", |role| {
            let marked = |key: &str| role["metadata"][key].to_string().contains("edge.kubestellar.io");
            !marked("labels") && !marked("annotations")
        })
        .await;
        assert_eq!(released["metadata"]["labels"], bootstrapped());
    }
    copy_equals(&edge, &shop, "a", &json!({"v": "1"})).await;
    for name in [&shop, &made_here] {
        remains(&edge, &version(RBAC), "clusterroles", "", name).await;
        edge.delete(&version(RBAC), "clusterroles", "", name).await;
    }
}

async fn what_is_named_comes_if_a_flag_allows_it(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a"], &json!({"v": "1"})).await;
    hub.create(&role(&shop, &bootstrapped())).await;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": shop}});
    hub.create(&node).await;
    select(
        &hub,
        &json!({"namespacedObjects": [config_map_entry(&shop, &["a"])],
            "clusterScope": [cluster_objects(RBAC, "clusterroles", &[&shop]), cluster_objects("", "nodes", &[&shop])]}),
    )
    .await;
    let mut syncer = pair.syncer(flags);
    copy_equals(&edge, &shop, "a", &json!({"v": "1"})).await;
    let line = "nodes is never synced, unless --allow-system is given and the entry names each object";
    syncer.wait_for_log(line, SOON).await;
    stays_absent(&edge, &version(RBAC), "clusterroles", "", &shop).await;
    stays_absent(&edge, "v1", "nodes", "", &shop).await;
    syncer.terminate().await;
    let mut syncer = pair.syncer(&[flags, &["--allow-system"]].concat());
    arrives(&edge, &version(RBAC), "clusterroles", "", &shop).await;
    arrives(&edge, "v1", "nodes", "", &shop).await;
    // Without the flag again, they are released and stay.
    syncer.terminate().await;
    let _syncer = pair.syncer(flags);
    becomes(
        &edge,
        [&version(RBAC), "clusterroles", "", &shop],
        "is released",
        |role| role["metadata"]["annotations"]["edge.kubestellar.io/downsynced"].is_null(),
    )
    .await;
    becomes(&edge, ["v1", "nodes", "", &shop], "is released", |node| {
        node["metadata"]["annotations"]["edge.kubestellar.io/downsynced"].is_null()
    })
    .await;
    for side in [&hub, &edge] {
        side.delete("v1", "nodes", "", &shop).await;
    }
    edge.delete(&version(RBAC), "clusterroles", "", &shop).await;
}

async fn no_conversion_leads_to_what_is_never_synced(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a", "b", "c", "d", "e"], &json!({"token": "eA=="})).await;
    edge.create(&namespace(&shop)).await;
    let (group, _) = own_group(&shop);
    let grants = crd_without_status(&group, "grants", true);
    install_crd(&[&hub, &edge], &grants).await;
    let (api, kind) = (format!("{group}/v1"), &grants["spec"]["names"]["kind"]);
    let grant = json!({"apiVersion": api, "kind": kind, "metadata": {"namespace": shop, "name": "f"},
        "type": "kubernetes.io/service-account-token"});
    hub.create(&grant).await;
    let granted = json!({"group": group, "version": "v1", "kind": kind, "namespace": shop, "name": "f"});
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"namespace": shop, "name": "operator"}, "spec": {"holderIdentity": "operator-0"}});
    edge.create(&lease).await;
    let admin = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": shop, "name": "admin"}});
    edge.create(&admin).await;
    let token = secret(&shop, "token", TOKEN);
    edge.create(&token).await;
    let to = |group: &str, kind: &str, name: &str| json!({"group": group, "version": "v1", "kind": kind, "name": name});
    let conversion = |from: &str, to: Value| json!({"upstream": config_map_ref(&shop, from), "downstream": to});
    select_by_kind(
        &hub,
        &json!({
            "downSyncedResources": [
                namespace_ref(&shop),
                config_map_ref(&shop, "a"),
                config_map_ref(&shop, "b"),
                config_map_ref(&shop, "c"),
                config_map_ref(&shop, "d"),
                config_map_ref(&shop, "e"),
                granted,
            ],
            "conversions": [
                conversion("a", to("coordination.k8s.io", "Lease", "operator")),
                conversion("b", to("", "Secret", "token")),
                conversion("c", to("", "ConfigMap", "kube-root-ca.crt")),
                conversion("e", to("", "ConfigMap", "edge-syncer-types-x")),
                {"upstream": granted, "downstream": to("", "Secret", "granted")},
            ],
        }),
    )
    .await;
    let mut syncer = pair.syncer(flags);
    copy_equals(&edge, &shop, "d", &json!({"token": "eA=="})).await;
    syncer
        .wait_for_log("Lease.coordination.k8s.io is never synced", SOON)
        .await;
    for (origin, copy) in [
        (
            format!("ConfigMap/{shop}/c"),
            format!("ConfigMap/{shop}/kube-root-ca.crt"),
        ),
        (
            format!("ConfigMap/{shop}/e"),
            format!("ConfigMap/{shop}/edge-syncer-types-x"),
        ),
        (
            format!("{}/{shop}/f", kind.as_str().expect("it is a name")),
            format!("Secret/{shop}/granted"),
        ),
    ] {
        let astray = format!(
            "reason=Conflict msg=\"not synced, because a conversion makes of it an object that is never synced\" side=hub object={origin} copy={copy}"
        );
        syncer.wait_for_log(&astray, SOON).await;
    }
    stays_absent(&edge, "v1", "secrets", &shop, "granted").await;
    stays_absent(&edge, "v1", "configmaps", &shop, "edge-syncer-types-x").await;
    let in_the_way = format!("{OWN_SIDES} side=edge object=Secret/{shop}/token");
    syncer.wait_for_log(&in_the_way, SOON).await;
    let lease = remains(&edge, "coordination.k8s.io/v1", "leases", &shop, "operator").await;
    assert_eq!(lease["spec"]["holderIdentity"], json!("operator-0"));
    let token = remains(&edge, "v1", "secrets", &shop, "token").await;
    assert_eq!(token["type"], json!("kubernetes.io/service-account-token"));
    assert_ne!(token["data"]["token"], json!("eA=="));
    for object in [&lease, &token] {
        assert!(!object.to_string().contains("edge.kubestellar.io/"), "{object}");
    }
    let root = edge.get("v1", "configmaps", &shop, "kube-root-ca.crt").await;
    assert!(root.is_none_or(|root| root["data"]["token"].is_null()));
    drop_crds(&[&hub, &edge], &[&format!("grants.{group}")]).await;
}

const TOKEN: &str = "kubernetes.io/service-account-token";

fn secret(shop: &str, name: &str, kind: &str) -> Value {
    let account = if kind == TOKEN { "admin" } else { "" };
    json!({"apiVersion": "v1", "kind": "Secret", "type": kind, "data": {"token": "eQ=="},
        "metadata": {"namespace": shop, "name": name, "annotations": {"kubernetes.io/service-account.name": account}}})
}

fn role_of(shop: &str, name: &str, labels: &Value) -> Value {
    let mut role = role(name, labels);
    role["kind"] = json!("Role");
    role["metadata"]["namespace"] = json!(shop);
    role
}

/// All Secrets and Roles of a namespace go in one direction. The side that they come from, and the one that they go to.
async fn secrets_and_roles(stage: &Stage, goes_up: bool) -> (&Objects, &Objects) {
    let Stage { shop, hub, edge, .. } = stage;
    for side in [hub, edge] {
        side.create(&namespace(shop)).await;
    }
    let upsync = ["", RBAC].map(|group| {
        let plural = if group.is_empty() { "secrets" } else { "roles" };
        json!({"apiGroup": group, "resources": [plural], "namespaces": [shop], "names": ["*"]})
    });
    if goes_up {
        select(hub, &json!({"upsync": upsync})).await;
        (edge, hub)
    } else {
        select(hub, &all_of(shop, &[("", "secrets"), (RBAC, "roles")])).await;
        (hub, edge)
    }
}

async fn a_credential_that_has_the_name_of_a_copy_stays_as_it_is(flags: Mode) {
    for goes_up in [false, true] {
        let stage = stage().await;
        let (from, to) = secrets_and_roles(&stage, goes_up).await;
        let (shop, side) = (&*stage.shop, if goes_up { "hub" } else { "edge" });
        for name in ["first", "second", "third"] {
            from.create(&secret(shop, name, "Opaque")).await;
        }
        let first = to.create(&secret(shop, "first", TOKEN)).await;
        let mut syncer = stage.pair.syncer(flags);
        syncer
            .wait_for_log(&format!("{OWN_SIDES} side={side} object=Secret/{shop}/first"), SOON)
            .await;
        for name in ["second", "third"] {
            arrives(to, "v1", "secrets", shop, name).await;
        }
        syncer.terminate().await;
        // One comes in the place of a copy.
        to.delete("v1", "secrets", shop, "second").await;
        let second = to
            .create(&secret(shop, "second", "bootstrap.kubernetes.io/token"))
            .await;
        let mut syncer = stage.pair.syncer(flags);
        for name in ["first", "second"] {
            syncer
                .wait_for_log(&format!("{OWN_SIDES} side={side} object=Secret/{shop}/{name}"), SOON)
                .await;
        }
        for name in ["first", "second", "third"] {
            from.delete("v1", "secrets", shop, name).await;
        }
        gone(to, "v1", "secrets", shop, "third").await;
        for before in [first, second] {
            let name = before["metadata"]["name"].as_str().expect("it has one");
            assert_eq!(remains(to, "v1", "secrets", shop, name).await, before);
        }
        let log = syncer.log();
        assert!(
            !log.contains("works again") && !log.contains("reason=ObjectRejected"),
            "{log}"
        );
    }
}

/// What only becomes so keeps its copy.
async fn a_copy_of_what_was_recreated_as_never_synced_is_deleted(flags: Mode) {
    for goes_up in [false, true] {
        let stage = stage().await;
        let (from, to) = secrets_and_roles(&stage, goes_up).await;
        let (shop, rbac) = (&*stage.shop, &*version(RBAC));
        for name in ["live", "down", "changed"] {
            from.create(&secret(shop, name, "Opaque")).await;
            from.create(&role_of(shop, name, &json!({}))).await;
        }
        let recreate = async |name: &str| {
            from.delete("v1", "secrets", shop, name).await;
            from.create(&secret(shop, name, TOKEN)).await;
            from.delete(rbac, "roles", shop, name).await;
            from.create(&role_of(shop, name, &bootstrapped())).await;
        };
        let is_gone = async |name: &str| {
            gone(to, "v1", "secrets", shop, name).await;
            gone(to, rbac, "roles", shop, name).await;
        };
        let mut syncer = stage.pair.syncer(flags);
        for name in ["live", "down", "changed"] {
            arrives(to, "v1", "secrets", shop, name).await;
            arrives(to, rbac, "roles", shop, name).await;
        }
        let label = json!({"metadata": {"labels": bootstrapped()}});
        from.merge_patch(rbac, "roles", shop, "changed", &label).await;
        recreate("live").await;
        is_gone("live").await;
        syncer.terminate().await;
        recreate("down").await;
        let _syncer = stage.pair.syncer(flags);
        is_gone("down").await;
        let kept = remains(to, rbac, "roles", shop, "changed").await;
        assert!(
            kept["metadata"]["labels"]["kubernetes.io/bootstrapping"].is_null(),
            "{kept}"
        );
        for name in ["live", "down"] {
            remains(from, "v1", "secrets", shop, name).await;
            remains(from, rbac, "roles", shop, name).await;
        }
    }
}
