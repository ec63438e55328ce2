//! What is never synced: the one table, for origins and for copies.
//!
//! An API server, and the controllers beside it, keep objects for themselves: their own address, the groups that they
//! serve, their roles, their nodes. Those of one cluster are wrong in another. An object is recognised by its type, name,
//! labels and annotations at the side where it is, wherever its name comes from: neither an origin of this kind nor
//! anything in its place at the other side is synced.

use std::collections::BTreeMap;

use kube_lite::{ResourceType, twin};

const RBAC: &str = "rbac.authorization.k8s.io";
const FLOWS: &str = "flowcontrol.apiserver.k8s.io";
const NETWORKING: &str = "networking.k8s.io";
const STORAGE: &str = "storage.k8s.io";
/// The Service by which pods reach their API server, in `default`, and all that belongs to it.
const API_SERVER: &str = "kubernetes";
const OF_SERVICE: &str = "kubernetes.io/service-name";
const AUTOMANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
const BOOTSTRAPPING: &str = "kubernetes.io/bootstrapping";
const AUTOUPDATE: &str = "apf.kubernetes.io/autoupdate-spec";
/// Types of Secrets that are credentials of one cluster.
const CREDENTIALS: [&str; 2] = ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"];
/// kcp has it on each of its objects.
const LOGICAL_CLUSTER: &str = "kcp.io/cluster";

/// What the table asks of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) labels: &'a BTreeMap<String, String>,
    pub(crate) annotations: &'a BTreeMap<String, String>,
    /// The `type` of a Secret; empty where it is not known.
    pub(crate) secret_type: &'a str,
}

impl Object<'_> {
    fn is(&self, namespace: &str, name: &str) -> bool {
        (self.namespace, self.name) == (namespace, name)
    }
}

