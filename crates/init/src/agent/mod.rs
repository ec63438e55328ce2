//! The role `init` as plain data: which targets there are, who waits for their initializers, and what is done next.
//!
//! ```text
//! InitTargets ──► types ──► initializers ──► shards ──► workspaces that wait ──► queue ──► fill, release
//! ```
//!
//! Promises: a workspace is let go only by an initializer all of whose targets were served to their end, as they are at that
//! time; a target that may be of the same type, and of which that is not known yet, is waited for.

mod border;
mod facts;
mod finished;
mod group;
mod heard;
mod lines;
mod metrics;
mod references;
mod report;
mod serving;
mod status;
mod targets;
mod waits;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use driver::outbox::Outbox;
use driver::page;
use driver::serve::HealthQuery;
use driver::source::{Reading, Style};
use driver::{Course, Event, Moment, Role};
use kube_lite::{Error, Standing};
use tokio::time::Instant;

pub(crate) use self::border::{Answer, Feed, Request};
use self::group::{Group, Turn};
pub(crate) use self::metrics::render_standby;
pub(crate) use self::references::TypeName;
use self::references::{Known, References};
use self::report::Report;
pub(crate) use self::report::{NO_TYPE, Subject, advice};
use self::status::Statuses;
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
    outbox: Outbox<Self>,
    targets: Targets,
    references: References,
    groups: BTreeMap<Rc<str>, Group>,
    next_shard: u32,
    /// The initializers of which another target may be, so that it is not known yet what is wanted.
    unsettled: BTreeSet<Rc<str>>,
    /// Where the sides are, for messages.
    contacts: Vec<(Side, Standing)>,
    report: Report,
    statuses: Statuses,
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
            statuses: Statuses::default(),
            settings,
        };
        let style = agent.settings.selector.clone().map_or(Style::Whole, Style::Labelled);
        let targets = Reading::of_all(kcp::init_targets(), style);
        agent.outbox.read(Feed::Targets, targets);
        let templates = Reading::of_all(kcp::init_templates(), Style::Metadata);
        agent.outbox.read(Feed::Templates, templates);
        agent
    }

    fn answered(&mut self, answer: Answer) {
        match answer {
            Answer::Filled(key, filled) => self.filled(&key, filled),
            Answer::Released(key, result) => self.released(&key, result),
            Answer::Recorded(Ok(())) => {}
            Answer::Recorded(Err(error)) => lines::is_unrecorded(&error),
            Answer::Examined(name, changes, trouble) => self.statuses.is_examined(&name, changes, trouble),
            Answer::StatusWritten(name, result) => {
                let is_off = self.statuses.is_written(&name, result.as_ref(), self.now);
                if let Err(error) = &result {
                    lines::is_untold(&name, error, is_off);
                }
            }
        }
    }

    fn filled(&mut self, key: &Key, filled: Filled) {
        let Some((initializer, group)) = group_of(&mut self.groups, key) else {
            return;
        };
        group.gets(key, filled.path, filled.created);
        let (turn, trouble) = match filled.outcome {
            Outcome::Complete(place) if group.is_complete_now(key) && !self.unsettled.contains(initializer) => {
                let release = Request::Release(key.clone(), Rc::clone(initializer), place);
                self.outbox.request(release);
                return;
            }
            Outcome::Complete(_) => (Turn::Again, None),
            Outcome::Gone => (Turn::Released(None), None),
            Outcome::Waits(so_far) => {
                let trouble = so_far.trouble.clone();
                group.has_come(key, so_far);
                (Turn::Waits, trouble)
            }
            Outcome::Fails(trouble) => (Turn::Fails, Some(trouble)),
            Outcome::Unreachable(side, error) => {
                lines::is_unanswered(key, &error);
                (Turn::Unreachable(side), None)
            }
        };
        self.ends(key, turn, trouble);
    }

    fn released(&mut self, key: &Key, result: Result<Released, Error>) {
        let (turn, trouble) = match result {
            Ok(Released::At(version)) => (Turn::Released(Some(version)), None),
            Ok(Released::Before) => (Turn::Released(None), None),
            Err(error) if error.is_unreachable() => (Turn::Unreachable(key.shard), None),
            Err(error) => (Turn::Fails, Some(Trouble::of_workspace(Why::Kept(error)))),
        };
        self.ends(key, turn, trouble);
    }

    /// A workspace's turn is over.
    fn ends(&mut self, key: &Key, turn: Turn, trouble: Option<Trouble>) {
        let Some((initializer, group)) = group_of(&mut self.groups, key) else {
            return;
        };
        let Some(ended) = group.ends(key, turn, self.now, self.random.f64()) else {
            return;
        };
        if turn == Turn::Fails {
            self.report.counts_failure(&group.targets);
        }
        if let Turn::Released(Some(_)) = turn {
            self.report.is_initialized(key, initializer, &group.targets, &ended);
        }
        if !ended.is_there || matches!(turn, Turn::Released(_)) {
            self.report.is_over(&Subject::Workspace(key.clone()), self.now);
        } else if let Some(trouble) = trouble {
            let is_early = turn == Turn::Waits && ended.lasted < PATIENCE;
            let record = self.report.has_trouble(key, &ended.path, &trouble, is_early, self.now);
            if let Some(record) = record {
                self.outbox.request(Request::Record(record));
            }
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
                let servers = page::Server::all_of(&self.contacts, &[(Side::Config, "kcp")]);
                let (counters, failing) = (self.report.counters(), self.report.failing());
                let text = metrics::render(counters, &self.groups, failing, &servers, now);
                drop(answer.send(text.into()));
            }
            // It has no such page.
            HealthQuery::Page { answer, .. } => drop(answer),
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
        if !self.targets.are_read() {
            Some("the InitTargets are not read yet\n")
        } else if known.any(|known| *known == Known::Nothing) {
            Some("the types of the InitTargets are not read yet\n")
        } else {
            None
        }
    }
}

