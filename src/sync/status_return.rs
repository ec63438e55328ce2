//! Status return: the status of one object from edge to hub.
//!
//! The edge's `status` replaces the hub's as a whole, and nothing else of the hub object is touched.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use bytes::Bytes;
use kube_lite::fields::no_object;
use kube_lite::read::{not_older, read_metadata};
use kube_lite::{Cluster, Content, Error, NewStatus, OnlyWith};
use serde_json::value::RawValue;

use super::job::{Failure, Policy, failed};
use crate::api::OWNER;
use crate::plan::{Direction, StatusPath};
use crate::side::Side;
use crate::sync::meta::{Meta, Object};
use crate::sync::object::{Address, Status};
use crate::sync::ownership::{Marked, Owner, mark};
use crate::sync::status_writer::status_manager;

/// One status to write to the hub.
#[derive(Debug)]
pub struct StatusJob {
    /// The object at the edge.
    pub at_edge: Address,
    /// The object at the hub.
    pub at_hub: Address,
    /// Where its status is written.
    pub path: StatusPath,
    /// In which direction the object is synced. The status of a copy of upsync is written only while that copy is ours.
    pub direction: Direction,
    /// The edge object, if it is at hand; otherwise it is read.
    pub body: Option<Bytes>,
    /// The version of the edge object that the edge reported last.
    pub edge_reported: u64,
    /// [`Status::hash`] of the hub object as last seen; 0 if it has none, absent if unknown.
    pub hub_status: Option<u64>,
    /// What the edge's owner has chosen, and who this syncer is.
    pub policy: Rc<Policy>,
}

/// What a job ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned {
    /// The hub object has it now.
    Written {
        /// [`Status::hash`] of what was written.
        status: u64,
        /// The resource version of the hub object then.
        version: u64,
    },
    /// In a dry run: the hub object would have it.
    Would {
        /// [`Status::hash`] of what would be written.
        status: u64,
    },
    /// The hub object has it already, or the edge object has none (0).
    Equal(u64),
    /// One of the two objects is not there.
    Gone,
    /// The hub object is there, and its type has no subresource for the status (any more).
    NoSubresource,
    /// The hub object is no longer a copy of ours.
    NotOurs,
    /// The hub object is another one than the copy was made from: it was deleted and created again.
    Another,
}

/// Writes one status to the hub, if it differs.
pub async fn reconcile(hub: &Cluster, edge: &Cluster, job: StatusJob) -> Result<Returned, Failure> {
    let object = match &job.body {
        Some(body) => body.clone(),
        None => match read(edge, &job).await {
            Ok(object) => object,
            Err(error) if error.proves_absent(&job.at_edge.name.name) => return Ok(Returned::Gone),
            Err(error) => return Err(failed(Side::Edge, "reading the status")(error)),
        },
    };
    let object = Object::parse(object).map_err(failed(Side::Edge, "reading the status"))?;
    let Some(status) = Status::of(&object) else {
        return Ok(Returned::Equal(0));
    };
    if job.hub_status == Some(status.hash) {
        return Ok(Returned::Equal(status.hash));
    }
    let Address { resource, name } = &job.at_hub;
    let subresource = job.path == StatusPath::Subresource;
    let ownership = name.of_kind(&resource.kind).to_string();
    let meta = &object.meta;
    let owner = job.policy.sync_target.owner_mark(&meta.uid, resource);
    let marks = [(mark(Direction::Up), &*ownership), (OWNER, &*owner)];
    let only_with = match (job.direction, Owner::of(&meta.annotations)) {
        (Direction::Up, _) => OnlyWith::Annotations(&marks),
        // The status of a copy of one object is not written to the next object of that name.
        (Direction::Down, Some(owner)) if !owner.origin.is_empty() => OnlyWith::Uid(owner.origin),
        (Direction::Down, _) => OnlyWith::Anything,
    };
    let written = write(hub, &job, only_with, &status.text).await;
    match written.and_then(|object| Ok(Meta::parse(&object)?.version_number())) {
        Ok(version) => Ok(Returned::Written {
            status: status.hash,
            version,
        }),
        // For custom types, the server gives the same answer for a missing object and for a missing subresource.
        Err(error) if error.proves_absent(&name.name) && subresource => {
            match read_metadata(hub, resource, name).await {
                Ok(None) => Ok(Returned::Gone),
                Ok(Some(Meta { .. })) => Ok(Returned::NoSubresource),
                Err(error) => Err(failed(Side::Hub, "reading the owner")(error)),
            }
        }
        Err(error) if error.proves_absent(&name.name) => Ok(Returned::Gone),
        Err(error) if error.is_rejection() && only_with != OnlyWith::Anything => {
            match (only_with, at_hub(hub, &job).await?) {
                (OnlyWith::Annotations(_), found) if !found.as_ref().is_some_and(|meta| is_ours(&job, meta)) => {
                    Ok(Returned::NotOurs)
                }
                // The copy is still marked as that of the object which had this name before: it is corrected meanwhile.
                (OnlyWith::Annotations(_), Some(meta)) if meta.annotations.get(OWNER) != Some(&owner) => {
                    Ok(Returned::Another)
                }
                (OnlyWith::Uid(uid), found) if found.as_ref().is_none_or(|meta| meta.uid != uid) => {
                    Ok(Returned::Another)
                }
                _ => Err(failed(Side::Hub, "returning the status")(error)),
            }
        }
        Err(error) => Err(failed(Side::Hub, "returning the status")(error)),
    }
}

