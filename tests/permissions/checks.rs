//! `edge-syncer check`: what it says is so, and its exit code.

use std::path::Path;

use serde_json::{Value, json};

use crate::bench::{Atom, Site, between, edge_syncer, pair};
use crate::printed::selection;
use crate::support::objects::{namespace, syncer_config};
use crate::support::story::{crd, install_crd};
use crate::support::{Credential, KubeconfigParts, Printed};

pub(crate) async fn check(hub: &Path, edge: &Path, more: &[&str]) -> Printed {
    edge_syncer(&between(&["check"], hub, edge, more)).await
}

/// The lines that begin so.
pub(crate) fn lines<'a>(printed: &'a Printed, begin: &str) -> Vec<&'a str> {
    printed.out.lines().filter(|line| line.starts_with(begin)).collect()
}

#[tokio::test]
async fn a_site_with_the_printed_roles_is_good_and_a_missing_permission_is_named() {
    let pair = pair().await;
    let shop = pair.namespace("shop");
    pair.hub.objects().create(&namespace(&shop)).await;
    pair.hub
        .objects()
        .create(&syncer_config("demo", selection(&shop)))
        .await;
    let site = Site::prepare(pair, &["--leader-elect"]).await;
    let [hub, edge] = &site.files;
    let found = check(hub, edge, &["--leader-elect"]).await;
    assert_eq!(found.code, Some(0), "{}{}", found.out, found.err);
    assert_eq!(lines(&found, "✗").len() + lines(&found, "?").len(), 0, "{}", found.out);
    for line in [
        format!("✔ hub: reached: {}", site.pair.hub.url()),
        format!("✔ edge: reached: {}", site.pair.edge.url()),
        "✔ hub: TLS: the server's certificate is valid for 127.0.0.1, by certificate-authority-data of".to_owned(),
        "✔ hub: version: v1.".to_owned(),
        "✔ edge: clock: ".to_owned(),
        "✔ two clusters: hub and edge are not the same".to_owned(),
        "✔ hub: configs: syncerconfigs and edgesyncconfigs served: SyncerConfig//demo".to_owned(),
        "✔ edge: types: it serves configmaps v1, deployments.apps v1, namespaces v1".to_owned(),
        "✔ hub: permission: patch deployments.apps/status (status return)".to_owned(),
        "✔ edge: own namespace: edge-syncer is there".to_owned(),
        "! edge: permission: may not list every type (deletes of Namespaces and CRDs); it is optional: without it, copies of \
         Namespaces and CRDs are preserved"
            .to_owned(),
    ] {
        assert!(!lines(&found, &line).is_empty(), "no {line:?} in\n{}", found.out);
    }
    // The token is a new one of an hour.
    let who = "✔ hub: credentials: system:serviceaccount:edge-syncer:site-7, by token, which ends at ";
    assert_eq!(lines(&found, who).len(), 1, "{}", found.out);

    for (at, side) in [(0, "hub"), (1, "edge")] {
        for atom in Atom::all(side, &site.printed[at]) {
            if !matches!(
                (&*atom.verb, &*atom.resource),
                ("patch", "deployments/status") | ("delete", "configmaps")
            ) {
                continue;
            }
            let objects = if at == 0 { &site.hub } else { &site.edge };
            atom.take_out(objects, &site.accounts[at]).await;
            let found = check(hub, edge, &["--leader-elect"]).await;
            assert_eq!(found.code, Some(1), "{}", found.out);
            let wrong = lines(&found, "✗");
            let expected = format!("✗ {side}: permission: may not {} ", atom.verb);
            assert!(
                wrong.len() == 1 && wrong[0].starts_with(&expected),
                "{atom:?}: {wrong:?}"
            );
            let advice = format!("; to do: grant it: edge-syncer gen rbac --side {side} prints the roles");
            assert!(wrong[0].contains(&advice), "{wrong:?}");
            atom.give_back(objects, &site.accounts[at]).await;
        }
    }
    // Without Events nothing fails.
    let atoms = Atom::all("edge", &site.printed[1]);
    let atom = atoms.iter().find(|atom| atom.resource == "events");
    let atom = atom.expect("the edge's role has them");
    atom.take_out(&site.edge, &site.accounts[1]).await;
    let found = check(hub, edge, &["--leader-elect"]).await;
    let line = format!("! edge: permission: may not {} events.events.k8s.io", atom.verb);
    assert_eq!((found.code, lines(&found, &line).len()), (Some(0), 1), "{}", found.out);
    atom.give_back(&site.edge, &site.accounts[1]).await;
    // Without the configs it is not known what they need; what is needed in any case is.
    let atoms = Atom::all("hub", &site.printed[0]);
    let list = atoms
        .iter()
        .find(|atom| (&*atom.verb, &*atom.resource) == ("list", "syncerconfigs"));
    let list = list.expect("the role has it");
    list.take_out(&site.hub, &site.accounts[0]).await;
    let found = check(hub, edge, &[]).await;
    assert_eq!(found.code, Some(1), "{}", found.out);
    for line in [
        "✗ hub: configs: they, or their types, cannot be read: ",
        "✗ hub: permission: may not list syncerconfigs.edge.kubestellar.io (configs)",
        "✔ edge: permission: get, create, patch configmaps edge-syncer-types-site-7 in edge-syncer (its record)",
    ] {
        assert_eq!(lines(&found, line).len(), 1, "{line:?}\n{}", found.out);
    }
    list.give_back(&site.hub, &site.accounts[0]).await;
    let found = check(hub, edge, &["-o", "json"]).await;
    let parsed: Value = serde_json::from_str(&found.out).expect("it is JSON");
    assert_eq!((&parsed["result"], found.code), (&json!("note"), Some(0)), "{parsed}");
}

