//! docs/permissions.md and `examples/rbac` against the table of permissions in the code.

use edge_syncer::permissions::TABLE;
use edge_syncer::side::Side;

use crate::bench::{bench, create_all};
use crate::pages::{Page, read};
use crate::support::Syncer;

#[test]
fn the_tables_of_permissions_are_that_of_the_code() {
    let row = |row: &edge_syncer::permissions::Row| {
        let optional = if row.is_optional { " (optional)" } else { "" };
        let (feature, verbs) = (row.feature, row.verbs.join(", "));
        format!("| {feature}{optional} | {} | {verbs} |", row.resources)
    };
    let of = |side| TABLE.iter().filter(move |row| row.side == side).map(row);
    let in_code: Vec<String> = of(Side::Hub).chain(of(Side::Edge)).collect();
    let rows = Page::open("docs/permissions.md").rows("for");
    let in_docs: Vec<String> = rows
        .iter()
        .map(|row| format!("| {} |", row.cells.join(" | ")))
        .collect();
    assert_eq!(in_docs, in_code, "the rows are to be\n{}", in_code.join("\n"));
}

#[tokio::test]
async fn the_roles_of_the_examples_are_what_gen_rbac_prints() {
    let bench = bench().await;
    for file in ["examples/all-of-a-namespace.yaml", "examples/one-object-up.yaml"] {
        create_all(&bench.hub, file).await;
    }
    let (hub, edge) = (bench.pair.hub.kubeconfig(), bench.pair.edge.kubeconfig());
    for side in ["hub", "edge"] {
        let output = tokio::process::Command::new(Syncer::program())
            .args([
                "gen",
                "rbac",
                "--leader-elect",
                "--sync-target-uid=site-7",
                "--side",
                side,
            ])
            .arg(format!("--from-kubeconfig={}", hub.display()))
            .arg(format!("--to-kubeconfig={}", edge.display()))
            .env("NAMESPACE", "edge-syncer")
            .output()
            .await
            .expect("the binary can be started");
        let printed = String::from_utf8_lossy(&output.stdout);
        let file = format!("examples/rbac/{side}.yaml");
        assert!(printed == read(&file), "{file} is to be\n{printed}");
    }
}
