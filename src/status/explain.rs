//! What is known of one object: which configs select it, where it is, whose the copy is, and what fails.

use std::collections::BTreeSet;

use kube_lite::{Content, Error, ObjectName, spelling};
use serde_json::Value;

use super::copies::{Bench, address, place};
use super::fields::differing;
use super::report::{CopyFinding, Explained, Followed, OfConfig, State, Verdict};
use crate::api::{DOWNSYNC_OVERWRITE, OWNER};
use crate::plan::{Direction, Plan, Selection, TypePlan};
use crate::side::Side;
use crate::sync::meta::{Meta, Object};
use crate::sync::object::{Address, Desired, Marks};
use crate::sync::ownership::{Copy, CopyState};

/// What a side has said of an object.
#[derive(Debug, Default)]
enum Said<T> {
    /// It was not asked.
    #[default]
    Nothing,
    Absent,
    There(T),
}

/// The origin, as it is.
#[derive(Debug, Default)]
struct Origin {
    version: String,
    uid: String,
    /// It belongs to its own side alone.
    is_kept: bool,
    has_finished: bool,
    is_create_only: bool,
}

/// What is in the copy's place.
#[derive(Debug, Default)]
struct There {
    version: String,
    copy: Copy,
    finalizers: Vec<String>,
    /// Fields that are not as the origin wants them.
    differing: Vec<String>,
}

/// All that is known of one object.
#[derive(Debug)]
struct Facts {
    direction: Direction,
    object: String,
    copy_name: String,
    selection: Selection,
    configs: Vec<String>,
    /// The rule by which the edge's owner does not allow it.
    refused: Option<String>,
    origin: Said<Origin>,
    copy: Said<There>,
    /// What edges say, in words, and what that comes to.
    edges: Vec<(Verdict, String)>,
}

/// Explains the object of this kind, namespace and name, at the hub or at the edge. `asks_edge` says that the bench has
/// an edge.
pub(super) async fn explain(
    bench: &Bench<'_>,
    asks_edge: bool,
    plan: &Plan,
    [kind, namespace, name]: &[String; 3],
    configs: &[OfConfig],
) -> Result<Vec<Explained>, (Side, Error)> {
    let object = ObjectName::new(namespace, name);
    let is_kind = |of: &&TypePlan| {
        let kinds = [&of.at_hub.kind, &of.at_edge.kind];
        kinds.iter().any(|known| known.eq_ignore_ascii_case(kind)) && of.at_hub.namespaced != namespace.is_empty()
    };
    let mut all = Vec::new();
    for of in plan.types.values().filter(is_kind) {
        let Some((origin, copy)) = names(of, &object) else {
            continue;
        };
        all.push(facts(bench, asks_edge, of, (origin, copy), configs).await?);
    }
    // Of several types of one kind, what is selected is meant.
    if all.iter().any(|facts| facts.selection != Selection::None) {
        all.retain(|facts| facts.selection != Selection::None);
    }
    if all.is_empty() {
        return Ok(vec![unknown_kind(plan, kind, &object)]);
    }
    Ok(all.into_iter().map(Facts::explain).collect())
}

/// Nothing of that kind is selected.
fn unknown_kind(plan: &Plan, kind: &str, object: &ObjectName) -> Explained {
    let kinds: BTreeSet<&str> = plan.types.values().map(|of| &*of.at_hub.kind).collect();
    let hint = spelling::hint(kind, kinds.iter().copied());
    let where_to = if object.namespace().is_empty() {
        "outside of namespaces"
    } else {
        "in namespaces"
    };
    Explained {
        object: object.of_kind(kind).to_string(),
        verdict: Verdict::NotSynced,
        findings: vec![format!("no config selects objects of the kind {kind} {where_to}{hint}")],
        ..Explained::default()
    }
}

/// The names of origin and copy of what has this name at the hub, or else at the edge.
fn names(of: &TypePlan, object: &ObjectName) -> Option<(ObjectName, ObjectName)> {
    let as_origin = of.named_copy(object).map(|copy| (object.clone(), copy));
    let as_copy = of.named_origin(object).map(|origin| (origin, object.clone()));
    let both = match of.direction {
        Direction::Down => [as_origin, as_copy],
        Direction::Up => [as_copy, as_origin],
    };
    let all: Vec<_> = both.into_iter().flatten().collect();
    let selected = all.iter().find(|(_, copy)| of.selection(copy) != Selection::None);
    selected.or(all.first()).cloned()
}

