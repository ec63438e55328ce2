//! Tokens on configs: which of them release deletes, and which fit nothing that is held.
//!
//! An annotation is read when it is set. Left in place it is no mistake: a token that has released deletes is never
//! called wrong. Nor is one that was there when the syncer began and nothing was held, since an earlier run may have
//! used it, nor one that has worked on another config, since people annotate all configs at once.

use std::collections::{BTreeMap, BTreeSet};

use super::{Hold, MESSAGES};
use crate::logging::log_line;
use crate::model::Model;
use crate::plan::Direction;

/// The most tokens of one config that are read. Of each only the beginning is, since no hold has a longer one.
const MOST: usize = 32;
const LONGEST: usize = 16;

/// The tokens on the configs.
#[derive(Debug, Default)]
pub(super) struct Tokens(BTreeMap<String, BTreeMap<String, Standing>>);

/// What is known of a token on a config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It has fitted nothing so far.
    New,
    /// It has released deletes.
    Used,
    /// It fitted nothing when it was set, and that was logged, or it was there when the syncer began.
    Seen,
}

impl Tokens {
    /// What the annotation of a config says now: a token, or several separated by commas or spaces. True if there is
    /// one that was not there before.
    pub(super) fn set(&mut self, config: String, value: Option<&str>) -> bool {
        let before = self.0.remove(&config).unwrap_or_default();
        let words = value
            .unwrap_or_default()
            .split(|letter: char| letter == ',' || letter.is_whitespace());
        let mut now = BTreeMap::new();
        for word in words.filter(|word| !word.is_empty()).take(MOST) {
            // A token that was cut off fits no hold either.
            let word: String = word.chars().take(LONGEST + 1).collect();
            let standing = before.get(&word).copied().unwrap_or(Standing::New);
            now.insert(word, standing);
        }
        let is_new = now.keys().any(|word| !before.contains_key(word));
        if !now.is_empty() {
            self.0.insert(config, now);
        }
        is_new
    }

    /// Those tokens of holds that are on a config.
    pub(super) fn fitting(&mut self, held: &BTreeSet<String>) -> BTreeSet<String> {
        let mut fitting = BTreeSet::new();
        for (word, standing) in self.0.values_mut().flatten() {
            if held.contains(word) {
                *standing = Standing::Used;
                fitting.insert(word.clone());
            }
        }
        fitting
    }

    /// Configs with their new tokens that fit nothing.
    pub(super) fn wrong(&mut self) -> Vec<(String, Vec<String>)> {
        let used = |(word, standing): (&String, &Standing)| (*standing == Standing::Used).then(|| word.clone());
        let used: BTreeSet<String> = self.0.values().flatten().filter_map(used).collect();
        let mut wrong = Vec::new();
        for (config, tokens) in &mut self.0 {
            let mut words = Vec::new();
            for (word, standing) in tokens {
                if *standing == Standing::New && !used.contains(word) {
                    *standing = Standing::Seen;
                    words.push(word.clone());
                }
            }
            if !words.is_empty() {
                wrong.push((config.clone(), words));
            }
        }
        wrong
    }
}

/// The tokens that would confirm what is held, for the line about those that fit nothing.
fn what_fits<'a>(holds: impl Iterator<Item = (Direction, &'a Hold)>) -> String {
    let mut holds: Vec<String> = holds
        .map(|(direction, Hold { reason, token, .. })| format!("{token} ({direction}: {reason})"))
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
        let is_new = self.guard.tokens.set(config, token.map(String::as_str));
        // It is read with what the record says of holds.
        let is_early = begins && self.record.types().is_none();
        if is_new && !is_early {
            self.check_confirmation(begins);
        }
    }

    /// Releases what people have confirmed, and logs tokens that confirm nothing. A token that is there when the syncer
    /// `begins` may have released what an earlier run has held.
    pub(super) fn check_confirmation(&mut self, begins: bool) {
        let held: BTreeSet<String> = self
            .guard
            .all_holds(&self.types)
            .map(|(_, hold, _)| hold.token.clone())
            .collect();
        let fitting = self.guard.tokens.fitting(&held);
        let mut wrong = self.guard.tokens.wrong();
        if begins && held.is_empty() {
            wrong.clear();
        }
        self.confirm(&fitting);
        for (config, words) in wrong {
            let holds = self
                .guard
                .all_holds(&self.types)
                .map(|(direction, hold, _)| (direction, hold));
            log_line!(
                Warn,
                ConfirmationUnknown,
                "a token confirms no deletes that are held",
                config = config,
                annotation = crate::api::CONFIRM_DELETES,
                token = words.join(","),
                advice = what_fits(holds)
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Reason;
    use super::*;

    /// What is wrong when configs say this while these are held.
    fn wrong(tokens: &mut Tokens, says: &[(&str, Option<&str>)], held: &[&str]) -> Vec<String> {
        for (config, value) in says {
            tokens.set((*config).to_owned(), *value);
        }
        tokens.fitting(&held.iter().map(|&token| token.to_owned()).collect());
        let wrong = tokens.wrong().into_iter();
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
    fn tokens_are_taken_without_what_stands_around_them_and_only_so_many() {
        let mut tokens = Tokens::default();
        let held: BTreeSet<String> = ["t", "u", "v"].map(str::to_owned).into();
        assert!(tokens.set("a".into(), Some(" t,\n u\t")));
        assert!(!tokens.set("a".into(), Some("u t")));
        assert_eq!(tokens.fitting(&held), ["t", "u"].map(str::to_owned).into());
        assert!(!tokens.set("a".into(), Some(" ,")) && tokens.0.is_empty());
        let long: Vec<String> = (0..1000).map(|index| format!("{index:0>300}")).collect();
        tokens.set("a".into(), Some(&long.join(" ")));
        let kept: usize = tokens.0["a"].keys().map(String::len).sum();
        assert!(kept <= MOST * (LONGEST + 1), "{kept} bytes");
    }

    #[test]
    fn the_line_names_the_tokens_that_would_fit() {
        let hold = |doomed| Hold {
            reason: Reason::TooMany { doomed, of: 40 },
            token: format!("t{doomed}"),
            until: None,
        };
        let holds: Vec<Hold> = (30..40).map(hold).collect();
        let reported = |count: usize| {
            let holds = holds.iter().take(count).map(|hold| (Direction::Down, hold));
            what_fits(holds)
        };
        assert_eq!(
            reported(1),
            "what is held is confirmed by t30 (downsync: 30 of 40 copies are to be deleted at once)"
        );
        assert_eq!(reported(0), "no deletes are held now");
        assert!(reported(10).ends_with("at once), 2 more") && reported(10).matches("copies").count() == MESSAGES);
    }
}
