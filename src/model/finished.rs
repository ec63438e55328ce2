//! Jobs that have been seen finished at the edge, as long as the hub does not show that: they are not run again, also after
//! a restart, and their last status is returned.
//!
//! `ttlSecondsAfterFinished` removes such a Job at the edge, and nothing there says any more that it has run. If the hub
//! did not learn of that before, what is known of it here is the only trace. So the record has a line for each, until its
//! origin shows the end, is another object, or is gone. While the hub answers, that is sooner than the line would be
//! written.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use kube_lite::fields::from_text;
use kube_lite::logging::log_line;
use kube_lite::{ObjectName, ResourceType, Scope, is_path_segment, is_word, qualified};
use serde::Deserialize;
use serde_json::json;
use tokio::time::Instant;

use super::inventory::{Link, ListEpoch};
use super::timers::Timer;
use super::{Model, TypeId};
use crate::api::OWNER;
use crate::plan::{Direction, SyncedType};
use crate::side::Side;
use crate::sync::kinds::{has_finished, runs_once};
use crate::sync::meta::Object;
use crate::sync::object::{Address, Status};
use crate::sync::ownership::{CopyState, Marked, Owner, SyncTarget, origin_hash};

/// Bytes of all lines: some 3,000 Jobs, most of them without their status, and half of what a `ConfigMap` can hold.
const MOST_BYTES: usize = 512 << 10;
/// Bytes up to which lines have a status: some 500 Jobs.
const STATUS_BYTES: usize = 256 << 10;
/// The longest status that a line has.
const LONGEST_STATUS: usize = 4 << 10;
/// How long a status may take to reach the hub, before the record is written.
const RETURNING: Duration = Duration::from_secs(5);
/// The shortest time between two writes of the record for this.
const PACE: Duration = Duration::from_secs(1);

/// All of them, by their type (`resource.group`) and the name of the copy. See the module's doc.
#[derive(Debug, Default)]
pub(super) struct FinishedJobs {
    all: BTreeMap<String, BTreeMap<ObjectName, FinishedJob>>,
    /// Bytes of their lines.
    bytes: usize,
    /// When they were last written to the record.
    kept_at: Option<Instant>,
    /// One has found no room, which was logged.
    is_full: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct FinishedJob {
    /// UID of its origin.
    origin: String,
    /// Its last status as JSON; empty if there was no room for it.
    status: String,
    /// The list of origins that has named its origin last; 0 if none has.
    named: ListEpoch,
    /// The edge has it no longer.
    is_gone: bool,
    /// The record has it.
    is_kept: bool,
}

impl FinishedJobs {
    /// Adds one, or what is newly known of one. False if there is no room for it: one that is still at the edge gives way
    /// to one that is gone.
    fn add(&mut self, resource: &str, name: &ObjectName, mut job: FinishedJob) -> bool {
        if let Some(known) = self.get(resource, name)
            && (&known.origin, &known.status) == (&job.origin, &job.status)
        {
            job.is_kept = known.is_kept;
            job.is_gone |= known.is_gone;
        }
        self.remove(resource, name);
        job.status = job.status.replace(['\n', '\r'], " ");
        let length = |job: &FinishedJob| line(resource, name, job).len();
        if job.status.len() > LONGEST_STATUS || self.bytes + length(&job) > STATUS_BYTES {
            job.status.clear();
        }
        let length = length(&job);
        while self.bytes + length > MOST_BYTES {
            let present = |jobs: &BTreeMap<ObjectName, FinishedJob>| {
                let present = jobs.iter().find(|(_, job)| !job.is_gone);
                present.map(|(name, _)| name.clone())
            };
            let mut present = self
                .all
                .iter()
                .filter_map(|(of, jobs)| Some((of.clone(), present(jobs)?)));
            let Some((of, other)) = present.next().filter(|_| job.is_gone) else {
                return false;
            };
            self.remove(&of, &other);
        }
        self.bytes += length;
        self.all
            .entry(resource.to_owned())
            .or_default()
            .insert(name.clone(), job);
        true
    }

    fn get(&self, resource: &str, name: &ObjectName) -> Option<&FinishedJob> {
        self.all.get(resource)?.get(name)
    }

