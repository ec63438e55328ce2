//! What objects look like: their paths in the API, and builders for those that many tests need.

use serde_json::{Value, json};

use super::kubeconfig::base64;

/// The path of an object, or of a collection when `name` is empty; `kind` is the plural or the kind.
pub fn path(api_version: &str, kind: &str, namespace: &str, name: &str) -> String {
    let root = if api_version.contains('/') { "/apis" } else { "/api" };
    let namespaces = if namespace.is_empty() {
        String::new()
    } else {
        format!("/namespaces/{namespace}")
    };
    let name = if name.is_empty() {
        String::new()
    } else {
        format!("/{name}")
    };
    format!("{root}/{api_version}{namespaces}/{}{name}", plural(kind))
}

/// The plural of a kind, by the rules that nearly all types follow; a plural is returned as it is.
pub fn plural(kind: &str) -> String {
    if !kind.starts_with(char::is_uppercase) {
        return kind.to_owned();
    }
    let singular = kind.to_lowercase();
    if singular == "endpoints" {
        return singular;
    }
    match singular.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if singular.ends_with(['s', 'x']) || singular.ends_with("ch") => format!("{singular}es"),
        _ => format!("{singular}s"),
    }
}

/// A Namespace.
pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// A Secret with one value, `v`.
pub fn secret(namespace: &str, name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"namespace": namespace, "name": name},
        "data": {"v": base64(value)},
    })
}

/// A `ConfigMap`; `data` is a JSON object of strings.
#[expect(clippy::needless_pass_by_value, reason = "callers write json!({...}) in place")]
pub fn config_map(namespace: &str, name: &str, data: Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": namespace, "name": name},
        "data": data,
    })
}

/// A `SyncerConfig`.
#[expect(clippy::needless_pass_by_value, reason = "callers write json!({...}) in place")]
pub fn syncer_config(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "edge.kubestellar.io/v2alpha1",
        "kind": "SyncerConfig",
        "metadata": {"name": name},
        "spec": spec,
    })
}

/// An `EdgeSyncConfig`.
#[expect(clippy::needless_pass_by_value, reason = "callers write json!({...}) in place")]
pub fn edge_sync_config(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "edge.kubestellar.io/v2alpha1",
        "kind": "EdgeSyncConfig",
        "metadata": {"name": name},
        "spec": spec,
    })
}
