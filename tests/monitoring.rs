//! `manifests/monitoring`: what it names is there, `promtool` takes it, a real Prometheus scrapes real syncers, and each query
//! of alerts and dashboard has an answer.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::{Value, json};
use support::manifests::documents_in;
use support::objects::{config_map, namespace};
use support::process::{Folder, Leashed};
use support::stage::{numbered, select, stock};
use support::story::{SOON, arrives, config_map_entry, copy_equals, edit};
use support::tokens::Account;
use support::{
    Objects, PROMETHEUS, PROMTOOL, Pair, PairOptions, Server, ServerOptions, Syncer, eventually, free_port, kubectl,
    monitoring, wait_for_crd,
};

const PAGE: &str = "docs/monitoring.md";
const RULES: &str = "manifests/monitoring/prometheusrule.yaml";
const DASHBOARD: &str = "manifests/monitoring/dashboard.json";
/// The alert that fires for what has gone.
const SILENT: &str = "EdgeSyncerSilent";
const SHOP: &str = "shop";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect("it is there")
}

/// The `spec` of the rules.
fn rules() -> Value {
    documents_in(&root().join(RULES)).remove(0)["spec"].take()
}

/// The name and the query of each alert.
fn alerts() -> Vec<(String, String)> {
    let rules = rules();
    let rules = rules["groups"][0]["rules"].as_array().expect("there are rules");
    let text = |rule: &Value, field: &str| rule[field].as_str().expect("it is text").to_owned();
    rules
        .iter()
        .map(|rule| (text(rule, "alert"), text(rule, "expr")))
        .collect()
}

/// The queries of the dashboard, each with its panel's title, as Grafana would ask them.
fn queries() -> Vec<(String, String)> {
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)).expect("it is JSON");
    let panels = dashboard["panels"].as_array().expect("there are panels");
    let of_panel = |panel: &Value| {
        let title = panel["title"].as_str().expect("it has a title").to_owned();
        let targets = panel["targets"].as_array().expect("it has queries").clone();
        let query = move |target: &Value| {
            let query = target["expr"].as_str().expect("it is text");
            let query = query.replace("$namespace", ".*").replace("$syncer", ".*");
            (title.clone(), query.replace("$__rate_interval", "30s"))
        };
        targets.iter().map(query).collect::<Vec<_>>()
    };
    panels.iter().flat_map(of_panel).collect()
}

/// The metrics in a text.
fn named_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|letter: char| letter != '_' && !letter.is_ascii_alphanumeric());
    let names = words.filter(|word| word.starts_with("edge_syncer_") || word.starts_with("process_"));
    let of_histogram = |name: &str| name.strip_suffix("_bucket").unwrap_or(name).to_owned();
    names.map(of_histogram).collect()
}

#[test]
fn alerts_and_dashboard_name_metrics_that_there_are_and_the_page_names_each_alert() {
    let known = named_in(&read("docs/reference/metrics.md"));
    let used = named_in(&(read(RULES) + &read(DASHBOARD)));
    let unknown: Vec<_> = used.difference(&known).collect();
    assert!(unknown.is_empty(), "there is no {unknown:?}");
    let unused: Vec<_> = known
        .difference(&used)
        .filter(|name| !name.ends_with("_total"))
        .collect();
    assert!(unused.is_empty(), "nobody looks at {unused:?}");
    let page = read(PAGE);
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let rows: Vec<&str> = rows.collect();
    let alerts = alerts();
    let names: Vec<&str> = alerts.iter().map(|(name, _)| &**name).collect();
    assert_eq!(rows, names);
}

/// The block of shell commands in the page.
fn commands() -> String {
    let page = read(PAGE);
    let (_, rest) = page.split_once("```sh\n").expect("there is a block");
    let (commands, rest) = rest.split_once("```").expect("it ends");
    assert!(!rest.contains("```sh"), "there is one block");
    commands.to_owned()
}

