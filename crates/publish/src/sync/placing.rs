//! The first copy of an object.

use kube_lite::{Content, Error, ObjectName};
use serde_json::Value;

use super::records::PLACED;
use super::{Pass, Settled, covered, hash_of, unread};
use crate::copy;
use crate::kcp::parsed;
use crate::kinds::Scope;
use crate::lifecycle::{self, Adoption};
use crate::naming::{CopyName, Workspace};
use crate::sides::Side;
use crate::trouble::Stop;

impl Pass<'_> {
    /// Creates the copy.
    pub(super) async fn place(&self, object: &Value) -> Result<Settled, Stop> {
        let (at, wanted, planned) = self.plan(object)?;
        let created = self.create(&at, &planned).await?;
        let Some(created) = created else {
            return self.adopt(object, &wanted, &at).await;
        };
        let kept = copy::state(&wanted, self.subresources());
        self.keep(&self.own_state().own, &kept);
        self.record(object, PLACED);
        self.relate(object, &planned).await?;
        Ok(self.done(hash_of(&kept), &created))
    }

    /// Where the copy would be, what is wanted there, and the whole of it.
    pub(super) fn plan(&self, object: &Value) -> Result<(ObjectName, Value, Value), Stop> {
        let local = self.route.local();
        let name = self.copy_name(object)?;
        let at = ObjectName::new(&name.namespace, &name.name);
        let (api_version, kind) = (local.api_version(), local.kind.clone());
        let planned = copy::create(object, &self.terms(), &self.key, &api_version, &kind, &name);
        // Mutations see the copy that would be, as long as there is none.
        let wanted = self.mutated(object, &planned)?;
        drop(planned);
        let planned = copy::create(&wanted, &self.terms(), &self.key, &api_version, &kind, &name);
        Ok((at, wanted, planned))
    }

    fn copy_name(&self, object: &Value) -> Result<CopyName, Stop> {
        let doing = "naming the copy";
        let advice =
            "correct spec.naming of the PublishedResource, or the object; it is tried at once when either changes";
        let workspace = Workspace {
            cluster: self.key.cluster.clone(),
            path: self.key.workspace_path.clone().unwrap_or_default(),
        };
        let scope = if self.route.local().namespaced {
            Scope::Namespaced
        } else {
            Scope::Cluster
        };
        let name = self.route.namer.name(object, &workspace, scope, self.now);
        name.map_err(|error| Stop::because(doing, covered(self.route.local(), &error.to_string(), object), advice))
    }

    /// Creates the copy. `None` if something else has its name.
    async fn create(&self, at: &ObjectName, copy: &Value) -> Result<Option<Value>, Stop> {
        let stop = |error| Stop::of_content(Side::Service, "creating the copy", format!("{at:?}"), error);
        let service = (Side::Service, &**self.service);
        match self.create_at(service, self.route.local(), at, copy).await {
            Ok(created) => parsed(&created).map(Some).map_err(stop),
            Err(error) if error.is_already_there() => Ok(None),
            Err(error) => Err(stop(error)),
        }
    }

    /// An object becomes the copy by its marks, and keeps its content. Gives it as it is then.
    async fn claim(&self, found: &Value, wanted: &Value, at: &ObjectName) -> Result<Value, Error> {
        let Some(mut marks) = copy::patch(wanted, wanted, found, &self.terms(), &self.key) else {
            return Ok(found.clone());
        };
        for precondition in ["uid", "resourceVersion"] {
            marks["metadata"][precondition] = found["metadata"][precondition].clone();
        }
        let body = marks.to_string().into();
        parsed(&self.service.merge_patch(self.route.local(), at, body).await?)
    }

    /// What has the name of the copy becomes the copy, with all content of the object, unless it is that of another one.
    async fn adopt(&self, object: &Value, wanted: &Value, at: &ObjectName) -> Result<Settled, Stop> {
        let local = self.route.local();
        let found = match self.service.get(local, at, Content::Full).await {
            Ok(found) => parsed::<Value>(&found).map_err(unread)?,
            Err(error) if error.proves_absent(&at.name) => return Err(Stop::again("creating the copy")),
            Err(error) => return Err(unread(error)),
        };
        match lifecycle::adoption(&found, &self.key, &self.job.agent) {
            Adoption::Take => {}
            // Its end is no news to anybody.
            Adoption::Wait => {
                let words = format!("{at:?} is being deleted");
                return Err(Stop::because("creating the copy", words, "it is tried again"));
            }
            Adoption::Refuse(why) => {
                let advice = "give the copies other names with spec.naming of the PublishedResource";
                return Err(Stop::because(
                    "creating the copy",
                    format!("{at:?} is there: {why}"),
                    advice,
                ));
            }
        }
        let stop = |error| Stop::of_content(Side::Service, "updating the copy", format!("{at:?}"), error);
        let found = self.claim(&found, wanted, at).await.map_err(stop)?;
        // What it names as it is may belong to the object, and is brought before its own content is written.
        match self.relate(object, &found).await {
            // Or to somebody else.
            Err(stop) if stop.is_of_rules() => {}
            other => other?,
        }
        let whole = copy::replace(wanted, &found, &self.terms(), &self.key);
        let written = self
            .service
            .replace(local, at, whole.to_string().into(), Content::Full)
            .await;
        let written = written.and_then(|copy| parsed::<Value>(&copy)).map_err(stop)?;
        let kept = copy::state(wanted, self.subresources());
        self.keep(&self.own_state().own, &kept);
        self.record(object, PLACED);
        self.return_status(object, &written).await?;
        self.relate(object, &written).await?;
        Ok(self.done(hash_of(&kept), &written))
    }
}
