//! The form of the record: the data of a `ConfigMap`, a line for each type.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use bytes::Bytes;
use serde_json::{Value, json};

use super::NAME;
use crate::cluster::{Cluster, Content, Error, ObjectName, ResourceType, is_word};
use crate::plan::{Direction, Origins, SyncedType};
use crate::sync::definition::Known;
use crate::sync::object::Meta;

/// Keys in it, by the direction that the types travelled.
const KEYS: [(Direction, &str); 2] = [(Direction::Down, "types"), (Direction::Up, "upsynced")];

/// Key of the UID of the hub that the copies are from.
const HUB: &str = "hub";
/// Key of the versions that its types were seen at, one `resource.group version` a line.
const HUB_VERSIONS: &str = "hub-versions";
/// Key of what defines its types, one `resource.group uid` a line; the UID is `-` where nothing does that could be deleted.
const HUB_DEFINITIONS: &str = "hub-definitions";
const NOTHING: &str = "-";

/// What the record says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) struct Kept {
    pub(super) types: BTreeSet<SyncedType>,
    /// The hub that the copies are from; empty if it cannot be told.
    pub(super) hub: String,
    pub(super) hub_versions: BTreeMap<String, u64>,
    pub(super) hub_definitions: BTreeMap<String, Known>,
}

/// Reads it from the edge; an empty one if there is none.
pub(super) async fn read(edge: &Cluster, name: &ObjectName) -> Result<Kept, Error> {
    match edge.get(&ResourceType::config_maps(), name, Content::Full).await {
        Ok(body) => read_body(name, &body),
        Err(error) if error.proves_absent(NAME) => Ok(Kept::default()),
        Err(error) => Err(error),
    }
}

fn read_body(name: &ObjectName, body: &[u8]) -> Result<Kept, Error> {
    Meta::of(name, body)?;
    let object: Value = serde_json::from_slice(body)
        .map_err(|error| Error::BadAnswer(format!("the record of synced types: {error}")))?;
    let text = |key: &str| object["data"][key].as_str().unwrap_or_default();
    let types = KEYS.iter().flat_map(|&(direction, key)| parse(direction, text(key)));
    let versions = text(HUB_VERSIONS).lines().filter_map(|line| {
        let (resource, version) = line.split_once(' ')?;
        Some((resource.to_owned(), version.parse().ok()?))
    });
    let definitions = text(HUB_DEFINITIONS).lines().filter_map(|line| {
        let (resource, uid) = line.split_once(' ')?;
        let known = if uid == NOTHING {
            Known::Nothing
        } else {
            Known::Uid(uid.to_owned())
        };
        Some((resource.to_owned(), known))
    });
    Ok(Kept {
        hub_definitions: definitions.collect(),
        types: types.collect(),
        hub: text(HUB).to_owned(),
        hub_versions: versions.collect(),
    })
}

/// Writes it to the edge.
pub(super) async fn save(edge: &Cluster, name: &ObjectName, kept: &Kept) -> Result<(), Error> {
    let mut versions = String::new();
    for (resource, version) in &kept.hub_versions {
        let _ = writeln!(versions, "{resource} {version}");
    }
    let mut definitions = String::new();
    for (resource, known) in &kept.hub_definitions {
        let uid = match known {
            Known::Nothing => NOTHING,
            Known::Uid(uid) => uid,
        };
        let _ = writeln!(definitions, "{resource} {uid}");
    }
    let data: BTreeMap<&str, String> = KEYS
        .iter()
        .map(|&(direction, key)| (key, render(direction, &kept.types)))
        .chain([
            (HUB, kept.hub.clone()),
            (HUB_VERSIONS, versions),
            (HUB_DEFINITIONS, definitions),
        ])
        .filter(|(_, text)| !text.is_empty())
        .collect();
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "namespace": &*name.namespace,
            "name": NAME,
            "annotations": {"edge.kubestellar.io/description":
                "The resource types that edge-syncer has synced to this cluster and from it, by group/version/resource. It finds its copies by them after a restart."},
        },
        "data": data,
    });
    let body = Bytes::from(object.to_string());
    let (kept, _) = edge
        .apply(&ResourceType::config_maps(), name, body, Content::Metadata)
        .await?;
    Meta::of(name, &kept).map(|_| ())
}

/// One `group/version/resource` a line, and ` of group/resource/Kind` where the origins are of another type.
fn render(direction: Direction, types: &BTreeSet<SyncedType>) -> String {
    let line = |known: &SyncedType| {
        let of = known
            .of
            .as_ref()
            .map(|of| format!(" of {}/{}/{}", of.group, of.resource, of.kind));
        let of = of.unwrap_or_default();
        format!("{}/{}/{}{of}\n", known.group, known.version, known.resource)
    };
    types
        .iter()
        .filter(|known| known.direction == direction)
        .map(line)
        .collect()
}

