//! What is done at a target itself: its templates are read, and its status is written.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use gotemplate::{LIBRARY, Template};
use kube_lite::logging::times::date_and_time;
use kube_lite::{Cluster, Error, ObjectName};
use serde_json::json;

use super::{Trouble, Why, read_template, template_name};
use crate::kcp;
use crate::kinds::{InitTarget, TargetStatus};
use crate::objects::SourceError;

/// What is wrong with the sources of a target, whatever the workspace, if something is. A side that does not answer says
/// nothing of them.
pub(crate) async fn examine(target: &InitTarget, config: &Cluster) -> Option<Trouble> {
    let mut seen = BTreeSet::new();
    for (index, source) in target.spec.sources.iter().enumerate() {
        let name = source.template.as_ref().map(|template| template.name.as_str());
        if name.is_some_and(|name| !seen.insert(name)) {
            continue;
        }
        let wrong = match name {
            None => Some(Why::Source(SourceError::Unknown)),
            Some(name) => of_template(target, name, config).await,
        };
        if let Some(why) = wrong {
            return Some(Trouble::of_source(target, index, why));
        }
    }
    None
}

async fn of_template(target: &InitTarget, name: &str, config: &Cluster) -> Option<Why> {
    match read_template(&template_name(target, name), config).await {
        Ok(Some(found)) => {
            let parsed = Template::parse(name, &found.spec.template, &LIBRARY);
            parsed.err().map(|error| Why::Source(SourceError::Template(error)))
        }
        Ok(None) => {
            let template = name.to_owned();
            Some(Why::Source(SourceError::NoTemplate { template }))
        }
        Err(error) if error.is_unreachable() => None,
        Err(error) => Some(Why::Template(name.to_owned(), error)),
    }
}

/// Writes the status of a target. What has changed has done so `now`, since 1970. Gives what is there then.
pub(crate) async fn write(
    name: &ObjectName,
    uid: &str,
    mut status: TargetStatus,
    config: &Cluster,
    now: Duration,
) -> Result<TargetStatus, Error> {
    for condition in &mut status.conditions {
        if condition.last_transition_time.is_empty() {
            condition.last_transition_time = date_and_time(now);
        }
    }
    let body = json!({"metadata": {"uid": uid}, "status": status});
    let body = Bytes::from(body.to_string());
    config
        .merge_patch_status(&kcp::init_targets(), name, true, body)
        .await?;
    Ok(status)
}
