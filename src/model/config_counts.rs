//! What this edge says of each config: counted from the inventories, named from what the report knows of failures.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::rc::Rc;

use driver::failures::shortened;
use kube_lite::ObjectName;
use kube_lite::logging::LogReason;

use super::config_kind::ConfigKind;
use super::configs::ConfigName;
use super::guard::Condition;
use super::unmatched::Unmatched;
use super::{Key, Model, Task, TypeId, TypeState};
use crate::api::status::{Failure, FieldProblem, Hold, NAMED, OfEdge};
use crate::plan::OfConfig;
use crate::report::{Subject, Topic};
use crate::side::Side;

/// What this edge says.
struct Entries {
    /// Of each config, by how it is called.
    all: BTreeMap<Rc<str>, (ConfigName, OfEdge)>,
    /// Of all together: each object counts once.
    total: OfEdge,
}

/// What fails and is an object.
struct FailingObjects<'a> {
    /// The kinds of those objects: of others, none is searched for.
    kinds: HashSet<&'a str>,
    /// Those that no type has been found to have.
    without_type: HashSet<&'a Subject>,
}

impl Model {
    /// What this edge says of each config and of all of them together, with what it holds. Not everything may have been read yet.
    pub(super) fn of_edge(&self, condition: Condition, is_complete: bool) -> (Vec<(ConfigName, OfEdge)>, OfEdge) {
        let objects = condition.objects;
        let hold = condition.held.then(|| Hold {
            reason: condition.reason.to_owned(),
            message: condition.message,
        });
        let mut entries = Entries {
            all: BTreeMap::new(),
            total: OfEdge {
                uid: self.settings.policy.sync_target.uid.clone(),
                name: self.settings.sync_target_name.clone(),
                pending: usize::from(!is_complete),
                hold,
                ..OfEdge::default()
            },
        };
        let mut unmatched = self.unmatched(is_complete);
        let (mut denied, denied_in_all) = self.denied_objects();
        let of_none = entries.total.clone();
        for of in self.selecting.names() {
            let config = of.0.of_name(&of.1);
            let mut ours = OfEdge {
                observed_generation: self.statuses.generation(&of),
                denied: denied.remove(&*config).unwrap_or_default(),
                ..of_none.clone()
            };
            self.count_problems(&of, &config, unmatched.remove(&*config), &mut ours);
            entries.total.add_problems(&config, &ours);
            entries.all.insert(config.into(), (of, ours));
        }
        entries.total.denied = denied_in_all;
        let mut failing = FailingObjects::of(self.report.notes().map(|(subject, _)| subject));
        for (&type_id, state) in &self.types {
            self.count_objects_of((type_id, state), &mut entries, &mut failing);
            self.count_without_copy(state, &mut entries, &mut failing);
        }
        self.name_what_else_fails(&mut entries, &failing.without_type);
        let Entries { mut all, mut total } = entries;
        total.held = objects;
        let is_kept = |kind: ConfigKind| self.statuses.may_be_stored(kind);
        share_hold(
            all.values_mut().map(|((kind, _), ours)| (is_kept(*kind), ours)),
            objects,
        );
        let all = all.into_values().map(|(of, ours)| (of, ours.bounded()));
        (all.collect(), total.bounded())
    }

