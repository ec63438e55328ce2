//! The syncer: what `run` starts, in which order, and what ends it.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Display;
use std::future::Future;
use std::rc::Rc;

use driver::leader::{self, Candidacy};
use driver::logger;
use driver::serve::{self, Desk};
use driver::shutdown::Shutdown;
use driver::systemd::Manager;
use kube_lite::logging::{self, LogReason, log_line, times};
use kube_lite::{Cluster, ObjectName, reload};
use log::Level;
use tokio::sync::mpsc::Receiver;
use tokio::task::LocalSet;

use crate::cli::Settings;
use crate::engine::dry_run::{DryRun, Shown};
use crate::engine::{self, Clusters};
use crate::model::dry_run::Remaining;
use crate::model::{self, OneCluster};
use crate::side::Side;
use crate::sync::job::Policy;
use crate::sync::own_objects::lease_name;
use crate::{clocks, metrics, on_site, renewal, sides, version};

/// Most requests in flight at once, whatever `--burst` says: enough to fill a link with 600 ms of latency, and each may
/// hold an object.
const MOST_WORKERS: u32 = 16;

/// Runs the syncer until a signal stops it.
///
/// Errors are about the configuration or the machine; it waits for a server that does not answer.
pub async fn run(settings: Settings) -> Result<(), Box<dyn Error>> {
    let shutdown = Shutdown::listen()?;
    log_line!(
        Info,
        Started,
        "edge-syncer starts",
        version = version::VERSION,
        sync_target = settings.sync_target_name,
        uid = settings.sync_target_uid,
    );
    let dry_run = settings.dry_run;
    if dry_run.is_some() {
        log_line!(
            Info,
            DryRun,
            "nothing is changed at either side: what would be is logged"
        );
    }
    let (local, desk) = (LocalSet::new(), Desk::default());
    let places = [(&settings.listen_address, serve::Pages::All)];
    serve::open(&local, places, &desk, logger::since_1970, standby).await?;
    let [hub, edge] = sides::open_both(&settings)?;
    let candidacy = candidacy(&settings, &edge);
    let manager = Manager::reach(&settings.service_manager).map(Rc::new);
    let clusters = Clusters::new(hub, edge);
    let credentials = credentials(&settings, &clusters);
    let stop = stop(&shutdown, manager.clone());
    let of_files = clusters.clone();
    local.spawn_local(reload::follow(move || {
        for cluster in of_files.all() {
            cluster.check_files();
        }
    }));
    if let Some(manager) = manager {
        let desk = desk.clone();
        local.spawn_local(async move { manager.report(&desk, logger::since_1970).await });
    }
    let sides = [Side::Hub, Side::Edge].map(|side| Rc::clone(clusters.at(side)));
    local.spawn_local(clocks::watch(sides, logger::since_1970));
    let mut setup = engine_setup(settings, clusters);
    if let Some(candidacy) = &candidacy {
        setup.settings.holder.clone_from(&candidacy.identity);
    }
    setup.dry_run = dry_run.map(|dry_run| DryRun::new(dry_run, listener()));
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

/// What is at a path while another syncer leads.
fn standby(path: &str) -> String {
    match path {
        "/" => on_site::render_standby(logger::since_1970()),
        _ => metrics::render_standby(),
    }
}

/// What the engine runs with.
pub(crate) fn engine_setup(settings: Settings, clusters: Clusters) -> engine::Setup {
    let workers = settings
        .rate
        .map_or(MOST_WORKERS, |rate| rate.burst.clamp(1, MOST_WORKERS));
    let policy = Policy {
        sync_target: settings.sync_target(),
        delete_adopted: settings.delete_adopted,
        revert_changes_from: settings.revert_changes_from,
    };
    engine::Setup {
        clusters,
        settings: model::Settings {
            hub_mode: settings.hub_mode,
            edge_mode: settings.edge_mode,
            own_namespace: settings.own_namespace,
            workers: workers as usize,
            queue_capacity: settings.queue_capacity,
            policy: Rc::new(policy),
            filter: Rc::new(settings.filter),
            status_interval: settings.status_interval,
            sync_target_name: settings.sync_target_name.clone(),
            heartbeat: settings.heartbeat_interval,
            clock: logger::time_of_day,
            since_1970: logger::since_1970,
            holder: settings.host_name,
            renews: settings.keep.is_some(),
            delete_limits: settings.delete_limits,
            renaming: settings.renaming,
            plan_slice: model::PLAN_SLICE,
            dry_run: settings.dry_run.is_some(),
        },
        dry_run: None,
    }
}

/// What is needed to renew and watch the credentials.
fn credentials(settings: &Settings, clusters: &Clusters) -> renewal::Setup {
    renewal::Setup {
        hub: Rc::clone(clusters.at(Side::Hub)),
        edge: Rc::clone(clusters.at(Side::Edge)),
        source: settings.hub.clone(),
        keep: settings.keep.clone(),
        sync_target_name: settings.sync_target_name.clone(),
        clock: logger::since_1970,
        date: times::date_and_time,
    }
}

/// What is done by the one syncer that is active.
async fn work(
    setup: engine::Setup,
    credentials: renewal::Setup,
    questions: Receiver<serve::HealthQuery>,
    stop: impl Future<Output = ()>,
) -> Result<(), OneCluster> {
    if setup.dry_run.is_some() {
        return engine::run_and_answer(setup, questions, stop).await;
    }
    tokio::select! {
        biased;
        ended = engine::run_and_answer(setup, questions, stop) => ended,
        never = renewal::run(credentials) => match never {},
    }
}

/// Returns once the program was asked to end, after logging that.
async fn stop(shutdown: &Shutdown, manager: Option<Rc<Manager>>) {
    shutdown.requested().await;
    if let Some(manager) = manager {
        manager.stopping();
    }
}

/// Logs what a dry run tells: one line for each action.
fn listener() -> impl Fn(Shown) {
    let held = RefCell::new(BTreeSet::new());
    let log = |side: Side, object: &dyn Display, words: &str, why: &dyn Display| {
        let keys: [(&str, &dyn Display); 3] = [("side", &side), ("object", object), ("because", why)];
        logging::write(Level::Info, module_path!(), LogReason::WouldChange, words, &keys);
    };
    move |shown| match shown {
        Shown::Would(would) => {
            let why = if would.is_as_sent {
                "as it would be sent: the server cannot be asked before what it needs is there"
            } else {
                ""
            };
            log(would.side, &would.object, would.words(), &why);
        }
        Shown::Tried(Remaining {
            held: deletes,
            waiting,
            failing,
        }) => {
            for delete in &deletes {
                let object = delete.at.for_people();
                if held.borrow_mut().insert((delete.side, object.clone())) {
                    log(delete.side, &object, "would be deleted, and that is held", &delete.why);
                }
            }
            log_line!(
                Info,
                DryRunComplete,
                "all that configs select was tried",
                held = deletes.len(),
                waiting = waiting,
                failing = failing
            );
        }
    }
}

/// What is needed for leader election, if it is on.
fn candidacy(settings: &Settings, edge: &Cluster) -> Option<Candidacy> {
    let namespace = settings.own_namespace.as_deref().unwrap_or("default");
    Some(Candidacy {
        lease_duration: settings.lease_duration?,
        server: Rc::new(edge.unlimited()),
        lease: ObjectName::new(namespace, &lease_name(&settings.sync_target_uid)),
        identity: leader::new_identity(&settings.host_name),
        clock: logger::time_of_day_in_micros,
    })
}
