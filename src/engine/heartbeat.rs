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

use self::writer::{Places, Writer};
use super::configs::ConfigKind;
use super::guard::Condition;
use super::{Engine, TaskEnd};
use crate::cluster::{Error, Side};
use crate::report::Subject;
use crate::sync::object::Meta;

mod writer;

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
    /// What was written last.
    body: Bytes,
    /// The last version of each config that the hub has told of, or answered a beat with.
    versions: BTreeMap<(ConfigKind, String), u64>,
    /// Where the hub keeps the status of configs.
    places: Places,
}

/// What a beat ended with.
pub(super) struct Beaten {
    places: Places,
    configs: Vec<BeatenConfig>,
}

/// What became of one config.
struct BeatenConfig {
    kind: ConfigKind,
    name: String,
    /// The last known version before the beat; 0 if none was known.
    before: u64,
    /// Its metadata as the hub has it now.
    result: Result<Meta, Error>,
}

impl Heartbeat {
    pub(super) fn due(&self) -> Option<Instant> {
        self.due.filter(|_| !self.under_way)
    }

    /// There is no such config any more.
    pub(super) fn forget(&mut self, config: &(ConfigKind, String)) {
        self.versions.remove(config);
    }

    /// The hub has told of a config.
    pub(super) fn told(&mut self, kind: ConfigKind, meta: &Meta) {
        self.versions.insert((kind, meta.name.clone()), meta.version_number());
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
        let is_new = std::mem::replace(&mut self.heartbeat.body, body.clone()) != body;
        let versions = self.heartbeat.versions.clone();
        let places = self.heartbeat.places.clone();
        let task = async move {
            let mut writer = Writer::new(&hub, places);
            let mut configs_beaten = Vec::new();
            for (kind, name) in configs {
                let before = versions.get(&(kind, name.clone())).copied().unwrap_or_default();
                let result = writer.write(kind, &name, &body, Some(before).filter(|_| is_new)).await;
                let unreachable = matches!(&result, Err(error) if error.is_unreachable());
                configs_beaten.push(BeatenConfig {
                    kind,
                    name,
                    before,
                    result,
                });
                if unreachable {
                    break;
                }
            }
            TaskEnd::Beaten(Beaten {
                places: writer.into_places(),
                configs: configs_beaten,
            })
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

    pub(super) fn beaten(&mut self, Beaten { places, configs }: Beaten) {
        self.heartbeat.under_way = false;
        self.heartbeat.places = places;
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
        for BeatenConfig {
            kind,
            name,
            before,
            result,
        } in configs
        {
            let subject = heartbeat_on(kind, &name);
            match result {
                // Whoever polls reads the config once more: its new version may hold an edit that was not seen yet.
                Ok(meta) => {
                    self.report.works(&subject);
                    self.report.wrote(Side::Hub, "heartbeat");
                    self.told.beaten = Some(Instant::now());
                    let version = meta.version_number();
                    // A watch may have told of a newer one meanwhile. What was forgotten meanwhile was another hub's.
                    let known = self.heartbeat.versions.entry((kind, name)).or_default();
                    let before = if *known < before { 0 } else { before };
                    *known = version.max(*known);
                    self.config_written_at(kind, before, version);
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
                    self.fails(subject, "writing the heartbeat", &error);
                }
            }
        }
    }
}

pub(super) fn heartbeat_on(kind: ConfigKind, config: &str) -> Subject {
    Subject::Thing(Side::Hub, format!("the heartbeat on {}//{config}", kind.kind()))
}
