//! What is published and is not right: two for one type, rules that an edit breaks; and what another agent has published.

use serde_json::{Value, json};

use crate::rules::checked;
use crate::stage::Which;
use crate::support::story::SOON;
use crate::support::{eventually, holds_throughout};
use crate::world::{A_WHILE, SYNCAGENT, World};

/// Waits for an Event that says that a `PublishedResource` is wrong, and gives the first one's text.
async fn is_said(world: &World, name: &str) -> String {
    let name = world.name_of(name);
    eventually(&format!("there is an Event about {name}"), SOON, async || {
        let all = world.local.list("v1", "events", "default", "").await;
        let is_it = |event: &&Value| {
            event["involvedObject"]["name"] == *name
                && event["reason"] == "ReconcilingError"
                && event["type"] == "Warning"
        };
        let found = all.iter().find(is_it).ok_or("there is none")?;
        Ok::<_, &str>(found["message"].as_str().unwrap_or_default().to_owned())
    })
    .await
}

// Found by an audit: the agent deleted the copy of one because the other had no object for it.
pub(crate) async fn of_two_that_publish_one_type_the_older_one_does(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let mut agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    world.open(&consumer, "web", &json!({"size": 1})).await;
    let copy = world.copied(&consumer, "web", &json!({"size": 1})).await;
    // Times have seconds.
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    let stores = json!({"projection": {"kind": "Store"}});
    world.local.create(&world.published("stores", "Shop", &stores)).await;
    let twin = json!({"naming": {"name": "other-{{ .Object.metadata.name }}"}});
    world.local.create(&world.published("twin", "Shop", &twin)).await;
    for name in ["stores", "twin"] {
        let said = is_said(&world, name).await;
        assert!(said.contains(&world.name_of("shops")), "{said}");
    }
    let (said, code) = checked(&world).await;
    let refused = said.matches("is about the same type").count();
    assert!(refused == 2 && code == Some(1), "{said}");
    world.edit(&consumer, "web", &json!({"spec": {"size": 2}})).await;
    let same = world.copied(&consumer, "web", &json!({"size": 2})).await;
    assert_eq!(same["metadata"]["uid"], copy["metadata"]["uid"]);
    holds_throughout("there is one schema and one copy", A_WHILE, async || {
        let found = (
            world.copies(&consumer).await.len(),
            world.exports(1, 1).await["spec"]["latestResourceSchemas"].clone(),
        );
        (found.0 == 1).then_some(()).ok_or(format!("{found:?}"))
    })
    .await;
    // The older one goes: the next one has it, and nothing is made again.
    let shops = world.name_of("shops");
    world
        .local
        .delete(SYNCAGENT, "publishedresources", "", &world.name_of("stores"))
        .await;
    world.local.delete(SYNCAGENT, "publishedresources", "", &shops).await;
    world.schema_of("twin").await;
    world.edit(&consumer, "web", &json!({"spec": {"size": 3}})).await;
    let same = world.copied(&consumer, "web", &json!({"size": 3})).await;
    assert_eq!(same["metadata"]["uid"], copy["metadata"]["uid"]);
    agent.ends_well().await;
}

// Found by an audit: the rules of before the edit went on until a restart.
pub(crate) async fn a_rule_that_an_edit_breaks_ends_the_sync_and_no_deletion(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let agent = world.agent(&[]);
    let consumer = world.consumer("a").await;
    for name in ["web", "api", "last"] {
        world.open(&consumer, name, &json!({"size": 1})).await;
        world.copied(&consumer, name, &json!({"size": 1})).await;
    }
    let broken = json!([{"cel": {"path": "spec.size", "expression": "value +"}}]);
    world.republish(&json!({"mutation": {"spec": broken}})).await;
    let said = is_said(&world, "shops").await;
    assert!(said.contains("spec.mutation.spec[0].cel"), "{said}");
    world.edit(&consumer, "web", &json!({"spec": {"size": 2}})).await;
    holds_throughout("it is synced no longer", A_WHILE, async || {
        let all = world.copies(&consumer).await;
        all.iter()
            .all(|copy| copy["spec"]["size"] == 1)
            .then_some(())
            .ok_or(format!("{all:?}"))
    })
    .await;
    let delete = async |name: &str| {
        world.closes(&consumer, name).await;
    };
    delete("api").await;
    // Nor after a restart.
    drop(agent);
    let _agent = world.agent(&[]);
    delete("last").await;
    assert_eq!(world.copies(&consumer).await.len(), 1);
    let right = json!([{"cel": {"path": "spec.size", "expression": "value + 1"}}]);
    world.republish(&json!({"mutation": {"spec": right}})).await;
    world.copied(&consumer, "web", &json!({"size": 3})).await;
}

// Found by an audit: the export was to have a schema that nobody had made.
pub(crate) async fn a_schema_that_another_agent_makes_keeps_its_name_in_the_export(which: Which) {
    let world = World::of(which).await;
    world.publish(&json!({})).await;
    let agent = world.agent(&[]);
    let made = world.schema_of("shops").await;
    world.exports(1, 1).await;
    drop(agent);
    // By the type as it is now, the schema would have another name.
    let labelled = json!({"spec": {"names": {"shortNames": ["sh"]}}});
    let name = format!("shops.{}", world.group);
    world
        .local
        .merge_patch(
            "apiextensions.k8s.io/v1",
            "customresourcedefinitions",
            "",
            &name,
            &labelled,
        )
        .await;
    let _agent = world.agent(&["--disabled-controllers=apiresourceschema"]);
    let consumer = world.consumer("a").await;
    world.open(&consumer, "web", &json!({"size": 1})).await;
    world.copied(&consumer, "web", &json!({"size": 1})).await;
    holds_throughout("the export has what was made", A_WHILE, async || {
        let schemas = world.exports(1, 1).await["spec"]["latestResourceSchemas"].clone();
        (schemas == json!([made])).then_some(()).ok_or(schemas)
    })
    .await;
    assert_eq!(world.schema_of("shops").await, made);
}
