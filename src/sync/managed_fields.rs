//! Whose fields a copy has: noticing drift, and naming who changes a copy back. [`super::take_over`] makes what other
//! writers have left ours.
//!
//! The API server keeps for each field manager the set of fields that it owns. Whoever changes or removes a field that
//! we applied takes it out of our set; what others add beside our fields, and status, leaves it as it is. So a change
//! of our set is drift. The only other drift is an apply of other values under our own name: the late request of a
//! syncer that is no longer the leader. The server gives our entry a new time then, and only then. [`marks`] detects
//! both between one version of a copy and the next, without knowing any value, also from metadata alone.

use std::borrow::Cow;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use kube_lite::Error;
use kube_lite::bounded::at_most;
use kube_lite::fields::from_text;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::field_set::FieldSet;
use crate::api::FIELD_MANAGER;
use crate::plan::Direction;

/// Field managers of the Go syncer: its user agent begins with the name of its executable. Its updates clear
/// `managedFields`; the API server then names what it finds at the first apply `before-first-apply`.
pub(super) const GO_SYNCER: [&str; 3] = ["syncer", "kubestellar-syncer", MADE_UP];

/// What the server calls the manager of all fields of an object that had none when it was first applied.
pub(super) const MADE_UP: &str = "before-first-apply";

/// The clusters' own controllers; in k3s, `MicroK8s`, `MicroShift` and kcp all of them are one program.
const CONTROLLERS: [&str; 10] = [
    "cloud-controller-manager",
    "k3s",
    "kcp",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kubelite",
    "microshift",
    "openshift-controller-manager",
];

/// The fields of a spec by which people restart pods, each a time: the annotation of a pod template (`kubectl rollout
/// restart`), and what Argo Rollouts has instead (`kubectl argo rollouts restart`). An operation, and no change of what they
/// run.
pub(super) const RESTARTS: [&str; 2] = ["kubectl.kubernetes.io/restartedAt", "restartAt"];
const RESTART_KEYS: [&str; 2] = ["f:kubectl.kubernetes.io/restartedAt", "f:restartAt"];

/// Where our mark is.
const OUR_MARK: [&str; 3] = ["f:metadata", "f:annotations", "f:edge.kubestellar.io/owner"];

/// What is no contents of an object.
pub(super) const NO_CONTENTS: [&[&str]; 2] = [&["f:metadata"], &["f:status"]];

/// What of a copy we write by patches beside an apply.
pub(super) const PATCHED: [&[&str]; 3] = [
    &["f:status"],
    &["f:metadata", "f:annotations", "f:edge.kubestellar.io/pull-secrets"],
    &["f:imagePullSecrets"],
];

/// More field managers than any object has.
const MOST_MANAGERS: usize = 1000;
/// Paths named in a log line.
const NAMED_FIELDS: usize = 3;

#[derive(Deserialize)]
struct Wire {
    metadata: WireMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireMeta {
    #[serde(default, deserialize_with = "at_most::<_, _, MOST_MANAGERS>")]
    managed_fields: Vec<Value>,
}

/// The same with its entries unparsed: an entry is as deep as the object.
#[derive(Deserialize)]
struct RawWire<'a> {
    #[serde(borrow)]
    metadata: RawMeta<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawMeta<'a> {
    #[serde(default)]
    resource_version: String,
    #[serde(default, borrow, deserialize_with = "at_most::<_, _, MOST_MANAGERS>")]
    managed_fields: Vec<&'a RawValue>,
}

/// One entry of `managedFields`, its field set unparsed.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Owner<'a> {
    #[serde(default, borrow)]
    pub(super) manager: Cow<'a, str>,
    #[serde(default, borrow)]
    pub(super) operation: Cow<'a, str>,
    #[serde(default, borrow, rename = "apiVersion")]
    pub(super) api_version: Cow<'a, str>,
    #[serde(default, borrow)]
    pub(super) subresource: Cow<'a, str>,
    #[serde(default, borrow)]
    time: Cow<'a, str>,
    #[serde(default, borrow)]
    fields_v1: Option<&'a RawValue>,
}

/// Whose fields are reverted in a copy: of these field managers, names or prefixes that end in `*`, and of the Go syncer;
/// with `None`, nobody's.
pub type RevertFrom<'a> = Option<&'a [String]>;

