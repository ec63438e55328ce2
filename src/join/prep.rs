//! Where an edge joins in kcp: the mailbox workspace of its `SyncTarget`, as `kubectl kubestellar prep-for-syncer` finds it.
//!
//! Promises: only reads; waits for what the mailbox controller makes, and reports that; the kubeconfig stays as it is,
//! whatever workspace it is for.

use std::error::Error;

use http::Uri;
use serde_json::Value;

use super::client::Client;
use super::register::{Wait, Work, passes};
use super::{JoinError, Settings};
use crate::api;

const APIS: &str = "apis.kcp.io";
const TENANCY: &str = "tenancy.kcp.io";
/// The annotation with which kcp says which workspace an object is in.
const CLUSTER: &str = "kcp.io/cluster";
/// What comes before a workspace in a URL.
const CLUSTERS: &str = "/clusters/";
/// The workspace in which mailbox workspaces are.
const ROOT: &str = "root";

/// Where to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mailbox {
    /// The workspace with the `SyncTarget`; `.` is the one of the kubeconfig.
    pub imw: String,
    /// The workspace of the service provider.
    pub espw: String,
}

/// The mailbox workspace of a sync target, once it is there.
pub(super) async fn find(
    client: &Client,
    mailbox: &Mailbox,
    settings: &Settings,
    say: &dyn Fn(&str),
) -> Result<Client, Box<dyn Error>> {
    let Some((base, current)) = parts(client.url()) else {
        let why = format!(
            "{} is no workspace of kcp, which has {CLUSTERS} in its URL: for any other hub, run edge-syncer gen",
            client.url()
        );
        return Err(client.bad_url(&why).into());
    };
    let enter = |workspace: &str| -> Result<Client, Box<dyn Error>> {
        let url: Uri = format!("{base}{CLUSTERS}{workspace}").parse()?;
        Ok(client.at(url)?)
    };
    let imw = absolute(&current, &mailbox.imw);
    let at_imw = enter(&imw)?;
    let name = sync_target(&Work::new(&at_imw, say, true), &imw, &settings.name).await?;
    let espw = absolute(&current, &mailbox.espw);
    let at_espw = enter(&espw)?;
    is_provider(&Work::new(&at_espw, say, true), &espw).await?;
    let at_root = enter(ROOT)?;
    let workspace = ready(&Work::new(&at_root, say, true), &name, settings).await?;
    say(&format!(
        "SyncTarget//{}: its mailbox workspace is {ROOT}:{name}",
        settings.name
    ));
    enter(&workspace)
}

/// The name of the mailbox workspace of a sync target.
async fn sync_target(work: &Work<'_>, imw: &str, name: &str) -> Result<String, JoinError> {
    let what = format!("cannot read SyncTarget//{name} in workspace {imw}");
    let advice = "give the workspace that it is in with --imw";
    let group = version(work, api::GROUP, &what, advice).await?;
    let found = work.client.find(&format!("{group}/synctargets/{name}")).await;
    let found = found.map_err(|error| failed(work, &what, &error, advice))?;
    let found = found.ok_or_else(|| work.error(&what, &format!("it is not there; {advice}")))?;
    mailbox_of(&found).ok_or_else(|| work.error(&what, &format!("it has no UID, or no annotation {CLUSTER}")))
}

/// Checks that the workspace of the service provider is one. If that may not be read, it need not be wrong.
async fn is_provider(work: &Work<'_>, espw: &str) -> Result<(), JoinError> {
    let what = format!("{espw} is not the workspace of the edge service provider");
    let advice = "give that workspace with --espw";
    let path = format!("/apis/{APIS}");
    let group = match work.client.get(&path).await {
        Err(error) if error.is_forbidden() => {
            (work.say)(&format!("note: cannot read workspace {espw}: {error}"));
            return Ok(());
        }
        Err(error) => return Err(failed(work, &what, &error, advice)),
        Ok(group) => preferred(&group).unwrap_or_default(),
    };
    match work
        .client
        .find(&format!("/apis/{group}/apiexports/{}", api::GROUP))
        .await
    {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(work.error(&what, &format!("it has no APIExport {}; {advice}", api::GROUP))),
        Err(error) if error.is_forbidden() => {
            (work.say)(&format!("note: cannot read workspace {espw}: {error}"));
            Ok(())
        }
        Err(error) => Err(failed(work, &what, &error, advice)),
    }
}

/// Waits until the mailbox workspace is ready, and returns what its URL ends with.
async fn ready(work: &Work<'_>, name: &str, settings: &Settings) -> Result<String, JoinError> {
    let label = format!("Workspace//{name}");
    let what = format!("cannot read {label} in workspace {ROOT}");
    let group = version(work, TENANCY, &what, "give the kubeconfig of a kcp").await?;
    let path = format!("{group}/workspaces/{name}");
    let wait = Wait {
        patience: settings.timeout,
        what: format!("{label} in workspace {ROOT}"),
        otherwise: format!("{label} in workspace {ROOT} is not ready"),
        advice: "is the mailbox controller running?".to_owned(),
    };
    work.wait(&wait, async || match work.client.find(&path).await {
        Ok(None) => Ok(Err("it is not there".to_owned())),
        Ok(Some(found)) => Ok(url_end(&found, name)),
        Err(error) if passes(&error) => Ok(Err(error.to_string())),
        Err(error) => Err(work.failed(&what, &error)),
    })
    .await
}

