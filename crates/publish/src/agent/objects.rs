//! The objects that are synced: what is known of each primary and of its copy. Names and versions, no object.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use kube_lite::ObjectName;
use tokio::time::Instant;

use super::AGAIN;
use super::known::{Copies, End, Known, Seen, Shown, Versions};
use super::watched::{Meant, Rule, is_meant};
use crate::sides::{Group, Key, Primary, Side};
use crate::turn::{Copied, Last, OwnUses, Turn};

/// For so long at most nobody looks again at what belongs to an object.
const LONGEST_AGAIN: Duration = Duration::from_secs(300);

/// See the module's doc.
#[derive(Default)]
pub(super) struct Objects {
    all: BTreeMap<(u32, ObjectName), Known>,
    /// How many primaries of each workspace had no turn yet; none where all had one.
    untried: BTreeMap<u32, usize>,
    /// What is to have a turn once all others of its workspace had one.
    held: BTreeMap<u32, BTreeSet<Primary>>,
    /// The lists that are complete: of the copies of a route, by the service cluster, and of its primaries, by their shard.
    complete: BTreeSet<(u32, Side)>,
}

impl Objects {
    /// How many primaries there are.
    pub(super) fn len(&self) -> usize {
        let shown = self.all.values().filter_map(|known| known.primary.as_ref());
        shown.filter(|shown| shown.end != End::Lost).count()
    }

    /// How many of a route have copies.
    pub(super) fn with_copies(&self, route: u32) -> usize {
        let of_route = self.all.iter().filter(|((other, _), _)| *other == route);
        let copied = of_route.filter(|(_, known)| known.primary.is_some() && known.copy.is_some());
        copied.count()
    }

    /// How many of them are not in sync.
    pub(super) fn pending(&self) -> usize {
        let all = self.all.values();
        all.filter(|known| known.primary.is_some() && known.is_due).count()
    }

    /// The workspaces that primaries are in.
    pub(super) fn workspaces(&self) -> BTreeSet<u32> {
        let shown = self.all.values().filter_map(|known| known.primary.as_ref());
        shown.map(|shown| shown.workspace).collect()
    }

    /// A primary is there. It is due.
    pub(super) fn is_there(
        &mut self,
        primary: &Primary,
        Seen {
            version,
            meant,
            is_ending,
        }: Seen,
    ) {
        let known = self.all.entry((primary.route, primary.name.clone())).or_default();
        if known.primary.is_none() {
            *self.untried.entry(primary.workspace).or_default() += 1;
        }
        let is_tried = known.primary.as_ref().is_some_and(|shown| shown.is_tried);
        known.is_free &= is_ending;
        known.primary = Some(Shown {
            shard: primary.shard(),
            workspace: primary.workspace,
            version,
            meant,
            end: if is_ending { End::Near } else { End::Far },
            is_tried,
            is_listed: true,
        });
        known.is_due = true;
    }

    /// A primary is there no longer. True if it is shown nowhere else, and something of the agent's may belong to it: it has
    /// another turn, which finds out what becomes of that. One that the agent has let go itself needs none.
    pub(super) fn is_lost(&mut self, primary: &Primary) -> bool {
        let Some(known) = self.known(primary) else { return false };
        let (is_free, has_copy, is_taken) = (known.is_free, known.copy.is_some(), known.is_taken);
        let may_have = |shown: &Shown| is_taken || !is_free || has_copy && shown.end != End::Near;
        let shown = known.primary.as_mut().filter(|shown| shown.shard == primary.shard());
        if let Some(shown) = shown.filter(|shown| may_have(shown)) {
            shown.end = End::Lost;
            (known.is_due, known.is_forced) = (true, true);
            return true;
        }
        false
    }

    /// A pass has found out whether something of the agent's belongs to a primary.
    pub(super) fn is_free(&mut self, primary: &Primary, is_free: bool) {
        if let Some(known) = self.known(primary) {
            known.is_free = is_free;
        }
    }

