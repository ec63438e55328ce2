//! What defines a type at the hub: the proof that a delete needs beside the absence of an origin (spec scenario 30).
//!
//! Who deletes a CRD, or in kcp an `APIBinding` or a workspace, has the server delete all objects of the type first, one by
//! one and truthfully, and the type only then. So what defines a type is known by its UID, and a copy is deleted only after
//! the same definition has been found in place, asked for after the hub has said that the origin does not exist. Those who
//! ask at once share an answer.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde::Deserialize;

use super::identity::{WORKSPACE, logical_clusters};
use super::look::look_at;
use super::shared::Shared;
use crate::cluster::discovery;
use crate::cluster::{Cluster, Error, ObjectName, ResourceType, group_version_path, is_word};

/// kcp's API group of what binds APIs, which it serves in every workspace.
const BINDINGS: &str = "apis.kcp.io";

/// What defines a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// UID of the CRD or `APIBinding`, or of the workspace where that is being deleted.
    pub uid: String,
    /// It is being deleted.
    pub going: bool,
}

/// Why a type proves nothing by lacking an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Withdrawal {
    /// What defines it is being deleted, its UID, or is gone.
    Going(Option<String>),
    /// It was deleted and defined anew: the new UID.
    Anew(String),
}

/// What is known to define a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Known {
    /// Nothing that could be deleted: it is built in, or served by another server.
    Nothing,
    /// The CRD or `APIBinding` with this UID.
    Uid(String),
}

type Answer = Result<Option<Withdrawal>, Error>;

/// What defines the types of the hub.
#[derive(Debug, Default)]
pub struct Definitions {
    /// By `resource.group`.
    known: RefCell<BTreeMap<String, Known>>,
    /// UIDs of what people let go.
    confirmed: RefCell<BTreeSet<String>>,
    hub: RefCell<Hub>,
    questions: RefCell<BTreeMap<String, Rc<Shared<Answer>>>>,
}

/// What the hub has said that it is.
#[derive(Debug, Default)]
enum Hub {
    #[default]
    Unknown,
    Kubernetes,
    Kcp(Workspace),
}

/// The versions at which kcp serves what tells of a workspace.
#[derive(Clone, Debug)]
struct Workspace {
    bindings: String,
    itself: String,
}

impl Definitions {
    /// What is known to define a type, `resource.group`.
    pub fn known(&self, resource: &str) -> Option<Known> {
        self.known.borrow().get(resource).cloned()
    }

    /// All that is known, by `resource.group`.
    pub fn all(&self) -> BTreeMap<String, Known> {
        self.known.borrow().clone()
    }

    /// From now on this is what defines the type.
    pub fn learn(&self, resource: &str, known: Known) {
        self.known.borrow_mut().insert(resource.to_owned(), known);
        self.expire(resource);
    }

    /// The type is not synced any more.
    pub fn unlearn(&self, resource: &str) {
        self.known.borrow_mut().remove(resource);
        self.questions.borrow_mut().remove(resource);
    }

    /// The same for one that nothing was known to define.
    pub fn unlearn_if_undefined(&self, resource: &str) {
        if self.known(resource) == Some(Known::Nothing) {
            self.unlearn(resource);
        }
    }

    /// The copies may go all the same.
    pub fn accept(&self, resource: &str, withdrawal: Withdrawal) {
        match withdrawal {
            Withdrawal::Going(Some(uid)) => {
                self.confirmed.borrow_mut().insert(uid);
            }
            Withdrawal::Going(None) => {
                self.known.borrow_mut().remove(resource);
            }
            Withdrawal::Anew(uid) => self.learn(resource, Known::Uid(uid)),
        }
        self.expire(resource);
    }

    /// Another cluster is the hub from now on, or another state of it.
    pub fn forget(&self) {
        self.known.borrow_mut().clear();
        self.questions.borrow_mut().clear();
        *self.hub.borrow_mut() = Hub::Unknown;
    }

    fn expire(&self, resource: &str) {
        if let Some(question) = self.questions.borrow().get(resource) {
            question.expire();
        }
    }

    /// Asks the hub why it lacks objects of a type, or the type itself; `None` if that is no other reason than that they
    /// were deleted. The question begins after the call. An error proves nothing.
    pub async fn verify(&self, hub: &Cluster, resource: &ResourceType, type_gone: bool) -> Answer {
        if type_gone {
            // What nothing selects goes with its type, but not with everything else.
            let ends = self.ending_workspace(hub).await?;
            return Ok(ends.and_then(|uid| self.unless_confirmed(uid)));
        }
        let name = resource.qualified();
        let question = Rc::clone(self.questions.borrow_mut().entry(name).or_default());
        question.ask(async || self.ask(hub, resource).await).await
    }

    fn unless_confirmed(&self, uid: String) -> Option<Withdrawal> {
        let is_confirmed = self.confirmed.borrow().contains(&uid);
        (!is_confirmed).then_some(Withdrawal::Going(Some(uid)))
    }

