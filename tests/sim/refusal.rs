//! What an API server says when it refuses: the `Status` object of each case.

use std::time::Duration;

use serde_json::{Value, json};

use super::store::Key;
use super::types::Type;

/// An error answer.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// HTTP status code.
    pub code: u16,
    /// The body: a `Status` object, or a plain text where the real server sends one.
    pub body: String,
    /// The `Retry-After` header.
    pub retry_after: Option<Duration>,
}

impl Refusal {
    /// A `Status` with these parts.
    pub fn new(code: u16, reason: &str, message: &str, details: &Value) -> Self {
        let body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "details": details, "code": code,
        });
        Self {
            code,
            body: body.to_string(),
            retry_after: None,
        }
    }

    /// A text of whatever stands before the server, or of its outermost layer.
    pub fn plain(code: u16, text: &str) -> Self {
        Self {
            code,
            body: text.to_owned(),
            retry_after: None,
        }
    }

    /// A field manager has written an object at a version that its type no longer has.
    pub fn gone_version(ty: &Type) -> Self {
        let message = format!(
            "request to convert CR to an invalid group/version: {}",
            ty.former_version()
        );
        Self::new(500, "InternalError", &message, &json!({}))
    }

    /// There is no object of that name.
    pub fn not_found(ty: &Type, name: &str) -> Self {
        let message = format!("{} {name:?} not found", ty.qualified());
        Self::new(404, "NotFound", &message, &ty.details(name))
    }

    /// The namespace of an object to be created does not exist.
    pub fn no_namespace(name: &str) -> Self {
        let details = json!({"name": name, "kind": "namespaces"});
        Self::new(404, "NotFound", &format!("namespaces {name:?} not found"), &details)
    }

    /// The namespace of an object to be created is going.
    pub fn terminating_namespace(ty: &Type, key: &Key) -> Self {
        let namespace = &key.namespace;
        let mut details = ty.details(&key.name);
        details["causes"] = json!([{"reason": "NamespaceTerminating", "field": "metadata.namespace",
            "message": format!("namespace {namespace} is being terminated")}]);
        let message = format!(
            "{} {:?} is forbidden: unable to create new content in namespace {namespace} because it is being terminated",
            ty.qualified(),
            key.name
        );
        Self::new(403, "Forbidden", &message, &details)
    }

    /// The type is going.
    pub fn terminating_type() -> Self {
        let message = "create not allowed while custom resource definition is terminating";
        Self::new(405, "MethodNotAllowed", message, &json!({}))
    }

    /// The path is served by nobody: what the handler chain ends with.
    pub fn no_path() -> Self {
        Self::plain(404, "404 page not found\n")
    }

    /// The type is not served by a group that is.
    pub fn no_type() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(404, "NotFound", message, &json!({}))
    }

    /// The object exists already.
    pub fn exists(ty: &Type, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", ty.qualified());
        Self::new(409, "AlreadyExists", &message, &ty.details(name))
    }

    /// A precondition does not hold.
    pub fn conflict(ty: &Type, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", ty.qualified());
        Self::new(409, "Conflict", &message, &ty.details(name))
    }

    /// An apply without force would change what others own: the fields and their owners.
    pub fn contested(ty: &Type, name: &str, fields: &[(Vec<String>, String)]) -> Self {
        let mut details = ty.details(name);
        let cause = |(path, manager): &(Vec<String>, String)| {
            json!({"reason": "FieldManagerConflict", "message": format!("conflict with {manager:?}"),
                "field": format!(".{}", path.join("."))})
        };
        details["causes"] = fields.iter().map(cause).collect();
        let message = format!("Apply failed with {} conflicts", fields.len());
        Self::new(409, "Conflict", &message, &details)
    }

    /// The object does not pass validation.
    pub fn invalid(ty: &Type, name: &str, field: &str, why: &str) -> Self {
        let mut details = ty.details(name);
        details["causes"] = json!([{"reason": "FieldValueInvalid", "message": why, "field": field}]);
        let message = format!("{} {name:?} is invalid: {field}: {why}", ty.kind);
        Self::new(422, "Invalid", &message, &details)
    }

    /// The object does not pass validation, because a field may not be changed.
    pub fn unchangeable(ty: &Type, name: &str, field: &str, why: &str) -> Self {
        let mut details = ty.details(name);
        let why = format!("Forbidden: {why}");
        details["causes"] = json!([{"reason": "FieldValueForbidden", "message": why, "field": field}]);
        let message = format!("{} {name:?} is invalid: {field}: {why}", ty.kind);
        Self::new(422, "Invalid", &message, &details)
    }

    /// What is asked of a delete is nothing that there is.
    pub fn unknown_propagation(policy: &str) -> Self {
        let field = "propagationPolicy";
        let why = format!(
            "Unsupported value: {policy:?}: supported values: \"Background\", \"Foreground\", \"Orphan\", \"nil\""
        );
        let details = json!({"group": "meta.k8s.io", "kind": "DeleteOptions",
            "causes": [{"reason": "FieldValueNotSupported", "message": why, "field": field}]});
        let message = format!("DeleteOptions.meta.k8s.io \"\" is invalid: {field}: {why}");
        Self::new(422, "Invalid", &message, &details)
    }

    /// The request cannot be read.
    pub fn bad_request(why: &str) -> Self {
        Self::new(400, "BadRequest", why, &json!({}))
    }

    /// The user may not do this.
    pub fn forbidden(ty: &Type, name: &str) -> Self {
        let message = format!(
            "{} {name:?} is forbidden: User \"syncer\" cannot do this",
            ty.qualified()
        );
        Self::new(403, "Forbidden", &message, &ty.details(name))
    }

    /// An admission policy does not allow it.
    pub fn denied(resource: &str, name: &str) -> Self {
        let message = format!(
            "{resource} {name:?} is forbidden: ValidatingAdmissionPolicy 'no' with binding 'no' denied request: not now"
        );
        Self::new(422, "Invalid", &message, &json!({"name": name}))
    }

    /// A version that is compacted.
    pub fn expired() -> Self {
        let message = "The resourceVersion for the provided watch is too old.";
        Self::new(410, "Expired", message, &json!({}))
    }

    /// The credentials are not accepted.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized", &json!({}))
    }

    /// The server has too much to do.
    pub fn busy(code: u16, seconds: u64) -> Self {
        let reason = if code == 429 {
            "TooManyRequests"
        } else {
            "ServiceUnavailable"
        };
        let details = json!({"retryAfterSeconds": seconds});
        Self {
            retry_after: Some(Duration::from_secs(seconds)),
            ..Self::new(
                code,
                reason,
                "the server is currently unable to handle the request",
                &details,
            )
        }
    }

    /// The request took too long; whether it took effect is unknown.
    pub fn timed_out() -> Self {
        let message = "Timeout: request did not complete within requested timeout - context deadline exceeded";
        Self::new(504, "Timeout", message, &json!({}))
    }
}
