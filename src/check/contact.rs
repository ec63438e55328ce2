//! The points about one side alone: its kubeconfig, the way to it, TLS, the credentials, its version and its clock.

use std::rc::Rc;
use std::time::Duration;

use driver::advice::is_about_path;
use driver::logger;
use kube_lite::access::{self, Access};
use kube_lite::logging::times;
use kube_lite::{Cluster, Credentials, Error};
use serde_json::{Value, json};

use super::Points;
use super::refused::Ended;
use crate::ask::advice_of_server;
use crate::cli::Settings;
use crate::side::Side;
use crate::sides;
use driver::points::Verdict;

/// Credentials that end sooner are worth a note.
const SOON: u64 = 7 * 86_400;
/// A difference of clocks that is worth a note, in seconds.
const CLOCKS_DIFFER: u64 = 30;
/// A difference with which new tokens and certificates are refused, or old ones are accepted after their end.
const CLOCKS_ARE_WRONG: u64 = 300;

/// Checks the contact with a side. `None` if nothing else can be asked there.
pub(super) async fn contact(side: Side, settings: &Settings, points: &mut Points) -> Option<Rc<Cluster>> {
    let source = match side {
        Side::Edge => &settings.edge,
        Side::Hub => &settings.hub,
    };
    let loaded = match access::load(side.word(), source, &sides::renewed(side, settings)) {
        Ok(access) => sides::open(side, settings).map(|cluster| (access, cluster)),
        Err(error) => Err(error.into()),
    };
    let (access, cluster) = match loaded {
        Ok(loaded) => loaded,
        Err(error) => {
            let to_do = "correct the file, or the flag that names it";
            points.add(side, "kubeconfig", Verdict::Wrong, error.to_string(), to_do);
            return None;
        }
    };
    let address = cluster.standing().place.address.clone();
    let answer = cluster.get_path("/version").await;
    if let Err(error) = &answer
        && let Some(about) = fault(error, &cluster)
    {
        let to_do = what_to_do(error, (&cluster, &access), settings);
        points.add(side, about, Verdict::Wrong, format!("{address}: {error}"), to_do);
        return None;
    }
    points.add(side, "reached", Verdict::Good, address, "");
    tls(side, &access, points);
    // A server may refuse to show its version and still accept our credentials.
    if let Err(error) = &answer
        && is_refused(error)
    {
        let ended = ended((&cluster, &access), settings);
        let (words, to_do) = ended.unwrap_or_else(|| (error.to_string(), advice_of_server(error, &cluster)));
        points.add(side, "credentials", Verdict::Wrong, words, to_do);
        clock(&cluster, points);
        return None;
    }
    who(&cluster, settings.keep.is_some(), points).await;
    version(side, answer, points);
    clock(&cluster, points);
    Some(Rc::new(cluster))
}

fn is_refused(error: &Error) -> bool {
    error.status().is_some_and(|status| status.code == 401)
}

/// The point that is wrong if the server gives this error when it is first asked; `None` if it is reached.
fn fault(error: &Error, cluster: &Cluster) -> Option<&'static str> {
    match error {
        error if is_refused(error) => None,
        error if error.is_forbidden() => is_about_path(error, &cluster.standing().place).then_some("reached"),
        error if is_about_tls(error) => Some("TLS"),
        _ => Some("reached"),
    }
}

/// What to do about an error by which a side is not reached. A server may refuse a certificate that has ended by ending
/// the connection itself.
fn what_to_do(error: &Error, (cluster, access): (&Cluster, &Access), settings: &Settings) -> String {
    let is_of_credentials = error.to_string().contains("fatal alert");
    match ended((cluster, access), settings).filter(|_| is_of_credentials) {
        Some((words, to_do)) => format!("{words}: {to_do}"),
        None => advice_of_server(error, cluster),
    }
}

