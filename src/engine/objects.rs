//! What sources tell, held against the inventory.

use bytes::Bytes;
use tokio::time::Instant;

use super::configs::no_configs;
use super::{Engine, Feed, Key, Task, TypeId};
use crate::cluster::{Error, ObjectName, Scope, Side};
use crate::plan::{Direction, Selection};
use crate::report::Subject;
use crate::source::{Covers, SourceEvent, SourceId, Versions};
use crate::sync::job::Seen;
use crate::sync::kinds::has_finished;
use crate::sync::object::{Desired, Meta, Status};
use crate::sync::own_objects::is_record;
use crate::sync::ownership::{CopyState, Owner, origin_hash};

impl Engine {
    pub(super) fn source_event(&mut self, id: SourceId, event: SourceEvent) {
        let Some(source) = self.sources.get(&id) else {
            return; // Said before it was ended.
        };
        let feed = source.feed;
        match event {
            SourceEvent::Begin(covers) => {
                let list = self.new_list();
                if let Some(source) = self.sources.get_mut(&id) {
                    source.list = list;
                    source.listing = true;
                    source.covers = covers;
                }
                match feed {
                    Feed::Configs(kind) => self.selecting.list_begins(kind),
                    Feed::HubNamespaces => self.hub_namespaces.list_begins(),
                    Feed::Unlabelled(type_id) => self.unlabelled_list_begins(id, type_id),
                    Feed::Definitions(side) => self.definitions_begin(side),
                    Feed::Origins(type_id, side) => self.reads_all_again(type_id, side, id),
                    Feed::Copies(..) => {}
                }
            }
            SourceEvent::Object(object) => self.object(id, feed, object),
            SourceEvent::Unchanged(object) => self.object_unchanged(id, feed, &object),
            SourceEvent::Gone(object) => self.object_gone(id, feed, object),
            SourceEvent::Complete(versions) => self.list_complete(id, feed, versions),
            SourceEvent::Up => self.source_up(id, feed),
            SourceEvent::Down(error) => self.source_down(id, feed, &error),
        }
    }

    fn object(&mut self, id: SourceId, feed: Feed, object: Bytes) {
        let result = match feed {
            Feed::Configs(kind) => {
                self.config_object(kind, &object);
                Ok(())
            }
            Feed::Definitions(side) => self.definition_changed(id, side, &object),
            Feed::Origins(type_id, _) => self.origin(id, type_id, &object),
            Feed::Copies(type_id, _) => self.copy(id, type_id, object),
            Feed::Unlabelled(type_id) => self.unlabelled(id, type_id, object),
            Feed::HubNamespaces => Meta::parse(&object).map(|meta| self.hub_namespace_seen(&meta)),
        };
        self.note_unreadable(feed, result);
    }

    /// The list under way has named an object of which there is no news.
    fn object_unchanged(&mut self, id: SourceId, feed: Feed, object: &[u8]) {
        let Some(list) = self.sources.get(&id).map(|source| source.list) else {
            return;
        };
        let result = Meta::parse(object).map(|meta| match feed {
            Feed::Configs(kind) => self.config_unchanged(kind, &meta),
            Feed::Definitions(side) => self.definition_seen(side, meta),
            Feed::Origins(type_id, _) => {
                if let Some(state) = self.types.get_mut(&type_id) {
                    for name in state.of_origin(&meta.object_name()) {
                        state.inventory.still_at_origin(&name, list);
                    }
                }
            }
            Feed::Copies(type_id, _) => {
                if let Some(state) = self.types.get_mut(&type_id)
                    && let Some(name) = state.of_copy(&meta, &self.setup.policy.sync_target)
                {
                    state.inventory.copy_unchanged(&name, list);
                }
            }
            Feed::Unlabelled(_) => self.unlabelled_named(id, &meta.object_name()),
            Feed::HubNamespaces => self.hub_namespace_seen(&meta),
        });
        self.note_unreadable(feed, result);
    }

