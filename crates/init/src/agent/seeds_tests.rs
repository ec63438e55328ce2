//! Many histories of targets, templates, types and workspaces that come and go, with lists that begin once more, shards that
//! close, requests that fail and answers that come late. Whatever happens: nobody is let go with less than what the agent has
//! heard to be wanted, and in the end nobody is left waiting.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::Bytes;
use driver::source::{Covers, SourceEvent, SourceId, Versions};
use serde_json::{Value, json};

use super::*;
use crate::kcp::CLUSTER;
use crate::sides::Location;

const SEEDS: u64 = 300;
/// What happens in a history before all is well.
const STEPS: u32 = 400;
/// In the end, nobody may wait for longer.
const PATIENCE: Duration = Duration::from_secs(600);

const VERSIONS: Versions = Versions {
    list: 1,
    before: 0,
    side: 0,
    has_lost: false,
};

/// One type under two names, and another one.
const TYPES: [(&str, &str); 3] = [("root:a", "2a"), ("2a", "2a"), ("root:b", "2b")];

#[derive(Default)]
struct Workspace {
    waits: bool,
    uid: u64,
    version: u64,
    url: usize,
    /// The templates that it has got, each with its version.
    has: BTreeMap<String, u64>,
}

/// kcp.
#[derive(Default)]
struct World {
    /// Each with its type and its template.
    targets: BTreeMap<String, (usize, String)>,
    templates: BTreeMap<String, u64>,
    /// The URLs of each cluster's type.
    urls: BTreeMap<&'static str, BTreeSet<usize>>,
    /// By cluster of the type, and id.
    workspaces: BTreeMap<(&'static str, String), Workspace>,
    version: u64,
}

/// What the agent has heard.
#[derive(Default)]
struct Heard {
    targets: BTreeMap<String, (usize, String)>,
    templates: BTreeMap<String, u64>,
}

struct Source {
    feed: Feed,
    events: VecDeque<SourceEvent>,
    /// What it has shown, by name.
    shown: BTreeMap<String, Value>,
}

struct History {
    random: fastrand::Rng,
    world: World,
    heard: Heard,
    agent: Agent,
    now: Instant,
    sources: BTreeMap<SourceId, Source>,
    places: BTreeMap<Side, Location>,
    requests: Vec<Request>,
    /// What has been done, and the agent has not heard of.
    answers: Vec<Answer>,
    is_calm: bool,
}

fn bytes(object: &Value) -> Bytes {
    object.to_string().into()
}

fn read(object: &Value) -> Box<kube_lite::Object> {
    Box::new(kube_lite::Object::take_apart(bytes(object)).expect("it is an object"))
}

fn url(cluster: &str, number: usize) -> String {
    format!("https://s{number}/services/initializingworkspaces/{cluster}:dev")
}

impl History {
    fn new(seed: u64) -> Self {
        let now = Instant::now();
        let contacts = Vec::new();
        let settings = Settings {
            selector: None,
            config_workspace: "root:conf".into(),
            seed,
        };
        let mut world = World::default();
        for (cluster, shards) in [("2a", vec![0, 1]), ("2b", vec![0])] {
            world.urls.insert(cluster, shards.into_iter().collect());
        }
        Self {
            random: fastrand::Rng::with_seed(seed),
            world,
            heard: Heard::default(),
            agent: Agent::new(settings, Moment { now, contacts }),
            now,
            sources: BTreeMap::new(),
            places: BTreeMap::new(),
            requests: Vec::new(),
            answers: Vec::new(),
            is_calm: false,
        }
    }

    fn act(&mut self) {
        self.agent.advance();
        for effect in self.agent.effects() {
            match effect {
                Effect::Open(side, place) => drop(self.places.insert(side, place)),
                Effect::Close(side) => {
                    self.places.remove(&side);
                    self.sources.retain(|_, source| driver::Feed::side(source.feed) != side);
                    self.requests.retain(|request| match request {
                        Request::Fill(key, _) | Request::Release(key, ..) => key.shard != side,
                        Request::Record(_) | Request::Examine(..) | Request::WriteStatus(..) => true,
                    });
                    self.answers.retain(|answer| match answer {
                        Answer::Filled(key, _) | Answer::Released(key, _) => key.shard != side,
                        Answer::Recorded(_) | Answer::Examined(..) | Answer::StatusWritten(..) => true,
                    });
                }
                Effect::Read(id, feed, _) => {
                    let source = Source {
                        feed,
                        events: VecDeque::new(),
                        shown: BTreeMap::new(),
                    };
                    self.sources.insert(id, source);
                    self.list(id);
                }
                Effect::Request(request) => {
                    self.judge(&request);
                    self.requests.push(request);
                }
                Effect::End(_) | Effect::Known(..) => panic!("it does not do that"),
            }
        }
    }

