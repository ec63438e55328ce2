//! Taking over the fields of others.
//!
//! Server-side apply removes a field only when its last owner stops applying it. So fields that people added with
//! kubectl, and all fields of copies that the Go syncer wrote with plain updates, are first made ours by editing
//! `metadata.managedFields`, and then fall away with the next apply, because the hub does not have them. (Flux does the
//! same.)
//!
//! What API servers and controllers fill in stays as it is ([`filled_in`]).

use kube_lite::fields::{from_text, with_fields};
use kube_lite::{Error, ResourceType};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::field_set::{FieldSet, Path};
use super::kinds::filled_in::{AtCopy, filled_in};
use super::kinds::gives;
use super::managed_fields::{
    Entries, NO_CONTENTS, Owner, PATCHED, RevertFrom, field_set, leave_out_restarts, may_be_shared,
};
use super::unowned;
use crate::api::FIELD_MANAGER;

/// At how many versions of a type entries are taken over in one go.
pub(super) const MOST_VERSIONS: usize = 3;

/// Whose fields are taken over. Entries of subresources (`status`, `scale`) never are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose<'a> {
    /// Those of managers that are reverted.
    Reverted(RevertFrom<'a>),
    /// What we have written by a create or another update: it is from the origin, and would stay when that drops it. What is
    /// only ever patched stays as it is: these lists, and what [`PATCHED`] names.
    Made(&'a [Path]),
    /// Those of all managers, except for metadata and status.
    Everybodys {
        /// Also what servers and controllers have filled in.
        filled_in: bool,
    },
}

/// The patch that makes fields of a copy of this type ours, to be followed by an apply. `None` if there are none to take, at
/// any version: one version is taken at a time.
pub(super) fn take_over(object: &[u8], resource: &ResourceType, whose: Whose) -> Result<Option<String>, Error> {
    take_from(&Entries::of(object)?, resource, whose)
}

fn take_from(entries: &Entries<'_>, resource: &ResourceType, whose: Whose) -> Result<Option<String>, Error> {
    let includes = |owner: &Owner| owner.subresource.is_empty() && whose.includes(owner);
    let Some(first) = entries.iter().find(|(_, owner)| includes(owner)) else {
        return Ok(None);
    };
    let ours = entries.iter().find(|(_, owner)| owner.is_our_apply());
    // Before the first apply, one of the others becomes our entry.
    let base = ours.unwrap_or(first);
    let mut versions = vec![&*base.1.api_version];
    versions.extend(entries.iter().map(|(_, owner)| &*owner.api_version));
    for version in versions {
        let of_version = |owner: &Owner| includes(owner) && owner.api_version == version;
        let (mut kept, taken) = take(entries, resource, whose, of_version)?;
        if taken.is_empty() {
            continue;
        }
        // A field set of another version would not fit ours, so it takes the place of ours: the next apply, for which the server
        // converts it, removes what we do not apply.
        let mut all = taken;
        if let Some((_, owner)) = ours.filter(|(_, owner)| owner.api_version == version) {
            all.add(&field_set(owner)?);
        }
        let (manager, version) = (json!(FIELD_MANAGER).to_string(), json!(version).to_string());
        let mut fields = vec![("manager", &*manager), ("operation", "\"Apply\"")];
        if version != "\"\"" {
            fields.push(("apiVersion", &*version));
        }
        let set = all.render();
        fields.push(("fieldsV1", &*set));
        kept.push(with_fields(base.0, &fields)?);
        return Ok(Some(entries.patch(&kept)));
    }
    Ok(None)
}

/// The same for what an apply has left, as its answer shows it: fields of those that are reverted, what we have made
/// otherwise, if that could not be taken before the apply, and items that nobody owns.
pub(super) fn take_left(
    object: &[u8],
    resource: &ResourceType,
    revert_from: RevertFrom<'_>,
    lists: &[Path],
) -> Result<Option<String>, Error> {
    let entries = Entries::of(object)?;
    let reverted = take_from(&entries, resource, Whose::Reverted(revert_from))?;
    if reverted.is_some() {
        return Ok(reverted);
    }
    let made = take_from(&entries, resource, Whose::Made(lists))?;
    if made.is_some() {
        return Ok(made);
    }
    unowned::take(object, &entries, resource)
}

/// What is left of the entries of others, and what is taken from those for which `includes`.
fn take(
    entries: &Entries<'_>,
    resource: &ResourceType,
    whose: Whose,
    includes: impl Fn(&Owner<'_>) -> bool,
) -> Result<(Vec<String>, FieldSet), Error> {
    let (mut kept, mut taken) = (Vec::new(), FieldSet::default());
    for (entry, owner) in entries.iter().filter(|(_, owner)| !owner.is_our_apply()) {
        if !includes(owner) {
            kept.push(entry.get().to_owned());
            continue;
        }
        let (fields, rest) = whose.split(owner, resource)?;
        kept.extend(rest_of(entry, &fields, &rest)?);
        taken.add(&fields);
    }
    Ok((kept, taken))
}

/// The patch that takes from others what we have applied to a copy of this type too. `None` if there is nothing. Of an item
/// that is not `wanted` any more, all goes, also what others hold further down in it: an API server takes the whole of some
/// fields from us if others apply them without a default that we have.
///
/// Otherwise a field that the origin drops would stay, since it has another owner: whoever had installed the copy before it
/// was adopted, or applies the same beside us.
///
/// Those that are reverted are left what they have beside that: an apply removes it.
pub(super) fn take_shared(
    object: &[u8],
    resource: &ResourceType,
    revert_from: RevertFrom<'_>,
    wanted: Option<&Map<String, Value>>,
) -> Result<Option<String>, Error> {
    let entries = Entries::of(object)?;
    let mut ours = may_be_shared(entries.iter().map(|(_, owner)| owner))?;
    // The copy's side would not do without what it has filled in here.
    let of_spec = filled_in(resource).filter(|(path, _, at_copy)| path[0] == "f:spec" && *at_copy == AtCopy::Stays);
    for (path, ..) in of_spec {
        ours.leave_out(path);
    }
    let dropped = wanted.map(|wanted| dropped_items(&ours, wanted)).unwrap_or_default();
    let (mut kept, mut is_any) = (Vec::new(), false);
    for (entry, owner) in entries.iter() {
        let mut rest = field_set(owner)?;
        let is_taken = owner.may_share()
            && if owner.is_reverted(revert_from) {
                rest.subtract(&ours)
            } else {
                let was_in_dropped = leave_out_all(&mut rest, &dropped);
                rest.subtract_with_items(&ours) || was_in_dropped
            };
        if is_taken {
            is_any = true;
            kept.extend(
                (!rest.is_empty())
                    .then(|| with_fields(entry, &[("fieldsV1", &rest.render())]))
                    .transpose()?,
            );
        } else {
            kept.push(entry.get().to_owned());
        }
    }
    Ok(is_any.then(|| entries.patch(&kept)))
}

/// The items of lists that are in this set as a whole, and not wanted any more.
fn dropped_items(ours: &FieldSet, wanted: &Map<String, Value>) -> Vec<Path> {
    let mut items = ours.items();
    items.retain(|item| {
        let unquoted = |key: &String| from_text(&format!("\"{key}\"")).unwrap_or_default();
        let is_content = !NO_CONTENTS.iter().any(|no| no[0] == item[0]);
        is_content && !gives(wanted, &item.iter().map(unquoted).collect())
    });
    items
}

/// Leaves out what is at these paths. True if there was any.
fn leave_out_all(fields: &mut FieldSet, paths: &[Path]) -> bool {
    let mut is_any = false;
    for path in paths {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        if !fields.only(&path).is_empty() {
            fields.leave_out(&path);
            is_any = true;
        }
    }
    is_any
}

/// What is left of an entry without the fields that are taken.
fn rest_of(entry: &RawValue, taken: &FieldSet, rest: &FieldSet) -> Result<Option<String>, Error> {
    match (taken.is_empty(), rest.is_empty()) {
        (true, _) => Ok(Some(entry.get().to_owned())),
        (false, true) => Ok(None),
        (false, false) => with_fields(entry, &[("fieldsV1", &rest.render())]).map(Some),
    }
}

/// The fields of an object, as entries name them, that are neither its metadata nor its status.
pub(super) fn contents_of(object: &[u8]) -> Result<Vec<String>, Error> {
    let mut all = FieldSet::default();
    for (_, owner) in Entries::of(object)?
        .iter()
        .filter(|(_, owner)| owner.subresource.is_empty())
    {
        all.add(&field_set(owner)?);
    }
    for path in NO_CONTENTS {
        all.leave_out(path);
    }
    let named = all.fields(0).filter_map(|(key, _)| {
        let key: String = from_text(key).ok()?;
        key.strip_prefix("f:").map(str::to_owned)
    });
    Ok(named.collect())
}

impl Whose<'_> {
    fn includes(self, owner: &Owner<'_>) -> bool {
        match self {
            Self::Reverted(revert_from) => owner.is_reverted(revert_from),
            Self::Made(_) => owner.is_made_by_us(),
            // What we have written by patches is no part of an apply.
            Self::Everybodys { .. } => owner.manager != FIELD_MANAGER,
        }
    }

    /// The fields of an entry that are taken, and those that stay theirs.
    fn split(self, owner: &Owner<'_>, resource: &ResourceType) -> Result<(FieldSet, FieldSet), Error> {
        let (mut taken, mut rest) = (field_set(owner)?, FieldSet::default());
        let mut stay = |path: &[&str]| {
            rest.add(&taken.only(path));
            taken.leave_out(path);
        };
        let (is_anybodys, keeps_filled_in) = match self {
            Self::Reverted(_) => (owner.is_go_syncer(), true),
            Self::Everybodys { filled_in } => (!filled_in, !filled_in),
            Self::Made(lists) => {
                for path in PATCHED {
                    stay(path);
                }
                for list in lists {
                    stay(&list.iter().map(String::as_str).collect::<Vec<_>>());
                }
                return Ok((taken, rest));
            }
        };
        for (path, _, at_copy) in filled_in(resource) {
            let stays = match at_copy {
                AtCopy::Goes => false,
                AtCopy::Stays | AtCopy::StaysUnlessShared => keeps_filled_in,
                AtCopy::StaysUnlessPeoples => is_anybodys,
            };
            if stays {
                stay(path);
            }
        }
        if matches!(self, Self::Everybodys { .. }) {
            for path in NO_CONTENTS {
                stay(path);
            }
        }
        let mut restarts = taken.clone();
        if leave_out_restarts(&mut taken) {
            restarts.subtract(&taken);
            rest.add(&restarts);
        }
        Ok((taken, rest))
    }
}

#[cfg(test)]
#[path = "take_over_tests.rs"]
mod tests;