/// A hash of what we control in a copy: the fields that we own, those that people own and that are to be reverted, and
/// whether it is being deleted, by its `metadata`; a restart of pods is none of these. Another value means that somebody else has changed it.
/// Never 0.
pub fn marks(metadata: &str, direction: Direction, revert_from: RevertFrom) -> Result<u64, Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Marked<'a> {
        #[serde(default)]
        deletion_timestamp: Option<String>,
        #[serde(default, borrow, deserialize_with = "at_most::<_, _, MOST_MANAGERS>")]
        managed_fields: Vec<Owner<'a>>,
    }
    let marked: Marked = parse(metadata.as_bytes())?;
    let mut hasher = DefaultHasher::new();
    marked.deletion_timestamp.is_some().hash(&mut hasher);
    for owner in &marked.managed_fields {
        let ours = owner.is_our_apply();
        if !ours && !owner.is_taken(direction, revert_from) {
            continue;
        }
        let fields = owner.fields_without_restarts();
        if ours || fields.as_deref().is_none_or(|fields| fields != "{}") {
            owner.manager.hash(&mut hasher);
            owner.time.hash(&mut hasher);
            fields.hash(&mut hasher);
        }
    }
    Ok(hasher.finish().max(1))
}

/// True if a field manager is this syncer or the Go syncer.
pub fn is_syncer(manager: &str) -> bool {
    manager == FIELD_MANAGER || GO_SYNCER.contains(&manager)
}

/// True for the clusters' own controllers.
pub(super) fn is_controller(manager: &str) -> bool {
    CONTROLLERS.contains(&manager)
}

/// What the managers of an object say of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Managers {
    /// This syncer or the Go syncer is one of them, or there are none: one of the two has written it. The Go syncer's updates
    /// empty the list; whatever else creates or changes an object is in it.
    pub by_syncer: bool,
    /// Somebody else than a controller has a field that we have set.
    pub shared: bool,
    /// Somebody else has contents that we do not apply.
    pub others_have_more: bool,
    /// We have written more of it otherwise than by an apply than what we only ever patch.
    pub made: bool,
}

impl Default for Managers {
    fn default() -> Self {
        Self::of(&[])
    }
}

impl<'de> Deserialize<'de> for Managers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let owners: Vec<Owner<'de>> = at_most::<_, _, MOST_MANAGERS>(deserializer)?;
        Ok(Self::of(&owners))
    }
}

impl Managers {
    fn of(owners: &[Owner<'_>]) -> Self {
        let others: Vec<_> = owners.iter().filter(|owner| owner.may_share()).collect();
        let shares = || {
            let ours = may_be_shared(owners.iter()).unwrap_or_default();
            let mut theirs = others.iter().filter_map(|owner| field_set(owner).ok());
            theirs.any(|theirs| theirs.shares_with(&ours))
        };
        Self {
            by_syncer: owners.is_empty() || owners.iter().any(|owner| is_syncer(&owner.manager)),
            shared: !others.is_empty() && shares(),
            others_have_more: beside_ours(owners.iter(), |_| true).is_ok_and(|theirs| !theirs.is_empty()),
            made: owners.iter().any(Owner::is_made_not_patched),
        }
    }
}

/// The contents of a copy that others have set who may have the say, and who are `meant`, beside what we apply.
pub(super) fn beside_ours<'o, 'a: 'o>(
    owners: impl Iterator<Item = &'o Owner<'a>> + Clone,
    meant: impl Fn(&Owner<'_>) -> bool,
) -> Result<FieldSet, Error> {
    let mut theirs = FieldSet::default();
    for owner in owners.clone().filter(|owner| owner.may_have_the_say() && meant(owner)) {
        theirs.add(&field_set(owner)?);
    }
    for path in NO_CONTENTS {
        theirs.leave_out(path);
    }
    if !theirs.is_empty() {
        for owner in owners.filter(|owner| owner.is_our_apply()) {
            theirs.subtract(&field_set(owner)?);
        }
    }
    Ok(theirs)
}

/// What we have set in a copy and must not be others' too: all but our mark, by which an entry is known that the server has
/// made up for a copy of ours. A copy at the hub is created by us before it is applied.
pub(super) fn may_be_shared<'o, 'a: 'o>(owners: impl Iterator<Item = &'o Owner<'a>>) -> Result<FieldSet, Error> {
    let mut fields = FieldSet::default();
    for owner in owners.filter(|owner| owner.is_our_apply() || owner.is_made_by_us()) {
        fields.add(&field_set(owner)?);
    }
    fields.leave_out(&OUR_MARK);
    Ok(fields)
}

