//! One run: two servers, people, faults and the real engine, on a clock that jumps from one event to the next; then
//! calm, and the promises that can only be judged at the end.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use edge_syncer::cluster::{Cluster, RateLimit, Side};
use edge_syncer::engine::{self, Limits, Setup};
use edge_syncer::plan::Filter;
use edge_syncer::source::Pace;
use edge_syncer::sync::job::Policy;
use fastrand::Rng;
use tokio::task::{JoinHandle, LocalSet, spawn_local};
use tokio::time::{Instant, sleep, timeout};

use super::classes::{Class, NOT_YET, spell};
use super::converged::differences;
use super::ledger::{Counts, Ledger};
use super::panics;
use super::request::Verb;
use super::server::{Port, Server};
use super::store::Key;
use super::trace;
use super::weather::{Spell, Streaming, Trap, Trouble, Weather};
use super::world::World;

/// Requests about objects in flight at once, of one syncer.
/// So few that overflow is a matter of course.
const QUEUE_CAPACITY: usize = 32;
const WORKERS: usize = 4;
/// What a syncer may have in flight beside its workers: the record of types.
const BESIDE_WORKERS: usize = 1;
/// How long after the last fault the sides may still differ: the longest back-off is 5 minutes, a deaf watch takes 3
/// to be noticed, and one thing may have to wait for another.
const CONVERGENCE: Duration = Duration::from_secs(30 * 60);
/// The time in which nothing may happen.
const IDLE: Duration = Duration::from_secs(3600);
/// The most requests about one object that keeps failing, in an hour: a back-off of at least 150 s, and three requests
/// a try (reading it at the hub, looking at its copy, applying it).
const FAILING: u64 = 75;
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
    /// What happened, for people: at most so many lines, and the verdict last, since that is what is read first.
    pub fn told(&self, most: usize) -> String {
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
    processes: Vec<JoinHandle<()>>,
    next_process: u32,
    pace: Pace,
}

/// Runs `seed`, with `only` this class of faults or any.
pub fn run(seed: u64, only: Option<Class>) -> Outcome {
    let mut dice = Rng::with_seed(seed);
    let classes = only.map_or_else(|| any_classes(&mut dice), |class| vec![class]);
    run_with(seed, dice, classes, async |run, classes| run.turbulence(classes).await)
}

/// Runs `seed` with a turbulence of its own.
pub fn run_with(
    seed: u64,
    mut dice: Rng,
    classes: Vec<Class>,
    turbulence: impl AsyncFnOnce(&mut Run, &[Class]),
) -> Outcome {
    // Jitter of the syncer itself.
    fastrand::seed(seed);
    panics::watch();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without I/O needs nothing");
    LocalSet::new().block_on(&runtime, async move {
        let mut run = Run::new(&mut dice, &classes);
        run.world.found();
        run.start();
        turbulence(&mut run, &classes).await;
        let converged_in = run.judge(&classes).await;
        run.outcome(seed, classes, converged_in)
    })
}

/// One class in a third of the runs, several in the others.
fn any_classes(dice: &mut Rng) -> Vec<Class> {
    let allowed: Vec<Class> = super::classes::ALL
        .into_iter()
        .filter(|class| !NOT_YET.contains(class))
        .collect();
    let count = if dice.f64() < 0.33 { 1 } else { dice.usize(2..6) };
    let mut classes = dice.choose_multiple(allowed, count);
    classes.sort();
    classes
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
    }
}

