//! One initializer: the targets that it stands for, the workspaces that wait for it, and whose turn it is.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use driver::queue::{Class, Done, Queue};
use driver::share;
use tokio::time::Instant;

use super::finished::{Finished, Past};
use super::waits::{RETRIES, WAITS};
use crate::fill::SoFar;
use crate::kinds::InitTarget;
use crate::sides::{Key, Side};

/// How many workspaces of one type are worked on at once.
const AT_ONCE: usize = 4;
/// One in so many looks for what a workspace waits for does all of it again: what is missed of changes, as while templates
/// cannot be watched, is seen after a minute.
const WHOLE: u32 = 12;

/// A workspace that is known.
#[derive(Debug)]
struct Workspace {
    /// When it was seen first, since it last began to wait.
    since: Instant,
    /// As it was seen last.
    shown: Shown,
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
    /// The edition of which it has got everything, and how often its initializer was put back since.
    complete: Option<u64>,
    returns: u32,
    /// How far it has come while it waits for the rest, and the edition of that.
    so_far: (u64, Rc<SoFar>),
}

/// A workspace as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) version: u64,
    pub(super) uid: Rc<str>,
    /// At which place of its list the initializer stands.
    pub(super) place: usize,
}

/// What was known of a workspace when its turn began.
#[derive(Clone, Copy, Debug)]
struct Taken {
    /// The edition of what it gets.
    edition: u64,
    /// The version at which it was shown.
    version: u64,
    /// Its initializer was put back.
    is_again: bool,
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
    /// It was let go before, and somebody has put the initializer back.
    pub(super) is_again: bool,
}

/// See the module's doc.
pub(super) struct Group {
    /// In the order of their names.
    pub(super) targets: Rc<[Rc<InitTarget>]>,
    /// Grows with each change of what is wanted.
    edition: u64,
    queue: Queue<Key>,
    /// Those that are worked on.
    taken: BTreeMap<Key, Taken>,
    /// By URL.
    shards: BTreeMap<Rc<str>, Shard>,
    /// Those that were let go.
    finished: Finished,
}

