//! The files as people read them.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::api::GROUP;
use crate::on_site::is_unseen;
use crate::plan::Plan;

/// A word or sentence in one line, without what would move what stands beside it.
fn one_line(text: &str) -> String {
    text.replace(is_unseen, " ")
}

fn word<'a>(of: &'a Value, field: &str) -> &'a str {
    of[field].as_str().unwrap_or_default()
}

/// The groups of `/apis` with their versions, a line each.
pub(super) fn groups(answer: &Value) -> String {
    let mut text = String::new();
    for group in answer["groups"].as_array().into_iter().flatten() {
        let versions = group["versions"].as_array().into_iter().flatten();
        let versions: Vec<&str> = versions.map(|version| word(version, "version")).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{}",
            one_line(&[word(group, "name"), ": ", &versions.join(", ")].concat())
        );
    }
    text
}

/// What the configs resolve to. Without the edge, it counts as one that serves what the hub serves.
pub(super) fn plan(plan: &Plan, is_edge_known: bool) -> String {
    let mut text = String::new();
    if !is_edge_known {
        text += "the edge is not known: as if it served what the hub serves\n";
    }
    for planned in plan.types.values() {
        let (hub, edge) = (&planned.at_hub, &planned.at_edge);
        let configs: Vec<&str> = planned.configs.iter().map(|of| &*of.config).collect();
        let _ = writeln!(
            text,
            "{}: {} {} at the hub, {} {} at the edge, for {}",
            planned.direction,
            hub.qualified(),
            hub.version,
            edge.qualified(),
            edge.version,
            if configs.is_empty() {
                "no config any more".to_owned()
            } else {
                configs.join(", ")
            },
        );
    }
    for missing in plan.missing.iter().filter(|missing| missing.is_reported()) {
        let _ = writeln!(text, "missing: {}", one_line(&missing.in_words()));
    }
    for problem in &plan.problems {
        let _ = writeln!(text, "problem: {}", one_line(&problem.to_string()));
    }
    for (resource, rule) in &plan.denied {
        let _ = writeln!(text, "denied: {resource}: {}", one_line(rule));
    }
    text
}

/// What fails, as each edge says in the status of each config: a line each.
pub(super) fn failing(configs: &[Value]) -> String {
    let mut text = String::new();
    for config in configs {
        for edge in config["status"]["edges"].as_array().into_iter().flatten() {
            for failure in edge["failures"].as_array().into_iter().flatten() {
                let _ = writeln!(
                    text,
                    "{}",
                    one_line(&format!(
                        "{} {}, edge {}: {}, {}, since {}: {}: {}",
                        word(config, "kind"),
                        word(&config["metadata"], "name"),
                        word(edge, "syncTargetUID"),
                        word(failure, "object"),
                        word(failure, "side"),
                        word(failure, "since"),
                        word(failure, "reason"),
                        word(failure, "message"),
                    ))
                );
            }
        }
    }
    text
}

/// The configs as a list, without what others keep in their metadata.
pub(super) fn configs(configs: Vec<Value>) -> String {
    let configs: Vec<Value> = configs.into_iter().map(without_notes).collect();
    // A list of objects can always be written.
    serde_json::to_string_pretty(&configs).unwrap_or_default() + "\n"
}

/// A config without managed fields, and with no value of annotations but our own: others are not for us.
fn without_notes(mut config: Value) -> Value {
    let own = |key: &str| key.split('/').next() == Some(GROUP);
    if let Some(meta) = config.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.remove("managedFields");
        if let Some(notes) = meta.get_mut("annotations").and_then(Value::as_object_mut) {
            let masked = |(key, value): (&String, &Value)| {
                let value = if own(key) { value.clone() } else { "***".into() };
                (key.clone(), value)
            };
            *notes = notes.iter().map(masked).collect::<Map<_, _>>();
        }
    }
    config
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn configs_have_their_spec_and_status_and_our_annotations() {
        let config = json!({
            "kind": "SyncerConfig",
            "metadata": {"name": "a", "managedFields": [{"manager": "x"}], "annotations": {
                "edge.kubestellar.io/confirm-deletes": "t1", "example.org/note": "mine"}},
            "spec": {"upsync": []},
            "status": {"edges": [{"syncTargetUID": "u", "failures": [
                {"object": "Pod/a/b", "side": "edge", "since": "T", "reason": "R", "message": "no\nway"}]}]},
        });
        assert_eq!(
            failing(std::slice::from_ref(&config)),
            "SyncerConfig a, edge u: Pod/a/b, edge, since T: R: no way\n"
        );
        let found: Value = serde_json::from_str(&configs(vec![config.clone()])).unwrap();
        let mut expected = config;
        expected["metadata"]["annotations"]["example.org/note"] = "***".into();
        expected["metadata"].as_object_mut().unwrap().remove("managedFields");
        assert_eq!(found, json!([expected]));
    }

    #[test]
    fn nothing_that_is_read_has_to_have_any_form() {
        for odd in [
            json!(null),
            json!([]),
            json!({"groups": 1}),
            json!({"groups": [1, {"versions": {}}]}),
        ] {
            groups(&odd);
            failing(std::slice::from_ref(&odd));
            configs(vec![odd]);
        }
        let answer = json!({"groups": [{"name": "apps", "versions": [{"version": "v1"}, {"version": "v2"}]}]});
        assert_eq!(groups(&answer), "apps: v1, v2\n");
    }
}
