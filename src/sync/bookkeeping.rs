//! Copies of an object that clients keep in its annotations, to find out by the next one what they have changed.
//!
//! Such a copy says what its client has done at its own side. On the other side it would double the bytes of each object, keep
//! an object away whose annotations it has filled, and be wrong there: a client of the same name would take it for its own,
//! and hold what it has never made for done. So it is synced in neither direction. What a client of a copy's own side keeps
//! there is a field of others.
//!
//! Only copies of the content are meant. What is small and says to whom an object belongs, or from where it is, is synced as
//! all other annotations: `meta.helm.sh/release-name`, `argocd.argoproj.io/tracking-id`, `config.k8s.io/owning-inventory`,
//! `kapp.k14s.io/identity`, `objectset.rio.cattle.io/id`, `pulumi.com/*`, `cnrm.cloud.google.com/*`,
//! `kubernetes.io/change-cause`. People select and find objects by it, and tools at the edge have such marks of their own. Nor
//! is content that has no other place a copy: `cluster.x-k8s.io/conversion-data` holds fields that a version lacks.

/// Keys of copies that only one client writes.
const KEYS: &[&str] = &[
    // Wrangler, in Rancher, Fleet, k3s and RKE2: the object, packed.
    "objectset.rio.cattle.io/applied",
    // kapp: the object, and the changes since, and a sum by which it finds out whether they are still these.
    "kapp.k14s.io/original",
    "kapp.k14s.io/original-diff",
    "kapp.k14s.io/original-diff-full",
    "kapp.k14s.io/original-diff-md5",
    // Config Sync: every field that it has set, as in managedFields.
    "configsync.gke.io/declared-fields",
];

/// True for an annotation that holds a copy of its object for one client of the object's own side.
pub(super) fn is_bookkeeping(key: &str, value: &str) -> bool {
    match key.split_once('/') {
        // kubectl, and with prefixes of their own KubeVela, kubecfg and others. kopf, which operators give their own group
        // as the prefix: an operator at the edge that finds it never handles the creation. The long form is on the
        // ReplicaSets of Deployments.
        Some((_, "last-applied-configuration" | "last-handled-configuration" | "last-handled-configuration-ofDRS")) => {
            true
        }
        // k8s-objectmatcher, in many operators, each with its own prefix: JSON, or a ZIP archive of it in base64. As
        // others may give a time this name, the value decides.
        Some((_, "last-applied")) => value.starts_with('{') || value.starts_with("UEsDB"),
        _ => KEYS.contains(&key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_the_object_that_clients_keep_in_it_are_known_among_other_annotations() {
        let object = r#"{"apiVersion":"v1","kind":"ConfigMap"}"#;
        for (key, value, expected) in [
            ("kubectl.kubernetes.io/last-applied-configuration", object, true),
            ("app.oam.dev/last-applied-configuration", object, true),
            ("kopf.zalando.org/last-handled-configuration", object, true),
            ("kopf.zalando.org/last-handled-configuration-ofDRS", object, true),
            ("gauges.example.org/last-handled-configuration", object, true),
            ("banzaicloud.com/last-applied", "UEsDBBQACAAIAAAAAAA=", true),
            ("manila.csi.openshift.io/last-applied", object, true),
            ("example.org/last-applied", "2026-01-01T00:00:00Z", false),
            ("objectset.rio.cattle.io/applied", "H4sIAAAAAAAA/4yRz", true),
            ("objectset.rio.cattle.io/id", "shop", false),
            ("kapp.k14s.io/original", object, true),
            ("kapp.k14s.io/original-diff-md5", "9e4358", true),
            ("kapp.k14s.io/identity", "v1;shop//ConfigMap/a;v1", false),
            ("configsync.gke.io/declared-fields", "{}", true),
            ("configsync.gke.io/resource-id", "_configmap_shop_a", false),
            ("kubectl.kubernetes.io/restartedAt", "2026-01-01T00:00:00Z", false),
            ("kubectl.kubernetes.io/default-container", "app", false),
            ("meta.helm.sh/release-name", "web", false),
            ("argocd.argoproj.io/tracking-id", "web:/ConfigMap:shop/a", false),
            ("cluster.x-k8s.io/conversion-data", object, false),
            ("app.oam.dev/last-applied-time", "2026-01-01T00:00:00Z", false),
            // A key without a prefix is nobody's but the user's.
            ("last-applied-configuration", object, false),
            ("note", object, false),
        ] {
            assert_eq!(is_bookkeeping(key, value), expected, "{key}");
        }
    }
}
