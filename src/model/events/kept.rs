//! Which Events are written, and when: plain data, and the time is given.
//!
//! What happens to an object for a reason has one write in ten minutes: the first one creates an Event, later ones count
//! in its series. All together have so many that neither side notices them, whatever fails. What finds no room is
//! dropped: conditions and the log have it too.

use std::collections::BTreeMap;
use std::time::Duration;

use driver::budget::Budget;
use driver::failures::kind_of_words;
use driver::few::Few;
use kube_lite::logging::LogReason;
use kube_lite::{Error, ObjectName, ResourceType};
use tokio::time::Instant;

use crate::side::Side;

/// Between what happens and the first write: more may come with it.
pub(super) const SOON: Duration = Duration::from_secs(2);
/// Between two writes about one object and reason.
const APART: Duration = Duration::from_secs(600);
/// What has not happened for so long begins with an Event of its own: servers keep one for an hour.
const FORGOTTEN: Duration = Duration::from_secs(3600);
/// So many writes may follow one another, and one more is earned in so many seconds: thirty in any hour.
const ROOM: u32 = 20;
const EARNED: u64 = 360;
/// How many of these are for whole sides and configs alone, and how many for all that is new.
const FOR_SIDES: u32 = 4;
const FOR_NEW: u32 = 8;
/// How long a side that refuses Events is not asked for it.
const REFUSED: Duration = Duration::from_secs(6 * 3600);

/// Declares the reasons: each with its action, and whether something is wrong.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident: $action:literal, $is_warning:literal;)*) => {
        /// The reason of an Event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum EventReason {
            $($(#[$doc])* $name,)*
        }

        impl EventReason {
            /// All of them, in the order of the docs.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its word.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// What was done, or tried.
            pub(crate) fn action(self) -> &'static str {
                match self {
                    $(Self::$name => $action,)*
                }
            }

            /// True if something is wrong.
            pub fn is_warning(self) -> bool {
                match self {
                    $(Self::$name => $is_warning,)*
                }
            }
        }
    };
}

reasons! {
    /// Somebody else had changed or deleted a copy.
    DriftCorrected: "Correct", false;
    /// Somebody else's object is in the place of a copy.
    ConflictDetected: "Sync", true;
    /// An object cannot be synced.
    ApplyFailed: "Sync", true;
    /// A copy was deleted and created again.
    Replaced: "Replace", false;
    /// A copy is being deleted, and its finalizers keep it.
    WaitingForDeletion: "Delete", true;
    /// Deletes are held.
    DeleteHeld: "Hold", true;
    /// The hub does not answer.
    HubLost: "Connect", true;
    /// It answers again.
    HubRestored: "Connect", false;
    /// The credentials for a side will end, or have ended.
    CredentialExpiring: "Authenticate", true;
}

impl EventReason {
    /// That of something that fails for this reason of the log.
    pub(super) fn of_failure(reason: &str) -> Self {
        if reason == LogReason::Conflict.as_str() {
            Self::ConflictDetected
        } else if reason == LogReason::DeleteBlocked.as_str() {
            Self::WaitingForDeletion
        } else {
            Self::ApplyFailed
        }
    }

    /// True for what is about more than one object.
    fn is_of_side(self) -> bool {
        matches!(
            self,
            Self::DeleteHeld | Self::HubLost | Self::HubRestored | Self::CredentialExpiring
        )
    }
}

/// What an Event is about: an object of the side where it is written, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EventKey {
    pub(crate) side: Side,
    pub(crate) resource: ResourceType,
    pub(crate) name: ObjectName,
    pub(crate) reason: EventReason,
}

/// An Event to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventToWrite {
    pub(crate) key: EventKey,
    pub(crate) note: String,
    /// How often it has happened.
    pub(crate) count: u32,
    /// When it has happened first and last, in RFC 3339.
    pub(crate) first: String,
    pub(crate) last: String,
    /// Where the Event is, if it is there already.
    pub(crate) at: Option<ObjectName>,
}

/// What became of one.
#[derive(Debug)]
pub(crate) enum EventDone {
    /// It is there.
    Written(ObjectName),
    /// It is not so any more.
    Needless,
    /// It is not there, for this reason.
    Failed(Error),
    /// Another one has shown that it would not succeed.
    NotTried,
}

/// What the model knows of Events.
#[derive(Debug, Default)]
pub(super) struct Kept {
    all: BTreeMap<EventKey, Known>,
    budget: Budget<ROOM, EARNED>,
    /// Sides that refuse Events, until when that counts.
    refused: Few<Side, Instant>,
}

/// What has happened to an object for a reason.
#[derive(Debug)]
struct Known {
    note: String,
    count: u32,
    first: String,
    last: String,
    last_at: Instant,
    /// When the next write may be.
    due: Instant,
    /// How many of `count` were written, or dropped.
    done: u32,
    /// How many of them are being written.
    under_way: Option<u32>,
    at: Option<ObjectName>,
    was_unreachable: bool,
}

impl Known {
    fn is_due(&self, now: Instant) -> bool {
        self.under_way.is_none() && self.count > self.done && self.due <= now
    }
}

