//! `publish check`: whether the role would work with these settings, point by point. It changes nothing.

use std::collections::BTreeSet;
use std::fmt::{self, Display};
use std::rc::Rc;

use driver::logger;
use driver::points::{Points, Verdict};
use kube_lite::access::{self, Renewed};
use kube_lite::read::list_all;
use kube_lite::{Cluster, Content, Error, ObjectName, ResourceType};
use serde_json::{Value, json};

use crate::kcp::{self, Binding, EndpointSlice, Export, parsed};
use crate::kinds::{self, Origin, PublishedResource};
use crate::publishing;
use crate::rights::{self, Right};
use crate::rivals::{self, Claimant, May};
use crate::route::Served;
use crate::run::{self, Settings};
use crate::servers::Kcp;
use crate::sides::Location;
use crate::start::{self, Found};
use crate::trouble::Stop;

/// What a point is about.
#[derive(Clone, Debug)]
pub enum Where {
    /// The service cluster.
    Service,
    /// The workspace of the slice or the export.
    Kcp,
    /// A virtual workspace.
    Shard(Rc<str>),
    /// A PublishedResource.
    Published(Rc<str>),
    /// An entry of `spec.related` of one.
    Related(Rc<str>, Rc<str>),
}

impl Display for Where {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service => f.write_str("service cluster"),
            Self::Kcp => f.write_str("kcp"),
            Self::Shard(url) => f.write_str(url),
            Self::Published(name) => write!(f, "PublishedResource {name}"),
            Self::Related(name, identifier) => write!(f, "PublishedResource {name}, related {identifier:?}"),
        }
    }
}

const ON_SERVICE: &str = "allow the agent's user this on the service cluster: manifests/publish/config has the rules";
const IN_KCP: &str = "allow the agent's user this in the workspace of the export: manifests/publish/kcp has the rules";
/// What to do about a type that is published and belongs to objects of another one.
const PUBLISH_ONLY: &str = "set spec.synchronization.enabled of its PublishedResource to false";
const OF_TYPE: &str = "allow the agent's user this: docs/publish.md has the verbs that each published type needs";

/// Checks whether the role would work with these settings.
pub async fn check(settings: &Settings) -> Points<Where> {
    let mut points = Points::default();
    match opened(settings) {
        Ok((kcp, service, workspace)) => {
            let check = Check {
                settings,
                kcp,
                service: Rc::new(service),
            };
            check.all(workspace, &mut points).await;
        }
        Err(error) => points.add(None, "kubeconfig", Verdict::Wrong, error, ""),
    }
    points
}

fn opened(settings: &Settings) -> Result<(Kcp, Cluster, String), String> {
    let of_kcp = access::load("kcp", &settings.kcp, &Renewed::default()).map_err(|error| error.to_string())?;
    let workspace = start::workspace_of(&of_kcp.config.cluster_url).map_err(|error| error.to_string())?;
    let (source, user_agent) = (settings.kcp.clone(), settings.user_agent.clone());
    let kcp = Kcp::open(source, user_agent, &settings.overrides, logger::since_1970);
    let kcp = kcp.map_err(|error| error.to_string())?;
    let service = run::service(settings).map_err(|error| error.to_string())?;
    Ok((kcp, service, workspace))
}

struct Check<'a> {
    settings: &'a Settings,
    kcp: Kcp,
    service: Rc<Cluster>,
}

