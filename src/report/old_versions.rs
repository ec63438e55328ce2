//! Versions that copies of CRDs keep though their origins have dropped them.

use std::collections::BTreeMap;
use std::fmt::Display;

use kube_lite::logging::{self, LogReason};
use log::Level;

use crate::side::Side;

/// Which versions the copies keep that have a line.
#[derive(Debug, Default)]
pub(super) struct OldVersions(BTreeMap<(Side, String), Vec<String>>);

impl OldVersions {
    /// A copy (`Kind//name`) now keeps these versions, or none. Logs that, if it is news.
    pub(super) fn are(&mut self, side: Side, copy: &str, kept: &[String]) {
        let key = (side, copy.to_owned());
        if kept.is_empty() {
            self.0.remove(&key);
            return;
        }
        if self.0.insert(key, kept.to_vec()).is_some_and(|known| known == kept) {
            return;
        }
        let (name, versions) = (copy.rsplit('/').next().unwrap_or_default(), kept.join(","));
        let advice = format!(
            "write its objects there again (kubectl get {name} -A -o yaml | kubectl replace -f -), then remove {versions} from \
             status.storedVersions (kubectl patch crd {name} --subresource=status): it goes by itself then"
        );
        let keys: [(&str, &dyn Display); 4] = [
            ("side", &side.word()),
            ("object", &copy),
            ("versions", &versions),
            ("advice", &advice),
        ];
        let message = "a copy keeps versions that its origin has dropped, not served, as objects may be stored at them: its \
                       status.storedVersions names them";
        logging::write(Level::Warn, module_path!(), LogReason::OldVersionKept, message, &keys);
    }
}
