//! Where an API server is and with which credentials it is reached: from a kubeconfig file, or the pod that we run in.
//!
//! Promises: [`load`] either returns a configuration of which every named file could be read and every part is
//! plausible, or one sentence that names the side, the file, the entry and the field, and says what to correct. A
//! configuration without credentials, with which we would be `system:anonymous`, is refused: it is nearly always a
//! mistake. No message holds a token, a key or a value from a kubeconfig other than names, paths and URLs without user
//! information. Certificates are parsed later, in `tls`.

use std::env;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderValue, Uri};
use kube::Config;
use kube::config::{AuthInfo, Cluster, InClusterError};
use secrecy::{ExposeSecret as _, SecretString};

pub use authority::AuthorityFile;
pub use ends::Form;
pub use error::{AccessError, AccessPlace, BadField};
pub use kubeconfig::{Wanted, token_in};
pub(super) use url::check_authority;

use super::claims::Claims;
use super::files::{self, TOKEN_LIMIT};
use super::pem;
use crate::logging::log_line;
use error::Entry;
use kubeconfig::{Parts, User};

#[cfg(feature = "admin")]
pub mod admin;
mod authority;
mod ends;
mod error;
#[cfg(feature = "admin")]
mod exec;
mod fields;
mod kubeconfig;
mod login;
mod url;

/// Where a pod finds its service account.
const POD_FILES: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// What a user entry may hold to log in with.
const CREDENTIALS: &str = "a token, a tokenFile or a client-certificate with its client-key";

/// Where the access data of one side come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessSource {
    /// A kubeconfig file.
    Kubeconfig {
        /// The file; relative paths in it are relative to its folder.
        path: PathBuf,
        /// The context to use instead of `current-context`.
        context: Option<String>,
        /// What has named both.
        flags: Flags,
    },
    /// The service account of the pod that this process runs in.
    InCluster {
        /// The flag that would name a kubeconfig.
        flag: &'static str,
    },
}

/// The flags that name a kubeconfig and a context of it, for messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags {
    /// That of the file.
    pub kubeconfig: &'static str,
    /// That of the context.
    pub context: &'static str,
}

impl fmt::Display for AccessSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kubeconfig { path, flags, .. } => write!(f, "{}={}", flags.kubeconfig, path.display()),
            Self::InCluster { flag } => write!(f, "without {flag}, as a pod"),
        }
    }
}

/// Tokens that were renewed after the kubeconfig was written. Of these and the one in there, the one that was issued last
/// counts, as long as all belong to one account: another account, or another form of credentials, has to be written
/// into the kubeconfig.
#[derive(Clone, Debug, Default)]
pub struct Renewed {
    /// A kubeconfig with such a token; the file may be missing.
    pub file: Option<PathBuf>,
    /// A token that may not have been written anywhere yet.
    pub token: Option<SecretString>,
    /// The Secret that the kubeconfig is mounted from, for people.
    pub secret: Option<String>,
}

/// The access data of one side.
#[derive(Clone, Debug)]
pub struct Access {
    /// The server, and how it is reached.
    pub config: Config,
    /// The files that it was made from and that nothing else follows: the kubeconfig, CA, client certificate and key. A
    /// token file and the CA of a pod are followed where they are used.
    pub files: Vec<PathBuf>,
    /// For messages about what is found to be wrong with it later.
    pub place: AccessPlace,
    /// Where the CA of the server's certificate is or has to be written: field, entry and file.
    pub trust: String,
    /// The PEM of that CA, if it is in the kubeconfig itself.
    pub authority: Option<Vec<u8>>,
    /// Where that is written with which it logs in: field and file; empty for nothing.
    pub login: String,
}

/// What was loaded; its parts are those of [`Access`].
struct Loaded {
    config: Config,
    files: Vec<PathBuf>,
    trust: String,
    authority: Option<Vec<u8>>,
    login: String,
}

/// Loads the access data of one side and reads every file that they name, so that mistakes show at start.
///
/// Reads files and, for a pod, the environment; makes no request.
pub fn load(side: &str, source: &AccessSource, renewed: &Renewed) -> Result<Access, AccessError> {
    let mut place = AccessPlace::new(side, source.to_string());
    let loaded = match source {
        AccessSource::Kubeconfig { path, context, flags } => {
            let wanted = Wanted {
                context: context.as_deref(),
                flag: flags.context,
            };
            from_file(path, wanted, renewed, &mut place)
        }
        AccessSource::InCluster { flag } => from_pod(flag),
    };
    at(place, loaded)
}

