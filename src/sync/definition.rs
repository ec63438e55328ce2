//! What defines a type at the hub: the proof that a delete needs beside the absence of an origin.
//! When somebody deletes a CRD, or in kcp an `APIBinding` or a workspace, the server first deletes all objects of the
//! type, one by one, and reports each. Only then is the type gone. So what defines a type is known by its UID, and a
//! copy is deleted only after the same definition was found in place, by a request that was sent after the hub had said
//! that the origin does not exist. Workers that ask at the same time share an answer.

use std::collections::{BTreeMap, BTreeSet};

use kube_lite::discovery;
use kube_lite::read::read_metadata_shared;
use kube_lite::{Cluster, Error, ObjectName, ResourceType, group_version_path, is_word, may_be_a_crd};
use serde::Deserialize;

use super::identity::{WORKSPACE, logical_clusters};
use super::meta::Meta;

/// kcp's API group for bindings of APIs, which it serves in every workspace.
const BINDINGS: &str = "apis.kcp.io";

/// How many definitions are kept of types that are not synced any more. Each is a line of the record.
const MOST_FORMER: usize = 50;

/// What defines a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeDefinition {
    /// UID of the CRD or `APIBinding`, or of the workspace, if that is being deleted.
    pub uid: String,
    /// It is being deleted.
    pub being_deleted: bool,
}

/// Why it proves nothing that the hub has no such object of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Withdrawal {
    /// What defines it is being deleted (its UID), or is gone (`None`).
    Going(Option<String>),
    /// It was deleted and defined again: the new UID.
    Redefined(String),
}

/// What is known to define a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefinedBy {
    /// Nothing that could be deleted: it is built in, or served by another server.
    Nothing,
    /// The CRD or `APIBinding` with this UID.
    Uid(String),
}

type Answer = Result<Option<Withdrawal>, Error>;

/// What defines the types of the hub. A worker has what was known when it began; what has become known since is
/// compared with what it found ([`TypeDefinitions::confirms`]).
#[derive(Clone, Debug, Default)]
pub struct TypeDefinitions {
    /// By `resource.group`.
    known: BTreeMap<String, DefinedBy>,
    /// Those of `known` whose type was not synced for a while, since no copy of it was left as far as the edge said:
    /// any copies that are found nevertheless are from these definitions.
    former: BTreeSet<String>,
    /// UIDs of definitions for which people have confirmed the deletes.
    confirmed: BTreeSet<String>,
    /// What the hub is; absent as long as it has not said so.
    hub: Option<Hub>,
}

/// What the hub has said that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hub {
    /// A Kubernetes API server.
    Kubernetes,
    /// A workspace of kcp.
    Kcp(Workspace),
}

/// The versions at which kcp serves what describes a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    bindings: String,
    itself: String,
}

impl TypeDefinitions {
    /// What is known to define a type, `resource.group`.
    pub fn known(&self, resource: &str) -> Option<&DefinedBy> {
        self.known.get(resource)
    }

    /// All that is known, by `resource.group`.
    pub fn all(&self) -> &BTreeMap<String, DefinedBy> {
        &self.known
    }

    /// True if the hub has said what it is.
    pub fn knows_hub(&self) -> bool {
        self.hub.is_some()
    }

    /// From now on the hub is known to be this.
    pub fn set_hub(&mut self, hub: Hub) {
        self.hub = Some(hub);
    }

    /// From now on this is what defines the type.
    pub fn set(&mut self, resource: &str, known: DefinedBy) {
        self.former.remove(resource);
        self.known.insert(resource.to_owned(), known);
    }

    /// What is known to define the type says nothing about copies of it.
    pub fn remove(&mut self, resource: &str) {
        self.former.remove(resource);
        self.known.remove(resource);
    }

    /// Only of these types, `resource.group`, there may be copies. What has defined another one is a former definition
    /// from now on; of these a bounded number is kept.
    pub fn retire_unless(&mut self, has_copies: &BTreeSet<String>) {
        let unused = |resource: &String| !has_copies.contains(resource);
        self.known
            .retain(|resource, known| !unused(resource) || *known != DefinedBy::Nothing);
        self.former
            .extend(self.known.keys().filter(|resource| unused(resource)).cloned());
        while self.former.len() > MOST_FORMER
            && let Some(first) = self.former.pop_first()
        {
            self.known.remove(&first);
        }
    }

