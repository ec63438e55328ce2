//! The engine: one loop that owns all state, woken by a closed set of events.
//!
//! Configs and discovery make the plan ([`replan`]); the plan starts and stops sources; what sources tell is held
//! against the inventory ([`inventory`]) and puts keys into the queue; workers take keys, bring the object in step and
//! give back an outcome ([`work`]). Nothing here talks to a server itself, and nothing else holds state.
//!
//! Back-pressure: origins are taken from their channel only while the bodies that wait for a worker are within
//! [`PAYLOAD_BYTES`] and the queue has room. Copies and configs have channels of their own, so a full queue never keeps
//! their news out, and waiting keys hold no body, so a full queue always drains. What finds no room all the same is
//! taken from the inventory later: every reason to queue a key can be seen there ([`Inventory::out_of_step`]).

mod answers;
mod asking;
mod configs;
mod defined;
mod definitions;
mod drift;
mod guard;
mod heartbeat;
mod hub_namespaces;
mod inventory;
mod news;
mod objects;
mod one_cluster;
mod reach;
mod record;
mod replan;
mod reselect;
mod sources;
mod status;
mod trust;
mod types;
mod work;
mod workers;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, sleep_until};

use self::answers::Told;
use self::asking::{Answers, Asking};
use self::configs::{ConfigKind, Selecting};
use self::defined::{Learning, Learnt};
use self::drift::Fights;
use self::guard::Guard;
pub use self::guard::Limits;
use self::heartbeat::Heartbeat;
use self::hub_namespaces::{HubNamespaces, NamespaceDone};
use self::inventory::{Generation, Inventory};
pub use self::one_cluster::OneCluster;
use self::one_cluster::Sides;
use self::reach::Reach;
use self::record::Record;

use self::types::TypeState;
use self::work::Done;
use self::workers::Workers;
use crate::cluster::discovery::Discovery;
use crate::cluster::{Cluster, Error, ObjectName, Side};
use crate::plan::Filter;
use crate::queue::{Queue, QueueKey};
use crate::report::Report;
use crate::serve::Question;
use crate::source::{self, Covers, Pace, Reading, SourceEvent, SourceHandle, SourceId, Style};
use crate::sync::definition::{Definitions, Withdrawal};
use crate::sync::identity::Identity;
use crate::sync::job::Policy;

/// Bytes of objects that may wait for a worker: enough to keep all workers busy over a link with 300 ms of latency,
/// little beside the memory the process needs anyway.
const PAYLOAD_BYTES: usize = 256 << 10;
/// Bytes of objects that workers may have before no more origins are taken in: more than one of the largest that etcd
/// stores, so that a single one that does not get through holds up nothing. Each takes several times its size, and large
/// ones are sent one after the other anyway.
const WORK_BYTES: usize = 2 << 20;
/// Events on their way from sources to the engine. Each may hold an object, so few; sources wait when it is full.
const CHANNEL: usize = 4;

/// Numbers types through the life of the process.
type TypeId = u32;

/// What has to be done for an object. Each is queued, tried and backed off by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Task {
    /// Bring the copy in step with its origin.
    Object,
    /// Bring the edge's status to the hub.
    Status,
}

/// What the queue holds: a task for one object of one type, by its name at the edge.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    type_id: TypeId,
    task: Task,
    name: ObjectName,
}

impl QueueKey for Key {
    type Group = TypeId;

    fn group(&self) -> TypeId {
        self.type_id
    }

    /// Both: an object is read where it comes from and written where it goes.
    fn needs(&self) -> &[Side] {
        &[Side::Hub, Side::Edge]
    }
}

impl Key {
    fn new(type_id: TypeId, task: Task, name: ObjectName) -> Self {
        Self { type_id, task, name }
    }
}

/// What the engine needs to run. Cheap to clone.
#[derive(Clone)]
pub struct Setup {
    /// The hub.
    pub hub: Rc<Cluster>,
    /// The edge.
    pub edge: Rc<Cluster>,
    /// How often the hub is looked at.
    pub hub_pace: Pace,
    /// How often the edge is looked at.
    pub edge_pace: Pace,
    /// The namespace that the syncer itself runs in, if it runs in one. It is never deleted.
    pub own_namespace: Option<String>,
    /// Requests in flight at once, but for as many again that take long.
    pub workers: usize,
    /// Entries of the queue.
    pub queue_capacity: usize,
    /// What the edge's owner has chosen.
    pub policy: Rc<Policy>,
    /// What may be synced at all.
    pub filter: Rc<Filter>,
    /// Between two writes of one object's status to the hub.
    pub status_interval: Duration,
    /// Between two heartbeats on the configs; none if absent.
    pub heartbeat: Option<Duration>,
    /// The time of the wall clock in RFC 3339, for people; nothing is decided by it.
    pub clock: fn() -> String,
    /// How many deletes at once are held, and for how long.
    pub delete_limits: Limits,
    /// Conversions are followed.
    pub renaming: bool,
}

