//! The commands of `publish`, and the flags of `publish render`.

use kube_lite::spelling;

use super::args::{Command, OF_ALL, no_flag_of};
use super::publish_flags::{self, PUBLISH};
use super::usage::UsageError;
use crate::publish::{Copied, Render};

/// The name of the command in messages.
pub(super) const RENDER: &str = "edge-syncer publish render";

/// The name of an agent in what is printed, unless set otherwise.
const AGENT: &str = "api-syncagent";

/// The flags with a value, but for the short forms.
const OPTIONS: [&str; 7] = [
    "--file",
    "--name",
    "--object",
    "--cluster-name",
    "--cluster-path",
    "--agent-name",
    "--output",
];
const SWITCH: &str = "--selectable-fields";

/// Reads the arguments after `publish`.
pub(super) fn parse(args: &[String]) -> Result<Command, UsageError> {
    let wrong = |why: &str| UsageError::new(why).seen_from(PUBLISH);
    match args.split_first().map(|(word, rest)| (word.as_str(), rest)) {
        Some(("help", _)) => Ok(Command::PublishHelp),
        Some(("check", rest)) => publish_flags::check(rest),
        Some(("render", rest)) => render(rest).map_err(|error| error.seen_from(RENDER)),
        None => publish_flags::parse(args),
        Some((word, _)) if word.starts_with('-') => publish_flags::parse(args),
        Some((word, _)) => {
            let hint = spelling::hint(word, ["check", "render"]);
            Err(wrong(&format!("publish {word:?}: must be check or render{hint}")))
        }
    }
}

fn render(args: &[String]) -> Result<Command, UsageError> {
    let mut values: [Option<String>; OPTIONS.len()] = Default::default();
    let (mut files, mut has_selectable_fields) = (Vec::new(), false);
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let (flag, value) = match arg.split_once('=') {
            Some((flag, value)) if flag.starts_with('-') => (flag, Some(value)),
            _ => (arg.as_str(), None),
        };
        let name = match flag {
            "-h" | "--help" => return Ok(Command::PublishRenderHelp),
            "-V" | "--version" => return Ok(Command::Version),
            "-f" => "--file",
            "-o" => "--output",
            SWITCH => {
                has_selectable_fields = switch(flag, value)?;
                continue;
            }
            // More files, or stdin.
            file if file == "-" || !file.starts_with('-') => {
                files.push(arg.clone());
                continue;
            }
            other => other,
        };
        let Some(index) = OPTIONS.iter().position(|known| *known == name) else {
            let known = OPTIONS.into_iter().chain([SWITCH]).chain(OF_ALL);
            return Err(UsageError::new(no_flag_of(known, arg)));
        };
        let missing = || UsageError::new(format!("{flag} needs a value"));
        let value = value.or_else(|| rest.next().map(String::as_str)).ok_or_else(missing)?;
        if name == "--file" {
            files.push(value.to_owned());
        } else {
            values[index] = Some(value.to_owned()).filter(|value| !value.is_empty());
        }
    }
    let [_, name, object, cluster_name, cluster_path, agent, output] = values;
    if files.is_empty() {
        let why = "--file is missing: name the files with the PublishedResource and the CRD of its type";
        return Err(UsageError::new(why));
    }
    let settings = Render {
        files,
        name,
        copied: copied(object, cluster_name, cluster_path)?,
        agent: agent.unwrap_or_else(|| AGENT.to_owned()),
        has_selectable_fields,
        json: is_json(output.as_deref())?,
    };
    Ok(Command::PublishRender(Box::new(settings)))
}

fn switch(flag: &str, value: Option<&str>) -> Result<bool, UsageError> {
    match value {
        None | Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(other) => Err(UsageError::new(format!("{flag} {other:?}: must be true or false"))),
    }
}

fn copied(file: Option<String>, cluster: Option<String>, path: Option<String>) -> Result<Option<Copied>, UsageError> {
    match (file, cluster) {
        (Some(file), Some(cluster)) => Ok(Some(Copied {
            file,
            cluster,
            path: path.unwrap_or_default(),
        })),
        (Some(_), None) => Err(UsageError::new(
            "--cluster-name is missing: it must be the cluster id of the object's workspace",
        )),
        (None, None) if path.is_none() => Ok(None),
        (None, _) => Err(UsageError::new(
            "--object is missing: without an object there is nothing in a workspace",
        )),
    }
}

fn is_json(output: Option<&str>) -> Result<bool, UsageError> {
    match output {
        None | Some("yaml") => Ok(false),
        Some("json") => Ok(true),
        Some(other) => {
            let hint = spelling::hint(other, ["yaml", "json"]);
            Err(UsageError::new(format!("-o {other:?}: must be yaml or json{hint}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str) -> Result<Command, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words).map_err(|error| error.to_string())
    }

    #[test]
    fn flags_are_read_in_all_their_forms() {
        let expected = Render {
            files: vec!["a".to_owned(), "-".to_owned()],
            name: Some("shops".to_owned()),
            copied: Some(Copied {
                file: "o".to_owned(),
                cluster: "2abc".to_owned(),
                path: "root:org".to_owned(),
            }),
            agent: "mine".to_owned(),
            has_selectable_fields: true,
            json: true,
        };
        for line in [
            "render -f a -f - --name shops --object o --cluster-name 2abc --cluster-path root:org --agent-name mine \
             --selectable-fields -o json",
            "render a - --name=shops --object=o --cluster-name=2abc --cluster-path=root:org --agent-name=mine \
             --selectable-fields=true --output=json",
        ] {
            assert_eq!(
                check(line),
                Ok(Command::PublishRender(Box::new(expected.clone()))),
                "{line}"
            );
        }
        let expected = Render {
            files: vec!["a".to_owned()],
            name: None,
            copied: None,
            agent: AGENT.to_owned(),
            has_selectable_fields: false,
            json: false,
        };
        assert_eq!(check("render a"), Ok(Command::PublishRender(Box::new(expected))));
        assert_eq!(check("--help"), Ok(Command::PublishHelp));
        assert_eq!(check("render -h"), Ok(Command::PublishRenderHelp));
        assert_eq!(check("--version"), Ok(Command::Version));
    }

    #[test]
    fn what_is_wrong_is_one_line() {
        for (line, expected) in [
            (
                "rendr",
                "publish \"rendr\": must be check or render, did you mean render? (see edge-syncer publish --help)",
            ),
            (
                "render",
                "--file is missing: name the files with the PublishedResource and the CRD of its type (see edge-syncer \
                 publish render --help)",
            ),
            ("render -f", "-f needs a value (see edge-syncer publish render --help)"),
            (
                "render a --objec=x",
                "unknown flag --objec, did you mean --object? (see edge-syncer publish render --help)",
            ),
            (
                "render a --object=x",
                "--cluster-name is missing: it must be the cluster id of the object's workspace (see edge-syncer publish \
                 render --help)",
            ),
            (
                "render a --cluster-name=x",
                "--object is missing: without an object there is nothing in a workspace (see edge-syncer publish render \
                 --help)",
            ),
            (
                "render a -o xml",
                "-o \"xml\": must be yaml or json (see edge-syncer publish render --help)",
            ),
            (
                "render a --selectable-fields=1",
                "--selectable-fields \"1\": must be true or false (see edge-syncer publish render --help)",
            ),
        ] {
            assert_eq!(check(line), Err(expected.to_owned()), "{line}");
        }
    }
}
