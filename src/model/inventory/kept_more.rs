//! Copies that have to keep what their origins have dropped, until their side allows otherwise.

use kube_lite::ObjectName;

use super::Inventory;

impl Inventory {
    /// The copy has to keep what its origin has dropped, or not any more, as a worker says. True if that may be over already:
    /// the copy has changed since the worker took it.
    pub(in crate::model) fn keeps_more(&mut self, name: &ObjectName, keeps: bool) -> bool {
        let Some(link) = self.objects.get_mut(name) else {
            return false;
        };
        link.keeps_more = keeps;
        link.reported.of_copy() && self.may_keep_less(name)
    }

    /// A copy has changed. If it had to keep what its origin has dropped, a worker has to find out whether it still has to.
    pub(in crate::model) fn may_keep_less(&mut self, name: &ObjectName) -> bool {
        let link = self.objects.get_mut(name);
        let Some(link) = link.filter(|link| link.keeps_more && !link.is_busy() && link.wanted != 0) else {
            return false;
        };
        (link.keeps_more, link.settled) = (false, 0);
        true
    }
}
