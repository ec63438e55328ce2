//! What is done at certain times. The table of it is [`timers`].

use driver::timers;

use super::config_kind::ConfigKind;
use crate::side::Side;

/// The table of what is done at certain times.
pub(super) type Timers = timers::Timers<Timer>;

/// What passes by itself counts as a failure, and is logged, if it comes so often in a row.
pub(super) const LASTING: u32 = 4;

/// What is done at a certain time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A side is asked what it serves.
    Discovery(Side),
    /// A side is asked which cluster it is.
    Identity(Side),
    /// A side has come back: it is asked for what may have changed.
    Return(Side),
    /// The record is read or written.
    Record,
    /// Jobs that have finished are written to it, if the hub does not know.
    Finished,
    /// The hub is asked what defines its types.
    Definitions,
    /// Namespaces at the hub are created or deleted.
    NamespaceWrites,
    /// The hub is asked for namespaces that configs select.
    SelectedNamespaces,
    /// The heartbeat is written to the configs.
    Heartbeat,
    /// It is looked whether the status of the configs is to be written, or that is being written.
    ConfigStatus,
    /// Events are written at a side.
    Events(Side),
    /// The hub is asked for a kind of configs that it did not serve.
    Configs(ConfigKind),
    /// Copies whose end has not been reported for long are listed again.
    Ends,
    /// The hub is asked whether what defines the kinds of configs is in place.
    ConfigKinds,
    /// What configs and discovery say is planned, after a pause, or what is being planned continues.
    Plan,
    /// Keys are put off that found no time for that in one turn of the loop.
    Work,
}
