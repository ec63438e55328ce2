//! The audit log of a server: which requests it has answered, and for whom.

use std::collections::HashMap;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde_json::Value;

/// Logs the metadata of every request but the server's own.
pub(super) const POLICY: &str = r#"apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: ["system:apiserver"]
- level: Metadata
"#;

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEvent {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// Path and query.
    pub uri: String,
    /// The client's `User-Agent` header.
    pub user_agent: String,
    /// Name of the authenticated user.
    pub user: String,
    /// HTTP status code.
    pub code: u16,
    /// `ResponseStarted` for a watch that is still open, `ResponseComplete` for what has ended.
    pub stage: String,
    /// When the request came, RFC 3339.
    pub received: String,
}

impl AuditEvent {
    /// Whether the request was meant to change something.
    pub fn is_write(&self) -> bool {
        matches!(
            self.verb.as_str(),
            "create" | "update" | "patch" | "delete" | "deletecollection"
        )
    }
}

/// The requests in the log behind the byte offset `mark`, one event for each: the last stage that it has reached.
pub(super) fn read(path: &Path, user_agent_prefix: &str, mark: u64) -> Vec<AuditEvent> {
    let mut text = Vec::new();
    if let Ok(mut file) = std::fs::File::open(path) {
        file.seek(SeekFrom::Start(mark))
            .expect("a file can be read from any offset");
        file.read_to_end(&mut text).expect("the audit log can be read");
    }
    let mut events: Vec<AuditEvent> = Vec::new();
    let mut index: HashMap<String, usize> = HashMap::new();
    // The last line may be half written; it has no line end yet then.
    for line in text
        .split_inclusive(|&byte| byte == b'\n')
        .filter(|line| line.ends_with(b"\n"))
    {
        let Ok(entry) = serde_json::from_slice::<Value>(line) else {
            continue;
        };
        let field = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        if !field("userAgent").starts_with(user_agent_prefix) {
            continue;
        }
        let event = AuditEvent {
            verb: field("verb"),
            uri: field("requestURI"),
            user_agent: field("userAgent"),
            user: entry["user"]["username"].as_str().unwrap_or_default().to_owned(),
            code: entry["responseStatus"]["code"]
                .as_u64()
                .and_then(|code| code.try_into().ok())
                .unwrap_or(0),
            stage: field("stage"),
            received: field("requestReceivedTimestamp"),
        };
        if let Some(&position) = index.get(&field("auditID")) {
            events[position] = event;
        } else {
            index.insert(field("auditID"), events.len());
            events.push(event);
        }
    }
    events.sort_by(|one, other| one.received.cmp(&other.received));
    events
}
