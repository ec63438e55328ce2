//! What people get to see of the work: log lines, few and bounded, and figures ([`metrics`]).
//!
//! A failure is logged once when it begins and once when it ends, whatever happens in between; what many things have in
//! common that fail, such as a missing permission, once for all of them. Changes are told one line
//! each while they are few; a burst is told by its first lines and a sum, and has few lines also if it never ends.

mod advice;
mod changes;
mod failures;
pub mod metrics;
mod streak;

use std::collections::HashSet;
use std::fmt::Display;
use std::time::Duration;

use tokio::time::Instant;

use self::advice::{about_no_api, advice, shared_reason};
use self::changes::Changes;
use self::failures::{Failures, Line, STEADY};
use self::metrics::Counters;
use crate::cluster::{Error, Place, Side};
use crate::sync::job::Change;

/// What a streak of failures is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A whole side cannot be reached.
    Side(Side),
    /// A side does not accept the syncer's credentials, for whatever it asks.
    Credentials(Side),
    /// Something else than a Kubernetes API answers in the place of a side.
    Stranger(Side),
    /// Something named by this text on a side: an object or a type.
    Thing(Side, String),
}

impl Subject {
    /// The side that it is about.
    pub fn side(&self) -> Side {
        let (Self::Side(side) | Self::Credentials(side) | Self::Stranger(side) | Self::Thing(side, _)) = self;
        *side
    }
}

/// The server that a failure comes from, as far as people are told.
#[derive(Clone, Copy, Debug)]
pub struct Peer<'a> {
    /// Where it is.
    pub place: &'a Place,
    /// What answers instead of a Kubernetes API, if something else does.
    pub stranger: Option<&'a str>,
}

/// The state behind the lines: which streaks are open, and how many changes are not told yet.
#[derive(Debug)]
pub struct Report {
    /// The time at which what it is told of happens.
    now: Instant,
    failures: Failures,
    /// Rules of the edge's owner that have refused something. They do what they are there for, so nothing fails.
    refusals: HashSet<String>,
    /// What objects were told to wait for: namespaces, and copies that have their names.
    waited_for: HashSet<String>,
    changes: Changes,
    counters: Counters,
}

impl Report {
    /// Nothing has happened yet.
    pub fn new(now: Instant) -> Self {
        Self {
            now,
            failures: Failures::default(),
            refusals: HashSet::new(),
            waited_for: HashSet::new(),
            changes: Changes::default(),
            counters: Counters::default(),
        }
    }

    /// That of an engine that takes over from one in the same process: what was counted goes on, what fails it finds out.
    #[must_use]
    pub fn of_the_next_turn(self) -> Self {
        Self {
            counters: self.counters,
            ..Self::new(self.now)
        }
    }

    /// What it is told of from now on happens at this time.
    pub fn it_is(&mut self, now: Instant) {
        self.now = now;
    }

    /// Tells of a change of a copy on that side.
    pub fn change(&mut self, side: Side, object: impl Display, change: Change) {
        let word = match change {
            Change::Unchanged => return,
            Change::Created => "created",
            Change::Updated => "updated",
            Change::Adopted => "adopted",
            Change::MarkedHandsOff => "marked to be left alone",
            Change::Deleted => "deleted",
            Change::Released => "released",
            Change::Replaced => "replaced",
        };
        self.counters
            .wrote(side, if word.contains(' ') { "left_alone" } else { word });
        if self.changes.count(side, word, self.now) {
            log::info!("{word} at the {side} object={object}");
        } else {
            log::debug!("{word} at the {side} object={object}");
        }
    }

    /// Counts a write that no line tells of.
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

    /// Tells that somebody else's object has the place of a copy, if that is new: that of the syncer of the sync target
    /// `owner`, or of nobody that is known.
    pub fn conflict(&mut self, side: Side, object: &str, owner: Option<&str>) {
        let subject = Subject::Thing(side, object.to_owned());
        let why = format!("somebody else's object has its name owner={owner:?}");
        if self
            .failures
            .fails(&subject, streak::kind_of_words(&why), None, self.now)
            .is_none()
        {
            return;
        }
        if let Some(owner) = owner {
            log::warn!(
                "not synced to the {side}, because the syncer of another sync target has made the object that is there, which \
                 is left alone object={object} owner={owner:?} advice=\"take it out of one of the two configs; if the other \
                 syncer is gone for good, start this one with --former-sync-target-uid={owner}\""
            );
            return;
        }
        log::warn!(
            "not synced to the {side}, because an object of that name is there that the syncer has not made, which it \
             leaves alone object={object} advice=\"delete or rename one of the two, or take it out of the config\""
        );
    }

