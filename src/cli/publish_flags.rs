//! The flags of `publish`: those of kcp's api-syncagent, so that its manifests start this program.

use edge_syncer_publish::{HostOverride, Parts, Reference, Settings};
use kube_lite::access::AuthorityFile;
use kube_lite::{selector, spelling};
use log::LevelFilter;

use super::args::Command;
use super::role_flags::{self, Known, Line, METRICS, Raw, Wrong};
use super::usage::UsageError;
use crate::publish::Publish;
use crate::version;

/// The name of the command in messages.
pub(super) const PUBLISH: &str = "edge-syncer publish";

const KNOWN: Known = Known {
    command: PUBLISH,
    options: &[
        "--kcp-kubeconfig",
        "--kubeconfig",
        "--namespace",
        "--agent-name",
        "--apiexportendpointslice-ref",
        "--apiexport-ref",
        "--published-resource-selector",
        "--kubeconfig-host-override",
        "--kubeconfig-ca-file-override",
        "--apiexport-hostport-override",
        "--disabled-controllers",
        "--metrics-address",
        "--health-address",
        "--log-format",
    ],
    switches: &["--enable-leader-election", "--log-debug", "--enable-server-side-apply"],
};

/// The parts that may be switched off.
const PARTS: [&str; 3] = ["apiresourceschema", "apiexport", "sync"];

/// The longest value of a label.
const LONGEST: usize = 63;

/// Reads the flags after `publish check`: those of `publish`, and the format of what is printed.
pub(super) fn check(args: &[String]) -> Result<Command, UsageError> {
    let Some((format, others)) = KNOWN.of_check(args)? else {
        return Ok(Command::PublishHelp);
    };
    Ok(match parse(&others)? {
        Command::PublishRun(publish) => Command::PublishCheck(publish, format),
        other => other,
    })
}

/// Reads the flags after `publish`.
pub(super) fn parse(args: &[String]) -> Result<Command, UsageError> {
    match KNOWN.read(args) {
        Line::Help => Ok(Command::PublishHelp),
        Line::Version => Ok(Command::Version),
        Line::Flags(raw) => checked(&raw),
    }
}

/// The settings. All that is wrong is said together.
fn checked(raw: &Raw) -> Result<Command, UsageError> {
    let value = |at: usize| raw.last(at).filter(|text| !text.trim().is_empty());
    let mut wrong = Wrong::of(raw);
    let format = wrong.format(value(13));
    let metrics = wrong.address("--metrics-address", raw.last(11).unwrap_or(METRICS));
    let health = wrong.address("--health-address", raw.last(12).unwrap_or_default());
    for (at, what) in [
        (
            0,
            "the kubeconfig of the workspace with the APIExport or its endpoint slice",
        ),
        (2, "where the Lease and the state Secrets are on the service cluster"),
    ] {
        if value(at).is_none() {
            wrong.push(format!("{} is missing: name {what}", KNOWN.options[at]));
        }
    }
    if let Some(name) = value(2).filter(|name| !is_label(name)) {
        wrong.push(format!(
            "--namespace {name:?} must be a DNS label: small letters, digits and dashes, at most {LONGEST}"
        ));
    }
    let reference = match (value(4), value(5)) {
        (Some(_), Some(_)) => {
            wrong.push("--apiexport-ref must not be given beside --apiexportendpointslice-ref");
            None
        }
        (Some(slice), None) => Some(Reference::Slice(slice.to_owned())),
        (None, Some(export)) => Some(Reference::Export(export.to_owned())),
        (None, None) => {
            wrong.push("--apiexportendpointslice-ref is missing: name the APIExportEndpointSlice");
            None
        }
    };
    let agent = agent(value(3), reference.as_ref(), &mut wrong);
    if let Some(text) = value(6)
        && let Err(why) = selector::check(text)
    {
        wrong.push(format!("--published-resource-selector {text:?}: {why}"));
    }
    let service_host = value(7).map(|text| (text, text.parse::<http::Uri>()));
    let service_host = match service_host {
        Some((_, Ok(host))) if matches!(host.scheme_str(), Some("http" | "https")) && host.host().is_some() => {
            Some(host)
        }
        None => None,
        Some((text, _)) => {
            wrong.push(format!(
                "--kubeconfig-host-override {text:?} must be a URL such as https://10.0.0.1:6443"
            ));
            None
        }
    };
    let service_authority = value(8).map(|path| AuthorityFile {
        path: path.into(),
        flag: KNOWN.options[8],
    });
    let overrides = overrides(raw.all(9), &mut wrong);
    let parts = parts(raw.all(10), &mut wrong);
    let reference = match (wrong.refusal(&KNOWN), reference) {
        (None, Some(reference)) => reference,
        (refusal, _) => return refusal.unwrap_or_else(|| Err(KNOWN.wrong("the export is missing"))),
    };
    let settings = Settings {
        kcp: role_flags::file("--kcp-kubeconfig", value(0).unwrap_or_default()),
        service: role_flags::source(value(1)),
        service_host,
        service_authority,
        overrides,
        namespace: value(2).unwrap_or_default().to_owned(),
        agent,
        reference,
        selector: value(6).map(str::to_owned),
        elects: raw.is_on(0),
        parts,
        applies: raw.is_on(2),
        metrics,
        health,
        host_name: super::host_name(),
        user_agent: version::user_agent(),
        version: version::VERSION,
    };
    let verbosity = if raw.is_on(1) {
        LevelFilter::Debug
    } else {
        LevelFilter::Info
    };
    Ok(Command::PublishRun(Box::new(Publish {
        settings,
        verbosity,
        format,
    })))
}

