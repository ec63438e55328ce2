//! The objects that are synced: what is known of each primary and of its copy. Names and versions, no object.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use kube_lite::ObjectName;
use tokio::time::Instant;

use super::watched::{Meant, Rule, is_meant};
use crate::sides::{Group, Key, Primary, Side};
use crate::turn::{Copied, OwnUses, Turn};

/// What is known of an object in a workspace.
#[derive(Debug, Default)]
struct Known {
    /// Where it is shown, if it is there.
    primary: Option<Shown>,
    /// Its copy, if there is one.
    copy: Option<Copied>,
    /// By which rules it is meant, by the labels of the copy.
    meant: Meant,
    /// The list of copies that is being read has named that.
    is_copy_listed: bool,
    /// It is not in sync, as far as is known.
    is_due: bool,
    /// What was wanted when it was last in sync, in a few bits.
    state: Option<u64>,
    /// The version of the copy that it was in sync with.
    settled: Option<u64>,
    /// What belongs to it may come until then, and nobody says so.
    again: Option<Instant>,
}

/// Where a primary is shown.
#[derive(Debug)]
struct Shown {
    shard: Side,
    workspace: u32,
    /// By which rules it is meant, by its own labels.
    meant: Meant,
    /// Somebody has deleted it.
    is_ending: bool,
    /// It had its turn.
    is_tried: bool,
    /// The list that is being read has named it.
    is_listed: bool,
}

/// See the module's doc.
#[derive(Default)]
pub(super) struct Objects(BTreeMap<(u32, ObjectName), Known>);

impl Objects {
    /// How many primaries there are.
    pub(super) fn len(&self) -> usize {
        self.0.values().filter(|known| known.primary.is_some()).count()
    }

    /// How many of them are not in sync.
    pub(super) fn pending(&self) -> usize {
        let all = self.0.values();
        all.filter(|known| known.primary.is_some() && known.is_due).count()
    }

    /// A primary is there. It is due.
    pub(super) fn is_there(&mut self, primary: &Primary, meant: Meant, is_ending: bool) {
        let known = self.0.entry((primary.route, primary.name.clone())).or_default();
        let is_tried = known.primary.as_ref().is_some_and(|shown| shown.is_tried);
        known.primary = Some(Shown {
            shard: primary.shard(),
            workspace: primary.workspace,
            meant,
            is_ending,
            is_tried,
            is_listed: true,
        });
        known.is_due = true;
    }

    /// A primary is there no longer. Its copy stays as it is: whoever deletes a primary has to wait for the finalizer.
    pub(super) fn is_gone(&mut self, primary: &Primary) {
        let key = (primary.route, primary.name.clone());
        let Some(known) = self.0.get_mut(&key) else { return };
        if known
            .primary
            .as_ref()
            .is_some_and(|shown| shown.shard != primary.shard())
        {
            // It is shown elsewhere by now.
            return;
        }
        (known.primary, known.state, known.settled) = (None, None, None);
        if known.copy.is_none() {
            self.0.remove(&key);
        }
    }

    /// A list of primaries begins, of one route at one shard.
    pub(super) fn begins(&mut self, route: u32, shard: Side) {
        for (_, shown) in self.shown(route) {
            if shown.shard == shard {
                shown.is_listed = false;
            }
        }
    }

    /// The list is complete: gives those that it has not named.
    pub(super) fn is_complete(&mut self, route: u32, shard: Side) -> Vec<Primary> {
        let all = self.shown(route);
        let unlisted = all.filter(|(_, shown)| shown.shard == shard && !shown.is_listed);
        unlisted.map(|(name, shown)| primary(route, name, shown)).collect()
    }

    fn shown(&mut self, route: u32) -> impl Iterator<Item = (&ObjectName, &mut Shown)> {
        let of_route = self.0.iter_mut().filter(move |((other, _), _)| *other == route);
        of_route.filter_map(|((_, name), known)| Some((name, known.primary.as_mut()?)))
    }

    /// All primaries for which this holds.
    pub(super) fn primaries(&self, which: impl Fn(u32, Side, u32) -> bool) -> Vec<Primary> {
        let all = self.0.iter().filter_map(|((route, name), known)| {
            let shown = known.primary.as_ref()?;
            which(*route, shown.shard, shown.workspace).then(|| primary(*route, name, shown))
        });
        all.collect()
    }

