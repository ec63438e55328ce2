//! The recipes of docs/configure.md: each file of `examples/` is applied at the hub as it is, and does what the page says.

use serde_json::json;

use crate::bench::{Bench, CRDS, RBAC, REPORTS, create_all, report, reports, service};
use crate::pages::{files, same};
use crate::support::objects::{config_map, namespace, secret};
use crate::support::statuses::{deployment, returns, set_status, web};
use crate::support::story::{
    a_while, annotation, arrives, copy_equals, crd, custom_object, edit, install_crd, stays_absent,
};
use crate::support::{Objects, holds_throughout, wait_for_crd};

/// Makes a test of each function, which gets the shared pair and the file of the same name.
macro_rules! recipes {
    ($($name:ident),+ $(,)?) => {
        /// The recipes that have a test.
        const TESTED: &[&str] = &[$(stringify!($name)),+];

        mod recipe {
            $(#[tokio::test]
            async fn $name() {
                let file = format!("examples/{}.yaml", stringify!($name).replace('_', "-"));
                super::$name(crate::bench::bench().await, &file).await;
            })+
        }
    };
}

recipes!(
    all_of_a_namespace,
    by_kind,
    create_once,
    crd_with_objects,
    every_field,
    one_object_up,
    renaming,
    reports_up,
);

#[test]
fn every_recipe_has_a_test() {
    let file = |name: &&str| format!("examples/{}.yaml", name.replace('_', "-"));
    let examples = files("examples", ".yaml").into_iter();
    let recipes = examples.filter(|path| path.matches('/').count() == 1).collect();
    same("recipes", &TESTED.iter().map(file).collect(), &recipes);
}

const SELECTED: [&str; 2] = ["shop", "billing"];
/// One that no recipe names.
const OTHER: &str = "other";

/// Creates the namespaces of the recipes, and one that they do not name.
async fn namespaces(at: &Objects) {
    for name in SELECTED.iter().chain([&OTHER]) {
        at.create(&namespace(name)).await;
    }
}

async fn all_of_a_namespace(bench: Bench, config: &str) {
    let Bench { pair, hub, edge } = bench;
    namespaces(&hub).await;
    hub.create(&deployment("shop", "web:1")).await;
    hub.create(&service("web")).await;
    for namespace in ["shop", OTHER] {
        hub.create(&config_map(namespace, "prices", json!({"apple": "1"})))
            .await;
    }
    hub.create(&secret("shop", "key", "1")).await;
    create_all(&hub, config).await;
    let _syncer = pair.syncer(&[]);
    arrives(&edge, "apps/v1", "deployments", "shop", "web").await;
    arrives(&edge, "v1", "services", "shop", "web").await;
    copy_equals(&edge, "shop", "prices", &json!({"apple": "1"})).await;
    stays_absent(&edge, "v1", "secrets", "shop", "key").await;
    stays_absent(&edge, "v1", "configmaps", OTHER, "prices").await;
    // The status of what was downsynced returns.
    let status = json!({"observedGeneration": 1, "replicas": 2});
    set_status(&edge, web("shop"), true, &status).await;
    returns(&hub, web("shop"), &status).await;
}

/// The page says that the order in which things are created does not matter: here, the config comes first.
async fn crd_with_objects(bench: Bench, config: &str) {
    let Bench { pair, hub, edge } = bench;
    create_all(&hub, config).await;
    let _syncer = pair.syncer(&[]);
    namespaces(&hub).await;
    create_all(&hub, "examples/objects/gauges.yaml").await;
    wait_for_crd(&hub, "gauges.metrics.example.org").await;
    create_all(&hub, "examples/objects/boiler.yaml").await;
    let gauges = ["metrics.example.org/v1", "gauges"];
    let mut elsewhere = custom_object("metrics.example.org", "gauges", OTHER, "boiler", 1);
    elsewhere["spec"] = json!({"unit": "bar"});
    hub.create(&elsewhere).await;
    let copy = arrives(&edge, gauges[0], gauges[1], "shop", "boiler").await;
    assert_eq!(copy["spec"], json!({"unit": "bar"}));
    stays_absent(&edge, gauges[0], gauges[1], OTHER, "boiler").await;
}

/// Makes both sides serve reports.
async fn install_reports(sides: &[&Objects]) {
    install_crd(sides, &reports("PolicyReport", true)).await;
    install_crd(sides, &reports("ClusterPolicyReport", false)).await;
}