/// True for a DNS label, such as the name of a namespace.
fn is_label(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=LONGEST).contains(&name.len()) && name.chars().all(is_plain) && !name.starts_with('-') && !name.ends_with('-')
}

/// The name of the agent, which is the value of a label.
fn agent(given: Option<&str>, reference: Option<&Reference>, wrong: &mut Wrong) -> String {
    if let Some(name) = given {
        if !is_label(name) || name.starts_with(|c: char| c.is_ascii_digit()) {
            wrong.push(format!(
                "--agent-name {name:?} must be a DNS label of RFC 1035: small letters, digits and dashes, at most {LONGEST}"
            ));
        }
        return name.to_owned();
    }
    let Some(Reference::Slice(name) | Reference::Export(name)) = reference else {
        return String::new();
    };
    let name = format!("{name}-syncagent");
    if name.len() > LONGEST {
        wrong.push(format!(
            "--agent-name is missing: {name} is longer than the {LONGEST} characters that a label may have"
        ));
    }
    name
}

/// `old:port=new:port`, several times or with commas.
fn overrides(given: &[String], wrong: &mut Wrong) -> Vec<HostOverride> {
    let mut all = Vec::new();
    for text in given
        .iter()
        .flat_map(|text| text.split(','))
        .filter(|text| !text.is_empty())
    {
        let is_host = |host: &str| {
            host.rsplit_once(':')
                .is_some_and(|(name, port)| !name.is_empty() && port.parse::<u16>().is_ok())
        };
        match text.split_once('=').filter(|(from, to)| is_host(from) && is_host(to)) {
            Some((from, to)) => all.push(HostOverride {
                from: from.to_owned(),
                to: to.to_owned(),
            }),
            None => wrong.push(format!(
                "--apiexport-hostport-override {text:?} must be old:port=new:port, such as kcp.svc:6443=kcp.example.org:443"
            )),
        }
    }
    all
}

fn parts(given: &[String], wrong: &mut Wrong) -> Parts {
    let mut on = [true; PARTS.len()];
    for name in given
        .iter()
        .flat_map(|text| text.split(','))
        .map(str::trim)
        .filter(|text| !text.is_empty())
    {
        if let Some(at) = PARTS.iter().position(|part| *part == name) {
            on[at] = false;
        } else {
            let (known, hint) = (PARTS.join(", "), spelling::hint(name, PARTS));
            wrong.push(format!("--disabled-controllers {name:?}: must be {known}{hint}"));
        }
    }
    let [schemas, export, sync] = on;
    Parts { schemas, export, sync }
}

#[cfg(test)]
mod tests {
    use kube_lite::logging::LogFormat;

    use super::*;

