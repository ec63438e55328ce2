//! Which objects are worked on when, what follows from that, and what is logged.

use driver::serve::HealthQuery;
use tokio::sync::oneshot;

use super::*;
use crate::sync::job::{Change, Ending, HeldFor, Why};

/// One that downsyncs the namespace `shop` with all that is in it.
fn with_namespace() -> Bench {
    let mut bench = Bench::new();
    bench.run();
    let spec = json!({"namespaceScope": {"namespaces": ["shop"],
        "resources": [{"resource": "configmaps", "apiVersion": "v1"}]},
        "clusterScope": [{"resource": "namespaces", "apiVersion": "v1", "objects": ["shop"]}]});
    bench.with_spec(&spec)
}

fn namespace(version: u64) -> Value {
    object(&ResourceType::namespaces(), "", "shop", version)
}

fn namespaces(bench: &Bench) -> SourceId {
    bench.origins_of(Side::Hub, "namespaces").expect("they are read")
}

fn metrics(bench: &mut Bench) -> String {
    let (answer, mut page) = oneshot::channel();
    bench.pass(2 * SECOND);
    let now = Duration::from_secs(1_000_000);
    bench.tell(Event::Asked(HealthQuery::Metrics { now, answer }));
    String::from_utf8(page.try_recv().expect("it is answered").to_vec()).expect("it is text")
}

fn ready(bench: &mut Bench) -> bool {
    let (answer, mut is_ready) = oneshot::channel();
    bench.tell(Event::Asked(HealthQuery::Ready(answer)));
    is_ready.try_recv().expect("it is answered").is_ok()
}

#[test]
fn a_namespace_goes_before_what_is_in_it() {
    let mut bench = with_namespace();
    let (first, others) = (namespaces(&bench), bench.origins());
    bench.says(first, &namespace(10));
    bench.says(others, &config_map("a", 10));
    assert_eq!(bench.working(), ["shop"]);
    bench.succeed(Change::Created);
    assert_eq!(bench.working(), ["a"]);
}

#[test]
fn a_namespace_that_hangs_does_not_hold_up_the_others_for_long() {
    let mut bench = with_namespace();
    let (first, others) = (namespaces(&bench), bench.origins());
    bench.says(first, &namespace(10));
    bench.says(others, &config_map("a", 10));
    bench.pass(4 * SECOND);
    assert_eq!(bench.working(), ["shop"]);
    bench.pass(2 * SECOND);
    assert_eq!(bench.working(), ["shop", "a"]);
}

#[test]
fn a_namespace_is_deleted_after_all_else() {
    let mut bench = with_namespace();
    let (first, others) = (namespaces(&bench), bench.origins());
    bench.says(first, &namespace(10));
    bench.succeed(Change::Created);
    bench.bring_down(&["a", "b", "c"]);
    bench.says(others, &config_map("b", 20));
    bench.says_gone(first, &namespace(21));
    bench.says_gone(others, &config_map("a", 22));
    assert_eq!(bench.working(), ["b", "a"]);
    bench.succeed(Change::Updated);
    assert_eq!(bench.working(), ["a"]);
    bench.succeed(Change::Deleted);
    assert_eq!(bench.working(), ["shop"]);
}

#[test]
fn a_namespace_that_is_to_go_waits_for_a_quiet_moment_no_longer_than_a_minute() {
    let mut bench = with_namespace();
    let (first, others) = (namespaces(&bench), bench.origins());
    bench.says(first, &namespace(10));
    bench.succeed(Change::Created);
    bench.bring_down(&["a", "b"]);
    bench.says(others, &config_map("a", 20));
    bench.says_gone(first, &namespace(21));
    let (start, mut version, mut busy) = (bench.now, 22, ["a", "b"]);
    while !bench.working().contains(&"shop") {
        // There is always something else to do.
        bench.says(others, &config_map(busy[1], version));
        bench.pass(SECOND);
        bench.succeed_with(busy[0], Change::Updated);
        version += 1;
        busy.reverse();
        assert!(version < 100, "{:?}", bench.working());
    }
    let waited = (bench.now - start).as_secs();
    assert!((58..64).contains(&waited), "{waited}");
}

