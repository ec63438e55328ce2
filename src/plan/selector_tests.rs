use super::layer::WRITTEN_OUT;
use super::*;
use crate::plan::wanted::{Conversion, Triple};

#[test]
fn what_is_added_is_known_by_name_or_by_scope() {
    let these = |names: &[&str]| Names::These(names.iter().map(|&name| name.to_owned()).collect());
    let selector = |namespaces: &[(&str, Names)], implied: &[&str]| {
        let mut selector = Selector::default();
        for (namespace, names) in namespaces {
            selector.own().add(namespace, names.clone());
        }
        for name in implied {
            selector.own().imply(Rc::new(BTreeSet::from([(*name).to_owned()])));
        }
        selector
    };
    let old = selector(
        &[("a", these(&["x", "y"])), ("b", Names::All), ("", these(&["n"]))],
        &["a", "b"],
    );
    let scope = |namespace: &str, name: &str| Scope {
        namespace: (!namespace.is_empty()).then(|| namespace.into()),
        name: (!name.is_empty()).then(|| name.into()),
    };
    let check = |new: &Selector, names: &[(&str, &str)], scopes: &[(&str, &str)]| {
        let expected = Added {
            names: names.iter().map(|(of, name)| ObjectName::new(of, name)).collect(),
            scopes: scopes.iter().map(|(of, name)| scope(of, name)).collect(),
        };
        assert_eq!(new.added_to(&old), expected, "{new:?}");
    };
    check(&old, &[], &[]);
    check(&selector(&[("a", these(&["x"]))], &[]), &[], &[]);
    check(&selector(&[("b", these(&["x"]))], &["a"]), &[], &[]);
    check(
        &selector(&[("a", these(&["x", "z"])), ("c", these(&["x"]))], &["a", "c"]),
        &[("a", "z"), ("c", "x"), ("", "c")],
        &[],
    );
    // The same name, selected in another way.
    check(
        &selector(&[("", these(&["a"]))], &["a", "n"]),
        &[("", "a"), ("", "n")],
        &[],
    );
    check(
        &selector(&[("a", Names::All), ("b", Names::All)], &[]),
        &[],
        &[("a", "")],
    );
    check(&selector(&[("", Names::All)], &[]), &[], &[("", "")]);
    let mut everywhere = selector(&[("b", Names::All)], &[]);
    everywhere.own().share(Shared::new(None, Rc::new(these(&["x"]))), 1);
    check(&everywhere, &[], &[("", "x")]);
    assert_eq!(old.added_to(&everywhere).scopes, BTreeSet::new(), "less");
    everywhere.own().share(Shared::new(None, Rc::new(Names::All)), 1);
    check(&everywhere, &[], &[("", "")]);
    let many = selector(&[("a", these(&["x", "y", "z"])), ("c", these(&["x"]))], &[]).added_to(&old);
    assert_eq!(many.clone().with_names_up_to(2), many);
    let scopes = many.with_names_up_to(1).scopes;
    assert_eq!(scopes, BTreeSet::from([scope("a", ""), scope("c", "")]));
}

