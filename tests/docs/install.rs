//! The README's way from two empty clusters to a Deployment at the edge and its status at the hub.

use http::Method;
use serde_json::json;

use crate::console::clusters;
use crate::pages::Page;
use crate::shell::Shell;
use crate::support::Objects;
use crate::support::manifests::documents;
use crate::support::objects::JSON;
use crate::support::pod::start_as_pod;
use crate::support::process::Folder;
use crate::support::statuses::{set_status, web};
use crate::support::story::arrives;

/// The goal for the number of commands.
const MOST: usize = 6;

/// Checks that the account with this id at the hub, which has the token, is refused `*`.
async fn may_not_do_all(hub: &Objects, id: &str) {
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
        "user": format!("system:serviceaccount:default:{id}"),
        "resourceAttributes": {"group": "*", "resource": "*", "verb": "*"},
    }});
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let answer = hub.send(Method::POST, path, JSON, Some(&review)).await;
    assert_eq!(answer.expect("the hub knows its accounts")["status"]["allowed"], false);
}

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
    let id = &manifest
        .iter()
        .find(|it| it["kind"] == "Deployment")
        .expect("there is one")["metadata"]["name"];
    may_not_do_all(&hub.objects(), id.as_str().expect("a name is text")).await;
    let edge = edge.objects();
    arrives(&edge, "apps/v1", "deployments", "shop", "web").await;
    let available = json!([{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable"}]);
    let status = json!({"observedGeneration": 1, "replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "conditions": available});
    set_status(&edge, web("shop"), true, &status).await;
    let answer = shell.run(last).await;
    assert_eq!(answer.code, 0, "$ {last}\n{:#?}", answer.lines);
    assert_eq!(answer.lines, ["deployment.apps/web condition met"]);
}
