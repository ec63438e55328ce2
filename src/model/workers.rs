//! Who has the workers: which keys are being worked on, for how long, and which others may be started.
//!
//! A request that hangs, in a webhook first of all, would keep its worker for half a minute, and where a type or a
//! namespace is full of such objects, they would keep all workers for good. So:
//! - A key that takes longer than [`SLOW`] gives its worker to others. There are never more such keys than workers: any
//!   more of them keep workers busy.
//! - What has been slow is started a few keys at a time, until one of them is done in time: of one type in one
//!   namespace [`OF_ONE_LOT`], of one type in many namespaces, or of many types in one namespace, [`OF_MANY_LOTS`].
//!
//! So what is not slow waits for what is slow once, for [`SLOW`]. Where nothing takes that long, as over a link with
//! seconds of latency, nothing is held back. But a type or a namespace that has half of the workers gets no more of
//! them as long as others have something to do ([`Workers::rank`]): objects that take a little less than [`SLOW`] would
//! otherwise keep all workers busy for as long as there are more of them.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use kube_lite::Within;
use tokio::time::Instant;

use super::{Key, ListEpoch, TypeId, WORK_BYTES};

/// What takes longer than this is slow.
pub(super) const SLOW: Duration = Duration::from_secs(5);
/// Keys at once of a type in a namespace in which something was slow.
const OF_ONE_LOT: usize = 2;
/// Keys at once of a type, or of a namespace, in which several lots were slow.
const OF_MANY_LOTS: usize = 4;
/// So many slow lots show that the cause is not in one of them.
const MANY_LOTS: usize = 3;
/// What was not found slow again within this time is not slow any more. Longer than the longest back-off.
const MEMORY: Duration = Duration::from_secs(600);
/// How long a key waits that may not be started.
pub(super) const HELD_BACK: Duration = Duration::from_secs(15);

/// A group of keys that may be slow for one reason.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    /// A type in a namespace.
    Lot(TypeId, Rc<Within>),
    /// A type.
    Type(TypeId),
    /// A namespace.
    Namespace(Rc<Within>),
}

impl Scope {
    /// All that a key is in. Objects without a namespace share none.
    fn all_of(key: &Key) -> impl Iterator<Item = Self> {
        let namespace = key.name.within();
        let in_namespace = (!key.name.namespace().is_empty()).then(|| Self::Namespace(Rc::clone(namespace)));
        let lot = Self::Lot(key.type_id, Rc::clone(namespace));
        [lot, Self::Type(key.type_id)].into_iter().chain(in_namespace)
    }

    fn has(&self, key: &Key) -> bool {
        match self {
            Self::Lot(type_id, namespace) => key.type_id == *type_id && key.name.within() == namespace,
            Self::Type(type_id) => key.type_id == *type_id,
            Self::Namespace(namespace) => key.name.within() == namespace,
        }
    }

    fn most(&self) -> usize {
        match self {
            Self::Lot(..) => OF_ONE_LOT,
            Self::Type(_) | Self::Namespace(_) => OF_MANY_LOTS,
        }
    }
}

/// See the module's doc.
pub(super) struct Workers {
    most: usize,
    running: BTreeMap<Key, Running>,
    /// What was slow, and when it was found so last.
    slow: BTreeMap<Scope, Instant>,
    /// Keys that were not started for that.
    held: BTreeSet<Key>,
    /// Those of them that may be: something like them was done in time.
    released: Vec<Key>,
}

struct Running {
    since: Instant,
    /// It is a Namespace or CRD, for which others wait.
    first: bool,
    /// Bytes of the body that it was given.
    payload: usize,
    /// The list of origins that was complete when it began.
    list: ListEpoch,
    slow: bool,
}

