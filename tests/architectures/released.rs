//! What each binary does, and that one takes over from another.

mod compressed;
mod upgrade;

use std::fmt::Write as _;
use std::io::Read as _;
use std::process::Command;
use std::time::Duration;

use flate2::read::ZlibDecoder;
use serde_json::{Value, json};

use crate::support::dist::{self, Arch};
use crate::support::objects::{Objects, config_map, namespace};
use crate::support::stage::{numbered, own_group, select, stock};
use crate::support::story::{
    SOON, arrives, becomes, copy_equals, crd, custom_object, drop_crds, gone, install_crd, upsync_all,
};
use crate::support::{
    Ca, Credential, KubeconfigParts, Pair, PairLease, SYNCER, Syncer, comes_to_rest, eventually, shared_pair,
};

/// Objects of this many bytes are at the limit of what API servers keep.
const LARGE: usize = 1_000_000;
/// So many objects make a list that the server compresses.
const LISTED: usize = 120;
/// An emulated program needs a tenfold of time.
const EMULATED: Duration = Duration::from_secs(180);

fn arch(name: &str) -> Arch {
    let archs = dist::archs();
    let found = archs.into_iter().find(|arch| arch.name == name);
    found.unwrap_or_else(|| panic!("{name} is in cross/targets"))
}

#[tokio::test]
#[ignore = "needs scripts/build-all and QEMU"]
async fn the_one_for_amd64_syncs() {
    syncs(&arch("amd64")).await;
}

#[tokio::test]
#[ignore = "needs scripts/build-all and QEMU"]
async fn the_one_for_arm64_syncs() {
    syncs(&arch("arm64")).await;
}

#[tokio::test]
#[ignore = "needs scripts/build-all and QEMU"]
async fn the_one_for_armv7_syncs() {
    syncs(&arch("armv7")).await;
}

#[tokio::test]
#[ignore = "needs scripts/build-all and QEMU"]
async fn the_one_for_s390x_syncs() {
    syncs(&arch("s390x")).await;
}

#[test]
#[ignore = "needs scripts/build-all and QEMU"]
fn each_binary_has_a_test_and_says_what_it_is() {
    let names: Vec<String> = dist::archs().into_iter().map(|arch| arch.name).collect();
    assert_eq!(
        names,
        ["amd64", "arm64", "armv7", "s390x"],
        "each has a test of its own above"
    );
    for arch in dist::archs() {
        let output = arch.command(&["version"]).output().expect("it can be started");
        let text = String::from_utf8(output.stdout).expect("the version is UTF-8");
        assert!(output.status.success(), "{}: {text}", arch.name);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], format!("edge-syncer {}", env!("CARGO_PKG_VERSION")));
        assert!(lines[1].len() >= "commit: 123456789012".len(), "{text}");
        assert_eq!(lines[2], format!("target: {}", arch.tools));
        assert!(lines[3].starts_with("date: 20"), "{text}");
    }
}

#[test]
#[ignore = "needs scripts/build-all"]
fn each_binary_lists_its_components() {
    for arch in dist::archs() {
        let binary = arch.binary();
        let list = Command::new("readelf")
            .args(["--hex-dump=.dep-v0", "--wide"])
            .arg(&binary)
            .output()
            .expect("binutils is installed");
        // `  0x00000000 789cad9d 5f6fe346 92c0bf0a b14f7b40  x..._o.F.....O{@`
        let dump = String::from_utf8_lossy(&list.stdout).into_owned();
        let lines = dump.lines().filter_map(|line| line.strip_prefix("  0x"));
        let digits: String = lines.flat_map(|line| line.split(' ').skip(1).take(4)).collect();
        let bytes: Vec<u8> = (0..digits.len() / 2)
            .map_while(|at| u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok())
            .collect();
        let mut text = String::new();
        let read = ZlibDecoder::new(&*bytes).read_to_string(&mut text);
        read.unwrap_or_else(|error| panic!("{}: {error}: {dump}", binary.display()));
        let list: Value = serde_json::from_str(&text).expect("it is JSON");
        let components = list["packages"].as_array().expect("it has components");
        for name in ["edge-syncer", "kube-client", "rustls"] {
            assert!(components.iter().any(|it| it["name"] == name), "no {name}: {text}");
        }
    }
}

