//! A workspace that the Go agent has begun is finished by this one, and the reverse.
//!
//! With a real kcp, `INIT_AGENT_BIN` names a Go agent to run. Otherwise the test itself does what that does.

use std::path::PathBuf;

use http::Method;
use serde_json::{Value, json};

use crate::objects::{FACTS, has_facts};
use crate::stage::Which;
use crate::support::objects::{MERGE_PATCH, code, path};
use crate::support::story::{SOON, arrives};
use crate::support::{Objects, Syncer, eventually};
use crate::world::{CORE, World};

const UNKNOWN: &str = "apiVersion: nowhere.example.com/v1\nkind: Unknown\nmetadata: {name: u}\n";

/// The Go agent.
enum Other {
    Real(#[expect(dead_code, reason = "it runs until it is dropped")] Syncer),
    /// What it does in a workspace: nothing marks what it creates.
    Described(Objects),
}

impl Other {
    async fn start(world: &World, which: Which, id: &str) -> Self {
        let program = std::env::var_os("INIT_AGENT_BIN").filter(|_| which == Which::Real);
        if let Some(program) = program {
            let file = world.stage.kubeconfig(&world.folder, "", Some(&world.user), |_| {});
            let (file, of) = (file.display().to_string(), world.conf_path.as_str());
            let args = [
                "--kubeconfig",
                &file,
                "--config-workspace",
                of,
                "--metrics-address",
                "0",
            ];
            return Self::Real(Syncer::start_program(&PathBuf::from(program), &args, &[]));
        }
        let initializer = world.initializer("dev").await;
        let below = format!("/services/initializingworkspaces/{initializer}/clusters/{id}");
        Self::Described(world.stage.objects(&world.folder, &below, Some(&world.user)).await)
    }

    /// It creates what the template has, and leaves what is there.
    async fn creates(&self, world: &World, name: &str, id: &str) {
        let Self::Described(at) = self else { return };
        let data = json!({"id": id, "path": world.path_of(name)});
        for object in [
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "base"}}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "facts", "namespace": "base"}, "data": data}),
        ] {
            eventually("it is created or there", SOON, async || {
                match at.try_create(&object).await {
                    Ok(_) => Ok(()),
                    Err(error) if code(&error) == 409 => Ok(()),
                    Err(error) => Err(error.to_string()),
                }
            })
            .await;
        }
    }

    /// It takes the initializer off, by a merge patch with what remains of the list.
    async fn lets_go(&self, initializer: &str) {
        let Self::Described(at) = self else { return };
        let path = path(CORE, "logicalclusters", "", "cluster");
        let logical = at.read(&path).await.expect("it waits");
        let list = logical["status"]["initializers"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let rest: Vec<Value> = list.into_iter().filter(|one| *one != *initializer).collect();
        let body = json!({"status": {"initializers": rest}});
        let sent = at
            .send(Method::PATCH, &format!("{path}/status"), MERGE_PATCH, Some(&body))
            .await;
        sent.expect("it is taken off");
    }
}

/// The UIDs of what is made of the template.
async fn uids(inside: &Objects) -> [Value; 2] {
    let space = arrives(inside, "v1", "namespaces", "", "base").await;
    let facts = arrives(inside, "v1", "configmaps", "base", "facts").await;
    [space, facts].map(|object| object["metadata"]["uid"].clone())
}

/// A type whose target needs a kind that is not there.
async fn stage(world: &World) {
    world.new_type("dev", Value::Null).await;
    world.template("facts", FACTS).await;
    world.template("late", UNKNOWN).await;
    world.target("dev", "dev", &["facts", "late"]).await;
}

pub(crate) async fn what_the_go_agent_has_begun_is_finished(which: Which) {
    let world = World::of(which).await;
    stage(&world).await;
    world.workspace("w", "dev").await;
    let id = world.waits("w").await;
    let other = Other::start(&world, which, &id).await;
    other.creates(&world, "w", &id).await;
    let inside = world.inside("w").await;
    let before = uids(&inside).await;
    drop(other);
    let mut agent = world.agent(&[]);
    world.keeps_waiting("w").await;
    world.repair("late", "# nothing\n").await;
    let inside = world.ready("w").await;
    has_facts(&world, &inside, "w").await;
    assert_eq!(uids(&inside).await, before);
    assert_eq!(crate::objects::updates(&world), Vec::<String>::new());
    agent.ends_well().await;
}

pub(crate) async fn what_this_agent_has_begun_the_go_agent_finishes(which: Which) {
    let world = World::of(which).await;
    stage(&world).await;
    world.workspace("w", "dev").await;
    let id = world.waits("w").await;
    let mut agent = world.agent(&[]);
    let inside = world.inside("w").await;
    let before = uids(&inside).await;
    agent.ends_well().await;
    // Nothing says who has made it.
    let facts = arrives(&inside, "v1", "configmaps", "base", "facts").await;
    assert_eq!(facts["metadata"]["labels"], Value::Null, "{facts}");
    let annotations = facts["metadata"]["annotations"].as_object();
    assert!(
        annotations.is_none_or(|all| all.keys().all(|key| key.starts_with("kcp.io/"))),
        "{facts}"
    );
    world.repair("late", "# nothing\n").await;
    let other = Other::start(&world, which, &id).await;
    other.creates(&world, "w", &id).await;
    other.lets_go(&world.initializer("dev").await).await;
    let inside = world.ready("w").await;
    has_facts(&world, &inside, "w").await;
    assert_eq!(uids(&inside).await, before);
}
