//! The tables of metrics and conditions, against a syncer that runs.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::bench::{Bench, bench};
use crate::pages::{self, Names, Page, plain, same, spans};
use crate::support::objects::{config_map, namespace, syncer_config};
use crate::support::stage::{CONFIG_API, all_of};
use crate::support::statuses::{deployment, returns, set_status, web};
use crate::support::story::{SOON, arrives, becomes, copy_equals, edit, gone};
use crate::support::{Credential, KubeconfigParts, Objects, Syncer, eventually};

const PAGE: &str = "docs/reference/metrics.md";
/// The metrics of other roles.
const OF_ROLES: [&str; 2] = ["docs/reference/metrics-init.md", "docs/reference/metrics-publish.md"];

/// What a scrape says, metric by metric: its type, and the values of its labels.
type Figures = BTreeMap<String, (String, BTreeMap<String, Names>)>;

async fn scrape(address: SocketAddr) -> std::io::Result<Figures> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    let (_, text) = text.split_once("\r\n\r\n").expect("an answer has a body");
    let mut figures = Figures::new();
    for line in text.lines() {
        if let Some(about) = line.strip_prefix("# TYPE ") {
            let (name, kind) = about.split_once(' ').expect("a type follows the name");
            figures.insert(name.to_owned(), (kind.to_owned(), BTreeMap::new()));
        } else if !line.starts_with('#') {
            let (labelled, _) = line.rsplit_once(' ').expect("a value follows the name");
            let (name, labels) = labelled.split_once('{').unwrap_or((labelled, ""));
            let of_histogram = ["_bucket", "_sum", "_count"]
                .iter()
                .find_map(|end| name.strip_suffix(end));
            let name = of_histogram.filter(|name| figures.contains_key(*name)).unwrap_or(name);
            let (_, known) = figures.get_mut(name).expect("its type comes first");
            for label in labels.trim_end_matches('}').split_terminator(',') {
                let (label, value) = label.split_once('=').expect("a label has a value");
                let values = known.entry(label.to_owned()).or_default();
                values.insert(value.trim_matches('"').to_owned());
            }
        }
    }
    Ok(figures)
}

/// Where a syncer that was set to choose a port serves.
async fn address_of(syncer: &mut Syncer) -> SocketAddr {
    const ADDRESS: &str = "address=127.0.0.1:";
    syncer.wait_for_log(ADDRESS, SOON).await;
    let log = syncer.log();
    let (_, rest) = log.split_once(ADDRESS).expect("it was waited for");
    let port = rest
        .split(|letter: char| !letter.is_ascii_digit())
        .next()
        .unwrap_or_default();
    SocketAddr::from(([127, 0, 0, 1], port.parse().expect("a port is a number")))
}

/// Fails unless the page has just these metrics, with their types and labels, and just these values of labels.
fn compare(figures: &Figures) {
    let page = Page::open(PAGE);
    let rows = page.rows("metric");
    let in_page: Names = rows.iter().map(|row| plain(&row.cells[0])).collect();
    same("metrics", &in_page, &figures.keys().cloned().collect());
    let mut values: BTreeMap<String, Names> = BTreeMap::new();
    for row in &rows {
        let name = plain(&row.cells[0]);
        let (kind, labels) = &figures[&name];
        assert_eq!(row.cells[1], *kind, "the type of {name}");
        let in_page: Names = spans(&row.cells[2]).into_iter().map(str::to_owned).collect();
        let in_code: Names = labels.keys().filter(|label| *label != "le").cloned().collect();
        assert_eq!(in_page, in_code, "the labels of {name}");
        for (label, seen) in labels {
            values.entry(label.clone()).or_default().extend(seen.iter().cloned());
        }
    }
    // Not enumerated.
    let version = values.remove("version").expect("there is a version");
    assert_eq!(version, Names::from([env!("CARGO_PKG_VERSION").to_owned()]));
    for label in ["commit", "target", "date", "code", "le"] {
        values.remove(label).unwrap_or_else(|| panic!("there is a {label}"));
    }
    let rows = page.rows("label");
    same(
        "labels with values",
        &rows.iter().map(|row| plain(&row.cells[0])).collect(),
        &values.keys().cloned().collect(),
    );
    for row in rows {
        let label = plain(&row.cells[0]);
        let in_page = spans(&row.cells[1]).into_iter().map(str::to_owned).collect();
        same(&format!("values of {label}"), &in_page, &values[&label]);
    }
}

