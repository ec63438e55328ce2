//! `edge-syncer diff`: what `run` would change, as a diff of each object.
//!
//! It is `run` as a dry run, until all was tried: the same configs, the same record, the same decisions, and the servers' own
//! answers. Nothing is changed at either side. What is not known is an error, and never shown as if it were.

mod masks;
mod text;
mod unified;
mod wanted;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use kube_lite::Content;
use tokio::sync::{Notify, mpsc};
use tokio::task::LocalSet;
use tokio::time::{Instant, timeout};

use self::wanted::Wanted;
use crate::ask::{self, CannotAsk};
use crate::cli::{self, DiffOptions, Settings};
use crate::engine::dry_run::{DryRun, Shown, What, Would, contents};
use crate::engine::{self, Clusters};
use crate::model::dry_run::{HeldDelete, Remaining};
use crate::side::Side;
use crate::survey::{View, survey};
use crate::sync::job::{Change, Job};
use crate::{sides, syncer};

/// What waits or fails has so long to come to something else.
const REST: Duration = Duration::from_secs(3);
/// A side that is away so long is not waited for.
const AWAY: Duration = Duration::from_secs(30);
/// Nor is anything else, of which nothing is heard for so long.
const SILENT: Duration = Duration::from_secs(300);

/// What was shown.
#[derive(Default)]
struct Heard {
    /// What would be done, by side, object, and whether that is about its status: as text.
    changes: BTreeMap<(Side, String, bool), String>,
    remaining: Option<Remaining>,
}

/// Prints what `run` would change. Exit code 0 for nothing, 1 for something, 2 if that is not known.
pub async fn diff(settings: Settings, options: DiffOptions) -> ExitCode {
    match Box::pin(find(settings, &options)).await {
        Ok(found) => {
            cli::print(&found.text());
            found.sum_up();
            cli::code_of_finding(!found.is_empty(), found.is_known())
        }
        Err(error) => cli::cannot_tell(&*error),
    }
}

/// What was found.
struct Found {
    changes: Vec<String>,
    held: Vec<String>,
    remaining: Remaining,
}

impl Found {
    fn text(&self) -> String {
        self.changes.iter().chain(&self.held).map(String::as_str).collect()
    }

    fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.held.is_empty()
    }

    fn is_known(&self) -> bool {
        self.remaining.failing == 0
    }

    /// Says in a line what it comes to.
    fn sum_up(&self) {
        let Self { changes, held, .. } = self;
        cli::say(&match (changes.len(), held.len()) {
            (0, 0) => "run would change nothing".to_owned(),
            (some, 0) => format!("run would change {some}"),
            (some, held) => format!("run would change {some}, and hold {held} deletes"),
        });
        let Remaining { waiting, failing, .. } = self.remaining;
        if failing > 0 {
            cli::say(&format!(
                "{failing} fail, as the lines above say: what run would do about them is not known"
            ));
        } else if waiting > 0 {
            cli::say(&format!(
                "{waiting} wait for something else, such as a namespace that no config selects"
            ));
        }
    }
}

async fn find(settings: Settings, options: &DiffOptions) -> Result<Found, Box<dyn StdError>> {
    let [hub, edge] = sides::open_both(&settings)?.map(Rc::new);
    let sync_target = settings.sync_target();
    let view = View {
        config: options.config.as_deref(),
        ..ask::view(&settings, &sync_target)
    };
    let surveyed = survey(&hub, Some(&edge), &view).await;
    let surveyed =
        surveyed.map_err(|(side, error)| CannotAsk::new(if side == Side::Edge { &edge } else { &hub }, error))?;
    if surveyed.kinds.is_empty() {
        let (address, advice) = (hub.standing().place.address.clone(), ask::about_no_configs(&surveyed));
        return Err(format!("hub {address}: {}: {advice}", ask::NO_CONFIGS).into());
    }
    if let Some(config) = options.config.as_deref().filter(|_| surveyed.configs.is_empty()) {
        return Err(format!("--config {config:?}: the hub has no such config that can be read").into());
    }
    let wanted = Wanted::new(options, surveyed.plan);
    if let Some([kind, namespace, name]) = options.object.as_ref().filter(|_| !wanted.may_be_selected()) {
        return Err(format!("--object {kind}/{namespace}/{name}: the configs select nothing that is called so").into());
    }
    let clusters = Clusters::shared([hub, edge]);
    let (heard, wanted) = Box::pin(rehearse(settings, clusters.clone(), wanted)).await?;
    let Heard { changes, remaining } = heard;
    let remaining = remaining.unwrap_or_default();
    let mut held = Vec::new();
    for delete in &remaining.held {
        held.extend(show_held(&clusters, delete, &wanted).await?);
    }
    Ok(Found {
        changes: changes.into_values().collect(),
        held,
        remaining,
    })
}