/// All sources that run.
type Sources = BTreeMap<SourceId, SourceState>;

/// All state. See the module's doc.
pub struct Engine {
    setup: Setup,
    selecting: Selecting,
    hub_asking: Asking,
    edge_asking: Asking,
    types: BTreeMap<TypeId, TypeState>,
    next_type: TypeId,
    sources: Sources,
    next_source: SourceId,
    next_list: Generation,
    outlets: Outlets,
    record: Record,
    fights: Fights,
    guard: Guard,
    hub_identity: Rc<Identity>,
    edge_identity: Rc<Identity>,
    /// What defines the types of the hub.
    defined: Rc<Definitions>,
    learning: Learning,
    hub_namespaces: HubNamespaces,
    heartbeat: Heartbeat,
    queue: Queue<Key>,
    tasks: FuturesUnordered<LocalBoxFuture<'static, TaskEnd>>,
    workers: Workers,
    reach: Reach,
    sides: Sides,
    /// Since when there is always something that takes others along and has to wait.
    last_waits_since: Option<Instant>,
    report: Report,
    told: Told,
}

/// What a source is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feed {
    /// Configs of a kind at the hub.
    Configs(ConfigKind),
    /// CRDs of a side, to learn when a missing type appears.
    Definitions(Side),
    /// Origins of a type.
    Origins(TypeId, Side),
    /// Copies of a type.
    Copies(TypeId, Side),
    /// Objects of a type at the edge that no list by label names, and whose status goes up all the same.
    Unlabelled(TypeId),
    /// Namespaces at the hub that upsync has made.
    HubNamespaces,
}

impl Feed {
    fn side(self) -> Side {
        match self {
            Self::Configs(_) | Self::HubNamespaces => Side::Hub,
            Self::Unlabelled(_) => Side::Edge,
            Self::Definitions(side) | Self::Origins(_, side) | Self::Copies(_, side) => side,
        }
    }
}

struct SourceState {
    feed: Feed,
    reading: Reading,
    /// The list that is under way or was the last.
    list: Generation,
    /// A list is under way.
    listing: bool,
    /// What that list covers.
    covers: Covers,
    /// It has completed a list, or has said that it cannot.
    settled: bool,
    /// It has said that it cannot read, and not that it can since.
    fails: bool,
    /// What the server is known to have reached before this source began.
    known: u64,
    /// The version of its last complete list; 0 before.
    listed_at: u64,
    /// When a read has shown last what is older than what was told of.
    doubted: Option<Instant>,
    /// Objects without our label that the list under way has not named yet.
    unnamed: BTreeSet<ObjectName>,
    handle: SourceHandle,
}

impl SourceState {
    /// True if what it tells now is whole objects, not their metadata alone.
    fn tells_whole(&self) -> bool {
        match self.reading.style {
            Style::Whole | Style::Labelled(_) => true,
            Style::Metadata => false,
            Style::LookThenWatch(_) => !self.listing || self.covers == Covers::Labelled,
        }
    }
}

/// What a task of the engine ends with.
enum TaskEnd {
    /// A worker is done with its key.
    Worked(Key, Done),
    /// A side has been asked what it serves.
    Discovered(Side, Answers),
    /// The record of synced types has been read (`true`) or written.
    Recorded(Result<record::kept::Kept, Error>, bool),
    /// A side has been asked who it is.
    Identified(Side, Result<Option<String>, Error>),
    /// The hub has been asked what defines its types.
    Defined(Learnt),
    /// The hub has been asked whether it still takes a type away.
    Withdrawal(TypeId, Result<Option<Withdrawal>, Error>),
    /// Both sides have been asked what is left of a type that the hub has no longer.
    Vanished(String, guard::vanished::Left),
    /// A namespace at the hub has been made, or cleared away.
    Namespace(NamespaceDone),
    /// The configs have been marked with the time.
    Beaten(heartbeat::Beaten),
}

/// One thing that wakes the loop. Closed: this is all that can.
enum Event {
    Stop,
    Task(TaskEnd),
    Source(SourceId, SourceEvent),
    Asked(Question),
    Due,
}

