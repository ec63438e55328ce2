//! Processes end with the test, whatever ends that.

use std::convert::Infallible;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::SOON;
use crate::support::{Pair, PairOptions, Server, ServerOptions, Syncer, eventually, shared_pair};

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
    let mut victim = Victim::start("processes::servers_end_with_a_killed_test_process");
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
    let mut victim = Victim::start("processes::shared_servers_end_with_the_test_process");
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
    let mut victim = Victim::start("processes::logs_of_a_failed_test_are_kept");
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
    // In this order, since it may have more a moment later.
    let (resident, peak) = (polite.resident_kb(), polite.peak_kb());
    assert!(resident > 0 && peak >= resident, "{resident} {peak}");
    let (status, took) = polite.terminate().await;
    assert_eq!(status.code(), Some(7));
    assert!(took < SOON, "{took:?}");
    assert!(polite.log().ends_with("bye\n"));
    assert!(!polite.is_running());

    let mut other = Syncer::start_program(Path::new("/bin/sleep"), &["1000"], &[]);
    // The leash is a shell that becomes the program a moment after the start.
    let command = format!("/proc/{}/comm", other.pid());
    eventually(
        "the process id is that of the program",
        SOON,
        async || match std::fs::read_to_string(&command) {
            Ok(name) if name == "sleep\n" => Ok(()),
            other => Err(format!("{command}: {other:?}")),
        },
    )
    .await;
    assert_eq!(other.kill().signal(), Some(9));
    let mut short = Syncer::start_program(Path::new("/bin/sh"), &["-c", "exit 3"], &[]);
    assert_eq!(short.wait(SOON).await.code(), Some(3));
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
        let text = eventually("the victim reports", Duration::from_secs(300), async || {
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
