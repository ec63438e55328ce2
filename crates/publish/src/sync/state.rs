//! The last states of an object, and of what belongs to it, that were written to their copies: kept in a Secret on the
//! service cluster, so that what others change in a copy is not taken for what the object has changed.
//!
//! Promises: the Secret is read once in a pass, and written once, at its end, whatever has failed before that; only what
//! belongs to an object is written down at once. What a Secret of a former storage version has is moved over.

use std::cell::RefCell;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube_lite::{Content, ObjectName, ResourceType};
use serde_json::{Value, json};

use super::{Pass, delete};
use crate::kcp::parsed;
use crate::keys::{OBJECT_STATE, state_key};
use crate::lifecycle::Propagation;
use crate::sides::Side;
use crate::trouble::Stop;

const DOING: &str = "reading the state Secret";
const WRITING: &str = "writing the state Secret";
/// What to do about states that are more than a Secret holds.
const TOO_LARGE: &str = "a Secret holds 1 MiB, and this one the last states of the object and of all that belongs to it: make them \
    smaller, or let fewer belong to one object; they are synced, and what others change in the copies is overwritten";

/// Under which key a state is kept.
pub(super) struct StateKey {
    pub(super) own: String,
    /// Others, under which it may have been kept.
    pub(super) former: Vec<String>,
    /// The kind of the object, where another one may have been kept there.
    pub(super) kind: Option<String>,
}

impl StateKey {
    /// Without the others.
    pub(super) fn alone(&self) -> Self {
        Self {
            own: self.own.clone(),
            former: Vec::new(),
            kind: self.kind.clone(),
        }
    }
}

/// The Secret of a primary.
#[derive(Default)]
pub(super) struct States {
    read: RefCell<Option<Read>>,
    /// What is to be written; `None` for what goes.
    changes: RefCell<BTreeMap<String, Option<String>>>,
}

/// The Secret as it was read, if it is there.
struct Read {
    secret: Option<Value>,
    /// That of a former storage version of the type, if there is only that.
    former: Option<(ObjectName, Value)>,
}

impl States {
    /// What is kept under a key, as it is now.
    fn text(&self, key: &str) -> Option<String> {
        if let Some(changed) = self.changes.borrow().get(key) {
            return changed.clone();
        }
        let read = self.read.borrow();
        let read = read.as_ref()?;
        let secret = read
            .secret
            .as_ref()
            .or(read.former.as_ref().map(|(_, secret)| secret))?;
        secret["data"][key].as_str().map(str::to_owned)
    }

    /// True if it was read in this pass.
    pub(super) fn are_read(&self) -> bool {
        self.read.borrow().is_some()
    }

    /// True if it was read in this pass, and is not there.
    pub(super) fn are_missing(&self) -> bool {
        let read = self.read.borrow();
        read.as_ref()
            .is_some_and(|read| read.secret.is_none() && read.former.is_none())
    }
}

