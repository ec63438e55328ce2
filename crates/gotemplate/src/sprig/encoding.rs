//! Hashes and encodings.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{self, Algorithm};

use crate::template::function::{Answer, Args, Function, Type};

const TEXT: &[Type] = &[Type::Text];

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("sha1sum", TEXT, |args| sum(args, &digest::SHA1_FOR_LEGACY_USE_ONLY)),
    Function::new("sha256sum", TEXT, |args| sum(args, &digest::SHA256)),
    Function::new("sha512sum", TEXT, |args| sum(args, &digest::SHA512)),
    Function::new("adler32sum", TEXT, |args| {
        args.heap.text(adler32(args.text(0)).to_string())
    }),
    Function::new("b64enc", TEXT, |args| {
        args.heap.room(args.text(0).len() / 3 * 4)?;
        args.heap.text(STANDARD.encode(args.text(0)))
    }),
    Function::new("b64dec", TEXT, base64_decoded),
    Function::new("b32enc", TEXT, |args| args.heap.text(base32(args.text(0)))),
    Function::new("b32dec", TEXT, |args| match base32_decoded(args.text(0)) {
        Ok(bytes) => args.heap.text(bytes),
        // Sprig gives the words of the error as the result.
        Err(at) => args.heap.text(format!("illegal base32 data at input byte {at}")),
    }),
];

fn sum(args: &Args<'_>, algorithm: &'static Algorithm) -> Answer {
    args.heap.text(hex(digest::digest(algorithm, args.text(0)).as_ref()))
}

/// In hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn adler32(text: &[u8]) -> u32 {
    let (low, high) = text.iter().fold((1_u32, 0_u32), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % 65_521;
        (low, (high + low) % 65_521)
    });
    high << 16 | low
}

fn base64_decoded(args: &Args<'_>) -> Answer {
    // Go skips line breaks.
    let (mut text, mut at) = (Vec::new(), Vec::new());
    for (index, byte) in args.text(0).iter().enumerate() {
        if !matches!(byte, b'\n' | b'\r') {
            text.push(*byte);
            at.push(index);
        }
    }
    if let Ok(bytes) = STANDARD_OF_GO.decode(&text) {
        return args.heap.text(bytes);
    }
    // Sprig gives the words of the error as the result.
    let byte = at.get(first_wrong(&text)).copied().unwrap_or(args.text(0).len());
    args.heap.text(format!("illegal base64 data at input byte {byte}"))
}

/// Go takes bits that are left over in the last character.
const STANDARD_OF_GO: base64::engine::GeneralPurpose = base64::engine::GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    base64::engine::GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// The first character of text that is no base64: one of another alphabet, or padding where none may be, or the last
/// group that is too short.
fn first_wrong(text: &[u8]) -> usize {
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let digits = text.iter().take_while(|byte| is_digit(**byte)).count();
    let rest = &text[digits..];
    match (digits % 4, rest) {
        // Cut off: the group that is too short.
        (short, []) => digits - short,
        (2, [b'=']) => text.len(),
        (2, [b'=', b'=', ..]) => digits + 2,
        (2 | 3, [b'=', ..]) => digits + 1,
        _ => digits,
    }
}

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn base32(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for group in text.chunks(5) {
        let bits = group
            .iter()
            .enumerate()
            .fold(0_u64, |bits, (index, byte)| bits | u64::from(*byte) << (32 - 8 * index));
        let digits = (group.len() * 8).div_ceil(5);
        for index in 0..8 {
            let digit = (bits >> (35 - 5 * index) & 31) as usize;
            out.push(if index < digits { BASE32[digit] } else { b'=' });
        }
    }
    out
}

/// The bytes, or where the text is wrong.
fn base32_decoded(text: &[u8]) -> Result<Vec<u8>, usize> {
    let text: Vec<u8> = text
        .iter()
        .copied()
        .filter(|byte| !matches!(byte, b'\n' | b'\r'))
        .collect();
    let mut out = Vec::new();
    for (group_index, group) in text.chunks(8).enumerate() {
        let start = group_index * 8;
        if group.len() < 8 {
            return Err(start);
        }
        let digits = group.iter().take_while(|byte| **byte != b'=').count();
        let is_last = start + 8 == text.len();
        if group[digits..].iter().any(|byte| *byte != b'=') || digits < 8 && !is_last {
            return Err(start + digits);
        }
        if matches!(digits, 0 | 1 | 3 | 6) {
            return Err(start + digits);
        }
        let mut bits = 0_u64;
        for (index, byte) in group[..digits].iter().enumerate() {
            let value = BASE32.iter().position(|digit| digit == byte).ok_or(start + index)?;
            bits |= (value as u64) << (35 - 5 * index);
        }
        let bytes = bits.to_be_bytes();
        out.extend_from_slice(&bytes[3..3 + digits * 5 / 8]);
    }
    Ok(out)
}
