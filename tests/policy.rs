//! The policy engine case, with the real engine: Kyverno and its policies go down from the hub, the engine judges real
//! objects at the edge, and its reports go up.
//!
//! Each test starts servers of its own, so that the long waits for the engine run side by side.

mod support;

use serde_json::{Value, json};
use support::objects::{config_map, namespace, syncer_config};
use support::policy::{
    Crd, ENGINE, ENGINE_CONFIG_MAPS, ENGINE_NAMESPACE, Engine, JUDGED, JUDGED_NAMESPACES, NAMESPACE_POLICY,
    OWNER_POLICY, POLICY_VERSION, REPORT_GROUP, REPORT_VERSION, Subject, crds, engine_objects, policies, selection,
};
use support::story::{SOON, annotation, arrives, copy_equals, gone, stays_absent};
use support::{Objects, Pair, PairOptions, Syncer, eventually, wait_for_crd};

const CRD_VERSION: &str = "apiextensions.k8s.io/v1";
const CRDS: &str = "customresourcedefinitions";
const SHOP: &str = JUDGED_NAMESPACES[0];
const PLANT: &str = JUDGED_NAMESPACES[1];

/// `ConfigMap`s of the hub, without an owner and with one.
const PRICES: Subject = subject("ConfigMap", SHOP, "prices");
const HOURS: Subject = subject("ConfigMap", SHOP, "hours");
/// A `ConfigMap` that only the edge has, without an owner.
const SHIFTS: Subject = subject("ConfigMap", PLANT, "shifts");
/// The hub's namespace itself, without an owner.
const THE_SHOP: Subject = subject("Namespace", "", SHOP);

const fn subject(kind: &'static str, namespace: &'static str, name: &'static str) -> Subject {
    Subject { kind, namespace, name }
}

#[tokio::test]
#[ignore = "needs the policy engine, which takes minutes to build: scripts/test --kyverno"]
async fn an_engine_from_the_hub_reports_to_the_hub_by_a_syncer_config() {
    let crds = crds();
    let case = Case::begin(&crds).await;
    case.hub
        .create(&syncer_config("the-one", selection(&crds, &[PRICES.name, HOURS.name])))
        .await;
    case.tell(&crds).await;
}

#[tokio::test]
#[ignore = "needs the policy engine, which takes minutes to build: scripts/test --kyverno"]
async fn an_engine_from_the_hub_reports_to_the_hub_by_an_edge_sync_config_with_renamed_crds() {
    // The hub serves the reports by its own means, as kcp does by an APIBinding. The CRDs for the edge would clash with
    // that, so they are stored under other names.
    let (reports, others): (Vec<Crd>, Vec<Crd>) = crds().into_iter().partition(Crd::is_of_reports);
    let denatured: Vec<Crd> = reports.iter().map(Crd::denatured).collect();
    let for_edge = [denatured.clone(), others].concat();
    let case = Case::begin(&for_edge).await;
    for crd in &reports {
        crd.create(&case.hub).await;
        wait_for_crd(&case.hub, &crd.name).await;
    }
    for crd in &denatured {
        mark(&case.hub, crd, "stored").await;
    }
    let config = json!({
        "apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "EdgeSyncConfig",
        "metadata": {"name": "site-7"}, "spec": edge_sync_config_spec(&for_edge),
    });
    case.hub.create(&config).await;

    let _syncer = case.tell(&for_edge).await;
    for crd in &denatured {
        arrives_renamed(&case.edge, crd, "stored").await;
        stays_absent(&case.edge, CRD_VERSION, CRDS, "", &crd.name_at_hub).await;
        mark(&case.hub, crd, "changed").await;
        arrives_renamed(&case.edge, crd, "changed").await;
        // The hub's own CRD of that name was not selected.
        let own = arrives(&case.hub, CRD_VERSION, CRDS, "", &crd.name).await;
        assert_eq!(own["metadata"]["labels"], Value::Null, "{}", crd.name);
    }
}

/// Waits until the CRD is at the edge under its proper name, with the right group and this mark.
async fn arrives_renamed(edge: &Objects, crd: &Crd, mark: &str) {
    eventually(&format!("the renamed {} arrives", crd.name), SOON, async || {
        let copy = edge
            .get(CRD_VERSION, CRDS, "", &crd.name)
            .await
            .ok_or("it is not there")?;
        let metadata = (
            &copy["metadata"]["labels"]["mark"],
            &copy["spec"]["group"],
            annotation(&copy, "downsynced"),
        );
        let expected = format!("CustomResourceDefinition//{}", crd.name);
        if metadata == (&json!(mark), &json!(REPORT_GROUP), json!(expected)) {
            Ok(())
        } else {
            Err(format!("it has {metadata:?}"))
        }
    })
    .await;
}

