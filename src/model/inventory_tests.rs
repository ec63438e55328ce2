use driver::source::Covers;
use kube_lite::Scope;

use super::*;
use crate::model::count::Count;
use crate::sync::ownership::Copy;

fn out_of_sync(inventory: &Inventory, from: Option<&ObjectName>) -> Vec<ObjectName> {
    inventory.out_of_sync(Held::Nothing, from).cloned().collect()
}

fn name(name: &str) -> ObjectName {
    ObjectName::new("shop", name)
}

fn seen(state: CopyState, hash: u64, version: u64) -> Seen {
    Seen {
        copy: Copy {
            state,
            ..Copy::default()
        },
        labelled: state == CopyState::Ours,
        hash,
        version,
    }
}

/// An object that was applied: the hub wants 7, the copy is ours with hash 70 at version 3.
fn synced() -> Inventory {
    let mut inventory = Inventory::default();
    assert!(inventory.at_origin(&name("a"), 1, 7));
    assert!(!inventory.settle(&name("a"), 7, Some(seen(CopyState::Ours, 70, 3))));
    inventory
}

#[test]
fn the_same_hub_object_again_needs_no_worker() {
    let mut inventory = synced();
    assert!(!inventory.at_origin(&name("a"), 2, 7));
    assert!(inventory.at_origin(&name("a"), 2, 8));
}

#[test]
fn our_own_write_coming_back_is_no_drift_and_somebody_elses_is() {
    let mut inventory = synced();
    assert!(!inventory.copy_seen(&name("a"), 1, seen(CopyState::Ours, 70, 3), true));
    assert!(
        !inventory.copy_seen(&name("a"), 1, seen(CopyState::Ours, 70, 4), true),
        "status change"
    );
    assert!(inventory.copy_seen(&name("a"), 1, seen(CopyState::Ours, 71, 5), true));
    assert!(
        !inventory.copy_seen(&name("a"), 1, seen(CopyState::Ours, 60, 2), true),
        "reported late"
    );
}

#[test]
fn an_edge_event_that_overtakes_the_workers_answer_is_judged_by_it() {
    let mut inventory = Inventory::default();
    inventory.at_origin(&name("a"), 1, 7);
    assert!(!inventory.copy_seen(&name("a"), 1, seen(CopyState::Ours, 70, 3), true));
    assert!(!inventory.settle(&name("a"), 7, Some(seen(CopyState::Ours, 70, 3))));

    inventory.at_origin(&name("b"), 1, 7);
    inventory.take(&name("b"));
    assert!(!inventory.copy_seen(&name("b"), 1, seen(CopyState::Ours, 71, 4), true));
    assert!(
        inventory.settle(&name("b"), 7, Some(seen(CopyState::Ours, 70, 3))),
        "edited since"
    );
}

#[test]
fn our_own_update_reported_before_the_workers_answer_is_no_drift() {
    let mut inventory = synced();
    assert!(inventory.take(&name("a")).is_none(), "nothing to do");
    inventory.at_origin(&name("a"), 1, 8);
    assert!(inventory.take(&name("a")).is_some());
    assert!(!inventory.copy_seen(&name("a"), 1, seen(CopyState::Ours, 80, 4), true));
    assert!(!inventory.settle(&name("a"), 8, Some(seen(CopyState::Ours, 80, 4))));
    assert!(inventory.copy_seen(&name("a"), 1, seen(CopyState::Ours, 81, 5), true));
}

#[test]
fn a_copy_that_is_deleted_before_the_workers_answer_is_wanted_back() {
    let mut inventory = synced();
    inventory.at_origin(&name("a"), 1, 8);
    inventory.take(&name("a"));
    inventory.copy_gone(&name("a"), 5);
    assert!(inventory.settle(&name("a"), 8, Some(seen(CopyState::Ours, 80, 4))));
}

