//! The last state of an object that was written to its copy: kept in a Secret on the service cluster, so that what others
//! change in the copy is not taken for what the object has changed.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube_lite::{Content, ObjectName, ResourceType};
use serde_json::{Value, json};

use super::{Pass, delete};
use crate::kcp::parsed;
use crate::keys::{BELONGINGS, OBJECT_STATE, state_key};
use crate::lifecycle::Propagation;
use crate::sides::Side;
use crate::trouble::Stop;

/// The Secret of a primary.
pub(super) struct States<'p, 'a> {
    pass: &'p Pass<'a>,
    name: ObjectName,
    key: String,
    /// Another one, under which it may have been kept.
    former: Option<String>,
    /// As it was read.
    secret: Option<Value>,
}

const DOING: &str = "reading the state Secret";
const WRITING: &str = "writing the state Secret";

impl<'p, 'a> States<'p, 'a> {
    pub(super) fn of(pass: &'p Pass<'a>) -> Self {
        let key = &pass.key;
        let name = key.state_secret(&pass.route.remote().api_version(), &pass.route.remote().kind);
        Self {
            name: ObjectName::new(&pass.job.namespace, &name),
            key: state_key(&key.cluster, &key.namespace, &key.name),
            former: None,
            secret: None,
            pass,
        }
    }

    /// What belongs to the primary.
    pub(super) fn of_belongings(pass: &'p Pass<'a>) -> Self {
        Self {
            key: BELONGINGS.to_owned(),
            ..Self::of(pass)
        }
    }

    /// The same for an object that belongs to the primary.
    pub(super) fn of_related(pass: &'p Pass<'a>, key: String, former: String) -> Self {
        Self {
            key,
            former: Some(former),
            ..Self::of(pass)
        }
    }

    /// The last state; `None` if there is none, or none that can be read.
    pub(super) async fn read(&mut self) -> Result<Option<Value>, Stop> {
        let found = self
            .pass
            .service
            .get(&ResourceType::secrets(), &self.name, Content::Full)
            .await;
        let secret = match found {
            Ok(secret) => {
                self.pass.large.reads(DOING, &secret).await?;
                parsed::<Value>(&secret).map_err(|error| self.stop(DOING, error))?
            }
            Err(error) if error.proves_absent(&self.name.name) => return Ok(None),
            Err(error) => return Err(self.stop(DOING, error)),
        };
        if secret["metadata"]["labels"][OBJECT_STATE].is_null() {
            let words = format!("the Secret {:?} is there, and no agent has made it", self.name);
            return Err(Stop::because(DOING, words, "delete it; it is tried again"));
        }
        let kept = |key: &str| secret["data"][key].as_str();
        let text = kept(&self.key)
            .or_else(|| kept(self.former.as_deref()?))
            .unwrap_or_default();
        let state = STANDARD.decode(text).ok();
        let state = state.and_then(|state| serde_json::from_slice::<Value>(&state).ok());
        self.secret = Some(secret);
        Ok(state.filter(Value::is_object))
    }

    /// This is the last state from now on.
    pub(super) async fn write(self, state: &Value) -> Result<(), Stop> {
        let text = STANDARD.encode(state.to_string());
        let secrets = ResourceType::secrets();
        let service = self.pass.service;
        let mut secret = self.secret.clone().unwrap_or_else(|| {
            let labels: BTreeMap<&str, String> = self.pass.key.state_labels();
            json!({
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": self.name.name, "namespace": self.name.namespace(), "labels": labels},
                "type": "Opaque",
                "data": {},
            })
        });
        if secret["data"][&self.key] == *text {
            return Ok(());
        }
        secret["data"][&self.key] = json!(text);
        let body = secret.to_string().into();
        let written = if self.secret.is_some() {
            service.replace(&secrets, &self.name, body, Content::Metadata).await
        } else {
            service.create(&secrets, &self.name, body).await
        };
        match written {
            Ok(_) => Ok(()),
            Err(error) if error.is_already_there() => Err(Stop::again(WRITING)),
            Err(error) => Err(self.stop(WRITING, error)),
        }
    }

    /// There is no state any more. Where the agent may not delete it, as with the rights of the Go agent, the Secret stays, and
    /// nothing is in it.
    pub(super) async fn delete(mut self) -> Result<(), Stop> {
        self.read().await?;
        let Some(secret) = &self.secret else { return Ok(()) };
        let (secrets, service) = (ResourceType::secrets(), self.pass.service);
        let deleted = match delete(service, &secrets, &self.name, secret, Propagation::Background).await {
            Err(error) if error.is_forbidden() && secret["data"].is_object() => {
                let mut empty = secret.clone();
                empty["data"] = json!({});
                let body = empty.to_string().into();
                let emptied = service.replace(&secrets, &self.name, body, Content::Metadata).await;
                emptied.map(drop)
            }
            Err(error) if error.is_forbidden() => Ok(()),
            other => other,
        };
        deleted.map_err(|error| self.stop("deleting the state Secret", error))
    }

    fn stop(&self, doing: &'static str, error: kube_lite::Error) -> Stop {
        Stop::of(Side::Service, doing, format!("{:?}", self.name), error)
    }
}
