//! What of a hub object is synced, kind by kind.
//!
//! What the hub's API server or its controllers filled in ([`filled_in`]) is not synced, so that the edge's own values stay:
//! they belong to no field that is applied. What the hub's user set is synced. Objects of kinds without rules are passed on
//! as raw slices; of the others only the field that a rule names is parsed, since a CRD can be a megabyte of schema.
//!
//! Who set a field is in the object's `managedFields`. Seen on kube-apiserver 1.36, for POST, PUT, patch and apply alike:
//! what the server allocates (`clusterIP`, `nodePort`), what admission adds (a storage class, a pod's tolerations) and
//! what a binding sets (`nodeName`) is owned by nobody, also after a client has read the object and written it. A
//! default of the schema (`replicas: 1`) is owned by the client that sends whole objects, and by nobody after an apply. Of
//! such a client that notes in an annotation what people have given it, the note says whether they have set the field.

mod accounts;
mod cleaned;
pub(in crate::sync) mod filled_in;
mod hub;
mod unprinted;
mod unset;

use std::borrow::Cow;
use std::collections::BTreeMap;

use kube_lite::fields::from_text;
use kube_lite::{Error, ResourceType};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use self::cleaned::JOB_LABELS;
use self::filled_in::{filled_in, is_of_controller};
use self::hub::Hub;
#[cfg(feature = "admin")]
pub(crate) use self::hub::LAST_APPLIED;
pub(in crate::sync) use self::hub::at;
pub(crate) use self::unset::{gives, retain_unset};
use super::meta::Object;
use super::top_fields::object_of;
use crate::plan::Direction;

const BATCH: &str = "batch";

/// `"key":value` for every top-level field of a hub object that is synced, each with a leading comma.
pub(crate) fn synced_fields(
    direction: Direction,
    resource: &ResourceType,
    object: &Object,
    top: &BTreeMap<&str, &str>,
) -> Result<String, Error> {
    let hub = Hub::of(direction, object);
    let mut fields = String::new();
    for (&key, &value) in top {
        if matches!(key, "apiVersion" | "kind" | "status") {
            continue;
        }
        let mut cleaned: Option<Box<RawValue>> = None;
        for (path, at_origin, _) in filled_in(resource).filter(|(path, ..)| path[0].strip_prefix("f:") == Some(key)) {
            let Some(depth) = at_origin.depth(path) else {
                continue;
            };
            let current = cleaned.as_deref().map_or(value, RawValue::get);
            let edited = edit(current, &path[1..depth], &|value| at_origin.clean(path, value, &hub))
                .map_err(|error| Error::BadAnswer(format!("{key}: {error}")))?;
            cleaned = edited.or(cleaned);
        }
        let text = cleaned.as_deref().map_or(value, RawValue::get);
        if cleaned.is_none() || text != "null" {
            fields.push(',');
            fields.push_str(&json!(key).to_string());
            fields.push(':');
            fields.push_str(text);
        }
    }
    unprinted::add(resource, &hub, &mut fields);
    Ok(fields)
}

/// False for a label of a hub object that its API server or controllers wrote.
pub(crate) fn is_synced_label(resource: &ResourceType, key: &str) -> bool {
    !(resource.is(BATCH, "jobs") && JOB_LABELS.contains(&key))
}

/// False for an annotation of a hub object that its API server or controllers wrote.
pub(crate) fn is_synced_annotation(resource: &ResourceType, key: &str) -> bool {
    !is_of_controller(resource, key)
}

/// True for types whose objects run once, so that another object of the same name has to run again, and must not be an
/// update of the former. A request for a certificate is answered once, and servers drop any other spec of it silently.
pub(crate) fn runs_once(resource: &ResourceType) -> bool {
    let is_request = || resource.is("certificates.k8s.io", "certificatesigningrequests");
    resource.is(BATCH, "jobs") || resource.is("", "pods") || is_request()
}

