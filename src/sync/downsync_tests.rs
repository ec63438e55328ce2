use super::*;
use crate::sync::reconcile::tests::{ABSENT, FOREIGN, OURS};

/// Whole, and whether it is created once.
const WHOLE: (bool, bool) = (true, false);
const ONCE: (bool, bool) = (true, true);
const IMPLIED: (bool, bool) = (false, false);

fn create_only(copy: Copy) -> Copy {
    Copy {
        create_only: true,
        ..copy
    }
}

#[test]
fn decides_as_the_spec_says() {
    let apply = || Action::Apply { adopted: false };
    let adopt = || Action::Apply { adopted: true };
    let adopted = Copy { adopted: true, ..OURS };
    let anothers = Copy {
        state: CopyState::Anothers,
        ..OURS
    };
    let terminating = Copy {
        terminating: true,
        ..OURS
    };
    let kept = |copy| Copy { kept: true, ..copy };
    for (row, (whole, once), copy, expected) in [
        ("3.4 create", WHOLE, ABSENT, apply()),
        ("3.4 update", WHOLE, OURS, apply()),
        ("3.4 foreign is overwritten and marked", WHOLE, FOREIGN, adopt()),
        ("adopted stays adopted", WHOLE, adopted, adopt()),
        ("3.2 implied namespace is created", IMPLIED, ABSENT, apply()),
        ("3.2 implied namespace of ours", IMPLIED, OURS, apply()),
        (
            "3.2 implied namespace that was there is not adopted",
            IMPLIED,
            FOREIGN,
            Action::Leave(Why::NotOurs),
        ),
        ("another syncer's is not touched", WHOLE, anothers, Action::Conflict),
        (
            "nor what its side keeps for itself",
            WHOLE,
            kept(FOREIGN),
            Action::Conflict,
        ),
        ("whatever marks it has", ONCE, kept(OURS), Action::Conflict),
        (
            "an implied one will do",
            IMPLIED,
            kept(FOREIGN),
            Action::Leave(Why::NotOurs),
        ),
        ("whatever it says", ONCE, create_only(anothers), Action::Conflict),
        (
            "another syncer's implied namespace will do",
            IMPLIED,
            anothers,
            Action::Leave(Why::NotOurs),
        ),
        ("3.6 absent downstream: in full", ONCE, ABSENT, apply()),
        (
            "3.6 false on both sides: no write",
            ONCE,
            create_only(OURS),
            Action::Leave(Why::CreateOnly),
        ),
        (
            "3.6 false upstream, else downstream: only the mark",
            ONCE,
            OURS,
            Action::MarkCreateOnly,
        ),
        (
            "3.6 false upstream, foreign: only the mark",
            ONCE,
            FOREIGN,
            Action::MarkCreateOnly,
        ),
        (
            "3.6 false upstream, foreign and marked",
            ONCE,
            create_only(FOREIGN),
            Action::Leave(Why::CreateOnly),
        ),
        ("3.6 back to true: overwrite again", WHOLE, create_only(OURS), apply()),
        (
            "terminating is waited for",
            WHOLE,
            terminating,
            Action::Leave(Why::Terminating),
        ),
    ] {
        assert_eq!(decide(whole, once, copy, false), expected, "{row}");
    }
}

#[test]
fn a_copy_that_is_created_once_becomes_that_of_the_next_origin() {
    for (copy, expected) in [
        (create_only(OURS), Action::MarkCreateOnly),
        (OURS, Action::MarkCreateOnly),
        (ABSENT, Action::Apply { adopted: false }),
    ] {
        assert_eq!(decide(true, true, copy, true), expected, "{copy:?}");
    }
}

mod stories {
    use std::rc::Rc;

    use kube_lite::ResourceType;

    use super::*;
    use crate::sync::job::{Ending, HeldFor};
    use crate::sync::ownership::origin_hash;
    use crate::sync::reconcile::reconcile;
    use crate::sync::reconcile::tests::{GROUPS, OUR_COPY, job};
    use crate::sync::scripted::scripted;

    /// As the hub has it: another object than the one with the UID `u9`, of which [`OUR_COPY`] was made.
    const ANOTHER: &str =
        r#"{"metadata":{"namespace":"shop","name":"a","uid":"u10","resourceVersion":"40"},"data":{"k":"v"}}"#;
    const NAMED: &str = r#"{"kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"50"},"items":[{"metadata":{"name":"a"}}]}"#;
    const IMMUTABLE: &str = r#"{"kind":"Status","reason":"Invalid","message":"field is immutable when `immutable` is set","details":{"name":"a"},"code":422}"#;
    const EXISTS: &str = r#"{"kind":"Status","reason":"AlreadyExists","details":{"name":"a"},"code":409}"#;
    const CONFLICT: &str = r#"{"kind":"Status","reason":"Conflict","details":{"name":"a"},"code":409}"#;
    const DELETED: &str = r#"{"kind":"Status"}"#;

