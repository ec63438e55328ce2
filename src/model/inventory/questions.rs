//! What is asked of what is known: of one object by its name, and of all of a type.

use std::collections::HashSet;

use kube_lite::ObjectName;
use tokio::time::Instant;

use super::Inventory;
use super::link::Link;
use crate::model::contention::Contention;
use crate::model::link_status::LinkStatus;

impl Inventory {
    /// True if there is an origin that wants a copy.
    pub(in crate::model) fn is_wanted(&self, name: &ObjectName) -> bool {
        self.objects.get(name).is_some_and(|link| link.wanted != 0)
    }

    /// What the origin wants, if a copy that was made from an object with this [`origin_hash`] (0 if unknown) is a copy
    /// of it, and not of an earlier object of that name.
    pub(in crate::model) fn wanted_by(&self, name: &ObjectName, origin: u32) -> u64 {
        let link = self.objects.get(name);
        let same = link.filter(|link| origin == 0 || link.origin_uid == 0 || link.origin_uid == origin);
        same.map_or(0, |link| link.wanted)
    }

    /// True if a copy that is deleted now was synced, so that somebody else has deleted it.
    pub(in crate::model) fn is_taken_away(&self, name: &ObjectName) -> bool {
        let link = self.objects.get(name);
        link.is_some_and(|link| link.wanted != 0 && link.has_ours() && !link.is_busy() && !link.ends())
    }

    /// True if there is a copy, as far as is known, and no worker has it. One that was left as it was found counts as
    /// present too, though nothing reports it.
    pub(in crate::model) fn counts_as_present(&self, name: &ObjectName) -> bool {
        let counts = |link: &Link| link.has_copy() || link.settled != 0;
        let link = self.objects.get(name);
        link.is_some_and(|link| counts(link) && !link.is_busy())
    }

    /// True if there is a copy of ours, and no origin of it was ever reported, nor its absence.
    pub(in crate::model) fn is_orphan(&self, name: &ObjectName) -> bool {
        self.objects.get(name).is_some_and(Link::is_orphan)
    }

    /// Names of all such copies.
    pub(in crate::model) fn orphans(&self) -> Vec<ObjectName> {
        self.names(Link::is_orphan)
    }

    /// True if the copies' side will report when the copy is deleted: it carries the label by which it is watched.
    pub(in crate::model) fn is_watched(&self, name: &ObjectName) -> bool {
        self.objects.get(name).is_some_and(|link| link.seen.labelled)
    }

    /// True if there is a copy without that label.
    pub(in crate::model) fn is_unlabelled(&self, name: &ObjectName) -> bool {
        let unlabelled = |link: &Link| link.has_copy() && !link.seen.labelled;
        self.objects.get(name).is_some_and(unlabelled)
    }

    /// True if our marks are on what its side keeps for itself.
    pub(in crate::model) fn is_to_be_released(&self, name: &ObjectName) -> bool {
        self.objects.get(name).is_some_and(Link::is_to_be_released)
    }

    /// True if the copy is to be deleted or released: its origin is gone.
    pub(in crate::model) fn is_retiring(&self, name: &ObjectName) -> bool {
        self.objects.get(name).is_some_and(Link::is_retiring)
    }

    /// True if its copy is of another origin than the one with this hash, which has the same name.
    pub(in crate::model) fn is_of_another(&self, name: &ObjectName, origin: u32) -> bool {
        self.objects.get(name).is_some_and(|link| link.is_of_another(origin))
    }

    /// True if nothing is to be done for the object now (perhaps only once what is in the copy's place is gone), or if
    /// it is unknown.
    pub(in crate::model) fn is_done(&self, name: &ObjectName) -> bool {
        let is_synced = |link: &Link| link.is_synced() && !link.has_to_end();
        self.is_over(name) || self.objects.get(name).is_some_and(is_synced)
    }

    /// True if nothing is wanted of the object, and nothing of it is to be deleted or searched for.
    pub(in crate::model) fn is_over(&self, name: &ObjectName) -> bool {
        let is_over = |link: &Link| link.wanted == 0 && !link.is_busy() && !link.needs_worker();
        self.objects.get(name).is_none_or(is_over)
    }

