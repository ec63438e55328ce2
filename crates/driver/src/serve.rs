//! Health and metrics over HTTP: `/healthz`, `/livez`, `/readyz` and `/metrics`; and a page for people at `/`.
//!
//! Promises: every answer comes from the shell's loop, so that a loop that hangs does not count as healthy; if another
//! syncer leads, there is no such loop, and the answer says so; at most [`CONNECTIONS`] connections at once, each for
//! one request and no longer than [`TIMEOUT`]; connections without a request, however many, do not block a probe: the
//! oldest of them is closed for a new one; no request here causes one to a server.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube_lite::logging::log_line;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, LocalSet, spawn_local};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// Connections at once. A monitor and two probes need three; the rest is for connections that are held open without a
/// request. One that has sent nothing costs a kilobyte or two, one that has sent something [`BUFFER`].
const CONNECTIONS: usize = 64;
/// How long a connection without a request is kept when others need its place. Real clients send their request as soon
/// as they connect. So 1,280 connections a second get their turn, and a probe, which has a second, is answered while
/// hundreds are held open.
const GRACE: Duration = Duration::from_millis(50);
/// How long a connection may take from its first byte to its last.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The time between two tries to accept while the process has no more file handles.
const ACCEPT_WAIT: Duration = Duration::from_millis(100);
/// The smallest that hyper allows; a request for health has a few hundred bytes.
const BUFFER: usize = 8 << 10;

/// What a browser may do with the page for people, whose names and words come from servers: show it with its own style,
/// and nothing else.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The answer of a standby (`--leader-elect`): it is as healthy and ready as it can be.
const STANDING_BY: &str = "ok, standing by\n";

/// A question to the role. No answer counts as a failure.
#[derive(Debug)]
pub enum HealthQuery {
    /// Does the loop run?
    Alive(oneshot::Sender<()>),
    /// Are the configs known and the first lists complete? If not, what is missing.
    Ready(oneshot::Sender<Result<(), &'static str>>),
    /// All figures.
    Metrics {
        /// The time since 1970.
        now: Duration,
        /// Where the text is sent.
        answer: oneshot::Sender<Bytes>,
    },
    /// The state as a page, in HTML, for people.
    Page {
        /// The time since 1970.
        now: Duration,
        /// Where the text is sent.
        answer: oneshot::Sender<Bytes>,
    },
    /// The state in one line, for the service manager.
    Status {
        /// The time since 1970.
        now: Duration,
        /// Where the line is sent.
        answer: oneshot::Sender<String>,
    },
}

/// Where to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenAddress {
    /// As it was given.
    text: String,
    /// The flag that has given it, for messages.
    flag: &'static str,
    /// The first one that this machine has is used.
    candidates: Vec<SocketAddr>,
}

impl ListenAddress {
    /// `10.0.0.1:8080` or `[::1]:8080`; as in Go also `:8080` for every address of this machine, and `localhost:8080`. The
    /// flag has given it.
    pub fn parse(flag: &'static str, text: &str) -> Option<Self> {
        let port = |port: &str| port.parse::<u16>().ok().filter(|_| !port.starts_with('+'));
        let candidates = match text.split_once(':') {
            // With IPv6, the first of them accepts IPv4 too.
            Some(("", rest)) => {
                let port = port(rest)?;
                vec![
                    (Ipv6Addr::UNSPECIFIED, port).into(),
                    (Ipv4Addr::UNSPECIFIED, port).into(),
                ]
            }
            Some(("localhost", rest)) => {
                let port = port(rest)?;
                vec![(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()]
            }
            _ => vec![text.parse().ok()?],
        };
        let text = text.to_owned();
        Some(Self { text, flag, candidates })
    }

    /// The error of this address, for a reason of the system.
    pub fn cannot_be_used(&self, source: io::Error) -> ServeError {
        ServeError {
            address: self.text.clone(),
            flag: self.flag,
            source,
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The address cannot be listened at; a person has to choose another one, or end the process that has it.
#[derive(Debug)]
pub struct ServeError {
    address: String,
    flag: &'static str,
    source: io::Error,
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot listen at {} ({})", self.address, self.flag)
    }
}

impl Error for ServeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}

/// Passes questions to the role that is at work, if there is one.
#[derive(Clone, Default)]
pub struct Desk(Rc<RefCell<Option<Sender<HealthQuery>>>>);

impl Desk {
    /// The receiver of questions, for the role that begins to work. Once it is dropped, no role is at work.
    pub fn open(&self) -> Receiver<HealthQuery> {
        let (questions, asked) = channel(1);
        self.0.replace(Some(questions));
        asked
    }

    /// `None` if no role is at work. If the shell's loop hangs, the time limit of the connection ends first.
    pub(crate) async fn ask<T>(&self, question: impl FnOnce(oneshot::Sender<T>) -> HealthQuery) -> Option<T> {
        let questions = self.0.borrow().clone()?;
        let (answer, answered) = oneshot::channel();
        questions.send(question(answer)).await.ok()?;
        answered.await.ok()
    }
}

/// Which pages an address has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// All of them, and the page for people.
    All,
    /// `/healthz`, `/livez` and `/readyz`.
    Health,
    /// `/metrics`.
    Metrics,
}

impl Pages {
    fn have(self, path: &str) -> bool {
        match path {
            "/healthz" | "/livez" | "/readyz" => self != Self::Metrics,
            "/metrics" => self != Self::Health,
            "/" => self == Self::All,
            _ => false,
        }
    }

