//! Go's layouts: a time is written as the reference time would be.

use super::Moment;

/// A part of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunk {
    LongMonth,
    Month,
    NumMonth,
    ZeroMonth,
    LongWeekday,
    Weekday,
    Day,
    SpaceDay,
    ZeroDay,
    SpaceYearDay,
    ZeroYearDay,
    Hour,
    Hour12,
    ZeroHour12,
    Minute,
    ZeroMinute,
    Second,
    ZeroSecond,
    LongYear,
    Year,
    UpperPm,
    LowerPm,
    Zone,
    /// An offset: whether UTC is `Z`, whether there is a colon, and of how many parts it is.
    Offset(bool, bool, u8),
    /// Parts of a second: how many digits, and whether trailing zeros go. With the point or comma.
    Fraction(usize, bool, char),
}

/// The parts that are texts, the longer of two that begin alike first.
const CHUNKS: [(&str, Chunk); 36] = [
    ("January", Chunk::LongMonth),
    ("Jan", Chunk::Month),
    ("Monday", Chunk::LongWeekday),
    ("Mon", Chunk::Weekday),
    ("MST", Chunk::Zone),
    ("002", Chunk::ZeroYearDay),
    ("01", Chunk::ZeroMonth),
    ("02", Chunk::ZeroDay),
    ("03", Chunk::ZeroHour12),
    ("04", Chunk::ZeroMinute),
    ("05", Chunk::ZeroSecond),
    ("06", Chunk::Year),
    ("15", Chunk::Hour),
    ("1", Chunk::NumMonth),
    ("2006", Chunk::LongYear),
    ("2", Chunk::Day),
    ("__2", Chunk::SpaceYearDay),
    ("_2", Chunk::SpaceDay),
    ("3", Chunk::Hour12),
    ("4", Chunk::Minute),
    ("5", Chunk::Second),
    ("PM", Chunk::UpperPm),
    ("pm", Chunk::LowerPm),
    ("-070000", Chunk::Offset(false, false, 3)),
    ("-07:00:00", Chunk::Offset(false, true, 3)),
    ("-0700", Chunk::Offset(false, false, 2)),
    ("-07:00", Chunk::Offset(false, true, 2)),
    ("-07", Chunk::Offset(false, false, 1)),
    ("Z070000", Chunk::Offset(true, false, 3)),
    ("Z07:00:00", Chunk::Offset(true, true, 3)),
    ("Z0700", Chunk::Offset(true, false, 2)),
    ("Z07:00", Chunk::Offset(true, true, 2)),
    ("Z07", Chunk::Offset(true, false, 1)),
    (".0", Chunk::Fraction(0, false, '.')),
    (",0", Chunk::Fraction(0, false, ',')),
    (".9", Chunk::Fraction(0, true, '.')),
];

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

pub(super) const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// The text before the first part, the part, and what follows it.
pub(super) fn next_chunk(layout: &str) -> (&str, Option<Chunk>, &str) {
    for (at, _) in layout.char_indices() {
        let rest = &layout[at..];
        if let Some((chunk, length)) = chunk_at(rest) {
            return (&layout[..at], Some(chunk), &rest[length..]);
        }
        // `_2006` is a year after an underscore.
        if let Some(after) = rest.strip_prefix("_2006") {
            return (&layout[..=at], Some(Chunk::LongYear), after);
        }
    }
    (layout, None, "")
}

fn chunk_at(rest: &str) -> Option<(Chunk, usize)> {
    if let Some(found) = fraction(rest) {
        return Some(found);
    }
    let (name, chunk) = CHUNKS.iter().find(|(name, chunk)| {
        let is_it = rest.starts_with(name) && !matches!(chunk, Chunk::Fraction(..));
        // A month or weekday goes on with no small letter: `Monty` is text.
        let goes_on = || rest[name.len()..].starts_with(|next: char| next.is_ascii_lowercase());
        match chunk {
            Chunk::Month | Chunk::Weekday => is_it && !goes_on(),
            Chunk::SpaceDay => is_it && !rest.starts_with("_2006"),
            _ => is_it,
        }
    })?;
    Some((*chunk, name.len()))
}

/// A point or comma, then zeros or nines, and no other digit after them.
fn fraction(rest: &str) -> Option<(Chunk, usize)> {
    let point = rest.chars().next().filter(|point| matches!(point, '.' | ','))?;
    let digit = rest[1..].chars().next().filter(|digit| matches!(digit, '0' | '9'))?;
    let count = rest[1..].chars().take_while(|next| *next == digit).count();
    let ends = !rest[1 + count..].starts_with(|next: char| next.is_ascii_digit());
    ends.then_some((Chunk::Fraction(count, digit == '9', point), 1 + count))
}

