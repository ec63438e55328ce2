//! What can go wrong between the syncer and an API server, sorted by what the caller may conclude from it.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

/// What an API server answers for one API whose own server is unavailable, while it serves all others (kube-aggregator,
/// `pkg/apiserver/handler_proxy.go`).
const AGGREGATED_AWAY: &str = "service unavailable";

/// How many bytes of a server's words are kept, from the beginning and as many from the end: an error may carry a whole
/// object, and there may be one for each object.
const KEPT_WORDS: usize = 700;
/// The longest `Retry-After` that is respected: a nonsensical one must not stop anything for good, nor overflow when it
/// is added to a time.
const LONGEST_ASKED: Duration = Duration::from_secs(600);
/// The longest reason, kind or name in an error answer.
const LONGEST_NAME: usize = 300;
/// The most causes of one error that are read.
const CAUSES: usize = 50;

/// Why a request did not give what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The side is unreachable: no connection, or nothing on it answers. Whether a write took effect is unknown. Retry.
    Unreachable(String),
    /// No complete answer to this request, while the side answers others: a webhook that hangs, a stream that the server
    /// has ended. Whether a write took effect is unknown. Retry.
    Unanswered(String),
    /// The side does not accept the credentials, for any request.
    Unauthorized(Box<ApiStatus>),
    /// The server answered with an error. What to do depends on the status: see its methods.
    Status(Box<ApiStatus>),
    /// The server answered with success, but not in the form of the Kubernetes API (a captive portal's page, JSON that
    /// ends too early). Proves nothing. Retry.
    BadAnswer(String),
    /// The request was not sent, because no server could understand it: an invalid name, a path that is too long.
    NotSent(String),
    /// The server has accepted a write and stored nothing of it, for the reason given. Retry: it may store a later one.
    WithoutEffect(String),
    /// The side lists a group of types, and says that it does not serve it: a CRD was just defined or deleted, or a proxy
    /// has answered. Proves nothing. Read again: mostly it passes within seconds.
    NotServedYet(String),
    /// A new object has to wait until the former one is gone, which has these finalizers. It continues by itself.
    Ending(Vec<String>),
    /// The server shows an older state than it has shown before: there is a cache before it, or it was restored from a
    /// backup. Proves nothing. Read again.
    Outdated {
        /// The resource version that it shows.
        version: u64,
        /// The one that it has shown before.
        shown: u64,
    },
}

/// An error answer: the fields of a Kubernetes `Status` object that decisions depend on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiStatus {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason (`NotFound`, `Forbidden`, …); empty if the answer was no `Status` object.
    pub reason: String,
    /// The server's own words.
    pub message: String,
    /// `details.kind`: in answers about an object, its resource.
    pub details_kind: String,
    /// `details.name`: in answers about an object, its name.
    pub details_name: String,
    /// `details.causes`.
    pub causes: Vec<Cause>,
    /// How long the server asks to wait: ten minutes at most, whatever it says.
    pub retry_after: Option<Duration>,
}

/// One of several things that a server says about a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// The machine-readable reason.
    pub reason: String,
    /// The field of the object, such as `status.startTime`; empty if it is about none.
    pub field: String,
}

impl Error {
    /// Adds something to the server's words that the server does not know.
    pub fn add_words(&mut self, words: &str) {
        if let Self::Status(status) = self {
            status.message.push_str(words);
        }
    }

    /// Changes the server's words.
    pub(super) fn change_words(&mut self, change: impl FnOnce(&str) -> String) {
        if let Self::Status(status) = self {
            status.message = change(&status.message);
        }
    }

    /// Reads an error answer. A body that is no `Status` object (a proxy's page) keeps its first line as message.
    pub fn from_answer(code: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let retry_after = retry_after.map(believed);
        let status = match serde_json::from_slice::<WireStatus>(body) {
            // Where a request took too long, the answer has no kind.
            Ok(wire) if wire.kind == "Status" || (wire.kind.is_empty() && wire.status == "Failure") => {
                wire.into_status(code, retry_after)
            }
            _ => ApiStatus {
                code,
                message: first_line(body),
                retry_after,
                ..ApiStatus::default()
            },
        };
        Self::Status(Box::new(status))
    }

