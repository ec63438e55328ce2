//! Questions to a server about our credentials and permissions: they are sent as objects to be created, but nothing is
//! stored.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use super::Cluster;
use crate::error::first_line;
use crate::{Error, ObjectName, ResourceType};

impl Cluster {
    /// Sends a review of this kind, such as `SelfSubjectAccessReview`, to `path`, and returns the `status` of the
    /// answer.
    pub async fn review(&self, path: &str, kind: &str, spec: &Value) -> Result<Value, Error> {
        let api_version = path
            .trim_start_matches("/apis/")
            .rsplit_once('/')
            .map_or("", |(version, _)| version);
        let body = json!({"apiVersion": api_version, "kind": kind, "spec": spec}).to_string();
        let json = "application/json";
        let answer = self.call(Method::POST, path, json, Some(json), Bytes::from(body));
        let answer = answer.await?;
        let mut found: Value = serde_json::from_slice(&answer).map_err(|_| Error::BadAnswer(first_line(&answer)))?;
        if found["kind"] != kind {
            return Err(Error::BadAnswer(first_line(&answer)));
        }
        Ok(found["status"].take())
    }

    /// True if our credentials allow what these attributes say (`resourceAttributes`), whatever admission makes of it.
    pub async fn allows(&self, attributes: &Value) -> Result<bool, Error> {
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let spec = json!({"resourceAttributes": attributes});
        let status = self.review(path, "SelfSubjectAccessReview", &spec).await?;
        Ok(status["allowed"] == true)
    }

    /// True if our credentials allow to apply this object.
    pub async fn may_apply(&self, resource: &ResourceType, name: &ObjectName) -> Result<bool, Error> {
        let attributes = json!({
            "group": resource.group,
            "resource": resource.resource,
            "verb": "patch",
            "namespace": name.namespace(),
            "name": &*name.name,
        });
        self.allows(&attributes).await
    }

    /// The time of the server when it last answered, in seconds since 1970, if it has said so.
    pub fn time(&self) -> Option<u64> {
        self.server.time()
    }
}
