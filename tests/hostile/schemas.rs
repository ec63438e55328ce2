//! CRDs that change the schema of the version that they have, as upgrades of operators do. Found from outside.

use serde_json::{Value, json};

use crate::bench::says;
use crate::managers::{CRD_API, CRDS, patch_as};
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::{namespace, path};
use crate::support::stage::{Stage, own_group, select, stage};
use crate::support::story::{SOON, arrives, becomes, crd, custom_object, drop_crds, install_crd, upsync_all};
use crate::support::{Objects, Syncer, eventually};

in_both_modes!(
    what_the_hub_drops_goes_from_lists_that_are_merged_since,
    an_object_is_synced_on_though_the_type_of_a_field_is_another_one,
);

/// A type at both sides, with an object for each direction.
struct Types {
    stage: Stage,
    group: String,
    version: String,
}

impl Types {
    fn definition(group: &str, spec: &Value, status: &Value) -> Value {
        let mut definition = crd(group, "topos", true);
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": spec}, "status": {"type": "object", "properties": status}}});
        definition
    }

    /// With this schema, and these contents of `down` and `up`.
    async fn with(spec: &Value, status: &Value, contents: &Value) -> Self {
        let stage = stage().await;
        let (group, version) = own_group(&stage.shop);
        install_crd(&[&stage.hub, &stage.edge], &Self::definition(&group, spec, status)).await;
        for side in [&stage.hub, &stage.edge] {
            side.create(&namespace(&stage.shop)).await;
        }
        for (side, name) in [(&stage.hub, "down"), (&stage.edge, "up")] {
            let mut object = custom_object(&group, "topos", &stage.shop, name, 1);
            object["spec"] = contents.clone();
            side.create(&object).await;
        }
        let resources = json!([{"group": group, "resource": "topos", "apiVersion": "v1"}]);
        let mut up = upsync_all(&group, &["topos"], &stage.shop);
        up["names"] = json!(["up"]);
        let spec = json!({"namespaceScope": {"namespaces": [stage.shop], "resources": resources}, "upsync": [up]});
        select(&stage.hub, &spec).await;
        Self { stage, group, version }
    }

    /// Where each object is from, where its copy is, and its name.
    fn both(&self) -> [(&Objects, &Objects, &str); 2] {
        let Stage { hub, edge, .. } = &self.stage;
        [(hub, edge, "down"), (edge, hub, "up")]
    }

    fn at<'a>(&'a self, name: &'a str) -> [&'a str; 4] {
        [&self.version, "topos", &self.stage.shop, name]
    }

    async fn arrive(&self) {
        for (_, to, name) in self.both() {
            arrives(to, &self.version, "topos", &self.stage.shop, name).await;
        }
    }

    async fn edit(&self, at: &Objects, name: &str, patch: &Value) {
        at.merge_patch(&self.version, "topos", &self.stage.shop, name, patch)
            .await;
    }

    /// Both sides have this schema from now on, as they say of what does not fit it.
    async fn change(&self, spec: &Value, status: &Value, misfit: &Value) {
        let versions = Self::definition(&self.group, spec, status)["spec"]["versions"].clone();
        for side in [&self.stage.hub, &self.stage.edge] {
            let name = format!("topos.{}", self.group);
            side.merge_patch(CRD_API, CRDS, "", &name, &json!({"spec": {"versions": versions}}))
                .await;
            let mut probe = custom_object(&self.group, "topos", &self.stage.shop, "probe", 1);
            probe["spec"] = misfit.clone();
            let at = path(&self.version, "topos", &self.stage.shop, "");
            eventually("the new schema is in force", SOON, async || {
                let target = format!("{at}?dryRun=All&fieldValidation=Strict");
                let taken = side
                    .send(http::Method::POST, &target, crate::support::objects::JSON, Some(&probe))
                    .await;
                taken.err().map(drop).ok_or("it is taken")
            })
            .await;
        }
    }

    async fn end(self) {
        drop_crds(
            &[&self.stage.hub, &self.stage.edge],
            &[&format!("topos.{}", self.group)],
        )
        .await;
    }
}

/// The schema of a list of objects, merged by these fields.
fn list(keys: &[&str]) -> Value {
    let text = json!({"type": "string"});
    let items = json!({"type": "object", "properties": {"name": text, "zone": text, "value": text}, "required": ["name", "zone"]});
    let mut list = json!({"type": "array", "items": items});
    if !keys.is_empty() {
        list["x-kubernetes-list-type"] = json!("map");
        list["x-kubernetes-list-map-keys"] = json!(keys);
    }
    list
}

