//! What the syncer has to be allowed at both sides: one table, from which follow the roles that `edge-syncer gen rbac`
//! prints, the questions of `edge-syncer check` and the tables of docs/permissions.md.
//!
//! Without I/O: [`TABLE`] says what each feature needs and why, [`needed`] which of it the present configs need, and
//! for which types, [`roles`] how that is written for a server. The table must fit the requests of the code: a test
//! runs a scenario under the printed roles alone, and removes each of them.

mod needed;
pub mod roles;

use crate::plan::Direction;
use crate::side::Side;

pub use needed::{Needed, Permission, Situation, needed};

/// What one feature needs of one kind of resources, at one side.
#[derive(Debug, PartialEq, Eq)]
pub struct Row {
    /// The side.
    pub side: Side,
    /// The feature, as the table of docs/permissions.md names it.
    pub feature: &'static str,
    /// The resources, in the words of that table.
    pub resources: &'static str,
    /// The verbs.
    pub verbs: &'static [&'static str],
    /// Which resources these are.
    pub on: On,
    /// When it is needed.
    pub when: When,
    /// Nothing fails without it: `without` says what is done less well.
    pub is_optional: bool,
    /// What it is for: the comment on its rules begins so.
    pub why: &'static str,
    /// What does not work without it, for whoever may do without: the comment ends so.
    pub without: &'static str,
}

impl Row {
    /// The comment on its rules.
    pub fn comment(&self) -> String {
        match self.without {
            "" => self.why.to_owned(),
            without => format!("{} Without it, {without}.", self.why),
        }
    }
}

/// Which resources a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// Both kinds of configs.
    Configs,
    /// The status of both kinds of configs.
    ConfigStatuses,
    /// The object that stands for the edge.
    EdgeObject,
    /// Its status.
    EdgeStatus,
    /// What is selected in a direction, where its origins are.
    Origins(Direction),
    /// What is selected in a direction, where its copies are.
    Copies(Direction),
    /// The status at the hub of what is selected in a direction.
    Statuses(Direction),
    /// A type, by group and plural; of these names, or of all.
    Type(&'static str, &'static str, &'static [&'static str]),
    /// Roles and cluster roles.
    Roles,
    /// Every type.
    Everything,
    /// The syncer's own record.
    Record,
    /// Events about what it syncs; at the hub about configs, in the namespace of what is in none.
    Events,
    /// Records that it takes over.
    FormerRecords,
    /// The syncer's own Lease.
    Lease,
    /// A token of the syncer's own account.
    Token,
    /// The Secret in which renewed tokens are kept.
    Secret,
}

/// When a row counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Always.
    Always,
    /// Heartbeats are written.
    Heartbeat,
    /// The same, and the hub has objects that stand for edges.
    Edges,
    /// The hub is a workspace of kcp.
    Kcp,
    /// The same, and a type of a group is downsynced.
    KcpWithGroups,
    /// Something namespaced is downsynced.
    Namespaced,
    /// Something is downsynced whose type a CRD may define.
    Defined,
    /// Objects are synced in a direction.
    Direction(Direction),
    /// Namespaced objects are synced in both directions.
    BothWays,
    /// Roles are synced in a direction, which has to be asked for.
    Roles(Direction),
    /// Namespaces or CRDs are downsynced.
    Cascades,
    /// A selected type is not there yet, or all types of a group are selected, also those to come.
    MoreToCome,
    /// One of several syncers is active.
    LeaderElect,
    /// The token of the hub is renewed.
    Renews,
    /// Renewed tokens are kept in a Secret.
    KeepsSecret,
}

const READ: &[&str] = &["get", "list", "watch"];
const WRITE: &[&str] = &["get", "list", "watch", "create", "patch", "delete"];
const KEEP: &[&str] = &["get", "create", "patch"];
const EVENTS: &[&str] = &["create", "patch"];
const NO_EVENTS: &str = "there are none, and conditions and log say the same";
const NO_EDGE: &str = "all that is said of the edge at the hub is in its configs";
const DEFINITIONS: On = On::Type("apiextensions.k8s.io", "customresourcedefinitions", &[]);
const NAMESPACES: On = On::Type("", "namespaces", &[]);
const IDENTITY: On = On::Type("", "namespaces", &["kube-system", "default"]);
const LATER: &str = "To notice at once that a type appears.";
const FOUND_LATER: &str = "types are asked for every few minutes";
const EMPTY_STAYS: &str = "a namespace that upsync has created is preserved when it is empty, and the log says so";
const CASCADES_OFF: &str =
    "copies of Namespaces and CRDs are preserved when their hub objects are deleted, and the log says so";

const fn row(side: Side, feature: &'static str, resources: &'static str, verbs: &'static [&'static str]) -> Row {
    Row {
        side,
        feature,
        resources,
        verbs,
        on: On::Everything,
        when: When::Always,
        is_optional: false,
        why: "",
        without: "",
    }
}

impl Row {
    const fn on(self, on: On, when: When, why: &'static str) -> Self {
        Self { on, when, why, ..self }
    }

