//! What is done in a workspace that waits: what its targets want is created there, and then their initializer is taken
//! off it.
//!
//! Promises: what is there already is never changed; nothing is created after a failure; a source that has to wait keeps
//! no other one waiting; a template is read once for each run; what is known of the kinds in one workspace is used for no
//! other one; while a workspace waits, no more is asked for than what it waits for, and what is known to be there is not
//! created again each time, but it is before it is let go.

mod create;
mod mapping;
mod release;
pub(crate) mod tell;
mod trouble;

use std::collections::BTreeMap;
use std::rc::Rc;

use driver::logger;
use kube_lite::{Cluster, Content, Error, ObjectName};

use self::create::{Awaited, Creating};
use self::mapping::Kind;
pub(crate) use self::release::{Released, release};
pub(crate) use self::trouble::{Trouble, Why};
use crate::kcp::{self, LogicalCluster, parsed};
use crate::kinds::{InitTarget, InitTemplate};
use crate::objects::{self, Data, SourceError};
use crate::sides::{Key, Side};

/// What is in a workspace, by hashes of what was sent; with its name, if the server has made that.
pub(crate) type Made = BTreeMap<u64, Box<str>>;

/// What a workspace is to get.
pub(crate) struct Job {
    /// The initializer that it waits for.
    pub(crate) initializer: Rc<str>,
    /// The targets that this stands for, in their order.
    pub(crate) targets: Rc<[Rc<InitTarget>]>,
    /// How far it has come.
    pub(crate) so_far: Rc<SoFar>,
    /// All of it is to be done, whether or not the workspace still lacks what it has lacked.
    pub(crate) is_whole: bool,
}

/// How far a workspace has come that waits for something.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SoFar {
    /// Its path.
    pub(crate) path: String,
    /// What it has got.
    pub(crate) made: Made,
    /// What each source that has to wait waits for.
    pub(crate) lacks: Vec<Lack>,
    /// The first of that, for people.
    pub(crate) trouble: Option<Trouble>,
}

/// What others make, and a source waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// A kind is not served.
    Kind(Kind),
    /// An object has not got its condition.
    Ready(Awaited),
}

/// How far a workspace has come.
pub(crate) struct Filled {
    /// Its path; empty if it was not found.
    pub(crate) path: String,
    /// How many objects were created.
    pub(crate) created: usize,
    /// What is to be done next.
    pub(crate) outcome: Outcome,
}

/// What is to be done with a workspace next.
pub(crate) enum Outcome {
    /// Nothing: it does not wait for this initializer.
    Gone,
    /// All is there. The initializer stands at this place of its list.
    Complete(usize),
    /// Something that others make is missing.
    Waits(Rc<SoFar>),
    /// Something has failed.
    Fails(Trouble),
    /// A side did not answer.
    Unreachable(Side, Error),
}

/// Why a run ends early.
enum Stop {
    Fails(Trouble),
    Unreachable(Side, Error),
}

impl Stop {
    /// A request to a side has failed.
    fn of(side: Side, error: Error, trouble: impl FnOnce(Error) -> Trouble) -> Self {
        if error.is_unreachable() {
            Self::Unreachable(side, error)
        } else {
            Self::Fails(trouble(error))
        }
    }
}

/// Creates what a workspace is to get, as far as that is possible now.
pub(crate) async fn fill(job: &Job, key: &Key, shard: &Cluster, config: &Cluster) -> Filled {
    let mut creating = Creating::new(key, shard, job.so_far.made.clone());
    if !job.is_whole && creating.still_lacks(&job.so_far).await {
        return Filled {
            path: job.so_far.path.clone(),
            created: 0,
            outcome: Outcome::Waits(Rc::clone(&job.so_far)),
        };
    }
    let found = match find(key, shard).await {
        Ok(found) => found.and_then(|found| Some((found.waits_for(&job.initializer)?, found))),
        Err(error) => {
            let stop = Stop::of(key.shard, error, |error| Trouble::of_workspace(Why::Refused(error)));
            return Filled::stopped(String::new(), 0, stop);
        }
    };
    let Some((place, found)) = found else {
        return Filled {
            path: String::new(),
            created: 0,
            outcome: Outcome::Gone,
        };
    };
    let Some(path) = found.path() else {
        let stop = Stop::Fails(Trouble::of_workspace(Why::NoPath));
        return Filled::stopped(String::new(), 0, stop);
    };
    let mut run = Run {
        data: Data {
            cluster_name: key.cluster.to_string(),
            cluster_path: path.to_owned(),
        },
        config,
        templates: BTreeMap::new(),
        creating,
        so_far: SoFar::default(),
    };
    let mut stopped = run.all(&job.targets).await;
    if stopped.is_ok() && run.so_far.lacks.is_empty() && run.creating.has_skipped {
        // What was there when it was looked for last may be gone by now.
        run.creating.forget();
        stopped = run.all(&job.targets).await;
    }
    let (path, created) = (path.to_owned(), run.creating.created);
    let outcome = match stopped {
        Err(stop) => return Filled::stopped(path, created, stop),
        Ok(()) if run.so_far.lacks.is_empty() => Outcome::Complete(place),
        Ok(()) => Outcome::Waits(Rc::new(SoFar {
            path: path.clone(),
            made: run.creating.made,
            ..run.so_far
        })),
    };
    Filled { path, created, outcome }
}

