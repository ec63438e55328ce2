//! What the next step with an object and its copy is: finalizers, adoption and deletion. `copy` says what is written.
//!
//! Promises: a write to a list of others, and every delete, has a precondition, so that what somebody did meanwhile is
//! seen and not undone; a copy of another object is never taken; an object is let go when its copy is gone, not before.

use kube_lite::ResourceType;
use serde_json::{Map, Value, json};

use crate::apply::WRITER;
use crate::kcp;
use crate::keys::{
    AGENT_NAME, CLUSTER, DELETION_PROPAGATION, FINALIZER, NAME_HASH, NAMESPACE_HASH, OBJECT_STATE, ObjectKey,
};

/// What is to be done next with a pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// The object is not ours, or it is gone: nothing.
    Nothing,
    /// It has no finalizer yet.
    AddFinalizer,
    /// There is no copy.
    Create,
    /// The copy is being deleted. Its end is an event.
    WaitForCopy,
    /// Others have not finished with the object: these are their finalizers. That they are gone is an event.
    WaitForOthers(Vec<String>),
    /// Both are there: contents, then status, then what is related.
    Bring,
    /// What is related to the object, before the copy itself.
    CleanUpRelated,
    /// The copy, with what is related to it gone.
    DeleteCopy,
    /// All is gone.
    RemoveFinalizer,
}

/// What is known of a pair.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'a> {
    /// The object, as it is in its workspace.
    pub object: &'a Value,
    /// Its copy, if there is one.
    pub copy: Option<&'a Value>,
    /// Whether the filter lets it through. It says nothing about objects that are already known: those that have the
    /// finalizer.
    pub matches: bool,
    /// Whether copies of what is related to it are still there.
    pub has_related: bool,
}

/// The next step with a primary.
pub fn next(pair: &Pair<'_>) -> Next {
    let is_ours = has_finalizer(pair.object);
    if is_in_deletion(pair.object) {
        return if is_ours { next_end(pair) } else { Next::Nothing };
    }
    match pair.copy {
        _ if !pair.matches => Next::Nothing,
        _ if !is_ours => Next::AddFinalizer,
        None => Next::Create,
        Some(copy) if is_in_deletion(copy) => Next::WaitForCopy,
        Some(_) => Next::Bring,
    }
}

/// The next step with a primary that is being deleted.
fn next_end(pair: &Pair<'_>) -> Next {
    let others = other_finalizers(pair.object);
    match pair.copy {
        None if pair.has_related => Next::CleanUpRelated,
        None => Next::RemoveFinalizer,
        // What has begun goes on.
        Some(copy) if is_in_deletion(copy) => Next::WaitForCopy,
        Some(_) if !others.is_empty() => Next::WaitForOthers(others),
        Some(_) if pair.has_related => Next::CleanUpRelated,
        Some(_) => Next::DeleteCopy,
    }
}

fn metadata<'a>(object: &'a Value, key: &str) -> Option<&'a Value> {
    object.get("metadata")?.get(key).filter(|value| !value.is_null())
}

fn text<'a>(object: &'a Value, map: &str, key: &str) -> Option<&'a str> {
    metadata(object, map)?.get(key)?.as_str()
}

/// Whether somebody has deleted it.
pub fn is_in_deletion(object: &Value) -> bool {
    metadata(object, "deletionTimestamp").is_some()
}

fn finalizers(object: &Value) -> Vec<&str> {
    let all = metadata(object, "finalizers").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Whether it has the agent's finalizer.
pub fn has_finalizer(object: &Value) -> bool {
    finalizers(object).contains(&FINALIZER)
}

/// Finalizers of others that wait for something of their own. Those of the garbage collector wait for dependents.
fn other_finalizers(object: &Value) -> Vec<String> {
    let is_other = |name: &&str| !matches!(*name, FINALIZER | "foregroundDeletion" | "orphan");
    finalizers(object)
        .into_iter()
        .filter(is_other)
        .map(str::to_owned)
        .collect()
}

/// The merge patch that adds the finalizer; none if the object has it.
pub fn add_finalizer(object: &Value) -> Option<Value> {
    let mut all = finalizers(object);
    if all.contains(&FINALIZER) {
        return None;
    }
    all.push(FINALIZER);
    Some(finalizer_patch(object, &all))
}

/// The merge patch that removes the finalizer; none if the object does not have it.
pub fn remove_finalizer(object: &Value) -> Option<Value> {
    let all = finalizers(object);
    let others: Vec<_> = all.iter().copied().filter(|name| *name != FINALIZER).collect();
    (others.len() < all.len()).then(|| finalizer_patch(object, &others))
}

/// A list is written as a whole: the patch holds for this version of this object only.
fn finalizer_patch(object: &Value, finalizers: &[&str]) -> Value {
    let mut patch = preconditions(object);
    patch.insert("finalizers".to_owned(), json!(finalizers));
    json!({"metadata": patch})
}

fn preconditions(object: &Value) -> Map<String, Value> {
    let of = |key: &str| Some((key.to_owned(), metadata(object, key)?.clone()));
    ["uid", "resourceVersion"].into_iter().filter_map(of).collect()
}

/// How dependents of a copy are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// After it.
    Background,
    /// Before it.
    Foreground,
    /// Not at all.
    Orphan,
}

