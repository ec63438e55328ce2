//! The kinds of log lines: each has a name that stays the same, whatever the message is.
//!
//! docs/reference/log-reasons.md is the same list for people; tests compare the two.

/// Declares the reasons, and their names in log lines.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What kind of log line it is: what has happened, and what to do about it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum LogReason {
            $($(#[$doc])* $name,)*
        }

        impl LogReason {
            /// The name in log lines.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// All of them, in the order of the docs.
            #[cfg(test)]
            pub(super) const ALL: &[Self] = &[$(Self::$name,)*];
        }
    };
}

reasons! {
    /// The program begins; version, sync target and UID.
    Started,
    /// The address of a side, and the proxy on the way to it. To do: check that it is the right server.
    SideConfigured,
    /// Health and metrics are served at this address.
    Serving,
    /// `RUST_LOG` cannot be used; the log is as without it. To do: correct it, or set `EDGE_SYNCER_LOG`.
    LogFilterInvalid,
    /// `NOTIFY_SOCKET` cannot be used. To do: correct it, or unset it.
    ServiceManagerUnreachable,
    /// SIGTERM or SIGINT has come; what is under way is finished.
    StopRequested,
    /// A second signal has come; the program stops at once.
    StopForced,
    /// The program has ended as it was asked to.
    Stopped,
    /// A library has written this line; `target` names it. To do: report it if it lasts.
    Dependency,
    /// A side cannot be reached; it is tried again until it answers. To do: see `advice`: the address, the network,
    /// the certificates.
    SideUnreachable,
    /// The side answers again.
    SideReachable,
    /// Something else than a Kubernetes API answers in the place of a side. To do: check the address, its port and
    /// path, and proxies.
    NotAnApi,
    /// A Kubernetes API answers there again.
    ApiReachable,
    /// A side refuses the credentials of the syncer. To do: renew the token or certificate in the kubeconfig.
    CredentialsRefused,
    /// The side accepts the credentials again.
    CredentialsAccepted,
    /// Credentials go over the network without TLS. To do: use an `https://` URL, and renew what was sent.
    CredentialsUnencrypted,
    /// The token file cannot be read; the last token stays in use. To do: see why the file cannot be read.
    TokenUnreadable,
    /// The CA file was replaced; the new CAs are trusted from now on.
    CaReplaced,
    /// The CA file was replaced and cannot be used; the last CAs stay in use. To do: correct the file.
    CaUnusable,
    /// The kubeconfig was replaced and is in use.
    KubeconfigReplaced,
    /// The kubeconfig was replaced and cannot be used; the last one stays in use. To do: correct the file.
    KubeconfigUnusable,
    /// The credentials for a side will end in 30, 7 or 1 days. To do: renew them, see `advice`.
    CredentialsEnding,
    /// The credentials for a side have ended, by the clock of this machine. To do: see `advice`.
    CredentialsEnded,
    /// The hub's token was renewed and is in use.
    TokenRenewed,
    /// The hub gives no new token; the present one stays in use until it ends. To do: see `advice`.
    TokenNotRenewed,
    /// The renewed token is in use, but not kept for a restart. To do: see `advice`.
    TokenNotKept,
    /// The hub's kubeconfig has no token that can be renewed. To do: see `advice`.
    NothingToRenew,
    /// A request takes long, while the side answers others. To do: see what holds it up at that server, such as a
    /// webhook.
    StillWaiting,
    /// Hub and edge are one cluster; nothing is synced as long as this lasts. To do: correct one of the kubeconfigs.
    SameCluster,
    /// Hub and edge are two clusters again; syncing continues.
    TwoClusters,
    /// The side has nothing to distinguish it from another one, so no delete is held if it is recreated. To do: create
    /// a namespace `default` there, or allow the syncer to get `logicalclusters` in kcp.
    IdentityUnknown,
    /// What distinguishes the side from another one cannot be read. To do: see `advice`.
    IdentityUnreadable,
    /// The side has gone back to older versions, as after a restore; everything is read again. To do: check that the
    /// restore was meant.
    VersionsWentBack,
    /// The hub has no `SyncerConfig` and no `EdgeSyncConfig`; the syncer waits for one. To do: create one.
    NoConfigs,
    /// The hub does not serve the types of the configs. To do: apply `manifests/crds` to the hub, or bind the API.
    ConfigsNotServed,
    /// A part of a config cannot be followed; the rest is. To do: correct the field.
    ConfigInvalid,
    /// That part is not a problem any more.
    ConfigCorrected,
    /// A selected type is not served; it is synced as soon as it appears. To do: install the CRD at that side, or
    /// correct the config.
    TypeNotServed,
    /// The type is served now, and synced.
    TypeServed,
    /// A config no longer selects types that are not served.
    TypeDeselected,
    /// The hub lacks a namespace that a config selects; what is in it is synced as soon as it is there. To do: create it
    /// at the hub, or correct the config.
    NamespaceMissing,
    /// The hub has that namespace now.
    NamespaceFound,
    /// The side with the copies serves another version of the type, which is used there.
    OtherVersionUsed,
    /// A type is synced at another version than that at which its objects are stored, which may have more fields. To do:
    /// name the stored version in the config, if both sides serve it.
    NotStoredVersion,
    /// The types that a side serves cannot be read. To do: see `advice`.
    DiscoveryFailed,
    /// What defines a type at the hub cannot be read. To do: see `advice`.
    DefinitionUnreadable,
    /// The syncer may not read what defines types: when the hub deletes a type, its copies are deleted too. To do:
    /// allow it to get `customresourcedefinitions`, and in kcp to list `apibindings`.
    DefinitionsForbidden,
    /// A copy was created. `more` counts those without a line of their own.
    ObjectCreated,
    /// A copy was updated.
    ObjectUpdated,
    /// An object that was there is a copy now.
    ObjectAdopted,
    /// A copy was deleted.
    ObjectDeleted,
    /// A copy is preserved without the syncer's marks.
    ObjectReleased,
    /// A copy was deleted and created again, because it cannot be updated.
    ObjectReplaced,
    /// A copy was marked as created once; it is not updated from now on.
    ObjectCreateOnly,
    /// A namespace that it made and does not use any more was deleted.
    NamespaceDeleted,
    /// Namespaces that it made and does not use any more are kept, as the server does not allow more. To do: delete them,
    /// or grant what `gen rbac` prints as optional; of `publish`: `manifests/publish/namespaces`.
    NamespaceLeft,
    /// The object in the place of a copy is not the syncer's; it is not touched. To do: see `advice`: delete, rename
    /// or deselect one of the two.
    Conflict,
    /// A copy of an earlier conversion has the name. To do: delete that copy, or its origin.
    NameTaken,
    /// A copy whose origin is gone was made from another hub (for upsync: edge) than all others, and is preserved. To do:
    /// give each syncer its own `--sync-target-uid`, if another one serves that hub; delete the copy if that hub was
    /// replaced for good.
    CopyOfAnotherCluster,
    /// A rule at the edge does not allow this object or type. To do: change the rule in `rule` if the object is to be
    /// synced.
    Denied,
    /// A part of objects of this type is not synced: `part` says which. To do: nothing, if nobody needs it at the other
    /// side.
    PartNotSynced,
    /// The copy of a CRD keeps versions that its origin has dropped, since its side may have objects stored at them. To do: write
    /// these objects there again, and remove the version from the status of the CRD there.
    OldVersionKept,
    /// Objects wait for a namespace that is missing at the edge and that no config selects. To do: add an entry of
    /// kind Namespace, or create it at the edge.
    NamespaceNotSelected,
    /// The syncer has no permission for this. To do: grant the permission that `error` names.
    Forbidden,
    /// A server rejects an object: validation, a webhook, a policy, a quota or its size. To do: see `error` and
    /// `advice`; correct the object or the rule.
    ObjectRejected,
    /// An object that has to be deleted first has been waiting for its finalizers for some time. To do: see why their controllers do not
    /// remove them.
    DeleteBlocked,
    /// Something failed at a side for another reason; it is tried again. To do: see `advice`.
    RequestFailed,
    /// A status cannot be returned to the hub: `doing` names the first one of its type. To do: see `error` and
    /// `advice`.
    StatusFailed,
    /// Objects of a type cannot be watched or listed. To do: see `advice`.
    WatchFailed,
    /// A server has sent an object without readable metadata. To do: look for a proxy that changes answers.
    ObjectUnreadable,
    /// Whether copies of a deleted type remain cannot be read. To do: see `advice`.
    LeftoverUnreadable,
    /// All that the configs select was compared and, if need be, written, for the first time. To do: see the other lines for
    /// what is out of sync.
    InSync,
    /// What had failed works again.
    Recovered,
    /// More objects fail than have lines. To do: look at the log at debug level.
    MoreFailing,
    /// Somebody else has changed or deleted a copy; it is corrected. `manager` and `fields` say who and what; `more` counts
    /// those without a line of their own. To do: nothing if it ends; change the object at its origin instead.
    CopyDrifted,
    /// Something keeps changing a copy; it is corrected with increasing back-off. To do: stop it: `manager` and
    /// `fields` say who and what.
    CopyChangedRepeatedly,
    /// Something keeps deleting a copy, or takes the syncer's label from it; it is recreated with increasing back-off.
    /// To do: see `advice`.
    CopyDeletedRepeatedly,
    /// So many finished Jobs are gone at the edge, unknown to the hub, that the record holds no more. To do: restart the
    /// syncer only when the hub has their statuses.
    FinishedJobForgotten,
    /// The syncer of another sync target writes the status of the same hub objects. To do: select them for one of the two.
    StatusOfAnother,
    /// Deletes are held, for the reason in `because`. To do: look at that side; `advice` says how to confirm them.
    DeletesHeld,
    /// Held deletes are carried out: they were confirmed, or the time is over.
    DeletesReleased,
    /// Deletes are not held any more, since what they were held for is over.
    HoldEnded,
    /// A token on a config confirms no deletes that are held. To do: use a token in `advice`, or remove the
    /// annotation.
    ConfirmationUnknown,
    /// What is synced and what fails cannot be written to the status of a config. To do: see `advice`.
    ConfigStatusFailed,
    /// The hub stores the heartbeat of configs alone. To do: apply the CRDs of this version to the hub.
    ConfigStatusNotKept,
    /// A side takes no Events from the syncer. To do: allow it to create and patch `events.events.k8s.io`.
    EventsRefused,
    /// The object that stands for this edge at the hub cannot be written; all else goes on. To do: see `advice`.
    EdgeNotWritten,
    /// The heartbeat on a config cannot be written. To do: see `advice`.
    HeartbeatFailed,
    /// The hub has accepted the heartbeat and not stored it. To do: apply the CRDs of this version to the hub.
    HeartbeatNotKept,
    /// The record of synced types cannot be written or read. To do: see `advice`.
    RecordFailed,
    /// The syncer may not keep its record; copies that are deselected while it is down are preserved. To do: allow it
    /// to get, create and patch that `ConfigMap`.
    RecordForbidden,
    /// The record can be kept now.
    RecordKept,
    /// A part of the record cannot be what it should be, and is not believed. To do: see `advice`.
    RecordUnbelievable,
    /// The record of an earlier syncer cannot be read; copies of types that this one does not select are preserved.
    /// To do: allow the syncer to get that `ConfigMap`, or delete it.
    FormerRecordForbidden,
    /// The server ends each watch at once, so there are fewer of them. To do: see what stands before the server.
    WatchShort,
    /// Another syncer leads; this one waits.
    Standby,
    /// This syncer leads; syncing begins.
    Leading,
    /// This syncer does not lead any more; syncing has stopped. To do: see `because`.
    LeadershipLost,
    /// The Lease was released; a standby may take over.
    LeaseReleased,
    /// The Lease could not be released; a standby takes over when it expires.
    LeaseNotReleased,
    /// The Lease cannot be read or written; it is tried again. To do: see `error`.
    LeaseFailed,
    /// The edge refuses the Lease, so nothing is synced. To do: allow the syncer to get, create and patch
    /// `leases.coordination.k8s.io`.
    LeaseForbidden,
    /// The Lease can be used again.
    LeaseUsable,
    /// SIGHUP has come, so lines at debug level are written for ten minutes.
    LogLevelRaised,
    /// Those ten minutes are over.
    LogLevelRestored,
    /// SIGHUP has come, and lines at debug level are written anyway.
    SignalIgnored,
    /// The clock of a side and that of this machine differ by more than 30 s. To do: set the one that is wrong.
    ClockDiffers,
    /// They do not differ by so much any more.
    ClockAgrees,
    /// This is a dry run: nothing is changed at either side.
    DryRun,
    /// In a dry run: what would be done to an object.
    WouldChange,
    /// In a dry run: all that configs select was tried; what is held, waits or fails.
    DryRunComplete,
    /// A request for health or metrics broke off, or took too long. To do: nothing, unless a probe fails.
    HealthRequestFailed,
    /// Flags of the Go syncer were given that have no effect. To do: remove them when it suits you.
    FlagsIgnored,
    /// A request was refused and is sent again with renewed credentials.
    CredentialsRenewed,
    /// The renewed token was written to the Secret or file, unless it is there already.
    TokenKept,
    /// Some CA certificates cannot be parsed. To do: nothing, if the right one is among the others.
    CaPartlyUnusable,
    /// A request got no answer, so the whole side was asked.
    SideProbed,
    /// One more connection is used, because the others are full.
    ConnectionAdded,
    /// The server has API priority and fairness; no limit per second applies.
    RateLimitLifted,
    /// A request is sent.
    Request,
    /// The hub serves one of the two kinds of configs only.
    ConfigKindNotServed,
    /// CRDs cannot be watched, so the side is polled for new types. To do: allow the syncer to watch CRDs, for new
    /// types to be found sooner.
    CrdsNotWatched,
    /// A namespace that the syncer made at the hub, or `publish` on the service cluster, is not used any more, but is not
    /// empty.
    NamespaceKept,
    /// A rule at the edge does not allow this object, each time.
    ObjectDenied,
    /// An object waits for its namespace.
    NamespaceAwaited,
    /// What has failed fails again. To do: nothing: the first failure has its own line.
    StillFailing,
    /// A copy was refused as a whole because of fields that others have added; they are removed.
    OthersFieldsRemoved,
    /// An object was compared and, if need be, written.
    ObjectSynced,
    /// A status was returned to the hub.
    StatusReturned,
    /// An object is tried again after a wait.
    RetryScheduled,
    /// An object has changed between read and write; it is read again.
    ChangedMeanwhile,
    /// An Event was not written. To do: nothing: conditions and log say the same.
    EventDropped,
    /// The record was written before the end.
    RecordWritten,
    /// The server has ended a watch.
    WatchEnded,
    /// The server refuses watches from the last version, so it is listed again.
    WatchRefused,
    /// The last version is too old to watch from, so it is listed again.
    VersionExpired,
    /// The server has no streaming lists, so pages are read.
    StreamingRefused,
    /// A page broke off, so smaller ones are read.
    PageHalved,
    /// A server has shown an older version than before; it is listed again.
    ObjectOutdated,
    /// The work of a leader has ended.
    WorkEnded,
    /// The workspaces of a type are initialized for these targets.
    WorkspaceTypeServed,
    /// The workspaces of a type are not initialized any more: no target names it, or it is gone.
    WorkspaceTypeLeft,
    /// The type of a target is not there, or its workspaces wait for nobody. To do: see `advice`.
    WorkspaceTypeUnusable,
    /// An `InitTarget` cannot be understood. To do: correct it.
    TargetInvalid,
    /// A workspace is not initialized yet, and why. To do: see `advice`.
    WorkspaceFailed,
    /// A workspace is initialized, and no longer waits for this initializer.
    WorkspaceInitialized,
    /// The status of an InitTarget could not be written. To do: see `advice`.
    TargetStatusFailed,
    /// Somebody had put an initializer back that was off; it is off again.
    InitializerBack,
    /// An object was created in a workspace.
    WorkspaceObjectCreated,
    /// An Event could not be written.
    EventFailed,
    /// A PublishedResource has a schema.
    Published,
    /// A PublishedResource is not published. To do: see `advice`.
    PublishFailed,
    /// The APIExport has got other schemas or claims.
    ExportChanged,
    /// The APIExport could not be updated. To do: see `advice`.
    ExportFailed,
    /// Somebody has bound the APIExport.
    ExportBound,
    /// Nobody has bound the APIExport yet.
    ExportUnbound,
    /// A workspace has bound the APIExport no longer.
    WorkspaceUnbound,
    /// The objects of a shard are synced.
    ShardServed,
    /// A shard is not one of the APIExport any more.
    ShardLeft,
    /// An object of a consumer is not in sync. To do: see `advice`.
    ObjectFailed,
    /// Objects are synced no longer, and wait for the agent when they are deleted. To do: see `advice`.
    ObjectsLeft,
    /// The copy of an object that is gone is left on the service cluster. To do: see `advice`.
    CopyLeft,
}