    fn handle(&mut self, event: Event<Answer>) {
        let contacts = self.places.keys().map(|&side| {
            let standing = Standing {
                answers: true,
                ..Standing::default()
            };
            (side, standing)
        });
        let moment = Moment {
            now: self.now,
            contacts: contacts.collect(),
        };
        assert_eq!(self.agent.handle(event, moment), Ok(Course::On));
        self.act();
    }

    /// Nobody is let go with less than what the agent knows to be wanted.
    fn judge(&self, request: &Request) {
        let Request::Release(key, initializer, _) = request else {
            return;
        };
        let cluster = initializer.split(':').next().unwrap_or_default();
        let workspace = self
            .world
            .workspaces
            .iter()
            .find(|((of, id), _)| *of == cluster && **id == *key.cluster);
        let Some((_, workspace)) = workspace else { return };
        for (name, (of, template)) in &self.heard.targets {
            let wanted = self.heard.templates.get(template).copied().unwrap_or_default();
            let is_there = workspace.has.get(template).is_some_and(|&version| version >= wanted);
            assert!(
                TYPES[*of].1 != cluster || is_there,
                "{} lacks {template} of {name}",
                key.cluster
            );
        }
    }

    /// What a source shows now, by name.
    fn view(&self, feed: Feed) -> BTreeMap<String, Value> {
        match feed {
            Feed::Targets => self
                .world
                .targets
                .iter()
                .map(|(name, target)| (name.clone(), target_of(name, target)))
                .collect(),
            Feed::Templates => {
                let template = |(name, version): (&String, &u64)| {
                    let annotations = json!({CLUSTER: "conf", "version": version.to_string()});
                    (
                        name.clone(),
                        json!({"metadata": {"name": name, "annotations": annotations}}),
                    )
                };
                self.world.templates.iter().map(template).collect()
            }
            Feed::Type(_) => {
                let Some(Location::Workspace(at)) = self.places.get(&driver::Feed::side(feed)) else {
                    return BTreeMap::new();
                };
                let found = TYPES
                    .iter()
                    .find(|(path, _)| *path == &**at)
                    .map(|(_, cluster)| *cluster);
                let of = |cluster: &'static str| {
                    let urls = self.world.urls.get(cluster)?;
                    let urls: Vec<Value> = urls
                        .iter()
                        .map(|&number| json!({"url": url(cluster, number)}))
                        .collect();
                    Some(json!({
                        "metadata": {"name": "dev", "annotations": {CLUSTER: cluster}},
                        "spec": {"initializer": true},
                        "status": {"virtualWorkspaces": urls},
                    }))
                };
                found
                    .and_then(of)
                    .into_iter()
                    .map(|found| ("dev".to_owned(), found))
                    .collect()
            }
            Feed::Clusters(_) => {
                let Some(Location::Url(at)) = self.places.get(&driver::Feed::side(feed)) else {
                    return BTreeMap::new();
                };
                let shown = self
                    .world
                    .workspaces
                    .iter()
                    .filter(|((cluster, _), workspace)| workspace.waits && *url(cluster, workspace.url) == **at);
                let object = |((_, id), workspace): (&(&str, String), &Workspace)| {
                    let annotations = json!({CLUSTER: id});
                    let version = workspace.version.to_string();
                    let uid = workspace.uid.to_string();
                    (
                        id.clone(),
                        json!({
                            "metadata": {"name": "cluster", "uid": uid, "resourceVersion": version, "annotations": annotations},
                            "status": {"phase": "Initializing", "initializers": ["2a:dev", "2b:dev"]},
                        }),
                    )
                };
                shown.map(object).collect()
            }
        }
    }

    /// A source begins its list, whatever it was about to say.
    fn list(&mut self, id: SourceId) {
        let Some(feed) = self.sources.get(&id).map(|source| source.feed) else {
            return;
        };
        let view = self.view(feed);
        let source = self.sources.get_mut(&id).expect("it is read");
        source.events.clear();
        source.events.push_back(SourceEvent::Begin(Covers::Everything));
        source
            .events
            .extend(view.values().map(|object| SourceEvent::Object(read(object))));
        source.events.push_back(SourceEvent::Complete(VERSIONS));
        source.shown = view;
    }

    /// What has changed is on its way to the agent.
    fn changes(&mut self) {
        let ids: Vec<SourceId> = self.sources.keys().copied().collect();
        for id in ids {
            let view = self.view(self.sources[&id].feed);
            let source = self.sources.get_mut(&id).expect("it is read");
            for (name, object) in &view {
                if source.shown.get(name) != Some(object) {
                    source.events.push_back(SourceEvent::Object(read(object)));
                }
            }
            for (name, object) in &source.shown {
                if !view.contains_key(name) {
                    source.events.push_back(SourceEvent::Gone(read(object)));
                }
            }
            source.shown = view;
        }
    }

