//! A kcp that is simulated: an HTTPS server in a thread of the test process, with what a real kcp has of workspaces, types,
//! the virtual workspaces of initializers and exports, discovery, RBAC and an audit log; and with faults.
//!
//! What it takes for granted of a real kcp is in `tests/init_role/assumptions.rs`, which both have to pass.

mod exports;
mod faults;
mod initializing;
mod kinds;
mod objects;
mod request;
mod rights;
mod state;
mod stream;
mod workspaces;

#[allow(
    dead_code,
    unreachable_pub,
    reason = "it is shared with the simulation of the syncer's servers"
)]
#[path = "../sim/patch.rs"]
mod patch;

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};
use tokio_rustls::TlsAcceptor;

#[allow(unused_imports, reason = "not every file of tests asks for faults")]
pub(crate) use faults::{Chaos, Refusal};
pub(crate) use rights::ADMIN;
pub(crate) use state::State;

use crate::support::AuditEvent;
use crate::support::certs::Authority;
use faults::Fate;
use request::{Answer, Request, not_served, status};

type Body = UnsyncBoxBody<Bytes, Infallible>;

const JSON: http::HeaderValue = http::HeaderValue::from_static("application/json");

/// See the module's doc. It ends when it is dropped.
pub(crate) struct Simulated {
    state: Arc<Mutex<State>>,
    /// How long it is to be away; it ends when this closes.
    control: UnboundedSender<Duration>,
    /// Where it is, without a path; the first of its shards.
    pub(crate) url: String,
    /// Its CA, as PEM.
    pub(crate) ca: String,
}

impl Simulated {
    /// Starts one with so many shards.
    pub(crate) fn start(shards: usize) -> Self {
        let ports: Vec<u16> = (0..shards).map(|_| crate::support::free_port()).collect();
        let urls: Vec<String> = ports.iter().map(|port| format!("https://127.0.0.1:{port}")).collect();
        let authority = Authority::new("simulated-kcp");
        let tls = TlsAcceptor::from(Arc::new(server_config(&authority)));
        let mut state = State::new(urls.clone());
        workspaces::bootstrap(&mut state);
        let state = Arc::new(Mutex::new(state));
        let (control, orders) = unbounded_channel();
        let shared = Arc::clone(&state);
        let (listens, is_there) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime can be made");
            runtime.block_on(run(shared, ports, tls, orders, listens));
        });
        is_there.recv().expect("it listens");
        Self {
            state,
            control,
            url: urls[0].clone(),
            ca: authority.certificate,
        }
    }

    /// All that it knows, for tests that change or read it.
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Cuts all connections, is away for a while, and knows nothing afterwards of what had changed before.
    pub(crate) fn restart(&self, away: Duration) {
        self.control.send(away).expect("it runs");
    }

    /// No slice names these shards, until it is called again.
    pub(crate) fn leaves_out(&self, shards: &[usize]) {
        let mut state = self.state();
        state.faults.unnamed = shards.to_vec();
        exports::endpoints(&mut state);
    }

    /// How many watches are open at paths with this in them.
    pub(crate) fn open_watches(&self, part: &str) -> usize {
        let mut state = self.state();
        state.open.retain(|(_, is_open)| is_open.upgrade().is_some());
        state.open.iter().filter(|(path, _)| path.contains(part)).count()
    }

    /// What one user has asked for.
    pub(crate) fn requests(&self, user: &str) -> Vec<AuditEvent> {
        let state = self.state();
        let of_user = state.audit.iter().filter(|event| event.user == user);
        of_user.cloned().collect()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // A test that has failed while it held it says so itself.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn server_config(authority: &Authority) -> ServerConfig {
    let identity = authority.serving(&["127.0.0.1", "localhost"]);
    let certificate = CertificateDer::from_pem_slice(identity.certificate.as_bytes()).expect("it is PEM");
    let key = PrivateKeyDer::from_pem_slice(identity.key.as_bytes()).expect("it is PEM");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = builder
        .expect("there are some")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("they belong together");
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}

