//! Types of the service cluster in an export: scenarios A1 to A10.

use serde_json::{Value, json};

use crate::of_role::Agent;
use crate::stage::Which;
use crate::support::story::{SOON, arrives, becomes, crd};
use crate::support::{eventually, holds_throughout};
use crate::world::{A_WHILE, APIS, SYNCAGENT, World, create};

pub(crate) async fn a_type_is_published_and_objects_of_it_have_copies(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let _agent = world.agent(&[]);
    let schema = world.schema_of("shops").await;
    let (hash, rest) = schema.split_once('.').expect("it has parts");
    assert!(hash.len() == 9 && hash.starts_with('v'), "{schema}");
    assert_eq!(rest, format!("shops.{}", world.group));
    let found = arrives(&world.provider, APIS, "apiresourceschemas", "", &schema).await;
    let marks = &found["metadata"];
    for map in ["labels", "annotations"] {
        assert_eq!(marks[map]["syncagent.kcp.io/agent-name"], world.agent_name(), "{marks}");
    }
    let export = world.exports(1, 1).await;
    assert_eq!(export["spec"]["latestResourceSchemas"], json!([schema]));
    assert_eq!(export["spec"]["permissionClaims"][0]["resource"], "events");
    let consumer = world.consumer("a").await;
    world.open(&consumer, "web", &json!({"size": 1})).await;
    let copy = world.copied(&consumer, "web", &json!({"size": 1})).await;
    assert_eq!(copy["metadata"]["namespace"], consumer.id);
    assert_eq!(
        copy["metadata"]["labels"]["syncagent.kcp.io/agent-name"],
        world.agent_name()
    );
    world.edit(&consumer, "web", &json!({"spec": {"size": 2}})).await;
    world.copied(&consumer, "web", &json!({"size": 2})).await;
}

pub(crate) async fn a_type_that_changes_back_has_its_first_schema_again(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let _agent = world.agent(&[]);
    let first = world.exports(1, 1).await["spec"]["latestResourceSchemas"][0].clone();
    let of_kcp = [APIS, "apiexports", "", &world.export];
    let definition = format!("shops.{}", world.group);
    let at = ["apiextensions.k8s.io/v1", "customresourcedefinitions", "", &definition];
    for (short, is_first) in [(json!(["sp"]), false), (json!(null), true)] {
        let patch = json!({"spec": {"names": {"shortNames": short}}});
        world.local.merge_patch(at[0], at[1], at[2], at[3], &patch).await;
        becomes(&world.provider, of_kcp, "has another schema", |it| {
            let schemas = it["spec"]["latestResourceSchemas"].as_array();
            schemas.is_some_and(|all| all.len() == 1 && (all[0] == first) == is_first)
        })
        .await;
    }
    let all = world.provider.list(APIS, "apiresourceschemas", "", "").await;
    assert_eq!(all.len(), 2, "none is deleted");
}

pub(crate) async fn the_flag_of_the_export_leads_to_its_slice_or_to_its_own_urls(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let consumer = world.consumer("a").await;
    let mut flags = world.flags();
    flags.retain(|flag| !flag.starts_with("--apiexportendpointslice-ref"));
    flags.push(format!("--apiexport-ref={}", world.export));
    flags.push(format!("--agent-name={}", world.agent_name()));
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let agent = Agent::of_role("publish", &flags);
    world.open(&consumer, "web", &json!({"size": 1})).await;
    world.copied(&consumer, "web", &json!({"size": 1})).await;
    drop(agent);
    if which == Which::Real {
        return;
    }
    // An older kcp has no slices.
    let slice = [APIS, "apiexportendpointslices", "", &world.export];
    let found = world.provider.get(slice[0], slice[1], slice[2], slice[3]).await;
    let urls = found.expect("kcp has made it")["status"]["endpoints"].clone();
    world.provider.delete(slice[0], slice[1], slice[2], slice[3]).await;
    let status = json!({"virtualWorkspaces": urls});
    world
        .provider
        .patch_status(APIS, "apiexports", "", &world.export, &status)
        .await;
    let _agent = Agent::of_role("publish", &flags);
    world.edit(&consumer, "web", &json!({"spec": {"size": 2}})).await;
    world.copied(&consumer, "web", &json!({"size": 2})).await;
}

