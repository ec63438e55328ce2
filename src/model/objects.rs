//! What is reported of objects, compared with the inventory.

mod copies;

use std::rc::Rc;

use driver::source::{SourceId, Versions};
use kube_lite::logging::log_line;
use kube_lite::{Error, ObjectName};

use super::handler::Handler;
use super::inventory::Held;
use super::{Key, ListEpoch, Model, Task, TypeId};
use crate::plan::{Direction, Selection};
use crate::report::LeftOut;
use crate::side::Side;
use crate::sync::kinds::has_finished;
use crate::sync::meta::{Meta, Object};
use crate::sync::object::{Desired, Status, has_ephemeral_containers};
use crate::sync::ownership::{Marked, origin_hash};

impl Model {
    /// The list under way has named an origin of which there is no news.
    pub(super) fn origin_unchanged(&mut self, id: SourceId, type_id: TypeId, meta: &Meta) {
        let (Some(source), Some(state)) = (self.sources.get(&id), self.types.get_mut(&type_id)) else {
            return;
        };
        let list = source.list;
        state.without_copy.is_named_again(&meta.object_name(), list);
        let names = state.of_origin(&meta.object_name());
        for name in &names {
            state.inventory.still_at_origin(name, list, origin_hash(&meta.uid));
        }
        for name in &names {
            self.origin_of_finished(type_id, name, (&meta.uid, false), list);
        }
    }

    pub(super) fn origin_gone(&mut self, type_id: TypeId, meta: &Meta) {
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        if state.without_copy.remove(&meta.object_name()) {
            self.report.clear(&state.of_origin_alone(&meta.object_name()));
        }
        let names = state.of_origin(&meta.object_name()).into_iter();
        let (gone, others): (Vec<_>, Vec<_>) = names.partition(|name| {
            let needs_worker = state.inventory.gone_from_origin(name);
            state.inventory.origin_seen_at(name, meta.version_number());
            needs_worker
        });
        let direction = state.plan.direction;
        self.namespace_may_be_gone(type_id, &meta.object_name());
        self.more_pending_deletes(direction, gone.len());
        for name in gone.iter().chain(&others) {
            self.origin_of_finished_is_gone(type_id, name, &meta.uid);
        }
        for name in gone {
            self.enqueue(type_id, name, None);
        }
        for name in others {
            self.does_not_fail_if_over(type_id, &name);
        }
    }

    /// A Job has finished and was deleted at the edge by its `ttlSecondsAfterFinished`: it does not run again, and its
    /// last status is returned, so that a later run knows that too.
    fn job_is_over(&mut self, type_id: TypeId, name: &ObjectName, (version, wanted): (u64, u64), last: &Object) {
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        // It was deleted by a controller that waits for its Pods, which was logged.
        for subject in state.subjects(name).into_iter().flatten() {
            self.report.works(&subject);
        }
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        state.status_seen(name, Side::Edge, version, || Some(Status::hash_of(last)));
        state.inventory.has_finished(name, wanted);
        if state.inventory.copy_gone(name, version) {
            self.enqueue(type_id, name.clone(), None);
        }
        self.return_status(type_id, name, Some(last.bytes().clone()));
    }

    /// If a copy that a former conversion made is gone, or ours no longer, its name is free for the object that has it
    /// now, which is queued.
    pub(super) fn former_copy_may_be_deleted(&mut self, type_id: TypeId, name: &ObjectName) {
        if let Some(state) = self.types.get_mut(&type_id)
            && state.is_rid_of_former_copy(name)
        {
            self.restart_type(type_id);
        }
    }

