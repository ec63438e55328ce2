//! Durations, in nanoseconds, by the rules of Go's `time.Duration`.

const SECOND: i64 = 1_000_000_000;

/// The units of a duration's text, and their nanoseconds.
const UNITS: [(&str, i64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3600 * SECOND),
];

/// Reads a text such as `1h2.5s`.
pub(crate) fn read(text: &str) -> Result<i64, String> {
    let wrong = || format!("time: invalid duration {text:?}");
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if unsigned == "0" {
        return Ok(0);
    }
    let mut sum = 0_i64;
    let mut rest = unsigned;
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let length = rest
            .find(|next: char| !next.is_ascii_digit() && next != '.')
            .ok_or_else(wrong)?;
        let (number, after) = rest.split_at(length);
        let end = after
            .find(|next: char| next.is_ascii_digit() || next == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        sum = scaled(number, *nanos)
            .and_then(|part| sum.checked_add(part))
            .ok_or_else(wrong)?;
        rest = after;
    }
    Ok(if text.starts_with('-') { -sum } else { sum })
}

fn scaled(number: &str, unit: i64) -> Option<i64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + fraction.len() == 0 {
        return None;
    }
    let whole: i64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction: f64 = format!("0.{fraction}0").parse().ok()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "less than an hour"
    )]
    let part = (fraction * unit as f64) as i64;
    whole.checked_mul(unit)?.checked_add(part)
}

/// Writes it as `1h0m2.5s`.
pub(crate) fn written(nanos: i64) -> String {
    let magnitude = nanos.unsigned_abs();
    let sign = if nanos < 0 { "-" } else { "" };
    if magnitude == 0 {
        return "0s".to_owned();
    }
    let point = |unit: u64, name: &str| {
        let (whole, rest) = (magnitude / unit, magnitude % unit);
        let width = unit.ilog10() as usize;
        let fraction = format!("{rest:0width$}");
        match fraction.trim_end_matches('0') {
            "" => format!("{sign}{whole}{name}"),
            digits => format!("{sign}{whole}.{digits}{name}"),
        }
    };
    match magnitude {
        0..1_000 => format!("{sign}{magnitude}ns"),
        1_000..1_000_000 => point(1_000, "µs"),
        1_000_000..1_000_000_000 => point(1_000_000, "ms"),
        _ => {
            let seconds = magnitude / 1_000_000_000;
            let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
            let below = format!("{:09}", magnitude % 1_000_000_000);
            let below = match below.trim_end_matches('0') {
                "" => String::new(),
                digits => format!(".{digits}"),
            };
            let rest = format!("{}{below}s", seconds % 60);
            match (hours, minutes) {
                (0, 0) => format!("{sign}{rest}"),
                (0, minutes) => format!("{sign}{minutes}m{rest}"),
                (hours, minutes) => format!("{sign}{hours}h{minutes}m{rest}"),
            }
        }
    }
}

/// The largest unit that a duration has, as people say how long ago something was.
pub(crate) fn rounded(nanos: i64) -> String {
    let seconds = |count: u64| count * 1_000_000_000;
    let units = [
        (seconds(365 * 86_400), "y"),
        (seconds(30 * 86_400), "mo"),
        (seconds(86_400), "d"),
        (seconds(3600), "h"),
        (seconds(60), "m"),
        (seconds(1), "s"),
    ];
    let magnitude = nanos.unsigned_abs();
    let found = units.iter().find(|(unit, _)| magnitude > *unit);
    found.map_or_else(|| "0s".to_owned(), |(unit, name)| format!("{}{name}", magnitude / unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written() {
        let rows = [
            ("1h2m3s", Some("1h2m3s")),
            ("90s", Some("1m30s")),
            ("-1.5h", Some("-1h30m0s")),
            ("1500ms", Some("1.5s")),
            ("15us", Some("15µs")),
            ("0", Some("0s")),
            ("", None),
            ("1", None),
            ("1x", None),
            ("é", None),
            ("99999999h", None),
        ];
        for (text, expected) in rows {
            let found = read(text).map(written).ok();
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
