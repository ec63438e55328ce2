//! The commands that ask both sides and change nothing: `gen rbac` here, `check` in [`crate::check`].

use std::error::Error as StdError;
use std::fmt;
use std::rc::Rc;

use crate::cli::{RbacOptions, Settings};
use crate::cluster::{Cluster, Error, Side};
use crate::permissions::{needed, roles};
use crate::report::advice;
use crate::sides;
use crate::survey::{self, survey};

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

/// The roles for one side, as YAML.
pub async fn gen_rbac(mut settings: Settings, options: RbacOptions) -> Result<String, Box<dyn StdError>> {
    let namespace = settings
        .own_namespace
        .get_or_insert_with(|| NAMESPACE.to_owned())
        .clone();
    let [hub, edge] = sides::open_both(&settings).await?.map(Rc::new);
    let found = survey(&hub, &edge, &settings).await;
    let found = found.map_err(|(side, error)| CannotAsk::new(if side == Side::Edge { &edge } else { &hub }, error))?;
    let (sync_target, polled) = (survey::sync_target(&settings), survey::polled(&settings));
    let mut situation = found.situation(&settings, &sync_target, (&namespace, &polled));
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
