//! What the edge's owner has chosen: types that are not synced, adopted copies that go, and whose fields are reverted.

use std::rc::Rc;

use edge_syncer::plan::Filter;
use edge_syncer::side::Side;
use serde_json::json;

use crate::changes::{define, downsync_type, is_at_edge};
use crate::check;
use crate::sim::choices::Choices;
use crate::sim::run::{Run, tell};
use crate::sim::store::Key;
use crate::sim::types::DEFINITIONS;
use crate::sim::world::CONFIGS;
use crate::stories::{downsync, one_copy, seconds, settings};

const DEPLOYMENTS: &str = "deployments.apps";
const GEARS: &str = "gears.own.example.org";

fn deployment(name: &str) -> Key {
    Key::new(DEPLOYMENTS, "shop", name)
}

/// What a filter file says.
fn rules(text: &str) -> Filter {
    let mut filter = Filter::default();
    filter.add_file("bounds", text).expect("these are rules");
    filter
}

fn asked(run: &Run, resource: &str) -> [u64; 2] {
    run.ledger.borrow().count_of_type(resource)
}

#[test]
fn nothing_is_asked_about_a_denied_type() {
    check(&tell(&[], false, async |run| {
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        run.filter = rules("deny deployments.apps\ndeny *.own.example.org # one more way to say so\n");
        downsync(run);
        downsync_type(run, "down", "apps", "deployments", "v1");
        let up = json!([{"apiGroup": "own.example.org", "resources": ["*"], "namespaces": ["*"], "names": ["*"]},
            {"apiGroup": "own.example.org", "resources": ["gears"], "namespaces": ["*"], "names": ["*"]}]);
        hub.create("people", CONFIGS, "", "up", json!({"spec": {"upsync": up}}));
        for side in [&hub, &edge] {
            define(side, "gears", "own.example.org", &["v1"], true);
        }
        hub.create("people", DEPLOYMENTS, "shop", "a", json!({"spec": {"x": "1"}}));
        edge.create("people", GEARS, "default", "own", json!({"spec": {"x": "1"}}));
        run.start();
        seconds(20).await;
        hub.create("people", "configmaps", "shop", "a", json!({"data": {"x": "1"}}));
        hub.patch("people", &deployment("a"), &json!({"spec": {"x": "2"}}));
        seconds(3600).await;
        assert!(is_at_edge(run, &settings("a")), "the others are synced");
        assert!(!is_at_edge(run, &deployment("a")));
        for denied in [DEPLOYMENTS, GEARS] {
            assert_eq!(asked(run, denied), [0, 0], "{denied}");
        }
        run.kill().await;
        run.filter = Filter::default();
        run.start();
    }));
}

#[test]
fn copies_of_a_type_that_is_denied_later_are_preserved_until_the_rule_goes() {
    check(&tell(&[], false, async |run| {
        downsync_type(run, "down", "apps", "deployments", "v1");
        let hub = Rc::clone(&run.world.hub);
        for name in ["a", "b"] {
            hub.create("people", DEPLOYMENTS, "shop", name, json!({"spec": {"x": "1"}}));
        }
        run.start();
        seconds(30).await;
        assert!(is_at_edge(run, &deployment("a")), "it has arrived");
        run.kill().await;
        run.filter = rules("deny deployments.apps");
        let before = asked(run, DEPLOYMENTS);
        run.start();
        seconds(30).await;
        hub.delete(&deployment("a"));
        hub.patch("people", &deployment("b"), &json!({"spec": {"x": "2"}}));
        hub.delete(&Key::new(CONFIGS, "", "down"));
        seconds(3600).await;
        assert!(is_at_edge(run, &deployment("a")), "nobody is asked whether it is to go");
        assert_eq!(asked(run, DEPLOYMENTS), before);
        run.kill().await;
        run.filter = Filter::default();
        run.start();
        seconds(60).await;
        assert!(!is_at_edge(run, &deployment("a")), "it was not forgotten");
    }));
}

