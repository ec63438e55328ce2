//! One pass over an object in a workspace and its copy on the service cluster: as many steps as it takes until both are in
//! sync, or something has to be waited for.
//!
//! ```text
//! primary ──► finalizer ──► mutations ──► copy ──► state ──► status back
//!         └─► deleted: the copy first, then the finalizer
//! ```
//!
//! Promises: a copy is deleted only when its primary is being deleted, and only the one with its UID; an object that is the
//! copy of another primary is never touched; what others change in a copy stays unless the primary changes it too; every
//! write names what it has read.

mod clearing;
mod course;
mod creating;
mod deletion;
mod known;
mod large;
mod letting_go;
mod locating;
mod placing;
mod pointing;
mod reading;
mod records;
mod recovering;
mod related;
mod returning;
mod state;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use kube_lite::{Cluster, Content, Error, ObjectName, ResourceType, without_values};
use serde_json::Value;

pub(crate) use self::clearing::{Cleared, clear};
pub(crate) use self::known::Known;
use self::large::Large;
use self::letting_go::Belonging;
use self::reading::unread;
use self::records::{ACCEPTED, SYNCED};
use self::state::States;
use crate::apply;
use crate::copy::{self, Marks, Terms};
use crate::kcp::{self, parsed};
use crate::keys::ObjectKey;
use crate::lifecycle::{self, Propagation};
use crate::mutation::RuleError;
use crate::route::Route;
use crate::sides::{Primary, Side};
use crate::trouble::Stop;
use crate::turn::{AtHand, Copied, FoundUses, Last, Turn, Use};
use driver::events::Record;

/// What is to be done with an object.
pub(crate) struct Job {
    pub(crate) route: Rc<Route>,
    /// The name of the agent.
    pub(crate) agent: Rc<str>,
    /// Where the states are.
    pub(crate) namespace: Rc<str>,
    /// Whether what is written on the service cluster is applied.
    pub(crate) applies: bool,
    /// What need not be read.
    pub(crate) at_hand: Option<AtHand>,
    /// What is known of it.
    pub(crate) turn: Turn,
}

/// How far an object has come.
pub(crate) enum Settled {
    /// It is not there, or the agent has let it go.
    Gone,
    /// It is not to be synced, and was not.
    Filtered,
    /// It is being deleted, and does not wait for the agent.
    LeftToOthers,
    /// Something has to be waited for, of which there will be news.
    Waits,
    /// The same, without news.
    Later,
    /// It is in sync with this copy.
    Done(Last, Copied),
}

/// What comes of a pass.
pub(crate) struct Synced {
    /// How far it has come.
    pub(crate) result: Result<Settled, Stop>,
    /// What has happened, for people.
    pub(crate) records: Vec<Record>,
    /// What belongs to it, if that is known.
    pub(crate) uses: Option<FoundUses>,
    /// Namespaces of the service cluster in which something that belonged to it is no longer.
    pub(crate) left: BTreeSet<Rc<str>>,
    /// The version of the object that this is about.
    pub(crate) version: u64,
    /// Its UID, if it was read.
    pub(crate) uid: String,
}

/// What to do about a rule that fails.
const RULES: &str = "correct the PublishedResource, or the object; it is tried at once when either changes";

/// What an object and its copy are when it is their turn.
struct Pass<'a> {
    job: &'a Job,
    route: &'a Route,
    primary: &'a Primary,
    shard: &'a Rc<Cluster>,
    service: &'a Rc<Cluster>,
    key: ObjectKey,
    /// The label of what comes to the service cluster with it.
    label: String,
    now: SystemTime,
    records: RefCell<Vec<Record>>,
    /// What belongs to it, once that is known.
    uses: RefCell<Option<FoundUses>>,
    /// What is written down of that, once it is read.
    book: RefCell<Option<BTreeSet<Belonging>>>,
    /// The last states.
    states: States,
    /// Origins of several objects at the other end.
    several: RefCell<BTreeSet<Use>>,
    /// Namespaces of the service cluster in which something that belonged to it is no longer.
    left: RefCell<BTreeSet<Rc<str>>>,
    /// The copy of another agent, whose object may be in another kcp.
    others: RefCell<Option<ObjectName>>,
    /// It had a turn before, of this agent or another one.
    is_known: Cell<bool>,
    /// It is being deleted, or gone.
    is_ending: Cell<bool>,
    /// Something that belongs to it is not gone yet.
    waits: Cell<bool>,
    /// The version of the object: as it was read, or written under the condition that it was still that.
    version: Cell<u64>,
    /// Its UID, once it is read.
    uid: RefCell<String>,
    known: &'a Known,
    large: Rc<Large<'a>>,
}

