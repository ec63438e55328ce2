//! What is not applied over a copy, since its side has the say: fields that somebody there has set and nobody at the origin
//! has ([`super::kinds::retain_unset`]), and restarts of its pods that are later than the origin's ([`super::restarts`]).
//!
//! The copy is read for it only where its managers show that there may be such a field, and the origin only where there
//! is one.

use kube_lite::fields::from_text;
use kube_lite::{Cluster, Content, Error};
use serde_json::{Map, Value};

use super::field_set::Path;
use super::job::{Failure, Job, failed};
use super::kinds::retain_unset;
use super::managed_fields::{Entries, RevertFrom, beside_ours};
use super::meta::Meta;
use super::object::{Address, Desired};
use super::ownership::{Copy, CopyState};
use crate::side::Side;

/// What a Secret is for, and so no value of it: an apply without it would fill a Secret of any type.
const SECRET_TYPE: [&str; 1] = ["f:type"];

/// What is applied to a copy; `None` if it is all that the origin has.
pub(super) async fn without_it(
    origins: &Cluster,
    copies: &Cluster,
    job: &Job,
    desired: &Desired,
    standing: Copy,
) -> Result<Option<Desired>, Failure> {
    let is_asked = desired.restarts_pods() || standing.others_have_more;
    if standing.state == CopyState::Absent || !is_asked {
        return Ok(None);
    }
    let Some(copy) = read(copies, &job.copy_at).await? else {
        return Ok(None);
    };
    let without = desired.without_earlier_restarts(&copy);
    if !standing.others_have_more {
        return Ok(without);
    }
    let theirs = set_by_others(&copy, job, job.policy.reverts(job.selection));
    let mut paths = theirs.map_err(failed(Side::of(copies), "reading"))?;
    let wanted = without.as_ref().unwrap_or(desired);
    wanted.retain_present(&mut paths);
    let without_theirs = without_unset(origins, job, wanted, paths).await?;
    Ok(without_theirs.or(without))
}

/// It without those of these fields that nobody has set at the origin; `None` if there are none.
pub(super) async fn without_unset(
    origins: &Cluster,
    job: &Job,
    wanted: &Desired,
    mut paths: Vec<Path>,
) -> Result<Option<Desired>, Failure> {
    if paths.is_empty() {
        return Ok(None);
    }
    let origin = match &job.origin_read {
        Some(origin) => Some(origin.clone()),
        None => read(origins, &job.origin).await?,
    };
    let Some(origin) = origin else { return Ok(None) };
    let version = Meta::parse(&origin).map(|meta| meta.version_number());
    let version = version.map_err(failed(Side::of(origins), "reading"))?;
    if version < wanted.version {
        // It does not say who has set what is to be applied.
        let stale = Error::BadAnswer(format!(
            "the object at version {version}, which was at {} before",
            wanted.version
        ));
        return Err(failed(Side::of(origins), "reading")(stale));
    }
    let unset = retain_unset(&mut paths, &origin, &job.origin.resource.api_version());
    unset.map_err(failed(Side::of(origins), "reading"))?;
    Ok(wanted.without(&paths))
}

/// An object as a whole; `None` if its side does not give it: then everything is applied.
async fn read(side: &Cluster, at: &Address) -> Result<Option<bytes::Bytes>, Failure> {
    match side.get(&at.resource, &at.name, Content::Full).await {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_final() => Ok(None),
        Err(error) => Err(failed(Side::of(side), "reading")(error)),
    }
}

/// The fields of a copy that others have set and we do not apply, other than those whose fields are reverted.
fn set_by_others(copy: &[u8], job: &Job, revert_from: RevertFrom<'_>) -> Result<Vec<Path>, Error> {
    let version = job.copy_at.resource.api_version();
    let entries = Entries::of(copy)?;
    let owners = entries.iter().map(|(_, owner)| owner);
    let mut theirs = beside_ours(owners, |owner| {
        !owner.is_reverted(revert_from) && owner.api_version == version
    })?;
    if job.copy_at.resource.is("", "secrets") {
        theirs.leave_out(&SECRET_TYPE);
    }
    Ok(theirs.leaves())
}

impl Desired {
    /// Leaves of these paths those at which it has a value.
    fn retain_present(&self, paths: &mut Vec<Path>) {
        let mut contents = Value::Object(self.contents().unwrap_or_default());
        paths.retain(|path| {
            let mut keys = path.iter();
            keys.try_fold(&mut contents, |at, key| below(at, key)).is_some()
        });
    }

    /// The same without the values at these paths; `None` if it has none there.
    pub(super) fn without(&self, paths: &[Path]) -> Option<Self> {
        let mut contents = Value::Object(self.contents()?);
        let mut is_any = false;
        for (last, path) in paths.iter().filter_map(|path| path.split_last()) {
            let Some(at) = path.iter().try_fold(&mut contents, |at, key| below(at, key)) else {
                continue;
            };
            let field = last.strip_prefix("f:").unwrap_or_default();
            is_any |= at.as_object_mut().is_some_and(|fields| fields.remove(field).is_some());
        }
        contents
            .as_object()
            .filter(|_| is_any)
            .map(|contents| self.with_contents(contents))
    }
}

/// The value under a key of a field set.
fn below<'v>(at: &'v mut Value, key: &str) -> Option<&'v mut Value> {
    match (at, key.split_at_checked(2)?) {
        (Value::Object(fields), ("f:", field)) => fields.get_mut(field),
        (Value::Array(items), ("k:", keys)) => {
            let keys: Map<String, Value> = from_text(keys).ok()?;
            let fits = |item: &&mut Value| keys.iter().all(|(key, value)| item.get(key) == Some(value));
            items.iter_mut().find(fits)
        }
        _ => None,
    }
}
