//! What the page for people on site says, read from the same places as conditions, metrics and the log.

use std::collections::BTreeMap;
use std::time::Duration;

use driver::failures::Note;
use kube_lite::ObjectName;

use super::one_cluster::Clusters;
use super::{Model, TypeId, TypeState};
use crate::api::status::{FieldProblem, OfEdge};
use crate::metrics::{Snapshot, status};
use crate::on_site::{self, Mark, Objects, Row, Section, SideView};
use crate::plan::Direction;
use crate::report::{Subject, Topic};
use crate::side::Side;

/// The page; `missing` is what is not known yet, `now` the time since 1970.
pub(super) fn render(model: &Model, snapshot: &Snapshot, missing: Option<&str>, now: Duration) -> String {
    let mut summary = status(snapshot, now);
    if let Some(missing) = missing {
        summary = [missing.trim_end(), "; ", &summary].concat();
    }
    let sides = [Side::Hub, Side::Edge].map(|side| side_row(model, side, snapshot, now));
    let sections = [
        Section::of("Sides", sides.to_vec()),
        Section::of("What fails", failure_rows(model)),
        Section::of("Held deletes", hold_rows(model)),
        Section::of("What configs ask for and cannot be followed", problem_rows(model)),
        Section::of("Objects", type_rows(model)),
    ];
    on_site::render(model.settings.edge_name(), &summary, &sections, now)
}

fn side_row(model: &Model, side: Side, snapshot: &Snapshot, now: Duration) -> Row {
    let contact = &model.sides.of(side).contact;
    let of_side = [Subject::Side(side), Subject::Stranger(side), Subject::Credentials(side)];
    let view = SideView {
        address: &contact.place.address,
        is_up: snapshot.up.contains(&side),
        is_refusing: snapshot.refusing.contains(&side),
        heard: contact
            .figures
            .heard()
            .map(|at| now.saturating_sub(model.now.duration_since(at))),
        credentials_end: contact.credentials_end,
        note: of_side.iter().find_map(|subject| model.report.note_of(subject)),
    };
    on_site::side(side, &view)
}

/// What fails, the oldest first. What is about a whole side is said there.
fn failure_rows(model: &Model) -> Vec<Row> {
    let things = model.report.notes();
    let mut things: Vec<(&Subject, &Note)> = things
        .filter(|(subject, _)| matches!(subject, Subject::Thing(..)))
        .collect();
    things.sort_by_key(|(subject, note)| (&note.since, subject.side(), subject.name()));
    let one_cluster = (model.clusters == Clusters::One).then(|| Row {
        mark: Mark::Bad,
        head: "hub and edge".to_owned(),
        text: "they are one cluster: nothing is synced as long as this lasts".to_owned(),
    });
    let things = things
        .into_iter()
        .map(|(subject, note)| on_site::failure(subject, note));
    one_cluster.into_iter().chain(things).collect()
}

fn hold_rows(model: &Model) -> Vec<Row> {
    let row = |(direction, text): (Direction, String)| Row {
        mark: Mark::Waits,
        // The sentence begins with it.
        text: text
            .trim_start_matches([&direction.to_string(), ": "].concat().as_str())
            .to_owned(),
        head: direction.to_string(),
    };
    model.holds_in_words().map(row).collect()
}

/// Entries of configs that cannot be followed.
fn problem_rows(model: &Model) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut unmatched = model.unmatched(model.has_read_all() && !model.selecting.changed);
    for of in model.selecting.names() {
        let config = of.0.of_name(&of.1);
        let mut ours = OfEdge::default();
        model.count_problems(&of, &config, unmatched.remove(&*config), &mut ours);
        let more = ours.problem_count - ours.problems.len();
        let row = |mark, problem: FieldProblem| {
            let since = model.is_said(&config, &problem);
            let since = since.map_or_else(String::new, |since| format!(" (since {since})"));
            Row {
                mark,
                head: [&config, " ", &problem.field].concat(),
                text: problem.message + &since,
            }
        };
        rows.extend(ours.problems.into_iter().map(|problem| row(Mark::Bad, problem)));
        rows.extend(ours.unmatched.into_iter().map(|problem| row(Mark::Waits, problem)));
        rows.extend((more > 0).then(|| Row {
            mark: Mark::Bad,
            head: config,
            text: format!("and {more} more"),
        }));
    }
    rows
}

/// How it is with the objects of each type, those first that fail or wait.
fn type_rows(model: &Model) -> Vec<Row> {
    let mut failing = count_failing(model);
    let mut counts: BTreeMap<(String, Direction), Objects> = BTreeMap::new();
    for (id, state) in &model.types {
        let TypeState { plan, inventory, .. } = state;
        let of_type = counts.entry((plan.at_edge.qualified(), plan.direction)).or_default();
        let (synced, open) = inventory.count_synced();
        of_type.synced += synced;
        of_type.open += open;
        of_type.failing += failing.remove(id).unwrap_or_default();
        of_type.held += inventory.count_held(model.guard.held_of(plan));
    }
    let row = |((name, direction), of)| on_site::objects(format!("{name}, {direction}"), of);
    let mut rows: Vec<Row> = counts.into_iter().map(row).collect();
    rows.sort_by_key(|row| row.mark);
    rows
}

/// How many objects fail, by their type.
fn count_failing(model: &Model) -> BTreeMap<TypeId, usize> {
    let mut counts = BTreeMap::new();
    for (subject, _) in model.report.notes() {
        let Subject::Thing(_, Topic::Object, name) = subject else {
            continue;
        };
        let mut parts = name.splitn(3, '/');
        let (Some(kind), Some(namespace), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let name = ObjectName::new(namespace, name);
        let is_of_kind = |state: &TypeState| *state.plan.at_hub.kind == *kind || *state.plan.at_edge.kind == *kind;
        let of_kind = || model.types.iter().filter(|(_, state)| is_of_kind(state));
        let known = of_kind().find(|(_, state)| state.inventory.get(&name).is_some());
        if let Some((&id, _)) = known.or_else(|| of_kind().next()) {
            *counts.entry(id).or_default() += 1;
        }
    }
    counts
}
