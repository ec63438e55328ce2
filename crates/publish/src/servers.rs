//! The servers of the agent: the service cluster, and kcp, whose workspaces are paths below one address; a shard may have
//! an address of its own.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use driver::source::Mode;
use driver::{Opened, Perform, Servers, events};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use kube_lite::access::{AccessError, AccessSource};
use kube_lite::below::{Below, Host};
use kube_lite::figures::Figures;
use kube_lite::{Cluster, Rate, RateLimit, Workspaces};
use tokio::time::timeout;

use crate::agent::{Agent, Answer, Request};
use crate::apply::WRITER;
use crate::publishing;
use crate::sides::{Location, Primary, Side};
use crate::sync::{self, Synced};
use crate::trouble::Stop;

/// How often the objects of one workspace ask kcp for something in a second, and how often at once.
const OF_WORKSPACE: Rate = Rate { qps: 50.0, burst: 100 };
/// How long a pass over an object may take.
const LONGEST: Duration = Duration::from_secs(300);

/// The host and port of a URL, and what stands in their place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostOverride {
    /// As kcp gives it.
    pub from: String,
    /// As it is reached from here.
    pub to: String,
}

/// By shard and workspace.
type Parts = BTreeMap<(Side, Box<str>), Rc<Cluster>>;

/// What opens the sides of the agent, and does its work there.
#[derive(Clone)]
pub(crate) struct Kcp {
    host: Host,
    /// What is counted of all requests.
    figures: Rc<Figures>,
    overrides: Rc<[HostOverride]>,
    known: Rc<sync::Known>,
    /// Shards as the objects of each workspace use them.
    parts: Rc<RefCell<Parts>>,
    clock: fn() -> Duration,
}

impl Kcp {
    pub(crate) fn open(
        source: AccessSource,
        user_agent: String,
        overrides: &[HostOverride],
        clock: fn() -> Duration,
    ) -> Result<Self, AccessError> {
        Ok(Self {
            host: Host::open("kcp", source, user_agent)?,
            figures: Rc::default(),
            overrides: overrides.into(),
            known: Rc::default(),
            parts: Rc::default(),
            clock,
        })
    }

    /// Checks whether the files with address and credentials were replaced.
    pub(crate) fn check_files(&self) {
        self.host.check_files();
    }

    /// A workspace, by its path or id.
    pub(crate) fn workspace(&self, name: &str, workspace: &str) -> Cluster {
        self.cluster(name, self.host.below(&format!("/clusters/{workspace}")))
    }

    /// A virtual workspace, with all workspaces that it shows.
    pub(crate) fn at(&self, place: &Location) -> Cluster {
        let url = reached(&place.0, &self.overrides);
        self.cluster("shard", self.host.at(&url)).with(Workspaces::Many)
    }

    /// A shard as a workspace may use it: so often in a second, whatever the others do.
    fn part_of(&self, primary: &Primary, shard: &Cluster) -> Rc<Cluster> {
        let key = (primary.shard(), primary.name.workspace().into());
        let mut parts = self.parts.borrow_mut();
        let part = parts.entry(key).or_insert_with(|| {
            let rate = RateLimit::new(Some(OF_WORKSPACE));
            Rc::new(shard.at_rate(rate))
        });
        Rc::clone(part)
    }

    fn cluster(&self, name: &str, server: Below) -> Cluster {
        let cluster = Cluster::new(name, Box::new(server), RateLimit::new(None), WRITER);
        cluster.counting(&self.figures)
    }
}

/// What comes of a pass that was ended. The next one begins with what it has done.
fn took_too_long() -> Synced {
    let words = format!("it has taken longer than {} s", LONGEST.as_secs());
    let advice = "see how many related objects it has, and how long the servers take to answer";
    Synced {
        result: Err(Stop::because("syncing the object", words, advice)),
        records: Vec::new(),
        uses: None,
        left: BTreeSet::new(),
        version: 0,
        uid: String::new(),
    }
}

