//! What people have to know about what they have chosen, before they apply what is written. Without I/O.

use std::collections::BTreeSet;

use http::Uri;
use kube_lite::is_of_every_cluster;

use super::token::is_of_this_machine;

/// About the namespace of the syncer at the edge, for a manifest.
pub(super) fn about_namespace(namespace: &str) -> Option<String> {
    is_of_every_cluster(namespace).then(|| {
        format!(
            "note: every cluster has the namespace {namespace}, so the manifest leaves it out: kubectl delete -f deletes only \
             what is the syncer's; no config can touch what is in it, as in each namespace with a syncer"
        )
    })
}

/// As many other edges are named.
const OTHERS: usize = 3;

/// About other edges that are registered at the same hub.
pub(super) fn about_others(others: impl Iterator<Item = String>) -> Option<String> {
    let others: BTreeSet<String> = others.collect();
    let first: Vec<String> = others.into_iter().take(OTHERS).collect();
    let names = first.join(", ");
    (!first.is_empty()).then(|| format!(
        "warning: at this hub there are other edges, such as {names}: each config selects for all of them, its heartbeat is that \
         of whichever edge wrote last, an object has the status of one edge, and each edge may read what is meant for the \
         others; give each edge a workspace or an API server of its own"
    ))
}

/// About a syncer that changes its namespace at the edge.
pub(super) fn about_move(before: &str, now: &str) -> Option<String> {
    (before != now).then(|| {
        format!(
            "note: the syncer was in the namespace {before} at the edge, and is in {now} now: before you apply the result, \
             delete the former one there with kubectl delete -f and the file that you had, or both run"
        )
    })
}

/// About the URL of the hub that the edge gets, where your kubeconfig has the other one: a note, or why it is refused.
pub(super) fn about_encryption(url: &Uri, of_kubeconfig: &Uri) -> Result<Option<String>, String> {
    let has_no_tls = |url: &Uri| url.scheme_str() == Some("http");
    if !has_no_tls(url) {
        return Ok(None);
    }
    if is_of_this_machine(url) {
        return Ok(Some(format!(
            "note: {url} is on the machine of the syncer, which sends its token there unencrypted: what listens there has to \
             pass it on with TLS"
        )));
    }
    if has_no_tls(of_kubeconfig) {
        return Ok(Some(format!(
            "note: {url} has no TLS: anybody on the network path can read the syncer's token and change everything"
        )));
    }
    Err(format!(
        "{url} has no TLS, so that anybody on the network path could read the syncer's token: write https://, as your \
         kubeconfig has it"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_of_every_cluster_is_noted() {
        for (namespace, is_noted) in [
            ("kube-system", true),
            ("default", true),
            ("kube-public", true),
            ("kube-node-lease", true),
            ("edge-syncer", false),
            ("kubestellar-syncer-site-7-abc", false),
        ] {
            let note = about_namespace(namespace);
            assert_eq!(note.is_some(), is_noted, "{namespace}");
            assert!(note.is_none_or(|note| note.contains(namespace)));
        }
    }

    #[test]
    fn other_edges_at_the_hub_are_named() {
        assert_eq!(about_others(std::iter::empty()), None);
        let names = [3, 1, 2, 2, 4].map(|number| format!("site-{number}"));
        let note = about_others(names.into_iter()).expect("there are some");
        assert!(
            note.starts_with("warning: ") && note.contains("such as site-1, site-2, site-3: "),
            "{note}"
        );
    }

    #[test]
    fn a_syncer_that_moves_is_noted() {
        assert_eq!(about_move("a", "a"), None);
        let note = about_move("former", "next").expect("it moves");
        assert!(
            note.contains("in the namespace former") && note.contains("in next now"),
            "{note}"
        );
    }

    #[test]
    fn a_token_goes_unencrypted_only_where_nobody_is_on_the_way() {
        let tls = "https://hub.example:6443";
        for (url, kubeconfig, expected) in [
            ("https://hub.example", tls, Ok("")),
            ("https://hub.example", "http://hub.example", Ok("")),
            ("http://127.0.0.1:8001", tls, Ok("pass it on with TLS")),
            ("http://localhost", tls, Ok("pass it on with TLS")),
            ("http://[::1]:8001", tls, Ok("pass it on with TLS")),
            ("http://hub.example", "http://hub.example", Ok("has no TLS: anybody")),
            ("http://hub.example", "http://127.0.0.1:8001", Ok("has no TLS: anybody")),
            ("http://hub.example", tls, Err("write https://")),
            ("http://10.0.0.1:6443", tls, Err("write https://")),
        ] {
            let found = about_encryption(&url.parse().unwrap(), &kubeconfig.parse().unwrap());
            let is_expected = match (&found, expected) {
                (Ok(None), Ok(words)) => words.is_empty(),
                (Ok(Some(note)), Ok(words)) => !words.is_empty() && note.contains(words),
                (Err(why), Err(words)) => why.contains(words),
                _ => false,
            };
            assert!(is_expected, "{url} {kubeconfig}: {found:?}");
        }
    }
}
