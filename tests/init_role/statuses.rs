//! What targets say of themselves where their CRD has a status.

use serde_json::{Value, json};

use crate::objects::FACTS;
use crate::stage::Which;
use crate::support::story::becomes;
use crate::world::{INIT, World};

/// The condition of a target.
fn condition<'a>(target: &'a Value, name: &str) -> &'a Value {
    let all = target["status"]["conditions"].as_array();
    let found = all.and_then(|all| all.iter().find(|condition| condition["type"] == *name));
    found.unwrap_or(&Value::Null)
}

/// Waits until a condition has this status and reason.
async fn says(world: &World, target: &str, condition_and_status: [&str; 2], reason: &str) -> Value {
    let [name, status] = condition_and_status;
    becomes(&world.conf, [INIT, "inittargets", "", target], reason, |target| {
        let found = condition(target, name);
        found["status"] == *status && found["reason"] == *reason
    })
    .await
}

pub(crate) async fn targets_say_whether_they_can_be_served(which: Which) {
    let world = World::of(which).await;
    world.give_status().await;
    world.serve("good", FACTS).await;
    world.serve("bad", "{{ nosuchfunction }}").await;
    world.template("there", FACTS).await;
    world.target("typeless", "none", &["there"]).await;
    world.target("sourceless", "good", &["there", "not-there"]).await;
    let mut agent = world.agent(&[]);
    let good = says(&world, "good", ["Ready", "True"], "Serving").await;
    let generation = good["metadata"]["generation"].as_u64().unwrap_or_default();
    assert_eq!(good["status"]["observedGeneration"], json!(generation));
    let since = condition(&good, "Ready")["lastTransitionTime"].clone();
    assert!(since.as_str().is_some_and(|since| since.ends_with('Z')), "{good}");
    says(&world, "good", ["Stalled", "False"], "NothingFails").await;
    for (target, reason, words) in [
        ("bad", "TemplateInvalid", "nosuchfunction"),
        ("typeless", "TypeNotFound", "WorkspaceType"),
        (
            "sourceless",
            "TemplateNotFound",
            "sources[1]: there is no InitTemplate not-there",
        ),
    ] {
        let found = says(&world, target, ["Ready", "False"], reason).await;
        let message = condition(&found, "Ready")["message"].as_str().unwrap_or_default();
        assert!(message.contains(words) && message.len() <= 256, "{message}");
    }
    world.workspace("w", "bad").await;
    let stalled = says(&world, "bad", ["Stalled", "True"], "TemplateInvalid").await;
    let message = condition(&stalled, "Stalled")["message"].to_string();
    assert!(message.contains(&world.path_of("w")), "{message}");
    assert_eq!(stalled["status"]["waitingWorkspaces"], 1);
    world.repair("bad", FACTS).await;
    world.ready("w").await;
    says(&world, "bad", ["Ready", "True"], "Serving").await;
    let calm = says(&world, "bad", ["Stalled", "False"], "NothingFails").await;
    assert_eq!(calm["status"]["waitingWorkspaces"], 0);
    // What is as it was has not been written once more.
    let good = says(&world, "good", ["Ready", "True"], "Serving").await;
    assert_eq!(condition(&good, "Ready")["lastTransitionTime"], since);
    agent.ends_well().await;
}
