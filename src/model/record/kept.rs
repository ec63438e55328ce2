//! The form of the record: the data of a `ConfigMap`, a line for each type.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use bytes::Bytes;
use serde_json::{Value, json};

use crate::api::DESCRIPTION;
use crate::cluster::{Error, ObjectName, is_word};
use crate::plan::{Direction, Origins, SyncedType};
use crate::sync::definition::DefinedBy;
use crate::sync::meta::Meta;
use crate::sync::own_objects::{LEGACY_RECORD, record_name};
use crate::sync::ownership::SyncTarget;

/// Keys in it, by the direction that the types were synced.
const KEYS: [(Direction, &str); 2] = [(Direction::Down, "types"), (Direction::Up, "upsynced")];

/// Keys of the UIDs of the hub and the edge that the copies are from. A backup may bring the record to another edge.
const HUB: &str = "hub";
const EDGE: &str = "edge";
/// Keys of the UIDs of the hubs and the edges of which people have confirmed that they do not come back, one a line: not
/// all copies from them may have been deleted yet.
const FORMER_HUBS: &str = "former-hubs";
const FORMER_EDGES: &str = "former-edges";
/// Key of the versions that its types were seen at, one `resource.group version` a line.
const HUB_VERSIONS: &str = "hub-versions";
/// Key of what defines its types, one `resource.group uid` a line; the UID is `-` for a type that nothing defines which
/// could be deleted.
const HUB_DEFINITIONS: &str = "hub-definitions";
const NOTHING: &str = "-";
/// Key of the types that the hub lacks and whose deletes people have confirmed, one `resource.group` a line.
const LET_GO: &str = "confirmed";
/// Key of the types that people have deselected, one `resource.group` a line.
const DESELECTED: &str = "deselected";
/// Key of the types that nothing selects, but whose configs may have been deleted with their own type, one
/// `resource.group` a line.
const UNPROVED: &str = "deselected-with-configs";

/// Key of the holds that only people or time end, a line each, in the form of the guard.
const HOLDS: &str = "holds";
/// Key of the Jobs that have finished at the edge, as long as the hub does not show that, a line each.
const FINISHED: &str = "finished";

/// What the record says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(super) holds: String,
    pub(super) finished: String,
    pub(crate) types: BTreeSet<SyncedType>,
    /// The hub that the copies are from; empty if it is not known.
    pub(crate) hub: String,
    /// The edge that the copies at the hub are from; empty if it is not known.
    pub(super) edge: String,
    /// Hubs that copies may be from, and that people have given up.
    pub(super) former_hubs: BTreeSet<String>,
    /// The same of edges.
    pub(super) former_edges: BTreeSet<String>,
    pub(super) hub_versions: BTreeMap<String, u64>,
    pub(crate) hub_definitions: BTreeMap<String, DefinedBy>,
    /// Types that the hub lacks and whose deletes people have confirmed.
    pub(in crate::model) let_go: BTreeSet<String>,
    /// Types that people have deselected.
    pub(in crate::model) deselected: BTreeSet<String>,
    /// Types that nothing selects, but whose configs may have been deleted with their own type.
    pub(in crate::model) unproved: BTreeSet<String>,
}

/// The names that records of one sync target have or had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    /// Its own, which it reads and writes.
    pub(crate) own: ObjectName,
    /// The one of versions in which sync targets did not have their own yet: read as long as there is no own one.
    pub(crate) legacy: ObjectName,
    /// Those of the sync targets whose copies it has taken over: their types are its own.
    pub(crate) former: Vec<ObjectName>,
}

impl Names {
    pub(crate) fn of(sync_target: &SyncTarget, namespace: &str) -> Self {
        let named = |uid: &String| ObjectName::new(namespace, &record_name(uid));
        Self {
            own: named(&sync_target.uid),
            legacy: ObjectName::new(namespace, LEGACY_RECORD),
            former: sync_target.former.iter().map(named).collect(),
        }
    }
}

/// Reads the object of that name.
pub(crate) fn parse_record(name: &ObjectName, body: &[u8]) -> Result<Kept, Error> {
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
            DefinedBy::Nothing
        } else {
            DefinedBy::Uid(uid.to_owned())
        };
        Some((resource.to_owned(), known))
    });
    let words = |key: &str| {
        text(key)
            .lines()
            .filter(|word| is_word(word))
            .map(str::to_owned)
            .collect()
    };
    Ok(Kept {
        holds: text(HOLDS).to_owned(),
        finished: text(FINISHED).to_owned(),
        hub_definitions: definitions.collect(),
        types: types.collect(),
        hub: text(HUB).to_owned(),
        edge: text(EDGE).to_owned(),
        former_hubs: words(FORMER_HUBS),
        former_edges: words(FORMER_EDGES),
        hub_versions: versions.collect(),
        let_go: words(LET_GO),
        deselected: words(DESELECTED),
        unproved: words(UNPROVED),
    })
}

