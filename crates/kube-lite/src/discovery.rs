//! Which resource types a side serves, asked one group version at a time.
//!
//! Only group versions that something selected needs are asked for, so a side's whole API (100 KB on an ordinary
//! cluster) is never sent over the link, and a broken aggregated API affects only itself.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Deserialize;

use super::resource::{group_version_path, is_word};
use super::{Cluster, Error, ResourceType, stored};
use crate::bounded::at_most;

/// Group and version.
pub type GroupVersion = (String, String);

/// What is known about one group version of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Served {
    /// The resources it has, by plural name. Subresources are part of their resource.
    Resources(BTreeMap<String, ServedResource>),
    /// The server answered that there is no such group version.
    NotServed,
}

impl Served {
    /// True if the answer shows that it lacks a resource, by plural name; with a scope (true for namespaced), also if it
    /// has one of that name with the other scope. That the group version is not served shows nothing: a 404 may come
    /// from a proxy.
    pub fn lacks(&self, resource: &str, scope: Option<bool>) -> bool {
        match self {
            Self::Resources(resources) => resources
                .get(resource)
                .is_none_or(|served| scope.is_some_and(|namespaced| served.resource.namespaced != namespaced)),
            Self::NotServed => false,
        }
    }
}

/// What the versions of named groups have.
pub type Catalogue = BTreeMap<GroupVersion, Served>;

/// One resource as discovery describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct ServedResource {
    /// Its type.
    pub resource: ResourceType,
    /// True if it can be listed and watched; a few (`tokenreviews`) can only be created.
    pub watchable: bool,
    /// True if it can be listed.
    pub listable: bool,
    /// True if it has objects that are kept: not if they can only be created (`bindings`) or seen (`packagemanifests`):
    /// those are not deleted with a namespace.
    pub holds_objects: bool,
    /// True if it has a `/status` subresource.
    pub status_subresource: bool,
    /// True if it has a `/scale` subresource.
    pub scalable: bool,
    /// True if the side says that it stores its objects at another version.
    pub stored_elsewhere: bool,
    /// Other names of it, separated by spaces: its short names, and its singular unless that is its kind in small
    /// letters. 16 bytes a resource, and 32 more where there is any.
    pub aliases: Box<str>,
}

impl ServedResource {
    /// For tests: what most types are like, without a status.
    #[cfg(any(test, feature = "testing"))]
    pub fn ordinary(resource: ResourceType) -> Self {
        Self {
            resource,
            watchable: true,
            listable: true,
            holds_objects: true,
            status_subresource: false,
            scalable: false,
            stored_elsewhere: false,
            aliases: Box::default(),
        }
    }

    /// What people may call it, in whatever letters: its plural, kind, singular and short names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let ResourceType { resource, kind, .. } = &self.resource;
        let names = [&**resource, &**kind].into_iter();
        names.chain(self.aliases.split_whitespace())
    }
}

/// What is known about one side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discovery {
    /// By group version. Absent means not asked yet, or not answered.
    pub known: BTreeMap<GroupVersion, Served>,
    /// The named groups, each with its versions, the preferred one first. Absent as long as they were not needed.
    pub groups: Option<BTreeMap<String, Vec<String>>>,
    /// All that it served when it was last asked for all: good for nothing but to say what may be meant by a word that is
    /// not served. Absent as long as it was not needed.
    pub catalogue: Option<Catalogue>,
}

impl Discovery {
    /// The resource, if the side is known to serve it.
    pub fn find(&self, group: &str, version: &str, resource: &str) -> Option<&ServedResource> {
        match self.known.get(&(group.to_owned(), version.to_owned()))? {
            Served::Resources(resources) => resources.get(resource),
            Served::NotServed => None,
        }
    }

    /// True if the side is known to serve the resource at some version of the group.
    pub fn serves(&self, group: &str, resource: &str) -> bool {
        let from = self.known.range((group.to_owned(), String::new())..);
        let mut of_group = from.take_while(|((known, _), _)| known == group);
        of_group.any(|(_, served)| matches!(served, Served::Resources(resources) if resources.contains_key(resource)))
    }

