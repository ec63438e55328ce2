//! What is known of primaries and copies.

use super::*;

fn primary(name: &str, shard: u32) -> Primary {
    Primary {
        route: 1,
        workspace: 7,
        sides: [Side::Service, Side::Shard(shard)],
        name: ObjectName::in_workspace("c1", "shop", name),
    }
}

fn seen(meant: Meant) -> Seen {
    Seen {
        version: 1,
        meant,
        is_ending: false,
    }
}

fn copy(version: u64) -> Copied {
    Copied {
        name: ObjectName::new("c1", "copy"),
        version,
    }
}

fn last(state: u64) -> Last {
    Last {
        uid: "u".into(),
        state,
        status: 0,
    }
}

#[test]
fn a_copy_that_is_as_it_was_left_makes_nothing_due() {
    let mut objects = Objects::default();
    let web = primary("web", 0);
    objects.is_there(&web, seen(0));
    assert_eq!(objects.turn(&web), Some(Turn::default()));
    assert!(!objects.is_settled(&web, last(5), 1, copy(10)));
    assert_eq!(objects.copy_is_there(1, &web.name, copy(10), 0), None);
    // Somebody has changed it.
    assert_eq!(objects.copy_is_there(1, &web.name, copy(11), 0), Some(web.clone()));
    let turn = objects.turn(&web).unwrap();
    assert_eq!((turn.last, turn.copy), (Some(last(5)), Some(copy(11))));
    // And once more, while it was worked on.
    objects.copy_is_there(1, &web.name, copy(13), 0);
    assert!(objects.is_settled(&web, last(5), 1, copy(12)));
    assert_eq!(objects.copy_is_gone(1, &web.name), Some(web.clone()));
    assert_eq!(objects.turn(&web).unwrap().copy, None);
}

// A change that reached the copy and not its state, and that was reverted since.
#[test]
fn a_pass_that_has_failed_leaves_nothing_to_be_trusted() {
    let mut objects = Objects::default();
    let web = primary("web", 0);
    objects.is_there(&web, seen(0));
    objects.turn(&web);
    objects.is_settled(&web, last(5), 1, copy(10));
    objects.copy_is_there(1, &web.name, copy(10), 0);
    objects.is_there(&web, Seen { version: 2, ..seen(0) });
    assert_eq!(objects.turn(&web).unwrap().last, Some(last(5)));
    objects.has_failed(&web);
    assert_eq!(objects.turn(&web).unwrap().last, None);
}

// A clone of the copy has its labels too.
#[test]
fn when_several_say_that_they_are_the_copy_a_pass_finds_out_which_one_it_is() {
    let mut objects = Objects::default();
    let web = primary("web", 0);
    let clone = |version| Copied {
        name: ObjectName::new("c1", "clone"),
        version,
    };
    objects.is_there(&web, seen(0));
    assert!(!objects.turn(&web).unwrap().has_several);
    objects.is_settled(&web, last(5), 1, copy(10));
    objects.copy_is_there(1, &web.name, copy(10), 0);
    assert_eq!(objects.copy_is_there(1, &web.name, clone(11), 0), Some(web.clone()));
    // It fails, until one of them is gone.
    for _ in 0..2 {
        assert!(objects.turn(&web).unwrap().has_several);
    }
    objects.is_settled(&web, last(5), 1, copy(10));
    objects.is_due(&web);
    let turn = objects.turn(&web).unwrap();
    assert_eq!((turn.has_several, turn.copy), (false, Some(copy(10))));
    // One that comes while a pass is under way that does not know it.
    objects.copy_is_there(1, &web.name, clone(12), 0);
    objects.is_settled(&web, last(5), 1, copy(10));
    assert!(objects.turn(&web).unwrap().has_several);
}

// The marks of a copy were removed while the pass that had adopted it was under way.
#[test]
fn a_copy_that_goes_while_it_is_worked_on_gives_another_turn() {
    let mut objects = Objects::default();
    let web = primary("web", 0);
    objects.is_there(&web, seen(0));
    assert!(objects.turn(&web).is_some());
    objects.copy_is_there(1, &web.name, copy(10), 0);
    objects.copy_is_gone(1, &web.name);
    assert!(objects.is_settled(&web, last(5), 1, copy(10)));
    let turn = objects.turn(&web).unwrap();
    assert_eq!(turn.copy, None);
    // That has made it again.
    assert!(!objects.is_settled(&web, last(5), 1, copy(12)));
    assert_eq!(objects.copy_is_there(1, &web.name, copy(12), 0), None);
    assert_eq!(objects.turn(&web), None);
}