/// The object of that name.
pub(crate) fn render_record(name: &ObjectName, kept: &Kept) -> Bytes {
    let mut versions = String::new();
    for (resource, version) in &kept.hub_versions {
        let _ = writeln!(versions, "{resource} {version}");
    }
    let mut definitions = String::new();
    for (resource, known) in &kept.hub_definitions {
        let uid = match known {
            DefinedBy::Nothing => NOTHING,
            DefinedBy::Uid(uid) => uid,
        };
        let _ = writeln!(definitions, "{resource} {uid}");
    }
    let lines = |uids: &BTreeSet<String>| uids.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
    let data: BTreeMap<&str, String> = KEYS
        .iter()
        .map(|&(direction, key)| (key, render(direction, &kept.types)))
        .chain([
            (HUB, kept.hub.clone()),
            (EDGE, kept.edge.clone()),
            (FORMER_HUBS, lines(&kept.former_hubs)),
            (FORMER_EDGES, lines(&kept.former_edges)),
            (HUB_VERSIONS, versions),
            (HUB_DEFINITIONS, definitions),
            (LET_GO, lines(&kept.let_go)),
            (DESELECTED, lines(&kept.deselected)),
            (UNPROVED, lines(&kept.unproved)),
            (HOLDS, kept.holds.clone()),
            (FINISHED, kept.finished.clone()),
        ])
        .filter(|(_, text)| !text.is_empty())
        .collect();
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "namespace": name.namespace(),
            "name": &*name.name,
            "annotations": {DESCRIPTION:
                "The resource types that edge-syncer has synced to this cluster and from it, by group/version/resource. It finds its copies by them after a restart."},
        },
        "data": data,
    });
    Bytes::from(object.to_string())
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
pub(super) mod tests {
    use super::*;

    pub(in crate::model::record) fn synced(group: &str, version: &str, resource: &str) -> SyncedType {
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
    fn the_object_is_read_as_it_was_written() {
        let word = |word: &str| BTreeSet::from([word.to_owned()]);
        let kept = Kept {
            holds: "downsync TooMany 7fd8379e 30 41\n".into(),
            finished: "jobs.batch shop/a u1\n".into(),
            hub_definitions: [
                ("a.org".to_owned(), DefinedBy::Nothing),
                ("b.org".to_owned(), DefinedBy::Uid("u".into())),
            ]
            .into(),
            types: BTreeSet::from([synced("", "v1", "configmaps")]),
            hub: "the-hub".into(),
            edge: "the-edge".into(),
            former_hubs: word("older"),
            former_edges: word("old"),
            hub_versions: [("configmaps".to_owned(), 7)].into(),
            let_go: word("c.org"),
            deselected: word("d.org"),
            unproved: word("e.org"),
        };
        let name = ObjectName::new("default", LEGACY_RECORD);
        assert_eq!(parse_record(&name, &render_record(&name, &kept)).unwrap(), kept);
        let hub_alone = Kept {
            hub: "the-hub".into(),
            ..Kept::default()
        };
        let body: Value = serde_json::from_slice(&render_record(&name, &hub_alone)).unwrap();
        assert_eq!(body["data"], json!({"hub": "the-hub"}), "what is empty is left out");
    }

    #[test]
    fn fuzz_record() {
        const RECORD: &str = r#"{"metadata":{"namespace":"default","name":"edge-syncer-types"},"data":{"hub":"u1","former-hubs":"u0\n","types":"/v1/configmaps\napps/v1/deployments of a.org/b/C\n","hub-versions":"configmaps 7\n","hub-definitions":"a.b uid\nc -\n"}}"#;
        let name = ObjectName::new("default", LEGACY_RECORD);
        crate::fuzz::fuzz("record", &[RECORD.as_bytes()], |text, _| {
            if let Ok(kept) = parse_record(&name, text) {
                let can_be = |known: &SyncedType| is_word(&known.version) && is_word(&known.resource);
                assert!(kept.types.iter().all(can_be));
            }
        });
    }
}
