//! Lists that are streamed by a watch.

use super::*;

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
        // What was streamed does not count.
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

/// The hub's link may be metered.
#[tokio::test(start_paused = true)]
async fn at_the_hub_a_list_is_read_in_pages_which_servers_compress() {
    local(async {
        let bench = Bench::far(vec![page(5, "", &[object("a", 3)]), open(&[])]);
        let mut source = bench.source(Style::Whole);
        source.expect(&["up", "begin", "object a@3", "complete"]).await;
        source.quiet(10).await;
        assert_eq!(bench.asked(), ["list", "watch 5"]);
        assert!(bench.cluster.streams_lists());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_list_whose_version_is_too_old_twice_before_it_is_read_is_streamed_and_the_next_one_is_not() {
    // Its last page, or the watch from it, comes too late.
    for token in ["n2", ""] {
        local(async {
            let (feed, stream) = fed();
            let list = || [page(5, token, &[object("a", 3)]), refused(410)];
            let answers = list()
                .into_iter()
                .chain(list())
                .chain([stream, page(9, "", &[]), open(&[])]);
            let bench = Bench::far(answers.collect());
            let mut source = bench.source(Style::Whole);
            feed.send(chunk(&initial_end(8))).unwrap();
            while source.next().await != "down no (HTTP 410)" {}
            source.expect(&["begin", "up", "complete"]).await;
            // It has lived.
            source.quiet(10).await;
            feed.send(chunk(&error(410))).unwrap();
            source.expect(&["begin", "complete"]).await;
            source.quiet(1).await;
            assert_eq!(bench.asked()[4..], ["stream", "list", "watch 9"], "{token}");
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_takes_longer_than_a_page_may_is_streamed() {
    local(async {
        // 85, 21, 5, 1 and 1 object.
        let answers = (0..5).map(|_| slow()).chain([open(&[added("a", 3), initial_end(5)])]);
        let bench = Bench::far(answers.collect());
        let mut source = bench.source(Style::Whole);
        source.expect(&["down stream error", "down stream error"]).await;
        source.expect(&["begin", "object a@3", "up", "complete"]).await;
        assert_eq!(bench.asked()[4..], ["list", "stream"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_is_away_for_long_is_still_listed_in_pages() {
    local(async {
        let mut answers: Vec<Answer> = (0..20).map(|_| unreachable()).collect();
        answers.extend((0..3).map(|_| refused(500)));
        answers.extend([page(5, "", &[]), open(&[])]);
        let bench = Bench::far(answers);
        let mut source = bench.source(Style::Whole);
        while source.next().await != "complete" {}
        source.quiet(1).await;
        assert!(!bench.asked().contains(&"stream".to_owned()), "{:?}", bench.asked());
    })
    .await;
}