async fn run(
    state: Arc<Mutex<State>>,
    ports: Vec<u16>,
    tls: TlsAcceptor,
    mut orders: UnboundedReceiver<Duration>,
    listens: std::sync::mpsc::Sender<()>,
) {
    let clock = Arc::clone(&state);
    tokio::spawn(async move {
        let mut ticks = interval(Duration::from_millis(10));
        loop {
            ticks.tick().await;
            workspaces::tick(&mut lock(&clock));
        }
    });
    loop {
        let mut listeners = JoinSet::new();
        for (shard, port) in ports.iter().enumerate() {
            // One that was here before may not have gone yet.
            let listener = loop {
                match TcpListener::bind(("127.0.0.1", *port)).await {
                    Ok(listener) => break listener,
                    Err(_) => sleep(Duration::from_millis(20)).await,
                }
            };
            listeners.spawn(accept(Arc::clone(&state), listener, tls.clone(), shard));
        }
        // Only the first time does somebody wait for it.
        let _ = listens.send(());
        let Some(away) = orders.recv().await else {
            return;
        };
        listeners.shutdown().await;
        sleep(away).await;
        let mut state = lock(&state);
        state.compacted = state.version;
    }
}

async fn accept(state: Arc<Mutex<State>>, listener: TcpListener, tls: TlsAcceptor, shard: usize) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(connection(Arc::clone(&state), stream, tls.clone(), shard));
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(state: Arc<Mutex<State>>, stream: TcpStream, tls: TlsAcceptor, shard: usize) {
    let Ok(stream) = tls.accept(stream).await else {
        return;
    };
    let speaks_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let service = service_fn(move |request| {
        let state = Arc::clone(&state);
        async move { Ok::<_, Infallible>(respond(&state, shard, request).await) }
    });
    let io = TokioIo::new(stream);
    // The client may go away at any time.
    if speaks_h2 {
        let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        let _ = builder.serve_connection(io, service).await;
    } else {
        let builder = hyper::server::conn::http1::Builder::new();
        let _ = builder.serve_connection(io, service).await;
    }
}

