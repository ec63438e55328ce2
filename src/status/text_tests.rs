use std::time::Duration;

use super::super::report::{CopyFinding, OfType, OutOfPlace};
use super::*;
use crate::api::status::{Failure, FieldProblem, Hold, OfEdge};

const NOW: u64 = 1_795_269_787;
const CONFIRM: &str = "kubectl --kubeconfig=hub.kubeconfig annotate syncerconfigs.edge.kubestellar.io the-one --overwrite edge.kubestellar.io/confirm-deletes=a1b2";

fn followed(uid: &str, ago: u64, change: fn(&mut OfEdge)) -> Followed {
    let mut says = OfEdge {
        uid: uid.to_owned(),
        observed_generation: 1,
        selected: 42,
        synced: 42,
        ..OfEdge::default()
    };
    change(&mut says);
    Followed::judge(says, 1, Some(NOW - ago), NOW, Duration::from_secs(300))
}

fn config(name: &str, edges: Vec<Followed>) -> OfConfig {
    OfConfig {
        kind: "SyncerConfig",
        name: name.to_owned(),
        generation: 1,
        verdict: edges.iter().map(|edge| edge.verdict).max().unwrap_or(Verdict::Unknown),
        edges,
        ..OfConfig::default()
    }
}

/// Two edges of one config, of which one has all that can be wrong; and a config that nobody follows.
fn report() -> Report {
    let mut wrong = followed("site-7", 12, |says| {
        says.name = "warehouse-7".to_owned();
        says.synced = 40;
        (says.failing, says.conflicts, says.held) = (11, 1, 3);
        says.failures.push(Failure {
            since: "2026-11-21T13:00:00Z".to_owned(),
            object: "Deployment/shop/web".to_owned(),
            side: "edge".to_owned(),
            reason: "ApplyFailed".to_owned(),
            message: "admission webhook \"limits.example.org\" denied the request: the image registry is not one of those that \
                      are allowed here"
                .to_owned(),
            doing: "applying".to_owned(),
            tries: 12,
        });
        says.problems.push(FieldProblem {
            field: "spec.namespaceScope.resources[1]".to_owned(),
            message: "neither hub nor edge serves deployment.apps; did you mean deployments?".to_owned(),
            since: String::new(),
        });
        says.problem_count = 3;
        says.hold = Some(Hold {
            reason: "TooMany".to_owned(),
            message: "downsync: 3 of 4 copies are to be deleted; 3 objects held".to_owned(),
        });
    });
    wrong.confirm = Some(CONFIRM.to_owned());
    let quiet = followed("site-8", 7300, |_| {});
    let mut unfollowed = config("later", Vec::new());
    unfollowed.message = "no syncer has followed it yet: see that one runs with this hub".to_owned();
    Report {
        configs: vec![
            config("good", vec![followed("site-9", 60, |_| {})]),
            config("the-one", vec![wrong, quiet]),
            unfollowed,
        ],
        ..Report::default()
    }
}

fn style(width: Option<usize>, is_wide: bool) -> Style {
    let screen = Screen {
        width,
        has_colours: false,
    };
    Style { screen, is_wide }
}

#[test]
fn at_80_columns_the_table_is_compact_and_what_is_wrong_stands_below() {
    let found = text(&report(), style(Some(80), false));
    let expected = format!(
        r#"CONFIG                EDGE         STATE    SYNCED  FAILING  HELD  SEEN
SyncerConfig/good     site-9       synced   42/42   0        0     60s
SyncerConfig/the-one  warehouse-7  invalid  40/42   12       3     12s
SyncerConfig/the-one  site-8       stale    42/42   0        0     2h
SyncerConfig/later    -            unknown  -       -        -     -

SyncerConfig/the-one at warehouse-7: invalid
  spec.namespaceScope.resources[1]: neither hub nor edge serves deployment.apps;
    did you mean deployments?
  and 2 more entries cannot be followed: the log of the edge names them
  Deployment/shop/web at the edge fails since 2026-11-21T13:00:00Z
    (ApplyFailed):
    admission webhook "limits.example.org" denied the request: the image
      registry is not one of those that are allowed here
  and 11 more fail: the log of the edge names them
  deletes are held (TooMany): downsync: 3 of 4 copies are to be deleted; 3
    objects held
  if they are meant, this confirms them:
  {CONFIRM}

SyncerConfig/the-one at site-8: stale
  not heard of since 2026-11-21T12:01:27Z
  see that its syncer runs and reaches the hub; what follows is from then
SyncerConfig/later: no syncer has followed it yet: see that one runs with this
  hub
"#
    );
    assert_eq!(found, expected);
}

#[test]
fn at_200_columns_the_table_says_why_too() {
    let found = text(&report(), style(Some(200), false));
    let table: Vec<&str> = found.lines().take(5).collect();
    assert!(table[0].ends_with("SEEN  WHY"), "{found}");
    assert!(
        table[2].ends_with(
            "12s   spec.namespaceScope.resources[1]: neither hub nor edge serves deployment.apps; did you mean deployments?"
        ),
        "{found}"
    );
    assert!(
        table[3].ends_with("2h    not heard of since 2026-11-21T12:01:27Z"),
        "{found}"
    );
    assert!(found.lines().all(|line| line.chars().count() <= 200), "{found}");
    assert!(found.contains(&format!("\n  {CONFIRM}\n")), "{found}");
}

