//! The help texts. The texts for the flags of `run` are in [`RunArgs`] alone.

use std::iter;

use argh::{ArgsInfo as _, FlagInfo, FlagInfoKind, Optionality};

use super::args::{self, RunArgs};

#[cfg(feature = "admin")]
macro_rules! gen_line {
    () => {
        "  gen         register an edge at a hub, and write what it needs (edge-syncer gen --help for its flags)
  prep        the same in kcp, in the mailbox workspace of a SyncTarget (edge-syncer prep --help)\n"
    };
}
#[cfg(not(feature = "admin"))]
macro_rules! gen_line {
    () => {
        ""
    };
}
#[cfg(feature = "admin")]
macro_rules! pages_line {
    () => {
        "  diff        show what run would change with the same flags (edge-syncer diff --help)
  status      say what is synced, what is not and why, as the hub knows it (edge-syncer status --help)
  bundle      write an archive for a support thread (edge-syncer bundle --help)
  completion  print completions for a shell: edge-syncer completion bash, zsh or fish
  man         print the manual page: edge-syncer man | man -l /dev/stdin\n"
    };
}
#[cfg(not(feature = "admin"))]
macro_rules! pages_line {
    () => {
        ""
    };
}

#[cfg(feature = "init")]
macro_rules! init_line {
    () => {
        "  init        initialize workspaces of kcp, in place of its init-agent (edge-syncer init --help)\n"
    };
}
#[cfg(not(feature = "init"))]
macro_rules! init_line {
    () => {
        ""
    };
}

#[cfg(feature = "publish")]
macro_rules! publish_line {
    () => {
        "  publish     publish types in kcp, in place of its api-syncagent (edge-syncer publish --help)\n"
    };
}
#[cfg(not(feature = "publish"))]
macro_rules! publish_line {
    () => {
        ""
    };
}

/// The help of the program.
pub(super) const PROGRAM: &str = concat!(
    "\
Usage: edge-syncer <command>

Syncs objects between an edge Kubernetes cluster and its mailbox workspace on a hub.

Commands:
  run         sync until stopped by SIGTERM or SIGINT (edge-syncer run --help for its flags)
",
    gen_line!(),
    "  gen rbac    print the roles that run needs at the hub or at the edge (edge-syncer gen rbac --help)
  check       say whether run would work with the same flags, point by point (edge-syncer check --help)
",
    init_line!(),
    publish_line!(),
    pages_line!(),
    "  version     print version, commit, target and date; -V or --version prints the version alone
  help        print this text, or with a command after it its flags; also -h, --help

Called by the name syncer it takes the flags of run and no command, as the Go syncer does.
"
);

#[cfg(feature = "admin")]
const GEN_USAGE: &str = "\
Usage: edge-syncer gen NAME --syncer-image=IMAGE -o FILE [flags]

Registers an edge at the hub, and writes what the edge needs: a manifest for kubectl apply, or with --format=systemd the
files of a service. Run it again whenever you like: it keeps the registration, and writes a new token.
";

/// The groups of the flags of `gen`.
#[cfg(feature = "admin")]
const GEN_GROUPS: [(&str, &str); 4] = [
    ("Output", "--syncer-image"),
    ("Registration", "--uid"),
    ("Other actions", "--dry-run"),
    ("Hub", "--kubeconfig"),
];

#[cfg(feature = "admin")]
const GEN_END: &str = "
Others:
  -h, --help                  print this text
  -V, --version               print the version

NAME is that of the sync target: at most 35 lowercase letters, digits and -. The logging flags of kubectl are accepted.
Called by the name kubectl-kubestellar-syncer_gen it needs no command, as a plugin of kubectl.

Example:
  edge-syncer gen site-7 --kubeconfig=hub.kubeconfig --syncer-image=registry.example.org/edge-syncer:0.1.0 -o site-7.yaml

Exit codes: 0 done, 1 the hub refused something or could not be reached, 2 wrong usage or unusable kubeconfig.
";

/// The help of `gen`.
#[cfg(feature = "admin")]
pub(super) fn generate() -> String {
    use super::gen_args;
    grouped(GEN_USAGE.to_owned(), gen_args::flags(), &GEN_GROUPS) + GEN_END
}

#[cfg(feature = "admin")]
const PREP_USAGE: &str = "\
Usage: edge-syncer prep NAME --syncer-image=IMAGE [flags]

Finds the mailbox workspace of the SyncTarget NAME in kcp, waits until it is ready, and does there what edge-syncer gen
does. Run it with a kubeconfig of any workspace of that kcp; the kubeconfig is not changed.

