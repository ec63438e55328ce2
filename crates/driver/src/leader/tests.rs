//! Candidates against one simulated server, with a paused clock: lost requests and answers, delays, outages, pauses.

use std::cell::{Cell, RefCell};

use bytes::Bytes;
use fastrand::Rng;
use kube_lite::{ApiServer, RateLimit, Response};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::*;

/// The one Lease of a server that keeps nothing else, and what happens to requests for it.
struct Server {
    lease: RefCell<Option<Value>>,
    version: Cell<u64>,
    rng: RefCell<Rng>,
    /// In percent: requests and answers that are lost, or late.
    trouble: u32,
    /// Nobody reaches it until then.
    away_until: Cell<Option<Instant>>,
    /// How many work at this moment.
    working: Cell<u32>,
    /// How often somebody has begun.
    begun: Cell<u32>,
    /// How often somebody has finished because they were asked to.
    finished: Cell<u32>,
    /// How many writes took effect.
    writes: Cell<u32>,
}

impl Server {
    fn new(seed: u64, trouble: u32) -> Rc<Self> {
        Rc::new(Self {
            lease: RefCell::default(),
            version: Cell::new(0),
            rng: RefCell::new(Rng::with_seed(seed)),
            trouble,
            away_until: Cell::new(None),
            working: Cell::new(0),
            begun: Cell::new(0),
            finished: Cell::new(0),
            writes: Cell::new(0),
        })
    }

    /// Milliseconds on the way: few mostly, more than anybody waits sometimes. None if it is lost.
    fn way(&self) -> Option<Duration> {
        let mut rng = self.rng.borrow_mut();
        if rng.u32(0..100) >= self.trouble {
            return Some(Duration::from_millis(rng.u64(1..20)));
        }
        rng.bool().then(|| Duration::from_millis(rng.u64(0..30_000)))
    }

    fn is_away(&self) -> bool {
        self.away_until.get().is_some_and(|until| Instant::now() < until)
    }

    /// Answers like an API server.
    fn answer(&self, method: &http::Method, body: &[u8]) -> (u16, Value) {
        let mut stored = self.lease.borrow_mut();
        let conflict = json!({"kind": "Status", "reason": "Conflict", "code": 409});
        let mut body: Value = serde_json::from_slice(body).unwrap_or_default();
        match (method.as_str(), stored.as_mut()) {
            ("GET", Some(lease)) => return (200, lease.clone()),
            ("GET" | "PATCH", None) => {
                let absent = json!({"kind": "Status", "reason": "NotFound", "code": 404, "details": {"name": "l"}});
                return (404, absent);
            }
            ("PATCH", Some(lease)) if lease["metadata"] != body["metadata"] => return (409, conflict),
            ("POST", Some(_)) => return (409, conflict),
            _ => {}
        }
        self.version.set(self.version.get() + 1);
        self.writes.set(self.writes.get() + 1);
        body["metadata"] = json!({"resourceVersion": self.version.get().to_string()});
        *stored = Some(body.clone());
        body["metadata"]["name"] = "l".into();
        body["metadata"]["namespace"] = "default".into();
        (200, body)
    }
}

struct Wire(Rc<Server>);

impl ApiServer for Wire {
    fn send(&self, request: http::Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
        let server = Rc::clone(&self.0);
        // On its way, a request continues when its sender has given up.
        let journey = tokio::task::spawn_local(async move {
            let lost = || Error::Unreachable("lost".into());
            sleep(server.way().ok_or_else(lost)?).await;
            if server.is_away() {
                return Err(lost());
            }
            let (status, body) = server.answer(request.method(), request.body());
            sleep(server.way().ok_or_else(lost)?).await;
            Ok((status, body.to_string()))
        });
        async move {
            let (status, body) = journey.await.expect("it does not panic")?;
            Ok(Response::whole(status, body.leak()))
        }
        .boxed_local()
    }
}

fn candidacy(server: &Rc<Server>, identity: &str) -> Candidacy {
    let wire = Box::new(Wire(Rc::clone(server)));
    Candidacy {
        server: Rc::new(Cluster::new("edge", wire, RateLimit::new(None), "edge-syncer")),
        lease: ObjectName::new("default", "l"),
        identity: identity.to_owned(),
        lease_duration: Duration::from_secs(15),
        clock: time_of_day,
    }
}

