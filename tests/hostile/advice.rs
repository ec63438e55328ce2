//! What people are advised to do when a server refuses something: each of its refusals has another remedy.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::{BodyExt, Collected, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::bench::says;
use crate::front::Front;
use crate::support::certs::Authority;
use crate::support::kubeconfig::base64;
use crate::support::objects::{config_map, namespace};
use crate::support::rbac::{allow, disallow, limited};
use crate::support::stage::{Stage, all_of, all_of_each, select, stage, stock};
use crate::support::story::{SOON, arrives};
use crate::support::{Ca, KubeconfigParts, Objects, Server, Syncer, comes_to_rest, eventually, lines};
use crate::webhooks::tls;

const ADMISSION: &str = "admissionregistration.k8s.io/v1";
const WEBHOOKS: &str = "validatingwebhookconfigurations";
const POLICIES: &str = "validatingadmissionpolicies";
const BINDINGS: &str = "validatingadmissionpolicybindings";

/// A webhook that denies everything, with these words. Gives its port.
async fn denying(ca: &Authority, words: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let acceptor = TlsAcceptor::from(Arc::new(tls(ca)));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    let service = service_fn(move |request| deny(request, words));
                    // Whoever asks ends the connection as it likes.
                    let _ = http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                }
            });
        }
    });
    port
}

async fn deny(request: Request<Incoming>, words: &str) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await;
    let body = body.map(Collected::to_bytes).unwrap_or_default();
    let review: Value = serde_json::from_slice(&body).unwrap_or_default();
    let answer = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {
        "uid": review["request"]["uid"], "allowed": false, "status": {"message": words},
    }});
    Ok(Response::new(Full::from(answer.to_string())))
}

/// Asks the webhook at `port` about every `ConfigMap` in a namespace.
fn webhook(namespace: &str, port: u16, ca: &Authority) -> Value {
    json!({
        "apiVersion": ADMISSION, "kind": "ValidatingWebhookConfiguration", "metadata": {"name": namespace},
        "webhooks": [{
            "name": "denying.example.org",
            "clientConfig": {"url": format!("https://127.0.0.1:{port}"), "caBundle": base64(&ca.certificate)},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
            "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }],
    })
}

/// A policy that denies every `ConfigMap` in a namespace, and its binding.
fn policy(namespace: &str) -> [Value; 2] {
    let policy = json!({"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": namespace},
    "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]},
        ]},
        "validations": [{"expression": "false", "message": "not here", "reason": "Forbidden"}],
    }});
    let binding = json!({"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": namespace}, "spec": {
        "policyName": namespace, "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}},
    }});
    [policy, binding]
}

/// Waits until a side refuses a `ConfigMap` in a namespace, since what refuses it takes effect with a delay.
async fn is_refused(at: &Objects, namespace: &str) {
    let mut round = 0;
    eventually("it is refused", SOON, async || {
        round += 1;
        match at
            .try_create(&config_map(namespace, &format!("try-{round}"), json!({})))
            .await
        {
            Err(_) => Ok(()),
            Ok(_) => Err("it is not"),
        }
    })
    .await;
}

fn pod(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": namespace, "name": name}, "spec": {
        "automountServiceAccountToken": false, "containers": [{"name": "web", "image": "registry.example.org/web:1"}],
    }})
}

/// No more `ConfigMap`s in a namespace. Without its controller, what a quota counts is what it says.
async fn no_quota(at: &Objects, namespace: &str) {
    let none = json!({"count/configmaps": "0"});
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"namespace": namespace, "name": "small"},
        "spec": {"hard": none}});
    at.create(&quota).await;
    at.patch_status(
        "v1",
        "resourcequotas",
        namespace,
        "small",
        &json!({"hard": none, "used": none}),
    )
    .await;
}

