//! The object and its copy as they are now.

use std::collections::BTreeMap;

use kube_lite::read::list_all;
use kube_lite::{Content, Error};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Pass, name_of, version_of};
use crate::kcp::parsed;
use crate::keys::{AGENT_NAME, ObjectKey};
use crate::lifecycle;
use crate::sides::Side;
use crate::trouble::Stop;
use crate::turn::AtHand;

const COPY: &str = "reading the copy";
/// What to do about a copy that another agent takes.
const TAKEN: &str =
    "give each agent PublishedResources of its own by --published-resource-selector; it is this agent's again now";
/// What to do about several copies.
const SEVERAL: &str = "leave the one that is the copy, and take the label syncagent.kcp.io/remote-object-cluster off the others, or \
    delete them; nothing is written to any of them, or deleted, before";

impl Pass<'_> {
    /// The object as it is now. What its copy says goes back first, where that was all that has changed.
    pub(super) async fn read(&self, copy: Option<&Value>) -> Result<Option<Value>, Stop> {
        let returned = match copy {
            Some(copy) => self.return_ahead(copy).await?,
            None => None,
        };
        let found = match returned {
            None => self.found().await?,
            returned => returned,
        };
        self.version.set(found.as_ref().map(version_of).unwrap_or_default());
        let uid = found.as_ref().and_then(|found| found["metadata"]["uid"].as_str());
        self.uid.replace(uid.unwrap_or_default().to_owned());
        Ok(found)
    }

    async fn found(&self) -> Result<Option<Value>, Stop> {
        const DOING: &str = "reading the object";
        let stop = |error| Stop::of_primary(self.primary.shard(), DOING, error);
        let (name, remote) = (&self.primary.name, self.route.remote());
        let object = match &self.job.at_hand {
            Some(AtHand::Primary(object)) => Ok(object.clone()),
            _ => self.shard.get(remote, name, Content::Full).await,
        };
        match object {
            Ok(object) => {
                let found = self.large.reads(DOING, &object).await;
                let found = found.and_then(|()| parsed(&object).map_err(stop));
                of_its_end(found, &object, lifecycle::is_in_deletion).map(Some)
            }
            Err(error) if error.proves_absent(&name.name) => Ok(None),
            // Also where the workspace does not serve the type: it may serve it late, and one that has unbound the export is
            // left when its binding goes.
            Err(error) => Err(stop(error)),
        }
    }

    /// The copy as it was heard of, if nothing has to be asked.
    pub(super) async fn copy_at_hand(&self) -> Option<Value> {
        let Some(AtHand::Copy(copy)) = self.job.at_hand.as_ref().filter(|_| !self.job.turn.has_several) else {
            return None;
        };
        self.large.reads(COPY, copy).await.ok()?;
        // One from before our own last write is none.
        let is_it = |copy: &Value| self.is_copy(copy) && version_of(copy) >= self.job.turn.settled;
        parsed(copy).ok().filter(is_it)
    }

    /// The copy, by the labels that say of which object it is.
    pub(super) async fn find_copy(&self, at_hand: Option<Value>) -> Result<Option<Value>, Stop> {
        let is_ending = self.is_ending.get();
        let local = self.route.local();
        if self.job.turn.has_several {
            return self.list_copy().await;
        }
        if at_hand.is_some() {
            return Ok(at_hand);
        }
        if let Some(known) = &self.job.turn.copy {
            match self.service.get(local, &known.name, Content::Full).await {
                Ok(copy) => {
                    let found = self.large.reads(COPY, &copy).await;
                    let found = found.and_then(|()| parsed(&copy).map_err(unread));
                    let copy = of_its_end(found, &copy, |_| is_ending)?;
                    if self.is_copy(&copy) {
                        return Ok(Some(copy));
                    }
                }
                Err(error) if error.proves_absent(&known.name.name) => {}
                Err(error) => return Err(unread(error)),
            }
        }
        self.list_copy().await
    }

    async fn list_copy(&self) -> Result<Option<Value>, Stop> {
        let labels = self.key.labels();
        let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let labels = labels.join(",").into();
        let listed = list_all::<Value>(self.service, self.route.local().clone(), Some(labels)).await;
        let all = listed.map_err(unread)?;
        let first = all.first().map(name_of);
        let mut all = own_copies(all, &self.job.agent, !self.is_ending.get());
        self.others.replace(first.filter(|_| all.is_empty()));
        if all.len() > 1 {
            let names: Vec<String> = all.iter().map(|copy| format!("{:?}", name_of(copy))).collect();
            let words = format!("several objects are labelled as its copy: {}", names.join(", "));
            return Err(Stop::because("finding the copy", words, SEVERAL));
        }
        let copy = all.pop();
        // One that was not this agent's before may be what an agent of another name has left.
        let agent = copy
            .as_ref()
            .and_then(|copy| copy["metadata"]["labels"][AGENT_NAME].as_str());
        match agent.filter(|agent| *agent != self.job.agent.as_ref() && self.job.turn.last.is_some()) {
            Some(agent) => {
                let words = format!("the agent {agent} has taken it since");
                Err(Stop::because("finding the copy", words, TAKEN))
            }
            None => Ok(copy),
        }
    }

    /// True for the copy of this object that this agent has, also if somebody has changed the labels by which it is searched
    /// for: it says so in words too.
    fn is_copy(&self, copy: &Value) -> bool {
        let labels = &copy["metadata"]["labels"];
        let is_own = labels[AGENT_NAME] == *self.job.agent;
        let is_labelled = || self.key.labels().iter().all(|(key, value)| labels[key] == **value);
        let is_named = || ObjectKey::of_copy(copy).is_some_and(|of| of.is_of_same_object(&self.key));
        is_own && (is_labelled() || is_named())
    }
}

