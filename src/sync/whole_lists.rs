//! Writing objects with lists that an apply cannot set ([`super::duplicates`]).

use kube_lite::{Cluster, Content, Error};

use super::field_set::Path;
use super::job::Job;
use super::meta::Meta;
use super::object::{Desired, Marks};

impl Desired {
    /// True if a list names a key twice and no other list means the same.
    pub(super) fn has_duplicates(&self) -> bool {
        self.duplicates.are_any()
    }

    /// Where these lists are in a field set.
    pub(super) fn lists_of_duplicates(&self) -> Vec<Path> {
        self.duplicates.paths()
    }

    /// The same with these lists as a create takes them.
    pub(super) fn for_create(&self) -> Self {
        let contents = || {
            let mut contents = self.contents()?;
            self.duplicates.put_into(&mut contents).then_some(contents)
        };
        let contents = self.has_duplicates().then(contents).flatten();
        contents.map_or_else(|| self.clone(), |contents| self.with_contents(&contents))
    }
}

/// Sets lists that name a key twice in a copy at this version, and in the same write what an apply would change beside them.
/// Returns the version that the copy then has; `None` if there is nothing to set, or the apply is refused.
pub(super) async fn set_lists(
    copies: &Cluster,
    job: &Job,
    desired: &Desired,
    version: &str,
) -> Result<Option<String>, Error> {
    let (at, we) = (&job.copy_at, &job.policy.sync_target);
    let marks = Marks {
        at_version: Some(version),
        ..Marks::default()
    };
    let body = desired.body(job.direction, at, we, &marks);
    let applied = match copies.would_apply(&at.resource, &at.name, body).await {
        Ok(applied) => applied,
        // Then the refusal of the apply decides.
        Err(error) if error.is_final() => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(patch) = desired.duplicates.patch_of(&applied, version) else {
        return Ok(None);
    };
    let patched = copies.merge_patch_for(&at.resource, &at.name, patch, Content::Metadata);
    Ok(Some(Meta::of(&at.name, &patched.await?)?.resource_version))
}
