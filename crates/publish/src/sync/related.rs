//! What is synced with a primary, from whichever side it comes.
//!
//! Promises: an object at the side of its origin is never deleted, and changed only by our finalizer; one that is not there
//! yet is no error; what another side has more than the origin stays.

use std::fmt::Write as _;
use std::rc::Rc;

use bytes::Bytes;
use kube_lite::discovery::{Served, ServedResource, discover, discover_in};
use kube_lite::{Cluster, Content, NewStatus, ObjectName, OnlyWith, ResourceType};
use serde_json::{Value, json};

use super::state::States;
use super::{Pass, create, delete, name_of};
use crate::copy::{self, Terms};
use crate::kcp::parsed;
use crate::keys::{RELATED_PREFIX, state_key, state_key_of_kind};
use crate::kinds::{Locator, Origin, Related, SelectorLocator, StatusSync, TypeOf};
use crate::labels::{Operator, Selector};
use crate::lifecycle::{self, Propagation};
use crate::naming::CopyName;
use crate::related::{Both, Names, other};
use crate::servers::FIELD_MANAGER;
use crate::sides::Side;
use crate::trouble::Stop;

/// What to do about a related resource that cannot be found out.
const CORRECT: &str =
    "correct spec.related of the PublishedResource, or the object; it is tried at once when either changes";

/// One end of a related object.
struct End<'a> {
    side: Side,
    server: &'a Rc<Cluster>,
    /// The workspace; empty on the service cluster.
    workspace: &'a str,
    served: ServedResource,
}

impl End<'_> {
    fn name(&self, namespace: &str, name: &str) -> ObjectName {
        let namespace = if self.served.resource.namespaced { namespace } else { "" };
        ObjectName::in_workspace(self.workspace, namespace, name)
    }

    fn stop(&self, doing: &'static str, name: &ObjectName, error: kube_lite::Error) -> Stop {
        let object = format!("{} {name:?}", self.served.resource.kind);
        Stop::of(self.side, doing, object, error)
    }

    async fn get(&self, name: &ObjectName) -> Result<Option<Value>, Stop> {
        const DOING: &str = "reading a related object";
        match self.server.get(&self.served.resource, name, Content::Full).await {
            Ok(found) => parsed(&found).map(Some).map_err(|error| self.stop(DOING, name, error)),
            Err(error) if error.proves_absent(&name.name) => Ok(None),
            Err(error) => Err(self.stop(DOING, name, error)),
        }
    }
}