    fn remove(&mut self, resource: &str, name: &ObjectName) {
        if let Some(jobs) = self.all.get_mut(resource)
            && let Some(job) = jobs.remove(name)
        {
            self.bytes -= line(resource, name, &job).len();
            if jobs.is_empty() {
                self.all.remove(resource);
            }
        }
    }

    /// Removes those of a type for which `is` is true.
    fn remove_where(&mut self, resource: &str, is: impl Fn(&ObjectName, &FinishedJob) -> bool) {
        let jobs = self.all.get(resource).into_iter().flatten();
        let such: Vec<ObjectName> = jobs
            .filter(|(name, job)| is(name, job))
            .map(|(name, _)| name.clone())
            .collect();
        for name in such {
            self.remove(resource, &name);
        }
    }

    /// There is an origin with this UID, which a list names. It needs no line any more if it shows the end itself.
    fn origin_is(&mut self, resource: &str, name: &ObjectName, uid: &str, shows_end: bool, list: ListEpoch) {
        match self.all.get_mut(resource).and_then(|jobs| jobs.get_mut(name)) {
            Some(job) if job.origin == uid && !shows_end => job.named = list,
            Some(_) => self.remove(resource, name),
            None => {}
        }
    }

    /// [`origin_hash`] of the origin that has finished under this name; 0 if there is none.
    pub(super) fn origin(&self, resource: &ResourceType, name: &ObjectName) -> u32 {
        let job = (!self.all.is_empty()).then(|| self.get(&resource.qualified(), name));
        job.flatten().map_or(0, |job| origin_hash(&job.origin))
    }

    /// What is left of a copy that is gone: who it was, and its last status.
    pub(super) fn last(&self, copy: &Address, we: &SyncTarget) -> Option<Bytes> {
        let Address { resource, name } = copy;
        let job = self
            .get(&resource.qualified(), name)
            .filter(|job| !job.status.is_empty())?;
        let metadata = json!({
            "namespace": name.namespace(), "name": &*name.name,
            "annotations": {OWNER: we.owner_mark(&job.origin, resource)},
        });
        Some(format!(r#"{{"metadata":{metadata},"status":{}}}"#, job.status).into())
    }

    /// True if the record lacks one.
    pub(super) fn has_news(&self) -> bool {
        self.all.values().flat_map(BTreeMap::values).any(|job| !job.is_kept)
    }

    /// The record is being written with all of them, or that has failed.
    pub(super) fn are_kept(&mut self, is_kept: bool, now: Instant) {
        self.kept_at = Some(now);
        for job in self.all.values_mut().flat_map(BTreeMap::values_mut) {
            job.is_kept = is_kept;
        }
    }

    /// For the record: a line for each.
    pub(super) fn lines(&self) -> String {
        let all = self.all.iter();
        let jobs = all.flat_map(|(resource, jobs)| jobs.iter().map(move |(name, job)| line(resource, name, job)));
        jobs.collect()
    }

    /// Adds what an earlier run has left in the record. Lines of another form are left out.
    fn restore(&mut self, lines: &str) {
        for (resource, name, job) in lines.lines().filter_map(parse) {
            if self.get(resource, &name).is_none() {
                self.add(resource, &name, job);
            }
        }
    }
}

fn line(resource: &str, name: &ObjectName, job: &FinishedJob) -> String {
    let mut line = format!("{resource} {}/{} {}", name.namespace(), name.name, job.origin);
    if !job.status.is_empty() {
        let _ = write!(line, " {}", job.status);
    }
    line.push('\n');
    line
}

/// True if a line of the record is about a finished Job.
pub(super) fn is_finished_job(line: &str) -> bool {
    parse(line).is_some()
}

fn parse(line: &str) -> Option<(&str, ObjectName, FinishedJob)> {
    let mut words = line.splitn(4, ' ');
    let (resource, name, origin) = (words.next()?, words.next()?, words.next()?);
    let status = words.next().unwrap_or_default();
    let (namespace, name) = name.split_once('/')?;
    let can_be = is_word(resource) && is_path_segment(namespace) && is_path_segment(name) && is_word(origin);
    let is_status = status.starts_with('{') && from_text::<serde::de::IgnoredAny>(status).is_ok();
    let job = FinishedJob {
        origin: origin.to_owned(),
        status: if is_status { status.to_owned() } else { String::new() },
        named: 0,
        is_gone: true,
        is_kept: true,
    };
    can_be.then(|| (resource, ObjectName::new(namespace, name), job))
}

/// True for a Job that the edge removes some time after its end.
fn is_removed_by_its_ttl(object: &Object) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Spec {
        #[serde(default)]
        ttl_seconds_after_finished: Option<i64>,
    }
    let spec = object.field("spec").and_then(|spec| from_text::<Spec>(spec).ok());
    spec.is_some_and(|spec| spec.ttl_seconds_after_finished.is_some())
}

impl Model {
    /// The edge has reported a copy, or that it is gone, and how it was then. If it is a Job that has finished, of which the
    /// hub does not know that, this is remembered.
    pub(super) fn job_may_have_finished(&mut self, type_id: TypeId, name: &ObjectName, object: &Object, is_gone: bool) {
        let we = &self.settings.policy.sync_target;
        let state = self.types.get(&type_id);
        let Some(state) = state.filter(|state| state.plan.direction == Direction::Down) else {
            return;
        };
        let resource = state.copy_type();
        if !runs_once(resource) || !has_finished(resource, object.field("status")) {
            return;
        }
        let meta = &object.meta;
        let is_ours = meta.copy(Direction::Down, resource, we).state == CopyState::Ours;
        let owner = Owner::of(&meta.annotations).filter(|owner| is_ours && is_word(owner.origin));
        let (Some(owner), Some(status)) = (owner, Status::of(object)) else {
            return;
        };
        let is_over = |link: &Link| {
            let is_known = link.status.as_ref().is_some_and(|known| known.is_at_hub(status.hash));
            is_known || link.origin_uid != 0 && link.origin_uid != origin_hash(owner.origin)
        };
        if state.inventory.get(name).is_some_and(is_over) || !is_gone && !is_removed_by_its_ttl(object) {
            return;
        }
        let job = FinishedJob {
            origin: owner.origin.to_owned(),
            status: status.text,
            named: 0,
            is_gone,
            is_kept: false,
        };
        let resource = resource.qualified();
        if self.finished.add(&resource, name, job) {
            self.plan_to_keep_finished();
        } else if is_gone && !std::mem::replace(&mut self.finished.is_full, true) {
            log_line!(
                Warn,
                FinishedJobForgotten,
                "so many finished Jobs are gone at the edge that the record cannot hold more; others would run again after a restart",
                side = "edge",
                object = name.of_kind("Job"),
                advice = "restart the syncer only when the hub has their statuses"
            );
        }
    }

