//! `edge-syncer check`: whether `run` would work with these settings, point by point, before you leave the site.
//!
//! It uses the client and the planner of `run` and the table of permissions, and changes nothing. What an earlier point
//! has ruled out is not checked: a side that is not reached has no other points.

mod contact;
mod own;
mod refused;
mod selected;

use std::process::ExitCode;
use std::rc::Rc;
use std::task::Poll;

use driver::advice::advice;
use driver::points::Verdict;
use futures_util::FutureExt as _;
use futures_util::future::{LocalBoxFuture, poll_fn};
use kube_lite::logging::LogFormat;
use kube_lite::{Cluster, Credentials, Error, ObjectName};
use serde_json::json;

use self::contact::contact;
use crate::ask;
use crate::cli::{self, Settings};
use crate::model::OneCluster;
use crate::permissions::{Permission, needed};
use crate::plan::{Direction, Missing, Plan};
use crate::side::Side;
use crate::survey::{Survey, survey};
use crate::sync::identity;

/// What was found, at which side.
pub(crate) type Points = driver::points::Points<Side>;

/// Questions about permissions in flight at once: enough for a link with much latency.
const AT_ONCE: usize = 8;

/// What was found out.
#[cfg_attr(
    not(feature = "admin"),
    expect(dead_code, reason = "bundle alone needs more than the points")
)]
pub(crate) struct Checked {
    pub(crate) points: Points,
    /// The sides that are reached.
    pub(crate) hub: Option<Rc<Cluster>>,
    pub(crate) edge: Option<Rc<Cluster>>,
    /// What the configs select, if both are.
    pub(crate) found: Option<Survey>,
}

/// Checks, prints what was found, and gives the exit code for it.
pub async fn check(settings: Settings, format: LogFormat) -> ExitCode {
    let Checked { points, .. } = find(&settings).await;
    cli::print(&points.text(format));
    cli::code_of_points(points.worst())
}

/// Checks.
pub(crate) async fn find(settings: &Settings) -> Checked {
    let mut points = Points::default();
    let hub = contact(Side::Hub, settings, &mut points).await;
    let edge = contact(Side::Edge, settings, &mut points).await;
    if let Some(edge) = &edge {
        own::objects(edge, settings, &mut points).await;
    }
    own::address(settings, &mut points).await;
    let found = if let (Some(hub), Some(edge)) = (&hub, &edge) {
        two_clusters(hub, edge, &mut points).await;
        of_both([hub, edge], settings, &mut points).await
    } else {
        let found = "what the configs need is not known without both sides";
        points.add(None, "configs", Verdict::Unknown, found, "");
        None
    };
    Checked {
        points,
        hub,
        edge,
        found,
    }
}

/// What needs both sides: what the configs select.
async fn of_both([hub, edge]: [&Rc<Cluster>; 2], settings: &Settings, points: &mut Points) -> Option<Survey> {
    let sync_target = settings.sync_target();
    match survey(hub, Some(edge), &ask::view(settings, &sync_target)).await {
        Ok(found) => {
            selected::registration(hub, &found, settings, points);
            configs(&found, points);
            selected::namespaces(hub, &found, points).await;
            types(&found, points);
            permissions([hub, edge], &found, settings, points).await;
            Some(found)
        }
        Err((side, error)) => {
            let place = if side == Side::Edge { edge } else { hub }.standing().place;
            let words = format!("they, or their types, cannot be read: {error}");
            points.add(side, "configs", Verdict::Wrong, words, advice(&error, &place));
            // The permissions that are needed whatever the configs select.
            if !error.is_unreachable() {
                permissions([hub, edge], &Survey::default(), settings, points).await;
            }
            None
        }
    }
}

/// Whether hub and edge are two clusters.
async fn two_clusters(hub: &Cluster, edge: &Cluster, points: &mut Points) {
    let about = "two clusters";
    let (at_hub, at_edge) = (identity::read(hub, None).await, identity::read(edge, None).await);
    for (side, found) in [(Side::Hub, &at_hub), (Side::Edge, &at_edge)] {
        match found {
            Ok(Some(_)) => {}
            Ok(None) => {
                let found = "nothing distinguishes it from another one, so no delete is held if it is recreated";
                points.add(side, about, Verdict::Note, found, "create a namespace default there");
            }
            Err(error) => points.add(side, about, Verdict::Unknown, error.to_string(), ""),
        }
    }
    let (Ok(Some(at_hub)), Ok(Some(at_edge))) = (at_hub, at_edge) else {
        return;
    };
    if let Some(one) = ask::one_cluster(hub, edge, [&at_hub, &at_edge]) {
        points.add(None, about, Verdict::Wrong, one.found(), OneCluster::ADVICE);
    } else {
        points.add(None, about, Verdict::Good, "hub and edge are not the same", "");
    }
}

