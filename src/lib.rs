//! edge-syncer syncs objects between an edge cluster and its mailbox workspace on a hub.
//!
//! The modules in the order that data takes: configs at the hub become a plan, the plan starts sources, sources fill
//! the queue, workers sync one object after the other, and what came of it is reported. All that is known lies in
//! the model, which is plain data; the engine does what that wants done (docs/architecture.md).
//!
//! ```text
//! configs at the hub ──► plan ──► sources ──► queue ──► reconcile ──► report
//!                         └──────────── model ────────────┘
//! ```

mod bounded;
mod few;
mod logging;
mod spelling;
mod version;

pub mod cli;

pub mod api;
pub mod cluster;
#[cfg(feature = "admin")]
pub mod join;
pub mod plan;
pub mod source;

pub mod queue;

pub mod sync;

pub mod model;

pub mod engine;
pub mod leader;
pub mod renewal;
pub mod report;
pub mod serve;

pub mod shutdown;
pub mod systemd;

pub mod permissions;

mod ask;
mod check;
mod survey;

pub use ask::gen_rbac;
pub use check::check;

#[cfg(test)]
mod fuzz;

use std::error::Error;
use std::future::Future;
use std::rc::Rc;

use cluster::access::{AccessSource, Renewed};
use cluster::reload::{self, Reloading};
use cluster::{Cluster, ObjectName, RateLimit, Side};
use logging::log_line;
use model::OneCluster;
use tokio::sync::mpsc::Receiver;

/// Most requests in flight at once, whatever `--burst` says: enough to fill a link with 600 ms of latency, and each may
/// hold an object.
const MOST_WORKERS: u32 = 16;

/// Runs the syncer until a signal stops it.
///
/// Errors are about the configuration or the machine; a server that does not answer is waited for.
pub async fn run(settings: cli::Settings) -> Result<(), Box<dyn Error>> {
    let shutdown = shutdown::Shutdown::listen()?;
    log_line!(
        Info,
        Started,
        "edge-syncer starts",
        version = version::VERSION,
        sync_target = settings.sync_target_name,
        uid = settings.sync_target_uid,
    );
    let listener = match &settings.listen_address {
        Some(address) => Some(serve::listen(address).await?),
        None => None,
    };
    let [hub, edge] = ask::sides(&settings).await?;
    let candidacy = candidacy(&settings, &edge);
    let manager = systemd::Manager::reach(&settings.service_manager).map(Rc::new);
    let workers = settings
        .rate
        .map_or(MOST_WORKERS, |rate| rate.burst.clamp(1, MOST_WORKERS));
    let clusters = engine::Clusters::new([hub, edge]);
    let credentials = credentials(&settings, &clusters);
    let setup = engine::Setup {
        clusters: clusters.clone(),
        settings: model::Settings {
            hub_mode: settings.hub_mode,
            edge_mode: settings.edge_mode,
            own_namespace: settings.own_namespace,
            workers: workers as usize,
            queue_capacity: settings.queue_capacity,
            policy: Rc::new(sync::job::Policy {
                sync_target: sync::ownership::SyncTarget {
                    uid: settings.sync_target_uid,
                    former: settings.former_sync_target_uids,
                },
                delete_adopted: settings.delete_adopted,
                revert_changes_from: settings.revert_changes_from,
            }),
            filter: Rc::new(settings.filter),
            status_interval: settings.status_interval,
            heartbeat: settings.heartbeat_interval,
            clock: cli::logger::time_of_day,
            delete_limits: settings.delete_limits,
            renaming: settings.renaming,
        },
    };
    let desk = serve::Desk::default();
    let stop = stop(&shutdown, manager.clone());
    let local = tokio::task::LocalSet::new();
    if let Some(listener) = listener {
        local.spawn_local(serve::serve(listener, desk.clone(), cli::logger::since_1970));
    }
    local.spawn_local(check_files(clusters));
    if let Some(manager) = manager {
        let desk = desk.clone();
        local.spawn_local(async move {
            manager
                .report(&desk, cli::logger::since_1970, cli::logger::date_and_time)
                .await;
        });
    }
    let ended = match candidacy {
        None => Box::pin(local.run_until(work(setup, credentials, desk.open(), stop))).await,
        Some(candidacy) => {
            let work = |stop| work(setup.clone(), credentials.clone(), desk.open(), stop);
            let ended = local.run_until(leader::while_leading(candidacy, stop, work)).await;
            ended.unwrap_or(Ok(()))
        }
    };
    ended?;
    log_line!(Info, Stopped, "stopped");
    Ok(())
}

