//! A policy engine at the edge: Kyverno's reports controller with its CRDs, policies for it, and what it says of objects.
//!
//! It is the real program, built by `scripts/testenv --kyverno`. There is no node to run a pod on, so [`Engine::start`]
//! does what a kubelet would: it runs the command of the Deployment that the edge has.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::eventually;
use super::launch;
use super::objects::{Objects, config_map, namespace, path};
use super::process::{Folder, Leashed, complain, log_tail};
use super::server::Server;
use super::story::{SOON, arrives};

/// How long the engine may take for a verdict. It reads an object 30 s after a change and writes the report 10 s
/// later, and no flag of it changes either.
pub const JUDGED: Duration = Duration::from_secs(600);

/// Where the engine lives.
pub const ENGINE_NAMESPACE: &str = "kyverno";
/// Its Deployment.
pub const ENGINE: &str = "kyverno-reports-controller";
/// Its configuration.
pub const ENGINE_CONFIG_MAPS: [&str; 2] = ["kyverno", "kyverno-metrics"];
/// The `apiVersion` of its policies.
pub const POLICY_VERSION: &str = "kyverno.io/v1";
/// The `apiVersion` of its reports.
pub const REPORT_VERSION: &str = "wgpolicyk8s.io/v1alpha2";
/// The API group of its reports.
pub const REPORT_GROUP: &str = "wgpolicyk8s.io";
/// Wants a label `owner` on every `ConfigMap` of [`JUDGED_NAMESPACES`].
pub const OWNER_POLICY: &str = "configmaps-have-an-owner";
/// Wants a label `owner` on the first of [`JUDGED_NAMESPACES`] itself.
pub const NAMESPACE_POLICY: &str = "namespaces-have-an-owner";
/// A namespace that the hub has, and one that only the edge has.
pub const JUDGED_NAMESPACES: [&str; 2] = ["shop", "plant"];

/// A running engine. Dropping it kills it; when the test is failing, its log is printed and kept.
pub struct Engine {
    process: Leashed,
    log: PathBuf,
    folder: Folder,
}

impl Engine {
    /// Waits for the engine's Deployment at the edge, runs its command there, as admin, and waits until it has begun to
    /// work.
    ///
    /// An engine whose CRDs are not served yet ends at once, and nobody starts it again: that fails the test.
    pub async fn start(edge: &Server) -> Self {
        let deployment = arrives(&edge.objects(), "apps/v1", "deployments", ENGINE_NAMESPACE, ENGINE).await;
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let items = |field: &str| container[field].as_array().cloned().unwrap_or_default();
        let mut args: Vec<String> = items("args").iter().map(text).collect();
        args.push(format!("--kubeconfig={}", edge.kubeconfig().display()));
        let env: Vec<(String, String)> = items("env")
            .iter()
            .map(|item| (text(&item["name"]), text(&item["value"])))
            .collect();
        let folder = Folder::create("kyverno");
        let log = folder.path().join("kyverno.log");
        let process = Leashed::spawn(&launch::binary(ENGINE), &args, &env, &log);
        let mut engine = Self { process, log, folder };
        eventually("the policy engine begins to work", JUDGED, async || {
            assert!(engine.is_running(), "the policy engine has ended");
            let log = std::fs::read_to_string(&engine.log).unwrap_or_default();
            // The last that it starts, once it has listed all that it watches.
            let begun = log.contains("starting controller") && log.contains("aggregate-report-controller");
            if begun { Ok(()) } else { Err("it does not say so") }
        })
        .await;
        engine
    }

    /// Whether it has not ended.
    pub fn is_running(&mut self) -> bool {
        self.process.is_running()
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Resident memory now, in kB.
    pub fn resident_kb(&mut self) -> u64 {
        self.process.memory_kb("VmRSS").expect("the engine runs")
    }

    /// The processor time it has used, to a hundredth of a second.
    pub fn cpu_time(&mut self) -> Duration {
        self.process.cpu_time().expect("the engine runs")
    }

    /// The file with all that it prints.
    pub fn log_path(&self) -> &Path {
        &self.log
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if std::thread::panicking() {
            complain(&log_tail(&self.log, 50));
            self.folder.keep();
        }
    }
}

/// One of the engine's CRDs.
#[derive(Clone)]
pub struct Crd {
    /// Plural and group, as in `policyreports.wgpolicyk8s.io`.
    pub name: String,
    /// The name at the hub, which is another one for a denatured CRD.
    pub name_at_hub: String,
    /// The manifest for the hub.
    yaml: String,
}

impl Crd {
    /// Whether it is a type of reports, as opposed to one that only the engine uses.
    pub fn is_of_reports(&self) -> bool {
        self.name
            .split_once('.')
            .is_some_and(|(_, group)| group == REPORT_GROUP)
    }

