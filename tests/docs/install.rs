//! The README's way from two empty clusters to a Deployment at the edge and its status at the hub.

use serde_json::json;

use crate::console::clusters;
use crate::pages::Page;
use crate::shell::Shell;
use crate::support::manifests::documents;
use crate::support::pod::start_as_pod;
use crate::support::process::Folder;
use crate::support::statuses::{set_status, web};
use crate::support::story::arrives;

/// The goal for the number of commands.
const MOST: usize = 5;

#[tokio::test]
async fn the_install_chapter_of_the_readme_works_as_it_is_written() {
    let page = Page::open("README.md");
    let (_, section) = page.text.split_once("\n## Install\n").expect("the README has one");
    let (_, block) = section.split_once("```sh\n").expect("it has a block");
    let (block, _) = block.split_once("```\n").expect("the block ends");
    let commands: Vec<&str> = block.lines().collect();
    assert!(commands.len() <= MOST, "{commands:#?}");
    let (last, before) = commands.split_last().expect("there are some");

    let (hub, edge) = clusters().await;
    let mut shell = Shell::start(&hub, &edge).await;
    for command in before {
        let answer = shell.run(command).await;
        assert_eq!(answer.code, 0, "$ {command}\n{:#?}", answer.lines);
    }
    // What kubelet and the controllers of the edge would do.
    let folder = Folder::create("install");
    let manifest = documents(&shell.read("site-7.yaml"));
    let _syncer = start_as_pod(&edge, &folder, &manifest).await;
    let edge = edge.objects();
    arrives(&edge, "apps/v1", "deployments", "shop", "web").await;
    let available = json!([{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}]);
    let status = json!({"observedGeneration": 1, "replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "conditions": available});
    set_status(&edge, web("shop"), true, &status).await;
    let answer = shell.run(last).await;
    assert_eq!(answer.code, 0, "$ {last}\n{:#?}", answer.lines);
    assert_eq!(answer.lines, ["deployment.apps/web condition met"]);
}