/// What both tests have in common.
struct Case {
    hub: Objects,
    edge: Objects,
    pair: Pair,
}

impl Case {
    /// Starts two servers and puts everything but a config at the hub, and one more object to judge at the edge.
    async fn begin(crds: &[Crd]) -> Self {
        // At the edge, the garbage collector takes away reports about objects that have gone. At the hub it would take
        // away reports that name their owner, which the hub does not know.
        let pair = Pair::start(PairOptions::with_controller_managers()).await;
        let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
        for crd in crds {
            crd.create(&hub).await;
        }
        for crd in crds {
            wait_for_crd(&hub, &crd.name_at_hub).await;
        }
        for object in engine_objects().iter().chain(&policies()) {
            hub.create(object).await;
        }
        hub.create(&namespace(SHOP)).await;
        hub.create(&config_map(SHOP, PRICES.name, json!({"apple": "1"}))).await;
        hub.create(&config_map(SHOP, HOURS.name, json!({"open": "9-17"}))).await;
        HOURS.set_owner(&hub, "anna").await;

        edge.create(&namespace(PLANT)).await;
        edge.create(&config_map(PLANT, SHIFTS.name, json!({"early": "6-14"})))
            .await;
        Self { hub, edge, pair }
    }

    /// The story, once there is a config. The syncer continues.
    async fn tell(&self, crds: &[Crd]) -> Syncer {
        let mut syncer = self.pair.syncer(&[]);
        let mut engine = self.go_down(crds).await;
        self.judge().await;
        self.follow().await;
        self.go().await;
        self.leave_the_rest_alone().await;
        assert!(engine.is_running(), "the engine has ended");
        assert!(syncer.is_running(), "the syncer has ended");
        syncer
    }

    /// All that the engine needs arrives at the edge, and there it starts.
    async fn go_down(&self, crds: &[Crd]) -> Engine {
        for crd in crds {
            wait_for_crd(&self.edge, &crd.name).await;
        }
        for name in ENGINE_CONFIG_MAPS {
            arrives(&self.edge, "v1", "configmaps", ENGINE_NAMESPACE, name).await;
        }
        for name in [OWNER_POLICY, NAMESPACE_POLICY] {
            arrives(&self.edge, POLICY_VERSION, "clusterpolicies", "", name).await;
        }
        copy_equals(&self.edge, SHOP, PRICES.name, &json!({"apple": "1"})).await;
        Engine::start(&self.pair.edge).await
    }

    /// The engine judges, and the hub gets to know.
    async fn judge(&self) {
        for (subject, verdict) in [(PRICES, "fail"), (HOURS, "pass"), (SHIFTS, "fail"), (THE_SHOP, "fail")] {
            self.reports(&subject, verdict).await;
        }
        // The hub did not have this namespace; it is there for the report.
        arrives(&self.hub, "v1", "namespaces", "", PLANT).await;
        stays_absent(&self.hub, "v1", "configmaps", PLANT, SHIFTS.name).await;
    }

    /// What is changed at the hub is judged again at the edge, and the hub gets to know.
    async fn follow(&self) {
        PRICES.set_owner(&self.hub, "anna").await;
        THE_SHOP.set_owner(&self.hub, "anna").await;
        SHIFTS.set_owner(&self.edge, "paul").await;
        for subject in [PRICES, THE_SHOP, SHIFTS] {
            self.reports(&subject, "pass").await;
        }
    }

    /// Reports go when the object goes at the hub, or the policy.
    async fn go(&self) {
        self.hub.delete("v1", "configmaps", SHOP, HOURS.name).await;
        self.hub
            .delete(POLICY_VERSION, "clusterpolicies", "", NAMESPACE_POLICY)
            .await;
        gone(&self.edge, "v1", "configmaps", SHOP, HOURS.name).await;
        for subject in [HOURS, THE_SHOP] {
            subject.no_longer_judged(&self.edge, JUDGED).await;
            subject.no_longer_judged(&self.hub, SOON).await;
        }
    }

