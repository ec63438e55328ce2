//! Stories of the record of synced types: not read, not written, refused, gone back.

use std::rc::Rc;
use std::time::Duration;

use driver::source::Mode;
use edge_syncer::side::Side;
use serde_json::json;
use tokio::time::sleep;

use crate::check;
use crate::sim::accidents::MANY;
use crate::sim::classes::Class;
use crate::sim::flows::DOWNSYNC;
use crate::sim::ledger::RECORD;
use crate::sim::request::Verb;
use crate::sim::run::{Run, tell};
use crate::sim::store::{Key, Store};
use crate::sim::weather::Trouble;
use crate::sim::world::CONFIGS;
use crate::sources::another;
use crate::stories::{one_copy, seconds, settings, unlabel};

use crate::changes::{config, downsync_type, is_at_edge};

#[test]
fn a_proxys_404_to_the_record_is_not_taken_for_a_record_that_cannot_be_kept() {
    check(&tell(&[Class::NotServed], false, async |run| {
        let key = one_copy(run).await;
        run.kill().await;
        run.strike(Side::Edge, Trouble::NotFoundFor(Verb::Get), Duration::from_secs(5));
        run.world.hub.delete(&config());
        run.world.hub.delete(&key);
        run.start();
        seconds(60).await;
    }));
}

#[test]
fn a_record_that_somebody_deletes_comes_back_though_nothing_changes() {
    check(&tell(&[], false, async |run| {
        let key = one_copy(run).await;
        seconds(30).await;
        run.world.edge.delete(&Key::new("configmaps", "default", RECORD));
        seconds(2 * 3600).await;
        run.kill().await;
        run.world.hub.delete(&config());
        run.world.hub.delete(&key);
        run.start();
        seconds(120).await;
        assert!(!is_at_edge(run, &key), "it is forgotten");
    }));
}

#[test]
fn what_was_written_to_an_edge_just_before_it_went_back_to_the_version_of_the_last_poll_is_written_again() {
    for mode in [Mode::Watch, Mode::Poll(Duration::from_secs(60))] {
        check(&tell(&[Class::EdgeRestored], false, async |run| {
            run.mode = mode;
            let key = one_copy(run).await;
            seconds(150).await;
            let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
            let backup = edge.store.borrow().clone();
            hub.patch("people", &key, &json!({"data": {"x": "2"}}));
            while edge.store.borrow().get(&key).expect("nobody deletes it")["data"]["x"] != "2" {
                sleep(Duration::from_millis(10)).await;
            }
            edge.become_another(backup, "the edge was restored from a backup");
            seconds(200).await;
        }));
    }
}

#[test]
fn a_record_that_could_not_be_read_for_a_while_is_read_later() {
    check(&tell(&[Class::Forbidden], false, async |run| {
        let key = one_copy(run).await;
        run.kill().await;
        let trouble = Trouble::Forbidden("configmaps".into());
        run.strike(Side::Edge, trouble, Duration::from_secs(60));
        run.world.hub.delete(&config());
        run.world.hub.delete(&key);
        run.start();
        seconds(120).await;
    }));
}

#[test]
fn a_record_that_could_not_be_written_for_a_while_is_written_later() {
    check(&tell(&[Class::Forbidden], false, async |run| {
        run.strike(
            Side::Edge,
            Trouble::Forbidden("configmaps".into()),
            Duration::from_secs(60),
        );
        let hub = Rc::clone(&run.world.hub);
        downsync_type(run, "the-one", "apps", "deployments", "v1");
        hub.create("people", "deployments.apps", "shop", "a", json!({"spec": {"x": "1"}}));
        run.start();
        // The longest wait between two tries.
        seconds(700).await;
        run.kill().await;
        hub.delete(&config());
        hub.delete(&Key::new("deployments.apps", "shop", "a"));
        run.start();
    }));
}

#[test]
fn another_hub_is_known_from_the_own_though_the_record_could_not_be_read_at_once() {
    check(&tell(&[Class::OtherHub], false, async |run| {
        let key = one_copy(run).await;
        let hub = Rc::clone(&run.world.hub);
        run.kill().await;
        let own = hub.store.borrow().clone();
        hub.become_another(another(&own, &[config()]), "another hub answers");
        run.strike(Side::Edge, Trouble::NotFoundFor(Verb::Get), Duration::from_secs(5));
        run.start();
        seconds(60).await;
        assert!(is_at_edge(run, &key), "it stays");
        hub.become_another(own, "");
        seconds(60).await;
    }));
}

