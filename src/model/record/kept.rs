//! The form of the record: the data of a `ConfigMap`, a line for each type.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use bytes::Bytes;
use kube_lite::{Error, ObjectName, is_uid, is_word};
use serde_json::{Value, json};

use crate::api::DESCRIPTION;
use crate::model::finished::is_finished_job;
use crate::model::guard::is_hold;
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

/// Reads the object of that name. Anybody who may write it may have written anything: what cannot be what it should be is
/// not believed, as if it had not been written. The keys of that are given too.
pub(crate) fn parse_record(name: &ObjectName, body: &[u8]) -> Result<(Kept, Vec<&'static str>), Error> {
    Meta::of(name, body)?;
    let object: Value = serde_json::from_slice(body)
        .map_err(|error| Error::BadAnswer(format!("the record of synced types: {error}")))?;
    let mut data = Data {
        data: &object["data"],
        unbelievable: Vec::new(),
    };
    let types = KEYS
        .iter()
        .flat_map(|&(direction, key)| data.lines(key, |line| parse(direction, line)));
    let kept = Kept {
        types: types.collect(),
        holds: data
            .lines(HOLDS, |line| is_hold(line).then(|| format!("{line}\n")))
            .collect(),
        finished: data
            .lines(FINISHED, |line| is_finished_job(line).then(|| format!("{line}\n")))
            .collect(),
        hub_definitions: data.lines(HUB_DEFINITIONS, definition).collect(),
        hub: data.uid(HUB),
        edge: data.uid(EDGE),
        former_hubs: data.lines(FORMER_HUBS, uid).collect(),
        former_edges: data.lines(FORMER_EDGES, uid).collect(),
        hub_versions: data.lines(HUB_VERSIONS, version).collect(),
        let_go: data.lines(LET_GO, word).collect(),
        deselected: data.lines(DESELECTED, word).collect(),
        unproved: data.lines(UNPROVED, word).collect(),
    };
    Ok((kept, data.unbelievable))
}

/// The data of a record.
struct Data<'a> {
    data: &'a Value,
    /// Keys of which something is not believed.
    unbelievable: Vec<&'static str>,
}

impl Data<'_> {
    /// What the lines of a key say, as far as it can be read.
    fn lines<T>(&mut self, key: &'static str, read: impl Fn(&str) -> Option<T>) -> std::vec::IntoIter<T> {
        let text = &self.data[key];
        let lines = text.as_str().unwrap_or_default().lines();
        let lines: Vec<Option<T>> = lines.map(|line| read(line.trim())).collect();
        if lines.iter().any(Option::is_none) || !text.is_null() && !text.is_string() {
            self.unbelievable.push(key);
        }
        lines.into_iter().flatten().collect::<Vec<T>>().into_iter()
    }

    /// The UID that a key names; empty if there is none.
    fn uid(&mut self, key: &'static str) -> String {
        let uids: Vec<String> = self.lines(key, uid).collect();
        let is_unbelievable = self.unbelievable.contains(&key);
        match <[String; 1]>::try_from(uids) {
            Ok([uid]) if !is_unbelievable => uid,
            _ => {
                if !is_unbelievable && !self.data[key].is_null() {
                    self.unbelievable.push(key);
                }
                String::new()
            }
        }
    }
}

/// A UID.
fn uid(line: &str) -> Option<String> {
    is_uid(line).then(|| line.to_owned())
}

/// A type as `resource.group`.
fn word(line: &str) -> Option<String> {
    is_word(line).then(|| line.to_owned())
}

/// A type and what defines it.
fn definition(line: &str) -> Option<(String, DefinedBy)> {
    let (resource, by) = line.split_once(' ')?;
    let known = match by {
        NOTHING => DefinedBy::Nothing,
        by => DefinedBy::Uid(uid(by)?),
    };
    Some((word(resource)?, known))
}

