use kube_lite::{ObjectName, ResourceType};

use super::*;
use crate::side::Side;
use crate::sync::job::HeldFor;
use crate::sync::ownership::{Copy, CopyState, origin_hash};
use crate::sync::scripted::scripted;

pub(in crate::sync) const OURS: Copy = Copy {
    state: CopyState::Ours,
    create_only: false,
    adopted: false,
    terminating: false,
    shared: false,
    others_have_more: false,
    made: false,
    kept: false,
    origin: 0,
    cluster: 0,
    made_at: 0,
};
pub(in crate::sync) const FOREIGN: Copy = Copy {
    state: CopyState::Foreign,
    ..OURS
};
pub(in crate::sync) const ABSENT: Copy = Copy {
    state: CopyState::Absent,
    ..OURS
};

/// That of a `ConfigMap` which is downsynced.
pub(in crate::sync) fn job() -> Job {
    let address = Address {
        resource: ResourceType::config_maps(),
        name: ObjectName::new("shop", "a"),
    };
    Job {
        direction: Direction::Down,
        origin: address.clone(),
        copy_at: address,
        gone_at_origin: false,
        policy: Rc::default(),
        selection: Selection::Full,
        desired: None,
        origin_read: None,
        copy: OURS,
        copy_version: 0,
        origin_seen_at: 0,
        origin_unnamed: 0,
        read_first: false,
        unverified: false,
        protected: false,
        namespace_refused: false,
        identity: Rc::default(),
        definitions: Rc::default(),
        origin_version: 0,
        may_delete: true,
        may_cascade: false,
        deletes_are_held: false,
        is_held: false,
        unread: None,
        scaled_by_nobody: false,
        finished_origin: 0,
    }
}

pub(in crate::sync) const GONE: &str =
    r#"{"kind":"Status","reason":"NotFound","details":{"name":"a","kind":"configmaps"},"code":404}"#;
pub(in crate::sync) const LIST_WITHOUT: &str =
    r#"{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"50"},"items":null}"#;
const NO_DEFAULT: &str = r#"{"kind":"Status","reason":"NotFound","details":{"name":"default"}}"#;
/// What an ordinary hub serves.
pub(in crate::sync) const GROUPS: &str =
    r#"{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"version":"v1"}]}]}"#;
pub(in crate::sync) const OUR_COPY: &str = r#"{"metadata":{"namespace":"shop","name":"a","uid":"u1","resourceVersion":"7","annotations":{"edge.kubestellar.io/downsynced":"ConfigMap/shop/a","edge.kubestellar.io/owner":"u9/configmaps/"}}}"#;

