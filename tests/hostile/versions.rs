//! CRDs that drop a version while their copies' side may still have objects stored at it. Found from outside.

use serde_json::{Value, json};

use crate::bench::{says, uid};
use crate::managers::{CRD_API, CRDS, drops_v0, patch_as, with_versions};
use crate::support::Objects;
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{namespace, path};
use crate::support::stage::{Stage, cluster_objects, own_group, select, stage};
use crate::support::story::{arrives, becomes, crd, custom_object, drop_crds, install_crd, upsync_all};

in_both_modes!(
    a_crd_that_drops_a_version_is_synced_though_its_copy_keeps_that_as_long_as_objects_may_be_stored_at_it,
    what_the_origin_drops_goes_though_others_have_written_the_copy_at_a_version_that_is_gone,
);

/// The versions of a CRD: name, and whether it is the stored one.
fn versions(of: &Value, versions: &[(&str, bool)]) -> Value {
    let version = |&(name, storage): &(&str, bool)| {
        let mut version = of["spec"]["versions"][0].clone();
        (version["name"], version["storage"]) = (json!(name), json!(storage));
        version
    };
    versions.iter().map(version).collect()
}

/// The versions that a CRD has, each with whether it is served and stored.
fn present(crd: &Value) -> Vec<(&str, bool, bool)> {
    let versions = crd["spec"]["versions"].as_array().expect("it has versions");
    let present = |version: &Value| (version["served"] == true, version["storage"] == true);
    versions
        .iter()
        .map(|version| (version["name"].as_str().expect("it has a name"), present(version)))
        .map(|(name, (served, storage))| (name, served, storage))
        .collect()
}

async fn stored(at: &Objects, name: &str, versions: &[&str]) {
    at.patch_status(CRD_API, CRDS, "", name, &json!({"storedVersions": versions}))
        .await;
}

/// A CRD that one side has and the other gets.
struct Synced<'a> {
    from: &'a Objects,
    to: &'a Objects,
    definition: Value,
    name: String,
}

impl Synced<'_> {
    async fn change(&self, patch: &Value) {
        self.from.merge_patch(CRD_API, CRDS, "", &self.name, patch).await;
    }

    async fn copy_has(&self, expected: &[(&str, bool, bool)]) -> Value {
        let expectation = format!("has {expected:?}");
        becomes(self.to, [CRD_API, CRDS, "", &self.name], &expectation, |copy| {
            present(copy) == expected
        })
        .await
    }
}

async fn a_crd_that_drops_a_version_is_synced_though_its_copy_keeps_that_as_long_as_objects_may_be_stored_at_it(
    flags: Mode,
) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, v1) = own_group(&shop);
    let both = [(&hub, &edge, "downs"), (&edge, &hub, "ups")].map(|(from, to, plural)| {
        let definition = crd(&group, plural, true);
        let name = format!("{plural}.{group}");
        Synced {
            from,
            to,
            definition,
            name,
        }
    });
    let [down, up] = &both;
    let spec = json!({
        "clusterScope": [cluster_objects("apiextensions.k8s.io", CRDS, &[&down.name])],
        "upsync": [{"apiGroup": "apiextensions.k8s.io", "resources": [CRDS], "names": [up.name]}]});
    select(&hub, &spec).await;
    let mut syncer = pair.syncer(flags);
    for side in [&hub, &edge] {
        side.create(&namespace(&shop)).await;
    }
    let mut objects = Vec::new();
    for (of, plural) in both.iter().zip(["downs", "ups"]) {
        let mut definition = of.definition.clone();
        definition["spec"]["versions"] = versions(&of.definition, &[("v0", true), ("v1", false)]);
        of.from.create(&definition).await;
        of.copy_has(&[("v0", true, true), ("v1", true, false)]).await;
        of.change(&json!({"spec": {"versions": versions(&of.definition, &[("v0", false), ("v1", true)])}}))
            .await;
        of.copy_has(&[("v0", true, false), ("v1", true, true)]).await;
        objects.push(created(of.to, &custom_object(&group, plural, &shop, "a", 1)).await);
    }
    // One version goes and another comes, and something else changes with them.
    for of in &both {
        stored(of.from, &of.name, &["v1"]).await;
        of.change(&json!({"metadata": {"labels": {"release": "2"}},
            "spec": {"versions": versions(&of.definition, &[("v1", false), ("v2", true)])}}))
            .await;
        let kept = [("v1", true, false), ("v2", true, true), ("v0", false, false)];
        let copy = of.copy_has(&kept).await;
        assert_eq!(copy["metadata"]["labels"]["release"], "2");
        says(&mut syncer, &["WARN", "OldVersionKept", &of.name, "versions=v0"]).await;
        of.change(&json!({"metadata": {"labels": {"release": "3"}}})).await;
        becomes(of.to, [CRD_API, CRDS, "", &of.name], "follows", |copy| {
            copy["metadata"]["labels"]["release"] == "3" && present(copy) == kept
        })
        .await;
    }
    for (of, plural) in both.iter().zip(["downs", "ups"]) {
        let lines = syncer.log();
        let of_it = || lines.lines().filter(|line| line.contains(&of.name));
        assert_eq!(
            of_it().filter(|line| line.contains("OldVersionKept")).count(),
            1,
            "{lines}"
        );
        assert!(!of_it().any(|line| line.contains("ObjectRejected")), "{lines}");
        // As the line says.
        let object = arrives(of.to, &v1, plural, &shop, "a").await;
        of.to.replace(&object).await;
        stored(of.to, &of.name, &["v1", "v2"]).await;
        of.copy_has(&[("v1", true, false), ("v2", true, true)]).await;
    }
    for ((of, plural), before) in both.iter().zip(["downs", "ups"]).zip(&objects) {
        assert_eq!(uid(&arrives(of.to, &v1, plural, &shop, "a").await), *before);
    }
    drop_crds(&[&hub, &edge], &[&down.name, &up.name]).await;
}