    fn of_u9() -> Job {
        Job {
            copy: Copy {
                origin: origin_hash("u9"),
                ..OURS
            },
            ..job()
        }
    }

    fn verbs(asked: &Rc<std::cell::RefCell<Vec<String>>>) -> Vec<String> {
        let asked = asked.borrow();
        asked
            .iter()
            .map(|asked| asked.split(' ').next().unwrap().to_owned())
            .collect()
    }

    #[tokio::test]
    async fn an_immutable_copy_of_an_object_that_was_deleted_and_recreated_is_replaced() {
        let (hub, _) = scripted(
            Side::Hub,
            &[(200, ANOTHER), (200, ANOTHER), (200, NAMED), (200, GROUPS)],
        );
        let answers = [
            (422, IMMUTABLE),
            (409, EXISTS),
            (200, OUR_COPY),
            (200, DELETED),
            (201, OUR_COPY),
        ];
        let (edge, asked) = scripted(Side::Edge, &answers);
        assert_eq!(reconcile(&hub, &edge, of_u9()).await.unwrap().ending, Change::Replaced);
        assert_eq!(verbs(&asked), ["PATCH", "POST", "GET", "DELETE", "PATCH"]);
        // The same object with another value is refused as ever.
        let same = ANOTHER.replace("u10", "u9").leak();
        let (hub, _) = scripted(Side::Hub, &[(200, same)]);
        let (edge, _) = scripted(Side::Edge, &[(422, IMMUTABLE)]);
        assert!(reconcile(&hub, &edge, of_u9()).await.unwrap_err().error.is_invalid());
    }

    #[tokio::test]
    async fn a_copy_is_replaced_only_with_all_proofs() {
        let gone_back = NAMED.replace("50", "39").leak();
        let other = r#"{"metadata":{"name":"kube-system","uid":"c2"}}"#;
        let no_default = r#"{"kind":"Status","reason":"NotFound","details":{"name":"default"},"code":404}"#;
        let third = ANOTHER.replace("u10", "u11").leak();
        for (held, answers, expected) in [
            (true, vec![], HeldFor::AnotherLook),
            (false, vec![(200, &*third)], HeldFor::AnotherLook),
            (false, vec![(200, ANOTHER), (200, &*gone_back)], HeldFor::WentBack(39)),
            (
                false,
                vec![
                    (200, ANOTHER),
                    (200, NAMED),
                    (200, other),
                    (404, no_default),
                    (404, "404 page not found"),
                ],
                HeldFor::OtherCluster("c2".into()),
            ),
        ] {
            let answers: Vec<_> = [(200, ANOTHER)].into_iter().chain(answers).collect();
            let (hub, _) = scripted(Side::Hub, &answers);
            let (edge, asked) = scripted(Side::Edge, &[(422, IMMUTABLE), (409, EXISTS)]);
            let mut job = Job {
                deletes_are_held: held,
                origin_version: 45,
                ..of_u9()
            };
            Rc::make_mut(&mut job.identity).expect("c1".into());
            assert_eq!(reconcile(&hub, &edge, job).await.unwrap().ending, expected);
            assert_eq!(verbs(&asked), ["PATCH", "POST"]);
        }
    }

