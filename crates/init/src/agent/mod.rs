//! The role `init` as plain data: which targets there are, who waits for their initializers, and what is done next.
//!
//! ```text
//! InitTargets ──► types ──► initializers ──► shards ──► workspaces that wait ──► queue ──► fill, release
//! ```
//!
//! Promises: a workspace is let go only by an initializer all of whose targets were served to their end, as they are at that
//! time; a target that may be of the same type, and of which that is not known yet, is waited for.

mod border;
mod group;
mod lines;
mod metrics;
mod references;
mod report;
mod targets;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::mem;
use std::rc::Rc;
use std::time::Duration;

use driver::serve::HealthQuery;
use driver::source::{Reading, SourceEvent, SourceId, Style};
use driver::{Course, Event, Moment, Role};
use kube_lite::meta::Meta;
use kube_lite::{Error, ResourceType, Scope, Standing};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

pub(crate) use self::border::{Answer, Feed, Key, Place, Record, Released, Request, Side};
use self::group::{Group, Turn};
pub(crate) use self::metrics::render_standby;
pub(crate) use self::references::TypeName;
use self::references::{Known, References};
use self::report::Report;
pub(crate) use self::report::{Subject, advice};
use self::targets::Targets;
pub(crate) use self::targets::type_of;
use crate::fill::{Filled, Job, Outcome, Trouble, Why};
use crate::kcp::{self, CLUSTER, WorkspaceType};
use crate::kinds::InitTarget;

type Effect = driver::Effect<Agent>;

/// A workspace may wait for so long for what others make before that is worth a line.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the agent was started with.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Which targets are served, as a label selector; all if there is none.
    pub(crate) selector: Option<Rc<str>>,
    /// The workspace that has the targets, for those that do not say so themselves.
    pub(crate) config_workspace: Rc<str>,
    /// Where random numbers begin.
    pub(crate) seed: u64,
}

/// See the module's doc.
pub(crate) struct Agent {
    settings: Settings,
    now: Instant,
    random: fastrand::Rng,
    effects: Vec<Effect>,
    sources: BTreeMap<SourceId, Feed>,
    next_source: SourceId,
    targets: Targets,
    references: References,
    groups: BTreeMap<Rc<str>, Group>,
    next_shard: u32,
    /// The initializers of which another target may be, so that it is not known yet what is wanted.
    unsettled: BTreeSet<Rc<str>>,
    /// Where the sides are, for messages.
    contacts: Vec<(Side, Standing)>,
    report: Report,
}

impl Agent {
    /// One that knows nothing yet.
    pub(crate) fn new(settings: Settings, moment: Moment<Side>) -> Self {
        let mut agent = Self {
            now: moment.now,
            random: fastrand::Rng::with_seed(settings.seed),
            effects: Vec::new(),
            sources: BTreeMap::new(),
            next_source: 0,
            targets: Targets::default(),
            references: References::default(),
            groups: BTreeMap::new(),
            next_shard: 0,
            unsettled: BTreeSet::new(),
            contacts: moment.contacts,
            report: Report::default(),
            settings,
        };
        let style = agent.settings.selector.clone().map_or(Style::Whole, Style::Labelled);
        agent.read(Feed::Targets, kcp::init_targets(), None, style);
        agent.read(Feed::Templates, kcp::init_templates(), None, Style::Metadata);
        agent
    }

    fn read(&mut self, feed: Feed, resource: ResourceType, name: Option<Rc<str>>, style: Style) {
        let id = self.next_source;
        self.next_source += 1;
        self.sources.insert(id, feed);
        let scope = Scope { namespace: None, name };
        let reading = Reading { resource, scope, style };
        self.effects.push(Effect::Read(id, feed, reading));
    }

    /// A side is there no longer, nor what was read there.
    fn close(&mut self, side: Side, feed: Feed) {
        self.effects.push(Effect::Close(side));
        self.sources.retain(|_, other| *other != feed);
    }

