//! What fails of a config: the oldest ten, in the words of the server, and how many there are in all.

use serde_json::{Value, json};

use crate::support::eventually;
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::namespace;
use crate::support::stage::{CONFIG_API, Stage, all_of, own_group, select, stage};
use crate::support::story::{SOON, becomes, crd, custom_object, drop_crds, install_crd};
use crate::support::time_now;

in_both_modes!(of_twelve_that_fail_the_oldest_ten_are_named_in_256_characters_each);

const ONE: [&str; 4] = [CONFIG_API, "syncerconfigs", "", "the-one"];
/// How many entries of a config name at most, and how many characters of each are kept.
const NAMED: usize = 10;
const LONGEST: usize = 256;

/// A CRD whose sizes are 5 at most, which it says with many letters that have two bytes each.
fn wordy_crd(group: &str) -> Value {
    let mut definition = crd(group, "works", true);
    let rule = json!({"rule": "self <= 5", "message": "ü".repeat(2 * LONGEST)});
    let size = json!({"type": "integer", "x-kubernetes-validations": [rule]});
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": size}}}});
    definition
}

fn failures(config: &Value) -> &[Value] {
    let failures = config["status"]["edges"][0]["failures"].as_array();
    failures.map_or(&[], Vec::as_slice)
}

async fn of_twelve_that_fail_the_oldest_ten_are_named_in_256_characters_each(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, _) = own_group(&shop);
    install_crd(&[&hub], &crd(&group, "works", true)).await;
    install_crd(&[&edge], &wordy_crd(&group)).await;
    hub.create(&namespace(&shop)).await;
    select(&hub, &all_of(&shop, &[(&group, "works")])).await;
    let _syncer = pair.syncer(flags);
    // By its name it would be the last.
    hub.create(&custom_object(&group, "works", &shop, "z-first", 9)).await;
    let config = becomes(&hub, ONE, "names the first", |config| failures(config).len() == 1).await;
    let first = failures(&config)[0].clone();
    assert_eq!(first["object"], format!("Work/{shop}/z-first"));
    let since = first["since"].as_str().expect("it says since when").to_owned();
    eventually("a second has passed", SOON, async || match time_now() {
        // To the second, as far as both have it.
        now if now[..19] > since[..19] => Ok(()),
        now => Err(now),
    })
    .await;
    for index in 0..11 {
        hub.create(&custom_object(&group, "works", &shop, &format!("a{index}"), 9))
            .await;
    }
    let config = becomes(&hub, ONE, "counts all", |config| config["status"]["failing"] == 12).await;
    let named = failures(&config);
    assert_eq!(named.len(), NAMED, "{named:?}");
    assert_eq!(config["status"]["edges"][0]["failing"], 12);
    assert_eq!(config["status"]["synced"], "0/12");
    // It has been tried again since.
    for field in ["object", "since", "message"] {
        assert_eq!(named[0][field], first[field], "the oldest");
    }
    let times: Vec<&str> = named.iter().filter_map(|failure| failure["since"].as_str()).collect();
    assert!(times.len() == NAMED && times.is_sorted(), "{times:?}");
    for failure in named {
        let message = failure["message"].as_str().unwrap_or_default();
        assert_eq!(message.chars().count(), LONGEST, "{message}");
        assert!(message.ends_with('ü'), "{message}");
    }
    drop_crds(&[&hub, &edge], &[&format!("works.{group}")]).await;
}
