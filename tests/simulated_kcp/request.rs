//! A request, taken apart as Kubernetes does it.

use std::collections::BTreeMap;

use http::{HeaderMap, Method};
use serde_json::{Value, json};

use super::exports::Shown;

/// What a request is for, below the URL of a workspace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    /// `get`, `list`, `watch`, `create`, `update`, `patch` or `delete`.
    pub(crate) verb: &'static str,
    /// Without what names the workspace.
    pub(crate) path: String,
    /// With that.
    pub(crate) whole: String,
    pub(crate) group: String,
    pub(crate) version: String,
    /// The plural; empty if the request is for no resource.
    pub(crate) resource: String,
    pub(crate) subresource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) accept: String,
    pub(crate) content_type: String,
    pub(crate) body: Value,
    pub(crate) user: String,
}

impl Request {
    /// Takes the path below a workspace apart.
    pub(crate) fn below(&self, path: &str, method: &Method) -> Self {
        let mut request = self.clone();
        path.clone_into(&mut request.path);
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let rest = match parts[..] {
            ["api", version, ref rest @ ..] => {
                version.clone_into(&mut request.version);
                rest
            }
            ["apis", group, version, ref rest @ ..] => {
                group.clone_into(&mut request.group);
                version.clone_into(&mut request.version);
                rest
            }
            _ => &[],
        };
        let rest = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() && rest[0] != "status" => {
                (*namespace).clone_into(&mut request.namespace);
                rest
            }
            rest => rest,
        };
        for (field, part) in [&mut request.resource, &mut request.name, &mut request.subresource]
            .into_iter()
            .zip(rest)
        {
            (*part).clone_into(field);
        }
        request.verb = request.verb_of(method);
        request
    }

    fn verb_of(&self, method: &Method) -> &'static str {
        let watches = matches!(self.query.get("watch").map(String::as_str), Some("true" | "1"));
        match *method {
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ if self.resource.is_empty() || !self.name.is_empty() => "get",
            _ if watches => "watch",
            _ => "list",
        }
    }

    /// What is the same for all parts of a server.
    pub(crate) fn new(query: &str, headers: &HeaderMap, body: &[u8], user: String) -> Self {
        let text = |name: &str| {
            let value = headers.get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        Self {
            query: pairs.map(|(key, value)| (decoded(key), decoded(value))).collect(),
            accept: text("accept"),
            content_type: text("content-type"),
            body: serde_json::from_slice(body).unwrap_or(Value::Null),
            user,
            ..Self::default()
        }
    }

    /// `apiVersion` of the objects.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `configmaps`, or `leases.coordination.k8s.io`.
    pub(crate) fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.resource.clone()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }
}

/// Text of a URL.
pub(crate) fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next().unwrap_or(b'0'), rest.next().unwrap_or(b'0')];
                let digits = String::from_utf8_lossy(&digits).into_owned();
                u8::from_str_radix(&digits, 16).unwrap_or(b'?')
            }
            byte => byte,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// An answer.
#[derive(Debug)]
pub(crate) enum Answer {
    Json(u16, Value),
    /// JSON of another type than `application/json`.
    Typed(&'static str, Value),
    Text(u16, String),
    Watch(Box<Watch>),
}

/// What a watch is of.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub(crate) scope: Scope,
    /// The kind of the objects.
    pub(crate) kind: String,
    /// The version after which changes are given.
    pub(crate) since: u64,
    /// What is there is given first, as additions.
    pub(crate) initial: bool,
    pub(crate) bookmarks: bool,
    pub(crate) seconds: Option<u64>,
    /// It is open, and gives nothing.
    pub(crate) deaf: bool,
}

/// Which objects a list or a watch is of.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// The ids of the workspaces; `None` for all.
    pub(crate) cluster: Option<String>,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
    pub(crate) namespace: String,
    pub(crate) labels: String,
    pub(crate) fields: String,
    /// Only clusters that wait for this initializer, in this shard.
    pub(crate) waits_for: Option<(String, Option<usize>)>,
    /// Only what the virtual workspace of an export shows, in this shard.
    pub(crate) through: Option<(Shown, Option<usize>)>,
}

/// A `Status`.
pub(crate) fn status(code: u16, reason: &str, message: &str) -> Answer {
    Answer::Json(
        code,
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
            "reason": reason, "code": code}),
    )
}

/// A `Status` about an object.
pub(crate) fn status_of(code: u16, reason: &str, message: &str, group: &str, kind: &str, name: &str) -> Answer {
    let Answer::Json(code, mut body) = status(code, reason, message) else {
        unreachable!("a status is JSON");
    };
    body["details"] = json!({"name": name, "kind": kind});
    if !group.is_empty() {
        body["details"]["group"] = json!(group);
    }
    Answer::Json(code, body)
}

/// What is not served.
pub(crate) fn not_served() -> Answer {
    Answer::Text(404, "404 page not found\n".to_owned())
}