/// The kinds of configs, and the configs.
fn configs(found: &Survey, points: &mut Points) {
    let about = "configs";
    if found.kinds.is_empty() {
        return points.add(
            Side::Hub,
            about,
            Verdict::Wrong,
            ask::NO_CONFIGS,
            ask::about_no_configs(found),
        );
    }
    let kinds = found.kinds.join(" and ");
    match &*found.configs {
        [] => {
            let words = format!("{kinds} served, and there is none: nothing is synced");
            points.add(Side::Hub, about, Verdict::Note, words, "create one");
        }
        names => {
            let words = format!("{kinds} served: {}", names.join(", "));
            points.add(Side::Hub, about, Verdict::Good, words, "");
        }
    }
    for words in &found.unreadable {
        points.add(Side::Hub, about, Verdict::Wrong, &**words, "correct it");
    }
    for problem in &found.plan.problems {
        points.add(
            Side::Hub,
            about,
            Verdict::Wrong,
            problem.to_string(),
            "correct that field",
        );
    }
    for (resource, rule) in &found.plan.denied {
        let words = format!("{resource} is selected, and the edge does not allow it: {rule}");
        points.add(Side::Edge, about, Verdict::Note, words, "");
    }
}

/// Whether both sides serve what the configs select.
fn types(found: &Survey, points: &mut Points) {
    let about = "types";
    for side in [Side::Hub, Side::Edge] {
        let types = found.plan.types.values().map(|planned| match side {
            Side::Edge => &planned.at_edge,
            Side::Hub => &planned.at_hub,
        });
        let discovery = found.discovery(side);
        let mut served: Vec<String> = types
            .filter(|resource| {
                discovery
                    .find(&resource.group, &resource.version, &resource.resource)
                    .is_some()
            })
            .map(|resource| format!("{} {}", resource.qualified(), resource.version))
            .collect();
        served.sort();
        served.dedup();
        if !served.is_empty() {
            points.add(
                side,
                about,
                Verdict::Good,
                format!("it serves {}", served.join(", ")),
                "",
            );
        }
    }
    for missing in found.plan.missing.iter().filter(|missing| missing.is_reported()) {
        let place = missing.place.as_ref().map_or("", |place| &place.config);
        let meant = missing.meant.as_ref();
        let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
        let words = format!("it does not serve {missing}, which {place} selects{meant}");
        if missing.side == Side::Edge && brings(&found.plan, missing) {
            let words = format!("{words}: it comes with its CRD, which the configs select too");
            points.add(missing.side, about, Verdict::Note, words, "");
            continue;
        }
        points.add(
            missing.side,
            about,
            Verdict::Wrong,
            words,
            "install the CRD there, or correct the config",
        );
    }
    for planned in found.plan.types.values() {
        let Some(place) = &planned.not_stored else { continue };
        let (of, version) = (planned.at_origin().qualified(), &planned.at_origin().version);
        let words = format!(
            "it stores {of} at another version than {version}, which {} selects: what {version} lacks is not synced",
            place.config
        );
        points.add(
            planned.direction.origin(),
            about,
            Verdict::Note,
            words,
            "name that version, if both sides serve it",
        );
    }
    for (side, what, error) in &found.unreported {
        let words = format!("it cannot say what it serves at {what}: {error}");
        points.add(*side, about, Verdict::Unknown, words, "see what serves that API there");
    }
}

/// Whether each permission that the configs need is granted.
async fn permissions([hub, edge]: [&Rc<Cluster>; 2], found: &Survey, settings: &Settings, points: &mut Points) {
    let (sync_target, polled) = (settings.sync_target(), settings.polled());
    let own = settings.own_namespace.as_deref().unwrap_or("default");
    let mut situation = ask::situation(found, settings, &sync_target, (own, &polled));
    situation.allows_escalation = true;
    if let (Some(_), Credentials::Token(_, claims)) = (&settings.keep, &*hub.in_force()) {
        situation.account = claims.account();
    }
    for (side, cluster) in [(Side::Hub, hub), (Side::Edge, edge)] {
        let needed = needed(side, &situation).permissions;
        for some in needed.chunks(AT_ONCE) {
            let asked = some.iter().map(|permission| lacks(cluster, permission).boxed_local());
            let answers = together(asked.collect()).await;
            for (permission, answer) in some.iter().zip(answers) {
                permission_point(side, permission, answer, points);
            }
        }
    }
}

