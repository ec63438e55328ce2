//! The loop: one event at a time, and what the role wants done because of it.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;

use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use super::requests::Requests;
use super::{Course, Effect, Event, Feed, Known, Perform, Priority, Role, Sides};
use crate::serve::HealthQuery;
use crate::source::{self, Reading, SourceEvent, SourceHandle, SourceId};

/// How many events fit into the channel from sources to the role. Few, since each may hold an object; sources wait when
/// it is full.
const CHANNEL: usize = 4;

/// The channels that sources send to, by when their events are taken.
struct Outlets {
    first: Sender<(SourceId, SourceEvent)>,
    second: Sender<(SourceId, SourceEvent)>,
    if_room: Sender<(SourceId, SourceEvent)>,
}

struct Inlets {
    first: Receiver<(SourceId, SourceEvent)>,
    second: Receiver<(SourceId, SourceEvent)>,
    if_room: Receiver<(SourceId, SourceEvent)>,
}

fn channels() -> (Outlets, Inlets) {
    let (first, first_in) = channel(CHANNEL);
    let (second, second_in) = channel(CHANNEL);
    let (if_room, if_room_in) = channel(CHANNEL);
    let inlets = Inlets {
        first: first_in,
        second: second_in,
        if_room: if_room_in,
    };
    let outlets = Outlets { first, second, if_room };
    (outlets, inlets)
}

impl Outlets {
    fn of(&self, priority: Priority) -> &Sender<(SourceId, SourceEvent)> {
        match priority {
            Priority::First => &self.first,
            Priority::Second => &self.second,
            Priority::IfRoom => &self.if_room,
        }
    }
}

/// A role, and what runs for it.
pub struct Shell<R: Role, P> {
    role: R,
    performer: P,
    /// The sides of the start.
    fixed: Sides<R::Side>,
    sides: Sides<R::Side>,
    outlets: Outlets,
    inlets: Inlets,
    /// Each with its side. A source ends when it is removed from here.
    sources: BTreeMap<SourceId, (R::Side, SourceHandle)>,
    requests: Requests<R::Side, R::Answer>,
}

/// Why a turn ends.
enum TurnEnd {
    /// It was asked to stop.
    Stopped,
    /// What runs belongs to a state that is void now.
    Again,
}

impl<R: Role, P: Perform<R>> Shell<R, P> {
    /// A role with the sides of the start.
    pub fn new(role: R, performer: P, sides: Sides<R::Side>) -> Self {
        let (outlets, inlets) = channels();
        Self {
            role,
            performer,
            fixed: sides.clone(),
            sides,
            outlets,
            inlets,
            sources: BTreeMap::new(),
            requests: Requests::new(),
        }
    }

    /// Runs the role until `stop` resolves, and answers questions about its state. Returns the role as it then is; requests
    /// in flight are abandoned. Needs a tokio `LocalSet`.
    pub async fn run(
        mut self,
        mut questions: Receiver<HealthQuery>,
        stop: impl Future<Output = ()>,
    ) -> Result<R, R::Fault> {
        tokio::pin!(stop);
        loop {
            match self.turn(&mut questions, stop.as_mut()).await? {
                TurnEnd::Stopped => return Ok(self.role),
                TurnEnd::Again => self = self.again(),
            }
        }
    }

    fn again(self) -> Self {
        let role = self.role.again(self.fixed.moment());
        Self::new(role, self.performer, self.fixed)
    }

    async fn turn(
        &mut self,
        questions: &mut Receiver<HealthQuery>,
        mut stop: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<TurnEnd, R::Fault> {
        loop {
            self.role.advance();
            for effect in self.role.effects() {
                self.act(effect);
            }
            let (due, has_room) = (self.role.next_due(), self.role.has_room());
            let event = tokio::select! {
                biased;
                () = &mut stop => return Ok(TurnEnd::Stopped),
                Some(question) = questions.recv() => Event::Asked(question),
                Some(answer) = self.requests.next(), if !self.requests.are_none() => Event::Answer(answer),
                Some(news) = self.inlets.first.recv() => self.reported(news),
                Some(news) = self.inlets.second.recv() => self.reported(news),
                Some(news) = self.inlets.if_room.recv(), if has_room => self.reported(news),
                () = come_due(due.unwrap_or_else(Instant::now)), if due.is_some() => Event::Due,
            };
            if self.role.handle(event, self.sides.moment())? == Course::Again {
                return Ok(TurnEnd::Again);
            }
        }
    }

    /// What a source has reported; nothing if that was before it was ended.
    fn reported(&self, (id, event): (SourceId, SourceEvent)) -> Event<R::Answer> {
        if self.sources.contains_key(&id) {
            Event::Source(id, event)
        } else {
            Event::Due
        }
    }

    fn act(&mut self, effect: Effect<R>) {
        match effect {
            Effect::Open(side, place) => {
                self.close(side);
                self.sides.open(side, self.performer.open(side, place));
            }
            Effect::Close(side) => self.close(side),
            Effect::Read(id, feed, reading) => self.read(id, feed, &reading),
            Effect::End(id) => drop(self.sources.remove(&id)),
            Effect::Known(id, name, known) => {
                if let Some((_, source)) = self.sources.get(&id) {
                    match known {
                        Known::At(version) => source.is_known(&name, version),
                        Known::Gone => source.is_gone(&name),
                        Known::Written(version) => source.is_written(version),
                    }
                }
            }
            Effect::Request(request) => self.requests.begin(request, &self.performer, &self.sides),
        }
    }

    fn close(&mut self, side: R::Side) {
        if self.sides.close(side) {
            self.sources.retain(|_, (of, _)| *of != side);
            self.requests.end_of(side);
        }
    }

    fn read(&mut self, id: SourceId, feed: R::Feed, reading: &Reading) {
        let side = feed.side();
        let Some(opened) = self.sides.get(side) else {
            self.sources.remove(&id);
            return;
        };
        let events = self.outlets.of(feed.priority()).clone();
        let source = source::start(&opened.server, reading, opened.mode, id, events);
        self.sources.insert(id, (side, source));
    }
}

/// Waits until then. What is due at once waits until all other tasks have had their turn: a role may do something long in
/// several turns of the loop, and meanwhile the Lease is renewed and probes are answered.
async fn come_due(due: Instant) {
    yield_now().await;
    sleep_until(due).await;
}