    /// The primary with this name, if it is there.
    pub(super) fn primary(&self, route: u32, name: &ObjectName) -> Option<Primary> {
        let shown = self.0.get(&(route, name.clone()))?.primary.as_ref()?;
        Some(primary(route, name, shown))
    }

    /// All primaries that a rule by selector means: by their own labels those of a workspace, or by the labels of copies.
    pub(super) fn meant(&self, route: u32, rule: Rule, workspace: Option<&str>) -> Vec<Primary> {
        let all = self.0.iter().filter_map(|((other, name), known)| {
            let shown = known.primary.as_ref().filter(|_| *other == route)?;
            let meant = workspace.map_or(known.meant, |_| shown.meant);
            let is_here = workspace.is_none_or(|workspace| name.workspace() == workspace);
            (is_here && is_meant(meant, rule)).then(|| primary(route, name, shown))
        });
        all.collect()
    }

    /// Forgets all of a route.
    pub(super) fn forget(&mut self, route: u32) {
        self.0.retain(|(other, _), _| *other != route);
    }

    /// A copy of the primary with this name is there. Gives the primary if it is not in sync with that.
    pub(super) fn copy_is_there(&mut self, route: u32, of: &ObjectName, copy: Copied, meant: Meant) -> Option<Primary> {
        let version = copy.version;
        let known = self.0.entry((route, of.clone())).or_default();
        (known.copy, known.meant, known.is_copy_listed) = (Some(copy), meant, true);
        if known.settled == Some(version) {
            return None;
        }
        known.turns_due(route, of)
    }

    /// A copy is there no longer.
    pub(super) fn copy_is_gone(&mut self, route: u32, of: &ObjectName) -> Option<Primary> {
        let key = (route, of.clone());
        let known = self.0.get_mut(&key)?;
        (known.copy, known.settled) = (None, None);
        if known.primary.is_none() {
            self.0.remove(&key);
            return None;
        }
        known.turns_due(route, of)
    }

    /// A list of copies begins.
    pub(super) fn copies_begin(&mut self, route: u32) {
        for ((other, _), known) in &mut self.0 {
            if *other == route {
                known.is_copy_listed = false;
            }
        }
    }

    /// It is complete: gives the names of the primaries whose copies it has not named.
    pub(super) fn copies_are_complete(&self, route: u32) -> Vec<ObjectName> {
        let of_route = self.0.iter().filter(|((other, _), _)| *other == route);
        let unlisted = of_route.filter(|(_, known)| known.copy.is_some() && !known.is_copy_listed);
        unlisted.map(|((_, of), _)| of.clone()).collect()
    }

    /// Whether a copy is in this namespace.
    pub(super) fn has_copy_in(&self, namespace: &str) -> bool {
        let mut copies = self.0.values().filter_map(|known| known.copy.as_ref());
        copies.any(|copy| copy.name.namespace() == namespace)
    }

    /// The namespace of the copy of a primary.
    pub(super) fn namespace_of_copy(&self, route: u32, of: &ObjectName) -> Option<Rc<str>> {
        let copy = self.0.get(&(route, of.clone()))?.copy.as_ref()?;
        Some(copy.name.namespace().into())
    }

    /// Of which primary an object is the copy that has lost the marks that say so.
    pub(super) fn whose(&self, route: u32, copy: &ObjectName) -> Option<ObjectName> {
        let mut of_route = self.0.iter().filter(|((other, _), _)| *other == route);
        let is_it = |known: &Known| known.copy.as_ref().is_some_and(|known| known.name == *copy);
        let ((_, of), _) = of_route.find(|(_, known)| is_it(known))?;
        Some(of.clone())
    }

    /// True if a primary is there.
    pub(super) fn has(&mut self, primary: &Primary) -> bool {
        self.known(primary).is_some()
    }

    /// It is the turn of a primary. `None` if it is not there.
    pub(super) fn turn(&mut self, primary: &Primary) -> Option<Turn> {
        let known = self.known(primary)?;
        known.is_due = false;
        Some(Turn {
            copy: known.copy.clone(),
            state: known.state,
            settled: known.settled,
            uses: OwnUses::default(),
        })
    }