#[test]
fn what_waits_for_its_namespace_at_the_edge_goes_on_when_that_has_come() {
    let mut bench = with_namespace();
    let (first, others) = (namespaces(&bench), bench.origins());
    bench.says(others, &config_map("a", 10));
    for _ in 0..5 {
        bench.fail(Side::Edge, not_found("namespaces", "shop"));
        bench.pass(20 * SECOND);
    }
    bench.fail(Side::Edge, not_found("namespaces", "shop"));
    assert_eq!(bench.model.report.failing(), 0, "that is no failure");
    bench.says(first, &namespace(10));
    assert_eq!(bench.working(), ["shop"]);
    bench.succeed(Change::Created);
    assert_eq!(bench.working(), ["a"]);
}

#[test]
fn a_namespace_that_turns_out_to_be_missing_at_the_edge_is_created_again() {
    let mut bench = with_namespace();
    let (first, others) = (namespaces(&bench), bench.origins());
    bench.says(first, &namespace(10));
    bench.succeed(Change::Created);
    bench.says(others, &config_map("a", 10));
    bench.fail(Side::Edge, not_found("namespaces", "shop"));
    assert_eq!(bench.working(), ["shop"]);
}

#[test]
fn more_objects_than_the_queue_has_room_for_all_arrive() {
    let mut bench = Bench::listed();
    let origins = bench.origins();
    let names: Vec<String> = (0..200).map(|index| format!("n{index:03}")).collect();
    for name in &names {
        bench.says(origins, &config_map(name, 10));
    }
    assert!(!bench.model.has_room());
    let page = metrics(&mut bench);
    assert!(page.contains("edge_syncer_queue_overflowed_groups 1"), "{page}");
    let mut arrived = BTreeSet::new();
    while !bench.work.is_empty() {
        arrived.insert(bench.working()[0].to_owned());
        bench.succeed(Change::Created);
    }
    assert_eq!(arrived.into_iter().collect::<Vec<_>>(), names);
    assert!(bench.model.has_room() && bench.model.queue.is_empty());
}

#[test]
fn what_hangs_gives_its_workers_to_others_and_is_begun_a_few_at_a_time() {
    let mut bench = Bench::new();
    bench.world.serve(&widgets());
    let mut bench = bench.selecting(&["configmaps", "widgets.example.org"]);
    let (slow, quick) = (
        bench.origins(),
        bench.origins_of(Side::Hub, "widgets").expect("they are read"),
    );
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        bench.says(slow, &config_map(name, 10));
    }
    bench.says(quick, &object(&widgets(), "shop", "w", 10));
    assert_eq!(bench.working(), ["a", "b", "c", "d"]);
    bench.pass(4 * SECOND);
    assert_eq!(bench.work.len(), 4);
    bench.pass(2 * SECOND);
    assert_eq!(
        bench.working(),
        ["a", "b", "c", "d", "w"],
        "there are enough of the others"
    );
}

#[test]
fn an_origin_that_changes_while_a_worker_has_it_is_taken_up_once_more_with_its_newest_form() {
    let mut bench = Bench::listed();
    let origins = bench.origins();
    bench.says(origins, &config_map("a", 10));
    for version in 11..15 {
        bench.says(origins, &config_map("a", version));
    }
    bench.fail(Side::Edge, invalid());
    assert_eq!(bench.working(), ["a"], "it is another one than was refused");
    let desired = bench.job("a").desired.clone().expect("it is at hand");
    assert_eq!(desired.version, 14);
    bench.succeed(Change::Created);
    bench.pass(3600 * SECOND);
    assert!(bench.work.is_empty());
}

