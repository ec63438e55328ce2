//! Reads a time that is written by a layout.

use super::layout::{self, Chunk, MONTHS, WEEKDAYS};
use super::{Civil, DAY, Moment};

/// What was found so far.
#[derive(Default)]
struct Found {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    year_day: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    nanos: u32,
    is_pm: Option<bool>,
    offset: i32,
}

/// The time that a text has by this layout, in UTC unless the text says otherwise.
pub(crate) fn read(layout: &str, text: &str) -> Result<Moment, String> {
    let wrong = || format!("parsing time {text:?} as {layout:?}: cannot parse it");
    found(layout, text).and_then(|found| moment(&found)).ok_or_else(wrong)
}

fn found(layout: &str, text: &str) -> Option<Found> {
    let mut found = Found::default();
    let (mut layout, mut text) = (layout, text);
    loop {
        let (before, chunk, after) = layout::next_chunk(layout);
        text = text.strip_prefix(before)?;
        let Some(chunk) = chunk else {
            return text.is_empty().then_some(found);
        };
        text = found.take(chunk, text)?;
        // A fraction of a second may stand where the layout has none.
        let is_next = matches!(layout::next_chunk(after), ("", Some(Chunk::Fraction(..)), _));
        if matches!(chunk, Chunk::Second | Chunk::ZeroSecond) && !is_next {
            text = found.fraction(text).unwrap_or(text);
        }
        layout = after;
    }
}

impl Found {
    /// Takes one part. Gives what follows it.
    fn take<'t>(&mut self, chunk: Chunk, text: &'t str) -> Option<&'t str> {
        let rest;
        match chunk {
            Chunk::LongMonth | Chunk::Month => {
                let (index, after) = name(&MONTHS, text, chunk == Chunk::LongMonth)?;
                self.month = Some(index + 1);
                rest = after;
            }
            Chunk::LongWeekday | Chunk::Weekday => {
                (_, rest) = name(&WEEKDAYS, text, chunk == Chunk::LongWeekday)?;
            }
            Chunk::NumMonth => (self.month, rest) = some(digits(text, 1, 2)?),
            Chunk::ZeroMonth => (self.month, rest) = some(digits(text, 2, 2)?),
            Chunk::Day => (self.day, rest) = some(digits(text, 1, 2)?),
            Chunk::SpaceDay => (self.day, rest) = some(digits(text.trim_start_matches(' '), 1, 2)?),
            Chunk::ZeroDay => (self.day, rest) = some(digits(text, 2, 2)?),
            Chunk::SpaceYearDay => (self.year_day, rest) = some(digits(text.trim_start_matches(' '), 1, 3)?),
            Chunk::ZeroYearDay => (self.year_day, rest) = some(digits(text, 3, 3)?),
            Chunk::Hour => (self.hour, rest) = below(digits(text, 1, 2)?, 24)?,
            Chunk::Hour12 => (self.hour, rest) = below(digits(text, 1, 2)?, 13)?,
            Chunk::ZeroHour12 => (self.hour, rest) = below(digits(text, 2, 2)?, 13)?,
            Chunk::Minute => (self.minute, rest) = below(digits(text, 1, 2)?, 60)?,
            Chunk::ZeroMinute => (self.minute, rest) = below(digits(text, 2, 2)?, 60)?,
            Chunk::Second => (self.second, rest) = below(digits(text, 1, 2)?, 60)?,
            Chunk::ZeroSecond => (self.second, rest) = below(digits(text, 2, 2)?, 60)?,
            Chunk::LongYear => (self.year, rest) = some(digits(text, 4, 4)?),
            Chunk::Year => {
                let (year, after) = digits(text, 2, 2)?;
                self.year = Some(if year >= 69 { 1900 + year } else { 2000 + year });
                rest = after;
            }
            Chunk::UpperPm | Chunk::LowerPm => {
                let (pm, am) = if chunk == Chunk::UpperPm {
                    ("PM", "AM")
                } else {
                    ("pm", "am")
                };
                let is_pm = text.starts_with(pm);
                self.is_pm = Some(is_pm);
                rest = text.strip_prefix(if is_pm { pm } else { am })?;
            }
            Chunk::Zone => {
                let length = text.bytes().take_while(u8::is_ascii_uppercase).count();
                rest = (3..=5).contains(&length).then(|| &text[length..])?;
            }
            Chunk::Offset(utc_is_z, has_colon, parts) => rest = self.offset(text, utc_is_z, has_colon, parts)?,
            Chunk::Fraction(_, true, _) => rest = self.fraction(text).unwrap_or(text),
            Chunk::Fraction(count, false, _) => {
                let after = self.fraction(text)?;
                rest = (text.len() - after.len() == count + 1).then_some(after)?;
            }
        }
        Some(rest)
    }

    fn fraction<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let after = text.strip_prefix(['.', ','])?;
        let count = after.bytes().take_while(u8::is_ascii_digit).count();
        let nine: String = after[..count].chars().chain(std::iter::repeat('0')).take(9).collect();
        self.nanos = nine.parse().ok().filter(|_| count > 0)?;
        Some(&after[count..])
    }

    fn offset<'t>(&mut self, text: &'t str, utc_is_z: bool, has_colon: bool, parts: u8) -> Option<&'t str> {
        if let Some(rest) = text.strip_prefix('Z').filter(|_| utc_is_z) {
            return Some(rest);
        }
        let mut rest = text.strip_prefix(['+', '-'])?;
        let mut seconds = 0;
        for (index, unit) in (0..parts).zip([3600, 60, 1]) {
            if index > 0 && has_colon {
                rest = rest.strip_prefix(':')?;
            }
            let (value, after) = digits(rest, 2, 2)?;
            seconds += i32::try_from(value).ok()? * unit;
            rest = after;
        }
        self.offset = if text.starts_with('-') { -seconds } else { seconds };
        Some(rest)
    }
}