impl Propagation {
    /// What an object says. Its copy is deleted so; anything unknown is `Background`, as for the Go agent.
    pub fn of(object: &Value) -> Self {
        match text(object, "annotations", DELETION_PROPAGATION) {
            Some("foreground") => Self::Foreground,
            Some("orphan") => Self::Orphan,
            _ => Self::Background,
        }
    }

    /// As the API has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

/// The options of a delete: of this object, and of no other one that has its name meanwhile. None if it has no UID: then
/// nothing may be deleted.
pub fn delete_options(copy: &Value, propagation: Propagation) -> Option<Value> {
    let uid = metadata(copy, "uid")?.as_str().filter(|uid| !uid.is_empty())?;
    Some(json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": uid},
        "propagationPolicy": propagation.name(),
    }))
}

/// What is done with an object that has the name of a copy and not its labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Adoption {
    /// It becomes the copy.
    Take,
    /// It is being deleted.
    Wait,
    /// It is the copy of another object, or another agent's.
    Refuse(String),
}

/// Whether an object may become the copy of this one.
pub fn adoption(found: &Value, key: &ObjectKey, agent: &str) -> Adoption {
    if is_in_deletion(found) {
        return Adoption::Wait;
    }
    let label = |name: &str| text(found, "labels", name);
    let wanted = key.labels();
    let other = [CLUSTER, NAME_HASH, NAMESPACE_HASH].into_iter().find(|name| {
        let found = label(name);
        found.is_some() && found != wanted.get(name).map(String::as_str)
    });
    if let Some(other) = other {
        return Adoption::Refuse(format!(
            "it is the copy of another object: its label {other} is another one"
        ));
    }
    if label(CLUSTER).is_none() && text(found, "annotations", kcp::CLUSTER).is_some() {
        return Adoption::Refuse("it has come with another object of a workspace".to_owned());
    }
    match label(AGENT_NAME).filter(|name| *name != agent) {
        // An agent may have had another name: what leads to this object is its copy.
        Some(_) if label(CLUSTER).is_some() => Adoption::Take,
        Some(other) => Adoption::Refuse(format!("it is the agent's {other}")),
        None => Adoption::Take,
    }
}

/// Why an object on the service cluster is not what has come there with an object of a workspace; `None` if it is. It says
/// so as kcp's own objects do, in an annotation. `is_known`: the state of that object has it.
pub fn belongs_to_another(found: &Value, cluster: &str, agent: &str, is_known: bool) -> Option<&'static str> {
    if text(found, "labels", CLUSTER).is_some() {
        return Some("it is the copy of a published object");
    }
    match text(found, "annotations", kcp::CLUSTER) {
        Some(mark) => {
            (mark.split('/').next() != Some(cluster)).then_some("it belongs to an object of another workspace")
        }
        // Somebody has given it to the agent.
        None if text(found, "labels", AGENT_NAME) == Some(agent) => None,
        // What the Go agent has made has no marks.
        None if is_known && is_written_by_agents(found) => None,
        None => Some("no agent has made it"),
    }
}

/// Why an object in a workspace is the consumer's own, and not what has come there from the service cluster; `None` if it
/// has. Nothing there names the agent. `is_known`: the state of the origin has it.
pub fn is_of_consumer(found: &Value, is_known: bool) -> Option<&'static str> {
    if has_finalizer(found) {
        return Some("it is synced to the service cluster itself");
    }
    let is_recorded = managers_of(found).next().is_some();
    let is_ours = is_written_by_agents(found) || is_known && !is_recorded;
    (!is_ours).then_some("no agent has made it")
}

/// Why an object on the service cluster is nothing that a consumer may get; `None` if it may be.
pub fn is_no_origin(source: &Value) -> Option<&'static str> {
    if text(source, "labels", OBJECT_STATE).is_some() {
        return Some("it is a state Secret");
    }
    if text(source, "labels", CLUSTER).is_some() {
        return Some("it is the copy of a published object");
    }
    text(source, "annotations", kcp::CLUSTER).map(|_| "it has come from a workspace itself")
}