impl Owner<'_> {
    pub(super) fn is_our_apply(&self) -> bool {
        self.manager == FIELD_MANAGER && self.operation == "Apply" && self.subresource.is_empty()
    }

    /// True for a writer whose fields become ours alone where we apply them too. What controllers and subresources (`status`,
    /// `scale`) have set stays theirs.
    pub(super) fn may_share(&self) -> bool {
        self.subresource.is_empty() && self.manager != FIELD_MANAGER && !is_controller(&self.manager)
    }

    /// True for a writer at the copy's side who may have set what nobody at the origin has: also a controller, and whoever
    /// scales it.
    pub(super) fn may_have_the_say(&self) -> bool {
        self.subresource != "status" && !is_syncer(&self.manager)
    }

    /// True if its fields are ours in a copy of that direction, or are reverted.
    fn is_taken(&self, direction: Direction, revert_from: RevertFrom) -> bool {
        // A copy at the hub is created by us, not applied.
        let is_made = direction == Direction::Up && self.is_made_by_us();
        is_made || self.is_reverted(revert_from)
    }

    /// True if its fields are reverted.
    pub(super) fn is_reverted(&self, revert_from: RevertFrom) -> bool {
        self.subresource.is_empty() && self.is_of(revert_from)
    }

    /// True for what we have written otherwise than by an apply.
    pub(super) fn is_made_by_us(&self) -> bool {
        self.manager == FIELD_MANAGER && self.operation == "Update" && self.subresource.is_empty()
    }

    fn is_made_not_patched(&self) -> bool {
        let has_more = || {
            let mut fields = field_set(self).unwrap_or_default();
            for path in PATCHED {
                fields.leave_out(path);
            }
            !fields.is_empty()
        };
        self.is_made_by_us() && has_more()
    }

    fn is_of(&self, revert_from: RevertFrom) -> bool {
        let Some(revert_from) = revert_from else { return false };
        let manager = &*self.manager;
        let by_people = manager != FIELD_MANAGER
            && revert_from.iter().any(|pattern| match pattern.strip_suffix('*') {
                Some(prefix) => manager.starts_with(prefix),
                None => manager == pattern,
            });
        by_people || self.operation == "Update" && self.is_go_syncer()
    }

    /// True for the fields of a copy that the Go syncer has written: what the server makes up for a copy of ours of which
    /// somebody has emptied the list of managers has our mark too.
    pub(super) fn is_go_syncer(&self) -> bool {
        GO_SYNCER.contains(&&*self.manager) && !(self.manager == MADE_UP && self.has_our_mark())
    }

    fn has_our_mark(&self) -> bool {
        field_set(self).is_ok_and(|fields| !fields.only(&OUR_MARK).is_empty())
    }

    /// Its fields, as they are written, without what only restarts pods.
    fn fields_without_restarts(&self) -> Option<Cow<'_, str>> {
        let text = self.fields_v1?.get();
        let without = || {
            let mut fields = FieldSet::parse(text)?;
            leave_out_restarts(&mut fields).then(|| Cow::Owned(fields.render()))
        };
        // A restart is rare: most need not be parsed.
        let restarts = RESTART_KEYS.iter().any(|key| text.contains(key));
        Some(restarts.then(without).flatten().unwrap_or(Cow::Borrowed(text)))
    }
}

/// Leaves out what restarts pods. True if there was any.
pub(super) fn leave_out_restarts(fields: &mut FieldSet) -> bool {
    RESTART_KEYS
        .map(|key| fields.leave_out_below_key("f:spec", key))
        .contains(&true)
}

/// The managers of an object, and its resource version: what a patch of the managers is made from.
pub(super) struct Entries<'a> {
    version: String,
    all: Vec<(&'a RawValue, Owner<'a>)>,
}

impl<'a> Entries<'a> {
    pub(super) fn of(object: &'a [u8]) -> Result<Self, Error> {
        let wire: RawWire<'a> = parse(object)?;
        let entries = wire.metadata.managed_fields.into_iter();
        let all = entries.map(|entry| Ok((entry, parse(entry.get().as_bytes())?)));
        Ok(Self {
            version: wire.metadata.resource_version,
            all: all.collect::<Result<_, Error>>()?,
        })
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a RawValue, &Owner<'a>)> + Clone {
        self.all.iter().map(|(entry, owner)| (*entry, owner))
    }

