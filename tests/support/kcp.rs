//! A real kcp, whose workspaces are hubs.
//!
//! The binary is `KCP_BIN`, or `kcp` in `PATH`; it is not built here. One server serves all tests of a process.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::audit::{self, AuditEvent, AuditMark};
use super::launch::free_port;
use super::objects::{Objects, path, syncer_config};
use super::process::{Folder, Leashed};
use super::story::{SOON, becomes};
use super::{eventually, install_crds};

const TENANCY: &str = "tenancy.kcp.io/v1alpha1";
const APIS: &str = "apis.kcp.io/v1alpha1";
/// How long kcp may take until it is ready. It takes about twenty seconds on an idle machine.
const READY: Duration = Duration::from_secs(300);
/// How long it may take with a workspace.
const DONE: Duration = Duration::from_secs(120);

/// How many users a kcp knows besides its administrator: `agent-0` and so on, whose tokens are their names.
pub const AGENTS: usize = 200;
/// Where it logs who asks for what.
const AUDIT_LOG: &str = "audit.log";

/// A running kcp.
pub struct Kcp {
    // In this order, so that the process ends before its folder goes.
    process: Mutex<Leashed>,
    args: Vec<String>,
    folder: Folder,
}

/// A workspace that is a hub: it has the configs' types.
pub struct Workspace {
    /// Its name, below `root`.
    pub name: String,
    /// What is in it.
    pub objects: Objects,
    /// How a syncer reaches it.
    pub kubeconfig: PathBuf,
}

impl Kcp {
    /// The one of this process; started if it is the first time.
    pub async fn shared() -> &'static Self {
        static SHARED: OnceCell<Kcp> = OnceCell::const_new();
        SHARED.get_or_init(Self::start).await
    }

    /// Starts one, for a test that needs its own.
    pub async fn start() -> Self {
        let folder = Folder::create("kcp");
        let root = folder.path().join("data");
        let agents = (0..AGENTS).map(|i| format!("agent-{i},agent-{i},agent-{i}\n"));
        let tokens = folder.write("tokens.csv", agents.collect::<String>());
        let policy = folder.write("audit.yaml", audit::POLICY);
        let args = vec![
            "start".to_owned(),
            format!("--root-directory={}", root.display()),
            "--bind-address=127.0.0.1".to_owned(),
            "--external-hostname=127.0.0.1".to_owned(),
            format!("--secure-port={}", free_port()),
            format!("--embedded-etcd-directory={}", root.join("etcd").display()),
            format!("--embedded-etcd-client-port={}", free_port()),
            format!("--embedded-etcd-peer-port={}", free_port()),
            format!("--token-auth-file={}", tokens.display()),
            format!("--audit-policy-file={}", policy.display()),
            format!("--audit-log-path={}", folder.path().join(AUDIT_LOG).display()),
        ];
        let process = Mutex::new(launch(&args, &folder));
        let kcp = Self { process, args, folder };
        kcp.is_ready().await;
        kcp
    }

    async fn is_ready(&self) {
        eventually("kcp serves its root workspace", READY, async || {
            if !self.admin().exists() {
                return Err("it has written no kubeconfig".to_owned());
            }
            let root = self.root().await;
            let types = root.try_list(TENANCY, "workspacetypes", "", "").await;
            let types = types.map_err(|error| error.to_string())?;
            let is_there = types.iter().any(|one| one["metadata"]["name"] == "universal");
            is_there.then_some(()).ok_or("it has no type for workspaces".to_owned())
        })
        .await;
    }

    /// Ends it, as a crash does, and starts it again after a while.
    pub async fn restart(&self, away: Duration) {
        self.process.lock().expect("no test has failed with it").kill();
        tokio::time::sleep(away).await;
        *self.process.lock().expect("no test has failed with it") = launch(&self.args, &self.folder);
        self.is_ready().await;
    }

    /// What one user has asked for, by paths within workspaces.
    pub fn requests(&self, user: &str) -> Vec<AuditEvent> {
        let mut events = audit::read(&self.folder.path().join(AUDIT_LOG), "", AuditMark::default());
        events.retain(|event| event.user == user);
        for event in &mut events {
            // A virtual workspace names what it passes on by its method, and by its path with the workspace.
            if event.verb == "post" {
                "create".clone_into(&mut event.verb);
            }
            let within = format!("/clusters/{}", event.cluster);
            if let Some(path) = event.uri.strip_prefix(&within) {
                event.uri = path.to_owned();
            }
        }
        events
    }

    /// Where it is, its CA as a kubeconfig has it, and how its administrator proves who that is.
    pub fn access(&self) -> (String, Value, Value) {
        let text = std::fs::read_to_string(self.admin()).expect("kcp has written it");
        let config = kube::config::Kubeconfig::from_yaml(&text).expect("it is a kubeconfig");
        let config = serde_json::to_value(config).expect("it was read from text");
        let named = |list: &str, name: &str| {
            let mut entries = config[list].as_array().into_iter().flatten();
            entries
                .find(|entry| entry["name"] == name)
                .expect("it is there")
                .clone()
        };
        let context = named("contexts", "root");
        let name = |what: &str| context["context"][what].as_str().expect("it has one");
        let cluster = named("clusters", name("cluster"));
        let server = cluster["cluster"]["server"].as_str().expect("it has one");
        let url = server.split("/clusters/").next().expect("there is a first part");
        let ca = cluster["cluster"]["certificate-authority-data"].clone();
        (url.to_owned(), ca, named("users", name("user"))["user"].clone())
    }

    /// Its administrator's kubeconfig.
    pub fn admin(&self) -> PathBuf {
        self.folder.path().join("data/admin.kubeconfig")
    }

    async fn root(&self) -> Objects {
        Objects::by_kubeconfig(&self.admin(), Some("root")).await
    }

    /// Creates a workspace; what is in it is up to the caller.
    pub async fn workspace(&self, name: &str) -> Workspace {
        let root = self.root().await;
        root.create(
            &json!({"apiVersion": TENANCY, "kind": "Workspace", "metadata": {"name": name},
            "spec": {"type": {"name": "universal", "path": "root"}}}),
        )
        .await;
        let at = [TENANCY, "workspaces", "", name];
        let made = becomes(&root, at, "is ready", |it| it["status"]["phase"] == "Ready").await;
        let url = made["spec"]["URL"].as_str().expect("a ready workspace has one");
        let kubeconfig = self.kubeconfig(name, url);
        Workspace {
            name: name.to_owned(),
            objects: Objects::by_kubeconfig(&kubeconfig, None).await,
            kubeconfig,
        }
    }

    /// Creates a workspace with the types of configs.
    pub async fn hub(&self, name: &str) -> Workspace {
        let workspace = self.workspace(name).await;
        let definitions = path("apiextensions.k8s.io/v1", "customresourcedefinitions", "", "");
        eventually("the workspace serves CRDs", SOON, async || {
            workspace
                .objects
                .read(&definitions)
                .await
                .map_err(|error| error.to_string())
        })
        .await;
        install_crds(&workspace.objects).await;
        workspace
    }

    /// Deletes a workspace with all that is in it, and waits until it is gone.
    pub async fn delete(&self, workspace: &Workspace) {
        let root = self.root().await;
        root.delete(TENANCY, "workspaces", "", &workspace.name).await;
        eventually("the workspace is gone", DONE, async || {
            match root.try_get(TENANCY, "workspaces", "", &workspace.name).await {
                Ok(None) => Ok(()),
                Ok(Some(_)) => Err("it is there".to_owned()),
                Err(error) => Err(error.to_string()),
            }
        })
        .await;
    }

    /// A kubeconfig like kcp's own for the administrator, for another workspace.
    fn kubeconfig(&self, name: &str, url: &str) -> PathBuf {
        let text = std::fs::read_to_string(self.admin()).expect("kcp has written it");
        let mut config = kube::config::Kubeconfig::from_yaml(&text).expect("it is a kubeconfig");
        config.current_context = Some("root".to_owned());
        for entry in config.clusters.iter_mut().filter(|entry| entry.name == "root") {
            let cluster = entry.cluster.as_mut().expect("the entry is complete");
            cluster.server = Some(url.to_owned());
        }
        let text = serde_json::to_string(&config).expect("it was read from text");
        self.folder.write(&format!("{name}.kubeconfig"), text)
    }
}

