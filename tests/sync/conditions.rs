//! Conditions on configs by the conventions of the API, and how large the entry of an edge may become.

use serde_json::{Value, json};

use crate::support::Objects;
use crate::support::eventually;
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::namespace;
use crate::support::stage::{CONFIG_API, Stage, all_of, config_maps, own_group, select, stage, stock};
use crate::support::story::{SOON, becomes, crd, custom_object, drop_crds, install_crd, reselect};
use crate::support::tokens::now;

in_both_modes!(
    conditions_follow_the_generation_and_keep_their_time_until_their_status_changes,
    an_entry_with_long_failures_stays_small_and_names_the_oldest_first,
);

const ONE: [&str; 4] = [CONFIG_API, "syncerconfigs", "", "the-one"];
const TYPES: [&str; 4] = ["Ready", "ConfigValid", "Synced", "DeletesHeld"];

/// One field of each condition, in the order of [`TYPES`].
fn each(config: &Value, field: &str) -> [Value; 4] {
    let conditions = config["status"]["conditions"].as_array().cloned().unwrap_or_default();
    TYPES.map(|of| {
        let mut found = conditions.iter().filter(|condition| condition["type"] == of);
        found
            .next()
            .map(|condition| condition[field].clone())
            .unwrap_or_default()
    })
}

/// Waits until all conditions are about the config as it is now, with these statuses.
async fn are(hub: &Objects, statuses: [&str; 4]) -> Value {
    becomes(hub, ONE, &format!("has {statuses:?}"), |config| {
        let generation = &config["metadata"]["generation"];
        each(config, "status") == statuses.map(|status| json!(status))
            && each(config, "observedGeneration")
                .iter()
                .all(|observed| observed == generation)
    })
    .await
}

/// Times have whole seconds: what happens after this has another one.
async fn the_second_ends() {
    let begin = now();
    eventually("the clock goes on", SOON, async || {
        if now() > begin + 1 { Ok(()) } else { Err("not yet") }
    })
    .await;
}

/// Fails unless exactly these conditions have another time than before, and that is a later one.
fn have_turned(before: &Value, after: &Value, turned: &[&str]) {
    let [earlier, later] = [before, after].map(|config| each(config, "lastTransitionTime"));
    for ((of, earlier), later) in TYPES.iter().zip(&earlier).zip(&later) {
        let [earlier, later] = [earlier, later].map(|time| time.as_str().expect("each has a time"));
        if turned.contains(of) {
            assert!(earlier < later, "{of}: {earlier} {later}");
        } else {
            assert_eq!(earlier, later, "{of}");
        }
    }
}

async fn conditions_follow_the_generation_and_keep_their_time_until_their_status_changes(flags: Mode) {
    let Stage { pair, shop, hub, .. } = stage().await;
    stock(&hub, &shop, &["a", "b"], &json!({})).await;
    select(&hub, &config_maps(&shop, &["a"])).await;
    let _syncer = pair.syncer(flags);
    let good = ["True", "True", "True", "False"];
    let first = are(&hub, good).await;
    the_second_ends().await;

    // An edit after which all is as good: another generation, and the same times.
    reselect(&hub, &config_maps(&shop, &["a", "b"])).await;
    let second = are(&hub, good).await;
    assert_ne!(first["metadata"]["generation"], second["metadata"]["generation"]);
    have_turned(&first, &second, &[]);

    // One after which an entry cannot be followed.
    let mut wrong = config_maps(&shop, &["a", "b"]);
    let sprockets = json!({"group": "example.org", "resource": "sprockets", "apiVersion": "v1",
        "objectsByNamespace": [{"namespace": shop, "names": ["*"]}]});
    wrong["namespacedObjects"]
        .as_array_mut()
        .expect("it is a list")
        .push(sprockets.clone());
    reselect(&hub, &wrong).await;
    let third = are(&hub, ["False", "False", "True", "False"]).await;
    have_turned(&second, &third, &["Ready", "ConfigValid"]);
    the_second_ends().await;

    // It stays wrong with more of that: another generation and another message, and the same times.
    let mut more = wrong.clone();
    more["namespacedObjects"][1]["resource"] = json!("gears");
    reselect(&hub, &more).await;
    let fourth = are(&hub, ["False", "False", "True", "False"]).await;
    assert_ne!(each(&third, "message")[1], each(&fourth, "message")[1]);
    have_turned(&third, &fourth, &[]);

    reselect(&hub, &config_maps(&shop, &["a", "b"])).await;
    let last = are(&hub, good).await;
    have_turned(&fourth, &last, &["Ready", "ConfigValid"]);
}