#[test]
fn what_is_of_a_denied_type_keeps_its_namespace_and_its_crd() {
    check(&tell(&[], false, async |run| {
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        downsync(run);
        downsync_type(run, "gears", "own.example.org", "gears", "v1");
        let definition = json!([{"group": "apiextensions.k8s.io", "resource": "customresourcedefinitions",
            "apiVersion": "v1", "objects": [GEARS]}]);
        hub.create(
            "people",
            CONFIGS,
            "",
            "crd",
            json!({"spec": {"clusterScope": definition}}),
        );
        define(&hub, "gears", "own.example.org", &["v1"], true);
        seconds(10).await;
        let gear = Key::new(GEARS, "shop", "a");
        hub.create("people", GEARS, "shop", "a", json!({"spec": {"x": "1"}}));
        run.start();
        seconds(60).await;
        assert!(is_at_edge(run, &gear), "it has arrived");
        run.kill().await;
        run.filter = rules("deny gears.own.example.org");
        run.start();
        seconds(30).await;
        let (space, crd) = (Key::new("namespaces", "", "shop"), Key::new(DEFINITIONS, "", GEARS));
        hub.delete(&gear);
        hub.delete(&space);
        hub.delete(&crd);
        hub.delete(&Key::new(CONFIGS, "", "gears"));
        seconds(3600).await;
        for key in [&gear, &space, &crd] {
            assert!(is_at_edge(run, key), "{key} stays");
        }
        edge.delete(&gear);
        seconds(2 * 3600).await;
        for key in [&space, &crd] {
            assert!(!is_at_edge(run, key), "nothing keeps {key} any more");
        }
        run.kill().await;
        run.filter = Filter::default();
        run.start();
    }));
}

#[test]
fn objects_wait_for_a_namespace_that_may_not_be_made_and_nobody_asks_for_namespaces() {
    check(&tell(&[], false, async |run| {
        run.filter = rules("deny namespaces");
        downsync(run);
        let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
        hub.create("people", "configmaps", "shop", "a", json!({"data": {"x": "1"}}));
        run.start();
        seconds(600).await;
        assert!(!is_at_edge(run, &Key::new("namespaces", "", "shop")));
        let about = run.ledger.borrow().about.clone();
        // By two of them one cluster is known from another. Whether the hub has what the config selects is asked once, and
        // no list of them is needed.
        let about = |name: &str| {
            about
                .get(&Key::new("namespaces", "", name))
                .copied()
                .unwrap_or_default()
        };
        let who_it_is = about("kube-system") + about("default");
        assert_eq!(about("shop"), 1);
        assert_eq!(asked(run, "namespaces").iter().sum::<u64>(), who_it_is + 1);
        edge.create("people", "namespaces", "", "shop", json!({}));
        seconds(600).await;
        assert!(is_at_edge(run, &settings("a")), "its namespace has come");
    }));
}

#[test]
fn an_adopted_copy_goes_with_its_origin_only_where_the_owner_says_so() {
    for delete_adopted in [false, true] {
        check(&tell(&[], false, async |run| {
            run.choose(Choices {
                delete_adopted,
                ..Choices::default()
            });
            let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
            let key = settings("b");
            edge.create("people", "namespaces", "", "shop", json!({}));
            edge.create("people", "configmaps", "shop", "b", json!({"data": {"x": "0"}}));
            one_copy(run).await;
            hub.create("people", "configmaps", "shop", "b", json!({"data": {"x": "1"}}));
            seconds(30).await;
            let was_adopted = edge.store.borrow().get(&key).expect("it stays")["data"]["x"] == "1";
            assert!(was_adopted, "it is as the hub has it");
            hub.delete(&key);
            seconds(60).await;
            assert_eq!(is_at_edge(run, &key), !delete_adopted, "{delete_adopted}");
        }));
    }
}

#[test]
fn fields_are_reverted_from_those_that_the_owner_names() {
    check(&tell(&[], false, async |run| {
        run.policy.revert_changes_from = vec!["argocd-*".into()];
        let key = one_copy(run).await;
        let edge = Rc::clone(&run.world.edge);
        for manager in ["argocd-controller", "helm"] {
            edge.patch(manager, &key, &json!({"data": {manager: "theirs"}}));
            seconds(20).await;
        }
        let copy = edge.store.borrow().get(&key).expect("it stays").clone();
        assert_eq!(copy["data"], json!({"x": "1", "helm": "theirs"}));
        let hub = run.server(Side::Hub);
        assert_eq!(
            hub.store.borrow().get(&key).expect("it stays")["data"],
            json!({"x": "1"})
        );
    }));
}
