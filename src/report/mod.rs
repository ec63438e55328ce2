//! What people get to see of the work: log lines, few and bounded, and figures ([`metrics`]).
//!
//! A failure is told once when it begins and once when it ends, whatever happens in between. Changes are told one line
//! each while they are few; a burst is told by its first lines and a sum, and has few lines also if it never ends.

mod changes;
pub mod metrics;
mod streak;

use std::collections::{HashMap, HashSet};
use std::fmt::Display;

use tokio::time::Instant;

use self::changes::Changes;
use self::metrics::Counters;
use self::streak::Streak;
use crate::cluster::{Error, Side};
use crate::sync::job::Change;

/// Lines a burst of failures may have before it is summed up.
const BURST_LINES: u32 = 20;

/// What a streak of failures is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A whole side cannot be reached.
    Side(Side),
    /// A side does not accept the syncer's credentials, for whatever it asks.
    Credentials(Side),
    /// Something named by this text on a side: an object or a type.
    Thing(Side, String),
}

/// The state behind the lines: which streaks are open, and how many changes are not told yet.
#[derive(Debug, Default)]
pub struct Report {
    streaks: HashMap<Subject, Streak>,
    /// Rules of the edge's owner that have refused something. They do what they are there for, so nothing fails.
    refusals: HashSet<String>,
    /// What objects were told to wait for: namespaces, and copies that have their names.
    waited_for: HashSet<String>,
    changes: Changes,
    /// Lines about failures since there was last nothing to do.
    lines: u32,
    untold_failures: u32,
    counters: Counters,
}

