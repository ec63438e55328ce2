//! Lists of a pod that name a key twice: API servers accept them in any request but an apply.
//!
//! To server-side apply these lists are maps: an environment variable or a port that is there twice makes it refuse the
//! whole object with code 500 (structured-merge-diff). If one entry means the same as the two, it replaces them. If not
//! (two names for one port), all entries of that key are left out of the apply, which does not touch what it does not
//! name. A new copy is made by a create that has the whole lists. Where an apply to a copy leaves a list as it must not be, one
//! patch sets what the apply would change together with the lists ([`super::whole_lists`]): pods are rolled out once, and never
//! without their entries.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};

use bytes::Bytes;
use kube_lite::ResourceType;
use kube_lite::fields::from_text;
use serde_json::{Map, Value, json};

use super::field_set::Path;
use super::top_fields::{fields_of, object_of};

/// Group, plural and the path to the spec of the pods.
type PodSpec = (&'static str, &'static str, &'static [&'static str]);

const POD_SPECS: &[PodSpec] = &[
    ("", "pods", &["spec"]),
    ("", "podtemplates", &["template", "spec"]),
    ("", "replicationcontrollers", &["spec", "template", "spec"]),
    ("apps", "daemonsets", &["spec", "template", "spec"]),
    ("apps", "deployments", &["spec", "template", "spec"]),
    ("apps", "replicasets", &["spec", "template", "spec"]),
    ("apps", "statefulsets", &["spec", "template", "spec"]),
    (
        "batch",
        "cronjobs",
        &["spec", "jobTemplate", "spec", "template", "spec"],
    ),
    ("batch", "jobs", &["spec", "template", "spec"]),
];
/// Lists of a pod and of its containers in which a key may be there twice (other lists are validated), and their keys.
const OF_PODS: [(&str, &[&str]); 2] = [("hostAliases", &["ip"]), ("imagePullSecrets", &["name"])];
const OF_CONTAINERS: [(&str, &[&str]); 2] = [("env", &["name"]), ("ports", &["containerPort", "protocol"])];
const CONTAINERS: [&str; 2] = ["containers", "initContainers"];

/// The lists that an apply cannot set.
#[derive(Clone, Debug, Default)]
pub(super) struct Duplicates {
    way: &'static [&'static str],
    lists: Vec<List>,
}

#[derive(Clone, Debug)]
struct List {
    /// The list of containers and the name in it; `None` for a list of the pod itself.
    container: Option<(&'static str, String)>,
    field: &'static str,
    items: Value,
}

impl Duplicates {
    /// Makes `fields`, the fields of an object with a comma before each, such that they can be applied.
    pub(super) fn settle(resource: &ResourceType, fields: &mut String) -> Self {
        let Some((_, _, way)) = POD_SPECS.iter().find(|(group, plural, _)| resource.is(group, plural)) else {
            return Self::default();
        };
        let Ok(mut object) = from_text::<Map<String, Value>>(&object_of(fields)) else {
            return Self::default();
        };
        let mut settling = Settling::default();
        if let Some(pod) = pod_in(&mut object, way) {
            settling.pod(pod);
        }
        if settling.changed {
            *fields = fields_of(&object);
        }
        Self {
            way,
            lists: settling.lists,
        }
    }

    /// True if an apply alone does not set everything.
    pub(super) fn are_any(&self) -> bool {
        !self.lists.is_empty()
    }

    /// True if fields of the type may mean the same in another form.
    pub(super) fn may_differ_in_form(&self) -> bool {
        !self.way.is_empty()
    }

    /// Sets the lists in an object. True if that has changed it.
    pub(super) fn put_into(&self, object: &mut Map<String, Value>) -> bool {
        let Some(pod) = pod_in(object, self.way) else {
            return false;
        };
        let mut changed = false;
        for list in &self.lists {
            let parent = match &list.container {
                None => Some(&mut *pod),
                Some((containers, name)) => {
                    let all = pod.get_mut(*containers).and_then(Value::as_array_mut);
                    let mut all = all.into_iter().flatten().filter_map(Value::as_object_mut);
                    all.find(|container| container.get("name").is_some_and(|found| *found == **name))
                }
            };
            let Some(parent) = parent else { continue };
            if parent.get(list.field) != Some(&list.items) {
                parent.insert(list.field.to_owned(), list.items.clone());
                changed = true;
            }
        }
        changed
    }

    /// Where the lists are in a field set.
    pub(super) fn paths(&self) -> Vec<Path> {
        let path = |list: &List| {
            let way = self.way.iter().map(|key| format!("f:{key}"));
            let of_container = list.container.iter().flat_map(|(containers, name)| {
                let item = json!(format!("k:{}", json!({"name": name}))).to_string();
                [format!("f:{containers}"), item.trim_matches('"').to_owned()]
            });
            way.chain(of_container).chain([format!("f:{}", list.field)]).collect()
        };
        self.lists.iter().map(path).collect()
    }

