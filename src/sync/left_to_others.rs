//! What is not applied over a copy, since its side has the say: fields that somebody there has set and nobody at the origin
//! has ([`super::kinds::retain_unset`]), and restarts of its pods that are later than the origin's ([`super::restarts`]).
//!
//! The copy is read for it only where its managers show that there may be such a field, and the origin only where there
//! is one.

use kube_lite::{Cluster, Content, Error, may_be_a_crd};
use serde_json::{Map, Value};

use super::field_set::Path;
use super::job::{Failure, Job, failed};
use super::kinds::{at, retain_unset};
use super::managed_fields::{Entries, Owner, RevertFrom, beside_ours, field_set};
use super::meta::Object;
use super::object::{Address, Desired};
use super::ownership::{Copy, CopyState};
use super::scaled::Scaled;
use crate::side::Side;

/// What a Secret is for, and so no value of it: an apply without it would fill a Secret of any type.
const SECRET_TYPE: [&str; 1] = ["f:type"];

/// The subresource that changes what a Pod may use while it runs.
const RESIZE: &str = "resize";

/// What may be left to the copy's side.
#[derive(Default)]
pub(super) struct Theirs {
    /// What somebody has set.
    pub(super) set: Vec<Path>,
    /// Numbers of a custom type that nobody is named for: of an object that was scaled from a default, a server names nobody.
    pub(super) unnamed: Vec<Path>,
    /// What a Pod has got while it runs: no update but another such one can set that, and all of it would be refused.
    pub(super) resized: Vec<Path>,
}

/// What is applied to a copy, and the copy as it was read for that; `None` if it is all that the origin has.
pub(super) async fn without_it(
    origins: &Cluster,
    copies: &Cluster,
    job: &Job,
    desired: &Desired,
    standing: Copy,
) -> Result<Option<(Desired, bytes::Bytes)>, Failure> {
    let may_be_theirs = standing.others_have_more || may_be_scaled(job, desired);
    if standing.state == CopyState::Absent || !(desired.restarts_pods() || may_be_theirs) {
        return Ok(None);
    }
    let Some(copy) = read(copies, &job.copy_at).await? else {
        return Ok(None);
    };
    let without = desired.without_earlier_restarts(&copy);
    if !may_be_theirs {
        return Ok(without.map(|without| (without, copy)));
    }
    let wanted = without.as_ref().unwrap_or(desired);
    let theirs = set_by_others(&copy, job, wanted, job.policy.reverts(job.selection));
    let theirs = theirs.map_err(failed(Side::of(copies), "reading"))?;
    let without_theirs = without_unset(origins, job, wanted, theirs).await?;
    Ok(without_theirs.or(without).map(|without| (without, copy)))
}

/// True if a copy is as it was, but for who has set what. All else that others had changed was theirs, then.
pub(super) fn is_as_it_was(before: &[u8], now: &[u8]) -> bool {
    let without_managers = |object: &[u8]| {
        let mut object: Map<String, Value> = serde_json::from_slice(object).ok()?;
        object.remove("status");
        for kept_by_server in ["managedFields", "resourceVersion"] {
            object.get_mut("metadata")?.as_object_mut()?.remove(kept_by_server);
        }
        Some(object)
    };
    let before = without_managers(before);
    before.is_some() && before == without_managers(now)
}

/// True if the copy may have a number that nobody is named for: a server forgets who has scaled an object of a custom type to 0.
fn may_be_scaled(job: &Job, desired: &Desired) -> bool {
    job.scaled_by_nobody && !numbers(&desired.whole()).is_empty()
}

