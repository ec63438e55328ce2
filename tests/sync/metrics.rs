//! Health and metrics over HTTP, of the real binary between real API servers.

use std::net::SocketAddr;

use crate::support::objects::{JSON, code, config_map, path, syncer_config};
use crate::support::serving::SERVING;
pub(crate) use crate::support::serving::{ANYWHERE, address_of};
use crate::support::stage::{Stage, config_maps, numbered, select, stage, stock};
use crate::support::story::{SOON, arrives, copy_equals, gone};
use crate::support::{Objects, Pair, PairOptions, Syncer, eventually, lines, shared_pair};
use http::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Sends one request and gives the status and the body.
async fn request(address: SocketAddr, text: &str) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(text.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    Ok((status.unwrap_or_default(), body.to_owned()))
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let text = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
    request(address, &text).await.expect("it answers")
}

/// Waits until the metrics have all of these lines.
async fn shows(address: SocketAddr, expected: &[&str]) {
    eventually(&format!("the metrics show {expected:?}"), SOON, async || {
        let (status, page) = get(address, "/metrics").await;
        assert_eq!(status, 200);
        let lines: Vec<&str> = page.lines().collect();
        if expected.iter().all(|line| lines.contains(line)) {
            Ok(())
        } else {
            Err(page)
        }
    })
    .await;
}

/// Waits until it says that it is ready.
async fn gets_ready(address: SocketAddr) {
    eventually("it gets ready", SOON, async || match get(address, "/readyz").await {
        (200, _) => Ok(()),
        (_, why) => Err(why),
    })
    .await;
}

