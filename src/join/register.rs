//! What is done at the hub for one edge, one request after the other.
//!
//! Promises: each run reads what is there and does what is missing, so that one which was interrupted is completed by the
//! next; what is already as wanted is not written; an error says what was done before it.

use std::fmt;
use std::time::Duration;

use driver::advice::about_no_api;
use kube_lite::Error;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::advice::advice;
use super::client::Client;
use super::hub::{self, Identity, Object, ObjectStep, Rbac, Rules, Wanted};
use super::id::new_uid;
use super::{JoinError, token};
use crate::api;

/// The time between two checks whether the hub serves the configs.
const AGAIN: Duration = Duration::from_secs(1);
/// The time between two lines that say what is waited for.
const PROGRESS: Duration = Duration::from_secs(5);

/// The kinds of configs, in the order of preference.
const CONFIGS: [&str; 2] = ["edgesyncconfigs", "syncerconfigs"];

/// What is reported and noted while it works.
pub(super) struct Work<'a> {
    pub(super) client: &'a Client,
    pub(super) say: &'a dyn Fn(&str),
    /// Nothing is written.
    pub(super) is_dry: bool,
    /// What was created so far, for error messages.
    pub(super) made: Vec<String>,
}

/// What is waited for.
pub(super) struct Wait {
    /// How long.
    pub(super) patience: Duration,
    pub(super) what: String,
    /// The error after that time, and what to do then.
    pub(super) otherwise: String,
    pub(super) advice: String,
}

/// What of the API a hub serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Api {
    /// The plurals of the kinds of configs, at least one; the first is the one that a registration has.
    pub(super) plurals: Vec<&'static str>,
    /// It has objects that stand for edges.
    pub(super) has_edges: bool,
}

/// What is at the hub.
pub(super) struct Found {
    pub(super) api: Api,
    pub(super) config: Option<Value>,
    pub(super) accounts: Vec<Value>,
    /// The objects that stand for the edge: one, unless its UID was another.
    pub(super) edges: Vec<Value>,
    /// The service accounts of other sync targets that are registered there.
    pub(super) others: Vec<Value>,
}

impl<'a> Work<'a> {
    /// Nothing is done yet.
    pub(super) fn new(client: &'a Client, say: &'a dyn Fn(&str), is_dry: bool) -> Self {
        Self {
            client,
            say,
            is_dry,
            made: Vec::new(),
        }
    }

    /// An error about a step, with what was created before.
    pub(super) fn error(&self, what: &str, why: &impl fmt::Display) -> JoinError {
        JoinError {
            what: what.to_owned(),
            why: why.to_string(),
            made: self.made.clone(),
        }
    }

    /// The same about what the hub has answered, with what can be done about it.
    pub(super) fn failed(&self, what: &str, error: &Error) -> JoinError {
        let advice = advice(error, &self.client.place());
        self.error(what, &format!("{error}; {advice}"))
    }

    /// Waits until the hub serves configs, and returns which.
    pub(super) async fn wait_for_api(&self, patience: Duration) -> Result<Api, JoinError> {
        let (path, url) = (format!("/apis/{}/{}", api::GROUP, api::VERSION), self.client.url());
        let wait = Wait {
            patience,
            what: format!("the hub to serve {path} at {url}"),
            otherwise: format!("{path} is not served at {url}"),
            advice: "apply manifests/crds/, or in kcp bind the API edge.kubestellar.io".to_owned(),
        };
        let found = self.wait(&wait, async || match self.client.get(&path).await {
            Ok(types) => Ok(served(&types).ok_or("the hub serves neither EdgeSyncConfig nor SyncerConfig".to_owned())),
            Err(error) if error.is_type_not_served() => match self.client.get("/version").await {
                // There is nothing at all below this URL.
                Err(error) if error.is_type_not_served() => {
                    let advice = about_no_api(&error.to_string(), &self.client.place());
                    Err(self.error(&format!("cannot read /version at {url}"), &format!("{error}; {advice}")))
                }
                _ => Ok(Err(error.to_string())),
            },
            Err(error) if passes(&error) => Ok(Err(error.to_string())),
            Err(error) => Err(self.failed(&format!("cannot read {path} at {url}"), &error)),
        });
        found.await
    }