#[tokio::test]
async fn each_refusal_of_an_object_has_the_advice_that_fits_its_cause() {
    let Stage { pair, hub, edge, .. } = stage().await;
    let cases = ["quota", "policy", "webhook", "away", "security"];
    let [quota, policed, hooked, away, secured] = cases.map(|case| pair.namespace(case));
    for name in [&quota, &policed, &hooked, &away] {
        edge.create(&namespace(name)).await;
    }
    let mut strict = namespace(&secured);
    strict["metadata"]["labels"] = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    edge.create(&strict).await;
    let ca = Authority::new("webhook");
    let port = denying(&ca, "not on a Friday").await;
    let closed = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
    let nobody = closed.local_addr().expect("it is bound").port();
    drop(closed);
    edge.create(&webhook(&hooked, port, &ca)).await;
    edge.create(&webhook(&away, nobody, &ca)).await;
    for object in policy(&policed) {
        edge.create(&object).await;
    }
    no_quota(&edge, &quota).await;
    for name in [&quota, &policed, &hooked, &away] {
        is_refused(&edge, name).await;
        stock(&hub, name, &["a"], &json!({})).await;
    }
    hub.create(&namespace(&secured)).await;
    hub.create(&pod(&secured, "web")).await;
    let namespaces = [&quota, &policed, &hooked, &away, &secured];
    select(&hub, &all_of_each(&namespaces, &[("", "configmaps"), ("", "pods")])).await;
    let mut syncer = pair.syncer(&[]);
    for (object, words, advice) in [
        (
            format!("ConfigMap/{quota}/a"),
            "exceeded quota: small",
            "raise the ResourceQuota",
        ),
        (
            format!("ConfigMap/{policed}/a"),
            "ValidatingAdmissionPolicy",
            "the named admission policy of that side",
        ),
        (
            format!("ConfigMap/{hooked}/a"),
            "denied the request: not on a Friday",
            "the named admission webhook of that side",
        ),
        (
            format!("ConfigMap/{away}/a"),
            "failed calling webhook",
            "webhook of that side does not answer",
        ),
        (
            format!("Pod/{secured}/web"),
            "violates PodSecurity",
            "pod-security.kubernetes.io/enforce",
        ),
    ] {
        let object = format!("object={object} ");
        says(&mut syncer, &["WARN", "side=edge", &object, words, advice]).await;
    }
    let reported: Vec<String> = syncer
        .log()
        .lines()
        .filter(|line| line.contains("WARN") && line.contains("side=edge"))
        .map(str::to_owned)
        .collect();
    assert_eq!(reported.len(), 5, "each is logged once: {reported:#?}");
    for (plural, names) in [
        (WEBHOOKS, [&hooked, &away]),
        (POLICIES, [&policed; 2]),
        (BINDINGS, [&policed; 2]),
    ] {
        for name in names {
            edge.delete(ADMISSION, plural, "", name).await;
        }
    }
}

#[tokio::test]
async fn a_missing_permission_is_reported_once_for_all_objects_and_again_when_it_is_granted() {
    let Stage { pair, shop, hub, edge } = stage().await;
    let all = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]});
    let record = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "patch"],
        "resourceNames": ["edge-syncer-types-test"]});
    let namespaces = json!({"apiGroups": [""], "resources": ["namespaces"], "verbs": ["*"]});
    allow(&edge, &shop, json!([all, record, namespaces])).await;
    let names: Vec<String> = (0..30).map(|index| format!("c{index}")).collect();
    stock(&hub, &shop, &names, &json!({})).await;
    select(&hub, &all_of(&shop, &[("", "configmaps")])).await;
    let mut syncer = Syncer::start(&pair.hub.kubeconfig(), &limited(&pair.edge), &[]);
    let refused = format!("in API group \\\"\\\" in the namespace \\\"{shop}\\\"");
    let (cannot, advice) = ("User \\\"limited\\\" cannot", "grant the syncer's user this permission");
    says(
        &mut syncer,
        &["reason=Forbidden", "side=edge", cannot, &refused, advice],
    )
    .await;
    let granted = format!("{shop}-more");
    let write = json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]});
    allow(&edge, &granted, json!([write])).await;
    for name in &names {
        arrives(&edge, "v1", "configmaps", &shop, name).await;
    }
    says(&mut syncer, &["reason=Recovered", "side=edge object=ConfigMap/"]).await;
    let log = syncer.log();
    let failed = log.lines().filter(|line| line.contains(&refused)).count();
    assert!(failed <= 2, "a line for each verb: {log}");
    assert!(
        log.matches("msg=\"works again\" side=edge object=ConfigMap/").count() <= failed,
        "{log}"
    );
    for name in [&shop, &granted] {
        disallow(&edge, name).await;
    }
}

