//! A newer version in the place of an older one, and the older one again.

use std::path::Path;

use serde_json::{Value, json};

use super::{changed, copies_of, end, idle, kubeconfigs, record_of, text};
use crate::support::dist;
use crate::support::objects::{Objects, config_map, namespace};
use crate::support::stage::{numbered, own_group, select, stock};
use crate::support::story::{
    annotation, arrives, becomes, copy_equals, crd, custom_object, drop_crds, gone, install_crd, remains, upsync_all,
};
use crate::support::{AuditMark, Pair, SYNCER, Server, shared_pair};

/// So many `ConfigMap`s at the hub; each round deletes one.
const STOCK: usize = 20;
/// Was at the edge before it was selected.
const ADOPTED: &str = "was-there";

/// The objects of one test.
struct Scene<'a> {
    pair: &'a Pair,
    hub: Objects,
    edge: Objects,
    shop: String,
    back: String,
    group: String,
    version: String,
}

impl Scene<'_> {
    /// The one object that has a status.
    fn gauge(&self) -> [&str; 4] {
        [&self.version, "gauges", &self.shop, "a"]
    }

    /// Everything that a syncer makes copies of, of each kind one at least.
    async fn open(&self) {
        stock(&self.hub, &self.shop, &numbered(STOCK), &json!({"text": text(500)})).await;
        self.edge.create(&namespace(&self.shop)).await;
        self.edge
            .create(&config_map(&self.shop, ADOPTED, json!({"of": "edge"})))
            .await;
        self.hub
            .create(&config_map(&self.shop, ADOPTED, json!({"of": "hub"})))
            .await;
        self.hub
            .create(&custom_object(&self.group, "gauges", &self.shop, "a", 1))
            .await;
        self.edge.create(&namespace(&self.back)).await;
        for name in ["a", "b"] {
            self.edge
                .create(&config_map(&self.back, name, json!({"of": "edge"})))
                .await;
        }
        let spec = json!({
            "namespaceScope": {"namespaces": [self.shop], "resources": [
                {"group": "", "resource": "configmaps", "apiVersion": "v1"},
                {"group": self.group, "resource": "gauges", "apiVersion": "v1"},
            ]},
            "upsync": [upsync_all("", &["configmaps"], &self.back)],
        });
        select(&self.hub, &spec).await;
    }

    /// Waits until a status of the edge has come to the hub.
    async fn status_returns(&self, level: usize) {
        let at = self.gauge();
        let status = json!({"level": level});
        self.edge.patch_status(at[0], at[1], at[2], at[3], &status).await;
        becomes(&self.hub, at, "has the status of the edge", |object| {
            object["status"] == status
        })
        .await;
    }

    /// What a syncer must find to have understood what the one before has left: a copy whose origin went while none
    /// ran, a change in each direction, a status.
    async fn is_followed(&self, round: usize) {
        gone(&self.edge, "v1", "configmaps", &self.shop, &format!("c{round}")).await;
        let wanted = round.to_string();
        let patch = json!({"data": {"round": wanted}});
        self.hub.merge_patch("v1", "configmaps", &self.shop, "c0", &patch).await;
        becomes(
            &self.edge,
            ["v1", "configmaps", &self.shop, "c0"],
            "has the change",
            |copy| copy["data"]["round"] == wanted,
        )
        .await;
        let of = json!({"of": format!("edge in round {round}")});
        self.edge
            .merge_patch("v1", "configmaps", &self.back, "a", &json!({"data": of}))
            .await;
        copy_equals(&self.hub, &self.back, "a", &of).await;
        self.status_returns(round).await;
    }

    /// What was written at a side that makes a new object or deletes one.
    fn made_or_deleted(&self, server: &Server, mark: AuditMark) -> Vec<String> {
        let of_copies = |uri: &str| [&self.shop, &self.back].iter().any(|name| uri.contains(name.as_str()));
        let requests = server.requests_since(SYNCER, mark).into_iter();
        // A server-side apply that makes an object is answered with 201.
        let found = requests.filter(|request| {
            of_copies(&request.uri) && request.is_write() && (request.verb != "patch" || request.code == 201)
        });
        found
            .map(|request| format!("{} {} {}", request.verb, request.uri, request.code))
            .collect()
    }
}