impl Report {
    /// Tells of a change of a copy on that side.
    pub fn change(&mut self, side: Side, object: impl Display, change: &Change) {
        let word = match change {
            Change::Unchanged
            | Change::Left(_)
            | Change::Conflict(_)
            | Change::WouldCascade(_)
            | Change::Held
            | Change::OtherCluster(_)
            | Change::WentBack(_)
            | Change::Doubted(_)
            | Change::Withdrawn(_) => {
                log::debug!("in step object={object} result={change:?}");
                return;
            }
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
        if self.changes.count(side, word, Instant::now()) {
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
        self.streaks.len()
    }

    /// Tells that somebody else's object has the place of a copy, if that is new: that of the syncer of the sync target
    /// `owner`, or of nobody that is known.
    pub fn conflict(&mut self, side: Side, object: &str, owner: Option<&str>) {
        let subject = Subject::Thing(side, object.to_owned());
        let why = format!("somebody else's object has its name owner={owner:?}");
        if !self.fails_anew(&subject, &why) {
            return;
        }
        if self.lines >= BURST_LINES {
            self.untold_failures += 1;
            return;
        }
        self.lines += 1;
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
    pub fn failed(&mut self, subject: Subject, doing: &str, error: &Error) -> bool {
        let (Subject::Side(side) | Subject::Credentials(side) | Subject::Thing(side, _)) = subject;
        self.counters.failed(side);
        let subject = if error.is_unauthorized() {
            Subject::Credentials(side)
        } else {
            subject
        };
        let text = error.to_string();
        if !self.fails_anew(&subject, &text) {
            log::debug!("still failing doing={doing:?} subject={subject:?} error={text:?}");
            return false;
        }
        let advice = advice(error);
        match &subject {
            Subject::Side(side) => {
                log::warn!("cannot reach the {side}, trying again until it answers; error={text:?} advice={advice:?}");
            }
            Subject::Credentials(side) => {
                log::warn!(
                    "the {side} refuses the syncer's credentials, trying again; error={text:?} advice={advice:?}"
                );
            }
            Subject::Thing(side, thing) if self.lines < BURST_LINES => {
                self.lines += 1;
                log::warn!("{doing} failed at the {side} object={thing} error={text:?} advice={advice:?}");
            }
            Subject::Thing(side, thing) => {
                self.untold_failures += 1;
                log::debug!("{doing} failed at the {side} object={thing} error={text:?} advice={advice:?}");
            }
        }
        true
    }

    /// Begins a streak, or goes on with it. True if there is a line to be told.
    fn fails_anew(&mut self, subject: &Subject, text: &str) -> bool {
        let now = Instant::now();
        match self.streaks.get_mut(subject) {
            None => {
                self.streaks.insert(subject.clone(), Streak::begin(text, now));
                true
            }
            // One outage has many faces: refused, reset, timed out.
            Some(_) if !matches!(subject, Subject::Thing(..)) => false,
            // Another kind of answer is news; the same one with other numbers in it is not.
            Some(streak) => streak.is_news(text, now),
        }
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
        if self.streaks.is_empty() || self.streaks.remove(subject).is_none() {
            return false;
        }
        match subject {
            Subject::Side(side) => log::info!("the {side} answers again"),
            Subject::Credentials(side) => log::info!("the {side} accepts the syncer's credentials again"),
            Subject::Thing(side, thing) => log::info!("works again at the {side} object={thing}"),
        }
        true
    }

    /// True if it has failed and not worked since.
    pub fn is_failing(&self, subject: &Subject) -> bool {
        self.streaks.contains_key(subject)
    }

    /// Forgets a streak without a word: its subject is gone.
    pub fn forget(&mut self, subject: &Subject) {
        self.streaks.remove(subject);
    }

    /// There is nothing more to do at once: sums up what was not told.
    pub fn idle(&mut self) {
        self.sum_up(true);
        self.lines = 0;
        if std::mem::take(&mut self.untold_failures) > 0 {
            let failing = self.streaks.len();
            log::warn!(
                "more objects are failing than are named here failing={failing} advice=\"see them at debug level\""
            );
        }
    }

    /// When [`Report::sum_up`] has something to tell.
    pub fn due(&self) -> Option<Instant> {
        self.changes.due()
    }

    /// Tells how many changes had no line of their own, if it is time for that.
    pub fn sum_up(&mut self, at_rest: bool) {
        for ((side, word), count) in self.changes.sum(at_rest, Instant::now()) {
            log::info!("{word} at the {side} more={count}");
        }
    }
}

/// What a person can do about an error.
fn advice(error: &Error) -> &'static str {
    match error {
        Error::Unreachable(_) => "check the address, the network and the certificates if it lasts",
        Error::Outdated { .. } => {
            "everything is listed again; if it lasts, check for a cache before the server, or a restored backup"
        }
        Error::WithoutEffect(_) => "apply the CRDs of this version at the server; it is tried again",
        Error::Ending(_) => {
            "see why whoever set them does not remove them there; it goes on by itself when they are gone"
        }
        Error::NotSent(_) => "check the names in the configs and the objects of that type",
        Error::BadAnswer(_) => "check what answers at the server's address: a proxy or another service?",
        Error::Unanswered(_) => {
            "the side answers others; see its log for what holds this up: a webhook, an aggregated API?"
        }
        Error::Unauthorized(_) => "the credentials are not accepted: renew the token or certificate in the kubeconfig",
        Error::Status(status) => match status.code {
            401 => "the credentials are accepted for all else: see what serves this at the server",
            403 if status.message.contains("terminat") => "it goes on by itself when what is being deleted has gone",
            403 if status.message.contains("exceeded quota") => {
                "raise the quota, or free some of it; it is tried again"
            }
            403 => "grant the syncer's user this permission",
            404 => "it goes on by itself when the missing type or namespace appears",
            409 => "it is tried again with the newer state",
            400 | 413 | 422 => "correct the object where it comes from; it is tried again when either side changes",
            429 => "the server is busy; it is tried again",
            _ => "it is tried again; see the server's log if it lasts",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side_down() -> (Subject, Error) {
        (
            Subject::Side(Side::Hub),
            Error::Unreachable("connection refused port 1".into()),
        )
    }

    #[test]
    fn advice_is_about_what_the_server_says() {
        let refusal = |message: &str| {
            Error::from_answer(
                403,
                None,
                format!(r#"{{"kind":"Status","message":"{message}"}}"#).as_bytes(),
            )
        };
        for (message, expected) in [
            ("pods is forbidden: User x cannot create", "grant"),
            ("exceeded quota: small, requested: pods=1", "quota"),
            ("namespace shop is being terminated", "by itself"),
        ] {
            let advice = advice(&refusal(message));
            assert!(advice.contains(expected), "{message}: {advice}");
        }
    }

    #[test]
    fn what_the_edge_does_not_allow_is_no_failure() {
        let mut report = Report::default();
        report.refused("Secret/a/b", "--deny-namespace a");
        report.denied("secrets", "--deny secrets");
        assert_eq!(report.failing(), 0);
    }

    #[test]
    fn what_fails_costs_no_more_than_its_name() {
        // The text is gone once it has been told; its kind is one number.
        let mut report = Report::default();
        let text = |number: u32| Error::BadAnswer(format!("{} {number}", "x".repeat(20_000)));
        let thing = |number: u32| Subject::Thing(Side::Edge, format!("ConfigMap/a/{number}"));
        for number in 0..100 {
            assert!(report.failed(thing(number), "applying", &text(number)));
            assert!(
                !report.failed(thing(number), "applying", &text(number + 1)),
                "other numbers"
            );
        }
        let kept: usize = report.streaks.values().map(std::mem::size_of_val).sum();
        assert_eq!(kept, 100 * size_of::<Streak>());
    }

    #[test]
    fn a_streak_is_told_once_when_it_begins_and_once_when_it_ends() {
        let mut report = Report::default();
        let (subject, error) = side_down();
        assert!(!report.works(&subject));
        assert!(report.failed(subject.clone(), "reading", &error));
        assert!(!report.failed(subject.clone(), "reading", &error));
        assert!(!report.failed(
            subject.clone(),
            "reading",
            &Error::Unreachable("connection refused port 2".into())
        ));
        assert!(!report.failed(subject.clone(), "reading", &Error::Unreachable("no route".into())));
        assert!(report.works(&subject));
        assert!(!report.works(&subject));

        let refused = Error::Unauthorized(Box::default());
        let thing = |name: &str| Subject::Thing(Side::Hub, name.to_owned());
        assert!(report.failed(thing("ConfigMap/a/b"), "reading", &refused));
        assert!(!report.failed(thing("ConfigMap/a/c"), "reading", &refused), "the same");
        assert!(report.works(&Subject::Credentials(Side::Hub)));

        let thing = Subject::Thing(Side::Edge, "ConfigMap/a/b".into());
        assert!(report.failed(thing.clone(), "applying", &Error::BadAnswer("html".into())));
        assert!(
            report.failed(thing.clone(), "applying", &Error::BadAnswer("json".into())),
            "another answer is news"
        );
    }
}
