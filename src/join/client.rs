//! Requests of an administrator to the hub: one after the other, each answered or an error.
//!
//! Not [`kube_lite::Cluster`], which is made for a syncer that continues for years: here, a person waits for the
//! end of a command.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Method, Request, Uri};
use kube_lite::access::admin::{self, Admin};
use kube_lite::access::{self, Access, AccessError, BadField};
use kube_lite::connect::connect;
use kube_lite::real::RealServer;
use kube_lite::{ApiServer as _, Cluster, Error, Place, RateLimit};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::api::FIELD_MANAGER;

/// The name of the side, in messages.
const HUB: &str = "hub";
/// How long an answer may take: API servers give a request a minute.
const PATIENCE: Duration = Duration::from_secs(70);
/// The time between two lines that say that an answer is waited for.
const PROGRESS: Duration = Duration::from_secs(5);
/// The longest answer that is read: one object, or a list of a few.
const LONGEST: usize = 8 << 20;

/// The hub, as the administrator reaches it.
pub(super) struct Client {
    server: RealServer,
    access: Access,
    user_agent: String,
    /// Takes lines for people.
    say: fn(&str),
}

impl Client {
    /// Reads the files. Connects with the first request.
    pub(super) fn open(source: &Admin, user_agent: &str, say: fn(&str)) -> Result<Self, AccessError> {
        let access = admin::load(HUB, source)?;
        Self::by(access, user_agent, say)
    }

    fn by(access: Access, user_agent: &str, say: fn(&str)) -> Result<Self, AccessError> {
        let server = connect(&access.config, user_agent).map_err(|fault| access.place.error(fault))?;
        Ok(Self {
            server: RealServer(server),
            access,
            user_agent: user_agent.to_owned(),
            say,
        })
    }

    /// The same administrator at another URL, which is another workspace.
    pub(super) fn at(&self, url: Uri) -> Result<Self, AccessError> {
        let mut access = self.access.clone();
        access.config.cluster_url = url;
        Self::by(access, &self.user_agent, self.say)
    }

    /// The hub for the code that reads configs as a syncer does.
    pub(super) fn cluster(&self) -> Result<Cluster, AccessError> {
        let server = Self::by(self.access.clone(), &self.user_agent, self.say)?.server;
        Ok(Cluster::new(HUB, Box::new(server), RateLimit::new(None), FIELD_MANAGER))
    }

    /// The place for messages about what to do when it cannot be reached.
    pub(super) fn place(&self) -> Place {
        Place {
            side: HUB.into(),
            address: access::server_for_people(&self.access.config),
            trust: self.access.trust.clone(),
            login: self.access.login.clone(),
        }
    }

    /// An error about the URL in the cluster entry of the kubeconfig.
    pub(super) fn bad_url(&self, why: &str) -> AccessError {
        self.access.place.error(BadField::new("server", why))
    }

    /// An error about a flag beside the kubeconfig.
    pub(super) fn bad_flag(&self, flag: &str, why: &str) -> AccessError {
        self.access.place.error(BadField::new(flag, why))
    }

    /// Its URL.
    pub(super) fn url(&self) -> &Uri {
        &self.access.config.cluster_url
    }

    /// The PEM of its CA.
    pub(super) fn authority(&self) -> Option<&[u8]> {
        self.access.authority.as_deref()
    }

    pub(super) fn is_insecure(&self) -> bool {
        self.access.config.accept_invalid_certs
    }

    pub(super) fn server_name(&self) -> Option<&str> {
        self.access.config.tls_server_name.as_deref()
    }

    /// It is reached through a proxy of the kubeconfig.
    pub(super) fn has_proxy(&self) -> bool {
        self.access.config.proxy_url.is_some()
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value, Error> {
        self.ask(Method::GET, path, None).await
    }

    /// The object at this path, if there is one.
    pub(super) async fn find(&self, path: &str) -> Result<Option<Value>, Error> {
        let name = path.rsplit('/').next().unwrap_or_default();
        match self.get(path).await {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.proves_absent(name) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn create(&self, collection: &str, body: &Value) -> Result<Value, Error> {
        self.ask(Method::POST, &managed(collection), Some(("application/json", body)))
            .await
    }

    pub(super) async fn patch(&self, path: &str, body: &Value) -> Result<Value, Error> {
        let kind = "application/merge-patch+json";
        self.ask(Method::PATCH, &managed(path), Some((kind, body))).await
    }

    /// A JSON patch (RFC 6902).
    pub(super) async fn json_patch(&self, path: &str, operations: &Value) -> Result<Value, Error> {
        let kind = "application/json-patch+json";
        self.ask(Method::PATCH, &managed(path), Some((kind, operations))).await
    }

    /// Deletes exactly the object that was found.
    pub(super) async fn delete(&self, path: &str, found: &Value) -> Result<(), Error> {
        let options = serde_json::json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": found["metadata"]["uid"]},
            "propagationPolicy": "Background",
        });
        let name = path.rsplit('/').next().unwrap_or_default();
        match self
            .ask(Method::DELETE, path, Some(("application/json", &options)))
            .await
        {
            Err(error) if !error.proves_absent(name) => Err(error),
            _ => Ok(()),
        }
    }

    async fn ask(&self, method: Method, path: &str, body: Option<(&str, &Value)>) -> Result<Value, Error> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(ACCEPT, "application/json");
        if let Some((kind, _)) = body {
            request = request.header(CONTENT_TYPE, kind);
        }
        let body = body.map(|(_, body)| Bytes::from(body.to_string())).unwrap_or_default();
        let request = request.body(body).map_err(|error| Error::NotSent(error.to_string()))?;
        let what = format!("{} {path}", request.method());
        tokio::select! {
            answer = self.exchange(request) => answer,
            patience = self.wait_for(&what) => Err(Error::Unanswered(format!("no answer within {patience} s"))),
        }
    }

    /// Waits as long as an answer may take, which it gives in seconds, and says so meanwhile.
    async fn wait_for(&self, what: &str) -> u64 {
        let (began, patience) = (Instant::now(), PATIENCE.as_secs());
        while began.elapsed() + PROGRESS <= PATIENCE {
            sleep(PROGRESS).await;
            let waited = began.elapsed().as_secs();
            (self.say)(&format!(
                "waiting for the hub to answer {what} ({waited} s of {patience} s)"
            ));
        }
        sleep(PATIENCE.saturating_sub(began.elapsed())).await;
        patience
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Value, Error> {
        let mut response = self.server.send(request).await?;
        let mut body = BytesMut::new();
        while let Some(chunk) = response.body.next().await {
            body.extend_from_slice(&chunk?);
            if body.len() > LONGEST {
                return Err(Error::BadAnswer(format!("it has more than {LONGEST} bytes")));
            }
        }
        if !(200..300).contains(&response.status) {
            return Err(Error::from_answer(response.status, response.retry_after, &body));
        }
        // The parser's own words might quote a token.
        serde_json::from_slice(&body).map_err(|_| Error::BadAnswer("it is not JSON".to_owned()))
    }
}

fn managed(path: &str) -> String {
    format!("{path}?fieldManager={FIELD_MANAGER}-gen")
}
