//! One active process of several: the one that holds a Lease works, the others stand by.
//!
//! [`while_leading`] runs one candidate. Its decisions are in [`election`], without I/O; the form of the Lease is in
//! [`lease`]; the requests are made here.
//!
//! Promises: the work does not begin before the Lease is held, and does not continue once the lead has ended, not even
//! by a process that was paused meanwhile: the clock is read before each step of the work. Requests that are already on
//! their way cannot be called back. Two syncers do no harm to each other's objects in any case (both write the same,
//! and each delete names what was read); the Lease only avoids that everything is done twice.
//!
//! If the server is unreachable, or refuses the Lease, there is no leader, and it is tried again. Time is measured by the
//! process's own clock, which stands still while a machine sleeps; a leader that wakes up may continue for at most the
//! renew deadline.

mod election;
mod lease;

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use kube_lite::logging::log_line;
use kube_lite::{Cluster, Content, Error, ObjectName};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use self::election::{Answer, Election, Output, Request, Timing};
use self::lease::{Lease, LeaseSpec, leases};

/// How long giving up the Lease may take: an unreachable server must not keep a process from ending.
const RELEASE_LIMIT: Duration = Duration::from_secs(3);

/// A wait for a former holder that somebody has to know of: longer than Leases last.
const LONG: Duration = Duration::from_secs(120);

/// What a candidate needs.
pub struct Candidacy {
    /// Where the Lease is. Without a rate limit, which would let a burst of work delay a renewal.
    pub server: Rc<Cluster>,
    /// The Lease.
    pub lease: ObjectName,
    /// The candidate: no two have the same identity, not even two processes in one pod after each other.
    pub identity: String,
    /// How long the Lease lasts without being renewed.
    pub lease_duration: Duration,
    /// The time of the wall clock in RFC 3339 with six decimals, for people; nothing is decided by it.
    pub clock: fn() -> String,
}

/// A name for this process: the machine's or pod's, and what distinguishes it from other processes there.
pub fn new_identity(host_name: &str) -> String {
    format!("{host_name}_{:016x}", fastrand::u64(..))
}

