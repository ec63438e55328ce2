//! What is reported to people: log lines, few and bounded, and what is counted for metrics.
//!
//! A failure is logged once when it begins and once when it ends, whatever happens in between; a reason that many
//! failures have in common, such as a missing permission, once for all of them. Changes are logged one line each while
//! they are few; a burst is logged as its first lines and a sum, and has few lines even if it never ends.

mod changes;
mod conflicts;
mod counters;
mod left_out;
mod lines;
mod not_synced;
mod old_versions;
mod subject;

use std::collections::HashSet;
use std::fmt::Display;
use std::time::Duration;

use driver::advice::{about_no_api, advice, shared_reason};
use driver::failures::{self, Failures, Note};
use driver::few::Few;
use kube_lite::logging::{self, LogReason, log_line};
use kube_lite::{Error, Place};
use log::Level;
use tokio::time::Instant;

use self::changes::{Changes, Word};
use self::left_out::Said;
use self::lines::{DRIFT, log_end, log_failure, log_sums, reason};
use self::old_versions::OldVersions;
use crate::side::Side;

pub use self::counters::{Counters, SYNC_ENDS};
pub use self::left_out::LeftOut;
pub use self::subject::{Subject, Topic, is_permission};

/// How long a server that is back may refuse what it allows later: it answers before it knows its roles, its types and its
/// storage.
const STARTING: Duration = Duration::from_secs(20);
/// How long a server may be too busy for something before that is news. What it refuses so is tried again, and mostly
/// gets through within a few tries.
const BUSY: Duration = Duration::from_secs(30);

/// The server that a failure comes from, as far as it is logged.
#[derive(Clone, Copy, Debug)]
pub struct Peer<'a> {
    /// Where it is.
    pub place: &'a Place,
    /// What answers instead of a Kubernetes API, if something else does.
    pub stranger: Option<&'a str>,
}

/// The state behind the lines: which streaks are open, and how many changes are not logged yet.
#[derive(Debug)]
pub struct Report {
    /// The time at which what is reported to it happens.
    now: Instant,
    /// The time of the wall clock, for people.
    clock: fn() -> String,
    failures: Failures<Subject>,
    /// When each side was last back.
    back: Few<Side, Instant>,
    /// Rules of the edge's owner that have refused something. That is intended, so it does not count as failing.
    refusals: HashSet<String>,
    /// Types whose statuses are contested, with the writer, of which that was logged.
    rivals: HashSet<String>,
    left_out: Said,
    old_versions: OldVersions,
    was_in_sync: bool,
    changes: Changes,
    counters: Counters,
}

impl Report {
    /// Nothing has happened yet. The clock gives the time in RFC 3339, for people.
    pub fn new(now: Instant, clock: fn() -> String) -> Self {
        Self {
            now,
            clock,
            failures: Failures::default(),
            back: Few::default(),
            refusals: HashSet::new(),
            rivals: HashSet::new(),
            left_out: Said::default(),
            old_versions: OldVersions::default(),
            was_in_sync: false,
            changes: Changes::default(),
            counters: Counters::default(),
        }
    }

    /// The report of an engine that follows another one in the same process: counters continue, failures begin again.
    #[must_use]
    pub fn of_the_next_turn(self) -> Self {
        Self {
            changes: self.changes,
            counters: self.counters,
            ..Self::new(self.now, self.clock)
        }
    }

    /// Sets the time of what is reported from now on.
    pub fn it_is(&mut self, now: Instant) {
        self.now = now;
    }

    /// Logs a change of a copy on that side. That it `corrects` what somebody else had done was logged when that was noticed.
    pub(crate) fn change(&mut self, side: Side, object: impl Display, (word, reason): Word, corrects: bool) {
        self.counters.wrote(side, word);
        if corrects {
            self.counters.corrected();
        }
        let level = if !corrects && self.changes.count(side, (word, reason), self.now) {
            Level::Info
        } else {
            Level::Debug
        };
        let keys: [(&str, &dyn Display); 2] = [("side", &side.word()), ("object", &object)];
        logging::write(level, module_path!(), reason, word, &keys);
    }

    /// Logs that somebody else has changed or deleted a copy on that side, which will be corrected. `manager` and `fields`
    /// are empty if that is not known. What is `damped` had a line that says so.
    pub fn drift(&mut self, side: Side, copy: &str, (message, manager, fields): (&str, &str, &str), damped: bool) {
        let is_news = !damped && self.changes.count(side, DRIFT, self.now);
        let level = if is_news { Level::Info } else { Level::Debug };
        let keys: [(&str, &dyn Display); 4] = [
            ("side", &side.word()),
            ("object", &copy),
            ("manager", &manager),
            ("fields", &fields),
        ];
        logging::write(level, module_path!(), LogReason::CopyDrifted, message, &keys);
    }

