//! Several connections to one server, so that no request waits for a stream.
//!
//! HTTP/2 servers limit the number of streams on one connection: kube-apiserver to 100, or what
//! `--http2-max-streams-per-connection` says. hyper's pool never opens a second connection; further requests wait until
//! another stream ends, which takes an hour for a watch. So there are lanes, each with a pool of its own, which comes
//! to one connection (with HTTP/1.1, where each stream is a connection anyway, lanes change nothing).
//!
//! Promises: a watch or list never takes the stream that another request needs: the first lane has room kept for such
//! requests, and the rest of it is filled with watches, so that a syncer with few of them has one connection; whatever
//! finds no room uses the next lane at once; the Lease always has a stream in the first lane. A lane is opened when it
//! is needed, by one request, and closed when its last stream ends.

use std::cell::RefCell;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper_util::client::legacy::{Client as HttpClient, Error};

use super::dial::Dial;
use super::greeting::{Greeting, Streams, Up};
use super::pieces::Pieces;
use crate::logging::log_line;

/// Streams of each connection that nothing but the Lease may take: a renewal, and giving it up while that hangs.
const SPARE: u32 = 2;
/// Streams of the first connection that are kept for requests, if the server allows that many: what all workers and the
/// engine have under way at once, and some more.
const KEPT: u32 = 24;

/// What a request is for, as far as connections are concerned. It is in its extensions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Traffic {
    /// A request that ends with its answer.
    #[default]
    Request,
    /// Watches, and lists whose reader may be slow: they last, and there may be hundreds.
    Reading,
    /// The Lease. There is one at a time.
    Lease,
}

/// A pooled client.
pub(super) type Client = HttpClient<Dial, Pieces>;

/// Makes the client of a lane; its connections pass their beginning to the greeting. The first lane is kept, the others
/// are closed with their last stream.
type Open = dyn Fn(Greeting, Kept) -> Client;

/// Whether a lane outlives its streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// Its pool closes what is idle.
    Yes,
    /// It is closed when nothing needs it.
    No,
}

/// The client of one side.
pub(super) struct Lanes(Rc<Shared>);

struct Shared {
    open: Box<Open>,
    streams: Streams,
    /// Never empty: the first one stays.
    lanes: RefCell<Vec<Lane>>,
}

struct Lane {
    line: Rc<Line>,
    load: Load,
}

/// The streams of a lane.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    open: u32,
    /// How many of them are watches or lists.
    readings: u32,
}

impl Load {
    /// True if there is room for one more on a connection with this load.
    fn has_room(self, traffic: Traffic, allowed: u32, is_first: bool) -> bool {
        let room = allowed.saturating_sub(SPARE).max(1);
        match traffic {
            Traffic::Lease => is_first,
            Traffic::Reading if is_first => {
                let kept = KEPT.min(allowed / 2).max(1);
                self.open < room && self.readings < room.saturating_sub(kept)
            }
            Traffic::Request | Traffic::Reading => self.open < room,
        }
    }
}

impl Lanes {
    pub(super) fn new(open: impl Fn(Greeting, Kept) -> Client + 'static) -> Self {
        let streams = Streams::default();
        let first = Lane::new(&open, &streams, Kept::Yes);
        Self(Rc::new(Shared {
            open: Box::new(open),
            streams,
            lanes: RefCell::new(vec![first]),
        }))
    }

    /// A stream in the first lane that has room.
    fn take(&self, traffic: Traffic) -> Ticket {
        let allowed = self.0.streams.allowed();
        let mut lanes = self.0.lanes.borrow_mut();
        let found = (0..lanes.len()).find(|&index| lanes[index].load.has_room(traffic, allowed, index == 0));
        let index = found.unwrap_or_else(|| {
            lanes.push(Lane::new(&*self.0.open, &self.0.streams, Kept::No));
            let connections = lanes.len();
            log_line!(
                Debug,
                ConnectionAdded,
                "one more connection",
                streams = allowed,
                connections = connections
            );
            lanes.len() - 1
        });
        let lane = &mut lanes[index];
        lane.load.open += 1;
        lane.load.readings += u32::from(traffic == Traffic::Reading);
        Ticket {
            shared: Rc::clone(&self.0),
            line: Rc::clone(&lane.line),
            traffic,
        }
    }
}

