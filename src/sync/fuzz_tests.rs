//! Whatever an object looks like, see [`kube_lite::fuzz`].

use bytes::Bytes;
use kube_lite::fuzz::fuzz;
use kube_lite::{ObjectName, ResourceType};
use serde::de::IgnoredAny;
use serde_json::Value;

use super::job::{Policy, Seen};
use super::managed_fields::last_writer;
use super::meta::{Meta, Object};
use super::object::{Address, Desired, Marks, Status};
use super::take_over::{Whose, take_over};
use crate::plan::{Direction, Selection};

const POD: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"shop","uid":"u","resourceVersion":"7","labels":{"x":"y"},"annotations":{"edge.kubestellar.io/downsynced":"Pod/shop/a"},"managedFields":[{"manager":"kubectl","operation":"Update","time":"2026-01-01T00:00:00Z","fieldsV1":{"f:spec":{"f:nodeName":{}}}},{"manager":"edge-syncer","operation":"Apply","fieldsV1":{"f:spec":{".":{},"k:{\"name\":\"a\"}":{}}}}]},"spec":{"nodeName":"n","containers":[{"name":"c","env":[{"name":"A","value":"1"},{"name":"A","value":"$(A)"}],"ports":[{"containerPort":80},{"containerPort":80}]}],"template":{"spec":{"containers":[{"name":"c"}]}}},"status":{"n":[1,0.1,1e21,-0.0],"s":"\u00e9"}}"#;
const SERVICE: &str = r#"{"metadata":{"name":"a","namespace":"shop"},"spec":{"clusterIP":"1.2.3.4","ports":[{"port":80,"nodePort":30000}],"group":"example.org"},"imagePullSecrets":[{"name":"a"}],"status":{}}"#;

#[test]
fn fuzz_objects() {
    let types = [
        ("", "pods", "Pod"),
        ("", "services", "Service"),
        ("", "serviceaccounts", "ServiceAccount"),
        ("apps", "deployments", "Deployment"),
        ("batch", "jobs", "Job"),
        (
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            "CustomResourceDefinition",
        ),
    ];
    let policy = Policy {
        revert_changes_from: vec!["kubectl".into()],
        ..Policy::default()
    };
    fuzz("objects", &[POD.as_bytes(), SERVICE.as_bytes()], |text, random| {
        let (group, plural, kind) = *random.choice(&types).unwrap();
        let resource = ResourceType {
            group: group.into(),
            version: "v1".into(),
            resource: plural.into(),
            kind: kind.into(),
            namespaced: true,
        };
        let direction = if random.bool() { Direction::Down } else { Direction::Up };
        let name = Meta::parse(text).map_or(ObjectName::new("shop", "a"), |meta| meta.object_name());
        let bytes = Bytes::copy_from_slice(text);
        let parsed = Object::parse(bytes.clone()).ok();
        let _ = parsed
            .as_ref()
            .map(|object| Seen::of(direction, &resource, object, &policy, Selection::Full));
        let _ = last_writer(text);
        let origin = Address { resource, name };
        let copy = Address {
            name: ObjectName::new("shop", "b.example.org"),
            ..origin.clone()
        };
        let reverted = Whose::Reverted(policy.reverts(Selection::Full));
        let everybodys = [false, true].map(|filled_in| Whose::Everybodys { filled_in });
        let taken = [reverted, Whose::Made(&[]), everybodys[0], everybodys[1]]
            .map(|whose| take_over(text, &origin.resource, whose));
        for patch in taken.into_iter().filter_map(|patch| patch.ok().flatten()) {
            assert!(is_json(patch.as_bytes()), "{patch}");
        }
        let Some(object) = &parsed else { return };
        for copy in [&origin, &copy] {
            if let Ok(Some(desired)) = Desired::from_origin(direction, &origin, copy, Selection::Full, object) {
                assert!(is_json(&desired.body(
                    direction,
                    copy,
                    &policy.sync_target,
                    &Marks::default()
                )));
                if let Ok(Some(patch)) = desired.addition(&copy.resource, text) {
                    assert!(is_json(&patch));
                }
            }
        }
    });
}

/// By its form alone: depth, the size of numbers and halves of characters are for the server to judge.
fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

#[test]
fn fuzz_status_hash() {
    fuzz("status hash", &[POD.as_bytes(), SERVICE.as_bytes()], |text, _| {
        let status_of = |text: &[u8]| {
            let bytes = Bytes::copy_from_slice(text);
            Object::parse(bytes.clone()).ok().and_then(|object| Status::of(&object))
        };
        let Some(status) = status_of(text) else { return };
        if let Ok(value) = serde_json::from_str::<Value>(&status.text) {
            let again = format!("{{\"metadata\": {{\"name\": \"a\"}}, \"status\": {value:#}}}");
            let floats = status.text.contains(['.', 'e', 'E']) || status.text.len() > 300;
            let hash = status_of(again.as_bytes()).unwrap().hash;
            // Printing again sorts fields, drops those that are there twice, and may change digits.
            assert!(
                floats || hash == status.hash || has_duplicates(&status.text, &value),
                "{}",
                status.text
            );
        }
    });
}

/// True if printing it again made it shorter than its blanks explain.
fn has_duplicates(text: &str, value: &Value) -> bool {
    text.matches(':').count() != value.to_string().matches(':').count()
}