/// The advice is for what is missing or hidden, which is probably in another workspace; other errors have nothing to do
/// with workspaces.
fn failed(work: &Work<'_>, what: &str, error: &kube_lite::Error, advice: &str) -> JoinError {
    match error.status() {
        Some(status) if matches!(status.code, 403 | 404) => work.error(what, &format!("{error}; {advice}")),
        _ => work.failed(what, error),
    }
}

/// The path of a group at its preferred version.
async fn version(work: &Work<'_>, group: &str, what: &str, advice: &str) -> Result<String, JoinError> {
    let found = work.client.get(&format!("/apis/{group}")).await;
    let found = found.map_err(|error| failed(work, what, &error, advice))?;
    let preferred = preferred(&found);
    let preferred = preferred.ok_or_else(|| work.error(what, &format!("it names no version of {group}")))?;
    Ok(format!("/apis/{preferred}"))
}

fn preferred(group: &Value) -> Option<String> {
    let version = group["preferredVersion"]["groupVersion"].as_str()?;
    Some(version.to_owned())
}

/// A URL without its workspace, and the workspace.
fn parts(url: &Uri) -> Option<(String, String)> {
    let text = url.to_string();
    let (base, rest) = text.split_once(CLUSTERS)?;
    let workspace = rest.split('/').next().filter(|workspace| !workspace.is_empty())?;
    Some((base.to_owned(), workspace.to_owned()))
}

/// A workspace as `kubectl ws` accepts it: absolute if it has a `:`, otherwise one in the current workspace.
fn absolute(current: &str, given: &str) -> String {
    match given {
        "." => current.to_owned(),
        ROOT => ROOT.to_owned(),
        _ if given.contains(':') => given.trim_start_matches(':').to_owned(),
        _ => format!("{current}:{given}"),
    }
}

/// The name that the mailbox controller gives to the workspace of a sync target.
fn mailbox_of(sync_target: &Value) -> Option<String> {
    let meta = &sync_target["metadata"];
    let cluster = meta["annotations"][CLUSTER].as_str()?;
    Some(format!("{cluster}-mb-{}", meta["uid"].as_str()?))
}

/// What the URL of a workspace ends with, or why there is none yet: its id, which no other workspace ever has.
fn url_end(workspace: &Value, name: &str) -> Result<String, String> {
    let phase = workspace["status"]["phase"].as_str().unwrap_or("unknown");
    if phase != "Ready" {
        return Err(format!("its phase is {phase}"));
    }
    let id = workspace["spec"]["cluster"].as_str();
    Ok(id.map_or_else(|| format!("{ROOT}:{name}"), str::to_owned))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn takes_a_url_apart() {
        for (url, expected) in [
            (
                "https://kcp:6443/clusters/root:imw1",
                Some(("https://kcp:6443", "root:imw1")),
            ),
            ("https://kcp/prefix/clusters/abc/", Some(("https://kcp/prefix", "abc"))),
            ("https://kcp:6443/clusters/", None),
            ("https://hub.example:6443/", None),
        ] {
            let expected = expected.map(|(base, workspace)| (base.to_owned(), workspace.to_owned()));
            assert_eq!(parts(&url.parse().unwrap()), expected, "{url}");
        }
    }

    #[test]
    fn takes_workspaces_as_kubectl_does() {
        for (given, expected) in [
            (".", "root:here"),
            ("root", "root"),
            ("root:imw1", "root:imw1"),
            (":root:imw1", "root:imw1"),
            ("imw1", "root:here:imw1"),
        ] {
            assert_eq!(absolute("root:here", given), expected, "{given}");
        }
    }

    #[test]
    fn names_the_workspace_as_the_mailbox_controller_does() {
        let target = json!({"metadata": {"uid": "u-1", "annotations": {CLUSTER: "abc"}}});
        assert_eq!(mailbox_of(&target), Some("abc-mb-u-1".to_owned()));
        assert_eq!(mailbox_of(&json!({"metadata": {"uid": "u-1"}})), None);
        assert_eq!(
            mailbox_of(&json!({"metadata": {"annotations": {CLUSTER: "abc"}}})),
            None
        );
    }

    #[test]
    fn a_workspace_is_entered_once_it_is_ready() {
        let workspace = |phase: &str| json!({"spec": {"cluster": "id"}, "status": {"phase": phase}});
        assert_eq!(url_end(&workspace("Ready"), "n"), Ok("id".to_owned()));
        assert_eq!(
            url_end(&json!({"status": {"phase": "Ready"}}), "n"),
            Ok("root:n".to_owned())
        );
        assert_eq!(
            url_end(&workspace("Initializing"), "n"),
            Err("its phase is Initializing".to_owned())
        );
        assert_eq!(url_end(&json!({}), "n"), Err("its phase is unknown".to_owned()));
    }
}
