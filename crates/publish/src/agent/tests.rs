use std::collections::BTreeSet;

use bytes::Bytes;
use driver::source::{Covers, SourceEvent, SourceId, Versions};
use driver::{Course, Effect, Event, Role};
use kube_lite::Error;
use serde_json::{Value, json};

use super::*;
use crate::publishing::Exported;
use crate::rivals;
use crate::route::Served;
use crate::sync::{Settled, Synced};
use crate::trouble::Stop;

/// An agent, what it reads, and what it wants done.
struct Bench {
    agent: Agent,
    now: Instant,
    sources: Vec<(SourceId, Feed)>,
    requests: Vec<Request>,
}

const VERSIONS: Versions = Versions {
    list: 1,
    before: 0,
    side: 0,
    has_lost: false,
};

impl Bench {
    /// One that has just started, by a slice or by the export alone.
    fn with(slice: Option<&str>) -> Self {
        Self::of_parts(slice, true)
    }

    /// The same, where another agent may make the schemas and write the export.
    fn of_parts(slice: Option<&str>, publishes: bool) -> Self {
        let now = Instant::now();
        let settings = Settings {
            agent: "agent".into(),
            namespace: "kcp-system".into(),
            selector: None,
            slice: slice.unwrap_or("export").into(),
            may_lack_slice: slice.is_none(),
            export: "export".into(),
            parts: Parts {
                schemas: publishes,
                export: publishes,
                sync: true,
            },
            applies: false,
            seed: 1,
        };
        let moment = Moment {
            now,
            contacts: Vec::new(),
        };
        let mut bench = Self {
            agent: Agent::new(settings, moment),
            now,
            sources: Vec::new(),
            requests: Vec::new(),
        };
        bench.act();
        bench
    }

    /// One that publishes a type, with a related Secret of the service cluster, and knows these shards.
    fn publishing(shards: &[&str]) -> Self {
        let mut bench = Self::with(Some("slice"));
        let related = json!({
            "identifier": "a", "origin": "service", "version": "v1", "resource": "secrets",
            "object": {"reference": {"path": "spec.secret"}}, "watch": {"bySelector": {}},
        });
        let spec = json!({"resource": {"apiGroup": "demo.example.org", "kind": "Shop"}, "related": [related]});
        bench.lists(
            Feed::Published,
            &[json!({"metadata": {"name": "shops", "uid": "1", "generation": 1}, "spec": spec})],
        );
        bench.shards(shards);
        bench.is_served("shops");
        bench
    }

    /// A PublishedResource has got its schema.
    fn is_served(&mut self, name: &str) {
        self.handle(Event::Answer(Answer::Published(name.into(), Ok(served("Shop")))));
        while self
            .requests
            .iter()
            .any(|request| matches!(request, Request::Export(_)))
        {
            self.requests.retain(|request| !matches!(request, Request::Export(_)));
            self.handle(Event::Answer(Answer::Exported(Ok(Exported::default()))));
        }
    }

    /// These are the shards now.
    fn shards(&mut self, urls: &[&str]) {
        let endpoints: Vec<Value> = urls.iter().map(|url| json!({"url": url})).collect();
        let slice = json!({"metadata": {"name": "slice"}, "status": {"endpoints": endpoints}});
        self.source(Feed::Slice, SourceEvent::Object(read(&slice)));
    }

    fn act(&mut self) {
        self.agent.advance();
        for effect in self.agent.effects() {
            match effect {
                Effect::Close(side) => {
                    self.sources.retain(|(_, feed)| driver::Feed::side(*feed) != side);
                    // As the driver does it: without an answer.
                    self.requests.retain(|request| !request.is_at(side));
                }
                Effect::Read(id, feed, _) => self.sources.push((id, feed)),
                Effect::End(id) => self.sources.retain(|(other, _)| *other != id),
                Effect::Request(request) => self.requests.push(request),
                Effect::Open(..) | Effect::Known(..) => {}
            }
        }
    }

    fn handle(&mut self, event: Event<Answer>) {
        let moment = Moment {
            now: self.now,
            contacts: Vec::new(),
        };
        assert_eq!(self.agent.handle(event, moment), Ok(Course::On));
        self.act();
    }

