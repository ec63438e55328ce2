//! TLS settings of a connection: whom we trust, and our client certificate.
//!
//! Promises: certificates are checked unless the kubeconfig says `insecure-skip-tls-verify`, and those of a proxy always; TLS 1.2 and 1.3 only; the
//! crypto provider is passed explicitly, so nothing global is installed. The CA file of a pod is followed when it is
//! replaced. A client certificate is read once, at start.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::Config;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::time::Instant;

use super::access::BadField;
use super::certificate;
use super::files;
use super::pem;
use crate::logging::log_line;

pub(super) mod words;

/// How often the CA file of a pod is read, at most. It is read for a handshake only, and those are rare.
const CA_MAX_AGE: Duration = Duration::from_secs(1);

/// TLS sessions remembered per side. There is one server per side; the default of 256 is for browsers.
const SESSIONS: usize = 4;

/// The field of a kubeconfig for the CA, when it is not known any more whether it was given as data or as a file.
const AUTHORITY: &str = "certificate-authority";

fn no_roots() -> BadField {
    BadField::new(AUTHORITY, "it is missing, and this system has no root certificates")
}

/// TLS settings for the API server itself. ALPN is left to the connector.
pub(super) fn for_server(config: &Config) -> Result<ClientConfig, BadField> {
    // Without TLS nothing is trusted, and the roots of the system, a few hundred kilobytes, are not loaded.
    let trusted = if config.cluster_url.scheme_str() == Some("http") {
        Trusted::These(Arc::new(RootCertStore::empty()))
    } else {
        trusted(config)?
    };
    build(trusted, identity(config)?)
}

/// TLS settings for an `https://` proxy: its certificate has to be known to the system or to the cluster's CA, even
/// with `insecure-skip-tls-verify`, and it never sees our client certificate.
pub(super) fn for_proxy(config: &Config) -> Result<ClientConfig, BadField> {
    let mut roots = system_roots().unwrap_or_else(|_| RootCertStore::empty());
    let given = config.root_cert.iter().flatten();
    add_roots(&mut roots, given.map(|der| CertificateDer::from(der.as_slice())));
    if roots.is_empty() {
        return Err(no_roots());
    }
    build(Trusted::These(Arc::new(roots)), None)
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn build(trusted: Trusted, identity: Option<Identity>) -> Result<ClientConfig, BadField> {
    let provider = Arc::new(ring::default_provider());
    let algorithms = provider.signature_verification_algorithms;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| BadField::new("", format!("TLS cannot be set up: {error}")))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier { trusted, algorithms }));
    let mut config = match identity {
        Some((chain, key)) => {
            let refused = |error| {
                BadField::new(
                    "client-key",
                    format!("it does not go with the client certificate: {error}"),
                )
            };
            builder.with_client_auth_cert(chain, key).map_err(refused)?
        }
        None => builder.with_no_client_auth(),
    };
    config.resumption = Resumption::in_memory_sessions(SESSIONS);
    Ok(config)
}

fn trusted(config: &Config) -> Result<Trusted, BadField> {
    if config.accept_invalid_certs {
        return Ok(Trusted::Everybody);
    }
    if let Some(path) = &config.root_cert_file {
        return Ok(Trusted::File(FollowedCa::open(path)?));
    }
    let Some(ders) = &config.root_cert else {
        return Ok(Trusted::These(Arc::new(system_roots()?)));
    };
    let mut roots = RootCertStore::empty();
    add_roots(&mut roots, ders.iter().map(|der| CertificateDer::from(der.as_slice())));
    Ok(Trusted::These(Arc::new(not_empty(roots)?)))
}

/// Adds what can be parsed. A bundle may hold certificates of forms that this library does not know, beside the right
/// one.
fn add_roots<'a>(roots: &mut RootCertStore, ders: impl Iterator<Item = CertificateDer<'a>>) {
    let (_, ignored) = roots.add_parsable_certificates(ders);
    if ignored > 0 {
        log_line!(
            Debug,
            CaPartlyUnusable,
            "some CA certificates cannot be used",
            count = ignored
        );
    }
}

