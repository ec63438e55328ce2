use kube_lite::{Paths, RateLimit};

use super::*;
use crate::api::FIELD_MANAGER;
use crate::side::Side;
use crate::sync::scripted::scripted;

const ABSENT: &str = r#"{"kind":"Status","reason":"NotFound","details":{"name":"gauges.example.org"},"code":404}"#;
const GROUPS: &str = r#"{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"version":"v1"}]}]}"#;
const FORBIDDEN: &str = r#"{"kind":"Status","reason":"Forbidden","details":{"name":"gauges.example.org"},"code":403}"#;

fn of(group: &str) -> ResourceType {
    ResourceType {
        group: group.into(),
        resource: "gauges".into(),
        kind: "Gauge".into(),
        ..ResourceType::config_maps()
    }
}

fn crd(uid: &str, being_deleted: bool) -> &'static str {
    let deleted = if being_deleted {
        r#","deletionTimestamp":"2026-01-01T00:00:00Z""#
    } else {
        ""
    };
    format!(r#"{{"metadata":{{"name":"gauges.example.org","uid":"{uid}"{deleted}}}}}"#).leak()
}

#[tokio::test]
async fn a_type_is_trusted_only_while_the_same_thing_defines_it() {
    let known = |uid: &str| Some(DefinedBy::Uid(uid.into()));
    let going = |uid: &str| Ok(Some(Withdrawal::Going(Some(uid.into()))));
    for (row, known, answer, expected) in [
        ("as it was", known("d1"), (200, crd("d1", false)), Ok(None)),
        ("not learnt yet", None, (200, crd("d1", false)), Ok(None)),
        ("being deleted", known("d1"), (200, crd("d1", true)), going("d1")),
        ("the same, not learnt yet", None, (200, crd("d1", true)), going("d1")),
        ("gone", known("d1"), (404, ABSENT), Ok(Some(Withdrawal::Going(None)))),
        (
            "another one",
            known("d1"),
            (200, crd("d2", false)),
            Ok(Some(Withdrawal::Redefined("d2".into()))),
        ),
        ("of another server", None, (404, ABSENT), Ok(None)),
        ("never allowed to be read", None, (403, FORBIDDEN), Ok(None)),
        ("no longer allowed to be read", known("d1"), (403, FORBIDDEN), Err(403)),
        ("no answer of use", known("d1"), (404, "404 page not found"), Err(404)),
        ("busy", None, (503, ""), Err(503)),
    ] {
        let mut definitions = TypeDefinitions::default();
        if let Some(known) = known {
            definitions.set("gauges.example.org", known);
        }
        let (hub, _) = scripted(Side::Hub, &[(200, GROUPS), answer]);
        let found = definitions.verify(&hub, &of("example.org"), false).await;
        let found = found.map_err(|error| error.status().map_or(0, |status| status.code));
        assert_eq!(found, expected, "{row}");
    }
}

// What was learnt is not checked again: a CRD that was missing for a moment must not make its type one without a
// definition.
#[tokio::test]
async fn that_nothing_defines_a_type_is_believed_only_while_the_type_is_served() {
    const LIST: &str = r#"{"kind":"GaugeList","metadata":{"resourceVersion":"50"},"items":[]}"#;
    for (row, answers, expected) in [
        ("a CRD", vec![(200, crd("d1", false))], Ok(Some("d1"))),
        ("of another server", vec![(404, ABSENT), (200, LIST)], Ok(None)),
        (
            "one that may not be listed",
            vec![(404, ABSENT), (403, FORBIDDEN)],
            Ok(None),
        ),
        ("gone", vec![(404, ABSENT), (404, "404 page not found")], Err(404)),
        ("no answer of use", vec![(404, ABSENT), (503, "")], Err(503)),
    ] {
        let mut definitions = TypeDefinitions::default();
        definitions.set_hub(Hub::Kubernetes);
        let (hub, asked) = scripted(Side::Hub, &answers);
        let found = definitions.learn(&hub, &of("example.org")).await;
        let found = found.map(|found| found.map(|found| found.uid));
        let found = found.map_err(|error| error.status().map_or(0, |status| status.code));
        assert_eq!(found, expected.map(|uid| uid.map(str::to_owned)), "{row}");
        assert_eq!(asked.borrow().len(), answers.len(), "{row}");
    }
}

