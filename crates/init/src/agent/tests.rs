use std::collections::BTreeMap;
use std::mem;

use bytes::Bytes;
use driver::page::Now;
use driver::source::{Covers, SourceEvent, SourceId, Versions};
use serde_json::{Value, json};

use super::*;
use crate::kcp::{CLUSTER, parsed};
use crate::objects::SourceError;
use crate::sides::Location;

/// An agent, and the sources that it reads.
struct Bench {
    agent: Agent,
    now: Instant,
    sources: Vec<(SourceId, Feed)>,
    opened: BTreeMap<Side, Location>,
    requests: Vec<Request>,
}

const VERSIONS: Versions = Versions {
    list: 1,
    before: 0,
    side: 0,
    has_lost: false,
};

fn bytes(object: &Value) -> Bytes {
    object.to_string().into()
}

fn read(object: &Value) -> Box<kube_lite::Object> {
    Box::new(kube_lite::Object::take_apart(bytes(object)).expect("it is an object"))
}

fn target(name: &str, path: &str, template: &str) -> Value {
    json!({
        "metadata": {"name": name, "uid": format!("uid-{name}"), "annotations": {CLUSTER: "conf"}},
        "spec": {"workspaceTypeRef": {"path": path, "name": "dev"}, "sources": [{"template": {"name": template}}]},
    })
}

fn workspace_type(cluster: &str, urls: &[&str]) -> Value {
    let urls: Vec<Value> = urls
        .iter()
        .map(|url| json!({"url": format!("{url}/initializingworkspaces/x")}))
        .collect();
    json!({
        "metadata": {"name": "dev", "annotations": {CLUSTER: cluster}},
        "spec": {"initializer": true},
        "status": {"virtualWorkspaces": urls},
    })
}

fn logical_cluster(id: &str, version: u64) -> Value {
    let annotations = json!({CLUSTER: id});
    json!({
        "metadata": {"name": "cluster", "uid": id, "resourceVersion": version.to_string(), "annotations": annotations},
        "status": {"phase": "Initializing", "initializers": ["root:dev", "2abc:dev", "3abc:dev"]},
    })
}

impl Bench {
    fn new() -> Self {
        let now = Instant::now();
        let settings = Settings {
            selector: None,
            config_workspace: "root:conf".into(),
            seed: 1,
        };
        let agent = Agent::new(
            settings,
            Moment {
                now,
                contacts: Vec::new(),
            },
        );
        let mut bench = Self {
            agent,
            now,
            sources: Vec::new(),
            opened: BTreeMap::new(),
            requests: Vec::new(),
        };
        bench.act();
        bench
    }

    fn act(&mut self) {
        self.agent.advance();
        for effect in self.agent.effects() {
            match effect {
                Effect::Open(side, place) => drop(self.opened.insert(side, place)),
                Effect::Close(side) => {
                    self.opened.remove(&side);
                    self.sources.retain(|(_, feed)| driver::Feed::side(*feed) != side);
                }
                Effect::Read(id, feed, _) => self.sources.push((id, feed)),
                Effect::Request(request) => self.requests.push(request),
                Effect::End(_) | Effect::Known(..) => panic!("it does not do that"),
            }
        }
    }

    fn handle(&mut self, event: Event<Answer>) {
        let contacts = Vec::new();
        let moment = Moment {
            now: self.now,
            contacts,
        };
        assert_eq!(self.agent.handle(event, moment), Ok(Course::On));
        self.act();
    }

    fn source(&mut self, feed: Feed, event: SourceEvent) {
        let (id, _) = *self
            .sources
            .iter()
            .find(|(_, other)| *other == feed)
            .expect("it is read");
        self.handle(Event::Source(id, event));
    }

    /// A feed lists these.
    fn lists(&mut self, feed: Feed, objects: &[Value]) {
        self.source(feed, SourceEvent::Begin(Covers::Everything));
        for object in objects {
            self.source(feed, SourceEvent::Object(read(object)));
        }
        self.source(feed, SourceEvent::Complete(VERSIONS));
    }

    fn shows(&mut self, feed: Feed, object: &Value) {
        self.source(feed, SourceEvent::Object(read(object)));
    }

