//! The end of a run: calm, and the promises that can only be judged then.

use std::time::Duration;

use edge_syncer::cluster::Side;
use edge_syncer::source::Pace;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::classes::Class;
use super::converged::{LEFT_OVER, differences, is_config};
use super::ledger::{Counts, Ledger, RECORD};
use super::panics;
use super::request::Verb;
use super::run::Run;
use super::store::Key;

/// The most heartbeats an hour on one config.
const HEARTBEATS: u64 = 4;
/// How long deletes are held while nobody confirms them.
const UNCONFIRMED: Duration = Duration::from_secs(2 * 3600);
/// The most questions an hour for a kind of configs that the hub lacks: one in five minutes or more.
const KIND_QUESTIONS: u64 = 13;
/// When the last trailing write is done: the versions of the hub are recorded 10 minutes after the last of them.
const SETTLED: Duration = Duration::from_secs(1000);
/// How long after the last fault the sides may still differ: the longest back-off is 5 minutes, a deaf watch takes 3
/// to be noticed, and one thing may have to wait for another.
const CONVERGENCE: Duration = Duration::from_secs(30 * 60);
/// The time in which nothing may happen.
const IDLE: Duration = Duration::from_secs(3600);
/// The most requests about one object that keeps failing, in an hour: a back-off of at least 150 s, and three requests
/// a try (reading it at the hub, looking at its copy, applying it).
const FAILING: u64 = 75;

impl Run {
    /// True once a promise is broken.
    pub fn is_broken(&self) -> bool {
        for panic in panics::take() {
            self.ledger
                .borrow_mut()
                .break_promise(format!("panicked: {panic}"), &[]);
        }
        if self.processes.iter().any(JoinHandle::is_finished) {
            self.ledger.borrow_mut().break_promise("the syncer ended".into(), &[]);
        }
        !self.ledger.borrow().broken.is_empty()
    }

    /// Ends all faults and judges what can only be judged then.
    pub async fn judge(&mut self, classes: &[Class]) -> Duration {
        if self.is_broken() {
            return Duration::ZERO;
        }
        self.calm(classes).await;
        if classes
            .iter()
            .any(|class| matches!(class, Class::HubRestored | Class::OtherHub))
        {
            // Nobody looks for a while: what may be a disaster is held, and all else goes on.
            self.converge(|why| why != LEFT_OVER).await;
            sleep(UNCONFIRMED).await;
            self.converge(|why| why != LEFT_OVER).await;
            self.ledger.borrow_mut().lost.clear();
            self.operator = true;
        }
        let converged_in = self.converge(|_| true).await;
        if self.is_broken() {
            return converged_in;
        }
        // What failed meanwhile may still be told, watches settle, and the last versions are recorded.
        sleep(SETTLED).await;
        self.stay_idle().await;
        self.is_broken();
        converged_in
    }

    async fn calm(&mut self, classes: &[Class]) {
        self.note("all faults end");
        self.trap.armed.set(None);
        for side in [Side::Hub, Side::Edge] {
            self.server(side).weather.borrow_mut().clear();
            if classes.contains(&Class::EmptyList) {
                // Its watches go on from the versions of the empty lists, and no correct client can tell.
                self.server(side).forget_versions();
            }
        }
        if self.processes.is_empty() {
            self.start();
        }
        self.world.calm_down();
        while !self.world.define_all() {
            sleep(Duration::from_secs(1)).await;
            self.world.calm_down();
        }
        self.note("everybody goes home");
    }

    fn differences(&self) -> Vec<(String, Key)> {
        let world = &self.world;
        differences(&world.hub.store.borrow(), &world.edge.store.borrow(), &world.bystanders)
    }

    /// Waits until there is no difference that `counts`.
    async fn converge(&mut self, counts: impl Fn(&str) -> bool) -> Duration {
        let start = Instant::now();
        loop {
            let mut differences = self.differences();
            differences.retain(|(why, _)| counts(why));
            if self.operator && self.world.confirm_deletes() {
                self.note("deletes are confirmed");
                sleep(Duration::from_secs(60)).await;
            }
            if differences.is_empty() || self.is_broken() {
                return start.elapsed();
            }
            if start.elapsed() > CONVERGENCE {
                let mut ledger = self.ledger.borrow_mut();
                for (why, key) in differences.iter().take(3) {
                    ledger.break_promise(format!("after {CONVERGENCE:?} {key} {why}"), &[key]);
                }
                return start.elapsed();
            }
            sleep(Duration::from_secs(2)).await;
        }
    }

    async fn stay_idle(&mut self) {
        let (before, about) = {
            let ledger = self.ledger.borrow();
            (ledger.counts.clone(), ledger.about.clone())
        };
        self.note("an hour in which nothing happens");
        sleep(IDLE).await;
        let differences = self.differences();
        let mut ledger = self.ledger.borrow_mut();
        for (why, key) in differences.iter().take(3) {
            ledger.break_promise(format!("in an idle hour {key} became different: it {why}"), &[key]);
        }
        for (key, count) in ledger.about.clone() {
            let count = count - about.get(&key).copied().unwrap_or_default();
            let each = match () {
                () if key.name.starts_with("poison") => FAILING,
                () if self.heartbeat.is_some() && is_config(&key) => HEARTBEATS,
                // The first heartbeat after a fault may be what tells that a side is back.
                () if self.heartbeat.is_some() && matches!(&*key.name, "kube-system" | "default") => 2,
                // A list that is due once more in this hour may be newer than the recorded version.
                () if &*key.name == RECORD => 1,
                () => 0,
            };
            let most = each * self.processes.len() as u64;
            if count > most {
                let what = format!("{count} requests about {key} in an idle hour");
                ledger.break_promise(what, &[&key]);
            }
        }
        let counts = ledger.counts.clone();
        self.check_idle(&mut ledger, &before, &counts);
    }

    fn check_idle(&self, ledger: &mut Ledger, before: &Counts, after: &Counts) {
        for (&(side, verb), count) in after {
            let count = count - before.get(&(side, verb)).copied().unwrap_or_default();
            let most = match verb {
                Verb::Watch => 40 * self.processes.len() as u64,
                Verb::List if self.pace != Pace::Watch => u64::MAX,
                Verb::List | Verb::Stream if side == Side::Hub && self.world.hub.store.borrow().lacks.is_some() => {
                    KIND_QUESTIONS * self.processes.len() as u64
                }
                // Judged by the object.
                Verb::Get | Verb::Apply | Verb::MergePatch | Verb::JsonPatch | Verb::Delete => u64::MAX,
                _ => 0,
            };
            if count > most {
                ledger.break_promise(format!("{count} times {verb:?} at the {side} in an idle hour"), &[]);
            }
        }
    }
}