/// How often a status is tried again with what the hub keeps.
const KEPT: usize = 2;

/// Writes a status to the hub. Its API server keeps some fields of its own types from going back, such as counters and
/// the time at which a Job has begun: a recreated copy begins with none. There, what the hub has stays.
async fn write(hub: &Cluster, job: &StatusJob, only_with: OnlyWith<'_>, text: &str) -> Result<Bytes, Error> {
    let Address { resource, name } = &job.at_hub;
    let manager = status_manager(&job.policy.sync_target.uid);
    let mut text = Cow::Borrowed(text);
    let mut tries = 0;
    loop {
        let new = NewStatus {
            status: &text,
            subresource: job.path == StatusPath::Subresource,
            manager: &manager,
            answer: Content::Metadata,
        };
        let written = hub.replace_status(resource, name, only_with, &new).await;
        let Err(error) = written else { return written };
        let refused = refused_fields(&error);
        tries += 1;
        if tries > KEPT || !resource.is_built_in() || refused.is_empty() {
            return Err(error);
        }
        let theirs = hub.get(resource, name, Content::Full).await?;
        match with_theirs(&theirs, &text, &refused)? {
            Some(next) => text = next.into(),
            None => return Err(error),
        }
    }
}

/// The fields of the status that a server has refused as invalid.
fn refused_fields(error: &Error) -> BTreeSet<String> {
    let status = error.status().filter(|_| error.is_invalid());
    let causes = status.map(|status| &*status.causes).unwrap_or_default();
    let fields = causes.iter().filter_map(|cause| cause.field.strip_prefix("status."));
    fields
        .filter_map(|field| field.split(['.', '[']).next())
        .map(str::to_owned)
        .collect()
}

/// A status in which these fields are as the hub has them, or absent. `None` if they are so already.
fn with_theirs(theirs: &[u8], text: &str, refused: &BTreeSet<String>) -> Result<Option<String>, Error> {
    type Fields<'a> = BTreeMap<String, &'a RawValue>;
    fn read(object: &[u8]) -> Result<Fields<'_>, Error> {
        serde_json::from_slice(object).map_err(|error| no_object(&error))
    }
    let theirs = read(theirs).unwrap_or_default();
    let at_hub = theirs
        .get("status")
        .map_or(Ok(Fields::new()), |status| read(status.get().as_bytes()))?;
    let mut fields = read(text.as_bytes())?;
    let mut differs = false;
    for field in refused {
        let kept = at_hub.get(field).copied();
        differs |= kept.map(RawValue::get) != fields.get(field).map(|value| value.get());
        match kept {
            Some(value) => fields.insert(field.clone(), value),
            None => fields.remove(field),
        };
    }
    if !differs {
        return Ok(None);
    }
    let kept = serde_json::to_string(&fields).map_err(|error| no_object(&error))?;
    Ok(Some(kept))
}

/// True if upsync has made the object at the hub, and nobody has taken it over.
fn is_ours(job: &StatusJob, meta: &Meta) -> bool {
    meta.is_ours(Direction::Up, &job.at_hub.resource, &job.policy.sync_target)
}

/// What is at the hub now.
async fn at_hub(hub: &Cluster, job: &StatusJob) -> Result<Option<Meta>, Failure> {
    let Address { resource, name } = &job.at_hub;
    let found = read_metadata(hub, resource, name).await;
    found.map_err(failed(Side::Hub, "reading the owner"))
}

async fn read(edge: &Cluster, job: &StatusJob) -> Result<Bytes, Error> {
    let Address { resource, name } = &job.at_edge;
    let object = edge.get(resource, name, Content::Full).await?;
    not_older(&Meta::of(name, &object)?, job.edge_reported)?;
    Ok(object)
}

#[cfg(test)]
mod tests {
    use kube_lite::{ObjectName, ResourceType};

    use super::*;
    use crate::sync::scripted::scripted;

