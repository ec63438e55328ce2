//! A config that selects more, or less, of a type that is synced already: what runs goes on, and what is new in it is read
//! by name, so that an edit of a config costs what it adds and not what there is.

use std::collections::BTreeSet;

use super::{Engine, TypeId, TypeState};
use crate::cluster::{ObjectName, Scope};
use crate::plan::{Direction, Selection, TypePlan};
use crate::sync::own_objects::is_record;

/// Above this many new names, lists are cheaper.
const NAMES: usize = 200;

impl Engine {
    /// Takes over a plan of the same type. What its sources do not tell is read by name where that is possible; otherwise both
    /// sides are looked at again.
    pub(super) fn change_plan(&mut self, type_id: TypeId, planned: TypePlan) {
        let Some(state) = self.types.get(&type_id) else {
            return;
        };
        let added = self.added_within(state, &planned);
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        if state.plan.status != planned.status {
            state.inventory.forget_written_statuses();
        }
        state.plan = planned;
        state.deselect();
        self.forget_failures(type_id, false);
        match added {
            Some(names) => self.read_by_name(type_id, names),
            None => self.restart_type(type_id),
        }
    }

    /// What a new plan selects that the old one did not, if that can be named and the sources of the type can go on.
    fn added_within(&self, state: &TypeState, planned: &TypePlan) -> Option<Vec<ObjectName>> {
        let only_selector = TypePlan {
            selector: state.plan.selector.clone(),
            ..planned.clone()
        };
        let has_read = state.looked && self.has_listed_copies(state) && self.has_listed_origins(state);
        let mut sources = state.origin_sources.values().filter_map(|id| self.sources.get(id));
        if only_selector != state.plan
            || !planned.selected
            || !has_read
            || !state.strays().is_empty()
            || sources.any(|source| source.listing)
        {
            return None;
        }
        let names = planned.selector.added_to(&state.plan.selector)?;
        let scopes = planned_scopes(state, planned);
        let goes_on = names.len() <= NAMES && state.origin_sources.keys().all(|scope| scopes.contains(scope));
        (names.is_empty() || goes_on).then_some(names)
    }

    fn read_by_name(&mut self, type_id: TypeId, mut names: Vec<ObjectName>) {
        let Some(state) = self.types.get_mut(&type_id) else {
            return;
        };
        names.retain(|name| {
            if let (Some(why), Some((origin, _))) = (state.refusal(name), state.both(name)) {
                self.report.refused(&origin.for_people(), &why);
            }
            state.allowed(name) != Selection::None && !is_record(&state.plan.at_edge, &name.name)
        });
        if names.is_empty() {
            return;
        }
        for name in &names {
            state.inventory.ask_for(name);
        }
        if state.plan.direction == Direction::Down {
            // What is at the edge already has to be known, also of origins that come later. This asks for metadata alone.
            if let Some(id) = state.copy_source.take() {
                self.end_source(id);
            }
            self.start_copy_source(type_id);
        }
        for name in names {
            self.enqueue(type_id, name, None);
        }
    }
}

/// The scopes in which origins have to be read by a new plan, before what it no longer selects is known: copies keep theirs.
fn planned_scopes(state: &TypeState, planned: &TypePlan) -> BTreeSet<Scope> {
    let selector = &planned.selector;
    let unselected = |name: &&ObjectName| selector.selects(name) == Selection::None;
    selector.scopes(state.inventory.ours().filter(unselected))
}
