//! Plans that are made and followed in many turns of the loop, and what one turn takes on the largest configs.

use kube_lite::discovery::{Discovery, Served};

use super::*;
use crate::model::turns::Making;
use crate::plan::shapes::{serves, shapes};
use crate::plan::steps_taken;

/// What the next turn continues with.
fn part(bench: &Bench) -> Option<&'static str> {
    Some(match bench.model.selecting.turns.plan.as_ref()? {
        Making::Merging(_) => "merge",
        Making::Resolving(_) => "resolve",
        Making::Resolved(_) => "log",
        Making::Comparing(_) => "compare",
        Making::Following(_) => "follow",
        Making::Ending(_) => "drop",
    })
}

/// How long this thread has run, where the system says it: what else the machine does meanwhile is left out.
fn time_on_the_processor() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ran = stat.split(' ').next().and_then(|ran| ran.parse().ok());
    Duration::from_nanos(ran.unwrap_or_default())
}

/// The longest turns, by what they are for: how long one took, in how many steps of planning, and how many there were.
#[derive(Default)]
struct Turns(BTreeMap<&'static str, (Duration, usize, usize)>);

impl Turns {
    fn turn(&mut self, bench: &mut Bench, event: Event, word: &'static str) {
        let before = part(bench);
        steps_taken();
        let since = time_on_the_processor();
        assert_eq!(bench.hand(event), Ok(Course::On));
        bench.model.advance();
        let _ = bench.model.next_due();
        let took = time_on_the_processor().saturating_sub(since);
        let word = before.unwrap_or(word);
        let known = self.0.entry(word).or_default();
        *known = (known.0.max(took), known.1.max(steps_taken()), known.2 + 1);
    }

    /// Until nothing is due within a while.
    fn run(&mut self, bench: &mut Bench, word: &'static str) {
        let end = bench.now + 30 * SECOND;
        loop {
            let effects = bench.model.effects();
            let is_idle = effects.is_empty();
            for effect in effects {
                if let Some(answer) = bench.perform(effect) {
                    self.turn(bench, Event::Answer(answer), word);
                }
            }
            if is_idle {
                let Some(due) = bench.model.next_due().filter(|due| *due <= end) else {
                    break;
                };
                bench.now = due.max(bench.now);
                self.turn(bench, Event::Due, word);
                bench.now += Duration::from_millis(1);
            }
        }
    }

    fn says(&mut self, bench: &mut Bench, id: SourceId, event: SourceEvent, word: &'static str) {
        bench.world.remember_origin(id, &event);
        self.turn(bench, Event::Source(id, event), word);
        self.run(bench, word);
    }

    fn lists(&mut self, bench: &mut Bench, id: SourceId, objects: Vec<Bytes>, word: &'static str) {
        bench.listed.insert(id);
        self.says(bench, id, SourceEvent::Begin(Covers::Everything), word);
        for object in objects {
            self.says(
                bench,
                id,
                SourceEvent::Object(taken_apart(object)),
                if word == "config" { "read" } else { word },
            );
        }
        let versions = Versions {
            list: 1,
            before: 0,
            side: 0,
            has_lost: false,
        };
        self.says(bench, id, SourceEvent::Complete(versions), word);
    }

    /// Lists some of the sources that have not listed anything, empty.
    fn lists_some(&mut self, bench: &mut Bench, most: usize) {
        for _ in 0..most {
            let reads = |feed: &Feed| matches!(feed, Feed::Origins(..) | Feed::Copies(..) | Feed::HubNamespaces);
            let mut sources = bench.world.sources.iter();
            let next = sources.find(|(id, (feed, _))| !bench.listed.contains(id) && reads(feed));
            let Some((&id, _)) = next else { return };
            self.lists(bench, id, Vec::new(), "list");
        }
    }
}

/// A model that is given this config, and has both sides serve this; what it selects is edited, and then deselected. Each
/// time, so many sources list.
fn go_through(spec: &str, served: &Discovery, plan_slice: usize, lists: usize) -> (Turns, Bench) {
    let mut bench = Bench::with(|settings| (settings.heartbeat, settings.plan_slice) = (None, plan_slice));
    for side in [Side::Hub, Side::Edge] {
        let all = served.known.values().filter_map(|served| match served {
            Served::Resources(all) => Some(all.values()),
            Served::NotServed => None,
        });
        bench.world.served.insert(side, all.flatten().cloned().collect());
    }
    bench.run();
    let mut turns = Turns::default();
    let kinds = [ConfigKind::SyncerConfig, ConfigKind::EdgeSyncConfig];
    let is_by_kind = spec.contains("downSyncedResources");
    for kind in kinds {
        let id = bench.source(Feed::Configs(kind));
        let is_it = is_by_kind == (kind == ConfigKind::EdgeSyncConfig);
        let object = is_it.then(|| Bytes::from(spec.to_owned()));
        turns.lists(&mut bench, id, object.into_iter().collect(), "config");
    }
    turns.lists_some(&mut bench, lists);
    let edited = spec.replacen("\"a7\"", "\"b7\"", 3).replacen("\"n7\"", "\"n7x\"", 3);
    let id = bench.source(Feed::Configs(kinds[usize::from(is_by_kind)]));
    turns.says(&mut bench, id, SourceEvent::Object(taken_apart(edited)), "read");
    turns.lists_some(&mut bench, lists);
    let none = r#"{"metadata":{"name":"NAME"},"spec":{}}"#.replace("NAME", if is_by_kind { "e" } else { "s" });
    turns.says(&mut bench, id, SourceEvent::Object(taken_apart(none)), "read");
    turns.lists_some(&mut bench, lists);
    (turns, bench)
}

fn taken_apart(object: impl Into<Bytes>) -> Box<kube_lite::Object> {
    Box::new(kube_lite::Object::take_apart(object.into()).expect("it is an object"))
}

#[test]
fn a_turn_of_the_loop_takes_as_many_steps_of_planning_as_it_may() {
    const SLICE: usize = 500;
    let served = serves(100);
    for (shape, spec) in shapes(1000) {
        for (word, (_, steps, _)) in go_through(&spec, &served, SLICE, 30).0.0 {
            // What is not served is logged at once, and a long selection is compared in one go with those before it.
            assert!(steps <= SLICE + 4000, "{shape}: {steps} steps in one turn ({word})");
        }
    }
}

/// The record was put together for each of a thousand types that had no copies, in one turn.
#[test]
fn many_types_without_copies_are_dropped_in_many_turns() {
    const SLICE: usize = 500;
    const TYPES: usize = 200;
    let mut all = shapes(TYPES).into_iter();
    let (_, spec) = all.find(|(shape, _)| *shape == "plurals").expect("it is one");
    let (turns, bench) = go_through(&spec, &serves(TYPES), SLICE, usize::MAX);
    assert!(bench.model.types.is_empty() && bench.model.record.each_type().next().is_none());
    assert!(turns.0.contains_key("drop"), "{:?}", turns.0.keys());
    for (word, (_, steps, _)) in turns.0 {
        assert!(steps <= SLICE + 3000, "{steps} steps in one turn ({word})");
    }
}

/// How long the turns of the loop take on configs of 10,000 entries, for a look with `cargo test --release`.
#[test]
#[ignore = "prints times"]
#[expect(clippy::print_stdout, reason = "people read it")]
fn times() {
    let served = serves(1000);
    for (shape, spec) in shapes(10_000) {
        let turns = go_through(&spec, &served, PLAN_SLICE, 30).0.0.into_iter();
        let turns =
            turns.map(|(word, (most, _, count))| format!("{word} {:.1} ({count})", most.as_secs_f64() * 1000.0));
        println!("{shape}, ms: {}", turns.collect::<Vec<_>>().join(", "));
    }
}

/// The loop was not free for seconds, in which no Lease was renewed and no probe answered.
#[test]
fn a_large_config_is_planned_and_followed_in_many_turns_of_the_loop() {
    let mut bench = Bench::with(|settings| settings.plan_slice = 500);
    bench.run();
    let origins: Vec<Value> = (0..1500)
        .map(|index| json!({"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": format!("a{index}")}))
        .collect();
    bench.list_configs(ConfigKind::SyncerConfig, &[]);
    let source = bench.source(Feed::Configs(ConfigKind::EdgeSyncConfig));
    bench.source_says(source, SourceEvent::Begin(Covers::Everything));
    bench.says(source, &config("all", &json!({"downSyncedResources": origins})));
    let complete = SourceEvent::Complete(Versions {
        list: 1,
        before: 0,
        side: 0,
        has_lost: false,
    });
    assert_eq!(bench.hand(Event::Source(source, complete)), Ok(Course::On));
    let mut turns = Vec::new();
    loop {
        bench.model.advance();
        let Some(making) = &bench.model.selecting.turns.plan else {
            break;
        };
        turns.push(making.word());
        assert!(!bench.model.has_read_all(), "{turns:?}");
        assert!(
            bench.model.next_due().is_some_and(|due| due <= bench.now),
            "it goes on at once"
        );
        assert_eq!(bench.hand(Event::Due), Ok(Course::On));
    }
    assert!(turns.len() > 5, "{turns:?}");
    turns.dedup();
    assert_eq!(turns[..2], ["merging", "resolving"]);
    // What is served is known by now, and planned after a pause.
    bench.run();
    bench.pass(SECOND);
    bench.list_all(1);
    assert!(bench.keeps("configmaps") && bench.model.has_read_all());
}

/// Turns of the loop, until the plan that is being made has come so far.
fn turn_until(bench: &mut Bench, is_there: impl Fn(&Making) -> bool) {
    for _ in 0..10_000 {
        if bench.model.selecting.turns.plan.as_ref().is_some_and(&is_there) {
            return;
        }
        assert_eq!(bench.hand(Event::Due), Ok(Course::On));
        bench.model.advance();
    }
    panic!("it does not come so far");
}

fn is_following(making: &Making) -> bool {
    matches!(making, Making::Following(_))
}

#[test]
fn nothing_is_written_or_deleted_while_some_types_follow_a_new_plan_and_others_do_not() {
    let mut bench = Bench::with(|settings| settings.plan_slice = 1).selecting(&["configmaps"]);
    bench.bring_down(&["a", "b"]);
    let origins = bench.origins();
    let source = bench.source(Feed::Configs(ConfigKind::SyncerConfig));
    let event = |object: &Value| SourceEvent::Object(read(object));
    let edited = config("all", &named(&["a", "c"]));
    assert_eq!(bench.hand(Event::Source(source, event(&edited))), Ok(Course::On));
    turn_until(&mut bench, is_following);
    let gone = SourceEvent::Gone(read(&config_map("a", 30)));
    let changed = event(&config_map("b", 31));
    for event in [gone, changed] {
        bench.world.remember_origin(origins, &event);
        assert_eq!(bench.hand(Event::Source(origins, event)), Ok(Course::On));
        bench.model.advance();
        let effects = bench.model.effects();
        let writes = |effect: &Effect| {
            matches!(
                effect,
                Effect::Request(
                    Request::Object(..) | Request::Status(..) | Request::Namespace(..) | Request::WriteRecord(..)
                )
            )
        };
        assert!(!effects.iter().any(writes));
        assert!(bench.model.selecting.turns.are_following() && !bench.model.may_write());
        for effect in effects {
            bench.perform(effect);
        }
    }
    bench.run();
    assert!(!bench.model.selecting.is_in_turns() && bench.model.may_write());
}

#[test]
fn a_plan_begins_again_if_what_the_sides_serve_changes_and_is_followed_first_if_configs_change() {
    let edit = |bench: &mut Bench, name: &str| {
        let event = SourceEvent::Object(read(&config("all", &named(&[name]))));
        let source = bench.source(Feed::Configs(ConfigKind::SyncerConfig));
        assert_eq!(bench.hand(Event::Source(source, event)), Ok(Course::On));
    };
    let selects = |bench: &Bench, name: &str| {
        let name = ObjectName::new("shop", name);
        let mut types = bench.model.types.values();
        types.any(|state| {
            state.plan.at_hub == ResourceType::config_maps() && state.plan.selector.selects(&name).is_whole()
        })
    };
    let mut bench = Bench::with(|settings| settings.plan_slice = 1).selecting(&["configmaps"]);
    edit(&mut bench, "a");
    turn_until(&mut bench, |making| matches!(making, Making::Comparing(_)));
    bench.model.replan();
    let making = bench.model.selecting.turns.plan.as_ref();
    assert!(
        matches!(making, Some(Making::Resolving(_))),
        "what was resolved is void"
    );
    // Another one comes with each turn: the one that has begun is followed.
    turn_until(&mut bench, |making| matches!(making, Making::Comparing(_)));
    for turn in 0..1000 {
        edit(&mut bench, ["b", "d"][turn % 2]);
        bench.model.advance();
        if !selects(&bench, "b") {
            break;
        }
    }
    assert!(selects(&bench, "a") && !selects(&bench, "b") && !selects(&bench, "d"));
    edit(&mut bench, "b");
    bench.run();
    assert!(selects(&bench, "b") && !selects(&bench, "a"));
    // One that is being followed already is followed to its end, and what has changed is planned after it.
    edit(&mut bench, "c");
    turn_until(&mut bench, is_following);
    bench.model.replan();
    assert!(bench.model.selecting.turns.are_following());
    bench.run();
    assert!(selects(&bench, "c") && !bench.model.selecting.is_in_turns());
}