    /// The record is written soon, or at once if the hub is away.
    fn plan_to_keep_finished(&mut self) {
        let is_away = self.sides.of(Side::Hub).answering.is_silent();
        let wait = if is_away { Duration::ZERO } else { RETURNING };
        let next = self.finished.kept_at.map_or(self.now, |at| at + PACE);
        self.timers.set_earlier(Timer::Finished, next.max(self.now + wait));
    }

    /// Writes the record if it lacks a finished Job, and that is due.
    pub(super) fn keep_finished(&mut self) {
        if self.timers.fires(Timer::Finished, self.now) && self.finished.has_news() {
            self.keep_guard_in_record();
        }
    }

    /// An earlier run has left these in the record.
    pub(super) fn restore_finished(&mut self, lines: &str) {
        self.finished.restore(lines);
        if self.finished.has_news() {
            self.plan_to_keep_finished();
        }
    }

    /// The hub has reported an origin with this UID. Another hub that answers for a while has no say.
    pub(super) fn origin_of_finished(
        &mut self,
        type_id: TypeId,
        name: &ObjectName,
        (uid, shows_end): (&str, bool),
        list: ListEpoch,
    ) {
        if let Some(resource) = self.type_of_finished(type_id) {
            self.finished.origin_is(&resource, name, uid, shows_end, list);
        }
    }

    /// The hub has reported that an origin with this UID is gone.
    pub(super) fn origin_of_finished_is_gone(&mut self, type_id: TypeId, name: &ObjectName, uid: &str) {
        if let Some(resource) = self.type_of_finished(type_id) {
            let is_it = |of: &ObjectName, job: &FinishedJob| of == name && job.origin == uid;
            self.finished.remove_where(&resource, is_it);
        }
    }

