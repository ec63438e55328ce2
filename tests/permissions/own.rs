//! Permissions that the story of the demo has no need of: for the syncer's own objects, for telling clusters apart, and for
//! what defines a type. Each is missed with one line, and the rest continues.

use serde_json::{Value, json};

use crate::bench::{Atom, OWN, RBAC, ROLE, Site, documents, ensure_namespace, pair};
use crate::printed::{nothing_was_refused, selection};
use crate::support::Syncer;
use crate::support::objects::syncer_config;
use crate::support::stage::CONFIG_API;
use crate::support::statuses::{deployment, web};
use crate::support::story::{SOON, arrives, becomes, crd, custom_object, drop_crds, install_crd};

const RECORD: &str = "edge-syncer-types-site-7";

/// The lines of the log that name a permission.
fn lines_about(syncer: &Syncer, atom: &Atom) -> Vec<String> {
    let words = format!("cannot {} resource \\\"{}\\\"", atom.verb, atom.resource);
    let log = syncer.log();
    log.lines()
        .filter(|line| line.contains(&words))
        .map(str::to_owned)
        .collect()
}

/// Fails unless one line names a permission, and its side.
fn has_one_line(syncer: &Syncer, atom: &Atom) {
    let lines = lines_about(syncer, atom);
    let side = format!("side={}", atom.side);
    assert!(
        matches!(&lines[..], [line] if line.contains(&side)),
        "{atom:?}\n{}",
        syncer.log()
    );
}

#[tokio::test]
async fn the_record_and_the_identity_of_the_edge_are_missed_and_the_record_is_picked_up() {
    let pair = pair().await;
    let shop = pair.namespace("shop");
    let shop = &*shop;
    let spec =
        json!({"upsync": [{"apiGroup": "apps", "resources": ["deployments"], "namespaces": [shop], "names": ["*"]}]});
    pair.hub.objects().create(&syncer_config("up", spec)).await;
    let site = Site::prepare(pair, &[]).await;
    let (hub, edge) = (&site.hub, &site.edge);
    ensure_namespace(edge, shop).await;
    edge.create(&deployment(shop, "web:1")).await;
    let atoms = Atom::all("edge", &site.printed[1]).into_iter();
    let atoms: Vec<Atom> = atoms
        .filter(|atom| !matches!(&*atom.resource, "deployments" | "events"))
        .collect();
    let names: Vec<String> = atoms
        .iter()
        .map(|atom| format!("{} {}", atom.verb, atom.resource))
        .collect();
    let of_record = [
        "get configmaps",
        "create configmaps",
        "patch configmaps",
        "get configmaps",
    ];
    assert_eq!(
        names,
        [&["get namespaces"][..], &of_record[..]].concat(),
        "{}",
        site.printed[1]
    );
    for (round, atom) in atoms.iter().enumerate() {
        let is_of_identity = atom.resource == "namespaces";
        let is_former = round == 4;
        // It is written, and others are searched for, when there is none.
        if atom.verb != "get" || is_former {
            edge.delete("v1", "configmaps", OWN, RECORD).await;
        }
        atom.take_out(edge, &site.accounts[1]).await;
        let mut syncer = site.syncer(&[]);
        syncer
            .wait_for_log(
                &format!("cannot {} resource \\\"{}\\\"", atom.verb, atom.resource),
                SOON,
            )
            .await;
        let round = json!(round.to_string());
        let label = json!({"metadata": {"labels": {"round": round}}});
        edge.merge_patch("apps/v1", "deployments", shop, "web", &label).await;
        let follows = |object: &Value| object["metadata"]["labels"]["round"] == round;
        becomes(hub, web(shop), "follows", follows).await;
        atom.give_back(edge, &site.accounts[1]).await;
        // A side that does not let it be read is asked who it is again after some minutes.
        if !is_of_identity && !is_former {
            syncer.wait_for_log("reason=RecordKept", SOON).await;
        }
        arrives(edge, "v1", "configmaps", OWN, RECORD).await;
        has_one_line(&syncer, atom);
        let (status, _) = syncer.terminate().await;
        assert_eq!(status.code(), Some(0), "{}", syncer.log());
    }
}

