//! One side: a kube-apiserver with its own etcd and, if wanted, a kube-controller-manager.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use http::header::{HeaderValue, USER_AGENT};
use serde_json::json;
use tokio::time::Instant;

use super::audit::{self, AuditEvent, AuditMark};
use super::certs::{self, Authority, Identity};
use super::kubeconfig::{
    self, ADMIN_TOKEN, KubeconfigEntry, KubeconfigParts, LIMITED_TOKEN, Material, NEXT_ADMIN_TOKEN, User,
};
use super::launch::{self, Ports, kubectl};
use super::objects::Objects;
use super::process::{Folder, Leashed, log_tail};

/// How long a server may take until it is ready. It takes about four seconds on an idle machine.
const START_DEADLINE: Duration = Duration::from_secs(180);

/// What the serving certificates are for.
const HOSTS: [&str; 2] = ["localhost", "127.0.0.1"];

/// The user agent of the clients made here, so that their requests are not taken for the syncer's.
pub const TEST_USER_AGENT: &str = "harness";

/// What is special about a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerOptions {
    /// Whether to run a kube-controller-manager: garbage collection, namespace deletion, deployments, service accounts.
    pub controller_manager: bool,
    /// More arguments for kube-apiserver.
    pub extra_args: Vec<String>,
}

/// A running API server. Dropping it ends its processes and removes its data; when the test is failing, the logs are
/// kept. Nothing in it belongs to a particular tokio runtime.
pub struct Server {
    name: String,
    options: ServerOptions,
    ports: Ports,
    url: String,
    ca: Authority,
    admin: Identity,
    limited: Identity,
    // In this order, so that on drop clients go before servers and all of them before the folder.
    controller_manager: Option<Leashed>,
    apiserver: Option<Leashed>,
    etcd: Leashed,
    folder: Folder,
}

/// Why a server did not start.
enum StartError {
    /// Somebody else took a port in the meantime: try again with others.
    PortTaken,
    /// Anything else, with the logs.
    Failed(String),
}