    /// The resource of a kind, if the side is known to serve it.
    pub fn find_kind(&self, group: &str, version: &str, kind: &str) -> Option<&ServedResource> {
        match self.known.get(&(group.to_owned(), version.to_owned()))? {
            Served::Resources(resources) => resources.values().find(|served| served.resource.kind == kind),
            Served::NotServed => None,
        }
    }

    /// Every resource of a group version.
    pub fn resources(&self, group: &str, version: &str) -> impl Iterator<Item = &ServedResource> {
        let served = self.known.get(&(group.to_owned(), version.to_owned()));
        let resources = served.and_then(|served| match served {
            Served::Resources(resources) => Some(resources.values()),
            Served::NotServed => None,
        });
        resources.into_iter().flatten()
    }

    /// The versions of a group, the preferred one first; `None` if that is not known yet.
    pub fn versions(&self, group: &str) -> Option<Vec<&str>> {
        if group.is_empty() {
            return Some(vec!["v1"]);
        }
        let versions = self.groups.as_ref()?.get(group);
        Some(versions.into_iter().flatten().map(String::as_str).collect())
    }

    /// True if the side has answered for this group version, whatever the answer was.
    pub fn knows(&self, group: &str, version: &str) -> bool {
        self.known.contains_key(&(group.to_owned(), version.to_owned()))
    }
}

/// Asks `cluster` what one group version serves. An error means that nothing new is known.
pub async fn discover(cluster: &Cluster, asked: &GroupVersion) -> Result<Served, Error> {
    served(asked, |path| async move { cluster.get_path(&path).await }).await
}

/// The same of one of its workspaces, each of which may serve something else.
pub async fn discover_in(cluster: &Cluster, workspace: &str, asked: &GroupVersion) -> Result<Served, Error> {
    served(asked, |path| async move { cluster.get_path_in(workspace, &path).await }).await
}

async fn served<F>((group, version): &GroupVersion, get: impl FnOnce(String) -> F) -> Result<Served, Error>
where
    F: Future<Output = Result<Bytes, Error>>,
{
    // Both may be the words of a config or of the record.
    if !(group.is_empty() || is_word(group)) || !is_word(version) {
        return Err(Error::NotSent(format!("{group:?} at {version:?} is no API")));
    }
    match get(group_version_path(group, version)).await {
        Ok(body) => parse(group, version, &body),
        Err(error) if error.is_type_not_served() => Ok(Served::NotServed),
        Err(error) => Err(error),
    }
}

/// The named groups that a side serves, each with its versions, the preferred one first.
pub async fn groups(cluster: &Cluster) -> Result<BTreeMap<String, Vec<String>>, Error> {
    #[derive(Deserialize)]
    struct Wire {
        kind: String,
        #[serde(deserialize_with = "at_most::<_, _, MOST_GROUPS>")]
        groups: Vec<WireGroup>,
    }
    #[derive(Deserialize)]
    struct WireGroup {
        name: String,
        #[serde(deserialize_with = "at_most::<_, _, MOST_VERSIONS>")]
        versions: Vec<WireVersion>,
    }
    #[derive(Deserialize)]
    struct WireVersion {
        version: String,
    }
    let bad = |why: String| Error::BadAnswer(format!("groups: {why}"));
    let body = cluster.get_path_shared("/apis").await?;
    let wire: Wire = serde_json::from_slice(&body).map_err(|error| bad(error.to_string()))?;
    if wire.kind != "APIGroupList" {
        return Err(bad(format!("a {} instead of an APIGroupList", wire.kind)));
    }
    // What cannot be requested counts as absent.
    let versions = |group: &WireGroup| {
        let versions = group.versions.iter().map(|version| version.version.clone());
        versions.filter(|version| is_word(version)).collect()
    };
    let groups = wire.groups.iter().filter(|group| is_word(&group.name));
    Ok(groups.map(|group| (group.name.clone(), versions(group))).collect())
}

