//! Where an API server is and who we are to it: a kubeconfig file, or the pod that we run in.
//!
//! Promises: [`load`] either returns a configuration of which every named file could be read, or one sentence that says
//! what to correct. No message holds a token, a key or a value from a kubeconfig other than names, paths and URLs
//! without user information. Certificates are parsed later, in `tls`.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, Uri};
use kube::Config;
use kube::config::{
    AuthInfo, Cluster, InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError, LoadDataError, NamedAuthInfo,
};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

pub use error::AccessError;

use super::files::{self, TOKEN_LIMIT};

mod error;

/// Where a pod finds its service account.
const POD_FILES: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Where the access data of one side come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessSource {
    /// A kubeconfig file.
    Kubeconfig {
        /// The file; relative paths in it are relative to its folder.
        path: PathBuf,
        /// The context to use instead of `current-context`.
        context: Option<String>,
    },
    /// The service account of the pod that this process runs in.
    InCluster,
}

/// The access data of one side.
#[derive(Clone, Debug)]
pub struct Access {
    /// What kube needs.
    pub config: Config,
    /// The files that it was made from and that nobody else follows: the kubeconfig, CA, client certificate and key. A
    /// token file and the CA of a pod are followed where they are used.
    pub files: Vec<PathBuf>,
}

/// Loads the access data of one side and reads every file that they name, so that mistakes show at start.
///
/// Reads files and, for [`AccessSource::InCluster`], the environment; makes no request.
pub async fn load(source: &AccessSource) -> Result<Access, AccessError> {
    let access = match source {
        AccessSource::Kubeconfig { path, context } => from_file(path, context.as_deref()).await?,
        AccessSource::InCluster => {
            check_pod_files(Path::new(POD_FILES))?;
            let mut config = Config::incluster_env().map_err(in_cluster_error)?;
            config
                .default_namespace
                .truncate(config.default_namespace.trim_end().len());
            Access {
                config,
                files: Vec::new(),
            }
        }
    };
    check_credentials(&access.config.auth_info)?;
    Ok(access)
}

/// The server's URL for logs and messages: without user information and without a slash at the end.
pub fn server_for_people(config: &Config) -> String {
    let url = &config.cluster_url;
    let scheme = url.scheme_str().unwrap_or("http");
    let host = url.host().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{scheme}://{host}{port}{}", url.path().trim_end_matches('/'))
}

/// True if a token or password goes over a network that everybody on the way can read.
pub(super) fn shows_credentials(config: &Config) -> bool {
    let user = &config.auth_info;
    let has_secret = user.token.is_some() || user.token_file.is_some() || user.password.is_some();
    has_secret && config.cluster_url.scheme_str() == Some("http") && !is_this_machine(&config.cluster_url)
}

/// True for a URL of the machine that the syncer runs on.
pub(super) fn is_this_machine(url: &Uri) -> bool {
    let host = url.host().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse();
    host == "localhost" || address.is_ok_and(|address: IpAddr| address.is_loopback())
}

/// What kube reads without a look at what it is. A file that is missing is for kube to tell of.
fn check_pod_files(folder: &Path) -> Result<(), AccessError> {
    for field in ["ca.crt", "namespace", "token"] {
        let path = folder.join(field);
        match files::read(&path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(AccessError::FileUnreadable { field, path, source });
            }
            _ => {}
        }
    }
    Ok(())
}

async fn from_file(path: &Path, context: Option<&str>) -> Result<Access, AccessError> {
    let mut kubeconfig = read(path)?;
    let context = pick_context(&kubeconfig, path, context)?;
    let (cluster, user) = pick_entries(&mut kubeconfig, path, &context)?;
    tidy_cluster(cluster)?;
    check_server(cluster.server.as_deref())?;
    check_authority(cluster)?;
    let proxy_url = parse_proxy(cluster.proxy_url.as_deref())?;
    let mut files = vec![path.to_owned()];
    files.extend(cluster.certificate_authority.as_ref().map(PathBuf::from));
    if let Some(user) = user {
        let user = user.auth_info.get_or_insert_default();
        tidy_user(user);
        let named = [&user.client_certificate, &user.client_key];
        files.extend(named.into_iter().flatten().map(PathBuf::from));
    }
    let options = KubeConfigOptions {
        context: Some(context),
        ..KubeConfigOptions::default()
    };
    let loaded = Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = loaded.map_err(refused)?;
    // kube falls back to HTTPS_PROXY without a look at NO_PROXY; the environment is consulted in `connect` instead.
    config.proxy_url = proxy_url;
    Ok(Access { config, files })
}

