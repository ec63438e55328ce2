//! The command line as people write it: raw values whose docs are the help text, and the spellings that Go programs
//! accept, translated for argh.

use argh::FromArgs;

use super::klog::{self, Klog};
use super::settings::UsageError;

/// Keeps objects of an edge Kubernetes cluster in step with its mailbox workspace on a hub.
#[derive(FromArgs, Debug)]
pub(super) struct Args {
    /// print the version and exit
    #[argh(switch)]
    pub version: bool,

    /// what to do
    #[argh(subcommand)]
    pub command: Option<Command>,
}

/// The subcommands.
#[derive(FromArgs, Debug)]
#[argh(subcommand)]
pub(super) enum Command {
    /// The syncer itself.
    Run(RunArgs),
}

/// Sync between the hub and the edge until stopped by SIGTERM or SIGINT.
#[derive(FromArgs, Debug, Default, Clone)]
#[argh(
    subcommand,
    name = "run",
    note = "Flags may be written as --flag value or --flag=value. The logging flags of the Go syncer are accepted too: \
            -v/--v (4 or 5 logs at debug, 6 and more at trace); without effect are --vmodule, --logtostderr, \
            --alsologtostderr, --stderrthreshold, --log_dir, --log_file, --log_file_max_size, --log_backtrace_at, \
            --one_output, --add_dir_header, --skip_headers and --skip_log_headers.",
    error_code(0, "stopped by a signal"),
    error_code(1, "failed while running"),
    error_code(2, "wrong usage or unusable configuration")
)]
pub struct RunArgs {
    /// kubeconfig file of the hub (required)
    #[argh(option, arg_name = "file")]
    pub from_kubeconfig: Option<String>,

    /// context in the hub's kubeconfig (default: its current context)
    #[argh(option, arg_name = "name")]
    pub from_context: Option<String>,

    /// kubeconfig file of the edge (default: the service account of the pod)
    #[argh(option, arg_name = "file")]
    pub to_kubeconfig: Option<String>,

    /// context in the edge's kubeconfig (default: its current context)
    #[argh(option, arg_name = "name")]
    pub to_context: Option<String>,

    /// name of the sync target, for the log
    #[argh(option, arg_name = "name")]
    pub sync_target_name: Option<String>,

    /// UID of the sync target (required)
    #[argh(option, arg_name = "uid")]
    pub sync_target_uid: Option<String>,

    /// UID that the sync target had before, whose copies are taken over: those of a syncer that is gone for good (repeatable)
    #[argh(option, arg_name = "uid")]
    pub former_sync_target_uid: Vec<String>,

    /// requests per second to each side (default: 30; negative: no limit)
    #[argh(option, arg_name = "number")]
    pub qps: Option<String>,

    /// requests that may be sent at once to each side (default: 20)
    #[argh(option, arg_name = "number")]
    pub burst: Option<String>,

    /// how changes at the hub are found: watch (default) or poll
    #[argh(option, arg_name = "watch|poll")]
    pub mode: Option<String>,

    /// how changes at the edge are found: watch (default) or poll
    #[argh(option, arg_name = "watch|poll")]
    pub edge_mode: Option<String>,

    /// time between two looks where the mode is poll, such as 1m30s (default: 15s; at least 1s)
    #[argh(option, arg_name = "duration")]
    pub poll_interval: Option<String>,

    /// delete adopted objects when their hub objects go, instead of releasing them (also =true, =false)
    #[argh(switch)]
    pub delete_adopted: bool,

    /// field managers whose fields, beside those that the hub sets, are taken back at the edge (default:
    /// kubectl,kubectl-*; empty: nobody; trailing * for all names that begin so; repeatable)
    #[argh(option, arg_name = "names")]
    pub take_back_from: Vec<String>,

    /// never write objects of this type, such as secrets, deployments.apps or *.example.org (repeatable)
    #[argh(option, arg_name = "resource[.group]")]
    pub deny: Vec<String>,

    /// write namespaced objects, and create namespaces, only here (trailing * for all names that begin so; repeatable)
    #[argh(option, arg_name = "name")]
    pub allow_namespace: Vec<String>,

    /// never write here, even if allowed (trailing * for all names that begin so; repeatable)
    #[argh(option, arg_name = "name")]
    pub deny_namespace: Vec<String>,

    /// file with one "deny secrets", "allow-namespace shop-*" or "deny-namespace kube-*" a line, and # comments
    #[argh(option, arg_name = "file")]
    pub filter_file: Option<String>,

