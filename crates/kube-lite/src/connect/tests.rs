use std::error::Error;
use std::fs;
use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt as _;
use hyper::Version;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::ApiServer as _;
use crate::pieces::Pieces;
use crate::real::RealServer;
use server::{Pki, serve, serve_proxy};

mod ending;
mod server;
mod streams;

/// One request with this configuration: the minor version that the server says, or the whole error chain.
async fn ask(config: &Config) -> Result<String, String> {
    let connection = connect(config, "edge-syncer/test").map_err(|error| chain(&error))?;
    version(&connection).await
}

async fn version(connection: &Connection) -> Result<String, String> {
    let request = Request::get("/version").body(Bytes::new()).unwrap();
    let request = connection.outgoing.complete(request).unwrap();
    let answer = connection.lanes.send(request).await.map_err(|error| chain(&error))?;
    let body = answer.into_body().collect().await.map_err(|error| chain(&error))?;
    let version: serde_json::Value = serde_json::from_slice(&body.to_bytes()).unwrap();
    Ok(version["minor"].as_str().unwrap().to_owned())
}

fn chain(error: &dyn Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        words = format!("{words}: {cause}");
        source = cause.source();
    }
    words
}

fn https(address: SocketAddr, pki: &Pki) -> Config {
    let mut config = Config::new(format!("https://{address}").parse().unwrap());
    config.root_cert = Some(vec![pki.ca_der.clone()]);
    config
}

const BOTH: [&[u8]; 2] = [b"h2", b"http/1.1"];

#[tokio::test]
async fn speaks_http2_when_offered_and_http1_otherwise() {
    let pki = Pki::new(&["127.0.0.1"]);
    for (alpn, expected) in [
        (&BOTH[..], Version::HTTP_2),
        (&BOTH[1..], Version::HTTP_11),
        (&[], Version::HTTP_11),
    ] {
        let (address, log) = serve(Some(pki.server_config(alpn, None))).await;
        assert_eq!(ask(&https(address, &pki)).await.unwrap(), "36");
        let seen = log.lock().unwrap().clone();
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].version, expected);
        assert_eq!(seen[0].path, "/version");
        assert_eq!(seen[0].agent, "edge-syncer/test");
        assert_eq!(seen[0].authorization, "");
    }
}

#[tokio::test]
async fn shares_one_http2_connection_among_requests() {
    let pki = Pki::new(&["127.0.0.1"]);
    let (address, log) = serve(Some(pki.server_config(&BOTH, None))).await;
    let connection = connect(&https(address, &pki), "edge-syncer/test").unwrap();
    version(&connection).await.unwrap();
    let many = (0..20).map(|_| version(&connection));
    futures_util::future::try_join_all(many).await.unwrap();
    assert_eq!(log.lock().unwrap().len(), 21);
}

#[tokio::test]
async fn answers_while_many_streams_are_stalled() {
    let pki = Pki::new(&["127.0.0.1"]);
    let (address, log) = serve(Some(pki.server_config(&BOTH, None))).await;
    let config = https(address, &pki);
    let client = http_client(server_connector(&config).unwrap(), Kept::Yes);
    let get = |path: &str| {
        let url = format!("https://{address}{path}");
        client.request(Request::get(url).body(Pieces::of(Bytes::new())).unwrap())
    };
    let mut stalled = Vec::new();
    for _ in 0..100 {
        stalled.push(get("/big").await.unwrap());
    }
    let answer = async {
        let body = get("/version").await.unwrap().into_body();
        body.collect().await.unwrap()
    };
    let body = tokio::time::timeout(Duration::from_secs(10), answer).await;
    let body = body.expect("the connection's window is not used up");
    assert!(body.to_bytes().ends_with(b"}"));
    assert_eq!(log.lock().unwrap().len(), 101);
}

#[tokio::test]
async fn keeps_the_path_of_the_server_url() {
    let (address, log) = serve(None).await;
    for url in [
        format!("http://{address}/clusters/x"),
        format!("http://{address}/clusters/x/"),
    ] {
        ask(&Config::new(url.parse().unwrap())).await.unwrap();
    }
    let paths: Vec<String> = log.lock().unwrap().iter().map(|seen| seen.path.clone()).collect();
    assert_eq!(paths, ["/clusters/x/version", "/clusters/x/version"]);
}

