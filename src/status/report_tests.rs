use std::collections::BTreeSet;

use serde_json::Value;

use super::*;
use crate::api::status::{Denied, Failure, FieldProblem, Hold};

const NOW: u64 = 1_795_269_787;

fn judged(says: OfEdge, seen: Option<u64>) -> Followed {
    Followed::judge(says, 2, seen, NOW, Duration::from_secs(300))
}

#[test]
fn the_worst_of_what_an_edge_says_is_its_state() {
    let good = OfEdge {
        observed_generation: 2,
        selected: 3,
        synced: 3,
        ..OfEdge::default()
    };
    let with = |change: fn(&mut OfEdge)| {
        let mut says = good.clone();
        change(&mut says);
        says
    };
    let fresh = Some(NOW - 60);
    for (says, seen, state, verdict) in [
        (good.clone(), fresh, State::Synced, Verdict::Synced),
        (good.clone(), Some(NOW - 300), State::Synced, Verdict::Synced),
        (good.clone(), Some(NOW - 301), State::Stale, Verdict::Unknown),
        (good.clone(), None, State::Stale, Verdict::Unknown),
        // The hub's clock went back.
        (good.clone(), Some(NOW + 60), State::Synced, Verdict::Synced),
        (with(|of| of.synced = 2), fresh, State::Pending, Verdict::NotSynced),
        (with(|of| of.pending = 1), fresh, State::Pending, Verdict::NotSynced),
        (
            with(|of| of.observed_generation = 1),
            fresh,
            State::Pending,
            Verdict::NotSynced,
        ),
        (
            with(|of| of.hold = Some(Hold::default())),
            fresh,
            State::DeletesHeld,
            Verdict::NotSynced,
        ),
        (with(|of| of.conflicts = 1), fresh, State::Failing, Verdict::NotSynced),
        (
            with(|of| of.failures.push(Failure::default())),
            fresh,
            State::Failing,
            Verdict::NotSynced,
        ),
        (
            with(|of| {
                of.problems.push(FieldProblem::default());
                of.failing = 1;
            }),
            fresh,
            State::Invalid,
            Verdict::NotSynced,
        ),
    ] {
        let found = judged(says, seen);
        assert_eq!((found.state, found.verdict), (state, verdict), "{found:?}");
    }
    let found = judged(good, Some(NOW - 61));
    assert_eq!(
        (found.last_seen.as_deref(), found.seconds_ago),
        (Some("2026-11-21T14:02:06Z"), Some(61))
    );
}

#[test]
fn what_is_not_known_counts_more_than_what_is_not_synced() {
    use Verdict::{NotSynced, Synced, Unknown};
    let config = |verdict| OfConfig {
        verdict,
        ..OfConfig::default()
    };
    let of = |configs: &[Verdict], edge: Option<Verdict>, objects: &[Verdict], errors: &[&str]| {
        let mut report = Report {
            configs: configs.iter().map(|verdict| config(*verdict)).collect(),
            edge: edge.map(|verdict| Copies {
                verdict,
                ..Copies::default()
            }),
            objects: objects
                .iter()
                .map(|&verdict| Explained {
                    verdict,
                    ..Explained::default()
                })
                .collect(),
            errors: errors.iter().map(|&error| error.to_owned()).collect(),
            ..Report::default()
        };
        report.judge();
        report.verdict
    };
    assert_eq!(of(&[], None, &[], &[]), Synced, "nothing is selected");
    assert_eq!(of(&[Synced, Synced], None, &[], &[]), Synced);
    assert_eq!(of(&[Synced, NotSynced], None, &[], &[]), NotSynced);
    assert_eq!(of(&[Unknown, NotSynced], None, &[], &[]), Unknown);
    assert_eq!(of(&[Synced], Some(NotSynced), &[], &[]), NotSynced);
    assert_eq!(of(&[Synced], None, &[], &["cannot ask"]), Unknown);
    // What one object comes to does not depend on others.
    assert_eq!(of(&[Unknown, NotSynced], None, &[Synced], &[]), Synced);
    assert_eq!(of(&[Synced], None, &[Synced, NotSynced], &[]), NotSynced);
}

/// The paths of all leaves: `configs[].name`.
fn paths(value: &Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                let path = if path.is_empty() {
                    field.clone()
                } else {
                    format!("{path}.{field}")
                };
                paths(value, &path, found);
            }
        }
        Value::Array(items) => {
            assert!(!items.is_empty(), "{path}: the report is to have all of it");
            for item in items {
                paths(item, &format!("{path}[]"), found);
            }
        }
        _ => _ = found.insert(path.to_owned()),
    }
}

/// Those that the page has: after the first path of a cell, others name the last field alone.
fn paths_of_page() -> BTreeSet<String> {
    let page = include_str!("../../docs/status-command.md");
    let (_, table) = page.split_once("| field | meaning |").unwrap();
    let mut found = BTreeSet::new();
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let cell = row.split('|').nth(1).unwrap();
        let mut parent = String::new();
        for name in cell.split('`').skip(1).step_by(2) {
            let path = if name.starts_with('.') {
                format!("{parent}{name}")
            } else {
                name.to_owned()
            };
            parent = path
                .rsplit_once('.')
                .map_or(String::new(), |(parent, _)| parent.to_owned());
            found.insert(path);
        }
    }
    found
}

#[test]
fn the_page_has_each_field_of_the_json_and_no_other() {
    let problem = FieldProblem {
        since: "2026-01-01T00:00:00Z".to_owned(),
        ..FieldProblem::default()
    };
    let says = OfEdge {
        name: "site".to_owned(),
        failures: vec![Failure {
            doing: "applying".to_owned(),
            ..Failure::default()
        }],
        problems: vec![problem.clone()],
        unmatched: vec![problem],
        problem_count: 1,
        denied: vec![Denied::default()],
        contested: 1,
        hold: Some(Hold::default()),
        ..OfEdge::default()
    };
    let mut followed = judged(says, Some(NOW));
    followed.confirm = Some("kubectl".to_owned());
    let report = Report {
        configs: vec![OfConfig {
            message: "why".to_owned(),
            conditions: vec![Condition::default()],
            edges: vec![followed],
            confirm: Some("kubectl".to_owned()),
            ..OfConfig::default()
        }],
        edge: Some(Copies {
            types: vec![OfType::default()],
            objects: vec![OutOfPlace {
                object: "ConfigMap/shop/a".to_owned(),
                side: "edge",
                state: CopyFinding::Missing,
            }],
            ..Copies::default()
        }),
        objects: vec![Explained {
            direction: "downsync".to_owned(),
            findings: vec!["in place".to_owned()],
            ..Explained::default()
        }],
        errors: vec!["cannot ask".to_owned()],
        ..Report::default()
    };
    let mut found = BTreeSet::new();
    paths(&serde_json::to_value(report).unwrap(), "", &mut found);
    assert_eq!(found, paths_of_page());
}
