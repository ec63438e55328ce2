//! The object of the hub that a value is from: what the rules have to know of it beside the value.

use std::borrow::Cow;
use std::cell::OnceCell;

use kube_lite::fields::from_text;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::plan::Direction;
use crate::sync::managed_fields::{MADE_UP, is_controller};
use crate::sync::meta::Object;

/// Where clients that send whole objects note what people have given them.
pub(crate) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// How many pods an object is to have, in all types that are scaled there.
const REPLICAS: [&str; 2] = ["f:spec", "f:replicas"];
/// What a schema gives where nobody has said how many.
const DEFAULT_REPLICAS: u64 = 1;

/// The hub object that a value is from: what else the rules have to know of it.
pub(in crate::sync) struct Hub<'a> {
    pub(super) direction: Direction,
    pub(super) object: &'a Object,
    /// Read when the first rule asks.
    owners: OnceCell<Vec<Owner>>,
}

/// One entry of `managedFields`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Owner {
    manager: String,
    operation: String,
    pub(super) api_version: String,
    pub(super) subresource: String,
    pub(super) fields_v1: Value,
}

impl Owner {
    /// Whether it has set the field at `path`, written as in `fieldsV1`.
    pub(super) fn owns(&self, path: &[&str]) -> bool {
        let mut fields = &self.fields_v1;
        path.iter().all(|&key| {
            fields = &fields[key];
            !fields.is_null()
        })
    }

    /// The cluster's own controllers. What they write through `scale` is an autoscaler's decision, which counts as the
    /// user's: dropping it would set the copy back to 1.
    pub(super) fn is_controller(&self) -> bool {
        is_controller(&self.manager) && self.subresource != "scale"
    }

    /// A client that sends whole objects, and is named for defaults too, but notes what people have given it (`kubectl
    /// apply` without `--server-side`, and Argo CD).
    pub(super) fn notes_what_is_wanted(&self) -> bool {
        const NOTE: &str = "f:kubectl.kubernetes.io/last-applied-configuration";
        self.operation == "Update" && self.owns(&["f:metadata", "f:annotations", NOTE])
    }

    /// Surely no controller that writes whole objects, whatever its name.
    pub(super) fn is_person(&self) -> bool {
        (self.operation == "Apply" || self.manager.starts_with("kubectl")) && !self.is_controller()
    }

    /// Whoever says of each field what it is to be, also of what servers do not print then.
    pub(super) fn applies(&self) -> bool {
        self.operation == "Apply" && self.subresource.is_empty()
    }

    /// The server makes this entry, of all fields, for an object that had none when it was first applied.
    fn is_made_up(&self) -> bool {
        self.manager == MADE_UP
    }
}

impl<'a> Hub<'a> {
    pub(super) fn of(direction: Direction, object: &'a Object) -> Self {
        Self {
            direction,
            object,
            owners: OnceCell::new(),
        }
    }

    pub(super) fn owners(&self) -> &[Owner] {
        // Those that cannot be read count as absent: the rules handle that.
        let read = || from_text(self.object.managed_fields()).unwrap_or_default();
        self.owners.get_or_init(read)
    }

    pub(super) fn is_annotated(&self, key: &str) -> bool {
        self.object.meta.annotations.contains_key(key)
    }

    /// True for a Service that is to have no address, which is always the user's choice.
    pub(super) fn is_headless(&self) -> bool {
        #[derive(Deserialize)]
        struct Spec<'a> {
            #[serde(rename = "clusterIP", borrow)]
            address: Cow<'a, str>,
        }
        let spec = self.object.field("spec");
        spec.is_some_and(|spec| from_text(spec).is_ok_and(|spec: Spec<'_>| spec.address == "None"))
    }

    /// For values that a server allocates: kept if it is known that a user set it.
    pub(super) fn keep_if_set(&self, value: &mut Value, path: &[&str]) {
        let set_by_user = |one: &Owner| one.owns(path) && !one.is_controller() && !one.is_made_up();
        if !self.owners().iter().any(set_by_user) {
            *value = Value::Null;
        }
    }

    /// For values that have a default: dropped if it is known that no user set it.
    pub(super) fn drop_if_unset(&self, value: &mut Value, path: &[&str]) {
        let owners = self.owners();
        let has_set = |one: &Owner| {
            one.owns(path)
                && !one.is_controller()
                && !(one.notes_what_is_wanted() && self.was_given(path) == Some(false))
        };
        if !owners.is_empty() && !owners.iter().any(has_set) && !self.was_scaled(path, value) {
            *value = Value::Null;
        }
    }

    /// True for a number of replicas that nobody has set but through `scale`: where no manager had the field before, an API
    /// server names none for that either, and only the number shows that it is no default.
    pub(super) fn was_scaled(&self, path: &[&str], value: &Value) -> bool {
        path == REPLICAS && *value != DEFAULT_REPLICAS && !self.owners().iter().any(|one| one.owns(path))
    }

    /// What people have given to a client that notes it.
    pub(super) fn note(&self) -> Option<Map<String, Value>> {
        let note = self.object.meta.annotations.get(LAST_APPLIED)?;
        from_text(note).ok()
    }

    /// Whether that has a value at this path; `None` if there is no note that can be read.
    fn was_given(&self, path: &[&str]) -> Option<bool> {
        let note = self.note()?;
        Some(matches!(found_at(&note, path), Ok(Some(value)) if !value.is_null()))
    }
}

/// The path leads through what is neither an object nor a list of items with keys.
pub(super) struct NotFollowed;

/// What an object or a note of one has at that path. An item of a list is known by its keys, of which a note may lack those
/// that have a default.
pub(super) fn found_at<'v>(
    whole: &'v Map<String, Value>,
    path: &[impl AsRef<str>],
) -> Result<Option<&'v Value>, NotFollowed> {
    let mut keys = path.iter().map(AsRef::as_ref);
    let first = keys.next().ok_or(NotFollowed)?;
    let mut found = first.strip_prefix("f:").and_then(|field| whole.get(field));
    for key in keys {
        let Some(at) = found else { return Ok(None) };
        found = match (at, key.split_at_checked(2)) {
            (Value::Object(fields), Some(("f:", field))) => fields.get(field),
            (Value::Array(items), Some(("k:", keys))) => {
                let keys: Map<String, Value> = from_text(keys).unwrap_or_default();
                let fits = |item: &&Value| {
                    let mut keys = keys.iter();
                    keys.all(|(key, value)| item.get(key).is_none_or(|has| has == value))
                };
                items.iter().find(fits)
            }
            (Value::Null, _) => None,
            _ => return Err(NotFollowed),
        };
    }
    Ok(found)
}

/// The value at a path, to be changed; an item of a list has all of its keys.
pub(in crate::sync) fn at<'v>(contents: &'v mut Value, path: &[String]) -> Option<&'v mut Value> {
    path.iter().try_fold(contents, |at, key| below(at, key))
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
