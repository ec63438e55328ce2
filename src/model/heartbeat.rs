//! The heartbeat: the time on the object that stands for this edge, and in `status.lastSyncerHeartbeatTime` on every config,
//! so that people at the hub see since when an edge is silent. Where the hub has such an object, most are for that
//! alone: on a config, it goes to all that watch that.
//!
//! The change that the hub then reports affects nothing that a plan is made from, so it causes no work.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use driver::queue::back_off;
use kube_lite::Error;
use serde_json::json;

use super::config_kind::ConfigKind;
use super::config_status::applied;
use super::edge_object::{EdgeBeat, EdgeBeaten, EdgeNews, EdgeToWrite};
use super::guard::Condition;
use super::pace::SOON;
use super::timers::Timer;
use super::{Model, Request};
use crate::api::HEARTBEAT_FIELD_MANAGER;
use crate::api::edge::Way;
use crate::api::status::{self, DELETES_HELD};
use crate::plan::StatusPath;
use crate::side::Side;
use crate::sync::meta::Meta;
use crate::sync::status_writer::{manager_of, status_manager};
use crate::sync::undeclared::is_not_stored;

/// How long a heartbeat for a new config waits for others that come with it.
const NEW_CONFIG: Duration = Duration::from_secs(1);

/// Where the hub has an object for this edge, configs get each heartbeat of so many: what is written to one that other edges
/// follow too is sent to all of them.
const OF_OURS: u32 = 4;
const OF_SHARED: u32 = 10;

/// What was written to the configs, and where.
#[derive(Default)]
pub(super) struct Heartbeat {
    /// A config has come since the heartbeat under way began.
    again: bool,
    /// How many heartbeats have been since the last one that is for all configs.
    beat: u32,
    /// The condition about holds on the configs, and since when it is so.
    condition: Option<(Condition, String)>,
    /// What was written last.
    body: Bytes,
    marks: BTreeMap<(ConfigKind, String), Mark>,
    /// Where the hub keeps the status of configs.
    places: Places,
}

/// What is known of a config.
#[derive(Clone, Copy, Default)]
struct Mark {
    /// The last version that the hub has reported, or answered a heartbeat with; 0 if none is known.
    version: u64,
    /// It has kept the status that was written last.
    is_kept: bool,
}

/// Where the status of each kind is written. Empty if discovery has not said it yet.
pub(crate) type Places = BTreeMap<ConfigKind, StatusPath>;

/// What is to be written.
pub(crate) struct HeartbeatRequest {
    pub(crate) configs: Vec<ConfigToMark>,
    /// Where it is written, as far as that is known.
    pub(crate) places: Places,
    /// What is written to the object that stands for this edge.
    pub(crate) edge: Option<EdgeBeat>,
}

/// A config to write it to.
pub(crate) struct ConfigToMark {
    pub(crate) kind: ConfigKind,
    pub(crate) name: String,
    /// Its last known version; 0 if none is known.
    pub(crate) before: u64,
    /// It has this status already: two heartbeats were in one second.
    pub(crate) is_kept: bool,
    /// The status to merge into it.
    pub(crate) body: Bytes,
    /// What is applied to it instead, with the field manager, where the hub stores what each edge says.
    pub(crate) entry: Option<(Rc<str>, Bytes)>,
}

/// What a heartbeat ended with.
pub(crate) struct HeartbeatResult {
    pub(crate) places: Places,
    pub(crate) configs: Vec<ConfigHeartbeat>,
    pub(crate) edge: Option<EdgeBeaten>,
}

/// What became of one config.
pub(crate) struct ConfigHeartbeat {
    pub(crate) kind: ConfigKind,
    pub(crate) name: String,
    /// The last known version before the heartbeat; 0 if none was known.
    pub(crate) before: u64,
    /// Its metadata as the hub has it now.
    pub(crate) result: Result<Meta, Error>,
}

/// Statuses to apply, with the field manager that they are applied as.
pub(crate) struct StatusesToWrite {
    pub(crate) manager: String,
    pub(crate) configs: Vec<(ConfigKind, String, Bytes)>,
    /// That of the object that stands for this edge.
    pub(crate) edge: Option<EdgeToWrite>,
}

/// What became of them.
pub(crate) struct StatusesWritten {
    /// With the metadata that each config then has.
    pub(crate) configs: Vec<(ConfigKind, String, Result<Meta, Error>)>,
    pub(crate) edge: Option<Result<(), Error>>,
}

impl Heartbeat {
    /// There is no such config any more.
    pub(super) fn remove(&mut self, config: &(ConfigKind, String)) {
        self.marks.remove(config);
    }