// Issue 41: an earlier version has marked what the edge's API server keeps for itself.
#[tokio::test]
async fn our_marks_are_removed_from_what_its_side_keeps_for_itself_and_nothing_is_asked_of_the_other() {
    const ROOT: &str = r#"{"metadata":{"namespace":"shop","name":"kube-root-ca.crt","uid":"u1","resourceVersion":"7","labels":{"edge.kubestellar.io/downsynced":"true"},"annotations":{"edge.kubestellar.io/downsynced":"ConfigMap/shop/kube-root-ca.crt","edge.kubestellar.io/owner":"u9/configmaps/"}}}"#;
    const RELEASED: &str =
        r#"{"metadata":{"namespace":"shop","name":"kube-root-ca.crt","uid":"u1","resourceVersion":"8"}}"#;
    let there = Address {
        resource: ResourceType::config_maps(),
        name: ObjectName::new("shop", "kube-root-ca.crt"),
    };
    for (selection, adopted, is_held) in [
        (Selection::Full, false, false),
        (Selection::None, true, true),
        (Selection::Named, false, false),
    ] {
        let (hub, nothing) = scripted(Side::Hub, &[]);
        let (edge, asked) = scripted(Side::Edge, &[(200, ROOT), (200, RELEASED)]);
        let marked = Job {
            selection,
            is_held,
            origin: there.clone(),
            copy_at: there.clone(),
            copy: Copy {
                kept: true,
                adopted,
                ..OURS
            },
            ..job()
        };
        let outcome = reconcile(&hub, &edge, marked).await.unwrap();
        assert_eq!(outcome.ending, Change::Released);
        let seen = outcome.copy.unwrap();
        assert_eq!((seen.copy.state, seen.copy.kept), (CopyState::Foreign, true));
        let patch = asked.borrow()[1].clone();
        assert!(
            patch.starts_with("PATCH ") && patch.contains(r#""resourceVersion":"7""#),
            "{patch}"
        );
        assert!(nothing.borrow().is_empty(), "{nothing:?}");
    }
}

// A read of the copy alone says nothing of an origin that nothing has reported.
#[tokio::test]
async fn an_unselected_copy_of_which_it_is_not_known_whether_it_has_an_origin_is_asked_for_at_the_origins_side() {
    let origin = r#"{"metadata":{"namespace":"shop","name":"a","uid":"u9","resourceVersion":"9"}}"#;
    for (answer, change) in [
        ((404, GONE), Ending::from(HeldFor::AnotherLook)),
        ((200, origin), Why::NotSelected.into()),
    ] {
        let (hub, _) = scripted(Side::Hub, &[answer]);
        let (edge, asked) = scripted(Side::Edge, &[(200, OUR_COPY)]);
        let unverified = Job {
            selection: Selection::None,
            read_first: true,
            unverified: true,
            may_delete: false,
            ..job()
        };
        assert_eq!(reconcile(&hub, &edge, unverified).await.unwrap().ending, change);
        assert_eq!(asked.borrow().len(), 1, "the copy may be gone, too");
    }
}

#[tokio::test]
async fn a_copy_that_is_held_is_read_and_nothing_else() {
    for (answer, expected) in [
        ((404, GONE), Ending::from(Why::Gone)),
        ((200, OUR_COPY), HeldFor::StillThere.into()),
    ] {
        let (hub, _) = scripted(Side::Hub, &[]);
        let (edge, asked) = scripted(Side::Edge, &[answer]);
        let held = Job {
            is_held: true,
            may_delete: false,
            deletes_are_held: true,
            read_first: true,
            ..job()
        };
        assert_eq!(reconcile(&hub, &edge, held).await.unwrap().ending, expected);
        assert_eq!(asked.borrow().len(), 1);
    }
}

#[tokio::test]
async fn what_a_conversion_has_made_of_another_origin_in_the_place_of_a_copy_is_not_taken_for_the_copy() {
    let of_another = OUR_COPY.replace(
        r#""annotations":{"#,
        r#""annotations":{"edge.kubestellar.io/renamed-from":"ConfigMap/b","#,
    );
    for (copy, expected) in [
        (OUR_COPY, Ending::from(Why::NotSelected)),
        (of_another.leak(), Why::Gone.into()),
    ] {
        let (hub, _) = scripted(Side::Hub, &[]);
        let (edge, _) = scripted(Side::Edge, &[(200, copy)]);
        let unselected = Job {
            selection: Selection::None,
            read_first: true,
            may_delete: false,
            ..job()
        };
        let outcome = reconcile(&hub, &edge, unselected).await.unwrap();
        assert_eq!(outcome.ending, expected);
        let is_ours = outcome.copy.map(|seen| seen.copy.state == CopyState::Ours);
        assert_eq!(is_ours, Some(expected == Why::NotSelected));
    }
}

#[tokio::test]
async fn a_copy_is_not_replaced_by_what_the_edge_would_not_create() {
    let invalid =
        r#"{"kind":"Status","reason":"Invalid","message":"field is immutable","details":{"name":"a"},"code":422}"#;
    let wanted = r#"{"metadata":{"namespace":"shop","name":"a","annotations":{"edge.kubestellar.io/replace":"true"}},"data":{"k":"v"}}"#;
    let (hub, _) = scripted(Side::Hub, &[(200, wanted)]);
    let (edge, asked) = scripted(Side::Edge, &[(422, invalid), (422, invalid)]);
    assert!(reconcile(&hub, &edge, job()).await.unwrap_err().error.is_invalid());
    assert!(
        asked.borrow()[1].starts_with("POST /api/v1/namespaces/shop/configmaps?dryRun=All"),
        "{asked:?}"
    );
}

// A create without an answer may have taken effect, or somebody else may have created the object since.
#[tokio::test]
async fn an_object_that_appeared_after_an_unanswered_create_is_known_by_its_marks() {
    let wanted = r#"{"metadata":{"namespace":"shop","name":"a"},"data":{"k":"v"}}"#;
    let theirs = r#"{"metadata":{"namespace":"shop","name":"a","uid":"u2","resourceVersion":"9"}}"#;
    for (copy, adopted) in [(OUR_COPY, false), (theirs, true)] {
        let (hub, _) = scripted(Side::Hub, &[(200, wanted)]);
        let (edge, asked) = scripted(Side::Edge, &[(200, copy), (200, OUR_COPY)]);
        let unsure = Job {
            copy: ABSENT,
            read_first: true,
            ..job()
        };
        reconcile(&hub, &edge, unsure).await.unwrap();
        let apply = asked.borrow()[1].clone();
        assert!(apply.starts_with("PATCH"), "{apply}");
        assert_eq!(apply.contains("edge.kubestellar.io/adopted"), adopted, "{apply}");
    }
}

fn up() -> Job {
    Job {
        direction: Direction::Up,
        copy: ABSENT,
        ..job()
    }
}

const EDGE_OBJECT: &str = r#"{"metadata":{"namespace":"shop","name":"a","resourceVersion":"3"},"data":{"k":"v"}}"#;
const UPSYNCED: &str = r#"{"metadata":{"namespace":"shop","name":"a","uid":"u1","resourceVersion":"7","annotations":{"edge.kubestellar.io/upsynced":"ConfigMap/shop/a","edge.kubestellar.io/owner":"u3/configmaps/"}}}"#;
const EXISTS: &str = r#"{"kind":"Status","reason":"AlreadyExists","details":{"name":"a"},"code":409}"#;

#[tokio::test]
async fn an_upsynced_copy_is_made_by_a_create_and_changed_at_the_version_that_was_seen() {
    let (edge, _) = scripted(Side::Edge, &[(200, EDGE_OBJECT)]);
    let (hub, asked) = scripted(Side::Hub, &[(201, UPSYNCED)]);
    assert_eq!(reconcile(&hub, &edge, up()).await.unwrap().ending, Change::Created);
    assert!(
        asked.borrow()[0].starts_with("POST /api/v1/namespaces/shop/configmaps?"),
        "{asked:?}"
    );

    let (edge, _) = scripted(Side::Edge, &[(200, EDGE_OBJECT)]);
    let (hub, asked) = scripted(Side::Hub, &[(200, UPSYNCED)]);
    let ours = Job {
        copy: OURS,
        copy_version: 6,
        ..up()
    };
    assert_eq!(reconcile(&hub, &edge, ours).await.unwrap().ending, Change::Updated);
    let apply = asked.borrow()[0].clone();
    assert!(
        apply.starts_with("PATCH") && apply.contains(r#""resourceVersion":"6""#),
        "{apply}"
    );
}

#[tokio::test]
async fn a_hub_object_of_somebody_else_is_preserved() {
    let theirs = r#"{"metadata":{"namespace":"shop","name":"a","uid":"u2","resourceVersion":"9"}}"#;
    let (edge, _) = scripted(Side::Edge, &[(200, EDGE_OBJECT)]);
    let (hub, asked) = scripted(Side::Hub, &[(409, EXISTS), (200, theirs)]);
    assert_eq!(reconcile(&hub, &edge, up()).await.unwrap().ending, Why::Conflict(None));
    assert_eq!(asked.borrow().len(), 2);
}

#[tokio::test]
async fn a_create_whose_answer_was_lost_is_found_to_be_ours() {
    let (edge, _) = scripted(Side::Edge, &[(200, EDGE_OBJECT)]);
    let (hub, asked) = scripted(Side::Hub, &[(409, EXISTS), (200, UPSYNCED), (200, UPSYNCED)]);
    assert_eq!(reconcile(&hub, &edge, up()).await.unwrap().ending, Change::Updated);
    assert!(asked.borrow()[2].contains(r#""resourceVersion":"7""#), "{asked:?}");
}

#[tokio::test]
async fn what_goes_while_it_is_in_the_way_is_not_taken_for_an_end() {
    const ABSENT_NOW: &str = r#"{"kind":"Status","reason":"NotFound","details":{"name":"a"},"code":404}"#;
    // The next try creates it.
    let (edge, _) = scripted(Side::Edge, &[(200, EDGE_OBJECT)]);
    let (hub, _) = scripted(Side::Hub, &[(409, EXISTS), (404, ABSENT_NOW)]);
    assert!(reconcile(&hub, &edge, up()).await.unwrap_err().error.is_conflict());
    // Somebody else's object was there when it was last heard of.
    let foreign = Job { copy: FOREIGN, ..up() };
    let (edge, _) = scripted(Side::Edge, &[(200, EDGE_OBJECT)]);
    let (hub, _) = scripted(Side::Hub, &[(404, ABSENT_NOW), (201, UPSYNCED)]);
    assert_eq!(reconcile(&hub, &edge, foreign).await.unwrap().ending, Change::Created);
}

#[tokio::test]
async fn a_copy_is_not_synced_back() {
    let (hub, _) = scripted(Side::Hub, &[(200, UPSYNCED)]);
    let (edge, asked) = scripted(Side::Edge, &[]);
    let outcome = reconcile(&hub, &edge, job()).await.unwrap();
    assert_eq!(outcome.ending, Why::NotSelected);
    let (edge, _) = scripted(Side::Edge, &[(200, OUR_COPY)]);
    let (hub, _) = scripted(Side::Hub, &[]);
    let outcome = reconcile(&hub, &edge, up()).await.unwrap();
    assert_eq!(outcome.ending, Why::NotSelected);
    assert!(asked.borrow().is_empty());
}

#[tokio::test]
async fn a_namespace_that_upsync_has_made_is_created_for_what_goes_into_it_and_to_nothing_else() {
    const WANTED: &str = r#"{"metadata":{"namespace":"shop","name":"a"},"data":{"k":"v"}}"#;
    const COPY: &str = r#"{"metadata":{"namespace":"shop","name":"a","uid":"u1","resourceVersion":"7"}}"#;
    const NO_NAMESPACE: &str = r#"{"kind":"Status","reason":"NotFound","message":"namespaces \"shop\" not found","details":{"name":"shop","kind":"namespaces"},"code":404}"#;
    const OF_UPSYNC: &str =
        r#"{"metadata":{"name":"shop","annotations":{"edge.kubestellar.io/upsynced":"Namespace//shop"}}}"#;
    const OF_PEOPLE: &str = r#"{"metadata":{"name":"shop"}}"#;
    let absent = Job { copy: ABSENT, ..job() };
    let (hub, _) = scripted(Side::Hub, &[(200, WANTED), (200, OF_UPSYNC)]);
    let (edge, asked) = scripted(Side::Edge, &[(404, NO_NAMESPACE), (201, OF_PEOPLE), (201, COPY)]);
    assert_eq!(reconcile(&hub, &edge, absent).await.unwrap().ending, Change::Created);
    let created = r#"POST /api/v1/namespaces?fieldManager=edge-syncer {"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}"#;
    assert_eq!(asked.borrow()[1], created);
    // The rules of the edge's owner decide.
    let refused = Job {
        copy: ABSENT,
        namespace_refused: true,
        ..job()
    };
    let (hub, _) = scripted(Side::Hub, &[(200, WANTED)]);
    let (edge, asked) = scripted(Side::Edge, &[(404, NO_NAMESPACE)]);
    reconcile(&hub, &edge, refused).await.unwrap_err();
    assert_eq!(asked.borrow().len(), 1, "{asked:?}");
    for answer in [(200, OF_PEOPLE), (404, NO_NAMESPACE), (503, "")] {
        let (hub, _) = scripted(Side::Hub, &[(200, WANTED), answer]);
        let (edge, asked) = scripted(Side::Edge, &[(404, NO_NAMESPACE)]);
        let absent = Job { copy: ABSENT, ..job() };
        reconcile(&hub, &edge, absent).await.unwrap_err();
        assert_eq!(asked.borrow().len(), 1, "{answer:?}");
    }
}

#[tokio::test]
async fn what_is_read_to_be_as_it_was_is_not_written() {
    const WANTED: &str = r#"{"metadata":{"namespace":"shop","name":"a","resourceVersion":"3"},"data":{"k":"v"}}"#;
    let ask = async |unread, answers: &[(u16, &'static str)]| {
        let (hub, _) = scripted(Side::Hub, &[(200, WANTED)]);
        let (edge, asked) = scripted(Side::Edge, answers);
        let outcome = reconcile(&hub, &edge, Job { unread, ..job() }).await.unwrap();
        let requests = asked.borrow().len();
        (outcome, requests)
    };
    let (outcome, requests) = ask(Some(0), &[(200, OUR_COPY)]).await;
    assert!(requests == 1 && outcome.origin.is_some(), "{outcome:?}");
    let (again, requests) = ask(Some(outcome.desired_hash), &[]).await;
    assert_eq!((requests, &again.ending), (0, &Change::Unchanged.into()));
    assert_eq!(
        (again.origin, again.desired_hash),
        (outcome.origin, outcome.desired_hash)
    );
    // If its side reports it, its status is not read a second time.
    let (outcome, _) = ask(None, &[(200, OUR_COPY)]).await;
    assert_eq!(outcome.origin, None);
}

// Seed 52220 of the simulation: the right hub was back, and what it had was marked as another's.
#[tokio::test]
async fn a_copy_is_marked_with_the_cluster_that_answers_now_after_another_one_has() {
    const ORIGIN: &str = r#"{"metadata":{"namespace":"shop","name":"a","uid":"u9","resourceVersion":"9"}}"#;
    let of = |cluster: &str| Copy {
        cluster: origin_hash(cluster),
        made_at: 8,
        ..OURS
    };
    for (copy, answers, expected) in [
        (
            ABSENT,
            vec![(200, r#"{"metadata":{"name":"kube-system","uid":"right"}}"#)],
            "right/9",
        ),
        (
            ABSENT,
            vec![
                (200, r#"{"metadata":{"name":"kube-system","uid":"other"}}"#),
                (404, NO_DEFAULT),
                (404, "404 page not found"),
            ],
            "other/9",
        ),
        (of("right"), vec![], "right/8"),
    ] {
        let answers: Vec<_> = [(200, ORIGIN)].into_iter().chain(answers).collect();
        let (hub, asked) = scripted(Side::Hub, &answers);
        let (edge, written) = scripted(Side::Edge, &[(201, OUR_COPY)]);
        let mut job = Job { copy, ..job() };
        let identity = Rc::make_mut(&mut job.identity);
        identity.expect("right".into());
        identity.answers("other");
        reconcile(&hub, &edge, job).await.unwrap();
        let mark = format!(r#""edge.kubestellar.io/source":"{expected}""#);
        assert!(written.borrow()[0].contains(&mark), "{:?}", written.borrow());
        assert_eq!(asked.borrow().len(), answers.len());
    }
    let (hub, _) = scripted(Side::Hub, &[(200, ORIGIN), (503, "")]);
    let (edge, written) = scripted(Side::Edge, &[]);
    let mut job = Job { copy: ABSENT, ..job() };
    let identity = Rc::make_mut(&mut job.identity);
    identity.expect("right".into());
    identity.answers("other");
    reconcile(&hub, &edge, job).await.unwrap_err();
    assert!(written.borrow().is_empty(), "nothing is written before it is known");
}

// The type of a Secret is not in its metadata.
#[tokio::test]
async fn a_credential_in_the_place_of_a_copy_belongs_to_its_side() {
    const OPAQUE: &str =
        r#"{"metadata":{"namespace":"shop","name":"a","uid":"u9","resourceVersion":"40"},"type":"Opaque"}"#;
    const CONFLICT: &str = r#"{"kind":"Status","reason":"Conflict","details":{"name":"a"},"code":409}"#;
    let there = |kind: &str| -> &'static str {
        format!(r#"{{"metadata":{{"namespace":"shop","name":"a","uid":"u2","resourceVersion":"9"}},"type":"{kind}"}}"#)
            .leak()
    };
    let secrets = |job: Job| {
        let address = Address {
            resource: ResourceType {
                resource: "secrets".into(),
                kind: "Secret".into(),
                ..ResourceType::config_maps()
            },
            name: ObjectName::new("shop", "a"),
        };
        Job {
            origin: address.clone(),
            copy_at: address,
            ..job
        }
    };
    for (kind, kept) in [
        ("kubernetes.io/service-account-token", true),
        ("bootstrap.kubernetes.io/token", true),
        ("kubernetes.io/tls", false),
    ] {
        let there = (200, there(kind));
        // It may have come just now, a watch may have shown its metadata, or a worker may read it first.
        for (copy, read_first, refused) in [(ABSENT, false, true), (FOREIGN, false, false), (ABSENT, true, false)] {
            let job = || Job {
                copy,
                read_first,
                ..secrets(job())
            };
            let refusals = |code, refusal| [(code, refusal)].into_iter().filter(move |_| refused);
            let answers: Vec<_> = refusals(409, CONFLICT).chain([there, there]).collect();
            let (hub, _) = scripted(Side::Hub, &[(200, OPAQUE)]);
            let (edge, asked) = scripted(Side::Edge, &answers);
            let outcome = reconcile(&hub, &edge, job()).await.unwrap();
            assert_eq!(outcome.ending == Why::Kept, kept, "{kind} {copy:?} {outcome:?}");
            let writes = asked.borrow().iter().filter(|asked| !asked.starts_with("GET ")).count();
            assert_eq!(writes, usize::from(refused) + usize::from(!kept), "{asked:?}");

            let (edge, _) = scripted(Side::Edge, &[(200, OPAQUE)]);
            let (hub, asked) = scripted(
                Side::Hub,
                &refusals(409, EXISTS).chain([there, there]).collect::<Vec<_>>(),
            );
            let direction = Direction::Up;
            let outcome = reconcile(&hub, &edge, Job { direction, ..job() }).await.unwrap();
            let expected = if kept { Why::Kept } else { Why::Conflict(None) };
            assert_eq!(outcome.ending, expected, "{kind} {copy:?}");
            assert!(
                !asked.borrow().iter().any(|asked| asked.starts_with("PATCH ")),
                "{asked:?}"
            );
        }
    }
    // One with our marks was made by us, whatever it is now.
    let ours = there("kubernetes.io/service-account-token").replace(
        r#""uid""#,
        r#""annotations":{"edge.kubestellar.io/downsynced":"Secret/shop/a","edge.kubestellar.io/owner":"u9/secrets/"},"uid""#,
    );
    let (hub, _) = scripted(Side::Hub, &[(200, OPAQUE)]);
    let (edge, asked) = scripted(
        Side::Edge,
        &[(409, CONFLICT), (200, ours.clone().leak()), (200, ours.leak())],
    );
    let absent = Job {
        copy: ABSENT,
        ..secrets(job())
    };
    reconcile(&hub, &edge, absent).await.unwrap();
    assert!(asked.borrow()[2].starts_with("PATCH "), "{asked:?}");
}
