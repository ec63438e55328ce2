//! Why something was not done, in words: what failed, on which object and side, the server's words, and what to do.

use std::fmt;

use driver::advice::is_terminating;
use kube_lite::Error;

use crate::kcp;
use crate::path::DEEPEST_OBJECT;
use crate::sides::Side;

/// Why work ends early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It has failed: again after a back-off.
    Fails(Box<Trouble>),
    /// A side did not answer.
    Unreachable(Side, Error),
    /// Something has changed in between: again at once. What is wrong if it does so all the time.
    Again(Box<Trouble>),
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
    /// Of which kind it is.
    pub(crate) cause: Cause,
    /// What all that is done at a side fails for, if it is that.
    pub(crate) shared: Option<&'static str>,
}

/// Of which kind a trouble is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The object does not fit the rules.
    Rules,
    /// A server does not let the agent do this, or does not serve the type.
    Denied,
    /// Anything else that a server has said.
    Refused,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            doing,
            object,
            words,
            advice,
            ..
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
        let trouble = Box::new(Trouble {
            doing,
            object: object.into(),
            words: error.to_string(),
            advice: advice(side, &error),
            cause: if error.is_type_not_served() || error.is_forbidden() && !error.is_denial() && !is_going(&error) {
                Cause::Denied
            } else {
                Cause::Refused
            },
            shared: error.is_unauthorized().then_some(credentials(side)),
        });
        if error.is_conflict() && !error.is_already_there() {
            Self::Again(trouble)
        } else {
            Self::Fails(trouble)
        }
    }

    /// The same where the content of an object, a copy or a related object is read. One that is nested too deep is no fault
    /// of its server.
    pub(crate) fn of_content(side: Side, doing: &'static str, object: impl Into<String>, error: Error) -> Self {
        let is_too_deep = kcp::is_too_deep(&error);
        let mut stop = Self::of(side, doing, object, error);
        if let Self::Fails(trouble) = &mut stop
            && is_too_deep
        {
            trouble.words = format!("it is nested deeper than {DEEPEST_OBJECT} levels, its managedFields included");
            trouble.advice = FLATTER;
        }
        stop
    }

    /// Something has changed in between, or is known by now, so that all has to be read again.
    pub(crate) fn again(doing: &'static str) -> Self {
        Self::Again(Box::new(Trouble {
            doing,
            object: String::new(),
            words: "it changes all the time".to_owned(),
            advice: "see who else writes it",
            cause: Cause::Refused,
            shared: None,
        }))
    }

    /// A request for a published object in its workspace has failed. No claim of the export is about it.
    pub(crate) fn of_primary(side: Side, doing: &'static str, error: Error) -> Self {
        let code = error.status().map_or(0, |status| status.code);
        let is_denial = error.is_denial();
        let mut stop = Self::of_content(side, doing, "", error);
        if let Self::Fails(trouble) = &mut stop
            && !is_denial
        {
            match code {
                403 => trouble.advice = CONTENT,
                404 => trouble.advice = "it continues by itself when the workspace serves the type",
                _ => {}
            }
        }
        stop
    }

    /// True if the object does not fit the rules: trying again changes nothing.
    pub(crate) fn is_of_rules(&self) -> bool {
        matches!(self, Self::Fails(trouble) if trouble.cause == Cause::Rules)
    }

    /// True if a server does not let the agent do this, or does not serve the type: such as what is claimed, where the
    /// consumer does not accept that.
    pub(crate) fn is_denied(&self) -> bool {
        matches!(self, Self::Fails(trouble) if trouble.cause == Cause::Denied)
    }

    /// Something is wrong that no server has said.
    pub(crate) fn because(doing: &'static str, words: impl Into<String>, advice: &'static str) -> Self {
        Self::Fails(Box::new(Trouble {
            doing,
            object: String::new(),
            words: words.into(),
            advice,
            cause: Cause::Rules,
            shared: None,
        }))
    }
}

/// What has come of one of several things that do not depend on each other. Of those that fail, the first is kept, and the
/// others go on; what everything depends on ends all.
pub(crate) fn passed<T>(result: Result<T, Stop>, failure: &mut Option<Stop>) -> Result<Option<T>, Stop> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(stop @ Stop::Fails(_)) => {
            failure.get_or_insert(stop);
            Ok(None)
        }
        Err(stop) => Err(stop),
    }
}

/// What to do about an object that is nested too deep.
const FLATTER: &str = "make it flatter: the agent cannot read it as it is";

