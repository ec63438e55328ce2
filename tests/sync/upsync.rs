//! Upsync between two real API servers, in each mode.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::Duration;

use crate::support::modes::{Mode, in_both_modes, in_mode};
use crate::support::objects::{JSON, code, config_map, namespace, path};
use crate::support::stage::{Stage, own_group, select, stage, stock};
use crate::support::story::{
    SOON, a_while, annotation, arrives, becomes, copy_equals, crd, custom_object, drop_crds, edit, gone, install_crd,
    remains, upsync_all,
};
use crate::support::{SYNCER, comes_to_rest, eventually, holds_throughout, shared_pair};
use http::Method;
use serde_json::{Value, json};

in_both_modes!(
    named_and_starred_objects_go_up_follow_and_go,
    an_upsynced_pod_shows_the_node_on_which_it_runs,
    each_form_of_an_entry_selects_exactly_what_it_names,
    a_starred_group_includes_types_that_appear_later_at_the_edge_and_at_the_hub,
    a_type_that_a_side_lacks_is_reported_blocks_nothing_and_is_picked_up,
    what_people_do_to_an_upsynced_object_at_the_hub_is_corrected,
    what_the_edge_drops_disappears_at_the_hub_also_in_the_first_update,
    owners_and_finalizers_of_the_edge_are_not_synced,
    an_overwrite_annotation_means_nothing_to_an_upsynced_object,
);
// It takes a minute, and does not depend on the mode.
in_mode!(
    watch_only,
    crate::support::modes::WATCH,
    a_type_that_the_edge_no_longer_serves_takes_its_copies_along_and_is_asked_for_no_more,
    a_type_of_a_starred_group_goes_as_slowly,
);

async fn named_and_starred_objects_go_up_follow_and_go(flags: Mode) {
    let pair = shared_pair().await;
    let [named, starred] = ["named", "starred"].map(|prefix| pair.namespace(prefix));
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let _syncer = pair.syncer(flags);
    select(
        &hub,
        &json!({"upsync": [
            {"resources": ["configmaps"], "namespaces": [named], "names": ["a", "later"]},
            upsync_all("", &["configmaps"], &starred),
        ]}),
    )
    .await;
    for shop in [&named, &starred] {
        stock(&edge, shop, &["a"], &json!({"k": "1"})).await;
        let copy = arrives(&hub, "v1", "configmaps", shop, "a").await;
        assert_eq!(copy["data"], json!({"k": "1"}));
        assert_eq!(annotation(&copy, "upsynced"), json!(format!("ConfigMap/{shop}/a")));
        assert_eq!(
            copy["metadata"]["labels"],
            json!({"edge.kubestellar.io/upsynced": "true"})
        );
        edge.replace(&config_map(shop, "a", json!({"l": "2"}))).await;
        copy_equals(&hub, shop, "a", &json!({"l": "2"})).await;
        edge.create(&config_map(shop, "later", json!({"k": "1"}))).await;
        copy_equals(&hub, shop, "later", &json!({"k": "1"})).await;
        edge.delete("v1", "configmaps", shop, "a").await;
        gone(&hub, "v1", "configmaps", shop, "a").await;
        remains(&hub, "v1", "configmaps", shop, "later").await;
    }
}