/// A type of the operator, as far as it matters here.
fn operator_type(plural: &str, kind: &str) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.monitoring.coreos.com")},
        "spec": {
            "group": "monitoring.coreos.com", "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

#[tokio::test]
async fn the_commands_of_the_page_make_what_operator_and_grafana_look_for() {
    let edge = Server::start("edge", ServerOptions::default()).await;
    let at = edge.objects();
    at.create(&namespace("monitoring")).await;
    for (plural, kind) in [("podmonitors", "PodMonitor"), ("prometheusrules", "PrometheusRule")] {
        at.create(&operator_type(plural, kind)).await;
        wait_for_crd(&at, &format!("{plural}.monitoring.coreos.com")).await;
    }
    let kubeconfig = edge.kubeconfig().display().to_string();
    let script = commands().replace("edge.kubeconfig", &kubeconfig);
    let tools = kubectl().parent().expect("it is in a folder").display().to_string();
    let path = format!("{tools}:{}", std::env::var("PATH").unwrap_or_default());
    let shell = Command::new("bash")
        .args(["-euc", &script])
        .current_dir(root())
        .env("PATH", path)
        .output();
    succeeded(&shell.expect("bash can be run"));

    let api = "monitoring.coreos.com/v1";
    let monitor = arrives(&at, api, "podmonitors", "monitoring", "edge-syncer").await;
    // What the operator would look for, and what `gen` prints.
    let pods = documents_in(&root().join("manifests/base/edge-syncer.yaml"));
    let pod = pods
        .iter()
        .find(|object| object["kind"] == "Deployment")
        .expect("it is there");
    let pod = &pod["spec"]["template"];
    for (label, value) in monitor["spec"]["selector"]["matchLabels"]
        .as_object()
        .expect("it selects")
    {
        assert_eq!(pod["metadata"]["labels"][label], *value, "{label}");
    }
    let endpoint = &monitor["spec"]["podMetricsEndpoints"][0];
    assert_eq!(endpoint["port"], pod["spec"]["containers"][0]["ports"][0]["name"]);
    let source = endpoint["relabelings"][0]["sourceLabels"][0]
        .as_str()
        .unwrap_or_default();
    let label = |label: &String| source.ends_with(&label.replace(['.', '/', '-'], "_"));
    let labels = pod["metadata"]["labels"].as_object().expect("it has labels");
    assert!(labels.keys().any(label), "{source}");

    arrives(&at, api, "prometheusrules", "monitoring", "edge-syncer").await;
    let dashboard = arrives(&at, "v1", "configmaps", "monitoring", "edge-syncer-dashboard").await;
    assert_eq!(dashboard["metadata"]["labels"]["grafana_dashboard"], "1");
    assert_eq!(dashboard["data"]["edge-syncer.json"], read(DASHBOARD));
}

fn succeeded(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{}:\n{text}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

fn promtool(args: &[&str], input: &str, folder: &Path) -> Output {
    let file = folder.join("input");
    fs::write(&file, input).expect("the folder can be written");
    let input = fs::File::open(file).expect("it was written");
    let run = Command::new(monitoring(PROMTOOL))
        .args(args)
        .stdin(input)
        .current_dir(folder)
        .output();
    run.expect("promtool can be run")
}

#[test]
#[ignore = "needs promtool: scripts/test --monitoring"]
fn a_real_prometheus_takes_the_rules_and_each_alert_fires_for_what_it_is_for_and_for_nothing_else() {
    let folder = Folder::create("rules");
    let mut rules = rules();
    let text = |rules: &Value| rules.to_string();
    // JSON is YAML.
    folder.write("rules.yaml", text(&rules));
    succeeded(&promtool(
        &["check", "rules", "--lint=all", "--lint-fatal", "rules.yaml"],
        "",
        folder.path(),
    ));
    for rule in rules["groups"][0]["rules"].as_array_mut().expect("there are rules") {
        let described = rule["annotations"]
            .as_object_mut()
            .expect("it has some")
            .remove("description");
        assert!(described.is_some_and(|text| text.as_str().is_some_and(|text| text.contains(PAGE))));
    }
    folder.write("rules.yaml", text(&rules));
    let tests = read("tests/monitoring/alerts.yaml");
    folder.write("alerts.yaml", &tests);
    succeeded(&promtool(&["test", "rules", "alerts.yaml"], "", folder.path()));
    for (name, _) in alerts() {
        let cases = tests.matches(&format!("alertname: {name}\n")).count();
        assert!(cases >= 2, "{name} has {cases} cases");
    }
}

/// A Prometheus that scrapes these addresses each second, with the labels that the `PodMonitor` gives.
struct Prometheus {
    url: String,
    folder: Folder,
    _process: Leashed,
}

impl Prometheus {
    fn start(syncers: &[(&str, u16)]) -> Self {
        let folder = Folder::create("prometheus");
        let target = |(name, port): &(&str, u16)| {
            json!({
                "targets": [format!("127.0.0.1:{port}")],
                "labels": {"namespace": "edge", "syncer": name, "pod": format!("{name}-0")},
            })
        };
        let targets: Vec<Value> = syncers.iter().map(target).collect();
        let config = json!({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
            "scrape_configs": [{"job_name": "edge-syncer", "static_configs": targets}],
        });
        let config = folder.write("prometheus.yaml", config.to_string());
        let address = format!("127.0.0.1:{}", free_port());
        let args = [
            format!("--config.file={}", config.display()),
            format!("--storage.tsdb.path={}", folder.path().join("data").display()),
            format!("--web.listen-address={address}"),
        ];
        let log = folder.path().join("prometheus.log");
        Self {
            url: format!("http://{address}"),
            _process: Leashed::spawn(&monitoring(PROMETHEUS), &args, &[], &log),
            folder,
        }
    }

    /// Waits until there are series for a query.
    async fn answers(&self, about: &str, query: &str) {
        eventually(&format!("{about}: {query} has series"), SOON, async || {
            let args = ["query", "instant", "-o", "json", &self.url, query];
            let output = promtool(&args, "", self.folder.path());
            let series: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            if series.as_array().is_some_and(|series| !series.is_empty()) {
                return Ok(());
            }
            Err(format!("{series} {}", String::from_utf8_lossy(&output.stderr)))
        })
        .await;
    }
}

/// A syncer that serves metrics at the port.
fn syncer(hub: &Path, pair: &Pair, port: u16) -> Syncer {
    let listen = format!("--listen-address=localhost:{port}");
    let flags = [
        &*listen,
        "--leader-elect",
        "--heartbeat-interval=1s",
        "--hold-deletes-above=2",
    ];
    Syncer::start(hub, &pair.edge.kubeconfig(), &flags)
}

/// The kubeconfig of an account that may do everything at the hub for an hour.
async fn with_a_token_for_an_hour(hub: &Server) -> PathBuf {
    let all = json!([
        {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
        {"nonResourceURLs": ["*"], "verbs": ["*"]},
    ]);
    let account = Account::create(hub, "default", "syncer", all).await;
    let parts = support::KubeconfigParts::default();
    let kubeconfig = hub.write_kubeconfig("hour.kubeconfig", &parts);
    let text = fs::read_to_string(&kubeconfig).expect("it was written");
    let token = account.token(0, 3600);
    fs::write(&kubeconfig, text.replace(parts.user.token(), &token)).expect("it can be written");
    kubeconfig
}

/// Objects go both ways; one of somebody else's is in the way, a copy is changed by hand, configs name what is not there, and
/// most of the objects are deleted at once.
async fn much_happens(hub: &Objects, edge: &Objects, leader: &mut Syncer) {
    let (names, data) = (numbered(8), json!({"v": "1"}));
    stock(hub, SHOP, &names, &data).await;
    hub.create(&config_map(SHOP, "of-the-hub", data.clone())).await;
    edge.create(&namespace("up")).await;
    hub.create(&namespace("up")).await;
    for at in [hub, edge] {
        at.create(&config_map("up", "of-both", json!({}))).await;
    }
    edge.create(&config_map("up", "of-the-edge", data.clone())).await;
    let upward = |names: &[&str]| json!({"resources": ["configmaps"], "namespaces": ["up"], "names": names});
    select(
        hub,
        &json!({
            "namespacedObjects": [
                config_map_entry(SHOP, &["*"]),
                config_map_entry("nowhere", &["*"]),
                {
                    "apiVersion": "v1", "group": "example.org", "resource": "nothings",
                    "objectsByNamespace": [{"namespace": SHOP, "names": ["*"]}],
                },
            ],
            "upsync": [upward(&["of-both", "of-the-edge"])],
        }),
    )
    .await;
    copy_equals(edge, SHOP, "c0", &data).await;
    copy_equals(hub, "up", "of-the-edge", &data).await;
    edit(edge, SHOP, "c0", &json!({"data": {"v": "2"}})).await;
    copy_equals(edge, SHOP, "c0", &data).await;
    leader.wait_for_log("reason=Conflict", SOON).await;
    // As one event for the syncer.
    leader.signal("STOP");
    for name in &names {
        hub.delete("v1", "configmaps", SHOP, name).await;
    }
    leader.signal("CONT");
}

#[tokio::test]
#[ignore = "needs Prometheus: scripts/test --monitoring"]
async fn a_real_prometheus_has_series_for_each_query_of_alerts_and_dashboard() {
    let pair = Pair::start(PairOptions::default()).await;
    let kubeconfig = with_a_token_for_an_hour(&pair.hub).await;
    let ports = [free_port(), free_port()];
    let mut leader = syncer(&kubeconfig, &pair, ports[0]);
    leader.wait_for_log("reason=Leading", SOON).await;
    let mut standby = syncer(&kubeconfig, &pair, ports[1]);
    let prometheus = Prometheus::start(&[("leader", ports[0]), ("standby", ports[1])]);
    much_happens(&pair.hub.objects(), &pair.edge.objects(), &mut leader).await;
    for (title, query) in queries() {
        prometheus.answers(&title, &query).await;
    }
    let (silent, others): (Vec<_>, Vec<_>) = alerts().into_iter().partition(|(name, _)| name == SILENT);
    for (name, query) in others {
        prometheus.answers(&name, &query).await;
    }
    for metric in [
        "edge_syncer_conflicts",
        "edge_syncer_drift_corrections_total",
        "edge_syncer_sync_duration_seconds_count{direction=\"downsync\"}",
        "edge_syncer_sync_duration_seconds_count{direction=\"upsync\"}",
    ] {
        prometheus.answers(metric, &format!("{metric} > 0")).await;
    }

    // What it says of itself is as Prometheus wants it, and not too long.
    let page = page(ports[0]).await;
    succeeded(&promtool(&["check", "metrics"], &page, prometheus.folder.path()));
    assert!(page.lines().count() <= 200, "{page}");

    standby.kill();
    let (name, query) = &silent[0];
    prometheus.answers(name, query).await;

    // The debug lines of a syncer that runs, without a restart.
    leader.signal("HUP");
    leader.wait_for_log("INFO reason=LogLevelRaised", SOON).await;
    edit(&pair.edge.objects(), "up", "of-the-edge", &json!({"data": {"v": "3"}})).await;
    leader.wait_for_log(" DEBUG reason=ObjectSynced", SOON).await;
}

/// The page of metrics at the port.
async fn page(port: u16) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", port))
        .await
        .expect("it listens");
    let request = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
    stream.write_all(request).await.expect("it reads");
    let mut text = String::new();
    let read = tokio::time::timeout(Duration::from_secs(10), stream.read_to_string(&mut text));
    read.await.expect("it answers").expect("it is text");
    let (_, page) = text.split_once("\r\n\r\n").expect("there is a body");
    page.to_owned()
}