/// Creates an object of a type that its side serves soon, and gives its UID.
async fn created(at: &Objects, object: &Value) -> String {
    let created = crate::support::eventually("the type is served", crate::support::story::SOON, async || {
        at.try_create(object).await.map_err(|error| error.to_string())
    });
    uid(&created.await)
}

/// One whose fields others share, and have more beside them; and one that only ever was created, and annotated by others.
async fn what_the_origin_drops_goes_though_others_have_written_the_copy_at_a_version_that_is_gone(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let (group, v1) = own_group(&shop);
    let v0 = format!("{group}/v0");
    let sides = [&hub, &edge];
    install_crd(&sides, &with_versions(&group, true)).await;
    for side in sides {
        side.create(&namespace(&shop)).await;
    }
    let object = |name: &str, spec: Value| {
        let mut object = custom_object(&group, "servings", &shop, name, 1);
        object["spec"] = spec;
        object
    };
    let resources = json!([{"group": group, "resource": "servings", "apiVersion": "v1"}]);
    let mut spec = json!({"namespaceScope": {"namespaces": [shop], "resources": resources}});
    spec["upsync"] = json!([upsync_all(&group, &["servings"], &shop)]);
    spec["upsync"][0]["names"] = json!(["up-shared", "up-noted"]);
    let ways = [(&hub, &edge, "down"), (&edge, &hub, "up")];
    for (from, _, way) in ways {
        for kind in ["shared", "noted"] {
            from.create(&object(&format!("{way}-{kind}"), json!({"keep": 1, "drop": 1})))
                .await;
        }
    }
    select(&hub, &spec).await;
    let _syncer = pair.syncer(flags);
    for (_, to, way) in ways {
        let names = [format!("{way}-shared"), format!("{way}-noted")];
        for name in &names {
            arrives(to, &v1, "servings", &shop, name).await;
        }
        let mut theirs = object(&names[0], json!({"keep": 1, "extra": 1}));
        theirs["apiVersion"] = json!(v0);
        to.apply_as("helm", &theirs).await;
        let note = json!({"metadata": {"annotations": {"example.org/note": "1"}}});
        patch_as(to, "operator", &path(&v0, "servings", &shop, &names[1]), &note).await;
    }
    for side in sides {
        drops_v0(side, &group).await;
    }
    for (from, to, way) in ways {
        for (kind, extra) in [("shared", json!({"extra": 1})), ("noted", json!({}))] {
            let name = format!("{way}-{kind}");
            let patch = json!({"spec": {"keep": 2, "drop": null}});
            from.merge_patch(&v1, "servings", &shop, &name, &patch).await;
            let mut expected = extra;
            expected["keep"] = json!(2);
            becomes(to, [&v1, "servings", &shop, &name], "has lost what went", |copy| {
                copy["spec"] == expected
            })
            .await;
        }
    }
    drop_crds(&sides, &[&format!("servings.{group}")]).await;
}
