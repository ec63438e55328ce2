//! What people do to the Lease by hand.

use serde_json::json;

use crate::candidates::{BEGINS, LEASE, LEASES, SHORT, count, leads, lease, pair_with_one_config_map, two_candidates};
use crate::support::objects::config_map;
use crate::support::story::{SOON, copy_equals};
use crate::support::{Objects, eventually};

#[tokio::test]
async fn no_two_lead_at_once_when_somebody_deletes_or_empties_the_lease() {
    let (pair, shop) = pair_with_one_config_map().await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    let (leader, standby) = two_candidates(&pair, &[SHORT]).await;
    let both = [leader, standby];
    for (round, by_hand) in ["delete", "delete", "empty", "delete"].into_iter().enumerate() {
        match by_hand {
            "delete" => assert!(edge.delete(LEASES, "leases", "default", LEASE).await),
            _ => empty(&edge).await,
        }
        // Its holder leads, and nobody else does at any moment until then.
        eventually("one leads, and has the lease", SOON, async || {
            let mut leading = both.iter().filter(|one| leads(one));
            let first = leading.next();
            assert!(leading.next().is_none(), "two lead at once after: {by_hand}");
            let lease = lease(&edge).await;
            let holder = lease["spec"]["holderIdentity"].as_str().unwrap_or_default();
            let has_it = |log: &str| !holder.is_empty() && log.contains(&format!("identity={holder} "));
            match first {
                Some(first) if has_it(&first.log()) => Ok(()),
                _ => Err(lease),
            }
        })
        .await;
        let data = json!({"v": format!("{round}")});
        hub.replace(&config_map(&shop, "a", data.clone())).await;
        copy_equals(&edge, &shop, "a", &data).await;
    }
    let begun: usize = both.iter().map(|one| count(one, BEGINS)).sum();
    assert!((1..=5).contains(&begun), "{begun}");
}

async fn empty(edge: &Objects) {
    let nobody = json!({"spec": {"holderIdentity": ""}});
    edge.merge_patch(LEASES, "leases", "default", LEASE, &nobody).await;
}
