//! Why something was not done, in words: what failed, on which object and side, the server's words, and what to do.

use std::fmt;

use kube_lite::Error;

use crate::sides::Side;

/// Why work ends early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It has failed: again after a back-off.
    Fails(Box<Trouble>),
    /// A side did not answer.
    Unreachable(Side, Error),
    /// Something has changed in between: again at once.
    Again,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// What was to be done.
    pub(crate) doing: &'static str,
    /// The object that it was done to, and its side; empty if it is that which the work is about.
    pub(crate) object: String,
    /// The words of the server, or our own.
    pub(crate) words: String,
    /// What to do.
    pub(crate) advice: &'static str,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            doing,
            object,
            words,
            advice,
        } = self;
        f.write_str(doing)?;
        if !object.is_empty() {
            write!(f, " {object}")?;
        }
        write!(f, ": {words}; {advice}")
    }
}

impl Stop {
    /// A request to a side has failed.
    pub(crate) fn of(side: Side, doing: &'static str, object: impl Into<String>, error: Error) -> Self {
        if error.is_unreachable() {
            return Self::Unreachable(side, error);
        }
        if error.is_conflict() && !error.is_already_there() {
            return Self::Again;
        }
        Self::Fails(Box::new(Trouble {
            doing,
            object: object.into(),
            words: error.to_string(),
            advice: advice(side, &error),
        }))
    }

    /// Something is wrong that no server has said.
    pub(crate) fn because(doing: &'static str, words: impl Into<String>, advice: &'static str) -> Self {
        Self::Fails(Box::new(Trouble {
            doing,
            object: String::new(),
            words: words.into(),
            advice,
        }))
    }
}

/// What to do about a refusal.
fn advice(side: Side, error: &Error) -> &'static str {
    let code = error.status().map_or(0, |status| status.code);
    match (code, side) {
        (403, _) if error.is_denial() => "the named webhook refuses it: change the object, or the webhook's rules",
        (403, Side::Service) => "allow the agent's user this on the service cluster; docs/publish.md has the rules",
        (403, Side::Export | Side::Slices) => {
            "allow the agent's user this in the workspace of the export; docs/publish.md has the rules"
        }
        (403 | 404, Side::Shard(_)) => "the consumer has to accept the export's permission claims in its APIBinding",
        (400 | 422, Side::Service) => {
            "the service cluster's type does not take it: see naming, mutation and projection of the PublishedResource"
        }
        (400 | 422, _) => "the type in kcp does not take it: see mutation and projection of the PublishedResource",
        (413, _) => "the object is too large",
        _ => "it is tried again",
    }
}
