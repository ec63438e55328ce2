//! The engine: one loop that owns all state, woken by a closed set of events.
//!
//! Configs and discovery make the plan ([`replan`]); the plan starts and stops sources; what sources tell is held
//! against the inventory ([`inventory`]) and puts keys into the queue; workers take keys, bring the object in step and
//! give back an outcome ([`work`]). Nothing here talks to a server itself, and nothing else holds state.
//!
//! Back-pressure: hub objects are taken from their channel only while the bodies that wait for a worker are within
//! [`PAYLOAD_BYTES`]. Edge objects and configs have channels of their own, so a full queue never keeps their news out,
//! and waiting keys hold no body, so a full queue always drains.

mod asking;
mod drift;
mod inventory;
mod objects;
mod record;
mod replan;
mod work;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::rc::Rc;

use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::{Instant, sleep_until};

use self::asking::{Answers, Asking};
use self::drift::Fights;
use self::inventory::{Generation, Inventory};
use self::record::Record;
use self::replan::Selecting;
use self::work::Done;
use crate::cluster::discovery::Discovery;
use crate::cluster::{Cluster, Error, ObjectName, ResourceType, Scope, Side};
use crate::plan::{Filter, Selection, Selector, SyncedType};
use crate::queue::{Class, Queue};
use crate::report::Report;
use crate::source::{self, Covers, Pace, Reading, SourceEvent, SourceHandle, SourceId};
use crate::sync::downsync::Policy;

/// Bytes of hub objects that may wait for a worker: enough to keep all workers busy over a link with 300 ms of latency,
/// little beside the memory the process needs anyway.
const PAYLOAD_BYTES: usize = 256 << 10;
/// Events on their way from sources to the engine. Each may hold an object, so few; sources wait when it is full.
const CHANNEL: usize = 4;

/// Numbers types through the life of the process.
type TypeId = u32;

/// One object of one type: what the queue holds.
type Key = (TypeId, ObjectName);

/// What the engine needs to run.
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
    /// Requests in flight at once.
    pub workers: usize,
    /// What the edge's owner has chosen.
    pub policy: Rc<Policy>,
    /// What the hub may make the edge hold.
    pub filter: Filter,
}

/// All state. See the module's doc.
pub struct Engine {
    setup: Setup,
    selecting: Selecting,
    hub_asking: Asking,
    edge_asking: Asking,
    types: BTreeMap<TypeId, TypeState>,
    next_type: TypeId,
    sources: HashMap<SourceId, SourceState>,
    next_source: SourceId,
    next_list: Generation,
    outlets: Outlets,
    record: Record,
    fights: Fights,
    queue: Queue<Key>,
    tasks: FuturesUnordered<LocalBoxFuture<'static, TaskEnd>>,
    in_flight: usize,
    first_in_flight: usize,
    report: Report,
}

/// One type that is synced, or has copies left that were.
struct TypeState {
    /// The type at the hub.
    resource: ResourceType,
    /// The same at the edge, perhaps at another version.
    at_edge: ResourceType,
    selector: Selector,
    /// False once no config selects the type any more; it stays while copies of it are left.
    selected: bool,
    /// The hub has said repeatedly that it no longer serves the type, and nothing selects it.
    gone_at_hub: bool,
    inventory: Inventory,
    edge_source: Option<SourceId>,
    /// The edge has been looked at completely, so that what was there before is known.
    looked: bool,
    hub_sources: BTreeMap<Scope, SourceId>,
}

impl TypeState {
    /// Namespaces and CRDs: what other objects need before they can be.
    fn is_first(&self) -> bool {
        self.resource.is("", "namespaces") || self.resource.is("apiextensions.k8s.io", "customresourcedefinitions")
    }

    /// What has to be watched at the hub: what is selected, and what there are copies of.
    fn hub_scopes(&self) -> BTreeSet<Scope> {
        if self.gone_at_hub {
            return BTreeSet::new();
        }
        let selected = |name: &&ObjectName| self.selector.selects(name) != Selection::None;
        self.selector
            .scopes(self.inventory.ours().filter(|name| !selected(name)))
    }

    /// Namespaces and CRDs first; last if they are to go, because they take others along.
    fn class(&self, name: &ObjectName) -> Class {
        match (self.is_first(), self.inventory.is_wanted(name)) {
            (false, _) => Class::Normal,
            (true, true) => Class::First,
            (true, false) => Class::Last,
        }
    }
}

/// What a source is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feed {
    /// `SyncerConfig`s at the hub.
    Configs,
    /// CRDs of a side, to learn when a missing type appears.
    Definitions(Side),
    /// Objects of a type at the hub.
    Hub(TypeId),
    /// Objects of a type at the edge.
    Edge(TypeId),
}

impl Feed {
    fn side(self) -> Side {
        match self {
            Self::Configs | Self::Hub(_) => Side::Hub,
            Self::Edge(_) => Side::Edge,
            Self::Definitions(side) => side,
        }
    }
}

struct SourceState {
    feed: Feed,
    resource: ResourceType,
    scope: Scope,
    /// The list that is under way or was the last.
    list: Generation,
    /// What that list covers.
    covers: Covers,
    /// It has completed a list, or has said that it cannot.
    settled: bool,
    handle: SourceHandle,
}

