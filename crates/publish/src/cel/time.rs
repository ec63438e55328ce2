//! Timestamps and durations of CEL.

use std::fmt;

use jiff::civil::Weekday;
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};

/// A timestamp, as it was written: with an offset, which does not matter when two are compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) at: Timestamp,
    offset: Offset,
}

impl Moment {
    /// The moment of this text.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let at = text.parse().ok()?;
        let zone = text.get(text.len().checked_sub(6)?..)?;
        let offset = match zone.split_once(':') {
            Some((hours, minutes)) if hours.starts_with(['+', '-']) => offset(hours, minutes)?,
            _ => Offset::UTC,
        };
        checked(Some(Self { at, offset })).ok()
    }

    /// This many seconds after 1970.
    pub(super) fn of_second(second: i64) -> Option<Self> {
        let at = Timestamp::from_second(second).ok()?;
        Some(Self {
            at,
            offset: Offset::UTC,
        })
    }

    /// A part of it, in its own zone or in this one.
    pub(super) fn part(self, name: &str, zone: Option<&str>) -> Result<i64, String> {
        let zone = match zone {
            None => TimeZone::fixed(self.offset),
            Some(zone) => zone_named(zone).ok_or_else(|| format!("unknown time zone {zone}"))?,
        };
        Ok(of_zoned(&self.at.to_zoned(zone), name))
    }

    /// Some nanoseconds later.
    pub(super) fn later(self, nanoseconds: i64) -> Option<Self> {
        let later = self.at.as_nanosecond() + i128::from(nanoseconds);
        let at = Timestamp::from_nanosecond(later).ok()?;
        Some(Self { at, ..self })
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.offset == Offset::UTC {
            return self.at.fmt(f);
        }
        self.at.display_with_offset(self.offset).fmt(f)
    }
}

/// Hours and minutes, which have the sign of the hours.
fn offset(hours: &str, minutes: &str) -> Option<Offset> {
    let is_negative = hours.starts_with('-');
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    let minutes = if is_negative { -minutes } else { minutes };
    let seconds = hours.checked_mul(3600)?.checked_add(minutes.checked_mul(60)?)?;
    Offset::from_seconds(seconds).ok()
}

/// Duration text of Go: `1h30m`, `-1.5s`.
pub(super) fn parse_duration(text: &str) -> Option<i64> {
    const UNITS: [(&str, i64); 8] = [
        ("ns", 1),
        ("us", 1_000),
        ("µs", 1_000),
        ("μs", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ];
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(0);
    }
    let mut total = 0i128;
    loop {
        let end = rest.find(|next: char| !next.is_ascii_digit() && next != '.')?;
        let (number, behind) = rest.split_at(end);
        let end = behind
            .find(|next: char| next.is_ascii_digit() || next == '.')
            .unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        let (_, size) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && part.is_empty()) || part.contains('.') || whole.len() > 19 {
            return None;
        }
        total += whole.parse::<i128>().unwrap_or(0) * i128::from(*size);
        let (digits, power) = part.chars().take(15).fold((0, 1), |(digits, power), next| {
            (digits * 10 + i128::from(next.to_digit(10).unwrap_or(0)), power * 10)
        });
        total += digits * i128::from(*size) / power;
        if behind.is_empty() {
            break;
        }
        rest = behind;
    }
    i64::try_from(if negative { -total } else { total }).ok()
}

/// A duration as CEL prints it.
#[expect(clippy::cast_precision_loss, reason = "as Go does it")]
pub(super) fn seconds(nanoseconds: i64) -> String {
    let whole = nanoseconds / 1_000_000_000;
    let rest = nanoseconds % 1_000_000_000;
    format!("{}s", whole as f64 + rest as f64 / 1e9)
}

/// A zone by its name, or as hours and minutes.
fn zone_named(name: &str) -> Option<TimeZone> {
    if let Some((hours, minutes)) = name.split_once(':') {
        return offset(hours, minutes).map(TimeZone::fixed);
    }
    if name == "UTC" || name.is_empty() {
        return Some(TimeZone::UTC);
    }
    TimeZone::get(name).ok()
}

fn of_zoned(moment: &Zoned, name: &str) -> i64 {
    match name {
        "getFullYear" => moment.year().into(),
        "getMonth" => i64::from(moment.month()) - 1,
        "getDate" => moment.day().into(),
        "getDayOfMonth" => i64::from(moment.day()) - 1,
        "getDayOfWeek" => moment.weekday().since(Weekday::Sunday).into(),
        "getDayOfYear" => i64::from(moment.day_of_year()) - 1,
        "getHours" => moment.hour().into(),
        "getMinutes" => moment.minute().into(),
        "getSeconds" => moment.second().into(),
        _ => moment.millisecond().into(),
    }
}

/// A timestamp, if it is of the years that there are.
pub(super) fn checked(moment: Option<Moment>) -> Result<Moment, String> {
    const FIRST: i64 = -62_135_596_800;
    let moment = moment.filter(|moment| moment.at.as_second() >= FIRST);
    moment.ok_or_else(|| "timestamp overflow".to_owned())
}
