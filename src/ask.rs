//! The commands that ask both sides and change nothing: `gen rbac` here, `check` in [`crate::check`].

use std::error::Error as StdError;
use std::fmt;
use std::rc::Rc;

use driver::advice::{about_no_api, advice};
use kube_lite::{Cluster, Error};

use crate::cli::{RbacOptions, Settings};
use crate::model::OneCluster;
use crate::permissions::{Situation, needed, roles};
use crate::renewal::Keep;
use crate::side::Side;
use crate::sides;
use crate::survey::{Survey, View, survey};
use crate::sync::identity;
use crate::sync::own_objects::edge_name;
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
        Self {
            side: Side::of(cluster),
            address: cluster.standing().place.address.clone(),
            advice: advice_of_server(&error, cluster),
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

/// What to do about an error, by the server's words alone.
pub(crate) fn advice_of_server(error: &Error, cluster: &Cluster) -> String {
    let standing = cluster.standing();
    let found = match &standing.stranger {
        Some(words) => about_no_api(words, &standing.place),
        None => advice(error, &standing.place),
    };
    found.into_owned()
}

/// Hub and edge, if they are the same cluster, by what identifies them.
pub(crate) fn one_cluster(hub: &Cluster, edge: &Cluster, [at_hub, at_edge]: [&str; 2]) -> Option<OneCluster> {
    (at_hub == at_edge).then(|| OneCluster {
        uid: at_hub.to_owned(),
        hub: hub.standing().place.address.clone(),
        edge: edge.standing().place.address.clone(),
    })
}

/// What is wrong with a hub that serves no configs.
pub(crate) const NO_CONFIGS: &str = "it serves neither syncerconfigs nor edgesyncconfigs of edge.kubestellar.io";

/// What to do about that, given what the edge serves.
pub(crate) fn about_no_configs(found: &Survey) -> &'static str {
    if found.edge_has_configs {
        "the edge serves them: exchange --from-kubeconfig and --to-kubeconfig, if that is the hub"
    } else {
        "apply manifests/crds to the hub, or bind the API"
    }
}

/// How a syncer with these settings would see the configs.
pub(crate) fn view<'a>(settings: &'a Settings, sync_target: &'a SyncTarget) -> View<'a> {
    View {
        sync_target,
        filter: &settings.filter,
        own_namespace: settings.own_namespace.as_deref(),
        renaming: settings.renaming,
        config: None,
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
        edge: found
            .has_edges
            .then(|| edge_name(&settings.sync_target_name, &sync_target.uid)),
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
    let [hub, edge] = sides::open_both(&settings)?.map(Rc::new);
    let (sync_target, polled) = (settings.sync_target(), settings.polled());
    let found = survey(&hub, Some(&edge), &view(&settings, &sync_target)).await;
    let found = found.map_err(|(side, error)| CannotAsk::new(if side == Side::Edge { &edge } else { &hub }, error))?;
    if found.kinds.is_empty() {
        let (address, advice) = (hub.standing().place.address.clone(), about_no_configs(&found));
        return Err(format!("hub {address}: {NO_CONFIGS}: {advice}").into());
    }
    // What cannot be asked now is found out by `run`.
    if let (Ok(Some(at_hub)), Ok(Some(at_edge))) = (identity::read(&hub, None).await, identity::read(&edge, None).await)
        && let Some(one) = one_cluster(&hub, &edge, [&at_hub, &at_edge])
    {
        return Err(one.into());
    }
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
