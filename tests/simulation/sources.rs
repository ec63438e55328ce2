//! Stories of clusters that are exchanged or go back while nobody looks: the copies say where they are from.

use std::rc::Rc;

use serde_json::json;

use crate::changes::{config, is_at_edge};
use crate::check;
use crate::sim::classes::Class;
use crate::sim::ledger::RECORD;
use crate::sim::run::{Run, tell};
use crate::sim::store::{Key, Store};
use crate::stories::{one_copy, one_that_goes_up, seconds, settings};

/// What others write between a backup and its restore, which is more than what they write until the syncer has started again.
const OTHERS: u64 = 10_000;

/// Another cluster, with these objects of `own`.
pub(crate) fn another(own: &Store, kept: &[Key]) -> Store {
    let mut other = Store::another(own.version() + 2);
    for key in kept {
        other.put(key, own.get(key).expect("it was made").as_ref().clone());
    }
    other
}

#[test]
fn what_a_hub_has_lost_with_its_last_minutes_stays_also_after_the_syncer_has_died() {
    check(&tell(&[Class::HubRestored], false, async |run| {
        one_copy(run).await;
        seconds(60).await;
        let hub = Rc::clone(&run.world.hub);
        let backup = hub.store.borrow().clone();
        hub.store.borrow_mut().skip(OTHERS);
        let late = settings("late");
        hub.create("people", &late.resource, "shop", "late", json!({"data": {"x": "1"}}));
        seconds(20).await;
        assert!(is_at_edge(run, &late), "it has arrived");
        run.kill().await;
        hub.become_another(backup.with_uids("restored"), "the hub was restored from a backup");
        run.start();
        seconds(300).await;
        assert!(is_at_edge(run, &late), "it stays");
    }));
}

#[test]
fn another_hub_is_known_from_the_own_by_the_copies_where_the_record_is_gone() {
    check(&tell(&[Class::OtherHub], false, async |run| {
        let key = one_copy(run).await;
        let hub = Rc::clone(&run.world.hub);
        run.kill().await;
        run.world.edge.delete(&Key::new("configmaps", "default", RECORD));
        let own = hub.store.borrow().clone();
        hub.become_another(another(&own, &[config()]), "another hub answers");
        run.start();
        seconds(300).await;
        assert!(is_at_edge(run, &key), "it stays");
        hub.become_another(own, "");
        seconds(60).await;
        hub.delete(&key);
        seconds(60).await;
        assert!(!is_at_edge(run, &key), "the own one is believed");
    }));
}

fn is_at_hub(run: &Run, key: &Key) -> bool {
    run.world.hub.store.borrow().get(key).is_some()
}

#[test]
fn a_new_edge_in_the_place_of_one_that_died_deletes_nothing_at_the_hub() {
    check(&tell(&[Class::EdgeRestored], true, async |run| {
        let key = one_that_goes_up(run).await;
        let edge = Rc::clone(&run.world.edge);
        run.kill().await;
        let own = edge.store.borrow().clone();
        edge.become_another(another(&own, &[]), "another edge answers");
        run.start();
        seconds(300).await;
        assert!(is_at_hub(run, &key), "it stays");
        run.kill().await;
        edge.become_another(own, "");
        run.start();
        seconds(60).await;
        edge.delete(&key);
        seconds(60).await;
        assert!(!is_at_hub(run, &key), "the own one is believed");
    }));
}

#[test]
fn what_an_edge_has_lost_since_its_backup_stays_at_the_hub() {
    check(&tell(&[Class::EdgeRestored], true, async |run| {
        one_that_goes_up(run).await;
        let edge = Rc::clone(&run.world.edge);
        let backup = edge.store.borrow().clone();
        edge.store.borrow_mut().skip(OTHERS);
        let late = Key::new("configmaps", "field", "late");
        edge.create("people", &late.resource, "field", "late", json!({"data": {"x": "1"}}));
        seconds(20).await;
        assert!(is_at_hub(run, &late), "it has arrived");
        run.kill().await;
        edge.become_another(backup.with_uids("restored"), "the edge was restored from a backup");
        run.start();
        seconds(300).await;
        assert!(is_at_hub(run, &late), "it stays");
    }));
}