    /// Somebody has deleted it.
    pub(super) fn is_ending(&self, primary: &Primary) -> bool {
        self.shown_as(primary).is_some_and(|shown| shown.is_ending)
    }

    /// It had its turn.
    pub(super) fn is_tried(&mut self, primary: &Primary) {
        if let Some(shown) = self.known(primary).and_then(|known| known.primary.as_mut()) {
            shown.is_tried = true;
        }
    }

    /// True if another primary of its workspace had no turn yet.
    pub(super) fn has_untried(&self, primary: &Primary) -> bool {
        self.0.iter().any(|((route, name), known)| {
            let is_other = *route != primary.route || *name != primary.name;
            let of_workspace = known
                .primary
                .as_ref()
                .filter(|shown| shown.workspace == primary.workspace);
            is_other && of_workspace.is_some_and(|shown| !shown.is_tried)
        })
    }

    fn shown_as(&self, primary: &Primary) -> Option<&Shown> {
        self.0.get(&(primary.route, primary.name.clone()))?.primary.as_ref()
    }

    /// What belongs to a primary may come until then, and nobody says so.
    pub(super) fn looks_again(&mut self, primary: &Primary, at: Instant) {
        if let Some(known) = self.known(primary) {
            known.again = Some(at);
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

    /// A primary is due.
    pub(super) fn is_due(&mut self, primary: &Primary) {
        if let Some(known) = self.known(primary) {
            known.is_due = true;
        }
    }

    /// A primary is in sync with this version of its copy. True if the copy is another one by now.
    pub(super) fn is_settled(&mut self, primary: &Primary, state: u64, copy: Copied) -> bool {
        let Some(known) = self.known(primary) else {
            return false;
        };
        (known.state, known.settled) = (Some(state), Some(copy.version));
        let present = known.copy.get_or_insert(copy);
        present.version > known.settled.unwrap_or_default()
    }

    fn known(&mut self, primary: &Primary) -> Option<&mut Known> {
        let known = self.0.get_mut(&(primary.route, primary.name.clone()))?;
        known.primary.is_some().then_some(known)
    }

    /// Those of a group that are due, from a key on.
    pub(super) fn due(&self, group: Group, from: Option<&Key>) -> Vec<Key> {
        let Some((route, workspace)) = group else {
            return Vec::new();
        };
        let all = self.0.iter().filter_map(|((other, name), known)| {
            let shown = known.primary.as_ref().filter(|_| known.is_due && *other == route)?;
            (shown.workspace == workspace).then(|| Key::Object(primary(route, name, shown)))
        });
        all.filter(|key| from.is_none_or(|from| key >= from)).collect()
    }
}

impl Known {
    fn turns_due(&mut self, route: u32, name: &ObjectName) -> Option<Primary> {
        let shown = self.primary.as_ref()?;
        self.is_due = true;
        Some(primary(route, name, shown))
    }
}

fn primary(route: u32, name: &ObjectName, shown: &Shown) -> Primary {
    Primary {
        route,
        workspace: shown.workspace,
        sides: [Side::Service, shown.shard],
        name: name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn primary(name: &str, shard: u32) -> Primary {
        Primary {
            route: 1,
            workspace: 7,
            sides: [Side::Service, Side::Shard(shard)],
            name: ObjectName::in_workspace("c1", "shop", name),
        }
    }

    fn copy(version: u64) -> Copied {
        Copied {
            name: ObjectName::new("c1", "copy"),
            version,
        }
    }

    #[test]
    fn a_copy_that_is_as_it_was_left_makes_nothing_due() {
        let mut objects = Objects::default();
        let web = primary("web", 0);
        objects.is_there(&web, 0, false);
        assert_eq!(objects.turn(&web), Some(Turn::default()));
        assert!(!objects.is_settled(&web, 5, copy(10)));
        assert_eq!(objects.copy_is_there(1, &web.name, copy(10), 0), None);
        // Somebody has changed it.
        assert_eq!(objects.copy_is_there(1, &web.name, copy(11), 0), Some(web.clone()));
        let turn = objects.turn(&web).unwrap();
        assert_eq!(
            (turn.state, turn.settled, turn.copy),
            (Some(5), Some(10), Some(copy(11)))
        );
        // And once more, while it was worked on.
        objects.copy_is_there(1, &web.name, copy(13), 0);
        assert!(objects.is_settled(&web, 5, copy(12)));
        assert_eq!(objects.copy_is_gone(1, &web.name), Some(web.clone()));
        assert_eq!(objects.turn(&web).unwrap().settled, None);
    }

    #[test]
    fn what_a_list_does_not_name_is_gone_at_that_shard_alone() {
        let mut objects = Objects::default();
        let (here, there) = (primary("here", 0), primary("there", 1));
        objects.is_there(&here, 0, false);
        objects.is_there(&there, 0, false);
        objects.begins(1, Side::Shard(0));
        assert_eq!(objects.is_complete(1, Side::Shard(0)), std::slice::from_ref(&here));
        objects.begins(1, Side::Shard(0));
        objects.is_there(&here, 0, false);
        assert_eq!(objects.is_complete(1, Side::Shard(0)), []);
        // One that moves to another shard is not gone when the first one says so.
        objects.is_there(&primary("here", 1), 0, false);
        objects.is_gone(&here);
        assert!(objects.has(&primary("here", 1)));
        assert_eq!(objects.len(), 2);
    }

    #[test]
    fn copies_are_known_before_their_primaries_and_outlive_them() {
        let mut objects = Objects::default();
        let web = primary("web", 0);
        assert_eq!(objects.copy_is_there(1, &web.name, copy(3), 0), None);
        objects.is_there(&web, 0, false);
        assert_eq!(objects.turn(&web).unwrap().copy, Some(copy(3)));
        assert_eq!(objects.whose(1, &copy(3).name), Some(web.name.clone()));
        objects.is_gone(&web);
        assert_eq!(objects.turn(&web), None);
        objects.copies_begin(1);
        assert_eq!(objects.copies_are_complete(1), std::slice::from_ref(&web.name));
        assert_eq!(objects.copy_is_gone(1, &web.name), None);
        assert_eq!(objects.whose(1, &copy(3).name), None);
    }

    #[test]
    fn those_that_a_rule_means_are_found_by_the_labels_of_either_side() {
        let mut objects = Objects::default();
        let (web, api) = (primary("web", 0), primary("api", 0));
        let elsewhere = Primary {
            name: ObjectName::in_workspace("c2", "shop", "web"),
            ..web.clone()
        };
        objects.is_there(&web, 0b01, false);
        objects.is_there(&api, 0b10, false);
        objects.is_there(&elsewhere, 0b01, false);
        objects.copy_is_there(1, &api.name, copy(1), 0b100);
        assert_eq!(objects.meant(1, 0, Some("c1")), std::slice::from_ref(&web));
        assert_eq!(objects.meant(1, 1, Some("c1")), std::slice::from_ref(&api));
        assert_eq!(objects.meant(1, 2, None), std::slice::from_ref(&api));
        assert_eq!(objects.meant(2, 0, Some("c1")), []);
        assert_eq!(objects.primary(1, &web.name), Some(web));
        assert_eq!(
            objects.primary(1, &ObjectName::in_workspace("c1", "shop", "none")),
            None
        );
    }

    #[test]
    fn only_what_is_due_is_asked_for_and_from_where_it_stopped() {
        let mut objects = Objects::default();
        let all: Vec<Primary> = ["a", "b", "c"].iter().map(|name| primary(name, 0)).collect();
        for primary in &all {
            objects.is_there(primary, 0, false);
        }
        objects.turn(&all[0]);
        let keys = |from: usize| -> Vec<Key> { all[from..].iter().cloned().map(Key::Object).collect() };
        assert_eq!(objects.due(Some((1, 7)), None), keys(1));
        assert_eq!(objects.due(Some((1, 7)), Some(&Key::Object(all[2].clone()))), keys(2));
        assert_eq!(objects.due(Some((1, 8)), None), []);
        assert_eq!((objects.len(), objects.pending()), (3, 2));
    }
}
