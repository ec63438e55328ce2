//! A hub whose every answer is a megabyte of gzip that stands for a thousand times as much.

use std::convert::Infallible;
use std::io::Write as _;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::Response;
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;

use super::stage::Stage;
use crate::bench::DEADLINE;
use crate::support::process::Folder;
use crate::support::{Syncer, eventually};

/// What is unpacked of one answer, in MB.
const MEGABYTES: usize = 1500;
/// Answers after which memory is read.
const ANSWERS: u32 = 6;

pub(super) async fn run(stage: &mut Stage) {
    stage.progress("packing the answer");
    let bomb = Bytes::from(pack());
    let size = bomb.len();
    let answered = Arc::new(AtomicU32::new(0));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
    let port = listener.local_addr().expect("it is bound").port();
    let count = Arc::clone(&answered);
    let server = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (bomb, count) = (bomb.clone(), Arc::clone(&count));
            let serve = service_fn(move |_| {
                count.fetch_add(1, Ordering::Relaxed);
                let answer = Response::builder()
                    .header("content-type", "application/json")
                    .header("content-encoding", "gzip")
                    .body(Full::<Bytes>::from(bomb.clone()));
                async move { Ok::<_, Infallible>(answer.expect("it is a response")) }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), serve));
        }
    });
    let folder = Rc::new(Folder::create("bomb"));
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "current-context": "bomb",
        "clusters": [{"name": "bomb", "cluster": {"server": format!("http://127.0.0.1:{port}")}}],
        "contexts": [{"name": "bomb", "context": {"cluster": "bomb"}}]});
    let kubeconfig = folder.write("bomb.kubeconfig", kubeconfig.to_string());
    stage.life.syncer = Syncer::start(
        &kubeconfig,
        &stage.pair.edge.kubeconfig(),
        &["--mode=poll", "--poll-interval=1s"],
    );
    eventually("the syncer asks again and again", DEADLINE, async || {
        match answered.load(Ordering::Relaxed) {
            so_many if so_many >= ANSWERS => Ok(()),
            so_many => Err(format!("it has asked {so_many} times")),
        }
    })
    .await;
    stage.note(&format!("answers of {size} bytes that stand for {MEGABYTES} MB"));
    server.abort();
}

fn pack() -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    let begin =
        br#"{"kind":"SyncerConfigList","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"a"},"spec":""#;
    let megabyte = vec![b'x'; 1 << 20];
    packed.write_all(begin).expect("writing to memory");
    for _ in 0..MEGABYTES {
        packed.write_all(&megabyte).expect("writing to memory");
    }
    packed.finish().expect("writing to memory")
}
