//! What once went wrong, run again step by step: each story has an empty world and nothing of chance, so that it stays
//! the same whatever else changes.

use std::rc::Rc;
use std::time::Duration;

use driver::source::Mode;
use edge_syncer::side::Side;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::changes::{config, downsync_type, is_at_edge};
use crate::check;
use crate::sim::accidents::MANY;
use crate::sim::classes::Class;
use crate::sim::flows::{OWNER, SYNC_TARGET};
use crate::sim::ledger::MASS;
use crate::sim::request::Verb;
use crate::sim::run::{Run, tell};
use crate::sim::store::{Key, Store};
use crate::sim::weather::Trouble;
use crate::sim::world::CONFIGS;
use crate::sources::another;

/// The UID of another cluster.
const OTHER: &str = "0a000000-0000-4000-8000-000000000001";

pub(crate) const DOWNSYNCED: &str = "edge.kubestellar.io/downsynced";
const UPSYNCED: &str = "edge.kubestellar.io/upsynced";

pub(crate) fn settings(name: &str) -> Key {
    Key::new("configmaps", "shop", name)
}

/// All `ConfigMap`s of a namespace go down.
pub(crate) fn downsync(run: &Run) {
    let hub = &run.world.hub;
    hub.create("people", "namespaces", "", "shop", json!({}));
    let all = json!([{"group": "", "resource": "configmaps", "apiVersion": "v1",
        "objectsByNamespace": [{"namespace": "shop", "names": ["*"]}]}]);
    hub.create(
        "people",
        CONFIGS,
        "",
        "the-one",
        json!({"spec": {"namespacedObjects": all}}),
    );
}

/// All `ConfigMap`s of these namespaces go up.
pub(crate) fn upsync(run: &Run, namespaces: &[&str]) {
    let all = json!([{"resources": ["configmaps"], "namespaces": namespaces, "names": ["*"]}]);
    run.world
        .hub
        .create("people", CONFIGS, "", "upward", json!({"spec": {"upsync": all}}));
}

/// One object at the hub, and its copy at the edge.
pub(crate) async fn one_copy(run: &mut Run) -> Key {
    downsync(run);
    let key = settings("a");
    run.world
        .hub
        .create("people", &key.resource, "shop", "a", json!({"data": {"x": "1"}}));
    run.start();
    seconds(20).await;
    assert!(run.world.edge.store.borrow().get(&key).is_some(), "it has arrived");
    key
}

/// One object at the edge, and its copy at the hub.
pub(crate) async fn one_that_goes_up(run: &mut Run) -> Key {
    upsync(run, &["field"]);
    let key = Key::new("configmaps", "field", "a");
    let edge = &run.world.edge;
    edge.create("people", "namespaces", "", "field", json!({}));
    edge.create("people", "configmaps", "field", "a", json!({"data": {"x": "1"}}));
    run.start();
    seconds(30).await;
    assert!(run.world.hub.store.borrow().get(&key).is_some(), "it has arrived");
    key
}

