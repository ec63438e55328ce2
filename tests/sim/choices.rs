//! What the edge's owner has chosen, as the judge knows it.

use edge_syncer::plan::Filter;

use super::run::Run;
use super::store::Key;

/// What the flags of the syncers of a run say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choices {
    /// Adopted copies are deleted with their origins.
    pub delete_adopted: bool,
    /// A type that is not synced, as `resource.group`.
    pub denied: Option<&'static str>,
    /// A namespace into which and out of which nothing is synced, and that is not made.
    pub denied_namespace: Option<&'static str>,
}

impl Choices {
    /// True for an object that is not synced.
    pub fn denies(self, key: &Key) -> bool {
        let namespace = match &*key.resource {
            "namespaces" => &key.name,
            _ => &key.namespace,
        };
        self.denied == Some(&*key.resource) || self.denied_namespace == Some(&**namespace)
    }
}

impl Run {
    /// Chooses this for the syncers that are started from now on.
    pub fn choose(&mut self, choices: Choices) {
        self.policy.delete_adopted = choices.delete_adopted;
        self.filter = Filter::default();
        if let Some(denied) = choices.denied {
            self.add_rule(&format!("deny {denied}"));
        }
        if let Some(namespace) = choices.denied_namespace {
            self.add_rule(&format!("deny-namespace {namespace}"));
        }
        self.ledger.borrow_mut().choices = choices;
    }

    fn add_rule(&mut self, rule: &str) {
        self.filter.add_file("choices", rule).expect("this is a rule");
    }
}
