//! A TCP proxy in front of an API server, which counts what passes and can be cut.
//!
//! It counts the bytes that programs read and write: TLS records and all that is in them, but no headers of TCP and IP.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Bytes taken from one side before they are written to the other.
const BUFFER: usize = 64 << 10;

/// What has passed a link.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Traffic {
    /// Bytes from the syncer to the server.
    pub(crate) sent: u64,
    /// Bytes from the server to the syncer.
    pub(crate) received: u64,
    /// Connections that the syncer has opened.
    pub(crate) connections: u64,
}

impl Traffic {
    /// Bytes both ways.
    pub(crate) fn bytes(self) -> u64 {
        self.sent + self.received
    }

    /// What came after `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            sent: self.sent - earlier.sent,
            received: self.received - earlier.received,
            connections: self.connections - earlier.connections,
        }
    }
}

/// A proxy that runs until it is dropped; its connections end with it.
pub(crate) struct Link {
    port: u16,
    /// Host and port of the server.
    server: String,
    counters: Arc<Counters>,
    /// Empty while the link is cut.
    task: JoinSet<()>,
}

#[derive(Default)]
struct Counters {
    sent: AtomicU64,
    received: AtomicU64,
    connections: AtomicU64,
    /// Reported of each byte.
    activity: Arc<Notify>,
}

impl Link {
    /// Listens on a port of 127.0.0.1 and passes everything on to the server at `url`, telling `activity` of it.
    pub(crate) async fn open(url: &str, activity: &Arc<Notify>) -> Self {
        let counters = Arc::new(Counters {
            activity: Arc::clone(activity),
            ..Counters::default()
        });
        let mut link = Self {
            port: 0,
            server: url.trim_start_matches("https://").to_owned(),
            counters,
            task: JoinSet::new(),
        };
        link.heal().await;
        link
    }

    /// Ends all connections, and refuses new ones.
    pub(crate) async fn cut(&mut self) {
        self.task.shutdown().await;
    }

    /// Listens, after a cut at the same port.
    pub(crate) async fn heal(&mut self) {
        let listener = TcpListener::bind(("127.0.0.1", self.port))
            .await
            .expect("127.0.0.1 can be listened at");
        self.port = listener.local_addr().expect("it listens").port();
        let counters = Arc::clone(&self.counters);
        self.task.spawn(accept(listener, self.server.clone(), counters));
    }

    /// Where it listens, as the URL of an API server.
    pub(crate) fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    /// What has passed so far.
    pub(crate) fn traffic(&self) -> Traffic {
        Traffic {
            sent: self.counters.sent.load(Ordering::Relaxed),
            received: self.counters.received.load(Ordering::Relaxed),
            connections: self.counters.connections.load(Ordering::Relaxed),
        }
    }
}

async fn accept(listener: TcpListener, server: String, counters: Arc<Counters>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        counters.connections.fetch_add(1, Ordering::Relaxed);
        connections.spawn(relay(client, server.clone(), Arc::clone(&counters)));
        // Those that have ended are forgotten.
        while connections.try_join_next().is_some() {}
    }
}

/// Passes on one connection until both sides have closed it. Without a server the client's is closed at once.
async fn relay(client: TcpStream, server: String, counters: Arc<Counters>) {
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    for stream in [&client, &server] {
        stream.set_nodelay(true).expect("it is a TCP connection");
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::join!(
        pump(from_client, to_server, &counters.sent, &counters.activity),
        pump(from_server, to_client, &counters.received, &counters.activity),
    );
}

/// Passes on one direction until its end, or until the other side no longer takes it.
async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, counter: &AtomicU64, activity: &Notify) {
    let mut buffer = vec![0; BUFFER];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        counter.fetch_add(length as u64, Ordering::Relaxed);
        activity.notify_one();
        if to.write_all(&buffer[..length]).await.is_err() {
            break;
        }
    }
    // Fails when the other side has closed already.
    let _ = to.shutdown().await;
}
