//! Fields that the schema of a copy's side lacks, and that nobody has set: the origin's side has a newer version of the type,
//! which gives them a default. Its objects are synced without them, as an upgrade of one side after the other needs it.
//!
//! Of what somebody has set, the refusal stays: nothing that is wanted is left out.

use kube_lite::fields::from_text;
use kube_lite::{ApiStatus, Cluster, Error};
use serde_json::{Map, Value};

use super::field_set::Path;
use super::job::{Failure, Job};
use super::left_to_others::{Theirs, without_unset};
use super::object::Desired;

/// How servers call them in a refusal of server-side apply, after the path of each (structured-merge-diff, `typed`).
const UNDECLARED: &str = ": field not declared in schema";

/// After how many such refusals of one object the next one stays.
pub(super) const MOST_REFUSALS: usize = 8;

/// What to bring instead after such a refusal; `None` if it is another one, or somebody has set what is refused.
pub(super) async fn without_it(
    origins: &Cluster,
    job: &Job,
    desired: &Desired,
    refusal: &Error,
) -> Result<Option<Desired>, Failure> {
    let refused = Theirs {
        set: refusal.status().map(undeclared).unwrap_or_default(),
        ..Theirs::default()
    };
    without_unset(origins, job, desired, refused).await
}

/// True if a server does not store what was applied: its schema, which is an older one, lacks a field of it, or it has taken
/// it without an effect.
pub(crate) fn is_not_stored(error: &Error) -> bool {
    let is_undeclared = |status: &ApiStatus| status.is_misfit() && status.message.contains(UNDECLARED);
    matches!(error, Error::WithoutEffect(_)) || error.status().is_some_and(is_undeclared)
}

/// The fields that a refusal names.
fn undeclared(status: &ApiStatus) -> Vec<Path> {
    let mut found = Vec::new();
    if status.is_misfit() {
        for (end, _) in status.message.match_indices(UNDECLARED) {
            let before = status.message.get(..end).unwrap_or_default();
            let begin = before.rfind([' ', '\n']).map_or(0, |at| at + 1);
            found.extend(before.get(begin..).and_then(path));
        }
    }
    found
}

/// A path as servers write it: `.spec.items[name="a"].proto`.
fn path(mut text: &str) -> Option<Path> {
    let mut path = Path::new();
    while !text.is_empty() {
        if let Some(rest) = text.strip_prefix('.') {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (field, rest) = rest.split_at_checked(end)?;
            path.push(format!("f:{field}"));
            text = rest;
        } else {
            let (keys, rest) = text.strip_prefix('[')?.split_once(']')?;
            let mut item = Map::new();
            for (key, value) in keys
                .split(',')
                .map(|one| one.split_once('='))
                .collect::<Option<Vec<_>>>()?
            {
                item.insert(key.to_owned(), from_text(value).ok()?);
            }
            path.push(format!("k:{}", Value::Object(item)));
            text = rest;
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: u16, message: &str) -> Vec<Path> {
        undeclared(&ApiStatus {
            code,
            message: message.to_owned(),
            ..ApiStatus::default()
        })
    }

    #[test]
    fn a_refusal_names_the_fields_that_the_schema_lacks() {
        let begin = "failed to create typed patch object (shop/a; example.org/v1, Kind=Work): ";
        for (words, expected) in [
            (".spec.x: field not declared in schema", vec![vec!["f:spec", "f:x"]]),
            (
                "errors:\n  .spec.x: field not declared in schema\n  .spec.y.z: field not declared in schema",
                vec![vec!["f:spec", "f:x"], vec!["f:spec", "f:y", "f:z"]],
            ),
            (
                r#".spec.ports[port=80,protocol="TCP"].x: field not declared in schema"#,
                vec![vec!["f:spec", "f:ports", r#"k:{"port":80,"protocol":"TCP"}"#, "f:x"]],
            ),
            // What it cannot name is refused as ever.
            (".spec.list[0].x: field not declared in schema", vec![]),
            (".spec.x: expected string, got 1", vec![]),
        ] {
            assert_eq!(refused(500, &format!("{begin}{words}")), expected, "{words}");
        }
        assert!(refused(500, ".spec.x: field not declared in schema").is_empty());
        assert!(refused(422, &format!("{begin}.spec.x: field not declared in schema")).is_empty());
    }
}
