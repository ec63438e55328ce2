//! Configs, and what they ask for.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use driver::few::Few;
use driver::source::SourceId;
use driver::source::{Reading, Style};
use kube_lite::logging::log_line;
use kube_lite::{Error, Scope};
use tokio::time::Instant;

use super::config_kind::ConfigKind;
use super::timers::Timer;
use super::turns::Turns;
use super::{Feed, Model};
use crate::api::edge_sync_config::EdgeSyncConfig;
use crate::api::syncer_config::SyncerConfig;
use crate::plan::{ConfigPlace, Missing, Problem, Sliced, SyncedType, Unknown, Wanted};
use crate::report::{Subject, Topic};
use crate::side::Side;
use crate::sync::meta::{Meta, Object};

/// The time between two requests for a kind of configs that the hub does not serve, while it serves the other one.
const KIND_INTERVAL: Duration = Duration::from_secs(600);
/// Requests for a kind that the hub used to serve before they become rare: some minutes.
const KIND_TRIES: u32 = 10;
/// The same for one that it has not served so far: half a minute, in which a hub that starts, or a proxy before it, is
/// up. The hub must also say it so often if its discovery does not say the same.
const FIRST_KIND_TRIES: u32 = 5;

/// One config.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Config {
    SyncerConfig(Rc<SyncerConfig>),
    EdgeSyncConfig(Rc<EdgeSyncConfig>),
}

impl Config {
    fn parse(kind: ConfigKind, object: &[u8]) -> Result<Self, serde_json::Error> {
        match kind {
            ConfigKind::SyncerConfig => SyncerConfig::parse(object).map(Rc::new).map(Self::SyncerConfig),
            ConfigKind::EdgeSyncConfig => EdgeSyncConfig::parse(object).map(Rc::new).map(Self::EdgeSyncConfig),
        }
    }
}

/// A config as it was read.
struct Known {
    uid: String,
    config: Config,
}

/// Kind and name of a config.
pub(super) type ConfigName = (ConfigKind, String);

/// How far the configs of one kind are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ConfigsKnown {
    /// They have not been read.
    #[default]
    No,
    /// The hub has no such kind, as two of its answers say: the one to the list, and its discovery. A 404 alone may
    /// come from a proxy before the hub.
    NotServed,
    /// They have been read completely.
    Yes,
}

/// The configs, and what they ask for.
#[derive(Default)]
pub(super) struct SelectedConfigs {
    configs: BTreeMap<ConfigName, Known>,
    /// Names that the list under way has given so far, by kind.
    listing: Few<ConfigKind, BTreeSet<String>>,
    known: Few<ConfigKind, ConfigsKnown>,
    /// How often in a row the hub has said that it does not serve a kind.
    not_served: Few<ConfigKind, u32>,
    /// The configs have changed since the plan was made that is followed.
    pub(super) changed: bool,
    /// They have been put together since, or are being put together.
    pub(super) merged: bool,
    pub(super) turns: Turns,
    /// What changes before then is planned together: the last plan was large.
    pub(super) pause_until: Option<Instant>,
    pub(super) wanted: Rc<Wanted>,
    pub(super) missing: Vec<Missing>,
    /// What was logged as missing, and of which its side has to be asked again.
    pub(super) unsure: Vec<Missing>,
    pub(super) unknown: Unknown,
    /// Groups of which everything is selected, also types that do not exist yet.
    pub(super) open: BTreeSet<(Side, String)>,
    pub(super) problems: BTreeSet<Problem>,
    /// Entries that the edge's owner does not allow.
    pub(super) denied: BTreeSet<Problem>,
    /// How often in a row a side has said that it does not serve the origins of a type, and when it was counted last.
    pub(super) gone: BTreeMap<SyncedType, (u32, Instant)>,
    /// Types whose copies' side has confirmed that it does not serve them.
    pub(super) without_copies: BTreeSet<SyncedType>,
    /// Configs that cannot be read; their last readable form stays in force.
    pub(super) unreadable: BTreeMap<ConfigName, Problem>,
}

impl SelectedConfigs {
    pub(super) fn list_begins(&mut self, kind: ConfigKind) {
        *self.listing.or_default(kind) = BTreeSet::new();
    }

