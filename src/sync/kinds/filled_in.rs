//! What servers, admission and controllers fill in, kind by kind: the one table, of what is not synced from an origin and of
//! what stays at a copy whose fields are taken over.

use kube_lite::ResourceType;
use serde_json::Value;

use super::accounts;
use super::cleaned::{
    address, aggregated_rules, ca_bundles, job, node_ports, pod, pull_secrets, reference, targets_of_addresses,
};
use super::hub::Hub;

/// What is filled in: its path, as field sets have it, where `*` stands for all items, or for all that begins so; what of it
/// is synced; what becomes of it at a copy.
pub(in crate::sync) type FilledIn = (&'static [&'static str], AtOrigin, AtCopy);

/// Cleans one value in place; `Null` says that it is not synced at all.
pub(super) type Clean = fn(&mut Value, &Hub<'_>);

/// What of a value of an origin is synced.
#[derive(Clone, Copy)]
pub(in crate::sync) enum AtOrigin {
    /// All: there is no rule for it.
    Synced,
    /// Nothing.
    Dropped,
    /// It, if it is known that somebody has set it: it is allocated.
    IfSet,
    /// It, unless it is known that nobody has set it: it has a default.
    UnlessUnset,
    /// It names another object: what names it, without the UID, which is of one cluster.
    Reference,
    /// What is left when the value at so many keys of the path is cleaned.
    Cleaned(usize, Clean),
}

/// What becomes of a value of a copy when its fields are taken over from the manager that is named for it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::sync) enum AtCopy {
    /// It goes, unless the origin has it.
    Goes,
    /// It stays: people do not set it afterwards.
    Stays,
    /// It stays, unless we apply it too.
    StaysUnlessShared,
    /// People may want to change it: it stays where everybody's fields are taken over, or those of the Go syncer.
    StaysUnlessPeoples,
}

use AtCopy::{Goes, Stays, StaysUnlessPeoples, StaysUnlessShared};
use AtOrigin::{Cleaned, Dropped, IfSet, Reference, Synced, UnlessUnset};

impl AtOrigin {
    /// How many keys of the path lead to the value to be cleaned; `None` if there is no rule.
    pub(super) fn depth(self, path: &[&str]) -> Option<usize> {
        match self {
            Synced => None,
            Cleaned(depth, _) => Some(depth),
            Dropped | IfSet | UnlessUnset | Reference => Some(path.len()),
        }
    }

    /// Cleans that value.
    pub(super) fn clean(self, path: &[&str], value: &mut Value, hub: &Hub<'_>) {
        match self {
            Synced => {}
            Dropped => *value = Value::Null,
            IfSet => hub.keep_if_set(value, path),
            UnlessUnset => hub.drop_if_unset(value, path),
            Reference => reference(value, hub),
            Cleaned(_, clean) => clean(value, hub),
        }
    }
}

/// A default that nobody asked for is not synced; so an autoscaler at the edge can decide.
const DEFAULT_REPLICAS: FilledIn = (&["f:spec", "f:replicas"], UnlessUnset, StaysUnlessShared);