    /// The hub has reported a config.
    pub(super) fn config_seen(&mut self, kind: ConfigKind, meta: &Meta) {
        self.marks.entry((kind, meta.name.clone())).or_default().version = meta.version_number();
    }
}

impl Model {
    /// The configs are known: the first heartbeat is written at once.
    pub(super) fn begin_heartbeats(&mut self) {
        if self.settings.heartbeat.is_some() && !self.timers.is_running(Timer::Heartbeat) {
            self.timers.set_if_idle(Timer::Heartbeat, self.now);
        }
    }

    /// Writes the heartbeat, if that is due.
    pub(super) fn send_heartbeat(&mut self) {
        if self.writes_to_configs() || !self.timers.fires(Timer::Heartbeat, self.now) {
            return;
        }
        self.timers.starts(Timer::Heartbeat);
        let now = (self.settings.clock)();
        let edge = self.edge_object.beat(&now, self.now);
        let (beat, uid) = (self.heartbeat.beat, &self.settings.policy.sync_target.uid);
        let is_due = |of: &(ConfigKind, String)| {
            let every = if self.statuses.is_shared(of, uid) {
                OF_SHARED
            } else {
                OF_OURS
            };
            edge.is_none() || beat.is_multiple_of(every)
        };
        let configs: Vec<_> = self.selecting.names().into_iter().filter(is_due).collect();
        let condition = self.hold_condition();
        if condition.held
            && self
                .heartbeat
                .condition
                .as_ref()
                .is_none_or(|(known, _)| *known != condition)
        {
            // A token confirms no more than the record says after a restart.
            self.keep_guard_in_record();
        }
        let since = match &self.heartbeat.condition {
            Some((known, since)) if known.held == condition.held => since.clone(),
            _ => now.clone(),
        };
        let body = with_condition(&now, &condition, &since);
        self.heartbeat.condition = Some((condition, since));
        let is_new = std::mem::replace(&mut self.heartbeat.body, body.clone()) != body;
        for mark in self.heartbeat.marks.values_mut() {
            mark.is_kept &= !is_new;
        }
        let bare = Bytes::from(json!({"status": {"lastSyncerHeartbeatTime": now}}).to_string());
        let manager: Rc<str> = manager_of(HEARTBEAT_FIELD_MANAGER, &self.settings.policy.sync_target.uid).into();
        let marked = |config: (ConfigKind, String)| {
            let Mark { version, is_kept } = self.heartbeat.marks.get(&config).copied().unwrap_or_default();
            let (kind, name) = config;
            let entry = self.statuses.is_stored(kind).then(|| {
                let uid = &*self.settings.policy.sync_target.uid;
                (Rc::clone(&manager), of_entry(kind, &name, uid, &now))
            });
            // The conditions are written with what the edge says, as soon as it is known whether the hub stores that.
            let has_more = self.statuses.has_more(&(kind, name.clone()));
            let body = if self.statuses.is_lacking(kind, self.now) && !has_more {
                &body
            } else {
                &bare
            };
            ConfigToMark {
                kind,
                name,
                before: version,
                is_kept,
                body: body.clone(),
                entry,
            }
        };
        let configs = configs.into_iter().map(marked).collect();
        let places = self.heartbeat.places.clone();
        self.effects
            .request(Request::Heartbeat(HeartbeatRequest { configs, places, edge }));
    }

    /// The holds have changed: the condition on the configs is updated at once.
    pub(super) fn report_holds(&mut self) {
        self.heartbeat_at_once();
        self.look_at_statuses_soon();
    }

    /// A config is new: it gets a heartbeat soon, with what is held. Others may come with it.
    pub(super) fn heartbeat_soon(&mut self) {
        self.heartbeat.beat = 0;
        self.heartbeat.again = self.timers.is_running(Timer::Heartbeat);
        if self.timers.is_set(Timer::Heartbeat) {
            self.timers.set_earlier(Timer::Heartbeat, self.now + NEW_CONFIG);
        }
    }

    pub(super) fn heartbeat_at_once(&mut self) {
        if self.settings.heartbeat.is_some() && self.selecting.are_known() {
            self.heartbeat.beat = 0;
            self.timers.set(Timer::Heartbeat, self.now);
        }
    }