// Found by a test of a Pod that was recreated: it was never there again.
#[test]
fn an_end_that_is_reported_before_the_answer_to_the_delete_is_not_awaited() {
    for (wanted, version, is_wanted_back) in [(8, 5, true), (8, 4, true), (0, 5, false), (0, 4, false)] {
        let mut inventory = synced();
        if wanted == 0 {
            inventory.gone_from_origin(&name("a"));
        } else {
            inventory.at_origin(&name("a"), 1, wanted);
        }
        assert!(inventory.take(&name("a")).is_some());
        inventory.copy_gone(&name("a"), 5);
        let mut ending = seen(CopyState::Ours, 70, version);
        ending.copy.terminating = true;
        assert_eq!(inventory.settle(&name("a"), wanted, Some(ending)), is_wanted_back);
        inventory.ends(&name("a"));
        let left = inventory.get(&name("a"));
        assert_eq!(
            left.is_some_and(Link::needs_worker),
            is_wanted_back,
            "{wanted} {version}"
        );
        assert_eq!(left.is_some(), is_wanted_back, "{wanted} {version}");
    }
}

#[test]
fn a_hub_change_while_a_worker_runs_is_not_lost() {
    let mut inventory = Inventory::default();
    inventory.at_origin(&name("a"), 1, 7);
    inventory.at_origin(&name("a"), 1, 8);
    assert!(inventory.settle(&name("a"), 7, Some(seen(CopyState::Ours, 70, 3))));
}

#[test]
fn a_copy_that_vanishes_is_wanted_back_and_a_retired_one_is_forgotten() {
    let mut inventory = synced();
    assert!(!inventory.copy_gone(&name("a"), 2), "reported late");
    assert!(inventory.copy_gone(&name("a"), 9));
    let mut inventory = synced();
    assert!(inventory.gone_from_origin(&name("a")));
    assert!(inventory.copy_gone(&name("a"), 9), "it may have lost its label alone");
    let mut inventory = synced();
    assert!(inventory.gone_from_origin(&name("a")));
    assert!(inventory.take(&name("a")).is_some());
    assert!(!inventory.settle(&name("a"), 0, None), "deleted by a worker");
    assert!(!inventory.copy_gone(&name("a"), 9));
    assert!(!inventory.objects.contains_key(&name("a")));
}

#[test]
fn what_is_out_of_sync_can_be_seen_without_the_queue() {
    let mut inventory = synced();
    assert!(out_of_sync(&inventory, None).is_empty());
    inventory.at_origin(&name("b"), 1, 7);
    inventory.copy_seen(&name("c"), 1, seen(CopyState::Ours, 70, 3), true);
    assert_eq!(
        out_of_sync(&inventory, None),
        [name("b")],
        "nothing is known of the origin of c yet"
    );
    assert_eq!(inventory.origins_listed(|_| true, 1), [name("c")]);
    assert_eq!(out_of_sync(&inventory, None), [name("b"), name("c")]);
    assert_eq!(out_of_sync(&inventory, Some(&name("c"))), [name("c")]);
    inventory.take(&name("b"));
    assert_eq!(out_of_sync(&inventory, None), [name("c")], "a worker has it");
    let count = Count {
        pending: 1,
        unverified: 0,
        copies: 2,
    };
    assert_eq!(inventory.count_pending_deletes(), count);
}

#[test]
fn what_a_worker_reads_at_the_hub_counts_until_the_hub_tells_otherwise() {
    for (read, copy) in [(8, seen(CopyState::Ours, 80, 4)), (0, Seen::ABSENT)] {
        let mut inventory = synced();
        inventory.copy_seen(&name("a"), 1, seen(CopyState::Ours, 71, 3), true);
        inventory.copy_gone(&name("a"), 4);
        inventory.take(&name("a"));
        assert!(
            !inventory.settle(&name("a"), read, Some(copy)),
            "no poll has reported yet"
        );
        assert_eq!(inventory.at_origin(&name("a"), 2, 8), read != 8);
    }
}

