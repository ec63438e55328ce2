//! The assumptions about API servers, held against a real one and against the one of the simulation.

mod sim;
mod support;

#[path = "assumptions/bench.rs"]
mod bench;
#[path = "assumptions/cases.rs"]
mod cases;
#[path = "assumptions/reading.rs"]
mod reading;
#[path = "assumptions/types.rs"]
mod types;

use bench::Bench;
use cases::CASES;
use edge_syncer::side::Side;
use futures_util::FutureExt as _;
use kube_lite::access::{AccessSource, Flags};
use kube_lite::reload::Reloading;
use serde_json::json;
use support::objects::namespace;
use support::process::complain;
use support::{Server, ServerOptions, unique_suffix};
use tokio::task::LocalSet;

#[tokio::test]
async fn a_real_server_does_what_is_assumed_of_it() {
    let real = Server::start("hub", ServerOptions::default()).await;
    let access = AccessSource::Kubeconfig {
        path: real.kubeconfig(),
        context: None,
        flags: Flags::default(),
    };
    let server = Reloading::open(Side::Hub.word(), access, "assumptions".into());
    let server = server.expect("the kubeconfig was made for this");
    let compact = || real.compact().boxed_local();
    for (name, case) in CASES {
        let bench = Bench {
            server: &server,
            namespace: format!("case-{}", unique_suffix()),
            compact: &compact,
        };
        real.objects().create(&namespace(&bench.namespace)).await;
        // Shown when the case fails.
        complain(&format!("case {name}"));
        case(&bench).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_simulated_server_does_what_is_assumed_of_a_real_one() {
    let cases = async {
        for (name, case) in CASES {
            let (simulated, port) = sim::server::Server::alone();
            let compact = || async { simulated.store.borrow_mut().compact() }.boxed_local();
            let bench = Bench {
                server: &port,
                namespace: "case".to_owned(),
                compact: &compact,
            };
            // Neither have the real ones any controllers.
            simulated.store.borrow_mut().fills_namespaces = false;
            simulated.create("people", "namespaces", "", &bench.namespace, json!({}));
            // Shown when the case fails.
            complain(&format!("case {name}"));
            case(&bench).await;
        }
    };
    LocalSet::new().run_until(cases).await;
}
