//! The surroundings of the model: what both sides answer about themselves, and what is read from them.

use std::collections::{BTreeMap, BTreeSet};

use driver::Feed as _;
use kube_lite::discovery::{Catalogue, Served, ServedResource};

use super::*;
use crate::api::edge::KubernetesVersions;
use crate::model::effect::{
    Answers, ConfigHeartbeat, DiscoveryRequest, EdgeBeaten, EdgeResult, EdgeSeen, EdgeToWrite, HeartbeatRequest,
    HeartbeatResult, Kept, Names, StatusesToWrite, StatusesWritten, TypeDefinitionAnswers, parse_record,
};
use crate::sync::definition::{Hub, TypeDefinition, Withdrawal};

/// See the module's doc.
pub(super) struct World {
    /// What is read.
    pub(super) sources: BTreeMap<SourceId, (Feed, Reading)>,
    /// What each side serves.
    pub(super) served: BTreeMap<Side, Vec<ServedResource>>,
    /// What has begun to be read, such as `hub configmaps`.
    pub(super) begun: Vec<String>,
    /// What each side was last asked about that.
    pub(super) asked: BTreeMap<Side, DiscoveryRequest>,
    /// Requests that fail, each in the words of the log.
    pub(super) fails: BTreeMap<String, Error>,
    /// What is not answered: the test does, if anybody does.
    pub(super) unanswered: BTreeSet<String>,
    /// The record at the edge.
    pub(super) kept: Kept,
    /// What defines types at the hub that are not of the core group.
    pub(super) definition: Option<TypeDefinition>,
    /// What the hub answers about a type that is said to be deleted.
    pub(super) withdrawal: Option<Withdrawal>,
    /// How many copies are left of a type that the hub has no longer.
    pub(super) left: usize,
    /// Namespaces that the hub lacks.
    pub(super) lacks_namespaces: BTreeSet<String>,
    /// How many configs had the status of the last heartbeat already.
    pub(super) kept_before: usize,
    /// The conditions that heartbeats have written.
    pub(super) conditions: Vec<Value>,
    /// The version of all configs after a heartbeat; 0 if it reaches none.
    pub(super) heartbeat_version: u64,
    /// What the hub answers to heartbeats on the object that stands for the edge: without it, it has no such type.
    pub(super) edge_object: Option<Result<EdgeSeen, Error>>,
    /// How many of these there were.
    pub(super) edge_beats: usize,
    /// The statuses of that object that were written.
    pub(super) edge_statuses: Vec<Value>,
    /// What sources would have reported that was known already.
    pub(super) known: Vec<(String, Known)>,
    /// How often a side was asked for all that it serves.
    pub(super) catalogues: usize,
    /// How many writes workers have made.
    pub(super) version: u64,
    origins: BTreeMap<(u32, ObjectName), Bytes>,
}

impl Default for World {
    fn default() -> Self {
        let core = || {
            let types = [ResourceType::config_maps(), ResourceType::namespaces()];
            types.into_iter().map(|resource| served(resource, false)).collect()
        };
        Self {
            kept_before: 0,
            sources: BTreeMap::new(),
            served: [(Side::Hub, core()), (Side::Edge, core())].into(),
            begun: Vec::new(),
            asked: BTreeMap::new(),
            fails: BTreeMap::new(),
            unanswered: BTreeSet::new(),
            kept: Kept::default(),
            definition: None,
            withdrawal: None,
            left: 0,
            lacks_namespaces: BTreeSet::new(),
            conditions: Vec::new(),
            heartbeat_version: 0,
            edge_object: None,
            edge_beats: 0,
            edge_statuses: Vec::new(),
            known: Vec::new(),
            catalogues: 0,
            version: 1000,
            origins: BTreeMap::new(),
        }
    }
}

impl World {
    /// What a worker would read of an origin.
    pub(super) fn origin(&self, key: &Key) -> Option<Bytes> {
        self.origins.get(&(key.type_id, key.name.clone())).cloned()
    }

