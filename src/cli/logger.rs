//! Log lines on stderr: `2026-11-21T14:03:07.123Z INFO  message key=value`, one line per record whatever it holds.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use log::{Level, LevelFilter, Record};

use crate::spelling;

/// Our own lines from info on, those of libraries from warn on.
const DEFAULT_FILTER: &str = "warn,edge_syncer=info";

/// A longer word is cut: longer than any name, path or key of an API, it is somebody's data.
const LONGEST_WORD: usize = 600;
/// So much of a message is written, in characters.
const LONGEST_LINE: usize = 8000;

/// Sets up the process's logger; a second call has no effect.
///
/// `filter` is the value of `EDGE_SYNCER_LOG` or `RUST_LOG`, in `env_logger`'s syntax. A `verbosity` above info decides
/// about our own lines, whatever `filter` says of them.
pub fn init(filter: Option<&str>, verbosity: LevelFilter) {
    let mut builder = env_logger::Builder::new();
    builder.parse_filters(filter.unwrap_or(DEFAULT_FILTER));
    if verbosity > LevelFilter::Info {
        builder.filter_module("edge_syncer", verbosity);
    }
    builder.format(|out, record| writeln!(out, "{}", line(now(), record)));
    // Fails only when there is a logger already, and then that one is as good.
    let _ = builder.try_init();
}

/// What is wrong with a filter, if anything is. `env_logger` takes a word that is no level for the name of a module, so
/// that a misspelt level silences all.
pub fn check(filter: &str) -> Result<(), String> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let level = |word: &str| match word.parse::<LevelFilter>() {
        Ok(_) => Ok(()),
        Err(_) => Err(format!(
            "{word:?} is no level{}; levels are {}",
            spelling::hint(word, LEVELS),
            LEVELS.join(", ")
        )),
    };
    let mut parts = filter.split('/');
    let directives = parts.next().unwrap_or_default();
    if parts.nth(1).is_some() {
        return Err("there must be one / at most".to_owned());
    }
    for directive in directives.split(',').map(str::trim).filter(|it| !it.is_empty()) {
        let Some((module, word)) = directive.split_once('=') else {
            level(directive).map_err(|why| format!("{why}; for one module write edge_syncer=debug"))?;
            continue;
        };
        let is_path = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        if module.is_empty() || !module.chars().all(is_path) {
            let hint = spelling::hint(module, ["edge_syncer"]);
            return Err(format!("{module:?} is no name of a module{hint}"));
        }
        level(word.trim())?;
    }
    Ok(())
}

#[allow(
    clippy::disallowed_methods,
    reason = "log lines and heartbeats say the time of the wall clock, and nothing is decided by it"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

/// The time of the wall clock: UTC in RFC 3339, to the second.
pub fn time_of_day() -> String {
    date_and_time(since_1970())
}

/// A time since 1970: UTC in RFC 3339, to the second.
pub(crate) fn date_and_time(since_1970: Duration) -> String {
    let text = timestamp(UNIX_EPOCH + since_1970);
    text.split_once('.')
        .map_or(text.clone(), |(seconds, _)| format!("{seconds}Z"))
}

/// The same with six decimals, as the `MicroTime` of a Lease is written.
pub fn time_of_day_in_micros() -> String {
    let at = now();
    let micros = at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).subsec_micros();
    let text = timestamp(at);
    let seconds = text.split_once('.').map_or(text.as_str(), |(seconds, _)| seconds);
    format!("{seconds}.{micros:06}Z")
}

