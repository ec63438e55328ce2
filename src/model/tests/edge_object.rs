//! What is written to the object that stands for the edge, and when.

use super::*;
use crate::api::status::Condition;
use crate::model::effect::EdgeSeen;

const MINUTE: Duration = Duration::from_secs(60);

/// The hub has the object, and says so with each heartbeat.
fn seen(uid: &str) -> EdgeSeen {
    let ready = Condition {
        r#type: "Ready".to_owned(),
        status: "True".to_owned(),
        last_transition_time: "long ago".to_owned(),
        ..Condition::default()
    };
    EdgeSeen {
        uid: uid.to_owned(),
        generation: 3,
        conditions: vec![ready],
    }
}

fn kept() -> Bench {
    let mut bench = Bench::new();
    bench.world.edge_object = Some(Ok(seen("x")));
    bench.world.heartbeat_version = 1;
    bench.selecting(&["configmaps"])
}

fn last(bench: &Bench) -> &Value {
    bench.world.edge_statuses.last().expect("it was written")
}

fn condition<'a>(status: &'a Value, of: &str) -> &'a Value {
    let mut all = status["conditions"].as_array().expect("there are some").iter();
    all.find(|condition| condition["type"] == of).expect("it has it")
}

/// While a large plan waited, after the record had got a type, nothing was selected and so all was synced.
#[test]
fn nothing_is_said_to_be_synced_before_the_plan_of_a_large_config_is_followed() {
    let mut bench = Bench::new();
    bench.world.edge_object = Some(Ok(seen("x")));
    bench.world.heartbeat_version = 1;
    bench.run();
    let named = |index| json!({"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": format!("a{index}")});
    let all: Vec<Value> = (0..30_000).map(named).collect();
    bench.list_configs(ConfigKind::SyncerConfig, &[]);
    let large = config("all", &json!({"downSyncedResources": all}));
    bench.list_configs(ConfigKind::EdgeSyncConfig, &[large]);
    let is_ready = |status: &Value| condition(status, "Ready")["status"] == "True";
    for _ in 0..10 {
        bench.pass(SECOND);
        let statuses = &bench.world.edge_statuses;
        assert!(!statuses.iter().any(is_ready), "{statuses:?}");
    }
    bench.list_all(1);
    bench.pass(10 * SECOND);
    // The hub has nothing of it, as is known now.
    assert_ne!(
        condition(last(&bench), "Ready")["reason"],
        "Pending",
        "{}",
        last(&bench)
    );
}

#[test]
fn what_the_edge_says_of_itself_is_there_in_five_seconds_and_an_idle_hour_has_heartbeats_alone() {
    let mut bench = kept();
    bench.bring_down(&["a", "b"]);
    bench.pass(5 * SECOND);
    let status = last(&bench);
    assert_eq!(
        (&status["synced"], &status["failing"], &status["held"]),
        (&json!("2/2"), &json!(0), &json!(0))
    );
    assert_eq!(status["counts"]["selected"], 2);
    let syncer = &status["syncer"];
    assert_eq!(
        (&syncer["syncTargetUID"], &syncer["syncTargetName"]),
        (&json!("st"), &json!("edge"))
    );
    assert_eq!(
        (&syncer["holder"], &syncer["heartbeatIntervalSeconds"]),
        (&json!("holder"), &json!(60))
    );
    assert_eq!(syncer["kubernetesVersions"], json!({"hub": "v1", "edge": "v2"}));
    let ready = condition(status, "Ready");
    assert_eq!(ready["status"], "True");
    assert_eq!(
        ready["lastTransitionTime"], "long ago",
        "as the hub had it before a restart"
    );
    assert_eq!(ready["observedGeneration"], 3);

    bench.log.clear();
    let (written, beats) = (bench.world.edge_statuses.len(), bench.world.edge_beats);
    bench.pass(60 * MINUTE);
    assert_eq!(bench.world.edge_statuses.len(), written);
    let beats = bench.world.edge_beats - beats;
    assert!((54..=67).contains(&beats), "{beats}");
    // One of four is for the configs too.
    let of_configs = bench.count("heartbeat on 1");
    assert!(of_configs.abs_diff(beats / 4) <= 1, "{of_configs} of {beats}");
}

