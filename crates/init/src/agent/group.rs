//! One initializer: the targets that it stands for, the workspaces that wait for it, and whose turn it is.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use driver::queue::{Class, Done, Queue};
use tokio::time::Instant;

use crate::kinds::InitTarget;
use crate::sides::{Key, Side};

/// How many workspaces of one type are worked on at once.
const AT_ONCE: usize = 4;
/// The waits before what is missing is searched for once more. Mostly it is a kind that was defined just now, which takes kcp
/// some seconds, and somebody waits for the workspace: they grow by a half, so that the last one adds a third to the time.
const WAITS: Waits = Waits {
    first: Duration::from_millis(500),
    growth: 1.5,
    longest: Duration::from_secs(5),
};
/// The waits after failures.
const RETRIES: Waits = Waits {
    first: Duration::from_millis(5),
    growth: 2.0,
    longest: Duration::from_secs(60),
};

/// Waits that grow.
struct Waits {
    first: Duration,
    growth: f64,
    longest: Duration,
}

impl Waits {
    /// The wait after so many in a row.
    fn after(&self, times: u32) -> Duration {
        // No more than that is needed to reach the longest.
        let growth = self.growth.powf(f64::from(times.saturating_sub(1).min(20)));
        self.first.mul_f64(growth).min(self.longest)
    }
}

/// A workspace that is known.
#[derive(Debug)]
struct Workspace {
    /// When it was seen first, since it last began to wait.
    since: Instant,
    /// The version at which it was seen last.
    version: u64,
    /// The initializer is off; what was seen up to this version is from before.
    released: Option<u64>,
    /// The list that is being read has named it.
    is_listed: bool,
    /// It is shown no longer, and its turn is not over.
    is_gone: bool,
    /// How often in a row it had to wait, and has failed.
    waits: u32,
    failures: u32,
    /// Its path; empty until it was read.
    path: Rc<str>,
    /// How many objects were created in it.
    created: usize,
}

/// A virtual workspace that shows some of them.
struct Shard {
    side: Side,
    workspaces: BTreeMap<Rc<str>, Workspace>,
}

/// What has become of a workspace's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The initializer is off, at this version, if it is known.
    Released(Option<u64>),
    /// Something is not there yet.
    Waits,
    /// Something has failed.
    Fails,
    /// It has to be read again.
    Again,
    /// A side did not answer.
    Unreachable(Side),
}

/// What there is to say of a workspace whose turn is over.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ended {
    /// How long it has been waiting.
    pub(super) lasted: Duration,
    /// Its path; empty if it was not read.
    pub(super) path: Rc<str>,
    /// How many objects were created in it.
    pub(super) created: usize,
    /// It is still shown.
    pub(super) is_there: bool,
}

/// See the module's doc.
pub(super) struct Group {
    /// In the order of their names.
    pub(super) targets: Rc<[Rc<InitTarget>]>,
    /// Grows with each change of what is wanted.
    edition: u64,
    queue: Queue<Key>,
    /// Those that are worked on, with the edition of what they get.
    taken: BTreeMap<Key, u64>,
    /// By URL.
    shards: BTreeMap<Rc<str>, Shard>,
}

impl Group {
    pub(super) fn new() -> Self {
        Self {
            targets: Rc::new([]),
            edition: 0,
            queue: Queue::default(),
            taken: BTreeMap::new(),
            shards: BTreeMap::new(),
        }
    }

    /// These are its targets from now on. True if something else is wanted by that.
    pub(super) fn is_for(&mut self, targets: Vec<Rc<InitTarget>>) -> bool {
        let is_news = *self.targets != *targets;
        if is_news {
            self.targets = targets.into();
            self.renews();
        }
        is_news
    }

    /// Something that decides what is created has changed: what waits is tried at once.
    pub(super) fn renews(&mut self) {
        self.edition += 1;
        for workspace in self.shards.values_mut().flat_map(|shard| shard.workspaces.values_mut()) {
            (workspace.waits, workspace.failures) = (0, 0);
        }
        self.queue.wake_where(|_| true);
    }

