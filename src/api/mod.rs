//! The API that users see: config kinds, annotation and label keys. Each key is here and nowhere else.

pub mod edge;
pub mod edge_sync_config;
mod field_problem;
pub mod status;
pub mod syncer_config;

use serde::Deserialize;

/// API group of the configs.
pub const GROUP: &str = "edge.kubestellar.io";
/// Served and stored version of the configs.
pub const VERSION: &str = "v2alpha1";

/// Annotation on the edge copy: `<Kind>/<namespace>/<name>` of the copy itself. Also the key of the label that selects
/// all copies, with the value [`DOWNSYNCED_LABEL_VALUE`].
pub const DOWNSYNCED: &str = "edge.kubestellar.io/downsynced";
/// Value of the label [`DOWNSYNCED`]. A label cannot hold slashes, so it selects and proves nothing.
pub const DOWNSYNCED_LABEL_VALUE: &str = "true";
/// The field manager of every write.
pub const FIELD_MANAGER: &str = "edge-syncer";
/// With what the field manager of status that is written to the hub begins: what we own of an object stays apart from its
/// status.
pub const STATUS_FIELD_MANAGER: &str = "edge-syncer-status";
/// With what the field manager of heartbeats on configs begins, before the UID of the sync target.
pub const HEARTBEAT_FIELD_MANAGER: &str = "edge-syncer-heartbeat";
/// The label selector of all copies.
pub const DOWNSYNCED_SELECTOR: &str = "edge.kubestellar.io/downsynced=true";
/// Annotation on the hub copy of an upsynced object: `<Kind>/<namespace>/<name>` of the copy itself. Also the key of
/// the label that selects all such copies, with the value [`UPSYNCED_LABEL_VALUE`].
pub const UPSYNCED: &str = "edge.kubestellar.io/upsynced";
/// Value of the label [`UPSYNCED`].
pub const UPSYNCED_LABEL_VALUE: &str = "true";
/// The label selector of all upsynced copies.
pub const UPSYNCED_SELECTOR: &str = "edge.kubestellar.io/upsynced=true";
/// Annotation on every copy, at the edge and at the hub: `<origin UID>/<plural.group of the copy>/<sync target UID>`.
/// It distinguishes the copies of two syncers, and a copy from what a controller has made from it.
pub const OWNER: &str = "edge.kubestellar.io/owner";
/// Annotation on every copy, at the edge and at the hub: `<UID of the cluster>/<resource version>` of the origin when the copy
/// was first made from it. So a copy itself shows when another cluster answers, or one that was restored from a backup.
pub const SOURCE: &str = "edge.kubestellar.io/source";
/// Annotation on a copy that a conversion has renamed: `<Kind>.<group>/<name>` of its origin. Without it, once the
/// conversion is removed, the copy would look as if its origin were gone.
pub const RENAMED_FROM: &str = "edge.kubestellar.io/renamed-from";
/// Annotation on a copy that existed at the edge before it was selected: released, not deleted.
pub const ADOPTED: &str = "edge.kubestellar.io/adopted";
/// Annotation on a copy of a `ServiceAccount`: the names, as a JSON list, of those of its `imagePullSecrets` that came from the
/// origin. They are removed when the origin drops them.
pub const PULL_SECRETS: &str = "edge.kubestellar.io/pull-secrets";
/// Annotation on the record: what it is for, for people.
pub const DESCRIPTION: &str = "edge.kubestellar.io/description";
/// Annotation on a config: a token that confirms held deletes.
pub const CONFIRM_DELETES: &str = "edge.kubestellar.io/confirm-deletes";
/// Reason of the condition `DeletesHeld`: another cluster answers.
pub const OTHER_CLUSTER: &str = "OtherCluster";
/// Reason of the condition `DeletesHeld`: a side has gone back to older versions.
pub const OLDER_VERSIONS: &str = "OlderVersions";
/// Reason of the condition `DeletesHeld`: too many deletes at once.
pub const TOO_MANY: &str = "TooMany";
/// Reason of the condition `DeletesHeld`: the hub deletes a whole type, or has defined it again.
pub const TYPE_WITHDRAWN: &str = "TypeWithdrawn";
/// Reason of the condition `DeletesHeld`: the delete of a Namespace or CRD would cascade to what is not to be deleted.
pub const NOT_EMPTY: &str = "NotEmpty";
/// All reasons for which deletes are held.
pub const HOLD_REASONS: [&str; 5] = [OTHER_CLUSTER, OLDER_VERSIONS, TOO_MANY, TYPE_WITHDRAWN, NOT_EMPTY];
/// Annotation on the origin: with the value `true`, a copy whose update is refused is deleted and created again, if its side
/// would take the new one.
pub const REPLACE: &str = "edge.kubestellar.io/replace";
/// Annotation on the hub object: with any other value than empty or `true`, the copy is created once and then left to
/// the edge.
pub const DOWNSYNC_OVERWRITE: &str = "edge.kubestellar.io/downsync-overwrite";
/// Label on all that `edge-syncer gen` creates at the hub: the name of the sync target that it is for.
pub const SYNC_TARGET_NAME: &str = "edge.kubestellar.io/sync-target-name";
/// Annotation on the config and the `ServiceAccount` that `edge-syncer gen` creates at the hub: the UID of the sync target.
pub const SYNC_TARGET_UID: &str = "edge.kubestellar.io/sync-target-uid";
/// Annotation on that `ServiceAccount`: the namespace at the edge that the syncer runs in.
pub const SYNCER_NAMESPACE: &str = "edge.kubestellar.io/syncer-namespace";
/// Annotation on that `ServiceAccount`: which permissions were chosen for it, `wide` or `scoped`.
pub const RBAC: &str = "edge.kubestellar.io/rbac";
/// Annotation on that `ServiceAccount`: the URL by which the edge reaches the hub, if it was given.
pub const HUB_URL: &str = "edge.kubestellar.io/hub-url";

/// The most entries of one list of a config; `maxItems` in the CRDs.
const MOST_ENTRIES: usize = 20_000;
/// No API server has a larger config: etcd accepts 1.5 MiB.
const LARGEST: usize = 2 << 20;

/// Go sometimes writes an absent list as `null`; both mean the default.
fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// One config of either kind: its name and what it selects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config<Spec> {
    /// `metadata.name`.
    pub name: String,
    /// The selection.
    pub spec: Spec,
}

impl<'de, Spec: Default + Deserialize<'de>> Config<Spec> {
    /// Reads a config from the JSON of the whole object. The error says what is wrong with it.
    pub fn parse(object: &'de [u8]) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        #[serde(bound = "Spec: Default + Deserialize<'de>")]
        struct Wire<Spec> {
            metadata: WireMeta,
            #[serde(default, deserialize_with = "null_is_default")]
            spec: Spec,
        }
        #[derive(Deserialize)]
        struct WireMeta {
            name: String,
        }
        if object.len() > LARGEST {
            let why = format!("it has {} bytes, and at most {LARGEST} are read", object.len());
            return Err(serde::de::Error::custom(why));
        }
        let wire: Wire<Spec> = serde_json::from_slice(object)?;
        Ok(Self {
            name: wire.metadata.name,
            spec: wire.spec,
        })
    }
}
