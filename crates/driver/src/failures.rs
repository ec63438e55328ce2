//! What fails, and which of it is to have a line.
//!
//! Each thing that fails is a streak of its own. Several may fail for one reason: then the first of them has the line,
//! and another one gets a line only if the first works again or is gone while others still fail. What works again and
//! soon fails again, such as a watch that can be opened and breaks at once, has few lines, the last of which says that;
//! then none until it has worked for a while.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::time::Duration;

use kube_lite::logging::LogReason;
use tokio::time::Instant;

use super::streak::Streak;
pub use super::streak::{Note, kind, kind_of_words, shortened, tried};

/// Lines about failures in [`BURST`]. The rest is summed up.
const LINES: u32 = 20;
const BURST: Duration = Duration::from_secs(60);
/// What has worked for so long does not fail any more; what fails again sooner has only paused.
pub const STEADY: Duration = Duration::from_secs(600);
/// How long an outage of a side has to last before another error of it has a line.
const LASTING: Duration = Duration::from_secs(30);
/// How often it is logged that something fails again so soon. For an outage of a side it is more.
const RETURNS: u8 = 1;
const RETURNS_OF_SIDE: u8 = 3;
/// Of how many things that fail the words are kept.
const MOST_WORDS: usize = 100;

/// What a streak of failures is about.
pub trait Failing: Clone + Eq + Hash {
    /// True for one thing of a side; false for what concerns the whole side.
    fn is_thing(&self) -> bool;

    /// The side, of which several things may fail for one reason.
    fn side(&self) -> impl Hash;

    /// Of which tenant it is, where there are some: none takes all lines from the others.
    fn tenant(&self) -> Option<u32> {
        None
    }
}

/// All that fails, or has failed lately.
#[derive(Debug)]
pub struct Failures<S> {
    streaks: HashMap<S, Streak>,
    /// Those of them that fail now.
    count: usize,
    /// Of how many of them there are words.
    with_words: usize,
    /// Reasons that several have in common, by their hash.
    shared: HashMap<u64, Shared>,
    burst: Option<Burst>,
    /// When the first of those that pause may have worked for long enough.
    steady_due: Option<Instant>,
}

/// A line that is to be logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// There is news.
    News,
    /// The last line for a while about something that fails again and again.
    Last,
}

/// A reason for which several things fail.
#[derive(Debug, Default)]
struct Shared {
    members: u32,
    /// One of them has the line.
    is_logged: bool,
}

#[derive(Debug)]
struct Burst {
    begin: Instant,
    lines: u32,
    /// How many of them each tenant has.
    of_tenants: HashMap<u32, u32>,
    /// Failures that found no room for a line.
    unlogged: u32,
}

/// A streak that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Its end is to be logged.
    pub is_logged: bool,
    /// How long it has lasted.
    pub lasted: Duration,
}

impl<S> Default for Failures<S> {
    fn default() -> Self {
        Self {
            streaks: HashMap::new(),
            count: 0,
            with_words: 0,
            shared: HashMap::new(),
            burst: None,
            steady_due: None,
        }
    }
}

impl<S: Failing> Failures<S> {
    /// Something fails in this way, and for this reason, if others may have the same. Returns the line that it is to
    /// have.
    pub fn fails(&mut self, subject: &S, kind: u32, reason: Option<&str>, now: Instant) -> Option<Line> {
        let is_thing = subject.is_thing();
        let (is_news, line) = self.goes_on(subject, Some(kind), now);
        let reason = reason.map(|reason| hash(subject.side(), reason));
        self.move_to(subject, reason);
        let shared = reason.and_then(|reason| self.shared.get_mut(&reason));
        let has_said = reason.is_some_and(|reason| self.streaks.get(subject).is_some_and(|it| it.has_said(reason)));
        let is_due = match &shared {
            // It has failed in another way meanwhile, and the line for this one was its own.
            Some(shared) if !shared.is_logged => is_news || !has_said,
            Some(_) => false,
            None => is_news,
        };
        let burst = &mut self.burst;
        let mut takes = || {
            let burst = burst.get_or_insert_with(|| Burst::begin(now));
            burst.takes(subject.tenant(), now, is_news)
        };
        if !is_due || is_thing && !takes() {
            return None;
        }
        let streak = self.streaks.get_mut(subject)?;
        streak.is_logged = true;
        if let (Some(shared), Some((reason, has_line))) = (shared, &mut streak.shared) {
            (shared.is_logged, *has_line) = (true, true);
            let reason = *reason;
            streak.says(reason);
        }
        Some(line)
    }