/// Creates a report in each namespace, and one of the cluster.
async fn report_everywhere(edge: &Objects) {
    for namespace in SELECTED.iter().chain([&OTHER]) {
        edge.create(&report(namespace, "result")).await;
    }
    edge.create(&report("", "result")).await;
}

async fn reports_up(bench: Bench, config: &str) {
    let Bench { pair, hub, edge } = bench;
    install_reports(&[&hub, &edge]).await;
    create_all(&hub, config).await;
    let _syncer = pair.syncer(&[]);
    namespaces(&edge).await;
    report_everywhere(&edge).await;
    // Their namespaces are created at the hub.
    for namespace in SELECTED {
        arrives(&hub, REPORTS, "policyreports", namespace, "result").await;
    }
    arrives(&hub, REPORTS, "clusterpolicyreports", "", "result").await;
    stays_absent(&hub, REPORTS, "policyreports", OTHER, "result").await;
}

async fn one_object_up(bench: Bench, config: &str) {
    let Bench { pair, hub, edge } = bench;
    create_all(&hub, config).await;
    let _syncer = pair.syncer(&[]);
    namespaces(&edge).await;
    for name in ["costs", "sales"] {
        edge.create(&config_map("shop", name, json!({"today": "17"}))).await;
    }
    copy_equals(&hub, "shop", "sales", &json!({"today": "17"})).await;
    stays_absent(&hub, "v1", "configmaps", "shop", "costs").await;
}