#[test]
fn a_conflict_or_a_group_that_is_listed_and_not_served_is_a_failure_only_if_it_lasts() {
    for error in [conflict(), Error::NotServedYet("example.org/v1".to_owned())] {
        let mut bench = Bench::listed();
        let origins = bench.origins();
        bench.says(origins, &config_map("a", 10));
        for failing in [0, 0, 0, 0, 1] {
            bench.fail(Side::Edge, error.clone());
            assert_eq!(bench.model.report.failing(), failing, "{error}");
            bench.pass(60 * SECOND);
        }
        bench.succeed(Change::Created);
        assert_eq!(bench.model.report.failing(), 0);
    }
}

// What was refused may be taken later, whatever was said: a rule can be changed as well as an object.
#[test]
fn what_is_refused_is_tried_again_by_the_clock_and_when_its_origin_changes_whatever_the_words() {
    for words in ["spec.x: field is immutable", "failed rule: self == oldSelf", "no"] {
        let mut bench = Bench::listed();
        let origins = bench.origins();
        bench.says(origins, &config_map("a", 10));
        bench.fail(Side::Edge, answer(422, "Invalid", words));
        assert!(bench.work.is_empty());
        bench.pass(2 * SECOND);
        assert_eq!(bench.working(), ["a"], "{words}");
        for _ in 0..20 {
            bench.fail(Side::Edge, answer(422, "Invalid", words));
            bench.pass(300 * SECOND);
        }
        bench.fail(Side::Edge, answer(422, "Invalid", words));
        bench.pass(60 * SECOND);
        assert!(bench.work.is_empty(), "{words}: it is tried rarely");
        assert_eq!(bench.model.report.failing(), 1);
        bench.says(origins, &config_map("a", 11));
        assert_eq!(bench.working(), ["a"], "{words}");
    }
}

#[test]
fn what_is_no_longer_ours_to_delete_does_not_count_as_failing_while_its_delete_waits() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a"]);
    let origins = bench.origins();
    bench.says_gone(origins, &config_map("a", 20));
    bench.fail(Side::Hub, broken());
    assert_eq!(bench.model.report.failing(), 1);
    let mut unmarked = copy_of("a", 2000);
    unmarked["metadata"]["annotations"] = json!({});
    let copies = bench.copies();
    bench.says(copies, &unmarked);
    assert_eq!(bench.model.report.failing(), 0);
}

#[test]
fn a_worker_that_finds_no_origin_of_what_the_hub_has_reported_is_not_believed() {
    for found in [Ending::from(Why::Gone), HeldFor::AnotherLook.into()] {
        let mut bench = Bench::listed();
        bench.bring_down(&["a"]);
        let copies = bench.copies();
        bench.says(copies, &changed(copy_of("a", 0), 2000));
        bench.end_with("a", found);
        bench.pass(60 * SECOND);
        assert_eq!(
            bench.working(),
            ["a"],
            "whoever says so may be another cluster, or a stale cache"
        );
        assert!(!bench.job("a").may_delete);
    }
}

/// A worker has read that this is in the copy's place, and is being deleted.
fn waits_for_the_end_of(bench: &Bench, (key, job): (&Key, &Job), found: &Value) -> Outcome {
    Outcome {
        desired_hash: bench.desired(key, job).map_or(0, |desired| desired.hash),
        copy: Some(seen(job, found)),
        waits_for: vec!["example.org/wait".into()],
        ..outcome(Why::Terminating)
    }
}

#[test]
fn what_others_have_put_in_the_place_of_a_copy_unreported_is_read_again_until_it_is_gone() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a"]);
    let origins = bench.origins();
    bench.says(origins, &config_map("a", 20));
    let (key, job) = bench.take("a");
    let mut found = ending(copy_of("a", 2000));
    found["metadata"]["labels"] = json!({});
    found["metadata"]["annotations"] = json!({});
    let left = waits_for_the_end_of(&bench, (&key, &job), &found);
    bench.ends(key, Ok(left));
    assert!(bench.work.is_empty());
    bench.pass(60 * SECOND);
    assert_eq!(bench.working(), ["a"]);
}