    /// The URLs under which workspaces are shown.
    pub(super) fn urls(&self) -> impl Iterator<Item = &Rc<str>> {
        self.shards.keys()
    }

    /// A shard shows workspaces at this URL.
    pub(super) fn open(&mut self, url: Rc<str>, side: Side) {
        let shard = Shard {
            side,
            workspaces: BTreeMap::new(),
        };
        self.shards.insert(url, shard);
    }

    /// The shard at this URL is there no longer, nor what is done there. Gives its side and its workspaces.
    pub(super) fn close(&mut self, url: &str, now: Instant) -> Option<(Side, Vec<Key>)> {
        let shard = self.shards.remove(url)?;
        let side = shard.side;
        let gone: Vec<Key> = self.taken.keys().filter(|key| key.shard == side).cloned().collect();
        for key in gone {
            self.taken.remove(&key);
            self.queue.done(&key, Done::Finished, now, 0.0);
        }
        self.queue.remove_where(|key| key.shard == side);
        let key = |cluster| Key { shard: side, cluster };
        Some((side, shard.workspaces.into_keys().map(key).collect()))
    }

    fn shard(&mut self, side: Side) -> Option<&mut Shard> {
        self.shards.values_mut().find(|shard| shard.side == side)
    }

    fn workspace(&mut self, key: &Key) -> Option<&mut Workspace> {
        self.shard(key.shard)?.workspaces.get_mut(&key.cluster)
    }

    /// True if it has this shard.
    pub(super) fn has(&self, side: Side) -> bool {
        self.shards.values().any(|shard| shard.side == side)
    }

    /// A list of a shard begins.
    pub(super) fn begins(&mut self, side: Side) {
        let shard = self.shard(side);
        for workspace in shard.into_iter().flat_map(|shard| shard.workspaces.values_mut()) {
            workspace.is_listed = false;
        }
    }

    /// A workspace is shown, at this version.
    pub(super) fn is_there(&mut self, key: Key, version: u64, now: Instant) {
        let Some(shard) = self.shard(key.shard) else { return };
        let begins = |it: &Workspace| it.is_gone || it.released.is_some_and(|released| version > released);
        if let Some(known) = shard.workspaces.get_mut(&key.cluster).filter(|it| !begins(it)) {
            (known.is_listed, known.version) = (true, version);
            return;
        }
        shard
            .workspaces
            .insert(Rc::clone(&key.cluster), Workspace::new(version, now));
        self.queue.add(key, Class::Normal, None);
    }

    /// A workspace is shown no longer.
    pub(super) fn is_gone(&mut self, key: &Key) {
        let is_taken = self.taken.contains_key(key);
        match self.workspace(key) {
            // What its turn comes to is still to be said of it.
            Some(workspace) if is_taken => workspace.is_gone = true,
            _ => self.forget(key),
        }
    }

    fn forget(&mut self, key: &Key) {
        if let Some(shard) = self.shard(key.shard) {
            shard.workspaces.remove(&key.cluster);
        }
        self.queue.remove_where(|other| other == key);
    }

    /// The list of a shard is complete: gives the workspaces that it does not name, which are gone.
    pub(super) fn is_complete(&mut self, side: Side) -> Vec<Key> {
        let Some(shard) = self.shard(side) else {
            return Vec::new();
        };
        let unlisted = shard.workspaces.iter().filter(|(_, workspace)| !workspace.is_listed);
        let key = |cluster: &Rc<str>| Key {
            shard: side,
            cluster: Rc::clone(cluster),
        };
        let gone: Vec<Key> = unlisted.map(|(cluster, _)| key(cluster)).collect();
        for key in &gone {
            self.is_gone(key);
        }
        gone
    }

    /// The next workspace to work on, if it is somebody's turn.
    pub(super) fn next(&mut self, now: Instant) -> Option<Key> {
        if self.taken.len() >= AT_ONCE {
            return None;
        }
        let shards = &self.shards;
        while self
            .queue
            .refill(now, |side, from| waiting_of(shards, side, from.as_ref()))
        {}
        loop {
            let (key, _) = self.queue.take(now, Class::Last, |_| 0)?;
            if self.workspace(&key).is_some_and(|workspace| workspace.waits()) {
                self.taken.insert(key.clone(), self.edition);
                return Some(key);
            }
            self.queue.done(&key, Done::Finished, now, 0.0);
        }
    }