pub(crate) async fn seconds(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

fn patch(run: &Run, key: &Key, change: &Value) {
    let patched = run.world.edge.patch("kubectl-edit", key, change);
    assert!(patched.is_some(), "it is there");
}

pub(crate) fn unlabel(run: &Run, key: &Key) {
    patch(run, key, &json!({"metadata": {"labels": {DOWNSYNCED: null}}}));
}

#[test]
fn a_proxys_page_with_status_200_is_no_answer_to_a_delete() {
    check(&tell(&[], false, async |run| {
        let key = one_copy(run).await;
        run.strike(Side::Edge, Trouble::PageFor(Verb::Delete), Duration::from_secs(5));
        run.world.hub.delete(&key);
        seconds(60).await;
    }));
}

#[test]
fn a_copy_that_loses_its_label_as_its_origin_goes_is_deleted_all_the_same() {
    check(&tell(&[], false, async |run| {
        let key = one_copy(run).await;
        unlabel(run, &key);
        run.world.hub.delete(&key);
    }));
}

#[test]
fn a_copy_that_loses_its_label_while_its_deletion_waits_is_deleted_all_the_same() {
    check(&tell(&[], false, async |run| {
        let key = one_copy(run).await;
        run.strike(Side::Edge, Trouble::RefusedFor(Verb::Delete), Duration::from_secs(60));
        run.world.hub.delete(&key);
        seconds(10).await;
        unlabel(run, &key);
        seconds(60).await;
    }));
}

#[test]
fn a_copy_whose_label_went_while_the_hub_was_away_is_deleted_all_the_same() {
    check(&tell(&[], false, async |run| {
        let key = one_copy(run).await;
        run.down(Side::Hub, false, Duration::from_secs(100));
        seconds(10).await;
        unlabel(run, &key);
        seconds(10).await;
        run.world.hub.delete(&key);
        seconds(100).await;
    }));
}

#[test]
fn a_proxys_404_is_no_proof_that_a_deselected_type_has_no_copies() {
    check(&tell(&[Class::NotServed], false, async |run| {
        let key = one_copy(run).await;
        for verb in [Verb::List, Verb::Discover] {
            run.strike(Side::Edge, Trouble::NotFoundFor(verb), Duration::from_secs(60));
        }
        run.world.hub.delete(&Key::new(CONFIGS, "", "the-one"));
        run.world.hub.delete(&key);
        seconds(120).await;
    }));
}

#[test]
fn an_origin_that_an_empty_list_did_not_name_and_a_worker_found_is_missed_when_it_goes() {
    check(&tell(&[Class::EmptyList], false, async |run| {
        let key = one_copy(run).await;
        run.kill().await;
        run.strike(Side::Hub, Trouble::EmptyListOf("configmaps"), Duration::from_secs(20));
        run.start();
        seconds(30).await;
        // Nobody tells that it goes: the next list does not name it, as the first did not.
        run.down(Side::Hub, false, Duration::from_secs(30));
        run.world.hub.delete(&key);
        run.world.hub.forget_versions();
        seconds(60).await;
    }));
}

#[test]
fn a_copy_without_its_label_that_waits_for_a_finalizer_is_made_again_when_it_is_gone() {
    check(&tell(&[], false, async |run| {
        let key = one_copy(run).await;
        patch(
            run,
            &key,
            &json!({"metadata": {"finalizers": ["controller.example.org/held"]}}),
        );
        run.world.edge.delete(&key);
        seconds(5).await;
        unlabel(run, &key);
        seconds(5).await;
        patch(run, &key, &json!({"metadata": {"finalizers": null}}));
    }));
}

#[test]
fn a_copy_that_turns_up_after_the_origins_were_listed_is_held_against_them() {
    check(&tell(&[], false, async |run| {
        one_copy(run).await;
        let owner = format!("u0/configmaps/{SYNC_TARGET}");
        let annotations = json!({DOWNSYNCED: "ConfigMap/shop/b", OWNER: owner});
        let marks = json!({"labels": {DOWNSYNCED: "true"}, "annotations": annotations});
        run.world
            .edge
            .create("velero", "configmaps", "shop", "b", json!({"metadata": marks}));
        seconds(60).await;
    }));
}

#[test]
fn an_edge_restored_from_a_backup_gets_its_copies_back_though_objects_go_up_too() {
    check(&tell(&[Class::EdgeRestored], true, async |run| {
        upsync(run, &["field"]);
        run.world.edge.create("people", "namespaces", "", "field", json!({}));
        let key = one_copy(run).await;
        let backup = run.world.edge.store.borrow().clone();
        run.world.edge.store.borrow_mut().skip(1000);
        run.world.hub.patch("people", &key, &json!({"data": {"x": "2"}}));
        run.world
            .edge
            .create("people", "configmaps", "field", "a", json!({"data": {"x": "1"}}));
        seconds(30).await;
        run.world
            .edge
            .become_another(backup, "the edge was restored from a backup");
    }));
}

#[test]
fn the_record_of_two_syncers_is_preserved_though_all_config_maps_go_up() {
    check(&tell(&[], true, async |run| {
        downsync(run);
        upsync(run, &["*"]);
        run.start();
        seconds(30).await;
        run.world
            .hub
            .create("people", "configmaps", "shop", "a", json!({"data": {"x": "1"}}));
        run.start_another();
        seconds(30).await;
    }));
}

#[test]
fn a_mass_of_deletes_is_held_at_half_though_the_edge_tells_late_of_its_own() {
    check(&tell(&[Class::MassDelete], false, async |run| {
        run.world.hub_creates_many();
        run.start();
        seconds(60).await;
        run.strike(Side::Edge, Trouble::Late, Duration::from_secs(120));
        run.expect_mass(Side::Hub);
        for index in 0..MANY {
            run.world.hub.delete(&settings(&format!("{MASS}-{index}")));
            sleep(Duration::from_millis(300)).await;
        }
    }));
}

#[test]
fn what_happens_after_another_hub_has_answered_is_not_taken_for_what_that_one_has_reported() {
    check(&tell(&[Class::OtherHub], false, async |run| {
        one_copy(run).await;
        let hub = Rc::clone(&run.world.hub);
        let own = hub.store.borrow().clone();
        hub.become_another(Store::another(own.version() + 2), "another hub answers");
        seconds(10).await;
        hub.become_another(own, "");
        seconds(10).await;
        for name in ["b", "c", "d", "e"] {
            hub.create("people", "configmaps", "shop", name, json!({"data": {"x": "1"}}));
        }
        seconds(60).await;
    }));
}

#[test]
fn the_higher_versions_of_another_hub_are_not_held_against_the_right_one() {
    check(&tell(&[Class::OtherHub], false, async |run| {
        let key = one_copy(run).await;
        seconds(100).await;
        let hub = Rc::clone(&run.world.hub);
        let own = hub.store.borrow().clone();
        let mut other = own.clone();
        other.skip(100_000);
        for name in ["default", "kube-system"] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": OTHER}});
            other.put(&Key::new("namespaces", "", name), namespace);
        }
        hub.become_another(other, "another hub answers");
        seconds(200).await;
        hub.become_another(own, "");
        seconds(200).await;
        hub.delete(&key);
        seconds(600).await;
        assert!(!is_at_edge(run, &key), "its deletion is held");
    }));
}

