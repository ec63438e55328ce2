//! What is counted of the requests to one server, for monitoring: in places of a fixed number, whatever it answers.

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use http::{Method, Request};
use tokio::time::Instant;

/// Pairs of a verb and a code that have a count of their own. The first ones that come have them: more would be more lines
/// on the page of metrics than it may have.
const PAIRS: usize = 8;

/// What requests are for, as far as they are counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// One object, a page of a list, or any other path.
    Read,
    /// A watch is opened.
    Watch,
    /// Something is created, changed or deleted, or would be.
    Write,
}

impl Verb {
    pub(super) fn of<B>(request: &Request<B>) -> Self {
        let is_watch = |query: &str| query.starts_with("watch=true&");
        match *request.method() {
            Method::GET if request.uri().query().is_some_and(is_watch) => Self::Watch,
            Method::GET => Self::Read,
            _ => Self::Write,
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Watch => "watch",
            Self::Write => "write",
        })
    }
}

/// The ends of the buckets of a histogram but the last one, which has none: in milliseconds, and in seconds as text.
pub type Ends = [(u32, &'static str); 7];

/// The ends for requests: from a server beside the syncer to the time that API servers give one.
pub const REQUEST_ENDS: Ends = [
    (10, "0.01"),
    (50, "0.05"),
    (200, "0.2"),
    (1000, "1"),
    (5000, "5"),
    (20_000, "20"),
    (60_000, "60"),
];

/// How often something took how long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: [u64; 8],
    sum: Duration,
}

impl Histogram {
    /// It took so long once more.
    pub fn add(&mut self, ends: &Ends, took: Duration) {
        let index = ends.iter().take_while(|(end, _)| took.as_millis() > u128::from(*end));
        self.counts[index.count()] += 1;
        self.sum += took;
    }

    /// How often it took no longer than the end of each bucket; the last one counts all.
    pub fn counts(&self) -> [u64; 8] {
        let mut sum = 0;
        self.counts.map(|count| {
            sum += count;
            sum
        })
    }

    /// How often it was.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How long it took in all.
    pub fn sum(&self) -> Duration {
        self.sum
    }
}

/// Requests of one kind, and how many there were. Without a kind they are all that found no place of their own.
type Requests = (Option<(Verb, Option<u16>)>, u64);

/// When a server was last heard, what time it was there, and what came of the requests to it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Figures {
    requests: Cell<[Requests; PAIRS + 1]>,
    reads: Cell<Histogram>,
    writes: Cell<Histogram>,
    heard: Cell<Option<Instant>>,
    date: Cell<Option<Dated>>,
}

/// The time that an answer says, in seconds since 1970: the server has written it between the two others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Dated {
    date: u64,
    began: Instant,
    answered: Instant,
}

impl Figures {
    /// A request that began then has this answer, its code, or none. `date` is the server's time, if it has said so.
    pub(super) fn ends(&self, verb: Verb, code: Option<u16>, began: Instant, date: Option<u64>) {
        let answered = Instant::now();
        self.count(Some((verb, code)));
        if code.is_some() {
            self.hears();
            if let Some(date) = date {
                self.date.set(Some(Dated { date, began, answered }));
            }
        }
        let lasted = match verb {
            Verb::Read => &self.reads,
            Verb::Write => &self.writes,
            // It lasts for as long as nothing ends it.
            Verb::Watch => return,
        };
        let mut histogram = lasted.get();
        histogram.add(&REQUEST_ENDS, answered.duration_since(began));
        lasted.set(histogram);
    }

    fn count(&self, kind: Option<(Verb, Option<u16>)>) {
        let mut requests = self.requests.get();
        let of_kind = |(other, count): &Requests| *other == kind || *count == 0;
        let place = requests[..PAIRS].iter().position(of_kind);
        let (of, count) = &mut requests[place.unwrap_or(PAIRS)];
        *of = place.and(kind);
        *count += 1;
        self.requests.set(requests);
    }

    /// Something has come from the server.
    pub(super) fn hears(&self) {
        self.heard.set(Some(Instant::now()));
    }

    /// When something last came from it: an answer, or a part of one.
    pub fn heard(&self) -> Option<Instant> {
        self.heard.get()
    }

    /// How many requests there were of each kind: verb and code, which is 0 without an answer. All that found no place have
    /// no kind.
    pub fn requests(&self) -> impl Iterator<Item = (Option<(Verb, u16)>, u64)> {
        let kinds = self.requests.get().into_iter().filter(|(_, count)| *count > 0);
        kinds.map(|(kind, count)| (kind.map(|(verb, code)| (verb, code.unwrap_or_default())), count))
    }