#[tokio::test]
async fn what_people_have_confirmed_is_held_no_longer() {
    for (answer, withdrawal) in [
        ((200, crd("d1", true)), Withdrawal::Going(Some("d1".into()))),
        ((200, crd("d2", false)), Withdrawal::Redefined("d2".into())),
        ((404, ABSENT), Withdrawal::Going(None)),
    ] {
        let mut definitions = TypeDefinitions::default();
        definitions.set_hub(Hub::Kubernetes);
        definitions.set("gauges.example.org", DefinedBy::Uid("d1".into()));
        let (hub, _) = scripted(Side::Hub, &[answer, answer]);
        let gauges = of("example.org");
        assert_eq!(
            definitions.verify(&hub, &gauges, false).await,
            Ok(Some(withdrawal.clone()))
        );
        assert!(!definitions.confirms("gauges.example.org", &withdrawal), "{answer:?}");
        definitions.accept("gauges.example.org", withdrawal.clone());
        assert!(definitions.confirms("gauges.example.org", &withdrawal), "{answer:?}");
        assert_eq!(definitions.verify(&hub, &gauges, false).await, Ok(None), "{answer:?}");
    }
}

#[tokio::test]
async fn one_that_was_first_seen_as_it_went_is_missed_when_it_is_gone() {
    for (after, expected) in [
        ((404, ABSENT), Withdrawal::Going(None)),
        ((200, crd("d2", false)), Withdrawal::Redefined("d2".into())),
    ] {
        let mut definitions = TypeDefinitions::default();
        definitions.set_hub(Hub::Kubernetes);
        let (hub, _) = scripted(Side::Hub, &[(200, crd("d1", true)), after]);
        let gauges = of("example.org");
        let going = Withdrawal::Going(Some("d1".into()));
        assert_eq!(definitions.verify(&hub, &gauges, false).await, Ok(Some(going.clone())));
        assert!(definitions.note_withdrawal("gauges.example.org", &going), "it is news");
        assert_eq!(
            definitions.verify(&hub, &gauges, false).await,
            Ok(Some(expected)),
            "{after:?}"
        );
    }
}

#[tokio::test]
async fn what_no_crd_can_define_costs_no_question() {
    for (group, known) in [("", None), ("apps", None), ("example.org", Some(DefinedBy::Nothing))] {
        let mut definitions = TypeDefinitions::default();
        if let Some(known) = known {
            definitions.set("gauges.example.org", known);
        }
        let (hub, asked) = scripted(Side::Hub, &[(200, GROUPS)]);
        assert_eq!(definitions.verify(&hub, &of(group), false).await, Ok(None));
        assert_eq!(
            *asked.borrow(),
            ["GET /apis "],
            "{group}: it is not known what the hub is"
        );
        definitions.set_hub(Hub::Kubernetes);
        assert_eq!(definitions.verify(&hub, &of(group), false).await, Ok(None));
        assert_eq!(asked.borrow().len(), 1, "{group}");
    }
}

