//! Workspaces of a side: how a request names one, and how an object says in which one it is.
//!
//! kcp serves all workspaces of a shard under one address: `/clusters/<name>` before a path chooses one, `/clusters/*` reads
//! them all, and each object says in an annotation which workspace it is from. The syncer has one workspace a side,
//! whose path is a part of the server's URL.

use std::collections::BTreeMap;

use super::Error;
use super::resource::{encode, is_word};

/// The annotation by which kcp says which workspace an object is in.
const CLUSTER: &str = "kcp.io/cluster";

/// How many workspaces a side has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Workspaces {
    /// One, which the server's URL names if it has a name.
    #[default]
    One,
    /// Any number, distinguished by name.
    Many,
}

impl Workspaces {
    /// The path of what is in one of them.
    pub(super) fn path_in(self, workspace: &str, path: &str) -> Result<String, Error> {
        match self {
            Self::One => Ok(path.to_owned()),
            Self::Many if is_word(workspace) && workspace != "*" => {
                let mut whole = String::from("/clusters/");
                encode(&mut whole, workspace);
                whole.push_str(path);
                Ok(whole)
            }
            Self::Many => Err(Error::NotSent(format!("{workspace:?} is no name of a workspace"))),
        }
    }

    /// The path of what is the same in all of them, or read in all at once.
    pub(super) fn path_in_all(self, path: &str) -> String {
        match self {
            Self::One => path.to_owned(),
            Self::Many => format!("/clusters/*{path}"),
        }
    }

    /// The workspace of an object with these annotations; empty where there is one only.
    pub(crate) fn of(self, annotations: &BTreeMap<String, String>) -> &str {
        match self {
            Self::One => "",
            Self::Many => annotations.get(CLUSTER).map_or("", String::as_str),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_the_workspace_where_there_are_many() {
        for (workspaces, workspace, expected) in [
            (Workspaces::One, "", Some("/api/v1/pods")),
            (Workspaces::Many, "2zdmkx5", Some("/clusters/2zdmkx5/api/v1/pods")),
            (Workspaces::Many, "root:org", Some("/clusters/root:org/api/v1/pods")),
            (Workspaces::Many, "", None),
            (Workspaces::Many, "*", None),
            (Workspaces::Many, "a/b", None),
            (Workspaces::Many, "..", None),
        ] {
            let found = workspaces.path_in(workspace, "/api/v1/pods").ok();
            assert_eq!(found.as_deref(), expected, "{workspaces:?} {workspace:?}");
        }
        assert_eq!(Workspaces::One.path_in_all("/apis"), "/apis");
        assert_eq!(Workspaces::Many.path_in_all("/apis"), "/clusters/*/apis");
    }

    #[test]
    fn an_object_is_in_the_workspace_that_it_names_where_there_are_many() {
        let annotations = BTreeMap::from([(CLUSTER.to_owned(), "2zdmkx5".to_owned())]);
        assert_eq!(Workspaces::Many.of(&annotations), "2zdmkx5");
        assert_eq!(Workspaces::One.of(&annotations), "", "kcp says it in a single one, too");
    }
}
