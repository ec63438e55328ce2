//! `manifests/init` and the tables of the role `init`, against what docs/init.md and the code say.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::pages::{Names, Page, plain, read, root, same, spans};
use crate::support::kubectl;
use crate::support::manifests::documents;

/// What `kubectl kustomize` makes of a folder of `manifests/init`.
fn made_of(folder: &str) -> Vec<Value> {
    let folder = root().join("manifests/init").join(folder);
    let output = Command::new(kubectl()).arg("kustomize").arg(&folder).output();
    let output = output.expect("kubectl can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    documents(&String::from_utf8(output.stdout).expect("kubectl prints UTF-8"))
}

fn of_kind<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let found: Vec<&Value> = objects.iter().filter(|object| object["kind"] == kind).collect();
    assert!(!found.is_empty(), "there is no {kind}");
    found
}

#[test]
fn the_types_of_init_are_those_of_the_go_agent() {
    let objects = made_of("config");
    let crds = of_kind(&objects, "CustomResourceDefinition");
    let of = |plural: &str, fields: &[&str]| {
        let name = json!(format!("{plural}.initialization.kcp.io"));
        let crd = crds.iter().find(|crd| crd["metadata"]["name"] == name);
        let spec = &crd.unwrap_or_else(|| panic!("there is no {name}"))["spec"];
        assert_eq!(
            (&spec["group"], &spec["scope"]),
            (&json!("initialization.kcp.io"), &json!("Cluster"))
        );
        assert_eq!(spec["versions"].as_array().map(Vec::len), Some(1), "{name}");
        let version = &spec["versions"][0];
        assert_eq!(version["name"], "v1alpha1");
        // Beside what the Go agent's have, targets have a status.
        let has_status = (plural == "inittargets").then(|| json!({"status": {}}));
        assert_eq!(version["subresources"], json!(has_status), "{name}");
        let schema = &version["schema"]["openAPIV3Schema"];
        assert_eq!(schema["required"], json!(["spec"]));
        assert_eq!(schema["properties"]["spec"]["required"], json!(fields));
        (version.clone(), schema["properties"]["spec"]["properties"].clone())
    };
    let (version, fields) = of("inittargets", &["workspaceTypeRef", "sources"]);
    assert_eq!(fields["workspaceTypeRef"]["required"], json!(["path", "name"]));
    assert_eq!(fields["sources"]["items"]["required"], Value::Null);
    assert_eq!(
        fields["sources"]["items"]["properties"]["template"]["required"],
        json!(["name"])
    );
    let columns: Vec<&Value> = version["additionalPrinterColumns"]
        .as_array()
        .expect("it has columns")
        .iter()
        .filter(|column| column["priority"] != 1)
        .map(|column| &column["name"])
        .collect();
    assert_eq!(columns, ["WSType Cluster", "WSType", "Age"]);
    let (_, fields) = of("inittemplates", &["template"]);
    assert_eq!(fields["template"]["type"], "string");
}

#[test]
fn the_roles_of_init_are_what_the_agent_needs_and_no_more() {
    let access = json!({"nonResourceURLs": ["/"], "verbs": ["access"]});
    let config = made_of("config");
    assert_eq!(
        of_kind(&config, "ClusterRole")[0]["rules"],
        json!([
            access,
            {"apiGroups": ["initialization.kcp.io"], "resources": ["inittargets", "inittemplates"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["initialization.kcp.io"], "resources": ["inittargets/status"], "verbs": ["patch"]},
            {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
        ])
    );
    assert_eq!(
        of_kind(&config, "Role")[0]["rules"],
        json!([{
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"],
        }])
    );
    let types = made_of("type");
    assert_eq!(
        of_kind(&types, "ClusterRole")[0]["rules"],
        json!([
            access,
            {"apiGroups": ["tenancy.kcp.io"], "resources": ["workspacetypes"], "verbs": ["get", "list", "watch", "initialize"]},
        ])
    );
    // Both may be applied in one workspace, for the same account.
    let account = of_kind(&config, "ServiceAccount")[0];
    for objects in [&config, &types] {
        for binding in of_kind(objects, "ClusterRoleBinding") {
            assert_eq!(binding["subjects"][0]["name"], account["metadata"]["name"]);
            assert_eq!(binding["subjects"][0]["namespace"], account["metadata"]["namespace"]);
        }
    }
    assert_ne!(
        of_kind(&config, "ClusterRole")[0]["metadata"]["name"],
        of_kind(&types, "ClusterRole")[0]["metadata"]["name"]
    );
}

#[test]
fn the_agents_of_the_manifest_are_two_that_may_write_nothing() {
    let objects = made_of("host");
    let spec = &of_kind(&objects, "Deployment")[0]["spec"];
    assert_eq!(spec["replicas"], 2);
    let pod = &spec["template"]["spec"];
    assert_eq!(
        (
            &pod["securityContext"]["runAsNonRoot"],
            &pod["securityContext"]["runAsUser"]
        ),
        (&json!(true), &json!(65532))
    );
    let container = &pod["containers"][0];
    assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
    // The image's entry point is called init-agent.
    assert_eq!(container["command"], Value::Null);
    let args = container["args"].to_string();
    for flag in [
        "--enable-leader-election=true",
        "--leader-election-namespace=kcp-init-agent",
        "--kubeconfig=/etc/init-agent/kcp/kubeconfig",
        "--health-address=:8086",
        "--metrics-address=:8085",
    ] {
        assert!(args.contains(flag), "{flag}: {args}");
    }
    assert_eq!(container["volumeMounts"][0]["mountPath"], "/etc/init-agent/kcp");
    for port in container["ports"].as_array().expect("it has ports") {
        assert!(args.contains(&format!(":{}\"", port["containerPort"])), "{port}");
    }
    let accounts = made_of("config");
    let namespace = &of_kind(&accounts, "Role")[0]["metadata"]["namespace"];
    assert_eq!(namespace, "kcp-init-agent");
}

#[test]
fn the_example_of_init_allows_what_its_template_needs() {
    let objects = made_of("example");
    let spec = &of_kind(&objects, "WorkspaceType")[0]["spec"];
    assert_eq!(spec["initializer"], true);
    let rules = &spec["initializerPermissions"];
    assert_eq!(
        rules[0],
        json!({"nonResourceURLs": ["/api", "/api/*", "/apis", "/apis/*"], "verbs": ["get"]})
    );
    assert_eq!(
        rules[1],
        json!({"apiGroups": [""], "resources": ["namespaces", "configmaps"], "verbs": ["create"]})
    );
}

#[test]
fn the_page_names_each_folder_of_manifests_and_the_metrics_are_those_of_the_code() {
    let page = Page::open("docs/init.md");
    for folder in ["config", "type", "host", "example"] {
        assert!(Path::new(&root().join("manifests/init").join(folder)).is_dir());
        assert!(page.text.contains(&format!("manifests/init/{folder}")), "{folder}");
    }
    let code = read("crates/init/src/agent/metrics.rs");
    let in_code: Names = code
        .split("page.begin(")
        .skip(1)
        .map(|rest| {
            let words: Vec<&str> = rest.split('"').collect();
            format!("edge_syncer_init_{} {}", words[1], words[3])
        })
        .collect();
    let rows = Page::open("docs/reference/metrics-init.md").rows("metric");
    let in_page: Names = rows
        .iter()
        .map(|row| format!("{} {}", plain(&row.cells[0]), row.cells[1]))
        .collect();
    same("metrics of init", &in_page, &in_code);
    for row in rows {
        assert!(matches!(spans(&row.cells[2])[..], [] | ["target"]), "{:?}", row.cells);
    }
}