/// Brings an object and its copy in sync.
pub(crate) async fn pass(
    job: &Job,
    primary: &Primary,
    shard: &Rc<Cluster>,
    service: &Rc<Cluster>,
    known: &Known,
    clock: fn() -> Duration,
) -> Synced {
    let key = ObjectKey {
        cluster: primary.name.workspace().to_owned(),
        workspace_path: None,
        namespace: primary.name.namespace().to_owned(),
        name: primary.name.name.to_string(),
    };
    let large = Rc::new(Large::new(known.limits(), primary.name.workspace()));
    let mut pass = Pass {
        job,
        route: &job.route,
        primary,
        shard,
        service,
        label: key.related_label(&job.route.remote().group, &job.route.remote().kind),
        key,
        now: SystemTime::UNIX_EPOCH + clock(),
        records: RefCell::default(),
        uses: RefCell::default(),
        book: RefCell::default(),
        states: States::default(),
        several: RefCell::default(),
        left: RefCell::default(),
        others: RefCell::default(),
        is_known: Cell::default(),
        is_ending: Cell::default(),
        waits: Cell::default(),
        version: Cell::default(),
        uid: RefCell::default(),
        known,
        large: Rc::clone(&large),
    };
    let result = tokio::select! {
        result = pass.all() => result,
        stop = large.has_had_its_time() => Err(stop),
    };
    // What was written to copies was, whatever has failed.
    let written = match &result {
        Err(Stop::Unreachable(Side::Service, _)) => Ok(()),
        _ => pass.write_states().await,
    };
    let result = match result.and_then(|settled| written.map(|()| settled)) {
        // Its end is no news to anybody.
        Ok(Settled::Done(..)) if pass.waits.get() => Ok(Settled::Later),
        other => other,
    };
    Synced {
        result,
        records: pass.records.into_inner(),
        uses: pass.uses.into_inner(),
        left: pass.left.into_inner(),
        version: pass.version.get(),
        uid: pass.uid.into_inner(),
    }
}

