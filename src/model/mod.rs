//! The model: what is known of both sides, what follows from it, and what is to be done next. Plain data: it waits for
//! nothing, talks to nobody, and has neither a clock nor a source of randomness. The shell ([`driver`]) gives it
//! what happens ([`Event`]), the time, and the contact with both sides ([`Moment`]); it answers with what is to be done
//! ([`Effect`]) and when to be woken ([`Role::next_due`]).
//!
//! Configs and discovery make the plan ([`replan`]); the plan starts and stops sources; what sources report is compared
//! with the inventory ([`inventory`]) and puts keys into the queue; workers get keys, sync the object and return an
//! outcome ([`work`]).
//!
//! Back-pressure: origins are taken in only while the bodies that wait for a worker are within [`PAYLOAD_BYTES`] and the
//! queue has room ([`Role::has_room`]). Copies and configs always are, so a full queue does not delay news of them,
//! and it always drains. What finds no room is taken from the inventory later: every reason to queue a key can be seen
//! there ([`Inventory::out_of_sync`]).

mod answers;
mod asking;
mod config_counts;
mod config_kind;
mod config_status;
mod configs;
mod contention;
mod count;
mod crds;
mod definitions;
mod deselections;
mod drift;
pub(crate) mod dry_run;
mod edge_object;
pub(crate) mod effect;
mod ends;
pub(crate) mod events;
mod feeds;
mod finished;
mod guard;
mod handler;
mod heartbeat;
mod hub_namespaces;
mod identities;
mod inventory;
mod link_status;
mod news;
mod objects;
mod on_site;
mod one_cluster;
mod outcome;
mod pace;
mod queueing;
mod reachability;
mod read_all;
mod record;
mod replan;
mod reselect;
mod selected_namespaces;
mod sides;
mod sources;
mod status;
mod timers;
mod trust;
mod turns;
mod types;
mod unmatched;
mod without_copy;
mod work;
mod workers;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use driver::queue::{Payload, Queue, QueueKey};
use driver::source::{Mode, SourceId};
use driver::{self, Role};
use kube_lite::{ObjectName, Within};
use tokio::time::Instant;

use self::answers::Answered;
use self::config_status::ConfigStatuses;
use self::configs::SelectedConfigs;
use self::definitions::TypeDefinitionReads;
use self::deselections::Deselections;
use self::drift::Drifts;
use self::edge_object::EdgeObject;
use self::effect::{Answer, Done, Effect, Effects, Kept, Request};
pub use self::events::EventReason;
use self::events::Events;
use self::finished::FinishedJobs;
pub use self::guard::Limits;
use self::guard::{Guard, NewTokens};
use self::heartbeat::Heartbeat;
use self::hub_namespaces::KnownNamespaces;
use self::inventory::{Hashing, ListEpoch, ListEpochs};
use self::one_cluster::Clusters;
pub use self::one_cluster::OneCluster;
use self::record::Record;
pub use self::replan::PLAN_SLICE;
use self::selected_namespaces::SelectedNamespaces;
use self::sides::Sides;
use self::sources::{Feed, SourceState, Sources};
use self::timers::{Timer, Timers};
use self::types::TypeState;
use self::workers::Workers;
use crate::plan::Filter;
use crate::report::Report;
use crate::side::Side;
use crate::sync::definition::TypeDefinitions;
use crate::sync::job::Policy;
use crate::sync::object::Desired;
pub(crate) use driver::Course;

/// Bytes of objects that may wait for a worker: enough to keep all workers busy over a link with 300 ms of latency,
/// and little compared with the memory that the process needs anyway.
const PAYLOAD_BYTES: usize = 256 << 10;
/// Bytes of objects that workers may have before no more origins are taken in: more than one of the largest that etcd
/// stores, so that a single one that does not get through holds up nothing. Each takes several times its size, and large
/// ones are sent one after the other anyway.
const WORK_BYTES: usize = 2 << 20;

/// Numbers types through the life of the process.
pub(crate) type TypeId = u32;