#[tokio::test]
async fn what_is_wrong_with_a_side_is_named_with_what_to_do() {
    let pair = pair().await;
    let (hub, edge) = (pair.hub.kubeconfig(), pair.edge.kubeconfig());
    // One cluster.
    let found = check(&hub, &hub, &[]).await;
    assert_eq!(found.code, Some(1), "{}", found.out);
    assert_eq!(lines(&found, "✗ two clusters: hub ").len(), 1, "{}", found.out);
    let rbac = ["gen", "rbac", "--side=hub"];
    let refused = edge_syncer(&between(&rbac, &hub, &hub, &[])).await;
    assert!(refused.err.contains("are the same cluster"), "{}", refused.err);
    // The wrong way round.
    let exchanged = "neither syncerconfigs nor edgesyncconfigs of edge.kubestellar.io";
    let found = check(&edge, &hub, &[]).await;
    assert!(
        found.out.contains(exchanged) && found.out.contains("exchange --from-kubeconfig"),
        "{}",
        found.out
    );
    let refused = edge_syncer(&between(&rbac, &edge, &hub, &[])).await;
    assert_eq!((refused.code, &*refused.out), (Some(1), ""), "{}", refused.err);
    assert!(
        refused.err.contains(exchanged) && refused.err.contains("exchange --from-kubeconfig"),
        "{}",
        refused.err
    );
    // What is selected and not served, and what is wrong with a config.
    let spec = json!({"clusterScope": [{"group": "example.org", "resource": "valves", "apiVersion": "v1"}],
        "namespaceScope": {"namespaces": ["*"], "resources": []}});
    pair.hub.objects().create(&syncer_config("valves", spec)).await;
    let found = check(&hub, &edge, &[]).await;
    assert_eq!(found.code, Some(1), "{}", found.out);
    for line in [
        "✗ hub: types: it does not serve resource=valves group=\"example.org\" version=v1, which SyncerConfig//valves selects",
        "✗ hub: configs: SyncerConfig//valves spec.namespaceScope.namespaces[0]: ",
    ] {
        assert_eq!(lines(&found, line).len(), 1, "{line:?}\n{}", found.out);
    }
    // What its own CRD brings is not wrong.
    let hub_objects = pair.hub.objects();
    install_crd(&[&hub_objects], &crd("pipes.example.org", "gauges", true)).await;
    let spec = json!({
        "clusterScope": [{"group": "apiextensions.k8s.io", "resource": "customresourcedefinitions", "apiVersion": "v1",
            "objects": ["gauges.pipes.example.org"]}],
        "namespaceScope": {"namespaces": ["pipes"], "resources": [
            {"group": "pipes.example.org", "resource": "gauges", "apiVersion": "v1"}]},
    });
    hub_objects.create(&syncer_config("pipes", spec)).await;
    let found = check(&hub, &edge, &[]).await;
    let line = "! edge: types: it does not serve resource=gauges group=\"pipes.example.org\" version=v1, which SyncerConfig//pipes \
                selects: it comes with its CRD";
    assert_eq!(lines(&found, line).len(), 1, "{}", found.out);
    // Each cause of a refusal to start, by side, file and field.
    let write =
        |name: &str, change: fn(&mut KubeconfigParts)| pair.edge.write_kubeconfig(name, &KubeconfigParts::with(change));
    let nobody = write("nobody", |parts| parts.credential = Credential::Nothing);
    let other_name = write("other-name", |parts| {
        parts.tls_server_name = Some("elsewhere.example".into());
    });
    let nowhere = write("nowhere", |parts| parts.server = Some("https://127.0.0.1:9".into()));
    let unchecked = write("unchecked", |parts| {
        parts.insecure_skip_tls_verify = true;
        parts.ca = crate::support::Ca::Absent;
    });
    let certificate = write("certificate", |parts| parts.credential = Credential::CertInline);
    for (file, code, line) in [
        (
            &nobody,
            1,
            format!("✗ edge: kubeconfig: edge (--to-kubeconfig={}, ", nobody.display()),
        ),
        (
            &other_name,
            1,
            format!(
                "✗ edge: TLS: {}: invalid peer certificate: certificate not valid for name",
                pair.edge.url()
            ),
        ),
        (&nowhere, 1, "✗ edge: reached: https://127.0.0.1:9: ".to_owned()),
        (
            &unchecked,
            1,
            "! edge: TLS: the server's certificate is not checked (insecure-skip-tls-verify)".to_owned(),
        ),
        (
            &certificate,
            1,
            "✔ edge: credentials: admin, by client certificate, which ends at ".to_owned(),
        ),
    ] {
        let found = check(&hub, file, &[]).await;
        assert_eq!(found.code, Some(code), "{}{}", found.out, found.err);
        assert_eq!(lines(&found, &line).len(), 1, "{line:?}\n{}", found.out);
        assert!(!found.out.contains("admin-token"), "{}", found.out);
    }
    let refused = pair.edge.write_kubeconfig("refused", &KubeconfigParts::default());
    let text = std::fs::read_to_string(&refused).expect("it was written");
    std::fs::write(&refused, text.replace("admin-token", "other-token")).expect("it can be written");
    let found = check(&hub, &refused, &[]).await;
    assert_eq!(lines(&found, "✗ edge: credentials: ").len(), 1, "{}", found.out);
    assert!(!found.out.contains("other-token"), "{}", found.out);
    // Wrong usage is no point.
    let found = check(&hub, &edge, &["--nonsense"]).await;
    assert_eq!((found.code, &*found.out), (Some(2), ""));
}