impl Filled {
    fn stopped(path: String, created: usize, stop: Stop) -> Self {
        let outcome = match stop {
            Stop::Fails(trouble) => Outcome::Fails(trouble),
            Stop::Unreachable(side, error) => Outcome::Unreachable(side, error),
        };
        Self { path, created, outcome }
    }
}

/// The workspace as it is now, if it is there.
async fn find(key: &Key, shard: &Cluster) -> Result<Option<LogicalCluster>, Error> {
    let name = kcp::logical_cluster(&key.cluster);
    match shard.get(&kcp::logical_clusters(), &name, Content::Full).await {
        Ok(object) => parsed(&object).map(Some),
        Err(error) if error.proves_absent(&name.name) => Ok(None),
        Err(error) => Err(error),
    }
}

/// One run over a workspace.
struct Run<'a> {
    data: Data,
    config: &'a Cluster,
    /// Those that were read, by their targets' workspace and their names.
    templates: BTreeMap<ObjectName, Option<InitTemplate>>,
    creating: Creating<'a>,
    /// What sources wait for.
    so_far: SoFar,
}

impl Run<'_> {
    async fn all(&mut self, targets: &[Rc<InitTarget>]) -> Result<(), Stop> {
        for target in targets {
            for index in 0..target.spec.sources.len() {
                self.source(target, index).await?;
            }
        }
        Ok(())
    }

    async fn source(&mut self, target: &InitTarget, index: usize) -> Result<(), Stop> {
        let at = |why: Why| Trouble::of_source(target, index, why);
        let template = match &target.spec.sources[index].template {
            None => None,
            Some(template) => {
                let name = template_name(target, &template.name);
                let read = self.read(&name).await;
                read.map_err(|error| {
                    Stop::of(Side::Config, error, |error| {
                        at(Why::Template(template.name.clone(), error))
                    })
                })?;
                self.templates.get(&name).and_then(Option::as_ref)
            }
        };
        let rendered = objects::of_source(target, index, |_| template, &self.data, logger::now());
        let objects = rendered.map_err(|error| Stop::Fails(at(Why::Source(error))))?;
        let waits = self.creating.all(target, index, objects).await;
        let waits = waits.map_err(|stop| match stop {
            Stop::Fails(trouble) => Stop::Fails(trouble.at_source(target, index)),
            stop @ Stop::Unreachable(..) => stop,
        })?;
        if let Some((trouble, lack)) = waits {
            self.so_far.trouble.get_or_insert(trouble.at_source(target, index));
            self.so_far.lacks.push(lack);
        }
        Ok(())
    }

    /// Reads a template, unless that was done in this run.
    async fn read(&mut self, name: &ObjectName) -> Result<(), Error> {
        if self.templates.contains_key(name) {
            return Ok(());
        }
        let found = read_template(name, self.config).await?;
        self.templates.insert(name.clone(), found);
        Ok(())
    }
}

/// A template as it is now, if it is there.
pub(crate) async fn read_template(name: &ObjectName, config: &Cluster) -> Result<Option<InitTemplate>, Error> {
    match config.get(&kcp::init_templates(), name, Content::Full).await {
        Ok(object) => parsed(&object).map(Some),
        Err(error) if error.proves_absent(&name.name) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The name of a template in a target's workspace.
pub(crate) fn template_name(target: &InitTarget, template: &str) -> ObjectName {
    ObjectName::in_workspace(target.metadata.cluster().unwrap_or_default(), "", template)
}

impl From<SourceError> for Why {
    fn from(error: SourceError) -> Self {
        Self::Source(error)
    }
}