#[test]
fn our_own_writes_need_no_turn() {
    let mut objects = Objects::default();
    let web = primary("web", 0);
    let at = |version| Seen {
        version,
        ..Seen::default()
    };
    objects.is_there(&web, at(1));
    assert!(objects.turn(&web).is_some());
    // The finalizer, and the copy: heard of while it is worked on.
    objects.is_there(&web, at(2));
    objects.copy_is_there(1, &web.name, copy(10), 0);
    objects.is_settled(&web, last(5), 2, copy(10));
    assert_eq!(objects.turn(&web), None);
    assert_eq!(objects.pending(), 0);
    // The same, after that.
    objects.is_there(&web, at(2));
    assert_eq!(objects.turn(&web), None);
    // Others write.
    objects.is_there(&web, at(3));
    assert!(objects.turn(&web).is_some());
    objects.is_settled(&web, last(5), 3, copy(10));
    objects.copy_is_there(1, &web.name, copy(11), 0);
    assert!(objects.turn(&web).is_some());
    objects.is_settled(&web, last(5), 3, copy(11));
    // What belongs to it has changed.
    assert_eq!(objects.turn(&web), None);
    objects.is_due(&web);
    assert!(objects.turn(&web).is_some());
    assert_eq!(objects.turn(&web), None);
    // It may change without news.
    let now = Instant::now();
    objects.looks_again(&web, now);
    assert!(objects.turn(&web).is_some() && objects.turn(&web).is_some());
    assert_eq!(objects.again(&web, now + Duration::from_secs(6)), None);
    assert_eq!(objects.turn(&web), None);
}

// A related copy that something deleted again and again was made again every five seconds.
#[test]
fn what_is_found_changed_again_and_again_is_read_ever_less_often() {
    let mut objects = Objects::default();
    let (web, mut now) = (primary("web", 0), Instant::now());
    for news in 0..2 {
        objects.is_there(
            &web,
            Seen {
                version: news,
                ..seen(0)
            },
        );
        let mut waits = Vec::new();
        for _ in 0..8 {
            assert!(objects.turn(&web).is_some());
            objects.looks_again(&web, now);
            let wait = objects.again(&web, now).unwrap();
            waits.push(wait.as_secs());
            now += wait;
        }
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 300, 300]);
    }
}

#[test]
fn what_a_list_does_not_name_is_gone_at_that_shard_alone() {
    let mut objects = Objects::default();
    let (here, there) = (primary("here", 0), primary("there", 1));
    objects.is_there(&here, seen(0));
    objects.is_there(&there, seen(0));
    objects.begins(1, Side::Shard(0));
    assert_eq!(objects.is_complete(1, Side::Shard(0)), std::slice::from_ref(&here));
    objects.begins(1, Side::Shard(0));
    objects.is_there(&here, seen(0));
    assert_eq!(objects.is_complete(1, Side::Shard(0)), []);
    // One that moves to another shard is not gone when the first one says so.
    objects.is_there(&primary("here", 1), seen(0));
    objects.copy_is_there(1, &here.name, copy(3), 0);
    assert!(!objects.is_lost(&here));
    assert!(!objects.was_lost(&primary("here", 1)));
    objects.is_gone(&here);
    assert!(objects.has(&primary("here", 1)));
    assert_eq!(objects.len(), 2);
}

// The state of one whose finalizer the consumer had taken off stayed for ever.
#[test]
fn only_what_the_agent_has_let_go_itself_needs_no_turn_when_it_is_gone() {
    let ending = Seen {
        is_ending: true,
        ..seen(0)
    };
    // What was heard of it after its last pass, what that has found, whether there is a copy, and whether it has a turn.
    for (heard, is_free, has_copy, has_turn) in [
        (None, None, false, true),
        (None, Some(false), false, true),
        (Some(ending), Some(false), false, true),
        (None, Some(true), false, false),
        (None, Some(true), true, true),
        (Some(ending), Some(true), false, false),
        // The news of its end may come late.
        (Some(ending), Some(true), true, false),
        // It was changed, or made again.
        (Some(seen(0)), Some(true), false, true),
    ] {
        let mut objects = Objects::default();
        let web = primary("web", 0);
        objects.is_there(&web, seen(0));
        if let Some(is_free) = is_free {
            objects.turn(&web);
            objects.is_tried(&web);
            objects.is_free(&web, is_free);
        }
        if let Some(heard) = heard {
            objects.is_there(&web, heard);
        }
        if has_copy {
            objects.copy_is_there(1, &web.name, copy(3), 0);
        }
        let case = format!("{heard:?} {is_free:?} {has_copy}");
        assert_eq!(objects.is_lost(&web), has_turn, "{case}");
        assert_eq!(
            (objects.was_lost(&web), objects.is_ending(&web)),
            (has_turn, has_turn || heard.is_some()),
            "{case}"
        );
    }
}

