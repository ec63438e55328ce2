//! Starting, stopping, bad input and servers that are away: what a person sees and what continues meanwhile.

use std::time::Duration;

use crate::support::objects::{config_map, namespace};
use crate::support::stage::{Stage, all_of, config_maps, select, stage, stock};
use crate::support::story::{SOON, arrives, copy_equals, crd, custom_object, drop_crds};
use crate::support::{
    Ca, Credential, KubeconfigParts, Pair, PairOptions, SYNCER, ServerOptions, Syncer, User, eventually, lines,
    shared_pair, wait_for_crd,
};
use serde_json::{Value, json};

/// The two seconds of the spec, and what a busy machine may add: less than any time limit that an end could wait for.
const AT_ONCE: Duration = Duration::from_secs(25);

/// Creates one `ConfigMap` in a namespace at the hub, and selects it.
async fn one_config_map(pair: &Pair, shop: &str) {
    let hub = pair.hub.objects();
    stock(&hub, shop, &["a"], &json!({"v": "1"})).await;
    select(&hub, &config_maps(shop, &["*"])).await;
}

#[tokio::test]
async fn a_signal_stops_it_in_less_than_two_seconds_with_exit_0() {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    one_config_map(&pair, &shop).await;
    for signal in ["TERM", "INT"] {
        let mut syncer = pair.syncer(&[]);
        // The copy is there already when it is the second one, which may not have begun to listen for signals.
        syncer.wait_for_log("edge-syncer starts", SOON).await;
        arrives(&pair.edge.objects(), "v1", "configmaps", &shop, "a").await;
        let start = tokio::time::Instant::now();
        syncer.signal(signal);
        let status = syncer.wait(AT_ONCE).await;
        assert_eq!(status.code(), Some(0), "{signal} after {:?}", start.elapsed());
    }
}

#[tokio::test]
async fn every_form_of_kubeconfig_connects() {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    one_config_map(&pair, &shop).await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let port = pair
        .hub
        .url()
        .rsplit_once(':')
        .map(|(_, port)| port.to_owned())
        .expect("the URL has a port");
    let forms: Vec<(&str, KubeconfigParts)> = vec![
        (
            "token-file",
            KubeconfigParts::with(|parts| parts.credential = Credential::TokenFile),
        ),
        (
            "cert-inline",
            KubeconfigParts::with(|parts| parts.credential = Credential::CertInline),
        ),
        (
            "cert-files",
            KubeconfigParts::with(|parts| {
                parts.credential = Credential::CertFiles;
                parts.ca = Ca::File;
            }),
        ),
        (
            "insecure",
            KubeconfigParts::with(|parts| {
                parts.ca = Ca::Absent;
                parts.insecure_skip_tls_verify = true;
            }),
        ),
        (
            "server-name",
            KubeconfigParts {
                server: Some(format!("https://127.0.0.1:{port}/")),
                tls_server_name: Some("localhost".into()),
                ..KubeconfigParts::default()
            },
        ),
    ];
    for (index, (form, parts)) in forms.iter().enumerate() {
        let value = index.to_string();
        let file = pair.hub.write_kubeconfig(form, parts);
        let mut syncer = Syncer::start(&file, &pair.edge.kubeconfig(), &[]);
        hub.replace(&config_map(&shop, "a", json!({"form": form, "v": value})))
            .await;
        copy_equals(&edge, &shop, "a", &json!({"form": form, "v": value})).await;
        syncer.terminate().await;
    }
}

#[tokio::test]
async fn waits_for_servers_that_are_away_at_start_and_says_so() {
    let mut pair = shared_pair().await;
    let shop = pair.namespace("shop");
    one_config_map(&pair, &shop).await;
    for side in ["hub", "edge"] {
        let server = if side == "hub" { &mut pair.hub } else { &mut pair.edge };
        server.stop_apiserver();
        let mut syncer = pair.syncer(&[]);
        syncer.wait_for_log(&lines::unreachable(side), SOON).await;
        assert!(syncer.is_running());
        let server = if side == "hub" { &mut pair.hub } else { &mut pair.edge };
        server.start_apiserver().await;
        arrives(&pair.edge.objects(), "v1", "configmaps", &shop, "a").await;
        syncer.wait_for_log(&lines::reachable(side), SOON).await;
        let reported = syncer.log().matches(&lines::unreachable(side)).count();
        assert!(reported <= 3, "one line a streak, not {reported}:\n{}", syncer.log());
        syncer.terminate().await;
        pair.edge.objects().delete("v1", "configmaps", &shop, "a").await;
    }
}

