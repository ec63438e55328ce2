//! Whose a copy is, and what its marks say (spec 3.3, 3.6; DESIGN section 4).

use std::collections::BTreeMap;

use crate::api::{ADOPTED, DOWNSYNC_OVERWRITE, DOWNSYNCED, DOWNSYNCED_SELECTOR, UPSYNCED, UPSYNCED_SELECTOR};
use crate::cluster::ObjectName;
use crate::plan::Direction;

/// Key of the annotation and the label that mark the copies of a direction.
pub fn mark(direction: Direction) -> &'static str {
    match direction {
        Direction::Down => DOWNSYNCED,
        Direction::Up => UPSYNCED,
    }
}

/// The label selector of the copies of a direction.
pub fn mark_selector(direction: Direction) -> &'static str {
    match direction {
        Direction::Down => DOWNSYNCED_SELECTOR,
        Direction::Up => UPSYNCED_SELECTOR,
    }
}

/// A copy, or an object in a copy's place, as far as decisions about it go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copy {
    /// Whether it exists, and whose it is.
    pub state: CopyState,
    /// Its own `downsync-overwrite` says that its content is left alone.
    pub hands_off: bool,
    /// It was there before it was selected.
    pub adopted: bool,
    /// It is being deleted.
    pub terminating: bool,
}

/// Whether an object exists in a copy's place, and whose it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CopyState {
    /// There is none.
    #[default]
    Absent,
    /// It carries the exact ownership value of its own identity.
    Ours,
    /// It exists and is somebody else's: no ownership annotation, or one that names another object.
    Foreign,
}

impl Copy {
    /// Reads the marks of an existing object called `name` of `kind`, as a copy of that direction.
    pub fn from_annotations(
        direction: Direction,
        kind: &str,
        name: &ObjectName,
        annotations: &BTreeMap<String, String>,
        terminating: bool,
    ) -> Self {
        let exact = annotations
            .get(mark(direction))
            .is_some_and(|value| *value == name.of_kind(kind).to_string());
        Self {
            state: if exact { CopyState::Ours } else { CopyState::Foreign },
            // At the hub these annotations are what the edge has, or people: upsync adopts nothing and has no hands-off.
            hands_off: direction == Direction::Down && is_hands_off(annotations),
            adopted: direction == Direction::Down && annotations.get(ADOPTED).is_some_and(|value| value == "true"),
            terminating,
        }
    }
}

/// True if `downsync-overwrite` has any other value than empty, absent or `true` (spec 3.6).
pub fn is_hands_off(annotations: &BTreeMap<String, String>) -> bool {
    annotations
        .get(DOWNSYNC_OVERWRITE)
        .is_some_and(|value| !value.is_empty() && value != "true")
}

/// Namespaces that are never deleted, whatever marks they carry (spec 3.2).
pub fn is_protected_namespace(name: &str, own: Option<&str>) -> bool {
    name == "default" || name.starts_with("kube-") || own == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotations(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|&(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    }

    #[test]
    fn only_the_exact_value_of_the_object_itself_is_ownership() {
        let name = ObjectName::new("shop", "web-1");
        for (value, expected) in [
            (Some("ReplicaSet/shop/web-1"), CopyState::Ours),
            // Copied by the Deployment controller from the Deployment to its ReplicaSet.
            (Some("Deployment/shop/web"), CopyState::Foreign),
            (Some("true"), CopyState::Foreign),
            (Some(""), CopyState::Foreign),
            (Some("ReplicaSet/shop/web-1 "), CopyState::Foreign),
            (None, CopyState::Foreign),
        ] {
            let annotations: BTreeMap<_, _> = value
                .map(|value| (DOWNSYNCED.to_owned(), value.to_owned()))
                .into_iter()
                .collect();
            assert_eq!(
                Copy::from_annotations(Direction::Down, "ReplicaSet", &name, &annotations, false).state,
                expected,
                "{value:?}"
            );
        }
    }

    #[test]
    fn what_an_upsynced_object_says_about_downsync_is_nothing() {
        let name = ObjectName::new("shop", "a");
        let annotations = annotations(&[
            (UPSYNCED, "ConfigMap/shop/a"),
            (DOWNSYNC_OVERWRITE, "false"),
            (ADOPTED, "true"),
        ]);
        let copy = Copy::from_annotations(Direction::Up, "ConfigMap", &name, &annotations, false);
        assert_eq!(copy.state, CopyState::Ours);
        assert!(!copy.hands_off && !copy.adopted);
    }

    #[test]
    fn overwrite_is_on_unless_it_says_otherwise() {
        for (value, expected) in [
            ("", false),
            ("true", false),
            ("false", true),
            ("False", true),
            ("no", true),
        ] {
            assert_eq!(
                is_hands_off(&annotations(&[(DOWNSYNC_OVERWRITE, value)])),
                expected,
                "{value:?}"
            );
        }
        assert!(!is_hands_off(&annotations(&[])));
    }

    #[test]
    fn system_namespaces_are_protected() {
        for (name, expected) in [
            ("default", true),
            ("kube-system", true),
            ("kube-public", true),
            ("syncer", true),
            ("shop", false),
        ] {
            assert_eq!(is_protected_namespace(name, Some("syncer")), expected, "{name}");
        }
    }
}
