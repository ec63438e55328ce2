//! One API server, and how a log line is written. [`ApiServer`] is the border to it: plain HTTP, by the connections in
//! [`real`] or a simulated server; [`Cluster`] understands Kubernetes.
//!
//! Promises: every request passes the rate limit of its side; nothing is retried, except what was refused with
//! credentials that were renewed since, and a page of a list that the server cut; every wait for a server is bounded;
//! the failure of one request is distinguished from that of the whole side (`verbs/verdict.rs`).
//!
//! It never keeps an object, decides what is read or written, shows a secret in a line or an error, or knows a role:
//! only the reasons of log lines (`logging/reasons.rs`) are those of all roles, and advice about kubeconfigs names
//! `gen`.

pub mod access;
mod alive;
pub mod below;
pub mod between;
pub mod bounded;
mod causes;
mod certificate;
pub mod claims;
pub mod connect;
pub mod contact;
pub mod contents;
mod covered;
mod dial;
pub mod discovery;
pub mod dry_run;
mod error;
pub mod fields;
pub mod figures;
pub mod files;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
#[cfg(test)]
mod fuzz_tests;
mod greeting;
mod gzip;
pub mod hidden;
mod http_date;
mod json;
mod lanes;
pub mod logging;
pub mod meta;
mod object;
mod outgoing;
mod pem;
mod pieces;
mod rate;
pub mod read;
pub mod real;
mod refused;
pub mod reload;
mod resource;
mod room;
pub mod selector;
mod shared;
pub mod spelling;
mod stored;
mod stream;
mod tls;
mod token;
mod verbs;
mod workspace;

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::LocalBoxStream;
use secrecy::SecretString;

use claims::Claims;
use figures::Figures;

pub use certificate::since_1970_of;
pub use covered::without_values;
pub use error::{ApiStatus, Cause, Error};
pub use json::LONGEST_VERSION;
pub use object::Object;
pub use rate::{Rate, RateLimit};
pub use resource::{NOWHERE, encode, group_version_path, is_of_every_cluster, twin};
pub use resource::{
    ObjectName, ResourceType, Within, is_of_kubernetes, is_path_segment, is_uid, is_word, may_be_a_crd, qualified,
};
pub use stream::{Listing, WATCH_SILENCE, WatchEvent, Watching};
pub use verbs::{Cluster, Content, ListRequest, NewStatus, OnlyWith, Operation, Precondition, Scope, pointer};
pub use workspace::Workspaces;

/// A response body: chunks as they arrive. Not polling it is the back-pressure.
pub type Body = LocalBoxStream<'static, Result<Bytes, Error>>;

/// An answer of an API server, its body still on the way.
pub struct Response {
    /// The HTTP status code.
    pub status: u16,
    /// The `Retry-After` header, where there is one in seconds.
    pub retry_after: Option<Duration>,
    /// The server divides its capacity among its clients (API priority and fairness).
    pub is_fair: bool,
    /// The body.
    pub body: Body,
}

#[cfg(any(test, feature = "testing"))]
impl Response {
    /// An answer of one piece, for the scripted servers of tests.
    pub fn whole(status: u16, body: &'static str) -> Self {
        use futures_util::StreamExt;
        Self {
            status,
            retry_after: None,
            is_fair: false,
            body: futures_util::stream::iter([Ok(Bytes::from_static(body.as_bytes()))]).boxed_local(),
        }
    }
}

/// Where a server is and whom its connections trust, for messages to people. Holds no secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The name of the side; empty where that is not known.
    pub side: Rc<str>,
    /// The server's URL and the proxy on the way to it; empty where there is none.
    pub address: String,
    /// Where the CA of its certificate is to be put: field, entry and file; empty where that is not known.
    pub trust: String,
    /// Where that is written with which it is logged in to: field and file; empty where that is not known.
    pub login: String,
}

impl Place {
    /// The path of the server's URL, if it has one.
    pub fn path(&self) -> Option<&str> {
        let url = self.address.split(' ').next()?;
        let (_, rest) = url.split_once("://")?;
        let path = rest.get(rest.find('/')?..)?.trim_end_matches('/');
        (!path.is_empty()).then_some(path)
    }
}