/// Reads a kubeconfig file.
///
/// By way of a JSON value, because that makes the YAML parser a third of the size that kube's own way has: it is then
/// compiled for one type instead of for each.
fn read(path: &Path) -> Result<Kubeconfig, AccessError> {
    let unreadable = |source| AccessError::KubeconfigUnreadable {
        path: path.to_owned(),
        source,
    };
    let not_one = |words| AccessError::NotAKubeconfig {
        path: path.to_owned(),
        words,
    };
    let text = files::read_text(path).map_err(unreadable)?;
    let text = text.trim_start_matches('\u{feff}');
    let value: Value = serde_saphyr::from_str(text)
        // The default rendering shows the lines around the mistake, which may hold keys.
        .map_err(|error| not_one(without_values(&error.without_snippet().to_string())))?;
    // An empty file is an empty kubeconfig, whose faults are told later.
    let value = if value.is_null() {
        Value::Object(serde_json::Map::new())
    } else {
        value
    };
    let mut kubeconfig: Kubeconfig =
        serde_json::from_value(value).map_err(|error| not_one(without_values(&error.to_string())))?;
    if let Some(folder) = path.parent() {
        resolve_paths(&mut kubeconfig, folder);
    }
    Ok(kubeconfig)
}

/// Files that a kubeconfig names are relative to its own folder.
fn resolve_paths(kubeconfig: &mut Kubeconfig, folder: &Path) {
    let resolve = |path: &mut Option<String>| {
        if let Some(path) = path.as_mut().filter(|path| !path.is_empty()) {
            *path = folder.join(&*path).to_string_lossy().into_owned();
        }
    };
    for named in &mut kubeconfig.clusters {
        if let Some(cluster) = &mut named.cluster {
            resolve(&mut cluster.certificate_authority);
        }
    }
    for named in &mut kubeconfig.auth_infos {
        if let Some(user) = &mut named.auth_info {
            resolve(&mut user.client_certificate);
            resolve(&mut user.client_key);
            resolve(&mut user.token_file);
        }
    }
}

fn pick_context(kubeconfig: &Kubeconfig, path: &Path, wanted: Option<&str>) -> Result<String, AccessError> {
    let known: Vec<String> = kubeconfig.contexts.iter().map(|context| context.name.clone()).collect();
    if known.is_empty() && kubeconfig.clusters.is_empty() {
        let words = "it has neither contexts nor clusters".to_owned();
        return Err(AccessError::NotAKubeconfig {
            path: path.to_owned(),
            words,
        });
    }
    let current = kubeconfig.current_context.as_deref();
    let Some(name) = wanted.or(current).filter(|name| !name.is_empty()) else {
        return Err(AccessError::NoCurrentContext {
            path: path.to_owned(),
            known,
        });
    };
    if known.iter().any(|context| context == name) {
        return Ok(name.to_owned());
    }
    Err(AccessError::UnknownContext {
        path: path.to_owned(),
        context: name.to_owned(),
        known,
    })
}

/// The cluster and, if the context names one, the user of a context that exists.
fn pick_entries<'a>(
    kubeconfig: &'a mut Kubeconfig,
    path: &Path,
    context: &str,
) -> Result<(&'a mut Cluster, Option<&'a mut NamedAuthInfo>), AccessError> {
    let missing = |kind, name: &str| AccessError::MissingEntry {
        path: path.to_owned(),
        context: context.to_owned(),
        kind,
        name: name.to_owned(),
    };
    let body = kubeconfig.contexts.iter().find(|named| named.name == context);
    let body = body.and_then(|named| named.context.clone()).unwrap_or_default();
    let cluster = kubeconfig.clusters.iter_mut().find(|named| named.name == body.cluster);
    let cluster = cluster
        .and_then(|named| named.cluster.as_mut())
        .ok_or_else(|| missing("cluster", &body.cluster))?;
    let user = match body.user.as_deref() {
        None | Some("") => None,
        Some(name) => {
            let user = kubeconfig.auth_infos.iter_mut().find(|named| named.name == name);
            Some(user.ok_or_else(|| missing("user", name))?)
        }
    };
    Ok((cluster, user))
}