Flags of its own:
  --imw WORKSPACE             workspace with the SyncTarget, such as root:imw1; . is that of the kubeconfig (default: .)
  --espw WORKSPACE            workspace of the edge service provider (default: root:espw)
  -s, --silent                print errors only; --server has no short name here
  -X                          accepted, has no effect: it makes the script show its commands

The flags of gen are taken too; -o is NAME-syncer.yaml unless it is given, and --timeout is for the workspace and then
for the API in it. Called by the name kubectl-kubestellar-prep_for_syncer it needs no command, as a plugin of kubectl.

Example:
  edge-syncer prep site-7 --imw=root:imw1 --syncer-image=registry.example.org/edge-syncer:0.1.0

Exit codes: 0 done, 1 the hub refused something or could not be reached, 2 wrong usage or unusable kubeconfig.

";

/// The help of `prep`.
#[cfg(feature = "admin")]
pub(super) fn prepare() -> String {
    let mut help = PREP_USAGE.to_owned();
    for flag in super::gen_args::flags() {
        // The script has another -s.
        describe_as(&mut help, flag, flag.short.filter(|letter| *letter != 's'));
    }
    help
}

const CHECK_USAGE: &str = "\
Usage: edge-syncer check --from-kubeconfig=FILE --sync-target-uid=UID [flags]

Says, point by point, whether run would work with the same flags: both sides are reached, with TLS, with accepted
credentials, serve what the configs select and allow all that it needs. Changes nothing at either side.

Flags of its own:
  -o, --output json           print JSON instead of a line for each point

Exit codes: 0 all good, 1 something will not work, 2 something is unknown, or wrong usage.

The flags and the environment of run are taken too:

";

/// The help of `init`.
#[cfg(feature = "init")]
pub(super) const INIT: &str = "\
Usage: edge-syncer init --config-workspace=WORKSPACE [flags]
       edge-syncer init check ...
       edge-syncer init render ...

Initializes workspaces of kcp in place of its init-agent: creates in each workspace that waits what the InitTargets of its
type want, and takes the initializer off. Runs until stopped by SIGTERM or SIGINT.

Flags:
  --config-workspace WORKSPACE
                              workspace with the InitTargets: its path, its cluster id, or the path of a virtual workspace,
                              which begins with a slash (required)
  --kubeconfig FILE           kubeconfig of kcp; /clusters/... at the end of its server is not used (default: $KUBECONFIG,
                              then the service account of the pod, then ~/.kube/config)
  --init-target-selector SELECTOR
                              label selector of the InitTargets that are served (default: all)
  --enable-leader-election    work only while holding a Lease, so that of several agents one is active (also =true, =false)
  --leader-election-namespace NAMESPACE
                              namespace of the Lease in the config workspace (required with it)
  --metrics-address ADDRESS   where /metrics is served; 0 for nowhere (default: 127.0.0.1:8085)
  --health-address ADDRESS    where /healthz and /readyz are served; 0 for nowhere (default: nowhere)
  --log-format FORMAT         JSON, or Console for text (default: JSON)
  --log-debug                 log more (also =true, =false)

Others:
  -h, --help                  print this text
  -V, --version               print the version

Commands:
  check                       say whether init would work with the same flags, point by point; -o json for JSON
  render                      print the objects that an InitTarget gives a workspace (edge-syncer init render --help)

Called by the name init-agent it needs no init. EDGE_SYNCER_LOG, RUST_LOG and the proxy variables are those of run.

Example:
  edge-syncer init --kubeconfig=kcp.kubeconfig --config-workspace=root:platform

Exit codes: 0 stopped by a signal, 1 failed, or a setting cannot be used, 2 wrong usage or unusable kubeconfig. Those of
check are 0 all good, 1 something will not work, 2 something is unknown, or wrong usage.
";

/// The help of `init render`.
#[cfg(feature = "init")]
pub(super) const RENDER: &str = "\
Usage: edge-syncer init render --target=FILE --cluster-name=ID --cluster-path=PATH [flags]

Prints what kcp's init-agent would create in a workspace: the objects of an InitTarget, in the order in which they are
created. Reads files, or a config workspace, and changes nothing.

Flags:
  -f, --target FILE           file with an InitTarget, InitTemplates or both; - is stdin (repeatable; files may also stand
                              alone)
  --config-workspace WORKSPACE
                              workspace with the InitTarget and its templates, as for init; in the place of files
  --kubeconfig FILE           kubeconfig of kcp, as for init
  --target-name NAME          which InitTarget, if there are several
  --cluster-name ID           cluster id of the workspace: .ClusterName in templates (required)
  --cluster-path PATH         its full path, such as root:org:team: .ClusterPath in templates (required)
  -o, --output FORMAT         yaml, or json for one List (default: yaml)