    /// let configs write into kube-system, the syncer's own namespace and its roles, and send up the Secrets there, as
    /// the Go syncer did (also =true, =false)
    #[argh(switch)]
    pub allow_system: bool,

    /// shortest time between two writes of one object's status to the hub (default: 1s; 0s: every change)
    #[argh(option, arg_name = "duration")]
    pub status_interval: Option<String>,

    /// time between two heartbeats on the configs at the hub (default: 1m; 0s: none)
    #[argh(option, arg_name = "duration")]
    pub heartbeat_interval: Option<String>,

    /// hold deletes that are more than so many, and more than half of all copies, at once (default: 20)
    #[argh(option, arg_name = "number")]
    pub hold_deletes_above: Option<String>,

    /// how long they are held unless they are confirmed (default: 10m; 0s: none are held)
    #[argh(option, arg_name = "duration")]
    pub hold_deletes_for: Option<String>,

    /// objects that may wait for their turn in memory; others are looked up again later (default: 1024; at least 32)
    #[argh(option, arg_name = "number")]
    pub queue_capacity: Option<String>,

    /// sync only while holding a Lease at the edge, so that one of several syncers is active (also =true, =false)
    #[argh(switch)]
    pub leader_elect: bool,

    /// how long that Lease lasts when its holder is gone (default: 15s; 3s to 1h)
    #[argh(option, arg_name = "duration")]
    pub lease_duration: Option<String>,

    /// address to serve /healthz, /readyz and /metrics at, over plain HTTP (default: nothing is served)
    #[argh(option, arg_name = "ip:port")]
    pub listen_address: Option<String>,
}

/// Flags whose value may be the next argument, whatever it looks like.
const VALUE_FLAGS: [&str; 24] = [
    "--from-kubeconfig",
    "--from-context",
    "--to-kubeconfig",
    "--to-context",
    "--sync-target-name",
    "--sync-target-uid",
    "--former-sync-target-uid",
    "--qps",
    "--burst",
    "--mode",
    "--edge-mode",
    "--poll-interval",
    "--take-back-from",
    "--deny",
    "--allow-namespace",
    "--deny-namespace",
    "--filter-file",
    "--status-interval",
    "--heartbeat-interval",
    "--hold-deletes-above",
    "--hold-deletes-for",
    "--queue-capacity",
    "--lease-duration",
    "--listen-address",
];

/// Those of them that add up when given more than once.
const REPEATABLE: [&str; 5] = [
    "--former-sync-target-uid",
    "--take-back-from",
    "--deny",
    "--allow-namespace",
    "--deny-namespace",
];

/// Flags that stand alone or with `=true` or `=false`.
const SWITCHES: [&str; 3] = ["--delete-adopted", "--allow-system", "--leader-elect"];

/// Arguments in the form that argh takes, and what klog's flags among them said.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Normalised {
    /// The arguments without klog's.
    pub args: Vec<String>,
    /// What klog's flags ask for.
    pub klog: Klog,
}

/// Translates Go's spellings: `--flag=value` becomes two arguments, `_` in a flag's name becomes `-`, `-h` becomes
/// `--help`, a switch with `=true` or `=false` is there or not, klog's flags are taken out. When a flag is given twice,
/// the last one counts, unless the flag is repeatable.
pub(super) fn normalise(args: &[String]) -> Result<Normalised, UsageError> {
    let mut out = Normalised::default();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if arg == "--" {
            out.args.push(arg.clone());
            out.args.extend(rest.cloned());
            break;
        }
        if out.klog.take(arg, &mut rest)? {
            continue;
        }
        if arg == "-h" {
            out.args.push("--help".to_owned());
            continue;
        }
        let Some((name, value)) = klog::split_flag(arg) else {
            out.args.push(arg.clone());
            continue;
        };
        if SWITCHES.contains(&name.as_str()) {
            forget_earlier(&mut out.args, &name);
            if is_on(&name, value.as_deref())? {
                out.args.push(name);
            }
            continue;
        }
        let value = match value {
            None if VALUE_FLAGS.contains(&name.as_str()) => rest.next().cloned(),
            value => value,
        };
        if !REPEATABLE.contains(&name.as_str()) {
            forget_earlier(&mut out.args, &name);
        }
        out.args.push(name);
        out.args.extend(value);
    }
    Ok(out)
}

