//! Secrets that are planted wherever there are some, and that nothing shows: no log at any level, Event, metric, page,
//! status of a config, diff or bundle.

use std::path::{Path, PathBuf};

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::bench::{ANYWHERE, address_of, ask, command, quoting_webhook};
use crate::bundle::unpacked;
use crate::support::kubeconfig::base64;
use crate::support::objects::namespace;
use crate::support::process::Folder;
use crate::support::stage::{Stage, all_of, select, stage};
use crate::support::story::{SOON, arrives};
use crate::support::{Credential, KubeconfigParts, Syncer, eventually, unique_suffix};

/// What all planted secrets have in them: it is nowhere else.
pub(crate) const CANARY: &str = "kAn4rienVogel";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
pub(crate) const TRACE: [(&str, &str); 2] = [("EDGE_SYNCER_LOG", "trace"), ("RUST_LOG", "trace")];

/// A secret of its own.
pub(crate) fn secret(what: &str) -> String {
    format!("{CANARY}-{what}-{}", unique_suffix())
}

/// Checks that a text shows nothing of what was planted, neither as it is, nor in base64, whatever stands before it.
pub(crate) fn shows_none(what: &str, text: &str) {
    let forms = (0..3).map(|before| {
        let coded = base64([&[b'x'; 2][..before], CANARY.as_bytes()].concat());
        // The first and the last digits have bits of what stands beside it.
        coded[4 * usize::from(before > 0)..coded.len() - 4].to_owned()
    });
    for form in forms.chain([CANARY.to_owned()]) {
        let found = text.lines().find(|line| line.contains(&form));
        assert!(found.is_none(), "{what} shows {form}: {}", found.unwrap_or_default());
    }
}

/// A Secret with values in all places, as kubectl applies it.
pub(crate) fn planted(shop: &str, name: &str) -> Value {
    let last = json!({"stringData": {"a": secret("last")}, "data": {"b": base64(secret("last"))}});
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"namespace": shop, "name": name, "annotations": {LAST_APPLIED: last.to_string()}},
        "data": {"b": base64(secret("last")), "password": base64(secret("data")), "lines": base64(format!("a\n{}\n", secret("line"))),
            "login": base64(json!({"auth": {"password": secret("login")}}).to_string())},
        "stringData": {"token": secret("text")},
    })
}

/// A kubeconfig of a server that leads there, with secrets in all entries, the last of which is in use: its user is as
/// given.
fn kubeconfig(folder: &Folder, name: &str, (server, proxy): (&str, &str), user: &Value) -> PathBuf {
    let exec = json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/false",
        "interactiveMode": "Never", "args": [secret("arg")], "env": [{"name": "PASS", "value": secret("env")}]}});
    let key = format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
        base64(secret("key"))
    );
    let others = [
        json!({"username": "u", "password": secret("password")}),
        json!({"token": secret("token")}),
        json!({"client-certificate-data": base64(&key), "client-key-data": base64(&key)}),
        exec,
    ];
    let users = others.iter().chain([user]).zip(0..);
    let users: Vec<Value> = users
        .map(|(user, index)| json!({"name": format!("u{index}"), "user": user}))
        .collect();
    let mut cluster = json!({"server": server, "insecure-skip-tls-verify": true});
    if !proxy.is_empty() {
        cluster["proxy-url"] = proxy.into();
    }
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}], "users": users,
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": format!("u{}", others.len())}}],
    });
    folder.write(name, config.to_string())
}

/// Everything in the configs and the Events of both sides, and what a running syncer serves.
pub(crate) async fn all_that_is_seen(stage: &Stage, syncer: &mut Syncer) -> String {
    let mut seen = String::new();
    let address = address_of(syncer).await;
    for path in ["/", "/metrics", "/healthz", "/readyz"] {
        seen += &ask(address, "GET", path).await.1;
    }
    for at in [&stage.hub, &stage.edge] {
        for path in ["/api/v1/events", "/apis/events.k8s.io/v1/events"] {
            seen += &at.read(path).await.expect("it is served").to_string();
        }
    }
    for plural in ["syncerconfigs", "edgesyncconfigs", "edges"] {
        let path = format!("/apis/edge.kubestellar.io/v2alpha1/{plural}");
        seen += &stage.hub.read(&path).await.expect("it is served").to_string();
    }
    seen
}

