//! Log lines on stderr: which of them are written, and what is written before and after the text of [`kube_lite::logging`].

use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kube_lite::logging::times::{date_and_time, timestamp};
use kube_lite::logging::{self, Body, LogFormat, LogReason};
use kube_lite::spelling;
use log::{Level, LevelFilter, Log, Metadata, Record};

/// What the targets of a program's own lines are. All other lines are those of libraries.
#[derive(Debug)]
pub struct Targets {
    /// What they begin with.
    pub program: &'static str,
    /// Crates whose lines are the program's own too, each with the module that its lines name.
    pub crates: &'static [(&'static str, &'static str)],
}

impl Targets {
    /// The target of a line, if it is not the path of the module that has logged it.
    fn other_than(&self, path: &str) -> Option<String> {
        let rest_in = |name: &str| {
            let rest = path.strip_prefix(name)?;
            (rest.is_empty() || rest.starts_with("::")).then_some(rest)
        };
        self.crates
            .iter()
            .find_map(|(name, module)| Some(format!("{module}{}", rest_in(name)?)))
    }
}

/// Filters and writes lines by their targets.
struct Logger {
    usual: env_logger::Logger,
    /// While the level is raised.
    raised: env_logger::Logger,
    targets: &'static Targets,
}

/// The process's logger, as it was set up.
static LOGGER: OnceLock<Logger> = OnceLock::new();

/// The level is raised.
static IS_RAISED: AtomicBool = AtomicBool::new(false);

impl Logger {
    fn in_force(&self) -> &env_logger::Logger {
        if IS_RAISED.load(Ordering::Relaxed) {
            &self.raised
        } else {
            &self.usual
        }
    }
}

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let Some(target) = self.targets.other_than(metadata.target()) else {
            return self.in_force().enabled(metadata);
        };
        let level = metadata.level();
        self.in_force()
            .enabled(&Metadata::builder().level(level).target(&target).build())
    }

    fn log(&self, record: &Record<'_>) {
        let Some(target) = self.targets.other_than(record.target()) else {
            return self.in_force().log(record);
        };
        let mut ours = Record::builder();
        let ours = ours.level(record.level()).target(&target).args(*record.args());
        self.in_force().log(&ours.build());
    }

    fn flush(&self) {
        self.in_force().flush();
    }
}

/// Sets up the process's logger; a second call has no effect. Without a filter, our own lines are written from info on,
/// those of libraries from warn on.
///
/// `filter` is the value of `EDGE_SYNCER_LOG` or `RUST_LOG`, in `env_logger`'s syntax. A `verbosity` above info applies
/// to our own lines, whatever `filter` says about them.
pub fn init(targets: &'static Targets, filter: Option<&str>, verbosity: LevelFilter, format: LogFormat) {
    logging::set_format(format);
    let logger = LOGGER.get_or_init(|| Logger {
        usual: writer(targets.program, filter, verbosity, format),
        raised: writer(targets.program, filter, verbosity.max(LevelFilter::Debug), format),
        targets,
    });
    // Fails only if there is a logger already, which then stays.
    if log::set_logger(logger).is_ok() {
        log::set_max_level(logger.usual.filter());
    }
}

/// Writes debug lines of the program until [`restore`]. False if they are written anyway.
pub fn raise() -> bool {
    let Some(logger) = LOGGER.get() else { return false };
    let debug = Metadata::builder()
        .level(Level::Debug)
        .target(logger.targets.program)
        .build();
    if logger.usual.enabled(&debug) {
        return false;
    }
    IS_RAISED.store(true, Ordering::Relaxed);
    log::set_max_level(logger.raised.filter());
    true
}

/// Writes lines as before [`raise`].
pub fn restore() {
    if let Some(logger) = LOGGER.get() {
        IS_RAISED.store(false, Ordering::Relaxed);
        log::set_max_level(logger.usual.filter());
    }
}

fn writer(
    program: &'static str,
    filter: Option<&str>,
    verbosity: LevelFilter,
    format: LogFormat,
) -> env_logger::Logger {
    let mut builder = env_logger::Builder::new();
    match filter {
        Some(filter) => builder.parse_filters(filter),
        None => builder.parse_filters(&format!("warn,{program}={}", verbosity.min(LevelFilter::Info))),
    };
    if verbosity > LevelFilter::Info {
        builder.filter_module(program, verbosity);
    }
    builder.format(move |out, record| writeln!(out, "{}", line(now(), record, program, format)));
    builder.build()
}

