//! A side that answers from a script, for tests of the requests and of what follows from the answers.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use kube_lite::{ApiServer, Cluster, Error, RateLimit, Response};

use crate::api::FIELD_MANAGER;
use crate::side::Side;

/// A side that answers from a script and keeps what it was asked, as `METHOD path body`.
struct Scripted {
    answers: RefCell<VecDeque<(u16, &'static str)>>,
    asked: Rc<RefCell<Vec<String>>>,
}

impl ApiServer for Scripted {
    fn send(&self, request: http::Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
        // The probe whether the whole side has failed: it has not.
        if request.uri() == "/api" {
            return async { Ok(Response::whole(200, "{}")) }.boxed_local();
        }
        let body = String::from_utf8_lossy(request.body()).into_owned();
        self.asked
            .borrow_mut()
            .push(format!("{} {} {body}", request.method(), request.uri()));
        let (status, body) = self
            .answers
            .borrow_mut()
            .pop_front()
            .expect("the script has an answer left");
        async move { Ok(Response::whole(status, body)) }.boxed_local()
    }
}

/// A side with these answers, status and body, and what it was asked.
pub(super) fn scripted(side: Side, answers: &[(u16, &'static str)]) -> (Rc<Cluster>, Rc<RefCell<Vec<String>>>) {
    let asked = Rc::default();
    let server = Scripted {
        answers: RefCell::new(answers.iter().copied().collect()),
        asked: Rc::clone(&asked),
    };
    (
        Rc::new(Cluster::new(
            side.word(),
            Box::new(server),
            RateLimit::new(None),
            FIELD_MANAGER,
        )),
        asked,
    )
}
