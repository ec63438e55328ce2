//! The heartbeat: `status.lastSyncerHeartbeatTime` on every config, so that the centre sees since when an edge is silent
//! (spec sections 1 and 2, scenario 42).
//!
//! Its echo changes nothing that a plan is made of, so it causes no work.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use serde_json::json;
use tokio::time::Instant;

use super::configs::ConfigKind;
use super::guard::Condition;
use super::{Engine, TaskEnd};
use crate::cluster::{Content, Error, ObjectName, Side};
use crate::report::Subject;
use crate::sync::object::Meta;

/// How long a new config waits for others that come with it.
const NEW_CONFIG: Duration = Duration::from_secs(1);

/// When to beat next.
#[derive(Default)]
pub(super) struct Heartbeat {
    due: Option<Instant>,
    under_way: bool,
    /// A config has come since the beat under way began.
    again: bool,
    /// What the configs were told of holds, and since when.
    condition: Option<(Condition, String)>,
    /// The version that each config got with the last beat.
    versions: BTreeMap<(ConfigKind, String), u64>,
}

/// What became of each config: its metadata as the hub has it now.
pub(super) struct Beaten(Vec<(ConfigKind, String, Result<Meta, Error>)>);

impl Heartbeat {
    pub(super) fn due(&self) -> Option<Instant> {
        self.due.filter(|_| !self.under_way)
    }

    /// There is no such config any more.
    pub(super) fn forget(&mut self, config: &(ConfigKind, String)) {
        self.versions.remove(config);
    }

    /// Another hub may have given them their versions.
    pub(super) fn forget_all(&mut self) {
        self.versions.clear();
    }
}

impl Engine {
    /// The configs are known: the first beat goes at once.
    pub(super) fn begin_to_beat(&mut self) {
        if self.setup.heartbeat.is_some() && !self.heartbeat.under_way {
            self.heartbeat.due.get_or_insert_with(Instant::now);
        }
    }

    /// Marks all configs with the time, where that is due.
    pub(super) fn beat(&mut self) {
        if self.heartbeat.due().is_none_or(|due| due > Instant::now()) {
            return;
        }
        self.heartbeat.under_way = true;
        let configs = self.selecting.names();
        let hub = Rc::clone(&self.setup.hub);
        let now = (self.setup.clock)();
        let condition = self.holds();
        let since = match &self.heartbeat.condition {
            Some((known, since)) if known.held == condition.held => since.clone(),
            _ => now.clone(),
        };
        let body = json!({"status": {"lastSyncerHeartbeatTime": now, "conditions": [{
            "type": "DeletesHeld",
            "status": if condition.held { "True" } else { "False" },
            "reason": condition.reason,
            "message": condition.message,
            "lastTransitionTime": since,
        }]}});
        self.heartbeat.condition = Some((condition, since));
        let body = Bytes::from(body.to_string());
        let task = async move {
            let mut results = Vec::new();
            for (kind, name) in configs {
                let at = ObjectName::new("", &name);
                let answer = hub
                    .merge_patch_for(&kind.resource_type(), &at, body.clone(), Content::Metadata)
                    .await;
                let unreachable = matches!(&answer, Err(error) if error.is_unreachable());
                results.push((kind, name, answer.and_then(|object| Meta::parse(&object))));
                if unreachable {
                    break;
                }
            }
            TaskEnd::Beaten(Beaten(results))
        };
        self.tasks.push(task.boxed_local());
    }

    /// What the configs say of holds is no longer so: they are told at once.
    pub(super) fn tell_of_holds(&mut self) {
        self.beat_at_once();
    }

    /// A config is new: it learns soon that it is seen, and what is held. Others may come with it.
    pub(super) fn beat_soon(&mut self) {
        self.heartbeat.again = self.heartbeat.under_way;
        if let Some(due) = &mut self.heartbeat.due {
            *due = (*due).min(Instant::now() + NEW_CONFIG);
        }
    }

    pub(super) fn beat_at_once(&mut self) {
        if self.setup.heartbeat.is_some() && self.selecting.are_known() {
            self.heartbeat.due = Some(Instant::now());
        }
    }

    pub(super) fn beaten(&mut self, Beaten(results): Beaten) {
        self.heartbeat.under_way = false;
        let interval = self.setup.heartbeat.unwrap_or(Duration::MAX);
        // Spread, since many edges may have started together.
        let spread = 0.9 + fastrand::f64() / 5.0;
        let holds = self.holds();
        let told = self.heartbeat.condition.as_ref().map(|(condition, _)| condition);
        let next = if told == Some(&holds) && !std::mem::take(&mut self.heartbeat.again) {
            interval.mul_f64(spread)
        } else {
            NEW_CONFIG.min(interval)
        };
        self.heartbeat.due = Some(Instant::now() + next);
        self.ask_strangers_again();
        for (kind, name, result) in results {
            let subject = heartbeat_on(kind, &name);
            match result {
                // Whoever polls reads the config once more: its new version may hold an edit that was not seen yet.
                Ok(meta) => {
                    self.report.works(&subject);
                    self.report.wrote(Side::Hub, "heartbeat");
                    self.told.beaten = Some(Instant::now());
                    let version = meta.version_number();
                    let before = self.heartbeat.versions.insert((kind, name), version);
                    self.config_written_at(kind, before.unwrap_or_default(), version);
                }
                Err(error) if error.is_unreachable() => {
                    self.side_is_silent(Side::Hub, "writing the heartbeat", &error);
                }
                // It has gone meanwhile, or another hub answers.
                Err(error) if error.proves_absent(&name) => {
                    self.report.forget(&subject);
                    self.heartbeat.versions.remove(&(kind, name));
                    self.ask_identity(Side::Hub);
                }
                Err(error) => {
                    self.report.failed(subject, "writing the heartbeat", &error);
                }
            }
        }
    }
}

pub(super) fn heartbeat_on(kind: ConfigKind, config: &str) -> Subject {
    Subject::Thing(Side::Hub, format!("the heartbeat on {}//{config}", kind.kind()))
}
