//! At which version a side stores the objects of a type: discovery has that as a hash alone, the same one at each version
//! at which it serves the type (apiserver, `StorageVersionHash`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::SupportedCipherSuite::Tls13;
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;

/// So many bytes of a SHA-256.
const LENGTH: usize = 8;

/// True if the hash is known, and not that of this group, version and kind.
pub(super) fn elsewhere(hash: &str, here: [&str; 3]) -> bool {
    // The TLS library has SHA-256, which nothing else here needs.
    let Tls13(suite) = TLS13_AES_128_GCM_SHA256 else {
        return false;
    };
    let sha = suite.common.hash_provider.hash(here.join("/").as_bytes());
    let here = sha.as_ref().get(..LENGTH).map(|begin| STANDARD.encode(begin));
    !hash.is_empty() && here.is_some_and(|here| here != hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    // What API servers of Kubernetes 1.36 say.
    #[test]
    fn the_hash_of_the_stored_version_is_known_from_others() {
        for (hash, here, expected) in [
            ("xPOwRZ+Yhw8=", ["", "v1", "Pod"], false),
            ("8aSe+NMegvE=", ["apps", "v1", "Deployment"], false),
            ("qwQve8ut294=", ["autoscaling", "v2", "HorizontalPodAutoscaler"], false),
            ("qwQve8ut294=", ["autoscaling", "v1", "HorizontalPodAutoscaler"], true),
            ("", ["example.org", "v1", "Gauge"], false),
            ("no hash", ["example.org", "v1", "Gauge"], true),
        ] {
            assert_eq!(elsewhere(hash, here), expected, "{hash} {here:?}");
        }
    }
}