#[test]
fn wide_has_all_columns_and_cuts_nothing() {
    let found = text(&report(), style(Some(80), true));
    let head = found.lines().next().unwrap_or_default();
    let heads: Vec<&str> = head.split_whitespace().collect();
    assert_eq!(heads[..WIDE.len()], *WIDE, "{found}");
    assert_eq!(heads.last(), Some(&"WHY"));
    let row = found.lines().nth(2).unwrap_or_default();
    let cells: Vec<&str> = row.split_whitespace().take(11).collect();
    assert_eq!(
        cells,
        [
            "SyncerConfig/the-one",
            "warehouse-7",
            "site-7",
            "invalid",
            "40/42",
            "0",
            "11",
            "1",
            "3",
            "3",
            "12s"
        ]
    );
}

#[test]
fn wide_says_what_failed_how_often() {
    for (is_wide, expected) in [
        (false, "(ApplyFailed):"),
        (true, "(ApplyFailed, applying, tried 12 times):"),
    ] {
        let found = text(&report(), style(None, is_wide));
        let line = found.lines().find(|line| line.contains(" fails since "));
        assert!(line.is_some_and(|line| line.ends_with(expected)), "{found}");
    }
}

#[test]
fn a_file_gets_whole_lines() {
    let found = text(&report(), style(None, false));
    assert!(found.contains("\n    admission webhook \"limits.example.org\" denied the request: the image registry is not one of those that are allowed here\n"), "{found}");
    assert!(!found.contains('…'), "{found}");
}

#[test]
fn what_is_all_synced_has_nothing_below_the_table() {
    let report = Report {
        configs: vec![config("good", vec![followed("site-9", 5, |_| {})])],
        ..Report::default()
    };
    let expected = "\
CONFIG             EDGE    STATE   SYNCED  FAILING  HELD  SEEN
SyncerConfig/good  site-9  synced  42/42   0        0     5s
";
    for width in [None, Some(80), Some(200)] {
        assert_eq!(text(&report, style(width, false)), expected);
    }
}

#[test]
fn names_and_messages_cannot_do_anything_to_the_terminal() {
    let hostile = "\x1b]0;gone\x07\u{202e}\r\nsynced";
    let mut report = report();
    let config = &mut report.configs[1];
    config.name = hostile.to_owned();
    let edge = &mut config.edges[0];
    edge.says.name = hostile.to_owned();
    edge.says.failures[0].message = hostile.to_owned();
    edge.says.failures[0].object = hostile.to_owned();
    edge.says.problems[0].message = hostile.to_owned();
    edge.confirm = Some(hostile.to_owned());
    report.edge = Some(Copies {
        address: hostile.to_owned(),
        objects: vec![OutOfPlace {
            object: hostile.to_owned(),
            side: "edge",
            state: CopyFinding::Missing,
        }],
        types: vec![OfType {
            resource: hostile.to_owned(),
            ..OfType::default()
        }],
        ..Copies::default()
    });
    for (width, is_wide) in [(None, false), (Some(80), false), (Some(200), true)] {
        let found = text(&report, style(width, is_wide));
        let bad = |one: char| one != '\n' && one.is_control() || one == '\u{202e}';
        assert!(!found.contains(bad), "{found:?}");
        assert!(!found.lines().any(|line| line.starts_with("synced")), "{found}");
    }
}

#[test]
fn copies_are_counted_by_type_and_those_out_of_place_are_named() {
    let object = |at: usize| OutOfPlace {
        object: format!("ConfigMap/shop/c{at}"),
        side: "edge",
        state: CopyFinding::Missing,
    };
    let mut copies = Copies {
        address: "https://edge".to_owned(),
        sync_target: "site-7".to_owned(),
        types: vec![OfType {
            resource: "configmaps".to_owned(),
            direction: "downsync".to_owned(),
            selected: 42,
            in_place: 41,
            out_of_place: 1,
            left: 0,
            copies: 41,
        }],
        objects: vec![object(0)],
        ..Copies::default()
    };
    let expected = "\
At the edge https://edge, copies of site-7:
TYPE        WAY       SELECTED  IN PLACE  OUT  LEFT  COPIES
configmaps  downsync  42        41        1    0     41
  ConfigMap/shop/c0 at the edge: missing
";
    let of = |copies: Copies, is_wide| {
        let report = Report {
            edge: Some(copies),
            ..Report::default()
        };
        text(&report, style(Some(80), is_wide))
    };
    let clone = |of: &Copies| Copies {
        address: of.address.clone(),
        sync_target: of.sync_target.clone(),
        objects: (0..NAMED + 5).map(object).collect(),
        types: vec![OfType::default()],
        ..Copies::default()
    };
    let many = clone(&copies);
    assert!(of(many, false).ends_with("  and 5 more: -o wide names all\n"));
    let many = clone(&copies);
    assert!(of(many, true).ends_with("ConfigMap/shop/c24 at the edge: missing\n"));
    copies.verdict = Verdict::NotSynced;
    assert_eq!(of(copies, false), expected);
}

#[test]
fn an_object_is_explained_in_sentences() {
    let report = Report {
        objects: vec![Explained {
            object: "ConfigMap/shop/a".to_owned(),
            direction: "downsync".to_owned(),
            verdict: Verdict::NotSynced,
            findings: vec![
                "selected by SyncerConfig//the-one".to_owned(),
                "edge: there is no ConfigMap/shop/a".to_owned(),
            ],
        }],
        ..report()
    };
    assert_eq!(
        text(&report, style(Some(80), false)),
        "ConfigMap/shop/a: not synced, downsync\n  selected by SyncerConfig//the-one\n  edge: there is no ConfigMap/shop/a\n"
    );
}
