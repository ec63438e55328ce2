//! The end of a run: calm, and the promises that can only be judged then.

use std::collections::BTreeSet;
use std::time::Duration;

use driver::source::Mode;
use edge_syncer::side::Side;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::classes::Class;
use super::converged::{LEFT_OVER, differences, is_config, is_edge};
use super::converged_up::{self, is_in_conflict, used_by_others};
use super::conversions::{Conversions, origin_of};
use super::flows::DOWNSYNC;
use super::ledger::{Counts, LEASE, Ledger, RECORD};
use super::panics;
use super::request::Verb;
use super::run::Run;
use super::store::Key;
use super::types::{DEFINITIONS, EDGE_SYNC_CONFIGS, EDGES};

/// The most requests an hour about one config: two heartbeats, one more when the hour holds three, and what the edge says,
/// where the hub did not take that before.
const HEARTBEATS: u64 = 4;
/// The same about one whose status is no subresource: it is tried twice whether that is still so, and the config is read
/// then.
const WITHOUT_STATUS: u64 = HEARTBEATS + 3;
/// The same about the object that stands for the edge, at a hub that lacks its type: it is tried again after ten minutes,
/// an hour, and then each six hours.
const WITHOUT_EDGES: u64 = 2;
/// Events: what has happened again within ten minutes of its Event is written after them; thirty an hour in all.
const EVENTS: u64 = 30;
/// How long deletes are held while nobody confirms them.
const UNCONFIRMED: Duration = Duration::from_secs(2 * 3600);
/// The most questions an hour for a kind of configs that the hub lacks: one in five minutes or more.
const KIND_QUESTIONS: u64 = 13;
/// When the last trailing look is done: what is held is read when it is let go after 10 minutes, though it may have
/// gone before that, and a watch without bookmarks is trusted for 15.
const SETTLED: Duration = Duration::from_secs(920);
/// How long after the last fault the sides may still differ: deletes may be held for 10 minutes, and what comes after
/// that for 10 more, the longest back-off is 5, and a deaf watch takes 3 to be noticed.
const CONVERGENCE: Duration = Duration::from_secs(25 * 60);
/// The same for a copy that is held because its delete would delete others too: it is inspected again after at most an
/// hour (docs/reference/conditions.md, `NotEmpty`).
const CASCADE_CONVERGENCE: Duration = Duration::from_secs(3600 + 25 * 60);
/// The time in which nothing may happen.
const IDLE: Duration = Duration::from_secs(3600);
/// The most requests about one object that keeps failing, in an hour: a back-off of 150 s to 300 s, so hardly ever more
/// than 20 tries, and seven requests a try. One is at the hub, which reads it. At the edge the copy is read for what is
/// left to others and for whose fields it has, applied and, once that is refused, read again, taken over, and asked for
/// what would be valid.
const FAILING: u64 = 20 * 7;
/// The same for one whose place somebody else's has: two requests a try.
const CONFLICTING: u64 = 40;
/// The same for one whose place is that of another origin's copy: a try in five to ten minutes, if nothing is reported before.
const WAITING: u64 = 12 * 2;
/// How often in an hour it is tried to delete what would delete others too, after an hour and more; and the most requests
/// about the object itself in one try, and of discovery and lists about what it would delete too.
const CASCADE_TRIES: u64 = 4;
const CASCADE_REQUESTS: u64 = 2;
const CASCADE_QUESTIONS: u64 = 14;
/// Requests an hour about the Lease: every 5 s of who holds it, every 2 s of who does not.
const LEASE_REQUESTS: u64 = 1800;
/// The most rounds of questions an hour for a type that is selected and missing, and the questions of one: the groups, and
/// the versions of one of them.
const MISSING_QUESTIONS: u64 = 25 * 2;
/// How often in an hour a namespace of upsync at the hub that others use is read, to see whether it is empty.
const READS: u64 = 7;
/// Sources of a syncer at each side for downsync. At the hub: two kinds of configs, CRDs, namespaces, panels, and three
/// types in three namespaces each. At the edge: these types, and CRDs once more for what is missing.
const SOURCES: [(Side, u64); 2] = [(Side::Hub, 14), (Side::Edge, 7)];
/// And for upsync. At the edge: one cluster-scoped type, and two in three namespaces each. At the hub: these types, and
/// namespaces.
const UPWARD_SOURCES: [(Side, u64); 2] = [(Side::Hub, 4), (Side::Edge, 7)];
/// And at each side for each pair of types between which conversions turn objects: the origins of one direction in three
/// namespaces, and the copies of the other.
const PAIR_SOURCES: u64 = 4;

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
        let upsync = self.world.habits.upsync;
        if classes.iter().any(|class| class.needs_people(upsync)) {
            // Nobody looks for a while: what may be an accident is held, with the namespace that it may be in, and all else
            // continues.
            let is_held = |why: &str| [LEFT_OVER, converged_up::IDLE].contains(&why);
            self.converge(|why| !is_held(why)).await;
            sleep(UNCONFIRMED).await;
            self.converge(|why| !is_held(why)).await;
            self.ledger.borrow_mut().lost.clear();
            self.ledger.borrow_mut().taken.forget();
            self.operator = true;
        }
        let converged_in = self.converge(|_| true).await;
        if self.is_broken() {
            return converged_in;
        }
        // What failed meanwhile may still be reported, watches settle, and the last versions are recorded.
        sleep(SETTLED).await;
        self.check_failing().await;
        self.stay_idle().await;
        self.is_broken();
        converged_in
    }

    async fn calm(&mut self, classes: &[Class]) {
        self.note("all faults end");
        self.trap.armed.set(None);
        for side in [Side::Hub, Side::Edge] {
            self.server(side).weather.borrow_mut().clear();
            self.server(side).show_all();
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
        let edge = world.edge.store.borrow();
        let ledger = self.ledger.borrow();
        let mut all = differences(
            &world.hub.store.borrow(),
            &edge,
            &world.bystanders,
            (ledger.choices, &ledger.history),
        );
        // What a backup brings back and has lost its label before the syncer could see it is not found again.
        let is_hidden = |key: &Key| {
            let is_unlabelled = edge
                .get(key)
                .is_some_and(|copy| copy["metadata"]["labels"][DOWNSYNC.mark].is_null());
            is_unlabelled && ledger.revived.contains(&(Side::Edge, key.clone()))
        };
        all.retain(|(why, key)| why != LEFT_OVER || !is_hidden(key));
        all
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
            let after = start.elapsed();
            differences.retain(|(why, key)| after > self.patience_with(why, key));
            if !differences.is_empty() {
                let mut ledger = self.ledger.borrow_mut();
                for (why, key) in differences.iter().take(3) {
                    ledger.break_promise(format!("after {after:?} {key} {why}"), &[key]);
                }
                return after;
            }
            sleep(Duration::from_secs(2)).await;
        }
    }

    /// How long after the last fault a difference may last.
    fn patience_with(&self, why: &str, key: &Key) -> Duration {
        if why == LEFT_OVER && self.is_held_cascade(key) {
            CASCADE_CONVERGENCE
        } else {
            CONVERGENCE
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
            let each = if key.name.starts_with("poison") {
                FAILING
            } else if self.heartbeat.is_some() && is_config(&key) {
                let has_status = key.resource.starts_with("syncerconfigs");
                if has_status { HEARTBEATS } else { WITHOUT_STATUS }
            } else if self.heartbeat.is_some() && is_edge(&key) {
                if self.keeps_edges() { HEARTBEATS } else { WITHOUT_EDGES }
            } else if self.is_in_conflict(&key) {
                CONFLICTING
            } else if self.waits_for_its_place(&key) {
                WAITING
            } else if self.is_held_cascade(&key) {
                CASCADE_TRIES * CASCADE_REQUESTS
            } else if self.world.habits.upsync && &*key.resource == "namespaces" {
                READS
            } else if &*key.name == RECORD {
                // A list that is due once more in this hour may be newer than the recorded version. Whoever polls for
                // upsync reads what is written then.
                1 + u64::from(self.world.habits.upsync)
            } else if self.elects && &*key.name == LEASE {
                LEASE_REQUESTS
            } else {
                // After a request whose answer was cut off, a side is asked once more who it is, as soon as it answers
                // something: the next heartbeat, or without any the next watch, within this hour.
                u64::from(&*key.name == "kube-system")
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

    /// What is reported as failing is what is bound to fail.
    async fn check_failing(&mut self) {
        if self.processes.len() != 1 {
            return; // Only the last one can be asked.
        }
        let failing = self.figure("failing").await;
        let bound: BTreeSet<Key> = {
            let stores = [self.world.hub.store.borrow(), self.world.edge.store.borrow()];
            let keys = stores.iter().flat_map(|store| store.all().map(|(key, _)| key));
            let waits = |key: &Key| self.waits_for_its_place(key) || self.has_no_place(key);
            let fails = |key: &&Key| key.name.starts_with("poison") || self.is_in_conflict(key) || waits(key);
            keys.filter(fails).cloned().collect()
        };
        if failing > bound.len() as u64 {
            let what = format!(
                "{failing} are reported as failing, and no more than {} can",
                bound.len()
            );
            self.ledger.borrow_mut().break_promise(what, &[]);
        }
    }

    fn is_in_conflict(&self, key: &Key) -> bool {
        let world = &self.world;
        is_in_conflict(&world.hub.store.borrow(), &world.edge.store.borrow(), key)
    }

    /// True if the place of the hub's `key`, or the edge's, is that of a copy of another origin.
    fn waits_for_its_place(&self, key: &Key) -> bool {
        let (hub, edge) = (self.world.hub.store.borrow(), self.world.edge.store.borrow());
        let names = Conversions::at(&hub);
        let is_anothers = |place: &Key, origin: &Key| {
            edge.get(place)
                .is_some_and(|copy| DOWNSYNC.owns(copy) && origin_of(place, copy) != *origin)
        };
        let as_origin = names.at_edge(key).is_some_and(|place| is_anothers(&place, key));
        as_origin || names.at_hub(key).is_some_and(|origin| is_anothers(key, &origin))
    }

    /// True for an object that no other place is for, or whose namespace the edge lacks.
    fn has_no_place(&self, key: &Key) -> bool {
        let (hub, edge) = (self.world.hub.store.borrow(), self.world.edge.store.borrow());
        let names = Conversions::at(&hub);
        let is_at_hub = hub.get(key).is_some();
        let has_no_copy =
            is_at_hub && names.at_edge(key).is_none() || edge.get(key).is_some() && names.at_hub(key).is_none();
        has_no_copy || is_at_hub && key.home().is_some_and(|home| edge.get(&home).is_none())
    }

    /// True for a copy of a namespace or CRD whose origin is gone: something is left that it would delete too.
    fn is_held_cascade(&self, key: &Key) -> bool {
        let (hub, edge) = (self.world.hub.store.borrow(), self.world.edge.store.borrow());
        let deletes_too = matches!(&*key.resource, "namespaces" | DEFINITIONS);
        let is_left = |copy: &Value| DOWNSYNC.owns(copy) && hub.get(&origin_of(key, copy)).is_none();
        deletes_too && edge.get(key).is_some_and(|copy| is_left(copy))
    }

    /// True if the hub has the object that stands for the edge.
    fn keeps_edges(&self) -> bool {
        self.heartbeat.is_some() && !self.world.hub.store.borrow().lacks.contains(EDGES)
    }

    fn check_idle(&self, ledger: &mut Ledger, before: &Counts, after: &Counts) {
        let lacks = |side| side == Side::Hub && self.world.hub.store.borrow().lacks.contains(EDGE_SYNC_CONFIGS);
        let used = used_by_others(&self.world.hub.store.borrow()) as u64;
        let keys: Vec<Key> = self
            .world
            .edge
            .store
            .borrow()
            .all()
            .map(|(key, _)| key.clone())
            .collect();
        let held: Vec<&Key> = keys.iter().filter(|key| self.is_held_cascade(key)).collect();
        let types = held.iter().filter(|key| &*key.resource == DEFINITIONS).count() as u64;
        for (&(side, verb), count) in after {
            let count = count - before.get(&(side, verb)).copied().unwrap_or_default();
            let upward: &[_] = if self.world.habits.upsync { &UPWARD_SOURCES } else { &[] };
            let sources = SOURCES.iter().chain(upward).filter(|(of, _)| *of == side);
            let pairs = ledger.history.count_pairs_of_types() * PAIR_SOURCES;
            let sources: u64 = sources.map(|(_, most)| most).sum::<u64>() + pairs;
            let asked = if lacks(side) { KIND_QUESTIONS } else { 0 };
            // One look asks for each group, and in each type that is served.
            let looks = match side {
                Side::Hub => used * READS * 9 + types * MISSING_QUESTIONS,
                Side::Edge => held.len() as u64 * CASCADE_TRIES * CASCADE_QUESTIONS,
            };
            let each = match verb {
                // One lasts a little less than an hour.
                Verb::Watch => 2 * sources,
                // Each source looks once a minute.
                Verb::List if self.pace_at(side) != Mode::Watch => sources * 61 + asked + looks,
                Verb::List => asked + looks,
                Verb::Stream => asked,
                // A heartbeat that could not ask where the status goes is tried again at its interval, of half an hour. The
                // next one after a side was away asks for the versions of both.
                Verb::Discover => looks + u64::from(side == Side::Hub) + u64::from(self.keeps_edges()),
                // Judged by the object.
                Verb::Get | Verb::Apply | Verb::MergePatch | Verb::JsonPatch | Verb::Delete => continue,
                Verb::Create if self.world.habits.upsync => continue,
                Verb::Create => EVENTS,
                _ => 0,
            };
            if count > each * self.processes.len() as u64 {
                ledger.break_promise(format!("{count} times {verb:?} at the {side} in an idle hour"), &[]);
            }
        }
    }
}
