//! The object that stands for this edge at the hub: what is written to it, and when.
//!
//! It is not watched, so that a heartbeat of one edge wakes no other. What the hub has follows from what was written, and
//! from the answer to the first heartbeat, which has the whole object. Where the hub has no such type, or does not allow it to be
//! written, all else goes on as without it.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use driver::few::Few;
use fastrand::Rng;
use kube_lite::Error;
use serde_json::json;
use tokio::time::Instant;

use super::Settings;
use super::config_status::applied;
use super::pace::{Differs, Pace, RARELY, Stores};
use crate::api::edge::{self, EdgeStatus, Identity, KubernetesVersions, Way};
use crate::api::status::{Condition, OfEdge};
use crate::api::{GROUP, SYNC_TARGET_NAME, VERSION};
use crate::clocks::Difference;
use crate::plan::is_label;
use crate::report::{Subject, Topic};
use crate::side::Side;
use crate::sync::own_objects::edge_name;
use crate::sync::undeclared::is_not_stored;
use crate::version;

/// How often both servers are asked for their version, if they do not seem to have been away.
const VERSIONS: Duration = Duration::from_secs(86_400);

/// What is known of it.
pub(super) struct EdgeObject {
    name: Rc<str>,
    identity: Identity,
    stores: Stores,
    /// Whether it stores what the edge says, beside heartbeats.
    stores_status: Stores,
    /// Whether heartbeats are refused.
    beats: Pace,
    /// How its status was written.
    pace: Pace,
    /// The object as the hub has answered last, if it is known what its status is.
    seen: Option<EdgeSeen>,
    /// Its status, if we have written it.
    is: Option<EdgeStatus>,
    writing: Option<EdgeStatus>,
    versions: KubernetesVersions,
    /// When both servers were last asked for that.
    versions_asked: Option<Instant>,
    clocks: Few<Side, Difference>,
}

/// A heartbeat to write to it.
pub(crate) struct EdgeBeat {
    pub(crate) name: Rc<str>,
    /// What is applied to its status.
    pub(crate) body: Bytes,
    /// What is applied first if it is not there.
    pub(crate) object: Bytes,
    /// What the hub has of it is not known: the answer is to be whole.
    pub(crate) is_unknown: bool,
    /// Both servers are to be asked for their versions.
    pub(crate) asks_versions: bool,
}

/// What a heartbeat ended with.
pub(crate) struct EdgeBeaten {
    pub(crate) result: EdgeResult,
    /// Of hub and edge, if they were asked.
    pub(crate) versions: Option<KubernetesVersions>,
}

/// What became of it.
pub(crate) enum EdgeResult {
    /// The hub has it.
    Kept(EdgeSeen),
    /// The hub does not serve its type.
    NotServed,
    /// It could not be written.
    Failed(Error),
}

/// The object as the hub has answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EdgeSeen {
    pub(crate) uid: String,
    pub(crate) generation: i64,
    /// Its conditions, if the answer was whole.
    pub(crate) conditions: Vec<Condition>,
}

/// What has come of a write.
pub(super) enum EdgeNews {
    /// The hub has it, and nothing that was tried for this object has failed since.
    Works,
    /// The hub has it.
    Written,
    /// The hub does not have the type.
    NotServed,
    /// The object is gone, and made again with the next heartbeat.
    Gone,
    Fails(Error),
}

/// A status to apply.
pub(crate) struct EdgeToWrite {
    pub(crate) name: Rc<str>,
    pub(crate) body: Bytes,
}

impl EdgeObject {
    pub(super) fn new(settings: &Settings) -> Self {
        let (uid, name) = (&settings.policy.sync_target.uid, &settings.sync_target_name);
        Self {
            name: edge_name(name, uid).into(),
            identity: Identity {
                uid: uid.clone(),
                name: name.clone(),
                version: version::VERSION.to_owned(),
                holder: settings.holder.clone(),
                heartbeat_interval_seconds: settings.heartbeat.unwrap_or_default().as_secs(),
            },
            stores: Stores::default(),
            stores_status: Stores::default(),
            beats: Pace::default(),
            pace: Pace::default(),
            seen: None,
            is: None,
            writing: None,
            versions: KubernetesVersions::default(),
            versions_asked: None,
            clocks: Few::default(),
        }
    }

    /// What it is called in the log.
    pub(super) fn subject(&self) -> Subject {
        Subject::Thing(Side::Hub, Topic::Edge, format!("{}//{}", edge::KIND, self.name))
    }

    /// The heartbeat to write at this time, if the hub may take it.
    pub(super) fn beat(&self, clock: &str, now: Instant) -> Option<EdgeBeat> {
        if self.stores.is_lacking(now) || self.beats.is_put_off(now) {
            return None;
        }
        let is_known = self.seen.is_some();
        let is_due = self.versions_asked.is_none_or(|at| now.duration_since(at) >= VERSIONS);
        let mut metadata = json!({"name": &*self.name});
        if is_label(&self.identity.name) {
            metadata["labels"] = json!({SYNC_TARGET_NAME: self.identity.name});
        }
        let object =
            json!({"apiVersion": format!("{GROUP}/{VERSION}"), "kind": edge::KIND, "metadata": metadata}).to_string();
        Some(EdgeBeat {
            name: Rc::clone(&self.name),
            body: applied(edge::KIND, &self.name, &json!({"lastHeartbeatTime": clock})),
            object: Bytes::from(object),
            is_unknown: !is_known,
            asks_versions: is_due,
        })
    }