/// A time that was never given before, as that of a real clock.
fn time_of_day() -> String {
    thread_local!(static SHOWN: Cell<u64> = const { Cell::new(0) });
    SHOWN.set(SHOWN.get() + 1);
    SHOWN.get().to_string()
}

/// Counts itself as working as long as it exists and is polled.
struct Working(Rc<Server>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.working.set(self.0.working.get() - 1);
    }
}

async fn work(server: Rc<Server>, stop: impl Future<Output = ()>) {
    server.working.set(server.working.get() + 1);
    server.begun.set(server.begun.get() + 1);
    assert_eq!(server.working.get(), 1, "two lead at once");
    let working = Working(server);
    stop.await;
    // The last that it does.
    sleep(Duration::from_millis(500)).await;
    working.0.finished.set(working.0.finished.get() + 1);
}

/// Runs a candidate until `stop`.
fn start(server: &Rc<Server>, identity: &str, stop: impl Future<Output = ()> + 'static) -> JoinHandle<()> {
    let candidacy = candidacy(server, identity);
    let server = Rc::clone(server);
    tokio::task::spawn_local(async move {
        while_leading(candidacy, stop, |stop| work(Rc::clone(&server), stop)).await;
    })
}

fn three(server: &Rc<Server>) -> [JoinHandle<()>; 3] {
    ["a", "b", "c"].map(|identity| start(server, identity, std::future::pending()))
}

/// Two that work at once have ended a candidate.
fn go_on(candidates: &[JoinHandle<()>], seed: u64) {
    for candidate in candidates {
        assert!(!candidate.is_finished(), "seed {seed}");
    }
}

/// One time in `of`, nobody reaches the server for a while.
fn is_away_sometimes(server: &Server, rng: &mut Rng, of: u32) {
    if rng.u32(0..of) == 0 {
        let outage = Duration::from_secs(rng.u64(1..40));
        server.away_until.set(Some(Instant::now() + outage));
    }
}

/// Runs a simulation on a paused clock.
fn simulate(story: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, story);
}

/// How long nobody works, at most, within `period`.
async fn longest_gap(server: &Server, period: Duration) -> Duration {
    let end = Instant::now() + period;
    let mut gap = Duration::ZERO;
    let mut since = Instant::now();
    while Instant::now() < end {
        if server.working.get() > 0 {
            since = Instant::now();
        }
        gap = gap.max(since.elapsed());
        sleep(Duration::from_millis(100)).await;
    }
    gap
}

#[test]
fn never_do_two_lead_at_once_whatever_is_lost_or_late() {
    for seed in 0..24 {
        simulate(async move {
            let server = Server::new(seed, 30);
            let mut rng = Rng::with_seed(seed);
            let candidates = three(&server);
            for _ in 0..60 {
                sleep(Duration::from_secs(rng.u64(1..60))).await;
                is_away_sometimes(&server, &mut rng, 3);
                go_on(&candidates, seed);
            }
            assert!(server.begun.get() > 1, "seed {seed}");
        });
    }
}

/// What people and their tools do to a Lease.
fn by_hand(server: &Server, rng: &mut Rng) {
    let mut stored = server.lease.borrow_mut();
    let Some(lease) = stored.as_mut() else {
        return;
    };
    server.version.set(server.version.get() + 1);
    lease["metadata"]["resourceVersion"] = json!(server.version.get().to_string());
    let spec = &mut lease["spec"];
    match rng.u32(0..8) {
        0..3 => *stored = None,
        3 => spec["holderIdentity"] = json!(""),
        4 => *spec = json!({}),
        5 => spec["holderIdentity"] = json!(["nobody", "a", "b"][rng.usize(0..3)]),
        // Not one second: without a holder, that is what a release looks like.
        6 => spec["leaseDurationSeconds"] = json!(rng.u32(2..40)),
        // A label, which says nothing.
        _ => {}
    }
}

#[test]
fn never_do_two_lead_at_once_whatever_is_done_to_the_lease_by_hand() {
    for seed in 0..100 {
        simulate(async move {
            let server = Server::new(seed, if seed % 2 == 0 { 0 } else { 20 });
            let mut rng = Rng::with_seed(seed);
            let candidates = three(&server);
            // They know the Lease before anybody touches it: who starts after it was deleted cannot know of a leader.
            sleep(Duration::from_secs(60)).await;
            for _ in 0..200 {
                sleep(Duration::from_millis(rng.u64(1..12_000))).await;
                for _ in 0..rng.u32(1..4) {
                    by_hand(&server, &mut rng);
                    sleep(Duration::from_millis(rng.u64(0..300))).await;
                }
                is_away_sometimes(&server, &mut rng, 10);
                go_on(&candidates, seed);
            }
            // In peace, one leads again.
            sleep(Duration::from_secs(300)).await;
            if server.trouble == 0 {
                assert_eq!(server.working.get(), 1, "seed {seed}");
            }
        });
    }
}