    /// Counts a copy that was synced; see [`Counters::synced`].
    pub fn synced(&mut self, side: Side, took: Duration) {
        self.counters.synced(side, took);
    }

    /// Counts a write that has no line.
    pub fn wrote(&mut self, side: Side, result: &'static str) {
        self.counters.wrote(side, result);
    }

    /// What has been counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How many things have failed and not worked since.
    pub fn failing(&self) -> usize {
        self.failures.count()
    }

    /// How many copies have somebody else's object in their place.
    pub fn conflicts(&self) -> usize {
        let notes = self.failures.notes();
        notes.filter(|(_, note)| note.reason == LogReason::Conflict).count()
    }

    /// True once it was logged that all is in sync.
    pub fn was_in_sync(&self) -> bool {
        self.was_in_sync
    }

    /// Logs that all that configs select was tried, with how many objects are synced in each direction, and how many are not.
    pub fn in_sync(&mut self, [downsync, upsync]: [usize; 2], open: usize) {
        self.was_in_sync = true;
        self.sum_up(true);
        let message = match open {
            0 => "in sync",
            _ => "in sync, except for what fails or waits",
        };
        let keys: [(&str, &dyn Display); 3] = [("downsync", &downsync), ("upsync", &upsync), ("out_of_sync", &open)];
        logging::write(Level::Info, module_path!(), LogReason::InSync, message, &keys);
    }

    /// Logs that the edge's owner does not allow an object, once for each reason, with its first object.
    pub fn refused(&mut self, object: &str, why: &str) {
        log_line!(
            Debug,
            ObjectDenied,
            "not allowed by the edge",
            object = object,
            rule = why
        );
        if self.refusals.insert(why.to_owned()) {
            log_line!(
                Warn,
                Denied,
                "not synced, because the edge does not allow it; further objects that this rule refuses have no line",
                object = object,
                rule = why
            );
        }
    }

    /// The same of a whole type. Copies of it that are there are preserved.
    pub fn denied(&mut self, resource: &str, why: &str) {
        if self.refusals.insert(why.to_owned()) {
            log_line!(
                Warn,
                Denied,
                "not synced, because the edge does not allow it; copies that are there are preserved as they are",
                resource = resource,
                rule = why
            );
        }
    }

    /// Logs, once for each type, that a side does not allow to list what may be left of one that no config selects. Nobody
    /// waits for it, so it does not count as failing.
    pub fn leaves_unread(&mut self, side: Side, resource: &str, error: &Error) {
        let subject = Subject::Thing(side, Topic::Watch, resource.to_owned());
        if !self.may_soon_pass(&subject, error) && self.refusals.insert(format!("{side:?} {resource}")) {
            log_line!(
                Warn,
                Forbidden,
                "what is left of a type that no config selects any more is preserved, as it may not be read",
                side = side.word(),
                resource = resource,
                error = error,
                advice = "grant that permission, and what is left is deleted; or delete it by hand"
            );
        }
    }

    /// Logs that the hub keeps nothing of the status of configs but the heartbeat.
    pub fn keeps_no_status(&mut self, kind: &str, error: &Error) {
        log_line!(
            Info,
            ConfigStatusNotKept,
            "the hub stores the heartbeat of configs alone, nothing of what is synced and what fails",
            side = "hub",
            kind = kind,
            error = error,
            advice = "apply the CRDs of this version at the hub; it is tried again after ten minutes, an hour, and each six hours"
        );
    }

    /// Logs that a part of an object is not synced, once for each type.
    pub fn leaves_out(&mut self, side: Side, resource: String, object: &str, what: LeftOut) {
        self.left_out.says(side, resource, object, what);
    }

    /// Logs, once for each streak, which versions that its origin has dropped the copy of a CRD keeps.
    pub fn keeps_versions(&mut self, side: Side, copy: &str, versions: &[String]) {
        self.old_versions.are(side, copy, versions);
    }

