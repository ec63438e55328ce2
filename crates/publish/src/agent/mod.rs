//! The role `publish` as plain data: what is published, who has bound it, which objects there are, and what is done next.
//!
//! ```text
//! PublishedResources ──► schemas ──► export
//!                   └──► routes ─┐
//! endpoint slice ──► shards ─────┴──► primaries, copies ──► queue ──► passes
//! ```
//!
//! Promises: an object is worked on once at a time, whatever happens to the rules meanwhile; workspaces take turns; nothing
//! is deleted for having left a list.

mod answered;
mod border;
mod endpoints;
mod heard;
mod known;
mod metrics;
mod namespaces;
mod objects;
mod patience;
mod published;
mod report;
mod role;
mod running;
mod shards;
mod taken;
mod uses;
mod watched;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use driver::Moment;
use driver::outbox::Outbox;
use driver::page;
use driver::queue::{Class, Done, NOT_NOW, Payload as _, Queue, QueueKey as _};
use driver::serve::HealthQuery;
use driver::share;
use driver::source::{Reading, Style};
use kube_lite::{ResourceType, Standing};
use tokio::time::Instant;

pub(crate) use self::border::{Answer, Feed, Request};
use self::endpoints::Endpoints;
pub(crate) use self::endpoints::is_absent;
pub(crate) use self::metrics::render_standby;
use self::namespaces::Namespaces;
use self::objects::Objects;
use self::patience::Patience;
use self::published::{Outcome, Published};
use self::report::{Report, Subject};
use self::running::Running;
use self::shards::Shards;
use self::taken::Taken;
use self::uses::Uses;
use crate::kcp;
use crate::keys;
use crate::kinds::{Origin, PublishedResource};
use crate::publishing::{ExportJob, PublishJob};
use crate::rivals::May;
use crate::sides::{Key, Primary, Side};
use crate::sync::Job;
use crate::turn::AtHand;
use driver::events::Record;

/// How many things are done at once.
const AT_ONCE: usize = 24;
/// When something is read again that is no news to anybody.
const LATER: Duration = Duration::from_secs(1);
/// When an object that was changed is read once more: what belongs to it may come later, and nobody says so.
const AGAIN: Duration = Duration::from_secs(5);
/// The entries of the queue.
const CAPACITY: usize = 4096;
/// How many of them one workspace fills with news. What it has more waits outside, so that others find room.
const OF_WORKSPACE: usize = CAPACITY / 16;
/// The bytes of objects in the queue that need not be read again.
const AT_HAND: usize = 8 << 20;

/// What the agent was started with, and what was found then.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The name of the agent.
    pub(crate) agent: Rc<str>,
    /// Where the states are.
    pub(crate) namespace: Rc<str>,
    /// Which PublishedResources are meant, as a label selector; all if there is none.
    pub(crate) selector: Option<Rc<str>>,
    /// The endpoint slice.
    pub(crate) slice: Rc<str>,
    /// That is one of the export's name, and may not be there: then the export itself has the URLs.
    pub(crate) may_lack_slice: bool,
    /// The export.
    pub(crate) export: Rc<str>,
    /// Which parts work.
    pub(crate) parts: Parts,
    /// Whether what is written on the service cluster is applied.
    pub(crate) applies: bool,
    /// Where random numbers begin.
    pub(crate) seed: u64,
}

/// Which parts of the agent work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Schemas are made.
    pub schemas: bool,
    /// The export is written.
    pub export: bool,
    /// Objects are synced.
    pub sync: bool,
}

/// See the module's doc.
pub(crate) struct Agent {
    settings: Settings,
    now: Instant,
    random: fastrand::Rng,
    outbox: Outbox<Self>,
    published: Published,
    endpoints: Endpoints,
    shards: Shards,
    objects: Objects,
    running: Running,
    uses: Uses,
    namespaces: Namespaces,
    patience: Patience,
    queue: Queue<Key>,
    /// What is worked on, [`AT_ONCE`] at most.
    taken: Taken,
    /// What is published as what, as long as that is under way.
    publishing: BTreeMap<Rc<str>, Rc<PublishedResource>>,
    /// The numbers of workspaces, and the next one.
    workspaces: BTreeMap<Box<str>, u32>,
    next_workspace: u32,
    export_uid: Rc<str>,
    contacts: Vec<(Side, Standing)>,
    report: Report,
}