    /// A source of origins reports an object.
    pub(super) fn remember_origin(&mut self, id: SourceId, event: &SourceEvent) {
        let Some(&(Feed::Origins(type_id, _), _)) = self.sources.get(&id) else {
            return;
        };
        match event {
            SourceEvent::Object(object) => {
                let meta = &object.meta;
                self.origins
                    .insert((type_id, meta.object_name()), object.bytes().clone());
            }
            SourceEvent::Gone(object) => {
                let meta = &object.meta;
                self.origins.remove(&(type_id, meta.object_name()));
            }
            _ => {}
        }
    }

    /// What a source has reported is gone, as far as the next list does not name it.
    pub(super) fn forget_origins(&mut self, id: SourceId) {
        if let Some((Feed::Origins(type_id, _), reading)) = self.sources.get(&id) {
            let is_read = |of: u32, name: &ObjectName| of == *type_id && reading.scope.contains(name);
            self.origins.retain(|(of, name), _| !is_read(*of, name));
        }
    }

    /// What the record says from the start, as the data of the `ConfigMap` that it is.
    pub(super) fn keep(&mut self, data: &Value) {
        let name = Names::of(&settings().policy.sync_target, "default").own;
        let object = json!({"metadata": {"namespace": name.namespace(), "name": &*name.name}, "data": data});
        let (kept, unbelievable) = parse_record(&name, &bytes(&object)).expect("it is a record");
        assert_eq!(unbelievable, [""; 0]);
        self.kept = kept;
    }

    /// Both sides serve a type, with a subresource for its status.
    pub(super) fn serve(&mut self, resource: &ResourceType) {
        for side in [Side::Hub, Side::Edge] {
            self.serve_at(side, resource);
        }
    }

    pub(super) fn serve_at(&mut self, side: Side, resource: &ResourceType) {
        self.served
            .entry(side)
            .or_default()
            .push(served(resource.clone(), true));
    }

    pub(super) fn withdraw_at(&mut self, side: Side, resource: &ResourceType) {
        self.served
            .entry(side)
            .or_default()
            .retain(|served| served.resource != *resource);
    }

    fn answers(&self, side: Side, questions: DiscoveryRequest, error: Option<&Error>) -> Answers {
        let types = &self.served[&side];
        let mut groups = BTreeMap::<String, Vec<String>>::new();
        for ResourceType { group, version, .. } in types.iter().map(|served| &served.resource) {
            let versions = groups.entry(group.clone()).or_default();
            if !versions.contains(version) {
                versions.push(version.clone());
            }
        }
        groups.remove("");
        let asked = |group: &String| questions.open.contains(group) || questions.elsewhere.contains_key(group);
        let mut group_versions = questions.group_versions.clone();
        for (group, versions) in groups.iter().filter(|(group, _)| asked(group)) {
            group_versions.extend(versions.iter().map(|version| (group.clone(), version.clone())));
        }
        let served = group_versions.into_iter().map(|(group, version)| {
            let of_it = |served: &&ServedResource| served.resource.group == group && served.resource.version == version;
            let found: BTreeMap<_, _> = types
                .iter()
                .filter(of_it)
                .map(|served| (served.resource.resource.clone(), served.clone()))
                .collect();
            let answer = match error {
                Some(error) => Err(error.clone()),
                None if found.is_empty() => Ok(Served::NotServed),
                None => Ok(Served::Resources(found)),
            };
            ((group, version), answer)
        });
        let lacking = questions.to_confirm.into_iter().filter(|((group, resource), absence)| {
            let is_it = |served: &ServedResource| {
                served.resource.is(group, resource)
                    && absence.scope().is_none_or(|scope| served.resource.namespaced == scope)
            };
            error.is_none() && !types.iter().any(is_it)
        });
        Answers {
            served: served.collect(),
            lacking: lacking.map(|(named, _)| named).collect(),
            groups: questions
                .of_groups
                .then(|| error.map_or(Ok(groups), |error| Err(error.clone()))),
            catalogue: questions
                .catalogue
                .then(|| error.map_or(Ok(Catalogue::new()), |error| Err(error.clone()))),
        }
    }