    fn source(&mut self, feed: Feed, event: SourceEvent) {
        let found = self.sources.iter().find(|(_, other)| *other == feed);
        let (id, _) = *found.expect("it is read");
        self.handle(Event::Source(id, event));
    }

    fn lists(&mut self, feed: Feed, objects: &[Value]) {
        self.source(feed, SourceEvent::Begin(Covers::Everything));
        for object in objects {
            self.source(feed, SourceEvent::Object(read(object)));
        }
        self.source(feed, SourceEvent::Complete(VERSIONS));
    }

    /// What has come of the one object that is to be synced.
    fn comes_to(&mut self, result: Result<Settled, Stop>) {
        let requests = std::mem::take(&mut self.requests);
        let mut primaries = requests.into_iter().filter_map(|request| match request {
            Request::Sync(primary, _) => Some(primary),
            _ => None,
        });
        let primary = primaries.next().expect("it is to be synced");
        let synced = Synced {
            result,
            records: Vec::new(),
            uses: None,
            left: BTreeSet::new(),
            uid: String::new(),
            version: 1,
        };
        self.handle(Event::Answer(Answer::Synced(primary, synced)));
    }

    /// How many objects are to be synced since the last call.
    fn syncing(&mut self) -> usize {
        let requests = std::mem::take(&mut self.requests);
        let syncing = requests.iter().filter(|request| matches!(request, Request::Sync(..)));
        syncing.count()
    }
}

impl Request {
    fn workspace(&self) -> Option<&str> {
        match self {
            Self::Sync(primary, _) => Some(primary.name.workspace()),
            _ => None,
        }
    }

    fn is_at(&self, side: Side) -> bool {
        match self {
            Self::Sync(primary, _) => primary.shard() == side,
            Self::Record(at, _) => *at == side,
            Self::Publish(..) | Self::Export(_) | Self::Clear(..) | Self::Forget(_) => false,
        }
    }
}

fn served(kind: &str) -> Served {
    let plural = format!("{}s", kind.to_lowercase());
    let of = ResourceType::new(["demo.example.org", "v1", &plural, kind], true);
    Served {
        schema: format!("v1.{plural}.demo.example.org").into(),
        remote: of.clone(),
        local: of,
        other_versions: Rc::default(),
        has_status: [true, true],
    }
}

fn bytes(object: &Value) -> Bytes {
    object.to_string().into()
}

fn read(object: &Value) -> Box<kube_lite::Object> {
    Box::new(kube_lite::Object::take_apart(bytes(object)).expect("it is an object"))
}

fn binding(workspace: &str) -> Value {
    let annotations = json!({"kcp.io/cluster": workspace});
    json!({"metadata": {"name": "shops", "annotations": annotations},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]}})
}

fn shop(name: &str, workspace: &str) -> Value {
    let annotations = json!({"kcp.io/cluster": workspace});
    json!({"metadata": {
        "name": name, "namespace": "default", "uid": name, "resourceVersion": "1", "annotations": annotations,
    }})
}

/// The shop `web` of the first workspace that was heard of, at a shard.
fn primary_at(shard: u32) -> Primary {
    Primary {
        route: 0,
        workspace: 0,
        sides: [Side::Service, Side::Shard(shard)],
        name: kube_lite::ObjectName::in_workspace("c0", "default", "web"),
    }
}

// Found with two real shards, one of which had stopped: objects of the other one waited until it counted as down.
#[test]
fn a_shard_that_answers_nothing_keeps_no_other_one_waiting() {
    let mut bench = Bench::publishing(&["https://a", "https://b"]);
    let many: Vec<Value> = (0..60).map(|at| shop(&format!("s{at}"), "c1")).collect();
    bench.lists(Feed::Primaries(0, 1), &many);
    let hung = bench.syncing();
    assert!(hung < AT_ONCE, "{hung}");
    bench.lists(Feed::Primaries(0, 0), &[shop("web", "c0")]);
    assert_eq!(bench.syncing(), 1);
}

