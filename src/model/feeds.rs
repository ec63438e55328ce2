//! What sources report, and what the events of each kind of feed do: one [`Handler`] for each kind, so that a role adds
//! a kind without touching anything else here.

use driver::Feed as _;
use driver::source::{SourceEvent, SourceId, Versions};
use kube_lite::Error;

use super::config_kind::ConfigKind;
use super::handler::Handler;
use super::objects::OriginsHandler;
use super::{Feed, Model, TypeId};
use crate::report::{Subject, Topic};
use crate::side::Side;
use crate::sync::meta::{Meta, Object};

impl Feed {
    /// The type whose objects it reads, if it is one of a type.
    fn type_id(self) -> Option<TypeId> {
        match self {
            Self::Origins(type_id, _) | Self::Copies(type_id, _) | Self::Unlabelled(type_id) => Some(type_id),
            Self::Configs(_) | Self::Crds(_) | Self::HubNamespaces => None,
        }
    }

    /// Lets the handler of this feed do something.
    fn handle<R>(self, act: impl FnOnce(&dyn Handler) -> R) -> R {
        match self {
            Self::Configs(kind) => act(&kind),
            Self::Crds(side) => act(&CrdsHandler(side)),
            Self::Origins(type_id, side) => act(&OriginsHandler(type_id, side)),
            Self::Copies(type_id, _) => act(&CopiesHandler(type_id)),
            Self::Unlabelled(type_id) => act(&UnlabelledHandler(type_id)),
            Self::HubNamespaces => act(&HubNamespacesHandler),
        }
    }
}

impl Model {
    pub(super) fn on_source(&mut self, id: SourceId, event: SourceEvent) {
        let Some(source) = self.sources.get(&id) else {
            return; // Reported before it was ended.
        };
        let feed = source.feed;
        match event {
            SourceEvent::Begin(covers) => {
                let list = self.lists.next();
                if let Some(source) = self.sources.get_mut(&id) {
                    source.list = list;
                    source.listing = true;
                    source.outdated.clear();
                    source.covers = covers;
                }
                feed.handle(|handler| handler.begins(self, id));
            }
            SourceEvent::Object(object) => {
                let read = self.read(feed.side(), object);
                let result = read.and_then(|object| feed.handle(|handler| handler.object(self, id, object)));
                self.note_unreadable(id, feed.side(), result);
            }
            SourceEvent::Unchanged(object) => {
                let read = self.read(feed.side(), object);
                let result = read.map(|object| feed.handle(|handler| handler.unchanged(self, id, object.meta)));
                self.note_unreadable(id, feed.side(), result);
            }
            SourceEvent::Gone(last) => {
                let read = self.read(feed.side(), last);
                let result = read.map(|last| feed.handle(|handler| handler.gone(self, id, &last)));
                self.note_unreadable(id, feed.side(), result);
            }
            SourceEvent::Unreadable(error) => self.note_unreadable(id, feed.side(), Err(error)),
            SourceEvent::Complete(versions) => {
                if let Some(source) = self.sources.get_mut(&id) {
                    source.settled = true;
                    source.listing = false;
                }
                self.all_is_readable(id, false);
                feed.handle(|handler| handler.listed(self, id, versions));
                if versions.are_behind_others() {
                    self.side_may_have_lost(feed.side(), versions.list);
                }
                self.start_origin_sources();
            }
            SourceEvent::Up => self.source_up(id, feed),
            SourceEvent::Down(error) => self.source_down(id, feed, &error),
        }
    }

    /// An object of a side.
    fn read(&self, side: Side, mut object: Box<kube_lite::Object>) -> Result<Object, Error> {
        object.is_at(self.sides.of(side).contact.workspaces);
        object.with_managers()
    }

    /// An event without readable metadata names nothing that could be acted on. No API server sends one.
    fn note_unreadable(&mut self, id: SourceId, side: Side, result: Result<(), Error>) {
        let Err(error) = result else { return };
        if let Some(source) = self.sources.get_mut(&id) {
            source.unreadable_in = source.list;
        }
        self.fails(unreadable(side), "reading", &error);
    }