    /// Its status would never return otherwise: that of one object is not written to the next one of its name.
    #[tokio::test]
    async fn a_copy_that_is_created_once_says_of_which_origin_it_is_and_keeps_the_rest() {
        let once = ANOTHER
            .replace(
                r#""uid""#,
                r#""annotations":{"edge.kubestellar.io/downsync-overwrite":"false"},"uid""#,
            )
            .leak();
        for (was_once, origin, patched) in [(true, "u9", true), (false, "u9", true), (false, "u10", false)] {
            let (hub, _) = scripted(Side::Hub, &[(200, &*once)]);
            let (edge, asked) = scripted(Side::Edge, &[(200, OUR_COPY)]);
            let copy = Copy {
                create_only: was_once,
                origin: origin_hash(origin),
                ..OURS
            };
            let outcome = reconcile(
                &hub,
                &edge,
                Job {
                    copy,
                    copy_version: 7,
                    ..job()
                },
            )
            .await
            .unwrap();
            assert_eq!(outcome.ending, Change::MarkedCreateOnly);
            let owner = patched.then_some(r#""edge.kubestellar.io/owner":"u10/configmaps/"#);
            let body = asked.borrow()[0].clone();
            assert!(
                body.contains(r#""edge.kubestellar.io/downsync-overwrite":"false""#),
                "{body}"
            );
            assert_eq!(owner.is_some_and(|owner| body.contains(owner)), patched, "{body}");
            assert_eq!(body.contains(r#""resourceVersion":"7""#), patched, "{body}");
        }
    }

    fn of_type(group: &str, plural: &str, kind: &str) -> ResourceType {
        ResourceType {
            group: group.into(),
            resource: plural.into(),
            kind: kind.into(),
            ..ResourceType::config_maps()
        }
    }

    #[tokio::test]
    async fn a_job_that_has_finished_runs_again_only_as_another_object() {
        let hub_has = |uid: &str, condition: &str| -> &'static str {
            let status = format!(r#"{{"conditions":[{{"type":"{condition}","status":"True"}}]}}"#);
            format!(r#"{{"metadata":{{"namespace":"shop","name":"a","uid":"{uid}"}},"status":{status}}}"#).leak()
        };
        for (condition, runs) in [
            ("Complete", false),
            ("Failed", false),
            ("SuccessCriteriaMet", false),
            ("FailureTarget", false),
            ("Suspended", true),
        ] {
            let (hub, _) = scripted(Side::Hub, &[(200, hub_has("u9", condition))]);
            let (edge, asked) = scripted(Side::Edge, &[(201, OUR_COPY)]);
            let mut job = Job { copy: ABSENT, ..job() };
            (job.origin.resource, job.copy_at.resource) =
                (of_type("batch", "jobs", "Job"), of_type("batch", "jobs", "Job"));
            let change = reconcile(&hub, &edge, job).await.unwrap().ending;
            assert_eq!(asked.borrow().len(), usize::from(runs), "{condition}");
            assert_eq!(change == Why::Finished, !runs, "{condition}");
        }
        // Created again at the hub, its status is empty, and the copy of the old one has to go first.
        let (hub, _) = scripted(
            Side::Hub,
            &[(200, ANOTHER), (200, ANOTHER), (200, NAMED), (200, GROUPS)],
        );
        let copy = OUR_COPY
            .replace("ConfigMap/", "Job/")
            .replace("configmaps", "jobs.batch")
            .leak();
        let answers = [(409, EXISTS), (200, &*copy), (200, DELETED), (201, &*copy)];
        let (edge, asked) = scripted(Side::Edge, &answers);
        let mut job = of_u9();
        (job.origin.resource, job.copy_at.resource) =
            (of_type("batch", "jobs", "Job"), of_type("batch", "jobs", "Job"));
        Rc::make_mut(&mut job.definitions).set("jobs.batch", crate::sync::definition::DefinedBy::Nothing);
        assert_eq!(reconcile(&hub, &edge, job).await.unwrap().ending, Change::Replaced);
        assert_eq!(verbs(&asked), ["POST", "GET", "DELETE", "PATCH"]);
    }

    // Two hubs on one edge that begin at the same moment.
    #[tokio::test]
    async fn what_has_come_into_the_place_of_a_copy_is_read_before_it_is_overwritten() {
        const ANOTHERS: &str = r#"{"metadata":{"namespace":"shop","name":"a","uid":"u1","resourceVersion":"7","annotations":{"edge.kubestellar.io/downsynced":"ConfigMap/shop/a","edge.kubestellar.io/owner":"u9/configmaps/site-8"}}}"#;
        const THEIRS: &str = r#"{"metadata":{"namespace":"shop","name":"a","uid":"u2","resourceVersion":"9"}}"#;
        for (there, expected, writes) in [
            (ANOTHERS, Ending::from(Why::Conflict(Some("site-8".into()))), 1),
            (OUR_COPY, Change::Updated.into(), 2),
            (THEIRS, Change::Adopted.into(), 2),
        ] {
            let (hub, _) = scripted(Side::Hub, &[(200, ANOTHER)]);
            let (edge, asked) = scripted(Side::Edge, &[(409, CONFLICT), (200, there), (200, OUR_COPY)]);
            let absent = Job { copy: ABSENT, ..job() };
            assert_eq!(reconcile(&hub, &edge, absent).await.unwrap().ending, expected);
            assert!(asked.borrow()[0].contains(r#""resourceVersion":"1""#), "{asked:?}");
            let patches = verbs(&asked).into_iter().filter(|verb| verb == "PATCH").count();
            assert_eq!(patches, writes, "{there}");
        }
    }
}