    /// Tells that the edge's owner does not allow an object, once for each reason, with its first object.
    pub fn refused(&mut self, object: &str, why: &str) {
        log::debug!("refused object={object} reason={why:?}");
        if self.refusals.insert(why.to_owned()) {
            log::warn!(
                "not synced, because the edge does not allow it object={object} reason={why:?}; others alike are not named"
            );
        }
    }

    /// The same of a whole type. Copies of it that are there are left alone.
    pub fn denied(&mut self, resource: &str, why: &str) {
        if self.refusals.insert(why.to_owned()) {
            log::warn!(
                "not synced, because the edge does not allow it resource={resource} reason={why:?}; copies of it that are there \
                 stay as they are"
            );
        }
    }

    /// Tells that something failed, if that is new. True if it is.
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
        let Some(line) = self
            .failures
            .fails(&subject, streak::kind(error), shared_reason(error), self.now)
        else {
            log::debug!("still failing doing={doing:?} subject={subject:?} error={text:?}");
            return false;
        };
        let note = match line {
            Line::News => String::new(),
            Line::Last => format!(
                " note=\"it comes and goes; there is no more of it here until it has worked for {}\"",
                lasted(STEADY)
            ),
        };
        let advice = advice(error, from.place);
        let at = match &*from.place.address {
            "" => String::new(),
            address => format!(" at {address}"),
        };
        match &subject {
            Subject::Side(_) => {
                log::warn!(
                    "cannot reach the {side}{at}, trying again until it answers; error={text:?} advice={advice:?}{note}"
                );
            }
            Subject::Credentials(_) => {
                log::warn!(
                    "the {side} refuses the syncer's credentials{at}, trying again; error={text:?} advice={advice:?}{note}"
                );
            }
            Subject::Stranger(_) => {
                let words = stranger.unwrap_or_default();
                let advice = about_no_api(words);
                log::warn!(
                    "what answers as the {side}{at} is no Kubernetes API, trying again; error={words:?} advice={advice:?}{note}"
                );
            }
            Subject::Thing(_, thing) => {
                log::warn!("{doing} failed at the {side} object={thing} error={text:?} advice={advice:?}{note}");
            }
        }
        true
    }

    /// Tells, once a namespace, that objects at the edge wait for one that nothing brings there.
    pub fn homeless(&mut self, namespace: &str, config: &str, field: &str) {
        if self.waited_for.insert(namespace.to_owned()) {
            log::warn!(
                "objects wait for a namespace that is not at the edge and that no config selects namespace={namespace} \
                 config={config} field=spec.{field} advice=\"add an entry of kind Namespace, or create it at the edge\""
            );
        }
    }

    /// Tells, once a copy, that a former conversion's copy of another origin has its name.
    pub fn name_is_taken(&mut self, side: Side, copy: &str, others: &str) {
        if self.waited_for.insert(copy.to_owned()) {
            log::warn!(
                "not synced to the {side}, because a copy that a former conversion has made has its name object={copy} \
                 copy_of={others} advice=\"delete that copy, or what it is a copy of; then its name is free\""
            );
        }
    }

    /// The configs are others: what is still so is worth another line.
    pub fn configs_changed(&mut self) {
        self.waited_for.clear();
    }

    /// Tells that something works again, if it had failed. True if it had.
    pub fn works(&mut self, subject: &Subject) -> bool {
        let Some(ended) = self.failures.ends(subject, self.now) else {
            return false;
        };
        let level = if ended.is_logged {
            log::Level::Info
        } else {
            log::Level::Debug
        };
        log_end(subject, level, ended.lasted);
        true
    }

    /// True if it has failed and not worked since.
    pub fn is_failing(&self, subject: &Subject) -> bool {
        self.failures.has(subject)
    }

    /// Forgets a streak without a word: its subject is gone.
    pub fn clear(&mut self, subject: &Subject) {
        self.failures.clear(subject, self.now);
    }

    /// There is nothing more to do at once: sums up what was not told of changes.
    pub fn idle(&mut self) {
        self.sum_up(true);
    }

    /// When [`Report::sum_up`] has something to tell.
    pub fn due(&self) -> Option<Instant> {
        [self.changes.due(), self.failures.due()].into_iter().flatten().min()
    }

    /// Tells how many changes and failures had no line of their own, if it is time for that.
    pub fn sum_up(&mut self, at_rest: bool) {
        for ((side, word), count) in self.changes.sum(at_rest, self.now) {
            log::info!("{word} at the {side} more={count}");
        }
        for (subject, time) in self.failures.steady(self.now) {
            log_end(&subject, log::Level::Info, time);
        }
        let failing = self.failures.count();
        if self.failures.are_to_be_summed_up(self.now) && failing > 0 {
            log::warn!(
                "more objects are failing than are named here failing={failing} advice=\"see them at debug level\""
            );
        }
    }
}

