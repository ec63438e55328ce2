//! What others keep changing is corrected ever less often, in whatever order it is reported.

use proptest::prelude::*;

use super::*;

/// What happens to a widget and its copy.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The origin is reported with a new version and what it was.
    OriginTouched,
    OriginChanges,
    /// Somebody writes another status to the hub.
    HubStatus,
    /// Somebody changes what was written.
    Disturbed,
    EdgeStatus,
    CopyDeleted,
    CopiesListed,
    OriginsListed,
    /// A worker has written the copy.
    Works,
    /// A status has been written to the hub, which reports it.
    Returns,
    Passes(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::OriginTouched),
        1 => Just(Step::OriginChanges),
        2 => Just(Step::HubStatus),
        4 => Just(Step::Disturbed),
        2 => Just(Step::EdgeStatus),
        2 => Just(Step::CopyDeleted),
        1 => Just(Step::CopiesListed),
        1 => Just(Step::OriginsListed),
        6 => Just(Step::Works),
        3 => Just(Step::Returns),
        4 => (0..1500_u64).prop_map(Step::Passes),
    ]
}

/// A widget, its copy, and what was done for them.
struct Contest {
    bench: Bench,
    origin: Value,
    hub_version: u64,
    copy: Option<Value>,
    writes: u32,
    returns: u32,
    origin_changes: u32,
    status_changes: u32,
    begun: Instant,
}

impl Contest {
    fn begin() -> Self {
        let bench = Bench::with_a_copy(&widgets());
        let mut origin = object(&widgets(), "shop", "a", 10);
        origin["status"] = json!({"state": 0});
        let begun = bench.now;
        let mut contest = Self {
            bench,
            origin,
            hub_version: 10,
            copy: None,
            writes: 0,
            returns: 0,
            origin_changes: 0,
            status_changes: 0,
            begun,
        };
        contest.made();
        contest.origin_is_reported();
        contest
    }

    /// A worker has written the copy.
    fn made(&mut self) {
        let version = self.bench.world.version;
        let made = copy(Direction::Down, &in_shop(&widgets(), "a"), "a", version);
        self.copy = Some(with_status(made, &json!({"state": self.status_changes})));
    }

    fn origin_is_reported(&mut self) {
        self.hub_version += 1;
        self.origin["metadata"]["resourceVersion"] = json!(self.hub_version.to_string());
        let origins = self.bench.origins_of(Side::Hub, "widgets").expect("they are read");
        self.bench.says(origins, &self.origin);
    }

    fn copies(&self) -> SourceId {
        self.bench.copies_of(Side::Edge, "widgets").expect("they are read")
    }

    /// The copy becomes this, if there is one, and is reported.
    fn copy_becomes(&mut self, change: impl FnOnce(Value, u64) -> Value) {
        if let Some(copy) = self.copy.take() {
            self.bench.world.version += 1;
            let version = self.bench.world.version;
            let mut copy = change(copy, version);
            copy["metadata"]["resourceVersion"] = json!(version.to_string());
            let copies = self.copies();
            self.bench.says(copies, &copy);
            self.copy = Some(copy);
        }
    }

    fn go(&mut self, step: Step) {
        match step {
            Step::OriginTouched => self.origin_is_reported(),
            Step::OriginChanges => {
                self.origin_changes += 1;
                self.origin["data"] = json!({"change": self.origin_changes});
                self.origin_is_reported();
            }
            Step::HubStatus => {
                self.origin["status"] = json!({"at-hub": self.hub_version});
                self.origin_is_reported();
            }
            Step::Disturbed => self.copy_becomes(changed),
            Step::EdgeStatus => {
                self.status_changes += 1;
                let status = json!({"state": self.status_changes});
                self.copy_becomes(|copy, _| with_status(copy, &status));
            }
            Step::CopyDeleted => {
                if let Some(copy) = self.copy.take() {
                    self.bench.world.version += 1;
                    let mut last = copy;
                    last["metadata"]["resourceVersion"] = json!(self.bench.world.version.to_string());
                    let copies = self.copies();
                    self.bench.says_gone(copies, &last);
                }
            }
            Step::CopiesListed => {
                let (copies, version) = (self.copies(), self.bench.world.version);
                let there: Vec<Value> = self.copy.iter().cloned().collect();
                self.bench.list(copies, &there, version);
            }
            Step::OriginsListed => {
                let origins = self.bench.origins_of(Side::Hub, "widgets").expect("they are read");
                self.bench
                    .list(origins, std::slice::from_ref(&self.origin), self.hub_version);
            }
            Step::Works if !self.bench.work.is_empty() => {
                self.writes += 1;
                self.bench.succeed(Change::Updated);
                self.made();
            }
            Step::Returns if !self.bench.statuses.is_empty() => self.status_is_returned(),
            Step::Works | Step::Returns => {}
            Step::Passes(time) => self.bench.pass(Duration::from_millis(time)),
        }
    }