/// What is wrong with a filter, if anything is. `env_logger` treats a word that is no level as the name of a module, so
/// that a misspelt level would silence everything.
pub fn check(filter: &str, program: &str) -> Result<(), String> {
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
            level(directive).map_err(|why| format!("{why}; for one module write {program}=debug"))?;
            continue;
        };
        let is_path = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        if module.is_empty() || !module.chars().all(is_path) {
            let hint = spelling::hint(module, [program]);
            return Err(format!("{module:?} is no name of a module{hint}"));
        }
        level(word.trim())?;
    }
    Ok(())
}

/// The time of the wall clock.
#[allow(
    clippy::disallowed_methods,
    reason = "log lines and heartbeats say the time of the wall clock, and nothing is decided by it"
)]
pub fn now() -> SystemTime {
    SystemTime::now()
}

/// The time of the wall clock: UTC in RFC 3339, to the second.
pub fn time_of_day() -> String {
    date_and_time(since_1970())
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

fn line(at: SystemTime, record: &Record<'_>, program: &str, format: LogFormat) -> String {
    let (level, target, args) = (record.level(), record.target(), record.args().to_string());
    let is_ours = target.starts_with(program);
    let mut body = if is_ours {
        Body::from_text(format, args)
    } else {
        Body::begin(format, LogReason::Dependency, &args)
    };
    if !is_ours || level > Level::Info {
        body.field("target", &target);
    }
    let (at, body) = (timestamp(at), body.text);
    match format {
        LogFormat::Text => format!("{at} {level} {body}"),
        LogFormat::Json => format!("{{\"ts\":\"{at}\",\"level\":\"{level}\",{body}}}"),
    }
}

#[cfg(test)]
mod tests {
    use super::check as check_filter;
    use super::*;

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

    fn check(level: Level, target: &str, text: &str, format: LogFormat, expected: &str) {
        let found = line(
            UNIX_EPOCH,
            &Record::builder()
                .level(level)
                .target(target)
                .args(format_args!("{text}"))
                .build(),
            "edge_syncer",
            format,
        );
        assert_eq!(found, expected);
    }

    #[test]
    fn a_line_of_a_library_has_a_reason_and_is_one_line_too() {
        check(
            Level::Warn,
            "hyper::x",
            "a\nb\r\u{1b}[1m \"c\"",
            LogFormat::Text,
            r#"1970-01-01T00:00:00.000Z WARN reason=Dependency msg="a\nb\r\u001b[1m \"c\"" target=hyper::x"#,
        );
        check(
            Level::Error,
            "hyper::x",
            "a\tb",
            LogFormat::Json,
            r#"{"ts":"1970-01-01T00:00:00.000Z","level":"ERROR","reason":"Dependency","msg":"a\tb","target":"hyper::x"}"#,
        );
    }

    #[test]
    fn a_filter_that_would_silence_the_log_by_mistake_is_reported() {
        for filter in [
            "",
            "debug",
            "DEBUG",
            "off",
            "warn,edge_syncer=debug",
            "edge_syncer::queue=trace, hyper= info",
            "info/object",
        ] {
            assert_eq!(check_filter(filter, "edge_syncer"), Ok(()), "{filter}");
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
            assert_eq!(check_filter(filter, "edge_syncer"), Err(expected), "{filter}");
        }
    }

    #[test]
    fn lines_of_crates_have_a_target_of_the_program() {
        let targets = Targets {
            program: "program",
            crates: &[("lite", "program::server"), ("driver", "program")],
        };
        for (path, target) in [
            ("lite::verbs::lists", Some("program::server::verbs::lists")),
            ("lite", Some("program::server")),
            ("driver::leader", Some("program::leader")),
            ("program::model", None),
            ("lite_of_others::x", None),
            ("hyper::lite", None),
        ] {
            assert_eq!(targets.other_than(path).as_deref(), target, "{path}");
        }
    }

    #[test]
    fn names_the_module_below_info() {
        let text = "reason=Stopped msg=\"stopped\"";
        for (level, target) in [
            ("INFO", ""),
            ("DEBUG", " target=edge_syncer::x"),
            ("TRACE", " target=edge_syncer::x"),
        ] {
            check(
                level.parse().unwrap(),
                "edge_syncer::x",
                text,
                LogFormat::Text,
                &format!("1970-01-01T00:00:00.000Z {level} {text}{target}"),
            );
        }
        check(
            Level::Debug,
            "edge_syncer::x",
            r#""reason":"Stopped","msg":"stopped""#,
            LogFormat::Json,
            r#"{"ts":"1970-01-01T00:00:00.000Z","level":"DEBUG","reason":"Stopped","msg":"stopped","target":"edge_syncer::x"}"#,
        );
    }
}
