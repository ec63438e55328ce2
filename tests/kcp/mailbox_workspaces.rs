//! `prep`: the mailbox workspace of a `SyncTarget` is found, waited for, and joined. The mailbox controller, which makes it, is
//! this test.

use serde_json::{Value, json};

use crate::bench::{Finished, IMAGE, finish, kubeconfig_in, new_name, of_kind};
use crate::provider::{Running, bind, provider};
use crate::support::kcp::{Kcp, Workspace};
use crate::support::manifests::documents_in;
use crate::support::process::Folder;
use crate::support::stage::CONFIG_API;
use crate::support::story::{SOON, install_crd};
use crate::support::{Syncer, eventually, unique_suffix};

/// A workspace with a `SyncTarget`.
async fn inventory(kcp: &Kcp, name: &str) -> (Workspace, Value) {
    let inventory = kcp.workspace(&format!("imw-{}", unique_suffix())).await;
    let version = json!({"name": "v2alpha1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "synctargets.edge.kubestellar.io"},
        "spec": {"group": "edge.kubestellar.io", "scope": "Cluster", "versions": [version],
            "names": {"plural": "synctargets", "singular": "synctarget", "kind": "SyncTarget"}},
    });
    install_crd(&[&inventory.objects], &definition).await;
    let target = json!({"apiVersion": CONFIG_API, "kind": "SyncTarget", "metadata": {"name": name}, "spec": {}});
    let target = eventually("the workspace takes a SyncTarget", SOON, async || {
        let created = inventory.objects.try_create(&target).await;
        created.map_err(|error| error.to_string())
    })
    .await;
    (inventory, target)
}

fn prep(workspace: &Workspace, args: &[&str]) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(Syncer::program());
    command.arg("prep").args(args).env_clear().kill_on_drop(true);
    command.arg("--kubeconfig").arg(&workspace.kubeconfig);
    command
}

async fn prepared(workspace: &Workspace, args: &[&str]) -> Finished {
    finish(&mut prep(workspace, args)).await
}

#[tokio::test]
#[ignore = "needs kcp: KCP_BIN, or kcp in PATH"]
async fn an_edge_joins_in_the_mailbox_workspace_of_its_sync_target() {
    let kcp = Kcp::shared().await;
    let folder = Folder::create("kcp-prep");
    let (provider, name) = (provider(kcp).await, new_name());
    let (inventory, target) = inventory(kcp, &name).await;
    let espw = format!("--espw=root:{}", provider.name);
    let file = folder.path().join("out.yaml");
    let path = file.display().to_string();
    let args = [name.as_str(), IMAGE, &espw, "-o", &path];
    let mut running = Running::start(prep(&inventory, &args));
    running.says("waiting for Workspace//").await;
    let meta = &target["metadata"];
    let text = |value: &Value| value.as_str().expect("it is text").to_owned();
    let cluster = text(&meta["annotations"]["kcp.io/cluster"]);
    let mailbox = kcp.workspace(&format!("{cluster}-mb-{}", text(&meta["uid"]))).await;
    running.says("waiting for the hub to serve").await;
    bind(&folder, &mailbox, &provider).await;
    running.end().await.done();
    let first = documents_in(&file);
    let id = text(&of_kind(&first, "Deployment")["metadata"]["name"]);
    let config = mailbox.objects.get(CONFIG_API, "edgesyncconfigs", "", &name).await;
    assert!(config.is_some(), "it is registered there");
    let account = mailbox.objects.get("v1", "serviceaccounts", "default", &id).await;
    assert!(account.is_some());
    let server = text(&kubeconfig_in(&first)["clusters"][0]["cluster"]["server"]);
    assert!(!server.contains("/clusters/"), "{server}");

    // From any other workspace of the same kcp, and as quiet as the script is with -s.
    let imw = format!("--imw=root:{}", inventory.name);
    let again = prepared(&provider, &[&args[..], &[&imw, "-s", "-X"]].concat())
        .await
        .done();
    assert_eq!(again.stderr, "");
    let second = documents_in(&file);
    assert_eq!(of_kind(&second, "Deployment"), of_kind(&first, "Deployment"));
    let gone = prepared(&inventory, &[&name, &espw, "--unregister"]).await.done();
    assert!(
        gone.stderr.contains(&format!("ServiceAccount/default/{id}: deleted")),
        "{}",
        gone.stderr
    );
}

#[tokio::test]
#[ignore = "needs kcp: KCP_BIN, or kcp in PATH"]
async fn what_is_not_there_is_named_with_its_workspace() {
    let kcp = Kcp::shared().await;
    let folder = Folder::create("kcp-prep");
    let (provider, name) = (provider(kcp).await, new_name());
    let (inventory, _) = inventory(kcp, &name).await;
    let espw = format!("--espw=root:{}", provider.name);
    let path = folder.path().join("out.yaml").display().to_string();
    let output = [IMAGE, "-o", &path, "--timeout=1s"];
    for (args, words) in [
        (
            vec![name.as_str(), &espw],
            "is not ready after 1 s: it is not there; is the mailbox controller running?".to_owned(),
        ),
        (
            vec!["site-none", &espw],
            "cannot read SyncTarget//site-none in workspace ".to_owned(),
        ),
        (
            vec![name.as_str(), &espw, "--imw=root"],
            format!("cannot read SyncTarget//{name} in workspace root: "),
        ),
        (
            vec![name.as_str(), "--espw=."],
            "is not the workspace of the edge service provider: it has no APIExport edge.kubestellar.io; give that workspace \
             with --espw"
                .to_owned(),
        ),
        (
            vec![name.as_str(), "--espw=root:none"],
            "root:none is not the workspace of the edge service provider".to_owned(),
        ),
    ] {
        let args = [&args[..], &output].concat();
        let refused = prepared(&inventory, &args).await;
        refused.refused(1, &words);
    }
    assert!(!folder.path().join("out.yaml").exists());
}
