//! What the reading verbs answer: one object, pages of a collection, watches, and what is served.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::refusal::Refusal;
use super::request::{Ask, Verb};
use super::server::{Answer, Server};
use super::store::{Key, Object, Store, in_range};
use super::types::{self, Type};
use super::watch::Watch;
use super::weather::Streaming;

/// Which objects of a type a list or watch is about, and how they are shown.
#[derive(Clone)]
pub struct Filter {
    /// The type.
    pub ty: Type,
    /// Metadata alone.
    pub metadata_only: bool,
    resource: String,
    namespace: String,
    name: Option<String>,
    label: Option<(String, String)>,
}

impl Filter {
    fn of(ask: &Ask, ty: Type) -> Self {
        let pair = |text: &str| {
            text.split_once('=')
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
        };
        Self {
            resource: ty.qualified(),
            ty,
            metadata_only: ask.metadata_only,
            namespace: ask.target.namespace.clone(),
            name: pair(ask.asked("fieldSelector")).map(|(_, name)| name),
            label: pair(ask.asked("labelSelector")),
        }
    }

    /// True if an object of that name may be picked.
    pub fn is_about(&self, key: &Key) -> bool {
        *key.resource == *self.resource
            && (self.namespace.is_empty() || *key.namespace == *self.namespace)
            && self.name.as_ref().is_none_or(|name| *key.name == **name)
    }

    /// True if the object, of a name that may be picked, has the label.
    pub fn fits(&self, object: &Value) -> bool {
        let has = |(key, value): &(String, String)| object["metadata"]["labels"][key] == **value;
        self.label.as_ref().is_none_or(has)
    }

    fn pick(&self, objects: &BTreeMap<Key, Object>) -> Vec<Object> {
        in_range(objects, &self.resource, &self.namespace)
            .filter(|(key, object)| self.is_about(key) && self.fits(object))
            .map(|(_, object)| Rc::clone(object))
            .collect()
    }
}

/// An object as an answer shows it: whole or metadata alone. Items of lists of built-in types do not name their type.
pub fn shown(object: &Value, metadata_only: bool, untyped: bool) -> Value {
    if metadata_only {
        return json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]});
    }
    let mut object = object.clone();
    if untyped && let Some(fields) = object.as_object_mut() {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    object
}

impl Server {
    /// The type that a request is about.
    pub fn type_of(&self, ask: &Ask) -> Result<Type, Refusal> {
        let target = &ask.target;
        let store = self.store.borrow();
        types::find(&store, &target.group, &target.version, &target.resource).ok_or_else(|| {
            if types::is_built_in_group(&target.group) {
                Refusal::no_type()
            } else {
                Refusal::no_path()
            }
        })
    }

    /// Answers a request that changes nothing.
    pub fn read(self: &Rc<Self>, ask: &Ask) -> Result<Answer, Refusal> {
        match ask.verb {
            Verb::Discover => self.discover(ask),
            Verb::Get => {
                let ty = self.type_of(ask)?;
                let key = ty.key(&ask.target.namespace, &ask.target.name);
                let store = self.store.borrow();
                let (_, objects) = self.shown_now(&store);
                let object = objects.get(&key).ok_or_else(|| Refusal::not_found(&ty, &key.name))?;
                Ok(Answer::Body(200, shown(object, ask.metadata_only, false).to_string()))
            }
            Verb::List => self.list(ask),
            Verb::Watch => self.watch(ask),
            Verb::Stream => self.stream(ask),
            _ => Err(Refusal::bad_request("what is this?")),
        }
    }

