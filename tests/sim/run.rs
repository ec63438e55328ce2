//! One run: two servers, people, faults and the real engine, on a clock that jumps from one event to the next; then
//! calm, and the promises that can only be judged at the end.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use driver::leader::{self, Candidacy};
use driver::serve::HealthQuery;
use driver::source::Mode;
use edge_syncer::api::FIELD_MANAGER;
use edge_syncer::engine::{self, Clusters, Setup};
use edge_syncer::model::{Limits, PLAN_SLICE, Settings};
use edge_syncer::plan::Filter;
use edge_syncer::side::Side;
use edge_syncer::sync::job::Policy;
use edge_syncer::sync::ownership::SyncTarget;
use fastrand::Rng;
use kube_lite::{Cluster, ObjectName, Rate, RateLimit};
use tokio::sync::mpsc::{Sender, channel};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::{Instant, sleep, timeout};

use super::choices::Choices;
use super::classes::{ALL, Class, spell};
use super::flows::SYNC_TARGET;
use super::ledger::{self, LEASE, Ledger, Mass};
use super::namers::Namers;
use super::panics;
use super::server::{Port, Server};
use super::store::Key;
use super::trace;
use super::types;
use super::weather::{STALE, Spell, Streaming, Trap, Trouble, Weather};
use super::world::World;

/// Requests about objects in flight at once, of one syncer.
/// So few that overflow is a matter of course.
const QUEUE_CAPACITY: usize = 32;
const WORKERS: usize = 4;
/// Sources that poll and read what has changed, one object at a time each: a year that goes by makes many of them due at once.
const READERS: usize = 12;
/// Share of the runs in which objects go up to the hub too.
const UPWARD: f64 = 0.4;
/// Share of the runs in which adopted copies go with their origins.
const DELETE_ADOPTED: f64 = 0.25;
/// Share of the runs in which a syncer syncs only while it holds a Lease.
const ELECTED: f64 = 0.25;
/// Share of the runs without an accident in which a type is denied.
const DENIED: f64 = 0.2;
/// The same of a namespace.
const DENIED_NAMESPACE: f64 = 0.2;
/// How long a mass of deletes is held.
pub(super) const HELD: Duration = Duration::from_secs(600);
/// Between two heartbeats, in runs in which something has to be reported.
const HEARTBEAT: Duration = Duration::from_secs(1800);
/// The most requests an hour at a side that is away or flapping: some twenty sources at a back-off of 30 s and the
/// objects at one of 5 minutes.
const RATE_AWAY: u64 = 12_000;

/// What a run was like.
pub struct Outcome {
    /// The number of its dice.
    pub seed: u64,
    /// The classes of faults it had.
    pub classes: Vec<Class>,
    /// How many things happened, and a hash of them all.
    pub fingerprint: (u64, u64),
    /// Promises that were broken.
    pub broken: Vec<String>,
    /// What the broken ones are about.
    subjects: Vec<String>,
    /// What happened.
    trace: Vec<(Duration, String)>,
    /// How long the sides took to be the same after the last fault.
    pub converged_in: Duration,
}

impl Outcome {
    /// Drops what happened, which takes far more memory than what came of it.
    pub fn forget_story(&mut self) {
        self.trace = Vec::new();
    }

    /// What people have noted of it first, and what was broken first.
    pub fn headline(&self) -> String {
        let noted = self.trace.iter().find(|(_, line)| line.starts_with("* "));
        let noted = noted.map_or("", |(_, line)| line.as_str());
        let broken = self.broken.first().map_or("", String::as_str);
        format!("{noted}: {broken}")
    }

    /// What happened, for people: at most so many lines, and the verdict last, since that is what is read first.
    pub fn reported(&self, most: usize) -> String {
        let Self { seed, classes, .. } = self;
        let story = trace::story(&self.trace, &self.subjects, most);
        format!("{story}\nseed {seed} {classes:?}\n  {}", self.broken.join("\n  "))
    }
}