#[test]
fn a_copy_that_is_on_its_way_out_is_recreated_when_it_is_gone() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a"]);
    let (origins, copies) = (bench.origins(), bench.copies());
    bench.says(copies, &ending(copy_of("a", 2000)));
    let mut tries = 0;
    for second in 0..60 {
        while !bench.work.is_empty() {
            let (key, job) = bench.take("a");
            let left = waits_for_the_end_of(&bench, (&key, &job), &ending(copy_of("a", 2000)));
            bench.ends(key, Ok(left));
            tries += 1;
        }
        if second < 5 {
            assert_eq!(
                bench.model.report.failing(),
                0,
                "most finalizers are removed in a moment"
            );
        }
        bench.pass(SECOND);
    }
    assert_eq!(bench.model.report.failing(), 1, "its finalizers keep it");
    assert!(tries < 10, "{tries}");
    bench.pass(3600 * SECOND);
    assert!(bench.work.is_empty());
    bench.says_gone(copies, &ending(copy_of("a", 2001)));
    bench.pass(SECOND);
    assert_eq!(bench.working(), ["a"]);
    bench.succeed(Change::Created);
    assert_eq!(bench.model.report.failing(), 0);
    bench.says(origins, &config_map("a", 10));
    assert!(bench.work.is_empty());
}

#[test]
fn a_source_is_given_what_workers_have_seen_so_that_a_poll_reads_less() {
    let mut bench = Bench::with(|settings| settings.edge_mode = Mode::Poll(60 * SECOND)).selecting(&["configmaps"]);
    bench.bring_down(&["a"]);
    let version = bench.world.version;
    let of_a = |known| ("a".to_owned(), known);
    assert_eq!(
        bench.world.known,
        [of_a(Known::At(version)), of_a(Known::Written(version))]
    );
    let origins = bench.origins();
    bench.says_gone(origins, &config_map("a", 20));
    bench.succeed(Change::Deleted);
    assert_eq!(bench.world.known[2..], [of_a(Known::Gone)]);
}

#[test]
fn it_is_ready_once_all_is_listed_and_stays_so() {
    let mut bench = Bench::new();
    bench.run();
    assert!(!ready(&mut bench));
    bench.select(&["configmaps"]);
    assert!(!ready(&mut bench));
    bench.list_rest(1);
    assert!(ready(&mut bench));
    bench.config_says(&shop(&["configmaps", "widgets.example.org"]));
    assert!(ready(&mut bench), "a new config does not make it new");
}

#[test]
fn the_figures_say_how_many_objects_are_synced_and_what_fails_and_is_held() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b", "c", "d", "e", "f"]);
    let origins = bench.origins();
    bench.list(origins, &[config_map("a", 10), config_map("b", 11)], 30);
    bench.says(origins, &config_map("b", 31));
    bench.fail(Side::Edge, forbidden());
    let page = metrics(&mut bench);
    for line in [
        "side_up{side=\"hub\"} 1",
        "objects{direction=\"downsync\",state=\"synced\"} 1",
        "objects{direction=\"downsync\",state=\"out_of_sync\"} 5",
        "failing 1",
        "deletes_held{direction=\"downsync\",reason=\"TooMany\"} 4",
        "writes_total{side=\"edge\",result=\"created\"} 6",
        "queue_capacity 64",
    ] {
        assert!(page.contains(&format!("edge_syncer_{line}\n")), "{line}\n{page}");
    }
    bench.contact(Side::Edge).answers = false;
    assert!(metrics(&mut bench).contains("side_up{side=\"edge\"} 0"));
}

#[test]
fn what_is_deselected_or_gone_fails_no_longer() {
    for end in ["deselected", "deselected while a worker has it", "gone"] {
        let mut bench = Bench::listed();
        let origins = bench.origins();
        bench.says(origins, &config_map("a", 10));
        bench.fail(Side::Hub, forbidden());
        assert_eq!(bench.model.report.failing(), 1, "{end}");
        match end {
            "gone" => bench.says_gone(origins, &config_map("a", 11)),
            "deselected" => bench.config_says(&config("all", &named(&["b"]))),
            _ => {
                bench.pass(5 * SECOND);
                bench.config_says(&config("all", &named(&["b"])));
                bench.fail(Side::Hub, forbidden());
            }
        }
        bench.pass(600 * SECOND);
        assert_eq!(bench.model.report.failing(), 0, "{end}");
    }
}

