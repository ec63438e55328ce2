//! The work of the engine as a dry run: the same requests, none of which changes anything, and what they would have done.
//!
//! Promises: the record, the heartbeat and the Lease are not written, not even as a dry run; what would be written of objects is
//! asked of the real server, and whoever asked for the dry run sees what would become of them. What a server cannot be asked,
//! since it depends on what is not there yet, is shown as it would be sent.

mod elsewhere;
mod rehearsal;

use std::cell::RefCell;
use std::rc::Rc;

use kube_lite::Cluster;
use serde_json::{Value, json};

use self::elsewhere::Elsewhere;
use self::rehearsal::{Played, Rehearsal, Stage};
use super::hub_namespaces;
use crate::model::effect::{NamespaceDone, NamespaceStep, Remaining};
use crate::side::Side;
use crate::sync::job::{Change, Ending, Failure, Job, Outcome, Why, left};
use crate::sync::ownership::SyncTarget;
use crate::sync::reconcile;
use crate::sync::status_return::{self, Returned, StatusJob};

/// What is shown of a dry run.
#[derive(Debug)]
pub(crate) enum Shown {
    /// This would be done.
    Would(Would),
    /// All was tried, and this is left.
    Tried(Remaining),
}

/// What would be done to one object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Would {
    pub(crate) side: Side,
    /// `Kind/namespace/name`.
    pub(crate) object: String,
    pub(crate) what: What,
    /// As it is, without what servers keep about it.
    pub(crate) before: Option<Value>,
    /// As it would be.
    pub(crate) now: Option<Value>,
    /// It is shown as it would be sent: the server cannot be asked before what it needs is there.
    pub(crate) is_as_sent: bool,
}

/// In which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Object(Change),
    /// Its status would be returned.
    Status,
}

impl Would {
    /// What would be done, in words.
    pub(crate) fn words(&self) -> &'static str {
        match self.what {
            What::Status => "its status would be returned",
            What::Object(Change::Created) => "would be created",
            What::Object(Change::Updated | Change::Unchanged) => "would be updated",
            What::Object(Change::Adopted) => "would be adopted",
            What::Object(Change::MarkedCreateOnly) => "would be marked as create only",
            What::Object(Change::Deleted) => "would be deleted",
            What::Object(Change::Released) => "would be released",
            What::Object(Change::Replaced) => "would be deleted and created again",
        }
    }
}

/// A dry run, and who sees it. Cheap to clone.
#[derive(Clone)]
pub struct DryRun {
    /// What makes the requests of both sides dry runs.
    _of_sides: kube_lite::dry_run::DryRun,
    tell: Rc<dyn Fn(Shown)>,
    tries: Rc<dyn Fn(&Job) -> bool>,
    elsewhere: Rc<RefCell<Elsewhere>>,
}

impl DryRun {
    pub(crate) fn new(of_sides: kube_lite::dry_run::DryRun, tell: impl Fn(Shown) + 'static) -> Self {
        Self {
            _of_sides: of_sides,
            tell: Rc::new(tell),
            tries: Rc::new(|_| true),
            elsewhere: Rc::default(),
        }
    }

    /// The same for some objects: nothing is asked about the others, as if nothing selected them.
    #[cfg(feature = "admin")]
    pub(crate) fn of_those(self, tries: impl Fn(&Job) -> bool + 'static) -> Self {
        Self {
            tries: Rc::new(tries),
            ..self
        }
    }

    pub(super) fn tried(&self, remaining: Remaining) {
        (self.tell)(Shown::Tried(remaining));
    }

    /// One object.
    pub(super) async fn object(&self, hub: &Rc<Cluster>, edge: &Rc<Cluster>, job: Job) -> Result<Outcome, Failure> {
        if !(self.tries)(&job) {
            return Ok(left(Why::NotSelected));
        }
        let stage = Stage::default();
        let [hub, edge] = [hub, edge].map(|side| self.rehearse(side, &stage));
        let outcome = reconcile::reconcile(&hub, &edge, job).await?;
        let change = match outcome.ending {
            Ending::Changed(change) => change,
            _ => Change::Unchanged,
        };
        let is_any = self.tell_all(&stage, What::Object(change));
        if !is_any || !matches!(outcome.ending, Ending::Changed(_)) {
            return Ok(outcome);
        }
        Ok(Outcome {
            ending: Ending::Would(change),
            copy: None,
            status: None,
            ends: false,
            waits_for: Vec::new(),
            kept_versions: Vec::new(),
            ..outcome
        })
    }

