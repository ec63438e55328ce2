//! What a service manager hears of the real binary, and the unit that is shipped for it.

mod support;

use std::fs;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;
use support::stage::{config_maps, select, stock};
use support::story::{SOON, a_while, copy_equals};
use support::{Pair, PairOptions, Syncer, eventually, holds_throughout, unique_suffix};
use tempfile::TempDir;

const UNIT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/manifests/systemd/edge-syncer.service");

/// The service manager: its socket, and all that it has heard.
struct Manager {
    socket: UnixDatagram,
    /// The value of `NOTIFY_SOCKET`.
    name: String,
    heard: Vec<String>,
}

impl Manager {
    fn bind(name: String, address: &SocketAddr) -> Self {
        let socket = UnixDatagram::bind_addr(address).expect("the name is free");
        socket.set_nonblocking(true).expect("it is a socket");
        Self {
            socket,
            name,
            heard: Vec::new(),
        }
    }

    fn at_path(path: &Path) -> Self {
        let address = SocketAddr::from_pathname(path).expect("the path is short");
        Self::bind(path.display().to_string(), &address)
    }

    fn abstract_one() -> Self {
        let name = format!("edge-syncer-{}", unique_suffix());
        let address = SocketAddr::from_abstract_name(&name).expect("the name is short");
        Self::bind(format!("@{name}"), &address)
    }

    fn hear(&mut self) {
        let mut buffer = [0; 4096];
        while let Ok(length) = self.socket.recv(&mut buffer) {
            let text = String::from_utf8_lossy(&buffer[..length]);
            self.heard.extend(text.lines().map(str::to_owned));
        }
    }

    /// Waits until it has heard a line with this, and gives that.
    async fn hears(&mut self, text: &str) -> String {
        eventually(&format!("the manager hears {text:?}"), SOON, async || {
            self.hear();
            let found = self.heard.iter().find(|line| line.contains(text));
            found.cloned().ok_or(format!("{:?}", self.heard))
        })
        .await
    }
}

/// Kubeconfigs of two sides at which nobody listens.
fn nowhere(folder: &TempDir) -> (PathBuf, PathBuf) {
    let write = |name: &str, port: u16| {
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "a",
            "clusters": [{"name": "a", "cluster": {"server": format!("https://127.0.0.1:{port}"),
                "insecure-skip-tls-verify": true}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "users": [{"name": "a", "user": {"token": "x"}}],
        });
        let path = folder.path().join(name);
        fs::write(&path, text.to_string()).expect("the folder is ours");
        path
    };
    (write("hub.kubeconfig", 1), write("edge.kubeconfig", 2))
}

fn temporary() -> TempDir {
    tempfile::tempdir().expect("a temporary folder can be created")
}

#[tokio::test]
async fn it_is_ready_without_any_network_and_says_that_it_stops() {
    let folder = temporary();
    let mut managers = [Manager::at_path(&folder.path().join("notify")), Manager::abstract_one()];
    for manager in &mut managers {
        let (hub, edge) = nowhere(&folder);
        let mut syncer = Syncer::start_with_env(&hub, &edge, &[], &[("NOTIFY_SOCKET", &manager.name)]);
        manager.hears("READY=1").await;
        let status = manager.hears("hub unreachable since ").await;
        assert!(status.starts_with("STATUS=") && status.contains(" UTC; "), "{status}");
        assert!(
            status.contains("edge unreachable since ") && status.contains("0 synced"),
            "{status}"
        );
        assert!(
            !manager.heard.iter().any(|line| line.starts_with("WATCHDOG")),
            "nobody asked for it"
        );
        assert!(syncer.terminate().await.0.success());
        manager.hears("STOPPING=1").await;
    }
}