/// Where sources send to, by what they are for.
struct Outlets {
    control: Sender<(SourceId, SourceEvent)>,
    copies: Sender<(SourceId, SourceEvent)>,
    origins: Sender<(SourceId, SourceEvent)>,
}

struct Inlets {
    control: Receiver<(SourceId, SourceEvent)>,
    copies: Receiver<(SourceId, SourceEvent)>,
    origins: Receiver<(SourceId, SourceEvent)>,
    questions: Receiver<Question>,
}

impl Outlets {
    fn new(questions: Receiver<Question>) -> (Self, Inlets) {
        let (control, control_in) = channel(CHANNEL);
        let (copies, copies_in) = channel(CHANNEL);
        let (origins, origins_in) = channel(CHANNEL);
        let inlets = Inlets {
            control: control_in,
            copies: copies_in,
            origins: origins_in,
            questions,
        };
        let outlets = Self {
            control,
            copies,
            origins,
        };
        (outlets, inlets)
    }

    fn of(&self, feed: Feed) -> &Sender<(SourceId, SourceEvent)> {
        match feed {
            Feed::Configs(_) | Feed::Definitions(_) | Feed::HubNamespaces => &self.control,
            Feed::Origins(..) => &self.origins,
            Feed::Copies(..) | Feed::Unlabelled(_) => &self.copies,
        }
    }
}

/// Syncs until `stop` resolves, and at most [`record::LAST_WRITE`] longer; answers questions about how it is. Needs a tokio
/// `LocalSet`. Requests in flight are abandoned then, which every later run can cope with.
///
/// An error, before anything is written, says that hub and edge are the same cluster.
pub async fn run_and_answer(
    setup: Setup,
    questions: Receiver<Question>,
    stop: impl Future<Output = ()>,
) -> Result<(), OneCluster> {
    let (outlets, mut inlets) = Outlets::new(questions);
    let mut engine = Engine::new(setup, outlets);
    tokio::pin!(stop);
    loop {
        match engine.turn(&mut inlets, stop.as_mut()).await? {
            End::Stopped => return Ok(()),
            End::Again => {
                let (outlets, fresh) = Outlets::new(inlets.questions);
                inlets = fresh;
                engine = engine.begin_again(outlets);
            }
        }
    }
}

/// Why a turn of the engine ends.
enum End {
    /// It was told to stop.
    Stopped,
    /// Another cluster had answered as one of the sides, and the right one is back: nothing that was read meanwhile, and
    /// that is queued or on its way from a source, may be acted on.
    Again,
}

impl Engine {
    fn new(setup: Setup, outlets: Outlets) -> Self {
        let queue = Queue::new(setup.queue_capacity);
        let workers = Workers::new(setup.workers);
        let mut engine = Self {
            setup,
            selecting: Selecting::default(),
            hub_asking: Asking::default(),
            edge_asking: Asking::default(),
            types: BTreeMap::new(),
            next_type: 0,
            sources: Sources::new(),
            next_source: 0,
            next_list: 0,
            outlets,
            record: Record::default(),
            fights: Fights::default(),
            guard: Guard::default(),
            hub_identity: Rc::default(),
            edge_identity: Rc::default(),
            defined: Rc::default(),
            learning: Learning::default(),
            hub_namespaces: HubNamespaces::default(),
            heartbeat: Heartbeat::default(),
            queue,
            tasks: FuturesUnordered::new(),
            workers,
            reach: Reach::default(),
            sides: Sides::default(),
            last_waits_since: None,
            report: Report::default(),
            told: Told::default(),
        };
        engine.read_record();
        engine.watch_configs();
        engine
    }

    /// The same sides, known for what they are, and nothing else.
    fn begin_again(self, outlets: Outlets) -> Self {
        let mut engine = Self::new(self.setup, outlets);
        engine.hub_identity = self.hub_identity;
        engine.edge_identity = self.edge_identity;
        engine.sides = self.sides;
        engine.guard.versions = self.guard.versions;
        engine.report = self.report.of_the_next_turn();
        engine
    }