    /// One status.
    pub(super) async fn status(
        &self,
        hub: &Rc<Cluster>,
        edge: &Rc<Cluster>,
        job: StatusJob,
    ) -> Result<Returned, Failure> {
        let stage = Stage::default();
        let hub = self.rehearse(hub, &stage);
        let returned = status_return::reconcile(&hub, edge, job).await?;
        self.tell_all(&stage, What::Status);
        Ok(match returned {
            Returned::Written { status, .. } => Returned::Would { status },
            other => other,
        })
    }

    /// One namespace at the hub.
    pub(super) async fn namespace(
        &self,
        hub: &Rc<Cluster>,
        (namespace, step): (String, NamespaceStep),
        we: &SyncTarget,
    ) -> NamespaceDone {
        let stage = Stage::default();
        let done = hub_namespaces::take(&self.rehearse(hub, &stage), namespace, step, we).await;
        self.tell_all(&stage, What::Object(Change::Updated));
        done
    }

    fn rehearse(&self, side: &Rc<Cluster>, stage: &Stage) -> Rc<Cluster> {
        Rc::new(side.through(Rehearsal::new(side, stage, &self.elsewhere)))
    }

    /// Tells what would become of the objects of one piece of work. True if that is anything.
    fn tell_all(&self, stage: &Stage, what: What) -> bool {
        let mut is_any = false;
        for ((side, path), played) in stage.take() {
            if let Some(would) = would(side, played, what) {
                let is_there = would.now.is_some();
                self.elsewhere.borrow_mut().note(side, &path, is_there);
                is_any = true;
                (self.tell)(Shown::Would(would));
            }
        }
        is_any
    }
}

/// What would become of an object; `None` if it would stay as it is.
fn would(side: Side, played: Played, what: What) -> Option<Would> {
    let contents = |object: Value| contents(object, what == What::Status);
    let (before, now) = (played.before.map(contents), played.now.map(contents));
    let known = now.as_ref().or(before.as_ref())?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &known["metadata"];
    let [kind, namespace, name] = [&known["kind"], &metadata["namespace"], &metadata["name"]].map(text);
    let what = match (&before, &now, what) {
        (Some(before), Some(now), _) if before == now => return None,
        (Some(_), Some(_), What::Object(_)) if played.is_replaced => What::Object(Change::Replaced),
        (None, Some(_), What::Object(_)) => What::Object(Change::Created),
        (Some(_), None, What::Object(_)) => What::Object(Change::Deleted),
        (_, _, what) => what,
    };
    Some(Would {
        side,
        object: format!("{kind}/{namespace}/{name}"),
        what,
        before,
        now,
        is_as_sent: played.is_as_sent,
    })
}

/// An object without what its server keeps about it, and without its status, or with nothing but that.
pub(crate) fn contents(mut object: Value, of_status: bool) -> Value {
    if of_status {
        let metadata = &object["metadata"];
        let name = json!({"namespace": metadata["namespace"], "name": metadata["name"]});
        return json!({"apiVersion": object["apiVersion"], "kind": object["kind"], "metadata": name,
            "status": object["status"]});
    }
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for kept in [
            "creationTimestamp",
            "generation",
            "managedFields",
            "resourceVersion",
            "selfLink",
            "uid",
        ] {
            metadata.remove(kept);
        }
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(data: &str, version: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": "a", "resourceVersion": version},
            "data": {"a": data}, "status": {"s": version}})
    }

    #[test]
    fn what_is_shown_follows_from_what_was_and_would_be_there() {
        let (old, new) = (object("1", "5"), object("2", "6"));
        let of_object = |change| Some(What::Object(change));
        for (before, now, is_replaced, done, expected) in [
            (None, Some(&new), false, Change::Created, of_object(Change::Created)),
            (Some(&old), None, false, Change::Deleted, of_object(Change::Deleted)),
            (
                Some(&old),
                Some(&new),
                false,
                Change::Unchanged,
                of_object(Change::Unchanged),
            ),
            (
                Some(&old),
                Some(&new),
                false,
                Change::Adopted,
                of_object(Change::Adopted),
            ),
            (
                Some(&old),
                Some(&new),
                true,
                Change::Replaced,
                of_object(Change::Replaced),
            ),
            (Some(&old), Some(&object("1", "7")), false, Change::Updated, None),
            (None, None, false, Change::Unchanged, None),
        ] {
            let played = Played {
                before: before.cloned(),
                now: now.cloned(),
                is_replaced,
                is_as_sent: false,
            };
            let shown = would(Side::Edge, played, What::Object(done));
            assert_eq!(shown.as_ref().map(|shown| shown.what), expected, "{before:?} {now:?}");
            assert!(shown.is_none_or(|shown| shown.object == "ConfigMap/shop/a"));
        }
        let played = Played {
            before: Some(old),
            now: Some(new),
            ..Played::default()
        };
        let shown = would(Side::Hub, played, What::Status).unwrap();
        assert_eq!(shown.now.unwrap()["status"], json!({"s": "6"}));
    }
}
