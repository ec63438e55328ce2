//! Stories of what changes around the syncer: types and versions, conversions, configs, labels, statuses; and of what must
//! not wait for others.

use std::rc::Rc;
use std::time::Duration;

use driver::source::Mode;
use edge_syncer::side::Side;
use serde_json::{Value, json};

use crate::check;
use crate::sim::accidents::MANY;
use crate::sim::classes::Class;
use crate::sim::ledger::MASS;
use crate::sim::request::Verb;
use crate::sim::run::{Run, tell};
use crate::sim::server::Server;
use crate::sim::store::Key;
use crate::sim::types::{DEFINITIONS, EDGE_SYNC_CONFIGS};
use crate::sim::weather::{Streaming, Trouble};
use crate::sim::world::{CONFIGS, OVERWRITE};
use crate::stories::{downsync, one_copy, seconds, settings, unlabel};

pub(crate) fn config() -> Key {
    Key::new(CONFIGS, "", "the-one")
}

/// Defines a namespaced type at a side, served at these versions.
pub(crate) fn define(server: &Rc<Server>, plural: &str, group: &str, versions: &[&str], status: bool) {
    let subresources = if status { json!({"status": {}}) } else { json!({}) };
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| {
            json!({"name": version, "served": true, "storage": true, "subresources": subresources,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
        })
        .collect();
    let spec = json!({"group": group, "scope": "Namespaced", "versions": versions,
        "names": {"plural": plural, "singular": plural, "kind": format!("K{plural}"), "listKind": format!("K{plural}List")}});
    let name = format!("{plural}.{group}");
    if server
        .create("helm", DEFINITIONS, "", &name, json!({"spec": spec}))
        .is_none()
    {
        let key = Key::new(DEFINITIONS, "", &name);
        server.patch("helm", &key, &json!({"spec": {"versions": versions}}));
    }
}

/// All objects of a type in `shop` go down, as a config of this name says.
pub(crate) fn downsync_type(run: &Run, config: &str, group: &str, resource: &str, version: &str) {
    let hub = &run.world.hub;
    hub.create("people", "namespaces", "", "shop", json!({}));
    let all = json!([{"group": group, "resource": resource, "apiVersion": version,
        "objectsByNamespace": [{"namespace": "shop", "names": ["*"]}]}]);
    let spec = json!({"spec": {"namespacedObjects": all}});
    hub.create("people", CONFIGS, "", config, spec);
}

pub(crate) fn is_at_edge(run: &Run, key: &Key) -> bool {
    run.world.edge.store.borrow().get(key).is_some()
}

pub(crate) fn hub_status(run: &Run, key: &Key) -> Value {
    let store = run.world.hub.store.borrow();
    store.get(key).expect("it is there")["status"]["found"].clone()
}

pub(crate) fn edge_reports(run: &Run, key: &Key, count: u32) {
    let status = json!({"status": {"found": count}});
    let patched = run.world.edge.patch_status("controller", key, &status);
    assert!(patched.is_some(), "it is there");
}

#[test]
fn a_deselected_copy_that_loses_its_label_while_its_deletion_waits_is_deleted_all_the_same() {
    check(&tell(&[], false, async |run| {
        let key = one_copy(run).await;
        run.world.hub.delete(&config());
        seconds(10).await;
        run.strike(Side::Edge, Trouble::RefusedFor(Verb::Delete), Duration::from_secs(60));
        run.world.hub.delete(&key);
        seconds(10).await;
        unlabel(run, &key);
        seconds(60).await;
    }));
}

#[test]
fn a_deselected_copy_that_loses_its_label_is_deleted_when_its_origin_goes() {
    check(&tell(&[], false, async |run| {
        let key = one_copy(run).await;
        run.world.hub.delete(&config());
        seconds(10).await;
        unlabel(run, &key);
        seconds(10).await;
        run.world.hub.delete(&key);
        seconds(60).await;
    }));
}

#[test]
fn a_copy_whose_content_is_left_to_the_edge_comes_back_though_it_had_lost_its_label() {
    check(&tell(&[], false, async |run| {
        let key = one_copy(run).await;
        let create_only = json!({"metadata": {"annotations": {OVERWRITE: "false"}}});
        run.world.hub.patch("people", &key, &create_only);
        seconds(20).await;
        unlabel(run, &key);
        seconds(20).await;
        run.world.edge.delete(&key);
        seconds(60).await;
        assert!(is_at_edge(run, &key), "nobody has reported that it is gone");
    }));
}

#[test]
fn a_name_that_a_former_conversion_had_given_can_be_used_again() {
    check(&tell(&[], false, async |run| {
        downsync(run);
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        let map = |name: &str| json!({"kind": "ConfigMap", "version": "v1", "name": name});
        let conversions = json!([{"upstream": map("a.den"), "downstream": map("a")}]);
        let configs = format!("{EDGE_SYNC_CONFIGS}.edge.kubestellar.io");
        hub.create(
            "people",
            &configs,
            "",
            "c",
            json!({"spec": {"conversions": conversions}}),
        );
        hub.create("people", "configmaps", "shop", "a.den", json!({"data": {"x": "1"}}));
        run.start();
        seconds(20).await;
        assert!(is_at_edge(run, &settings("a")), "it has arrived");
        hub.delete(&Key::new(&configs, "", "c"));
        seconds(20).await;
        assert!(is_at_edge(run, &settings("a")) && is_at_edge(run, &settings("a.den")));
        hub.create("people", "configmaps", "shop", "a", json!({"data": {"y": "1"}}));
        seconds(20).await;
        edge.delete(&settings("a"));
        seconds(20).await;
        hub.delete(&settings("a.den"));
    }));
}

#[test]
fn copies_of_a_deselected_type_go_though_the_hub_serves_it_at_another_version_now() {
    check(&tell(&[], false, async |run| {
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        define(&hub, "gears", "example.org", &["v1beta1", "v1"], true);
        define(&edge, "gears", "example.org", &["v1beta1", "v1"], true);
        seconds(5).await;
        downsync_type(run, "the-one", "example.org", "gears", "v1beta1");
        let key = Key::new("gears.example.org", "shop", "a");
        hub.create("people", &key.resource, "shop", "a", json!({"spec": {"x": "1"}}));
        run.start();
        seconds(20).await;
        assert!(is_at_edge(run, &key), "it has arrived");
        run.kill().await;
        define(&hub, "gears", "example.org", &["v1"], true);
        hub.delete(&config());
        run.start();
        seconds(60).await;
        hub.delete(&key);
        seconds(60).await;
    }));
}

#[test]
fn configs_of_one_kind_take_effect_though_a_list_of_the_other_has_broken_off() {
    check(&tell(&[], false, async |run| {
        let hub = Rc::clone(&run.world.hub);
        hub.weather.borrow_mut().streaming = Streaming::Refused;
        hub.weather.borrow_mut().page = 1;
        let configs = format!("{EDGE_SYNC_CONFIGS}.edge.kubestellar.io");
        for name in ["one", "two"] {
            hub.create("people", &configs, "", name, json!({"spec": {}}));
        }
        one_copy(run).await;
        hub.forget_versions();
        run.strike(Side::Hub, Trouble::Expired, Duration::from_secs(5));
        seconds(4).await;
        run.strike(Side::Hub, Trouble::Forbidden(configs), Duration::from_secs(3600));
        seconds(60).await;
        hub.create("people", "deployments.apps", "shop", "a", json!({"spec": {"x": "1"}}));
        let all = json!([{"group": "apps", "resource": "deployments", "apiVersion": "v1",
            "objectsByNamespace": [{"namespace": "shop", "names": ["*"]}]}]);
        hub.patch("people", &config(), &json!({"spec": {"namespacedObjects": all}}));
        seconds(60).await;
        let key = Key::new("deployments.apps", "shop", "a");
        assert!(is_at_edge(run, &key), "it is selected");
    }));
}

#[test]
fn held_deletes_go_on_in_time_though_another_type_cannot_be_read() {
    check(&tell(&[Class::MassDelete], false, async |run| {
        let forbidden = Trouble::Forbidden("deployments.apps".into());
        run.strike(Side::Hub, forbidden, Duration::from_secs(10_000));
        run.world.hub_creates_many();
        downsync_type(run, "the-one", "apps", "deployments", "v1");
        run.start();
        seconds(60).await;
        run.expect_mass(Side::Hub);
        run.world.delete_many(Side::Hub);
        seconds(1000).await;
        let left = (0..MANY).filter(|index| is_at_edge(run, &settings(&format!("{MASS}-{index}"))));
        assert_eq!(left.count(), 0, "the time is over");
    }));
}

#[test]
fn deletes_that_were_let_go_and_never_done_do_not_count_for_later_ones() {
    check(&tell(&[Class::MassDelete], false, async |run| {
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        run.world.hub_creates_many();
        run.start();
        seconds(60).await;
        hub.delete(&Key::new(CONFIGS, "", "many"));
        seconds(20).await;
        run.expect_mass(Side::Hub);
        run.world.delete_many(Side::Hub);
        seconds(300).await;
        run.strike(Side::Edge, Trouble::RefusedFor(Verb::Delete), Duration::from_secs(600));
        seconds(400).await;
        for index in 0..MANY {
            edge.delete(&settings(&format!("{MASS}-{index}")));
        }
        seconds(400).await;
        run.ledger.borrow_mut().mass = None;
        hub.delete(&Key::new(CONFIGS, "", "many"));
        run.world.hub_creates_many();
        seconds(120).await;
        run.expect_mass(Side::Hub);
        run.world.delete_many(Side::Hub);
        seconds(100).await;
    }));
}

#[test]
fn a_404_for_a_kind_of_configs_in_the_first_seconds_hides_it_for_no_more_than_seconds() {
    check(&tell(&[], false, async |run| {
        downsync_type(run, "the-one", "", "configmaps", "v1");
        let hub = Rc::clone(&run.world.hub);
        hub.create("people", "configmaps", "shop", "a", json!({"data": {"x": "1"}}));
        run.strike(
            Side::Hub,
            Trouble::NotServed(CONFIGS.to_owned()),
            Duration::from_secs(5),
        );
        run.start();
        seconds(60).await;
        assert!(
            is_at_edge(run, &Key::new("configmaps", "shop", "a")),
            "it waits for ten minutes"
        );
    }));
}

#[test]
fn one_api_that_is_away_is_not_the_whole_side() {
    check(&tell(&[], false, async |run| {
        let hub = Rc::clone(&run.world.hub);
        let key = one_copy(run).await;
        downsync_type(run, "another", "apps", "deployments", "v1");
        seconds(20).await;
        run.strike(
            Side::Hub,
            Trouble::Unavailable("deployments.apps"),
            Duration::from_secs(3600),
        );
        hub.forget_versions();
        seconds(300).await;
        for count in 0..20 {
            let count = count.to_string();
            hub.patch("people", &key, &json!({"data": {"x": count}}));
            seconds(7).await;
            let edge = run.world.edge.store.borrow();
            assert_eq!(edge.get(&key).expect("it is there")["data"]["x"], count);
        }
    }));
}

#[test]
fn copies_are_made_at_another_version_though_the_asked_one_serves_something_else() {
    check(&tell(&[], false, async |run| {
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        define(&hub, "gears", "example.org", &["v1beta1"], true);
        define(&edge, "gears", "example.org", &["v1"], true);
        define(&edge, "wheels", "example.org", &["v1beta1"], true);
        seconds(5).await;
        downsync_type(run, "the-one", "example.org", "gears", "v1beta1");
        let key = Key::new("gears.example.org", "shop", "a");
        hub.create("people", &key.resource, "shop", "a", json!({"spec": {"x": "1"}}));
        run.start();
        seconds(60).await;
        assert!(is_at_edge(run, &key), "at the other version");
        define(&edge, "gears", "example.org", &["v1beta1", "v1"], true);
    }));
}

#[test]
fn a_copy_from_before_a_conversion_to_another_kind_goes_when_its_origin_goes() {
    check(&tell(&[], false, async |run| {
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        define(&hub, "gears", "example.org", &["v1"], true);
        define(&edge, "gears", "example.org", &["v1"], true);
        define(&edge, "wheels", "example.org", &["v1"], true);
        seconds(5).await;
        downsync_type(run, "the-one", "example.org", "gears", "v1");
        let (gear, wheel) = (
            Key::new("gears.example.org", "shop", "a"),
            Key::new("wheels.example.org", "shop", "a"),
        );
        hub.create("people", &gear.resource, "shop", "a", json!({"spec": {"x": "1"}}));
        run.start();
        seconds(20).await;
        assert!(is_at_edge(run, &gear), "it has arrived");
        let of = |kind: &str| json!({"group": "example.org", "kind": kind, "version": "v1", "name": "a"});
        let conversions = json!([{"upstream": of("Kgears"), "downstream": of("Kwheels")}]);
        let configs = format!("{EDGE_SYNC_CONFIGS}.edge.kubestellar.io");
        hub.create(
            "people",
            &configs,
            "",
            "c",
            json!({"spec": {"conversions": conversions}}),
        );
        // Unless somebody looks for it, nobody at the hub has wheels.
        seconds(60).await;
        hub.delete(&gear);
        seconds(60).await;
        assert!(!is_at_edge(run, &gear), "its origin is gone");
        assert!(!is_at_edge(run, &wheel), "its origin is gone");
    }));
}

#[test]
fn copies_of_another_kind_go_when_nothing_selects_them_and_the_hub_loses_their_origins_type() {
    check(&tell(&[], false, async |run| {
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        define(&hub, "gears", "example.org", &["v1"], true);
        define(&edge, "wheels", "example.org", &["v1"], true);
        hub.create("people", "namespaces", "", "shop", json!({}));
        edge.create("people", "namespaces", "", "shop", json!({}));
        seconds(5).await;
        let of = |kind: &str| json!({"group": "example.org", "kind": kind, "version": "v1", "name": "a"});
        let conversions = json!([{"upstream": of("Kgears"), "downstream": of("Kwheels")}]);
        let mut gear = of("Kgears");
        gear["namespace"] = json!("shop");
        let spec = json!({"spec": {"downSyncedResources": [gear], "conversions": conversions}});
        let key = Key::new(&format!("{EDGE_SYNC_CONFIGS}.edge.kubestellar.io"), "", "c");
        hub.create("people", &key.resource, "", "c", spec);
        hub.create("people", "gears.example.org", "shop", "a", json!({"spec": {"x": "1"}}));
        run.start();
        seconds(20).await;
        let wheel = Key::new("wheels.example.org", "shop", "a");
        assert!(is_at_edge(run, &wheel), "it has arrived");
        hub.delete(&key);
        hub.delete(&Key::new(DEFINITIONS, "", "gears.example.org"));
        seconds(600).await;
        assert!(!is_at_edge(run, &wheel), "it is left behind");
    }));
}

#[test]
fn what_has_failed_counts_no_longer_when_nothing_selects_it() {
    check(&tell(&[Class::Poison], false, async |run| {
        let hub = Rc::clone(&run.world.hub);
        run.strike(
            Side::Hub,
            Trouble::Forbidden("deployments.apps".into()),
            Duration::from_secs(3600),
        );
        downsync(run);
        hub.create(
            "people",
            "configmaps",
            "shop",
            "poison-422",
            json!({"data": {"x": "1"}}),
        );
        let deployments = json!([{"group": "apps", "resource": "deployments", "apiVersion": "v1",
            "objectsByNamespace": [{"namespace": "shop", "names": ["*"]}]}]);
        hub.create(
            "people",
            CONFIGS,
            "",
            "another",
            json!({"spec": {"namespacedObjects": deployments}}),
        );
        run.start();
        seconds(30).await;
        assert_eq!(run.figure("failing").await, 2, "an object and a type");
        hub.delete(&Key::new(CONFIGS, "", "another"));
        seconds(30).await;
        assert_eq!(run.figure("failing").await, 1, "the object");
        hub.delete(&config());
        seconds(30).await;
        assert_eq!(run.figure("failing").await, 0);
    }));
}

// As kcp does after a restart: its objects are about to be served, so that their absence says nothing of what is selected.
#[test]
fn a_hub_that_sets_up_the_kind_of_its_configs_is_not_one_without_configs() {
    check(&tell(&[Class::Hidden], false, async |run| {
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        define(&hub, "gears", "example.org", &["v1"], true);
        define(&edge, "gears", "example.org", &["v1"], true);
        downsync_type(run, "the-one", "example.org", "gears", "v1");
        seconds(5).await;
        hub.create("people", "gears.example.org", "shop", "a", json!({"spec": {"x": "1"}}));
        run.start();
        seconds(30).await;
        let gear = Key::new("gears.example.org", "shop", "a");
        assert!(is_at_edge(run, &gear), "it has arrived");
        run.kill().await;
        hub.hide("gears.example.org");
        run.strike(
            Side::Hub,
            Trouble::NotServed(CONFIGS.to_owned()),
            Duration::from_secs(3),
        );
        run.strike(Side::Hub, Trouble::SettingUp(CONFIGS), Duration::from_secs(300));
        run.start();
        seconds(320).await;
        assert!(is_at_edge(run, &gear), "its config was there all the time");
    }));
}

/// All objects in these namespaces go down.
fn whole_namespaces(namespaces: &[&str]) -> Value {
    let each = namespaces.iter().map(|of| json!({"namespace": of, "names": ["*"]}));
    json!({"spec": {"namespacedObjects": [{"group": "", "resource": "configmaps", "apiVersion": "v1",
        "objectsByNamespace": each.collect::<Vec<_>>()}]}})
}

const SIX: [&str; 6] = ["n0", "n1", "n2", "n3", "n4", "n5"];
const OTHER_SIX: [&str; 6] = ["n0", "n1", "n2", "n3", "n4", "n6"];

fn many_namespaces(run: &mut Run) {
    let hub = &run.world.hub;
    for namespace in SIX.into_iter().chain(["n6"]) {
        hub.create("people", "namespaces", "", namespace, json!({}));
        for name in ["a", "b", "c"] {
            hub.create("people", "configmaps", namespace, name, json!({"data": {"x": "1"}}));
        }
    }
    hub.create("people", CONFIGS, "", "the-one", whole_namespaces(&SIX));
    run.start();
}

#[test]
fn an_edit_that_selects_another_namespace_reads_that_one_alone() {
    for mode in [Mode::Watch, Mode::Poll(Duration::from_secs(60))] {
        check(&tell(&[], false, async |run| {
            run.mode = mode;
            many_namespaces(run);
            seconds(120).await;
            let unaffected = |run: &Run| -> Vec<u64> {
                let ledger = run.ledger.borrow();
                let names = SIX[..5].iter().map(|of| Key::new("configmaps", of, "b"));
                names
                    .map(|key| ledger.about.get(&key).copied().unwrap_or_default())
                    .collect()
            };
            let before = unaffected(run);
            run.ledger.borrow_mut().trace.take();
            run.world.hub.patch("people", &config(), &whole_namespaces(&OTHER_SIX));
            // Polls of the config and of all else come in the same minute.
            seconds(if mode == Mode::Watch { 30 } else { 70 }).await;
            assert!(
                is_at_edge(run, &Key::new("configmaps", "n6", "c")),
                "it is selected now"
            );
            assert_eq!(unaffected(run), before, "nothing is new about them");
            if mode == Mode::Watch {
                let lines = run.ledger.borrow_mut().trace.take();
                let mut read = lines.iter().map(|(_, line)| line.as_str());
                let is_list = |line: &&str| line.contains(" hub ") && line.contains("configmaps");
                assert_eq!(read.find(is_list), Some("p1 hub List configmaps/n6 -> 200"));
                assert_eq!(read.find(is_list), None, "nothing else is read");
            }
        }));
    }
}

#[test]
fn edits_in_every_second_do_not_keep_others_waiting() {
    check(&tell(&[], false, async |run| {
        many_namespaces(run);
        seconds(30).await;
        let hub = Rc::clone(&run.world.hub);
        let key = Key::new("configmaps", "n0", "a");
        for round in 0..60 {
            let namespaces = if round % 2 == 0 { OTHER_SIX } else { SIX };
            hub.patch("people", &config(), &whole_namespaces(&namespaces));
            hub.patch("people", &key, &json!({"data": {"x": round.to_string()}}));
            seconds(1).await;
            let edge = run.world.edge.store.borrow();
            let copy = edge.get(&key).expect("it is there");
            assert_eq!(copy["data"]["x"], round.to_string(), "after a second");
        }
    }));
}
