//! The servers of the agent: every workspace is a path below one address, and a shard may have an address of its own.

use std::rc::Rc;
use std::time::Duration;

use driver::source::Mode;
use driver::{Opened, Perform, Servers, events};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use kube_lite::access::{AccessError, AccessSource};
use kube_lite::below::{Below, Host};
use kube_lite::figures::Figures;
use kube_lite::{Cluster, RateLimit, Workspaces};

use crate::agent::{Agent, Answer, Request};
use crate::fill::{fill, release, tell};
use crate::sides::{Location, Side};
use crate::workspace::ConfigWorkspace;

/// The field manager of what is created.
const FIELD_MANAGER: &str = "init-agent";

/// What opens the sides of the agent, and does its work there.
#[derive(Clone)]
pub(crate) struct Kcp {
    host: Host,
    /// What is counted of all requests.
    figures: Rc<Figures>,
    clock: fn() -> Duration,
}

impl Kcp {
    pub(crate) fn open(source: AccessSource, user_agent: String, clock: fn() -> Duration) -> Result<Self, AccessError> {
        let host = Host::open("kcp", source, user_agent)?;
        let figures = Rc::default();
        Ok(Self { host, figures, clock })
    }

    /// Checks whether the files with address and credentials were replaced.
    pub(crate) fn check_files(&self) {
        self.host.check_files();
    }

    /// The workspace of the targets.
    pub(crate) fn config(&self, workspace: &ConfigWorkspace) -> Cluster {
        self.cluster("config", self.host.below(&workspace.path))
            .with(workspace.workspaces)
    }

    /// What is at a place.
    pub(crate) fn at(&self, place: &Location) -> Cluster {
        match place {
            Location::Workspace(workspace) => self.cluster("type", self.host.below(&format!("/clusters/{workspace}"))),
            Location::Url(url) => self.cluster("shard", self.host.at(url)).with(Workspaces::Many),
        }
    }

    fn cluster(&self, name: &str, server: Below) -> Cluster {
        let cluster = Cluster::new(name, Box::new(server), RateLimit::new(None), FIELD_MANAGER);
        cluster.counting(&self.figures)
    }
}

impl Perform<Agent> for Kcp {
    fn open(&self, _side: Side, place: Location) -> Opened {
        let (server, mode) = (Rc::new(self.at(&place)), Mode::Watch);
        Opened { server, mode }
    }

    fn perform(&self, request: Request, servers: &mut Servers<'_, Side>) -> Option<LocalBoxFuture<'static, Answer>> {
        let work = match request {
            Request::Fill(key, job) => {
                let (shard, config) = (servers.at(key.shard)?, servers.at(Side::Config)?);
                async move {
                    let filled = fill(&job, &key, &shard, &config).await;
                    Answer::Filled(key, filled)
                }
                .boxed_local()
            }
            Request::Release(key, initializer, place) => {
                let shard = servers.at(key.shard)?;
                async move {
                    let released = release(&key, &initializer, place, &shard).await;
                    Answer::Released(key, released)
                }
                .boxed_local()
            }
            Request::Record(record) => {
                let (config, now) = (servers.at(Side::Config)?, (self.clock)());
                async move { Answer::Recorded(events::write(&record, &config, now).await) }.boxed_local()
            }
            Request::Examine(target, changes) => {
                let config = servers.at(Side::Config)?;
                async move {
                    let trouble = tell::examine(&target, &config).await;
                    Answer::Examined(target.object_name(), changes, trouble)
                }
                .boxed_local()
            }
            Request::WriteStatus(name, uid, status) => {
                let (config, now) = (servers.at(Side::Config)?, (self.clock)());
                async move {
                    let written = tell::write(&name, &uid, status, &config, now).await;
                    Answer::StatusWritten(name, written)
                }
                .boxed_local()
            }
        };
        Some(work)
    }
}
