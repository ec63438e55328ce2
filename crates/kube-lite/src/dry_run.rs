//! A server at which nothing is changed: whatever would be written is asked for as a dry run.
//!
//! Promises: no request that is not a read leaves without `dryRun=All`, whoever sends it. The server then does all that it
//! does for a write (defaults, validation, policies, webhooks) but store it, and answers as if it had.

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use http::{Method, Request, Uri};
use serde_json::{Value, json};

use crate::between::Between;
use crate::{ApiServer, Error, Response};

/// What makes a write a dry run.
const ALL: &str = "dryRun=All";

/// Makes a dry run of each write. Only a program with the feature `admin` can have one: without it, all that only a dry run
/// needs is left out of the binary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DryRun(Able);

#[cfg(feature = "admin")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Able;

#[cfg(not(feature = "admin"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Able {}

impl DryRun {
    /// One, in a program that can have it.
    #[cfg(feature = "admin")]
    pub fn if_able() -> Option<Self> {
        Some(Self(Able))
    }

    /// One, in a program that can have it.
    #[cfg(not(feature = "admin"))]
    pub fn if_able() -> Option<Self> {
        None
    }
}

impl Between for DryRun {
    fn send<'a>(
        &'a self,
        server: &'a dyn ApiServer,
        request: Request<Bytes>,
    ) -> LocalBoxFuture<'a, Result<Response, Error>> {
        match dry(request) {
            Ok(request) => server.send(request),
            Err(error) => async move { Err(error) }.boxed_local(),
        }
    }
}

/// True for a request that changes nothing at a server.
pub fn is_dry<B>(request: &Request<B>) -> bool {
    let mut parameters = request.uri().query().unwrap_or_default().split('&');
    matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) || parameters.any(|found| found == ALL)
}

/// The request as a dry run.
fn dry(mut request: Request<Bytes>) -> Result<Request<Bytes>, Error> {
    if is_dry(&request) {
        return Ok(request);
    }
    let mark = if request.uri().query().is_some() { '&' } else { '?' };
    let uri = format!("{}{mark}{ALL}", request.uri());
    *request.uri_mut() = Uri::try_from(uri).map_err(|error| Error::NotSent(error.to_string()))?;
    // A server reads the options of a delete from its body, where there is one, and ignores the query then.
    if *request.method() == Method::DELETE && !request.body().is_empty() {
        let mut options: Value = serde_json::from_slice(request.body())
            .map_err(|error| Error::NotSent(format!("the options of a delete: {error}")))?;
        options["dryRun"] = json!(["All"]);
        *request.body_mut() = Bytes::from(options.to_string());
    }
    Ok(request)
}

/// What a merge patch (RFC 7386) makes of a value.
pub fn merged(of: Option<Value>, patch: &Value) -> Value {
    let Value::Object(fields) = patch else {
        return patch.clone();
    };
    let mut merging = match of {
        Some(Value::Object(known)) => known,
        _ => serde_json::Map::new(),
    };
    for (name, patch) in fields {
        let before = merging.remove(name);
        if !patch.is_null() {
            merging.insert(name.clone(), merged(before, patch));
        }
    }
    Value::Object(merging)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_write_is_a_dry_run_and_no_read_is_changed() {
        for (method, path, body, uri, sent) in [
            (Method::GET, "/api/v1/pods?limit=1", "", "/api/v1/pods?limit=1", ""),
            (Method::PATCH, "/a?force=true", "x", "/a?force=true&dryRun=All", "x"),
            (Method::POST, "/a", "{}", "/a?dryRun=All", "{}"),
            (Method::PUT, "/a?dryRun=All&x=y", "{}", "/a?dryRun=All&x=y", "{}"),
            (Method::PUT, "/a?x=dryRun=All", "{}", "/a?x=dryRun=All&dryRun=All", "{}"),
            (Method::DELETE, "/a", "", "/a?dryRun=All", ""),
            (
                Method::DELETE,
                "/a",
                r#"{"kind":"DeleteOptions"}"#,
                "/a?dryRun=All",
                r#"{"dryRun":["All"],"kind":"DeleteOptions"}"#,
            ),
        ] {
            let request = Request::builder()
                .method(&method)
                .uri(path)
                .body(Bytes::from(body))
                .unwrap();
            let dry = dry(request).unwrap();
            assert_eq!(
                (dry.uri().to_string().as_str(), &dry.body()[..]),
                (uri, sent.as_bytes()),
                "{method} {path}"
            );
            assert!(is_dry(&dry));
        }
        let request = Request::builder()
            .method(Method::DELETE)
            .uri("/a")
            .body(Bytes::from("no JSON"))
            .unwrap();
        assert!(
            dry(request).is_err(),
            "a delete that cannot be made a dry run is not sent"
        );
    }

    #[test]
    fn a_merge_patch_changes_removes_and_replaces() {
        for (of, patch, expected) in [
            (
                json!({"a": 1, "b": {"c": 2}}),
                json!({"b": {"d": 3}}),
                json!({"a": 1, "b": {"c": 2, "d": 3}}),
            ),
            (
                json!({"a": 1, "b": {"c": 2}}),
                json!({"a": null, "b": {"c": null}}),
                json!({"b": {}}),
            ),
            (json!({"a": [1, 2]}), json!({"a": [3]}), json!({"a": [3]})),
            (
                json!({"a": 1}),
                json!({"a": {"b": {"c": null}}}),
                json!({"a": {"b": {}}}),
            ),
        ] {
            assert_eq!(merged(Some(of.clone()), &patch), expected, "{of} {patch}");
        }
    }
}