/// What the value of a switch says; alone it is on.
fn is_on(name: &str, value: Option<&str>) -> Result<bool, UsageError> {
    match value {
        None | Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(other) => Err(UsageError::new(format!("{name} {other:?}: must be true or false"))),
    }
}

/// argh refuses a flag that is given twice; pflag lets the last one win, and wrapper scripts count on it.
fn forget_earlier(args: &mut Vec<String>, name: &str) {
    let mut at = 0;
    while at < args.len() {
        let takes_value = VALUE_FLAGS.contains(&args[at].as_str());
        let width = if takes_value { 2.min(args.len() - at) } else { 1 };
        if args[at] == name && (takes_value || SWITCHES.contains(&name)) {
            args.drain(at..at + width);
        } else {
            at += width;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(args: &str, expected: &str, verbosity: i32) {
        let args: Vec<String> = args.split(' ').map(str::to_owned).collect();
        let found = normalise(&args).unwrap();
        assert_eq!(found.args.join(" "), expected, "{args:?}");
        assert_eq!(found.klog.verbosity, verbosity, "{args:?}");
    }

    #[test]
    fn accepts_the_spellings_of_go() {
        check("run --qps=20 --burst 30", "run --qps 20 --burst 30", 0);
        check("run --qps -1", "run --qps -1", 0);
        check("run --from_kubeconfig=a_b=c", "run --from-kubeconfig a_b=c", 0);
        check("run --sync-target-name -v --v=3", "run --sync-target-name -v", 3);
        check("run --sync-target-name=", "run --sync-target-name ", 0);
        check("run --qps", "run --qps", 0);
        check("-h", "--help", 0);
        check("run -- --v=x -h", "run -- --v=x -h", 0);
        check("run --unknown value", "run --unknown value", 0);
    }

    #[test]
    fn lets_the_last_of_two_flags_win() {
        check("run --qps 1 --burst=2 --qps=3", "run --burst 2 --qps 3", 0);
        check(
            "run --sync-target-name --qps --qps 3",
            "run --sync-target-name --qps --qps 3",
            0,
        );
    }

    #[test]
    fn keeps_every_one_of_a_repeatable_flag() {
        check(
            "run --deny a --qps=1 --deny=b,c --qps=2 --deny --deny",
            "run --deny a --deny b,c --qps 2 --deny --deny",
            0,
        );
        check("run --allow_namespace=a*", "run --allow-namespace a*", 0);
        check("run --take-back-from=", "run --take-back-from ", 0);
    }

    #[test]
    fn lets_a_switch_have_a_value() {
        for (args, expected) in [
            ("--delete-adopted", "run --delete-adopted"),
            ("--delete_adopted=true", "run --delete-adopted"),
            ("--delete-adopted=false", "run"),
            ("--delete-adopted --delete-adopted=false", "run"),
            ("--delete-adopted=false --delete-adopted", "run --delete-adopted"),
            ("--delete-adopted --delete-adopted", "run --delete-adopted"),
            (
                "--leader_elect=true --delete-adopted",
                "run --leader-elect --delete-adopted",
            ),
            ("--leader-elect --leader-elect=false", "run"),
            (
                "--deny --delete-adopted --delete-adopted=false",
                "run --deny --delete-adopted",
            ),
        ] {
            check(&format!("run {args}"), expected, 0);
        }
        for value in ["", "yes", "True"] {
            let found = normalise(&[format!("--delete-adopted={value}")]).unwrap_err();
            let expected = format!("--delete-adopted {value:?}: must be true or false");
            assert!(found.to_string().starts_with(&expected), "{found}");
        }
    }

    #[test]
    fn takes_out_the_flags_of_klog() {
        for verbosity in ["--v=5", "--v 5", "-v=5", "-v 5", "-v5", "--v=1 -v5"] {
            check(&format!("run {verbosity} --qps 1"), "run --qps 1", 5);
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
            check(&format!("run {flag} --qps 1"), "run --qps 1", 0);
        }
    }

    #[test]
    fn refuses_a_verbosity_that_is_no_number() {
        for args in [
            &["--v=x"][..],
            &["-v", "--qps"],
            &["-v"],
            &["--v="],
            &["-v=1.5"],
            &["--vmodule"],
        ] {
            let args: Vec<String> = args.iter().map(|&arg| arg.to_owned()).collect();
            assert!(normalise(&args).is_err(), "{args:?}");
        }
    }
}
