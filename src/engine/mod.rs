//! The engine: the shell around the [model](crate::model). One loop, woken by a fixed set of events: it passes to the
//! model what happens, and does what the model wants done. Sources and requests are its tasks; nothing is decided here.

mod definitions;
mod discover;
mod heartbeat;
mod hub_namespaces;
mod left;
pub(crate) mod record;
mod requests;

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until, timeout};

use crate::cluster::Cluster;
use crate::few::Few;
use crate::logging::log_line;
use crate::model::effect::{Answer, Effect, Feed, Known};
use crate::model::{Course, Event, Model, Moment, OneCluster, Settings};
use crate::serve::HealthQuery;
use crate::side::Side;
use crate::source::{self, Reading, SourceEvent, SourceHandle, SourceId};

/// How many events fit into the channel from sources to the engine. Few, since each may hold an object; sources wait
/// when it is full.
const CHANNEL: usize = 4;
/// How long the end of the process may wait for the last write.
const LAST_WRITE: Duration = Duration::from_secs(2);

/// What the engine needs to run. Cheap to clone.
#[derive(Clone)]
pub struct Setup {
    /// The servers of all sides.
    pub clusters: Clusters,
    /// What the model needs to know.
    pub settings: Settings,
}

/// The server of each side. Cheap to clone.
#[derive(Clone)]
pub struct Clusters(Rc<Few<Side, Rc<Cluster>>>);

impl Clusters {
    /// These servers, each by its side.
    pub fn new(clusters: impl IntoIterator<Item = Cluster>) -> Self {
        let clusters = clusters
            .into_iter()
            .map(|cluster| (Side::of(&cluster), Rc::new(cluster)));
        Self(Rc::new(clusters.collect()))
    }

    /// The server of a side.
    ///
    /// # Panics
    /// If there is no such side. The model knows of no others.
    pub fn at(&self, side: Side) -> &Rc<Cluster> {
        self.0.get(side).expect("the model asks of the sides that there are")
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Rc<Cluster>> {
        self.0.values()
    }
}

/// The channels that sources send to, by what they are for.
struct Outlets {
    control: Sender<(SourceId, SourceEvent)>,
    copies: Sender<(SourceId, SourceEvent)>,
    origins: Sender<(SourceId, SourceEvent)>,
}

struct Inlets {
    control: Receiver<(SourceId, SourceEvent)>,
    copies: Receiver<(SourceId, SourceEvent)>,
    origins: Receiver<(SourceId, SourceEvent)>,
}

fn channels() -> (Outlets, Inlets) {
    let (control, control_in) = channel(CHANNEL);
    let (copies, copies_in) = channel(CHANNEL);
    let (origins, origins_in) = channel(CHANNEL);
    let inlets = Inlets {
        control: control_in,
        copies: copies_in,
        origins: origins_in,
    };
    let outlets = Outlets {
        control,
        copies,
        origins,
    };
    (outlets, inlets)
}

impl Outlets {
    fn of(&self, feed: Feed) -> &Sender<(SourceId, SourceEvent)> {
        match feed {
            Feed::Configs(_) | Feed::Crds(_) | Feed::HubNamespaces => &self.control,
            Feed::Origins(..) => &self.origins,
            Feed::Copies(..) | Feed::Unlabelled(_) => &self.copies,
        }
    }
}

/// What runs.
struct Shell<'a> {
    setup: &'a Setup,
    outlets: Outlets,
    inlets: Inlets,
    /// A source ends when it is removed from here.
    sources: BTreeMap<SourceId, SourceHandle>,
    requests: FuturesUnordered<LocalBoxFuture<'static, Answer>>,
}

/// Syncs until `stop` resolves, and at most [`LAST_WRITE`] longer; answers questions about its state. Needs a tokio
/// `LocalSet`. Requests in flight are abandoned then, which every later run can cope with.
///
/// An error, before anything is written, says that hub and edge are the same cluster.
pub async fn run_and_answer(
    setup: Setup,
    mut questions: Receiver<HealthQuery>,
    stop: impl Future<Output = ()>,
) -> Result<(), OneCluster> {
    tokio::pin!(stop);
    let mut shell = Shell::new(&setup);
    let mut model = Model::new(setup.settings.clone(), fastrand::u64(..), shell.moment());
    loop {
        model.begin();
        match shell.turn(&mut model, &mut questions, stop.as_mut()).await? {
            End::Stopped => break,
            End::Again => {
                shell = Shell::new(&setup);
                model = model.restarted(shell.moment());
            }
        }
    }
    if let Some((name, kept)) = model.end() {
        let saved = timeout(LAST_WRITE, record::write(setup.clusters.at(Side::Edge), &name, &kept)).await;
        log_line!(
            Debug,
            RecordWritten,
            "wrote the record for the last time",
            result = format_args!("{saved:?}")
        );
    }
    Ok(())
}

/// Why a turn ends.
enum End {
    /// It was asked to stop.
    Stopped,
    /// What runs belongs to a state that is void now.
    Again,
}

impl<'a> Shell<'a> {
    fn new(setup: &'a Setup) -> Self {
        let (outlets, inlets) = channels();
        Self {
            setup,
            outlets,
            inlets,
            sources: BTreeMap::new(),
            requests: FuturesUnordered::new(),
        }
    }

    fn moment(&self) -> Moment {
        Moment {
            now: Instant::now(),
            contacts: self
                .setup
                .clusters
                .all()
                .map(|at| (Side::of(at), at.standing()))
                .collect(),
        }
    }

    async fn turn(
        &mut self,
        model: &mut Model,
        questions: &mut Receiver<HealthQuery>,
        mut stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<End, OneCluster> {
        loop {
            model.advance();
            for effect in model.effects() {
                self.perform(effect);
            }
            let (due, has_room) = (model.next_due(), model.has_room());
            let event = tokio::select! {
                biased;
                () = &mut stop => return Ok(End::Stopped),
                Some(question) = questions.recv() => Event::Asked(question),
                Some(answer) = self.requests.next(), if !self.requests.is_empty() => Event::Answer(answer),
                Some((id, event)) = self.inlets.control.recv() => Event::Source(id, event),
                Some((id, event)) = self.inlets.copies.recv() => Event::Source(id, event),
                Some((id, event)) = self.inlets.origins.recv(), if has_room => Event::Source(id, event),
                () = come_due(due.unwrap_or_else(Instant::now)), if due.is_some() => Event::Due,
            };
            if model.handle(event, self.moment())? == Course::Again {
                return Ok(End::Again);
            }
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Read(id, feed, reading) => self.read(id, feed, &reading),
            Effect::End(id) => drop(self.sources.remove(&id)),
            Effect::Known(id, name, known) => {
                if let Some(source) = self.sources.get(&id) {
                    match known {
                        Known::At(version) => source.is_known(&name, version),
                        Known::Gone => source.is_gone(&name),
                        Known::Written(version) => source.is_written(version),
                    }
                }
            }
            Effect::Request(request) => self.requests.push(requests::make(request, self.setup)),
        }
    }

    fn read(&mut self, id: SourceId, feed: Feed, reading: &Reading) {
        let cluster = self.setup.clusters.at(feed.side());
        let mode = self.setup.settings.mode(feed.side());
        let events = self.outlets.of(feed).clone();
        let source = source::start(cluster, reading, mode, id, events);
        self.sources.insert(id, source);
    }
}

/// Waits until then. What is due at once waits until all other tasks have had their turn: a large plan is followed in
/// several turns of the loop, and meanwhile the Lease is renewed and probes are answered.
async fn come_due(due: Instant) {
    yield_now().await;
    sleep_until(due).await;
}
