//! What the agent may do: scenarios 19 and 20. All others run with the rights of the manifests and no more, too.

use serde_json::json;

use crate::objects::{FACTS, has_facts};
use crate::stage::Which;
use crate::support::story::arrives;
use crate::world::{TENANCY, World};

pub(crate) async fn a_missing_right_is_named_and_its_grant_is_enough(which: Which) {
    let world = World::of(which).await;
    world.serve("dev", FACTS).await;
    world.revoke(&world.types, "init-agent").await;
    world.revoke(&world.conf, "init-agent").await;
    let mut agent = world.agent(&[]);
    world.workspace("w", "dev").await;
    world.waits("w").await;
    agent.says(&["inittargets"]).await;
    world.grant_in_conf().await;
    agent.says(&["workspacetypes"]).await;
    let reads = json!([
        {"nonResourceURLs": ["/"], "verbs": ["access"]},
        {"apiGroups": ["tenancy.kcp.io"], "resources": ["workspacetypes"], "verbs": ["get", "list", "watch"]},
    ]);
    world.grant(&world.types, "reads", &reads).await;
    agent.says(&["initialize"]).await;
    world.keeps_waiting("w").await;
    world.grant_in_types().await;
    let inside = world.ready("w").await;
    has_facts(&world, &inside, "w").await;
    assert!(agent.0.is_running());
}

pub(crate) async fn a_type_that_gives_rights_is_served_with_no_others(which: Which) {
    let world = World::of(which).await;
    let discovery = json!({"nonResourceURLs": ["/api", "/api/*", "/apis", "/apis/*"], "verbs": ["get"]});
    let some = json!({"apiGroups": [""], "resources": ["namespaces", "configmaps"], "verbs": ["create"]});
    let secrets = json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]});
    world
        .new_type("dev", json!({"initializerPermissions": [discovery, some]}))
        .await;
    let secret = "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: base}\n";
    world.template("dev", FACTS).await;
    world.target("dev", "dev", &["dev"]).await;
    let mut agent = world.agent(&[]);
    world.workspace("a", "dev").await;
    let inside = world.ready("a").await;
    has_facts(&world, &inside, "a").await;
    world.repair("dev", &format!("{FACTS}{secret}")).await;
    world.workspace("b", "dev").await;
    agent.says(&["no rule allows create on core/secrets"]).await;
    world.keeps_waiting("b").await;
    let patch = json!({"spec": {"initializerPermissions": [discovery, some, secrets]}});
    world
        .types
        .merge_patch(TENANCY, "workspacetypes", "", "dev", &patch)
        .await;
    let inside = world.ready("b").await;
    arrives(&inside, "v1", "secrets", "base", "s").await;
}