/// A kubeconfig for each side: a client certificate inside, or files beside it.
fn kubeconfigs(pair: &Pair) -> [std::path::PathBuf; 2] {
    let inline = KubeconfigParts::with(|parts| parts.credential = Credential::CertInline);
    let files = KubeconfigParts::with(|parts| {
        parts.credential = Credential::CertFiles;
        parts.ca = Ca::File;
    });
    [
        pair.hub.write_kubeconfig("inline", &inline),
        pair.edge.write_kubeconfig("files", &files),
    ]
}

/// A text that does not repeat itself much.
fn text(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 16);
    let mut number: u64 = 1;
    while text.len() < bytes {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        // Writing to a string cannot fail.
        let _ = write!(text, "{number:x} ");
    }
    text.truncate(bytes);
    text
}

/// The story of one syncer: both directions, statuses, large things, a restart and an end.
async fn syncs(arch: &Arch) {
    let pair = shared_pair().await;
    let [shop, back] = [pair.namespace("shop"), pair.namespace("back")];
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let (group, version) = own_group(&shop);
    install_crd(&[&hub, &edge], &crd(&group, "gauges", true)).await;
    stock(&hub, &shop, &numbered(LISTED), &json!({"text": text(2_000)})).await;
    let large = json!({"text": text(LARGE)});
    hub.create(&config_map(&shop, "large", large.clone())).await;
    hub.create(&custom_object(&group, "gauges", &shop, "a", 1)).await;
    edge.create(&namespace(&back)).await;
    edge.create(&config_map(&back, "up", json!({"v": "1"}))).await;
    let spec = json!({
        "namespaceScope": {"namespaces": [shop], "resources": [
            {"group": "", "resource": "configmaps", "apiVersion": "v1"},
            {"group": group, "resource": "gauges", "apiVersion": "v1"},
        ]},
        "upsync": [upsync_all("", &["configmaps"], &back)],
    });
    select(&hub, &spec).await;

    let [from, to] = kubeconfigs(&pair);
    let mut syncer = arch.start(&from, &to, &[]);
    copies_of(&edge, &shop, LISTED + 1).await;
    copy_equals(&edge, &shop, "large", &large).await;
    let at = [version.as_str(), "gauges", &shop, "a"];
    arrives(&edge, at[0], at[1], at[2], at[3]).await;
    copy_equals(&hub, &back, "up", &json!({"v": "1"})).await;
    let status = json!({"level": 7});
    edge.patch_status(at[0], at[1], at[2], at[3], &status).await;
    becomes(&hub, at, "has the status of the edge", |object| {
        object["status"] == status
    })
    .await;

    // A change in each direction while it runs.
    hub.merge_patch("v1", "configmaps", &shop, "c0", &json!({"data": {"more": "1"}}))
        .await;
    becomes(&edge, ["v1", "configmaps", &shop, "c0"], "has the change", |copy| {
        copy["data"]["more"] == "1"
    })
    .await;
    edge.merge_patch("v1", "configmaps", &back, "up", &json!({"data": {"v": "2"}}))
        .await;
    copy_equals(&hub, &back, "up", &json!({"v": "2"})).await;

    // What happens while it is away counts after the restart, and nothing else is written.
    let (ended, _) = syncer.terminate().await;
    assert_eq!(ended.code(), Some(0), "{}", syncer.log());
    let before = everything(&pair, &shop, &back).await;
    hub.delete("v1", "configmaps", &shop, "c1").await;
    let mut syncer = arch.start(&from, &to, &[]);
    gone(&edge, "v1", "configmaps", &shop, "c1").await;
    let after = idle(&pair, &shop, &back).await;
    assert_eq!(changed(&before, &after), ["c1"], "{}", syncer.log());
    let (ended, _) = syncer.terminate().await;
    assert_eq!(ended.code(), Some(0), "{}", syncer.log());
    drop_crds(&[&hub, &edge], &[&format!("gauges.{group}")]).await;
}

/// Waits until so many `ConfigMap`s are in a namespace.
async fn copies_of(at: &Objects, shop: &str, count: usize) {
    eventually("all copies arrive", EMULATED, async || {
        let found = at
            .try_list("v1", "configmaps", shop, "")
            .await
            .map_err(|error| error.to_string())?;
        if found.len() == count {
            Ok(())
        } else {
            Err(format!("{} of {count} are there", found.len()))
        }
    })
    .await;
}

