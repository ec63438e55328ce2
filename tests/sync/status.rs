//! Status on its way from edge to hub.

use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{JSON_PATCH, MERGE_PATCH, namespace, path};
use crate::support::stage::{Stage, all_of, cluster_objects, own_group, select, stage};
use crate::support::statuses::{
    deployed, deployment, returns, scale, select_deployments, set_status, status_writes, web,
};
use crate::support::story::{
    SOON, a_while, annotation, arrives, becomes, crd, crd_without_status, custom_object, drop_crds, install_crd,
    upsync_all,
};
use crate::support::{eventually, holds_throughout, lines};
use http::Method;
use serde_json::{Value, json};

in_both_modes!(
    the_status_of_a_deployment_is_that_of_the_edge_as_a_whole_each_time,
    a_hub_edit_made_while_statuses_are_written_is_kept,
    status_returns_for_every_kind_of_custom_resource_and_owner,
    status_returns_where_only_one_side_has_the_subresource,
    status_returns_though_the_type_at_the_hub_loses_its_subresource,
    the_status_of_crds_and_namespaces_at_the_hub_is_preserved,
    the_status_of_an_upsynced_object_arrives_and_follows,
    a_status_that_changes_while_the_hub_is_down_arrives_afterwards,
    what_people_write_into_a_status_at_the_hub_is_corrected,
    a_status_that_does_not_reach_the_hub_is_named_once,
);