    fn heartbeat_ended(&mut self, beat: HeartbeatRequest, error: Option<&Error>) -> HeartbeatResult {
        self.kept_before = beat.configs.iter().filter(|config| config.is_kept).count();
        let result = |name: &str| match error {
            Some(error) => Err(error.clone()),
            None => Ok(Meta {
                name: name.to_owned(),
                resource_version: self.heartbeat_version.to_string(),
                ..Meta::default()
            }),
        };
        let is_reported = error.is_some() || self.heartbeat_version != 0;
        let configs = beat.configs.into_iter().filter(|_| is_reported);
        self.edge_beats += usize::from(beat.edge.is_some());
        let edge = beat.edge.map(|beat| EdgeBeaten {
            result: match self.edge_object.clone() {
                None => EdgeResult::NotServed,
                Some(Ok(seen)) => EdgeResult::Kept(seen),
                Some(Err(error)) => EdgeResult::Failed(error),
            },
            versions: beat.asks_versions.then(|| KubernetesVersions {
                hub: "v1".to_owned(),
                edge: "v2".to_owned(),
            }),
        });
        HeartbeatResult {
            edge,
            places: beat.places,
            configs: configs
                .map(|config| ConfigHeartbeat {
                    kind: config.kind,
                    result: result(&config.name),
                    name: config.name,
                    before: config.before,
                })
                .collect(),
        }
    }
}

impl World {
    /// The hub has them, without a new version: nothing else is to happen for it.
    fn statuses_written(&mut self, statuses: StatusesToWrite) -> StatusesWritten {
        let configs = statuses.configs.into_iter();
        let written = configs.map(|(kind, name, body)| {
            let body: Value = serde_json::from_slice(&body).expect("it is an object");
            let conditions = body["status"]["conditions"].as_array().into_iter().flatten();
            let held = conditions.filter(|condition| condition["type"] == "DeletesHeld");
            self.conditions.extend(held.cloned());
            let meta = Meta {
                name: name.clone(),
                ..Meta::default()
            };
            (kind, name, Ok(meta))
        });
        let configs = written.collect();
        let edge = statuses.edge.map(|EdgeToWrite { body, .. }| {
            let body: Value = serde_json::from_slice(&body).expect("it is an object");
            self.edge_statuses.push(body["status"].clone());
            Ok(())
        });
        StatusesWritten { configs, edge }
    }
}

impl Bench {
    /// Notes what is to be done, and answers it where the world can.
    pub(super) fn perform(&mut self, effect: Effect) -> Option<Answer> {
        let request = match effect {
            Effect::Read(id, feed, reading) => {
                let begun = format!("{} {}", feed.side(), reading.resource.resource);
                self.world.begun.push(begun);
                self.world.sources.insert(id, (feed, reading));
                return None;
            }
            Effect::End(id) => {
                self.world.sources.remove(&id);
                return None;
            }
            Effect::Known(_, name, known) => {
                self.world.known.push((name.name.to_string(), known));
                return None;
            }
            Effect::Request(request) => request,
            Effect::Open(_, place) => match place {},
            Effect::Close(side) => unreachable!("the {side} is always there"),
        };
        match request {
            Request::Object(key, job) => self.work.push((key, job)),
            Request::Status(key, job) => self.statuses.push((key, job)),
            Request::Namespace(namespace, step) => self.namespaces.push((namespace, step)),
            request if self.world.unanswered.contains(&word(&request)) => self.log.push(word(&request)),
            request => return Some(self.answer(request)),
        }
        None
    }

