//! What stands before an API server and answers some requests itself, as load balancers and gateways do: HTTP/1.1 without
//! TLS to the syncer, and a connection of its own to the server.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use http::header::{AUTHORIZATION, CONTENT_TYPE, DATE, HOST, HeaderValue};
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

use crate::support::{Credential, KubeconfigParts, Server, unique_suffix};

/// What it answers itself to a path and an `authorization` header.
type Rule = Box<dyn Fn(&str, &str) -> Option<(u16, &'static str)> + Send>;

/// A running front; dropping it ends it.
pub(crate) struct Front {
    url: String,
    shared: Arc<Shared>,
    task: AbortHandle,
}

struct Shared {
    rule: Mutex<Rule>,
    /// What it makes of the `Date` of answers that pass.
    date: Mutex<Option<&'static str>>,
    /// How many requests it has had.
    count: Mutex<usize>,
}

impl Drop for Front {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Front {
    /// Lets everything pass.
    pub(crate) async fn of(server: &Server) -> Self {
        Self::through(server.client()).await
    }

    /// Lets everything pass, but for who is asking.
    pub(crate) async fn without_credentials(server: &Server) -> Self {
        let mut config = kube::Config::new(server.url().parse().expect("it is a URL"));
        config.accept_invalid_certs = true;
        Self::through(kube::Client::try_from(config).expect("the configuration is complete")).await
    }

    async fn through(client: kube::Client) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared {
            rule: Mutex::new(Box::new(|_, _| None)),
            date: Mutex::default(),
            count: Mutex::new(0),
        });
        let its = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (client, shared) = (client.clone(), Arc::clone(&its));
                let service = service_fn(move |request| answer(client.clone(), Arc::clone(&shared), request));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Self {
            url: format!("http://{address}"),
            shared,
            task: task.abort_handle(),
        }
    }

    /// A kubeconfig that leads to it, with its token in a file of the same name and `.token`.
    pub(crate) fn kubeconfig(&self, server: &Server) -> PathBuf {
        let parts = KubeconfigParts {
            server: Some(self.url.clone()),
            credential: Credential::TokenFile,
            ..KubeconfigParts::default()
        };
        server.write_kubeconfig(&format!("front-{}.kubeconfig", unique_suffix()), &parts)
    }

    /// What passes everything on to it over TLS. Gives its port.
    pub(crate) async fn behind_tls(&self, tls: ServerConfig) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let (acceptor, front) = (TlsAcceptor::from(Arc::new(tls)), self.url.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, front) = (acceptor.clone(), front.clone());
                tokio::spawn(async move {
                    let mut stream = acceptor.accept(stream).await?;
                    let mut front = TcpStream::connect(front.trim_start_matches("http://")).await?;
                    tokio::io::copy_bidirectional(&mut stream, &mut front).await
                });
            }
        });
        port
    }

    /// From now on it answers so.
    pub(crate) fn answers(&self, rule: impl Fn(&str, &str) -> Option<(u16, &'static str)> + Send + 'static) {
        *self.shared.rule.lock().expect("nothing panics while it is locked") = Box::new(rule);
    }

    /// From now on everything passes.
    pub(crate) fn passes(&self) {
        self.answers(|_, _| None);
    }

    /// From now on the answers of the server have this `Date`, or its own.
    pub(crate) fn has_date(&self, date: Option<&'static str>) {
        *self.shared.date.lock().expect("nothing panics while it is locked") = date;
    }

    /// How many requests there have been.
    pub(crate) fn requests(&self) -> usize {
        *self.shared.count.lock().expect("nothing panics while it is locked")
    }
}

async fn answer(
    client: kube::Client,
    shared: Arc<Shared>,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    *shared.count.lock().expect("nothing panics while it is locked") += 1;
    let authorization = request.headers().get(AUTHORIZATION);
    let authorization = authorization.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let own = {
        let rule = shared.rule.lock().expect("nothing panics while it is locked");
        rule(request.uri().path(), authorization)
    };
    let refuse = |status: u16, page: &str| {
        let body = Body::from(page.as_bytes().to_vec());
        let kind = if page.starts_with('<') {
            "text/html; charset=utf-8"
        } else {
            "text/plain"
        };
        let response = Response::builder().status(status).header(CONTENT_TYPE, kind).body(body);
        Ok(response.expect("it is a valid status"))
    };
    if let Some((status, page)) = own {
        return refuse(status, page);
    }
    let (mut head, body) = request.into_parts();
    head.headers.remove(AUTHORIZATION);
    head.headers.remove(HOST);
    let Ok(body) = body.collect().await else {
        return refuse(400, "the request broke off");
    };
    match client
        .send(Request::from_parts(head, Body::from(body.to_bytes())))
        .await
    {
        Ok(mut response) => {
            let date = *shared.date.lock().expect("nothing panics while it is locked");
            if let Some(date) = date {
                let date = HeaderValue::from_static(date);
                response.headers_mut().insert(DATE, date);
            }
            Ok(response)
        }
        Err(_) => refuse(502, "<html>bad gateway</html>"),
    }
}
