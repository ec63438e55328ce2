//! What is published: a PublishedResource becomes a schema in the workspace of the export, and the export gets that and
//! the claims that syncing needs.
//!
//! Promises: a schema that is there is never changed, but for the marks of its agent, and never deleted; of the export only
//! schemas, claims and the agent's name are written, and only if they differ.

mod source;

use std::rc::Rc;

use bytes::Bytes;
use kube_lite::{Cluster, Content, Error, ObjectName, ResourceType};
use serde_json::{Value, json};

use crate::export::{self, Merged};
use crate::kcp::{self, parsed};
use crate::keys::AGENT_NAME;
use crate::kinds::{PublishedResource, Scope};
use crate::route::{Served, check_rules};
use crate::schema::{Crd, Projected, Version, project};
use crate::sides::Side;
use crate::trouble::Stop;

/// A PublishedResource to make a schema of.
pub(crate) struct PublishJob {
    pub(crate) resource: Rc<PublishedResource>,
    pub(crate) agent: Rc<str>,
    /// False if another agent makes the schemas, and this one is to know the types at both ends.
    pub(crate) writes: bool,
}

/// What the export is to have.
pub(crate) struct ExportJob {
    pub(crate) name: Rc<str>,
    pub(crate) agent: Rc<str>,
    pub(crate) published: Vec<Rc<PublishedResource>>,
}

/// What was new in the export.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Exported {
    pub(crate) added: Vec<String>,
    pub(crate) removed: Vec<String>,
    pub(crate) claims: Vec<String>,
}

/// What to do about a PublishedResource that gives no schema.
const CORRECT: &str =
    "correct the PublishedResource, or its type on the service cluster; it is tried at once when either changes";

/// Makes the schema of a PublishedResource, and says at that which one it is.
pub(crate) async fn publish(job: &PublishJob, service: &Cluster, at: &Cluster) -> Result<Served, Stop> {
    let resource = &*job.resource;
    let (projected, served) = types_of(resource, service).await?;
    // The type of wrong rules is known all the same: objects of it may be on their way out.
    if !job.writes || check_rules(resource).is_err() {
        return Ok(served);
    }
    ensure(&projected, &served.schema, &job.agent, at).await?;
    if resource.schema_name.as_deref() != Some(&*served.schema) {
        let body = json!({"status": {"resourceSchemaName": &*served.schema}}).to_string();
        let name = ObjectName::new("", &resource.name);
        let kind = kcp::published_resources();
        let written = service.merge_patch_status(&kind, &name, true, Bytes::from(body));
        written
            .await
            .map_err(|error| Stop::of(Side::Service, "writing the status of the PublishedResource", "", error))?;
    }
    Ok(served)
}

/// The schema that a PublishedResource gives, and the types at both ends. Writes nothing.
pub(crate) async fn planned(resource: &PublishedResource, service: &Cluster) -> Result<(Projected, Served), Stop> {
    check_rules(resource).map_err(wrong_rules)?;
    types_of(resource, service).await
}

/// Rules that cannot be read.
pub(crate) fn wrong_rules(words: String) -> Stop {
    Stop::because("reading the rules", words, CORRECT)
}

async fn types_of(resource: &PublishedResource, service: &Cluster) -> Result<(Projected, Served), Stop> {
    let crd = source::find(&resource.source, service).await?;
    let projected =
        project(&crd, resource).map_err(|error| Stop::because("making the schema", error.to_string(), CORRECT))?;
    let served = served(&crd, &projected)?;
    Ok((projected, served))
}

/// The types at both ends.
fn served(crd: &Crd, projected: &Projected) -> Result<Served, Stop> {
    let names = |crd: &Crd| -> Vec<Box<str>> {
        crd.versions
            .iter()
            .map(|version| version.name.as_str().into())
            .collect()
    };
    let mut versions = [names(crd), names(&projected.crd)].concat();
    let (remote, remote_version) = type_of(&projected.crd)?;
    versions.retain(|version| **version != *remote.version);
    versions.sort();
    versions.dedup();
    let (local, local_version) = type_of(crd)?;
    Ok(Served {
        schema: projected.schema_name().into(),
        remote,
        local,
        other_versions: versions.into(),
        has_status: [remote_version.has("status"), local_version.has("status")],
    })
}

fn type_of(crd: &Crd) -> Result<(ResourceType, &Version), Stop> {
    let version = crd.stored_version().ok_or_else(|| {
        let words = format!(
            "{}.{} has no version in which objects are stored",
            crd.names.plural, crd.group
        );
        Stop::because("making the schema", words, CORRECT)
    })?;
    let names = [&*crd.group, &*version.name, &*crd.names.plural, &*crd.names.kind];
    Ok((ResourceType::new(names, crd.scope == Scope::Namespaced), version))
}

/// The schema is there, and has the marks of the agent.
async fn ensure(projected: &Projected, name: &str, agent: &str, at: &Cluster) -> Result<(), Stop> {
    let doing = "creating the APIResourceSchema";
    let stop = |error: Error| Stop::of(Side::Export, doing, name, error);
    let (schemas, at_name) = (kcp::schemas(), ObjectName::new("", name));
    let found = match at.get(&schemas, &at_name, Content::Metadata).await {
        Ok(found) => parsed::<Value>(&found).map_err(stop)?,
        Err(error) if error.proves_absent(name) => {
            let schema = projected.schema(agent, true);
            return match at.create(&schemas, &at_name, Bytes::from(schema.to_string())).await {
                Ok(_) => Ok(()),
                // Another agent was faster.
                Err(error) if error.is_already_there() => Ok(()),
                Err(error) => Err(stop(error)),
            };
        }
        Err(error) => return Err(stop(error)),
    };
    let is_marked = |map: &str| found["metadata"][map][AGENT_NAME] == *agent;
    if is_marked("labels") && is_marked("annotations") {
        return Ok(());
    }
    // No verb but update is allowed there.
    let whole = at.get(&schemas, &at_name, Content::Full).await.map_err(stop)?;
    let mut whole = parsed::<Value>(&whole).map_err(stop)?;
    for map in ["labels", "annotations"] {
        whole["metadata"][map][AGENT_NAME] = json!(agent);
    }
    let body = Bytes::from(whole.to_string());
    at.replace(&schemas, &at_name, body, Content::Metadata)
        .await
        .map(drop)
        .map_err(stop)
}

/// Puts schemas and claims into the export.
pub(crate) async fn export(job: &ExportJob, at: &Cluster) -> Result<Exported, Stop> {
    let stop = |error: Error| Stop::of(Side::Export, "updating the APIExport", &*job.name, error);
    let (exports, name) = (kcp::exports(), ObjectName::new("", &job.name));
    let found = at.get(&exports, &name, Content::Full).await.map_err(stop)?;
    let found = parsed::<Value>(&found).map_err(stop)?;
    let Merged {
        export,
        added,
        removed,
        claims,
    } = export::merge(&found, &job.agent, &job.published);
    if export != found {
        let body = Bytes::from(export.to_string());
        at.replace(&exports, &name, body, Content::Metadata)
            .await
            .map_err(stop)?;
    }
    Ok(Exported { added, removed, claims })
}
