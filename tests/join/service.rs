//! What a machine gets that runs the syncer as a service of systemd.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;

use crate::bench::{generate, new_name, token_in};
use crate::support::process::Folder;
use crate::support::story::SOON;
use crate::support::{Syncer, shared_pair};

#[tokio::test]
async fn a_service_gets_its_unit_its_settings_and_a_kubeconfig() {
    let pair = shared_pair().await;
    let folder = Folder::create("service");
    let path = folder.path().join("etc");
    let (name, kubeconfig) = (new_name(), pair.hub.kubeconfig());
    let at = path.display().to_string();
    let uid = format!("--uid={name}-uid");
    generate(&kubeconfig, &[&name, "--format=systemd", "-o", &at, &uid])
        .await
        .done();
    let read = |name: &str| fs::read_to_string(path.join(name)).expect("it was written");
    let mode = |name: &str| path.join(name).metadata().expect("it was written").permissions().mode() & 0o777;
    assert_eq!(fs::read_dir(&path).expect("it is ours").count(), 5);
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("manifests/systemd");
    for unit in fs::read_dir(units).expect("it is there") {
        let unit = unit.expect("it can be read").path();
        let name = unit.file_name().and_then(|name| name.to_str()).expect("it is UTF-8");
        assert_eq!(read(name), fs::read_to_string(&unit).expect("it is there"));
    }
    assert_eq!(
        read("edge-syncer.env"),
        format!(
            "SYNC_TARGET_NAME={name}\nSYNC_TARGET_UID={name}-uid\nNAMESPACE=kube-system\n\
             EDGE_SYNCER_FLAGS=\"--listen-address=localhost:8080\"\n"
        )
    );
    // The unit asks for these and for nothing else.
    for variable in ["SYNC_TARGET_NAME", "SYNC_TARGET_UID", "EDGE_SYNCER_FLAGS"] {
        assert!(read("edge-syncer.service").contains(variable), "{variable}");
    }
    assert_eq!(mode("hub.kubeconfig"), 0o600);
    let of_hub = path.join("hub.kubeconfig");
    let uid = format!("--sync-target-uid={name}-uid");
    let mut syncer = Syncer::start(&of_hub, &pair.edge.kubeconfig(), &[&uid]);
    syncer.wait_for_log("the server of a side", SOON).await;
    let hub = pair.hub.objects();
    crate::support::eventually("the heartbeat arrives with that kubeconfig", SOON, async || {
        let config = hub
            .get("edge.kubestellar.io/v2alpha1", "edgesyncconfigs", "", &name)
            .await;
        let config = config.ok_or("there is no config")?;
        match &config["status"]["lastSyncerHeartbeatTime"] {
            Value::String(_) => Ok(()),
            other => Err(format!("{other}")),
        }
    })
    .await;

    // What a manifest has in the Deployment, a service has in its settings.
    let flags = ["--poll", "--metered", "--qps=7"];
    generate(
        &kubeconfig,
        &[&[&name, "--format=systemd", "-o", &at][..], &flags].concat(),
    )
    .await
    .done();
    let rate = "EDGE_SYNCER_FLAGS=\"--qps=7 --listen-address=localhost:8080 ";
    assert!(read("edge-syncer.env").contains(rate), "{}", read("edge-syncer.env"));
    let added = "--mode=poll --poll-interval=15s --heartbeat-interval=15m --status-interval=1m\"\n";
    assert!(read("edge-syncer.env").ends_with(added), "{}", read("edge-syncer.env"));

    // A new token changes nothing else.
    let token = |text: &str| token_in(&serde_saphyr::from_str(text).expect("it is YAML"));
    let first = token(&read("hub.kubeconfig"));
    fs::write(path.join("edge-syncer.env"), "edited").expect("it is ours");
    generate(&kubeconfig, &[&name, "--format=systemd", "-o", &at, "--rotate"])
        .await
        .done();
    assert_eq!(read("edge-syncer.env"), "edited");
    assert_ne!(token(&read("hub.kubeconfig")), first);
}
