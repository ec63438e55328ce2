//! The conditions of a config: they follow from what each edge says of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::api::HOLD_REASONS;

use super::{
    ALL_FOLLOWED, ALL_SYNCED, CONFIG_VALID, Condition, DELETES_HELD, Denied, FAILING, Failure, FieldProblem, Hold,
    NOT_FOLLOWED, NOTHING_HELD, OfEdge, PENDING, READY, SYNCED, word,
};

/// The sum of what all edges count.
pub(super) fn total(edges: &[OfEdge], of: impl Fn(&OfEdge) -> usize) -> usize {
    edges.iter().map(of).sum()
}

/// The conditions that follow from the entries.
pub(in crate::api) fn sum_up(edges: &[OfEdge]) -> Vec<Condition> {
    let observed_generation = edges
        .iter()
        .map(|edge| edge.observed_generation)
        .min()
        .unwrap_or_default();
    let condition = |of: &str, status: bool, said: Said| Condition::new(of, word(status), said, observed_generation);
    let (is_valid, valid) = config_valid(edges);
    let (is_synced, synced) = synced(edges);
    let (is_held, held) = deletes_held(edges);
    let worst = [(is_valid, &valid), (is_synced, &synced), (!is_held, &held)]
        .into_iter()
        .find(|(good, _)| !good);
    let ready = worst.map_or_else(|| synced.clone(), |(_, worst)| worst.clone());
    vec![
        condition(READY, worst.is_none(), ready),
        condition(CONFIG_VALID, is_valid, valid),
        condition(SYNCED, is_synced, synced),
        condition(DELETES_HELD, is_held, held),
    ]
}

/// A reason and a message.
pub(in crate::api) type Said = (&'static str, String);

fn config_valid(edges: &[OfEdge]) -> (bool, Said) {
    let mut problems: Vec<String> = Vec::new();
    for edge in edges {
        for FieldProblem { field, message, .. } in &edge.problems {
            let said = format!("{field}: {message}");
            // Edges of one kind say the same.
            if !problems.contains(&said) {
                problems.push(said);
            }
        }
    }
    let count = edges.iter().map(|edge| edge.problem_count).max().unwrap_or_default();
    if count == 0 {
        return (true, (ALL_FOLLOWED, "each entry is followed".to_owned()));
    }
    let named = problems.len();
    let mut message = problems.join("; ");
    if count > named {
        let _ = write!(message, "; and {} more", count - named);
    }
    (false, (NOT_FOLLOWED, message))
}

fn synced(edges: &[OfEdge]) -> (bool, Said) {
    let (synced, selected) = (total(edges, |edge| edge.synced), total(edges, |edge| edge.selected));
    let mut sum = match (selected, edges.iter().any(|edge| !edge.denied.is_empty())) {
        (0, true) => "no object is synced".to_owned(),
        (0, false) => "no object is selected".to_owned(),
        _ => format!("{synced} of {selected} objects are synced"),
    };
    sum += &not_all(edges);
    if let Some(unmatched) = first_unmatched(edges) {
        let _ = write!(sum, "; {unmatched}");
    }
    let failures = edges
        .iter()
        .flat_map(|edge| edge.failures.iter().map(move |failure| (edge, failure)));
    if let Some((edge, failure)) = failures.min_by(|(_, a), (_, b)| a.cmp(b)) {
        let at = if edges.len() > 1 { edge.called() } else { String::new() };
        let Failure {
            object,
            side,
            reason,
            message,
            ..
        } = failure;
        let what = if object.is_empty() {
            format!("the {side}")
        } else {
            format!("{object} at the {side}")
        };
        let message = if message.is_empty() { reason } else { message };
        return (false, (FAILING, format!("{sum}; {at}{what}: {message}")));
    }
    if synced < selected {
        return (false, (PENDING, sum));
    }
    if total(edges, |edge| edge.pending) > 0 {
        return (false, (PENDING, format!("{sum}; not everything has been read yet")));
    }
    (true, (ALL_SYNCED, sum))
}

/// The first entry that selects nothing where it may.
fn first_unmatched(edges: &[OfEdge]) -> Option<String> {
    let (edge, FieldProblem { field, message, .. }) =
        edges.iter().find_map(|edge| Some((edge, edge.unmatched.first()?)))?;
    let at = if edges.len() > 1 { edge.called() } else { String::new() };
    Some(format!("{at}{field}: {message}"))
}

/// What is to be known though nothing fails.
fn not_all(edges: &[OfEdge]) -> String {
    let mut words = String::new();
    let mut rules: BTreeMap<&str, usize> = BTreeMap::new();
    for Denied { rule, objects } in edges.iter().flat_map(|edge| &edge.denied) {
        *rules.entry(rule).or_default() += objects;
    }
    for (rule, objects) in rules {
        let _ = write!(
            words,
            "; {objects} more {} not allowed by the owner of the edge: {rule}",
            are(objects)
        );
    }
    let contested = total(edges, |edge| edge.contested);
    if contested > 0 {
        let _ = write!(
            words,
            "; {contested} {} a status that the syncer of another edge writes too",
            have(contested)
        );
    }
    words
}

fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

fn have(count: usize) -> &'static str {
    if count == 1 { "has" } else { "have" }
}

fn deletes_held(edges: &[OfEdge]) -> (bool, Said) {
    let holds: Vec<(&OfEdge, &Hold)> = edges
        .iter()
        .filter_map(|edge| Some((edge, edge.hold.as_ref()?)))
        .collect();
    let Some((_, first)) = holds.first() else {
        return (false, (NOTHING_HELD, String::new()));
    };
    let known = HOLD_REASONS.iter().find(|known| **known == first.reason);
    let messages = holds.iter().map(|(edge, hold)| match edges.len() {
        1 => hold.message.clone(),
        _ => format!("{}{}", edge.called(), hold.message),
    });
    let messages: Vec<String> = messages.collect();
    (true, (known.copied().unwrap_or(DELETES_HELD), messages.join("; ")))
}