    /// True if what is known to define the type is from before it left the record.
    pub fn is_former(&self, resource: &str) -> bool {
        self.former.contains(resource)
    }

    /// Copies of the type have been found: they are from its former definition.
    pub fn is_in_use(&mut self, resource: &str) {
        self.former.remove(resource);
    }

    /// A type is being deleted. If its definition was not known, the one that is being deleted is noted: soon it is
    /// gone, and what comes after it is another one. True if that is news.
    pub fn note_withdrawal(&mut self, resource: &str, withdrawal: &Withdrawal) -> bool {
        // A type of the core group is only deleted with a whole workspace.
        let is_of_core = !resource.contains('.');
        let Withdrawal::Going(Some(uid)) = withdrawal else {
            return false;
        };
        let is_news = !is_of_core && !self.known.contains_key(resource);
        if is_news {
            self.known.insert(resource.to_owned(), DefinedBy::Uid(uid.clone()));
        }
        is_news
    }

    /// The copies may still be deleted.
    pub fn accept(&mut self, resource: &str, withdrawal: Withdrawal) {
        match withdrawal {
            Withdrawal::Going(Some(uid)) => {
                self.confirmed.insert(uid);
            }
            Withdrawal::Going(None) => self.remove(resource),
            Withdrawal::Redefined(uid) => self.set(resource, DefinedBy::Uid(uid)),
        }
    }

    /// True if this withdrawal of a type does not hold deletes any more.
    pub fn confirms(&self, resource: &str, withdrawal: &Withdrawal) -> bool {
        match withdrawal {
            Withdrawal::Going(Some(uid)) => self.confirmed.contains(uid),
            Withdrawal::Going(None) => !matches!(self.known(resource), Some(DefinedBy::Uid(_))),
            Withdrawal::Redefined(uid) => self.known(resource) == Some(&DefinedBy::Uid(uid.clone())),
        }
    }

    /// Another cluster is the hub from now on, or another state of it. What people have confirmed stays confirmed.
    pub fn clear(&mut self) {
        self.known.clear();
        self.former.clear();
        self.hub = None;
    }

    /// Asks the hub why it lacks objects of a type, or the type itself; `None` if the reason is just that they were
    /// deleted. The requests are sent after the call. An error proves nothing.
    pub async fn verify(&self, hub: &Cluster, resource: &ResourceType, gone_at_origin: bool) -> Answer {
        if gone_at_origin {
            // An object that nothing selects is deleted with its type, but not with the whole workspace.
            let workspace = self.workspace(hub).await?;
            let ends = ending_workspace(hub, workspace.as_ref()).await?;
            return Ok(ends.and_then(|uid| self.unless_confirmed(uid)));
        }
        self.ask(hub, resource).await
    }

    fn unless_confirmed(&self, uid: String) -> Option<Withdrawal> {
        let is_confirmed = self.confirmed.contains(&uid);
        (!is_confirmed).then_some(Withdrawal::Going(Some(uid)))
    }

    async fn ask(&self, hub: &Cluster, resource: &ResourceType) -> Answer {
        let known = self.known(&resource.qualified());
        let found = match self.read(hub, resource).await {
            // What may not be read could not be read before either.
            Err(error) if known.is_none() && error.is_forbidden() => return Ok(None),
            found => found?,
        };
        Ok(match (known, found) {
            (
                _,
                Some(TypeDefinition {
                    uid,
                    being_deleted: true,
                }),
            ) => self.unless_confirmed(uid),
            (Some(DefinedBy::Uid(expected)), Some(found)) if found.uid != *expected => {
                Some(Withdrawal::Redefined(found.uid))
            }
            (Some(DefinedBy::Uid(_)), None) => Some(Withdrawal::Going(None)),
            _ => None,
        })
    }

    /// What defines a type that is synced, to be remembered. That nothing defines it counts only if the hub still
    /// serves the type after that answer: the CRD of a type that was deleted a moment ago is missing too.
    pub async fn learn(&self, hub: &Cluster, resource: &ResourceType) -> Result<Option<TypeDefinition>, Error> {
        let found = self.read(hub, resource).await?;
        if found.is_none() && may_be_a_crd(&resource.group) {
            match hub.find(resource, &ObjectName::new("", &resource.resource)).await {
                Err(error) if !error.is_forbidden() => return Err(error),
                _ => {}
            }
        }
        Ok(found)
    }

