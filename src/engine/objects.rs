//! What sources tell, held against the inventory.

use std::collections::BTreeMap;

use bytes::Bytes;

use super::inventory::Inventory;
use super::{Engine, Feed, TypeId};
use crate::api::DOWNSYNCED_SELECTOR;
use crate::cluster::{Error, ObjectName, Side};
use crate::plan::Selection;
use crate::report::Subject;
use crate::source::{Reading, SourceEvent, SourceId, Style};
use crate::sync::downsync::Seen;
use crate::sync::object::{Desired, Meta};
use crate::sync::ownership::CopyState;

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
                    source.covers = covers;
                }
                if feed == Feed::Configs {
                    self.selecting.list_begins();
                }
            }
            SourceEvent::Object(object) => self.object(id, feed, object),
            SourceEvent::Unchanged(object) => self.object_unchanged(id, feed, &object),
            SourceEvent::Gone(object) => self.object_gone(feed, &object),
            SourceEvent::Complete(version) => self.list_complete(id, feed, version),
            SourceEvent::Up => self.source_up(id),
            SourceEvent::Down(error) => self.source_down(id, feed, &error),
        }
    }

    fn object(&mut self, id: SourceId, feed: Feed, object: Bytes) {
        let result = match feed {
            Feed::Configs => {
                self.config_object(&object);
                Ok(())
            }
            Feed::Definitions(side) => {
                self.definition_changed(id, side);
                Ok(())
            }
            Feed::Hub(type_id) => self.hub_object(id, type_id, object),
            Feed::Edge(type_id) => self.edge_object(id, type_id, &object),
        };
        self.note_unreadable(feed, result);
    }

    /// The list under way has named an object of which there is no news.
    fn object_unchanged(&mut self, id: SourceId, feed: Feed, object: &[u8]) {
        let Some(list) = self.sources.get(&id).map(|source| source.list) else {
            return;
        };
        let result = Meta::parse(object).map(|meta| match feed {
            Feed::Configs => self.config_unchanged(&meta),
            Feed::Definitions(_) => {}
            Feed::Hub(type_id) => {
                if let Some(state) = self.types.get_mut(&type_id) {
                    state.inventory.still_at_hub(&meta.object_name(), list);
                }
            }
            Feed::Edge(type_id) => {
                if let Some(state) = self.types.get_mut(&type_id) {
                    state.inventory.still_at_edge(&meta.object_name(), list);
                }
            }
        });
        self.note_unreadable(feed, result);
    }

    fn object_gone(&mut self, feed: Feed, object: &[u8]) {
        let result = match feed {
            Feed::Configs => {
                self.config_gone(object);
                Ok(())
            }
            Feed::Definitions(side) => {
                self.asking(side).ask_again_soon();
                Ok(())
            }
            Feed::Hub(type_id) => Meta::parse(object).map(|meta| {
                let name = meta.object_name();
                let state = self.types.get_mut(&type_id);
                if state.is_some_and(|state| state.inventory.gone_from_hub(&name)) {
                    self.enqueue(type_id, name, None);
                }
            }),
            Feed::Edge(type_id) => Meta::parse(object).map(|meta| {
                let name = meta.object_name();
                let state = self.types.get_mut(&type_id);
                if state.is_some_and(|state| state.inventory.gone_from_edge(&name, meta.version_number())) {
                    self.enqueue(type_id, name, None);
                }
                self.drop_type_without_copies(type_id);
            }),
        };
        self.note_unreadable(feed, result);
    }

    /// An event without readable metadata names nothing that could be acted on. No API server sends one.
    fn note_unreadable(&mut self, feed: Feed, result: Result<(), Error>) {
        if let Err(error) = result {
            let subject = Subject::Thing(feed.side(), "an object without readable metadata".to_owned());
            self.report.failed(subject, "reading", &error);
        }
    }

    fn hub_object(&mut self, id: SourceId, type_id: TypeId, object: Bytes) -> Result<(), Error> {
        let list = self.sources.get(&id).map_or(0, |source| source.list);
        let Some(state) = self.types.get_mut(&type_id) else {
            return Ok(());
        };
        let name = Meta::parse(&object)?.object_name();
        let mut selection = state.selector.selects(&name);
        let refusal = self
            .setup
            .filter
            .refuses(&state.resource, &name)
            .filter(|_| selection != Selection::None);
        if let Some(why) = refusal {
            selection = Selection::None;
            self.report
                .refused(&name.of_kind(&state.resource.kind).to_string(), &why);
        }
        let desired = match selection {
            Selection::None => None,
            Selection::Implied | Selection::Full => Desired::from_hub(&state.resource, selection, &object)?,
        };
        let Some(desired) = desired else {
            state.inventory.unselected_at_hub(&name, list);
            return Ok(());
        };
        if state.inventory.at_hub(&name, list, desired.hash) {
            self.enqueue(type_id, name, Some(object));
        }
        Ok(())
    }

    fn edge_object(&mut self, id: SourceId, type_id: TypeId, object: &[u8]) -> Result<(), Error> {
        let list = self.sources.get(&id).map_or(0, |source| source.list);
        let Some(state) = self.types.get_mut(&type_id) else {
            return Ok(());
        };
        let name = Meta::parse(object)?.object_name();
        let seen = Seen::of(&state.at_edge, object, &self.setup.policy)?;
        let keep = seen.copy.state == CopyState::Ours || state.selector.selects(&name) != Selection::None;
        if state.inventory.at_edge(&name, list, seen, keep) {
            self.drifted(type_id, name, object);
        }
        Ok(())
    }

    fn list_complete(&mut self, id: SourceId, feed: Feed, version: u64) {
        let Some(source) = self.sources.get_mut(&id) else {
            return;
        };
        source.settled = true;
        let (list, covers, scope) = (source.list, source.covers, source.scope.clone());
        match feed {
            Feed::Configs => self.configs_listed(),
            Feed::Definitions(_) => {}
            Feed::Hub(type_id) => {
                let state = self.types.get_mut(&type_id);
                let missing = state
                    .map(|state| state.inventory.hub_listed(&scope, list))
                    .unwrap_or_default();
                for name in missing {
                    self.enqueue(type_id, name, None);
                }
            }
            Feed::Edge(type_id) => {
                let Some(state) = self.types.get_mut(&type_id) else {
                    return;
                };
                if state.inventory.edge_went_back(version) {
                    log::warn!(
                        "the edge has gone back to older versions, looking at everything again resource={}",
                        state.resource.qualified()
                    );
                    state.inventory = Inventory::default();
                    self.restart_type(type_id);
                    return;
                }
                state.looked = true;
                let mut out_of_step = state.inventory.edge_listed(list, covers, version);
                if state.gone_at_hub {
                    out_of_step.extend(state.inventory.hub_has_none());
                }
                for name in out_of_step {
                    self.enqueue(type_id, name, None);
                }
                self.drop_type_without_copies(type_id);
            }
        }
        self.start_hub_sources();
    }

    /// Starts the hub sources of every type whose edge has been looked at: first those that others need, and the others
    /// once those are read, so that an object rarely comes before its namespace.
    pub(super) fn start_hub_sources(&mut self) {
        let read = |id: &SourceId| self.sources.get(id).is_some_and(|source| source.settled);
        let first_read = self.types.values().filter(|state| state.is_first()).all(|state| {
            // Without permission to look at the edge there is nothing to wait for.
            let refused = !state.looked && state.edge_source.as_ref().is_some_and(read);
            let started = !state.hub_sources.is_empty() || !state.selected || state.hub_scopes().is_empty();
            refused || state.looked && started && state.hub_sources.values().all(read)
        });
        let ready: Vec<TypeId> = self
            .types
            .iter()
            .filter(|(_, state)| state.looked && (state.is_first() || first_read))
            .map(|(&id, _)| id)
            .collect();
        for type_id in ready {
            let Some(state) = self.types.get_mut(&type_id) else {
                continue;
            };
            let scopes = state.hub_scopes();
            let resource = state.resource.clone();
            let mut old = std::mem::take(&mut state.hub_sources);
            let mut now = BTreeMap::new();
            for scope in scopes {
                let id = old.remove(&scope).unwrap_or_else(|| {
                    let reading = Reading {
                        resource: resource.clone(),
                        scope: scope.clone(),
                        style: Style::Whole,
                    };
                    self.start_source(Feed::Hub(type_id), reading)
                });
                now.insert(scope, id);
            }
            for id in old.into_values() {
                self.sources.remove(&id);
            }
            if let Some(state) = self.types.get_mut(&type_id) {
                state.hub_sources = now;
            }
        }
    }

    pub(super) fn start_edge_source(&mut self, type_id: TypeId) {
        let Some(resource) = self.types.get(&type_id).map(|state| state.at_edge.clone()) else {
            return;
        };
        let reading = Reading {
            resource,
            scope: crate::cluster::Scope::default(),
            style: Style::LookThenWatch(DOWNSYNCED_SELECTOR),
        };
        let id = self.start_source(Feed::Edge(type_id), reading);
        if let Some(state) = self.types.get_mut(&type_id) {
            state.edge_source = Some(id);
        }
    }

    fn source_up(&mut self, id: SourceId) {
        if let Some((side, thing)) = self.source_name(id) {
            self.report.works(&Subject::Thing(side, thing));
            self.side_answers(side);
        }
    }

    fn source_down(&mut self, id: SourceId, feed: Feed, error: &Error) {
        if let Some(source) = self.sources.get_mut(&id) {
            // What waits for this source to be read must not wait for ever.
            source.settled |= !error.is_unreachable();
        }
        self.start_hub_sources();
        let Some((side, thing)) = self.source_name(id) else {
            return;
        };
        if error.is_unreachable() {
            self.report.failed(Subject::Side(side), "reaching", error);
            return;
        }
        self.side_answers(side);
        match feed {
            Feed::Configs if error.is_type_not_served() => self.report_no_configs(error),
            Feed::Definitions(_) => {
                log::debug!("cannot watch CRDs, asking from time to time side={side} error={error}");
            }
            _ => {
                if error.is_type_not_served() {
                    self.type_vanished(id, side);
                }
                self.report.failed(Subject::Thing(side, thing), "watching", error);
            }
        }
    }

    /// Something answered on this side: if it was unreachable, what waits for it goes on now.
    pub(super) fn side_answers(&mut self, side: Side) {
        if self.report.works(&Subject::Side(side)) {
            self.queue.wake_where(|_| true);
            self.asking(side).ask_again_soon();
        }
    }

    /// What a source is about, for people.
    fn source_name(&self, id: SourceId) -> Option<(Side, String)> {
        let source = self.sources.get(&id)?;
        let mut name = source.resource.qualified();
        if let Some(namespace) = &source.scope.namespace {
            name = format!("{name} in namespace {namespace}");
        }
        Some((source.feed.side(), name))
    }

    pub(super) fn enqueue(&mut self, type_id: TypeId, name: ObjectName, body: Option<Bytes>) {
        if let Some(state) = self.types.get(&type_id) {
            let class = state.class(&name);
            self.queue.add((type_id, name), class, body);
        }
    }
}
