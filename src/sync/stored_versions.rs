//! Versions of a CRD that the origin has dropped and the copy's side still names in `status.storedVersions`.
//!
//! Objects may be stored there at such a version, so its API server refuses the CRD without it. Nobody has migrated them there
//! yet, and all else that the origin changes has to arrive: the copy keeps the version, with the schema that it has, but
//! neither served nor stored any more. As soon as the status no longer names it, the CRD is taken as its origin is.

use kube_lite::fields::from_text;
use kube_lite::{ApiStatus, Cluster, Content, Error, ResourceType};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::job::{Failure, failed};
use super::object::{Address, Desired};
use crate::side::Side;

/// Where a refusal says that a version is missing.
const STORED_VERSIONS: &str = "status.storedVersions";

/// True if a CRD is refused because it lacks a version that its side may have objects at.
pub(super) fn are_missing(refusal: &Error) -> bool {
    let names = |status: &ApiStatus| {
        let mut causes = status.causes.iter();
        causes.any(|cause| cause.field.starts_with(STORED_VERSIONS))
    };
    refusal.is_invalid() && refusal.status().is_some_and(names)
}

/// What to bring instead after such a refusal, and the names of the versions that the copy keeps by that; `None` if it is
/// another refusal, or the copy has none to keep.
pub(super) async fn with_them(
    copies: &Cluster,
    at: &Address,
    desired: &Desired,
    refusal: &Error,
) -> Result<Option<(Desired, Vec<String>)>, Failure> {
    let Address { resource, name } = at;
    if !is_crd(resource) || !are_missing(refusal) {
        return Ok(None);
    }
    match copies.get(resource, name, Content::Full).await {
        Ok(copy) => Ok(desired.with_versions_of(&copy)),
        // Then the refusal of the apply is logged.
        Err(error) if error.status().is_some() => Ok(None),
        Err(error) => Err(failed(Side::of(copies), "reading")(error)),
    }
}

fn is_crd(resource: &ResourceType) -> bool {
    let definitions = ResourceType::definitions();
    resource.is(&definitions.group, &definitions.resource)
}

impl Desired {
    /// The same with the versions that a copy is still stored at and that it lacks, and their names; `None` if there are none.
    fn with_versions_of(&self, copy: &[u8]) -> Option<(Self, Vec<String>)> {
        let mut contents = self.contents()?;
        let wanted = contents.get_mut("spec")?.get_mut("versions")?.as_array_mut()?;
        let kept = versions_to_keep(wanted, copy)?;
        let names = kept.iter().map(|(name, _)| name.clone()).collect();
        wanted.extend(kept.into_iter().map(|(_, version)| version));
        Some((self.with_contents(&contents), names))
    }
}

/// The versions of a CRD that it is still stored at and that are not among those `wanted`, as it has to keep them.
fn versions_to_keep(wanted: &[Value], crd: &[u8]) -> Option<Vec<(String, Value)>> {
    #[derive(Deserialize)]
    struct Crd<'a> {
        #[serde(borrow)]
        spec: Spec<'a>,
        status: Status,
    }
    #[derive(Deserialize)]
    struct Spec<'a> {
        #[serde(borrow)]
        versions: Vec<&'a RawValue>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Status {
        stored_versions: Vec<String>,
    }
    let crd: Crd<'_> = serde_json::from_slice(crd).ok()?;
    let is_wanted = |name: &str| wanted.iter().any(|version| version["name"] == name);
    let kept = crd.spec.versions.into_iter().filter_map(|version| {
        let mut version: Value = from_text(version.get()).ok()?;
        let name = version["name"].as_str()?.to_owned();
        if is_wanted(&name) || !crd.status.stored_versions.contains(&name) {
            return None;
        }
        (version["served"], version["storage"]) = (json!(false), json!(false));
        Some((name, version))
    });
    Some(kept.collect::<Vec<_>>()).filter(|kept| !kept.is_empty())
}

#[cfg(test)]
mod tests {
    use kube_lite::Cause;

    use super::*;

    fn version(name: &str, served: bool, storage: bool) -> Value {
        json!({"name": name, "served": served, "storage": storage, "schema": {"of": name}})
    }

    /// The versions that a CRD keeps beside those wanted.
    fn kept(wanted: &[&str], present: &[Value], stored: &[&str]) -> Option<Vec<Value>> {
        let wanted: Vec<Value> = wanted.iter().map(|name| version(name, true, true)).collect();
        let crd = json!({"spec": {"versions": present}, "status": {"storedVersions": stored}}).to_string();
        let kept = versions_to_keep(&wanted, crd.as_bytes())?;
        Some(kept.into_iter().map(|(_, version)| version).collect())
    }

    #[test]
    fn a_crd_keeps_the_versions_that_its_side_still_stores_objects_at() {
        let two = [version("v1", true, false), version("v2", true, true)];
        for (what, wanted, present, stored, expected) in [
            ("dropped", &["v2"][..], &two[..], &["v1", "v2"][..], &["v1"][..]),
            ("migrated", &["v2"], &two, &["v2"], &[]),
            ("nothing dropped", &["v1", "v2"], &two, &["v1", "v2"], &[]),
            ("dropped and added at once", &["v3"], &two, &["v1", "v2"], &["v1", "v2"]),
            ("named there, but not there", &["v2"], &two[1..], &["v1", "v2"], &[]),
        ] {
            let expected: Vec<Value> = expected.iter().map(|name| version(name, false, false)).collect();
            let found = kept(wanted, present, stored).unwrap_or_default();
            assert_eq!(found, expected, "{what}");
        }
        assert_eq!(versions_to_keep(&[], br#"{"spec": {"versions": []}}"#), None);
    }

    #[test]
    fn the_refusal_of_a_version_that_is_missing_is_known_by_its_field() {
        let refusal = |code, field: &str| {
            let cause = Cause {
                reason: "FieldValueInvalid".into(),
                field: field.into(),
            };
            Error::Status(Box::new(ApiStatus {
                code,
                causes: vec![cause],
                ..ApiStatus::default()
            }))
        };
        for (code, field, expected) in [
            (422, "status.storedVersions[0]", true),
            (422, "status.storedVersions", true),
            (422, "spec.versions", false),
            (403, "status.storedVersions[0]", false),
        ] {
            assert_eq!(are_missing(&refusal(code, field)), expected, "{code} {field}");
        }
    }
}
