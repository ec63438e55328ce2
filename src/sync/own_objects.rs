//! What a syncer keeps for itself, and under which names: at the edge the record of synced types and the Lease, at the hub the
//! object that stands for its edge. Syncers of other sync targets, in the same namespace, have their own.

use std::fmt::Write as _;

use kube_lite::ResourceType;

const LEASE: &str = "edge-syncer";
const RECORD: &str = "edge-syncer-types";
/// The longest name of an object: it is a DNS subdomain.
const LONGEST_NAME: usize = 253;

/// Name of the Lease for the syncers of one sync target.
pub fn lease_name(sync_target_uid: &str) -> String {
    name_with(LEASE, sync_target_uid)
}

/// Name of the `ConfigMap` that is the record of the types that the syncers of one sync target have synced.
pub fn record_name(sync_target_uid: &str) -> String {
    name_with(RECORD, sync_target_uid)
}

/// Name of the object at the hub that stands for the edge of a sync target: for people that of the sync target, and so much
/// of its UID that two edges which are called alike have their own.
pub fn edge_name(sync_target: &str, uid: &str) -> String {
    let name = [sync_target, uid]
        .into_iter()
        .find(|name| is_plain(name, LONGEST_NAME - 9));
    match name {
        Some(name) if name == uid => uid.to_owned(),
        name => {
            let hash = fnv1a(uid.as_bytes());
            let short = (hash ^ hash >> 32) & 0xffff_ffff;
            format!("{}-{short:08x}", name.unwrap_or("edge"))
        }
    }
}

/// Name of the record that older versions kept, before each sync target had its own.
pub const LEGACY_RECORD: &str = RECORD;

/// True for the record of any syncer, in whichever namespace.
pub fn is_record(at_edge: &ResourceType, name: &str) -> bool {
    let rest = name.strip_prefix(RECORD).filter(|_| at_edge.is("", "configmaps"));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// A UID that can be part of the name of an object is used as it is, so that a person finds the object and a role can
/// name it; of any other UID the name has a hash, which all versions of this program must compute alike.
fn name_with(prefix: &str, sync_target_uid: &str) -> String {
    let fits = is_plain(sync_target_uid, LONGEST_NAME - prefix.len() - 1);
    let mut name = format!("{prefix}-");
    if fits {
        name.push_str(sync_target_uid);
    } else {
        let _ = write!(name, "{:016x}", fnv1a(sync_target_uid.as_bytes()));
    }
    name
}

/// True for what can be part of the name of any object, and is so long at most.
fn is_plain(text: &str, longest: usize) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= longest
        && text.starts_with(is_plain)
        && text.ends_with(is_plain)
        && text.chars().all(|c| is_plain(c) || c == '-')
}

/// 64-bit FNV-1a: unlike the standard library's hash it is the same in all versions and on all machines.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_is_called_as_its_sync_target_and_never_as_another_one() {
        for (sync_target, uid, expected) in [
            ("site-7", "0b8a4a5e-3b0c-4d5e-9f3a-1c2d3e4f5a6b", "site-7-8ebe6e0e"),
            ("site-7", "another", "site-7-52b68a71"),
            ("site-7", "site-7", "site-7"),
            ("", "site-7", "site-7"),
            ("Site 7", "site-7", "site-7"),
            ("", "Site 7", "edge-4a49db52"),
            ("", "foobar!", "edge-22d9a72c"),
        ] {
            assert_eq!(edge_name(sync_target, uid), expected, "{sync_target} {uid}");
        }
    }

    #[test]
    fn each_sync_target_has_its_own() {
        for (uid, lease, record) in [
            ("site-7", "edge-syncer-site-7", "edge-syncer-types-site-7"),
            (
                "0b8a4a5e-3b0c-4d5e-9f3a-1c2d3e4f5a6b",
                "edge-syncer-0b8a4a5e-3b0c-4d5e-9f3a-1c2d3e4f5a6b",
                "edge-syncer-types-0b8a4a5e-3b0c-4d5e-9f3a-1c2d3e4f5a6b",
            ),
            (
                "A",
                "edge-syncer-af63fc4c860222ec",
                "edge-syncer-types-af63fc4c860222ec",
            ),
            (
                "foo_bar",
                "edge-syncer-d82736431662ffbd",
                "edge-syncer-types-d82736431662ffbd",
            ),
            (
                "-a",
                "edge-syncer-07d05b07b498591b",
                "edge-syncer-types-07d05b07b498591b",
            ),
        ] {
            assert_eq!(
                (lease_name(uid), record_name(uid)),
                (lease.into(), record.into()),
                "{uid}"
            );
            assert!(is_record(&ResourceType::config_maps(), record));
            assert!(!is_record(&ResourceType::config_maps(), lease));
        }
        assert!(is_record(&ResourceType::config_maps(), LEGACY_RECORD));
        assert!(!is_record(&ResourceType::config_maps(), "edge-syncer-typeset"));
        // The test vectors that come with FNV-1a.
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(lease_name(&"a".repeat(241)).len(), 253);
        assert_eq!(lease_name(&"a".repeat(242)).len(), 28);
    }
}