fn moment(found: &Found) -> Option<Moment> {
    let mut hour = found.hour;
    if found.is_pm == Some(true) && hour < 12 {
        hour += 12;
    } else if found.is_pm == Some(false) && hour == 12 {
        hour = 0;
    }
    let civil = Civil {
        year: found.year.unwrap_or(0),
        month: found.month.unwrap_or(1),
        day: found.day.unwrap_or(1),
        second: hour * 3600 + found.minute * 60 + found.second,
    };
    let mut days = civil.days();
    if let Some(year_day) = found.year_day.filter(|_| found.month.is_none()) {
        days += year_day - 1;
    } else if Civil::of_days(days, civil.second) != civil {
        // There is no such day.
        return None;
    }
    let mut moment = Moment::at(days * DAY + civil.second - i64::from(found.offset), found.nanos);
    if found.offset != 0 {
        moment.offset = found.offset;
        moment.zone = String::new();
    }
    Some(moment)
}

fn some((value, rest): (i64, &str)) -> (Option<i64>, &str) {
    (Some(value), rest)
}

fn below((value, rest): (i64, &str), bound: i64) -> Option<(i64, &str)> {
    (value < bound).then_some((value, rest))
}

/// A number of so many digits, and what follows.
fn digits(text: &str, least: usize, most: usize) -> Option<(i64, &str)> {
    let count = text.bytes().take(most).take_while(u8::is_ascii_digit).count();
    let (digits, rest) = text.split_at(count);
    Some((digits.parse().ok().filter(|_| count >= least)?, rest))
}

/// The index of the name that a text begins with.
fn name<'t>(names: &[&str], text: &'t str, is_long: bool) -> Option<(i64, &'t str)> {
    (0..).zip(names).find_map(|(index, name)| {
        let name = if is_long { name } else { &name[..3] };
        let begins = text.get(..name.len())?.eq_ignore_ascii_case(name);
        begins.then(|| (index, &text[name.len()..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_by_its_layout() {
        let rows = [
            ("2006-01-02", "2017-07-14", Some(1_499_990_400)),
            ("2006-01-02T15:04:05Z07:00", "2017-07-14T02:40:00Z", Some(1_500_000_000)),
            (
                "2006-01-02T15:04:05Z07:00",
                "2017-07-14T04:40:00+02:00",
                Some(1_500_000_000),
            ),
            ("Jan 2, 2006 at 3:04pm", "Jul 14, 2017 at 2:40am", Some(1_500_000_000)),
            ("2006-01-02", "2017-02-30", None),
            ("2006-01-02", "2017-13-01", None),
            ("2006-01-02", "x", None),
            ("2006-01-02", "é", None),
        ];
        for (layout, text, expected) in rows {
            assert_eq!(read(layout, text).ok().map(|moment| moment.unix()), expected, "{text}");
        }
    }
}