/// See the module's doc.
pub struct Run {
    /// Chance of the run.
    pub dice: Rng,
    /// The sides and the people.
    pub world: World,
    /// The checker's record.
    pub ledger: Rc<RefCell<Ledger>>,
    /// Kills the syncer at a request.
    pub trap: Rc<Trap>,
    /// Syncers that run.
    pub(super) processes: Vec<JoinHandle<()>>,
    next_process: u32,
    /// How often the sides are read.
    pub mode: Mode,
    /// The side that is watched also if the other is polled.
    watched: Option<Side>,
    /// Objects that may wait for their turn.
    pub queue_capacity: usize,
    /// How many steps of the planning one turn of its loop takes.
    plan_slice: usize,
    /// Requests that each side is given.
    pub rate: Option<Rate>,
    /// Between two heartbeats.
    pub heartbeat: Option<Duration>,
    /// Somebody lets go on what is held.
    pub(super) operator: bool,
    /// What the edge's owner has chosen for the syncers that are started from now on.
    pub policy: Policy,
    /// The types and namespaces that he does not allow them.
    pub filter: Filter,
    /// Only who holds the Lease syncs.
    pub elects: bool,
    /// The way to ask the syncer that began to sync last.
    questions: Rc<RefCell<Option<Sender<HealthQuery>>>>,
}

/// Runs `seed`, with `only` this class of faults or any.
pub fn run(seed: u64, only: Option<Class>) -> Outcome {
    let mut dice = Rng::with_seed(seed);
    let classes = only.map_or_else(|| any_classes(&mut dice, is_upward(seed)), |class| vec![class]);
    run_with(seed, dice, classes, async |run, classes| run.turbulence(classes).await)
}

/// Runs `seed` with a turbulence of its own.
pub fn run_with(
    seed: u64,
    mut dice: Rng,
    classes: Vec<Class>,
    turbulence: impl AsyncFnOnce(&mut Run, &[Class]),
) -> Outcome {
    on_a_clock_of_its_own(seed, async move {
        let mut run = Run::new(&mut dice, &classes, is_upward(seed));
        run.vary(seed);
        run.world.found();
        run.start();
        turbulence(&mut run, &classes).await;
        let converged_in = run.judge(&classes).await;
        run.outcome(seed, classes, converged_in)
    })
}

/// Runs a story in an empty world in which nothing goes wrong by chance. The story starts the syncer itself, and is
/// judged as if it had had these classes.
pub fn tell(classes: &[Class], upsync: bool, story: impl AsyncFnOnce(&mut Run)) -> Outcome {
    on_a_clock_of_its_own(0, async move {
        let mut run = Run::new(&mut Rng::with_seed(0), classes, upsync);
        run.mode = Mode::Watch;
        for side in [Side::Hub, Side::Edge] {
            *run.server(side).weather.borrow_mut() = Weather::fine();
        }
        story(&mut run).await;
        let converged_in = run.judge(classes).await;
        run.outcome(0, classes.to_vec(), converged_in)
    })
}

fn on_a_clock_of_its_own<F: Future>(seed: u64, run: F) -> F::Output {
    // Jitter of the syncer itself.
    fastrand::seed(seed);
    panics::watch();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O needs nothing");
    LocalSet::new().block_on(&runtime, run)
}

/// Whether objects go up to the hub too. These dice are their own, so that nothing else of a run depends on them.
fn is_upward(seed: u64) -> bool {
    Rng::with_seed(seed.rotate_left(32)).f64() < UPWARD
}

/// One class in a third of the runs, several in the others.
fn any_classes(dice: &mut Rng, upsync: bool) -> Vec<Class> {
    let count = if dice.f64() < 0.33 { 1 } else { dice.usize(2..6) };
    let mut classes = dice.choose_multiple(ALL.iter().copied(), count);
    if let Some(&accident) = classes.iter().find(|class| class.is_accident(upsync)) {
        classes.retain(|&class| class == accident || class.combines_with_accident());
    }
    classes.sort();
    classes
}

/// One syncer of several.
fn candidacy(edge: &Cluster, process: u32) -> Candidacy {
    Candidacy {
        server: Rc::new(edge.unlimited()),
        lease: ObjectName::new("default", LEASE),
        identity: ledger::candidate(process),
        lease_duration: Duration::from_secs(15),
        clock: another_moment,
    }
}

/// A time that has not been before: whoever stands by sees by it that the Lease was renewed.
fn another_moment() -> String {
    thread_local!(static MOMENTS: Cell<u32> = const { Cell::new(0) });
    let moment = MOMENTS.get();
    MOMENTS.set(moment + 1);
    format!("2026-01-01T00:00:00.{moment:06}Z")
}

