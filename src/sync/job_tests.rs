use super::*;
use crate::cluster::ResourceType;
use crate::sync::scripted::scripted;

const OURS: Copy = Copy {
    state: CopyState::Ours,
    hands_off: false,
    adopted: false,
    terminating: false,
};
const FOREIGN: Copy = Copy {
    state: CopyState::Foreign,
    ..OURS
};
const ABSENT: Copy = Copy {
    state: CopyState::Absent,
    ..OURS
};
const HANDS_OFF: Copy = Copy {
    hands_off: true,
    ..OURS
};
const ADOPTED: Copy = Copy { adopted: true, ..OURS };
const TERMINATING: Copy = Copy {
    terminating: true,
    ..OURS
};

#[test]
fn retires_a_copy_as_the_spec_says() {
    for (row, copy, expected) in [
        (
            "3.6 false downstream: kept",
            HANDS_OFF,
            Retirement::Leave(Why::HandsOff),
        ),
        ("3.5 ours", OURS, Retirement::Delete),
        ("3.5 not ours", FOREIGN, Retirement::Leave(Why::NotOurs)),
        ("3.5 nothing there", ABSENT, Retirement::Leave(Why::Gone)),
        ("adopted is released", ADOPTED, Retirement::Release),
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
    for copy in [OURS, FOREIGN, ABSENT, ADOPTED, HANDS_OFF, TERMINATING] {
        let retirement = retirement(copy, true);
        assert!(matches!(retirement, Retirement::Leave(_)), "{copy:?} {retirement:?}");
    }
}

fn job() -> Job {
    let address = Address {
        resource: ResourceType::config_maps(),
        name: ObjectName::new("shop", "a"),
    };
    Job {
        direction: Direction::Down,
        origin: address.clone(),
        copy_at: address,
        type_gone: false,
        policy: Rc::default(),
        selection: Selection::Full,
        body: None,
        copy: OURS,
        copy_version: 0,
        origin_told: 0,
        origin_unnamed: 0,
        look_first: false,
        suspect: false,
        protected: false,
        identity: Rc::default(),
        definitions: Rc::default(),
        origin_version: 0,
        may_delete: true,
    }
}

const GONE: &str = r#"{"kind":"Status","reason":"NotFound","details":{"name":"a","kind":"configmaps"},"code":404}"#;
const LIST_WITHOUT: &str = r#"{"metadata":{"resourceVersion":"50"},"items":null}"#;
/// What an ordinary hub serves.
const GROUPS: &str = r#"{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"version":"v1"}]}]}"#;
const OUR_COPY: &str = r#"{"metadata":{"namespace":"shop","name":"a","uid":"u1","resourceVersion":"7","annotations":{"edge.kubestellar.io/downsynced":"ConfigMap/shop/a"}}}"#;

// A look at the copy alone says nothing of an origin of which nobody has told.
#[tokio::test]
async fn an_unselected_copy_of_which_it_is_not_known_whether_it_has_an_origin_is_asked_for_at_the_origins_side() {
    let origin = r#"{"metadata":{"namespace":"shop","name":"a","uid":"u9","resourceVersion":"9"}}"#;
    for (answer, change) in [
        ((404, GONE), Change::Held),
        ((200, origin), Change::Left(Why::NotSelected)),
    ] {
        let (hub, _) = scripted(Side::Hub, &[answer]);
        let (edge, asked) = scripted(Side::Edge, &[(200, OUR_COPY)]);
        let suspect = Job {
            selection: Selection::None,
            look_first: true,
            suspect: true,
            may_delete: false,
            ..job()
        };
        assert_eq!(reconcile(&hub, &edge, suspect).await.unwrap().change, change);
        assert_eq!(asked.borrow().len(), 1, "the copy may be gone, too");
    }
}

#[tokio::test]
async fn a_delete_names_the_uid_and_version_that_were_looked_at() {
    let (hub, _) = scripted(Side::Hub, &[(404, GONE), (200, LIST_WITHOUT), (200, GROUPS)]);
    let (edge, asked) = scripted(Side::Edge, &[(200, OUR_COPY), (200, r#"{"kind":"Status"}"#)]);
    let outcome = reconcile(&hub, &edge, job()).await.unwrap();
    assert_eq!(outcome.change, Change::Deleted);
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
    assert_eq!(reconcile(&hub, &edge, held).await.unwrap().change, Change::Held);
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
    let elsewhere = job();
    elsewhere.identity.expect("u8".into());
    let outcome = reconcile(&hub, &edge, elsewhere).await.unwrap();
    assert_eq!(outcome.change, Change::OtherCluster("u9".into()));
    assert_eq!(asked.borrow().len(), 1, "{asked:?}");
}

// Its watches may hear nothing of what was restored, and so no list may have told yet.
#[tokio::test]
async fn what_a_restored_hub_lacks_is_not_deleted() {
    let named = r#"{"metadata":{"resourceVersion":"50"},"items":[{"metadata":{"name":"a"}}]}"#;
    for (known, list, expected) in [
        (50, LIST_WITHOUT, Ok(Change::Deleted)),
        (
            50,
            r#"{"metadata":{"resourceVersion":"50"},"items":[]}"#,
            Ok(Change::Deleted),
        ),
        (51, LIST_WITHOUT, Ok(Change::WentBack(50))),
        (50, named, Err("a list names what a read said does not exist")),
        (50, "{}", Err("not an answer of a Kubernetes API: {}")),
    ] {
        let (hub, asked) = scripted(Side::Hub, &[(404, GONE), (200, list), (200, GROUPS)]);
        let (edge, _) = scripted(Side::Edge, &[(200, OUR_COPY), (200, r#"{"kind":"Status"}"#)]);
        let job = Job {
            origin_version: known,
            ..job()
        };
        let result = reconcile(&hub, &edge, job).await;
        match expected {
            Ok(change) => assert_eq!(result.unwrap().change, change),
            Err(words) => {
                let error = result.unwrap_err().error.to_string();
                assert!(error.contains(words), "{error}");
            }
        }
        let list = "GET /api/v1/namespaces/shop/configmaps?limit=1&fieldSelector=metadata.name%3Da ";
        assert_eq!(asked.borrow()[1], list);
    }
}

// Whoever deletes a CRD has the objects deleted first, truthfully.
#[tokio::test]
async fn an_object_that_its_type_takes_along_is_not_deleted() {
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
    let copy = OUR_COPY.replace("ConfigMap/", "Gauge/").leak();
    for (definition, expected) in [
        ((200, CRD), Ok(Change::Deleted)),
        (
            (200, GOING),
            Ok(Change::Withdrawn(Withdrawal::Going(Some("d1".into())))),
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
        let goes = expected == Ok(Change::Deleted);
        assert_eq!(
            result.map(|outcome| outcome.change).map_err(|failure| failure.doing),
            expected
        );
        assert_eq!(asked.borrow().len() == 2, goes, "{definition:?}");
    }
}

// Another hub may have said that it lacks the type.
#[tokio::test]
async fn that_a_type_is_gone_is_asked_once_more_before_its_copies_go() {
    let type_gone = r#"{"kind":"Status","reason":"NotFound","details":{},"code":404}"#;
    for (status, answer, goes) in [
        (404, type_gone, true),
        (404, "404 page not found", true),
        (200, LIST_WITHOUT, false),
        (403, GONE, false),
        (503, "", false),
    ] {
        let (hub, _) = scripted(Side::Hub, &[(status, answer), (200, GROUPS)]);
        let (edge, asked) = scripted(Side::Edge, &[(200, OUR_COPY), (200, r#"{"kind":"Status"}"#)]);
        let job = Job {
            type_gone: true,
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
    let answers = [(404, GONE), (200, LIST_WITHOUT), (200, GROUPS), (404, GONE)];
    let (hub, _) = scripted(Side::Hub, &answers);
    let (edge, asked) = scripted(Side::Edge, &[(200, OUR_COPY), (409, conflict), (200, theirs)]);
    let failure = reconcile(&hub, &edge, job()).await.unwrap_err();
    assert!(failure.error.is_conflict());
    let outcome = reconcile(&hub, &edge, job()).await.unwrap();
    assert_eq!(outcome.change, Change::Left(Why::NotOurs));
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
    let type_gone = r#"{"kind":"Status","reason":"NotFound","details":{},"code":404}"#;
    for (status, body) in [
        (404, type_gone),
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
async fn an_object_that_appeared_after_an_unanswered_create_is_told_by_its_marks() {
    let wanted = r#"{"metadata":{"namespace":"shop","name":"a"},"data":{"k":"v"}}"#;
    let theirs = r#"{"metadata":{"namespace":"shop","name":"a","uid":"u2","resourceVersion":"9"}}"#;
    for (copy, adopted) in [(OUR_COPY, false), (theirs, true)] {
        let (hub, _) = scripted(Side::Hub, &[(200, wanted)]);
        let (edge, asked) = scripted(Side::Edge, &[(200, copy), (200, OUR_COPY)]);
        let unsure = Job {
            copy: ABSENT,
            look_first: true,
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
const UPSYNCED: &str = r#"{"metadata":{"namespace":"shop","name":"a","uid":"u1","resourceVersion":"7","annotations":{"edge.kubestellar.io/upsynced":"ConfigMap/shop/a"}}}"#;
const EXISTS: &str = r#"{"kind":"Status","reason":"AlreadyExists","details":{"name":"a"},"code":409}"#;

#[tokio::test]
async fn an_upsynced_copy_is_made_by_a_create_and_changed_at_the_version_that_was_seen() {
    let (edge, _) = scripted(Side::Edge, &[(200, EDGE_OBJECT)]);
    let (hub, asked) = scripted(Side::Hub, &[(201, UPSYNCED)]);
    assert_eq!(reconcile(&hub, &edge, up()).await.unwrap().change, Change::Created);
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
    assert_eq!(reconcile(&hub, &edge, ours).await.unwrap().change, Change::Updated);
    let apply = asked.borrow()[0].clone();
    assert!(
        apply.starts_with("PATCH") && apply.contains(r#""resourceVersion":"6""#),
        "{apply}"
    );
}

#[tokio::test]
async fn a_hub_object_of_somebody_else_is_left_alone() {
    let theirs = r#"{"metadata":{"namespace":"shop","name":"a","uid":"u2","resourceVersion":"9"}}"#;
    let (edge, _) = scripted(Side::Edge, &[(200, EDGE_OBJECT)]);
    let (hub, asked) = scripted(Side::Hub, &[(409, EXISTS), (200, theirs)]);
    assert_eq!(reconcile(&hub, &edge, up()).await.unwrap().change, Change::Conflict);
    assert_eq!(asked.borrow().len(), 2);
}

#[tokio::test]
async fn a_create_whose_answer_was_lost_is_found_to_be_ours() {
    let (edge, _) = scripted(Side::Edge, &[(200, EDGE_OBJECT)]);
    let (hub, asked) = scripted(Side::Hub, &[(409, EXISTS), (200, UPSYNCED), (200, UPSYNCED)]);
    assert_eq!(reconcile(&hub, &edge, up()).await.unwrap().change, Change::Updated);
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
    assert_eq!(reconcile(&hub, &edge, foreign).await.unwrap().change, Change::Created);
}

#[tokio::test]
async fn a_copy_does_not_travel_back() {
    let (hub, _) = scripted(Side::Hub, &[(200, UPSYNCED)]);
    let (edge, asked) = scripted(Side::Edge, &[]);
    let outcome = reconcile(&hub, &edge, job()).await.unwrap();
    assert_eq!(outcome.change, Change::Left(Why::NotSelected));
    let (edge, _) = scripted(Side::Edge, &[(200, OUR_COPY)]);
    let (hub, _) = scripted(Side::Hub, &[]);
    let outcome = reconcile(&hub, &edge, up()).await.unwrap();
    assert_eq!(outcome.change, Change::Left(Why::NotSelected));
    assert!(asked.borrow().is_empty());
}

#[tokio::test]
async fn a_namespace_that_upsync_has_made_is_lent_to_what_goes_into_it_and_to_nothing_else() {
    const WANTED: &str = r#"{"metadata":{"namespace":"shop","name":"a"},"data":{"k":"v"}}"#;
    const COPY: &str = r#"{"metadata":{"namespace":"shop","name":"a","uid":"u1","resourceVersion":"7"}}"#;
    const NO_NAMESPACE: &str = r#"{"kind":"Status","reason":"NotFound","message":"namespaces \"shop\" not found","details":{"name":"shop","kind":"namespaces"},"code":404}"#;
    const OF_UPSYNC: &str =
        r#"{"metadata":{"name":"shop","annotations":{"edge.kubestellar.io/upsynced":"Namespace//shop"}}}"#;
    const OF_PEOPLE: &str = r#"{"metadata":{"name":"shop"}}"#;
    let absent = Job { copy: ABSENT, ..job() };
    let (hub, _) = scripted(Side::Hub, &[(200, WANTED), (200, OF_UPSYNC)]);
    let (edge, asked) = scripted(Side::Edge, &[(404, NO_NAMESPACE), (201, "{}"), (201, COPY)]);
    assert_eq!(reconcile(&hub, &edge, absent).await.unwrap().change, Change::Created);
    let created = r#"POST /api/v1/namespaces?fieldManager=edge-syncer {"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}"#;
    assert_eq!(asked.borrow()[1], created);
    for answer in [(200, OF_PEOPLE), (404, NO_NAMESPACE), (503, "")] {
        let (hub, _) = scripted(Side::Hub, &[(200, WANTED), answer]);
        let (edge, asked) = scripted(Side::Edge, &[(404, NO_NAMESPACE)]);
        let absent = Job { copy: ABSENT, ..job() };
        reconcile(&hub, &edge, absent).await.unwrap_err();
        assert_eq!(asked.borrow().len(), 1, "{answer:?}");
    }
}
