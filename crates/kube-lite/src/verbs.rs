//! The verbs: the requests of the syncer to one side, in the terms of the Kubernetes API.

mod answer;
mod exchange;
mod lists;
pub(super) mod page;
mod request;
mod review;
mod tokens;
mod verdict;
mod writes;
mod yaml;

use std::cell::Cell;
use std::rc::Rc;

use bytes::Bytes;
use http::Method;
use serde_json::json;
use tokio::sync::Semaphore;

use self::exchange::{UPLOADS, request as request_for};
use self::lists::{HALVED_AT_FIRST, named, parameter};
pub use self::request::{Content, ListRequest, NewStatus, OnlyWith, Precondition, Scope};
pub use self::writes::{Operation, pointer};
use self::yaml::for_yaml;
use super::between::{Between, Through};
use super::contact::{Contact, Probe};
use super::covered::without_denial;
use super::figures::Figures;
use super::lanes::Traffic;
use super::resource::{ObjectName, ResourceType, encode};
use super::room::Room;
use super::shared::SharedReads;
use super::workspace::Workspaces;
use super::{ApiServer, Error, RateLimit, Standing};

/// One side's API server with its rate limit. Cheap to share; holds no objects.
pub struct Cluster {
    /// See [`Self::name`].
    name: Rc<str>,
    /// See [`Self::nearby`].
    is_near: bool,
    server: Rc<dyn ApiServer>,
    rate: Rc<RateLimit>,
    contact: Rc<Contact>,
    streaming_lists: Cell<bool>,
    /// See [`Self::reached`].
    reached: Cell<u64>,
    /// Pages are halved this many times, because the link is slow.
    halved: Cell<u32>,
    uploads: Rc<Semaphore>,
    /// Room for answers that are on their way.
    pub(super) room: Room,
    /// What is being read for several at once.
    pub(super) shared: SharedReads,
    /// The traffic class of requests that do not name one.
    traffic: Traffic,
    workspaces: Workspaces,
    /// The field manager of every write, as it stands in a path.
    manager: Rc<str>,
}

impl Cluster {
    /// The verbs of the side with this name over `server`. Whatever is written belongs to this field manager, unless the
    /// verb names another.
    pub fn new(name: &str, server: Box<dyn ApiServer>, rate: RateLimit, manager: &str) -> Self {
        let mut encoded = String::new();
        encode(&mut encoded, manager);
        Self {
            name: name.into(),
            is_near: false,
            server: server.into(),
            rate: Rc::new(rate),
            contact: Rc::default(),
            streaming_lists: Cell::new(true),
            reached: Cell::new(0),
            halved: Cell::new(HALVED_AT_FIRST),
            uploads: Rc::new(Semaphore::new(UPLOADS as usize)),
            room: Room::default(),
            shared: SharedReads::default(),
            traffic: Traffic::Request,
            workspaces: Workspaces::One,
            manager: encoded.into(),
        }
    }

    /// The same with one workspace or many.
    #[must_use]
    pub fn with(mut self, workspaces: Workspaces) -> Self {
        self.workspaces = workspaces;
        self
    }

    /// The same, counting into the figures of all that is behind one address.
    #[must_use]
    pub fn counting(mut self, figures: &Rc<Figures>) -> Self {
        self.contact = Rc::new(Contact::counting(figures));
        self
    }

    /// The same side over the same connection, without its rate limit, and with a stream kept for it: for the Lease, whose
    /// requests must not wait their turn in a burst. One at a time.
    #[must_use]
    pub fn unlimited(&self) -> Self {
        Self {
            rate: Rc::new(RateLimit::new(None)),
            uploads: Rc::new(Semaphore::new(UPLOADS as usize)),
            traffic: Traffic::Lease,
            ..self.with_server(Rc::clone(&self.server))
        }
    }

    /// The same side at a rate of its own: for what is asked for on behalf of one of several who share it.
    #[must_use]
    pub fn at_rate(&self, rate: RateLimit) -> Self {
        Self {
            rate: Rc::new(rate),
            ..self.with_server(Rc::clone(&self.server))
        }
    }

    /// The same side, with something between it and its server. What is read for several at once is not shared with it.
    #[must_use]
    pub fn through(&self, between: impl Between + 'static) -> Self {
        self.with_server(Rc::new(Through(Rc::clone(&self.server), between)))
    }

