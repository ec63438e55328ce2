//! The metadata of an object, as far as decisions need it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::fields::no_object;
use super::managed_fields::{MOST_MANAGERS, Managers, Owner};
use crate::api::RENAMED_FROM;
use crate::bounded::at_most;
use crate::cluster::{Error, LONGEST_VERSION, ObjectName, Workspaces, is_path_segment, is_word};

/// No API server sends more metadata: apart from annotations, of which they accept 256 KiB, there are only labels and
/// field managers. Checked only for larger objects.
const METADATA_LIMIT: usize = 2 << 20;
/// More owners than any object has.
const MOST_OWNERS: usize = 10_000;

/// The metadata fields that decisions need.
#[derive(Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
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
    #[serde(default, rename = "managedFields", deserialize_with = "managers")]
    pub managers: Managers,
    /// A workload or a Service has made it, and it is deleted with that (`controller: true` in its `ownerReferences`).
    #[serde(default, rename = "ownerReferences", deserialize_with = "names_a_workload")]
    pub of_workload: bool,
}

fn null_is_empty<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn managers<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Managers, D::Error> {
    let owners: Vec<Owner<'de>> = at_most::<_, _, MOST_MANAGERS>(deserializer)?;
    Ok(Managers::of(&owners))
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

impl Meta {
    /// Reads the metadata of an object.
    pub fn parse(object: &[u8]) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Wire {
            metadata: Meta,
        }
        #[derive(Deserialize)]
        struct Raw<'a> {
            #[serde(borrow)]
            metadata: &'a RawValue,
        }
        if object.len() > METADATA_LIMIT {
            let raw: Raw = serde_json::from_slice(object).map_err(|error| no_object(&error))?;
            if raw.metadata.get().len() > METADATA_LIMIT {
                let why = format!("an object with more than {METADATA_LIMIT} bytes of metadata");
                return Err(Error::BadAnswer(why));
            }
        }
        let wire: Wire = serde_json::from_slice(object).map_err(|error| no_object(&error))?;
        wire.metadata.checked()
    }

    /// The same for an object of a side with one workspace or many.
    pub fn parse_at(workspaces: Workspaces, object: &[u8]) -> Result<Self, Error> {
        let mut meta = Self::parse(object)?;
        meta.workspace = workspaces.of(&meta.annotations).to_owned();
        Ok(meta)
    }

    /// The same, if an API server can have sent it: names become parts of paths, and the UID a part of annotations.
    fn checked(self) -> Result<Self, Error> {
        let wrong = match () {
            () if !is_path_segment(&self.name) => ("name", &self.name),
            () if !(self.namespace.is_empty() || is_path_segment(&self.namespace)) => ("namespace", &self.namespace),
            () if !(self.uid.is_empty() || is_word(&self.uid)) => ("UID", &self.uid),
            () if self.resource_version.len() > LONGEST_VERSION => ("resourceVersion", &self.resource_version),
            () => return Ok(self),
        };
        let (field, text) = wrong;
        let text: String = text.chars().take(100).collect();
        Err(Error::BadAnswer(format!("an object with the {field} {text:?}")))
    }

    /// Reads the metadata of an answer that has to be about `name`: anything else, such as a proxy's page with status
    /// 200, is an error.
    pub fn of(name: &ObjectName, answer: &[u8]) -> Result<Self, Error> {
        let mut meta = Self::parse(answer)?;
        name.workspace().clone_into(&mut meta.workspace);
        let got = meta.object_name();
        if got == *name {
            Ok(meta)
        } else {
            Err(Error::BadAnswer(format!("asked for {name:?}, got {got:?}")))
        }
    }

    /// Workspace, namespace and name.
    pub fn object_name(&self) -> ObjectName {
        ObjectName::in_workspace(&self.workspace, &self.namespace, &self.name)
    }

    /// The kind with its group, and the name, of the object that a conversion made this copy from.
    pub fn renamed_from(&self) -> Option<(&str, &str)> {
        self.annotations.get(RENAMED_FROM)?.split_once('/')
    }

    /// The resource version as a number that grows, which it is on every known server; 0 where it is not.
    pub fn version_number(&self) -> u64 {
        self.resource_version.parse().unwrap_or(0)
    }
}
