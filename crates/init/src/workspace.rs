//! The workspace that has the targets, as people name it.

use kube_lite::{Workspaces, is_word};

/// What a path ends with that shows the objects of many workspaces.
const ALL: &str = "/clusters/*";

/// Where the targets are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigWorkspace {
    /// The path below kcp's address.
    pub(crate) path: String,
    /// Whether it shows one workspace or many.
    pub(crate) workspaces: Workspaces,
    /// As it was given: where the types of targets are that name no path.
    pub(crate) name: String,
}

impl ConfigWorkspace {
    /// As it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `root:org:ws`, a cluster id, or the path of a virtual workspace, which begins with a slash. The error says what is
    /// wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let name = text.to_owned();
        let whole = text.trim_end_matches('/');
        if whole.starts_with('/') {
            let (path, workspaces) = match whole.strip_suffix(ALL) {
                Some(path) => (path, Workspaces::Many),
                None => (whole, Workspaces::One),
            };
            let mut parts = path.split('/').skip(1);
            if path.is_empty() || !parts.all(|part| is_word(part) && part != "*") {
                return Err("it must be a path such as /services/apiexport/root/init/clusters/*".to_owned());
            }
            let path = path.to_owned();
            return Ok(Self { path, workspaces, name });
        }
        if whole.is_empty() || text != whole || !whole.split(':').all(is_name) {
            return Err("it must be the path of a workspace, such as root:org:ws, or a cluster id".to_owned());
        }
        Ok(Self {
            path: format!("/clusters/{whole}"),
            workspaces: Workspaces::One,
            name,
        })
    }
}

/// True for a part of a workspace's path: small letters, digits and dashes.
fn is_name(part: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !part.is_empty() && part.len() <= 63 && part.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_ids_and_virtual_workspaces_are_taken() {
        for (text, path, workspaces) in [
            ("root:org:ws", "/clusters/root:org:ws", Workspaces::One),
            ("2abc3def", "/clusters/2abc3def", Workspaces::One),
            ("root", "/clusters/root", Workspaces::One),
            ("/services/x/root/y", "/services/x/root/y", Workspaces::One),
            ("/services/x/root/y/", "/services/x/root/y", Workspaces::One),
            (
                "/services/x/root/y/clusters/2abc",
                "/services/x/root/y/clusters/2abc",
                Workspaces::One,
            ),
            ("/services/x/root/y/clusters/*", "/services/x/root/y", Workspaces::Many),
        ] {
            let found = ConfigWorkspace::parse(text).unwrap();
            assert_eq!((&*found.path, found.workspaces), (path, workspaces), "{text}");
        }
    }

    #[test]
    fn other_texts_are_not() {
        for text in [
            "",
            "/",
            "//",
            ":",
            "root:",
            "Root",
            "root/org",
            "root:org/",
            "/a/*/b",
            "/clusters/*",
            "/a b",
            "ro ot",
        ] {
            assert!(ConfigWorkspace::parse(text).is_err(), "{text}");
        }
    }
}
