//! The names that a registration has.
//!
//! Promises: the id of a sync target is the one that the KubeStellar-Syncer's generator makes from the same name and
//! UID, so that manifests of both name the same registration; it can be used wherever a DNS label can.

use std::time::Duration;

use sha2::{Digest as _, Sha224};

use super::labels::is_dns_label;

/// The longest name of a sync target: the id that is made from it has at most 63 characters, as labels may have.
const LONGEST_NAME: usize = 35;
/// The longest UID that is accepted: it is a part of the names of the Lease and the record.
const LONGEST_UID: usize = 63;
/// How many characters of the hash are in an id.
const HASH: usize = 8;
/// What all ids begin with.
const PREFIX: &str = "kubestellar-syncer";
/// From the beginning of the Gregorian calendar, from which version 1 UUIDs count, to 1970, in units of 100 ns.
const GREGORIAN: u64 = 0x01b2_1dd2_1381_4000;

/// What is wrong with the name of a sync target, if anything.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    if !is_dns_label(name) {
        return Err("must be lowercase letters, digits and -, with a letter or digit at both ends".to_owned());
    }
    if name.len() > LONGEST_NAME {
        return Err(format!(
            "has {} characters, and at most {LONGEST_NAME} fit into the names that are made of it",
            name.len()
        ));
    }
    Ok(())
}

/// What is wrong with a UID that the user has chosen, if anything.
pub(crate) fn check_uid(uid: &str) -> Result<(), String> {
    if is_dns_label(uid) && uid.len() <= LONGEST_UID {
        return Ok(());
    }
    Err(format!(
        "must be at most {LONGEST_UID} lowercase letters, digits and -, with a letter or digit at both ends"
    ))
}

/// `kubestellar-syncer-<name>-<hash of the UID>`.
pub(super) fn syncer_id(name: &str, uid: &str) -> String {
    let hash = base36(&Sha224::digest(uid.as_bytes()));
    format!("{PREFIX}-{name}-{}", &hash[..HASH])
}

/// A new UID, as Go's generator makes one: a UUID of version 1, from the time since 1970 and, in the place of the clock
/// sequence and the address of a network card, random bits.
pub(super) fn new_uid(since_1970: Duration, chance: u128) -> String {
    let hundreds = u64::try_from(since_1970.as_nanos() / 100).unwrap_or(u64::MAX);
    let time = GREGORIAN.wrapping_add(hundreds);
    let sequence = u16::try_from(chance >> 48 & 0x3fff).unwrap_or_default() | 0x8000;
    // This bit of the first byte says that this is not the address of a card (RFC 9562, 6.10).
    let node = chance & 0xffff_ffff_ffff | 0x0100_0000_0000;
    format!(
        "{:08x}-{:04x}-{:04x}-{sequence:04x}-{node:012x}",
        time & 0xffff_ffff,
        time >> 32 & 0xffff,
        time >> 48 & 0x0fff | 0x1000,
    )
}

/// Bytes as one big-endian number in base 36, without padding, after one `0` for each leading zero byte.
fn base36(bytes: &[u8]) -> String {
    let mut number = bytes.to_vec();
    let mut digits = Vec::new();
    while number.iter().any(|byte| *byte != 0) {
        let mut rest = 0_u32;
        for byte in &mut number {
            let value = rest << 8 | u32::from(*byte);
            *byte = u8::try_from(value / 36).expect("the rest of a division by 36 is below 36");
            rest = value % 36;
        }
        digits.push(char::from_digit(rest, 36).expect("a rest is below 36"));
    }
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    digits.extend(std::iter::repeat_n('0', zeros));
    digits.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makes_the_ids_that_go_makes() {
        for (name, uid, id) in [
            ("demo", "sync-target-uid", "kubestellar-syncer-demo-x8lcns0m"),
            (
                "x",
                "00000000-0000-1000-8000-000000000254",
                "kubestellar-syncer-x-07qkb11q",
            ),
        ] {
            assert_eq!(syncer_id(name, uid), id);
        }
    }

    #[test]
    fn writes_numbers_in_base_36() {
        for (bytes, text) in [
            (&[][..], ""),
            (&[0], "0"),
            (&[35], "z"),
            (&[36], "10"),
            (&[0, 0, 1, 0], "0074"),
            (&[255, 255], "1ekf"),
        ] {
            assert_eq!(base36(bytes), text, "{bytes:?}");
        }
    }

    #[test]
    fn refuses_names_that_do_not_fit() {
        let longest = "a".repeat(35);
        for name in ["a", "site-7", "7", "a--b", &longest] {
            assert_eq!(check_name(name), Ok(()), "{name}");
            assert!(is_dns_label(&syncer_id(name, "u")) && syncer_id(name, "u").len() <= 63);
        }
        let long = "a".repeat(36);
        for name in ["", "Bad_Name", "-a", "a-", "a.b", "a b", "\u{e4}", "../a", &long] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_new_uid_is_a_version_1_uuid() {
        let time = Duration::from_secs(1_700_000_000);
        let uid = new_uid(time, 0x1234_5678_9abc_def0_1122_3344_5566);
        assert_eq!(uid, "04afc000-833b-11ee-9ef0-112233445566");
        let uids: Vec<String> = [0, 1, u128::MAX].map(|chance| new_uid(time, chance)).to_vec();
        assert_ne!(uids[0], uids[1]);
        for uid in uids {
            assert_eq!(check_uid(&uid), Ok(()));
            assert_eq!((uid.len(), &uid[14..15]), (36, "1"), "{uid}");
            assert!(matches!(&uid[19..20], "8" | "9" | "a" | "b"), "{uid}");
        }
    }
}
