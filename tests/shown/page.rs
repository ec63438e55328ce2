//! `GET /` of a running syncer.

use std::path::Path;

use serde_json::{Value, json};

use crate::bench::{ANYWHERE, address_of, ask, quoting_webhook};
use crate::picture::draw;
use crate::support::objects::syncer_config;
use crate::support::stage::{CONFIG_API, Stage, all_of, config_maps, numbered, select, stage, stock};
use crate::support::story::{SOON, arrives, gone};
use crate::support::{KubeconfigParts, Objects, Pair, PairOptions, Syncer, eventually};

/// A side at which nobody answers.
const NOBODY: &str = "https://127.0.0.1:9";

/// Waits until the page has all of this, and returns it.
async fn shows(address: std::net::SocketAddr, expected: &[&str]) -> String {
    eventually(&format!("the page shows {expected:?}"), SOON, async || {
        let (head, body) = ask(address, "GET", "/").await;
        let has = |part: &&str| body.contains(*part);
        if expected.iter().all(has) {
            Ok(body)
        } else {
            Err(format!("{head}\n{body}"))
        }
    })
    .await
}

#[tokio::test]
async fn the_page_says_what_works_and_what_fails_and_shows_hostile_words_as_text() {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&edge, &shop, &[] as &[&str], &json!({})).await;
    quoting_webhook(&edge, &shop, "</li><script>alert('x')</script>\u{202e}\u{1b}[31m no:").await;
    stock(&hub, &shop, &["prices", "hours", "denied"], &json!({"a": "b"})).await;
    select(
        &hub,
        &all_of(&shop, &[("", "configmaps"), ("example.org", "sprockets")]),
    )
    .await;
    let mut syncer = pair.syncer(&[ANYWHERE, "--sync-target-name=<b>site-7</b>"]);
    let address = address_of(&mut syncer).await;
    arrives(&edge, "v1", "configmaps", &shop, "prices").await;
    let denied =
        format!("<li class=bad>✗ <b><bdi>ConfigMap/{shop}/denied</bdi></b><br><bdi>edge, ObjectRejected since ");
    let page = shows(
        address,
        &[
            "<h1><bdi>&lt;b&gt;site-7&lt;/b&gt;</bdi></h1>",
            "<li class=good>✔ <b><bdi>hub https://127.0.0.1:",
            "<li class=good>✔ <b><bdi>edge https://127.0.0.1:",
            "</bdi></b><br><bdi>answers; last contact 2",
            &denied,
            "&lt;/li&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;\\u202e\\u001b[31m no:",
            "configmaps, downsync</bdi></b><br><bdi>2 synced, 1 failing",
            "sprockets",
            "<footer>edge-syncer ",
        ],
    )
    .await;
    assert!(
        !page.contains("<script") && !page.contains('\u{202e}') && !page.contains('\u{1b}'),
        "{page}"
    );
    assert!(page.len() < 8 << 10, "{} bytes", page.len());
    let (head, body) = ask(address, "HEAD", "/").await;
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\n") && body.is_empty(),
        "{head} {body}"
    );
    for line in [
        "content-type: text/html; charset=utf-8",
        "cache-control: no-store",
        "content-security-policy: default-src 'none'; style-src 'unsafe-inline'",
    ] {
        assert!(head.lines().any(|it| it == line), "{line} in {head}");
    }
    let (head, _) = ask(address, "GET", "/index.html").await;
    assert!(head.starts_with("HTTP/1.1 404 "), "{head}");
}

#[tokio::test]
async fn twenty_failures_with_all_their_words_take_a_few_kilobytes() {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&edge, &shop, &[] as &[&str], &json!({})).await;
    let words = "what this site allows is written down in the rules of the site, and this is none of it; ";
    quoting_webhook(&edge, &shop, words).await;
    let denied: Vec<String> = numbered(23).iter().map(|name| format!("denied-{name}")).collect();
    stock(&hub, &shop, &denied, &json!({"a": "b".repeat(200)})).await;
    select(&hub, &all_of(&shop, &[("", "configmaps")])).await;
    let mut syncer = pair.syncer(&[ANYWHERE]);
    let address = address_of(&mut syncer).await;
    let page = shows(address, &["23 failing", "and 3 more"]).await;
    assert_eq!(page.matches("ObjectRejected since ").count(), 20, "{page}");
    assert!(page.len() < 10 << 10, "{} bytes", page.len());
}

/// From now on Deployments of the namespace `shop` may have three replicas.
async fn limit(edge: &Objects) {
    const API: &str = "admissionregistration.k8s.io/v1";
    edge.create(&json!({
        "apiVersion": API, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "limits"},
        "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": ["apps"], "apiVersions": ["v1"],
                "operations": ["CREATE", "UPDATE"], "resources": ["deployments"]}]},
            "validations": [{"expression": "object.spec.replicas <= 3",
                "messageExpression": "'at most 3 replicas at this site, and not ' + string(object.spec.replicas)"}],
        },
    }))
    .await;
    edge.create(&json!({
        "apiVersion": API, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "limits"},
        "spec": {"policyName": "limits", "validationActions": ["Deny"]},
    }))
    .await;
    // A policy takes effect some time after it was made.
    eventually("the policy counts", SOON, async || {
        let probe = deployment("probe", 5);
        match edge.try_create(&probe).await {
            Err(error) if error.to_string().contains("at most 3") => Ok(()),
            Err(error) => Err(error.to_string()),
            Ok(_) => {
                edge.delete("apps/v1", "deployments", "shop", "probe").await;
                Err("it does not".to_owned())
            }
        }
    })
    .await;
}

