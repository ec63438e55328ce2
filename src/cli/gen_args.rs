//! The flags of `gen` as people write them: those of the KubeStellar-Syncer's generator, of kubectl, and ours.

use argh::{ArgsInfo, FlagInfo, FlagInfoKind, FromArgs, Optionality};
use kube_lite::spelling;

use super::klog::{self, Klog};
use super::usage::UsageError;

// In the order of the help.
/// The flags of `gen` as they were given.
#[derive(FromArgs, ArgsInfo, Debug, Default, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(super) struct GenArgs {
    /// image of the syncer (required, but for --format=systemd, --rotate and --unregister)
    #[argh(option, arg_name = "IMAGE")]
    pub syncer_image: Option<String>,

    /// file to write, which holds a token; - is standard output; with --format=systemd a folder (required, but for a
    /// manifest with --rotate, which is printed then)
    #[argh(option, short = 'o', arg_name = "FILE")]
    pub output_file: Option<String>,

    /// manifest, for kubectl apply; systemd, the files of a service (default: manifest)
    #[argh(option, arg_name = "manifest|systemd")]
    pub format: Option<String>,

    /// number of syncers in the manifest, 0 or 1; see --ha for two (default: 1)
    #[argh(option, arg_name = "NUMBER")]
    pub replicas: Option<String>,

    /// two syncers in the manifest, of which one is active
    #[argh(switch)]
    pub ha: bool,

    /// poll the hub: for hubs and links that cannot hold watches
    #[argh(switch)]
    pub poll: bool,

    /// fewer heartbeats and status writes: for links that cost by the byte
    #[argh(switch)]
    pub metered: bool,

    /// permissions of the syncer at both sides: scoped, those that the configs at the hub need now; wide, all (default: that
    /// of the earlier registration, else scoped, but wide in a workspace of kcp that has no other edge)
    #[argh(option, arg_name = "scoped|wide")]
    pub rbac: Option<String>,

    /// namespace of the syncer at the edge, for it alone (default: kubestellar-syncer-NAME-HASH; with --format=systemd kube-system)
    #[argh(option, short = 'n', arg_name = "NAMESPACE")]
    pub namespace: Option<String>,

    /// the syncer's requests per second to each side (default: the syncer's own)
    #[argh(option, arg_name = "NUMBER")]
    pub qps: Option<String>,

    /// the syncer's requests that may be sent at once to each side (default: the syncer's own)
    #[argh(option, arg_name = "NUMBER")]
    pub burst: Option<String>,

    /// key=value, checked and without effect, as in the Go generator
    #[argh(option, arg_name = "LABEL")]
    pub labels: Vec<String>,

    /// UID of the sync target, by which the syncer knows its copies (default: a new one, or that of the earlier
    /// registration)
    #[argh(option, arg_name = "UID")]
    pub uid: Option<String>,

    /// namespace of the syncer's service account at the hub, which must exist (default: default)
    #[argh(option, arg_name = "NAMESPACE")]
    pub kcp_namespace: Option<String>,

    /// how long the token is to last, which the syncer renews; servers may shorten it (default: 168h; at least 10m)
    #[argh(option, arg_name = "DURATION")]
    pub lifetime: Option<String>,

    /// URL of the hub as the edge reaches it, with https:// (default: that of the earlier registration, else the
    /// kubeconfig's)
    #[argh(option, arg_name = "URL")]
    pub hub_url: Option<String>,

    /// how long to wait until the hub serves the configs (default: 2m)
    #[argh(option, arg_name = "DURATION")]
    pub timeout: Option<String>,

    /// say what would be done at the hub, and write nothing
    #[argh(switch)]
    pub dry_run: bool,

    /// write a kubeconfig with a new token for an edge that is registered, and nothing else
    #[argh(switch)]
    pub rotate: bool,

    /// remove what was created at the hub for this name
    #[argh(switch)]
    pub unregister: bool,

    /// kubeconfig file of the hub, of an administrator (default: those in KUBECONFIG, else ~/.kube/config)
    #[argh(option, arg_name = "FILE")]
    pub kubeconfig: Option<String>,

    /// context in it (default: its current context)
    #[argh(option, arg_name = "NAME")]
    pub context: Option<String>,

    /// user in it (default: that of the context)
    #[argh(option, arg_name = "NAME")]
    pub user: Option<String>,

    /// URL of the hub, in the place of the kubeconfig's
    #[argh(option, short = 's', arg_name = "URL")]
    pub server: Option<String>,

    /// token for the hub, in the place of the kubeconfig's credentials
    #[argh(option, arg_name = "TOKEN")]
    pub token: Option<String>,

    /// file with the hub's CA, in the place of the kubeconfig's
    #[argh(option, arg_name = "FILE")]
    pub certificate_authority: Option<String>,

    /// accept any certificate of the hub, also in the syncer
    #[argh(switch)]
    pub insecure_skip_tls_verify: bool,

    /// name in the hub's certificate, also for the syncer
    #[argh(option, arg_name = "NAME")]
    pub tls_server_name: Option<String>,
}

