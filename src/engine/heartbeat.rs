//! Writing the status of configs to where the hub keeps it.
//!
//! A type either has a `/status` subresource or not, and writes to the other place change nothing: without it there is no
//! such path, and with it the server drops the status from any other write silently (Kubernetes API conventions).
//! Discovery says which. That can change while the syncer runs, when somebody applies another CRD; the signs are a path
//! that is not there, and a write after which the object has the same version as before. The version also stays the
//! same if somebody has just written the same, such as a syncer that was ended in the same second: a read of the config
//! shows that.

use std::rc::Rc;

use bytes::Bytes;
use kube_lite::discovery::{Served, discover};
use kube_lite::{Cluster, Content, Error, ObjectName};
use serde::Deserialize;

use super::edge_object;
use crate::api::{GROUP, VERSION};
use crate::model::effect::{
    ConfigHeartbeat, ConfigKind, ConfigToMark, EdgeBeaten, EdgeResult, HeartbeatRequest, HeartbeatResult, Places,
    StatusesToWrite, StatusesWritten,
};
use crate::plan::StatusPath;
use crate::sync::meta::Meta;
use crate::sync::undeclared::is_not_stored;

/// Writes to the object that stands for the edge and to all configs, until one shows that the hub does not answer.
pub(super) async fn write(hub: &Cluster, edge: &Rc<Cluster>, beat: HeartbeatRequest) -> HeartbeatResult {
    let HeartbeatRequest {
        configs,
        places,
        edge: beat,
    } = beat;
    let edge = match beat {
        Some(beat) => Some(edge_object::beat(hub, edge, beat).await),
        None => None,
    };
    let answers =
        !matches!(&edge, Some(EdgeBeaten { result: EdgeResult::Failed(error), .. }) if error.is_unreachable());
    let mut writer = Writer::new(hub, places);
    let mut written = Vec::new();
    for config in configs.into_iter().filter(|_| answers) {
        let result = writer.write(&config, &config.body).await;
        let ConfigToMark { kind, name, before, .. } = config;
        let unreachable = matches!(&result, Err(error) if error.is_unreachable());
        written.push(ConfigHeartbeat {
            kind,
            name,
            before,
            result,
        });
        if unreachable {
            break;
        }
    }
    HeartbeatResult {
        places: writer.places,
        configs: written,
        edge,
    }
}

/// Applies what this edge says of itself and of the configs, until one shows that the hub does not answer.
pub(super) async fn write_statuses(hub: &Cluster, statuses: StatusesToWrite) -> StatusesWritten {
    let edge = match statuses.edge {
        Some(edge) => Some(edge_object::write_status(hub, edge).await),
        None => None,
    };
    let mut written: Vec<(ConfigKind, String, Result<Meta, Error>)> = Vec::new();
    let answers = !matches!(&edge, Some(Err(error)) if error.is_unreachable());
    for (kind, name, body) in statuses.configs.into_iter().filter(|_| answers) {
        // What the hub does not store of one, it does not store of another.
        let is_without = |(of, _, result): &(ConfigKind, String, Result<Meta, Error>)| {
            *of == kind && result.as_ref().is_err_and(is_not_stored)
        };
        if written.iter().any(is_without) {
            continue;
        }
        let result = apply(hub, kind, &name, &statuses.manager, body).await;
        let unreachable = matches!(&result, Err(error) if error.is_unreachable());
        written.push((kind, name, result));
        if unreachable {
            break;
        }
    }
    StatusesWritten { configs: written, edge }
}

async fn apply(hub: &Cluster, kind: ConfigKind, name: &str, manager: &str, body: Bytes) -> Result<Meta, Error> {
    let (resource, at) = (kind.resource_type(), ObjectName::new("", name));
    let answer = hub.apply_status(&resource, &at, manager, body, Content::Metadata).await;
    // Without the subresource, a server answers as if the object did not exist.
    if matches!(&answer, Err(error) if error.proves_absent(name) || error.is_type_not_served())
        && hub.get(&resource, &at, Content::Metadata).await.is_ok()
    {
        let kind = kind.kind();
        return Err(Error::WithoutEffect(format!(
            "the CRD of {kind} has no subresource status"
        )));
    }
    Meta::parse(&answer?)
}

