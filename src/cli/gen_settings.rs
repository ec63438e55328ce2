//! Checked settings of `gen`. All errors that can be found without a request are found here, before anything is asked
//! or written.

use std::path::PathBuf;
use std::time::Duration;
use std::{env, io};

use driver::logger;
use kube_lite::access::admin::{Admin, AdminFlags};
use kube_lite::access::server_url;

use super::gen_args::{COMMAND, GenArgs};
use super::usage::UsageError;
use super::{duration, set};
use crate::join::{self, Action, Components, Format, Output, Rbac, Settings};
use crate::version;

/// A week: a lost token is useless after that, and the syncer renews its own after half of it.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(168 * 3600);
/// Servers give no shorter one.
const SHORTEST_LIFETIME: Duration = Duration::from_secs(600);
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);
/// A generous limit for the reference of an image.
const LONGEST_IMAGE: usize = 1024;

/// The settings from the arguments, files and the environment.
pub(super) fn check(name: String, raw: GenArgs) -> Result<Settings, UsageError> {
    let settings = read(name, raw).map_err(|why| UsageError::new(why).seen_from(COMMAND))?;
    let writes = settings.action != Action::Unregister && !settings.is_dry;
    if writes && let Err(error) = settings.output.check() {
        let path = match &settings.output {
            Output::Stdout => "-".to_owned(),
            Output::File(path) | Output::Folder(path) => path.display().to_string(),
        };
        let advice = match error.kind() {
            io::ErrorKind::IsADirectory => ": name a file, or add --format=systemd for the files of a service",
            _ => "",
        };
        let why = format!("-o {path}: cannot be written: {error}{advice}");
        return Err(UsageError::new(why).seen_from(COMMAND));
    }
    Ok(settings)
}

fn read(name: String, mut raw: GenArgs) -> Result<Settings, String> {
    join::id::check_name(&name).map_err(|why| format!("the name {name:?} {why}"))?;
    for label in &raw.labels {
        join::labels::check_label(label).map_err(|why| format!("--labels {label:?}: {why}"))?;
    }
    let action = match (raw.rotate, raw.unregister) {
        (true, true) => return Err("--rotate and --unregister contradict each other: give one".to_owned()),
        (true, false) => Action::Rotate,
        (false, true) => Action::Unregister,
        (false, false) => Action::Register,
    };
    let formats = [("manifest", Format::Manifest), ("systemd", Format::Systemd)];
    let format = chosen("--format", raw.format.as_deref(), formats)?.unwrap_or_default();
    if format == Format::Systemd {
        only_for_manifests(&raw)?;
    }
    let needs_image = action == Action::Register && format == Format::Manifest;
    if let Some(uid) = &raw.uid {
        join::id::check_uid(uid).map_err(|why| format!("--uid {uid:?}: {why}"))?;
    }
    let components = Components {
        is_ha: raw.ha,
        is_polled: raw.poll,
        is_metered: raw.metered,
    };
    let hub = hub(&mut raw)?;
    Ok(Settings {
        action,
        output: output(raw.output_file.as_deref(), action, format)?,
        image: image(raw.syncer_image.as_deref(), needs_image)?,
        qps: number("--qps", raw.qps)?,
        burst: number("--burst", raw.burst)?,
        replicas: replicas(raw.replicas.as_deref(), components.is_ha)?,
        rbac: chosen("--rbac", raw.rbac.as_deref(), Rbac::WORDS)?,
        lifetime: lifetime(raw.lifetime.as_deref())?,
        timeout: time("--timeout", raw.timeout.as_deref(), DEFAULT_TIMEOUT)?,
        hub_namespace: namespace("--kcp-namespace", raw.kcp_namespace.as_deref())?,
        namespace: namespace("--namespace", raw.namespace.as_deref())?,
        hub_url: hub_url(raw.hub_url.as_deref())?,
        hub,
        user_agent: version::user_agent(),
        mailbox: None,
        is_silent: false,
        name,
        uid: raw.uid,
        components,
        format,
        is_dry: raw.dry_run,
        now: logger::since_1970(),
    })
}

/// Refuses the flags that have no effect on the files of a service.
fn only_for_manifests(raw: &GenArgs) -> Result<(), String> {
    for (flag, is_given, why) in [
        ("--ha", raw.ha, "a machine runs one syncer"),
        ("--replicas", raw.replicas.is_some(), "a machine runs one syncer"),
        (
            "--syncer-image",
            raw.syncer_image.is_some(),
            "a service runs the binary",
        ),
    ] {
        if is_given {
            return Err(format!(
                "{flag}: has no effect with --format=systemd, since {why}: leave it out"
            ));
        }
    }
    Ok(())
}

/// The flags that messages about the hub's kubeconfig name.
const FLAGS: AdminFlags = AdminFlags {
    context: "--context",
    user: "--user",
    without: "name the hub's with --kubeconfig or KUBECONFIG, or give --server and --token",
};

/// Where the hub is, and the credentials for it, by kubectl's rules.
fn hub(raw: &mut GenArgs) -> Result<Admin, String> {
    Ok(Admin {
        flags: FLAGS,
        context: text("--context", raw.context.take())?,
        user: text("--user", raw.user.take())?,
        server: text("--server", raw.server.take())?,
        token: text("--token", raw.token.take())?,
        certificate_authority: text("--certificate-authority", raw.certificate_authority.take())?,
        insecure: raw.insecure_skip_tls_verify,
        tls_server_name: text("--tls-server-name", raw.tls_server_name.take())?,
        ..files(text("--kubeconfig", raw.kubeconfig.take())?)
    })
}