    /// Reads the object of an `ERROR` watch event, which has the code in its body.
    pub fn from_watch_error(body: &[u8]) -> Self {
        match serde_json::from_slice::<WireStatus>(body) {
            Ok(wire) if wire.kind == "Status" => {
                let code = wire.code;
                Self::Status(Box::new(wire.into_status(code, None)))
            }
            _ => Self::BadAnswer(format!("watch error without a Status: {}", first_line(body))),
        }
    }

    /// The status, if the server answered.
    pub fn status(&self) -> Option<&ApiStatus> {
        match self {
            Self::Status(status) | Self::Unauthorized(status) => Some(status),
            _ => None,
        }
    }

    /// How long the server asked to wait before the next try.
    pub fn retry_after(&self) -> Option<Duration> {
        self.status().and_then(|status| status.retry_after)
    }

    /// True if nothing answered: the cause is the link or the whole side, not this request.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable(_))
    }

    /// True if the server itself has not answered this request, for which the cause may be this request or the whole
    /// side: 502 and 504 come from a proxy before the server, 503 also from a server that is starting or stopping.
    pub(super) fn is_no_answer(&self) -> bool {
        match self {
            Self::Unanswered(_) => true,
            Self::Status(status) => {
                let nobody = matches!(status.code, 502..=504) && status.reason.is_empty();
                nobody && status.message != AGGREGATED_AWAY
            }
            _ => false,
        }
    }

    /// True for an answer that something else than a Kubernetes API may have given: a page, a redirect, an error without a
    /// `Status`. API servers answer 404 in this form for paths that they do not know.
    pub fn may_be_of_no_api(&self) -> bool {
        match self {
            Self::BadAnswer(_) => true,
            // No API server redirects.
            Self::Status(status) if (300..=399).contains(&status.code) => true,
            _ => self.is_bare(),
        }
    }

    /// True for an error that only a Kubernetes API answers with.
    pub(super) fn is_of_api(&self) -> bool {
        self.status().is_some_and(|status| !status.reason.is_empty())
    }

    /// True for an error answer that is no `Status`, where API servers mostly send one.
    pub(super) fn is_bare(&self) -> bool {
        let Self::Status(status) = self else { return false };
        status.reason.is_empty() && matches!(status.code, 400 | 403..=499 if status.code != 429)
    }

    /// True if the side does not accept the credentials. A 401 to a single request, such as from a misconfigured
    /// aggregated API, does not count.
    pub fn is_unauthorized(&self) -> bool {
        matches!(self, Self::Unauthorized(_))
    }

    /// True if the server accepts the credentials but does not allow the request.
    pub fn is_forbidden(&self) -> bool {
        self.status().is_some_and(|status| status.code == 403)
    }

    /// True if the server is too busy now. API servers also answer so for a type that they are setting up.
    pub fn is_too_many(&self) -> bool {
        self.status().is_some_and(|status| status.code == 429)
    }

    /// True if the server has refused the request as it is, so that it would do so again. One that is too busy, fails, or does
    /// not know us or the type may answer the next time.
    pub fn is_final(&self) -> bool {
        let refuses = |status: &ApiStatus| status.code < 500 && !matches!(status.code, 401 | 429);
        self.status().is_some_and(refuses) && !self.is_type_not_served()
    }

    /// True only if the server said that the object called `name` does not exist: the proof that a delete needs.
    ///
    /// A 404 of the type (CRD gone, wrong workspace, a proxy's page) carries no `details.name` and is no proof.
    pub fn proves_absent(&self, name: &str) -> bool {
        self.status()
            .is_some_and(|status| status.code == 404 && status.reason == "NotFound" && status.details_name == name)
    }

    /// True if the server does not serve the requested type or path at all.
    pub fn is_type_not_served(&self) -> bool {
        self.status()
            .is_some_and(|status| status.code == 404 && status.details_name.is_empty())
    }

    /// The namespace that has to exist first, if that is why a create was refused.
    pub fn missing_namespace(&self) -> Option<&str> {
        self.status()
            .filter(|status| status.code == 404 && status.details_kind == "namespaces")
            .map(|status| status.details_name.as_str())
    }

    /// True if a resource version or list continuation is too old: list again.
    pub fn is_expired(&self) -> bool {
        self.status()
            .is_some_and(|status| status.code == 410 || matches!(status.reason.as_str(), "Expired" | "Gone"))
    }

    /// True if a precondition (uid or resource version) no longer held.
    pub fn is_conflict(&self) -> bool {
        self.status()
            .is_some_and(|status| status.code == 409 && !status.is_denial())
    }

    /// True if it is in the nature of things, and passes by itself within seconds: then it is no failure.
    pub fn is_passing(&self) -> bool {
        self.is_conflict() || self.is_type_not_served() || matches!(self, Self::NotServedYet(_))
    }

    /// True if an object of that name exists already, so that it could not be created.
    pub fn is_already_there(&self) -> bool {
        self.status()
            .is_some_and(|status| status.code == 409 && status.reason == "AlreadyExists" && !status.is_denial())
    }

    /// True if a webhook has denied the request, whatever it answers with.
    pub fn is_denial(&self) -> bool {
        self.status().is_some_and(ApiStatus::is_denial)
    }

    /// True if the object does not pass the server's own validation: an immutable field, a value out of bounds.
    pub fn is_invalid(&self) -> bool {
        self.status().is_some_and(|status| status.code == 422)
    }

    /// True if an update may have been refused for what the object was before, whatever the words: by its validation, a
    /// policy or a webhook. Whether a new object would be taken, a dry run says ([`super::Cluster::would_create`]).
    ///
    /// Not for what no dry run reaches: a size that only the storage refuses (413), what was sent as an apply and does not
    /// fit the type (500).
    pub fn may_be_of_update(&self) -> bool {
        self.status().is_some_and(|status| {
            matches!(status.code, 400 | 403 | 422) || status.is_denial() || status.is_denied_by_policy()
        })
    }

    /// The error that a server would give for a field that must not change, if it silently keeps the old value.
    pub fn immutable(field: &str) -> Self {
        Self::Status(Box::new(ApiStatus {
            code: 422,
            reason: "Invalid".into(),
            message: format!("{field}: the server keeps the old value: field is immutable"),
            ..ApiStatus::default()
        }))
    }

    /// True if the server says that it has failed, and not that the object does not fit the schema of its type.
    pub fn is_internal(&self) -> bool {
        self.status()
            .is_some_and(|status| status.code == 500 && !status.is_misfit())
    }

    /// An answer has more than so many bytes.
    pub(crate) fn too_long(most: usize) -> Self {
        Self::BadAnswer(format!("{TOO_LONG} {most} bytes"))
    }

    /// True if an answer was longer than what is read of one: a part of what was asked for may be shorter.
    pub fn is_too_long(&self) -> bool {
        matches!(self, Self::BadAnswer(words) if words.starts_with(TOO_LONG))
    }

    /// True if the server has read the request and refused it: nothing has changed, and that need not be checked.
    pub fn is_refusal(&self) -> bool {
        self.is_rejection() || self.status().is_some_and(|status| status.code == 403)
    }

    /// True if the object itself is refused, so that the same request cannot succeed until something changes.
    pub fn is_rejection(&self) -> bool {
        self.status()
            .is_some_and(|status| matches!(status.code, 400 | 413 | 422) || status.is_denial() || status.is_misfit())
    }
}