#[tokio::test]
async fn the_status_says_what_is_synced_and_since_when_the_hub_is_away() {
    let mut pair = Pair::start(PairOptions::default()).await;
    let hub = pair.hub.objects();
    stock(&hub, "shop", &["a", "b", "c"], &json!({"v": "0"})).await;
    select(&hub, &config_maps("shop", &["*"])).await;
    let mut manager = Manager::abstract_one();
    // Hears every second.
    let env = [("NOTIFY_SOCKET", manager.name.as_str()), ("WATCHDOG_USEC", "2000000")];
    let (from, to) = (pair.hub.kubeconfig(), pair.edge.kubeconfig());
    let _syncer = Syncer::start_with_env(&from, &to, &[], &env);
    copy_equals(&pair.edge.objects(), "shop", "c", &json!({"v": "0"})).await;
    let status = manager.hears("STATUS=4 synced").await;
    assert_eq!(status, "STATUS=4 synced", "three ConfigMaps and their namespace");
    pair.hub.stop_apiserver();
    manager.heard.clear();
    let status = manager.hears("STATUS=hub unreachable since ").await;
    assert!(status.contains("; 4 synced"), "{status}");
    pair.hub.start_apiserver().await;
    manager.heard.clear();
    manager.hears("STATUS=4 synced").await;
}

/// Starts the syncer by way of a shell, which knows its process id: that of the syncer, which is executed in its place.
fn by_shell(folder: &TempDir, manager: &Manager, watchdog_pid: &str) -> Syncer {
    let (hub, edge) = nowhere(folder);
    let script = format!(
        "WATCHDOG_PID={watchdog_pid} exec {} run --from-kubeconfig={} --to-kubeconfig={} --sync-target-uid=x",
        Syncer::program().display(),
        hub.display(),
        edge.display()
    );
    let env = [("NOTIFY_SOCKET", manager.name.as_str()), ("WATCHDOG_USEC", "1000000")];
    Syncer::start_program(Path::new("/bin/sh"), &["-c", &script], &env)
}

#[tokio::test]
async fn the_watchdog_hears_of_the_process_that_it_watches_and_of_no_other() {
    let folder = temporary();
    let mut manager = Manager::abstract_one();
    let _syncer = by_shell(&folder, &manager, "$$");
    manager.hears("WATCHDOG=1").await;
    manager.heard.clear();
    manager.hears("WATCHDOG=1").await;

    let mut other = Manager::abstract_one();
    let _syncer = by_shell(&folder, &other, "1");
    other.hears("READY=1").await;
    holds_throughout("no sign of life is sent", a_while(), async || {
        other.hear();
        let heard = other.heard.iter().find(|line| line.starts_with("WATCHDOG"));
        heard.map_or(Ok(()), |line| Err(line.clone()))
    })
    .await;
}

#[tokio::test]
async fn a_process_that_stands_still_says_nothing() {
    let folder = temporary();
    let mut manager = Manager::abstract_one();
    let mut syncer = by_shell(&folder, &manager, "$$");
    manager.hears("WATCHDOG=1").await;
    syncer.signal("STOP");
    eventually("it stands still", SOON, async || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", syncer.pid())).unwrap_or_default();
        if stat.contains(") T ") { Ok(()) } else { Err(stat) }
    })
    .await;
    manager.hear();
    manager.heard.clear();
    holds_throughout("it says nothing", a_while(), async || {
        manager.hear();
        if manager.heard.is_empty() {
            Ok(())
        } else {
            Err(manager.heard.concat())
        }
    })
    .await;
    syncer.signal("CONT");
    manager.hears("WATCHDOG=1").await;
}

#[tokio::test]
async fn a_socket_that_cannot_be_used_costs_a_line() {
    let folder = temporary();
    let (hub, edge) = nowhere(&folder);
    let mut syncer = Syncer::start_with_env(&hub, &edge, &[], &[("NOTIFY_SOCKET", "vsock:2:1234")]);
    syncer.wait_for_log("reason=ServiceManagerUnreachable", SOON).await;
    syncer.wait_for_log("reason=SideUnreachable", SOON).await;
    // One that nobody listens at is no reason to say anything.
    let path = folder.path().join("nobody");
    let path = path.display().to_string();
    let mut syncer = Syncer::start_with_env(&hub, &edge, &[], &[("NOTIFY_SOCKET", &path)]);
    syncer.wait_for_log("reason=SideUnreachable", SOON).await;
    assert!(syncer.is_running() && !syncer.log().contains("ServiceManager"));
}

