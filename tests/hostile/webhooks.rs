//! Admission webhooks that hang.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustls::ServerConfig;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::figures::{ANYWHERE, address_of, is_up};
use crate::support::certs::Authority;
use crate::support::eventually;
use crate::support::kubeconfig::base64;
use crate::support::objects::Objects;
use crate::support::stage::{Stage, all_of, numbered, select, stage, stock};
use crate::support::story::SOON;

const WEBHOOKS: [&str; 2] = ["admissionregistration.k8s.io/v1", "validatingwebhookconfigurations"];

/// A webhook that takes requests and says nothing. Gives its port and how many it has taken.
async fn silent(ca: &Authority) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let acceptor = TlsAcceptor::from(Arc::new(tls(ca)));
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&taken);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, counter) = (acceptor.clone(), Arc::clone(&counter));
            tokio::spawn(async move {
                let mut stream = acceptor.accept(stream).await?;
                counter.fetch_add(1, Ordering::Relaxed);
                // Until the API server gives up.
                tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
            });
        }
    });
    (port, taken)
}

/// What a webhook of this CA serves with.
pub(crate) fn tls(ca: &Authority) -> ServerConfig {
    ca.serving(&["127.0.0.1"]).tls()
}

/// Asks the webhook at `port` about every `ConfigMap` in a namespace, and waits for it as long as may be.
fn configuration(name: &str, namespace: &str, port: u16, ca: &Authority) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{
            "name": "silent.example.org",
            "clientConfig": {
                "url": format!("https://127.0.0.1:{port}"),
                "caBundle": base64(&ca.certificate),
            },
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "failurePolicy": "Fail", "timeoutSeconds": 30, "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }],
    })
}

/// Waits until the webhook has been asked so often.
async fn is_asked(taken: &AtomicUsize, times: usize, time: Duration) {
    eventually("the webhook is asked", time, async || {
        match taken.load(Ordering::Relaxed) {
            asked if asked < times => Err(format!("{asked} times")),
            _ => Ok(()),
        }
    })
    .await;
}

async fn stock_secrets(hub: &Objects, shop: &str) {
    for name in numbered(40) {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": shop, "name": name}});
        hub.create(&secret).await;
    }
}

/// The copies of a type at the edge.
async fn copies(edge: &Objects, shop: &str, resource: &str) -> usize {
    let copies = edge.list("v1", resource, shop, "edge.kubestellar.io/downsynced=true");
    copies.await.len()
}

/// Waits until there are so many.
async fn arrive(edge: &Objects, shop: &str, resource: &str, count: usize, time: Duration) {
    eventually(&format!("the {resource} arrive"), time, async || {
        match copies(edge, shop, resource).await {
            there if there == count => Ok(()),
            there => Err(format!("{there} of {count}")),
        }
    })
    .await;
}

#[tokio::test]
async fn a_webhook_that_hangs_holds_up_nothing_but_what_it_is_asked_about() {
    let Stage { pair, shop, hub, edge } = stage().await;
    let ca = Authority::new("webhook");
    let (port, taken) = silent(&ca).await;
    edge.create(&configuration(&shop, &shop, port, &ca)).await;
    stock(&hub, &shop, &numbered(40), &json!({})).await;
    select(&hub, &all_of(&shop, &[("", "configmaps"), ("", "secrets")])).await;
    let mut syncer = pair.syncer(&[ANYWHERE]);
    let address = address_of(&mut syncer).await;
    is_asked(&taken, 10, SOON).await;
    stock_secrets(&hub, &shop).await;
    eventually("the Secrets arrive", Duration::from_secs(60), async || {
        is_up(address, "edge").await?;
        let there = edge.list("v1", "secrets", &shop, "").await.len();
        if there == 40 {
            Ok(())
        } else {
            Err(format!("{there} of 40"))
        }
    })
    .await;
    // As long as several requests are given up by the server.
    eventually("the webhook is asked again", Duration::from_secs(120), async || {
        is_up(address, "edge").await.expect("it answers all the time");
        match taken.load(Ordering::Relaxed) {
            0..20 => Err("not yet"),
            _ => Ok(()),
        }
    })
    .await;
    edge.delete(WEBHOOKS[0], WEBHOOKS[1], "", &shop).await;
    arrive(&edge, &shop, "configmaps", 40, Duration::from_secs(180)).await;
    assert!(!syncer.log().contains("SideUnreachable"));
}

#[tokio::test]
async fn a_webhook_that_is_just_quick_enough_does_not_keep_all_workers_for_its_type() {
    let Stage { pair, shop, hub, edge } = stage().await;
    let ca = Authority::new("webhook");
    let (port, taken) = silent(&ca).await;
    let mut webhook = configuration(&shop, &shop, port, &ca);
    // The API server admits the object when it has waited for less than what counts as slow.
    webhook["webhooks"][0]["failurePolicy"] = json!("Ignore");
    webhook["webhooks"][0]["timeoutSeconds"] = json!(4);
    edge.create(&webhook).await;
    stock(&hub, &shop, &numbered(160), &json!({})).await;
    select(&hub, &all_of(&shop, &[("", "configmaps"), ("", "secrets")])).await;
    let _syncer = pair.syncer(&[]);
    is_asked(&taken, 10, SOON).await;
    stock_secrets(&hub, &shop).await;
    arrive(&edge, &shop, "secrets", 40, Duration::from_secs(60)).await;
    let slow = copies(&edge, &shop, "configmaps").await;
    assert!(slow < 120, "{slow} ConfigMaps, which were there before, went first");
    arrive(&edge, &shop, "configmaps", 160, Duration::from_secs(120)).await;
}