async fn respond(state: &Arc<Mutex<State>>, shard: usize, request: http::Request<Incoming>) -> Response<Body> {
    let received = crate::support::time_now();
    let (head, body) = request.into_parts();
    let body = body
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    let header = |name: &str| {
        let value = head.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let (path, query) = (head.uri.path(), head.uri.query().unwrap_or_default());
    let token = header(AUTHORIZATION.as_str());
    let token = token.strip_prefix("Bearer ").unwrap_or_default();
    // Tokens are the names of users.
    let mut user = token.to_owned();
    let acts_as = header("impersonate-user");
    if user == ADMIN && !acts_as.is_empty() {
        user = acts_as;
    }
    let mut base = Request::new(query, &head.headers, &body, user.clone());
    let path = request::decoded(path);
    base.whole.clone_from(&path);
    if lock(state).faults.hangs(&path) {
        std::future::pending::<()>().await;
    }
    let fate = lock(state).faults.fate(&user);
    if let Fate::Late(millis) = fate {
        sleep(Duration::from_millis(millis)).await;
    }
    let (verb, answer) = match fate {
        _ if user.is_empty() => ("get", status(401, "Unauthorized", "Unauthorized")),
        Fate::Refused(code) => ("get", faults::failure(code)),
        _ => route(&mut lock(state), shard, &path, &base, &head.method),
    };
    let answer = match fate {
        Fate::Lost(code) => faults::failure(code),
        _ => answer,
    };
    let code = match &answer {
        Answer::Json(code, _) | Answer::Text(code, _) => *code,
        Answer::Typed(..) | Answer::Watch(_) => 200,
    };
    let (_, within) = path.split_once("/clusters/").unwrap_or_default();
    let (workspace, within) = within.split_once('/').unwrap_or((within, ""));
    let cluster = lock(state).id_of(workspace).unwrap_or_default();
    lock(state).audit.push(AuditEvent {
        verb: verb.to_owned(),
        uri: format!("/{within}"),
        cluster,
        user_agent: header("user-agent"),
        user,
        code,
        stage: "ResponseComplete".to_owned(),
        received,
    });
    into_response(state, answer, head.uri.path())
}

/// Finds who answers: a workspace, a virtual workspace, or the root.
fn route(state: &mut State, shard: usize, path: &str, base: &Request, method: &http::Method) -> (&'static str, Answer) {
    let split = |text: &str| match text.split_once('/') {
        Some((first, rest)) => (first.to_owned(), format!("/{rest}")),
        None => (text.to_owned(), "/".to_owned()),
    };
    if let Some(rest) = path.strip_prefix("/services/initializingworkspaces/") {
        let (initializer, rest) = split(rest);
        let Some(rest) = rest.strip_prefix("/clusters/") else {
            return ("get", not_served());
        };
        let (what, rest) = split(rest);
        let request = base.below(&rest, method);
        if state.faults.unserved.contains(&shard) {
            return (request.verb, Answer::Text(503, "shard is not ready\n".to_owned()));
        }
        if let Some(answer) = state.faults.refuse(&request) {
            return (request.verb, answer);
        }
        let of_shard = Some(shard).filter(|_| state.shards.len() > 1);
        return (
            request.verb,
            initializing::answer(state, of_shard, &initializer, &what, &request),
        );
    }
    if let Some(rest) = path.strip_prefix("/services/apiexport/") {
        let (id, rest) = split(rest);
        let (export, rest) = split(rest.trim_start_matches('/'));
        let Some(rest) = rest.strip_prefix("/clusters/") else {
            return ("get", not_served());
        };
        let (what, rest) = split(rest);
        let request = base.below(&rest, method);
        if state.faults.unserved.contains(&shard) {
            return (request.verb, Answer::Text(503, "shard is not ready\n".to_owned()));
        }
        if let Some(answer) = state.faults.refuse(&request) {
            return (request.verb, answer);
        }
        let of_shard = Some(shard).filter(|_| state.shards.len() > 1);
        return (
            request.verb,
            exports::answer(state, of_shard, [&id, &export], &what, &request),
        );
    }
    let below = path.strip_prefix("/clusters/");
    let (workspace, rest) = below.map_or_else(|| ("root".to_owned(), path.to_owned()), split);
    let request = base.below(&rest, method);
    if let Some(answer) = state.faults.refuse(&request) {
        return (request.verb, answer);
    }
    let Some(id) = state.id_of(&workspace) else {
        let message = format!(
            "forbidden: User {:?} cannot {} path {rest:?}: access denied",
            base.user, request.verb
        );
        return (request.verb, status(403, "Forbidden", &message));
    };
    let refusal = rights::refusal(&state.clusters[&id], &request);
    let answer = match refusal {
        Some(message) => request::status_of(
            403,
            "Forbidden",
            &message,
            &request.group,
            &request.resource,
            &request.name,
        ),
        None => objects::answer(state, &id, &request),
    };
    (request.verb, answer)
}

fn into_response(state: &Arc<Mutex<State>>, answer: Answer, path: &str) -> Response<Body> {
    let (code, of_type, text) = match answer {
        Answer::Json(code, value) => (code, "application/json", value.to_string()),
        Answer::Typed(of_type, value) => (200, of_type, value.to_string()),
        Answer::Text(code, text) => (code, "text/plain; charset=utf-8", text),
        Answer::Watch(watch) => {
            let lines = stream::Following::begin(state, *watch, path).lines();
            let mut response = Response::new(StreamBody::new(lines).boxed_unsync());
            response.headers_mut().insert(CONTENT_TYPE, JSON);
            return response;
        }
    };
    let mut response = Response::new(Full::new(Bytes::from(text)).boxed_unsync());
    *response.status_mut() = http::StatusCode::from_u16(code).expect("it is one");
    let of_type = http::HeaderValue::from_static(of_type);
    response.headers_mut().insert(CONTENT_TYPE, of_type);
    response
}
