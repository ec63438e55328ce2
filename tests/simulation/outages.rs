//! Stories of one type that does not answer, while its side does.

use std::rc::Rc;
use std::time::Duration;

use edge_syncer::side::Side;
use serde_json::json;

use crate::changes::{downsync_type, is_at_edge};
use crate::check;
use crate::sim::run::{Run, tell};
use crate::sim::store::Key;
use crate::sim::weather::Trouble;
use crate::stories::{downsync, seconds};

const OTHER: &str = "deployments.apps";

fn create(run: &Run, resource: &str, namespace: &str, count: usize) -> Vec<Key> {
    let names = (0..count).map(|index| format!("x{index}"));
    let make = |name: String| {
        run.world.hub.create("people", resource, namespace, &name, json!({}));
        Key::new(resource, namespace, &name)
    };
    names.map(make).collect()
}

#[test]
fn a_type_whose_writes_hang_holds_up_no_other() {
    check(&tell(&[], false, async |run| {
        downsync(run);
        downsync_type(run, "another", "apps", "deployments", "v1");
        run.start();
        seconds(20).await;
        run.strike(Side::Edge, Trouble::Hangs("configmaps"), Duration::from_secs(3600));
        let hanging = create(run, "configmaps", "shop", 40);
        for round in 0..20 {
            seconds(60).await;
            let name = format!("y{round}");
            run.world.hub.create("people", OTHER, "shop", &name, json!({}));
            seconds(15).await;
            assert!(is_at_edge(run, &Key::new(OTHER, "shop", &name)), "{name}");
        }
        assert!(hanging.iter().all(|key| !is_at_edge(run, key)));
        // A few at a time have been tried, each until its time was over.
        let failing = run.figure("failing").await;
        assert!((4..=40).contains(&failing), "{failing}");
    }));
}

#[test]
fn a_type_for_which_a_gateway_answers_is_not_the_side_and_holds_up_no_namespace() {
    check(&tell(&[], false, async |run| {
        let hub = Rc::clone(&run.world.hub);
        downsync(run);
        downsync_type(run, "another", "apps", "deployments", "v1");
        for side in [Side::Hub, Side::Edge] {
            run.strike(side, Trouble::Gateway(OTHER), Duration::from_secs(3600));
        }
        let first = create(run, "configmaps", "shop", 1);
        run.start();
        seconds(60).await;
        assert!(is_at_edge(run, &first[0]), "that type has never been listed");
        let before = run.requests(Side::Hub);
        seconds(1800).await;
        let requests = run.requests(Side::Hub) - before;
        assert!(requests < 400, "{requests} requests in half an hour");
        for key in create(run, "configmaps", "shop", 10) {
            seconds(15).await;
            assert!(is_at_edge(run, &key), "{key}");
        }
        hub.delete(&Key::new("namespaces", "", "shop"));
        seconds(300).await;
        assert!(!is_at_edge(run, &first[0]), "its copies wait for no other type");
        // What it would delete too of the type that cannot be listed is not known, so it stays until that answers.
        assert!(is_at_edge(run, &Key::new("namespaces", "", "shop")));
    }));
}

#[test]
fn who_a_side_is_is_asked_again_once_that_may_be_reported() {
    check(&tell(&[], false, async |run| {
        for side in [Side::Hub, Side::Edge] {
            let forbidden = Trouble::Forbidden("namespaces".to_owned());
            run.strike(side, forbidden, Duration::from_secs(60));
        }
        run.start();
        seconds(30).await;
        assert!(run.figure("failing").await > 0, "it may not be reported");
        seconds(900).await;
        assert_eq!(run.figure("failing").await, 0);
    }));
}
