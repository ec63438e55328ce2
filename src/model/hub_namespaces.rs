//! Namespaces at the hub that upsync needs: created when an object could not be created because its namespace is
//! missing, and deleted when upsync has nothing left in them.
//!
//! A namespace is deleted only if it carries our mark and the hub has answered, for every type that it serves, that
//! nothing is in it but what every cluster puts there by itself.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use driver::queue::back_off;
use driver::source::{Reading, SourceId, Style};
use kube_lite::logging::log_line;
use kube_lite::{Error, Precondition, ResourceType, Scope};
use tokio::time::Instant;

use super::timers::{LASTING, Timer};
use super::{Feed, Model, Request};
use crate::api::UPSYNCED_SELECTOR;
use crate::plan::Direction;
use crate::report::Subject;
use crate::side::Side;
use crate::sync::meta::Meta;
use crate::sync::ownership::{CopyState, Marked};

/// How long a namespace of ours is kept after the last object of upsync in it is gone: one that comes back needs it
/// again.
const KEPT: Duration = Duration::from_secs(10);
/// The wait before an unused namespace that turned out not to be empty is checked again.
const NOT_EMPTY_WAIT: Duration = Duration::from_secs(600);

/// What is known of them.
#[derive(Default)]
pub(super) struct KnownNamespaces {
    source: Option<SourceId>,
    /// They have been read completely once.
    listed: bool,
    /// Those that upsync has created and that are there.
    ours: BTreeMap<String, Ours>,
    /// Those that the list under way has not named yet.
    unnamed: BTreeSet<String>,
    /// Those that have to be created.
    needed: BTreeSet<String>,
    /// Those for which a request is under way.
    busy: BTreeSet<String>,
    /// Those that are being deleted.
    clearing: BTreeSet<String>,
    /// Those of which the last request has failed.
    failing: BTreeSet<String>,
    /// One was kept because the hub does not allow more, which was logged.
    is_said_to_be_kept: bool,
}

#[derive(Default)]
struct Ours {
    /// Since when nothing of upsync is in it; for the time when it may be deleted.
    unused: Option<Instant>,
}

/// What a request about a namespace ended with.
pub(crate) struct NamespaceDone {
    pub(crate) namespace: String,
    pub(crate) result: Result<NamespaceEnd, Error>,
}

/// What is done about a namespace.
pub(crate) enum NamespaceStep {
    Make,
    /// Whether it may be deleted.
    Read,
    /// While this is under way, nothing is written into it.
    Clear(Precondition),
}

pub(crate) enum NamespaceEnd {
    /// It is there.
    Made,
    /// It is ours and nothing was in it when it was in this state.
    Empty(Precondition),
    /// It was deleted.
    Cleared,
    /// By a read it is gone, being deleted or not ours. The read may be that of a cache: only the watch is certain.
    NotOurs,
    /// There is something in it, such as this.
    NotEmpty(String),
    /// The hub does not allow to see what is in it, or to delete it: it is kept.
    Forbidden(Error),
}

impl KnownNamespaces {
    /// True if there are any that upsync has created.
    pub(super) fn are_left(&self) -> bool {
        !self.ours.is_empty()
    }

    pub(super) fn list_begins(&mut self) {
        self.unnamed = self.ours.keys().cloned().collect();
    }

    fn listed(&mut self) {
        for namespace in std::mem::take(&mut self.unnamed) {
            self.ours.remove(&namespace);
        }
        self.listed = true;
    }
}

impl Model {
    /// An object could not be created because its namespace is missing.
    pub(super) fn need_hub_namespace(&mut self, namespace: &str) {
        self.hub_namespaces.needed.insert(namespace.to_owned());
        self.timers.set(Timer::NamespaceWrites, self.now);
    }

    /// One is gone. With the last one, what was remembered only for these namespaces is dropped.
    pub(super) fn hub_namespace_gone(&mut self, namespace: &str) {
        let was_ours = self.hub_namespaces.ours.remove(namespace).is_some();
        if was_ours && !self.hub_namespaces.are_left() {
            self.replan();
        }
    }

    pub(super) fn hub_namespaces_listed(&mut self) {
        self.hub_namespaces.listed();
        self.timers.set(Timer::NamespaceWrites, self.now);
    }

