//! The functions of templates: which there are, and why others are not there.

use super::builtins;
use super::function::Function;

/// The functions that templates have beside Go's own.
#[derive(Debug)]
pub struct Library {
    /// What a role has beside them.
    pub(crate) own: &'static [Function],
    /// They take the place of Go's own of the same name.
    pub(crate) tables: &'static [&'static [Function]],
    /// Why one that people may expect is not among them.
    pub(crate) refused: fn(&str) -> Option<String>,
}

impl Library {
    /// The function of this name.
    pub(crate) fn named(&self, name: &str) -> Option<&'static Function> {
        self.all().find(|function| function.name == name)
    }

    /// Why there is no such function.
    pub(crate) fn why_not(&self, name: &str) -> String {
        match (self.refused)(name) {
            Some(why) => format!("function {name:?} {why}"),
            None => format!("function {name:?} not defined"),
        }
    }

    /// All of them, Go's own last.
    pub(crate) fn all(&self) -> impl Iterator<Item = &'static Function> + use<> {
        let tables = self.tables.iter().copied();
        [self.own]
            .into_iter()
            .chain(tables)
            .chain([builtins::FUNCTIONS])
            .flatten()
    }
}