    /// Asks every second until it is there; reports every few seconds that it waits, and why.
    pub(super) async fn wait<T>(
        &self,
        wait: &Wait,
        ask: impl AsyncFn() -> Result<Result<T, String>, JoinError>,
    ) -> Result<T, JoinError> {
        let (began, mut said) = (Instant::now(), Duration::ZERO);
        let patience = wait.patience.as_secs();
        loop {
            let why = match ask().await? {
                Ok(found) => return Ok(found),
                Err(why) => why,
            };
            let waited = began.elapsed();
            if waited >= wait.patience {
                let what = match patience {
                    0 => wait.otherwise.clone(),
                    _ => format!("{} after {patience} s", wait.otherwise),
                };
                return Err(self.error(&what, &format!("{why}; {}", wait.advice)));
            }
            if waited >= said + PROGRESS {
                said = waited;
                let waited = waited.as_secs();
                (self.say)(&format!(
                    "waiting for {} ({waited} s of {patience} s): {why}",
                    wait.what
                ));
            }
            sleep(AGAIN).await;
        }
    }

    /// What the hub has under this name and with its label.
    pub(super) async fn find(&self, name: &str, api: Api, patience: Duration) -> Result<Found, JoinError> {
        let path = format!("/apis/{}/{}/{}/{name}", api::GROUP, api::VERSION, api.plurals[0]);
        let config = self.client.find(&path).await;
        let config = config.map_err(|error| self.failed(&format!("cannot read {path}"), &error))?;
        let accounts = "/api/v1/serviceaccounts";
        let key = api::SYNC_TARGET_NAME;
        let others = self.labelled(accounts, &format!("{key},{key}%21%3D{name}")).await?;
        let edges = if api.has_edges {
            self.edges_of(name, patience).await?
        } else {
            Vec::new()
        };
        Ok(Found {
            api,
            config,
            edges,
            accounts: self.labelled(accounts, &of(name)).await?,
            others,
        })
    }

    /// The objects that stand for the edge. A hub that has just come to serve the type may not be able to list them yet.
    async fn edges_of(&self, name: &str, patience: Duration) -> Result<Vec<Value>, JoinError> {
        let edges = hub::edges();
        let path = format!("{edges}?labelSelector={}", of(name));
        let wait = Wait {
            patience,
            what: format!("the hub to list {edges}"),
            otherwise: format!("cannot list {edges}"),
            advice: "run the same command again, and see the hub's log if it lasts".to_owned(),
        };
        let list = self.wait(&wait, async || match self.client.get(&path).await {
            Ok(list) => Ok(Ok(list)),
            Err(error) if passes(&error) => Ok(Err(error.to_string())),
            Err(error) => Err(self.failed(&format!("cannot list {edges}"), &error)),
        });
        Ok(items(list.await?))
    }

    /// The objects of a collection that a selector of labels selects.
    async fn labelled(&self, collection: &str, selector: &str) -> Result<Vec<Value>, JoinError> {
        let path = format!("{collection}?labelSelector={selector}");
        let list = self.client.get(&path).await;
        let list = list.map_err(|error| self.failed(&format!("cannot list {collection}"), &error))?;
        Ok(items(list))
    }

    /// For which sync target the registration is: a new one, unless there is one of this name.
    pub(super) fn identify(&self, wanted: &Wanted<'_>, found: &Found, now: Duration) -> Result<Identity, JoinError> {
        let what = || format!("cannot register {}", wanted.name);
        let known = hub::identify(ours(found, wanted.name), &found.accounts, wanted);
        let mut known = known.map_err(|why| self.error(&what(), &why))?;
        if let Some(why) = known.uid.as_deref().and_then(|uid| hub::is_taken(&found.others, uid)) {
            return Err(self.error(&what(), &why));
        }
        let uid = known.uid.take().unwrap_or_else(|| {
            (self.say)(&format!(
                "note: {} is new here and gets a new UID; for an edge that was registered before, give its former UID with --uid",
                wanted.name
            ));
            let chance = u128::from(fastrand::u64(..)) << 64 | u128::from(fastrand::u64(..));
            new_uid(now, chance)
        });
        Ok(known.with(wanted.name, uid))
    }

    /// Makes everything as wanted, with these rules in the roles, which follow from `rbac`.
    pub(super) async fn register(
        &mut self,
        identity: &Identity,
        found: &Found,
        rbac: Rbac,
        rules: &Rules,
    ) -> Result<(), JoinError> {
        let config = hub::config(identity, found.api.plurals[0]);
        let owner = self.make(&config, found.config.clone(), &identity.name).await?;
        for object in hub::owned(identity, &owner, rbac, rules) {
            let there = self.client.find(&object.path()).await;
            let there = there.map_err(|error| self.failed(&format!("cannot read {}", object.label()), &error))?;
            self.make(&object, there, &identity.name).await?;
        }
        self.make_edge(identity, found).await
    }