impl Pass<'_> {
    /// The key of the object's own state.
    pub(super) fn own_state(&self) -> StateKey {
        let key = &self.key;
        StateKey {
            own: state_key(&key.cluster, &key.namespace, &key.name),
            former: Vec::new(),
            kind: None,
        }
    }

    /// A last state; `None` if there is none, or none that can be read.
    pub(super) async fn state(&self, key: &StateKey) -> Result<Option<Value>, Stop> {
        self.read_states().await?;
        let mut keys = [&key.own].into_iter().chain(&key.former);
        let text = keys.find_map(|key| self.states.text(key)).unwrap_or_default();
        let state = STANDARD.decode(text).ok();
        let state = state.and_then(|state| serde_json::from_slice::<Value>(&state).ok());
        let is_it = |state: &Value| state.is_object() && key.kind.as_ref().is_none_or(|kind| state["kind"] == **kind);
        Ok(state.filter(is_it))
    }

    /// This is the last state from now on. It is written at the end of the pass.
    pub(super) fn keep(&self, key: &str, state: &Value) {
        let text = STANDARD.encode(state.to_string());
        self.states.changes.borrow_mut().insert(key.to_owned(), Some(text));
    }

    /// There is no such state any more.
    pub(super) fn drop_state(&self, key: &str) {
        if self.states.text(key).is_some() {
            self.states.changes.borrow_mut().insert(key.to_owned(), None);
        }
    }

    fn states_of(&self, version: &str) -> ObjectName {
        let mut of_type = self.route.remote().clone();
        version.clone_into(&mut of_type.version);
        let name = self.key.state_secret(&of_type.api_version(), &of_type.kind);
        ObjectName::new(&self.job.namespace, &name)
    }

    pub(super) async fn read_states(&self) -> Result<(), Stop> {
        if self.states.read.borrow().is_some() {
            return Ok(());
        }
        let name = self.states_of(&self.route.remote().version);
        let mut read = Read {
            secret: self.found_states(&name).await?,
            former: None,
        };
        if read.secret.is_none() && self.is_known.get() {
            read.former = self.former_states().await?;
        }
        self.states.read.replace(Some(read));
        Ok(())
    }

    async fn found_states(&self, name: &ObjectName) -> Result<Option<Value>, Stop> {
        let stop = |error| Stop::of(Side::Service, DOING, format!("{name:?}"), error);
        let secret = match self.service.get(&ResourceType::secrets(), name, Content::Full).await {
            Ok(secret) => secret,
            Err(error) if error.proves_absent(&name.name) => return Ok(None),
            Err(error) => return Err(stop(error)),
        };
        self.large.reads(DOING, &secret).await?;
        let secret = parsed::<Value>(&secret).map_err(stop)?;
        if !secret["metadata"]["labels"][OBJECT_STATE].is_null() {
            return Ok(Some(secret));
        }
        // Nobody has to wait for it at the end.
        if self.is_ending.get() {
            return Ok(None);
        }
        let words = format!("the Secret {name:?} is there, and no agent has made it");
        Err(Stop::because(DOING, words, "delete it; it is tried again"))
    }

    /// The Secret is named by the version in which the type is stored: that may have been another one.
    async fn former_states(&self) -> Result<Option<(ObjectName, Value)>, Stop> {
        for version in &*self.route.served.other_versions {
            let name = self.states_of(version);
            let found = self.found_states(&name).await?;
            // Where the agent may not delete it, nothing is left in it.
            if let Some(found) = found.filter(|found| found["data"].is_object()) {
                return Ok(Some((name, found)));
            }
        }
        Ok(None)
    }

    /// Writes what has changed.
    pub(super) async fn write_states(&self) -> Result<(), Stop> {
        let has_changed = || !self.states.changes.borrow().is_empty();
        if self.is_known.get() && has_changed() {
            self.read_states().await?;
        }
        let (found, former) = match self.states.read.take() {
            Some(read) => (read.secret, read.former),
            None => (None, None),
        };
        let changes = self.states.changes.take();
        if changes.is_empty() && former.is_none() {
            if found.is_some() {
                self.states.read.replace(Some(Read { secret: found, former }));
            }
            return Ok(());
        }
        let name = self.states_of(&self.route.remote().version);
        let mut secret = found.clone().unwrap_or_else(|| self.new_states(&name));
        if let Some((_, former)) = &former {
            secret["data"] = former["data"].clone();
        }
        for (key, text) in changes {
            if let Some(text) = text {
                secret["data"][key] = json!(text);
            } else if let Some(data) = secret["data"].as_object_mut() {
                data.remove(&key);
            }
        }
        if found.as_ref() != Some(&secret) {
            let metadata = self.written_states(&name, &secret, found.is_some()).await?;
            secret["metadata"] = metadata;
        }
        self.states.read.replace(Some(Read {
            secret: Some(secret),
            former: None,
        }));
        match former {
            Some((name, secret)) => self.delete_secret(&name, &secret).await,
            None => Ok(()),
        }
    }

    fn new_states(&self, name: &ObjectName) -> Value {
        let labels: BTreeMap<&str, String> = self.key.state_labels();
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name.name, "namespace": name.namespace(), "labels": labels},
            "type": "Opaque",
            "data": {},
        })
    }

    /// Gives the metadata as it is then.
    async fn written_states(&self, name: &ObjectName, secret: &Value, is_there: bool) -> Result<Value, Stop> {
        let (secrets, body) = (ResourceType::secrets(), secret.to_string().into());
        let written = if is_there {
            self.service.replace(&secrets, name, body, Content::Metadata).await
        } else {
            self.service.create(&secrets, name, body).await
        };
        let written = written.and_then(|written| parsed::<Value>(&written));
        let stop = |error| Stop::of(Side::Service, WRITING, format!("{name:?}"), error);
        match written {
            Ok(mut written) => Ok(written["metadata"].take()),
            Err(error) if error.is_already_there() => Err(Stop::again(WRITING)),
            Err(error) => {
                let is_too_large = error.status().is_some_and(|status| matches!(status.code, 413 | 422));
                Err(match stop(error) {
                    Stop::Fails(mut trouble) if is_too_large => {
                        trouble.advice = TOO_LARGE;
                        Stop::Fails(trouble)
                    }
                    other => other,
                })
            }
        }
    }

    /// There is no state any more.
    pub(super) async fn delete_states(&self) -> Result<(), Stop> {
        self.read_states().await?;
        self.states.changes.take();
        let read = self.states.read.take();
        if let Some(secret) = read.and_then(|read| read.secret) {
            let name = self.states_of(&self.route.remote().version);
            self.delete_secret(&name, &secret).await?;
        }
        // One that was moved over may have been left.
        for version in &*self.route.served.other_versions {
            let name = self.states_of(version);
            if let Some(secret) = self.found_states(&name).await? {
                self.delete_secret(&name, &secret).await?;
            }
        }
        Ok(())
    }

    /// Where the agent may not delete it, as with the rights of the Go agent, the Secret stays, and nothing is in it.
    async fn delete_secret(&self, name: &ObjectName, secret: &Value) -> Result<(), Stop> {
        let (secrets, service) = (ResourceType::secrets(), self.service);
        let deleted = match delete(service, &secrets, name, secret, Propagation::Background).await {
            Err(error) if error.is_forbidden() && secret["data"].is_object() => {
                let mut empty = secret.clone();
                empty["data"] = json!({});
                let body = empty.to_string().into();
                let emptied = service.replace(&secrets, name, body, Content::Metadata).await;
                emptied.map(drop)
            }
            Err(error) if error.is_forbidden() => Ok(()),
            other => other,
        };
        deleted.map_err(|error| Stop::of(Side::Service, "deleting the state Secret", format!("{name:?}"), error))
    }
}
