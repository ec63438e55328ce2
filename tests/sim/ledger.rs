//! The checker's own record of a run: what each side ever held, what the syncer was told, what it did; and the promises
//! that are checked the moment something happens.
//!
//! Nothing here knows the syncer's state. The truth is what the stores held.

use std::collections::BTreeMap;
use std::time::Duration;

use edge_syncer::cluster::Side;
use serde_json::Value;
use tokio::time::Instant;

use super::converged;
use super::request::{Ask, Verb};
use super::store::{Change, Key};
use super::trace::Trace;
use super::types::Type;

/// How old a proof of absence may be when the delete that rests on it takes effect: a reply and the requests between
/// take at most 30 s each. Counted on the syncer's clock, which stands still when the machine is suspended.
const PROOF_AGE: Duration = Duration::from_secs(180);

/// Requests in a run. One that has more is in a loop.
const MOST_REQUESTS: u64 = 60_000;

/// One flow of objects, and how its copies say that they are copies. Upsync will be another one.
pub struct Flow {
    /// Where the objects are from.
    pub from: Side,
    /// Where the copies are.
    pub to: Side,
    /// The ownership annotation, and the label that selects copies.
    pub mark: &'static str,
    /// The annotation of a copy that was there before.
    pub adopted: &'static str,
}

/// Hub to edge.
pub const DOWNSYNC: Flow = Flow {
    from: Side::Hub,
    to: Side::Edge,
    mark: "edge.kubestellar.io/downsynced",
    adopted: "edge.kubestellar.io/adopted",
};

/// Every flow there is.
pub const FLOWS: [Flow; 1] = [DOWNSYNC];

impl Flow {
    /// True if `object` carries the exact ownership value of its own identity.
    pub fn owns(&self, object: &Value) -> bool {
        let meta = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let exact = format!(
            "{}/{}/{}",
            text(&object["kind"]),
            text(&meta["namespace"]),
            text(&meta["name"])
        );
        meta["annotations"][self.mark] == exact
    }

    /// True if a copy was there before.
    pub fn is_adopted(&self, object: &Value) -> bool {
        object["metadata"]["annotations"][self.adopted] == "true"
    }
}

/// Names of edge objects that have nothing to do with the hub.
pub const BYSTANDER: &str = "bystander";

/// Names of objects of which there are many.
pub const MASS: &str = "many";
/// So many of a mass may go before it is seen to be one: when they go one by one, half of all copies, of which there are
/// some 80, and what workers have at that moment.
const MOST_OF_MASS: usize = 44;

/// The one object that the syncer writes for itself.
pub const RECORD: &str = "edge-syncer-types";

/// The field manager of status return.
const STATUS_MANAGER: &str = "edge-syncer-status";

/// A write of the syncer that has taken effect.
pub struct Write<'a> {
    /// Which syncer.
    pub process: u32,
    /// Where.
    pub side: Side,
    /// What it asked for.
    pub ask: &'a Ask,
    /// The type of the object.
    pub ty: &'a Type,
    /// What it was.
    pub before: Option<&'a Value>,
    /// What it is.
    pub after: Option<&'a Value>,
    /// The origins' side serves the type.
    pub origin_type_served: bool,
}

/// How many requests there were, by side and verb.
pub type Counts = BTreeMap<(Side, Verb), u64>;

/// See the module's doc.
pub struct Ledger {
    /// What happened.
    pub trace: Trace,
    /// Promises that were broken, with the objects they are about.
    pub broken: Vec<(String, Vec<String>)>,
    requests: u64,
    /// Requests so far, by side and verb.
    pub counts: Counts,
    /// Requests about one object so far.
    pub about: BTreeMap<Key, u64>,
    /// Time that the machine was suspended.
    pub suspended: Duration,
    start: Instant,
    /// Since when each object exists, or since when it does not, on the syncer's clock.
    existence: BTreeMap<(Side, Key), (Duration, bool)>,
    /// When a side last told a process that an object is not there, truthfully.
    proofs: BTreeMap<(u32, Side, Key), Duration>,
    /// What any config ever asked for.
    specs: Vec<Value>,
    /// Origins that a disaster took, whose copies are to stay until people confirm that they may go.
    pub lost: BTreeMap<Key, &'static str>,
    /// Until when deletes of a mass are held, and how many of it have gone.
    pub mass: Option<(Instant, usize)>,
    /// Configs are marked with the time.
    pub heartbeat: bool,
    /// Requests about one object that are under way, by process.
    in_flight: BTreeMap<u32, usize>,
    /// The most of them that a process may have.
    pub most_in_flight: usize,
}