    /// Makes the object that stands for the edge. One of the same name with a former UID is removed: nobody writes it.
    async fn make_edge(&mut self, identity: &Identity, found: &Found) -> Result<(), JoinError> {
        if !found.api.has_edges {
            (self.say)(WITHOUT_EDGES);
            return Ok(());
        }
        let object = hub::edge(identity);
        let path = object.path();
        let there = self.client.find(&path).await;
        let there = there.map_err(|error| self.failed(&format!("cannot read {path}"), &error))?;
        self.make(&object, there, &identity.name).await?;
        let former = found
            .edges
            .iter()
            .filter(|edge| edge["metadata"]["name"] != object.body["metadata"]["name"]);
        let former: Vec<(String, Value)> = former.map(|edge| (hub::edges(), edge.clone())).collect();
        self.delete_all(&former).await
    }

    /// Makes one object as wanted; returns it as it is then.
    async fn make(&mut self, object: &Object, found: Option<Value>, name: &str) -> Result<Value, JoinError> {
        let label = object.label();
        let step = hub::step(found.as_ref(), &object.body, name);
        let (verb, done) = match &step {
            ObjectStep::Keep => ("keep", "unchanged"),
            ObjectStep::Create => ("create", "created"),
            ObjectStep::Patch(_) => ("change", "changed"),
            ObjectStep::Recreate => ("recreate", "recreated"),
            ObjectStep::Refuse(_) => ("use", ""),
        };
        let found = found.unwrap_or_default();
        if let ObjectStep::Refuse(why) = step {
            return Err(self.error(&format!("cannot use {label}"), &why));
        }
        if self.is_dry || step == ObjectStep::Keep {
            let text = if step == ObjectStep::Keep {
                done.to_owned()
            } else {
                format!("would be {done}")
            };
            (self.say)(&format!("{label}: {text}"));
            return Ok(if step == ObjectStep::Create {
                object.body.clone()
            } else {
                found
            });
        }
        let written = match step {
            ObjectStep::Patch(patch) => self.client.patch(&object.path(), &patch).await,
            ObjectStep::Recreate => match self.client.delete(&object.path(), &found).await {
                Ok(()) => self.client.create(&object.collection, &object.body).await,
                Err(error) => Err(error),
            },
            _ => self.client.create(&object.collection, &object.body).await,
        };
        let written = written.map_err(|error| self.failed(&format!("cannot {verb} {label}"), &error))?;
        (self.say)(&format!("{label}: {done}"));
        self.made.push(format!("{label} {done}"));
        Ok(written)
    }

    /// A token for the service account, and until when it is valid.
    pub(super) async fn token(&self, identity: &Identity, lifetime: Duration) -> Result<(String, String), JoinError> {
        let (namespace, id) = (&identity.namespace, identity.id());
        let what = format!("cannot get a token for ServiceAccount/{namespace}/{id}");
        let path = format!("{}/{id}/token", hub::accounts(namespace));
        let answer = self.client.create(&path, &token::request(lifetime.as_secs())).await;
        let answer = answer.map_err(|error| self.failed(&what, &error))?;
        let granted = token::granted(&answer).map(|(token, end)| (token.to_owned(), end.to_owned()));
        granted.ok_or_else(|| self.error(&what, &"the hub has answered without one"))
    }

    /// Removes what a registration has made, but for the config, which is the last to go: the others are found through it
    /// if this is interrupted, also by garbage collection. True if there was anything.
    pub(super) async fn unregister(&mut self, name: &str, found: &Found) -> Result<bool, JoinError> {
        let mut all = Vec::new();
        for plural in ["clusterrolebindings", "clusterroles", "rolebindings", "roles"] {
            for object in self.labelled(&hub::of_rbac(None, plural), &of(name)).await? {
                let collection = hub::of_rbac(object["metadata"]["namespace"].as_str(), plural);
                all.push((collection, object));
            }
        }
        for account in &found.accounts {
            let namespace = account["metadata"]["namespace"].as_str().unwrap_or_default();
            all.push((hub::accounts(namespace), account.clone()));
        }
        // After the account, so that a syncer that still runs does not make them again.
        all.extend(found.edges.iter().map(|edge| (hub::edges(), edge.clone())));
        self.delete_all(&all).await?;
        Ok(!all.is_empty())
    }

    /// Removes the config, unless somebody uses it. True if it was there to remove.
    pub(super) async fn remove_config(&mut self, name: &str, found: &Found) -> Result<bool, JoinError> {
        let config = self.config_to_delete(name, found);
        self.delete_all(&config).await?;
        Ok(!config.is_empty())
    }