    /// True if the origin's side has reported that there is an origin that wants a copy, and has reported nothing since a worker
    /// took it.
    pub(in crate::model) fn is_reported(&self, name: &ObjectName) -> bool {
        let link = self.objects.get(name);
        link.is_some_and(|link| link.wanted != 0 && link.origin_list() != 0 && !link.reported.of_origin())
    }

    /// True if the copies' side has reported a copy of ours since a worker took it.
    pub(in crate::model) fn has_copy_turned_up(&self, name: &ObjectName) -> bool {
        let link = self.objects.get(name);
        link.is_some_and(|link| link.has_ours() && link.reported.of_copy())
    }

    /// True if there is a copy of ours, as far as the copies' side has reported.
    pub(in crate::model) fn has_ours(&self, name: &ObjectName) -> bool {
        self.objects.get(name).is_some_and(Link::has_ours)
    }

    /// True if there is a copy of ours, or a worker has to find out whether there is.
    pub(in crate::model) fn may_have_ours(&self) -> bool {
        self.objects.values().any(Link::is_ours_or_open)
    }

    /// The same of one object.
    pub(in crate::model) fn may_be_ours(&self, name: &ObjectName) -> bool {
        self.objects.get(name).is_some_and(Link::is_ours_or_open)
    }

    /// Names of the unlabelled objects whose content is left to the edge: no list by label names them.
    pub(in crate::model) fn unlabelled(&self) -> impl Iterator<Item = &ObjectName> {
        let unlabelled =
            |link: &Link| link.wanted != 0 && link.has_copy() && link.seen.copy.create_only && !link.seen.labelled;
        self.objects
            .iter()
            .filter(move |(_, link)| unlabelled(link))
            .map(|(name, _)| name)
    }

    /// Namespaces in which there is an object, or may be. A copy that has lost its label and that nothing wants does
    /// not count: its end is not reported.
    pub(in crate::model) fn namespaces_in_use(&self) -> impl Iterator<Item = String> {
        let is_reported = |link: &Link| link.wanted != 0 || !link.has_copy() || link.seen.labelled;
        let reported_of = self.objects.iter().filter(|(_, link)| is_reported(link));
        let mut namespaces = HashSet::with_hasher(*self.objects.hasher());
        namespaces.extend(reported_of.map(|(name, _)| name.namespace()));
        namespaces.into_iter().map(ToString::to_string)
    }

    /// Names of the copies that are ours.
    pub(in crate::model) fn ours(&self) -> impl Iterator<Item = &ObjectName> {
        self.objects
            .iter()
            .filter(|(_, link)| link.has_ours())
            .map(|(name, _)| name)
    }

    /// The highest version at which any copy was seen, or was deleted.
    pub(in crate::model) fn copies_reached(&self) -> u64 {
        let versions = self.objects.values().map(|link| link.seen.version);
        versions.max().unwrap_or_default()
    }

    /// True if a line has said that somebody else keeps changing or deleting a copy.
    pub(in crate::model) fn is_known_contention(&self, name: &ObjectName, now: Instant) -> bool {
        self.contention(name).is_some_and(|contention| contention.is_known(now))
    }

    /// True if the worker that has the object corrects what somebody else has done to its copy.
    pub(in crate::model) fn is_correction(&self, name: &ObjectName) -> bool {
        self.contention(name).is_some_and(Contention::is_under_way)
    }

    fn contention(&self, name: &ObjectName) -> Option<&Contention> {
        self.objects.get(name)?.contention.as_deref()
    }

    /// True if there is a status for which `is` is true.
    pub(in crate::model) fn any_status(&self, is: impl Fn(&LinkStatus) -> bool) -> bool {
        let mut statuses = self.objects.values().filter_map(|link| link.status.as_ref());
        statuses.any(|status| is(status))
    }

    /// How many there are.
    pub(in crate::model) fn count_statuses(&self, is: impl Fn(&LinkStatus) -> bool) -> usize {
        let statuses = self.objects.values().filter_map(|link| link.status.as_ref());
        statuses.filter(|status| is(status)).count()
    }
}