#[test]
fn an_object_that_waits_without_news_is_checked_ever_less_often() {
    let mut bench = Bench::publishing(&["https://a"]);
    bench.lists(Feed::Primaries(0, 0), &[shop("web", "c0")]);
    let mut waits = Vec::new();
    for _ in 0..7 {
        bench.comes_to(Ok(Settled::Later));
        let due = bench.agent.queue.next_due().expect("it has its turn");
        waits.push((due - bench.now).as_secs());
        bench.now = due;
        bench.handle(Event::Due);
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 30, 30]);
}

#[test]
fn a_conflict_that_does_not_end_counts_as_a_failure() {
    let mut bench = Bench::publishing(&["https://a"]);
    bench.lists(Feed::Primaries(0, 0), &[shop("web", "c0")]);
    for _ in 0..5 {
        bench.comes_to(Err(Stop::again("updating the copy")));
        assert_eq!(bench.agent.report.failing(), 0);
    }
    bench.comes_to(Err(Stop::again("updating the copy")));
    assert_eq!((bench.agent.report.failing(), bench.syncing()), (1, 0));
    // It is tried again later.
    let due = bench.agent.queue.next_due().expect("it has its turn");
    assert!(due > bench.now);
}

#[test]
fn a_shard_that_leaves_takes_its_failures_along() {
    let mut bench = Bench::publishing(&["https://a", "https://b"]);
    let down = || SourceEvent::Down(Error::Unreachable("Connection refused".into()));
    for feed in [Feed::Bindings(1), Feed::Primaries(0, 1), Feed::Bindings(0)] {
        bench.source(feed, down());
    }
    assert_eq!(bench.agent.report.failing(), 3);
    bench.shards(&["https://a"]);
    assert_eq!(bench.agent.report.failing(), 1);
    // It is another one when it is back.
    bench.shards(&["https://a", "https://b"]);
    bench.source(Feed::Bindings(2), SourceEvent::Up);
    bench.source(Feed::Bindings(0), SourceEvent::Up);
    assert_eq!(bench.agent.report.failing(), 0);
}

// Found by an audit: nothing was done any more, and `/healthz` said that all was well.
#[test]
fn what_is_under_way_at_a_shard_that_leaves_is_over() {
    let mut bench = Bench::publishing(&["https://a"]);
    let many: Vec<Value> = (0..60).map(|at| shop(&format!("s{at}"), &format!("c{at}"))).collect();
    for round in 0..3 {
        bench.lists(Feed::Primaries(0, round), &many);
        assert_eq!(bench.syncing(), AT_ONCE, "round {round}");
        assert_eq!(bench.agent.taken.free(bench.now), 0);
        bench.shards(&[]);
        assert_eq!(bench.agent.taken.free(bench.now), AT_ONCE);
        assert!(bench.agent.queue.is_empty());
        // The server may still do what it was asked for.
        let later = bench.now + Duration::from_secs(100);
        assert!(!bench.agent.namespaces.begin_clearing(bench.now) && bench.agent.namespaces.begin_clearing(later));
        bench.agent.namespaces.is_not_cleared();
        bench.shards(&["https://a"]);
    }
}

// Found by an audit: one tenant's objects, each of which took long, left nothing to others.
#[test]
fn one_workspace_gets_half_of_what_is_done_at_once_and_of_many_each_its_part() {
    for (workspaces, expected) in [(1, 12), (2, 18), (3, 21), (24, 24), (60, 24)] {
        let mut bench = Bench::publishing(&["https://a"]);
        let many = (0..workspaces).flat_map(|of| (0..30).map(move |at| shop(&format!("s{at}"), &format!("c{of}"))));
        bench.lists(Feed::Primaries(0, 0), &many.collect::<Vec<_>>());
        assert_eq!(bench.syncing(), expected, "{workspaces}");
    }
    let mut bench = Bench::publishing(&["https://a"]);
    let many: Vec<Value> = (0..60).map(|at| shop(&format!("s{at}"), "c1")).collect();
    bench.lists(Feed::Primaries(0, 0), &many);
    bench.syncing();
    bench.source(Feed::Primaries(0, 0), SourceEvent::Object(read(&shop("web", "c2"))));
    assert_eq!(bench.syncing(), 1);
}

