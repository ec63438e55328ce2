//! Certificates for one server: its own CA, a serving certificate and client certificates, made when it starts.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate and its private key, both as PEM.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// The private key (PKCS #8).
    pub key: String,
}

impl Identity {
    /// What a server with this certificate speaks TLS by.
    pub fn tls(&self) -> ServerConfig {
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes()).expect("it was made just now");
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).expect("it was made just now");
        let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().expect("ring has them");
        let config = builder.with_no_client_auth().with_single_cert(vec![certificate], key);
        config.expect("they fit")
    }
}

/// A certificate authority.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// The CA certificate as PEM.
    pub certificate: String,
    /// The CA certificate as DER.
    pub der: Vec<u8>,
}

impl Authority {
    /// Makes a new CA called `common_name`.
    pub fn new(common_name: &str) -> Self {
        let mut params = params(Vec::new(), common_name, None);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("keys can be generated");
        let certificate = params.self_signed(&key).expect("the CA parameters are valid");
        Self {
            certificate: certificate.pem(),
            der: certificate.der().to_vec(),
            issuer: Issuer::new(params, key),
        }
    }

    /// A serving certificate for `hosts` (names and IP addresses).
    pub fn serving(&self, hosts: &[&str]) -> Identity {
        let hosts = hosts.iter().map(|&host| host.to_owned()).collect();
        self.sign(
            params(hosts, "kube-apiserver", None),
            ExtendedKeyUsagePurpose::ServerAuth,
        )
    }

    /// The same that is valid only in so many seconds.
    pub fn serving_in(&self, hosts: &[&str], seconds: u64) -> Identity {
        let hosts = hosts.iter().map(|&host| host.to_owned()).collect();
        let mut params = params(hosts, "kube-apiserver", None);
        params.not_before = rcgen::date_time_ymd(1970, 1, 1) + from_1970(seconds.cast_signed());
        self.sign(params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A client certificate: Kubernetes takes `user` from its CN and the group from its O.
    pub fn client(&self, user: &str, group: Option<&str>) -> Identity {
        self.sign(params(Vec::new(), user, group), ExtendedKeyUsagePurpose::ClientAuth)
    }

    /// A client certificate of a user that ends in so many days, or has ended before so many.
    pub fn client_until(&self, user: &str, days: i64) -> Identity {
        let mut params = params(Vec::new(), user, None);
        params.not_after = rcgen::date_time_ymd(1970, 1, 1) + from_1970(days * 86_400);
        self.sign(params, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(&self, mut params: CertificateParams, usage: ExtendedKeyUsagePurpose) -> Identity {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().expect("keys can be generated");
        let certificate = params
            .signed_by(&key, &self.issuer)
            .expect("the parameters are valid")
            .pem();
        Identity {
            certificate,
            key: key.serialize_pem(),
        }
    }
}

/// A private key and its public key, both as PEM, for service account tokens.
pub fn key_pair() -> (String, String) {
    let key = KeyPair::generate().expect("keys can be generated");
    (key.serialize_pem(), key.public_key_pem())
}

/// From 1970 to a moment that is so many seconds from now.
fn from_1970(seconds: i64) -> std::time::Duration {
    let seconds = u64::try_from(super::tokens::now() + seconds).expect("it is long after 1970");
    std::time::Duration::from_secs(seconds)
}

fn params(hosts: Vec<String>, common_name: &str, organization: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::new(hosts).expect("host names are ASCII");
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    if let Some(organization) = organization {
        name.push(DnType::OrganizationName, organization);
    }
    params.distinguished_name = name;
    params
}