impl Kept {
    /// Something has happened. `clock` is for people.
    pub(super) fn happens(&mut self, key: EventKey, note: String, clock: &str, now: Instant) {
        if self.refuses(key.side, now) {
            return;
        }
        let known = self.all.get_mut(&key).filter(|known| known.last_at + FORGOTTEN > now);
        if let Some(known) = known {
            // Other words begin another Event, once there may be one.
            let goes_on = kind_of_words(&known.note) == kind_of_words(&note);
            if goes_on || known.due > now || known.count > known.done {
                known.count = known.count.saturating_add(1);
                known.last_at = now;
                clock.clone_into(&mut known.last);
                return;
            }
        }
        let reserved = if key.reason.is_of_side() { 0 } else { FOR_SIDES };
        if !self.budget.takes(reserved, now) {
            return;
        }
        let known = Known {
            note,
            count: 1,
            first: clock.to_owned(),
            last: clock.to_owned(),
            last_at: now,
            due: now + SOON,
            done: 0,
            under_way: None,
            at: None,
            was_unreachable: false,
        };
        self.all.insert(key, known);
    }

    /// What is to be written at a side now.
    pub(super) fn take(&mut self, side: Side, now: Instant) -> Vec<EventToWrite> {
        self.all
            .retain(|_, known| known.under_way.is_some() || known.last_at + FORGOTTEN > now);
        let mut taken = Vec::new();
        for (key, known) in &mut self.all {
            if key.side != side || !known.is_due(now) {
                continue;
            }
            if known.done > 0 && !self.budget.takes(FOR_NEW, now) {
                // It counts once it happens again: nothing is written of what is long over.
                (known.done, known.due) = (known.count, now + APART);
                continue;
            }
            known.under_way = Some(known.count);
            taken.push(EventToWrite {
                key: key.clone(),
                note: known.note.clone(),
                count: known.count,
                first: known.first.clone(),
                last: known.last.clone(),
                at: known.at.clone(),
            });
        }
        taken
    }

    /// What became of one that was taken. One that has found nobody is tried once more.
    pub(super) fn ended(&mut self, key: &EventKey, done: &EventDone, now: Instant) {
        let Some(known) = self.all.get_mut(key) else { return };
        let taken = known.under_way.take().unwrap_or_default();
        let is_unreachable = matches!(done, EventDone::Failed(error) if error.is_unreachable());
        if matches!(done, EventDone::NotTried) || is_unreachable && !known.was_unreachable {
            known.was_unreachable |= is_unreachable;
            return;
        }
        match done {
            EventDone::Written(at) => known.at = Some(at.clone()),
            EventDone::Needless => {
                self.budget.gives_back();
                self.all.remove(key);
                return;
            }
            EventDone::Failed(_) | EventDone::NotTried => {}
        }
        known.was_unreachable = false;
        known.done = taken;
        known.due = now + APART;
    }

    /// When something is to be written at a side.
    pub(super) fn due(&self, side: Side) -> Option<Instant> {
        let of_side = self.all.iter().filter(|(key, _)| key.side == side);
        let waiting = of_side.filter(|(_, known)| known.under_way.is_none() && known.count > known.done);
        waiting.map(|(_, known)| known.due).min()
    }

    /// A side refuses Events: it is not asked for a long while. True if that is new.
    pub(super) fn is_refused(&mut self, side: Side, now: Instant) -> bool {
        self.all.retain(|key, _| key.side != side);
        self.refused.insert(side, now + REFUSED).is_none()
    }

    fn refuses(&self, side: Side, now: Instant) -> bool {
        self.refused.get(side).is_some_and(|until| *until > now)
    }
}

#[cfg(test)]
mod tests {
    use EventReason::{ApplyFailed, DriftCorrected, HubLost};

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn key(name: &str, reason: EventReason) -> EventKey {
        EventKey {
            side: Side::Edge,
            resource: ResourceType::config_maps(),
            name: ObjectName::new("shop", name),
            reason,
        }
    }

    /// Writes what is due; gives the names with how often it has happened, and whether it is a series of an Event.
    fn write(kept: &mut Kept, now: Instant) -> Vec<(String, u32, bool)> {
        let taken = kept.take(Side::Edge, now);
        for event in &taken {
            kept.ended(&event.key, &EventDone::Written(ObjectName::new("shop", "e")), now);
        }
        let line = |event: EventToWrite| (event.key.name.name.to_string(), event.count, event.at.is_some());
        taken.into_iter().map(line).collect()
    }

    #[test]
    fn one_object_and_reason_has_one_write_in_ten_minutes_and_then_a_series() {
        let begin = Instant::now();
        let mut kept = Kept::default();
        let mut written = Vec::new();
        // Twice a minute for half an hour, and never again.
        for half in 0..180 {
            let now = begin + Duration::from_secs(30) * half;
            if half < 60 {
                kept.happens(key("a", DriftCorrected), "by kubectl".into(), "t", now);
            }
            for (name, count, is_series) in write(&mut kept, now) {
                written.push((half / 2, name, count, is_series));
            }
        }
        let a = || "a".to_owned();
        let expected = [
            (0, a(), 2, false),
            (10, a(), 22, true),
            (20, a(), 42, true),
            (30, a(), 60, true),
        ];
        assert_eq!(written, expected);
        assert_eq!(kept.due(Side::Edge), None);
        assert!(kept.all.is_empty(), "it is forgotten");
    }