impl Ledger {
    /// An empty ledger.
    pub fn new() -> Self {
        Self {
            trace: Trace::new(),
            broken: Vec::new(),
            requests: 0,
            counts: Counts::new(),
            about: BTreeMap::new(),
            suspended: Duration::ZERO,
            start: Instant::now(),
            existence: BTreeMap::new(),
            proofs: BTreeMap::new(),
            specs: Vec::new(),
            lost: BTreeMap::new(),
            mass: None,
            heartbeat: false,
            in_flight: BTreeMap::new(),
            most_in_flight: usize::MAX,
        }
    }

    /// The syncer's clock.
    fn clock(&self) -> Duration {
        self.start.elapsed().saturating_sub(self.suspended)
    }

    /// A promise is broken.
    pub fn break_promise(&mut self, what: String, about: &[&Key]) {
        self.trace.add(format!("BROKEN: {what}"));
        let about = about
            .iter()
            .map(|key| format!("{}/{}", key.namespace, key.name))
            .collect();
        self.broken.push((what, about));
    }

    /// A request begins. False if there have been so many that the run has to end.
    pub fn begins(&mut self, process: u32, side: Side, ask: &Ask) -> bool {
        self.requests += 1;
        if self.requests > MOST_REQUESTS {
            if self.requests == MOST_REQUESTS + 1 {
                let about = if ask.target.name.is_empty() {
                    None
                } else {
                    Some(key_of(ask))
                };
                self.break_promise(
                    format!("more than {MOST_REQUESTS} requests, now {ask}"),
                    about.as_ref().as_slice(),
                );
            }
            return false;
        }
        self.note_request(process, side, ask);
        true
    }

    fn note_request(&mut self, process: u32, side: Side, ask: &Ask) {
        *self.counts.entry((side, ask.verb)).or_default() += 1;
        if ask.target.name.is_empty() {
            return;
        }
        let key = key_of(ask);
        *self.about.entry(key).or_default() += 1;
        let in_flight = self.in_flight.entry(process).or_default();
        *in_flight += 1;
        if *in_flight > self.most_in_flight {
            let what = format!("{in_flight} requests in flight, {} allowed", self.most_in_flight);
            self.break_promise(what, &[]);
        }
    }

    /// A request is over, answered or not.
    pub fn ends(&mut self, process: u32, about_object: bool) {
        if about_object && let Some(in_flight) = self.in_flight.get_mut(&process) {
            *in_flight -= 1;
        }
    }

    /// A side has changed.
    pub fn changed(&mut self, side: Side, change: &Change) {
        if let Some(config) = change.after.as_ref().filter(|_| converged::is_config(&change.key))
            && !self.specs.contains(&config["spec"])
        {
            self.specs.push(config["spec"].clone());
        }
        let exists = change.after.is_some();
        if exists && side == Side::Hub {
            self.lost.remove(&change.key);
        }
        let now = self.clock();
        let entry = self
            .existence
            .entry((side, change.key.clone()))
            .or_insert((now, exists));
        if entry.1 != exists {
            *entry = (now, exists);
        }
    }

    /// A side has told a process that an object is not there, and it is not.
    pub fn proved_absent(&mut self, process: u32, side: Side, key: Key) {
        let now = self.clock();
        self.proofs.insert((process, side, key), now);
    }

