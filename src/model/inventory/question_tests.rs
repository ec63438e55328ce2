//! What is asked of single links and of all: each answer for each kind of link.

use std::collections::BTreeMap;
use std::rc::Rc;

use driver::source::Covers;
use kube_lite::ObjectName;

use super::{Held, Inventory, LeftOpen, Link, MANY, Permit};
use crate::sync::job::Seen;
use crate::sync::ownership::{Copy, CopyState};

fn a() -> ObjectName {
    ObjectName::new("shop", "a")
}

fn seen(version: u64) -> Seen {
    Seen {
        copy: Copy {
            state: CopyState::Ours,
            ..Copy::default()
        },
        labelled: true,
        hash: 70,
        version,
    }
}

/// An origin that wants 7.
fn wanted() -> Inventory {
    let mut inventory = Inventory::default();
    inventory.at_origin(&a(), 1, 7);
    inventory
}

/// Its copy was made, with hash 70 at version 3.
fn synced() -> Inventory {
    let mut inventory = wanted();
    inventory.take(&a());
    inventory.settle(&a(), 7, Some(seen(3)));
    inventory
}

fn then(mut inventory: Inventory, change: impl FnOnce(&mut Inventory)) -> Inventory {
    change(&mut inventory);
    inventory
}

fn with_copy(seen: Seen) -> Inventory {
    then(synced(), |inventory| {
        inventory.copy_seen(&a(), 1, seen, true);
    })
}

fn terminating(version: u64) -> Seen {
    let mut seen = seen(version);
    seen.copy.terminating = true;
    seen
}

fn link(inventory: &Inventory) -> &Link {
    inventory.get(&a()).expect("it is known")
}

