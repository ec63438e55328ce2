//! Names of types and objects as the Kubernetes API addresses them.

use std::fmt;
use std::fmt::Write as _;
use std::rc::Rc;

/// A resource type at one version, as discovery gives it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceType {
    /// API group; empty for the core group.
    pub group: String,
    /// Version within the group, `v1`.
    pub version: String,
    /// Lowercase plural, `configmaps`.
    pub resource: String,
    /// Kind, `ConfigMap`.
    pub kind: String,
    /// True if objects live in namespaces.
    pub namespaced: bool,
}

impl ResourceType {
    /// The type of namespaces.
    pub fn namespaces() -> Self {
        Self {
            group: String::new(),
            version: "v1".into(),
            resource: "namespaces".into(),
            kind: "Namespace".into(),
            namespaced: false,
        }
    }

    /// The type of CRDs.
    pub fn definitions() -> Self {
        Self {
            group: "apiextensions.k8s.io".into(),
            version: "v1".into(),
            resource: "customresourcedefinitions".into(),
            kind: "CustomResourceDefinition".into(),
            namespaced: false,
        }
    }

    /// `ConfigMap`s, which every API server has.
    pub fn config_maps() -> Self {
        Self {
            group: String::new(),
            version: "v1".into(),
            resource: "configmaps".into(),
            kind: "ConfigMap".into(),
            namespaced: true,
        }
    }

    /// `group/version` as it stands in `apiVersion`; the core group gives the version alone.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// `resource.group`, the way people and CRDs name a type; a core type is its plural alone.
    pub fn qualified(&self) -> String {
        qualified(&self.group, &self.resource)
    }

    /// True for this group and plural at any version.
    pub fn is(&self, group: &str, resource: &str) -> bool {
        self.group == group && self.resource == resource
    }

    /// The path of the collection, of one namespace of it, or of one object. An empty namespace means all of them.
    pub fn path(&self, namespace: &str, name: &str) -> String {
        let mut path = group_version_path(&self.group, &self.version);
        if self.namespaced && !namespace.is_empty() {
            push(&mut path, "namespaces");
            push(&mut path, namespace);
        }
        push(&mut path, &self.resource);
        if !name.is_empty() {
            push(&mut path, name);
        }
        path
    }
}

/// The path under which a group version is served and discovered.
pub(super) fn group_version_path(group: &str, version: &str) -> String {
    let mut path = String::new();
    if group.is_empty() {
        push(&mut path, "api");
    } else {
        push(&mut path, "apis");
        push(&mut path, group);
    }
    push(&mut path, version);
    path
}

/// `resource.group`, or the plural alone for the core group.
pub fn qualified(group: &str, resource: &str) -> String {
    if group.is_empty() {
        resource.to_owned()
    } else {
        format!("{resource}.{group}")
    }
}

/// Adds one path segment. Names come from configs, so whatever is no plain name character is percent-encoded.
fn push(path: &mut String, segment: &str) {
    path.push('/');
    encode(path, segment);
}

/// Percent-encodes everything but RFC 3986 unreserved characters and `:` (common in RBAC names, legal in a path).
pub(super) fn encode(out: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b':') {
            out.push(byte as char);
        } else {
            write!(out, "%{byte:02X}").expect("writing to a String cannot fail");
        }
    }
}

/// Namespace (empty for a cluster-scoped object) and name: what identifies an object within its type.
///
/// Kept per object for as long as the process runs, so the namespace is shared between them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    /// The namespace, or empty.
    pub namespace: Rc<str>,
    /// The name.
    pub name: Box<str>,
}

impl ObjectName {
    /// A name from its parts.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// `Kind/namespace/name`: the form of every log line and, exactly so, of the ownership annotation (spec 3.3).
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl fmt::Display + 'a {
        struct OfKind<'a>(&'a ObjectName, &'a str);
        impl fmt::Display for OfKind<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}/{}/{}", self.1, self.0.namespace, self.0.name)
            }
        }
        OfKind(self, kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(group: &str, resource: &str, namespaced: bool) -> ResourceType {
        ResourceType {
            group: group.into(),
            version: "v1".into(),
            resource: resource.into(),
            kind: "Kind".into(),
            namespaced,
        }
    }

    #[test]
    fn builds_paths_as_the_api_server_expects_them() {
        for (group, plural, namespaced, namespace, name, path) in [
            (
                "",
                "configmaps",
                true,
                "shop",
                "prices",
                "/api/v1/namespaces/shop/configmaps/prices",
            ),
            ("", "configmaps", true, "", "", "/api/v1/configmaps"),
            (
                "apps",
                "deployments",
                true,
                "shop",
                "",
                "/apis/apps/v1/namespaces/shop/deployments",
            ),
            ("", "namespaces", false, "", "shop", "/api/v1/namespaces/shop"),
            (
                "rbac.authorization.k8s.io",
                "clusterroles",
                false,
                "",
                "system:node",
                "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node",
            ),
            (
                "",
                "configmaps",
                true,
                "a/../b",
                "x?y",
                "/api/v1/namespaces/a%2F..%2Fb/configmaps/x%3Fy",
            ),
        ] {
            assert_eq!(resource(group, plural, namespaced).path(namespace, name), path);
        }
    }

    #[test]
    fn names_objects_as_the_ownership_annotation_does() {
        assert_eq!(
            ObjectName::new("shop", "prices").of_kind("ConfigMap").to_string(),
            "ConfigMap/shop/prices"
        );
        assert_eq!(
            ObjectName::new("", "reader").of_kind("ClusterRole").to_string(),
            "ClusterRole//reader"
        );
    }
}
