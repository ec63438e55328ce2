use super::*;

// A config whose objects are all in sync was not ready, since those of another one were held.
#[test]
fn a_hold_is_said_by_the_configs_that_select_what_is_held_and_by_all_if_none_does() {
    // What each config has of it, and what each says: how many, and whether it says why.
    for (held, objects, expected) in [
        (vec![2, 0], 2, vec![(2, true), (0, false)]),
        (vec![2, 1], 3, vec![(2, true), (1, true)]),
        (vec![0, 0], 3, vec![(3, true), (3, true)]),
        (vec![0], 0, vec![(0, true)]),
        (vec![], 3, vec![]),
    ] {
        let of_config = |held: &usize| OfEdge {
            held: *held,
            hold: Some(Hold::default()),
            ..OfEdge::default()
        };
        let mut all: Vec<OfEdge> = held.iter().map(of_config).collect();
        share_hold(all.iter_mut().map(|ours| (true, ours)), objects);
        let said: Vec<(usize, bool)> = all.iter().map(|ours| (ours.held, ours.hold.is_some())).collect();
        assert_eq!(said, expected, "{held:?} {objects}");
    }
}

// Seed 711220 of the simulation: nobody saw the hold, and nobody confirmed it.
#[test]
fn what_only_a_config_without_status_selects_is_said_by_all() {
    let hold = || Some(Hold::default());
    let of = |held: usize| OfEdge {
        held,
        hold: hold(),
        ..OfEdge::default()
    };
    for (are_kept, said) in [([true, true], [false, true]), ([true, false], [true, true])] {
        let mut all = [of(0), of(1)];
        share_hold(are_kept.into_iter().zip(&mut all), 1);
        assert_eq!(all.map(|ours| ours.hold.is_some()), said, "{are_kept:?}");
    }
}

#[test]
fn ten_failures_are_kept_and_those_are_the_oldest_in_whatever_order_they_come() {
    let since = |minute: usize| Failure {
        since: format!("2026-01-01T00:{minute:02}:00Z"),
        object: format!("ConfigMap/shop/c{}", 99 - minute),
        ..Failure::default()
    };
    let oldest: Vec<Failure> = (0..NAMED).map(since).collect();
    for step in [1, 5, 7, 11] {
        let mut kept = Vec::new();
        for index in 0..12 {
            keep(&mut kept, since(index * step % 12));
            assert!(kept.len() <= NAMED && kept.is_sorted(), "{step}: {kept:?}");
        }
        assert_eq!(kept, oldest, "{step}");
    }
}
