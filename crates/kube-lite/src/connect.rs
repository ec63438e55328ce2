//! The connection to one API server: TCP, proxy, TLS, HTTP and what is added to each request.
//!
//! Promises: a link that died silently is noticed within 30 s and a slow one is never mistaken for it (on HTTP/1.1,
//! which has no pings: as far as TCP notices); an error says which step failed, and what the other side said; the
//! memory of a stalled stream is bounded, and it never blocks other streams; nothing is retried here except what hyper
//! knows was never sent. Rate limits, time limits of single requests and reactions to answers are elsewhere.

use std::cell::Cell;
use std::io;
use std::time::Duration;

use http::Uri;
use http::uri::{Authority, Scheme};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use rustls::pki_types::ServerName;
use tower::{Service, ServiceExt as _};

use super::access::{BadField, check_authority, is_this_machine};
use super::alive::{Alive, Moved};
use super::dial::{Dial, erase};
use super::greeting::Greeting;
use super::lanes::{Client, Kept, Lanes};
use super::outgoing::Outgoing;
use super::tls;

/// Time to look up a name: two tries of the system's resolver. Without it, unreachable name servers would use up the
/// time of all later steps.
const NAME_LOOKUP: Duration = Duration::from_secs(10);

/// Time to reach the server: name lookup, TCP with all addresses of the name, proxy. LTE modems that wake up need several
/// seconds.
const REACH: Duration = Duration::from_secs(20);

/// Time for everything before the first request: reaching the server, and TLS, which is some 5 kB and two round trips.
/// Without it a server that accepts and then says nothing would hold a request for ever. Below the time limit of an
/// answer, so that the error says what failed.
const WHOLE_CONNECT: Duration = Duration::from_secs(28);

/// TCP keepalive notices a dead link to which nothing is written, above all HTTP/1.1 watches: 15 + 3 * 5 = 30 s.
const TCP_KEEPALIVE: Duration = Duration::from_secs(15);
const TCP_KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const TCP_KEEPALIVE_RETRIES: u32 = 3;

/// How long written data may stay unacknowledged: the same promise for a link that is written to.
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(25);

/// When nothing has come for this long, HTTP/2 pings ask for a sign of life; [`Alive`] then decides by what arrives. So
/// a dead link is noticed, and also a proxy that answers TCP while the server behind it is gone. The answer has 13 s.
const H2_PING: Duration = Duration::from_secs(15);

/// hyper's own limit for that answer is set so high that it has no effect: it would also count while other data keeps
/// arriving.
const H2_PING_TIMEOUT: Duration = Duration::from_secs(3600);

/// What the kernel may hold of what we send. More would only keep pings and requests waiting behind large bodies: at
/// 64 kbit/s this is 8 s. Less would slow down uploads over links with a high latency: this is 100 kB/s at 600 ms.
const SEND_BUFFER: usize = 64 * 1024;

/// What one stream may send us beyond what we have read: the memory that a stalled stream costs.
const H2_STREAM_WINDOW: u32 = 64 * 1024;

/// The same for a connection. It has room for 256 stalled streams, so that watches that wait for their turn never block
/// the answer to the GET that they wait for.
const H2_CONNECTION_WINDOW: u32 = 16 * 1024 * 1024;

/// Headers of API servers have a few hundred bytes; this bounds what a broken one can make us keep.
const H2_HEADERS: u32 = 16 * 1024;

/// Read buffer of an HTTP/1.1 connection; it grows to this and stays, once per watch.
const H1_BUFFER: usize = 64 * 1024;

/// Idle connections are kept a little longer than the pause between two heartbeats, to save the handshake.
const POOL_IDLE: Duration = Duration::from_secs(90);

/// With HTTP/2 there is one connection in each lane; with HTTP/1.1 two idle ones are enough for the few requests of an
/// idle syncer.
const POOL_SIZE: usize = 2;

/// The port of a SOCKS proxy whose URL names none (RFC 1928).
const SOCKS_PORT: u16 = 1080;

/// What requests of one side go through, and information about its connections.
pub struct Connection {
    /// Completes each request.
    pub(super) outgoing: Outgoing,
    /// Send it.
    pub(super) lanes: Lanes,
    /// Counts what passes the connections.
    pub(super) moved: Moved,
    /// The `Date` header of the server's last answer, as it is written there; empty if there is none.
    pub(super) date: Cell<Date>,
}

/// An HTTP date has 29 letters (RFC 9110, 5.6.7).
pub(super) type Date = [u8; 29];