/// What has ended of what the kubeconfig logs in with, and what to do. The server's time counts, if it is known.
fn ended((cluster, access): (&Cluster, &Access), settings: &Settings) -> Option<(String, String)> {
    let now = cluster.time().unwrap_or_else(|| logger::since_1970().as_secs());
    let (form, end) = access.ended(now)?;
    let token = access.token();
    let ended = Ended {
        side: Side::of(cluster),
        form,
        token: token.as_deref(),
        name: &settings.sync_target_name,
        keep: settings.keep.as_ref(),
    };
    let at = times::date_and_time(Duration::from_secs(end));
    Some((format!("{} has ended at {at}", ended.what()), ended.advice()))
}

/// True if the server is there and TLS with it fails.
fn is_about_tls(error: &Error) -> bool {
    let words = error.to_string();
    [
        "peer certificate",
        "fatal alert",
        "InvalidContentType",
        "no TLS handshake",
    ]
    .iter()
    .any(|sign| words.contains(sign))
}

fn tls(side: Side, access: &Access, points: &mut Points) {
    let config = &access.config;
    let about = "TLS";
    if config.cluster_url.scheme_str() == Some("http") {
        let words = "there is none: anybody on the network path can read and change everything";
        return points.add(
            side,
            about,
            Verdict::Note,
            words,
            "use an https:// URL, unless it is this machine's",
        );
    }
    if config.accept_invalid_certs {
        let words = "the server's certificate is not checked (insecure-skip-tls-verify)";
        return points.add(
            side,
            about,
            Verdict::Note,
            words,
            "name the CA in the kubeconfig instead",
        );
    }
    let host = config.cluster_url.host().unwrap_or_default();
    let name = config.tls_server_name.as_deref().unwrap_or(host);
    let words = format!("the server's certificate is valid for {name}, by {}", access.trust);
    points.add(side, about, Verdict::Good, words, "");
}

/// As whom the server knows us, and until when. `keeps` says that a token of the hub is renewed.
async fn who(cluster: &Cluster, keeps: bool, points: &mut Points) {
    let side = Side::of(cluster);
    let about = "credentials";
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = cluster.review(path, "SelfSubjectReview", &json!({})).await;
    // Servers before 1.28 do not say it.
    let status = review.unwrap_or_default();
    let user = status["userInfo"]["username"].as_str().unwrap_or("an accepted user");
    if user == "system:anonymous" {
        let to_do = "give the user entry of the kubeconfig a token or certificate, and see that no proxy drops them";
        return points.add(
            side,
            about,
            Verdict::Wrong,
            "no credentials have reached the server",
            to_do,
        );
    }
    let credentials = cluster.in_force();
    let kind = match &*credentials {
        Credentials::Token(..) | Credentials::TokenFile => "token",
        Credentials::Certificate(_) => "client certificate",
        Credentials::Other => "credentials whose end is not known",
    };
    let until = cluster.standing().credentials_end;
    let renewal = match (&*credentials, side) {
        (Credentials::Token(..), Side::Hub) if keeps => Renewal::By("is renewed by the syncer"),
        (Credentials::Token(..), Side::Hub) => Renewal::Flag,
        (Credentials::TokenFile, _) => Renewal::By("is read again when its file is replaced"),
        _ => Renewal::Nobody,
    };
    let (verdict, end, to_do) = end(until, renewal, logger::since_1970().as_secs());
    points.add(side, about, verdict, format!("{user}, by {kind}{end}"), to_do);
}

