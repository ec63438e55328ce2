//! What is reported of a copy in whose place there is somebody else's object.

use kube_lite::logging::{self, LogReason};
use log::Level;

use super::{Report, Subject};
use crate::side::Side;

impl Report {
    /// Logs that somebody else's object is in the place of a copy, if that is new. `owner` is the sync target of the
    /// syncer that owns it, if that is known. One that `is_kept` is what its side makes for itself, and makes again.
    pub fn conflict(&mut self, side: Side, object: &str, owner: Option<&str>, is_kept: bool) {
        let subject = Subject::object(side, object.to_owned());
        let why = format!("somebody else's object has its name owner={owner:?} kept={is_kept}");
        let message = match owner {
            Some(_) => "not synced, because the syncer of another sync target has made the object that is there",
            None if is_kept => "not synced, because an object of that name is there that its side keeps for itself",
            None => "not synced, because an object of that name is there that the syncer has not made",
        };
        if !self.is_not_synced(&subject, (LogReason::Conflict, &why, message), None) {
            return;
        }
        let advice = match owner {
            None if is_kept => {
                "take it out of the config, or let a conversion give it another name; what is there belongs to that side \
                 and has to stay"
                    .to_owned()
            }
            Some(owner) => format!(
                "take it out of one of the two configs; if the other syncer is gone for good, start this one with \
                 --former-sync-target-uid={owner}"
            ),
            None => "delete or rename one of the two, or take it out of the config".to_owned(),
        };
        let owner = owner.unwrap_or_default();
        logging::write(
            Level::Warn,
            module_path!(),
            LogReason::Conflict,
            message,
            &[
                ("side", &side.word()),
                ("object", &object),
                ("owner", &owner),
                ("advice", &advice),
            ],
        );
    }
}
