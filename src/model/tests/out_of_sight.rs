//! Holds while a side does not serve a type, or serves it at another version: a hold belongs to what has happened at the
//! side of the origins, and not to what can be read just now.

use super::type_holds::{WIDGETS, bench, going, origins, redefined, widget, withdrawn};
use super::*;
use crate::api::{TOO_MANY, TYPE_WITHDRAWN};

impl Bench {
    /// A side says that it does not serve the widgets, though it has their CRD.
    fn hide_widgets(&mut self, side: Side) {
        self.world.withdraw_at(side, &widgets());
        let source = match side {
            Side::Edge => self.copies_of(side, "widgets"),
            Side::Hub => self.origins_of(side, "widgets"),
        };
        self.breaks(source.expect("they are read"), not_served());
        self.list_crds(side, &[json!({"metadata": {"name": WIDGETS, "resourceVersion": "1"}})]);
        self.pass(30 * SECOND);
        assert!(self.copies_of(Side::Edge, "widgets").is_none());
    }

    /// It serves them again, with the copies `a` and `b`, and the hub has these widgets.
    fn show_widgets(&mut self, side: Side, at_hub: &[&str]) {
        self.world.serve_at(side, &widgets());
        while self.copies_of(Side::Edge, "widgets").is_none() {
            self.pass(10 * SECOND);
        }
        self.list_widgets(&["a", "b"], 3000);
        let there: Vec<Value> = at_hub.iter().map(|name| widget(name, 30)).collect();
        self.list(origins(self), &there, 3001);
        while let Some((_, job)) = self.work.iter().find(|(_, job)| !job.may_delete) {
            let name = job.origin.name.name.to_string();
            self.succeed_with(&name, Change::Unchanged);
        }
    }

    fn is_held(&mut self, reason: &str) -> bool {
        self.model
            .guard
            .held_by_reason(&self.model.types)
            .contains_key(&(Direction::Down, reason))
    }

    fn defined(&self) -> Option<crate::sync::definition::DefinedBy> {
        self.model.definitions.known(WIDGETS).cloned()
    }
}

#[test]
fn a_hold_of_a_type_outlasts_that_the_edge_does_not_serve_it() {
    for withdrawal in [redefined(), going()] {
        let mut bench = withdrawn(withdrawal.clone());
        let token = bench.token();
        bench.hide_widgets(Side::Edge);
        bench.pass(120 * SECOND);
        assert!(bench.is_held(TYPE_WITHDRAWN), "{withdrawal:?}");
        assert_eq!(bench.defined(), Some(uid(CRD)), "{withdrawal:?}");
        bench.show_widgets(Side::Edge, &["b"]);
        bench.pass(62 * SECOND);
        assert!(bench.work.is_empty(), "{withdrawal:?}: {:?}", bench.working());
        assert_eq!(
            bench.held_for(Direction::Down, TYPE_WITHDRAWN),
            Some(1),
            "{withdrawal:?}"
        );
        assert_eq!(bench.token(), token, "{withdrawal:?}");
        bench.confirm(&token);
        assert_eq!(bench.working(), ["a"], "{withdrawal:?}");
    }
}

#[test]
fn the_time_of_a_hold_of_a_type_passes_while_the_edge_does_not_serve_it() {
    let mut bench = withdrawn(redefined());
    bench.hide_widgets(Side::Edge);
    bench.pass(GRACE);
    assert_eq!(bench.defined(), Some(uid(NEXT)));
    bench.show_widgets(Side::Edge, &["b"]);
    assert_eq!(bench.working(), ["a"]);
}

#[test]
fn a_type_that_is_defined_again_is_not_back_before_its_origins_can_be_listed() {
    let mut bench = withdrawn(redefined());
    bench.hide_widgets(Side::Edge);
    bench.world.serve_at(Side::Edge, &widgets());
    while bench.copies_of(Side::Edge, "widgets").is_none() {
        bench.pass(10 * SECOND);
    }
    bench.list_widgets(&["a", "b"], 3000);
    let origins = origins(&bench);
    bench.breaks(origins, forbidden());
    bench.pass(60 * SECOND);
    assert_eq!(bench.defined(), Some(uid(CRD)));
    assert!(bench.is_held(TYPE_WITHDRAWN));
}

#[test]
fn a_hold_of_a_type_stays_while_both_sides_go_on_to_another_version() {
    let mut bench = withdrawn(redefined());
    let token = bench.token();
    let newer = ResourceType {
        version: "v2".into(),
        ..widgets()
    };
    bench.world.withdraw_at(Side::Edge, &widgets());
    bench.world.serve_at(Side::Edge, &newer);
    let copies = bench.copies_of(Side::Edge, "widgets").expect("they are read");
    bench.breaks(copies, not_served());
    bench.pass(30 * SECOND);
    let copies = bench.copies_of(Side::Edge, "widgets").expect("they are read");
    assert_eq!(bench.world.sources[&copies].1.resource.version, "v2");
    assert!(bench.is_held(TYPE_WITHDRAWN));
    bench.pass(60 * SECOND);
    assert_eq!(bench.token(), token);
}

