//! What a role wants done, and which of its sources is which: for roles whose sources have numbers of their own.

use std::collections::BTreeMap;

use crate::source::{Reading, SourceId};
use crate::{Effect, Feed, Role};

/// See the module's doc.
pub struct Outbox<R: Role> {
    effects: Vec<Effect<R>>,
    sources: BTreeMap<SourceId, R::Feed>,
    next: SourceId,
}

impl<R: Role> Default for Outbox<R> {
    fn default() -> Self {
        Self {
            effects: Vec::new(),
            sources: BTreeMap::new(),
            next: 0,
        }
    }
}

impl<R: Role<Feed: PartialEq>> Outbox<R> {
    /// All that is to be done since the last call.
    pub fn take(&mut self) -> Vec<Effect<R>> {
        std::mem::take(&mut self.effects)
    }

    /// What a source reads; `None` if it has ended.
    pub fn feed(&self, id: SourceId) -> Option<R::Feed> {
        self.sources.get(&id).copied()
    }

    /// A side begins to be there.
    pub fn open(&mut self, side: R::Side, place: R::Location) {
        self.effects.push(Effect::Open(side, place));
    }

    /// Something begins to be read.
    pub fn read(&mut self, feed: R::Feed, reading: Reading) {
        let id = self.next;
        self.next += 1;
        self.sources.insert(id, feed);
        self.effects.push(Effect::Read(id, feed, reading));
    }

    /// Something is read no longer.
    pub fn end(&mut self, feed: R::Feed) {
        let of_feed = self.sources.iter().filter(|(_, other)| **other == feed);
        self.effects.extend(of_feed.map(|(id, _)| Effect::End(*id)));
        self.sources.retain(|_, other| *other != feed);
    }

    /// All of which this is true is read no longer. Gives what it was.
    pub fn end_where(&mut self, which: impl Fn(R::Feed) -> bool) -> Vec<R::Feed> {
        let (over, stay) = std::mem::take(&mut self.sources)
            .into_iter()
            .partition(|(_, feed)| which(*feed));
        self.sources = stay;
        let over: BTreeMap<_, _> = over;
        self.effects.extend(over.keys().map(|id| Effect::End(*id)));
        over.into_values().collect()
    }

    /// A side is there no longer, and nothing is read at it.
    pub fn close(&mut self, side: R::Side) {
        self.effects.push(Effect::Close(side));
        self.sources.retain(|_, feed| feed.side() != side);
    }

    /// Something is to be done at a side.
    pub fn request(&mut self, request: R::Request) {
        self.effects.push(Effect::Request(request));
    }
}