    /// How long it took until the head of the answer was there.
    pub fn durations(&self) -> [(Verb, Histogram); 2] {
        [(Verb::Read, self.reads.get()), (Verb::Write, self.writes.get())]
    }

    /// How far the server's clock is ahead of this machine's, in seconds; negative where it is behind. 0 for a difference
    /// that may as well be the time that the request took. `None` if the server has not said its time. `since_1970` is the time
    /// of this machine's clock at `now`.
    pub fn clock_ahead(&self, now: Instant, since_1970: Duration) -> Option<i64> {
        let Dated { date, began, answered } = self.date.get()?;
        let at = |then: Instant| since_1970.saturating_sub(now.duration_since(then)).as_secs();
        let nearest = date.clamp(at(began), at(answered).max(at(began)));
        Some(date.cast_signed() - nearest.cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(figures: &Figures) -> Vec<(Option<(Verb, u16)>, u64)> {
        figures.requests().collect()
    }

    #[tokio::test(start_paused = true)]
    async fn requests_are_counted_by_verb_and_code_in_few_places() {
        let figures = Figures::default();
        let now = Instant::now();
        for (verb, code) in [
            (Verb::Read, Some(200)),
            (Verb::Write, Some(200)),
            (Verb::Read, Some(200)),
            (Verb::Read, None),
        ] {
            figures.ends(verb, code, now, None);
        }
        let first = [
            (Some((Verb::Read, 200)), 2),
            (Some((Verb::Write, 200)), 1),
            (Some((Verb::Read, 0)), 1),
        ];
        assert_eq!(counted(&figures), first);
        for code in 400..500 {
            figures.ends(Verb::Write, Some(code), now, None);
        }
        let all = counted(&figures);
        assert_eq!(all.len(), PAIRS + 1);
        assert_eq!(all[..3], first);
        assert_eq!(all[PAIRS], (None, 100 - (PAIRS as u64 - 3)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_duration_is_in_the_buckets_that_it_fits() {
        let figures = Figures::default();
        let began = Instant::now();
        figures.ends(Verb::Write, Some(201), began, None);
        tokio::time::advance(Duration::from_millis(200)).await;
        figures.ends(Verb::Write, Some(409), began, None);
        figures.ends(Verb::Watch, Some(200), began, None);
        tokio::time::advance(Duration::from_secs(100)).await;
        figures.ends(Verb::Write, None, began, None);
        let [(_, reads), (_, writes)] = figures.durations();
        assert_eq!(reads, Histogram::default());
        assert_eq!(writes.counts(), [1, 1, 2, 2, 2, 2, 2, 3]);
        assert_eq!(writes.sum(), Duration::from_millis(100_400));
        assert!(
            figures.heard().is_some_and(|at| at < Instant::now()),
            "not by the last one"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn clocks_differ_by_what_the_time_of_the_request_does_not_explain() {
        let began = Instant::now();
        tokio::time::advance(Duration::from_secs(5)).await;
        // It began at second 1000 of this machine's clock, and was answered at second 1005.
        for (date, ahead) in [
            (1000, 0),
            (1003, 0),
            (1005, 0),
            (1006, 1),
            (1065, 60),
            (999, -1),
            (0, -1000),
        ] {
            let figures = Figures::default();
            assert_eq!(figures.clock_ahead(Instant::now(), Duration::ZERO), None);
            figures.ends(Verb::Read, Some(200), began, Some(date));
            let now = Instant::now() + Duration::from_secs(60);
            let clock = Duration::from_millis(1_065_900);
            assert_eq!(figures.clock_ahead(now, clock), Some(ahead), "{date}");
            // The clock of a board that begins in 1970, and is set later.
            assert_eq!(figures.clock_ahead(now, Duration::ZERO), Some(date.cast_signed()));
        }
    }

    #[test]
    fn a_verb_follows_from_method_and_query() {
        for (method, path, verb) in [
            ("GET", "/api", Verb::Read),
            ("GET", "/api/v1/pods?limit=500", Verb::Read),
            ("GET", "/api/v1/pods?watch=true&allowWatchBookmarks=true", Verb::Watch),
            ("PATCH", "/api/v1/pods/a?fieldManager=x", Verb::Write),
            ("DELETE", "/api/v1/pods/a", Verb::Write),
        ] {
            let request = Request::builder().method(method).uri(path).body(()).unwrap();
            assert_eq!(Verb::of(&request), verb, "{method} {path}");
        }
    }
}
