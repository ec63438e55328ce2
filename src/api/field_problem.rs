//! What is said of an entry of a config that cannot be followed, or selects nothing.

use serde::Serialize;

/// A part of a config, and what is said of it.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldProblem {
    /// Where: `spec.upsync[0].resources[1]`.
    pub field: String,
    /// What is wrong, and what may be meant.
    pub message: String,
    /// Since when the hub has known it, in RFC 3339: that is filled in when it is written.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub since: String,
}

impl FieldProblem {
    /// The same where several configs are spoken of.
    pub(super) fn of(&self, config: &str) -> Self {
        Self {
            field: format!("{config}: {}", self.field),
            ..self.clone()
        }
    }

    /// Since when the same has been among these; `None` if it is not.
    pub(super) fn since_in<'a>(&self, mut known: impl Iterator<Item = &'a Self>) -> Option<&'a str> {
        let same = known.find(|known| (&known.field, &known.message) == (&self.field, &self.message))?;
        Some(&*same.since).filter(|since| !since.is_empty())
    }
}