/// What lets the agent read and write published objects.
const CONTENT: &str = "allow the agent's user all verbs of apiexports/content in the workspace of the export";

/// What to do about credentials that are not accepted. A server that is starting may refuse good ones for a moment.
fn credentials(side: Side) -> &'static str {
    match side {
        Side::Service => "renew the token or certificate of the agent for the service cluster, if it lasts",
        Side::Slices | Side::Export | Side::Shard(_) => {
            "renew the token or certificate of the agent in the kubeconfig of kcp, if it lasts"
        }
    }
}

/// True if a namespace, or whatever an object is to be in, is being deleted.
fn is_going(error: &Error) -> bool {
    error.status().is_some_and(is_terminating)
}

/// What to do about a refusal.
fn advice(side: Side, error: &Error) -> &'static str {
    if error.is_unauthorized() {
        return credentials(side);
    }
    let code = error.status().map_or(0, |status| status.code);
    match (code, side) {
        (403, _) if is_going(error) => "it continues by itself when what is being deleted has gone",
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

#[cfg(test)]
mod tests {
    use super::*;

    // It was said to be no answer of a Kubernetes API.
    #[test]
    fn an_object_that_is_nested_too_deep_is_said_to_be_that_and_nothing_else_is() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        let error = |text: &str| kcp::parsed::<serde_json::Value>(text.as_bytes()).err();
        assert!(error(&nested(DEEPEST_OBJECT)).is_none());
        let refusal = || {
            Error::Status(Box::new(kube_lite::ApiStatus {
                message: "recursion limit exceeded".to_owned(),
                code: 422,
                ..kube_lite::ApiStatus::default()
            }))
        };
        let deep = || error(&nested(DEEPEST_OBJECT + 1)).expect("it is too deep");
        let cut = || error("[1").expect("it is no JSON");
        let words = |stop: Stop| match stop {
            Stop::Fails(trouble) => trouble.to_string(),
            other => panic!("{other:?}"),
        };
        let side = Side::Shard(0);
        for (stop, is_said) in [
            (Stop::of_content(Side::Service, "reading the copy", "a/b", deep()), true),
            (Stop::of_primary(side, "reading the object", deep()), true),
            (Stop::of(side, "finding a related type", "gadgets", deep()), false),
            (Stop::of_primary(side, "reading the object", cut()), false),
            (Stop::of_primary(side, "adding the finalizer", refusal()), false),
        ] {
            let words = words(stop);
            let is_it = words.contains("nested deeper than 127 levels") && words.ends_with(FLATTER);
            assert_eq!(is_it, is_said, "{words}");
        }
    }

    #[test]
    fn claims_are_named_for_what_is_claimed_and_for_nothing_else() {
        let side = Side::Shard(0);
        let refused = |code: u16| {
            Error::Status(Box::new(kube_lite::ApiStatus {
                code,
                ..kube_lite::ApiStatus::default()
            }))
        };
        let advice = |stop: Stop| match stop {
            Stop::Fails(trouble) => trouble.advice,
            other => panic!("{other:?}"),
        };
        for code in [403, 404] {
            let claimed = advice(Stop::of(side, "reading a related object", "Secret", refused(code)));
            assert!(claimed.contains("claims"), "{code}: {claimed}");
            let published = advice(Stop::of_primary(side, "removing the finalizer", refused(code)));
            assert!(!published.contains("claims"), "{code}: {published}");
        }
        assert_eq!(
            advice(Stop::of_primary(side, "removing the finalizer", refused(403))),
            CONTENT
        );
        // One that is about the agent, not about the object, and has one line for all of them.
        let denied = || Error::Unauthorized(Box::default());
        for (side, place) in [(side, "kubeconfig of kcp"), (Side::Service, "service cluster")] {
            let Stop::Fails(trouble) = Stop::of_primary(side, "reading the object", denied()) else {
                panic!("it is tried again")
            };
            assert!(
                trouble.advice.contains(place) && trouble.shared == Some(trouble.advice),
                "{trouble:?}"
            );
        }
        let stop = Stop::because("finding related objects", "no", "correct it");
        assert!(stop.is_of_rules() && !stop.is_denied());
        for (code, is_denied) in [(403, true), (404, true), (422, false), (500, false)] {
            let stop = Stop::of(side, "x", "", refused(code));
            assert!(!stop.is_of_rules() && stop.is_denied() == is_denied, "{code}");
        }
    }
}