/// All types that are synced, or of which copies are left.
type Types = BTreeMap<TypeId, TypeState>;

/// What has to be done for an object. Each is queued, tried and backed off by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Task {
    /// Sync the copy with its origin.
    Object,
    /// Bring the edge's status to the hub.
    Status,
}

/// What the queue holds: a task for one object of one type, by the name of its copy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    type_id: TypeId,
    task: Task,
    name: ObjectName,
}

/// What a worker is given with a key, so that it need not read it.
#[derive(Clone, Debug)]
pub(crate) enum AtHand {
    /// What the copy is to be.
    Desired(Rc<Desired>),
    /// The object whose status is to be returned.
    Edge(Bytes),
}

impl Payload for AtHand {
    fn bytes(&self) -> usize {
        match self {
            Self::Desired(desired) => desired.bytes(),
            Self::Edge(object) => object.len(),
        }
    }
}

impl QueueKey for Key {
    type Payload = AtHand;
    type Side = Side;
    type Group = TypeId;
    type Lot = (TypeId, Rc<Within>);

    fn lot(&self) -> Self::Lot {
        (self.type_id, Rc::clone(self.name.within()))
    }

    fn group(&self) -> TypeId {
        self.type_id
    }

    /// Both: an object is read at one side and written at the other.
    fn needs(&self) -> &[Side] {
        &[Side::Hub, Side::Edge]
    }
}

impl Key {
    fn new(type_id: TypeId, task: Task, name: ObjectName) -> Self {
        Self { type_id, task, name }
    }
}

/// What the model needs to know from the start. Cheap to clone.
#[derive(Clone)]
pub struct Settings {
    /// Whether the hub is watched, or how often it is polled.
    pub hub_mode: Mode,
    /// The same of the edge.
    pub edge_mode: Mode,
    /// The namespace that the syncer itself runs in, if it runs in one. It is never deleted.
    pub own_namespace: Option<String>,
    /// Requests in flight at once, apart from as many again that take long.
    pub workers: usize,
    /// Entries of the queue.
    pub queue_capacity: usize,
    /// What the edge's owner has chosen.
    pub policy: Rc<Policy>,
    /// What may be synced at all.
    pub filter: Rc<Filter>,
    /// The shortest time between two writes of one object's status to the hub.
    pub status_interval: Duration,
    /// The name of the sync target, for people.
    pub sync_target_name: String,
    /// The time between two heartbeats on the configs; none if absent.
    pub heartbeat: Option<Duration>,
    /// The time of the wall clock in RFC 3339, for people; nothing is decided by it.
    pub clock: fn() -> String,
    /// The same as the time since 1970: for people too, about credentials that end and clocks that differ.
    pub since_1970: fn() -> Duration,
    /// Who syncs, as the holder of the Lease is called.
    pub holder: String,
    /// The credentials of the hub are renewed.
    pub renews: bool,
    /// How many deletes at once are held, and for how long.
    pub delete_limits: Limits,
    /// Conversions are followed.
    pub renaming: bool,
    /// How many steps of the planning one turn of the loop takes.
    pub plan_slice: usize,
    /// Nothing is changed at either side: workers say what they would do.
    pub dry_run: bool,
}

impl Settings {
    /// What people call this edge: its name, or its UID if it has none.
    fn edge_name(&self) -> &str {
        match &*self.sync_target_name {
            "" => &self.policy.sync_target.uid,
            name => name,
        }
    }

    /// Whether a side is watched, or how often it is polled.
    pub(crate) fn mode(&self, side: Side) -> Mode {
        match side {
            Side::Hub => self.hub_mode,
            Side::Edge => self.edge_mode,
        }
    }
}

