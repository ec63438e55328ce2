//! The role as a program: what `publish` starts, in which order, and what ends it.

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
use http::Uri;
use kube_lite::access::{self, AccessSource, AuthorityFile, Renewed};
use kube_lite::logging::log_line;
use kube_lite::reload::{self, Address, Reach, Reloading};
use kube_lite::{Cluster, ObjectName, RateLimit};
use tokio::sync::mpsc::Receiver;
use tokio::task::LocalSet;

use crate::agent::{self, Agent, Parts};
use crate::apply;
use crate::servers::{HostOverride, Kcp};
use crate::sides::Side;
use crate::start::{self, Found, Reference};

/// How long the Lease lasts without being renewed.
const LEASE_DURATION: Duration = Duration::from_secs(15);

/// What the program was started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How kcp is reached: the workspace of the slice, or of the export.
    pub kcp: AccessSource,
    /// How the service cluster is reached.
    pub service: AccessSource,
    /// Its scheme, host and port, if they are not those of its kubeconfig.
    pub service_host: Option<Uri>,
    /// The file with its CA, if it is not that of its kubeconfig.
    pub service_authority: Option<AuthorityFile>,
    /// The hosts of shards that are reached otherwise from here.
    pub overrides: Vec<HostOverride>,
    /// Where the Lease and the states are.
    pub namespace: String,
    /// The name of the agent.
    pub agent: String,
    /// What leads to the export.
    pub reference: Reference,
    /// Which PublishedResources are meant, as a label selector; all if there is none.
    pub selector: Option<String>,
    /// Whether several agents elect one that works.
    pub elects: bool,
    /// Which parts work.
    pub parts: Parts,
    /// Whether copies are written by server-side apply.
    pub applies: bool,
    /// Where metrics are served.
    pub metrics: Option<ListenAddress>,
    /// Where health is served.
    pub health: Option<ListenAddress>,
    /// The name of this machine or pod.
    pub host_name: String,
    /// How the program names itself to servers.
    pub user_agent: String,
    /// The version of the program.
    pub version: &'static str,
}

/// Runs the agent until a signal stops it.
///
/// Errors are about the configuration, the machine, and an export that is not there when it starts; after that it waits for
/// a server that does not answer.
pub async fn run(settings: Settings) -> Result<(), Box<dyn Error>> {
    let shutdown = Shutdown::listen()?;
    log_line!(
        Info,
        Started,
        "the sync agent starts",
        version = settings.version,
        agent = settings.agent
    );
    let url = access::load("kcp", &settings.kcp, &Renewed::default())?
        .config
        .cluster_url;
    let workspace = start::workspace_of(&url)?;
    let desk = Desk::default();
    let local = LocalSet::new();
    let places = [(&settings.metrics, Pages::Metrics), (&settings.health, Pages::Health)];
    serve::open(&local, places, &desk, logger::since_1970, |_| agent::render_standby()).await?;
    let user_agent = settings.user_agent.clone();
    let kcp = Kcp::open(
        settings.kcp.clone(),
        user_agent,
        &settings.overrides,
        logger::since_1970,
    )?;
    let service = service(&settings)?;
    for (side, server) in [
        ("service", service.standing().place.address.clone()),
        ("kcp", url.to_string()),
    ] {
        log_line!(
            Info,
            SideConfigured,
            "the server of a side",
            side = side,
            server = server
        );
    }
    let service = Rc::new(service);
    let (of_kcp, of_service) = (kcp.clone(), Rc::clone(&service));
    local.spawn_local(reload::follow(move || {
        of_kcp.check_files();
        of_service.check_files();
    }));
    let found = local
        .run_until(async {
            tokio::select! {
                found = start::find(&kcp, workspace, &settings.reference) => found.map(Some),
                () = shutdown.requested() => Ok(None),
            }
        })
        .await?;
    let Some(found) = found else { return Ok(()) };
    let candidacy = settings.elects.then(|| candidacy(&settings, &service));
    let work = |stop| work(&settings, &found, kcp.clone(), Rc::clone(&service), desk.open(), stop);
    let stop = async move { shutdown.requested().await }.boxed_local();
    local.run_until(leader::run(candidacy, stop, work)).await;
    log_line!(Info, Stopped, "stopped");
    Ok(())
}

/// The service cluster.
pub(crate) fn service(settings: &Settings) -> Result<Cluster, Box<dyn Error>> {
    let source = settings.service.clone();
    let reach = Reach {
        address: settings.service_host.clone().map_or(Address::Given, Address::At),
        authority: settings.service_authority.clone(),
    };
    let server = Reloading::open_at("service", source, reach, settings.user_agent.clone())?;
    let manager = if settings.applies {
        apply::manager(&settings.agent)
    } else {
        apply::WRITER.to_owned()
    };
    let cluster = Cluster::new("service", Box::new(server), RateLimit::new(None), &manager);
    Ok(cluster.nearby())
}

/// What is done by the one agent that is active.
fn work(
    settings: &Settings,
    found: &Found,
    kcp: Kcp,
    service: Rc<Cluster>,
    questions: Receiver<HealthQuery>,
    stop: LocalBoxFuture<'static, ()>,
) -> impl Future<Output = ()> + use<> {
    let of_agent = agent::Settings {
        agent: settings.agent.as_str().into(),
        namespace: settings.namespace.as_str().into(),
        selector: settings.selector.as_deref().map(Rc::from),
        slice: settings.reference.slice().into(),
        may_lack_slice: matches!(settings.reference, Reference::Export(_)),
        export: Rc::clone(&found.export),
        parts: settings.parts,
        applies: settings.applies,
        seed: fastrand::u64(..),
    };
    let opened = |server| Opened {
        server,
        mode: Mode::Watch,
    };
    let sides = Sides::new([
        (Side::Service, opened(service)),
        (Side::Slices, opened(Rc::new(kcp.workspace("kcp", &found.slices)))),
        (Side::Export, opened(Rc::new(kcp.workspace("kcp", &found.workspace)))),
    ]);
    let shell = Shell::new(Agent::new(of_agent, sides.moment()), kcp, sides);
    async move {
        match shell.run(questions, stop).await {
            Ok(_) => {}
            Err::<_, Infallible>(never) => match never {},
        }
    }
}

/// The name of the Lease that one of several agents of this name holds.
pub(crate) fn lease_of(agent: &str) -> String {
    format!("syncagent.{agent}")
}

/// What is needed for leader election.
fn candidacy(settings: &Settings, service: &Cluster) -> Candidacy {
    let lease = lease_of(&settings.agent);
    Candidacy {
        lease_duration: LEASE_DURATION,
        server: Rc::new(service.unlimited()),
        lease: ObjectName::new(&settings.namespace, &lease),
        identity: leader::new_identity(&settings.host_name),
        clock: logger::time_of_day_in_micros,
    }
}
