use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::LocalSet;

use super::*;

/// What clients send that never complete a request.
const NEVER_ENDS: [&str; 3] = ["", "G", "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: "];

/// Runs a server with an engine that answers at once, and `test` with its address.
async fn served<F: Future<Output = ()>>(test: impl FnOnce(SocketAddr) -> F) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let desk = Desk::default();
    let mut asked = desk.open();
    let local = LocalSet::new();
    local.spawn_local(serve(listener, desk, Pages::All, || Duration::ZERO, |_| String::new()));
    local.spawn_local(async move {
        while let Some(question) = asked.recv().await {
            match question {
                HealthQuery::Alive(answer) => _ = answer.send(()),
                HealthQuery::Ready(answer) => _ = answer.send(Ok(())),
                HealthQuery::Metrics { answer, .. } => _ = answer.send(Bytes::from(vec![b'x'; 100_000])),
                HealthQuery::Page { answer, .. } => _ = answer.send(Bytes::from_static(b"<!doctype html>")),
                HealthQuery::Status { answer, .. } => _ = answer.send(String::new()),
            }
        }
    });
    local.run_until(test(address)).await;
}

async fn send(address: SocketAddr, words: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(words.as_bytes()).await.unwrap();
    stream
}

/// A probe as the kubelet's, with a little more time than that has by default.
async fn probe(address: SocketAddr, path: &str) {
    let answered = timeout(Duration::from_secs(3), async {
        let mut stream = send(address, &format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")).await;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    });
    let answer = answered.await.expect("a probe is answered");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}

#[test]
fn takes_the_addresses_that_go_takes() {
    for (text, expected) in [
        ("10.0.0.1:8080", &["10.0.0.1:8080"][..]),
        ("[::1]:8080", &["[::1]:8080"]),
        (":8080", &["[::]:8080", "0.0.0.0:8080"]),
        ("localhost:0", &["127.0.0.1:0", "[::1]:0"]),
    ] {
        let found = ListenAddress::parse("--listen-address", text).unwrap();
        let found: Vec<String> = found.candidates.iter().map(SocketAddr::to_string).collect();
        assert_eq!(found, expected, "{text}");
    }
    for text in [
        "",
        "8080",
        ":",
        ":http",
        ":99999",
        ":+1",
        "localhost",
        "localhost:",
        "hub.example:8080",
        "::1:8080",
        "[::1]",
    ] {
        assert_eq!(ListenAddress::parse("--listen-address", text), None, "{text}");
    }
}

#[tokio::test]
async fn every_address_of_the_machine_is_listened_at_and_a_taken_one_is_not_evaded() {
    let address = ListenAddress::parse("--listen-address", ":0").unwrap();
    let listener = listen(&address).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok());
    let held = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = held.local_addr().unwrap().port();
    let error = listen(&ListenAddress::parse("--listen-address", &format!("localhost:{port}")).unwrap())
        .await
        .unwrap_err();
    assert_eq!(error.source.kind(), ErrorKind::AddrInUse);
    assert_eq!(
        error.to_string(),
        format!("cannot listen at localhost:{port} (--listen-address)")
    );
}

#[tokio::test]
async fn head_gets_the_head_of_what_get_gets() {
    served(async |address| {
        for (method, path, status, has_body) in [
            ("HEAD", "/healthz", "200 OK", false),
            ("HEAD", "/livez", "200 OK", false),
            ("HEAD", "/readyz", "200 OK", false),
            ("HEAD", "/metrics", "200 OK", false),
            ("HEAD", "/", "200 OK", false),
            ("HEAD", "/nothing", "404 Not Found", false),
            ("GET", "/index.html", "404 Not Found", true),
            ("GET", "//", "404 Not Found", true),
            ("POST", "/", "405 Method Not Allowed", true),
            ("GET", "/livez", "200 OK", true),
            ("POST", "/livez", "405 Method Not Allowed", true),
        ] {
            let mut stream = send(address, &format!("{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n")).await;
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(
                head.starts_with(&format!("HTTP/1.1 {status}\r\n")),
                "{method} {path}: {answer}"
            );
            assert_eq!(!body.is_empty(), has_body, "{method} {path}: {body}");
            assert!(!head.contains("content-length: 0"), "{method} {path}: {head}");
            assert_eq!(head.contains("allow: GET, HEAD"), status.starts_with("405"), "{head}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_probe_is_answered_whoever_holds_connections_and_asks_nothing() {
    for count in [60, 500] {
        for words in NEVER_ENDS {
            served(async |address| {
                let mut held = Vec::new();
                for _ in 0..count {
                    held.push(send(address, words).await);
                }
                for path in ["/healthz", "/livez", "/readyz", "/metrics"] {
                    probe(address, path).await;
                }
            })
            .await;
        }
    }
}

/// One after the other, in the place of those that were closed.
#[tokio::test]
async fn a_probe_is_answered_while_ever_more_connections_come() {
    served(async |address| {
        let flood = async {
            let mut held = std::collections::VecDeque::new();
            loop {
                held.push_back(send(address, "GET /").await);
                held.truncate(300);
                sleep(Duration::from_millis(1)).await;
            }
        };
        let probes = async {
            for _ in 0..10 {
                probe(address, "/healthz").await;
            }
        };
        tokio::select! {
            () = flood => {}
            () = probes => {}
        }
    })
    .await;
}

#[tokio::test]
async fn a_probe_is_answered_while_others_do_not_read_what_they_have_asked_for() {
    served(async |address| {
        let mut held = Vec::new();
        for _ in 0..200 {
            held.push(send(address, "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").await);
        }
        probe(address, "/healthz").await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_oldest_that_has_asked_nothing_gives_way_and_none_at_once() {
    LocalSet::new()
        .run_until(async {
            let start = Instant::now();
            let mut places = OpenConnections::default();
            for index in 0..CONNECTIONS {
                assert_eq!(places.make_room(Instant::now()), Ok(()));
                let task = spawn_local(std::future::pending::<()>());
                places.0.push(OpenConnection {
                    since: start + Duration::from_millis(index as u64),
                    // The two oldest wait for their answers.
                    asked: Rc::new(Cell::new(index < 2)),
                    task: task.abort_handle(),
                });
            }
            let due = start + Duration::from_millis(2) + GRACE;
            assert_eq!(places.make_room(start), Err(due));
            let third = places.0[2].task.clone();
            assert_eq!(places.make_room(due), Ok(()));
            tokio::task::yield_now().await;
            assert!(third.is_finished());
            assert_eq!(places.0.len(), CONNECTIONS - 1);
        })
        .await;
}