/// What was loaded from there.
fn at(place: AccessPlace, loaded: Result<Loaded, BadField>) -> Result<Access, AccessError> {
    match loaded {
        Ok(loaded) => Ok(Access {
            config: loaded.config,
            files: loaded.files,
            place,
            trust: loaded.trust,
            authority: loaded.authority,
            login: loaded.login,
        }),
        Err(fault) => Err(place.error(fault)),
    }
}

/// A URL of an API server that somebody has typed. The error says what is wrong with it.
#[cfg(feature = "admin")]
pub fn server_url(text: &str) -> Result<Uri, String> {
    url::server(text)
}

/// The server's URL for logs and messages: without user information and without a slash at the end.
pub fn server_for_people(config: &Config) -> String {
    let url = &config.cluster_url;
    let scheme = url.scheme_str().unwrap_or("http");
    let host = url.host().unwrap_or_default();
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{scheme}://{host}{port}{}", url.path().trim_end_matches('/'))
}

/// True if a token or password would be sent over a network without encryption.
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

fn from_pod(flag: &str) -> Result<Loaded, BadField> {
    check_pod_files(Path::new(POD_FILES))?;
    let config = Config::incluster_env().map_err(|error| in_cluster_error(&error, flag))?;
    url::server(&config.cluster_url.to_string()).map_err(|why| BadField::new(POD_HOST, why))?;
    check_credentials(&config.auth_info)?;
    Ok(Loaded {
        config,
        files: Vec::new(),
        trust: format!("ca.crt in {POD_FILES}"),
        authority: None,
        login: format!("token in {POD_FILES}"),
    })
}

/// Checks the files that kube reads without checking them. A missing file is reported by kube.
fn check_pod_files(folder: &Path) -> Result<(), BadField> {
    for field in ["ca.crt", "namespace", "token"] {
        let path = folder.join(field);
        match files::read(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unreadable(field, &path, &error)),
            _ => {}
        }
    }
    Ok(())
}

fn from_file(path: &Path, wanted: Wanted<'_>, renewed: &Renewed, place: &mut AccessPlace) -> Result<Loaded, BadField> {
    let parts = Parts::read(path, wanted, place)?;
    let file = path.display().to_string();
    let mut loaded = from_parts(parts, &file, renewed, wanted.flag)?;
    loaded.files.insert(0, path.to_owned());
    Ok(loaded)
}

/// The configuration from the parts of a kubeconfig with the name `file`, and the files that they name. `flag` would name a
/// context.
fn from_parts(mut parts: Parts, file: &str, renewed: &Renewed, flag: &str) -> Result<Loaded, BadField> {
    let cluster = &parts.cluster;
    let server = cluster.server.as_deref().map(str::trim);
    let url = url::server(server.ok_or_else(|| bad("server", "it is missing"))?).map_err(|why| bad("server", why))?;
    let authority = read_ca(cluster)?;
    let root_cert = authority.as_ref().map(|(field, pem)| certificates(field, pem));
    let root_cert = root_cert.transpose()?;
    let proxy = cluster.proxy_url.as_deref();
    let proxy = proxy.map(|proxy| url::proxy(proxy.trim()).map_err(|why| bad("proxy-url", why)));
    let proxy_url = proxy.transpose()?;
    if proxy_url.is_none() {
        check_environment(|name| env::var(name).ok())?;
    }
    let trust = trust(cluster, file);
    let mut files = Vec::from_iter(cluster.certificate_authority.as_ref().map(PathBuf::from));
    check_user(parts.user.as_mut(), &url)?;
    let mut is_renewed_in_file = false;
    if let Some(user) = &mut parts.user {
        if let Some(token) = &mut user.info.token {
            is_renewed_in_file = renewed.replace(token, flag);
            files.extend(renewed.file.clone());
        }
        let named = [&user.info.client_certificate, &user.info.client_key];
        files.extend(named.into_iter().flatten().map(PathBuf::from));
    }
    let mut config = Config::new(url);
    config.root_cert = root_cert;
    config.proxy_url = proxy_url;
    config.accept_invalid_certs = cluster.insecure_skip_tls_verify.unwrap_or_default();
    config.tls_server_name = parts.cluster.tls_server_name;
    config.auth_info = parts.user.map(|user| user.info).unwrap_or_default();
    let login = login::login(&config.auth_info, file, renewed, is_renewed_in_file);
    Ok(Loaded {
        config,
        files,
        trust,
        authority: authority.map(|(_, pem)| pem),
        login,
    })
}