#[test]
fn what_another_hub_left_in_a_moment_does_not_make_it_the_right_one() {
    check(&tell(&[Class::OtherHub], false, async |run| {
        let kept = one_copy(run).await;
        let (hub, gone, stray) = (Rc::clone(&run.world.hub), settings("b"), settings("stray"));
        hub.create("people", "configmaps", "shop", "b", json!({"data": {"x": "1"}}));
        seconds(60).await;
        let own = hub.store.borrow().clone();
        let mut other = another(&own, &[config()]);
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"x": "1"},
            "metadata": {"name": "stray", "namespace": "shop", "uid": "stray"}});
        other.put(&stray, object);
        hub.become_another(other.clone(), "another hub answers");
        seconds(60).await;
        assert!(is_at_edge(run, &stray), "what it selects arrives");
        hub.become_another(own, "");
        seconds(60).await;
        hub.delete(&gone);
        seconds(120).await;
        assert!(!is_at_edge(run, &gone), "the right one is believed");
        assert!(is_at_edge(run, &stray), "the other one has not said that it is gone");
        run.kill().await;
        run.start();
        seconds(60).await;
        let own = hub.store.borrow().clone();
        other.skip(100_000);
        other.remove(&stray);
        hub.become_another(other, "another hub answers");
        seconds(200).await;
        assert!(is_at_edge(run, &kept), "the other one proves nothing");
        hub.become_another(own, "");
        // As the log advises.
        run.world.edge.delete(&stray);
        seconds(60).await;
    }));
}

#[test]
fn a_namespace_that_upsync_left_while_the_syncer_was_away_is_cleared_away() {
    check(&tell(&[], true, async |run| {
        let key = one_that_goes_up(run).await;
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        run.kill().await;
        hub.delete(&key);
        edge.delete(&key);
        run.start();
        seconds(60).await;
    }));
}

#[test]
fn the_status_of_what_somebody_has_taken_over_unnoticed_is_preserved() {
    check(&tell(&[], true, async |run| {
        let up = json!([{"apiGroup": "apps", "resources": ["deployments"], "namespaces": ["field"], "names": ["*"]}]);
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        hub.create("people", CONFIGS, "", "upward", json!({"spec": {"upsync": up}}));
        edge.create("people", "namespaces", "", "field", json!({}));
        edge.create("people", "deployments.apps", "field", "a", json!({"spec": {"x": "1"}}));
        let key = Key::new("deployments.apps", "field", "a");
        let report = |count: u32| {
            let status = json!({"status": {"found": count}});
            assert!(edge.patch_status("controller", &key, &status).is_some(), "it is there");
        };
        report(1);
        run.start();
        seconds(30).await;
        assert_eq!(
            hub.store.borrow().get(&key).expect("it has arrived")["status"]["found"],
            1
        );
        run.strike(Side::Hub, Trouble::Late, Duration::from_secs(60));
        hub.patch("people", &key, &json!({"metadata": {"annotations": {UPSYNCED: null}}}));
        report(2);
        seconds(30).await;
        report(3);
        seconds(30).await;
        assert_eq!(
            hub.store.borrow().get(&key).expect("nobody deletes it")["status"]["found"],
            1
        );
    }));
}

#[test]
fn a_status_that_a_restored_hub_has_lost_goes_up_again_though_its_object_is_as_it_was_reported() {
    for mode in [Mode::Watch, Mode::Poll(Duration::from_secs(60))] {
        check(&tell(&[Class::HubRestored], false, async |run| {
            run.mode = mode;
            downsync_type(run, "the-one", "apps", "deployments", "v1");
            let key = Key::new("deployments.apps", "shop", "a");
            let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
            hub.create("people", &key.resource, "shop", "a", json!({"spec": {"x": "1"}}));
            run.start();
            seconds(150).await;
            let backup = hub.store.borrow().clone();
            hub.store.borrow_mut().skip(1000);
            edge.patch_status("controller", &key, &json!({"status": {"found": 1}}));
            while hub.store.borrow().get(&key).expect("it is there")["status"].is_null() {
                sleep(Duration::from_millis(10)).await;
            }
            hub.become_another(backup, "the hub was restored from a backup");
            seconds(200).await;
        }));
    }
}

