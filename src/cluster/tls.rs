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
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::time::Instant;

use super::access::BadField;
use super::certificate;
use super::files;
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
    let provider = Arc::new(ring::default_provider());
    // Without TLS nothing is trusted, and the roots of the system, a few hundred kilobytes, are not loaded.
    let verifier = if config.cluster_url.scheme_str() == Some("http") {
        None
    } else {
        Some(verifier(config, &provider)?)
    };
    build(&provider, verifier, identity(config)?)
}

/// TLS settings for an `https://` proxy: its certificate has to be known to the system or to the cluster's CA, even
/// with `insecure-skip-tls-verify`, and it never sees our client certificate.
pub(super) fn for_proxy(config: &Config) -> Result<ClientConfig, BadField> {
    let provider = Arc::new(ring::default_provider());
    let mut roots = system_roots().unwrap_or_else(|_| RootCertStore::empty());
    let given = config.root_cert.iter().flatten();
    add_roots(&mut roots, given.map(|der| CertificateDer::from(der.as_slice())));
    if roots.is_empty() {
        return Err(no_roots());
    }
    build(&provider, Some(webpki(roots, &provider)?), None)
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn build(
    provider: &Arc<CryptoProvider>,
    verifier: Option<Arc<dyn ServerCertVerifier>>,
    identity: Option<Identity>,
) -> Result<ClientConfig, BadField> {
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| BadField::new("", format!("TLS cannot be set up: {error}")))?;
    let builder = match verifier {
        Some(verifier) => builder.dangerous().with_custom_certificate_verifier(verifier),
        None => builder.with_root_certificates(RootCertStore::empty()),
    };
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

fn verifier(config: &Config, provider: &Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, BadField> {
    if config.accept_invalid_certs {
        return Ok(Arc::new(AcceptAll {
            provider: provider.clone(),
        }));
    }
    if let Some(path) = &config.root_cert_file {
        return Ok(Arc::new(FollowedCa::open(path, provider)?));
    }
    let Some(ders) = &config.root_cert else {
        return Ok(webpki(system_roots()?, provider)?);
    };
    let mut roots = RootCertStore::empty();
    add_roots(&mut roots, ders.iter().map(|der| CertificateDer::from(der.as_slice())));
    Ok(webpki(not_empty(roots)?, provider)?)
}

fn webpki(roots: RootCertStore, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, BadField> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| BadField::new(AUTHORITY, error.to_string()))
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
    let key = rustls_pemfile::private_key(&mut key.1.as_slice())
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
    let mut reader = pem;
    let all: Result<Vec<_>, _> = rustls_pemfile::certs(&mut reader).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        Ok(_) => Err(BadField::new(field, "it holds no certificate")),
        Err(_) => Err(BadField::new(field, "it is not PEM")),
    }
}

/// Trusts the CA certificates in a file, and follows the file when it is replaced: a pod outlives its cluster's CA.
/// Connections that are open stay open; a file that cannot be used leaves the last good one in force.
struct FollowedCa {
    path: PathBuf,
    provider: Arc<CryptoProvider>,
    last: Mutex<Trusted>,
}

struct Trusted {
    verifier: Arc<WebPkiServerVerifier>,
    pem: Vec<u8>,
    read_at: Instant,
}

impl FollowedCa {
    fn open(path: &Path, provider: &Arc<CryptoProvider>) -> Result<Self, BadField> {
        let unreadable = |error| BadField::new(AUTHORITY, format!("cannot read {}: {error}", path.display()));
        let pem = files::read(path).map_err(unreadable)?;
        let verifier = Self::parse(&pem, provider)?;
        let last = Mutex::new(Trusted {
            verifier,
            pem,
            read_at: Instant::now(),
        });
        Ok(Self {
            path: path.to_owned(),
            provider: provider.clone(),
            last,
        })
    }

    fn parse(pem: &[u8], provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, BadField> {
        let mut roots = RootCertStore::empty();
        add_roots(&mut roots, certificates(AUTHORITY, pem)?.into_iter());
        webpki(not_empty(roots)?, provider)
    }

    fn current(&self) -> Arc<WebPkiServerVerifier> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.read_at.elapsed() >= CA_MAX_AGE {
            last.read_at = Instant::now();
            if let Ok(pem) = files::read(&self.path)
                && pem != last.pem
            {
                match Self::parse(&pem, &self.provider) {
                    Ok(verifier) => {
                        log_line!(Info, CaReplaced, "the CA file was replaced", path = self.path.display());
                        last.verifier = verifier;
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
        last.verifier.clone()
    }
}

impl fmt::Debug for FollowedCa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FollowedCa")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl ServerCertVerifier for FollowedCa {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.current()
            .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// `insecure-skip-tls-verify`: any certificate will do. Signatures are still checked, so that the peer at least holds
/// the key of what it shows.
#[derive(Debug)]
struct AcceptAll {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AcceptAll {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