    /// What there is.
    fn hint(self) -> &'static str {
        match self {
            Self::All => "see /, /healthz, /livez, /readyz and /metrics\n",
            Self::Health => "see /healthz, /livez and /readyz\n",
            Self::Metrics => "see /metrics\n",
        }
    }
}

/// What answers are made from.
struct Answers {
    desk: Desk,
    pages: Pages,
    clock: fn() -> Duration,
    standby: fn(&str) -> String,
}

/// Listens at each of these addresses that there is, and answers there for as long as `local` runs; see [`serve`].
pub async fn open<'a>(
    local: &LocalSet,
    places: impl IntoIterator<Item = (&'a Option<ListenAddress>, Pages)>,
    desk: &Desk,
    clock: fn() -> Duration,
    standby: fn(&str) -> String,
) -> Result<(), ServeError> {
    for (address, pages) in places {
        if let Some(address) = address {
            let listener = listen(address).await?;
            local.spawn_local(serve(listener, desk.clone(), pages, clock, standby));
        }
    }
    Ok(())
}

/// Begins to listen at the address.
pub async fn listen(address: &ListenAddress) -> Result<TcpListener, ServeError> {
    let taken = async {
        let listener = bind(&address.candidates).await?;
        let address = listener.local_addr()?;
        log_line!(Info, Serving, "serving health and metrics", address = address);
        Ok(listener)
    };
    taken.await.map_err(|source| address.cannot_be_used(source))
}

/// Whether it could listen at the address now. It listens for a moment, and says nothing.
pub async fn can_listen(address: &ListenAddress) -> Result<(), ServeError> {
    let listener = bind(&address.candidates).await;
    listener.map(drop).map_err(|source| address.cannot_be_used(source))
}

/// The other candidate is only for machines without IPv6, or without IPv4: if the port is taken, another address must
/// not be used instead, where nobody would expect it.
async fn bind(candidates: &[SocketAddr]) -> io::Result<TcpListener> {
    let mut first = None;
    for address in candidates {
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            Err(error) if matches!(error.kind(), ErrorKind::AddrInUse | ErrorKind::PermissionDenied) => {
                return Err(error);
            }
            Err(error) => drop(first.get_or_insert(error)),
        }
    }
    Err(first.unwrap_or_else(|| ErrorKind::AddrNotAvailable.into()))
}