pub(crate) async fn a_slice_may_be_in_another_workspace_than_its_export(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let elsewhere = world.visitor("slices").await;
    create(
        &elsewhere.objects,
        &json!({"apiVersion": APIS, "kind": "APIExportEndpointSlice", "metadata": {"name": world.export},
            "spec": {"export": {"path": world.provider_path, "name": world.export}}}),
    )
    .await;
    world.grant(&elsewhere.objects).await;
    let path = format!("/clusters/{}", elsewhere.path);
    let file = world.stage.kubeconfig(&world.folder, &path, Some(&world.user), |_| {});
    let _agent = world.agent(&[&format!("--kcp-kubeconfig={}", file.display())]);
    world.exports(1, 1).await;
    let consumer = world.consumer("a").await;
    world.open(&consumer, "web", &json!({"size": 1})).await;
    world.copied(&consumer, "web", &json!({"size": 1})).await;
}

pub(crate) async fn what_is_not_there_or_wrong_ends_the_agent_with_its_name(which: Which) {
    let world = World::of(which).await;
    let root = world.stage.kubeconfig(&world.folder, "", Some(&world.user), |_| {});
    for (flag, words) in [
        (format!("--kcp-kubeconfig={}", root.display()), "/clusters/"),
        ("--apiexportendpointslice-ref=none".to_owned(), "none"),
        ("--disabled-controllers=nobody".to_owned(), "nobody"),
        (format!("--agent-name={}", "a".repeat(64)), "agent-name"),
    ] {
        let mut agent = world.agent(&[&flag]);
        let status = agent.0.wait(SOON).await;
        assert!(!status.success(), "{flag}");
        let log = agent.0.log();
        assert!(log.contains(words), "{flag}: {log}");
    }
}

pub(crate) async fn consumers_see_what_a_projection_makes_of_a_type(which: Which) {
    let world = World::of(which).await;
    let group = format!("stores.{}", world.group);
    let projection = json!({"group": group, "kind": "Store", "plural": "stores", "shortNames": ["st"],
        "versions": {"v1": "v7"}, "categories": []});
    world.publish(&json!({"projection": projection})).await;
    let _agent = world.agent(&[]);
    let schema = world.schema_of("shops").await;
    let found = arrives(&world.provider, APIS, "apiresourceschemas", "", &schema).await;
    let spec = &found["spec"];
    assert_eq!(spec["names"]["listKind"], "StoreList");
    assert_eq!(spec["names"]["shortNames"], json!(["st"]));
    assert_eq!(
        (&spec["scope"], &spec["versions"][0]["name"]),
        (&json!("Namespaced"), &json!("v7"))
    );
    let consumer = world.consumer("a").await;
    let version = format!("{group}/v7");
    let store = json!({"apiVersion": version, "kind": "Store", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"size": 1}});
    create(&consumer.objects, &store).await;
    let copy = world.copied(&consumer, "web", &json!({"size": 1})).await;
    assert_eq!(copy["kind"], "Shop");
    world.operate(&copy, &json!({"ready": 1})).await;
    becomes(
        &consumer.objects,
        [&version, "stores", "shop", "web"],
        "has its status",
        |it| it["status"]["ready"] == 1,
    )
    .await;
}

pub(crate) async fn a_wrong_one_is_said_in_an_event_and_holds_up_no_other(which: Which) {
    let world = World::of(which).await;
    world.define_as(&carts(&world)).await;
    // A type that is not there, no version that is there or is served, versions that become one.
    let missing = json!({"resource": {"apiGroup": "nowhere.example.org", "kind": "Nothing"}});
    let version = json!({"resource": {"apiGroup": world.group, "kind": "Shop", "versions": ["v9"]}});
    let both = json!({"resource": {"apiGroup": world.group, "kind": "Shop", "versions": ["v1"], "version": "v1"}});
    let carts = |versions: Value, projection: Value| json!({"resource": {"apiGroup": world.group, "kind": "Cart", "versions": versions}, "projection": projection});
    let wrong = [
        ("missing", missing),
        ("version", version),
        ("both", both),
        ("unserved", carts(json!(["v3"]), json!({}))),
        (
            "same",
            carts(json!(["v2", "v10"]), json!({"versions": {"v2": "v1", "v10": "v1"}})),
        ),
        ("which", carts(json!(["v2", "v10"]), json!({"version": "v1"}))),
    ];
    for (name, spec) in &wrong {
        world.local.create(&world.published(name, "Shop", spec)).await;
    }
    world.publish(&json!({})).await;
    let _agent = world.agent(&[]);
    world.exports(1, 1).await;
    for (name, _) in &wrong {
        let name = world.name_of(name);
        eventually(&format!("there is an Event about {name}"), SOON, async || {
            let all = world.local.list("v1", "events", "default", "").await;
            let is_it = |event: &Value| {
                event["involvedObject"]["name"] == *name
                    && event["reason"] == "ReconcilingError"
                    && event["type"] == "Warning"
            };
            all.iter().any(is_it).then_some(()).ok_or("there is none")
        })
        .await;
    }
    let consumer = world.consumer("a").await;
    world.open(&consumer, "web", &json!({"size": 1})).await;
    world.copied(&consumer, "web", &json!({"size": 1})).await;
}