async fn the_status_of_a_deployment_is_that_of_the_edge_as_a_whole_each_time(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    let before = hub.create(&deployment(&shop, "web:1")).await;
    select_deployments(&hub, &shop).await;
    let _syncer = pair.syncer(flags);
    arrives(&edge, "apps/v1", "deployments", &shop, "web").await;
    let at = web(&shop);
    let available = json!([{"type": "Available", "status": "True", "reason": "R", "message": "m",
        "lastUpdateTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    for status in [
        json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "unavailableReplicas": 2}),
        json!({"observedGeneration": 1, "replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "conditions": available}),
        json!({"observedGeneration": 2}),
    ] {
        set_status(&edge, at, true, &status).await;
        let object = returns(&hub, at, &status).await;
        assert_eq!(object["spec"], before["spec"]);
        for field in ["labels", "annotations", "generation", "finalizers", "ownerReferences"] {
            assert_eq!(object["metadata"][field], before["metadata"][field], "{field}");
        }
    }
    // An edit at the hub goes its own way.
    let copy = scale(&hub, &edge, &shop).await;
    assert_eq!(copy["status"], json!({"observedGeneration": 2}));
    let object = returns(&hub, at, &json!({"observedGeneration": 2})).await;
    assert_eq!(object["spec"]["replicas"], json!(5));
}

// A status write never carries a stale spec, labels or annotations.
async fn a_hub_edit_made_while_statuses_are_written_is_kept(flags: Mode) {
    const ROUNDS: usize = 20;
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, version) = own_group(&shop);
    // Without a subresource the whole object is written, which is where an edit could get lost.
    install_crd(&[&hub, &edge], &crd_without_status(&group, "gauges", true)).await;
    hub.create(&namespace(&shop)).await;
    hub.create(&custom_object(&group, "gauges", &shop, "a", 0)).await;
    select(&hub, &all_of(&shop, &[(&group, "gauges")])).await;
    let _syncer = pair.syncer(&[flags, &["--status-interval=100ms"]].concat());
    arrives(&edge, &version, "gauges", &shop, "a").await;
    let at = [version.as_str(), "gauges", &shop, "a"];
    let mark = pair.hub.audit_mark();
    for round in 1..=ROUNDS {
        let status = json!({"status": {"round": round}});
        let edit = json!({"spec": {"size": round}, "metadata": {"labels": {"round": round.to_string()}}});
        let target = path(&version, "gauges", &shop, "a");
        let writes = tokio::join!(
            edge.send(http::Method::PATCH, &target, MERGE_PATCH, Some(&status)),
            hub.send(http::Method::PATCH, &target, MERGE_PATCH, Some(&edit)),
        );
        writes.0.expect("the edge takes its status");
        let object = writes.1.expect("the hub takes its edit");
        assert_eq!(object["spec"]["size"], json!(round));
        let object = hub.get(&version, "gauges", &shop, "a").await.expect("it is there");
        assert_eq!(
            object["spec"]["size"],
            json!(round),
            "the edit of round {round} is lost"
        );
        assert_eq!(object["metadata"]["labels"]["round"], json!(round.to_string()));
    }
    let object = returns(&hub, at, &json!({"round": ROUNDS})).await;
    assert_eq!(object["spec"]["size"], json!(ROUNDS));
    assert_eq!(object["metadata"]["labels"]["round"], json!(ROUNDS.to_string()));
    becomes(&edge, at, "has the last edit", |copy| {
        copy["spec"]["size"] == json!(ROUNDS) && copy["status"]["round"] == json!(ROUNDS)
    })
    .await;
    eventually(
        "the status writes are in the audit log",
        SOON,
        async || match status_writes(&pair, mark, "/gauges/a").len() {
            0 => Err("none"),
            _ => Ok(()),
        },
    )
    .await;
    drop_crds(&[&hub, &edge], &[&format!("gauges.{group}")]).await;
}

async fn status_returns_for_every_kind_of_custom_resource_and_owner(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, version) = own_group(&shop);
    // Plural, namespaced, with a subresource.
    let types = [
        ("gauges", true, true),
        ("plains", true, false),
        ("clusters", false, true),
        ("bares", false, false),
    ];
    for side in [&hub, &edge] {
        side.create(&namespace(&shop)).await;
    }
    let (mut resources, mut cluster_scope) = (Vec::new(), Vec::new());
    for (plural, namespaced, subresource) in types {
        let definition = if subresource { crd } else { crd_without_status }(&group, plural, namespaced);
        install_crd(&[&hub, &edge], &definition).await;
        let item = json!({"group": group, "resource": plural, "apiVersion": "v1"});
        if namespaced {
            resources.push(item);
        } else {
            cluster_scope.push(item);
        }
        let space = if namespaced { &*shop } else { "" };
        for (name, overwrite) in [("ours", "true"), ("once", "false"), ("theirs", "false")] {
            let mut object = custom_object(&group, plural, space, name, 1);
            object["metadata"]["annotations"] = json!({"edge.kubestellar.io/downsync-overwrite": overwrite});
            hub.create(&object).await;
        }
        edge.create(&custom_object(&group, plural, space, "theirs", 7)).await;
    }
    select(
        &hub,
        &json!({"namespaceScope": {"namespaces": [shop], "resources": resources}, "clusterScope": cluster_scope}),
    )
    .await;
    let _syncer = pair.syncer(flags);
    let all = types.into_iter().flat_map(|(plural, namespaced, subresource)| {
        let space = if namespaced { &*shop } else { "" };
        ["ours", "once", "theirs"].map(|name| ([version.as_str(), plural, space, name], subresource))
    });
    let all: Vec<_> = all.collect();
    for &(at, _) in &all {
        let [api_version, plural, space, name] = at;
        arrives(&edge, api_version, plural, space, name).await;
        if name == "theirs" {
            let marked = |copy: &Value| annotation(copy, "downsync-overwrite") == json!("false");
            let copy = becomes(&edge, at, "is marked", marked).await;
            assert_eq!(copy["spec"]["size"], json!(7), "only the annotation is added");
            assert_eq!(annotation(&copy, "downsynced"), Value::Null);
        }
    }
    for status in [json!({"a": {"b": 1}, "c": [1]}), json!({"a": {"d": 2}})] {
        for &(at, subresource) in &all {
            set_status(&edge, at, subresource, &status).await;
        }
        for &(at, _) in &all {
            let object = returns(&hub, at, &status).await;
            assert_eq!(object["spec"], json!({"size": 1}), "{at:?}");
        }
    }
    let definitions = types.map(|(plural, ..)| format!("{plural}.{group}"));
    drop_crds(&[&hub, &edge], &definitions.each_ref().map(String::as_str)).await;
}

async fn status_returns_where_only_one_side_has_the_subresource(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, version) = own_group(&shop);
    let types = [("athubs", &hub, &edge, false), ("atedges", &edge, &hub, true)];
    hub.create(&namespace(&shop)).await;
    for (plural, with, without, _) in types {
        install_crd(&[with], &crd(&group, plural, true)).await;
        install_crd(&[without], &crd_without_status(&group, plural, true)).await;
        hub.create(&custom_object(&group, plural, &shop, "a", 1)).await;
    }
    select(&hub, &all_of(&shop, &types.map(|(plural, ..)| (&*group, plural)))).await;
    let _syncer = pair.syncer(flags);
    for (plural, _, _, subresource_at_edge) in types {
        arrives(&edge, &version, plural, &shop, "a").await;
        let at = [version.as_str(), plural, &shop, "a"];
        for status in [json!({"a": 1, "b": 2}), json!({"b": 3})] {
            set_status(&edge, at, subresource_at_edge, &status).await;
            returns(&hub, at, &status).await;
        }
        // A status is never written downwards.
        hub.merge_patch(&version, plural, &shop, "a", &json!({"spec": {"size": 2}}))
            .await;
        let copy = becomes(&edge, at, "has size 2", |copy| copy["spec"]["size"] == json!(2)).await;
        assert_eq!(copy["status"], json!({"b": 3}));
    }
    let definitions = types.map(|(plural, ..)| format!("{plural}.{group}"));
    drop_crds(&[&hub, &edge], &definitions.each_ref().map(String::as_str)).await;
}