/// All state. See the module's doc.
pub(crate) struct Model {
    settings: Settings,
    now: Instant,
    sides: Sides,
    chance: fastrand::Rng,
    new_tokens: NewTokens,
    hashing: Hashing,
    effects: Effects,
    timers: Timers,
    selecting: SelectedConfigs,
    types: Types,
    next_type: TypeId,
    sources: Sources,
    next_source: SourceId,
    lists: ListEpochs,
    record: Record,
    finished: FinishedJobs,
    guard: Guard,
    /// What defines the types of the hub.
    definitions: Rc<TypeDefinitions>,
    definition_reads: TypeDefinitionReads,
    deselections: Deselections,
    hub_namespaces: KnownNamespaces,
    selected_namespaces: SelectedNamespaces,
    heartbeat: Heartbeat,
    statuses: ConfigStatuses,
    events: Events,
    drifts: Drifts,
    edge_object: EdgeObject,
    queue: Queue<Key>,
    workers: Workers,
    clusters: Clusters,
    /// Since when a delete that deletes others too has been waiting without a break.
    last_waits_since: Option<Instant>,
    report: Report,
    answered: Answered,
    /// What was last said of a dry run.
    said: dry_run::Said,
}

/// What wakes the model.
pub(crate) type Event = driver::Event<Answer>;

/// The moment in which something happens.
pub(crate) type Moment = driver::Moment<Side>;

impl Model {
    /// Knows nothing yet. All random numbers come from `seed`.
    pub(crate) fn new(settings: Settings, seed: u64, moment: Moment) -> Self {
        let queue = Queue::new(settings.queue_capacity);
        let workers = Workers::new(settings.workers);
        let clock = settings.clock;
        let mut sides = Sides::default();
        sides.meet(moment.contacts);
        let new_tokens = NewTokens::new(!seed, settings.dry_run);
        let edge_object = EdgeObject::new(&settings);
        Self {
            settings,
            now: moment.now,
            sides,
            chance: fastrand::Rng::with_seed(seed),
            new_tokens,
            hashing: Hashing::of_seed(seed),
            effects: Effects::default(),
            timers: Timers::default(),
            selecting: SelectedConfigs::default(),
            types: BTreeMap::new(),
            next_type: 0,
            sources: Sources::new(),
            next_source: 0,
            lists: ListEpochs::default(),
            record: Record::default(),
            finished: FinishedJobs::default(),
            guard: Guard::default(),
            definitions: Rc::default(),
            definition_reads: TypeDefinitionReads::default(),
            deselections: Deselections::default(),
            hub_namespaces: KnownNamespaces::default(),
            selected_namespaces: SelectedNamespaces::default(),
            heartbeat: Heartbeat::default(),
            statuses: ConfigStatuses::default(),
            events: Events::default(),
            drifts: Drifts::default(),
            edge_object,
            queue,
            workers,
            clusters: Clusters::default(),
            last_waits_since: None,
            report: Report::new(moment.now, clock),
            answered: Answered::default(),
            said: dry_run::Said::default(),
        }
    }

    /// Starts what everything else follows from.
    pub(crate) fn begin(&mut self) {
        self.read_record();
        self.watch_configs();
    }

    /// The process ends: logs what has no line yet. Returns the record, if it is to be written.
    pub(crate) fn end(&mut self) -> Option<(ObjectName, Kept)> {
        self.report.end();
        self.last_record()
    }

    fn on_answer(&mut self, answer: Answer) -> Result<Course, OneCluster> {
        match answer {
            Answer::Worked(key, done) => self.on_worked(&key, done),
            Answer::Identified(side, result) => {
                let is_back = self.on_identity(side, result);
                if self.compare_sides()? || is_back {
                    return Ok(Course::Again);
                }
            }
            Answer::Defined(answers) => self.on_definitions(answers),
            Answer::Withdrawal(resource, result) => self.on_withdrawal(resource, result),
            Answer::ConfigKinds(answers) => self.on_config_kinds(answers),
            Answer::Vanished(resource, left) => self.on_vanished(&resource, left),
            Answer::Namespace(done) => self.on_namespace(done),
            Answer::NamespacesFound(found) => self.on_namespaces_found(found),
            Answer::Heartbeat(written) => self.on_heartbeat(written),
            Answer::Statuses(written) => self.on_statuses(written),
            Answer::Events(side, written) => {
                if let Some(error) = self.on_events(side, written) {
                    self.side_is_silent(side, "writing an Event", &error);
                }
            }
            Answer::Discovered(side, answers) => self.on_discovered(side, answers),
            Answer::Recorded(result, is_read) => self.on_record(result, is_read),
        }
        Ok(Course::On)
    }
}

