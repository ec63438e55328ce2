//! The API that users see: config kinds, annotation and label keys. Each key stands here and nowhere else.

pub mod syncer_config;

/// API group of the configs.
pub const GROUP: &str = "edge.kubestellar.io";
/// Served and stored version of the configs.
pub const VERSION: &str = "v2alpha1";

/// Annotation on the edge copy: `<Kind>/<namespace>/<name>` of the copy itself (spec 3.3). Also the key of the label
/// that selects all copies, with the value [`DOWNSYNCED_LABEL_VALUE`].
pub const DOWNSYNCED: &str = "edge.kubestellar.io/downsynced";
/// Value of the label [`DOWNSYNCED`]. A label cannot hold slashes, so it selects and proves nothing.
pub const DOWNSYNCED_LABEL_VALUE: &str = "true";
/// The label selector of all copies.
pub const DOWNSYNCED_SELECTOR: &str = "edge.kubestellar.io/downsynced=true";
/// Annotation on a copy that existed at the edge before it was selected: released, not deleted (DESIGN section 4).
pub const ADOPTED: &str = "edge.kubestellar.io/adopted";
/// Annotation on the hub object: with the value `true`, a copy that cannot be updated because of an immutable field is
/// deleted and created again.
pub const REPLACE: &str = "edge.kubestellar.io/replace";
/// Annotation on the hub object: other than empty, absent or `true`, the copy is created once and then left (spec 3.6).
pub const DOWNSYNC_OVERWRITE: &str = "edge.kubestellar.io/downsync-overwrite";
