//! What this edge says of each config, so that people at the hub see what is synced and what fails.
//!
//! A look counts what each config selects, a moment after anything has happened; what differs from what the hub has is
//! applied. Nothing is stored beside that: what fails is known to the report, what is synced to the inventories.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use kube_lite::{Error, ObjectName};
use serde_json::json;
use tokio::time::Instant;

use super::config_kind::ConfigKind;
use super::configs::ConfigName;
use super::guard::Condition;
use super::{Model, TypeState};
use crate::api::status::{FAILING, Failure, FieldProblem, Hold, NAMED, OfEdge, Status};
use crate::api::{GROUP, VERSION};
use crate::plan::OfConfig;
use crate::report::{Subject, Topic};
use crate::sync::meta::Meta;
use crate::sync::status_writer::status_manager;

/// Between something that happens and the look at what follows from it: more comes with it.
pub(super) const SOON: Duration = Duration::from_secs(2);
/// Between two writes of one status while nothing but its counts changes.
const RARELY: Duration = Duration::from_secs(4);
/// How long after a write what the hub reports may be from before it.
const OLDER: Duration = Duration::from_secs(10);
/// How long the first lists may take before the status says so.
const READING: Duration = Duration::from_secs(30);
/// How long a hub counts as one that does not store the status, before it is tried again: its CRD may be another one then.
/// Each time six times as long.
const LACKING: Duration = Duration::from_secs(600);
const LONGEST_LACKING: Duration = Duration::from_secs(6 * 3600);

/// What is known of the statuses of the configs.
#[derive(Default)]
pub(super) struct ConfigStatuses {
    known: BTreeMap<ConfigName, KnownStatus>,
    /// Kinds of which the hub stores the status.
    stored: BTreeSet<ConfigKind>,
    /// Kinds of which it does not, until when that counts, and for how long that is.
    lacking: BTreeMap<ConfigKind, (Instant, Duration)>,
    /// Since when not all lists are complete.
    reading_since: Option<Instant>,
    /// What is being written.
    writing: BTreeMap<ConfigName, Status>,
}

/// The status of one config.
#[derive(Default)]
struct KnownStatus {
    generation: i64,
    /// As the hub has it.
    is: Status,
    /// The version at which it has that.
    version: u64,
    /// There was something to do for it at the last look.
    was_pending: bool,
    /// When it was written last.
    written: Option<Instant>,
}

/// Statuses to apply, with the field manager that they are applied as.
pub(crate) struct StatusesToWrite {
    pub(crate) manager: String,
    pub(crate) configs: Vec<(ConfigKind, String, Bytes)>,
}

/// What became of each, with the metadata that the config then has.
pub(crate) type StatusesWritten = Vec<(ConfigKind, String, Result<Meta, Error>)>;

impl ConfigStatuses {
    pub(super) fn remove(&mut self, config: &ConfigName) {
        self.known.remove(config);
    }

    /// The hub has reported a config.
    pub(super) fn config_seen(&mut self, kind: ConfigKind, meta: &Meta, object: &[u8], now: Instant) {
        let known = self.known.entry((kind, meta.name.clone())).or_default();
        let version = meta.version_number();
        let (generation, is) = Status::of_config(object);
        known.generation = generation;
        // Whatever was reported on its way to us while we wrote is older; a hub that was restored has older ones for good.
        let is_older = version < known.version && known.written.is_some_and(|at| now.duration_since(at) < OLDER);
        if !is_older {
            (known.is, known.version) = (is, version);
        }
    }

    /// What differs from what the hub has, to be applied as this sync target; and whether that is to be checked again soon.
    /// `clock` is for people.
    pub(super) fn differing(
        &mut self,
        of_edge: Vec<(ConfigName, OfEdge)>,
        uid: &str,
        clock: &str,
        now: Instant,
    ) -> (Option<StatusesToWrite>, bool) {
        self.writing.clear();
        let mut configs = Vec::new();
        let mut again = false;
        for ((kind, name), ours) in of_edge {
            if self.is_lacking(kind, now) {
                continue;
            }
            let known = self.known.entry((kind, name.clone())).or_default();
            // What is synced within a moment is no news.
            let is_pending = std::mem::replace(&mut known.was_pending, ours.pending > 0);
            let may_soon_pass = ours.pending > 0 && !is_pending;
            let is = known.is.clone().only_of(uid);
            let status = known.is.with(ours, clock);
            let mine = status.clone().only_of(uid);
            let is_rare = known.written.is_some_and(|at| now.duration_since(at) < RARELY);
            if may_soon_pass || mine != is && is_rare && !is_news(&is, &mine) {
                again = true;
            } else if mine != is {
                configs.push((kind, name.clone(), body(kind, &name, &mine)));
                self.writing.insert((kind, name), status);
            }
        }
        let manager = status_manager(uid);
        let all = (!configs.is_empty()).then_some(StatusesToWrite { manager, configs });
        (all, again)
    }

