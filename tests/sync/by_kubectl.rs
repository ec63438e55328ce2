//! Whoever sees the hub alone finds with kubectl what is wrong, within a minute.

use std::time::Duration;

use serde_json::json;

use crate::support::modes::{Mode, in_both_modes};
use crate::support::stage::{Stage, all_of, own_group, select, stage, stock};
use crate::support::story::{SOON, crd, crd_up_to_five, custom_object, drop_crds, install_crd, reselect};
use crate::support::tables::{cells, printed, seconds};
use crate::support::{Server, ServerOptions, Syncer, eventually, time_now};

in_both_modes!(a_silent_edge_a_refused_object_and_a_misspelt_entry_are_found_with_kubectl_within_a_minute);

/// How long a person looks.
const A_MINUTE: Duration = Duration::from_secs(60);
/// How many seconds without a heartbeat are silence, where there is one each second.
const SILENT: u64 = 8;
const CONFIGS: &str = "syncerconfigs,edgesyncconfigs";
const THE_ONE: &str = "syncerconfig.edge.kubestellar.io/the-one";

/// Fails with what is printed if it lacks some of these words.
fn has(text: &str, words: &[&str]) -> Result<(), String> {
    match words.iter().find(|words| !text.contains(**words)) {
        None => Ok(()),
        Some(missing) => Err(format!("without {missing:?}: {text}")),
    }
}

/// The last heartbeat of an edge, as `describe` prints it: within each object, fields are by their names.
fn heartbeat_of<'a>(described: &'a str, edge: &str) -> &'a str {
    let mut last = "";
    for (field, value) in described.lines().filter_map(|line| line.trim().split_once(": ")) {
        match field {
            "Last Heartbeat Time" => last = value.trim(),
            "Sync Target UID" if value.trim() == edge => return last,
            "Sync Target UID" => last = "",
            _ => {}
        }
    }
    ""
}

/// Which edge is silent, and since when.
fn names_the_silent_edge(hub: &Server, [fresh, silent]: &[String; 2], killed: &str) -> Result<(), String> {
    let table = printed(hub, &["get", "edges"]).remove(0);
    let [of_fresh, of_silent] = [fresh, silent].map(|name| seconds(&cells(&table, name)?[5]));
    if of_silent < Some(SILENT) || of_fresh.is_none() || of_fresh >= of_silent {
        return Err(format!("{table:?}"));
    }
    let described = hub.kubectl(&["describe", "edge", silent]);
    let since = described
        .lines()
        .find_map(|line| line.trim().strip_prefix("Last Heartbeat Time:"));
    let since = since.unwrap_or_default().trim();
    let of_config = hub.kubectl(&["describe", "syncerconfig", "the-one"]);
    // Both to the second.
    for since in [since, heartbeat_of(&of_config, silent)] {
        if since.is_empty() || since.get(..19) > killed.get(..19) {
            return Err(format!("{since:?}, killed at {killed}: {described}{of_config}"));
        }
    }
    Ok(())
}

/// Which object fails, where, since when and why.
fn names_the_refused_object(hub: &Server, edge: &str, object: &str) -> Result<(), String> {
    let of_edge = printed(hub, &["get", "edges"]).remove(0);
    let of_config = printed(hub, &["get", CONFIGS, "-o", "wide"]).remove(0);
    for (table, name) in [(&of_edge, edge), (&of_config, THE_ONE)] {
        // READY and FAILING.
        if cells(table, name).is_none_or(|cells| [&*cells[1], &*cells[3]] != ["False", "1"]) {
            return Err(format!("{table:?}"));
        }
    }
    let described = hub.kubectl(&["describe", "syncerconfig", "the-one"]);
    let failure = described.split_once("Failures:").map_or("", |(_, failure)| failure);
    has(
        failure,
        &[object, "ObjectRejected", "should be less than or equal to 5", "Since: "],
    )?;
    has(&described, &["Events:", "ApplyFailed"])
}

/// Which entry is misspelt, and how it is written.
fn names_the_misspelt_entry(hub: &Server, edge: &str) -> Result<(), String> {
    let words = [
        "spec.namespaceScope.resources[2]",
        "deploymnts",
        "did you mean deployments?",
    ];
    for args in [
        ["get", "edges", edge, "-o=wide"],
        ["get", CONFIGS, "--no-headers", "-o=wide"],
    ] {
        has(&hub.kubectl(&args), &words)?;
    }
    let described = hub.kubectl(&["describe", "syncerconfig", "the-one"]);
    let problems = described.split_once("Problems:").map_or("", |(_, problems)| problems);
    has(problems, &words)
}

async fn a_silent_edge_a_refused_object_and_a_misspelt_entry_are_found_with_kubectl_within_a_minute(flags: Mode) {
    let Stage { pair, shop, hub, edge } = stage().await;
    let other = Server::start("edge", ServerOptions::default()).await;
    let (group, _) = own_group(&shop);
    install_crd(&[&hub, &other.objects()], &crd(&group, "works", true)).await;
    install_crd(&[&edge], &crd_up_to_five(&group, "works")).await;
    stock(&hub, &shop, &["a"], &json!({})).await;
    let types = |plural| all_of(&shop, &[("", "configmaps"), (&group, "works"), ("apps", plural)]);
    select(&hub, &types("deployments")).await;
    let edges = ["north", "south"].map(|name| format!("{shop}-{name}"));
    let start = |server: &Server, name: &str| {
        let target = format!("--sync-target-uid={name}");
        let flags = [flags, &[&*target, "--heartbeat-interval=1s"]].concat();
        Syncer::start(&pair.hub.kubeconfig(), &server.kubeconfig(), &flags)
    };
    let (_north, mut south) = (start(&pair.edge, &edges[0]), start(&other, &edges[1]));
    eventually(
        "all is well, and both have a heartbeat on each object",
        SOON,
        async || {
            let table = printed(&pair.hub, &["get", "edges"]).remove(0);
            let described = pair.hub.kubectl(&["describe", "syncerconfig", "the-one"]);
            let is_well = |edge: &String| {
                let cells = cells(&table, edge).is_some_and(|cells| cells[1..5] == ["True", "1/1", "0", "0"]);
                cells && !heartbeat_of(&described, edge).is_empty()
            };
            if edges.iter().all(is_well) {
                Ok(())
            } else {
                Err(format!("{table:?} {described}"))
            }
        },
    )
    .await;

    // One edge dies, the other refuses an object, and somebody misspells a type.
    south.kill();
    let killed = time_now();
    hub.create(&custom_object(&group, "works", &shop, "bad", 9)).await;
    reselect(&hub, &types("deploymnts")).await;
    eventually("kubectl shows all of it", A_MINUTE, async || {
        names_the_refused_object(&pair.hub, &edges[0], &format!("Work/{shop}/bad"))?;
        names_the_misspelt_entry(&pair.hub, &edges[0])?;
        names_the_silent_edge(&pair.hub, &edges, &killed)
    })
    .await;
    drop_crds(&[&hub, &edge], &[&format!("works.{group}")]).await;
}
