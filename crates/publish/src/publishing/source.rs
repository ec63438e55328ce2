//! Finds the type that is to be published: by its group and kind, first as a CRD, then as what discovery and OpenAPI say.

use kube_lite::{Cluster, Content, Error, ObjectName, ResourceType};
use serde_json::Value;

use super::CORRECT;
use crate::kcp::parsed;
use crate::kinds::{Scope, Source};
use crate::schema::{Builtin, BuiltinVersion, Crd, Names};
use crate::sides::Side;
use crate::trouble::Stop;

/// A version of the group that serves the kind.
struct Found {
    version: String,
    resource: Value,
    has_status: bool,
    has_scale: bool,
}

/// The type, as a CRD describes it. Only its own group is asked for: another one that fails is no concern of it.
pub(super) async fn find(source: &Source, service: &Cluster) -> Result<Crd, Stop> {
    let (preferred, found) = discover(source, service).await?;
    let plural = text(&found[0].resource, "name");
    let name = ObjectName::new("", &format!("{plural}.{}", source.group));
    if !source.group.is_empty() {
        match service.get(&ResourceType::definitions(), &name, Content::Full).await {
            Ok(crd) => {
                let crd = parsed::<Value>(&crd).map_err(|error| refused(&name.name, error))?;
                return Crd::read(&crd).map_err(|error| Stop::because("reading the CRD", error.to_string(), CORRECT));
            }
            Err(error) if error.proves_absent(&name.name) => {}
            Err(error) => return Err(refused(&name.name, error)),
        }
    }
    built_in(source, service, &preferred, &found).await
}

fn refused(object: &str, error: Error) -> Stop {
    Stop::of(Side::Service, "reading the type", object, error)
}

/// Where a group is, or one of its versions.
fn path_of(group: &str, version: &str) -> String {
    match (group, version) {
        ("", "") => "/api".to_owned(),
        ("", version) => format!("/api/{version}"),
        (group, "") => format!("/apis/{group}"),
        (group, version) => format!("/apis/{group}/{version}"),
    }
}

async fn read(service: &Cluster, path: &str) -> Result<Value, Stop> {
    let answer = service.get_path(path).await.and_then(|answer| parsed::<Value>(&answer));
    answer.map_err(|error| refused(path, error))
}

/// The version that the group prefers, and those that serve the kind.
async fn discover(source: &Source, service: &Cluster) -> Result<(String, Vec<Found>), Stop> {
    let Source { group, kind, .. } = source;
    let unknown = || {
        let words = format!("the service cluster does not serve the kind {kind} of the group {group:?}");
        Stop::because(
            "finding the type",
            words,
            "create its CRD, or correct spec.resource; it is tried at once then",
        )
    };
    let of_group = match service.get_path(&path_of(group, "")).await {
        Ok(answer) => parsed::<Value>(&answer).map_err(|error| refused(group, error))?,
        Err(error) if error.status().is_some_and(|status| status.code == 404) => return Err(unknown()),
        Err(error) => return Err(refused(group, error)),
    };
    let versions: Vec<String> = if group.is_empty() {
        let versions = of_group["versions"].as_array().into_iter().flatten();
        versions.filter_map(Value::as_str).map(str::to_owned).collect()
    } else {
        let versions = of_group["versions"].as_array().into_iter().flatten();
        versions.map(|version| text(version, "version")).collect()
    };
    let preferred = of_group["preferredVersion"]["version"].as_str();
    let preferred = preferred
        .or(versions.first().map(String::as_str))
        .unwrap_or_default()
        .to_owned();
    let mut all = Vec::new();
    for version in versions {
        let list = read(service, &path_of(group, &version)).await?;
        let resources = list["resources"].as_array().cloned().unwrap_or_default();
        let own = |resource: &&Value| resource["kind"] == **kind && !text(resource, "name").contains('/');
        let Some(resource) = resources.iter().find(own) else {
            continue;
        };
        let has = |subresource: &str| {
            let name = format!("{}/{subresource}", text(resource, "name"));
            resources.iter().any(|other| text(other, "name") == name)
        };
        all.push(Found {
            has_status: has("status"),
            has_scale: has("scale"),
            resource: resource.clone(),
            version,
        });
    }
    if all.is_empty() {
        return Err(unknown());
    }
    let preferred = match all.iter().find(|found| found.version == preferred) {
        Some(_) => preferred,
        None => all[0].version.clone(),
    };
    Ok((preferred, all))
}

/// A type without a CRD.
async fn built_in(source: &Source, service: &Cluster, preferred: &str, found: &[Found]) -> Result<Crd, Stop> {
    let mut documents = Vec::new();
    for found in found {
        let path = path_of(&source.group, &found.version);
        documents.push(read(service, &format!("/openapi/v3{path}")).await?);
    }
    let resource = &found[0].resource;
    let texts = |key: &str| {
        let items = resource[key].as_array().into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let type_of = Builtin {
        group: &source.group,
        names: Names {
            plural: text(resource, "name"),
            singular: text(resource, "singularName"),
            short_names: texts("shortNames"),
            kind: source.kind.clone(),
            list_kind: String::new(),
            categories: texts("categories"),
        },
        scope: match resource["namespaced"] {
            Value::Bool(true) => Scope::Namespaced,
            _ => Scope::Cluster,
        },
        preferred,
        versions: found
            .iter()
            .zip(&documents)
            .map(|(found, openapi)| BuiltinVersion {
                name: &found.version,
                has_status: found.has_status,
                has_scale: found.has_scale,
                openapi,
            })
            .collect(),
    };
    let crd = type_of.crd();
    crd.map_err(|error| Stop::because("reading the type", error.to_string(), CORRECT))
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}
