//! What an answer with status 200 must contain to count as a success: a proxy's page has that status too, and so has an
//! answer about something else.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;

use crate::error::first_line;
use crate::json::ListSplitter;
use crate::{Error, ObjectName, ResourceType};

/// Checks an answer whose content is not used: that of an API server has a kind.
pub(super) fn has_kind(answer: &[u8]) -> Result<(), Error> {
    #[derive(Deserialize)]
    struct Wire {
        #[serde(rename = "kind")]
        _kind: String,
    }
    serde_json::from_slice::<Wire>(answer)
        .map(|_| ())
        .map_err(|_| Error::BadAnswer(first_line(answer)))
}

/// The answer to a write, if it is about the object that was written: otherwise it is not known whether it was written.
pub(super) fn about(answer: Bytes, resource: &ResourceType, name: &ObjectName) -> Result<Bytes, Error> {
    about_one(answer, resource, name, |found| found == &*name.name)
}

/// The same for an object whose name the server has made, from the one in `like`.
pub(super) fn about_generated(answer: Bytes, resource: &ResourceType, like: &ObjectName) -> Result<Bytes, Error> {
    let is_made = |found: &str| found.strip_prefix(&*like.name).is_some_and(|rest| !rest.is_empty());
    about_one(answer, resource, like, is_made)
}

fn about_one(
    answer: Bytes,
    resource: &ResourceType,
    name: &ObjectName,
    is_named: impl Fn(&str) -> bool,
) -> Result<Bytes, Error> {
    #[derive(Deserialize)]
    struct Wire<'a> {
        #[serde(default, borrow)]
        kind: Cow<'a, str>,
        #[serde(borrow)]
        metadata: Meta<'a>,
    }
    #[derive(Deserialize)]
    struct Meta<'a> {
        #[serde(borrow)]
        name: Cow<'a, str>,
        #[serde(default, borrow)]
        namespace: Cow<'a, str>,
    }
    let wire: Wire<'_> = serde_json::from_slice(&answer).map_err(|_| Error::BadAnswer(first_line(&answer)))?;
    let is_of_kind = wire.kind.is_empty() || wire.kind == resource.kind || wire.kind == "PartialObjectMetadata";
    if is_of_kind && is_named(&wire.metadata.name) && *wire.metadata.namespace == *name.namespace() {
        return Ok(answer);
    }
    let found: String = format!("{} {}/{}", wire.kind, wire.metadata.namespace, wire.metadata.name);
    let found: String = found.chars().take(200).collect();
    Err(Error::BadAnswer(format!(
        "an answer about {found} to a write of {} {}/{}",
        resource.kind,
        name.namespace(),
        name.name
    )))
}

/// Whether a list that was narrowed to one object names it, and the version of the list, 0 if that is no number. A list
/// of something else, or one with more pages, says nothing about what is not in it.
pub(super) fn names_one(answer: &Bytes, resource: &ResourceType) -> Result<(bool, u64), Error> {
    let mut splitter = ListSplitter::default();
    let mut rest = answer.clone();
    let mut is_named = false;
    while !rest.is_empty() {
        is_named |= splitter.next_item(&mut rest).map_err(Error::BadAnswer)?.is_some();
    }
    let (kind, meta) = splitter.end().map_err(Error::BadAnswer)?;
    let is_of_type = kind == "PartialObjectMetadataList" || kind == "List" || kind == format!("{}List", resource.kind);
    if !is_of_type {
        let kind: String = kind.chars().take(200).collect();
        return Err(Error::BadAnswer(format!(
            "a {kind} instead of a list of {}",
            resource.kind
        )));
    }
    if meta.resource_version.is_empty() || !is_named && !meta.continue_token.is_empty() {
        return Err(Error::BadAnswer(first_line(answer)));
    }
    Ok((is_named, meta.resource_version.parse().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config_maps() -> ResourceType {
        ResourceType::config_maps()
    }

    #[test]
    fn a_write_is_done_only_if_the_answer_is_about_its_object() {
        let name = ObjectName::new("shop", "a");
        for (answer, is_answer) in [
            (
                r#"{"kind":"ConfigMap","metadata":{"name":"a","namespace":"shop"}}"#,
                true,
            ),
            (
                r#"{"kind":"PartialObjectMetadata","metadata":{"name":"a","namespace":"shop"}}"#,
                true,
            ),
            (r#"{"kind":"Secret","metadata":{"name":"a","namespace":"shop"}}"#, false),
            (
                r#"{"kind":"ConfigMap","metadata":{"name":"b","namespace":"shop"}}"#,
                false,
            ),
            (
                r#"{"kind":"ConfigMap","metadata":{"name":"a","namespace":"other"}}"#,
                false,
            ),
            (r#"{"kind":"ConfigMap","metadata":{"name":"a"}}"#, false),
            (r#"{"kind":"Status","status":"Success","metadata":{}}"#, false),
            ("<html>", false),
            ("", false),
        ] {
            let found = about(Bytes::from_static(answer.as_bytes()), &config_maps(), &name);
            assert_eq!(found.is_ok(), is_answer, "{answer}");
        }
    }

    #[test]
    fn what_is_no_complete_list_of_the_type_proves_no_absence() {
        let list = |kind: &str, meta: &str, items: &str| {
            Bytes::from(format!(r#"{{"kind":"{kind}","metadata":{{{meta}}},"items":{items}}}"#))
        };
        let at = r#""resourceVersion":"7""#;
        for (answer, expected) in [
            (list("PartialObjectMetadataList", at, "[]"), Some((false, 7))),
            (list("ConfigMapList", at, "null"), Some((false, 7))),
            (list("ConfigMapList", at, r#"[{"a":1}]"#), Some((true, 7))),
            (
                list("ConfigMapList", r#""resourceVersion":"abc""#, "[]"),
                Some((false, 0)),
            ),
            (list("SecretList", at, "[]"), None),
            (list("Status", at, "[]"), None),
            (list("ConfigMapList", r#""resourceVersion":"""#, "[]"), None),
            (
                list("ConfigMapList", r#""resourceVersion":"7","continue":"x""#, "[]"),
                None,
            ),
            (
                list(
                    "ConfigMapList",
                    r#""resourceVersion":"7","continue":"x""#,
                    r#"[{"a":1}]"#,
                ),
                Some((true, 7)),
            ),
            (Bytes::from_static(b"{}"), None),
        ] {
            assert_eq!(names_one(&answer, &config_maps()).ok(), expected, "{answer:?}");
        }
    }
}