/// It without those of these fields that nobody has set at the origin; `None` if there are none.
pub(super) async fn without_unset(
    origins: &Cluster,
    job: &Job,
    wanted: &Desired,
    theirs: Theirs,
) -> Result<Option<Desired>, Failure> {
    let Theirs {
        set: mut paths,
        unnamed,
        resized,
    } = theirs;
    paths.extend_from_slice(&unnamed);
    if paths.is_empty() {
        return Ok(wanted.without(&resized));
    }
    let origin = match &job.origin_read {
        Some(origin) => Some(origin.clone()),
        None => read(origins, &job.origin).await?,
    };
    let Some(origin) = origin else { return Ok(None) };
    let origin = Object::parse(origin).map_err(failed(Side::of(origins), "reading"))?;
    let version = origin.meta.version_number();
    if version < wanted.version {
        // It does not say who has set what is to be applied.
        let stale = Error::BadAnswer(format!(
            "the object at version {version}, which was at {} before",
            wanted.version
        ));
        return Err(failed(Side::of(origins), "reading")(stale));
    }
    retain_unset(&mut paths, &origin, &job.origin.resource.api_version());
    leave_scaled(origins, job, wanted, (&mut paths, &unnamed)).await?;
    paths.extend(resized);
    Ok(wanted.without(&paths))
}

/// Leaves out of these paths the one at which somebody has scaled the origin, of a custom type: no manager is named for that.
/// Of those that are unnamed at the copy too, it leaves no other.
async fn leave_scaled(
    origins: &Cluster,
    job: &Job,
    wanted: &Desired,
    (paths, unnamed): (&mut Vec<Path>, &[Path]),
) -> Result<(), Failure> {
    let mut contents = wanted.whole();
    let mut number_at = |path: &Path| at(&mut contents, path).filter(|value| value.is_u64()).cloned();
    // A definition may be large.
    if !paths.iter().any(|path| number_at(path).is_some()) {
        return Ok(());
    }
    let scaled = Scaled::of(origins, &job.origin.resource).await;
    let scaled = scaled.map_err(failed(Side::of(origins), "reading"))?;
    paths.retain(|path| match scaled.as_ref().filter(|scaled| scaled.path == *path) {
        Some(scaled) => number_at(path).is_none_or(|number| scaled.may_be_default(&number)),
        None => !unnamed.contains(path),
    });
    Ok(())
}

/// An object as a whole; `None` if its side does not give it: then everything is applied.
async fn read(side: &Cluster, at: &Address) -> Result<Option<bytes::Bytes>, Failure> {
    match side.get(&at.resource, &at.name, Content::Full).await {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_final() => Ok(None),
        Err(error) => Err(failed(Side::of(side), "reading")(error)),
    }
}

/// The fields of a copy that others have set and we do not apply, other than those whose fields are reverted. Where they have
/// what is wanted, as a default that an installer was named for, it becomes ours instead, so that it goes with what it is a
/// part of; but not what controllers and subresources have set.
fn set_by_others(copy: &[u8], job: &Job, wanted: &Desired, revert_from: RevertFrom<'_>) -> Result<Theirs, Error> {
    let version = job.copy_at.resource.api_version();
    let entries = Entries::of(copy)?;
    let owners = entries.iter().map(|(_, owner)| owner);
    let mut resized = Vec::new();
    if job.copy_at.resource.is("", "pods") {
        let is_meant = |owner: &Owner<'_>| owner.subresource == RESIZE && owner.api_version == version;
        resized = beside_ours(owners.clone(), is_meant)?.leaves();
    }
    let set_by = |may_share: bool| {
        let is_meant = |owner: &Owner<'_>| {
            owner.may_share() == may_share && !owner.is_reverted(revert_from) && owner.api_version == version
        };
        let mut theirs = beside_ours(owners.clone(), is_meant)?;
        if job.copy_at.resource.is("", "secrets") {
            theirs.leave_out(&SECRET_TYPE);
        }
        Ok(theirs.leaves())
    };
    let (mut found, mut contents) = (serde_json::from_slice(copy).unwrap_or_default(), wanted.whole());
    let mut unnamed = Vec::new();
    if may_be_a_crd(&job.copy_at.resource.group) {
        unnamed = numbers(&contents);
        for owner in owners.clone() {
            let fields = field_set(owner)?;
            unnamed.retain(|path| {
                let keys: Vec<&str> = path.iter().map(String::as_str).collect();
                fields.only(&keys).is_empty()
            });
        }
        unnamed.retain(|path| at(&mut found, path).is_some());
    }
    let mut differ = |path: &Path| at(&mut found, path) != at(&mut contents, path);
    let mut set: Vec<Path> = set_by(true)?;
    unnamed.retain(&mut differ);
    set.retain(differ);
    set.extend(set_by(false)?);
    set.retain(|path| at(&mut contents, path).is_some());
    Ok(Theirs { set, unnamed, resized })
}