async fn facts(
    bench: &Bench<'_>,
    asks_edge: bool,
    of: &TypePlan,
    (origin, copy): (ObjectName, ObjectName),
    configs: &[OfConfig],
) -> Result<Facts, (Side, Error)> {
    let edge = match of.direction {
        Direction::Down => &copy,
        Direction::Up => &origin,
    };
    let selection = of.selection(&copy);
    let selecting: Vec<String> = of
        .configs
        .iter()
        .filter(|config| {
            selection != Selection::None && (selection == Selection::Implied || of.is_of(&config.config, edge))
        })
        .map(|config| config.config.to_string())
        .collect();
    let refused = bench.filter.refuses(of.direction, &of.at_edge, edge);
    let origin = address(of, of.direction.origin(), origin);
    let copy = address(of, of.direction.copy(), copy);
    let mut facts = Facts {
        direction: of.direction,
        object: origin.for_people(),
        copy_name: copy.for_people(),
        selection,
        refused: refused.filter(|_| selection != Selection::None),
        origin: Said::Nothing,
        copy: Said::Nothing,
        edges: said_by_edges(configs, &selecting, [&origin, &copy], of.direction),
        configs: selecting,
    };
    let is_asked = |side: Side| side == Side::Hub || asks_edge;
    let mut desired = None;
    if is_asked(of.direction.origin()) {
        (facts.origin, desired) = read_origin(bench, of.direction, (&origin, &copy), selection).await?;
    }
    if is_asked(of.direction.copy()) {
        facts.copy = read_copy(bench, of.direction, &copy, desired).await?;
    }
    Ok(facts)
}

async fn read_origin(
    bench: &Bench<'_>,
    direction: Direction,
    (origin, copy): (&Address, &Address),
    selection: Selection,
) -> Result<(Said<Origin>, Option<Desired>), (Side, Error)> {
    let side = direction.origin();
    let failed = |error| (side, error);
    let object = match bench.at(side).get(&origin.resource, &origin.name, Content::Full).await {
        Err(error) if error.proves_absent(&origin.name.name) => return Ok((Said::Absent, None)),
        object => object.map_err(failed)?,
    };
    let parsed = Object::named(&origin.name, object).map_err(failed)?;
    let desired = Desired::from_origin(direction, origin, copy, selection, &parsed).map_err(failed)?;
    let found = Origin {
        version: parsed.meta.resource_version.clone(),
        uid: parsed.meta.uid.clone(),
        is_kept: desired.is_none(),
        has_finished: desired.as_ref().is_some_and(|desired| desired.finished),
        is_create_only: desired.as_ref().is_some_and(|desired| desired.create_only),
    };
    Ok((Said::There(found), desired))
}

async fn read_copy(
    bench: &Bench<'_>,
    direction: Direction,
    copy: &Address,
    desired: Option<Desired>,
) -> Result<Said<There>, (Side, Error)> {
    let side = direction.copy();
    let failed = |error| (side, error);
    let object = match bench.at(side).get(&copy.resource, &copy.name, Content::Full).await {
        Err(error) if error.proves_absent(&copy.name.name) => return Ok(Said::Absent),
        object => object.map_err(failed)?,
    };
    let meta = Meta::of(&copy.name, &object).map_err(failed)?;
    let found: Value = serde_json::from_slice(&object).unwrap_or_default();
    let differing = desired.map_or_else(Vec::new, |desired| {
        let body = desired.body(direction, copy, bench.we, &Marks::default());
        let mut wanted: Value = serde_json::from_slice(&body).unwrap_or_default();
        // Whose it is has words of its own.
        if let Some(annotations) = wanted["metadata"]["annotations"].as_object_mut() {
            annotations.remove(OWNER);
        }
        differing(&wanted, &found)
    });
    let finalizers = found["metadata"]["finalizers"].as_array().into_iter().flatten();
    Ok(Said::There(There {
        version: meta.resource_version.clone(),
        copy: Copy::of(direction, &copy.resource, &meta, bench.we),
        finalizers: finalizers.filter_map(Value::as_str).map(str::to_owned).collect(),
        differing,
    }))
}

/// What edges say of an object that these configs select.
fn said_by_edges(
    configs: &[OfConfig],
    selecting: &[String],
    objects: [&Address; 2],
    direction: Direction,
) -> Vec<(Verdict, String)> {
    let sides = [direction.origin(), direction.copy()];
    let subjects = [0, 1].map(|at: usize| (objects[at].for_people(), sides[at].word()));
    let mut said = BTreeSet::new();
    for config in configs {
        let called = format!("{}//{}", config.kind, config.name);
        if !selecting.contains(&called) {
            continue;
        }
        for edge in &config.edges {
            said.insert(said_by(edge, &called, &subjects));
        }
        if config.edges.is_empty() {
            said.insert((Verdict::Unknown, format!("{called}: {}", config.message)));
        }
    }
    said.into_iter().collect()
}