/// Where the kubeconfig names no proxy, that of the environment must be one: what cannot be read would be none.
fn check_environment(variable: impl Fn(&str) -> Option<String>) -> Result<(), BadField> {
    let given = ["HTTPS_PROXY", "https_proxy"].into_iter().filter_map(variable);
    match given
        .filter(|text| !text.is_empty())
        .map(|text| text.parse::<Uri>())
        .next()
    {
        Some(Err(error)) => Err(bad("HTTPS_PROXY", error.to_string())),
        _ => Ok(()),
    }
}

impl Renewed {
    /// Replaces an older token with the newest of them. True if that is the one in the file.
    fn replace(&self, token: &mut SecretString, flag: &str) -> bool {
        let in_file = self.file.as_deref().and_then(|file| token_in_file(file, flag));
        let mut is_in_file = false;
        let all = in_file.map(|token| (token, true)).into_iter();
        for (other, is_of_file) in all.chain(self.token.clone().map(|token| (token, false))) {
            let claims = |token: &SecretString| Claims::of(token.expose_secret());
            let both = claims(&other).zip(claims(token));
            let is_usable = check_token("token", other.expose_secret()).is_ok();
            if is_usable && both.is_some_and(|(other, token)| other.is_newer_than(&token)) {
                *token = other;
                is_in_file = is_of_file;
            }
        }
        is_in_file
    }
}

/// The token in a file that we have written, if it is there. One that cannot be used is logged: it may hold the last
/// token that is valid.
fn token_in_file(path: &Path, flag: &str) -> Option<SecretString> {
    let found = match files::read_text(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => Err(format!("it cannot be read: {error}")),
        Ok(text) => token_in(&text, Wanted { context: None, flag }),
    };
    match found {
        Ok(token) => Some(token),
        Err(why) => {
            log_line!(
                Warn,
                KubeconfigUnusable,
                "the file of renewed credentials cannot be used, the kubeconfig alone counts",
                file = path.display(),
                error = why
            );
            None
        }
    }
}

/// Where a cluster entry has its CA, or could have it.
fn trust(cluster: &Cluster, path: &str) -> String {
    match (&cluster.certificate_authority_data, &cluster.certificate_authority) {
        (None, Some(file)) => format!("{file}, the certificate-authority of {path}"),
        (Some(_), _) => format!("certificate-authority-data of {path}"),
        (None, None) => {
            format!("certificate-authority-data of {path}, which has none, so that the system's roots count")
        }
    }
}

/// Checks the user, if there is one. Without a user, the server must be one that needs no credentials, such as `kubectl
/// proxy`, which has no TLS; API servers always have.
fn check_user(user: Option<&mut User>, server: &Uri) -> Result<(), BadField> {
    let Some(user) = user else {
        let why = format!("it is missing, and system:anonymous is not allowed: name one that has {CREDENTIALS}");
        return match server.scheme_str() {
            Some("http") => Ok(()),
            _ => Err(BadField::of(Entry::Context, "user", why)),
        };
    };
    for secret in [&mut user.info.token, &mut user.info.client_key_data] {
        *secret = secret
            .take()
            .map(|value| SecretString::from(value.expose_secret().trim()));
    }
    if check_credentials(&user.info)? {
        return Ok(());
    }
    let given = |field: &str| user.fields.iter().any(|name| name == field);
    if let Some(field) = ["token", "tokenFile"].into_iter().find(|field| given(field)) {
        return Err(bad(
            field,
            format!("it is empty, and the user entry has no other credentials, which are {CREDENTIALS}"),
        ));
    }
    let found = match user.fields.as_slice() {
        [] => "is empty".to_owned(),
        fields => format!("has no credentials, only {}", fields.join(", ")),
    };
    let why = format!("the entry {found}, and system:anonymous is not allowed: it needs {CREDENTIALS}");
    Err(BadField::of(Entry::User, "", why))
}

/// The CA of a cluster entry, if it has one: the field that it is in, and its PEM.
fn read_ca(cluster: &Cluster) -> Result<Option<(&'static str, Vec<u8>)>, BadField> {
    let (field, pem) = match (&cluster.certificate_authority_data, &cluster.certificate_authority) {
        (Some(data), _) => (
            "certificate-authority-data",
            base64_of("certificate-authority-data", data)?,
        ),
        (None, Some(path)) => ("certificate-authority", read_file("certificate-authority", path)?),
        (None, None) => return Ok(None),
    };
    Ok(Some((field, pem)))
}