fn launch(args: &[String], folder: &Folder) -> Leashed {
    let program = std::env::var_os("KCP_BIN").unwrap_or_else(|| "kcp".into());
    Leashed::spawn(Path::new(&program), args, &[], &folder.path().join("kcp.log"))
}

impl Workspace {
    /// Offers a type, for others to bind.
    pub async fn exports(&self, group: &str, plural: &str, kind: &str) {
        let schema = format!("v1.{plural}.{group}");
        let singular = kind.to_lowercase();
        self.objects
            .create(
                &json!({"apiVersion": APIS, "kind": "APIResourceSchema", "metadata": {"name": schema}, "spec": {
                "group": group, "scope": "Namespaced",
                "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": singular},
                "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}]}}),
            )
            .await;
        self.objects
            .create(
                &json!({"apiVersion": APIS, "kind": "APIExport", "metadata": {"name": plural},
                "spec": {"latestResourceSchemas": [schema]}}),
            )
            .await;
    }

    /// Binds what another workspace offers, and waits until it is served.
    pub async fn binds(&self, provider: &Workspace, group: &str, plural: &str) {
        self.objects
            .create(
                &json!({"apiVersion": APIS, "kind": "APIBinding", "metadata": {"name": plural}, "spec":
                {"reference": {"export": {"path": format!("root:{}", provider.name), "name": plural}}}}),
            )
            .await;
        eventually("the type is served", SOON, async || {
            let listed = self.objects.try_list(&format!("{group}/v1"), plural, "", "").await;
            listed.map(|_| ()).map_err(|error| error.to_string())
        })
        .await;
    }

    /// Takes such a type away again, and waits until that is done.
    pub async fn unbinds(&self, plural: &str) {
        self.objects.delete(APIS, "apibindings", "", plural).await;
        eventually("the binding is gone", DONE, async || {
            match self.objects.try_get(APIS, "apibindings", "", plural).await {
                Ok(None) => Ok(()),
                Ok(Some(_)) => Err("it is there".to_owned()),
                Err(error) => Err(error.to_string()),
            }
        })
        .await;
    }

    /// Creates the config `the-one`; a workspace serves a new type of configs a moment late.
    pub async fn select(&self, spec: &Value) {
        eventually("the workspace takes a config", SOON, async || {
            let created = self.objects.try_create(&syncer_config("the-one", spec.clone())).await;
            created.map(|_| ()).map_err(|error| error.to_string())
        })
        .await;
    }
}