    /// The JSON patch that makes a copy at a version what an apply would make of it, with the lists; `None` if the apply would
    /// leave the lists as they have to be.
    pub(super) fn patch_of(&self, applied: &[u8], version: &str) -> Option<Bytes> {
        let mut applied: Map<String, Value> = serde_json::from_slice(applied).ok()?;
        if !self.put_into(&mut applied) {
            return None;
        }
        let top = self.way.first()?;
        let patch = json!([
            {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
            {"op": "replace", "path": format!("/{top}"), "value": applied.get(*top)?},
        ]);
        Some(Bytes::from(patch.to_string()))
    }
}

impl Hash for Duplicates {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for List {
            container,
            field,
            items,
        } in &self.lists
        {
            (container, field, items.to_string()).hash(state);
        }
    }
}

/// The spec of the pods of an object.
fn pod_in<'o>(object: &'o mut Map<String, Value>, way: &[&str]) -> Option<&'o mut Map<String, Value>> {
    let (first, rest) = way.split_first()?;
    let top = object.get_mut(*first);
    let pod = rest
        .iter()
        .fold(top, |value, key| value.and_then(|value| value.get_mut(key)));
    pod.and_then(Value::as_object_mut)
}

#[derive(Default)]
struct Settling {
    changed: bool,
    lists: Vec<List>,
}

impl Settling {
    fn pod(&mut self, pod: &mut Map<String, Value>) {
        for (field, keys) in OF_PODS {
            self.list(pod, None, field, keys);
        }
        for kind in CONTAINERS {
            let containers = pod.get_mut(kind).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
                let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
                let of = (kind, name.to_owned());
                for (field, keys) in OF_CONTAINERS {
                    self.list(container, Some(&of), field, keys);
                }
            }
        }
    }

    fn list(
        &mut self,
        parent: &mut Map<String, Value>,
        container: Option<&(&'static str, String)>,
        field: &'static str,
        keys: &[&str],
    ) {
        let Some(items) = parent.get_mut(field).and_then(Value::as_array_mut) else {
            return;
        };
        let all: Vec<String> = items.iter().map(|item| key(item, keys)).collect();
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for key in &all {
            *counts.entry(key).or_default() += 1;
        }
        if counts.len() == all.len() {
            return;
        }
        if let Some(fewer) = say_the_same(field, items, &all) {
            *items = fewer;
            self.changed = true;
        } else {
            self.lists.push(List {
                container: container.cloned(),
                field,
                items: Value::from(items.clone()),
            });
            let mut at = all.iter();
            items.retain(|_| at.next().is_some_and(|key| counts.get(&**key) == Some(&1)));
            if items.is_empty() {
                parent.remove(field);
            }
            self.changed = true;
        }
    }
}

/// What distinguishes the entries for the API server.
fn key(item: &Value, keys: &[&str]) -> String {
    let part = |key: &&str| match &item[key] {
        Value::Null if *key == "protocol" => "\"TCP\"".to_owned(),
        Value::Null => "\"\"".to_owned(),
        value => value.to_string(),
    };
    keys.iter().map(part).collect::<Vec<_>>().join(",")
}

