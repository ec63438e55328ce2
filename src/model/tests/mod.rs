//! The model by itself: events go in, effects come out, and time is what the test says. The bench is here; what the world
//! around it answers is in `world`, and what objects look like in `things`.

mod configs;
mod contention;
mod definitions;
mod deselections;
mod drift;
mod edge_object;
mod events;
mod finished;
mod flow;
mod heartbeat;
mod holds;
mod identity;
mod not_synced;
mod on_site;
mod one_cluster;
mod out_of_sight;
mod outages;
mod reading;
mod record;
mod status;
mod steps;
mod things;
mod trust;
mod type_holds;
mod types;
mod unmatched;
mod upsync;
mod withdrawn;
mod workers;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use driver::Role as _;
use driver::source::{Covers, Mode, Reading, SourceEvent, SourceId, Versions};
use kube_lite::{Error, ObjectName, ResourceType, Standing, Workspaces};
use serde_json::{Value, json};
use tokio::time::Instant;

use self::things::*;
use self::world::World;
use crate::model::effect::{
    Answer, ConfigKind, Done, Effect, EventDone, EventToWrite, Known, NamespaceDone, NamespaceStep, Request,
};
use crate::model::{Course, Event, Feed, Key, Limits, Model, Moment, OneCluster, PLAN_SLICE, Settings};
use crate::plan::Direction;
use crate::side::Side;
use crate::sync::job::{Change, Ending, Failure, HeldFor, Job, Outcome, Policy, Seen, Why};
use crate::sync::meta::{Meta, Object};
use crate::sync::object::Desired;
use crate::sync::ownership::SyncTarget;
use crate::sync::status_return::{Returned, StatusJob};

const GRACE: Duration = Duration::from_secs(600);
const SECOND: Duration = Duration::from_secs(1);
/// More turns of the loop for one event show that it does not end.
const MOST_TURNS: usize = 1000;

/// A model, and a world around it that answers what is asked about the sides themselves, and lets the test answer the rest.
struct Bench {
    model: Model,
    now: Instant,
    contacts: BTreeMap<Side, Standing>,
    world: World,
    /// Which cluster answers as each side; not known if it is empty.
    uids: BTreeMap<Side, &'static str>,
    /// What workers have.
    work: Vec<(Key, Box<Job>)>,
    /// The same of statuses.
    statuses: Vec<(Key, Box<StatusJob>)>,
    /// What is to be done about namespaces at the hub.
    namespaces: Vec<(String, NamespaceStep)>,
    /// The Events that were written.
    events: Vec<EventToWrite>,
    /// What else was asked or written, in order, in a word.
    log: Vec<String>,
    /// How often the model has asked for a new beginning.
    turns: u32,
    /// Sources that have completed a list.
    listed: BTreeSet<SourceId>,
}

