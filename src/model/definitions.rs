//! What defines the types that come from the hub: read when a type is synced for the first time, and kept in the record,
//! so that a type which was deleted and defined again meanwhile is distinguished from the one that the copies are from.
//! The same of the kinds of configs, as long as there are configs ([`super::deselections`]).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use kube_lite::logging::log_line;
use kube_lite::{Error, ResourceType};
use tokio::time::Instant;

use super::config_kind::ConfigKind;
use super::timers::Timer;
use super::{Model, Request, TypeId, TypeState};
use crate::plan::Direction;
use crate::report::{Subject, Topic};
use crate::side::Side;
use crate::sync::definition::{DefinedBy, Hub, TypeDefinition, TypeDefinitions};

/// The wait before what the hub refuses is asked for again: everything continues without it.
const REFUSED_WAIT: Duration = Duration::from_secs(600);

/// Asking the hub what defines its types.
#[derive(Default)]
pub(super) struct TypeDefinitionReads {
    /// Types, `resource.group`, of which the hub does not allow the definition to be read.
    refused: BTreeSet<String>,
    /// When they are asked for again.
    again: Option<Instant>,
    /// It was logged that some are refused.
    is_logged: bool,
    /// Those of which the last read has failed.
    failing: BTreeSet<String>,
}

/// What the hub has answered.
pub(crate) struct TypeDefinitionAnswers {
    /// What it is, where that was not known and it has said so.
    pub(crate) hub: Option<Hub>,
    /// What defines the types that it was asked for.
    pub(crate) types: Vec<(ResourceType, Result<Option<TypeDefinition>, Error>)>,
}

impl Model {
    /// Asks what defines the types of which that is not known.
    pub(super) fn read_definitions(&mut self) {
        if !self.timers.fires(Timer::Definitions, self.now) {
            return;
        }
        if self
            .definition_reads
            .again
            .take_if(|again| *again <= self.now)
            .is_some()
        {
            self.definition_reads.refused.clear();
        }
        let downsynced = self
            .types
            .values()
            .filter(|state| state.plan.direction == Direction::Down);
        let mut unknown: Vec<ResourceType> = downsynced.map(|state| state.origin_type().clone()).collect();
        // What no CRD can define is never deleted with its configs.
        if self.record.has_crds() {
            let kinds = ConfigKind::ALL.into_iter();
            let with_configs = kinds.filter(|&kind| self.selecting.has_any(kind));
            unknown.extend(with_configs.map(ConfigKind::resource_type));
        }
        unknown.retain(|resource| {
            let name = resource.qualified();
            !resource.group.is_empty()
                && self.definitions.known(&name).is_none()
                && !self.definition_reads.refused.contains(&name)
        });
        // What is not asked for any more no longer counts as failing.
        let names: BTreeSet<String> = unknown.iter().map(ResourceType::qualified).collect();
        for name in std::mem::take(&mut self.definition_reads.failing).difference(&names) {
            self.report.clear(&definition_of(name));
        }
        if unknown.is_empty() && !self.needs_hub_kind() {
            if let Some(again) = self.definition_reads.again {
                self.timers.set(Timer::Definitions, again);
            }
            return;
        }
        self.timers.starts(Timer::Definitions);
        self.effects
            .request(Request::Define(unknown, Rc::clone(&self.definitions)));
    }

    /// True while it is being read what defines a type: a copy that is made meanwhile may be from an object that goes with
    /// another definition than the one that is found.
    pub(super) fn is_being_defined(&self, state: &TypeState) -> bool {
        if state.plan.direction != Direction::Down || !self.timers.is_at_hand(Timer::Definitions, self.now) {
            return false;
        }
        let resource = state.origin_type();
        let name = resource.qualified();
        !resource.group.is_empty()
            && self.definitions.known(&name).is_none()
            && !self.definition_reads.refused.contains(&name)
    }

    /// True if copies are to be deleted and the hub has not said whether it is a workspace, which may be deleted as a
    /// whole. Each worker asks for itself until that is known.
    fn needs_hub_kind(&self) -> bool {
        let mut types = self.types.values();
        !self.definitions.knows_hub()
            && types.any(|state| state.plan.direction == Direction::Down && state.inventory.has_pending_delete())
    }

    /// Copies are to be deleted: what is needed to prove that they may be is asked for at the same time.
    pub(super) fn read_hub_kind(&mut self, direction: Direction) {
        if direction == Direction::Down && !self.definitions.knows_hub() && !self.timers.is_running(Timer::Definitions)
        {
            self.timers.set_if_idle(Timer::Definitions, self.now);
        }
    }

