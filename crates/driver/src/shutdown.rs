//! Signals: the first SIGTERM or SIGINT asks the program to end, the second one ends it. A SIGHUP, which a closing terminal
//! sends too, shows for a while in the log what the program does. Files that are replaced are noticed without it.

use std::io;
use std::time::Duration;

use kube_lite::logging::log_line;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::timeout;

use super::logger;

/// The exit code after a second signal, as in the Go syncer.
const ABORTED: i32 = 1;

/// How long a SIGHUP raises the log level: long enough to see what is tried again at the longest intervals.
const RAISED: Duration = Duration::from_secs(600);

/// Whether the program was asked to end. Clones share the state.
#[derive(Debug, Clone)]
pub struct Shutdown {
    requested: watch::Receiver<bool>,
}

impl Shutdown {
    /// Takes over SIGTERM, SIGINT and SIGHUP for the rest of the process. Needs a tokio runtime with its I/O driver.
    pub fn listen() -> io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        let hangup = signal(SignalKind::hangup())?;
        tokio::spawn(raise_log_level(hangup));
        let (sender, requested) = watch::channel(false);
        tokio::spawn(follow(terminate, interrupt, sender));
        Ok(Self { requested })
    }

    /// Returns once the program was asked to end, at once if it was before. Safe to drop and call again.
    pub async fn requested(&self) {
        let mut requested = self.requested.clone();
        if requested.wait_for(|requested| *requested).await.is_err() {
            // The runtime is being shut down; this is not polled any more.
            std::future::pending::<()>().await;
        }
    }
}

async fn follow(mut terminate: Signal, mut interrupt: Signal, sender: watch::Sender<bool>) {
    next(&mut terminate, &mut interrupt).await;
    log_line!(Info, StopRequested, "asked to stop");
    sender.send_replace(true);
    next(&mut terminate, &mut interrupt).await;
    log_line!(Warn, StopForced, "asked to stop again, stopping at once");
    std::process::exit(ABORTED);
}

async fn raise_log_level(mut hangup: Signal) {
    while hangup.recv().await.is_some() {
        if !logger::raise() {
            log_line!(
                Info,
                SignalIgnored,
                "SIGHUP has no effect: lines at debug level are written anyway"
            );
            continue;
        }
        loop {
            log_line!(
                Info,
                LogLevelRaised,
                "lines at debug level are written for ten minutes, since SIGHUP has come"
            );
            // Another one begins the time again.
            if timeout(RAISED, hangup.recv()).await.is_err() {
                break;
            }
        }
        log_line!(Info, LogLevelRestored, "lines are written as before SIGHUP has come");
        logger::restore();
    }
}

async fn next(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
