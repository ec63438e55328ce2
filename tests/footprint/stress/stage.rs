//! Two servers and a syncer that are put under stress, and the rows of the table that tell of it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::bench::DEADLINE;
use crate::life::Life;
use crate::load::{GAUGES_V1, GROUP, select_gauges};
use crate::support::objects::{Objects, namespace, syncer_config};
use crate::support::story::{config_map_entry, crd, install_crd, upsync_all};
use crate::support::{Pair, PairOptions, eventually};
use crate::table::{memory, percent, seconds};

/// Namespace of `ConfigMap`s and gauges that go from hub to edge.
pub(super) const DOWN: &str = "stress";
/// Namespace of `ConfigMap`s that go up.
pub(super) const UP: &str = "stress-up";
/// Between two reads all objects.
const PAUSE: Duration = Duration::from_secs(1);

/// Two servers, a syncer that has nothing to do at first, and what was seen of it.
pub(super) struct Stage {
    part: &'static str,
    flags: &'static [&'static str],
    pub(super) pair: Pair,
    pub(super) life: Life,
    pub(super) hub: Objects,
    pub(super) edge: Objects,
    rows: Vec<Vec<String>>,
}

impl Stage {
    /// Starts the servers and a syncer between them, with more flags.
    pub(super) async fn start(part: &'static str, flags: &'static [&'static str]) -> Self {
        say(part, "starting two API servers and the syncer");
        let pair = Pair::start(PairOptions::default()).await;
        let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
        install_crd(&[&hub, &edge], &crd(GROUP, "gauges", true)).await;
        hub.create(&namespace(DOWN)).await;
        edge.create(&namespace(UP)).await;
        let life = Life::begin(&pair, flags).await;
        let rows = Vec::new();
        let mut stage = Self {
            part,
            flags,
            pair,
            life,
            hub,
            edge,
            rows,
        };
        stage.life.settle().await;
        stage.note("nothing selected");
        stage
    }

    /// Selects everything in the two namespaces.
    pub(super) async fn select(&self) {
        let spec = json!({
            "namespacedObjects": [config_map_entry(DOWN, &["*"])],
            "namespaceScope": select_gauges(DOWN),
            "upsync": [upsync_all("", &["configmaps"], UP)],
        });
        self.hub.create(&syncer_config("the-one", spec)).await;
    }

    /// Ends the syncer as a power cut does and starts another.
    pub(super) async fn restart(&mut self) {
        self.progress("restarting the syncer");
        self.life.syncer.kill();
        self.life = Life::begin(&self.pair, self.flags).await;
    }

    /// Says on stderr what is going on.
    pub(super) fn progress(&self, what: &str) {
        say(self.part, what);
    }

    /// Adds a row: memory and log lines at this moment.
    pub(super) fn note(&mut self, moment: &str) {
        let lines = self.life.syncer.log().lines().count();
        let memory = memory(&mut self.life.syncer);
        self.progress(&format!("{moment}: {memory}, {lines} log lines"));
        self.rows
            .push(vec![self.part.to_owned(), moment.to_owned(), memory, lines.to_string()]);
    }

    /// Adds a row that says how much resident memory has grown.
    pub(super) fn note_growth(&mut self, since: &str, before: u64, after: u64) {
        let growth = format!("{} ({before} kB to {after} kB)", percent(before, after));
        say(self.part, &format!("growth since {since}: {growth}"));
        self.rows.push(vec![
            self.part.to_owned(),
            format!("growth since {since}"),
            growth,
            String::new(),
        ]);
    }

    /// Waits until both sides have the same objects with the same content, and adds a row for `what` was done.
    pub(super) async fn catch_up(&mut self, what: &str) {
        let begin = Instant::now();
        // Quiet is cheaper to wait for than to compare all objects again and again.
        self.life.settle().await;
        let (hub, edge) = (&self.hub, &self.edge);
        let mut took = begin.elapsed();
        eventually("both sides are synced", DEADLINE, async || {
            took = begin.elapsed();
            let differs = Self::differs(hub, edge).await;
            if differs.is_err() {
                sleep(PAUSE).await;
            }
            differs
        })
        .await;
        self.life.settle().await;
        self.note(&format!("{what}; synced within {}", seconds(took)));
    }

    /// An error if the sides differ in an object, or in a status.
    async fn differs(hub: &Objects, edge: &Objects) -> Result<(), String> {
        for (api_version, plural, space, field) in [
            ("v1", "configmaps", DOWN, "data"),
            (GAUGES_V1, "gauges", DOWN, "status"),
            ("v1", "configmaps", UP, "data"),
        ] {
            let at_hub = contents(hub, api_version, plural, space, field).await?;
            let at_edge = contents(edge, api_version, plural, space, field).await?;
            if at_hub != at_edge {
                let equal = at_hub
                    .iter()
                    .filter(|(name, content)| at_edge.get(*name) == Some(content));
                let (equal, hub, edge) = (equal.count(), at_hub.len(), at_edge.len());
                return Err(format!(
                    "{plural} in {space}: {hub} at the hub, {edge} at the edge, {equal} equal"
                ));
            }
        }
        Ok(())
    }

    /// Ends everything; gives the rows.
    pub(super) fn end(self) -> Vec<Vec<String>> {
        self.rows
    }
}

/// What the objects of a type hold in `field`, by their names.
async fn contents(
    side: &Objects,
    api_version: &str,
    plural: &str,
    space: &str,
    field: &str,
) -> Result<BTreeMap<String, Value>, String> {
    let mut objects = side
        .try_list(api_version, plural, space, "")
        .await
        .map_err(|error| error.to_string())?;
    let content = |object: &mut Value| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        (name, object[field].take())
    };
    Ok(objects.iter_mut().map(content).collect())
}

fn say(part: &str, what: &str) {
    crate::say(&format!("{part}: {what}"));
}