/// All that a side serves in named groups, by one request; nothing from a server that does not know that form of answer
/// (Kubernetes has it since 1.26). It may have a hundred kilobytes, so it is for a side that is near.
pub async fn catalogue(cluster: &Cluster) -> Result<Catalogue, Error> {
    const ALL: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                       application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
    parse_all(&cluster.get_path_as("/apis", ALL).await?)
}

/// More than any server serves: groups, versions of one, resources with subresources of one version, and verbs of one.
const MOST_GROUPS: usize = 10_000;
const MOST_VERSIONS: usize = 100;
const MOST_RESOURCES: usize = 5000;
const MOST_VERBS: usize = 100;
const MOST_SHORT_NAMES: usize = 100;
/// Kinds are words of 63 characters in CRDs, as other names of a type are.
const LONGEST_KIND: usize = 253;
/// Verbs that a type may have even if it stores nothing.
const ONLY_SHOW: [&str; 3] = ["create", "get", "list"];

#[derive(Deserialize)]
struct WireList {
    kind: String,
    #[serde(default, deserialize_with = "at_most::<_, _, MOST_RESOURCES>")]
    resources: Vec<WireResource>,
}

#[derive(Deserialize)]
struct WireResource {
    name: String,
    #[serde(default)]
    namespaced: bool,
    #[serde(default)]
    kind: String,
    #[serde(default, deserialize_with = "at_most::<_, _, MOST_VERBS>")]
    verbs: Vec<String>,
    #[serde(default, rename = "storageVersionHash")]
    storage_version_hash: String,
    #[serde(default, rename = "singularName")]
    singular: String,
    #[serde(
        default,
        rename = "shortNames",
        deserialize_with = "at_most::<_, _, MOST_SHORT_NAMES>"
    )]
    short_names: Vec<String>,
}

impl WireResource {
    fn is_usable(&self) -> bool {
        is_word(&self.name) && (self.kind.is_empty() || is_word(&self.kind))
    }

    /// What it is with these subresources.
    fn served(self, group: &str, version: &str, subresources: &[Self]) -> ServedResource {
        let with = |subresource: &str| {
            let name = format!("{}/{subresource}", self.name);
            subresources.iter().any(|subresource| subresource.name == name)
        };
        let (status_subresource, scalable) = (with("status"), with("scale"));
        let has = |verb: &str| self.verbs.iter().any(|known| known == verb);
        ServedResource {
            watchable: has("list") && has("watch"),
            listable: has("list"),
            holds_objects: self.verbs.iter().any(|verb| !ONLY_SHOW.contains(&verb.as_str())),
            status_subresource,
            scalable,
            stored_elsewhere: stored::elsewhere(&self.storage_version_hash, [group, version, &self.kind]),
            aliases: self.aliases(),
            resource: ResourceType {
                group: group.to_owned(),
                version: version.to_owned(),
                resource: self.name,
                kind: self.kind,
                namespaced: self.namespaced,
            },
        }
    }

    /// As [`ServedResource::aliases`].
    fn aliases(&self) -> Box<str> {
        let singular = Some(&self.singular).filter(|singular| !singular.eq_ignore_ascii_case(&self.kind));
        let names: Vec<&str> = singular
            .into_iter()
            .chain(&self.short_names)
            .map(String::as_str)
            .collect();
        let names = names.join(" ");
        // More is not needed to find out what was meant.
        if names.len() <= LONGEST_KIND {
            names.trim().into()
        } else {
            Box::default()
        }
    }
}

