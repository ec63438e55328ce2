//! What a workspace serves, and its discovery.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::request::{Answer, not_served};

/// A type that is served.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    pub(crate) group: String,
    pub(crate) versions: Vec<String>,
    pub(crate) resource: String,
    pub(crate) name: String,
    pub(crate) namespaced: bool,
    /// Its status is a subresource.
    pub(crate) has_status: bool,
    /// The fields of a status that are kept, if not all are.
    pub(crate) status_fields: Option<Vec<String>>,
    /// Since when discovery lists it; and since when requests are answered, which is a little later.
    pub(crate) listed: Option<Instant>,
    pub(crate) served: Option<Instant>,
}

impl Kind {
    /// A type that a definition makes.
    pub(crate) fn defined(spec: &Value, listed: Instant, served: Instant) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let versions = spec["versions"].as_array().into_iter().flatten();
        Self {
            group: text(&spec["group"]),
            versions: versions.map(|version| text(&version["name"])).collect(),
            resource: text(&spec["names"]["plural"]),
            name: text(&spec["names"]["kind"]),
            namespaced: spec["scope"] == "Namespaced",
            has_status: has_status(spec),
            status_fields: status_fields(&spec["versions"][0]["schema"]),
            listed: Some(listed),
            served: Some(served),
        }
    }

    fn is_listed(&self) -> bool {
        self.listed.is_none_or(|since| since <= Instant::now())
    }

    pub(crate) fn is_served(&self) -> bool {
        self.served.is_none_or(|since| since <= Instant::now())
    }
}

/// Whether a definition says that objects have a status of its own.
pub(crate) fn has_status(spec: &Value) -> bool {
    let mut versions = spec["versions"].as_array().into_iter().flatten();
    versions.any(|version| version["subresources"]["status"].is_object())
}

/// The fields of a status that a schema names. `None` if it keeps others too.
fn status_fields(schema: &Value) -> Option<Vec<String>> {
    let schema = schema.get("openAPIV3Schema").unwrap_or(schema);
    let status = &schema["properties"]["status"];
    if status["x-kubernetes-preserve-unknown-fields"] == true {
        return None;
    }
    let fields = status["properties"].as_object()?;
    Some(fields.keys().cloned().collect())
}

const KCP: [&str; 2] = ["v1alpha1", "v1alpha2"];

/// Those of every workspace.
const ALWAYS: [(&str, &[&str], &str, &str, bool); 20] = [
    ("", &["v1"], "namespaces", "Namespace", false),
    ("", &["v1"], "configmaps", "ConfigMap", true),
    ("", &["v1"], "secrets", "Secret", true),
    ("", &["v1"], "serviceaccounts", "ServiceAccount", true),
    ("", &["v1"], "events", "Event", true),
    ("events.k8s.io", &["v1"], "events", "Event", true),
    ("coordination.k8s.io", &["v1"], "leases", "Lease", true),
    (
        "rbac.authorization.k8s.io",
        &["v1"],
        "clusterroles",
        "ClusterRole",
        false,
    ),
    (
        "rbac.authorization.k8s.io",
        &["v1"],
        "clusterrolebindings",
        "ClusterRoleBinding",
        false,
    ),
    ("rbac.authorization.k8s.io", &["v1"], "roles", "Role", true),
    (
        "rbac.authorization.k8s.io",
        &["v1"],
        "rolebindings",
        "RoleBinding",
        true,
    ),
    (
        "apiextensions.k8s.io",
        &["v1"],
        "customresourcedefinitions",
        "CustomResourceDefinition",
        false,
    ),
    (
        "authorization.k8s.io",
        &["v1"],
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
        false,
    ),
    ("apis.kcp.io", &KCP, "apiexports", "APIExport", false),
    ("apis.kcp.io", &KCP, "apibindings", "APIBinding", false),
    (
        "apis.kcp.io",
        &["v1alpha1"],
        "apiexportendpointslices",
        "APIExportEndpointSlice",
        false,
    ),
    (
        "apis.kcp.io",
        &["v1alpha1"],
        "apiresourceschemas",
        "APIResourceSchema",
        false,
    ),
    ("tenancy.kcp.io", &["v1alpha1"], "workspaces", "Workspace", false),
    (
        "tenancy.kcp.io",
        &["v1alpha1"],
        "workspacetypes",
        "WorkspaceType",
        false,
    ),
    ("core.kcp.io", &["v1alpha1"], "logicalclusters", "LogicalCluster", false),
];

/// Those of every workspace.
pub(crate) fn always() -> Vec<Kind> {
    let kinds = ALWAYS.iter().map(|(group, versions, resource, kind, namespaced)| Kind {
        group: (*group).to_owned(),
        versions: versions.iter().map(|&version| version.to_owned()).collect(),
        resource: (*resource).to_owned(),
        name: (*kind).to_owned(),
        namespaced: *namespaced,
        has_status: group.ends_with(".kcp.io"),
        status_fields: None,
        listed: None,
        served: None,
    });
    kinds.collect()
}

