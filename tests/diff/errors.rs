//! What cannot be known.

use serde_json::json;

use crate::bench::{diff, diff_between};
use crate::support::objects::namespace;
use crate::support::rbac::{allow, disallow, limited};
use crate::support::stage::{Stage, all_of, select, stage, stock};

#[tokio::test]
async fn one_type_that_cannot_be_read_is_an_error_and_the_rest_is_shown() {
    let stage = stage().await;
    let Stage { pair, shop, hub, edge } = &stage;
    stock(hub, shop, &["a"], &json!({"apple": "1"})).await;
    edge.create(&namespace(shop)).await;
    select(hub, &all_of(shop, &[("", "configmaps"), ("", "secrets")])).await;
    let rules = json!([
        {"apiGroups": [""], "resources": ["configmaps", "namespaces"], "verbs": ["get", "list", "watch", "create", "patch", "delete"]},
    ]);
    let role = format!("without-secrets-{shop}");
    allow(edge, &role, rules).await;
    let found = diff_between(&pair.hub.kubeconfig(), &limited(&pair.edge), &[]).await;
    disallow(edge, &role).await;
    assert_eq!(found.code, Some(2), "{}{}", found.out, found.err);
    let created = format!("edge: ConfigMap/{shop}/a would be created");
    assert!(found.heads().contains(&created), "{}{}", found.out, found.err);
    assert!(found.err.contains("secrets"), "{}", found.err);
    let last = "fail, as the lines above say: what run would do about them is not known\n";
    assert!(found.err.ends_with(last), "{}", found.err);
}

#[tokio::test]
async fn wrong_usage_and_a_side_that_is_away_are_one_line_and_exit_code_2() {
    let stage = stage().await;
    for (flag, line) in [
        (
            "--object=nonsense",
            "edge-syncer: --object \"nonsense\": must be Kind/namespace/name, such as ConfigMap/shop/prices, or Kind//name, such as Namespace//shop (see edge-syncer diff --help)\n",
        ),
        (
            "--nonsense",
            "edge-syncer: unknown flag --nonsense (see edge-syncer diff --help)\n",
        ),
    ] {
        let found = diff(&stage, &[flag]).await;
        assert_eq!((found.code, &*found.out, &*found.err), (Some(2), "", line));
    }
    // The wrong way round: the edge has no configs.
    let (hub, edge) = (stage.pair.hub.kubeconfig(), stage.pair.edge.kubeconfig());
    let found = diff_between(&edge, &hub, &[]).await;
    assert_eq!((found.code, &*found.out), (Some(2), ""), "{}", found.err);
    assert!(
        found.err.contains("neither syncerconfigs nor edgesyncconfigs"),
        "{}",
        found.err
    );
    let one = diff_between(&hub, &hub, &[]).await;
    assert_eq!((one.code, &*one.out), (Some(2), ""), "{}", one.err);
    let nowhere = stage.pair.edge.write_kubeconfig(
        "nowhere",
        &crate::support::KubeconfigParts::with(|parts| parts.server = Some("https://127.0.0.1:1".to_owned())),
    );
    for (hub, edge) in [(&nowhere, &edge), (&hub, &nowhere)] {
        let found = diff_between(hub, edge, &[]).await;
        assert_eq!((found.code, &*found.out), (Some(2), ""), "{}", found.err);
        assert!(found.err.contains("https://127.0.0.1:1"), "{}", found.err);
    }
}
