//! Lists in pages, and where they begin again.

use super::*;

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
async fn a_look_is_at_the_metadata_of_everything_and_the_watch_at_whole_objects_of_the_label() {
    local(async {
        let bench = Bench::new(vec![
            page(5, "", &[object("a", 1)]),
            cut(&[added("b", 6)]),
            refused(410),
            page(9, "", &[]),
            open(&[]),
        ]);
        let mut source = bench.source(Style::LookThenWatch("mine=yes".into()));
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
                let metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
                assert_eq!(asked.accept, metadata);
            }
        }
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
