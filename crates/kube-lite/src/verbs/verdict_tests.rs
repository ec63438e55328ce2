use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{LocalBoxFuture, join_all};

use super::*;
use crate::{ApiServer, Response};
use crate::{RateLimit, verbs::Cluster};

const PAGE: &str = "<html>no server is available</html>";
const SILENCE: (u16, &str) = (0, "");

/// A server that gives every path one answer, 200 where it has none.
#[derive(Clone, Default)]
struct Fixed {
    answers: Rc<RefCell<BTreeMap<&'static str, (u16, &'static str)>>>,
    asked: Rc<RefCell<Vec<String>>>,
    credentials: Rc<Cell<u64>>,
}

impl ApiServer for Fixed {
    fn send(&self, request: http::Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
        let path = request.uri().path().to_owned();
        let answer = self.answers.borrow().get(&*path).copied().unwrap_or((200, "{}"));
        self.asked.borrow_mut().push(path);
        async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            if answer == SILENCE {
                std::future::pending::<()>().await;
            }
            Ok(Response::whole(answer.0, answer.1))
        }
        .boxed_local()
    }

    fn credentials(&self) -> u64 {
        self.credentials.get()
    }
}

impl Fixed {
    fn with(answers: &[(&'static str, (u16, &'static str))]) -> (Self, Cluster) {
        let server = Self::default();
        server.answers.borrow_mut().extend(answers.iter().copied());
        let cluster = Cluster::new("hub", Box::new(server.clone()), RateLimit::new(None), "edge-syncer");
        (server, cluster)
    }

    fn times(&self, path: &str) -> usize {
        self.asked.borrow().iter().filter(|asked| *asked == path).count()
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_request_meets_is_the_sides_only_if_a_small_question_fails_too() {
    let refused = (401, "Unauthorized");
    for (answer, to_question, expected, seconds) in [
        ((503, PAGE), (200, "{}"), "its own", 0),
        ((503, PAGE), (403, ""), "its own", 0),
        ((503, PAGE), refused, "its own", 0),
        ((502, PAGE), (503, PAGE), "away", 0),
        ((504, PAGE), SILENCE, "away", 10),
        ((503, "service unavailable\n"), (503, PAGE), "its own", 0),
        ((500, PAGE), (503, PAGE), "its own", 0),
        (SILENCE, (200, "{}"), "unanswered", 80),
        (SILENCE, (503, PAGE), "away", 20),
        (SILENCE, SILENCE, "away", 30),
        (refused, (200, "{}"), "its own", 0),
        (refused, (403, ""), "its own", 0),
        (refused, refused, "refused", 0),
        (refused, (503, PAGE), "refused", 0),
    ] {
        let (_, cluster) = Fixed::with(&[("/a", answer), (QUESTION, to_question)]);
        let start = Instant::now();
        let found = match cluster.get_path("/a").await {
            Ok(_) => "answered",
            Err(Error::Unreachable(_)) => "away",
            Err(Error::Unanswered(_)) => "unanswered",
            Err(Error::Unauthorized(_)) => "refused",
            Err(_) => "its own",
        };
        assert_eq!(found, expected, "{answer:?}, {to_question:?}");
        assert_eq!(start.elapsed().as_secs(), seconds, "{answer:?}, {to_question:?}");
        assert_eq!(
            cluster.standing().answers,
            expected != "away",
            "{answer:?}, {to_question:?}"
        );
        assert_eq!(
            cluster.standing().accepts_credentials,
            expected != "refused",
            "{answer:?}, {to_question:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_gives_no_answer_of_an_api_to_the_question_either_is_no_api() {
    const API: (u16, &str) = (200, r#"{"kind":"APIVersions"}"#);
    const STATUS: (u16, &str) = (403, r#"{"kind":"Status","reason":"Forbidden"}"#);
    const NO_PATH: (u16, &str) = (404, "404 page not found");
    for (answer, to_question, expected) in [
        (NO_PATH, NO_PATH, Some("404 page not found (HTTP 404)")),
        (NO_PATH, (200, PAGE), Some(PAGE)),
        (NO_PATH, API, None),
        (NO_PATH, STATUS, None),
        (NO_PATH, (503, PAGE), None),
        ((302, "Found"), (302, "Found"), Some("Found (HTTP 302)")),
        (
            (403, PAGE),
            (403, PAGE),
            Some("<html>no server is available</html> (HTTP 403)"),
        ),
        (STATUS, NO_PATH, None),
        ((422, r#"{"kind":"Status","reason":"Invalid"}"#), NO_PATH, None),
    ] {
        let (server, cluster) = Fixed::with(&[("/a", answer), ("/b", answer), (QUESTION, to_question)]);
        for path in ["/a", "/b"] {
            assert!(cluster.get_path(path).await.is_err());
            assert_eq!(
                cluster.standing().stranger.as_deref(),
                expected,
                "{answer:?}, {to_question:?}"
            );
        }
        server.answers.borrow_mut().insert("/a", API);
        assert!(cluster.get_path("/a").await.is_ok());
        assert_eq!(cluster.standing().stranger, None, "an API has answered");
        let asked = server.times(QUESTION);
        assert!(cluster.get_path("/b").await.is_err());
        // It is one path of an API; but none redirects.
        let is_asked = usize::from(answer.0 == 302);
        assert_eq!(server.times(QUESTION), asked + is_asked, "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_asks_for_all_and_nobody_if_anything_else_is_answered() {
    let (server, cluster) = Fixed::with(&[("/a", (503, PAGE))]);
    for error in join_all((0..20).map(|_| cluster.get_path("/a"))).await {
        assert!(matches!(error, Err(Error::Status(_))));
    }
    assert_eq!(server.times(QUESTION), 1);
    let (answered, failed) = tokio::join!(cluster.get_path("/b"), cluster.get_path("/a"));
    assert!(answered.is_ok() && failed.is_err());
    assert_eq!(server.times(QUESTION), 1);
    server.answers.borrow_mut().insert(QUESTION, (503, PAGE));
    for error in join_all((0..20).map(|_| cluster.get_path("/a"))).await {
        assert!(matches!(error, Err(Error::Unreachable(_))));
    }
    assert_eq!(server.times(QUESTION), 2);
}

#[tokio::test(start_paused = true)]
async fn refused_credentials_are_not_sent_by_everybody_until_there_are_others() {
    let refused = (401, "Unauthorized");
    let (server, cluster) = Fixed::with(&[("/a", refused), (QUESTION, refused)]);
    for _ in 0..3600 {
        assert!(cluster.get_path("/a").await.is_err_and(|error| error.is_unauthorized()));
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert!((10..40).contains(&server.times("/a")), "{}", server.times("/a"));
    server.credentials.set(1);
    server.answers.borrow_mut().clear();
    assert!(cluster.get_path("/a").await.is_ok() && cluster.standing().accepts_credentials);
    server.credentials.set(0);
    assert!(cluster.get_path("/a").await.is_ok(), "nothing is refused any more");
}