fn weather(dice: &mut Rng, trap: &Rc<Trap>) -> Weather {
    let streaming = [Streaming::Refused, Streaming::Fails, Streaming::Ignored];
    Weather {
        dice: dice.fork(),
        spells: Vec::new(),
        streaming: if dice.f64() < 0.6 {
            Streaming::Works
        } else {
            streaming[dice.usize(0..streaming.len())]
        },
        page: dice.usize(1..12),
        trap: Rc::clone(trap),
        others: Rc::default(),
    }
}

impl Run {
    fn new(dice: &mut Rng, classes: &[Class], upsync: bool) -> Self {
        let ledger = Rc::new(RefCell::new(Ledger::new()));
        let accident = classes.iter().any(|class| class.is_accident(upsync));
        // As many again may be under way that take long.
        ledger.borrow_mut().workers = 2 * WORKERS;
        ledger.borrow_mut().heartbeat = accident;
        let stale = classes.contains(&Class::Stale);
        ledger.borrow_mut().lists_lie = stale || classes.contains(&Class::EmptyList);
        if stale {
            ledger.borrow_mut().staleness = STALE;
        }
        let trap = Rc::new(Trap::default());
        let hub = Server::new(Side::Hub, weather(dice, &trap), Rc::clone(&ledger));
        let edge = Server::new(Side::Edge, weather(dice, &trap), Rc::clone(&ledger));
        hub.faces(&edge);
        edge.faces(&hub);
        let polls = dice.f64() < 0.1;
        if polls {
            ledger.borrow_mut().readers = READERS;
        }
        Self {
            world: World::new(hub, edge, dice.fork(), Class::habits(classes, upsync)),
            dice: dice.fork(),
            ledger,
            trap,
            processes: Vec::new(),
            next_process: 1,
            heartbeat: accident.then_some(HEARTBEAT),
            operator: false,
            policy: Policy {
                sync_target: SyncTarget {
                    uid: SYNC_TARGET.into(),
                    former: Vec::new(),
                },
                delete_adopted: false,
                revert_changes_from: vec!["kubectl".into(), "kubectl-*".into()],
            },
            filter: Filter::default(),
            elects: false,
            questions: Rc::default(),
            watched: None,
            queue_capacity: QUEUE_CAPACITY,
            plan_slice: PLAN_SLICE,
            rate: None,
            mode: if polls {
                Mode::Poll(Duration::from_secs(60))
            } else {
                Mode::Watch
            },
        }
    }

    /// What hubs, and the choices of edges' owners, differ in. Its dice are its own, so that nothing else of a run depends on it.
    fn vary(&mut self, seed: u64) {
        let mut dice = Rng::with_seed(!seed);
        let hub = &self.world.hub;
        if dice.f64() < 0.15 {
            hub.store.borrow_mut().lacks.insert(types::EDGE_SYNC_CONFIGS);
        }
        if dice.f64() < 0.2 {
            // A kcp workspace.
            hub.store
                .borrow_mut()
                .remove(&Key::new("namespaces", "", "kube-system"));
            hub.flush();
        }
        if dice.bool() {
            self.watched = Some(if dice.bool() { Side::Hub } else { Side::Edge });
        }
        let delete_adopted = dice.f64() < DELETE_ADOPTED;
        let is_calm = self.heartbeat.is_none();
        let denied = dice.choice(["deployments.apps", "gauges.example.org"]);
        let denied = denied.filter(|_| is_calm && dice.f64() < DENIED);
        self.elects = dice.f64() < ELECTED;
        let denied_namespace = dice.choice(["shop", "field"]);
        let denied_namespace = denied_namespace.filter(|_| is_calm && dice.f64() < DENIED_NAMESPACE);
        self.choose(Choices {
            delete_adopted,
            denied,
            denied_namespace,
        });
        self.world.namers = Namers::of_run(seed, &self.world);
        // So that also a small plan is made and followed in many turns, between which all else goes on.
        self.plan_slice = dice.choice([1, 10, 100, PLAN_SLICE]).unwrap_or(PLAN_SLICE);
        if dice.bool() {
            self.world.hub.store.borrow_mut().lacks.remove(types::EDGES);
        }
    }

    /// How a side is read.
    pub fn pace_at(&self, side: Side) -> Mode {
        if self.watched == Some(side) {
            Mode::Watch
        } else {
            self.mode
        }
    }

    /// One of the servers.
    pub fn server(&self, side: Side) -> &Rc<Server> {
        match side {
            Side::Hub => &self.world.hub,
            Side::Edge => &self.world.edge,
        }
    }

