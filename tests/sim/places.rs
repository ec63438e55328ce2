//! Promises about where the syncer writes: at each side where something has its copy that a config has selected, and nowhere
//! else.

use std::time::Duration;

use edge_syncer::side::Side;
use serde_json::Value;

use super::conversions::origin_of;
use super::fields::owns_replicas;
use super::flows::{DOWNSYNC, UPSYNC};
use super::ledger::{Ledger, PROOF_AGE, Write};
use super::request::Verb;
use super::store::Key;

/// How long a watch may have said nothing of a delete.
const LAG: Duration = Duration::from_secs(60);

impl Ledger {
    /// What is written at the edge is a copy already, or has the place of something that a config has selected, by its name
    /// there. Namespaces are made for what is in them.
    pub(super) fn check_downward(&mut self, write: &Write<'_>, key: &Key) {
        if write.ask.verb == Verb::Delete {
            return;
        }
        let is_copy = |object: &&Value| DOWNSYNC.owns(object);
        let was_copy = write.before.filter(is_copy);
        if was_copy.is_none() && !write.ty.is_namespace() && !self.history.selected_for(key) {
            self.break_promise(format!("wrote {key} at the edge, where nothing ever was to be"), &[key]);
        }
        if self.choices.denies(key) {
            self.break_promise(format!("wrote {key}, which the edge's owner denies"), &[key]);
        }
        let replicas = |object: &Value| object["spec"]["replicas"].clone();
        if let (Some(before), Some(after)) = (was_copy, write.after)
            && replicas(before) != replicas(after)
            && owns_replicas(before)
            && !self.wants_replicas(key)
        {
            self.break_promise(format!("scaled {key}, which the hub leaves to the edge"), &[key]);
        }
        if let Some(copy) = write.after.filter(is_copy) {
            self.check_origin(key, was_copy, copy);
        }
    }

    /// A copy says of which origin it is, and stays that one's as long as it is there.
    fn check_origin(&mut self, key: &Key, before: Option<&Value>, copy: &Value) {
        let origin = origin_of(key, copy);
        if !self.history.had_place(&origin, key) {
            let what = format!("wrote that {key} is of {origin}, which never had its place");
            self.break_promise(what, &[key]);
        }
        let Some(before) = before
            .map(|copy| origin_of(key, copy))
            .filter(|before| *before != origin)
        else {
            return;
        };
        if let Some(&(since, true)) = self.existence.get(&(Side::Hub, before.clone()))
            && self.clock().saturating_sub(since) > PROOF_AGE + self.staleness
        {
            self.break_promise(
                format!("made the copy {key} of {before} one of {origin}"),
                &[key, &before],
            );
        }
    }

    /// Something was written at the hub: a copy of what the edge has and a config has selected, or a namespace for such
    /// copies; nothing of anybody else.
    pub(super) fn check_upward(&mut self, write: &Write<'_>, key: &Key) {
        let theirs = |object: Option<&Value>| object.is_some_and(|object| !UPSYNC.owns(object));
        if theirs(write.before) {
            self.break_promise(format!("wrote {key} at the hub, which is somebody else's"), &[key]);
        }
        if write.ask.verb != Verb::Delete && theirs(write.after) {
            self.break_promise(format!("wrote {key} at the hub and did not mark it"), &[key]);
        }
        let selected = |key: &Key| self.history.selected_upward(key);
        if !write.ty.is_namespace() {
            if !self.history.selected_upward_for(key) {
                self.break_promise(format!("wrote {key} at the hub, which nothing ever selected"), &[key]);
            }
            return;
        }
        let mut within = self
            .existence
            .iter()
            .filter(|((_, inner), _)| inner.namespace == key.name && !inner.is_each_sides_own());
        let wrong = if write.ask.verb == Verb::Delete {
            // What has come since the syncer looked is not seen: no server has a precondition for that. Nor is what the hub
            // does not serve.
            let since = self.clock().saturating_sub(PROOF_AGE + self.staleness);
            let is_served = |inner: &Key| !write.hidden.contains_key(&*inner.resource);
            !self.lists_lie
                && within.any(|((side, inner), (at, exists))| {
                    *side == Side::Hub && *exists && *at < since && is_served(inner)
                })
        } else {
            // Watches lag behind.
            let since = self.clock().saturating_sub(LAG);
            let is_missed = self.seen.has_just_watched(write.process, Side::Edge, LAG, self.clock());
            let is_there = |&(at, exists): &(Duration, bool)| exists || at >= since || is_missed;
            let needs = |inner: &Key| self.history.needs_at_hub(inner, write.hidden);
            !selected(key)
                && !within.any(|((side, inner), there)| *side == Side::Edge && is_there(there) && needs(inner))
        };
        if wrong {
            let what = format!(
                "{:?} of {key} at the hub, which is not empty, or not needed",
                write.ask.verb
            );
            self.break_promise(what, &[key]);
        }
    }

    /// A status was returned to the hub: to an object that some config has selected, and nothing else was changed.
    pub(super) fn check_status(&mut self, write: &Write<'_>, key: &Key) {
        let operations: Value = serde_json::from_slice(&write.ask.body).unwrap_or_default();
        let is_status = |one: &&Value| one["op"] == "add" && one["path"] == "/status";
        let changes = operations.as_array().into_iter().flatten();
        let changes: Vec<_> = changes.filter(|one| one["op"] != "test").collect();
        let status_alone = changes.len() == 1 && changes.iter().all(is_status);
        if write.ask.verb != Verb::JsonPatch || !status_alone || rest(write.before) != rest(write.after) {
            self.break_promise(format!("wrote more than the status of {key}"), &[key]);
        }
        if write.ty.is_namespace() || write.ty.is_definition() {
            self.break_promise(format!("wrote the status of {key}, which is the hub's own"), &[key]);
        }
        let upsynced = self.history.selected_upward_for(key) && write.before.is_some_and(|it| UPSYNC.owns(it));
        if !upsynced && !self.history.selected(key) {
            self.break_promise(
                format!("wrote the status of {key}, which nothing ever selected"),
                &[key],
            );
        }
    }
}

/// An object without its status and what the server keeps for itself.
pub(super) fn rest(object: Option<&Value>) -> Value {
    let mut object = object.cloned().unwrap_or_default();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.retain(|key, _| !matches!(key.as_str(), "resourceVersion" | "managedFields" | "generation"));
    }
    object
}