    /// A source has listed everything, or ends: what it could not read before is not there any more. Nothing at the side
    /// fails for that, unless another source has met such an object.
    pub(super) fn all_is_readable(&mut self, id: SourceId, is_over: bool) {
        let Some(source) = self.sources.get_mut(&id).filter(|source| source.unreadable_in != 0) else {
            return;
        };
        if !is_over && source.unreadable_in == source.list {
            return;
        }
        source.unreadable_in = 0;
        let side = source.feed.side();
        let mut all = self.sources.values();
        if all.any(|other| other.feed.side() == side && other.unreadable_in != 0) {
            return;
        }
        if is_over {
            self.report.clear(&unreadable(side));
        } else {
            self.report.works(&unreadable(side));
        }
    }

    fn source_up(&mut self, id: SourceId, feed: Feed) {
        feed.handle(|handler| handler.up(self));
        if let Some(subject) = self.source_does_not_fail(id) {
            self.report.works(&subject);
        }
    }

    /// A source does not count as failing. What it was reported about, if no other source of that name fails.
    fn source_does_not_fail(&mut self, id: SourceId) -> Option<Subject> {
        self.sources.get_mut(&id)?.fails = false;
        let (side, thing) = self.source_name(id)?;
        (!self.fails_in_another(id)).then_some(Subject::Thing(side, Topic::Watch, thing))
    }

    fn source_down(&mut self, id: SourceId, feed: Feed, error: &Error) {
        if let Some(source) = self.sources.get_mut(&id) {
            // What waits until this source is read must not wait for ever.
            source.settled |= !error.is_unreachable();
        }
        self.start_origin_sources();
        let Some((side, thing)) = self.source_name(id) else {
            return;
        };
        feed.handle(|handler| handler.breaks_off(self, error));
        if error.is_unreachable() {
            self.queue.side_is_down(side, self.now, self.chance.f64());
            self.side_is_silent(side, "reaching", error);
            return;
        }
        if feed.handle(|handler| handler.is_refused(self, error)) {
            if let Some(subject) = self.source_does_not_fail(id) {
                self.report.clear(&subject);
            }
            return;
        }
        if self.fails_for_nobody(id, feed, error) {
            return;
        }
        if error.is_type_not_served() {
            self.type_vanished(id, side);
        }
        if let Some(source) = self.sources.get_mut(&id) {
            source.fails = true;
        }
        self.fails(Subject::Thing(side, Topic::Watch, thing), "watching", error);
    }

    /// True for a source that fails and is read only for the copies that may be left of a type which no config selects, if
    /// that is no failure: there can be none, or its side does not allow to read them, so that they are preserved.
    fn fails_for_nobody(&mut self, id: SourceId, feed: Feed, error: &Error) -> bool {
        let type_id = feed.type_id();
        let Some(type_id) = type_id.filter(|id| self.types.get(id).is_some_and(|state| !state.plan.selected)) else {
            return false;
        };
        self.drop_type_without_copies(type_id);
        let Some((side, thing)) = self.source_name(id).filter(|_| error.is_forbidden()) else {
            return !self.sources.contains_key(&id);
        };
        if let Some(subject) = self.source_does_not_fail(id) {
            self.report.clear(&subject);
        }
        self.report.leaves_unread(side, &thing, error);
        true
    }

    /// True if another source fails that has the same name in the log: of the same type at the same side, in one
    /// namespace or all.
    pub(super) fn fails_in_another(&self, id: SourceId) -> bool {
        let name = self.source_name(id);
        let mut others = self
            .sources
            .iter()
            .filter(|&(&other, source)| other != id && source.fails);
        others.any(|(&other, _)| self.source_name(other) == name)
    }

    /// What a source is about, for people.
    pub(super) fn source_name(&self, id: SourceId) -> Option<(Side, String)> {
        let source = self.sources.get(&id)?;
        let mut name = source.reading.resource.qualified();
        if let Some(namespace) = &source.reading.scope.namespace {
            name = format!("{name}/{namespace}");
        }
        Some((source.feed.side(), name))
    }
}

/// Some object of a side that has no readable metadata.
fn unreadable(side: Side) -> Subject {
    Subject::Thing(side, Topic::Unreadable, String::new())
}

/// Configs of a kind at the hub.
impl Handler for ConfigKind {
    fn begins(&self, model: &mut Model, _id: SourceId) {
        model.selecting.list_begins(*self);
    }

    fn object(&self, model: &mut Model, _id: SourceId, object: Object) -> Result<(), Error> {
        model.config_object(*self, object);
        Ok(())
    }

    fn unchanged(&self, model: &mut Model, _id: SourceId, meta: Meta) {
        model.config_unchanged(*self, &meta);
    }