    fn reported(&mut self, feed: Feed, event: SourceEvent) {
        match &event {
            SourceEvent::Down(error) => {
                if let Some(subject) = self.subject(feed) {
                    let place = self.place_of(feed);
                    self.report.is_unreadable(&subject, error, &place, self.now);
                }
            }
            SourceEvent::Up => {
                if let Some(subject) = self.subject(feed) {
                    self.report.is_readable(&subject, self.now);
                }
            }
            _ => {}
        }
        match feed {
            Feed::Targets => self.of_targets(event),
            Feed::Templates => self.of_templates(&event),
            Feed::Type(number) => self.of_type(number, event),
            Feed::Clusters(number) => self.of_clusters(Side::Shard(number), event),
        }
    }

    /// What is read by a feed, for messages.
    fn subject(&self, feed: Feed) -> Option<Subject> {
        Some(match feed {
            Feed::Targets => Subject::Targets,
            Feed::Templates => Subject::Templates,
            Feed::Type(number) => Subject::Type(self.references.named(number)?.clone()),
            Feed::Clusters(number) => {
                let (initializer, _) = self.groups.iter().find(|(_, group)| group.has(Side::Shard(number)))?;
                Subject::Clusters(Rc::clone(initializer), number)
            }
        })
    }

    fn place_of(&self, feed: Feed) -> Rc<kube_lite::Place> {
        let side = driver::Feed::side(feed);
        let found = self.contacts.iter().find(|(other, _)| *other == side);
        found
            .map(|(_, standing)| Rc::clone(&standing.place))
            .unwrap_or_default()
    }

    fn of_targets(&mut self, event: SourceEvent) {
        let has_changed = match event {
            SourceEvent::Begin(_) => self.targets.begin(),
            SourceEvent::Object(object) => match self.targets.is_there(&object) {
                Ok(has_changed) => has_changed,
                Err(error) => {
                    lines::is_no_target(&error);
                    false
                }
            },
            SourceEvent::Gone(object) => self.targets.is_gone(&object),
            SourceEvent::Complete(_) => self.targets.is_complete(),
            SourceEvent::Unchanged(_) | SourceEvent::Up | SourceEvent::Down(_) => false,
        };
        if has_changed && self.targets.are_read() {
            self.follow_types();
        }
    }

    /// Follows the types that targets name.
    fn follow_types(&mut self) {
        let config = &self.settings.config_workspace;
        let wanted: BTreeSet<_> = self
            .targets
            .all()
            .map(|target| targets::type_of(target, config))
            .collect();
        let change = self.references.follow(&wanted);
        for (number, name) in change.end {
            self.close(Side::Type(number), Feed::Type(number));
            self.report.is_over(&Subject::Type(name), self.now);
        }
        for (number, name) in change.begin {
            self.effects
                .push(Effect::Open(Side::Type(number), Place::Workspace(name.workspace)));
            self.read(
                Feed::Type(number),
                kcp::workspace_types(),
                Some(name.name),
                Style::Whole,
            );
        }
        self.regroup();
    }

    fn of_type(&mut self, number: u32, event: SourceEvent) {
        let has_changed = match event {
            SourceEvent::Begin(_) => {
                self.references.begins(number);
                false
            }
            SourceEvent::Object(object) => match parsed::<WorkspaceType>(&object) {
                Ok(found) => {
                    self.renew_types(number);
                    self.references.is_there(number, &found)
                }
                Err(_) => self.references.is_unreadable(number),
            },
            SourceEvent::Gone(_) => self.references.is_gone(number),
            SourceEvent::Complete(_) => self.references.is_complete(number),
            // Anything else passes, and what the target wants is not known until then.
            SourceEvent::Down(error) => {
                let lasts = error.status().is_some_and(|status| matches!(status.code, 403 | 404));
                lasts && self.references.is_unreadable(number)
            }
            SourceEvent::Unchanged(_) | SourceEvent::Up => false,
        };
        if has_changed {
            if let Some(name) = self.references.named(number) {
                self.report.type_is(name, self.references.known(name), self.now);
            }
            self.regroup();
        }
    }