pub(super) fn format(moment: &Moment, layout: &str) -> String {
    let mut out = String::new();
    let mut rest = layout;
    loop {
        let (before, chunk, after) = next_chunk(rest);
        out.push_str(before);
        let Some(chunk) = chunk else { return out };
        out.push_str(&written(moment, chunk));
        rest = after;
    }
}

fn written(moment: &Moment, chunk: Chunk) -> String {
    let civil = moment.civil();
    let (hour, minute, second) = (civil.second / 3600, civil.second / 60 % 60, civil.second % 60);
    let hour12 = if hour % 12 == 0 { 12 } else { hour % 12 };
    let name = |names: &[&'static str], index: i64| {
        let index = usize::try_from(index).unwrap_or(0);
        names.get(index).copied().unwrap_or_default()
    };
    let month = || name(&MONTHS, civil.month - 1);
    let weekday = || name(&WEEKDAYS, moment.weekday());
    match chunk {
        Chunk::LongMonth => month().to_owned(),
        Chunk::Month => month()[..3].to_owned(),
        Chunk::NumMonth => civil.month.to_string(),
        Chunk::ZeroMonth => format!("{:02}", civil.month),
        Chunk::LongWeekday => weekday().to_owned(),
        Chunk::Weekday => weekday()[..3].to_owned(),
        Chunk::Day => civil.day.to_string(),
        Chunk::SpaceDay => format!("{:2}", civil.day),
        Chunk::ZeroDay => format!("{:02}", civil.day),
        Chunk::SpaceYearDay => format!("{:3}", civil.day_of_year()),
        Chunk::ZeroYearDay => format!("{:03}", civil.day_of_year()),
        Chunk::Hour => format!("{hour:02}"),
        Chunk::Hour12 => hour12.to_string(),
        Chunk::ZeroHour12 => format!("{hour12:02}"),
        Chunk::Minute => minute.to_string(),
        Chunk::ZeroMinute => format!("{minute:02}"),
        Chunk::Second => second.to_string(),
        Chunk::ZeroSecond => format!("{second:02}"),
        Chunk::LongYear if civil.year < 0 => format!("-{:04}", -civil.year),
        Chunk::LongYear => format!("{:04}", civil.year),
        Chunk::Year => format!("{:02}", civil.year.rem_euclid(100)),
        Chunk::UpperPm => if hour >= 12 { "PM" } else { "AM" }.to_owned(),
        Chunk::LowerPm => if hour >= 12 { "pm" } else { "am" }.to_owned(),
        Chunk::Zone => moment.zone.clone(),
        Chunk::Offset(utc_is_z, has_colon, parts) => offset(moment.offset, utc_is_z, has_colon, parts),
        Chunk::Fraction(count, trims, point) => {
            let digits = format!("{:09}", moment.nanos);
            let digits: String = digits
                .chars()
                .chain(std::iter::repeat('0'))
                .take(count.min(9))
                .collect();
            let digits = if trims { digits.trim_end_matches('0') } else { &digits };
            match digits {
                "" => String::new(),
                digits => format!("{point}{digits}"),
            }
        }
    }
}

fn offset(seconds: i32, utc_is_z: bool, has_colon: bool, parts: u8) -> String {
    if utc_is_z && seconds == 0 {
        return "Z".to_owned();
    }
    let sign = if seconds < 0 { '-' } else { '+' };
    let seconds = seconds.unsigned_abs();
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let colon = if has_colon { ":" } else { "" };
    match parts {
        1 => format!("{sign}{hours:02}"),
        2 => format!("{sign}{hours:02}{colon}{minutes:02}"),
        _ => format!("{sign}{hours:02}{colon}{minutes:02}{colon}{rest:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_write_times_as_go_does() {
        let moment = Moment::at(1_500_000_000, 120_000_000);
        let rows = [
            ("2006-01-02T15:04:05Z07:00", "2017-07-14T02:40:00Z"),
            ("Mon Jan _2 15:04:05 2006", "Fri Jul 14 02:40:00 2017"),
            ("Monday, 02-Jan-06 15:04:05 MST", "Friday, 14-Jul-17 02:40:00 UTC"),
            ("3:04PM", "2:40AM"),
            ("15:04:05.000", "02:40:00.120"),
            ("15:04:05.999999", "02:40:00.12"),
            ("002 __2 1/2", "195 195 7/14"),
            ("-0700 -07:00 -07", "+0000 +00:00 +00"),
            ("é 2006", "é 2017"),
            ("_2006", "_2017"),
            ("", ""),
        ];
        for (layout, expected) in rows {
            assert_eq!(moment.format(layout), expected, "{layout}");
        }
    }
}