    /// There is an origin for the object `name`.
    fn origin_of(&mut self, type_id: TypeId, name: &ObjectName, list: ListEpoch, object: &Object) -> Result<(), Error> {
        let meta = &object.meta;
        let Some(state) = self.types.get_mut(&type_id) else {
            return Ok(());
        };
        let Some((origin, copy)) = state.both(name) else {
            return Ok(());
        };
        if state.plan.direction == Direction::Down {
            self.namespace_may_be_there(&origin.name);
        }
        let state = self.types.get(&type_id).expect("found above");
        // What the other direction has created is not synced back.
        let is_copy = meta.is_copy_of(state.plan.direction.other(), &origin.resource.kind);
        let selection = state.allowed(name);
        let desired = if selection == Selection::None || is_copy || state.is_record(name) {
            None
        } else {
            Desired::from_origin(state.plan.direction, &origin, &copy, selection, object)?
        };
        // While the copies are read again, because more is selected, not all existing objects are known.
        let is_listed = self
            .types
            .get(&type_id)
            .is_some_and(|state| state.has_listed_copies(&self.sources));
        let shows_end = desired.is_some() && has_finished(&origin.resource, object.field("status"));
        self.origin_of_finished(type_id, name, (&meta.uid, shows_end), list);
        let state = self.types.get_mut(&type_id).expect("found above");
        let Some(desired) = desired else {
            let may_be_led_astray = !is_copy && selection != Selection::None;
            let is_own = state.is_record(name);
            if may_be_led_astray && !is_own && state.inventory.is_of_another(name, origin_hash(&meta.uid)) {
                self.has_successor(type_id, name);
            } else {
                state.inventory.unselected_at_origin(name, list);
            }
            let state = self.types.get_mut(&type_id).expect("found above");
            state.inventory.origin_seen_at(name, meta.version_number());
            if may_be_led_astray && Desired::is_led_astray(&origin, &copy, selection, object, is_own) {
                let side = state.plan.direction.origin();
                state.without_copy.insert(&origin.name, list);
                self.report
                    .name_is_never_synced(side, &origin.for_people(), &copy.for_people());
            } else {
                self.does_not_fail_if_over(type_id, name);
            }
            return Ok(());
        };
        self.origin_wants(type_id, name, (list, is_listed), (object, desired));
        if has_ephemeral_containers(&origin.resource, object)
            && let Some(state) = self.types.get(&type_id)
        {
            let (side, resource) = (state.plan.direction.origin(), origin.resource.qualified());
            let pod = origin.for_people();
            self.report
                .leaves_out(side, resource, &pod, LeftOut::EphemeralContainers);
        }
        Ok(())
    }

    /// The origin was deleted, and an object has its name that is never synced.
    fn has_successor(&mut self, type_id: TypeId, name: &ObjectName) {
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        let direction = state.plan.direction;
        let is_news = !state.inventory.is_retiring(name);
        state.inventory.gone_from_origin(name);
        self.more_pending_deletes(direction, usize::from(is_news));
        self.enqueue(type_id, name.clone(), None);
    }

    /// The origin wants this copy. `is_listed`: all existing copies are known.
    fn origin_wants(
        &mut self,
        type_id: TypeId,
        name: &ObjectName,
        (list, is_listed): (ListEpoch, bool),
        (object, desired): (&Object, Desired),
    ) {
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        let uid = origin_hash(&desired.origin);
        let is_same = state.inventory.wanted_by(name, uid) != 0;
        let link = state.inventory.get(name);
        let wants_what_it_did = link.is_some_and(|link| link.wanted == desired.hash);
        let needs_worker = state.inventory.at_origin(name, list, desired.hash);
        state.inventory.origin_is(name, uid);
        let version = object.meta.version_number();
        state.inventory.origin_seen_at(name, version);
        if !is_listed {
            state.inventory.read_first(name);
        }
        let direction = state.plan.direction;
        if direction == Direction::Up {
            self.edge_status_seen(type_id, name, version, object, is_same);
        } else {
            state.status_seen(name, Side::Hub, version, || Some(Status::hash_of(object)));
        }
        self.meet_rival(type_id, name, object.bytes());
        // A new status, say, is no reason to try earlier what has failed.
        let is_no_news = wants_what_it_did && self.queue.has(&Key::new(type_id, Task::Object, name.clone()));
        if needs_worker && !is_no_news {
            self.enqueue(type_id, name.clone(), Some(Rc::new(desired)));
        } else {
            let at_edge = (direction == Direction::Up).then(|| object.bytes().clone());
            self.return_status(type_id, name, at_edge);
        }
    }

    /// A list of origins is complete.
    pub(super) fn origins_complete(&mut self, id: SourceId, type_id: TypeId, versions: Versions) {
        let Some(feed) = self.sources.get(&id).map(|source| source.feed) else {
            return;
        };
        let known = self.others_have_reached(type_id, feed);
        self.source_has_listed(id, versions);
        if self.is_read_once(type_id, id) {
            // The other source reports what is not there.
            self.has_read_once(type_id, id, versions.list, known);
        } else {
            self.origins_listed(id, type_id);
        }
        if self.all_listed() {
            self.keep_first_versions_in_record();
        }
    }

    /// The origins of a type cannot be read.
    pub(super) fn origins_broke_off(&mut self, type_id: TypeId, error: &Error) {
        let Some(state) = self.types.get(&type_id) else {
            return;
        };
        let direction = state.plan.direction;
        // One type that cannot be read says nothing about the others.
        if error.is_unreachable()
            || self.guard.held_of(&state.plan) == Held::WithoutPermit && state.inventory.has_pending_delete()
        {
            self.origins_are_unsteady(direction);
        }
    }

