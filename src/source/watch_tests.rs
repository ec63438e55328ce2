use std::cell::Cell;

use futures_util::StreamExt;
use futures_util::stream;

use super::*;
use crate::cluster::{ApiStatus, Response};
use crate::source::bench::*;

#[tokio::test(start_paused = true)]
async fn a_streaming_list_goes_on_as_a_watch_which_resumes_where_it_was() {
    local(async {
        let (feed, stream) = fed();
        let bench = Bench::new(vec![stream, open(&[])]);
        let mut source = bench.source(Style::Whole);
        for text in [added("a", 3), added("b", 2), initial_end(5)] {
            feed.send(chunk(&text)).unwrap();
        }
        source
            .expect(&["begin", "object a@3", "object b@2", "up", "complete"])
            .await;
        for text in [modified("a", 6), deleted("b", 7)] {
            feed.send(chunk(&text)).unwrap();
        }
        source.expect(&["object a@6", "gone b@7"]).await;
        feed.send(chunk(&bookmark(9))).unwrap();
        source.quiet(10).await;
        drop(feed);
        source.quiet(1).await;
        assert_eq!(bench.asked(), ["stream", "watch 9"]);
        let asked = bench.script.asked.borrow();
        assert!(
            asked[0]
                .uri
                .contains("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
        );
        assert!(!asked[1].uri.contains("resourceVersionMatch"), "{}", asked[1].uri);
        drop(asked);
        assert!(bench.gaps()[0] < 10.1, "a watch that lived is renewed at once");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_object_deleted_while_the_list_streams_is_gone() {
    local(async {
        let bench = Bench::new(vec![open(&[added("a", 3), deleted("a", 4), initial_end(5)])]);
        let mut source = bench.source(Style::Whole);
        source
            .expect(&["begin", "object a@3", "gone a@4", "up", "complete"])
            .await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_streaming_lists_is_asked_for_pages_and_never_again_for_a_stream() {
    let cases = [
        (refused(422), vec![]),
        (refused(400), vec![]),
        (ends(&[error(500)]), vec!["begin"]),
        // What was streamed counts for nothing.
        (open(&[added("old", 1), error(500)]), vec!["begin", "object old@1"]),
        // It ignores what it does not know and gives a plain watch, which has bookmarks of its own.
        (open(&[added("a", 3), bookmark(4)]), vec!["begin", "object a@3"]),
    ];
    for (answer, before) in cases {
        local(async {
            let page = || page(5, "", &[object("a", 3)]);
            let bench = Bench::new(vec![answer, page(), open(&[]), page(), open(&[])]);
            let mut source = bench.source(Style::Whole);
            source.expect(&before).await;
            source.expect(&["up", "begin", "object a@3", "complete"]).await;
            source.quiet(1).await;
            let mut next = bench.source(Style::Whole);
            next.expect(&["up", "begin", "object a@3", "complete"]).await;
            next.quiet(1).await;
            assert_eq!(bench.asked(), ["stream", "list", "watch 5", "list", "watch 5"]);
            assert!(bench.gaps()[0] < 0.1, "there is nothing to wait for");
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_the_wish_for_a_list_is_asked_for_pages_after_a_minute() {
    local(async {
        let bench = Bench::new(vec![open(&[added("a", 3)]), page(5, "", &[object("a", 3)]), open(&[])]);
        let mut source = bench.source(Style::Whole);
        source.expect(&["begin", "object a@3"]).await;
        source.quiet(59).await;
        source.expect(&["up", "begin", "object a@3", "complete"]).await;
        assert!(!bench.cluster.streams_lists());
        assert_eq!(bench.asked()[..2], ["stream", "list"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_error_in_the_watch_after_a_streaming_list_does_not_mean_that_lists_cannot_be_streamed() {
    local(async {
        let bench = Bench::new(vec![open(&[initial_end(5), added("a", 6), error(500)]), open(&[])]);
        let mut source = bench.source(Style::Whole);
        source.expect(&["begin", "up", "complete", "object a@6"]).await;
        source.expect(&["down no (HTTP 500)", "up"]).await;
        assert_eq!(bench.asked(), ["stream", "watch 6"]);
        assert!(bench.cluster.streams_lists());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_that_breaks_twice_is_taken_in_pages_and_only_those_complete() {
    local(async {
        let bench = Bench::new(vec![
            cut(&[added("a", 3)]),
            ends(&[added("a", 3), added("b", 4)]),
            page(5, "", &[object("a", 3)]),
            open(&[]),
        ]);
        let mut source = bench.source(Style::Whole);
        source.expect(&["begin", "object a@3", "down reset"]).await;
        source.expect(&["begin", "object a@3", "object b@4"]).await;
        source.expect(&["down the streaming list ended early"]).await;
        source.expect(&["up", "begin", "object a@3", "complete"]).await;
        source.quiet(1).await;
        assert_eq!(bench.asked(), ["stream", "stream", "list", "watch 5"]);
        assert!(bench.cluster.streams_lists(), "other sources may be luckier");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_paged_list_is_read_to_its_last_page_and_watched_from_there() {
    local(async {
        let bench = Bench::paged(vec![
            page(5, "n2", &[object("a", 1), object("b", 2)]),
            page(5, "n3", &[]),
            page(5, "", &[object("c", 3)]),
            open(&[added("d", 6), deleted("a", 7)]),
        ]);
        let mut source = bench.source(Style::Whole);
        let listed = ["up", "begin", "object a@1", "object b@2", "object c@3", "complete"];
        source.expect(&listed).await;
        source.expect(&["object d@6", "gone a@7"]).await;
        assert_eq!(bench.asked(), ["list", "list n2", "list n3", "watch 5"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_cut_never_completes() {
    local(async {
        let bench = Bench::paged(vec![
            page(5, "n2", &[object("a", 1)]),
            cut(&[r#"{"kind":"ConfigMapList","items":[{"metadata":{"name":"b","resourceVersion":"2"}},"#.into()]),
            page(6, "", &[]),
            open(&[]),
        ]);
        let mut source = bench.source(Style::Whole);
        source
            .expect(&["up", "begin", "object a@1", "object b@2", "down reset"])
            .await;
        source.expect(&["up", "begin", "complete"]).await;
        source.quiet(1).await;
        assert_eq!(bench.asked(), ["list", "list n2", "list", "watch 6"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_list_whose_next_page_is_too_old_begins_again_at_once() {
    local(async {
        let bench = Bench::paged(vec![
            page(5, "n2", &[object("a", 1)]),
            refused(410),
            page(8, "n2", &[object("a", 1)]),
            page(8, "", &[object("b", 7)]),
            open(&[]),
        ]);
        let mut source = bench.source(Style::Whole);
        source.expect(&["up", "begin", "object a@1"]).await;
        source.expect(&["begin", "object a@1", "object b@7", "complete"]).await;
        source.quiet(1).await;
        assert_eq!(bench.asked(), ["list", "list n2", "list", "list n2", "watch 8"]);
        assert!(bench.gaps().iter().sum::<f64>() < 0.1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_version_that_is_too_old_lists_again_at_once() {
    for too_old in [refused(410), ends(&[error(410)])] {
        local(async {
            let bench = Bench::paged(vec![
                page(5, "", &[object("a", 1)]),
                too_old,
                page(8, "", &[object("b", 7)]),
                open(&[]),
            ]);
            let mut source = bench.source(Style::Whole);
            source.expect(&["up", "begin", "object a@1", "complete"]).await;
            source.expect(&["begin", "object b@7", "complete"]).await;
            source.quiet(1).await;
            assert_eq!(bench.asked(), ["list", "watch 5", "list", "watch 8"]);
            assert!(bench.gaps().iter().sum::<f64>() < 0.1);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_may_be_too_old_again_once_a_watch_has_lived() {
    local(async {
        let mut answers = Vec::new();
        let mut feeds = Vec::new();
        for _ in 0..3 {
            let (feed, watch) = fed();
            answers.extend([page(5, "", &[]), watch]);
            feeds.push(feed);
        }
        let bench = Bench::paged(answers);
        let mut source = bench.source(Style::Whole);
        source.expect(&["up"]).await;
        for feed in &feeds {
            source.expect(&["begin", "complete"]).await;
            source.quiet(6).await;
            feed.send(chunk(&error(410))).unwrap();
        }
        assert!(bench.gaps().iter().sum::<f64>() < 12.1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_to_which_every_version_is_too_old_is_not_flooded_with_lists() {
    local(async {
        let mut answers = Vec::new();
        for _ in 0..8 {
            answers.extend([page(5, "", &[]), refused(410)]);
        }
        answers.extend([page(5, "", &[]), open(&[])]);
        let bench = Bench::paged(answers);
        let mut source = bench.source(Style::Whole);
        source.expect(&["up", "begin", "complete"]).await;
        for _ in 0..7 {
            source.expect(&["begin", "complete", "down no (HTTP 410)", "up"]).await;
        }
        source.expect(&["begin", "complete"]).await;
        let between_lists: Vec<f64> = bench.gaps().chunks(2).map(|pair| pair.iter().sum()).collect();
        assert!(between_lists[0] < 0.1, "the first time may be at once");
        assert_backs_off(&between_lists[1..8], 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_source_reads_no_further_than_it_is_listened_to() {
    let items = (1..=100).map(|version| object("a", version)).collect::<Vec<_>>();
    let list = std::iter::once(r#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"200"},"items":["#.to_owned())
        .chain(items.iter().map(|item| format!("{item},")))
        .chain([format!("{}]}}", object("a", 101))]);
    let stream = (1..=101).map(|version| added("a", version)).chain([initial_end(200)]);
    for (streams, texts) in [(false, list.collect::<Vec<_>>()), (true, stream.collect())] {
        local(async {
            let read = Rc::new(Cell::new(0));
            let count = Rc::clone(&read);
            let body = stream::iter(chunks(&texts)).inspect(move |_| count.set(count.get() + 1));
            let rest = if streams {
                stream::pending().boxed_local()
            } else {
                stream::empty().boxed_local()
            };
            let answers = vec![answer(200, body.chain(rest).boxed_local()), open(&[])];
            let bench = if streams {
                Bench::new(answers)
            } else {
                Bench::paged(answers)
            };
            let mut source = bench.source(Style::Whole);
            // Longer than any limit on the silence of the other end: this silence is ours.
            sleep(Duration::from_secs(3600)).await;
            assert!(read.get() <= 2, "{} chunks", read.get());
            let mut objects = 0;
            loop {
                match source.next().await.as_str() {
                    "complete" => break,
                    "begin" | "up" => {}
                    event => {
                        assert!(event.starts_with("object"), "{event}");
                        objects += 1;
                        sleep(Duration::from_secs(100)).await;
                        assert!(read.get() <= objects + 4, "{} chunks for {objects} objects", read.get());
                    }
                }
            }
            assert_eq!(objects, 101);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn failures_are_told_with_growing_waits_until_one_up_and_a_watch_that_lived_forgets_them() {
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
        || ends(&[error(500)]),
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

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_cut_resumes_after_its_last_event_without_a_list() {
    for (said, resumes) in [
        (vec![modified("a", 7)], "watch 7"),
        (vec![modified("a", 7), deleted("a", 8)], "watch 8"),
        (vec![modified("a", 7), bookmark(9)], "watch 9"),
        // Half an event was not told and has to come again.
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

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_every_watch_at_once_is_not_flooded() {
    local(async {
        let mut answers = vec![page(5, "", &[])];
        answers.extend((0..30).map(|_| ends(&[])));
        answers.push(open(&[]));
        let bench = Bench::paged(answers);
        let mut source = bench.source(Style::Whole);
        source.expect(&["up", "begin", "complete"]).await;
        source.quiet(160).await;
        let gaps = bench.gaps();
        assert_eq!(gaps.len(), 31);
        assert!(gaps[1..].iter().all(|gap| (2.5..5.002).contains(gap)), "{gaps:?}");
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
            assert!(source.next().await.starts_with("down"));
            source.expect(&["up"]).await;
            if said.is_empty() {
                source.expect(&["begin", "object b@2", "complete, back at 2"]).await;
            }
            assert_eq!(bench.asked()[..3], ["list", "watch 5", next]);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_look_is_at_the_metadata_of_everything_and_the_watch_at_whole_objects_of_the_label() {
    local(async {
        let bench = Bench::new(vec![
            page(5, "", &[object("a", 1)]),
            cut(&[added("b", 6)]),
            refused(410),
            page(9, "", &[]),
            open(&[]),
        ]);
        let mut source = bench.source(Style::LookThenWatch("mine=yes"));
        source
            .expect(&["up", "begin", "object a@1", "complete", "object b@6"])
            .await;
        source.expect(&["down reset", "up", "begin", "complete"]).await;
        source.quiet(1).await;
        assert_eq!(bench.asked(), ["list", "watch 5", "watch 6", "list", "watch 9"]);
        for asked in bench.script.asked.borrow().iter() {
            let labelled = asked.uri.contains("&labelSelector=mine%3Dyes");
            if asked.uri.contains("watch=true") {
                assert!(labelled, "{}", asked.uri);
                assert_eq!(asked.accept, "application/json");
            } else {
                assert!(!labelled, "{}", asked.uri);
                let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
                assert_eq!(asked.accept, metadata);
            }
        }
    })
    .await;
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