    /// The version that a reading request is shown, and all objects at it: the latest, unless what it reads is stale.
    fn shown_now<'a>(&self, store: &'a Store) -> (u64, Cow<'a, BTreeMap<Key, Object>>) {
        let age = self.weather.borrow_mut().staleness();
        let then = age.and_then(|age| Instant::now().checked_sub(age));
        let version = then.map(|then| store.version_then(then));
        let old = version.and_then(|version| Some((version, Cow::Owned(store.at(version)?))));
        old.unwrap_or_else(|| (store.version(), Cow::Borrowed(store.objects())))
    }

    fn discover(&self, ask: &Ask) -> Result<Answer, Refusal> {
        let store = self.store.borrow();
        let (group, version) = (&ask.target.group, &ask.target.version);
        let answer = if version.is_empty() {
            types::groups(&store, &self.unreported.borrow())
        } else {
            if !group.is_empty() && self.weather.borrow_mut().hides_discovery() {
                return Err(Refusal::plain(503, "service unavailable\n"));
            }
            types::resources(&store, &self.unreported.borrow(), group, version).ok_or_else(Refusal::no_path)?
        };
        Ok(Answer::Body(200, answer.to_string()))
    }

    /// One page. The token names the version of the whole list and how many objects went before.
    fn list(&self, ask: &Ask) -> Result<Answer, Refusal> {
        let filter = Filter::of(ask, self.type_of(ask)?);
        let store = self.store.borrow();
        let (latest, _) = self.shown_now(&store);
        let mut weather = self.weather.borrow_mut();
        let token = ask.asked("continue").split_once('.');
        let part = |text: &str| {
            text.parse::<u64>()
                .map_err(|_| Refusal::bad_request("continue key is not valid"))
        };
        let (version, skip) = match token {
            Some((version, skip)) => (part(version)?, part(skip)?),
            None => (latest, 0),
        };
        if token.is_some() && weather.expires() {
            return Err(Refusal::expired());
        }
        let objects = store.at(version).ok_or_else(Refusal::expired)?;
        let mut picked = filter.pick(&objects);
        if weather.empties(&ask.target.qualified()) {
            picked.clear();
        }
        let skip = usize::try_from(skip).unwrap_or(usize::MAX).min(picked.len());
        let limit = ask.asked("limit").parse().unwrap_or(usize::MAX).min(weather.page);
        let left = picked.len() - skip;
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if left > limit {
            metadata["continue"] = json!(format!("{version}.{}", skip + limit));
            metadata["remainingItemCount"] = json!(left - limit);
        }
        let untyped = !filter.ty.custom;
        let items: Vec<Value> = picked
            .iter()
            .skip(skip)
            .take(limit)
            .map(|object| shown(object, ask.metadata_only, untyped))
            .collect();
        let (kind, api_version) = if ask.metadata_only {
            ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned())
        } else {
            (format!("{}List", filter.ty.kind), filter.ty.api_version())
        };
        let mut list = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata, "items": items});
        if ask.metadata_only && items.is_empty() {
            list["items"] = Value::Null;
        }
        Ok(Answer::Body(200, list.to_string()))
    }

    fn watch(self: &Rc<Self>, ask: &Ask) -> Result<Answer, Refusal> {
        let filter = Filter::of(ask, self.type_of(ask)?);
        let version = ask.asked("resourceVersion").parse();
        let version: u64 = version.map_err(|_| Refusal::bad_request("resourceVersion: not a number"))?;
        // What is compacted is reported in the stream; something before the server, or an older one, may say so at once.
        let bad = self.weather.borrow_mut().expires();
        if bad && self.weather.borrow_mut().dice.bool() {
            return Err(Refusal::expired());
        }
        let mut watch = Watch::new(self, filter, version, seconds(ask));
        if bad || version < self.store.borrow().compacted() {
            watch.fail(&Refusal::expired());
        }
        Ok(Answer::Watch(Box::new(watch)))
    }

    fn stream(self: &Rc<Self>, ask: &Ask) -> Result<Answer, Refusal> {
        let filter = Filter::of(ask, self.type_of(ask)?);
        let streaming = self.weather.borrow().streaming;
        if streaming == Streaming::Refused {
            let why = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
            return Err(Refusal::bad_request(why));
        }
        let (version, objects) = {
            let store = self.store.borrow();
            let (version, objects) = self.shown_now(&store);
            (version, filter.pick(&objects))
        };
        let objects = if self.weather.borrow_mut().empties(&ask.target.qualified()) {
            Vec::new()
        } else {
            objects
        };
        let mut watch = Watch::new(self, filter, version, seconds(ask));
        match streaming {
            Streaming::Fails => {
                let message = "etcdserver: the storage does not tell its progress";
                watch.fail(&Refusal::new(500, "InternalError", message, &json!({})));
            }
            Streaming::Ignored => watch.list_first(&objects, version, false),
            _ => watch.list_first(&objects, version, true),
        }
        Ok(Answer::Watch(Box::new(watch)))
    }
}

fn seconds(ask: &Ask) -> u64 {
    ask.asked("timeoutSeconds").parse().unwrap_or(1800)
}
