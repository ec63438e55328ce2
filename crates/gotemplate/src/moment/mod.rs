//! Times, durations and their texts, by the rules of Go's `time`.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::tz::TimeZone;

pub(crate) mod duration;
mod layout;
mod read;

pub(crate) use read::read;

/// A point in time, and the zone that it is shown in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Moment {
    seconds: i64,
    nanos: u32,
    /// Seconds east of Greenwich.
    offset: i32,
    zone: String,
}

/// A date of the calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Civil {
    year: i64,
    month: i64,
    day: i64,
    /// Seconds since midnight.
    second: i64,
}

const DAY: i64 = 86_400;

/// What Go's zero time is: the first of January of year 1.
const ZERO: i64 = -62_135_596_800;

/// The seconds that are shown: years of up to six digits, so that nothing overflows.
const LONGEST: i64 = 31_000_000_000_000;

impl Moment {
    /// Seconds since 1970, in UTC.
    pub(crate) fn at(seconds: i64, nanos: u32) -> Self {
        Self {
            seconds: seconds.clamp(-LONGEST, LONGEST),
            nanos,
            offset: 0,
            zone: "UTC".to_owned(),
        }
    }

    pub(crate) fn zero() -> Self {
        Self::at(ZERO, 0)
    }

    pub(crate) fn of(time: SystemTime) -> Self {
        let (seconds, nanos) = match time.duration_since(UNIX_EPOCH) {
            Ok(since) => (since.as_secs(), since.subsec_nanos()),
            Err(_) => (0, 0),
        };
        Self::at(i64::try_from(seconds).unwrap_or(LONGEST), nanos)
    }

    pub(crate) fn utc(&self) -> Self {
        Self::at(self.seconds, self.nanos)
    }

    /// The same time in the zone of this name; in UTC if there is none, as with sprig.
    pub(crate) fn within(&self, zone: &str) -> Self {
        let found = match zone {
            "" | "UTC" | "Local" => None,
            zone => TimeZone::get(zone).ok(),
        };
        let timestamp = Timestamp::from_second(self.seconds).ok();
        let Some((found, timestamp)) = found.zip(timestamp) else {
            return self.utc();
        };
        let info = found.to_offset_info(timestamp);
        Self {
            offset: info.offset().seconds(),
            zone: info.abbreviation().to_owned(),
            ..*self
        }
    }

    pub(crate) fn unix(&self) -> i64 {
        self.seconds
    }

    pub(crate) fn unix_nano(&self) -> i64 {
        self.seconds
            .wrapping_mul(1_000_000_000)
            .wrapping_add(i64::from(self.nanos))
    }

    /// Later by so many nanoseconds.
    pub(crate) fn plus(&self, nanos: i64) -> Self {
        let sum = i64::from(self.nanos) + nanos.rem_euclid(1_000_000_000);
        let seconds = self.seconds + nanos.div_euclid(1_000_000_000) + sum.div_euclid(1_000_000_000);
        Self {
            seconds: seconds.clamp(-LONGEST, LONGEST),
            nanos: u32::try_from(sum.rem_euclid(1_000_000_000)).unwrap_or(0),
            offset: self.offset,
            zone: self.zone.clone(),
        }
    }

    /// The nanoseconds from another time until this one.
    pub(crate) fn since(&self, other: &Self) -> i64 {
        let seconds = self.seconds.saturating_sub(other.seconds).saturating_mul(1_000_000_000);
        seconds.saturating_add(i64::from(self.nanos) - i64::from(other.nanos))
    }

    /// A part of the date that is a number.
    pub(crate) fn part(&self, name: &str) -> Option<i64> {
        let civil = self.civil();
        Some(match name {
            "Year" => civil.year,
            "Day" => civil.day,
            "Hour" => civil.second / 3600,
            "Minute" => civil.second / 60 % 60,
            "Second" => civil.second % 60,
            "Nanosecond" => i64::from(self.nanos),
            "YearDay" => civil.day_of_year(),
            _ => return None,
        })
    }

    /// As Go's JSON has it.
    pub(crate) fn rfc3339(&self) -> String {
        self.format("2006-01-02T15:04:05.999999999Z07:00")
    }

    /// By a layout of Go.
    pub(crate) fn format(&self, layout: &str) -> String {
        layout::format(self, layout)
    }

    fn civil(&self) -> Civil {
        let local = self.seconds + i64::from(self.offset);
        Civil::of_days(local.div_euclid(DAY), local.rem_euclid(DAY))
    }

    /// 0 is Sunday.
    fn weekday(&self) -> i64 {
        ((self.seconds + i64::from(self.offset)).div_euclid(DAY) + 4).rem_euclid(7)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.format("2006-01-02 15:04:05.999999999 -0700 MST"))
    }
}

impl Civil {
    /// The date of a number of days since 1970, by the algorithm of Howard Hinnant.
    fn of_days(days: i64, second: i64) -> Self {
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let month = if shifted_month < 10 {
            shifted_month + 3
        } else {
            shifted_month - 9
        };
        Self {
            year: year_of_era + era * 400 + i64::from(month <= 2),
            month,
            day: day_of_year - (153 * shifted_month + 2) / 5 + 1,
            second,
        }
    }

    /// Days since 1970.
    fn days(self) -> i64 {
        let year = self.year - i64::from(self.month <= 2);
        let era = year.div_euclid(400);
        let year_of_era = year.rem_euclid(400);
        let shifted_month = if self.month > 2 { self.month - 3 } else { self.month + 9 };
        let day_of_year = (153 * shifted_month + 2) / 5 + self.day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * 146_097 + day_of_era - 719_468
    }

    /// From 1.
    fn day_of_year(self) -> i64 {
        let first = Self {
            month: 1,
            day: 1,
            ..self
        };
        self.days() - first.days() + 1
    }
}
