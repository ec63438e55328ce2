//! What this edge says of each config: counted from the inventories, named from what the report knows of failures.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::rc::Rc;

use driver::failures::shortened;
use kube_lite::ObjectName;

use super::configs::ConfigName;
use super::guard::Condition;
use super::inventory::Link;
use super::unmatched::Unmatched;
use super::{Model, TypeState};
use crate::api::status::{Failure, FieldProblem, Hold, NAMED, OfEdge};
use crate::plan::OfConfig;
use crate::report::{Subject, Topic};

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
        for of in self.selecting.names() {
            let mut ours = OfEdge {
                observed_generation: self.statuses.generation(&of),
                problems: Vec::new(),
                problem_count: 0,
                ..entries.total.clone()
            };
            let config = of.0.of_name(&of.1);
            self.count_problems(&of, &config, unmatched.remove(&*config), &mut ours);
            entries.total.add_problems(&config, &ours);
            entries.all.insert(config.into(), (of, ours));
        }
        let mut failing = FailingObjects::of(self.report.notes().map(|(subject, _)| subject));
        for state in self.types.values() {
            self.count_objects_of(state, &mut entries, &mut failing);
        }
        self.name_what_else_fails(&mut entries, &failing.without_type);
        let Entries { mut all, mut total } = entries;
        total.held = objects;
        // What is held of a type that no config selects any more, or that is gone, is said by all.
        if all.values().all(|(_, ours)| ours.held == 0) {
            for (_, ours) in all.values_mut() {
                ours.held = objects;
            }
        }
        let all = all.into_values().map(|(of, ours)| (of, ours.bounded()));
        (all.collect(), total.bounded())
    }

    /// Adds how it is with the objects of a type, to each config that selects them.
    fn count_objects_of<'a>(&'a self, state: &'a TypeState, entries: &mut Entries, failing: &mut FailingObjects<'a>) {
        let configs = &state.plan.configs;
        if configs.is_empty() {
            return;
        }
        let held = self.guard.held_of(&state.plan);
        let are_namespaces = state.plan.at_edge.stands_for("", "namespaces");
        for (name, link) in state.inventory.all() {
            let is_held = link.waits_for_hold(held);
            if link.wanted == 0 && !is_held {
                continue;
            }
            let edge = configs.iter().any(|of| of.selects.is_some());
            let edge = edge.then(|| state.edge_name(name)).flatten();
            let failure = self.failure_of(state, name, failing);
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
                        count(ours, link, failure.as_ref());
                    }
                    if !std::mem::replace(&mut is_counted, true) {
                        count(&mut entries.total, link, failure.as_ref());
                    }
                }
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
        })
    }

    /// What fails and is no object of a type: types that a config selects, and what concerns all of them.
    fn name_what_else_fails(&self, entries: &mut Entries, objects: &HashSet<&Subject>) {
        for (subject, _) in self.report.notes() {
            let selects = match subject {
                Subject::Thing(_, Topic::Object, _) if !objects.contains(subject) => continue,
                Subject::Thing(_, Topic::Heartbeat | Topic::ConfigStatus | Topic::Edge, _) => continue,
                Subject::Thing(_, topic, name) if topic.is_of_type() => Some(self.selecting_type(name)),
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
        let lacking = self.selected_namespaces.lacking_of(config);
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

/// Counts an object that a config selects.
fn count(ours: &mut OfEdge, link: &Link, failure: Option<&Failure>) {
    ours.selected += 1;
    match failure {
        Some(failure) => {
            let is_conflict = failure.reason == "Conflict";
            *if is_conflict {
                &mut ours.conflicts
            } else {
                &mut ours.failing
            } += 1;
            keep(&mut ours.failures, failure.clone());
        }
        None if link.is_in_sync() => ours.synced += 1,
        None => ours.pending += 1,
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
mod tests {
    use super::*;

    #[test]
    fn ten_failures_are_kept_and_those_are_the_oldest_in_whatever_order_they_come() {
        let since = |minute: usize| Failure {
            since: format!("2026-01-01T00:{minute:02}:00Z"),
            object: format!("ConfigMap/shop/c{}", 99 - minute),
            ..Failure::default()
        };
        let oldest: Vec<Failure> = (0..NAMED).map(since).collect();
        for step in [1, 5, 7, 11] {
            let mut kept = Vec::new();
            for index in 0..12 {
                keep(&mut kept, since(index * step % 12));
                assert!(kept.len() <= NAMED && kept.is_sorted(), "{step}: {kept:?}");
            }
            assert_eq!(kept, oldest, "{step}");
        }
    }
}