#[test]
fn a_deselected_type_leaves_the_record_though_its_last_copy_had_lost_its_label() {
    check(&tell(&[], false, async |run| {
        let key = one_copy(run).await;
        run.kill().await;
        unlabel(run, &key);
        run.world.hub.delete(&config());
        run.start();
        seconds(20).await;
        run.world.hub.delete(&key);
        seconds(120).await;
        assert!(!is_at_edge(run, &key), "it is deleted");
        let edge = run.world.edge.store.borrow();
        let record = edge
            .get(&Key::new("configmaps", "default", RECORD))
            .expect("it is kept");
        let types = record["data"]["types"].as_str().unwrap_or_default();
        assert!(!types.contains("configmaps"), "{types:?}");
    }));
}

#[test]
fn a_type_that_is_deselected_while_no_record_can_be_kept_is_not_forgotten() {
    check(&tell(&[Class::Forbidden], false, async |run| {
        run.strike(
            Side::Edge,
            Trouble::Forbidden("configmaps".into()),
            Duration::from_secs(3600),
        );
        let hub = Rc::clone(&run.world.hub);
        downsync_type(run, "the-one", "apps", "deployments", "v1");
        let key = Key::new("deployments.apps", "shop", "a");
        hub.create("people", &key.resource, "shop", "a", json!({"spec": {"x": "1"}}));
        run.start();
        seconds(60).await;
        assert!(is_at_edge(run, &key), "it has arrived");
        hub.delete(&config());
        seconds(60).await;
        hub.delete(&key);
        seconds(60).await;
        assert!(!is_at_edge(run, &key), "its origin is gone");
    }));
}

#[test]
fn a_proxys_page_with_status_200_is_no_record_that_was_written() {
    check(&tell(&[], false, async |run| {
        run.strike(Side::Edge, Trouble::PageFor(Verb::Apply), Duration::from_secs(5));
        let key = one_copy(run).await;
        run.kill().await;
        run.world.hub.delete(&config());
        run.world.hub.delete(&key);
        run.start();
        seconds(60).await;
    }));
}

/// A deployment at the hub and its copy at the edge, beside one `ConfigMap`; and a backup of the edge from before or after.
async fn edge_with_a_deployment(run: &mut Run, backup_before: bool) -> (Key, Store) {
    one_copy(run).await;
    let hub = Rc::clone(&run.world.hub);
    let early = run.world.edge.store.borrow().clone();
    downsync_type(run, "another", "apps", "deployments", "v1");
    hub.create("people", "deployments.apps", "shop", "a", json!({"spec": {"x": "1"}}));
    seconds(60).await;
    let key = Key::new("deployments.apps", "shop", "a");
    assert!(is_at_edge(run, &key), "it has arrived");
    let late = run.world.edge.store.borrow().clone();
    run.world.edge.store.borrow_mut().skip(1000);
    run.world
        .edge
        .patch("people", &settings("a"), &json!({"metadata": {"labels": {"x": "1"}}}));
    (key, if backup_before { early } else { late })
}

#[test]
fn an_edge_restored_from_a_backup_gets_its_record_back() {
    check(&tell(&[Class::EdgeRestored], false, async |run| {
        let (key, backup) = edge_with_a_deployment(run, true).await;
        let hub = Rc::clone(&run.world.hub);
        run.world
            .edge
            .become_another(backup, "the edge was restored from a backup");
        // A watch that hears nothing is noticed after three minutes.
        seconds(300).await;
        assert!(is_at_edge(run, &key), "it is made again");
        run.kill().await;
        hub.delete(&Key::new(CONFIGS, "", "another"));
        hub.delete(&key);
        run.start();
    }));
}

#[test]
fn what_an_old_backup_of_the_edge_brings_back_of_a_forgotten_type_goes_again() {
    check(&tell(&[Class::EdgeRestored], false, async |run| {
        let (key, backup) = edge_with_a_deployment(run, false).await;
        let hub = Rc::clone(&run.world.hub);
        hub.delete(&Key::new(CONFIGS, "", "another"));
        hub.delete(&key);
        seconds(60).await;
        assert!(!is_at_edge(run, &key), "it has gone");
        run.world
            .edge
            .become_another(backup, "the edge was restored from a backup");
        seconds(60).await;
    }));
}

