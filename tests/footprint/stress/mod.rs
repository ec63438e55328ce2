//! What a syncer takes when much is asked of it: many objects, large ones, bursts, a hub that is gone, links that break
//! all the time, objects that come and go. What is searched for is memory that grows and logs without an end.
//!
//! Each part has servers and a syncer of its own.

mod bomb;
mod burst;
mod churn;
mod failing;
mod objects;
mod offline;
mod reconnects;
mod stage;

use std::str::FromStr;
use std::time::Duration;

use crate::table::Table;
use stage::Stage;

/// One kind of stress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Very many objects.
    Objects,
    /// Very large ones.
    Large,
    /// Very many changes in a moment.
    Burst,
    /// The hub is gone while the edge changes.
    Offline,
    /// Connections break again and again.
    Reconnects,
    /// Objects come and go.
    Churn,
    /// Answers that are a thousand times as long as what comes.
    Bomb,
    /// Very many objects that the edge refuses in many words.
    Failing,
}

/// All parts and what they are called, in the order in which they run.
const PARTS: [(&str, Part); 8] = [
    ("objects", Part::Objects),
    ("large", Part::Large),
    ("burst", Part::Burst),
    ("offline", Part::Offline),
    ("reconnects", Part::Reconnects),
    ("churn", Part::Churn),
    ("bomb", Part::Bomb),
    ("failing", Part::Failing),
];

/// Some parts: `all`, or their names with commas.
pub(crate) struct Parts(Vec<(&'static str, Part)>);

impl FromStr for Parts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self(PARTS.to_vec()));
        }
        let known = |name: &str| PARTS.iter().find(|(known, _)| *known == name).copied();
        let parts = text.split(',').map(|name| {
            known(name).ok_or_else(|| {
                let names = PARTS.map(|(name, _)| name).join(", ");
                format!("no part is called {name:?}: there are {names}, and all of them together: all")
            })
        });
        parts.collect::<Result<_, _>>().map(Self)
    }
}

/// Runs `parts`, one after the other; those that go on for a time, for that of `minutes`.
pub(crate) async fn run(parts: &Parts, minutes: u32) -> Table {
    let head = ["part", "", "resident memory (peak)", "log lines"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for &(name, part) in &parts.0 {
        let flags: &[&str] = if part == Part::Churn { &churn::FLAGS } else { &[] };
        let mut stage = Stage::start(name, flags).await;
        match part {
            Part::Objects => objects::run(&mut stage, 10_000, 1 << 10).await,
            // A ConfigMap may hold 1 MiB; with names and annotations the edge takes a little less.
            Part::Large => objects::run(&mut stage, 30, 1_000_000).await,
            Part::Burst => burst::run(&mut stage).await,
            Part::Offline => offline::run(&mut stage, minutes).await,
            Part::Reconnects => reconnects::run(&mut stage, MINUTE * minutes).await,
            Part::Churn => churn::run(&mut stage, minutes).await,
            Part::Bomb => bomb::run(&mut stage).await,
            Part::Failing => failing::run(&mut stage).await,
        }
        rows.extend(stage.end());
    }
    Table::of_rows(rows)
}

/// Between two reads the memory in the parts that go on for a time.
const MINUTE: Duration = Duration::from_secs(60);
