//! The lists of a `ServiceAccount`, into which people and controllers of both sides write.

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Value, json};

use crate::support::journey::managed_pair;
use crate::support::objects::{MERGE_PATCH, namespace, path};
use crate::support::stage::{all_of, select};
use crate::support::story::{arrives, becomes, upsync_all};
use crate::support::{Objects, PairLease};

/// Selects all accounts of one namespace down and of another one up; gives their names.
async fn select_both_ways(pair: &PairLease) -> [String; 2] {
    let [down, up] = ["down", "up"].map(|prefix| pair.namespace(prefix));
    let mut spec = all_of(&down, &[("", "serviceaccounts")]);
    spec["upsync"] = json!([upsync_all("", &["serviceaccounts"], &up)]);
    select(&pair.hub.objects(), &spec).await;
    [down, up]
}

fn named(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"name": name})).collect()
}

/// A client lists these secrets, and no others, in the account `app`.
async fn list(side: &Objects, manager: &str, space: &str, names: &[&str]) {
    let target = format!("{}?fieldManager={manager}", path("v1", "serviceaccounts", space, "app"));
    let patch = json!({"secrets": named(names)});
    let patched = side.send(Method::PATCH, &target, MERGE_PATCH, Some(&patch)).await;
    patched.expect("the server takes it");
}

fn listed(account: &Value) -> BTreeSet<&str> {
    let secrets = account["secrets"].as_array().into_iter().flatten();
    secrets.filter_map(|secret| secret["name"].as_str()).collect()
}

async fn becomes_listed(side: &Objects, space: &str, names: &[&str]) {
    let (at, what) = (["v1", "serviceaccounts", space, "app"], format!("lists {names:?}"));
    becomes(side, at, &what, |account| {
        listed(account) == names.iter().copied().collect()
    })
    .await;
}

// Issue 41: what people had listed at the hub never arrived.
#[tokio::test]
async fn secrets_that_people_list_are_merged_with_those_of_the_copys_side_and_go_with_their_origin() {
    const OWN: &str = "app-token-7x2kp";
    const ORIGINS: &str = "app-token-9d4fz";
    let pair = managed_pair().await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let [down, up] = select_both_ways(&pair).await;
    let _syncer = pair.syncer(&[]);
    for (from, to, space) in [(&hub, &edge, &down), (&edge, &hub, &up)] {
        from.create(&namespace(space)).await;
        let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"namespace": space, "name": "app"}, "secrets": named(&["a", "b"])});
        from.create(&account).await;
        becomes_listed(to, space, &["a", "b"]).await;
        for (side, token) in [(to, OWN), (from, ORIGINS)] {
            list(side, "kube-controller-manager", space, &["a", "b", token]).await;
        }
        list(from, "kubectl-edit", space, &["b", "c", ORIGINS]).await;
        becomes_listed(to, space, &["b", "c", OWN]).await;
        // What somebody takes off the copy comes back.
        list(to, "somebody", space, &["c", OWN]).await;
        becomes_listed(to, space, &["b", "c", OWN]).await;
        list(from, "kubectl-edit", space, &[ORIGINS]).await;
        becomes_listed(to, space, &[OWN]).await;
        becomes_listed(from, space, &[ORIGINS]).await;
    }
}

/// The names in `imagePullSecrets`, and what is noted of where they came from.
fn pull_secrets(account: &Value) -> (Vec<&str>, &Value) {
    let names = account["imagePullSecrets"].as_array().into_iter().flatten();
    let names = names.filter_map(|secret| secret["name"].as_str()).collect();
    (
        names,
        &account["metadata"]["annotations"]["edge.kubestellar.io/pull-secrets"],
    )
}

/// A `ServiceAccount` whose copy's side has a pull secret of its own.
struct Account<'a> {
    from: &'a Objects,
    to: &'a Objects,
    space: &'a str,
}

impl Account<'_> {
    async fn wants(&self, names: &[&str]) {
        let patch = json!({"imagePullSecrets": named(names)});
        self.from
            .merge_patch("v1", "serviceaccounts", self.space, "app", &patch)
            .await;
    }

    async fn copy_has(&self, names: &[&str], noted: Value) -> Value {
        let at = ["v1", "serviceaccounts", self.space, "app"];
        let what = format!("has {names:?}, of which {noted} are noted");
        becomes(self.to, at, &what, |copy| {
            pull_secrets(copy) == (names.to_vec(), &noted)
        })
        .await
    }
}

#[tokio::test]
async fn pull_secrets_that_their_origin_drops_go_and_those_of_the_copys_side_stay() {
    const OWN: &str = "app-dockercfg-7x2kp";
    let pair = managed_pair().await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let [down, up] = select_both_ways(&pair).await;
    let mut syncer = pair.syncer(&[]);
    for (from, to, space) in [(&hub, &edge, &down), (&edge, &hub, &up)] {
        let account = Account { from, to, space };
        let object = |name: &str, secrets: Value| {
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": space, "name": name},
                "imagePullSecrets": secrets})
        };
        from.create(&namespace(space)).await;
        from.create(&object("app", json!([{"name": "a"}]))).await;
        account.copy_has(&["a"], json!("[\"a\"]")).await;
        let added = json!({"imagePullSecrets": [{"name": OWN}, {"name": "a"}]});
        to.merge_patch("v1", "serviceaccounts", space, "app", &added).await;
        account.wants(&["a", "b"]).await;
        account.copy_has(&[OWN, "a", "b"], json!("[\"a\",\"b\"]")).await;
        account.wants(&["c"]).await;
        let copy = account.copy_has(&[OWN, "c"], json!("[\"c\"]")).await;
        // A restart reads it, and has nothing to write.
        syncer.terminate().await;
        syncer = pair.syncer(&[]);
        from.create(&object("proof", json!([]))).await;
        arrives(to, "v1", "serviceaccounts", space, "proof").await;
        let now = to.get("v1", "serviceaccounts", space, "app").await.expect("it stays");
        assert_eq!(now["metadata"]["resourceVersion"], copy["metadata"]["resourceVersion"]);
        account.wants(&[]).await;
        account.copy_has(&[OWN], Value::Null).await;
        // Of a copy from before there was the annotation no more is known than what its origin has now.
        account.wants(&["d"]).await;
        account.copy_has(&[OWN, "d"], json!("[\"d\"]")).await;
        syncer.terminate().await;
        let taken_off = json!({"metadata": {"annotations": {"edge.kubestellar.io/pull-secrets": null}}});
        to.merge_patch("v1", "serviceaccounts", space, "app", &taken_off).await;
        account.wants(&["e"]).await;
        syncer = pair.syncer(&[]);
        account.copy_has(&[OWN, "d", "e"], json!("[\"e\"]")).await;
        account.wants(&[]).await;
        account.copy_has(&[OWN, "d"], Value::Null).await;
    }
}