#[test]
fn a_copy_that_turns_up_while_a_worker_finds_none_is_deleted_all_the_same() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b", "c", "d"]);
    let (copies, origins) = (bench.copies(), bench.origins());
    bench.says_gone(origins, &config_map("a", 20));
    assert_eq!(bench.working(), ["a"]);
    // Somebody, or an earlier run, has made it again; a cache answers the worker.
    bench.says(copies, &copy_of("a", 3000));
    let (key, _) = bench.take("a");
    let found = Outcome {
        copy: Some(crate::sync::job::Seen::ABSENT),
        ..outcome(Why::Gone)
    };
    bench.ends(key, Ok(found));
    bench.pass(10 * SECOND);
    assert_eq!(bench.working(), ["a"], "it is asked for again");
    assert_eq!(bench.job("a").copy_version, 3000);
    bench.succeed(Change::Deleted);
    bench.pass(10 * SECOND);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
}

#[test]
fn the_namespaces_of_the_cluster_itself_are_protected_and_nothing_else_of_their_name() {
    let mut bench = with_namespace();
    let origins = bench.origins();
    bench.says(origins, &config_map("default", 10));
    assert!(!bench.job("default").protected);
    let spec =
        json!({"clusterScope": [{"resource": "namespaces", "apiVersion": "v1", "objects": ["default", "mall"]}]});
    let mut bench = Bench::new().with_spec(&spec);
    let origins = bench.origins_of(Side::Hub, "namespaces").expect("they are read");
    for name in ["default", "mall"] {
        bench.says(origins, &object(&ResourceType::namespaces(), "", name, 10));
    }
    assert!(bench.job("default").protected && !bench.job("mall").protected);
}

#[test]
fn a_worker_is_given_when_its_origin_was_reported() {
    let mut bench = Bench::listed();
    let origins = bench.origins();
    bench.says(origins, &config_map("a", 10));
    assert_eq!(bench.job("a").origin_seen_at, 10);
    bench.succeed(Change::Created);
    bench.says_gone(origins, &config_map("a", 20));
    assert!(bench.job("a").may_delete);
}

#[test]
fn a_copy_that_was_to_be_replaced_is_tried_again_and_its_type_is_not_held() {
    use crate::sync::definition::Withdrawal;
    for held in [
        HeldFor::AnotherLook,
        HeldFor::Withdrawn(Withdrawal::Going(Some(CRD.into()))),
    ] {
        let mut bench = Bench::listed();
        let origins = bench.origins();
        bench.says(origins, &config_map("a", 10));
        let (key, job) = bench.take("a");
        let held = Outcome {
            desired_hash: job.desired.clone().expect("it is at hand").hash,
            ..outcome(held)
        };
        bench.ends(key, Ok(held));
        assert!(bench.model.guard.held_by_reason(&bench.model.types).is_empty());
        bench.pass(60 * SECOND);
        assert_eq!(bench.working(), ["a"]);
        assert!(!bench.job("a").may_delete);
    }
}

#[test]
fn somebody_elses_object_that_goes_leaves_its_place_to_who_waits_for_it() {
    let mut bench = Bench::listed();
    let (origins, copies) = (bench.origins(), bench.copies());
    bench.says(origins, &config_map("a", 10));
    bench.end_with("a", Why::Conflict(None));
    let mut renamed = copy_of("a", 2000);
    renamed["metadata"]["annotations"][crate::api::RENAMED_FROM] = json!("Secret/a");
    bench.says_gone(copies, &renamed);
    assert_eq!(bench.working(), ["a"]);
}
