//! A server whose clock is wrong.

use crate::front::Front;
use crate::support::Syncer;
use crate::support::stage::{Stage, config_maps, select, stage};
use crate::support::story::SOON;

#[tokio::test]
async fn a_clock_that_differs_is_logged_once_and_again_when_it_is_right() {
    let Stage { pair, shop, hub, .. } = stage().await;
    select(&hub, &config_maps(&shop, &["*"])).await;
    let front = Front::of(&pair.hub).await;
    front.has_date(Some("Sat, 01 Jan 2000 00:00:00 GMT"));
    let flags = ["--heartbeat-interval=1s"];
    let mut syncer = Syncer::start(&front.kubeconfig(&pair.hub), &pair.edge.kubeconfig(), &flags);
    syncer.wait_for_log("WARN reason=ClockDiffers", SOON).await;
    front.has_date(None);
    syncer.wait_for_log("INFO reason=ClockAgrees", SOON).await;
    let log = syncer.log();
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("reason=Clock")).collect();
    assert_eq!(lines.len(), 2, "{log}");
    assert!(lines[0].contains(" side=hub ahead=-8"), "{}", lines[0]);
    assert!(lines[1].contains(" side=hub ahead=0"), "{}", lines[1]);
}