async fn status_returns_though_the_type_at_the_hub_loses_its_subresource(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, version) = own_group(&shop);
    install_crd(&[&hub, &edge], &crd(&group, "gauges", true)).await;
    hub.create(&namespace(&shop)).await;
    hub.create(&custom_object(&group, "gauges", &shop, "a", 1)).await;
    select(&hub, &all_of(&shop, &[(&group, "gauges")])).await;
    let _syncer = pair.syncer(flags);
    arrives(&edge, &version, "gauges", &shop, "a").await;
    let at = [version.as_str(), "gauges", &*shop, "a"];
    set_status(&edge, at, true, &json!({"x": 1})).await;
    returns(&hub, at, &json!({"x": 1})).await;
    let name = format!("gauges.{group}");
    let definition = path("apiextensions.k8s.io/v1", "customresourcedefinitions", "", &name);
    let removed = json!([{"op": "remove", "path": "/spec/versions/0/subresources"}]);
    let changed = hub.send(Method::PATCH, &definition, JSON_PATCH, Some(&removed)).await;
    changed.expect("the CRD is there");
    eventually("it has none", SOON, async || {
        let status = format!("{}/status", path(&version, "gauges", &shop, "a"));
        match hub.read(&status).await {
            Err(_) => Ok(()),
            Ok(_) => Err("it is served"),
        }
    })
    .await;
    set_status(&edge, at, true, &json!({"x": 2})).await;
    returns(&hub, at, &json!({"x": 2})).await;
    drop_crds(&[&hub, &edge], &[&name]).await;
}