/// Makes the connection of one side. Connects at the first request, not here.
///
/// An error is about a field of the configuration, and needs a person. The proxy is `proxy-url` of the kubeconfig, else
/// what `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` say.
pub fn connect(config: &Config, user_agent: &str) -> Result<Connection, BadField> {
    connect_in_place_of(Moved::default(), config, user_agent)
}

/// The same in the place of another connection to the server, whose bytes are counted on.
pub(super) fn connect_in_place_of(moved: Moved, config: &Config, user_agent: &str) -> Result<Connection, BadField> {
    Ok(Connection {
        outgoing: Outgoing::of(config, user_agent)?,
        lanes: lanes(config, &moved)?,
        moved,
        date: Cell::default(),
    })
}

fn lanes(config: &Config, moved: &Moved) -> Result<Lanes, BadField> {
    let (secured, moved) = (server_connector(config)?, moved.clone());
    Ok(Lanes::new(move |greeting, kept| {
        http_client(listened_to(&secured, &moved, greeting), kept)
    }))
}

fn http_client(dial: Dial, kept: Kept) -> Client {
    HttpClient::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        // A connection of another lane is closed with the lane. For the pool, a connection is idle also while streams
        // are open on it, and it would open another one for the next stream.
        .pool_idle_timeout((kept == Kept::Yes).then_some(POOL_IDLE))
        .pool_max_idle_per_host(POOL_SIZE)
        .http1_max_buf_size(H1_BUFFER)
        .http2_keep_alive_interval(H2_PING)
        .http2_keep_alive_timeout(H2_PING_TIMEOUT)
        .http2_keep_alive_while_idle(true)
        .http2_adaptive_window(false)
        .http2_initial_stream_window_size(H2_STREAM_WINDOW)
        .http2_initial_connection_window_size(H2_CONNECTION_WINDOW)
        .http2_max_header_list_size(H2_HEADERS)
        .build(dial)
}

/// TCP, proxy and TLS.
fn server_connector(config: &Config) -> Result<Dial, BadField> {
    let builder = HttpsConnectorBuilder::new()
        .with_tls_config(tls::for_server(config)?)
        .https_or_http();
    let builder = match &config.tls_server_name {
        Some(name) => {
            let wrong = |_| BadField::new("tls-server-name", format!("{name:?} is neither a name nor an address"));
            let parsed = ServerName::try_from(name.clone()).map_err(wrong)?;
            builder.with_server_name_resolver(FixedServerNameResolver::new(parsed))
        }
        None => builder,
    };
    Ok(erase(
        builder.enable_http1().enable_http2().wrap_connector(route(config)?),
    ))
}

/// Connections that are watched for signs of life, with the time limit for making one.
fn listened_to(connector: &Dial, moved: &Moved, greeting: Greeting) -> Dial {
    let moved = moved.clone();
    let listened_to = connector
        .clone()
        .map_response(move |stream| Alive::new(stream, moved.clone(), greeting.clone()));
    limited(erase(listened_to), WHOLE_CONNECT, "connected, but no TLS handshake")
}

/// `connector` with a time limit; `what` did not happen in time.
fn limited(connector: Dial, limit: Duration, what: &'static str) -> Dial {
    erase(connector.map_future(move |connecting| async move {
        match tokio::time::timeout(limit, connecting).await {
            Ok(result) => result,
            Err(_) => Err(too_late(what, limit).into()),
        }
    }))
}

fn too_late(what: &str, limit: Duration) -> io::Error {
    let words = format!("{what} within {} s", limit.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, words)
}

/// The way to the server, with its time limit.
fn route(config: &Config) -> Result<Dial, BadField> {
    let (route, what) = direct_or_proxy(config)?;
    Ok(limited(route, REACH, what))
}

/// The way to the server: straight, or through a proxy; and what did not happen if it takes too long.
fn direct_or_proxy(config: &Config) -> Result<(Dial, &'static str), BadField> {
    let direct = tcp_connector();
    let Some(proxy) = proxy(config, &Matcher::from_env())? else {
        return Ok((direct, "no TCP connection"));
    };
    let authority = proxy.uri().authority().map_or("", Authority::as_str);
    check_authority(authority).map_err(|_| unusable_proxy(config, "its host or port cannot be used"))?;
    let route = match proxy.uri().scheme_str() {
        Some("socks5" | "socks5h") => {
            let socks = SocksV5::new(with_port(proxy.uri(), SOCKS_PORT), direct);
            let socks = match proxy.raw_auth() {
                Some((user, password)) => socks.with_auth(user.to_owned(), password.to_owned()),
                None => socks,
            };
            erase(socks.map_request(|url: Uri| with_scheme_port(&url)))
        }
        Some("https") => {
            let tls: HttpsConnector<Dial> = HttpsConnectorBuilder::new()
                .with_tls_config(tls::for_proxy(config)?)
                .https_or_http()
                .enable_http1()
                .wrap_connector(direct);
            tunnel(&proxy, erase(tls))
        }
        Some("http") => tunnel(&proxy, direct),
        _ => return Err(unusable_proxy(config, PROXY_SCHEMES)),
    };
    Ok((route, "no connection through the proxy"))
}