    /// The workspaces that are to be filled now, each with the names of its targets.
    fn filling(&mut self) -> Vec<(String, Vec<String>)> {
        let requests = mem::take(&mut self.requests);
        let filling = requests.into_iter().filter_map(|request| match request {
            Request::Fill(key, job) => Some((key, job)),
            _ => None,
        });
        let names = |job: &Job| job.targets.iter().map(|target| target.metadata.name.clone()).collect();
        filling
            .map(|(key, job)| (key.cluster.to_string(), names(&job)))
            .collect()
    }

    fn fills(&mut self, shard: u32, cluster: &str, outcome: Outcome) {
        let filled = Filled {
            path: format!("root:{cluster}"),
            created: 1,
            outcome,
        };
        self.handle(Event::Answer(Answer::Filled(key(shard, cluster), filled)));
    }

    /// The initializers that are to be taken off now.
    fn releasing(&mut self) -> Vec<(String, String)> {
        let requests = mem::take(&mut self.requests);
        let releasing = requests.into_iter().filter_map(|request| match request {
            Request::Release(key, initializer, 0) => Some((key.cluster.to_string(), initializer.to_string())),
            _ => None,
        });
        releasing.collect()
    }

    /// One that serves a type with one workspace, which is being filled.
    fn serving() -> Self {
        let mut bench = Self::new();
        bench.lists(Feed::Targets, &[target("a", "root", "t")]);
        bench.lists(Feed::Type(0), &[workspace_type("root", &["https://s1"])]);
        bench.lists(Feed::Clusters(0), &[logical_cluster("w", 1)]);
        assert_eq!(bench.filling(), [filled("w", &["a"])]);
        bench
    }
}

fn key(shard: u32, cluster: &str) -> Key {
    Key {
        shard: Side::Shard(shard),
        cluster: cluster.into(),
    }
}

fn filled(cluster: &str, targets: &[&str]) -> (String, Vec<String>) {
    (
        cluster.to_owned(),
        targets.iter().map(|&name| name.to_owned()).collect(),
    )
}