/// The contact with a side at one moment.
#[derive(Clone, Debug, Default)]
pub struct Standing {
    /// It has answered, and no later request has failed without an answer. An answer to a request from before such a
    /// failure does not count.
    pub answers: bool,
    /// The credentials were accepted since they were last refused (401).
    pub accepts_credentials: bool,
    /// What answers in the place of a Kubernetes API, in its words, if the last probe was answered by something else
    /// and no Kubernetes API has answered since.
    pub stranger: Option<String>,
    /// How often another address has taken the place of one: what answers since may be another cluster.
    pub moves: u64,
    /// Where it is.
    pub place: Rc<Place>,
    /// How many workspaces it has.
    pub workspaces: Workspaces,
    /// When the credentials in force end, in seconds since 1970, if that is known.
    pub credentials_end: Option<u64>,
    /// How often it was logged that the credentials will end, or have ended.
    pub end_notices: u64,
    /// What was counted of it, its clock, and when it was last heard. Shared, and goes on.
    pub figures: Rc<Figures>,
    /// See [`ApiServer::link_bytes`].
    pub link_bytes: [u64; 2],
}

/// The credentials for a side, as far as they can end.
#[derive(Clone, Debug, Default)]
pub enum Credentials {
    /// The token of a service account in the kubeconfig itself.
    Token(SecretString, Claims),
    /// A client certificate, and its end in seconds since 1970.
    Certificate(Option<u64>),
    /// A token in a file of its own, which something else renews.
    TokenFile,
    /// Something whose end is not known: a token that is no JWT, a password, nothing.
    #[default]
    Other,
}

impl Credentials {
    /// Their end in seconds since 1970, if that is known.
    pub fn end(&self) -> Option<u64> {
        match self {
            Self::Token(_, claims) => claims.ends,
            Self::Certificate(end) => *end,
            Self::TokenFile | Self::Other => None,
        }
    }
}

/// A server that has these paths, with these bodies, and answers a bare 404 to all others, as a proxy does.
#[cfg(any(test, feature = "testing"))]
pub struct Paths(pub std::collections::BTreeMap<&'static str, &'static str>);

#[cfg(any(test, feature = "testing"))]
impl ApiServer for Paths {
    fn send(&self, request: http::Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
        let answer = match self.0.get(request.uri().path()) {
            Some(body) => Response::whole(200, body),
            None => Response::whole(404, "404 page not found"),
        };
        Box::pin(async move { Ok(answer) })
    }
}

/// The border to an API server: sends one request (path and query only, no host) and returns the answer.
///
/// Errors are [`Error::Unreachable`]; [`Error::Unanswered`] where the server has ended one stream, or a connection in an
/// orderly way; and [`Error::BadAnswer`] for a web page in the place of an object. Whatever else the server answered is a
/// [`Response`].
pub trait ApiServer {
    /// Sends `request`; resolves when the head of the answer is there.
    fn send(&self, request: http::Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>>;

    /// How many bytes have come from the server and gone to it, without those of TLS; constant where there is no link. While
    /// they grow, an answer that does not come may be waiting behind others.
    fn link_bytes(&self) -> [u64; 2] {
        [0; 2]
    }

    /// The time of the server when it last answered, in seconds since 1970, if it has said so.
    fn time(&self) -> Option<u64> {
        None
    }

    /// Where it is.
    fn place(&self) -> Rc<Place> {
        Rc::default()
    }

    /// How often another address has taken the place of one: what answers since may be another cluster.
    fn moves(&self) -> u64 {
        0
    }

    /// A number that changes when the credentials in force change.
    fn credentials(&self) -> u64 {
        0
    }

    /// The credentials in force.
    fn in_force(&self) -> Rc<Credentials> {
        Rc::default()
    }

    /// When they end, in seconds since 1970, if that is known.
    fn credentials_end(&self) -> Option<u64> {
        None
    }

    /// Uses this token, until the files have a newer one.
    fn use_token(&self, _token: SecretString) {}

    /// Checks whether the files with the server's address and the credentials were replaced. Each request does so too;
    /// this is for times without requests.
    fn check_files(&self) {}
}
