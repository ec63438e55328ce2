//! A worked role: how many changes one side has reported is written at the other, at most once a minute.

use std::convert::Infallible;
use std::time::Duration;

use driver::serve::HealthQuery;
use driver::source::{Reading, SourceEvent, Style};
use driver::timers::Timers;
use driver::{Course, Effect, Event, Feed, Moment, Opened, Perform, Priority, Role, Servers};
use futures_util::future::{FutureExt as _, LocalBoxFuture};
use kube_lite::{Content, ObjectName, ResourceType, Scope};
use tokio::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Counted,
    Reported,
}

/// A feed is the side that it reads: there is one, of the side that is counted.
impl Feed<Side> for Side {
    fn side(self) -> Side {
        self
    }
    fn priority(self) -> Priority {
        Priority::First
    }
}

pub struct Tally {
    now: Instant,
    changes: u64,
    timers: Timers<()>,
    effects: Vec<Effect<Self>>,
}

impl Tally {
    pub fn new(moment: &Moment<Side>) -> Self {
        let (resource, scope, style) = (ResourceType::config_maps(), Scope::default(), Style::Whole);
        let read = Effect::Read(0, Side::Counted, Reading { resource, scope, style });
        Self {
            now: moment.now,
            changes: 0,
            timers: Timers::default(),
            effects: vec![read, Effect::Request(0)],
        }
    }
}

impl Role for Tally {
    type Side = Side;
    type Location = Infallible; // It opens no side while it runs.
    type Feed = Side;
    type Request = u64;
    type Answer = ();
    type Fault = Infallible;

    fn handle(&mut self, event: Event<()>, moment: Moment<Side>) -> Result<Course, Infallible> {
        self.now = moment.now;
        match event {
            Event::Source(_, SourceEvent::Object(_) | SourceEvent::Gone(_)) => self.changes += 1,
            // Written or not: the next one says as much. `Timers::retry` is for what cannot wait.
            Event::Answer(()) => self.timers.set((), self.now + Duration::from_secs(60)),
            Event::Asked(HealthQuery::Alive(answer)) => drop(answer.send(())),
            _ => {}
        }
        Ok(Course::On)
    }
    fn advance(&mut self) {
        if self.timers.fires((), self.now) {
            self.effects.push(Effect::Request(self.changes));
        }
    }
    fn effects(&mut self) -> Vec<Effect<Self>> {
        std::mem::take(&mut self.effects)
    }
    fn next_due(&mut self) -> Option<Instant> {
        self.timers.next(|()| true)
    }
    fn again(self, moment: Moment<Side>) -> Self {
        Self::new(&moment)
    }
}

/// The work behind its requests.
pub struct Work;

impl Perform<Tally> for Work {
    fn open(&self, _side: Side, place: Infallible) -> Opened {
        match place {}
    }
    fn perform(&self, changes: u64, servers: &mut Servers<'_, Side>) -> Option<LocalBoxFuture<'static, ()>> {
        let (reported, resource) = (servers.at(Side::Reported)?, ResourceType::config_maps());
        let name = ObjectName::new("default", "tally");
        let head = r#""apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"tally","namespace":"default"}"#;
        let body = format!(r#"{{{head},"data":{{"changes":"{changes}"}}}}"#).into();
        let written = async move { reported.apply(&resource, &name, body, Content::Metadata).await };
        Some(written.map(drop).boxed_local())
    }
}
