//! What a request asks for: its path, query and headers taken apart.

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use http::Method;

/// A request.
#[derive(Clone, Debug)]
pub struct Ask {
    /// What is to be done.
    pub verb: Verb,
    /// To what.
    pub target: Target,
    /// The query, decoded.
    pub query: BTreeMap<String, String>,
    /// Metadata alone is asked for.
    pub metadata_only: bool,
    /// The body.
    pub body: Bytes,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// What is served.
    Discover,
    /// Read one object.
    Get,
    /// Read a collection.
    List,
    /// Watch from a version.
    Watch,
    /// A streaming list, then a watch.
    Stream,
    /// Server-side apply.
    Apply,
    /// Merge patch.
    MergePatch,
    /// JSON patch.
    JsonPatch,
    /// POST.
    Create,
    /// PUT.
    Replace,
    /// DELETE.
    Delete,
    /// Nothing that is known here.
    Unknown,
}

impl Verb {
    /// True if it may change something.
    pub fn writes(self) -> bool {
        use Verb::{Apply, Create, Delete, JsonPatch, MergePatch, Replace};
        matches!(self, Apply | Create | Delete | JsonPatch | MergePatch | Replace)
    }

    /// True if it reads a whole collection.
    pub fn lists(self) -> bool {
        matches!(self, Self::List | Self::Stream)
    }

    /// True if its answer stays open.
    pub fn watches(self) -> bool {
        matches!(self, Self::Watch | Self::Stream)
    }
}

/// What a path names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// API group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Plural; empty for discovery.
    pub resource: String,
    /// Namespace, or empty.
    pub namespace: String,
    /// Name, or empty for a collection.
    pub name: String,
    /// Subresource, or empty.
    pub subresource: String,
}

impl Target {
    /// `resource.group`.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() {
            self.resource.clone()
        } else {
            format!("{}.{}", self.resource, self.group)
        }
    }
}

impl Ask {
    /// Takes a request apart.
    pub fn read(request: http::Request<Bytes>) -> Self {
        let (head, body) = request.into_parts();
        let header = |name: http::header::HeaderName| {
            let value = head.headers.get(name).and_then(|value| value.to_str().ok());
            value.unwrap_or_default().to_owned()
        };
        let query: BTreeMap<_, _> = head.uri.query().map(read_query).unwrap_or_default();
        let target = read_path(head.uri.path());
        let verb = verb(&head.method, &target, &query, &header(http::header::CONTENT_TYPE));
        Self {
            verb,
            target,
            query,
            metadata_only: header(http::header::ACCEPT).contains("as=PartialObjectMetadata"),
            body,
        }
    }

    /// One value of the query, or empty.
    pub fn asked(&self, key: &str) -> &str {
        self.query.get(key).map_or("", String::as_str)
    }
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Target {
            group,
            version,
            namespace,
            name,
            subresource,
            ..
        } = &self.target;
        if self.verb == Verb::Discover {
            return write!(f, "Discover {group}/{version}");
        }
        write!(f, "{:?} {}", self.verb, self.target.qualified())?;
        for part in [namespace, name, subresource]
            .into_iter()
            .filter(|part| !part.is_empty())
        {
            write!(f, "/{part}")?;
        }
        for key in [
            "resourceVersion",
            "continue",
            "fieldSelector",
            "labelSelector",
            "dryRun",
        ] {
            if let Some(value) = self.query.get(key) {
                write!(f, " {key}={value}")?;
            }
        }
        Ok(())
    }
}

fn verb(method: &Method, target: &Target, query: &BTreeMap<String, String>, content: &str) -> Verb {
    let is = |key: &str, value: &str| query.get(key).is_some_and(|found| found == value);
    match *method {
        Method::GET if target.resource.is_empty() => Verb::Discover,
        Method::GET if is("watch", "true") && is("sendInitialEvents", "true") => Verb::Stream,
        Method::GET if is("watch", "true") => Verb::Watch,
        Method::GET if target.name.is_empty() => Verb::List,
        Method::GET => Verb::Get,
        Method::POST => Verb::Create,
        Method::PUT => Verb::Replace,
        Method::DELETE => Verb::Delete,
        Method::PATCH => match content {
            "application/apply-patch+yaml" => Verb::Apply,
            "application/merge-patch+json" => Verb::MergePatch,
            "application/json-patch+json" => Verb::JsonPatch,
            _ => Verb::Unknown,
        },
        _ => Verb::Unknown,
    }
}

fn read_path(path: &str) -> Target {
    let parts: Vec<String> = path.trim_matches('/').split('/').map(decode).collect();
    let mut parts = parts.into_iter();
    let mut next = || parts.next().unwrap_or_default();
    let mut target = Target::default();
    if next() == "apis" {
        target.group = next();
    }
    target.version = next();
    target.resource = next();
    target.name = next();
    target.subresource = next();
    if target.resource == "namespaces" && !target.subresource.is_empty() && target.subresource != "status" {
        target.namespace = std::mem::take(&mut target.name);
        target.resource = std::mem::take(&mut target.subresource);
        target.name = next();
        target.subresource = next();
    }
    target
}

fn read_query(query: &str) -> BTreeMap<String, String> {
    let pair = |pair: &str| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(key), decode(value))
    };
    query.split('&').map(pair).collect()
}

fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        if let Some(byte) = escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            out.push(byte);
            at += 3;
        } else {
            out.push(bytes[at]);
            at += 1;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_paths_as_a_server_does() {
        let read = |path: &str| {
            let target = read_path(path);
            [
                target.group,
                target.version,
                target.resource,
                target.namespace,
                target.name,
                target.subresource,
            ]
        };
        for (path, expected) in [
            ("/api/v1", ["", "v1", "", "", "", ""]),
            ("/apis", ["", "", "", "", "", ""]),
            ("/apis/apps/v1", ["apps", "v1", "", "", "", ""]),
            ("/api/v1/namespaces/shop", ["", "v1", "namespaces", "", "shop", ""]),
            (
                "/api/v1/namespaces/shop/status",
                ["", "v1", "namespaces", "", "shop", "status"],
            ),
            (
                "/api/v1/namespaces/shop/configmaps",
                ["", "v1", "configmaps", "shop", "", ""],
            ),
            (
                "/apis/g/v1/namespaces/s/gauges/a/status",
                ["g", "v1", "gauges", "s", "a", "status"],
            ),
        ] {
            assert_eq!(read(path), expected, "{path}");
        }
        assert_eq!(decode("a%3Db%2Fc"), "a=b/c");
    }
}
