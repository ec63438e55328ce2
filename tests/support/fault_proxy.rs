//! A proxy between the syncer and API servers that breaks links as real ones break (toxiproxy).
//!
//! Each [`Link`] is a port of its own in front of one server. It counts nothing and knows nothing of TLS; the servers'
//! certificates are for 127.0.0.1, whatever the port.

use std::path::PathBuf;
use std::time::Duration;

use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};

use super::kubeconfig::KubeconfigParts;
use super::launch;
use super::process::{Folder, Leashed};
use super::server::Server;
use super::story::SOON;
use super::{eventually, unique_suffix};

/// A running proxy. Dropping it cuts all of its links.
pub struct FaultProxy {
    client: Client,
    // In this order, so that on drop the program goes before its folder.
    _process: Leashed,
    _folder: Folder,
}

impl FaultProxy {
    /// Starts a proxy without links. It belongs to the current tokio runtime.
    pub async fn start() -> Self {
        let folder = Folder::create("faults");
        let port = launch::free_port();
        let process = launch::toxiproxy(folder.path(), port);
        let url = format!("http://127.0.0.1:{port}");
        let config = kube::Config::new(url.parse().expect("our own URL is valid"));
        let client = Client::try_from(config).expect("plain HTTP needs no settings");
        eventually("the fault proxy answers", SOON, async || {
            ask(&client, Method::GET, "/version", None).await
        })
        .await;
        Self {
            client,
            _process: process,
            _folder: folder,
        }
    }

    /// A new link to a server; it works.
    pub async fn link(&self, to: &Server) -> Link {
        let link = Link {
            client: self.client.clone(),
            name: format!("{}-{}", to.name(), unique_suffix()),
            port: launch::free_port(),
        };
        let upstream = to.url().trim_start_matches("https://");
        let body = json!({
            "name": link.name, "listen": format!("127.0.0.1:{}", link.port), "upstream": upstream, "enabled": true,
        });
        link.tell(Method::POST, "/proxies", Some(&body)).await;
        link
    }
}

/// A link to a server that can be broken.
pub struct Link {
    client: Client,
    name: String,
    port: u16,
}

impl Link {
    /// Where it listens, as the URL of an API server.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// A kubeconfig that leads to `server` over this link, for user `admin`.
    pub fn kubeconfig(&self, server: &Server) -> PathBuf {
        self.kubeconfig_with(server, KubeconfigParts::default())
    }

    /// The kubeconfig that `parts` describes, over this link.
    pub fn kubeconfig_with(&self, server: &Server, parts: KubeconfigParts) -> PathBuf {
        let parts = KubeconfigParts {
            server: Some(self.url()),
            ..parts
        };
        server.write_kubeconfig(&format!("{}.kubeconfig", self.name), &parts)
    }

    /// Delays everything that the server says.
    pub async fn delay(&self, latency: Duration) {
        let latency = u64::try_from(latency.as_millis()).expect("tests wait for less");
        self.add("latency", "downstream", &json!({"latency": latency})).await;
    }

    /// Lets no more pass than this, in each direction.
    pub async fn narrow(&self, kilobytes_a_second: u32) {
        for direction in ["upstream", "downstream"] {
            self.add("bandwidth", direction, &json!({"rate": kilobytes_a_second}))
                .await;
        }
    }

    /// Swallows everything silently, on connections that are open and on new ones: neither side notices.
    pub async fn swallow(&self) {
        for direction in ["upstream", "downstream"] {
            self.add("timeout", direction, &json!({"timeout": 0})).await;
        }
    }

    /// Resets every connection at the next byte.
    pub async fn reset(&self) {
        self.add("reset_peer", "downstream", &json!({"timeout": 0})).await;
    }

    /// Ends all connections, and refuses new ones.
    pub async fn cut(&self) {
        self.enable(false).await;
    }

    /// Lets everything pass as if nothing had been. Connections that have swallowed something end.
    pub async fn heal(&self) {
        self.enable(true).await;
        let toxics = self
            .tell(Method::GET, &format!("/proxies/{}/toxics", self.name), None)
            .await;
        let toxics: Value = serde_json::from_str(&toxics).expect("the fault proxy speaks JSON");
        for toxic in toxics.as_array().into_iter().flatten() {
            let name = toxic["name"].as_str().expect("a toxic has a name");
            let path = format!("/proxies/{}/toxics/{name}", self.name);
            self.tell(Method::DELETE, &path, None).await;
        }
    }

    async fn enable(&self, enabled: bool) {
        let body = json!({"enabled": enabled});
        self.tell(Method::POST, &format!("/proxies/{}", self.name), Some(&body))
            .await;
    }

    async fn add(&self, kind: &str, direction: &str, attributes: &Value) {
        let body = json!({"type": kind, "stream": direction, "attributes": attributes});
        self.tell(Method::POST, &format!("/proxies/{}/toxics", self.name), Some(&body))
            .await;
    }

    async fn tell(&self, method: Method, path: &str, body: Option<&Value>) -> String {
        let answer = ask(&self.client, method, path, body).await;
        answer.unwrap_or_else(|error| panic!("the fault proxy refuses {path}: {error}"))
    }
}

async fn ask(client: &Client, method: Method, path: &str, body: Option<&Value>) -> Result<String, kube::Error> {
    let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let request = Request::builder()
        .method(method)
        .uri(path)
        .body(body)
        .expect("paths of tests are valid");
    client.request_text(request).await
}