fn deployment(name: &str, replicas: u32) -> Value {
    let labels = json!({"app": name});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "shop"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": name, "image": "example.org/image:1"}]}}}})
}

/// `scripts/page-picture` draws it.
#[tokio::test]
async fn the_page_of_the_picture_in_the_docs_has_what_is_wrong_and_what_may_be_meant() {
    let pair = Pair::start(PairOptions::default()).await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    stock(&edge, "shop", &[] as &[&str], &json!({})).await;
    limit(&edge).await;
    stock(&hub, "shop", &numbered(40), &json!({"a": "b"})).await;
    for (name, replicas) in [("web", 2), ("batch", 5)] {
        hub.create(&deployment(name, replicas)).await;
    }
    let types = [
        ("", "configmaps"),
        ("", "services"),
        ("apps", "deployments"),
        ("apps", "deploymnts"),
    ];
    hub.create(&syncer_config("shop", all_of("shop", &types))).await;
    let mut syncer = pair.syncer(&[ANYWHERE, "--sync-target-name=site-7"]);
    let address = address_of(&mut syncer).await;
    let page = shows(
        address,
        &[
            "Deployment/shop/batch",
            "at most 3 replicas at this site, and not 5",
            "SyncerConfig//shop spec.namespaceScope.resources[3]",
            "neither hub nor edge serves deploymnts.apps at version v1; did you mean deployments?",
            "1 synced, 1 failing",
            "40 synced<",
        ],
    )
    .await;
    if let Some(picture) = std::env::var_os("EDGE_SYNCER_PICTURE") {
        draw(&page, Path::new(&picture)).await;
    }
}

/// People on site read there what confirms them, and need nothing else for it.
#[tokio::test]
async fn deletes_that_are_held_are_on_the_page_with_what_confirms_them_until_they_are_done() {
    const CONFIRM: &str = "edge.kubestellar.io/confirm-deletes";
    let Stage { pair, shop, hub, edge } = stage().await;
    let names = numbered(40);
    stock(&hub, &shop, &names, &json!({})).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let mut syncer = pair.syncer(&[ANYWHERE]);
    let address = address_of(&mut syncer).await;
    let page = shows(address, &["configmaps, downsync</bdi></b><br><bdi>40 synced<"]).await;
    assert!(!page.contains("Held deletes"), "{page}");
    // All at once, as one event for the syncer.
    syncer.signal("STOP");
    for name in &names[..30] {
        hub.delete("v1", "configmaps", &shop, name).await;
    }
    syncer.signal("CONT");
    let page = shows(
        address,
        &[
            "<h2>Held deletes</h2><ul><li>… <b><bdi>downsync</bdi></b><br><bdi>",
            "copies are to be deleted at once",
            " held<",
            CONFIRM,
        ],
    )
    .await;
    let (_, held) = page.split_once("<h2>Held deletes</h2>").expect("it has the title");
    let (_, token) = held
        .split_once(&format!("{CONFIRM}="))
        .expect("it says what confirms them");
    let end = |c: char| !c.is_ascii_alphanumeric() && c != '-';
    let token = token.split(end).next().unwrap_or_default();
    let patch = json!({"metadata": {"annotations": {CONFIRM: token}}});
    hub.merge_patch(CONFIG_API, "syncerconfigs", "", "the-one", &patch)
        .await;
    for name in &names[..30] {
        gone(&edge, "v1", "configmaps", &shop, name).await;
    }
    let page = shows(address, &["configmaps, downsync</bdi></b><br><bdi>10 synced<"]).await;
    assert!(!page.contains("Held deletes") && !page.contains(CONFIRM), "{page}");
}

#[tokio::test]
async fn a_side_that_is_away_is_on_the_page_with_its_error() {
    let Stage { pair, .. } = stage().await;
    let away = KubeconfigParts::with(|parts| parts.server = Some(NOBODY.to_owned()));
    let hub = pair.hub.write_kubeconfig("away.kubeconfig", &away);
    let mut syncer = Syncer::start(&hub, &pair.edge.kubeconfig(), &[ANYWHERE]);
    let address = address_of(&mut syncer).await;
    shows(
        address,
        &[
            "<p>the configs are not known yet; hub unreachable since ",
            "<li class=bad>✗ <b><bdi>hub https://127.0.0.1:9</bdi></b><br><bdi>does not answer; no contact yet; ",
            "SideUnreachable since ",
            "Connection refused",
        ],
    )
    .await;
}

#[tokio::test]
async fn a_standby_says_that_another_one_leads() {
    let Stage { pair, .. } = stage().await;
    let flags = ["--leader-elect", ANYWHERE];
    let mut first = pair.syncer(&flags);
    first.wait_for_log("reason=Leading", SOON).await;
    let mut second = pair.syncer(&flags);
    second.wait_for_log("reason=Standby", SOON).await;
    let (_, body) = ask(address_of(&mut second).await, "GET", "/").await;
    assert!(body.contains("Another edge-syncer leads"), "{body}");
    let (_, body) = ask(address_of(&mut first).await, "GET", "/").await;
    assert!(body.contains("<h2>Sides</h2>"), "{body}");
}