async fn an_upsynced_pod_shows_the_node_on_which_it_runs(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    edge.create(&namespace(&shop)).await;
    let pod = |name: &str, node: Value| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": shop, "name": name},
            "spec": {"nodeName": node, "containers": [{"name": "a", "image": "a"}]}})
    };
    edge.create(&pod("placed", json!("n1"))).await;
    edge.create(&pod("unplaced", Value::Null)).await;
    select(&hub, &json!({"upsync": [upsync_all("", &["pods"], &shop)]})).await;
    let _syncer = pair.syncer(flags);
    let runs_on = async |name: &str, node: &str| {
        let what = format!("runs on {node}");
        becomes(&hub, ["v1", "pods", &shop, name], &what, |pod| {
            pod["spec"]["nodeName"] == *node
        })
        .await
    };
    runs_on("placed", "n1").await;
    arrives(&hub, "v1", "pods", &shop, "unplaced").await;
    // As a scheduler does it.
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "unplaced"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n2"}});
    let target = format!("{}/binding", path("v1", "pods", &shop, "unplaced"));
    edge.send(Method::POST, &target, JSON, Some(&binding))
        .await
        .expect("it is bound");
    runs_on("unplaced", "n2").await;
    // It is a copy like any other.
    let phase = json!({"phase": "Running"});
    edge.patch_status("v1", "pods", &shop, "unplaced", &phase).await;
    let is_running = |pod: &Value| pod["status"]["phase"] == phase["phase"];
    becomes(&hub, ["v1", "pods", &shop, "unplaced"], "runs", is_running).await;
    // Nor does one that people delete at the hub wait for a kubelet.
    let uid = |pod: &Value| pod["metadata"]["uid"].clone();
    let before = uid(&runs_on("placed", "n1").await);
    hub.delete("v1", "pods", &shop, "placed").await;
    let is_recreated = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_null() && uid(pod) != before;
    becomes(&hub, ["v1", "pods", &shop, "placed"], "is another one", is_recreated).await;
    for name in ["placed", "unplaced"] {
        // No kubelet says that it has ended.
        let at_once = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
        let target = path("v1", "pods", &shop, name);
        let deleted = edge.send(Method::DELETE, &target, JSON, Some(&at_once)).await;
        deleted.expect("it is deleted");
        gone(&hub, "v1", "pods", &shop, name).await;
    }
}

async fn each_form_of_an_entry_selects_exactly_what_it_names(flags: Mode) {
    let pair = shared_pair().await;
    let [one, two] = ["one", "two"].map(|prefix| pair.namespace(prefix));
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let (group, version) = own_group(&one);
    // Plural, namespaces, names, and what goes up of a and b in both namespaces.
    let cases: [(&str, Value, Value, &[&str]); 7] = [
        ("nameds", json!([one]), json!(["a"]), &["one/a"]),
        ("stars", json!([one]), json!(["*"]), &["one/a", "one/b"]),
        ("everywheres", json!(["*"]), json!(["a"]), &["one/a", "two/a"]),
        (
            "alls",
            json!(["*"]),
            json!(["*"]),
            &["one/a", "one/b", "two/a", "two/b"],
        ),
        ("nones", json!(["*"]), json!([]), &[]),
        ("nowheres", json!([]), json!(["*"]), &[]),
        ("clusters", Value::Null, json!(["a"]), &["/a"]),
    ];
    for space in [&one, &two] {
        edge.create(&namespace(space)).await;
    }
    let mut items = Vec::new();
    for (plural, namespaces, names, _) in &cases {
        let namespaced = *plural != "clusters";
        install_crd(&[&hub, &edge], &crd(&group, plural, namespaced)).await;
        let spaces = if namespaced { vec![&*one, &*two] } else { vec![""] };
        for space in spaces {
            for name in ["a", "b"] {
                edge.create(&custom_object(&group, plural, space, name, 1)).await;
            }
        }
        let mut item = json!({"apiGroup": group, "resources": [plural], "names": names});
        if !namespaces.is_null() {
            item["namespaces"] = namespaces.clone();
        }
        items.push(item);
    }
    select(&hub, &json!({"upsync": items})).await;
    let _syncer = pair.syncer(flags);
    let at_hub = async |plural: &str| -> Result<BTreeSet<String>, String> {
        let found = hub.try_list(&version, plural, "", "").await;
        let prefix = |object: &Value| match object["metadata"]["namespace"].as_str() {
            Some(space) if space == one => "one",
            Some(space) if space == two => "two",
            Some(_) => "elsewhere",
            None => "",
        };
        let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let found = found.map_err(|error| error.to_string())?;
        Ok(found
            .iter()
            .map(|object| format!("{}/{}", prefix(object), name(object)))
            .collect())
    };
    let all_as_expected = async || {
        for (plural, _, _, expected) in &cases {
            let (found, expected) = (at_hub(plural).await?, expected.iter().map(|&name| name.to_owned()));
            if found != expected.collect::<BTreeSet<_>>() {
                return Err(format!("{plural}: {found:?}"));
            }
        }
        Ok(())
    };
    eventually("all that is named goes up", SOON, all_as_expected).await;
    holds_throughout("nothing else goes up", a_while(), all_as_expected).await;
    let definitions = cases.each_ref().map(|(plural, ..)| format!("{plural}.{group}"));
    drop_crds(&[&hub, &edge], &definitions.each_ref().map(String::as_str)).await;
}