impl Check<'_> {
    async fn all(&self, workspace: String, points: &mut Points<Where>) {
        self.rights(
            &self.service,
            Where::Service,
            rights::of_service(self.settings),
            ON_SERVICE,
            points,
        )
        .await;
        self.namespace(points).await;
        let published = self.published(points).await;
        let found = match start::find(&self.kcp, workspace, &self.settings.reference).await {
            Ok(found) => found,
            Err(error) => return points.add(Where::Kcp, "APIExport", Verdict::Wrong, error.to_string(), ""),
        };
        let at = format!("{} in the workspace {}", found.export, found.workspace);
        points.add(Where::Kcp, "APIExport", Verdict::Good, at, "");
        let export = Rc::new(self.kcp.workspace("kcp", &found.workspace));
        let rights = rights::of_export(&found.export, self.settings.parts);
        self.rights(&export, Where::Kcp, rights, IN_KCP, points).await;
        self.shards(&found, points).await;
        let mut types = Vec::new();
        for resource in &published {
            types.push(self.resource(resource, points).await);
        }
        rivals_of(&published, &types, points);
        owners_of(&published, &types, points);
    }

    async fn rights(
        &self,
        server: &Cluster,
        here: Where,
        rights: Vec<Right>,
        advice: &'static str,
        points: &mut Points<Where>,
    ) {
        let (mut missing, mut count) = (Vec::new(), 0);
        for (attributes, without) in rights {
            match (server.allows(&attributes).await, without) {
                (Ok(true), _) => count += 1,
                (Ok(false), None) => missing.push(rights::words_of(&attributes)),
                (Ok(false), Some(without)) => {
                    let found = format!("not allowed: {}: {without}", rights::words_of(&attributes));
                    points.add(here.clone(), "rights", Verdict::Note, found, advice);
                }
                (Err(error), _) => return points.add(here, "rights", Verdict::Unknown, error.to_string(), ""),
            }
        }
        if missing.is_empty() {
            points.add(here, "rights", Verdict::Good, format!("all {count} are granted"), "");
        } else {
            let found = format!("not allowed: {}", missing.join(", "));
            points.add(here, "rights", Verdict::Wrong, found, advice);
        }
    }

    /// The namespace of the states, if it is not there.
    async fn namespace(&self, points: &mut Points<Where>) {
        let name = ObjectName::new(&self.settings.namespace, "edge-syncer-check");
        let metadata = json!({"name": *name.name, "namespace": name.namespace()});
        let body = json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}).to_string();
        let created = self
            .service
            .would_create(&ResourceType::secrets(), &name, body.into())
            .await;
        if let Err(error) = created
            && error.status().is_some_and(|status| status.code == 404)
        {
            let advice = "create it, or correct --namespace: the agent's states are kept there";
            points.add(Where::Service, "namespace", Verdict::Wrong, error.to_string(), advice);
        }
    }

    /// The PublishedResources that can be understood.
    async fn published(&self, points: &mut Points<Where>) -> Vec<PublishedResource> {
        let selector = self.settings.selector.as_deref().map(Rc::from);
        let listed = list_all::<Value>(&self.service, kcp::published_resources(), selector).await;
        let objects = match listed {
            Ok(objects) => objects,
            Err(error) => {
                let advice = "apply manifests/publish/config on the service cluster";
                points.add(
                    Where::Service,
                    "PublishedResources",
                    Verdict::Wrong,
                    error.to_string(),
                    advice,
                );
                return Vec::new();
            }
        };
        let verdict = if objects.is_empty() {
            Verdict::Note
        } else {
            Verdict::Good
        };
        let found = format!("{} can be read", objects.len());
        points.add(Where::Service, "PublishedResources", verdict, found, "");
        let mut all = Vec::new();
        for object in objects {
            match kinds::read(&object) {
                Ok(resource) => all.push(resource),
                Err(invalid) => {
                    let name = object["metadata"]["name"].as_str().unwrap_or_default();
                    let here = Where::Published(name.into());
                    points.add(here, "spec", Verdict::Wrong, invalid.to_string(), "correct it");
                }
            }
        }
        all
    }

    /// What one gives, and what its type needs. Returns its types.
    async fn resource(&self, resource: &PublishedResource, points: &mut Points<Where>) -> Option<Served> {
        let here = || Where::Published(resource.name.as_str().into());
        let served = match publishing::planned(resource, &self.service).await {
            Ok((_, served)) => served,
            Err(stop) => {
                let (verdict, found, advice) = stopped(stop);
                points.add(here(), "schema", verdict, found, advice);
                return None;
            }
        };
        points.add(here(), "schema", Verdict::Good, served.schema.to_string(), "");
        if !resource.is_synced {
            let found = "spec.synchronization.enabled is false";
            points.add(here(), "sync", Verdict::Note, found, "");
            return Some(served);
        }
        if !self.settings.parts.sync {
            return Some(served);
        }
        let local = &served.local;
        let verbs = ["get", "list", "watch", "create", "update", "patch", "delete"];
        let rights = verbs.map(|verb| {
            let attributes =
                json!({"group": local.group, "version": local.version, "resource": local.resource, "verb": verb});
            (attributes, None)
        });
        self.rights(&self.service, here(), rights.into(), OF_TYPE, points).await;
        for related in &resource.related {
            let here = Where::Related(resource.name.as_str().into(), related.identifier.as_str().into());
            self.rights(&self.service, here, rights::of_related(related), OF_TYPE, points)
                .await;
        }
        Some(served)
    }

    /// Where the consumers are.
    async fn shards(&self, found: &Found, points: &mut Points<Where>) {
        let urls = match self.urls(found).await {
            Ok(urls) => urls,
            Err(error) => return points.add(Where::Kcp, "endpoints", Verdict::Wrong, error.to_string(), IN_KCP),
        };
        if urls.is_empty() {
            let found = "nobody has bound the export yet: nothing is synced until somebody does";
            points.add(Where::Kcp, "endpoints", Verdict::Note, found, "bind it in a workspace");
        }
        for url in urls {
            let server = Rc::new(self.kcp.at(&Location(Rc::clone(&url))));
            match list_all::<Value>(&server, kcp::bindings(), None).await {
                Ok(bindings) => {
                    let ready = bindings.iter().filter(|binding| is_ready(binding)).count();
                    let found = format!("{ready} of {} APIBindings are ready", bindings.len());
                    points.add(Where::Shard(url), "APIBindings", Verdict::Good, found, "");
                }
                Err(error) => {
                    let advice = if error.is_unreachable() {
                        "where the agent cannot reach this address, name another one with --apiexport-hostport-override"
                    } else {
                        "allow the agent's user all verbs of apiexports/content in the workspace of the export"
                    };
                    points.add(
                        Where::Shard(url),
                        "APIBindings",
                        Verdict::Wrong,
                        error.to_string(),
                        advice,
                    );
                }
            }
        }
    }

    async fn urls(&self, found: &Found) -> Result<Vec<Rc<str>>, Error> {
        let read = async |workspace: &str, resource: ResourceType, name: &str| {
            let server = self.kcp.workspace("kcp", workspace);
            server.get(&resource, &ObjectName::new("", name), Content::Full).await
        };
        let urls = if let Some(slice) = &found.slice {
            let slice: EndpointSlice = parsed(&read(&found.slices, kcp::slices(), slice).await?)?;
            slice.urls().map(Rc::from).collect()
        } else {
            let export: Export = parsed(&read(&found.workspace, kcp::exports(), &found.export).await?)?;
            export.urls().map(Rc::from).collect()
        };
        Ok(urls)
    }
}