/// Reads what [`render`] has written; lines of another form are left out.
fn parse(direction: Direction, text: &str) -> BTreeSet<SyncedType> {
    let line = |line: &str| {
        let (line, of) = line.trim().split_once(" of ").unwrap_or((line.trim(), ""));
        let of = of.split_once('/').map(|(group, of)| {
            let (resource, kind) = of.split_once('/').unwrap_or((of, ""));
            Origins {
                group: group.to_owned(),
                resource: resource.to_owned(),
                kind: kind.to_owned(),
            }
        });
        let mut parts = line.splitn(3, '/').map(str::to_owned);
        let (group, version, resource) = (parts.next()?, parts.next()?, parts.next()?);
        let is_group = |group: &str| group.is_empty() || is_word(group);
        let origins_are = |of: &Origins| is_group(&of.group) && is_word(&of.resource);
        let can_be = is_group(&group) && is_word(&version) && is_word(&resource);
        (can_be && of.as_ref().is_none_or(origins_are)).then_some(SyncedType {
            direction,
            group,
            version,
            resource,
            of,
        })
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use futures_util::future::LocalBoxFuture;

    use super::*;
    use crate::cluster::{ApiServer, RateLimit, Response, Side};

    /// An edge that has one answer to everything.
    struct Says(&'static str);

    impl ApiServer for Says {
        fn send(&self, _: http::Request<Bytes>) -> LocalBoxFuture<'_, Result<Response, Error>> {
            let answer = Response::whole(200, self.0);
            async move { Ok(answer) }.boxed_local()
        }
    }

    #[tokio::test]
    async fn an_answer_about_something_else_is_no_record() {
        const RECORD: &str = r#"{"metadata":{"namespace":"default","name":"edge-syncer-types"},"data":{"hub":"u1"}}"#;
        let name = ObjectName::new("default", NAME);
        for (answer, expected) in [
            (RECORD, true),
            ("<html>log in</html>", false),
            ("{}", false),
            (r#"{"kind":"Status","metadata":{},"error":"log in"}"#, false),
            (r#"{"metadata":{"namespace":"default","name":"another"}}"#, false),
        ] {
            let edge = Cluster::new(Side::Edge, Box::new(Says(answer)), RateLimit::new(None));
            assert_eq!(read(&edge, &name).await.is_ok(), expected, "reading {answer}");
            assert_eq!(
                save(&edge, &name, &Kept::default()).await.is_ok(),
                expected,
                "writing {answer}"
            );
        }
    }

    fn synced(group: &str, version: &str, resource: &str) -> SyncedType {
        SyncedType {
            direction: Direction::Down,
            group: group.into(),
            version: version.into(),
            resource: resource.into(),
            of: None,
        }
    }

    #[test]
    fn reads_what_it_writes_and_leaves_out_the_rest() {
        let converted = SyncedType {
            of: Some(Origins {
                group: "a.org".into(),
                resource: "widgets".into(),
                kind: "Widget".into(),
            }),
            ..synced("b.org", "v1", "gadgets")
        };
        let types = BTreeSet::from([
            synced("", "v1", "configmaps"),
            synced("apps", "v1", "deployments"),
            converted,
        ]);
        let text = "/v1/configmaps\napps/v1/deployments\nb.org/v1/gadgets of a.org/widgets/Widget\n";
        assert_eq!(render(Direction::Down, &types), text);
        assert_eq!(parse(Direction::Down, &render(Direction::Down, &types)), types);
        assert_eq!(render(Direction::Up, &types), "");
        assert_eq!(
            parse(
                Direction::Down,
                "nonsense\n/v1/configmaps\n//\n../v1/pods\n/v1/..\n/v1/pods/proxy\n/%2e/pods\n/v1/pods of a/../b/C\n"
            ),
            BTreeSet::from([synced("", "v1", "configmaps")])
        );
    }

    #[test]
    fn fuzz_record() {
        const RECORD: &str = r#"{"metadata":{"namespace":"default","name":"edge-syncer-types"},"data":{"hub":"u1","types":"/v1/configmaps\napps/v1/deployments of a.org/b/C\n","hub-versions":"configmaps 7\n","hub-definitions":"a.b uid\nc -\n"}}"#;
        let name = ObjectName::new("default", NAME);
        crate::fuzz::fuzz("record", &[RECORD.as_bytes()], |text, _| {
            if let Ok(kept) = read_body(&name, text) {
                let can_be = |known: &SyncedType| is_word(&known.version) && is_word(&known.resource);
                assert!(kept.types.iter().all(can_be));
            }
        });
    }
}
