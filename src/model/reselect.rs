//! A config that selects more, or less, of a type that is synced already: what runs continues, and what is newly
//! selected is read by name or by scope, so that the cost of an edit depends on what it adds, not on what there is.

use std::rc::Rc;

use kube_lite::ObjectName;

use super::{Model, TypeId, TypeState};
use crate::plan::{Added, Direction, Selection, TypePlan};

/// Above this many new names, lists are cheaper.
pub(super) const NAMES: usize = 200;

impl Model {
    /// Takes over a plan of the same type. What its sources do not report is read beside them. If more has changed than
    /// what is selected, both sides are read again.
    pub(super) fn change_plan(&mut self, type_id: TypeId, planned: TypePlan, added: &Added) {
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        let goes_on = state.goes_on_with(&planned);
        if state.plan.status != planned.status {
            state.inventory.drop_written_statuses();
        }
        let has_no_status = planned.status.is_none();
        // By the names that they have had until now, and before those that have no copy are dropped.
        let before = self.may_be_failing(type_id);
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        state.follow(planned);
        for (name, subjects) in before {
            if state.selection(&name) == Selection::None || state.subjects(&name).as_ref() != Some(&subjects) {
                self.report.clear_all(&subjects);
            }
        }
        state.deselect();
        self.without_copy_selected(type_id);
        if has_no_status {
            self.returns_no_status(type_id);
        }
        if goes_on {
            self.read_what_is_added(type_id, added);
        } else {
            self.restart_type(type_id);
        }
    }

    fn read_what_is_added(&mut self, type_id: TypeId, added: &Added) {
        let Some(state) = self.types.get_mut(&type_id).filter(|_| !added.is_empty()) else {
            return;
        };
        if state.plan.direction == Direction::Down {
            // What is at the edge already has to be known, also for origins that come later. This reads metadata alone.
            if let Some(id) = state.copy_source.take() {
                self.end_source(id);
            }
            self.start_copy_source(type_id);
        }
        self.read_by_name(type_id, &added.names);
        self.read_once(type_id, added.scopes.clone());
    }

    /// Reads the objects that have these names at the edge.
    fn read_by_name(&mut self, type_id: TypeId, names: &[ObjectName]) {
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        let mut names: Vec<_> = names.iter().filter_map(|name| state.called_at_edge(name)).collect();
        let mut refused = Vec::new();
        names.retain(|name| {
            if let (Some(why), Some((origin, _))) = (state.refusal(name), state.both(name)) {
                self.report.refused(&origin.for_people(), &why);
                // Whether it is there is not asked, and the next list says it.
                refused.push(origin.name);
            }
            state.allowed(name) != Selection::None && !state.is_record(name)
        });
        for origin in refused {
            state.without_copy.insert(&origin, 0);
        }
        for name in &names {
            state.inventory.ask_for(name);
        }
        for name in names {
            self.enqueue(type_id, name, None);
        }
    }
}

impl TypeState {
    /// True if the sources of the type can continue with another plan: nothing but what is selected changes.
    fn goes_on_with(&self, planned: &TypePlan) -> bool {
        let only_selector = TypePlan {
            selector: Rc::clone(&self.plan.selector),
            not_stored: self.plan.not_stored.clone(),
            scaled_by_nobody: self.plan.scaled_by_nobody,
            configs: self.plan.configs.clone(),
            ..planned.clone()
        };
        only_selector.is(&self.plan) && planned.selected && self.copies_listed && self.former_copies().is_empty()
    }
}