    const fn optional(self, without: &'static str) -> Self {
        Self {
            is_optional: true,
            without,
            ..self
        }
    }

    const fn without(self, without: &'static str) -> Self {
        Self { without, ..self }
    }
}

use Direction::{Down, Up};
use Side::{Edge, Hub};

/// All permissions of the syncer, apart from discovery, which every user may read.
pub const TABLE: &[Row] = &[
    row(
        Hub,
        "configs",
        "`syncerconfigs`, `edgesyncconfigs` of `edge.kubestellar.io`",
        READ,
    )
    .on(On::Configs, When::Always, "The configs, which say what is synced."),
    row(
        Hub,
        "heartbeat and conditions",
        "`syncerconfigs/status`, `edgesyncconfigs/status`; the configs themselves if their CRDs have no `/status`",
        &["patch"],
    )
    .on(
        On::ConfigStatuses,
        When::Heartbeat,
        "The heartbeat and the conditions on the configs.",
    ),
    row(Hub, "Events on the configs", "`events.events.k8s.io` in `default`", EVENTS)
        .on(On::Events, When::Heartbeat, "Events on the configs.")
        .without(NO_EVENTS),
    row(
        Hub,
        "what it says of its edge",
        "`edges/status` of `edge.kubestellar.io`, of the object that stands for its edge",
        &["patch"],
    )
    .on(
        On::EdgeStatus,
        When::Edges,
        "What the edge says of itself, and its heartbeat: the status of the object that stands for it.",
    )
    .without(NO_EDGE),
    row(
        Hub,
        "to make that object, if `gen` has not",
        "`edges` of `edge.kubestellar.io`, the object that stands for its edge",
        &["create", "patch"],
    )
    .on(
        On::EdgeObject,
        When::Edges,
        "To make the object that stands for the edge, if nobody has.",
    )
    .without(NO_EDGE),
    row(Hub, "which cluster this is", "`namespaces` `kube-system` and `default`", &["get"]).on(
        IDENTITY,
        When::Always,
        "Which cluster this is: no copy is deleted because another one answers.",
    ),
    row(
        Hub,
        "which cluster this is, in kcp",
        "`logicalclusters.core.kcp.io` `cluster`",
        &["get"],
    )
    .on(
        On::Type("core.kcp.io", "logicalclusters", &["cluster"]),
        When::Kcp,
        "Which workspace this is, and whether it is being deleted.",
    ),
    row(Hub, "downsync", "each selected type, and `namespaces`", READ).on(
        On::Origins(Down),
        When::Direction(Down),
        "Downsync: the selected types, and the namespaces that their objects are in.",
    ),
    row(Hub, "downsync into a namespace that the edge lacks", "`namespaces`", &["get"]).on(
        NAMESPACES,
        When::Namespaced,
        "Downsync into a namespace that the edge lacks: whether upsync has created it here.",
    ),
    row(
        Hub,
        "status return",
        "`/status` of each selected type, or the type itself if it has no such subresource",
        &["patch"],
    )
    .on(
        On::Statuses(Down),
        When::Direction(Down),
        "Status return: the statuses of what is downsynced.",
    ),
    row(
        Hub,
        "whether a type or its objects were deleted",
        "`customresourcedefinitions.apiextensions.k8s.io`, if a selected type has a group with a dot",
        &["get"],
    )
    .on(
        DEFINITIONS,
        When::Defined,
        "Whether a type as a whole is deleted, or only its objects. Without it, copies are deleted with their type.",
    ),
    row(
        Hub,
        "whether a type or its objects were deleted, in kcp",
        "`apibindings.apis.kcp.io`",
        &["list"],
    )
    .on(
        On::Type("apis.kcp.io", "apibindings", &[]),
        When::KcpWithGroups,
        "Whether a type as a whole is deleted, in kcp, which has types from APIBindings.",
    ),
    row(Hub, "upsync", "each selected type", WRITE).on(
        On::Copies(Up),
        When::Direction(Up),
        "Upsync: write the selected types. Copies of other syncers are not changed.",
    ),
    row(
        Hub,
        "status of what is upsynced",
        "`/status` of each selected type, or the type itself if it has no such subresource",
        &["patch"],
    )
    .on(
        On::Statuses(Up),
        When::Direction(Up),
        "Upsync: the statuses of what is upsynced.",
    ),
    row(
        Hub,
        "upsync, the namespaces of the copies",
        "`namespaces`",
        &["get", "list", "watch", "create"],
    )
    .on(
        NAMESPACES,
        When::Direction(Up),
        "Upsync: create the namespaces that the copies are in.",
    ),
    row(Hub, "upsync, to delete namespaces that it has created", "every type", &["list"])
        .on(
            On::Everything,
            When::Direction(Up),
            "Upsync: whether a namespace that it has created is empty, so that it can be deleted. This lets the syncer read \
             all objects of the hub.",
        )
        .optional(EMPTY_STAYS),
    row(Hub, "upsync, to delete namespaces that it has created", "`namespaces`", &["delete"])
        .on(
            NAMESPACES,
            When::Direction(Up),
            "Upsync: to delete a namespace that it has created, once that is empty.",
        )
        .optional(EMPTY_STAYS),
    row(
        Hub,
        "types that appear later",
        "`customresourcedefinitions.apiextensions.k8s.io`",
        &["list", "watch"],
    )
    .on(DEFINITIONS, When::MoreToCome, LATER)
    .optional(FOUND_LATER),
    row(
        Hub,
        "renewal of its token",
        "`serviceaccounts/token` of its own service account",
        &["create"],
    )
    .on(On::Token, When::Renews, "Renewal: tokens of its own account."),
    row(Hub, "upsync of roles", "`roles` and `clusterroles`", &["escalate", "bind"]).on(
        On::Roles,
        When::Roles(Up),
        "Upsync of roles: give permissions that the syncer itself does not have.",
    )
    .without("roles that give more than the syncer may do itself are refused by the hub"),
    row(Edge, "downsync", "each selected type, and `namespaces` (without delete), in all namespaces", WRITE).on(
        On::Copies(Down),
        When::Direction(Down),
        "Downsync: the selected types, and the namespaces that they need. The edge is read across all namespaces.",
    ),
    row(Edge, "downsync of roles", "`roles` and `clusterroles`", &["escalate", "bind"]).on(
        On::Roles,
        When::Roles(Down),
        "Downsync of roles: give permissions that the syncer itself does not have.",
    )
    .without("roles that give more than the syncer may do itself are refused by the edge"),
    row(Edge, "upsync", "each selected type, in all namespaces", READ).on(
        On::Origins(Up),
        When::Direction(Up),
        "Upsync: read the selected types.",
    ),
    row(
        Edge,
        "downsync into namespaces that upsync has created at the hub",
        "`namespaces`",
        &["create"],
    )
    .on(
        NAMESPACES,
        When::BothWays,
        "Downsync into a namespace that upsync has created at the hub, and that is gone here.",
    ),
    row(Edge, "which cluster this is", "`namespaces` `kube-system` and `default`", &["get"]).on(
        IDENTITY,
        When::Always,
        "Which cluster this is: nothing is written if it is the hub itself.",
    ),
    row(Edge, "deletes of Namespaces and CRDs", "every type", &["list"])
        .on(
            On::Everything,
            When::Cascades,
            "To delete a Namespace or a CRD: whether anything is left in it. This lets the syncer read all objects of the \
             edge.",
        )
        .optional(CASCADES_OFF),
    row(
        Edge,
        "deletes of Namespaces and CRDs",
        "`customresourcedefinitions.apiextensions.k8s.io`",
        &["get", "list"],
    )
    .on(
        DEFINITIONS,
        When::Cascades,
        "To delete a Namespace or a CRD: whether objects are left of a type that the edge defines and does not serve at \
         that moment.",
    )
    .optional(CASCADES_OFF),
    row(Edge, "deletes of Namespaces and CRDs", "`namespaces`", &["delete"])
        .on(
            NAMESPACES,
            When::Cascades,
            "To delete a Namespace whose hub object is deleted, once it is empty.",
        )
        .optional("copies of Namespaces are preserved when their hub objects are deleted, and the log says so"),
    row(
        Edge,
        "types that appear later",
        "`customresourcedefinitions.apiextensions.k8s.io`",
        &["list", "watch"],
    )
    .on(DEFINITIONS, When::MoreToCome, LATER)
    .optional(FOUND_LATER),
    row(Edge, "Events on what is synced", "`events.events.k8s.io`, in all namespaces", EVENTS)
        .on(
            On::Events,
            When::Always,
            "Events on what is synced, and on the syncer's record.",
        )
        .without(NO_EVENTS),
    row(
        Edge,
        "its record",
        "`configmaps` `edge-syncer-types-<sync target UID>` in its own namespace",
        KEEP,
    )
    .on(
        On::Record,
        When::Always,
        "The record of synced types, by which a restart finds copies that no config selects any more.",
    ),
    row(
        Edge,
        "the record of an earlier version, or of `--former-sync-target-uid`",
        "`configmaps` `edge-syncer-types` and `edge-syncer-types-<former UID>` in its own namespace",
        &["get"],
    )
    .on(
        On::FormerRecords,
        When::Always,
        "The record of an earlier version, and those of former sync targets, to take over what they name.",
    ),
    row(
        Edge,
        "`--leader-elect`",
        "`leases.coordination.k8s.io` `edge-syncer-<sync target UID>` in its own namespace",
        KEEP,
    )
    .on(
        On::Lease,
        When::LeaderElect,
        "The Lease by which one of several syncers is active.",
    ),
    row(Edge, "`--credentials-secret`", "that Secret", &["get", "patch"]).on(
        On::Secret,
        When::KeepsSecret,
        "Renewal: the Secret with the kubeconfig of the hub.",
    ),
];
