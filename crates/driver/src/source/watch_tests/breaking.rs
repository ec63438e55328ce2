//! Failures, watches that break, and how a source ends.

use super::*;

#[tokio::test(start_paused = true)]
async fn failures_are_reported_with_growing_waits_until_one_up_and_a_watch_that_lived_forgets_them() {
    local(async {
        let mut answers: Vec<Answer> = (0..9).map(|_| unreachable()).collect();
        let (feed, watch) = fed();
        answers.extend([page(5, "", &[object("a", 1)]), watch, open(&[])]);
        let bench = Bench::paged(answers);
        let mut source = bench.source(Style::Whole);
        for _ in 0..9 {
            source.expect(&["down no route"]).await;
        }
        source.expect(&["up", "begin", "object a@1", "complete"]).await;
        source.quiet(6).await;
        feed.send(Err(Error::Unreachable("reset".into()))).unwrap();
        source.expect(&["down reset", "up"]).await;
        source.quiet(100).await;
        assert_eq!(bench.asked()[9..], ["list", "watch 5", "watch 5"]);
        let gaps = bench.gaps();
        assert_backs_off(&gaps[..9], 0);
        assert_backs_off(&[gaps[10] - 6.0], 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_opens_and_breaks_at_once_over_and_over_is_backed_off() {
    for breaks in [
        || cut(&[]),
        || cut(&[bookmark(5)]),
        || cut(&[added("a", 5)]),
        || refused(403),
    ] {
        local(async {
            let mut answers = vec![page(5, "", &[])];
            answers.extend((0..8).map(|_| breaks()));
            answers.push(open(&[]));
            let bench = Bench::paged(answers);
            let mut source = bench.source(Style::Whole);
            source.expect(&["up", "begin", "complete"]).await;
            let mut downs = 0;
            while downs < 8 {
                downs += u32::from(source.next().await.starts_with("down"));
            }
            source.expect(&["up"]).await;
            assert_backs_off(&bench.gaps()[1..], 0);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_time_gets_it_within_reason() {
    for (asked, given) in [(120, 120.0), (u64::MAX, 600.0)] {
        local(async {
            let busy = Error::Status(Box::new(ApiStatus {
                code: 429,
                ..ApiStatus::default()
            }));
            let answers = vec![
                Ok(Response {
                    status: 429,
                    retry_after: Some(Duration::from_secs(asked)),
                    is_fair: false,
                    body: stream::empty().boxed_local(),
                }),
                page(5, "", &[]),
                open(&[]),
            ];
            let bench = Bench::paged(answers);
            let mut source = bench.source(Style::Whole);
            source
                .expect(&[&format!("down {busy}"), "up", "begin", "complete"])
                .await;
            assert_backs_off(&[bench.gaps()[0] - given], 0);
        })
        .await;
    }
}

/// For whatever reason the server refuses that version.
#[tokio::test(start_paused = true)]
async fn a_version_that_is_refused_again_and_again_is_given_up_for_a_list() {
    for breaks in [
        || refused(400),
        || refused(404),
        || refused(422),
        || refused(500),
        || ends(&[error(500)]),
        || ends(&["no event\n".to_owned()]),
        // It has reported nothing that is new: the same again.
        || ends(&[bookmark(5), error(400)]),
    ] {
        local(async {
            let mut answers = vec![page(5, "", &[object("a", 1)])];
            answers.extend((0..REFUSALS).map(|_| breaks()));
            answers.extend([page(9, "", &[object("a", 8)]), open(&[added("b", 10)])]);
            let bench = Bench::paged(answers);
            let mut source = bench.source(Style::Whole);
            source.expect(&["up", "begin", "object a@1", "complete"]).await;
            while source.next().await != "object a@8" {}
            source.expect(&["complete", "object b@10"]).await;
            let watches = std::iter::repeat_n("watch 5", REFUSALS as usize);
            let expected: Vec<&str> = std::iter::once("list")
                .chain(watches)
                .chain(["list", "watch 9"])
                .collect();
            assert_eq!(bench.asked(), expected);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_says_nothing_of_the_version_does_not_cost_a_list() {
    for breaks in [
        || refused(401),
        || refused(403),
        || refused(429),
        unreachable,
        || answer(503, stream::iter([chunk("no backend")]).boxed_local()),
    ] {
        local(async {
            let mut answers = vec![page(5, "", &[])];
            answers.extend((0..40).map(|_| breaks()));
            answers.push(open(&[added("a", 6)]));
            let bench = Bench::paged(answers);
            let mut source = bench.source(Style::Whole);
            while source.next().await != "object a@6" {}
            let lists = bench.asked().iter().filter(|asked| *asked == "list").count();
            assert_eq!(lists, 1);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_type_whose_watches_are_always_refused_is_listed_ever_less_often() {
    local(async {
        let mut answers = Vec::new();
        for patience in [3, 6, 12, 24, 48, 96, 96] {
            answers.push(page(5, "", &[]));
            answers.extend((0..patience).map(|_| refused(400)));
        }
        answers.extend([page(5, "", &[]), open(&[])]);
        let count = answers.len();
        let bench = Bench::paged(answers);
        let mut source = bench.source(Style::Whole);
        while bench.asked().len() < count {
            source.next().await;
        }
        let asked = bench.asked();
        let lists = asked.iter().filter(|asked| *asked == "list").count();
        assert_eq!((lists, asked[count - 1].as_str()), (8, "watch 5"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_cut_resumes_after_its_last_event_without_a_list() {
    for (said, resumes) in [
        (vec![modified("a", 7)], "watch 7"),
        (vec![modified("a", 7), deleted("a", 8)], "watch 8"),
        (vec![modified("a", 7), bookmark(9)], "watch 9"),
        // Half an event was not reported and has to come again.
        (vec![modified("a", 7), r#"{"type":"ADDED","object":"#.into()], "watch 7"),
        (vec![modified("a", 7), line("ADDED", r#"{"metadata":{}}"#)], "watch 7"),
        (vec![], "watch 5"),
    ] {
        local(async {
            let bench = Bench::paged(vec![
                page(5, "", &[object("a", 1)]),
                cut(&said),
                open(&[added("b", 20)]),
            ]);
            let mut source = bench.source(Style::Whole);
            source.expect(&["up", "begin", "object a@1", "complete"]).await;
            while !source.next().await.starts_with("down") {}
            source.expect(&["up", "object b@20"]).await;
            assert_eq!(bench.asked(), ["list", "watch 5", resumes]);
        })
        .await;
    }
}

/// kcp does that when the schema of a type changes.
#[tokio::test(start_paused = true)]
async fn a_watch_that_worked_and_is_ended_by_an_error_of_the_server_is_no_failure() {
    local(async {
        let (feed, watch) = fed();
        let again = ends(&[error(500)]);
        let bench = Bench::paged(vec![page(5, "", &[]), watch, again, open(&[added("b", 20)])]);
        let mut source = bench.source(Style::Whole);
        source.expect(&["up", "begin", "complete"]).await;
        source.quiet(6).await;
        feed.send(chunk(&error(500))).unwrap();
        // The next one fails soon, so that is one.
        source.expect(&["down no (HTTP 500)", "up", "object b@20"]).await;
        assert_eq!(bench.asked(), ["list", "watch 5", "watch 5", "watch 5"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_every_watch_at_once_is_not_flooded() {
    local(async {
        let mut answers = vec![page(5, "", &[])];
        answers.extend((0..6).map(|_| ends(&[])));
        answers.push(open(&[]));
        let bench = Bench::paged(answers);
        let mut source = bench.source(Style::Whole);
        source.expect(&["up", "begin", "complete"]).await;
        source.quiet(200).await;
        let gaps = bench.gaps();
        assert_eq!(gaps.len(), 7);
        // Longer each time, up to a minute, with half of it by chance.
        for (gap, longest) in gaps[1..].iter().zip([5.0, 10.0, 20.0, 40.0, 60.0, 60.0]) {
            assert!((longest / 2.0..longest + 0.002).contains(gap), "{gaps:?}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_never_said_a_word_is_not_trusted_to_know_its_version() {
    for (said, next) in [(vec![], "list"), (vec![bookmark(9)], "watch 9")] {
        local(async {
            let bench = Bench::paged(vec![
                page(5, "", &[object("a", 1)]),
                open(&said),
                // A server that was restored: older versions, other objects.
                if said.is_empty() {
                    page(2, "", &[object("b", 2)])
                } else {
                    open(&[])
                },
                open(&[]),
            ]);
            let mut source = bench.source(Style::Whole);
            source.expect(&["up", "begin", "object a@1", "complete"]).await;
            source.quiet(179).await;
            if said.is_empty() {
                source.expect(&["begin", "object b@2", "complete, back at 2"]).await;
            } else {
                source.quiet(5).await;
            }
            assert_eq!(bench.asked()[..3], ["list", "watch 5", next]);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_nobody_listens_to_ends_with_its_next_word() {
    local(async {
        let (feed, watch) = fed();
        let bench = Bench::paged(vec![page(5, "", &[]), watch]);
        let mut source = bench.source(Style::Whole);
        source.expect(&["up", "begin", "complete"]).await;
        let Reader { events, handle } = source;
        drop(events);
        sleep(Duration::from_secs(1)).await;
        feed.send(chunk(&added("a", 6))).unwrap();
        sleep(Duration::from_secs(1)).await;
        assert!(handle.task.is_finished());
        assert!(feed.is_closed(), "the connection is given back");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_source_ends_when_its_handle_is_dropped() {
    local(async {
        let (feed, watch) = fed();
        let bench = Bench::paged(vec![page(5, "", &[]), watch]);
        let mut source = bench.source(Style::Whole);
        source.expect(&["up", "begin", "complete"]).await;
        let Reader { mut events, handle } = source;
        drop(handle);
        assert!(events.recv().await.is_none());
        assert!(feed.is_closed(), "the connection is given back");
    })
    .await;
}

/// As kcp's watches of types in which nothing happens.
#[tokio::test(start_paused = true)]
async fn a_watch_without_bookmarks_is_kept_for_ever_longer_and_is_no_failure() {
    local(async {
        let mut answers: Vec<Answer> = (0..5).flat_map(|_| [page(5, "", &[]), open(&[])]).collect();
        answers.extend([page(5, "", &[]), open(&[bookmark(6)]), open(&[])]);
        let bench = Bench::paged(answers);
        let mut source = bench.source(Style::Whole);
        source.expect(&["up", "begin", "complete"]).await;
        for _ in 0..5 {
            source.expect(&["begin", "complete"]).await;
        }
        source.quiet(190).await;
        let waits: Vec<f64> = bench.gaps().into_iter().filter(|&gap| gap > 1.0).collect();
        assert_eq!(waits, [180.0, 360.0, 720.0, 900.0, 900.0, 180.0]);
        assert_eq!(
            bench.asked().last().map(String::as_str),
            Some("watch 6"),
            "it continues from there"
        );
    })
    .await;
}
