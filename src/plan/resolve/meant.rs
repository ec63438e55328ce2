//! What an entry may mean by a word that is not served as it stands there: another word of its group, or a word of another
//! group. It is said with what is missing, wherever that is said.

use std::collections::BTreeSet;

use kube_lite::discovery::ServedResource;
use kube_lite::spelling;

use super::{Answer, Resolver};
use crate::plan::steps;
use crate::plan::wanted::{Entry, Types};
use crate::plan::words::is_never_synced_unnamed;
use crate::side::Side;

/// For so many words of a plan it is found out what is spelt alike or in another group. People read the first few.
const SOUGHT: usize = 100;

/// What an entry says of a type that is not served.
#[derive(Clone, Copy)]
struct Said<'a> {
    group: &'a str,
    version: &'a str,
    word: &'a str,
}

impl<'a> Resolver<'a> {
    /// What an entry may mean by a word that its group does not have at its version. Not known before the edge has said
    /// what it serves at all, if nothing else answers to the word.
    pub(super) fn meant(&mut self, entry: &Entry, group: &str, version: &str, word: &str) -> Answer<String> {
        self.plan.is_puzzled = true;
        let said = Said { group, version, word };
        let sides = [entry.direction.origin(), entry.direction.copy()];
        if let Some(found) = self.in_group(sides, said, word) {
            return Answer::Found(said.in_words(entry, found));
        }
        if self.sought == SOUGHT {
            return Answer::Missing;
        }
        self.sought += 1;
        let words = sides.into_iter().flat_map(|side| self.at(side).words(group));
        let alike = spelling::nearest(word, words.inspect(|_| steps::one()));
        let found = alike.and_then(|alike| self.in_group(sides, said, alike));
        let found = found.or_else(|| self.in_other_group(sides, said));
        if let Some(found) = found {
            return Answer::Found(said.in_words(entry, found));
        }
        if self.edge.discovery.catalogue.is_none() {
            self.plan.unknown.catalogue = true;
            return Answer::Unknown;
        }
        // It is no part of the catalogue.
        if self.knows(Side::Edge, "", "v1") {
            Answer::Missing
        } else {
            Answer::Unknown
        }
    }

    /// The type of the group that answers to a word; one that is served at the version that is said, if there is one.
    fn in_group(&self, sides: [Side; 2], said: Said<'_>, word: &str) -> Option<&'a ServedResource> {
        let found = sides
            .into_iter()
            .flat_map(|side| self.at(side).answering_to(said.group, word));
        found.min_by_key(|served| served.resource.version != said.version)
    }

    /// A type of another group that answers to a word: of the group that is spelt most like the one that is said, else of
    /// the first one. If that group exists, the word may be misspelt too.
    fn in_other_group(&self, sides: [Side; 2], said: Said<'_>) -> Option<&'a ServedResource> {
        let can_be_synced = |served: &&'a ServedResource| {
            let of = &served.resource;
            served.watchable && of.group != said.group && !is_never_synced_unnamed(&of.group, &of.resource)
        };
        let found = sides.into_iter().flat_map(|side| self.at(side).anywhere(said.word));
        let found: Vec<_> = found.filter(can_be_synced).collect();
        let groups: BTreeSet<&str> = found.iter().map(|served| &*served.resource.group).collect();
        if let Some(&first) = groups.first() {
            let group = spelling::nearest(said.group, groups).unwrap_or(first);
            let of_group = found.into_iter().filter(|served| served.resource.group == group);
            return of_group.min_by_key(|served| served.resource.version != said.version);
        }
        let groups = sides.into_iter().flat_map(|side| self.at(side).groups());
        let group = spelling::nearest(said.group, groups.filter(|group| *group != said.group))?;
        let in_group = |side: Side, word: &str| self.at(side).answering_to(group, word).find(can_be_synced);
        sides.into_iter().find_map(|side| {
            let word = spelling::nearest(said.word, self.at(side).words(group))?;
            in_group(side, word)
        })
    }

    /// The group that may be meant by one that the edge does not have.
    pub(super) fn meant_group(&self, group: &str) -> Option<String> {
        let groups = self.edge.discovery.groups.iter().flat_map(|groups| groups.keys());
        spelling::nearest(group, groups.map(String::as_str)).map(str::to_owned)
    }
}

impl Said<'_> {
    /// A type in the words of the entry, as far as it says something else.
    fn in_words(self, entry: &Entry, meant: &ServedResource) -> String {
        let of = &meant.resource;
        let name = match entry.types {
            Types::Kind { .. } => &of.kind,
            _ => &of.resource,
        };
        let mut words: Vec<String> = Vec::new();
        if of.group != self.group {
            let group = if of.group.is_empty() { "\"\"" } else { &of.group };
            words.extend([name.clone(), format!("in group {group}")]);
        } else if name != self.word {
            words.push(name.clone());
        }
        if of.version != self.version && !self.version.is_empty() {
            let at = if words.is_empty() { "" } else { "at " };
            words.push(format!("{at}version {}", of.version));
        }
        words.join(" ")
    }
}

#[cfg(test)]
#[path = "meant_tests.rs"]
mod tests;