/// Waits for a few futures at once. The joins of the library are made for many, and add several kilobytes to the
/// binary.
async fn together<T>(mut running: Vec<LocalBoxFuture<'_, T>>) -> Vec<T> {
    let mut done: Vec<Option<T>> = running.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, done) in running.iter_mut().zip(&mut done) {
            if done.is_none()
                && let Poll::Ready(output) = future.poll_unpin(context)
            {
                *done = Some(output);
            }
        }
        if done.iter().all(Option::is_some) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    done.into_iter().flatten().collect()
}

fn permission_point(side: Side, permission: &Permission, answer: Result<Vec<&str>, Error>, points: &mut Points) {
    let about = "permission";
    let row = permission.row;
    let what = name_of(permission);
    let verbs = permission.verbs.join(", ");
    let feature = row.feature.replace('`', "");
    match answer {
        Ok(lacking) if lacking.is_empty() => {
            points.add(side, about, Verdict::Good, format!("{verbs} {what} ({feature})"), "");
        }
        Ok(lacking) => {
            let words = format!("may not {} {what} ({feature})", lacking.join(", "));
            // Without the others, less is done and nothing fails; and roles need none if the syncer has what they grant.
            if row.without.is_empty() {
                let to_do = format!(
                    "grant it: edge-syncer gen rbac --side {side} prints the roles; for an edge of gen --rbac=scoped, run that \
                     again"
                );
                points.add(side, about, Verdict::Wrong, words, to_do);
            } else {
                let words = format!("{words}; it is optional: without it, {}", row.without);
                points.add(side, about, Verdict::Note, words, "");
            }
        }
        Err(error) => {
            let words = format!("whether it may {verbs} {what} ({feature}) is not known: {error}");
            points.add(side, about, Verdict::Unknown, words, "");
        }
    }
}

/// The resource of a permission, for messages.
fn name_of(permission: &Permission) -> String {
    let Permission {
        group,
        resource,
        names,
        namespace,
        ..
    } = permission;
    let mut name = match (&**group, &**resource) {
        ("*", "*") => "every type".to_owned(),
        ("", resource) => resource.to_owned(),
        // The group is part of the resource, before a subresource.
        (group, resource) => match resource.split_once('/') {
            Some((resource, subresource)) => format!("{resource}.{group}/{subresource}"),
            None => format!("{resource}.{group}"),
        },
    };
    if !names.is_empty() {
        name = format!("{name} {}", names.join(", "));
    }
    match namespace {
        Some(namespace) => format!("{name} in {namespace}"),
        None => name,
    }
}

/// Which of its verbs a server does not allow.
async fn lacks(cluster: &Cluster, permission: &Permission) -> Result<Vec<&'static str>, Error> {
    let mut lacking = Vec::new();
    for &verb in &permission.verbs {
        let one = String::new();
        let names = if permission.names.is_empty() {
            std::slice::from_ref(&one)
        } else {
            &*permission.names
        };
        for name in names {
            if !is_allowed(cluster, permission, verb, name).await? && !lacking.contains(&verb) {
                lacking.push(verb);
            }
        }
    }
    Ok(lacking)
}

async fn is_allowed(cluster: &Cluster, permission: &Permission, verb: &str, name: &str) -> Result<bool, Error> {
    let (resource, subresource) = permission
        .resource
        .split_once('/')
        .unwrap_or((&permission.resource, ""));
    let attributes = json!({
        "group": permission.group,
        "resource": resource,
        "subresource": subresource,
        "verb": verb,
        "namespace": permission.namespace,
        "name": name,
    });
    cluster.allows(&attributes).await
}

/// True if the configs bring the CRD of a type that the edge lacks.
fn brings(plan: &Plan, missing: &Missing) -> bool {
    let crd = ObjectName::new("", &format!("{}.{}", missing.resource, missing.group));
    let mut crds = plan.types.values().filter(|planned| {
        planned.direction == Direction::Down && planned.at_edge.is("apiextensions.k8s.io", "customresourcedefinitions")
    });
    crds.any(|planned| planned.selector.selects(&crd).is_whole())
}
