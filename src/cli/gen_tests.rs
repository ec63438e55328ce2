use std::ffi::OsString;

use super::*;
use crate::cli::{Invocation, parse};

/// What the words after `gen` mean; texts are printed.
fn check(line: &str) -> Result<Settings, String> {
    let words = line.split(' ').filter(|word| !word.is_empty());
    let words = ["edge-syncer", "gen"]
        .into_iter()
        .chain(words)
        .map(|word| OsString::from(word.replace("''", "")));
    match parse(words) {
        Ok(Invocation::Gen(settings)) => Ok(*settings),
        Ok(Invocation::Print(text)) => Err(text),
        Ok(other) => Err(format!("{other:?}")),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn has_the_defaults_of_the_go_generator_but_for_tokens_permissions_and_the_rate() {
    let settings = check("site --syncer-image=x -o -").unwrap();
    assert_eq!(
        (settings.qps.as_deref(), settings.burst.as_deref(), settings.replicas),
        (None, None, 1)
    );
    assert_eq!((settings.hub_namespace, settings.namespace), (None, None));
    assert_eq!(
        (settings.lifetime.as_secs(), settings.timeout.as_secs()),
        (604_800, 120)
    );
    assert_eq!(
        (settings.rbac, settings.format, settings.is_dry),
        (None, Format::Manifest, false)
    );
    assert_eq!(settings.components, Components::default());
    assert_eq!((settings.action, settings.output), (Action::Register, Output::Stdout));
}

#[test]
fn takes_flags_in_the_forms_of_pflag() {
    let expected = check("site --syncer-image=x --output-file=f --namespace=own").unwrap();
    for line in [
        "--syncer-image x -o f -n own site",
        "--syncer_image x site -of -n=own",
        "-o g site --syncer-image y -n=other --syncer-image=x -nown --output-file f",
        "--v=4 --logtostderr=true --labels=a=b --labels c=d --syncer-image=x -o=f -n own -- site",
        "--ha=false --dry-run=false --syncer-image=x -o=f -n own site",
    ] {
        let found = check(line).unwrap();
        assert_eq!(
            Settings {
                now: expected.now,
                ..found
            },
            expected,
            "{line}"
        );
    }
}

#[test]
fn not_one_name_asks_for_help() {
    for line in [
        "",
        "--syncer-image=x -o -",
        "one two",
        "one two --syncer-image=x -o -",
        "--help",
        "site -h",
    ] {
        assert!(
            check(line).unwrap_err().starts_with("Usage: edge-syncer gen NAME"),
            "{line}"
        );
    }
}

#[test]
fn a_wrong_command_line_that_begins_nearly_as_gen_rbac_asks_whether_that_was_meant() {
    for (line, expected) in [
        (
            "rabc",
            "-o is missing: it must be the file to write, or - for standard output; did you mean edge-syncer gen rbac?",
        ),
        (
            "rbca --side hub",
            "unknown flag --side; did you mean edge-syncer gen rbac?",
        ),
        (
            "rbc --from-kubeconfig=f",
            "unknown flag --from-kubeconfig; did you mean edge-syncer gen rbac?",
        ),
        (
            "racks",
            "-o is missing: it must be the file to write, or - for standard output",
        ),
    ] {
        let expected = format!("{expected} (see edge-syncer gen --help)");
        assert_eq!(check(line).unwrap_err(), expected, "{line}");
    }
    assert!(check("rabc --syncer-image=x -o -").is_ok(), "it may be a name");
}

#[test]
fn is_called_by_the_name_of_the_plugin_too() {
    let words = |program: &str| parse([program, "site", "--syncer-image=x", "-o", "-"].map(OsString::from));
    for program in [
        "kubectl-kubestellar-syncer_gen",
        "/usr/bin/kubectl-kubestellar-syncer_gen",
    ] {
        assert!(
            matches!(words(program), Ok(Invocation::Gen(settings)) if settings.name == "site"),
            "{program}"
        );
    }
}

/// Lines, and what is wrong with them.
const WRONG: &[(&str, &str)] = &[
    (
        "Bad_Name",
        "the name \"Bad_Name\" must be lowercase letters, digits and -, with a letter or digit at both ends",
    ),
    (
        "site -o -",
        "--syncer-image is missing: it must be the image of the syncer",
    ),
    (
        "site --syncer-image=x",
        "-o is missing: it must be the file to write, or - for standard output",
    ),
    (
        "site --format=systemd",
        "-o is missing: it must be the folder to write to",
    ),
    (
        "site --syncer-image=x -o ''",
        "-o is empty: it must be the file to write, or - for standard output",
    ),
    (
        "site --syncer-image=a\tb -o -",
        "--syncer-image \"a\\tb\": cannot be the name of an image",
    ),
    (
        "site --replicas 3",
        "--replicas \"3\": must be 0 or 1; --ha gives two, of which one is active",
    ),
    (
        "site --replicas=1 --ha",
        "--replicas and --ha contradict each other: --ha means two",
    ),
    ("site --labels x", "--labels \"x\": must be key=value"),
    (
        "site --lifetime 5m",
        "--lifetime \"5m\": must be at least 10m, as servers ask for",
    ),
    (
        "site --lifetime week",
        "--lifetime \"week\": must be a duration such as 90s, 5m or 168h",
    ),
    ("site --qps many", "--qps \"many\": must be a number"),
    ("site --burst 0", "--burst \"0\": must be a whole number above 0"),
    ("site --rbac narrow", "--rbac \"narrow\": must be scoped or wide"),
    ("site --format x", "--format \"x\": must be manifest or systemd"),
    (
        "site --uid A",
        "--uid \"A\": must be at most 63 lowercase letters, digits and -, with a letter or digit at both ends",
    ),
    (
        "site --rotate --unregister",
        "--rotate and --unregister contradict each other: give one",
    ),
    (
        "site --context ''",
        "--context is empty: leave it out, or give it a value",
    ),
    (
        "site --hub-url hub",
        "--hub-url \"hub\": it must start with https:// or http://",
    ),
    (
        "site --username=a",
        "--username: API servers no longer accept passwords: use --token, or a kubeconfig with other credentials",
    ),
    (
        "site --password a",
        "--password: API servers no longer accept passwords: use --token, or a kubeconfig with other credentials",
    ),
    ("site --contxt a", "unknown flag --contxt, did you mean --context?"),
    ("site --image", "unknown flag --image"),
    ("site --uid", "--uid needs a value"),
    ("site --ha=maybe", "--ha \"maybe\": must be true or false"),
    (
        "site -o folder --format=systemd --ha",
        "--ha: has no effect with --format=systemd, since a machine runs one syncer: leave it out",
    ),
    (
        "site -o folder --format=systemd --replicas=1",
        "--replicas: has no effect with --format=systemd, since a machine runs one syncer: leave it out",
    ),
    (
        "site -o folder --format=systemd --syncer-image=x",
        "--syncer-image: has no effect with --format=systemd, since a service runs the binary: leave it out",
    ),
    (
        "site -o - --format=systemd",
        "-o -: with --format=systemd it must be a folder",
    ),
    (
        "site -o /nonexistent/file --syncer-image=x",
        "-o /nonexistent/file: cannot be written: No such file or directory (os error 2)",
    ),
];

#[test]
fn says_in_one_line_what_is_wrong() {
    for (line, expected) in WRONG {
        // What comes first in the checks is given, unless it is what is wrong.
        let line = if line.contains("-o") || *line == "Bad_Name" || expected.starts_with("-o") {
            (*line).to_owned()
        } else {
            format!("-o - --syncer-image=x {line}")
        };
        assert_eq!(
            check(&line).unwrap_err(),
            format!("{expected} (see edge-syncer gen --help)"),
            "{line}"
        );
    }
    for line in [
        "site -o - --syncer-image=x -n ''",
        "site -o - --syncer-image=x --kcp-namespace=a.b",
    ] {
        assert!(
            check(line).unwrap_err().contains("must be the name of a namespace"),
            "{line}"
        );
    }
}