impl Agent {
    /// One that knows nothing yet.
    pub(crate) fn new(settings: Settings, moment: Moment<Side>) -> Self {
        let mut agent = Self {
            now: moment.now,
            random: fastrand::Rng::with_seed(settings.seed),
            outbox: Outbox::default(),
            published: Published::default(),
            endpoints: Endpoints::new(settings.may_lack_slice),
            shards: Shards::default(),
            objects: Objects::default(),
            running: Running::default(),
            uses: Uses::default(),
            namespaces: Namespaces::default(),
            patience: Patience::default(),
            queue: Queue::new(CAPACITY),
            taken: Taken::default(),
            publishing: BTreeMap::new(),
            workspaces: BTreeMap::new(),
            next_workspace: 0,
            export_uid: Rc::default(),
            contacts: moment.contacts,
            report: Report::default(),
            settings,
        };
        let style = agent.settings.selector.clone().map_or(Style::Whole, Style::Labelled);
        let published = Reading::of_all(kcp::published_resources(), style);
        agent.outbox.read(Feed::Published, published);
        let definitions = Reading::of_all(ResourceType::definitions(), Style::Metadata);
        agent.outbox.read(Feed::Definitions, definitions);
        let export = Reading::of_one(kcp::exports(), Rc::clone(&agent.settings.export), Style::Whole);
        agent.outbox.read(Feed::Export, export);
        let slice = Reading::of_one(kcp::slices(), Rc::clone(&agent.settings.slice), Style::Whole);
        agent.outbox.read(Feed::Slice, slice);
        agent
    }

    /// The export may have to be changed: once all PublishedResources are known.
    fn export_is_due(&mut self) {
        if self.published.are_read() {
            self.queue.add(Key::Export, Class::First, None);
        }
    }

    /// The objects of a route at a shard are read, with those of which it wants to hear there.
    fn read_at(&mut self, route: u32, shard: u32) {
        let may = self.settings.parts.sync && !self.running.is_held(route);
        let Some(known) = self.published.route(route).filter(|_| may) else {
            return;
        };
        let reading = Reading::of_all(known.remote().clone(), Style::Whole);
        self.outbox.read(Feed::Primaries(route, shard), reading);
        for (rule, related) in watched::rules(known, Origin::Kcp) {
            let reading = Reading::of_all(related, Style::Metadata);
            self.outbox.read(Feed::RelatedAt(route, rule, shard), reading);
        }
    }

    /// What this is true of is read no longer.
    fn end_feeds(&mut self, which: impl Fn(Feed) -> bool) {
        for feed in self.outbox.end_where(which) {
            self.report.is_over(&Subject::Feed(feed), self.now);
        }
    }

    fn place_of(&self, side: Side) -> Rc<kube_lite::Place> {
        let found = self.contacts.iter().find(|(other, _)| *other == side);
        found
            .map(|(_, standing)| Rc::clone(&standing.place))
            .unwrap_or_default()
    }

    /// What a feed reads, for people.
    fn named(&self, feed: Feed) -> String {
        match feed {
            Feed::Published => "PublishedResources".to_owned(),
            Feed::Definitions => "CustomResourceDefinitions".to_owned(),
            Feed::Slice => "APIExportEndpointSlice".to_owned(),
            Feed::Export => "APIExport".to_owned(),
            Feed::Bindings(_) => "APIBindings".to_owned(),
            Feed::Primaries(route, _) => self
                .published
                .route(route)
                .map(|it| it.remote().qualified())
                .unwrap_or_default(),
            Feed::Copies(route) => self
                .published
                .route(route)
                .map(|it| it.local().qualified())
                .unwrap_or_default(),
            Feed::Related(route, rule) | Feed::RelatedAt(route, rule, _) => self
                .published
                .route(route)
                .and_then(|it| watched::named(it, rule))
                .unwrap_or_default(),
        }
    }

    /// A route begins: its objects are read.
    fn begin_route(&mut self, route: u32) {
        let Some(known) = self.published.route(route).filter(|_| self.settings.parts.sync) else {
            return;
        };
        if !self.running.may_begin(route, &known.resource.name) {
            return;
        }
        let selector = format!("{}={}", keys::AGENT_NAME, self.settings.agent);
        let reading = Reading::of_all(known.local().clone(), Style::Labelled(selector.into()));
        self.outbox.read(Feed::Copies(route), reading);
        for (rule, related) in watched::rules(known, Origin::Service) {
            let reading = Reading::of_all(related, Style::Metadata);
            self.outbox.read(Feed::Related(route, rule), reading);
        }
        let shards: Vec<u32> = self.shards.numbers().collect();
        for shard in shards {
            self.read_at(route, shard);
        }
    }

    /// A PublishedResource has other rules.
    fn follow_routes(&mut self, name: &str, outcome: &Outcome) {
        if let Some(ends) = outcome.ends {
            if outcome.leaves {
                self.leave_route(name, ends);
            } else {
                self.end_route(ends);
            }
        }
        if let Some(begins) = outcome.begins {
            self.begin_route(begins);
        }
    }