const VERBS: [&str; 8] = [
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// How the content type of the aggregated form is.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn entries(kind: &Kind) -> Vec<Value> {
    let entry = json!({"name": kind.resource, "singularName": kind.name.to_lowercase(), "namespaced": kind.namespaced,
        "kind": kind.name, "verbs": VERBS});
    let mut status = entry.clone();
    status["name"] = json!(format!("{}/status", kind.resource));
    status["verbs"] = json!(["get", "patch", "update"]);
    if kind.has_status {
        vec![entry, status]
    } else {
        vec![entry]
    }
}

fn aggregated_entry(kind: &Kind, version: &str) -> Value {
    let subresources = if kind.has_status {
        json!([{"subresource": "status", "verbs": ["get", "patch", "update"]}])
    } else {
        json!([])
    };
    json!({"subresources": subresources, "resource": kind.resource, "singularResource": kind.name.to_lowercase(), "verbs": VERBS,
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "responseKind": {"group": kind.group, "version": version, "kind": kind.name}})
}

/// The groups with their versions, in order.
fn groups(kinds: &[&Kind]) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for kind in kinds {
        let at = groups.iter().position(|(group, _)| *group == kind.group);
        let at = at.unwrap_or_else(|| {
            groups.push((kind.group.clone(), Vec::new()));
            groups.len() - 1
        });
        for version in &kind.versions {
            if !groups[at].1.contains(version) {
                groups[at].1.push(version.clone());
            }
        }
    }
    groups
}

fn aggregated(kinds: &[&Kind], core: bool) -> Answer {
    let groups = groups(kinds).into_iter().filter(|(group, _)| group.is_empty() == core);
    let items = groups.map(|(group, versions)| {
        let versions = versions.iter().map(|version| {
            let of_version = kinds
                .iter()
                .filter(|kind| kind.group == group && kind.versions.contains(version));
            let resources: Vec<Value> = of_version.map(|kind| aggregated_entry(kind, version)).collect();
            json!({"version": version, "resources": resources, "freshness": "Current"})
        });
        json!({"metadata": {"name": if core { Value::Null } else { json!(group) }, "creationTimestamp": null},
            "versions": versions.collect::<Vec<_>>()})
    });
    let list = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
        "items": items.collect::<Vec<_>>()});
    Answer::Typed(AGGREGATED, list)
}

fn group_of((group, versions): &(String, Vec<String>)) -> Value {
    let versions = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}));
    let versions: Vec<Value> = versions.collect();
    json!({"name": group, "versions": versions, "preferredVersion": versions[0]})
}

/// Answers what discovery asks; `None` for any other path.
pub(crate) fn discovery(kinds: &[&Kind], path: &str, accept: &str, aggregates: &[&str]) -> Option<Answer> {
    let kinds: Vec<&Kind> = kinds.iter().copied().filter(|kind| kind.is_listed()).collect();
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let wants = accept.contains("apidiscovery.k8s.io") && parts.first().is_some_and(|part| aggregates.contains(part));
    // Of a group or a version that is not there, kcp says that it has no types.
    let resources = |group: &str, version: &str| {
        let of_version = kinds
            .iter()
            .filter(|kind| kind.group == group && kind.versions.iter().any(|one| one == version));
        let found: Vec<Value> = of_version.flat_map(|kind| entries(kind)).collect();
        let version = if group.is_empty() {
            version.to_owned()
        } else {
            format!("{group}/{version}")
        };
        Answer::Json(
            200,
            json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": found}),
        )
    };
    Some(match parts[..] {
        ["api" | "apis"] if wants => aggregated(&kinds, parts[0] == "api"),
        ["api"] => Answer::Json(
            200,
            json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        ),
        ["apis"] => {
            let groups = groups(&kinds);
            let groups = groups.iter().filter(|(group, _)| !group.is_empty());
            let groups: Vec<Value> = groups.map(group_of).collect();
            Answer::Json(
                200,
                json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}),
            )
        }
        ["apis", group] => match groups(&kinds).iter().find(|(name, _)| name == group) {
            None => not_served(),
            Some(found) => {
                let mut group = group_of(found);
                group["kind"] = json!("APIGroup");
                group["apiVersion"] = json!("v1");
                Answer::Json(200, group)
            }
        },
        ["api", version] => resources("", version),
        ["apis", group, version] => resources(group, version),
        ["version"] => Answer::Json(
            200,
            json!({"major": "1", "minor": "36", "gitVersion": "v1.36.0+kcp-simulated"}),
        ),
        _ => return None,
    })
}
