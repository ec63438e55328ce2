//! What is synced with a primary, from whichever side it comes.
//!
//! Promises: an object at the side of its origin is never deleted, and changed only by our finalizer; one that is not there
//! yet is no error; what another side has more than the origin stays.

use std::collections::BTreeSet;

use bytes::Bytes;
use driver::events::Record;
use kube_lite::{NewStatus, ObjectName, OnlyWith};
use serde_json::{Value, json};

use super::locating::{CORRECT, End};
use super::state::States;
use super::{Pass, create, delete};
use crate::apply::WRITER;
use crate::copy::{self, Terms};
use crate::kcp::parsed;
use crate::keys::{RELATED_PREFIX, state_key, state_key_of_kind};
use crate::kinds::{Origin, Related, StatusSync};
use crate::lifecycle::{self, Propagation};
use crate::naming::CopyName;
use crate::related::Both;
use crate::sides::Side;
use crate::trouble::Stop;
use crate::turn::Use;

/// What is to be deleted or let go with a primary: an object at its origin, and at the other end.
type Pair = (ObjectName, ObjectName);

impl Pass<'_> {
    /// Brings what is related to a primary in sync.
    pub(super) async fn relate(&self, object: &Value, copy: &Value) -> Result<(), Stop> {
        let both = self.both(object, copy);
        let mut uses = BTreeSet::new();
        for related in &self.route.resource.related {
            let ends = self.ends(related).await?;
            let pairs = self.pairs(related, &both, &ends).await?;
            for (index, pair) in pairs.iter().enumerate() {
                let is_used = self.bring_related(related, &ends, pair).await?;
                if is_used && related.ends_with_primary() {
                    uses.extend(used(&ends, pair));
                }
                if related.origin == Origin::Service {
                    self.point_to(object, related, &ends[1], &pair.1, index).await?;
                }
            }
        }
        self.uses.replace(Some(uses));
        Ok(())
    }

    /// Takes away what goes with the primary, and no other primary has. True if all of it is gone.
    pub(super) async fn clean_up(&self, object: &Value, copy: &Value) -> Result<bool, Stop> {
        let both = self.both(object, copy);
        let (mut all, mut uses) = (Vec::new(), BTreeSet::new());
        let related = self.route.resource.related.iter();
        for related in related.filter(|related| related.ends_with_primary()) {
            let ends = self.ends(related).await?;
            let pairs = self.pairs(related, &both, &ends).await?;
            uses.extend(pairs.iter().flat_map(|pair| used(&ends, pair)));
            all.push((ends, pairs));
        }
        let own = &self.job.turn.uses;
        let is_known = uses.is_subset(&own.known);
        self.uses.replace(Some(uses));
        if !is_known {
            // Whether others have it too is known at the next turn.
            return Err(Stop::Again);
        }
        if !own.are_all_known {
            return Ok(false);
        }
        let mut is_gone = true;
        for (ends, pairs) in &all {
            for pair in pairs {
                is_gone &= self.end_related(ends, pair).await?;
            }
        }
        Ok(is_gone)
    }

    /// Another primary has this too.
    fn is_shared(&self, end: &End<'_>, name: &ObjectName) -> bool {
        self.job.turn.uses.shared.contains(&end.used(name))
    }

    fn both<'b>(&'b self, object: &'b Value, copy: &'b Value) -> Both<'b> {
        Both {
            kcp: object,
            service: copy,
            cluster: &self.key.cluster,
            path: self.key.workspace_path.as_deref().unwrap_or_default(),
            now: self.now,
        }
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
        if related.origin == Origin::Kcp {
            if lifecycle::is_in_deletion(&source) {
                // Whoever has taken our finalizer off takes care of it.
                if !lifecycle::has_finalizer(&source) {
                    return Ok(false);
                }
                let is_over = self.end_related_of(&source, ends, pair).await?;
                let waits = !is_over || self.is_shared(origin, from);
                self.waits.set(self.waits.get() || waits);
                return Ok(false);
            }
            if let Some(patch) = lifecycle::add_finalizer(&source) {
                let body = Bytes::from(patch.to_string());
                let written = origin.server.merge_patch(&origin.served.resource, from, body).await;
                let written = written.and_then(|object| parsed::<Value>(&object));
                source = written.map_err(|error| origin.stop("adding the finalizer to", from, error))?;
            }
        }
        let rules = self.route.related_rules(&related.identifier);
        let found = there.get(to).await?;
        if found.as_ref().is_some_and(lifecycle::is_in_deletion) {
            return Ok(true);
        }
        let planned = found.clone().unwrap_or_else(|| self.planned(&source, there, to));
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
    fn planned(&self, source: &Value, there: &End<'_>, to: &ObjectName) -> Value {
        let resource = &there.served.resource;
        let name = CopyName {
            namespace: to.namespace().to_owned(),
            name: to.name.to_string(),
        };
        let terms = terms(there);
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
        let planned = self.planned(source, there, to);
        let agent = (there.side == Side::Service).then_some(&*self.job.agent);
        let created = create((there.server, agent), &there.served.resource, to, &planned).await;
        if let Err(error) = created {
            if error.is_already_there() {
                return Err(Stop::Again);
            }
            return Err(there.stop("creating a related object", to, error));
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
        let terms = terms(there);
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

    fn states(&self, origin: &End<'_>, from: &ObjectName) -> States<'_, '_> {
        // Objects of two kinds may have one name: the Go agent's key lacks the kind.
        let cluster = origin.workspace;
        let kind = &origin.served.resource.kind;
        let key = state_key_of_kind(cluster, from.namespace(), &from.name, kind);
        let former = state_key(cluster, from.namespace(), &from.name);
        States::of_related(self, key, former)
    }

    async fn remember(&self, source: &Value, there: &End<'_>, origin: &End<'_>, from: &ObjectName) -> Result<(), Stop> {
        let mut states = self.states(origin, from);
        states.read().await?;
        states.write(&copy::state(source, terms(there).subresources)).await
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
        let new = NewStatus {
            status: &status.to_string(),
            subresource: true,
            manager: WRITER,
        };
        let written = there
            .server
            .replace_status(&there.served.resource, to, OnlyWith::Anything, &new)
            .await;
        written
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

    /// The object at the other end goes, and then our finalizer at the origin. True if both are gone, or stay since another
    /// primary has them.
    async fn end_related(&self, ends: &[End<'_>; 2], pair @ (from, to): &Pair) -> Result<bool, Stop> {
        let source = ends[0].get(from).await?;
        // Names come from both sides: one that was never synced is somebody else's, whatever names it.
        let is_marked = source.as_ref().is_some_and(lifecycle::has_finalizer);
        if !is_marked && self.states(&ends[0], from).read().await?.is_none() {
            return Ok(true);
        }
        match source {
            Some(source) => self.end_related_of(&source, ends, pair).await,
            None if self.is_shared(&ends[1], to) => Ok(true),
            None => self.delete_related(&ends[1], to).await,
        }
    }

    async fn end_related_of(
        &self,
        source: &Value,
        [origin, there]: &[End<'_>; 2],
        (from, to): &Pair,
    ) -> Result<bool, Stop> {
        if !self.is_shared(there, to) && !self.delete_related(there, to).await? {
            return Ok(false);
        }
        let is_ours = origin.side != Side::Service && !self.is_shared(origin, from);
        let patch = lifecycle::remove_finalizer(source).filter(|_| is_ours);
        if let Some(patch) = patch {
            let body = Bytes::from(patch.to_string());
            match origin.server.merge_patch(&origin.served.resource, from, body).await {
                Ok(_) => {}
                Err(error) if error.proves_absent(&from.name) => {}
                Err(error) => return Err(origin.stop("removing the finalizer from", from, error)),
            }
        }
        Ok(true)
    }

    async fn delete_related(&self, there: &End<'_>, to: &ObjectName) -> Result<bool, Stop> {
        let Some(found) = there.get(to).await? else {
            return Ok(true);
        };
        if !lifecycle::is_in_deletion(&found) {
            let deleted = delete(
                there.server,
                &there.served.resource,
                to,
                &found,
                Propagation::Background,
            )
            .await;
            deleted.map_err(|error| there.stop("deleting a related object", to, error))?;
        }
        Ok(there.get(to).await?.is_none())
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
        let stop = |error| Stop::of(self.primary.shard(), "naming related objects", "", error);
        written.map(drop).map_err(stop)
    }
}

/// What a primary has of a pair.
fn used([origin, there]: &[End<'_>; 2], (from, to): &Pair) -> [Use; 2] {
    [origin.used(from), there.used(to)]
}

/// Related objects have no marks of ours.
fn terms(there: &End<'_>) -> Terms<'static> {
    Terms {
        agent: None,
        subresources: if there.served.status_subresource {
            &copy::SUBRESOURCES
        } else {
            &[]
        },
    }
}
