//! Which primaries an object leads to that is related to them: `related[].watch` of a PublishedResource, and the namespaces
//! whose labels its filter reads.
//!
//! Promises: nothing is remembered of related objects, and of a primary only by which rules it is meant, in a few bits.

use std::collections::BTreeMap;

use kube_lite::ResourceType;
use kube_lite::meta::Meta;
use serde::Deserialize;

use crate::kcp::parsed;
use crate::keys;
use crate::kinds::{Origin, Related, Watch};
use crate::route::Route;

/// A rule: its place in `spec.related`.
pub(super) type Rule = u8;

/// Instead of one of them: the filter of namespaces, in workspaces.
const NAMESPACES: Rule = Rule::MAX;

/// By which of the rules that select by labels a primary is meant, a bit for each of the first 64. By what comes after
/// them all primaries are.
pub(super) type Meant = u64;

/// The rules of a route that watch objects of this origin, and of which type these are.
pub(super) fn rules(route: &Route, origin: Origin) -> Vec<(Rule, ResourceType)> {
    let related = route.resource.related.iter().enumerate();
    let watched = related.filter(|(_, related)| related.watch.is_some() && related.origin == origin);
    let filter = &route.resource.filter.namespace;
    let namespaces = filter.as_ref().filter(|_| origin == Origin::Kcp);
    watched
        .filter_map(|(at, related)| Some((Rule::try_from(at).ok()?, type_of(related))))
        .filter(|(rule, _)| *rule != NAMESPACES)
        .chain(namespaces.map(|_| (NAMESPACES, ResourceType::namespaces())))
        .collect()
}

/// Its kind is not known, and nobody asks for it.
fn type_of(related: &Related) -> ResourceType {
    let of = related.type_on(related.origin);
    ResourceType::new([&of.group, &of.version, &of.resource, &of.resource], true)
}

/// What a rule watches, for people.
pub(super) fn named(route: &Route, rule: Rule) -> Option<String> {
    if rule == NAMESPACES {
        return Some(ResourceType::namespaces().qualified());
    }
    Some(type_of(route.resource.related.get(usize::from(rule))?).qualified())
}

/// By which rules of this origin a primary is meant that has these labels at that side.
pub(super) fn meant_by(route: &Route, origin: Origin, labels: &BTreeMap<String, String>) -> Meant {
    let is_meant = |related: &Related| match &related.watch {
        Some(Watch::BySelector(selector)) => {
            related.origin == origin && selector.holds(|key| labels.get(key).map(String::as_str))
        }
        _ => false,
    };
    let related = route.resource.related.iter().enumerate();
    let meant = related.filter(|(_, related)| is_meant(related));
    meant.fold(0, |all, (at, _)| all | bit(at).unwrap_or_default())
}

/// Whether a primary is meant by a rule that selects by labels.
pub(super) fn is_meant(meant: Meant, rule: Rule) -> bool {
    bit(rule.into()).is_none_or(|bit| meant & bit != 0)
}

fn bit(at: usize) -> Option<Meant> {
    1_u64.checked_shl(u32::try_from(at).ok()?)
}

/// To which primaries a related object leads.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LeadsTo {
    /// To none.
    Nobody,
    /// To those with these names, in its namespace.
    Owners(Vec<String>),
    /// To all that are meant by the rule; at a side with workspaces, to those in its own. Only to those in this namespace,
    /// if there is one.
    Meant(Option<String>),
}

/// To which primaries of a route an object leads that was seen by this rule. Not to those that it cannot belong to: a
/// cluster may have many other objects of its type, and each turn of a primary costs requests at both sides.
pub(super) fn leads_to(route: &Route, rule: Rule, meta: &Meta, object: &[u8]) -> LeadsTo {
    if rule == NAMESPACES {
        return LeadsTo::Meant(Some(meta.name.clone()));
    }
    let related = route.resource.related.get(usize::from(rule));
    // Each turn that changes something writes a state, of which no other primary has to know.
    let Some(related) = related.filter(|_| !meta.labels.contains_key(keys::OBJECT_STATE)) else {
        return LeadsTo::Nobody;
    };
    match related.watch {
        None => LeadsTo::Nobody,
        Some(Watch::BySelector(_)) => {
            let is_beside = related.namespace.is_none() && !meta.namespace.is_empty();
            LeadsTo::Meant(is_beside.then(|| meta.namespace.clone()))
        }
        Some(Watch::ByOwner) => {
            let primary = match related.origin {
                Origin::Kcp => route.remote(),
                Origin::Service => route.local(),
            };
            owners(primary, object)
        }
    }
}