#[test]
fn a_workspace_is_filled_and_then_let_go() {
    let mut bench = Bench::serving();
    assert_eq!(bench.opened[&Side::Type(0)], Location::Workspace("root".into()));
    let url = "https://s1/initializingworkspaces/x";
    assert_eq!(bench.opened[&Side::Shard(0)], Location::Url(url.into()));
    bench.fills(0, "w", Outcome::Complete(0));
    assert_eq!(bench.releasing(), [("w".to_owned(), "root:dev".to_owned())]);
    bench.handle(Event::Answer(Answer::Released(key(0, "w"), Ok(Released::At(7)))));
    bench.shows(Feed::Clusters(0), &logical_cluster("w", 6));
    assert_eq!(bench.filling(), []);
    let now = Now {
        at: Instant::now(),
        since_1970: Duration::ZERO,
    };
    let text = metrics::render(bench.agent.report.counters(), &bench.agent.groups, 0, &[], now);
    for line in [
        "edge_syncer_init_workspaces_initialized_total{target=\"a\"} 1\n",
        "edge_syncer_init_workspaces_waiting{target=\"a\"} 0\n",
        "edge_syncer_init_seconds_bucket{target=\"a\",le=\"0.1\"} 1\n",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[test]
fn nobody_is_let_go_with_less_than_what_is_wanted_by_then() {
    let changes: [fn(&mut Bench); 3] = [
        |bench| bench.shows(Feed::Targets, &target("a", "root", "other")),
        |bench| {
            bench.shows(
                Feed::Templates,
                &json!({"metadata": {"name": "t", "annotations": {CLUSTER: "conf"}}}),
            );
        },
        |bench| {
            bench.shows(Feed::Targets, &target("b", "root", "t"));
        },
    ];
    for change in changes {
        let mut bench = Bench::serving();
        change(&mut bench);
        bench.fills(0, "w", Outcome::Complete(0));
        assert_eq!(bench.filling().len(), 1, "once more");
        bench.fills(0, "w", Outcome::Complete(0));
        assert_eq!(bench.releasing().len(), 1);
    }
    let mut bench = Bench::serving();
    bench.shows(Feed::Templates, &json!({"metadata": {"name": "unused"}}));
    bench.shows(Feed::Targets, &target("a", "root", "t"));
    bench.fills(0, "w", Outcome::Complete(0));
    assert_eq!(bench.releasing().len(), 1, "nothing has changed for it");
}

#[test]
fn a_shard_that_answers_nothing_keeps_no_other_one_waiting() {
    let mut bench = Bench::new();
    bench.lists(Feed::Targets, &[target("a", "root", "t")]);
    bench.lists(Feed::Type(0), &[workspace_type("root", &["https://s1", "https://s2"])]);
    let many = ["w1", "w2", "w3", "w4", "w5"].map(|id| logical_cluster(id, 1));
    bench.lists(Feed::Clusters(1), &many);
    assert_eq!(bench.filling().len(), 3);
    bench.lists(Feed::Clusters(0), &[logical_cluster("v", 1)]);
    assert_eq!(bench.filling(), [filled("v", &["a"])]);
}

#[test]
fn a_type_by_its_path_and_by_its_id_is_one() {
    let mut bench = Bench::new();
    let targets = [target("b", "root:org", "t"), target("a", "2abc", "t")];
    bench.lists(Feed::Targets, &targets);
    // Paths in their order: 2abc, root:org.
    bench.lists(Feed::Type(1), &[workspace_type("2abc", &["https://s1"])]);
    bench.lists(Feed::Clusters(0), &[logical_cluster("w", 1)]);
    assert_eq!(bench.filling(), [], "the other one may be the same type");
    bench.lists(Feed::Type(0), &[workspace_type("2abc", &["https://s1"])]);
    assert_eq!(bench.filling(), [filled("w", &["a", "b"])]);
    // Without any answer it would wait for ever; with one that it is not there, it does not.
    let mut bench = Bench::new();
    bench.lists(Feed::Targets, &targets);
    bench.lists(Feed::Type(1), &[workspace_type("2abc", &["https://s1"])]);
    bench.lists(Feed::Clusters(0), &[logical_cluster("w", 1)]);
    bench.lists(Feed::Type(0), &[]);
    assert_eq!(bench.filling(), [filled("w", &["b"])]);
}

#[test]
fn a_target_without_a_path_means_a_type_beside_it() {
    let mut bench = Bench::new();
    let mut unplaced = target("b", "", "t");
    unplaced["metadata"].as_object_mut().unwrap().remove("annotations");
    bench.lists(Feed::Targets, &[target("a", "", "t"), unplaced]);
    let places: Vec<&Location> = bench.opened.values().collect();
    assert_eq!(
        places,
        [
            &Location::Workspace("conf".into()),
            &Location::Workspace("root:conf".into())
        ]
    );
}

#[test]
fn shards_come_and_go_with_the_urls_of_the_type() {
    let mut bench = Bench::serving();
    bench.shows(Feed::Type(0), &workspace_type("root", &["https://s1", "https://s2"]));
    bench.lists(Feed::Clusters(1), &[logical_cluster("v", 1)]);
    assert_eq!(bench.filling(), [filled("v", &["a"])]);
    bench.shows(Feed::Type(0), &workspace_type("root", &["https://s2"]));
    let sides: Vec<&Side> = bench.opened.keys().collect();
    assert_eq!(sides, [&Side::Type(0), &Side::Shard(1)]);
    // A late answer changes nothing.
    bench.fills(0, "w", Outcome::Complete(0));
    assert_eq!(bench.releasing(), []);
    bench.source(
        Feed::Type(0),
        SourceEvent::Gone(read(&workspace_type("root", &["https://s2"]))),
    );
    assert_eq!(bench.opened.keys().collect::<Vec<_>>(), [&Side::Type(0)]);
    bench.shows(Feed::Type(0), &workspace_type("root", &["https://s2"]));
    bench.lists(Feed::Clusters(2), &[logical_cluster("v", 1)]);
    assert_eq!(bench.filling(), [filled("v", &["a"])], "the type has come back");
}

#[test]
fn a_target_that_is_gone_or_being_deleted_is_served_no_longer() {
    let mut deleted = target("a", "root", "t");
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let ends: [fn(&mut Bench, &Value); 3] = [
        |bench, _| bench.source(Feed::Targets, SourceEvent::Gone(read(&target("a", "root", "t")))),
        |bench, deleted| bench.shows(Feed::Targets, deleted),
        |bench, _| bench.lists(Feed::Targets, &[]),
    ];
    for end in ends {
        let mut bench = Bench::serving();
        end(&mut bench, &deleted);
        assert!(bench.opened.is_empty(), "{:?}", bench.opened);
        bench.fills(0, "w", Outcome::Complete(0));
        assert_eq!(bench.releasing(), []);
        bench.shows(Feed::Targets, &target("a", "root", "t"));
        bench.lists(Feed::Type(1), &[workspace_type("root", &["https://s1"])]);
        bench.lists(Feed::Clusters(1), &[logical_cluster("w", 1)]);
        assert_eq!(bench.filling(), [filled("w", &["a"])]);
    }
}

#[test]
fn what_fails_is_written_down_once_and_tried_at_once_when_the_template_changes() {
    let mut bench = Bench::serving();
    let object = bytes(&target("a", "root", "t"));
    let parsed: crate::kinds::InitTarget = parsed(&object).unwrap();
    let why = || {
        Why::Source(SourceError::NoTemplate {
            template: "t".to_owned(),
        })
    };
    for round in 0..3 {
        bench.fills(0, "w", Outcome::Fails(Trouble::of_source(&parsed, 0, why())));
        let records: Vec<_> = mem::take(&mut bench.requests)
            .into_iter()
            .filter_map(|request| match request {
                Request::Record(record) => Some(record),
                _ => None,
            })
            .collect();
        assert_eq!(records.len(), usize::from(round == 0));
        for record in records {
            assert_eq!((&*record.object.name, &*record.uid), ("a", "uid-a"));
            let expected = "workspace root:w, sources[0]: there is no InitTemplate t; ";
            assert!(record.message.starts_with(expected), "{}", record.message);
        }
        bench.shows(
            Feed::Templates,
            &json!({"metadata": {"name": "t", "annotations": {CLUSTER: "conf"}}}),
        );
        assert_eq!(bench.filling().len(), 1);
    }
}

#[test]
fn it_is_ready_once_targets_and_types_are_read() {
    let mut bench = Bench::new();
    let ready = |bench: &Bench| bench.agent.missing().map(str::trim_end);
    assert_eq!(ready(&bench), Some("the InitTargets are not read yet"));
    bench.lists(Feed::Targets, &[target("a", "root", "t")]);
    assert_eq!(ready(&bench), Some("the types of the InitTargets are not read yet"));
    bench.source(Feed::Type(0), SourceEvent::Down(Error::Unreachable("away".to_owned())));
    assert!(ready(&bench).is_some());
    bench.source(Feed::Type(0), SourceEvent::Down(Error::from_answer(403, None, b"")));
    assert_eq!(ready(&bench), None);
}

#[test]
fn nothing_is_due_while_it_is_not_known_what_is_wanted() {
    let mut bench = Bench::serving();
    bench.fills(0, "w", Outcome::Fails(Trouble::of_workspace(Why::NoPath)));
    assert!(bench.agent.next_due().is_some());
    bench.shows(Feed::Targets, &target("b", "2abc", "t"));
    // What there is to say of the targets begins to be read.
    bench.now += Duration::from_secs(1);
    bench.handle(Event::Due);
    let due = bench.agent.next_due();
    assert!(
        due.is_none_or(|due| due > bench.now + Duration::from_secs(10)),
        "{due:?}"
    );
    bench.now += Duration::from_secs(1);
    bench.lists(Feed::Type(1), &[]);
    assert_eq!(bench.filling().len(), 1);
    bench.shows(Feed::Targets, &target("c", "3abc", "t"));
    bench.fills(0, "w", Outcome::Complete(0));
    assert_eq!(bench.releasing().len(), 0, "it may be of this type");
}