fn parse_all(body: &[u8]) -> Result<Catalogue, Error> {
    #[derive(Deserialize)]
    struct Wire {
        kind: String,
        #[serde(default, deserialize_with = "at_most::<_, _, MOST_GROUPS>")]
        items: Vec<WireGroup>,
    }
    #[derive(Deserialize)]
    struct WireGroup {
        metadata: WireName,
        #[serde(default, deserialize_with = "at_most::<_, _, MOST_VERSIONS>")]
        versions: Vec<WireVersion>,
    }
    #[derive(Deserialize)]
    struct WireName {
        name: String,
    }
    #[derive(Deserialize)]
    struct WireVersion {
        version: String,
        #[serde(default, deserialize_with = "at_most::<_, _, MOST_RESOURCES>")]
        resources: Vec<WireListed>,
    }
    let wire: Wire = serde_json::from_slice(body).map_err(|error| Error::BadAnswer(format!("all groups: {error}")))?;
    let mut all = Catalogue::new();
    if wire.kind != "APIGroupDiscoveryList" {
        return Ok(all);
    }
    for group in wire.items.into_iter().filter(|group| is_word(&group.metadata.name)) {
        let name = group.metadata.name;
        for WireVersion { version, resources } in group.versions.into_iter().filter(|of| is_word(&of.version)) {
            let usable = resources
                .into_iter()
                .map(WireResource::from)
                .filter(WireResource::is_usable);
            let served = usable.map(|wire| (wire.name.clone(), wire.served(&name, &version, &[])));
            all.insert((name.clone(), version.clone()), Served::Resources(served.collect()));
        }
    }
    Ok(all)
}

/// A resource in a list of all groups.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireListed {
    resource: String,
    #[serde(default)]
    response_kind: WireKind,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    singular_resource: String,
    #[serde(default, deserialize_with = "at_most::<_, _, MOST_VERBS>")]
    verbs: Vec<String>,
    #[serde(default, deserialize_with = "at_most::<_, _, MOST_SHORT_NAMES>")]
    short_names: Vec<String>,
}

#[derive(Default, Deserialize)]
struct WireKind {
    #[serde(default)]
    kind: String,
}

impl From<WireListed> for WireResource {
    fn from(listed: WireListed) -> Self {
        Self {
            name: listed.resource,
            namespaced: listed.scope == "Namespaced",
            kind: listed.response_kind.kind,
            verbs: listed.verbs,
            storage_version_hash: String::new(),
            singular: listed.singular_resource,
            short_names: listed.short_names,
        }
    }
}

fn parse(group: &str, version: &str, body: &[u8]) -> Result<Served, Error> {
    let bad = |why: String| Error::BadAnswer(format!("discovery of {group}/{version}: {why}"));
    let list: WireList = serde_json::from_slice(body).map_err(|error| bad(error.to_string()))?;
    if list.kind != "APIResourceList" {
        return Err(bad(format!("a {} instead of an APIResourceList", list.kind)));
    }
    let (subresources, resources): (Vec<_>, Vec<_>) = list
        .resources
        .into_iter()
        .partition(|resource| resource.name.contains('/'));
    let served = resources
        .into_iter()
        .filter(WireResource::is_usable)
        .map(|wire| (wire.name.clone(), wire.served(group, version, &subresources)));
    Ok(Served::Resources(served.collect()))
}

