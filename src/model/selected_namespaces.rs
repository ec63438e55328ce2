//! Namespaces that configs select and the hub lacks: perhaps they come later, perhaps their names are misspelt.
//!
//! Promises: what the watches have shown to be there is not asked for; a namespace has a line when the hub is found to
//! lack it, and another one when it is there; the hub is asked more and more rarely.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::news::log_each;
use super::timers::Timer;
use super::{Model, Request, TypeId};
use crate::cluster::{Error, ObjectName, Side};
use crate::logging::log_line;
use crate::plan::{Direction, Place, Plan};

/// The wait before the hub is asked for a namespace: what is applied together with the config, and what is being listed,
/// need no line.
const SETTLE: Duration = Duration::from_secs(2);
/// How many are asked for at once.
const AT_ONCE: usize = 50;
/// Failures that the wait between two questions starts from: about 6 s, growing to 5 minutes.
const PATIENCE: u32 = 4;

/// What is known of them.
#[derive(Default)]
pub(super) struct SelectedNamespaces {
    /// All, each with the first place that names it.
    selected: BTreeMap<String, Place>,
    /// Those that the hub has, or does not let the syncer ask for.
    settled: BTreeSet<String>,
    /// Those that the hub lacks, which was logged.
    lacking: BTreeSet<String>,
    /// The last one that was asked for: the next ones follow.
    last: String,
}

impl SelectedNamespaces {
    /// How many the hub lacks.
    pub(super) fn count_lacking(&self) -> usize {
        self.lacking.len()
    }

    fn placed<'a>(&'a self, names: impl IntoIterator<Item = &'a String>) -> impl Iterator<Item = (&'a Place, &'a str)> {
        let placed = |name: &'a String| Some((self.selected.get(name)?, name.as_str()));
        names.into_iter().filter_map(placed)
    }

    /// The next that are to be asked for.
    fn next(&self) -> Vec<String> {
        let is_open = |name: &&String| !self.settled.contains(*name);
        let (later, first): (Vec<_>, Vec<_>) = self
            .selected
            .keys()
            .filter(is_open)
            .partition(|name| **name > self.last);
        later.into_iter().chain(first).take(AT_ONCE).cloned().collect()
    }

    /// Some have not been asked for.
    fn has_unasked(&self) -> bool {
        let mut selected = self.selected.keys();
        selected.any(|name| !self.settled.contains(name) && !self.lacking.contains(name))
    }
}

impl Model {
    /// The configs select these from now on.
    pub(super) fn note_selected_namespaces(&mut self, plan: &Plan) {
        let selected = plan.namespaces_at_hub(&self.selecting.wanted);
        let known = &mut self.selected_namespaces;
        let of_before = std::mem::replace(&mut known.selected, selected);
        let is_selected = |name: &String| known.selected.contains_key(name);
        known.settled.retain(is_selected);
        let deselected: Vec<String> = known
            .lacking
            .iter()
            .filter(|name| !is_selected(name))
            .cloned()
            .collect();
        known.lacking.retain(is_selected);
        log_each(
            deselected.iter().filter_map(|name| Some((of_before.get(name)?, name))),
            |place, name| {
                log_line!(
                    Info,
                    ConfigCorrected,
                    "a config no longer selects a namespace that the hub lacks",
                    config = place.config,
                    field = format_args!("spec.{}", place.field),
                    namespace = name
                );
            },
            |config, more| {
                log_line!(
                    Info,
                    ConfigCorrected,
                    "a config no longer selects more namespaces that the hub lacks",
                    config = config,
                    more = more
                );
            },
        );
        if self.selected_namespaces.has_unasked() {
            self.timers.set_earlier(Timer::SelectedNamespaces, self.now + SETTLE);
        }
    }

    /// Asks the hub for those of which nothing is known, and again for those that it lacked, if that is due.
    pub(super) fn find_selected_namespaces(&mut self) {
        if !self.timers.fires(Timer::SelectedNamespaces, self.now) {
            return;
        }
        let known = &self.selected_namespaces;
        let open = known.selected.keys().filter(|name| !known.settled.contains(*name));
        let shown: Vec<String> = open.filter(|name| self.is_shown_at_hub(name)).cloned().collect();
        let shown = shown.into_iter().map(|name| (name, Ok(true))).collect();
        self.take_in_namespaces(shown);
        let next = self.selected_namespaces.next();
        let Some(last) = next.last() else {
            self.timers.succeeds(Timer::SelectedNamespaces);
            return;
        };
        self.selected_namespaces.last.clone_from(last);
        self.timers.starts(Timer::SelectedNamespaces);
        self.request(Request::FindNamespaces(next));
    }

