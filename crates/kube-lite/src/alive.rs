//! Signs of life on a connection: ends one over which nothing arrives any more, and counts the bytes that pass.
//!
//! HTTP/2's own time limit for the answer to a ping is of no use on a slow link: ping and answer wait behind the bodies
//! that are on their way, for much longer than it may take to notice a dead link. Here, any byte that arrives is a sign
//! of life: data while something is read, window updates while something is sent, answers to pings when all is quiet.

use std::io;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use tokio::time::{Instant, Sleep, sleep};

use super::greeting::Greeting;

/// How long an HTTP/2 connection may be silent, although it is pinged: a link that died is noticed within 30 s.
pub(super) const SILENCE: Duration = Duration::from_secs(28);

/// Bytes read from the connection at once, on the stack.
const PIECE: usize = 4 * 1024;

/// How many bytes have come and gone on all connections of a side, without TLS.
#[derive(Clone, Debug, Default)]
pub(super) struct Moved(Arc<[AtomicU64; 2]>);

/// Which of them.
const RECEIVED: usize = 0;
const SENT: usize = 1;

impl Moved {
    /// The numbers so far: received, and sent.
    pub(super) fn bytes(&self) -> [u64; 2] {
        [RECEIVED, SENT].map(|way| self.0[way].load(Ordering::Relaxed))
    }

    fn add(&self, way: usize, bytes: usize) {
        self.0[way].fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// A connection, inside of TLS, that is watched for signs of life.
pub(super) struct Alive<S> {
    inner: S,
    moved: Moved,
    /// When something last arrived.
    heard: Instant,
    /// The last write had to wait.
    clogged: bool,
    /// Runs out at or before the time at which the silence is too long; absent where there are no pings (HTTP/1.1).
    timer: Option<Pin<Box<Sleep>>>,
    /// Absent once it is over.
    greeting: Option<Greeting>,
}

impl<S: Connection> Alive<S> {
    pub(super) fn new(inner: S, moved: Moved, greeting: Greeting) -> Self {
        let pinged = inner.connected().is_negotiated_h2();
        if !pinged {
            greeting.is_none();
        }
        Self {
            inner,
            moved,
            heard: Instant::now(),
            clogged: false,
            timer: pinged.then(|| Box::pin(sleep(SILENCE))),
            greeting: pinged.then_some(greeting),
        }
    }
}

impl<S> Alive<S> {
    /// An error if the silence is too long; otherwise wakes the task when it is.
    fn listen(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let Some(timer) = &mut self.timer else {
            return Ok(());
        };
        while timer.as_mut().poll(context).is_ready() {
            let due = self.heard + SILENCE;
            if due <= Instant::now() {
                let words = format!("the link is dead: nothing came for {} s", SILENCE.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, words));
            }
            timer.as_mut().reset(due);
        }
        Ok(())
    }

    fn wrote(&mut self, context: &mut Context<'_>, result: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match result {
            Poll::Ready(Ok(length)) => {
                self.moved.add(SENT, length);
                // There is room again, because the other side has acknowledged something.
                if std::mem::take(&mut self.clogged) {
                    self.heard = Instant::now();
                }
                Poll::Ready(Ok(length))
            }
            Poll::Pending => {
                self.clogged = true;
                self.listen(context)?;
                Poll::Pending
            }
            failed @ Poll::Ready(Err(_)) => failed,
        }
    }
}

impl<S: Connection> Connection for Alive<S> {
    fn connected(&self) -> Connected {
        self.inner.connected()
    }
}

impl<S: Read + Unpin> Read for Alive<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let mut bytes = [0; PIECE];
        let room = into.remaining().min(PIECE);
        let mut piece = ReadBuf::new(&mut bytes[..room]);
        match Pin::new(&mut self.inner).poll_read(context, piece.unfilled()) {
            Poll::Ready(Ok(())) => {
                self.heard = Instant::now();
                self.moved.add(RECEIVED, piece.filled().len());
                self.greeting.take_if(|greeting| greeting.heard(piece.filled()));
                into.put_slice(piece.filled());
                Poll::Ready(Ok(()))
            }
            Poll::Pending => {
                self.listen(context)?;
                Poll::Pending
            }
            failed @ Poll::Ready(Err(_)) => failed,
        }
    }
}

