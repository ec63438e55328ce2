use super::super::command::parse;
use super::super::help;
use super::*;

fn words(line: &str) -> Vec<String> {
    line.split(' ')
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The flags of `run` and the verbosity that a line leads to.
fn read(line: &str) -> (RunArgs, i32) {
    match parse(&words(line)) {
        Ok(Command::Run(raw, klog)) => (*raw, klog.verbosity),
        other => panic!("{line}: {other:?}"),
    }
}

fn set(change: impl FnOnce(&mut RunArgs)) -> RunArgs {
    let mut raw = RunArgs::default();
    change(&mut raw);
    raw
}

fn texts(given: &[&str]) -> Vec<String> {
    given.iter().map(|&text| text.to_owned()).collect()
}

/// The message without the hint at the end.
fn refusal(line: &str) -> String {
    match parse(&words(line)) {
        Err(error) => error.to_string(),
        Ok(found) => panic!("{line}: {found:?}"),
    }
}

#[test]
fn a_former_name_of_a_flag_is_the_flag() {
    let (found, _) = read("run --take-back-from=a --revert-changes-from b --take_back_from c");
    assert_eq!(found.revert_changes_from, texts(&["a", "b", "c"]));
    assert_eq!(
        refusal("--take-back-from=a"),
        refusal("--revert-changes-from=a").replace("--revert-changes-from", "--take-back-from")
    );
}

#[test]
fn accepts_the_spellings_of_go() {
    for (line, expected, verbosity) in [
        ("run", RunArgs::default(), 0),
        (
            "run --qps=20 --burst 30",
            set(|raw| (raw.qps, raw.burst) = (Some("20".into()), Some("30".into()))),
            0,
        ),
        ("run --qps -1", set(|raw| raw.qps = Some("-1".into())), 0),
        (
            "run --from_kubeconfig=a_b=c",
            set(|raw| raw.from_kubeconfig = Some("a_b=c".into())),
            0,
        ),
        (
            "run --sync-target-name -v --v=3",
            set(|raw| raw.sync_target_name = Some("-v".into())),
            3,
        ),
        (
            "run --sync-target-name=",
            set(|raw| raw.sync_target_name = Some(String::new())),
            0,
        ),
        (
            "run --sync-target-name help --deny=--help --deny --",
            set(|raw| {
                raw.sync_target_name = Some("help".into());
                raw.deny = texts(&["--help", "--"]);
            }),
            0,
        ),
        ("--v=4 run --", RunArgs::default(), 4),
    ] {
        assert_eq!(read(line), (expected, verbosity), "{line}");
    }
}

#[test]
fn the_last_of_two_flags_wins_and_repeatable_ones_add_up() {
    let found = read("run --qps 1 --burst=2 --qps=3 --deny a --deny=b,c --deny --deny --revert-changes-from=");
    let expected = set(|raw| {
        (raw.qps, raw.burst) = (Some("3".into()), Some("2".into()));
        raw.deny = texts(&["a", "b,c", "--deny"]);
        raw.revert_changes_from = texts(&[""]);
    });
    assert_eq!(found.0, expected);
}

#[test]
fn a_switch_stands_alone_or_has_a_value_after_an_equals_sign() {
    for (flags, expected) in [
        ("--delete-adopted", true),
        ("--delete_adopted=true", true),
        ("--delete-adopted=false", false),
        ("--delete-adopted --delete-adopted=false", false),
        ("--delete-adopted=false --delete-adopted", true),
        ("--delete-adopted --delete-adopted", true),
    ] {
        assert_eq!(read(&format!("run {flags}")).0.delete_adopted, expected, "{flags}");
    }
    for value in ["", "yes", "True"] {
        let expected = format!("--delete-adopted {value:?}: must be true or false (see edge-syncer run --help)");
        assert_eq!(refusal(&format!("run --delete-adopted={value}")), expected);
    }
    for flag in ["--delete-adopted", "--leader-elect", "--logtostderr"] {
        for value in ["true", "false"] {
            let expected = format!(
                "{flag} {value}: the value of this flag must follow a =: {flag}={value} (see edge-syncer run --help)"
            );
            assert_eq!(refusal(&format!("run {flag} {value} --qps 1")), expected);
        }
    }
}

#[test]
fn takes_out_the_flags_of_klog() {
    for verbosity in ["--v=5", "--v 5", "-v=5", "-v 5", "-v5", "--v=1 -v5"] {
        let expected = (set(|raw| raw.qps = Some("1".into())), 5);
        assert_eq!(read(&format!("run {verbosity} --qps 1")), expected, "{verbosity}");
    }
    for flag in [
        "--logtostderr",
        "--logtostderr=false",
        "--alsologtostderr",
        "--stderrthreshold=2",
        "--stderrthreshold 2",
        "--vmodule a=1",
        "--log_dir /tmp",
        "--log-dir=/tmp",
        "--log_file=x",
        "--log_file_max_size 18",
        "--log_backtrace_at :0",
        "--one_output",
        "--one-output=true",
        "--add_dir_header",
        "--skip_headers",
        "--skip_log_headers",
    ] {
        assert_eq!(read(&format!("run {flag} --qps 1")).0.qps, Some("1".into()), "{flag}");
    }
}

#[test]
fn knows_commands_and_helps_with_what_is_none() {
    const ALL: &str = "(see edge-syncer --help)";
    const RUN: &str = "(see edge-syncer run --help)";
    for (line, expected) in [
        ("", Command::Nothing),
        ("-h", Command::Help),
        ("--help", Command::Help),
        ("--help run", Command::Help),
        ("help", Command::Help),
        ("help version", Command::Help),
        ("version --help", Command::Help),
        ("help run", Command::RunHelp),
        ("run help", Command::RunHelp),
        ("run --qps 1 -h", Command::RunHelp),
        ("run --help --nonsense", Command::RunHelp),
        ("version", Command::Build),
        ("--version", Command::Version),
        ("-V", Command::Version),
        ("run --version", Command::Version),
    ] {
        assert_eq!(parse(&words(line)).unwrap(), expected, "{line}");
    }
    for (line, expected, see) in [
        ("rnu --qps 1", "unknown command \"rnu\", did you mean run?", ALL),
        ("help rnu", "unknown command \"rnu\", did you mean run?", ALL),
        ("Version", "unknown command \"Version\", did you mean version?", ALL),
        ("nonsense", "unknown command \"nonsense\"", ALL),
        ("version run", "unexpected argument \"run\"", ALL),
        ("--nonsense", "unknown flag --nonsense", ALL),
        ("-version", "unknown flag -version, did you mean --version?", ALL),
        ("--help=x", "--help takes no value", ALL),
        ("run --help=x", "--help takes no value", RUN),
        ("--hlep", "unknown flag --hlep, did you mean --help?", ALL),
        (
            "--qps=1",
            "--qps is a flag of run, which is missing before it: edge-syncer run --qps ...",
            RUN,
        ),
        ("run --nonsense=1", "unknown flag --nonsense", RUN),
        (
            "run --heartbeat-intervall=1m",
            "unknown flag --heartbeat-intervall, did you mean --heartbeat-interval?",
            RUN,
        ),
        ("run -qps=1", "unknown flag -qps, did you mean --qps?", RUN),
        ("run -x", "unknown flag -x", RUN),
        ("run nonsense", "unexpected argument \"nonsense\"", RUN),
        ("run --qps 1 false", "unexpected argument \"false\"", RUN),
        ("run -- --qps=1", "unexpected argument \"--qps=1\"", RUN),
        ("run --qps", "--qps needs a value", RUN),
        ("run --vmodule", "--vmodule needs a value", RUN),
    ] {
        assert_eq!(refusal(line), format!("{expected} {see}"), "{line}");
    }
}

#[test]
fn says_what_a_verbosity_is() {
    let expected = "-v needs a number after it: -v=4 for debug, -v=6 for trace";
    for line in [
        "run -v",
        "run --v=",
        "run -v --qps",
        "run --v=x",
        "run -v=1.5",
        "-v",
        "run --v debug",
    ] {
        let found = refusal(line);
        assert!(found.starts_with(expected), "{line}: {found}");
    }
}

#[test]
fn the_help_names_no_flag_that_is_not_known() {
    let help = help::run();
    let flags = help.split(|c: char| !(c.is_ascii_lowercase() || c == '-' || c == '_'));
    for name in flags.filter(|word| word.starts_with("--")) {
        let known = flag(&name.replace('_', "-")).is_some()
            || ["--help", "--version", "--flag", "--v"].contains(&name)
            || Klog::default().take(name, &mut texts(&["1"]).iter()).unwrap();
        assert!(known, "{name}");
    }
}
