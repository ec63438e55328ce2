//! Types that the hub no longer has and that configs still select: their copies stay, and this is reported until the hub
//! has the type again, or nothing selects it any more.
//!
//! Nothing of such a type is synced, so the edge is asked now and then whether any copies are left. A type whose
//! definition is still at the hub, which merely does not serve it at the moment, is not one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use kube_lite::Error;
use kube_lite::logging::log_line;
use tokio::time::Instant;

use super::{Hold, NewTokens, Reason, TypeIs};
use crate::model::deselections::Unproved;
use crate::model::inventory::{Held, Permit};
use crate::model::timers::Timer;
use crate::model::{Model, Request, TypeId};
use crate::plan::{CopiesOf, Direction, Plan};
use crate::report::{Subject, Topic};
use crate::side::Side;

/// Between two checks of a type, at first; later about as long as it has been gone.
const FIRST_WAIT: Duration = Duration::from_secs(60);
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// One such type.
#[derive(Debug)]
struct Vanished {
    /// Its copies at the edge; none while the edge does not serve them.
    copies: Vec<CopiesOf>,
    /// Absent as long as it is not known that the hub has it no longer, and that there are copies.
    hold: Option<Hold>,
    /// How many copies there are.
    objects: usize,
    since: Instant,
    /// When both sides are asked; absent while they are.
    due: Option<Instant>,
}

/// All of them, by `resource.group` at the hub.
#[derive(Debug, Default)]
pub(in crate::model) struct VanishedTypes {
    types: BTreeMap<String, Vanished>,
    /// Types whose held deletes people have confirmed: they count as not selected until the hub has them again. They are
    /// in the record.
    let_go: BTreeSet<String>,
}

/// How many copies are left of a type that the hub has no longer, 0 if it has; or the side that has not reported.
pub(crate) type Left = Result<usize, (Side, Error)>;

impl VanishedTypes {
    pub(super) fn due(&self) -> Option<Instant> {
        let seen = self.types.values().filter(|known| !known.copies.is_empty());
        seen.filter_map(|known| known.due).min()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (Direction, &Hold, usize)> {
        let held = self.types.values();
        held.filter_map(|known| Some((Direction::Down, known.hold.as_ref()?, known.objects)))
    }

    /// True if the hub has the type, `resource.group`, no longer, though it counts as selected.
    pub(super) fn has(&self, resource: &str) -> bool {
        self.types.contains_key(resource)
    }

    pub(in crate::model) fn let_go(&self) -> &BTreeSet<String> {
        &self.let_go
    }
}

impl Model {
    /// An earlier run knew that people have let go these.
    pub(in crate::model) fn restore_let_go(&mut self, let_go: BTreeSet<String>) {
        self.guard.vanished.let_go.extend(let_go);
    }

    /// Only of these types there may be copies.
    pub(in crate::model) fn retire_let_go(&mut self) {
        let origins = self.record.downsynced();
        self.end_let_go(|resource| !origins.contains(resource));
    }

    /// What people have confirmed of these types is over. A later run must not take it for a confirmation of what comes
    /// after.
    fn end_let_go(&mut self, is_over: impl Fn(&String) -> bool) -> BTreeSet<String> {
        let let_go = std::mem::take(&mut self.guard.vanished.let_go);
        let (over, rest): (BTreeSet<String>, BTreeSet<String>) = let_go.into_iter().partition(is_over);
        self.guard.vanished.let_go = rest;
        if !over.is_empty() {
            self.keep_guard_in_record();
        }
        over
    }

    /// The copies of a type are listed whose origins are gone with it. If people have confirmed that, they are no sign of
    /// an accident.
    pub(in crate::model) fn permit_let_go(&mut self, type_id: TypeId) {
        let let_go = &self.guard.vanished.let_go;
        if let Some(state) = self.types.get_mut(&type_id)
            && state.plan.gone_at_origin
            && state.plan.direction == Direction::Down
            && let_go.contains(&state.plan.at_hub.qualified())
        {
            state.inventory.release(Held::WithoutPermit, Permit::Given);
        }
    }

