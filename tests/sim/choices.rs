//! What the edge's owner has chosen, as the judge knows it.

use edge_syncer::plan::Filter;

use super::run::Run;

/// What the flags of the syncers of a run say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choices {
    /// Adopted copies are deleted with their origins.
    pub delete_adopted: bool,
    /// A type that is not synced, as `resource.group`.
    pub denied: Option<&'static str>,
}

impl Choices {
    /// True for a type that is not synced.
    pub fn denies(self, qualified: &str) -> bool {
        self.denied == Some(qualified)
    }
}

impl Run {
    /// Chooses this for the syncers that are started from now on.
    pub fn choose(&mut self, choices: Choices) {
        self.policy.delete_adopted = choices.delete_adopted;
        self.filter = Filter::default();
        if let Some(denied) = choices.denied {
            let rule = format!("deny {denied}");
            self.filter.add_file("choices", &rule).expect("this is a rule");
        }
        self.ledger.borrow_mut().choices = choices;
    }
}
