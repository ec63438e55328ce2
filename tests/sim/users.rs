//! What users and controllers do at a side, past the weather; and what becomes of the side itself.

use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::{Value, json};
use tokio::task::spawn_local;
use tokio::time::Instant;

use super::fields::{self, Writer};
use super::ledger::Lost;
use super::refusal::Refusal;
use super::server::Server;
use super::store::{Key, Object, Store};
use super::types::{self, Type};
use super::verbs::{self, Preconditions, merging};

/// What users and controllers do at this side, past the weather. A refusal is theirs to bear.
impl Server {
    fn as_user(
        self: &Rc<Self>,
        deed: &str,
        key: &Key,
        act: impl FnOnce(&mut Store, &Type, &str) -> Result<Object, Refusal>,
    ) -> Option<Object> {
        let now = self.now();
        let ty = types::by_name(&self.store.borrow(), &key.resource)?;
        let version = self.store.borrow().version();
        let result = act(&mut self.store.borrow_mut(), &ty, &now);
        let after = self.store.borrow().version();
        if after != version {
            let line = format!("{}: {deed} {key} at {after}", self.side);
            self.ledger.borrow_mut().trace.add(line);
        }
        self.flush();
        result.ok()
    }

    /// Creates an object.
    pub fn create(
        self: &Rc<Self>,
        manager: &str,
        resource: &str,
        namespace: &str,
        name: &str,
        body: Value,
    ) -> Option<Object> {
        let key = Key::new(resource, namespace, name);
        self.as_user(&format!("{manager} creates"), &key, |store, ty, now| {
            let by = Writer {
                manager,
                subresource: "",
                now,
            };
            verbs::create(store, ty, &key, body, by, false).map(|written| written.object)
        })
    }

    /// Merge-patches an object.
    pub fn patch(self: &Rc<Self>, manager: &str, key: &Key, change: &Value) -> Option<Object> {
        self.patch_part(manager, "", key, change)
    }

    /// An autoscaler says how many replicas there are to be.
    pub fn scale(self: &Rc<Self>, key: &Key, replicas: u32) -> Option<Object> {
        self.patch_part("autoscaler", "scale", key, &json!({"spec": {"replicas": replicas}}))
    }

    /// Merge-patches the status of an object.
    pub fn patch_status(self: &Rc<Self>, manager: &str, key: &Key, change: &Value) -> Option<Object> {
        self.patch_part(manager, "status", key, change)
    }

    fn patch_part(self: &Rc<Self>, manager: &str, subresource: &str, key: &Key, change: &Value) -> Option<Object> {
        self.as_user(&format!("{manager} patches {subresource}"), key, |store, ty, now| {
            if subresource == "status" && !ty.status {
                return Err(Refusal::no_type());
            }
            let by = Writer {
                manager,
                subresource,
                now,
            };
            verbs::patch(store, ty, key, merging(change), by).map(|written| written.object)
        })
    }

    /// Applies all that somebody has set in an object, as another field manager. Who applies what the server has filled in
    /// keeps that for good.
    pub fn apply(self: &Rc<Self>, manager: &str, key: &Key) -> Option<Object> {
        let mut config = (**self.store.borrow().get(key)?).clone();
        let owners = fields::owners(&config);
        let is_set = |path: &[String]| owners.iter().any(|(owned, _)| owned.starts_with(path));
        config.as_object_mut()?.retain(|part, fields| {
            if let Some(fields) = fields.as_object_mut() {
                fields.retain(|name, _| is_set(&[part.clone(), name.clone()]));
            }
            is_set(std::slice::from_ref(part))
        });
        config["metadata"] = json!({});
        self.apply_this(manager, key, config)
    }

    /// Applies an object.
    pub fn apply_this(self: &Rc<Self>, manager: &str, key: &Key, mut config: Value) -> Option<Object> {
        self.as_user(&format!("{manager} applies"), key, |store, ty, now| {
            config["apiVersion"] = json!(ty.api_version());
            config["kind"] = json!(ty.kind);
            config["metadata"]["name"] = json!(*key.name);
            config["metadata"]["namespace"] = json!(*key.namespace);
            let by = Writer {
                manager,
                subresource: "",
                now,
            };
            verbs::apply(store, ty, key, config, by, true).map(|written| written.object)
        })
    }