    pub(super) fn on_heartbeat(&mut self, HeartbeatResult { places, configs, edge }: HeartbeatResult) {
        self.timers.ends(Timer::Heartbeat);
        self.heartbeat.places = places;
        let interval = self.settings.heartbeat.unwrap_or(Duration::MAX);
        // Spread, since many edges may have started together.
        let spread = 0.9 + self.chance.f64() / 5.0;
        let holds = self.hold_condition();
        let reported = self.heartbeat.condition.as_ref().map(|(condition, _)| condition);
        let is_all = reported == Some(&holds) && !std::mem::take(&mut self.heartbeat.again);
        let next = if is_all {
            interval.mul_f64(spread)
        } else {
            NEW_CONFIG.min(interval)
        };
        if let Some(edge) = edge {
            let news = self.edge_object.got_heartbeat(edge, self.now, &mut self.chance);
            if matches!(news, EdgeNews::Works | EdgeNews::Written) {
                self.answered.heartbeat = Some(self.now);
            }
            self.edge_was_written(news, "heartbeat", "writing the heartbeat");
        }
        // A hub that is back gets one at once.
        let has_failed = |config: &ConfigHeartbeat| match &config.result {
            Err(error) => !error.is_unreachable() && !error.proves_absent(&config.name),
            Ok(_) => false,
        };
        let next = if configs.iter().any(has_failed) {
            let failures = self.timers.fails(Timer::Heartbeat);
            next.min(back_off(failures, self.chance.f64()))
        } else {
            self.timers.succeeds(Timer::Heartbeat);
            next
        };
        let are_marked = configs.iter().all(|config| config.result.is_ok());
        self.heartbeat.beat = if is_all && are_marked && self.edge_object.is_stored() {
            self.heartbeat.beat.wrapping_add(1)
        } else {
            0
        };
        self.timers.set(Timer::Heartbeat, self.now + next);
        self.ask_strangers_again();
        for config in configs {
            self.config_got_heartbeat(config);
        }
    }

    fn config_got_heartbeat(&mut self, config: ConfigHeartbeat) {
        let ConfigHeartbeat {
            kind,
            name,
            before,
            result,
        } = config;
        let subject = kind.heartbeat_on(&name);
        match result {
            // Whoever polls reads the config once more: its new version may hold an edit that was not seen yet.
            Ok(meta) => {
                self.report.works(&subject);
                self.report.wrote(Side::Hub, "heartbeat");
                self.answered.heartbeat = Some(self.now);
                let version = meta.version_number();
                // A watch may have reported a newer one meanwhile. A mark that was dropped meanwhile was another
                // hub's.
                let known = self.heartbeat.marks.entry((kind, name)).or_default();
                let before = if known.version < before { 0 } else { before };
                known.version = version.max(known.version);
                known.is_kept = true;
                self.config_written_at(kind, before, version);
            }
            Err(error) if error.is_unreachable() => self.side_is_silent(Side::Hub, "writing the heartbeat", &error),
            // The config was deleted meanwhile, or another hub answers.
            Err(error) if error.proves_absent(&name) => {
                self.report.clear(&subject);
                self.heartbeat.remove(&(kind, name));
                self.ask_identity(Side::Hub);
            }
            Err(error) if self.statuses.is_stored(kind) && is_not_stored(&error) => {
                self.lacks_status(kind, &error);
            }
            Err(error) => self.fails(subject, "writing the heartbeat", &error),
        }
    }

    /// True if configs are being written. One write follows another, since an answer that comes after that to a later write
    /// would look as if the hub had gone back to older versions.
    pub(super) fn writes_to_configs(&self) -> bool {
        self.timers.is_running(Timer::Heartbeat) || self.timers.is_running(Timer::ConfigStatus)
    }

    /// Something has happened that may change what the configs say.
    pub(super) fn look_at_statuses_soon(&mut self) {
        // A hub that is silent gets the heartbeat first, so that a link that passes little is not asked for more.
        let is_silent = self.sides.of(Side::Hub).answering.is_silent();
        if self.settings.heartbeat.is_some() && self.selecting.are_known() && !is_silent {
            self.timers.set_earlier(Timer::ConfigStatus, self.now + SOON);
        }
    }

    /// Compares what this edge says of the configs with what the hub has, and applies what differs.
    pub(super) fn write_statuses(&mut self) {
        if self.writes_to_configs()
            || !self.timers.fires(Timer::ConfigStatus, self.now)
            || self.sides.of(Side::Hub).answering.is_silent()
        {
            return;
        }
        let are_complete = self.knows_all() && !self.selecting.changed;
        if self.statuses.waits_for_lists(are_complete, self.now) {
            self.timers.set(Timer::ConfigStatus, self.now + SOON);
            return;
        }
        let (of_edge, total) = self.of_edge(self.hold_condition(), are_complete);
        self.events_of_configs(&of_edge);
        let clock = (self.settings.clock)();
        let uid = &self.settings.policy.sync_target.uid;
        let (configs, again) = self.statuses.differing(of_edge, uid, &clock, self.now);
        let manager = status_manager(uid);
        let since_1970 = (self.settings.since_1970)();
        let ways = self.ways(since_1970);
        let times = (&*clock, since_1970, self.now);
        let (edge, edge_again) = self.edge_object.differs(total, &ways, times);
        if edge.is_some() || !configs.is_empty() {
            self.timers.starts(Timer::ConfigStatus);
            let all = StatusesToWrite { manager, configs, edge };
            self.effects.request(Request::Statuses(all));
        } else if let Some(again) = again.into_iter().chain(edge_again).min() {
            self.timers.set(Timer::ConfigStatus, again);
        }
    }

