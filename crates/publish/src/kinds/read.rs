//! A PublishedResource, from JSON.

use serde_json::Value;

use super::related::related;
use super::steps::mutation;
use super::{Filter, Invalid, Naming, Projection, PublishedResource, Scope, Source};
use crate::fields::{Errors, Fields};
use crate::labels::Selector;

/// Reads one, as the API has it.
pub fn read(object: &Value) -> Result<PublishedResource, Invalid> {
    let errors = Errors::default();
    let found = published_resource(&Fields::new("", object, &errors));
    let errors = errors.into_list();
    if errors.is_empty() {
        Ok(found)
    } else {
        Err(Invalid { errors })
    }
}

fn published_resource(object: &Fields<'_>) -> PublishedResource {
    let metadata = object.inner("metadata");
    let spec = object.required_inner("spec");
    let spec = spec.as_ref();
    let inner = |key: &str| spec.and_then(|spec| spec.inner(key));
    let source = spec.and_then(|spec| spec.required_inner("resource"));
    let synchronization = inner("synchronization");
    if let Some(block) = synchronization.as_ref().filter(|block| !block.has("enabled")) {
        block.error("enabled", "is missing");
    }
    PublishedResource {
        name: metadata.as_ref().and_then(|it| it.text("name")).unwrap_or_default(),
        created: metadata
            .as_ref()
            .and_then(|it| it.text("creationTimestamp"))
            .unwrap_or_default(),
        labels: metadata.as_ref().map(|it| it.text_map("labels")).unwrap_or_default(),
        is_deleted: metadata.as_ref().is_some_and(|it| it.has("deletionTimestamp")),
        source: source.as_ref().map_or_else(no_source, self::source),
        filter: inner("filter").as_ref().map(filter).unwrap_or_default(),
        naming: inner("naming").as_ref().map(naming).unwrap_or_default(),
        workspace_paths: spec.and_then(|it| it.switch("enableWorkspacePaths")) == Some(true),
        projection: inner("projection").as_ref().map(projection).unwrap_or_default(),
        mutation: spec.map(mutation).unwrap_or_default(),
        related: spec.map(related).unwrap_or_default(),
        is_synced: synchronization.is_none_or(|block| block.switch("enabled") != Some(false)),
        schema_name: object.inner("status").and_then(|it| it.text("resourceSchemaName")),
    }
}

fn no_source() -> Source {
    let (group, kind, versions) = (String::new(), String::new(), Vec::new());
    Source { group, kind, versions }
}

fn source(fields: &Fields<'_>) -> Source {
    let mut versions = fields.texts("versions").unwrap_or_default();
    if let Some(version) = fields.text("version") {
        if !versions.is_empty() {
            fields.error("version", "must not be set together with versions");
        }
        versions = vec![version];
    }
    Source {
        // Core types have none.
        group: fields.required("apiGroup", true),
        kind: fields.required("kind", false),
        versions,
    }
}

fn filter(fields: &Fields<'_>) -> Filter {
    let selector = |key| fields.inner(key).map(|fields| Selector::read(&fields));
    Filter {
        namespace: selector("namespace"),
        object: selector("resource"),
    }
}

fn naming(fields: &Fields<'_>) -> Naming {
    Naming {
        name: fields.text("name"),
        namespace: fields.text("namespace"),
    }
}

fn projection(fields: &Fields<'_>) -> Projection {
    let scope = fields.text("scope").and_then(|name| {
        let scope = Scope::named(&name);
        if scope.is_none() {
            fields.error("scope", &format!("{name:?} must be Cluster or Namespaced"));
        }
        scope
    });
    let projection = Projection {
        group: fields.text("group"),
        kind: fields.text("kind"),
        plural: fields.text("plural"),
        version: fields.text("version"),
        versions: fields.text_map("versions"),
        scope,
        short_names: fields.texts("shortNames"),
        categories: fields.texts("categories"),
    };
    if projection.version.is_some() && !projection.versions.is_empty() {
        fields.error("version", "must not be set together with versions");
    }
    projection
}
