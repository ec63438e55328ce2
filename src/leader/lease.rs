//! The Lease object (`coordination.k8s.io/v1`) that candidates share: its name, and as much of it as an election needs.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::cluster::{Error, ObjectName, ResourceType};

/// What the names of our Leases begin with.
const PREFIX: &str = "edge-syncer-";
/// The longest name of a Lease: it is a DNS subdomain.
const LONGEST_NAME: usize = 253;

/// The Lease for the syncers of one sync target. Those of another target, in the same namespace, have another one.
///
/// A UID that can stand in the name of an object stands in it as it is, so that a person finds the Lease and a role can
/// name it; of any other the name has a hash, which all versions of this program must compute alike.
pub fn name_for(sync_target_uid: &str) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fits = PREFIX.len() + sync_target_uid.len() <= LONGEST_NAME
        && sync_target_uid.starts_with(is_plain)
        && sync_target_uid.ends_with(is_plain)
        && sync_target_uid.chars().all(|c| is_plain(c) || c == '-');
    if fits {
        return format!("{PREFIX}{sync_target_uid}");
    }
    let mut name = PREFIX.to_owned();
    write!(name, "{:016x}", fnv1a(sync_target_uid.as_bytes())).expect("writing to a String cannot fail");
    name
}

/// 64-bit FNV-1a: unlike the standard library's hash it is the same in all versions and on all machines.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The type.
pub(super) fn leases() -> ResourceType {
    ResourceType {
        group: "coordination.k8s.io".into(),
        version: "v1".into(),
        resource: "leases".into(),
        kind: "Lease".into(),
        namespaced: true,
    }
}

/// A Lease as it was read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lease {
    /// `metadata.resourceVersion`: the precondition of the next write.
    pub(super) version: String,
    /// What it says.
    pub(super) spec: LeaseSpec,
}

/// `spec`, without what only serves coordinated elections. Whatever is absent stays absent, so that two of them are
/// equal when the Lease says the same.
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
    /// What `term` says as of `now`, an RFC 3339 time with six decimals (the API's `MicroTime`).
    pub(super) fn of(term: &Term, now: &str) -> Self {
        Self {
            holder_identity: Some(term.holder.clone()),
            lease_duration_seconds: Some(term.seconds),
            acquire_time: Some(term.acquired.clone().unwrap_or_else(|| now.to_owned())),
            renew_time: Some(now.to_owned()),
            lease_transitions: Some(term.transitions),
        }
    }

    /// Who holds it; empty if nobody does.
    pub(super) fn holder(&self) -> &str {
        self.holder_identity.as_deref().unwrap_or_default()
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

/// What a candidate wants a Lease to say, but for the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Term {
    /// Who holds it; empty for nobody.
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
        "metadata": {"namespace": &*name.namespace, "name": &*name.name},
        "spec": spec,
    });
    Bytes::from(object.to_string())
}

/// The merge patch that makes the Lease say `spec`, if it is still at `version`. Labels and the like stay.
pub(super) fn patch(version: &str, spec: &LeaseSpec) -> Bytes {
    Bytes::from(json!({"metadata": {"resourceVersion": version}, "spec": spec}).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_a_lease_for_each_sync_target() {
        for (uid, expected) in [
            ("site-7", "edge-syncer-site-7"),
            (
                "0b8a4a5e-3b0c-4d5e-9f3a-1c2d3e4f5a6b",
                "edge-syncer-0b8a4a5e-3b0c-4d5e-9f3a-1c2d3e4f5a6b",
            ),
            ("A", "edge-syncer-af63fc4c860222ec"),
            ("foo_bar", "edge-syncer-d82736431662ffbd"),
            ("-a", "edge-syncer-07d05b07b498591b"),
        ] {
            let found = name_for(uid);
            assert_eq!(found, expected, "{uid}");
        }
        // The test vectors that come with FNV-1a.
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(name_for(&"a".repeat(241)).len(), 253);
        assert_eq!(name_for(&"a".repeat(242)).len(), 28);
    }

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