impl Role for Model {
    type Side = Side;
    type Location = Infallible;
    type Feed = Feed;
    type Request = Request;
    type Answer = Answer;
    type Fault = OneCluster;

    fn advance(&mut self) {
        self.notice_moves();
        self.plan_what_is_due();
        self.ask_who_came_back();
        self.ask_about_late_ends();
        self.ask_what_is_due();
        self.keep_finished();
        self.keep_record();
        if self.may_write() {
            self.keep_hub_namespaces();
        }
        if self.may_tell_hub() {
            self.send_heartbeat();
            self.write_statuses();
        }
        self.read_definitions();
        self.verify_config_kinds();
        self.compare_copies();
        self.end_needless_holds();
        self.compare_resumed_holds();
        self.check_confirmations();
        self.end_holds();
        self.ask_identities_again();
        self.poll_config_kinds();
        self.find_selected_namespaces();
        // Last, because the calls above create work, and nothing else would wake it for that.
        self.refill();
        if self.may_write() {
            self.start_work();
            self.write_events();
        }
        self.report.sum_up(false);
    }

    /// An error says that hub and edge are the same cluster.
    fn handle(&mut self, event: Event, moment: Moment) -> Result<Course, OneCluster> {
        self.now = moment.now;
        self.report.it_is(moment.now);
        self.queue.it_is(moment.now);
        self.sides.meet(moment.contacts);
        self.notice_answers();
        self.notice_ends();
        self.tell_configs();
        if !matches!(event, Event::Due | Event::Asked(_)) {
            self.look_at_statuses_soon();
        }
        match event {
            Event::Answer(answer) => return self.on_answer(answer),
            Event::Source(id, event) => self.on_source(id, event),
            Event::Asked(question) => self.on_question(question),
            Event::Due => {}
        }
        Ok(Course::On)
    }

    fn effects(&mut self) -> Vec<Effect> {
        self.effects.take()
    }

    /// There is room for origins.
    fn has_room(&self) -> bool {
        self.queue.payload_bytes() < PAYLOAD_BYTES && self.workers.payload() < WORK_BYTES && self.queue.has_room()
    }

    fn next_due(&mut self) -> Option<Instant> {
        // With all workers busy, a key that falls due has to wait for one of them anyway.
        let queue = self.queue.next_due().filter(|_| self.workers.have_room());
        let may = |timer| match timer {
            Timer::NamespaceWrites | Timer::Work => self.may_write(),
            Timer::Heartbeat | Timer::ConfigStatus => self.may_tell_hub() && !self.writes_to_configs(),
            Timer::Events(side) => self.may_write() && !self.sides.of(side).answering.is_silent(),
            Timer::Record => self.may_keep_record(),
            Timer::ConfigKinds => self.selecting.are_known(),
            _ => true,
        };
        let others = [
            queue.filter(|_| self.may_write()),
            self.timers.next(may),
            self.guard.due(),
            self.report.due(),
            self.workers.due(),
        ];
        others.into_iter().flatten().min()
    }

    /// Another cluster had answered as one of the sides, and the right one is back. A new model knows the same about which
    /// clusters the sides are and which Jobs have finished, and nothing else.
    fn again(mut self, moment: Moment) -> Self {
        let mut model = Self::new(self.settings, self.chance.u64(..), moment);
        for &side in &*model.sides.ids() {
            model.sides.of_mut(side).identity = Rc::clone(&self.sides.of(side).identity);
        }
        model.clusters = self.clusters;
        model.finished = self.finished;
        model.guard.versions = self.guard.versions;
        model.report = self.report.of_the_next_turn();
        model.begin();
        model
    }
}

#[cfg(test)]
mod tests;