fn not_empty(roots: RootCertStore) -> Result<RootCertStore, BadField> {
    if roots.is_empty() {
        return Err(BadField::new(AUTHORITY, "it holds no usable certificate"));
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, BadField> {
    let mut roots = RootCertStore::empty();
    add_roots(&mut roots, rustls_native_certs::load_native_certs().certs.into_iter());
    if roots.is_empty() { Err(no_roots()) } else { Ok(roots) }
}

/// The client certificate and key of the user entry, if it has them.
fn identity(config: &Config) -> Result<Option<Identity>, BadField> {
    let user = &config.auth_info;
    let certificate = pem(
        ("client-certificate-data", user.client_certificate_data.as_deref()),
        ("client-certificate", user.client_certificate.as_deref()),
    )?;
    let key_data = user.client_key_data.as_ref().map(SecretString::expose_secret);
    let key = pem(
        ("client-key-data", key_data),
        ("client-key", user.client_key.as_deref()),
    )?;
    let (Some(certificate), Some(key)) = (certificate, key) else {
        return Ok(None);
    };
    let chain = certificates(certificate.0, &certificate.1)?;
    let malformed = |why| BadField::new(key.0, why);
    let key = pem::key(&key.1)
        .map_err(|_| malformed("it is not PEM"))?
        .ok_or_else(|| malformed("it holds no private key in PKCS#8, PKCS#1 or SEC1 form"))?;
    Ok(Some((chain, key)))
}

/// When the client certificate of the user entry ends, in seconds since 1970, if that can be read.
pub(super) fn end_of_identity(config: &Config) -> Option<u64> {
    let (chain, _) = identity(config).ok()??;
    certificate::end_of(chain.first()?)
}

/// A value of one of two fields.
type Given<'a> = (&'static str, Option<&'a str>);

/// PEM text from inline data, which have precedence, or from a file; with the field that it is from.
fn pem(data: Given<'_>, file: Given<'_>) -> Result<Option<(&'static str, Vec<u8>)>, BadField> {
    match (data, file) {
        ((field, Some(data)), _) => match STANDARD.decode(data.trim()) {
            Ok(bytes) => Ok(Some((field, bytes))),
            Err(_) => Err(BadField::new(field, "it is not base64")),
        },
        (_, (field, Some(path))) => match files::read(path) {
            Ok(bytes) => Ok(Some((field, bytes))),
            Err(error) => Err(BadField::new(field, format!("cannot read {path}: {error}"))),
        },
        _ => Ok(None),
    }
}

/// At least one certificate, or an error.
fn certificates(field: &str, pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, BadField> {
    match pem::certificates(pem) {
        Ok(all) if !all.is_empty() => Ok(all),
        Ok(_) => Err(BadField::new(field, "it holds no certificate")),
        Err(_) => Err(BadField::new(field, "it is not PEM")),
    }
}

/// The CA certificates in a file, which is followed when it is replaced: a pod outlives its cluster's CA. Connections that
/// are open stay open; a file that cannot be used leaves the last good one in force.
struct FollowedCa {
    path: PathBuf,
    last: Mutex<ReadCa>,
}

struct ReadCa {
    roots: Arc<RootCertStore>,
    pem: Vec<u8>,
    read_at: Instant,
}

impl FollowedCa {
    fn open(path: &Path) -> Result<Self, BadField> {
        let unreadable = |error| BadField::new(AUTHORITY, format!("cannot read {}: {error}", path.display()));
        let pem = files::read(path).map_err(unreadable)?;
        let roots = Self::parse(&pem)?;
        let last = Mutex::new(ReadCa {
            roots,
            pem,
            read_at: Instant::now(),
        });
        Ok(Self {
            path: path.to_owned(),
            last,
        })
    }

    fn parse(pem: &[u8]) -> Result<Arc<RootCertStore>, BadField> {
        let mut roots = RootCertStore::empty();
        add_roots(&mut roots, certificates(AUTHORITY, pem)?.into_iter());
        not_empty(roots).map(Arc::new)
    }

    fn current(&self) -> Arc<RootCertStore> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.read_at.elapsed() >= CA_MAX_AGE {
            last.read_at = Instant::now();
            if let Ok(pem) = files::read(&self.path)
                && pem != last.pem
            {
                match Self::parse(&pem) {
                    Ok(roots) => {
                        log_line!(Info, CaReplaced, "the CA file was replaced", path = self.path.display());
                        last.roots = roots;
                    }
                    Err(error) => {
                        log_line!(
                            Warn,
                            CaUnusable,
                            "the CA file cannot be used, the last one remains in force",
                            path = self.path.display(),
                            error = error
                        );
                    }
                }
                // Also after a failure, so that it is logged once and not every minute.
                last.pem = pem;
            }
        }
        Arc::clone(&last.roots)
    }
}

/// Whose certificates are accepted.
enum Trusted {
    /// Those of these authorities.
    These(Arc<RootCertStore>),
    /// Those of the authorities in a file.
    File(FollowedCa),
    /// `insecure-skip-tls-verify`: any certificate will do. Signatures are still checked, so that the peer at least holds
    /// the key of what it shows.
    Everybody,
}

/// Checks the certificate of a server, with the functions of rustls. Its own verifier also knows lists of revoked
/// certificates, of which there are none here, and which would be 20 kB of the binary.
struct Verifier {
    trusted: Trusted,
    algorithms: WebPkiSupportedAlgorithms,
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").finish_non_exhaustive()
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let roots = match &self.trusted {
            Trusted::Everybody => return Ok(ServerCertVerified::assertion()),
            Trusted::These(roots) => Arc::clone(roots),
            Trusted::File(ca) => ca.current(),
        };
        let certificate = ParsedCertificate::try_from(end_entity)?;
        verify_server_cert_signed_by_trust_anchor(&certificate, &roots, intermediates, now, self.algorithms.all)?;
        verify_server_name(&certificate, server_name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
