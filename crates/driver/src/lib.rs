//! The loop that any role runs on, and what is around it. A [`Role`] is plain data that says what is to be done; the
//! [`Shell`] waits and does it: it reads sources, has requests sent, and passes on what comes of that.
//!
//! Promises: the role alone owns its state, and nothing runs beside it while it handles an event; a source waits when
//! its bounded channel is full, and what comes [`Priority::IfRoom`] until the role has room; nothing more comes of a
//! source that was ended, nor of a side that was closed; a request to one that is not open is not sent.
//!
//! It never decides what is read or written, keeps an object, reads arguments and the environment, or knows a role:
//! only its [`advice`] to people has words of theirs, such as the syncer's annotations and commands.

pub mod advice;
pub mod budget;
pub mod events;
pub mod failures;
pub mod few;
pub mod leader;
pub mod logger;
pub mod outbox;
pub mod page;
pub mod points;
mod process;
pub mod queue;
mod requests;
pub mod serve;
pub mod share;
mod shell;
pub mod shutdown;
mod sides;
pub mod source;
pub mod streak;
pub mod systemd;
pub mod timers;

use futures_util::future::LocalBoxFuture;
use kube_lite::{ObjectName, Standing};
use tokio::time::Instant;

use crate::serve::HealthQuery;
use crate::source::{Reading, SourceEvent, SourceId};

pub use self::requests::Servers;
pub use self::shell::Shell;
pub use self::sides::{Opened, Sides};

/// What a program decides: plain data, which waits for nothing and has no clock.
pub trait Role: Sized {
    /// The id of a side, under which the role knows an API server. A closed side's may be used again.
    type Side: Copy + Ord;
    /// What is needed to open a side while the role runs; [`std::convert::Infallible`] for one that opens none.
    type Location;
    /// What a source is for.
    type Feed: Feed<Self::Side>;
    /// Work that talks to sides, and ends with an answer.
    type Request;
    /// What a request ends with.
    type Answer: 'static;
    /// Why the role ends the program.
    type Fault;

    /// Handles an event.
    fn handle(&mut self, event: Event<Self::Answer>, moment: Moment<Self::Side>) -> Result<Course, Self::Fault>;

    /// Does what is due at the moment of the last event, or at the start, and determines what is to be done.
    fn advance(&mut self);

    /// What is to be done now, in this order, since the last call.
    fn effects(&mut self) -> Vec<Effect<Self>>;

    /// When it is time for [`Role::advance`], if nothing happens before.
    fn next_due(&mut self) -> Option<Instant>;

    /// True if there is room for what comes [`Priority::IfRoom`].
    fn has_room(&self) -> bool {
        true
    }

    /// What the role begins again with, after [`Course::Again`]: only the sides of the start are open.
    #[must_use]
    fn again(self, moment: Moment<Self::Side>) -> Self;
}

/// What a source is for.
pub trait Feed<S>: Copy {
    /// The side that it reads.
    fn side(self) -> S;

    /// When its events are taken.
    fn priority(self) -> Priority;
}

/// When the events of a source are taken, among those of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Before all others: what decides what else is read.
    First,
    /// As soon as there are none of those.
    Second,
    /// Last, and only while the role has room.
    IfRoom,
}

/// What talks to the sides for a role.
pub trait Perform<R: Role> {
    /// The server of a side that the role opens. It need not answer.
    fn open(&self, side: R::Side, place: R::Location) -> Opened;

    /// The work that ends with the answer to a request; `None` if one of its sides is not open. It ends early if a side is
    /// closed whose server it got.
    fn perform(
        &self,
        request: R::Request,
        servers: &mut Servers<'_, R::Side>,
    ) -> Option<LocalBoxFuture<'static, R::Answer>>;
}

/// What wakes a role. Nothing else does.
pub enum Event<A> {
    /// A request has ended.
    Answer(A),
    /// A source has reported something.
    Source(SourceId, SourceEvent),
    /// Health, readiness or metrics are asked for.
    Asked(HealthQuery),
    /// It is time, or there is room.
    Due,
}

/// The moment in which something happens, as the shell sees it.
pub struct Moment<S> {
    /// The time.
    pub now: Instant,
    /// The sides that are open, in their order, and the contact with each.
    pub contacts: Vec<(S, Standing)>,
}

/// How the shell continues after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// With the same role.
    On,
    /// With a role that is recreated. Nothing that was read so far, and that is on its way from a source or a request, may
    /// be acted on.
    Again,
}

/// What is to be done.
pub enum Effect<R: Role> {
    /// A side begins to be there, in the place of one that has this id.
    Open(R::Side, R::Location),
    /// A side is there no longer. Its sources and requests end.
    Close(R::Side),
    /// A source begins to read, in the place of one that has this number.
    Read(SourceId, R::Feed, Reading),
    /// A source ends.
    End(SourceId),
    /// What a source would report next of an object is known already.
    Known(SourceId, ObjectName, Known),
    /// Something is asked or written, and ends with an answer.
    Request(R::Request),
}

/// What a request has seen of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It has this version.
    At(u64),
    /// It is gone.
    Gone,
    /// A write to it was answered with this version.
    Written(u64),
}
