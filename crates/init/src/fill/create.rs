//! Creating the objects of a source, one by one.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use bytes::Bytes;
use gotemplate::objects::Object;
use kube_lite::logging::log_line;
use kube_lite::meta::Meta;
use kube_lite::{Cluster, Content, Error, ObjectName, ResourceType};
use serde::Deserialize;
use serde_json::{Value, json};

use super::mapping::{Kind, Mapping};
use super::{Lack, Made, SoFar, Stop, Trouble, Why};
use crate::kcp::parsed;
use crate::kinds::InitTarget;
use crate::sides::Key;

/// The annotation that names a condition which an object has to have before the workspace is ready.
const WAIT_FOR_READY: &str = "initialization.kcp.io/wait-for-ready";
/// Where an object goes that is in a namespace and names none.
const DEFAULT: &str = "default";
/// Of how many objects it is remembered that they are there, while a workspace waits for others.
const MOST_KNOWN: usize = 1_000;

/// What creates objects in one workspace.
pub(super) struct Creating<'a> {
    key: &'a Key,
    shard: &'a Cluster,
    mapping: Mapping,
    /// How many objects were created.
    pub(super) created: usize,
    /// What is there.
    pub(super) made: Made,
    /// Something was not created because it is known to be there.
    pub(super) has_skipped: bool,
}

/// An object that has to have a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Awaited {
    resource: ResourceType,
    name: ObjectName,
    condition: String,
    /// Its kind and name, for people.
    object: String,
}

impl<'a> Creating<'a> {
    pub(super) fn new(key: &'a Key, shard: &'a Cluster, made: Made) -> Self {
        Self {
            key,
            shard,
            mapping: Mapping::default(),
            created: 0,
            made,
            has_skipped: false,
        }
    }

    /// Creates once more what has a name; another one of what has none is not wanted.
    pub(super) fn forget(&mut self) {
        self.made.retain(|_, name| !name.is_empty());
        self.has_skipped = false;
    }

    /// Creates the objects of a source in this order. Gives what it has to wait for, if there is something: then what comes
    /// after that is not created.
    pub(super) async fn all(
        &mut self,
        target: &InitTarget,
        index: usize,
        objects: Vec<Object>,
    ) -> Result<Option<(Trouble, Lack)>, Stop> {
        let mut awaited = Vec::new();
        for (place, object) in objects.into_iter().enumerate() {
            let (named, kind) = (named(&object), Kind::of(&object));
            let condition = condition(&object);
            let hash = hash_of(target, [index, place], &object);
            if condition.is_none() && self.made.contains_key(&hash) {
                self.has_skipped = true;
                continue;
            }
            let refused = |error| {
                Stop::of(self.key.shard, error, |error| {
                    Trouble::of_object(named.clone(), Why::Refused(error))
                })
            };
            let found = self.mapping.find(&kind, &self.key.cluster, self.shard).await;
            let Some(resource) = found.map_err(refused)? else {
                return Ok(Some((Trouble::of_object(named, Why::NotServed), Lack::Kind(kind))));
            };
            let Some((name, body)) = self.request(&resource, object) else {
                return Err(Stop::Fails(Trouble::of_object(named, Why::NoName)));
            };
            match self.create_once(hash, &resource, name, body).await {
                Ok(name) => awaited.extend(condition.map(|condition| Awaited {
                    resource,
                    name,
                    condition,
                    object: named,
                })),
                // Between its definition and its being served, discovery may have it.
                Err(error) if is_not_served(&error) => {
                    return Ok(Some((Trouble::of_object(named, Why::NotServed), Lack::Kind(kind))));
                }
                Err(error) => return Err(refused(error)),
            }
        }
        for object in awaited {
            if !self.is_ready(&object).await? {
                let why = Why::NotReady(object.condition.clone());
                return Ok(Some((
                    Trouble::of_object(object.object.clone(), why),
                    Lack::Ready(object),
                )));
            }
        }
        Ok(None)
    }

    /// True if nothing has come of what a workspace was found to wait for.
    pub(super) async fn still_lacks(&mut self, so_far: &SoFar) -> bool {
        for lack in &so_far.lacks {
            let is_there = match lack {
                Lack::Kind(kind) => {
                    let found = self.mapping.find(kind, &self.key.cluster, self.shard).await;
                    !matches!(found, Ok(None))
                }
                Lack::Ready(object) => !matches!(self.is_ready(object).await, Ok(false)),
            };
            if is_there {
                return false;
            }
        }
        !so_far.lacks.is_empty()
    }

