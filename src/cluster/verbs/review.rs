//! Questions to a server about our credentials and permissions: they are sent as objects to be created, but nothing is
//! stored.

use bytes::Bytes;
use http::Method;
use serde_json::Value;

use super::Cluster;
use crate::cluster::Error;
use crate::cluster::error::first_line;

impl Cluster {
    /// Sends a review of this kind, such as `SelfSubjectAccessReview`, to `path`, and returns the `status` of the
    /// answer.
    pub(crate) async fn review(&self, path: &str, kind: &str, spec: &Value) -> Result<Value, Error> {
        let api_version = path
            .trim_start_matches("/apis/")
            .rsplit_once('/')
            .map_or("", |(version, _)| version);
        let body = serde_json::json!({"apiVersion": api_version, "kind": kind, "spec": spec}).to_string();
        let json = "application/json";
        let answer = self.call(Method::POST, path, json, Some(json), Bytes::from(body));
        let answer = answer.await?;
        let mut found: Value = serde_json::from_slice(&answer).map_err(|_| Error::BadAnswer(first_line(&answer)))?;
        if found["kind"] != kind {
            return Err(Error::BadAnswer(first_line(&answer)));
        }
        Ok(found["status"].take())
    }

    /// The time of the server when it last answered, in seconds since 1970, if it has said so.
    pub(crate) fn time(&self) -> Option<u64> {
        self.server.time()
    }
}
