//! Names of types and objects as the Kubernetes API addresses them.

use std::fmt;
use std::fmt::Write as _;
use std::rc::Rc;

use super::Error;

/// The longest name that API servers allow for anything.
const LONGEST_NAME: usize = 253;

/// True for what can be one part of a path as it is: the rule of API servers for the names of all objects
/// (apimachinery, `IsValidPathSegmentName`), and their longest names. Also holds for groups, versions, plurals.
///
/// Another name is a mistake or an attack, and could turn a request into one for something else: `a:80/proxy/admin` is
/// a path behind a pod.
pub fn is_path_segment(name: &str) -> bool {
    !name.is_empty() && name.len() <= LONGEST_NAME && !matches!(name, "." | "..") && !name.contains(['/', '%'])
}

/// True for what can be a group, a version, a plural or a UID: one part of a path, and one word of a line.
pub fn is_word(text: &str) -> bool {
    is_path_segment(text) && !text.contains(|c: char| c.is_whitespace() || c.is_control())
}

/// True for a UID as API servers give them: a UUID, as the Kubernetes docs on names say.
pub fn is_uid(text: &str) -> bool {
    let hyphens = [8, 13, 18, 23];
    let fits = |(at, c): (usize, char)| {
        if hyphens.contains(&at) {
            c == '-'
        } else {
            c.is_ascii_hexdigit()
        }
    };
    text.len() == 36 && text.chars().enumerate().all(fits)
}

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
    /// One from its group, version, plural and kind.
    pub fn new([group, version, resource, kind]: [&str; 4], namespaced: bool) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            resource: resource.into(),
            kind: kind.into(),
            namespaced,
        }
    }

    /// The type of namespaces.
    pub fn namespaces() -> Self {
        Self::new(["", "v1", "namespaces", "Namespace"], false)
    }

    /// The type of CRDs.
    pub fn definitions() -> Self {
        let names = [
            "apiextensions.k8s.io",
            "v1",
            "customresourcedefinitions",
            "CustomResourceDefinition",
        ];
        Self::new(names, false)
    }

    /// `ConfigMap`s, which every API server has.
    pub fn config_maps() -> Self {
        Self::new(["", "v1", "configmaps", "ConfigMap"], true)
    }

    /// `Secret`s.
    pub fn secrets() -> Self {
        Self::new(["", "v1", "secrets", "Secret"], true)
    }

    /// `ServiceAccount`s.
    pub fn service_accounts() -> Self {
        Self::new(["", "v1", "serviceaccounts", "ServiceAccount"], true)
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

    /// True for this group and plural, and for the type of a server that is the same under another name ([`twin`]).
    pub fn stands_for(&self, group: &str, resource: &str) -> bool {
        twin(&self.group, &self.resource) == (group, resource)
    }

    /// True for types of the API server itself; some of its own are in groups with a dot too.
    pub fn is_built_in(&self) -> bool {
        !may_be_a_crd(&self.group)
    }

    /// The path of one object. An error if the name cannot be that of an object.
    pub(super) fn object_path(&self, at: &ObjectName) -> Result<String, Error> {
        let placed = !self.namespaced || is_path_segment(at.namespace());
        if !placed || !is_path_segment(&at.name) {
            return Err(Error::NotSent(format!("{at:?} is no name of an object")));
        }
        self.checked_path(at.namespace(), &at.name)
    }

    /// The path of the collection, or of one namespace of it. An empty namespace means all of them.
    pub(super) fn collection_path(&self, namespace: &str) -> Result<String, Error> {
        self.checked_path(namespace, "")
    }

    fn checked_path(&self, namespace: &str, name: &str) -> Result<String, Error> {
        let optional = [&self.group, namespace].into_iter().filter(|part| !part.is_empty());
        let mut parts = optional.chain([&*self.version, &*self.resource]);
        if let Some(bad) = parts.find(|part| !is_word(part)) {
            return Err(Error::NotSent(format!("{bad:?} is no part of a path")));
        }
        Ok(self.path(namespace, name))
    }

    /// The path of the collection, of one namespace of it, or of one object. An empty namespace means all of them.
    fn path(&self, namespace: &str, name: &str) -> String {
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
pub fn group_version_path(group: &str, version: &str) -> String {
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

/// True if a CRD may define types of this group: its validation asks for a dot (Kubernetes API convention).
pub fn may_be_a_crd(group: &str) -> bool {
    group.contains('.')
}

/// API groups that every API server has built in. Their objects have a status only where discovery names `/status`.
const BUILT_IN: [&str; 21] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// True for an API group that every API server has built in, also one with a dot.
pub fn is_of_kubernetes(group: &str) -> bool {
    BUILT_IN.contains(&group)
}

/// The namespaces that every API server creates by itself.
const OF_EVERY_CLUSTER: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// True for a namespace that every cluster has, and that no manifest may hold: `kubectl delete -f` would delete it.
pub fn is_of_every_cluster(namespace: &str) -> bool {
    OF_EVERY_CLUSTER.contains(&namespace)
}

/// Types that `OpenShift` serves a second time under groups of its own: group, plural and kind there, and what the
/// objects are.
const TWINS: [[(&str, &str, &str); 2]; 5] = {
    const OPENSHIFT: &str = "authorization.openshift.io";
    const RBAC: &str = "rbac.authorization.k8s.io";
    [
        [
            ("project.openshift.io", "projects", "Project"),
            ("", "namespaces", "Namespace"),
        ],
        [(OPENSHIFT, "roles", "Role"), (RBAC, "roles", "Role")],
        [
            (OPENSHIFT, "rolebindings", "RoleBinding"),
            (RBAC, "rolebindings", "RoleBinding"),
        ],
        [
            (OPENSHIFT, "clusterroles", "ClusterRole"),
            (RBAC, "clusterroles", "ClusterRole"),
        ],
        [
            (OPENSHIFT, "clusterrolebindings", "ClusterRoleBinding"),
            (RBAC, "clusterrolebindings", "ClusterRoleBinding"),
        ],
    ]
};

/// Group and name (plural or kind) of the type whose objects those of this type are. A type that is served once is its
/// own.
pub fn twin<'a>(group: &'a str, word: &'a str) -> (&'a str, &'a str) {
    let is_it = |(of, plural, kind): &(&str, &str, &str)| *of == group && (*plural == word || *kind == word);
    match TWINS.iter().find(|[seen, _]| is_it(seen)) {
        Some([(_, plural, _), (group, known, _)]) if *plural == word => (group, known),
        Some([_, (group, _, kind)]) => (group, kind),
        None => (group, word),
    }
}

/// `resource.group`, or the plural alone for the core group.
pub fn qualified(group: &str, resource: &str) -> String {
    if group.is_empty() {
        resource.to_owned()
    } else {
        format!("{resource}.{group}")
    }
}

/// Adds one path segment. Everything but plain name characters is percent-encoded.
fn push(path: &mut String, segment: &str) {
    path.push('/');
    encode(path, segment);
}

/// A resource version that no object has (that of the first write to an empty storage is 2), so that an apply creates the
/// object or is refused as a conflict.
pub const NOWHERE: &str = "1";

/// Percent-encodes everything but RFC 3986 unreserved characters and `:` (common in RBAC names, legal in a path).
pub fn encode(out: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~' | b':') {
            out.push(byte as char);
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
}

/// Where an object is within its side: its workspace, if the side has several (kcp's wildcard endpoints), and its
/// namespace. Either is empty if there is none.
#[derive(Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Within {
    workspace: Box<str>,
    namespace: Box<str>,
}

/// What identifies an object within its type at one side: workspace, namespace (empty for a cluster-scoped object) and name.
///
/// Kept per object for as long as the process runs, so what many have in common is shared between them.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectName {
    within: Rc<Within>,
    /// The name.
    pub name: Box<str>,
}