#[test]
fn an_object_that_goes_while_a_worker_creates_its_copy_needs_a_worker_again() {
    let created = |inventory: &mut Inventory| {
        inventory.settle(&name("a"), 7, Some(seen(CopyState::Ours, 70, 3)));
        assert!(inventory.take(&name("a")).is_some());
        assert_eq!(inventory.ours().count(), 1);
    };
    let mut inventory = Inventory::default();
    inventory.at_origin(&name("a"), 1, 7);
    inventory.take(&name("a"));
    assert!(inventory.gone_from_origin(&name("a")));
    created(&mut inventory);

    let mut inventory = Inventory::default();
    inventory.at_origin(&name("a"), 1, 7);
    inventory.take(&name("a"));
    assert_eq!(inventory.origins_listed(|_| true, 2), [name("a")]);
    created(&mut inventory);
}

#[test]
fn what_was_left_as_it_was_found_is_handled_again_when_its_side_lacks_it() {
    let mut inventory = Inventory::default();
    let namespace = ObjectName::new("", "billing");
    inventory.at_origin(&namespace, 1, 7);
    inventory.take(&namespace);
    assert!(!inventory.counts_as_present(&namespace), "a worker has it");
    inventory.settle(&namespace, 7, None);
    assert!(inventory.counts_as_present(&namespace) && inventory.copy_gone(&namespace, 0));
    assert!(!inventory.counts_as_present(&namespace), "once");
    assert!(inventory.take(&namespace).is_some_and(Link::needs_read));
}

#[test]
fn an_object_is_missing_once_until_there_is_news_of_it() {
    let everything = Scope::default();
    let mut inventory = synced();
    inventory.still_at_origin(&name("a"), 2, 0);
    assert!(inventory.origins_listed(|name| everything.contains(name), 2).is_empty());
    assert_eq!(
        inventory.origins_listed(|name| everything.contains(name), 3),
        [name("a")]
    );
    assert!(inventory.origins_listed(|name| everything.contains(name), 4).is_empty());
    inventory.copy_seen(&name("a"), 1, seen(CopyState::Ours, 70, 5), true);
    assert_eq!(
        inventory.origins_listed(|name| everything.contains(name), 5),
        [name("a")]
    );
    inventory.list_again();
    assert_eq!(
        inventory.origins_listed(|name| everything.contains(name), 6),
        [name("a")]
    );
}

#[test]
fn only_a_complete_list_of_its_scope_makes_an_object_missing() {
    let mut inventory = synced();
    let other = Scope {
        namespace: Some("billing".into()),
        name: None,
    };
    assert!(inventory.origins_listed(|name| other.contains(name), 5).is_empty());
    assert!(inventory.origins_listed(|_| true, 1).is_empty(), "named by it");
    assert_eq!(inventory.origins_listed(|_| true, 5), [name("a")]);
}

#[test]
fn a_foreign_object_is_kept_in_mind_but_never_missing() {
    let mut inventory = Inventory::default();
    inventory.copy_seen(&name("theirs"), 1, seen(CopyState::Foreign, 0, 5), true);
    inventory.copy_seen(&name("unselected"), 1, seen(CopyState::Foreign, 0, 5), false);
    let known = |object: &str| inventory.objects.contains_key(&name(object));
    assert!(known("theirs") && !known("unselected"));
    assert!(inventory.origins_listed(|_| true, 9).is_empty());
}

#[test]
fn an_edge_list_finds_what_vanished_while_nobody_watched() {
    let mut inventory = synced();
    inventory.copy_seen(&name("a"), 1, seen(CopyState::Ours, 0, 3), true);
    assert!(inventory.copies_listed(1, Covers::Everything, 9).is_empty());
    assert_eq!(inventory.copies_listed(2, Covers::Everything, 9), [name("a")]);
}

#[test]
fn an_edge_list_by_label_says_nothing_of_what_has_no_label() {
    let mut inventory = synced();
    inventory.copy_seen(&name("theirs"), 1, seen(CopyState::Foreign, 0, 5), true);
    inventory.copy_unchanged(&name("a"), 2);
    assert!(inventory.copies_listed(2, Covers::Labelled, 9).is_empty());
    assert_eq!(inventory.copies_listed(3, Covers::Labelled, 9), [name("a")]);
    let known = |inventory: &Inventory| inventory.objects.contains_key(&name("theirs"));
    assert!(known(&inventory));
    inventory.copies_listed(4, Covers::Everything, 9);
    assert!(!known(&inventory));
}

