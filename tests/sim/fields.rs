//! Field sets and `managedFields`: who owns what, as an API server keeps it (structured-merge-diff), with every list
//! taken as one field, except for what each edge says in the status of a config.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

/// The leaves of a field set; each path is a chain of `f:` keys.
type Paths = BTreeSet<Vec<String>>;

/// Metadata that no field manager owns.
const UNOWNED: [&str; 9] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "managedFields",
    "selfLink",
];

/// Who writes, and as what.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// The field manager.
    pub manager: &'a str,
    /// `status`, or empty.
    pub subresource: &'a str,
    /// The wall clock, RFC 3339.
    pub now: &'a str,
}

struct Entry {
    manager: String,
    operation: String,
    subresource: String,
    api_version: Value,
    time: String,
    paths: Paths,
}

impl Entry {
    fn is(&self, by: Writer<'_>, operation: &str) -> bool {
        self.manager == by.manager && self.operation == operation && self.subresource == by.subresource
    }
}

/// Server-side apply with force: `config` laid over `live`, and what the manager no longer applies taken away.
pub fn apply(live: &Value, config: &Value, by: Writer<'_>) -> Value {
    let mut entries = decode(live);
    let wanted = paths(config);
    let old = entries
        .iter()
        .find(|entry| entry.is(by, "Apply"))
        .map(|entry| entry.paths.clone())
        .unwrap_or_default();
    let mut merged = live.clone();
    for path in &wanted {
        let value = get(config, path).expect("the path is from this object");
        let keeps = value == &json!({}) && get(&merged, path).is_some_and(Value::is_object);
        if !keeps {
            set(&mut merged, path, value.clone());
        }
    }
    for path in old.difference(&wanted) {
        let others = entries
            .iter()
            .filter(|entry| !entry.is(by, "Apply"))
            .map(|entry| &entry.paths);
        let owned = others.chain([&wanted]).any(|paths| holds(paths, path));
        if !owned {
            remove(&mut merged, path);
        }
    }
    let (changed, removed) = compare(live, &merged);
    for entry in entries.iter_mut().filter(|entry| !entry.is(by, "Apply")) {
        entry
            .paths
            .retain(|path| !changed.contains(path) && !removed.contains(path));
    }
    let same = wanted == old && changed.is_empty() && removed.is_empty();
    if !same {
        entries.retain(|entry| !entry.is(by, "Apply"));
        entries.push(entry(config, by, "Apply", wanted));
    }
    encode(&mut merged, entries);
    merged
}

/// The fields that `config` would change and others own, each with one of its owners, by their paths without `f:`.
pub fn contested(live: &Value, config: &Value, by: Writer<'_>) -> Vec<(Vec<String>, String)> {
    let wanted = paths(config);
    let entries = decode(live);
    let others = entries.iter().filter(|entry| !entry.is(by, "Apply"));
    others
        .flat_map(|entry| {
            entry
                .paths
                .intersection(&wanted)
                .map(move |path| (path, &entry.manager))
        })
        .filter(|(path, _)| get(live, path) != get(config, path))
        .map(|(path, manager)| (plain(path), manager.clone()))
        .collect()
}

/// Any other write: `new` instead of `live` (`Null` if there was none). What differs becomes the writer's.
pub fn update(live: &Value, mut new: Value, by: Writer<'_>) -> Value {
    let (changed, removed) = compare(live, &new);
    let mut entries = decode(&new);
    if entries.is_empty() {
        entries = decode(live);
    }
    for entry in &mut entries {
        entry.paths.retain(|path| {
            let changed = changed.contains(path) && !entry_is_writer(&entry.manager, &entry.operation, by);
            !changed && !removed.contains(path)
        });
    }
    if !changed.is_empty() {
        let mut paths = changed;
        if let Some(index) = entries.iter().position(|entry| entry.is(by, "Update")) {
            paths.extend(entries.remove(index).paths);
        }
        entries.push(entry(&new, by, "Update", paths));
    }
    encode(&mut new, entries);
    new
}

fn entry_is_writer(manager: &str, operation: &str, by: Writer<'_>) -> bool {
    manager == by.manager && operation == "Update"
}

