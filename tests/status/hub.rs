//! What the hub alone knows.

use std::process::Command;

use serde_json::{Value, json};

use crate::bench::{EACH_SECOND, comes_to, compared, status};
use crate::support::objects::{namespace, syncer_config};
use crate::support::stage::{Stage, all_of, config_maps, numbered, own_group, select, stage, stock};
use crate::support::story::{SOON, crd, crd_up_to_five, custom_object, drop_crds, gone, install_crd};
use crate::support::{SYNCER, Syncer, eventually, kubectl};

#[tokio::test]
async fn all_that_is_synced_is_0_at_either_side_and_nothing_is_written() {
    let stage = stage().await;
    let Stage { pair, shop, hub, .. } = &stage;
    stock(hub, shop, &["a", "b"], &json!({"k": "v"})).await;
    select(hub, &config_maps(shop, &["*"])).await;
    let mut syncer = pair.syncer(&["--sync-target-name=site"]);
    let found = comes_to(&stage, 0, &[]).await;
    let rows = found.rows();
    assert_eq!(
        rows[0],
        ["CONFIG", "EDGE", "STATE", "SYNCED", "FAILING", "HELD", "SEEN"]
    );
    assert_eq!(
        rows[1][..6],
        ["SyncerConfig/the-one", "site", "synced", "2/2", "0", "0"]
    );
    assert_eq!((rows.len(), &*found.err), (2, ""));
    syncer.terminate().await;
    let marks = [pair.hub.audit_mark(), pair.edge.audit_mark()];
    let wide = status(&stage, &["-o", "wide"]).await;
    wide.ends_with(0).says(" test ");
    assert!(!wide.out.contains('\x1b'), "no terminal, no colours: {}", wide.out);
    let found = compared(&stage, &["-o", "json"]).await;
    let json = found.ends_with(0).json();
    assert_eq!(json["verdict"], "Synced");
    assert_eq!(json["edge"]["syncTargetUID"], "test");
    let types = json["edge"]["types"].as_array().cloned().unwrap_or_default();
    let config_maps = types.iter().find(|of| of["resource"] == "configmaps");
    let counts = |of: &Value| ["selected", "inPlace", "outOfPlace", "left", "copies"].map(|field| of[field].clone());
    // Namespaces have a certificate of their own, which is never synced.
    assert_eq!(
        config_maps.map(counts),
        Some([2, 2, 0, 0, 2].map(|count| json!(count))),
        "{json:#}"
    );
    let one = format!("ConfigMap/{shop}/a");
    for more in [&["--object", &one][..], &["--object", &one, "--config=the-one"]] {
        status(&stage, more)
            .await
            .ends_with(0)
            .says("selected by SyncerConfig//the-one");
        compared(&stage, more).await.ends_with(0).says("in place");
    }
    compared(&stage, &[]).await.ends_with(0).says("configmaps");
    for (server, mark) in [(&pair.hub, &marks[0]), (&pair.edge, &marks[1])] {
        let requests = server.requests_since(SYNCER, *mark);
        assert!(!requests.is_empty());
        let writes: Vec<_> = requests.iter().filter(|request| request.is_write()).collect();
        assert!(writes.is_empty(), "{writes:?}");
    }
}