    /// A new plan says which types have vanished, and which no longer. Types that are not in the plan still run: what
    /// is held of them continues to be held.
    pub(in crate::model) fn note_vanished(&mut self, plan: &Plan) {
        let let_go = self.guard.vanished.let_go.iter();
        let back: BTreeSet<String> = let_go.filter(|of| self.is_back(plan, of)).cloned().collect();
        for resource in self.end_let_go(|resource| back.contains(resource)) {
            self.deselections.is_back(&resource);
        }
        let known = self.guard.vanished.types.keys().filter(|&of| !plan.is_unknown(of));
        let over: Vec<String> = known.filter(|&of| !plan.vanished.contains_key(of)).cloned().collect();
        for resource in over {
            if self.is_out_of_sight(plan, &resource) {
                if let Some(known) = self.guard.vanished.types.get_mut(&resource) {
                    known.copies.clear();
                }
                continue;
            }
            let why = if self.is_back(plan, &resource) {
                "the hub has the type again"
            } else if plan.has_another_kind(&resource) {
                "the hub has the type again, with another kind; its copies are preserved"
            } else {
                "nothing selects the type as it was any more"
            };
            for side in [Side::Hub, Side::Edge] {
                self.report.clear(&what_is_left_of(&resource, side));
            }
            let hold = self.guard.vanished.types.remove(&resource).and_then(|known| known.hold);
            self.is_held_no_longer(hold.as_ref(), &resource, why);
        }
        for (resource, copies) in &plan.vanished {
            match self.guard.vanished.types.get_mut(resource) {
                Some(known) if known.copies == *copies => {}
                Some(known) => {
                    known.copies.clone_from(copies);
                    known.due = known.due.map(|_| self.now);
                }
                None => self.has_vanished(resource, copies),
            }
            self.update_reason(resource);
        }
    }

    /// True if the hub has a type again as it was. Of one that the edge does not serve, a plan does not say so.
    fn is_back(&self, plan: &Plan, resource: &str) -> bool {
        plan.has_at_hub(resource)
            .unwrap_or_else(|| self.hub_serves(resource) && !plan.has_another_kind(resource))
    }

    /// True if a plan says nothing of a type that the hub lacks, since the edge does not serve it just now, though its copies
    /// may be there.
    fn is_out_of_sight(&self, plan: &Plan, resource: &str) -> bool {
        let is_planned = plan.has_at_hub(resource).is_some() || plan.has_another_kind(resource);
        !is_planned
            && !self.hub_serves(resource)
            && !self.deselections.proved().contains(resource)
            && self.may_have_copies_of(resource)
    }

    fn hub_serves(&self, resource: &str) -> bool {
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        self.sides.discovery(Side::Hub).serves(group, resource)
    }

    /// The hub could not say whether people have deselected these types.
    pub(in crate::model) fn update_reasons(&mut self) {
        let resources: Vec<String> = self.guard.vanished.types.keys().cloned().collect();
        for resource in resources {
            self.update_reason(&resource);
        }
    }

    /// What a hold of a type that the hub lacks says of the configs follows them; its token stays. The hub is given the
    /// time to answer before it is logged that it has not.
    fn update_reason(&mut self, resource: &str) {
        let is_open = self.deselections.why(resource) == Some(Unproved::Open);
        if is_open && self.timers.failures(Timer::ConfigKinds) == 0 {
            return;
        }
        let reason = self.why_it_is_held(resource);
        let known = self.guard.vanished.types.get_mut(resource);
        if let Some(hold) = known.and_then(|known| known.hold.as_mut())
            && hold.reason != reason
        {
            *hold = Hold::go_on(Direction::Down, reason, hold.token.clone());
            self.report_holds();
        }
    }

    fn why_it_is_held(&self, resource: &str) -> Reason {
        Reason::Withdrawn {
            resource: resource.to_owned(),
            is: match self.deselections.why(resource) {
                None => TypeIs::Gone,
                Some(Unproved::WithConfigs) => TypeIs::GoneWithConfigs,
                Some(Unproved::Open) => TypeIs::GoneUnselected,
            },
        }
    }

