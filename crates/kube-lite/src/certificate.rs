//! When a certificate ends: the only field of it that is read here. rustls does the rest.
//!
//! Promises: whatever the bytes are, nothing panics, and a certificate that cannot be read has no end.

/// DER's tags of the elements up to that field (X.690, RFC 5280 4.1).
const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The end of the validity of a certificate in DER, in seconds since 1970.
pub(super) fn end_of(der: &[u8]) -> Option<u64> {
    let (certificate, _) = expect(der, SEQUENCE)?;
    let (mut rest, _) = expect(certificate, SEQUENCE)?;
    if let Some((_, after)) = expect(rest, VERSION) {
        rest = after;
    }
    // Serial number, signature algorithm, issuer.
    for tag in [INTEGER, SEQUENCE, SEQUENCE] {
        rest = expect(rest, tag)?.1;
    }
    let (validity, _) = expect(rest, SEQUENCE)?;
    let (_, _, after) = element(validity)?;
    let (tag, text, _) = element(after)?;
    time(tag, text)
}

/// The time that the API writes as `2026-11-21T14:03:07Z`, in seconds since 1970.
pub fn since_1970_of(text: &str) -> Option<u64> {
    let digits: String = text.chars().filter(|c| !"-:T".contains(*c)).collect();
    (digits.len() == 15).then(|| time(GENERALIZED_TIME, digits.as_bytes()))?
}

/// The contents of an element with this tag, and what follows it.
fn expect(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, contents, rest) = element(bytes)?;
    (found == tag).then_some((contents, rest))
}

/// The tag and the contents of the first element, and what follows it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (bytes.iter().fold(0, |sum, &byte| sum << 8 | usize::from(byte)), rest)
        }
        _ => return None,
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    Some((tag, contents, rest))
}

/// `YYMMDDHHMMSSZ`, where years from 50 on are of the last century, or the same with four digits of the year.
fn time(tag: u8, text: &[u8]) -> Option<u64> {
    let digits = text.strip_suffix(b"Z")?;
    let pair = |at: usize| -> Option<u64> {
        let &[tens, ones] = digits.get(at..at + 2)? else {
            return None;
        };
        let digit = |byte: u8| char::from(byte).to_digit(10).map(u64::from);
        Some(digit(tens)? * 10 + digit(ones)?)
    };
    let (year, rest) = match tag {
        UTC_TIME => (pair(0)?, 2),
        GENERALIZED_TIME => (pair(0)? * 100 + pair(2)?, 4),
        _ => return None,
    };
    let year = match (tag, year) {
        (UTC_TIME, 50..) => year + 1900,
        (UTC_TIME, _) => year + 2000,
        _ => year,
    };
    let [month, day, hour, minute, second] = [0, 2, 4, 6, 8].map(|at| pair(rest + at));
    let days = days_before(year, month?).checked_add(day?.checked_sub(1)?)?;
    Some(((days * 24 + hour?) * 60 + minute?) * 60 + second?)
}

/// Days from 1970-01-01 to the first of a month; zero for earlier ones.
fn days_before(year: u64, month: u64) -> u64 {
    // Years begin in March, so that the day that is only sometimes there is their last (Hinnant, "chrono-compatible
    // low-level date algorithms").
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year.saturating_sub(1), month + 9)
    };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5;
    days.saturating_sub(719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn der(year: i32, month: u8, day: u8) -> Vec<u8> {
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.not_after = rcgen::date_time_ymd(year, month, day);
        let key = rcgen::KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn finds_the_end_of_a_certificate() {
        for (year, month, day, expected) in [
            (2026, 11, 21, 1_795_219_200),
            (2024, 2, 29, 1_709_164_800),
            (2025, 1, 1, 1_735_689_600),
            (1999, 12, 31, 946_598_400),
            // With four digits of the year.
            (2100, 3, 1, 4_107_542_400),
        ] {
            assert_eq!(end_of(&der(year, month, day)), Some(expected), "{year}-{month}-{day}");
        }
        assert_eq!(time(UTC_TIME, b"261121140307Z"), Some(1_795_269_787));
    }

    #[test]
    fn what_cannot_be_read_has_no_end() {
        let whole = der(2026, 11, 21);
        for length in 0..150 {
            assert_eq!(end_of(&whole[..length]), None);
        }
        for text in [&b""[..], b"Z", b"2611211403", b"26112114030xZ", b"261100140307Z"] {
            assert_eq!(time(UTC_TIME, text), None, "{text:?}");
        }
        for seed in 0..2000 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut bytes = whole.clone();
            let at = random.usize(..120);
            bytes[at] = random.u8(..);
            let _ = end_of(&bytes);
        }
    }
}