    #[test]
    fn what_the_hub_does_not_take_back_stays_as_it_is_there() {
        let theirs = br#"{"status":{"active":1,"startTime":"T1","failed":2}}"#;
        for (text, refused, expected) in [
            (
                r#"{"startTime":"T2","succeeded":1}"#,
                &["startTime"][..],
                Some(r#"{"startTime":"T1","succeeded":1}"#),
            ),
            (
                r#"{"succeeded":1}"#,
                &["startTime", "failed"],
                Some(r#"{"failed":2,"startTime":"T1","succeeded":1}"#),
            ),
            (r#"{"succeeded":1}"#, &["succeeded"], Some("{}")),
            (r#"{"startTime":"T1"}"#, &["startTime"], None),
            (r#"{"succeeded":1}"#, &["else"], None),
        ] {
            let refused = refused.iter().map(|&field| field.to_owned()).collect();
            assert_eq!(
                with_theirs(theirs, text, &refused).unwrap().as_deref(),
                expected,
                "{text}"
            );
        }
        let refused = BTreeSet::from(["startTime".to_owned()]);
        assert_eq!(
            with_theirs(b"{}", r#"{"startTime":"T2"}"#, &refused),
            Ok(Some("{}".to_owned()))
        );
    }

    #[test]
    fn the_fields_that_a_server_refuses_are_those_of_its_causes() {
        let answer = |code: u16| {
            let body = r#"{"kind":"Status","reason":"Invalid","details":{"causes":[{"field":"status.failed"},
                {"field":"status.conditions[0].type"},{"field":"spec.x"},{"field":"status"},{}]}}"#;
            refused_fields(&Error::from_answer(code, None, body.as_bytes()))
        };
        assert_eq!(answer(422), ["conditions", "failed"].map(str::to_owned).into());
        assert!(answer(403).is_empty());
    }

    const WRITTEN: &str = r#"{"metadata":{"namespace":"shop","name":"a","resourceVersion":"9"}}"#;
    const INVALID: &str =
        r#"{"kind":"Status","reason":"Invalid","message":"testing value failed","details":{"name":"a"},"code":422}"#;
    const THEIRS: &str = WRITTEN;
    const OURS: &str = r#"{"metadata":{"namespace":"shop","name":"a","resourceVersion":"8","annotations":{"edge.kubestellar.io/upsynced":"Gauge/shop/a","edge.kubestellar.io/owner":"u1/gauges.example.org/"}}}"#;
    /// Of an object that was deleted and created again at once: it was a WARN, with advice to update the hub.
    const OF_FORMER: &str = r#"{"metadata":{"namespace":"shop","name":"a","resourceVersion":"8","annotations":{"edge.kubestellar.io/upsynced":"Gauge/shop/a","edge.kubestellar.io/owner":"u0/gauges.example.org/"}}}"#;
    const GONE: &str = r#"{"kind":"Status","reason":"NotFound","details":{"name":"a","kind":"gauges"},"code":404}"#;

    fn job(direction: Direction) -> StatusJob {
        let resource = ResourceType {
            group: "example.org".into(),
            version: "v1".into(),
            resource: "gauges".into(),
            kind: "Gauge".into(),
            namespaced: true,
        };
        let address = Address {
            resource,
            name: ObjectName::new("shop", "a"),
        };
        StatusJob {
            at_edge: address.clone(),
            at_hub: address,
            path: StatusPath::Subresource,
            direction,
            body: Some(Bytes::from_static(
                br#"{"metadata":{"name":"a","uid":"u1"},"status":{"v":1}}"#,
            )),
            edge_reported: 0,
            hub_status: None,
            policy: Rc::default(),
        }
    }

    #[tokio::test]
    async fn only_upsync_asks_for_its_mark_in_the_same_request() {
        let write = r#"[{"op":"add","path":"/status","value":{"v":1}}]"#;
        let test = concat!(
            r#"{"op":"test","path":"/metadata/annotations/edge.kubestellar.io~1upsynced","value":"Gauge/shop/a"},"#,
            r#"{"op":"test","path":"/metadata/annotations/edge.kubestellar.io~1owner","value":"u1/gauges.example.org/"}"#
        );
        for (direction, body) in [
            (Direction::Down, write.to_owned()),
            (Direction::Up, format!("[{test},{}", &write[1..])),
        ] {
            let (edge, _) = scripted(Side::Edge, &[]);
            let (hub, asked) = scripted(Side::Hub, &[(200, WRITTEN)]);
            let returned = reconcile(&hub, &edge, job(direction)).await.unwrap();
            assert!(matches!(returned, Returned::Written { version: 9, .. }), "{returned:?}");
            let asked = asked.borrow()[0].clone();
            assert!(asked.starts_with("PATCH /apis/example.org/v1/namespaces/shop/gauges/a/status?"));
            assert!(asked.ends_with(&format!(" {body}")), "{asked}");
        }
    }

    #[tokio::test]
    async fn a_refusal_is_kept_apart_from_an_object_that_is_no_longer_ours() {
        for (then, expected) in [
            ((200, THEIRS), Some(Returned::NotOurs)),
            ((200, OF_FORMER), Some(Returned::Another)),
            ((404, GONE), Some(Returned::NotOurs)),
            ((200, OURS), None),
            ((503, "{}"), None),
        ] {
            let (edge, _) = scripted(Side::Edge, &[]);
            let (hub, _) = scripted(Side::Hub, &[(422, INVALID), then]);
            let returned = reconcile(&hub, &edge, job(Direction::Up)).await;
            assert_eq!(returned.ok(), expected, "{then:?}");
        }
        let (edge, _) = scripted(Side::Edge, &[]);
        let (hub, asked) = scripted(Side::Hub, &[(422, INVALID)]);
        assert!(reconcile(&hub, &edge, job(Direction::Down)).await.is_err());
        assert_eq!(asked.borrow().len(), 1);
    }
}
