//! Tests of what the other integration tests stand on, against real servers.

mod support;

use std::convert::Infallible;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};

use support::objects::{JSON, code, config_map, namespace, path, syncer_config};
use support::{
    Ca, Credential, KubeconfigParts, Objects, Pair, PairOptions, Server, ServerOptions, Syncer, TEST_USER_AGENT, User,
    eventually, holds_throughout, shared_pair,
};

const SYNCER_CONFIG: &str = "edge.kubestellar.io/v2alpha1";
const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn stores_objects_at_both_sides() {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    for (server, colour) in [(&pair.hub, "red"), (&pair.edge, "blue")] {
        let objects = server.objects();
        objects.create(&namespace(&shop)).await;
        objects
            .create(&config_map(&shop, "web", json!({"colour": colour})))
            .await;
    }
    for (server, colour) in [(&pair.hub, "red"), (&pair.edge, "blue")] {
        let stored = server
            .objects()
            .get("v1", "ConfigMap", &shop, "web")
            .await
            .expect("it was created above");
        assert_eq!(stored["data"], json!({"colour": colour}), "at the {}", server.name());
    }
}

#[tokio::test]
async fn changes_objects_by_every_verb() {
    let pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let hub = pair.hub.objects();
    hub.create(&namespace(&shop)).await;
    let mut map = hub.create(&config_map(&shop, "web", json!({"a": "1"}))).await;

    map["data"] = json!({"a": "2"});
    hub.replace(&map).await;
    hub.merge_patch(
        "v1",
        "configmaps",
        &shop,
        "web",
        &json!({"metadata": {"labels": {"tier": "front"}}}),
    )
    .await;
    let mut applied = config_map(&shop, "web", json!({"b": "3"}));
    applied["metadata"]["labels"] = json!({"team": "x"});
    hub.apply_as("kubectl", &applied).await;

    let now = hub.reread(&map).await.expect("nobody has deleted it");
    assert_eq!(now["data"], json!({"a": "2", "b": "3"}));
    assert_eq!(now["metadata"]["labels"], json!({"team": "x", "tier": "front"}));
    let managers = now["metadata"]["managedFields"]
        .as_array()
        .expect("the server keeps managed fields");
    assert!(
        managers
            .iter()
            .any(|entry| entry["manager"] == "kubectl" && entry["operation"] == "Apply")
    );

    assert_eq!(
        hub.list("v1", "configmaps", &shop, "tier=front,team in (x,y)")
            .await
            .len(),
        1
    );
    assert_eq!(hub.list("v1", "configmaps", &shop, "tier!=front").await.len(), 0);
    let conflict = hub
        .try_create(&config_map(&shop, "web", json!({})))
        .await
        .expect_err("it exists");
    assert_eq!(code(&conflict), 409);

    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": shop, "name": "web"},
        "spec": {"containers": [{"name": "web", "image": "web"}]},
    });
    hub.create(&pod).await;
    hub.patch_status("v1", "pods", &shop, "web", &json!({"phase": "Running"}))
        .await;
    assert_eq!(
        hub.get("v1", "Pod", &shop, "web").await.expect("it exists")["status"]["phase"],
        "Running"
    );

    assert!(hub.delete("v1", "configmaps", &shop, "web").await);
    assert!(!hub.delete("v1", "configmaps", &shop, "web").await);
    assert_eq!(hub.get("v1", "configmaps", &shop, "web").await, None);
}

#[tokio::test]
async fn syncer_config_keeps_absent_and_empty_lists_apart() {
    let pair = shared_pair().await;
    let hub = pair.hub.objects();
    let roles = json!({"group": "rbac.authorization.k8s.io", "resource": "clusterroles", "apiVersion": "v1"});
    let mut none = roles.clone();
    none["objects"] = json!([]);
    let spec = json!({"clusterScope": [roles, none]});
    hub.create(&syncer_config("the-one", spec.clone())).await;
    let stored = hub
        .get(SYNCER_CONFIG, "SyncerConfig", "", "the-one")
        .await
        .expect("it was created above");
    assert_eq!(stored["spec"], spec);
}