/// The ways to the numbers of a spec, other than those in lists.
fn numbers(contents: &Value) -> Vec<Path> {
    let (mut numbers, mut open) = (Vec::new(), vec![(vec!["f:spec".to_owned()], &contents["spec"])]);
    while let Some((path, value)) = open.pop() {
        for (field, below) in value.as_object().into_iter().flatten() {
            let mut path = path.clone();
            path.push(format!("f:{field}"));
            open.push((path, below));
        }
        if value.is_u64() {
            numbers.push(path);
        }
    }
    numbers
}

impl Desired {
    /// Its contents as one value; null if they cannot be read.
    fn whole(&self) -> Value {
        self.contents().map_or(Value::Null, Value::Object)
    }

    /// The same without the values at these paths; `None` if it has none there.
    pub(super) fn without(&self, paths: &[Path]) -> Option<Self> {
        let mut contents = Value::Object(self.contents()?);
        let mut is_any = false;
        for (last, path) in paths.iter().filter_map(|path| path.split_last()) {
            let Some(at) = at(&mut contents, path) else {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kube_lite::{ObjectName, ResourceType};
    use serde_json::json;

    use super::super::object::Desired;
    use super::super::reconcile::tests::{FOREIGN, job};
    use super::super::scripted::scripted;
    use super::*;
    use crate::plan::{Direction, Selection};

    fn entry(manager: &str, subresource: &str, spec: &Value) -> Value {
        json!({"manager": manager, "operation": "Update", "subresource": subresource, "apiVersion": "example.org/v1",
            "fieldsV1": {"f:spec": spec}})
    }

    /// A job of a custom type, and what it wants of an origin with this spec, of which nobody has set anything but `x`.
    fn wanted(spec: &Value) -> (Job, Desired) {
        let address = Address {
            resource: ResourceType {
                group: "example.org".into(),
                version: "v1".into(),
                resource: "works".into(),
                kind: "Work".into(),
                namespaced: true,
            },
            name: ObjectName::new("shop", "a"),
        };
        let origin = json!({"metadata": {"name": "a", "namespace": "shop", "resourceVersion": "5",
            "managedFields": [entry("argocd", "", &json!({"f:x": {}}))]}, "spec": spec});
        let origin = bytes::Bytes::from(origin.to_string());
        let parsed = Object::parse(origin.clone()).unwrap();
        let desired = Desired::from_origin(Direction::Down, &address, &address, Selection::Full, &parsed);
        let job = Job {
            origin: address.clone(),
            copy_at: address,
            origin_read: Some(origin.clone()),
            copy: FOREIGN,
            ..job()
        };
        (job, desired.unwrap().unwrap())
    }

    /// What is applied of `spec` over a copy, where a definition gives this schema of the spec (403 for none).
    async fn applied(spec: &Value, copy: &Value, managers: &[Value], schema: Option<&Value>) -> (Value, usize) {
        let (job, desired) = wanted(spec);
        let copy = json!({"metadata": {"name": "a", "managedFields": managers}, "spec": copy}).to_string();
        let definition = match schema {
            Some(properties) => {
                let schema = json!({"properties": {"spec": {"properties": properties}}});
                let version = json!({"name": "v1", "schema": {"openAPIV3Schema": schema},
                    "subresources": {"scale": {"specReplicasPath": ".spec.size"}}});
                (200, json!({"spec": {"versions": [version]}}).to_string())
            }
            None => (403, json!({"kind": "Status", "code": 403, "message": "no"}).to_string()),
        };
        let (hub, asked) = scripted(Side::Hub, &[(definition.0, &*definition.1.leak())]);
        let (edge, _) = scripted(Side::Edge, &[(200, &*copy.leak())]);
        let standing = Copy {
            others_have_more: true,
            ..FOREIGN
        };
        let without = without_it(&hub, &edge, &job, &desired, standing).await.unwrap();
        let contents: BTreeMap<String, Value> = without
            .map_or(desired, |(less, _)| less)
            .contents()
            .unwrap()
            .into_iter()
            .collect();
        (contents["spec"].clone(), asked.borrow().len())
    }

    // Found from outside: what an installer was named for stayed when the hub dropped what it was a part of.
    #[tokio::test]
    async fn a_default_is_left_to_who_has_set_another_value_or_scales() {
        let (mode, deep) = (json!({"f:mode": {}}), json!({"f:deep": {".": {}, "f:mode": {}}}));
        let spec = json!({"x": 1, "mode": "a", "deep": {"mode": "a"}, "items": [{"name": "i", "mode": "a"}]});
        let item = json!({"f:items": {r#"k:{"name":"i"}"#: {"f:mode": {}}}});
        let own = json!({"mode": "b", "deep": {"mode": "b"}, "items": [{"name": "i", "mode": "b"}]});
        for (entry, copy, path) in [
            (entry("helm", "", &mode), &own, Some("/mode")),
            (entry("helm", "", &deep), &own, Some("/deep/mode")),
            (entry("helm", "", &item), &own, Some("/items/0/mode")),
            (entry("helm", "", &mode), &spec, None),
            (entry("helm", "", &deep), &spec, None),
            (entry("helm", "", &item), &spec, None),
            (entry("kube-controller-manager", "", &mode), &spec, Some("/mode")),
            (entry("helm", "scale", &mode), &spec, Some("/mode")),
            (entry("helm", "status", &mode), &own, None),
        ] {
            let (found, _) = applied(&spec, copy, std::slice::from_ref(&entry), None).await;
            let mut expected = spec.clone();
            if let Some((at, field)) = path.and_then(|path| path.rsplit_once('/')) {
                expected.pointer_mut(at).unwrap().as_object_mut().unwrap().remove(field);
            }
            assert_eq!(found, expected, "{entry} {copy}");
        }
    }

    #[tokio::test]
    async fn a_number_to_which_a_custom_type_was_scaled_is_applied_and_a_default_is_not() {
        let (integer, two) = (json!({"type": "integer"}), json!({"type": "integer", "default": 2}));
        let size = json!({"f:size": {}});
        for (spec, schema, is_applied) in [
            (json!({"size": 5}), Some(json!({"size": integer})), true),
            (json!({"size": 1}), Some(json!({"size": integer})), true),
            (json!({"size": 5}), Some(json!({"size": two})), true),
            (json!({"size": 2}), Some(json!({"size": two})), false),
            // It is not known what the default is.
            (json!({"size": 5}), None, false),
        ] {
            let scaled = entry("kube-controller-manager", "scale", &size);
            let (found, asked) = applied(&spec, &json!({"size": 4}), &[scaled], schema.as_ref()).await;
            assert_eq!(found == spec, is_applied, "{spec} {schema:?} {found}");
            assert_eq!(asked, 1);
        }
        // Nor is a number at the copy to which it was scaled, of which its server names nobody.
        let two = json!({"size": two, "more": {"type": "integer"}});
        for (number, copys, schema, is_applied) in [
            (2, 4, Some(&two), false),
            (2, 2, Some(&two), true),
            (3, 4, Some(&two), true),
            (2, 4, None, true),
        ] {
            let managers = [entry("helm", "", &json!({"f:x": {}}))];
            let wanted = json!({"size": number, "more": 1, "x": 1});
            let copy = json!({"size": copys, "more": 2, "x": 2});
            let (found, _) = applied(&wanted, &copy, &managers, schema).await;
            assert_eq!(found["size"] == number, is_applied, "{number} {copys} {found}");
            assert_eq!(found["more"], 1, "it may be another default of the copy's side");
        }
        // The definition says nothing of another field, and is not read for one that is no number.
        let other = entry("helm", "", &json!({"f:more": {}}));
        let (found, asked) = applied(
            &json!({"more": 5}),
            &json!({"more": 4}),
            std::slice::from_ref(&other),
            Some(&json!({})),
        )
        .await;
        assert_eq!((found, asked), (json!({}), 1));
        let (found, asked) = applied(&json!({"more": "5"}), &json!({"more": "4"}), &[other], None).await;
        assert_eq!((found, asked), (json!({}), 0));
    }
}
