//! A worked role, and all that one consists of. Each object at the desk stands for a shelf, which is a server of its
//! own: the role opens it as a side, has a greeting written there each minute, and closes it when the object goes.

use std::collections::BTreeMap;
use std::mem;
use std::rc::Rc;
use std::time::Duration;

use driver::serve::HealthQuery;
use driver::source::{Mode, Reading, SourceEvent, Style};
use driver::timers::Timers;
use driver::{self, Course, Event, Moment, Opened, Perform, Priority, Role, Servers};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use kube_lite::meta::Meta;
use kube_lite::{Cluster, Content, Error, ObjectName, ResourceType, Scope};
use tokio::time::Instant;

/// The time between two greetings.
pub const EVERY: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    Desk,
    Shelf(u32),
}

/// What is read: the objects at the desk.
#[derive(Clone, Copy)]
pub struct Shelves;

impl driver::Feed<Side> for Shelves {
    fn side(self) -> Side {
        Side::Desk
    }

    fn priority(self) -> Priority {
        Priority::First
    }
}

/// Write a greeting at a shelf.
pub struct Greet(Side);

/// What came of that.
pub struct Greeted(Side, Result<(), Error>);

type Effect = driver::Effect<Greeter>;

pub struct Greeter {
    now: Instant,
    effects: Vec<Effect>,
    /// When each shelf is greeted.
    timers: Timers<Side>,
    shelves: BTreeMap<ObjectName, Side>,
    next: u32,
    /// How many greetings were written.
    pub greeted: usize,
}

impl Greeter {
    pub fn new(moment: &Moment<Side>) -> Self {
        let reading = Reading {
            resource: ResourceType::config_maps(),
            scope: Scope::default(),
            style: Style::Whole,
        };
        Self {
            now: moment.now,
            effects: vec![Effect::Read(0, Shelves, reading)],
            timers: Timers::default(),
            shelves: BTreeMap::new(),
            next: 0,
            greeted: 0,
        }
    }

    fn is_there(&mut self, name: ObjectName) {
        if !self.shelves.contains_key(&name) {
            let side = Side::Shelf(self.next);
            self.next += 1;
            self.effects.push(Effect::Open(side, name.clone()));
            self.timers.set(side, self.now);
            self.shelves.insert(name, side);
        }
    }

    fn is_gone(&mut self, name: &ObjectName) {
        if let Some(side) = self.shelves.remove(name) {
            self.effects.push(Effect::Close(side));
            self.timers.forget(side);
        }
    }

    fn reported(&mut self, event: SourceEvent) -> Result<Course, Error> {
        let named = |object: &[u8]| <Meta>::parse(object).map(|meta| meta.object_name());
        match event {
            // What it does not name is gone. A role with more to lose compares.
            SourceEvent::Begin(_) if !self.shelves.is_empty() => return Ok(Course::Again),
            SourceEvent::Object(object) | SourceEvent::Unchanged(object) => self.is_there(named(&object)?),
            SourceEvent::Gone(object) => self.is_gone(&named(&object)?),
            _ => {}
        }
        Ok(Course::On)
    }
}

impl Role for Greeter {
    type Side = Side;
    type Place = ObjectName;
    type Feed = Shelves;
    type Request = Greet;
    type Answer = Greeted;
    type Fault = Error;

    fn handle(&mut self, event: Event<Greeted>, moment: Moment<Side>) -> Result<Course, Error> {
        self.now = moment.now;
        match event {
            Event::Source(_, event) => return self.reported(event),
            Event::Answer(Greeted(side, result)) => {
                self.timers.ends(side);
                match result {
                    Ok(()) => {
                        self.greeted += 1;
                        self.timers.succeeds(side);
                        self.timers.set(side, self.now + EVERY);
                    }
                    Err(error) if error.is_forbidden() => return Err(error),
                    Err(_) => self.timers.retry(side, self.now, 0.5),
                }
            }
            Event::Asked(HealthQuery::Alive(answer)) => drop(answer.send(())),
            Event::Asked(_) | Event::Due => {}
        }
        Ok(Course::On)
    }

    fn advance(&mut self) {
        for &side in self.shelves.values() {
            if self.timers.fires(side, self.now) {
                self.timers.starts(side);
                self.effects.push(Effect::Request(Greet(side)));
            }
        }
    }

    fn effects(&mut self) -> Vec<Effect> {
        mem::take(&mut self.effects)
    }

    fn next_due(&mut self) -> Option<Instant> {
        self.timers.next(|_| true)
    }

    fn again(self, moment: Moment<Side>) -> Self {
        Self::new(&moment)
    }
}

/// What talks to the sides: knows the servers.
pub struct Hands(pub Rc<dyn Fn(&ObjectName) -> Cluster>);

impl Perform<Greeter> for Hands {
    fn open(&self, _side: Side, name: ObjectName) -> Opened {
        let (server, mode) = (Rc::new(self.0(&name)), Mode::Watch);
        Opened { server, mode }
    }

    fn perform(&self, Greet(side): Greet, servers: &mut Servers<'_, Side>) -> Option<LocalBoxFuture<'static, Greeted>> {
        let there = servers.at(side)?;
        Some(async move { Greeted(side, greet(&there).await) }.boxed_local())
    }
}

async fn greet(shelf: &Cluster) -> Result<(), Error> {
    const GREETING: &str =
        r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"hello","namespace":"default"}}"#;
    let name = ObjectName::new("default", "hello");
    let (resource, body) = (ResourceType::config_maps(), GREETING.into());
    shelf.apply(&resource, &name, body, Content::Metadata).await.map(drop)
}