/// The time of the wall clock since 1970; zero before.
pub fn since_1970() -> Duration {
    now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn line(at: SystemTime, record: &Record<'_>) -> String {
    let mut line = timestamp(at);
    let level = record.level();
    // Writing to a String cannot fail.
    let _ = write!(line, " {level:<5} ");
    if level > Level::Info {
        let _ = write!(line, "{}: ", record.target());
    }
    let message = record.args().to_string();
    let (mut word, mut written) = (0, 0);
    for c in message.chars() {
        word = if c == ' ' { 0 } else { word + 1 };
        if word > LONGEST_WORD {
            continue;
        }
        written += 1;
        if word == LONGEST_WORD || written == LONGEST_LINE {
            line.push('…');
        } else if c.is_control() && c != '\t' {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
        if written == LONGEST_LINE {
            break;
        }
    }
    line
}

/// UTC in RFC 3339 with milliseconds. A clock before 1970, which a board without a battery may have, counts as 1970.
fn timestamp(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let millis = since.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Year, month and day of a number of days since 1970-01-01. Counts, since some dozen steps per line cost nothing.
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
    use super::check as check_filter;
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

    #[test]
    fn long_words_and_endless_lines_are_cut() {
        let write = |message: &str| {
            line(
                UNIX_EPOCH,
                &Record::builder()
                    .level(Level::Info)
                    .args(format_args!("{message}"))
                    .build(),
            )
        };
        let long = "é".repeat(66_000);
        let text = write(&format!("a\nb name={long} error=\"no\""));
        assert!(
            text.contains("a\\nb name=éé") && text.ends_with("… error=\"no\""),
            "{text:.200}"
        );
        assert!(text.chars().count() < LONGEST_WORD + 100);
        assert!(write(&"word ".repeat(10_000)).chars().count() <= LONGEST_LINE + 100);
    }

    #[test]
    fn writes_times_of_day_as_the_api_takes_them() {
        for (text, length) in [
            (time_of_day(), "2026-11-21T14:03:07Z".len()),
            (time_of_day_in_micros(), "2026-11-21T14:03:07.123456Z".len()),
        ] {
            assert_eq!(text.len(), length, "{text}");
            assert!(text.ends_with('Z') && text.starts_with("20"), "{text}");
        }
    }

    fn check(level: Level, message: &str, expected: &str) {
        let args = format_args!("{message}").to_string();
        let found = line(
            UNIX_EPOCH,
            &Record::builder()
                .level(level)
                .target("edge_syncer::x")
                .args(format_args!("{args}"))
                .build(),
        );
        assert_eq!(found.split_once(' ').unwrap().1, expected);
    }

    #[test]
    fn keeps_a_record_on_one_line() {
        check(Level::Info, "started key=value", "INFO  started key=value");
        check(Level::Error, "a\nb\r\u{1b}[1m", "ERROR a\\nb\\r\\u{1b}[1m");
        check(Level::Warn, "grün\tx", "WARN  grün\tx");
    }

    #[test]
    fn a_filter_that_would_silence_the_log_by_mistake_is_told() {
        for filter in [
            "",
            "debug",
            "DEBUG",
            "off",
            "warn,edge_syncer=debug",
            "edge_syncer::queue=trace, hyper= info",
            "info/object",
        ] {
            assert_eq!(check_filter(filter), Ok(()), "{filter}");
        }
        let levels = "levels are off, error, warn, info, debug, trace";
        let module = "for one module write edge_syncer=debug";
        for (filter, expected) in [
            ("loud", format!("\"loud\" is no level; {levels}; {module}")),
            (
                "info,edge_syncer=debg",
                format!("\"debg\" is no level, did you mean debug?; {levels}"),
            ),
            ("edge_syncer=", format!("\"\" is no level; {levels}")),
            (
                "edge_syncer",
                format!("\"edge_syncer\" is no level; {levels}; {module}"),
            ),
            (
                "edge_syncer=info=debug",
                format!("\"info=debug\" is no level; {levels}"),
            ),
            (
                "edge-syncer=debug",
                "\"edge-syncer\" is no name of a module, did you mean edge_syncer?".to_owned(),
            ),
            ("hyper =debug", "\"hyper \" is no name of a module".to_owned()),
            ("=debug", "\"\" is no name of a module".to_owned()),
            ("info/a/b", "there must be one / at most".to_owned()),
        ] {
            assert_eq!(check_filter(filter), Err(expected), "{filter}");
        }
    }

    #[test]
    fn names_the_module_below_info() {
        check(Level::Debug, "x", "DEBUG edge_syncer::x: x");
        check(Level::Trace, "x", "TRACE edge_syncer::x: x");
    }
}