    /// Adds how it is with the objects of a type, to each config that selects them.
    fn count_objects_of<'a>(
        &'a self,
        (type_id, state): (TypeId, &'a TypeState),
        entries: &mut Entries,
        failing: &mut FailingObjects<'a>,
    ) {
        let configs = &state.plan.configs;
        if configs.is_empty() {
            return;
        }
        let held = self.guard.held_of(&state.plan);
        let has_cascades = self.guard.holds_cascades();
        let are_namespaces = state.plan.at_edge.stands_for("", "namespaces");
        for (name, link) in state.inventory.all() {
            let is_held = link.waits_for_hold(held)
                || has_cascades
                    && link.wanted == 0
                    && self.guard.holds_cascade(&Key::new(type_id, Task::Object, name.clone()));
            if link.wanted == 0 && !is_held {
                continue;
            }
            let edge = configs.iter().any(|of| of.selects.is_some());
            let edge = edge.then(|| state.edge_name(name)).flatten();
            let failure = self.failure_of(state, name, failing);
            let is_contested = link.status.as_ref().is_some_and(|status| status.has_rival(self.now));
            let counted = (link.is_in_sync(), is_contested);
            let mut is_counted = link.wanted == 0;
            for OfConfig { config, selects } in configs {
                let is_selected = match (selects, &edge) {
                    (Some(selector), Some(edge)) => selector.selects(edge).is_whole(),
                    (Some(_), None) => false,
                    (None, _) => !are_namespaces || state.selection(name).is_whole(),
                };
                if is_selected && let Some((_, ours)) = entries.all.get_mut(config) {
                    ours.held += usize::from(is_held);
                    if link.wanted != 0 {
                        count(ours, counted, failure.as_ref());
                    }
                    if !std::mem::replace(&mut is_counted, true) {
                        count(&mut entries.total, counted, failure.as_ref());
                    }
                }
            }
        }
    }

