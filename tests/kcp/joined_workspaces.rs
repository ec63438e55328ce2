//! An edge that joins a workspace: with the types of `manifests/kcp`, and what `gen` makes.

use serde_json::{Value, json};

use crate::bench::{IMAGE, command, finish, generate, kubeconfig_in, kubectl_at, manifest, new_name, of_kind, write};
use crate::provider::{Running, bind, provider};
use crate::support::kcp::{Kcp, Workspace};
use crate::support::manifests::{documents, documents_in};
use crate::support::objects::{config_map, namespace, syncer_config};
use crate::support::pod::start_as_pod;
use crate::support::process::Folder;
use crate::support::stage::{CONFIG_API, Stage, own_group, stage};
use crate::support::statuses::{returns, set_status};
use crate::support::story::{SOON, arrives, becomes, config_map_entry, copy_equals, crd, custom_object, install_crd};
use crate::support::tables::{OF_CONFIGS, OF_EDGES, cells, tables};
use crate::support::{Objects, PairLease, eventually, unique_suffix};

/// A workspace with the types of configs from `manifests/kcp`, once they are served there.
async fn mailbox(kcp: &Kcp, folder: &Folder) -> Workspace {
    let provider = provider(kcp).await;
    let mailbox = kcp.workspace(&format!("mailbox-{}", unique_suffix())).await;
    bind(folder, &mailbox, &provider).await;
    eventually("configs are served", SOON, async || {
        let listed = mailbox.objects.try_list(CONFIG_API, "syncerconfigs", "", "").await;
        listed.map_err(|error| error.to_string())
    })
    .await;
    mailbox
}

/// The URL of the hub in a manifest.
fn server_in(documents: &[Value]) -> String {
    let server = &kubeconfig_in(documents)["clusters"][0]["cluster"]["server"];
    server.as_str().expect("it has one").to_owned()
}

/// Objects go down and a status comes up by a syncer that has what is in a manifest and nothing else.
async fn syncs(pair: &PairLease, edge: &Objects, hub: &Workspace, shop: &str, flags: &[&str]) {
    let folder = Folder::create("kcp-edge");
    let (group, version) = own_group(shop);
    install_crd(&[&hub.objects, edge], &crd(&group, "gauges", true)).await;
    let gauges = json!({"group": group, "resource": "gauges", "apiVersion": "v1",
        "objectsByNamespace": [{"namespace": shop, "names": ["*"]}]});
    let spec = json!({"namespacedObjects": [gauges, config_map_entry(shop, &["settings"])]});
    hub.objects.create(&namespace(shop)).await;
    hub.objects.create(&syncer_config("the-one", spec)).await;
    let (name, space) = (new_name(), pair.namespace("own"));
    let documents = manifest(&hub.kubeconfig, &name, &[flags, &["-n", &space]].concat()).await;
    assert!(
        !server_in(&documents).contains("/clusters/"),
        "{}",
        server_in(&documents)
    );
    let file = write(&folder, "all.yaml", &documents).display().to_string();
    kubectl_at(&pair.edge.kubeconfig(), &["apply", "-f", &file])
        .await
        .done();
    let mut syncer = start_as_pod(&pair.edge, &folder, &documents).await;

    let a = custom_object(&group, "gauges", shop, "a", 1);
    eventually("the workspace takes a gauge", SOON, async || {
        let created = hub.objects.try_create(&a).await;
        created.map(|_| ()).map_err(|error| error.to_string())
    })
    .await;
    hub.objects
        .create(&config_map(shop, "settings", json!({"v": "1"})))
        .await;
    copy_equals(edge, shop, "settings", &json!({"v": "1"})).await;
    let at = [version.as_str(), "gauges", shop, "a"];
    arrives(edge, at[0], at[1], at[2], at[3]).await;
    set_status(edge, at, true, &json!({"size": 7})).await;
    returns(&hub.objects, at, &json!({"size": 7})).await;
    becomes(
        &hub.objects,
        [CONFIG_API, "edgesyncconfigs", "", &name],
        "has a heartbeat",
        |config| config["status"]["lastSyncerHeartbeatTime"].is_string(),
    )
    .await;
    // As at any other hub, kubectl prints how each is: the namespace is not selected, the two objects are synced.
    eventually("kubectl prints what is synced", SOON, async || {
        let types = "syncerconfigs,edgesyncconfigs,edges";
        let printed = kubectl_at(&hub.kubeconfig, &["get", types]).await.done().stdout;
        let tables = tables(&printed);
        let columns = [OF_CONFIGS, OF_CONFIGS, OF_EDGES];
        let has_columns = tables.iter().zip(columns).all(|(table, columns)| table[0] == columns);
        let of_config = ["syncerconfig.edge.kubestellar.io/the-one", "True", "2/2", "0", "0"];
        let is_synced =
            tables.len() == 3 && cells(&tables[0], of_config[0]).is_some_and(|cells| cells[..5] == of_config);
        if has_columns && is_synced { Ok(()) } else { Err(printed) }
    })
    .await;
    let (status, _) = syncer.terminate().await;
    assert_eq!(status.code(), Some(0));
    assert!(!syncer.log().contains("forbidden"), "{}", syncer.log());
}

