//! The syncer is killed at each request of one history in turn, before it arrives and after it took effect: whatever lies
//! between two writes, nothing is lost, nothing is left over, and nothing is made twice (issue 5).

use std::rc::Rc;
use std::time::Duration;

use edge_syncer::side::Side;
use serde_json::json;

use crate::changes::{downsync_type, edge_reports};
use crate::check;
use crate::sim::classes::Class;
use crate::sim::run::{Run, tell};
use crate::sim::store::Key;
use crate::sim::weather::Moment;
use crate::stories::{downsync, settings, upsync};

/// More requests than the history has.
const MANY: u32 = 1000;

/// Time for everything to settle. A kill cuts the first part short.
async fn pass(run: &mut Run) {
    for _ in 0..2 {
        run.pass(Duration::from_secs(60)).await;
    }
}

/// Objects of every flow come, change and go.
async fn history(run: &mut Run) {
    let (hub, edge) = (Rc::clone(&run.world.hub), Rc::clone(&run.world.edge));
    let work = Key::new("deployments.apps", "shop", "d");
    let report = |name: &str| Key::new("configmaps", "field", name);
    downsync(run);
    downsync_type(run, "work", "apps", "deployments", "v1");
    upsync(run, &["field"]);
    hub.create("people", "configmaps", "shop", "a", json!({"data": {"x": "1"}}));
    hub.create("people", "configmaps", "shop", "b", json!({"data": {"x": "1"}}));
    hub.create("people", &work.resource, "shop", "d", json!({"spec": {"replicas": 1}}));
    edge.create("people", "namespaces", "", "field", json!({}));
    edge.create("people", "configmaps", "field", "r", json!({"data": {"y": "1"}}));
    edge.create("people", "configmaps", "field", "s", json!({"data": {"y": "1"}}));
    run.start();
    pass(run).await;
    edge_reports(run, &work, 1);
    hub.patch("people", &settings("a"), &json!({"data": {"x": "2"}}));
    hub.delete(&settings("b"));
    edge.patch("people", &report("r"), &json!({"data": {"y": "2"}}));
    edge.delete(&report("s"));
    pass(run).await;
    edge.delete(&report("r"));
    hub.delete(&work);
    pass(run).await;
}

/// Kills the syncer at that request. False if there were not so many.
fn survives_a_kill_at(request: u32, moment: Moment) -> bool {
    let mut killed = false;
    check(&tell(&[Class::Crash], true, async |run| {
        for side in [Side::Hub, Side::Edge] {
            run.server(side).weather.borrow_mut().trap = Rc::clone(&run.trap);
        }
        run.trap.armed.set(Some((request, moment)));
        history(run).await;
        killed = run.trap.armed.get().is_none();
    }));
    killed
}

#[test]
fn a_kill_at_any_request_loses_nothing() {
    for moment in [Moment::Before, Moment::After] {
        let requests = (0..MANY).take_while(|&request| survives_a_kill_at(request, moment));
        let requests = requests.count();
        assert!((30..MANY as usize).contains(&requests), "{requests} requests");
    }
}