async fn the_status_of_crds_and_namespaces_at_the_hub_is_preserved(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let group = format!("{shop}.example.org");
    let definition = format!("gauges.{group}");
    install_crd(&[&hub], &crd(&group, "gauges", true)).await;
    hub.create(&namespace(&shop)).await;
    hub.create(&deployment(&shop, "web:1")).await;
    let mut spec = all_of(&shop, &[("apps", "deployments")]);
    spec["clusterScope"] = json!([
        cluster_objects("apiextensions.k8s.io", "customresourcedefinitions", &[&definition]),
        cluster_objects("", "namespaces", &[&shop]),
    ]);
    select(&hub, &spec).await;
    let _syncer = pair.syncer(flags);
    let condition = json!([{"type": "NamespaceContentRemaining", "status": "False", "reason": "R", "message": "edge",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    let crds = ["apiextensions.k8s.io/v1", "customresourcedefinitions", "", &definition];
    let spaces = ["v1", "namespaces", "", &*shop];
    let web = web(&shop);
    for [api_version, plural, namespace, name] in [crds, spaces, web] {
        arrives(&edge, api_version, plural, namespace, name).await;
    }
    crate::support::wait_for_crd(&edge, &definition).await;
    let before = [
        hub.get("apiextensions.k8s.io/v1", "customresourcedefinitions", "", &definition)
            .await,
        hub.get("v1", "namespaces", "", &shop).await,
    ];
    let mut status = edge
        .get("apiextensions.k8s.io/v1", "customresourcedefinitions", "", &definition)
        .await
        .expect("arrived above")["status"]
        .clone();
    status["conditions"]
        .as_array_mut()
        .expect("it is established")
        .push(json!({"type": "Terminating", "status": "False", "reason": "edge", "lastTransitionTime": "2026-01-01T00:00:00Z"}));
    set_status(&edge, crds, true, &status).await;
    set_status(
        &edge,
        spaces,
        true,
        &json!({"phase": "Active", "conditions": condition}),
    )
    .await;
    // What comes later and does go up is the proof that these were seen.
    set_status(&edge, web, true, &json!({"replicas": 1})).await;
    returns(&hub, web, &json!({"replicas": 1})).await;
    holds_throughout("their status is preserved", a_while(), async || {
        let now = [
            hub.get("apiextensions.k8s.io/v1", "customresourcedefinitions", "", &definition)
                .await,
            hub.get("v1", "namespaces", "", &shop).await,
        ];
        if now == before {
            Ok(())
        } else {
            Err(format!("{now:#?}"))
        }
    })
    .await;
    drop_crds(&[&hub, &edge], &[&definition]).await;
}

// With and without a subresource.
async fn the_status_of_an_upsynced_object_arrives_and_follows(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, version) = own_group(&shop);
    let types = [("gauges", true), ("plains", false)];
    edge.create(&namespace(&shop)).await;
    for (plural, subresource) in types {
        let definition = if subresource { crd } else { crd_without_status }(&group, plural, true);
        install_crd(&[&hub, &edge], &definition).await;
        edge.create(&custom_object(&group, plural, &shop, "a", 1)).await;
        set_status(
            &edge,
            [&version, plural, &shop, "a"],
            subresource,
            &json!({"at": "first"}),
        )
        .await;
    }
    select(
        &hub,
        &json!({"upsync": [upsync_all(&group, &["gauges", "plains"], &shop)]}),
    )
    .await;
    let _syncer = pair.syncer(flags);
    for (plural, subresource) in types {
        let at = [version.as_str(), plural, &shop, "a"];
        let object = returns(&hub, at, &json!({"at": "first"})).await;
        assert_eq!(object["spec"], json!({"size": 1}));
        for status in [json!({"x": 1, "y": 2}), json!({"y": 3})] {
            set_status(&edge, at, subresource, &status).await;
            returns(&hub, at, &status).await;
        }
        edge.merge_patch(&version, plural, &shop, "a", &json!({"spec": {"size": 2}}))
            .await;
        let object = becomes(&hub, at, "has size 2", |object| object["spec"]["size"] == json!(2)).await;
        assert_eq!(object["status"], json!({"y": 3}));
        // What people do to it at the hub is corrected.
        set_status(&hub, at, subresource, &json!({"at": "hub"})).await;
        returns(&hub, at, &json!({"y": 3})).await;
    }
    let definitions = types.map(|(plural, _)| format!("{plural}.{group}"));
    drop_crds(&[&hub, &edge], &definitions.each_ref().map(String::as_str)).await;
}

async fn a_status_that_changes_while_the_hub_is_down_arrives_afterwards(flags: Mode) {
    let (mut stage, mut syncer) = deployed(flags).await;
    let at = web(&stage.shop);
    set_status(&stage.edge, at, true, &json!({"replicas": 1})).await;
    returns(&stage.hub, at, &json!({"replicas": 1})).await;
    stage.pair.hub.stop_apiserver();
    syncer.wait_for_log(&lines::unreachable("hub"), SOON).await;
    set_status(&stage.edge, at, true, &json!({"replicas": 2})).await;
    stage.pair.hub.start_apiserver().await;
    returns(&stage.pair.hub.objects(), at, &json!({"replicas": 2})).await;
}

async fn what_people_write_into_a_status_at_the_hub_is_corrected(flags: Mode) {
    let (stage, _syncer) = deployed(flags).await;
    let (hub, edge, at) = (&stage.hub, &stage.edge, web(&stage.shop));
    set_status(edge, at, true, &json!({"replicas": 1})).await;
    returns(hub, at, &json!({"replicas": 1})).await;
    set_status(hub, at, true, &json!({"replicas": 9, "readyReplicas": 9})).await;
    returns(hub, at, &json!({"replicas": 1})).await;
}

async fn a_status_that_does_not_reach_the_hub_is_named_once(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, version) = own_group(&shop);
    install_crd(&[&hub, &edge], &crd_without_status(&group, "gauges", true)).await;
    hub.create(&namespace(&shop)).await;
    select(&hub, &all_of(&shop, &[(&group, "gauges")])).await;
    let mut syncer = pair.syncer(flags);
    let names = ["a", "b", "c"];
    for name in names {
        hub.create(&custom_object(&group, "gauges", &shop, name, 1)).await;
        let at = [version.as_str(), "gauges", &*shop, name];
        arrives(&edge, &version, "gauges", &shop, name).await;
        set_status(&edge, at, false, &json!({"x": 1})).await;
        returns(&hub, at, &json!({"x": 1})).await;
    }
    // Two lose theirs, and one gets a text.
    for name in ["a", "b"] {
        let target = path(&version, "gauges", &shop, name);
        let removal = json!([{"op": "remove", "path": "/status"}]);
        let removed = edge.send(Method::PATCH, &target, JSON_PATCH, Some(&removal)).await;
        removed.expect("it has a status");
    }
    edge.merge_patch(&version, "gauges", &shop, "c", &json!({"status": "fine"}))
        .await;
    syncer
        .wait_for_log("a status was removed, and the hub keeps", SOON)
        .await;
    syncer
        .wait_for_log("not returned, since a status is an object", SOON)
        .await;
    for name in names {
        let at = [version.as_str(), "gauges", &*shop, name];
        returns(&hub, at, &json!({"x": 1})).await;
        set_status(&edge, at, false, &json!({"x": 2})).await;
        returns(&hub, at, &json!({"x": 2})).await;
    }
    let log = syncer.log();
    assert_eq!(log.matches("reason=PartNotSynced").count(), 2, "{log}");
    drop_crds(&[&hub, &edge], &[&format!("gauges.{group}")]).await;
}