    async fn ask(&self, hub: &Cluster, resource: &ResourceType) -> Answer {
        let known = self.known(&resource.qualified());
        let found = match self.read(hub, resource).await {
            // What may not be read could not be learnt either.
            Err(error) if known.is_none() && error.is_forbidden() => return Ok(None),
            found => found?,
        };
        Ok(match (known, found) {
            (known, Some(Definition { uid, going: true })) => {
                // Soon it is gone, and what comes after it is another one.
                if known.is_none() && !resource.group.is_empty() {
                    self.known
                        .borrow_mut()
                        .insert(resource.qualified(), Known::Uid(uid.clone()));
                }
                self.unless_confirmed(uid)
            }
            (Some(Known::Uid(expected)), Some(found)) if found.uid != expected => Some(Withdrawal::Anew(found.uid)),
            (Some(Known::Uid(_)), None) => Some(Withdrawal::Going(None)),
            _ => None,
        })
    }

    /// What defines a type; `None` if nothing that could be deleted does.
    pub async fn read(&self, hub: &Cluster, resource: &ResourceType) -> Result<Option<Definition>, Error> {
        if let Some(uid) = self.ending_workspace(hub).await? {
            return Ok(Some(Definition { uid, going: true }));
        }
        if resource.group.is_empty() || self.known(&resource.qualified()) == Some(Known::Nothing) {
            return Ok(None);
        }
        // The group of a CRD has a dot (its validation says so), those of kcp's bindings need not.
        if resource.group.contains('.')
            && let Some(definition) = look_for(hub, &ResourceType::definitions(), &resource.qualified()).await?
        {
            return Ok(Some(definition));
        }
        match self.workspace(hub).await? {
            Some(workspace) => binding(hub, &workspace, resource).await,
            None => Ok(None),
        }
    }

    /// The UID of the workspace, if that is being deleted.
    async fn ending_workspace(&self, hub: &Cluster) -> Result<Option<String>, Error> {
        let Some(workspace) = self.workspace(hub).await? else {
            return Ok(None);
        };
        match look_for(hub, &logical_clusters(&workspace.itself), "cluster").await {
            Ok(itself) => Ok(itself.filter(|itself| itself.going).map(|itself| itself.uid)),
            Err(error) if error.is_forbidden() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// How kcp tells of the workspace; `None` if the hub is no kcp, or does not say so.
    async fn workspace(&self, hub: &Cluster) -> Result<Option<Workspace>, Error> {
        match &*self.hub.borrow() {
            Hub::Unknown => {}
            Hub::Kubernetes => return Ok(None),
            Hub::Kcp(workspace) => return Ok(Some(workspace.clone())),
        }
        let mut groups = match discovery::groups(hub).await {
            Err(error) if error.is_forbidden() => return Ok(None),
            groups => groups?,
        };
        let mut version = |group: &str| groups.remove(group)?.into_iter().next();
        let workspace = version(BINDINGS)
            .zip(version(WORKSPACE))
            .map(|(bindings, itself)| Workspace { bindings, itself });
        *self.hub.borrow_mut() = workspace.clone().map_or(Hub::Kubernetes, Hub::Kcp);
        Ok(workspace)
    }
}

async fn look_for(hub: &Cluster, resource: &ResourceType, name: &str) -> Result<Option<Definition>, Error> {
    let found = look_at(hub, resource, &ObjectName::new("", name)).await?;
    Ok(found.map(|meta| Definition {
        going: meta.deletion_timestamp.is_some(),
        uid: meta.uid,
    }))
}

/// The `APIBinding` that a workspace has the type from. There are few in a workspace.
async fn binding(hub: &Cluster, workspace: &Workspace, resource: &ResourceType) -> Result<Option<Definition>, Error> {
    #[derive(Deserialize)]
    struct List {
        items: Vec<Binding>,
    }
    #[derive(Deserialize)]
    struct Binding {
        metadata: WireMeta,
        #[serde(default)]
        status: Status,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct WireMeta {
        uid: String,
        deletion_timestamp: Option<String>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Status {
        bound_resources: Vec<Bound>,
    }
    #[derive(Deserialize)]
    struct Bound {
        #[serde(default)]
        group: String,
        resource: String,
    }
    let path = format!("{}/apibindings", group_version_path(BINDINGS, &workspace.bindings));
    let body = hub.get_path(&path).await?;
    let list: List =
        serde_json::from_slice(&body).map_err(|error| Error::BadAnswer(format!("APIBindings: {error}")))?;
    let binds = |bound: &Bound| bound.group == resource.group && bound.resource == resource.resource;
    let mut bindings = list.items.into_iter();
    let found = bindings.find(|binding| binding.status.bound_resources.iter().any(binds));
    if let Some(found) = found.as_ref().filter(|found| !is_word(&found.metadata.uid)) {
        let uid: String = found.metadata.uid.chars().take(100).collect();
        return Err(Error::BadAnswer(format!("an APIBinding with the UID {uid:?}")));
    }
    Ok(found.map(|Binding { metadata, .. }| Definition {
        going: metadata.deletion_timestamp.is_some(),
        uid: metadata.uid,
    }))
}

#[cfg(test)]
#[path = "definition_tests.rs"]
mod tests;