/// The words of the unit's `ExecStart`, as systemd expands them.
fn command_line(environment: &[(&str, &str)]) -> Vec<String> {
    let unit = fs::read_to_string(UNIT)
        .expect("the unit is there")
        .replace("\\\n", " ");
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart="));
    let words = line.expect("it starts something").split_whitespace();
    let words = words.flat_map(|word| {
        // Of `$NAME` each word of the value is one; `${NAME}` is a part of its word.
        if let Some(name) = word.strip_prefix('$').filter(|rest| !rest.starts_with('{')) {
            let value = environment.iter().find(|(known, _)| *known == name);
            let (_, value) = value.expect("the environment has all that the unit names");
            return value.split_whitespace().map(str::to_owned).collect();
        }
        let mut word = word.to_owned();
        for (name, value) in environment {
            word = word.replace(&format!("${{{name}}}"), value);
        }
        assert!(!word.contains('$'), "{word} is expanded");
        vec![word]
    });
    words.collect()
}

#[tokio::test]
async fn the_command_of_the_unit_runs() {
    let folder = temporary();
    nowhere(&folder);
    let path = folder.path().display().to_string();
    let environment = [
        ("CREDENTIALS_DIRECTORY", path.as_str()),
        ("STATE_DIRECTORY", &path),
        ("SYNC_TARGET_NAME", "site-7"),
        ("SYNC_TARGET_UID", "site-7-uid"),
        ("EDGE_SYNCER_FLAGS", "--v=4 --mode=poll"),
    ];
    let words = command_line(&environment);
    assert_eq!(words[0], "/usr/bin/edge-syncer");
    let args: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    let mut manager = Manager::abstract_one();
    let syncer = Syncer::start_raw(&args, &[("NOTIFY_SOCKET", &manager.name)]);
    manager.hears("READY=1").await;
    let log = syncer.log();
    assert!(log.contains("sync_target=site-7 uid=site-7-uid"), "{log}");
}

/// systemd's own judgement, where it is installed; it needs no running systemd.
fn analyze(args: &[&str]) -> Option<String> {
    let output = match Command::new("systemd-analyze").args(args).output() {
        Ok(output) => output,
        Err(error) => {
            support::process::complain(&format!(
                "SKIPPED: systemd-analyze cannot be run ({error}): apt-get install systemd"
            ));
            return None;
        }
    };
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(output.status.success(), "systemd-analyze {args:?}: {text}");
    Some(text)
}

#[test]
fn systemd_takes_the_unit() {
    let folder = temporary();
    // It looks whether the program is there.
    let program = Syncer::program().display().to_string();
    let mut units = vec!["verify".to_owned()];
    for name in [
        "edge-syncer.service",
        "edge-syncer-files.path",
        "edge-syncer-files.service",
    ] {
        let unit = fs::read_to_string(Path::new(UNIT).with_file_name(name)).expect("the unit is there");
        let copy = folder.path().join(name);
        fs::write(&copy, unit.replace("/usr/bin/edge-syncer", &program)).expect("the folder is ours");
        units.push(copy.display().to_string());
    }
    let units: Vec<&str> = units.iter().map(String::as_str).collect();
    if let Some(words) = analyze(&units) {
        assert!(!words.contains("edge-syncer"), "it has nothing to say of them: {words}");
    }
}

#[test]
fn the_unit_exposes_little() {
    analyze(&["security", "--offline=true", "--threshold=15", "--no-pager", UNIT]);
}

/// With its usual limit, systemd ends a path unit for good after five changes within ten seconds.
#[test]
fn systemd_never_gives_up_on_the_units() {
    for name in ["edge-syncer.service", "edge-syncer-files.service"] {
        let unit = fs::read_to_string(Path::new(UNIT).with_file_name(name)).expect("the unit is there");
        let (head, _) = unit.split_once("[Service]").expect("it is a service");
        assert!(
            head.lines().any(|line| line == "StartLimitIntervalSec=0"),
            "{name}: {head}"
        );
    }
}
