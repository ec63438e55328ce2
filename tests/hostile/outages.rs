//! What looks like an outage of a whole side and is none, and what is one: gateways that answer in a server's place,
//! connections that a server ends to spread its clients again, credentials that are refused.

use std::time::Duration;

use serde_json::{Value, json};

use crate::figures::{ANYWHERE, address_of, is_up};
use crate::front::Front;
use crate::support::objects::config_map;
use crate::support::stage::{Stage, all_of, all_of_each, config_maps, numbered, select, stage, stock};
use crate::support::story::{SOON, arrives, leaves};
use crate::support::{Objects, Pair, PairOptions, ServerOptions, Syncer, eventually, holds_throughout, lines};

/// More than the longest back-off of a source.
pub(crate) const RECOVERED: Duration = Duration::from_secs(90);

#[tokio::test]
async fn a_gateway_that_answers_for_one_type_is_not_the_side_and_one_that_answers_for_all_is() {
    let Stage { pair, shop, hub, edge } = stage().await;
    let front = Front::of(&pair.hub).await;
    front.answers(|path, _| {
        path.ends_with("/secrets")
            .then_some((503, "<html>no server is available</html>"))
    });
    let other = pair.namespace("other");
    stock(&hub, &shop, &["a"], &json!({})).await;
    stock(&hub, &other, &["a"], &json!({})).await;
    hub.create(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": shop, "name": "a"}}))
        .await;
    let types = [("", "configmaps"), ("", "secrets")];
    select(&hub, &all_of_each(&[&shop, &other], &types)).await;
    let hub_file = front.kubeconfig(&pair.hub);
    let mut syncer = Syncer::start(&hub_file, &pair.edge.kubeconfig(), &[ANYWHERE]);
    let address = address_of(&mut syncer).await;
    for namespace in [&shop, &other] {
        arrives(&edge, "v1", "configmaps", namespace, "a").await;
    }
    // A namespace goes, though that type has never been listed.
    hub.delete("v1", "configmaps", &other, "a").await;
    hub.delete("v1", "namespaces", "", &other).await;
    hub.remove_namespaces(std::slice::from_ref(&other)).await;
    leaves(&edge, &other).await;
    for (index, code) in [502, 504].into_iter().enumerate() {
        front.answers(move |path, _| path.ends_with("/secrets").then_some((code, "<html>bad gateway</html>")));
        let name = format!("b{index}");
        hub.create(&config_map(&shop, &name, json!({}))).await;
        arrives(&edge, "v1", "configmaps", &shop, &name).await;
        is_up(address, "hub").await.expect("it answers");
    }
    assert!(!syncer.log().contains("SideUnreachable"), "{}", syncer.log());
    front.passes();
    eventually("the Secret arrives", RECOVERED, async || {
        let found = edge.try_get("v1", "secrets", &shop, "a").await;
        found
            .map_err(|error| error.to_string())?
            .ok_or("it is not there".to_owned())
    })
    .await;

    // All of it is away.
    front.answers(|_, _| Some((503, "<html>no server is available</html>")));
    hub.create(&config_map(&shop, "c", json!({}))).await;
    edge.delete("v1", "configmaps", &shop, "a").await;
    syncer.wait_for_log(&lines::unreachable("hub"), SOON).await;
    eventually("it is reported to be away", SOON, async || {
        match is_up(address, "hub").await {
            Ok(()) => Err("it is up"),
            Err(_) => Ok(()),
        }
    })
    .await;
    is_up(address, "edge").await.expect("it answers");
    let before = front.requests();
    holds_throughout(
        "a side that is away is asked by few",
        Duration::from_secs(15),
        async || match front.requests() - before {
            0..40 => Ok(()),
            many => Err(format!("{many} requests")),
        },
    )
    .await;
    has_event(&edge, "HubLost").await;
    front.passes();
    syncer.wait_for_log(&lines::reachable("hub"), RECOVERED).await;
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
    for side in [&edge, &hub] {
        has_event(side, "HubRestored").await;
    }
}

/// Waits for an Event with this reason about a whole side.
async fn has_event(at: &Objects, reason: &str) {
    eventually(reason, RECOVERED, async || {
        let found = at.try_list("events.k8s.io/v1", "events", "default", "").await;
        let found = found.map_err(|error| error.to_string())?;
        let reasons: Vec<&Value> = found.iter().map(|event| &event["reason"]).collect();
        if reasons.iter().any(|known| **known == reason) {
            Ok(())
        } else {
            Err(format!("{reasons:?}"))
        }
    })
    .await;
}

#[tokio::test]
async fn connections_that_a_server_ends_are_no_outage() {
    let side = ServerOptions {
        // The most that it takes: one request in fifty ends its connection.
        extra_args: vec!["--goaway-chance=0.02".to_owned()],
        ..ServerOptions::default()
    };
    let pair = Pair::start(PairOptions {
        hub: side.clone(),
        edge: side,
    })
    .await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let shop = "shop";
    stock(&hub, shop, &numbered(600), &json!({"v": "0"})).await;
    select(&hub, &config_maps(shop, &["*"])).await;
    let mut syncer = pair.syncer(&[ANYWHERE]);
    let address = address_of(&mut syncer).await;
    eventually("all arrive", RECOVERED, async || {
        let there = edge
            .try_list("v1", "configmaps", shop, "edge.kubestellar.io/downsynced=true")
            .await;
        match there.map_err(|error| error.to_string())?.len() {
            600 => Ok(()),
            there => Err(format!("{there} of 600")),
        }
    })
    .await;
    for name in numbered(600) {
        edge.delete("v1", "configmaps", shop, &name).await;
    }
    eventually("all come back", RECOVERED, async || {
        let there = edge
            .try_list("v1", "configmaps", shop, "edge.kubestellar.io/downsynced=true")
            .await;
        match there.map_err(|error| error.to_string())?.len() {
            600 => Ok(()),
            there => Err(format!("{there} of 600")),
        }
    })
    .await;
    for side in ["hub", "edge"] {
        is_up(address, side).await.expect("it answers");
    }
    let log = syncer.log();
    assert!(!log.contains("SideUnreachable") && !log.contains("Failed"), "{log}");
}

#[tokio::test]
async fn refused_credentials_are_asked_for_by_one_and_used_at_once_when_renewed() {
    let Stage { pair, shop, hub, edge } = stage().await;
    let front = Front::of(&pair.hub).await;
    let types = [
        ("", "configmaps"),
        ("", "secrets"),
        ("apps", "deployments"),
        ("apps", "statefulsets"),
    ];
    stock(&hub, &shop, &numbered(20), &json!({})).await;
    select(&hub, &all_of(&shop, &types)).await;
    let hub_file = front.kubeconfig(&pair.hub);
    let arguments = ["--mode=poll", "--poll-interval=1s", "--heartbeat-interval=1s"];
    let mut syncer = Syncer::start(&hub_file, &pair.edge.kubeconfig(), &arguments);
    arrives(&edge, "v1", "configmaps", &shop, "c0").await;
    front.answers(|_, token| (token != "Bearer renewed").then_some((401, "Unauthorized")));
    syncer.wait_for_log("the credentials are not accepted", SOON).await;
    for name in numbered(20) {
        edge.delete("v1", "configmaps", &shop, &name).await;
    }
    let before = front.requests();
    holds_throughout("one asks for all", Duration::from_secs(25), async || {
        match front.requests() - before {
            0..16 => Ok(()),
            many => Err(format!("{many} requests")),
        }
    })
    .await;
    std::fs::write(hub_file.with_extension("kubeconfig.token"), "renewed").expect("the folder is ours");
    syncer
        .wait_for_log(
            "reason=CredentialsAccepted msg=\"a side accepts the syncer's credentials again\" side=hub",
            RECOVERED,
        )
        .await;
    for name in numbered(20) {
        eventually("it comes back", RECOVERED, async || {
            let found = edge.try_get("v1", "configmaps", &shop, &name).await;
            found
                .map_err(|error| error.to_string())?
                .ok_or("it is not there".to_owned())
        })
        .await;
    }
}

#[tokio::test]
async fn a_401_for_one_type_says_nothing_of_the_credentials() {
    let Stage { pair, shop, hub, edge } = stage().await;
    let front = Front::of(&pair.hub).await;
    front.answers(|path, _| path.ends_with("/secrets").then_some((401, "Unauthorized")));
    stock(&hub, &shop, &numbered(20), &json!({})).await;
    select(&hub, &all_of(&shop, &[("", "configmaps"), ("", "secrets")])).await;
    let hub_file = front.kubeconfig(&pair.hub);
    let mut syncer = Syncer::start(&hub_file, &pair.edge.kubeconfig(), &[]);
    for name in numbered(20) {
        arrives(&edge, "v1", "configmaps", &shop, &name).await;
    }
    syncer
        .wait_for_log(
            "reason=WatchFailed msg=\"objects of a type cannot be watched\" side=hub resource=secrets",
            SOON,
        )
        .await;
    assert!(!syncer.log().contains("reason=CredentialsRefused"));
}

#[tokio::test]
async fn an_edge_that_shares_itself_out_among_its_clients_has_no_limit_that_nobody_asked_for() {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a"], &json!({})).await;
    select(&hub, &all_of(&shop, &[("", "configmaps")])).await;
    let text = "shares itself out among its clients";
    let mut limited = pair.syncer(&["--v=4"]);
    limited
        .wait_for_log("reason=ObjectCreated msg=\"created\" side=edge object=ConfigMap", SOON)
        .await;
    assert!(!limited.log().contains(text), "{}", limited.log());
    limited.terminate().await;
    let mut syncer = pair.syncer(&["--v=4", "--qps=0"]);
    syncer.wait_for_log(text, SOON).await;
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
}
