//! The metadata of an object, as far as decisions need it.
//!
//! What of its field managers is needed differs from role to role: it is a type of the role's own.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;

use super::fields::{from_text, no_object};
use super::{Error, LONGEST_VERSION, ObjectName, Workspaces, is_path_segment, is_word};
use crate::bounded::at_most;

/// No API server sends more metadata: apart from annotations, of which they accept 256 KiB, there are only labels and
/// field managers. Checked only for larger objects.
pub(super) const METADATA_LIMIT: usize = 2 << 20;
/// More owners than any object has.
const MOST_OWNERS: usize = 10_000;

/// The metadata fields that decisions need, with what `M` reads of the field managers: nothing, if nobody asks.
#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", bound = "M: Deserialize<'de> + Default")]
pub struct Meta<M = IgnoredAny> {
    /// Name.
    pub name: String,
    /// Namespace; empty for cluster-scoped objects.
    #[serde(default)]
    pub namespace: String,
    /// Workspace; empty at a side with one.
    #[serde(skip)]
    pub workspace: String,
    /// UID.
    #[serde(default)]
    pub uid: String,
    /// Resource version.
    #[serde(default)]
    pub resource_version: String,
    /// When deletion was asked for, if it was.
    #[serde(default)]
    pub deletion_timestamp: Option<String>,
    /// Labels.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, deserialize_with = "null_is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// What its field managers say.
    #[serde(default, rename = "managedFields")]
    pub managers: M,
    /// A workload or a Service has made it, and it is deleted with that (`controller: true` in its `ownerReferences`).
    #[serde(default, rename = "ownerReferences", deserialize_with = "names_a_workload")]
    pub of_workload: bool,
}

fn null_is_empty<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Controllers that own what they make, all of them namespaced and built in: what they own is deleted with them.
fn names_a_workload<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    const WORKLOADS: [(&str, &[&str]); 3] = [
        ("apps", &["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"]),
        ("batch", &["CronJob", "Job"]),
        ("v1", &["Pod", "ReplicationController", "Service"]),
    ];
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Reference<'a> {
        #[serde(default, borrow)]
        api_version: Cow<'a, str>,
        #[serde(default, borrow)]
        kind: Cow<'a, str>,
        #[serde(default)]
        controller: Option<bool>,
    }
    let is_workload = |owner: Reference<'_>| {
        let group = owner.api_version.split('/').next().unwrap_or_default();
        let known = WORKLOADS.iter().find(|(known, _)| *known == group);
        owner.controller == Some(true) && known.is_some_and(|(_, kinds)| kinds.contains(&&*owner.kind))
    };
    let owners: Vec<Reference> = at_most::<_, _, MOST_OWNERS>(deserializer)?;
    Ok(owners.into_iter().any(is_workload))
}

/// Its field managers as they are written.
pub(super) type RawManagers<'a> = Option<&'a RawValue>;

impl<M: DeserializeOwned + Default> Meta<M> {
    /// Reads the metadata of an object.
    pub fn parse(object: &[u8]) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Wire<'a> {
            #[serde(borrow)]
            metadata: Meta<RawManagers<'a>>,
        }
        check_size(object)?;
        let wire: Wire = serde_json::from_slice(object).map_err(|error| no_object(&error))?;
        let managers = wire.metadata.managers.map(|raw| from_text(raw.get())).transpose();
        let managers = managers.map_err(|error| no_object(&error))?;
        wire.metadata.with(managers.unwrap_or_default()).checked()
    }

    /// The same for an object of a side with one workspace or many.
    pub fn parse_at(workspaces: Workspaces, object: &[u8]) -> Result<Self, Error> {
        Self::parse(object).map(|meta| meta.at(workspaces))
    }

    /// Reads the metadata of an answer that has to be about `name`: anything else, such as a proxy's page with status
    /// 200, is an error.
    pub fn of(name: &ObjectName, answer: &[u8]) -> Result<Self, Error> {
        Self::parse(answer)?.about(name)
    }
}

