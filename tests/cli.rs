//! The real binary, as people call it: messages and exit codes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::time::Instant;

const BINARY: &str = env!("CARGO_BIN_EXE_edge-syncer");

const KUBECONFIG: &str = "current-context: a\n\
    contexts: [{name: a, context: {cluster: c}}, {name: b, context: {cluster: c}}]\n\
    clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}]\n";

struct Finished {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn command(program: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null());
    for name in [
        "KUBERNETES_SERVICE_HOST",
        "KUBERNETES_SERVICE_PORT",
        "RUST_LOG",
        "EDGE_SYNCER_LOG",
    ] {
        command.env_remove(name);
    }
    command
}

fn call(program: &Path, args: &[&str]) -> Finished {
    let output = command(program, args).output().expect("the binary can be started");
    Finished {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        stderr: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
    }
}

fn run(args: &[&str]) -> Finished {
    call(Path::new(BINARY), args)
}

/// Calls `run` with what is required and `args`, which must be refused with this one line.
fn check_refused(args: &[&str], expected: &str) {
    let required = ["run", "--from-kubeconfig=/nonexistent/hub", "--sync-target-uid", "u"];
    let found = run(&[&required[..], args].concat());
    assert_eq!(found.stderr, format!("edge-syncer: {expected}\n"));
    assert_eq!((found.code, found.stdout.as_str()), (Some(2), ""), "{args:?}");
}

#[test]
fn prints_help_and_version_on_stdout() {
    let version = run(&["--version"]);
    assert_eq!(version.stdout, format!("edge-syncer {}\n", env!("CARGO_PKG_VERSION")));
    assert_eq!((version.code, version.stderr.as_str()), (Some(0), ""));
    assert_eq!(run(&["-V"]).stdout, version.stdout);
    let build = run(&["version"]).stdout;
    let names: Vec<&str> = build.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(build.starts_with(&version.stdout), "{build}");
    assert_eq!(names, ["edge-syncer", "commit:", "target:", "date:"]);
    for (args, usage) in [
        (&["--help"][..], "Usage: edge-syncer <command>\n"),
        (&["help"], "Usage: edge-syncer <command>\n"),
        (&["-h"], "Usage: edge-syncer <command>\n"),
        (&["run", "--help"], "Usage: edge-syncer run "),
        (&["run", "-h"], "Usage: edge-syncer run "),
        (&["run", "help"], "Usage: edge-syncer run "),
        (&["help", "run"], "Usage: edge-syncer run "),
    ] {
        let help = run(args);
        assert_eq!((help.code, help.stderr.as_str()), (Some(0), ""), "{args:?}");
        assert!(help.stdout.starts_with(usage), "{}", help.stdout);
    }
}

#[test]
fn prints_help_on_stderr_when_there_is_no_command() {
    let found = run(&[]);
    assert_eq!((found.code, found.stdout.as_str()), (Some(2), ""));
    assert!(found.stderr.starts_with("Usage: edge-syncer"), "{}", found.stderr);
}

#[test]
fn names_every_flag_in_the_help() {
    let help = run(&["run", "--help"]).stdout;
    for flag in [
        "--from-kubeconfig",
        "--from-context",
        "--to-kubeconfig",
        "--to-context",
        "--sync-target-name",
        "--sync-target-uid",
        "--qps",
        "--burst",
        "--mode",
        "--edge-mode",
        "--poll-interval",
        "--delete-adopted",
        "--revert-changes-from",
        "--deny",
        "--allow-namespace",
        "--deny-namespace",
        "--filter-file",
        "--leader-elect",
        "--lease-duration",
        "--listen-address",
        "-v, --v",
        "--vmodule",
        "--logtostderr",
        "--alsologtostderr",
        "--stderrthreshold",
        "--log_dir",
        "--log_file",
        "--log_file_max_size",
        "--log_backtrace_at",
        "--one_output",
        "--add_dir_header",
        "--skip_headers",
        "--skip_log_headers",
    ] {
        assert!(help.contains(flag), "{flag} is not in {help}");
    }
}

