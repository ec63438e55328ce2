//! Tokens that are kept in a file.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::bench::{RENEWED, Site, count, everything};
use crate::support::objects::config_map;
use crate::support::story::{SOON, copy_equals, edit};
use crate::support::tokens::now;
use crate::support::{SYNCER, eventually};

#[tokio::test]
async fn a_token_is_renewed_in_the_kubeconfig_itself() {
    let site = Site::register(everything()).await;
    let first = site.account.token(-20, 20);
    let file = site.write("hub", &first);
    let flag = format!("--credentials-file={}", file.display());
    let mut syncer = site.syncer(&file, &[&flag]);
    syncer.wait_for_log(RENEWED, SOON).await;
    eventually("the file has the new token", SOON, async || {
        let text = fs::read_to_string(&file).map_err(|error| error.to_string())?;
        if text.contains(&first) { Err(text) } else { Ok(()) }
    })
    .await;
    assert_eq!(mode(&file), 0o600);
    site.has_ended(&first).await;
    site.beats().await;
    assert!(syncer.terminate().await.0.success());
    let syncer = site.syncer(&file, &[]);
    site.beats().await;
    assert_eq!(count(&syncer, "reason=CredentialsRefused"), 0, "{}", syncer.log());
}

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).expect("the file is there").permissions().mode() & 0o777
}

#[tokio::test]
async fn a_renewed_token_survives_a_restart_beside_a_kubeconfig_that_cannot_be_written() {
    let site = Site::register(everything()).await;
    let first = site.account.token(-20, 20);
    let etc = site.write("etc", &first);
    let state = site.path("state");
    fs::create_dir(&state).expect("the folder is ours");
    let kept = state.join("hub");
    let flag = format!("--credentials-file={}", kept.display());
    let flags = [flag.as_str(), "--listen-address=127.0.0.1:0"];
    let mut syncer = site.syncer(&etc, &flags);
    eventually("the token is kept", SOON, async || {
        fs::metadata(&kept).map(drop).map_err(|error| error.to_string())
    })
    .await;
    assert_eq!(mode(&kept), 0o600);
    assert_eq!(
        fs::read_to_string(&etc).ok(),
        Some(site.kubeconfig(&first)),
        "/etc is as it was"
    );
    assert_eq!(
        fs::read_dir(&state).expect("it is there").count(),
        1,
        "nothing half-written is left"
    );
    site.has_ended(&first).await;
    assert!(syncer.terminate().await.0.success());
    let mut syncer = site.syncer(&etc, &flags);
    site.beats().await;
    assert_eq!(count(&syncer, "reason=CredentialsRefused"), 0, "{}", syncer.log());

    // The administrator rotates it: what was issued later counts, though it ends earlier.
    let ends = now() + 400;
    site.write("etc", &site.account.token(1, 400));
    syncer.wait_for_log("reason=KubeconfigReplaced", SOON).await;
    let end = expiry(&mut syncer).await;
    assert!((ends - 2..ends + 60).contains(&end), "{end} is not {ends}");
    assert!(syncer.terminate().await.0.success());
    let mut syncer = site.syncer(&etc, &flags);
    site.beats().await;
    let end = expiry(&mut syncer).await;
    assert!((ends - 2..ends + 60).contains(&end), "{end} is not {ends}");
}

#[tokio::test]
async fn a_dry_run_asks_for_no_token_and_one_that_is_none_does_at_once() {
    let site = Site::register(everything()).await;
    // Most of its life is over, so that it is due.
    let first = site.account.token(-4000, 600);
    let file = site.write("hub", &first);
    let in_file = format!("--credentials-file={}", file.display());
    let in_secret = site.put_into_secret(&first).await;
    let secret = async || site.edge.get("v1", "secrets", &site.shop, "site").await;
    let before = secret().await;
    let tokens_asked_for = |mark| {
        let asks = format!("/serviceaccounts/{}/token", site.account.name);
        let mut requests = site.pair.hub.requests_since(SYNCER, mark);
        requests.retain(|request| request.uri.contains(&site.account.namespace) && request.uri.contains(&asks));
        requests
    };
    for (name, flag) in [("file", &in_file), ("secret", &in_secret)] {
        let mark = site.pair.hub.audit_mark();
        let mut syncer = site.syncer(&file, &[flag, "--dry-run"]);
        syncer.wait_for_log("reason=DryRunComplete", SOON).await;
        // It goes on.
        let later = config_map(&site.shop, &format!("{name}-later"), json!({}));
        site.hub.create(&later).await;
        syncer
            .wait_for_log(&format!("object=ConfigMap/{}/{name}-later", site.shop), SOON)
            .await;
        syncer.terminate().await;
        assert_eq!(tokens_asked_for(mark).len(), 0, "{flag}: {:?}", tokens_asked_for(mark));
        assert_eq!(count(&syncer, RENEWED), 0, "{}", syncer.log());
        assert_eq!(fs::read_to_string(&file).ok(), Some(site.kubeconfig(&first)), "{flag}");
        assert_eq!(secret().await, before, "{flag}");
    }
    let mark = site.pair.hub.audit_mark();
    let mut syncer = site.syncer(&file, &[&in_file]);
    syncer.wait_for_log(RENEWED, SOON).await;
    eventually("it was asked for", SOON, async || match tokens_asked_for(mark).len() {
        1 => Ok(()),
        count => Err(count),
    })
    .await;
}

/// What the metrics say of the end of the hub's credentials.
async fn expiry(syncer: &mut crate::support::Syncer) -> i64 {
    const SERVING: &str = "address=127.0.0.1:";
    syncer.wait_for_log(SERVING, SOON).await;
    let log = syncer.log();
    let (_, port) = log.split_once(SERVING).expect("it was waited for");
    let port: String = port.chars().take_while(char::is_ascii_digit).collect();
    eventually("the metrics have it", SOON, async || {
        let page = get_metrics(&port).await.map_err(|error| error.to_string())?;
        let name = "edge_syncer_credentials_expiration_timestamp_seconds{side=\"hub\"} ";
        let line = page.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.parse().ok()).ok_or(page)
    })
    .await
}

async fn get_metrics(port: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).await?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await?;
    let mut page = String::new();
    stream.read_to_string(&mut page).await?;
    Ok(page)
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_costs_a_line_and_not_the_token() {
    let site = Site::register(everything()).await;
    let first = site.account.token(-20, 20);
    let etc = site.write("etc", &first);
    // A file system that takes nothing, for root as well.
    let flag = "--credentials-file=/proc/sys/kernel/hub.kubeconfig";
    let mut syncer = site.syncer(&etc, &[flag]);
    syncer.wait_for_log("reason=TokenNotKept", SOON).await;
    site.has_ended(&first).await;
    site.beats().await;
    edit(&site.hub, &site.shop, "a", &json!({"data": {"v": "1"}})).await;
    copy_equals(&site.edge, &site.shop, "a", &json!({"v": "1"})).await;
    assert_eq!(count(&syncer, "reason=TokenNotKept"), 1, "{}", syncer.log());
    assert_eq!(count(&syncer, RENEWED), 1);
    let log = syncer.log();
    let line = log
        .lines()
        .find(|line| line.contains("TokenNotKept"))
        .unwrap_or_default();
    assert!(
        line.contains("/proc/sys/kernel/hub.kubeconfig: cannot be written: "),
        "{line}"
    );
}