/// All copies, by name: those at the edge, and those at the hub that come from there.
async fn everything(pair: &Pair, shop: &str, back: &str) -> Vec<Value> {
    let mut all = pair.edge.objects().list("v1", "configmaps", shop, "").await;
    all.extend(pair.hub.objects().list("v1", "configmaps", back, "").await);
    let mark = |object: &Value| json!([object["metadata"]["name"], object["metadata"]]);
    let mut all: Vec<Value> = all.iter().map(mark).collect();
    all.sort_by_key(|entry| entry[0].to_string());
    all
}

/// The same when it has not changed for a while.
async fn idle(pair: &Pair, shop: &str, back: &str) -> Vec<Value> {
    comes_to_rest(
        "copies stay as they are",
        Duration::from_secs(3),
        EMULATED,
        async || Ok::<_, String>(everything(pair, shop, back).await),
    )
    .await
}

/// The names of copies whose metadata differ or that are in one of both alone.
fn changed(before: &[Value], after: &[Value]) -> Vec<String> {
    let differ = before.iter().filter(|entry| !after.contains(entry));
    let differ = differ.chain(after.iter().filter(|entry| !before.contains(entry)));
    let mut names: Vec<String> = differ
        .map(|entry| entry[0].as_str().unwrap_or_default().to_owned())
        .collect();
    names.sort();
    names.dedup();
    names
}

/// A syncer of each architecture takes over from one of another: what one has noted down, the next one reads, also where
/// bytes have another order.
#[tokio::test]
#[ignore = "needs scripts/build-all and QEMU"]
async fn a_syncer_of_one_takes_over_from_one_of_another_and_changes_nothing() {
    let pair: PairLease = shared_pair().await;
    let [shop, back] = [pair.namespace("shop"), pair.namespace("back")];
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    stock(&hub, &shop, &numbered(20), &json!({"text": text(500)})).await;
    edge.create(&namespace(&back)).await;
    for name in ["a", "b"] {
        edge.create(&config_map(&back, name, json!({"of": "edge"}))).await;
    }
    let spec = json!({
        "namespaceScope": {"namespaces": [shop], "resources": [{"group": "", "resource": "configmaps", "apiVersion": "v1"}]},
        "upsync": [upsync_all("", &["configmaps"], &back)],
    });
    select(&hub, &spec).await;
    let [from, to] = kubeconfigs(&pair);
    let mut before: Option<(Vec<Value>, Value)> = None;
    let names = ["amd64", "s390x", "arm64", "armv7", "s390x", "amd64"];
    for (round, name) in names.into_iter().enumerate() {
        let marks = (pair.edge.audit_mark(), pair.hub.audit_mark());
        let mut syncer = arch(name).start(&from, &to, &["--listen-address=localhost:0"]);
        // A delete proves that the new one knows the copies that others have made.
        if round > 0 {
            hub.delete("v1", "configmaps", &shop, &format!("c{round}")).await;
            gone(&edge, "v1", "configmaps", &shop, &format!("c{round}")).await;
        } else {
            copies_of(&edge, &shop, 20).await;
            copy_equals(&hub, &back, "b", &json!({"of": "edge"})).await;
        }
        let after = idle(&pair, &shop, &back).await;
        let record = record_of(&edge).await;
        if let Some((before, record_before)) = &before {
            assert_eq!(
                changed(before, &after),
                [format!("c{round}")],
                "{name}: {}",
                syncer.log()
            );
            assert_eq!(*record_before, record, "{name} understands the record");
            let created = |server: &crate::support::Server, mark| {
                let requests = server.requests_since(SYNCER, mark).into_iter();
                requests.filter(|request| request.verb == "create").count()
            };
            assert_eq!(created(&pair.edge, marks.0) + created(&pair.hub, marks.1), 0, "{name}");
        }
        before = Some((after, record));
        end(&mut syncer).await;
    }
}

async fn end(syncer: &mut Syncer) {
    let (ended, _) = syncer.terminate().await;
    assert_eq!(ended.code(), Some(0), "{}", syncer.log());
}

/// What the record of synced types holds, but for how far the hub was: that moves on.
async fn record_of(edge: &Objects) -> Value {
    let record = eventually("there is a record", SOON, async || {
        edge.get("v1", "configmaps", "default", "edge-syncer-types-test")
            .await
            .ok_or("there is none")
    })
    .await;
    let mut data = record["data"].clone();
    let parts = data.as_object_mut().expect("it has data");
    assert!(parts.remove("hub-versions").is_some(), "{parts:?}");
    data
}