/// The files that kubectl would read.
fn files(given: Option<String>) -> Admin {
    if let Some(file) = given {
        return Admin {
            files: vec![file.into()],
            named_by: "--kubeconfig",
            must_exist: true,
            ..Admin::default()
        };
    }
    if let Some(list) = set("KUBECONFIG") {
        return Admin {
            files: env::split_paths(&list)
                .filter(|path| !path.as_os_str().is_empty())
                .collect(),
            named_by: "KUBECONFIG",
            ..Admin::default()
        };
    }
    let home = set("HOME").map(|home| PathBuf::from(home).join(".kube/config"));
    Admin {
        files: home.into_iter().collect(),
        named_by: "kubeconfig",
        ..Admin::default()
    }
}

/// A text that must not be empty if it is given.
fn text(flag: &str, value: Option<String>) -> Result<Option<String>, String> {
    match value {
        Some(text) if text.trim().is_empty() => Err(format!("{flag} is empty: leave it out, or give it a value")),
        other => Ok(other),
    }
}

/// One of a few words, if one is given.
fn chosen<T: Copy, const N: usize>(
    flag: &str,
    value: Option<&str>,
    known: [(&str, T); N],
) -> Result<Option<T>, String> {
    let Some(value) = value else { return Ok(None) };
    let found = known.iter().find(|(word, _)| *word == value);
    let words = || known.map(|(word, _)| word).join(" or ");
    let found = found.ok_or_else(|| format!("{flag} {value:?}: must be {}", words()))?;
    Ok(Some(found.1))
}

fn output(value: Option<&str>, action: Action, format: Format) -> Result<Output, String> {
    match (value, format) {
        (None, _) if action == Action::Unregister => Ok(Output::Stdout),
        // The command in the syncer's log has no `-o`.
        (None, Format::Manifest) if action == Action::Rotate => Ok(Output::Stdout),
        (None, Format::Manifest) => {
            Err("-o is missing: it must be the file to write, or - for standard output".to_owned())
        }
        (None, Format::Systemd) => Err("-o is missing: it must be the folder to write to".to_owned()),
        (Some(""), _) => Err("-o is empty: it must be the file to write, or - for standard output".to_owned()),
        (Some(path), _) if path.starts_with("--") => Err(format!(
            "-o has no value: {path} looks like a flag; a file of that name is ./{path}"
        )),
        (Some("-"), Format::Manifest) => Ok(Output::Stdout),
        (Some("-"), Format::Systemd) => Err("-o -: with --format=systemd it must be a folder".to_owned()),
        (Some(path), Format::Manifest) => Ok(Output::File(path.into())),
        (Some(path), Format::Systemd) => Ok(Output::Folder(path.into())),
    }
}

fn image(value: Option<&str>, is_needed: bool) -> Result<String, String> {
    let image = value.unwrap_or_default();
    let is_usual = |c: char| c.is_ascii_alphanumeric() || "-_./:@+[]".contains(c);
    match image {
        "" if is_needed => Err("--syncer-image is missing: it must be the image of the syncer".to_owned()),
        _ if image.len() > LONGEST_IMAGE || !image.chars().all(is_usual) => {
            Err(format!("--syncer-image {image:?}: cannot be the name of an image"))
        }
        _ => Ok(image.to_owned()),
    }
}

/// A number that the syncer accepts for the same flag.
fn number(flag: &str, value: Option<String>) -> Result<Option<String>, String> {
    let Some(value) = value else { return Ok(None) };
    let is_whole = flag == "--burst";
    let number: Option<f64> = value.parse().ok().filter(|number: &f64| number.is_finite());
    match number {
        Some(number) if is_whole && (number < 1.0 || value.parse::<u32>().is_err()) => {
            Err(format!("{flag} {value:?}: must be a whole number above 0"))
        }
        Some(number) if !is_whole && number > 0.0 && number < 0.001 => Err(format!(
            "{flag} {value:?}: must be at least 0.001, or negative for no limit"
        )),
        Some(_) => Ok(Some(value)),
        None => Err(format!("{flag} {value:?}: must be a number")),
    }
}

fn replicas(value: Option<&str>, is_ha: bool) -> Result<u8, String> {
    match (value, is_ha) {
        (Some(_), true) => Err("--replicas and --ha contradict each other: --ha means two".to_owned()),
        (None | Some("1"), _) => Ok(1),
        (Some("0"), false) => Ok(0),
        (Some(other), false) => Err(format!(
            "--replicas {other:?}: must be 0 or 1; --ha gives two, of which one is active"
        )),
    }
}

fn time(flag: &str, value: Option<&str>, default: Duration) -> Result<Duration, String> {
    let Some(text) = value else { return Ok(default) };
    duration::parse(text).ok_or_else(|| format!("{flag} {text:?}: must be a duration such as 90s, 5m or 168h"))
}

fn lifetime(value: Option<&str>) -> Result<Duration, String> {
    let lifetime = time("--lifetime", value, DEFAULT_LIFETIME)?;
    if lifetime < SHORTEST_LIFETIME {
        return Err(format!(
            "--lifetime {:?}: must be at least 10m, as servers ask for",
            value.unwrap_or_default()
        ));
    }
    Ok(lifetime)
}

fn namespace(flag: &str, value: Option<&str>) -> Result<Option<String>, String> {
    let Some(name) = value else { return Ok(None) };
    if join::labels::is_dns_label(name) {
        return Ok(Some(name.to_owned()));
    }
    let rule = "lowercase letters, digits and -, with a letter or digit at both ends, 63 at most";
    Err(format!("{flag} {name:?}: must be the name of a namespace: {rule}"))
}

fn hub_url(value: Option<&str>) -> Result<Option<http::Uri>, String> {
    let url = value.map(|text| server_url(text.trim())).transpose();
    url.map_err(|why| format!("--hub-url {why}"))
}

#[cfg(test)]
#[path = "gen_tests.rs"]
mod tests;