    /// What defines a type; `None` if nothing that could be deleted does.
    pub async fn read(&self, hub: &Cluster, resource: &ResourceType) -> Result<Option<TypeDefinition>, Error> {
        let workspace = self.workspace(hub).await?;
        if let Some(uid) = ending_workspace(hub, workspace.as_ref()).await? {
            return Ok(Some(TypeDefinition {
                uid,
                being_deleted: true,
            }));
        }
        if resource.group.is_empty() || self.known(&resource.qualified()) == Some(&DefinedBy::Nothing) {
            return Ok(None);
        }
        // The groups of kcp's bindings need not have a dot.
        if may_be_a_crd(&resource.group)
            && let Some(definition) = read_definition(hub, &ResourceType::definitions(), &resource.qualified()).await?
        {
            return Ok(Some(definition));
        }
        match workspace {
            Some(workspace) => binding(hub, &workspace, resource).await,
            None => Ok(None),
        }
    }

    /// The workspace that the hub is, if it is one. What is not known yet is asked for.
    async fn workspace(&self, hub: &Cluster) -> Result<Option<Workspace>, Error> {
        let asked = match &self.hub {
            None => ask_hub(hub).await?,
            known => known.clone(),
        };
        Ok(match asked {
            Some(Hub::Kcp(workspace)) => Some(workspace),
            Some(Hub::Kubernetes) | None => None,
        })
    }
}

/// Asks the hub what it is; `None` if that may not be read.
pub async fn ask_hub(hub: &Cluster) -> Result<Option<Hub>, Error> {
    let mut groups = match discovery::groups(hub).await {
        Err(error) if error.is_forbidden() => return Ok(None),
        groups => groups?,
    };
    let mut version = |group: &str| groups.remove(group)?.into_iter().next();
    let workspace = version(BINDINGS)
        .zip(version(WORKSPACE))
        .map(|(bindings, itself)| Workspace { bindings, itself });
    Ok(Some(workspace.map_or(Hub::Kubernetes, Hub::Kcp)))
}

/// The UID of the workspace, if it is being deleted as a whole.
async fn ending_workspace(hub: &Cluster, workspace: Option<&Workspace>) -> Result<Option<String>, Error> {
    let Some(workspace) = workspace else {
        return Ok(None);
    };
    match read_definition(hub, &logical_clusters(&workspace.itself), "cluster").await {
        Ok(itself) => Ok(itself.filter(|itself| itself.being_deleted).map(|itself| itself.uid)),
        Err(error) if error.is_forbidden() => Ok(None),
        Err(error) => Err(error),
    }
}

async fn read_definition(hub: &Cluster, resource: &ResourceType, name: &str) -> Result<Option<TypeDefinition>, Error> {
    let found = read_metadata_shared(hub, resource, &ObjectName::new("", name)).await?;
    Ok(found.map(|meta: Meta| TypeDefinition {
        being_deleted: meta.deletion_timestamp.is_some(),
        uid: meta.uid,
    }))
}

/// The `APIBinding` that a workspace has the type from. There are few in a workspace.
async fn binding(
    hub: &Cluster,
    workspace: &Workspace,
    resource: &ResourceType,
) -> Result<Option<TypeDefinition>, Error> {
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
    let body = hub.get_path_shared(&path).await?;
    let list: List =
        serde_json::from_slice(&body).map_err(|error| Error::BadAnswer(format!("APIBindings: {error}")))?;
    let binds = |bound: &Bound| bound.group == resource.group && bound.resource == resource.resource;
    let mut bindings = list.items.into_iter();
    let found = bindings.find(|binding| binding.status.bound_resources.iter().any(binds));
    if let Some(found) = found.as_ref().filter(|found| !is_word(&found.metadata.uid)) {
        let uid: String = found.metadata.uid.chars().take(100).collect();
        return Err(Error::BadAnswer(format!("an APIBinding with the UID {uid:?}")));
    }
    Ok(found.map(|Binding { metadata, .. }| TypeDefinition {
        being_deleted: metadata.deletion_timestamp.is_some(),
        uid: metadata.uid,
    }))
}

#[cfg(test)]
#[path = "definition_tests.rs"]
mod tests;
