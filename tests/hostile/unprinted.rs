//! What the hub wants to be false or empty, which servers do not print, and what only a subresource can change. Found from
//! outside.

use http::Method;
use serde_json::{Value, json};

use crate::managers::{create_as, deployment, patch_as};
use crate::support::kubeconfig::base64;
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{namespace, path};
use crate::support::stage::{Stage, all_of, select, stage};
use crate::support::story::{arrives, becomes};

in_both_modes!(
    what_the_hub_wants_to_be_empty_is_empty_at_the_edge,
    a_pod_that_was_resized_at_the_edge_gets_what_else_the_hub_changes,
    a_request_for_a_certificate_that_is_recreated_is_another_request_at_the_edge,
);

const NETWORKING: &str = "networking.k8s.io/v1";
const POLICIES: &str = "networkpolicies";
const DISCOVERY: &str = "discovery.k8s.io/v1";
const CERTIFICATES: &str = "certificates.k8s.io/v1";
const REQUESTS: &str = "certificatesigningrequests";

fn policy(shop: &str, ingress: &Value) -> Value {
    json!({"apiVersion": NETWORKING, "kind": "NetworkPolicy", "metadata": {"namespace": shop, "name": "it"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": ingress}})
}

/// A policy for all pods, or for some.
fn of_pods(shop: &str, is_for_all: bool) -> Value {
    let mut policy = policy(shop, &json!([]));
    policy["metadata"]["name"] = json!("all");
    if !is_for_all {
        policy["spec"]["podSelector"] = json!({"matchLabels": {"only": "some"}});
    }
    policy
}

fn slice(shop: &str, endpoints: &Value) -> Value {
    json!({"apiVersion": DISCOVERY, "kind": "EndpointSlice", "metadata": {"namespace": shop, "name": "it"},
        "addressType": "IPv4", "endpoints": endpoints, "ports": [{"name": "http", "port": 80}]})
}

/// A Deployment in which fields have these values, or as good as none.
fn app(shop: &str, name: &str, is_empty: bool) -> Value {
    let or_empty = |value: Value, empty: Value| if is_empty { empty } else { value };
    let mut app = deployment(
        shop,
        name,
        &json!({"paused": !is_empty, "minReadySeconds": or_empty(json!(5), json!(0))}),
    );
    let pod = &mut app["spec"]["template"]["spec"];
    pod["hostPID"] = json!(!is_empty);
    pod["nodeSelector"] = or_empty(json!({"disk": "ssd"}), json!({}));
    pod["tolerations"] = or_empty(json!([{"key": "a", "operator": "Exists"}]), json!([]));
    pod["containers"][0]["command"] = or_empty(json!(["x"]), json!([]));
    pod["containers"][0]["env"][1]["value"] = or_empty(json!("1"), json!(""));
    app
}

fn is_empty(copy: &Value) -> bool {
    let (spec, pod) = (&copy["spec"], &copy["spec"]["template"]["spec"]);
    let container = &pod["containers"][0];
    let fields = [
        &spec["paused"],
        &spec["minReadySeconds"],
        &pod["hostPID"],
        &pod["nodeSelector"],
        &pod["tolerations"],
    ];
    let of_container = [&container["command"], &container["env"][1]["value"]];
    fields.into_iter().chain(of_container).all(Value::is_null) && container["env"][1]["name"] == "DEBUG"
}

async fn what_the_hub_wants_to_be_empty_is_empty_at_the_edge(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    for side in [&hub, &edge] {
        side.create(&namespace(&shop)).await;
    }
    // What lets everything in, and is otherwise, was there before.
    create_as(&edge, "helm", &policy(&shop, &json!([{}]))).await;
    hub.apply_as("flux", &policy(&shop, &json!([]))).await;
    for (side, is_for_all) in [(&edge, false), (&hub, true)] {
        create_as(side, "helm", &of_pods(&shop, is_for_all)).await;
    }
    let address = json!([{"addresses": ["10.1.2.3"]}]);
    edge.apply_as("helm", &slice(&shop, &address)).await;
    hub.apply_as("flux", &slice(&shop, &json!([]))).await;
    for name in ["applied", "noted"] {
        create_as(&edge, "helm", &app(&shop, name, false)).await;
    }
    hub.apply_as("flux", &app(&shop, "applied", true)).await;
    let mut noted = app(&shop, "noted", true);
    let note = noted.to_string();
    noted["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": note});
    create_as(&hub, "kubectl-client-side-apply", &noted).await;
    select(
        &hub,
        &all_of(
            &shop,
            &[
                ("apps", "deployments"),
                ("networking.k8s.io", POLICIES),
                ("discovery.k8s.io", "endpointslices"),
            ],
        ),
    )
    .await;
    let _syncer = pair.syncer(flags);
    let lets_nothing_in = |copy: &Value| copy["spec"]["ingress"].is_null() && copy["metadata"]["labels"].is_object();
    let at = [NETWORKING, POLICIES, &*shop, "it"];
    becomes(&edge, at, "lets nothing in", lets_nothing_in).await;
    let is_as_wanted = async |name: &str| {
        let at = ["apps/v1", "deployments", &*shop, name];
        becomes(&edge, at, "is as the hub wants it", is_empty).await;
    };
    for name in ["applied", "noted"] {
        is_as_wanted(name).await;
    }
    let all = [NETWORKING, POLICIES, &*shop, "all"];
    let is_for_all = |copy: &Value| copy["spec"]["podSelector"] == json!({});
    becomes(&edge, all, "is for all pods", is_for_all).await;
    let slices = [DISCOVERY, "endpointslices", &*shop, "it"];
    let has_none = |copy: &Value| copy["endpoints"].as_array().is_none_or(Vec::is_empty);
    becomes(&edge, slices, "has no endpoints", has_none).await;
    // Whoever changes that at the edge is corrected.
    let some = json!({"spec": {"podSelector": {"matchLabels": {"only": "some"}}}});
    patch_as(&edge, "operator", &path(NETWORKING, POLICIES, &shop, "all"), &some).await;
    becomes(&edge, all, "is for all pods again", is_for_all).await;
    let more = json!({"endpoints": address});
    patch_as(
        &edge,
        "operator",
        &path(DISCOVERY, "endpointslices", &shop, "it"),
        &more,
    )
    .await;
    becomes(&edge, slices, "has no endpoints again", has_none).await;
    let open = json!({"spec": {"ingress": [{}]}});
    patch_as(&edge, "operator", &path(NETWORKING, POLICIES, &shop, "it"), &open).await;
    becomes(&edge, at, "lets nothing in again", lets_nothing_in).await;
    for name in ["applied", "noted"] {
        let paused = json!({"spec": {"paused": true, "template": {"spec": {"hostPID": true}}}});
        patch_as(&edge, "operator", &path("apps/v1", "deployments", &shop, name), &paused).await;
        is_as_wanted(name).await;
    }
}

async fn a_pod_that_was_resized_at_the_edge_gets_what_else_the_hub_changes(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    let resources = json!({"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "64Mi"}});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": shop, "name": "it"}, "spec": {
        "containers": [{"name": "c", "image": "example.org/c:1", "resources": resources}]}});
    hub.apply_as("flux", &pod).await;
    select(&hub, &all_of(&shop, &[("", "pods")])).await;
    let _syncer = pair.syncer(flags);
    arrives(&edge, "v1", "pods", &shop, "it").await;
    let more = json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "150m"}}}]}});
    let target = format!("{}/resize?fieldManager=vpa-updater", path("v1", "pods", &shop, "it"));
    let strategic = "application/strategic-merge-patch+json";
    let resized = edge.send(Method::PATCH, &target, strategic, Some(&more)).await;
    resized.unwrap_or_else(|error| panic!("it cannot be resized: {error}"));
    let mut other = pod.clone();
    other["spec"]["containers"][0]["image"] = json!("example.org/c:2");
    hub.apply_as("flux", &other).await;
    let copy = becomes(&edge, ["v1", "pods", &shop, "it"], "has the other image", |copy| {
        copy["spec"]["containers"][0]["image"] == "example.org/c:2"
    })
    .await;
    let found = &copy["spec"]["containers"][0]["resources"];
    assert_eq!(
        (&found["requests"]["cpu"], &found["limits"]["cpu"]),
        (&json!("150m"), &json!("200m"))
    );
}

