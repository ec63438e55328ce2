//! What is printed to a terminal, and to one of another width.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::bench::{comes_to, status_at};
use crate::support::objects::syncer_config;
use crate::support::stage::{Stage, all_of, config_maps, select, stage, stock};
use crate::support::{Printed, Syncer, eventually};

/// Runs the command in a terminal of its own with so many columns, and these variables set. Gives what the terminal gets.
fn in_terminal(hub: &Path, columns: usize, variables: &str) -> String {
    let command = format!(
        "stty cols {columns}; exec env {variables} '{}' status --from-kubeconfig='{}'",
        Syncer::program().display(),
        hub.display()
    );
    let run = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .env_remove("COLUMNS")
        .env_remove("NO_COLOR")
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .output();
    let run = run.expect("there is `script`, of util-linux: it makes a terminal");
    let text = String::from_utf8(run.stdout).expect("it prints UTF-8");
    assert!(text.contains("CONFIG"), "{text}");
    text.replace('\r', "")
}

/// Without what a terminal obeys.
fn plain(text: &str) -> String {
    let parts = text.split("\x1b[").enumerate();
    let visible = parts.map(|(index, part)| match index {
        0 => part,
        _ => part.split_once('m').map_or(part, |(_, visible)| visible),
    });
    visible.collect()
}

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or_default()
}

#[tokio::test]
async fn a_terminal_has_colours_unless_no_color_is_set_and_lines_that_fit() {
    let stage = stage().await;
    let Stage { pair, shop, hub, .. } = &stage;
    stock(hub, shop, &["a"], &json!({})).await;
    hub.create(&syncer_config(&"x".repeat(60), config_maps(shop, &["a"])))
        .await;
    let _syncer = pair.syncer(&["--sync-target-name=a-rather-long-name-of-a-warehouse-in-the-north"]);
    comes_to(&stage, 0, &[]).await;
    let kubeconfig = pair.hub.kubeconfig();
    let coloured = in_terminal(&kubeconfig, 80, "");
    assert!(coloured.contains("\x1b[32msynced\x1b[0m"), "{coloured:?}");
    for variables in ["NO_COLOR=1", "TERM=dumb"] {
        let text = in_terminal(&kubeconfig, 80, variables);
        assert!(!text.contains('\x1b'), "{variables}: {text:?}");
        assert_eq!(text.lines().count(), 2);
    }
    // An empty one is none.
    assert!(in_terminal(&kubeconfig, 80, "NO_COLOR=").contains("\x1b[32m"));
    assert!(widest(&plain(&coloured)) <= 80 && coloured.contains('…'), "{coloured}");
    let wider = plain(&in_terminal(&kubeconfig, 200, ""));
    assert!((81..=200).contains(&widest(&wider)) && !wider.contains('…'), "{wider}");
    // What people set counts more.
    let narrow = plain(&in_terminal(&kubeconfig, 200, "COLUMNS=80"));
    assert!(widest(&narrow) <= 80 && narrow.contains('…'), "{narrow}");
}

#[tokio::test]
async fn at_200_columns_the_table_says_why_and_at_80_the_lines_below_it_do() {
    let stage = stage().await;
    let Stage { pair, shop, hub, .. } = &stage;
    stock(hub, shop, &["a"], &json!({})).await;
    select(hub, &all_of(shop, &[("", "configmaps"), ("apps", "deployment")])).await;
    let _syncer = pair.syncer(&[]);
    let kubeconfig = pair.hub.kubeconfig();
    comes_to(&stage, 1, &[]).await;
    let at = async |columns: &str| {
        let run = tokio::process::Command::new(Syncer::program())
            .args(["status", "--from-kubeconfig"])
            .arg(&kubeconfig)
            .env("COLUMNS", columns)
            .output()
            .await;
        Printed::of(&run.expect("the binary can be started"))
    };
    let wide = eventually("it names the entry", crate::support::story::SOON, async || {
        let found = at("200").await;
        if found.out.contains("deployment.apps") {
            Ok(found)
        } else {
            Err(found.out + &found.err)
        }
    })
    .await;
    let narrow = at("80").await;
    for (found, columns) in [(&wide, 200), (&narrow, 80)] {
        found.ends_with(1).says("spec.namespaceScope.resources[1]");
        assert!(widest(&found.out) <= columns, "{columns}: {}", found.out);
    }
    let head = |found: &Printed| found.out.lines().next().unwrap_or_default().to_owned();
    assert!(
        head(&wide).ends_with(" WHY") && !head(&narrow).contains("WHY"),
        "{}{}",
        wide.out,
        narrow.out
    );
    assert!(
        wide.out.lines().nth(1).is_some_and(|row| row.contains("deployment")),
        "{}",
        wide.out
    );
    // A file is as wide as it has to be.
    let whole = status_at(&kubeconfig, &[]).await;
    assert!(
        whole.out.lines().any(|line| line.contains("did you mean deployments?")),
        "{}",
        whole.out
    );
}