    /// Something fails in a way that may soon pass, so that it has no line yet.
    pub fn fails_for_now(&mut self, subject: &S, now: Instant) {
        self.goes_on(subject, None, now);
    }

    /// Keeps the last failure of something that fails, with what was being done and its words, as long as there are not too
    /// many; `now` is for people.
    pub fn note(&mut self, subject: &S, reason: LogReason, (doing, words): (&str, &str), now: impl FnOnce() -> String) {
        let Some(streak) = self.streaks.get_mut(subject).filter(|streak| streak.paused.is_none()) else {
            return;
        };
        let note = streak.note.get_or_insert_with(|| {
            Box::new(Note {
                reason,
                doing: Box::default(),
                message: Box::default(),
                since: now().into(),
                tries: 0,
            })
        });
        note.tries = note.tries.saturating_add(1);
        let words = shortened(words);
        let has_words = !note.message.is_empty();
        let is_same = note.reason == reason && kind_of_words(&note.message) == kind_of_words(words);
        if has_words && is_same {
            // Numbers and names in it may differ each time.
            return;
        }
        note.reason = reason;
        if has_words || self.with_words < MOST_WORDS {
            (note.doing, note.message) = (shortened(doing).into(), words.into());
            self.with_words += usize::from(!note.message.is_empty());
            self.with_words -= usize::from(has_words);
        }
    }

    /// The last failure of something that fails, unless it may soon pass.
    pub fn note_of(&self, subject: &S) -> Option<&Note> {
        self.streaks.get(subject)?.note.as_deref()
    }

    /// All that fails, with its last failure, in no order.
    pub fn notes(&self) -> impl Iterator<Item = (&S, &Note)> {
        let noted = self.streaks.iter();
        noted.filter_map(|(subject, streak)| Some((subject, streak.note.as_deref()?)))
    }

    /// How long something fails that fails now.
    pub fn lasts(&self, subject: &S, now: Instant) -> Option<Duration> {
        let streak = self.streaks.get(subject).filter(|streak| streak.paused.is_none())?;
        Some(now.duration_since(streak.fails_since))
    }

    /// A streak begins or continues, with a failure of this kind, if it may have a line. Returns whether that is news, and
    /// which line it gets.
    fn goes_on(&mut self, subject: &S, kind: Option<u32>, now: Instant) -> (bool, Line) {
        let known = self.streaks.get_mut(subject).filter(|streak| !is_over(streak, now));
        let Some(streak) = known else {
            self.streaks.insert(subject.clone(), Streak::begin(kind, now));
            self.count += 1;
            return (true, Line::News);
        };
        if streak.paused.take().is_some() {
            self.count += 1;
            streak.returns_at(now);
        }
        let Some(kind) = kind else {
            return (false, Line::News);
        };
        // One outage shows in different errors: refused, reset, timed out. If it lasts, the later one says more: the
        // connection was cut, and since then the proxy refuses it.
        let may_be_news = subject.is_thing() || streak.is_quiet_for(LASTING, now);
        let is_news = may_be_news && streak.is_news(kind, now);
        if !streak.is_counted_as_return() {
            return (is_news, Line::News);
        }
        let most = most_returns(subject);
        let line = if streak.returns == most { Line::Last } else { Line::News };
        let is_due = is_news || streak.returns <= most;
        if is_due {
            // It is news of this outage, whatever its error becomes.
            streak.last = now;
        }
        (is_due, line)
    }

    /// Something does not fail any more. Returns its streak, if it failed.
    pub fn ends(&mut self, subject: &S, now: Instant) -> Option<Ended> {
        if self.count == 0 || !self.has(subject) {
            return None;
        }
        self.move_to(subject, None);
        self.count -= 1;
        self.steady_due.get_or_insert(now + STEADY);
        let streak = self.streaks.get_mut(subject)?;
        streak.paused = Some(now);
        if streak.note.take().is_some_and(|note| !note.message.is_empty()) {
            self.with_words -= 1;
        }
        let has_line = streak.is_logged && !streak.has_returned;
        Some(Ended {
            is_logged: has_line && streak.returns < most_returns(subject),
            lasted: streak.lasted(now),
        })
    }

