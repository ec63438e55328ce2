//! The commands of `init`, and the flags of `init render`.

use edge_syncer_init::objects::Data;
use edge_syncer_init::{At, ConfigWorkspace};
use kube_lite::spelling;

use super::args::{Command, OF_ALL, no_flag_of};
use super::init_flags::{self, INIT};
use super::role_flags;
use super::usage::UsageError;
use crate::init::{From, Render};
use crate::version;

/// The name of the command in messages.
pub(super) const RENDER: &str = "edge-syncer init render";

/// The flags, but for the short form of the last one and the other name of the first.
const FLAGS: [&str; 7] = [
    "--target",
    "--config-workspace",
    "--kubeconfig",
    "--target-name",
    "--cluster-name",
    "--cluster-path",
    "--output",
];

/// Reads the arguments after `init`.
pub(super) fn parse(args: &[String]) -> Result<Command, UsageError> {
    match args.split_first().map(|(word, rest)| (word.as_str(), rest)) {
        Some(("help", _)) => Ok(Command::InitHelp),
        Some(("check", rest)) => init_flags::check(rest),
        Some(("render", rest)) => render(rest).map_err(|error| error.seen_from(RENDER)),
        None => init_flags::parse(args),
        Some((word, _)) if word.starts_with('-') => init_flags::parse(args),
        Some((word, _)) => {
            let hint = spelling::hint(word, ["check", "render"]);
            Err(UsageError::new(format!("init {word:?}: must be check or render{hint}")).seen_from(INIT))
        }
    }
}

fn render(args: &[String]) -> Result<Command, UsageError> {
    let (mut files, mut target, mut output) = (Vec::new(), None, None);
    let (mut name, mut path, mut workspace, mut kubeconfig) = (None, None, None, None);
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let (flag, value) = match arg.split_once('=') {
            Some((flag, value)) if flag.starts_with('-') => (flag, Some(value)),
            _ => (arg.as_str(), None),
        };
        let slot = match flag {
            "-h" | "--help" => return Ok(Command::RenderHelp),
            "-V" | "--version" => return Ok(Command::Version),
            "-f" | "--target" => None,
            "--target-name" => Some(&mut target),
            "--config-workspace" => Some(&mut workspace),
            "--kubeconfig" => Some(&mut kubeconfig),
            "--cluster-name" => Some(&mut name),
            "--cluster-path" => Some(&mut path),
            "-o" | "--output" => Some(&mut output),
            // More files, or stdin.
            file if file == "-" || !file.starts_with('-') => {
                files.push(arg.clone());
                continue;
            }
            _ => return Err(UsageError::new(no_flag_of(FLAGS.into_iter().chain(OF_ALL), arg))),
        };
        let missing = || UsageError::new(format!("{flag} needs a value"));
        let value = value.or_else(|| rest.next().map(String::as_str)).ok_or_else(missing)?;
        match slot {
            Some(slot) => *slot = Some(value.to_owned()),
            None => files.push(value.to_owned()),
        }
    }
    let json = match output.as_deref() {
        None | Some("yaml") => false,
        Some("json") => true,
        Some(other) => {
            let hint = spelling::hint(other, ["yaml", "json"]);
            return Err(UsageError::new(format!("-o {other:?}: must be yaml or json{hint}")));
        }
    };
    let from = from(files, workspace.as_deref(), kubeconfig.as_deref())?;
    let given = |value: Option<String>, flag: &str, what: &str| {
        let value = value.filter(|value| !value.is_empty());
        value.ok_or_else(|| UsageError::new(format!("{flag} is missing: it must be the workspace's {what}")))
    };
    let data = Data {
        cluster_name: given(name, "--cluster-name", "cluster id")?,
        cluster_path: given(path, "--cluster-path", "full path, such as root:org:team")?,
    };
    let settings = Render {
        from,
        target,
        data,
        json,
    };
    Ok(Command::Render(Box::new(settings)))
}

