//! From the kind of an object to where it is created.

use std::collections::BTreeMap;

use gotemplate::objects::Object;
use kube_lite::discovery::{self, GroupVersion, Served};
use kube_lite::{Cluster, Error, ResourceType};

/// Kinds that are the same in every workspace, so that nothing has to be asked for them: group, version, plural, kind, and
/// whether they are in namespaces. Whether they are served shows when they are created.
const KNOWN: [(&str, &str, &str, &str, bool); 15] = [
    ("", "v1", "namespaces", "Namespace", false),
    ("", "v1", "configmaps", "ConfigMap", true),
    ("", "v1", "secrets", "Secret", true),
    ("", "v1", "serviceaccounts", "ServiceAccount", true),
    (RBAC, "v1", "clusterroles", "ClusterRole", false),
    (RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", false),
    (RBAC, "v1", "roles", "Role", true),
    (RBAC, "v1", "rolebindings", "RoleBinding", true),
    (
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        false,
    ),
    ("apis.kcp.io", "v1alpha1", "apibindings", "APIBinding", false),
    ("apis.kcp.io", "v1alpha2", "apibindings", "APIBinding", false),
    ("apis.kcp.io", "v1alpha1", "apiexports", "APIExport", false),
    ("apis.kcp.io", "v1alpha2", "apiexports", "APIExport", false),
    ("tenancy.kcp.io", "v1alpha1", "workspaces", "Workspace", false),
    ("tenancy.kcp.io", "v1alpha1", "workspacetypes", "WorkspaceType", false),
];
const RBAC: &str = "rbac.authorization.k8s.io";

/// What an object says of its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    api_version: String,
    name: String,
}

impl Kind {
    pub(super) fn of(object: &Object) -> Self {
        Self {
            api_version: object.api_version().to_owned(),
            name: object.kind().to_owned(),
        }
    }

    fn parts(&self) -> (&str, &str) {
        self.api_version.split_once('/').unwrap_or(("", &self.api_version))
    }
}

/// What one workspace serves, as far as one run has asked.
#[derive(Default)]
pub(super) struct Mapping(BTreeMap<GroupVersion, Served>);

impl Mapping {
    /// The type with this kind; `None` if the workspace does not serve it now.
    pub(super) async fn find(
        &mut self,
        kind: &Kind,
        cluster: &str,
        shard: &Cluster,
    ) -> Result<Option<ResourceType>, Error> {
        if let Some(known) = known(kind) {
            return Ok(Some(known));
        }
        let (group, version) = kind.parts();
        let asked = (group.to_owned(), version.to_owned());
        if !self.0.contains_key(&asked) {
            let served = discovery::discover_in(shard, cluster, &asked).await?;
            self.0.insert(asked.clone(), served);
        }
        let Some(Served::Resources(resources)) = self.0.get(&asked) else {
            return Ok(None);
        };
        let found = resources.values().find(|served| served.resource.kind == kind.name);
        Ok(found.map(|served| served.resource.clone()))
    }
}

fn known(kind: &Kind) -> Option<ResourceType> {
    let of = kind.parts();
    let row = KNOWN.iter().find(|row| (row.0, row.1) == of && row.3 == kind.name);
    row.map(|&(group, version, resource, kind, namespaced)| {
        ResourceType::new([group, version, resource, kind], namespaced)
    })
}