/// How the words about an answer that is too long begin.
const TOO_LONG: &str = "more than";

impl ApiStatus {
    /// True if a webhook has denied the request. It may do so with any code.
    pub fn is_denial(&self) -> bool {
        self.message.contains("admission webhook ") && self.message.contains(" denied the request")
    }

    /// True if an admission policy has denied the request: with the code of the reason that it names, also 401 and 413.
    pub fn is_denied_by_policy(&self) -> bool {
        self.message.contains("AdmissionPolicy '") && self.message.contains(" denied request")
    }

    /// True if what was to be applied does not fit the schema of its type: server-side apply calls that its own error.
    pub fn is_misfit(&self) -> bool {
        self.code == 500 && self.message.contains("failed to create typed patch object")
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(reason) | Self::Unanswered(reason) => f.write_str(reason),
            Self::Status(status) | Self::Unauthorized(status) if status.message.is_empty() => {
                write!(f, "HTTP {}", status.code)
            }
            Self::Status(status) | Self::Unauthorized(status) => {
                write!(f, "{} (HTTP {})", status.message, status.code)
            }
            Self::NotServedYet(group) => write!(f, "group {group} is listed and not served"),
            Self::NotSent(reason) => write!(f, "nothing that could be asked for: {reason}"),
            Self::BadAnswer(reason) => write!(f, "not an answer of a Kubernetes API: {reason}"),
            Self::WithoutEffect(reason) => write!(f, "the server took it and kept nothing of it: {reason}"),
            Self::Ending(finalizers) => {
                let names = shortened(&finalizers.join(", "));
                write!(
                    f,
                    "the former one is still being deleted and waits for its finalizers: {names}"
                )
            }
            Self::Outdated { version, shown } => {
                write!(f, "it shows resource version {version} and has shown {shown} before")
            }
        }
    }
}