    /// The same with those that have no copy to fail, though nobody forbids it.
    fn count_without_copy<'a>(&'a self, state: &'a TypeState, entries: &mut Entries, failing: &mut FailingObjects<'a>) {
        for origin in state.without_copy.all() {
            let subject = state.of_origin_alone(origin);
            let Some(failure) = self.failure(&subject) else {
                continue;
            };
            failing.without_type.remove(&subject);
            let mut is_counted = false;
            for config in state.plan.select(&state.selected_as(origin)) {
                if let Some((_, ours)) = entries.all.get_mut(config) {
                    count(ours, (false, false), Some(&failure));
                    is_counted = true;
                }
            }
            if is_counted {
                count(&mut entries.total, (false, false), Some(&failure));
            }
        }
    }

    /// Why an object fails, if it does.
    fn failure_of<'a>(
        &'a self,
        state: &TypeState,
        name: &ObjectName,
        failing: &mut FailingObjects<'a>,
    ) -> Option<Failure> {
        let kinds = [&state.plan.at_hub.kind, &state.plan.at_edge.kind];
        if !kinds.into_iter().any(|kind| failing.kinds.contains(&**kind)) {
            return None;
        }
        let mut found = None;
        for subject in state.subjects(name)? {
            failing.without_type.remove(&subject);
            found = found.or_else(|| self.failure(&subject));
        }
        found
    }

    fn failure(&self, subject: &Subject) -> Option<Failure> {
        let note = self.report.note_of(subject)?;
        Some(Failure {
            since: note.since.to_string(),
            object: subject.name().to_owned(),
            side: subject.side().word().to_owned(),
            reason: note.reason.as_str().to_owned(),
            message: note.message.to_string(),
            doing: note.doing.to_string(),
            tries: note.tries,
        })
    }

    /// What fails and is no object of a type: types that a config selects, and what concerns all of them.
    fn name_what_else_fails(&self, entries: &mut Entries, objects: &HashSet<&Subject>) {
        for (subject, _) in self.report.notes() {
            let selects = match subject {
                Subject::Thing(_, Topic::Object, _) if !objects.contains(subject) => continue,
                Subject::Thing(_, Topic::Heartbeat | Topic::ConfigStatus | Topic::Edge, _) => continue,
                Subject::Thing(_, topic, name) if topic.is_of_type() => Some(self.selecting_type(name)),
                Subject::Thing(side, Topic::Object, name) => self.selecting_kind(*side, name),
                _ => None,
            };
            let Some(failure) = self.failure(subject) else { continue };
            let is_of = |config: &Rc<str>| selects.as_ref().is_none_or(|selects| selects.contains(config));
            let mut concerned: Vec<&mut OfEdge> = Vec::new();
            if selects.is_none() || entries.all.keys().any(is_of) {
                concerned.push(&mut entries.total);
            }
            let of_configs = entries.all.iter_mut().filter(|(config, _)| is_of(config));
            concerned.extend(of_configs.map(|(_, (_, ours))| ours));
            for ours in concerned {
                fails(ours, &failure);
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

    /// The configs that select objects of the kind of one, `Kind/namespace/name`; `None` if there are none.
    fn selecting_kind(&self, side: Side, name: &str) -> Option<BTreeSet<Rc<str>>> {
        let kind = name.split('/').next().unwrap_or(name);
        let of_kind = self.types.values().filter(|state| &*state.type_at(side).kind == kind);
        let configs: BTreeSet<_> = of_kind
            .flat_map(|state| &state.plan.configs)
            .map(|of| Rc::clone(&of.config))
            .collect();
        Some(configs).filter(|configs| !configs.is_empty())
    }

    /// What of a config cannot be followed, and what of it is unmatched.
    pub(super) fn count_problems(
        &self,
        of: &ConfigName,
        config: &str,
        unmatched: Option<Unmatched>,
        ours: &mut OfEdge,
    ) {
        let unreadable = self.selecting.unreadable.get(of);
        let problems = self.selecting.problems.iter().chain(&self.selecting.denied);
        let problems = problems.filter(|problem| &*problem.place.config == config);
        let problems = unreadable.into_iter().chain(problems);
        let problems = problems.map(|problem| (problem.place.field.clone(), problem.message.clone()));
        let missing = self.selecting.missing.iter().chain(&self.selecting.unsure);
        let missing = missing.filter(|missing| missing.is_reported()).filter_map(|missing| {
            let place = missing.place.as_ref().filter(|place| &*place.config == config)?;
            Some((place.field.clone(), missing.in_words()))
        });
        let lacking = self
            .selected_namespaces
            .lacking_of(config, &self.selecting.wanted.entries);
        let all = problems.chain(missing).chain(lacking);
        let all: BTreeSet<FieldProblem> = all
            .map(|(field, message)| FieldProblem {
                field: if field.is_empty() {
                    "spec".to_owned()
                } else {
                    format!("spec.{field}")
                },
                message: shortened(&message).to_owned(),
                since: String::new(),
            })
            .collect();
        ours.problem_count = all.len();
        ours.problems = all.into_iter().take(NAMED).collect();
        if let Some(unmatched) = unmatched {
            unmatched.add_to(ours);
        }
    }
}

impl<'a> FailingObjects<'a> {
    fn of(subjects: impl Iterator<Item = &'a Subject>) -> Self {
        let objects = subjects.filter(|subject| matches!(subject, Subject::Thing(_, Topic::Object, _)));
        let without_type: HashSet<&Subject> = objects.collect();
        let kinds = without_type
            .iter()
            .filter_map(|subject| subject.name().split('/').next());
        Self {
            kinds: kinds.collect(),
            without_type,
        }
    }
}

/// Counts an object that a config selects: whether it is in sync, and whether another one writes its status too.
fn count(ours: &mut OfEdge, (is_in_sync, is_contested): (bool, bool), failure: Option<&Failure>) {
    ours.selected += 1;
    ours.contested += usize::from(is_contested);
    match failure {
        Some(failure) => fails(ours, failure),
        None if is_in_sync => ours.synced += 1,
        None => ours.pending += 1,
    }
}

fn fails(ours: &mut OfEdge, failure: &Failure) {
    let is_conflict = failure.reason == LogReason::Conflict.as_str();
    *if is_conflict {
        &mut ours.conflicts
    } else {
        &mut ours.failing
    } += 1;
    keep(&mut ours.failures, failure.clone());
}

/// A hold is said by the configs that select something of what is held. What is held of a type that no config selects any
/// more, or that is gone, is said by all, and so is what only configs select of which the hub keeps no status: people have
/// to see it somewhere.
fn share_hold<'a>(all: impl Iterator<Item = (bool, &'a mut OfEdge)>, objects: usize) {
    let all: Vec<(bool, &mut OfEdge)> = all.collect();
    let is_of_some = all.iter().any(|(is_kept, ours)| *is_kept && ours.held > 0);
    for (_, ours) in all {
        match (is_of_some, ours.held) {
            (true, 0) => ours.hold = None,
            (true, _) => {}
            (false, _) => ours.held = objects,
        }
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

#[cfg(test)]
#[path = "config_counts_tests.rs"]
mod tests;