#[test]
fn copies_are_known_before_their_primaries_and_outlive_them() {
    let mut objects = Objects::default();
    let web = primary("web", 0);
    assert_eq!(objects.copy_is_there(1, &web.name, copy(3), 0), None);
    objects.is_there(&web, seen(0));
    assert_eq!(objects.turn(&web).unwrap().copy, Some(copy(3)));
    assert_eq!(objects.whose(1, &copy(3).name), Some(web.name.clone()));
    objects.is_gone(&web);
    assert_eq!(objects.turn(&web), None);
    objects.copies_begin(1);
    assert_eq!(objects.copies_are_complete(1), std::slice::from_ref(&web.name));
    assert_eq!(objects.copy_is_gone(1, &web.name), None);
    assert_eq!(objects.whose(1, &copy(3).name), None);
}

// The copy stayed silently, and what its object had named kept the agent's finalizer.
#[test]
fn a_copy_of_which_no_object_was_seen_has_one_turn_once_all_lists_are_complete() {
    let at = |workspace: &str| (workspace == "c1").then_some((Side::Shard(0), 7));
    let web = primary("web", 0);
    let mut objects = Objects::default();
    objects.begins(1, Side::Shard(0));
    objects.copies_begin(1);
    objects.copy_is_there(1, &web.name, copy(3), 0);
    objects.copy_is_there(1, &ObjectName::in_workspace("c2", "shop", "far"), copy(3), 0);
    assert_eq!(objects.lose_unseen(1, at), []);
    objects.copies_are_complete(1);
    assert_eq!(objects.lose_unseen(1, at), []);
    objects.is_complete(1, Side::Shard(0));
    assert_eq!(objects.lose_unseen(1, at), std::slice::from_ref(&web));
    assert_eq!((objects.len(), objects.pending(), objects.was_lost(&web)), (0, 1, true));
    let turn = objects.turn(&web).unwrap();
    assert!(turn.is_unseen && turn.copy == Some(copy(3)));
    // Its copy stays: whatever becomes of it, or is listed again, is no news.
    assert!(!objects.is_over(&web));
    assert_eq!(objects.copy_is_there(1, &web.name, copy(4), 0), None);
    objects.begins(1, Side::Shard(0));
    assert_eq!(objects.is_complete(1, Side::Shard(0)), []);
    assert_eq!(objects.lose_unseen(1, at), []);
    assert_eq!(
        (objects.primary(1, &web.name), objects.meant(1, 0, Some("c1"), None)),
        (None, vec![])
    );
    assert_eq!(objects.pending(), 0);
    // Its end is: what belonged to it goes.
    assert_eq!(objects.copy_is_gone(1, &web.name), Some(web.clone()));
    assert!(objects.turn(&web).is_some() && objects.is_over(&web));
    // Or it comes back.
    objects.copy_is_there(1, &web.name, copy(5), 0);
    objects.is_there(&web, seen(0));
    assert!(!objects.was_lost(&web) && !objects.turn(&web).unwrap().is_unseen);
}

