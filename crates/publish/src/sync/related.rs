//! What is synced with a primary, from whichever side it comes.
//!
//! Promises: an object at the side of its origin is never deleted, and changed only by our finalizer; one that is not there
//! yet is no error; what another side has more than the origin stays; an object of the service cluster that no agent has
//! made, or one for another workspace, is not touched.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use kube_lite::ObjectName;
use serde_json::Value;

use super::letting_go::state_of;
use super::locating::{CORRECT, Located, Pair, RelatedEnd, used};
use super::pointing::{Pointers, has_pointers};
use super::records::{ACCEPTED, PLACED, STATUS_LOST, STATUS_SYNCED, SYNCED, What};
use super::{Pass, covered, version_of};
use crate::copy::{self, Marks, Terms};
use crate::kcp::parsed;
use crate::kinds::{Locator, Origin, Related, StatusSync};
use crate::lifecycle;
use crate::mutation::RuleError;
use crate::naming::CopyName;
use crate::sides::Side;
use crate::trouble::{Stop, passed};
use crate::turn::Use;

/// What to do about an object that is in the way.
const FOREIGN: &str = "delete it, or let spec.related or spec.naming of the PublishedResource give another name or namespace; or \
    hand it over, with the label syncagent.kcp.io/agent-name and the name of the agent";

/// What to do about a token.
pub(super) const TOKEN: &str = "give the Secret another type, as Opaque, or let a mutation do so: tokens are of the cluster that has \
    made them";

/// What to do about the namespace of the agent.
const NO_HOME: &str = "let objects choose no such namespace; what is meant to be there needs a namespace in spec.related of the \
    PublishedResource that is the same for all objects";

/// What to do about an object that no consumer may get.
const NO_ORIGIN: &str = "let spec.related or spec.naming of the PublishedResource name another object, or take off its labels and \
    annotations of the agent";