/// Those of the copies of one object that may be this agent's: its own, or else those that no agent has, or else, where that
/// is to be taken over, those of an agent of another name. Clusters of two kcps may have one name: another agent's copy may
/// be that of an object there.
fn own_copies(copies: Vec<Value>, agent: &str, may_take_over: bool) -> Vec<Value> {
    let is_own = |copy: &Value| {
        copy["metadata"]["labels"][AGENT_NAME]
            .as_str()
            .map(|name| name == agent)
    };
    for wanted in [Some(true), None, Some(false)] {
        if wanted == Some(false) && !may_take_over {
            break;
        }
        if copies.iter().any(|copy| is_own(copy) == wanted) {
            return copies.into_iter().filter(|copy| is_own(copy) == wanted).collect();
        }
    }
    Vec::new()
}

/// What was found of an object; what its end needs of it if no more can be read, as of one that is too large or nested too
/// deep, and that is enough: the end of an object must not depend on its content.
fn of_its_end<E>(found: Result<Value, E>, object: &[u8], is_enough: impl Fn(&Value) -> bool) -> Result<Value, E> {
    found.or_else(|stop| {
        let bare = parsed::<Bare>(object)
            .ok()
            .and_then(|bare| serde_json::to_value(bare).ok());
        bare.filter(is_enough).ok_or(stop)
    })
}

/// What the end of an object needs of it.
#[derive(Serialize, Deserialize)]
struct Bare {
    metadata: BareMetadata,
}

/// See [`Bare`].
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BareMetadata {
    name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    namespace: String,
    uid: String,
    resource_version: String,
    #[serde(default)]
    deletion_timestamp: Option<String>,
    #[serde(default)]
    finalizers: Vec<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

pub(super) fn unread(error: Error) -> Stop {
    Stop::of_content(Side::Service, COPY, "", error)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_what_cannot_be_read_its_end_is_known() {
        let nested = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        let object = |depth: usize, more: &str| {
            let nested = nested(depth);
            format!(
                "{{\"metadata\":{{\"name\":\"web\",\"uid\":\"u1\",\"resourceVersion\":\"7\",\"finalizers\":[\"x\"]{more},\
                 \"managedFields\":[{{\"fieldsV1\":{nested}}}]}},\"spec\":{nested}}}"
            )
        };
        let ended = ",\"deletionTimestamp\":\"2024-01-01T00:00:00Z\"";
        let read = |text: &str| of_its_end(parsed(text.as_bytes()), text.as_bytes(), lifecycle::is_in_deletion);
        assert_eq!(read(&object(20, "")).unwrap()["spec"].to_string(), nested(20));
        for depth in [200, 5_000] {
            assert!(read(&object(depth, "")).is_err());
            let bare = read(&object(depth, ended)).unwrap();
            assert_eq!(bare["metadata"]["finalizers"], json!(["x"]));
            assert_eq!(bare["metadata"]["resourceVersion"], "7");
            assert!(bare["spec"].is_null());
        }
    }

    // Of a single one the agent was not checked, and it was deleted too.
    #[test]
    fn the_copy_of_another_agent_is_taken_over_and_never_ended() {
        let copy = |name: &str, agent: Option<&str>| json!({"metadata": {"name": name, "labels": agent.map(|agent| json!({AGENT_NAME: agent}))}});
        let (own, other, free) = (copy("own", Some("a")), copy("other", Some("b")), copy("free", None));
        for (all, ends, goes_on) in [
            (vec![&own], &["own"][..], &["own"][..]),
            (vec![&other], &[], &["other"]),
            (vec![&free], &["free"], &["free"]),
            (vec![&other, &own, &free], &["own"], &["own"]),
            (vec![&other, &free], &["free"], &["free"]),
            (vec![&own, &own], &["own", "own"], &["own", "own"]),
            (vec![], &[], &[]),
        ] {
            let all: Vec<Value> = all.into_iter().cloned().collect();
            for (may_take_over, expected) in [(false, ends), (true, goes_on)] {
                let found = own_copies(all.clone(), "a", may_take_over);
                let names: Vec<&str> = found
                    .iter()
                    .filter_map(|copy| copy["metadata"]["name"].as_str())
                    .collect();
                assert_eq!(names, expected, "{may_take_over} {all:?}");
            }
        }
    }
}