#[test]
fn an_unknown_word_is_reported_and_nothing_is_done() {
    for (args, expected) in [
        (
            &["rnu"][..],
            "unknown command \"rnu\", did you mean run? (see edge-syncer --help)",
        ),
        (&["nonsense"], "unknown command \"nonsense\" (see edge-syncer --help)"),
        (&["version", "x"], "unexpected argument \"x\" (see edge-syncer --help)"),
    ] {
        let found = run(args);
        assert_eq!((found.code, found.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert_eq!(found.stderr, format!("edge-syncer: {expected}\n"));
    }
}

/// Ends every message about wrong usage.
const HINT: &str = "(see edge-syncer run --help)";

#[test]
fn refuses_wrong_usage_in_one_line() {
    for (args, expected) in [
        (&["--nonsense"][..], "unknown flag --nonsense"),
        (&["--modee=poll"], "unknown flag --modee, did you mean --mode?"),
        (&["nonsense"], "unexpected argument \"nonsense\""),
        (
            &["--delete-adopted", "false"],
            "--delete-adopted false: the value of this flag must follow a =: --delete-adopted=false",
        ),
        (&["--qps=fast"], "--qps \"fast\": must be a number"),
        (&["--burst", "0"], "--burst \"0\": must be an integer greater than 0"),
        (
            &["--v=x"],
            "-v needs a number after it: -v=4 for debug, -v=6 for trace, not \"x\"; the version is -V",
        ),
        (&["--mode=pull"], "--mode \"pull\": must be watch or poll"),
        (
            &["--log-format=jsn"],
            "--log-format \"jsn\": must be text or json, did you mean json?",
        ),
        (
            &["--from-kubeconfig="],
            "--from-kubeconfig is missing: it must be the kubeconfig file of the hub",
        ),
        (
            &["--sync-target-uid="],
            "--sync-target-uid is missing: it must be the UID of the sync target: any name that stays the same will do, such as \
             site-7",
        ),
        (
            &["--listen-address=8080"],
            "--listen-address \"8080\": must be a port after an address, such as :8080 for every address, localhost:8080, \
             10.0.0.1:8080 or [::1]:8080",
        ),
    ] {
        check_refused(args, &format!("{expected} {HINT}"));
    }
    let missing = run(&["run"]);
    assert_eq!(missing.code, Some(2));
    assert!(
        missing
            .stderr
            .starts_with("edge-syncer: --from-kubeconfig and --sync-target-uid are missing: "),
        "{}",
        missing.stderr
    );
}

#[test]
fn refuses_bounds_and_paces_that_it_cannot_keep() {
    for (args, expected) in [
        (&["--edge-mode", "x"][..], "--edge-mode \"x\": must be watch or poll"),
        (
            &["--poll-interval=500ms"],
            "--poll-interval \"500ms\": must be a duration of at least 1s, such as 15s or 1m30s",
        ),
        (
            &["--delete-adopted=yes"],
            "--delete-adopted \"yes\": must be true or false",
        ),
        (
            &["--revert-changes-from", "*ctl"],
            "--revert-changes-from \"*ctl\": must be the name of a field manager, with a * at its end for all names that begin \
             so",
        ),
        (
            &["--deny", "secrets", "--deny", "sec*"],
            "--deny \"sec*\": must be a lowercase plural with its group, such as secrets, deployments.apps or *.example.org",
        ),
        (
            &["--filter-file=/nonexistent/filter"],
            "--filter-file \"/nonexistent/filter\": cannot be read: No such file or directory (os error 2)",
        ),
    ] {
        check_refused(args, &format!("{expected} {HINT}"));
    }
}

#[test]
fn names_file_and_line_of_a_wrong_filter_rule() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("filter");
    fs::write(&path, "# bounds\ndeny secrets\nallow-namespace shop/*\n").expect("the filter can be written");
    let file = path.display().to_string();
    check_refused(
        &["--filter-file", &file],
        &format!(
            "--filter-file {file} line 3: allow-namespace \"shop/*\": must be the name of a namespace, with a * at its end \
             for all names that begin so {HINT}"
        ),
    );
}

/// Of a kubeconfig that is not there.
const NO_HUB: &str =
    "hub (--from-kubeconfig=/nonexistent/hub): it cannot be read: No such file or directory (os error 2)";

#[test]
fn takes_every_flag_that_bounds_and_paces() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("filter");
    fs::write(&path, "deny secrets # all of them\n\nallow-namespace shop-*\n").expect("the filter can be written");
    let found = run(&[
        "run",
        "--from-kubeconfig=/nonexistent/hub",
        "--sync-target-uid=u",
        "--mode=poll",
        "--edge-mode=poll",
        "--poll-interval=1m30s",
        "--poll-interval=1h",
        "--delete-adopted=true",
        "--delete_adopted=false",
        "--revert-changes-from=",
        "--revert-changes-from=argocd-*,helm",
        "--deny=deployments.apps,*.example.org",
        "--deny",
        "pods",
        "--allow-namespace=billing",
        "--deny-namespace=kube-*",
        "--deny-namespace=default",
        "--filter-file",
        &path.display().to_string(),
    ]);
    // All that is left to complain about.
    let expected = format!("edge-syncer: {NO_HUB}\n");
    assert!(found.stderr.ends_with(&expected), "{}", found.stderr);
}