impl Pass<'_> {
    /// Brings what is related to a primary in sync, as far as that is possible.
    pub(super) async fn relate(&self, object: &Value, copy: &Value) -> Result<(), Stop> {
        let rules = &self.route.resource.related;
        let mut pointers = Pointers::of(rules);
        if rules.is_empty() {
            let mut failure = None;
            passed(self.let_go_all().await, &mut failure)?;
            let pointed = if has_pointers(object) {
                self.point(object, &pointers).await
            } else {
                Ok(())
            };
            return failure.map_or(pointed, Err);
        }
        let (located, mut failure) = self.locate(object, copy, |_| true).await?;
        self.several.replace(several(&located));
        let current: BTreeSet<Use> = located.iter().flat_map(Located::uses).collect();
        let is_known = failure.is_none();
        let mut found = if is_known {
            let found = passed(self.let_go(&current).await, &mut failure)?;
            found.unwrap_or_else(|| self.known_uses(Some(&current)))
        } else {
            // What belongs to it is not known.
            self.known_uses(None)
        };
        let brought = self.bring_all(&located, &mut found.all, &mut pointers, &mut failure);
        let brought = brought.await;
        if brought.is_err() || failure.is_some() {
            found.all.extend(&self.job.turn.uses.known);
            if is_known {
                found.left = found.all.difference(&current).copied().collect();
            }
        }
        self.uses.replace(Some(found));
        brought?;
        let pointed = self.point(object, &pointers).await;
        failure.map_or(pointed, Err)
    }

    /// Lets go what belongs to a primary by rules that are there no longer. That takes no request where nothing does, nor
    /// where its state was not read, as nothing has changed.
    async fn let_go_all(&self) -> Result<(), Stop> {
        let is_known = self.job.turn.uses.is_known;
        if !is_known && !self.states.are_read() {
            return Ok(());
        }
        let current = BTreeSet::new();
        let found = self.let_go(&current).await;
        let found = found.inspect_err(|stop| {
            if is_known && matches!(stop, Stop::Fails(_)) {
                self.uses.replace(Some(self.known_uses(Some(&current))));
            }
        })?;
        if is_known || !found.all.is_empty() {
            self.uses.replace(Some(found));
        }
        Ok(())
    }

    async fn bring_all(
        &self,
        located: &[Located<'_>],
        uses: &mut BTreeSet<Use>,
        pointers: &mut Pointers,
        failure: &mut Option<Stop>,
    ) -> Result<(), Stop> {
        for Located { related, ends, pairs } in located {
            let (mut there, mut are_all) = (Vec::new(), true);
            for pair in pairs {
                let brought = self.bring_related(related, ends, pair).await;
                let is_used = passed(brought, failure)?;
                are_all &= is_used.is_some();
                if is_used == Some(true) {
                    there.push(&pair.1);
                    uses.extend(
                        related
                            .ends_with_primary()
                            .then(|| used(ends, pair))
                            .into_iter()
                            .flatten(),
                    );
                }
            }
            pointers.are(related, &ends[1], there, are_all);
        }
        Ok(())
    }

    /// True for what an object, and not its PublishedResource, has led to the namespace in which the agent keeps its own.
    fn is_led_home(&self, related: &Related, at: &ObjectName) -> bool {
        let by = match &related.namespace {
            Some(Locator::Template(template)) => Some(template),
            None => self.route.resource.naming.namespace.as_ref(),
            Some(_) => None,
        };
        at.namespace() == &*self.job.namespace && by.is_none_or(|by| by.contains("{{") || by.contains('$'))
    }

    /// Brings one object in sync. False if it is not there, or going.
    async fn bring_related(
        &self,
        related: &Related,
        ends: &[RelatedEnd<'_>; 2],
        pair @ (from, to): &Pair,
    ) -> Result<bool, Stop> {
        let [origin, there] = ends;
        if self.is_led_home(related, if origin.side == Side::Service { from } else { to }) {
            let words = format!(
                "{} {from:?} leads to the namespace of the agent",
                origin.served.resource.kind
            );
            return Err(Stop::because("bringing a related object", words, NO_HOME));
        }
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
            && let Some(why) = self.is_foreign(found, ends, pair).await?
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
            origin.record(self, from, &source, ACCEPTED);
        }
        if found.as_ref().is_some_and(lifecycle::is_in_deletion) {
            return Ok(true);
        }
        let planned = found.clone().unwrap_or_else(|| self.planned(&source, there, to, from));
        let rules = self.route.related_rules(&related.identifier);
        let wrong = |error: RuleError| {
            let words = origin.covered(&error.to_string(), &source);
            Stop::because("applying spec.related mutations", words, CORRECT)
        };
        let mut mutated = rules.spec(source.clone(), &planned, self.now).map_err(wrong)?;
        if lifecycle::lets_in(&there.served.resource, &mutated) {
            let words = format!(
                "{} {to:?} would let somebody in there: it has the type of a token",
                there.served.resource.kind
            );
            return Err(Stop::because("bringing a related object", words, TOKEN));
        }
        let object = match found {
            None => self.create_related(&mutated, ends, pair).await?,
            Some(found) => self.update_related(&mutated, &found, ends, pair).await?,
        };
        if related.status == StatusSync::On {
            let status = rules.status(&mutated, &object, self.now).map_err(wrong)?;
            mutated["status"] = status.unwrap_or_default();
            self.sync_status(&mutated, &object, ends, pair).await?;
        }
        Ok(true)
    }

    /// What an object would be at the other end.
    fn planned(&self, source: &Value, there: &RelatedEnd<'_>, to: &ObjectName, from: &ObjectName) -> Value {
        let resource = &there.served.resource;
        let name = CopyName {
            namespace: to.namespace().to_owned(),
            name: to.name.to_string(),
        };
        let terms = self.terms_of(there, from);
        copy::create(
            source,
            &terms,
            &self.key,
            &resource.api_version(),
            &resource.kind,
            &name,
        )
    }

    async fn create_related(&self, source: &Value, ends: &[RelatedEnd<'_>; 2], pair: &Pair) -> Result<Value, Stop> {
        let ([_, there], (from, to)) = (ends, pair);
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
        let state = copy::state(source, self.terms_of(there, from).subresources);
        self.keep_related(&state_of(ends, pair), &state);
        self.record_of_pair(ends, pair, [source, &planned], PLACED);
        Ok(planned)
    }

    /// Gives the object as it is then.
    async fn update_related(
        &self,
        source: &Value,
        found: &Value,
        ends: &[RelatedEnd<'_>; 2],
        pair: &Pair,
    ) -> Result<Value, Stop> {
        let ([origin, there], (from, to)) = (ends, pair);
        let terms = self.terms_of(there, from);
        let key = state_of(ends, pair);
        // Of several nobody knows which one a former state was about.
        let is_one = !self.several.borrow().contains(&origin.used(from));
        let last = if is_one {
            self.state(&key).await?
        } else {
            self.state(&key.alone()).await?
        };
        let stop = |error| there.stop("updating a related object", to, error);
        let resource = &there.served.resource;
        let server = (there.side, &**there.server);
        let written = self.write(server, resource, to, (source, found), last.as_ref(), &terms);
        let written = written.await.map_err(stop)?;
        if let Some(object) = &written {
            self.record_of_pair(ends, pair, [source, object], SYNCED);
        }
        self.keep_related(&key, &copy::state(source, terms.subresources));
        Ok(written.unwrap_or_else(|| found.clone()))
    }

    /// The status is synced from the origin to the other end.
    async fn sync_status(
        &self,
        source: &Value,
        found: &Value,
        ends @ [_, there]: &[RelatedEnd<'_>; 2],
        pair @ (_, to): &Pair,
    ) -> Result<(), Stop> {
        let Some(status) = copy::status(found, source) else {
            return Ok(());
        };
        if !there.served.status_subresource {
            if self.known.is_statusless(there.used(to)) {
                self.record_of_pair(ends, pair, [source, found], STATUS_LOST);
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
        let written = written.await.and_then(|written| parsed::<Value>(&written));
        let written = written.map_err(|error| there.stop("writing the status of", to, error))?;
        // Of what the type does not keep, nothing has come.
        if version_of(&written) != version_of(found) {
            self.record_of_pair(ends, pair, [source, found], STATUS_SYNCED);
        }
        Ok(())
    }

    /// Something has happened to a pair: that is said at the end in the workspace.
    fn record_of_pair(
        &self,
        [origin, there]: &[RelatedEnd<'_>; 2],
        (from, to): &Pair,
        objects: [&Value; 2],
        what: What,
    ) {
        if origin.side == Side::Service {
            there.record(self, to, objects[1], what);
        } else {
            origin.record(self, from, objects[0], what);
        }
    }
}

impl RelatedEnd<'_> {
    fn record(&self, pass: &Pass<'_>, name: &ObjectName, object: &Value, what: What) {
        pass.record_on(&self.served.resource, name, object, what);
    }

    /// Words about an object there. Nothing that a Secret holds is said.
    fn covered(&self, words: &str, object: &Value) -> String {
        covered(&self.served.resource, words, object)
    }
}

/// The origins that come to several objects at the other end.
fn several(located: &[Located<'_>]) -> BTreeSet<Use> {
    let mut of_origins = BTreeMap::<Use, BTreeSet<Use>>::new();
    for Located { ends, pairs, .. } in located {
        for [from, to] in pairs.iter().map(|pair| used(ends, pair)) {
            of_origins.entry(from).or_default().insert(to);
        }
    }
    of_origins.retain(|_, to| to.len() > 1);
    of_origins.into_keys().collect()
}

impl Pass<'_> {
    /// How an object comes to this end, from an object of this name.
    fn terms_of<'n>(&'n self, there: &RelatedEnd<'_>, from: &'n ObjectName) -> Terms<'n> {
        Terms {
            marks: match there.side {
                Side::Service => Marks::Related {
                    namespace: from.namespace(),
                    name: &from.name,
                    label: &self.label,
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
}
