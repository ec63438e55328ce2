//! PublishedResources that want the same: to be one type in workspaces, or to sync the objects of one type of the service
//! cluster. The labels of a copy do not say by which of them it was made, so two would take it for their own.
//!
//! Promises: the older one has it, once it is published; the other is refused, and by that nothing is written or deleted. One
//! that is refused, or cannot be published, refuses no other.

use std::rc::Rc;

use crate::kinds::PublishedResource;
use crate::route::Served;
use crate::trouble::{Cause, Trouble};

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claimant<'a> {
    pub(crate) resource: &'a PublishedResource,
    /// Its types, if it is published.
    pub(crate) served: Option<&'a Served>,
    /// It was published as it is, or that has failed.
    pub(crate) is_tried: bool,
}

/// Whether one may be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum May {
    /// It may.
    Publish,
    /// An older one, of which the type is not known yet, may want the same.
    Wait,
    /// This one has it.
    NotBeside(Rc<str>),
}

impl Claimant<'_> {
    fn plural(&self) -> Option<String> {
        let projection = &self.resource.projection;
        let of_kind = || projection.kind.as_ref().map(|kind| format!("{}s", kind.to_lowercase()));
        let served = self.served.map(|served| served.remote.resource.clone());
        served.or_else(|| projection.plural.clone()).or_else(of_kind)
    }

    fn group(&self) -> &str {
        let resource = self.resource;
        let projected = resource.projection.group.as_ref().unwrap_or(&resource.source.group);
        self.served.map_or(projected, |served| &*served.remote.group)
    }

    /// Whether it wants what another one wants, if that is known.
    fn wants_that_of(&self, other: &Self) -> Option<bool> {
        let [one, two] = [&self.resource.source, &other.resource.source];
        let is_one_source = (&one.group, &one.kind) == (&two.group, &two.kind);
        if is_one_source && self.resource.is_synced && other.resource.is_synced {
            return Some(true);
        }
        if self.group() != other.group() {
            return Some(false);
        }
        // Each has the name of its kind.
        if one.group == two.group && !self.is_renamed() && !other.is_renamed() {
            return Some(is_one_source);
        }
        Some(self.plural()? == other.plural()?)
    }

    fn is_renamed(&self) -> bool {
        let projection = &self.resource.projection;
        projection.plural.is_some() || projection.kind.is_some()
    }
}