    /// True if what a workspace got is what is wanted now.
    pub(super) fn is_current(&self, key: &Key) -> bool {
        self.taken.get(key) == Some(&self.edition)
    }

    /// A workspace was read, and this was created in it.
    pub(super) fn gets(&mut self, key: &Key, path: String, created: usize) {
        if let Some(workspace) = self.workspace(key) {
            workspace.path = path.into();
            workspace.created += created;
        }
    }

    /// A workspace's turn is over. Nothing is to be said of one that is not worked on.
    pub(super) fn ends(&mut self, key: &Key, turn: Turn, now: Instant, jitter: f64) -> Option<Ended> {
        let edition = self.taken.remove(key)?;
        let is_current = edition == self.edition;
        let workspace = self.workspace(key)?;
        let ended = Ended {
            lasted: now - workspace.since,
            path: Rc::clone(&workspace.path),
            created: workspace.created,
            is_there: !workspace.is_gone,
        };
        let done = match turn {
            _ if workspace.is_gone => Done::Finished,
            // Somebody has put the initializer back since.
            Turn::Released(Some(at)) if workspace.version > at => Done::Again,
            Turn::Released(at) => {
                workspace.released = Some(at.unwrap_or(workspace.version));
                Done::Finished
            }
            Turn::Again => Done::Again,
            Turn::Unreachable(side) => Done::Unreachable(side),
            // What it waits for, or has failed with, may be different by now.
            Turn::Waits | Turn::Fails if !is_current => Done::Again,
            Turn::Waits => {
                workspace.failures = 0;
                workspace.waits = workspace.waits.saturating_add(1);
                Done::NotYet(WAITS.after(workspace.waits))
            }
            Turn::Fails => {
                workspace.failures = workspace.failures.saturating_add(1);
                Done::NotYet(RETRIES.after(workspace.failures).mul_f64(0.5 + jitter / 2.0))
            }
        };
        self.queue.done(key, done, now, jitter);
        if !ended.is_there {
            self.forget(key);
        }
        Some(ended)
    }

    /// These sides answer.
    pub(super) fn answer(&mut self, sides: impl Iterator<Item = Side>, now: Instant, jitter: f64) {
        for side in sides {
            if self.queue.is_down(side) {
                self.queue.side_is_back(side, now, jitter);
            }
        }
    }

    /// When it may be somebody's turn, if nothing happens before.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.queue.next_due().filter(|_| self.taken.len() < AT_ONCE)
    }

    /// How many workspaces wait.
    pub(super) fn waiting(&self) -> usize {
        let all = self.shards.values().flat_map(|shard| shard.workspaces.values());
        all.filter(|workspace| workspace.waits()).count()
    }
}

/// The workspaces of a shard that wait, from a key on.
fn waiting_of(shards: &BTreeMap<Rc<str>, Shard>, side: Side, from: Option<&Key>) -> Vec<(Key, Class)> {
    let shard = shards.values().find(|shard| shard.side == side);
    let all = shard.into_iter().flat_map(|shard| &shard.workspaces);
    let waiting = all.filter(|(_, workspace)| workspace.waits());
    let keys = waiting.map(|(cluster, _)| Key {
        shard: side,
        cluster: Rc::clone(cluster),
    });
    let keys = keys.filter(|key| from.is_none_or(|from| key >= from));
    keys.map(|key| (key, Class::Normal)).collect()
}

impl Workspace {
    fn new(version: u64, since: Instant) -> Self {
        Self {
            since,
            version,
            released: None,
            is_listed: true,
            is_gone: false,
            waits: 0,
            failures: 0,
            path: Rc::default(),
            created: 0,
        }
    }

    /// True if it waits for the initializer.
    fn waits(&self) -> bool {
        self.released.is_none() && !self.is_gone
    }
}

#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;