/// Tells that something fails no longer.
fn log_end(subject: &Subject, level: log::Level, time: Duration) {
    let after = lasted(time);
    match subject {
        Subject::Side(side) => log::log!(level, "the {side} answers again after {after}"),
        Subject::Credentials(side) => {
            log::log!(level, "the {side} accepts the syncer's credentials again after {after}");
        }
        Subject::Stranger(side) => log::log!(level, "a Kubernetes API answers as the {side} again after {after}"),
        Subject::Thing(side, thing) => log::log!(level, "works again at the {side} object={thing} after={after}"),
    }
}

/// How long something lasted, for people: two units at most.
fn lasted(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOWHERE: &Place = &Place {
        address: String::new(),
        trust: String::new(),
    };

    fn fails(report: &mut Report, subject: &Subject, error: &Error) -> bool {
        let from = Peer {
            place: NOWHERE,
            stranger: None,
        };
        report.failed(subject.clone(), "reading", error, from)
    }

    #[test]
    fn what_the_edge_does_not_allow_is_no_failure() {
        let mut report = Report::new(Instant::now());
        report.refused("Secret/a/b", "--deny-namespace a");
        report.denied("secrets", "--deny secrets");
        assert_eq!(report.failing(), 0);
    }

    #[test]
    fn a_streak_is_told_once_when_it_begins_and_once_when_it_ends() {
        let mut report = Report::new(Instant::now());
        let (hub, away) = (Subject::Side(Side::Hub), |words: &str| Error::Unreachable(words.into()));
        assert!(!report.works(&hub));
        assert!(fails(&mut report, &hub, &away("connection refused port 1")));
        for words in ["connection refused port 1", "connection refused port 2", "no route"] {
            assert!(!fails(&mut report, &hub, &away(words)), "{words}");
        }
        assert!(report.works(&hub));
        assert!(!report.works(&hub));

        let refused = Error::Unauthorized(Box::default());
        let thing = |name: &str| Subject::Thing(Side::Hub, name.to_owned());
        assert!(fails(&mut report, &thing("ConfigMap/a/b"), &refused));
        assert!(!fails(&mut report, &thing("ConfigMap/a/c"), &refused), "the same");
        assert!(report.works(&Subject::Credentials(Side::Hub)));

        let (html, json) = (Error::BadAnswer("html".into()), Error::Unanswered("json".into()));
        assert!(fails(&mut report, &thing("ConfigMap/a/b"), &html));
        assert!(
            fails(&mut report, &thing("ConfigMap/a/b"), &json),
            "another answer is news"
        );
        for _ in 0..10 {
            assert!(!fails(&mut report, &thing("ConfigMap/a/b"), &html));
            assert!(!fails(&mut report, &thing("ConfigMap/a/b"), &json), "they take turns");
        }
    }

    #[test]
    fn something_else_than_an_api_is_one_failure_of_its_side() {
        let mut report = Report::new(Instant::now());
        let from = Peer {
            place: NOWHERE,
            stranger: Some("<html>"),
        };
        let page = Error::from_answer(404, None, b"404 page not found");
        let thing = |name: &str| Subject::Thing(Side::Hub, name.to_owned());
        assert!(report.failed(thing("a"), "reading", &page, from));
        assert!(!report.failed(thing("b"), "reading", &Error::BadAnswer("html".into()), from));
        let busy = Error::from_answer(429, None, br#"{"kind":"Status","reason":"TooManyRequests"}"#);
        assert!(report.failed(thing("b"), "reading", &busy, from), "that is an API");
        assert!(report.works(&Subject::Stranger(Side::Hub)));
        assert_eq!(report.failing(), 1);
    }

    #[test]
    fn times_are_told_in_two_units() {
        for (seconds, expected) in [(0, "0s"), (59, "59s"), (95, "1m35s"), (7260, "2h1m"), (200_000, "2d7h")] {
            assert_eq!(lasted(Duration::from_secs(seconds)), expected);
        }
    }
}
