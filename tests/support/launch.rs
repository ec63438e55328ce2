//! How the server programs are found and with which arguments they run.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::policy::ENGINE;
use super::process::Leashed;
use super::server::ServerOptions;

/// Name of the audit log in a server's folder.
pub(super) const AUDIT_LOG: &str = "audit.log";

/// The ports of one server on 127.0.0.1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ports {
    /// Where the API server listens.
    pub(super) apiserver: u16,
    /// Where etcd answers its clients.
    pub(super) etcd: u16,
    etcd_peer: u16,
}

impl Ports {
    /// Ports that nobody listens at right now.
    pub(super) fn free() -> Self {
        Self {
            apiserver: free_port(),
            etcd: free_port(),
            etcd_peer: free_port(),
        }
    }
}

/// Names a kine that stands in for etcd; `scripts/test --storage kine` sets it.
const KINE: &str = "EDGE_SYNCER_KINE";

/// Starts etcd with its data in `folder`; or kine with `SQLite`, which is what k3s has in its place.
pub(super) fn etcd(folder: &Path, ports: Ports) -> Leashed {
    if let Some(program) = std::env::var_os(KINE) {
        return kine(Path::new(&program), folder, ports);
    }
    let client = format!("http://127.0.0.1:{}", ports.etcd);
    let peer = format!("http://127.0.0.1:{}", ports.etcd_peer);
    let args = [
        "--name=test".to_owned(),
        format!("--data-dir={}", folder.join("etcd").display()),
        format!("--listen-client-urls={client}"),
        format!("--advertise-client-urls={client}"),
        format!("--listen-peer-urls={peer}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=test={peer}"),
        // No test needs its data to survive a power cut, and fsync is most of what a write costs.
        "--unsafe-no-fsync".to_owned(),
        "--log-level=warn".to_owned(),
    ];
    spawn("etcd", &args, folder)
}

fn kine(program: &Path, folder: &Path, ports: Ports) -> Leashed {
    let data = folder.join("etcd");
    std::fs::create_dir_all(&data).expect("the folder of a server can be written");
    let args = [
        format!("--listen-address=tcp://127.0.0.1:{}", ports.etcd),
        // As k3s has it.
        format!(
            "--endpoint=sqlite://{}?_journal=WAL&cache=shared&_busy_timeout=30000&_txlock=immediate",
            data.join("state.db").display()
        ),
        "--metrics-bind-address=0".to_owned(),
    ];
    Leashed::spawn(program, &args, &[], &folder.join("etcd.log"))
}

/// Starts kube-apiserver with the certificates, tokens and keys in `folder`.
pub(super) fn apiserver(folder: &Path, ports: Ports, options: &ServerOptions) -> Leashed {
    let file = |name: &str| folder.join(name).display().to_string();
    let mut args = vec![
        format!("--etcd-servers=http://127.0.0.1:{}", ports.etcd),
        "--bind-address=127.0.0.1".to_owned(),
        "--advertise-address=127.0.0.1".to_owned(),
        // A loopback address may not be published as an endpoint, and nothing here needs it.
        "--endpoint-reconciler-type=none".to_owned(),
        format!("--secure-port={}", ports.apiserver),
        format!("--tls-cert-file={}", file("serving.crt")),
        format!("--tls-private-key-file={}", file("serving.key")),
        format!("--client-ca-file={}", file("ca.crt")),
        format!("--token-auth-file={}", file("tokens.csv")),
        "--authorization-mode=RBAC".to_owned(),
        format!("--service-account-issuer=https://127.0.0.1:{}", ports.apiserver),
        format!("--service-account-key-file={}", file("service-accounts.pub")),
        format!("--service-account-signing-key-file={}", file("service-accounts.key")),
        "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
        "--allow-privileged=true".to_owned(),
        format!("--audit-policy-file={}", file("audit-policy.yaml")),
        format!("--audit-log-path={}", file(AUDIT_LOG)),
        // In MB: large enough that the log is never rotated.
        "--audit-log-maxsize=10000".to_owned(),
    ];
    if !options.controller_manager {
        // Nobody would create the service account that this plugin wants for a pod.
        args.push("--disable-admission-plugins=ServiceAccount".to_owned());
    }
    args.extend(options.extra_args.iter().cloned());
    spawn("kube-apiserver", &args, folder)
}

