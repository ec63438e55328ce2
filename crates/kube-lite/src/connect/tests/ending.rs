//! Streams and connections that a server ends.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt as _;
use h2::Reason;
use http::Response;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

use super::server::Pki;
use super::*;
use crate::Error as ClusterError;

/// How a server ends things.
#[derive(Clone, Copy, Debug)]
enum ServerFault {
    /// It refuses the first request without beginning with it.
    Refuses,
    /// It ends the first connection without beginning with the request.
    GoesAway,
    /// It ends the stream.
    Resets(Reason),
    /// It ends the connection while the stream is open, and says so.
    Closes,
    /// It dies.
    Dies,
}

/// A SETTINGS frame without any, and a GOAWAY frame that says that no stream was begun with, for no error.
const SETTINGS_THEN_GOAWAY: &[u8] = &[
    0, 0, 0, 4, 0, 0, 0, 0, 0, // SETTINGS
    0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, // GOAWAY
];

async fn serve(pki: &Pki, end: ServerFault, closing: Arc<Notify>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(pki.server_config(&[b"h2"], None)));
    tokio::spawn(async move {
        for connection in 0.. {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            if matches!(end, ServerFault::GoesAway) && connection == 0 {
                // The request is on its way.
                let mut some = [0; 256];
                let _ = stream.read(&mut some).await;
                stream.write_all(SETTINGS_THEN_GOAWAY).await.unwrap();
                let _ = stream.shutdown().await;
                continue;
            }
            tokio::spawn(answer(stream, end, Arc::clone(&closing)));
        }
    });
    address
}

async fn answer(
    stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    end: ServerFault,
    closing: Arc<Notify>,
) {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    let mut requests = 0;
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        requests += 1;
        if matches!(end, ServerFault::Refuses) && requests == 1 {
            respond.send_reset(Reason::REFUSED_STREAM);
            continue;
        }
        let mut body = respond.send_response(Response::new(()), false).unwrap();
        body.send_data(Bytes::from_static(b"a piece"), false).unwrap();
        // What is sent is sent while the next request is waited for.
        tokio::select! {
            () = closing.notified() => {}
            _ = connection.accept() => return,
        }
        match end {
            ServerFault::Resets(reason) => body.send_reset(reason),
            ServerFault::Closes => connection.abrupt_shutdown(Reason::NO_ERROR),
            ServerFault::Dies => return,
            ServerFault::Refuses | ServerFault::GoesAway => body.send_data(Bytes::new(), true).unwrap(),
        }
    }
}

#[tokio::test]
async fn what_a_server_ends_is_no_outage_and_what_it_has_not_begun_with_is_sent_again() {
    let pki = Pki::new(&["127.0.0.1"]);
    for (end, is_away) in [
        (ServerFault::Refuses, None),
        (ServerFault::GoesAway, None),
        (ServerFault::Resets(Reason::INTERNAL_ERROR), Some(false)),
        (ServerFault::Resets(Reason::NO_ERROR), None),
        (ServerFault::Closes, Some(false)),
        (ServerFault::Dies, Some(true)),
    ] {
        let closing = Arc::new(Notify::new());
        let address = serve(&pki, end, Arc::clone(&closing)).await;
        let server = RealServer(connect(&https(address, &pki), "edge-syncer/test").unwrap());
        let request = Request::get("/api").body(Bytes::new()).unwrap();
        let mut body = server.send(request).await.unwrap().body;
        assert_eq!(body.next().await.unwrap().unwrap(), "a piece", "{end:?}");
        closing.notify_one();
        let found = match body.next().await {
            None => None,
            Some(Ok(piece)) if piece.is_empty() => None,
            Some(Err(ClusterError::Unanswered(_))) => Some(false),
            Some(Err(ClusterError::Unreachable(_))) => Some(true),
            other => panic!("{end:?}: {other:?}"),
        };
        assert_eq!(found, is_away, "{end:?}");
    }
}