#[tokio::test]
async fn syncer_config_takes_all_fields_of_kubestellar() {
    let pair = shared_pair().await;
    let hub = pair.hub.objects();
    let mut config = syncer_config("the-one", complete_spec());
    config["status"] = json!({"lastSyncerHeartbeatTime": "2024-01-15T10:00:00Z"});
    // Strict: a field that the schema does not know is an error and is not dropped silently.
    let strict = format!(
        "{}?fieldValidation=Strict",
        path(SYNCER_CONFIG, "syncerconfigs", "", "")
    );
    let stored = hub
        .send(http::Method::POST, &strict, JSON, Some(&config))
        .await
        .expect("the schema has all fields");
    assert_eq!(stored["spec"], config["spec"]);
    assert_eq!(stored["status"], config["status"], "there is no status subresource");
    assert_eq!(stored["metadata"]["generation"], 1);

    let beat = json!({"status": {"lastSyncerHeartbeatTime": "2024-01-15T10:00:15Z"}});
    let beaten = hub
        .merge_patch(SYNCER_CONFIG, "syncerconfigs", "", "the-one", &beat)
        .await;
    assert_eq!(
        beaten["metadata"]["generation"], 2,
        "a status write is a change of the main resource"
    );
}

#[tokio::test]
async fn syncer_config_refuses_what_kubestellar_refuses() {
    let pair = shared_pair().await;
    let hub = pair.hub.objects();
    let wrong = [
        (
            "upsync without resources",
            json!({"upsync": [{"apiGroup": "apps", "names": ["*"]}]}),
        ),
        (
            "no version",
            json!({"clusterScope": [{"group": "", "resource": "nodes"}]}),
        ),
        (
            "no group",
            json!({"clusterScope": [{"resource": "nodes", "apiVersion": "v1"}]}),
        ),
        (
            "no resource",
            json!({"namespaceScope": {"resources": [{"group": "", "apiVersion": "v1"}]}}),
        ),
        ("not a list", json!({"namespaceScope": {"namespaces": "shop"}})),
        (
            "no namespace",
            json!({"namespacedObjects": [{
                "group": "", "resource": "configmaps", "apiVersion": "v1", "objectsByNamespace": [{"names": ["a"]}],
            }]}),
        ),
    ];
    for (what, spec) in wrong {
        let refused = hub.try_create(&syncer_config("wrong", spec)).await;
        assert_eq!(code(&refused.expect_err(what)), 422, "{what}");
    }
    for (what, spec) in [
        ("empty", json!({})),
        ("only resources", json!({"upsync": [{"resources": []}]})),
    ] {
        hub.try_create(&syncer_config(&what.replace(' ', "-"), spec))
            .await
            .expect(what);
    }
}

#[tokio::test]
async fn a_paused_server_does_not_answer_until_resumed() {
    let mut pair = shared_pair().await;
    let hub = pair.hub.objects();
    pair.hub.pause();
    let answer = tokio::time::timeout(Duration::from_millis(500), hub.read("/version")).await;
    assert!(answer.is_err(), "a paused server has answered");
    pair.edge
        .objects()
        .read("/version")
        .await
        .expect("the other side is not paused");
    pair.hub.resume();
    tokio::time::timeout(SOON, hub.read("/version"))
        .await
        .expect("in time")
        .expect("a resumed server answers");
}

#[tokio::test]
async fn a_stopped_server_comes_back_with_its_data() {
    let mut pair = shared_pair().await;
    let shop = pair.namespace("shop");
    let edge = pair.edge.objects();
    let before = edge.create(&namespace(&shop)).await;
    let url = pair.edge.url().to_owned();
    pair.edge.stop_apiserver();
    edge.read("/version").await.expect_err("nobody listens");
    pair.edge.start_apiserver().await;
    assert_eq!(pair.edge.url(), url);
    let after = edge
        .get("v1", "namespaces", "", &shop)
        .await
        .expect("the namespace has survived");
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    // The next test finds both sides running whatever this one leaves behind.
    pair.hub.pause();
    pair.edge.stop_apiserver();
}