    /// Logs that something failed, if that is new. True if it is.
    pub fn failed(&mut self, subject: Subject, doing: &str, error: &Error, from: Peer<'_>) -> bool {
        let side = subject.side();
        self.counters.failed(side);
        let stranger = from.stranger.filter(|_| error.may_be_of_no_api());
        let subject = match stranger {
            Some(_) => Subject::Stranger(side),
            None if error.is_unauthorized() => Subject::Credentials(side),
            None => subject,
        };
        let text = error.to_string();
        let (reason, message) = reason(&subject, error);
        let line = if self.may_soon_pass(&subject, error) {
            self.failures.fails_for_now(&subject, self.now);
            None
        } else {
            let (kind, shared) = (failures::kind(error), shared_reason(error));
            let line = self.failures.fails(&subject, kind, shared, self.now);
            self.failures
                .note(&subject, reason, (doing, stranger.unwrap_or(&text)), self.clock);
            line
        };
        let Some(line) = line else {
            let [(key, name), (space, namespace)] = subject.keys();
            logging::write(
                Level::Debug,
                module_path!(),
                LogReason::StillFailing,
                "still failing",
                &[
                    ("side", &side.word()),
                    (key, &name),
                    (space, &namespace),
                    ("doing", &doing),
                    ("error", &text),
                ],
            );
            return false;
        };
        let (error, advice) = match stranger {
            Some(words) => (words, about_no_api(words, from.place)),
            None => (
                &*text,
                subject
                    .advice(error)
                    .map_or_else(|| advice(error, from.place), Into::into),
            ),
        };
        log_failure(
            &subject,
            (reason, message),
            line,
            &from.place.address,
            &[("doing", &doing), ("error", &error), ("advice", &advice)],
        );
        true
    }

    /// True for a failure that a server mostly causes for a moment: it has just come back, or is busy. It counts, and has a
    /// line if it lasts.
    fn may_soon_pass(&self, subject: &Subject, error: &Error) -> bool {
        if !matches!(subject, Subject::Thing(..)) || error.is_rejection() {
            return false;
        }
        let lasted = self.failures.lasts(subject, self.now).unwrap_or_default();
        let is_starting = |back: &Instant| self.now.duration_since(*back) < STARTING;
        let may_be_of_start = error.status().is_some() || matches!(error, Error::NotServedYet(_));
        error.is_too_many() && lasted < BUSY
            || may_be_of_start && self.back.get(subject.side()).is_some_and(is_starting)
    }

    /// Logs, once for each type and writer, that the syncer of another sync target writes the same statuses, with the first
    /// object.
    pub fn has_rival(&mut self, resource: &str, object: &str, manager: &str, gives_way: bool) {
        if self.rivals.insert(format!("{resource} {manager}")) {
            log_line!(
                Warn,
                StatusOfAnother,
                "the syncer of another sync target writes the status of the same objects; the hub keeps that of one of them",
                side = "hub",
                resource = resource,
                object = object,
                manager = manager,
                kept = if gives_way { "theirs" } else { "ours" },
                advice = "select these objects for one of the two edges, or give each edge a workspace of its own"
            );
        }
    }

    /// The configs have changed: what is still so gets another line.
    pub fn configs_changed(&mut self) {
        self.rivals.clear();
    }

    /// Logs that something works again, if it had failed. True if it had.
    pub fn works(&mut self, subject: &Subject) -> bool {
        let Some(ended) = self.failures.ends(subject, self.now) else {
            return false;
        };
        let level = if ended.is_logged { Level::Info } else { Level::Debug };
        log_end(subject, level, ended.lasted);
        if let Subject::Side(side) = subject {
            self.back.insert(*side, self.now);
        }
        true
    }

    /// The last failure of something that fails, unless it may soon pass.
    pub fn note_of(&self, subject: &Subject) -> Option<&Note> {
        self.failures.note_of(subject)
    }

    /// All that fails, with its last failure, in no order.
    pub fn notes(&self) -> impl Iterator<Item = (&Subject, &Note)> {
        self.failures.notes()
    }

    /// True if it has failed and not worked since.
    pub fn is_failing(&self, subject: &Subject) -> bool {
        self.failures.has(subject)
    }

    /// Drops a streak without a line: its subject is gone.
    pub fn clear(&mut self, subject: &Subject) {
        self.failures.clear(subject, self.now);
    }

    /// The same of each.
    pub fn clear_all<'a>(&mut self, subjects: impl IntoIterator<Item = &'a Subject>) {
        subjects.into_iter().for_each(|subject| self.clear(subject));
    }

    /// There is nothing more to do at once: sums up the changes that were not logged.
    pub fn idle(&mut self) {
        self.sum_up(true);
    }

    /// Logs how many changes had no line of their own, before the syncer ends.
    pub fn end(&mut self) {
        log_sums(self.changes.rest());
    }

    /// When [`Report::sum_up`] has something to log.
    pub fn due(&self) -> Option<Instant> {
        [self.changes.due(), self.failures.due()].into_iter().flatten().min()
    }

    /// Logs how many changes and failures had no line of their own, if it is time for that.
    pub fn sum_up(&mut self, idle: bool) {
        log_sums(self.changes.sum(idle, self.now));
        for (subject, time) in self.failures.steady(self.now) {
            log_end(&subject, Level::Info, time);
        }
        let failing = self.failures.count();
        if self.failures.are_to_be_summed_up(self.now) && failing > 0 {
            log_line!(
                Warn,
                MoreFailing,
                "more objects are failing than have lines of their own",
                failing = failing,
                advice = "see them at debug level"
            );
        }
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
