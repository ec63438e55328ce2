//! Whose fields a copy has: noticing drift, and naming who changes a copy back. [`super::take_over`] makes what other
//! writers have left ours.
//!
//! The API server keeps for each field manager the set of fields that it owns. Whoever changes or removes a field that
//! we applied takes it out of our set; what others add beside our fields, and status, leaves it as it is. So a change
//! of our set is drift. The only other drift is an apply of other values under our own name: the late request of a
//! syncer that is no longer the leader. The server gives our entry a new time then, and only then. [`marks`] detects
//! both between one version of a copy and the next, without knowing any value, also from metadata alone.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use kube_lite::bounded::at_most;
use kube_lite::fields::from_text;
use kube_lite::{Error, Object};
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
/// whether it is being deleted; a restart of pods is none of these. Nor is what somebody has beside us with
/// the values that we have set: a server lets two managers have a field only as long as they agree. Another value means that
/// somebody else has changed it. Never 0.
pub fn marks(object: &Object<Managers>, direction: Direction, revert_from: RevertFrom) -> Result<u64, Error> {
    #[derive(Default, Deserialize)]
    struct Owners<'a>(#[serde(borrow, deserialize_with = "at_most::<_, _, MOST_MANAGERS>")] Vec<Owner<'a>>);
    let Owners(owners) = match object.managed_fields() {
        "" => Owners::default(),
        text => parse(text.as_bytes())?,
    };
    let mut hasher = DefaultHasher::new();
    object.meta.deletion_timestamp.is_some().hash(&mut hasher);
    let applied = OnceCell::new();
    for owner in &owners {
        let applied = || applied.get_or_init(|| applied_by_us(&owners));
        let is_taken = || owner.is_taken(direction, revert_from) && !owner.is_within(applied());
        if !owner.is_our_apply() && !is_taken() {
            continue;
        }
        let fields = owner.fields_without_restarts();
        owner.manager.hash(&mut hasher);
        owner.time.hash(&mut hasher);
        fields.hash(&mut hasher);
    }
    Ok(hasher.finish().max(1))
}

/// The fields that we have applied.
fn applied_by_us(owners: &[Owner<'_>]) -> FieldSet {
    let mut fields = FieldSet::default();
    for owner in owners.iter().filter(|owner| owner.is_our_apply()) {
        fields.add(&field_set(owner).unwrap_or_default());
    }
    fields
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

    /// True if it has nothing, or nothing that we have not applied too, but what only restarts pods.
    fn is_within(&self, applied: &FieldSet) -> bool {
        let fields = self.fields_without_restarts();
        let set = fields.map(|fields| FieldSet::parse(&fields));
        set.is_none_or(|set| set.is_some_and(|set| set.is_within(applied)))
    }

    /// Its fields, as they are written, without what only restarts pods.
    fn fields_without_restarts(&self) -> Option<Cow<'_, str>> {
        let text = self.fields_v1?.get();
        let without = || {
            let mut fields = FieldSet::parse(text)?;
            leave_out_restarts(&mut fields).then(|| Cow::Owned(fields.render()))
        };
        // A restart is rare: most need not be parsed. With a backslash, a key may be written in many ways.
        let may_restart = text.contains('\\') || RESTART_KEYS.iter().any(|key| text.contains(key));
        Some(may_restart.then(without).flatten().unwrap_or(Cow::Borrowed(text)))
    }
}

/// Leaves out what restarts pods. True if there was any.
pub(super) fn leave_out_restarts(fields: &mut FieldSet) -> bool {
    RESTART_KEYS
        .map(|key| fields.leave_out_below_key("f:spec", key))
        .contains(&true)
}

/// The restarts of pods in an object that are not from us: who changes what we have set takes it out of our set.
pub(super) fn restarts_of_others(object: &[u8]) -> Vec<&'static str> {
    let mut ours = FieldSet::default();
    if let Ok(entries) = Entries::of(object) {
        let owners = entries.iter().map(|(_, owner)| owner);
        for owner in owners.filter(|owner| owner.manager == FIELD_MANAGER && owner.subresource.is_empty()) {
            ours.add(&field_set(owner).unwrap_or_default());
        }
    }
    let all = RESTARTS.into_iter().zip(RESTART_KEYS);
    let not_ours = all.filter(|(_, key)| !ours.leave_out_below_key("f:spec", key));
    not_ours.map(|(name, _)| name).collect()
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
#[path = "managed_fields_tests.rs"]
pub(super) mod tests;