    /// The config, if it was created for this and selects nothing.
    fn config_to_delete(&self, name: &str, found: &Found) -> Vec<(String, Value)> {
        let Some(config) = &found.config else {
            return Vec::new();
        };
        let label = hub::label(config);
        let is_empty = config["spec"]
            .as_object()
            .is_none_or(|spec| spec.values().all(is_nothing));
        if !hub::is_ours(config, name) {
            (self.say)(&format!("{label}: kept: not created by gen"));
        } else if is_empty {
            let collection = format!("/apis/{}/{}/{}", api::GROUP, api::VERSION, found.api.plurals[0]);
            return vec![(collection, config.clone())];
        } else {
            (self.say)(&format!("{label}: stays, since it selects objects"));
        }
        Vec::new()
    }

    /// Deletes objects of these collections.
    async fn delete_all(&mut self, all: &[(String, Value)]) -> Result<(), JoinError> {
        for (collection, object) in all {
            let label = hub::label(object);
            if self.is_dry {
                (self.say)(&format!("{label}: would be deleted"));
                continue;
            }
            let path = format!(
                "{collection}/{}",
                object["metadata"]["name"].as_str().unwrap_or_default()
            );
            let deleted = self.client.delete(&path, object).await;
            deleted.map_err(|error| self.failed(&format!("cannot delete {label}"), &error))?;
            (self.say)(&format!("{label}: deleted"));
            self.made.push(format!("{label} deleted"));
        }
        Ok(())
    }
}

/// The note about a hub without objects that stand for edges.
const WITHOUT_EDGES: &str = "note: the hub does not serve edges.edge.kubestellar.io, so that kubectl get edges does not show \
                             this edge: apply manifests/crds/, in kcp manifests/kcp/, and run the same command again";

/// The objects of a list, each with its kind: servers leave that out.
fn items(mut list: Value) -> Vec<Value> {
    let kind = list["kind"].as_str().unwrap_or_default();
    let kind = kind.trim_end_matches("List").to_owned();
    let version = list["apiVersion"].take();
    let Value::Array(mut items) = list["items"].take() else {
        return Vec::new();
    };
    for item in &mut items {
        item["kind"] = kind.as_str().into();
        item["apiVersion"] = version.clone();
    }
    items
}

/// The selector of what was created for a sync target.
fn of(name: &str) -> String {
    format!("{}%3D{name}", api::SYNC_TARGET_NAME)
}

/// The config, if it is ours.
pub(super) fn ours<'a>(found: &'a Found, name: &str) -> Option<&'a Value> {
    found.config.as_ref().filter(|config| hub::is_ours(config, name))
}

/// What of the API a discovery answer names, if that has a kind of configs.
fn served(types: &Value) -> Option<Api> {
    let names: Vec<&str> = types["resources"]
        .as_array()?
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    let api = Api {
        plurals: CONFIGS.into_iter().filter(|plural| names.contains(plural)).collect(),
        has_edges: names.contains(&api::edge::RESOURCE),
    };
    (!api.plurals.is_empty()).then_some(api)
}

/// True for an error that ends with time: the API is not bound yet, or the server is too busy.
pub(super) fn passes(error: &Error) -> bool {
    let is_busy = |code: u16| matches!(code, 429 | 500..=599);
    error.is_type_not_served() || error.status().is_some_and(|status| is_busy(status.code))
}

/// True for an empty value.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_nothing),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn knows_which_kinds_are_served() {
        let types =
            |names: &[&str]| json!({"resources": names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>()});
        for (names, plurals, has_edges) in [
            (
                &["syncerconfigs", "edgesyncconfigs", "edges"][..],
                vec!["edgesyncconfigs", "syncerconfigs"],
                true,
            ),
            (&["syncerconfigs/status", "syncerconfigs"], vec!["syncerconfigs"], false),
        ] {
            assert_eq!(served(&types(names)), Some(Api { plurals, has_edges }));
        }
        assert_eq!(served(&types(&["others"])), None);
        assert_eq!(served(&json!({})), None);
    }

    #[test]
    fn a_config_that_selects_nothing_is_empty() {
        for (spec, expected) in [
            (json!({}), true),
            (
                json!({"namespaceScope": {"namespaces": [], "resources": null}, "upsync": []}),
                true,
            ),
            (json!({"upsync": [{}]}), false),
            (json!({"namespaceScope": {"namespaces": ["shop"]}}), false),
        ] {
            assert_eq!(is_nothing(&spec), expected, "{spec}");
        }
    }
}
