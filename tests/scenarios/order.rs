//! Namespaces go last.

use serde_json::json;

use crate::infrastructure::ordinary;
use crate::support::modes::{Mode, in_both_modes};
use crate::support::stage::{all_of_each, deselect, numbered, select, stock};
use crate::support::story::{SOON, arrives, leaves};
use crate::support::{AuditEvent, AuditMark, SYNCER, Server, eventually, shared_pair};

in_both_modes!(a_namespace_goes_after_all_in_it_when_all_went_while_the_syncer_was_away,);

const TYPES: [(&str, &str); 3] = [("", "configmaps"), ("", "secrets"), ("", "serviceaccounts")];
/// `ConfigMap`s in each namespace, beside the ordinary objects.
const EACH: usize = 30;

// Spec 3.5 and 3.7.
async fn a_namespace_goes_after_all_in_it_when_all_went_while_the_syncer_was_away(flags: Mode) {
    // So many deletes at once would be held.
    let flags: Vec<&str> = flags.iter().copied().chain(["--hold-deletes-for=0s"]).collect();
    let pair = shared_pair().await;
    let (hub, edge) = (pair.hub.objects(), pair.edge.objects());
    // Which list is there first is a matter of luck.
    for _ in 0..3 {
        let spaces = ["a", "b"].map(|prefix| pair.namespace(prefix));
        for space in &spaces {
            stock(&hub, space, &numbered(EACH), &json!({})).await;
            for object in ordinary(space) {
                hub.create(&object).await;
            }
        }
        select(&hub, &all_of_each(&spaces, &TYPES)).await;
        let mut syncer = pair.syncer(&flags);
        for space in &spaces {
            for (_, plural) in TYPES {
                arrives(&edge, "v1", plural, space, "ordinary").await;
            }
            for name in numbered(EACH) {
                arrives(&edge, "v1", "configmaps", space, &name).await;
            }
        }
        syncer.terminate().await;
        hub.remove_namespaces(&spaces).await;
        let mark = pair.edge.audit_mark();
        let _syncer = pair.syncer(&flags);
        for space in &spaces {
            goes_last(&pair.edge, space, mark).await;
        }
        deselect(&hub).await;
    }
}

/// Waits until a namespace and all copies in it are deleted, and checks that the namespace was the last of them.
async fn goes_last(server: &Server, space: &str, mark: AuditMark) {
    let edge = server.objects();
    for (_, plural) in TYPES {
        eventually(&format!("{plural} of {space} go"), SOON, async || {
            let left = edge.try_list("v1", plural, space, "edge.kubestellar.io/downsynced=true");
            match left.await {
                Ok(left) if left.is_empty() => Ok(()),
                Ok(left) => Err(format!("{} are left", left.len())),
                Err(error) => Err(error.to_string()),
            }
        })
        .await;
    }
    let deletes = || -> Vec<AuditEvent> {
        let path = format!("/api/v1/namespaces/{space}");
        let requests = server.requests_since(SYNCER, mark).into_iter();
        let mine = requests.filter(|event| event.uri.starts_with(&path));
        mine.filter(|event| event.verb == "delete" && event.code < 300)
            .collect()
    };
    // Those and the ordinary ConfigMap, Secret and ServiceAccount, and the namespace.
    let all = EACH + 4;
    eventually("each is deleted once", SOON, async || match deletes().len() {
        count if count == all => Ok(()),
        count => Err(format!("{count} deletes")),
    })
    .await;
    let of_namespace = |event: &AuditEvent| event.uri.split('/').count() == 5;
    let position = deletes().iter().position(of_namespace);
    assert_eq!(position, Some(all - 1), "the namespace goes last");
    // Without a controller manager it stays so.
    leaves(&edge, space).await;
}