/// Files, or a server.
fn from(files: Vec<String>, workspace: Option<&str>, kubeconfig: Option<&str>) -> Result<From, UsageError> {
    let Some(workspace) = workspace.filter(|workspace| !workspace.is_empty()) else {
        if files.is_empty() {
            return Err(UsageError::new(
                "--target is missing: name the files with the InitTarget and its templates, or their workspace with \
                 --config-workspace",
            ));
        }
        if kubeconfig.is_some() {
            return Err(UsageError::new("--kubeconfig is of no use without --config-workspace"));
        }
        return Ok(From::Files(files));
    };
    if !files.is_empty() {
        return Err(UsageError::new("--target and --config-workspace exclude each other"));
    }
    let wrong = |why| UsageError::new(format!("--config-workspace {workspace:?}: {why}"));
    Ok(From::Server(Box::new(At {
        source: role_flags::source(kubeconfig),
        config_workspace: ConfigWorkspace::parse(workspace).map_err(wrong)?,
        user_agent: version::user_agent(),
    })))
}

#[cfg(test)]
mod tests {
    use kube_lite::access::AccessSource;

    use super::*;

    fn check(line: &str) -> Result<Command, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_are_read_in_all_their_forms() {
        let expected = Render {
            from: From::Files(vec!["a".to_owned(), "-".to_owned()]),
            target: Some("dev".to_owned()),
            data: Data {
                cluster_name: "2abc".to_owned(),
                cluster_path: "root:org".to_owned(),
            },
            json: true,
        };
        for line in [
            "render -f a -f - --target-name dev --cluster-name 2abc --cluster-path root:org -o json",
            "render --target a - --target-name=dev --cluster-name=2abc --cluster-path=root:org --output=json",
            "render --cluster-path=root:org --cluster-name=2abc --target-name=dev -o=json a -",
        ] {
            assert_eq!(check(line), Ok(Command::Render(Box::new(expected.clone()))), "{line}");
        }
        let server = "render --config-workspace=root:org --kubeconfig k --cluster-name=2abc --cluster-path=root:org";
        let Ok(Command::Render(found)) = check(server) else {
            panic!("it is understood")
        };
        let From::Server(at) = found.from else {
            panic!("it is a server")
        };
        assert_eq!(at.config_workspace.name(), "root:org");
        assert!(matches!(at.source, AccessSource::Kubeconfig { path, .. } if path.ends_with("k")));
        assert_eq!(check("--help"), Ok(Command::InitHelp));
        assert_eq!(check("help"), Ok(Command::InitHelp));
        assert_eq!(check("render -h"), Ok(Command::RenderHelp));
        assert_eq!(check("render --version"), Ok(Command::Version));
    }

    #[test]
    fn what_is_wrong_is_one_line() {
        for (line, expected) in [
            (
                "rendr",
                "init \"rendr\": must be check or render, did you mean render? (see edge-syncer init --help)",
            ),
            (
                "render",
                "--target is missing: name the files with the InitTarget and its templates, or their workspace with \
                 --config-workspace (see edge-syncer init render --help)",
            ),
            (
                "render a --config-workspace=root",
                "--target and --config-workspace exclude each other (see edge-syncer init render --help)",
            ),
            (
                "render a --kubeconfig=k",
                "--kubeconfig is of no use without --config-workspace (see edge-syncer init render --help)",
            ),
            (
                "render --config-workspace=Root",
                "--config-workspace \"Root\": it must be the path of a workspace, such as root:org:ws, or a cluster id (see \
                 edge-syncer init render --help)",
            ),
            ("render -f", "-f needs a value (see edge-syncer init render --help)"),
            (
                "render a --cluster-nam=x",
                "unknown flag --cluster-nam, did you mean --cluster-name? (see edge-syncer init render --help)",
            ),
            (
                "render a --cluster-name=x",
                "--cluster-path is missing: it must be the workspace's full path, such as root:org:team (see edge-syncer init \
                 render --help)",
            ),
            (
                "render a --cluster-path=x",
                "--cluster-name is missing: it must be the workspace's cluster id (see edge-syncer init render --help)",
            ),
            (
                "render a -o xml",
                "-o \"xml\": must be yaml or json (see edge-syncer init render --help)",
            ),
        ] {
            assert_eq!(check(line), Err(expected.to_owned()), "{line}");
        }
    }
}
