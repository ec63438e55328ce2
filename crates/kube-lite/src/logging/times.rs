//! How a time is written.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A time since 1970: UTC in RFC 3339, to the second.
pub fn date_and_time(since_1970: Duration) -> String {
    let text = timestamp(UNIX_EPOCH + since_1970);
    text.split_once('.')
        .map_or(text.clone(), |(seconds, _)| format!("{seconds}Z"))
}

/// UTC in RFC 3339 with milliseconds. A clock before 1970, which a board without a battery may have, counts as 1970.
pub fn timestamp(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let millis = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Year, month and day of a number of days since 1970-01-01. It counts, since some dozen steps per line cost nothing.
fn date(mut days: u64) -> (u64, u64, u64) {
    let mut year = 1970;
    while days >= 365 + leap_day(year) {
        days -= 365 + leap_day(year);
        year += 1;
    }
    let mut month = 1;
    for length in [31, 28 + leap_day(year), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

fn leap_day(year: u64) -> u64 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    u64::from(leap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_utc_timestamps() {
        for (seconds, millis, expected) in [
            (0, 0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, 999, "2000-02-28T23:59:59.999Z"),
            (951_782_400, 0, "2000-02-29T00:00:00.000Z"),
            (1_709_164_800, 5, "2024-02-29T00:00:00.005Z"),
            (1_735_689_599, 0, "2024-12-31T23:59:59.000Z"),
            (1_795_269_787, 123, "2026-11-21T14:03:07.123Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.000Z"),
        ] {
            let at = UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(millis);
            assert_eq!(timestamp(at), expected);
        }
        assert_eq!(
            timestamp(UNIX_EPOCH - Duration::from_secs(1)),
            "1970-01-01T00:00:00.000Z"
        );
    }
}