async fn a_starred_group_includes_types_that_appear_later_at_the_edge_and_at_the_hub(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, version) = own_group(&shop);
    edge.create(&namespace(&shop)).await;
    select(&hub, &json!({"upsync": [upsync_all(&group, &["*"], &shop)]})).await;
    let mut syncer = pair.syncer(flags);
    // The group comes into being at the edge.
    install_crd(&[&hub, &edge], &crd(&group, "firsts", true)).await;
    edge.create(&custom_object(&group, "firsts", &shop, "a", 1)).await;
    arrives(&hub, &version, "firsts", &shop, "a").await;
    // It gets another type there, and the hub gets that later.
    install_crd(&[&edge], &crd(&group, "seconds", true)).await;
    edge.create(&custom_object(&group, "seconds", &shop, "a", 1)).await;
    syncer.wait_for_log("resource=seconds", SOON).await;
    edge.create(&custom_object(&group, "firsts", &shop, "b", 1)).await;
    arrives(&hub, &version, "firsts", &shop, "b").await;
    install_crd(&[&hub], &crd(&group, "seconds", true)).await;
    arrives(&hub, &version, "seconds", &shop, "a").await;
    let definitions = [format!("firsts.{group}"), format!("seconds.{group}")];
    drop_crds(&[&hub, &edge], &definitions.each_ref().map(String::as_str)).await;
}

async fn a_type_that_a_side_lacks_is_reported_blocks_nothing_and_is_picked_up(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, version) = own_group(&shop);
    edge.create(&namespace(&shop)).await;
    install_crd(&[&edge], &crd(&group, "downs", true)).await;
    install_crd(&[&hub], &crd(&group, "ups", true)).await;
    edge.create(&custom_object(&group, "downs", &shop, "a", 1)).await;
    edge.create(&config_map(&shop, "a", json!({}))).await;
    select(
        &hub,
        &json!({"upsync": [
            upsync_all(&group, &["downs", "ups"], &shop),
            upsync_all("", &["configmaps"], &shop),
        ]}),
    )
    .await;
    let mut syncer = pair.syncer(flags);
    arrives(&hub, "v1", "configmaps", &shop, "a").await;
    for (side, plural) in [("hub", "downs"), ("edge", "ups")] {
        let line = crate::support::lines::not_served(side, plural);
        syncer.wait_for_log(&line, SOON).await;
        assert_eq!(syncer.log().matches(&line).count(), 1);
    }
    install_crd(&[&hub], &crd(&group, "downs", true)).await;
    arrives(&hub, &version, "downs", &shop, "a").await;
    install_crd(&[&edge], &crd(&group, "ups", true)).await;
    edge.create(&custom_object(&group, "ups", &shop, "a", 1)).await;
    arrives(&hub, &version, "ups", &shop, "a").await;
    let definitions = [format!("downs.{group}"), format!("ups.{group}")];
    drop_crds(&[&hub, &edge], &definitions.each_ref().map(String::as_str)).await;
}