/// Treats empty values as absent, as client-go does; generated files are full of them.
fn tidy_cluster(cluster: &mut Cluster) -> Result<(), AccessError> {
    blank_to_none(&mut cluster.certificate_authority_data);
    no_file_to_none(&mut cluster.certificate_authority);
    blank_to_none(&mut cluster.tls_server_name);
    blank_to_none(&mut cluster.proxy_url);
    trim(&mut cluster.server);
    if cluster.server.is_none() {
        return Err(bad("server", "it is missing"));
    }
    Ok(())
}

fn tidy_user(user: &mut AuthInfo) {
    blank_to_none(&mut user.client_certificate_data);
    no_file_to_none(&mut user.client_certificate);
    no_file_to_none(&mut user.client_key);
    no_file_to_none(&mut user.token_file);
    blank_to_none(&mut user.username);
    blank_to_none(&mut user.impersonate);
    blank_to_none(&mut user.impersonate_uid);
    for secret in [&mut user.token, &mut user.client_key_data] {
        let trimmed = secret.as_ref().map(|value| value.expose_secret().trim());
        *secret = trimmed.filter(|value| !value.is_empty()).map(SecretString::from);
    }
}

fn trim(value: &mut Option<String>) {
    *value = value
        .take()
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty());
}

fn blank_to_none(value: &mut Option<String>) {
    if value.as_deref().is_some_and(|text| text.trim().is_empty()) {
        *value = None;
    }
}

/// kube has put the folder of the kubeconfig before an empty path; what ends in a slash is no file.
fn no_file_to_none(path: &mut Option<String>) {
    if path
        .as_deref()
        .is_some_and(|path| path.is_empty() || path.ends_with('/'))
    {
        *path = None;
    }
}

fn check_server(server: Option<&str>) -> Result<(), AccessError> {
    let server = server.unwrap_or_default();
    let shown = hide_userinfo(server);
    let url: Uri = server
        .parse()
        .map_err(|error| bad("server", format!("{shown:?}: {error}")))?;
    let why = match url.scheme_str() {
        Some("http" | "https") if url.authority().is_some_and(|it| it.as_str().contains('@')) => {
            "it must not hold a user name or password"
        }
        Some("http" | "https") if url.query().is_some() => "it must not have a query",
        Some("http" | "https") => return Ok(()),
        _ => "it must start with https:// or http://",
    };
    Err(bad("server", format!("{shown:?}: {why}")))
}

fn check_authority(cluster: &Cluster) -> Result<(), AccessError> {
    match (&cluster.certificate_authority_data, &cluster.certificate_authority) {
        (Some(data), _) => check_base64("certificate-authority-data", data),
        (None, Some(path)) => read_file("certificate-authority", path).map(drop),
        (None, None) => Ok(()),
    }
}

fn parse_proxy(proxy: Option<&str>) -> Result<Option<Uri>, AccessError> {
    // The value is not shown: whatever cannot be parsed may hold a password anywhere.
    let parse = |text: &str| {
        text.trim()
            .parse()
            .map_err(|error| bad("proxy-url", format!("{error}")))
    };
    proxy.map(parse).transpose()
}