#[test]
fn an_edge_list_from_before_a_write_does_not_undo_it() {
    let written_at = |at| {
        let mut inventory = synced();
        inventory.settle(&name("a"), 7, Some(seen(CopyState::Ours, 70, at)));
        assert_eq!(inventory.copies_listed(4, Covers::Labelled, 20), [name("a")]);
        let record = inventory.get(&name("a")).unwrap();
        (record.has_copy(), record.needs_read())
    };
    assert_eq!(
        written_at(21),
        (true, true),
        "the list cannot know of it, so it is read"
    );
    assert_eq!(written_at(19), (false, true), "written, then deleted");
}

#[test]
fn an_edge_list_tells_what_changed_while_nobody_watched() {
    let mut inventory = synced();
    let status = seen(CopyState::Ours, 70, 8);
    assert!(!inventory.copy_seen(&name("a"), 2, status, true), "not ours");
    assert!(inventory.copy_seen(&name("a"), 3, seen(CopyState::Ours, 71, 9), true));
}

#[test]
fn a_type_that_the_hub_has_dropped_has_no_wanted_objects() {
    let mut inventory = synced();
    assert_eq!(inventory.origin_has_none(), [name("a")]);
    assert!(
        inventory.take(&name("a")).is_some(),
        "something to do, although it was synced"
    );
}

#[test]
fn a_copy_that_may_have_lost_its_label_alone_is_seen_to_when_its_origin_goes() {
    let mut inventory = synced();
    assert!(inventory.copy_gone(&name("a"), 4), "its origin wants it back");
    assert!(inventory.gone_from_origin(&name("a")), "it may still be there");
    assert!(inventory.is_retiring(&name("a")));
    inventory.take(&name("a"));
    inventory.settle(&name("a"), 0, Some(Seen::ABSENT));
    assert!(inventory.get(&name("a")).is_none());
}

#[test]
fn a_copy_that_goes_after_it_was_seen_to_leaves_nothing_behind() {
    // It stayed though its origin is gone, as one with a finalizer does.
    let stays = || {
        let mut inventory = synced();
        inventory.gone_from_origin(&name("a"));
        inventory.take(&name("a"));
        inventory.settle(&name("a"), 0, Some(seen(CopyState::Ours, 70, 4)));
        inventory
    };
    let mut inventory = stays();
    inventory.take(&name("a"));
    inventory.copy_gone(&name("a"), 9);
    inventory.failed(&name("a"), LeftOpen::Nothing);
    assert!(inventory.get(&name("a")).is_none(), "while a worker fails");
    let mut inventory = stays();
    inventory.ask_for(&name("a"));
    inventory.copy_gone(&name("a"), 9);
    inventory.deselect(&[name("a")]);
    assert!(inventory.get(&name("a")).is_none(), "selected in between");
}

#[test]
fn a_copy_that_turns_up_without_an_origin_is_judged_once() {
    let mut inventory = Inventory::default();
    inventory.copy_seen(&name("a"), 1, seen(CopyState::Ours, 70, 3), true);
    inventory.copy_seen(&name("b"), 1, seen(CopyState::Foreign, 70, 3), true);
    assert_eq!(inventory.orphans(), [name("a")]);
    inventory.cannot_verify(&name("a"));
    assert!(inventory.orphans().is_empty());
    assert_eq!(out_of_sync(&inventory, None), [name("a")], "to be asked for");
}