    /// The agent hears the next thing of a source.
    fn hears(&mut self, id: SourceId) {
        let source = self.sources.get_mut(&id);
        let Some((feed, event)) = source.and_then(|source| Some((source.feed, source.events.pop_front()?))) else {
            return;
        };
        match (feed, &event) {
            (Feed::Targets, SourceEvent::Object(object)) => {
                let target: Value = serde_json::from_slice(object.bytes()).expect("it is an object");
                let path = target["spec"]["workspaceTypeRef"]["path"].as_str().expect("it has one");
                let of = TYPES.iter().position(|(known, _)| *known == path).expect("it is known");
                let template = target["spec"]["sources"][0]["template"]["name"]
                    .as_str()
                    .expect("it has one");
                let name = target["metadata"]["name"].as_str().expect("it has one");
                self.heard.targets.insert(name.to_owned(), (of, template.to_owned()));
            }
            (Feed::Targets, SourceEvent::Gone(object)) => {
                let target: Value = serde_json::from_slice(object.bytes()).expect("it is an object");
                self.heard
                    .targets
                    .remove(target["metadata"]["name"].as_str().expect("it has one"));
            }
            (Feed::Targets, SourceEvent::Complete(_)) => {
                let shown = self.sources[&id].shown.clone();
                self.heard.targets.retain(|name, _| shown.contains_key(name));
            }
            (Feed::Templates, SourceEvent::Object(object)) => {
                let template: Value = serde_json::from_slice(object.bytes()).expect("it is an object");
                let version = template["metadata"]["annotations"]["version"]
                    .as_str()
                    .expect("it has one");
                let name = template["metadata"]["name"].as_str().expect("it has one").to_owned();
                self.heard
                    .templates
                    .insert(name, version.parse().expect("it is a number"));
            }
            _ => {}
        }
        self.handle(Event::Source(id, event));
    }

    /// A request ends.
    fn ends(&mut self, at: usize) {
        match self.requests.swap_remove(at) {
            Request::Fill(key, job) => {
                let outcome = self.fill(&key, &job);
                let filled = Filled {
                    path: format!("root:{}", key.cluster),
                    created: 0,
                    outcome,
                };
                self.answers.push(Answer::Filled(key, filled));
            }
            Request::Release(key, initializer, _) => {
                let result = self.release(&key, &initializer);
                self.changes();
                self.answers.push(Answer::Released(key, result));
            }
            Request::Record(_) => self.answers.push(Answer::Recorded(Ok(()))),
            Request::Examine(target, changes) => {
                self.answers.push(Answer::Examined(target.object_name(), changes, None));
            }
            Request::WriteStatus(name, _, status) => {
                let fails = self.fails().then(|| Error::from_answer(403, None, b""));
                self.answers
                    .push(Answer::StatusWritten(name, fails.map_or(Ok(status), Err)));
            }
        }
    }

    fn fails(&mut self) -> bool {
        !self.is_calm && self.random.u8(..4) == 0
    }

    fn fill(&mut self, key: &Key, job: &Job) -> Outcome {
        let trouble = |why| Trouble::of_workspace(why);
        let cluster = job.initializer.split(':').next().unwrap_or_default().to_owned();
        for target in &*job.targets {
            if self.fails() {
                return match self.random.u8(..3) {
                    0 => Outcome::Fails(trouble(Why::NoPath)),
                    1 => Outcome::Waits(Rc::default()),
                    _ => Outcome::Unreachable(key.shard, Error::Unreachable("away".to_owned())),
                };
            }
            let template = &target.spec.sources[0].template.as_ref().expect("it has one").name;
            let Some(&version) = self.world.templates.get(template) else {
                return Outcome::Fails(trouble(Why::NoName));
            };
            let found = self
                .world
                .workspaces
                .iter_mut()
                .find(|((of, id), _)| *of == cluster && **id == *key.cluster);
            let Some((_, workspace)) = found.filter(|(_, workspace)| workspace.waits) else {
                return Outcome::Gone;
            };
            workspace.has.insert(template.clone(), version);
        }
        Outcome::Complete(0)
    }

    fn release(&mut self, key: &Key, initializer: &str) -> Result<Released, Error> {
        // The request may get lost, the answer too; and kcp writes an older object now and then, so that the initializer is
        // back before the answer is there.
        let (is_lost, comes_back, is_unheard) = (self.fails(), self.fails(), self.fails());
        if is_lost {
            return Err(Error::Unanswered("it hangs".to_owned()));
        }
        let cluster = initializer.split(':').next().unwrap_or_default();
        let mut all = self.world.workspaces.iter_mut();
        let found = all.find(|((of, id), _)| *of == cluster && **id == *key.cluster);
        let Some((_, workspace)) = found.filter(|(_, workspace)| workspace.waits) else {
            return Ok(Released::Before);
        };
        self.world.version += 2;
        let released = self.world.version - 1;
        (workspace.waits, workspace.version) = (comes_back, released + u64::from(comes_back));
        if is_unheard {
            return Err(Error::Unreachable("away".to_owned()));
        }
        Ok(Released::At(released))
    }