    fn answer(&mut self, request: Request) -> Answer {
        let word = word(&request);
        let error = self.world.fails.get(&word).cloned();
        if !matches!(request, Request::Statuses(_) | Request::Events(..)) {
            self.log.push(word);
        }
        let or_fails = |error: Option<Error>| error.map_or(Ok(()), Err);
        match request {
            Request::Discover(side, questions) => {
                self.world.asked.insert(side, questions.clone());
                self.world.catalogues += usize::from(questions.catalogue);
                Answer::Discovered(side, self.world.answers(side, questions, error.as_ref()))
            }
            Request::ReadRecord(_) => {
                Answer::Recorded(or_fails(error).map(|()| Box::new(self.world.kept.clone())), true)
            }
            Request::WriteRecord(_, kept) => {
                let result = or_fails(error).map(|()| kept);
                if let Ok(kept) = &result {
                    self.world.kept = kept.clone();
                }
                Answer::Recorded(result.map(Box::new), false)
            }
            Request::Identify(side, _) => {
                let uid = Some(self.uids[&side].to_owned()).filter(|uid| !uid.is_empty());
                Answer::Identified(side, or_fails(error).map(|()| uid))
            }
            Request::Heartbeat(beat) => Answer::Heartbeat(self.world.heartbeat_ended(beat, error.as_ref())),
            Request::Statuses(statuses) => Answer::Statuses(self.world.statuses_written(statuses)),
            Request::Define(types, _) => {
                let answers = types.into_iter().map(|of| {
                    let result = or_fails(error.clone()).map(|()| self.world.definition.clone());
                    (of, result)
                });
                Answer::Defined(TypeDefinitionAnswers {
                    hub: error.is_none().then_some(Hub::Kubernetes),
                    types: answers.collect(),
                })
            }
            Request::Verify(resource, ..) => Answer::Withdrawal(
                resource.qualified(),
                or_fails(error).map(|()| self.world.withdrawal.clone()),
            ),
            Request::VerifyConfigs(kinds, _) => {
                let answer = |kind| (kind, or_fails(error.clone()).map(|()| self.world.withdrawal.clone()));
                Answer::ConfigKinds(kinds.into_iter().map(answer).collect())
            }
            Request::SearchForLeft(resource, ..) => {
                let left = or_fails(error).map(|()| self.world.left);
                Answer::Vanished(resource, left.map_err(|error| (Side::Edge, error)))
            }
            Request::FindNamespaces(names) => {
                let answer = |name: String| {
                    let is_there = !self.world.lacks_namespaces.contains(&name);
                    (name, or_fails(error.clone()).map(|()| is_there))
                };
                Answer::NamespacesFound(names.into_iter().map(answer).collect())
            }
            Request::Object(..) | Request::Status(..) | Request::Namespace(..) => unreachable!("the test answers it"),
            Request::Events(side, events) => {
                let written = |event: EventToWrite| {
                    self.events.push(event.clone());
                    let done = match &error {
                        Some(error) => EventDone::Failed(error.clone()),
                        None => EventDone::Written(ObjectName::new(event.key.name.namespace(), "event")),
                    };
                    (event.key, done)
                };
                Answer::Events(side, events.into_iter().map(written).collect())
            }
            Request::Tried(_) => unreachable!("it has no answer"),
        }
    }

    /// The source of this kind that reads this type, if there is one.
    pub(super) fn find(&self, is: impl Fn(&Feed) -> bool, resource: &str) -> Option<SourceId> {
        let mut sources = self.world.sources.iter();
        let found = sources.find(|(_, (feed, reading))| is(feed) && reading.resource.resource == resource);
        found.map(|(&id, _)| id)
    }

    pub(super) fn origins_of(&self, side: Side, resource: &str) -> Option<SourceId> {
        self.find(|feed| matches!(feed, Feed::Origins(_, at) if *at == side), resource)
    }

    pub(super) fn copies_of(&self, side: Side, resource: &str) -> Option<SourceId> {
        self.find(|feed| matches!(feed, Feed::Copies(_, at) if *at == side), resource)
    }

    /// The source of the `ConfigMap`s at the hub.
    pub(super) fn origins(&self) -> SourceId {
        self.origins_of(Side::Hub, "configmaps").expect("they are read")
    }

    /// The source of their copies.
    pub(super) fn copies(&self) -> SourceId {
        self.copies_of(Side::Edge, "configmaps").expect("they are read")
    }

    pub(super) fn source(&self, feed: Feed) -> SourceId {
        let of_feed = self.world.sources.iter().find(|(_, (known, _))| *known == feed);
        *of_feed.expect("it is read").0
    }

    /// A config that selects these of the namespace `shop` is all that the hub has.
    pub(super) fn select(&mut self, resources: &[&str]) {
        self.configure(&[shop(resources)]);
    }

    /// The CRDs of a side are listed, if they are read and were not listed yet.
    pub(super) fn list_crds(&mut self, side: Side, crds: &[Value]) {
        let source = self.find(|feed| *feed == Feed::Crds(side), "customresourcedefinitions");
        if let Some(source) = source.filter(|source| !self.listed.contains(source)) {
            self.list(source, crds, 1);
        }
    }

