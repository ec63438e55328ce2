//! Namespaces that configs select and the hub lacks: perhaps they come later, perhaps their names are misspelt.
//!
//! Promises: what the watches have shown to be there is not asked for; a namespace has a line when the hub is found to
//! lack it, and another one when it is there; nothing is asked for again unless something has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube_lite::logging::log_line;
use kube_lite::{Error, ObjectName};

use super::news::log_each;
use super::timers::Timer;
use super::{Model, Request, TypeId, TypeState};
use crate::plan::{ConfigPlace, Direction, Entry, Objects, steps_are_taken};
use crate::side::Side;

/// The wait before the hub is asked for a namespace: what is applied together with the config, and what is being listed,
/// need no line.
const SETTLE: Duration = Duration::from_secs(2);
/// How many are asked for at once.
const AT_ONCE: usize = 50;
/// Of how many one turn of the loop finds out whether the watches have shown them.
const IN_A_TURN: usize = 1000;

/// What is known of them.
#[derive(Default)]
pub(super) struct SelectedNamespaces {
    /// All, each with the first place that names it.
    selected: BTreeMap<String, ConfigPlace>,
    /// Those of which it has to be found out whether the hub has them.
    open: BTreeSet<String>,
    /// Those that the hub lacks, which was logged.
    lacking: BTreeSet<String>,
}

impl SelectedNamespaces {
    /// How many the hub lacks.
    pub(super) fn count_lacking(&self) -> usize {
        self.lacking.len()
    }

    /// True if the hub lacks a namespace that is selected.
    pub(super) fn lacks(&self, namespace: &str) -> bool {
        self.lacking.contains(namespace)
    }

    /// Those that a config selects by these entries and the hub lacks, each with the first place in that config, and what is
    /// wrong.
    pub(super) fn lacking_of(&self, config: &str, entries: &[Entry]) -> Vec<(String, String)> {
        if self.lacking.is_empty() {
            return Vec::new();
        }
        let mut found = BTreeMap::new();
        let of_config = entries.iter().filter(|entry| entry.direction == Direction::Down);
        for entry in of_config.filter(|entry| &*entry.place.config == config) {
            let mut names = |name: &'_ String| {
                if let Some(name) = self.lacking.get(name) {
                    found.entry(name).or_insert(&entry.place.field);
                }
            };
            match &entry.objects {
                Objects::In(Some(namespace), _) | Objects::Ref { namespace, .. } => names(namespace),
                Objects::Implied(all) if all.len() < self.lacking.len() => all.iter().for_each(names),
                Objects::Implied(all) => self.lacking.iter().filter(|name| all.contains(*name)).for_each(names),
                _ => {}
            }
        }
        let in_words = |(name, field): (&String, &String)| {
            let words = format!("the hub has no namespace {name:?}; what is in it is synced once it is there");
            (field.clone(), words)
        };
        found.into_iter().map(in_words).collect()
    }

    fn placed<'a>(
        &'a self,
        names: impl IntoIterator<Item = &'a String>,
    ) -> impl Iterator<Item = (&'a ConfigPlace, &'a str)> {
        let placed = |name: &'a String| Some((self.selected.get(name)?, name.as_str()));
        names.into_iter().filter_map(placed)
    }
}

impl Model {
    /// The configs select these from now on.
    pub(super) fn note_selected_namespaces(&mut self, selected: BTreeMap<String, ConfigPlace>) {
        let known = &mut self.selected_namespaces;
        let of_before = std::mem::replace(&mut known.selected, selected);
        let is_selected = |name: &String| known.selected.contains_key(name);
        let deselected: Vec<String> = known
            .lacking
            .iter()
            .filter(|name| !is_selected(name))
            .cloned()
            .collect();
        known.lacking.retain(is_selected);
        known.open.retain(is_selected);
        let is_new = |name: &&String| !of_before.contains_key(*name);
        let new: Vec<String> = known.selected.keys().filter(is_new).cloned().collect();
        if !new.is_empty() || !deselected.is_empty() {
            // Whoever changes the configs may have created one that nothing shows.
            known.open.extend(known.lacking.iter().cloned().chain(new));
        }
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
        if !self.selected_namespaces.open.is_empty() {
            self.timers.set_earlier(Timer::SelectedNamespaces, self.now + SETTLE);
        }
    }