/// The CRD whose objects may have a size of five, in words that take many bytes.
fn verbose(group: &str) -> Value {
    let mut definition = crd(group, "works", true);
    let rule = json!({"rule": "self <= 5", "message": "\u{1d54f}".repeat(500)});
    let size = json!({"type": "integer", "x-kubernetes-validations": [rule]});
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"size": size}},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}});
    definition
}

async fn an_entry_with_long_failures_stays_small_and_names_the_oldest_first(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, version) = own_group(&shop);
    install_crd(&[&hub], &crd(&group, "works", true)).await;
    install_crd(&[&edge], &verbose(&group)).await;
    hub.create(&namespace(&shop)).await;
    hub.create(&custom_object(&group, "works", &shop, "z-oldest", 9)).await;
    select(&hub, &all_of(&shop, &[(&group, "works")])).await;
    let _syncer = pair.syncer(flags);
    let fails = async |count: usize| {
        let config = becomes(&hub, ONE, &format!("says that {count} fail"), |config| {
            config["status"]["failing"] == count && config["status"]["edges"][0]["failing"] == count
        })
        .await;
        config["status"]["edges"][0].clone()
    };
    fails(1).await;
    the_second_ends().await;
    let names: Vec<String> = (0..12).map(|index| format!("a{index}")).collect();
    for name in &names {
        hub.create(&custom_object(&group, "works", &shop, name, 9)).await;
    }
    let entry = fails(13).await;
    let bytes = entry.to_string().len();
    assert!(bytes < 8 << 10, "{bytes} bytes");
    let failures = entry["failures"].as_array().expect("it names some").clone();
    // Ten of these would have more bytes.
    assert!((2..10).contains(&failures.len()), "{} of {bytes} bytes", failures.len());
    assert_eq!(failures[0]["object"], format!("Work/{shop}/z-oldest"));
    let since: Vec<&str> = failures
        .iter()
        .filter_map(|failure| failure["since"].as_str())
        .collect();
    assert!(since.is_sorted() && since[0] < since[1], "{since:?}");
    for failure in &failures {
        let message = failure["message"].as_str().expect("it is text");
        assert!(message.contains('\u{1d54f}'), "{message}");
        assert!(message.chars().count() <= 256 + " ...".len(), "{message}");
    }
    // With fewer words there are ten.
    for (index, name) in names.iter().enumerate() {
        hub.delete(&version, "works", &shop, name).await;
        hub.create(&custom_object(&group, "works", &shop, &format!("b{index}"), 9))
            .await;
    }
    let plain = json!([{"op": "replace",
        "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size/x-kubernetes-validations/0/message",
        "value": "at most five"}]);
    crate::support::story::redefine(&edge, &format!("works.{group}"), &plain).await;
    becomes(&hub, ONE, "names ten", |config| {
        let entry = &config["status"]["edges"][0];
        let failures = entry["failures"].as_array().cloned().unwrap_or_default();
        entry["failing"] == 13 && failures.len() == 10 && failures[0]["object"] == format!("Work/{shop}/z-oldest")
    })
    .await;
    drop_crds(&[&hub, &edge], &[&format!("works.{group}")]).await;
}
