//! What is answered to questions about the state of the syncer: health, readiness, metrics, the page for people.

use std::time::Duration;

use bytes::Bytes;
use driver::few::Few;
use driver::page::{self, Server};
use driver::serve::HealthQuery;
use tokio::time::Instant;

use super::{Model, on_site};
use crate::metrics::{ConfigProblems, Snapshot, render, status};
use crate::plan::Direction;
use crate::side::Side;

/// How long a page is served again: making one visits every object.
const FRESH: Duration = Duration::from_secs(1);

/// What was answered to probes, and what has to be remembered for it.
#[derive(Default)]
pub(super) struct Answered {
    /// The configs have been known and the first lists complete.
    ready: bool,
    metrics: Option<(Instant, Bytes)>,
    on_site: Option<(Instant, Bytes)>,
    /// When the last heartbeat reached the hub.
    pub(super) heartbeat: Option<Instant>,
}

/// A page that was made lately.
fn fresh(made: Option<&(Instant, Bytes)>, now: Instant) -> Option<Bytes> {
    let (at, page) = made?;
    (now.duration_since(*at) < FRESH).then(|| page.clone())
}

impl Model {
    pub(super) fn on_question(&mut self, question: HealthQuery) {
        // Whoever asked may not wait for the answer any more.
        match question {
            HealthQuery::Alive(answer) => drop(answer.send(())),
            HealthQuery::Ready(answer) => drop(answer.send(self.readiness())),
            HealthQuery::Metrics { now, answer } => {
                let page = fresh(self.answered.metrics.as_ref(), self.now).unwrap_or_else(|| self.metrics(now));
                drop(answer.send(page));
            }
            HealthQuery::Page { now, answer } => {
                let page = fresh(self.answered.on_site.as_ref(), self.now).unwrap_or_else(|| self.on_site(now));
                drop(answer.send(page));
            }
            HealthQuery::Status { now, answer } => drop(answer.send(status(&self.snapshot(now), now))),
        }
    }

    /// Once it was ready it stays so: an outage is no reason to restart it, and a new config does not make it unready.
    fn readiness(&mut self) -> Result<(), &'static str> {
        if !self.answered.ready {
            if !self.selecting.are_known() || self.record.saved.is_none() {
                return Err("the configs are not known yet\n");
            }
            if !self.has_read_all() {
                return Err("the first lists are not complete yet\n");
            }
            self.answered.ready = true;
        }
        Ok(())
    }

    fn on_site(&mut self, now: Duration) -> Bytes {
        let (missing, snapshot) = (self.readiness().err(), self.snapshot(now));
        let page = Bytes::from(on_site::render(self, &snapshot, missing, now));
        self.answered.on_site = Some((self.now, page.clone()));
        page
    }

    fn metrics(&mut self, now: Duration) -> Bytes {
        let snapshot = self.snapshot(now);
        let servers = [Side::Hub, Side::Edge].map(|side| Server {
            side: side.word(),
            standing: self.sides.of(side).contact.clone(),
        });
        let moment = page::Now {
            at: self.now,
            since_1970: now,
        };
        let page = Bytes::from(render(self.report.counters(), &snapshot, &servers, moment));
        self.answered.metrics = Some((self.now, page.clone()));
        page
    }

    /// How many objects are synced in each direction, and how many are not.
    pub(super) fn count_objects(&self) -> Few<Direction, (usize, usize)> {
        let mut objects: Few<Direction, (usize, usize)> = Few::default();
        for state in self.types.values() {
            let (synced, out_of_sync) = objects.or_default(state.plan.direction);
            let (more_synced, more_out_of_sync) = state.inventory.count_synced();
            *synced += more_synced;
            *out_of_sync += more_out_of_sync;
        }
        objects
    }

    pub(super) fn snapshot(&mut self, now: Duration) -> Snapshot {
        let objects = self.count_objects();
        let statuses_contested = self
            .types
            .values()
            .map(|state| state.inventory.count_statuses(|status| status.has_rival(self.now)))
            .sum();
        let is_up = |side: &Side| {
            let state = self.sides.of(*side);
            state.contact.answers && !state.answering.is_silent()
        };
        let not_served = self.selecting.missing.iter().chain(&self.selecting.unsure);
        let ids = self.sides.ids();
        Snapshot {
            up: [Side::Hub, Side::Edge].into_iter().filter(is_up).collect(),
            objects,
            queue_length: self.queue.len(),
            queue_capacity: self.settings.queue_capacity,
            queue_overflowed: self.queue.overflowed().count(),
            queue_oldest: self
                .queue
                .oldest()
                .map_or(Duration::ZERO, |since| self.now.duration_since(since)),
            held: self.guard.held_by_reason(&self.types),
            statuses_contested,
            config_problems: ConfigProblems {
                invalid: self.selecting.problems.len(),
                types_not_served: not_served.filter(|missing| missing.is_reported()).count(),
                namespaces_missing: self.selected_namespaces.count_lacking(),
            },
            conflicts: self.report.conflicts(),
            failing: self.report.failing(),
            credentials_end: ids
                .iter()
                .filter_map(|&side| Some((side, self.sides.of(side).contact.credentials_end?)))
                .collect(),
            silent: ids
                .iter()
                .filter_map(|&side| Some((side, self.sides.of(side).answering.silent_for(self.now)?)))
                .collect(),
            refusing: ids
                .iter()
                .copied()
                .filter(|&side| self.sides.of(side).answering.is_refusing())
                .collect(),
            last_heartbeat: self
                .answered
                .heartbeat
                .map(|at| now.saturating_sub(self.now.duration_since(at))),
        }
    }
}
