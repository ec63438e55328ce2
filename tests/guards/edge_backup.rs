//! The edge is restored from a backup, and has more versions by then than it had ever reported.

use serde_json::json;

use crate::bench::{DOWNSYNCED, copies_become, create, names, select_all};
use crate::support::fault_proxy::FaultProxy;
use crate::support::modes::{Mode, in_both_modes};
use crate::support::objects::config_map;
use crate::support::story::SOON;
use crate::support::{Pair, PairOptions, Syncer, lines};

in_both_modes!(what_an_edge_has_lost_is_corrected_though_its_versions_do_not_show_it);

// Neither a watch nor a version says anything then: a delete that was lost went unnoticed until a restart.
async fn what_an_edge_has_lost_is_corrected_though_its_versions_do_not_show_it(flags: Mode) {
    let mut pair = Pair::start(PairOptions::default()).await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let proxy = FaultProxy::start().await;
    let link = proxy.link(&pair.edge).await;
    create(&hub, "shop", 3).await;
    select_all(&hub, "shop").await;
    let mut before = pair.syncer(flags);
    copies_become(&edge, "shop", DOWNSYNCED, &names(0..3)).await;
    before.terminate().await;
    pair.edge.stop();
    pair.edge.back_up();
    pair.edge.start_again().await;
    let mut syncer = Syncer::start(&pair.hub.kubeconfig(), &link.kubeconfig(&pair.edge), flags);
    hub.create(&config_map("shop", "c3", json!({"v": "1"}))).await;
    hub.delete("v1", "configmaps", "shop", "c0").await;
    copies_become(&edge, "shop", DOWNSYNCED, &names(1..4)).await;
    link.cut().await;
    syncer.wait_for_log(&lines::unreachable("edge"), SOON).await;
    pair.edge.stop();
    pair.edge.put_backup_back();
    pair.edge.start_again().await;
    copies_become(&edge, "shop", DOWNSYNCED, &names(0..3)).await;
    for round in 0..300 {
        let change = json!({"metadata": {"labels": {"round": round.to_string()}}});
        edge.merge_patch("v1", "namespaces", "", "default", &change).await;
    }
    link.heal().await;
    copies_become(&edge, "shop", DOWNSYNCED, &names(1..4)).await;
}