/// The objects of a row.
#[derive(Clone, Copy)]
enum Which {
    /// All of the type.
    All,
    /// Those for which this is true.
    Those(fn(&Object<'_>) -> bool),
}

/// Whether people can have it synced nevertheless.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unless {
    /// They cannot.
    Never,
    /// With `--allow-system`, those that a config names one by one.
    Named,
}

struct Row {
    group: &'static str,
    resource: &'static str,
    kind: &'static str,
    which: Which,
    unless: Unless,
}

/// All objects of a type.
const fn all(unless: Unless, (group, resource, kind): (&'static str, &'static str, &'static str)) -> Row {
    Row {
        group,
        resource,
        kind,
        which: Which::All,
        unless,
    }
}

/// Some objects of a type.
const fn some(
    unless: Unless,
    (group, resource, kind): (&'static str, &'static str, &'static str),
    which: fn(&Object<'_>) -> bool,
) -> Row {
    Row {
        which: Which::Those(which),
        ..all(unless, (group, resource, kind))
    }
}

/// A copy of this table for people is in docs/reference/never-synced.md.
const TABLE: &[Row] = {
    use Unless::{Named, Never};
    &[
        // What the parts of one cluster tell each other.
        all(Never, ("", "events", "Event")),
        all(Never, ("events.k8s.io", "events", "Event")),
        all(Never, ("coordination.k8s.io", "leases", "Lease")),
        all(Never, ("coordination.k8s.io", "leasecandidates", "LeaseCandidate")),
        // What each cluster puts into every namespace, and credentials that are valid in one cluster alone.
        some(Never, ("", "configmaps", "ConfigMap"), |it| {
            matches!(it.name, "kube-root-ca.crt" | "openshift-service-ca.crt")
        }),
        some(Never, ("", "serviceaccounts", "ServiceAccount"), |it| {
            it.name == "default"
        }),
        some(Never, ("", "secrets", "Secret"), |it| {
            CREDENTIALS.contains(&it.secret_type)
        }),
        // Where the API server is, and how it is trusted.
        some(Named, ("", "services", "Service"), |it| it.is("default", API_SERVER)),
        some(Named, ("", "endpoints", "Endpoints"), |it| it.is("default", API_SERVER)),
        some(Named, ("discovery.k8s.io", "endpointslices", "EndpointSlice"), |it| {
            let of = it.labels.get(OF_SERVICE).map(String::as_str);
            it.is("default", API_SERVER) || it.namespace == "default" && of == Some(API_SERVER)
        }),
        some(Named, ("", "configmaps", "ConfigMap"), |it| {
            it.is("kube-system", "extension-apiserver-authentication")
                || it.is("kube-system", "kube-apiserver-legacy-service-account-token-tracking")
                || it.is("kube-public", "cluster-info")
        }),
        some(
            Named,
            ("certificates.k8s.io", "clustertrustbundles", "ClusterTrustBundle"),
            |it| it.name.starts_with("kubernetes.io:"),
        ),
        // What it serves, and at which versions it stores it.
        some(Named, ("apiregistration.k8s.io", "apiservices", "APIService"), |it| {
            it.labels.contains_key(AUTOMANAGED)
        }),
        all(
            Named,
            ("internal.apiserver.k8s.io", "storageversions", "StorageVersion"),
        ),
        all(Named, ("", "componentstatuses", "ComponentStatus")),
        // Its own roles.
        some(Named, (RBAC, "clusterroles", "ClusterRole"), is_bootstrapped),
        some(Named, (RBAC, "clusterrolebindings", "ClusterRoleBinding"), |it| {
            let is_of_kcp = it.annotations.contains_key(LOGICAL_CLUSTER);
            is_bootstrapped(it) || it.name == "workspace-admin" && is_of_kcp
        }),
        some(Named, (RBAC, "roles", "Role"), is_bootstrapped),
        some(Named, (RBAC, "rolebindings", "RoleBinding"), is_bootstrapped),
        // How it treats requests and pods.
        some(Named, (FLOWS, "flowschemas", "FlowSchema"), is_of_flow_control),
        some(
            Named,
            (FLOWS, "prioritylevelconfigurations", "PriorityLevelConfiguration"),
            is_of_flow_control,
        ),
        some(Named, ("scheduling.k8s.io", "priorityclasses", "PriorityClass"), |it| {
            it.name.starts_with("system-")
        }),
        // Its addresses.
        some(Named, (NETWORKING, "servicecidrs", "ServiceCIDR"), |it| {
            it.name == API_SERVER
        }),
        all(Named, (NETWORKING, "ipaddresses", "IPAddress")),
        // Its nodes, and what is on them.
        all(Named, ("", "nodes", "Node")),
        all(Named, (STORAGE, "csinodes", "CSINode")),
        all(Named, (STORAGE, "csistoragecapacities", "CSIStorageCapacity")),
        all(Named, (STORAGE, "volumeattachments", "VolumeAttachment")),
        all(Named, ("resource.k8s.io", "resourceslices", "ResourceSlice")),
        all(
            Named,
            ("certificates.k8s.io", "podcertificaterequests", "PodCertificateRequest"),
        ),
    ]
};

/// The roles that an API server makes when it starts, and those of kcp.
fn is_bootstrapped(it: &Object<'_>) -> bool {
    it.labels.contains_key(BOOTSTRAPPING) || it.name.starts_with("system:kcp:")
}

/// What an API server sets back, and the two of each type that none is without.
fn is_of_flow_control(it: &Object<'_>) -> bool {
    let updated = it.annotations.get(AUTOUPDATE).map(String::as_str);
    updated == Some("true") || matches!(it.name, "exempt" | "catch-all")
}

fn rows<'a>(group: &'a str, resource: &'a str) -> impl Iterator<Item = &'static Row> + use<'a> {
    let (group, resource) = twin(group, resource);
    TABLE
        .iter()
        .filter(move |row| (row.group, row.resource) == (group, resource))
}

/// True for an object that is not synced, where `is_named` says that people have had it named in spite of that.
pub(crate) fn is_kept(resource: &ResourceType, object: &Object<'_>, is_named: bool) -> bool {
    rows(&resource.group, &resource.resource).any(|row| {
        let is_in_it = match row.which {
            Which::All => true,
            Which::Those(is) => is(object),
        };
        is_in_it && !(is_named && row.unless == Unless::Named)
    })
}

/// The field selector by which a server leaves out what metadata alone do not show to be kept: the type of a Secret.
#[cfg(feature = "admin")]
pub(crate) fn field_selector(resource: &ResourceType) -> Option<String> {
    let without = CREDENTIALS.map(|kind| format!("type!={kind}"));
    resource.is("", "secrets").then(|| without.join(","))
}

/// True for a type of which people may name objects that are not synced otherwise.
pub(super) fn may_be_named(resource: &ResourceType) -> bool {
    rows(&resource.group, &resource.resource).any(|row| row.unless == Unless::Named)
}

/// Unless what no object of a type is synced, by its plural or its kind; `None` if some are.
pub(super) fn keeps_all(group: &str, word: &str) -> Option<Unless> {
    let (group, word) = twin(group, word);
    let is_it = |row: &&Row| row.group == group && (row.resource == word || row.kind == word);
    let mut whole = TABLE.iter().filter(|row| matches!(row.which, Which::All)).filter(is_it);
    whole.next().map(|row| row.unless)
}

#[cfg(test)]
mod tests {
    use kube_lite::qualified;

    use super::*;

    const TOKEN: &str = "kubernetes.io/service-account-token";

    /// `marks` are labels and annotations, `key=value`, separated by blanks. `expected` says whether the object is kept if
    /// nothing names it, and if something does.
    fn check(of: (&str, &str), object: &str, marks: &str, expected: (bool, bool)) {
        let (namespace, name) = object.split_once('/').unwrap_or(("", object));
        let marks = marks.split_whitespace().filter_map(|mark| mark.split_once('='));
        let marks: BTreeMap<String, String> = marks.map(|(key, value)| (key.into(), value.into())).collect();
        let resource = ResourceType {
            group: of.0.into(),
            version: "v1".into(),
            resource: of.1.into(),
            kind: String::new(),
            namespaced: !namespace.is_empty(),
        };
        let object = Object {
            namespace,
            name,
            labels: &marks,
            annotations: &marks,
            secret_type: marks.get("type").map_or("", String::as_str),
        };
        let found = (is_kept(&resource, &object, false), is_kept(&resource, &object, true));
        assert_eq!(found, expected, "{of:?} {namespace}/{name} {marks:?}");
    }

    #[test]
    fn what_each_api_server_keeps_for_itself_is_synced_only_if_it_is_named() {
        const UNNAMED: (bool, bool) = (true, false);
        const SYNCED: (bool, bool) = (false, false);
        let bootstrapped = format!("{BOOTSTRAPPING}=rbac-defaults");
        let slices = ("discovery.k8s.io", "endpointslices");
        for (of, object, marks, expected) in [
            (("", "services"), "default/kubernetes", "", UNNAMED),
            (("", "services"), "default/web", "", SYNCED),
            (("", "services"), "shop/kubernetes", "", SYNCED),
            (("g.io", "services"), "default/kubernetes", "", SYNCED),
            (("", "endpoints"), "default/kubernetes", "", UNNAMED),
            (slices, "default/kubernetes", "", UNNAMED),
            (
                slices,
                "default/kubernetes-x7",
                "kubernetes.io/service-name=kubernetes",
                UNNAMED,
            ),
            (
                slices,
                "shop/kubernetes-x7",
                "kubernetes.io/service-name=kubernetes",
                SYNCED,
            ),
            (slices, "default/web-x7", "kubernetes.io/service-name=web", SYNCED),
            (
                ("", "configmaps"),
                "kube-system/extension-apiserver-authentication",
                "",
                UNNAMED,
            ),
            (("", "configmaps"), "kube-public/cluster-info", "", UNNAMED),
            (("", "configmaps"), "shop/cluster-info", "", SYNCED),
            (
                ("apiregistration.k8s.io", "apiservices"),
                "v1.g.io",
                &*format!("{AUTOMANAGED}=true"),
                UNNAMED,
            ),
            (
                ("apiregistration.k8s.io", "apiservices"),
                "v1.",
                &format!("{AUTOMANAGED}=onstart"),
                UNNAMED,
            ),
            (("apiregistration.k8s.io", "apiservices"), "v1.g.io", "", SYNCED),
            ((RBAC, "clusterroles"), "admin", &bootstrapped, UNNAMED),
            ((RBAC, "clusterrolebindings"), "cluster-admin", &bootstrapped, UNNAMED),
            ((RBAC, "roles"), "kube-public/system:x", &bootstrapped, UNNAMED),
            ((RBAC, "rolebindings"), "kube-public/system:x", &bootstrapped, UNNAMED),
            ((RBAC, "clusterroles"), "system:kcp:tenancy:reader", "", UNNAMED),
            (
                (RBAC, "clusterrolebindings"),
                "workspace-admin",
                "kcp.io/cluster=root",
                UNNAMED,
            ),
            ((RBAC, "clusterrolebindings"), "workspace-admin", "", SYNCED),
            ((RBAC, "clusterroles"), "shop", "", SYNCED),
            (
                ("authorization.openshift.io", "clusterroles"),
                "admin",
                &bootstrapped,
                UNNAMED,
            ),
            ((FLOWS, "flowschemas"), "probes", &format!("{AUTOUPDATE}=true"), UNNAMED),
            ((FLOWS, "flowschemas"), "probes", &format!("{AUTOUPDATE}=false"), SYNCED),
            ((FLOWS, "flowschemas"), "catch-all", "", UNNAMED),
            ((FLOWS, "prioritylevelconfigurations"), "exempt", "", UNNAMED),
            (
                (FLOWS, "prioritylevelconfigurations"),
                "system",
                &format!("{AUTOUPDATE}=true"),
                UNNAMED,
            ),
            (
                ("scheduling.k8s.io", "priorityclasses"),
                "system-node-critical",
                "",
                UNNAMED,
            ),
            (("scheduling.k8s.io", "priorityclasses"), "shop", "", SYNCED),
            ((NETWORKING, "servicecidrs"), "kubernetes", "", UNNAMED),
            ((NETWORKING, "servicecidrs"), "more", "", SYNCED),
            ((NETWORKING, "ipaddresses"), "10.0.0.1", "", UNNAMED),
            (("", "nodes"), "n1", "", UNNAMED),
            ((STORAGE, "volumeattachments"), "csi-x", "", UNNAMED),
            ((STORAGE, "storageclasses"), "fast", "", SYNCED),
            (
                ("certificates.k8s.io", "clustertrustbundles"),
                "kubernetes.io:kube-apiserver-serving:x",
                "",
                UNNAMED,
            ),
            (("certificates.k8s.io", "clustertrustbundles"), "shop", "", SYNCED),
        ] {
            check(of, object, marks, expected);
        }
    }

    #[test]
    fn what_is_valid_in_one_cluster_alone_is_never_synced() {
        let secret = |kind: &str| format!("type={kind}");
        for (of, object, marks, is_kept) in [
            (("", "configmaps"), "shop/kube-root-ca.crt", "", true),
            (("", "configmaps"), "shop/prices", "", false),
            (("", "serviceaccounts"), "shop/default", "", true),
            (("", "serviceaccounts"), "shop/web", "", false),
            (("", "secrets"), "shop/a", &*secret(TOKEN), true),
            (
                ("", "secrets"),
                "shop/a",
                &secret("bootstrap.kubernetes.io/token"),
                true,
            ),
            (("", "secrets"), "shop/a", &secret("Opaque"), false),
            (("", "secrets"), "shop/a", "", false),
            (("g.io", "secrets"), "shop/a", &secret(TOKEN), false),
            (("coordination.k8s.io", "leases"), "shop/a", "", true),
            (("events.k8s.io", "events"), "shop/a", "", true),
        ] {
            check(of, object, marks, (is_kept, is_kept));
        }
    }

    #[test]
    fn a_type_is_known_by_its_plural_and_by_its_kind() {
        for row in TABLE.iter().filter(|row| matches!(row.which, Which::All)) {
            for word in [row.resource, row.kind] {
                assert_eq!(keeps_all(row.group, word), Some(row.unless), "{word}");
            }
        }
        assert_eq!(keeps_all("", "services"), None);
        assert_eq!(keeps_all("g.io", "nodes"), None);
    }

    #[test]
    fn the_table_for_people_names_every_type() {
        let section = include_str!("../../docs/reference/never-synced.md");
        for row in TABLE {
            let name = qualified(row.group, row.resource);
            assert!(section.contains(&format!("`{name}`")), "{name}");
        }
    }
}
