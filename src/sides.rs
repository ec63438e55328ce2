//! The two sides as all commands open them: which server, with which credentials, at which rate.

use std::error::Error as StdError;

use kube_lite::access::Renewed;
use kube_lite::logging::log_line;
use kube_lite::reload::Reloading;
use kube_lite::{Cluster, RateLimit};

use crate::api::FIELD_MANAGER;
use crate::cli::Settings;
use crate::renewal::Keep;
use crate::side::Side;
use crate::version;

/// Hub and edge, as the settings describe them.
pub(crate) fn open_both(settings: &Settings) -> Result<[Cluster; 2], Box<dyn StdError>> {
    let hub = open(Side::Hub, settings)?;
    Ok([hub, open(Side::Edge, settings)?])
}

/// One side, with the rate limit and the renewed credentials that `run` has for it.
pub(crate) fn open(side: Side, settings: &Settings) -> Result<Cluster, Box<dyn StdError>> {
    let (source, limit) = match side {
        Side::Edge => (&settings.edge, edge_limit(settings)),
        Side::Hub => (&settings.hub, RateLimit::new(settings.rate)),
    };
    let server = Reloading::open_with(
        side.word(),
        source.clone(),
        renewed(side, settings),
        version::user_agent(),
    )?;
    let cluster = Cluster::new(side.word(), Box::new(server), limit, FIELD_MANAGER);
    let cluster = if side == Side::Edge { cluster.nearby() } else { cluster };
    let cluster = match settings.dry_run {
        Some(dry_run) => cluster.through(dry_run),
        None => cluster,
    };
    let server = cluster.standing().place.address.clone();
    log_line!(
        Info,
        SideConfigured,
        "the server of a side",
        side = side,
        server = server
    );
    Ok(cluster)
}

/// Where a side has tokens that were renewed: those of the hub may be kept in a file.
pub(crate) fn renewed(side: Side, settings: &Settings) -> Renewed {
    let keep = settings.keep.as_ref().filter(|_| side != Side::Edge);
    Renewed {
        file: settings.kept_in_file().filter(|_| side != Side::Edge),
        secret: keep.filter(|keep| matches!(keep, Keep::Secret(_))).map(Keep::to_string),
        ..Renewed::default()
    }
}

/// The rate limit of the edge: none if the edge has API priority and fairness and no rate was given.
fn edge_limit(settings: &Settings) -> RateLimit {
    let limit = RateLimit::new(settings.rate);
    if settings.is_default_rate {
        limit.that_yields()
    } else {
        limit
    }
}
