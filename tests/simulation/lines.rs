//! How much the syncer says while something fails: a few lines, however long it lasts.

use std::collections::BTreeMap;
use std::time::Duration;

use edge_syncer::side::Side;
use serde_json::json;

use crate::changes::downsync_type;
use crate::check;
use crate::sim::lines;
use crate::sim::request::Verb;
use crate::sim::run::{Run, tell};
use crate::sim::weather::{Streaming, Trouble};
use crate::stories::{downsync, seconds, upsync};

const HOUR: Duration = Duration::from_secs(3600);
/// Objects of each type and side.
const OBJECTS: usize = 5;
/// Lines about one thing that fails: of each of a few ways, and that it fails repeatedly.
const ABOUT_ONE: usize = 4;
/// The same where chance decides how each request fails: in between, it may have worked for a while.
const ABOUT_ONE_BY_CHANCE: usize = 15;
/// All lines about failures in an hour of trouble at one side: there are ten objects and as many sources, types and others.
const ALL: usize = 50;
/// The same where chance decides.
const ALL_BY_CHANCE: usize = 80;

/// Every kind of trouble that can last.
fn troubles() -> Vec<Trouble> {
    let maps = || "configmaps".to_owned();
    let mut all = vec![
        Trouble::Down { silent: false },
        Trouble::Down { silent: true },
        Trouble::LostRequest,
        Trouble::LostReply,
        Trouble::Cut,
        Trouble::Truncated,
        Trouble::Html,
        Trouble::Busy,
        Trouble::Unauthorized,
        Trouble::Forbidden(String::new()),
        Trouble::Forbidden(maps()),
        Trouble::NotServed(String::new()),
        Trouble::NotServed(maps()),
        Trouble::NotServed("gauges.metrics.example.org".to_owned()),
        Trouble::SettingUp("configmaps"),
        Trouble::Unavailable("configmaps"),
        Trouble::Hangs("configmaps"),
        Trouble::Gateway("configmaps"),
        Trouble::EmptyListOf("configmaps"),
        Trouble::PartialDiscovery,
        Trouble::Late,
        Trouble::Stale,
        Trouble::NoBookmarks,
        Trouble::Expired,
        Trouble::Interrupted,
    ];
    let verbs = [
        Verb::Discover,
        Verb::Get,
        Verb::List,
        Verb::Watch,
        Verb::Stream,
        Verb::Apply,
        Verb::Create,
        Verb::Delete,
    ];
    for verb in verbs {
        all.extend([
            Trouble::PageFor(verb),
            Trouble::RefusedFor(verb),
            Trouble::NotFoundFor(verb),
        ]);
    }
    all
}

/// Two types go down and one up, through the same namespaces; a type has several sources at each side.
async fn work(run: &mut Run) {
    downsync(run);
    downsync_type(run, "another", "apps", "deployments", "v1");
    upsync(run, &["field", "meadow"]);
    let (hub, edge) = (&run.world.hub, &run.world.edge);
    for namespace in ["field", "meadow"] {
        edge.create("people", "namespaces", "", namespace, json!({}));
    }
    for index in 0..OBJECTS {
        let name = format!("x{index}");
        for resource in ["configmaps", "deployments.apps"] {
            hub.create("people", resource, "shop", &name, json!({}));
        }
        edge.create("people", "configmaps", "field", &name, json!({}));
    }
    run.start();
    seconds(60).await;
}

/// People go on changing the same objects, so that reads and writes are tried again and again.
async fn an_hour_of_changes(run: &Run) {
    for round in 0..12 {
        seconds(300).await;
        for index in 0..OBJECTS {
            let (name, change) = (format!("x{index}"), json!({"data": {"round": round.to_string()}}));
            for (server, namespace) in [(&run.world.hub, "shop"), (&run.world.edge, "field")] {
                let key = crate::sim::store::Key::new("configmaps", namespace, &name);
                server.patch("people", &key, &change);
            }
        }
    }
}

/// What a line is about: its words up to what the server has said.
fn about(line: &str) -> &str {
    line.split(" error=").next().unwrap_or(line)
}

/// What is wrong with what is said in an hour of trouble at one side; nothing, mostly.
fn an_hour_of(trouble: &Trouble, side: Side, streaming: Streaming) -> Option<String> {
    lines::listen();
    let mut said = Vec::new();
    let outcome = tell(&[], true, async |run| {
        run.ledger.borrow_mut().most_requests = 1_000_000;
        run.server(side).weather.borrow_mut().streaming = streaming;
        work(run).await;
        lines::take();
        run.strike(side, trouble.clone(), HOUR + Duration::from_secs(60));
        an_hour_of_changes(run).await;
        seconds(300).await;
        said = lines::take();
    });
    check(&outcome);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let failing = said.iter().filter(|line| line.starts_with("WARN"));
    failing.for_each(|line| *counts.entry(about(line)).or_default() += 1);
    let works = said
        .iter()
        .filter(|line| line.starts_with("INFO") && line.contains("again"));
    let (about_one, most) = match trouble {
        Trouble::Html | Trouble::LostRequest | Trouble::LostReply => (ABOUT_ONE_BY_CHANCE, ALL_BY_CHANCE),
        _ => (ABOUT_ONE, ALL),
    };
    let all = counts.values().sum::<usize>();
    let is_little = counts.values().all(|count| *count <= about_one) && all <= most && works.count() <= all;
    (!is_little).then(|| {
        let said = said
            .iter()
            .filter(|line| line.starts_with("WARN") || line.contains("again"));
        let said: Vec<&String> = said.collect();
        format!("{trouble:?} at the {side}, streams {streaming:?}: {said:#?}")
    })
}

#[test]
fn an_hour_of_any_failure_is_a_few_lines() {
    let all = [Side::Hub, Side::Edge].into_iter().flat_map(|side| {
        let hours = troubles().into_iter();
        hours.filter_map(move |trouble| an_hour_of(&trouble, side, Streaming::Works))
    });
    let all: Vec<String> = all.collect();
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn an_hour_of_watches_that_fail_beside_lists_that_work_is_a_few_lines() {
    let troubles = [
        Trouble::PageFor(Verb::Watch),
        Trouble::RefusedFor(Verb::Watch),
        Trouble::NotFoundFor(Verb::Watch),
    ];
    let all = [Side::Hub, Side::Edge].into_iter().flat_map(|side| {
        let hours = troubles.iter();
        hours.filter_map(move |trouble| an_hour_of(trouble, side, Streaming::Refused))
    });
    let all: Vec<String> = all.collect();
    assert!(all.is_empty(), "{}", all.join("\n"));
}
