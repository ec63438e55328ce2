//! What is deleted and created again at the hub is another object, also where it has the same name.

use serde_json::{Value, json};

use crate::bench::{At, delete_with_all, is_recreated, says, uid};
use crate::figures::{ANYWHERE, address_of, page};
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{config_map, namespace};
use crate::support::stage::{Stage, all_of, config_maps, numbered, select, stage};
use crate::support::story::{SOON, arrives, becomes, copy_equals};
use crate::support::{Objects, Syncer, eventually};

in_both_modes!(
    immutable_objects_that_are_recreated_get_their_new_content,
    immutable_objects_that_were_recreated_while_the_syncer_was_down_get_their_new_content,
    immutable_objects_that_go_up_and_are_recreated_get_their_new_content,
    immutable_objects_that_go_up_and_were_recreated_while_the_syncer_was_down_get_their_new_content,
    a_headless_service_that_was_recreated_with_an_address_has_one,
    a_job_that_is_recreated_is_another_job_at_the_edge,
    a_job_that_was_recreated_while_the_syncer_was_down_is_another_job_at_the_edge,
    a_pod_that_is_recreated_is_another_pod_at_the_edge,
    what_waits_for_the_end_of_its_former_copy_is_pending_and_its_finalizers_are_named,
);

/// So many at once, since what one looks like depends on chance.
const COUNT: usize = 5;

fn frozen(shop: &str, name: &str, value: &str) -> Value {
    let mut object = config_map(shop, name, json!({"v": value}));
    object["immutable"] = json!(true);
    object
}

/// The side that frozen objects come from, and the one that they go to.
fn sides(stage: &Stage, goes_up: bool) -> (&Objects, &Objects) {
    if goes_up {
        (&stage.edge, &stage.hub)
    } else {
        (&stage.hub, &stage.edge)
    }
}

async fn frozen_copies(stage: &Stage, goes_up: bool, flags: Mode) -> (Syncer, Vec<Value>) {
    let Stage { pair, shop, hub, .. } = stage;
    let (from, to) = sides(stage, goes_up);
    from.create(&namespace(shop)).await;
    for name in numbered(COUNT) {
        from.create(&frozen(shop, &name, "1")).await;
    }
    let upsync = json!([{"apiGroup": "", "resources": ["configmaps"], "namespaces": [shop], "names": ["*"]}]);
    let spec = if goes_up {
        json!({"upsync": upsync})
    } else {
        config_maps(shop, &["*"])
    };
    select(hub, &spec).await;
    let syncer = pair.syncer(flags);
    let mut copies = Vec::new();
    for name in numbered(COUNT) {
        copies.push(copy_equals(to, shop, &name, &json!({"v": "1"})).await);
    }
    (syncer, copies)
}

/// Deletes them and creates them at once with other content.
async fn recreated(hub: &Objects, shop: &str) {
    for name in numbered(COUNT) {
        hub.delete("v1", "configmaps", shop, &name).await;
        hub.create(&frozen(shop, &name, "2")).await;
    }
}

async fn have_new_content(edge: &Objects, shop: &str, before: &[Value]) {
    for (name, before) in numbered(COUNT).iter().zip(before) {
        let copy = copy_equals(edge, shop, name, &json!({"v": "2"})).await;
        assert_ne!(uid(&copy), uid(before));
        assert_eq!(copy["immutable"], true);
    }
}

async fn get_their_new_content(goes_up: bool, flags: Mode) {
    let stage = stage().await;
    let (from, to) = sides(&stage, goes_up);
    let (_syncer, before) = frozen_copies(&stage, goes_up, flags).await;
    recreated(from, &stage.shop).await;
    have_new_content(to, &stage.shop, &before).await;
}

async fn get_their_new_content_of_while_the_syncer_was_down(goes_up: bool, flags: Mode) {
    let stage = stage().await;
    let (from, to) = sides(&stage, goes_up);
    let (mut syncer, before) = frozen_copies(&stage, goes_up, flags).await;
    syncer.terminate().await;
    recreated(from, &stage.shop).await;
    let _syncer = stage.pair.syncer(flags);
    have_new_content(to, &stage.shop, &before).await;
}

async fn immutable_objects_that_are_recreated_get_their_new_content(flags: Mode) {
    get_their_new_content(false, flags).await;
}

async fn immutable_objects_that_were_recreated_while_the_syncer_was_down_get_their_new_content(flags: Mode) {
    get_their_new_content_of_while_the_syncer_was_down(false, flags).await;
}

async fn immutable_objects_that_go_up_and_are_recreated_get_their_new_content(flags: Mode) {
    get_their_new_content(true, flags).await;
}

async fn immutable_objects_that_go_up_and_were_recreated_while_the_syncer_was_down_get_their_new_content(flags: Mode) {
    get_their_new_content_of_while_the_syncer_was_down(true, flags).await;
}

/// API servers keep `None` silently.
async fn a_headless_service_that_was_recreated_with_an_address_has_one(flags: Mode) {
    let stage = stage().await;
    let Stage { pair, shop, hub, edge } = &stage;
    let service = |spec: Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": shop, "name": "it"}, "spec": spec});
    let headless = service(json!({"clusterIP": "None", "selector": {"a": "1"}, "ports": [{"port": 80}]}));
    let of: At<'_> = ["v1", "services", shop, "it"];
    let (mut syncer, _) = copied(&stage, &headless, &[("", "services")], of, flags).await;
    syncer.terminate().await;
    hub.delete("v1", "services", shop, "it").await;
    hub.create(&service(json!({"selector": {"a": "2"}, "ports": [{"port": 81}]})))
        .await;
    let _syncer = pair.syncer(flags);
    let has_address = |copy: &Value| copy["spec"]["clusterIP"] != "None" && copy["spec"]["selector"]["a"] == "2";
    becomes(edge, of, "has an address", has_address).await;
}

