//! `edge-syncer bundle` between real API servers.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::bench::{ANYWHERE, address_of, command, quoting_webhook};
use crate::support::process::Folder;
use crate::support::stage::{Stage, all_of, select, stage, stock};
use crate::support::story::{SOON, arrives};
use crate::support::{KubeconfigParts, eventually};

/// The files of an archive.
pub(crate) fn unpacked(archive: &Path) -> BTreeMap<String, String> {
    let folder = Folder::create("unpacked");
    let tar = Command::new("tar")
        .arg("-xzf")
        .arg(archive)
        .arg("-C")
        .arg(folder.path())
        .output();
    let tar = tar.expect("tar is there");
    assert!(tar.status.success(), "{}", String::from_utf8_lossy(&tar.stderr));
    let files = std::fs::read_dir(folder.path().join("edge-syncer-bundle")).expect("it has that folder");
    let file = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("it can be read").path();
        let name = path.file_name().expect("it has a name").to_string_lossy().into_owned();
        (name, std::fs::read_to_string(path).expect("it is text"))
    };
    files.map(file).collect()
}

#[tokio::test]
async fn a_bundle_has_what_help_needs_and_says_what_it_leaves_out() {
    let Stage { pair, shop, hub, edge } = stage().await;
    stock(&edge, &shop, &[] as &[&str], &json!({})).await;
    quoting_webhook(&edge, &shop, "not here:").await;
    stock(&hub, &shop, &["prices", "denied"], &json!({"a": "b"})).await;
    select(&hub, &all_of(&shop, &[("", "configmaps")])).await;
    let mut syncer = pair.syncer(&[ANYWHERE]);
    let address = address_of(&mut syncer).await.to_string();
    arrives(&edge, "v1", "configmaps", &shop, "prices").await;
    eventually("the config says what fails", SOON, async || {
        let config = hub
            .get("edge.kubestellar.io/v2alpha1", "syncerconfigs", "", "the-one")
            .await;
        let failures = config.unwrap_or_default()["status"]["edges"][0]["failures"].clone();
        if failures.is_array() { Ok(()) } else { Err("not yet") }
    })
    .await;

    let folder = Folder::create("bundle");
    let file = folder.path().join("x.tar.gz");
    let sides = [pair.hub.kubeconfig(), pair.edge.kubeconfig()];
    let sides = [sides[0].as_path(), sides[1].as_path()];
    let (to, from) = (format!("-o={}", file.display()), format!("--from-address={address}"));
    let said = command("bundle", sides, &[&to, &from], &[]).await;
    let check = command("check", sides, &[], &[]).await;
    assert_eq!(said.code, check.code, "{}{}", said.err, check.out);
    assert_eq!(said.out, "");
    for line in [
        format!("edge-syncer: written: {}\n", file.display()),
        "edge-syncer: it has version.txt, flags.txt, check.txt, page.html, metrics.txt, hub-version.json, ".to_owned(),
        "edge-syncer: missing: nothing\n".to_owned(),
        "edge-syncer: left out: no objects but configs, no data of Secrets, no tokens, ".to_owned(),
    ] {
        assert!(said.err.contains(&line), "{line} in {}", said.err);
    }
    let mode = file.metadata().expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let files = unpacked(&file);
    for (name, part) in [
        ("README.txt", "missing: nothing"),
        ("version.txt", "commit: "),
        ("flags.txt", "--sync-target-uid=test\n"),
        ("check.txt", "✔ hub: configs: "),
        ("page.html", "<h2>Sides</h2>"),
        ("metrics.txt", "edge_syncer_side_up{side=\"hub\"} 1\n"),
        ("hub-version.json", "gitVersion"),
        ("edge-version.json", "gitVersion"),
        ("hub-types.txt", "edge.kubestellar.io: v2alpha1\n"),
        ("edge-types.txt", "apps: v1\n"),
        (
            "plan.txt",
            "downsync: configmaps v1 at the hub, configmaps v1 at the edge, for SyncerConfig//the-one\n",
        ),
        ("failing.txt", "not here: "),
    ] {
        let text = files.get(name).unwrap_or_else(|| panic!("{name} is there"));
        assert!(text.contains(part), "{part} in {name}: {text}");
    }
    let configs: Value = serde_json::from_str(&files["configs.json"]).expect("it is JSON");
    assert_eq!(configs[0]["metadata"]["name"], "the-one");
    assert!(configs[0]["status"]["edges"].is_array(), "{configs}");
    assert_eq!(files.len(), 13, "{:?}", files.keys());
}

#[tokio::test]
async fn what_is_away_is_named_in_the_bundle_and_the_rest_is_there() {
    let Stage { pair, shop, hub, .. } = stage().await;
    stock(&hub, &shop, &["prices"], &json!({"a": "b"})).await;
    select(&hub, &all_of(&shop, &[("", "configmaps")])).await;
    let away = KubeconfigParts::with(|parts| parts.server = Some("https://127.0.0.1:9".to_owned()));
    let folder = Folder::create("bundle");
    let file = folder.path().join("x.tar.gz");
    let to = format!("--output={}", file.display());
    let at = |server: &crate::support::Server| server.write_kubeconfig("away.kubeconfig", &away);
    for (sides, missing, there) in [
        (
            [pair.hub.kubeconfig(), at(&pair.edge)],
            [
                "edge-version.json: the side is not reached",
                "page.html: 127.0.0.1:9: Connection refused",
            ],
            &["hub-version.json", "configs.json", "plan.txt"][..],
        ),
        (
            [at(&pair.hub), pair.edge.kubeconfig()],
            [
                "configs.json: the hub is not reached",
                "hub-types.txt: the side is not reached",
            ],
            &["edge-version.json", "edge-types.txt"],
        ),
        (
            ["/none/x".into(), "/none/y".into()],
            [
                "hub-version.json: the side is not reached",
                "edge-version.json: the side is not reached",
            ],
            &["check.txt", "version.txt"],
        ),
    ] {
        let sides = [sides[0].as_path(), sides[1].as_path()];
        let said = command("bundle", sides, &[&to, "--from-address=127.0.0.1:9"], &[]).await;
        assert_eq!(said.code, Some(1), "{}", said.err);
        let files = unpacked(&file);
        for words in missing {
            assert!(
                files["README.txt"].contains(words),
                "{words} in {}",
                files["README.txt"]
            );
            assert!(said.err.contains(words), "{words} in {}", said.err);
        }
        for name in there {
            assert!(files.contains_key(*name), "{name} in {:?}", files.keys());
        }
    }
    let edge = at(&pair.edge);
    let said = command("bundle", [&pair.hub.kubeconfig(), &edge], &["-o", "/none/x"], &[]).await;
    assert_eq!(said.code, Some(1));
    assert_eq!(
        said.err,
        "edge-syncer: -o \"/none/x\": cannot be written: No such file or directory (os error 2)\n"
    );
}