/// Whoever narrows the printed roles by hand removes a type from its rule, and nothing that the syncer needs for itself.
#[tokio::test]
async fn roles_without_one_of_their_types_still_let_the_syncer_work() {
    let pair = pair().await;
    let shop = pair.namespace("shop");
    let shop = &*shop;
    pair.hub.objects().create(&syncer_config("demo", selection(shop))).await;
    let site = Site::prepare(pair, &["--leader-elect"]).await;
    for (at, printed) in [(&site.hub, &site.printed[0]), (&site.edge, &site.printed[1])] {
        let role = documents(printed).into_iter().find(|it| it["kind"] == "ClusterRole");
        let mut rules = role.expect("it is printed")["rules"].clone();
        let rules_of_types = rules.as_array_mut().expect("a role has rules").iter_mut();
        for rule in rules_of_types {
            let resources = rule["resources"].as_array_mut().expect("a rule has resources");
            resources.retain(|resource| resource != "configmaps");
            if resources.is_empty() {
                *rule = json!({"apiGroups": ["none.example.org"], "resources": ["none"], "verbs": ["get"]});
            }
        }
        at.merge_patch(RBAC, "clusterroles", "", ROLE, &json!({"rules": rules}))
            .await;
    }
    let resource = json!({"group": "apps", "resource": "deployments", "apiVersion": "v1"});
    let spec = json!({"namespaceScope": {"namespaces": [shop], "resources": [resource]}, "upsync": []});
    site.hub
        .merge_patch(CONFIG_API, "syncerconfigs", "", "demo", &json!({"spec": spec}))
        .await;
    ensure_namespace(&site.hub, shop).await;
    site.hub.create(&deployment(shop, "web:1")).await;
    let marks = [site.pair.hub.audit_mark(), site.pair.edge.audit_mark()];
    let mut syncer = site.syncer(&["--leader-elect", "--heartbeat-interval=1s"]);
    arrives(&site.edge, "apps/v1", "deployments", shop, "web").await;
    arrives(&site.edge, "v1", "configmaps", OWN, RECORD).await;
    arrives(&site.edge, "coordination.k8s.io/v1", "leases", OWN, ROLE).await;
    let (status, _) = syncer.terminate().await;
    assert_eq!(status.code(), Some(0), "{}", syncer.log());
    nothing_was_refused(&site.pair, marks);
}

#[tokio::test]
async fn what_defines_a_type_is_missed_with_one_line() {
    let pair = pair().await;
    let shop = pair.namespace("shop");
    let shop = &*shop;
    let (group, hub, edge) = ("permissions.example.org", pair.hub.objects(), pair.edge.objects());
    install_crd(&[&hub, &edge], &crd(group, "gauges", true)).await;
    let resource = json!({"group": group, "resource": "gauges", "apiVersion": "v1"});
    let spec = json!({"namespaceScope": {"namespaces": [shop], "resources": [resource]}});
    hub.create(&syncer_config("gauges", spec)).await;
    let site = Site::prepare(pair, &[]).await;
    let atoms = Atom::all("hub", &site.printed[0]);
    let atom = atoms.iter().find(|atom| atom.resource == "customresourcedefinitions");
    let atom = atom.expect("the hub's role has it");
    atom.take_out(&hub, &site.accounts[0]).await;
    let mut syncer = site.syncer(&[]);
    ensure_namespace(&hub, shop).await;
    hub.create(&custom_object(group, "gauges", shop, "boiler", 1)).await;
    arrives(&edge, &format!("{group}/v1"), "gauges", shop, "boiler").await;
    syncer.wait_for_log("reason=DefinitionsForbidden", SOON).await;
    has_one_line(&syncer, atom);
    syncer.terminate().await;
    drop_crds(&[&hub, &edge], &["gauges.permissions.example.org"]).await;
}