fn pod_spec() -> Value {
    json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "example.org/a:1"}]})
}

fn job(shop: &str) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": shop, "name": "it"},
        "spec": {"template": {"spec": pod_spec()}}})
}

fn the_job(shop: &str) -> At<'_> {
    ["batch/v1", "jobs", shop, "it"]
}

async fn copied(stage: &Stage, object: &Value, types: &[(&str, &str)], of: At<'_>, flags: Mode) -> (Syncer, String) {
    let Stage { pair, shop, hub, edge } = stage;
    hub.create(&namespace(shop)).await;
    hub.create(object).await;
    select(hub, &all_of(shop, types)).await;
    let syncer = pair.syncer(flags);
    let [api_version, plural, namespace, name] = of;
    let copy = arrives(edge, api_version, plural, namespace, name).await;
    (syncer, uid(&copy))
}

/// Two jobs of the same content are two runs.
async fn a_job_that_is_recreated_is_another_job_at_the_edge(flags: Mode) {
    let stage = stage().await;
    let Stage { shop, hub, edge, .. } = &stage;
    let (_syncer, before) = copied(&stage, &job(shop), &[("batch", "jobs")], the_job(shop), flags).await;
    delete_with_all(hub, the_job(shop)).await;
    hub.create(&job(shop)).await;
    let again = uid(&is_recreated(edge, the_job(shop), &before).await);
    // And with another content, which no job can get by an update.
    delete_with_all(hub, the_job(shop)).await;
    let mut other = job(shop);
    other["spec"]["template"]["spec"]["containers"][0]["image"] = json!("example.org/a:2");
    hub.create(&other).await;
    let copy = is_recreated(edge, the_job(shop), &again).await;
    let image = &copy["spec"]["template"]["spec"]["containers"][0]["image"];
    assert_eq!(image, "example.org/a:2");
}

async fn a_job_that_was_recreated_while_the_syncer_was_down_is_another_job_at_the_edge(flags: Mode) {
    let stage = stage().await;
    let Stage { pair, shop, hub, edge } = &stage;
    let (mut syncer, before) = copied(&stage, &job(shop), &[("batch", "jobs")], the_job(shop), flags).await;
    syncer.terminate().await;
    delete_with_all(hub, the_job(shop)).await;
    hub.create(&job(shop)).await;
    let _syncer = pair.syncer(flags);
    is_recreated(edge, the_job(shop), &before).await;
}

async fn a_pod_that_is_recreated_is_another_pod_at_the_edge(flags: Mode) {
    let stage = stage().await;
    let Stage { shop, hub, edge, .. } = &stage;
    let of = ["v1", "pods", shop.as_str(), "it"];
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": shop, "name": "it"},
        "spec": pod_spec()});
    let (_syncer, before) = copied(&stage, &pod, &[("", "pods")], of, flags).await;
    hub.delete("v1", "pods", shop, "it").await;
    hub.create(&pod).await;
    is_recreated(edge, of, &before).await;
}

async fn what_waits_for_the_end_of_its_former_copy_is_pending_and_its_finalizers_are_named(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    hub.create(&config_map(&shop, "a", json!({"v": "1"}))).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let mut syncer = pair.syncer(&[flags, &[ANYWHERE]].concat());
    let address = address_of(&mut syncer).await;
    let first = copy_equals(&edge, &shop, "a", &json!({"v": "1"})).await;
    let finalizers = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
    let at: At = ["v1", "configmaps", &shop, "a"];
    edge.merge_patch("v1", "configmaps", &shop, "a", &finalizers(json!(["example.org/wait"])))
        .await;
    hub.delete("v1", "configmaps", &shop, "a").await;
    becomes(&edge, at, "is being deleted", |object| {
        !object["metadata"]["deletionTimestamp"].is_null()
    })
    .await;
    hub.create(&config_map(&shop, "a", json!({"v": "2"}))).await;
    let words = [
        "reason=DeleteBlocked",
        &format!("ConfigMap/{shop}/a"),
        "still being deleted",
        "example.org/wait",
    ];
    says(&mut syncer, &words).await;
    hub.replace(&config_map(&shop, "a", json!({"v": "3"}))).await;
    eventually("it is pending", SOON, async || {
        let page = page(address).await.map_err(|error| error.to_string())?;
        let pending = "edge_syncer_objects{direction=\"downsync\",state=\"out_of_sync\"} 1";
        if page.lines().any(|line| line == pending) {
            Ok(())
        } else {
            Err(page)
        }
    })
    .await;
    edge.merge_patch("v1", "configmaps", &shop, "a", &finalizers(Value::Null))
        .await;
    is_recreated(&edge, at, &uid(&first)).await;
    copy_equals(&edge, &shop, "a", &json!({"v": "3"})).await;
    says(&mut syncer, &["works again", &format!("ConfigMap/{shop}/a")]).await;
    let log = syncer.log();
    assert_eq!(log.matches("example.org/wait").count(), 1, "{log}");
}
