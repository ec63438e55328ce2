//! Copies that somebody else changes or deletes.

use super::*;
use crate::sync::ownership::{Copy, CopyState};

/// How long it takes until a worker has the copy again; up to ten minutes.
fn wait_for_work(bench: &mut Bench) -> Duration {
    let start = bench.now;
    while bench.work.is_empty() {
        let due = bench.model.next_due().expect("something is due");
        assert!(due < start + Duration::from_secs(600));
        bench.pass(due.saturating_duration_since(bench.now) + Duration::from_millis(1));
    }
    bench.now - start
}

/// How long the copy waits each time that somebody has changed it.
fn waits(bench: &mut Bench, mut interfere: impl FnMut(&mut Bench, u64)) -> Vec<Duration> {
    let mut waits = Vec::new();
    for _ in 0..8 {
        bench.world.version += 1;
        let version = bench.world.version;
        interfere(bench, version);
        waits.push(wait_for_work(bench));
        bench.succeed(Change::Updated);
    }
    waits
}

#[test]
fn what_a_worker_has_written_is_no_change_by_somebody_else() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a"]);
    let copies = bench.copies();
    bench.says(copies, &copy_of("a", bench.world.version));
    assert!(bench.work.is_empty());
    bench.says(copies, &changed(copy_of("a", 0), bench.world.version + 1));
    assert_eq!(bench.working(), ["a"]);
}

/// The worker has had to let the copy keep what its origin has dropped.
fn keep(bench: &mut Bench, name: &str) {
    let (key, job) = bench.take(name);
    let outcome = Outcome {
        kept_versions: vec!["v0".into()],
        ..outcome(Change::Updated)
    };
    bench.done_with(key, &job, outcome);
}

#[test]
fn a_copy_that_keeps_what_its_origin_has_dropped_is_tried_again_whenever_it_changes() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a"]);
    let copies = bench.copies();
    let changes = |bench: &mut Bench| {
        bench.world.version += 1;
        bench.says(copies, &copy_of("a", bench.world.version));
    };
    bench.says(copies, &changed(copy_of("a", 0), bench.world.version + 1));
    keep(&mut bench, "a");
    // The answer to the last write, once more.
    bench.says(copies, &copy_of("a", bench.world.version));
    assert!(bench.work.is_empty());
    for _ in 0..3 {
        changes(&mut bench);
        assert_eq!(bench.working(), ["a"]);
        keep(&mut bench, "a");
        assert!(bench.work.is_empty());
    }
    // Also while a worker has it.
    changes(&mut bench);
    changes(&mut bench);
    keep(&mut bench, "a");
    assert_eq!(bench.working(), ["a"]);
    bench.succeed(Change::Updated);
    changes(&mut bench);
    assert!(bench.work.is_empty(), "it keeps nothing more");
}

#[test]
fn a_copy_that_is_changed_is_corrected_at_once_and_then_with_increasing_back_off() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a"]);
    let copies = bench.copies();
    let waits = waits(&mut bench, |bench, version| {
        bench.says(copies, &changed(copy_of("a", 0), version));
    });
    assert_eq!(waits[..3], [Duration::ZERO; 3]);
    assert!(waits[3] > Duration::ZERO && waits[7] > 4 * waits[3], "{waits:?}");
}

#[test]
fn a_copy_that_is_deleted_is_created_again_at_once_and_then_with_increasing_back_off() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a"]);
    let copies = bench.copies();
    let waits = waits(&mut bench, |bench, version| {
        bench.says_gone(copies, &copy_of("a", version));
    });
    assert_eq!(waits[..3], [Duration::ZERO; 3]);
    assert!(waits[3] > Duration::ZERO && waits[7] > 4 * waits[3], "{waits:?}");
}

#[test]
fn a_copy_that_was_unchanged_for_ten_minutes_is_corrected_at_once_again() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a"]);
    let copies = bench.copies();
    let interfere = |bench: &mut Bench, version| bench.says(copies, &changed(copy_of("a", 0), version));
    waits(&mut bench, interfere);
    bench.pass(Duration::from_secs(600));
    assert_eq!(waits(&mut bench, interfere)[..3], [Duration::ZERO; 3]);
}