/// The names of the copies that a round changes, in the order of [`changed`].
fn expected(round: usize) -> Vec<String> {
    let mut names = vec!["a".to_owned(), "c0".to_owned(), format!("c{round}")];
    names.sort();
    names
}

/// An older version runs, then a newer one, the older and the newer again. What one has noted down, in the record and in
/// the marks on copies, the next one reads: it changes no copy, makes none again, and deletes those alone whose origin is
/// gone.
#[tokio::test]
#[ignore = "needs scripts/build-all, and builds an older version"]
async fn an_older_and_a_newer_version_take_over_from_each_other() {
    let pair = shared_pair().await;
    let (shop, back) = (pair.namespace("shop"), pair.namespace("back"));
    let (group, version) = own_group(&shop);
    let shop = Scene {
        hub: pair.hub.objects(),
        edge: pair.edge.objects(),
        pair: &pair,
        group,
        version,
        shop,
        back,
    };
    install_crd(&[&shop.hub, &shop.edge], &crd(&shop.group, "gauges", true)).await;
    shop.open().await;
    let [from, to] = kubeconfigs(&pair);
    let (older, newer) = (dist::older(), dist::archs()[0].binary());
    let programs: [(&str, &Path); 5] = [
        ("older", &older),
        ("newer", &newer),
        ("older", &older),
        ("newer", &newer),
        ("older", &older),
    ];
    let mut before: Option<(Vec<Value>, Value)> = None;
    let mut keys_of_older = Vec::new();
    for (round, (name, program)) in programs.into_iter().enumerate() {
        let gone_meanwhile = format!("c{round}");
        if round > 0 {
            shop.hub.delete("v1", "configmaps", &shop.shop, &gone_meanwhile).await;
        }
        let marks = (pair.edge.audit_mark(), pair.hub.audit_mark());
        let mut syncer = dist::start(program, &from, &to, &[]);
        if round == 0 {
            copies_of(&shop.edge, &shop.shop, STOCK + 1).await;
            copy_equals(&shop.hub, &shop.back, "b", &json!({"of": "edge"})).await;
            arrives(&shop.edge, &shop.version, "gauges", &shop.shop, "a").await;
            shop.status_returns(100).await;
        } else {
            shop.is_followed(round).await;
        }
        let after = idle(shop.pair, &shop.shop, &shop.back).await;
        let record = record_of(&shop.edge).await;
        if let Some((before, record_before)) = &before {
            assert_eq!(
                changed(before, &after),
                expected(round),
                "round {round}, {name}: {}",
                syncer.log()
            );
            // What only the newer one keeps, the older one drops.
            for key in &keys_of_older {
                assert_eq!(
                    record_before[key], record[key],
                    "round {round}: the {name} one reads {key} of the record"
                );
            }
            let deletes = shop.made_or_deleted(&pair.edge, marks.0);
            assert!(
                deletes.len() == 1 && deletes[0].starts_with("delete ") && deletes[0].contains(&gone_meanwhile),
                "round {round}, {name}: {deletes:?}"
            );
            let at_hub = shop.made_or_deleted(&pair.hub, marks.1);
            assert_eq!(at_hub, [""; 0], "round {round}, {name}");
        }
        end(&mut syncer).await;
        let record = record_of(&shop.edge).await;
        if round == 0 {
            let data = record.as_object().expect("a record has data");
            keys_of_older = data.keys().cloned().collect();
        }
        before = Some((after, record));
    }
    leaves_what_was_there(&shop, &newer, [&from, &to]).await;
    drop_crds(&[&shop.hub, &shop.edge], &[&format!("gauges.{}", shop.group)]).await;
}

/// That a copy was at the edge first is one of the things that versions read of each other: its origin goes, it stays.
async fn leaves_what_was_there(shop: &Scene<'_>, program: &Path, [from, to]: [&Path; 2]) {
    shop.hub.delete("v1", "configmaps", &shop.shop, ADOPTED).await;
    let mut syncer = dist::start(program, from, to, &[]);
    becomes(
        &shop.edge,
        ["v1", "configmaps", &shop.shop, ADOPTED],
        "has lost its marks",
        |copy| annotation(copy, "edge.kubestellar.io/adopted").is_null(),
    )
    .await;
    remains(&shop.edge, "v1", "configmaps", &shop.shop, ADOPTED).await;
    end(&mut syncer).await;
}
