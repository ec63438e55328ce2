//! What PEM files hold. rustls-pemfile, which is unmaintained upstream, is used here alone.

use std::io;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// All certificates.
pub(super) fn certificates(mut pem: &[u8]) -> io::Result<Vec<CertificateDer<'static>>> {
    rustls_pemfile::certs(&mut pem).collect()
}

/// The first private key.
pub(super) fn key(mut pem: &[u8]) -> io::Result<Option<PrivateKeyDer<'static>>> {
    rustls_pemfile::private_key(&mut pem)
}