    /// Kinds and names of all configs.
    pub(super) fn names(&self) -> Vec<ConfigName> {
        let all: BTreeSet<_> = self.configs.keys().chain(self.unreadable.keys()).cloned().collect();
        all.into_iter().collect()
    }

    /// True if there are configs of this kind.
    pub(super) fn has_any(&self, kind: ConfigKind) -> bool {
        let mut all = self.configs.keys().chain(self.unreadable.keys());
        all.any(|(of_kind, _)| *of_kind == kind)
    }

    /// True if the configs of this kind have been read completely, and are reported.
    pub(super) fn has_listed(&self, kind: ConfigKind) -> bool {
        let is_interrupted = self.is_not_served(kind) || self.listing.get(kind).is_some();
        self.known(kind) == ConfigsKnown::Yes && !is_interrupted
    }

    /// True if a config cannot be read, and has no readable form from before.
    pub(super) fn has_unread(&self) -> bool {
        let mut unreadable = self.unreadable.keys();
        unreadable.any(|name| !self.configs.contains_key(name))
    }

    fn has_listed_any(&self) -> bool {
        ConfigKind::ALL.into_iter().any(|kind| self.has_listed(kind))
    }

    /// True if the hub has said last that it does not serve this kind.
    fn is_not_served(&self, kind: ConfigKind) -> bool {
        self.not_served.get(kind).is_some()
    }

    fn known(&self, kind: ConfigKind) -> ConfigsKnown {
        self.known.get(kind).copied().unwrap_or_default()
    }

    /// True once all configs have been read. A kind that the hub does not serve has none, as long as it serves the
    /// other one: a hub with neither may not be the hub at all.
    pub(super) fn are_known(&self) -> bool {
        let known = ConfigKind::ALL.map(|kind| self.known(kind));
        !known.contains(&ConfigsKnown::No) && known.contains(&ConfigsKnown::Yes)
    }

    /// False once the hub has said of every kind that it does not serve it, whether or not that counts yet. It has to say
    /// so for some minutes of one that it has served before.
    fn may_serve_any(&self) -> bool {
        let is_denied = |kind| match self.known(kind) {
            ConfigsKnown::No => self.is_not_served(kind),
            ConfigsKnown::NotServed => true,
            ConfigsKnown::Yes => self.not_served.get(kind).is_some_and(|tries| *tries >= KIND_TRIES),
        };
        !ConfigKind::ALL.into_iter().all(is_denied)
    }

    /// Kinds of which the list alone says that they are not served.
    pub(super) fn unverified(&self) -> impl Iterator<Item = ConfigKind> {
        let is_unverified = |kind: &ConfigKind| self.known(*kind) == ConfigsKnown::No && self.is_not_served(*kind);
        ConfigKind::ALL.into_iter().filter(is_unverified)
    }

    /// The configs have changed.
    fn change(&mut self) {
        (self.changed, self.merged) = (true, false);
    }

    /// True between the turns in which a large plan is made and followed.
    pub(super) fn is_in_turns(&self) -> bool {
        self.turns.plan.is_some() || self.changed && self.merged
    }

    /// Puts the configs together, which have changed.
    pub(super) fn merging(&mut self, renaming: bool) -> Sliced<Wanted> {
        self.merged = true;
        let (mut syncer_configs, mut edge_sync_configs) = (Vec::new(), Vec::new());
        for known in self.configs.values() {
            match &known.config {
                Config::SyncerConfig(config) => syncer_configs.push(Rc::clone(config)),
                Config::EdgeSyncConfig(config) => edge_sync_configs.push(Rc::clone(config)),
            }
        }
        Wanted::merging(syncer_configs, edge_sync_configs, renaming)
    }
}

impl Model {
    pub(super) fn watch_configs(&mut self) {
        for kind in ConfigKind::ALL {
            self.watch_configs_of(kind);
        }
    }

    fn watch_configs_of(&mut self, kind: ConfigKind) {
        let reading = Reading {
            resource: kind.resource_type(),
            scope: Scope::default(),
            style: Style::Whole,
        };
        self.start_source(Feed::Configs(kind), reading);
    }

    /// Asks again for the kinds that the hub did not serve, where that is due.
    pub(super) fn poll_config_kinds(&mut self) {
        for kind in ConfigKind::ALL {
            if self.timers.fires(Timer::Configs(kind), self.now) {
                self.watch_configs_of(kind);
            }
        }
    }

