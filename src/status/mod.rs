//! `edge-syncer status`: what is synced, what is not and why, as the hub knows it; with an edge, the objects of both
//! sides too.
//!
//! Reads only. What cannot be read is said, and all else is shown.

mod configs;
mod copies;
mod explain;
mod fields;
mod holds;
mod report;
mod table;
mod text;

use std::collections::BTreeSet;
use std::error::Error as StdError;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use driver::logger;
use kube_lite::Cluster;
use kube_lite::logging::times;

use self::configs::{Config, Judged};
use self::copies::{Bench, Progress};
use self::holds::Kubectl;
use self::report::{Copies, Explained, Report, Verdict};
use self::text::Style;
use crate::ask::{self, CannotAsk};
use crate::cli::{self, Screen, Settings, StatusOptions, StatusOutput};
use crate::side::Side;
use crate::sides;
use crate::survey::{Survey, View, survey};
use crate::sync::ownership::SyncTarget;

/// Says what is synced. Exit code 0 for all, 1 if something is not, 2 if that is not known.
pub async fn status(settings: Settings, options: StatusOptions) -> ExitCode {
    let report = match Box::pin(find(&settings, &options)).await {
        Ok(report) => report,
        Err(error) => return cli::cannot_tell(&*error),
    };
    cli::print(&match options.output {
        StatusOutput::Json => json(&report),
        output => {
            let style = Style {
                screen: Screen::of_stdout(),
                is_wide: output == StatusOutput::Wide,
            };
            text::text(&report, style)
        }
    });
    for error in &report.errors {
        cli::say(&table::shown(error));
    }
    if report.configs.is_empty() && report.errors.is_empty() {
        cli::say("the hub has no config: nothing is selected");
    }
    cli::code_of_finding(report.verdict != Verdict::Synced, report.verdict != Verdict::Unknown)
}

fn json(report: &Report) -> String {
    let text = serde_json::to_string_pretty(report).unwrap_or_default();
    table::shown_json(&text) + "\n"
}

async fn find(settings: &Settings, options: &StatusOptions) -> Result<Report, Box<dyn StdError>> {
    let hub = Rc::new(sides::open(Side::Hub, settings)?);
    let mut errors = Vec::new();
    let (mut known, edges) = configs::read(&hub, &mut errors).await;
    let is_hub_known = errors.is_empty();
    let mut is_misspelt = false;
    if let Some(name) = &options.config
        && let Err(error) = configs::retain(&mut known, name)
        && is_hub_known
    {
        errors.push(error);
        is_misspelt = true;
    }
    let now = hub.time().unwrap_or_else(|| logger::since_1970().as_secs());
    let uids: BTreeSet<String> = known.iter().flat_map(Config::uids).map(str::to_owned).collect();
    let kubectl = Kubectl::of(&settings.hub);
    let judged = Judged {
        now,
        stale_after: options.stale_after,
        kubectl: &kubectl,
        edges: &edges,
    };
    let only = options.sync_target.as_deref();
    let mut report = Report {
        hub: hub.standing().place.address.clone(),
        time: times::date_and_time(Duration::from_secs(now)),
        configs: known.into_iter().map(|config| config.judge(only, &judged)).collect(),
        errors,
        ..Report::default()
    };
    if !is_misspelt {
        Box::pin(look_further(
            settings,
            options,
            (&hub, is_hub_known),
            &uids,
            &mut report,
        ))
        .await;
    }
    report.judge();
    Ok(report)
}