/// Runs until all was tried.
async fn rehearse(
    settings: Settings,
    clusters: Clusters,
    wanted: Wanted,
) -> Result<(Heard, Rc<Wanted>), Box<dyn StdError>> {
    let (heard, news, wanted) = (
        Rc::new(RefCell::new(Heard::default())),
        Rc::new(Notify::new()),
        Rc::new(wanted),
    );
    let tries = {
        let wanted = Rc::clone(&wanted);
        move |job: &Job| wanted.tries(job)
    };
    let listener = {
        let (heard, news, wanted) = (Rc::clone(&heard), Rc::clone(&news), Rc::clone(&wanted));
        let tell = move |shown| {
            match shown {
                Shown::Would(would) if wanted.shows(&would) => {
                    let key = (would.side, would.object.clone(), would.what == What::Status);
                    heard.borrow_mut().changes.insert(key, show(&would, ""));
                }
                Shown::Would(_) => {}
                Shown::Tried(remaining) => heard.borrow_mut().remaining = Some(remaining),
            }
            news.notify_one();
        };
        settings
            .dry_run
            .map(|dry_run| DryRun::new(dry_run, tell).of_those(tries))
    };
    let mut setup = syncer::engine_setup(settings, clusters.clone());
    setup.dry_run = listener;
    let (_questions, asked) = mpsc::channel(1);
    let mut end = Ok(());
    let stop = async { end = all_tried(&heard, &news, &clusters).await };
    let run = Box::pin(engine::run_and_answer(setup, asked, stop));
    LocalSet::new().run_until(run).await?;
    end?;
    Ok((heard.take(), wanted))
}

/// Returns once all was tried, and what fails has done so for a while.
async fn all_tried(heard: &RefCell<Heard>, news: &Notify, clusters: &Clusters) -> Result<(), Box<dyn StdError>> {
    let mut last = Instant::now();
    let mut contact = Instant::now();
    loop {
        if timeout(Duration::from_millis(100), news.notified()).await.is_ok() {
            last = Instant::now();
        }
        let away = clusters.all().into_iter().find(|side| !side.standing().answers);
        if away.is_none() {
            contact = Instant::now();
        }
        let is_quiet = last.elapsed() >= REST;
        let remaining = heard.borrow().remaining.clone();
        match (remaining, away) {
            (_, Some(side)) if contact.elapsed() >= AWAY => {
                let address = side.standing().place.address.clone();
                return Err(format!("the {} {address} does not answer", side.name()).into());
            }
            (Some(left), None) if left.waiting + left.failing == 0 || is_quiet => return Ok(()),
            (None, _) if last.elapsed() >= SILENT => {
                return Err("it does not come to an end, for the reasons that the lines above say".into());
            }
            _ => {}
        }
    }
}

/// A delete that is held.
async fn show_held(
    clusters: &Clusters,
    HeldDelete { side, at, why }: &HeldDelete,
    wanted: &Wanted,
) -> Result<Option<String>, Box<dyn StdError>> {
    let cluster = clusters.at(*side);
    let object = match cluster.get(&at.resource, &at.name, Content::Full).await {
        Err(error) if error.proves_absent(&at.name.name) => return Ok(None),
        object => object.map_err(|error| CannotAsk::new(cluster, error))?,
    };
    let mut object: serde_json::Value = serde_json::from_slice(&object)?;
    object["kind"] = (&*at.resource.kind).into();
    object["apiVersion"] = at.resource.api_version().into();
    let would = Would {
        side: *side,
        object: at.for_people(),
        what: What::Object(Change::Deleted),
        before: Some(contents(object, false)),
        now: None,
        is_as_sent: false,
    };
    Ok(wanted
        .shows(&would)
        .then(|| show(&would, &format!(", and that is held: {why}"))))
}

/// What would be done, with its diff.
fn show(would: &Would, note: &str) -> String {
    let (side, object, words) = (would.side, &would.object, would.words());
    let as_sent = if would.is_as_sent {
        " (as it would be sent: the server cannot be asked before what it needs is there)"
    } else {
        ""
    };
    let [before, now] = masks::masked([&would.before, &would.now]).map(|value| value.as_ref().map(text::of));
    let from = before
        .as_ref()
        .map_or("/dev/null".to_owned(), |_| format!("{side} {object}"));
    let to = now
        .as_ref()
        .map_or("/dev/null".to_owned(), |_| format!("{side} {object}, after run"));
    let lines = unified::diff(&before.unwrap_or_default(), &now.unwrap_or_default());
    format!("# {side}: {object} {words}{note}{as_sent}\n--- {from}\n+++ {to}\n{lines}")
}
