//! What the copies' side reports.

use driver::Feed as _;
use driver::source::{SourceId, Versions};
use kube_lite::{Error, ObjectName};

use super::log_break;
use crate::model::inventory::Link;
use crate::model::replan::synced_type;
use crate::model::{ListEpoch, Model, TypeId};
use crate::plan::{Direction, Selection};
use crate::side::Side;
use crate::sync::job::Seen;
use crate::sync::kinds::has_finished;
use crate::sync::meta::{Meta, Object};
use crate::sync::object::{Desired, Status};
use crate::sync::ownership::{CopyState, Owner, origin_hash};

impl Model {
    /// The same of a copy.
    pub(in crate::model) fn copy_unchanged(&mut self, id: SourceId, type_id: TypeId, meta: &Meta) {
        if let (Some(source), Some(state)) = (self.sources.get(&id), self.types.get_mut(&type_id))
            && let Some(name) = state.of_copy(meta, &self.settings.policy.sync_target)
        {
            state.inventory.copy_unchanged(&name, source.list);
        }
    }

    /// A copy is gone; `last` is what it was.
    pub(in crate::model) fn copy_gone(&mut self, type_id: TypeId, last: &Object) {
        let meta = &last.meta;
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        let we = &self.settings.policy.sync_target;
        let Some(name) = state.of_copy(meta, we) else {
            // One of another type has left its place to what may wait for it.
            let name = meta.object_name();
            if state.inventory.is_wanted(&name) {
                self.enqueue(type_id, name, None);
            }
            return;
        };
        let is_over = state.plan.direction == Direction::Down && has_finished(state.copy_type(), last.field("status"));
        let origin = Owner::of(&meta.annotations).map_or(0, |owner| origin_hash(owner.origin));
        let wanted = state.inventory.wanted_by(&name, origin);
        if is_over {
            self.job_may_have_finished(type_id, &name, last, true);
        }
        if is_over && wanted != 0 {
            self.job_is_over(type_id, &name, (meta.version_number(), wanted), last);
        } else {
            self.copy_is_lost(type_id, &name, meta.version_number());
        }
        self.does_not_fail_if_over(type_id, &name);
        self.former_copy_may_be_deleted(type_id, &name);
        self.upsync_left_a_namespace();
        self.clear_status_failures(type_id);
        self.drop_type_without_copies(type_id);
    }

