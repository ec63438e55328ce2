//! How the driver runs the agent.

use std::convert::Infallible;

use driver::{Course, Event, Moment, Role};
use tokio::time::Instant;

use super::Agent;
use super::border::{Answer, Feed, Request};
use crate::sides::Side;

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
        let answering: Vec<Side> = self
            .contacts
            .iter()
            .filter(|(_, standing)| standing.answers)
            .map(|(side, _)| *side)
            .collect();
        for side in answering {
            if self.queue.is_down(side) {
                let jitter = self.random.f64();
                self.queue.side_is_back(side, self.now, jitter);
            }
        }
        for primary in self.objects.released() {
            self.is_next(primary, None);
        }
        while let Some((key, at_hand)) = self.next() {
            self.begin(&key, at_hand);
        }
    }

    fn effects(&mut self) -> Vec<driver::Effect<Self>> {
        self.outbox.take()
    }

    fn next_due(&mut self) -> Option<Instant> {
        let queue = self.queue.next_due().filter(|_| self.taken.free(self.now) > 0);
        let others = [self.report.due(), self.taken.next_slow(self.now)];
        queue.into_iter().chain(others.into_iter().flatten()).min()
    }

    fn again(self, moment: Moment<Side>) -> Self {
        Self::new(self.settings, moment)
    }
}
