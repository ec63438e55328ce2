//! The kinds of configs.

use kube_lite::ResourceType;

use crate::api::{GROUP, VERSION, edge_sync_config, syncer_config};
use crate::report::{Subject, Topic};
use crate::side::Side;

/// The kinds of configs. Objects of both count, as their union.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConfigKind {
    SyncerConfig,
    EdgeSyncConfig,
}

impl ConfigKind {
    pub(crate) const ALL: [Self; 2] = [Self::SyncerConfig, Self::EdgeSyncConfig];

    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::SyncerConfig => syncer_config::KIND,
            Self::EdgeSyncConfig => edge_sync_config::KIND,
        }
    }

    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::SyncerConfig => syncer_config::RESOURCE,
            Self::EdgeSyncConfig => edge_sync_config::RESOURCE,
        }
    }

    pub(crate) fn resource_type(self) -> ResourceType {
        ResourceType::new([GROUP, VERSION, self.plural(), self.kind()], false)
    }

    /// Its type, `resource.group`.
    pub(crate) fn qualified(self) -> String {
        self.resource_type().qualified()
    }

    /// A config of this kind as people and the guard name it: `Kind//name`.
    pub(crate) fn of_name(self, config: &str) -> String {
        format!("{}//{config}", self.kind())
    }

    /// The kind and name of a config that is called so.
    pub(super) fn of_config(config: &str) -> Option<(Self, String)> {
        let (kind, name) = config.split_once("//")?;
        let kind = Self::ALL.into_iter().find(|known| known.kind() == kind)?;
        Some((kind, name.to_owned()))
    }

    /// What its status is called in the log.
    pub(super) fn status_of(self, config: &str) -> Subject {
        Subject::Thing(Side::Hub, Topic::ConfigStatus, self.of_name(config))
    }

    /// What the heartbeat on a config of this kind is called in the log.
    pub(super) fn heartbeat_on(self, config: &str) -> Subject {
        Subject::Thing(Side::Hub, Topic::Heartbeat, self.of_name(config))
    }
}