/// A workspace with these `APIBinding`s, as kcp answers; asked for a type that is gone if there is no list of them.
async fn in_kcp(group: &str, workspace: &'static str, bindings: &'static str, known: DefinedBy) -> Answer {
    const GROUPS: &str = r#"{"kind":"APIGroupList","groups":[
        {"name":"apis.kcp.io","versions":[{"version":"v1alpha2"},{"version":"v1alpha1"}]},
        {"name":"core.kcp.io","versions":[{"version":"v1alpha1"}]}]}"#;
    let paths = [
        ("/apis", GROUPS),
        ("/apis/core.kcp.io/v1alpha1/logicalclusters/cluster", workspace),
        ("/apis/apis.kcp.io/v1alpha2/apibindings", bindings),
    ];
    let hub = Cluster::new(
        Side::Hub.word(),
        Box::new(Paths(paths.into())),
        RateLimit::new(None),
        FIELD_MANAGER,
    );
    let mut definitions = TypeDefinitions::default();
    let gauges = of(group);
    definitions.set(&gauges.qualified(), known);
    definitions.verify(&hub, &gauges, bindings.is_empty()).await
}

#[tokio::test]
async fn in_kcp_a_type_goes_with_its_binding_and_everything_with_the_workspace() {
    const HERE: &str = r#"{"metadata":{"name":"cluster","uid":"w1"}}"#;
    const ENDS: &str = r#"{"metadata":{"name":"cluster","uid":"w1","deletionTimestamp":"2026-01-01T00:00:00Z"}}"#;
    const BOUND: &str = r#"{"items":[{"metadata":{"name":"other","uid":"b0"},"status":{"phase":"Binding"}},
        {"metadata":{"name":"apps","uid":"b1"},"status":{"boundResources":[{"group":"apps","resource":"gauges"}]}}]}"#;
    const UNBINDS: &str = r#"{"items":[{"metadata":{"name":"apps","uid":"b1","deletionTimestamp":"2026-01-01T00:00:00Z"},
        "status":{"boundResources":[{"group":"apps","resource":"gauges"}]}}]}"#;
    const NONE: &str = r#"{"items":[]}"#;
    let known = || DefinedBy::Uid("b1".into());
    let going = |uid: &str| Ok(Some(Withdrawal::Going(Some(uid.to_owned()))));
    for (group, workspace, bindings, known, expected) in [
        ("apps", HERE, BOUND, known(), Ok(None)),
        ("apps", HERE, UNBINDS, known(), going("b1")),
        ("apps", HERE, NONE, known(), Ok(Some(Withdrawal::Going(None)))),
        (
            "apps",
            HERE,
            BOUND,
            DefinedBy::Uid("b9".into()),
            Ok(Some(Withdrawal::Redefined("b1".into()))),
        ),
        ("apps", ENDS, BOUND, known(), going("w1")),
        ("", HERE, NONE, DefinedBy::Nothing, Ok(None)),
        ("", ENDS, NONE, DefinedBy::Nothing, going("w1")),
    ] {
        let found = in_kcp(group, workspace, bindings, known).await;
        assert_eq!(found, expected, "{group} {workspace} {bindings}");
    }
    assert!(in_kcp("apps", HERE, "<html>", known()).await.is_err());
    // What is deleted with its type is not asked for, only whether the whole workspace is being deleted.
    for (workspace, expected) in [(HERE, Ok(None)), (ENDS, going("w1"))] {
        assert_eq!(in_kcp("apps", workspace, "", known()).await, expected, "{workspace}");
    }
}

#[test]
fn what_is_of_the_core_group_is_not_known_by_the_workspace_that_is_deleted() {
    let going = Withdrawal::Going(Some("w1".into()));
    for (resource, known, expected) in [
        ("configmaps", None, None),
        ("gauges.apps", None, Some("w1")),
        ("gauges.apps", Some("b1"), Some("b1")),
    ] {
        let mut definitions = TypeDefinitions::default();
        if let Some(known) = known {
            definitions.set(resource, DefinedBy::Uid(known.into()));
        }
        let expected = expected.map(|uid| DefinedBy::Uid(uid.into()));
        let is_news = known.is_none() && expected.is_some();
        assert_eq!(definitions.note_withdrawal(resource, &going), is_news, "{resource}");
        assert_eq!(definitions.known(resource), expected.as_ref(), "{resource} {known:?}");
    }
}