    /// One side or the other.
    pub fn any_side(&mut self) -> Side {
        if self.dice.bool() { Side::Hub } else { Side::Edge }
    }

    /// Writes a line into the story.
    pub fn note(&self, what: &str) {
        self.ledger.borrow_mut().trace.add(format!("* {what}"));
    }

    /// Starts a syncer.
    pub fn start(&mut self) {
        let process = self.next_process;
        self.next_process += 1;
        if process == 1 {
            self.ledger.borrow_mut().begins_to_sync();
        }
        self.note(&format!("p{process} starts"));
        let cluster = |server: &Rc<Server>| {
            let port = Port {
                server: Rc::clone(server),
                process,
            };
            let limit = RateLimit::new(self.rate);
            let cluster = Cluster::new(server.side.word(), Box::new(port), limit, FIELD_MANAGER);
            if server.side == Side::Edge {
                cluster.nearby()
            } else {
                cluster
            }
        };
        let setup = Setup {
            clusters: Clusters::new(cluster(&self.world.hub), cluster(&self.world.edge)),
            settings: Settings {
                hub_mode: self.pace_at(Side::Hub),
                edge_mode: self.pace_at(Side::Edge),
                own_namespace: None,
                workers: WORKERS,
                policy: Rc::new(self.policy.clone()),
                filter: Rc::new(self.filter.clone()),
                queue_capacity: self.queue_capacity,
                status_interval: Duration::from_secs(1),
                sync_target_name: String::new(),
                heartbeat: self.heartbeat,
                clock: || "2026-01-01T00:00:00Z".to_owned(),
                since_1970: || Duration::from_secs(1_767_225_600),
                holder: "process".to_owned(),
                renews: false,
                delete_limits: Limits { most: 20, grace: HELD },
                renaming: true,
                plan_slice: self.plan_slice,
                dry_run: false,
            },
            dry_run: None,
        };
        let candidacy = self.elects.then(|| candidacy(setup.clusters.at(Side::Edge), process));
        let latest = Rc::clone(&self.questions);
        let work = move || {
            let (questions, asked) = channel(1);
            latest.replace(Some(questions));
            engine::run_and_answer(setup.clone(), asked, std::future::pending())
        };
        let process = async move {
            let ended = match candidacy {
                None => Some(work().await),
                Some(candidacy) => leader::while_leading(candidacy, std::future::pending(), |_| work()).await,
            };
            ended.expect("nobody stops it").expect("the sides are two clusters");
        };
        self.processes.push(spawn_local(process));
    }

    /// A figure without labels of the syncer that was started last.
    pub async fn figure(&self, name: &str) -> u64 {
        // A page is given out again for a second.
        sleep(Duration::from_secs(2)).await;
        let (answer, answered) = oneshot::channel();
        let now = Duration::ZERO;
        let questions = self.questions.borrow().clone().expect("it was started");
        let asked = questions.send(HealthQuery::Metrics { now, answer }).await;
        asked.expect("it runs");
        let page = answered.await.expect("it answers");
        let page = String::from_utf8_lossy(&page);
        let mut values = page.lines().filter_map(|line| line.split_once(' '));
        let found = values.find(|(key, _)| key.strip_prefix("edge_syncer_") == Some(name));
        found
            .expect("there is such a figure")
            .1
            .parse()
            .expect("it is a number")
    }

    /// Starts a second syncer beside the first.
    pub fn start_another(&mut self) {
        if self.processes.len() < 2 {
            self.start();
        }
    }

    /// Kills a syncer wherever it is.
    pub async fn kill(&mut self) {
        if let Some(process) = self.processes.pop() {
            self.note("a syncer is killed");
            process.abort();
            let _ = process.await;
        }
    }

    /// Some trouble on one side, or on both.
    pub fn spell(&mut self, trouble: &Trouble) {
        let seconds = self.dice.u64(5..120);
        let chance = if self.dice.f64() < 0.3 { 1.0 } else { self.dice.f64() };
        let sides: &[Side] = match self.dice.u8(0..5) {
            0 | 1 => &[Side::Hub],
            2 | 3 => &[Side::Edge],
            _ => &[Side::Hub, Side::Edge],
        };
        for &side in sides {
            self.add(side, spell(trouble.clone(), Duration::from_secs(seconds), chance));
        }
    }