/// What one edge says of it.
fn said_by(edge: &Followed, config: &str, subjects: &[(String, &str); 2]) -> (Verdict, String) {
    let (called, says) = (edge.edge(), &edge.says);
    let is_it = |object: &str, side: &str| subjects.iter().any(|(name, at)| name == object && *at == side);
    let mut failures = says.failures.iter();
    if let Some(failure) = failures.find(|failure| is_it(&failure.object, &failure.side)) {
        let (since, reason) = (&failure.since, &failure.reason);
        let words = format!(
            "edge {called}: fails at the {} since {since} ({reason}): {}",
            failure.side, failure.message
        );
        return (Verdict::NotSynced, words);
    }
    let others = says.failing + says.conflicts;
    match edge.state {
        State::Stale => {
            let since = edge.last_seen.as_deref().unwrap_or("it has followed the config");
            (Verdict::Unknown, format!("edge {called}: not heard of since {since}"))
        }
        _ if says.pending > 0 => {
            let words = format!(
                "edge {called}: {} objects of {config} are not synced yet, this one perhaps",
                says.pending
            );
            (Verdict::Unknown, words)
        }
        _ if others > says.failures.len() => {
            let words = format!("edge {called}: {others} fail of {config}, and not all are named");
            (Verdict::Unknown, words)
        }
        _ => (Verdict::Synced, format!("edge {called}: it does not fail")),
    }
}

impl Facts {
    fn explain(self) -> Explained {
        let mut findings = vec![self.is_selected()];
        let mut verdict = match self.selection {
            Selection::None => Verdict::NotSynced,
            _ => Verdict::Synced,
        };
        if let Some(rule) = &self.refused {
            findings.push(format!("the edge's owner does not allow it: {rule}"));
            verdict = Verdict::NotSynced;
        }
        let (of_origin, words) = self.about_origin();
        findings.push(words);
        let (of_copy, words) = self.about_copy();
        findings.extend(words);
        // What both sides show counts; edges are asked about the rest.
        let is_shown = of_copy != Verdict::Unknown;
        for (says, words) in &self.edges {
            findings.push(words.clone());
            if *says == Verdict::NotSynced || !is_shown {
                verdict = verdict.max(*says);
            }
        }
        if !is_shown && self.edges.is_empty() {
            verdict = verdict.max(of_copy);
        }
        verdict = verdict.max(of_origin);
        if is_shown {
            verdict = verdict.max(of_copy);
        }
        Explained {
            object: self.object,
            direction: self.direction.to_string(),
            verdict,
            findings,
        }
    }

    fn is_selected(&self) -> String {
        match self.selection {
            Selection::None => "no config selects it".to_owned(),
            Selection::Implied => format!(
                "it is synced for what is in it, which {} selects",
                self.configs.join(", ")
            ),
            Selection::Full | Selection::Named => format!("selected by {}", self.configs.join(", ")),
        }
    }

    fn about_origin(&self) -> (Verdict, String) {
        let (side, object) = (self.direction.origin(), &self.object);
        match &self.origin {
            Said::Nothing => (Verdict::Synced, format!("{side}: not asked for {object}")),
            Said::Absent => (Verdict::NotSynced, format!("{side}: there is no {object}")),
            Said::There(origin) if origin.is_kept => {
                let words = format!("{side}: {object} belongs to its own cluster alone, and is never synced");
                (Verdict::NotSynced, words)
            }
            Said::There(origin) => (Verdict::Synced, format!("{side}: {object}, version {}", origin.version)),
        }
    }

    fn about_copy(&self) -> (Verdict, Vec<String>) {
        let (side, name) = (self.direction.copy(), &self.copy_name);
        let there = match &self.copy {
            Said::Nothing => {
                let words = format!("{side}: not asked for {name}: give --to-kubeconfig");
                return (Verdict::Unknown, vec![words]);
            }
            Said::Absent => {
                let has_finished = matches!(&self.origin, Said::There(origin) if origin.has_finished);
                let (verdict, note) = if has_finished {
                    (Verdict::Synced, ", which is not needed: the Job has finished")
                } else {
                    (Verdict::NotSynced, "")
                };
                return (verdict, vec![format!("{side}: there is no {name}{note}")]);
            }
            Said::There(there) => there,
        };
        let found = match &self.origin {
            Said::There(origin) if !origin.is_kept => place(there.copy, &origin.uid),
            _ if there.copy.state == CopyState::Ours => CopyFinding::Left,
            _ => place(there.copy, ""),
        };
        let mut words = vec![format!("{side}: {name}, version {}: {}", there.version, found.words())];
        if there.copy.terminating && !there.finalizers.is_empty() {
            words.push(format!(
                "its delete waits for the finalizers {}",
                there.finalizers.join(", ")
            ));
        }
        if there.copy.adopted {
            words.push("it was there before it was selected, and was adopted".to_owned());
        }
        let is_create_only = matches!(&self.origin, Said::There(origin) if origin.is_create_only);
        let found = match found {
            CopyFinding::Right if is_create_only || there.copy.create_only => {
                words.push(format!("its content is left to the edge ({DOWNSYNC_OVERWRITE})"));
                CopyFinding::Right
            }
            CopyFinding::Right if !there.differing.is_empty() => {
                words.push(format!(
                    "{}: {}",
                    CopyFinding::Differs.words(),
                    there.differing.join(", ")
                ));
                CopyFinding::Differs
            }
            other => other,
        };
        let verdict = if found == CopyFinding::Right {
            Verdict::Synced
        } else {
            Verdict::NotSynced
        };
        (verdict, words)
    }
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
