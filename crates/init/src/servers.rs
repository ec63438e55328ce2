//! The servers of the agent: every workspace is a path below one address, and a shard may have an address of its own.

use std::rc::Rc;
use std::time::Duration;

use driver::source::Mode;
use driver::{Opened, Perform, Servers};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use http::Uri;
use kube_lite::access::{AccessError, AccessSource};
use kube_lite::below::Below;
use kube_lite::reload::{Reach, Reloading};
use kube_lite::{ApiServer, Cluster, RateLimit, Workspaces};

use crate::agent::{Agent, Answer, Request};
use crate::events;
use crate::fill::{fill, release};
use crate::sides::{Place, Side};
use crate::workspace::ConfigWorkspace;

/// The field manager of what is created.
const FIELD_MANAGER: &str = "init-agent";

/// What opens the sides of the agent, and does its work there.
#[derive(Clone)]
pub(crate) struct Kcp {
    source: AccessSource,
    user_agent: String,
    /// kcp itself, at the address of the kubeconfig.
    root: Rc<Reloading>,
    clock: fn() -> Duration,
}

impl Kcp {
    pub(crate) fn open(source: AccessSource, user_agent: String, clock: fn() -> Duration) -> Result<Self, AccessError> {
        let root = Reloading::open_at("kcp", source.clone(), Reach::Root, user_agent.clone())?;
        Ok(Self {
            source,
            user_agent,
            root: Rc::new(root),
            clock,
        })
    }

    /// Checks whether the files with address and credentials were replaced.
    pub(crate) fn check_files(&self) {
        self.root.check_files();
    }

    /// The workspace of the targets.
    pub(crate) fn config(&self, workspace: &ConfigWorkspace) -> Cluster {
        let root = Rc::clone(&self.root) as Rc<dyn ApiServer>;
        cluster("config", Below::new(root, &workspace.path)).with(workspace.workspaces)
    }

    /// What is at a place.
    pub(crate) fn at(&self, place: &Place) -> Cluster {
        let root = Rc::clone(&self.root) as Rc<dyn ApiServer>;
        match place {
            Place::Workspace(workspace) => cluster("type", Below::new(root, &format!("/clusters/{workspace}"))),
            Place::Url(url) => cluster("shard", self.at_url(root, url)).with(Workspaces::Many),
        }
    }

    /// What a URL of kcp leads to: through the same connections where it is at the same address.
    fn at_url(&self, root: Rc<dyn ApiServer>, url: &str) -> Below {
        let Ok(url) = url.parse::<Uri>() else {
            return Below::nothing(format!("{url:?} is no URL"));
        };
        if self.root.is_at(&url) {
            return Below::new(root, url.path());
        }
        let path = url.path().to_owned();
        let other = Reloading::open_at("shard", self.source.clone(), Reach::At(url), self.user_agent.clone());
        match other {
            Ok(server) => Below::new(Rc::new(server), &path),
            Err(error) => Below::nothing(error.to_string()),
        }
    }
}

fn cluster(name: &str, server: Below) -> Cluster {
    Cluster::new(name, Box::new(server), RateLimit::new(None), FIELD_MANAGER)
}

impl Perform<Agent> for Kcp {
    fn open(&self, _side: Side, place: Place) -> Opened {
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
        };
        Some(work)
    }
}