#[test]
fn what_is_changed_twice_and_back_while_a_worker_has_it_ends_as_it_was() {
    for pause in (0..60).step_by(3).map(Duration::from_millis) {
        check(&tell(&[], false, async |run| {
            let key = one_copy(run).await;
            for content in ["2", "3", "1"] {
                run.world.hub.patch("people", &key, &json!({"data": {"x": content}}));
                sleep(pause).await;
            }
            seconds(60).await;
        }));
    }
}

#[test]
fn what_is_changed_and_back_while_the_answer_to_the_change_is_lost_ends_as_it_was() {
    check(&tell(&[Class::LostReply], false, async |run| {
        let key = one_copy(run).await;
        run.strike(Side::Edge, Trouble::LostReply, Duration::from_secs(10));
        for content in ["2", "1"] {
            run.world.hub.patch("people", &key, &json!({"data": {"x": content}}));
            seconds(1).await;
        }
        seconds(120).await;
    }));
}

#[test]
fn an_origin_that_another_hub_does_not_have_is_not_forgotten_though_it_has_no_copy_yet() {
    for pause in (0..40).map(|step| Duration::from_millis(200 * step)) {
        check(&tell(&[Class::OtherHub], false, async |run| {
            one_copy(run).await;
            run.strike(Side::Edge, Trouble::RefusedFor(Verb::Apply), Duration::from_secs(20));
            let hub = Rc::clone(&run.world.hub);
            hub.create("people", "configmaps", "shop", "b", json!({"data": {"x": "1"}}));
            seconds(5).await;
            sleep(pause).await;
            let own = hub.store.borrow().clone();
            hub.become_another(Store::new("other", own.version() - 100), "another hub answers");
            seconds(1).await;
            hub.become_another(own, "the right hub answers");
            seconds(120).await;
        }));
    }
}

#[test]
fn a_hub_whose_longer_answers_are_cut_is_not_asked_all_the_time() {
    check(&tell(&[Class::Cut, Class::OtherHub], false, async |run| {
        // Its type is not there, and is asked for.
        downsync_type(run, "another", "example.org", "gauges", "v1");
        one_copy(run).await;
        let hub = Rc::clone(&run.world.hub);
        let own = hub.store.borrow().clone();
        // Without kube-system: whoever asks which cluster it is gets a short answer and then a longer one.
        hub.become_another(Store::another(own.version() - 100), "another hub answers");
        run.strike(Side::Hub, Trouble::Cut, Duration::from_secs(300));
        seconds(20).await;
        let before = run.requests(Side::Hub);
        seconds(200).await;
        let asked = run.requests(Side::Hub) - before;
        hub.become_another(own, "the right hub answers");
        assert!(asked < 200, "{asked} requests");
    }));
}

#[test]
fn a_copy_that_a_backup_brings_back_at_the_version_it_had_goes_again() {
    for mode in [Mode::Poll(Duration::from_secs(60)), Mode::Watch] {
        check(&tell(&[Class::EdgeRestored], false, async |run| {
            run.mode = mode;
            let key = one_copy(run).await;
            seconds(70).await;
            let edge = Rc::clone(&run.world.edge);
            let backup = edge.store.borrow().clone();
            run.world.hub.delete(&key);
            while edge.store.borrow().get(&key).is_some() {
                sleep(Duration::from_millis(1)).await;
            }
            edge.become_another(backup, "the edge was restored from a backup");
            seconds(400).await;
            assert!(!is_at_edge(run, &key), "it goes again");
        }));
    }
}

#[test]
fn what_upsync_wrote_to_another_hub_is_written_to_the_right_one_when_it_is_back() {
    check(&tell(&[Class::OtherHub], true, async |run| {
        let key = one_that_goes_up(run).await;
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        let own = hub.store.borrow().clone();
        let mut other = own.clone();
        for name in ["default", "kube-system"] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": OTHER}});
            other.put(&Key::new("namespaces", "", name), namespace);
        }
        hub.become_another(other, "another hub answers");
        seconds(20).await;
        edge.patch("people", &key, &json!({"data": {"x": "2"}}));
        seconds(20).await;
        hub.become_another(own, "");
        // So that the versions of the other one are none that this one has not reached.
        for index in 0..20 {
            let name = format!("c{index}");
            hub.create("people", "configmaps", "default", &name, json!({}));
        }
        seconds(60).await;
    }));
}
