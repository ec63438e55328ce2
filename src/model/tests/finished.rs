//! Jobs that have finished at the edge, as long as the hub does not show that.

use super::*;
use crate::sync::ownership::origin_hash;

const WRITE: &str = "write the record";

/// The origin; nothing but its version and its status ever changes.
fn at_hub(version: u64) -> Value {
    let mut job = object(&jobs(), "shop", "a", version);
    job["data"] = json!({"at": "10"});
    job
}

/// The copy of `a`, which its TTL removes some time after its end.
fn at_edge(version: u64, condition: &str) -> Value {
    let mut job = copy(Direction::Down, &in_shop(&jobs(), "a"), "a", version);
    job["spec"] = json!({"ttlSecondsAfterFinished": 60});
    with_status(job, &json!({"conditions": [{"type": condition, "status": "True"}]}))
}

fn copies(bench: &Bench) -> SourceId {
    bench.copies_of(Side::Edge, "jobs").expect("they are read")
}

/// Another process begins at the same sides. Of the Jobs, the copies are listed, and the origins are to come.
fn begins_again(bench: &Bench, there: &[Value]) -> Bench {
    let mut next = Bench::new();
    next.world.serve(&jobs());
    next.world.kept = bench.world.kept.clone();
    next.run();
    next.select(&["jobs.batch"]);
    let copies = copies(&next);
    next.list(copies, there, 4000);
    next
}

fn list_origins(bench: &mut Bench, there: &[Value]) {
    let namespaces = bench.copies_of(Side::Edge, "namespaces").expect("they are implied");
    bench.list(namespaces, &[], 4000);
    let namespaces = bench.origins_of(Side::Hub, "namespaces").expect("they are read");
    bench.list(namespaces, &[], 40);
    let origins = bench.origins_of(Side::Hub, "jobs").expect("they are read");
    bench.list(origins, there, 40);
}

/// The worker that has `a` finds that it has finished.
fn is_found_finished(bench: &mut Bench) {
    assert_eq!(bench.job("a").finished_origin, origin_hash("a"));
    let (key, job) = bench.take("a");
    let desired_hash = bench.desired(&key, &job).map_or(0, |desired| desired.hash);
    let finished = Outcome {
        desired_hash,
        ..outcome(Why::Finished)
    };
    bench.ends(key, Ok(finished));
}

#[test]
fn what_was_seen_finished_is_not_run_again_by_another_process_and_its_last_status_goes_up() {
    // Whether the edge has removed it before the process ended, and whether the hub was known to be away.
    for (is_removed, is_away) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut bench = Bench::with_a_copy(&jobs());
        let source = copies(&bench);
        if is_away {
            let origins = bench.origins_of(Side::Hub, "jobs").expect("they are read");
            bench.contact(Side::Hub).answers = false;
            bench.breaks(origins, unreachable());
        }
        bench.says(source, &at_edge(3000, "Failed"));
        if is_removed {
            bench.says_gone(source, &at_edge(3001, "Failed"));
        }
        bench.pass(if is_away { SECOND } else { 6 * SECOND });
        let mut next = begins_again(&bench, &[]);
        list_origins(&mut next, &[at_hub(10)]);
        is_found_finished(&mut next);
        let body = next.statuses[0].1.body.clone().expect("it cannot be read any more");
        assert!(
            String::from_utf8_lossy(&body).contains("Failed"),
            "{is_removed} {is_away}"
        );
        next.write_status(&at_edge(3000, "Failed"), 11);
        let origins = next.origins_of(Side::Hub, "jobs").expect("they are read");
        next.says(origins, &with_status(at_hub(11), &at_edge(0, "Failed")["status"]));
        assert_eq!(next.model.finished.lines(), "", "the hub shows it");
    }
}

#[test]
fn what_the_hub_learns_in_time_costs_no_write_of_the_record() {
    let mut bench = Bench::with_a_copy(&jobs());
    bench.pass(SECOND);
    let writes = bench.count(WRITE);
    let source = copies(&bench);
    bench.says(source, &at_edge(3000, "Complete"));
    assert_ne!(bench.model.finished.lines(), "");
    bench.write_status(&at_edge(3000, "Complete"), 11);
    let origins = bench.origins_of(Side::Hub, "jobs").expect("they are read");
    bench.says(origins, &with_status(at_hub(11), &at_edge(0, "Complete")["status"]));
    bench.pass(60 * SECOND);
    bench.says_gone(source, &at_edge(3001, "Complete"));
    bench.pass(60 * SECOND);
    assert_eq!((bench.count(WRITE), bench.working()), (writes, vec![]));
}

#[test]
fn what_has_finished_is_known_as_long_as_its_origin_is_there() {
    let mut other = at_hub(10);
    other["metadata"]["uid"] = json!("another");
    for (there, is_known) in [(vec![at_hub(10)], true), (vec![], false), (vec![other], false)] {
        let mut bench = Bench::with_a_copy(&jobs());
        bench.says_gone(copies(&bench), &at_edge(3000, "Complete"));
        bench.pass(6 * SECOND);
        let mut next = begins_again(&bench, &[]);
        list_origins(&mut next, &there);
        assert_eq!(!next.model.finished.lines().is_empty(), is_known, "{there:?}");
        let found = next.work.iter().map(|(_, job)| job.finished_origin != 0);
        assert!(found.eq(there.iter().map(|_| is_known)), "{there:?}");
        let origins = next.origins_of(Side::Hub, "jobs").expect("they are read");
        next.says_gone(origins, &at_hub(10));
        assert_eq!(next.model.finished.lines(), "", "{there:?}");
    }
}

#[test]
fn a_job_that_ends_before_the_hub_has_answered_a_new_process_is_not_run_again() {
    let bench = Bench::with_a_copy(&jobs());
    let mut next = begins_again(&bench, &[at_edge(3000, "Suspended")]);
    let source = copies(&next);
    next.says_gone(source, &at_edge(4001, "Complete"));
    list_origins(&mut next, &[at_hub(10)]);
    is_found_finished(&mut next);
}

#[test]
fn a_job_that_has_not_finished_or_is_not_ours_is_not_known() {
    let mut theirs = at_edge(3000, "Complete");
    theirs["metadata"]["annotations"] = json!({});
    let mut without_ttl = at_edge(3000, "Complete");
    without_ttl["spec"] = json!({});
    for job in [theirs, without_ttl, at_edge(3000, "Suspended")] {
        let mut bench = Bench::with_a_copy(&jobs());
        bench.says(copies(&bench), &job);
        assert_eq!(bench.model.finished.lines(), "", "{job}");
    }
}

#[test]
fn the_last_status_is_there_when_the_hub_is_back() {
    let mut bench = Bench::with_a_copy(&jobs());
    bench.says_gone(copies(&bench), &at_edge(3000, "Complete"));
    for _ in 0..3 {
        let (key, job) = bench.statuses.remove(0);
        assert!(job.body.is_some());
        let result = Err(failure(Side::Hub, unreachable()));
        bench.tell(Event::Answer(Answer::Worked(key, Done::Status(result))));
        bench.pass(60 * SECOND);
    }
}