    fn with_server(&self, server: Rc<dyn ApiServer>) -> Self {
        Self {
            name: Rc::clone(&self.name),
            is_near: self.is_near,
            server,
            rate: Rc::clone(&self.rate),
            contact: Rc::clone(&self.contact),
            streaming_lists: self.streaming_lists.clone(),
            reached: self.reached.clone(),
            halved: self.halved.clone(),
            uploads: Rc::clone(&self.uploads),
            room: self.room.clone(),
            shared: SharedReads::default(),
            traffic: self.traffic,
            workspaces: self.workspaces,
            manager: Rc::clone(&self.manager),
        }
    }

    /// The same where no slow or metered link leads to it: a list may be streamed, which servers do not compress.
    #[must_use]
    pub fn nearby(mut self) -> Self {
        self.is_near = true;
        self
    }

    /// The name of the side, in logs and errors.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True if no slow or metered link leads to it.
    pub fn is_near(&self) -> bool {
        self.is_near
    }

    /// The contact with the side now.
    pub fn standing(&self) -> Standing {
        Standing {
            answers: self.contact.is_there(),
            accepts_credentials: self.contact.is_accepted(),
            stranger: self.contact.stranger(),
            moves: self.server.moves(),
            place: self.server.place(),
            workspaces: self.workspaces,
            credentials_end: self.server.credentials_end(),
            end_notices: self.contact.end_notices.get(),
            figures: Rc::clone(&self.contact.figures),
            link_bytes: self.server.link_bytes(),
        }
    }

    /// It was logged that the credentials in force will end, or have ended.
    pub fn end_is_logged(&self) {
        self.contact.end_notices.set(self.contact.end_notices.get() + 1);
    }

    /// How many workspaces it has.
    pub fn workspaces(&self) -> Workspaces {
        self.workspaces
    }

    /// The path of an object.
    pub(super) fn object_path(&self, resource: &ResourceType, name: &ObjectName) -> Result<String, Error> {
        self.workspaces.path_in(name.workspace(), &resource.object_path(name)?)
    }

    /// The path of the collection that an object is in.
    fn collection_path(&self, resource: &ResourceType, of: &ObjectName) -> Result<String, Error> {
        let path = resource.collection_path(of.namespace())?;
        self.workspaces.path_in(of.workspace(), &path)
    }

    /// After a request without an answer: waits until the side is back, while another task asks whether it is. With a
    /// [`Probe`], the caller is the one that asks, as long as it holds it.
    pub async fn wait_for_return(&self) -> Option<Probe> {
        self.contact.wait_for_return().await
    }

    /// Checks whether the files with the address and the credentials were replaced. Each request does so too.
    pub fn check_files(&self) {
        self.server.check_files();
    }

    /// The highest version that a watch or list of any type has shown.
    pub fn reached(&self) -> u64 {
        self.reached.get()
    }

    /// A watch or list has shown this version.
    pub fn reaches(&self, version: u64) {
        self.reached.set(self.reached.get().max(version));
    }

    /// A list is older than what was shown before it was requested.
    pub fn is_back_at(&self, version: u64) {
        self.reached.set(version);
    }

    /// False once the server has shown that it cannot stream a list (older versions, some storages).
    pub fn streams_lists(&self) -> bool {
        self.streaming_lists.get()
    }

    /// Remembers that this server cannot stream lists, so that none is requested again.
    pub fn stop_streaming_lists(&self) {
        self.streaming_lists.set(false);
    }

    /// Reads one object. [`Error::proves_absent`] says whether a 404 is about the object.
    pub async fn get(&self, resource: &ResourceType, name: &ObjectName, content: Content) -> Result<Bytes, Error> {
        let path = self.object_path(resource, name)?;
        self.call(Method::GET, &path, content.accept(false), None, Bytes::new())
            .await
    }

    /// Whether a list names one object, and the version of that list: how far the type has come at the server, 0 if that is
    /// no number. Servers answer it like a read of the one object.
    pub async fn find(&self, resource: &ResourceType, name: &ObjectName) -> Result<(bool, u64), Error> {
        let mut path = format!("{}?limit=1", self.collection_path(resource, name)?);
        parameter(&mut path, "fieldSelector", &named(&name.name));
        let accept = Content::Metadata.accept(true);
        let answer = self.call(Method::GET, &path, accept, None, Bytes::new()).await?;
        answer::names_one(&answer, resource)
    }

    /// Reads any path as JSON (discovery): of all workspaces, where there are several.
    pub async fn get_path(&self, path: &str) -> Result<Bytes, Error> {
        self.get_path_as(path, Content::Full.accept(false)).await
    }

    /// The same in one of these forms, as far as the server knows them.
    pub async fn get_path_as(&self, path: &str, accept: &'static str) -> Result<Bytes, Error> {
        let path = self.workspaces.path_in_all(path);
        self.call(Method::GET, &path, accept, None, Bytes::new()).await
    }