    /// Finds out whether the hub has them, where that is due.
    pub(super) fn find_selected_namespaces(&mut self) {
        if !self.timers.fires(Timer::SelectedNamespaces, self.now) {
            return;
        }
        let (shown, next) = self.shown_and_next();
        self.take_in_namespaces(shown.into_iter().map(|name| (name, Ok(true))).collect());
        if !next.is_empty() {
            self.timers.starts(Timer::SelectedNamespaces);
            self.effects.request(Request::FindNamespaces(next));
        } else if !self.selected_namespaces.open.is_empty() {
            self.timers.set(Timer::SelectedNamespaces, self.now);
        }
    }

    /// Those that a watch has shown, of the first ones, and those that the hub is to be asked for: there may be thousands,
    /// and as many types.
    fn shown_and_next(&self) -> (Vec<String>, Vec<String>) {
        steps_are_taken(self.types.len());
        let types: Vec<&TypeState> = self.types.values().filter(|state| is_of_hub(state)).collect();
        let is_shown = |namespace: &str| {
            let name = ObjectName::new("", namespace);
            let mut types = types.iter();
            types.any(|state| {
                let is_wanted = |copy| state.inventory.is_wanted(copy);
                state.of_origin(&name).iter().any(is_wanted)
            })
        };
        let (mut shown, mut next) = (Vec::new(), Vec::new());
        for name in self.selected_namespaces.open.iter().take(IN_A_TURN) {
            steps_are_taken(1);
            if is_shown(name) {
                shown.push(name.clone());
            } else {
                next.push(name.clone());
            }
            if next.len() == AT_ONCE {
                break;
            }
        }
        (shown, next)
    }

    /// The hub has answered.
    pub(super) fn on_namespaces_found(&mut self, found: Vec<(String, Result<bool, Error>)>) {
        let timer = Timer::SelectedNamespaces;
        self.timers.ends(timer);
        if self.take_in_namespaces(found) {
            self.timers.succeeds(timer);
            if !self.selected_namespaces.open.is_empty() {
                self.timers.set_earlier(timer, self.now + SETTLE);
            }
        } else {
            self.timers.retry(timer, self.now, self.chance.f64());
        }
    }

    /// False if the hub has not answered for one of them.
    fn take_in_namespaces(&mut self, found: Vec<(String, Result<bool, Error>)>) -> bool {
        let known = &mut self.selected_namespaces;
        let (mut there, mut lacking, mut failed) = (Vec::new(), Vec::new(), None);
        for (name, answer) in found {
            // The configs may have changed meanwhile.
            let is_selected = known.selected.contains_key(&name);
            match answer {
                Ok(is_there) => {
                    known.open.remove(&name);
                    if is_there && known.lacking.remove(&name) {
                        there.push(name);
                    } else if !is_there && is_selected && known.lacking.insert(name.clone()) {
                        lacking.push(name);
                    }
                }
                // It need not have that permission: then nothing is known.
                Err(error) if error.is_forbidden() => {
                    known.open.remove(&name);
                    known.lacking.remove(&name);
                }
                Err(error) => failed = Some(error),
            }
        }
        log_lacking(known.placed(&lacking));
        log_found(known.placed(&there));
        let is_answered = failed.is_none();
        if let Some(error) = failed.filter(Error::is_unreachable) {
            self.side_is_silent(Side::Hub, "looking for a selected namespace", &error);
        }
        is_answered
    }

    /// The hub has shown an object: a namespace that it lacked, or something in it.
    pub(super) fn namespace_may_be_there(&mut self, origin: &ObjectName) {
        let known = &mut self.selected_namespaces;
        let name = match origin.namespace() {
            "" => &*origin.name,
            namespace => namespace,
        };
        if known.lacking.contains(name) && known.open.insert(name.to_owned()) {
            self.timers.set_earlier(Timer::SelectedNamespaces, self.now);
        }
    }

    /// An object of a type is gone from the side of its origins: perhaps a namespace that is selected.
    pub(super) fn namespace_may_be_gone(&mut self, type_id: TypeId, origin: &ObjectName) {
        let is_namespace = self.types.get(&type_id).is_some_and(is_of_hub);
        let known = &mut self.selected_namespaces;
        if is_namespace && known.selected.contains_key(&*origin.name) {
            known.open.insert(origin.name.to_string());
            self.timers.set_earlier(Timer::SelectedNamespaces, self.now + SETTLE);
        }
    }
}

/// True for the type of the hub's Namespaces that go down.
fn is_of_hub(state: &TypeState) -> bool {
    state.plan.direction == Direction::Down && state.plan.at_hub.stands_for("", "namespaces")
}

fn log_lacking<'a>(names: impl Iterator<Item = (&'a ConfigPlace, &'a str)>) {
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

fn log_found<'a>(names: impl Iterator<Item = (&'a ConfigPlace, &'a str)>) {
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