/// A type with versions that are not in order, of which one is not served.
fn carts(world: &World) -> Value {
    let mut definition = crd(&world.group, "carts", true);
    let version = definition["spec"]["versions"][0].clone();
    let versions = [("v10", true, true), ("v2", true, false), ("v3", false, false)].map(|(name, served, storage)| {
        let mut version = version.clone();
        version["name"] = json!(name);
        version["served"] = json!(served);
        version["storage"] = json!(storage);
        version
    });
    definition["spec"]["versions"] = json!(versions);
    definition
}

pub(crate) async fn versions_and_scope_are_those_of_the_projection(which: Which) {
    let world = World::of(which).await;
    world.define_as(&carts(&world)).await;
    let more = json!({"resource": {"apiGroup": world.group, "kind": "Cart", "versions": ["v2", "v10"]},
        "projection": {"versions": {"v10": "v1beta1"}, "scope": "Cluster"}});
    world.local.create(&world.published("carts", "Cart", &more)).await;
    let _agent = world.agent(&[]);
    let schema = world.schema_of("carts").await;
    let found = arrives(&world.provider, APIS, "apiresourceschemas", "", &schema).await;
    let spec = &found["spec"];
    let versions: Vec<_> = spec["versions"].as_array().into_iter().flatten().collect();
    let versions: Vec<_> = versions.iter().map(|it| (&it["name"], &it["storage"])).collect();
    assert_eq!(
        versions,
        [(&json!("v1beta1"), &json!(true)), (&json!("v2"), &json!(false))]
    );
    assert_eq!(
        (&spec["scope"], &spec["conversion"]),
        (&json!("Cluster"), &json!({"strategy": "None"}))
    );
    let consumer = world.consumer("a").await;
    for (version, name) in [("v1beta1", "one"), ("v2", "two")] {
        let cart = json!({"apiVersion": format!("{}/{version}", world.group), "kind": "Cart", "metadata": {"name": name},
            "spec": {"by": version}});
        create(&consumer.objects, &cart).await;
    }
    let of = format!("syncagent.kcp.io/remote-object-cluster={}", consumer.id);
    eventually("both have copies", SOON, async || {
        let all = world
            .local
            .list(&format!("{}/v10", world.group), "carts", &consumer.id, &of)
            .await;
        let mut made: Vec<_> = all.iter().map(|copy| copy["spec"]["by"].to_string()).collect();
        made.sort();
        (made == ["\"v1beta1\"", "\"v2\""])
            .then_some(())
            .ok_or(format!("{all:?}"))
    })
    .await;
}

pub(crate) async fn a_built_in_type_is_published_in_another_group(which: Which) {
    let world = World::of(which).await;
    let verbs = ["get", "list", "watch", "create", "update", "patch", "delete"];
    world
        .allow(
            "maps",
            json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]),
        )
        .await;
    let group = format!("maps.{}", world.group);
    let spec = json!({"resource": {"apiGroup": "", "kind": "ConfigMap", "versions": ["v1"]},
        "projection": {"group": group}});
    world.local.create(&world.published("maps", "ConfigMap", &spec)).await;
    let mut agent = world.agent(&[]);
    let schema = world.schema_of("maps").await;
    assert!(schema.ends_with(&format!(".configmaps.{group}")), "{schema}");
    let consumer = world.consumer("a").await;
    let map = json!({"apiVersion": format!("{group}/v1"), "kind": "ConfigMap",
        "metadata": {"name": "web", "namespace": "shop"}, "data": {"k": "1"}});
    create(&consumer.objects, &map).await;
    let of = format!("syncagent.kcp.io/remote-object-cluster={}", consumer.id);
    eventually("its copy is there", SOON, async || {
        let all = world.local.list("v1", "configmaps", "", &of).await;
        let data = all.first().map(|copy| copy["data"].clone());
        (data == Some(json!({"k": "1"})))
            .then_some(())
            .ok_or(format!("{all:?}"))
    })
    .await;
    // It has no status: nobody asks for one.
    let requests = world.requests();
    assert!(
        !requests.iter().any(|event| event.uri.contains("/status")),
        "{requests:?}"
    );
    assert!(agent.0.is_running());
}

