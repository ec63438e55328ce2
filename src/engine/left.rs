//! What is left of a type that the hub has no longer.

use std::rc::Rc;

use kube_lite::{Cluster, Content, Error, ListRequest, ResourceType, qualified};

use super::discover::confirm_lacking;
use crate::model::effect::{Lacking, Left};
use crate::plan::{Absence, CopiesOf, Direction};
use crate::side::Side;
use crate::sync::definition::TypeDefinitions;
use crate::sync::meta::Meta;
use crate::sync::ownership::{Marked, SyncTarget, mark_selector};

/// How many copies of a type, `resource.group`, are at the edge, if the hub has it no longer.
pub(super) async fn count(
    hub: &Cluster,
    edge: &Rc<Cluster>,
    definitions: &TypeDefinitions,
    resource: &str,
    copies: &[CopiesOf],
    we: &SyncTarget,
) -> Left {
    let is_gone = is_gone(hub, definitions, resource, copies).await;
    if !is_gone.map_err(|error| (Side::Hub, error))? {
        return Ok(0);
    }
    let mut count = 0;
    for copies in copies {
        let found = count_copies(edge, copies, we).await;
        count += found.map_err(|error| (Side::Edge, error))?;
    }
    Ok(count)
}

/// True if the hub does not have the type any more, as it was.
async fn is_gone(
    hub: &Cluster,
    definitions: &TypeDefinitions,
    resource: &str,
    copies: &[CopiesOf],
) -> Result<bool, Error> {
    let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
    let lacks = async |absence| {
        let named = (group.to_owned(), plural.to_owned());
        !confirm_lacking(hub, Lacking::from([(named, absence)])).await.is_empty()
    };
    let as_it_was = copies.first().map_or(Absence::Side, |copies| Absence::Scope {
        namespaced: copies.resource.namespaced,
    });
    if !lacks(as_it_was).await {
        return Ok(false);
    }
    // Otherwise what defines the type now gives it another scope.
    if lacks(Absence::Side).await {
        let at_hub = ResourceType {
            group: group.into(),
            resource: plural.into(),
            ..ResourceType::definitions()
        };
        match definitions.read(hub, &at_hub).await {
            Ok(Some(definition)) if !definition.being_deleted => return Ok(false),
            // A definition that may not be read counts as absent: the hub does not serve the type.
            Err(error) if !error.is_forbidden() => return Err(error),
            _ => {}
        }
    }
    Ok(true)
}

async fn count_copies(edge: &Rc<Cluster>, copies: &CopiesOf, we: &SyncTarget) -> Result<usize, Error> {
    let CopiesOf { origins, resource } = copies;
    let own_kind = qualified(&resource.group, &resource.kind);
    let mut listing = edge.list(ListRequest {
        label_selector: Some(mark_selector(Direction::Down).into()),
        ..ListRequest::of_all(resource.clone(), Content::Metadata)
    });
    let mut count = 0;
    while let Some(object) = listing.next().await? {
        let meta = Meta::parse(&object)?;
        let of_kind = meta.renamed_from().map_or(&*own_kind, |(kind, _)| kind);
        count += usize::from(of_kind == origins && meta.is_ours(Direction::Down, resource, we));
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use kube_lite::{Paths, RateLimit};

    use super::*;
    use crate::api::FIELD_MANAGER;
    use crate::api::{DOWNSYNCED, OWNER, RENAMED_FROM};

    fn copy(name: &str, renamed_from: Option<&str>) -> Value {
        let mut object = json!({"metadata": {"name": name, "namespace": "shop", "uid": "u", "resourceVersion": "1",
            "annotations": {DOWNSYNCED: format!("Meter/shop/{name}"), OWNER: "o/meters.h/test"}}});
        if let Some(from) = renamed_from {
            object["metadata"]["annotations"][RENAMED_FROM] = json!(from);
        }
        object
    }

    #[tokio::test]
    async fn copies_are_counted_with_the_type_that_they_are_from() {
        let list = json!({"kind": "PartialObjectMetadataList", "metadata": {"resourceVersion": "5"},
            "items": [copy("a", None), copy("b", Some("Gauge.g/b")), copy("c", Some("Meter.h/d"))]});
        let resource = ResourceType {
            group: "h".into(),
            resource: "meters".into(),
            kind: "Meter".into(),
            ..ResourceType::config_maps()
        };
        let we = SyncTarget {
            uid: "test".into(),
            ..SyncTarget::default()
        };
        for (origins, expected) in [("Gauge.g", 1), ("Meter.h", 2), ("Gauge.other", 0)] {
            let path = "/apis/h/v1/meters";
            let server = Paths([(path, list.to_string().leak() as &str)].into());
            let edge = Rc::new(Cluster::new(
                Side::Edge.word(),
                Box::new(server),
                RateLimit::new(None),
                FIELD_MANAGER,
            ));
            let copies = CopiesOf {
                origins: origins.into(),
                resource: resource.clone(),
            };
            assert_eq!(count_copies(&edge, &copies, &we).await, Ok(expected), "{origins}");
        }
    }
}
