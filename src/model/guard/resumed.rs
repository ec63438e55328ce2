//! Holds over a restart: what the record says of them, and what is to be done with what it says.
//!
//! The record has a line for each hold that lasts over a restart, and for one that people have confirmed as long as not
//! all of its deletes are carried out: their token is still on a config then, and confirms the rest. A token confirms no
//! more deletes than the hold named that it was made for.

use super::hold::Hold;
use super::{Gate, Reason};
use crate::model::Model;
use crate::plan::Direction;

impl Model {
    /// What a restart has to know of the holds, for the record.
    pub(in crate::model) fn lines_of_holds(&self) -> String {
        let gates = self.guard.gates.iter();
        let lines = gates.filter_map(|(direction, gate)| match gate {
            Gate { hold: Some(hold), .. } => hold.line(direction, self.guard.held_by_gate(direction, &self.types)),
            Gate { confirmed, .. } => confirmed.as_ref()?.line(direction, 0),
        });
        lines.collect()
    }

    /// People have confirmed that so many copies may be deleted. Those of another cluster are too many after a restart,
    /// which knows from the record that nothing else is to be held. That a side is older is confirmed once more then.
    pub(super) fn keep_confirmed(&mut self, direction: Direction, hold: Option<Hold>, released: usize) {
        let copies = self.counted(direction, self.now).copies;
        let gate = self.guard.gates.or_default(direction);
        gate.confirmed = hold.filter(|_| released > 0).and_then(|hold| {
            let of = match hold.reason {
                Reason::TooMany { of, .. } => of,
                Reason::OtherCluster { .. } => copies.max(released),
                Reason::WentBack { .. } => return Some(hold),
                Reason::Withdrawn { .. } | Reason::NotEmpty { .. } => return None,
            };
            let reason = Reason::TooMany { pending: released, of };
            Some(Hold { reason, ..hold })
        });
        self.keep_guard_in_record();
    }

    /// All that people have confirmed is carried out: a restart need not know of it any more.
    pub(super) fn end_what_was_confirmed(&mut self, direction: Direction) {
        let gate = self.guard.gates.get(direction);
        if gate.is_none_or(|gate| gate.confirmed.is_none()) {
            return;
        }
        let mut types = self.types.values().filter(|state| state.plan.direction == direction);
        if !types.any(|state| state.inventory.has_permitted()) {
            self.guard.gates.or_default(direction).confirmed = None;
            self.keep_guard_in_record();
        }
    }

    /// An earlier run has held deletes, as the record says, or has not carried out all that people have confirmed.
    pub(in crate::model) fn restore_holds(&mut self, lines: &str) {
        let grace = self.settings.delete_limits.grace;
        for (direction, hold) in lines.lines().filter_map(|line| Hold::resume(line, grace, self.now)) {
            let gate = self.guard.gates.or_default(direction);
            if gate.hold.is_none() {
                hold.log(direction);
                gate.hold = Some(hold);
            }
        }
        self.report_holds();
    }

    /// Once it is known what a hold of an earlier run keeps: if that is more than it has named, it is another hold, with
    /// a token of its own.
    pub(in crate::model) fn compare_resumed_holds(&mut self) {
        let (all_is_read, now) = (self.has_read_all(), self.now);
        for direction in [Direction::Down, Direction::Up] {
            let gate = self.guard.gates.or_default(direction);
            let resumed = gate.hold.as_mut().filter(|hold| hold.resumed_until.is_some());
            let Some(hold) = resumed.filter(|hold| hold.may_be_confirmed(all_is_read, now)) else {
                continue;
            };
            hold.resumed_until = None;
            let Reason::TooMany { pending, .. } = hold.reason else {
                continue;
            };
            let deletes = self.guard.held_by_gate(direction, &self.types);
            if deletes > pending {
                let of = self.counted(direction, now).copies.max(deletes);
                let gate = self.guard.gates.or_default(direction);
                let reason = Reason::TooMany { pending: deletes, of };
                let until = Some(now + self.settings.delete_limits.grace);
                gate.hold = Some(Hold::begin(direction, reason, until, &mut self.new_tokens));
                self.holds_have_changed();
            }
        }
    }
}