#[test]
fn refuses_a_configuration_that_cannot_work() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("config");
    fs::write(&path, KUBECONFIG).expect("the kubeconfig can be written");
    let hub = format!("--from-kubeconfig={}", path.display());
    let edge = format!("--to-kubeconfig={}", path.display());
    for (args, expected) in [
        (
            vec![],
            NO_HUB.to_owned(),
        ),
        (
            vec![hub.as_str(), "--from-context=x"],
            format!("hub ({hub}): --from-context: \"x\" is not in the file, which has contexts \"a\", \"b\""),
        ),
        (
            vec![&hub, &edge, "--to-context", "y"],
            format!("edge ({edge}): --to-context: \"y\" is not in the file, which has contexts \"a\", \"b\""),
        ),
        (
            vec![&hub],
            "edge (without --to-kubeconfig, as a pod): KUBERNETES_SERVICE_HOST: it is not set, so this is no pod: give \
             --to-kubeconfig"
                .to_owned(),
        ),
    ] {
        let required = ["run", "--from-kubeconfig=/nonexistent/hub", "--sync-target-uid=u"];
        let found = run(&[&required[..], &args].concat());
        assert_eq!(found.code, Some(2), "{args:?}: {}", found.stderr);
        // Log lines may come before it.
        let last = found.stderr.lines().last().unwrap_or_default();
        assert_eq!(last, format!("edge-syncer: {expected}"));
    }
}

/// Another server would get the credentials, or the server would take the syncer for `system:anonymous`.
#[test]
fn refuses_a_kubeconfig_that_means_something_else_than_it_seems_to() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("config");
    let file = format!("--from-kubeconfig={}", path.display());
    for (server, user, expected) in [
        (
            "https://host:99999",
            "token: x",
            "cluster \"c\"): server: \"https://host:99999\": port \"99999\" is no number from 1 to 65535",
        ),
        (
            "https://me:secret@host",
            "token: x",
            "cluster \"c\"): server: \"https://host\": it must not hold a user name or password: put them into the user entry",
        ),
        ("https://host", "token: ''", "user \"u\"): token: it is empty, and "),
        (
            "https://host",
            "tokn: x",
            "user \"u\"): tokn: there is no such field, did you mean token?",
        ),
        (
            "https://host",
            "",
            "user \"u\"): the entry is empty, and system:anonymous is not allowed: ",
        ),
    ] {
        let text = format!(
            "current-context: a\ncontexts: [{{name: a, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{server: '{server}'}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n"
        );
        fs::write(&path, text).expect("the kubeconfig can be written");
        let found = run(&["run", &file, "--sync-target-uid=u"]);
        let last = found.stderr.lines().last().unwrap_or_default();
        assert!(
            last.starts_with(&format!("edge-syncer: hub ({file}, {expected}")),
            "{last}"
        );
        assert_eq!(found.code, Some(2), "{last}");
    }
}

