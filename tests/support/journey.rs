//! The way of one object from hub to edge, the same for every kind: it is created, arrives, is written to by the
//! edge's controllers, changes twice at the hub, and stays as it is when the syncer starts again.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};

use super::objects::{JSON, namespace, path, syncer_config};
use super::story::{SOON, arrives};
use super::{
    AuditEvent, AuditMark, Objects, PairLease, PairOptions, SYNCER, Syncer, comes_to_rest, eventually, shared_pair_with,
};

/// One object's way from hub to edge, all of it printed by [`Journey::tell`].
pub struct Kind {
    pub api_version: &'static str,
    /// The type's plural.
    pub plural: &'static str,
    /// What the user creates at the hub; name and namespace are filled in.
    pub object: Value,
    /// Merge patch by the user before the object is selected, for what then differs between the sides.
    pub before: Value,
    /// JSON pointers to what each side fills in by itself. The edge's values stay.
    pub fills: &'static [&'static str],
    /// What a controller at the edge adds.
    pub adds: fn(&mut Value),
    /// JSON pointers to what `adds` has added.
    pub added: &'static [&'static str],
    /// What the user changes later: two merge patches, and what the copy has then at a JSON pointer.
    pub changes: [(Value, &'static str, Value); 2],
}

impl Default for Kind {
    fn default() -> Self {
        Self {
            api_version: "v1",
            plural: "",
            object: json!({}),
            before: json!({}),
            fills: &[],
            adds: |_| {},
            added: &[],
            changes: [
                (
                    json!({"metadata": {"labels": {"change": "1"}}}),
                    "/metadata/labels/change",
                    json!("1"),
                ),
                (
                    json!({"metadata": {"labels": {"change": "2"}}}),
                    "/metadata/labels/change",
                    json!("2"),
                ),
            ],
        }
    }
}

/// The marks of an edge controller that every copy gets.
const MARKS: [&str; 3] = [
    "/metadata/finalizers",
    "/metadata/labels/edge.example.org~1label",
    "/metadata/annotations/edge.example.org~1note",
];

fn mark(object: &mut Value) {
    let metadata = &mut object["metadata"];
    let mut finalizers = metadata["finalizers"].as_array().cloned().unwrap_or_default();
    finalizers.push(json!("edge.example.org/finalizer"));
    metadata["finalizers"] = json!(finalizers);
    metadata["labels"]["edge.example.org/label"] = json!("1");
    metadata["annotations"]["edge.example.org/note"] = json!("1");
}

/// Whether the value at a JSON pointer was applied by the syncer, by `managedFields`.
fn is_ours(copy: &Value, pointer: &str) -> bool {
    fn holds(fields: &Value, path: &[&str]) -> bool {
        let (Some(fields), Some((key, rest))) = (fields.as_object(), path.split_first()) else {
            return fields.is_object();
        };
        if key.parse::<usize>().is_ok() {
            let mut items = fields.iter().filter(|(key, _)| key.starts_with("k:"));
            return items.any(|(_, item)| holds(item, rest));
        }
        // Nothing below it: it is owned as a whole.
        let inner = fields.get(&format!("f:{}", key.replace("~1", "/")));
        inner.is_some_and(|inner| inner == &json!({}) || holds(inner, rest))
    }
    let path: Vec<&str> = pointer.split('/').skip(1).collect();
    let managers = copy["metadata"]["managedFields"]
        .as_array()
        .expect("the server keeps them");
    let mut ours = managers.iter().filter(|one| one["manager"] == "edge-syncer");
    ours.any(|one| holds(&one["fieldsV1"], &path))
}

/// What `managedFields` say of the syncer: what it has written, and when it last changed anything.
fn applied(copy: &Value) -> Vec<&Value> {
    let managers = copy["metadata"]["managedFields"].as_array();
    let ours = managers.into_iter().flatten();
    ours.filter(|one| one["manager"] == "edge-syncer").collect()
}

/// An object on its way.
pub struct Journey {
    /// The servers.
    pub pair: PairLease,
    /// What is at the hub.
    pub hub: Objects,
    /// What is at the edge.
    pub edge: Objects,
    kind: Kind,
    namespace: String,
    name: String,
    /// When it began, at the edge.
    start: AuditMark,
}

/// The pair of this test binary, with controller managers.
pub async fn managed_pair() -> PairLease {
    shared_pair_with(PairOptions::with_controller_managers()).await
}

/// Tells the whole story for a namespaced object called `it` in a namespace of its own.
pub async fn check(kind: Kind) {
    let pair = managed_pair().await;
    let space = pair.namespace("kinds");
    pair.hub.objects().create(&namespace(&space)).await;
    let journey = Journey::new(pair, kind, &space, "it");
    journey.tell().await;
}

impl Journey {
    /// An object of this namespace (empty: cluster-scoped) and name; nothing is done yet.
    pub fn new(pair: PairLease, kind: Kind, namespace: &str, name: &str) -> Self {
        Self {
            hub: pair.hub.objects(),
            edge: pair.edge.objects(),
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            start: pair.edge.audit_mark(),
            pair,
        }
    }

    /// The whole story.
    pub async fn tell(&self) {
        self.create_at_hub().await;
        self.select().await;
        let mut syncer = self.pair.syncer(&[]);
        arrives(
            &self.edge,
            self.kind.api_version,
            self.kind.plural,
            &self.namespace,
            &self.name,
        )
        .await;
        self.filled_in(&self.edge).await;
        self.add_at_edge().await;
        let kept: Vec<&str> = [self.kind.fills, self.kind.added, &MARKS].concat();
        let at_edge = self.quiet().await;
        let mut expected = at_edge.clone();
        (self.kind.adds)(&mut expected);
        for pointer in &kept {
            assert!(at_edge.pointer(pointer).is_some(), "{pointer} has gone: {at_edge:#}");
            assert_eq!(at_edge.pointer(pointer), expected.pointer(pointer), "{pointer}");
        }
        for pointer in self.kind.fills {
            assert!(!is_ours(&at_edge, pointer), "{pointer} is from the hub: {at_edge:#}");
        }
        for (patch, pointer, expected) in &self.kind.changes {
            self.change(&self.hub, patch).await;
            let copy = self.copy_has(pointer, expected).await;
            for pointer in &kept {
                assert_eq!(
                    copy.pointer(pointer),
                    at_edge.pointer(pointer),
                    "{pointer} after {patch}"
                );
            }
        }
        let before = self.quiet().await;
        syncer.kill();
        let restarted = self.pair.edge.audit_mark();
        let _syncer = self.restart(restarted).await;
        let after = self.quiet().await;
        // Controllers may still have changed its status. A write of the syncer that changes anything has another time.
        assert_eq!(applied(&after), applied(&before), "{before:#} {after:#}");
        for pointer in &kept {
            assert_eq!(
                after.pointer(pointer),
                at_edge.pointer(pointer),
                "{pointer} after a restart"
            );
        }
        self.check_writes();
        self.change(&self.edge, &json!({"metadata": {"finalizers": null}}))
            .await;
    }

    /// Creates the object, and waits until the hub has filled it in.
    pub async fn create_at_hub(&self) {
        let mut object = self.kind.object.clone();
        object["apiVersion"] = json!(self.kind.api_version);
        object["metadata"]["name"] = json!(self.name);
        if !self.namespace.is_empty() {
            object["metadata"]["namespace"] = json!(self.namespace);
        }
        self.hub.create(&object).await;
        self.filled_in(&self.hub).await;
        self.change(&self.hub, &self.kind.before).await;
    }

    /// Selects the object and nothing else.
    pub async fn select(&self) {
        let (group, version) = self
            .kind
            .api_version
            .split_once('/')
            .unwrap_or(("", self.kind.api_version));
        let mut entry = json!({"group": group, "resource": self.kind.plural, "apiVersion": version});
        let spec = if self.namespace.is_empty() {
            entry["objects"] = json!([self.name]);
            json!({"clusterScope": [entry]})
        } else {
            entry["objectsByNamespace"] = json!([{"namespace": self.namespace, "names": [self.name]}]);
            json!({"namespacedObjects": [entry]})
        };
        self.hub.create(&syncer_config("the-one", spec)).await;
    }

    async fn at(&self, side: &Objects) -> Result<Value, String> {
        side.try_get(self.kind.api_version, self.kind.plural, &self.namespace, &self.name)
            .await
            .map_err(|error| error.to_string())?
            .ok_or_else(|| "it is not there".to_owned())
    }

    /// Waits until a side has filled it in.
    pub async fn filled_in(&self, side: &Objects) {
        eventually("the servers fill it in", SOON, async || {
            let object = self.at(side).await?;
            match self.kind.fills.iter().find(|pointer| object.pointer(pointer).is_none()) {
                Some(pointer) => Err(format!("no {pointer} in {object:#}")),
                None => Ok(()),
            }
        })
        .await;
    }

    /// Writes the whole object, as controllers without server-side apply do.
    async fn add_at_edge(&self) {
        let path = path(self.kind.api_version, self.kind.plural, &self.namespace, &self.name);
        eventually("the edge controller writes", SOON, async || {
            let mut object = self.at(&self.edge).await?;
            mark(&mut object);
            (self.kind.adds)(&mut object);
            let path = format!("{path}?fieldManager=cert-manager");
            let written = self.edge.send(Method::PUT, &path, JSON, Some(&object)).await;
            written.map_err(|error| error.to_string())
        })
        .await;
    }

    /// Changes the object at a side.
    pub async fn change(&self, side: &Objects, patch: &Value) {
        side.merge_patch(
            self.kind.api_version,
            self.kind.plural,
            &self.namespace,
            &self.name,
            patch,
        )
        .await;
    }

    /// Waits until the copy has this value, and gives the copy.
    pub async fn copy_has(&self, pointer: &str, expected: &Value) -> Value {
        eventually(&format!("{pointer} of the copy becomes {expected}"), SOON, async || {
            let copy = self.at(&self.edge).await?;
            match copy.pointer(pointer) {
                Some(value) if value == expected => Ok(copy),
                other => Err(format!("it is {other:?}")),
            }
        })
        .await
    }

    /// Waits until the syncer has sent nothing, and nobody has changed the copy, for a second; gives the copy.
    pub async fn quiet(&self) -> Value {
        let rest = Duration::from_secs(1);
        let (_, copy) = comes_to_rest("requests and copy stay as they are", rest, SOON, async || {
            let requests = self.requests_since(self.start).len();
            self.at(&self.edge).await.map(|copy| (requests, copy))
        })
        .await;
        copy
    }

    async fn restart(&self, mark: AuditMark) -> Syncer {
        let syncer = self.pair.syncer(&[]);
        eventually("the new syncer watches the copies", SOON, async || {
            let requests = self.requests_since(mark);
            let is_watch = |one: &&AuditEvent| one.verb == "watch" && one.uri.contains(self.kind.plural);
            requests.iter().find(is_watch).map(|_| ()).ok_or("not yet")
        })
        .await;
        syncer
    }

    fn requests_since(&self, mark: AuditMark) -> Vec<AuditEvent> {
        self.pair.edge.requests_since(SYNCER, mark)
    }

    /// What the syncer has written to the copy.
    pub fn writes(&self) -> Vec<AuditEvent> {
        let mut writes = self.requests_since(self.start);
        let it = path(self.kind.api_version, self.kind.plural, &self.namespace, &self.name);
        writes.retain(|one| one.is_write() && one.uri.split('?').next() == Some(&it));
        writes
    }

    /// No write was wrong; a busy server, or a change in between, may refuse one or two. One each for creation, two changes and a look at what others changed, one for the restart, and
    /// a few for what controllers filled in: status alone causes none.
    fn check_writes(&self) {
        let writes = self.writes();
        let codes: Vec<u16> = writes.iter().map(|one| one.code).collect();
        let (done, refused): (Vec<u16>, Vec<u16>) = codes.into_iter().partition(|code| matches!(code, 200 | 201));
        assert!(refused.len() <= 2, "{writes:#?}");
        assert!(
            !refused.iter().any(|code| matches!(code, 400 | 403 | 404 | 413 | 422)),
            "{writes:#?}"
        );
        assert!(done.len() <= 8, "{writes:#?}");
    }
}