#[tokio::test]
async fn sends_the_credentials_of_the_user_entry() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    fs::write(&file, "from-file\n").unwrap();
    let (address, log) = serve(None).await;
    let mut config = Config::new(format!("http://{address}").parse().unwrap());
    config.auth_info.token_file = Some(file.display().to_string());
    ask(&config).await.unwrap();
    config.auth_info.token = Some("inline".to_owned().into());
    ask(&config).await.unwrap();
    let seen: Vec<String> = log
        .lock()
        .unwrap()
        .iter()
        .map(|seen| seen.authorization.clone())
        .collect();
    assert_eq!(seen, ["Bearer from-file", "Bearer inline"]);
}

#[tokio::test]
async fn checks_the_server_certificate() {
    let pki = Pki::new(&["127.0.0.1"]);
    let named = Pki::new(&["hub.example"]);
    let (address, _) = serve(Some(pki.server_config(&BOTH, None))).await;
    let (named_address, _) = serve(Some(named.server_config(&BOTH, None))).await;

    let error = ask(&https(address, &named)).await.unwrap_err();
    assert!(error.contains("invalid peer certificate"), "{error}");
    let mut insecure = https(address, &named);
    insecure.accept_invalid_certs = true;
    assert_eq!(ask(&insecure).await.unwrap(), "36");

    let error = ask(&https(named_address, &named)).await.unwrap_err();
    assert!(error.contains("certificate not valid for name"), "{error}");
    let mut renamed = https(named_address, &named);
    renamed.tls_server_name = Some("hub.example".to_owned());
    assert_eq!(ask(&renamed).await.unwrap(), "36");
    renamed.tls_server_name = Some("not a name".to_owned());
    let error = ask(&renamed).await.unwrap_err();
    assert_eq!(
        error,
        "tls-server-name: \"not a name\" is neither a name nor an address"
    );
}