    /// There is an object in a copy's place, reported by the source of copies.
    pub(in crate::model) fn copy(&mut self, id: SourceId, type_id: TypeId, object: &Object) -> Result<(), Error> {
        let Some(source) = self.sources.get(&id) else {
            return Ok(());
        };
        let (list, whole) = (source.list, source.has_bodies());
        let meta = &object.meta;
        if self.has_another_scope(id, meta) {
            return Ok(());
        }
        self.end_is_reported(type_id, &meta.object_name());
        let Some(state) = self.types.get_mut(&type_id) else {
            return Ok(());
        };
        state.copies_are_at(meta.version_number());
        match state.of_copy(meta, &self.settings.policy.sync_target) {
            Some(name) => {
                let seen_at = state.inventory.get(&name).map_or(0, |known| known.seen.version);
                if let Some(source) = self.sources.get_mut(&id) {
                    source.names_copy(&name, meta.version_number(), seen_at);
                }
                self.copy_seen(type_id, &name, Some(list), object, whole)?;
                self.does_not_fail_if_over(type_id, &name);
                self.former_copy_may_be_deleted(type_id, &name);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// True if an object has another scope than its type had when the source began: the type was deleted and defined
    /// again since, and the side is asked what it is now. A list of all namespaces is read at the same path with both
    /// scopes, so that it does not fail.
    pub(in crate::model) fn has_another_scope(&mut self, id: SourceId, meta: &Meta) -> bool {
        let source = self.sources.get(&id);
        let source = source.filter(|source| meta.namespace.is_empty() == source.reading.resource.namespaced);
        let Some((side, resource)) = source.map(|source| (source.feed.side(), source.reading.resource.clone())) else {
            return false;
        };
        self.void_discovery_of(side, &resource);
        true
    }

    /// What is in the place of the copy of `name`; without `list`, no list has named it.
    pub(in crate::model) fn copy_seen(
        &mut self,
        type_id: TypeId,
        name: &ObjectName,
        list: Option<ListEpoch>,
        object: &Object,
        whole: bool,
    ) -> Result<(), Error> {
        let meta = &object.meta;
        let Some(state) = self.types.get_mut(&type_id) else {
            return Ok(());
        };
        let direction = state.plan.direction;
        let selection = state.selection(name);
        let seen = Seen::of(direction, state.copy_type(), object, &self.settings.policy, selection)?;
        let keep = seen.copy.state == CopyState::Ours || selection != Selection::None;
        let known = state.inventory.get(name);
        let list = list.unwrap_or_else(|| known.map_or(0, Link::copy_list));
        let is_news = known.is_none_or(|known| known.seen.version != seen.version);
        let was_there = known.is_some_and(|known| known.seen.copy.state != CopyState::Absent);
        let drifted = state.inventory.copy_seen(name, list, seen, keep);
        if direction == Direction::Up && whole && is_news && state.inventory.has_ours(name) {
            let (_, copy) = state
                .both(name)
                .ok_or_else(|| Error::BadAnswer("no such name".into()))?;
            let owner = Owner::of(&meta.annotations);
            let owner = owner.filter(|owner| owner.sync_target == self.settings.policy.sync_target.uid);
            if let Some(owner) = owner
                && let Some(mut content) = Desired::from_origin(direction, &copy, &copy, Selection::Full, object)?
            {
                content.made_from(owner.origin.to_owned());
                state.inventory.copy_is(name, content.hash);
            }
        }
        let is_orphan = state.inventory.is_orphan(name);
        let is_to_be_released = state.inventory.is_to_be_released(name);
        let may_keep_less = is_news && state.inventory.may_keep_less(name);
        let version = meta.version_number();
        if whole && direction == Direction::Down {
            self.edge_status_seen(type_id, name, version, object, was_there);
        } else if whole || is_news {
            state.status_seen(name, direction.copy(), version, || {
                whole.then(|| Status::hash_of(object))
            });
        }
        if whole && is_news {
            self.job_may_have_finished(type_id, name, object, false);
        }
        let is_ending = meta.deletion_timestamp.is_some();
        if is_ending && seen.copy.state == CopyState::Ours {
            self.copy_ends(type_id, name);
        }
        if drifted {
            self.drifted(type_id, name.clone(), object.bytes(), is_ending);
        }
        if is_orphan {
            self.judge_orphans(type_id, [name.clone()]);
        }
        if is_to_be_released || may_keep_less {
            self.enqueue(type_id, name.clone(), None);
        }
        let body = (whole && direction == Direction::Down).then(|| object.bytes().clone());
        if self.has_settled(type_id, name) {
            self.return_status(type_id, name, body);
        }
        Ok(())
    }

    /// Copies of ours that turned up after the beginning of the lists that would have named their origins. By these
    /// lists the origins are gone, but whatever made the copies may have seen newer ones. A worker asks for each, and
    /// those whose origins are really gone count as pending deletes from then on.
    fn judge_orphans(&mut self, type_id: TypeId, names: impl IntoIterator<Item = ObjectName>) {
        let mut unread = false;
        for name in names {
            let Some(state) = self.types.get_mut(&type_id) else {
                return;
            };
            if !state.copies_listed || !state.inventory.is_orphan(&name) {
                continue;
            }
            if state.plan.gone_at_origin {
                state.inventory.cannot_verify(&name);
                self.enqueue(type_id, name, None);
                continue;
            }
            match state.origin_source(&name).and_then(|id| self.sources.get(&id)) {
                Some(source) if source.list != 0 => {
                    state.inventory.cannot_verify(&name);
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

    /// True once a worker has synced the object: before that, there may be no hub object to give a status to,
    /// and the worker's answer holds the status.
    fn has_settled(&self, type_id: TypeId, name: &ObjectName) -> bool {
        let record = self.types.get(&type_id).and_then(|state| state.inventory.get(name));
        record.is_some_and(|record| record.settled != 0)
    }

    pub(in crate::model) fn copies_listed(&mut self, id: SourceId, type_id: TypeId, versions: Versions) {
        let (Some(source), Some(state)) = (self.sources.get(&id), self.types.get_mut(&type_id)) else {
            return;
        };
        let (list, covers) = (source.list, source.covers);
        let before = versions.before.max(source.known);
        let versions = Versions { before, ..versions };
        // What has been restored from a backup may have been written to since.
        let has_outdated = source.is_outdated(versions.list);
        if has_outdated || versions.break_with_before() {
            let (side, resource) = (state.plan.direction.copy(), state.copy_type().qualified());
            log_break(side, &resource, has_outdated || versions.go_back());
            state.copies_went_back(before);
            self.restart_type_with_nothing_known(type_id);
            self.side_has_lost(side);
            if side == Side::Edge {
                self.read_record_again();
            }
            return;
        }
        state.copies_listed = true;
        state.copies_are_at(versions.list);
        self.record.has_listed(&synced_type(&state.plan));
        state.ends.are_listed();
        let former_copies = state.former_copies();
        let mut out_of_sync = state.inventory.copies_listed(list, covers, versions.list);
        if state.plan.gone_at_origin {
            out_of_sync.extend(state.inventory.origin_has_none());
        }
        self.permit_let_go(type_id);
        let Some(state) = self.types.get(&type_id) else {
            return;
        };
        let orphans = state.inventory.orphans();
        for name in out_of_sync {
            self.enqueue(type_id, name, None);
        }
        self.judge_orphans(type_id, orphans);
        // Those that were there before the type was read again.
        self.watch_unlabelled(type_id);
        for name in former_copies {
            self.former_copy_may_be_deleted(type_id, &name);
        }
        self.judge_former_definition(type_id);
        self.upsync_left_a_namespace();
        self.drop_type_without_copies(type_id);
    }
}
