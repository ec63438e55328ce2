//! What is changed on the way: the block `mutation`, from JSON.

use super::{Mutation, ResourceMutation};
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
fn step(fields: &Fields<'_>) -> Option<ResourceMutation> {
    let path = |step: &Fields<'_>| step.required("path", false);
    let found = if let Some(step) = fields.inner("delete") {
        ResourceMutation::Delete { path: path(&step) }
    } else if let Some(step) = fields.inner("regex") {
        ResourceMutation::Regex {
            path: path(&step),
            pattern: step.any_text("pattern").unwrap_or_default(),
            replacement: step.any_text("replacement").unwrap_or_default(),
        }
    } else if let Some(step) = fields.inner("template") {
        ResourceMutation::Template {
            path: path(&step),
            template: step.required("template", true),
        }
    } else if let Some(step) = fields.inner("cel") {
        ResourceMutation::Cel {
            path: path(&step),
            expression: step.required("expression", false),
        }
    } else {
        fields.error("", "must have delete, regex, template or cel");
        return None;
    };
    Some(found)
}