#[test]
fn a_copy_that_stays_though_its_origin_is_gone_is_asked_for_once() {
    let mut inventory = Inventory::default();
    inventory.copy_seen(&name("a"), 1, seen(CopyState::Ours, 70, 3), true);
    inventory.cannot_verify(&name("a"));
    assert!(inventory.take(&name("a")).is_some());
    inventory.settle(&name("a"), 0, None);
    assert!(inventory.orphans().is_empty());
    assert!(out_of_sync(&inventory, None).is_empty());
    inventory.copy_seen(&name("a"), 1, seen(CopyState::Ours, 71, 4), true);
    assert_eq!(inventory.orphans(), [name("a")], "it may go now");
}

#[test]
fn what_was_reported_while_a_worker_found_no_origin_is_newer() {
    for reported in [false, true] {
        let mut inventory = synced();
        inventory.copy_seen(&name("a"), 1, seen(CopyState::Ours, 71, 9), true);
        assert!(inventory.take(&name("a")).is_some());
        if reported {
            inventory.at_origin(&name("a"), 1, 8);
        }
        inventory.failed(&name("a"), LeftOpen::Nothing);
        assert_eq!(inventory.found_absent(&name("a")), !reported);
        assert_eq!(inventory.is_retiring(&name("a")), !reported);
    }
}

#[test]
fn a_write_without_an_answer_may_have_changed_what_was_synced() {
    let mut inventory = synced();
    assert!(inventory.at_origin(&name("a"), 1, 8));
    assert!(inventory.take(&name("a")).is_some());
    inventory.at_origin(&name("a"), 1, 7);
    inventory.failed(&name("a"), LeftOpen::Unsure);
    assert_eq!(out_of_sync(&inventory, None), [name("a")]);
    assert!(
        inventory.take(&name("a")).is_some(),
        "the copy may be as the origin was in between"
    );
}

#[test]
fn a_copy_that_turns_up_while_the_origins_are_listed_is_no_pending_delete_by_that_list() {
    let mut inventory = synced();
    inventory.copy_seen(&name("b"), 1, seen(CopyState::Ours, 70, 3), true);
    inventory.cannot_verify(&name("b"));
    assert_eq!(inventory.origins_listed(|_| true, 2), [name("a"), name("b")]);
    let count = Count {
        pending: 1,
        unverified: 1,
        copies: 2,
    };
    assert_eq!(inventory.count_pending_deletes(), count);
    inventory.still_at_origin(&name("b"), 2, 0);
    assert_eq!(inventory.count_pending_deletes().unverified, 0);
    assert_eq!(inventory.origins_listed(|_| true, 3), [name("b")]);
    assert!(inventory.is_retiring(&name("b")), "it was reported, and is no longer");
}

#[test]
fn an_origin_that_only_a_worker_found_is_missed_again_when_it_goes() {
    let mut inventory = synced();
    assert_eq!(inventory.origins_listed(|_| true, 2), [name("a")], "an empty list");
    inventory.take(&name("a"));
    inventory.settle(&name("a"), 7, Some(seen(CopyState::Ours, 70, 3)));
    inventory.found_at_origin(&name("a"), Some(2));
    assert!(inventory.origins_listed(|_| true, 2).is_empty());
    assert!(!inventory.is_retiring(&name("a")));
    assert_eq!(inventory.origins_listed(|_| true, 3), [name("a")]);
    assert!(inventory.is_retiring(&name("a")));
}

#[test]
fn an_answer_from_a_restored_backup_is_no_reason_to_write_again() {
    let mut inventory = synced();
    inventory.copy_seen(&name("a"), 1, seen(CopyState::Ours, 71, 900), true);
    inventory.take(&name("a"));
    assert!(!inventory.settle(&name("a"), 7, Some(seen(CopyState::Ours, 70, 100))));
    // What was reported while the worker had it counts.
    inventory.copy_seen(&name("a"), 1, seen(CopyState::Ours, 71, 101), true);
    inventory.take(&name("a"));
    inventory.copy_seen(&name("a"), 1, seen(CopyState::Ours, 72, 103), true);
    assert!(inventory.settle(&name("a"), 7, Some(seen(CopyState::Ours, 70, 102))));
}