impl Run {
    fn new(dice: &mut Rng, classes: &[Class]) -> Self {
        let ledger = Rc::new(RefCell::new(Ledger::new()));
        ledger.borrow_mut().most_in_flight = WORKERS + BESIDE_WORKERS;
        let trap = Rc::new(Trap::default());
        let hub = Server::new(Side::Hub, weather(dice, &trap), Rc::clone(&ledger), None);
        let edge = Server::new(
            Side::Edge,
            weather(dice, &trap),
            Rc::clone(&ledger),
            Some(Rc::clone(&hub)),
        );
        let polls = dice.f64() < 0.1;
        Self {
            world: World::new(hub, edge, dice.fork(), Class::habits(classes)),
            dice: dice.fork(),
            ledger,
            trap,
            processes: Vec::new(),
            next_process: 1,
            pace: if polls {
                Pace::Poll(Duration::from_secs(60))
            } else {
                Pace::Watch
            },
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
        self.note(&format!("p{process} starts"));
        let cluster = |server: &Rc<Server>| {
            let port = Port {
                server: Rc::clone(server),
                process,
            };
            Rc::new(Cluster::new(server.side, Box::new(port), RateLimit::new(None)))
        };
        let setup = Setup {
            hub: cluster(&self.world.hub),
            edge: cluster(&self.world.edge),
            hub_pace: self.pace,
            edge_pace: self.pace,
            own_namespace: None,
            workers: WORKERS,
            policy: Rc::new(Policy {
                delete_adopted: false,
                take_back_from: vec!["kubectl".into(), "kubectl-*".into()],
            }),
            filter: Rc::new(Filter::default()),
            queue_capacity: QUEUE_CAPACITY,
            status_interval: Duration::from_secs(1),
            heartbeat: None,
            clock: || "2026-01-01T00:00:00Z".to_owned(),
            delete_limits: Limits {
                most: 20,
                grace: Duration::from_secs(600),
            },
            renaming: true,
        };
        self.processes
            .push(spawn_local(engine::run(setup, std::future::pending())));
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

    async fn pass(&mut self, time: Duration) {
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
        let mut rare = 2;
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

    fn is_broken(&self) -> bool {
        for panic in panics::take() {
            self.ledger
                .borrow_mut()
                .break_promise(format!("panicked: {panic}"), &[]);
        }
        if self.processes.iter().any(JoinHandle::is_finished) {
            self.ledger.borrow_mut().break_promise("the syncer ended".into(), &[]);
        }
        !self.ledger.borrow().broken.is_empty()
    }

    /// Ends all faults and judges what can only be judged then.
    async fn judge(&mut self, classes: &[Class]) -> Duration {
        if self.is_broken() {
            return Duration::ZERO;
        }
        self.calm(classes).await;
        let converged_in = self.converge().await;
        if self.is_broken() {
            return converged_in;
        }
        // What failed meanwhile may still be told, and watches settle.
        sleep(Duration::from_secs(400)).await;
        self.stay_idle().await;
        self.is_broken();
        converged_in
    }

    async fn calm(&mut self, classes: &[Class]) {
        self.note("all faults end");
        self.trap.armed.set(None);
        for side in [Side::Hub, Side::Edge] {
            self.server(side).weather.borrow_mut().clear();
            if classes.contains(&Class::EmptyList) {
                // Its watches go on from the versions of the empty lists, and no correct client can tell.
                self.server(side).forget_versions();
            }
        }
        if self.processes.is_empty() {
            self.start();
        }
        self.world.calm_down();
        while !self.world.define_all() {
            sleep(Duration::from_secs(1)).await;
            self.world.calm_down();
        }
        self.note("everybody goes home");
    }

    fn differences(&self) -> Vec<(String, Key)> {
        let world = &self.world;
        differences(&world.hub.store.borrow(), &world.edge.store.borrow(), &world.bystanders)
    }

    async fn converge(&mut self) -> Duration {
        let start = Instant::now();
        loop {
            let differences = self.differences();
            if differences.is_empty() || self.is_broken() {
                return start.elapsed();
            }
            if start.elapsed() > CONVERGENCE {
                let mut ledger = self.ledger.borrow_mut();
                for (why, key) in differences.iter().take(3) {
                    ledger.break_promise(format!("after {CONVERGENCE:?} {key} {why}"), &[key]);
                }
                return start.elapsed();
            }
            sleep(Duration::from_secs(2)).await;
        }
    }

    async fn stay_idle(&mut self) {
        let (before, about) = {
            let ledger = self.ledger.borrow();
            (ledger.counts.clone(), ledger.about.clone())
        };
        self.note("an hour in which nothing happens");
        sleep(IDLE).await;
        let differences = self.differences();
        let mut ledger = self.ledger.borrow_mut();
        for (why, key) in differences.iter().take(3) {
            ledger.break_promise(format!("in an idle hour {key} became different: it {why}"), &[key]);
        }
        for (key, count) in ledger.about.clone() {
            let count = count - about.get(&key).copied().unwrap_or_default();
            let most = if key.name.starts_with("poison") {
                FAILING * self.processes.len() as u64
            } else {
                0
            };
            if count > most {
                let what = format!("{count} requests about {key} in an idle hour");
                ledger.break_promise(what, &[&key]);
            }
        }
        let counts = ledger.counts.clone();
        self.check_idle(&mut ledger, &before, &counts);
    }

    fn check_idle(&self, ledger: &mut Ledger, before: &Counts, after: &Counts) {
        for (&(side, verb), count) in after {
            let count = count - before.get(&(side, verb)).copied().unwrap_or_default();
            let most = match verb {
                Verb::Watch => 40 * self.processes.len() as u64,
                Verb::List if self.pace != Pace::Watch => u64::MAX,
                // Judged by the object.
                Verb::Get | Verb::Apply | Verb::MergePatch | Verb::JsonPatch | Verb::Delete => u64::MAX,
                _ => 0,
            };
            if count > most {
                ledger.break_promise(format!("{count} times {verb:?} at the {side} in an idle hour"), &[]);
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