    fn origins_listed(&mut self, id: SourceId, type_id: TypeId) {
        let (Some(source), Some(state)) = (self.sources.get(&id), self.types.get_mut(&type_id)) else {
            return;
        };
        let (scope, list) = (source.reading.scope.clone(), source.list);
        let (direction, missing) = (state.plan.direction, state.origins_listed(&scope, list));
        let pending = missing.iter().filter(|name| state.inventory.is_retiring(name)).count();
        self.without_copy_listed(type_id, &scope, list);
        self.origins_of_finished_listed(type_id, &scope, list);
        self.compare_with_missing(id, type_id, &missing);
        self.more_pending_deletes(direction, pending);
        for name in missing {
            self.enqueue(type_id, name, None);
        }
        if direction == Direction::Up {
            // Which namespaces at the hub are unused is known only once everything that is upsynced has been listed.
            self.upsync_left_a_namespace();
        }
    }
}

/// Origins of a type at a side.
pub(super) struct OriginsHandler(pub(super) TypeId, pub(super) Side);

impl Handler for OriginsHandler {
    fn begins(&self, model: &mut Model, id: SourceId) {
        model.reads_all_again(self.0, self.1, id);
    }

    fn object(&self, model: &mut Model, id: SourceId, object: Object) -> Result<(), Error> {
        let type_id = self.0;
        let Some(source) = model.sources.get(&id) else {
            return Ok(());
        };
        let meta = &object.meta;
        let (list, feed, listing) = (source.list, source.feed, source.listing);
        if model.has_another_scope(id, meta) {
            return Ok(());
        }
        let is_once = model.is_read_once(type_id, id);
        let known = if is_once {
            model.others_have_reached(type_id, feed)
        } else {
            0
        };
        model.source_is_at(feed, meta.version_number());
        model.source_reaches(id, meta.version_number());
        let Some(state) = model.types.get_mut(&type_id) else {
            return Ok(());
        };
        let origin = meta.object_name();
        state.takes_its_name(&origin);
        let reporter = is_once.then(|| state.source_of_origin(&origin)).flatten();
        let reporter = reporter.and_then(|id| model.sources.get(&id));
        let of_list = reporter.map_or(list, |source| source.list);
        model.may_be_without_copy(type_id, meta, of_list);
        let Some(state) = model.types.get_mut(&type_id) else {
            return Ok(());
        };
        let mut names = state.of_origin(&origin);
        if is_once {
            // The other source may have reported something newer than this list.
            let is_older = |known: &super::inventory::Link| meta.version_number() < known.origin_version;
            names.retain(|name| !state.inventory.get(name).is_some_and(is_older));
        }
        for name in names {
            // It counts as named by the source that continues to report it, also by its list that is under way: that one
            // may have passed the object before it was selected. If it is gone, the next list shows that.
            let state = model.types.get(&type_id).filter(|_| is_once);
            let reporter = state.and_then(|state| state.origin_source(&name));
            let reporter = reporter.and_then(|id| model.sources.get(&id));
            let list = reporter.map_or(list, |source| source.list);
            model.origin_of(type_id, &name, list, &object)?;
        }
        if is_once && !listing {
            model.has_read_once(type_id, id, meta.version_number(), known);
        }
        Ok(())
    }

    fn unchanged(&self, model: &mut Model, id: SourceId, meta: Meta) {
        model.origin_unchanged(id, self.0, &meta);
    }

    fn gone(&self, model: &mut Model, id: SourceId, last: &Object) {
        model.source_reaches(id, last.meta.version_number());
        model.origin_gone(self.0, &last.meta);
    }

    fn listed(&self, model: &mut Model, id: SourceId, versions: Versions) {
        model.origins_complete(id, self.0, versions);
    }

    fn breaks_off(&self, model: &mut Model, error: &Error) {
        model.origins_broke_off(self.0, error);
    }
}

/// Says that a side is not what it was.
fn log_break(side: Side, resource: &str, goes_back: bool) {
    if goes_back {
        log_line!(
            Warn,
            VersionsWentBack,
            "a side has gone back to older versions, everything is read again",
            side = side.word(),
            resource = resource
        );
    } else {
        log_line!(
            Warn,
            VersionsWentBack,
            "a side has lost a write that it had confirmed, as in a power cut; everything is read again",
            side = side.word(),
            resource = resource
        );
    }
}