#[tokio::test]
async fn requests_without_credentials_are_not_said_to_lack_a_permission() {
    let Stage { pair, .. } = stage().await;
    let front = Front::without_credentials(&pair.hub).await;
    let mut syncer = Syncer::start(&front.kubeconfig(&pair.hub), &pair.edge.kubeconfig(), &[]);
    says(
        &mut syncer,
        &[
            "WARN",
            "side=hub",
            "User \\\"system:anonymous\\\" cannot",
            "no credentials have reached the server",
        ],
    )
    .await;
    assert!(!syncer.log().contains("grant the syncer's user"), "{}", syncer.log());
}

/// A syncer whose hub is at this URL with this CA.
fn syncer_of(hub: &Server, edge: &Server, url: Option<String>, ca: Ca) -> Syncer {
    let parts = KubeconfigParts {
        server: url,
        ca,
        ..KubeconfigParts::default()
    };
    let file = hub.write_kubeconfig(&format!("odd-{ca:?}.kubeconfig"), &parts);
    Syncer::start(&file, &edge.kubeconfig(), &[])
}

#[tokio::test]
async fn plain_http_to_a_port_for_https_is_reported_in_one_line_with_what_to_write() {
    let Stage { pair, .. } = stage().await;
    let plain = pair.hub.url().replace("https://", "http://");
    let mut syncer = syncer_of(&pair.hub, &pair.edge, Some(plain.clone()), Ca::Inline);
    let at = format!("trying again\" side=hub server={plain} ");
    says(
        &mut syncer,
        &[
            "reason=NotAnApi",
            &at,
            "Client sent an HTTP request to an HTTPS server",
            "write https://",
        ],
    )
    .await;
    assert!(!syncer.log().contains("Failed"), "{}", syncer.log());
}

#[tokio::test]
async fn an_unknown_ca_is_reported_with_the_field_and_the_file_where_it_belongs() {
    let Stage { pair, .. } = stage().await;
    let mut syncer = syncer_of(&pair.hub, &pair.edge, None, Ca::Absent);
    let at = format!("{} server={}", lines::unreachable("hub"), pair.hub.url());
    says(
        &mut syncer,
        &[
            &at,
            "UnknownIssuer",
            "certificate-authority-data of /",
            "odd-Absent.kubeconfig",
        ],
    )
    .await;
}

#[tokio::test]
async fn a_login_page_and_a_server_of_something_else_are_reported_at_once_and_are_no_missing_crds() {
    let Stage { pair, .. } = stage().await;
    for (status, page, advice) in [
        (200, "<html><title>Sign in</title></html>", "a login page or portal"),
        (302, "<a href=\"/login\">Found</a>.", "a login page or portal"),
        (404, "404 page not found", "another service or a proxy answers there"),
    ] {
        let front = Front::of(&pair.hub).await;
        let answered = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&answered);
        front.answers(move |_, _| {
            count.fetch_add(1, Ordering::Relaxed);
            Some((status, page))
        });
        let mut syncer = Syncer::start(&front.kubeconfig(&pair.hub), &pair.edge.kubeconfig(), &[]);
        says(
            &mut syncer,
            &["reason=NotAnApi", "side=hub server=http://127.0.0.1", advice],
        )
        .await;
        // Nothing that this has answered is on its way any more, to be read after the API has answered.
        let seen = async || Ok::<_, Infallible>(answered.load(Ordering::Relaxed));
        comes_to_rest("the number of requests stays", Duration::from_millis(300), SOON, seen).await;
        front.passes();
        says(&mut syncer, &["reason=ApiReachable", "side=hub after="]).await;
        let log = syncer.log();
        let reported = log
            .lines()
            .filter(|line| line.contains("WARN") && line.contains("hub"))
            .count();
        assert_eq!(reported, 1, "{status}: {log}");
        assert!(
            !log.contains("SideUnreachable") && !log.contains("manifests/crds"),
            "{status}: {log}"
        );
    }
}