/// Flags of kubectl for credentials other than tokens and certificates, which API servers do not accept any more.
const REFUSED: [&str; 2] = ["--username", "--password"];

/// What the command line of `gen` asks for.
#[derive(Debug, PartialEq)]
pub(super) enum Gen {
    Help,
    Version,
    /// For this sync target.
    Do(String, Box<GenArgs>),
}

/// All flags of `gen` but klog's and those that every command has.
pub(super) fn flags() -> impl Iterator<Item = &'static FlagInfo<'static>> {
    let flags = GenArgs::get_args_info().flags;
    flags.iter().filter(|flag| flag.long != "--help")
}

/// Reads the arguments after the command.
pub(super) fn parse(args: &[String], mut klog: Klog) -> Result<Gen, UsageError> {
    let wrong = |error: UsageError| error.seen_from(COMMAND);
    let (mut names, mut given) = (Vec::new(), Vec::new());
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg.as_str() {
            "-h" | "--help" => return Ok(Gen::Help),
            "-V" | "--version" => return Ok(Gen::Version),
            "--" => {
                names.extend(rest.by_ref().cloned());
                break;
            }
            _ => {}
        }
        if klog.take(arg, &mut rest).map_err(wrong)? {
            continue;
        }
        // A lone - counts as a name, which is then refused.
        if !arg.starts_with('-') || arg == "-" {
            names.push(arg.clone());
            continue;
        }
        let (flag, value) = find(arg).map_err(wrong)?;
        if flag.optionality != Optionality::Repeating {
            // argh refuses a flag that is given twice; here the last one counts.
            given.retain(|(earlier, _): &(&str, Option<String>)| *earlier != flag.long);
        }
        if flag.kind == FlagInfoKind::Switch {
            match value.as_deref() {
                None | Some("true") => given.push((flag.long, None)),
                Some("false") => {}
                Some(other) => {
                    let why = format!("{} {other:?}: must be true or false", flag.long);
                    return Err(wrong(UsageError::new(why)));
                }
            }
        } else {
            let missing = || wrong(UsageError::new(format!("{arg} needs a value")));
            let value = value.or_else(|| rest.next().cloned()).ok_or_else(missing)?;
            given.push((flag.long, Some(value)));
        }
    }
    let Ok([name]) = <[String; 1]>::try_from(names) else {
        return Ok(Gen::Help);
    };
    let words: Vec<&str> = given
        .iter()
        .flat_map(|(flag, value)| [Some(*flag), value.as_deref()])
        .flatten()
        .collect();
    let raw = GenArgs::from_args(&[], &words).map_err(|refusal| wrong(UsageError::new(refusal.output)))?;
    Ok(Gen::Do(name, Box::new(raw)))
}

/// The command whose help is named in errors.
pub(super) const COMMAND: &str = "edge-syncer gen";

/// The flag of an argument, and the value in the same argument.
fn find(arg: &str) -> Result<(&'static FlagInfo<'static>, Option<String>), UsageError> {
    // -oFILE and -o=FILE, as pflag takes them.
    let short = arg.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    if let Some((letter, rest)) = short.and_then(|rest| Some((rest.chars().next()?, rest)))
        && let Some(flag) = flags().find(|flag| flag.short == Some(letter))
    {
        let value = &rest[letter.len_utf8()..];
        let value = value.strip_prefix('=').unwrap_or(value);
        let has_value = rest.len() > letter.len_utf8();
        return Ok((flag, has_value.then(|| value.to_owned())));
    }
    let (name, value) = klog::split_flag(arg).unwrap_or_else(|| (arg.to_owned(), None));
    if REFUSED.contains(&name.as_str()) {
        return Err(UsageError::new(format!(
            "{name}: API servers no longer accept passwords: use --token, or a kubeconfig with other credentials"
        )));
    }
    let known = flags().find(|flag| flag.long == name);
    let hint = || spelling::hint(&name, flags().map(|flag| flag.long));
    let unknown = || UsageError::new(format!("unknown flag {name}{}", hint()));
    Ok((known.ok_or_else(unknown)?, value.map(str::to_owned)))
}