/// The certificates of a CA.
fn certificates(field: &'static str, pem: &[u8]) -> Result<Vec<Vec<u8>>, BadField> {
    let found = pem::certificates(pem).map_err(|_| bad(field, "it holds no PEM of certificates"))?;
    if found.is_empty() {
        return Err(bad(field, "it holds no certificate"));
    }
    Ok(found.iter().map(|it| it.to_vec()).collect())
}

/// Reads each file that the user entry names and checks the form of each value. False if there are no credentials.
fn check_credentials(user: &AuthInfo) -> Result<bool, BadField> {
    for (field, given) in [
        ("exec", user.exec.is_some()),
        ("auth-provider", user.auth_provider.is_some()),
    ] {
        if given {
            let advice = "edge-syncer gen makes a kubeconfig with a token for a hub";
            return Err(bad(field, format!("it is not supported: use {CREDENTIALS}; {advice}")));
        }
    }
    let has_password = match (&user.username, &user.password) {
        (Some(_), Some(_)) => true,
        (None, None) => false,
        (Some(_), None) => return Err(bad("username", "there is no password beside it")),
        (None, Some(_)) => return Err(bad("password", "there is no username beside it")),
    };
    let mut has_token = true;
    if let Some(token) = &user.token {
        check_token("token", token.expose_secret())?;
    } else if let Some(path) = &user.token_file {
        let bytes = read_file("tokenFile", path)?;
        let text = str::from_utf8(&bytes).unwrap_or("\0");
        check_token("tokenFile", text.trim())?;
    } else {
        has_token = false;
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
        (Some(field), None) => Err(bad(field, "there is no client-key beside it")),
        (None, Some(field)) => Err(bad(field, "there is no client-certificate beside it")),
        (certificate, _) => Ok(has_password || has_token || certificate.is_some()),
    }
}

/// Checks a value that is given inline or as a file.
fn check_data_or_file(
    data: (&'static str, Option<&str>),
    file: (&'static str, Option<&str>),
) -> Result<Option<&'static str>, BadField> {
    match (data, file) {
        ((field, Some(data)), _) => base64_of(field, data).map(|_| Some(field)),
        (_, (field, Some(path))) => read_file(field, path).map(|_| Some(field)),
        _ => Ok(None),
    }
}

/// Checks that a token can be sent in a header.
fn check_token(field: &'static str, token: &str) -> Result<(), BadField> {
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

fn base64_of(field: &'static str, data: &str) -> Result<Vec<u8>, BadField> {
    // The decoder's own words would quote a byte of the value.
    STANDARD.decode(data).map_err(|_| bad(field, "it is not base64"))
}

fn read_file(field: &'static str, path: &str) -> Result<Vec<u8>, BadField> {
    files::read(path).map_err(|error| unreadable(field, Path::new(path), &error))
}

fn unreadable(field: &str, path: &Path, error: &io::Error) -> BadField {
    bad(field, format!("cannot read {}: {error}", path.display()))
}

fn bad(field: &str, why: impl Into<String>) -> BadField {
    BadField::new(field, why)
}

const POD_HOST: &str = "KUBERNETES_SERVICE_HOST";
const POD_PORT: &str = "KUBERNETES_SERVICE_PORT";

fn in_cluster_error(error: &InClusterError, flag: &str) -> BadField {
    match error {
        InClusterError::ReadEnvironmentVariable(_) => {
            let variable = if env::var_os(POD_HOST).is_none() {
                POD_HOST
            } else {
                POD_PORT
            };
            bad(variable, format!("it is not set, so this is no pod: give {flag}"))
        }
        InClusterError::ParseClusterPort(error) => bad(POD_PORT, error.to_string()),
        InClusterError::ParseClusterUrl(error) => bad(POD_HOST, error.to_string()),
        InClusterError::ReadDefaultNamespace(error) => {
            unreadable("namespace", &Path::new(POD_FILES).join("namespace"), error)
        }
        InClusterError::ReadCertificateBundle(error) => {
            unreadable("ca.crt", &Path::new(POD_FILES).join("ca.crt"), error)
        }
        InClusterError::ParseCertificates(_) => bad("ca.crt", "it holds no PEM of certificates"),
    }
}

#[cfg(test)]
mod tests;