impl std::error::Error for Error {}

fn believed(asked: Duration) -> Duration {
    asked.min(LONGEST_ASKED)
}

/// A server's words without their middle, if they are long.
fn shortened(words: &str) -> String {
    if words.len() <= 2 * KEPT_WORDS {
        return words.to_owned();
    }
    let begin = begin_of(words, KEPT_WORDS);
    let end = (words.len() - KEPT_WORDS..words.len()).find_map(|at| words.get(at..));
    format!("{begin} … {}", end.unwrap_or_default())
}

/// The beginning of a text, of at most so many bytes.
fn begin_of(text: &str, bytes: usize) -> &str {
    (0..=bytes.min(text.len()))
        .rev()
        .find_map(|end| text.get(..end))
        .unwrap_or_default()
}

/// The first line of a body that is not what was expected, shortened for a log line.
pub(super) fn first_line(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body.get(..400).unwrap_or(body));
    let line = text.trim().lines().next().unwrap_or_default();
    line.chars().take(160).collect()
}

#[derive(Deserialize)]
struct WireStatus {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    code: u16,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    details: Option<WireDetails>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WireDetails {
    name: String,
    kind: String,
    causes: Option<Vec<WireCause>>,
    retry_after_seconds: u64,
}

#[derive(Deserialize)]
struct WireCause {
    #[serde(default)]
    reason: String,
    #[serde(default)]
    field: String,
}

impl WireStatus {
    fn into_status(self, code: u16, retry_after: Option<Duration>) -> ApiStatus {
        let details = self.details.unwrap_or_default();
        let asked =
            (details.retry_after_seconds > 0).then(|| believed(Duration::from_secs(details.retry_after_seconds)));
        ApiStatus {
            code,
            reason: begin_of(&self.reason, LONGEST_NAME).to_owned(),
            message: shortened(&self.message),
            details_kind: begin_of(&details.kind, LONGEST_NAME).to_owned(),
            details_name: begin_of(&details.name, LONGEST_NAME).to_owned(),
            causes: details
                .causes
                .unwrap_or_default()
                .iter()
                .take(CAUSES)
                .map(|cause| Cause {
                    reason: begin_of(&cause.reason, LONGEST_NAME).to_owned(),
                    field: begin_of(&cause.field, LONGEST_NAME).to_owned(),
                })
                .collect(),
            retry_after: retry_after.or(asked),
        }
    }
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