/// Writes statuses of configs, and asks where they have to be written if that is not known or seems to have changed:
/// once at most.
struct Writer<'a> {
    hub: &'a Cluster,
    places: Places,
    has_asked: bool,
}

impl<'a> Writer<'a> {
    fn new(hub: &'a Cluster, places: Places) -> Self {
        Self {
            hub,
            places,
            has_asked: false,
        }
    }

    /// Writes a status, and returns the metadata that the config then has. A config that still has its former version
    /// has not stored the status, unless it had it already.
    async fn write(&mut self, config: &ConfigToMark, body: &Bytes) -> Result<Meta, Error> {
        let (kind, name) = (config.kind, config.name.as_str());
        if let Some((manager, body)) = &config.entry {
            return apply(self.hub, kind, name, manager, body.clone()).await;
        }
        let place = self.place(kind).await?;
        let answer = self.patch(kind, name, place, body).await;
        let is_wrong_place = match &answer {
            Ok(meta) => !self.is_kept(config, meta, body).await?,
            Err(error) => place == StatusPath::Subresource && (error.proves_absent(name) || error.is_type_not_served()),
        };
        if !is_wrong_place {
            return answer;
        }
        if !self.has_asked {
            let right = self.ask_place(kind).await?;
            if right != place {
                let meta = self.patch(kind, name, right, body).await?;
                if self.is_kept(config, &meta, body).await? {
                    return Ok(meta);
                }
            }
        }
        answer.and_then(|_| {
            Err(Error::WithoutEffect(format!(
                "the CRD of {} has to have status.lastSyncerHeartbeatTime and status.conditions in its schema",
                kind.kind()
            )))
        })
    }

    /// True if a config that has this metadata after a write has the status.
    async fn is_kept(&self, config: &ConfigToMark, meta: &Meta, body: &[u8]) -> Result<bool, Error> {
        let shows = config.is_kept || config.before != meta.version_number();
        Ok(shows || self.has(config.kind, &config.name, body).await?)
    }

    /// True if the config has the time that `body` would write.
    async fn has(&self, kind: ConfigKind, name: &str, body: &[u8]) -> Result<bool, Error> {
        #[derive(Deserialize)]
        struct Wire {
            #[serde(default)]
            status: WireStatus,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct WireStatus {
            last_syncer_heartbeat_time: Option<String>,
        }
        let time = |object: &[u8]| {
            let wire = serde_json::from_slice::<Wire>(object);
            wire.ok().and_then(|wire| wire.status.last_syncer_heartbeat_time)
        };
        let at = ObjectName::new("", name);
        let config = self.hub.get(&kind.resource_type(), &at, Content::Full).await?;
        Ok(time(&config) == time(body))
    }

    async fn place(&mut self, kind: ConfigKind) -> Result<StatusPath, Error> {
        match self.places.get(&kind) {
            Some(&place) => Ok(place),
            None => self.ask_place(kind).await,
        }
    }

    /// Asks for the places of all kinds. What was known before stays if there is no answer.
    async fn ask_place(&mut self, kind: ConfigKind) -> Result<StatusPath, Error> {
        self.has_asked = true;
        let served = discover(self.hub, &(GROUP.into(), VERSION.into())).await?;
        let has_subresource = |kind: ConfigKind| match &served {
            Served::Resources(resources) => resources
                .get(&kind.resource_type().resource)
                .is_some_and(|served| served.status_subresource),
            Served::NotServed => false,
        };
        let places = ConfigKind::ALL.map(|kind| {
            let place = if has_subresource(kind) {
                StatusPath::Subresource
            } else {
                StatusPath::Main
            };
            (kind, place)
        });
        self.places = places.into();
        Ok(self.places[&kind])
    }

    async fn patch(&self, kind: ConfigKind, name: &str, place: StatusPath, body: &Bytes) -> Result<Meta, Error> {
        let (resource, at) = (kind.resource_type(), ObjectName::new("", name));
        let subresource = place == StatusPath::Subresource;
        let answer = self.hub.merge_patch_status(&resource, &at, subresource, body.clone());
        Meta::parse(&answer.await?)
    }
}