/// The manager of each leaf that stands in `object` and that is owned by anybody, by its path without `f:`.
pub fn owners(object: &Value) -> Vec<(Vec<String>, String)> {
    let entries = decode(object);
    entries
        .iter()
        .flat_map(|entry| entry.paths.iter().map(|path| (plain(path), entry.manager.clone())))
        .collect()
}

/// True if anybody has said how many replicas the object is to have.
pub fn owns_replicas(object: &Value) -> bool {
    owners(object).iter().any(|(path, _)| path == &["spec", "replicas"])
}

fn plain(path: &[String]) -> Vec<String> {
    path.iter().map(|key| key[2..].to_owned()).collect()
}

fn entry(object: &Value, by: Writer<'_>, operation: &str, paths: Paths) -> Entry {
    Entry {
        manager: by.manager.to_owned(),
        operation: operation.to_owned(),
        subresource: by.subresource.to_owned(),
        api_version: object["apiVersion"].clone(),
        time: by.now.to_owned(),
        paths,
    }
}

/// True if `paths` holds `path`, or anything within it.
fn holds(paths: &Paths, path: &[String]) -> bool {
    paths
        .range(path.to_vec()..)
        .next()
        .is_some_and(|next| next.starts_with(path))
}

/// Leaves of `new` that `live` has not or otherwise, and leaves of `live` that are gone.
fn compare(live: &Value, new: &Value) -> (Paths, Paths) {
    let changed = |path: &Vec<String>| get(live, path) != get(new, path);
    let removed = |path: &Vec<String>| get(new, path).is_none();
    (
        paths(new).into_iter().filter(changed).collect(),
        paths(live).into_iter().filter(removed).collect(),
    )
}

/// All leaves of an object that can be owned.
fn paths(object: &Value) -> Paths {
    let mut all = Paths::new();
    for (key, value) in object.as_object().into_iter().flatten() {
        match key.as_str() {
            "apiVersion" | "kind" => {}
            "metadata" => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    if !UNOWNED.contains(&key.as_str()) {
                        collect(value, &mut vec!["f:metadata".to_owned(), format!("f:{key}")], &mut all);
                    }
                }
            }
            _ => collect(value, &mut vec![format!("f:{key}")], &mut all),
        }
    }
    all
}

/// The key of the items of the only list that is merged by its items.
const ITEM: &str = "syncTargetUID";

/// The key of an item of such a list.
fn item_key(item: &Value) -> Option<&str> {
    item[ITEM].as_str()
}

fn collect(value: &Value, path: &mut Vec<String>, all: &mut Paths) {
    if let Some(items) = value
        .as_array()
        .filter(|items| items.first().and_then(item_key).is_some())
    {
        for item in items {
            path.push(format!("k:{}", item_key(item).unwrap_or_default()));
            collect(item, path, all);
            path.pop();
        }
        return;
    }
    match value.as_object().filter(|fields| !fields.is_empty()) {
        Some(fields) => {
            for (key, value) in fields {
                path.push(format!("f:{key}"));
                collect(value, path, all);
                path.pop();
            }
        }
        None => {
            all.insert(path.clone());
        }
    }
}

fn get<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, key| match value {
        Value::Array(items) if key.starts_with("k:") => items.iter().find(|item| item_key(item) == Some(&key[2..])),
        value => value.as_object()?.get(&key[2..]),
    })
}

fn set(object: &mut Value, path: &[String], value: Value) {
    let mut at = object;
    for key in path {
        if let Some(name) = key.strip_prefix("k:") {
            if !at.is_array() {
                *at = json!([]);
            }
            let items = at.as_array_mut().expect("it is a list");
            let index = items.iter().position(|item| item_key(item) == Some(name));
            let index = index.unwrap_or_else(|| {
                items.push(json!({ITEM: name}));
                items.len() - 1
            });
            at = &mut items[index];
            continue;
        }
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[&key[2..]];
    }
    *at = value;
}

/// Removes a field, and the maps around it that are empty then.
fn remove(object: &mut Value, path: &[String]) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    let key = &first[2..];
    if let Some(items) = object.as_array_mut() {
        let item = items.iter_mut().find(|item| item_key(item) == Some(key));
        if let Some(item) = item {
            remove(item, rest);
        }
        items.retain(|item| !item.as_object().is_some_and(Map::is_empty));
        return;
    }
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    if rest.is_empty() {
        fields.remove(key);
        return;
    }
    if let Some(inner) = fields.get_mut(key) {
        remove(inner, rest);
        if inner.as_object().is_some_and(Map::is_empty) {
            fields.remove(key);
        }
    }
}

