//! The way of a pass: what is done first, and what after that.

use serde_json::Value;

use super::{Pass, Settled, copied, hash_of};
use crate::copy;
use crate::lifecycle::{self, Next, Pair};
use crate::trouble::Stop;

impl Pass<'_> {
    /// All steps, as far as they can be done now.
    pub(super) async fn all(&mut self) -> Result<Settled, Stop> {
        let Some(object) = self.read().await? else {
            return Ok(Settled::Gone);
        };
        let matches = self.is_wanted(&object).await?;
        let is_known = lifecycle::has_finalizer(&object) || self.job.turn.copy.is_some();
        if !is_known && (!matches || lifecycle::is_in_deletion(&object)) {
            return Ok(Settled::Filtered);
        }
        if self.route.resource.workspace_paths {
            self.key.workspace_path = Some(self.workspace_path().await?);
        }
        // One that was never seen before has no copy: nobody has to search for it.
        let copy = if is_known { self.find_copy().await? } else { None };
        let has_related = match &copy {
            Some(copy) if lifecycle::is_in_deletion(&object) => !self.clean_up(&object, copy).await?,
            _ => false,
        };
        let next = lifecycle::next(&Pair {
            object: &object,
            copy: copy.as_ref(),
            matches,
            has_related,
        });
        match (next, copy) {
            (Next::AddFinalizer, None) => {
                let object = self.accept(&object).await?;
                self.place(&object).await
            }
            (Next::AddFinalizer, Some(copy)) => {
                let object = self.accept(&object).await?;
                self.bring(&object, copy).await
            }
            (Next::Create, _) => self.place(&object).await,
            (Next::Bring, Some(copy)) => self.bring(&object, copy).await,
            (Next::DeleteCopy, Some(copy)) => self.delete_copy(&object, &copy).await,
            (Next::RemoveFinalizer, _) => self.release(&object).await,
            // Somebody else's finalizer, or the end of the copy: both are news.
            (Next::WaitForCopy | Next::WaitForOthers(_), _) => Ok(Settled::Waits),
            // Their end is no news to anybody.
            (Next::CleanUpRelated, _) => Ok(Settled::Later),
            _ => Ok(Settled::Filtered),
        }
    }

    /// Both are there.
    async fn bring(&self, object: &Value, copy: Value) -> Result<Settled, Stop> {
        let wanted = self.mutated(object, &copy)?;
        let hash = hash_of(&copy::state(&wanted, self.subresources()));
        let is_marked = copy::patch(&wanted, &wanted, &copy, &self.terms(), &self.key).is_none();
        let copy = if self.job.turn.state == Some(hash) && is_marked {
            copy
        } else {
            self.update(object, &wanted, copy).await?
        };
        self.return_status(object, &copy).await?;
        self.relate(object, &copy).await?;
        Ok(Settled::Done(hash, copied(&copy)))
    }
}