/// Each write to a config is sent to all edges that follow it.
#[test]
fn a_config_that_other_edges_follow_too_gets_few_heartbeats_where_the_edge_has_its_object() {
    let mut bench = kept();
    let mut config = shop(&["configmaps"]);
    config["status"] = json!({"edges": [{"syncTargetUID": "other"}]});
    bench.config_says(&config);
    bench.pass(MINUTE);
    bench.log.clear();
    let beats = bench.world.edge_beats;
    bench.pass(60 * MINUTE);
    let beats = bench.world.edge_beats - beats;
    assert!((54..=67).contains(&beats), "{beats}");
    let of_configs = bench.count("heartbeat on 1");
    assert!(of_configs.abs_diff(beats / 10) <= 1, "{of_configs} of {beats}");
}

#[test]
fn an_object_that_two_configs_select_counts_once() {
    let mut bench = kept();
    bench.config_says(&config(
        "other",
        &json!({"namespaceScope": {"namespaces": ["shop"],
        "resources": [{"group": "", "resource": "configmaps", "apiVersion": "v1"}]}}),
    ));
    bench.pass(SECOND);
    bench.list_rest(2);
    bench.bring_down(&["a", "b", "c"]);
    bench.pass(6 * SECOND);
    assert_eq!(last(&bench)["synced"], "3/3");
}

#[test]
fn held_deletes_are_said_and_the_edge_is_not_ready() {
    let mut bench = kept();
    bench.bring_down(&["a", "b", "c", "d"]);
    bench.pass(5 * SECOND);
    let origins = bench.origins();
    bench.list(origins, &[config_map("a", 10)], 30);
    bench.pass(5 * SECOND);
    let status = last(&bench);
    assert_eq!(status["held"], 3);
    let held = condition(status, "DeletesHeld");
    assert_eq!((&held["status"], &held["reason"]), (&json!("True"), &json!("TooMany")));
    assert_eq!(condition(status, "Ready")["status"], "False");
}

#[test]
fn a_hub_without_such_objects_is_asked_rarely_and_its_configs_have_each_heartbeat() {
    let mut bench = Bench::listed();
    bench.world.heartbeat_version = 1;
    bench.pass(5 * MINUTE);
    bench.log.clear();
    let before = bench.world.edge_beats;
    assert_eq!(before, 1);
    bench.pass(60 * MINUTE);
    assert!(bench.count("heartbeat on 1") >= 54, "{:?}", bench.log);
    assert_eq!(
        bench.world.edge_beats - before,
        1,
        "after ten minutes, and then after an hour"
    );
    assert_eq!(bench.model.report.failing(), 0);
    assert_eq!(bench.world.edge_statuses, [Value::Null; 0]);
}

#[test]
fn an_edge_that_may_not_be_written_fails_and_all_else_goes_on_until_it_may() {
    let mut bench = Bench::new();
    bench.world.edge_object = Some(Err(forbidden()));
    bench.world.heartbeat_version = 1;
    let mut bench = bench.selecting(&["configmaps"]);
    bench.bring_down(&["a"]);
    bench.pass(10 * MINUTE);
    assert_eq!(bench.model.report.failing(), 1);
    assert!(bench.count("heartbeat on 1") >= 9, "{:?}", bench.log);
    assert_eq!(bench.world.edge_statuses, [Value::Null; 0]);
    bench.world.edge_object = Some(Ok(seen("x")));
    bench.pass(10 * MINUTE);
    assert_eq!(bench.model.report.failing(), 0);
    assert_eq!(last(&bench)["synced"], "1/1");
}

#[test]
fn an_edge_that_was_made_again_has_everything_written_again() {
    let mut bench = kept();
    bench.pass(5 * SECOND);
    let before = bench.world.edge_statuses.len();
    bench.world.edge_object = Some(Ok(seen("y")));
    bench.pass(4 * MINUTE);
    assert_eq!(bench.world.edge_statuses.len(), before + 1);
}

#[test]
fn credentials_that_an_edge_refuses_are_said() {
    let mut bench = kept();
    bench.pass(5 * SECOND);
    bench.contact(Side::Edge).accepts_credentials = false;
    bench.tell(Event::Due);
    bench.pass(2 * MINUTE);
    let of = condition(last(&bench), "CredentialsValid");
    assert_eq!((&of["status"], &of["reason"]), (&json!("False"), &json!("Refused")));
}
