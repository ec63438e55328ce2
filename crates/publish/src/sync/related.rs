//! What is synced with a primary, from whichever side it comes.
//!
//! Promises: an object at the side of its origin is never deleted, and changed only by our finalizer; one that is not there
//! yet is no error; what another side has more than the origin stays; an object of the service cluster that no agent has
//! made, or one for another workspace, is not touched.

use std::collections::BTreeSet;

use bytes::Bytes;
use driver::events::Record;
use kube_lite::ObjectName;
use serde_json::{Value, json};

use super::Pass;
use super::locating::{CORRECT, End, Located, Pair, used};
use crate::copy::{self, Marks, Terms};
use crate::kcp::parsed;
use crate::keys::RELATED_PREFIX;
use crate::kinds::{Origin, Related, StatusSync};
use crate::lifecycle;
use crate::naming::CopyName;
use crate::sides::Side;
use crate::trouble::Stop;
use crate::turn::Use;

/// What to do about an object that is in the way.
const FOREIGN: &str = "delete it, or let spec.related or spec.naming of the PublishedResource give another name or namespace; or \
    hand it over, with the label syncagent.kcp.io/agent-name and the name of the agent";

/// What to do about an object that no consumer may get.
const NO_ORIGIN: &str = "let spec.related or spec.naming of the PublishedResource name another object, or take off its labels and \
    annotations of the agent";