    fn gone(&self, model: &mut Model, _id: SourceId, last: &Object) {
        model.config_gone(*self, &last.meta);
    }

    fn listed(&self, model: &mut Model, id: SourceId, versions: Versions) {
        model.source_has_listed(id, versions);
        model.configs_listed(*self);
    }

    fn up(&self, model: &mut Model) {
        model.configs_are_reported(*self);
    }

    fn breaks_off(&self, model: &mut Model, error: &Error) {
        model.configs_broke_off(*self, error);
    }

    fn is_refused(&self, model: &mut Model, error: &Error) -> bool {
        if error.is_type_not_served() {
            model.configs_not_served(*self, error);
        }
        error.is_type_not_served()
    }
}

/// CRDs of a side.
struct CrdsHandler(Side);

impl Handler for CrdsHandler {
    fn begins(&self, model: &mut Model, _id: SourceId) {
        model.crds_begin(self.0);
    }

    fn object(&self, model: &mut Model, id: SourceId, object: Object) -> Result<(), Error> {
        model.crd_changed(id, self.0, object.meta);
        Ok(())
    }

    fn unchanged(&self, model: &mut Model, _id: SourceId, meta: Meta) {
        model.crd_seen(self.0, meta);
    }

    fn gone(&self, model: &mut Model, _id: SourceId, last: &Object) {
        model.crd_gone(self.0, &last.meta);
    }

    fn listed(&self, model: &mut Model, _id: SourceId, _versions: Versions) {
        model.crds_listed(self.0);
    }

    fn up(&self, model: &mut Model) {
        model.crds_are_reported(self.0);
    }

    fn is_refused(&self, model: &mut Model, error: &Error) -> bool {
        model.crds_refused(self.0, error);
        true
    }
}

/// Copies of a type.
struct CopiesHandler(TypeId);

impl Handler for CopiesHandler {
    fn begins(&self, _model: &mut Model, _id: SourceId) {}

    fn object(&self, model: &mut Model, id: SourceId, object: Object) -> Result<(), Error> {
        model.copy(id, self.0, &object)
    }

    fn unchanged(&self, model: &mut Model, id: SourceId, meta: Meta) {
        model.copy_unchanged(id, self.0, &meta);
    }

    fn gone(&self, model: &mut Model, _id: SourceId, last: &Object) {
        model.copy_gone(self.0, last);
        model.end_is_reported(self.0, &last.meta.object_name());
    }

    fn listed(&self, model: &mut Model, id: SourceId, versions: Versions) {
        model.copies_listed(id, self.0, versions);
    }
}

/// Objects of a type at the edge that have no label of ours, so that no list by label names them.
struct UnlabelledHandler(TypeId);

impl Handler for UnlabelledHandler {
    fn begins(&self, model: &mut Model, id: SourceId) {
        model.unlabelled_list_begins(id, self.0);
    }

    fn object(&self, model: &mut Model, id: SourceId, object: Object) -> Result<(), Error> {
        model.unlabelled(id, self.0, &object)
    }

    fn unchanged(&self, model: &mut Model, id: SourceId, meta: Meta) {
        model.unlabelled_named(id, &meta.object_name());
    }

    fn gone(&self, model: &mut Model, id: SourceId, last: &Object) {
        model.unlabelled_named(id, &last.meta.object_name());
        model.copy_gone(self.0, last);
    }

    fn listed(&self, model: &mut Model, id: SourceId, _versions: Versions) {
        model.unlabelled_listed(id, self.0);
    }
}

/// Namespaces at the hub that upsync has made.
struct HubNamespacesHandler;

impl Handler for HubNamespacesHandler {
    fn begins(&self, model: &mut Model, _id: SourceId) {
        model.hub_namespaces.list_begins();
    }

    fn object(&self, model: &mut Model, _id: SourceId, object: Object) -> Result<(), Error> {
        model.hub_namespace_seen(&object.meta);
        Ok(())
    }

    fn unchanged(&self, model: &mut Model, _id: SourceId, meta: Meta) {
        model.hub_namespace_seen(&meta);
    }

    fn gone(&self, model: &mut Model, _id: SourceId, last: &Object) {
        model.hub_namespace_gone(&last.meta.name);
    }

    fn listed(&self, model: &mut Model, _id: SourceId, _versions: Versions) {
        model.hub_namespaces_listed();
    }
}