/// What a task of the engine ends with.
enum TaskEnd {
    /// A worker is done with its key.
    Worked(Key, Done),
    /// A side has been asked what it serves.
    Discovered(Side, Answers),
    /// The record of synced types has been read or written.
    Recorded(Result<BTreeSet<SyncedType>, Error>),
}

/// One thing that wakes the loop. Closed: this is all that can.
enum Event {
    Stop,
    Task(TaskEnd),
    Source(SourceId, SourceEvent),
    Due,
}

/// Where sources send to, by what they are for.
struct Outlets {
    control: Sender<(SourceId, SourceEvent)>,
    edge: Sender<(SourceId, SourceEvent)>,
    hub: Sender<(SourceId, SourceEvent)>,
}

struct Inlets {
    control: Receiver<(SourceId, SourceEvent)>,
    edge: Receiver<(SourceId, SourceEvent)>,
    hub: Receiver<(SourceId, SourceEvent)>,
}

impl Outlets {
    fn new() -> (Self, Inlets) {
        let (control, control_in) = channel(CHANNEL);
        let (edge, edge_in) = channel(CHANNEL);
        let (hub, hub_in) = channel(CHANNEL);
        let inlets = Inlets {
            control: control_in,
            edge: edge_in,
            hub: hub_in,
        };
        (Self { control, edge, hub }, inlets)
    }

    fn of(&self, feed: Feed) -> &Sender<(SourceId, SourceEvent)> {
        match feed {
            Feed::Configs | Feed::Definitions(_) => &self.control,
            Feed::Hub(_) => &self.hub,
            Feed::Edge(_) => &self.edge,
        }
    }
}

/// Syncs until `stop` resolves. Needs a tokio `LocalSet`. Requests in flight are abandoned then, which every later run
/// can cope with.
pub async fn run(setup: Setup, stop: impl Future<Output = ()>) {
    let (outlets, inlets) = Outlets::new();
    let mut engine = Engine {
        setup,
        selecting: Selecting::default(),
        hub_asking: Asking::default(),
        edge_asking: Asking::default(),
        types: BTreeMap::new(),
        next_type: 0,
        sources: HashMap::new(),
        next_source: 0,
        next_list: 0,
        outlets,
        record: Record::default(),
        fights: Fights::default(),
        queue: Queue::default(),
        tasks: FuturesUnordered::new(),
        in_flight: 0,
        first_in_flight: 0,
        report: Report::default(),
    };
    engine.read_record();
    engine.watch_configs();
    engine.turn(inlets, stop).await;
}

impl Engine {
    async fn turn(&mut self, mut inlets: Inlets, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        loop {
            self.start_work();
            self.ask_what_is_due();
            self.keep_record();
            let due = self.next_due();
            let has_room = self.queue.payload_bytes() < PAYLOAD_BYTES;
            let event = tokio::select! {
                biased;
                () = &mut stop => Event::Stop,
                Some(end) = self.tasks.next(), if !self.tasks.is_empty() => Event::Task(end),
                Some((id, event)) = inlets.control.recv() => Event::Source(id, event),
                Some((id, event)) = inlets.edge.recv() => Event::Source(id, event),
                Some((id, event)) = inlets.hub.recv(), if has_room => Event::Source(id, event),
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => Event::Due,
            };
            match event {
                Event::Stop => return,
                Event::Task(TaskEnd::Worked(key, done)) => self.worked(&key, done),
                Event::Task(TaskEnd::Discovered(side, answers)) => self.discovered(side, answers),
                Event::Task(TaskEnd::Recorded(result)) => self.recorded(result),
                Event::Source(id, event) => self.source_event(id, event),
                Event::Due => {}
            }
        }
    }

    fn next_due(&mut self) -> Option<Instant> {
        // With all workers busy, a key that falls due has to wait for one of them anyway.
        let has_worker = self.in_flight < self.setup.workers;
        let queue = self.queue.next_due().filter(|_| has_worker);
        [queue, self.hub_asking.due(), self.edge_asking.due(), self.record.due()]
            .into_iter()
            .flatten()
            .min()
    }

    fn cluster(&self, side: Side) -> &Rc<Cluster> {
        match side {
            Side::Hub => &self.setup.hub,
            Side::Edge => &self.setup.edge,
        }
    }

    fn asking(&mut self, side: Side) -> &mut Asking {
        match side {
            Side::Hub => &mut self.hub_asking,
            Side::Edge => &mut self.edge_asking,
        }
    }

    fn discoveries(&self) -> (&Discovery, &Discovery) {
        (&self.hub_asking.discovery, &self.edge_asking.discovery)
    }

    fn start_source(&mut self, feed: Feed, reading: Reading) -> SourceId {
        let id = self.next_source;
        self.next_source += 1;
        let pace = match feed.side() {
            Side::Hub => self.setup.hub_pace,
            Side::Edge => self.setup.edge_pace,
        };
        let events = self.outlets.of(feed).clone();
        let handle = source::start(self.cluster(feed.side()), &reading, pace, id, events);
        let state = SourceState {
            feed,
            resource: reading.resource,
            scope: reading.scope,
            list: 0,
            covers: Covers::Everything,
            settled: false,
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
