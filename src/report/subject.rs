//! What a streak of failures is about, and how its lines name it.

use std::hash::Hash;

use driver::advice::{is_refused_as_invalid, is_terminating};
use driver::failures::Failing;
use kube_lite::logging::LogReason;
use kube_lite::{Error, is_of_kubernetes};

use crate::side::Side;

/// What a streak of failures is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A whole side cannot be reached.
    Side(Side),
    /// A side does not accept the syncer's credentials, for whatever it asks.
    Credentials(Side),
    /// Something else than a Kubernetes API answers in the place of a side.
    Stranger(Side),
    /// Something of that kind and name on a side.
    Thing(Side, Topic, String),
}

/// What kind of thing it is, which determines how it is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Topic {
    /// An object, as `Kind/namespace/name`.
    Object,
    /// The heartbeat on a config, which is named like an object.
    Heartbeat,
    /// What this edge says of a config, named like that.
    ConfigStatus,
    /// The object that stands for this edge, named like that.
    Edge,
    /// The record of synced types, named as the object that it is.
    Record,
    /// What distinguishes the side from another one, named as the object that it is.
    Identity,
    /// Watching a type, `deployments.apps`, or `deployments.apps/NAMESPACE` for one namespace of it.
    Watch,
    /// The statuses of a type.
    Status,
    /// What defines a type.
    TypeDefinition,
    /// Copies that remain of a type that is gone.
    Leftover,
    /// The types of a group and version, `apps/v1`, or of all without a name.
    Discovery,
    /// The types of the configs; without a name.
    Configs,
    /// Some object without readable metadata; without a name.
    Unreadable,
    /// Hub and edge, which are one cluster.
    Clusters,
}

impl Subject {
    /// The side that it is about.
    pub fn side(&self) -> Side {
        let (Self::Side(side) | Self::Credentials(side) | Self::Stranger(side) | Self::Thing(side, ..)) = self;
        *side
    }

    /// What it is called; empty for a whole side.
    pub fn name(&self) -> &str {
        match self {
            Self::Thing(.., name) => name,
            _ => "",
        }
    }

    /// An object, as `Kind/namespace/name`.
    pub fn object(side: Side, name: String) -> Self {
        Self::Thing(side, Topic::Object, name)
    }

    /// What can be done about the error of such a thing, if that does not follow from the error alone.
    pub(super) fn advice(&self, error: &Error) -> Option<&'static str> {
        let Self::Thing(side, topic, name) = self else {
            return None;
        };
        let is_immutable = *topic == Topic::Record && error.status().is_some_and(|status| status.code == 422);
        let is_refused = is_refused_as_invalid(error) || is_immutable;
        Some(match topic {
            Topic::Configs => "apply manifests/crds to the hub, or bind the API",
            Topic::Unreadable if matches!(error, Error::BadAnswer(_)) => {
                "see what changes answers on the way, such as a proxy; all other objects are synced"
            }
            Topic::Object | Topic::Clusters => return None,
            Topic::Edge if error.is_forbidden() => {
                "all else goes on; start the syncer with the --sync-target-name that edge-syncer gen was given, and run that \
                 command again; or apply what edge-syncer gen rbac prints"
            }
            _ if !is_refused => return None,
            Topic::Record => {
                "see the words: what refuses that ConfigMap at the edge has to allow it; if it is immutable, delete it: it is \
                 made again"
            }
            Topic::Heartbeat | Topic::ConfigStatus | Topic::Edge => {
                "apply the CRDs of this version at the hub; it is tried again"
            }
            Topic::Status if *side == Side::Hub && is_of_a_crd(name) => {
                "the hub's CRD of this type does not allow that status: apply the edge's version of the CRD at the hub; it is \
                 tried again, and other statuses of the type are returned meanwhile"
            }
            Topic::Status if *side == Side::Hub => {
                "the hub does not allow what the edge has allowed, mostly as an older version of Kubernetes: update the hub; it \
                 is tried again, and other statuses of the type are returned meanwhile"
            }
            Topic::Watch
            | Topic::Status
            | Topic::Identity
            | Topic::TypeDefinition
            | Topic::Leftover
            | Topic::Discovery
            | Topic::Unreadable => {
                "no object is wrong: the server, or a proxy before it, does not take such a request; see the words and its \
                 log; it is tried again"
            }
        })
    }

    /// How its lines name it: two keys, of which a value may be empty.
    pub(super) fn keys(&self) -> [(&'static str, &str); 2] {
        let Self::Thing(_, topic, name) = self else {
            return [("object", ""), ("namespace", "")];
        };
        let (name, namespace) = match topic {
            Topic::Watch => name.split_once('/').unwrap_or((name, "")),
            _ => (&**name, ""),
        };
        [(topic.key(), name), ("namespace", namespace)]
    }
}

