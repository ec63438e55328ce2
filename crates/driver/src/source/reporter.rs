//! What both modes of a source share: where it sends events, how it reports the state of the link, and how it reads
//! pages.

use std::rc::Rc;
use std::time::Duration;

use kube_lite::contact::Probe;
use kube_lite::{Cluster, Error, ListRequest, Listing, Object};
use tokio::sync::mpsc::Sender;
use tokio::time::{Instant, sleep};

use super::{Covers, SourceEvent, SourceId};

/// How long a server may take to set up a type before that is news.
const SET_UP: Duration = Duration::from_secs(5);
/// First wait after a failure, and the longest wait of a source that has to try often.
const FIRST_WAIT: Duration = Duration::from_millis(800);
pub(super) const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Why a source stopped reading before the end.
pub(super) enum ReadEnd {
    /// The shell is gone.
    Closed,
    /// Reading failed.
    Failed(Error),
}

/// The shell is gone; the source ends.
pub(super) struct Closed;

impl From<Closed> for ReadEnd {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

impl From<Error> for ReadEnd {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The channel to the shell, and how the link to the server was lately.
pub(super) struct Reporter {
    id: SourceId,
    events: Sender<(SourceId, SourceEvent)>,
    /// Failures since the last success.
    failures: u32,
    /// A version was too old since the last success: if the next one is too, that is a failure.
    expired: bool,
    /// When the server was too busy for the first time since the last success.
    busy_since: Option<Instant>,
    /// `Up` was sent, and no `Down` since.
    up: bool,
    cluster: Rc<Cluster>,
    /// This source is the one that asks whether its side is back.
    probe: Option<Probe>,
}

impl Reporter {
    pub(super) fn new(id: SourceId, events: Sender<(SourceId, SourceEvent)>, cluster: Rc<Cluster>) -> Self {
        Self {
            id,
            events,
            failures: 0,
            expired: false,
            busy_since: None,
            up: false,
            cluster,
            probe: None,
        }
    }

    /// Sends once the shell has room.
    pub(super) async fn send(&self, event: SourceEvent) -> Result<(), Closed> {
        self.events.send((self.id, event)).await.map_err(|_| Closed)
    }

    /// Reports that the side answers, once until it fails again.
    pub(super) async fn works(&mut self) -> Result<(), Closed> {
        self.probe = None;
        if self.up {
            return Ok(());
        }
        self.up = true;
        self.send(SourceEvent::Up).await
    }

    /// A success: failures are counted from here. The mode decides what counts as a success.
    pub(super) fn succeeds(&mut self) {
        self.failures = 0;
        self.expired = false;
        self.busy_since = None;
    }

    /// True for the first version since a success that was too old: no failure of the link, so begin again at once.
    pub(super) fn forgives(&mut self, error: &Error) -> bool {
        error.is_expired() && !std::mem::replace(&mut self.expired, true)
    }

    /// Reports a failure and waits its back-off, at most `longest`. That is added to what the server asks for, so that
    /// edges which it asked at the same time do not all come back at the same time. While the side is away, one of its
    /// sources keeps asking, and the others wait for what comes of that.
    pub(super) async fn fail(&mut self, error: Error, longest: Duration) -> Result<(), Closed> {
        // API servers answer "too busy" while they set up a type, also one that they did not serve before. It is
        // usually there in a moment, so that is not reported before the time has passed.
        let is_being_set_up =
            error.is_too_many() && self.busy_since.get_or_insert_with(Instant::now).elapsed() < SET_UP;
        if is_being_set_up {
            self.failures = 0;
        }
        self.failures += 1;
        self.up = false;
        let doubled = FIRST_WAIT.saturating_mul(1 << self.failures.min(10).saturating_sub(1));
        let wait = doubled.min(longest).mul_f64(jitter());
        let asked = error.retry_after().unwrap_or_default();
        let is_away = error.is_unreachable();
        if !is_being_set_up || asked > SET_UP {
            self.send(SourceEvent::Down(error)).await?;
        }
        sleep(asked + wait).await;
        if !is_away {
            self.probe = None;
        } else if self.probe.is_none() {
            self.probe = self.cluster.wait_for_return().await;
        }
        Ok(())
    }
}

/// A list that is read page by page. [`SourceEvent::Begin`] is sent at its first answer.
pub(super) struct Pages {
    listing: Listing,
    covers: Covers,
    begun: bool,
}

impl Pages {
    pub(super) fn of(cluster: &Rc<Cluster>, request: &ListRequest) -> Self {
        Self {
            listing: cluster.list(request.clone()),
            covers: Covers::of(request),
            begun: false,
        }
    }

    /// The next object, or what is none, or `None` at the successful end of the last page.
    pub(super) async fn next(
        &mut self,
        reporter: &mut Reporter,
    ) -> Result<Option<Result<Box<Object>, Error>>, ReadEnd> {
        let object = self.listing.next().await?;
        if !self.begun {
            self.begun = true;
            reporter.works().await?;
            reporter.send(SourceEvent::Begin(self.covers)).await?;
        }
        Ok(object.map(|object| Object::take_apart(object).map(Box::new)))
    }

    /// The version of the list; empty before it was read to its end.
    pub(super) fn version(&self) -> &str {
        self.listing.resource_version().unwrap_or_default()
    }
}

/// A resource version as a number that grows, which it is on every known server; 0 where it is not.
pub(super) fn version_number(version: &str) -> u64 {
    version.parse().unwrap_or(0)
}

/// A factor that spreads what many edges do over time.
pub(super) fn jitter() -> f64 {
    0.5 + fastrand::f64() / 2.0
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::channel;

    use kube_lite::{Paths, RateLimit};

    use super::*;

    fn answer(code: u16) -> Error {
        Error::from_answer(code, None, b"")
    }

    async fn wait_after(reporter: &mut Reporter, code: u16) -> Duration {
        let start = Instant::now();
        assert!(reporter.fail(answer(code), LONGEST_WAIT).await.is_ok());
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_type_that_is_being_set_up_is_not_waited_for_as_long_as_it_was_missing() {
        let (events, mut received) = channel(100);
        let server = Paths(std::collections::BTreeMap::new());
        let cluster = Cluster::new("hub", Box::new(server), RateLimit::new(None), "edge-syncer");
        let mut reporter = Reporter::new(0, events, Rc::new(cluster));
        for _ in 0..10 {
            wait_after(&mut reporter, 404).await;
        }
        assert!(wait_after(&mut reporter, 404).await >= LONGEST_WAIT / 2);
        assert!(wait_after(&mut reporter, 429).await <= FIRST_WAIT);
        // It may say so more than once.
        assert!(wait_after(&mut reporter, 429).await <= FIRST_WAIT);
        // A server whose answers alternate is not asked all the time.
        for _ in 0..10 {
            wait_after(&mut reporter, 404).await;
        }
        assert!(wait_after(&mut reporter, 429).await >= LONGEST_WAIT / 2);
        reporter.succeeds();
        assert!(wait_after(&mut reporter, 429).await <= FIRST_WAIT);
        let count = std::iter::from_fn(|| received.try_recv().ok()).count();
        assert_eq!(count, 22, "all but the first two 429, and the first after a success");
        received.close();
        assert!(
            reporter.fail(answer(404), LONGEST_WAIT).await.is_err(),
            "the shell is gone"
        );
    }
}
