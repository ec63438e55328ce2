//! The requests of the syncer, as the audit logs of both sides.

use std::collections::BTreeMap;
use std::fmt;

use crate::support::{AuditEvent, Pair, TEST_USER_AGENT};

/// What a request was: the side, the verb, and its path and query without names and numbers.
type Pattern = (&'static str, String, String);

/// How often each kind of request was sent. A watch counts once, however long it stays open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests(BTreeMap<Pattern, usize>);

impl Requests {
    /// All requests that the logs hold, but for those of this program.
    ///
    /// The logs are read from their beginning: behind a later point the end of an older watch would count as a request.
    pub(crate) fn read(pair: &Pair) -> Self {
        let mut counts = BTreeMap::new();
        for (side, server) in [("hub", &pair.hub), ("edge", &pair.edge)] {
            let all = server.requests("").into_iter();
            for event in all.filter(|event| !event.user_agent.starts_with(TEST_USER_AGENT)) {
                *counts.entry(pattern(side, &event)).or_default() += 1;
            }
        }
        Self(counts)
    }

    /// Those that came after `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let new = self.0.iter().filter_map(|(pattern, &count)| {
            let before = earlier.0.get(pattern).copied().unwrap_or_default();
            (count > before).then(|| (pattern.clone(), count - before))
        });
        Self(new.collect())
    }

    /// How many went to `side`.
    pub(crate) fn count(&self, side: &str) -> usize {
        let at_side = self.0.iter().filter(|((at, _, _), _)| *at == side);
        at_side.map(|(_, count)| count).sum()
    }

    /// How many to `side` named one of this program's objects: what changes cost, without what the clock causes.
    pub(crate) fn naming(&self, side: &str) -> usize {
        let named = self
            .0
            .iter()
            .filter(|((at, _, uri), _)| *at == side && uri.contains("/NAME"));
        named.map(|(_, count)| count).sum()
    }

    /// How many of those meant to change the object.
    pub(crate) fn writes(&self, side: &str) -> usize {
        let reads = ["get", "list", "watch"];
        let written = self
            .0
            .iter()
            .filter(|((at, verb, uri), _)| *at == side && uri.contains("/NAME") && !reads.contains(&verb.as_str()));
        written.map(|(_, count)| count).sum()
    }
}

/// A line for each kind.
impl fmt::Display for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(f, "    none");
        }
        for ((side, verb, uri), count) in &self.0 {
            writeln!(f, "    {count:>6}  {side:<4}  {verb:<6}  {uri}")?;
        }
        Ok(())
    }
}

fn pattern(side: &'static str, event: &AuditEvent) -> Pattern {
    let (path, query) = event.uri.split_once('?').unwrap_or((&event.uri, ""));
    let segments: Vec<&str> = path.split('/').map(without_name).collect();
    let parameters: Vec<String> = query
        .split('&')
        .filter(|one| !one.is_empty())
        .map(without_number)
        .collect();
    let joint = if parameters.is_empty() { "" } else { "?" };
    let uri = format!("{}{joint}{}", segments.join("/"), parameters.join("&"));
    (side, event.verb.clone(), uri)
}

/// The objects of this program are called `c` and a number.
fn without_name(segment: &str) -> &str {
    let number = segment.strip_prefix('c').unwrap_or_default();
    if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) {
        "NAME"
    } else {
        segment
    }
}

/// Versions, durations and tokens to continue at differ from one request to the next.
fn without_number(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some((key @ ("resourceVersion" | "timeoutSeconds" | "timeout" | "continue"), _)) => format!("{key}=*"),
        _ => parameter.to_owned(),
    }
}