impl Lanes {
    /// Sends a request in the lane that its traffic belongs to.
    pub(super) async fn send(&self, request: Request<Pieces>) -> Result<Response<Counted>, Error> {
        let traffic = request.extensions().get().copied().unwrap_or_default();
        loop {
            let ticket = self.take(traffic);
            let line = Rc::clone(&ticket.line);
            let answer = if line.is_open(traffic) {
                line.send(request).await
            } else {
                let turn = line.opening.lock().await;
                if *line.up.borrow() {
                    // Now that there is a connection, it is known how much room there is: a lane is chosen again.
                    continue;
                }
                line.open(request, turn).await
            };
            return Ok(answer?.map(|body| Counted { body, _ticket: ticket }));
        }
    }
}

impl Lane {
    fn new(open: &Open, streams: &Streams, kept: Kept) -> Self {
        let up = Up::default();
        let client = open(Greeting::new(streams.clone(), Arc::clone(&up)), kept);
        let line = Line {
            client,
            kept,
            up,
            opening: tokio::sync::Mutex::new(()),
        };
        Self {
            line: Rc::new(line),
            load: Load::default(),
        }
    }
}

/// The pool of a lane.
struct Line {
    client: Client,
    kept: Kept,
    /// There has been a connection.
    up: Up,
    /// Held by the request that makes the first connection.
    opening: tokio::sync::Mutex<()>,
}

impl Line {
    /// True if a request need not wait until a connection is there. In a new lane, each request would open a connection
    /// of its own, since the pool knows only afterwards that they could have shared one. The same applies to the
    /// watches of the first lane, which could also be too many as long as the server has not said how many it allows.
    fn is_open(&self, traffic: Traffic) -> bool {
        *self.up.borrow() || (self.kept == Kept::Yes && traffic != Traffic::Reading)
    }

    async fn send(&self, request: Request<Pieces>) -> Result<Response<Incoming>, Error> {
        self.client.request(request).await
    }

    /// Sends the request that opens the lane: the others have to wait until `turn` is over.
    async fn open(
        &self,
        request: Request<Pieces>,
        turn: tokio::sync::MutexGuard<'_, ()>,
    ) -> Result<Response<Incoming>, Error> {
        let mut up = self.up.subscribe();
        let mut sending = pin!(self.send(request));
        tokio::select! {
            biased;
            response = &mut sending => return response,
            // It fails only if there is no sender any more.
            _ = up.wait_for(|up| *up) => {}
        }
        drop(turn);
        sending.await
    }
}

/// A stream that is taken, until it is dropped.
struct Ticket {
    shared: Rc<Shared>,
    line: Rc<Line>,
    traffic: Traffic,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut lanes = self.shared.lanes.borrow_mut();
        let Some(index) = lanes.iter().position(|lane| Rc::ptr_eq(&lane.line, &self.line)) else {
            return;
        };
        let load = &mut lanes[index].load;
        load.open = load.open.saturating_sub(1);
        load.readings = load
            .readings
            .saturating_sub(u32::from(self.traffic == Traffic::Reading));
        if load.open == 0 && index > 0 {
            let closed = lanes.remove(index);
            drop(lanes);
            drop(closed);
        }
    }
}

/// The body of an answer; its stream is taken as long as there is one.
pub(super) struct Counted {
    // Dropped first, so that the stream has ended when its place is free.
    body: Incoming,
    _ticket: Ticket,
}

impl Body for Counted {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many there is room for, one after the other, in an empty lane.
    fn room(traffic: Traffic, allowed: u32, is_first: bool) -> u32 {
        let mut load = Load::default();
        while load.has_room(traffic, allowed, is_first) && load.open < 1000 {
            load.open += 1;
            load.readings += u32::from(traffic == Traffic::Reading);
        }
        load.open
    }

    #[test]
    fn watches_leave_room_for_requests_and_both_for_the_lease() {
        for (allowed, first, more, requests) in [
            (200, 174, 198, 198),
            (100, 74, 98, 98),
            (20, 8, 18, 18),
            (5, 1, 3, 3),
            (3, 0, 1, 1),
            (1, 0, 1, 1),
        ] {
            assert_eq!(room(Traffic::Reading, allowed, true), first, "{allowed}");
            assert_eq!(room(Traffic::Reading, allowed, false), more, "{allowed}");
            assert_eq!(room(Traffic::Request, allowed, true), requests, "{allowed}");
            assert_eq!(room(Traffic::Lease, allowed, true), 1000, "{allowed}");
            assert_eq!(room(Traffic::Lease, allowed, false), 0, "{allowed}");
            // Where the first lane is full of watches, there is still room for requests.
            let full = Load {
                open: first,
                readings: first,
            };
            assert!(full.has_room(Traffic::Request, allowed, true), "{allowed}");
        }
    }
}
