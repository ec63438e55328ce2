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
    /// The id of the workspace of a kcp; empty for all of them, and elsewhere.
    pub cluster: String,
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

/// A moment. What came before it does not count after it, even if it is logged later.
#[derive(Clone, Copy, Debug, Default)]
pub struct AuditMark {
    /// Where the log ended: all that comes later is logged behind it.
    offset: u64,
    /// The moment, by the clock of this machine, which is the server's too.
    at: u64,
}

impl AuditMark {
    /// This moment.
    pub(super) fn now(path: &Path) -> Self {
        Self {
            offset: std::fs::metadata(path).map_or(0, |metadata| metadata.len()),
            at: micros_of(&time_now()),
        }
    }
}

/// The time of the wall clock, RFC 3339 with six decimals.
pub fn time_now() -> String {
    driver::logger::time_of_day_in_micros()
}

/// Microseconds of an RFC 3339 time in UTC with six decimals, of which only differences mean anything.
pub fn micros_of(time: &str) -> u64 {
    let numbers: Vec<u64> = time
        .split(|letter: char| !letter.is_ascii_digit())
        .filter_map(|part| part.parse().ok())
        .collect();
    let [year, month, day, hour, minute, second, micros] = numbers[..] else {
        panic!("{time:?} is no time with microseconds");
    };
    // Of years that begin with March, so that a leap day is the last of its year.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day;
    (((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000 + micros
}

/// The requests in the log that came after `mark`, one event for each: the last stage that it has reached.
pub(super) fn read(path: &Path, user_agent_prefix: &str, mark: AuditMark) -> Vec<AuditEvent> {
    let mut text = Vec::new();
    if let Ok(mut file) = std::fs::File::open(path) {
        file.seek(SeekFrom::Start(mark.offset))
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
        let received = field("requestReceivedTimestamp");
        if !field("userAgent").starts_with(user_agent_prefix) || micros_of(&received) < mark.at {
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
            received,
            cluster: entry["annotations"]["kcp.io/cluster"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
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
