use std::cell::Cell;

use futures_util::StreamExt;
use futures_util::stream;
use kube_lite::Response;

use super::*;
use crate::source::Mode;
use crate::source::bench::*;

const INTERVAL: Duration = Duration::from_secs(15);
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// A server with these answers, and a source that polls it.
fn polling(style: Style, answers: Vec<Answer>) -> (Bench, Reader) {
    let bench = Bench::new(answers);
    let source = bench.start(style, Mode::Poll(INTERVAL));
    (bench, source)
}

/// The answer to a GET.
fn whole(name: &str, version: u32) -> Answer {
    ends(&[object(name, version)])
}

fn not_found(name: &str) -> Answer {
    let status = format!(r#"{{"kind":"Status","reason":"NotFound","details":{{"name":"{name}"}},"code":404}}"#);
    answer(404, stream::iter([chunk(&status)]).boxed_local())
}

/// One page of one object.
fn one(name: &str, version: u32) -> Answer {
    page(version, "", &[object(name, version)])
}

/// What was asked for: `list` (whole), `poll` (metadata), `label` (metadata by label), each with the token of the page,
/// or `get NAME`.
fn asked(bench: &Bench) -> Vec<String> {
    let summary = |asked: &Asked| {
        let Some((path, query)) = asked.uri.split_once('?') else {
            assert_eq!(asked.accept, "application/json");
            return format!("get {}", asked.uri.rsplit('/').next().unwrap());
        };
        assert_eq!(path, "/api/v1/configmaps");
        let kind = match (query.contains("labelSelector=mine%3Dyes"), asked.accept == METADATA) {
            (true, true) => "label",
            (false, true) => "poll",
            (true, false) => "list by label",
            (false, false) => "list",
        };
        let token = query.split('&').find_map(|pair| pair.strip_prefix("continue="));
        token.map_or(kind.to_owned(), |token| format!("{kind} {token}"))
    };
    bench.script.asked.borrow().iter().map(summary).collect()
}

#[tokio::test(start_paused = true)]
async fn the_first_list_is_whole_and_each_later_one_a_poll_that_reports_no_change() {
    local(async {
        let (bench, mut source) = polling(
            Style::Whole,
            vec![
                page(5, "n2", &[object("a", 1)]),
                page(5, "", &[object("b", 2)]),
                page(5, "n2", &[object("a", 1)]),
                page(5, "", &[object("b", 2)]),
                page(5, "", &[object("a", 1), object("b", 2)]),
            ],
        );
        source
            .expect(&["up", "begin", "object a@1", "object b@2", "complete"])
            .await;
        for _ in 0..2 {
            source.expect(&["begin", "still a@1", "still b@2", "complete"]).await;
        }
        assert_eq!(asked(&bench), ["list", "list n2", "poll", "poll n2", "poll"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_new_or_changed_is_read_once() {
    local(async {
        let (bench, mut source) = polling(
            Style::Whole,
            vec![
                page(5, "", &[object("a", 1), object("b", 2)]),
                page(9, "", &[object("a", 6), object("b", 2), object("c", 7)]),
                // It has changed again since the poll.
                whole("a", 8),
                whole("c", 7),
                page(9, "", &[object("a", 8), object("b", 2), object("c", 7)]),
            ],
        );
        source
            .expect(&["up", "begin", "object a@1", "object b@2", "complete"])
            .await;
        source
            .expect(&["begin", "object a@8", "still b@2", "object c@7", "complete"])
            .await;
        source
            .expect(&["begin", "still a@8", "still b@2", "still c@7", "complete"])
            .await;
        assert_eq!(asked(&bench), ["list", "poll", "get a", "get c", "poll"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_read_beside_a_poll_is_no_sign_that_the_server_has_gone_back() {
    local(async {
        let (_bench, mut source) = polling(
            Style::Whole,
            vec![
                page(5, "", &[object("a", 1)]),
                page(6, "", &[object("a", 6)]),
                whole("a", 8),
                page(7, "", &[object("a", 8)]),
                page(4, "", &[object("a", 1)]),
                whole("a", 1),
            ],
        );
        source.expect(&["up", "begin", "object a@1", "complete"]).await;
        source.expect(&["begin", "object a@8", "complete"]).await;
        source.expect(&["begin", "still a@8", "complete"]).await;
        source.expect(&["begin", "object a@1", "complete, back at 4"]).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_gone_is_not_named_and_is_new_when_it_comes_back() {
    local(async {
        let (bench, mut source) = polling(
            Style::Whole,
            vec![one("a", 1), page(5, "", &[]), one("a", 6), whole("a", 6)],
        );
        source.expect(&["up", "begin", "object a@1", "complete"]).await;
        source.expect(&["begin", "complete"]).await;
        source.expect(&["begin", "object a@6", "complete"]).await;
        assert_eq!(asked(&bench), ["list", "poll", "poll", "get a"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_goes_between_list_and_read_is_not_named() {
    local(async {
        let (_bench, mut source) = polling(
            Style::Whole,
            vec![
                one("a", 1),
                page(6, "", &[object("a", 6), object("b", 5)]),
                not_found("a"),
                whole("b", 5),
                page(7, "", &[object("b", 5)]),
            ],
        );
        source.expect(&["up", "begin", "object a@1", "complete"]).await;
        source.expect(&["begin", "object b@5", "complete"]).await;
        source.expect(&["begin", "still b@5", "complete"]).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_read_that_fails_never_completes_and_what_it_reported_is_not_read_again() {
    let cut_page = || {
        let start = r#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"7","continue":""},"items":["#;
        cut(&[format!("{start}{},", object("a", 6))])
    };
    for (poll, read, fails) in [
        (cut_page(), Some(whole("a", 6)), "down reset"),
        (page(7, "n2", &[object("a", 6)]), Some(whole("a", 6)), "down no route"),
        (unreachable(), None, "down no route"),
    ] {
        local(async {
            let seen = read.is_some();
            let mut answers = vec![page(5, "", &[object("a", 1), object("b", 2)]), poll];
            answers.extend(read);
            if fails == "down no route" && seen {
                answers.push(unreachable());
            }
            answers.push(page(7, "", &[object("a", 6), object("b", 2)]));
            if !seen {
                answers.push(whole("a", 6));
            }
            let (_bench, mut source) = polling(Style::Whole, answers);
            source
                .expect(&["up", "begin", "object a@1", "object b@2", "complete"])
                .await;
            if seen {
                source
                    .expect(&["begin", "object a@6", fails, "up", "begin", "still a@6"])
                    .await;
            } else {
                source.expect(&[fails, "up", "begin", "object a@6"]).await;
            }
            source.expect(&["still b@2", "complete"]).await;
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_list_that_fails_is_taken_whole_again() {
    local(async {
        let (bench, mut source) = polling(
            Style::Whole,
            vec![
                page(5, "n2", &[object("a", 1)]),
                unreachable(),
                one("a", 1),
                one("a", 1),
            ],
        );
        source.expect(&["up", "begin", "object a@1", "down no route"]).await;
        source.expect(&["up", "begin", "object a@1", "complete"]).await;
        source.expect(&["begin", "still a@1", "complete"]).await;
        assert_eq!(asked(&bench), ["list", "list n2", "list", "poll"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_poll_whose_next_page_is_too_old_begins_again_at_once_and_then_backs_off() {
    local(async {
        let first = || page(7, "n2", &[object("a", 1)]);
        let (bench, mut source) = polling(
            Style::Whole,
            vec![
                one("a", 1),
                first(),
                refused(410),
                first(),
                refused(410),
                one("a", 1),
                first(),
                refused(410),
                one("a", 1),
            ],
        );
        source.expect(&["up", "begin", "object a@1", "complete"]).await;
        source.expect(&["begin", "still a@1"]).await;
        source.expect(&["begin", "still a@1", "down no (HTTP 410)"]).await;
        source.expect(&["up", "begin", "still a@1", "complete"]).await;
        source.expect(&["begin", "still a@1"]).await;
        source.expect(&["begin", "still a@1", "complete"]).await;
        let gaps = bench.gaps();
        assert!(gaps[2] < 0.1 && gaps[7] < 0.1, "{gaps:?}");
        assert_backs_off(&gaps[4..5], 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn polls_keep_the_interval_within_a_tenth_and_the_first_is_spread_over_it() {
    let mut first = Vec::new();
    for _ in 0..20 {
        local(async {
            let (bench, mut source) = polling(Style::Whole, (0..10).map(|_| one("a", 1)).collect());
            source.expect(&["up", "begin", "object a@1", "complete"]).await;
            for _ in 0..9 {
                source.expect(&["begin", "still a@1", "complete"]).await;
            }
            let gaps = bench.gaps();
            assert_eq!(gaps.len(), 9, "nothing is asked in between");
            let (least, most) = (13.5, 16.502);
            assert!(
                gaps[1..].iter().all(|gap| (least..most).contains(gap)),
                "{gaps:?} of {INTERVAL:?}"
            );
            assert!(gaps[1..].iter().any(|gap| (gap - gaps[1]).abs() > 0.01), "{gaps:?}");
            first.push(gaps[0]);
        })
        .await;
    }
    assert!(first.iter().all(|gap| *gap < 15.002), "{first:?}");
    assert!(first.iter().any(|gap| *gap < 7.5) && first.iter().any(|gap| *gap > 7.5));
}

#[tokio::test(start_paused = true)]
async fn failures_are_reported_with_growing_waits_until_one_up_and_a_complete_poll_forgets_them() {
    local(async {
        let mut answers = vec![one("a", 1)];
        answers.extend((0..9).map(|_| unreachable()));
        answers.extend([one("a", 1), unreachable(), one("a", 1)]);
        let (bench, mut source) = polling(Style::Whole, answers);
        source.expect(&["up", "begin", "object a@1", "complete"]).await;
        for _ in 0..9 {
            source.expect(&["down no route"]).await;
        }
        source.expect(&["up", "begin", "still a@1", "complete"]).await;
        source.expect(&["down no route", "up"]).await;
        let gaps = bench.gaps();
        assert_backs_off(&gaps[1..10], 0);
        assert_backs_off(&gaps[11..], 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_long_interval_lets_the_waits_after_failures_grow_longer() {
    local(async {
        let mut answers: Vec<Answer> = (0..12).map(|_| unreachable()).collect();
        answers.push(one("a", 1));
        let bench = Bench::new(answers);
        let mut source = bench.start(Style::Whole, Mode::Poll(Duration::from_secs(120)));
        for _ in 0..12 {
            source.expect(&["down no route"]).await;
        }
        source.expect(&["up", "begin", "object a@1", "complete"]).await;
        let last = bench.gaps()[11];
        assert!((60.0..120.002).contains(&last), "{last}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_time_gets_it_be_it_for_a_list_or_for_one_object() {
    for before in [vec![one("a", 1)], vec![one("a", 1), one("a", 2)]] {
        local(async {
            let busy = Ok(Response {
                status: 429,
                retry_after: Some(Duration::from_secs(120)),
                is_fair: false,
                body: stream::empty().boxed_local(),
            });
            let count = before.len();
            let mut answers = before;
            answers.extend([busy, one("a", 1)]);
            let (bench, mut source) = polling(Style::Whole, answers);
            source.expect(&["up", "begin", "object a@1", "complete"]).await;
            while !source.next().await.starts_with("down") {}
            source.expect(&["up", "begin", "still a@1", "complete"]).await;
            assert_backs_off(&[bench.gaps()[count] - 120.0], 0);
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_is_named_and_tried_again_and_stops_no_other() {
    local(async {
        let poll = || page(7, "", &[object("a", 6), object("b", 7)]);
        let (bench, mut source) = polling(
            Style::Whole,
            vec![
                page(5, "", &[object("a", 1), object("b", 2)]),
                poll(),
                refused(500),
                whole("b", 7),
                poll(),
                refused(500),
                poll(),
                whole("a", 6),
                poll(),
            ],
        );
        source
            .expect(&["up", "begin", "object a@1", "object b@2", "complete"])
            .await;
        source.expect(&["begin", "still a@6", "object b@7", "complete"]).await;
        source.expect(&["down no (HTTP 500)"]).await;
        source.expect(&["begin", "still a@6", "still b@7", "complete"]).await;
        source.expect(&["down no (HTTP 500)"]).await;
        source
            .expect(&["begin", "object a@6", "still b@7", "complete", "up"])
            .await;
        source.expect(&["begin", "still a@6", "still b@7", "complete"]).await;
        assert!(bench.gaps()[5] >= 13.5, "it is tried again with the next poll");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_is_never_followed_by_a_read() {
    local(async {
        let (bench, mut source) = polling(
            Style::Metadata,
            vec![
                one("a", 1),
                page(6, "", &[object("a", 6), object("b", 5)]),
                page(6, "", &[object("a", 6), object("b", 5)]),
            ],
        );
        source.expect(&["up", "begin", "object a@1", "complete"]).await;
        source.expect(&["begin", "object a@6", "object b@5", "complete"]).await;
        source.expect(&["begin", "still a@6", "still b@5", "complete"]).await;
        assert_eq!(asked(&bench), ["poll", "poll", "poll"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_edge_is_read_once_as_a_whole_and_then_by_label() {
    let labelled = |name: &str, version: u32, label: &str| {
        format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"{version}","labels":{{"mine":"{label}"}}}}}}"#)
    };
    local(async {
        let ours = labelled("ours", 1, "yes");
        let all = [ours.clone(), labelled("other", 2, "no"), object("theirs", 3)];
        let (bench, mut source) = polling(
            Style::LookThenWatch("mine=yes".into()),
            vec![
                page(5, "", &all),
                page(
                    7,
                    "",
                    &[ours.clone(), labelled("new", 6, "yes"), labelled("own", 7, "yes")],
                ),
                whole("new", 6),
            ],
        );
        source
            .expect(&["up", "begin", "object ours@1", "object other@2", "object theirs@3"])
            .await;
        source.expect(&["complete"]).await;
        // The role has written this one itself.
        source.handle.is_known(&ObjectName::new("", "own"), 7);
        source
            .expect(&[
                "begin labelled",
                "still ours@1",
                "object new@6",
                "still own@7",
                "complete",
            ])
            .await;
        assert_eq!(asked(&bench), ["poll", "label", "get new"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_become_older_is_listed_as_a_whole_again() {
    local(async {
        let (bench, mut source) = polling(
            Style::Whole,
            vec![
                page(9, "", &[object("a", 3)]),
                page(5, "", &[object("a", 3)]),
                page(5, "", &[object("a", 3)]),
                page(5, "", &[object("a", 3)]),
            ],
        );
        source.expect(&["up", "begin", "object a@3", "complete"]).await;
        source.expect(&["begin", "still a@3", "complete, back at 5"]).await;
        source.expect(&["begin", "object a@3", "complete"]).await;
        source.expect(&["begin", "still a@3", "complete"]).await;
        assert_eq!(asked(&bench), ["list", "poll", "list", "poll"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_source_reads_no_further_than_it_is_listened_to() {
    local(async {
        let names: Vec<String> = (1..=100).map(|index| format!("c{index}")).collect();
        let objects: Vec<String> = names.iter().map(|name| object(name, 7)).collect();
        let start = r#"{"kind":"ConfigMapList","metadata":{"resourceVersion":"9"},"items":["#;
        let mut texts = vec![start.to_owned()];
        texts.extend(objects.iter().map(|object| format!("{object},")));
        texts.push(format!("{}]}}", object("last", 7)));
        let read = Rc::new(Cell::new(0));
        let count = Rc::clone(&read);
        let body = stream::iter(chunks(&texts)).inspect(move |_| count.set(count.get() + 1));
        let mut answers = vec![page(5, "", &[]), answer(200, body.boxed_local())];
        answers.extend(names.iter().map(|name| whole(name, 7)));
        answers.push(whole("last", 7));
        let (bench, mut source) = polling(Style::Whole, answers);
        source.expect(&["up", "begin", "complete", "begin"]).await;
        for objects in 0..101 {
            sleep(Duration::from_secs(100)).await;
            let (chunks, requests) = (read.get(), bench.script.asked.borrow().len() - 2);
            assert!(chunks <= objects + 4, "{chunks} chunks for {objects} objects");
            assert!(requests <= objects + 2, "{requests} reads for {objects} objects");
            assert!(source.next().await.starts_with("object"));
        }
        source.expect(&["complete"]).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_source_ends_when_its_handle_is_dropped_or_nobody_listens() {
    local(async {
        let (_bench, source) = polling(Style::Whole, vec![one("a", 1)]);
        let Reader { mut events, handle } = source;
        drop(handle);
        assert!(events.recv().await.is_none());

        let (bench, mut source) = polling(Style::Whole, vec![one("a", 1), one("a", 1)]);
        source.expect(&["up", "begin", "object a@1", "complete"]).await;
        let Reader { events, handle } = source;
        drop(events);
        sleep(Duration::from_secs(60)).await;
        assert!(handle.task.is_finished());
        assert_eq!(asked(&bench), ["list", "poll"]);
    })
    .await;
}