impl Workers {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            running: BTreeMap::new(),
            slow: BTreeMap::new(),
            held: BTreeSet::new(),
            released: Vec::new(),
        }
    }

    /// A worker begins with a key. What it finds of the origin may be as old as this moment: `list` is the complete
    /// list of origins that would have named it; 0 if there is none, or another one is under way.
    pub(super) fn begin(&mut self, key: &Key, first: bool, payload: usize, list: ListEpoch, now: Instant) {
        let running = Running {
            since: now,
            first,
            payload,
            list,
            slow: false,
        };
        self.held.remove(key);
        self.running.insert(key.clone(), running);
    }

    /// A key is not started, since too many like it are under way and have been slow.
    pub(super) fn hold(&mut self, key: &Key) {
        self.held.insert(key.clone());
    }

    /// Those that were not started and may be now: nothing like them is slow any more.
    pub(super) fn released(&mut self) -> Vec<Key> {
        std::mem::take(&mut self.released)
    }

    /// It has ended; with `success`, its scopes are not slow any more, if this key was not. Returns the list that it
    /// began with.
    pub(super) fn end(&mut self, key: &Key, success: bool, now: Instant) -> ListEpoch {
        self.mark_slow(now);
        let ended = self.running.remove(key);
        let was_slow = ended.as_ref().is_none_or(|running| running.slow);
        if success && !was_slow && !self.slow.is_empty() {
            for scope in Scope::all_of(key) {
                if self.slow.remove(&scope).is_some() {
                    let all = std::mem::take(&mut self.held).into_iter();
                    let (released, held) = all.partition::<BTreeSet<Key>, _>(|held| scope.has(held));
                    self.held = held;
                    self.released.extend(released);
                }
            }
        }
        ended.map_or(0, |running| running.list)
    }

    /// Finds out what is slow.
    pub(super) fn mark_slow(&mut self, now: Instant) {
        for running in self.running.values_mut() {
            running.slow |= now.duration_since(running.since) >= SLOW;
        }
        let mut found = BTreeMap::<Scope, BTreeSet<Scope>>::new();
        for (key, _) in self.running.iter().filter(|(_, running)| running.slow) {
            let lot = Scope::Lot(key.type_id, Rc::clone(key.name.within()));
            for scope in Scope::all_of(key) {
                found.entry(scope).or_default().insert(lot.clone());
            }
        }
        let is_slow = |scope: &Scope, lots: usize| matches!(scope, Scope::Lot(..)) || lots >= MANY_LOTS;
        let found = found.into_iter().filter(|(scope, lots)| is_slow(scope, lots.len()));
        self.slow.extend(found.map(|(scope, _)| (scope, now)));
        self.slow.retain(|_, at| now.duration_since(*at) < MEMORY);
        if self.slow.is_empty() {
            self.held.clear();
        }
    }

    /// When [`Workers::mark_slow`] finds the next slow key.
    pub(super) fn due(&self) -> Option<Instant> {
        let quick = self.running.values().filter(|running| !running.slow);
        quick.map(|running| running.since + SLOW).min()
    }

    /// True if a key may be started.
    pub(super) fn have_room(&self) -> bool {
        let slow = self.running.values().filter(|running| running.slow).count();
        self.running.len() - slow.min(self.most) < self.most
    }

    /// True if this key may be started: not if too many like it are under way and have been slow.
    pub(super) fn may_begin(&self, key: &Key) -> bool {
        let is_full = |scope: &Scope| {
            let like_it = self.running.keys().filter(|running| scope.has(running));
            self.slow.contains_key(scope) && like_it.count() >= scope.most()
        };
        self.slow.is_empty() || !Scope::all_of(key).any(|scope| is_full(&scope))
    }

    /// Which keys to take first: those of the lowest rank, which is the number of scopes that a key is in and that have
    /// half of the workers.
    pub(super) fn rank(&self) -> impl Fn(&Key) -> usize + use<> {
        let mut shares = BTreeMap::<Scope, usize>::new();
        for scope in self.running.keys().flat_map(Scope::all_of) {
            *shares.entry(scope).or_default() += 1;
        }
        let half = self.most.div_ceil(2);
        shares.retain(|scope, share| *share >= half && !matches!(scope, Scope::Lot(..)));
        let crowded: Vec<Scope> = shares.into_keys().collect();
        move |key| crowded.iter().filter(|scope| scope.has(key)).count()
    }

    /// True if something is under way.
    pub(super) fn are_busy(&self) -> bool {
        !self.running.is_empty()
    }

    /// True if something is under way that others wait for, and not slow.
    pub(super) fn have_first(&self) -> bool {
        self.running.values().any(|running| running.first && !running.slow)
    }

    /// Bytes of the bodies under way that new ones have to wait for. Those of slow keys do not count, up to as much
    /// again.
    pub(super) fn payload(&self) -> usize {
        let of = |slow| self.running.values().filter(move |running| running.slow == slow);
        let sum = |slow| of(slow).map(|running| running.payload).sum::<usize>();
        sum(false) + sum(true).saturating_sub(WORK_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use kube_lite::ObjectName;

    use super::super::Task;
    use super::*;

    fn key(type_id: TypeId, namespace: &str, name: usize) -> Key {
        let name = ObjectName::new(namespace, &name.to_string());
        Key::new(type_id, Task::Object, name)
    }

    /// Begins with as many of these keys as may be; gives their number.
    fn begin(workers: &mut Workers, keys: impl IntoIterator<Item = Key>) -> usize {
        let mut begun = 0;
        for key in keys {
            if workers.have_room() && workers.may_begin(&key) {
                workers.begin(&key, false, 1, 0, Instant::now());
                begun += 1;
            }
        }
        begun
    }

    async fn pass(workers: &mut Workers, time: Duration) {
        tokio::time::advance(time).await;
        workers.mark_slow(Instant::now());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_slow_gives_its_workers_to_others_and_is_then_begun_a_few_at_a_time() {
        let lot = |names: std::ops::Range<usize>| names.map(|name| key(1, "shop", name));
        let (start, mut workers) = (Instant::now(), Workers::new(16));
        assert_eq!(begin(&mut workers, lot(0..40)), 16, "nothing is known of them");
        pass(&mut workers, SLOW.mul_f64(0.9)).await;
        assert_eq!(begin(&mut workers, (0..40).map(|name| key(2, "shop", name))), 0);
        assert_eq!(workers.due(), Some(start + SLOW));
        pass(&mut workers, SLOW.mul_f64(0.1)).await;
        assert_eq!(begin(&mut workers, lot(16..40)), 0);
        assert_eq!(
            begin(&mut workers, (0..40).map(|name| key(2, "shop", name))),
            16,
            "another type"
        );
        assert_eq!(begin(&mut workers, (0..40).map(|name| key(2, "shop", name))), 0, "busy");
        for name in 0..16 {
            workers.end(&key(2, "shop", name), true, Instant::now());
            workers.end(&key(1, "shop", name), false, Instant::now());
        }
        assert_eq!(begin(&mut workers, lot(0..40)), OF_ONE_LOT);
        assert_eq!(
            begin(&mut workers, (0..40).map(|name| key(1, "mall", name))),
            14,
            "elsewhere"
        );
        // One is done in time: those that were not started need not wait any longer, and no others.
        for name in 2..40 {
            workers.hold(&key(1, "shop", name));
        }
        workers.hold(&key(2, "shop", 0));
        assert_eq!(workers.released(), []);
        workers.end(&key(1, "shop", 0), true, Instant::now());
        let released: BTreeSet<Key> = workers.released().into_iter().collect();
        assert_eq!(released, lot(2..40).collect());
        for name in 0..14 {
            workers.end(&key(1, "mall", name), true, Instant::now());
        }
        assert_eq!(begin(&mut workers, lot(2..40)), 15);
    }

    #[tokio::test(start_paused = true)]
    async fn a_type_that_is_slow_everywhere_and_a_namespace_full_of_slow_types_keep_few_workers() {
        let cases: [fn(usize) -> Key; 2] = [
            |n| key(1, &format!("n{n}"), 0),
            |n| key(n.try_into().unwrap(), "shop", 0),
        ];
        for alike in cases {
            let mut workers = Workers::new(16);
            assert_eq!(begin(&mut workers, (0..16).map(alike)), 16);
            pass(&mut workers, SLOW).await;
            assert_eq!(begin(&mut workers, (16..40).map(alike)), 0);
            for n in 0..16 {
                workers.end(&alike(n), false, Instant::now());
            }
            assert_eq!(begin(&mut workers, (0..40).map(alike)), OF_MANY_LOTS);
            pass(&mut workers, MEMORY).await;
            for n in 0..40 {
                workers.end(&alike(n), false, Instant::now());
            }
            pass(&mut workers, MEMORY).await;
            assert_eq!(begin(&mut workers, (0..40).map(alike)), 16, "long ago");
        }
    }

    #[test]
    fn who_has_half_of_the_workers_is_passed_by_while_others_have_something_to_do() {
        let mut workers = Workers::new(4);
        let begun = [key(1, "shop", 0), key(1, "shop", 1)];
        let others = [
            key(1, "shop", 2),
            key(1, "mall", 2),
            key(2, "shop", 2),
            key(2, "mall", 2),
            key(2, "", 2),
        ];
        assert_eq!(others.each_ref().map(workers.rank()), [0; 5]);
        for key in &begun {
            workers.begin(key, false, 1, 0, Instant::now());
        }
        assert_eq!(others.each_ref().map(workers.rank()), [2, 1, 1, 0, 0]);
        workers.end(&begun[0], true, Instant::now());
        assert_eq!(others.each_ref().map(workers.rank()), [0; 5]);
    }

    #[tokio::test(start_paused = true)]
    async fn slow_ones_beyond_the_number_of_workers_keep_them_busy() {
        let mut workers = Workers::new(4);
        let other = |n: usize| key(n.try_into().unwrap(), &format!("n{n}"), 0);
        assert_eq!(begin(&mut workers, (0..40).map(other)), 4);
        pass(&mut workers, SLOW).await;
        assert_eq!(begin(&mut workers, (10..40).map(other)), 4);
        pass(&mut workers, SLOW).await;
        assert_eq!(begin(&mut workers, (20..40).map(other)), 0);
        assert!(!workers.have_room() && workers.due().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_namespace_holds_up_neither_what_comes_after_it_nor_what_is_large() {
        let mut workers = Workers::new(4);
        workers.begin(&key(1, "", 0), true, WORK_BYTES, 0, Instant::now());
        assert!(workers.have_first());
        assert_eq!(workers.payload(), WORK_BYTES);
        pass(&mut workers, SLOW).await;
        assert!(!workers.have_first() && workers.are_busy());
        assert_eq!(workers.payload(), 0);
        workers.begin(&key(2, "", 0), false, WORK_BYTES, 0, Instant::now());
        pass(&mut workers, SLOW).await;
        assert_eq!(workers.payload(), WORK_BYTES, "more than that is not forgotten");
    }
}
