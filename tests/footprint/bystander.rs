//! Another client of the edge: how long it waits for small answers while the syncer works.

use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::time::Instant;

use crate::support::Server;
use crate::support::objects::Objects;
use crate::table::milliseconds;

/// Between an answer and the next request.
const PAUSE: Duration = Duration::from_millis(2);

/// Asks all the time, in a thread and over a connection of its own, so that nothing of the benchmark delays it.
pub(crate) struct Bystander {
    stop: Sender<()>,
    thread: JoinHandle<Vec<Duration>>,
}

impl Bystander {
    /// Begins to ask `server`.
    pub(crate) fn begin(server: &Server) -> Self {
        let (stop, stopped) = mpsc::channel();
        let kubeconfig = server.kubeconfig();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime needs nothing special");
            let client = runtime.block_on(connect(&kubeconfig));
            let mut waits = Vec::new();
            while stopped.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                waits.push(runtime.block_on(ask(&client)));
            }
            waits
        });
        Self { stop, thread }
    }

    /// Stops, and gives how long half and 99 of 100 answers took at most.
    pub(crate) fn end(self) -> String {
        // An error says that it has stopped by itself; then it has panicked, which `join` tells.
        let _ = self.stop.send(());
        let mut waits = self.thread.join().expect("the edge answers");
        waits.sort_unstable();
        let at = |percent: usize| waits.get(waits.len() * percent / 100).copied().unwrap_or_default();
        let (half, most) = (milliseconds(at(50)), milliseconds(at(99)));
        format!("{half} / {most} of {}", waits.len())
    }
}

async fn connect(kubeconfig: &Path) -> Objects {
    let client = Objects::by_kubeconfig(kubeconfig, None).await;
    ask(&client).await;
    client
}

async fn ask(client: &Objects) -> Duration {
    let start = Instant::now();
    let found = client.try_get("v1", "namespaces", "", "default").await;
    found.expect("the edge answers");
    start.elapsed()
}