    pub(super) fn on_definitions(&mut self, answers: TypeDefinitionAnswers) {
        self.timers.ends(Timer::Definitions);
        if let Some(hub) = answers.hub {
            self.definitions_mut().set_hub(hub);
        }
        let mut failed = self.needs_hub_kind();
        let mut refused = None;
        let mut answered = BTreeSet::new();
        for (resource, answer) in answers.types {
            let name = resource.qualified();
            answered.extend(self.copied_types(&name).map(|(type_id, _)| type_id));
            let subject = definition_of(&name);
            match answer {
                Ok(found) => {
                    self.report.works(&subject);
                    // That nothing defines a type is cheap to ask again, so it does not cause a write of the record by
                    // itself.
                    if found.is_some() {
                        self.keep_guard_in_record();
                    }
                    let known = found.map_or(DefinedBy::Nothing, |found| DefinedBy::Uid(found.uid));
                    self.definitions_mut().set(&name, known);
                }
                Err(error) if error.is_unreachable() => {
                    failed = true;
                    self.side_is_silent(Side::Hub, "reading what defines a type", &error);
                }
                Err(error) if error.is_forbidden() => {
                    self.definition_reads.refused.insert(name);
                    refused = Some(error);
                }
                Err(error) => {
                    failed = true;
                    self.fails(subject, "reading", &error);
                    self.definition_reads.failing.insert(name);
                }
            }
        }
        self.report_refused(refused.as_ref());
        // They have waited for that.
        self.queue.wake_where(|waiting| answered.contains(&waiting.type_id));
        if failed {
            self.timers.retry(Timer::Definitions, self.now, self.chance.f64());
        } else {
            self.timers.succeeds(Timer::Definitions);
            // Types that have come meanwhile.
            self.timers.set(Timer::Definitions, self.now);
        }
    }

    /// Logs once that definitions may not be read, and asks again in a while.
    fn report_refused(&mut self, error: Option<&Error>) {
        let reads = &mut self.definition_reads;
        if reads.refused.is_empty() {
            reads.is_logged = false;
        } else {
            reads.again.get_or_insert(self.now + REFUSED_WAIT);
        }
        if let Some(error) = error
            && !std::mem::replace(&mut reads.is_logged, true)
        {
            log_line!(
                Info,
                DefinitionsForbidden,
                "cannot see whether the hub deletes a whole type: copies of its objects are then deleted too, or held if \
                 no config selects it",
                side = "hub",
                because = error,
                advice = "allow it to get customresourcedefinitions, and in kcp to list apibindings"
            );
        }
    }

    /// Workers that have begun continue with what was known when they began.
    pub(super) fn definitions_mut(&mut self) -> &mut TypeDefinitions {
        Rc::make_mut(&mut self.definitions)
    }

    /// What was known of the hub's types belongs to another hub, or to another state of it.
    pub(super) fn clear_definitions(&mut self) {
        self.definitions_mut().clear();
        self.timers.set(Timer::Definitions, self.now);
        self.keep_guard_in_record();
    }

    /// What an earlier run knew of what defines these types.
    pub(super) fn restore_definitions(&mut self, definitions: BTreeMap<String, DefinedBy>) {
        for (resource, known) in definitions {
            self.definitions_mut().set(&resource, known);
        }
        self.retire_definitions();
    }

    /// The types of which there may be copies have changed. What has defined one that is no longer among them stays
    /// known: the list that had none of its copies may have been wrong.
    pub(super) fn retire_definitions(&mut self) {
        let mut origins = self.record.downsynced();
        origins.extend(ConfigKind::ALL.map(ConfigKind::qualified));
        let is_news = |resource: &String| !origins.contains(resource) && !self.definitions.is_former(resource);
        if self.definitions.all().keys().any(is_news) {
            self.definitions_mut().retire_unless(&origins);
        }
    }

    /// The copies of a type that is synced again are listed. If there are some, they are from its former definition;
    /// if not, what defines it now is read.
    pub(super) fn judge_former_definition(&mut self, type_id: TypeId) {
        let Some(state) = self.types.get(&type_id) else {
            return;
        };
        let resource = state.plan.at_hub.qualified();
        if state.plan.direction != Direction::Down || !self.definitions.is_former(&resource) {
            return;
        }
        let is_new = |state: &TypeState| state.plan.selected && state.copies_listed;
        if self
            .copied_types(&resource)
            .any(|(_, state)| state.inventory.may_have_ours())
        {
            self.definitions_mut().is_in_use(&resource);
        } else if self.copied_types(&resource).all(|(_, state)| is_new(state)) {
            self.definitions_mut().remove(&resource);
            self.timers.set(Timer::Definitions, self.now);
        }
    }
}

pub(super) fn definition_of(resource: &str) -> Subject {
    Subject::Thing(Side::Hub, Topic::TypeDefinition, resource.to_owned())
}
