//! The points about what configs name at the hub: the namespaces that they select, and the registration of this edge.

use std::rc::Rc;

use futures_util::FutureExt as _;
use kube_lite::read::read_metadata;
use kube_lite::{Cluster, Credentials, ObjectName, ResourceType};

use super::Points;
use super::refused::OF_GEN;
use super::{AT_ONCE, together};
use crate::cli::Settings;
use crate::side::Side;
use crate::survey::{Registration, Survey};
use crate::sync::meta::Meta;
use driver::points::Verdict;

/// The most namespaces that are looked for, each with a request.
const MOST: usize = 200;

/// Whether the hub has the namespaces that configs select for downsync.
pub(super) async fn namespaces(hub: &Rc<Cluster>, found: &Survey, points: &mut Points) {
    let about = "namespaces";
    let selected: Vec<_> = found.namespaces.iter().take(MOST).collect();
    for some in selected.chunks(AT_ONCE) {
        let asked = some.iter().map(|(name, _)| {
            let name = ObjectName::new("", name);
            async move { read_metadata(hub, &ResourceType::namespaces(), &name).await }.boxed_local()
        });
        let answers = together(asked.collect()).await;
        for ((name, place), answer) in some.iter().zip(answers) {
            match answer {
                Ok(Some(Meta { .. })) => {}
                Ok(None) => {
                    let words = format!(
                        "{name} is not there, which {} spec.{} selects",
                        place.config, place.field
                    );
                    let to_do = "create it at the hub, or correct the config";
                    points.add(Side::Hub, about, Verdict::Wrong, words, to_do);
                }
                // The syncer may do without, and the permissions have points of their own.
                Err(error) if error.is_forbidden() => {}
                Err(error) => {
                    let words = format!("whether {name} is there is not known: {error}");
                    points.add(Side::Hub, about, Verdict::Unknown, words, "");
                }
            }
        }
    }
    if found.namespaces.len() > MOST {
        let words = format!(
            "of {} that are selected, {MOST} were looked for",
            found.namespaces.len()
        );
        points.add(Side::Hub, about, Verdict::Note, words, "");
    }
}

/// Whether the UID of the sync target is that with which the edge is registered.
pub(super) fn registration(hub: &Cluster, found: &Survey, settings: &Settings, points: &mut Points) {
    let account = match &*hub.in_force() {
        Credentials::Token(_, claims) => claims.account(),
        _ => None,
    };
    let account = account.as_ref().map(|account| &*account.name);
    let registered = of_edge(&found.registrations, account, &settings.sync_target_name);
    let Some(Registration { name, uid }) = registered else {
        return;
    };
    let about = "sync target";
    let ours = &settings.sync_target_uid;
    if uid == ours {
        let words = format!("{name} is registered with the UID {uid}");
        return points.add(Side::Hub, about, Verdict::Good, words, "");
    }
    let is_former = settings.former_sync_target_uids.contains(uid);
    let words = format!("{name} is registered with the UID {uid}, and --sync-target-uid is {ours}");
    if is_former {
        let words = format!("{words}; copies of {uid} are taken over");
        points.add(Side::Hub, about, Verdict::Note, words, "");
    } else {
        let words = format!("{words}: copies made with the other one are not touched");
        let to_do = format!(
            "give --sync-target-uid={uid}; if {ours} is meant, give --former-sync-target-uid={uid} too, so that its copies are \
             taken over"
        );
        points.add(Side::Hub, about, Verdict::Wrong, words, to_do);
    }
}

/// The registration of the edge that has these credentials: that of the account which `gen` made for it, else that of its
/// name.
fn of_edge<'a>(all: &'a [Registration], account: Option<&str>, name: &str) -> Option<&'a Registration> {
    let is_of_account = |it: &&Registration| {
        let hash = account
            .and_then(|account| account.strip_prefix(OF_GEN))
            .and_then(|rest| rest.strip_prefix(&*it.name))
            .and_then(|rest| rest.strip_prefix('-'));
        hash.is_some_and(|hash| !hash.is_empty() && !hash.contains('-'))
    };
    let named = || all.iter().find(|it| it.name == name);
    all.iter().find(is_of_account).or_else(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registration_is_found_by_the_account_and_else_by_the_name() {
        let all = ["site", "site-7"].map(|name| Registration {
            name: name.to_owned(),
            uid: format!("uid-of-{name}"),
        });
        for (account, name, expected) in [
            (Some("kubestellar-syncer-site-7-30joiv77"), "", Some("site-7")),
            (Some("kubestellar-syncer-site-7-30joiv77"), "site", Some("site-7")),
            (Some("kubestellar-syncer-site-30joiv77"), "", Some("site")),
            (Some("kubestellar-syncer-other-30joiv77"), "", None),
            (Some("site-7"), "", None),
            (None, "site", Some("site")),
            (None, "", None),
        ] {
            let found = of_edge(&all, account, name).map(|it| &*it.name);
            assert_eq!(found, expected, "{account:?} {name:?}");
        }
    }
}
