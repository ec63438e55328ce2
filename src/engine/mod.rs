//! The engine: runs the [model](crate::model) on the [driver](driver), and has the requests that it asks for.

mod definitions;
mod discover;
pub(crate) mod dry_run;
mod edge_object;
mod events;
mod heartbeat;
mod hub_namespaces;
mod left;
pub(crate) mod record;
mod requests;

use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use driver::serve::HealthQuery;
use driver::{Opened, Shell, Sides};
use kube_lite::Cluster;
use kube_lite::logging::log_line;
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

use self::dry_run::DryRun;
use self::requests::Sender;
use crate::model::{Model, OneCluster, Settings};
use crate::side::Side;

/// How long the end of the process may wait for the last write.
const LAST_WRITE: Duration = Duration::from_secs(2);

/// What the engine needs to run. Cheap to clone.
#[derive(Clone)]
pub struct Setup {
    /// The servers of both sides.
    pub clusters: Clusters,
    /// What the model needs to know.
    pub settings: Settings,
    /// Nothing is changed at either side, and this sees what would be.
    pub dry_run: Option<DryRun>,
}

/// The server of each side. Cheap to clone.
#[derive(Clone)]
pub struct Clusters {
    hub: Rc<Cluster>,
    edge: Rc<Cluster>,
}

impl Clusters {
    /// These servers.
    pub fn new(hub: Cluster, edge: Cluster) -> Self {
        let (hub, edge) = (Rc::new(hub), Rc::new(edge));
        Self { hub, edge }
    }

    /// These servers, which others may have too.
    #[cfg(feature = "admin")]
    pub(crate) fn shared([hub, edge]: [Rc<Cluster>; 2]) -> Self {
        Self { hub, edge }
    }

    /// The server of a side.
    pub fn at(&self, side: Side) -> &Rc<Cluster> {
        match side {
            Side::Hub => &self.hub,
            Side::Edge => &self.edge,
        }
    }

    /// Both of them.
    pub fn all(&self) -> [&Rc<Cluster>; 2] {
        [&self.hub, &self.edge]
    }
}

/// Syncs until `stop` resolves, and at most [`LAST_WRITE`] longer; answers questions about its state. Needs a tokio
/// `LocalSet`. Requests in flight are abandoned then, which every later run can cope with.
///
/// An error, before anything is written, says that hub and edge are the same cluster.
pub async fn run_and_answer(
    setup: Setup,
    questions: Receiver<HealthQuery>,
    stop: impl Future<Output = ()>,
) -> Result<(), OneCluster> {
    let Setup {
        clusters,
        settings,
        dry_run,
    } = setup;
    let sides = Sides::new([Side::Hub, Side::Edge].map(|side| {
        let (server, mode) = (Rc::clone(clusters.at(side)), settings.mode(side));
        (side, Opened { server, mode })
    }));
    let policy = Rc::clone(&settings.policy);
    let mut model = Model::new(settings, fastrand::u64(..), sides.moment());
    model.begin();
    let is_dry = dry_run.is_some();
    let sender = Sender { policy, dry_run };
    let mut model = Shell::new(model, sender, sides).run(questions, stop).await?;
    if let Some((name, kept)) = model.end().filter(|_| !is_dry) {
        let saved = timeout(LAST_WRITE, record::write(clusters.at(Side::Edge), &name, &kept)).await;
        log_line!(
            Debug,
            RecordWritten,
            "wrote the record for the last time",
            result = format_args!("{saved:?}")
        );
    }
    Ok(())
}
