//! The commands that ask both sides and change nothing: `gen rbac` here, `check` in [`crate::check`].

use std::error::Error as StdError;
use std::fmt;
use std::rc::Rc;

use crate::cli::{RbacOptions, Settings};
use crate::cluster::{Cluster, Error, Side};
use crate::permissions::{Situation, needed, roles};
use crate::renewal::Keep;
use crate::report::advice;
use crate::sides;
use crate::survey::{Survey, View, survey};
use crate::sync::ownership::SyncTarget;

/// The namespace of the account, and of the syncer at the edge, unless `NAMESPACE` names another one.
const NAMESPACE: &str = "edge-syncer";

/// A side that could not be asked.
#[derive(Debug)]
pub(crate) struct CannotAsk {
    side: Side,
    address: String,
    error: Error,
    advice: String,
}

impl CannotAsk {
    pub(crate) fn new(cluster: &Cluster, error: Error) -> Self {
        let place = cluster.standing().place;
        Self {
            side: cluster.side(),
            address: place.address.clone(),
            advice: advice(&error, &place).into_owned(),
            error,
        }
    }
}

impl fmt::Display for CannotAsk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { side, address, .. } = self;
        write!(f, "cannot ask the {side} {address}: {}: {}", self.error, self.advice)
    }
}

impl StdError for CannotAsk {}

/// How a syncer with these settings would see the configs.
pub(crate) fn view<'a>(settings: &'a Settings, sync_target: &'a SyncTarget) -> View<'a> {
    View {
        sync_target,
        filter: &settings.filter,
        own_namespace: settings.own_namespace.as_deref(),
        renaming: settings.renaming,
    }
}

/// What its permissions depend on.
pub(crate) fn situation<'a>(
    found: &'a Survey,
    settings: &'a Settings,
    sync_target: &'a SyncTarget,
    (own_namespace, polled): (&'a str, &'a [Side]),
) -> Situation<'a> {
    Situation {
        has_heartbeat: settings.heartbeat_interval.is_some(),
        elects_leader: settings.lease_duration.is_some(),
        secret: match &settings.keep {
            Some(Keep::Secret(name)) => Some(name),
            Some(Keep::File(_)) | None => None,
        },
        ..found.situation(sync_target, own_namespace, polled)
    }
}

/// The roles for one side, as YAML.
pub async fn gen_rbac(mut settings: Settings, options: RbacOptions) -> Result<String, Box<dyn StdError>> {
    let namespace = settings
        .own_namespace
        .get_or_insert_with(|| NAMESPACE.to_owned())
        .clone();
    let [hub, edge] = sides::open_both(&settings).await?.map(Rc::new);
    let (sync_target, polled) = (settings.sync_target(), settings.polled());
    let found = survey(&hub, Some(&edge), &view(&settings, &sync_target)).await;
    let found = found.map_err(|(side, error)| CannotAsk::new(if side == Side::Edge { &edge } else { &hub }, error))?;
    let mut situation = situation(&found, &settings, &sync_target, (&namespace, &polled));
    situation.allows_escalation = options.allow_escalation;
    situation.account = settings
        .keep
        .as_ref()
        .map(|_| roles::account(&namespace, &sync_target.uid));
    let account = roles::Account {
        side: options.side,
        namespace: &namespace,
        sync_target: &sync_target.uid,
        configs: &found.configs,
    };
    Ok(roles::documents(&account, &needed(options.side, &situation)))
}