    fn object_gone(&mut self, id: SourceId, feed: Feed, object: Bytes) {
        let result = match feed {
            Feed::Configs(kind) => {
                self.config_gone(kind, &object);
                Ok(())
            }
            Feed::Definitions(side) => Meta::parse(&object).map(|meta| self.definition_gone(side, &meta)),
            Feed::Origins(type_id, _) => Meta::parse(&object).map(|meta| self.origin_gone(type_id, &meta)),
            Feed::Copies(type_id, _) | Feed::Unlabelled(type_id) => Meta::parse(&object).map(|meta| {
                self.unlabelled_named(id, &meta.object_name());
                self.copy_gone(type_id, &meta, object);
            }),
            Feed::HubNamespaces => Meta::parse(&object).map(|meta| self.hub_namespaces.gone(&meta.name)),
        };
        self.note_unreadable(feed, result);
    }

    fn origin_gone(&mut self, type_id: TypeId, meta: &Meta) {
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        let mut gone = state.of_origin(&meta.object_name());
        gone.retain(|name| {
            let needs_worker = state.inventory.gone_from_origin(name);
            state.inventory.origin_told(name, meta.version_number());
            needs_worker
        });
        let direction = state.plan.direction;
        self.more_are_doomed(direction, gone.len());
        for name in gone {
            self.enqueue(type_id, name, None);
        }
    }

    /// A copy is gone; `last` is what it was.
    fn copy_gone(&mut self, type_id: TypeId, meta: &Meta, last: Bytes) {
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        let we = &self.setup.policy.sync_target;
        let Some(name) = state.of_copy(meta, we) else { return };
        let is_over = state.plan.direction == Direction::Down && has_finished(state.copy_type(), Status::raw(&last));
        let origin = Owner::of(&meta.annotations).map_or(0, |owner| origin_hash(owner.origin));
        let wanted = state.inventory.wanted_by(&name, origin);
        if is_over && wanted != 0 {
            self.job_is_over(type_id, &name, (meta.version_number(), wanted), last);
        } else if !is_over && state.inventory.is_taken_away(&name) {
            state.inventory.copy_gone(&name, meta.version_number());
            self.taken_away(type_id, name.clone());
        } else if state.inventory.copy_gone(&name, meta.version_number()) {
            self.enqueue(type_id, name.clone(), None);
        }
        self.stray_may_be_gone(type_id, &name);
        self.upsync_left_a_namespace();
        self.forget_status_failures(type_id);
        self.drop_type_without_copies(type_id);
    }

    /// A Job has run to its end and was deleted at the edge, by its time to live: it does not run again, and its last status
    /// goes up, by which a later run knows that too.
    fn job_is_over(&mut self, type_id: TypeId, name: &ObjectName, (version, wanted): (u64, u64), last: Bytes) {
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        // One whose status cannot be read has none to return.
        let _ = state.status_told(name, Side::Edge, version, || Status::hash_of(&last).map(Some));
        state.inventory.has_finished(name, wanted);
        if state.inventory.copy_gone(name, version) {
            self.enqueue(type_id, name.clone(), None);
        }
        self.return_status(type_id, name, Some(last));
    }

    /// If a copy that a former conversion made is gone, its name is free for what it belongs to now, which is looked for.
    pub(super) fn stray_may_be_gone(&mut self, type_id: TypeId, name: &ObjectName) {
        if let Some(state) = self.types.get_mut(&type_id)
            && state.is_rid_of_stray(name)
        {
            self.restart_type(type_id);
        }
    }

    /// An event without readable metadata names nothing that could be acted on. No API server sends one.
    fn note_unreadable(&mut self, feed: Feed, result: Result<(), Error>) {
        if let Err(error) = result {
            let subject = Subject::Thing(feed.side(), "an object without readable metadata".to_owned());
            self.fails(subject, "reading", &error);
        }
    }