// A server may hang in some workspaces: what is done there has five minutes.
#[test]
fn workspaces_in_which_nothing_ends_keep_no_other_one_waiting() {
    let mut bench = Bench::publishing(&["https://a"]);
    let many = (0..5).flat_map(|of| (0..30).map(move |at| shop(&format!("s{at}"), &format!("c{of}"))));
    bench.lists(Feed::Primaries(0, 0), &many.collect::<Vec<_>>());
    assert_eq!(bench.syncing(), AT_ONCE);
    let begun = bench.now;
    bench.source(Feed::Primaries(0, 0), SourceEvent::Object(read(&shop("web", "c9"))));
    assert_eq!(bench.syncing(), 0);
    let due = bench.agent.next_due().expect("they are slow then");
    assert!(due <= begun + Duration::from_secs(5), "{:?}", due - begun);
    bench.now = due;
    bench.handle(Event::Due);
    let mut begun: Vec<_> = bench.requests.iter().filter_map(Request::workspace).collect();
    begun.sort_unstable();
    // Those that hang have four each, at least.
    assert_eq!(begun, ["c2", "c3", "c3", "c4", "c4", "c4", "c9"]);
}

#[test]
fn a_workspace_that_is_gone_is_forgotten_once_nothing_of_it_is_worked_on() {
    let mut bench = Bench::publishing(&["https://a"]);
    bench.lists(Feed::Bindings(0), &[binding("c0"), binding("c1")]);
    let feed = Feed::Primaries(0, 0);
    bench.lists(feed, &[shop("web", "c0"), shop("web", "c1")]);
    assert_eq!(bench.syncing(), 2);
    bench.lists(Feed::Bindings(0), &[binding("c1")]);
    // It is still worked on.
    assert_eq!(bench.agent.workspaces.len(), 2);
    bench.shards(&[]);
    let forgotten = bench
        .requests
        .iter()
        .filter(|request| matches!(request, Request::Forget(_)));
    assert_eq!((forgotten.count(), bench.agent.workspaces.len()), (2, 0));
    // It is another one when it is back.
    bench.shards(&["https://a"]);
    bench.lists(Feed::Primaries(0, 1), &[shop("web", "c0")]);
    assert_eq!(bench.agent.workspaces.values().copied().collect::<Vec<_>>(), [2]);
}

// Rules that had changed meanwhile waited for the end of passes by the former ones for ever.
#[test]
fn new_rules_begin_when_the_shard_leaves_at_which_the_former_ones_work() {
    let mut bench = Bench::publishing(&["https://a", "https://b"]);
    bench.lists(Feed::Primaries(0, 1), &[shop("web", "c0")]);
    assert_eq!(bench.syncing(), 1);
    let spec = json!({"resource": {"apiGroup": "demo.example.org", "kind": "Shop"}});
    let edited = json!({"metadata": {"name": "shops", "uid": "1", "generation": 2}, "spec": spec});
    bench.source(Feed::Published, SourceEvent::Object(read(&edited)));
    bench.is_served("shops");
    let reads = |bench: &Bench| bench.sources.iter().any(|(_, feed)| *feed == Feed::Copies(1));
    assert!(!reads(&bench));
    bench.shards(&["https://a"]);
    assert!(reads(&bench));
}

#[test]
fn an_object_that_another_shard_shows_has_no_turn_at_the_one_that_left() {
    let mut bench = Bench::publishing(&["https://a", "https://b"]);
    bench.lists(Feed::Primaries(0, 0), &[shop("web", "c0")]);
    bench.lists(Feed::Primaries(0, 1), &[shop("web", "c0")]);
    bench.shards(&["https://b"]);
    bench.comes_to(Ok(Settled::Waits));
    bench.agent.objects.holds(&primary_at(0));
    bench.handle(Event::Due);
    assert_eq!((bench.syncing(), bench.agent.taken.free(bench.now)), (0, AT_ONCE));
}