    /// The syncer has changed an object.
    pub fn syncer_wrote(&mut self, write: &Write<'_>) {
        let &Write { side, ask, before, .. } = write;
        let key = key_of(ask);
        if &*key.name == RECORD {
            return;
        }
        if key.name.starts_with(BYSTANDER) {
            self.break_promise(format!("wrote {key}, which is none of its business"), &[&key]);
        }
        if side == Side::Hub && ask.asked("fieldManager") == STATUS_MANAGER {
            self.check_status(write, &key);
            return;
        }
        if side == Side::Hub && self.heartbeat && converged::is_config(&key) {
            if rest(before) != rest(write.after) {
                self.break_promise(format!("wrote more than the status of {key}"), &[&key]);
            }
            return;
        }
        let Some(flow) = FLOWS.iter().find(|flow| flow.to == side) else {
            self.break_promise(
                format!("wrote {key} at the {side}, where nothing is to be written"),
                &[&key],
            );
            return;
        };
        let Some(before) = before.filter(|_| ask.verb == Verb::Delete) else {
            return;
        };
        if !flow.owns(before) {
            self.break_promise(format!("deleted {key}, which it does not own"), &[&key]);
        }
        if flow.is_adopted(before) {
            self.break_promise(format!("deleted {key}, which was there before"), &[&key]);
        }
        self.check_proof(write.process, flow, &key, write.origin_type_served);
    }

    /// A status was returned to the hub: to an object that some config has selected, and nothing else was changed.
    fn check_status(&mut self, write: &Write<'_>, key: &Key) {
        let operations: Value = serde_json::from_slice(&write.ask.body).unwrap_or_default();
        let is_status = |one: &Value| one["op"] == "add" && one["path"] == "/status";
        let status_alone = operations
            .as_array()
            .is_some_and(|all| all.len() == 1 && is_status(&all[0]));
        if write.ask.verb != Verb::JsonPatch || !status_alone || rest(write.before) != rest(write.after) {
            self.break_promise(format!("wrote more than the status of {key}"), &[key]);
        }
        if write.ty.is_namespace() || write.ty.is_definition() {
            self.break_promise(format!("wrote the status of {key}, which is the hub's own"), &[key]);
        }
        if !converged::is_selected(&self.specs, write.ty, key) {
            self.break_promise(
                format!("wrote the status of {key}, which nothing ever selected"),
                &[key],
            );
        }
    }

    fn check_proof(&mut self, process: u32, flow: &Flow, key: &Key, origin_type_served: bool) {
        let now = self.clock();
        let recent = |at: Duration| now.saturating_sub(at) <= PROOF_AGE;
        if let Some(&(since, true)) = self.existence.get(&(flow.from, key.clone()))
            && !recent(since)
        {
            let what = format!(
                "deleted {key}, whose origin has existed for {:?}",
                now.saturating_sub(since)
            );
            self.break_promise(what, &[key]);
            return;
        }
        if let Some(why) = self.lost.get(key) {
            self.break_promise(format!("deleted {key} although {why}"), &[key]);
        }
        if let Some((until, gone)) = &mut self.mass
            && key.name.starts_with(MASS)
            && Instant::now() < *until
        {
            *gone += 1;
            if *gone > MOST_OF_MASS {
                self.break_promise(format!("deleted {key}, one of many at once"), &[key]);
            }
        }
        let told = self.proofs.get(&(process, flow.from, key.clone()));
        let told = told.is_some_and(|&at| recent(at));
        if !told && origin_type_served {
            self.break_promise(format!("deleted {key} without a proof that its origin is gone"), &[key]);
        }
    }

    /// Requests so far that `which` picks.
    pub fn count(&self, which: impl Fn(Side, Verb) -> bool) -> u64 {
        let picked = self.counts.iter().filter(|&(&(side, verb), _)| which(side, verb));
        picked.map(|(_, count)| count).sum()
    }
}

/// An object without its status and what the server keeps for itself.
fn rest(object: Option<&Value>) -> Value {
    let mut object = object.cloned().unwrap_or_default();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.retain(|key, _| !matches!(key.as_str(), "resourceVersion" | "managedFields" | "generation"));
    }
    object
}

/// The object that a request is about.
pub fn key_of(ask: &Ask) -> Key {
    Key::new(&ask.target.qualified(), &ask.target.namespace, &ask.target.name)
}