    fn origin(&mut self, id: SourceId, type_id: TypeId, object: &Bytes) -> Result<(), Error> {
        let meta = Meta::parse(object)?;
        let Some(source) = self.sources.get(&id) else {
            return Ok(());
        };
        let (list, feed, listing) = (source.list, source.feed, source.listing);
        let is_once = self.is_read_once(type_id, id);
        let known = if is_once { self.known_version(feed) } else { 0 };
        self.source_is_at(feed, meta.version_number());
        let Some(state) = self.types.get_mut(&type_id) else {
            return Ok(());
        };
        state.takes_its_name_back(&meta.object_name());
        if let Some((copy, others)) = state.displaced(&meta.object_name()) {
            let (side, copy, others) = (state.plan.direction.copy(), copy.for_people(), others.for_people());
            self.report.name_is_taken(side, &copy, &others);
        }
        let Some(state) = self.types.get_mut(&type_id) else {
            return Ok(());
        };
        let mut names = state.of_origin(&meta.object_name());
        if is_once {
            // The other source may have told of what came after this list.
            let is_older = |known: &super::inventory::Record| meta.version_number() < known.origin_version;
            names.retain(|name| !state.inventory.get(name).is_some_and(is_older));
        }
        for name in names {
            // It counts as named by the source that goes on to tell of it.
            let state = self.types.get(&type_id).filter(|_| is_once);
            let teller = state.and_then(|state| state.origin_source(&name));
            let teller = teller.and_then(|id| self.sources.get(&id));
            let list = teller.map_or(list, |source| source.list);
            self.origin_of(type_id, &name, list, &meta, object)?;
        }
        if is_once && !listing {
            self.has_read_once(type_id, id, meta.version_number(), known);
        }
        Ok(())
    }

    /// There is an origin for the object `name`.
    fn origin_of(
        &mut self,
        type_id: TypeId,
        name: &ObjectName,
        list: super::Generation,
        meta: &Meta,
        object: &Bytes,
    ) -> Result<(), Error> {
        let Some(state) = self.types.get_mut(&type_id) else {
            return Ok(());
        };
        let Some((origin, copy)) = state.both(name) else {
            return Ok(());
        };
        if let Some(why) = state.refusal(name) {
            self.report.refused(&origin.for_people(), &why);
        }
        // What the other direction has made does not travel back.
        let is_copy = meta.is_copy_of(state.plan.direction.other(), &origin.resource.kind);
        let selection = state.allowed(name);
        let desired = if selection == Selection::None || is_copy || is_record(&state.plan.at_edge, &name.name) {
            None
        } else {
            Desired::from_origin(&origin, &copy, selection, object)?
        };
        // While the copies are looked at again, because more is selected, not all of what is there is known.
        let looked = self
            .types
            .get(&type_id)
            .is_some_and(|state| self.has_listed_copies(state));
        let state = self.types.get_mut(&type_id).expect("looked up above");
        let Some(desired) = desired else {
            state.inventory.unselected_at_origin(name, list);
            state.inventory.origin_told(name, meta.version_number());
            return Ok(());
        };
        let needs_worker = state.inventory.at_origin(name, list, desired.hash);
        state.inventory.origin_is(name, origin_hash(&desired.origin));
        state.inventory.origin_told(name, meta.version_number());
        let direction = state.plan.direction;
        if !looked {
            state.inventory.look_first(name);
        }
        state.status_told(name, direction.origin(), meta.version_number(), || {
            Status::hash_of(object).map(Some)
        })?;
        let at_edge = (direction == Direction::Up).then(|| object.clone());
        if needs_worker {
            self.enqueue(type_id, name.clone(), Some(object.clone()));
        } else {
            self.return_status(type_id, name, at_edge);
        }
        Ok(())
    }

    /// There is an object in a copy's place, told by the source of copies.
    fn copy(&mut self, id: SourceId, type_id: TypeId, object: Bytes) -> Result<(), Error> {
        let Some(source) = self.sources.get(&id) else {
            return Ok(());
        };
        let (list, whole) = (source.list, source.tells_whole());
        let meta = Meta::parse(&object)?;
        let Some(state) = self.types.get_mut(&type_id) else {
            return Ok(());
        };
        match state.of_copy(&meta, &self.setup.policy.sync_target) {
            Some(name) => self.copy_seen(type_id, &name, Some(list), &meta, object, whole),
            None => Ok(()),
        }
    }