/// What it takes to look after the credentials.
fn credentials(settings: &cli::Settings, clusters: &engine::Clusters) -> renewal::Setup {
    renewal::Setup {
        hub: Rc::clone(clusters.at(Side::Hub)),
        edge: Rc::clone(clusters.at(Side::Edge)),
        source: settings.hub.clone(),
        keep: settings.keep.clone(),
        sync_target_name: settings.sync_target_name.clone(),
        clock: cli::logger::since_1970,
        date: cli::logger::date_and_time,
    }
}

/// What is done by the one syncer that is active.
async fn work(
    setup: engine::Setup,
    credentials: renewal::Setup,
    questions: Receiver<serve::HealthQuery>,
    stop: impl Future<Output = ()>,
) -> Result<(), OneCluster> {
    tokio::select! {
        biased;
        ended = engine::run_and_answer(setup, questions, stop) => ended,
        never = renewal::run(credentials) => match never {},
    }
}

/// Returns once the program was asked to end, and has logged so.
async fn stop(shutdown: &shutdown::Shutdown, manager: Option<Rc<systemd::Manager>>) {
    shutdown.requested().await;
    if let Some(manager) = manager {
        manager.stopping();
    }
}

/// Registers an edge at a hub and writes what it needs; `say` gets lines for people.
#[cfg(feature = "admin")]
pub async fn generate(settings: &join::Settings, say: &dyn Fn(&str)) -> Result<(), Box<dyn Error>> {
    join::run(settings, &user_agent(), say).await
}

/// Each request reads the files that it depends on; but there may be none for hours, and none to the right server.
async fn check_files(clusters: engine::Clusters) {
    loop {
        tokio::time::sleep(reload::MAX_AGE).await;
        for cluster in clusters.all() {
            cluster.check_files().await;
        }
    }
}

/// What it takes to be one of several syncers, if it is to be one.
fn candidacy(settings: &cli::Settings, edge: &Cluster) -> Option<leader::Candidacy> {
    let namespace = settings.own_namespace.as_deref().unwrap_or("default");
    Some(leader::Candidacy {
        lease_duration: settings.lease_duration?,
        edge: Rc::new(edge.unlimited()),
        lease: ObjectName::new(namespace, &sync::own_objects::lease_name(&settings.sync_target_uid)),
        identity: leader::new_identity(&settings.host_name),
        clock: cli::logger::time_of_day_in_micros,
    })
}

async fn open(
    side: Side,
    source: &AccessSource,
    renewed: Renewed,
    limit: RateLimit,
) -> Result<Cluster, Box<dyn Error>> {
    let server = Reloading::open_with(side, source.clone(), renewed, user_agent()).await?;
    let cluster = Cluster::new(side, Box::new(server), limit);
    let server = cluster.standing().place.address.clone();
    log_line!(
        Info,
        SideConfigured,
        "a side of the syncer",
        side = side,
        server = server
    );
    Ok(cluster)
}

/// `edge-syncer/<version> (<os>/<arch>)`, so that a hub can tell its syncers and their versions.
fn user_agent() -> String {
    format!(
        "edge-syncer/{} ({}/{})",
        version::VERSION,
        std::env::consts::OS,
        std::env::consts::ARCH
    )
}
