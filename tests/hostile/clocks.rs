//! Clocks that are wrong: that of a server, and that of the machine of the syncer.

use serde_json::{Value, json};

use crate::front::Front;
use crate::support::certs::Authority;
use crate::support::stage::{CONFIG_API, Stage, config_maps, select, stage, stock};
use crate::support::story::{SOON, arrives, becomes};
use crate::support::{Ca, Credential, KubeconfigParts, Syncer, unique_suffix};

/// How long a certificate is not valid yet: longer than a syncer takes to begin on a busy machine.
const LATER: u64 = 20;

#[tokio::test]
async fn a_clock_that_differs_is_logged_once_and_again_when_it_is_right() {
    let Stage { pair, shop, hub, .. } = stage().await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let front = Front::of(&pair.hub).await;
    front.has_date(Some("Sat, 01 Jan 2000 00:00:00 GMT"));
    let target = format!("--sync-target-uid={shop}");
    let flags = ["--heartbeat-interval=1s", &target];
    let mut syncer = Syncer::start(&front.kubeconfig(&pair.hub), &pair.edge.kubeconfig(), &flags);
    syncer.wait_for_log("WARN reason=ClockDiffers", SOON).await;
    let says = |edge: &Value, status: &str, words: &str| {
        let conditions = edge["status"]["conditions"].as_array().into_iter().flatten();
        let mut of_clock = conditions.filter(|condition| condition["type"] == "ClockSynced");
        let found = of_clock.next().cloned().unwrap_or_default();
        found["status"] == status && found["message"].as_str().is_some_and(|message| message.contains(words))
    };
    let edge = [CONFIG_API, "edges", "", &*shop];
    becomes(&hub, edge, "says that the hub's clock is behind", |edge| {
        says(edge, "False", "the clock of the hub is 8") && says(edge, "False", " s behind that of the machine")
    })
    .await;
    front.has_date(None);
    becomes(&hub, edge, "says that the clocks agree", |edge| says(edge, "True", "")).await;
    syncer.wait_for_log("INFO reason=ClockAgrees", SOON).await;
    let log = syncer.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("reason=Clock")).collect();
    assert_eq!(lines.len(), 2, "{log}");
    assert!(lines[0].contains(" side=hub ahead=-8"), "{}", lines[0]);
    assert!(lines[1].contains(" side=hub ahead=0"), "{}", lines[1]);
}

/// So it is on a board that begins in 1970, until it has asked what time it is.
#[tokio::test]
async fn a_certificate_that_is_not_valid_yet_is_said_and_all_continues_by_itself_once_it_is() {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a"], &json!({})).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let front = Front::of(&pair.hub).await;
    let ca = Authority::new("later");
    let port = front.behind_tls(ca.serving_in(&["127.0.0.1"], LATER).tls()).await;
    let parts = KubeconfigParts {
        server: Some(format!("https://127.0.0.1:{port}")),
        ca: Ca::File,
        credential: Credential::TokenFile,
        ..KubeconfigParts::default()
    };
    let kubeconfig = pair.hub.write_kubeconfig(&format!("later-{}", unique_suffix()), &parts);
    std::fs::write(kubeconfig.with_extension("ca"), &ca.certificate).expect("the folder can be written");
    let mut syncer = Syncer::start(&kubeconfig, &pair.edge.kubeconfig(), &[]);
    let words = "WARN reason=SideUnreachable msg=\"cannot reach a side, trying again until it answers\" side=hub";
    syncer.wait_for_log(words, SOON).await;
    syncer
        .wait_for_log("certificate not valid yet: it will be from", SOON)
        .await;
    syncer.wait_for_log("it continues by itself then", SOON).await;
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
    let log = syncer.log();
    let lines = log.lines().filter(|line| line.contains("not valid yet"));
    assert_eq!(lines.count(), 1, "{log}");
    assert!(log.contains("reason=SideReachable"), "{log}");
}