#[test]
fn what_is_selected_again_is_read_by_a_worker() {
    // Nothing is known of it, not even whether somebody else's object is in its place.
    let mut inventory = Inventory::default();
    inventory.ask_for(&name("b"));
    assert_eq!(out_of_sync(&inventory, None), [name("b")]);
    let record = inventory.take(&name("b")).unwrap();
    assert!(record.needs_read() && record.unread() == Some(0));
    assert!(!inventory.settle(&name("b"), 0, Some(Seen::ABSENT)));
    assert!(inventory.get(&name("b")).is_none(), "there is no origin");
    // Its copy is there from before it was deselected.
    let mut inventory = synced();
    inventory.deselect(&[name("a")]);
    assert!(out_of_sync(&inventory, None).is_empty());
    inventory.ask_for(&name("a"));
    let record = inventory.take(&name("a")).unwrap();
    assert!(!record.needs_read() && record.unread() == Some(7));
    // What the origin's side reports counts.
    assert!(inventory.at_origin(&name("a"), 2, 8));
    assert_eq!(inventory.get(&name("a")).unwrap().unread(), None);
    assert!(inventory.settle(&name("a"), 7, None), "an older read");
}

#[test]
fn a_namespace_is_not_in_use_for_a_copy_of_which_nobody_tells_when_it_is_gone() {
    let in_use = |inventory: &Inventory| inventory.namespaces_in_use().collect::<Vec<_>>() == ["shop"];
    let mut inventory = synced();
    assert!(in_use(&inventory));
    let unlabelled = Seen {
        labelled: false,
        ..seen(CopyState::Ours, 70, 4)
    };
    inventory.copy_seen(&name("a"), 1, unlabelled, true);
    assert!(in_use(&inventory), "its origin wants it");
    inventory.unselected_at_origin(&name("a"), 1);
    assert!(!in_use(&inventory));
    inventory.copy_seen(&name("a"), 1, seen(CopyState::Ours, 70, 5), true);
    assert!(in_use(&inventory), "it has its label again");
}

#[test]
fn only_what_is_left_to_the_edge_and_has_no_label_is_listed_by_name() {
    // wanted, copy, create only, labelled
    for (wanted, state, create_only, labelled, expected) in [
        (7, CopyState::Ours, true, false, true),
        (0, CopyState::Ours, true, false, false),
        (7, CopyState::Absent, true, false, false),
        (7, CopyState::Ours, false, false, false),
        (7, CopyState::Ours, true, true, false),
    ] {
        let mut inventory = Inventory::default();
        inventory.at_origin(&name("a"), 1, 7);
        inventory.take(&name("a"));
        let mut copy = seen(state, 70, 3);
        (copy.copy.create_only, copy.labelled) = (create_only, labelled);
        inventory.settle(&name("a"), wanted, Some(copy));
        assert_eq!(
            inventory.unlabelled().count(),
            usize::from(expected),
            "{wanted} {state:?} {create_only} {labelled}"
        );
    }
}

#[test]
fn statuses_that_were_written_elsewhere_are_written_again() {
    use crate::side::Side;
    use crate::sync::status_return::Returned;
    let mut inventory = synced();
    let is_due = |inventory: &Inventory| inventory.any_status(LinkStatus::is_due);
    assert!(!is_due(&inventory), "none is known of");
    let status = inventory.status(&name("a")).unwrap();
    status.edge_reports(Some(5));
    let now = tokio::time::Instant::now();
    status.write_ended(Returned::Written { status: 5, version: 9 }, now);
    assert!(!is_due(&inventory));
    assert!(!inventory.any_status(|status| status.fails_at(Side::Hub)));
    inventory.drop_written_statuses();
    assert!(is_due(&inventory));
    inventory.status(&name("a")).unwrap().write_failed(Side::Hub, now);
    assert!(inventory.any_status(|status| status.fails_at(Side::Hub)));
}