    #[test]
    fn what_happens_once_is_one_event_and_other_words_begin_another_after_ten_minutes() {
        let now = Instant::now();
        for (wait, words, expected) in [
            (5, "b c", (2, true)),
            (11, "b c", (1, false)),
            (11, "a 5", (2, true)),
            (61, "a 5", (1, false)),
        ] {
            let mut kept = Kept::default();
            kept.happens(key("a", ApplyFailed), "a 1".into(), "t", now);
            assert_eq!(write(&mut kept, now), [], "more may come with it");
            assert_eq!(write(&mut kept, now + SOON), [("a".into(), 1, false)]);
            assert_eq!(kept.due(Side::Edge), None);
            let later = now + SOON + MINUTE * wait;
            kept.happens(key("a", ApplyFailed), words.into(), "t", later);
            let due = kept.due(Side::Edge).expect("there is more");
            let (count, is_series) = expected;
            assert_eq!(
                write(&mut kept, due),
                [("a".into(), count, is_series)],
                "{wait} {words}"
            );
        }
    }

    #[test]
    fn a_hundred_objects_have_few_events_and_a_whole_side_still_has_its_own() {
        let begin = Instant::now();
        let mut kept = Kept::default();
        let (mut first, mut all) = (0, Vec::new());
        for second in 0..4 * 3600 {
            let now = begin + Duration::from_secs(second);
            for index in 0..100 {
                kept.happens(key(&index.to_string(), DriftCorrected), "by kubectl".into(), "t", now);
            }
            let count = write(&mut kept, now).len();
            first += if second < 60 { count } else { 0 };
            all.extend(std::iter::repeat_n(second, count));
            let an_hour = all.iter().filter(|at| **at + 3600 > second).count();
            assert!(an_hour <= 30, "{an_hour} in the hour before {second}");
        }
        assert_eq!(first, 16, "four are for whole sides");
        assert!(all.len() >= 40, "{}", all.len());
        assert!(kept.all.len() <= 100);
        kept.happens(key("the-hub", HubLost), "away".into(), "t", begin + MINUTE * 240);
        assert!(kept.all.contains_key(&key("the-hub", HubLost)));
    }

    // Issue 46: an idle hour had writes about what was over before it.
    #[test]
    fn a_series_that_finds_no_room_is_not_written_when_it_is_long_over() {
        let begin = Instant::now();
        let mut kept = Kept::default();
        let mut happens = |names: std::ops::Range<u32>, minute: u32| {
            let now = begin + MINUTE * minute;
            for index in names {
                kept.happens(key(&index.to_string(), DriftCorrected), "by kubectl".into(), "t", now);
            }
            write(&mut kept, now + SOON).len()
        };
        assert_eq!(happens(0..100, 0), 16);
        assert_eq!(happens(0..16, 1), 0);
        let later: usize = (2..59).map(|minute| happens(0..0, minute)).sum();
        assert_eq!(later, 0, "all that was earned meanwhile is for what is new");
        assert_eq!(happens(0..1, 59), 1, "it counts once it happens again");
    }

    #[test]
    fn what_fails_is_tried_once_more_if_nobody_has_answered() {
        type Makes = fn() -> EventDone;
        let unreachable = || EventDone::Failed(Error::Unreachable("gone".into()));
        let refused = || EventDone::Failed(Error::Unanswered("late".into()));
        for (done, expected) in [
            (unreachable as Makes, 2),
            (refused as Makes, 1),
            ((|| EventDone::Needless) as Makes, 1),
        ] {
            let mut now = Instant::now();
            let mut kept = Kept::default();
            kept.happens(key("a", ApplyFailed), "a".into(), "t", now);
            let mut tries = 0;
            for _ in 0..10 {
                now += MINUTE;
                for event in kept.take(Side::Edge, now) {
                    tries += 1;
                    kept.ended(&event.key, &done(), now);
                }
            }
            assert_eq!(tries, expected, "{:?}", done());
        }
    }

    #[test]
    fn a_side_that_refuses_events_is_not_asked_for_hours_and_the_other_is() {
        let now = Instant::now();
        let mut kept = Kept::default();
        let at_hub = EventKey {
            side: Side::Hub,
            ..key("b", ApplyFailed)
        };
        for key in [key("a", ApplyFailed), at_hub.clone()] {
            kept.happens(key, "a".into(), "t", now);
        }
        assert!(kept.is_refused(Side::Edge, now));
        kept.happens(key("c", ApplyFailed), "a".into(), "t", now);
        assert_eq!(kept.due(Side::Edge), None);
        assert_eq!(kept.take(Side::Hub, now + SOON).len(), 1);
        let later = now + REFUSED;
        kept.happens(key("c", ApplyFailed), "a".into(), "t", later);
        assert_eq!(write(&mut kept, later + SOON).len(), 1);
        assert!(!kept.is_refused(Side::Edge, later), "there was a line");
    }
}