    /// The patch that puts these entries in their place. It is valid only as long as nobody changes the object (its resource
    /// version is in it).
    pub(super) fn patch(&self, entries: &[String]) -> String {
        let (version, entries) = (Value::from(&*self.version), entries.join(","));
        format!(r#"{{"metadata":{{"resourceVersion":{version},"managedFields":[{entries}]}}}}"#)
    }
}

/// The fields that we have applied, and those that others own or that we have written in another way.
pub(super) fn owned(object: &[u8]) -> Result<(FieldSet, FieldSet), Error> {
    let (mut ours, mut others) = (FieldSet::default(), FieldSet::default());
    for (_, owner) in Entries::of(object)?.iter() {
        let set = if owner.is_our_apply() { &mut ours } else { &mut others };
        set.add(&field_set(owner)?);
    }
    Ok((ours, others))
}

/// Who changed a copy last, other than ourselves, and which fields: `manager=x fields=spec.replicas`.
pub fn last_writer(object: &[u8]) -> Option<(String, String)> {
    let wire: Wire = parse(object).ok()?;
    let others = wire
        .metadata
        .managed_fields
        .iter()
        .filter(|entry| text(entry, "manager") != FIELD_MANAGER && text(entry, "subresource") != "status");
    let drifts = others.filter_map(|entry| Some((entry, fields_of_drift(entry)?)));
    let (last, fields) = drifts.max_by_key(|(entry, _)| text(entry, "time").to_owned())?;
    let mut paths = Vec::new();
    collect_paths(&fields, &mut String::new(), &mut paths);
    Some((text(last, "manager").to_owned(), paths.join(",")))
}

/// The fields of an entry that may be drift; `None` if it does no more than restart pods.
fn fields_of_drift(entry: &Value) -> Option<Value> {
    let mut fields = entry["fieldsV1"].clone();
    if let Some(mut set) = FieldSet::parse(&fields.to_string())
        && leave_out_restarts(&mut set)
    {
        fields = from_text(&set.render()).ok()?;
        fields.as_object().filter(|fields| !fields.is_empty())?;
    }
    // A controller without a subresource for it writes the status too, which is no drift.
    fields.as_object_mut().and_then(|fields| fields.remove("f:status"));
    Some(fields)
}

fn text<'a>(entry: &'a Value, field: &str) -> &'a str {
    entry[field].as_str().unwrap_or_default()
}

pub(super) fn parse<'a, T: Deserialize<'a>>(object: &'a [u8]) -> Result<T, Error> {
    serde_json::from_slice(object).map_err(|error| Error::BadAnswer(format!("managed fields: {error}")))
}

pub(super) fn field_set(owner: &Owner<'_>) -> Result<FieldSet, Error> {
    let Some(raw) = owner.fields_v1 else {
        return Ok(FieldSet::default());
    };
    FieldSet::parse(raw.get()).ok_or_else(|| Error::BadAnswer("managed fields that are no field set".into()))
}