/// Reads each file that the user entry names and looks at the form of each value.
fn check_credentials(user: &AuthInfo) -> Result<(), AccessError> {
    if let Some(token) = &user.token {
        check_token("token", token.expose_secret())?;
    } else if let Some(path) = &user.token_file {
        let bytes = read_file("tokenFile", path)?;
        let text = str::from_utf8(&bytes).unwrap_or("\0");
        check_token("tokenFile", text.trim())?;
    }
    let key_data = user.client_key_data.as_ref().map(SecretString::expose_secret);
    let certificate = check_data_or_file(
        ("client-certificate-data", user.client_certificate_data.as_deref()),
        ("client-certificate", user.client_certificate.as_deref()),
    )?;
    let key = check_data_or_file(
        ("client-key-data", key_data),
        ("client-key", user.client_key.as_deref()),
    )?;
    match (certificate, key) {
        (true, false) => Err(bad("client-certificate", "there is no client-key beside it")),
        (false, true) => Err(bad("client-key", "there is no client-certificate beside it")),
        _ => Ok(()),
    }
}

/// True when the value is given in one of the two ways.
fn check_data_or_file(
    data: (&'static str, Option<&str>),
    file: (&'static str, Option<&str>),
) -> Result<bool, AccessError> {
    match (data, file) {
        ((field, Some(data)), _) => check_base64(field, data).map(|()| true),
        (_, (field, Some(path))) => read_file(field, path).map(|_| true),
        _ => Ok(false),
    }
}

/// Whoever puts a token into a header must know that it fits: kube panics when an inline token does not.
fn check_token(field: &'static str, token: &str) -> Result<(), AccessError> {
    if token.is_empty() {
        return Err(bad(field, "it is empty"));
    }
    if token.len() > TOKEN_LIMIT {
        return Err(bad(field, "it is longer than any token"));
    }
    match HeaderValue::from_str(token) {
        Ok(_) => Ok(()),
        Err(_) => Err(bad(field, "it holds characters that no token has")),
    }
}

fn check_base64(field: &'static str, data: &str) -> Result<(), AccessError> {
    // The decoder's own words would quote a byte of the value.
    STANDARD
        .decode(data)
        .map(drop)
        .map_err(|_| bad(field, "it is not base64"))
}

fn read_file(field: &'static str, path: &str) -> Result<Vec<u8>, AccessError> {
    files::read(path).map_err(|source| AccessError::FileUnreadable {
        field,
        path: path.into(),
        source,
    })
}

fn bad(field: &'static str, why: impl Into<String>) -> AccessError {
    AccessError::BadField { field, why: why.into() }
}

fn refused(error: KubeconfigError) -> AccessError {
    match error {
        KubeconfigError::ParseCertificates(_) => bad("certificate-authority", "it is not a PEM file of certificates"),
        KubeconfigError::ParseProxyUrl(error) => bad("HTTPS_PROXY", error.to_string()),
        KubeconfigError::LoadCertificateAuthority(LoadDataError::ReadFile(source, path)) => {
            AccessError::FileUnreadable {
                field: "certificate-authority",
                path,
                source,
            }
        }
        other => AccessError::Refused(other),
    }
}

fn in_cluster_error(error: InClusterError) -> AccessError {
    const HOST: &str = "KUBERNETES_SERVICE_HOST";
    const PORT: &str = "KUBERNETES_SERVICE_PORT";
    match error {
        InClusterError::ReadEnvironmentVariable(_) => {
            let variable = if std::env::var_os(HOST).is_none() { HOST } else { PORT };
            AccessError::NotInPod { variable }
        }
        other => AccessError::InCluster(other),
    }
}

/// A URL that may not even parse, without what stands between `//` and the last `@` before the path.
fn hide_userinfo(url: &str) -> String {
    let start = url.find("//").map_or(0, |at| at + 2);
    let end = url[start..].find('/').map_or(url.len(), |at| start + at);
    match url[start..end].rfind('@') {
        Some(at) => format!("{}{}", &url[..start], &url[start + at + 1..]),
        None => url.to_owned(),
    }
}

/// One line of a parser's message, with the contents of double quotes, which are values from the file, left out.
fn without_values(words: &str) -> String {
    let mut out = String::with_capacity(words.len());
    let mut chars = words.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                while let Some(inner) = chars.next() {
                    match inner {
                        '\\' => drop(chars.next()),
                        '"' => break,
                        _ => {}
                    }
                }
                out.push_str("\"...\"");
            }
            '\n' | '\r' => out.push(' '),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests;