#[test]
fn a_copy_that_is_deleted_again_and_again_is_searched_for_first() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a"]);
    let copies = bench.copies();
    bench.world.version += 1;
    bench.says_gone(copies, &copy_of("a", bench.world.version));
    assert!(bench.job("a").read_first, "it may have lost no more than its label");
}

#[test]
fn what_the_edge_tells_while_a_worker_has_the_copy_is_judged_by_what_the_worker_has_done() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a"]);
    let (origins, copies) = (bench.origins(), bench.copies());
    bench.says(origins, &config_map("a", 20));
    // Its own write, reported before the answer to it.
    bench.says(copies, &copy_of("a", bench.world.version + 1));
    bench.succeed(Change::Updated);
    assert!(bench.work.is_empty(), "{:?}", bench.working());
    bench.says(origins, &config_map("a", 21));
    bench.says(copies, &changed(copy_of("a", 0), bench.world.version + 2));
    bench.succeed(Change::Updated);
    assert_eq!(bench.working(), ["a"], "somebody has changed what it wrote");
}

#[test]
fn what_happens_to_copies_while_the_hub_is_away_is_no_contention() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a"]);
    let copies = bench.copies();
    let origins = bench.origins();
    bench.contact(Side::Hub).answers = false;
    bench.breaks(origins, unreachable());
    bench.world.fails.insert("ask the hub who it is".into(), unreachable());
    for _ in 0..10 {
        bench.world.version += 1;
        bench.says(copies, &changed(copy_of("a", 0), bench.world.version));
    }
    assert!(bench.work.is_empty());
    bench.world.fails.clear();
    bench.contact(Side::Hub).answers = true;
    bench.pass(SECOND);
    assert_eq!(bench.working(), ["a"]);
    bench.succeed(Change::Updated);
    bench.world.version += 1;
    bench.says(copies, &changed(copy_of("a", 0), bench.world.version));
    assert_eq!(bench.working(), ["a"], "it is the second change that counts");
}

#[test]
fn a_list_that_lacks_a_copy_has_it_created_again() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a", "b"]);
    let copies = bench.copies();
    let left = copy_of("a", bench.world.version - 1);
    bench.list(copies, &[left], bench.world.version + 1);
    assert_eq!(bench.working(), ["b"]);
    assert!(!bench.job("b").may_delete);
}

#[test]
fn an_edge_that_has_gone_back_to_older_versions_is_read_again_with_its_record() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a"]);
    bench.log.clear();
    let copies = bench.copies();
    bench.list_after(copies, &[], 5, 2000);
    assert!(bench.log.contains(&"read the record".to_owned()), "{:?}", bench.log);
    assert_ne!(bench.copies(), copies, "they are read from the beginning");
    bench.listed.clear();
    bench.list_rest(6);
    let origins = bench.origins();
    bench.list(origins, &[config_map("a", 10)], 40);
    assert_eq!(bench.working(), ["a"], "the restored edge does not have it");
}

#[test]
fn an_object_of_somebody_else_in_the_place_of_a_copy_is_read_again_and_never_deleted() {
    let mut bench = Bench::listed();
    let origins = bench.origins();
    bench.says(origins, &config_map("a", 10));
    bench.end_with("a", Why::Conflict(Some("other".into())));
    assert_eq!(bench.model.report.failing(), 1);
    assert!(wait_for_work(&mut bench) > Duration::ZERO);
    bench.end_with("a", Why::Conflict(Some("other".into())));
    bench.says_gone(origins, &config_map("a", 11));
    assert_eq!(bench.working(), ["a"], "there may be a copy of ours all the same");
    bench.end_with("a", crate::sync::job::Why::NotOurs);
    bench.pass(3600 * SECOND);
    assert!(bench.work.is_empty());
    assert_eq!(bench.model.report.failing(), 0);
}

// What somebody has changed by mistake and changed back before it was tried again.
#[test]
fn an_origin_that_is_again_what_its_copy_is_fails_no_longer() {
    let mut bench = Bench::listed();
    bench.bring_down(&["a"]);
    let origins = bench.origins();
    bench.says(origins, &config_map("a", 20));
    bench.fail(Side::Hub, broken());
    assert_eq!(bench.model.report.failing(), 1);
    let mut back = config_map("a", 10);
    back["metadata"]["resourceVersion"] = "21".into();
    bench.says(origins, &back);
    bench.pass(3600 * SECOND);
    assert!(bench.work.is_empty(), "there is nothing to do");
    assert_eq!(bench.model.report.failing(), 0);
}