/// A list that has each key once and means the same; `None` if there is none.
fn say_the_same(field: &str, items: &[Value], keys: &[String]) -> Option<Vec<Value>> {
    let mut kept: Vec<Value> = Vec::new();
    let mut place: HashMap<&str, usize> = HashMap::new();
    for (index, (item, key)) in items.iter().zip(keys).enumerate() {
        if field == "env" {
            // The last one counts, but entries before it may refer to an earlier one.
            let name = item["name"].as_str().unwrap_or_default();
            let refers = |other: &Value| {
                other["value"]
                    .as_str()
                    .is_some_and(|value| value.contains(&format!("$({name})")))
            };
            let first = keys.iter().position(|other| other == key).unwrap_or(index);
            if keys.iter().skip(index + 1).any(|other| other == key) {
                continue;
            }
            if first < index && items.get(first..=index)?.iter().any(refers) {
                return None;
            }
            kept.push(item.clone());
            continue;
        }
        let Some(&at) = place.get(key.as_str()) else {
            place.insert(key, kept.len());
            kept.push(item.clone());
            continue;
        };
        let known = kept.get_mut(at)?;
        match field {
            _ if known == item => {}
            "hostAliases" => {
                let more = item["hostnames"].as_array().cloned().unwrap_or_default();
                known.get_mut("hostnames")?.as_array_mut()?.extend(more);
            }
            _ => return None,
        }
    }
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(group: &str, resource: &str) -> ResourceType {
        ResourceType::new([group, "v1", resource, "Kind"], true)
    }

    fn template(pod: &Value) -> String {
        format!(",\"spec\":{}", json!({"template": {"spec": pod}}))
    }

    fn container(field: &str, items: &Value) -> Value {
        json!({"containers": [{"name": "a"}, {"name": "c", field: items}]})
    }

    /// What is applied, and the list that is set afterwards.
    fn settled(plural: &str, pod: &Value) -> (String, Duplicates) {
        let group = if plural.ends_with("jobs") { "batch" } else { "apps" };
        let mut fields = template(pod);
        let duplicates = Duplicates::settle(&resource(group, plural), &mut fields);
        (fields, duplicates)
    }

    #[test]
    fn what_one_entry_can_say_becomes_one_entry() {
        let env = |text: &str| -> Value {
            let one = |part: &str| {
                let (name, value) = part.split_once('=').unwrap();
                json!({"name": name, "value": value})
            };
            text.split_whitespace().map(one).collect()
        };
        let port = |name: &str, port: u16| json!({"name": name, "containerPort": port, "protocol": "TCP"});
        for (before, after) in [
            (container("env", &env("A=1 B=2 A=3")), container("env", &env("B=2 A=3"))),
            (container("env", &env("A=1 A=1")), container("env", &env("A=1"))),
            (
                container("env", &env("B=$(A) A=1 A=2 C=$(A)")),
                container("env", &env("B=$(A) A=2 C=$(A)")),
            ),
            (
                container("ports", &json!([port("a", 80), port("a", 80)])),
                container("ports", &json!([port("a", 80)])),
            ),
            (
                json!({"hostAliases": [{"ip": "1", "hostnames": ["a"]}, {"ip": "1", "hostnames": ["b"]}]}),
                json!({"hostAliases": [{"ip": "1", "hostnames": ["a", "b"]}]}),
            ),
            (
                json!({"imagePullSecrets": [{"name": "a"}, {"name": "a"}]}),
                json!({"imagePullSecrets": [{"name": "a"}]}),
            ),
        ] {
            for plural in ["deployments", "jobs"] {
                let (fields, left) = settled(plural, &before);
                assert_eq!(fields, template(&after));
                assert!(!left.are_any());
            }
        }
    }

    #[test]
    fn what_it_cannot_say_is_left_out_of_the_apply_and_set_beside_it() {
        let ports = json!([{"name": "http", "containerPort": 80}, {"name": "z", "containerPort": 90},
            {"name": "metrics", "containerPort": 80, "protocol": "TCP"}]);
        let (fields, left) = settled("deployments", &container("ports", &ports));
        assert_eq!(
            fields,
            template(&container("ports", &json!([{"name": "z", "containerPort": 90}])))
        );
        // What the apply would make of the copy, with a container that somebody at its side has added.
        let copy = |ports: &Value| {
            let pod = json!({"containers": [{"name": "injected"}, {"name": "a"}, {"name": "c", "ports": ports}]});
            json!({"spec": {"replicas": 2, "template": {"spec": pod}}})
        };
        let patch = |found: &Value| left.patch_of(copy(found).to_string().as_bytes(), "7");
        assert_eq!(patch(&ports), None, "it is so");
        let patch: Value = serde_json::from_slice(&patch(&json!([])).unwrap()).unwrap();
        assert_eq!(
            patch,
            json!([
                {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
                {"op": "replace", "path": "/spec", "value": copy(&ports)["spec"]},
            ])
        );
        let place = [
            "f:spec",
            "f:template",
            "f:spec",
            "f:containers",
            r#"k:{\"name\":\"c\"}"#,
            "f:ports",
        ];
        assert_eq!(left.paths(), [place.map(str::to_owned).to_vec()]);

        let env = json!([{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"}, {"name": "A", "value": "2"}]);
        for plural in ["statefulsets", "jobs"] {
            let (fields, left) = settled(plural, &container("env", &env));
            assert_eq!(
                fields,
                template(&container("env", &json!([{"name": "B", "value": "$(A)"}])))
            );
            assert!(left.are_any());
        }
        let growing = json!([{"name": "P", "value": "/a"}, {"name": "P", "value": "$(P):/b"}]);
        let (fields, left) = settled("daemonsets", &container("env", &growing));
        assert_eq!(fields, template(&json!({"containers": [{"name": "a"}, {"name": "c"}]})));
        assert!(left.are_any());
    }

    #[test]
    fn what_has_no_duplicates_stays_as_it_is_written() {
        let text = r#","spec": {"template" :{"spec":{"containers":[{"name":"c","env":[{"name":"A"},{"name":"B"}],"ports":[{"containerPort":80},{"containerPort":80,"protocol":"UDP"}]}]}}}"#;
        for (group, plural) in [
            ("apps", "deployments"),
            ("", "configmaps"),
            ("example.org", "deployments"),
        ] {
            let mut fields = text.to_owned();
            let left = Duplicates::settle(&resource(group, plural), &mut fields);
            assert!(fields == text && !left.are_any());
        }
    }
}