async fn what_people_do_to_an_upsynced_object_at_the_hub_is_corrected(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&edge, &shop, &["a"], &json!({"v": "1"})).await;
    select(&hub, &json!({"upsync": [upsync_all("", &["configmaps"], &shop)]})).await;
    let _syncer = pair.syncer(flags);
    copy_equals(&hub, &shop, "a", &json!({"v": "1"})).await;
    edit(&hub, &shop, "a", &json!({"data": {"v": "tampered"}})).await;
    copy_equals(&hub, &shop, "a", &json!({"v": "1"})).await;
    let label = json!({"metadata": {"labels": {"edge.kubestellar.io/upsynced": null}}});
    edit(&hub, &shop, "a", &label).await;
    let at = ["v1", "configmaps", &shop, "a"];
    becomes(&hub, at, "gets its label back", |copy| {
        copy["metadata"]["labels"]["edge.kubestellar.io/upsynced"] == json!("true")
    })
    .await;
    hub.delete("v1", "configmaps", &shop, "a").await;
    copy_equals(&hub, &shop, "a", &json!({"v": "1"})).await;
    let origin = edge.get("v1", "configmaps", &shop, "a").await.expect("never deleted");
    assert_eq!(origin["data"], json!({"v": "1"}));
}

async fn what_the_edge_drops_disappears_at_the_hub_also_in_the_first_update(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    edge.create(&namespace(&shop)).await;
    let object = |keys: &[&str]| {
        let all: serde_json::Map<String, Value> = keys.iter().map(|&key| (key.to_owned(), json!("x"))).collect();
        let mut object = config_map(&shop, "a", json!(all));
        object["metadata"]["labels"] = json!(all);
        object["metadata"]["annotations"] = json!(all);
        object
    };
    let first = edge.create(&object(&["kept", "first", "second"])).await;
    let cluster = arrives(&edge, "v1", "namespaces", "", "kube-system").await;
    // Which cluster it is from, and at which version that was first so.
    let source = [&cluster["metadata"]["uid"], &first["metadata"]["resourceVersion"]]
        .map(|text| text.as_str().unwrap_or_default());
    select(&hub, &json!({"upsync": [upsync_all("", &["configmaps"], &shop)]})).await;
    let _syncer = pair.syncer(flags);
    arrives(&hub, "v1", "configmaps", &shop, "a").await;
    for keys in [&["kept", "second"][..], &["kept"]] {
        let object = edge.replace(&object(keys)).await;
        let copy = copy_equals(&hub, &shop, "a", &object["data"]).await;
        for field in ["labels", "annotations"] {
            let mut expected = object["metadata"][field].clone();
            expected["edge.kubestellar.io/upsynced"] = match field {
                "labels" => json!("true"),
                _ => json!(format!("ConfigMap/{shop}/a")),
            };
            if field == "annotations" {
                let uid = object["metadata"]["uid"].as_str().expect("it has one");
                expected["edge.kubestellar.io/owner"] = json!(format!("{uid}/configmaps/test"));
                expected["edge.kubestellar.io/source"] = json!(source.join("/"));
            }
            assert_eq!(copy["metadata"][field], expected, "{field}");
        }
    }
}

async fn owners_and_finalizers_of_the_edge_are_not_synced(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    edge.create(&namespace(&shop)).await;
    let holder = edge.create(&config_map(&shop, "owner", json!({}))).await;
    let mut owned = config_map(&shop, "owned", json!({"v": "1"}));
    owned["metadata"]["finalizers"] = json!(["example.org/edge"]);
    owned["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": holder["metadata"]["uid"]}]);
    edge.create(&owned).await;
    select(&hub, &json!({"upsync": [upsync_all("", &["configmaps"], &shop)]})).await;
    let _syncer = pair.syncer(flags);
    for data in [json!({"v": "1"}), json!({"v": "2"})] {
        edit(&edge, &shop, "owned", &json!({"data": data})).await;
        let copy = copy_equals(&hub, &shop, "owned", &data).await;
        assert_eq!(copy["metadata"]["finalizers"], Value::Null);
        assert_eq!(copy["metadata"]["ownerReferences"], Value::Null);
    }
    // The finalizer holds the edge object, and its copy with it, until it is done.
    edge.delete("v1", "configmaps", &shop, "owned").await;
    remains(&hub, "v1", "configmaps", &shop, "owned").await;
    edit(&edge, &shop, "owned", &json!({"metadata": {"finalizers": null}})).await;
    gone(&hub, "v1", "configmaps", &shop, "owned").await;
}