    /// True if a watch has shown that the hub has this namespace.
    fn is_shown_at_hub(&self, namespace: &str) -> bool {
        let name = ObjectName::new("", namespace);
        let mut types = self.types.values();
        types.any(|state| {
            let is_it = state.plan.direction == Direction::Down && state.plan.at_hub.stands_for("", "namespaces");
            is_it
                && state
                    .of_origin(&name)
                    .iter()
                    .any(|copy| state.inventory.is_wanted(copy))
        })
    }

    /// The hub has answered.
    pub(super) fn namespaces_are_found(&mut self, found: Vec<(String, Result<bool, Error>)>) {
        let timer = Timer::SelectedNamespaces;
        self.timers.ends(timer);
        self.take_in_namespaces(found);
        let known = &self.selected_namespaces;
        if known.has_unasked() && known.lacking.is_empty() {
            self.timers.set_earlier(timer, self.now + SETTLE);
        } else if known.has_unasked() || !known.lacking.is_empty() {
            self.timers.has_failed(timer, PATIENCE);
            let chance = self.chance.f64();
            let next = self.now + crate::queue::back_off(self.timers.fails(timer), chance);
            self.timers.set_earlier(timer, next);
        }
    }

    fn take_in_namespaces(&mut self, found: Vec<(String, Result<bool, Error>)>) {
        let known = &mut self.selected_namespaces;
        let (mut there, mut lacking) = (Vec::new(), Vec::new());
        let mut silence = None;
        for (name, answer) in found {
            // The configs may have changed meanwhile.
            if !known.selected.contains_key(&name) {
                continue;
            }
            match answer {
                Ok(false) => {
                    if known.lacking.insert(name.clone()) {
                        lacking.push(name);
                    }
                }
                Ok(true) => {
                    if known.lacking.remove(&name) {
                        there.push(name.clone());
                    }
                    known.settled.insert(name);
                }
                // It need not have that permission: then nothing is known.
                Err(error) if error.is_forbidden() => {
                    known.lacking.remove(&name);
                    known.settled.insert(name);
                }
                Err(error) => silence = Some(error).filter(Error::is_unreachable),
            }
        }
        log_lacking(known.placed(&lacking));
        log_found(known.placed(&there));
        if let Some(error) = silence {
            self.side_is_silent(Side::Hub, "looking for a selected namespace", &error);
        }
    }

    /// The hub has shown an object: a namespace that it lacked, or something in it, is a reason to ask at once.
    pub(super) fn namespace_may_be_there(&mut self, origin: &ObjectName) {
        let lacking = &self.selected_namespaces.lacking;
        if lacking.contains(origin.namespace()) || origin.namespace().is_empty() && lacking.contains(&*origin.name) {
            self.timers.set_earlier(Timer::SelectedNamespaces, self.now);
        }
    }

    /// An object of a type is gone from the side of its origins: perhaps a namespace that is selected.
    pub(super) fn namespace_may_be_gone(&mut self, type_id: TypeId, origin: &ObjectName) {
        let is_namespace = self.types.get(&type_id).is_some_and(|state| {
            state.plan.direction == Direction::Down && state.plan.at_hub.stands_for("", "namespaces")
        });
        if is_namespace && self.selected_namespaces.settled.remove(&*origin.name) {
            self.timers.set_earlier(Timer::SelectedNamespaces, self.now + SETTLE);
        }
    }
}

fn log_lacking<'a>(names: impl Iterator<Item = (&'a Place, &'a str)>) {
    log_each(
        names,
        |place, name| {
            log_line!(
                Warn,
                NamespaceMissing,
                "a selected namespace is not at the hub; what is in it is synced as soon as it is there",
                side = "hub",
                namespace = name,
                config = place.config,
                field = format_args!("spec.{}", place.field),
                advice = "create it at the hub, or correct the config"
            );
        },
        |config, more| {
            log_line!(
                Warn,
                NamespaceMissing,
                "more selected namespaces are not at the hub",
                side = "hub",
                config = config,
                more = more
            );
        },
    );
}

fn log_found<'a>(names: impl Iterator<Item = (&'a Place, &'a str)>) {
    log_each(
        names,
        |_, name| {
            log_line!(
                Info,
                NamespaceFound,
                "a selected namespace is at the hub now",
                side = "hub",
                namespace = name
            );
        },
        |config, more| {
            log_line!(
                Info,
                NamespaceFound,
                "more selected namespaces are at the hub now",
                side = "hub",
                config = config,
                more = more
            );
        },
    );
}
