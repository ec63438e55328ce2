//! References of a copy to another object: the UID in one is of an object of that cluster alone, and goes with its name.
//!
//! A controller at the copy's side fills the UID in, and it stays there beside what we apply. If the origin names another
//! object, or none any more, the UID of the former one would be left: a volume would then be bound to a claim that is gone,
//! and be released or deleted with what is on it. So it is removed first ([`let_go`]).

use kube_lite::{Cluster, Content, Error};
use serde_json::{Value, json};

use super::copy_place::{read_at, send_patch};
use super::field_set::FieldSet;
use super::kinds::filled_in::references;
use super::managed_fields::owned;
use super::object::{Address, Desired};

/// What names the object that is meant.
const NAMES: [&str; 4] = ["apiVersion", "kind", "namespace", "name"];

/// Removes from a copy, as it was at a version, what belongs to an object that is not meant any more. Returns the version that
/// the copy then has; `None` if there is nothing to remove, or it may not be removed.
pub(super) async fn let_go(
    copies: &Cluster,
    at: &Address,
    desired: &Desired,
    version: &str,
) -> Result<Option<String>, Error> {
    if references(&at.resource).next().is_none() {
        return Ok(None);
    }
    let Some((copy, _)) = read_at(copies, at, version, Content::Full).await? else {
        return Ok(None);
    };
    let wanted = desired.contents().map(Value::Object).unwrap_or_default();
    let Some(patch) = letting_go(references(&at.resource), &wanted, &copy, version) else {
        return Ok(None);
    };
    let patched = send_patch(copies, at, patch).await?;
    Ok(patched.map(|(_, version)| version))
}

/// The patch that does it, of these paths as field sets have them.
fn letting_go<'p>(
    paths: impl Iterator<Item = &'p [&'p str]>,
    wanted: &Value,
    copy: &[u8],
    version: &str,
) -> Option<String> {
    let found: Value = serde_json::from_slice(copy).ok()?;
    let (ours, _) = owned(copy).ok()?;
    let mut patch = json!({"metadata": {"resourceVersion": version}});
    let mut is_any = false;
    for path in paths {
        let at = |object: &Value| {
            let keys = path.iter().map(|key| key.trim_start_matches("f:"));
            keys.fold(object.clone(), |object, key| object[key].clone())
        };
        let Some(left) = left(&at(wanted), &at(&found), || is_named_by_us(&ours, path)) else {
            continue;
        };
        is_any = true;
        let (last, above) = path.split_last()?;
        let mut place = &mut patch;
        for key in above {
            place = &mut place[key.trim_start_matches("f:")];
        }
        place[last.trim_start_matches("f:")] = left;
    }
    is_any.then(|| patch.to_string())
}

/// What a reference becomes before it is applied; `None` if nothing has to be done.
fn left(wanted: &Value, found: &Value, is_ours: impl Fn() -> bool) -> Option<Value> {
    let is_filled_in = !found["uid"].is_null();
    if !is_filled_in {
        return None;
    }
    if wanted.is_null() {
        // What the copy's side has named by itself is no matter of the origin.
        return is_ours().then_some(Value::Null);
    }
    let is_another = NAMES
        .into_iter()
        .any(|key| !wanted[key].is_null() && wanted[key] != found[key]);
    is_another.then(|| json!({"uid": null, "resourceVersion": null}))
}

fn is_named_by_us(ours: &FieldSet, path: &[&str]) -> bool {
    let name = [path, &["f:name"]].concat();
    !ours.only(&name).is_empty()
}

#[cfg(test)]
mod tests {
    use super::super::managed_fields::tests::entry;
    use super::*;

    const PATH: &[&str] = &["f:spec", "f:claimRef"];

    /// What becomes of `claimRef` of a copy which was applied with (or without) a name, and is now as given.
    fn check(is_applied: bool, found: &Value, wanted: &Value, expected: Option<Value>) {
        let named = json!({"f:spec": {"f:claimRef": {"f:name": {}}}});
        let none = json!({"f:spec": {"f:capacity": {}}});
        let ours = entry("edge-syncer", "Apply", if is_applied { &named } else { &none });
        let copy = json!({"metadata": {"managedFields": [ours]}, "spec": {"claimRef": found}});
        let wanted = json!({"spec": {"claimRef": wanted}});
        let patch = letting_go([PATH].into_iter(), &wanted, copy.to_string().as_bytes(), "7");
        let patch: Option<Value> = patch.map(|patch| serde_json::from_str(&patch).unwrap());
        let expected = expected.map(|left| json!({"metadata": {"resourceVersion": "7"}, "spec": {"claimRef": left}}));
        assert_eq!(patch, expected, "{found} {wanted}");
    }

    #[test]
    fn a_uid_goes_with_the_name_that_it_belongs_to_and_not_otherwise() {
        let bound =
            json!({"kind": "PersistentVolumeClaim", "namespace": "n", "name": "a", "uid": "u", "resourceVersion": "5"});
        let named = |name: &str| json!({"namespace": "n", "name": name});
        let without = json!({"uid": null, "resourceVersion": null});
        check(true, &bound, &named("a"), None);
        check(true, &bound, &named("b"), Some(without.clone()));
        check(
            true,
            &bound,
            &json!({"namespace": "m", "name": "a"}),
            Some(without.clone()),
        );
        check(true, &bound, &Value::Null, Some(Value::Null));
        // The copy's side has bound it by its own choice.
        check(false, &bound, &Value::Null, None);
        check(false, &bound, &named("b"), Some(without));
        // Nothing was filled in.
        check(true, &named("a"), &named("b"), None);
        check(true, &Value::Null, &named("b"), None);
    }
}
