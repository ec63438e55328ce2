//! The record at the edge of the types that were ever synced: what a restart needs to find copies that no config
//! selects any more (DESIGN section 4, Restart). Types, not objects; one small `ConfigMap`, written when a type is new.
//!
//! A type is synced only once the record names it, so that a copy whose type is forgotten cannot exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Engine, TaskEnd};
use crate::cluster::{Cluster, Content, Error, ObjectName, ResourceType, Side};
use crate::plan::{Direction, Origins, SyncedType};
use crate::queue::back_off;
use crate::report::Subject;
use crate::sync::definition::Known;
use crate::sync::object::Meta;

/// Name of the `ConfigMap`. It lies in the syncer's own namespace, or in `default` where it has none.
pub(super) const NAME: &str = "edge-syncer-types";
/// Keys in it, by the direction that the types travelled.
const KEYS: [(Direction, &str); 2] = [(Direction::Down, "types"), (Direction::Up, "upsynced")];

/// Key of the UID of the hub that the copies are from.
const HUB: &str = "hub";
/// Key of the versions that its types were seen at, one `resource.group version` a line.
const HUB_VERSIONS: &str = "hub-versions";
/// Key of what defines its types, one `resource.group uid` a line; the UID is `-` where nothing does that could be deleted.
const HUB_DEFINITIONS: &str = "hub-definitions";
const NOTHING: &str = "-";
/// How often the versions are written, if they have grown.
const VERSIONS_INTERVAL: Duration = Duration::from_secs(600);
/// How often it is written though nothing has changed: somebody may have deleted it.
const RENEWAL: Duration = Duration::from_secs(7200);
/// How long the end of the process may wait for the last write.
pub(super) const LAST_WRITE: Duration = Duration::from_secs(2);

/// What the record says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    types: BTreeSet<SyncedType>,
    /// The hub that the copies are from; empty if it cannot be told.
    hub: String,
    hub_versions: BTreeMap<String, u64>,
    hub_definitions: BTreeMap<String, Known>,
}

/// The record as this process knows it.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(super) struct Record {
    /// The types that the edge has; absent until it was read. While the edge refuses to keep a record, those that it
    /// should have.
    pub(super) saved: Option<BTreeSet<SyncedType>>,
    /// Types that it should have too, and lacks since the edge has gone back to an older one.
    lost: BTreeSet<SyncedType>,
    /// Types that have left it, since no copy of them was left.
    dropped: BTreeSet<SyncedType>,
    /// It has been read, and the edge has not gone back since.
    is_read: bool,
    /// What it says of the hub is known.
    hub_is_known: bool,
    /// The types that it should have.
    wanted: BTreeSet<SyncedType>,
    under_way: bool,
    due: Option<Instant>,
    failures: u32,
    /// The edge refuses to keep a record, and this was said. It is asked again from time to time.
    refused: bool,
    /// The versions that the edge has.
    saved_versions: BTreeMap<String, u64>,
    /// The first lists of this run were complete.
    has_first_versions: bool,
}

impl Record {
    pub(super) fn due(&self) -> Option<Instant> {
        self.due.filter(|_| !self.under_way)
    }

    /// The edge has these types in it. Others may be known already: it was refused until now, or the edge has gone back.
    fn has(&mut self, types: BTreeSet<SyncedType>) {
        self.lost = self.wanted.difference(&types).cloned().collect();
        self.saved = Some(types);
    }

    /// The types that copies may be of; absent until it was read.
    pub(super) fn types(&self) -> Option<BTreeSet<SyncedType>> {
        Some(self.saved.as_ref()?.union(&self.lost).cloned().collect())
    }

    /// True once the record names the type (or the edge refuses to keep one).
    pub(super) fn names(&self, synced: &SyncedType) -> bool {
        self.saved
            .as_ref()
            .is_some_and(|saved| self.refused || saved.contains(synced))
    }

