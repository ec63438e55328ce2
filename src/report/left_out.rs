//! Parts of objects that are not synced, which one line says for all objects of a type.

use std::collections::BTreeSet;
use std::fmt::Display;

use kube_lite::logging::{self, LogReason};
use log::Level;

use crate::side::Side;

/// A part of an object that does not reach the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeftOut {
    /// `spec.ephemeralContainers` of a Pod.
    EphemeralContainers,
    /// A status that is no object, such as a text.
    StatusOfNoObject,
    /// The status of an object that had one before, and is the same one.
    StatusRemoved,
}

impl LeftOut {
    fn part(self) -> &'static str {
        match self {
            Self::EphemeralContainers => "spec.ephemeralContainers",
            Self::StatusOfNoObject | Self::StatusRemoved => "status",
        }
    }

    fn message(self) -> &'static str {
        match self {
            Self::EphemeralContainers => "not synced, since ephemeral containers belong to the Pod that runs",
            Self::StatusOfNoObject => {
                "not returned, since a status is an object; further objects of this type have no line"
            }
            Self::StatusRemoved => {
                "a status was removed, and the hub keeps the last one that it got; further objects of this type have no line"
            }
        }
    }
}

/// What was said already: of which types, and what.
#[derive(Debug, Default)]
pub(super) struct Said(BTreeSet<(String, LeftOut)>);

impl Said {
    /// Logs that a part of an object is not synced, with the first object of its type (`resource.group`).
    pub(super) fn says(&mut self, side: Side, resource: String, object: impl Display, what: LeftOut) {
        if self.0.insert((resource, what)) {
            let keys: [(&str, &dyn Display); 3] = [("side", &side.word()), ("object", &object), ("part", &what.part())];
            logging::write(
                Level::Info,
                module_path!(),
                LogReason::PartNotSynced,
                what.message(),
                &keys,
            );
        }
    }
}