pub(crate) async fn what_others_have_put_into_the_export_stays(which: Which) {
    let world = World::of(which).await;
    let foreign = format!("v1.others.{}", world.group);
    let schema = json!({"apiVersion": APIS, "kind": "APIResourceSchema", "metadata": {"name": foreign},
        "spec": {"group": world.group, "scope": "Cluster",
        "names": {"kind": "Other", "listKind": "OtherList", "plural": "others", "singular": "other"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"type": "object"}}]}});
    create(&world.provider, &schema).await;
    let claim = json!({"resource": "configmaps", "all": true});
    let spec = json!({"spec": {"latestResourceSchemas": [foreign], "permissionClaims": [claim]}});
    world
        .provider
        .merge_patch(APIS, "apiexports", "", &world.export, &spec)
        .await;
    world.publish(&json!({})).await;
    let _agent = world.agent(&[]);
    let export = world.exports(2, 2).await;
    let schemas = export["spec"]["latestResourceSchemas"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    assert!(schemas.contains(&json!(foreign)), "{schemas:?}");
    let claims = export["spec"]["permissionClaims"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    assert!(claims.contains(&claim), "{claims:?}");
    let name = world.name_of("shops");
    world.local.delete(SYNCAGENT, "publishedresources", "", &name).await;
    holds_throughout("its schema stays listed", A_WHILE, async || {
        let now = world
            .provider
            .get(APIS, "apiexports", "", &world.export)
            .await
            .unwrap_or_default();
        (now["spec"] == export["spec"]).then_some(()).ok_or(now)
    })
    .await;
}

pub(crate) async fn claims_are_added_as_syncing_needs_them(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let _agent = world.agent(&[]);
    world.exports(1, 1).await;
    let secret = json!({"identifier": "keys", "origin": "kcp", "kind": "Secret",
        "object": {"reference": {"path": "spec.secret"}}});
    // A type of the export itself needs no claim.
    let own = json!({"identifier": "own", "origin": "kcp", "group": world.group, "version": "v1", "resource": "shops",
        "object": {"reference": {"path": "spec.other"}}});
    world.republish(&json!({"related": [secret, own]})).await;
    world.exports(1, 3).await;
    world
        .republish(&json!({"related": null, "enableWorkspacePaths": true}))
        .await;
    let export = world.exports(1, 4).await;
    let claims = export["spec"]["permissionClaims"].as_array().expect("there are some");
    let names: Vec<&str> = claims.iter().filter_map(|claim| claim["resource"].as_str()).collect();
    assert_eq!(names, ["events", "namespaces", "secrets", "logicalclusters"]);
}

pub(crate) async fn a_type_may_be_published_and_not_synced(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({"synchronization": {"enabled": false}})).await;
    let agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    world.open(&consumer, "web", &json!({"size": 1})).await;
    let nothing = async |why: &str| {
        holds_throughout(why, A_WHILE, async || {
            let all = world.copies(&consumer).await;
            all.is_empty().then_some(()).ok_or(format!("{all:?}"))
        })
        .await;
    };
    nothing("nothing is synced").await;
    drop(agent);
    world.republish(&json!({"synchronization": null})).await;
    let agent = world.agent(&["--disabled-controllers=sync"]);
    nothing("nor where that part is disabled").await;
    drop(agent);
    let _agent = world.agent(&["--disabled-controllers=apiexport,apiresourceschema"]);
    // One agent publishes, another one syncs.
    world.copied(&consumer, "web", &json!({"size": 1})).await;
}

#[tokio::test]
async fn a_shard_that_has_another_address_from_here_is_reached() {
    let world = World::of(Which::Simulated).await;
    let simulated = world.stage.simulated();
    let here = simulated.url.trim_start_matches("https://").to_owned();
    simulated.state().shards[0] = "https://shard.internal:6443".to_owned();
    world.publish(&json!({})).await;
    let service = world.service.url().to_owned();
    let _agent = world.agent(&[
        &format!("--apiexport-hostport-override=shard.internal:6443={here}"),
        &format!("--kubeconfig-host-override={service}"),
    ]);
    let consumer = world.consumer("a").await;
    world.open(&consumer, "web", &json!({"size": 1})).await;
    world.copied(&consumer, "web", &json!({"size": 1})).await;
}

/// An older kcp does not serve at once what discovery lists, a newer one has an empty list for it: the objects that were
/// there before are found.
#[tokio::test]
async fn a_type_that_is_listed_and_not_served_yet_is_waited_for() {
    for is_empty in [true, false] {
        let world = World::of(Which::Simulated).await;
        {
            let mut state = world.stage.simulated().state();
            state.faults.empty_until_served = is_empty;
            state.times.exported = std::time::Duration::from_secs(4);
        }
        world.publish(&json!({})).await;
        let _agent = world.agent(&[]);
        let consumer = world.consumer("a").await;
        world.open(&consumer, "web", &json!({"size": 1})).await;
        world.copied(&consumer, "web", &json!({"size": 1})).await;
    }
}
