//! What the agent wants done, and which of its sources is which.

use std::collections::BTreeMap;
use std::rc::Rc;

use driver::source::{Reading, SourceId, Style};
use kube_lite::{ResourceType, Scope};

use super::border::{Feed, Request};
use crate::sides::{Place, Side};

type Effect = driver::Effect<super::Agent>;

/// See the module's doc.
#[derive(Default)]
pub(super) struct Outbox {
    effects: Vec<Effect>,
    sources: BTreeMap<SourceId, Feed>,
    next: SourceId,
}

impl Outbox {
    /// All that is to be done since the last call.
    pub(super) fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// What a source reads; `None` if it has ended.
    pub(super) fn feed(&self, id: SourceId) -> Option<Feed> {
        self.sources.get(&id).copied()
    }

    /// A side begins to be there.
    pub(super) fn open(&mut self, side: Side, place: Place) {
        self.effects.push(Effect::Open(side, place));
    }

    /// Something begins to be read.
    pub(super) fn read(&mut self, feed: Feed, resource: ResourceType, name: Option<Rc<str>>, style: Style) {
        let id = self.next;
        self.next += 1;
        self.sources.insert(id, feed);
        let scope = Scope { namespace: None, name };
        let reading = Reading { resource, scope, style };
        self.effects.push(Effect::Read(id, feed, reading));
    }

    /// Something is read no longer, and its side is not there any more.
    pub(super) fn close(&mut self, feed: Feed) {
        self.effects.push(Effect::Close(driver::Feed::side(feed)));
        self.sources.retain(|_, other| *other != feed);
    }

    /// Something is to be done at a side.
    pub(super) fn request(&mut self, request: Request) {
        self.effects.push(Effect::Request(request));
    }
}