/// True for a Secret by which the server of its cluster lets somebody in: it makes one that names a `ServiceAccount` a token of
/// that, and takes what a bootstrap token says for credentials.
pub fn lets_in(resource: &ResourceType, object: &Value) -> bool {
    const TYPES: [&str; 2] = ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"];
    resource.is("", "secrets") && object["type"].as_str().is_some_and(|it| TYPES.contains(&it))
}

/// Of which object of its workspace something on the service cluster says that it is from: namespace and name.
pub fn origin_of(found: &Value) -> Option<(&str, &str)> {
    let (_, origin) = text(found, "annotations", kcp::CLUSTER)?.split_once('/')?;
    origin.split_once('/')
}

fn managers_of(found: &Value) -> impl Iterator<Item = &Value> {
    let all = metadata(found, "managedFields").and_then(Value::as_array);
    all.into_iter().flatten()
}

/// True if an agent has written it, this one or the Go agent: more than a finalizer.
fn is_written_by_agents(found: &Value) -> bool {
    managers_of(found).any(|entry| {
        let manager = entry["manager"].as_str().unwrap_or_default();
        let rest = manager.strip_prefix(WRITER);
        let is_agent = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        is_agent && !has_finalizers_alone(&entry["fieldsV1"])
    })
}

fn has_finalizers_alone(fields: &Value) -> bool {
    let has_only = |value: &Value, key: &str| {
        let members = value.as_object();
        members.is_some_and(|members| members.len() == 1 && members.contains_key(key))
    };
    has_only(fields, "f:metadata") && has_only(&fields["f:metadata"], "f:finalizers")
}