    fn check(line: &str) -> Result<Command, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words).map_err(|error| error.to_string())
    }

    #[test]
    fn check_takes_the_same_flags() {
        let line = "--kcp-kubeconfig=a --namespace=b --apiexport-ref=c --enable-server-side-apply \
                    --kubeconfig-ca-file-override=/ca.crt";
        let Ok(Command::PublishRun(publish)) = check(line) else {
            panic!("{line}");
        };
        assert!(publish.settings.applies);
        let authority = publish.settings.service_authority.clone().unwrap();
        assert_eq!(authority.path.to_str(), Some("/ca.crt"));
        for (more, format) in [
            ("", LogFormat::Text),
            (" -o json", LogFormat::Json),
            (" --output=json", LogFormat::Json),
        ] {
            let words: Vec<String> = format!("{line}{more}").split_whitespace().map(str::to_owned).collect();
            assert_eq!(super::check(&words), Ok(Command::PublishCheck(publish.clone(), format)));
        }
        let words = ["-o".to_owned(), "yaml".to_owned()];
        let error = super::check(&words).unwrap_err().to_string();
        assert!(error.starts_with("-o \"yaml\": must be json"), "{error}");
    }

    fn refused(line: &str) -> String {
        match check(line) {
            Ok(Command::RoleRefused(why)) => why,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn the_helm_charts_arguments_are_taken() {
        let line = "--agent-name=unique-test --namespace=kcp-system --enable-leader-election=true \
                    --kcp-kubeconfig=/etc/api-syncagent/kcp/kubeconfig --apiexport-ref=test.example.com \
                    --published-resource-selector=a=b --kubeconfig=/etc/api-syncagent/cluster/kubeconfig \
                    --disabled-controllers=sync --health-address=0.0.0.0:8086 --log-format=console";
        let Ok(Command::PublishRun(publish)) = check(line) else {
            panic!("{line}");
        };
        let settings = publish.settings;
        assert_eq!(settings.reference, Reference::Export("test.example.com".to_owned()));
        assert_eq!((&*settings.agent, &*settings.namespace), ("unique-test", "kcp-system"));
        assert_eq!(settings.selector.as_deref(), Some("a=b"));
        assert!(settings.elects && settings.metrics.is_some() && settings.health.is_some());
        let parts = Parts {
            schemas: true,
            export: true,
            sync: false,
        };
        assert_eq!(settings.parts, parts);
    }

    #[test]
    fn all_that_is_wrong_is_said_together() {
        assert_eq!(
            refused("--agent-name=A_b --disabled-controllers=synk,apiexport --apiexport-hostport-override=a=b"),
            "--kcp-kubeconfig is missing: name the kubeconfig of the workspace with the APIExport or its endpoint slice; \
             --namespace is missing: name where the Lease and the state Secrets are on the service cluster; \
             --apiexportendpointslice-ref is missing: name the APIExportEndpointSlice; \
             --agent-name \"A_b\" must be a DNS label of RFC 1035: small letters, digits and dashes, at most 63; \
             --apiexport-hostport-override \"a=b\" must be old:port=new:port, such as kcp.svc:6443=kcp.example.org:443; \
             --disabled-controllers \"synk\": must be apiresourceschema, apiexport, sync, did you mean sync?"
        );
        let slice = "a".repeat(54);
        let line = format!("--kcp-kubeconfig=a --namespace=b --apiexportendpointslice-ref={slice}");
        assert!(refused(&line).contains("longer than the 63 characters"));
        let both = "--kcp-kubeconfig=a --namespace=b --apiexportendpointslice-ref=c --apiexport-ref=d";
        assert!(refused(both).contains("must not be given beside"));
        let odd = "--kcp-kubeconfig=a --namespace=UP/.. --apiexport-ref=c --kubeconfig-host-override=ftp://x";
        assert_eq!(
            refused(odd),
            "--namespace \"UP/..\" must be a DNS label: small letters, digits and dashes, at most 63; \
             --kubeconfig-host-override \"ftp://x\" must be a URL such as https://10.0.0.1:6443"
        );
        // Wrong usage too, which decides the exit code.
        let good = "--kcp-kubeconfig=a --namespace=b --apiexport-ref=c";
        assert_eq!(
            check(&format!(
                "{good} --namespce x --log-format=xml --metrics-address=y --health-address=z --log-debug=maybe \
                 --disabled-controllers=no --agent-name"
            )),
            Err(
                "unknown flag --namespce, did you mean --namespace?; --log-debug \"maybe\": must be true or false; \
                 --agent-name needs a value; --log-format \"xml\": must be JSON or Console; \
                 --metrics-address \"y\": must be an address and a port, such as 127.0.0.1:8085 or :8085, or 0 for none; \
                 --health-address \"z\": must be an address and a port, such as 127.0.0.1:8085 or :8085, or 0 for none; \
                 --disabled-controllers \"no\": must be apiresourceschema, apiexport, sync \
                 (see edge-syncer publish --help)"
                    .to_owned()
            )
        );
    }
}