#[tokio::test]
async fn counts_requests_by_user_agent() {
    let pair = shared_pair().await;
    let mark = pair.hub.audit_mark();
    let hub = pair.hub.objects();
    for _ in 0..3 {
        hub.get("v1", "configmaps", "default", "counted").await;
    }
    let requests = eventually("the requests are in the audit log", SOON, async || {
        let mut requests = pair.hub.requests_since(TEST_USER_AGENT, mark);
        // What came just before the mark may have been logged just after it.
        requests.retain(|request| request.uri.contains("counted"));
        if requests.len() >= 3 {
            Ok(requests)
        } else {
            Err(format!("{requests:?}"))
        }
    })
    .await;
    assert_eq!(requests.len(), 3, "one event per request: {requests:?}");
    for request in &requests {
        assert_eq!((request.verb.as_str(), request.code), ("get", 404));
        assert_eq!(request.uri, "/api/v1/namespaces/default/configmaps/counted");
        assert_eq!(request.stage, "ResponseComplete");
        assert_eq!((request.user.as_str(), request.is_write()), ("admin", false));
    }
    assert_eq!(pair.hub.requests_since("somebody-else", mark), []);
}

#[tokio::test]
async fn the_limited_user_may_do_nothing() {
    let pair = shared_pair().await;
    let limited = Objects::new(pair.hub.client_as(User::Limited));
    let refused = limited
        .try_list("v1", "configmaps", "default", "")
        .await
        .expect_err("there is no role for it");
    assert_eq!(code(&refused), 403);
}

#[tokio::test]
async fn a_lease_starts_without_configs_and_with_fresh_namespaces() {
    let first = shared_pair().await;
    let (hub, edge) = (first.hub.objects(), first.edge.objects());
    let shop = first.namespace("shop");
    assert_ne!(shop, first.namespace("shop"));
    let mut config = syncer_config("held", json!({}));
    config["metadata"]["finalizers"] = json!(["example.org/held"]);
    hub.create(&config).await;
    for side in [&hub, &edge] {
        side.create(&namespace(&shop)).await;
        let mut held = config_map(&shop, "held", json!({}));
        held["metadata"]["finalizers"] = json!(["example.org/held"]);
        side.create(&held).await;
    }
    let waiting = tokio::time::timeout(Duration::from_millis(200), shared_pair()).await;
    assert!(waiting.is_err(), "two tests have the pair at the same time");
    drop(first);

    let second = shared_pair().await;
    assert_eq!(
        hub.list(SYNCER_CONFIG, "syncerconfigs", "", "").await,
        Vec::<Value>::new()
    );
    for side in [&hub, &edge] {
        assert_eq!(side.get("v1", "configmaps", &shop, "held").await, None);
        assert_eq!(side.get("v1", "namespaces", "", &shop).await, None);
    }
    drop(second);
}

#[tokio::test]
async fn every_form_of_kubeconfig_leads_to_the_server() {
    let pair = shared_pair().await;
    for (name, parts) in kubeconfig_forms(&pair) {
        let expected = match (parts.user, parts.credential) {
            (_, Credential::Nothing) => "system:anonymous",
            (User::Admin, _) => "admin",
            (User::Limited, _) => "limited",
        };
        let file = pair.hub.write_kubeconfig(name, &parts);
        assert_eq!(user_seen_by_server(&file, None).await, expected, "{name}");
    }
    let both = pair.hub.folder().join("both-sides");
    assert_eq!(user_seen_by_server(&both, Some("edge")).await, "admin");
}