    /// The hub, or the object, may be another one now.
    pub(super) fn may_be_another(&mut self) {
        (self.seen, self.is) = (None, None);
    }

    /// A server may have another version now.
    pub(super) fn versions_may_differ(&mut self) {
        self.versions_asked = None;
    }

    /// The hub has answered with it.
    fn is_kept(&mut self, seen: EdgeSeen, now: Instant) {
        self.stores = Stores::It;
        self.beats.is_written(now);
        match &mut self.seen {
            None => self.seen = Some(seen),
            Some(known) if known.uid == seen.uid => known.generation = seen.generation,
            // Somebody has deleted it, and it was made again. Its status is asked for with the next heartbeat.
            Some(_) => self.may_be_another(),
        }
    }

    /// True if the hub keeps heartbeats of this edge.
    pub(super) fn is_stored(&self) -> bool {
        self.stores == Stores::It && !self.beats.has_failed()
    }

    /// What is to be applied so that the hub has this status, and when that is to be checked again, if it has to wait.
    fn differing(&mut self, status: EdgeStatus, now: Instant) -> (Option<EdgeToWrite>, Option<Instant>) {
        let differs = match &self.is {
            Some(is) if *is == status => Differs::Not,
            Some(is) if !status.is_news(is) => Differs::ByCounts(RARELY),
            _ => Differs::ByMore,
        };
        let waits = self.pace.waits(status.counts.pending > 0, differs, now);
        if waits.is_some() || differs == Differs::Not {
            return (None, waits);
        }
        let body = applied(edge::KIND, &self.name, &status.to_json());
        self.writing = Some(status);
        let name = Rc::clone(&self.name);
        (Some(EdgeToWrite { name, body }), None)
    }

    /// What came of a heartbeat.
    pub(super) fn got_heartbeat(
        &mut self,
        EdgeBeaten { result, versions }: EdgeBeaten,
        now: Instant,
        chance: &mut Rng,
    ) -> EdgeNews {
        if let Some(KubernetesVersions { hub, edge }) = versions {
            for (known, version) in [(&mut self.versions.hub, hub), (&mut self.versions.edge, edge)] {
                // A side that is away has the version that it had.
                if !version.is_empty() {
                    *known = version;
                }
            }
            self.versions_asked = Some(now);
        }
        match result {
            EdgeResult::Kept(seen) => {
                self.is_kept(seen, now);
                if self.pace.has_failed() {
                    EdgeNews::Written
                } else {
                    EdgeNews::Works
                }
            }
            EdgeResult::NotServed => {
                self.stores.is_not_stored(now);
                EdgeNews::NotServed
            }
            EdgeResult::Failed(error) => {
                if !error.is_unreachable() {
                    self.beats.is_refused(now, chance.f64());
                }
                EdgeNews::Fails(error)
            }
        }
    }

    /// What is to be written to its status, if anything, and when to look again. `clock` and `since_1970` are the time.
    pub(super) fn differs(
        &mut self,
        mut total: OfEdge,
        ways: &[Way],
        (clock, since_1970, now): (&str, Duration, Instant),
    ) -> (Option<EdgeToWrite>, Option<Instant>) {
        let is_stored = self.stores == Stores::It && !self.stores_status.is_lacking(now);
        let Some(seen) = self.seen.as_ref().filter(|_| is_stored) else {
            return (None, None);
        };
        total.observed_generation = seen.generation;
        let known = match &self.is {
            Some(is) => &is.conditions,
            None => &seen.conditions,
        };
        let conditions = edge::conditions(&total, ways, since_1970);
        let status = EdgeStatus::of(&self.identity, &self.versions, &total, conditions, (known, clock));
        self.differing(status, now)
    }

    /// What is said of the clock of a side that is so many seconds ahead: by how many, and whether these are too many.
    pub(super) fn clock(&mut self, side: Side, ahead: i64) -> (i64, bool) {
        let difference = self.clocks.or_default(side);
        difference.is(ahead);
        (difference.ahead, difference.differs)
    }

    /// What came of writing its status.
    pub(super) fn got_status(&mut self, result: Result<(), Error>, now: Instant, chance: &mut Rng) -> EdgeNews {
        let writing = self.writing.take();
        match result {
            Ok(()) => {
                self.is = writing;
                self.stores_status = Stores::It;
                self.pace.is_written(now);
                EdgeNews::Works
            }
            Err(error) if error.is_unreachable() => EdgeNews::Fails(error),
            Err(error) if error.proves_absent(&self.name) => {
                self.may_be_another();
                EdgeNews::Gone
            }
            Err(error) if error.is_type_not_served() => {
                self.stores.is_not_stored(now);
                EdgeNews::NotServed
            }
            Err(error) => {
                if is_not_stored(&error) {
                    self.stores_status.is_not_stored(now);
                }
                self.pace.is_refused(now, chance.f64());
                EdgeNews::Fails(error)
            }
        }
    }
}
