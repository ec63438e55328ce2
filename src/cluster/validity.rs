//! Until when credentials are good, as they say themselves: the claims of a token, the validity of a client certificate.
//!
//! Only the server decides whether it accepts them; this is read to tell people in time.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kube::Config;
use secrecy::ExposeSecret as _;
use serde::Deserialize;

use super::files;
use super::tls::client_certificate;

/// What we are known by, and its end in seconds since 1970 where it says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    /// What it is.
    pub(crate) kind: &'static str,
    /// Its end.
    pub(crate) until: Option<u64>,
}

/// The credentials of a user entry, in the order in which they count.
pub(crate) fn credentials(config: &Config) -> Option<Credentials> {
    let user = &config.auth_info;
    if user.username.is_some() {
        return Some(Credentials {
            kind: "password",
            until: None,
        });
    }
    let inline = user.token.as_ref().map(|token| token.expose_secret().to_owned());
    let from_file = || files::read_text(user.token_file.as_ref()?).ok();
    if let Some(token) = inline.or_else(from_file) {
        return Some(Credentials {
            kind: "token",
            until: end_of_token(&token),
        });
    }
    let certificate = client_certificate(config)?;
    Some(Credentials {
        kind: "client certificate",
        until: end_of_certificate(&certificate),
    })
}

/// The end in the claims of a token, if it has claims.
fn end_of_token(token: &str) -> Option<u64> {
    #[derive(Deserialize)]
    struct Claims {
        exp: u64,
    }
    let claims = URL_SAFE_NO_PAD.decode(token.trim().split('.').nth(1)?).ok()?;
    serde_json::from_slice::<Claims>(&claims).ok().map(|claims| claims.exp)
}

/// The second time of the validity of a certificate (RFC 5280, 4.1).
fn end_of_certificate(der: &[u8]) -> Option<u64> {
    let (_, certificate, _) = element(der)?;
    let (_, mut fields, _) = element(certificate)?;
    // The version may be left out; it is the one with the tag of its own.
    if let (0xa0, _, rest) = element(fields)? {
        fields = rest;
    }
    // Serial number, algorithm, issuer.
    for _ in 0..3 {
        fields = element(fields)?.2;
    }
    let (_, validity, _) = element(fields)?;
    let (_, _, rest) = element(validity)?;
    let (tag, time, _) = element(rest)?;
    let text = std::str::from_utf8(time).ok()?;
    let (century, text) = match tag {
        // UTCTime: years from 1950 to 2049.
        0x17 => (if number(text.get(..2)?)? < 50 { "20" } else { "19" }, text),
        0x18 => ("", text),
        _ => return None,
    };
    let text = [century, text].concat();
    let part = |from: usize, to: usize| number(text.get(from..to)?);
    seconds(
        [part(0, 4)?, part(4, 6)?, part(6, 8)?],
        [part(8, 10)?, part(10, 12)?, part(12, 14)?],
    )
}

/// The tag and content of the first DER element, and what follows it.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[tag, first], mut rest) = der.split_first_chunk()?;
    let mut length = usize::from(first);
    if first & 0x80 != 0 {
        let bytes = usize::from(first & 0x7f);
        let (digits, after) = rest.split_at_checked(bytes).filter(|_| bytes <= 4)?;
        length = digits.iter().fold(0, |length, &digit| length << 8 | usize::from(digit));
        rest = after;
    }
    let (content, after) = rest.split_at_checked(length)?;
    Some((tag, content, after))
}

fn number(text: &str) -> Option<u64> {
    text.parse().ok()
}

/// The time in an HTTP `Date` header, `Tue, 24 Nov 2026 23:50:48 GMT`, in seconds since 1970.
pub(crate) fn seconds_of_date(header: &str) -> Option<u64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let part = |from: usize, to: usize| number(header.get(from..to)?);
    let month = u64::try_from(MONTHS.find(header.get(8..11)?)? / 3 + 1).ok()?;
    seconds(
        [part(12, 16)?, month, part(5, 7)?],
        [part(17, 19)?, part(20, 22)?, part(23, 25)?],
    )
}

/// Seconds from 1970 until a time in UTC. Years begin with March here, so that a leap day is the last of its year.
fn seconds([year, month, day]: [u64; 3], [hour, minute, second]: [u64; 3]) -> Option<u64> {
    if !(1970..10_000).contains(&year) || !(1..=12).contains(&month) || day > 31 || hour > 24 {
        return None;
    }
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day;
    // Of 1970-01-01, counted in the same way.
    let days = days.checked_sub(719_469)?;
    Some(days * 86_400 + hour * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_times_of_headers() {
        for (header, expected) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(784_111_777)),
            ("Thu, 29 Feb 2024 00:00:00 GMT", Some(1_709_164_800)),
            ("Sat, 21 Nov 2026 14:03:07 GMT", Some(1_795_269_787)),
            ("Sun, 06 Foo 1994 08:49:37 GMT", None),
            ("now", None),
            ("ä, äää ä", None),
            ("", None),
        ] {
            assert_eq!(seconds_of_date(header), expected, "{header}");
        }
    }

    #[test]
    fn reads_the_end_of_a_token() {
        let token = |claims: &str| format!("e30.{}.c2ln\n", URL_SAFE_NO_PAD.encode(claims));
        for (token, expected) in [
            (token(r#"{"exp":1795269787}"#), Some(1_795_269_787)),
            (token("{}"), None),
            ("opaque".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(end_of_token(&token), expected, "{token}");
        }
    }

    /// The beginning of a certificate, with a version if there is to be one, and this end.
    fn certificate(version: &[u8], tag: u8, end: &str) -> Vec<u8> {
        let wrap = |tag: u8, content: &[u8]| {
            let length = u8::try_from(content.len()).unwrap();
            let length = if length < 0x80 {
                vec![length]
            } else {
                vec![0x81, length]
            };
            [&[tag], &*length, content].concat()
        };
        let validity = wrap(
            0x30,
            &[wrap(0x17, b"200101000000Z"), wrap(tag, end.as_bytes())].concat(),
        );
        let fields = [
            version.to_vec(),
            wrap(0x02, &[1; 70]),
            wrap(0x30, &[]),
            wrap(0x30, &[5, 0]),
            validity,
            wrap(0x30, &[]),
        ];
        wrap(0x30, &wrap(0x30, &fields.concat()))
    }

    #[test]
    fn reads_the_end_of_a_certificate() {
        let version = [0xa0, 3, 2, 1, 2];
        for (certificate, expected) in [
            (certificate(&version, 0x17, "261121140307Z"), Some(1_795_269_787)),
            (certificate(&[], 0x17, "261121140307Z"), Some(1_795_269_787)),
            (certificate(&version, 0x18, "20500101000000Z"), Some(2_524_608_000)),
            (certificate(&version, 0x04, "261121140307Z"), None),
            (certificate(&version, 0x17, "26112"), None),
            (Vec::new(), None),
            (vec![0x30, 0x84, 0xff, 0xff, 0xff, 0xff], None),
            (vec![0x30, 0xff], None),
        ] {
            assert_eq!(end_of_certificate(&certificate), expected, "{certificate:?}");
        }
        let whole = certificate(&version, 0x17, "261121140307Z");
        for end in 0..whole.len() {
            assert_eq!(end_of_certificate(&whole[..end]), None, "cut at {end}");
        }
    }
}