impl fmt::Debug for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [self.workspace(), self.namespace(), &self.name];
        for part in parts.into_iter().take(2).filter(|part| !part.is_empty()) {
            write!(f, "{}/", part.escape_debug())?;
        }
        write!(f, "{}", self.name.escape_debug())
    }
}

impl ObjectName {
    /// A name from its parts, at a side with one workspace.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self::in_workspace("", namespace, name)
    }

    /// The same in one of the workspaces of a side.
    pub fn in_workspace(workspace: &str, namespace: &str, name: &str) -> Self {
        let within = Within {
            workspace: workspace.into(),
            namespace: namespace.into(),
        };
        Self {
            within: Rc::new(within),
            name: name.into(),
        }
    }

    /// Another name in the same workspace and namespace.
    #[must_use]
    pub fn beside(&self, name: &str) -> Self {
        Self {
            within: Rc::clone(&self.within),
            name: name.into(),
        }
    }

    /// The namespace; empty for a cluster-scoped object.
    pub fn namespace(&self) -> &str {
        &self.within.namespace
    }

    /// The workspace; empty at a side that has one.
    pub fn workspace(&self) -> &str {
        &self.within.workspace
    }

    /// Workspace and namespace, which it shares with others.
    pub fn within(&self) -> &Rc<Within> {
        &self.within
    }

    /// The same name, which shares its workspace and namespace with others.
    #[must_use]
    pub fn sharing(&self, within: &Rc<Within>) -> Self {
        debug_assert_eq!(*within, self.within);
        Self {
            within: Rc::clone(within),
            name: self.name.clone(),
        }
    }

    /// `Kind/namespace/name`: the form in every log line and, exactly, in the ownership annotation.
    pub fn of_kind<'a>(&'a self, kind: &'a str) -> impl fmt::Display + 'a {
        struct OfKind<'a>(&'a ObjectName, &'a str);
        impl fmt::Display for OfKind<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}/{}/{}", self.1, self.0.namespace(), self.0.name)
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
                "a?b",
                "x y",
                "/api/v1/namespaces/a%3Fb/configmaps/x%20y",
            ),
        ] {
            let resource = resource(group, plural, namespaced);
            let built = match name {
                "" => resource.collection_path(namespace),
                name => resource.object_path(&ObjectName::new(namespace, name)),
            };
            assert_eq!(built.as_deref(), Ok(path));
        }
    }

    #[test]
    fn what_is_no_name_becomes_no_path() {
        let long = "x".repeat(LONGEST_NAME + 1);
        let bad = ["victim:7473/proxy/admin", "a%2Fb", "a/../b", ".", "..", "", &long];
        for name in bad {
            assert!(!is_path_segment(name), "{name}");
            let refused = |path: Result<String, Error>| assert!(matches!(path, Err(Error::NotSent(_))), "{path:?}");
            let pods = resource("", "pods", true);
            refused(pods.object_path(&ObjectName::new("shop", name)));
            refused(pods.object_path(&ObjectName::new(name, "a")));
            refused(resource("", "nodes", false).object_path(&ObjectName::new("", name)));
            refused(resource("apps", name, true).collection_path("shop"));
            if !name.is_empty() {
                refused(resource(name, "pods", true).collection_path("shop"));
                refused(pods.collection_path(name));
            }
        }
        let long = &long[1..];
        for name in ["system:node", "a.b", "...", "kube-root-ca.crt", "a b", long] {
            assert!(is_path_segment(name), "{name}");
            assert_eq!(is_word(name), name != "a b");
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