    pub(super) fn hub_namespace_seen(&mut self, meta: &Meta) {
        let known = &mut self.hub_namespaces;
        known.unnamed.remove(&meta.name);
        let copy = meta.copy(
            Direction::Up,
            &ResourceType::namespaces(),
            &self.settings.policy.sync_target,
        );
        if copy.state == CopyState::Ours && !copy.terminating {
            if let Entry::Vacant(new) = known.ours.entry(meta.name.clone()) {
                new.insert(Ours::default());
                // It may be needed no longer, though nothing else changes.
                self.timers.set(Timer::NamespaceWrites, self.now);
            }
        } else {
            known.ours.remove(&meta.name);
        }
    }

    /// Watches the namespaces of ours as long as anything is upsynced, or some of them are left. Whether there are any is not
    /// asked for ever where the hub does not say it.
    pub(super) fn watch_hub_namespaces(&mut self) {
        let upsyncs = self.types.values().any(|state| state.plan.direction == Direction::Up);
        if !upsyncs && !self.hub_namespaces.are_left() {
            let fails = |id: &SourceId| self.sources.get(id).is_some_and(|source| source.fails);
            if let Some(id) = self.hub_namespaces.source.take_if(|id| fails(id)) {
                self.end_source(id);
                for namespace in std::mem::take(&mut self.hub_namespaces.failing) {
                    self.report.clear(&keeping(&namespace));
                }
            }
            return;
        }
        if upsyncs && self.hub_namespaces.source.is_none() {
            let reading = Reading {
                resource: ResourceType::namespaces(),
                scope: Scope::default(),
                style: Style::Labelled(UPSYNCED_SELECTOR.into()),
            };
            self.hub_namespaces.source = Some(self.start_source(Feed::HubNamespaces, reading));
        }
    }

    /// Creates those that are needed, and searches for those that are not needed any more, if that is due.
    pub(super) fn keep_hub_namespaces(&mut self) {
        let now = self.now;
        if !self.timers.fires(Timer::NamespaceWrites, now) {
            return;
        }
        for namespace in std::mem::take(&mut self.hub_namespaces.needed) {
            self.start_namespace_task(namespace, NamespaceStep::Make);
        }
        if !self.hub_namespaces.listed || !self.upsync_is_listed() {
            return;
        }
        let used = self.used_hub_namespaces();
        let known = &mut self.hub_namespaces;
        known.failing.retain(|namespace| {
            let needed = used.contains(namespace) || known.ours.contains_key(namespace);
            if !needed {
                // It could not be created, and is not needed any more.
                self.report.clear(&keeping(namespace));
            }
            needed
        });
        let mut expired = Vec::new();
        let mut next: Option<Instant> = None;
        for (namespace, ours) in &mut self.hub_namespaces.ours {
            if used.contains(namespace.as_str()) {
                ours.unused = None;
                continue;
            }
            let due = *ours.unused.get_or_insert(now + KEPT);
            if due <= now {
                expired.push(namespace.clone());
                ours.unused = Some(now + NOT_EMPTY_WAIT);
            }
            next = next.into_iter().chain(ours.unused).min();
        }
        if let Some(next) = next {
            self.timers.set(Timer::NamespaceWrites, next);
        }
        for namespace in expired {
            self.start_namespace_task(namespace, NamespaceStep::Read);
        }
    }

    /// A copy of upsync is gone: its namespace may be empty now.
    pub(super) fn upsync_left_a_namespace(&mut self) {
        if !self.hub_namespaces.ours.is_empty() || !self.hub_namespaces.failing.is_empty() {
            self.timers.set(Timer::NamespaceWrites, self.now);
        }
    }

    fn upsync_is_listed(&self) -> bool {
        let mut ups = self
            .types
            .values()
            .filter(|state| state.plan.direction == Direction::Up);
        ups.all(|state| {
            state.has_listed_copies(&self.sources) && state.copies_listed && state.has_listed_origins(&self.sources)
        })
    }