    /// The type has changed, and so perhaps what is allowed in its workspaces: what has failed is tried at once.
    fn renew_types(&mut self, number: u32) {
        let name = self.references.named(number);
        let Some(Known::Type(known)) = name.map(|name| self.references.known(name)) else {
            return;
        };
        if let Some(group) = self.groups.get_mut(&known.initializer) {
            group.renews();
        }
    }

    /// A template is there, or not any more: whoever uses it is tried at once.
    fn of_templates(&mut self, event: &SourceEvent) {
        let (SourceEvent::Object(object) | SourceEvent::Gone(object)) = event else {
            return;
        };
        let Ok(meta) = <Meta>::parse(object) else { return };
        let workspace = meta.annotations.get(CLUSTER).map(String::as_str);
        for group in self.groups.values_mut() {
            let mut targets = group.targets.iter();
            if targets.any(|target| targets::uses(target, workspace, &meta.name)) {
                group.renews();
            }
        }
    }

    /// Puts together which initializer stands for which targets, and where those wait that have it.
    fn regroup(&mut self) {
        let config = &self.settings.config_workspace;
        let mut wanted: BTreeMap<Rc<str>, Wanted> = BTreeMap::new();
        for target in self.targets.all() {
            if let Known::Type(known) = self.references.known(&targets::type_of(target, config)) {
                let wanted = wanted.entry(Rc::clone(&known.initializer)).or_default();
                wanted.targets.push(Rc::clone(target));
                wanted.urls.extend(known.urls.iter().cloned());
            }
        }
        let over: Vec<Rc<str>> = self
            .groups
            .keys()
            .filter(|it| !wanted.contains_key(*it))
            .cloned()
            .collect();
        for initializer in over {
            let urls: Vec<Rc<str>> = self
                .groups
                .get(&initializer)
                .into_iter()
                .flat_map(Group::urls)
                .cloned()
                .collect();
            for url in urls {
                self.close_shard(&initializer, &url);
            }
            self.groups.remove(&initializer);
            lines::is_served_no_longer(&initializer);
        }
        for (initializer, wanted) in wanted {
            self.serve(&initializer, wanted);
        }
    }

    fn serve(&mut self, initializer: &Rc<str>, Wanted { targets, urls }: Wanted) {
        let group = self.groups.entry(Rc::clone(initializer)).or_insert_with(Group::new);
        if group.is_for(targets) {
            lines::is_served(initializer, &group.targets);
        }
        let over: Vec<Rc<str>> = group.urls().filter(|url| !urls.contains(*url)).cloned().collect();
        let new: Vec<Rc<str>> = urls
            .iter()
            .filter(|url| !group.urls().any(|known| known == *url))
            .cloned()
            .collect();
        for url in over {
            self.close_shard(initializer, &url);
        }
        for url in new {
            let number = self.next_shard;
            self.next_shard += 1;
            if let Some(group) = self.groups.get_mut(initializer) {
                group.open(Rc::clone(&url), Side::Shard(number));
            }
            self.effects.push(Effect::Open(Side::Shard(number), Place::Url(url)));
            self.read(Feed::Clusters(number), kcp::logical_clusters(), None, Style::Whole);
        }
    }

    fn close_shard(&mut self, initializer: &Rc<str>, url: &str) {
        let closed = self
            .groups
            .get_mut(initializer)
            .and_then(|group| group.close(url, self.now));
        let Some((side, workspaces)) = closed else { return };
        for key in workspaces {
            self.report.is_over(&Subject::Workspace(key), self.now);
        }
        if let Side::Shard(number) = side {
            self.close(side, Feed::Clusters(number));
            self.report
                .is_over(&Subject::Clusters(Rc::clone(initializer), number), self.now);
        }
    }