fn is_ready(binding: &Value) -> bool {
    serde_json::from_value::<Binding>(binding.clone()).is_ok_and(|binding| binding.is_ready())
}

/// PublishedResources of which only one can be published.
fn rivals_of(published: &[PublishedResource], types: &[Option<Served>], points: &mut Points<Where>) {
    let claimants = published.iter().zip(types).map(|(resource, served)| Claimant {
        resource,
        served: served.as_ref(),
        is_tried: true,
    });
    let allowed = rivals::allowed(&claimants.collect::<Vec<_>>());
    for (resource, may) in published.iter().zip(allowed) {
        if let May::NotBeside(by) = may {
            let here = Where::Published(resource.name.as_str().into());
            points.add(here, "type", Verdict::Wrong, rivals::refusal(&by), rivals::ADVICE);
        }
    }
}

/// Types that are published, and belong to objects of another one.
fn owners_of(published: &[PublishedResource], types: &[Option<Served>], points: &mut Points<Where>) {
    let synced = published.iter().zip(types).filter(|(resource, _)| resource.is_synced);
    let synced = synced.filter_map(|(_, served)| Some(&served.as_ref()?.local));
    let synced: BTreeSet<[&str; 2]> = synced.map(|local| [&*local.group, &*local.resource]).collect();
    for resource in published {
        for related in &resource.related {
            let of = related.type_on(Origin::Service);
            if synced.contains(&[&*of.group, &*of.resource]) {
                let here = Where::Related(resource.name.as_str().into(), related.identifier.as_str().into());
                let found = format!(
                    "{} is published itself, and synced: two owners of one object",
                    of.resource
                );
                points.add(here, "type", Verdict::Wrong, found, PUBLISH_ONLY);
            }
        }
    }
}

fn stopped(stop: Stop) -> (Verdict, String, &'static str) {
    match stop {
        Stop::Fails(trouble) => (
            Verdict::Wrong,
            format!("{}: {}", trouble.doing, trouble.words),
            trouble.advice,
        ),
        Stop::Unreachable(_, error) => (Verdict::Unknown, error.to_string(), ""),
        Stop::Again(_) => (Verdict::Unknown, "it has just changed".to_owned(), "check again"),
    }
}
