//! What is made in a workspace: scenarios 1 to 4, 6 to 8, 10, 11 and 28.

use serde_json::{Value, json};

use crate::stage::Which;
use crate::support::objects::config_map;
use crate::support::story::{SOON, arrives, becomes};
use crate::support::{Objects, eventually};
use crate::world::{World, create};

/// A template for a namespace and a `ConfigMap` in it, in the wrong order.
pub(crate) const FACTS: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: facts, namespace: base}
data:
  id: \"{{ .ClusterName }}\"
  path: \"{{ .ClusterPath }}\"
---
apiVersion: v1
kind: Namespace
metadata: {name: base}
";

/// Checks that a workspace has what [`FACTS`] makes of it.
pub(crate) async fn has_facts(world: &World, inside: &Objects, name: &str) {
    let facts = arrives(inside, "v1", "configmaps", "base", "facts").await;
    let shown = world.shown(name).await;
    assert_eq!(
        facts["data"],
        json!({"id": shown["spec"]["cluster"], "path": world.path_of(name)})
    );
}

pub(crate) async fn a_workspace_waits_until_an_agent_starts(which: Which) {
    let world = World::of(which).await;
    world.serve("dev", FACTS).await;
    world.workspace("w", "dev").await;
    world.waits("w").await;
    world.keeps_waiting("w").await;
    let initializers = world.shown("w").await["status"]["initializers"].clone();
    assert_eq!(initializers, json!([world.initializer("dev").await]));
    let mut agent = world.agent(&[]);
    let inside = world.ready("w").await;
    has_facts(&world, &inside, "w").await;
    agent.ends_well().await;
}

pub(crate) async fn a_new_workspace_gets_objects_that_name_its_id_and_its_path(which: Which) {
    let world = World::of(which).await;
    world.serve("dev", FACTS).await;
    let _agent = world.agent(&[]);
    for name in ["one", "two"] {
        world.workspace(name, "dev").await;
        let inside = world.ready(name).await;
        has_facts(&world, &inside, name).await;
    }
}

pub(crate) async fn a_namespace_is_made_before_what_is_in_it(which: Which) {
    let world = World::of(which).await;
    let role =
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r, namespace: late}\nrules: []\n";
    let late = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: late}\n";
    world.serve("dev", &format!("{role}---\n{FACTS}{late}")).await;
    let _agent = world.agent(&[]);
    world.workspace("w", "dev").await;
    let inside = world.ready("w").await;
    has_facts(&world, &inside, "w").await;
    arrives(&inside, "rbac.authorization.k8s.io/v1", "roles", "late", "r").await;
}

pub(crate) async fn values_arrive_as_they_are(which: Which) {
    let world = World::of(which).await;
    let text = r#"apiVersion: v1
kind: Namespace
metadata: {name: base}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: all, namespace: base}
data:
  plain: {{ "a \"b\" 'c' & <d> + e" | quote }}
  json: {{ dict "k" "<&>+" | toJson | squote }}
  path: {{ .ClusterPath | quote }}
  formatted: {{ printf "%q" "x<y" }}
  base64: {{ ">>>???" | b64enc | quote }}
  markup: "<b>{{ "1 < 2" }}</b><!-- kept -->"
"#;
    world.serve("dev", text).await;
    let _agent = world.agent(&[]);
    world.workspace("w", "dev").await;
    let inside = world.ready("w").await;
    let all = arrives(&inside, "v1", "configmaps", "base", "all").await;
    let data = &all["data"];
    assert_eq!(data["plain"], "a \"b\" 'c' & <d> + e");
    assert_eq!(data["path"], world.path_of("w"));
    assert_eq!(
        (&data["formatted"], &data["base64"]),
        (&json!("x<y"), &json!("Pj4+Pz8/"))
    );
    assert_eq!(data["markup"], "<b>1 < 2</b><!-- kept -->");
    let inner = data["json"].as_str().expect("it is text");
    let inner: Value = serde_json::from_str(inner).expect("it is JSON");
    assert_eq!(inner, json!({"k": "<&>+"}));
}

/// A CRD and an object of it, the object first; the group is one that nobody else has.
pub(crate) fn widgets(group: &str, annotations: &str) -> String {
    format!(
        "apiVersion: {group}/v1
kind: Widget
metadata: {{name: first{annotations}}}
spec: {{size: 1}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: widgets.{group}}}
spec:
  group: {group}
  scope: Cluster
  names: {{plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {{status: {{}}}}
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"
    )
}

pub(crate) async fn a_definition_and_its_object_may_be_in_one_template(which: Which) {
    let world = World::of(which).await;
    let group = format!("{}.example.com", world.suffix);
    world.serve("dev", &widgets(&group, "")).await;
    let _agent = world.agent(&[]);
    world.workspace("w", "dev").await;
    let inside = world.ready("w").await;
    let first = arrives(&inside, &format!("{group}/v1"), "widgets", "", "first").await;
    assert_eq!(first["spec"]["size"], 1);
}

pub(crate) async fn a_kind_of_a_default_binding_is_waited_for(which: Which) {
    let world = World::of(which).await;
    let group = format!("{}.example.com", world.suffix);
    let schema = json!({"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIResourceSchema",
        "metadata": {"name": format!("v1.gauges.{group}")}, "spec": {"group": group, "scope": "Cluster",
        "names": {"kind": "Gauge", "listKind": "GaugeList", "plural": "gauges", "singular": "gauge"},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}]}});
    create(&world.types, &schema).await;
    let export = json!({"apiVersion": "apis.kcp.io/v1alpha1", "kind": "APIExport", "metadata": {"name": "gauges"},
        "spec": {"latestResourceSchemas": [format!("v1.gauges.{group}")]}});
    create(&world.types, &export).await;
    let binds = json!({"initializer": false, "defaultAPIBindings": [{"path": world.types_path, "export": "gauges"}]});
    let base = json!({"apiVersion": "tenancy.kcp.io/v1alpha1", "kind": "WorkspaceType", "metadata": {"name": "base"},
        "spec": binds});
    create(&world.types, &base).await;
    world
        .new_type(
            "dev",
            json!({"extend": {"with": [{"name": "base", "path": world.types_path}]}}),
        )
        .await;
    world
        .template(
            "gauge",
            &format!("apiVersion: {group}/v1\nkind: Gauge\nmetadata: {{name: g}}\n"),
        )
        .await;
    world.target("dev", "dev", &["gauge"]).await;
    let _agent = world.agent(&[]);
    world.workspace("w", "dev").await;
    let inside = world.ready("w").await;
    arrives(&inside, &format!("{group}/v1"), "gauges", "", "g").await;
}