fn decode(object: &Value) -> Vec<Entry> {
    let entries = object["metadata"]["managedFields"].as_array();
    let text = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    entries
        .into_iter()
        .flatten()
        .map(|entry| {
            let mut paths = Paths::new();
            from_json(&entry["fieldsV1"], &mut Vec::new(), &mut paths);
            Entry {
                manager: text(entry, "manager"),
                operation: text(entry, "operation"),
                subresource: text(entry, "subresource"),
                api_version: entry["apiVersion"].clone(),
                time: text(entry, "time"),
                paths,
            }
        })
        .collect()
}

fn from_json(fields: &Value, path: &mut Vec<String>, paths: &mut Paths) {
    let Some(fields) = fields.as_object().filter(|fields| !fields.is_empty()) else {
        if !path.is_empty() {
            paths.insert(path.clone());
        }
        return;
    };
    for (key, value) in fields {
        if key == "." {
            paths.insert(path.clone());
            continue;
        }
        path.push(key.clone());
        from_json(value, path, paths);
        path.pop();
    }
}

/// Writes the entries into the object, in the order of the real server.
fn encode(object: &mut Value, mut entries: Vec<Entry>) {
    entries.retain(|entry| !entry.paths.is_empty());
    entries.sort_by(|a, b| (&a.operation, &a.time, &a.manager).cmp(&(&b.operation, &b.time, &b.manager)));
    let encoded = entries.into_iter().map(|entry| {
        let mut fields = json!({});
        for path in &entry.paths {
            let mut at = &mut fields;
            for key in path {
                at = &mut at[key];
                if at.is_null() {
                    *at = json!({});
                }
            }
        }
        let mut encoded = json!({
            "manager": entry.manager, "operation": entry.operation, "apiVersion": entry.api_version,
            "time": entry.time, "fieldsType": "FieldsV1", "fieldsV1": fields,
        });
        if !entry.subresource.is_empty() {
            encoded["subresource"] = json!(entry.subresource);
        }
        encoded
    });
    object["metadata"]["managedFields"] = Value::Array(encoded.collect());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(manager: &str) -> Writer<'_> {
        Writer {
            manager,
            subresource: "",
            now: "t",
        }
    }

    fn object(data: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
    }

    #[test]
    fn what_its_last_owner_no_longer_applies_goes() {
        let live = apply(&json!({}), &object(&json!({"a": "1", "b": "1"})), by("one"));
        let live = apply(&live, &object(&json!({"b": "1"})), by("two"));
        let live = apply(&live, &object(&json!({})), by("one"));
        assert_eq!(live["data"], json!({"b": "1"}));
        let live = apply(&live, &json!({"metadata": {"name": "a"}}), by("two"));
        assert_eq!(live["data"], Value::Null);
    }

    #[test]
    fn force_takes_a_field_and_an_update_takes_it_back() {
        let live = update(&Value::Null, object(&json!({"a": "1", "c": "1"})), by("people"));
        let live = apply(&live, &object(&json!({"a": "2"})), by("one"));
        assert_eq!(live["data"], json!({"a": "2", "c": "1"}));
        assert_eq!(
            owners(&live),
            [
                (vec!["data".to_owned(), "a".to_owned()], "one".to_owned()),
                (vec!["data".to_owned(), "c".to_owned()], "people".to_owned())
            ]
        );
        let mut edited = live.clone();
        edited["data"]["a"] = json!("3");
        let live = update(&live, edited, by("people"));
        assert!(owners(&live).iter().all(|(_, manager)| manager == "people"));
    }

    #[test]
    fn applying_twice_changes_nothing() {
        let once = apply(&json!({}), &object(&json!({"a": "1"})), by("one"));
        let later = Writer {
            now: "later",
            ..by("one")
        };
        assert_eq!(apply(&once, &object(&json!({"a": "1"})), later), once);
        assert_eq!(update(&once, once.clone(), later), once);
    }
}