impl Bench {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::of_seed(1, change)
    }

    fn of_seed(seed: u64, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = settings();
        change(&mut settings);
        let now = Instant::now();
        let answers = Standing {
            answers: true,
            accepts_credentials: true,
            ..Standing::default()
        };
        let contacts: BTreeMap<Side, Standing> = [(Side::Hub, answers.clone()), (Side::Edge, answers)].into();
        let moment = Moment {
            now,
            contacts: contacts.clone().into_iter().collect(),
        };
        let mut model = Model::new(settings, seed, moment);
        model.begin();
        Self {
            model,
            now,
            contacts,
            world: World::default(),
            uids: [(Side::Hub, THE_HUB), (Side::Edge, THE_EDGE)].into(),
            work: Vec::new(),
            statuses: Vec::new(),
            namespaces: Vec::new(),
            events: Vec::new(),
            log: Vec::new(),
            turns: 0,
            listed: BTreeSet::new(),
        }
    }

    /// One that selects the `ConfigMap`s of the namespace `shop`, and has listed all there is: nothing.
    fn listed() -> Self {
        Self::new().selecting(&["configmaps"])
    }

    /// Selects these of the namespace `shop`, and lists all there is: nothing.
    fn selecting(mut self, resources: &[&str]) -> Self {
        self.run();
        self.select(resources);
        self.list_all(1);
        self
    }

    /// Has this spec in a `SyncerConfig`, and lists all there is: nothing.
    fn with_spec(mut self, spec: &Value) -> Self {
        self.run();
        self.configure(&[config("all", spec)]);
        self.list_all(1);
        self
    }

    /// One that has downsynced the object `a` of this type, which was at version 10.
    fn with_a_copy(resource: &ResourceType) -> Self {
        let mut bench = Self::new();
        bench.world.serve(resource);
        let mut bench = bench.selecting(&[&resource.qualified()]);
        let origins = bench.origins_of(Side::Hub, &resource.resource).expect("they are read");
        bench.says(origins, &object(resource, "shop", "a", 10));
        bench.succeed(Change::Created);
        bench.there_are_no_statuses();
        bench
    }

    fn contact(&mut self, side: Side) -> &mut Standing {
        self.contacts.get_mut(&side).expect("there are these")
    }

    fn moment(&self) -> Moment {
        Moment {
            now: self.now,
            contacts: self.contacts.clone().into_iter().collect(),
        }
    }

    fn tell(&mut self, event: Event) {
        assert_eq!(self.hand(event), Ok(Course::On));
        self.run();
    }

    fn hand(&mut self, event: Event) -> Result<Course, OneCluster> {
        self.model.handle(event, self.moment())
    }

    /// Lets the model do what is due, and answers its requests.
    fn run(&mut self) {
        for _ in 0..MOST_TURNS {
            self.model.advance();
            let effects = self.model.effects();
            let is_idle = effects.is_empty();
            for effect in effects {
                let Some(answer) = self.perform(effect) else { continue };
                if self.hand(Event::Answer(answer)).expect("they are two clusters") == Course::Again {
                    self.restart();
                    break;
                }
            }
            if is_idle && self.model.next_due().is_none_or(|due| due > self.now) {
                return;
            }
        }
        panic!("it turns without end: {:?}", self.log);
    }

    /// Does what the shell does when the model asks for a new beginning.
    fn restart(&mut self) {
        let moment = self.moment();
        let new = Self::new();
        let old = std::mem::replace(&mut self.model, new.model);
        self.model = old.again(moment);
        self.world.sources.clear();
        self.work.clear();
        self.statuses.clear();
        self.turns += 1;
    }

    /// Every source that reads objects lists that there are none, also those that begin for it.
    fn list_all(&mut self, version: u64) {
        self.listed.clear();
        self.list_rest(version);
    }

    /// The same of those that have not listed anything.
    fn list_rest(&mut self, version: u64) {
        let reads_objects = |feed: &Feed| matches!(feed, Feed::Origins(..) | Feed::Copies(..) | Feed::HubNamespaces);
        let is_next = |bench: &Self| {
            let mut sources = bench.world.sources.iter();
            let next = sources.find(|(id, (feed, _))| !bench.listed.contains(id) && reads_objects(feed));
            next.map(|(&id, _)| id)
        };
        while let Some(id) = is_next(self) {
            self.list(id, &[], version);
        }
    }

    fn list(&mut self, id: SourceId, objects: &[Value], version: u64) {
        self.list_after(id, objects, version, 0);
    }

    /// A list of a source that has reported a version `before`.
    fn list_after(&mut self, id: SourceId, objects: &[Value], version: u64, before: u64) {
        self.listed.insert(id);
        self.source_says(id, SourceEvent::Begin(Covers::Everything));
        self.world.forget_origins(id);
        for object in objects {
            self.says(id, object);
        }
        self.source_says(
            id,
            SourceEvent::Complete(Versions {
                list: version,
                before,
                side: 0,
                has_lost: false,
            }),
        );
    }

    fn says(&mut self, id: SourceId, object: &Value) {
        self.source_says(id, SourceEvent::Object(read(object)));
    }

    fn says_gone(&mut self, id: SourceId, object: &Value) {
        self.source_says(id, SourceEvent::Gone(read(object)));
    }

    fn breaks(&mut self, id: SourceId, error: Error) {
        self.source_says(id, SourceEvent::Down(error));
    }

    fn source_says(&mut self, id: SourceId, event: SourceEvent) {
        self.world.remember_origin(id, &event);
        self.tell(Event::Source(id, event));
    }

    /// The first worker that has a key is done as it should be.
    fn succeed(&mut self, ending: impl Into<Ending>) {
        let (key, job) = self.work.remove(0);
        self.done(key, &job, ending);
    }

    /// The worker that has the object of this name is done as it should be.
    fn succeed_with(&mut self, name: &str, ending: impl Into<Ending>) {
        let (key, job) = self.take(name);
        self.done(key, &job, ending);
    }

    /// What the copy is to be: as the worker was given it, or reads it.
    fn desired(&self, key: &Key, job: &Job) -> Option<Rc<Desired>> {
        let read = |body: Bytes| {
            let object = Object::parse(body).expect("it is an object");
            Desired::from_origin(job.direction, &job.origin, &job.copy_at, job.selection, &object)
                .expect("it can be copied")
        };
        job.desired
            .clone()
            .or_else(|| self.world.origin(key).and_then(read).map(Rc::new))
    }

    fn done(&mut self, key: Key, job: &Job, ending: impl Into<Ending>) {
        self.done_with(key, job, outcome(ending));
    }

    fn done_with(&mut self, key: Key, job: &Job, outcome: Outcome) {
        let desired = self.desired(&key, job);
        self.world.version += 1;
        let version = self.world.version;
        let made = desired
            .as_ref()
            .map(|desired| seen(job, &copy(job.direction, &job.copy_at, &desired.origin, version)));
        let outcome = Outcome {
            desired_hash: desired.as_ref().map_or(0, |desired| desired.hash),
            copy: made,
            ..outcome
        };
        self.ends(key, Ok(outcome));
    }

    /// The worker that has the object of this name ends in this way, without an error.
    fn end_with(&mut self, name: &str, ending: impl Into<Ending>) {
        let (key, _) = self.take(name);
        self.ends(key, Ok(outcome(ending)));
    }

    fn ends(&mut self, key: Key, result: Result<Outcome, Failure>) {
        self.tell(Event::Answer(Answer::Worked(key, Done::Object(result))));
    }

    fn take(&mut self, name: &str) -> (Key, Box<Job>) {
        let at = self.work.iter().position(|(key, _)| *key.name.name == *name);
        self.work
            .remove(at.unwrap_or_else(|| panic!("nobody has {name}: {:?}", self.working())))
    }

    /// The job of the worker that has the object of this name.
    fn job(&self, name: &str) -> &Job {
        let (_, job) = self.work.iter().find(|(key, _)| *key.name.name == *name).expect(name);
        job
    }

    fn fail(&mut self, side: Side, error: Error) {
        let (key, _) = self.work.remove(0);
        self.ends(key, Err(failure(side, error)));
    }

    /// The first status that is being written ends in this way.
    fn return_status(&mut self, result: Result<Returned, Failure>) {
        let (key, _) = self.statuses.remove(0);
        self.tell(Event::Answer(Answer::Worked(key, Done::Status(result))));
    }

    /// The statuses that are being written turn out to be empty.
    fn there_are_no_statuses(&mut self) {
        while !self.statuses.is_empty() {
            self.return_status(Ok(Returned::Equal(0)));
        }
    }

    /// The first status that is being written is stored, which gives the hub object this version.
    fn write_status(&mut self, of: &Value, version: u64) {
        let status = hash_of_status(&of["status"]);
        self.return_status(Ok(Returned::Written { status, version }));
    }

    fn namespace_done(&mut self, result: Result<crate::model::effect::NamespaceEnd, Error>) {
        let (namespace, _) = self.namespaces.remove(0);
        self.tell(Event::Answer(Answer::Namespace(NamespaceDone { namespace, result })));
    }

    /// Origins with these names are downsynced.
    fn bring_down(&mut self, names: &[&str]) {
        let origins = self.origins();
        for (index, name) in names.iter().enumerate() {
            self.says(origins, &config_map(name, 10 + index as u64));
            self.succeed(Change::Created);
        }
        assert!(self.work.is_empty());
    }

    /// The names of what workers have.
    fn working(&self) -> Vec<&str> {
        self.work.iter().map(|(_, job)| &*job.origin.name.name).collect()
    }

    /// How often this request was made.
    fn count(&self, word: &str) -> usize {
        self.log.iter().filter(|line| line.starts_with(word)).count()
    }

    /// Time passes, and the model is woken whenever it wants to be.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(due) = self.model.next_due().filter(|due| *due <= end) {
            self.now = due.max(self.now + Duration::from_millis(1));
            self.tell(Event::Due);
        }
        self.now = end;
        self.tell(Event::Due);
    }
}

fn settings() -> Settings {
    Settings {
        hub_mode: Mode::Watch,
        edge_mode: Mode::Watch,
        own_namespace: None,
        workers: 4,
        queue_capacity: 64,
        policy: Rc::new(Policy {
            sync_target: SyncTarget {
                uid: "st".into(),
                former: Vec::new(),
            },
            delete_adopted: false,
            revert_changes_from: Vec::new(),
        }),
        filter: Rc::default(),
        status_interval: SECOND,
        sync_target_name: "edge".to_owned(),
        heartbeat: Some(Duration::from_secs(60)),
        clock: || "2026-01-01T00:00:00Z".to_owned(),
        since_1970: || Duration::from_secs(1_767_225_600),
        holder: "holder".to_owned(),
        renews: false,
        delete_limits: Limits { most: 2, grace: GRACE },
        renaming: true,
        plan_slice: PLAN_SLICE,
        dry_run: false,
    }
}