    /// Something is gone, so that the end of its failure is not logged.
    pub fn clear(&mut self, subject: &S, now: Instant) {
        self.ends(subject, now);
        if let Some(streak) = self.streaks.get_mut(subject) {
            streak.is_logged = false;
        }
    }

    /// What failed again and again and by now has worked for a while, each with that time. Everything else that has
    /// worked for as long is forgotten.
    pub fn steady(&mut self, now: Instant) -> Vec<(S, Duration)> {
        if self.steady_due.is_none_or(|due| due > now) {
            return Vec::new();
        }
        let mut steady = Vec::new();
        self.streaks.retain(|subject, streak| {
            let is_over = is_over(streak, now);
            if is_over && streak.is_logged && streak.returns >= most_returns(subject) {
                let end = streak.paused.unwrap_or(now);
                steady.push((subject.clone(), streak.lasted(end)));
            }
            !is_over
        });
        let paused = self.streaks.values().filter_map(|streak| streak.paused);
        self.steady_due = paused.min().map(|since| since + STEADY);
        steady
    }

    /// True if it fails now.
    pub fn has(&self, subject: &S) -> bool {
        self.streaks.get(subject).is_some_and(|streak| streak.paused.is_none())
    }

    /// How many fail now.
    pub fn count(&self) -> usize {
        self.count
    }

    /// When there is something to log about those that have no line, or that have worked for a while.
    pub fn due(&self) -> Option<Instant> {
        [self.sum_due(), self.steady_due].into_iter().flatten().min()
    }

    fn sum_due(&self) -> Option<Instant> {
        let burst = self.burst.as_ref().filter(|burst| burst.unlogged > 0);
        burst.map(|burst| burst.begin + BURST)
    }

    /// True if it is to be logged now that more fail than have lines: once for each burst.
    pub fn are_to_be_summed_up(&mut self, now: Instant) -> bool {
        let is_due = self.sum_due().is_some_and(|due| due <= now);
        if is_due {
            self.burst = None;
        }
        is_due
    }

    /// It fails for this reason from now on.
    fn move_to(&mut self, subject: &S, reason: Option<u64>) {
        let Some(streak) = self.streaks.get_mut(subject) else {
            return;
        };
        if streak.shared.map(|(before, _)| before) == reason {
            return;
        }
        let before = std::mem::replace(&mut streak.shared, reason.map(|reason| (reason, false)));
        if let Some(reason) = reason {
            self.shared.entry(reason).or_default().members += 1;
        }
        let Some((before, had_line)) = before else { return };
        let Some(shared) = self.shared.get_mut(&before) else {
            return;
        };
        shared.members -= 1;
        // If others still fail, another one of them gets the line.
        shared.is_logged &= !had_line;
        if shared.members == 0 {
            self.shared.remove(&before);
        }
    }
}

impl Burst {
    fn begin(now: Instant) -> Self {
        Self {
            begin: now,
            lines: 0,
            of_tenants: HashMap::new(),
            unlogged: 0,
        }
    }

    /// True if there is room for a line now: as many as a tenant has stay free for others. News without room is summed up.
    fn takes(&mut self, tenant: Option<u32>, now: Instant, is_news: bool) -> bool {
        if now.duration_since(self.begin) >= BURST {
            (self.begin, self.lines) = (now, 0);
            self.of_tenants.clear();
        }
        let had = tenant.and_then(|tenant| self.of_tenants.get(&tenant)).copied();
        let had = had.unwrap_or_default();
        let has_room = self.lines + had < LINES;
        if has_room {
            self.lines += 1;
            self.of_tenants.extend(tenant.map(|tenant| (tenant, had + 1)));
        }
        self.unlogged += u32::from(!has_room && is_news);
        has_room
    }
}

fn is_over(streak: &Streak, now: Instant) -> bool {
    streak.paused.is_some_and(|since| now.duration_since(since) >= STEADY)
}

fn most_returns(subject: &impl Failing) -> u8 {
    if subject.is_thing() { RETURNS } else { RETURNS_OF_SIDE }
}

fn hash(side: impl Hash, reason: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (side, reason).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
#[path = "failures_tests.rs"]
mod tests;
