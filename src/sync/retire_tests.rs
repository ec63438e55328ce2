use kube_lite::ResourceType;

use super::*;
use crate::side::Side;
use crate::sync::definition::Withdrawal;
use crate::sync::identity::Unverified;
use crate::sync::job::Ending;
use crate::sync::ownership::origin_hash;
use crate::sync::reconcile::reconcile;
use crate::sync::reconcile::tests::{ABSENT, FOREIGN, GONE, GROUPS, LIST_WITHOUT, OUR_COPY, OURS, job};
use crate::sync::scripted::scripted;

const CREATE_ONLY: Copy = Copy {
    create_only: true,
    ..OURS
};
const ADOPTED: Copy = Copy { adopted: true, ..OURS };
const TERMINATING: Copy = Copy {
    terminating: true,
    ..OURS
};
const ANOTHERS: Copy = Copy {
    state: CopyState::Anothers,
    ..OURS
};

#[test]
fn retires_a_copy_as_the_spec_says() {
    for (row, copy, expected) in [
        (
            "3.6 false downstream: kept",
            CREATE_ONLY,
            Retirement::Leave(Why::CreateOnly),
        ),
        ("3.5 ours", OURS, Retirement::Delete),
        ("3.5 not ours", FOREIGN, Retirement::Leave(Why::NotOurs)),
        ("another syncer's", ANOTHERS, Retirement::Leave(Why::NotOurs)),
        ("3.5 nothing there", ABSENT, Retirement::Leave(Why::Gone)),
        ("adopted is released", ADOPTED, Retirement::Release),
        (
            "so is what its side keeps for itself",
            Copy { kept: true, ..OURS },
            Retirement::Release,
        ),
        (
            "terminating is not deleted twice",
            TERMINATING,
            Retirement::Leave(Why::Terminating),
        ),
    ] {
        assert_eq!(retirement(copy, false), expected, "{row}");
    }
}

#[test]
fn a_protected_namespace_is_never_deleted() {
    for copy in [OURS, FOREIGN, ANOTHERS, ABSENT, ADOPTED, CREATE_ONLY, TERMINATING] {
        let retirement = retirement(copy, true);
        assert!(matches!(retirement, Retirement::Leave(_)), "{copy:?} {retirement:?}");
    }
}

