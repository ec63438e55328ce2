//! Durations as Go writes them: `15s`, `1m30s`, `1.5h`. Not negative, since no flag of ours can use that.

use std::time::Duration;

/// What Go's `time.ParseDuration` makes of `text`; `None` if it is no duration, negative, or beyond Go's 292 years.
pub(super) fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut nanos = 0_u64;
    while !rest.is_empty() {
        let (number, tail) = split(rest, is_number);
        let (unit, tail) = split(tail, |c| !is_number(c));
        nanos = nanos.checked_add(in_nanos(number, unit_nanos(unit)?)?)?;
        rest = tail;
    }
    // Go counts in an int64.
    i64::try_from(nanos).ok()?;
    Some(Duration::from_nanos(nanos))
}

fn is_number(c: char) -> bool {
    c.is_ascii_digit() || c == '.'
}

/// The longest start of `text` with only such characters, and what follows.
fn split(text: &str, is_part: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()))
}

fn unit_nanos(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        // The micro sign and the Greek letter.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// `number` times `unit`. Digits at either side of the point may be absent, but not at both.
fn in_nanos(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut nanos = whole.checked_mul(unit)?;
    // The value of a digit; digits below a nanosecond count as zero.
    let mut place = unit;
    for c in fraction.chars() {
        place /= 10;
        nanos = nanos.checked_add(u64::from(c.to_digit(10)?) * place)?;
    }
    Some(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_go_reads() {
        for (text, nanos) in [
            ("0", 0),
            ("0s", 0),
            ("15s", 15_000_000_000),
            ("+15s", 15_000_000_000),
            ("1m30s", 90_000_000_000),
            ("30s1m", 90_000_000_000),
            ("500ms", 500_000_000),
            ("1h", 3_600_000_000_000),
            ("1h0m0.5s", 3_600_500_000_000),
            ("1.5h", 5_400_000_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("0.0000000019s", 1),
            ("7ns", 7),
            ("7us", 7_000),
            ("7\u{b5}s", 7_000),
            ("7\u{3bc}s", 7_000),
            ("9223372036854775807ns", 9_223_372_036_854_775_807),
        ] {
            assert_eq!(parse(text), Some(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_duration() {
        for text in [
            "",
            "+",
            "15",
            "1m30",
            "s",
            ".s",
            "1.2.3s",
            "-1s",
            "++1s",
            "1 s",
            " 1s",
            "1S",
            "1d",
            "1e3s",
            "fast",
            "9223372036854775808ns",
            "99999999999999999999s",
            "9999999999h",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