    /// A list of origins in this scope is complete: what it has not named is gone.
    pub(super) fn origins_of_finished_listed(&mut self, type_id: TypeId, scope: &Scope, list: ListEpoch) {
        if let Some(resource) = self.type_of_finished(type_id)
            && let Some(state) = self.types.get(&type_id)
        {
            let covers = |name: &ObjectName| state.both(name).is_some_and(|(origin, _)| scope.contains(&origin.name));
            self.finished
                .remove_where(&resource, |name, job| job.named != list && covers(name));
        }
    }

    /// The type, if there are finished Jobs, and the hub that answers is the one that they are from.
    fn type_of_finished(&self, type_id: TypeId) -> Option<String> {
        if self.finished.all.is_empty() || self.sides.identity(Side::Hub).is_another() {
            return None;
        }
        let state = self.types.get(&type_id)?;
        let resource = state.copy_type();
        (state.plan.direction == Direction::Down && runs_once(resource)).then(|| resource.qualified())
    }

    /// Nothing selects this type any more, and there are no copies of it.
    pub(super) fn drop_finished(&mut self, dropped: &SyncedType) {
        if dropped.direction == Direction::Down && self.selecting.are_known() {
            let resource = qualified(&dropped.group, &dropped.resource);
            self.finished.remove_where(&resource, |_, _| true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(index: usize) -> ObjectName {
        ObjectName::new("shop", &format!("job-{index}"))
    }

    fn job(index: usize, is_gone: bool) -> FinishedJob {
        FinishedJob {
            origin: format!("0b8a4a5e-3b0c-4d5e-9f3a-{index:012}"),
            status: format!(r#"{{"succeeded":1,"note":"{}"}}"#, "x".repeat(400)),
            named: 0,
            is_gone,
            is_kept: true,
        }
    }

    #[test]
    fn however_many_there_are_the_record_has_room_and_what_is_gone_comes_first() {
        let mut jobs = FinishedJobs::default();
        let added = (0..20_000).filter(|&index| jobs.add("jobs.batch", &name(index), job(index, false)));
        let added = added.count();
        let lines = jobs.lines();
        assert!((4000..5000).contains(&added) && lines.len() <= MOST_BYTES, "{added}");
        assert_eq!(jobs.bytes, lines.len());
        let with_status = lines.lines().filter(|line| line.ends_with('}')).count();
        assert!((400..700).contains(&with_status), "{with_status}");
        for index in 30_000..32_000 {
            let has_room = jobs.add("jobs.batch", &name(index), job(index, true));
            assert_eq!(has_room, jobs.get("jobs.batch", &name(index)).is_some());
        }
        let lines = jobs.lines();
        assert!(lines.len() <= MOST_BYTES && !lines.contains("/job-1 "));
        assert_eq!(jobs.bytes, lines.len());
    }

    #[test]
    fn lines_are_read_as_they_were_written_and_others_are_left_out() {
        let mut jobs = FinishedJobs::default();
        jobs.add("jobs.batch", &name(1), job(1, true));
        let mut bare = job(2, true);
        bare.status = "{\n\"a\": \"x y\"}".to_owned();
        jobs.add("jobs.batch", &name(2), bare);
        let mut read = FinishedJobs::default();
        read.restore(&jobs.lines());
        assert_eq!((&read.all, read.bytes), (&jobs.all, jobs.bytes));
        for line in [
            "",
            "jobs.batch",
            "jobs.batch a u",
            "jobs.batch a/b",
            "jobs.batch a/.. u",
            "a/b a/b u",
            "j a/b u/u",
        ] {
            assert!(parse(line).is_none(), "{line}");
        }
        let (_, _, job) = parse("jobs.batch a/b u {no").expect("it is a line");
        assert_eq!(job.status, "");
    }

    #[test]
    fn a_job_that_is_removed_by_itself_says_so() {
        for (spec, expected) in [
            (json!({"ttlSecondsAfterFinished": 0}), true),
            (json!({"ttlSecondsAfterFinished": null}), false),
            (json!({}), false),
            (json!(null), false),
        ] {
            let job = Bytes::from(json!({"metadata": {"name": "a"}, "spec": spec}).to_string());
            let found = is_removed_by_its_ttl(&Object::parse(job).expect("it is an object"));
            assert_eq!(found, expected, "{spec}");
        }
    }
}