    fn of_clusters(&mut self, shard: Side, event: SourceEvent) {
        let Some(group) = self.groups.values_mut().find(|group| group.has(shard)) else {
            return;
        };
        let named = |object: &[u8]| {
            let meta = <Meta>::parse(object).ok()?;
            let cluster = meta.annotations.get(CLUSTER)?;
            let cluster: Rc<str> = cluster.as_str().into();
            Some((Key { shard, cluster }, meta.version_number()))
        };
        let gone = match event {
            SourceEvent::Begin(_) => {
                group.begins(shard);
                Vec::new()
            }
            SourceEvent::Object(object) | SourceEvent::Unchanged(object) => {
                if let Some((key, version)) = named(&object) {
                    group.is_there(key, version, self.now);
                }
                Vec::new()
            }
            SourceEvent::Gone(object) => {
                let key = named(&object).map(|(key, _)| key);
                key.into_iter().inspect(|key| group.is_gone(key)).collect()
            }
            SourceEvent::Complete(_) => group.is_complete(shard),
            SourceEvent::Up | SourceEvent::Down(_) => Vec::new(),
        };
        for key in gone {
            self.report.is_over(&Subject::Workspace(key), self.now);
        }
    }

    fn answered(&mut self, answer: Answer) {
        match answer {
            Answer::Filled(key, filled) => self.filled(key, filled),
            Answer::Released(key, result) => self.released(key, result),
            Answer::Recorded(Ok(())) => {}
            Answer::Recorded(Err(error)) => lines::is_unrecorded(&error),
        }
    }

    fn filled(&mut self, key: Key, filled: Filled) {
        let Some((initializer, group)) = group_of(&mut self.groups, &key) else {
            return;
        };
        self.report.created(&key, filled.path, filled.created);
        let turn = match filled.outcome {
            Outcome::Gone => Turn::Released(None),
            Outcome::Complete(place) if group.is_current(&key) && !self.unsettled.contains(&initializer) => {
                self.effects
                    .push(Effect::Request(Request::Release(key, initializer, place)));
                return;
            }
            Outcome::Complete(_) => Turn::Again,
            Outcome::Waits(trouble) => {
                let waited = group.ends(&key, Turn::Waits, self.now, self.random.f64());
                self.has_trouble(&key, &trouble, waited.is_some_and(|waited| waited < PATIENCE));
                return;
            }
            Outcome::Fails(trouble) => {
                self.report.counts_failure(&group.targets);
                group.ends(&key, Turn::Fails, self.now, self.random.f64());
                self.has_trouble(&key, &trouble, false);
                return;
            }
            Outcome::Unreachable(side, error) => {
                lines::is_unanswered(&key, &error);
                Turn::Unreachable(side)
            }
        };
        group.ends(&key, turn, self.now, self.random.f64());
    }

    fn has_trouble(&mut self, key: &Key, trouble: &Trouble, is_early: bool) {
        let record = self.report.has_trouble(key, trouble, is_early, self.now);
        self.effects
            .extend(record.map(|record| Effect::Request(Request::Record(record))));
    }

    fn released(&mut self, key: Key, result: Result<Released, Error>) {
        let Some((initializer, group)) = group_of(&mut self.groups, &key) else {
            return;
        };
        let jitter = self.random.f64();
        match result {
            Ok(released) => {
                let at = match released {
                    Released::At(version) => Some(version),
                    Released::Before => None,
                };
                let lasted = group
                    .ends(&key, Turn::Released(at), self.now, jitter)
                    .unwrap_or_default();
                if at.is_some() {
                    self.report.is_initialized(&key, &initializer, &group.targets, lasted);
                }
                self.report.is_over(&Subject::Workspace(key), self.now);
            }
            Err(error) if error.is_unreachable() => {
                let turn = Turn::Unreachable(key.shard);
                group.ends(&key, turn, self.now, jitter);
            }
            Err(error) => {
                self.report.counts_failure(&group.targets);
                group.ends(&key, Turn::Fails, self.now, jitter);
                self.has_trouble(&key, &Trouble::of_workspace(Why::Kept(error)), false);
            }
        }
    }

    fn asked(&mut self, question: HealthQuery) {
        // Whoever has asked may be gone.
        match question {
            HealthQuery::Alive(answer) => drop(answer.send(())),
            HealthQuery::Ready(answer) => drop(answer.send(self.missing().map_or(Ok(()), Err))),
            HealthQuery::Metrics { answer, .. } => {
                let text = metrics::render(self.report.counters(), &self.groups, self.report.failing());
                drop(answer.send(text.into()));
            }
            HealthQuery::Status { answer, .. } => {
                let waiting: usize = self.groups.values().map(Group::waiting).sum();
                let types = self.groups.len();
                drop(answer.send(format!("{types} types served, {waiting} workspaces waiting")));
            }
        }
    }