#[tokio::test]
async fn what_the_edge_refuses_and_what_is_misspelt_is_1_with_the_words_that_help() {
    let stage = stage().await;
    let Stage { pair, shop, hub, edge } = &stage;
    let (group, _) = own_group(shop);
    install_crd(&[hub], &crd(&group, "works", true)).await;
    install_crd(&[edge], &crd_up_to_five(&group, "works")).await;
    hub.create(&namespace(shop)).await;
    for (name, size) in [("good", 1), ("bad", 9)] {
        hub.create(&custom_object(&group, "works", shop, name, size)).await;
    }
    select(hub, &all_of(shop, &[(&group, "works"), ("apps", "deployment")])).await;
    let _syncer = pair.syncer(&[]);
    let found = eventually("both are named", SOON, async || {
        let found = status(&stage, &[]).await;
        let has_both = found.out.contains(&format!("Work/{shop}/bad")) && found.out.contains("did you mean");
        if has_both {
            Ok(found)
        } else {
            Err(found.out + &found.err)
        }
    })
    .await;
    found
        .ends_with(1)
        .says("spec.namespaceScope.resources[1]: ")
        .says("did you mean deployments")
        .says(&format!("Work/{shop}/bad at the edge fails since "))
        .says("(ObjectRejected):")
        .says("should be less than or equal to 5");
    assert_eq!(found.rows()[1][2], "invalid");
    let bad = format!("Work/{shop}/bad");
    status(&stage, &["--object", &bad])
        .await
        .ends_with(1)
        .says("should be less than or equal to 5");
    compared(&stage, &["--object", &bad])
        .await
        .ends_with(1)
        .says(&format!("edge: there is no {bad}"));
    // Kinds are found in any case.
    let good = format!("work/{shop}/good");
    status(&stage, &["--object", &good])
        .await
        .ends_with(0)
        .says("it does not fail");
    compared(&stage, &["--object", &good])
        .await
        .ends_with(0)
        .says("in place");
    status(&stage, &["--object", &format!("Wrok/{shop}/good")])
        .await
        .ends_with(1)
        .says("did you mean Work?");
    let json = compared(&stage, &["-o", "json"]).await;
    let json = json.ends_with(1).json();
    let place = |object: &str| {
        let objects = json["edge"]["objects"].as_array().cloned().unwrap_or_default();
        let found = objects.into_iter().find(|found| found["object"] == object);
        found.map(|found| found["state"].clone())
    };
    assert_eq!(place(&bad), Some(json!("Missing")), "{json:#}");
    drop_crds(&[hub, edge], &[&format!("works.{group}")]).await;
}

#[tokio::test]
async fn held_deletes_have_a_command_that_confirms_them() {
    let stage = stage().await;
    let Stage { pair, shop, hub, edge } = &stage;
    stock(hub, shop, &numbered(6), &json!({})).await;
    select(hub, &config_maps(shop, &["*"])).await;
    let mut syncer = pair.syncer(&[EACH_SECOND, "--hold-deletes-above=2"]);
    comes_to(&stage, 0, &[]).await;
    // As one event for the syncer.
    syncer.signal("STOP");
    for name in &numbered(6)[..5] {
        hub.delete("v1", "configmaps", shop, name).await;
    }
    syncer.signal("CONT");
    let found = eventually("deletes are held", SOON, async || {
        let found = status(&stage, &[]).await;
        let is_held = found.out.contains("deletes are held (TooMany)");
        if is_held {
            Ok(found)
        } else {
            Err(found.out + &found.err)
        }
    })
    .await;
    found.ends_with(1);
    assert_eq!(found.rows()[1][2], "held");
    let command = found.out.lines().find(|line| line.trim_start().starts_with("kubectl "));
    let command = command.expect("there is the command").trim();
    let json = compared(&stage, &["-o", "json"]).await.ends_with(1).json();
    assert_eq!(json["configs"][0]["edges"][0]["confirm"], command);
    let left = json["edge"]["objects"].as_array().cloned().unwrap_or_default();
    assert!(
        !left.is_empty() && left.iter().all(|object| object["state"] == "Left"),
        "{json:#}"
    );
    let program = kubectl();
    let folder = program.parent().expect("it is in a folder").display().to_string();
    let run = Command::new("sh")
        .args(["-c", command])
        .env("PATH", format!("{folder}:/usr/bin:/bin"))
        .output();
    let run = run.expect("there is a shell");
    assert!(run.status.success(), "{command}: {run:?}");
    for name in &numbered(6)[..5] {
        gone(edge, "v1", "configmaps", shop, name).await;
    }
    let found = comes_to(&stage, 0, &[]).await;
    assert_eq!(found.rows()[1][3], "1/1");
    compared(&stage, &[]).await.ends_with(0);
}

#[tokio::test]
async fn the_table_fits_80_columns() {
    let stage = stage().await;
    let Stage { pair, shop, hub, .. } = &stage;
    stock(hub, shop, &["a"], &json!({})).await;
    let long = "x".repeat(60);
    let config = syncer_config(&long, config_maps(shop, &["a"]));
    hub.create(&config).await;
    let _syncer = pair.syncer(&["--sync-target-name=a-rather-long-name-of-a-warehouse-in-the-north"]);
    let whole = comes_to(&stage, 0, &[]).await;
    whole.says(&format!("SyncerConfig/{long}  a-rather-long"));
    let output = Command::new(Syncer::program())
        .args(["status", "--from-kubeconfig"])
        .arg(pair.hub.kubeconfig())
        .env("COLUMNS", "80")
        .output()
        .expect("the binary can be started");
    let text = String::from_utf8(output.stdout).expect("it prints UTF-8");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains('…'), "{text}");
}
