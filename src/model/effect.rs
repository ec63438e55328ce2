//! What the model wants done, and what the results are.

use std::rc::Rc;

use driver;
use kube_lite::{Error, ObjectName, ResourceType};

pub(crate) use super::asking::{Answers, DiscoveryRequest, Groups, Lacking};
pub(crate) use super::config_kind::ConfigKind;
pub(crate) use super::definitions::TypeDefinitionAnswers;
pub(crate) use super::dry_run::Remaining;
pub(crate) use super::edge_object::{EdgeBeat, EdgeBeaten, EdgeResult, EdgeSeen, EdgeToWrite};
pub(crate) use super::events::{EventDone, EventKey, EventToWrite};
pub(crate) use super::guard::vanished::Left;
pub(crate) use super::heartbeat::{
    ConfigHeartbeat, ConfigToMark, HeartbeatRequest, HeartbeatResult, Places, StatusesToWrite, StatusesWritten,
};
pub(crate) use super::hub_namespaces::{NamespaceDone, NamespaceEnd, NamespaceStep};
pub(crate) use super::record::kept::{Kept, Names, parse_record, render_record};
use super::{Key, Model};
use crate::plan::CopiesOf;
use crate::side::Side;
use crate::sync::definition::{TypeDefinitions, Withdrawal};
use crate::sync::job::{Failure, Job, Outcome};
use crate::sync::status_return::{Returned, StatusJob};
pub(crate) use driver::Known;

/// What is to be done.
pub(crate) type Effect = driver::Effect<Model>;

/// All that was found and not passed on yet, in its order.
#[derive(Default)]
pub(super) struct Effects(Vec<Effect>);

impl Effects {
    pub(super) fn push(&mut self, effect: Effect) {
        self.0.push(effect);
    }

    pub(super) fn extend(&mut self, effects: impl IntoIterator<Item = Effect>) {
        self.0.extend(effects);
    }

    pub(super) fn request(&mut self, request: Request) {
        self.push(Effect::Request(request));
    }

    pub(super) fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.0)
    }
}

/// Work that talks to a side.
pub(crate) enum Request {
    /// Sync a copy.
    Object(Key, Box<Job>),
    /// Bring a status to the hub.
    Status(Key, Box<StatusJob>),
    /// Ask a side what it serves.
    Discover(Side, DiscoveryRequest),
    /// Read the record of synced types.
    ReadRecord(Names),
    /// Write it.
    WriteRecord(ObjectName, Kept),
    /// Ask a side which cluster it is; with the UID that is expected.
    Identify(Side, Option<String>),
    /// Ask the hub what defines these types.
    Define(Vec<ResourceType>, Rc<TypeDefinitions>),
    /// Ask the hub whether a type is still being deleted there; true if it was gone already.
    Verify(ResourceType, bool, Rc<TypeDefinitions>),
    /// Ask the hub whether what defines these kinds of configs is in place.
    VerifyConfigs(Vec<ConfigKind>, Rc<TypeDefinitions>),
    /// Ask both sides what is left of a type, `resource.group`, that the hub has no longer.
    SearchForLeft(String, Vec<CopiesOf>, Rc<TypeDefinitions>),
    /// Do something about a namespace at the hub.
    Namespace(String, NamespaceStep),
    /// Ask the hub whether it has these namespaces.
    FindNamespaces(Vec<String>),
    /// Write the heartbeat to the configs.
    Heartbeat(HeartbeatRequest),
    /// Apply what this edge says of the configs.
    Statuses(StatusesToWrite),
    /// Write Events at a side.
    Events(Side, Vec<EventToWrite>),
    /// Tell whoever asked for a dry run that all was tried, and what is left. It has no answer.
    Tried(Remaining),
}

/// What a request ends with.
pub(crate) enum Answer {
    /// A worker is done with its key.
    Worked(Key, Done),
    /// A side has been asked what it serves.
    Discovered(Side, Answers),
    /// The record of synced types has been read (`true`) or written.
    Recorded(Result<Box<Kept>, Error>, bool),
    /// A side has been asked which cluster it is.
    Identified(Side, Result<Option<String>, Error>),
    /// The hub has been asked what defines its types.
    Defined(TypeDefinitionAnswers),
    /// The hub has been asked whether a type is still being deleted there.
    Withdrawal(String, Result<Option<Withdrawal>, Error>),
    /// The hub has been asked whether what defines these kinds of configs is in place; why not.
    ConfigKinds(Vec<(ConfigKind, Result<Option<Withdrawal>, Error>)>),
    /// Both sides have been asked what is left of a type that the hub has no longer.
    Vanished(String, Left),
    /// A namespace at the hub has been created or deleted, or the attempt has failed.
    Namespace(NamespaceDone),
    /// The hub has been asked whether it has these namespaces.
    NamespacesFound(Vec<(String, Result<bool, Error>)>),
    /// The heartbeat has been written to the configs.
    Heartbeat(HeartbeatResult),
    /// So has what this edge says of them.
    Statuses(StatusesWritten),
    /// So have Events at a side.
    Events(Side, Vec<(EventKey, EventDone)>),
}

/// What a worker ended with.
pub(crate) enum Done {
    /// It was about the copy.
    Object(Result<Outcome, Failure>),
    /// It was about the status.
    Status(Result<Returned, Failure>),
}