/// A request for a certificate for this name.
fn request(name: &str, of: &str) -> Value {
    let key = rcgen::KeyPair::generate().expect("a key can be made");
    let params = rcgen::CertificateParams::new([of.to_owned()]).expect("it is a name");
    let pem = params
        .serialize_request(&key)
        .and_then(|request| request.pem())
        .expect("it can be written");
    json!({"apiVersion": CERTIFICATES, "kind": "CertificateSigningRequest", "metadata": {"name": name},
        "spec": {"request": base64(&pem), "signerName": "example.org/signer", "usages": ["client auth"]}})
}

async fn a_request_for_a_certificate_that_is_recreated_is_another_request_at_the_edge(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    hub.create(&namespace(&shop)).await;
    hub.create(&request(&shop, "one")).await;
    let requests =
        json!([{"group": "certificates.k8s.io", "apiVersion": "v1", "resource": REQUESTS, "objects": [shop]}]);
    select(&hub, &json!({"clusterScope": requests})).await;
    let syncer = pair.syncer(flags);
    let at = [CERTIFICATES, REQUESTS, "", &*shop];
    arrives(&edge, CERTIFICATES, REQUESTS, "", &shop).await;
    drop(syncer);
    hub.delete(CERTIFICATES, REQUESTS, "", &shop).await;
    let two = request(&shop, "two");
    hub.create(&two).await;
    let _syncer = pair.syncer(flags);
    becomes(&edge, at, "is the other request", |copy| {
        copy["spec"]["request"] == two["spec"]["request"]
    })
    .await;
}