/// Fails for an object whose metadata no API server sends, before they are copied.
pub(super) fn check_size(object: &[u8]) -> Result<(), Error> {
    #[derive(Deserialize)]
    struct Wire<'a> {
        #[serde(borrow)]
        metadata: &'a RawValue,
    }
    if object.len() <= METADATA_LIMIT {
        return Ok(());
    }
    let wire: Wire = serde_json::from_slice(object).map_err(|error| no_object(&error))?;
    if wire.metadata.get().len() <= METADATA_LIMIT {
        return Ok(());
    }
    let message = format!("an object with more than {METADATA_LIMIT} bytes of metadata");
    Err(Error::BadAnswer(message))
}

impl<M> Meta<M> {
    /// Them, with this of the field managers.
    pub(super) fn with<N>(self, managers: N) -> Meta<N> {
        Meta {
            name: self.name,
            namespace: self.namespace,
            workspace: self.workspace,
            uid: self.uid,
            resource_version: self.resource_version,
            deletion_timestamp: self.deletion_timestamp,
            labels: self.labels,
            annotations: self.annotations,
            managers,
            of_workload: self.of_workload,
        }
    }

    /// Them, with the workspace that they say at a side with one workspace or many.
    #[must_use]
    pub fn at(mut self, workspaces: Workspaces) -> Self {
        self.is_at(workspaces);
        self
    }

    /// They are of a side with one workspace or many.
    pub(super) fn is_at(&mut self, workspaces: Workspaces) {
        workspaces.of(&self.annotations).clone_into(&mut self.workspace);
    }

    /// Them, if they are those of `name`, which was asked for.
    pub fn about(mut self, name: &ObjectName) -> Result<Self, Error> {
        name.workspace().clone_into(&mut self.workspace);
        let got = self.object_name();
        if got == *name {
            Ok(self)
        } else {
            Err(Error::BadAnswer(format!("asked for {name:?}, got {got:?}")))
        }
    }

    /// Workspace, namespace and name.
    pub fn object_name(&self) -> ObjectName {
        ObjectName::in_workspace(&self.workspace, &self.namespace, &self.name)
    }

    /// The resource version as a number that grows, which it is on every known server; 0 where it is not.
    pub fn version_number(&self) -> u64 {
        self.resource_version.parse().unwrap_or(0)
    }

    /// Them, if an API server can have sent them: names become parts of paths, and the UID a part of annotations.
    pub(super) fn checked(self) -> Result<Self, Error> {
        let wrong = if !is_path_segment(&self.name) {
            ("name", &self.name)
        } else if !(self.namespace.is_empty() || is_path_segment(&self.namespace)) {
            ("namespace", &self.namespace)
        } else if !(self.uid.is_empty() || is_word(&self.uid)) {
            ("UID", &self.uid)
        } else if self.resource_version.len() > LONGEST_VERSION {
            ("resourceVersion", &self.resource_version)
        } else {
            return Ok(self);
        };
        let (field, text) = wrong;
        let text: String = text.chars().take(100).collect();
        Err(Error::BadAnswer(format!("an object with the {field} {text:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_object_is_an_error() {
        for text in ["", "<html>", "{}", r#"{"metadata":{}}"#] {
            assert!(<Meta>::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn an_object_with_a_name_that_none_can_have_is_no_answer() {
        let long = "x".repeat(254);
        let object = |name: &str, namespace: &str, uid: &str, version: &str| {
            serde_json::json!({"metadata": {"name": name, "namespace": namespace, "uid": uid, "resourceVersion": version}})
                .to_string()
        };
        for bad in ["victim:7473/proxy/admin", "a%2Fb", ".", "..", &long] {
            for object in [
                object(bad, "shop", "u", "1"),
                object("a", bad, "u", "1"),
                object("a", "shop", bad, "1"),
            ] {
                let error = <Meta>::parse(object.as_bytes()).unwrap_err();
                assert!(
                    matches!(&error, Error::BadAnswer(_)) && error.to_string().len() < 250,
                    "{error}"
                );
            }
        }
        for object in [
            object("", "shop", "u", "1"),
            object("a", "shop", "u", &long),
            r#"{"metadata":{"namespace":"shop"}}"#.to_owned(),
        ] {
            assert!(<Meta>::parse(object.as_bytes()).is_err(), "{object:.200}");
        }
        for (name, namespace) in [("system:node", ""), ("a.b-c", "shop"), (&long[1..], "shop")] {
            let object = object(name, namespace, "0b1c-2d", "17");
            assert_eq!(<Meta>::parse(object.as_bytes()).unwrap().name, name);
        }
    }
}