fn tunnel(proxy: &Intercept, to_proxy: Dial) -> Dial {
    let tunnel = Tunnel::new(proxy.uri().clone(), to_proxy);
    let tunnel = match proxy.basic_auth() {
        Some(auth) => tunnel.with_auth(auth.clone()),
        None => tunnel,
    };
    erase(tunnel.map_request(|url: Uri| with_scheme_port(&url)))
}

/// The proxy to use, if any. As in client-go, one from the kubeconfig is used for every host, and one from the
/// environment not for this machine itself.
fn proxy(config: &Config, environment: &Matcher) -> Result<Option<Intercept>, BadField> {
    let Some(url) = &config.proxy_url else {
        return Ok(if is_this_machine(&config.cluster_url) {
            None
        } else {
            environment.intercept(&config.cluster_url)
        });
    };
    let scheme = url.scheme_str().unwrap_or_default();
    if !matches!(scheme, "http" | "https" | "socks5" | "socks5h") {
        return Err(unusable_proxy(config, PROXY_SCHEMES));
    }
    let matcher = Matcher::builder().all(url.to_string()).build();
    match matcher.intercept(&config.cluster_url) {
        Some(proxy) => Ok(Some(proxy)),
        None => Err(unusable_proxy(config, PROXY_SCHEMES)),
    }
}

const PROXY_SCHEMES: &str = "it must be a URL with http://, https://, socks5:// or socks5h://";

/// A fault of the proxy's URL, of which nothing is shown: it may hold a password.
fn unusable_proxy(config: &Config, why: &str) -> BadField {
    let field = if config.proxy_url.is_some() {
        "proxy-url"
    } else {
        "HTTPS_PROXY"
    };
    BadField::new(field, why)
}

/// The proxy on the way to the server, if there is one, for the end of a message: without user and password.
pub(super) fn proxy_for_people(config: &Config) -> String {
    match proxy(config, &Matcher::from_env()) {
        Ok(Some(proxy)) => {
            let url = proxy.uri();
            let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
            let (scheme, host) = (url.scheme_str().unwrap_or("http"), url.host().unwrap_or_default());
            format!(" through the proxy {scheme}://{host}{port}")
        }
        _ => String::new(),
    }
}

/// Proxies in hyper-util take 443 for a URL without a port, whatever its scheme.
fn with_scheme_port(url: &Uri) -> Uri {
    let port = if url.scheme() == Some(&Scheme::HTTP) { 80 } else { 443 };
    with_port(url, port)
}

fn with_port(url: &Uri, default: u16) -> Uri {
    let (None, Some(host)) = (url.port(), url.host()) else {
        return url.clone();
    };
    let mut parts = url.clone().into_parts();
    parts.authority = format!("{host}:{default}").parse::<Authority>().ok();
    Uri::from_parts(parts).unwrap_or_else(|_| url.clone())
}

/// Looks up a name, with a time limit.
async fn look_up(name: Name) -> io::Result<<GaiResolver as Service<Name>>::Response> {
    match tokio::time::timeout(NAME_LOOKUP, GaiResolver::new().oneshot(name)).await {
        Ok(result) => result,
        Err(_) => Err(too_late("no name server has answered", NAME_LOOKUP)),
    }
}

fn tcp_connector() -> Dial {
    let mut tcp = HttpConnector::new_with_resolver(tower::service_fn(look_up));
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(REACH));
    tcp.set_send_buffer_size(Some(SEND_BUFFER));
    tcp.set_keepalive(Some(TCP_KEEPALIVE));
    tcp.set_keepalive_interval(Some(TCP_KEEPALIVE_INTERVAL));
    tcp.set_keepalive_retries(Some(TCP_KEEPALIVE_RETRIES));
    tcp.set_tcp_user_timeout(Some(TCP_USER_TIMEOUT));
    erase(tcp)
}

#[cfg(test)]
mod tests;
