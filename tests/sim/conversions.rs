//! What objects are called at the other side: the conversions of `EdgeSyncConfig`s, written here a second time. All
//! that the judge knows of other names is here.

use std::fmt;
use std::rc::Rc;

use edge_syncer::side::Side;
use serde_json::Value;

use super::store::{Key, Store};

/// The kind of configs that have conversions, as `resource.group`.
pub const NAMERS: &str = "edgesyncconfigs.edge.kubestellar.io";
/// The annotation of a copy that is called otherwise than its origin: `<Kind>.<group>/<name>` of the origin.
pub const RENAMED_FROM: &str = "edge.kubestellar.io/renamed-from";

/// What one side calls an object, in whatever namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Called {
    resource: Rc<str>,
    name: Rc<str>,
}

impl Called {
    fn of(reference: &Value) -> Self {
        let text = |field: &str| reference[field].as_str().unwrap_or_default();
        Self {
            resource: qualified(text("kind"), text("group")).into(),
            name: text("name").into(),
        }
    }

    fn is(&self, key: &Key) -> bool {
        (&self.resource, &self.name) == (&key.resource, &key.name)
    }

    fn within(&self, namespace: &Rc<str>) -> Key {
        Key {
            resource: Rc::clone(&self.resource),
            namespace: Rc::clone(namespace),
            name: Rc::clone(&self.name),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Conversion {
    hub: Called,
    edge: Called,
}

/// The conversions that are in force at one time. None are where no config has any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conversions(Vec<Conversion>);

impl Conversions {
    /// Those that the hub's configs have now.
    pub fn at(hub: &Store) -> Self {
        Self::of_specs(hub.of(NAMERS, "").map(|(_, config)| &config["spec"]))
    }

    /// Those of these configs, in the order of their names. Of two that contradict each other the first counts.
    pub fn of_specs<'a>(specs: impl Iterator<Item = &'a Value>) -> Self {
        let mut all: Vec<Conversion> = Vec::new();
        for item in specs.flat_map(|spec| spec["conversions"].as_array().into_iter().flatten()) {
            let conversion = Conversion {
                hub: Called::of(&item["upstream"]),
                edge: Called::of(&item["downstream"]),
            };
            let contradicts = |known: &Conversion| known.hub == conversion.hub || known.edge == conversion.edge;
            if conversion.hub != conversion.edge && !all.iter().any(contradicts) {
                all.push(conversion);
            }
        }
        Self(all)
    }

    /// The pairs of types of which one side has the one where the other has the other.
    pub fn pairs_of_types(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self
            .0
            .iter()
            .map(|conversion| (&*conversion.hub.resource, &*conversion.edge.resource));
        pairs.filter(|(hub, edge)| hub != edge)
    }

    /// What the edge calls an object of the hub. `None` if it has no place there: another object is called as it is.
    pub fn at_edge(&self, hub: &Key) -> Option<Key> {
        self.across(hub, |conversion| (&conversion.hub, &conversion.edge))
    }

    /// What the hub calls an object of the edge. `None` if it has no place there.
    pub fn at_hub(&self, edge: &Key) -> Option<Key> {
        self.across(edge, |conversion| (&conversion.edge, &conversion.hub))
    }

    /// What `side` calls the object that the other side calls `key`.
    pub fn at_side(&self, side: Side, key: &Key) -> Option<Key> {
        match side {
            Side::Hub => self.at_hub(key),
            Side::Edge => self.at_edge(key),
        }
    }

    fn across(&self, key: &Key, here_and_there: fn(&Conversion) -> (&Called, &Called)) -> Option<Key> {
        let mut all = self.0.iter().map(here_and_there);
        if let Some((_, there)) = all.clone().find(|(here, _)| here.is(key)) {
            return Some(there.within(&key.namespace));
        }
        let is_taken = all.any(|(_, there)| there.is(key));
        (!is_taken).then(|| key.clone())
    }
}

impl fmt::Display for Conversions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Conversion { hub, edge } in &self.0 {
            write!(f, " {}/{} -> {}/{}", hub.resource, hub.name, edge.resource, edge.name)?;
        }
        Ok(())
    }
}

/// What the origin of a copy is called: as the copy itself, unless it says otherwise. That is true also of a copy from
/// before a conversion that says otherwise now: it stays that origin's.
pub fn origin_of(copy: &Key, object: &Value) -> Key {
    let from = object["metadata"]["annotations"][RENAMED_FROM].as_str();
    let Some((kind, name)) = from.and_then(|from| from.split_once('/')) else {
        return copy.clone();
    };
    let (kind, group) = kind.split_once('.').unwrap_or((kind, ""));
    Key::new(&qualified(kind, group), &copy.namespace, name)
}

/// `resource.group` of a kind. The plurals of all kinds in the simulation are regular, but for the stories', which are
/// called as their plurals with a K before.
pub fn qualified(kind: &str, group: &str) -> String {
    let plural = match kind.strip_prefix('K') {
        Some(plural) => plural.to_owned(),
        None => match kind.to_lowercase() {
            singular if singular.ends_with('y') => format!("{}ies", &singular[..singular.len() - 1]),
            singular => format!("{singular}s"),
        },
    };
    match group {
        "" => plural,
        group => format!("{plural}.{group}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn maps(pairs: &[(&str, &str)]) -> Conversions {
        let of = |name: &str| json!({"kind": "ConfigMap", "name": name});
        let pair = |(hub, edge): &(&str, &str)| json!({"upstream": of(hub), "downstream": of(edge)});
        let spec = json!({"conversions": pairs.iter().map(pair).collect::<Vec<_>>()});
        Conversions::of_specs([&spec].into_iter())
    }

    fn map(name: &str) -> Key {
        Key::new("configmaps", "shop", name)
    }

    #[test]
    fn each_side_calls_an_object_as_the_first_conversion_says_and_nothing_else_has_its_name() {
        let renamed = maps(&[("a", "x"), ("a", "y"), ("b", "x"), ("b", "c")]);
        assert_eq!(renamed.at_edge(&map("a")), Some(map("x")));
        assert_eq!(renamed.at_hub(&map("x")), Some(map("a")));
        assert_eq!(renamed.at_edge(&map("x")), None, "its name is taken at the edge");
        assert_eq!(renamed.at_hub(&map("a")), None, "its name is taken at the hub");
        assert_eq!(renamed.at_edge(&map("b")), Some(map("c")));
        assert_eq!(renamed.at_edge(&map("y")), Some(map("y")));
        let panel = Key::new("panels.example.org", "", "a");
        assert_eq!(renamed.at_edge(&panel), Some(panel.clone()));
        let swapped = maps(&[("a", "b"), ("b", "a")]);
        assert_eq!(swapped.at_edge(&map("a")), Some(map("b")));
        assert_eq!(swapped.at_hub(&map("a")), Some(map("b")));
    }
}