/// Asks what the statuses of configs do not say.
async fn look_further(
    settings: &Settings,
    options: &StatusOptions,
    (hub, is_hub_known): (&Rc<Cluster>, bool),
    uids: &BTreeSet<String>,
    report: &mut Report,
) {
    let edge = if options.asks_edge {
        match open_edge(settings, options, uids) {
            Ok(found) => Some(found),
            Err(error) => return report.errors.push(error),
        }
    } else {
        None
    };
    let (edge, we) = edge.unzip();
    let we = we.unwrap_or_else(|| SyncTarget {
        uid: options.sync_target.clone().unwrap_or_default(),
        former: Vec::new(),
    });
    let view = View {
        config: options.config.as_deref(),
        ..ask::view(settings, &we)
    };
    let bench = Bench {
        hub,
        edge: edge.as_ref().unwrap_or(hub),
        we: &we,
        filter: &settings.filter,
        is_all: options.config.is_none(),
        counts_only: !is_hub_known,
    };
    let found = match (&edge, &options.object) {
        (edge, object) if is_hub_known && (edge.is_some() || object.is_some()) => {
            survey(hub, edge.as_ref(), &view).await
        }
        // What its record says was synced.
        (Some(edge), _) => survey(edge, Some(edge), &view).await,
        (None, _) => return,
    };
    let found = match found {
        Ok(found) => found,
        Err((side, error)) => return report.errors.push(CannotAsk::new(bench.at(side), error).to_string()),
    };
    note_unreported(&found, report);
    match &options.object {
        Some(object) if is_hub_known => {
            let explained = explain::explain(&bench, edge.is_some(), &found.plan, object, &report.configs).await;
            match explained {
                Ok(objects) => report.objects = objects,
                Err((side, error)) => report.errors.push(CannotAsk::new(bench.at(side), error).to_string()),
            }
        }
        Some(object) => report.objects = vec![unknown(object)],
        None => compare(&bench, &found, report).await,
    }
}

/// Without the configs.
fn unknown([kind, namespace, name]: &[String; 3]) -> Explained {
    Explained {
        object: format!("{kind}/{namespace}/{name}"),
        verdict: Verdict::Unknown,
        findings: vec!["whether a config selects it is not known".to_owned()],
        ..Explained::default()
    }
}

fn note_unreported(found: &Survey, report: &mut Report) {
    for (side, what, error) in &found.unreported {
        let words = format!("the {side} cannot say what it serves at {what}: {error}: see what serves that API there");
        report.errors.push(words);
    }
}

async fn compare(bench: &Bench<'_>, found: &Survey, report: &mut Report) {
    let mut copies = Copies {
        address: bench.edge.standing().place.address.clone(),
        sync_target: bench.we.uid.clone(),
        ..Copies::default()
    };
    for of_type in bench.compare(&found.plan, &mut Progress::default()).await {
        match of_type {
            Ok(found) => {
                copies.types.push(found.counts);
                copies.objects.extend(found.objects);
            }
            Err((side, error)) => report.errors.push(CannotAsk::new(bench.at(side), error).to_string()),
        }
    }
    if !copies.objects.is_empty() {
        copies.verdict = Verdict::NotSynced;
    }
    if bench.counts_only {
        copies.verdict = Verdict::Unknown;
    }
    report.edge = Some(copies);
}

/// The edge, and the sync target whose copies are there.
fn open_edge(
    settings: &Settings,
    options: &StatusOptions,
    uids: &BTreeSet<String>,
) -> Result<(Rc<Cluster>, SyncTarget), String> {
    let mut known = uids.iter();
    let only = known.next().filter(|_| known.next().is_none());
    let Some(uid) = options.sync_target.as_ref().or(only) else {
        let names = if uids.is_empty() {
            "the hub knows of none".to_owned()
        } else {
            let names: Vec<&str> = uids.iter().map(String::as_str).collect();
            format!("the hub knows {}", names.join(", "))
        };
        return Err(format!(
            "--sync-target-uid is missing: it must be that of the edge of --to-kubeconfig; {names}"
        ));
    };
    let edge = sides::open(Side::Edge, settings).map_err(|error| error.to_string())?;
    let we = SyncTarget {
        uid: uid.clone(),
        former: settings.former_sync_target_uids.clone(),
    };
    Ok((Rc::new(edge), we))
}