impl Failing for Subject {
    fn is_thing(&self) -> bool {
        matches!(self, Self::Thing(..))
    }

    fn side(&self) -> impl Hash {
        Subject::side(self)
    }
}

impl Topic {
    /// True if it is named by a type.
    pub fn is_of_type(self) -> bool {
        matches!(self, Self::Watch | Self::Status | Self::TypeDefinition | Self::Leftover)
    }

    fn key(self) -> &'static str {
        match self {
            Self::Object
            | Self::Heartbeat
            | Self::ConfigStatus
            | Self::Edge
            | Self::Record
            | Self::Identity
            | Self::Configs
            | Self::Unreadable
            | Self::Clusters => "object",
            Self::Watch | Self::Status | Self::TypeDefinition | Self::Leftover => "resource",
            Self::Discovery => "group_version",
        }
    }

    /// What kind of line it is that says that it fails in this way, and its words.
    pub(super) fn reason(self, error: &Error) -> (LogReason, &'static str) {
        match self {
            Self::Heartbeat if matches!(error, Error::WithoutEffect(_)) => {
                (LogReason::HeartbeatNotKept, "the hub does not store the heartbeat")
            }
            Self::Heartbeat => (LogReason::HeartbeatFailed, "the heartbeat cannot be written"),
            Self::ConfigStatus => (
                LogReason::ConfigStatusFailed,
                "the status of a config cannot be written",
            ),
            Self::Edge => (
                LogReason::EdgeNotWritten,
                "the object that stands for this edge at the hub cannot be written",
            ),
            Self::Record
                if error
                    .status()
                    .is_some_and(|status| matches!(status.code, 403 | 404 | 422)) =>
            {
                (
                    LogReason::RecordForbidden,
                    "cannot keep the record of synced types; copies that are deselected while the syncer is down are preserved",
                )
            }
            Self::Record => (LogReason::RecordFailed, "the record of synced types cannot be kept"),
            Self::Configs => (
                LogReason::ConfigsNotServed,
                "the hub does not serve the types of the configs",
            ),
            Self::Clusters => (LogReason::SameCluster, "hub and edge are one cluster"),
            _ if is_permission(error) => (LogReason::Forbidden, "the syncer has no permission"),
            Self::Identity => (LogReason::IdentityUnreadable, "cannot read what identifies a side"),
            Self::Watch => (LogReason::WatchFailed, "objects of a type cannot be watched"),
            Self::Status => (LogReason::StatusFailed, "a status cannot be returned to the hub"),
            Self::TypeDefinition => (LogReason::DefinitionUnreadable, "cannot read what defines a type"),
            Self::Leftover => (
                LogReason::LeftoverUnreadable,
                "cannot read what remains of a deleted type",
            ),
            Self::Discovery => (LogReason::DiscoveryFailed, "cannot read which types a side serves"),
            Self::Unreadable => (LogReason::ObjectUnreadable, "an object has no readable metadata"),
            Self::Object => of_object(error),
        }
    }
}

/// True for a type, `resource.group`, that may come from a CRD.
fn is_of_a_crd(resource: &str) -> bool {
    resource
        .split_once('.')
        .is_some_and(|(_, group)| !is_of_kubernetes(group))
}

fn of_object(error: &Error) -> (LogReason, &'static str) {
    match error {
        Error::Ending(_) => (
            LogReason::DeleteBlocked,
            "an object that has to be deleted first waits for its finalizers",
        ),
        Error::Status(status) if error.is_refusal() && !is_terminating(status) => {
            (LogReason::ObjectRejected, "an object is rejected")
        }
        _ => (LogReason::RequestFailed, "a request failed"),
    }
}

/// True if the server itself says that the syncer lacks a permission.
pub fn is_permission(error: &Error) -> bool {
    error.is_forbidden() && error.status().is_some_and(|status| status.message.contains(" cannot "))
}

#[cfg(test)]
mod tests {
    use driver::advice::advice;
    use kube_lite::Place;

    use super::*;

    fn error(code: u16, message: &str) -> Error {
        let body = serde_json::json!({"kind": "Status", "reason": "x", "message": message});
        Error::from_answer(code, None, body.to_string().as_bytes())
    }