    /// True if the first lists are not complete, and have not been for so long that the status has to say it.
    pub(super) fn waits_for_lists(&mut self, are_complete: bool, now: Instant) -> bool {
        if are_complete {
            self.reading_since = None;
        }
        !are_complete && now.duration_since(*self.reading_since.get_or_insert(now)) < READING
    }

    /// The hub has stored what was written to a config, at this version. Returns the one before.
    pub(super) fn is_written(&mut self, of: &ConfigName, version: u64, now: Instant) -> Option<u64> {
        let status = self.writing.remove(of)?;
        self.stored.insert(of.0);
        self.lacking.remove(&of.0);
        let known = self.known.get_mut(of)?;
        let before = known.version;
        (known.is, known.version, known.written) = (status, version, Some(now));
        Some(before)
    }

    /// The hub does not store the status of this kind. True if that is new.
    pub(super) fn is_not_stored(&mut self, kind: ConfigKind, now: Instant) -> bool {
        self.stored.remove(&kind);
        let known = self.lacking.get(&kind);
        let wait = known.map_or(LACKING, |(_, wait)| LONGEST_LACKING.min(*wait * 6));
        self.lacking.insert(kind, (now + wait, wait)).is_none()
    }

    /// True if the hub stores the status of configs of that kind.
    pub(super) fn is_stored(&self, kind: ConfigKind) -> bool {
        self.stored.contains(&kind)
    }

    /// True if it does not.
    pub(super) fn is_lacking(&self, kind: ConfigKind, now: Instant) -> bool {
        self.lacking.get(&kind).is_some_and(|(until, _)| *until > now)
    }
}

/// True if a server refuses the status as such: its CRD is an older one.
pub(super) fn is_unknown_to_schema(error: &Error) -> bool {
    let status = error.status();
    matches!(error, Error::WithoutEffect(_))
        || status.is_some_and(|status| matches!(status.code, 400 | 415 | 422 | 500))
}

impl Model {
    /// What this edge says of each config, with what it holds.
    pub(super) fn of_edge(&self, condition: Condition) -> Vec<(ConfigName, OfEdge)> {
        let hold = condition.held.then(|| Hold {
            reason: condition.reason.to_owned(),
            message: condition.message,
        });
        let mut all: BTreeMap<Rc<str>, (ConfigName, OfEdge)> = BTreeMap::new();
        for of in self.selecting.names() {
            let generation = self.statuses.known.get(&of).map(|known| known.generation);
            let mut ours = OfEdge {
                uid: self.settings.policy.sync_target.uid.clone(),
                name: self.settings.sync_target_name.clone(),
                observed_generation: generation.unwrap_or_default(),
                hold: hold.clone(),
                ..OfEdge::default()
            };
            let config = of.0.of_name(&of.1);
            self.count_problems(&of, &config, &mut ours);
            all.insert(config.into(), (of, ours));
        }
        for state in self.types.values() {
            for of in &state.plan.configs {
                if let Some((_, ours)) = all.get_mut(&of.config) {
                    self.count_objects_of(state, of, ours);
                }
            }
        }
        self.name_what_else_fails(&mut all);
        all.into_values().collect()
    }

    /// Adds how it is with the objects of a type that a config selects.
    fn count_objects_of(&self, state: &TypeState, of: &OfConfig, ours: &mut OfEdge) {
        let held = self.guard.held_of(&state.plan);
        let fails = self.report.failing() > 0;
        let may_be_implied = of.selects.is_none() && state.plan.at_edge.stands_for("", "namespaces");
        for (name, link) in state.inventory.all() {
            let is_selected = match &of.selects {
                Some(selector) => {
                    let edge = state.edge_name(name);
                    edge.is_some_and(|edge| selector.selects(&edge).is_whole())
                }
                None => !may_be_implied || state.selection(name).is_whole(),
            };
            if !is_selected {
                continue;
            }
            if link.waits_for_hold(held) {
                ours.held += 1;
            }
            if link.wanted == 0 {
                continue;
            }
            ours.selected += 1;
            let failure = if fails { self.failure_of(state, name) } else { None };
            match failure {
                Some(failure) if failure.reason == "Conflict" => {
                    ours.conflicts += 1;
                    keep(&mut ours.failures, failure);
                }
                Some(failure) => {
                    ours.failing += 1;
                    keep(&mut ours.failures, failure);
                }
                None if link.is_in_sync() => ours.synced += 1,
                None => ours.pending += 1,
            }
        }
    }

