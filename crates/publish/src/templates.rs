//! Templates of a PublishedResource.

use std::time::SystemTime;

use gotemplate::{Data, SYNCAGENT, Template, TemplateError};

/// Parses a template, which an error calls so.
pub(crate) fn parse(name: &str, text: &str) -> Result<Template, TemplateError> {
    Template::parse(name, text, &SYNCAGENT)
}

/// What it renders, without space at both ends.
pub(crate) fn render(template: &Template, data: &Data, now: SystemTime) -> Result<String, TemplateError> {
    let rendered = template.render(data, now)?;
    Ok(rendered.trim().to_owned())
}