#[test]
fn the_first_that_starts_leads_at_once() {
    simulate(async {
        let server = Server::new(1, 0);
        let _candidate = start(&server, "a", std::future::pending());
        sleep(Duration::from_secs(1)).await;
        assert_eq!(server.working.get(), 1);
    });
}

#[test]
fn one_leads_all_the_time_where_nothing_goes_wrong_and_the_lease_is_written_twelve_times_a_minute() {
    simulate(async {
        let server = Server::new(1, 0);
        let _candidates = ["a", "b"].map(|identity| start(&server, identity, std::future::pending()));
        sleep(Duration::from_secs(10)).await;
        let before = server.writes.get();
        assert!(longest_gap(&server, Duration::from_secs(600)).await.is_zero());
        assert_eq!(server.begun.get(), 1);
        let renewals = server.writes.get() - before;
        assert!((118..=120).contains(&renewals), "{renewals}");
    });
}

#[test]
fn a_standby_takes_over_within_three_seconds_from_one_that_stops() {
    simulate(async {
        let server = Server::new(1, 0);
        let first = start(&server, "a", sleep(Duration::from_secs(100)));
        sleep(Duration::from_secs(1)).await;
        let _second = start(&server, "b", std::future::pending());
        let gap = longest_gap(&server, Duration::from_secs(200)).await;
        assert!(gap < Duration::from_secs(3), "{gap:?}");
        assert!(first.is_finished());
        assert_eq!(server.begun.get(), 2);
        assert_eq!(server.finished.get(), 1, "its work has come to its end");
    });
}

#[test]
fn a_standby_takes_over_when_the_lease_of_one_that_has_crashed_expires_also_if_somebody_deletes_it() {
    // The last renewal was up to 5 s before; it was seen, and its end will be, by a read every 2.4 s at most. Of a Lease
    // that is gone it is not known when it was renewed.
    for (is_deleted, gaps) in [(false, 9.0..20.0), (true, 15.0..19.0)] {
        simulate(async move {
            let server = Server::new(1, 0);
            let first = start(&server, "a", std::future::pending());
            sleep(Duration::from_secs(1)).await;
            let _second = start(&server, "b", std::future::pending());
            sleep(Duration::from_secs(60)).await;
            first.abort();
            server.lease.borrow_mut().take_if(|_| is_deleted);
            let gap = longest_gap(&server, Duration::from_secs(60)).await;
            assert!(gaps.contains(&gap.as_secs_f64()), "{is_deleted} {gap:?}");
        });
    }
}

#[test]
fn an_outage_shorter_than_the_deadline_changes_nothing() {
    simulate(async {
        let server = Server::new(1, 0);
        let _candidates = ["a", "b"].map(|identity| start(&server, identity, std::future::pending()));
        for _ in 0..100 {
            sleep(Duration::from_secs(20)).await;
            // Less than from one renewal to the deadline after it.
            server.away_until.set(Some(Instant::now() + Duration::from_secs(4)));
        }
        assert_eq!(server.begun.get(), 1);
    });
}

#[test]
fn stops_at_once_where_the_edge_is_away() {
    simulate(async {
        let server = Server::new(1, 0);
        let candidate = start(&server, "a", sleep(Duration::from_secs(7)));
        sleep(Duration::from_secs(6)).await;
        server.away_until.set(Some(Instant::now() + Duration::from_secs(3600)));
        sleep(Duration::from_secs(5)).await;
        assert!(candidate.is_finished());
        assert_eq!(server.working.get(), 0);
    });
}

#[tokio::test(start_paused = true)]
async fn work_is_not_driven_past_its_time_even_if_it_is_ready() {
    let mut work = Box::pin(async {});
    let until = Instant::now();
    assert_eq!(within(Some(until), &mut work).await, WorkEnd::TimeOver);
    let until = until + Duration::from_secs(1);
    assert_eq!(within(Some(until), &mut work).await, WorkEnd::Done(()));
}