#[test]
fn a_namespace_of_the_environment_that_cannot_be_one_is_an_error() {
    let required = ["run", "--from-kubeconfig=/nonexistent/hub", "--sync-target-uid=u"];
    for (name, refused) in [("a/b", true), ("Shop", true), ("shop", false), ("", false)] {
        let mut command = command(Path::new(BINARY), &required);
        let output = command
            .env("NAMESPACE", name)
            .output()
            .expect("the binary can be started");
        let stderr = String::from_utf8(output.stderr).expect("stderr is UTF-8");
        let expected = format!("NAMESPACE={name:?}: is no name of a namespace");
        assert_eq!(stderr.contains(&expected), refused, "{stderr}");
        assert_eq!(output.status.code(), Some(2), "there is no kubeconfig either");
    }
}

#[test]
fn a_log_filter_that_cannot_be_followed_is_an_error_unless_it_is_for_others() {
    let args = ["run", "--from-kubeconfig=/nonexistent/hub", "--sync-target-uid=u"];
    let with = |name: &str, value: &str| {
        let mut command = command(Path::new(BINARY), &args);
        let output = command.env(name, value).output().expect("the binary can be started");
        String::from_utf8(output.stderr).expect("stderr is UTF-8")
    };
    let levels = "levels are off, error, warn, info, debug, trace";
    assert_eq!(
        with("EDGE_SYNCER_LOG", "edge_syncer=loud"),
        format!("edge-syncer: EDGE_SYNCER_LOG \"edge_syncer=loud\": \"loud\" is no level; {levels} {HINT}\n")
    );
    let log = with("RUST_LOG", "other[span]=debug");
    assert!(
        log.contains("WARN reason=LogFilterInvalid msg=\"RUST_LOG cannot be used, the log is as without it\" error="),
        "{log}"
    );
    assert!(log.ends_with(&format!("edge-syncer: {NO_HUB}\n")), "{log}");
}

#[test]
fn writes_log_lines_as_json_where_that_is_asked_for() {
    let args = [
        "run",
        "--from-kubeconfig=/nonexistent/hub",
        "--sync-target-uid=a \"b\"",
        "--log-format=json",
    ];
    let output = command(Path::new(BINARY), &args)
        .output()
        .expect("the binary can be started");
    let text = String::from_utf8(output.stderr).expect("stderr is UTF-8");
    let line: serde_json::Value = serde_json::from_str(text.lines().next().unwrap_or_default()).expect(&text);
    assert_eq!(line["level"], "INFO", "{text}");
    assert_eq!(line["reason"], "Started", "{text}");
    assert_eq!(line["uid"], "a \"b\"", "{text}");
    assert!(line["ts"].is_string() && line["msg"].is_string(), "{text}");
}

#[test]
fn runs_when_called_by_the_name_of_the_go_syncer() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let program = folder.path().join("syncer");
    symlink(BINARY, &program).expect("a link can be made");
    let found = call(
        &program,
        &["--from-kubeconfig=/nonexistent/hub", "--sync-target-uid=u", "--v=3"],
    );
    assert_eq!(found.code, Some(2));
    assert!(
        found.stderr.ends_with(&format!("edge-syncer: {NO_HUB}\n")),
        "{}",
        found.stderr
    );
}

#[test]
fn stops_with_success_on_a_signal() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("config");
    let log = folder.path().join("log");
    fs::write(&path, KUBECONFIG).expect("the kubeconfig can be written");
    let file = path.display().to_string();
    let args = [
        "run",
        "--from-kubeconfig",
        &file,
        "--to-kubeconfig",
        &file,
        "--sync-target-uid=u",
    ];
    for signal in ["TERM", "INT"] {
        let out = fs::File::create(&log).expect("the log can be made");
        let mut command = command(Path::new(BINARY), &args);
        let mut child = command.stderr(out).spawn().expect("the binary can be started");
        wait_until("it has started", || {
            fs::read_to_string(&log).is_ok_and(|text| text.contains("INFO"))
        });
        let kill = Command::new("kill")
            .args([&format!("-{signal}"), &child.id().to_string()])
            .status();
        assert!(kill.expect("kill can be started").success());
        let mut code = None;
        wait_until("it has stopped", || {
            code = child.try_wait().expect("the child can be waited for");
            code.is_some()
        });
        assert_eq!(code.and_then(|status| status.code()), Some(0), "{signal}");
    }
}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !condition() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