    /// Copies whose primaries were never seen, though both lists are complete: each is of one that was lost. `at` says where
    /// a workspace is shown, if that is known.
    pub(super) fn lose_unseen(&mut self, route: u32, at: impl Fn(&str) -> Option<(Side, u32)>) -> Vec<Primary> {
        let complete = &self.complete;
        let is_complete = |side: Side| complete.contains(&(route, side));
        if !is_complete(Side::Service) {
            return Vec::new();
        }
        let of_route = self.all.iter_mut().filter(|((other, _), _)| *other == route);
        let unseen = of_route.filter(|(_, known)| known.primary.is_none() && known.copy.is_some());
        let lost = unseen.filter_map(|((_, name), known)| {
            let (shard, workspace) = at(name.workspace()).filter(|(shard, _)| is_complete(*shard))?;
            let shown = known.primary.insert(Shown {
                shard,
                workspace,
                version: 0,
                meant: 0,
                end: End::Lost,
                is_tried: true,
                is_listed: true,
            });
            (known.is_due, known.is_forced) = (true, true);
            Some(shown.primary(route, name))
        });
        lost.collect()
    }

    /// True for one that was lost, and was not heard of since.
    pub(super) fn was_lost(&self, primary: &Primary) -> bool {
        self.shown_as(primary).is_some_and(|shown| shown.end == End::Lost)
    }

    /// True for one that was lost, and whose copy is not there either.
    pub(super) fn is_over(&self, primary: &Primary) -> bool {
        let known = self.all.get(&(primary.route, primary.name.clone()));
        self.was_lost(primary) && known.is_some_and(|known| known.copy.is_none())
    }

    /// A primary is there no longer, and what is to be done about its copy is done.
    pub(super) fn is_gone(&mut self, primary: &Primary) {
        let key = (primary.route, primary.name.clone());
        let Some(known) = self.all.get_mut(&key) else { return };
        if known
            .primary
            .as_ref()
            .is_some_and(|shown| shown.shard != primary.shard())
        {
            // It is shown elsewhere by now.
            return;
        }
        let was_untried = known.primary.as_ref().is_some_and(|shown| !shown.is_tried);
        (known.primary, known.last, known.settled) = (None, None, None);
        known.is_free = false;
        if known.copy.is_none() {
            self.all.remove(&key);
        }
        if was_untried {
            self.one_less_untried(primary.workspace);
        }
    }

    /// A list of primaries begins, of one route at one shard.
    pub(super) fn begins(&mut self, route: u32, shard: Side) {
        self.complete.remove(&(route, shard));
        for (_, shown) in self.shown(route) {
            if shown.shard == shard {
                shown.is_listed = false;
            }
        }
    }

    /// The list is complete: gives those that it has not named, but for those that were lost before.
    pub(super) fn is_complete(&mut self, route: u32, shard: Side) -> Vec<Primary> {
        self.complete.insert((route, shard));
        let all = self.shown(route);
        let unlisted = all.filter(|(_, shown)| shown.shard == shard && !shown.is_listed && shown.end != End::Lost);
        unlisted.map(|(name, shown)| shown.primary(route, name)).collect()
    }

    fn shown(&mut self, route: u32) -> impl Iterator<Item = (&ObjectName, &mut Shown)> {
        let of_route = self.all.iter_mut().filter(move |((other, _), _)| *other == route);
        of_route.filter_map(|((_, name), known)| Some((name, known.primary.as_mut()?)))
    }

    /// All primaries for which this holds.
    pub(super) fn primaries(&self, which: impl Fn(u32, Side, u32) -> bool) -> Vec<Primary> {
        let all = self.all.iter().filter_map(|((route, name), known)| {
            let shown = known.primary.as_ref()?;
            which(*route, shown.shard, shown.workspace).then(|| shown.primary(*route, name))
        });
        all.collect()
    }

