//! Tokens on configs: which of them release deletes, and which fit nothing that is held.
//!
//! An annotation is compared once, with what is held then. Left in place it is no mistake: a token that has released
//! deletes is never called wrong. Nor is one that was there when the syncer began and nothing was held, since an earlier
//! run may have used it, nor one that has worked on another config, since people annotate all configs at once. A token
//! of a hold from an earlier run waits until what it holds is known.

use std::collections::{BTreeMap, BTreeSet};

use kube_lite::logging::log_line;

use super::{Hold, MESSAGES};
use crate::model::Model;
use crate::plan::Direction;

/// The most tokens of one config that are read. Of each only the beginning is, since no hold has a longer one.
const MOST: usize = 32;
const LONGEST: usize = 16;

/// The tokens on the configs.
#[derive(Debug, Default)]
pub(super) struct Tokens(BTreeMap<String, BTreeMap<String, TokenState>>);

/// What is known of a token on a config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenState {
    /// It has not been compared.
    New,
    /// The same, and it was there when the syncer began.
    Early,
    /// It has released deletes.
    Used,
    /// It fitted nothing when it was set, and that was logged, or it was there when the syncer began.
    Seen,
}

impl Tokens {
    /// What the annotation of a config says now: a token, or several separated by commas or spaces. `begins` as long as
    /// the configs of its kind have not been read once.
    pub(super) fn set(&mut self, config: String, value: Option<&str>, begins: bool) {
        let before = self.0.remove(&config).unwrap_or_default();
        let words = value
            .unwrap_or_default()
            .split(|letter: char| letter == ',' || letter.is_whitespace());
        let new = if begins { TokenState::Early } else { TokenState::New };
        let mut now = BTreeMap::new();
        for word in words.filter(|word| !word.is_empty()).take(MOST) {
            // A token that was cut off fits no hold either.
            let word: String = word.chars().take(LONGEST + 1).collect();
            let state = before.get(&word).copied().unwrap_or(new);
            now.insert(word, state);
        }
        if !now.is_empty() {
            self.0.insert(config, now);
        }
    }

    /// True if there are tokens that were not compared.
    fn are_to_be_compared(&self) -> bool {
        let mut states = self.0.values().flat_map(BTreeMap::values);
        states.any(|state| state.is_open())
    }

    /// Those tokens of holds that are on a config and were not compared before. Those in `waiting` stay so.
    fn compare(&mut self, held: &Held) -> Compared {
        let mut compared = Compared::default();
        for (word, state) in self.0.values_mut().flatten() {
            if state.is_open() && held.ready.contains(word) {
                *state = TokenState::Used;
                compared.fitting.insert(word.clone());
            }
        }
        let used = |(word, state): (&String, &TokenState)| (*state == TokenState::Used).then(|| word.clone());
        let used: BTreeSet<String> = self.0.values().flatten().filter_map(used).collect();
        let is_idle = held.ready.is_empty() && held.waiting.is_empty();
        for (config, tokens) in &mut self.0 {
            let open = tokens.iter_mut().filter(|(_, state)| state.is_open());
            let mut words = Vec::new();
            for (word, state) in open.filter(|(word, _)| !held.waiting.contains(*word)) {
                let is_wrong = !(used.contains(word) || is_idle && *state == TokenState::Early);
                *state = TokenState::Seen;
                if is_wrong {
                    words.push(word.clone());
                }
            }
            if !words.is_empty() {
                compared.wrong.push((config.clone(), words));
            }
        }
        compared
    }
}

impl TokenState {
    fn is_open(self) -> bool {
        matches!(self, Self::New | Self::Early)
    }
}

/// The tokens of holds.
#[derive(Debug, Default)]
struct Held {
    ready: BTreeSet<String>,
    /// Those of holds of which it is not known yet what they hold.
    waiting: BTreeSet<String>,
}

/// What a comparison has found.
#[derive(Debug, Default)]
struct Compared {
    fitting: BTreeSet<String>,
    /// Configs with their tokens that fit nothing.
    wrong: Vec<(String, Vec<String>)>,
}

/// The tokens that would confirm what is held, for the line about those that fit nothing.
fn what_fits<'a>(holds: impl Iterator<Item = (Direction, &'a Hold, usize)>) -> String {
    let mut holds: Vec<String> = holds
        .map(|(direction, Hold { reason, token, .. }, _)| format!("{token} ({direction}: {reason})"))
        .collect();
    let more = holds.len().saturating_sub(MESSAGES);
    holds.truncate(MESSAGES);
    if more > 0 {
        holds.push(format!("{more} more"));
    }
    if holds.is_empty() {
        "no deletes are held now".to_owned()
    } else {
        format!("what is held is confirmed by {}", holds.join(", "))
    }
}

impl Model {
    /// A config has, or no longer has, a token of confirmation. `begins` as long as its kind has not been read once.
    pub(in crate::model) fn config_confirms(&mut self, config: String, token: Option<&String>, begins: bool) {
        self.guard.tokens.set(config, token.map(String::as_str), begins);
    }