#[test]
fn those_that_a_rule_means_are_found_by_the_labels_of_either_side() {
    let mut objects = Objects::default();
    let (web, api) = (primary("web", 0), primary("api", 0));
    let elsewhere = Primary {
        name: ObjectName::in_workspace("c2", "shop", "web"),
        ..web.clone()
    };
    objects.is_there(&web, seen(0b01));
    objects.is_there(&api, seen(0b10));
    objects.is_there(&elsewhere, seen(0b01));
    objects.copy_is_there(1, &api.name, copy(1), 0b100);
    for (route, rule, workspace, namespace, expected) in [
        (1, 0, Some("c1"), None, Some(&web)),
        (1, 1, Some("c1"), None, Some(&api)),
        (1, 1, Some("c1"), Some("shop"), Some(&api)),
        (1, 1, Some("c1"), Some("c1"), None),
        (1, 2, None, None, Some(&api)),
        // The namespace of the copy.
        (1, 2, None, Some("c1"), Some(&api)),
        (1, 2, None, Some("shop"), None),
        (2, 0, Some("c1"), None, None),
    ] {
        let found = objects.meant(route, rule, workspace, namespace);
        let expected: Vec<Primary> = expected.into_iter().cloned().collect();
        assert_eq!(found, expected, "{route} {rule} {workspace:?} {namespace:?}");
    }
    assert_eq!(objects.primary(1, &web.name), Some(web));
    assert_eq!(
        objects.primary(1, &ObjectName::in_workspace("c1", "shop", "none")),
        None
    );
}

// A Secret that an operator makes for a copy was heard of before the copy, and waited for the next look, five seconds later.
#[test]
fn what_belongs_to_a_copy_that_is_just_being_made_leads_to_its_object() {
    let mut objects = Objects::default();
    let web = primary("web", 0);
    objects.is_there(&web, seen(0));
    let found = |objects: &Objects, rule| objects.meant(1, rule, None, Some("c1"));
    assert_eq!((objects.being_placed(1), found(&objects, 0)), (vec![], vec![]));
    assert!(objects.turn(&web).is_some());
    assert_eq!(objects.being_placed(1), std::slice::from_ref(&web));
    assert_eq!(found(&objects, 0), std::slice::from_ref(&web));
    assert_eq!(objects.being_placed(2), []);
    objects.is_due(&web);
    assert!(!objects.is_settled(&web, last(5), 1, copy(10)));
    objects.is_tried(&web);
    assert_eq!(objects.being_placed(1), []);
    assert!(objects.turn(&web).is_some(), "it is checked once more");
    objects.is_tried(&web);
    // Its labels are not known yet.
    assert_eq!(found(&objects, 0), std::slice::from_ref(&web));
    assert_eq!(objects.meant(1, 0, None, Some("c2")), []);
    assert_eq!(objects.copy_is_there(1, &web.name, copy(10), 0b10), None);
    assert_eq!((found(&objects, 0), found(&objects, 1)), (vec![], vec![web]));
}

// Nine thousand that were being deleted filled the queue, were tried again and again, and kept out the others that they waited
// for.
#[test]
fn what_waits_for_the_others_of_its_workspace_comes_back_once_each_had_a_turn() {
    let mut objects = Objects::default();
    let all: Vec<Primary> = ["a", "b", "c"].iter().map(|name| primary(name, 0)).collect();
    for primary in &all {
        objects.is_there(primary, seen(0));
        objects.is_there(primary, seen(0));
    }
    assert!(objects.has_untried(&all[0]));
    objects.is_tried(&all[0]);
    objects.holds(&all[0]);
    assert_eq!(objects.released(), []);
    objects.is_tried(&all[1]);
    objects.is_tried(&all[1]);
    objects.holds(&all[1]);
    assert!(objects.has_untried(&all[1]) && !objects.has_untried(&all[2]));
    assert_eq!(objects.released(), []);
    objects.is_gone(&all[2]);
    assert_eq!(objects.released(), all[..2]);
    assert_eq!(objects.due(Some((1, 7)), None).len(), 2);
    assert_eq!(objects.released(), []);
    // Rules that are there no longer take theirs along.
    objects.is_there(&all[2], seen(0));
    assert!(objects.has_untried(&all[0]));
    objects.forget(1);
    assert!(!objects.has_untried(&all[0]));
}

#[test]
fn only_what_is_due_is_asked_for_and_from_where_it_stopped() {
    let mut objects = Objects::default();
    let all: Vec<Primary> = ["a", "b", "c"].iter().map(|name| primary(name, 0)).collect();
    for primary in &all {
        objects.is_there(primary, seen(0));
    }
    objects.turn(&all[0]);
    let keys = |from: usize| -> Vec<Key> { all[from..].iter().cloned().map(Key::Object).collect() };
    assert_eq!(objects.due(Some((1, 7)), None), keys(1));
    assert_eq!(objects.due(Some((1, 7)), Some(&Key::Object(all[2].clone()))), keys(2));
    assert_eq!(objects.due(Some((1, 8)), None), []);
    assert_eq!((objects.len(), objects.pending()), (3, 2));
}