impl Pass<'_> {
    /// Brings what is related to a primary in sync.
    pub(super) async fn relate(&self, object: &Value, copy: &Value) -> Result<(), Stop> {
        if self.route.resource.related.is_empty() {
            return Ok(());
        }
        let (located, failure) = self.locate(object, copy, |_| true).await?;
        let mut found = match failure {
            None => self.let_go(&located).await?,
            // What belongs to it is not known.
            Some(_) => self.known_uses(),
        };
        let brought = self.bring_all(object, &located, &mut found.all).await;
        if brought.is_err() {
            found.all.extend(&self.job.turn.uses.known);
        }
        self.uses.replace(Some(found));
        brought.and(failure.map_or(Ok(()), Err))
    }

    async fn bring_all(&self, object: &Value, located: &[Located<'_>], uses: &mut BTreeSet<Use>) -> Result<(), Stop> {
        for Located { related, ends, pairs } in located {
            for (index, pair) in pairs.iter().enumerate() {
                let is_used = self.bring_related(related, ends, pair).await?;
                if is_used && related.ends_with_primary() {
                    uses.extend(used(ends, pair));
                }
                if related.origin == Origin::Service {
                    self.point_to(object, related, &ends[1], &pair.1, index).await?;
                }
            }
        }
        Ok(())
    }

    /// Brings one object in sync. False if it is not there, or going.
    async fn bring_related(
        &self,
        related: &Related,
        ends: &[End<'_>; 2],
        pair @ (from, to): &Pair,
    ) -> Result<bool, Stop> {
        let [origin, there] = ends;
        let Some(mut source) = origin.get(from).await? else {
            return Ok(false);
        };
        if related.origin == Origin::Kcp && lifecycle::is_in_deletion(&source) {
            // Whoever has taken our finalizer off takes care of it.
            if !lifecycle::has_finalizer(&source) {
                return Ok(false);
            }
            let is_over = self.end_related_of(&source, ends, pair, &BTreeSet::new()).await?;
            let waits = !is_over || self.is_shared(origin, from);
            self.waits.set(self.waits.get() || waits);
            return Ok(false);
        }
        if let Some(why) = origin.is_no_origin(&source) {
            let words = format!("{} {from:?} is not for consumers: {why}", origin.served.resource.kind);
            return Err(Stop::because("bringing a related object", words, NO_ORIGIN));
        }
        let found = there.get(to).await?;
        if let Some(found) = &found
            && let Some(why) = self.is_foreign(found, ends, from).await?
        {
            let words = format!("{} {to:?} is there: {why}", there.served.resource.kind);
            return Err(Stop::because("bringing a related object", words, FOREIGN));
        }
        if related.ends_with_primary() {
            self.write_down(related, ends, pair).await?;
        }
        let patch = lifecycle::add_finalizer(&source).filter(|_| related.origin == Origin::Kcp);
        if let Some(patch) = patch {
            let body = Bytes::from(patch.to_string());
            let written = origin.server.merge_patch(&origin.served.resource, from, body).await;
            let written = written.and_then(|object| parsed::<Value>(&object));
            source = written.map_err(|error| origin.stop("adding the finalizer to", from, error))?;
        }
        let rules = self.route.related_rules(&related.identifier);
        if found.as_ref().is_some_and(lifecycle::is_in_deletion) {
            return Ok(true);
        }
        let planned = found.clone().unwrap_or_else(|| self.planned(&source, there, to, from));
        let mutated = rules.spec(source.clone(), &planned, self.now);
        let mutated =
            mutated.map_err(|error| Stop::because("applying spec.related mutations", error.to_string(), CORRECT))?;
        let object = match found {
            None => self.create_related(&mutated, there, to, origin, from).await?,
            Some(found) => self.update_related(&mutated, &found, there, to, origin, from).await?,
        };
        if related.status == StatusSync::On {
            self.sync_status(&source, &object, ends, pair).await?;
        }
        Ok(true)
    }

    /// What an object would be at the other end.
    fn planned(&self, source: &Value, there: &End<'_>, to: &ObjectName, from: &ObjectName) -> Value {
        let resource = &there.served.resource;
        let name = CopyName {
            namespace: to.namespace().to_owned(),
            name: to.name.to_string(),
        };
        let terms = terms(there, from);
        copy::create(
            source,
            &terms,
            &self.key,
            &resource.api_version(),
            &resource.kind,
            &name,
        )
    }

    async fn create_related(
        &self,
        source: &Value,
        there: &End<'_>,
        to: &ObjectName,
        origin: &End<'_>,
        from: &ObjectName,
    ) -> Result<Value, Stop> {
        let mut planned = self.planned(source, there, to, from);
        let server = (there.side, &**there.server);
        let created = self.create_at(server, &there.served.resource, to, &planned).await;
        let created = match created.and_then(|created| parsed::<Value>(&created)) {
            Err(error) if error.is_already_there() => return Err(Stop::again("creating a related object")),
            other => other.map_err(|error| there.stop("creating a related object", to, error))?,
        };
        for key in ["uid", "resourceVersion"] {
            planned["metadata"][key] = created["metadata"][key].clone();
        }
        self.remember(source, there, origin, from).await?;
        Ok(planned)
    }

    /// Gives the object as it is then.
    async fn update_related(
        &self,
        source: &Value,
        found: &Value,
        there: &End<'_>,
        to: &ObjectName,
        origin: &End<'_>,
        from: &ObjectName,
    ) -> Result<Value, Stop> {
        let terms = terms(there, from);
        let mut states = self.states(origin, from);
        let last = states.read().await?;
        let stop = |error| there.stop("updating a related object", to, error);
        let resource = &there.served.resource;
        let server = (there.side, &**there.server);
        let written = self.write(server, resource, to, (source, found), last.as_ref(), &terms);
        let object = written.await.map_err(stop)?.unwrap_or_else(|| found.clone());
        states.write(&copy::state(source, terms.subresources)).await?;
        Ok(object)
    }

    async fn remember(&self, source: &Value, there: &End<'_>, origin: &End<'_>, from: &ObjectName) -> Result<(), Stop> {
        let mut states = self.states(origin, from);
        states.read().await?;
        states
            .write(&copy::state(source, terms(there, from).subresources))
            .await
    }

    /// The status is synced from the origin to the other end.
    async fn sync_status(
        &self,
        source: &Value,
        found: &Value,
        ends @ [_, there]: &[End<'_>; 2],
        pair @ (_, to): &Pair,
    ) -> Result<(), Stop> {
        let Some(status) = copy::status(found, source) else {
            return Ok(());
        };
        if !there.served.status_subresource {
            if self.known.is_statusless(there.used(to)) {
                self.status_is_lost(source, found, ends, pair);
            }
            return Ok(());
        }
        // No verb but update is allowed there.
        let mut whole = found.clone();
        match (&mut whole, status) {
            // No status is none that is null.
            (Value::Object(whole), Value::Null) => drop(whole.remove("status")),
            (whole, status) => whole["status"] = status,
        }
        let body = whole.to_string().into();
        let written = there
            .server
            .replace_subresource(&there.served.resource, to, "status", body);
        written
            .await
            .map(drop)
            .map_err(|error| there.stop("writing the status of", to, error))
    }

    /// The type of the other end has no status, and keeps none as a field: that is said at the end in the workspace.
    fn status_is_lost(&self, source: &Value, found: &Value, [origin, there]: &[End<'_>; 2], (from, to): &Pair) {
        let (end, name, object) = if origin.side == Side::Service {
            (there, to, found)
        } else {
            (origin, from, source)
        };
        let resource = &end.served.resource;
        self.records.borrow_mut().push(Record {
            object: name.clone(),
            type_of: [resource.api_version(), resource.kind.clone()],
            uid: object["metadata"]["uid"].as_str().unwrap_or_default().to_owned(),
            is_warning: true,
            reason: "StatusSubresourceMissing",
            message: "The status cannot be synchronized: the type of the other side has no status subresource."
                .to_owned(),
            reporter: "syncagent-sync",
        });
    }

    /// The primary names what belongs to it, for people.
    async fn point_to(
        &self,
        object: &Value,
        related: &Related,
        there: &End<'_>,
        to: &ObjectName,
        index: usize,
    ) -> Result<(), Stop> {
        let key = format!("{RELATED_PREFIX}{}.{index}", related.identifier);
        let resource = &there.served.resource;
        let mut named = json!({"name": to.name, "apiVersion": resource.api_version(), "kind": resource.kind});
        if !to.namespace().is_empty() {
            named["namespace"] = json!(to.namespace());
        }
        let named = named.to_string();
        if object["metadata"]["annotations"][&key] == *named {
            return Ok(());
        }
        let uid = &object["metadata"]["uid"];
        let patch = json!({"metadata": {"uid": uid, "annotations": {key: named}}}).to_string();
        let written = self
            .shard
            .merge_patch(self.route.remote(), &self.primary.name, patch.into())
            .await;
        let stop = |error| Stop::of_primary(self.primary.shard(), "naming related objects", error);
        written.map(drop).map_err(stop)
    }
}

/// How an object comes to this end, from an object of this name.
fn terms<'n>(there: &End<'_>, from: &'n ObjectName) -> Terms<'n> {
    Terms {
        marks: match there.side {
            Side::Service => Marks::Related {
                namespace: from.namespace(),
                name: &from.name,
            },
            _ => Marks::None,
        },
        subresources: if there.served.status_subresource {
            &copy::SUBRESOURCES
        } else {
            &[]
        },
    }
}
