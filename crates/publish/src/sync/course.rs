//! The way of a pass: what is done first, and what after that.

use serde_json::Value;

use super::{Pass, Settled, hash_of};
use crate::copy;
use crate::keys::ObjectKey;
use crate::lifecycle::{self, Next, Pair};
use crate::trouble::Stop;

impl Pass<'_> {
    /// All steps, as far as they can be done now.
    pub(super) async fn all(&mut self) -> Result<Settled, Stop> {
        let at_hand = self.copy_at_hand().await;
        let Some(object) = self.read(at_hand.as_ref()).await? else {
            return self.without_origin().await;
        };
        let is_ending = lifecycle::is_in_deletion(&object);
        let is_known = lifecycle::has_finalizer(&object) || self.job.turn.copy.is_some();
        self.is_ending.set(is_ending);
        self.is_known.set(is_known);
        // The end of a known object does not depend on filters, nor on a namespace that may be gone.
        let matches = if is_ending {
            is_known
        } else {
            self.is_wanted(&object).await?
        };
        if !is_known && !matches {
            return Ok(if is_ending {
                Settled::LeftToOthers
            } else {
                Settled::Filtered
            });
        }
        if self.route.resource.workspace_paths {
            self.key.workspace_path = match self.workspace_path().await {
                // Its end does not depend on what the consumer does not let the agent read.
                Err(stop) if is_ending && matches!(stop, Stop::Fails(_)) => None,
                path => Some(path?),
            };
        }
        // One that was never seen before has no copy: nobody has to search for it.
        let copy = if is_known {
            self.find_copy_of(&object, at_hand).await?
        } else {
            None
        };
        if let (true, None, Some(copy)) = (is_ending, &self.key.workspace_path, &copy) {
            self.key.workspace_path = ObjectKey::of_copy(copy).and_then(|key| key.workspace_path);
        }
        // Somebody else may have deleted the copy: then what they are called follows from what it would be, or is written down.
        let has_related = is_ending && self.has_related().await?;
        let planned = if is_ending && copy.is_none() {
            self.plan(&object).ok().map(|(_, _, planned)| planned)
        } else {
            None
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
            (Next::RemoveFinalizer, _) => self.release(&object, planned.as_ref()).await,
            (Next::CleanUpRelated, Some(copy)) => {
                if self.clean_up(&object, &copy).await? {
                    self.delete_copy(&object, &copy).await
                } else {
                    // Their end is no news to anybody.
                    Ok(Settled::Later)
                }
            }
            (Next::CleanUpRelated, None) => {
                if self.clean_up(&object, planned.as_ref().unwrap_or(&Value::Null)).await? {
                    self.release(&object, planned.as_ref()).await
                } else {
                    Ok(Settled::Later)
                }
            }
            // Somebody else has deleted it: what is related to it is found as long as it is there.
            (Next::WaitForCopy, Some(copy)) if is_ending => {
                self.clean_up(&object, &copy).await?;
                Ok(Settled::Waits)
            }
            // Somebody else's finalizer, the end of the copy, or what the filter does not let through any more: all are news.
            _ => Ok(Settled::Waits),
        }
    }

    /// Both are there.
    async fn bring(&self, object: &Value, copy: Value) -> Result<Settled, Stop> {
        let wanted = self.mutated(object, &copy)?;
        let kept = copy::state(&wanted, self.subresources());
        let state = hash_of(&kept);
        let is_marked = copy::patch(&wanted, &wanted, &copy, &self.terms(), &self.key).is_none();
        let copy = if self.is_last(state) && is_marked {
            copy
        } else {
            self.update(object, (&wanted, &kept), copy).await?
        };
        self.return_status(object, &copy).await?;
        self.relate(object, &copy).await?;
        Ok(self.done(state, &copy))
    }

    /// The copy. Where the object has changed, the last state is read meanwhile: both are needed then.
    async fn find_copy_of(&self, object: &Value, at_hand: Option<Value>) -> Result<Option<Value>, Stop> {
        // Rules may need the copy to say what is wanted.
        let has_changed = || {
            let wanted = self.mutated(object, &Value::Null);
            wanted.is_ok_and(|wanted| !self.is_last(hash_of(&copy::state(&wanted, self.subresources()))))
        };
        if at_hand.is_some() || self.is_ending.get() || !has_changed() {
            return self.find_copy(at_hand).await;
        }
        let (copy, _) = tokio::join!(self.find_copy(at_hand), self.read_states());
        copy
    }

    /// True if this, in a few bits, was wanted when both were last in sync.
    fn is_last(&self, state: u64) -> bool {
        let last = self.job.turn.last.as_ref();
        last.is_some_and(|last| last.state == state)
    }
}
