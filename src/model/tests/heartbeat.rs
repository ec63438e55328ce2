//! What is written to the configs, and when.

use std::cell::Cell;

use super::*;

thread_local! {
    static TICKS: Cell<u32> = const { Cell::new(0) };
}

/// A clock that shows another time each time.
fn clock() -> String {
    TICKS.set(TICKS.get() + 1);
    TICKS.get().to_string()
}

fn with_heartbeats() -> Bench {
    Bench::with(|settings| settings.clock = clock).selecting(&["configmaps"])
}

#[test]
fn the_condition_says_whether_deletes_are_held_and_since_when() {
    let mut bench = with_heartbeats();
    bench.bring_down(&["a", "b", "c", "d"]);
    bench.pass(5 * SECOND);
    assert_eq!(bench.written_condition()["status"], "False");
    assert_eq!(bench.written_condition()["reason"], "NothingHeld");
    let origins = bench.origins();
    bench.log.clear();
    bench.list(origins, &[config_map("a", 10)], 30);
    assert!(bench.count("heartbeat") >= 1, "at once: {:?}", bench.log);
    bench.pass(5 * SECOND);
    assert_eq!(bench.written_condition()["status"], "True");
    assert_eq!(bench.written_condition()["reason"], "TooMany");
    let since = bench.written_condition()["lastTransitionTime"].clone();
    bench.pass(GRACE / 2);
    assert_eq!(bench.written_condition()["lastTransitionTime"], since);
    bench.pass(GRACE / 2 + 5 * SECOND);
    assert_eq!(bench.written_condition()["status"], "False");
    assert_ne!(bench.written_condition()["lastTransitionTime"], since);
}

#[test]
fn a_new_config_is_marked_within_a_second_and_a_known_one_is_not_marked_for_being_reported_again() {
    let mut bench = Bench::listed();
    bench.log.clear();
    bench.config_says(&shop(&["configmaps"]));
    bench.pass(2 * SECOND);
    assert_eq!(bench.count("heartbeat"), 0);
    bench.config_says(&config("new", &json!({})));
    bench.pass(2 * SECOND);
    assert_eq!(bench.count("heartbeat on 2"), 1, "{:?}", bench.log);
}

#[test]
fn no_config_is_marked_where_no_heartbeat_is_wanted() {
    let mut bench = Bench::with(|settings| settings.heartbeat = None).selecting(&["configmaps"]);
    bench.bring_down(&["a", "b", "c", "d"]);
    let origins = bench.origins();
    bench.list(origins, &[config_map("a", 10)], 30);
    bench.pass(GRACE / 2);
    assert_eq!(bench.count("heartbeat"), 0);
}

#[test]
fn an_unreadable_config_is_marked_as_well() {
    let mut bench = Bench::listed();
    bench.config_says(&json!({"metadata": {"name": "bad", "uid": "x"}, "spec": {"upsync": 7}}));
    bench.log.clear();
    bench.pass(120 * SECOND);
    assert!(bench.count("heartbeat on 2") >= 1, "{:?}", bench.log);
}

#[test]
fn a_config_that_is_not_where_the_heartbeat_goes_raises_the_question_which_hub_answers() {
    let mut bench = Bench::listed();
    bench
        .world
        .fails
        .insert("heartbeat on 1".into(), not_found("syncerconfigs", "all"));
    bench.log.clear();
    bench.pass(70 * SECOND);
    assert_eq!(bench.count("ask the hub who it is"), 1, "{:?}", bench.log);
}

#[test]
fn a_hub_that_gives_a_config_an_older_version_than_before_holds_deletes() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b", "c"]);
    bench.world.heartbeat_version = 500;
    bench.pass(70 * SECOND);
    bench.world.heartbeat_version = 400;
    bench.pass(70 * SECOND);
    let origins = bench.origins();
    bench.says_gone(origins, &config_map("a", 50));
    assert!(bench.work.is_empty());
    assert_eq!(bench.held_for(Direction::Down, crate::api::OLDER_VERSIONS), Some(1));
}

#[test]
fn a_hub_that_takes_no_heartbeat_is_tried_with_increasing_back_off_down_to_the_interval_and_counted_as_failing() {
    let mut bench = Bench::listed();
    bench.world.fails.insert("heartbeat on 1".into(), forbidden());
    bench.log.clear();
    bench.pass(600 * SECOND);
    let soon = 7;
    assert!(
        (8..=12 + soon).contains(&bench.count("heartbeat")),
        "{} {:?}",
        bench.count("heartbeat"),
        bench.log
    );
    assert_eq!(bench.model.report.failing(), 1);
    bench.world.fails.clear();
    bench.world.heartbeat_version = 1;
    bench.pass(70 * SECOND);
    assert_eq!(bench.model.report.failing(), 0);
}

#[test]
fn a_heartbeat_that_was_refused_for_a_moment_is_late_by_about_as_long() {
    let hour = 3600 * SECOND;
    let mut bench = Bench::with(|settings| settings.heartbeat = Some(hour)).selecting(&["configmaps"]);
    bench.world.fails.insert("heartbeat on 1".into(), forbidden());
    bench.pass(2 * hour);
    assert_eq!(bench.model.report.failing(), 1);
    bench.world.fails.clear();
    bench.world.heartbeat_version = 1;
    bench.pass(300 * SECOND);
    assert_eq!(bench.model.report.failing(), 0);
    bench.log.clear();
    bench.pass(hour / 2);
    assert_eq!(bench.count("heartbeat"), 0, "{:?}", bench.log);
}

// Two in one second have the same content: the second one changes nothing where the first was kept, and has to change
// something where it was not.
#[test]
fn a_heartbeat_that_was_not_kept_is_not_kept_by_writing_the_same_once_more() {
    let mut bench = Bench::listed();
    bench.world.heartbeat_version = 1;
    bench.world.fails.insert("heartbeat on 1".into(), forbidden());
    bench.pass(130 * SECOND);
    assert_eq!(bench.world.kept_before, 0);
    bench.world.fails.clear();
    bench.pass(130 * SECOND);
    assert_eq!(bench.world.kept_before, 1);
}

#[test]
fn a_config_that_is_gone_is_marked_no_longer_and_its_heartbeat_fails_no_longer() {
    let mut bench = Bench::listed();
    bench.config_says(&config("other", &json!({})));
    bench.world.fails.insert("heartbeat on 2".into(), forbidden());
    bench.pass(70 * SECOND);
    assert_eq!(bench.model.report.failing(), 2);
    let source = bench.source(Feed::Configs(ConfigKind::SyncerConfig));
    bench.world.heartbeat_version = 1;
    bench.says_gone(source, &config("other", &json!({})));
    bench.log.clear();
    bench.pass(70 * SECOND);
    assert_eq!(
        (bench.count("heartbeat on 1"), bench.count("heartbeat on 2")),
        (1, 0),
        "{:?}",
        bench.log
    );
    assert_eq!(bench.model.report.failing(), 0);
}

#[test]
fn a_heartbeat_that_does_not_reach_the_hub_is_an_outage_and_no_failure() {
    for (error, is_outage) in [(unreachable(), true), (forbidden(), false)] {
        let mut bench = Bench::new();
        bench.world.fails.insert("heartbeat on 1".into(), error);
        bench.run();
        bench.select(&["configmaps"]);
        bench.pass(3 * SECOND);
        let subject = ConfigKind::SyncerConfig.heartbeat_on("all");
        assert_eq!(bench.model.report.is_failing(&subject), !is_outage);
    }
}