    /// A route ends, and no other one goes on with its objects.
    fn leave_route(&mut self, name: &str, route: u32) {
        report::are_left(name, self.objects.with_copies(route));
        self.end_route(route);
    }

    /// A route is there no longer. What is under way by it comes to its end.
    fn end_route(&mut self, route: u32) {
        self.running.forget(route);
        self.end_feeds(|feed| feed.route() == Some(route));
        self.leave(|other, _, _| other == route);
        self.objects.forget(route);
    }

    /// Forgets the primaries for which this holds: of which route, at which shard, in which workspace.
    fn leave(&mut self, which: impl Fn(u32, Side, u32) -> bool) {
        for primary in self.objects.primaries(&which) {
            self.objects.is_gone(&primary);
            self.uses.are_over(&primary);
            self.report.is_over(&Subject::Object(primary), self.now);
        }
        self.forget(|key| match key {
            Key::Object(primary) => which(primary.route, primary.shard(), primary.workspace),
            Key::Published(_) | Key::Export | Key::Namespace(_) => false,
        });
    }

    /// What this is true of is there no longer.
    fn forget(&mut self, which: impl Fn(&Key) -> bool) {
        self.queue.remove_where(&which);
        self.patience.forget(which);
    }

    /// An object is to have its turn.
    fn is_next(&mut self, primary: Primary, at_hand: Option<AtHand>) {
        let key = Key::Object(primary);
        if self.queue.of_lot(&key.lot()) >= OF_WORKSPACE {
            return self.queue.put_off(key, Class::Normal);
        }
        let kept = self.queue.payload_bytes();
        let at_hand = at_hand.filter(|object| kept + object.bytes() <= AT_HAND);
        self.queue.add(key, Class::Normal, at_hand);
    }

    /// Something that was worked on is done.
    fn is_done(&mut self, key: &Key, done: Done<Side>) {
        self.taken.ends(key);
        let jitter = self.random.f64();
        self.queue.done(key, done, self.now, jitter);
        // Its rules, or its workspace, may have gone meanwhile.
        if let Key::Object(primary) = key
            && !self.objects.has(primary)
        {
            self.primary_is_over(primary);
        }
    }

    /// A pass over a primary has ended, with an answer or with its shard.
    fn pass_ends(&mut self, primary: &Primary) {
        self.namespaces.is_placed(primary);
        for route in self.running.ends(primary.route) {
            self.begin_route(route);
        }
        self.objects.is_tried(primary);
    }

    /// A primary is there no longer.
    fn primary_is_over(&mut self, primary: &Primary) {
        self.objects.is_gone(primary);
        self.uses.are_over(primary);
        self.forget(|key| matches!(key, Key::Object(other) if other == primary));
        self.report.is_over(&Subject::Object(primary.clone()), self.now);
    }

    /// An Event about a PublishedResource.
    fn record_here(&mut self, record: Option<Record>) {
        if let Some(record) = record {
            self.outbox.request(Request::Record(Side::Service, record));
        }
    }

    fn asked(&mut self, question: HealthQuery) {
        // Whoever has asked may be gone.
        match question {
            HealthQuery::Alive(answer) => drop(answer.send(())),
            HealthQuery::Ready(answer) => drop(answer.send(self.missing().map_or(Ok(()), Err))),
            HealthQuery::Metrics { now, answer } => {
                let now = page::Now {
                    at: self.now,
                    since_1970: now,
                };
                let sides = [(Side::Service, "service"), (Side::Slices, "kcp")];
                let servers = page::Server::all_of(&self.contacts, &sides);
                let figures = metrics::Figures {
                    published: self.published.len(),
                    bound: self.shards.bound().unwrap_or_default(),
                    objects: self.objects.len(),
                    pending: self.objects.pending(),
                    failing: self.report.failing(),
                    passes: self.report.passes(),
                };
                drop(answer.send(metrics::render(&figures, &servers, now).into()));
            }
            // It has no such page.
            HealthQuery::Page { answer, .. } => drop(answer),
            HealthQuery::Status { answer, .. } => {
                let (published, objects) = (self.published.len(), self.objects.len());
                drop(answer.send(format!("{published} types published, {objects} objects")));
            }
        }
    }