    /// The same type under a name, and so in a group, that clashes with nothing at the hub.
    pub fn denatured(&self) -> Self {
        let (_, group) = self.name.split_once('.').expect("a CRD's name holds its group");
        let renamed = |yaml: &str, key: &str, value: &str| {
            let line = format!("\n  {key}: {value}\n");
            assert!(
                yaml.contains(&line),
                "the manifest of {} has no {key}: {value}",
                self.name
            );
            yaml.replacen(&line, &format!("\n  {key}: {value}.denatured\n"), 1)
        };
        Self {
            name: self.name.clone(),
            name_at_hub: format!("{}.denatured", self.name),
            yaml: renamed(&renamed(&self.yaml, "name", &self.name), "group", group),
        }
    }

    /// Creates it.
    pub async fn create(&self, at: &Objects) {
        let path = path("apiextensions.k8s.io/v1", "customresourcedefinitions", "", "");
        at.send_bytes(Method::POST, &path, "application/yaml", self.yaml.clone().into_bytes())
            .await
            .unwrap_or_else(|error| panic!("cannot create the CRD {}: {error}", self.name_at_hub));
    }
}

/// All CRDs of the engine, as its module has them.
pub fn crds() -> Vec<Crd> {
    let folder = launch::binary(ENGINE).with_file_name("crds");
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut crds: Vec<Crd> = files
        .map(|file| {
            let path = file.expect("the folder can be read").path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            // The files are called <group>_<plural>.yaml.
            let (group, plural) = stem.and_then(|stem| stem.split_once('_')).expect("it names its type");
            let name = format!("{plural}.{group}");
            Crd {
                name_at_hub: name.clone(),
                name,
                yaml: std::fs::read_to_string(&path).expect("the file can be read"),
            }
        })
        .collect();
    crds.sort_by(|one, other| one.name.cmp(&other.name));
    crds
}

/// What the engine needs besides its CRDs: its namespace, its configuration and its Deployment.
pub fn engine_objects() -> Vec<Value> {
    let env = [
        ("KYVERNO_NAMESPACE", ENGINE_NAMESPACE),
        ("KYVERNO_SERVICEACCOUNT_NAME", ENGINE),
        ("KYVERNO_DEPLOYMENT", ENGINE),
        ("KYVERNO_POD_NAME", ENGINE),
        ("KYVERNO_SVC", "kyverno-svc"),
        ("INIT_CONFIG", ENGINE_CONFIG_MAPS[0]),
        ("METRICS_CONFIG", ENGINE_CONFIG_MAPS[1]),
    ]
    .map(|(name, value)| json!({"name": name, "value": value}));
    let deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": ENGINE_NAMESPACE, "name": ENGINE},
        "spec": {
            "selector": {"matchLabels": {"app": ENGINE}},
            "template": {
                "metadata": {"labels": {"app": ENGINE}},
                "spec": {"containers": [{
                    "name": "controller",
                    "image": "example.org/kyverno/reports-controller",
                    "args": [
                        // Reports about what is there, by background scan; about admission it would need webhooks.
                        "--backgroundScan=true", "--admissionReports=false", "--enableConfigMapCaching=false",
                        // It serves metrics even where they are disabled: at any port, so that several can run.
                        "--disableMetrics=true", "--metricsHost=127.0.0.1", "--metricsPort=0",
                        "--disableLogColor=true",
                    ],
                    "env": env,
                }]},
            },
        },
    });
    let mut objects = vec![namespace(ENGINE_NAMESPACE)];
    objects.extend(ENGINE_CONFIG_MAPS.map(|name| config_map(ENGINE_NAMESPACE, name, json!({}))));
    objects.push(deployment);
    objects
}

/// [`OWNER_POLICY`], which leads to `PolicyReports`, and [`NAMESPACE_POLICY`], which leads to `ClusterPolicyReports`.
pub fn policies() -> [Value; 2] {
    let policy = |name: &str, resources: Value| {
        json!({
            "apiVersion": POLICY_VERSION,
            "kind": "ClusterPolicy",
            "metadata": {"name": name},
            "spec": {"background": true, "rules": [{
                "name": "has-an-owner",
                "match": {"any": [{"resources": resources}]},
                "validate": {
                    "failureAction": "Audit",
                    "message": "a label tells who owns it",
                    "pattern": {"metadata": {"labels": {"owner": "?*"}}},
                },
            }]},
        })
    };
    [
        policy(
            OWNER_POLICY,
            json!({"kinds": ["ConfigMap"], "namespaces": JUDGED_NAMESPACES}),
        ),
        policy(
            NAMESPACE_POLICY,
            json!({"kinds": ["Namespace"], "names": JUDGED_NAMESPACES[..1]}),
        ),
    ]
}