type Question = (&'static str, fn(&Inventory) -> bool);

const QUESTIONS: [Question; 14] = [
    ("wanted", |inventory| inventory.is_wanted(&a())),
    ("done", |inventory| inventory.is_done(&a())),
    ("over", |inventory| inventory.is_over(&a())),
    ("taken away", |inventory| inventory.is_taken_away(&a())),
    ("watched", |inventory| inventory.is_watched(&a())),
    ("unlabelled", |inventory| inventory.is_unlabelled(&a())),
    ("pending delete", |inventory| link(inventory).is_pending_delete()),
    ("retiring", |inventory| inventory.is_retiring(&a())),
    ("seen to", |inventory| link(inventory).is_seen_to()),
    ("has to end", |inventory| link(inventory).has_to_end()),
    ("drifted", |inventory| link(inventory).drifted()),
    ("unverified", Inventory::has_unverified),
    ("turned up", |inventory| inventory.has_copy_turned_up(&a())),
    ("for another", |inventory| inventory.is_from_another(&a(), 8)),
];

#[test]
fn each_question_is_answered_as_the_link_is() {
    let gone = |inventory: Inventory| {
        then(inventory, |inventory| {
            inventory.gone_from_origin(&a());
        })
    };
    let taken = |inventory: Inventory| {
        then(inventory, |inventory| {
            inventory.take(&a()).expect("there is something to do");
        })
    };
    let mut foreign = seen(4);
    (foreign.copy.state, foreign.labelled, foreign.hash) = (CopyState::Foreign, false, 0);
    let unlabelled = Seen {
        labelled: false,
        ..seen(4)
    };
    let mut from_another = seen(4);
    from_another.copy.cluster = 9;
    let finished = then(synced(), |inventory| inventory.has_finished(&a(), 7));
    let orphan = then(Inventory::default(), |inventory| {
        inventory.copy_seen(&a(), 1, seen(3), true);
        inventory.cannot_verify(&a());
    });
    let rows: [(&str, Inventory, &[&str]); 16] = [
        ("an origin alone", wanted(), &["wanted"]),
        ("with a worker", taken(wanted()), &["wanted"]),
        ("synced", synced(), &["wanted", "done", "taken away", "watched"]),
        (
            "changed by somebody else",
            with_copy(Seen { hash: 71, ..seen(4) }),
            &["wanted", "taken away", "watched", "drifted", "turned up"],
        ),
        (
            "changed, with a worker",
            taken(with_copy(Seen { hash: 71, ..seen(4) })),
            &["wanted", "watched", "drifted"],
        ),
        (
            "a copy without its label",
            with_copy(unlabelled),
            &["wanted", "done", "taken away", "unlabelled", "turned up"],
        ),
        (
            "somebody else's object",
            with_copy(foreign),
            &["wanted", "done", "unlabelled"],
        ),
        (
            "a copy that is being deleted",
            with_copy(terminating(4)),
            &["wanted", "taken away", "watched", "has to end", "turned up"],
        ),
        (
            "its origin is gone",
            gone(synced()),
            &["watched", "pending delete", "retiring"],
        ),
        (
            "its origin is gone, with a worker",
            taken(gone(synced())),
            &["watched", "pending delete", "retiring"],
        ),
        (
            "its origin is gone while a worker makes it",
            gone(taken(wanted())),
            &["retiring"],
        ),
        (
            "it stays without an origin",
            then(taken(gone(synced())), |inventory| {
                inventory.settle(&a(), 0, Some(seen(4)));
            }),
            &["done", "over", "watched", "seen to"],
        ),
        (
            "nothing selects its origin any more",
            then(synced(), |inventory| inventory.unselected_at_origin(&a(), 2)),
            &["done", "over", "watched"],
        ),
        ("a finished Job", finished, &["wanted", "done", "taken away", "watched"]),
        ("an orphan", orphan, &["watched", "unverified", "turned up"]),
        (
            "from another cluster",
            with_copy(from_another),
            &["wanted", "done", "taken away", "watched", "turned up", "for another"],
        ),
    ];
    for (of, inventory, expected) in rows {
        let answers = QUESTIONS.iter().filter(|(_, is)| is(&inventory));
        let answers: Vec<&str> = answers.map(|(word, _)| *word).collect();
        assert_eq!(answers, expected, "{of}");
    }
    let unknown = Inventory::default();
    assert!(!unknown.is_wanted(&a()) && unknown.is_done(&a()) && unknown.is_over(&a()));
}

#[test]
fn a_copy_that_an_earlier_origin_had_is_not_of_the_next_one() {
    let mut inventory = wanted();
    assert_eq!(inventory.wanted_by(&a(), 5), 7, "its UID is not known");
    inventory.origin_is(&a(), 6);
    let wanted = [0, 5, 6].map(|origin| inventory.wanted_by(&a(), origin));
    assert_eq!(
        wanted,
        [7, 0, 7],
        "one that does not say of what it was made may be of any"
    );
}

#[test]
fn an_origin_that_is_named_again_has_what_somebody_else_has_changed_corrected() {
    let mut inventory = with_copy(Seen { hash: 71, ..seen(4) });
    assert!(inventory.at_origin(&a(), 2, 7));
    let mut inventory = synced();
    assert!(!inventory.at_origin(&a(), 2, 7));
    // Something was refused in between.
    inventory.at_origin(&a(), 1, 8);
    inventory.take(&a());
    inventory.failed(&a(), LeftOpen::Refused);
    assert!(inventory.at_origin(&a(), 2, 7));
}

#[test]
fn what_is_known_already_is_no_news_to_a_worker() {
    // It may have been restored from a backup, so that what the worker has found is older.
    for (reported, expected) in [(3, 2), (4, 4)] {
        let mut inventory = synced();
        inventory.at_origin(&a(), 1, 8);
        inventory.take(&a()).expect("there is something to do");
        inventory.copy_seen(&a(), 2, seen(reported), true);
        inventory.settle(&a(), 8, Some(seen(2)));
        assert_eq!(link(&inventory).seen.version, expected);
    }
}

#[test]
fn a_copy_may_be_reported_as_gone_at_the_version_that_it_had() {
    let mut inventory = synced();
    assert!(inventory.copy_gone(&a(), 3));
    assert!(!link(&inventory).has_copy());
}

#[test]
fn a_worker_that_finds_a_held_copy_which_was_said_to_be_gone_is_believed_unless_there_is_news() {
    for is_reported in [false, true] {
        let mut inventory = synced();
        inventory.gone_from_origin(&a());
        inventory.copy_gone(&a(), 4);
        inventory.take(&a()).expect("it is searched for");
        if is_reported {
            inventory.copy_gone(&a(), 9);
        }
        inventory.is_still_there(&a(), Some(seen(5)));
        assert_eq!(link(&inventory).has_copy(), !is_reported);
        assert_eq!(link(&inventory).is_lost(), is_reported);
    }
}

#[test]
fn what_is_reported_of_an_origin_while_a_worker_has_it_counts_more_than_what_the_worker_found() {
    let mut inventory = synced();
    inventory.gone_from_origin(&a());
    inventory.take(&a()).expect("its copy is to be deleted");
    inventory.gone_from_origin(&a());
    inventory.settle(&a(), 0, Some(seen(4)));
    assert!(
        inventory.is_retiring(&a()),
        "it was there in between, so a worker looks again"
    );
}

#[test]
fn a_lost_copy_that_was_handled_is_forgotten_and_one_that_was_not_is_searched_for() {
    for handled in [false, true] {
        let mut inventory = synced();
        inventory.gone_from_origin(&a());
        if handled {
            inventory.take(&a());
            inventory.settle(&a(), 0, Some(seen(4)));
        }
        inventory.take(&a());
        inventory.copy_gone(&a(), 9);
        inventory.failed(&a(), LeftOpen::Nothing);
        assert_eq!(inventory.get(&a()).is_none(), handled);
    }
}

#[test]
fn the_names_of_empty_namespaces_do_not_add_up() {
    let mut inventory = Inventory::default();
    for index in 0..20 * MANY {
        let name = ObjectName::new(&format!("n-{index}"), "a");
        inventory.at_origin(&name, 1, 7);
        if index % MANY != 0 {
            inventory.gone_from_origin(&name);
        }
    }
    assert_eq!(inventory.objects.len(), 20);
    assert!(inventory.namespaces.len() <= MANY, "{}", inventory.namespaces.len());
    // All objects of a namespace share its name.
    let shared = inventory
        .objects
        .keys()
        .all(|name| Rc::strong_count(name.within()) == 2);
    assert!(shared && inventory.namespaces.len() >= 20);
}

#[test]
fn more_namespaces_than_that_are_not_scanned_for_each_new_one() {
    let mut inventory = Inventory::default();
    for index in 0..3 * MANY {
        inventory.at_origin(&ObjectName::new(&format!("n-{index}"), "a"), 1, 7);
    }
    assert_eq!(
        inventory.namespaces_left,
        2 * MANY,
        "scanned when twice as many had come"
    );
}

#[test]
fn a_worker_reads_first_where_a_copy_may_be_that_was_not_reported() {
    let mut inventory = wanted();
    inventory.read_first(&a());
    assert!(link(&inventory).needs_read());
    let mut inventory = synced();
    inventory.read_first(&a());
    assert!(!link(&inventory).needs_read());
}

#[test]
fn an_origin_that_is_selected_again_is_compared_with_its_copy_only_if_that_is_as_it_was_written() {
    type Disturbance = (&'static str, fn(&mut Inventory));
    let disturbed: [Disturbance; 5] = [
        ("it is as it was", |_| {}),
        ("it is gone", |inventory| {
            inventory.copy_gone(&a(), 9);
        }),
        ("somebody has changed it", |inventory| {
            inventory.copy_seen(&a(), 1, Seen { hash: 71, ..seen(9) }, true);
        }),
        ("a write may have changed it", |inventory| {
            inventory.at_origin(&a(), 1, 8);
            inventory.take(&a());
            inventory.failed(&a(), LeftOpen::Unsure);
        }),
        ("nothing was written to it", |inventory| {
            inventory.copy_gone(&a(), 9);
            inventory.copy_seen(&a(), 1, seen(10), true);
        }),
    ];
    for (how, disturb) in disturbed {
        let mut inventory = synced();
        disturb(&mut inventory);
        assert_eq!(link(&inventory).unread(), None, "{how}");
        inventory.ask_for(&a());
        let expected = if how == "it is as it was" { 7 } else { 0 };
        assert_eq!(link(&inventory).unread(), Some(expected), "{how}");
    }
}

#[test]
fn a_job_that_is_another_one_has_not_finished() {
    let mut inventory = synced();
    inventory.has_finished(&a(), 7);
    inventory.at_origin(&a(), 2, 7);
    assert!(link(&inventory).is_finished());
    inventory.at_origin(&a(), 2, 8);
    assert!(!link(&inventory).is_finished());
}

#[test]
fn a_permit_lasts_as_long_as_the_origin_is_gone() {
    let released = || {
        let mut inventory = synced();
        inventory.gone_from_origin(&a());
        inventory.release(Held::All, Permit::Given);
        inventory
    };
    let mut inventory = released();
    assert!(inventory.has_permitted());
    inventory.copy_seen(&a(), 1, seen(4), true);
    assert!(
        inventory.may_go(&a()),
        "the copy has changed, and is to be deleted all the same"
    );
    assert_eq!(inventory.count_pending_deletes().copies, 0, "it counts as gone");
    inventory.at_origin(&a(), 2, 7);
    assert!(!inventory.may_go(&a()) && !inventory.has_permitted());
    // The copy is gone, so that nothing is left to be deleted.
    let mut inventory = released();
    inventory.take(&a());
    inventory.copy_gone(&a(), 9);
    inventory.settle(&a(), 0, None);
    assert!(!inventory.has_permitted());
}

#[test]
fn the_newest_of_the_copies_that_are_to_be_deleted_counts_and_of_no_others() {
    let made_at = |seen: Seen, version| {
        let mut seen = seen;
        (seen.copy.made_at, seen.copy.cluster) = (version, 8);
        seen
    };
    for (copy, is_gone, expected) in [
        (made_at(seen(4), 500), true, 500),
        (made_at(seen(4), 500), false, 0),
        (made_at(terminating(4), 500), true, 0),
    ] {
        let mut inventory = with_copy(copy);
        if is_gone {
            inventory.gone_from_origin(&a());
        }
        assert_eq!(inventory.newest_pending_delete(&[a()], 8), expected);
        assert_eq!(
            inventory.newest_pending_delete(&[a()], 9),
            0,
            "it is from another cluster"
        );
        let mut clusters = BTreeMap::new();
        inventory.count_clusters(&mut clusters);
        assert_eq!(clusters, [(8, 1)].into());
    }
}

#[test]
fn a_list_of_copies_that_names_one_as_it_is_asks_for_nothing() {
    // at what version the list is, and whether the copy is read again
    for (at, expected) in [(9, false), (4, false), (3, true), (0, false)] {
        let mut inventory = synced();
        inventory.copy_seen(&a(), 2, seen(4), true);
        let again = inventory.copies_listed(2, Covers::Everything, at);
        assert_eq!(again.is_empty(), !expected, "{at}");
        assert_eq!(link(&inventory).needs_read(), expected, "{at}");
    }
}

#[test]
fn a_list_of_copies_from_before_a_write_that_is_under_way_says_nothing() {
    let mut inventory = synced();
    inventory.copy_seen(&a(), 2, seen(4), true);
    inventory.at_origin(&a(), 1, 8);
    inventory.take(&a());
    assert!(inventory.copies_listed(2, Covers::Everything, 3).is_empty());
    assert!(!link(&inventory).needs_read());
}

#[test]
fn a_copy_that_has_lost_its_label_is_searched_for_with_each_list_unless_a_worker_does() {
    for is_busy in [false, true] {
        let mut inventory = synced();
        inventory.unselected_at_origin(&a(), 1);
        assert!(inventory.copy_gone(&a(), 4), "it may have lost its label");
        if is_busy {
            inventory.take(&a());
        }
        let again = inventory.copies_listed(2, Covers::Labelled, 9);
        assert_eq!(again.is_empty(), is_busy);
    }
}

#[test]
fn a_list_of_copies_that_lacks_one_which_nothing_wants_has_nobody_read_it() {
    // Whether its origin wants it, and whether a worker is to read it: the list is older than the copy.
    for (is_wanted, expected) in [(true, true), (false, false)] {
        let mut inventory = synced();
        if !is_wanted {
            inventory.unselected_at_origin(&a(), 1);
        }
        assert_eq!(!inventory.copies_listed(4, Covers::Everything, 2).is_empty(), expected);
    }
}

#[test]
fn a_list_of_origins_forgets_what_it_lacks_and_has_no_copy() {
    let mut inventory = wanted();
    assert!(inventory.origins_listed(|_| true, 1).is_empty());
    assert!(inventory.is_wanted(&a()), "it was named");
    assert!(inventory.origins_listed(|_| true, 2).is_empty());
    assert!(inventory.get(&a()).is_none());
}