/// As [`while_leading`], or without a candidacy the work alone, until it ends.
pub async fn run<T, W: Future<Output = T>>(
    candidacy: Option<Candidacy>,
    stop: LocalBoxFuture<'static, ()>,
    mut work: impl FnMut(LocalBoxFuture<'static, ()>) -> W,
) -> Option<T> {
    match candidacy {
        None => Some(work(stop).await),
        Some(candidacy) => while_leading(candidacy, stop, work).await,
    }
}

/// Runs the future that `work` returns whenever the Lease is held, drops it when the lead ends, and begins again when
/// the Lease is held again. When `stop` resolves, the work is asked to finish, which it may do as long as the Lease
/// lasts; then the Lease is given up, which takes a few seconds at most.
///
/// Returns early, with the result of the work, if that ends by itself.
pub async fn while_leading<T, W: Future<Output = T>>(
    candidacy: Candidacy,
    stop: impl Future<Output = ()>,
    mut work: impl FnMut(LocalBoxFuture<'static, ()>) -> W,
) -> Option<T> {
    let mut candidate = Candidate::new(candidacy);
    let mut request: Option<LocalBoxFuture<'static, Sent>> = None;
    let mut working: Option<Pin<Box<W>>> = None;
    let mut finish = None;
    tokio::pin!(stop);
    loop {
        let now = Instant::now();
        let until = candidate.election.leads_until(now);
        match (until, &working) {
            (Some(_), None) => {
                candidate.log_begin();
                let (sender, asked) = oneshot::channel::<()>();
                finish = Some(sender);
                working = Some(Box::pin(work(asked.map(|_| ()).boxed_local())));
            }
            (None, Some(_)) => {
                working = None;
                candidate.log_end();
            }
            _ => {}
        }
        let mut wake = until;
        if request.is_none() {
            match candidate.election.next(now) {
                Output::Wait(due) => wake = Some(until.map_or(due, |until| until.min(due))),
                Output::Send(next) => request = Some(candidate.send(next)),
            }
        }
        tokio::select! {
            biased;
            () = &mut stop => break,
            sent = or_never(request.as_mut()) => {
                request = None;
                candidate.take_in(sent);
            }
            () = sleep_until(wake.unwrap_or(now)), if wake.is_some() => {}
            end = or_never(working.as_mut().map(|work| within(until, work))) => {
                if let WorkEnd::Done(given) = end {
                    candidate.release(request).await;
                    return Some(given);
                }
            }
        }
    }
    if let (Some(work), Some(finish)) = (working, finish) {
        finish_work(&candidate, work, finish).await;
    }
    candidate.release(request).await;
    None
}

/// Asks the work to finish, and waits for that as long as the Lease lasts.
async fn finish_work<W: Future>(candidate: &Candidate, mut work: Pin<Box<W>>, finish: oneshot::Sender<()>) {
    // If there is no receiver any more, the work has ended by itself.
    let is_asked = finish.send(()).is_ok();
    let until = candidate.election.leads_until(Instant::now());
    if let Some(until) = until.filter(|_| is_asked) {
        let finished = timeout_at(until, within(Some(until), &mut work)).await;
        let in_time = matches!(finished, Ok(WorkEnd::Done(_)));
        log_line!(Debug, WorkEnded, "the work has ended", in_time = in_time);
    }
}

/// When a request was sent, and its result.
struct Sent {
    at: Instant,
    writes: bool,
    answer: Answer,
}

/// Why the work does not continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkEnd<T> {
    /// It is done, with this result.
    Done(T),
    /// The time is over.
    TimeOver,
}

/// Runs the work as long as the lead lasts. The clock is read before each step, since a process that was paused may get
/// to its work before its timers.
async fn within<T>(until: Option<Instant>, work: &mut Pin<Box<impl Future<Output = T>>>) -> WorkEnd<T> {
    std::future::poll_fn(|context| {
        if until.is_none_or(|until| Instant::now() >= until) {
            return std::task::Poll::Ready(WorkEnd::TimeOver);
        }
        work.as_mut().poll(context).map(WorkEnd::Done)
    })
    .await
}

async fn or_never<T>(future: Option<impl Future<Output = T>>) -> T {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// A failure that was logged and has not ended.
#[derive(Debug, Default)]
struct LoggedFailure {
    text: String,
    /// It was of a write. That a read works is no sign that it has ended.
    writes: bool,
}

/// One candidate: its election, and what was logged about it.
struct Candidate {
    candidacy: Candidacy,
    timing: Timing,
    election: Election,
    /// The holder in the last line about standing by.
    logged_holder: String,
    /// The failure that was logged last and has not ended.
    logged_failure: LoggedFailure,
    /// What went wrong with the last renewal, if it did.
    failure: Option<String>,
}

impl Candidate {
    fn new(candidacy: Candidacy) -> Self {
        let timing = Timing::new(candidacy.lease_duration);
        let election = Election::new(candidacy.identity.clone(), timing, Instant::now());
        Self {
            candidacy,
            timing,
            election,
            logged_holder: String::new(),
            logged_failure: LoggedFailure::default(),
            failure: None,
        }
    }

    fn lease(&self) -> String {
        self.candidacy.lease.of_kind("Lease").to_string()
    }

    fn send(&self, request: Request) -> LocalBoxFuture<'static, Sent> {
        let server = Rc::clone(&self.candidacy.server);
        let name = self.candidacy.lease.clone();
        let clock = self.candidacy.clock;
        let limit = self.timing.request_limit();
        async move {
            let (at, writes) = (Instant::now(), !matches!(request, Request::Read));
            let answer = timeout(limit, act(&server, &name, request, clock)).await;
            let late = || Answer::Failed(Error::Unreachable(format!("no answer within {limit:?}")));
            Sent {
                at,
                writes,
                answer: answer.unwrap_or_else(|_| late()),
            }
        }
        .boxed_local()
    }

    fn take_in(&mut self, sent: Sent) {
        let now = Instant::now();
        let led = self.election.leads_until(now).is_some();
        if let Answer::Failed(error) = &sent.answer {
            self.failure = Some(error.to_string());
            self.log_failure(error, sent.writes, led);
        } else {
            self.failure = None;
            let LoggedFailure { text, writes } = &self.logged_failure;
            if !text.is_empty() && (sent.writes || !writes) {
                self.logged_failure = LoggedFailure::default();
                log_line!(Info, LeaseUsable, "the lease can be used again", lease = self.lease());
            }
        }
        let (found, held) = (
            matches!(sent.answer, Answer::Found(_)),
            self.election.holds_back(now).is_some(),
        );
        self.election.answered(sent.at, now, sent.answer, fastrand::f64());
        match self.election.holds_back(now) {
            Some(rest) if !held => self.log_held_back(rest),
            None if found && !led => self.log_standby(now),
            _ => {}
        }
    }

    /// Gives up the Lease if it is held. `request` is what is still under way: it may yet obtain the Lease.
    async fn release(&mut self, request: Option<LocalBoxFuture<'static, Sent>>) {
        let released = timeout(RELEASE_LIMIT, async {
            if let Some(request) = request {
                let sent = request.await;
                self.election.answered(sent.at, Instant::now(), sent.answer, 0.0);
            }
            // Twice: a renewal whose answer was lost has changed the version.
            for _ in 0..2 {
                let request = self.election.release(Instant::now())?;
                let sent = self.send(request).await;
                match sent.answer {
                    Answer::Written(_) => return Some(Ok(())),
                    Answer::Failed(error) => return Some(Err(error.to_string())),
                    _ => {
                        let sent = self.send(Request::Read).await;
                        self.election.answered(sent.at, Instant::now(), sent.answer, 0.0);
                    }
                }
            }
            None
        });
        match released.await {
            Ok(None) => {}
            Ok(Some(Ok(()))) => {
                log_line!(
                    Info,
                    LeaseReleased,
                    "released the lease, a standby may take over",
                    lease = self.lease()
                );
            }
            Ok(Some(Err(error))) => self.log_unreleased(&error),
            Err(_) => self.log_unreleased(&format!("no answer within {RELEASE_LIMIT:?}")),
        }
    }

    fn log_unreleased(&self, error: &str) {
        log_line!(
            Warn,
            LeaseNotReleased,
            "could not release the lease, a standby takes over when it has expired",
            lease = self.lease(),
            error = error
        );
    }

    fn log_begin(&mut self) {
        self.logged_holder.clear();
        let transitions = self.election.last_seen().map_or(0, LeaseSpec::transitions);
        log_line!(
            Info,
            Leading,
            "leading, the work begins",
            lease = self.lease(),
            identity = self.candidacy.identity,
            transitions = transitions
        );
    }

    fn log_end(&mut self) {
        let why = match self.election.last_seen().map(LeaseSpec::holder) {
            None => "somebody has deleted it".to_owned(),
            Some("") => "somebody has released it".to_owned(),
            Some(holder) if holder == self.candidacy.identity => {
                let failure = self.failure.as_deref().unwrap_or("there was no time to");
                format!("not renewed within {:?}: {failure}", self.timing.renew_deadline())
            }
            Some(holder) => format!("held by {holder}"),
        };
        log_line!(
            Warn,
            LeadershipLost,
            "no longer leading, the work has stopped",
            lease = self.lease(),
            because = why
        );
    }

    fn log_standby(&mut self, now: Instant) {
        let holder = self.election.last_seen().map_or("", LeaseSpec::holder).to_owned();
        let is_about_to_be_taken = matches!(self.election.next(now), Output::Send(_));
        if is_about_to_be_taken || holder == self.logged_holder {
            return;
        }
        self.logged_holder = holder;
        log_line!(
            Info,
            Standby,
            "standing by, another process leads",
            lease = self.lease(),
            holder = self.logged_holder,
            identity = self.candidacy.identity
        );
    }

    /// Somebody has deleted or emptied the Lease, and this candidate has it now.
    fn log_held_back(&mut self, rest: Duration) {
        self.logged_holder.clear();
        let leads_in = format!("{}s", rest.as_secs() + 1);
        log_line!(
            Info,
            Standby,
            "standing by with a lease that nobody has released, its former holder may still lead",
            lease = self.lease(),
            leads_in = leads_in,
            identity = self.candidacy.identity
        );
        if rest > LONG {
            log_line!(
                Warn,
                LeaseFailed,
                "somebody has written a long time to the lease, and nobody leads before that is over",
                lease = self.lease(),
                leads_in = leads_in,
                advice = "if no other process of this edge runs, restart all that do"
            );
        }
    }

    /// Logs a failure once for each streak. While it leads, a renewal that fails is logged only if the lead is lost by
    /// that.
    fn log_failure(&mut self, error: &Error, writes: bool, led: bool) {
        let text = error.to_string();
        if led || text == self.logged_failure.text {
            log_line!(
                Debug,
                LeaseFailed,
                "the lease cannot be used, will try again",
                lease = self.lease(),
                error = text
            );
            return;
        }
        if error.is_forbidden() {
            log_line!(
                Error,
                LeaseForbidden,
                "the lease is refused, so nothing is done",
                side = self.candidacy.server.name(),
                lease = self.lease(),
                error = text,
                advice = format_args!(
                    "allow it to get, create and patch leases.coordination.k8s.io in namespace {}",
                    self.candidacy.lease.namespace()
                )
            );
        } else {
            log_line!(
                Warn,
                LeaseFailed,
                "the lease cannot be used, will try again",
                lease = self.lease(),
                error = text
            );
        }
        self.logged_failure = LoggedFailure { text, writes };
    }
}

/// Sends one request.
async fn act(server: &Cluster, name: &ObjectName, request: Request, clock: fn() -> String) -> Answer {
    let result = match request {
        Request::Read => server
            .get(&leases(), name, Content::Full)
            .await
            .and_then(|object| Ok(Answer::Found(lease::parse(&object)?))),
        Request::Create(term) => {
            let spec = LeaseSpec::of(&term, &clock());
            let body = lease::new_object(name, &spec);
            let answer = server.create(&leases(), name, body).await;
            answer.and_then(|object| written(&object, spec))
        }
        Request::Update(version, term) => {
            let spec = LeaseSpec::of(&term, &clock());
            let body = lease::patch(&version, &spec);
            let answer = server.merge_patch_for(&leases(), name, body, Content::Metadata).await;
            answer.and_then(|object| written(&object, spec))
        }
    };
    match result {
        Ok(answer) => answer,
        Err(error) if error.is_conflict() => Answer::Conflict,
        Err(error) if error.proves_absent(&name.name) => Answer::Absent,
        Err(error) => Answer::Failed(error),
    }
}

fn written(object: &[u8], spec: LeaseSpec) -> Result<Answer, Error> {
    let version = lease::parse_version(object)?;
    Ok(Answer::Written(Lease { version, spec }))
}

#[cfg(test)]
mod tests;
