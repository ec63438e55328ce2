//! Few large objects have their passes at once, and those that are too large for the memory of the agent have none.
//!
//! What an object takes once it is read has little to do with the bytes of its text: a map of one field has 8 of these and
//! takes 700, and a pass has some copies of all. Who writes objects in a workspace chooses that: so only few large objects
//! at a time count for how much memory the agent needs, one of each workspace, and no small one waits for that. A pass that
//! has the turn for too long ends: others wait for it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{Mutex, Notify, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;

use crate::trouble::Stop;

/// What an object takes in memory from which on it is large.
const LARGE: usize = 256 << 10;
/// The largest one, where nothing limits the memory of the agent.
const MOST: usize = 64 << 20;
/// How many have their passes at once.
const AT_ONCE: usize = 2;
/// Which part of the memory one object may take: a pass has up to six copies of it, and all else needs half.
const PART: usize = 12 * AT_ONCE;
/// How long a pass may have the turn.
const LONGEST: Duration = Duration::from_secs(60);
/// What to do about one that would take more.
const ADVICE: &str = "make it smaller, or give the agent more memory";
/// A node of a map, which has room for 11 fields.
const NODE: usize = 640;
/// An item or a field, with a share of what grows ahead.
const ITEM: usize = 64;

/// What to do about one whose pass takes too long.
const FEWER: &str = "make it smaller, or let fewer objects belong to it; it is tried again";

/// What all passes have in common.
pub(super) struct Limits {
    turns: Arc<Semaphore>,
    /// The turn of each workspace that has one or waits for it.
    workspaces: RefCell<BTreeMap<Box<str>, Weak<Mutex<()>>>>,
    /// What the largest object may take.
    most: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self::of(limit_of_memory().map_or(MOST, |limit| (limit / PART).min(MOST)))
    }
}

impl Limits {
    fn of(most: usize) -> Self {
        Self {
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            workspaces: RefCell::default(),
            most,
        }
    }

    /// The turn of a workspace.
    fn of_workspace(&self, name: &str) -> Arc<Mutex<()>> {
        let mut all = self.workspaces.borrow_mut();
        if let Some(known) = all.get(name).and_then(Weak::upgrade) {
            return known;
        }
        all.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::default();
        all.insert(name.into(), Arc::downgrade(&turn));
        turn
    }
}

/// The turn of a workspace, and one of all.
type Turn = (OwnedMutexGuard<()>, Option<OwnedSemaphorePermit>);

/// The limit of the container, or of the systemd unit.
fn limit_of_memory() -> Option<usize> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = limits_of(&own).into_iter();
    let read = limits.filter_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok());
    read.min()
}

/// Where the limits are of a process whose cgroups are these: of version 2, or of the first one. A container sees its own as the
/// root, and a process that is in none sees its path.
fn limits_of(cgroups: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for line in cgroups.lines() {
        let (at, file) = match line.splitn(3, ':').collect::<Vec<_>>()[..] {
            ["0", "", path] => (["", path], "memory.max"),
            [_, "memory", path] => (["/memory", path], "memory.limit_in_bytes"),
            _ => continue,
        };
        let [root, path] = at;
        for path in ["", path.trim_end_matches('/')] {
            paths.push(format!("/sys/fs/cgroup{root}{path}/{file}"));
        }
    }
    paths
}

/// The turn of large objects, which a pass takes when it meets one, and has until it ends.
pub(super) struct Large<'a> {
    limits: &'a Limits,
    workspace: &'a str,
    /// Two requests of a pass may be under way at once.
    taken: Mutex<Option<Turn>>,
    begins: Notify,
}

impl<'a> Large<'a> {
    /// For a pass over an object of a workspace.
    pub(super) fn new(limits: &'a Limits, workspace: &'a str) -> Self {
        Self {
            limits,
            workspace,
            taken: Mutex::default(),
            begins: Notify::new(),
        }
    }

    /// Why the pass ends, once it has had the turn for too long.
    pub(super) async fn has_had_its_time(&self) -> Stop {
        self.begins.notified().await;
        sleep(LONGEST).await;
        let words = format!("it is large, and takes longer than {} s", LONGEST.as_secs());
        Stop::because("syncing the object", words, FEWER)
    }

    /// An object with this text is to be read: waits for the turn of large ones if it is one. Stops what is being done if
    /// it is too large.
    pub(super) async fn reads(&self, doing: &'static str, object: &[u8]) -> Result<(), Stop> {
        let weight = weight(object);
        if weight > self.limits.most {
            let words = format!(
                "it has so many fields and items that it would take {} MiB of memory, and for one object the agent has {} MiB",
                (weight >> 20) + 1,
                self.limits.most >> 20
            );
            return Err(Stop::because(doing, words, ADVICE));
        }
        if weight >= LARGE {
            let mut taken = self.taken.lock().await;
            if taken.is_none() {
                let of_workspace = self.limits.of_workspace(self.workspace).lock_owned().await;
                let turn = Arc::clone(&self.limits.turns).acquire_owned().await;
                *taken = Some((of_workspace, turn.ok()));
                self.begins.notify_one();
            }
        }
        Ok(())
    }
}

