//! A worked role, and all that one decides. Each object at the desk stands for a shelf, which is a server of its own: the
//! role opens it as a side, has a greeting written there each minute, and closes it when the object goes.

use std::collections::BTreeMap;
use std::mem;

use driver::serve::HealthQuery;
use driver::source::SourceEvent;
use driver::timers::Timers;
use driver::{Course, Event, Moment, Role};
use kube_lite::{Error, ObjectName};
use tokio::time::Instant;

use crate::work::{EVERY, Greet, Greeted, Shelves, Side};

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
        Self {
            now: moment.now,
            effects: vec![Effect::Read(0, Shelves, Shelves::reading())],
            timers: Timers::default(),
            shelves: BTreeMap::new(),
            next: 0,
            greeted: 0,
        }
    }

    fn on_source(&mut self, event: SourceEvent) -> Course {
        match event {
            // What it does not name is gone. A role with more to lose compares.
            SourceEvent::Begin(_) if !self.shelves.is_empty() => return Course::Again,
            SourceEvent::Object(object) | SourceEvent::Unchanged(object) => self.is_there(object.meta.object_name()),
            SourceEvent::Gone(object) => self.is_gone(&object.meta.object_name()),
            _ => {}
        }
        Course::On
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

    fn on_greeted(&mut self, Greeted(side, result): Greeted) -> Result<Course, Error> {
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
        Ok(Course::On)
    }
}

impl Role for Greeter {
    type Side = Side;
    type Location = ObjectName;
    type Feed = Shelves;
    type Request = Greet;
    type Answer = Greeted;
    type Fault = Error;

    fn handle(&mut self, event: Event<Greeted>, moment: Moment<Side>) -> Result<Course, Error> {
        self.now = moment.now;
        match event {
            Event::Source(_, event) => return Ok(self.on_source(event)),
            Event::Answer(greeted) => return self.on_greeted(greeted),
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