impl Pass<'_> {
    /// True if the filter of the PublishedResource lets it through.
    async fn is_wanted(&self, object: &Value) -> Result<bool, Stop> {
        let filter = &self.route.resource.filter;
        let namespace = match (&filter.namespace, self.primary.name.namespace()) {
            (Some(_), namespace) if !namespace.is_empty() => {
                let name = ObjectName::in_workspace(self.primary.name.workspace(), "", namespace);
                let found = self
                    .shard
                    .get(&ResourceType::namespaces(), &name, Content::Metadata)
                    .await;
                let stop = |error| Stop::of(self.primary.shard(), "reading the namespace", namespace, error);
                Some(found.and_then(|found| parsed::<Value>(&found)).map_err(stop)?)
            }
            _ => None,
        };
        Ok(filter.matches(object, namespace.as_ref()))
    }

    async fn workspace_path(&self) -> Result<String, Stop> {
        let workspace = self.primary.name.workspace();
        if let Some(known) = self.known.path(workspace) {
            return Ok(known);
        }
        let name = ObjectName::in_workspace(self.primary.name.workspace(), "", "cluster");
        let found = self.shard.get(&kcp::logical_clusters(), &name, Content::Metadata).await;
        let stop = |error| Stop::of(self.primary.shard(), "reading the path of the workspace", "", error);
        let found = found.and_then(|found| parsed::<Value>(&found)).map_err(stop)?;
        let Some(path) = found["metadata"]["annotations"][kcp::PATH].as_str() else {
            let words = "the LogicalCluster of the workspace has no annotation kcp.io/path";
            let doing = "reading the path of the workspace";
            return Err(Stop::because(doing, words, "it is tried again"));
        };
        self.known.is_path(workspace, path);
        Ok(path.to_owned())
    }

    /// A request for the object has failed. One that is gone by now is read again.
    fn stop_of_primary(&self, doing: &'static str, error: Error) -> Stop {
        if error.proves_absent(&self.primary.name.name) {
            return Stop::again(doing);
        }
        Stop::of_primary(self.primary.shard(), doing, error)
    }

    /// The object has our finalizer from now on, so that it does not go without its copy.
    async fn accept(&self, object: &Value) -> Result<Value, Stop> {
        let Some(patch) = lifecycle::add_finalizer(object) else {
            return Ok(object.clone());
        };
        let body = Bytes::from(patch.to_string());
        let written = self
            .shard
            .merge_patch(self.route.remote(), &self.primary.name, body)
            .await;
        let stop = |error| self.stop_of_primary("adding the finalizer", error);
        let object = written.and_then(|object| parsed::<Value>(&object)).map_err(stop)?;
        self.version.set(version_of(&object));
        self.record(&object, ACCEPTED);
        Ok(object)
    }

    /// The copy gets what the object has changed.
    async fn update(&self, object: &Value, (wanted, kept): (&Value, &Value), copy: Value) -> Result<Value, Stop> {
        let key = self.own_state();
        let last = self.state(&key).await?;
        let local = self.route.local();
        let name = name_of(&copy);
        let stop = |error| Stop::of_content(Side::Service, "updating the copy", format!("{name:?}"), error);
        let terms = self.terms();
        let service = (Side::Service, &**self.service);
        let written = self.write(service, local, &name, (wanted, &copy), last.as_ref(), &terms);
        let copy = match written.await.map_err(stop)? {
            None => copy,
            Some(copy) => {
                self.record(object, SYNCED);
                copy
            }
        };
        self.keep(&key.own, kept);
        Ok(copy)
    }

    /// Writes to an object what is wanted: the changes since the last state, or all of it where that is not known. Gives it
    /// as it is then; `None` if there was nothing to write.
    async fn write(
        &self,
        (side, server): (Side, &Cluster),
        resource: &ResourceType,
        name: &ObjectName,
        (wanted, found): (&Value, &Value),
        last: Option<&Value>,
        terms: &Terms<'_>,
    ) -> Result<Option<Value>, Error> {
        let patch = last.map(|last| copy::patch(last, wanted, found, terms, &self.key));
        let written = match patch {
            Some(None) => return Ok(None),
            patch if self.job.applies && side == Side::Service => {
                let manager = apply::manager(&self.job.agent);
                let emptied = patch.flatten().and_then(|patch| apply::emptied(wanted, &patch));
                for patch in apply::take_over(found, &manager).into_iter().chain(emptied) {
                    server.merge_patch(resource, name, patch.to_string().into()).await?;
                }
                let body = apply::body(wanted, found, terms, &self.key).to_string();
                let applied = server.apply(resource, name, body.into(), Content::Full).await;
                applied.map(|(object, _)| object)
            }
            Some(Some(patch)) if copy::has_null(wanted) => {
                let whole = copy::merged(&patch, wanted, found);
                server
                    .replace(resource, name, whole.to_string().into(), Content::Full)
                    .await
            }
            Some(Some(mut patch)) => {
                patch["metadata"]["uid"] = found["metadata"]["uid"].clone();
                server.merge_patch(resource, name, patch.to_string().into()).await
            }
            None => {
                let whole = copy::replace(wanted, found, terms, &self.key);
                if whole == *found {
                    return Ok(None);
                }
                server
                    .replace(resource, name, whole.to_string().into(), Content::Full)
                    .await
            }
        };
        parsed(&written?).map(Some)
    }

    /// The object as it is wanted on the service cluster.
    fn mutated(&self, object: &Value, copy: &Value) -> Result<Value, Stop> {
        let mutated = self.route.rules.spec(object.clone(), copy, self.now);
        let mutated = mutated.map_err(|error| self.rule_fails(&error, object))?;
        if lifecycle::lets_in(self.route.local(), &mutated) {
            let words = "it has the type of a token, which would let somebody in";
            return Err(Stop::because("syncing a Secret", words, related::TOKEN));
        }
        Ok(mutated)
    }

    fn rule_fails(&self, error: &RuleError, object: &Value) -> Stop {
        let words = covered(self.route.local(), &error.to_string(), object);
        Stop::because("applying spec.mutation", words, RULES)
    }

    /// Both are in sync.
    fn done(&self, state: u64, copy: &Value) -> Settled {
        let last = Last {
            uid: self.uid.borrow().as_str().into(),
            state,
            status: hash_of(&copy["status"]),
        };
        Settled::Done(last, copied(copy))
    }

    /// What is the same for all objects of the type.
    fn terms(&self) -> Terms<'_> {
        Terms {
            marks: Marks::Primary(&self.job.agent),
            subresources: self.subresources(),
        }
    }

    /// What is no part of the desired state.
    fn subresources(&self) -> &'static [&'static str] {
        match self.route.served.has_status {
            [_, true] => &copy::SUBRESOURCES,
            [_, false] => &[],
        }
    }
}

/// Deletes just the object that was read. It may be gone already.
async fn delete(
    server: &Cluster,
    resource: &ResourceType,
    name: &ObjectName,
    found: &Value,
    propagation: Propagation,
) -> Result<(), Error> {
    let Some(options) = lifecycle::delete_options(found, propagation) else {
        return Err(Error::BadAnswer(format!("{name:?} has no UID")));
    };
    match server
        .delete_with(resource, name, Bytes::from(options.to_string()))
        .await
    {
        Err(error) if !error.proves_absent(&name.name) => Err(error),
        _ => Ok(()),
    }
}

/// Words about an object. Nothing that a Secret holds is said.
fn covered(resource: &ResourceType, words: &str, object: &Value) -> String {
    if resource.is("", "secrets") {
        without_values(words, object.to_string().as_bytes())
    } else {
        words.to_owned()
    }
}

fn name_of(object: &Value) -> ObjectName {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    ObjectName::new(text("namespace"), text("name"))
}

fn copied(copy: &Value) -> Copied {
    Copied {
        name: name_of(copy),
        version: version_of(copy),
    }
}

/// The version of an object as a number; 0 if it is none.
fn version_of(object: &Value) -> u64 {
    let version = object["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    version.parse().unwrap_or_default()
}

/// A value in a few bits, to see whether it is the same as before in this process.
fn hash_of(state: &Value) -> u64 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    state.to_string().hash(&mut hasher);
    hasher.finish()
}