/// How it stands with each of them, in their order.
pub(crate) fn allowed(all: &[Claimant<'_>]) -> Vec<May> {
    let mut by_age: Vec<usize> = (0..all.len()).collect();
    by_age.sort_by_key(|at| (&all[*at].resource.created, &all[*at].resource.name));
    let (mut found, mut older): (Vec<May>, Vec<Claimant<'_>>) = (vec![May::Publish; all.len()], Vec::new());
    for at in by_age {
        let one = all[at];
        let mut rivals = older.iter().filter(|other| one.wants_that_of(other) != Some(false));
        let has_it = |other: &&Claimant<'_>| other.served.is_some() && one.wants_that_of(other) == Some(true);
        found[at] = match rivals.clone().find(has_it) {
            Some(by) => May::NotBeside(by.resource.name.as_str().into()),
            None if rivals.any(|other| !other.is_tried) => May::Wait,
            None => May::Publish,
        };
        if !matches!(found[at], May::NotBeside(_)) {
            older.push(one);
        }
    }
    found
}

/// What to do about one that is refused.
pub(crate) const ADVICE: &str = "delete one of the two, or give this one another type: it is tried at once then";

/// Why one is refused.
pub(crate) fn refusal(by: &str) -> String {
    format!("the PublishedResource {by}, which is older, is about the same type")
}

/// The same as something that is reported.
pub(crate) fn trouble(by: &str) -> Trouble {
    Trouble {
        doing: "publishing the type",
        object: String::new(),
        words: refusal(by),
        advice: ADVICE,
        cause: Cause::Rules,
        shared: None,
    }
}

#[cfg(test)]
mod tests {
    use kube_lite::ResourceType;
    use serde_json::{Value, json};

    use super::*;
    use crate::kinds::read;

    fn resource(name: &str, created: u32, [group, kind]: [&str; 2], more: &Value) -> PublishedResource {
        let mut spec = json!({"resource": {"apiGroup": group, "kind": kind}});
        spec.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        let created = format!("2026-01-01T00:00:{created:02}Z");
        read(&json!({"metadata": {"name": name, "creationTimestamp": created}, "spec": spec})).unwrap()
    }

    /// What becomes of one when it is published.
    fn served(resource: &PublishedResource) -> Served {
        let plural = |kind: &str| format!("{}s", kind.to_lowercase());
        let (source, projection) = (&resource.source, &resource.projection);
        let of_kind = plural(projection.kind.as_ref().unwrap_or(&source.kind));
        let in_kcp = [
            projection.group.as_ref().unwrap_or(&source.group),
            "v1",
            projection.plural.as_ref().unwrap_or(&of_kind),
            "Kind",
        ];
        Served {
            schema: "v1.x".into(),
            remote: ResourceType::new(in_kcp, true),
            local: ResourceType::new([&source.group, "v1", &plural(&source.kind), "Kind"], true),
            other_versions: Rc::default(),
            has_status: [true, true],
        }
    }

    /// How it stands once all of them were tried, and these could be published.
    fn stand(all: &[PublishedResource], are_served: impl Fn(&str) -> bool) -> Vec<May> {
        let types: Vec<Served> = all.iter().map(served).collect();
        let claimants = all.iter().zip(&types).map(|(resource, served)| Claimant {
            resource,
            served: are_served(&resource.name).then_some(served),
            is_tried: true,
        });
        allowed(&claimants.collect::<Vec<_>>())
    }

    const SHOP: [&str; 2] = ["g", "Shop"];
    const CART: [&str; 2] = ["g", "Cart"];

    #[test]
    fn of_two_that_want_the_same_the_older_one_has_it() {
        let projected = |group: &str, plural: &str| json!({"projection": {"group": group, "plural": plural}});
        let only_published = |group: &str, plural: &str| json!({"projection": {"group": group, "plural": plural}, "synchronization": {"enabled": false}});
        let filtered = |label: &str| json!({"filter": {"resource": {"matchLabels": {"a": label}}}});
        let none = json!({});
        for (first, second, is_refused) in [
            // One source: the copies of both have the same labels, whatever they are in workspaces.
            ((SHOP, &none), (SHOP, &none), true),
            ((SHOP, &projected("x", "a")), (SHOP, &projected("y", "b")), true),
            ((SHOP, &filtered("b")), (SHOP, &filtered("c")), true),
            // Two sources that are one type there.
            ((SHOP, &projected("x", "a")), (CART, &projected("x", "a")), true),
            (
                (SHOP, &only_published("x", "a")),
                (CART, &only_published("x", "a")),
                true,
            ),
            (
                (SHOP, &json!({"projection": {"kind": "Store"}})),
                (CART, &projected("g", "stores")),
                true,
            ),
            // One source, synced by one of them, and two types.
            ((SHOP, &projected("x", "a")), (SHOP, &only_published("x", "b")), false),
            ((SHOP, &none), (CART, &none), false),
            ((SHOP, &none), (["h", "Shop"], &none), false),
            ((SHOP, &projected("x", "a")), (CART, &projected("x", "b")), false),
        ] {
            let older = resource("z", 1, first.0, first.1);
            let younger = resource("a", 2, second.0, second.1);
            let expected = if is_refused {
                May::NotBeside("z".into())
            } else {
                May::Publish
            };
            let what = format!("{first:?} {second:?}");
            assert_eq!(
                stand(&[younger.clone(), older.clone()], |_| true),
                [expected, May::Publish],
                "{what}"
            );
            // It holds up nobody as long as it is wrong.
            let alone = stand(&[younger, older.clone()], |name| name != "z");
            assert_eq!(alone, [May::Publish, May::Publish], "{what}");
            // Of one age, the name decides.
            let twin = resource("zz", 1, second.0, second.1);
            let found = stand(&[older, twin], |_| true);
            assert_eq!(matches!(found[1], May::NotBeside(_)), is_refused, "{what}");
        }
    }

    #[test]
    fn one_that_is_refused_refuses_no_other() {
        let both = json!({"projection": {"group": "x", "plural": "a"}});
        let all = [
            resource("a", 1, SHOP, &json!({})),
            resource("b", 2, SHOP, &both),
            resource("c", 3, CART, &both),
        ];
        let expected = [May::Publish, May::NotBeside("a".into()), May::Publish];
        assert_eq!(stand(&all, |_| true), expected);
    }

    #[test]
    fn what_an_older_one_may_want_is_waited_for_until_it_was_tried() {
        let renamed = json!({"projection": {"plural": "carts"}});
        for (first, second, waits, waits_when_served) in [
            ((SHOP, json!({})), SHOP, true, true),
            // Which plural the other kind has is not known yet.
            ((SHOP, renamed.clone()), CART, true, true),
            ((SHOP, renamed.clone()), ["g", "Pen"], true, false),
            ((SHOP, json!({})), CART, false, false),
            ((SHOP, renamed), ["h", "Cart"], false, false),
        ] {
            let all = [
                resource("a", 1, first.0, &first.1),
                resource("b", 2, second, &json!({})),
            ];
            for (served, waits) in [(None, waits), (Some(served(&all[1])), waits_when_served)] {
                let claimant = |resource, served| Claimant {
                    resource,
                    served,
                    is_tried: false,
                };
                let found = allowed(&[claimant(&all[0], None), claimant(&all[1], served.as_ref())]);
                let expected = if waits { May::Wait } else { May::Publish };
                assert_eq!(found, [May::Publish, expected], "{first:?} {second:?} {served:?}");
            }
        }
    }
}