pub(crate) async fn of_two_documents_for_one_object_the_first_stays(which: Which) {
    let world = World::of(which).await;
    let one = |v: u32| {
        format!(
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: twice, namespace: base}}\ndata: {{v: \"{v}\"}}\n"
        )
    };
    let space = "apiVersion: v1\nkind: Namespace\nmetadata: {name: base}\n";
    world.serve("dev", &format!("{space}{}{}", one(1), one(2))).await;
    // One that somebody has made before stays too.
    world.workspace("w", "dev").await;
    world.waits("w").await;
    let inside = world.inside("w").await;
    create(&inside, &crate::support::objects::namespace("base")).await;
    let before = config_map("base", "kept", json!({"v": "0"}));
    create(&inside, &before).await;
    world.template("more", &one(3).replace("twice", "kept")).await;
    let sources = crate::world::sources(&["dev", "more"]);
    let patch = json!({"spec": {"sources": sources}});
    world
        .conf
        .merge_patch(crate::world::INIT, "inittargets", "", "dev", &patch)
        .await;
    let _agent = world.agent(&[]);
    let inside = world.ready("w").await;
    for (name, v) in [("twice", "1"), ("kept", "0")] {
        let found = arrives(&inside, "v1", "configmaps", "base", name).await;
        assert_eq!(found["data"], json!({"v": v}), "{name}");
    }
    assert_eq!(updates(&world), Vec::<String>::new());
}

/// What the agent has changed in workspaces, but for taking its initializer off.
pub(crate) fn updates(world: &World) -> Vec<String> {
    let mut events = world.requests();
    events.retain(|event| event.is_write() && event.verb != "create");
    // Those of the config workspace are its own.
    let own = ["/logicalclusters/cluster/status", "/events", "/leases", "/inittargets/"];
    events.retain(|event| !own.iter().any(|part| event.uri.contains(part)));
    events
        .into_iter()
        .map(|event| format!("{} {}", event.verb, event.uri))
        .collect()
}

pub(crate) async fn a_target_without_sources_and_a_template_without_objects_let_a_workspace_go(which: Which) {
    let world = World::of(which).await;
    world.new_type("none", Value::Null).await;
    world.target("none", "none", &[]).await;
    let _agent = world.agent(&[]);
    world.workspace("a", "none").await;
    world.ready("a").await;
    let empty = "{{ if eq .ClusterPath \"nowhere\" }}\nkind: Secret\n{{ end }}\n---\n# nothing\n";
    world.template("empty", empty).await;
    let patch = json!({"spec": {"sources": crate::world::sources(&["empty"])}});
    world
        .conf
        .merge_patch(crate::world::INIT, "inittargets", "", "none", &patch)
        .await;
    world.workspace("b", "none").await;
    world.ready("b").await;
}

pub(crate) async fn an_object_without_a_namespace_is_in_default_where_that_exists(which: Which) {
    let world = World::of(which).await;
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: free}\ndata: {v: \"1\"}\n";
    world
        .new_type(
            "full",
            json!({"extend": {"with": [{"name": "universal", "path": "root"}]}}),
        )
        .await;
    world.template("full", text).await;
    world.target("full", "full", &["full"]).await;
    world.serve("bare", text).await;
    let mut agent = world.agent(&[]);
    world.workspace("has", "full").await;
    let inside = world.ready("has").await;
    arrives(&inside, "v1", "configmaps", "default", "free").await;
    world.workspace("lacks", "bare").await;
    agent.says(&["bare", "default"]).await;
    world.keeps_waiting("lacks").await;
    let inside = world.inside("lacks").await;
    create(&inside, &crate::support::objects::namespace("default")).await;
    world.ready("lacks").await;
}

pub(crate) async fn a_list_is_unpacked(which: Which) {
    let world = World::of(which).await;
    let text = "apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {generateName: some-, namespace: base}
  data: {v: \"{{ 0755 }}\"}
- apiVersion: v1
  kind: Namespace
  metadata: {name: base}
";
    world.serve("dev", text).await;
    let _agent = world.agent(&[]);
    world.workspace("w", "dev").await;
    let inside = world.ready("w").await;
    // A run that has to be done again makes another one.
    eventually("what it lists is there", SOON, async || {
        let found = inside.try_list("v1", "configmaps", "base", "").await;
        let found = found.map_err(|error| error.to_string())?;
        let named = |name: &Value| name.as_str().is_some_and(|name| name.starts_with("some-"));
        let found = found.iter().filter(|object| named(&object["metadata"]["name"])).count();
        (found >= 1).then_some(()).ok_or("none is there".to_owned())
    })
    .await;
    let at = ["v1", "namespaces", "", "base"];
    becomes(&inside, at, "is there", |_| true).await;
}
