//! What is left of a type that the hub has no longer.

use std::rc::Rc;

use super::discover::confirm_lacking;
use crate::cluster::{Cluster, Content, ListRequest, ResourceType, Scope, Side};
use crate::model::effect::{Lacking, Left};
use crate::plan::Direction;
use crate::sync::definition::TypeDefinitions;
use crate::sync::meta::Meta;
use crate::sync::ownership::{SyncTarget, mark_selector};

/// How many copies of the type are at the edge, if the hub has it no longer.
pub(super) async fn count(
    hub: &Cluster,
    edge: &Rc<Cluster>,
    definitions: &TypeDefinitions,
    copies: ResourceType,
    we: &SyncTarget,
) -> Left {
    let at_hub = |error| (Side::Hub, error);
    let at_edge = |error| (Side::Edge, error);
    let lacks = async |scope| {
        let named = (copies.group.clone(), copies.resource.clone());
        !confirm_lacking(hub, Lacking::from([(named, scope)])).await.is_empty()
    };
    if !lacks(Some(copies.namespaced)).await {
        return Ok(0);
    }
    // Otherwise what defines the type now gives it another scope.
    if lacks(None).await {
        match definitions.read(hub, &copies).await {
            Ok(Some(definition)) if !definition.being_deleted => return Ok(0),
            // A definition that may not be read counts as absent: the hub does not serve the type.
            Err(error) if !error.is_forbidden() => return Err(at_hub(error)),
            _ => {}
        }
    }
    let mut listing = edge.list(ListRequest {
        resource: copies.clone(),
        scope: Scope::default(),
        label_selector: Some(mark_selector(Direction::Down)),
        content: Content::Metadata,
    });
    let mut count = 0;
    while let Some(object) = listing.next().await.map_err(at_edge)? {
        let meta = Meta::parse(&object).map_err(at_edge)?;
        count += usize::from(meta.is_ours(Direction::Down, &copies, we));
    }
    Ok(count)
}
