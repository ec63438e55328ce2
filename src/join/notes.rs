//! What people have to know about what they have chosen, before they apply what is written. Without I/O.

use crate::plan::is_of_every_cluster;

/// About the namespace of the syncer at the edge, for a manifest.
pub(super) fn about_namespace(namespace: &str) -> Option<String> {
    is_of_every_cluster(namespace).then(|| {
        format!(
            "note: every cluster has the namespace {namespace}, so the manifest leaves it out: kubectl delete -f deletes only \
             what is the syncer's; no config can touch what is in it, as in each namespace with a syncer"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_of_every_cluster_is_noted() {
        for (namespace, is_noted) in [
            ("kube-system", true),
            ("default", true),
            ("kube-public", true),
            ("kube-node-lease", true),
            ("edge-syncer", false),
            ("kubestellar-syncer-site-7-abc", false),
        ] {
            let note = about_namespace(namespace);
            assert_eq!(note.is_some(), is_noted, "{namespace}");
            assert!(note.is_none_or(|note| note.contains(namespace)));
        }
    }
}
