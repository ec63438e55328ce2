//! What is asked of all objects of a type: never stored, always counted or collected from the links.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use kube_lite::ObjectName;

use super::{Held, Inventory, Link, Permit};
use crate::model::count::Count;

impl Inventory {
    /// Adds how many copies say from which cluster they are, by the hash of its UID.
    pub(in crate::model) fn count_clusters(&self, clusters: &mut BTreeMap<u32, usize>) {
        let marked = self.objects.values().map(|link| link.seen.copy.cluster);
        for cluster in marked.filter(|cluster| *cluster != 0) {
            *clusters.entry(cluster).or_default() += 1;
        }
    }

    /// True if a copy says that it is from another cluster.
    pub(in crate::model) fn is_from_another(&self, name: &ObjectName, cluster: u32) -> bool {
        let link = self.objects.get(name);
        link.is_some_and(|link| link.is_from_another(cluster))
    }

    /// A copy that is to be deleted and says that it is from another cluster.
    pub(in crate::model) fn pending_delete_from_another(&self, cluster: u32) -> Option<&ObjectName> {
        let mut pending = self.objects.iter().filter(|(_, link)| link.is_pending_delete());
        pending.find_map(|(name, link)| link.is_from_another(cluster).then_some(name))
    }

    /// The highest version of this cluster at which the copy of one of these was made that is to be deleted; 0 if none
    /// says so.
    pub(in crate::model) fn newest_pending_delete(&self, names: &[ObjectName], cluster: u32) -> u64 {
        let links = names.iter().filter_map(|name| self.objects.get(name));
        let pending = links.filter(|link| link.is_pending_delete() && !link.seen.copy.terminating);
        let of_it = pending.filter(|link| !link.is_from_another(cluster));
        of_it.map(|link| link.seen.copy.made_at).max().unwrap_or_default()
    }

    /// True if there are copies of ours that are to be deleted.
    pub(in crate::model) fn has_pending_delete(&self) -> bool {
        self.objects.values().any(Link::is_pending_delete)
    }

    /// True if there are copies of ours that may have to be deleted.
    pub(in crate::model) fn has_unverified(&self) -> bool {
        let mut all = self.objects.values();
        all.any(|link| link.is_unverified() && link.has_ours())
    }

    /// How many copies of ours are to be deleted, how many may have to be, and how many there are. Those that a hold has
    /// let go count as gone already.
    pub(in crate::model) fn count_pending_deletes(&self) -> Count {
        self.objects.values().map(count_of).sum()
    }

    /// The same of a single object.
    pub(in crate::model) fn count_pending_deletes_of(&self, name: &ObjectName) -> Count {
        self.objects.get(name).map(count_of).unwrap_or_default()
    }

    /// How many objects are synced, and for how many there is something to do.
    pub(in crate::model) fn count_synced(&self) -> (usize, usize) {
        let all = self.objects.values();
        let synced = all.clone().filter(|link| link.is_in_sync());
        let out_of_sync = all.clone().filter(|link| link.needs_worker() || link.has_to_end());
        (synced.count(), out_of_sync.count())
    }

    /// Names of the objects that need a worker and that none has, in order, from the given one on. Without those whose
    /// delete is held.
    pub(in crate::model) fn out_of_sync(
        &self,
        held: Held,
        from: Option<&ObjectName>,
    ) -> impl Iterator<Item = &ObjectName> + use<'_> {
        let waits = move |link: &Link| link.is_held(held) && !link.is_lost();
        let is_due = move |link: &Link| !link.is_busy() && link.needs_worker() && !waits(link);
        self.in_order(is_due, from)
    }

    /// Names of the objects for which `are` is true, in order, from the given one on. Only as many as are asked for are
    /// sorted.
    pub(in crate::model) fn in_order<'a, F: Fn(&Link) -> bool>(
        &'a self,
        are: F,
        from: Option<&ObjectName>,
    ) -> impl Iterator<Item = &'a ObjectName> + use<'a, F> {
        let is_such = |(name, link): &(&'a ObjectName, &Link)| are(link) && from.is_none_or(|from| *name >= from);
        let such = self.objects.iter().filter(is_such);
        let mut such: BinaryHeap<Reverse<&ObjectName>> = such.map(|(name, _)| Reverse(name)).collect();
        std::iter::from_fn(move || such.pop().map(|Reverse(name)| name))
    }

    /// Names of all objects for which `are` is true, in order.
    pub(in crate::model) fn names(&self, are: impl Fn(&Link) -> bool) -> Vec<ObjectName> {
        self.in_order(are, None).cloned().collect()
    }
}

fn count_of(link: &Link) -> Count {
    if !link.has_ours() || link.is_retiring() && link.permit == Permit::Given {
        return Count::default();
    }
    Count {
        pending: usize::from(link.is_retiring()),
        unverified: usize::from(link.is_unverified()),
        copies: 1,
    }
}