/// Who renews credentials.
#[derive(Clone, Copy)]
enum Renewal {
    /// Somebody does, as is said.
    By(&'static str),
    /// The syncer would, with a flag.
    Flag,
    Nobody,
}

/// What the end of credentials means now, both in seconds since 1970.
fn end(until: Option<u64>, renewal: Renewal, now: u64) -> (Verdict, String, &'static str) {
    let Some(until) = until else {
        return (Verdict::Good, String::new(), "");
    };
    let at = times::date_and_time(Duration::from_secs(until));
    let Some(left) = until.checked_sub(now) else {
        return (Verdict::Wrong, format!(", which has ended at {at}"), "renew it");
    };
    let left_text = match left {
        0..7200 => format!("{} minutes", left / 60),
        7200..=172_799 => format!("{} hours", left / 3600),
        _ => format!("{} days", left / 86_400),
    };
    let words = format!(", which ends at {at}, in {left_text}");
    match renewal {
        Renewal::By(how) => (Verdict::Good, format!("{words}, and {how}"), ""),
        _ if left > SOON => (Verdict::Good, words, ""),
        Renewal::Flag => (
            Verdict::Note,
            format!("{words}, and is not renewed"),
            "give --credentials-file or --credentials-secret, so that the syncer renews it",
        ),
        Renewal::Nobody => (
            Verdict::Note,
            format!("{words}, and is not renewed"),
            "renew it before that",
        ),
    }
}

fn version(side: Side, answer: Result<bytes::Bytes, Error>, points: &mut Points) {
    let about = "version";
    let parsed = answer.map(|body| serde_json::from_slice::<Value>(&body).unwrap_or_default());
    match parsed {
        Ok(version) => match version["gitVersion"].as_str() {
            Some(version) => points.add(side, about, Verdict::Good, version, ""),
            None => points.add(side, about, Verdict::Note, "the server does not say", ""),
        },
        Err(error) => points.add(
            side,
            about,
            Verdict::Note,
            format!("the server does not say: {error}"),
            "",
        ),
    }
}

fn clock(cluster: &Cluster, points: &mut Points) {
    let side = Side::of(cluster);
    let about = "clock";
    let Some(theirs) = cluster.time() else {
        return points.add(side, about, Verdict::Note, "the server does not say its time", "");
    };
    let (verdict, words) = difference(theirs, logger::since_1970().as_secs());
    let to_do = if verdict == Verdict::Good {
        ""
    } else {
        "set the clock that is wrong"
    };
    points.add(side, about, verdict, words, to_do);
}

/// What the difference of two clocks means, both in seconds since 1970.
fn difference(theirs: u64, ours: u64) -> (Verdict, String) {
    let seconds = theirs.abs_diff(ours);
    let ahead = if theirs > ours { "ahead of" } else { "behind" };
    // An answer takes its time.
    if seconds <= 2 {
        return (Verdict::Good, "as this machine's".to_owned());
    }
    let verdict = match seconds {
        0..CLOCKS_DIFFER => Verdict::Good,
        CLOCKS_DIFFER..CLOCKS_ARE_WRONG => Verdict::Note,
        _ => Verdict::Wrong,
    };
    (verdict, format!("{seconds} s {ahead} this machine's"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_that_end_soon_are_a_note_and_ended_ones_are_wrong() {
        let now = 1_795_269_787;
        let renewed = Renewal::By("is renewed by the syncer");
        for (until, renewal, verdict, words) in [
            (None, Renewal::Nobody, Verdict::Good, ""),
            (
                Some(now - 1),
                renewed,
                Verdict::Wrong,
                ", which has ended at 2026-11-21T14:03:06Z",
            ),
            (
                Some(now + 7200),
                Renewal::Nobody,
                Verdict::Note,
                ", which ends at 2026-11-21T16:03:07Z, in 2 hours, and is not renewed",
            ),
            (
                Some(now + 7200),
                renewed,
                Verdict::Good,
                ", which ends at 2026-11-21T16:03:07Z, in 2 hours, and is renewed by the syncer",
            ),
            (
                Some(now + SOON),
                Renewal::Flag,
                Verdict::Note,
                ", which ends at 2026-11-28T14:03:07Z, in 7 days, and is not renewed",
            ),
            (
                Some(now + SOON + 1),
                Renewal::Flag,
                Verdict::Good,
                ", which ends at 2026-11-28T14:03:08Z, in 7 days",
            ),
        ] {
            let found = end(until, renewal, now);
            assert_eq!((found.0, &*found.1), (verdict, words));
        }
    }

    #[test]
    fn clocks_that_differ_are_a_note_and_far_ones_are_wrong() {
        for (theirs, ours, verdict, words) in [
            (1000, 1001, Verdict::Good, "as this machine's"),
            (1010, 1000, Verdict::Good, "10 s ahead of this machine's"),
            (1000, 1060, Verdict::Note, "60 s behind this machine's"),
            (4000, 1000, Verdict::Wrong, "3000 s ahead of this machine's"),
        ] {
            assert_eq!(difference(theirs, ours), (verdict, words.to_owned()));
        }
    }
}