/// A type and the version that it was seen at.
fn version(line: &str) -> Option<(String, u64)> {
    let (resource, version) = line.split_once(' ')?;
    Some((word(resource)?, version.parse().ok()?))
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

/// Reads a line that [`render`] has written; `None` if it has another form.
fn parse(direction: Direction, line: &str) -> Option<SyncedType> {
    let (line, of) = line.split_once(" of ").unwrap_or((line, ""));
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
    let may_be = |word: &str| word.is_empty() || is_word(word);
    let origins_are = |of: &Origins| may_be(&of.group) && is_word(&of.resource) && may_be(&of.kind);
    let can_be = may_be(&group) && is_word(&version) && is_word(&resource);
    (can_be && of.as_ref().is_none_or(origins_are)).then_some(SyncedType {
        direction,
        group,
        version,
        resource,
        of,
    })
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
        let read: BTreeSet<_> = text.lines().filter_map(|line| parse(Direction::Down, line)).collect();
        assert_eq!(read, types);
        assert_eq!(render(Direction::Up, &types), "");
        for line in [
            "nonsense",
            "//",
            "../v1/pods",
            "/v1/..",
            "/v1/pods/proxy",
            "/%2e/pods",
            "/v1/pods of a/../b/C",
            "/v1/pods of a/b/C D",
            "/v1/pods of a/b/C/D",
        ] {
            assert_eq!(parse(Direction::Down, line), None, "{line}");
        }
    }

    const U1: &str = "6f1d2c3b-0000-4000-8000-00000000000a";
    const U2: &str = "6F1D2C3B-0000-4000-8000-00000000000B";

    #[test]
    fn the_object_is_read_as_it_was_written() {
        let word = |word: &str| BTreeSet::from([word.to_owned()]);
        let kept = Kept {
            holds: "downsync TooMany 7fd8379e 30 41\n".into(),
            finished: "jobs.batch shop/a u1\n".into(),
            hub_definitions: [
                ("a.org".to_owned(), DefinedBy::Nothing),
                ("b.org".to_owned(), DefinedBy::Uid(U1.into())),
            ]
            .into(),
            types: BTreeSet::from([synced("", "v1", "configmaps")]),
            hub: U1.into(),
            edge: U2.into(),
            former_hubs: word(U2),
            former_edges: word(U1),
            hub_versions: [("configmaps".to_owned(), 7)].into(),
            let_go: word("c.org"),
            deselected: word("d.org"),
            unproved: word("e.org"),
        };
        let name = ObjectName::new("default", LEGACY_RECORD);
        let read = parse_record(&name, &render_record(&name, &kept)).unwrap();
        assert_eq!(read, (kept, Vec::new()));
        let hub_alone = Kept {
            hub: U1.into(),
            ..Kept::default()
        };
        let body: Value = serde_json::from_slice(&render_record(&name, &hub_alone)).unwrap();
        assert_eq!(body["data"], json!({"hub": U1}), "what is empty is left out");
    }

    #[test]
    fn what_cannot_be_in_a_record_is_not_believed() {
        const HOLD: &str = "downsync TooMany t 30 41\n";
        let long = "u".repeat(300);
        let name = ObjectName::new("default", LEGACY_RECORD);
        for (key, text, expected) in [
            (HUB, U1, Some(U1)),
            (HUB, &format!("{U1}\n"), Some(U1)),
            (HUB, "not-a-uid", None),
            (HUB, &U1[1..], None),
            (HUB, &U1.replace('-', "0"), None),
            (HUB, "", None),
            (HUB, " ", None),
            (HUB, "\n", None),
            (HUB, "no UID", None),
            (HUB, "a/b", None),
            (HUB, &format!("{U1}\n{U2}"), None),
            (HUB, &format!("{U1}\nno UID"), None),
            (HUB, &long, None),
            (EDGE, "u\tv", None),
            (EDGE, "\u{0}", None),
            (FORMER_HUBS, "u v", None),
            (FORMER_EDGES, "a/b", None),
            (HUB_VERSIONS, "configmaps 7", Some("configmaps 7")),
            (HUB_VERSIONS, "configmaps -7", None),
            (HUB_VERSIONS, "configmaps 18446744073709551616", None),
            (HUB_VERSIONS, "7", None),
            (HUB_VERSIONS, " 7", None),
            (HUB_DEFINITIONS, &format!("a.org {U1}"), Some(&format!("a.org {U1}"))),
            (HUB_DEFINITIONS, "a.org u", None),
            (HUB_DEFINITIONS, "a.org -", Some("a.org -")),
            (HUB_DEFINITIONS, "a.org u v", None),
            (HUB_DEFINITIONS, "a.org ", None),
            (HUB_DEFINITIONS, "a/org u", None),
            (LET_GO, "c org", None),
            (DESELECTED, "..", None),
            (UNPROVED, "%2e", None),
            ("types", "/v1/pods/proxy", None),
            ("upsynced", "nonsense", None),
            (HOLDS, HOLD, Some(HOLD)),
            (HOLDS, "downsync TooMany  30 41", None),
            (HOLDS, "downsync TooMany t 30 4", None),
            (HOLDS, "downsync TooMany t 0 4", None),
            (HOLDS, "downsync TooMany 0123456789abcdefg 30 41", None),
            (HOLDS, "upsync OlderVersions t secrets 7 9", None),
            (HOLDS, "upsync OlderVersions t .. 9 7", None),
            (FINISHED, "jobs.batch a/b u1", Some("jobs.batch a/b u1")),
            (FINISHED, "jobs.batch a/b u/1", None),
        ] {
            let object = json!({"metadata": {"namespace": name.namespace(), "name": &*name.name}, "data": {key: text}});
            let (kept, unbelievable) = parse_record(&name, object.to_string().as_bytes()).unwrap();
            let body: Value = serde_json::from_slice(&render_record(&name, &kept)).unwrap();
            let read = body["data"][key].as_str();
            assert_eq!(read.map(str::trim), expected.map(str::trim), "{key} {text:?}");
            assert_eq!(unbelievable.is_empty(), expected.is_some(), "{key} {text:?}");
        }
        // Something else than a text is none either, and what is beside it counts.
        let data = json!({HUB: 5, EDGE: U1, LET_GO: "a.org\nb org\nc.org"});
        let object = json!({"metadata": {"namespace": name.namespace(), "name": &*name.name}, "data": data});
        let (kept, unbelievable) = parse_record(&name, object.to_string().as_bytes()).unwrap();
        assert_eq!((&*kept.hub, &*kept.edge), ("", U1));
        assert_eq!(kept.let_go, ["a.org", "c.org"].map(str::to_owned).into());
        assert_eq!(unbelievable, [HUB, LET_GO]);
    }

    #[test]
    fn fuzz_record() {
        const RECORD: &str = r#"{"metadata":{"namespace":"default","name":"edge-syncer-types"},"data":{"hub":"6f1d2c3b-0000-4000-8000-00000000000a","former-hubs":"6f1d2c3b-0000-4000-8000-00000000000b\n","types":"/v1/configmaps\napps/v1/deployments of a.org/b/C\n","hub-versions":"configmaps 7\n","hub-definitions":"a.b uid\nc -\n","confirmed":"c.org\n","holds":"downsync TooMany 7fd8379e 30 41\nupsync OlderVersions 7fd8379e secrets 452 297\n","finished":"jobs.batch shop/a u1 {}\n"}}"#;
        let name = ObjectName::new("default", LEGACY_RECORD);
        kube_lite::fuzz::fuzz("record", &[RECORD.as_bytes()], |text, _| {
            if let Ok((kept, _)) = parse_record(&name, text) {
                // What is believed is written as it was read, and believed again.
                let again = parse_record(&name, &render_record(&name, &kept)).unwrap();
                assert_eq!(again, (kept, Vec::new()));
            }
        });
    }
}