    /// The same in one of the workspaces of a side that has many.
    pub async fn get_path_in(&self, workspace: &str, path: &str) -> Result<Bytes, Error> {
        let path = self.workspaces.path_in(workspace, path)?;
        self.call(Method::GET, &path, Content::Full.accept(false), None, Bytes::new())
            .await
    }

    /// Server-side apply with force: creates the object or makes the fields of `body` so. Returns as much of the object as
    /// it is then as `content` says, and whether it was created.
    ///
    /// A `resourceVersion` in `body` is a precondition for an object that exists: it must be at that version. One that
    /// does not exist is created even so.
    pub async fn apply(
        &self,
        resource: &ResourceType,
        name: &ObjectName,
        body: Bytes,
        content: Content,
    ) -> Result<(Bytes, bool), Error> {
        let path = self.object_path(resource, name)?;
        let path = format!("{path}?fieldManager={}&force=true", self.manager);
        let request = request_for(
            Method::PATCH,
            &path,
            content.accept(false),
            Some("application/apply-patch+yaml"),
            for_yaml(body),
        )?;
        let (status, object) = self.exchange(request).await?;
        Ok((answer::about(object, resource, name)?, status == 201))
    }

    /// Asks whether the server would apply this object, without storing it. Returns what it would be then.
    pub async fn would_apply(&self, resource: &ResourceType, name: &ObjectName, body: Bytes) -> Result<Bytes, Error> {
        let path = self.object_path(resource, name)?;
        let path = format!("{path}?dryRun=All&fieldManager={}&force=true", self.manager);
        let kind = Some("application/apply-patch+yaml");
        let accept = Content::Full.accept(false);
        let answer = self.call(Method::PATCH, &path, accept, kind, for_yaml(body));
        answer::about(answer.await?, resource, name)
    }

    /// Creates an object, and only that: one that exists already is a conflict ([`Error::is_conflict`]) and stays as it
    /// is. Returns its metadata.
    pub async fn create(&self, resource: &ResourceType, name: &ObjectName, body: Bytes) -> Result<Bytes, Error> {
        let path = self.collection_path(resource, name)?;
        let path = format!("{path}?fieldManager={}", self.manager);
        let accept = Content::Metadata.accept(false);
        let answer = self.call(Method::POST, &path, accept, Some("application/json"), body);
        answer::about(answer.await?, resource, name)
    }