    /// Why an object fails, if it does.
    fn failure_of(&self, state: &TypeState, name: &ObjectName) -> Option<Failure> {
        let subjects = state.subjects(name)?;
        let mut failing = subjects.iter().filter_map(|subject| self.failure(subject));
        failing.next()
    }

    fn failure(&self, subject: &Subject) -> Option<Failure> {
        let note = self.report.note_of(subject)?;
        Some(Failure {
            since: note.since.to_string(),
            object: subject.name().to_owned(),
            side: subject.side().word().to_owned(),
            reason: note.reason.as_str().to_owned(),
            message: note.message.to_string(),
        })
    }

    /// What fails and is no single object: types that the config selects, and what concerns all of them.
    fn name_what_else_fails(&self, all: &mut BTreeMap<Rc<str>, (ConfigName, OfEdge)>) {
        for (subject, _) in self.report.notes() {
            let selects = match subject {
                Subject::Thing(_, Topic::Object | Topic::Heartbeat | Topic::ConfigStatus, _) => continue,
                Subject::Thing(_, topic, name) if topic.is_of_type() => Some(self.selecting_type(name)),
                _ => None,
            };
            let Some(failure) = self.failure(subject) else { continue };
            let concerned = all
                .iter_mut()
                .filter(|(config, _)| selects.as_ref().is_none_or(|selects| selects.contains(*config)));
            for (_, (_, ours)) in concerned {
                ours.failing += 1;
                keep(&mut ours.failures, failure.clone());
            }
        }
    }

    /// The configs that select a type, `pods` or `pods/namespace`.
    fn selecting_type(&self, name: &str) -> BTreeSet<Rc<str>> {
        let name = name.split('/').next().unwrap_or(name);
        let types = self.types.values().filter(|state| {
            let TypeState { plan, .. } = state;
            plan.at_hub.qualified() == name || plan.at_edge.qualified() == name
        });
        let configs = types.flat_map(|state| &state.plan.configs);
        configs.map(|of| Rc::clone(&of.config)).collect()
    }

    /// What of a config cannot be followed.
    fn count_problems(&self, of: &ConfigName, config: &str, ours: &mut OfEdge) {
        let unreadable = self.selecting.unreadable.get(of);
        let problems = self
            .selecting
            .problems
            .iter()
            .filter(|problem| &*problem.place.config == config);
        let problems = unreadable.into_iter().chain(problems);
        let problems = problems.map(|problem| (problem.place.field.clone(), problem.message.clone()));
        let missing = self.selecting.missing.iter().chain(&self.selecting.unsure);
        let missing = missing.filter(|missing| missing.is_reported()).filter_map(|missing| {
            let place = missing.place.as_ref().filter(|place| &*place.config == config)?;
            Some((place.field.clone(), missing.in_words()))
        });
        let lacking = self.selected_namespaces.lacking_of(config);
        let all = problems
            .chain(missing)
            .chain(lacking)
            .map(|(field, message)| FieldProblem {
                field: if field.is_empty() {
                    "spec".to_owned()
                } else {
                    format!("spec.{field}")
                },
                message: message.chars().take(driver::failures::LONGEST).collect(),
            });
        let all: BTreeSet<FieldProblem> = all.collect();
        ours.problem_count = all.len();
        ours.problems = all.into_iter().take(NAMED).collect();
    }
}

/// Adds a failure, of which the oldest are kept.
fn keep(failures: &mut Vec<Failure>, failure: Failure) {
    let at = failures.partition_point(|known| *known <= failure);
    if at < NAMED {
        failures.insert(at, failure);
        failures.truncate(NAMED);
    }
}

/// True if more has changed than counts.
fn is_news(was: &Status, is: &Status) -> bool {
    let of = |status: &Status| -> Vec<(String, String)> {
        let conditions = status.conditions.iter().filter(|condition| condition.reason != FAILING);
        conditions
            .map(|condition| (condition.r#type.clone(), condition.reason.clone()))
            .collect()
    };
    let named = |status: &Status| {
        let ours = status.edges.first();
        ours.map(|ours| {
            (
                ours.failures.clone(),
                ours.problems.clone(),
                ours.hold.clone(),
                ours.observed_generation,
            )
        })
    };
    of(was) != of(is) || named(was) != named(is)
}

/// What is applied to a config.
fn body(kind: ConfigKind, name: &str, status: &Status) -> Bytes {
    let body = json!({
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "kind": kind.kind(),
        "metadata": {"name": name},
        "status": status,
    });
    Bytes::from(body.to_string())
}
