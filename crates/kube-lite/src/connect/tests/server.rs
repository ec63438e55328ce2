//! A certificate authority, an API server that answers everything, and a proxy, all on this machine.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A CA and a certificate by it for `localhost`, `127.0.0.1` and `hub.example`, usable for both sides.
pub(super) struct Pki {
    pub(super) ca_pem: String,
    pub(super) ca_der: Vec<u8>,
    pub(super) leaf_pem: String,
    pub(super) leaf_der: Vec<u8>,
    pub(super) key: KeyPair,
}

impl Pki {
    pub(super) fn new(names: &[&str]) -> Self {
        Self::of("a CA", names, |_| {})
    }

    /// Those of a CA of this name, with a certificate that is changed so.
    pub(super) fn of(ca_name: &str, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Self {
        let ca_key = KeyPair::generate().unwrap();
        let mut ca = CertificateParams::new(Vec::new()).unwrap();
        ca.distinguished_name.push(DnType::CommonName, ca_name);
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca_cert = ca.self_signed(&ca_key).unwrap();
        let issuer = Issuer::new(ca, ca_key);
        let key = KeyPair::generate().unwrap();
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut leaf = CertificateParams::new(names).unwrap();
        change(&mut leaf);
        let leaf = leaf.signed_by(&key, &issuer).unwrap();
        Self {
            ca_pem: ca_cert.pem(),
            ca_der: ca_cert.der().to_vec(),
            leaf_pem: leaf.pem(),
            leaf_der: leaf.der().to_vec(),
            key,
        }
    }

    pub(super) fn server_config(&self, alpn: &[&[u8]], clients: Option<&Pki>) -> ServerConfig {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone());
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(pki) => {
                let mut roots = rustls::RootCertStore::empty();
                roots.add(pki.ca_der.clone().into()).unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let key = PrivateKeyDer::Pkcs8(self.key.serialize_der().into());
        let mut config = builder
            .with_single_cert(vec![self.leaf_der.clone().into()], key)
            .unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        config
    }
}

/// What the server saw of one request.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) version: Version,
    pub(super) path: String,
    pub(super) agent: String,
    pub(super) authorization: String,
    pub(super) peer_certificate: Option<Vec<u8>>,
}

pub(super) type Log = Arc<Mutex<Vec<Seen>>>;

fn text(request: &Request<Incoming>, name: &str) -> String {
    request
        .headers()
        .get(name)
        .map(|value| value.to_str().unwrap().to_owned())
        .unwrap_or_default()
}

/// A body that never says anything, as a watch of a type in which nothing happens.
fn silence() -> BoxBody<Bytes, Infallible> {
    BodyExt::boxed(StreamBody::new(futures_util::stream::pending()))
}

async fn answer<S>(stream: S, h2: bool, peer: Option<Vec<u8>>, log: Log, streams: u32)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        log.lock().unwrap().push(Seen {
            version: request.version(),
            path: request.uri().path().to_owned(),
            agent: text(&request, "user-agent"),
            authorization: text(&request, "authorization"),
            peer_certificate: peer.clone(),
        });
        if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
            return std::future::ready(Ok(Response::new(silence())));
        }
        let body = match request.uri().path() {
            "/big" => Bytes::from(vec![b' '; 4 * 1024 * 1024]),
            _ => Bytes::from_static(b"{\"major\":\"1\",\"minor\":\"36\"}"),
        };
        std::future::ready(Ok::<_, Infallible>(Response::new(BodyExt::boxed(Full::new(body)))))
    });
    let io = TokioIo::new(stream);
    // The client may go away at any time: that is the test's end, not its failure.
    if h2 {
        let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        builder.max_concurrent_streams(streams);
        let _ = builder.serve_connection(io, service).await;
    } else {
        let _ = hyper::server::conn::http1::Builder::new()
            .serve_connection(io, service)
            .await;
    }
}

pub(super) async fn serve(tls: Option<ServerConfig>) -> (SocketAddr, Log) {
    let (address, log, _) = serve_limited(tls, 200).await;
    (address, log)
}

/// A server that allows so many streams on one connection; and how many connections it has.
pub(super) async fn serve_limited(tls: Option<ServerConfig>, streams: u32) -> (SocketAddr, Log, Arc<AtomicUsize>) {
    let connections = Arc::new(AtomicUsize::new(0));
    let open = Arc::clone(&connections);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let log = Log::default();
    let theirs = log.clone();
    tokio::spawn(async move {
        let acceptor = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
        while let Ok((tcp, _)) = listener.accept().await {
            let Some(acceptor) = acceptor.clone() else {
                tokio::spawn(answer(tcp, false, None, theirs.clone(), streams));
                continue;
            };
            let Ok(tls) = acceptor.accept(tcp).await else {
                continue;
            };
            let session = tls.get_ref().1;
            let h2 = session.alpn_protocol() == Some(b"h2");
            let peer = session.peer_certificates().map(|chain| chain[0].to_vec());
            let (theirs, open) = (theirs.clone(), Arc::clone(&open));
            open.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                answer(tls, h2, peer, theirs, streams).await;
                open.fetch_sub(1, Ordering::Relaxed);
            });
        }
    });
    (address, log, connections)
}

/// A proxy that takes CONNECT, with TLS or without, and notes the heads of the requests.
pub(super) async fn serve_proxy(tls: Option<ServerConfig>) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let heads = Arc::new(Mutex::new(Vec::new()));
    let theirs = heads.clone();
    tokio::spawn(async move {
        let acceptor = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
        while let Ok((tcp, _)) = listener.accept().await {
            match acceptor.clone() {
                None => drop(tokio::spawn(relay(tcp, theirs.clone()))),
                Some(acceptor) => {
                    if let Ok(tls) = acceptor.accept(tcp).await {
                        tokio::spawn(relay(tls, theirs.clone()));
                    }
                }
            }
        }
    });
    (address, heads)
}

async fn relay<S>(mut client: S, heads: Arc<Mutex<Vec<String>>>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    // The name means nothing here; every test server is on this machine.
    let port = head
        .split_whitespace()
        .nth(1)
        .unwrap()
        .rsplit_once(':')
        .unwrap()
        .1
        .to_owned();
    heads.lock().unwrap().push(head);
    let mut server = TcpStream::connect(format!("127.0.0.1:{port}")).await.unwrap();
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
}