/// What people read when a request fails.
async fn complaint(config: &Config) -> String {
    let server = RealServer(connect(config, "edge-syncer/test").unwrap());
    let request = Request::get("/version").body(Bytes::new()).unwrap();
    match server.send(request).await {
        Ok(response) => panic!("answered with {}", response.status),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn says_which_step_failed_and_what_the_other_side_said() {
    let pki = Pki::new(&["127.0.0.1"]);
    let user = Pki::new(&["someone"]);
    let both: &[&[u8]] = &BOTH;
    let (address, _) = serve(Some(pki.server_config(both, None))).await;
    let (strict, _) = serve(Some(pki.server_config(both, Some(&user)))).await;
    let (plain, _) = serve(None).await;
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let mut nowhere = https(address, &pki);
    nowhere.cluster_url = "https://hub.invalid".parse().unwrap();
    for (config, expected) in [
        (nowhere, "dns error: failed to lookup address information: "),
        (
            https(nobody, &pki),
            "tcp connect error: Connection refused (os error 111)",
        ),
        (https(address, &user), "invalid peer certificate: "),
        (
            https(plain, &pki),
            "received corrupt message of type InvalidContentType",
        ),
        (https(strict, &pki), "received fatal alert: CertificateRequired"),
    ] {
        let words = complaint(&config).await;
        assert!(words.contains(expected), "{words}");
        assert!(
            !words.contains("ServiceError") && !words.contains("https://docs"),
            "{words}"
        );
    }
}

#[tokio::test]
async fn says_what_is_wrong_with_a_certificate_with_its_dates_and_names() {
    let names: &[&str] = &["127.0.0.1"];
    let good = Pki::of("the CA", names, |_| {});
    let namesake = Pki::of("the CA", names, |_| {});
    let unknown = Pki::of("another CA", names, |_| {});
    let expired = Pki::of("the CA", names, |leaf| {
        leaf.not_after = rcgen::date_time_ymd(2020, 2, 29);
    });
    let early = Pki::of("the CA", names, |leaf| {
        leaf.not_before = rcgen::date_time_ymd(3000, 1, 1);
    });
    let elsewhere = Pki::new(&["hub.example", "10.0.0.1"]);
    for (server, trusted, expected) in [
        (&unknown, &good, "invalid peer certificate: UnknownIssuer"),
        (&namesake, &good, "invalid peer certificate: BadSignature"),
        (
            &expired,
            &expired,
            "certificate expired: it was valid until 2020-02-29T00:00:00Z, and the clock of this machine says 20",
        ),
        (
            &early,
            &early,
            "certificate not valid yet: it will be from 3000-01-01T00:00:00Z, and the clock of this machine says 20",
        ),
        (
            &elsewhere,
            &elsewhere,
            "certificate not valid for name \"127.0.0.1\"; it is for hub.example, 10.0.0.1",
        ),
    ] {
        let (address, _) = serve(Some(server.server_config(&BOTH, None))).await;
        let words = complaint(&https(address, trusted)).await;
        assert!(words.contains(expected), "{words}");
    }
}

/// A server that gives every request this answer.
async fn answering(answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    address
}

#[tokio::test]
async fn a_proxy_that_refuses_and_a_page_in_the_place_of_an_object_are_reported_as_what_they_are() {
    for (answer, expected) in [
        (
            "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
            "tunnel error: proxy authorization required",
        ),
        ("HTTP/1.1 403 Forbidden\r\n\r\n", "tunnel error: unsuccessful"),
    ] {
        let mut config = Config::new("https://hub.example".parse().unwrap());
        config.root_cert = Some(vec![Pki::new(&[]).ca_der]);
        let proxy = answering(answer).await;
        config.proxy_url = format!("http://me:secret@{proxy}").parse().ok();
        let words = complaint(&config).await;
        assert!(words.contains(expected), "{words}");
        assert_eq!(proxy_for_people(&config), format!(" through the proxy http://{proxy}"));
    }
    let page = "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 22\r\n\r\n<title>Sign in</title>";
    let config = Config::new(format!("http://{}", answering(page).await).parse().unwrap());
    assert_eq!(
        complaint(&config).await,
        "not an answer of a Kubernetes API: a web page: <title>Sign in</title>"
    );
}

#[tokio::test(start_paused = true)]
async fn a_server_that_accepts_and_says_nothing_is_given_up_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = https(silent.local_addr().unwrap(), &Pki::new(&["127.0.0.1"]));
    assert_eq!(complaint(&config).await, "connected, but no TLS handshake within 28 s");
}

#[tokio::test]
async fn trusts_the_ca_file_of_a_pod() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.crt");
    let pki = Pki::new(&["127.0.0.1"]);
    fs::write(&file, &pki.ca_pem).unwrap();
    let (address, _) = serve(Some(pki.server_config(&BOTH, None))).await;
    let mut config = https(address, &Pki::new(&["127.0.0.1"]));
    config.root_cert_file = Some(file);
    assert_eq!(ask(&config).await.unwrap(), "36");
}

#[tokio::test]
async fn presents_the_client_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let pki = Pki::new(&["127.0.0.1"]);
    let user = Pki::new(&["someone"]);
    let (address, log) = serve(Some(pki.server_config(&BOTH, Some(&user)))).await;
    assert!(ask(&https(address, &pki)).await.is_err());

    let mut inline = https(address, &pki);
    inline.auth_info.client_certificate_data = Some(STANDARD.encode(&user.leaf_pem));
    inline.auth_info.client_key_data = Some(STANDARD.encode(user.key.serialize_pem()).into());
    ask(&inline).await.unwrap();

    let mut files = https(address, &pki);
    for (name, contents) in [("cert", user.leaf_pem.clone()), ("key", user.key.serialize_pem())] {
        fs::write(folder.path().join(name), contents).unwrap();
    }
    files.auth_info.client_certificate = Some(folder.path().join("cert").display().to_string());
    files.auth_info.client_key = Some(folder.path().join("key").display().to_string());
    ask(&files).await.unwrap();
    let log = log.lock().unwrap();
    assert_eq!(log.len(), 2);
    assert!(
        log.iter()
            .all(|seen| seen.peer_certificate.as_ref() == Some(&user.leaf_der))
    );
}