    /// The primary with this name, if it is there.
    pub(super) fn primary(&self, route: u32, name: &ObjectName) -> Option<Primary> {
        let shown = self.all.get(&(route, name.clone()))?.primary.as_ref();
        let shown = shown.filter(|shown| shown.end != End::Lost)?;
        Some(shown.primary(route, name))
    }

    /// All primaries that a rule by selector means: by their own labels those of a workspace, or by the labels of copies,
    /// those with one of which nothing was heard yet included. Only those that are in this namespace, or their copies, if one
    /// is given.
    pub(super) fn meant(
        &self,
        route: u32,
        rule: Rule,
        workspace: Option<&str>,
        namespace: Option<&str>,
    ) -> Vec<Primary> {
        let all = self.all.iter().filter_map(|((other, name), known)| {
            let shown = known.primary.as_ref().filter(|_| *other == route);
            let shown = shown.filter(|shown| shown.end != End::Lost)?;
            let (meant, at) = match workspace {
                Some(_) => (Some(shown.meant), Some(name)),
                None => (known.meant, known.copy.as_ref().map(|copy| &copy.name)),
            };
            let is_here = workspace.is_none_or(|workspace| name.workspace() == workspace)
                && namespace.is_none_or(|namespace| at.is_none_or(|at| at.namespace() == namespace));
            let is_it = match meant {
                Some(meant) => at.is_some() && is_meant(meant, rule),
                None => at.is_some() || known.is_being_placed(),
            };
            (is_here && is_it).then(|| shown.primary(route, name))
        });
        all.collect()
    }

    /// The primaries whose copies may just be created.
    pub(super) fn being_placed(&self, route: u32) -> Vec<Primary> {
        let all = self.all.iter().filter_map(|((other, name), known)| {
            let shown = known.primary.as_ref().filter(|_| *other == route)?;
            known.is_being_placed().then(|| shown.primary(route, name))
        });
        all.collect()
    }

    /// Forgets all of a route.
    pub(super) fn forget(&mut self, route: u32) {
        for primary in self.primaries(|other, _, _| other == route) {
            self.is_gone(&primary);
        }
        self.all.retain(|(other, _), _| *other != route);
        self.complete.retain(|(other, _)| *other != route);
    }

    fn one_less_untried(&mut self, workspace: u32) {
        super::one_less(&mut self.untried, &workspace);
    }

    /// A copy of the primary with this name is there. Gives the primary if it is not in sync with that.
    pub(super) fn copy_is_there(&mut self, route: u32, of: &ObjectName, copy: Copied, meant: Meant) -> Option<Primary> {
        let version = copy.version;
        let known = self.all.entry((route, of.clone())).or_default();
        let is_another = known.copy.as_ref().is_some_and(|known| known.name != copy.name);
        if is_another {
            // Which one it is, the pass finds out.
            (known.copies, known.settled) = (Copies::Several, None);
        }
        (known.copy, known.meant, known.is_copy_listed) = (Some(copy), Some(meant), true);
        known.is_copy_lost = false;
        let is_lost = known.primary.as_ref().is_some_and(|shown| shown.end == End::Lost);
        if is_lost || known.settled.is_some_and(|settled| settled.copy == version) {
            return None;
        }
        known.turns_due(route, of)
    }

    /// A copy is there no longer.
    pub(super) fn copy_is_gone(&mut self, route: u32, of: &ObjectName) -> Option<Primary> {
        let key = (route, of.clone());
        let known = self.all.get_mut(&key)?;
        (known.copy, known.meant) = (None, None);
        (known.settled, known.is_copy_lost) = (None, true);
        if known.primary.is_none() {
            self.all.remove(&key);
            return None;
        }
        known.turns_due(route, of)
    }

    /// A list of copies begins.
    pub(super) fn copies_begin(&mut self, route: u32) {
        self.complete.remove(&(route, Side::Service));
        for ((other, _), known) in &mut self.all {
            if *other == route {
                known.is_copy_listed = false;
            }
        }
    }