    /// It is written in this time, unless it is planned for earlier.
    fn be_due_in(&mut self, wait: Duration) {
        let at = Instant::now() + wait;
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// It is written now, though it may have been planned for later. A failed write keeps its back-off.
    fn hasten(&mut self) {
        if self.failures == 0 {
            self.due = Some(Instant::now());
        } else {
            self.due.get_or_insert_with(Instant::now);
        }
    }

    /// What the record should say from now on.
    pub(super) fn set(&mut self, wanted: BTreeSet<SyncedType>) {
        let dropped = self.wanted.difference(&wanted).cloned();
        self.dropped.extend(dropped);
        self.dropped.retain(|known| !wanted.contains(known));
        self.wanted = wanted;
        if self.refused {
            self.saved = Some(self.wanted.clone());
        } else if self.saved.as_ref().is_some_and(|saved| *saved != self.wanted) {
            self.hasten();
        }
    }
}

impl Engine {
    /// Reads or writes the record where that is due.
    pub(super) fn keep_record(&mut self) {
        if self.record.under_way || self.record.due.is_none_or(|due| due > Instant::now()) {
            return;
        }
        self.record.under_way = true;
        self.record.due = None;
        let edge = Rc::clone(&self.setup.edge);
        let name = self.record_name();
        let is_read = !self.record.is_read;
        let write = self.record.is_read.then(|| self.to_be_kept());
        let task = async move {
            let result = match write {
                None => read(&edge, &name).await,
                Some(kept) => save(&edge, &name, &kept).await.map(|()| kept),
            };
            TaskEnd::Recorded(result, is_read)
        };
        self.tasks.push(task.boxed_local());
    }

    /// Writes what has grown since the last write before the process ends, if the edge answers soon.
    pub(super) async fn save_record_at_last(&mut self) {
        let (name, kept) = (self.record_name(), self.to_be_kept());
        if !self.record.is_read || self.record.refused || self.record.saved_versions == kept.hub_versions {
            return;
        }
        let edge = Rc::clone(&self.setup.edge);
        let saved = tokio::time::timeout(LAST_WRITE, save(&edge, &name, &kept)).await;
        log::debug!("wrote the record for the last time result={saved:?}");
    }

    fn record_name(&self) -> ObjectName {
        ObjectName::new(self.setup.own_namespace.as_deref().unwrap_or("default"), NAME)
    }

    fn to_be_kept(&self) -> Kept {
        Kept {
            types: self.record.wanted.clone(),
            hub: self.hub_identity.expected().unwrap_or_default(),
            hub_versions: self.hub_versions(),
            hub_definitions: self.definitions_of_record(),
        }
    }

    fn hub_versions(&self) -> BTreeMap<String, u64> {
        self.guard.versions.of_hub(self.guard.distrusts(Direction::Down))
    }

    /// What tells a restored or another hub is no longer what the record says.
    pub(super) fn keep_guard_in_record(&mut self) {
        if self.record.saved.is_some() && !self.record.refused {
            self.record.hasten();
        }
    }

    /// The versions of the hub have grown: the record learns it in a while.
    pub(super) fn keep_versions_in_record(&mut self) {
        let is_kept = self.record.saved.is_some() && !self.record.refused;
        if is_kept && !self.record.under_way {
            self.record.be_due_in(VERSIONS_INTERVAL);
        }
    }

    /// The first lists are complete: the record learns their versions at once, since a run may be short.
    pub(super) fn keep_first_versions_in_record(&mut self) {
        let is_first = !std::mem::replace(&mut self.record.has_first_versions, true);
        if is_first && self.record.saved_versions != self.hub_versions() {
            self.keep_guard_in_record();
        }
    }

    /// Reads the record as soon as possible.
    pub(super) fn read_record(&mut self) {
        self.record.due = Some(Instant::now());
    }

    pub(super) fn recorded(&mut self, result: Result<Kept, Error>, is_read: bool) {
        self.record.under_way = false;
        match result {
            Ok(kept) => self.record_is(kept, is_read),
            Err(error) => {
                self.record.failures = (self.record.failures + 1).min(30);
                let wait = back_off(self.record.failures, fastrand::f64());
                self.record.due = Some(Instant::now() + wait);
                if !is_refusal(&error) {
                    self.record_failed(&error);
                    return;
                }
                if std::mem::replace(&mut self.record.refused, true) {
                    return;
                }
                log::warn!(
                    "cannot keep the record of synced types at the edge; copies that are deselected while the syncer is \
                     down will stay error={:?} advice=\"allow it to get, create and patch the ConfigMap {NAME}\"",
                    error.to_string()
                );
                self.record.saved.get_or_insert_default();
                self.ask_identity(Side::Hub);
                self.ask_identity(Side::Edge);
            }
        }
        self.replan();
    }

