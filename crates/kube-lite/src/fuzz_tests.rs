//! Whatever a server answers, see [`crate::fuzz`].

use std::io::Write as _;
use std::rc::Rc;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::{StreamExt as _, stream};

use super::contact::Contact;
use super::json::ListSplitter;
use super::room::Room;
use super::{Body, Error, Watching, discovery, gzip};
use crate::fuzz::fuzz;

const LIST: &str = r#"{"kind":"PodList","metadata":{"resourceVersion":"3","continue":"x"},"items":[{"metadata":{"name":"a"}},{"b":[1,"]\"}"]}]}"#;
const TABLE: &str =
    "{\"items\" : [ {\"x\":\"]}\\\"[{\"} ,\n {} ], \"kind\":\"List\", \"metadata\":{\"resourceVersion\":\"9\"} }\n";
const EVENTS: &str = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\"}}}\n\n{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"8\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n{\"type\":\"DELETED\",\"object\":{}}\n";
const GONE: &str = "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}}\n";
const REFUSAL: &str = r#"{"kind":"Status","status":"Failure","message":"configmaps \"a\" not found: field is immutable","reason":"NotFound","details":{"name":"a","kind":"configmaps","causes":[{"reason":"x"}],"retryAfterSeconds":5},"code":404}"#;
const PAGE: &str = "<html><body>log in</body></html>\r\n";
const RESOURCES: &str = r#"{"kind":"APIResourceList","resources":[{"name":"pods","namespaced":true,"kind":"Pod","verbs":["list","watch"]},{"name":"pods/status"}]}"#;

/// A body in pieces of any size.
fn pieces(text: &[u8], random: &mut fastrand::Rng) -> Body {
    let mut rest = Bytes::copy_from_slice(text);
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let most = if random.bool() { 8 } else { 2000 };
        pieces.push(Ok(rest.split_to(random.usize(1..=most).min(rest.len()))));
    }
    stream::iter(pieces).boxed_local()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap()
}

#[test]
fn fuzz_list_splitter() {
    let split = |chunks: Vec<&[u8]>| {
        let (mut splitter, mut items) = (ListSplitter::default(), Vec::new());
        for chunk in chunks {
            let mut chunk = Bytes::copy_from_slice(chunk);
            while !chunk.is_empty() {
                match splitter.next_item(&mut chunk) {
                    Ok(item) => items.extend(item),
                    Err(error) => return (items, Err(error)),
                }
            }
        }
        (items, splitter.finish())
    };
    fuzz(
        "list splitter",
        &[LIST.as_bytes(), TABLE.as_bytes(), PAGE.as_bytes()],
        |text, random| {
            let whole = split(vec![text]);
            let parts = split(text.chunks(random.usize(1..20)).collect());
            assert_eq!(whole, parts, "the cuts make no difference");
        },
    );
}

#[test]
fn fuzz_watch_framing() {
    let runtime = runtime();
    fuzz(
        "watch framing",
        &[EVENTS.as_bytes(), GONE.as_bytes(), PAGE.as_bytes()],
        |text, random| {
            let body = pieces(text, random);
            runtime.block_on(async {
                let mut watching = Watching::new(body, Rc::<Contact>::default(), Room::default().share());
                let mut events = 0;
                while let Ok(Some(_)) = watching.next().await {
                    events += 1;
                }
                assert!(events <= text.len() / 10, "an event has more than ten bytes");
            });
        },
    );
}

#[test]
fn fuzz_error_bodies() {
    fuzz(
        "error bodies",
        &[REFUSAL.as_bytes(), PAGE.as_bytes(), b"service unavailable\n"],
        |text, random| {
            let wait = random.bool().then(|| std::time::Duration::from_secs(random.u64(..)));
            let code = *random
                .choice(&[400, 401, 403, 404, 409, 410, 422, 429, 500, 503])
                .unwrap();
            for error in [Error::from_answer(code, wait, text), Error::from_watch_error(text)] {
                let _ = (
                    error.is_unreachable(),
                    error.may_be_of_update(),
                    error.missing_namespace().is_some(),
                );
                assert!(error.to_string().len() < 4000);
                let _ = tokio::time::Instant::now() + error.retry_after().unwrap_or_default();
            }
        },
    );
}

#[test]
fn fuzz_gzip() {
    let pack = |text: &str| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let (list, blanks) = (pack(LIST), pack(&" ".repeat(1 << 20)));
    let runtime = runtime();
    fuzz("gzip", &[&list, &blanks, PAGE.as_bytes()], |packed, random| {
        let mut body = gzip::unpack(pieces(packed, random));
        runtime.block_on(async {
            while let Some(Ok(piece)) = body.next().await {
                assert!(piece.len() <= 2 << 20);
            }
        });
    });
}

#[test]
fn fuzz_discovery() {
    fuzz(
        "discovery",
        &[RESOURCES.as_bytes(), REFUSAL.as_bytes(), PAGE.as_bytes()],
        |text, _| {
            discovery::harm(text);
        },
    );
}