async fn what_the_hub_drops_goes_from_lists_that_are_merged_since(flags: Mode) {
    let item = |name: &str| json!({"name": name, "zone": "z", "value": name});
    let words = |kind: &str| json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": kind});
    let any = json!({"x-kubernetes-preserve-unknown-fields": true});
    let before = json!({"whole": list(&[]), "keyed": list(&["name"]), "words": words("atomic"), "any": any});
    let after = json!({"whole": list(&["name"]), "keyed": list(&["name", "zone"]), "words": words("set"), "any": list(&["name"])});
    let full = json!([item("a"), item("b")]);
    let contents = json!({"whole": full, "keyed": full, "words": ["a", "b"], "any": full});
    let types = Types::with(&before, &json!({}), &contents).await;
    let _syncer = types.stage.pair.syncer(flags);
    types.arrive().await;
    types.change(&after, &json!({}), &json!({"words": ["a", "a"]})).await;
    // At the hub this would need each answer whole.
    for (from, to, name) in [types.both()[0]] {
        // What others have beside that stays.
        let mut own = custom_object(&types.group, "topos", &types.stage.shop, name, 1);
        own["spec"] = json!({"keyed": [item("own")], "words": ["own"]});
        to.apply_as("tool", &own).await;
        let one = json!([item("a")]);
        let dropped = json!({"spec": {"whole": one, "keyed": one, "words": ["a"], "any": one}});
        types.edit(from, name, &dropped).await;
        let names = |list: &Value| {
            let mut names: Vec<String> = list
                .as_array()
                .into_iter()
                .flatten()
                .map(|it| it["name"].to_string())
                .collect();
            names.sort();
            names.join(" ")
        };
        becomes(
            to,
            types.at(name),
            "has no more than its origin and the tool have",
            |copy| {
                let spec = &copy["spec"];
                let found = ["whole", "keyed", "any"].map(|field| names(&spec[field]));
                found == ["\"a\"", "\"a\" \"own\"", "\"a\""] && spec["words"] == json!(["a", "own"])
            },
        )
        .await;
        // Nor does the next drop leave anything.
        types
            .edit(from, name, &json!({"spec": {"whole": [item("c")], "words": ["c"]}}))
            .await;
        becomes(to, types.at(name), "follows", |copy| {
            names(&copy["spec"]["whole"]) == "\"c\"" && copy["spec"]["words"] == json!(["own", "c"])
        })
        .await;
    }
    types.end().await;
}

async fn an_object_is_synced_on_though_the_type_of_a_field_is_another_one(flags: Mode) {
    let text = json!({"type": "string"});
    let before = json!({"port": {"x-kubernetes-int-or-string": true}, "size": text, "gone": text, "own": text,
        "shape": {"type": "object", "properties": {"a": text}}});
    let mut after = before.clone();
    (after["port"], after["shape"]) = (text.clone(), json!({"type": "array", "items": text}));
    let contents = json!({"port": 80, "size": "1", "gone": "1", "shape": {"a": "1"}});
    let number = json!({"n": {"type": "integer"}});
    let types = Types::with(&before, &json!({"n": text}), &contents).await;
    let mut syncer = types.stage.pair.syncer(flags);
    types.arrive().await;
    for (_, to, name) in types.both() {
        patch_as(
            to,
            "tool",
            &path(&types.version, "topos", &types.stage.shop, name),
            &json!({"spec": {"own": "1"}}),
        )
        .await;
    }
    types.change(&after, &number, &json!({"port": 80})).await;
    for (from, to, name) in types.both() {
        let new = json!({"spec": {"port": "80", "size": "2", "gone": null, "shape": ["1"]}});
        types.edit(from, name, &new).await;
        becomes(to, types.at(name), "is as its origin", |copy| {
            copy["spec"] == json!({"port": "80", "size": "2", "shape": ["1"], "own": "1"})
        })
        .await;
        types
            .edit(
                from,
                name,
                &json!({"spec": {"size": null}, "metadata": {"labels": {"a": "b"}}}),
            )
            .await;
        becomes(to, types.at(name), "follows", |copy| {
            copy["spec"]["size"].is_null() && copy["metadata"]["labels"]["a"] == "b"
        })
        .await;
    }
    late_status(&types, &mut syncer).await;
    types.end().await;
}

/// Its controller has not written the status since the schema of that has changed.
async fn late_status(types: &Types, syncer: &mut Syncer) {
    let Types {
        stage: Stage { hub, edge, shop, .. },
        ..
    } = types;
    let text = json!({"type": "string"});
    let spec = json!({"port": text});
    types
        .change(&spec, &json!({"n": {"type": "integer"}}), &json!({"size": "1"}))
        .await;
    let mut late = custom_object(&types.group, "topos", shop, "late", 1);
    late["spec"] = json!({"port": "1"});
    hub.create(&late).await;
    arrives(edge, &types.version, "topos", shop, "late").await;
    edge.patch_status(&types.version, "topos", shop, "late", &json!({"n": 5}))
        .await;
    types
        .change(
            &json!({"port": text, "more": text}),
            &json!({"n": text}),
            &json!({"size": "1"}),
        )
        .await;
    types
        .edit(
            hub,
            "late",
            &json!({"spec": {"port": "2"}, "metadata": {"labels": {"a": "b"}}}),
        )
        .await;
    becomes(edge, types.at("late"), "has what is wanted", |copy| {
        copy["spec"]["port"] == "2"
    })
    .await;
    says(syncer, &["RequestFailed", "late", ".status.n"]).await;
    edge.patch_status(&types.version, "topos", shop, "late", &json!({"n": "5"}))
        .await;
    becomes(edge, types.at("late"), "is as its origin", |copy| {
        copy["metadata"]["labels"]["a"] == "b"
    })
    .await;
}