    /// The other reports are where they were, and each side has those of its own only once.
    async fn leave_the_rest_alone(&self) {
        for subject in [PRICES, SHIFTS] {
            self.reports(&subject, "pass").await;
        }
        for namespace in JUDGED_NAMESPACES {
            let names = async |side: &Objects| {
                let reports = side.list(REPORT_VERSION, "PolicyReport", namespace, "").await;
                let mut names: Vec<String> = reports
                    .iter()
                    .map(|report| report["metadata"]["name"].to_string())
                    .collect();
                names.sort();
                names
            };
            eventually(
                &format!("both sides have the same reports in {namespace}"),
                SOON,
                async || {
                    let (hub, edge) = (names(&self.hub).await, names(&self.edge).await);
                    if hub == edge {
                        Ok(())
                    } else {
                        Err(format!("{hub:?} {edge:?}"))
                    }
                },
            )
            .await;
        }
    }

    /// Waits until the engine has said this of an object at the edge and the hub has the very same report.
    async fn reports(&self, subject: &Subject, verdict: &str) {
        subject.judged(&self.edge, verdict, JUDGED).await;
        let what = format!("the hub has the report about {} as the edge has it", subject.name);
        let (at_edge, at_hub) = eventually(&what, SOON, async || {
            let at_edge = subject.judged(&self.edge, verdict, SOON).await;
            let at_hub = subject.report(&self.hub).await.map_err(|error| error.to_string())?;
            let at_hub = at_hub.ok_or("it is not there")?;
            let same = ["summary", "results", "scope"]
                .iter()
                .all(|&field| at_hub[field] == at_edge[field]);
            if same {
                Ok((at_edge, at_hub))
            } else {
                Err(format!("{at_hub:#}"))
            }
        })
        .await;
        let (kind, name) = (subject.report_kind(), at_edge["metadata"]["name"].as_str());
        let name = name.expect("a report has a name");
        let upsynced = format!("{kind}/{}/{name}", subject.namespace);
        assert_eq!(at_hub["metadata"]["name"], name);
        assert_eq!(annotation(&at_hub, "upsynced"), upsynced);
        assert_eq!(
            at_hub["metadata"]["ownerReferences"],
            Value::Null,
            "the hub has no such owner"
        );
        for mark in ["upsynced", "downsynced", "adopted"] {
            assert_eq!(
                annotation(&at_edge, mark),
                Value::Null,
                "the engine's own report was marked"
            );
        }
    }
}

/// Marks a CRD at the hub.
async fn mark(hub: &Objects, crd: &Crd, mark: &str) {
    let patch = json!({"metadata": {"labels": {"mark": mark}}});
    hub.merge_patch(CRD_VERSION, CRDS, "", &crd.name_at_hub, &patch).await;
}

/// What [`selection`] says, with Refs. One of the renamed CRDs is selected by the hub's name for it and one by the edge's.
fn edge_sync_config_spec(crds: &[Crd]) -> Value {
    let crd_ref = |name: &str| json!({"group": "apiextensions.k8s.io", "version": "v1", "kind": "CustomResourceDefinition", "name": name});
    let mut down = vec![
        json!({"version": "v1", "kind": "Namespace", "name": ENGINE_NAMESPACE}),
        json!({"version": "v1", "kind": "Namespace", "name": SHOP}),
        json!({"version": "v1", "kind": "ConfigMap", "namespace": ENGINE_NAMESPACE, "name": "*"}),
        json!({"version": "v1", "kind": "ConfigMap", "namespace": SHOP, "name": PRICES.name}),
        json!({"version": "v1", "kind": "ConfigMap", "namespace": SHOP, "name": HOURS.name}),
        json!({"group": "apps", "version": "v1", "kind": "Deployment", "namespace": ENGINE_NAMESPACE, "name": ENGINE}),
        json!({"group": "kyverno.io", "version": "v1", "kind": "ClusterPolicy", "name": "*"}),
    ];
    let mut conversions = Vec::new();
    for (position, crd) in crds.iter().enumerate() {
        let by_hub_name = position % 2 == 0;
        down.push(crd_ref(if by_hub_name { &crd.name_at_hub } else { &crd.name }));
        if crd.name != crd.name_at_hub {
            conversions.push(json!({"upstream": crd_ref(&crd.name_at_hub), "downstream": crd_ref(&crd.name)}));
        }
    }
    let up = |kind: &str, namespace: Option<&str>| {
        let mut item = json!({"group": REPORT_GROUP, "version": "v1alpha2", "kind": kind, "name": "*"});
        if let Some(namespace) = namespace {
            item["namespace"] = json!(namespace);
        }
        item
    };
    json!({
        "downSyncedResources": down,
        "upSyncedResources": [up("PolicyReport", Some("*")), up("ClusterPolicyReport", None)],
        "conversions": conversions,
    })
}
