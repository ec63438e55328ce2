//! Stories of statuses on their way to the hub.

use std::rc::Rc;
use std::time::Duration;

use driver::source::Mode;
use edge_syncer::side::Side;
use serde_json::json;
use tokio::time::sleep;

use crate::changes::{config, define, downsync_type, edge_reports, hub_status};
use crate::check;
use crate::sim::request::Verb;
use crate::sim::run::{Run, tell};
use crate::sim::store::Key;
use crate::sim::weather::Trouble;
use crate::sim::world::OVERWRITE;
use crate::stories::seconds;

/// It is paced, since there was another one just before, while an answer comes that shows what was before it.
#[test]
fn a_status_that_waits_is_not_forgotten_for_an_older_answer() {
    check(&tell(&[], false, async |run| {
        downsync_type(run, "the-one", "apps", "deployments", "v1");
        let key = Key::new("deployments.apps", "shop", "a");
        let hub = Rc::clone(&run.world.hub);
        hub.create("people", &key.resource, "shop", "a", json!({"spec": {"replicas": 0}}));
        run.start();
        seconds(20).await;
        for delay in 1..80 {
            edge_reports(run, &key, 0);
            sleep(Duration::from_millis(200)).await;
            hub.patch("people", &key, &json!({"spec": {"replicas": delay}}));
            sleep(Duration::from_millis(delay.into())).await;
            edge_reports(run, &key, delay);
            seconds(5).await;
            assert_eq!(hub_status(run, &key), delay);
        }
    }));
}

#[test]
fn the_status_of_what_is_preserved_goes_up_after_a_config_was_edited_too() {
    check(&tell(&[], false, async |run| {
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        let key = Key::new("deployments.apps", "shop", "a");
        edge.create("people", "namespaces", "", "shop", json!({}));
        edge.create("people", &key.resource, "shop", "a", json!({"spec": {"x": "1"}}));
        downsync_type(run, "the-one", "apps", "deployments", "v1");
        let alone = json!({"metadata": {"annotations": {OVERWRITE: "false"}}, "spec": {"x": "2"}});
        hub.create("people", &key.resource, "shop", "a", alone);
        run.start();
        seconds(20).await;
        edge_reports(run, &key, 1);
        seconds(20).await;
        assert_eq!(hub_status(run, &key), 1);
        let names = json!([{"group": "apps", "resource": "deployments", "apiVersion": "v1",
            "objectsByNamespace": [{"namespace": "shop", "names": ["a", "b"]}]}]);
        hub.patch("people", &config(), &json!({"spec": {"namespacedObjects": names}}));
        seconds(20).await;
        edge_reports(run, &key, 2);
        seconds(20).await;
    }));
}

#[test]
fn a_status_whose_hub_object_is_gone_is_not_written_again_and_again() {
    check(&tell(&[], false, async |run| {
        run.mode = Mode::Poll(Duration::from_secs(60));
        let hub = Rc::clone(&run.world.hub);
        downsync_type(run, "the-one", "apps", "deployments", "v1");
        let key = Key::new("deployments.apps", "shop", "a");
        hub.create("people", &key.resource, "shop", "a", json!({"spec": {"x": "1"}}));
        run.start();
        seconds(100).await;
        edge_reports(run, &key, 1);
        seconds(100).await;
        assert_eq!(hub_status(run, &key), 1);
        run.strike(Side::Hub, Trouble::RefusedFor(Verb::List), Duration::from_secs(200));
        hub.delete(&key);
        edge_reports(run, &key, 2);
        let writes = |run: &Run| {
            run.ledger
                .borrow()
                .count(|side, verb| (side, verb) == (Side::Hub, Verb::JsonPatch))
        };
        let before = writes(run);
        seconds(150).await;
        let count = writes(run) - before;
        assert!((1..5).contains(&count), "{count} writes");
        hub.create("people", &key.resource, "shop", "a", json!({"spec": {"x": "1"}}));
    }));
}

/// A status goes up; then a CRD of the hub gets a subresource for it, or loses it; then the status changes.
fn status_goes_up_though_the_subresource_changes(at_first: bool) {
    check(&tell(&[], false, async |run| {
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        define(&hub, "gears", "example.org", &["v1"], at_first);
        define(&edge, "gears", "example.org", &["v1"], true);
        seconds(5).await;
        downsync_type(run, "the-one", "example.org", "gears", "v1");
        let key = Key::new("gears.example.org", "shop", "a");
        hub.create("people", &key.resource, "shop", "a", json!({"spec": {"x": "1"}}));
        run.start();
        seconds(20).await;
        edge_reports(run, &key, 1);
        seconds(20).await;
        assert_eq!(hub_status(run, &key), 1);
        define(&hub, "gears", "example.org", &["v1"], !at_first);
        seconds(20).await;
        edge_reports(run, &key, 2);
        seconds(400).await;
        assert_eq!(hub_status(run, &key), 2);
    }));
}

#[test]
fn status_goes_up_though_the_hub_has_got_a_subresource_for_it_since() {
    status_goes_up_though_the_subresource_changes(false);
}

#[test]
fn status_goes_up_though_the_hub_has_lost_the_subresource_for_it() {
    status_goes_up_though_the_subresource_changes(true);
}