Others:
  -h, --help                  print this text
  -V, --version               print the version

Called by the name init-agent it needs no init: init-agent render.

Example:
  edge-syncer init render --target=dev.yaml --cluster-name=2abc --cluster-path=root:org:team

Exit codes: 0 printed, 1 a template or what it renders is wrong, or the server does not give the target, 2 wrong usage,
unreadable file or unusable kubeconfig.
";

/// The help of `publish`.
#[cfg(feature = "publish")]
pub(super) const PUBLISH: &str = "\
Usage: edge-syncer publish --kcp-kubeconfig=FILE --namespace=NAMESPACE --apiexportendpointslice-ref=SLICE [flags]
       edge-syncer publish check ...
       edge-syncer publish render ...

Takes the place of kcp's api-syncagent: types of a service cluster appear in an APIExport, and objects that consumers create
of them get copies on the service cluster, whose status goes back. Runs until it is stopped.

Flags:
  --kcp-kubeconfig FILE       access to the workspace of the endpoint slice, which its server ends with (required)
  --kubeconfig FILE           access to the service cluster (default: $KUBECONFIG, the account of the pod, ~/.kube/config)
  --namespace NAMESPACE       where the Lease and the Secrets with states are on the service cluster (required)
  --agent-name NAME           label of all copies (default: <slice>-syncagent)
  --apiexportendpointslice-ref NAME
                              the endpoint slice, which leads to the export (required, or the next one)
  --apiexport-ref NAME        the export, where no slice leads to it
  --published-resource-selector SELECTOR
                              label selector of the PublishedResources that are meant (default: all)
  --enable-leader-election    work only while holding the Lease syncagent.<agent name> (also =true, =false)
  --kubeconfig-host-override URL
                              URL of the service cluster, in the place of that of its kubeconfig
  --kubeconfig-ca-file-override FILE
                              file with the CA of the service cluster, in the place of that of its kubeconfig
  --enable-server-side-apply  write copies by server-side apply, as api-syncagent/<agent name> (also =true, =false)
  --apiexport-hostport-override OLD=NEW
                              host and port of shards as kcp has them, and as they are reached from here (repeatable)
  --disabled-controllers LIST
                              parts that do not work: apiresourceschema, apiexport, sync (repeatable)
  --metrics-address ADDRESS   where /metrics is served; 0 for nowhere (default: 127.0.0.1:8085)
  --health-address ADDRESS    where /healthz and /readyz are served; 0 for nowhere (default: nowhere)
  --log-format FORMAT         JSON, or Console for text (default: JSON)
  --log-debug                 log more (also =true, =false)

Others:
  -h, --help                  print this text
  -V, --version               print the version

Commands:
  check                       say whether publish would work with the same flags, point by point; -o json for JSON
  render                      print the schema that a PublishedResource gives, and the copy of an object, without a server
                              (edge-syncer publish render --help)

Called by the name api-syncagent it needs no publish.

Exit codes: 0 stopped by a signal, 1 failed, a setting cannot be used, or the slice or the export is not there, 2 wrong usage
or unusable kubeconfig. Those of check are 0 all good, 1 something will not work, 2 something is unknown, or wrong usage.
";

/// The help of `publish render`.
#[cfg(feature = "publish")]
pub(super) const PUBLISH_RENDER: &str = "\
Usage: edge-syncer publish render FILE... [flags]

Prints what kcp's api-syncagent makes of a PublishedResource: the APIResourceSchema of its type, and with --object also
the copy that an object of kcp gets on the service cluster. Needs no server.

Flags:
  -f, --file FILE             file with a PublishedResource, the CustomResourceDefinition of its type, or both; - is stdin
                              (repeatable; files may also stand alone)
  --name NAME                 which PublishedResource, if the files have several
  --object FILE               file with an object as it is in kcp, and its Namespace if labels of namespaces count
  --cluster-name ID           cluster id of the object's workspace (required with --object)
  --cluster-path PATH         its path, such as root:org:team, if the PublishedResource asks for paths
  --agent-name NAME           name of the agent (default: api-syncagent)
  --selectable-fields         with fields by which objects are selected, for a kcp that knows them (also =true, =false)
  -o, --output FORMAT         yaml, or json for one List (default: yaml)

Others:
  -h, --help                  print this text
  -V, --version               print the version

Called by the name api-syncagent it needs no publish: api-syncagent render.

Example:
  edge-syncer publish render published.yaml crd.yaml --object=shop.yaml --cluster-name=2abc