#[tokio::test]
#[ignore = "needs kcp: KCP_BIN, or kcp in PATH"]
async fn an_edge_syncs_with_a_workspace_that_has_bound_the_types_of_configs() {
    let Stage { pair, shop, edge, .. } = stage().await;
    let folder = Folder::create("kcp-join");
    let hub = mailbox(Kcp::shared().await, &folder).await;
    syncs(&pair, &edge, &hub, &shop, &[]).await;
}

#[tokio::test]
#[ignore = "needs kcp: KCP_BIN, or kcp in PATH"]
async fn an_edge_syncs_with_no_more_than_its_configs_need_in_a_workspace() {
    let Stage { pair, shop, edge, .. } = stage().await;
    let folder = Folder::create("kcp-join");
    let hub = mailbox(Kcp::shared().await, &folder).await;
    syncs(&pair, &edge, &hub, &shop, &["--rbac=scoped"]).await;
}

#[tokio::test]
#[ignore = "needs kcp: KCP_BIN, or kcp in PATH"]
async fn gen_waits_until_the_types_of_configs_are_bound() {
    let kcp = Kcp::shared().await;
    let folder = Folder::create("kcp-late");
    let (provider, name) = (provider(kcp).await, new_name());
    let mailbox = kcp.workspace(&format!("mailbox-{}", unique_suffix())).await;
    let flag = format!("--kubeconfig={}", mailbox.kubeconfig.display());
    let file = folder.path().join("out.yaml");
    let path = file.display().to_string();
    let args = [flag.as_str(), &name, IMAGE, "-o", &path];
    let impatient = finish(&mut command(&[&args[..], &["--timeout=1s"]].concat())).await;
    impatient.refused(1, "in kcp bind the API edge.kubestellar.io");
    assert!(!file.exists());

    let mut running = Running::start(command(&args));
    running
        .says("waiting for the hub to serve /apis/edge.kubestellar.io")
        .await;
    bind(&folder, &mailbox, &provider).await;
    let finished = running.end().await.done();
    assert!(
        finished.stderr.contains("ServiceAccount/default/"),
        "{}",
        finished.stderr
    );
    let documents = documents_in(&file);
    of_kind(&documents, "Deployment");
}

#[tokio::test]
#[ignore = "needs kcp: KCP_BIN, or kcp in PATH"]
async fn unless_asked_gen_allows_everything_only_to_the_one_edge_of_a_workspace() {
    let folder = Folder::create("kcp-rights");
    let hub = mailbox(Kcp::shared().await, &folder).await;
    let [first, second] = [new_name(), new_name()];
    for (name, why, is_wide) in [
        (&first, "--rbac=wide, since this workspace of kcp has one edge", true),
        (&second, "--rbac=scoped", false),
        (&first, "--rbac=wide, as it is registered", true),
    ] {
        let made = generate(&hub.kubeconfig, &[name, IMAGE, "-o", "-"]).await.done();
        assert!(made.stderr.contains(why), "{}", made.stderr);
        let documents = documents(&made.stdout);
        let rules = &of_kind(&documents, "ClusterRole")["rules"];
        assert_eq!(rules[0]["verbs"] == json!(["*"]), is_wide, "{rules}");
    }
}

#[tokio::test]
#[ignore = "needs kcp: KCP_BIN, or kcp in PATH"]
async fn a_url_without_a_path_is_enough_where_the_token_names_the_workspace() {
    let folder = Folder::create("kcp-url");
    let hub = mailbox(Kcp::shared().await, &folder).await;
    let admin: Value =
        serde_saphyr::from_str(&std::fs::read_to_string(&hub.kubeconfig).expect("it is there")).expect("it is YAML");
    assert!(admin.to_string().contains("/clusters/"), "{admin}");
    let first = manifest(&hub.kubeconfig, &new_name(), &[]).await;
    let text = kubeconfig_in(&first).to_string();
    let pathless = folder.write("pathless.kubeconfig", text);
    assert!(!server_in(&first).contains("/clusters/"));
    // Whoever has all permissions there can have another edge join.
    let (name, out) = (new_name(), ["-o", "-"]);
    let second = generate(&pathless, &[&[name.as_str(), IMAGE][..], &out].concat())
        .await
        .done();
    assert_eq!(server_in(&documents(&second.stdout)), server_in(&first));
    let config = hub.objects.get(CONFIG_API, "edgesyncconfigs", "", &name).await;
    assert!(config.is_some(), "it is registered in the same workspace");
    generate(&hub.kubeconfig, &[&name, "--unregister"]).await.done();
    assert_eq!(hub.objects.get(CONFIG_API, "edgesyncconfigs", "", &name).await, None);
}