/// A URL as it is reached from here. One without a port means that of its scheme.
fn reached(url: &str, overrides: &[HostOverride]) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    // An address of IPv6 has colons within its brackets.
    let has_port = host.rsplit(']').next().is_some_and(|end| end.contains(':'));
    let of_scheme = if scheme.eq_ignore_ascii_case("http") { 80 } else { 443 };
    let whole = if has_port {
        host.to_owned()
    } else {
        format!("{host}:{of_scheme}")
    };
    let to = overrides.iter().find(|known| known.from.eq_ignore_ascii_case(&whole));
    format!("{scheme}://{}{path}", to.map_or(host, |known| &known.to))
}

impl Perform<Agent> for Kcp {
    fn open(&self, _side: Side, place: Location) -> Opened {
        let (server, mode) = (Rc::new(self.at(&place)), Mode::Watch);
        Opened { server, mode }
    }

    fn perform(&self, request: Request, servers: &mut Servers<'_, Side>) -> Option<LocalBoxFuture<'static, Answer>> {
        let clock = self.clock;
        let work = match request {
            Request::Publish(name, job) => {
                let (service, export) = (servers.at(Side::Service)?, servers.at(Side::Export)?);
                async move {
                    let published = publishing::publish(&job, &service, &export).await;
                    Answer::Published(name, published)
                }
                .boxed_local()
            }
            Request::Export(job) => {
                let export = servers.at(Side::Export)?;
                async move { Answer::Exported(publishing::export(&job, &export).await) }.boxed_local()
            }
            Request::Sync(primary, job) => {
                let (service, shard) = (servers.at(Side::Service)?, servers.at(primary.shard())?);
                let shard = self.part_of(&primary, &shard);
                let known = Rc::clone(&self.known);
                async move {
                    let pass = sync::pass(&job, &primary, &shard, &service, &known, clock);
                    match timeout(LONGEST, pass).await {
                        Ok(synced) => Answer::Synced(primary, synced),
                        Err(_) => Answer::Ended(primary, took_too_long()),
                    }
                }
                .boxed_local()
            }
            Request::Clear(name, agent) => {
                let service = servers.at(Side::Service)?;
                async move {
                    let cleared = sync::clear(&service, &agent, &name).await;
                    Answer::Cleared(name, cleared)
                }
                .boxed_local()
            }
            Request::Forget(workspace) => {
                self.known.forget(&workspace);
                self.parts.borrow_mut().retain(|(_, of), _| *of != workspace);
                return None;
            }
            Request::Record(side, record) => {
                let (server, now) = (servers.at(side)?, clock());
                async move { Answer::Recorded(events::write(&record, &server, now).await) }.boxed_local()
            }
        };
        Some(work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_reached_where_an_override_says() {
        let over = |from: &str, to: &str| HostOverride {
            from: from.to_owned(),
            to: to.to_owned(),
        };
        let overrides = [
            over("shard-1:6443", "kcp.example.org:443"),
            over("b:1", "c:2"),
            over("shard:443", "kcp.example.org:8443"),
            over("plain:80", "kcp.example.org:8080"),
            over("[fd00::1]:443", "[fd00::2]:443"),
        ];
        for (url, expected) in [
            (
                "https://shard-1:6443/services/apiexport/a/b",
                "https://kcp.example.org:443/services/apiexport/a/b",
            ),
            ("https://SHARD-1:6443", "https://kcp.example.org:443"),
            ("https://shard-1:6444/x", "https://shard-1:6444/x"),
            ("https://b:1/shard-1:6443", "https://c:2/shard-1:6443"),
            // Without a port it is that of the scheme.
            ("https://shard/services/a", "https://kcp.example.org:8443/services/a"),
            ("https://shard:443", "https://kcp.example.org:8443"),
            ("http://plain", "http://kcp.example.org:8080"),
            ("http://shard", "http://shard"),
            ("https://plain", "https://plain"),
            ("https://[fd00::1]/a", "https://[fd00::2]:443/a"),
            ("https://[fd00::1]:443", "https://[fd00::2]:443"),
            ("no url", "no url"),
        ] {
            assert_eq!(reached(url, &overrides), expected);
        }
    }
}