/// Group and plural of each kind, `*` for all, and what is filled in of it.
#[rustfmt::skip]
pub(super) const KINDS: &[(&str, &str, &[FilledIn])] = &[
    ("*", "*", &[
        (&["f:status"], Synced, Stays),
        (&["f:metadata", "f:finalizers"], Synced, Stays),
        (&["f:metadata", "f:ownerReferences"], Synced, Stays),
        // Its value is the syncer's own, and is patched together with the pull secrets, not applied.
        (&["f:metadata", "f:annotations", "f:edge.kubestellar.io/pull-secrets"], Synced, Stays),
        // Who says at the copy's side how many there are scales it, which is an operation and no change of what it is. Where the
        // origin says it too, the apply is stronger. Of a custom type only its definition says what is a default
        // ([`crate::sync::scaled`]).
        (&["f:spec", "f:replicas"], Synced, StaysUnlessShared),
    ]),
    ("", "endpoints", &[(&["f:subsets"], Cleaned(1, targets_of_addresses), Goes)]),
    ("", "namespaces", &[
        (&["f:spec"], Dropped, Goes),
        // OpenShift assigns ranges of user ids.
        (&["f:metadata", "f:annotations", "f:openshift.io/sa.scc.*"], Dropped, StaysUnlessPeoples),
    ]),
    ("", "persistentvolumeclaims", &[
        (&["f:metadata", "f:annotations", "f:pv.kubernetes.io/*"], Dropped, Stays),
        (&["f:metadata", "f:annotations", "f:volume.beta.kubernetes.io/storage-provisioner"], Dropped, Stays),
        (&["f:metadata", "f:annotations", "f:volume.kubernetes.io/selected-node"], Dropped, Stays),
        (&["f:metadata", "f:annotations", "f:volume.kubernetes.io/storage-provisioner"], Dropped, Stays),
        (&["f:metadata", "f:annotations", "f:volume.kubernetes.io/storage-resizer"], Dropped, Stays),
        (&["f:metadata", "f:annotations", "f:volume.kubernetes.io/*"], Synced, Stays),
        // The hub's default class, from admission or later from the volume controller. At a copy, the update would be refused
        // without it, and the claim replaced where that is allowed.
        (&["f:spec", "f:storageClassName"], UnlessUnset, Stays),
        (&["f:spec", "f:volumeMode"], Synced, Stays),
        (&["f:spec", "f:volumeName"], IfSet, Stays),
    ]),
    ("", "persistentvolumes", &[
        (&["f:metadata", "f:annotations", "f:pv.kubernetes.io/bound-by-controller"], Dropped, Stays),
        (&["f:metadata", "f:annotations", "f:pv.kubernetes.io/*"], Synced, Stays),
        (&["f:spec", "f:claimRef"], Reference, Stays),
    ]),
    ("", "replicationcontrollers", &[DEFAULT_REPLICAS]),
    // Hardly anything of it can be changed.
    ("", "pods", &[(&["f:spec"], Cleaned(1, pod), Stays)]),
    ("", "serviceaccounts", &[
        // OpenShift's registry credentials.
        (&["f:metadata", "f:annotations", "f:openshift.io/internal-registry-pull-secret-ref"], Dropped, Goes),
        (&["f:imagePullSecrets"], Cleaned(1, pull_secrets), Stays),
        (&["f:secrets"], Cleaned(1, accounts::secrets), StaysUnlessShared),
    ]),
    ("", "services", &[
        (&["f:spec", "f:clusterIP"], Cleaned(2, |value, hub| address(value, hub, "f:clusterIP")), Stays),
        (&["f:spec", "f:clusterIPs"], Cleaned(2, |value, hub| address(value, hub, "f:clusterIPs")), Stays),
        (&["f:spec", "f:healthCheckNodePort"], IfSet, Stays),
        (&["f:spec", "f:ipFamilies"], IfSet, Stays),
        (&["f:spec", "f:ipFamilyPolicy"], IfSet, Stays),
        (&["f:spec", "f:ports", "*", "f:nodePort"], Cleaned(2, node_ports), Stays),
    ]),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations", &[
        (&["f:webhooks", "*", "f:clientConfig", "f:caBundle"], Cleaned(1, ca_bundles), Stays),
    ]),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations", &[
        (&["f:webhooks", "*", "f:clientConfig", "f:caBundle"], Cleaned(1, ca_bundles), Stays),
    ]),
    ("apiextensions.k8s.io", "customresourcedefinitions", &[
        (&["f:spec", "f:conversion", "f:webhook", "f:clientConfig", "f:caBundle"], Cleaned(2, ca_bundles), Stays),
    ]),
    ("apiregistration.k8s.io", "apiservices", &[
        (&["f:spec", "f:caBundle"], Cleaned(1, ca_bundles), Stays),
    ]),
    ("apps", "daemonsets", &[
        (&["f:metadata", "f:annotations", "f:deprecated.daemonset.template.generation"], Dropped, StaysUnlessPeoples),
    ]),
    ("apps", "deployments", &[
        (&["f:metadata", "f:annotations", "f:deployment.kubernetes.io/*"], Dropped, StaysUnlessPeoples),
        DEFAULT_REPLICAS,
    ]),
    ("apps", "replicasets", &[
        (&["f:metadata", "f:annotations", "f:deployment.kubernetes.io/*"], Dropped, StaysUnlessPeoples),
        DEFAULT_REPLICAS,
    ]),
    ("apps", "statefulsets", &[DEFAULT_REPLICAS]),
    ("batch", "jobs", &[
        // With the labels of the template that go with it.
        (&["f:spec", "f:selector"], Cleaned(1, job), Stays),
        (&["f:spec", "f:template"], Synced, Stays),
    ]),
    ("discovery.k8s.io", "endpointslices", &[(&["f:endpoints"], Cleaned(1, targets_of_addresses), Goes)]),
    ("networking.k8s.io", "ingresses", &[
        // The hub's default class, from admission.
        (&["f:spec", "f:ingressClassName"], UnlessUnset, StaysUnlessPeoples),
    ]),
    ("rbac.authorization.k8s.io", "clusterroles", &[
        (&["f:rules"], Cleaned(1, aggregated_rules), StaysUnlessPeoples),
    ]),
    ("snapshot.storage.k8s.io", "volumesnapshotcontents", &[
        (&["f:spec", "f:volumeSnapshotRef"], Reference, Stays),
    ]),
];

/// What is filled in of the objects of a type.
pub(in crate::sync) fn filled_in(resource: &ResourceType) -> impl Iterator<Item = &'static FilledIn> {
    let kinds = KINDS
        .iter()
        .filter(|(group, plural, _)| *group == "*" || resource.is(group, plural));
    kinds.flat_map(|(.., all)| *all)
}

/// The paths of what names other objects in the objects of a type.
pub(in crate::sync) fn references(resource: &ResourceType) -> impl Iterator<Item = &'static [&'static str]> {
    let all = filled_in(resource);
    all.filter_map(|(path, at_origin, _)| matches!(at_origin, Reference).then_some(*path))
}

/// True for an annotation of an origin that its API server or controllers have written.
pub(super) fn is_of_controller(resource: &ResourceType, annotation: &str) -> bool {
    filled_in(resource).any(|(path, at_origin, _)| match (path, at_origin) {
        ([_, "f:annotations", key], Dropped) => {
            let beginning = key.trim_start_matches("f:").trim_end_matches('*');
            annotation.starts_with(beginning)
        }
        _ => false,
    })
}