/// What all commands say that take these kubeconfigs, with the bundle, and of each of these objects.
pub(crate) async fn all_that_is_said(sides: [&Path; 2], folder: &Folder, objects: &[String]) -> String {
    let file = folder.path().join("x.tar.gz");
    let _ = std::fs::remove_file(&file);
    let to = format!("-o={}", file.display());
    let objects: Vec<String> = objects.iter().map(|object| format!("--object={object}")).collect();
    let mut all = vec![
        ("check", vec![]),
        ("check", vec!["-o=json"]),
        ("status", vec!["-o=wide"]),
        ("status", vec!["-o=json"]),
        ("diff", vec!["-v=10"]),
        ("bundle", vec![&*to, "-v=10"]),
    ];
    for object in &objects {
        all.extend([("status", vec![&**object, "-v=10"]), ("diff", vec![object, "-v=10"])]);
    }
    let all = all.iter().map(|(name, flags)| command(name, sides, flags, &TRACE));
    let said = join_all(all).await.into_iter();
    let mut said: String = said.flat_map(|printed| [printed.out, printed.err]).collect();
    if file.exists() {
        said.extend(unpacked(&file).into_values());
    }
    said
}

#[tokio::test]
async fn no_secret_that_is_synced_or_refused_is_shown_anywhere() {
    let stage = stage().await;
    let (shop, hub, edge) = (&stage.shop, &stage.hub, &stage.edge);
    hub.create(&namespace(shop)).await;
    edge.create(&namespace(shop)).await;
    quoting_webhook(edge, shop, "it quotes:").await;
    for name in ["good", "denied", "changed"] {
        hub.create(&planted(shop, name)).await;
    }
    select(hub, &all_of(shop, &[("", "secrets")])).await;
    let proxy = format!("http://u:{}@127.0.0.1:9", secret("proxy"));
    let env = [TRACE[0], ("HTTPS_PROXY", &*proxy), ("NO_PROXY", "127.0.0.1")];
    let by_file = KubeconfigParts::with(|parts| parts.credential = Credential::TokenFile);
    let sides = [
        stage.pair.hub.write_kubeconfig("file.kubeconfig", &by_file),
        stage.pair.edge.kubeconfig(),
    ];
    let flags = [ANYWHERE, "-v=10"];
    let mut syncer = Syncer::start_with_env(&sides[0], &sides[1], &flags, &env);
    arrives(edge, "v1", "secrets", shop, "good").await;
    arrives(edge, "v1", "secrets", shop, "changed").await;
    // The words are there, without the values in them.
    let refused = eventually("the refusal is logged", SOON, async || {
        let log = syncer.log();
        let line = log.lines().find(|line| line.contains("it quotes:")).map(str::to_owned);
        line.ok_or("not yet")
    })
    .await;
    assert!(refused.contains("it quotes: *** "), "{refused}");
    // Somebody at the edge changes one, and it is corrected.
    let patch = json!({"stringData": {"b": secret("changed")}});
    edge.merge_patch("v1", "secrets", shop, "changed", &patch).await;
    syncer.wait_for_log("reason=CopyDrifted", SOON).await;
    for (at, path) in [
        (hub, "/apis/edge.kubestellar.io/v2alpha1/syncerconfigs"),
        (hub, "/apis/events.k8s.io/v1/events"),
        (edge, "/apis/events.k8s.io/v1/events"),
    ] {
        eventually("both sides say what fails", SOON, async || {
            let text = at.read(path).await.unwrap_or_default().to_string();
            if text.contains("it quotes: ***") {
                Ok(())
            } else {
                Err(path)
            }
        })
        .await;
    }

    let seen = all_that_is_seen(&stage, &mut syncer).await;
    assert!(seen.contains("it quotes: ***"), "{seen}");
    shows_none("what is seen", &seen);
    let address = format!("--from-address={}", address_of(&mut syncer).await);
    let folder = Folder::create("canary");
    let both = [sides[0].as_path(), sides[1].as_path()];
    let printed = command(
        "bundle",
        both,
        &[&format!("-o={}/y", folder.path().display()), &address],
        &env,
    )
    .await;
    let files = unpacked(&folder.path().join("y"));
    assert!(
        files["failing.txt"].contains("it quotes: ***"),
        "{}",
        files["failing.txt"]
    );
    shows_none("the bundle", &files.into_values().collect::<String>());
    shows_none("what bundle says", &printed.err);
    shows_none("the log", &syncer.log());
    shows_none("the log, of tokens", &syncer.log().replace("admin-token", CANARY));
    syncer.terminate().await;

    // One would be changed, and one created, which is denied.
    let patch = json!({"stringData": {"password": secret("next")}});
    hub.merge_patch("v1", "secrets", shop, "good", &patch).await;
    let said = all_that_is_said(both, &folder, &[]).await;
    assert!(said.contains("***2") && said.contains("it quotes: ***"), "{said}");
    shows_none("what is said", &said.replace("admin-token", CANARY));
    let dry = Syncer::start_with_env(&sides[0], &sides[1], &["--dry-run", "-v=10", "--log-format=json"], &env);
    eventually("all was tried", SOON, async || match dry.log() {
        log if log.contains("DryRunComplete") => Ok(()),
        log => Err(log),
    })
    .await;
    shows_none("a dry run", &dry.log().replace("admin-token", CANARY));
}