    /// What is in the copy's place of `name`; without a `list` it says nothing about lists.
    pub(super) fn copy_seen(
        &mut self,
        type_id: TypeId,
        name: &ObjectName,
        list: Option<super::Generation>,
        meta: &Meta,
        object: Bytes,
        whole: bool,
    ) -> Result<(), Error> {
        let Some(state) = self.types.get_mut(&type_id) else {
            return Ok(());
        };
        let direction = state.plan.direction;
        let selection = state.selection(name);
        let seen = Seen::of(direction, state.copy_type(), &object, &self.setup.policy, selection)?;
        let keep = seen.copy.state == CopyState::Ours || selection != Selection::None;
        let known = state.inventory.get(name);
        let list = list.unwrap_or_else(|| known.map_or(0, super::inventory::Record::copy_list));
        let is_news = known.is_none_or(|known| known.seen.version != seen.version);
        let drifted = state.inventory.copy_seen(name, list, seen, keep);
        if direction == Direction::Up && whole && is_news && state.inventory.has_ours(name) {
            let (_, copy) = state
                .both(name)
                .ok_or_else(|| Error::BadAnswer("no such name".into()))?;
            let owner = Owner::of(&meta.annotations);
            let owner = owner.filter(|owner| owner.sync_target == self.setup.policy.sync_target.uid);
            if let Some(owner) = owner
                && let Some(mut content) = Desired::from_origin(&copy, &copy, Selection::Full, &object)?
            {
                content.made_from(owner.origin.to_owned());
                state.inventory.copy_is(name, content.hash);
            }
        }
        if whole || is_news {
            state.status_told(name, direction.copy(), meta.version_number(), || {
                whole.then(|| Status::hash_of(&object)).transpose()
            })?;
        }
        let is_orphan = state.inventory.is_orphan(name);
        if drifted {
            self.drifted(type_id, name.clone(), &object);
        }
        if is_orphan {
            self.judge_orphans(type_id, [name.clone()]);
        }
        let body = (whole && direction == Direction::Down).then_some(object);
        if self.has_settled(type_id, name) {
            self.return_status(type_id, name, body);
        }
        Ok(())
    }

    /// Copies of ours that have turned up after the lists had begun that would have named their origins. As far as these
    /// lists go, the origins are gone; but whoever made the copies may have been told of newer ones. A worker asks for each,
    /// and those whose origins are gone indeed count as doomed from then on.
    fn judge_orphans(&mut self, type_id: TypeId, names: impl IntoIterator<Item = ObjectName>) {
        let mut unread = false;
        for name in names {
            let Some(state) = self.types.get_mut(&type_id) else {
                return;
            };
            if !state.looked || !state.inventory.is_orphan(&name) {
                continue;
            }
            if state.plan.gone_at_origin {
                state.inventory.suspect(&name);
                self.enqueue(type_id, name, None);
                continue;
            }
            match state.origin_source(&name).and_then(|id| self.sources.get(&id)) {
                Some(source) if source.list != 0 => {
                    state.inventory.suspect(&name);
                    // A list that is under way may name it yet.
                    if !source.listing {
                        self.enqueue(type_id, name, None);
                    }
                }
                // Its list is to come.
                Some(_) => {}
                None => unread = true,
            }
        }
        if unread {
            self.start_origin_sources();
        }
    }

    /// True once a worker has brought the object in step: before that, there may be no hub object to give a status to,
    /// and the worker's answer holds the status.
    fn has_settled(&self, type_id: TypeId, name: &ObjectName) -> bool {
        let record = self.types.get(&type_id).and_then(|state| state.inventory.get(name));
        record.is_some_and(|record| record.settled != 0)
    }

    fn list_complete(&mut self, id: SourceId, feed: Feed, versions: Versions) {
        let Some(source) = self.sources.get_mut(&id) else {
            return;
        };
        source.settled = true;
        source.listing = false;
        let (list, covers, known) = (source.list, source.covers, source.known);
        let scope = source.reading.scope.clone();
        match feed {
            Feed::Configs(kind) => {
                self.source_has_listed(id, versions);
                self.configs_listed(kind);
            }
            Feed::Definitions(side) => self.definitions_listed(side),
            Feed::Origins(type_id, _) => {
                let known = self.known_version(feed);
                self.source_has_listed(id, versions);
                if self.is_read_once(type_id, id) {
                    // What is not there is the other source's to tell.
                    self.has_read_once(type_id, id, versions.list, known);
                } else {
                    self.origins_listed(type_id, &scope, list);
                }
                if self.all_listed() {
                    self.keep_first_versions_in_record();
                }
            }
            Feed::Copies(type_id, _) => {
                let before = versions.before.max(known);
                self.copies_listed(type_id, list, covers, Versions { before, ..versions });
            }
            Feed::Unlabelled(type_id) => self.unlabelled_listed(id, type_id),
            Feed::HubNamespaces => self.hub_namespaces.listed(),
        }
        self.start_origin_sources();
    }