/// Answers for as long as it is polled; `clock` gives the time since 1970, `standby` what is at `/` and `/metrics`
/// while another one leads. Needs a tokio `LocalSet`.
pub async fn serve(
    listener: TcpListener,
    desk: Desk,
    pages: Pages,
    clock: fn() -> Duration,
    standby: fn(&str) -> String,
) {
    let mut places = OpenConnections::default();
    let answers = Rc::new(Answers {
        desk,
        pages,
        clock,
        standby,
    });
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(ACCEPT_WAIT).await;
            continue;
        };
        while let Err(then) = places.make_room(Instant::now()) {
            sleep_until(then).await;
        }
        let asked = Rc::new(Cell::new(false));
        let (answers, asks) = (Rc::clone(&answers), Rc::clone(&asked));
        let task = spawn_local(async move {
            if timeout(TIMEOUT, connection(stream, &answers, &asks)).await.is_err() {
                log_line!(
                    Debug,
                    HealthRequestFailed,
                    "a request for health or metrics took too long"
                );
            }
        });
        places.0.push(OpenConnection {
            since: Instant::now(),
            asked,
            task: task.abort_handle(),
        });
    }
}

/// A connection that is open.
struct OpenConnection {
    since: Instant,
    /// Its request has arrived.
    asked: Rc<Cell<bool>>,
    task: AbortHandle,
}

/// All of them, the oldest first.
#[derive(Default)]
struct OpenConnections(Vec<OpenConnection>);

impl OpenConnections {
    /// Makes sure that there is a place: if all are taken, that of the oldest one without a request is freed or, if all
    /// have one, that of the oldest. If none has been there for long enough, returns when one will have been.
    fn make_room(&mut self, now: Instant) -> Result<(), Instant> {
        self.0.retain(|place| !place.task.is_finished());
        if self.0.len() < CONNECTIONS {
            return Ok(());
        }
        let silent = self.0.iter().position(|place| !place.asked.get());
        let index = silent.unwrap_or_default();
        let end = self.0[index].since + GRACE;
        if now < end {
            return Err(end);
        }
        self.0.remove(index).task.abort();
        Ok(())
    }
}

async fn connection(stream: TcpStream, answers: &Answers, asked: &Cell<bool>) {
    // Before that, it needs no buffers.
    if stream.readable().await.is_err() {
        return;
    }
    let respond = |request: Request<Incoming>| {
        asked.set(true);
        async move { Ok::<_, Infallible>(answers.to(&request).await) }
    };
    let served = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service_fn(respond));
    if let Err(error) = served.await {
        log_line!(
            Debug,
            HealthRequestFailed,
            "a request for health or metrics failed",
            error = error
        );
    }
}

impl Answers {
    async fn to(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let path = request.uri().path();
        if !self.pages.have(path) {
            return response(StatusCode::NOT_FOUND, self.pages.hint());
        }
        // hyper sends only the head of an answer to HEAD.
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            let mut refused = response(StatusCode::METHOD_NOT_ALLOWED, "GET and HEAD are all there is\n");
            refused
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refused;
        }
        match path {
            "/healthz" | "/livez" => match self.desk.ask(HealthQuery::Alive).await {
                Some(()) => response(StatusCode::OK, "ok\n"),
                None => response(StatusCode::OK, STANDING_BY),
            },
            "/readyz" => match self.desk.ask(HealthQuery::Ready).await {
                Some(Ok(())) => response(StatusCode::OK, "ok\n"),
                Some(Err(missing)) => response(StatusCode::SERVICE_UNAVAILABLE, missing),
                None => response(StatusCode::OK, STANDING_BY),
            },
            _ => {
                let (now, is_page) = ((self.clock)(), path == "/");
                let question = |answer| {
                    if is_page {
                        HealthQuery::Page { now, answer }
                    } else {
                        HealthQuery::Metrics { now, answer }
                    }
                };
                let text = self.desk.ask(question).await;
                let text = text.unwrap_or_else(|| (self.standby)(path).into());
                if is_page {
                    page(text)
                } else {
                    response(StatusCode::OK, text)
                }
            }
        }
    }
}

/// The answer that is a page for people.
fn page(text: Bytes) -> Response<Full<Bytes>> {
    let mut page = Response::new(Full::new(text));
    for (name, value) in [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, PAGE_POLICY),
    ] {
        page.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    page
}

fn response(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    // The version of the text format that Prometheus asks for; others read it as text.
    let text = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, text);
    response
}

#[cfg(test)]
#[path = "serve_tests.rs"]
mod tests;
