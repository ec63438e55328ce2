//! Where a renewed token is kept, so that a restart finds it: in the kubeconfig of a Secret at the edge, or in a file.
//!
//! Promises: nothing but the token is changed in the kubeconfig; a kubeconfig that has a newer token, or that of
//! another account, is not changed; a file is replaced in one step, and only its owner can read it.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use kube_lite::access::{AccessSource, Wanted, token_in};
use kube_lite::claims::Claims;
use kube_lite::{Cluster, Content, Error, ObjectName, ResourceType, files};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::json;

/// The key of the Secret, as the manifests have it.
const KEY: &str = "kubeconfig";

/// Where renewed tokens are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keep {
    /// In a Secret at the edge.
    Secret(ObjectName),
    /// In a file: the kubeconfig itself, or a copy of it.
    File(PathBuf),
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret(name) => name.of_kind("Secret").fmt(f),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// Why a token was not kept.
pub(super) enum NotKept {
    /// The edge has refused it, or not answered.
    Edge(Error),
    /// Something else, in words.
    Other(String),
}

impl NotKept {
    /// True if it says nothing about the Secret: the edge is unreachable, or somebody else has just written it.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, Self::Edge(error) if error.is_unreachable() || error.is_conflict())
    }
}

impl fmt::Display for NotKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Edge(error) => error.fmt(f),
            Self::Other(why) => f.write_str(why),
        }
    }
}

impl Keep {
    /// Writes a token in the place of the one in the kubeconfig that `hub` names. True if something was written.
    pub(super) async fn keep(&self, token: &SecretString, hub: &AccessSource, edge: &Cluster) -> Result<bool, NotKept> {
        let AccessSource::Kubeconfig { path, context, flags } = hub else {
            return Ok(false);
        };
        let wanted = Wanted {
            context: context.as_deref(),
            flag: flags.context,
        };
        match self {
            Self::Secret(name) => in_secret(name, wanted, token, edge).await,
            Self::File(target) => in_file(path, target, wanted, token).map_err(NotKept::Other),
        }
    }
}

/// A kubeconfig with another token in the place of its own; `None` if it has that or a newer one.
fn with_token(text: &str, wanted: Wanted<'_>, token: &SecretString) -> Result<Option<String>, String> {
    let old = token_in(text, wanted)?;
    let (old, new) = (old.expose_secret(), token.expose_secret());
    if old == new {
        return Ok(None);
    }
    match Claims::of(old).zip(Claims::of(new)) {
        Some((old, new)) if old.is_newer_than(&new) => Ok(None),
        Some((other, new)) if other.is_of_same_account(&new) => {
            let text = text.replace(old, token.expose_secret());
            // It may be split over several lines.
            let is_in = token_in(&text, wanted).is_ok_and(|found| found.expose_secret() == token.expose_secret());
            is_in
                .then_some(Some(text))
                .ok_or_else(|| "its token cannot be replaced: write it in one line".to_owned())
        }
        _ => Err("its token is not one of the service account whose token was renewed".to_owned()),
    }
}

async fn in_secret(
    name: &ObjectName,
    wanted: Wanted<'_>,
    token: &SecretString,
    edge: &Cluster,
) -> Result<bool, NotKept> {
    #[derive(Deserialize)]
    struct Secret {
        metadata: Metadata,
        #[serde(default)]
        data: Data,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        uid: String,
        resource_version: String,
    }
    #[derive(Deserialize, Default)]
    struct Data {
        kubeconfig: Option<String>,
    }
    let other = |why: &str| NotKept::Other(why.to_owned());
    let secrets = ResourceType::secrets();
    let found = edge.get(&secrets, name, Content::Full).await.map_err(NotKept::Edge)?;
    let Secret { metadata, data } = serde_json::from_slice(&found).map_err(|_| other("the answer is no Secret"))?;
    let packed = data.kubeconfig.ok_or_else(|| other("it has no key kubeconfig"))?;
    let text = STANDARD
        .decode(packed)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok());
    let text = text.ok_or_else(|| other("its kubeconfig is not text"))?;
    let Some(text) = with_token(&text, wanted, token).map_err(NotKept::Other)? else {
        return Ok(false);
    };
    // What somebody has written meanwhile wins.
    let patch = json!({
        "metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version},
        "data": {KEY: STANDARD.encode(text)},
    });
    let patched = edge.merge_patch_for(&secrets, name, Bytes::from(patch.to_string()), Content::Metadata);
    patched.await.map(|_| true).map_err(NotKept::Edge)
}