/// Starts kube-controller-manager against the API server that `kubeconfig` leads to.
pub(super) fn controller_manager(folder: &Path, kubeconfig: &Path) -> Leashed {
    let args = [
        format!("--kubeconfig={}", kubeconfig.display()),
        format!(
            "--service-account-private-key-file={}",
            folder.join("service-accounts.key").display()
        ),
        format!("--root-ca-file={}", folder.join("ca.crt").display()),
        "--leader-elect=false".to_owned(),
        // It serves nothing.
        "--secure-port=0".to_owned(),
    ];
    spawn("kube-controller-manager", &args, folder)
}

/// Starts toxiproxy, whose API listens at `port`.
pub(super) fn toxiproxy(folder: &Path, port: u16) -> Leashed {
    let args = ["-host=127.0.0.1".to_owned(), format!("-port={port}")];
    spawn("toxiproxy", &args, folder)
}

fn spawn(program: &str, args: &[String], folder: &Path) -> Leashed {
    Leashed::spawn(&binary(program), args, &[], &folder.join(format!("{program}.log")))
}

/// Where the binary `name` of a server or of the policy engine is; `scripts/testenv` builds them when they are missing.
pub(super) fn binary(name: &str) -> PathBuf {
    static SERVERS: OnceLock<PathBuf> = OnceLock::new();
    static FAULTS: OnceLock<PathBuf> = OnceLock::new();
    static KUBECTL: OnceLock<PathBuf> = OnceLock::new();
    static ALL: OnceLock<PathBuf> = OnceLock::new();
    static POLICY_ENGINE: OnceLock<PathBuf> = OnceLock::new();
    static MONITORING: OnceLock<PathBuf> = OnceLock::new();
    let folder = match name {
        ENGINE => POLICY_ENGINE.get_or_init(|| testenv(&["--kyverno"])),
        PROMETHEUS | PROMTOOL => MONITORING.get_or_init(|| testenv(&["--monitoring"])),
        "toxiproxy" => FAULTS.get_or_init(|| testenv(&["--faults"])),
        "kubectl" => KUBECTL.get_or_init(|| testenv(&["--kubectl"])),
        "kube-controller-manager" => ALL.get_or_init(|| testenv(&[])),
        // The demo runs without a controller manager, and need not wait for one to be built.
        _ => SERVERS.get_or_init(|| testenv(&["--servers"])),
    };
    folder.join(name)
}

/// The program that checks rules and metrics, and asks the other one.
pub const PROMTOOL: &str = "promtool";
/// The program that scrapes.
pub const PROMETHEUS: &str = "prometheus";

/// One of the two.
pub fn monitoring(name: &str) -> PathBuf {
    binary(name)
}

/// The kubectl of the same version as the servers.
pub fn kubectl() -> PathBuf {
    binary("kubectl")
}

fn testenv(args: &[&str]) -> PathBuf {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/testenv");
    let output = Command::new(script)
        .args(args)
        .stderr(Stdio::inherit())
        .output()
        .expect("scripts/testenv runs");
    assert!(output.status.success(), "scripts/testenv failed: {}", output.status);
    PathBuf::from(String::from_utf8(output.stdout).expect("a path is UTF-8").trim())
}

/// A port on 127.0.0.1 that nobody listens at.
///
/// It lies below the range from which the kernel takes the ports of outgoing connections. Otherwise a client that
/// keeps trying to reach a stopped server would sooner or later get that very port, and be connected to itself.
pub fn free_port() -> u16 {
    const FIRST: u32 = 10_000;
    static START: OnceLock<u32> = OnceLock::new();
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let end = range
        .split_whitespace()
        .next()
        .and_then(|port| port.parse().ok())
        .unwrap_or(32_768_u32);
    assert!(
        end > FIRST + 1_000,
        "outgoing connections get ports from {end}, which leaves too few for servers"
    );
    // Test processes that run side by side start at different places.
    let start = START.get_or_init(|| fastrand::u32(..end));
    for _ in 0..1_000 {
        let offset = (start + TAKEN.fetch_add(1, Ordering::Relaxed)) % (end - FIRST);
        let port = u16::try_from(FIRST + offset).expect("ports are 16 bits wide");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no free port on 127.0.0.1");
}