Exit codes: 0 printed, 1 a PublishedResource, a type or an object is wrong, 2 wrong usage or unreadable file.
";

const RBAC_USAGE: &str = "\
Usage: edge-syncer gen rbac --side=hub|edge --from-kubeconfig=FILE --sync-target-uid=UID [flags]

Prints a service account and the roles that run needs at one side, for the configs as they are at the hub, with a
comment for each rule. Reads from both sides as whoever the kubeconfigs name, such as an administrator, and changes
nothing.

Flags of its own:
  --side hub|edge             the side that the roles are for (required)
  --allow-escalation          also for roles and their bindings, if these are selected: whoever writes them can grant
                              permissions beyond their own

Exit codes: 0 printed, 1 a side cannot be asked, 2 wrong usage or unusable configuration.

The flags and the environment of run are taken too. NAMESPACE is the namespace of the account, and at the edge that of
the syncer itself (default: edge-syncer).

";

#[cfg(feature = "admin")]
const DIFF_USAGE: &str = "\
Usage: edge-syncer diff --from-kubeconfig=FILE --sync-target-uid=UID [flags]

Shows what run would change with the same flags, as a unified diff of each object, by dry runs that both servers are asked
for. Deletes that would be held are shown too. Values of Secrets are masked; equal values have equal masks. Changes nothing
at either side.

Flags of its own:
  --config NAME               only what this config selects
  --object KIND/NAMESPACE/NAME
                              only this object, such as ConfigMap/shop/prices or Namespace//shop

Exit codes: 0 run would change nothing, 1 it would change something, 2 it is not known what it would do, or wrong usage.

The flags and the environment of run are taken too:

";

#[cfg(feature = "admin")]
const BUNDLE_USAGE: &str = "\
Usage: edge-syncer bundle --from-kubeconfig=FILE --sync-target-uid=UID [flags]

Writes one archive with what people who help need to see: version, flags, what check finds, what the configs resolve to,
the configs with their statuses, what fails, what both servers serve, and with --from-address the page and the metrics of
a running syncer. It has no data of Secrets and no credentials. Changes nothing at either side.

Flags of its own:
  --from-address HOST:PORT    where a running syncer serves its page: its --listen-address, or one that is forwarded to
                              it
  -o, --output FILE           where to write it; - is stdout (default: edge-syncer-bundle-TIME.tar.gz in this folder)

Exit codes: those of check: 0 all good, 1 something will not work, or the archive cannot be written, 2 something is
unknown, or wrong usage.

The flags and the environment of run are taken too:

";

/// The help of `bundle`.
#[cfg(feature = "admin")]
pub(super) fn bundle() -> String {
    with_flags(BUNDLE_USAGE)
}

/// The help of `diff`.
#[cfg(feature = "admin")]
pub(super) fn diff() -> String {
    with_flags(DIFF_USAGE)
}

#[cfg(feature = "admin")]
const STATUS_USAGE: &str = "\
Usage: edge-syncer status --from-kubeconfig=FILE [flags]

Says what of each config is synced at each edge, what fails and why, which deletes are held and what confirms them, and when
each edge was last heard of, as the hub knows it. With --to-kubeconfig it compares the objects at both sides too, by their
metadata. Reads only.

Flags of its own:
  --config NAME               only this config
  --object KIND/NAMESPACE/NAME
                              explain this object alone, such as ConfigMap/shop/prices or Namespace//shop
  --stale-after DURATION      an edge that was not heard of for so long cannot be judged (default: 5m)
  -o, --output FORMAT         wide for all columns, or json

Exit codes: 0 all is synced, 1 something is not, 2 that is not known, or wrong usage.

The flags and the environment of run are taken too. --sync-target-uid is not required: it picks one of several edges.
NO_COLOR turns colours off, and COLUMNS is the width, if it is not that of the terminal.

";

/// The help of `status`.
#[cfg(feature = "admin")]
pub(super) fn status() -> String {
    with_flags(STATUS_USAGE)
}

/// The help of `check`.
pub(super) fn check() -> String {
    with_flags(CHECK_USAGE)
}

/// The help of `gen rbac`.
pub(super) fn rbac() -> String {
    with_flags(RBAC_USAGE)
}

/// The flags of `run` after a text.
fn with_flags(text: &str) -> String {
    let mut help = text.to_owned();
    args::flags().for_each(|flag| describe(&mut help, flag));
    help
}

const RUN_USAGE: &str = "\
Usage: edge-syncer run --from-kubeconfig=FILE --sync-target-uid=UID [flags]

";

