//! What holds a workspace, and what frees it: scenarios 9, 12 and 18.

use http::Method;
use serde_json::{Value, json};

use crate::objects::{FACTS, has_facts, widgets};
use crate::stage::Which;
use crate::support::objects::{MERGE_PATCH, path};
use crate::support::story::{SOON, arrives};
use crate::support::{Objects, eventually};
use crate::world::{INIT, World};

pub(crate) async fn a_source_that_waits_does_not_stop_the_next_one(which: Which) {
    let world = World::of(which).await;
    world.new_type("dev", Value::Null).await;
    let unknown = "apiVersion: nowhere.example.com/v1\nkind: Unknown\nmetadata: {name: u}\n";
    world.template("unknown", unknown).await;
    world.template("facts", FACTS).await;
    world.target("dev", "dev", &["unknown", "facts"]).await;
    let mut agent = world.agent(&[]);
    world.workspace("w", "dev").await;
    world.waits("w").await;
    let inside = world.inside("w").await;
    has_facts(&world, &inside, "w").await;
    world.keeps_waiting("w").await;
    world.repair("unknown", "# nothing\n").await;
    world.ready("w").await;
    assert!(agent.0.is_running());
}

pub(crate) async fn a_template_that_cannot_be_rendered_holds_its_workspace_until_it_is_repaired(which: Which) {
    let world = World::of(which).await;
    let wrong = [
        ("parse", "{{ nosuchfunction }}", "nosuchfunction"),
        ("execute", "{{ .Nothing }}", "Nothing"),
        ("fail", "{{ fail \"not for you\" }}", "not for you"),
        ("scalar", "just text", "mapping"),
        ("kindless", "metadata: {name: x}\n", "kind"),
        (
            "invalid",
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: Not-A-Name}\n",
            "Not-A-Name",
        ),
    ];
    for (name, text, _) in wrong {
        world.serve(name, text).await;
    }
    // One that is fine is not held by the others.
    world.serve("fine", FACTS).await;
    let mut agent = world.agent(&[]);
    for (name, _, _) in wrong {
        world.workspace(&format!("of-{name}"), name).await;
    }
    world.workspace("of-fine", "fine").await;
    world.ready("of-fine").await;
    for (name, _, words) in wrong {
        // The simulation does not check names.
        if (name, which) != ("invalid", Which::Simulated) {
            agent.says(&[name, words]).await;
            world.waits(&format!("of-{name}")).await;
        }
    }
    for (name, _, _) in wrong {
        world.repair(name, FACTS).await;
        let workspace = format!("of-{name}");
        let inside = world.ready(&workspace).await;
        if (name, which) != ("invalid", Which::Simulated) {
            has_facts(&world, &inside, &workspace).await;
        }
    }
    assert!(agent.0.is_running());
}

pub(crate) async fn a_source_that_is_missing_or_unknown_holds_its_workspace_until_it_is_repaired(which: Which) {
    let world = World::of(which).await;
    for name in ["missing", "unknown"] {
        world.new_type(name, Value::Null).await;
    }
    world.template("there", FACTS).await;
    world.target("missing", "missing", &["there", "not-there"]).await;
    world.target_with("unknown", "unknown", &json!([{}]), json!({})).await;
    let mut agent = world.agent(&[]);
    for name in ["missing", "unknown"] {
        world.workspace(&format!("of-{name}"), name).await;
    }
    agent.says(&["missing", "not-there"]).await;
    agent.says(&["unknown", "source"]).await;
    let inside = world.inside("of-missing").await;
    has_facts(&world, &inside, "of-missing").await;
    for name in ["missing", "unknown"] {
        world.keeps_waiting(&format!("of-{name}")).await;
    }
    world.template("not-there", "# nothing\n").await;
    world.ready("of-missing").await;
    let patch = json!({"spec": {"sources": crate::world::sources(&["there"])}});
    world.conf.merge_patch(INIT, "inittargets", "", "unknown", &patch).await;
    world.ready("of-unknown").await;
}

/// Sets a condition of an object, whose type may be served a moment late.
async fn set_condition(at: &Objects, group: &str, status: &str) {
    let body = json!({"status": {"conditions": [{"type": "Done", "status": status}]}});
    let path = format!("{}/status", path(&format!("{group}/v1"), "widgets", "", "first"));
    eventually("the condition is set", SOON, async || {
        let set = at.send(Method::PATCH, &path, MERGE_PATCH, Some(&body)).await;
        set.map(|_| ()).map_err(|error| error.to_string())
    })
    .await;
}

pub(crate) async fn an_object_that_has_to_be_ready_holds_its_workspace_until_it_is(which: Which) {
    let world = World::of(which).await;
    let group = format!("{}.example.com", world.suffix);
    let annotation = ", annotations: {initialization.kcp.io/wait-for-ready: Done}";
    let more = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: after}\n";
    world.serve("dev", &(widgets(&group, annotation) + more)).await;
    let _agent = world.agent(&[]);
    for name in ["a", "b"] {
        world.workspace(name, "dev").await;
    }
    for name in ["a", "b"] {
        world.waits(name).await;
        let inside = world.inside(name).await;
        arrives(&inside, &format!("{group}/v1"), "widgets", "", "first").await;
        arrives(&inside, "v1", "namespaces", "", "after").await;
    }
    let inside = world.inside("a").await;
    set_condition(&inside, &group, "False").await;
    world.keeps_waiting("a").await;
    set_condition(&inside, &group, "True").await;
    world.ready("a").await;
    world.keeps_waiting("b").await;
}