fn in_file(source: &Path, target: &Path, wanted: Wanted<'_>, token: &SecretString) -> Result<bool, String> {
    let text = files::read_text(source).map_err(|error| format!("{}: cannot be read: {error}", source.display()))?;
    let text = with_token(&text, wanted, token).map_err(|why| format!("{}: {why}", source.display()))?;
    let Some(text) = text else { return Ok(false) };
    // What is written is the file, and not a link to it.
    let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
    replace(&target, &text).map_err(|error| format!("{}: cannot be written: {error}", target.display()))?;
    Ok(true)
}

/// Replaces or creates a file in one step.
fn replace(target: &Path, text: &str) -> io::Result<()> {
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = target
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let next = folder.join(format!(".{}.new", name.to_string_lossy()));
    // A file that a process left when it was killed.
    let _ = fs::remove_file(&next);
    let written = (|| {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&next)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&next, target)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&next);
        return written;
    }
    // If a board loses its power now, the old file may come back; its token is still valid for some time.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use kube_lite::claims::token;

    use super::*;

    /// The current context.
    const CURRENT: Wanted<'_> = Wanted {
        context: None,
        flag: "--from-context",
    };

    fn token_of(account: &str, issued: u64) -> SecretString {
        token(&format!(r#"{{"sub":"{account}","iat":{issued}}}"#)).into()
    }

    fn kubeconfig(token: &SecretString) -> String {
        format!(
            "# of the site\nclusters: []\ncontexts:\n- name: a\n  context: {{cluster: c, user: u}}\ncurrent-context: a\n\
             users:\n- name: other\n  user: {{token: x}}\n- name: u\n  user:\n    token: \"{}\"\n",
            token.expose_secret()
        )
    }

    #[test]
    fn nothing_but_the_token_changes() {
        let (old, new) = (token_of("a", 5), token_of("a", 6));
        let named = Wanted {
            context: Some("a"),
            ..CURRENT
        };
        let found = with_token(&kubeconfig(&old), CURRENT, &new).unwrap();
        assert_eq!(found, Some(kubeconfig(&new)));
        assert_eq!(with_token(&kubeconfig(&new), named, &new), Ok(None), "it is there");
        let newer = kubeconfig(&token_of("a", 7));
        assert_eq!(with_token(&newer, CURRENT, &new), Ok(None), "somebody has rotated it");
    }

    #[test]
    fn what_is_another_accounts_stays() {
        let new = token_of("a", 6);
        for (text, why) in [
            (kubeconfig(&token_of("b", 5)), "its token is not one of"),
            (kubeconfig(&"opaque".to_owned().into()), "its token is not one of"),
            ("- no".to_owned(), "it is not a kubeconfig"),
            (kubeconfig(&String::new().into()), "its user entry has no token"),
            (
                kubeconfig(&token_of("a", 5)).replace("current-context: a\n", ""),
                "current-context: it is missing",
            ),
        ] {
            let error = with_token(&text, CURRENT, &new).unwrap_err();
            assert!(error.starts_with(why), "{error}");
            assert!(!error.contains("e30."), "{error}");
        }
    }

    #[test]
    fn a_file_is_replaced_in_one_step_and_read_by_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let (old, new) = (token_of("a", 5), token_of("a", 6));
        fs::write(path("etc"), kubeconfig(&old)).unwrap();
        fs::write(path(".kept.new"), "of a crash").unwrap();
        assert_eq!(in_file(&path("etc"), &path("kept"), CURRENT, &new), Ok(true));
        assert_eq!(fs::read_to_string(path("kept")).unwrap(), kubeconfig(&new));
        assert_eq!(fs::metadata(path("kept")).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(path("etc")).unwrap(), kubeconfig(&old));

        // The kubeconfig itself, by a link.
        symlink(path("etc"), path("link")).unwrap();
        assert_eq!(in_file(&path("link"), &path("link"), CURRENT, &new), Ok(true));
        assert_eq!(fs::read_to_string(path("etc")).unwrap(), kubeconfig(&new));
        assert!(fs::symlink_metadata(path("link")).unwrap().is_symlink());
        assert_eq!(in_file(&path("link"), &path("link"), CURRENT, &new), Ok(false));

        let newer = token_of("a", 7);
        let error = in_file(&path("etc"), &path("none/kept"), CURRENT, &newer).unwrap_err();
        assert!(error.contains("none/kept: cannot be written: No such file"), "{error}");
        fs::create_dir_all(path("taken/kept")).unwrap();
        in_file(&path("etc"), &path("taken/kept"), CURRENT, &newer).unwrap_err();
        let left: Vec<_> = fs::read_dir(path("taken")).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing half-written stays");
        let error = in_file(&path("gone"), &path("kept"), CURRENT, &newer).unwrap_err();
        assert!(error.contains("gone: cannot be read"), "{error}");
    }
}