#[tokio::test]
async fn goes_through_the_proxy_of_the_kubeconfig() {
    let pki = Pki::new(&["hub.example", "127.0.0.1"]);
    let (address, log) = serve(Some(pki.server_config(&BOTH, None))).await;
    let (plain, plain_heads) = serve_proxy(None).await;
    let (secure, secure_heads) = serve_proxy(Some(pki.server_config(&[], None))).await;

    let mut config = https(address, &pki);
    config.cluster_url = format!("https://hub.example:{}", address.port()).parse().unwrap();
    for (proxy, heads) in [
        (format!("http://me:p%40ss@{plain}"), &plain_heads),
        (format!("https://{secure}"), &secure_heads),
    ] {
        config.proxy_url = Some(proxy.parse().unwrap());
        assert_eq!(ask(&config).await.unwrap(), "36", "{proxy}");
        let head = heads.lock().unwrap()[0].clone();
        assert!(
            head.starts_with(&format!("CONNECT hub.example:{} HTTP/1.1\r\n", address.port())),
            "{head}"
        );
        let auth = format!("Proxy-Authorization: Basic {}\r\n", STANDARD.encode("me:p@ss"));
        assert_eq!(head.contains(&auth), proxy.contains('@'), "{head}");
    }
    assert!(log.lock().unwrap().iter().all(|seen| seen.version == Version::HTTP_2));

    // `insecure-skip-tls-verify` does not apply to the proxy.
    let mut insecure = config.clone();
    insecure.accept_invalid_certs = true;
    assert_eq!(ask(&insecure).await.unwrap(), "36");
    insecure.root_cert = None;
    let tunnels = secure_heads.lock().unwrap().len();
    assert!(ask(&insecure).await.is_err());
    assert_eq!(secure_heads.lock().unwrap().len(), tunnels);

    config.proxy_url = Some("ftp://proxy".parse().unwrap());
    let error = ask(&config).await.unwrap_err();
    assert_eq!(
        error,
        "proxy-url: it must be a URL with http://, https://, socks5:// or socks5h://"
    );
}

#[tokio::test]
async fn goes_through_a_socks_proxy() {
    let (address, log) = serve(None).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut config = Config::new("http://hub.example".parse().unwrap());
    config.proxy_url = format!("socks5://{}", listener.local_addr().unwrap()).parse().ok();
    let proxy = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut greeting = [0; 3];
        client.read_exact(&mut greeting).await.unwrap();
        client.write_all(&[5, 0]).await.unwrap();
        let mut request = [0; 18];
        client.read_exact(&mut request).await.unwrap();
        client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
        let mut server = TcpStream::connect(address).await.unwrap();
        tokio::spawn(async move {
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        });
        request
    });
    assert_eq!(ask(&config).await.unwrap(), "36");
    assert_eq!(&proxy.await.unwrap(), b"\x05\x01\x00\x03\x0bhub.example\x00\x50");
    assert_eq!(log.lock().unwrap().len(), 1);
}

#[test]
fn takes_proxies_from_the_environment_as_go_does() {
    let environment = Matcher::builder()
        .https("http://secure-proxy:3128")
        .http("http://plain-proxy:3128")
        .no("10.0.0.0/8,.svc")
        .build();
    for (server, expected) in [
        ("https://hub.example", Some("http://secure-proxy:3128/")),
        ("http://hub.example", Some("http://plain-proxy:3128/")),
        ("https://10.1.2.3", None),
        ("https://kubernetes.default.svc", None),
        ("https://localhost:6443", None),
        ("https://127.0.0.1:6443", None),
        ("https://[::1]:6443", None),
    ] {
        let config = Config::new(server.parse().unwrap());
        let found = proxy(&config, &environment)
            .unwrap()
            .map(|proxy| proxy.uri().to_string());
        assert_eq!(found.as_deref(), expected, "{server}");
    }
}

#[test]
fn adds_the_port_that_a_url_implies() {
    for (url, expected) in [
        ("http://a/b", "http://a:80/b"),
        ("https://a/b", "https://a:443/b"),
        ("https://[::1]", "https://[::1]:443/"),
        ("http://a:8080/", "http://a:8080/"),
    ] {
        assert_eq!(with_scheme_port(&url.parse().unwrap()).to_string(), expected);
    }
    assert_eq!(
        with_port(&"socks5://p".parse().unwrap(), SOCKS_PORT).to_string(),
        "socks5://p:1080/"
    );
}