    /// Somebody does something.
    fn happens(&mut self) {
        let random = &mut self.random;
        let (name, template) = (format!("t{}", random.u8(..3)), format!("m{}", random.u8(..3)));
        let world = &mut self.world;
        world.version += 1;
        match random.u8(..10) {
            0 | 1 => drop(world.targets.insert(name, (random.usize(..TYPES.len()), template))),
            2 => drop(world.targets.remove(&name)),
            3 | 4 => drop(world.templates.insert(template, world.version)),
            5 => drop(world.templates.remove(&template)),
            6 => {
                let urls = world.urls.entry(if random.bool() { "2a" } else { "2b" }).or_default();
                let number = random.usize(..2);
                if !urls.remove(&number) {
                    urls.insert(number);
                }
            }
            _ => {
                let cluster = if random.bool() { "2a" } else { "2b" };
                // One that is let go may be created again, or have to wait once more: somebody has put the initializer back.
                let is_new = random.bool();
                let id = format!("w{}", random.u8(..12));
                let workspace = world.workspaces.entry((cluster, id)).or_default();
                if !workspace.waits {
                    (workspace.waits, workspace.version) = (true, world.version);
                    if is_new || workspace.uid == 0 {
                        (workspace.uid, workspace.url) = (world.version, random.usize(..2));
                        workspace.has.clear();
                    }
                }
            }
        }
        self.changes();
    }

    fn step(&mut self) {
        match self.random.u8(..10) {
            0 if !self.is_calm => self.happens(),
            1 if !self.is_calm => {
                let ids: Vec<SourceId> = self.sources.keys().copied().collect();
                let id = ids[self.random.usize(..ids.len())];
                let down = SourceEvent::Down(Error::Unanswered("cut".to_owned()));
                self.handle(Event::Source(id, down));
                self.list(id);
            }
            2..6 => {
                let ids: Vec<SourceId> = self.sources.keys().copied().collect();
                let id = ids[self.random.usize(..ids.len())];
                self.hears(id);
            }
            6 if !self.answers.is_empty() => {
                let at = self.random.usize(..self.answers.len());
                let answer = self.answers.swap_remove(at);
                self.handle(Event::Answer(answer));
            }
            _ if !self.requests.is_empty() => {
                let at = self.random.usize(..self.requests.len());
                self.ends(at);
            }
            _ => {
                if let Some(due) = self.agent.next_due() {
                    self.now = due.max(self.now);
                    self.handle(Event::Due);
                }
            }
        }
    }

    fn is_quiet(&self) -> bool {
        self.requests.is_empty()
            && self.answers.is_empty()
            && self.sources.values().all(|source| source.events.is_empty())
    }

    /// From now on all is well, and all that is wanted is there.
    fn calms(&mut self) {
        self.is_calm = true;
        for template in ["m0", "m1", "m2"] {
            self.world.version += 1;
            let version = self.world.version;
            self.world.templates.entry(template.to_owned()).or_insert(version);
        }
        for cluster in ["2a", "2b"] {
            self.world.urls.insert(cluster, BTreeSet::from([0, 1]));
        }
        self.changes();
    }
}

fn target_of(name: &str, (of, template): &(usize, String)) -> Value {
    json!({
        "metadata": {"name": name, "annotations": {CLUSTER: "conf"}},
        "spec": {"workspaceTypeRef": {"path": TYPES[*of].0, "name": "dev"}, "sources": [{"template": {"name": template}}]},
    })
}

fn run(seed: u64) {
    let mut history = History::new(seed);
    history.act();
    for _ in 0..STEPS {
        history.step();
    }
    history.calms();
    let began = history.now;
    let mut at_once = 0;
    while !history.is_quiet() || history.agent.next_due().is_some_and(|due| due <= began + PATIENCE) {
        let before = history.now;
        history.step();
        at_once = if history.now == before { at_once + 1 } else { 0 };
        assert!(at_once < 20_000, "seed {seed}: nothing ends");
    }
    let served: BTreeSet<&str> = history.world.targets.values().map(|(of, _)| TYPES[*of].1).collect();
    for ((cluster, id), workspace) in &history.world.workspaces {
        assert!(
            !workspace.waits || !served.contains(cluster),
            "seed {seed}: {id} of {cluster} is left waiting"
        );
    }
}

#[test]
fn nobody_is_let_go_too_early_or_left_waiting() {
    for seed in 0..SEEDS {
        run(seed);
    }
}