async fn an_overwrite_annotation_means_nothing_to_an_upsynced_object(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let object = |value: &str| {
        let mut object = config_map(&shop, "a", json!({"v": value}));
        object["metadata"]["annotations"] = json!({"edge.kubestellar.io/downsync-overwrite": "false"});
        object
    };
    edge.create(&namespace(&shop)).await;
    edge.create(&object("1")).await;
    select(&hub, &json!({"upsync": [upsync_all("", &["configmaps"], &shop)]})).await;
    let _syncer = pair.syncer(flags);
    copy_equals(&hub, &shop, "a", &json!({"v": "1"})).await;
    edge.replace(&object("2")).await;
    copy_equals(&hub, &shop, "a", &json!({"v": "2"})).await;
    edge.delete("v1", "configmaps", &shop, "a").await;
    gone(&hub, "v1", "configmaps", &shop, "a").await;
}

async fn a_type_that_the_edge_no_longer_serves_takes_its_copies_along_and_is_asked_for_no_more(flags: Mode) {
    no_longer_served(flags, &["leavers", "stayers"]).await;
}

async fn a_type_of_a_starred_group_goes_as_slowly(flags: Mode) {
    no_longer_served(flags, &["*"]).await;
}

/// The edge loses one of two types of a group, of which these resources are selected, while the syncer is down.
async fn no_longer_served(flags: Mode, resources: &[&str]) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, version) = own_group(&shop);
    edge.create(&namespace(&shop)).await;
    for plural in ["leavers", "stayers"] {
        install_crd(&[&hub, &edge], &crd(&group, plural, true)).await;
        edge.create(&custom_object(&group, plural, &shop, "a", 1)).await;
    }
    select(&hub, &json!({"upsync": [upsync_all(&group, resources, &shop)]})).await;
    let mut syncer = pair.syncer(flags);
    for plural in ["leavers", "stayers"] {
        arrives(&hub, &version, plural, &shop, "a").await;
    }
    let definitions = ["leavers", "stayers"].map(|plural| format!("{plural}.{group}"));
    syncer.terminate().await;
    drop_crds(&[&edge], &[&definitions[0]]).await;
    eventually("the edge no longer serves it", SOON, async || {
        match edge.try_list(&version, "leavers", &shop, "").await {
            Err(error) if code(&error) == 404 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    let mark = pair.edge.audit_mark();
    let _syncer = pair.syncer(flags);
    eventually("its copy goes", Duration::from_secs(300), async || {
        match hub.get(&version, "leavers", &shop, "a").await {
            None => Ok(()),
            Some(_) => Err("it is there"),
        }
    })
    .await;
    // It might have been an edge that starts: it had to say so ten times.
    let requests = pair.edge.requests_since(SYNCER, mark);
    let listings = requests.iter().filter(|event| event.uri == "/apis").count();
    assert!(listings >= 9, "{listings} listings of the groups");
    let marks = [pair.hub.audit_mark(), pair.edge.audit_mark()];
    edge.merge_patch(&version, "stayers", &shop, "a", &json!({"spec": {"size": 2}}))
        .await;
    let at = [version.as_str(), "stayers", &*shop, "a"];
    becomes(&hub, at, "follows", |copy| copy["spec"]["size"] == json!(2)).await;
    // Until the edge has said ten times that it lacks it, one each may be for its copies.
    let rest = Duration::from_secs(20);
    comes_to_rest("nobody asks for it", rest, Duration::from_secs(300), async || {
        let sides = [&pair.hub, &pair.edge].into_iter().zip(marks);
        let requests = sides.flat_map(|(side, mark)| side.requests_since(SYNCER, mark));
        Ok::<_, Infallible>(requests.filter(|event| event.uri.contains("leavers")).count())
    })
    .await;
    drop_crds(&[&hub, &edge], &definitions.each_ref().map(String::as_str)).await;
}