#[test]
fn a_type_that_seemed_to_have_no_copies_left_just_after_a_backup_brought_one_back_is_read_again() {
    check(&tell(&[Class::EdgeRestored], false, async |run| {
        let key = one_copy(run).await;
        run.world
            .hub
            .create("people", "configmaps", "shop", "b", json!({"data": {"x": "1"}}));
        seconds(20).await;
        run.world.hub.delete(&config());
        seconds(20).await;
        let edge = Rc::clone(&run.world.edge);
        let backup = edge.store.borrow().clone();
        // By this it is noticed later that the edge has gone back.
        let namespace = Key::new("namespaces", "", "shop");
        for number in 0..20 {
            edge.patch(
                "people",
                &namespace,
                &json!({"metadata": {"labels": {"number": number.to_string()}}}),
            );
        }
        run.world.hub.delete(&key);
        seconds(20).await;
        assert!(!is_at_edge(run, &key), "it went with its origin");
        edge.become_another(backup, "the edge was restored from a backup");
        run.world.hub.delete(&settings("b"));
        seconds(400).await;
    }));
}

#[test]
fn a_record_that_another_syncer_writes_while_this_one_starts_does_not_make_the_hub_look_older() {
    check(&tell(&[], false, async |run| {
        let key = one_copy(run).await;
        run.kill().await;
        run.down(Side::Edge, false, Duration::from_secs(30));
        run.start();
        seconds(10).await;
        // The configs have been listed, and the record has not been read.
        let hub = &run.world.hub;
        hub.patch(
            "another",
            &config(),
            &json!({"metadata": {"annotations": {"beat": "1"}}}),
        );
        let configs = format!("{CONFIGS} {}\n", hub.store.borrow().version());
        let record = Key::new("configmaps", "default", RECORD);
        let reported = json!({"data": {"hub-versions": configs}});
        run.world.edge.patch("edge-syncer", &record, &reported);
        seconds(60).await;
        run.world.hub.delete(&key);
        seconds(60).await;
        assert!(!is_at_edge(run, &key), "nothing is to be held");
    }));
}

/// A copy as another syncer with the same configs would make it.
pub(crate) fn made_by_another_syncer(run: &Run, key: &Key) {
    let owner = format!("ConfigMap/{}/{}", key.namespace, key.name);
    let marks = json!({"labels": {DOWNSYNC.mark: "true"}, "annotations": {DOWNSYNC.mark: owner}});
    let copy = json!({"metadata": marks, "data": {"x": "1"}});
    let edge = &run.world.edge;
    edge.create("edge-syncer", &key.resource, &key.namespace, &key.name, copy);
}

#[test]
fn copies_that_another_syncer_has_made_while_the_hub_was_away_hold_no_deletes() {
    check(&tell(&[], false, async |run| {
        let key = one_copy(run).await;
        run.down(Side::Hub, false, Duration::from_secs(60));
        seconds(5).await;
        for number in 0..MANY {
            let name = format!("other-{number}");
            let body = json!({"data": {"x": "1"}});
            run.world.hub.create("people", &key.resource, "shop", &name, body);
            made_by_another_syncer(run, &settings(&name));
        }
        run.world.hub.delete(&key);
        seconds(120).await;
        assert!(!is_at_edge(run, &key), "what others have made is not about to go");
    }));
}

#[test]
fn copies_of_nothing_that_turn_up_in_a_mass_are_held_as_any_other() {
    check(&tell(&[], false, async |run| {
        one_copy(run).await;
        let names: Vec<_> = (0..MANY).map(|number| settings(&format!("other-{number}"))).collect();
        for name in &names {
            made_by_another_syncer(run, name);
        }
        seconds(120).await;
        let left = names.iter().filter(|name| is_at_edge(run, name)).count();
        assert!(left > MANY / 2, "{left} of {MANY} are left");
        seconds(1200).await;
        assert!(!names.iter().any(|name| is_at_edge(run, name)), "the hold has ended");
    }));
}