    /// It is complete: gives the names of the primaries whose copies it has not named.
    pub(super) fn copies_are_complete(&mut self, route: u32) -> Vec<ObjectName> {
        self.complete.insert((route, Side::Service));
        let of_route = self.all.iter().filter(|((other, _), _)| *other == route);
        let unlisted = of_route.filter(|(_, known)| known.copy.is_some() && !known.is_copy_listed);
        unlisted.map(|((_, of), _)| of.clone()).collect()
    }

    /// Whether a copy is in this namespace.
    pub(super) fn has_copy_in(&self, namespace: &str) -> bool {
        let mut copies = self.all.values().filter_map(|known| known.copy.as_ref());
        copies.any(|copy| copy.name.namespace() == namespace)
    }

    /// The namespace of the copy of a primary.
    pub(super) fn namespace_of_copy(&self, route: u32, of: &ObjectName) -> Option<Rc<str>> {
        let copy = self.all.get(&(route, of.clone()))?.copy.as_ref()?;
        Some(copy.name.namespace().into())
    }

    /// Of which primary an object is the copy that has lost the marks that say so.
    pub(super) fn whose(&self, route: u32, copy: &ObjectName) -> Option<ObjectName> {
        let mut of_route = self.all.iter().filter(|((other, _), _)| *other == route);
        let is_it = |known: &Known| known.copy.as_ref().is_some_and(|known| known.name == *copy);
        let ((_, of), _) = of_route.find(|(_, known)| is_it(known))?;
        Some(of.clone())
    }

    /// True if a primary is there.
    pub(super) fn has(&mut self, primary: &Primary) -> bool {
        self.known(primary).is_some()
    }

    /// It is the turn of a primary. `None` if it is not there, or nothing has changed since it was in sync but by our own
    /// writes.
    pub(super) fn turn(&mut self, primary: &Primary) -> Option<Turn> {
        let known = self.known(primary)?;
        let has_news = std::mem::take(&mut known.is_due) || known.is_forced;
        known.looks = match known.again {
            Some(_) if !has_news => known.looks.saturating_add(1),
            _ => 0,
        };
        known.is_copy_lost = false;
        let is_forced = std::mem::take(&mut known.is_forced) || known.again.is_some();
        if !is_forced && known.is_in_sync() {
            return None;
        }
        known.is_taken = true;
        let has_several = known.copies != Copies::One;
        if has_several {
            known.copies = Copies::Looked;
        }
        let is_unseen = known.primary.as_ref().is_some_and(|shown| shown.version == 0);
        Some(Turn {
            copy: known.copy.clone(),
            is_unseen,
            has_several,
            last: known.last.clone(),
            settled: known.settled.map_or(0, |settled| settled.copy),
            uses: OwnUses::default(),
        })
    }

    /// Somebody has deleted it, or it is gone.
    pub(super) fn is_ending(&self, primary: &Primary) -> bool {
        self.shown_as(primary).is_some_and(|shown| shown.end != End::Far)
    }

    /// It had its turn.
    pub(super) fn is_tried(&mut self, primary: &Primary) {
        if let Some(known) = self.all.get_mut(&(primary.route, primary.name.clone())) {
            known.is_taken = false;
        }
        let shown = self.known(primary).and_then(|known| known.primary.as_mut());
        let is_first = shown.is_some_and(|shown| !std::mem::replace(&mut shown.is_tried, true));
        if is_first {
            self.one_less_untried(primary.workspace);
        }
    }

    /// True if another primary of its workspace had no turn yet.
    pub(super) fn has_untried(&self, primary: &Primary) -> bool {
        let untried = self.untried.get(&primary.workspace).copied().unwrap_or_default();
        let is_one = self.shown_as(primary).is_some_and(|shown| !shown.is_tried);
        untried > usize::from(is_one)
    }