    /// The name and the body of a request that creates an object. A name that the server is to make is empty.
    fn request(&self, resource: &ResourceType, object: Object) -> Option<(ObjectName, Bytes)> {
        let mut fields = object.fields;
        let metadata = fields.get_mut("metadata")?.as_object_mut()?;
        let name = text(metadata.get("name"));
        if name.is_empty() && text(metadata.get("generateName")).is_empty() {
            return None;
        }
        if resource.namespaced && text(metadata.get("namespace")).is_empty() {
            metadata.insert("namespace".to_owned(), json!(DEFAULT));
        }
        let namespace = if resource.namespaced {
            text(metadata.get("namespace"))
        } else {
            String::new()
        };
        let name = ObjectName::in_workspace(&self.key.cluster, &namespace, &name);
        Some((name, Value::Object(fields).to_string().into()))
    }

    /// Creates an object, unless it is known to be there. Gives its name.
    async fn create_once(
        &mut self,
        hash: u64,
        resource: &ResourceType,
        name: ObjectName,
        body: Bytes,
    ) -> Result<ObjectName, Error> {
        if let Some(made) = self.made.get(&hash) {
            self.has_skipped = true;
            return Ok(if made.is_empty() { name } else { name.beside(made) });
        }
        let is_generated = name.name.is_empty();
        let name = self.create(resource, name, body).await?;
        if self.made.len() < MOST_KNOWN {
            let made = if is_generated {
                name.name.clone()
            } else {
                Box::default()
            };
            self.made.insert(hash, made);
        }
        Ok(name)
    }

    /// Creates an object, unless it is there. Gives its name.
    async fn create(&mut self, resource: &ResourceType, name: ObjectName, body: Bytes) -> Result<ObjectName, Error> {
        let (created, name) = if name.name.is_empty() {
            let made = self.shard.create_generated(resource, &name, body).await?;
            let made = <Meta>::parse(&made)?;
            (true, name.beside(&made.name))
        } else {
            match self.shard.create(resource, &name, body).await {
                Ok(_) => (true, name),
                Err(error) if error.is_already_there() => (false, name),
                Err(error) => return Err(error),
            }
        };
        if created {
            self.created += 1;
            log_line!(
                Debug,
                WorkspaceObjectCreated,
                "created in a workspace",
                cluster = self.key.cluster,
                object = name.of_kind(&resource.kind)
            );
        }
        Ok(name)
    }

    /// True if an object has the condition that it has to have.
    async fn is_ready(&self, object: &Awaited) -> Result<bool, Stop> {
        let read = self.shard.get(&object.resource, &object.name, Content::Full).await;
        let found = match read {
            Ok(found) => parsed::<Conditioned>(&found),
            Err(error) if error.proves_absent(&object.name.name) => return Ok(false),
            Err(error) => Err(error),
        };
        let refused = |error| Trouble::of_object(object.object.clone(), Why::Refused(error));
        let found = found.map_err(|error| Stop::of(self.key.shard, error, refused))?;
        let is_true = |it: &Condition| it.name == object.condition && it.status == "True";
        Ok(found.status.conditions.iter().any(is_true))
    }
}

/// True if the server does not serve the kind now; a namespace that is missing is something else.
fn is_not_served(error: &Error) -> bool {
    error.missing_namespace().is_none() && (error.is_type_not_served() || matches!(error, Error::NotServedYet(_)))
}

#[derive(Deserialize)]
struct Conditioned {
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize)]
struct Status {
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(default, rename = "type")]
    name: String,
    #[serde(default)]
    status: String,
}

/// The condition that an object has to have, if its template says so.
fn condition(object: &Object) -> Option<String> {
    let annotations = object.fields.get("metadata")?.get("annotations")?;
    let condition = text(annotations.get(WAIT_FOR_READY));
    Some(condition).filter(|condition| !condition.is_empty())
}

/// Tells an object, at this place of the source with this index, from all others of a workspace.
fn hash_of(target: &InitTarget, place: [usize; 2], object: &Object) -> u64 {
    let mut hasher = DefaultHasher::new();
    let text = Value::Object(object.fields.clone()).to_string();
    (&target.metadata.name, place, text).hash(&mut hasher);
    hasher.finish()
}

/// Kind, namespace and name of an object, for people.
fn named(object: &Object) -> String {
    let metadata = object.fields.get("metadata");
    let field = |key: &str| text(metadata.and_then(|metadata| metadata.get(key)));
    let name = match field("name") {
        name if name.is_empty() => format!("{}*", field("generateName")),
        name => name,
    };
    format!("{}/{}/{name}", object.kind(), field("namespace"))
}

fn text(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}