    #[test]
    fn a_failure_has_the_reason_of_what_is_to_be_done() {
        let nobody = error(403, "pods is forbidden: User \"x\" cannot list resource \"pods\"");
        let without_effect = Error::WithoutEffect(String::new());
        for (topic, error, expected) in [
            (Topic::Object, &nobody, LogReason::Forbidden),
            (Topic::Watch, &nobody, LogReason::Forbidden),
            (Topic::Heartbeat, &nobody, LogReason::HeartbeatFailed),
            (Topic::Heartbeat, &without_effect, LogReason::HeartbeatNotKept),
            (
                Topic::Object,
                &error(403, "admission webhook denied it"),
                LogReason::ObjectRejected,
            ),
            (
                Topic::Object,
                &error(403, "the namespace is being terminated"),
                LogReason::RequestFailed,
            ),
            (Topic::Object, &error(422, "invalid"), LogReason::ObjectRejected),
            (Topic::Object, &error(500, "no"), LogReason::RequestFailed),
            (Topic::Object, &Error::Ending(Vec::new()), LogReason::DeleteBlocked),
            (Topic::Watch, &error(500, "no"), LogReason::WatchFailed),
        ] {
            assert_eq!(topic.reason(error).0, expected, "{topic:?} {error}");
        }
    }

    #[test]
    fn what_is_refused_as_invalid_has_the_advice_of_its_kind() {
        const OBJECT: &str = "correct the object";
        let large = Error::BadAnswer("a list with an item of more than 8388608 bytes, or of more than 1 bytes".into());
        let webhook = error(400, "admission webhook \"x\" denied the request: no");
        for (topic, error, expected) in [
            (Topic::Object, &error(400, "no"), OBJECT),
            (Topic::Object, &error(422, "no"), OBJECT),
            (Topic::Watch, &error(400, "no"), "no object is wrong"),
            (Topic::Discovery, &error(400, "no"), "no object is wrong"),
            (Topic::Identity, &error(422, "no"), "no object is wrong"),
            (Topic::Status, &error(422, "no"), "as an older version of Kubernetes"),
            (Topic::Record, &error(422, "no"), "that ConfigMap"),
            (Topic::Heartbeat, &error(422, "no"), "CRDs of this version"),
            (Topic::Heartbeat, &webhook, "named admission webhook"),
            (Topic::Watch, &error(500, "no"), "it is tried again"),
            (Topic::Watch, &large, "larger than what is read"),
            (Topic::Leftover, &large, "larger than what is read"),
            (Topic::Unreadable, &Error::BadAnswer("no name".into()), "a proxy"),
            (Topic::Watch, &Error::BadAnswer("<html>".into()), "check the address"),
        ] {
            let subject = Subject::Thing(Side::Hub, topic, "a".into());
            let place = Place::default();
            let found = subject.advice(error).map_or_else(|| advice(error, &place), Into::into);
            assert!(found.contains(expected), "{topic:?} {error}: {found}");
        }
    }

    // Of a built-in type, the advice was to apply a CRD; and of a read at the edge that was refused, to change the hub's.
    #[test]
    fn a_status_that_is_refused_has_the_advice_of_its_type_and_side() {
        for (side, name, expected) in [
            (Side::Hub, "gauges.example.org", "the edge's version of the CRD"),
            (Side::Hub, "deployments.apps", "update the hub"),
            (Side::Hub, "pods", "update the hub"),
            (Side::Edge, "gauges.example.org", "no object is wrong"),
        ] {
            let subject = Subject::Thing(side, Topic::Status, name.into());
            let found = subject.advice(&error(422, "no")).unwrap_or_default();
            assert!(found.contains(expected), "{side:?} {name}: {found}");
        }
    }

    #[test]
    fn names_have_a_key_of_their_kind() {
        let of = |topic, name: &str| Subject::Thing(Side::Hub, topic, name.to_owned());
        for (subject, expected) in [
            (
                of(Topic::Object, "ConfigMap/a/b"),
                [("object", "ConfigMap/a/b"), ("namespace", "")],
            ),
            (of(Topic::Watch, "pods"), [("resource", "pods"), ("namespace", "")]),
            (
                of(Topic::Watch, "pods/shop"),
                [("resource", "pods"), ("namespace", "shop")],
            ),
            (
                of(Topic::Discovery, "apps/v1"),
                [("group_version", "apps/v1"), ("namespace", "")],
            ),
            (Subject::Side(Side::Hub), [("object", ""), ("namespace", "")]),
        ] {
            assert_eq!(subject.keys(), expected);
        }
    }
}