    /// Releases what people have confirmed, and logs tokens that confirm nothing.
    pub(in crate::model) fn check_confirmations(&mut self) {
        // The record says what an earlier run has held.
        if !self.guard.tokens.are_to_be_compared() || self.record.types().is_none() {
            return;
        }
        let (all_is_read, now) = (self.has_read_all(), self.now);
        let mut held = Held::default();
        for (_, hold, _) in self.guard.all_holds(&self.types) {
            let known = if hold.may_be_confirmed(all_is_read, now) {
                &mut held.ready
            } else {
                &mut held.waiting
            };
            known.insert(hold.token.clone());
        }
        let Compared { fitting, wrong } = self.guard.tokens.compare(&held);
        self.confirm(&fitting);
        for (config, words) in wrong {
            log_line!(
                Warn,
                ConfirmationUnknown,
                "a token confirms no deletes that are held",
                config = config,
                annotation = crate::api::CONFIRM_DELETES,
                token = words.join(","),
                advice = what_fits(self.guard.all_holds(&self.types))
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Reason;
    use super::*;

    fn held(ready: &[&str], waiting: &[&str]) -> Held {
        let set = |tokens: &[&str]| tokens.iter().map(|&token| token.to_owned()).collect();
        Held {
            ready: set(ready),
            waiting: set(waiting),
        }
    }

    /// What is wrong when configs say this while these are held.
    fn wrong(tokens: &mut Tokens, says: &[(&str, Option<&str>)], ready: &[&str]) -> Vec<String> {
        for (config, value) in says {
            tokens.set((*config).to_owned(), *value, false);
        }
        let wrong = tokens.compare(&held(ready, &[])).wrong.into_iter();
        wrong
            .map(|(config, words)| format!("{config} {}", words.join(",")))
            .collect()
    }

    #[test]
    fn a_token_that_fits_nothing_is_reported_once_for_each_config() {
        let mut tokens = Tokens::default();
        assert_eq!(
            wrong(&mut tokens, &[("a", Some("x")), ("b", Some("x"))], &["t"]),
            ["a x", "b x"]
        );
        assert_eq!(wrong(&mut tokens, &[("a", Some("x"))], &["t"]), [""; 0]);
        assert_eq!(wrong(&mut tokens, &[("a", Some("x,y"))], &["t"]), ["a y"]);
        assert_eq!(wrong(&mut tokens, &[("a", None)], &["t"]), [""; 0]);
        assert_eq!(
            wrong(&mut tokens, &[("a", Some("x"))], &[]),
            ["a x"],
            "it was set again"
        );
    }

    #[test]
    fn a_token_that_has_let_deletes_go_on_is_never_wrong_on_any_config() {
        let mut tokens = Tokens::default();
        assert_eq!(wrong(&mut tokens, &[("a", Some("t"))], &["t"]), [""; 0]);
        assert_eq!(wrong(&mut tokens, &[("b", Some("t"))], &[]), [""; 0]);
        assert_eq!(wrong(&mut tokens, &[], &["next"]), [""; 0]);
    }

    #[test]
    fn a_token_that_was_there_at_the_beginning_is_wrong_only_if_something_else_is_held() {
        for (ready, waiting, is_wrong) in [(&[][..], &[][..], false), (&["t"], &[], true), (&[], &["t"], true)] {
            let mut tokens = Tokens::default();
            tokens.set("a".into(), Some("x"), true);
            assert_eq!(!tokens.compare(&held(ready, waiting)).wrong.is_empty(), is_wrong);
            assert!(!tokens.are_to_be_compared(), "it is compared once");
        }
    }

    #[test]
    fn a_token_waits_until_it_is_known_what_is_held() {
        let mut tokens = Tokens::default();
        tokens.set("a".into(), Some("t"), true);
        let compared = tokens.compare(&held(&[], &["t"]));
        assert!(compared.fitting.is_empty() && compared.wrong.is_empty());
        assert!(tokens.are_to_be_compared());
        assert_eq!(tokens.compare(&held(&["t"], &[])).fitting, ["t".to_owned()].into());
        assert!(!tokens.are_to_be_compared());
        assert!(tokens.compare(&held(&["t"], &[])).fitting.is_empty(), "it is used once");
    }

    #[test]
    fn tokens_are_taken_without_what_stands_around_them_and_only_so_many() {
        let mut tokens = Tokens::default();
        tokens.set("a".into(), Some(" t,\n u\t"), false);
        tokens.set("a".into(), Some("u t"), false);
        let fitting = tokens.compare(&held(&["t", "u", "v"], &[])).fitting;
        assert_eq!(fitting, ["t", "u"].map(str::to_owned).into());
        tokens.set("a".into(), Some(" ,"), false);
        assert!(tokens.0.is_empty());
        let long: Vec<String> = (0..1000).map(|index| format!("{index:0>300}")).collect();
        tokens.set("a".into(), Some(&long.join(" ")), false);
        let kept: usize = tokens.0["a"].keys().map(String::len).sum();
        assert!(kept <= MOST * (LONGEST + 1), "{kept} bytes");
    }

    #[test]
    fn the_line_names_the_tokens_that_would_fit() {
        let hold = |pending| Hold {
            reason: Reason::TooMany { pending, of: 40 },
            token: format!("t{pending}"),
            until: None,
            resumed_until: None,
        };
        let holds: Vec<Hold> = (30..40).map(hold).collect();
        let reported = |count: usize| {
            let holds = holds.iter().take(count).map(|hold| (Direction::Down, hold, 1));
            what_fits(holds)
        };
        assert_eq!(
            reported(1),
            "what is held is confirmed by t30 (downsync: 30 of 40 copies are to be deleted at once or within an hour)"
        );
        assert_eq!(reported(0), "no deletes are held now");
        assert!(
            reported(10).ends_with("within an hour), 2 more") && reported(10).matches("copies").count() == MESSAGES
        );
    }
}