#[tokio::test]
async fn the_controller_manager_removes_namespaces() {
    let options = ServerOptions {
        controller_manager: true,
        extra_args: Vec::new(),
    };
    let server = Server::start("edge", options).await;
    let objects = server.objects();
    objects.create(&namespace("shop")).await;
    objects.create(&config_map("shop", "web", json!({}))).await;
    objects.delete("v1", "namespaces", "", "shop").await;
    eventually("the namespace goes", SOON, async || {
        match objects.try_get("v1", "namespaces", "", "shop").await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

#[tokio::test]
async fn servers_end_when_dropped() {
    let pair = Pair::start(PairOptions::with_controller_managers()).await;
    let pids = [pair.hub.pids(), pair.edge.pids()].concat();
    let folders = [pair.hub.folder().to_owned(), pair.edge.folder().to_owned()];
    assert_eq!(pids.len(), 6);
    drop(pair);
    assert!(pids.iter().all(|&pid| !is_alive(pid)));
    assert!(folders.iter().all(|folder| !folder.exists()));
}

#[tokio::test]
async fn servers_end_with_a_killed_test_process() {
    if let Some(report) = report_path() {
        let server = Server::start("hub", ServerOptions::default()).await;
        write_report(&report, &server);
        std::future::pending::<Infallible>().await;
    }
    let mut victim = Victim::start("servers_end_with_a_killed_test_process");
    let (pids, folder) = victim.report().await;
    assert!(pids.iter().all(|&pid| is_alive(pid)));
    victim.process.kill().expect("it waits for ever");
    expect_gone(&pids, &folder).await;
}

#[tokio::test]
async fn shared_servers_end_with_the_test_process() {
    if let Some(report) = report_path() {
        let mut pair = shared_pair().await;
        pair.hub.pause();
        write_report(&report, &pair.hub);
        return;
    }
    let mut victim = Victim::start("shared_servers_end_with_the_test_process");
    let (pids, folder) = victim.report().await;
    assert!(victim.process.wait().expect("it is ours").success());
    expect_gone(&pids, &folder).await;
}

#[tokio::test]
async fn logs_of_a_failed_test_are_kept() {
    if let Some(report) = report_path() {
        let server = Server::start("hub", ServerOptions::default()).await;
        write_report(&report, &server);
        unreachable!("this test fails on purpose");
    }
    let mut victim = Victim::start("logs_of_a_failed_test_are_kept");
    let (pids, folder) = victim.report().await;
    assert!(!victim.process.wait().expect("it is ours").success());
    eventually("the processes are gone", SOON, async || none_alive(&pids)).await;
    assert!(folder.join("kube-apiserver.log").exists());
    eventually("the large data are gone", SOON, async || {
        if folder.join("etcd").exists() {
            Err("not yet")
        } else {
            Ok(())
        }
    })
    .await;
    std::fs::remove_dir_all(&folder).expect("it was kept for us");
}

#[tokio::test]
async fn a_syncer_can_be_watched_and_ended() {
    const POLITE: &str = "trap 'echo bye; exit 7' TERM; echo \"ready $GREETING\"; while :; do sleep 0.01; done";
    let mut polite = Syncer::start_program(Path::new("/bin/sh"), &["-c", POLITE], &[("GREETING", "hello")]);
    polite.wait_for_log("ready hello", SOON).await;
    assert!(polite.is_running());
    assert!(polite.resident_kb() > 0 && polite.peak_kb() >= polite.resident_kb());
    let (status, took) = polite.terminate().await;
    assert_eq!(status.code(), Some(7));
    assert!(took < SOON);
    assert!(polite.log().ends_with("bye\n"));
    assert!(!polite.is_running());

    let mut other = Syncer::start_program(Path::new("/bin/sleep"), &["1000"], &[]);
    let command = std::fs::read_to_string(format!("/proc/{}/comm", other.pid())).expect("it runs");
    assert_eq!(command, "sleep\n", "the process id is that of the program");
    assert_eq!(other.kill().signal(), Some(9));
    let mut short = Syncer::start_program(Path::new("/bin/sh"), &["-c", "exit 3"], &[]);
    assert_eq!(short.wait(SOON).await.code(), Some(3));
}

#[tokio::test]
#[should_panic(expected = "the sun rises: not within 100ms; at last: it is night")]
async fn eventually_says_why_it_gave_up() {
    eventually("the sun rises", Duration::from_millis(100), async || {
        Err::<(), _>("it is night")
    })
    .await;
}

#[tokio::test]
#[should_panic(expected = "an attempt hung")]
async fn eventually_gives_up_an_attempt_that_hangs() {
    eventually("it returns", Duration::from_millis(100), async || {
        std::future::pending::<Result<(), String>>().await
    })
    .await;
}

#[tokio::test]
#[should_panic(expected = "below three: no longer so after")]
async fn holds_throughout_fails_with_the_first_failed_check() {
    let mut count = 0;
    holds_throughout("below three", SOON, async || {
        count += 1;
        if count < 3 { Ok(()) } else { Err(count) }
    })
    .await;
}

/// Kubeconfigs for the hub in the forms that users have, each with a name.
fn kubeconfig_forms(pair: &Pair) -> Vec<(&'static str, KubeconfigParts)> {
    let parts = KubeconfigParts::default;
    vec![
        ("inline", parts()),
        (
            "token-file",
            KubeconfigParts {
                credential: Credential::TokenFile,
                ..parts()
            },
        ),
        (
            "cert-inline",
            KubeconfigParts {
                credential: Credential::CertInline,
                ..parts()
            },
        ),
        (
            "cert-files",
            KubeconfigParts {
                credential: Credential::CertFiles,
                ca: Ca::File,
                ..parts()
            },
        ),
        (
            "relative",
            KubeconfigParts {
                credential: Credential::CertFiles,
                ca: Ca::File,
                relative_paths: true,
                ..parts()
            },
        ),
        (
            "insecure",
            KubeconfigParts {
                ca: Ca::Absent,
                insecure_skip_tls_verify: true,
                ..parts()
            },
        ),
        (
            "server-name",
            KubeconfigParts {
                tls_server_name: Some("localhost".into()),
                ..parts()
            },
        ),
        (
            "server",
            KubeconfigParts {
                server: Some(pair.hub.url().replace("127.0.0.1", "localhost")),
                ..parts()
            },
        ),
        (
            "limited",
            KubeconfigParts {
                user: User::Limited,
                ..parts()
            },
        ),
        (
            "limited-cert",
            KubeconfigParts {
                user: User::Limited,
                credential: Credential::CertInline,
                ..parts()
            },
        ),
        (
            "anonymous",
            KubeconfigParts {
                credential: Credential::Nothing,
                ..parts()
            },
        ),
        (
            "both-sides",
            KubeconfigParts {
                namespace: Some("shop".into()),
                others: vec![pair.edge.kubeconfig_entry(&KubeconfigParts {
                    context: "edge".into(),
                    ..parts()
                })],
                ..parts()
            },
        ),
    ]
}

/// The example of the specification, with every field that there is.
fn complete_spec() -> Value {
    json!({
        "namespaceScope": {
            "namespaces": ["shop"],
            "resources": [
                {"group": "apps", "resource": "deployments", "apiVersion": "v1"},
                {"group": "", "resource": "services", "apiVersion": "v1"},
            ],
        },
        "namespacedObjects": [{
            "group": "", "resource": "configmaps", "apiVersion": "v1",
            "objectsByNamespace": [
                {"namespace": "shop", "names": ["web-settings", "prices"]},
                {"namespace": "billing", "names": ["*"]},
                {"namespace": "unused", "names": []},
                {"namespace": "unnamed"},
            ],
        }],
        "clusterScope": [
            {"group": "", "resource": "nodes", "apiVersion": "v1", "objects": ["one"]},
            {"group": "metrics.example.org", "resource": "gauges", "apiVersion": "v1beta1"},
            {"group": "rbac.authorization.k8s.io", "resource": "clusterroles", "apiVersion": "v1", "objects": []},
        ],
        "upsync": [
            {"apiGroup": "wgpolicyk8s.io", "resources": ["policyreports"], "namespaces": ["shop"], "names": ["*"]},
            {"resources": ["events"]},
        ],
    })
}

/// Who the server says one is with the kubeconfig `file`.
async fn user_seen_by_server(file: &Path, context: Option<&str>) -> String {
    let kubeconfig = Kubeconfig::read_from(file).expect("it can be parsed");
    let options = KubeConfigOptions {
        context: context.map(str::to_owned),
        ..KubeConfigOptions::default()
    };
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .expect("it is complete");
    let objects = Objects::new(kube::Client::try_from(config).expect("its credentials can be used"));
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    match objects.try_create(&review).await {
        Ok(review) => review["status"]["userInfo"]["username"]
            .as_str()
            .expect("a review has a user")
            .to_owned(),
        // Anonymous users may not ask, and learn who they are from the refusal.
        Err(kube::Error::Api(status)) if status.code == 403 && status.message.contains("\"system:anonymous\"") => {
            "system:anonymous".to_owned()
        }
        Err(error) => format!("{error}"),
    }
}

/// This test binary, started again for a single test that then knows that it is the victim.
struct Victim {
    process: Child,
    report: tempfile::TempDir,
}

const REPORT_VARIABLE: &str = "EDGE_SYNCER_HARNESS_REPORT";

impl Victim {
    fn start(test: &str) -> Self {
        let report = tempfile::tempdir().expect("a temporary folder can be created");
        let process = Command::new(std::env::current_exe().expect("this test has a binary"))
            .args(["--exact", test])
            .env(REPORT_VARIABLE, report.path().join("report"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("this test's binary can run");
        Self { process, report }
    }

    /// The process ids of the victim's server, and its folder.
    async fn report(&mut self) -> (Vec<u32>, PathBuf) {
        let path = self.report.path().join("report");
        let text = eventually("the victim reports", Duration::from_secs(90), async || {
            std::fs::read_to_string(&path).map_err(|error| error.to_string())
        })
        .await;
        let report: Value = serde_json::from_str(&text).expect("a report is JSON");
        let pids = report["pids"].as_array().expect("a report has pids").iter();
        let pids = pids.map(|pid| {
            pid.as_u64()
                .and_then(|pid| pid.try_into().ok())
                .expect("a pid is a number")
        });
        (
            pids.collect(),
            report["folder"].as_str().expect("a report has a folder").into(),
        )
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        // An error means that it has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Where a victim reports to; `None` in the test itself.
fn report_path() -> Option<PathBuf> {
    std::env::var_os(REPORT_VARIABLE).map(PathBuf::from)
}

fn write_report(path: &Path, server: &Server) {
    let report = json!({"pids": server.pids(), "folder": server.folder()});
    let part = path.with_extension("part");
    std::fs::write(&part, report.to_string()).expect("the report can be written");
    std::fs::rename(part, path).expect("the report can be renamed");
}

async fn expect_gone(pids: &[u32], folder: &Path) {
    eventually("the processes are gone", SOON, async || none_alive(pids)).await;
    eventually("the folder is gone", SOON, async || {
        if folder.exists() {
            Err(format!("{} is still there", folder.display()))
        } else {
            Ok(())
        }
    })
    .await;
}

fn none_alive(pids: &[u32]) -> Result<(), String> {
    match pids.iter().find(|&&pid| is_alive(pid)) {
        Some(pid) => Err(format!("process {pid} is still there")),
        None => Ok(()),
    }
}

/// Whether the process runs; a zombie does not.
fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}