fn collect_paths(fields: &Value, path: &mut String, paths: &mut Vec<String>) {
    let Some(fields) = fields.as_object() else {
        return;
    };
    for (key, value) in fields {
        if paths.len() == NAMED_FIELDS {
            return;
        }
        let length = path.len();
        if let Some(name) = key.strip_prefix("f:") {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(name);
        }
        if value.as_object().is_some_and(serde_json::Map::is_empty) && key != "." {
            paths.push(path.clone());
        } else {
            collect_paths(value, path, paths);
        }
        path.truncate(length);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    pub(in crate::sync) fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "time": "2026-01-01T00:00:00Z", "fieldsV1": fields})
    }

    pub(in crate::sync) fn ours() -> Value {
        entry("edge-syncer", "Apply", &json!({"f:data": {"f:a": {}}}))
    }

    #[test]
    fn drift_is_a_change_of_the_fields_that_are_ours_and_nothing_else() {
        let patterns = ["kubectl".to_owned(), "kubectl-*".to_owned()];
        let marks_of = |object: &Value| {
            let metadata = object["metadata"].to_string();
            marks(&metadata, Direction::Down, Some(&patterns)).unwrap()
        };
        let copy = |entries: &[Value]| json!({"metadata": {"name": "a", "managedFields": entries}, "data": {"x": "y"}});
        let base = marks_of(&copy(&[ours()]));
        let controller = entry("hpa", "Update", &json!({"f:spec": {"f:replicas": {}}}));
        let mut later = ours();
        later["time"] = json!("2027-01-01T00:00:00Z");
        let mut status = entry("kubectl", "Update", &json!({"f:status": {}}));
        status["subresource"] = json!("status");
        for same in [vec![ours(), controller], vec![ours(), status]] {
            assert_eq!(marks_of(&copy(&same)), base, "{same:?}");
        }
        let mut deleted = copy(&[ours()]);
        deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        let taken = entry("edge-syncer", "Apply", &json!({"f:data": {}}));
        let people = entry("kubectl-edit", "Update", &json!({"f:data": {"f:b": {}}}));
        // Other values of the same fields, applied under our own name by a syncer that is no longer the leader.
        for other in [
            deleted,
            copy(&[taken]),
            copy(&[]),
            copy(&[ours(), people]),
            copy(&[later]),
        ] {
            assert_ne!(marks_of(&other), base, "{other}");
        }
    }

    #[test]
    fn where_nothing_is_reverted_what_others_add_is_no_drift() {
        let copy =
            |entries: &[Value]| json!({"name": "a", "resourceVersion": "7", "managedFields": entries}).to_string();
        let marks_of = |metadata: &str| marks(metadata, Direction::Down, None).unwrap();
        let base = marks_of(&copy(&[ours()]));
        for manager in ["kubectl-edit", "syncer", "before-first-apply"] {
            let theirs = entry(manager, "Update", &json!({"f:metadata": {"f:labels": {"f:x": {}}}}));
            let metadata = copy(&[ours(), theirs]);
            assert_eq!(marks_of(&metadata), base, "{manager}");
        }
        let robbed = entry("edge-syncer", "Apply", &json!({"f:data": {}}));
        assert_ne!(marks_of(&copy(&[robbed])), base);
    }

    /// The managed fields of a spec in which this restarts pods, and of nothing else.
    fn restart(key: &str) -> Value {
        match key {
            "f:restartAt" => json!({key: {}}),
            _ => json!({"f:template": {"f:metadata": {"f:annotations": {".": {}, key: {}}}}}),
        }
    }

    fn restarted(manager: &str, key: &str, more: &Value) -> Value {
        let mut fields = more.clone();
        fields["f:spec"] = restart(key);
        entry(manager, "Update", &fields)
    }

    // Found from outside: `kubectl rollout restart` at the edge was undone within a second.
    #[test]
    fn a_restart_of_pods_is_no_drift() {
        let patterns = ["kubectl-*".to_owned()];
        let marks_of = |entries: &[Value]| {
            let metadata = json!({"name": "a", "managedFields": entries}).to_string();
            marks(&metadata, Direction::Down, Some(&patterns)).unwrap()
        };
        let applied = |spec: Value| entry("edge-syncer", "Apply", &json!({"f:spec": spec}));
        let base = marks_of(&[ours()]);
        for key in RESTART_KEYS {
            assert_eq!(marks_of(&[ours(), restarted("kubectl-rollout", key, &json!({}))]), base);
            let more = json!({"f:data": {"f:b": {}}});
            assert_ne!(marks_of(&[ours(), restarted("kubectl-edit", key, &more)]), base);
            // Also where the hub has asked for one before.
            let (mut before, after) = (restart(key), json!({"f:replicas": {}}));
            before["f:replicas"] = json!({});
            assert_eq!(
                marks_of(&[applied(after)]),
                marks_of(&[applied(before.clone())]),
                "{key}"
            );
            before["f:paused"] = json!({});
            assert_ne!(
                marks_of(&[applied(before)]),
                marks_of(&[applied(restart(key))]),
                "{key}"
            );
        }
    }

    #[test]
    fn a_restart_that_stays_is_not_named_for_what_is_corrected() {
        let edited = entry("kubectl-edit", "Update", &json!({"f:data": {"f:b": {}}}));
        let late = |mut entry: Value| {
            entry["time"] = json!("2026-01-02T00:00:00Z");
            entry
        };
        let named = |entries: &[Value]| {
            let object = json!({"metadata": {"name": "a", "managedFields": entries}}).to_string();
            last_writer(object.as_bytes())
        };
        for key in RESTART_KEYS {
            let restart = late(restarted("kubectl-rollout", key, &json!({})));
            let both = late(restarted("kubectl-rollout", key, &json!({"f:data": {"f:c": {}}})));
            let by = |manager: &str, fields: &str| Some((manager.to_owned(), fields.to_owned()));
            assert_eq!(
                named(&[ours(), edited.clone(), restart.clone()]),
                by("kubectl-edit", "data.b")
            );
            assert_eq!(named(&[ours(), edited.clone(), both]), by("kubectl-rollout", "data.c"));
            assert_eq!(named(&[ours(), restart]), None);
        }
    }

    // Found from outside: as the docs of Kubernetes give it, `[{}]` empties the list. The server then names all fields for
    // `before-first-apply`, those of controllers too.
    #[test]
    fn what_the_server_makes_up_for_a_copy_of_ours_is_not_the_go_syncers() {
        let made_up = |annotation: &str| {
            let fields = json!({"f:metadata": {"f:annotations": {annotation: {}}}, "f:data": {"f:b": {}}});
            entry("before-first-apply", "Update", &fields)
        };
        for (annotation, is_taken) in [
            ("f:edge.kubestellar.io/downsynced", true),
            ("f:edge.kubestellar.io/owner", false),
        ] {
            let made_up = made_up(annotation).to_string();
            let owner: Owner = serde_json::from_str(&made_up).unwrap();
            for direction in [Direction::Down, Direction::Up] {
                assert_eq!(owner.is_taken(direction, Some(&[])), is_taken, "{annotation}");
            }
        }
    }

    #[test]
    fn a_field_is_shared_with_whoever_else_has_it_unless_that_is_a_controller() {
        assert_eq!(OUR_MARK[2], format!("f:{}", crate::api::OWNER));
        let fields = json!({"f:data": {"f:a": {}}});
        let shared = |other: Value| {
            let object = json!([ours(), other]).to_string();
            let owners: Vec<Owner<'_>> = serde_json::from_str(&object).unwrap();
            Managers::of(&owners).shared
        };
        for (manager, operation, expected) in [
            ("helm", "Update", true),
            ("argocd", "Apply", true),
            ("before-first-apply", "Update", true),
            ("kube-controller-manager", "Update", false),
            ("edge-syncer", "Update", false),
        ] {
            assert_eq!(shared(entry(manager, operation, &fields)), expected, "{manager}");
            assert!(!shared(entry(
                manager,
                operation,
                &json!({"f:data": {".": {}, "f:b": {}}})
            )));
        }
        let mut scaled = entry("kubectl", "Update", &fields);
        scaled["subresource"] = json!("scale");
        assert!(!shared(scaled));
    }

    // Found by seed 282: an annotation that a create had written stayed when the origin dropped it.
    #[test]
    fn what_we_have_made_is_more_than_what_we_only_ever_patch() {
        let annotation = |key: &str| json!({"f:metadata": {"f:annotations": {key: {}}}});
        for (manager, operation, fields, expected) in [
            ("edge-syncer", "Update", json!({"f:data": {"f:a": {}}}), true),
            ("edge-syncer", "Update", annotation("f:note"), true),
            (
                "edge-syncer",
                "Update",
                annotation("f:edge.kubestellar.io/pull-secrets"),
                false,
            ),
            (
                "edge-syncer",
                "Update",
                json!({"f:imagePullSecrets": {}, "f:status": {}}),
                false,
            ),
            ("edge-syncer", "Apply", json!({"f:data": {"f:a": {}}}), false),
            ("helm", "Update", json!({"f:data": {"f:a": {}}}), false),
        ] {
            let entries = json!([entry(manager, operation, &fields)]).to_string();
            let owners: Vec<Owner<'_>> = serde_json::from_str(&entries).unwrap();
            assert_eq!(Managers::of(&owners).made, expected, "{manager} {operation} {fields}");
        }
    }

    #[test]
    fn names_who_changed_a_copy_last_and_what() {
        let fields =
            json!({"f:spec": {".": {}, "f:replicas": {}, "f:template": {"f:x": {}}}, "f:status": {"f:phase": {}}});
        for (subresource, expected) in [
            ("", ("hpa", "spec.replicas,spec.template.x")),
            ("scale", ("hpa", "spec.replicas,spec.template.x")),
            ("status", ("old", "data.a")),
        ] {
            let mut later = entry("hpa", "Update", &fields);
            (later["time"], later["subresource"]) = (json!("2026-01-02T00:00:00Z"), json!(subresource));
            let old = entry("old", "Update", &json!({"f:data": {"f:a": {}}}));
            let object = json!({"metadata": {"managedFields": [old, later, ours()]}}).to_string();
            let (manager, fields) = last_writer(object.as_bytes()).unwrap();
            assert_eq!((&*manager, &*fields), expected);
        }
    }
}
