//! Stories of reads that show what was before something that the server has reported: a cache stands before it, or it was
//! restored from a backup.

use std::rc::Rc;
use std::time::Duration;

use driver::source::Mode;
use edge_syncer::side::Side;
use serde_json::json;

use crate::changes::{downsync_type, edge_reports, hub_status, is_at_edge};
use crate::check;
use crate::sim::classes::Class;
use crate::sim::run::{Run, tell};
use crate::sim::store::Key;
use crate::sim::weather::{STALE, Trouble};
use crate::stories::{one_copy, seconds};

const STALE_CLASS: &[Class] = &[Class::Stale];

fn strike(run: &mut Run, side: Side) {
    run.strike(side, Trouble::Stale, 3 * STALE);
}

/// Several times, since each read is as old as the dice say.
const ROUNDS: u32 = 10;

#[test]
fn a_deleted_origin_that_a_read_still_shows_does_not_keep_its_copy() {
    check(&tell(STALE_CLASS, false, async |run| {
        let key = one_copy(run).await;
        let hub = Rc::clone(&run.world.hub);
        for round in 0..ROUNDS {
            strike(run, Side::Hub);
            hub.delete(&key);
            seconds(60).await;
            assert!(!is_at_edge(run, &key), "round {round}: it is gone");
            hub.create("people", &key.resource, "shop", "a", json!({"data": {"x": "1"}}));
            seconds(20).await;
        }
    }));
}

/// The edge was away, so that the change is read again when it is back.
#[test]
fn a_change_that_a_read_does_not_show_yet_is_not_missed() {
    for mode in [Mode::Watch, Mode::Poll(Duration::from_secs(60))] {
        check(&tell(STALE_CLASS, false, async |run| {
            run.mode = mode;
            let key = one_copy(run).await;
            let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
            for round in 0..ROUNDS {
                run.down(Side::Edge, false, Duration::from_secs(5));
                seconds(3).await;
                strike(run, Side::Hub);
                hub.patch("people", &key, &json!({"data": {"x": round.to_string()}}));
                seconds(120).await;
                let copy = Rc::clone(edge.store.borrow().get(&key).expect("nobody deletes it"));
                assert_eq!(copy["data"]["x"], round.to_string());
            }
        }));
    }
}

#[test]
fn a_copy_that_a_read_does_not_show_yet_goes_with_its_origin() {
    check(&tell(STALE_CLASS, false, async |run| {
        one_copy(run).await;
        let hub = Rc::clone(&run.world.hub);
        for round in 0..ROUNDS {
            let name = format!("short-{round}");
            let key = Key::new("configmaps", "shop", &name);
            hub.create("people", &key.resource, "shop", &name, json!({"data": {"x": "1"}}));
            seconds(1).await;
            strike(run, Side::Edge);
            hub.delete(&key);
            seconds(60).await;
            assert!(!is_at_edge(run, &key), "round {round}: it is gone");
        }
    }));
}

/// It is paced, and is read when it is due.
#[test]
fn a_status_that_a_read_does_not_show_yet_returns() {
    check(&tell(STALE_CLASS, false, async |run| {
        downsync_type(run, "the-one", "apps", "deployments", "v1");
        let key = Key::new("deployments.apps", "shop", "a");
        let hub = Rc::clone(&run.world.hub);
        hub.create("people", &key.resource, "shop", "a", json!({"spec": {"replicas": 1}}));
        run.start();
        seconds(20).await;
        for round in 0..ROUNDS {
            edge_reports(run, &key, 2 * round);
            strike(run, Side::Edge);
            seconds(1).await;
            edge_reports(run, &key, 2 * round + 1);
            seconds(60).await;
            assert_eq!(hub_status(run, &key), 2 * round + 1);
        }
    }));
}