/// Applies a merge patch as an API server does.
pub fn apply(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = without_nulls(patch);
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(members) = target.as_object_mut() else { return };
    for (key, value) in patch {
        if value.is_null() {
            members.remove(key);
        } else {
            apply(members.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// A value of a patch: members that are null are not there, in lists too.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        Value::Object(members) => {
            let members = members.iter().filter(|(_, value)| !value.is_null());
            members
                .map(|(key, value)| (key.clone(), without_nulls(value)))
                .collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::difference;

    const TABLE: &str = include_str!("../tests/data/rules/merge.tsv");

    #[test]
    fn merge_patches_are_those_of_go() {
        let mut count = 0;
        for line in TABLE.lines() {
            let cells: Vec<Value> = line
                .split('\t')
                .skip(1)
                .map(|cell| serde_json::from_str(cell).unwrap())
                .collect();
            let [before, after, local, patch, merged] = &cells[..] else {
                panic!("{line}")
            };
            let ours = difference(before, after).unwrap_or_else(|| json!({}));
            assert_eq!(&ours, patch, "from {before}\nto {after}");
            let mut target = local.clone();
            apply(&mut target, patch);
            assert_eq!(&target, merged, "{patch}\nto {local}");
            count += 1;
        }
        assert!(count > 250, "{count} rows");
    }

    fn object(finalizers: &[&str], in_deletion: bool) -> Value {
        let mut object = json!({"metadata": {"name": "web", "uid": "u1", "resourceVersion": "7"}});
        if !finalizers.is_empty() {
            object["metadata"]["finalizers"] = json!(finalizers);
        }
        if in_deletion {
            object["metadata"]["deletionTimestamp"] = json!("2024-01-01T00:00:00Z");
        }
        object
    }

    #[test]
    fn the_next_step_follows_from_what_is_there() {
        let (here, ended) = (object(&[], false), object(&[], true));
        let check = |finalizers: &[&str], in_deletion: bool, copy: Option<&Value>, matches: bool, has_related: bool| {
            let object = object(finalizers, in_deletion);
            next(&Pair {
                object: &object,
                copy,
                matches,
                has_related,
            })
        };
        let ours: &[&str] = &[FINALIZER];
        let both: &[&str] = &["x/wait", FINALIZER];
        let garbage: &[&str] = &["foregroundDeletion", FINALIZER];
        for (finalizers, in_deletion, copy, matches, has_related, expected) in [
            (&[][..], false, None, true, false, Next::AddFinalizer),
            (&[], false, Some(&here), true, false, Next::AddFinalizer),
            (&[], false, None, false, false, Next::Nothing),
            (ours, false, None, false, false, Next::Nothing),
            (ours, false, None, true, false, Next::Create),
            (ours, false, Some(&here), true, true, Next::Bring),
            (both, false, Some(&here), true, false, Next::Bring),
            (ours, false, Some(&ended), true, false, Next::WaitForCopy),
            (&[], true, Some(&here), true, true, Next::Nothing),
            (&["x/wait"], true, None, true, false, Next::Nothing),
            (ours, true, Some(&here), true, true, Next::CleanUpRelated),
            (ours, true, Some(&here), true, false, Next::DeleteCopy),
            (ours, true, Some(&here), false, false, Next::DeleteCopy),
            (garbage, true, Some(&here), true, false, Next::DeleteCopy),
            (ours, true, Some(&ended), true, false, Next::WaitForCopy),
            (
                both,
                true,
                Some(&here),
                true,
                true,
                Next::WaitForOthers(vec!["x/wait".to_owned()]),
            ),
            (both, true, Some(&ended), true, false, Next::WaitForCopy),
            (both, true, None, true, false, Next::RemoveFinalizer),
            (ours, true, None, true, true, Next::CleanUpRelated),
            (ours, true, None, false, false, Next::RemoveFinalizer),
        ] {
            let found = check(finalizers, in_deletion, copy, matches, has_related);
            assert_eq!(
                found, expected,
                "{finalizers:?} {in_deletion} {copy:?} {matches} {has_related}"
            );
        }
    }

    #[test]
    fn a_finalizer_is_written_to_the_version_that_was_read() {
        let patch =
            |finalizers: &[&str]| json!({"metadata": {"uid": "u1", "resourceVersion": "7", "finalizers": finalizers}});
        assert_eq!(add_finalizer(&object(&[], false)), Some(patch(&[FINALIZER])));
        assert_eq!(add_finalizer(&object(&["a"], false)), Some(patch(&["a", FINALIZER])));
        assert_eq!(add_finalizer(&object(&[FINALIZER, "a"], false)), None);
        assert_eq!(
            remove_finalizer(&object(&["a", FINALIZER, "b"], true)),
            Some(patch(&["a", "b"]))
        );
        assert_eq!(remove_finalizer(&object(&[FINALIZER], true)), Some(patch(&[])));
        assert_eq!(remove_finalizer(&object(&["a"], true)), None);
    }

    #[test]
    fn a_delete_names_its_object_and_what_becomes_of_dependents() {
        for (annotation, expected) in [
            (json!(null), "Background"),
            (json!("foreground"), "Foreground"),
            (json!("orphan"), "Orphan"),
            (json!("background"), "Background"),
            (json!("Foreground"), "Background"),
            (json!(7), "Background"),
        ] {
            let mut origin = object(&[], true);
            origin["metadata"]["annotations"] = json!({ DELETION_PROPAGATION: annotation });
            let options = delete_options(&object(&[], false), Propagation::of(&origin)).unwrap();
            assert_eq!(options["propagationPolicy"], expected, "{annotation}");
            assert_eq!(options["preconditions"], json!({"uid": "u1"}));
        }
        assert_eq!(delete_options(&json!({"metadata": {}}), Propagation::Background), None);
        assert_eq!(
            delete_options(&json!({"metadata": {"uid": ""}}), Propagation::Background),
            None
        );
    }

    #[test]
    fn the_copy_of_another_object_is_not_taken() {
        let key = |cluster: &str, namespace: &str| ObjectKey {
            cluster: cluster.to_owned(),
            workspace_path: None,
            namespace: namespace.to_owned(),
            name: "web".to_owned(),
        };
        let labelled = |key: &ObjectKey, agent: Option<&str>| {
            let mut labels = json!(key.labels());
            if let Some(agent) = agent {
                labels[AGENT_NAME] = json!(agent);
            }
            json!({"metadata": {"labels": labels}})
        };
        let ours = key("c1", "shop");
        let is_taken = |found: &Value| adoption(found, &ours, "me") == Adoption::Take;
        assert!(is_taken(&json!({})));
        assert!(is_taken(&json!({"metadata": {"labels": {"app": "web"}}})));
        assert!(is_taken(&labelled(&ours, Some("me"))));
        assert!(is_taken(&labelled(&ours, Some("me-before"))));
        assert!(is_taken(&json!({"metadata": {"labels": {AGENT_NAME: "me"}}})));
        assert!(!is_taken(&json!({"metadata": {"labels": {AGENT_NAME: "other"}}})));
        assert!(!is_taken(&labelled(&key("c2", "shop"), Some("me"))));
        assert!(!is_taken(&labelled(&key("c1", "other"), Some("me"))));
        assert!(!is_taken(&labelled(&key("c1", "other"), None)));
        // Found from outside: it became the copy of another tenant's object, with labels of who had sent it.
        let sent = |cluster: &str| json!({"metadata": {"annotations": {kcp::CLUSTER: format!("{cluster}/shop/web")}}});
        assert!(!is_taken(&sent("c2")) && !is_taken(&sent("c1")));
        let of_cluster_scope = key("c1", "");
        assert!(matches!(
            adoption(&labelled(&ours, None), &of_cluster_scope, "me"),
            Adoption::Refuse(_)
        ));
        assert_eq!(adoption(&object(&[], true), &ours, "me"), Adoption::Wait);
    }

    #[test]
    fn what_belongs_to_nobody_or_to_another_workspace_is_not_taken() {
        let with = |labels: Value, annotations: Value, manager: &str| {
            let managers = json!([{"manager": manager}]);
            json!({"metadata": {"labels": labels, "annotations": annotations, "managedFields": managers}})
        };
        let (none, own, copy) = (json!({}), json!({kcp::CLUSTER: "c1"}), json!({CLUSTER: "c1"}));
        for (found, is_known, is_taken) in [
            (with(none.clone(), own.clone(), "kubectl"), false, true),
            (
                with(none.clone(), json!({kcp::CLUSTER: "c1/shop/keys"}), "kubectl"),
                false,
                true,
            ),
            (
                with(none.clone(), json!({kcp::CLUSTER: "c12/shop/keys"}), "kubectl"),
                false,
                false,
            ),
            (
                with(none.clone(), json!({kcp::CLUSTER: "c2"}), "api-syncagent"),
                true,
                false,
            ),
            (with(copy, own, "api-syncagent"), true, false),
            (with(json!({AGENT_NAME: "me"}), none.clone(), "kubectl"), false, true),
            (with(json!({AGENT_NAME: "other"}), none.clone(), "kubectl"), true, false),
            (with(none.clone(), none.clone(), "api-syncagent"), true, true),
            (with(none.clone(), none.clone(), "api-syncagent/a"), true, true),
            (with(none.clone(), none.clone(), "api-syncagents"), true, false),
            // Of which workspace it is nobody knows.
            (with(none.clone(), none.clone(), "api-syncagent"), false, false),
            (with(none.clone(), none, "kubectl"), true, false),
            (json!({}), true, false),
        ] {
            let why = belongs_to_another(&found, "c1", "me", is_known);
            assert_eq!(why.is_none(), is_taken, "{found} {is_known}: {why:?}");
        }
    }

    #[test]
    fn what_a_consumer_has_made_is_no_copy_of_what_has_come_to_a_workspace() {
        let by = |manager: &str, fields: Value| json!([{"manager": manager, "fieldsV1": fields}]);
        let data = json!({"f:data": {}, "f:metadata": {"f:annotations": {}}});
        let mark = json!({"f:metadata": {"f:finalizers": {}}});
        for (managers, is_known, is_taken) in [
            (by("api-syncagent", data.clone()), false, true),
            (by("api-syncagent/a", data.clone()), false, true),
            (by("kubectl", data.clone()), false, false),
            // Its origin was another one, or it was made again.
            (by("kubectl", data.clone()), true, false),
            (by("api-syncagent", mark), true, false),
            // Somebody has emptied it.
            (json!([]), true, true),
            (json!([]), false, false),
        ] {
            let found = json!({"metadata": {"managedFields": managers}});
            let why = is_of_consumer(&found, is_known);
            assert_eq!(why.is_none(), is_taken, "{found} {is_known}: {why:?}");
        }
        let mut synced = json!({"metadata": {"managedFields": by("api-syncagent", data)}});
        synced["metadata"]["finalizers"] = json!([FINALIZER]);
        assert!(is_of_consumer(&synced, true).is_some());
    }

    #[test]
    fn what_has_come_from_a_workspace_and_what_the_agent_keeps_goes_to_no_consumer() {
        for (labels, annotations, is_origin) in [
            (json!({}), json!({}), true),
            (json!({"app": "x", AGENT_NAME: "me"}), json!({"a": "b"}), true),
            (json!({OBJECT_STATE: "true"}), json!({}), false),
            (json!({CLUSTER: "c1"}), json!({}), false),
            (json!({}), json!({kcp::CLUSTER: "c1/shop/keys"}), false),
        ] {
            let source = json!({"metadata": {"labels": labels, "annotations": annotations}});
            assert_eq!(is_no_origin(&source).is_none(), is_origin, "{source}");
        }
    }
}