impl Role for Agent {
    type Side = Side;
    type Location = crate::sides::Location;
    type Feed = Feed;
    type Request = Request;
    type Answer = Answer;
    type Fault = Infallible;

    fn handle(&mut self, event: Event<Answer>, moment: Moment<Side>) -> Result<Course, Infallible> {
        self.now = moment.now;
        self.contacts = moment.contacts;
        match event {
            Event::Answer(answer) => {
                self.statuses.touch(self.now);
                self.answered(answer);
            }
            Event::Source(id, event) => {
                self.statuses.touch(self.now);
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
        self.tell_statuses();
        let answering = self.contacts.iter().filter(|(_, standing)| standing.answers);
        let answering: Vec<Side> = answering.map(|(side, _)| *side).collect();
        for (initializer, group) in &mut self.groups {
            group.answer(answering.iter().copied(), self.now, self.random.f64());
            if self.unsettled.contains(initializer) {
                continue;
            }
            while let Some(key) = group.next(self.now) {
                let request = if let Some(place) = group.place_to_release(&key) {
                    Request::Release(key, Rc::clone(initializer), place)
                } else {
                    let (so_far, is_whole) = group.so_far(&key);
                    let job = Job {
                        initializer: Rc::clone(initializer),
                        targets: Rc::clone(&group.targets),
                        so_far,
                        is_whole,
                    };
                    Request::Fill(key, job)
                };
                self.outbox.request(request);
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
        groups.chain(self.report.due()).chain(self.statuses.due()).min()
    }

    fn again(self, moment: Moment<Side>) -> Self {
        Self::new(self.settings, moment)
    }
}

fn group_of<'a>(groups: &'a mut BTreeMap<Rc<str>, Group>, key: &Key) -> Option<(&'a Rc<str>, &'a mut Group)> {
    groups.iter_mut().find(|(_, group)| group.has(key.shard))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod seeds_tests;