#[test]
fn a_copy_that_goes_while_a_worker_reads_its_origin_alone_is_searched_for() {
    for (is_reported, expected) in [(true, true), (false, false)] {
        let mut inventory = synced();
        inventory.ask_for(&name("a"));
        assert_eq!(inventory.take(&name("a")).and_then(Link::unread), Some(7));
        if is_reported {
            inventory.copies_listed(2, Covers::Labelled, 9);
        }
        assert_eq!(inventory.settle(&name("a"), 7, None), expected, "{is_reported}");
        assert_eq!(inventory.get(&name("a")).is_some_and(Link::needs_read), is_reported);
    }
}

#[test]
fn of_what_a_list_has_not_named_since_it_was_selected_a_worker_is_believed_that_it_is_gone() {
    let mut inventory = synced();
    inventory.ask_for(&name("a"));
    assert!(inventory.take(&name("a")).is_some());
    assert!(inventory.is_reported(&name("a")), "a list has named it");
    assert!(inventory.origins_listed(|_| true, 2).is_empty());
    assert!(!inventory.is_reported(&name("a")), "the next one has not");
    assert!(inventory.get(&name("a")).is_some());
}

#[test]
fn what_is_selected_while_a_list_is_under_way_that_has_passed_it_by_is_read_and_not_given_up() {
    for has_copy in [false, true] {
        let mut inventory = if has_copy { synced() } else { Inventory::default() };
        inventory.ask_for(&name("a"));
        assert!(inventory.origins_listed(|_| true, 2).is_empty(), "{has_copy}");
        assert!(!inventory.is_retiring(&name("a")), "{has_copy}");
        assert_eq!(out_of_sync(&inventory, None), [name("a")], "{has_copy}");
    }
}

/// What a worker has ended with in a dry run.
fn tell(inventory: &mut Inventory, wanted: u64) {
    inventory.take(&name("a"));
    assert!(!inventory.settle(&name("a"), wanted, None));
    inventory.was_shown(&name("a"));
}

#[test]
fn what_a_dry_run_has_shown_is_done_until_the_origin_or_the_copy_changes() {
    // It would be created.
    let mut inventory = Inventory::default();
    assert!(inventory.at_origin(&name("a"), 1, 7));
    tell(&mut inventory, 7);
    assert!(out_of_sync(&inventory, None).is_empty() && inventory.is_done(&name("a")));
    assert!(!inventory.at_origin(&name("a"), 2, 7), "listed again");
    assert!(inventory.at_origin(&name("a"), 2, 8), "changed");
    assert_eq!(out_of_sync(&inventory, None), [name("a")]);
    tell(&mut inventory, 8);
    assert!(
        inventory.copy_seen(&name("a"), 1, seen(CopyState::Foreign, 0, 4), true),
        "somebody has made it"
    );
    assert_eq!(out_of_sync(&inventory, None), [name("a")]);
    // It would be updated.
    let mut inventory = synced();
    assert!(inventory.at_origin(&name("a"), 2, 8));
    tell(&mut inventory, 8);
    assert!(out_of_sync(&inventory, None).is_empty());
    assert!(inventory.copy_gone(&name("a"), 5));
    assert_eq!(out_of_sync(&inventory, None), [name("a")]);
    // It would be deleted.
    let mut inventory = synced();
    assert!(inventory.gone_from_origin(&name("a")));
    tell(&mut inventory, 0);
    assert!(out_of_sync(&inventory, None).is_empty() && inventory.has_ours(&name("a")));
    assert!(inventory.at_origin(&name("a"), 2, 8), "it is back");
    assert_eq!(out_of_sync(&inventory, None), [name("a")]);
}

/// Whoever chooses names does not know which of them have one hash.
#[test]
fn names_have_other_hashes_with_another_seed() {
    let hash = |hashing: Hashing| hashing.hash_one(name("a"));
    let of_seed = |seed| hash(Hashing::of_seed(seed));
    assert_eq!(of_seed(1), of_seed(1));
    let without_key = hash(Hashing::default());
    for seed in [0, 1, 2, u64::MAX] {
        assert_ne!(of_seed(seed), of_seed(seed ^ 7), "{seed}");
        assert_ne!(of_seed(seed), without_key, "{seed}");
    }
}