impl Pass<'_> {
    /// Brings what is related to a primary in sync.
    pub(super) async fn relate(&self, object: &Value, copy: &Value) -> Result<(), Stop> {
        let both = self.both(object, copy);
        for related in &self.route.resource.related {
            let ends = self.ends(related).await?;
            let pairs = self.pairs(related, &both, &ends).await?;
            for (index, (origin, there)) in pairs.iter().enumerate() {
                self.bring_related(related, &ends, origin, there).await?;
                if related.origin == Origin::Service {
                    self.point_to(object, related, &ends[1], there, index).await?;
                }
            }
        }
        Ok(())
    }

    /// Takes away what goes with the primary. True if all of it is gone.
    pub(super) async fn clean_up(&self, object: &Value, copy: &Value) -> Result<bool, Stop> {
        let both = self.both(object, copy);
        let mut is_gone = true;
        let related = self.route.resource.related.iter();
        for related in related.filter(|related| related.ends_with_primary()) {
            let ends = self.ends(related).await?;
            for (origin, there) in self.pairs(related, &both, &ends).await? {
                is_gone &= self.end_related(&ends, &origin, &there).await?;
            }
        }
        Ok(is_gone)
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

    /// The end of the origin, and the other one.
    async fn ends(&self, related: &Related) -> Result<[End<'_>; 2], Stop> {
        let end = async |at: Origin| {
            let (side, server, workspace) = match at {
                Origin::Kcp => (self.primary.shard(), self.shard, self.primary.name.workspace()),
                Origin::Service => (Side::Service, self.service, ""),
            };
            let type_of = related.type_on(at);
            let asked = (type_of.group.clone(), type_of.version.clone());
            let answer = if workspace.is_empty() {
                discover(server, &asked).await
            } else {
                discover_in(server, workspace, &asked).await
            };
            let answer = answer.map_err(|error| Stop::of(side, "finding a related type", &type_of.resource, error))?;
            let found = match answer {
                Served::Resources(resources) => resources.get(&*type_of.resource).cloned(),
                Served::NotServed => None,
            };
            let found = found.ok_or_else(|| unknown(&type_of, at))?;
            Ok::<_, Stop>(End {
                side,
                server,
                workspace,
                served: found,
            })
        };
        Ok([end(related.origin).await?, end(other(related.origin)).await?])
    }

    /// The names of the objects at both ends, in the order of those at the origin.
    async fn pairs(
        &self,
        related: &Related,
        both: &Both<'_>,
        ends: &[End<'_>; 2],
    ) -> Result<Vec<(ObjectName, ObjectName)>, Stop> {
        let wrong = |words: String| {
            let words = format!("spec.related {:?}: {words}", related.identifier);
            Stop::because("finding related objects", words, CORRECT)
        };
        let [origin, there] = ends;
        let namespaces = match &related.namespace {
            None if !origin.served.resource.namespaced && !there.served.resource.namespaced => {
                vec![Names::default()]
            }
            None => vec![both.own_namespaces(related.origin).map_err(wrong)?],
            Some(locator) => {
                let namespaces = ResourceType::namespaces();
                self.names(related, locator, both, origin, (&namespaces, "")).await?
            }
        };
        let mut pairs = Vec::new();
        for (from, to) in namespaces {
            let of_namespace = (&origin.served.resource, &*from);
            for (name, called) in self.names(related, &related.object, both, origin, of_namespace).await? {
                pairs.push((origin.name(&from, &name), there.name(&to, &called)));
            }
        }
        pairs.sort();
        Ok(pairs)
    }

    async fn names(
        &self,
        related: &Related,
        locator: &Locator,
        both: &Both<'_>,
        origin: &End<'_>,
        (resource, namespace): (&ResourceType, &str),
    ) -> Result<Vec<Names>, Stop> {
        let wrong = |words: String| {
            let words = format!("spec.related {:?}: {words}", related.identifier);
            Stop::because("finding related objects", words, CORRECT)
        };
        match locator {
            Locator::Reference(place) => both.referenced(place, related.origin).map_err(wrong),
            Locator::Template(template) => both.rendered(template, related.origin).map_err(wrong),
            Locator::Selector(locator) => {
                let selector = both.selector(locator).map_err(wrong)?;
                let found = self.list_related(origin, resource, namespace, &selector).await?;
                let is_namespace = resource.is("", "namespaces");
                let names = found.iter().map(|found| rewritten(both, locator, found, is_namespace));
                names.collect::<Result<_, _>>().map_err(wrong)
            }
        }
    }

    /// The objects with these labels at one end.
    async fn list_related(
        &self,
        at: &End<'_>,
        resource: &ResourceType,
        namespace: &str,
        selector: &Selector,
    ) -> Result<Vec<Value>, Stop> {
        let mut path = kube_lite::group_version_path(&resource.group, &resource.version);
        if resource.namespaced && !namespace.is_empty() {
            let _ = write!(path, "/namespaces/{namespace}");
        }
        let _ = write!(
            path,
            "/{}?labelSelector={}",
            resource.resource,
            encoded(&text_of(selector))
        );
        let answer = if at.workspace.is_empty() {
            at.server.get_path(&path).await
        } else {
            at.server.get_path_in(at.workspace, &path).await
        };
        let list = answer.and_then(|answer| parsed::<Value>(&answer));
        let list = list.map_err(|error| Stop::of(at.side, "listing related objects", &resource.resource, error))?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    /// Brings one object in sync.
    async fn bring_related(
        &self,
        related: &Related,
        [origin, there]: &[End<'_>; 2],
        from: &ObjectName,
        to: &ObjectName,
    ) -> Result<(), Stop> {
        let Some(mut source) = origin.get(from).await? else {
            return Ok(());
        };
        if related.origin == Origin::Kcp {
            if lifecycle::is_in_deletion(&source) {
                if lifecycle::has_finalizer(&source) {
                    self.end_related_of(&source, origin, there, to).await?;
                }
                return Ok(());
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
            return Ok(());
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
            self.sync_status(&source, &object, there, to).await?;
        }
        Ok(())
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
        let created = create(there.server, &there.served.resource, to, &planned).await;
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
        let written = self.write(there.server, resource, to, (source, found), last.as_ref(), &terms);
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
    async fn sync_status(&self, source: &Value, found: &Value, there: &End<'_>, to: &ObjectName) -> Result<(), Stop> {
        let Some(status) = copy::status(found, source).filter(|_| there.served.status_subresource) else {
            return Ok(());
        };
        let new = NewStatus {
            status: &status.to_string(),
            subresource: true,
            manager: FIELD_MANAGER,
        };
        let written = there
            .server
            .replace_status(&there.served.resource, to, OnlyWith::Anything, &new)
            .await;
        written
            .map(drop)
            .map_err(|error| there.stop("writing the status of", to, error))
    }

    /// The object at the other end goes, and then our finalizer at the origin. True if both are gone.
    async fn end_related(
        &self,
        [origin, there]: &[End<'_>; 2],
        from: &ObjectName,
        to: &ObjectName,
    ) -> Result<bool, Stop> {
        let source = origin.get(from).await?;
        // Names come from both sides: one that was never synced is somebody else's, whatever names it.
        let is_marked = source.as_ref().is_some_and(lifecycle::has_finalizer);
        if !is_marked && self.states(origin, from).read().await?.is_none() {
            return Ok(true);
        }
        match source {
            Some(source) => self.end_related_of(&source, origin, there, to).await,
            None => self.delete_related(there, to).await,
        }
    }

    async fn end_related_of(
        &self,
        source: &Value,
        origin: &End<'_>,
        there: &End<'_>,
        to: &ObjectName,
    ) -> Result<bool, Stop> {
        if !self.delete_related(there, to).await? {
            return Ok(false);
        }
        let name = name_of(source);
        let name = origin.name(name.namespace(), &name.name);
        let patch = lifecycle::remove_finalizer(source).filter(|_| origin.side != Side::Service);
        if let Some(patch) = patch {
            let body = Bytes::from(patch.to_string());
            match origin.server.merge_patch(&origin.served.resource, &name, body).await {
                Ok(_) => {}
                Err(error) if error.proves_absent(&name.name) => {}
                Err(error) => return Err(origin.stop("removing the finalizer from", &name, error)),
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

fn rewritten(both: &Both<'_>, locator: &SelectorLocator, found: &Value, is_namespace: bool) -> Result<Names, String> {
    let name = found["metadata"]["name"].as_str().unwrap_or_default();
    let object = if is_namespace { &Value::Null } else { found };
    Ok((name.to_owned(), both.rewritten(locator, name, object)?))
}

fn unknown(type_of: &TypeOf, at: Origin) -> Stop {
    let TypeOf {
        group,
        version,
        resource,
    } = type_of;
    let side = at.name();
    let words = format!("the side {side} does not serve {resource} of {group}/{version}");
    let advice =
        "the consumer has to accept the claim for it, and the service cluster to have it; or correct spec.related";
    Stop::because("finding a related type", words, advice)
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

/// A selector as a query has it.
fn text_of(selector: &Selector) -> String {
    let labels = selector.labels.iter().map(|(key, value)| format!("{key}={value}"));
    let expressions = selector.expressions.iter().map(|expression| {
        let (key, values) = (&expression.key, expression.values.join(","));
        match expression.operator {
            Operator::In => format!("{key} in ({values})"),
            Operator::NotIn => format!("{key} notin ({values})"),
            Operator::Exists => key.clone(),
            Operator::DoesNotExist => format!("!{key}"),
        }
    });
    labels.chain(expressions).collect::<Vec<_>>().join(",")
}

/// As a part of a URL's query.
fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::Expression;

    #[test]
    fn a_selector_is_a_query() {
        let expression = |operator, values: &[&str]| Expression {
            key: "e".to_owned(),
            operator,
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let selector = Selector {
            labels: [("a/b".to_owned(), "c".to_owned())].into(),
            expressions: vec![
                expression(Operator::In, &["x", "y"]),
                expression(Operator::NotIn, &["z"]),
                expression(Operator::Exists, &[]),
                expression(Operator::DoesNotExist, &[]),
            ],
        };
        assert_eq!(text_of(&selector), "a/b=c,e in (x,y),e notin (z),e,!e");
        assert_eq!(encoded("a/b=c,e in (x)"), "a/b%3Dc%2Ce%20in%20%28x%29");
    }
}