impl Server {
    /// Starts a server; `name` (`hub` or `edge`) appears in log file names and messages.
    ///
    /// Panics with the end of the logs when it is not ready within three minutes.
    pub async fn start(name: &str, options: ServerOptions) -> Self {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let mut server = Self::prepare(name, options.clone());
            match server.run().await {
                Ok(()) => return server,
                Err(StartError::PortTaken) if attempts < 5 => {}
                Err(StartError::PortTaken) => {
                    panic!("{name}: found no free ports in {attempts} attempts")
                }
                Err(StartError::Failed(why)) => {
                    server.folder.keep();
                    panic!("{name}: {why}");
                }
            }
        }
    }

    /// Writes all files and starts etcd.
    fn prepare(name: &str, options: ServerOptions) -> Self {
        let folder = Folder::create(name);
        let ports = Ports::free();
        let ca = Authority::new(&format!("{name}-ca"));
        let admin = ca.client("admin", Some("system:masters"));
        let limited = ca.client("limited", None);
        let serving = ca.serving(&HOSTS);
        folder.write("ca.crt", &ca.certificate);
        folder.write("serving.crt", &serving.certificate);
        folder.write("serving.key", &serving.key);
        let (private, public) = certs::key_pair();
        folder.write("service-accounts.key", private);
        folder.write("service-accounts.pub", public);
        folder.write(
            "tokens.csv",
            format!(
                "{ADMIN_TOKEN},admin,1,system:masters\n{NEXT_ADMIN_TOKEN},admin,1,system:masters\n\
                 {LIMITED_TOKEN},limited,2\n"
            ),
        );
        folder.write("audit-policy.yaml", audit::POLICY);
        let etcd = launch::etcd(folder.path(), ports);
        let url = format!("https://127.0.0.1:{}", ports.apiserver);
        let name = name.to_owned();
        Self {
            name,
            options,
            ports,
            url,
            ca,
            admin,
            limited,
            controller_manager: None,
            apiserver: None,
            etcd,
            folder,
        }
    }

    async fn run(&mut self) -> Result<(), StartError> {
        self.spawn_apiserver();
        self.wait_ready().await?;
        if self.options.controller_manager {
            self.spawn_controller_manager();
            self.wait_for_service_account().await?;
        }
        Ok(())
    }

    /// A new client that may do everything. It belongs to the current tokio runtime.
    pub fn client(&self) -> kube::Client {
        self.client_as(User::Admin)
    }

    /// A new client for `user`. It does not retry anything by itself.
    pub fn client_as(&self, user: User) -> kube::Client {
        let mut config = kube::Config::new(self.url.parse().expect("our own URL is valid"));
        config.root_cert = Some(vec![self.ca.der.clone()]);
        config.auth_info =
            serde_json::from_value(json!({"token": user.token()})).expect("a user entry with a token is valid");
        config
            .headers
            .push((USER_AGENT, HeaderValue::from_static(TEST_USER_AGENT)));
        config.default_retry = false;
        kube::Client::try_from(config).expect("the CA made above is valid")
    }

    /// The objects at this server, with a new client that may do everything.
    pub fn objects(&self) -> Objects {
        Objects::new(self.client())
    }

    /// A kubeconfig with an inline CA and a token, for user `admin`.
    pub fn kubeconfig(&self) -> PathBuf {
        self.write_kubeconfig("admin.kubeconfig", &KubeconfigParts::default())
    }

    /// What kubectl prints with these arguments.
    pub fn kubectl(&self, args: &[&str]) -> String {
        let output = Command::new(kubectl())
            .arg(format!("--kubeconfig={}", self.kubeconfig().display()))
            .args(args)
            .output()
            .expect("kubectl can be run");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("it prints UTF-8")
    }

    /// Writes the kubeconfig that `parts` describes as `file_name` into the server's folder.
    pub fn write_kubeconfig(&self, file_name: &str, parts: &KubeconfigParts) -> PathBuf {
        let main = self.material().entry(file_name, parts);
        let current = parts.current_context.clone().unwrap_or_else(|| main.name().to_owned());
        let entries: Vec<KubeconfigEntry> = parts.others.iter().cloned().chain([main]).collect();
        self.folder.write(file_name, kubeconfig::render(&entries, &current))
    }

    /// The context that `parts` describes, to be listed in another kubeconfig. Credentials in files get full paths.
    pub fn kubeconfig_entry(&self, parts: &KubeconfigParts) -> KubeconfigEntry {
        let parts = KubeconfigParts {
            relative_paths: false,
            ..parts.clone()
        };
        self.material()
            .entry(&format!("entry-{}", super::unique_suffix()), &parts)
    }

    /// `https://127.0.0.1:PORT`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// `hub` or `edge`, as given to [`Server::start`].
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The CA of the serving certificate, as PEM.
    pub fn ca_pem(&self) -> &str {
        &self.ca.certificate
    }

    /// The folder with data, logs and kubeconfigs.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The process ids of all programs of this server that run.
    pub fn pids(&self) -> Vec<u32> {
        let parts = [
            self.controller_manager.as_ref(),
            self.apiserver.as_ref(),
            Some(&self.etcd),
        ];
        parts.into_iter().flatten().map(Leashed::pid).collect()
    }

    /// The requests so far whose user agent starts with `user_agent_prefix`, one event per request, in the order in
    /// which they came. The server logs a request after it has answered it, so wait for what you expect.
    pub fn requests(&self, user_agent_prefix: &str) -> Vec<AuditEvent> {
        self.requests_since(user_agent_prefix, AuditMark::default())
    }

    /// A mark for [`Server::requests_since`].
    pub fn audit_mark(&self) -> AuditMark {
        AuditMark::now(&self.audit_log())
    }

    /// As [`Server::requests`], but only what has come since `mark` was taken: neither what came just before and is
    /// logged late, nor the end of a watch that began before.
    pub fn requests_since(&self, user_agent_prefix: &str, mark: AuditMark) -> Vec<AuditEvent> {
        audit::read(&self.audit_log(), user_agent_prefix, mark)
    }

    /// Stops the API server from answering; connections stay open and new ones are still accepted by the kernel.
    pub fn pause(&mut self) {
        self.apiserver
            .as_mut()
            .expect("the API server has not been stopped")
            .pause();
    }

    /// Lets a paused API server go on.
    pub fn resume(&mut self) {
        if let Some(apiserver) = &mut self.apiserver {
            apiserver.signal("CONT");
        }
    }

    /// Ends the API server at once, as a crash or a power cut does; its data stays in etcd.
    pub fn stop_apiserver(&mut self) {
        self.apiserver = None;
    }

    /// Starts the API server again, with the same port and data, and waits until it is ready.
    pub async fn start_apiserver(&mut self) {
        self.stop_apiserver();
        self.spawn_apiserver();
        match self.wait_ready().await {
            Ok(()) => {}
            Err(StartError::PortTaken) => panic!("{}: the port was taken while the server was stopped", self.name),
            Err(StartError::Failed(why)) => panic!("{}: {why}", self.name),
        }
    }

    /// Ends etcd and the API server at once, and starts both again on the same data.
    pub async fn crash_and_restart(&mut self) {
        self.etcd.kill();
        self.stop_apiserver();
        self.etcd = launch::etcd(self.folder.path(), self.ports);
        self.start_apiserver().await;
    }

    /// Ends etcd and the API server at once, so that the data can be changed below.
    pub fn stop(&mut self) {
        self.stop_apiserver();
        self.etcd.kill();
    }

    /// Starts a stopped server again, with the same port and CA, on the data that is there.
    pub async fn start_again(&mut self) {
        self.etcd = launch::etcd(self.folder.path(), self.ports);
        self.start_apiserver().await;
    }

    /// Keeps a backup of the data of a stopped server.
    pub fn back_up(&self) {
        copy_folder(&self.folder.path().join("etcd"), &self.folder.path().join("backup"));
    }

    /// Puts the backup in place of the data of a stopped server.
    pub fn put_backup_back(&self) {
        self.lose_data();
        copy_folder(&self.folder.path().join("backup"), &self.folder.path().join("etcd"));
    }

    /// Removes the data of a stopped server: what starts next is another cluster.
    pub fn lose_data(&self) {
        std::fs::remove_dir_all(self.folder.path().join("etcd")).expect("a stopped etcd has left its data");
    }

    /// Makes etcd forget every version but the current one.
    pub async fn compact(&self) {
        let url = format!("http://127.0.0.1:{}", self.ports.etcd);
        let config = kube::Config::new(url.parse().expect("our own URL is valid"));
        let etcd = Objects::new(kube::Client::try_from(config).expect("plain HTTP needs no settings"));
        let post = async |path: &str, body: serde_json::Value| {
            let answer = etcd.send(http::Method::POST, path, super::objects::JSON, Some(&body));
            answer.await.expect("etcd answers")
        };
        let anything = post("/v3/kv/range", json!({"key": "AA==", "count_only": true})).await;
        let revision = anything["header"]["revision"].clone();
        post("/v3/kv/compaction", json!({"revision": revision, "physical": true})).await;
    }

    /// Gives the API server a certificate of a new CA, which it has after its next start. Kubeconfigs written from now on
    /// know the new CA and no other; client certificates stay valid.
    pub fn renew_ca(&mut self) {
        self.ca = Authority::new(&format!("{}-next-ca", self.name));
        let serving = self.ca.serving(&HOSTS);
        self.folder.write("serving.crt", &serving.certificate);
        self.folder.write("serving.key", &serving.key);
    }

    /// Makes sure that the API server runs and answers, whatever the test before has done to it.
    pub(super) async fn restore(&mut self) {
        self.resume();
        if !self.apiserver.as_mut().is_some_and(Leashed::is_running) {
            self.start_apiserver().await;
        }
    }

    /// Keeps the folder when the process ends, for a person to look into.
    pub(super) fn keep_folder(&mut self) {
        self.folder.keep();
    }

    fn material(&self) -> Material<'_> {
        Material {
            folder: &self.folder,
            url: &self.url,
            ca: &self.ca.certificate,
            admin: &self.admin,
            limited: &self.limited,
        }
    }

    fn audit_log(&self) -> PathBuf {
        self.folder.path().join(launch::AUDIT_LOG)
    }

    fn spawn_apiserver(&mut self) {
        self.apiserver = Some(launch::apiserver(self.folder.path(), self.ports, &self.options));
    }

    fn spawn_controller_manager(&mut self) {
        let kubeconfig = self.kubeconfig();
        self.controller_manager = Some(launch::controller_manager(self.folder.path(), &kubeconfig));
    }

    async fn wait_ready(&mut self) -> Result<(), StartError> {
        let objects = self.objects();
        self.poll(async || objects.read("/readyz").await.is_ok()).await
    }

    async fn wait_for_service_account(&mut self) -> Result<(), StartError> {
        let objects = self.objects();
        self.poll(async || {
            objects
                .read("/api/v1/namespaces/default/serviceaccounts/default")
                .await
                .is_ok()
        })
        .await
    }

    /// Asks `ready` until it says yes, all within the deadline for a start.
    async fn poll(&mut self, ready: impl AsyncFn() -> bool) -> Result<(), StartError> {
        let deadline = Instant::now() + START_DEADLINE;
        loop {
            // A request may hang: the port may belong to something that never answers.
            if tokio::time::timeout(Duration::from_secs(5), ready()).await == Ok(true) {
                return Ok(());
            }
            if let Some(ended) = self.ended_process() {
                return Err(self.start_error(&format!("{ended} has ended")));
            }
            if Instant::now() > deadline {
                return Err(self.start_error(&format!("not ready within {START_DEADLINE:?}")));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn ended_process(&mut self) -> Option<&'static str> {
        if !self.etcd.is_running() {
            return Some("etcd");
        }
        let ended = |process: &mut Option<Leashed>| process.as_mut().is_some_and(|process| !process.is_running());
        if ended(&mut self.apiserver) {
            return Some("kube-apiserver");
        }
        ended(&mut self.controller_manager).then_some("kube-controller-manager")
    }

    fn start_error(&self, why: &str) -> StartError {
        let logs: String = ["etcd.log", "kube-apiserver.log", "kube-controller-manager.log"]
            .iter()
            .map(|name| self.folder.path().join(name))
            .filter(|path| path.exists())
            .map(|path| log_tail(&path, 30))
            .collect();
        if logs.contains("address already in use") {
            StartError::PortTaken
        } else {
            StartError::Failed(format!("{why}\n{logs}"))
        }
    }
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("the temporary folder can be written");
    for entry in std::fs::read_dir(from).expect("the folder is there") {
        let entry = entry.expect("the folder can be read");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("the file can be copied");
        }
    }
}
