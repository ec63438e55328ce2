//! What the events of a feed do, whichever it is.

use driver::source::{SourceId, Versions};
use kube_lite::Error;

use super::Model;
use crate::sync::meta::{Meta, Object};

/// What the events of a feed do. `id` is the source that has reported them.
pub(super) trait Handler {
    /// A complete list begins.
    fn begins(&self, model: &mut Model, id: SourceId);

    /// An object is there.
    fn object(&self, model: &mut Model, id: SourceId, object: Object) -> Result<(), Error>;

    /// The list under way has named an object of which there is no news.
    fn unchanged(&self, model: &mut Model, id: SourceId, meta: Meta);

    /// An object was deleted; how it was last.
    fn gone(&self, model: &mut Model, id: SourceId, last: &Object);

    /// A list is complete.
    fn listed(&self, model: &mut Model, id: SourceId, versions: Versions);

    /// The source can read, again.
    fn up(&self, _model: &mut Model) {}

    /// The source cannot read now.
    fn breaks_off(&self, _model: &mut Model, _error: &Error) {}

    /// The side refuses what the source reads. True if the handler has dealt with that; otherwise it is a failure.
    fn is_refused(&self, _model: &mut Model, _error: &Error) -> bool {
        false
    }
}