#[tokio::test]
async fn nothing_of_a_kubeconfig_that_cannot_be_used_is_shown() {
    let Stage { pair, .. } = stage().await;
    let folder = Folder::create("canary");
    let url = pair.hub.url();
    let port = url.rsplit(':').next().expect("it has one");
    let token = json!({"token": secret("token")});
    let in_file = folder.write("token", secret("file"));
    let odd = folder.write("odd-token", format!("{}\n{}\u{1}", secret("odd"), secret("odd")));
    let with_user = format!("https://me:{}@127.0.0.1:{port}", secret("url"));
    let with_query = format!("{url}?token={}", secret("query"));
    let proxy = format!("http://me:{}@127.0.0.1:9", secret("proxy"));
    let odd_proxy = format!("ftp://me:{}@127.0.0.1:9", secret("proxy"));
    let mut all = Vec::new();
    for (name, place, user) in [
        ("refused", (url, ""), token.clone()),
        ("refused-file", (url, ""), json!({"tokenFile": in_file})),
        ("odd-file", (url, ""), json!({"tokenFile": odd})),
        ("odd-token", (url, ""), json!({"token": format!("{}\n", secret("odd"))})),
        ("number", (url, ""), json!({"token": [secret("list")]})),
        (
            "password",
            (url, ""),
            json!({"username": "me", "password": secret("basic")}),
        ),
        ("with-user", (&*with_user, ""), token.clone()),
        ("with-query", (&*with_query, ""), token.clone()),
        ("proxy", (url, &*proxy), token.clone()),
        ("odd-proxy", (url, &*odd_proxy), token.clone()),
        (
            "key",
            (url, ""),
            json!({"client-certificate-data": base64(secret("c")), "client-key-data": base64(secret("k"))}),
        ),
        (
            "odd-key",
            (url, ""),
            json!({"client-certificate-data": secret("c"), "client-key-data": secret("k")}),
        ),
        (
            "exec",
            (url, ""),
            json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/echo",
            "interactiveMode": "Never", "args": [secret("arg")], "env": [{"name": "P", "value": secret("env")}]}}),
        ),
        (
            "provider",
            (url, ""),
            json!({"auth-provider": {"name": "x", "config": {"token": secret("provider")}}}),
        ),
    ] {
        all.push(kubeconfig(&folder, name, place, &user));
    }
    all.push(folder.write(
        "no-yaml",
        format!("users:\n- name: u\n  user: {{token: {}", secret("yaml")),
    ));
    all.push(folder.write("scalar", format!("a: 1\nusers: {}\n", secret("scalar"))));
    let edge = pair.edge.kubeconfig();
    for file in all {
        let said = all_that_is_said([&file, &edge], &folder, &[]).await;
        assert!(!said.is_empty());
        shows_none(&format!("what is said of {}", file.display()), &said);
        shows_none(&format!("the log of {}", file.display()), &of_a_run(&file, &edge).await);
    }
}

/// What `run` logs: until it ends, or has tried.
async fn of_a_run(hub: &Path, edge: &Path) -> String {
    let mut syncer = Syncer::start_with_env(hub, edge, &["-v=10"], &TRACE);
    eventually("it says what is wrong", SOON, async || {
        let log = syncer.log();
        let is_wrong = [
            "CredentialsRefused",
            "reason=Forbidden",
            "SideUnreachable",
            "NotAnApi",
            "NothingToRenew",
        ];
        let has_said = is_wrong.iter().any(|reason| log.contains(reason));
        if has_said || !syncer.is_running() {
            Ok(())
        } else {
            Err(log)
        }
    })
    .await;
    syncer.log()
}

#[tokio::test]
async fn what_is_planted_would_be_found() {
    let planted = secret("x");
    for text in [
        planted.clone(),
        base64(&planted),
        base64(format!("a{planted}")),
        base64(format!("ab{planted}")),
    ] {
        let found = std::panic::catch_unwind(|| shows_none("it", &text));
        assert!(found.is_err(), "{text}");
    }
    shows_none("it", "kanarienvogel");
}