    pub(super) fn config_object(&mut self, kind: ConfigKind, object: Object) {
        let (bytes, meta) = (object.bytes().clone(), object.meta);
        if let Some(listing) = self.selecting.listing.get_mut(kind) {
            listing.insert(meta.name.clone());
        }
        self.heartbeat.config_seen(kind, &meta);
        if self.settings.heartbeat.is_some() {
            let uid = &self.settings.policy.sync_target.uid;
            let chance = || self.chance.f64();
            if self.statuses.config_seen((kind, &meta), &bytes, uid, self.now, chance) {
                log_line!(
                    Warn,
                    StatusOfAnother,
                    "somebody else keeps writing what this edge says of a config; it is written ever less often",
                    config = kind.of_name(&meta.name),
                    uid = uid,
                    advice = "give each edge a UID of its own (--sync-target-uid); of two syncers of one edge, one has to end, or \
                              both need --leader-elect"
                );
            }
        }
        let name = (kind, meta.name);
        let token = meta.annotations.get(crate::api::CONFIRM_DELETES);
        let begins = self.selecting.known(kind) != ConfigsKnown::Yes;
        self.config_confirms(kind.of_name(&name.1), token, begins);
        let was_unreadable = self.selecting.unreadable.remove(&name).is_some();
        match Config::parse(kind, &bytes) {
            Ok(config) => {
                let read = Known { uid: meta.uid, config };
                let old = self.selecting.configs.get(&name);
                let is_new = old.is_none();
                let is_another = old.is_some_and(|old| old.uid != read.uid);
                let is_equal = old.is_some_and(|old| old.config == read.config);
                self.selecting.configs.insert(name, read);
                if is_new {
                    self.heartbeat_soon();
                    // What defines its kind may not be known yet.
                    self.timers.set_if_idle(Timer::Definitions, self.now);
                }
                if is_another {
                    // Its kind may have been deleted and defined again unseen.
                    self.ask_about_configs();
                }
                if is_equal && !was_unreadable {
                    return;
                }
            }
            Err(error) => {
                let problem = Problem {
                    place: ConfigPlace {
                        config: kind.of_name(&name.1).into(),
                        field: String::new(),
                    },
                    message: format!("cannot be read, its last readable form remains in force: {error}"),
                };
                self.selecting.unreadable.insert(name, problem);
            }
        }
        self.selecting.change();
        if self.selecting.are_known() && self.selecting.listing.is_empty() {
            self.plan_changes();
        }
    }

    pub(super) fn config_unchanged(&mut self, kind: ConfigKind, meta: &Meta) {
        if let Some(listing) = self.selecting.listing.get_mut(kind) {
            listing.insert(meta.name.clone());
        }
    }

    pub(super) fn config_gone(&mut self, kind: ConfigKind, meta: &Meta) {
        self.remove_config(&(kind, meta.name.clone()));
        if self.selecting.are_known() {
            self.plan_changes();
        }
    }

    pub(super) fn configs_listed(&mut self, kind: ConfigKind) {
        let selecting = &mut self.selecting;
        let Some(named) = selecting.listing.remove(kind) else {
            return;
        };
        let gone = |(of_kind, name): &ConfigName| *of_kind == kind && !named.contains(name);
        let gone: Vec<_> = selecting.names().into_iter().filter(gone).collect();
        let was_denied = selecting.not_served.remove(kind).is_some();
        let known = selecting.known.or_default(kind);
        let first = std::mem::replace(known, ConfigsKnown::Yes) != ConfigsKnown::Yes;
        for name in &gone {
            self.remove_config(name);
        }
        if first || self.selecting.changed {
            self.configs_have_a_gap();
            self.configs_may_be_known();
        }
        if first && self.selecting.unverified().next().is_some() {
            self.ask_soon_unless_due(Side::Hub);
        }
        if was_denied || self.deselections.has_open() {
            // It may be defined again, and an open question waits for a complete list.
            self.ask_about_configs();
        }
    }

    fn remove_config(&mut self, name: &ConfigName) {
        self.selecting.unreadable.remove(name);
        self.selecting.configs.remove(name);
        self.selecting.change();
        self.heartbeat.remove(name);
        self.statuses.remove(name);
        self.report.clear(&name.0.heartbeat_on(&name.1));
        self.report.clear(&name.0.status_of(&name.1));
        self.config_confirms(name.0.of_name(&name.1), None, false);
    }

