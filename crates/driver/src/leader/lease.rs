//! The Lease object (`coordination.k8s.io/v1`) that candidates share: as much of it as an election needs.

use std::time::Duration;

use bytes::Bytes;
use kube_lite::{Error, ObjectName, ResourceType};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The type.
pub(super) fn leases() -> ResourceType {
    ResourceType::new(["coordination.k8s.io", "v1", "leases", "Lease"], true)
}

/// How many seconds a Lease lasts that its holder has given up. Not zero, which the API refuses.
pub(super) const RELEASED: i64 = 1;

/// A Lease as it was read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    /// `metadata.resourceVersion`: the precondition of the next write.
    pub(super) version: String,
    /// What it says.
    pub(super) spec: LeaseSpec,
}

/// `spec`, without what only serves coordinated elections. What is absent stays absent, so that two of them are equal
/// if the Lease is the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct LeaseSpec {
    holder_identity: Option<String>,
    lease_duration_seconds: Option<i64>,
    acquire_time: Option<String>,
    renew_time: Option<String>,
    lease_transitions: Option<i64>,
}

impl LeaseSpec {
    /// The `spec` for `term` at the time `now`, an RFC 3339 time with six decimals (the API's `MicroTime`).
    pub(super) fn of(term: &Term, now: &str) -> Self {
        Self {
            holder_identity: Some(term.holder.clone()),
            lease_duration_seconds: Some(term.seconds),
            acquire_time: Some(term.acquired.clone().unwrap_or_else(|| now.to_owned())),
            renew_time: Some(now.to_owned()),
            lease_transitions: Some(term.transitions),
        }
    }

    /// Its holder; empty if there is none.
    pub(super) fn holder(&self) -> &str {
        self.holder_identity.as_deref().unwrap_or_default()
    }

    /// True if its holder has given it up: that it has none may also be somebody else's work.
    pub(super) fn is_released(&self) -> bool {
        self.holder().is_empty() && self.lease_duration_seconds == Some(RELEASED)
    }

    /// How long it stays held without being renewed, if it says so.
    pub(super) fn duration(&self) -> Option<Duration> {
        let seconds = self.lease_duration_seconds?;
        u64::try_from(seconds).ok().map(Duration::from_secs)
    }

    /// Since when it has this holder.
    pub(super) fn acquired(&self) -> Option<String> {
        self.acquire_time.clone()
    }

    /// How often it has changed hands.
    pub(super) fn transitions(&self) -> i64 {
        self.lease_transitions.unwrap_or_default()
    }
}

/// What a candidate wants to write to the Lease, except the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Term {
    /// The holder; empty for none.
    pub(super) holder: String,
    /// How long it lasts, in seconds, above zero.
    pub(super) seconds: i64,
    /// Since when, as the Lease said before; from now on if absent.
    pub(super) acquired: Option<String>,
    /// How often it has changed hands.
    pub(super) transitions: i64,
}

/// Reads a Lease.
pub(super) fn parse(object: &[u8]) -> Result<Lease, Error> {
    #[derive(Deserialize)]
    struct Wire {
        metadata: Metadata,
        #[serde(default)]
        spec: Option<LeaseSpec>,
    }
    let wire: Wire = serde_json::from_slice(object).map_err(|error| Error::BadAnswer(format!("a Lease: {error}")))?;
    Ok(Lease {
        version: wire.metadata.resource_version,
        spec: wire.spec.unwrap_or_default(),
    })
}

/// Reads the version of an object of which only the metadata are needed.
pub(super) fn parse_version(object: &[u8]) -> Result<String, Error> {
    #[derive(Deserialize)]
    struct Wire {
        metadata: Metadata,
    }
    let wire: Wire = serde_json::from_slice(object).map_err(|error| Error::BadAnswer(format!("a Lease: {error}")))?;
    Ok(wire.metadata.resource_version)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    resource_version: String,
}

/// The body that creates the Lease.
pub(super) fn new_object(name: &ObjectName, spec: &LeaseSpec) -> Bytes {
    let object = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"namespace": name.namespace(), "name": &*name.name},
        "spec": spec,
    });
    Bytes::from(object.to_string())
}

/// The merge patch that writes `spec` to the Lease, if it is still at `version`. Labels and the like stay.
pub(super) fn patch(version: &str, spec: &LeaseSpec) -> Bytes {
    Bytes::from(json!({"metadata": {"resourceVersion": version}, "spec": spec}).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_others_write_and_leave_out() {
        let lease = |text: &str| parse(text.as_bytes()).unwrap();
        let full = lease(
            r#"{"metadata":{"resourceVersion":"7","name":"x"},"spec":{"holderIdentity":"a_1","leaseDurationSeconds":15,
            "acquireTime":"2026-11-21T14:03:07.123456Z","renewTime":"2026-11-21T14:04:07.000000Z","leaseTransitions":3,
            "strategy":"OldestEmulationVersion"}}"#,
        );
        assert_eq!((full.version.as_str(), full.spec.holder()), ("7", "a_1"));
        assert_eq!(full.spec.duration(), Some(Duration::from_secs(15)));
        assert_eq!(full.spec.transitions(), 3);
        for text in [
            r#"{"metadata":{"resourceVersion":"7"}}"#,
            r#"{"metadata":{"resourceVersion":"7"},"spec":{}}"#,
            r#"{"metadata":{"resourceVersion":"7"},"spec":{"holderIdentity":null,"leaseDurationSeconds":null}}"#,
        ] {
            let empty = lease(text).spec;
            assert_eq!((empty.holder(), empty.duration(), empty.transitions()), ("", None, 0));
        }
        assert!(parse(b"<html>").is_err());
    }

    #[test]
    fn writes_what_kubernetes_writes() {
        let term = Term {
            holder: "a_1".into(),
            seconds: 15,
            acquired: None,
            transitions: 2,
        };
        let spec = LeaseSpec::of(&term, "2026-11-21T14:03:07.123456Z");
        let expected = json!({"metadata": {"resourceVersion": "7"}, "spec": {
            "holderIdentity": "a_1", "leaseDurationSeconds": 15, "leaseTransitions": 2,
            "acquireTime": "2026-11-21T14:03:07.123456Z", "renewTime": "2026-11-21T14:03:07.123456Z"}});
        let found: serde_json::Value = serde_json::from_slice(&patch("7", &spec)).unwrap();
        assert_eq!(found, expected);
    }
}
