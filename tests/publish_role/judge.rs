//! What must be so in the end, whatever has gone wrong, and what must never have happened: read from what both servers have,
//! and from what the service cluster has logged.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::support::eventually;
use crate::world::{Consumer, FINALIZER, World, place};

/// How long both may take to come in sync once nothing goes wrong any more.
const IN_SYNC: std::time::Duration = std::time::Duration::from_secs(180);

/// What tests have done to shops.
#[derive(Default)]
pub(crate) struct History {
    /// Those that were deleted at least once: by the id of the workspace and the name.
    pub(crate) deleted: BTreeSet<(String, String)>,
    /// Those of which an operator has deleted the copy.
    pub(crate) copies: BTreeSet<(String, String)>,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Waits until every object has one copy that is as it is, and nothing else is there.
pub(crate) async fn all_is_in_sync(world: &World, bound: &[Consumer]) {
    eventually("all is in sync", IN_SYNC, async || {
        for consumer in bound {
            namespace_goes(world, consumer).await;
            is_in_sync(world, consumer).await?;
        }
        Ok::<_, String>(())
    })
    .await;
}

/// What a controller manager does elsewhere: an empty namespace that the agent has deleted goes.
async fn namespace_goes(world: &World, consumer: &Consumer) {
    let found = world.local.get("v1", "namespaces", "", &consumer.id).await;
    let is_ending = found.is_some_and(|it| !it["metadata"]["deletionTimestamp"].is_null());
    if is_ending
        && world
            .local
            .list(&world.v1(), "shops", &consumer.id, "")
            .await
            .is_empty()
    {
        world.local.finalize(&consumer.id).await;
    }
}

async fn is_in_sync(world: &World, consumer: &Consumer) -> Result<(), String> {
    let said = |error: kube::Error| error.to_string();
    let v1 = world.v1();
    let origins = consumer.objects.try_list(&v1, "shops", "", "").await.map_err(said)?;
    let of = format!("syncagent.kcp.io/remote-object-cluster={}", consumer.id);
    let copies = world.local.try_list(&v1, "shops", "", &of).await.map_err(said)?;
    let mut by_name: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for copy in &copies {
        let name = text(&copy["metadata"]["annotations"]["syncagent.kcp.io/remote-object-name"]);
        by_name.entry(name).or_default().push(copy);
    }
    for origin in &origins {
        let name = text(&origin["metadata"]["name"]);
        if !origin["metadata"]["deletionTimestamp"].is_null() {
            return Err(format!("{name} is still being deleted in {}", consumer.id));
        }
        if origin["metadata"]["finalizers"] != serde_json::json!([FINALIZER]) {
            return Err(format!(
                "{name} of {} has {}",
                consumer.id, origin["metadata"]["finalizers"]
            ));
        }
        let found = by_name.remove(&name).unwrap_or_default();
        let [copy] = found.as_slice() else {
            return Err(format!("{name} of {} has {} copies", consumer.id, found.len()));
        };
        if copy["spec"] != origin["spec"] {
            return Err(format!(
                "{name} of {}: {} is {}",
                consumer.id, origin["spec"], copy["spec"]
            ));
        }
        if copy["status"] != origin["status"] {
            return Err(format!(
                "{name} of {}: {} shows {}",
                consumer.id, copy["status"], origin["status"]
            ));
        }
    }
    if !by_name.is_empty() {
        return Err(format!("copies without objects: {:?}", by_name.keys()));
    }
    let states = world.states(consumer).await.len();
    if states != origins.len() {
        return Err(format!(
            "{} has {states} states for {} objects",
            consumer.id,
            origins.len()
        ));
    }
    Ok(())
}

/// Whatever has happened: every tenant's things are its own.
pub(crate) async fn nothing_is_in_another_tenants_place(world: &World, all: &[&Consumer]) {
    let ids: BTreeSet<&str> = all.iter().map(|consumer| consumer.id.as_str()).collect();
    for copy in world.local.list(&world.v1(), "shops", "", "").await {
        let (space, _) = place(&copy);
        assert_eq!(copy["spec"]["tenant"], space, "{copy:#}");
        assert_eq!(
            copy["metadata"]["labels"]["syncagent.kcp.io/remote-object-cluster"], space,
            "{copy:#}"
        );
    }
    for secret in world.local.list("v1", "secrets", "", "").await {
        let (space, _) = place(&secret);
        if ids.contains(space.as_str()) {
            assert_eq!(secret["metadata"]["annotations"]["tenant"], space, "{secret:#}");
        }
    }
    for consumer in all {
        // A stranger's workspace has not even the type.
        let origins = consumer.objects.try_list(&world.v1(), "shops", "", "").await;
        for origin in origins.unwrap_or_default() {
            assert_eq!(origin["spec"]["tenant"], consumer.id, "{origin:#}");
            let status = &origin["status"]["tenant"];
            assert!(status.is_null() || *status == consumer.id, "{origin:#}");
        }
        for secret in consumer.objects.list("v1", "secrets", "shop", "").await {
            assert_eq!(secret["metadata"]["annotations"]["tenant"], consumer.id, "{secret:#}");
        }
    }
}

/// No copy was deleted whose object nobody had deleted: by what the service cluster has logged. `names` are those of copies
/// that somebody has seen, and of their objects.
pub(crate) fn no_copy_went_without_its_object(world: &World, names: &BTreeMap<String, String>, history: &History) {
    let of_group = format!("/apis/{}/v1/namespaces/", world.group);
    for event in world.service.requests("") {
        let Some(rest) = event.uri.strip_prefix(&of_group).filter(|_| event.verb == "delete") else {
            continue;
        };
        let path = rest.split('?').next().unwrap_or_default();
        let parts: Vec<&str> = path.split('/').collect();
        let [space, "shops", name] = parts[..] else {
            panic!("somebody has deleted {}", event.uri);
        };
        let Some(of) = names.get(name) else { continue };
        let origin = (space.to_owned(), of.clone());
        assert!(
            history.deleted.contains(&origin) || history.copies.contains(&origin),
            "it has deleted the copy of {origin:?}, which nobody had deleted"
        );
    }
}

/// Who has not bound the export has nothing of it.
pub(crate) async fn nothing_of_a_stranger_has_changed(stranger: &Consumer) {
    for secret in stranger.objects.list("v1", "secrets", "shop", "").await {
        assert!(secret["metadata"]["finalizers"].is_null(), "{secret:#}");
        assert_eq!(secret["metadata"]["annotations"]["tenant"], stranger.id, "{secret:#}");
    }
}