    /// What is known of the ways to both sides.
    fn ways(&mut self, since_1970: Duration) -> Vec<Way> {
        let mut ways = Vec::new();
        for &side in &*self.sides.ids() {
            let state = self.sides.of(side);
            let ahead = state.contact.figures.clock_ahead(self.now, since_1970);
            ways.push(Way {
                side: side.word(),
                is_refusing: state.answering.is_refusing(),
                credentials_end: state.contact.credentials_end,
                are_renewed: side == Side::Hub && self.settings.renews,
                clock: ahead.map(|ahead| self.edge_object.clock(side, ahead)),
            });
        }
        ways
    }

    /// Something was written to the object that stands for this edge, or was to be.
    fn edge_was_written(&mut self, news: EdgeNews, what: &'static str, doing: &str) {
        let subject = self.edge_object.subject();
        if matches!(news, EdgeNews::Works | EdgeNews::Written) {
            self.report.wrote(Side::Hub, what);
        }
        match news {
            EdgeNews::Works => {
                self.report.works(&subject);
            }
            EdgeNews::Written => {}
            EdgeNews::NotServed => self.report.clear(&subject),
            EdgeNews::Gone => self.heartbeat_at_once(),
            EdgeNews::Fails(error) if error.is_unreachable() => self.side_is_silent(Side::Hub, doing, &error),
            EdgeNews::Fails(error) => self.fails(subject, doing, &error),
        }
    }

    pub(super) fn on_statuses(&mut self, written: StatusesWritten) {
        self.timers.ends(Timer::ConfigStatus);
        if let Some(result) = written.edge {
            let news = self.edge_object.got_status(result, self.now, &mut self.chance);
            self.edge_was_written(news, "status", "writing the status");
        }
        for (kind, name, result) in written.configs {
            let of = (kind, name);
            let subject = kind.status_of(&of.1);
            match result {
                Ok(meta) => {
                    self.report.works(&subject);
                    self.report.wrote(Side::Hub, "status");
                    let version = meta.version_number();
                    if let Some(before) = self.statuses.is_written(&of, version, self.now) {
                        self.config_written_at(kind, before, version);
                    }
                }
                Err(error) if error.is_unreachable() => self.side_is_silent(Side::Hub, "writing the status", &error),
                Err(error) if error.proves_absent(&of.1) => self.report.clear(&subject),
                Err(error) if is_not_stored(&error) => {
                    self.report.clear(&subject);
                    self.lacks_status(kind, &error);
                }
                Err(error) => {
                    self.statuses.is_refused(&of, self.now, self.chance.f64());
                    self.fails(subject, "writing the status", &error);
                }
            }
        }
        self.look_at_statuses_soon();
    }

    /// The hub does not store the status of this kind: it gets the heartbeat only, with what is held.
    fn lacks_status(&mut self, kind: ConfigKind, error: &Error) {
        let (is_news, is_first) = self.statuses.is_not_stored(kind, self.now);
        if is_first {
            self.report.keeps_no_status(kind.kind(), error);
        }
        if is_news {
            self.heartbeat_at_once();
        }
    }
}

/// What is merged into the status of configs of which the hub stores no more.
fn with_condition(now: &str, condition: &Condition, since: &str) -> Bytes {
    let status = json!({"lastSyncerHeartbeatTime": now, "conditions": [{
        "type": DELETES_HELD,
        "status": status::word(condition.held),
        "reason": condition.reason,
        "message": condition.message,
        "lastTransitionTime": since,
    }]});
    Bytes::from(json!({"status": status}).to_string())
}

/// What is applied as a heartbeat where the hub stores what each edge says: one that others write does not count as this
/// edge's.
fn of_entry(kind: ConfigKind, name: &str, uid: &str, now: &str) -> Bytes {
    let status = json!({"lastSyncerHeartbeatTime": now, "edges": [{"syncTargetUID": uid, "lastHeartbeatTime": now}]});
    applied(kind.kind(), name, &status)
}