    /// The record has been read, or written.
    fn record_is(&mut self, kept: Kept, is_read: bool) {
        self.report.works(&the_record());
        let record = &mut self.record;
        record.failures = 0;
        record.be_due_in(RENEWAL);
        if std::mem::take(&mut record.refused) {
            log::info!("the record of synced types can be kept at the edge now");
        }
        record.is_read |= is_read;
        record.has(kept.types);
        record.saved_versions.clone_from(&kept.hub_versions);
        if !std::mem::replace(&mut record.hub_is_known, true) {
            self.remember_definitions(kept.hub_definitions);
            self.remember_hub(kept.hub, kept.hub_versions);
        }
    }

    /// The edge has gone back to older versions, and the record with it: it may lack types, or name some whose copies are
    /// there again. Others that have left it may have done so since, before that was noticed.
    pub(super) fn read_record_again(&mut self) {
        let dropped = std::mem::take(&mut self.record.dropped);
        self.record.lost.extend(dropped.iter().cloned());
        self.record.wanted.extend(dropped);
        if std::mem::take(&mut self.record.is_read) {
            self.record.hasten();
        }
    }

    fn record_failed(&mut self, error: &Error) {
        let doing = "keeping the record";
        if error.is_unreachable() {
            self.side_is_silent(Side::Edge, doing, error);
        } else {
            self.report.failed(the_record(), doing, error);
        }
    }

    /// The record of an earlier run says which hub the copies are from.
    fn remember_hub(&mut self, hub: String, versions: BTreeMap<String, u64>) {
        if !hub.is_empty() {
            self.hub_identity.expect(hub);
        }
        self.remember_versions(versions);
        self.ask_identity(Side::Hub);
        self.ask_identity(Side::Edge);
    }
}

fn the_record() -> Subject {
    Subject::Thing(Side::Edge, format!("ConfigMap {NAME}"))
}

/// True if the edge refuses to keep a record: it may not be read or written, or its namespace is not there. A 404 that says
/// nothing of either is that of something that stands before the edge.
fn is_refusal(error: &Error) -> bool {
    let code = error.status().map(|status| status.code);
    matches!(code, Some(403 | 404 | 422)) && !error.is_type_not_served()
}

async fn read(edge: &Cluster, name: &ObjectName) -> Result<Kept, Error> {
    match edge.get(&ResourceType::config_maps(), name, Content::Full).await {
        Ok(body) => {
            Meta::of(name, &body)?;
            let object: Value = serde_json::from_slice(&body)
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
        Err(error) if error.proves_absent(NAME) => Ok(Kept::default()),
        Err(error) => Err(error),
    }
}

async fn save(edge: &Cluster, name: &ObjectName, kept: &Kept) -> Result<(), Error> {
    let mut versions = String::new();
    for (resource, version) in &kept.hub_versions {
        writeln!(versions, "{resource} {version}").expect("writing to a String cannot fail");
    }
    let mut definitions = String::new();
    for (resource, known) in &kept.hub_definitions {
        let uid = match known {
            Known::Nothing => NOTHING,
            Known::Uid(uid) => uid,
        };
        writeln!(definitions, "{resource} {uid}").expect("writing to a String cannot fail");
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
        (!version.is_empty() && !resource.is_empty()).then_some(SyncedType {
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
    use futures_util::future::LocalBoxFuture;

    use super::*;
    use crate::cluster::{ApiServer, RateLimit, Response};

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
    fn types_that_the_record_of_a_restored_edge_lacks_are_not_forgotten() {
        let (old, new) = (synced("", "v1", "configmaps"), synced("apps", "v1", "deployments"));
        let both = BTreeSet::from([old.clone(), new.clone()]);
        let mut record = Record::default();
        assert_eq!(record.types(), None, "it was not read");
        record.has(BTreeSet::new());
        record.set(both.clone());
        record.has(both.clone());
        assert!(record.names(&new));
        record.has(BTreeSet::from([old]));
        assert_eq!(record.types(), Some(both.clone()));
        assert!(!record.names(&new), "it has to be written first");
        record.has(both.clone());
        assert!(record.names(&new));
        assert_eq!(record.types(), Some(both));
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
            parse(Direction::Down, "nonsense\n/v1/configmaps\n//\n"),
            BTreeSet::from([synced("", "v1", "configmaps")])
        );
    }
}
