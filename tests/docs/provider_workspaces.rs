//! The blocks of docs/publish-first.md, run one after the other against a real kcp and a service cluster.

use std::path::Path;

use crate::pages::{Page, root};
use crate::shell::Shell;
use crate::support::kcp::Kcp;
use crate::support::{Server, ServerOptions, Syncer, kubectl};

/// Where kcp is, on the page.
const KCP: &str = "https://kcp.example.org:6443";

#[tokio::test]
#[ignore = "needs kcp: KCP_BIN, or kcp in PATH"]
async fn a_type_is_published_word_for_word() {
    let (kcp, service) = tokio::join!(Kcp::start(), Server::start("service", ServerOptions::default()));
    let (url, ..) = kcp.access();
    let mut shell = Shell::bare().await;
    let mut ready = "mkdir bin".to_owned();
    let program = Syncer::program_with("publish")
        .canonicalize()
        .expect("the binary is there");
    let manifests = root().join("manifests").canonicalize().expect("they are there");
    for (from, to) in [
        (&*program, "bin/edge-syncer"),
        (&*kubectl(), "bin/kubectl"),
        (&*manifests, "manifests"),
        (&*kcp.admin(), "admin.kubeconfig"),
        (Path::new(&service.kubeconfig()), "service.kubeconfig"),
    ] {
        ready = format!("{ready} && ln -s {} {to}", from.display());
    }
    assert_eq!(shell.run(&ready).await.code, 0);
    let page = Page::open("docs/publish-first.md");
    let mut last = Vec::new();
    for block in page.blocks().iter().filter(|block| block.language == "sh") {
        // Where one command fails, none after it runs.
        let command = format!("set -e; {}\nset +e", block.lines.join("\n").replace(KCP, &url));
        let answer = shell.run(&command).await;
        assert_eq!(
            answer.code, 0,
            "{}:{}: {:#?}",
            page.path, block.first_line, answer.lines
        );
        last = answer.lines;
    }
    // No copy is left.
    assert_eq!(last.last().map(String::as_str), Some("No resources found"), "{last:#?}");
    let log = shell.read("agent.log");
    assert!(!log.contains("ERROR") && !log.contains("panicked"), "{log}");
}