async fn create_once(bench: Bench, config: &str) {
    let Bench { pair, hub, edge } = bench;
    namespaces(&hub).await;
    let mut settings = config_map("shop", "web-settings", json!({"colour": "red"}));
    settings["metadata"]["annotations"] = json!({"edge.kubestellar.io/downsync-overwrite": "false"});
    hub.create(&settings).await;
    hub.create(&config_map("shop", "others", json!({}))).await;
    create_all(&hub, config).await;
    let _syncer = pair.syncer(&[]);
    let copy = copy_equals(&edge, "shop", "web-settings", &json!({"colour": "red"})).await;
    assert_eq!(annotation(&copy, "downsync-overwrite"), "false");
    stays_absent(&edge, "v1", "configmaps", "shop", "others").await;
    // What the edge changes is preserved, also when the hub changes; a copy that is deleted is created again.
    let green = json!({"colour": "green"});
    edit(&edge, "shop", "web-settings", &json!({"data": green})).await;
    edit(&hub, "shop", "web-settings", &json!({"data": {"colour": "blue"}})).await;
    holds_throughout("the edge decides", a_while(), async || {
        match edge.get("v1", "configmaps", "shop", "web-settings").await {
            Some(copy) if copy["data"] == green => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    edge.delete("v1", "configmaps", "shop", "web-settings").await;
    copy_equals(&edge, "shop", "web-settings", &json!({"colour": "blue"})).await;
    // Until the hub wants that no longer.
    edit(&edge, "shop", "web-settings", &json!({"data": green})).await;
    let overwrite = json!({"metadata": {"annotations": {"edge.kubestellar.io/downsync-overwrite": null}}});
    edit(&hub, "shop", "web-settings", &overwrite).await;
    copy_equals(&edge, "shop", "web-settings", &json!({"colour": "blue"})).await;
}

async fn by_kind(bench: Bench, config: &str) {
    let Bench { pair, hub, edge } = bench;
    install_reports(&[&hub, &edge]).await;
    namespaces(&hub).await;
    hub.create(&config_map("shop", "prices", json!({}))).await;
    hub.create(&config_map(OTHER, "prices", json!({}))).await;
    hub.create(&deployment("shop", "web:1")).await;
    let mut another = deployment("shop", "web:1");
    another["metadata"]["name"] = json!("another");
    hub.create(&another).await;
    create_all(&hub, config).await;
    let _syncer = pair.syncer(&[]);
    arrives(&edge, "v1", "configmaps", "shop", "prices").await;
    arrives(&edge, "apps/v1", "deployments", "shop", "web").await;
    // The Namespace has an entry, so that it is a copy itself.
    let copy = arrives(&edge, "v1", "namespaces", "", "shop").await;
    assert_eq!(annotation(&copy, "downsynced"), "Namespace//shop");
    stays_absent(&edge, "apps/v1", "deployments", "shop", "another").await;
    stays_absent(&edge, "v1", "configmaps", OTHER, "prices").await;
    for namespace in ["billing", OTHER] {
        edge.create(&self::namespace(namespace)).await;
    }
    report_everywhere(&edge).await;
    for namespace in SELECTED.iter().chain([&OTHER]) {
        arrives(&hub, REPORTS, "policyreports", namespace, "result").await;
    }
    stays_absent(&hub, REPORTS, "clusterpolicyreports", "", "result").await;
}

async fn renaming(bench: Bench, config: &str) {
    let Bench { pair, hub, edge } = bench;
    // At the hub, the type itself comes from elsewhere, as by an APIBinding.
    install_crd(&[&hub], &crd("metrics.example.org", "gauges", true)).await;
    install_crd(&[&hub], &crd("metrics.example.org.denatured", "gauges", true)).await;
    create_all(&hub, config).await;
    let _syncer = pair.syncer(&[]);
    let name = "gauges.metrics.example.org";
    let copy = arrives(&edge, CRDS[0], CRDS[1], "", name).await;
    assert_eq!(
        annotation(&copy, "renamed-from"),
        format!("CustomResourceDefinition.apiextensions.k8s.io/{name}.denatured")
    );
    stays_absent(&edge, CRDS[0], CRDS[1], "", &format!("{name}.denatured")).await;
    wait_for_crd(&edge, name).await;
    // The objects of its type go up, and keep their names.
    edge.create(&namespace("shop")).await;
    edge.create(&custom_object("metrics.example.org", "gauges", "shop", "boiler", 3))
        .await;
    let copy = arrives(&hub, "metrics.example.org/v1", "gauges", "shop", "boiler").await;
    assert_eq!(copy["spec"], json!({"size": 3}));
}

async fn every_field(bench: Bench, config: &str) {
    let Bench { pair, hub, edge } = bench;
    install_reports(&[&hub, &edge]).await;
    let mut gauges = crd("metrics.example.org", "gauges", false);
    gauges["spec"]["versions"][0]["name"] = json!("v1beta1");
    install_crd(&[&hub, &edge], &gauges).await;
    namespaces(&hub).await;
    hub.create(&namespace("unused")).await;
    hub.create(&deployment("shop", "web:1")).await;
    for (namespace, name) in [
        ("shop", "web-settings"),
        ("shop", "prices"),
        ("shop", "unnamed"),
        ("billing", "any"),
    ] {
        hub.create(&config_map(namespace, name, json!({}))).await;
    }
    hub.create(&config_map("unused", "any", json!({}))).await;
    let mut gauge = custom_object("metrics.example.org", "gauges", "", "boiler", 1);
    gauge["apiVersion"] = json!("metrics.example.org/v1beta1");
    hub.create(&gauge).await;
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]);
    for name in ["reader", "writer"] {
        hub.create(&json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}))
            .await;
    }
    hub.create(
        &json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"}}),
    )
    .await;
    create_all(&hub, config).await;
    let _syncer = pair.syncer(&[]);
    arrives(&edge, "apps/v1", "deployments", "shop", "web").await;
    for (namespace, name) in [("shop", "web-settings"), ("shop", "prices"), ("billing", "any")] {
        arrives(&edge, "v1", "configmaps", namespace, name).await;
    }
    arrives(&edge, "metrics.example.org/v1beta1", "gauges", "", "boiler").await;
    arrives(&edge, RBAC, "clusterroles", "", "reader").await;
    // What is named with an empty list, or not at all.
    stays_absent(&edge, "v1", "configmaps", "shop", "unnamed").await;
    stays_absent(&edge, "v1", "namespaces", "", "unused").await;
    stays_absent(&edge, RBAC, "clusterroles", "", "writer").await;
    stays_absent(&edge, RBAC, "clusterrolebindings", "", "reader").await;
    edge.create(&namespace(OTHER)).await;
    report_everywhere(&edge).await;
    for namespace in SELECTED {
        arrives(&hub, REPORTS, "policyreports", namespace, "result").await;
    }
    arrives(&hub, REPORTS, "clusterpolicyreports", "", "result").await;
    stays_absent(&hub, REPORTS, "policyreports", OTHER, "result").await;
}