impl<S: Write + Unpin> Write for Alive<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.wrote(context, result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.inner).poll_flush(context) {
            Poll::Pending => {
                self.listen(context)?;
                Poll::Pending
            }
            ready @ Poll::Ready(_) => ready,
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.inner).poll_shutdown(context) {
            Poll::Pending => {
                self.listen(context)?;
                Poll::Pending
            }
            ready @ Poll::Ready(_) => ready,
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write_vectored(context, slices);
        self.wrote(context, result)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::task::Waker;

    use super::super::greeting::{Streams, Up};
    use super::*;

    /// A connection over which a test says what comes and whether there is room.
    #[derive(Default)]
    struct Script {
        incoming: usize,
        full: bool,
        waker: Option<Waker>,
    }

    #[derive(Clone, Default)]
    struct Fake(Arc<Mutex<Script>>);

    impl Fake {
        fn change(&self, change: impl FnOnce(&mut Script)) {
            let mut script = self.0.lock().unwrap();
            change(&mut script);
            if let Some(waker) = script.waker.take() {
                waker.wake();
            }
        }
    }

    impl Connection for Fake {
        fn connected(&self) -> Connected {
            Connected::new().negotiated_h2()
        }
    }

    impl Read for Fake {
        fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, mut buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
            let mut script = self.0.lock().unwrap();
            if script.incoming == 0 {
                script.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            let length = std::mem::take(&mut script.incoming).min(buf.remaining());
            buf.put_slice(&vec![b'x'; length]);
            Poll::Ready(Ok(()))
        }
    }

    impl Write for Fake {
        fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            let mut script = self.0.lock().unwrap();
            if script.full {
                script.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn alive(fake: &Fake, moved: &Moved) -> Alive<Fake> {
        let greeting = Greeting::new(Streams::default(), Up::default());
        Alive::new(fake.clone(), moved.clone(), greeting)
    }

    async fn read(alive: &mut Alive<Fake>) -> io::Result<usize> {
        let mut bytes = [0; 10_000];
        std::future::poll_fn(|cx| {
            let mut buf = ReadBuf::new(&mut bytes);
            Pin::new(&mut *alive)
                .poll_read(cx, buf.unfilled())
                .map_ok(|()| buf.filled().len())
        })
        .await
    }

    async fn write(alive: &mut Alive<Fake>) -> io::Result<usize> {
        std::future::poll_fn(|cx| Pin::new(&mut *alive).poll_write(cx, b"12345")).await
    }

    #[tokio::test(start_paused = true)]
    async fn silence_ends_a_connection_and_any_byte_does_not() {
        let fake = Fake::default();
        let moved = Moved::default();
        let mut alive = alive(&fake, &moved);
        for _ in 0..10 {
            tokio::time::advance(SILENCE.mul_f64(0.96)).await;
            fake.change(|script| script.incoming = 1);
            assert_eq!(read(&mut alive).await.unwrap(), 1);
        }
        assert_eq!(moved.bytes(), [10, 0]);
        let start = Instant::now();
        // What we send says nothing about the other side.
        assert_eq!(write(&mut alive).await.unwrap(), 5);
        assert_eq!(moved.bytes(), [10, 5]);
        let error = read(&mut alive).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        // Timers are as fine as a millisecond.
        assert!(
            start.elapsed() < SILENCE + Duration::from_millis(2),
            "{:?}",
            start.elapsed()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn room_after_a_full_buffer_is_a_sign_of_life() {
        let fake = Fake::default();
        let mut alive = alive(&fake, &Moved::default());
        for _ in 0..10 {
            fake.change(|script| script.full = true);
            let soon = tokio::time::timeout(SILENCE.mul_f64(0.96), write(&mut alive)).await;
            assert!(soon.is_err(), "there is no room");
            fake.change(|script| script.full = false);
            write(&mut alive).await.unwrap();
        }
        fake.change(|script| script.full = true);
        let error = write(&mut alive).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn passes_on_what_is_larger_than_a_piece() {
        let fake = Fake::default();
        let mut alive = alive(&fake, &Moved::default());
        fake.change(|script| script.incoming = PIECE + 1);
        assert_eq!(read(&mut alive).await.unwrap(), PIECE);
    }
}