/// About how many bytes an object takes once it is read.
fn weight(object: &[u8]) -> usize {
    let (mut weight, mut is_text, mut is_escaped) = (object.len(), false, false);
    let mut before = b' ';
    for &byte in object {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            _ if is_text => {}
            // An empty one has no node.
            b':' if before == b'{' => weight += NODE + ITEM,
            b',' => weight += ITEM,
            _ => {}
        }
        if !is_text && matches!(byte, b'{' | b',' | b'[') {
            before = byte;
        }
    }
    weight
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn limits() -> Limits {
        Limits::of(4 << 20)
    }

    fn list(item: &Value, count: usize) -> Vec<u8> {
        json!({"x": vec![item; count]}).to_string().into_bytes()
    }

    /// True if this pass would have to wait for its turn with a large object.
    async fn waits(of: &Large<'_>, object: &[u8]) -> bool {
        tokio::select! {
            biased;
            read = of.reads("reading", object) => read.is_err(),
            () = tokio::task::yield_now() => true
        }
    }

    #[tokio::test]
    async fn one_large_object_of_a_workspace_waits_for_another_and_no_small_one_does() {
        let limits = limits();
        let large = list(&json!({"a": 0}), 1000);
        let [one, other, small] = [(); 3].map(|()| Large::new(&limits, "c1"));
        let [of_two, of_three] = ["c2", "c3"].map(|workspace| Large::new(&limits, workspace));
        one.reads("reading", &large).await.unwrap();
        one.reads("reading", &large).await.unwrap();
        small.reads("reading", &list(&json!({"a": 0}), 100)).await.unwrap();
        assert!(small.taken.lock().await.is_none());
        assert!(waits(&other, &large).await, "it has the turn of another one");
        assert!(!waits(&of_two, &large).await, "a workspace takes only its own turn");
        assert!(waits(&of_three, &large).await, "two are at work");
        drop(one);
        // Two requests of one pass have its turn together.
        let (first, second) = tokio::join!(other.reads("reading", &large), other.reads("reading", &large));
        assert!(first.is_ok() && second.is_ok());
    }

    #[tokio::test]
    async fn what_is_too_large_for_the_memory_of_the_agent_is_refused_with_both_figures() {
        let limits = limits();
        let refused = Large::new(&limits, "c1")
            .reads("reading", &list(&json!({"a": 0}), 9000))
            .await;
        let Err(Stop::Fails(trouble)) = refused else {
            panic!("{refused:?}")
        };
        let words = &trouble.words;
        assert!(words.contains("take 7 MiB") && words.contains("has 4 MiB"), "{words}");
        for fine in [json!("x".repeat(3 << 20)), json!("{:,".repeat(500_000))] {
            Large::new(&limits, "c1")
                .reads("reading", &list(&fine, 1))
                .await
                .unwrap();
        }
    }

    #[test]
    fn the_limit_is_that_of_its_own_cgroup() {
        for (cgroups, expected) in [
            ("0::/\n", &["/memory.max", "/memory.max"][..]),
            (
                "0::/system.slice/agent.service\n",
                &["/memory.max", "/system.slice/agent.service/memory.max"],
            ),
            (
                "5:memory:/a\n4:cpu,cpuacct:/\n",
                &["/memory/memory.limit_in_bytes", "/memory/a/memory.limit_in_bytes"],
            ),
            ("", &[]),
        ] {
            let expected: Vec<_> = expected.iter().map(|path| format!("/sys/fs/cgroup{path}")).collect();
            assert_eq!(limits_of(cgroups), expected, "{cgroups}");
        }
    }

    #[test]
    fn what_counts_is_what_an_object_takes_and_not_its_text() {
        for (item, each) in [
            (json!({"a": 0}), NODE + 2 * ITEM),
            (json!({}), ITEM),
            (json!(0), ITEM),
            (json!([]), ITEM),
            (json!({"a": {"b": 1, "c": 2}}), 2 * NODE + 4 * ITEM),
            (json!("{\"a\":0,\\"), ITEM),
        ] {
            let text = list(&item, 1000);
            let found = weight(&text) - text.len();
            let expected = NODE + 1000 * each;
            assert!(found.abs_diff(expected) <= ITEM, "{item} {found} {expected}");
        }
    }
}
