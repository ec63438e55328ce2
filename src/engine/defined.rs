//! What defines the types that come from the hub: learnt when a type is synced for the first time, and kept in the record,
//! so that a type which was deleted and defined anew meanwhile is told from the one that the copies are from.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use futures_util::FutureExt;
use tokio::time::Instant;

use super::{Engine, TaskEnd};
use crate::cluster::{Error, ResourceType, Side, qualified};
use crate::plan::Direction;
use crate::queue::back_off;
use crate::report::Subject;
use crate::sync::definition::{Definition, Known};

/// Asking the hub what defines its types.
#[derive(Default)]
pub(super) struct Learning {
    under_way: bool,
    /// When there may be something to ask.
    due: Option<Instant>,
    failures: u32,
    /// Types, `resource.group`, of which the hub does not let it be read.
    refused: BTreeSet<String>,
    /// Those of which reading it has failed last.
    failing: BTreeSet<String>,
}

/// What the hub has answered, by type.
pub(super) type Learnt = Vec<(ResourceType, Result<Option<Definition>, Error>)>;

impl Learning {
    pub(super) fn due(&self) -> Option<Instant> {
        self.due.filter(|_| !self.under_way)
    }

    /// There may be a type of which it is not known.
    pub(super) fn is_due(&mut self) {
        self.due = Some(Instant::now());
    }
}

impl Engine {
    /// Asks what defines the types of which that is not known.
    pub(super) fn learn_definitions(&mut self) {
        if self.learning.due().is_none_or(|due| due > Instant::now()) {
            return;
        }
        self.learning.due = None;
        let downsynced = self
            .types
            .values()
            .filter(|state| state.plan.direction == Direction::Down);
        let mut unknown: Vec<ResourceType> = downsynced.map(|state| state.origin_type().clone()).collect();
        unknown.retain(|resource| {
            let name = resource.qualified();
            !resource.group.is_empty() && self.defined.known(&name).is_none() && !self.learning.refused.contains(&name)
        });
        // What is not asked for any more fails no longer.
        let names: BTreeSet<String> = unknown.iter().map(ResourceType::qualified).collect();
        for name in std::mem::take(&mut self.learning.failing).difference(&names) {
            self.report.forget(&definition_of(name));
        }
        if unknown.is_empty() {
            return;
        }
        self.learning.under_way = true;
        let (hub, defined) = (Rc::clone(&self.setup.hub), Rc::clone(&self.defined));
        let task = async move {
            let mut learnt = Learnt::new();
            for resource in unknown {
                let answer = defined.read(&hub, &resource).await;
                learnt.push((resource, answer));
            }
            TaskEnd::Defined(learnt)
        };
        self.tasks.push(task.boxed_local());
    }

    pub(super) fn definitions_learnt(&mut self, learnt: Learnt) {
        self.learning.under_way = false;
        let mut failed = false;
        let mut refused = None;
        for (resource, answer) in learnt {
            let name = resource.qualified();
            let subject = definition_of(&name);
            match answer {
                Ok(found) => {
                    self.report.works(&subject);
                    // That nothing does costs no more than to ask again, and is kept when there is more to keep.
                    if found.is_some() {
                        self.keep_guard_in_record();
                    }
                    self.defined
                        .learn(&name, found.map_or(Known::Nothing, |found| Known::Uid(found.uid)));
                }
                Err(error) if error.is_unreachable() => {
                    failed = true;
                    self.side_is_silent(Side::Hub, "reading what defines a type", &error);
                }
                Err(error) if error.is_forbidden() => {
                    self.learning.refused.insert(name);
                    refused = Some(error);
                }
                Err(error) => {
                    failed = true;
                    self.fails(subject, "reading", &error);
                    self.learning.failing.insert(name);
                }
            }
        }
        if let Some(error) = refused {
            log::info!(
                "cannot tell whether the hub takes a whole type away: copies of its objects then go with them \
                 error={:?} advice=\"allow it to get customresourcedefinitions, and in kcp to list apibindings\"",
                error.to_string()
            );
        }
        if failed {
            self.learning.failures = (self.learning.failures + 1).min(30);
            self.learning.due = Some(Instant::now() + back_off(self.learning.failures, fastrand::f64()));
        } else {
            self.learning.failures = 0;
            // Types that have come meanwhile.
            self.learning.is_due();
        }
    }

    /// What was known of the hub's types was known of another hub, or of another state of it.
    pub(super) fn forget_definitions(&mut self) {
        self.defined.forget();
        self.learning.is_due();
        self.keep_guard_in_record();
    }

    /// An earlier run knew what defines these types.
    pub(super) fn remember_definitions(&mut self, definitions: BTreeMap<String, Known>) {
        for (resource, known) in definitions {
            self.defined.learn(&resource, known);
        }
    }

    /// What is known of the types that the record names.
    pub(super) fn definitions_of_record(&self) -> BTreeMap<String, Known> {
        let types = self.record.types().unwrap_or_default();
        let origins = types
            .iter()
            .filter(|known| known.direction == Direction::Down)
            .map(|known| {
                let (group, resource) = known.origin();
                qualified(group, resource)
            });
        let origins: BTreeSet<String> = origins.collect();
        let mut known = self.defined.all();
        known.retain(|resource, _| origins.contains(resource));
        known
    }
}

fn definition_of(resource: &str) -> Subject {
    Subject::Thing(Side::Hub, format!("what defines {resource}"))
}
