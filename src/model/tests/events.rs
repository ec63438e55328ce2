//! Events: what they say, about which object, and when there is none.

use super::*;
use crate::model::events::EventReason;
use EventReason::{
    ApplyFailed, ConflictDetected, CredentialExpiring, DriftCorrected, HubLost, HubRestored, Replaced,
    WaitingForDeletion,
};

/// The Events that there were since this was asked last: reason, side, object and words.
fn since(bench: &mut Bench) -> Vec<(EventReason, Side, String, String)> {
    bench.pass(2 * SECOND);
    let events = std::mem::take(&mut bench.events).into_iter();
    let line = |event: EventToWrite| {
        let object = event.key.name.of_kind(&event.key.resource.kind).to_string();
        (event.key.reason, event.key.side, object, event.note)
    };
    events.map(line).collect()
}

fn refused() -> Error {
    answer(422, "Invalid", "too large")
}

#[test]
fn what_is_synced_is_silent_and_what_goes_wrong_has_an_event_on_the_object_at_the_edge() {
    type Ends = (&'static str, fn(&mut Bench));
    let mut bench = Bench::listed();
    bench.bring_down(&["a"]);
    assert_eq!(since(&mut bench), []);
    let (copies, copy) = (bench.copies(), "ConfigMap/shop/a".to_owned());
    bench.says(copies, &changed(copy_of("a", 0), bench.world.version + 1));
    bench.succeed(Change::Updated);
    let [(reason, side, object, words)] = &since(&mut bench)[..] else {
        panic!("{:?}", bench.events);
    };
    assert_eq!((*reason, *side, object), (DriftCorrected, Side::Edge, &copy));
    assert!(words.contains("was changed by"), "{words}");
    let ends: [Ends; 3] = [
        ("ConflictDetected", |bench| bench.end_with("b", Why::Conflict(None))),
        ("Replaced", |bench| bench.succeed_with("b", Change::Replaced)),
        ("ApplyFailed", |bench| bench.fail(Side::Edge, refused())),
    ];
    for (expected, end) in ends {
        let mut bench = Bench::listed();
        let origins = bench.origins();
        bench.says(origins, &config_map("b", 20));
        end(&mut bench);
        let all = since(&mut bench);
        let at_edge: Vec<_> = all.iter().filter(|(_, side, ..)| *side == Side::Edge).collect();
        let [(reason, _, object, words)] = at_edge[..] else {
            panic!("{expected}: {all:?}");
        };
        assert_eq!((reason.as_str(), &**object), (expected, "ConfigMap/shop/b"));
        assert_eq!(words.contains("too large"), *reason == ApplyFailed, "{words}");
        assert!([ConflictDetected, Replaced, ApplyFailed].contains(reason));
    }
}

#[test]
fn a_config_of_which_objects_fail_has_an_event_once() {
    let mut bench = Bench::listed();
    let origins = bench.origins();
    bench.says(origins, &config_map("b", 20));
    for _ in 0..5 {
        bench.fail(Side::Edge, refused());
        while bench.work.is_empty() {
            bench.pass(10 * SECOND);
        }
    }
    let all = since(&mut bench);
    let at_hub: Vec<_> = all.iter().filter(|(_, side, ..)| *side == Side::Hub).collect();
    let [(reason, _, object, words)] = at_hub[..] else {
        panic!("{all:?}");
    };
    assert_eq!((*reason, &**object), (ApplyFailed, "SyncerConfig//all"));
    assert!(
        words.contains("1 fail in all") && words.contains("ConfigMap/shop/b: ObjectRejected"),
        "{words}"
    );
}

// A conflict was an `ApplyFailed` on the config, and a failure that came after it had none.
#[test]
fn a_config_has_an_event_for_each_reason_that_objects_fail_for() {
    let mut bench = Bench::listed();
    let origins = bench.origins();
    let mut said = Vec::new();
    for (name, fails) in [
        (
            "a",
            (|bench| bench.end_with("a", Why::Conflict(None))) as fn(&mut Bench),
        ),
        ("b", |bench| bench.fail(Side::Edge, refused())),
        ("c", |bench| bench.fail(Side::Edge, refused())),
        ("d", |bench| {
            bench.fail(Side::Edge, Error::Ending(vec!["example.org/stays".to_owned()]));
        }),
    ] {
        bench.says(origins, &config_map(name, 20));
        fails(&mut bench);
        bench.pass(5 * SECOND);
        let all = since(&mut bench).into_iter();
        let of_config = all.filter(|(_, side, ..)| *side == Side::Hub);
        said.extend(of_config.map(|(reason, _, _, words)| (name, reason, words)));
        // The others are tried again.
        while !bench.work.is_empty() {
            bench.fail(Side::Edge, refused());
        }
    }
    let reasons: Vec<_> = said.iter().map(|(name, reason, _)| (*name, *reason)).collect();
    assert_eq!(
        reasons,
        [("a", ConflictDetected), ("b", ApplyFailed), ("d", WaitingForDeletion)]
    );
    let conflict = "edge edge: not synced: ConfigMap/shop/a: Conflict: not synced, because an object of that name";
    assert!(said[0].2.starts_with(conflict), "{said:?}");
}

#[test]
fn a_hub_that_is_away_for_a_moment_is_not_lost() {
    for (seconds, expected) in [(5, 0), (15, 3)] {
        let mut bench = Bench::listed();
        let origins = bench.origins();
        bench.contact(Side::Hub).answers = false;
        bench.breaks(origins, unreachable());
        bench.pass(SECOND * seconds);
        bench.contact(Side::Hub).answers = true;
        bench.tell(Event::Due);
        bench.pass(10 * SECOND);
        let all = since(&mut bench);
        assert_eq!(all.len(), expected, "{all:?}");
        let found: Vec<_> = all.iter().map(|(reason, side, ..)| (*reason, *side)).collect();
        for one in [
            (HubLost, Side::Edge),
            (HubRestored, Side::Edge),
            (HubRestored, Side::Hub),
        ] {
            assert_eq!(found.contains(&one), expected > 0, "{all:?}");
        }
    }
}

#[test]
fn a_copy_that_keeps_being_deleted_waits_for_its_finalizers() {
    for ends_soon in [true, false] {
        let mut bench = Bench::listed();
        bench.bring_down(&["a"]);
        let copies = bench.copies();
        bench.says(copies, &ending(copy_of("a", bench.world.version + 1)));
        if ends_soon {
            bench.says_gone(copies, &copy_of("a", bench.world.version + 2));
        }
        bench.pass(60 * SECOND);
        let all = since(&mut bench);
        let waits = all.iter().any(|(reason, ..)| *reason == WaitingForDeletion);
        assert_eq!(waits, !ends_soon, "{all:?}");
    }
}

#[test]
fn credentials_that_end_are_on_the_configs_and_at_the_edge_each_time_that_it_is_logged() {
    let mut bench = Bench::listed();
    for notices in 1..3 {
        let contact = bench.contact(Side::Hub);
        (contact.end_notices, contact.credentials_end) = (notices, Some(0));
        bench.tell(Event::Due);
        bench.pass(700 * SECOND);
        let all = since(&mut bench);
        let found: Vec<_> = all.iter().map(|(reason, side, ..)| (*reason, *side)).collect();
        let expected = [(CredentialExpiring, Side::Hub), (CredentialExpiring, Side::Edge)];
        assert_eq!(found, expected, "{all:?}");
        assert!(all[0].3.contains("end at 1970-01-01T00:00:00Z"), "{all:?}");
    }
}

#[test]
fn a_side_that_refuses_events_gets_no_more_and_the_rest_continues() {
    let forbidden = answer(403, "Forbidden", "User \"x\" cannot create resource \"events\"");
    let mut bench = Bench::listed();
    bench.world.fails.insert("Events at the edge".to_owned(), forbidden);
    let origins = bench.origins();
    for (index, name) in ["a", "b", "c"].into_iter().enumerate() {
        bench.says(origins, &config_map(name, 20 + index as u64));
        bench.fail(Side::Edge, refused());
        bench.pass(5 * SECOND);
    }
    let all = since(&mut bench);
    let at_edge = all.iter().filter(|(_, side, ..)| *side == Side::Edge).count();
    assert_eq!(at_edge, 1, "{all:?}");
}

#[test]
fn a_dry_run_and_a_syncer_without_heartbeat_say_nothing_at_the_hub() {
    type Changes = fn(&mut Settings);
    let changes: [(Changes, usize); 2] = [
        (|settings| settings.dry_run = true, 0),
        (|settings| settings.heartbeat = None, 1),
    ];
    for (change, expected) in changes {
        let mut bench = Bench::with(change);
        bench.world.unanswered.insert("tell what remains".to_owned());
        let mut bench = bench.selecting(&["configmaps"]);
        let origins = bench.origins();
        bench.says(origins, &config_map("a", 20));
        bench.fail(Side::Edge, refused());
        bench.pass(10 * SECOND);
        let all = since(&mut bench);
        assert_eq!(all.len(), expected, "{all:?}");
        assert!(all.iter().all(|(_, side, ..)| *side == Side::Edge), "{all:?}");
    }
}

// Issue 41: a Pod that is made again while its copy has its grace period, what has a finalizer, what is selected again.
#[test]
fn the_end_of_a_copy_that_we_have_asked_for_is_nobody_elses() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b", "c", "d", "e"]);
    let (origins, copies) = (bench.origins(), bench.copies());
    for round in 1..5 {
        let at = 100 * round;
        bench.says_gone(origins, &config_map("a", at));
        let (key, job) = bench.take("a");
        bench.world.version += 2;
        let version = bench.world.version;
        let left = ending(copy_of("a", version - 1));
        let deleted = Outcome {
            copy: Some(seen(&job, &left)),
            ends: true,
            ..outcome(Change::Deleted)
        };
        bench.ends(key, Ok(deleted));
        bench.says(copies, &left);
        assert!(bench.work.is_empty(), "{:?}", bench.working());
        bench.says(origins, &config_map("a", at + 1));
        let (key, job) = bench.take("a");
        let waits = Outcome {
            desired_hash: bench.desired(&key, &job).map_or(0, |desired| desired.hash),
            ..outcome(Why::Terminating)
        };
        bench.ends(key, Ok(waits));
        assert!(bench.work.is_empty(), "{:?}", bench.working());
        bench.says_gone(copies, &ending(copy_of("a", version)));
        assert_eq!(bench.working(), ["a"], "at once, in round {round}");
        assert!(bench.job("a").read_first, "somebody may have taken its label away");
        bench.succeed(Change::Created);
        assert_eq!(since(&mut bench), []);
    }
    let version = bench.world.version + 1;
    bench.says_gone(copies, &copy_of("a", version));
    bench.succeed(Change::Created);
    assert_eq!(since(&mut bench)[0].0, DriftCorrected);
}

// Found from outside: whoever read the log went to search for who had deleted it.
#[test]
fn the_end_of_a_copy_that_is_replaced_is_nobody_elses() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a"]);
    let (origins, copies) = (bench.origins(), bench.copies());
    bench.says(origins, &config_map("a", 20));
    let (key, job) = bench.take("a");
    let left = Outcome {
        desired_hash: bench.desired(&key, &job).map_or(0, |desired| desired.hash),
        copy: Some(seen(&job, &ending(copy_of("a", 2000)))),
        waits_for: vec!["example.org/wait".into()],
        ends: true,
        ..outcome(Why::Terminating)
    };
    bench.ends(key, Ok(left));
    bench.says(copies, &ending(copy_of("a", 2000)));
    bench.says_gone(copies, &ending(copy_of("a", 2001)));
    bench.pass(SECOND);
    bench.succeed(Change::Created);
    assert_eq!(since(&mut bench), []);
    assert_eq!(bench.model.report.counters().corrections(), 0);
}
