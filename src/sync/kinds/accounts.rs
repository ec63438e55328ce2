//! `secrets` of a `ServiceAccount`: what people have listed, and what controllers have.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::hub::{Hub, Owner};

/// Leaves out what controllers of the hub make and list. To an API server the list is a map by name: an apply merges it
/// with what the copy's side has in it, and takes each name once.
pub(super) fn secrets(secrets: &mut Value, hub: &Hub<'_>) {
    let Value::Array(items) = secrets else { return };
    let mut names = BTreeSet::new();
    items.retain(|item| {
        let name = item["name"].as_str().filter(|name| !name.is_empty());
        name.is_some_and(|name| names.insert(name.to_owned()) && !is_generated(name, hub))
    });
    for item in items.iter_mut().filter_map(Value::as_object_mut) {
        item.retain(|key, _| !matches!(key.as_str(), "uid" | "resourceVersion"));
    }
    if items.is_empty() {
        *secrets = Value::Null;
    }
}

/// Whether a controller has made a secret of an account: a token, before Kubernetes 1.24, or `OpenShift`'s credentials
/// for a registry. So says who has listed it, or else its name: not every such controller is known.
fn is_generated(secret: &str, hub: &Hub<'_>) -> bool {
    // As API servers generate names: at most so much, and a suffix.
    const MOST: usize = 58;
    const SUFFIX: usize = 5;
    let item = format!("k:{}", json!({"name": secret}));
    let owners = hub.owners().iter();
    let listed_by: Vec<&Owner> = owners.filter(|one| one.owns(&["f:secrets", &item])).collect();
    if listed_by.iter().any(|one| one.is_person()) {
        return false;
    }
    let account = &hub.object.meta.name;
    let token = format!("{account}-token-");
    let token = secret.strip_prefix(token.get(..MOST).unwrap_or(&token));
    let is_suffix = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    !listed_by.is_empty() && listed_by.iter().all(|one| one.is_controller())
        || token.is_some_and(|suffix| suffix.len() == SUFFIX && suffix.bytes().all(is_suffix))
        || secret.starts_with(&format!("{account}-dockercfg-"))
}
