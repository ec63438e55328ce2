//! The points about what the syncer keeps for itself: the namespace at the edge with its record and its Lease, the Secret
//! with renewed tokens, and the address at this machine where it serves health and metrics.

use std::error::Error as _;
use std::fmt::Display;
use std::io::{self, ErrorKind};

use bytes::Bytes;
use driver::advice::advice;
use driver::serve;
use kube_lite::{Cluster, Content, Error, ObjectName, ResourceType};
use serde_json::json;

use super::Points;
use crate::cli::Settings;
use crate::renewal::Keep;
use crate::side::Side;
use crate::sync::own_objects::record_name;
use driver::points::Verdict;

/// Whether the edge has what the syncer's own objects need.
pub(super) async fn objects(edge: &Cluster, settings: &Settings, points: &mut Points) {
    namespace(edge, settings, points).await;
    if let Some(Keep::Secret(name)) = &settings.keep {
        secret(edge, name, points).await;
    }
}

/// Whether the namespace of the record and the Lease is there. The syncer need not be allowed to read it, so the record
/// is applied without being stored.
async fn namespace(edge: &Cluster, settings: &Settings, points: &mut Points) {
    let namespace = settings.own_namespace.as_deref().unwrap_or("default");
    let name = ObjectName::new(namespace, &record_name(&settings.sync_target_uid));
    let record = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"namespace": namespace, "name": &*name.name},
    });
    let answer = edge
        .would_apply(&ResourceType::config_maps(), &name, Bytes::from(record.to_string()))
        .await;
    let about = "own namespace";
    match answer {
        Ok(_) => {
            let found = format!("{namespace} is there for the record of synced types");
            points.add(Side::Edge, about, Verdict::Good, found, "");
        }
        Err(error) if error.missing_namespace().is_some() => {
            let (found, to_do) = without_namespace(namespace, settings.lease_duration.is_some());
            points.add(Side::Edge, about, Verdict::Wrong, found, to_do);
        }
        Err(error) => unknown(edge, about, &namespace, &error, points),
    }
}

/// What it means that the namespace is not there, and what to do.
fn without_namespace(namespace: &str, elects_leader: bool) -> (String, String) {
    let kept = if elects_leader {
        "there is no place for the Lease, without which nothing is synced, nor for the record of synced types"
    } else {
        "there is no place for the record of synced types, by which a restart finds copies that no config selects any more"
    };
    (
        format!("{namespace} is not there: {kept}"),
        format!("create it at the edge: kubectl create namespace {namespace}; or set NAMESPACE to one that is there"),
    )
}

/// Whether the Secret of `--credentials-secret` is there: it is only ever patched.
async fn secret(edge: &Cluster, name: &ObjectName, points: &mut Points) {
    let about = "own Secret";
    let named = name.of_kind("Secret");
    match edge.get(&ResourceType::secrets(), name, Content::Metadata).await {
        Ok(_) => {
            let found = format!("{named} is there for the token that is renewed");
            points.add(Side::Edge, about, Verdict::Good, found, "");
        }
        Err(error) if error.proves_absent(&name.name) => {
            let found = format!("{named} is not there: the token that is renewed cannot be kept");
            let to_do = "apply what edge-syncer gen has written, or correct --credentials-secret";
            points.add(Side::Edge, about, Verdict::Wrong, found, to_do);
        }
        // The point of that permission says so.
        Err(error) if error.is_forbidden() => {}
        Err(error) => unknown(edge, about, &named, &error, points),
    }
}

fn unknown(edge: &Cluster, about: &'static str, what: &dyn Display, error: &Error, points: &mut Points) {
    let found = format!("whether {what} is there is not known: {error}");
    let to_do = advice(error, &edge.standing().place);
    points.add(Side::Edge, about, Verdict::Unknown, found, to_do);
}

/// Whether health and metrics can be served at this machine. Never more than a note: a syncer that already runs here has
/// the address, and the check may be made on another machine than the syncer's.
pub(super) async fn address(settings: &Settings, points: &mut Points) {
    let Some(address) = &settings.listen_address else {
        return;
    };
    let about = "listen address";
    match serve::can_listen(address).await {
        Ok(()) => points.add(None, about, Verdict::Good, format!("{address} is free here"), ""),
        Err(error) => {
            let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
            let kind = cause.map(io::Error::kind);
            let cause = cause.map(ToString::to_string).unwrap_or_default();
            points.add(
                None,
                about,
                Verdict::Note,
                format!("{error}: {cause}"),
                about_address(kind),
            );
        }
    }
}

/// What to do about an address that cannot be used.
fn about_address(kind: Option<ErrorKind>) -> &'static str {
    match kind {
        Some(ErrorKind::AddrInUse) => {
            "nothing, if that is the syncer which runs here already; otherwise end what has it, or give another \
             --listen-address"
        }
        Some(ErrorKind::PermissionDenied) => {
            "nothing, if the syncer runs as another user; otherwise give a port above 1023 with --listen-address"
        }
        _ => "nothing, if the syncer runs on another machine; otherwise correct --listen-address",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Invocation, parse};

    fn settings(flags: &str) -> Settings {
        let line = format!("edge-syncer run --from-kubeconfig=a --sync-target-uid=b {flags}");
        match parse(line.split_whitespace().map(Into::into)) {
            Ok(Invocation::Run(settings)) => *settings,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn a_missing_namespace_stops_all_only_where_there_is_a_lease() {
        let (found, to_do) = without_namespace("own", true);
        assert!(found.contains("without which nothing is synced"), "{found}");
        assert!(to_do.contains("kubectl create namespace own"), "{to_do}");
        let (found, _) = without_namespace("own", false);
        assert!(!found.contains("Lease") && found.contains("a restart"), "{found}");
    }

    #[tokio::test]
    async fn an_address_that_another_process_has_is_a_note() {
        let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = taken.local_addr().unwrap().port();
        for (flags, verdict, words) in [
            (
                format!("--listen-address=127.0.0.1:{port}"),
                Verdict::Note,
                "which runs here already",
            ),
            (
                "--listen-address=192.0.2.1:8080".to_owned(),
                Verdict::Note,
                "on another machine",
            ),
            ("--listen-address=127.0.0.1:0".to_owned(), Verdict::Good, ""),
        ] {
            let mut points = Points::default();
            address(&settings(&flags), &mut points).await;
            let [point] = &points.0[..] else {
                panic!("{points:?}");
            };
            assert_eq!(point.verdict, verdict, "{point}");
            assert!(point.advice.contains(words), "{point}");
        }
        let mut points = Points::default();
        address(&settings(""), &mut points).await;
        assert!(points.0.is_empty());
    }
}