    /// A primary that is to be let go waits until all others of its workspace had a turn: what they have is known then. It
    /// is in no queue meanwhile: thousands of them would keep just these others out.
    pub(super) fn holds(&mut self, primary: &Primary) {
        self.held.entry(primary.workspace).or_default().insert(primary.clone());
    }

    /// Those whose time has come: all others of their workspaces had a turn. They are due.
    pub(super) fn released(&mut self) -> Vec<Primary> {
        let known = self
            .held
            .keys()
            .filter(|workspace| !self.untried.contains_key(*workspace));
        let known: Vec<u32> = known.copied().collect();
        let all = known.iter().filter_map(|workspace| self.held.remove(workspace));
        let released: Vec<Primary> = all.flatten().collect();
        for primary in &released {
            self.is_due(primary);
        }
        released
    }

    fn shown_as(&self, primary: &Primary) -> Option<&Shown> {
        let shown = self.all.get(&(primary.route, primary.name.clone()))?.primary.as_ref();
        shown.filter(|shown| shown.is(primary))
    }

    /// What belongs to a primary may come, and nobody says so: it has another turn in a while. After each in a row that was
    /// for that alone, it is twice as long: somebody may delete again and again what is made again.
    pub(super) fn looks_again(&mut self, primary: &Primary, now: Instant) {
        if let Some(known) = self.known(primary) {
            let wait = AGAIN.saturating_mul(1 << known.looks.min(16));
            known.again = Some(now + wait.min(LONGEST_AGAIN));
        }
    }

    /// How long until a primary's turn comes by itself, if it does.
    pub(super) fn again(&mut self, primary: &Primary, now: Instant) -> Option<Duration> {
        let known = self.known(primary)?;
        let at = known.again.filter(|at| *at > now);
        if at.is_none() {
            known.again = None;
        }
        at.map(|at| at - now)
    }

    /// A primary is due, though neither it nor its copy may have changed.
    pub(super) fn is_due(&mut self, primary: &Primary) {
        if let Some(known) = self.known(primary) {
            (known.is_due, known.is_forced) = (true, true);
        }
    }

    /// A pass of a primary has failed. It may have written a part: what was wanted before says nothing of what is there now.
    pub(super) fn has_failed(&mut self, primary: &Primary) {
        self.is_due(primary);
        if let Some(known) = self.known(primary) {
            known.last = None;
        }
    }

    /// A primary of this version is in sync with this version of its copy. True if the copy is another one by now, or
    /// none.
    pub(super) fn is_settled(&mut self, primary: &Primary, last: Last, version: u64, copy: Copied) -> bool {
        let Some(known) = self.known(primary) else {
            return false;
        };
        if known.is_copy_lost {
            (known.last, known.is_forced) = (Some(last), true);
            return true;
        }
        let settled = Versions {
            primary: version,
            copy: copy.version,
        };
        (known.last, known.settled) = (Some(last), Some(settled));
        if known.copies == Copies::Looked {
            (known.copies, known.copy) = (Copies::One, None);
        }
        let present = known.copy.get_or_insert(copy);
        present.version > settled.copy
    }

    /// What is known of a primary, unless it is shown elsewhere by now.
    fn known(&mut self, primary: &Primary) -> Option<&mut Known> {
        let known = self.all.get_mut(&(primary.route, primary.name.clone()))?;
        let shown = known.primary.as_ref()?;
        shown.is(primary).then_some(known)
    }

    /// Those of a group that are due, from a key on.
    pub(super) fn due(&self, group: Group, from: Option<&Key>) -> Vec<Key> {
        let Some((route, workspace)) = group else {
            return Vec::new();
        };
        let all = self.all.iter().filter_map(|((other, name), known)| {
            let shown = known.primary.as_ref().filter(|_| known.is_due && *other == route)?;
            (shown.workspace == workspace).then(|| Key::Object(shown.primary(route, name)))
        });
        all.filter(|key| from.is_none_or(|from| key >= from)).collect()
    }
}

#[cfg(test)]
#[path = "objects_tests.rs"]
mod tests;