    fn has_vanished(&mut self, resource: &str, copies: &[CopiesOf]) {
        let now = self.now;
        let mut vanished = Vanished {
            copies: copies.to_vec(),
            hold: None,
            objects: 0,
            since: now,
            due: Some(now),
        };
        if self.guard.types.holds_any_of(resource) {
            let copies = self.copied_types(resource);
            vanished.objects = copies.map(|(_, state)| state.inventory.ours().count()).sum();
            let token = self.guard.types.token_of_going(resource);
            let reason = self.why_it_is_held(resource);
            vanished.hold = Some(begin(reason, token, &mut self.new_tokens));
            self.report_holds();
        }
        self.guard.vanished.types.insert(resource.to_owned(), vanished);
        self.is_held_as_vanished(resource);
    }

    /// Asks both sides about the types for which that is due.
    pub(super) fn ask_about_vanished(&mut self, now: Instant) {
        for (resource, known) in &mut self.guard.vanished.types {
            if known.copies.is_empty() || known.due.is_none_or(|due| due > now) {
                continue;
            }
            known.due = None;
            let request = Request::SearchForLeft(resource.clone(), known.copies.clone(), Rc::clone(&self.definitions));
            self.effects.request(request);
        }
    }

    /// Both sides have been asked.
    pub(in crate::model) fn on_vanished(&mut self, resource: &str, left: Left) {
        let reason = self.why_it_is_held(resource);
        let Some(known) = self.guard.vanished.types.get_mut(resource) else {
            return; // It is back, or not selected any more.
        };
        let now = self.now;
        known.due = Some(now + now.duration_since(known.since).clamp(FIRST_WAIT, LONGEST_WAIT));
        if known.copies.is_empty() {
            return; // The edge does not serve it any more.
        }
        match left {
            Ok(objects) => {
                known.objects = objects;
                if objects == 0 {
                    let hold = known.hold.take();
                    let why = "no copies are left, or the hub still defines the type";
                    self.is_held_no_longer(hold.as_ref(), resource, why);
                } else if known.hold.is_none() {
                    known.hold = Some(begin(reason, None, &mut self.new_tokens));
                    self.report_holds();
                }
                for side in [Side::Hub, Side::Edge] {
                    self.report.works(&what_is_left_of(resource, side));
                }
            }
            Err((side, error)) if error.is_unreachable() => self.side_is_silent(side, "asking", &error),
            Err((side, error)) => self.fails(what_is_left_of(resource, side), "asking", &error),
        }
    }

    fn is_held_no_longer(&mut self, hold: Option<&Hold>, resource: &str, why: &str) {
        if hold.is_some() {
            log_line!(
                Info,
                HoldEnded,
                "deletes are not held any more",
                resource = resource,
                because = why
            );
            self.report_holds();
        }
    }

    /// Releases what people have confirmed, as if nothing selected it any more.
    pub(super) fn confirm_vanished(&mut self, tokens: &BTreeSet<String>) {
        let VanishedTypes { types, let_go } = &mut self.guard.vanished;
        let before = types.len();
        types.retain(|resource, known| {
            let is_confirmed = known.hold.as_ref().is_some_and(|hold| tokens.contains(&hold.token));
            if is_confirmed {
                let objects = known.objects;
                log_line!(
                    Warn,
                    DeletesReleased,
                    "held deletes are carried out",
                    resource = resource,
                    because = "confirmed",
                    objects = objects
                );
                let_go.insert(resource.clone());
                self.deselections.confirm(resource);
            }
            !is_confirmed
        });
        if types.len() < before {
            self.report_holds();
            self.keep_guard_in_record();
            self.replan();
            // The hub has to confirm a few times more that it lacks them, and has been asked with increasing back-off by now.
            self.ask_again_soon(Side::Hub);
        }
    }
}

fn begin(reason: Reason, token: Option<String>, tokens: &mut NewTokens) -> Hold {
    match token {
        Some(token) => Hold::go_on(Direction::Down, reason, token),
        None => Hold::begin(Direction::Down, reason, None, tokens),
    }
}

fn what_is_left_of(resource: &str, side: Side) -> Subject {
    Subject::Thing(side, Topic::Leftover, resource.to_owned())
}
