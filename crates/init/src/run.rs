//! The role as a program: what `init` starts, in which order, and what ends it.

use std::convert::Infallible;
use std::error::Error;
use std::rc::Rc;
use std::time::Duration;

use driver::leader::{self, Candidacy};
use driver::serve::{self, Desk, HealthQuery, ListenAddress, Pages};
use driver::shutdown::Shutdown;
use driver::source::Mode;
use driver::{Opened, Shell, Sides, logger};
use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;
use kube_lite::access::AccessSource;
use kube_lite::logging::log_line;
use kube_lite::{Cluster, ObjectName, reload};
use tokio::sync::mpsc::Receiver;
use tokio::task::LocalSet;

use crate::agent::{self, Agent};
use crate::servers::Kcp;
use crate::sides::Side;
use crate::workspace::ConfigWorkspace;

/// The Lease of the agents of one config workspace, as the Go agent has it.
pub(crate) const LEASE: &str = "init-agent.kcp.io";
/// How long it lasts without being renewed.
const LEASE_DURATION: Duration = Duration::from_secs(15);

/// What the program was started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How kcp is reached.
    pub source: AccessSource,
    /// Where the targets are.
    pub config_workspace: ConfigWorkspace,
    /// Which targets are served, as a label selector; all if there is none.
    pub selector: Option<String>,
    /// Where metrics are served.
    pub metrics: Option<ListenAddress>,
    /// Where health is served.
    pub health: Option<ListenAddress>,
    /// The namespace of the Lease, if several agents elect one that works.
    pub election: Option<String>,
    /// The name of this machine or pod.
    pub host_name: String,
    /// How the program names itself to servers.
    pub user_agent: String,
    /// The version of the program.
    pub version: &'static str,
}

/// Runs the agent until a signal stops it.
///
/// Errors are about the configuration or the machine; it waits for a server that does not answer.
pub async fn run(settings: Settings) -> Result<(), Box<dyn Error>> {
    let shutdown = Shutdown::listen()?;
    log_line!(
        Info,
        Started,
        "the init agent starts",
        version = settings.version,
        config_workspace = settings.config_workspace.name
    );
    let desk = Desk::default();
    let local = LocalSet::new();
    let places = [(&settings.metrics, Pages::Metrics), (&settings.health, Pages::Health)];
    serve::open(&local, places, &desk, logger::since_1970, |_| agent::render_standby()).await?;
    let kcp = Kcp::open(settings.source.clone(), settings.user_agent.clone(), logger::since_1970)?;
    let of_files = kcp.clone();
    local.spawn_local(reload::follow(move || of_files.check_files()));
    let config = kcp.config(&settings.config_workspace);
    let server = config.standing().place.address.clone();
    log_line!(
        Info,
        SideConfigured,
        "the server of a side",
        side = "config",
        server = server
    );
    let candidacy = candidacy(&settings, &config);
    let config = Rc::new(config);
    let work = |stop| work(&settings, kcp.clone(), Rc::clone(&config), desk.open(), stop);
    let stop = async move { shutdown.requested().await }.boxed_local();
    local.run_until(leader::run(candidacy, stop, work)).await;
    log_line!(Info, Stopped, "stopped");
    Ok(())
}

/// What is done by the one agent that is active.
fn work(
    settings: &Settings,
    kcp: Kcp,
    config: Rc<Cluster>,
    questions: Receiver<HealthQuery>,
    stop: LocalBoxFuture<'static, ()>,
) -> impl Future<Output = ()> + use<> {
    let settings = agent::Settings {
        selector: settings.selector.as_deref().map(Rc::from),
        config_workspace: settings.config_workspace.name.as_str().into(),
        seed: fastrand::u64(..),
    };
    let opened = Opened {
        server: config,
        mode: Mode::Watch,
    };
    let sides = Sides::new([(Side::Config, opened)]);
    let shell = Shell::new(Agent::new(settings, sides.moment()), kcp, sides);
    async move {
        match shell.run(questions, stop).await {
            Ok(_) => {}
            Err::<_, Infallible>(never) => match never {},
        }
    }
}

/// What is needed for leader election, if it is on.
fn candidacy(settings: &Settings, config: &Cluster) -> Option<Candidacy> {
    let namespace = settings.election.as_deref()?;
    Some(Candidacy {
        lease_duration: LEASE_DURATION,
        server: Rc::new(config.unlimited()),
        lease: ObjectName::new(namespace, LEASE),
        identity: leader::new_identity(&settings.host_name),
        clock: logger::time_of_day_in_micros,
    })
}
