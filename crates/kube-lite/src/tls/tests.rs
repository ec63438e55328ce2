use std::fs;

use rcgen::{CertificateParams, DnType, KeyPair};

use super::*;

fn certificate(name: &str) -> (String, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    (params.self_signed(&key).unwrap().pem(), key)
}

fn config() -> Config {
    Config::new("https://hub.example".parse().unwrap())
}

fn words(result: Result<ClientConfig, BadField>) -> String {
    result.err().map(|error| error.to_string()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn follows_a_replaced_ca_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.crt");
    fs::write(&path, certificate("one").0).unwrap();
    let ca = FollowedCa::open(&path).unwrap();
    let first = ca.current();

    fs::write(&path, certificate("two").0).unwrap();
    tokio::time::advance(CA_MAX_AGE / 2).await;
    assert!(Arc::ptr_eq(&ca.current(), &first));
    tokio::time::advance(CA_MAX_AGE / 2).await;
    let second = ca.current();
    assert!(!Arc::ptr_eq(&second, &first));

    for contents in ["", "no certificate", "-----BEGIN CERTIFICATE-----\n!\n"] {
        fs::write(&path, contents).unwrap();
        tokio::time::advance(CA_MAX_AGE).await;
        assert!(Arc::ptr_eq(&ca.current(), &second));
    }
    fs::remove_file(&path).unwrap();
    tokio::time::advance(CA_MAX_AGE).await;
    assert!(Arc::ptr_eq(&ca.current(), &second));
}

#[test]
fn says_which_certificate_is_bad() {
    let mut empty = config();
    empty.root_cert = Some(Vec::new());
    assert_eq!(
        words(for_server(&empty)),
        "certificate-authority: it holds no usable certificate"
    );
    empty.root_cert = Some(vec![vec![1, 2, 3]]);
    assert_eq!(
        words(for_server(&empty)),
        "certificate-authority: it holds no usable certificate"
    );
    let mut gone = config();
    gone.root_cert_file = Some("/nonexistent/ca.crt".into());
    assert_eq!(
        words(for_server(&gone)),
        "certificate-authority: cannot read /nonexistent/ca.crt: No such file or directory (os error 2)"
    );
}

#[test]
fn needs_no_roots_without_tls() {
    let mut plain = Config::new("http://127.0.0.1:8080".parse().unwrap());
    plain.root_cert = Some(Vec::new());
    assert!(for_server(&plain).is_ok());
}

/// Sets the client certificate and key of a configuration that trusts anybody.
fn check_identity(certificate: &str, key: &str) -> String {
    let mut config = config();
    config.accept_invalid_certs = true;
    config.auth_info.client_certificate_data = Some(STANDARD.encode(certificate));
    config.auth_info.client_key_data = Some(STANDARD.encode(key).into());
    words(for_server(&config))
}

#[test]
fn takes_keys_of_each_pem_form() {
    let (certificate, key) = certificate("client");
    assert_eq!(check_identity(&certificate, &key.serialize_pem()), "");
    // The same key as SEC1, which is the OCTET STRING inside the PKCS#8 form: openssl's "BEGIN EC PRIVATE KEY".
    let pkcs8 = key.serialize_der();
    let at = pkcs8.windows(2).position(|pair| pair == [0x30, 0x6b]).unwrap();
    let sec1 = STANDARD.encode(&pkcs8[at..]);
    let sec1 = format!("-----BEGIN EC PRIVATE KEY-----\n{sec1}\n-----END EC PRIVATE KEY-----\n");
    assert_eq!(check_identity(&certificate, &sec1), "");
}

#[test]
fn refuses_bad_identities() {
    let (one, key) = certificate("client");
    let (_, other) = certificate("other");
    assert_eq!(
        check_identity("", &key.serialize_pem()),
        "client-certificate-data: it holds no certificate"
    );
    let no_key = "client-key-data: it holds no private key in PKCS#8, PKCS#1 or SEC1 form";
    assert_eq!(check_identity(&one, &one), no_key);
    let mismatch = check_identity(&one, &other.serialize_pem());
    assert!(
        mismatch.starts_with("client-key: it does not go with the client certificate: "),
        "{mismatch}"
    );
}