fn these(names: &[&str]) -> Names {
    Names::from_list(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
}

fn scopes(selector: &Selector, others: &[ObjectName]) -> Vec<(String, String)> {
    let text = |part: Option<std::rc::Rc<str>>| part.map_or("-".to_owned(), |part| part.to_string());
    selector
        .scopes(others.iter())
        .into_iter()
        .map(|scope| (text(scope.namespace), text(scope.name)))
        .collect()
}

#[test]
fn asks_for_no_more_than_is_selected() {
    let mut selector = Selector::default();
    assert!(scopes(&selector, &[]).is_empty());
    selector.own().add("shop", these(&["prices"]));
    assert_eq!(scopes(&selector, &[]), [("shop".into(), "prices".into())]);
    selector.own().add("shop", these(&["settings"]));
    assert_eq!(scopes(&selector, &[]), [("shop".into(), "-".into())]);
    selector.own().add("billing", these(&["*"]));
    assert_eq!(
        scopes(&selector, &[]),
        [("billing".into(), "-".into()), ("shop".into(), "-".into())]
    );
    for namespace in ["a", "b", "c"] {
        selector.own().add(namespace, these(&["x"]));
    }
    assert_eq!(scopes(&selector, &[]), [("-".into(), "-".into())]);
}

#[test]
fn a_copy_that_is_no_longer_selected_stays_in_view() {
    let selector = Selector::default();
    let left = [ObjectName::new("shop", "prices")];
    assert_eq!(scopes(&selector, &left), [("shop".into(), "prices".into())]);
    assert_eq!(selector.selects(&left[0]), Selection::None);
}

#[test]
fn a_namespace_can_be_implied_or_selected_whole() {
    let mut selector = Selector::default();
    selector.own().imply(Rc::new(BTreeSet::from(["shop".to_owned()])));
    selector.own().imply(Rc::new(BTreeSet::from(["billing".to_owned()])));
    selector.own().add("", these(&["billing"]));
    assert_eq!(selector.selects(&ObjectName::new("", "shop")), Selection::Implied);
    assert_eq!(selector.selects(&ObjectName::new("", "billing")), Selection::Full);
    assert_eq!(selector.selects(&ObjectName::new("", "other")), Selection::None);
}

#[test]
fn every_namespace_leaves_out_the_syncers_own_unless_it_is_named() {
    let mut selector = Selector::sparing(Some("syncer"));
    selector.own().share(Shared::new(None, Rc::new(these(&["a"]))), 1);
    assert_eq!(selector.selects(&ObjectName::new("shop", "a")), Selection::Full);
    assert_eq!(selector.selects(&ObjectName::new("shop", "b")), Selection::None);
    assert_eq!(selector.selects(&ObjectName::new("syncer", "a")), Selection::None);
    assert_eq!(selector.selects(&ObjectName::new("", "a")), Selection::None);
    assert_eq!(scopes(&selector, &[]), [("-".into(), "a".into())]);
    selector.own().add("syncer", these(&["a"]));
    assert_eq!(selector.selects(&ObjectName::new("syncer", "a")), Selection::Full);
    assert_eq!(scopes(&selector, &[]), [("-".into(), "-".into())]);
}

fn naming(names: &[(&str, &str)]) -> Rc<Naming> {
    let mut naming = Naming::default();
    for (hub, edge) in names {
        naming.add(hub, edge);
    }
    Rc::new(naming)
}

fn triple(name: &str) -> Triple {
    Triple {
        group: String::new(),
        kind: "A".to_owned(),
        name: name.to_owned(),
    }
}

/// The part of a selection that a conversion of `name` to `to` takes.
fn part_of(selector: &Selector, name: &str, to: &str, all: bool) -> Selector {
    let conversion = Conversion {
        place: crate::plan::ConfigPlace {
            config: "EdgeSyncConfig//x".into(),
            field: "conversions[0]".to_owned(),
        },
        hub: triple(name),
        edge: triple(to),
    };
    let parts = steps::whole(selector.parts(&[(name, &conversion)].into(), all));
    let mut part = Selector::default();
    for taken in parts.into_values() {
        part.extend(taken.selects);
    }
    part
}

/// `a` is `b` at the edge, and `b` is `c` there.
#[test]
fn what_one_conversion_renames_is_not_renamed_by_the_next() {
    let naming = naming(&[("a", "b"), ("b", "c")]);
    for (named, expected) in [("a", "b"), ("b", "bc"), ("c", "c"), ("d", "d")] {
        let mut selector = Selector::default();
        selector.own().add("shop", these(&[named]));
        selector.rename(&naming);
        let selects = |name: &&str| selector.selects(&ObjectName::new("shop", name)) == Selection::Full;
        let selected: String = ["a", "b", "c", "d"].into_iter().filter(selects).collect();
        assert_eq!(selected, expected, "{named}");
    }
}

#[test]
fn a_renamed_object_is_selected_under_its_other_name() {
    let mut selector = Selector::default();
    selector.own().add("", these(&["a.denatured", "b"]));
    selector.rename(&naming(&[("a.denatured", "a")]));
    assert_eq!(selector.selects(&ObjectName::new("", "a")), Selection::Full);
    assert_eq!(selector.selects(&ObjectName::new("", "a.denatured")), Selection::None);
    let part = part_of(&selector, "b", "c", true);
    assert_eq!(part.selects(&ObjectName::new("", "c")), Selection::Full);
    assert_eq!(part.selects(&ObjectName::new("", "a")), Selection::None);
    selector.own().add("", these(&["*"]));
    assert!(!part_of(&selector, "x", "x", true).is_empty());
    assert!(part_of(&selector, "x", "x", false).is_empty());
}

#[test]
fn a_star_among_names_means_all() {
    let mut selector = Selector::default();
    selector.own().add("shop", these(&["a", "*"]));
    assert_eq!(selector.selects(&ObjectName::new("shop", "b")), Selection::Full);
    assert_eq!(selector.selects(&ObjectName::new("else", "b")), Selection::None);
}

// Seed 1303805 of the simulation: one config named what another kind becomes, and another one all of the namespace.
#[test]
fn what_is_named_besides_all_is_still_named() {
    type Fill = fn(&mut Layer, Names);
    let everywhere: Fill = |layer, names| layer.share(Shared::new(None, Rc::new(names)), 1);
    let within: Fill = |layer, names| {
        let namespaces = Some(Rc::new(BTreeSet::from(["shop".to_owned()])));
        layer.share(Shared::new(namespaces, Rc::new(names)), 1);
    };
    let extended: Fill = |layer, names| {
        let mut other = Layer::default();
        other.add("shop", names);
        layer.extend(other);
    };
    let added: Fill = |layer, names| layer.add("shop", names);
    for fill in [everywhere, within, extended, added] {
        for order in [["a", "*"], ["*", "a"]] {
            let mut selector = Selector::default();
            for name in order {
                fill(selector.own(), these(&[name]));
            }
            let mut all = Selector::default();
            fill(all.own(), these(&["*"]));
            assert_eq!(selector, all, "it selects no more");
            let mut whole = Selector::default();
            whole.extend(std::mem::take(selector.own()));
            let selects = |part: &Selector, name: &str| part.selects(&ObjectName::new("shop", name));
            let part = part_of(&whole, "a", "b", false);
            assert_eq!(selects(&part, "b"), Selection::Full, "{order:?}");
            assert_eq!(selects(&part, "a"), Selection::None, "{order:?}");
            assert!(part_of(&whole, "c", "b", false).is_empty());
            assert_eq!(part_of(&whole, "a", "b", true), part_of(&all, "a", "b", true));
        }
    }
}

/// Whether it is written out or shared makes no difference.
#[test]
fn what_is_shared_selects_the_same() {
    for count in [2, WRITTEN_OUT + 1] {
        let namespaces: BTreeSet<String> = (0..count).map(|index| format!("n{index}")).collect();
        let shared = |names: Names| Shared::new(Some(Rc::new(namespaces.clone())), Rc::new(names));
        let mut selector = Selector::default();
        selector.own().share(shared(these(&["a", "b"])), 1);
        assert_eq!(selector.own().shared.is_empty(), count == 2, "{count}");
        let selects = |selector: &Selector, namespace: &str, name: &str| {
            selector.selects(&ObjectName::new(namespace, name)) == Selection::Full
        };
        assert!(selects(&selector, "n1", "a") && !selects(&selector, "n1", "c") && !selects(&selector, "m", "a"));
        assert!(!selector.is_empty());
        assert_eq!(scopes(&selector, &[]).len(), if count == 2 { 2 } else { 1 });
        selector.rename(&naming(&[("a", "c")]));
        assert!(!selects(&selector, "n1", "a") && selects(&selector, "n1", "c"));
        let part = part_of(&selector, "a", "d", false);
        assert!(selects(&part, "n1", "d") && !selects(&part, "n1", "b") && !selects(&part, "m", "d"));
        assert!(part_of(&selector, "x", "d", true).is_empty());
        // All that is in them is more than before, and one that is added is listed alone where few are.
        let mut more = selector.clone();
        more.own().share(shared(Names::All), 1);
        assert!(!more.added_to(&selector).is_empty());
        assert!(more.added_to(&more).is_empty() && selector.added_to(&more).names.is_empty());
    }
    let mut everywhere = Selector::sparing(Some("own"));
    let many: Vec<String> = (0..=WRITTEN_OUT).map(|index| format!("a{index}")).collect();
    everywhere
        .own()
        .share(Shared::new(None, Rc::new(Names::from_list(&many))), 1);
    assert!(!everywhere.own().shared.is_empty());
    for (namespace, name, expected) in [
        ("shop", "a7", Selection::Full),
        ("shop", "b", Selection::None),
        ("own", "a7", Selection::None),
        ("", "a7", Selection::None),
    ] {
        assert_eq!(
            everywhere.selects(&ObjectName::new(namespace, name)),
            expected,
            "{namespace}/{name}"
        );
    }
    assert_eq!(scopes(&everywhere, &[]), [("-".into(), "-".into())]);
}

#[test]
fn what_is_named_with_its_namespace_differs_where_that_matters() {
    let one = || Names::These(BTreeSet::from(["kubernetes".to_owned()]));
    let within = |namespace: &str| Rc::new(BTreeSet::from([namespace.to_owned()]));
    let it = ObjectName::new("default", "kubernetes");
    let check = |fill: &dyn Fn(&mut Selector), expected| {
        let (mut plain, mut telling) = (Selector::default(), Selector::default().telling_named());
        fill(&mut plain);
        fill(&mut telling);
        assert_eq!(telling.selects(&it), expected, "{telling:?}");
        assert_eq!(plain.selects(&it).is_whole(), expected.is_whole(), "{plain:?}");
        assert_ne!(plain.selects(&it), Selection::Named);
    };
    check(&|_| {}, Selection::None);
    check(&|all| all.own().add("default", Names::All), Selection::Full);
    check(&|all| all.own().add("default", one()), Selection::Named);
    check(
        &|all| {
            all.own().add("default", one());
            all.own().add("default", Names::All);
        },
        Selection::Named,
    );
    check(
        &|all| all.own().share(Shared::new(None, Rc::new(one())), 1),
        Selection::Full,
    );
    check(
        &|all| all.own().share(Shared::new(Some(within("default")), Rc::new(one())), 1),
        Selection::Named,
    );
    check(
        &|all| {
            all.own()
                .share(Shared::new(Some(within("default")), Rc::new(Names::All)), 1);
        },
        Selection::Full,
    );
    // A config that names what others select with everything: it has to be read once more.
    let (mut old, mut new) = (Selector::default().telling_named(), Selector::default().telling_named());
    old.own().add("default", Names::All);
    new.own().add("default", Names::All);
    new.own().add("default", one());
    assert_eq!(new.added_to(&old).names, [it]);
}