    fn copies_listed(&mut self, type_id: TypeId, list: super::Generation, covers: Covers, versions: Versions) {
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        if versions.go_back() {
            let (side, resource) = (state.plan.direction.copy(), state.copy_type().qualified());
            log::warn!("the {side} has gone back to older versions, looking at everything again resource={resource}");
            self.restart_type_anew(type_id);
            if side == Side::Edge {
                self.read_record_again();
            }
            return;
        }
        state.looked = true;
        let strays = state.strays();
        let mut out_of_step = state.inventory.copies_listed(list, covers, versions.list);
        if state.plan.gone_at_origin {
            out_of_step.extend(state.inventory.origin_has_none());
        }
        let orphans = state.inventory.orphans();
        for name in out_of_step {
            self.enqueue(type_id, name, None);
        }
        self.judge_orphans(type_id, orphans);
        // Those that were there before the type was looked at again.
        self.watch_unlabelled(type_id);
        for name in strays {
            self.stray_may_be_gone(type_id, &name);
        }
        self.upsync_left_a_namespace();
        self.drop_type_without_copies(type_id);
    }

    fn origins_listed(&mut self, type_id: TypeId, scope: &Scope, list: super::Generation) {
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        let (direction, missing) = (state.plan.direction, state.origins_listed(scope, list));
        let doomed = missing.iter().filter(|name| state.inventory.is_doomed(name)).count();
        self.more_are_doomed(direction, doomed);
        for name in missing {
            self.enqueue(type_id, name, None);
        }
        if direction == Direction::Up {
            // Which namespaces at the hub are not used is told only once all of upsync is listed.
            self.upsync_left_a_namespace();
        }
    }

    fn source_up(&mut self, id: SourceId, feed: Feed) {
        if let Feed::Definitions(side) = feed {
            self.definitions_are_told(side);
        }
        if let Feed::Configs(_) = feed {
            self.report.works(&no_configs());
        }
        if let Some(source) = self.sources.get_mut(&id) {
            source.fails = false;
        }
        if let Some((side, thing)) = self.source_name(id)
            && !self.fails_in_another(id)
        {
            self.report.works(&Subject::Thing(side, thing));
        }
    }

    fn source_down(&mut self, id: SourceId, feed: Feed, error: &Error) {
        if let Some(source) = self.sources.get_mut(&id) {
            // What waits for this source to be read must not wait for ever.
            source.settled |= !error.is_unreachable();
        }
        self.start_origin_sources();
        let Some((side, thing)) = self.source_name(id) else {
            return;
        };
        if let Feed::Origins(type_id, _) = feed
            && let Some(state) = self.types.get(&type_id)
        {
            let direction = state.plan.direction;
            // A type that cannot be read says nothing of the others.
            if error.is_unreachable() || self.guard.holds_any(type_id, direction) {
                self.origins_are_unsteady(direction);
            }
        }
        if let Feed::Configs(kind) = feed {
            self.configs_broke_off(kind, error);
        }
        if error.is_unreachable() {
            self.queue.side_is_down(side, Instant::now(), fastrand::f64());
            self.side_is_silent(side, "reaching", error);
            return;
        }
        match feed {
            Feed::Configs(kind) if error.is_type_not_served() => self.configs_not_served(kind, error),
            Feed::Definitions(side) => self.definitions_refused(side, error),
            _ => {
                if error.is_type_not_served() {
                    self.type_vanished(id, side);
                }
                if let Some(source) = self.sources.get_mut(&id) {
                    source.fails = true;
                }
                self.fails(Subject::Thing(side, thing), "watching", error);
            }
        }
    }

    /// True if another source fails that people know by the same name: of the same type at the same side, in one namespace
    /// or all.
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
            name = format!("{name} in namespace {namespace}");
        }
        Some((source.feed.side(), name))
    }

    pub(super) fn enqueue(&mut self, type_id: TypeId, name: ObjectName, body: Option<Bytes>) {
        if let Some(state) = self.types.get(&type_id) {
            let class = state.class(&name);
            self.queue.add(Key::new(type_id, Task::Object, name), class, body);
        }
    }
}