#[tokio::test]
async fn a_rejected_object_is_reported_once_and_the_others_go_on() {
    let Stage { pair, shop, hub, edge } = stage().await;
    let group = format!("{shop}.example.org");
    hub.create(&crd(&group, "gauges", true)).await;
    // The edge wants a size of at most 10.
    let mut strict = crd(&group, "gauges", true);
    strict["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer", "maximum": 10}}}}});
    edge.create(&strict).await;
    let definition = format!("gauges.{group}");
    wait_for_crd(&hub, &definition).await;
    wait_for_crd(&edge, &definition).await;
    hub.create(&namespace(&shop)).await;
    hub.create(&custom_object(&group, "gauges", &shop, "big", 99)).await;
    hub.create(&custom_object(&group, "gauges", &shop, "small", 1)).await;
    hub.create(&config_map(&shop, "beside", json!({}))).await;
    select(
        &hub,
        &all_of(
            &shop,
            &[
                (&group, "gauges"),
                ("", "configmaps"),
                ("nowhere.example.org", "dreams"),
            ],
        ),
    )
    .await;
    let mut syncer = pair.syncer(&[]);
    let version = format!("{group}/v1");
    arrives(&edge, &version, "gauges", &shop, "small").await;
    arrives(&edge, "v1", "configmaps", &shop, "beside").await;
    syncer.wait_for_log("should be less than or equal to 10", SOON).await;
    syncer.wait_for_log("resource=dreams", SOON).await;
    let attempts = || {
        pair.edge
            .requests(SYNCER)
            .iter()
            .filter(|event| event.uri.contains("/gauges/big"))
            .count()
    };
    eventually("it is tried again and again", SOON, async || match attempts() {
        0..4 => Err("not yet"),
        _ => Ok(()),
    })
    .await;
    let mut small = custom_object(&group, "gauges", &shop, "big", 7);
    small["metadata"]["resourceVersion"] =
        hub.get(&version, "gauges", &shop, "big").await.expect("created above")["metadata"]["resourceVersion"].clone();
    hub.replace(&small).await;
    let copy = arrives(&edge, &version, "gauges", &shop, "big").await;
    assert_eq!(copy["spec"]["size"], json!(7));
    let log = syncer.log();
    assert_eq!(log.matches(&format!("/{shop}/big error")).count(), 1, "{log}");
    syncer.terminate().await;
    drop_crds(&[&hub, &edge], &[&definition]).await;
}

// For downsync.
#[tokio::test]
async fn with_narrow_permissions_it_does_what_it_may_and_names_what_it_may_not() {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    one_config_map(&pair, &shop).await;
    let edge = pair.edge.objects();
    edge.create(&namespace(&shop)).await;
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": shop},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", "create", "patch", "delete"]}]});
    edge.create(&role).await;
    edge.create(
        &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": shop},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": shop},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "limited"}]}),
    )
    .await;
    let narrow = KubeconfigParts::with(|parts| parts.user = User::Limited);
    let file = pair.edge.write_kubeconfig("narrow", &narrow);
    let mut syncer = Syncer::start(&pair.hub.kubeconfig(), &file, &[]);
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
    syncer.wait_for_log("namespaces is forbidden", SOON).await;
    for kind in ["clusterrolebindings", "clusterroles"] {
        edge.delete("rbac.authorization.k8s.io/v1", kind, "", &shop).await;
    }
}

#[tokio::test]
async fn a_server_without_streaming_lists_is_read_in_pages() {
    let old = ServerOptions {
        extra_args: vec!["--feature-gates=WatchList=false".into()],
        ..ServerOptions::default()
    };
    let pair = Pair::start(PairOptions {
        hub: old,
        edge: ServerOptions::default(),
    })
    .await;
    one_config_map(&pair, "shop").await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    // More than a page.
    for index in 0..300 {
        hub.create(&config_map("shop", &format!("c{index}"), json!({}))).await;
    }
    let _syncer = pair.syncer(&[]);
    eventually("all copies arrive", SOON, async || {
        let count = edge
            .try_list("v1", "configmaps", "shop", "edge.kubestellar.io/downsynced=true")
            .await
            .map_err(|error| error.to_string())?
            .len();
        if count == 301 {
            Ok(())
        } else {
            Err(format!("{count} of 301"))
        }
    })
    .await;
    hub.replace(&config_map("shop", "a", json!({"v": "2"}))).await;
    copy_equals(&edge, "shop", "a", &json!({"v": "2"})).await;
}

#[tokio::test]
async fn an_outage_of_the_hub_leaves_the_copies_alone_and_ends_by_itself() {
    let mut pair = shared_pair().await;
    let shop = pair.namespace("shop");
    one_config_map(&pair, &shop).await;
    let edge = pair.edge.objects();
    let mut syncer = pair.syncer(&[]);
    let before = arrives(&edge, "v1", "configmaps", &shop, "a").await;
    pair.hub.stop_apiserver();
    syncer.wait_for_log(&lines::unreachable("hub"), SOON).await;
    let during = edge.get("v1", "configmaps", &shop, "a").await;
    assert_eq!(during.as_ref().map(version), Some(version(&before)));
    assert!(syncer.is_running());
    pair.hub.start_apiserver().await;
    pair.hub
        .objects()
        .replace(&config_map(&shop, "a", json!({"v": "after"})))
        .await;
    copy_equals(&edge, &shop, "a", &json!({"v": "after"})).await;
}

fn version(object: &Value) -> String {
    object["metadata"]["resourceVersion"].to_string()
}