/// Makes the syncer count each result that there is.
async fn make_every_result(hub: &Objects, edge: &Objects) {
    // Adopted, and preserved: they were there before.
    edge.create(&namespace("shop")).await;
    for name in ["adopted", "left"] {
        edge.create(&config_map("shop", name, json!({"of": "edge"}))).await;
    }
    hub.create(&namespace("shop")).await;
    for (name, annotation) in [
        ("adopted", ""),
        ("left", "downsync-overwrite"),
        ("fixed", "replace"),
        ("loose", ""),
    ] {
        let mut object = config_map("shop", name, json!({"of": "hub"}));
        if !annotation.is_empty() {
            let value = if annotation == "replace" { "true" } else { "false" };
            object["metadata"]["annotations"] = json!({format!("edge.kubestellar.io/{annotation}"): value});
        }
        hub.create(&object).await;
    }
    hub.create(&deployment("shop", "web:1")).await;
    let all = all_of("shop", &[("", "configmaps"), ("apps", "deployments")]);
    hub.create(&syncer_config("all", all)).await;
    // Created.
    let of_hub = json!({"of": "hub"});
    for name in ["adopted", "fixed", "loose"] {
        copy_equals(edge, "shop", name, &of_hub).await;
    }
    // Updated, and deleted.
    edit(hub, "shop", "loose", &json!({"data": {"of": "hub, again"}})).await;
    copy_equals(edge, "shop", "loose", &json!({"of": "hub, again"})).await;
    hub.delete("v1", "configmaps", "shop", "loose").await;
    gone(edge, "v1", "configmaps", "shop", "loose").await;
    // Released.
    hub.delete("v1", "configmaps", "shop", "adopted").await;
    // Replaced: somebody at the edge sees to it that the copy cannot be changed.
    edit(edge, "shop", "fixed", &json!({"immutable": true})).await;
    let changed = json!({"of": "hub, again"});
    edit(hub, "shop", "fixed", &json!({"data": changed})).await;
    copy_equals(edge, "shop", "fixed", &changed).await;
    // A status.
    arrives(edge, "apps/v1", "deployments", "shop", "web").await;
    let status = json!({"observedGeneration": 1, "replicas": 2});
    set_status(edge, web("shop"), true, &status).await;
    returns(hub, web("shop"), &status).await;
}

#[tokio::test]
async fn the_metrics_and_the_condition_are_those_of_a_syncer_that_runs() {
    let Bench { pair, hub, edge } = bench().await;
    let flags = [
        "--listen-address=127.0.0.1:0",
        "--heartbeat-interval=1s",
        "--leader-elect",
    ];
    // A certificate has an end, which is one of the figures.
    let certificate = KubeconfigParts::with(|parts| parts.credential = Credential::CertInline);
    let from = pair.hub.write_kubeconfig("certificate.kubeconfig", &certificate);
    let mut syncer = Syncer::start(&from, &pair.edge.kubeconfig(), &flags);
    let address = address_of(&mut syncer).await;
    make_every_result(&hub, &edge).await;
    let results = Page::open(PAGE).rows("label");
    let results = results
        .iter()
        .find(|row| row.cells[0] == "`result`")
        .expect("the page has results");
    let expected = spans(&results.cells[1]).len();
    let figures = eventually("every result is counted", SOON, async || {
        let figures = scrape(address).await.map_err(|error| error.to_string())?;
        let writes = figures.get("edge_syncer_writes_total").ok_or("nothing is counted")?;
        let counted = writes.1.get("result").map_or(0, Names::len);
        let has_heartbeat = figures.contains_key("edge_syncer_last_heartbeat_timestamp_seconds");
        if counted >= expected && has_heartbeat {
            Ok(figures)
        } else {
            Err(format!("{writes:?}"))
        }
    })
    .await;
    compare(&figures);

    // A standby serves what the page says, and no more.
    let mut standby = pair.syncer(&flags);
    let address = address_of(&mut standby).await;
    let figures = scrape(address).await.expect("it answers");
    let page = Page::open(PAGE);
    let paragraph = page.paragraph("Served at `/metrics`");
    let (_, of_standby) = paragraph.split_once("A standby serves").expect("the page says what");
    let of_standby = of_standby.split(" alone").next().unwrap_or_default();
    let in_page = spans(of_standby).into_iter().map(str::to_owned).collect();
    same("metrics of a standby", &in_page, &figures.keys().cloned().collect());

    // The conditions on the config.
    let config = becomes(
        &hub,
        [CONFIG_API, "syncerconfigs", "", "all"],
        "has conditions",
        |config| config["status"]["conditions"].is_array(),
    )
    .await;
    let conditions: Vec<&Value> = config["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .collect();
    let rows = Page::open("docs/reference/conditions.md").rows("condition");
    let in_page = rows.iter().map(|row| plain(&row.cells[0])).collect();
    let kind = |condition: &&Value| condition["type"].as_str().unwrap_or_default().to_owned();
    same("conditions", &in_page, &conditions.iter().map(kind).collect());
    let held = conditions
        .iter()
        .position(|condition| condition["type"] == "DeletesHeld");
    let held = held.expect("it was found");
    assert_eq!(conditions[held]["status"], "False");
    let reason = conditions[held]["reason"].as_str().unwrap_or_default();
    let row = rows
        .iter()
        .find(|row| plain(&row.cells[0]) == "DeletesHeld")
        .expect("it has a row");
    assert!(
        row.cells[1].contains(&format!("`False`: none are, with reason `{reason}`")),
        "{reason}"
    );
}

#[test]
fn every_metric_that_a_page_names_exists() {
    let mut rows = Page::open(PAGE).rows("metric");
    rows.extend(OF_ROLES.iter().flat_map(|page| Page::open(page).rows("metric")));
    let known: Names = rows.iter().map(|row| plain(&row.cells[0])).collect();
    let mut count = 0;
    for page in pages::all() {
        for rest in page.text.split("edge_syncer_").skip(1) {
            let name = rest.split(|letter: char| letter != '_' && !letter.is_ascii_lowercase());
            let name = format!("edge_syncer_{}", name.into_iter().next().unwrap_or_default());
            assert!(known.contains(&name), "{}: there is no {name}", page.path);
            count += 1;
        }
    }
    assert!(count > known.len(), "only {count} names were found");
}