    /// What has to be known before it is ready, if something is missing.
    fn missing(&self) -> Option<&'static str> {
        let config = &self.settings.config_workspace;
        let mut known = self
            .targets
            .all()
            .map(|target| self.references.known(&targets::type_of(target, config)));
        match () {
            () if !self.targets.are_read() => Some("the InitTargets are not read yet\n"),
            () if known.any(|known| *known == Known::Nothing) => {
                Some("the types of the InitTargets are not read yet\n")
            }
            () => None,
        }
    }
}

impl Role for Agent {
    type Side = Side;
    type Place = Place;
    type Feed = Feed;
    type Request = Request;
    type Answer = Answer;
    type Fault = Infallible;

    fn handle(&mut self, event: Event<Answer>, moment: Moment<Side>) -> Result<Course, Infallible> {
        self.now = moment.now;
        self.contacts = moment.contacts;
        match event {
            Event::Answer(answer) => self.answered(answer),
            Event::Source(id, event) => {
                if let Some(&feed) = self.sources.get(&id) {
                    self.reported(feed, event);
                }
            }
            Event::Asked(question) => self.asked(question),
            Event::Due => {}
        }
        Ok(Course::On)
    }

    fn advance(&mut self) {
        self.report.advance(self.now);
        let answering = self.contacts.iter().filter(|(_, standing)| standing.answers);
        let answering: Vec<Side> = answering.map(|(side, _)| *side).collect();
        let unknown = unknown_types(&self.targets, &self.references, &self.settings.config_workspace);
        let is_unsettled = |initializer: &&Rc<str>| unknown.iter().any(|name| is_of(initializer, name));
        self.unsettled = self.groups.keys().filter(is_unsettled).cloned().collect();
        for (initializer, group) in &mut self.groups {
            group.answer(answering.iter().copied(), self.now, self.random.f64());
            if self.unsettled.contains(initializer) {
                continue;
            }
            while let Some(key) = group.next(self.now) {
                let job = Job {
                    initializer: Rc::clone(initializer),
                    targets: Rc::clone(&group.targets),
                };
                self.effects.push(Effect::Request(Request::Fill(key, job)));
            }
        }
    }

    fn effects(&mut self) -> Vec<Effect> {
        mem::take(&mut self.effects)
    }

    fn next_due(&mut self) -> Option<Instant> {
        let settled = self
            .groups
            .iter()
            .filter(|(initializer, _)| !self.unsettled.contains(*initializer));
        let groups = settled.filter_map(|(_, group)| group.next_due());
        groups.chain(self.report.due()).min()
    }

    fn again(self, moment: Moment<Side>) -> Self {
        Self::new(self.settings, moment)
    }
}

/// What an initializer stands for, and where those wait that have it.
#[derive(Default)]
struct Wanted {
    targets: Vec<Rc<InitTarget>>,
    urls: BTreeSet<Rc<str>>,
}

/// The names of types of which no server has said anything yet.
fn unknown_types(targets: &Targets, references: &References, config: &Rc<str>) -> BTreeSet<Rc<str>> {
    let types = targets.all().map(|target| targets::type_of(target, config));
    let unknown = types.filter(|name| *references.known(name) == Known::Nothing);
    unknown.map(|name| name.name).collect()
}

/// True if an initializer may be that of a type with this name.
fn is_of(initializer: &str, name: &str) -> bool {
    initializer.rsplit_once(':').is_some_and(|(_, of)| of == name)
}

fn group_of<'a>(groups: &'a mut BTreeMap<Rc<str>, Group>, key: &Key) -> Option<(Rc<str>, &'a mut Group)> {
    let mut all = groups.iter_mut();
    let (initializer, group) = all.find(|(_, group)| group.has(key.shard))?;
    Some((Rc::clone(initializer), group))
}

fn parsed<T: DeserializeOwned>(object: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(object).map_err(|error| Error::BadAnswer(error.to_string()))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod seeds_tests;