    /// Replaces the whole `status` of one object by `status` (JSON), through its `/status` subresource or in the object
    /// itself, and touches nothing else: the server applies it to whatever the object is then, so that no edit of
    /// others is lost. Returns what `answer` says of it.
    ///
    /// An object that does not fit `only_with` is not touched: the error has code 422, as for a status that the object's schema
    /// refuses.
    pub async fn replace_status(
        &self,
        resource: &ResourceType,
        name: &ObjectName,
        only_with: OnlyWith<'_>,
        &NewStatus {
            status,
            subresource,
            manager,
            answer,
        }: &NewStatus<'_>,
    ) -> Result<Bytes, Error> {
        let mut path = self.object_path(resource, name)?;
        if subresource {
            path.push_str("/status");
        }
        path.push_str("?fieldManager=");
        encode(&mut path, manager);
        let test = |path: &str, value: &str| {
            let test = json!({"op": "test", "path": path, "value": value});
            format!("{test},")
        };
        let test: String = match only_with {
            OnlyWith::Anything => String::new(),
            OnlyWith::Uid(uid) => test("/metadata/uid", uid),
            OnlyWith::Annotations(annotations) => annotations
                .iter()
                .map(|(key, value)| test(&pointer(&["metadata", "annotations", key]), value))
                .collect(),
        };
        let body = format!(r#"[{test}{{"op":"add","path":"/status","value":{status}}}]"#);
        let kind = Some("application/json-patch+json");
        let answer = self.call(Method::PATCH, &path, answer.accept(false), kind, Bytes::from(body));
        answer::about(answer.await?, resource, name)
    }

    /// Asks whether the server would take `body` as a new object, without creating it. `Ok` if it would, also if the
    /// only reason against it is an existing object of that name: API servers find that out last, after validation,
    /// policies and webhooks.
    pub async fn would_create(&self, resource: &ResourceType, name: &ObjectName, body: Bytes) -> Result<(), Error> {
        let path = self.collection_path(resource, name)?;
        let path = format!("{path}?dryRun=All&fieldManager={}", self.manager);
        let kind = Some("application/json");
        match self.call(Method::POST, &path, "application/json", kind, body).await {
            Ok(answer) => answer::has_kind(&answer),
            Err(error) if error.is_already_there() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Asks whether the server would take this JSON patch (RFC 6902) of an object, without changing it.
    pub async fn would_patch(&self, resource: &ResourceType, name: &ObjectName, body: Bytes) -> Result<(), Error> {
        let object = self.object_path(resource, name)?;
        let path = format!("{object}?dryRun=All&fieldManager={}", self.manager);
        let kind = Some("application/json-patch+json");
        let answer = self.call(Method::PATCH, &path, Content::Metadata.accept(false), kind, body);
        answer::about(answer.await?, resource, name).map(drop)
    }

    /// Merge-patches one object (RFC 7386) and returns it whole. A `resourceVersion` or `uid` in the patch is a
    /// precondition.
    pub async fn merge_patch(&self, resource: &ResourceType, name: &ObjectName, body: Bytes) -> Result<Bytes, Error> {
        self.merge_patch_for(resource, name, body, Content::Full).await
    }

    /// The same, and returns as much of the object as `content` says. A patch that is a list is a JSON patch (RFC 6902).
    pub async fn merge_patch_for(
        &self,
        resource: &ResourceType,
        name: &ObjectName,
        body: Bytes,
        content: Content,
    ) -> Result<Bytes, Error> {
        self.patch_at(resource, name, "", body, content).await
    }

    /// Merges `body` into the status of one object, through its `/status` subresource or in the object itself. Returns the
    /// metadata.
    pub async fn merge_patch_status(
        &self,
        resource: &ResourceType,
        name: &ObjectName,
        subresource: bool,
        body: Bytes,
    ) -> Result<Bytes, Error> {
        let at = if subresource { "/status" } else { "" };
        self.patch_at(resource, name, at, body, Content::Metadata).await
    }

    /// Server-side apply with force, as this field manager, of the status of an object that is there. Returns as much of it as
    /// `content` says.
    pub async fn apply_status(
        &self,
        resource: &ResourceType,
        name: &ObjectName,
        manager: &str,
        body: Bytes,
        content: Content,
    ) -> Result<Bytes, Error> {
        let object = self.object_path(resource, name)?;
        let mut path = format!("{object}/status?force=true&fieldManager=");
        encode(&mut path, manager);
        let kind = Some("application/apply-patch+yaml");
        let accept = content.accept(false);
        let answer = self.call(Method::PATCH, &path, accept, kind, for_yaml(body));
        answer::about(answer.await?, resource, name)
    }

    async fn patch_at(
        &self,
        resource: &ResourceType,
        name: &ObjectName,
        subresource: &str,
        body: Bytes,
        content: Content,
    ) -> Result<Bytes, Error> {
        let object = self.object_path(resource, name)?;
        let path = format!("{object}{subresource}?fieldManager={}", self.manager);
        let kind = if body.starts_with(b"[") {
            "application/json-patch+json"
        } else {
            "application/merge-patch+json"
        };
        let answer = self.call(Method::PATCH, &path, content.accept(false), Some(kind), body);
        answer::about(answer.await?, resource, name)
    }

    /// Deletes one object if `only_if` still holds. What its controllers have made from it is deleted too, in the
    /// background: by the server's default, the Pods of a Job would stay and run. Returns the object if the server has
    /// answered with it: it may stay for its finalizers or a grace period, and says so by its `deletionTimestamp`.
    pub async fn delete(
        &self,
        resource: &ResourceType,
        name: &ObjectName,
        only_if: &Precondition,
    ) -> Result<Option<Bytes>, Error> {
        let mut options = serde_json::json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": only_if.uid, "resourceVersion": only_if.resource_version},
            "propagationPolicy": "Background",
        });
        if only_if.at_once {
            options["gracePeriodSeconds"] = 0.into();
        }
        let answer = self.delete_with(resource, name, Bytes::from(options.to_string())).await;
        answer.map_err(|mut error| {
            if only_if.of_secret {
                error.change_words(without_denial);
            }
            error
        })
    }

    /// The same with these `DeleteOptions`.
    pub async fn delete_with(
        &self,
        resource: &ResourceType,
        name: &ObjectName,
        options: Bytes,
    ) -> Result<Option<Bytes>, Error> {
        let path = self.object_path(resource, name)?;
        let json = "application/json";
        let answer = self.call(Method::DELETE, &path, json, Some(json), options).await?;
        answer::has_kind(&answer)?;
        Ok(answer::about(answer, resource, name).ok())
    }
}

#[cfg(test)]
#[path = "verbs_tests.rs"]
mod tests;
