//! What is changed on the way: the block `mutation`, from JSON.

use super::{Mutation, Step};
use crate::fields::Fields;

/// The block `mutation` of these fields.
pub(super) fn mutation(fields: &Fields<'_>) -> Mutation {
    let Some(mutation) = fields.inner("mutation") else {
        return Mutation::default();
    };
    let steps = |key| mutation.list(key).iter().filter_map(step).collect();
    Mutation {
        spec: steps("spec"),
        status: steps("status"),
    }
}

/// The first of several counts, as for the Go agent.
fn step(fields: &Fields<'_>) -> Option<Step> {
    let path = |step: &Fields<'_>| step.required("path", false);
    let found = if let Some(step) = fields.inner("delete") {
        Step::Delete { path: path(&step) }
    } else if let Some(step) = fields.inner("regex") {
        Step::Regex {
            path: path(&step),
            pattern: step.any_text("pattern").unwrap_or_default(),
            replacement: step.any_text("replacement").unwrap_or_default(),
        }
    } else if let Some(step) = fields.inner("template") {
        Step::Template {
            path: path(&step),
            template: step.required("template", true),
        }
    } else if let Some(step) = fields.inner("cel") {
        Step::Cel {
            path: path(&step),
            expression: step.required("expression", false),
        }
    } else {
        fields.error("", "must have delete, regex, template or cel");
        return None;
    };
    Some(found)
}
