//! What fails, and which of it is to have a line.
//!
//! Each thing that fails is a streak of its own. Several may fail for one reason: then the first of them has the line,
//! and another one gets a line only if the first works again or is gone while others still fail. What works again and
//! soon fails again, such as a watch that can be opened and breaks at once, has few lines, the last of which says that;
//! then none until it has worked for a while.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::time::Duration;

use tokio::time::Instant;

use super::streak::Streak;
pub use super::streak::{kind, kind_of_words};

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

/// What a streak of failures is about.
pub trait Failing: Clone + Eq + Hash {
    /// True for one thing of a side; false for what concerns the whole side.
    fn is_thing(&self) -> bool;

    /// The side, of which several things may fail for one reason.
    fn side(&self) -> impl Hash;
}

/// All that fails, or has failed lately.
#[derive(Debug)]
pub struct Failures<S> {
    streaks: HashMap<S, Streak>,
    /// Those of them that fail now.
    count: usize,
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
        if !is_due || is_thing && !self.burst.get_or_insert_with(|| Burst::begin(now)).takes(now, is_news) {
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
            unlogged: 0,
        }
    }

    /// True if there is room for a line now. News without room is summed up.
    fn takes(&mut self, now: Instant, is_news: bool) -> bool {
        if now.duration_since(self.begin) >= BURST {
            (self.begin, self.lines) = (now, 0);
        }
        let has_room = self.lines < LINES;
        self.lines += u32::from(has_room);
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
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    enum Side {
        Hub,
        Edge,
    }

    #[derive(Clone, Debug, PartialEq, Eq, Hash)]
    enum Subject {
        Side(Side),
        Thing(Side, String),
    }

    impl Subject {
        fn object(side: Side, name: String) -> Self {
            Self::Thing(side, name)
        }
    }

    impl Failing for Subject {
        fn is_thing(&self) -> bool {
            matches!(self, Self::Thing(..))
        }

        fn side(&self) -> impl Hash {
            let (Self::Side(side) | Self::Thing(side, _)) = self;
            *side
        }
    }

    type Failures = super::Failures<Subject>;

    fn now() -> Instant {
        Instant::now()
    }

    fn thing(index: u32) -> Subject {
        Subject::object(Side::Edge, format!("ConfigMap/a/{index}"))
    }

    fn fails(failures: &mut Failures, index: u32, reason: Option<&str>) -> bool {
        failures.fails(&thing(index), index + 1, reason, now()).is_some()
    }

    fn ends(failures: &mut Failures, index: u32) -> bool {
        failures.ends(&thing(index), now()).unwrap().is_logged
    }

    const REASON: Option<&str> = Some("no permission");

    #[tokio::test(start_paused = true)]
    async fn what_fails_for_one_reason_has_one_line_until_all_of_it_works() {
        let mut failures = Failures::default();
        let logged: Vec<u32> = (0..500).filter(|&index| fails(&mut failures, index, REASON)).collect();
        assert_eq!(logged, [0]);
        assert_eq!(failures.count(), 500);
        assert!(fails(&mut failures, 600, Some("another permission")));
        let elsewhere = Subject::object(Side::Hub, "x".into());
        assert!(
            failures.fails(&elsewhere, 1, REASON, now()).is_some(),
            "at the other side"
        );
        assert!(!ends(&mut failures, 1), "it had no line");
        assert!(ends(&mut failures, 0));
        let logged: Vec<u32> = (2..500).filter(|&index| fails(&mut failures, index, REASON)).collect();
        assert_eq!(logged, [2], "those that still fail are logged by one of them");
        for index in 2..500 {
            assert_eq!(ends(&mut failures, index), index == 2);
        }
        assert_eq!(failures.shared.len(), 2);
        assert!(ends(&mut failures, 600) && failures.ends(&elsewhere, now()).is_some());
        assert!(failures.shared.is_empty() && failures.count() == 0);
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_that_lasts_has_a_line_for_another_error() {
        let mut failures = Failures::default();
        let (side, begin) = (Subject::Side(Side::Edge), now());
        for (seconds, kind, is_logged) in [
            (0, 1, true),
            (5, 2, false),
            (31, 2, true),
            (40, 3, false),
            (62, 3, true),
            (100, 1, false),
            (200, 4, false),
            (4000, 4, true),
        ] {
            let line = failures.fails(&side, kind, None, begin + Duration::from_secs(seconds));
            assert_eq!(line.is_some(), is_logged, "{kind} after {seconds} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_thing_that_comes_to_fail_as_others_do_has_no_line_for_that() {
        let mut failures = Failures::default();
        assert!(fails(&mut failures, 0, REASON));
        assert!(failures.fails(&thing(1), 9, None, now()).is_some());
        assert!(!fails(&mut failures, 1, REASON));
        assert!(ends(&mut failures, 1));
        assert!(
            failures.fails(&thing(0), 9, None, now()).is_some(),
            "for a reason of its own"
        );
        assert!(fails(&mut failures, 2, REASON), "nobody else has it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_thing_that_lacks_two_permissions_in_turn_has_one_line_for_each() {
        let mut failures = Failures::default();
        let mut lines = 0;
        for round in 0..1000 {
            let (kind, reason) = if round % 2 == 0 {
                (7, "cannot list")
            } else {
                (8, "cannot watch")
            };
            lines += usize::from(failures.fails(&thing(0), kind, Some(reason), now()).is_some());
        }
        assert_eq!(lines, 2);
        assert!(
            fails(&mut failures, 1, Some("cannot list")),
            "another thing has not said so, and the first one fails in another way"
        );
        assert!(ends(&mut failures, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_permission_that_comes_and_goes_has_few_lines() {
        let mut failures = Failures::default();
        let (mut lines, mut ends) = (0, 0);
        for _ in 0..100 {
            lines += usize::from(fails(&mut failures, 0, REASON));
            ends += usize::from(
                super::Failures::ends(&mut failures, &thing(0), now())
                    .unwrap()
                    .is_logged,
            );
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!((lines, ends), (2, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_has_few_lines_and_a_sum_and_only_what_had_a_line_has_one_at_its_end() {
        let mut failures = Failures::default();
        let logged = (0..1000).filter(|&index| fails(&mut failures, index, None)).count();
        assert_eq!(logged, LINES as usize);
        assert!(!failures.are_to_be_summed_up(now()));
        tokio::time::advance(BURST).await;
        assert!(failures.are_to_be_summed_up(now()));
        assert_eq!(failures.due(), None);
        assert!(fails(&mut failures, 2000, None), "another burst");
        let ended = (0..1000).filter(|&index| ends(&mut failures, index)).count();
        assert_eq!(ended, LINES as usize);
        assert!(failures.fails(&Subject::Side(Side::Edge), 1, None, now()).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn what_comes_and_goes_says_so_and_then_nothing_until_it_has_worked_for_a_while() {
        let second = Duration::from_secs(1);
        for (subject, most) in [(thing(1), RETURNS), (Subject::Side(Side::Hub), RETURNS_OF_SIDE)] {
            let mut failures = Failures::default();
            let (mut lines, mut ends) = (Vec::new(), 0);
            for _ in 0..3600 {
                lines.extend(failures.fails(&subject, 1, None, now()));
                assert_eq!(failures.count(), 1);
                tokio::time::advance(second).await;
                ends += usize::from(failures.ends(&subject, now()).unwrap().is_logged);
                assert!(failures.count() == 0 && failures.ends(&subject, now()).is_none());
                assert!(failures.steady(now()).is_empty());
                tokio::time::advance(second).await;
            }
            assert_eq!((lines.len(), ends), (usize::from(most) + 1, usize::from(most)));
            assert_eq!(lines.last(), Some(&Line::Last));
            assert!(failures.due().is_some());
            tokio::time::advance(STEADY).await;
            assert_eq!(failures.steady(now()), [(subject.clone(), 7199 * second)]);
            assert!(failures.streaks.is_empty() && failures.due().is_none());
            assert_eq!(
                failures.fails(&subject, 1, None, now()),
                Some(Line::News),
                "it is another streak"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_works_for_a_while_and_fails_again_is_another_streak() {
        let mut failures = Failures::default();
        for _ in 0..3 {
            assert_eq!(failures.fails(&thing(1), 1, None, now()), Some(Line::News));
            assert!(ends(&mut failures, 1));
            tokio::time::advance(STEADY).await;
        }
        assert!(failures.steady(now()).is_empty(), "its end was logged");
    }

    #[tokio::test(start_paused = true)]
    async fn what_may_soon_pass_has_a_line_once_it_lasts_and_only_then_one_at_its_end() {
        let second = Duration::from_secs(1);
        for has_failed_before in [false, true] {
            let mut failures = Failures::default();
            if has_failed_before {
                assert!(fails(&mut failures, 1, None));
                assert!(ends(&mut failures, 1));
                tokio::time::advance(60 * second).await;
            }
            for _ in 0..5 {
                failures.fails_for_now(&thing(1), now());
                assert_eq!(
                    (failures.count(), failures.lasts(&thing(1), now())),
                    (1, Some(Duration::ZERO))
                );
                assert!(!ends(&mut failures, 1));
                tokio::time::advance(second).await;
            }
            failures.fails_for_now(&thing(1), now());
            tokio::time::advance(second).await;
            assert_eq!(failures.lasts(&thing(1), now()), Some(second));
            assert!(fails(&mut failures, 1, None), "it lasts");
            assert!(!fails(&mut failures, 1, None));
            let ended = failures.ends(&thing(1), now()).unwrap();
            assert_eq!(ended.is_logged, !has_failed_before, "it has come and gone");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_that_has_returned_has_one_line_whatever_its_error_becomes() {
        let mut failures = Failures::default();
        let side = Subject::Side(Side::Edge);
        let mut lines = Vec::new();
        for _ in 0..3 {
            for kind in [1, 2, 1] {
                lines.push(failures.fails(&side, kind, None, now()).is_some());
            }
            tokio::time::advance(LASTING).await;
            assert!(failures.ends(&side, now()).unwrap().is_logged);
        }
        assert_eq!(lines, [true, false, false].repeat(3));
    }

    #[test]
    fn what_fails_costs_little_more_than_its_name() {
        assert!(size_of::<Streak>() <= 120, "{}", size_of::<Streak>());
    }
}