    fn status_is_returned(&mut self) {
        let Some(copy) = self.copy.clone() else {
            self.bench.return_status(Ok(Returned::Gone));
            return;
        };
        self.returns += 1;
        self.hub_version += 1;
        self.bench.write_status(&copy, self.hub_version);
        self.hub_version -= 1;
        self.origin["status"] = copy["status"].clone();
        self.origin_is_reported();
    }

    /// How often something is corrected in the time since the beginning, at most.
    fn most(&self) -> u32 {
        let (mut most, mut time) = (3, self.bench.now - self.begun);
        while let Some(left) = time.checked_sub(driver::queue::back_off(most - 2, 0.0)) {
            (most, time) = (most + 1, left);
        }
        most
    }

    fn is_synced(&self) -> bool {
        let mut types = self.bench.model.types.values();
        types.all(|state| state.inventory.count_synced().1 == 0)
    }

    /// A worker writes the copy, and the edge reports what somebody has made of that before the worker has its answer.
    fn is_disturbed_before_the_answer(&mut self) {
        let before = self.bench.world.version;
        self.bench.world.version += 1;
        self.go(Step::Disturbed);
        let disturbed = self.copy.clone();
        self.bench.world.version = before;
        self.go(Step::Works);
        self.bench.world.version = before + 2;
        self.copy = disturbed;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_order_of_events_gets_around_the_wait(steps in prop::collection::vec(step(), 1..250)) {
        let mut contest = Contest::begin();
        for (index, step) in steps.iter().enumerate() {
            contest.go(*step);
            let most = contest.most();
            prop_assert!(
                contest.writes <= contest.origin_changes + most,
                "{} writes of {} changes: {:?}", contest.writes, contest.origin_changes, &steps[..=index]
            );
            prop_assert!(
                contest.returns <= 1 + contest.status_changes + most,
                "{} statuses of {} changes: {:?}", contest.returns, contest.status_changes, &steps[..=index]
            );
        }
        for _ in 0..20 {
            contest.go(Step::Works);
            contest.go(Step::Returns);
            contest.go(Step::Passes(60_000));
        }
        prop_assert!(contest.is_synced(), "it is corrected in the end: {steps:?}");
    }
}

// Case 20: a controller that takes away what the hub has ordered, and says in the status that it was done.
#[test]
fn a_copy_that_is_changed_back_with_a_new_status_each_time_is_written_less_and_less_often() {
    for answers_first in [false, true] {
        let mut contest = Contest::begin();
        contest.go(Step::Disturbed);
        for _ in 0..600 {
            if !contest.bench.work.is_empty() {
                if answers_first {
                    contest.go(Step::Works);
                    contest.go(Step::Disturbed);
                } else {
                    contest.is_disturbed_before_the_answer();
                }
                contest.go(Step::EdgeStatus);
            }
            contest.go(Step::Returns);
            contest.go(Step::Passes(1000));
        }
        assert!((8..=contest.most()).contains(&contest.writes), "{}", contest.writes);
        assert!(contest.returns >= contest.writes - 3, "{} statuses", contest.returns);
    }
}

#[test]
fn what_the_origin_wants_instead_goes_to_a_contested_copy_at_once() {
    for is_disturbed_again in [false, true] {
        let mut contest = Contest::begin();
        for _ in 0..8 {
            contest.go(Step::Disturbed);
            contest.go(Step::Works);
        }
        if is_disturbed_again {
            contest.go(Step::Disturbed);
            assert!(contest.bench.work.is_empty(), "it waits");
        }
        contest.go(Step::OriginTouched);
        assert!(contest.bench.work.is_empty(), "nothing else is wanted");
        contest.go(Step::OriginChanges);
        assert_eq!(contest.bench.working(), ["a"]);
        contest.go(Step::Works);
        contest.go(Step::Disturbed);
        assert!(contest.bench.work.is_empty(), "that is changed back, too");
    }
}

#[test]
fn a_refused_object_is_not_tried_more_often_for_a_new_status_or_a_change_of_its_copy() {
    let mut contest = Contest::begin();
    contest.go(Step::OriginChanges);
    let mut tries = 0;
    for _ in 0..600 {
        if !contest.bench.work.is_empty() {
            tries += 1;
            contest.go(Step::OriginTouched);
            contest.bench.fail(Side::Edge, broken());
        }
        contest.go(Step::OriginTouched);
        contest.go(Step::Disturbed);
        contest.go(Step::EdgeStatus);
        contest.go(Step::Returns);
        contest.go(Step::Passes(1000));
    }
    assert!((5..=16).contains(&tries), "{tries} in ten minutes");
}