    /// A side that does not answer for a while.
    pub fn down(&mut self, side: Side, silent: bool, time: Duration) {
        self.add(side, spell(Trouble::Down { silent }, time, 1.0));
    }

    /// Trouble that every request of a side meets for a while.
    pub fn strike(&mut self, side: Side, trouble: Trouble, time: Duration) {
        self.add(side, spell(trouble, time, 1.0));
    }

    /// Trouble that some requests of a side meet for a while.
    pub fn strike_by_chance(&mut self, side: Side, trouble: Trouble, time: Duration, chance: f64) {
        self.add(side, spell(trouble, time, chance));
    }

    /// From now on a mass of deletes at a side is to be held. If their namespace went before, they are held already.
    pub fn expect_mass(&mut self, at: Side) {
        if self.world.has_many(at) {
            self.ledger.borrow_mut().mass = Some(Mass {
                until: Instant::now() + HELD,
                at,
                gone: 0,
                all_gone: 0,
            });
        }
    }

    fn add(&mut self, side: Side, spell: Spell) {
        let time = spell.until - spell.from;
        self.note(&format!(
            "{side}: {:?} for {time:?} at {:.2}",
            spell.trouble, spell.chance
        ));
        let server = self.server(side);
        let mut weather = server.weather.borrow_mut();
        let now = Instant::now();
        weather.spells.retain(|old| old.until > now);
        weather.spells.push(spell);
        drop(weather);
        server.changed.notify_waiters();
    }

    /// Requests that a side has had.
    pub fn requests(&self, side: Side) -> u64 {
        self.ledger.borrow().count(|of, _| of == side)
    }

    /// A side that is away is not flooded.
    pub fn check_rate(&self, side: Side, before: u64, time: Duration) {
        let requests = self.requests(side) - before;
        let hours = time.as_secs() / 3600 + 1;
        let most = RATE_AWAY * hours * self.processes.len().max(1) as u64;
        if requests > most {
            let what = format!("{requests} requests at the {side} in {time:?} while it was away");
            self.ledger.borrow_mut().break_promise(what, &[]);
        }
    }

    /// Lets time pass, with a deed now and then, and raises what was killed.
    pub async fn work_for(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            let pause = Duration::from_secs_f64(self.dice.f64() * 20.0).min(end - Instant::now());
            self.pass(pause).await;
            self.world.act();
        }
    }

    /// Lets time pass, and raises what was killed.
    pub async fn pass(&mut self, time: Duration) {
        let trap = Rc::clone(&self.trap);
        if timeout(time, trap.sprung.notified()).await.is_ok() {
            self.kill().await;
            let pause = self.dice.u64(0..60);
            sleep(Duration::from_secs(pause)).await;
            self.start();
        }
    }

    async fn turbulence(&mut self, classes: &[Class]) {
        // Some faults are there from the start, others find everything in order.
        if self.dice.bool() {
            self.pass(Duration::from_secs(30)).await;
        }
        let mut rare = 1;
        for _ in 0..self.dice.u32(6..25) {
            let pause = Duration::from_secs_f64(self.dice.f64() * 25.0);
            self.pass(pause).await;
            for _ in 0..self.dice.u32(0..4) {
                self.world.act();
            }
            if self.dice.f64() < 0.6 {
                let class = classes[self.dice.usize(0..classes.len())];
                let is_rare = matches!(
                    class,
                    Class::ClockJump
                        | Class::Flapping
                        | Class::Offline
                        | Class::EdgeRestored
                        | Class::HubRestored
                        | Class::OtherHub
                        | Class::MassDelete
                );
                if is_rare && rare == 0 {
                    continue;
                }
                rare -= u32::from(is_rare);
                class.strike(self).await;
            }
            if self.is_broken() {
                return;
            }
        }
    }

    fn outcome(self, seed: u64, classes: Vec<Class>, converged_in: Duration) -> Outcome {
        let mut ledger = self.ledger.borrow_mut();
        let trace = ledger.trace.take();
        let mut subjects: Vec<String> = ledger.broken.iter().flat_map(|(_, about)| about.clone()).collect();
        subjects.dedup();
        Outcome {
            seed,
            classes,
            fingerprint: ledger.trace.fingerprint(),
            broken: ledger.broken.iter().map(|(what, _)| what.clone()).collect(),
            subjects,
            trace,
            converged_in,
        }
    }
}