impl Group {
    pub(super) fn new() -> Self {
        Self {
            targets: Rc::new([]),
            edition: 0,
            queue: Queue::default(),
            taken: BTreeMap::new(),
            shards: BTreeMap::new(),
            finished: Finished::default(),
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

    /// A workspace is shown, and waits for the initializer.
    pub(super) fn is_there(&mut self, key: Key, shown: Shown, now: Instant) {
        let past = self.finished.recall(&key.cluster, &shown.uid, shown.version).cloned();
        let Some(shard) = self.shard(key.shard) else { return };
        let begins = |it: &Workspace| it.is_gone || it.released.is_some_and(|released| shown.version > released);
        if let Some(known) = shard.workspaces.get_mut(&key.cluster).filter(|it| !begins(it)) {
            (known.is_listed, known.shown) = (true, shown);
            return;
        }
        let is_same = |old: &Workspace| {
            let is_known = !shown.uid.is_empty() && *old.shown.uid == *shown.uid;
            is_known && shown.version > old.shown.version
        };
        // It was put back before the answer is there that it is off: the turn still has its record.
        let old = shard.workspaces.get(&key.cluster).filter(|old| is_same(old));
        let created = old.map_or(0, |old| old.created);
        let past = past.or_else(|| old?.past(None));
        let mut workspace = Workspace::new(shown, past, now);
        workspace.created = created;
        let wait = workspace.wait_of_return();
        shard.workspaces.insert(Rc::clone(&key.cluster), workspace);
        match wait {
            Some(wait) => self.queue.add_after(key, Class::Normal, wait, now),
            None => self.queue.add(key, Class::Normal, None),
        }
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
            let (taken, sides) = (&self.taken, self.shards.values().map(|shard| shard.side));
            let may = |side| {
                let running = |side: &Side| taken.keys().filter(|key| key.shard == *side).count();
                share::may_begin(&side, sides.clone(), AT_ONCE, AT_ONCE - taken.len(), running)
            };
            let (key, _) = self.queue.take_at(now, Class::Last, |_| 0, may)?;
            let workspace = self.workspace(&key).filter(|workspace| workspace.waits());
            if let Some(workspace) = workspace {
                let (version, is_again) = (workspace.shown.version, workspace.returns > 0);
                let edition = self.edition;
                let taken = Taken {
                    edition,
                    version,
                    is_again,
                };
                self.taken.insert(key.clone(), taken);
                return Some(key);
            }
            self.queue.done(&key, Done::Finished, now, 0.0);
        }
    }

    /// The place of the initializer in a workspace whose turn it is and that has got all that is wanted: nothing else is left
    /// to do there.
    pub(super) fn place_to_release(&mut self, key: &Key) -> Option<usize> {
        let edition = self.edition;
        let workspace = self.workspace(key)?;
        (workspace.complete == Some(edition)).then_some(workspace.shown.place)
    }

    /// How far a workspace has come whose turn it is, and whether all of it is to be done again.
    pub(super) fn so_far(&mut self, key: &Key) -> (Rc<SoFar>, bool) {
        let edition = self.edition;
        let workspace = self.workspace(key).filter(|workspace| workspace.so_far.0 == edition);
        workspace.map_or_else(Default::default, |workspace| {
            let is_whole = workspace.waits.is_multiple_of(WHOLE);
            (Rc::clone(&workspace.so_far.1), is_whole)
        })
    }

    /// A workspace has got all of what was wanted when its turn began. True if that is still what is wanted.
    pub(super) fn is_complete_now(&mut self, key: &Key) -> bool {
        let edition = self.taken.get(key).map(|taken| taken.edition);
        let is_current = edition == Some(self.edition);
        if let Some(workspace) = self.workspace(key) {
            workspace.complete = edition;
        }
        is_current
    }

    /// A workspace has come so far, and waits for the rest.
    pub(super) fn has_come(&mut self, key: &Key, so_far: Rc<SoFar>) {
        let Some(&Taken { edition, .. }) = self.taken.get(key) else {
            return;
        };
        if let Some(workspace) = self.workspace(key) {
            workspace.so_far = (edition, so_far);
        }
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
        let taken = self.taken.remove(key)?;
        let is_current = taken.edition == self.edition;
        let workspace = self.workspace(key)?;
        let ended = Ended {
            lasted: now - workspace.since,
            path: Rc::clone(&workspace.path),
            created: workspace.created,
            is_there: !workspace.is_gone,
            is_again: taken.is_again,
        };
        let past = match turn {
            Turn::Released(at) => workspace.past(at),
            _ => None,
        };
        let done = match turn {
            // It is not known whether this was shown before or after it was found to be off.
            Turn::Released(None) if workspace.shown.version > taken.version && !workspace.is_gone => Done::Again,
            _ => workspace.done(turn, is_current, jitter),
        };
        if let Some(past) = past {
            self.finished.remember(&key.cluster, past);
        }
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
    /// One that begins to wait, perhaps once more.
    fn new(shown: Shown, past: Option<Past>, since: Instant) -> Self {
        Self {
            since,
            shown,
            released: None,
            is_listed: true,
            is_gone: false,
            waits: 0,
            failures: 0,
            path: past.as_ref().map(|past| Rc::clone(&past.path)).unwrap_or_default(),
            created: 0,
            complete: past.as_ref().map(|past| past.edition),
            returns: past.map_or(0, |past| past.returns.saturating_add(1)),
            so_far: (0, Rc::default()),
        }
    }

    /// What to remember of it once its initializer is off, at this version if that is known.
    fn past(&self, at: Option<u64>) -> Option<Past> {
        Some(Past {
            uid: Rc::clone(&self.shown.uid),
            edition: self.complete?,
            version: at.unwrap_or(self.shown.version),
            path: Rc::clone(&self.path),
            returns: self.returns,
        })
    }

    /// When its next turn is, after this one.
    fn done(&mut self, turn: Turn, is_current: bool, jitter: f64) -> Done<Side> {
        match turn {
            _ if self.is_gone => Done::Finished,
            // Somebody has put the initializer back since.
            Turn::Released(Some(at)) if self.shown.version > at => {
                self.returns = self.returns.saturating_add(1);
                self.wait_of_return().map_or(Done::Again, Done::NotYet)
            }
            Turn::Released(at) => {
                self.released = Some(at.unwrap_or(self.shown.version));
                Done::Finished
            }
            Turn::Again => Done::Again,
            Turn::Unreachable(side) => Done::Unreachable(side),
            // What it waits for, or has failed with, may be different by now.
            Turn::Waits | Turn::Fails if !is_current => Done::Again,
            Turn::Waits => {
                self.failures = 0;
                self.waits = self.waits.saturating_add(1);
                Done::NotYet(WAITS.after(self.waits))
            }
            Turn::Fails => {
                self.failures = self.failures.saturating_add(1);
                // Others may have taken away what was there.
                self.so_far = (0, Rc::default());
                Done::NotYet(RETRIES.after(self.failures).mul_f64(0.5 + jitter / 2.0))
            }
        }
    }

    /// How long to wait with an initializer that was put back: nothing the first time, and more with each further one.
    fn wait_of_return(&self) -> Option<Duration> {
        (self.returns > 1).then(|| RETRIES.after(self.returns))
    }

    /// True if it waits for the initializer.
    fn waits(&self) -> bool {
        self.released.is_none() && !self.is_gone
    }
}

#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;
