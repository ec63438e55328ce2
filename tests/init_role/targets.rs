//! Which targets are served: scenarios 13 to 17.

use serde_json::{Value, json};

use crate::objects::{FACTS, has_facts};
use crate::stage::Which;
use crate::support::story::{arrives, becomes};
use crate::world::{INIT, TENANCY, World, create};

fn namespace(name: &str) -> String {
    format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n")
}

pub(crate) async fn of_two_initializers_only_the_own_one_goes(which: Which) {
    let world = World::of(which).await;
    world.dev_on_base().await;
    world.template("dev", FACTS).await;
    world.target("dev", "dev", &["dev"]).await;
    let _agent = world.agent(&[]);
    world.workspace("w", "dev").await;
    world.waits("w").await;
    world.keeps_waiting("w").await;
    let left = world.shown("w").await["status"]["initializers"].clone();
    assert_eq!(left, json!([world.initializer("base").await]));
    has_facts(&world, &world.inside("w").await, "w").await;
    world.template("base", &namespace("of-base")).await;
    world.target("base", "base", &["base"]).await;
    let inside = world.ready("w").await;
    arrives(&inside, "v1", "namespaces", "", "of-base").await;
    world.workspace("both", "dev").await;
    let inside = world.ready("both").await;
    arrives(&inside, "v1", "namespaces", "", "of-base").await;
    has_facts(&world, &inside, "both").await;
}

async fn label(world: &World, target: &str, labels: &Value) {
    let patch = json!({"metadata": {"labels": labels}});
    world.conf.merge_patch(INIT, "inittargets", "", target, &patch).await;
}

pub(crate) async fn a_selector_says_which_targets_are_served(which: Which) {
    let world = World::of(which).await;
    for name in ["in", "out"] {
        world.new_type(name, Value::Null).await;
    }
    world.template("facts", FACTS).await;
    let sources = crate::world::sources(&["facts"]);
    world.target_with("in", "in", &sources, json!({"tier": "gold"})).await;
    world
        .target_with("out", "out", &sources, json!({"tier": "gold", "off": ""}))
        .await;
    let _agent = world.agent(&["--init-target-selector=tier in (gold, silver),!off"]);
    world.workspace("of-in", "in").await;
    world.workspace("of-out", "out").await;
    world.ready("of-in").await;
    world.keeps_waiting("of-out").await;
    label(&world, "out", &json!({"off": null})).await;
    world.ready("of-out").await;
    label(&world, "out", &json!({"tier": "none"})).await;
    // A change counts once the agent has seen it; the other type shows that it has.
    label(&world, "in", &json!({"tier": "silver", "seen": "yes"})).await;
    world.workspace("of-in-again", "in").await;
    world.ready("of-in-again").await;
    world.workspace("of-out-again", "out").await;
    world.waits("of-out-again").await;
    world.keeps_waiting("of-out-again").await;
}

pub(crate) async fn targets_of_two_types_are_served_by_one_process(which: Which) {
    let world = World::of(which).await;
    for name in ["one", "two"] {
        world.serve(name, &namespace(&format!("of-{name}"))).await;
    }
    let _agent = world.agent(&[]);
    for name in ["one", "two"] {
        world.workspace(&format!("w-{name}"), name).await;
    }
    for name in ["one", "two"] {
        let inside = world.ready(&format!("w-{name}")).await;
        arrives(&inside, "v1", "namespaces", "", &format!("of-{name}")).await;
    }
}

pub(crate) async fn sources_of_all_targets_of_a_type_come_before_its_one_removal(which: Which) {
    let world = World::of(which).await;
    world.new_type("dev", Value::Null).await;
    for name in ["one", "two"] {
        world.template(name, &namespace(&format!("of-{name}"))).await;
    }
    world.target("one", "dev", &["one"]).await;
    // The same type, by the id of its workspace.
    let initializer = world.initializer("dev").await;
    let (id, _) = initializer.rsplit_once(':').expect("it has two parts");
    create(
        &world.conf,
        &json!({"apiVersion": INIT, "kind": "InitTarget", "metadata": {"name": "two"},
        "spec": {"workspaceTypeRef": {"path": id, "name": "dev"}, "sources": crate::world::sources(&["two", "late"])}}),
    )
    .await;
    let _agent = world.agent(&[]);
    world.workspace("w", "dev").await;
    world.waits("w").await;
    let inside = world.inside("w").await;
    for name in ["of-one", "of-two"] {
        arrives(&inside, "v1", "namespaces", "", name).await;
    }
    world.keeps_waiting("w").await;
    world.template("late", &namespace("of-late")).await;
    let inside = world.ready("w").await;
    arrives(&inside, "v1", "namespaces", "", "of-late").await;
}

pub(crate) async fn a_target_that_is_deleted_is_not_served_until_it_is_back(which: Which) {
    let world = World::of(which).await;
    world.serve("dev", FACTS).await;
    world.serve("other", FACTS).await;
    let _agent = world.agent(&[]);
    world.workspace("first", "dev").await;
    world.ready("first").await;
    world.conf.delete(INIT, "inittargets", "", "dev").await;
    // A target that comes later is served: so the agent knows of the other's end.
    world.new_type("later", Value::Null).await;
    world.target("later", "later", &["dev"]).await;
    world.workspace("of-later", "later").await;
    world.ready("of-later").await;
    world.workspace("second", "dev").await;
    world.waits("second").await;
    world.keeps_waiting("second").await;
    world.workspace("of-other", "other").await;
    world.ready("of-other").await;
    world.target("dev", "dev", &["dev"]).await;
    let inside = world.ready("second").await;
    has_facts(&world, &inside, "second").await;
}

pub(crate) async fn a_target_that_is_changed_serves_its_new_type(which: Which) {
    let world = World::of(which).await;
    world.serve("old", FACTS).await;
    world.new_type("new", Value::Null).await;
    let _agent = world.agent(&[]);
    world.workspace("of-new", "new").await;
    world.workspace("of-old", "old").await;
    world.ready("of-old").await;
    world.waits("of-new").await;
    let patch = json!({"spec": {"workspaceTypeRef": {"name": "new"}}});
    world.conf.merge_patch(INIT, "inittargets", "", "old", &patch).await;
    world.ready("of-new").await;
    world.workspace("of-old-again", "old").await;
    world.waits("of-old-again").await;
    world.keeps_waiting("of-old-again").await;
}

pub(crate) async fn a_type_that_is_made_again_is_served_again(which: Which) {
    let world = World::of(which).await;
    // The target is there before its type.
    world.template("dev", FACTS).await;
    world.target("dev", "dev", &["dev"]).await;
    let _agent = world.agent(&[]);
    world.new_type("dev", Value::Null).await;
    world.workspace("first", "dev").await;
    world.ready("first").await;
    world.types.delete(TENANCY, "workspacetypes", "", "dev").await;
    crate::support::story::gone(&world.types, TENANCY, "workspacetypes", "", "dev").await;
    world.new_type("dev", Value::Null).await;
    world.workspace("second", "dev").await;
    let inside = world.ready("second").await;
    becomes(&inside, ["v1", "namespaces", "", "base"], "is there", |_| true).await;
}