/// Makes a side refuse `ConfigMap`s in a namespace, and waits until it does.
pub(crate) async fn refuse_config_maps(side: &Objects, shop: &str) {
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"namespace": shop, "name": "none"},
        "spec": {"hard": {"count/configmaps": "0"}}});
    side.create(&quota).await;
    let status = json!({"hard": {"count/configmaps": "0"}, "used": {"count/configmaps": "0"}});
    side.patch_status("v1", "resourcequotas", shop, "none", &status).await;
    eventually("the quota is heeded", SOON, async || {
        let trial = format!("{}?dryRun=All", path("v1", "configmaps", shop, ""));
        let object = config_map(shop, "trial", json!({}));
        match side.send(Method::POST, &trial, JSON, Some(&object)).await {
            Err(error) if code(&error) == 403 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

#[tokio::test]
async fn a_story_shows_in_figures() {
    let mut pair = Pair::start(PairOptions::default()).await;
    let shop = "shop";
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let mut syncer = pair.syncer(&[ANYWHERE, "--heartbeat-interval=1s"]);
    let address = address_of(&mut syncer).await;
    assert_eq!(get(address, "/healthz").await, (200, "ok\n".to_owned()));
    stock(&hub, shop, &numbered(40), &json!({})).await;
    select(&hub, &config_maps(shop, &["*"])).await;
    shows(
        address,
        &[
            "edge_syncer_side_up{side=\"hub\"} 1",
            "edge_syncer_side_up{side=\"edge\"} 1",
            // The namespace is one of them.
            "edge_syncer_objects{direction=\"downsync\",state=\"synced\"} 41",
            "edge_syncer_objects{direction=\"downsync\",state=\"out_of_sync\"} 0",
            "edge_syncer_writes_total{side=\"edge\",result=\"created\"} 41",
            "edge_syncer_failing 0",
            "edge_syncer_deletes_held{direction=\"downsync\",reason=\"TooMany\"} 0",
            "edge_syncer_queue_capacity 1024",
        ],
    )
    .await;
    gets_ready(address).await;
    assert_eq!(get(address, "/readyz").await, (200, "ok\n".to_owned()));
    eventually("the metrics show a heartbeat", SOON, async || {
        let (_, page) = get(address, "/metrics").await;
        if page.contains("edge_syncer_last_heartbeat_timestamp_seconds 1") {
            Ok(())
        } else {
            Err(page)
        }
    })
    .await;

    // A failure: what the edge refuses.
    refuse_config_maps(&edge, shop).await;
    hub.create(&config_map(shop, "refused", json!({}))).await;
    shows(address, &["edge_syncer_failing 1"]).await;
    let (_, page) = get(address, "/metrics").await;
    assert!(!page.contains("edge_syncer_failures_total{side=\"edge\"} 0"), "{page}");
    edge.delete("v1", "resourcequotas", shop, "none").await;
    hub.delete("v1", "configmaps", shop, "refused").await;
    shows(address, &["edge_syncer_failing 0"]).await;

    // Deletes that are held.
    syncer.signal("STOP");
    for index in 0..40 {
        hub.delete("v1", "configmaps", shop, &format!("c{index}")).await;
    }
    syncer.signal("CONT");
    eventually("the metrics show held deletes", SOON, async || {
        let (_, page) = get(address, "/metrics").await;
        let held = page
            .lines()
            .find_map(|line| line.strip_prefix("edge_syncer_deletes_held{direction=\"downsync\",reason=\"TooMany\"} "));
        match held.and_then(|count| count.parse().ok()) {
            Some(20..=40) => Ok(()),
            _ => Err(page),
        }
    })
    .await;

    // An outage.
    pair.hub.stop_apiserver();
    shows(
        address,
        &[
            "edge_syncer_side_up{side=\"hub\"} 0",
            "edge_syncer_side_up{side=\"edge\"} 1",
        ],
    )
    .await;
    assert_eq!(get(address, "/healthz").await.0, 200);
    assert_eq!(get(address, "/readyz").await.0, 200, "a restart would not help");
}

#[tokio::test]
async fn it_is_not_ready_before_the_configs_are_known() {
    let mut pair = Pair::start(PairOptions::default()).await;
    pair.hub.objects().create(&syncer_config("the-one", json!({}))).await;
    pair.hub.stop_apiserver();
    let mut syncer = pair.syncer(&[ANYWHERE]);
    let address = address_of(&mut syncer).await;
    syncer.wait_for_log(&lines::unreachable("hub"), SOON).await;
    assert_eq!(
        get(address, "/readyz").await,
        (503, "the configs are not known yet\n".to_owned())
    );
    assert_eq!(get(address, "/healthz").await.0, 200);
    shows(address, &["edge_syncer_side_up{side=\"hub\"} 0"]).await;
    pair.hub.start_apiserver().await;
    gets_ready(address).await;
}

#[tokio::test]
async fn a_thousand_scrapes_and_idle_connections_neither_leak_nor_hold_up_syncing() {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a"], &json!({"v": "0"})).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let mut syncer = pair.syncer(&[ANYWHERE]);
    let address = address_of(&mut syncer).await;
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
    for (text, expected) in [
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 200),
        ("GET /other HTTP/1.1\r\nHost: x\r\n\r\n", 404),
        ("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", 405),
        ("GET /metrics?format=text HTTP/1.0\r\n\r\n", 200),
        ("nonsense\r\n\r\n", 400),
    ] {
        let (status, _) = request(address, text).await.expect("it answers");
        assert_eq!(status, expected, "{text}");
    }
    let files = |syncer: &Syncer| {
        let folder = std::fs::read_dir(format!("/proc/{}/fd", syncer.pid()));
        folder.expect("the syncer runs").count()
    };
    for _ in 0..100 {
        get(address, "/metrics").await;
    }
    let (memory, open) = (syncer.resident_kb(), files(&syncer));
    for round in 0..1000 {
        assert_eq!(get(address, "/metrics").await.0, 200);
        if round % 100 == 0 {
            let data = json!({"v": round.to_string()});
            hub.replace(&config_map(&shop, "a", data.clone())).await;
            copy_equals(&edge, &shop, "a", &data).await;
        }
    }
    // The last connection ends a moment after its answer.
    eventually("no file stays open", SOON, async || match files(&syncer) {
        now if now <= open + 1 => Ok(()),
        now => Err(format!("{now} files instead of {open}")),
    })
    .await;
    let grown = syncer.resident_kb().saturating_sub(memory);
    assert!(grown < 1024, "{grown} kB more");

    // Connections that say nothing take all places, and lose them.
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(TcpStream::connect(address).await.expect("it accepts"));
    }
    hub.delete("v1", "configmaps", &shop, "a").await;
    gone(&edge, "v1", "configmaps", &shop, "a").await;
    let mut byte = [0];
    let ended = tokio::time::timeout(SOON, silent[0].read(&mut byte)).await;
    assert_eq!(ended.expect("it is ended in time").ok(), Some(0));
    drop(silent);
    assert_eq!(get(address, "/healthz").await.0, 200);
}

#[tokio::test]
async fn without_the_flag_nothing_listens_and_a_taken_address_is_one_clear_line() {
    let pair = shared_pair().await;
    let mut syncer = pair.syncer(&[]);
    syncer.wait_for_log("waiting for one", SOON).await;
    let listening = std::fs::read_to_string(format!("/proc/{}/net/tcp", syncer.pid())).expect("it runs");
    let own: Vec<String> = std::fs::read_dir(format!("/proc/{}/fd", syncer.pid()))
        .expect("it runs")
        .filter_map(|file| {
            std::fs::read_link(file.ok()?.path())
                .ok()?
                .to_str()?
                .strip_prefix("socket:[")?
                .strip_suffix(']')
                .map(str::to_owned)
        })
        .collect();
    let listens = listening.lines().skip(1).any(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // The fourth field is the state, 0A for listening; the tenth the inode.
        fields[3] == "0A" && own.iter().any(|inode| inode == fields[9])
    });
    assert!(!listens, "{listening}");
    assert!(!syncer.log().contains(SERVING));

    let taken = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
    let address = taken.local_addr().expect("it is bound");
    let mut second = pair.syncer(&[&format!("--listen-address={address}")]);
    let status = second.wait(SOON).await;
    assert_eq!(status.code(), Some(1));
    let log = second.log();
    let expected =
        format!("edge-syncer: cannot listen at {address} (--listen-address): Address already in use (os error 98)");
    assert_eq!(log.lines().last(), Some(&*expected), "{log}");
}

#[tokio::test]
async fn a_standby_is_well_and_ready_and_has_figures_once_it_leads() {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&hub, &shop, &["a"], &json!({})).await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let election = ["--leader-elect", "--lease-duration=60s", ANYWHERE];
    let mut leader = pair.syncer(&election);
    arrives(&edge, "v1", "configmaps", &shop, "a").await;
    let mut standby = pair.syncer(&election);
    standby.wait_for_log("standing by", SOON).await;
    let address = address_of(&mut standby).await;
    for path in ["/healthz", "/readyz"] {
        assert_eq!(get(address, path).await, (200, "ok, standing by\n".to_owned()));
    }
    shows(address, &["edge_syncer_leading 0"]).await;
    leader.terminate().await;
    shows(
        address,
        &[
            "edge_syncer_leading 1",
            "edge_syncer_side_up{side=\"hub\"} 1",
            "edge_syncer_objects{direction=\"downsync\",state=\"synced\"} 2",
        ],
    )
    .await;
    assert_eq!(get(address, "/healthz").await, (200, "ok\n".to_owned()));
}