/// True for types of which servers keep values silently.
pub(crate) fn may_keep_silently(resource: &ResourceType) -> bool {
    resource.is("", "services")
}

/// The field of an object (`found`, whole) that keeps its value, though `fields`, those that are synced, each with a leading
/// comma, want another and the server does not object: the address of a Service that has none and is to get one.
pub(crate) fn keeps_silently(
    resource: &ResourceType,
    fields: &str,
    found: &[u8],
) -> Result<Option<&'static str>, Error> {
    #[derive(Deserialize)]
    struct Wire<'a> {
        #[serde(borrow)]
        spec: Spec<'a>,
    }
    #[derive(Deserialize)]
    struct Spec<'a> {
        #[serde(rename = "clusterIP", default, borrow)]
        address: Option<Cow<'a, str>>,
    }
    if !may_keep_silently(resource) {
        return Ok(None);
    }
    let bad = |error: serde_json::Error| Error::BadAnswer(format!("a Service: {error}"));
    let wanted = object_of(fields);
    let wanted: Wire<'_> = from_text(&wanted).map_err(bad)?;
    let found: Wire<'_> = serde_json::from_slice(found).map_err(bad)?;
    let is_headless = |service: &Wire<'_>| service.spec.address.as_deref() == Some("None");
    let stays_headless = is_headless(&found) && !is_headless(&wanted);
    Ok(stays_headless.then_some("spec.clusterIP"))
}

/// True if `status` is that of a Job which has finished, successfully or not: it does not run again.
pub(crate) fn has_finished(resource: &ResourceType, status: Option<&str>) -> bool {
    has_condition(resource, status, &["Complete", "Failed"])
}

/// True if `status` is that of a Job of which it is certain whether it succeeds, though its last pods may still end.
pub(crate) fn is_decided(resource: &ResourceType, status: Option<&str>) -> bool {
    let decided = ["Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"];
    has_condition(resource, status, &decided)
}

/// True if one of these conditions of a Job is true.
fn has_condition(resource: &ResourceType, status: Option<&str>, conditions: &[&str]) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Status<'a> {
        #[serde(borrow)]
        conditions: Option<Vec<Condition<'a>>>,
    }
    #[derive(Deserialize)]
    struct Condition<'a> {
        #[serde(rename = "type", default, borrow)]
        kind: Cow<'a, str>,
        #[serde(default, borrow)]
        status: Cow<'a, str>,
    }
    let Some(status) = status.filter(|_| resource.is(BATCH, "jobs")) else {
        return false;
    };
    let status: Status = from_text(status).unwrap_or_default();
    let is_true = |one: &Condition<'_>| conditions.contains(&&*one.kind) && one.status == "True";
    status.conditions.iter().flatten().any(is_true)
}

/// Cleans the value at `path`, as field sets have it, within `raw` and leaves everything around it as raw slices. `None` if there is no such
/// value.
fn edit(raw: &str, path: &[&str], clean: &dyn Fn(&mut Value)) -> serde_json::Result<Option<Box<RawValue>>> {
    let Some((key, rest)) = path.split_first() else {
        let mut value: Value = from_text(raw)?;
        clean(&mut value);
        return serde_json::value::to_raw_value(&value).map(Some);
    };
    let Some(mut fields) = from_text::<Option<BTreeMap<String, &RawValue>>>(raw)? else {
        return Ok(None);
    };
    let key = key.trim_start_matches("f:");
    let Some(edited) = fields
        .get(key)
        .map(|inner| edit(inner.get(), rest, clean))
        .transpose()?
        .flatten()
    else {
        return Ok(None);
    };
    if edited.get() == "null" {
        fields.remove(key);
    } else {
        fields.insert(key.to_owned(), &edited);
    }
    serde_json::value::to_raw_value(&fields).map(Some)
}

#[cfg(test)]
#[path = "kinds_tests.rs"]
mod tests;