    /// What all field managers have of an object is at a version that its type no longer has.
    pub fn drop_version(self: &Rc<Self>, key: &Key) -> Option<Object> {
        self.as_user("the version goes of", key, |store, ty, now| {
            let by = Writer {
                manager: "kube-apiserver",
                subresource: "",
                now,
            };
            let at_former = |object: &mut Value| {
                for entry in object["metadata"]["managedFields"].as_array_mut().into_iter().flatten() {
                    entry["apiVersion"] = json!(ty.former_version());
                }
                Ok(())
            };
            verbs::patch(store, ty, key, at_former, by).map(|written| written.object)
        })
    }

    /// Deletes an object.
    pub fn delete(self: &Rc<Self>, key: &Key) -> Option<Object> {
        let act =
            |store: &mut Store, ty: &Type, now: &str| verbs::delete(store, ty, key, &Preconditions::default(), now);
        self.as_user("deletes", key, act)
    }

    /// No connection survives, and what the server was about begins again.
    fn restart(self: &Rc<Self>) {
        self.epoch.set(self.epoch.get() + 1);
        self.unreported.borrow_mut().clear();
        self.changed.notify_waiters();
        let store = self.store.borrow();
        let closing: BTreeSet<Key> = ["namespaces", types::DEFINITIONS]
            .into_iter()
            .flat_map(|resource| store.of(resource, ""))
            .filter(|(_, object)| object["metadata"]["deletionTimestamp"].is_string())
            .map(|(key, _)| key.clone())
            .collect();
        for key in &closing {
            spawn_local(Rc::clone(self).close(key.clone(), self.epoch.get()));
        }
        for (key, object) in store.of(types::DEFINITIONS, "") {
            if object["status"].is_null() && !closing.contains(key) {
                spawn_local(Rc::clone(self).establish(key.clone(), self.epoch.get()));
            }
        }
        *self.closing.borrow_mut() = closing;
    }

    /// The server restarts, and no version given so far can be gone on from.
    pub fn forget_versions(self: &Rc<Self>) {
        let namespace = Key::new("namespaces", "", "default");
        let change = json!({"metadata": {"annotations": {"restarted": self.now()}}});
        self.patch("kube-apiserver", &namespace, &change);
        self.store.borrow_mut().compact();
        self.restart();
    }

    /// A custom type is not served from now on. Its objects stay.
    pub fn hide(&self, ty: &str) {
        let now = Instant::now();
        self.store.borrow_mut().hidden.insert(ty.to_owned(), now);
        self.changed.notify_waiters();
    }

    /// All types are served.
    pub fn show_all(&self) {
        let hidden = std::mem::take(&mut self.store.borrow_mut().hidden);
        for (resource, since) in hidden {
            self.ledger
                .borrow_mut()
                .shows_again(self.side, resource, since.elapsed());
        }
        self.changed.notify_waiters();
    }

    /// The server continues with another store: restored from a backup, or another server at the same address. Copies of
    /// what is lost by that have to stay.
    pub fn become_another(self: &Rc<Self>, store: Store, why: &'static str) {
        let lost: Vec<_> = {
            let old = self.store.borrow();
            let gone = old.all().filter(|(key, _)| store.get(key).is_none());
            gone.map(|(key, object)| (key.clone(), Rc::clone(object))).collect()
        };
        let mut ledger = self.ledger.borrow_mut();
        let back = store.all().filter(|(key, _)| self.store.borrow().get(key).is_none());
        ledger.revived.extend(back.map(|(key, _)| (self.side, key.clone())));
        ledger.trace.add(format!(
            "{} is another server now, at version {}",
            self.side,
            store.version()
        ));
        let change = |key: &Key, before: Option<Object>, after: Option<Object>| super::store::Change {
            version: 0,
            at: Instant::now(),
            key: key.clone(),
            before,
            after,
        };
        for (key, object) in lost {
            let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
            ledger.lost.insert((self.side, key.clone()), Lost { uid, why });
            ledger.changed(self.side, &change(&key, Some(object), None));
        }
        for (key, object) in store.all() {
            ledger.changed(self.side, &change(key, None, Some(Rc::clone(object))));
        }
        drop(ledger);
        self.noted.set(store.version());
        *self.store.borrow_mut() = store;
        self.restart();
    }
}
