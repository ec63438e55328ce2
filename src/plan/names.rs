//! Names of objects, as configs list them.

use std::collections::BTreeSet;

/// The config's word for "all".
pub(super) const ALL: &str = "*";

/// A set of names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Names {
    /// Every name.
    All,
    /// These names.
    These(BTreeSet<String>),
}

impl Default for Names {
    fn default() -> Self {
        Self::These(BTreeSet::new())
    }
}

impl Names {
    /// The names as a config lists them: `*` anywhere among them means all.
    pub(super) fn from_list(names: &[String]) -> Self {
        if names.iter().any(|name| name == ALL) {
            Self::All
        } else {
            Self::These(names.iter().cloned().collect())
        }
    }

    /// True if `name` is one of them.
    pub fn contains(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::These(names) => names.contains(name),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::These(names) if names.is_empty())
    }

    /// How many names it contains.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::All => 1,
            Self::These(names) => names.len(),
        }
    }

    /// Adds these. Returns the names that are only some of all now.
    pub(super) fn extend(&mut self, other: Self) -> BTreeSet<String> {
        match (&mut *self, other) {
            (Self::These(names), Self::These(more)) => {
                names.extend(more);
                BTreeSet::new()
            }
            (Self::These(names), Self::All) => {
                let names = std::mem::take(names);
                *self = Self::All;
                names
            }
            (Self::All, Self::These(names)) => names,
            (Self::All, Self::All) => BTreeSet::new(),
        }
    }

    pub(super) fn single(&self) -> Option<&str> {
        match self {
            Self::These(names) if names.len() == 1 => names.first().map(String::as_str),
            _ => None,
        }
    }
}
