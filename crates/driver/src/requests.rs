//! The requests in flight, and which sides each of them talks to.

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use kube_lite::Cluster;

use super::{Perform, Role, Sides};

/// The servers that a request may get. Which ones it gets is noted: it ends when one of their sides is closed.
pub struct Servers<'a, S> {
    sides: &'a Sides<S>,
    got: Vec<S>,
}

impl<S: Copy + Ord> Servers<'_, S> {
    /// The server of a side; `None` if that is not open.
    pub fn at(&mut self, side: S) -> Option<Rc<Cluster>> {
        let server = Rc::clone(&self.sides.get(side)?.server);
        self.got.push(side);
        Some(server)
    }
}

/// All that are in flight.
pub(super) struct Requests<S, A>(FuturesUnordered<Request<S, A>>);

struct Request<S, A> {
    sides: Vec<S>,
    work: LocalBoxFuture<'static, A>,
}

// The work has its own box, so that the rest may be moved.
impl<S, A> Unpin for Request<S, A> {}

impl<S, A> Future for Request<S, A> {
    type Output = A;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<A> {
        self.work.as_mut().poll(context)
    }
}

impl<S: Copy + Ord, A> Requests<S, A> {
    pub(super) fn new() -> Self {
        Self(FuturesUnordered::new())
    }

    /// A request begins, if its sides are open.
    pub(super) fn begin<R>(&mut self, request: R::Request, performer: &impl Perform<R>, sides: &Sides<S>)
    where
        R: Role<Side = S, Answer = A>,
    {
        let mut servers = Servers { sides, got: Vec::new() };
        if let Some(work) = performer.perform(request, &mut servers) {
            let sides = servers.got;
            self.0.push(Request { sides, work });
        }
    }

    /// Those that talk to a side end, without an answer.
    pub(super) fn end_of(&mut self, side: S) {
        let all = mem::take(&mut self.0);
        self.0 = all
            .into_iter()
            .filter(|request| !request.sides.contains(&side))
            .collect();
    }

    pub(super) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// The next answer.
    pub(super) async fn next(&mut self) -> Option<A> {
        self.0.next().await
    }
}
