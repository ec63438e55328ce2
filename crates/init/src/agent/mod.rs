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
mod heard;
mod lines;
mod metrics;
mod outbox;
mod references;
mod report;
mod serving;
mod targets;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use driver::serve::HealthQuery;
use driver::source::Style;
use driver::{Course, Event, Moment, Role};
use kube_lite::{Error, Standing};
use tokio::time::Instant;

pub(crate) use self::border::{Answer, Feed, Record, Request};
use self::group::{Group, Turn};
pub(crate) use self::metrics::render_standby;
use self::outbox::Outbox;
pub(crate) use self::references::TypeName;
use self::references::{Known, References};
use self::report::Report;
pub(crate) use self::report::{Subject, advice};
use self::targets::Targets;
pub(crate) use self::targets::type_of;
use crate::fill::{Filled, Job, Outcome, Released, Trouble, Why};
use crate::kcp;
use crate::sides::{Key, Side};

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
    outbox: Outbox,
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
            outbox: Outbox::default(),
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
        agent.outbox.read(Feed::Targets, kcp::init_targets(), None, style);
        agent
            .outbox
            .read(Feed::Templates, kcp::init_templates(), None, Style::Metadata);
        agent
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
                self.outbox.request(Request::Release(key, initializer, place));
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
        if let Some(record) = record {
            self.outbox.request(Request::Record(record));
        }
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
    type Place = crate::sides::Place;
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
                if let Some(feed) = self.outbox.feed(id) {
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
                self.outbox.request(Request::Fill(key, job));
            }
        }
    }

    fn effects(&mut self) -> Vec<Effect> {
        self.outbox.take()
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

#[cfg(test)]
mod tests;

#[cfg(test)]
mod seeds_tests;
