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