    /// The hub answers for a kind. It may not be listed again: a watch continues where it was.
    pub(super) fn configs_are_reported(&mut self, kind: ConfigKind) {
        self.report.works(&no_configs());
        if self.selecting.known(kind) == ConfigsKnown::Yes && self.selecting.not_served.remove(kind).is_some() {
            self.ask_about_configs();
        }
    }

    /// A list of a kind has broken off, if one was under way: what is known counts, and the other kind does not wait
    /// until the list is complete, which may never happen.
    pub(super) fn configs_broke_off(&mut self, kind: ConfigKind, error: &Error) {
        let selecting = &mut self.selecting;
        // A hub that is still setting the kind up does have it.
        if error.is_too_many() && selecting.known(kind) == ConfigsKnown::NotServed {
            *selecting.known.or_default(kind) = ConfigsKnown::No;
        }
        let broke_off = selecting.listing.remove(kind).is_some();
        if broke_off && selecting.changed && selecting.are_known() && selecting.listing.is_empty() {
            self.plan_changes();
        }
    }

    /// The hub says that it has no such kind. Once its configs were read, that is no reason to forget them.
    pub(super) fn configs_not_served(&mut self, kind: ConfigKind, error: &Error) {
        if !self.selecting.may_serve_any() {
            self.fails(no_configs(), "watching", error);
            return;
        }
        let tries = self.selecting.not_served.or_default(kind);
        *tries += 1;
        let tries = *tries;
        match self.selecting.known(kind) {
            ConfigsKnown::No if tries > FIRST_KIND_TRIES => self.config_kind_is_lacking(kind),
            ConfigsKnown::No => self.ask_soon_unless_due(Side::Hub),
            // Few hubs get the other kind later, and each request costs something.
            ConfigsKnown::NotServed if tries > FIRST_KIND_TRIES => self.poll_config_kind_rarely(kind),
            // One that was served may come back soon, and the only one has to.
            ConfigsKnown::Yes if tries > KIND_TRIES && self.selecting.has_listed_any() => {
                self.poll_config_kind_rarely(kind);
            }
            ConfigsKnown::NotServed | ConfigsKnown::Yes => {}
        }
        if !self.selecting.may_serve_any() {
            self.fails(no_configs(), "watching", error);
        }
    }

    /// Both the list of a kind and the hub's discovery say that it is not served.
    pub(super) fn config_kind_is_lacking(&mut self, kind: ConfigKind) {
        if self.selecting.known(kind) == ConfigsKnown::No {
            *self.selecting.known.or_default(kind) = ConfigsKnown::NotServed;
            self.configs_may_be_known();
        }
    }

    fn poll_config_kind_rarely(&mut self, kind: ConfigKind) {
        log_line!(
            Debug,
            ConfigKindNotServed,
            "the hub does not serve a kind of configs",
            kind = kind.kind()
        );
        let of_kind = self
            .sources
            .iter()
            .filter(|(_, source)| source.feed == Feed::Configs(kind));
        let of_kind: Vec<SourceId> = of_kind.map(|(&id, _)| id).collect();
        for id in of_kind {
            self.remove_source(id);
        }
        let wait = KIND_INTERVAL.mul_f64(0.5 + self.chance.f64() / 2.0);
        self.timers.set(Timer::Configs(kind), self.now + wait);
    }

    /// A kind that was not served may be by now.
    pub(super) fn poll_config_kind_soon(&mut self, kind: ConfigKind) {
        if self.timers.is_set(Timer::Configs(kind)) {
            self.timers.set(Timer::Configs(kind), self.now);
        }
    }

    fn configs_may_be_known(&mut self) {
        if !self.selecting.are_known() {
            return;
        }
        if self.selecting.names().is_empty() {
            log_line!(
                Info,
                NoConfigs,
                "there is no SyncerConfig or EdgeSyncConfig at the hub; waiting for one"
            );
        }
        self.plan_changes();
        self.begin_heartbeats();
    }
}

/// That the hub serves no kind of configs at all.
fn no_configs() -> Subject {
    Subject::Thing(Side::Hub, Topic::Configs, String::new())
}