    /// Namespaces in which upsync has, or is to have, an object, and those that are upsynced themselves.
    fn used_hub_namespaces(&self) -> BTreeSet<String> {
        let mut used = BTreeSet::new();
        for state in self.types.values() {
            let is_namespaces = state.plan.at_hub.stands_for("", "namespaces");
            match state.plan.direction {
                Direction::Up => {
                    used.extend(state.inventory.namespaces_in_use());
                    if is_namespaces {
                        used.extend(state.inventory.ours().map(|name| name.name.to_string()));
                    }
                }
                Direction::Down => {}
            }
        }
        used
    }

    /// True while a namespace of the hub is being deleted: what is to be created in it waits for that.
    pub(super) fn is_being_cleared(&self, namespace: &str) -> bool {
        self.hub_namespaces.clearing.contains(namespace)
    }

    fn start_namespace_task(&mut self, namespace: String, step: NamespaceStep) {
        if !self.hub_namespaces.busy.insert(namespace.clone()) {
            return;
        }
        if matches!(step, NamespaceStep::Clear(_)) {
            self.hub_namespaces.clearing.insert(namespace.clone());
        }
        self.effects.request(Request::Namespace(namespace, step));
    }

    pub(super) fn on_namespace(&mut self, done: NamespaceDone) {
        let NamespaceDone { namespace, result } = done;
        self.hub_namespaces.busy.remove(&namespace);
        if self.hub_namespaces.clearing.remove(&namespace) {
            self.namespace_is_there(Side::Hub, &namespace);
        }
        let subject = keeping(&namespace);
        match result {
            Ok(end) => {
                self.timers.succeeds(Timer::NamespaceWrites);
                self.hub_namespaces.failing.remove(&namespace);
                self.report.works(&subject);
                match end {
                    NamespaceEnd::Made => {
                        // Noted before the hub reports it, so that the namespace is not forgotten if upsync ends in
                        // between.
                        self.hub_namespaces.ours.entry(namespace.clone()).or_default();
                        self.namespace_is_there(Side::Hub, &namespace);
                    }
                    NamespaceEnd::Empty(only_if) => {
                        // It may have become needed while the hub was asked.
                        if !self.used_hub_namespaces().contains(&namespace) {
                            self.start_namespace_task(namespace, NamespaceStep::Clear(only_if));
                        }
                    }
                    NamespaceEnd::Cleared => {
                        self.hub_namespaces.is_said_to_be_kept = false;
                        self.hub_namespace_gone(&namespace);
                    }
                    NamespaceEnd::NotOurs => {}
                    NamespaceEnd::Forbidden(error) => self.namespace_is_kept(&namespace, &error),
                    NamespaceEnd::NotEmpty(found) => {
                        log_line!(
                            Debug,
                            NamespaceKept,
                            "a namespace that upsync does not use any more is not empty",
                            side = "hub",
                            namespace = namespace,
                            has = format_args!("{found:?}")
                        );
                    }
                }
            }
            Err(error) => {
                let doing = "keeping the namespace";
                let failures = self.timers.fails(Timer::NamespaceWrites);
                if error.is_unreachable() {
                    self.side_is_silent(Side::Hub, doing, &error);
                } else if !error.is_passing() || failures > LASTING {
                    self.fails(subject, doing, &error);
                }
                let known = &mut self.hub_namespaces;
                let next = self.now + back_off(failures, self.chance.f64());
                if let Some(ours) = known.ours.get_mut(&namespace) {
                    ours.unused = Some(next);
                }
                known.failing.insert(namespace);
                self.timers.set_earlier(Timer::NamespaceWrites, next);
            }
        }
    }
}

impl Model {
    /// A namespace stays, though nothing of upsync is in it any more. It is no failure: the permission is optional.
    fn namespace_is_kept(&mut self, namespace: &str, error: &Error) {
        if !std::mem::replace(&mut self.hub_namespaces.is_said_to_be_kept, true) {
            log_line!(
                Info,
                NamespaceLeft,
                "a namespace that upsync does not use any more is kept, as the hub does not allow more; further ones \
                 have no line",
                side = "hub",
                object = format_args!("Namespace//{namespace}"),
                because = error,
                advice = "delete it yourself, or grant what gen rbac prints as optional"
            );
        }
    }
}

fn keeping(namespace: &str) -> Subject {
    Subject::object(Side::Hub, format!("Namespace//{namespace}"))
}