    async fn turn(
        &mut self,
        inlets: &mut Inlets,
        mut stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<End, OneCluster> {
        loop {
            self.notice_moves();
            self.ask_who_came_back();
            self.ask_what_is_due();
            self.keep_record();
            if self.may_write() {
                self.keep_hub_namespaces();
                self.beat();
            }
            self.learn_definitions();
            self.end_holds();
            self.ask_identities_again();
            self.look_for_config_kinds();
            // Last, because the others find what is to be done, and nothing wakes it for that.
            self.refill();
            if self.may_write() {
                self.start_work();
            }
            self.report.sum_up(false);
            let due = self.next_due();
            let has_room = self.queue.payload_bytes() < PAYLOAD_BYTES
                && self.workers.payload() < WORK_BYTES
                && self.queue.has_room();
            let event = tokio::select! {
                biased;
                () = &mut stop => Event::Stop,
                Some(question) = inlets.questions.recv() => Event::Asked(question),
                Some(end) = self.tasks.next(), if !self.tasks.is_empty() => Event::Task(end),
                Some((id, event)) = inlets.control.recv() => Event::Source(id, event),
                Some((id, event)) = inlets.copies.recv() => Event::Source(id, event),
                Some((id, event)) = inlets.origins.recv(), if has_room => Event::Source(id, event),
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => Event::Due,
            };
            self.notice_answers();
            match event {
                Event::Stop => {
                    if self.may_write() {
                        self.save_record_at_last().await;
                    }
                    return Ok(End::Stopped);
                }
                Event::Task(TaskEnd::Worked(key, done)) => self.worked(&key, done),
                Event::Task(TaskEnd::Identified(side, result)) => {
                    let is_back = self.identified(side, result);
                    if self.tell_sides_apart()? || is_back {
                        return Ok(End::Again);
                    }
                }
                Event::Task(TaskEnd::Defined(learnt)) => self.definitions_learnt(learnt),
                Event::Task(TaskEnd::Withdrawal(type_id, result)) => self.withdrawal_is(type_id, result),
                Event::Task(TaskEnd::Vanished(resource, left)) => self.vanished_is(&resource, left),
                Event::Task(TaskEnd::Namespace(done)) => self.namespace_done(done),
                Event::Task(TaskEnd::Beaten(beaten)) => self.beaten(beaten),
                Event::Task(TaskEnd::Discovered(side, answers)) => self.discovered(side, answers),
                Event::Task(TaskEnd::Recorded(result, is_read)) => self.recorded(result, is_read),
                Event::Source(id, event) => self.source_event(id, event),
                Event::Asked(question) => self.asked(question),
                Event::Due => {}
            }
        }
    }

    fn next_due(&mut self) -> Option<Instant> {
        // With all workers busy, a key that falls due has to wait for one of them anyway.
        let queue = self.queue.next_due().filter(|_| self.workers.have_room());
        let writes = [queue, self.hub_namespaces.due(), self.heartbeat.due()];
        let writes = writes.into_iter().flatten().filter(|_| self.may_write());
        let record = self.record.due().filter(|_| self.may_keep_record());
        let others = [
            self.hub_asking.due(),
            self.edge_asking.due(),
            record,
            self.guard.due(),
            self.learning.due(),
            self.selecting.due(),
            self.report.due(),
            self.reach.due(),
            self.workers.due(),
        ];
        others.into_iter().flatten().chain(writes).min()
    }

    fn cluster(&self, side: Side) -> &Rc<Cluster> {
        match side {
            Side::Hub => &self.setup.hub,
            Side::Edge => &self.setup.edge,
        }
    }

    fn pace(&self, side: Side) -> Pace {
        match side {
            Side::Hub => self.setup.hub_pace,
            Side::Edge => self.setup.edge_pace,
        }
    }

    fn asking(&mut self, side: Side) -> &mut Asking {
        match side {
            Side::Hub => &mut self.hub_asking,
            Side::Edge => &mut self.edge_asking,
        }
    }

    fn discovery(&self, side: Side) -> &Discovery {
        match side {
            Side::Hub => &self.hub_asking.discovery,
            Side::Edge => &self.edge_asking.discovery,
        }
    }

    fn discoveries(&self) -> (&Discovery, &Discovery) {
        (self.discovery(Side::Hub), self.discovery(Side::Edge))
    }

    fn start_source(&mut self, feed: Feed, reading: Reading) -> SourceId {
        let id = self.next_source;
        self.next_source += 1;
        let pace = self.pace(feed.side());
        let events = self.outlets.of(feed).clone();
        let handle = source::start(self.cluster(feed.side()), &reading, pace, id, events);
        let state = SourceState {
            feed,
            reading,
            list: 0,
            listing: false,
            covers: Covers::Everything,
            settled: false,
            fails: false,
            known: self.known_version(feed),
            listed_at: 0,
            doubted: None,
            unnamed: BTreeSet::new(),
            handle,
        };
        self.sources.insert(id, state);
        id
    }

    fn new_list(&mut self) -> Generation {
        self.next_list = self.next_list.wrapping_add(1).max(1);
        self.next_list
    }
}