/// What a `SyncerConfig` selects in these stories: down the engine, its policies, the namespace that the hub has and these
/// `ConfigMap`s in it, all by name, as the placement translator writes it; up every report.
pub fn selection(crds: &[Crd], config_maps: &[&str]) -> Value {
    let crds: Vec<&str> = crds.iter().map(|crd| crd.name_at_hub.as_str()).collect();
    let shop = JUDGED_NAMESPACES[0];
    json!({
        "namespacedObjects": [
            {"group": "", "resource": "configmaps", "apiVersion": "v1", "objectsByNamespace": [
                {"namespace": ENGINE_NAMESPACE, "names": ENGINE_CONFIG_MAPS},
                {"namespace": shop, "names": config_maps},
            ]},
            {"group": "apps", "resource": "deployments", "apiVersion": "v1", "objectsByNamespace": [
                {"namespace": ENGINE_NAMESPACE, "names": [ENGINE]},
            ]},
        ],
        "clusterScope": [
            {"group": "apiextensions.k8s.io", "resource": "customresourcedefinitions", "apiVersion": "v1",
                "objects": crds},
            {"group": "kyverno.io", "resource": "clusterpolicies", "apiVersion": "v1",
                "objects": [OWNER_POLICY, NAMESPACE_POLICY]},
            {"group": "", "resource": "namespaces", "apiVersion": "v1", "objects": [shop]},
        ],
        "upsync": [{"apiGroup": REPORT_GROUP, "resources": ["policyreports", "clusterpolicyreports"],
            "namespaces": ["*"], "names": ["*"]}],
    })
}

/// An object of the core API that the engine judges.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace, empty for a cluster-scoped one.
    pub namespace: &'static str,
    /// Its name.
    pub name: &'static str,
}

impl Subject {
    /// Sets the label that the policies want.
    pub async fn set_owner(&self, at: &Objects, owner: &str) {
        let patch = json!({"metadata": {"labels": {"owner": owner}}});
        at.merge_patch("v1", self.kind, self.namespace, self.name, &patch).await;
    }

    /// The kind of reports about it.
    pub fn report_kind(&self) -> &'static str {
        if self.namespace.is_empty() {
            "ClusterPolicyReport"
        } else {
            "PolicyReport"
        }
    }

    /// Whether this is a report about it. Reports are called by the UIDs of their subjects at the edge.
    pub fn is_of(&self, report: &Value) -> bool {
        report["kind"] == self.report_kind()
            && report["scope"]["kind"] == self.kind
            && report["scope"]["name"] == self.name
            && report["metadata"]["namespace"].as_str().unwrap_or_default() == self.namespace
    }

    /// The report about it at one side, if there is one.
    pub async fn report(&self, at: &Objects) -> Result<Option<Value>, kube::Error> {
        let reports = at
            .try_list(REPORT_VERSION, self.report_kind(), self.namespace, "")
            .await?;
        let mut reports = reports.into_iter().map(|mut report| {
            // A list does not repeat it for its items.
            report["kind"] = json!(self.report_kind());
            report
        });
        Ok(reports.find(|report| self.is_of(report)))
    }

    /// Waits until there is a report with this verdict (`pass` or `fail`) alone, and gives it.
    pub async fn judged(&self, at: &Objects, verdict: &str, deadline: Duration) -> Value {
        let what = format!("{} {}: {verdict}", self.report_kind(), self.name);
        eventually(&what, deadline, async || match self.report(at).await {
            Ok(Some(report)) if has_verdict(&report, verdict) => Ok(report),
            Ok(Some(report)) => Err(format!("it says {}", report["summary"])),
            Ok(None) => Err("there is no report".to_owned()),
            Err(error) => Err(error.to_string()),
        })
        .await
    }

    /// Waits until there is no report.
    pub async fn no_longer_judged(&self, at: &Objects, deadline: Duration) {
        let what = format!("{} {} goes", self.report_kind(), self.name);
        eventually(&what, deadline, async || match self.report(at).await {
            Ok(None) => Ok(()),
            Ok(Some(report)) => Err(format!("it is there: {}", report["metadata"])),
            Err(error) => Err(error.to_string()),
        })
        .await;
    }
}

/// Whether a report says this (`pass` or `fail`) and nothing else.
pub fn has_verdict(report: &Value, verdict: &str) -> bool {
    ["pass", "fail", "warn", "error", "skip"].iter().all(|&one| {
        let count = report["summary"][one].as_u64().unwrap_or(0);
        count == u64::from(one == verdict)
    })
}