    /// The copies of the widgets of these names in `shop` are listed, and no others.
    pub(super) fn list_widgets(&mut self, names: &[&str], version: u64) {
        let copies = names
            .iter()
            .map(|name| copy(Direction::Down, &in_shop(&widgets(), name), name, 2000));
        let copies: Vec<Value> = copies.collect();
        let source = self.copies_of(Side::Edge, "widgets").expect("they are read");
        self.list(source, &copies, version);
    }

    /// Namespaces are listed on both sides, without any, as far as they are read.
    pub(super) fn list_namespaces(&mut self, version: u64) {
        if let Some(copies) = self.copies_of(Side::Edge, "namespaces") {
            self.list(copies, &[], version);
        }
        if let Some(origins) = self.origins_of(Side::Hub, "namespaces") {
            self.list(origins, &[], version);
        }
    }

    /// True if the record names this type.
    pub(super) fn keeps(&self, resource: &str) -> bool {
        self.world.kept.types.iter().any(|known| known.resource == resource)
    }

    /// These `SyncerConfig`s are all that the hub has.
    pub(super) fn configure(&mut self, configs: &[Value]) {
        self.list_configs(ConfigKind::SyncerConfig, configs);
        self.list_configs(ConfigKind::EdgeSyncConfig, &[]);
    }

    pub(super) fn list_configs(&mut self, kind: ConfigKind, configs: &[Value]) {
        let source = self.source(Feed::Configs(kind));
        self.list(source, configs, 1);
    }

    /// A `SyncerConfig` is there, or changes.
    pub(super) fn config_says(&mut self, config: &Value) {
        let source = self.source(Feed::Configs(ConfigKind::SyncerConfig));
        self.says(source, config);
    }

    /// A config confirms the deletes with this token.
    pub(super) fn confirm(&mut self, token: &str) {
        let mut config = config("confirms", &json!({}));
        config["metadata"]["annotations"] = json!({crate::api::CONFIRM_DELETES: token});
        self.config_says(&config);
    }

    /// The condition about holds, as it is written to the configs within seconds.
    pub(super) fn condition(&self) -> Value {
        let condition = self.model.hold_condition();
        let status = if condition.held { "True" } else { "False" };
        json!({"status": status, "reason": condition.reason, "message": condition.message})
    }

    /// The last one that was written.
    pub(super) fn written_condition(&self) -> &Value {
        self.world.conditions.last().expect("it was written")
    }

    /// The token that confirms what is held, as people read it.
    pub(super) fn token(&self) -> String {
        let condition = self.condition();
        let message = condition["message"].as_str().unwrap_or_default();
        let (_, token) = message.split_once("confirm-deletes=").expect("something is held");
        token.chars().take_while(char::is_ascii_alphanumeric).collect()
    }

    /// How many deletes are held for this reason.
    pub(super) fn held_for(&mut self, direction: Direction, reason: &str) -> Option<usize> {
        let held = self.model.guard.held_by_reason(&self.model.types);
        let mut held = held.into_iter();
        held.find_map(|((of, why), objects)| (of == direction && why == reason).then_some(objects))
    }
}

/// A request as the log names it.
fn word(request: &Request) -> String {
    match request {
        Request::Discover(side, _) => format!("ask the {side} what it serves"),
        Request::ReadRecord(_) => "read the record".to_owned(),
        Request::WriteRecord(..) => "write the record".to_owned(),
        Request::Identify(side, _) => format!("ask the {side} who it is"),
        Request::Heartbeat(beat) => format!("heartbeat on {}", beat.configs.len()),
        Request::Statuses(statuses) => format!("statuses of {}", statuses.configs.len()),
        Request::Events(side, _) => format!("Events at the {side}"),
        Request::Define(..) => "ask what defines types".to_owned(),
        Request::Verify(..) | Request::VerifyConfigs(..) => "ask whether a type is withdrawn".to_owned(),
        Request::SearchForLeft(..) => "search for what is left".to_owned(),
        Request::FindNamespaces(names) => format!("look for namespaces {}", names.join(",")),
        Request::Object(..) | Request::Status(..) | Request::Namespace(..) => String::new(),
        Request::Tried(_) => "tell what remains".to_owned(),
    }
}

fn served(resource: ResourceType, status_subresource: bool) -> ServedResource {
    ServedResource {
        status_subresource,
        ..ServedResource::ordinary(resource)
    }
}