    /// What has to be known before it is ready, if something is missing.
    fn missing(&self) -> Option<&'static str> {
        if self.published.are_read() {
            None
        } else {
            Some("the PublishedResources are not read yet\n")
        }
    }

    /// The next thing to do, if it is somebody's turn.
    fn next(&mut self) -> Option<(Key, Option<AtHand>)> {
        let (now, free) = (self.now, self.taken.free(self.now));
        if free == 0 {
            return None;
        }
        let (objects, published, namespaces) = (&self.objects, &self.published, &self.namespaces);
        while self.queue.refill(self.now, |group, from| {
            let keys = if group.is_some() {
                objects.due(group, from.as_ref())
            } else {
                let left = namespaces.names().map(Key::Namespace);
                let others = published.names().map(Key::Published).chain([Key::Export]);
                others.chain(left).collect()
            };
            keys.into_iter().map(|key| (key, Class::Normal)).collect::<Vec<_>>()
        }) {}
        let running = &self.taken;
        let shards = self.shards.numbers().map(Side::Shard);
        // A shard that answers nothing keeps what is done there until it counts as down.
        let may = |side| {
            let at = |shard: &Side| running.at(*shard);
            !matches!(side, Side::Shard(_)) || share::may_begin(&side, shards.clone(), AT_ONCE, free, at)
        };
        // As much as it has stays free for others: of many, each gets its part, and one alone gets half.
        let rank = |key: &Key| match running.beside(key) {
            had if had < free && !running.is_held(key, now) => had,
            _ => NOT_NOW,
        };
        let taken = self.queue.take_at(self.now, Class::Last, rank, may)?;
        self.taken.begins(&taken.0, now);
        Some(taken)
    }

    /// Begins with something whose turn it is.
    fn begin(&mut self, key: &Key, at_hand: Option<AtHand>) {
        match key {
            Key::Published(name) => {
                if !self.published.are_read() || self.published.may(name) == May::Wait {
                    return self.is_done(key, Done::NotYet(LATER));
                }
                let parts = self.settings.parts;
                // What another agent has published can be synced.
                let may = |it: &Rc<PublishedResource>| parts.schemas || parts.sync && it.schema_name.is_some();
                let is_free = self.published.may(name) == May::Publish;
                let free = self.published.get(name).filter(|_| is_free);
                let Some(resource) = free.clone().filter(may) else {
                    // Nobody waits for it: once another agent has published it, its status changes.
                    if let Some(resource) = free {
                        self.published.is_tried(name, &resource);
                    }
                    return self.is_done(key, Done::Finished);
                };
                self.publishing.insert(Rc::clone(name), Rc::clone(&resource));
                let job = PublishJob {
                    resource,
                    agent: Rc::clone(&self.settings.agent),
                    writes: parts.schemas,
                };
                self.outbox.request(Request::Publish(Rc::clone(name), job));
            }
            Key::Export if self.settings.parts.export => {
                let job = ExportJob {
                    name: Rc::clone(&self.settings.export),
                    agent: Rc::clone(&self.settings.agent),
                    published: self.published.free(),
                };
                self.outbox.request(Request::Export(job));
            }
            Key::Export => self.is_done(key, Done::Finished),
            Key::Object(primary) => {
                let route = self.published.route(primary.route);
                let (Some(route), Some(mut turn)) = (route, self.objects.turn(primary)) else {
                    return self.is_done(key, Done::Finished);
                };
                let has_related = !route.resource.related.is_empty();
                let may_place = turn.copy.is_none() || has_related;
                if may_place && !self.namespaces.begin_placing(primary) {
                    self.objects.is_due(primary);
                    return self.is_done(key, Done::NotYet(LATER));
                }
                let is_ending = self.objects.is_ending(primary);
                // By the rules of before it may have something too.
                if has_related || is_ending || self.uses.leaves(primary) {
                    turn.uses = self.uses.turn(primary, is_ending);
                    let lets_go = turn.uses.is_known && is_ending || self.uses.leaves(primary);
                    turn.uses.are_all_known = lets_go && !self.objects.has_untried(primary);
                }
                let job = Job {
                    route: Rc::clone(route),
                    agent: Rc::clone(&self.settings.agent),
                    namespace: Rc::clone(&self.settings.namespace),
                    applies: self.settings.applies,
                    at_hand,
                    turn,
                };
                self.running.begins(primary.route, &route.resource.name);
                self.report.counts_pass();
                self.outbox.request(Request::Sync(primary.clone(), Box::new(job)));
            }
            Key::Namespace(name) if self.objects.has_copy_in(name) => {
                self.namespaces.is_used(name);
                self.is_done(key, Done::Finished);
            }
            Key::Namespace(name) if self.namespaces.begin_clearing(self.now) => {
                let agent = Rc::clone(&self.settings.agent);
                self.outbox.request(Request::Clear(Rc::clone(name), agent));
            }
            Key::Namespace(_) => self.is_done(key, Done::NotYet(LATER)),
        }
    }
}

fn one_less<K: Ord>(counts: &mut BTreeMap<K, usize>, of: &K) {
    if let Some(count) = counts.get_mut(of) {
        *count -= 1;
        if *count == 0 {
            counts.remove(of);
        }
    }
}

#[cfg(test)]
mod tests;