/// The worker has removed our marks from what its side keeps for itself.
fn release(bench: &mut Bench, version: u64) {
    let (key, job) = bench.work.remove(0);
    assert!(job.copy.is_to_be_released() && !job.may_delete);
    let copy = Copy {
        state: CopyState::Foreign,
        kept: true,
        ..Copy::default()
    };
    let seen = Seen {
        copy,
        labelled: false,
        hash: 1,
        version,
    };
    let outcome = Outcome {
        copy: Some(seen),
        ..outcome(Change::Released)
    };
    bench.ends(key, Ok(outcome));
}

fn without_marks(mut object: Value, version: u64) -> Value {
    object["metadata"]["resourceVersion"] = json!(version.to_string());
    object["metadata"]["labels"] = json!({});
    object["metadata"]["annotations"] = json!({});
    object
}

// Issue 41: an earlier version has marked what the edge keeps for itself.
#[test]
fn what_its_side_keeps_for_itself_is_released_whatever_is_known_of_an_origin() {
    let root = "kube-root-ca.crt";
    for is_at_hub in [true, false] {
        let mut bench = Bench::listed();
        let (origins, copies) = (bench.origins(), bench.copies());
        if is_at_hub {
            bench.says(origins, &config_map(root, 10));
        }
        assert!(bench.work.is_empty());
        bench.says(copies, &copy_of(root, 2000));
        assert_eq!(bench.working(), [root]);
        release(&mut bench, 2001);
        bench.says_gone(copies, &without_marks(copy_of(root, 0), 2001));
        assert!(bench.work.is_empty(), "{:?}", bench.working());
        assert_eq!(bench.model.report.failing(), 0);
    }
}

fn roles() -> ResourceType {
    ResourceType {
        group: "rbac.authorization.k8s.io".into(),
        version: "v1".into(),
        resource: "roles".into(),
        kind: "Role".into(),
        namespaced: true,
    }
}

#[test]
fn an_origin_whose_copy_is_kept_by_its_side_is_in_conflict_with_it() {
    let roles = roles();
    let mut bench = Bench::with_a_copy(&roles);
    let copies = bench.copies_of(Side::Edge, "roles").expect("they are read");
    let mut kept = copy(Direction::Down, &in_shop(&roles, "a"), "a", 3000);
    kept["metadata"]["labels"]["kubernetes.io/bootstrapping"] = json!("rbac-defaults");
    bench.says(copies, &kept);
    assert_eq!(bench.working(), ["a"]);
    release(&mut bench, 3001);
    assert_eq!(bench.working(), ["a"]);
    let (_, job) = &bench.work[0];
    assert_eq!((job.copy.state, job.copy.kept), (CopyState::Foreign, true));
    bench.end_with("a", Why::Conflict(None));
    assert!(bench.work.is_empty());
}

// One that becomes so keeps its copy. One that is deleted and created again as such does not.
#[test]
fn a_copy_retires_when_its_origin_has_a_successor_that_is_never_synced() {
    for (uid, retires) in [("a", false), ("another", true)] {
        let mut bench = Bench::with_a_copy(&roles());
        let origins = bench.origins_of(Side::Hub, "roles").expect("they are read");
        let labelled = |version| {
            let mut role = object(&roles(), "shop", "a", version);
            role["metadata"]["uid"] = json!(uid);
            role["metadata"]["labels"] = json!({"kubernetes.io/bootstrapping": "rbac-defaults"});
            role
        };
        bench.says(origins, &labelled(3000));
        assert_eq!(bench.working().len(), usize::from(retires), "{uid}");
        if retires {
            let (_, job) = &bench.work[0];
            assert!(job.may_delete && job.desired.is_none() && !job.read_first);
            // That it is reported again changes nothing.
            bench.says(origins, &labelled(3001));
            bench.end_with("a", Change::Deleted);
            while !bench.work.is_empty() {
                bench.end_with("a", Why::Gone);
            }
        }
        bench.says(origins, &labelled(3002));
        assert!(bench.work.is_empty(), "{uid}");
        bench.says_gone(origins, &labelled(3003));
        assert_eq!(bench.working().len(), usize::from(!retires), "{uid}");
        assert_eq!(bench.model.report.failing(), 0);
    }
}