#[test]
fn that_nobody_has_bound_the_export_is_said_where_it_has_no_url() {
    let mut bench = Bench::publishing(&[]);
    assert_eq!(bench.agent.report.is_bound(), Some(false));
    bench.shards(&["https://a"]);
    bench.lists(Feed::Bindings(0), &[binding("c0")]);
    assert_eq!(bench.agent.report.is_bound(), Some(true));
    // The last consumer leaves, and the URL with it.
    bench.shards(&[]);
    assert_eq!(bench.agent.report.is_bound(), Some(false));
}

#[test]
fn an_export_that_is_gone_has_no_urls_where_no_slice_has_them() {
    let export = json!({"metadata": {"name": "export", "uid": "1"},
        "status": {"virtualWorkspaces": [{"url": "https://a"}]}});
    let mut bench = Bench::with(None);
    let shards = |bench: &Bench| bench.agent.shards.numbers().count();
    bench.lists(Feed::Export, std::slice::from_ref(&export));
    assert_eq!((shards(&bench), bench.agent.report.is_bound()), (0, None));
    bench.lists(Feed::Slice, &[]);
    assert_eq!(shards(&bench), 1);
    bench.source(Feed::Export, SourceEvent::Gone(read(&export)));
    assert_eq!(shards(&bench), 0);
}

/// A PublishedResource of a kind, created in this second.
fn published_of(kind: &str, second: u32, projection: &Value) -> Value {
    let metadata = json!({"name": kind, "uid": kind, "creationTimestamp": format!("2026-01-01T00:00:{second:02}Z")});
    json!({"metadata": metadata, "spec": {"resource": {"apiGroup": "demo.example.org", "kind": kind}, "projection": projection}})
}

impl Bench {
    /// What is asked for the export, each time that it is.
    fn exports(&mut self) -> Vec<Vec<String>> {
        let is_export = |request: &Request| matches!(request, Request::Export(_));
        let asked: Vec<Request> = self.requests.extract_if(.., |it| is_export(it)).collect();
        let names = asked.iter().map(|request| match request {
            Request::Export(job) => job.published.iter().map(|it| it.name.clone()).collect(),
            _ => Vec::new(),
        });
        let names = names.collect();
        for _ in asked {
            self.handle(Event::Answer(Answer::Exported(Ok(Exported::default()))));
        }
        names
    }
}

#[test]
fn the_export_gets_what_is_published_while_an_older_one_that_may_want_the_same_was_edited() {
    let mut bench = Bench::with(Some("slice"));
    let cart = |projection: &Value| published_of("Cart", 1, projection);
    let shop = published_of("Shop", 2, &json!({}));
    bench.lists(Feed::Published, &[cart(&json!({"kind": "Trolley"})), shop]);
    bench.exports();
    let trouble = rivals::trouble("x");
    bench.handle(Event::Answer(Answer::Published(
        "Cart".into(),
        Err(Stop::Fails(Box::new(trouble))),
    )));
    bench.now += LATER * 2;
    bench.handle(Event::Due);
    assert!(
        bench
            .requests
            .iter()
            .any(|request| matches!(request, Request::Publish(name, _) if &**name == "Shop"))
    );
    bench.source(
        Feed::Published,
        SourceEvent::Object(read(&cart(&json!({"kind": "Shop"})))),
    );
    bench.handle(Event::Answer(Answer::Published("Shop".into(), Ok(served("Shop")))));
    assert_eq!(bench.exports(), [["Cart", "Shop"]]);
}

#[test]
fn what_another_agent_publishes_later_is_synced_and_keeps_no_other_one_waiting() {
    let mut bench = Bench::of_parts(Some("slice"), false);
    let (mut shop, mut cart) = (
        published_of("Shop", 2, &json!({})),
        published_of("Cart", 1, &json!({"kind": "Trolley"})),
    );
    bench.lists(Feed::Published, &[cart.clone(), shop.clone()]);
    assert!(bench.requests.is_empty(), "neither has a schema");
    for one in [&mut shop, &mut cart] {
        one["status"] = json!({"resourceSchemaName": "a"});
        bench.source(Feed::Published, SourceEvent::Object(read(one)));
        let published = std::mem::take(&mut bench.requests);
        let name = one["metadata"]["name"].as_str().unwrap();
        assert!(
            matches!(&published[..], [Request::Publish(found, _)] if **found == *name),
            "{name}"
        );
    }
}
