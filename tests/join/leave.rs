//! That an edge which was registered is seen at the hub, and that nothing is left of one that leaves it.

use serde_json::{Value, json};

use crate::bench::{IMAGE, generate, kubeconfig_in, new_name};
use crate::support::manifests::documents;
use crate::support::process::Folder;
use crate::support::stage::CONFIG_API;
use crate::support::story::{a_while, becomes};
use crate::support::{Syncer, holds_throughout, shared_pair};

/// The UIDs of the edges of which a config says something.
fn edges_of(config: &Value) -> Vec<&str> {
    let edges = config["status"]["edges"].as_array().into_iter().flatten();
    edges.filter_map(|edge| edge["syncTargetUID"].as_str()).collect()
}

#[tokio::test]
async fn an_edge_that_joins_is_seen_and_nothing_speaks_of_one_that_leaves_while_its_syncer_still_runs() {
    let pair = shared_pair().await;
    let (hub, name) = (pair.hub.objects(), new_name());
    let (ours, other) = (format!("{name}-uid"), format!("{name}-another"));
    let target = format!("--uid={ours}");
    let done = generate(&pair.hub.kubeconfig(), &[&name, IMAGE, "-o", "-", &target])
        .await
        .done();
    let of_it = format!("edge.kubestellar.io/sync-target-name={name}");
    let made = hub.list(CONFIG_API, "edges", "", &of_it).await;
    let [made] = &made[..] else { panic!("{made:?}") };
    let edge = made["metadata"]["name"].as_str().expect("a name is text").to_owned();
    assert!(
        done.stderr.contains(&format!("Edge//{edge}: created")),
        "{}",
        done.stderr
    );

    let folder = Folder::create("account");
    let account = folder.write("kubeconfig", kubeconfig_in(&documents(&done.stdout)).to_string());
    let flags = [
        format!("--sync-target-name={name}"),
        format!("--sync-target-uid={ours}"),
        "--heartbeat-interval=1s".to_owned(),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let syncer = Syncer::start(&account, &pair.edge.kubeconfig(), &flags);
    let another = format!("--sync-target-uid={other}");
    let _another = pair.syncer(&[&another, "--heartbeat-interval=1s"]);
    let is_well = |edge: &Value| edge["status"]["synced"] == "0/0" && edge["status"]["lastHeartbeatTime"].is_string();
    let seen = becomes(&hub, [CONFIG_API, "edges", "", &edge], "is well", is_well).await;
    assert_eq!(
        seen["metadata"]["uid"], made["metadata"]["uid"],
        "it is the one that gen has made"
    );
    let config = [CONFIG_API, "edgesyncconfigs", "", &*name];
    let both = |config: &Value| edges_of(config).len() == 2;
    becomes(&hub, config, "says something of both", both).await;
    let log = syncer.log();
    assert!(!log.contains("EdgeNotWritten"), "{log}");

    // Somebody has come to use the config, so that it stays.
    let selected = json!({"apiVersion": "v1", "kind": "ConfigMap", "group": "", "name": "b", "namespace": "a"});
    let spec = json!({"spec": {"upSyncedResources": [selected]}});
    hub.merge_patch(config[0], config[1], "", &name, &spec).await;
    let dry = generate(&pair.hub.kubeconfig(), &[&name, "--unregister", "--dry-run"])
        .await
        .done();
    assert!(
        dry.stderr.contains(&format!("Edge//{edge}: would be deleted")),
        "{}",
        dry.stderr
    );
    assert!(
        dry.stderr.contains("what it says of the edge would be taken out"),
        "{}",
        dry.stderr
    );
    let done = generate(&pair.hub.kubeconfig(), &[&name, "--unregister"]).await.done();
    assert!(
        done.stderr.contains(&format!("Edge//{edge}: deleted")),
        "{}",
        done.stderr
    );
    assert!(
        done.stderr.contains("what it says of the edge was taken out"),
        "{}",
        done.stderr
    );
    holds_throughout("nothing speaks of it", a_while(), async || {
        let config = hub
            .try_get(config[0], config[1], "", &name)
            .await
            .map_err(|error| error.to_string())?;
        let config = config.ok_or("the config is gone")?;
        if edges_of(&config) != [other.as_str()] {
            return Err(config["status"].to_string());
        }
        match hub.try_get(CONFIG_API, "edges", "", &edge).await {
            Ok(None) => Ok(()),
            found => Err(format!("{found:?}")),
        }
    })
    .await;
    hub.delete(config[0], config[1], "", &name).await;
    hub.delete(CONFIG_API, "edges", "", &other).await;
}