/// The owners of this type.
fn owners(primary: &ResourceType, object: &[u8]) -> LeadsTo {
    #[derive(Deserialize)]
    struct Owned {
        metadata: References,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct References {
        #[serde(default)]
        owner_references: Vec<Reference>,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Reference {
        api_version: String,
        kind: String,
        name: String,
    }
    let Ok(owned) = parsed::<Owned>(object) else {
        return LeadsTo::Nobody;
    };
    let api_version = primary.api_version();
    let references = owned.metadata.owner_references.into_iter();
    let owners = references.filter(|owner| owner.api_version == api_version && owner.kind == primary.kind);
    let names: Vec<String> = owners.map(|owner| owner.name).collect();
    if names.is_empty() {
        LeadsTo::Nobody
    } else {
        LeadsTo::Owners(names)
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use serde_json::{Value, json};

    use super::*;
    use crate::kinds;
    use crate::route::Served;

    /// A type `Shop` that is `Store` in workspaces, with these related objects.
    fn route(related: &Value) -> Route {
        of_spec(&json!({"resource": {"apiGroup": "demo.example.org", "kind": "Shop"}, "related": related}))
    }

    fn of_spec(spec: &Value) -> Route {
        let resource = kinds::read(&json!({"metadata": {"name": "shops"}, "spec": spec})).unwrap();
        let served = Served {
            schema: "v1.stores.demo.example.org".into(),
            remote: ResourceType::new(["demo.example.org", "v2", "stores", "Store"], true),
            local: ResourceType::new(["demo.example.org", "v1", "shops", "Shop"], true),
            other_versions: Rc::default(),
            has_status: [true, true],
        };
        Route::new(Rc::new(resource), served).unwrap()
    }

    fn related(identifier: &str, origin: &str, watch: &Value) -> Value {
        let mut related = json!({
            "identifier": identifier, "origin": origin, "version": "v1", "resource": "secrets",
            "object": {"reference": {"path": "spec.secret"}},
        });
        if !watch.is_null() {
            related["watch"] = watch.clone();
        }
        related
    }

    #[test]
    fn rules_are_those_of_the_origins_side() {
        let by_owner = json!({"byOwner": {}});
        let route = route(&json!([
            related("a", "kcp", &by_owner),
            related("b", "service", &json!(null)),
            related("c", "service", &by_owner),
        ]));
        let secrets = ResourceType::new(["", "v1", "secrets", "secrets"], true);
        assert_eq!(rules(&route, Origin::Kcp), [(0, secrets.clone())]);
        assert_eq!(rules(&route, Origin::Service), [(2, secrets)]);
    }

    #[test]
    fn a_namespace_leads_to_all_that_are_in_it_where_a_filter_reads_its_labels() {
        let with = |filter: Value| {
            let spec = json!({"resource": {"apiGroup": "demo.example.org", "kind": "Shop"}, "filter": filter});
            of_spec(&spec)
        };
        let labels = json!({"matchLabels": {"open": "yes"}});
        let filtered = with(json!({"namespace": labels}));
        let [(rule, of)] = &rules(&filtered, Origin::Kcp)[..] else {
            panic!("there is one");
        };
        let meta = Meta {
            name: "shop".to_owned(),
            ..Meta::default()
        };
        assert_eq!(*of, ResourceType::namespaces());
        assert_eq!(
            leads_to(&filtered, *rule, &meta, b"{}"),
            LeadsTo::Meant(Some("shop".to_owned()))
        );
        assert!(is_meant(0, *rule) && named(&filtered, *rule).is_some());
        assert_eq!(rules(&filtered, Origin::Service), []);
        assert_eq!(rules(&with(json!({"resource": labels})), Origin::Kcp), []);
    }

    #[test]
    fn owners_are_of_the_primarys_type_at_that_side() {
        let by_owner = json!({"byOwner": {}});
        let route = route(&json!([
            related("a", "kcp", &by_owner),
            related("b", "service", &by_owner)
        ]));
        let owned = |api_version: &str, kind: &str| {
            let owner = |name: &str| json!({"apiVersion": api_version, "kind": kind, "name": name, "uid": "u"});
            let object = json!({"metadata": {"name": "s", "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}, owner("web"), owner("api"),
            ]}});
            object.to_string()
        };
        let both = || LeadsTo::Owners(vec!["web".to_owned(), "api".to_owned()]);
        let meta = Meta::default();
        for (rule, object, expected) in [
            (0, owned("demo.example.org/v2", "Store"), both()),
            (1, owned("demo.example.org/v1", "Shop"), both()),
            (0, owned("demo.example.org/v1", "Shop"), LeadsTo::Nobody),
            (1, owned("demo.example.org/v1", "Store"), LeadsTo::Nobody),
            (1, owned("demo.example.org/v2", "Shop"), LeadsTo::Nobody),
            (0, json!({"metadata": {"name": "s"}}).to_string(), LeadsTo::Nobody),
            (0, "no object".to_owned(), LeadsTo::Nobody),
            (7, owned("demo.example.org/v2", "Store"), LeadsTo::Nobody),
        ] {
            let found = leads_to(&route, rule, &meta, object.as_bytes());
            assert_eq!(found, expected, "{rule} {object}");
        }
    }

    #[test]
    fn a_primary_is_meant_by_the_rules_whose_labels_it_has() {
        let select = |color: &str| json!({"bySelector": {"matchLabels": {"color": color}}});
        let route = route(&json!([
            related("a", "kcp", &select("red")),
            related("b", "service", &select("red")),
            related("c", "kcp", &select("blue")),
            related("d", "kcp", &json!({"bySelector": {}})),
            related("e", "kcp", &json!({"byOwner": {}})),
        ]));
        let red = BTreeMap::from([("color".to_owned(), "red".to_owned())]);
        let by = |origin, labels| {
            let meant = meant_by(&route, origin, labels);
            (0..5).filter(|rule| is_meant(meant, *rule)).collect::<Vec<_>>()
        };
        assert_eq!(by(Origin::Kcp, &red), [0, 3]);
        assert_eq!(by(Origin::Service, &red), [1]);
        assert_eq!(by(Origin::Kcp, &BTreeMap::new()), [3]);
        assert!(is_meant(0, 64) && !is_meant(0, 63));
    }

    // Secrets of others on the same cluster kept an agent busy that had nothing to do.
    #[test]
    fn an_object_leads_only_to_primaries_that_it_can_belong_to() {
        let select = json!({"bySelector": {}});
        let mut elsewhere = related("b", "service", &select);
        elsewhere["object"]["namespace"] = json!({"reference": {"path": "spec.space"}});
        let route = route(&json!([related("a", "service", &select), elsewhere]));
        let meta = |namespace: &str, label: &str| Meta {
            namespace: namespace.to_owned(),
            labels: [(label.to_owned(), "true".to_owned())].into(),
            ..Meta::default()
        };
        for (rule, meta, expected) in [
            (0, meta("shop", "x"), LeadsTo::Meant(Some("shop".to_owned()))),
            // Its type has no namespaces.
            (0, meta("", "x"), LeadsTo::Meant(None)),
            (1, meta("shop", "x"), LeadsTo::Meant(None)),
            (0, meta("shop", keys::OBJECT_STATE), LeadsTo::Nobody),
            (1, meta("shop", keys::OBJECT_STATE), LeadsTo::Nobody),
        ] {
            assert_eq!(leads_to(&route, rule, &meta, b"{}"), expected, "{rule} {meta:?}");
        }
    }
}