#[test]
fn a_hold_of_a_type_ends_once_the_edge_has_not_even_its_crd() {
    for withdrawal in [redefined(), going()] {
        let mut bench = withdrawn(withdrawal.clone());
        bench.hide_widgets(Side::Edge);
        assert!(bench.is_held(TYPE_WITHDRAWN), "{withdrawal:?}");
        bench.listed.clear();
        bench.list_crds(Side::Edge, &[]);
        bench.pass(3 * SECOND);
        assert!(!bench.is_held(TYPE_WITHDRAWN), "{withdrawal:?}");
        assert_eq!(bench.defined(), Some(uid(CRD)), "{withdrawal:?}");
    }
}

#[test]
fn a_hold_of_many_is_not_over_while_a_side_does_not_serve_a_type_of_which_it_holds_copies() {
    for side in [Side::Edge, Side::Hub] {
        let mut bench = bench();
        let (maps, origins) = (bench.origins(), origins(&bench));
        bench.list(maps, &[], 40);
        bench.list(origins, &[], 40);
        assert_eq!(bench.held_for(Direction::Down, TOO_MANY), Some(4), "{side}");
        bench.pass(3 * SECOND);
        let token = bench.token();
        bench.world.left = 0;
        bench.hide_widgets(side);
        bench.list(maps, &["m", "n"].map(|name| config_map(name, 50)), 50);
        bench.succeed(Change::Updated);
        bench.succeed(Change::Updated);
        bench.pass(60 * SECOND);
        assert!(bench.is_held(TOO_MANY), "{side}");
        bench.show_widgets(side, &[]);
        assert!(bench.work.is_empty(), "{side}: {:?}", bench.working());
        assert_eq!(bench.held_for(Direction::Down, TOO_MANY), Some(2), "{side}");
        assert_eq!(bench.token(), token, "{side}");
        bench.show_widgets(side, &["a", "b"]);
        bench.pass(3 * SECOND);
        assert!(!bench.is_held(TOO_MANY), "{side}");
    }
}

#[test]
fn a_hold_of_many_from_an_earlier_run_waits_for_the_types_that_the_edge_does_not_serve() {
    let mut bench = Bench::new();
    bench.world.serve_at(Side::Hub, &widgets());
    bench.world.keep(
        &json!({"types": "/v1/configmaps\nexample.org/v1/widgets\n", "holds": "downsync TooMany 7fd8379e 4 4\n"}),
    );
    let mut bench = bench.selecting(&["configmaps", WIDGETS]);
    bench.list_crds(
        Side::Edge,
        &[json!({"metadata": {"name": WIDGETS, "resourceVersion": "1"}})],
    );
    bench.pass(60 * SECOND);
    assert!(bench.is_held(TOO_MANY));
    bench.show_widgets(Side::Edge, &[]);
    assert_eq!(bench.held_for(Direction::Down, TOO_MANY), Some(2));
    assert!(bench.work.is_empty(), "{:?}", bench.working());
}

#[test]
fn a_hold_of_a_type_that_the_hub_has_no_longer_outlasts_that_the_edge_does_not_serve_it() {
    let mut bench = bench();
    bench.hide_widgets(Side::Hub);
    bench.pass(60 * SECOND);
    assert_eq!(bench.held_for(Direction::Down, TYPE_WITHDRAWN), Some(2));
    let token = bench.token();
    bench.world.withdraw_at(Side::Edge, &widgets());
    bench.model.void_discovery_of(Side::Edge, &widgets());
    bench.tell(Event::Due);
    bench.list_crds(
        Side::Edge,
        &[json!({"metadata": {"name": WIDGETS, "resourceVersion": "1"}})],
    );
    let before = bench.count("search for what is left");
    bench.pass(GRACE);
    assert_eq!(bench.held_for(Direction::Down, TYPE_WITHDRAWN), Some(2));
    assert_eq!(
        bench.count("search for what is left"),
        before,
        "there is nothing to count"
    );
    bench.world.serve_at(Side::Edge, &widgets());
    bench.pass(GRACE);
    assert_eq!(bench.held_for(Direction::Down, TYPE_WITHDRAWN), Some(2));
    assert!(bench.count("search for what is left") > before);
    assert_eq!(bench.token(), token);
}

// It does not confirm what comes after.
#[test]
fn what_people_have_let_go_is_over_when_the_hub_has_the_type_again_though_the_edge_does_not_serve_it() {
    let mut bench = bench();
    bench.hide_widgets(Side::Hub);
    bench.pass(60 * SECOND);
    bench.confirm(&bench.token());
    assert!(bench.world.kept.let_go.contains(WIDGETS));
    bench.world.withdraw_at(Side::Edge, &widgets());
    bench.model.void_discovery_of(Side::Edge, &widgets());
    bench.world.serve_at(Side::Hub, &widgets());
    bench.pass(GRACE);
    assert!(bench.world.kept.let_go.is_empty());
}

#[test]
fn what_is_found_to_be_deleted_before_its_definition_was_known_is_known_after_a_restart() {
    let mut bench = Bench::new();
    bench.world.serve(&widgets());
    bench.world.fails.insert("ask what defines types".into(), broken());
    let mut bench = bench.selecting(&[WIDGETS]);
    let origins = origins(&bench);
    bench.says(origins, &widget("a", 10));
    bench.succeed(Change::Created);
    bench.says_gone(origins, &widget("a", 20));
    bench.end_with("a", HeldFor::Withdrawn(going()));
    bench.pass(SECOND);
    assert_eq!(bench.world.kept.hub_definitions.get(WIDGETS), Some(&uid(CRD)));
}