/// Reads any text as an answer, for [`super::fuzz_tests`].
#[cfg(test)]
pub(super) fn harm(body: &[u8]) {
    let one = parse("apps", "v1", body).ok().into_iter();
    let all = parse_all(body).unwrap_or_default().into_values();
    for served in one.chain(all) {
        assert!(matches!(served, Served::Resources(resources) if resources.keys().all(|name| is_word(name))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_resources_and_their_status_subresource() {
        let body = br#"{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[
            {"name":"deployments","namespaced":true,"kind":"Deployment","verbs":["get","list","watch","patch"]},
            {"name":"deployments/status","namespaced":true,"kind":"Deployment","verbs":["get","patch"]},
            {"name":"reviews","namespaced":false,"kind":"Review","verbs":["create"]},
            {"name":"..","namespaced":true,"kind":"Lie","verbs":["get","list","watch","patch"]}]}"#;
        let mut discovery = Discovery::default();
        discovery
            .known
            .insert(("apps".into(), "v1".into()), parse("apps", "v1", body).unwrap());
        let deployments = discovery.find("apps", "v1", "deployments").unwrap();
        assert!(deployments.watchable && deployments.status_subresource && deployments.resource.namespaced);
        assert_eq!(deployments.resource.kind, "Deployment");
        let reviews = discovery.find("apps", "v1", "reviews").unwrap();
        assert!(deployments.listable && deployments.holds_objects);
        assert!(!reviews.watchable && !reviews.listable && !reviews.holds_objects);
        assert!(discovery.find("apps", "v1", "deployments/status").is_none());
        assert!(discovery.find_kind("apps", "v1", "Lie").is_none());
        assert!(discovery.knows("apps", "v1") && !discovery.knows("apps", "v2"));
    }

    #[test]
    fn a_resource_answers_to_whatever_people_call_it() {
        let body = br#"{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[
            {"name":"deployments","singularName":"deployment","kind":"Deployment","shortNames":["deploy","dp"]},
            {"name":"sheep","singularName":"lamb","kind":"Sheep"},
            {"name":"plain","kind":"Plain"}]}"#;
        let Served::Resources(served) = parse("apps", "v1", body).unwrap() else {
            panic!("it has resources")
        };
        for (resource, word, expected) in [
            ("deployments", "deployment", true),
            ("deployments", "Deployments", true),
            ("deployments", "deploy", true),
            ("deployments", "DP", true),
            ("deployments", "d", false),
            ("deployments", "", false),
            ("deployments", "deploy dp", false),
            ("sheep", "lamb", true),
            ("plain", "plains", false),
            ("plain", "", false),
        ] {
            let mut names = served[resource].names();
            let answers = names.any(|name| name.eq_ignore_ascii_case(word));
            assert_eq!(answers, expected, "{resource} {word}");
        }
        assert_eq!(
            ["deployments", "plain"].map(|name| &*served[name].aliases),
            ["deploy dp", ""]
        );
    }

    #[test]
    fn one_list_of_all_groups_says_what_each_type_is_called() {
        let body = br#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[
            {"metadata":{"name":"apps"},"versions":[{"version":"v1","freshness":"Current","resources":[
                {"resource":"deployments","responseKind":{"group":"","version":"","kind":"Deployment"},"scope":"Namespaced",
                 "singularResource":"deployment","verbs":["list","watch"],"shortNames":["deploy"],
                 "subresources":[{"subresource":"status","verbs":["get"]}]},
                {"resource":"..","scope":"Namespaced","verbs":[]}]}]},
            {"metadata":{"name":"broken.io"},"versions":[{"version":"v1","freshness":"Stale"},{"version":"../x"}]}]}"#;
        let all = parse_all(body).unwrap();
        assert_eq!(all.len(), 2);
        let Served::Resources(apps) = &all[&("apps".to_owned(), "v1".to_owned())] else {
            panic!("it has resources")
        };
        let deployments = &apps["deployments"];
        let names: Vec<&str> = deployments.names().collect();
        assert_eq!(names, ["deployments", "Deployment", "deploy"]);
        assert!(deployments.watchable && deployments.resource.namespaced && apps.len() == 1);
        // An older server, and none.
        assert_eq!(
            parse_all(br#"{"kind":"APIGroupList","groups":[]}"#),
            Ok(Catalogue::new())
        );
        assert!(matches!(parse_all(b"<html>"), Err(Error::BadAnswer(_))));
    }

    #[test]
    fn an_answer_that_is_no_discovery_teaches_nothing() {
        for body in ["<html>", "{}", r#"{"kind":"Status"}"#] {
            assert!(
                matches!(parse("apps", "v1", body.as_bytes()), Err(Error::BadAnswer(_))),
                "{body}"
            );
        }
    }
}
