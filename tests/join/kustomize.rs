//! That `gen` prints what `kubectl kustomize` makes of `manifests/`.

use serde_json::Value;

use crate::bench::{kubeconfig_in, manifest, new_name, token_in};
use crate::hub::id_in;
use crate::support::manifests::overlay;
use crate::support::shared_pair;

/// By kind and name, with the kubeconfig as what it means.
fn comparable(mut documents: Vec<Value>) -> Vec<Value> {
    for object in &mut documents {
        if let Some(text) = object["stringData"]["kubeconfig"].as_str() {
            let parsed: Value = serde_saphyr::from_str(text).expect("it is YAML");
            object["stringData"]["kubeconfig"] = parsed;
        }
    }
    documents.sort_by_key(|object| format!("{}/{}", object["kind"], object["metadata"]["name"]));
    documents
}

#[tokio::test]
async fn prints_what_kustomize_makes_of_each_overlay() {
    let pair = shared_pair().await;
    for (name, flags) in [
        ("single", &["--rbac=wide"][..]),
        ("ha", &["--rbac=wide", "--ha"]),
        ("scoped", &["--rbac=scoped"]),
        ("poll", &["--rbac=wide", "--poll"]),
        ("metered", &["--rbac=wide", "--metered"]),
    ] {
        let target = new_name();
        let uid = format!("{target}-uid");
        let with_uid = format!("--uid={uid}");
        let flags = [flags, &[&with_uid, "-n", "own"]].concat();
        let found = manifest(&pair.hub.kubeconfig(), &target, &flags).await;
        let (kubeconfig, id) = (kubeconfig_in(&found), id_in(&found));
        let cluster = &kubeconfig["clusters"][0]["cluster"];
        let text = |value: &Value| value.as_str().expect("it is text").to_owned();
        let expected = overlay(
            name,
            &[
                ("syncer_id", &id),
                ("sync_target_name", &target),
                ("sync_target_uid", &uid),
                ("downstream_namespace", "own"),
                ("upstream_namespace", "default"),
                ("server_url", pair.hub.url()),
                ("cacrt", &text(&cluster["certificate-authority-data"])),
                ("token", &token_in(&kubeconfig)),
                ("image", "registry.example.org/edge-syncer:0.1.0"),
            ],
        );
        assert_eq!(comparable(found), comparable(expected), "{name}");
    }
}