#[tokio::test]
async fn a_delete_names_the_uid_and_version_that_were_read() {
    let (hub, _) = scripted(Side::Hub, &[(404, GONE), (200, LIST_WITHOUT), (200, GROUPS)]);
    let (edge, asked) = scripted(Side::Edge, &[(200, OUR_COPY), (200, r#"{"kind":"Status"}"#)]);
    let outcome = reconcile(&hub, &edge, job()).await.unwrap();
    assert_eq!(outcome.ending, Change::Deleted);
    let delete = asked.borrow()[1].clone();
    assert!(
        delete.starts_with("DELETE /api/v1/namespaces/shop/configmaps/a "),
        "{delete}"
    );
    assert!(
        delete.contains(r#""preconditions":{"resourceVersion":"7","uid":"u1"}"#),
        "{delete}"
    );
}

#[tokio::test]
async fn nothing_is_deleted_while_deletes_are_held_or_another_cluster_answers() {
    let held = Job {
        may_delete: false,
        ..job()
    };
    let (hub, _) = scripted(Side::Hub, &[(404, GONE)]);
    let (edge, asked) = scripted(Side::Edge, &[(200, OUR_COPY)]);
    assert_eq!(reconcile(&hub, &edge, held).await.unwrap().ending, HeldFor::AnotherLook);
    assert_eq!(asked.borrow().len(), 1, "{asked:?}");

    let other = r#"{"metadata":{"name":"kube-system","uid":"u9"}}"#;
    let no_default = r#"{"kind":"Status","reason":"NotFound","details":{"name":"default"}}"#;
    let answers = [
        (404, GONE),
        (200, LIST_WITHOUT),
        (200, other),
        (404, no_default),
        (404, "404 page not found"),
    ];
    let (hub, _) = scripted(Side::Hub, &answers);
    let (edge, asked) = scripted(Side::Edge, &[(200, OUR_COPY)]);
    let mut elsewhere = job();
    Rc::make_mut(&mut elsewhere.identity).expect("u8".into());
    let outcome = reconcile(&hub, &edge, elsewhere).await.unwrap();
    assert_eq!(outcome.ending, HeldFor::OtherCluster("u9".into()));
    assert_eq!(asked.borrow().len(), 1, "{asked:?}");
}

// Its watches may report nothing of what was restored, and no list may have done so yet.
#[tokio::test]
async fn what_a_restored_hub_lacks_is_not_deleted() {
    let named = r#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"50"},"items":[{"metadata":{"name":"a"}}]}"#;
    for (known, list, expected) in [
        (50, LIST_WITHOUT, Ok(Ending::from(Change::Deleted))),
        (
            50,
            r#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"50"},"items":[]}"#,
            Ok(Change::Deleted.into()),
        ),
        (51, LIST_WITHOUT, Ok(HeldFor::WentBack(50).into())),
        (50, named, Err("a list names what a read said does not exist")),
        (50, "{}", Err("not an answer of a Kubernetes API: no list")),
    ] {
        let after = if list == named { (404, GONE) } else { (200, GROUPS) };
        let (hub, asked) = scripted(Side::Hub, &[(404, GONE), (200, list), after]);
        let (edge, _) = scripted(Side::Edge, &[(200, OUR_COPY), (200, r#"{"kind":"Status"}"#)]);
        let job = Job {
            origin_version: known,
            ..job()
        };
        let result = reconcile(&hub, &edge, job).await;
        match expected {
            Ok(change) => assert_eq!(result.unwrap().ending, change),
            Err(words) => {
                let error = result.unwrap_err().error.to_string();
                assert!(error.contains(words), "{error}");
            }
        }
        let list = "GET /api/v1/namespaces/shop/configmaps?limit=1&fieldSelector=metadata.name%3Da ";
        assert_eq!(asked.borrow()[1], list);
    }
}

// Deleted and created again in one moment: the read comes before that, the list after it.
#[tokio::test]
async fn an_origin_or_a_copy_that_is_created_between_a_read_and_a_list_is_there() {
    let named = r#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"50"},"items":[{"metadata":{"name":"a"}}]}"#;
    let origin = r#"{"metadata":{"namespace":"shop","name":"a","uid":"u2","resourceVersion":"50"}}"#;
    let (hub, asked) = scripted(Side::Hub, &[(404, GONE), (200, named), (200, origin)]);
    let (edge, _) = scripted(Side::Edge, &[(200, OUR_COPY)]);
    assert_eq!(
        reconcile(&hub, &edge, job()).await.unwrap().ending,
        HeldFor::AnotherLook
    );
    assert_eq!(asked.borrow().len(), 3);

    let (hub, _) = scripted(Side::Hub, &[(404, GONE), (200, LIST_WITHOUT), (200, GROUPS)]);
    let answers = [
        (404, GONE),
        (200, named),
        (200, OUR_COPY),
        (200, r#"{"kind":"Status"}"#),
    ];
    let (edge, _) = scripted(Side::Edge, &answers);
    assert_eq!(reconcile(&hub, &edge, job()).await.unwrap().ending, Change::Deleted);
}

// When a CRD is deleted, its objects are deleted first, and reported.
#[tokio::test]
async fn an_object_that_its_type_deletes_too_is_not_deleted() {
    const GAUGE: &str = r#"{"kind":"Status","reason":"NotFound","details":{"name":"a","kind":"gauges"},"code":404}"#;
    const CRD: &str = r#"{"metadata":{"name":"gauges.example.org","uid":"d1"}}"#;
    const GOING: &str =
        r#"{"metadata":{"name":"gauges.example.org","uid":"d1","deletionTimestamp":"2026-01-01T00:00:00Z"}}"#;
    let gauges = ResourceType {
        group: "example.org".into(),
        resource: "gauges".into(),
        kind: "Gauge".into(),
        ..ResourceType::config_maps()
    };
    let copy = OUR_COPY
        .replace("ConfigMap/", "Gauge/")
        .replace("configmaps", "gauges.example.org")
        .leak();
    for (definition, expected) in [
        ((200, CRD), Ok(Ending::from(Change::Deleted))),
        (
            (200, GOING),
            Ok(HeldFor::Withdrawn(Withdrawal::Going(Some("d1".into()))).into()),
        ),
        ((503, ""), Err("reading what defines the type")),
    ] {
        let (hub, _) = scripted(
            Side::Hub,
            &[(404, GAUGE), (200, LIST_WITHOUT), (200, GROUPS), definition],
        );
        let (edge, asked) = scripted(Side::Edge, &[(200, copy), (200, r#"{"kind":"Status"}"#)]);
        let mut job = job();
        job.origin.resource.clone_from(&gauges);
        job.copy_at.resource.clone_from(&gauges);
        let result = reconcile(&hub, &edge, job).await;
        let goes = expected == Ok(Change::Deleted.into());
        assert_eq!(
            result.map(|outcome| outcome.ending).map_err(|failure| failure.doing),
            expected
        );
        assert_eq!(asked.borrow().len() == 2, goes, "{definition:?}");
    }
}

// Another hub may have said that it lacks the type.
#[tokio::test]
async fn that_a_type_is_gone_is_asked_once_more_before_its_copies_go() {
    let gone_at_origin = r#"{"kind":"Status","reason":"NotFound","details":{},"code":404}"#;
    for (status, answer, goes) in [
        (404, gone_at_origin, true),
        (404, "404 page not found", true),
        (200, LIST_WITHOUT, false),
        (403, GONE, false),
        (503, "", false),
    ] {
        let (hub, _) = scripted(Side::Hub, &[(status, answer), (200, GROUPS)]);
        let (edge, asked) = scripted(Side::Edge, &[(200, OUR_COPY), (200, r#"{"kind":"Status"}"#)]);
        let job = Job {
            gone_at_origin: true,
            ..job()
        };
        let deleted = reconcile(&hub, &edge, job).await.is_ok();
        assert_eq!((deleted, asked.borrow().len() == 2), (goes, goes), "{answer}");
    }
}

#[tokio::test]
async fn an_object_re_created_by_somebody_else_in_between_survives() {
    let conflict = r#"{"kind":"Status","reason":"Conflict","details":{"name":"a"},"code":409}"#;
    let theirs = r#"{"metadata":{"namespace":"shop","name":"a","uid":"u2","resourceVersion":"9"}}"#;
    let answers = [(404, GONE), (200, LIST_WITHOUT), (200, GROUPS)];
    let (hub, _) = scripted(Side::Hub, &answers);
    let (edge, asked) = scripted(Side::Edge, &[(200, OUR_COPY), (409, conflict), (200, theirs)]);
    let outcome = reconcile(&hub, &edge, job()).await.unwrap();
    assert_eq!(outcome.ending, Why::NotOurs);
    assert_eq!(
        asked
            .borrow()
            .iter()
            .filter(|asked| asked.starts_with("DELETE"))
            .count(),
        1
    );
}

#[tokio::test]
async fn no_answer_of_the_hub_but_proved_absence_deletes() {
    let gone_at_origin = r#"{"kind":"Status","reason":"NotFound","details":{},"code":404}"#;
    for (status, body) in [
        (404, gone_at_origin),
        (404, "404 page not found"),
        (401, GONE),
        (403, GONE),
        (500, ""),
        (503, ""),
        (200, "<html>"),
        (200, "{}"),
    ] {
        let (hub, _) = scripted(Side::Hub, &[(status, body)]);
        let (edge, asked) = scripted(Side::Edge, &[]);
        let failure = reconcile(&hub, &edge, job()).await.unwrap_err();
        assert_eq!(failure.side, Side::Hub, "{status} {body}");
        assert!(asked.borrow().is_empty(), "{status} {body}");
    }
}

// Its version is read before the requests that prove its end, and its status changes all the time.
#[tokio::test]
async fn a_copy_that_changes_in_between_is_read_again_and_deleted_without_another_proof() {
    const CONFLICT: &str = r#"{"kind":"Status","reason":"Conflict","details":{"name":"a"},"code":409}"#;
    const LATER: &str = r#"{"metadata":{"namespace":"shop","name":"a","uid":"u1","resourceVersion":"8","annotations":{"edge.kubestellar.io/downsynced":"ConfigMap/shop/a","edge.kubestellar.io/owner":"u9/configmaps/"}}}"#;
    let (hub, _) = scripted(Side::Hub, &[(404, GONE), (200, LIST_WITHOUT), (200, GROUPS)]);
    let deleted = (200, r#"{"kind":"Status"}"#);
    let (edge, asked) = scripted(Side::Edge, &[(200, OUR_COPY), (409, CONFLICT), (200, LATER), deleted]);
    assert_eq!(reconcile(&hub, &edge, job()).await.unwrap().ending, Change::Deleted);
    assert!(asked.borrow()[3].contains(r#""resourceVersion":"8""#), "{asked:?}");

    let (hub, _) = scripted(Side::Hub, &[(404, GONE), (200, LIST_WITHOUT), (200, GROUPS)]);
    let always: Vec<_> = [(200, OUR_COPY), (409, CONFLICT)].repeat(TRIES as usize);
    let (edge, _) = scripted(Side::Edge, &always);
    let failure = reconcile(&hub, &edge, job()).await.unwrap_err();
    assert!(failure.error.is_conflict(), "it is put off, and tried again later");
}

#[tokio::test]
async fn what_a_delete_leaves_to_its_controllers_goes_too() {
    let (hub, _) = scripted(Side::Hub, &[(404, GONE), (200, LIST_WITHOUT), (200, GROUPS)]);
    let (edge, asked) = scripted(Side::Edge, &[(200, OUR_COPY), (200, r#"{"kind":"Status"}"#)]);
    reconcile(&hub, &edge, job()).await.unwrap();
    assert!(
        asked.borrow()[1].contains(r#""propagationPolicy":"Background""#),
        "{asked:?}"
    );
}

// An object that was deleted and created again as a credential: what had its name before is gone.
#[tokio::test]
async fn a_copy_ends_with_its_origin_also_if_that_has_a_successor_which_is_never_synced() {
    const NAMED: &str = r#"{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"50"},"items":[{"metadata":{"name":"a"}}]}"#;
    const CLUSTER: &str = r#"{"metadata":{"name":"kube-system","uid":"c1"}}"#;
    let token = |uid: &str| -> &'static str {
        format!(r#"{{"metadata":{{"namespace":"shop","name":"a","uid":"{uid}","resourceVersion":"40"}},"type":"kubernetes.io/service-account-token"}}"#).leak()
    };
    let ours = OUR_COPY
        .replace("ConfigMap/", "Secret/")
        .replace("configmaps", "secrets");
    let made_at = |source: &str| -> &'static str {
        let source = format!(r#""annotations":{{"edge.kubestellar.io/source":"{source}","#);
        ours.replace(r#""annotations":{"#, &source).leak()
    };
    let unmarked = ours.replace("u9/secrets", "/secrets");
    let older = Unverified::Older { from: 45, to: 40 };
    for (row, uid, copy, may_delete, expected) in [
        (
            "a successor",
            "u10",
            made_at("c1/39"),
            true,
            Ending::from(Change::Deleted),
        ),
        (
            "counted first",
            "u10",
            made_at("c1/39"),
            false,
            HeldFor::AnotherLook.into(),
        ),
        ("the same object", "u9", made_at("c1/39"), true, Why::NotSelected.into()),
        (
            "not known of which",
            "u10",
            &*unmarked.leak(),
            true,
            Why::NotSelected.into(),
        ),
        (
            "older than the copy",
            "u10",
            made_at("c1/45"),
            true,
            HeldFor::Unverified(older).into(),
        ),
        (
            "of another cluster",
            "u10",
            made_at("c2/39"),
            true,
            HeldFor::Unverified(Unverified::MadeFrom("c2".into())).into(),
        ),
    ] {
        let it = token(uid);
        let (hub, _) = scripted(
            Side::Hub,
            &[(200, it), (200, it), (200, NAMED), (200, CLUSTER), (200, GROUPS)],
        );
        let (edge, asked) = scripted(Side::Edge, &[(200, copy), (200, r#"{"kind":"Status"}"#)]);
        let mut job = Job { may_delete, ..job() };
        job.copy.origin = 7;
        for at in [&mut job.origin, &mut job.copy_at] {
            at.resource.resource = "secrets".into();
            at.resource.kind = "Secret".into();
        }
        if uid == "u9" {
            job.copy.origin = origin_hash("u9");
        }
        Rc::make_mut(&mut job.identity).expect("c1".into());
        assert_eq!(reconcile(&hub, &edge, job).await.unwrap().ending, expected, "{row}");
        let deletes = asked
            .borrow()
            .iter()
            .filter(|asked| asked.starts_with("DELETE "))
            .count();
        assert_eq!(deletes, usize::from(expected == Change::Deleted), "{row}");
    }
}