/// The groups of flags, each with its first flag: it ends where the next one begins.
const GROUPS: [(&str, &str); 8] = [
    ("Connection", "--from-kubeconfig"),
    ("Identity", "--sync-target-uid"),
    ("Sync", "--mode"),
    ("Safety", "--hold-deletes-above"),
    ("Bounds", "--deny"),
    ("High availability", "--leader-elect"),
    ("Monitoring", "--listen-address"),
    ("Logging", "--log-format"),
];

/// What comes after the flags in groups: those of klog first, which belong to the last group.
const RUN_END: &str = "  -v, --v NUMBER              up to 3 info, 4 and 5 debug, 6 and more trace (default: 0)
  The other logging flags of the Go syncer are accepted without effect: --vmodule, --logtostderr, --alsologtostderr,
  --stderrthreshold, --log_dir, --log_file, --log_file_max_size, --log_backtrace_at, --one_output, --add_dir_header,
  --skip_headers, --skip_log_headers.

Others:
  -h, --help                  print this text
  -V, --version               print the version

Flags may be written as --flag value or --flag=value; durations as 500ms, 15s, 1m30s or 2h.

Environment:
  EDGE_SYNCER_LOG, RUST_LOG   log filter, such as debug or edge_syncer=debug; the first that is set counts (default:
                              warn,edge_syncer=info)
  NAMESPACE                   namespace that the syncer runs in (default: that of its pod's service account)
  HOSTNAME                    part of the name of a Lease's holder
  ENABLE_DENATURING           false turns the conversions of EdgeSyncConfigs off
  HTTPS_PROXY, HTTP_PROXY, NO_PROXY
                              proxy for servers other than this machine, where the kubeconfig has no proxy-url
  SSL_CERT_FILE               root certificates, where the kubeconfig has no certificate-authority
  NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID
                              set by systemd: where to report that the program has started and works

Example:
  edge-syncer run --from-kubeconfig=hub.kubeconfig --to-kubeconfig=edge.kubeconfig --sync-target-uid=site-7

Exit codes: 0 stopped by a signal, 1 failed while running, 2 wrong usage or unusable configuration.
";

/// Where the texts of flags begin, and where their lines end.
const COLUMN: usize = 30;
const WIDTH: usize = 120;

/// The help of `run`: the flags in groups, the environment, one example.
pub(super) fn run() -> String {
    let head = [RUN_USAGE, RunArgs::get_args_info().description, "\n"].concat();
    grouped(head, args::flags(), &GROUPS) + RUN_END
}

/// The flags after a text, each group under its name.
fn grouped(
    mut help: String,
    flags: impl Iterator<Item = &'static FlagInfo<'static>>,
    groups: &[(&str, &str)],
) -> String {
    for flag in flags {
        if let Some((group, _)) = groups.iter().find(|(_, first)| *first == flag.long) {
            help += &["\n", group, ":\n"].concat();
        }
        describe(&mut help, flag);
    }
    help
}

/// Adds the lines of a flag. A name that reaches into the column of the texts has a line of its own.
fn describe(help: &mut String, flag: &FlagInfo<'_>) {
    describe_as(help, flag, flag.short);
}

/// The same with this short name.
fn describe_as(help: &mut String, flag: &FlagInfo<'_>, short: Option<char>) {
    let short = short.map(|letter| format!("-{letter}, ")).unwrap_or_default();
    let name = match flag.kind {
        FlagInfoKind::Switch => ["  ", &short, flag.long].concat(),
        FlagInfoKind::Option { arg_name } => ["  ", &short, flag.long, " ", arg_name].concat(),
    };
    *help += &name;
    let mut width = name.len();
    for (at, word) in text(flag).split(' ').enumerate() {
        if width >= COLUMN && (at == 0 || width + 1 + word.len() > WIDTH) {
            help.push('\n');
            width = 0;
        }
        let gap = COLUMN.saturating_sub(width).max(1);
        help.extend(iter::repeat_n(' ', gap));
        *help += word;
        width += gap + word.len();
    }
    help.push('\n');
}

/// The docs of a flag, with what its type says.
fn text(flag: &FlagInfo<'_>) -> String {
    let note = match (&flag.kind, &flag.optionality) {
        (FlagInfoKind::Switch, _) => "also =true, =false",
        (_, Optionality::Repeating) => "repeatable",
        _ => return flag.description.to_owned(),
    };
    match flag.description.strip_suffix(')') {
        Some(docs) => [docs, "; ", note, ")"].concat(),
        None => [flag.description, " (", note, ")"].concat(),
    }
}

#[cfg(test)]
#[path = "help_tests.rs"]
mod tests;
